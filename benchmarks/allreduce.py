"""Simulate all-reduce, the sum of a message over all machines, event by event; and measure gloo's on this machine.

A machine sends one message at a time and receives one at a time. A transfer over a link takes `latency` seconds, and
then its size divided by the bandwidth. A machine takes part from its arrival on, so that one that is late makes the
others wait. On a single machine the ranks share its cores: `cores` limits how many transfers run at once, because each
is a copy that a core makes.

`ring` is the algorithm of gloo and nccl for long messages (Patarasuk & Yuan 2009): the message has p parts, and in
each of 2 (p - 1) rounds every machine sends one part to its neighbour. `tree` sums along a binomial tree and sends the
result back.
"""

from __future__ import annotations

import heapq
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Link:
    """A link: seconds before the first byte arrives, and bytes per second, which vary by a relative deviation."""

    latency: float
    bandwidth: float
    jitter: float = 0.0


def transfers(algorithm: str, n_ranks: int, size: float) -> list[tuple[int, int, float, list[int]]]:
    """Return the transfers of an all-reduce: sender, receiver, bytes, and which transfers have to end before it.

    Each transfer comes after those that it depends on.

    Raises:
        ValueError: the algorithm is unknown.
    """
    if algorithm == "ring":
        found = []
        for number in range(2 * (n_ranks - 1)):
            for sender in range(n_ranks):
                before = [(number - 1) * n_ranks + (sender - 1) % n_ranks] if number else []
                found.append((sender, (sender + 1) % n_ranks, size / n_ranks, before))
        return found
    if algorithm != "tree":
        raise ValueError(f"algorithm should be ring or tree; it is {algorithm}")
    found, last = [], [[] for _ in range(n_ranks)]  # last: the transfers into each rank so far
    distances = [1 << bit for bit in range((n_ranks - 1).bit_length())]
    for distance in distances:
        for receiver in range(0, n_ranks - distance, 2 * distance):
            sender = receiver + distance
            found.append((sender, receiver, size, list(last[sender])))
            last[receiver].append(len(found) - 1)
    for distance in reversed(distances):
        for sender in range(0, n_ranks - distance, 2 * distance):
            found.append((sender, sender + distance, size, list(last[sender])))
            last[sender + distance].append(len(found) - 1)
    return found


def simulate(
    algorithm: str, size: float, arrivals: Sequence[float], link: Link, *, cores: int | None = None, seed: int = 0
) -> float:
    """Return the time at which the last machine has the sum.

    Args:
        algorithm: "ring" or "tree".
        size: bytes of the message.
        arrivals: the time at which each machine has its part.
        link: the links, which are all the same but for their jitter.
        cores: the number of transfers that can run at once; any number by default.
        seed: draws the jitter.
    """
    if len(arrivals) == 1:
        return float(arrivals[0])
    random = np.random.default_rng(seed)
    plan = transfers(algorithm, len(arrivals), size)
    speed = link.bandwidth * np.exp(random.normal(0, link.jitter, len(arrivals)) if link.jitter else np.zeros(1))
    followers: list[list[int]] = [[] for _ in plan]
    waits = [len(before) for *_, before in plan]
    for number, (*_, before) in enumerate(plan):
        for each in before:
            followers[each].append(number)
    ready = [max(arrivals[sender], arrivals[receiver]) for sender, receiver, *_ in plan]
    send_free, receive_free = [0.0] * len(arrivals), [0.0] * len(arrivals)
    free_cores = [0.0] * (cores or 0)
    queue = [(ready[number], number) for number, count in enumerate(waits) if not count]
    heapq.heapify(queue)
    finish = 0.0
    while queue:
        at, number = heapq.heappop(queue)
        sender, receiver, n_bytes, _ = plan[number]
        start = max(at, send_free[sender], receive_free[receiver], min(free_cores, default=0.0))
        if start > at:  # something is in use; other transfers may come first
            heapq.heappush(queue, (start, number))
            continue
        end = start + link.latency + n_bytes / speed[sender % len(speed)]
        send_free[sender] = receive_free[receiver] = end
        if free_cores:
            heapq.heapreplace(free_cores, end)
        finish = max(finish, end)
        for each in followers[number]:
            waits[each] -= 1
            ready[each] = max(ready[each], end)
            if not waits[each]:
                heapq.heappush(queue, (ready[each], each))
    return finish


def closed_form(algorithm: str, size: float, n_ranks: int, link: Link) -> float:
    """Return the time of an all-reduce in which all machines arrive at once and all links are the same."""
    if algorithm == "ring":
        return 2 * (n_ranks - 1) * (link.latency + size / n_ranks / link.bandwidth)
    return 2 * (n_ranks - 1).bit_length() * (link.latency + size / link.bandwidth)


def measured(n_ranks: int, sizes: Sequence[int], rounds: int = 30) -> list[float]:
    """Return the lower quartile of the seconds of gloo's all_reduce of messages of so many bytes, on this machine."""
    import torch.multiprocessing as processes

    with tempfile.TemporaryDirectory() as folder:
        context = processes.get_context("spawn")
        queue = context.SimpleQueue()
        ranks = [
            context.Process(target=_reduce, args=(rank, n_ranks, folder, list(sizes), rounds, queue))
            for rank in range(n_ranks)
        ]
        for each in ranks:
            each.start()
        result: list[float] = queue.get()
        for each in ranks:
            each.join()
    return result


def _reduce(rank: int, n_ranks: int, folder: str, sizes: list[int], rounds: int, queue: Any) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=n_ranks)
    quartiles = []
    for size in sizes:
        message = torch.ones(max(1, size // 4))
        times = []
        for _ in range(rounds):
            dist.barrier()
            start = time.perf_counter()
            dist.all_reduce(message)
            times.append(time.perf_counter() - start)
            message.fill_(1.0)
        quartiles.append(statistics.quantiles(times[2:], n=4)[0])
    if rank == 0:
        queue.put(quartiles)
    dist.barrier()
    dist.destroy_process_group()


def calibrated(sizes: Sequence[int], seconds: Sequence[float]) -> Link:
    """Return the link with which a ring of two ranks takes these seconds, from the shortest and the longest message."""
    short, long = (min(range(len(sizes)), key=lambda n: sign * sizes[n]) for sign in (1, -1))
    # Two ranks: 2 (latency + size / 2 / bandwidth), and both transfers of a round run at once.
    bandwidth = (sizes[long] - sizes[short]) / max(seconds[long] - seconds[short], 1e-9)
    return Link(max(seconds[short] / 2 - sizes[short] / 2 / bandwidth, 0.0), bandwidth)


def n_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))
