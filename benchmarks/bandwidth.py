"""The machine's memory bandwidth, and the bytes that an epoch of each model has to move at least.

    python benchmarks/bandwidth.py [--threads 1,2]

`triad` measures the bandwidth as STREAM does (McCalpin 1995): a = b + s c over arrays far larger than the caches, and
over arrays that fit into them. `traffic` has the floors, which speed.py shows beside the tokens per second that were
measured. All numbers are float32 (4 bytes).

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
counting (Loom) Once a pass, not once a step: counts of documents are read and written, 2 D K; the counts of words are
                read, the topics are written and read, and new counts of words are written and read, 5 V K.

This is the floor: every array that a step needs is moved once per use, and whatever is needed twice within a batch
stays in a cache. The second figure, "without a cache", replaces the u rows by one row for each non-zero: 2 N H for the
encoder (a row of weights forward, a row of gradients backward), 3 N K for a mixture (the topics of a word forward and
backward, the gradient's row of theta), and for counting 3 N K (the topics of a word are read, its new counts read and
written). A kernel whose matrices fit into a cache can run faster than memory would allow by the second figure. What
exceeds the memory's bandwidth then came from a cache.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import NamedTuple

F = 4  # bytes of a float32
PLACES = {"memory": 1 << 26, "cache": 1 << 19}  # elements of each array: 256 MiB, and 2 MiB, which caches hold


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
    n_dimensions: int = 300

    @property
    def steps(self) -> float:
        return self.n_docs / self.batch_size


class Traffic(NamedTuple):
    """Bytes that a token costs in one epoch."""

    floor: float
    without_cache: float


def triad(threads: int, elements: int = PLACES["memory"], rounds: int = 10) -> float:
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
            start = time.perf_counter()
            for _ in range(repeats):
                torch.add(b, c, alpha=3.0, out=a)
            best = min(best, (time.perf_counter() - start) / repeats)
    finally:
        torch.set_num_threads(before)
    return 3 * F * elements / best


def traffic(model: str, work: Work) -> Traffic:
    """Return the bytes that one token costs in an epoch of a model.

    Args:
        model: GSM, WLDA, ETM, ProdLDA, or Loom for a pass of its counting stage.
        work: the sizes.

    Raises:
        KeyError: there is no formula for this model.
    """
    n, v, k = work.non_zeros, work.n_words, work.n_topics
    if model == "Loom":
        fixed, rows, gathered = F * (2 * work.n_docs * k + 5 * v * k), 0.0, 3 * F * n * k
    else:
        h, dims = work.hidden_size, work.n_dimensions
        decoders = {
            "GSM": (11 * v * k, 2 * k, 3 * k),
            "WLDA": (11 * v * k, 2 * k, 3 * k),
            "ETM": (4 * v * k + 10 * v * dims, 2 * k, 3 * k),
            "ProdLDA": (10 * v * k + 3 * work.batch_size * v, 2 * k, 3 * k),
        }
        per_step, per_distinct, per_non_zero = decoders[model]
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
