"""Measure training on 10^4, 10^5 and 10^6 documents: cost per document, peak memory, order of reading, streams.

    python benchmarks/large.py [PART ...] [--table]

The parts are `cost`, `order`, `counts` and `stream`; all of them by default. Results are lines of results/large.jsonl,
and `--table` writes benchmarks/large.md from them. The corpora are synthetic, with about 60 words a document, V=50,000
and frequencies of words as in a text; they are made once and take 1.1 GB of results/large. Everything that is measured
runs in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

import shared
import topicloom as tl
from jobs import markdown, spread
from topicloom.models.loom import counting, documents
from topicloom.nn.batch import Batch
from topicloom.training import order
from topicloom.training.batches import BatchReader

FOLDER = Path(__file__).parent / "results" / "large"
RESULTS = FOLDER.with_suffix(".jsonl")
PAGE = Path(__file__).with_suffix(".md")
SIZES = (10_000, 100_000, 1_000_000)
MODELS = ("GSM", "ETM", "WLDA", "Loom")
N_TOPICS, N_WORDS = 200, 50_000
EPOCHS, STEPS = 6, 20  # of a shortened fit: so many batches of each epoch
ROUNDS = 2
ORDERS = {"all documents": 0, "blocks": 8, "blocks, small buffer": 32, "blocks, sorted by class": 8}
COUNTS = ("32-bit array", "16-bit array", "32 largest", "16 largest", "8 largest")


def memory(name: str) -> float:
    """Return a figure of this process's memory in GiB, such as VmHWM, the peak of what is in memory."""
    found = re.search(rf"{name}:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(found[1]) / 2**20 if found else float("nan")


def corpora() -> None:
    """Make the corpora: the first documents of the largest one are the smaller ones."""
    if (FOLDER / str(SIZES[-1]) / "corpus.json").exists():
        return
    random = np.random.default_rng(0)
    frequencies = 1 / (np.arange(N_WORDS) + 10.0)
    shapes = np.maximum(0.1 * N_WORDS * frequencies / frequencies.sum(), 1e-3)
    topics = random.gamma(shapes, size=(N_TOPICS, N_WORDS)) + 1e-12
    topics /= topics.sum(1, keepdims=True)
    corpus = tl.datasets.synthetic_lda(SIZES[-1], topics=topics, alpha=0.05, doc_length=63).corpus
    for size in SIZES:
        (corpus if size == SIZES[-1] else corpus[:size]).save(FOLDER / str(size), overwrite=True)


class Timed(tl.Callback):
    """Notes wall-clock and processor time of each step, by the number of topics at that time."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, float, float]] = []
        self.began = time.perf_counter()
        self.setup = self.peak = 0.0
        self.last = (0.0, 0.0)

    def on_start(self, model: Any, n_epochs: int, n_batches: int) -> None:
        self.setup, self.batches = time.perf_counter() - self.began, n_batches
        self.last = time.perf_counter(), time.process_time()

    def on_step(self, state: Any) -> None:
        now, counts = (time.perf_counter(), time.process_time()), getattr(state.network, "counting", None)
        stage = "counting" if counts is not None and counts.started else "training"
        if counts is not None and stage == "counting" and counts.needs_encoder:
            stage = "first pass"
        if stage == "training" and not getattr(state.network, "has_spare_topics", True):
            stage = "final topics"
        self.steps.append((stage, now[0] - self.last[0], now[1] - self.last[1]))
        self.last = now

    def on_state(self, state: Any) -> None:
        self.last = time.perf_counter(), time.process_time()


def measure_cost(model: str, size: int) -> dict[str, Any]:
    """Fit a model with epochs that are shortened to a few batches; all else is done with all documents."""
    whole, passes = BatchReader.ordered, [0.0]

    def shortened(self: BatchReader, drawn: torch.Tensor, skip: int = 0) -> Iterator[Batch]:
        return islice(whole(self, drawn, skip), STEPS)

    def timed_pass(self: BatchReader) -> Iterator[Batch]:
        began = time.perf_counter()
        yield from self._batches(self.rows)
        passes[0] += time.perf_counter() - began

    BatchReader.ordered, BatchReader.__iter__ = shortened, timed_pass  # type: ignore[method-assign]
    began = time.perf_counter()
    corpus = tl.Corpus.load(FOLDER / str(size))
    loading, watch = time.perf_counter() - began, Timed()
    fitted = getattr(tl, model)(N_TOPICS, epochs=EPOCHS, random_state=0).fit(corpus, callbacks=[watch])
    fitting = time.perf_counter() - watch.began
    documents_of_step = size / watch.batches
    row: dict[str, Any] = {
        "loading": loading,
        "setup": watch.setup,
        "passes": passes[0],
        "rest": fitting - watch.setup - passes[0] - sum(step[1] for step in watch.steps),
        "batch": documents_of_step,
        "training_peak": memory("VmHWM"),
    }
    for stage in {step[0] for step in watch.steps}:
        taken = [step[1:] for step in watch.steps if step[0] == stage][3:]
        row[stage] = {"wall": median(wall for wall, _ in taken), "cpu": median(cpu for _, cpu in taken)}
        row[stage] = {name: seconds / documents_of_step for name, seconds in row[stage].items()}
    began = time.perf_counter()
    theta = fitted.transform(corpus)
    return row | {"transform": time.perf_counter() - began, "transform_peak": memory("VmHWM"), "theta": theta.nbytes}


def measure_order(model: str, kind: str, seed: int, folder: Path) -> dict[str, Any]:
    """Fit 20 Newsgroups, with buffers and blocks that are as small a part of it as those of a large corpus are."""
    data = shared.load(folder, "20ng")
    if "sorted" in kind:
        by_class = np.argsort(data["train_labels"], kind="stable")
        data = data | {"train": data["train"][by_class], "train_labels": data["train_labels"][by_class]}
    if parts := ORDERS[kind]:
        order.LARGE, order.BUFFER = 0, data["train"].nnz // parts
        order.BLOCK = order.BUFFER // 128
    fitted, seconds = shared.fit(getattr(tl, model)(50, random_state=seed), data)
    return shared.evaluate(folder, data, fitted) | {"loss": fitted.history_[-1]["loss"], "seconds": seconds}


def measure_counts(kind: str, corpus: str, n_topics: int, seed: int, folder: Path) -> dict[str, Any]:
    """Fit Loom with another form of its counts of documents."""
    made: dict[str, Callable[..., Any]] = {
        "32-bit array": lambda n_docs, n_topics, device: torch.zeros(n_docs, n_topics),
        "16-bit array": lambda n_docs, n_topics, device: Half(torch.zeros(n_docs, n_topics, dtype=torch.half)),
    }
    if kind not in made:
        documents.KEPT = int(kind.split()[0])
    counting.zero_counts = made.get(kind, documents.LargestCounts.zeros)  # type: ignore[assignment]
    data = shared.load(folder, corpus)
    fitted, seconds = shared.fit(tl.Loom(n_topics, random_state=seed), data)
    counted = [row["seconds"] for row in fitted.history_[-10:]]
    return shared.evaluate(folder, data, fitted) | {"seconds": seconds, "pass": median(counted)}


class Half(documents.LargestCounts):
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
    fitted, seconds, in_memory = getattr(tl, model)(50, random_state=0), [], []
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


MEASURES = {"cost": measure_cost, "order": measure_order, "counts": measure_counts, "stream": measure_stream}


def all_jobs(folder: Path) -> list[list[Any]]:
    """Return the arguments of all measurements; those that are compared follow each other."""
    jobs: list[list[Any]] = [["cost", model, size] for model in MODELS for _ in range(ROUNDS) for size in SIZES]
    jobs += [["order", model, kind, seed] for model in ("GSM", "Loom") for seed in range(3) for kind in ORDERS]
    cases = (("20ng", 50, COUNTS), ("20ng", 200, COUNTS[::2]), ("bbc-news", 20, COUNTS[::2]))
    jobs += [["counts", kind, *case, seed] for *case, kinds in cases for seed in range(3) for kind in kinds]
    jobs += [["stream", "GSM", 10_000], ["stream", "Loom", 10_000]]
    return [[*job, *([str(folder)] if job[0] in ("order", "counts") else [])] for job in jobs]


def page(rows: list[dict[str, Any]]) -> str:
    """Return the page."""
    of = {part: [row for row in rows if row["job"][0] == part] for part in MEASURES}
    parts = [_HEAD]

    def best(model: str, size: int, read: Callable[[dict[str, Any]], float]) -> float:
        found = [read(row) for row in of["cost"] if row["job"][1:3] == [model, size]]
        return median(found) if found else float("nan")

    lines, peaks = [], []
    for model in MODELS:
        stages = ("training", "first pass", "counting") if model == "Loom" else ("training", "final topics")
        for stage in stages:
            cells = [[best(model, n, lambda row: row[stage][kind]) for n in SIZES] for kind in ("wall", "cpu")]  # noqa: B023
            wall = [f"{1e6 * value:.0f}" for value in cells[0]]
            lines.append([model, stage, *wall, *(f"{each[-1] / each[0]:.2f}" for each in cells)])
        for size in SIZES:
            names = ("loading", "setup", "passes", "rest", "transform", "training_peak", "transform_peak")
            values = [best(model, size, lambda row: row[name]) for name in names]  # noqa: B023
            peaks.append([model, f"{size:,}", *(f"{value:.2f}" for value in values)])
    header = ["model", "part of the fit", *(f"{n:,}" for n in SIZES), "10^6 / 10^4, wall", "10^6 / 10^4, processor"]
    parts += [_COST, markdown(header, lines)]
    header = ["model", "documents", "loading", "setting up", "passes", "rest", "transform", "GiB", "GiB with transform"]
    parts += [_PEAK, markdown(header, peaks)]
    names = ("loss", "ppl", "npmi", "npmi6", "td", "purity", "nmi", "acc")
    digits = (2, 0, 3, 3, 3, 3, 3, 3)
    lines = [
        [model, kind, *(spread(_where(of["order"], 1, model, kind), *each) for each in zip(names, digits, strict=True))]
        for model in ("GSM", "Loom")
        for kind in ORDERS
    ]
    parts += [_ORDER, markdown(["model", "order", *names], lines)]
    names, digits = ("pass", "npmi", "npmi6", "td", "purity", "nmi", "acc", "ppl"), (2, 3, 3, 3, 3, 3, 3, 0)
    lines = [
        [corpus, str(k), kind, *(spread(found, *each) for each in zip(names, digits, strict=True))]
        for corpus, k in (("20ng", 50), ("20ng", 200), ("bbc-news", 20))
        for kind in COUNTS
        if (found := _where(of["counts"], 1, kind, corpus, k))
    ]
    parts += [_COUNTS, markdown(["corpus", "K", "counts", *names], lines)]
    names = ("chunks", "first", "last", "memory_first", "memory_last", "peak")
    lines = [[row["job"][1], *(f"{row[name]:.4g}" for name in names)] for row in of["stream"]]
    header = [
        "model",
        "chunks",
        "s, second tenth",
        "s, last tenth",
        "GiB, second tenth",
        "GiB, last tenth",
        "peak, GiB",
    ]
    return "\n".join([*parts, _STREAM, markdown(header, lines)])


def _where(rows: list[dict[str, Any]], place: int, *values: Any) -> list[dict[str, Any]]:
    return [row for row in rows if row["job"][place : place + len(values)] == list(values)]


_HEAD = """# Large corpora

`make bench-large` makes a synthetic corpus of 10^6 documents with about 60 words, V=50,000, and frequencies of words as
in a text, and writes this page. Its counts have 460 MiB; they are memory-mapped. The corpora of 10^4 and 10^5 documents
are the first ones of the same corpus. All models have K=200 and otherwise their defaults, on one core.
"""
_COST = """## Cost per document

Microseconds of a step per document, medians of two fits. The whole fits would take days, so that the epochs are
shortened to 20 batches, which are drawn from all documents as always; everything else is done with all documents. GSM,
ETM and WLDA begin with 250 topics and end with 200; Loom begins with 250, and its passes count with 200. With its
default, the batch size is 250 for 10^4 documents and 256 for more. (It is smaller for fewer than 7,680 documents.)
"""
_PEAK = """## Setting up, passes and memory

Seconds of what is done with all documents: loading with its checks, setting up before the first step, the passes
over all documents by which spare topics are chosen, the rest of the fit without its steps (measures after the epochs,
coherence of spare topics), and `transform`; and the peak memory of the process, mapped counts and all libraries
included. `transform` returns an array of 0.75 GiB for 10^6 documents.
"""
_ORDER = """## Order of reading

Corpora of 33 million non-zeros or more are read by blocks (see [docs/large.md](../docs/large.md)). Here 20 Newsgroups
is read so, K=50, three seeds: the buffer has an eighth of the documents, as with 67 million non-zeros, or a
thirty-second, as with 270 million, and a block is 1/128 of the buffer. In the last line, the documents are sorted by
class, which is the worst order in a file.
"""
_COUNTS = """## Loom's counts of documents

The counts of topics in documents as an array of 32-bit or 16-bit numbers, or with the largest counts of each document
alone, three seeds. `pass` is the time of a counting pass in seconds. The package uses an array of 32-bit numbers up to
67 million counts (documents times topics), and the 32 largest counts above. For 10^6 documents and 250 topics, the
array has 1,000 MB, with 16 bits 500 MB, and the 32 largest counts have 128 MB.
"""
_STREAM = """## Streams

`partial_fit` with 10^6 documents in chunks of 10,000, K=50: seconds for a chunk, and the memory of the process without
mapped files, in the second tenth of the stream and in the last one.
"""


def main() -> None:
    parser = shared.parser(__doc__)
    parser.add_argument("parts", nargs="*", help="cost, order, counts or stream; all by default")
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
    for job in [] if options.table else all_jobs(options.shared):
        if job[0] not in (options.parts or MEASURES):
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
