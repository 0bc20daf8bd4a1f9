"""Measure the exact and the approximate search for the nearest documents: benchmarks/neighbours.md.

    python benchmarks/neighbours.py [VECTORS.npy]

VECTORS.npy has a million rows of float16 or float32. Without it, vectors are drawn around a thousand directions. Each
search runs in a process of its own. Its recall is the share of the 20 nearest documents that it finds, for 2,000
documents whose neighbours are also found by brute force.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from topicloom.embeddings.neighbours import VectorIndex

TARGET = Path(__file__).with_suffix(".md")
RUNS = ((100_000, "exact"), (100_000, "approximate"), (1_000_000, "approximate"))
N_NEIGHBOURS, N_CHECKED, BLOCK = 20, 2000, 50_000


def main() -> None:
    if len(sys.argv) == 4:
        print(json.dumps(measured(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])))
        return
    with tempfile.TemporaryDirectory() as folder:
        given = Path(sys.argv[1]) if len(sys.argv) > 1 else drawn(Path(folder) / "vectors.npy", RUNS[-1][0])
        size = np.load(given, mmap_mode="r").shape[1]
        rows = []
        for n, method in RUNS:
            command = [sys.executable, __file__, str(given), str(n), method]
            found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
            rows.append(
                f"| {n:,} | {method} | {found['recall']:.3f} | {found['seconds']:.0f} | {found['processor']:.0f} "
                f"| {found['megabytes']:,.0f} | {found['load']:.1f} |"
            )
            print(rows[-1], flush=True)
    lines = [
        "# The search for the nearest documents",
        "",
        f"`make bench-neighbours` with {'a file of' if len(sys.argv) > 1 else 'drawn'} vectors of {size} numbers: the "
        f"{N_NEIGHBOURS} neighbours of all documents, with {torch.get_num_threads()} threads. Recall is the share of "
        f"the true neighbours of {N_CHECKED:,} documents that are found. MB is memory beyond that of the vectors. "
        "Load is the mean number of processes that wanted a processor in the minute before the end.",
        "",
        "| documents | method | recall | seconds | processor seconds | MB | load |",
        "|---|---|---|---|---|---|---|",
        *rows,
    ]
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")


def drawn(path: Path, n: int, size: int = 256) -> Path:
    random = np.random.default_rng(0)
    centres = random.standard_normal((1000, size), dtype=np.float32)
    mixing = random.standard_normal((24, size), dtype=np.float32)  # differences in few directions, as of sentences
    vectors = np.lib.format.open_memmap(path, "w+", np.float16, (n, size))
    for start in range(0, n, BLOCK):
        m = min(BLOCK, n - start)
        near = random.standard_normal((m, 24), dtype=np.float32) @ mixing / 5
        vectors[start : start + m] = centres[random.integers(1000, size=m)] + near
    return path


def measured(path: Path, n: int, method: str) -> dict[str, float]:
    vectors = np.array(np.load(path, mmap_mode="r")[:n])
    VectorIndex.of(vectors[:3000], method).neighbours(2)  # what is loaded at the first use is not counted
    before, began, processor = now(), time.perf_counter(), sum(os.times()[:2])
    ids, _ = VectorIndex.of(vectors, method).neighbours(N_NEIGHBOURS)
    seconds, used = time.perf_counter() - began, sum(os.times()[:2]) - processor
    megabytes, load = peak() - before, os.getloadavg()[0]
    rows = np.random.default_rng(1).choice(n, N_CHECKED, replace=False)
    true = by_brute_force(vectors, rows)
    recall = float(np.mean([len(set(ids[row].tolist()) & set(t)) / len(t) for row, t in zip(rows, true, strict=True)]))
    return {"recall": recall, "seconds": seconds, "processor": used, "megabytes": megabytes, "load": load}


def by_brute_force(vectors: np.ndarray, rows: np.ndarray) -> list[list[int]]:
    queries, best, scores = units(vectors[rows]), np.zeros((len(rows), 0), int), np.zeros((len(rows), 0), np.float32)
    for start in range(0, len(vectors), BLOCK):
        products = queries @ units(vectors[start : start + BLOCK]).T
        own = (rows >= start) & (rows < start + BLOCK)
        products[own, rows[own] - start] = -2
        some = np.argpartition(-products, N_NEIGHBOURS, axis=1)[:, :N_NEIGHBOURS]
        best = np.concatenate([best, some + start], axis=1)
        scores = np.concatenate([scores, np.take_along_axis(products, some, 1)], axis=1)
        order = np.argsort(-scores, axis=1)[:, :N_NEIGHBOURS]
        best, scores = np.take_along_axis(best, order, 1), np.take_along_axis(scores, order, 1)
    return best.tolist()


def units(rows: np.ndarray) -> np.ndarray:
    rows = rows.astype(np.float32)
    return rows / np.maximum(np.linalg.norm(rows, axis=1), 1e-9)[:, None]


def now() -> float:
    """The memory at present, in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def peak() -> float:
    """The most memory so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


if __name__ == "__main__":
    main()
