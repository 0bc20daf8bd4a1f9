"""The execution of operations: gradients, precision, devices, threads, and loops that numba compiles for the CPU."""

from __future__ import annotations

import importlib.util
import logging
import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar, copy_context
from functools import cache
from typing import Any, TypeVar

import numpy as np
import torch
from threadpoolctl import ThreadpoolController
from torch import Tensor

T = TypeVar("T")

_log = logging.getLogger("topicloom")
_n_helpers: ContextVar[int] = ContextVar("n_helpers", default=0)

# A compiled loop has two forms: a vectorised one, and one for arrays that may overlap, which adds in another order. The
# second form runs if two arrays begin within a few hundred bytes of each other, which small arrays can do by chance.
# With this many numbers between arrays, the sums are always the same.
NUMBERS_BETWEEN_ARRAYS = 256
# Loading numba takes .4 seconds, so only this many documents gain from it. Larger corpora are read in batches of 1,024
# documents.
FEWEST_DOCUMENTS_TO_COMPILE = 512
# A loop of a training step uses one thread. It is worth loading numba, and starting no other threads, if the loop reads
# this many numbers.
_LEAST_WORK, _MOST_WORK = 1 << 14, 1 << 22
_FAST_MATH = {"reassoc", "contract", "nsz", "arcp"}  # allows sums in any order, for vectorising; NaN stays NaN


# Gradients and precision


@contextmanager
def full_precision() -> Iterator[None]:
    """Turn automatic mixed precision off, which computes products of matrices with 8 bits of precision."""
    with ExitStack() as stack:
        for device in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        yield


@contextmanager
def with_gradients() -> Iterator[None]:
    """Turn gradients on, in full precision, even inside `torch.no_grad` or `torch.inference_mode`.

    The function is also a decorator.
    """
    with full_precision(), torch.inference_mode(False), torch.enable_grad():
        yield


@contextmanager
def without_gradients() -> Iterator[None]:
    """Turn gradients off, in full precision."""
    with full_precision(), torch.inference_mode():
        yield


@contextmanager
def usual_device() -> Iterator[None]:
    """Make tensors on the CPU unless a device is named, whatever `torch.set_default_device` says.

    The function is also a decorator.
    """
    if torch.empty(0).device.type == "cpu":  # a context of PyTorch would slow down every operation
        yield
        return
    with torch.device("cpu"):
        yield


# Threads of an operation


def one_thread() -> AbstractContextManager[object]:
    """Let the operations of the calling thread use no other thread, until the context that is returned is left.

    Threads of OpenMP wait actively for each other. In an operation of less than a millisecond, waiting costs more than
    the threads save, and many times as much if another process is busy. Unlike `torch.set_num_threads`, this does not
    change the number of threads for threads that start later. A call of that function sets a number for MKL that only
    another call can change; MKL computes large products and exponentials.
    """
    torch.get_num_threads()  # the first call in a thread sets its number, and would otherwise overwrite ours later
    limit: AbstractContextManager[object] = _openmp().limit(limits=1)
    return limit


@contextmanager
def one_thread_with_mkl() -> Iterator[None]:
    """Do the same as `one_thread`, and let MKL use one thread, too.

    After a call of `torch.set_num_threads`, `one_thread` does not limit MKL. MKL's number of threads belongs to the
    whole process, so this is for training and not for inference.
    """
    n_threads = torch.get_num_threads()
    with one_thread():
        if mkl_threads() == 1:
            yield
            return
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(n_threads)


def mkl_threads() -> int:
    """Return the number of threads that MKL uses for the calling thread, or 1 if PyTorch has no MKL."""
    found = re.search(r"mkl_get_max_threads\(\) : (\d+)", torch.__config__.parallel_info())
    return int(found[1]) if found else 1


@cache
def _openmp() -> ThreadpoolController:
    """Return the OpenMP libraries that PyTorch has loaded. Finding them takes a few milliseconds."""
    return ThreadpoolController().select(user_api="openmp")


# Helpers: threads that share the jobs of a step. Each job writes to its own memory.
#
# With OpenMP, all threads wait for each other in every operation. If another process is using a core, this takes
# several times as long as the operation. Here, a thread takes the next job when it has finished one, and the calling
# thread also does all jobs that no helper has taken. The result of a job does not depend on its thread, so results are
# the same for any number of threads.


@contextmanager
def helper_threads(n: int) -> Iterator[None]:
    """A context in which `n` other threads may share the jobs of this one. They flush denormal numbers to zero."""
    token = _n_helpers.set(n)
    try:
        yield
    finally:
        _n_helpers.reset(token)


def run_on_threads(jobs: Sequence[Callable[[], object]]) -> None:
    """Do each of the jobs once, in any order and without gradients, on this thread and its helpers.

    Args:
        jobs: functions that write to different memory. They should take a tenth of a millisecond or more each.
    """
    remaining = iter(jobs)  # the interpreter's lock ensures that no two threads take the same item
    # Tensors that were made in inference mode can be changed only in that mode, and each thread has its own mode.
    inference = torch.is_inference_mode_enabled()

    def work() -> None:
        with torch.inference_mode(inference), torch.no_grad():
            for job in remaining:
                job()

    waiting = [_pool(os.getpid()).submit(work) for _ in range(min(_n_helpers.get(), len(jobs) - 1))]
    try:
        work()
    finally:
        for helper in waiting:
            if not helper.cancel():
                helper.result()


