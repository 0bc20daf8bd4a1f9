"""How training uses the processor: its threads, and very small numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch

from ..nn.helpers import helped
from ..nn.network import TopicNetwork
from ..nn.threads import mkl_threads, one_thread

_SMALL = 2_000_000  # parameters


@contextmanager
def denormals_flushed() -> Iterator[None]:
    """Treat numbers below 1e-38 as zero on this thread, because processors are slow with such denormal numbers."""
    were_flushed = (torch.tensor([1e-39]) * 1.0).item() == 0.0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(were_flushed)


@contextmanager
def suitable_threads(network: TopicNetwork) -> Iterator[None]:
    """Use one thread for each operation of some networks, and leave the number of threads as it is for others.

    A step of a small network takes a few milliseconds. A second thread saves at most a fifth of that, but waiting for
    it takes several times as long if another process is using its core. The other threads help with a few longer jobs,
    for which no thread waits (see `nn.helpers`). Where such jobs are most of the work, a larger network has one thread
    for its other operations too: threads that wait for an operation would take the cores from the helpers.
    """
    n_threads = torch.get_num_threads()
    on_cpu = network.generator.device.type == "cpu"
    single = network.shares_work or sum(parameter.numel() for parameter in network.parameters()) < _SMALL
    with one_thread() if single else nullcontext(), helped(n_threads - 1 if single and on_cpu else 0):
        if not single or mkl_threads() == 1:
            yield
            return
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(n_threads)
