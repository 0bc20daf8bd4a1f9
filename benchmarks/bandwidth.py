"""The machine's memory bandwidth, and the bytes that an epoch of each model has to move at least.

    python benchmarks/bandwidth.py [--threads 1,2]

`triad` measures the bandwidth as STREAM does (McCalpin 1995): a = b + s c over arrays far larger than the caches, and
over arrays that fit into them. `traffic` has the floors, which speed.py shows beside the tokens per second that were
measured and steps.py beside the time of a step. All numbers are float32 (4 bytes).

The floors count what one epoch must move in D / B steps (batches of B documents), for N non-zero counts, V words, K
topics, an encoder of H hidden units, word vectors of L dimensions, and u different words in a batch:

counts          8 N bytes: the word (int32) and the count of each non-zero, read once.
optimiser       A matrix of P parameters costs 8 P numbers a step: its gradient is written; Adam reads the gradient, and
                reads and writes the parameters and two moments.
encoder         The optimiser for V x H, and the rows of u words are read.
topics          The optimiser for V x K. The softmax over the words reads V x K weights and writes as many
                probabilities, and the backward pass reads them again. The rows of u words are read in the forward and
                the backward pass.
embedded topics Probabilities and their gradient are written and read, 4 V K. Word vectors are read in both passes and
                updated, 10 V L.
product decoder The optimiser for V x K, whose weights are read in both passes, 10 V K. The B x V exponentials are
                written once and read by two products, 3 B V.
critic (BATM)   The optimiser for its V x C, which the step of the generator reads in both passes, 10 V C, and u rows.
counting (Loom) Once a pass, not once a step: counts of documents are read and written, 2 D K; the counts of words are
                read, the topics are written and read, and new counts of words are written and read, 5 V K.

This is the floor: every array that a step needs is moved once per use, and whatever is needed twice within a batch
stays in a cache. The second figure, "without a cache", replaces the u rows by one row for each non-zero: 2 N H for the
encoder (a row of weights forward, a row of gradients backward), 3 N K for a mixture (the topics of a word forward and
backward, the gradient's row of theta), and for counting 3 N K (the topics of a word are read, its new counts read and
written). A kernel whose matrices fit into a cache can run faster than memory would allow by the second figure. What
exceeds the memory's bandwidth then came from a cache. It is no floor: a row that many documents of a batch need is read
from memory once.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

F = 4  # bytes of a float32
PLACES = {"memory": 1 << 26, "cache": 1 << 19}  # elements of each array: 256 MiB, and 2 MiB, which caches hold

MODELS = ("GSM", "ETM", "ProdLDA", "NVDM", "WLDA", "GMNTM", "DirichletVAE", "BATM", "Loom")


@dataclass(frozen=True)
class Work:
    """The sizes on which the traffic of an epoch depends."""

    n_docs: int
    n_words: int
    n_topics: int
    non_zeros: int
    tokens: float
    batch_size: int
    distinct: float  # different words in a batch
    hidden_size: int = 128
    embedding_size: int = 300
    critic_size: int = 128

    @property
    def steps(self) -> float:
        return self.n_docs / self.batch_size


class Traffic(NamedTuple):
    """Bytes that a token costs in one epoch."""

    floor: float
    without_cache: float


def distinct_words(indices: np.ndarray, indptr: np.ndarray, batch_size: int) -> float:
    """Return the mean number of different words in a batch of random documents of a CSR matrix."""
    random, n_docs = np.random.default_rng(0), len(indptr) - 1
    some = [random.choice(n_docs, batch_size, replace=False) for _ in range(8)]
    words = (np.concatenate([indices[indptr[d] : indptr[d + 1]] for d in docs]) for docs in some)
    return float(np.mean([len(np.unique(each)) for each in words]))


def triad(
    threads: int,
    elements: int = PLACES["memory"],
    rounds: int = 10,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Return bytes per second of a = b + s c, as STREAM counts them: three arrays, the fastest of all rounds."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        a, b, c = (torch.full((elements,), float(number)) for number in range(3))
        torch.add(b, c, alpha=3.0, out=a)
        repeats = max(1, (1 << 24) // elements)
        best = float("inf")
        for _ in range(rounds):
            start = clock()
            for _ in range(repeats):
                torch.add(b, c, alpha=3.0, out=a)
            best = min(best, (clock() - start) / repeats)
    finally:
        torch.set_num_threads(before)
    return 3 * F * elements / best


def dense_rate(size: int = 1024, rounds: int = 30) -> float:
    """Return operations per second of processor time in products of matrices."""
    import torch

    a, out, best = torch.ones(size, size), torch.empty(size, size), float("inf")
    for _ in range(rounds):
        start = time.process_time()
        torch.mm(a, a, out=out)
        best = min(best, time.process_time() - start)
    return 2 * size**3 / best


def dense(model: str, work: Work) -> float:
    """Return the operations of the dense products in a step, forward and twice backward."""
    b, v, k, h = work.batch_size, work.n_words, work.n_topics, work.hidden_size
    done = b * (h**2 + 2 * h * k)
    if model in ("ProdLDA", "NVDM"):
        done += b * v * k
    if model == "ETM":
        done += v * k * work.embedding_size
    return 6.0 * done


def traffic(model: str, work: Work) -> Traffic:
    """Return the bytes that one token costs in an epoch of a model.

    Args:
        model: the name of a model, or Loom for a pass of its counting stage; its first stage is that of GSM.
        work: the sizes.

    Raises:
        KeyError: there is no formula for this model.
    """
    n, v, k = work.non_zeros, work.n_words, work.n_topics
    if model == "Loom":
        fixed, rows, gathered = F * (2 * work.n_docs * k + 5 * v * k), 0.0, 3 * F * n * k
    else:
        h, c, dims = work.hidden_size, work.critic_size, work.embedding_size
        product = 10 * v * k + 3 * work.batch_size * v
        own = {"ETM": 4 * v * k + 10 * v * dims, "ProdLDA": product, "NVDM": product, "BATM": 11 * v * k + 10 * v * c}
        if model not in MODELS:
            raise KeyError(model)
        per_step = own.get(model, 11 * v * k)
        critic = c if model == "BATM" else 0
        per_distinct, per_non_zero = 2 * k + critic, 3 * k + 2 * critic
        fixed = F * work.steps * (8 * v * h + per_step)
        rows = F * work.steps * work.distinct * (h + per_distinct)
        gathered = F * n * (2 * h + per_non_zero)
    counts = 2 * F * n
    return Traffic((counts + fixed + rows) / work.tokens, (counts + fixed + gathered) / work.tokens)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--threads", default="1,2", help="numbers of threads, separated by commas")
    options = parser.parse_args()
    for threads in map(int, options.threads.split(",")):
        outside, inside = (triad(threads, elements) for elements in PLACES.values())
        print(f"{threads} threads: memory {outside / 1e9:.1f} GB/s, cache {inside / 1e9:.1f} GB/s")


if __name__ == "__main__":
    main()