def prefetched(items: Iterator[T]) -> Iterator[T]:
    """Yield the items. If there are helpers, one of them computes the next item while this one is in use."""
    if not _n_helpers.get():
        yield from items
        return
    end = object()

    def fetch() -> T | object:
        return next(items, end)

    item = fetch()
    while item is not end:
        following = _pool(os.getpid()).submit(copy_context().run, fetch)
        yield item  # type: ignore[misc]
        item = fetch() if following.cancel() else following.result()


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """Return the helpers of a process; a forked process needs its own."""
    return ThreadPoolExecutor(os.cpu_count(), "topicloom", initializer=_prepare_helper)


def _prepare_helper() -> None:
    torch.set_flush_denormal(True)
    one_thread()


# Compiled loops


@cache
def compiled(function: Callable[..., None], example: Callable[[], tuple[Any, ...]]) -> Callable[..., None] | None:
    """Compile a function by numba, cached on disk if possible. Return it, or None if it cannot be compiled.

    Args:
        function: a loop. Arrays that belong together can be fields of a NamedTuple without cost, because numba passes
            the fields as separate arguments.
        example: a function without arguments that returns small arguments of the loop. The compiled loop is called once
            with them, because the first call reveals most problems of an installation.
    """
    if importlib.util.find_spec("numba") is None:
        _warn_that_loops_are_slower("is not installed", "`pip install numba` installs it")
        return None
    reason: Exception | None = None
    for on_disk in (True, False):
        try:
            import numba

            if getattr(numba.config, "DISABLE_JIT", False):  # the plain Python loop would take a thousand times as long
                return None
            _make_callable()
            loop = numba.njit(nogil=True, fastmath=_FAST_MATH, error_model="numpy", cache=on_disk)(function)
            loop(*example())
            return loop
        except Exception as error:  # any failure is acceptable, because there is another implementation
            reason = error
    _warn_that_loops_are_slower("is installed but cannot be used", str(reason))
    return None


@cache
def _make_callable() -> None:
    """Let compiled loops call the functions below."""
    from numba.extending import register_jitable

    for function in (exponential, logarithm):
        register_jitable(fastmath=_FAST_MATH)(function)


def exponential(x: Any) -> Any:
    """Return exp(x) for a number of single precision from -87 to 88, in a compiled loop.

    The number is 2 ** n exp(r), where n is a whole number and r is at most log(2) / 2. A polynomial gives exp(r) (the
    coefficients are those of Cephes). A loop of these operations is vectorised, unlike calls of a function of C.
    """
    n = np.floor(x * np.float32(1.44269504) + np.float32(0.5))
    r = x - n * np.float32(0.69314718)
    high = (np.float32(1.9875691500e-4) * r + np.float32(1.3981999507e-3)) * r + np.float32(8.3334519073e-3)
    low = (high * r + np.float32(4.1665795894e-2)) * r + np.float32(1.6666665459e-1)
    power = np.int32((np.int32(n) + 127) << 23).view(np.float32)
    return (((low * r + np.float32(0.5)) * r + np.float32(1)) * r + np.float32(1)) * power


def logarithm(x: Any) -> Any:
    """Return log(x) for a positive normal number of single precision, in a compiled loop.

    The logarithm of 2 ** n (1 + f) is n log(2) and a polynomial of f, where 1 + f is between sqrt(1 / 2) and sqrt(2)
    (the coefficients are those of Cephes).
    """
    above = np.int32(np.float32(x).view(np.int32) - 0x3F3504F3)  # the bits of sqrt(1 / 2)
    n = np.float32(above >> 23)
    f = np.int32((above & 0x7FFFFF) + 0x3F3504F3).view(np.float32) - np.float32(1)
    high = (np.float32(7.0376836292e-2) * f - np.float32(1.1514610310e-1)) * f + np.float32(1.1676998740e-1)
    high = (high * f - np.float32(1.2420140846e-1)) * f + np.float32(1.4249322787e-1)
    low = (high * f - np.float32(1.6668057665e-1)) * f + np.float32(2.0000714765e-1)
    low = (low * f - np.float32(2.4999993993e-1)) * f + np.float32(3.3333331174e-1)
    return ((low * f - np.float32(0.5)) * f + np.float32(1)) * f + n * np.float32(0.69314718)


def compiled_for(
    function: Callable[..., None], example: Callable[[], tuple[Any, ...]], work: int, *tensors: Tensor
) -> Callable[..., None] | None:
    """Return the compiled loop of a training step, or None if PyTorch's operations should compute the step.

    Args:
        function, example: as in `compiled`.
        work: the number of numbers that the loop reads.
        tensors: arguments of the loop, which reads numbers of single precision on the CPU.
    """
    return compiled(function, example) if is_worth_compiling(work, *tensors) else None


def is_worth_compiling(work: int, *tensors: Tensor) -> bool:
    """Return whether loops of a training step are worth it. The arguments are those of `compiled_for`."""
    if not _LEAST_WORK <= work <= _MOST_WORK:
        return False
    return all(tensor.device.type == "cpu" and tensor.dtype == torch.float32 for tensor in tensors)


def arrays_of(*tensors: Tensor) -> Iterator[Any]:
    """Return tensors on the CPU as arrays for a compiled loop. Tensors that are not contiguous are copied."""
    return (tensor.contiguous().numpy() for tensor in tensors)


@cache
def _warn_that_loops_are_slower(fault: str, more: str) -> None:
    """Warn once, however many loops cannot be compiled for the same reason."""
    _log.warning("numba %s, so Loom and LDA are slower: %s", fault, more)
