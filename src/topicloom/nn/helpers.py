"""Jobs of a step that several threads do together, each with memory of its own to write to.

With OpenMP, all threads wait for each other in every operation, which takes several times as long as the operation if
another process is using a core. Here a thread takes the next job when it has done one. If the helpers come late, the
thread that has the jobs does them all itself. What a job computes does not depend on the thread that does it, so
results are the same for any number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cache
from typing import TypeVar

import torch

from .threads import one_thread

T = TypeVar("T")
_helpers: ContextVar[int] = ContextVar("helpers", default=0)


@contextmanager
def helped(n_helpers: int) -> Iterator[None]:
    """A context in which so many other threads may share the jobs of this one. They flush denormal numbers to zero."""
    token = _helpers.set(n_helpers)
    try:
        yield
    finally:
        _helpers.reset(token)


def together(jobs: Sequence[Callable[[], object]]) -> None:
    """Do each of the jobs once, in any order, without gradients.

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

    waiting = [_pool(os.getpid()).submit(work) for _ in range(min(_helpers.get(), len(jobs) - 1))]
    try:
        work()
    finally:
        for helper in waiting:
            if not helper.cancel():
                helper.result()


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """Return the helpers of a process; a forked process needs its own."""
    return ThreadPoolExecutor(os.cpu_count(), "topicloom", initializer=_begin)


def _begin() -> None:
    torch.set_flush_denormal(True)
    one_thread()


def ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield the items. While one is in use, a helper computes the next, if there are helpers."""
    if not _helpers.get():
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
