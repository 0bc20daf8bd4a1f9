"""Measure peak memory and time of one epoch on a million synthetic documents.

    python benchmarks/memory.py [--documents 1000000] [--words 20000]

The figures show that no dense matrix of documents by words is made. A child process trains on a saved, memory-mapped
corpus, so that making the corpus is not measured.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import topicloom as tl


def train(directory: str) -> None:
    """Train on the corpus in a directory for one epoch, and print time and memory."""
    corpus = tl.Corpus.load(directory)
    start = time.perf_counter()
    model = tl.GSM(50, epochs=1, batch_size=1024, random_state=0, verbose=1).fit(corpus)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # KiB on Linux
    theta = model.transform(corpus)
    transform_peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{corpus!r}, {corpus.counts.nnz:,} non-zeros")
    print(f"one epoch of GSM, K=50: {seconds:.0f} s, loss {model.history_[-1]['loss']:.1f}, peak memory {peak:.2f} GiB")
    print(f"peak memory after transform to {theta.nbytes / 2**30:.2f} GiB of theta: {transform_peak:.2f} GiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=1_000_000, help="number of documents")
    parser.add_argument("--words", type=int, default=20_000, help="size of the vocabulary")
    parser.add_argument("--train", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train:
        return train(options.train)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "corpus"
        drawn = tl.datasets.synthetic_lda(options.documents, 50, options.words, doc_length=60, random_state=0)
        drawn.corpus.save(path)
        subprocess.run([sys.executable, __file__, "--train", str(path)], check=True)


if __name__ == "__main__":
    main()
