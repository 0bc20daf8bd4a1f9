"""Measure training on 10^4, 10^5 and 10^6 documents: cost per document, peak memory, order of reading, streams.

    python benchmarks/large.py [PART ...] [--table]

The parts are `cost`, `cap`, `read`, `order`, `counts` and `stream`; all of them by default. Results are lines of
results/large.jsonl, and a run continues where the last one ended; `--table` only writes benchmarks/large.md. The
corpora are synthetic, with about 60 words a document, V=50,000 and frequencies of words as in a text; they are made
once and take 3 GB of results/large.
Everything that is measured runs in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from scipy import sparse

import shared
import topicloom as tl
from large_page import COUNTS, MODELS, ORDERS, SIZES, page
from topicloom.models.loom import collapsed
from topicloom.nn.sparse import Batch
from topicloom.text.strings import release
from topicloom.training import batches
from topicloom.training.batches import BatchReader

FOLDER = Path(__file__).parent / "results" / "large"
RESULTS = FOLDER.with_suffix(".jsonl")
PAGE = Path(__file__).with_suffix(".md")
BEYOND, CAP = 5_000_000, 2  # documents whose counts have more than so many GiB
N_TOPICS, N_WORDS = 200, 50_000
EPOCHS, STEPS = 4, 16  # of a shortened fit: so many batches of each epoch
LOOM = {"epochs": 10, "pretrain_share": 0.2, "sample_share": 0.6}  # 1, 2 and 2 or 3 epochs of its three stages
COUNTED = 2048  # documents of a batch of Loom after pretraining
ORDER_EPOCHS = 20
ROUNDS = 2  # of the smallest and the largest corpus


def memory(name: str) -> float:
    """Return a figure of this process's memory in GiB, such as VmHWM, the peak of what is in memory."""
    found = re.search(rf"{name}:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(found[1]) / 2**20 if found else float("nan")


def corpora() -> None:
    """Make the corpora: the first documents of the largest one are the smaller ones."""
    if (FOLDER / str(BEYOND) / "corpus.json").exists():
        return
    random = np.random.default_rng(0)
    frequencies = 1 / (np.arange(N_WORDS) + 10.0)
    shapes = np.maximum(0.1 * N_WORDS * frequencies / frequencies.sum(), 1e-3)
    topics = random.gamma(shapes, size=(N_TOPICS, N_WORDS)) + 1e-12
    topics /= topics.sum(1, keepdims=True)
    corpus = tl.datasets.synthetic_lda(SIZES[-1], topics=topics, alpha=0.05, doc_length=63).corpus
    for size in SIZES:
        (corpus if size == SIZES[-1] else corpus[:size]).save(FOLDER / str(size), overwrite=True)
    repeated = sparse.vstack([corpus.counts] * (BEYOND // SIZES[-1]), format="csr")
    fields = tl.corpus.fields.Fields.of(BEYOND)
    tl.Corpus(repeated, corpus.vocabulary, fields).save(FOLDER / str(BEYOND), overwrite=True)


class Timed(tl.Callback):
    """Notes wall-clock and processor time of each step, by the number of topics at that time."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, float, float]] = []
        self.began = time.process_time()
        self.setup = self.peak = 0.0
        self.last = (0.0, 0.0)

    def on_start(self, model: Any, n_epochs: int, n_batches: int) -> None:
        self.setup, self.batches = time.process_time() - self.began, n_batches
        self.last = time.perf_counter(), time.process_time()

    def on_step(self, state: Any) -> None:
        now, counts = (time.perf_counter(), time.process_time()), getattr(state.network, "counting", None)
        stage = "counting" if counts is not None and counts.started else "training"
        if counts is not None and stage == "counting":
            sampling = counts.current_sampling
            if sampling is not None:
                stage = "sampling" if sampling.passes_done else "first draws"
            elif counts.needs_encoder:
                stage = "first pass"
        if counts is None and not state.network.has_spare_topics:
            stage = "final topics"
        self.steps.append((stage, now[0] - self.last[0], now[1] - self.last[1]))
        self.last = now

    def on_state(self, state: Any) -> None:
        self.last = time.perf_counter(), time.process_time()


def measure_cost(model: str, size: int, transform: bool = True, epochs: int = EPOCHS) -> dict[str, Any]:
    """Fit a model with epochs that are shortened to a few batches; all else is done with all documents.

    Processor time is measured, because other processes may be running; of steps, wall-clock time, too.
    """
    whole, passes = BatchReader.ordered, [0.0]

    def shortened(self: BatchReader, drawn: torch.Tensor, skip: int = 0) -> Iterator[Batch]:
        return islice(whole(self, drawn, skip), STEPS)

    def timed_pass(self: BatchReader) -> Iterator[Batch]:
        began = time.process_time()
        yield from self._batches(self.rows)
        passes[0] += time.process_time() - began

    BatchReader.ordered, BatchReader.__iter__ = shortened, timed_pass  # type: ignore[method-assign]
    began = time.process_time()
    corpus = tl.Corpus.load(FOLDER / str(size))
    loading, watch = time.process_time() - began, Timed()
    settings = {"epochs": epochs} if model != "Loom" else LOOM
    fitted = getattr(tl, model)(N_TOPICS, random_state=0, **settings).fit(corpus, callbacks=[watch])
    fitting = time.process_time() - watch.began
    documents_of_step = size / watch.batches
    row: dict[str, Any] = {
        "loading": loading,
        "setup": watch.setup,
        "passes": passes[0],
        "rest": fitting - watch.setup - passes[0] - sum(step[2] for step in watch.steps),
        "batch": documents_of_step,
        "training_peak": memory("VmHWM"),
    }
    for stage in {step[0] for step in watch.steps}:
        counted = stage not in ("training", "final topics")  # in larger batches, of which a small corpus has few
        n_docs = size / -(-size // COUNTED) if counted else documents_of_step
        taken = [step[1:] for step in watch.steps if step[0] == stage][1 if counted else 3 :]
        row[stage] = {"wall": median(wall for wall, _ in taken), "cpu": median(cpu for _, cpu in taken)}
        row[stage] = {name: seconds / n_docs for name, seconds in row[stage].items()}
    if not transform:
        return row
    began = time.process_time()
    theta = fitted.transform(corpus)
    return row | {"transform": time.process_time() - began, "transform_peak": memory("VmHWM"), "theta": theta.nbytes}


def measure_cap(model: str, size: int) -> dict[str, Any]:
    """Fit a model as in `measure_cost`, on counts with more bytes than the process may allocate."""
    resource.setrlimit(resource.RLIMIT_DATA, (CAP << 30, CAP << 30))
    data = FOLDER / str(size)
    size_of = {name: (data / f"{name}.npy").stat().st_size / 2**30 for name in ("data", "indices")}
    return measure_cost(model, size, transform=False, epochs=2) | {"counts": sum(size_of.values())}


def measure_read(kind: str, size: int, n_batches: int) -> dict[str, Any]:
    """Read batches of documents from files that are not in the page cache."""
    corpus = tl.Corpus.load(FOLDER / str(size))
    reader = BatchReader.of(corpus, 256, torch.device("cpu"))
    batches.LARGE = corpus.counts.nnz if kind == "blocks" else corpus.counts.nnz + 1
    drawn = reader.draw_order(torch.Generator().manual_seed(0))
    release(corpus.counts.data, corpus.counts.indices)
    for name in ("data", "indices"):
        with (FOLDER / str(size) / f"{name}.npy").open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    began = time.perf_counter()
    n_docs = sum(batch.n_docs for batch in islice(reader.ordered(drawn), n_batches))
    return {"documents": n_docs, "per_second": n_docs / (time.perf_counter() - began), "peak": memory("VmHWM")}


def measure_order(model: str, kind: str, seed: int, folder: Path) -> dict[str, Any]:
    """Fit 20 Newsgroups, with buffers and blocks that are as small a part of it as those of a large corpus are."""
    data = shared.load(folder, "20ng")
    if "sorted" in kind:
        by_class = np.argsort(data["train_labels"], kind="stable")
        data = data | {"train": data["train"][by_class], "train_labels": data["train_labels"][by_class]}
    if parts := ORDERS[kind]:
        batches.LARGE, batches.BUFFER = 0, data["train"].nnz // parts
        batches.BLOCK = batches.BUFFER // 512
    settings = {} if model == "Loom" else {"epochs": ORDER_EPOCHS}  # few of Loom's epochs are shortened stages
    fitted, seconds = shared.fit(getattr(tl, model)(50, random_state=seed, **settings), data)
    independent, tops = shared.independent_metrics(folder), fitted.topic_ids(25, relevance=0.6).tolist()
    return {
        "seconds": seconds,
        "loss": next(row["loss"] for row in reversed(fitted.history_) if "loss" in row),
        "npmi6": float(independent.npmi(tops, sparse.csr_matrix(data["train"])).mean()),
        "td6": float(independent.diversity(tops)),
        "ppl": fitted.perplexity(data["test"]),
    }


def measure_counts(kind: str, corpus: str, n_topics: int, seed: int, folder: Path) -> dict[str, Any]:
    """Fit Loom with another form of its counts of documents."""
    made: dict[str, Callable[..., Any]] = {
        "32-bit array": lambda n_docs, n_topics, device: torch.zeros(n_docs, n_topics),
        "16-bit array": lambda n_docs, n_topics, device: Half(torch.zeros(n_docs, n_topics, dtype=torch.half)),
    }
    if kind not in made:
        collapsed.N_KEPT_COUNTS = int(kind.split()[0])
    collapsed.zero_counts = made.get(kind, collapsed.LargestCounts.zeros)  # type: ignore[assignment]
    data = shared.load(folder, corpus)
    fitted, seconds = shared.fit(tl.Loom(n_topics, random_state=seed), data)
    counted = [row["seconds"] for row in fitted.history_[-10:]]
    return shared.evaluate(folder, data, fitted) | {"seconds": seconds, "pass": median(counted)}


class Half(collapsed.LargestCounts):
    """An array of 16-bit numbers."""

    def __init__(self, array: torch.Tensor) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, rows: Any) -> torch.Tensor:
        return self.array[rows].float()

    def __setitem__(self, rows: Any, counts: torch.Tensor) -> None:
        self.array[rows] = counts.half()

    def select(self, which: torch.Tensor) -> Half:
        return Half(self.array[:, which].contiguous())


def measure_stream(model: str, chunk: int) -> dict[str, Any]:
    """Give a model a stream of all documents, in chunks that are read from the mapped corpus."""
    corpus = tl.Corpus.load(FOLDER / str(SIZES[-1]))
    fitted, seconds, in_memory = getattr(tl, model)(50, batch_size=2048, random_state=0), [], []
    for start in range(0, len(corpus), chunk):
        began = time.perf_counter()
        fitted.partial_fit(corpus[start : start + chunk])
        seconds.append(time.perf_counter() - began)
        in_memory.append(memory("RssAnon"))
        if len(seconds) % 10 == 0:
            print(len(seconds), f"{seconds[-1]:.1f} s, {in_memory[-1]:.3f} GiB", file=sys.stderr, flush=True)
    tenth = len(seconds) // 10
    return {
        "chunks": len(seconds),
        "first": median(seconds[tenth : 2 * tenth]),
        "last": median(seconds[-tenth:]),
        "memory_first": max(in_memory[tenth : 2 * tenth]),
        "memory_last": max(in_memory[-tenth:]),
        "peak": memory("VmHWM"),
        "loss": fitted.history_[-1]["loss"],
    }


MEASURES = {
    "cost": measure_cost,
    "cap": measure_cap,
    "read": measure_read,
    "order": measure_order,
    "counts": measure_counts,
    "stream": measure_stream,
}


def all_jobs(folder: Path) -> list[list[Any]]:
    """Return the arguments of all measurements; those that are compared follow each other."""
    sizes = [*SIZES, *(SIZES[::2] * (ROUNDS - 1))]  # in turns, because other processes may be running
    jobs: list[list[Any]] = [["cost", model, size] for model in MODELS for size in sizes]
    jobs += [["cap", "GSM", BEYOND]]
    jobs += [["read", kind, BEYOND, 1000] for _ in range(3) for kind in ("all documents", "blocks")]
    jobs += [["order", model, kind, seed] for model in ("GSM", "Loom") for seed in range(3) for kind in ORDERS]
    cases = (("20ng", 50, COUNTS), ("20ng", 200, (COUNTS[0], *COUNTS[2:4])))
    jobs += [["counts", kind, *case, seed] for *case, kinds in cases for seed in range(3) for kind in kinds]
    jobs += [["stream", "GSM", 10_000]]
    return [[*job, *([str(folder)] if job[0] in ("order", "counts") else [])] for job in jobs]


def main() -> None:
    parser = shared.parser(__doc__)
    parser.add_argument("parts", nargs="*", help="cost, cap, read, order, counts or stream; all by default")
    parser.add_argument("--table", action="store_true", help="only write the page, from the stored results")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        part, *arguments = json.loads(options.job)
        torch.set_num_threads(1)
        arguments = [Path(each) if each == str(options.shared) else each for each in arguments]
        print(json.dumps({"job": [part, *arguments]} | MEASURES[part](*arguments), default=str))  # type: ignore[operator]
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    corpora()
    done = [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []
    finished = Counter(json.dumps(row["job"]) for row in done)
    for job in [] if options.table else all_jobs(options.shared):
        if job[0] not in (options.parts or MEASURES):
            continue
        if finished[json.dumps(job)]:  # by an earlier run; some jobs are done several times
            finished[json.dumps(job)] -= 1
            continue
        command = [sys.executable, __file__, "--shared", str(options.shared), "--job", json.dumps(job)]
        found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        with RESULTS.open("a") as file:
            file.write(found.splitlines()[-1] + "\n")
        done.append(json.loads(found.splitlines()[-1]))
        print(done[-1], flush=True)
    PAGE.write_text(page(done))


if __name__ == "__main__":
    main()
