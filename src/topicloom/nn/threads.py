"""The number of threads that PyTorch uses for an operation."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from functools import cache

import torch
from threadpoolctl import ThreadpoolController


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
