"""How operations run: with which gradients and threads, and in loops that numba compiles for the CPU."""

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

import torch
from threadpoolctl import ThreadpoolController
from torch import Tensor

T = TypeVar("T")

_log = logging.getLogger("topicloom")
_n_helpers: ContextVar[int] = ContextVar("n_helpers", default=0)

# A loop that numba has compiled has two forms: one that is vectorised, and one for arrays that may overlap, which adds
# in another order. It takes the second one if two arrays begin within a few hundred bytes, as small ones can by chance.
# With this many numbers between an array and any other one, the sums are always the same.
NUMBERS_BETWEEN_ARRAYS = 256
# In a process that has not loaded numba, which takes .4 seconds, only many documents gain from it. Larger corpora are
# read in batches of 1,024 documents.
FEWEST_DOCUMENTS_TO_COMPILE = 512
_FAST_MATH = {"reassoc", "contract", "nsz", "arcp"}  # sums in any order, so that they are vectorised; NaN stays NaN


# Gradients and precision, whatever contexts of PyTorch the caller is in.


@contextmanager
def full_precision() -> Iterator[None]:
    """Turn automatic mixed precision off: it would compute products of matrices with 8 bits of precision."""
    with ExitStack() as stack:
        for device in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        yield


@contextmanager
def with_gradients() -> Iterator[None]:
    """Turn gradients on, which `torch.no_grad` and `torch.inference_mode` turn off, in full precision.

    The function is also a decorator.
    """
    with full_precision(), torch.inference_mode(False), torch.enable_grad():
        yield


@contextmanager
def without_gradients() -> Iterator[None]:
    """Turn gradients off, in full precision."""
    with full_precision(), torch.inference_mode():
        yield


# Threads of an operation.


def one_thread() -> AbstractContextManager[object]:
    """Let the operations of the calling thread use no other thread, until the context that is returned is left.

    Threads of OpenMP wait actively for each other. In an operation that takes less than a millisecond this costs more
    than they save, and many times as much while another process is busy. Unlike `torch.set_num_threads`, this does not
    change the number that threads have which start later. Where that function has been called, it has given MKL a
    number that only it can change; MKL computes large products and exponentials.
    """
    torch.get_num_threads()  # PyTorch sets the number of a thread that it does not know yet; afterwards it keeps ours
    limit: AbstractContextManager[object] = _openmp().limit(limits=1)
    return limit


def mkl_threads() -> int:
    """Return how many threads MKL uses in operations of the calling thread; 1 if PyTorch has no MKL."""
    found = re.search(r"mkl_get_max_threads\(\) : (\d+)", torch.__config__.parallel_info())
    return int(found[1]) if found else 1


@cache
def _openmp() -> ThreadpoolController:
    """Return the OpenMP libraries that PyTorch has loaded. To find them takes some milliseconds."""
    return ThreadpoolController().select(user_api="openmp")


# Helpers: threads that share the jobs of a step, each of which writes to memory of its own.
#
# With OpenMP, all threads wait for each other in every operation, which takes several times as long as the operation if
# another process is using a core. Here a thread takes the next job when it has done one. If the helpers come late, the
# thread that has the jobs does them all itself. What a job computes does not depend on the thread that does it, so
# results are the same for any number of threads.


@contextmanager
def helper_threads(n: int) -> Iterator[None]:
    """A context in which so many other threads may share the jobs of this one. They flush denormal numbers to zero."""
    token = _n_helpers.set(n)
    try:
        yield
    finally:
        _n_helpers.reset(token)


def run_jobs(jobs: Sequence[Callable[[], object]]) -> None:
    """Do each of the jobs once, in any order and without gradients, on this thread and its helpers.

    Args:
        jobs: functions that write to different memory. They should take a tenth of a millisecond or more each.
    """
    remaining = iter(jobs)  # the next item is drawn under the interpreter's lock, so no two threads draw the same
    # Tensors that were made in inference mode can be written to in that mode alone, and each thread has its own mode.
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
    """Yield the items. While one is in use, a helper computes the next, if there are helpers."""
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


# Compiled loops.


@cache
def compiled(function: Callable[..., None], example: Callable[[], tuple[Any, ...]]) -> Callable[..., None] | None:
    """Return a function as compiled by numba, cached on disk if possible, or None if it cannot be compiled.

    Args:
        function: a loop. Arrays that belong together are fields of one NamedTuple, which costs numba nothing: it
            passes the fields as separate arguments.
        example: a function without arguments that returns small arguments of the loop. The compiled loop is called once
            with them, because the first call reveals most problems of an installation.
    """
    if importlib.util.find_spec("numba") is None:
        return None
    reason: Exception | None = None
    for on_disk in (True, False):
        try:
            import numba

            if getattr(numba.config, "DISABLE_JIT", False):  # the plain Python loop would take a thousand times as long
                return None
            loop = numba.njit(nogil=True, fastmath=_FAST_MATH, error_model="numpy", cache=on_disk)(function)
            loop(*example())
            return loop
        except Exception as error:  # whatever fails, there is another implementation
            reason = error
    _warn_that_loops_are_slower(str(reason))
    return None


def arrays_of(*tensors: Tensor) -> Iterator[Any]:
    """Return tensors on the CPU as arrays that a compiled loop reads; those that are not contiguous are copied."""
    return (tensor.contiguous().numpy() for tensor in tensors)


@cache
def _warn_that_loops_are_slower(reason: str) -> None:
    """Warn once, however many loops cannot be compiled for the same reason."""
    _log.warning("numba is installed but cannot be used, so Loom and LDA are slower: %s", reason)
