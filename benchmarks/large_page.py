"""The page benchmarks/large.md, from the results of large.py."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

from jobs import markdown, spread

PARTS = ("cost", "cap", "read", "order", "counts", "stream")
SIZES = (10_000, 100_000, 1_000_000)
MODELS = ("GSM", "ETM", "WLDA", "Loom")
ORDERS = {"all documents": 0, "blocks": 8, "blocks, small buffer": 32, "blocks, sorted by class": 8}  # buffers
COUNTS = ("32-bit array", "16-bit array", "64 largest", "32 largest", "8 largest")


def page(rows: list[dict[str, Any]]) -> str:
    """Return the page."""
    of = {part: [row for row in rows if row["job"][0] == part] for part in PARTS}
    parts = [_HEAD]

    def best(model: str, size: int, read: Callable[[dict[str, Any]], float]) -> float:
        found = [read(row) for row in of["cost"] if row["job"][1:3] == [model, size]]
        return median(found) if found else float("nan")

    lines, peaks = [], []
    for model in MODELS:
        stages = ("training", "first pass", "counting", "sampling") if model == "Loom" else ("training", "final topics")
        for stage in stages:
            cells = [[best(model, n, lambda row: row[stage][kind]) for n in SIZES] for kind in ("cpu", "wall")]  # noqa: B023
            taken = [f"{1e6 * value:.0f}" for value in cells[0]]
            lines.append([model, stage, *taken, *(f"{each[-1] / each[0]:.2f}" for each in cells)])
        for size in SIZES:
            names = ("loading", "setup", "passes", "rest", "transform", "training_peak", "transform_peak")
            values = [best(model, size, lambda row: row[name]) for name in names]  # noqa: B023
            peaks.append([model, f"{size:,}", *(f"{value:.2f}" for value in values)])
    header = ["model", "part of the fit", *(f"{n:,}" for n in SIZES), "10^6 / 10^4", "the same, wall clock"]
    parts += [_COST, markdown(header, lines)]
    header = ["model", "documents", "loading", "setting up", "passes", "rest", "transform", "GiB", "GiB with transform"]
    parts += [_PEAK, markdown(header, peaks)]
    lines = [[row["job"][1], *(f"{row[name]:.2f}" for name in ("counts", "training_peak"))] for row in of["cap"]]
    parts += [_CAP, markdown(["model", "counts, GiB", "peak memory, GiB"], lines)]
    lines = []
    for kind in ("all documents", "blocks"):
        if not (found := _where(of["read"], 1, kind)):
            continue
        lines.append([kind, f"{median(row['per_second'] for row in found):,.0f}"])
        lines[-1].append(f"{max(row['peak'] for row in found):.2f}")
    parts += [_READ, markdown(["order", "documents per second", "peak memory, GiB"], lines)]
    names, digits = ("loss", "ppl", "npmi6", "td6"), (2, 0, 3, 3)
    lines = [
        [model, kind, *(spread(_where(of["order"], 1, model, kind), *each) for each in zip(names, digits, strict=True))]
        for model in ("GSM", "Loom")
        for kind in ORDERS
        if _where(of["order"], 1, model, kind)
    ]
    parts += [_ORDER, markdown(["model", "order", "loss", "perplexity", "NPMI .6", "TD .6"], lines)]
    names, digits = ("npmi", "npmi6", "td", "purity", "nmi", "acc", "ppl"), (3, 3, 3, 3, 3, 3, 0)
    lines = [
        [corpus, str(k), kind, *(spread(found, *each) for each in zip(names, digits, strict=True))]
        for corpus, k in (("20ng", 50), ("20ng", 200))
        for kind in COUNTS
        if (found := _where(of["counts"], 1, kind, corpus, k))
    ]
    parts += [
        _COUNTS,
        markdown(["corpus", "K", "counts", "NPMI", "NPMI .6", "TD", "purity", "NMI", "accuracy", "perplexity"], lines),
    ]
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

Microseconds of processor time of a step per document, medians over steps and then fits. The whole fits would take days,
so that the epochs are shortened to 16 batches, which are drawn from all documents as always; everything else is done
with all documents. GSM, ETM and WLDA begin with 250 topics and end with 200. Loom begins with 250, too, and counts and
samples with 200. Batches have 250 documents if there are 10^4 of them and 256 if there are more, and 2,048 after
Loom's pretraining.
"""
_PEAK = """## Setting up, passes and memory

Seconds of processor time of what is done with all documents: loading with its checks, setting up before the first
step, the passes over all documents by which spare topics are chosen, the rest of the fit without its steps (measures
after the epochs, coherence of spare topics), and `transform`; and the peak memory of the process, mapped counts and all
libraries included. `transform` returns an array of 0.75 GiB for 10^6 documents.
"""
_CAP = """## Counts that exceed the memory

The same shortened fit of 5 * 10^6 documents, with a limit of 2 GiB on the memory that the process may allocate
(RLIMIT_DATA). The peak memory includes the libraries, and the pages of the counts that the kernel has mapped at that
time, which it can take back; they differ between runs, with a peak of 1.6 to 2.8 GiB.
"""
_READ = """## Reading from disk

256,000 of these documents in batches of 256, without a model, after the kernel was asked to forget the files; medians
of three runs that take turns. `all documents` is a random order of all documents, in which nearly the whole file is
mapped before memory is given back.
"""
_ORDER = """## Order of the documents

Corpora of 33 million non-zeros or more are read by blocks (see [docs/large.md](../docs/large.md)). Here 20 Newsgroups
is read so, K=50, three seeds, 20 epochs of GSM and all of Loom: the buffer has an eighth of the documents, as with
67 million non-zeros, or a thirty-second, as with 270 million, and a block is 1/512 of the buffer. In the last line, the
documents are sorted by class, which is the worst order in a file. (The loss of Loom is that of the few batches of the
last epoch with which the encoder is trained, and differs more between seeds.)
"""
_COUNTS = """## Loom's counts of documents

The counts of topics in documents as an array of 32-bit or 16-bit numbers, or as the largest counts of each document and
the mean of the others; three seeds for K=50 and two for K=200. The package uses an array of 32-bit numbers up to 67
million counts (documents times topics), and the 32 largest counts above. For 10^6 documents and 250 topics, the array
has 1,000 MB, with 16 bits 500 MB, and the 32 largest counts have 130 MB. To choose them takes about 3 microseconds a
document, which is part of the time of counting in the first table.
"""
_STREAM = """## Streams

`partial_fit` with 10^6 documents in chunks of 10,000, K=50 and batches of 2,048: seconds for a chunk, and the memory of
the process without mapped files, in the second tenth of the stream and in the last one.
"""
