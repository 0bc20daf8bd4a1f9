"""Measure where the time of `topicloom train` goes, from the file of texts to the page of the run.

    python benchmarks/waterfall.py [CORPUS ...] [--rounds 1] [--topics 50] [--threads 1] [--n-jobs 2] [--table]

The corpora are titles of 10 words (10^4, 10^5 and 10^6, each made of the beginnings and ends of two questions of one
class of so-titles), posts of about 30 words from ag-news, and articles of ag-news joined to some 300 words. Each run is
a process of its own, in which the functions of the steps are timed; the time of a function that another one calls is
subtracted from that of the caller. Processor time is that of the process with its workers. Lines are added to
results/waterfall.jsonl, and the page waterfall.md is written.
"""

from __future__ import annotations

import argparse
import csv
import functools
import importlib
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import shared

FOLDER = Path(__file__).parent / "results" / "waterfall"
RESULTS = FOLDER.with_suffix(".jsonl")
PAGE = Path(__file__).with_suffix(".md")
LOADING, OTHER = "loading the programs", "everything else"
# The functions of the steps. Of a generator, its steps are timed.
STEPS = {
    "reading": ["text.reading:documents_in"],
    "cutting": ["text.tokenizing:Tokenizer.pieces"],
    "counting": ["text.counting:count_chunks", "corpus.building:build"],
    "training": ["reports.run:fit"],
    "inference": ["models.base:TopicModel.infer"],
    "measures": ["reports.run:measure"],
    "tables": ["topics.table:describe", "topics.table:write_topics", "topics.table:write_documents"],
    "saving": ["models.base:TopicModel.save", "topics.saved:write_stored"],
    "positions": ["topics.view:Topics.positions"],
    "pictures": ["reports.run:_draw"],
    "page": ["reports.run:_write_page"],
}
ALONE = ("tables", "saving", "positions", "pictures", OTHER)  # steps of one thread, beside which another one may work
ORDER = [LOADING, *STEPS, OTHER]
SIZES = {"titles-1e4": 10_000, "titles-1e5": 100_000, "titles-1e6": 1_000_000, "posts": 15_000, "articles": 10_000}
MANY = 200  # topics, from which on a fit has a column in the table of many topics
MANY_TOPICS = """
## Many topics

`benchmarks/waterfall.py titles-1e5 --topics 500 --model loom --option "--epochs 12"` adds a column: for each step,
processor seconds, and the peak memory of the process while the step runs. Everything else is as above. A fit of few
epochs shows the memory of each step, and the time of all steps but training.

The pages were measured before words were ranked and topics compared in blocks. From the run of Loom, in a process of
its own, a page with the same data took 41.5 s and 1.78 GiB before, and 15.0 s and 1.32 GiB since then.

With K=1,000 and otherwise as in the column of Loom, all takes 249 s and 2.76 GiB: training 135 s, pictures 39 s, the
page 32 s, measures 14 s, tables 11 s, positions 6 s, and inference 4 s.

"""
HEAD = """# From a file of texts to the page of its topics

`make bench-waterfall` writes this page: the seconds of `topicloom train FILE.csv`, K={topics}, by step. "Processor" is
the processor time of the process and its workers, "s" is elapsed time. Titles have 10 words (beginnings and ends of
questions of so-titles, so that there are many different documents of few words), posts are those of ag-news with 15,000
recombined articles of about 30 words, and articles have some 300 words. Counting contains what is done beside it, such
as the search for copies. Documents are placed on the map while tables are written and pictures are drawn.

{cores} cores, {threads} thread{s} for training, load {load:.1f}. GiB is the largest memory of the process.
"""


def recombined(rows: list[tuple[str, str]], n_docs: int, n_words: int) -> Iterator[str]:
    """Yield texts of so many words: the beginning of one text, and parts of others of its class."""
    random = Random(0)
    by_class: defaultdict[str, list[list[str]]] = defaultdict(list)
    for text, label in rows:
        if words := text.split():
            by_class[label].append(words)
    classes = [by_class[label] for label in sorted(by_class)]
    for row in range(n_docs):
        texts = classes[row % len(classes)]
        found: list[str] = []
        while len(found) < n_words:
            words = texts[int(random.random() * len(texts))]
            first = int(random.random() * len(words))
            found += words[first : first + max(n_words // 2, 2)] if n_words < 100 else words
        yield " ".join(found[:n_words])


def corpus_file(data: Path, name: str) -> Path:
    """Return the CSV file of a corpus, which is made if it is not there."""
    path = FOLDER / f"{name}.csv"
    if path.exists():
        return path
    source = data / ("so-titles/titles.csv" if name.startswith("titles") else "ag-news/articles.csv")
    with source.open(encoding="utf-8", newline="") as file:
        rows = [(row["text"], row["label"]) for row in csv.DictReader(file)]
    n_words = 10 if name.startswith("titles") else 30 if name == "posts" else 300
    FOLDER.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text"])
        writer.writerows([text] for text in recombined(rows, SIZES[name], n_words))
    return path


class Watch:
    """The time of each step, elapsed and of the processor, and its peak memory. Threads have steps of their own.

    The peak is that of the process while a step runs. Steps in threads that work at the same time share it.
    """

    def __init__(self) -> None:
        self.elapsed: defaultdict[str, float] = defaultdict(float)
        self.processor: defaultdict[str, float] = defaultdict(float)
        self.gib: defaultdict[str, float] = defaultdict(float)
        self._local = threading.local()
        self._lock = threading.Lock()

    def _now(self, step: str) -> tuple[float, float]:
        if step in ALONE:
            return time.perf_counter(), time.thread_time()
        done = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.perf_counter(), time.process_time() + done.ru_utime + done.ru_stime

    def change(self, step: str | None) -> None:
        """End the step of this thread, and begin another one, or the one before (None)."""
        stack = self._local.__dict__.setdefault("stack", [])
        if stack:
            now = self._now(stack[-1])
            with self._lock:
                self.elapsed[stack[-1]] += now[0] - self._local.since[0]
                self.processor[stack[-1]] += now[1] - self._local.since[1]
                self.gib[stack[-1]] = max(self.gib[stack[-1]], peak_memory())
        if step is None:
            stack.pop()
        else:
            stack.append(step)
        if stack:
            self._local.since = self._now(stack[-1])

    def timed(self, step: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function whose calls belong to a step. If it returns a generator, so do its steps."""

        def each(values: Iterator[Any]) -> Iterator[Any]:
            while True:
                self.change(step)
                try:
                    value = next(values)
                except StopIteration:
                    return
                finally:
                    self.change(None)
                yield value

        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            self.change(step)
            try:
                result = function(*args, **options)
            finally:
                self.change(None)
            return in_batches(each(in_lists(result))) if isinstance(result, Iterator) else result

        return call


def peak_memory() -> float:
    """Return the peak memory of this process since the last call, in GiB."""
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    return int(found[1]) / 2**20 if found else float("nan")


def in_lists(values: Iterator[Any]) -> Iterator[list[Any]]:
    """Divide what a generator yields: one at a time if it is large, else many, so that timing costs little."""
    found: list[Any] = []
    for value in values:
        found.append(value)
        if len(found) == 200 or type(value).__name__ != "Document":
            yield found
            found = []
    if found:
        yield found


def in_batches(lists: Iterator[list[Any]]) -> Iterator[Any]:
    for each in lists:
        yield from each


def measure(command: list[str]) -> dict[str, Any]:
    """Run a command of the command line in this process, and return the times of its steps."""
    watch = Watch()
    watch.elapsed[LOADING] = time.time() - float(os.environ["BEGAN"])
    watch.processor[LOADING] = time.process_time()
    watch.change(LOADING)
    importlib.import_module("topicloom.cli.shell").import_models()
    modules = {place.partition(":")[0] for places in STEPS.values() for place in places}
    for name in ["cli", "cli.train", "models.loom.model", *sorted(modules)]:
        importlib.import_module(f"topicloom.{name}")
    for step, places in STEPS.items():
        for place in places:
            module, _, path = place.partition(":")
            replace(f"topicloom.{module}", path, functools.partial(watch.timed, step))
    from topicloom.cli import main

    watch.change(OTHER)
    sys.argv = ["topicloom", *command]
    try:
        main()
    except SystemExit as ended:
        if ended.code:
            raise
    watch.change(None)
    watch.change(None)
    return {
        "elapsed": watch.elapsed,
        "processor": watch.processor,
        "gib": max(watch.gib.values()),
        "gib_of_step": watch.gib,
        "gib_of_a_worker": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20,
    }


def replace(module: str, path: str, change: Callable[[Any], Any]) -> None:
    """Replace a function or a method by what `change` returns, in every module that has imported it."""
    owner: Any = sys.modules[module]
    *parents, name = path.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    old = getattr(owner, name)
    new = change(old)
    setattr(owner, name, new)
    if not parents:
        for each in [each for key, each in sys.modules.items() if key.startswith("topicloom")]:
            for key, value in list(vars(each).items()):
                if value is old:
                    setattr(each, key, new)


def run(options: argparse.Namespace, name: str, out: Path) -> dict[str, Any]:
    """Train in a process of its own, and return the times of its steps."""
    command = ["train", str(corpus_file(options.shared / "data", name)), "--out", str(out), "--quiet", "--overwrite"]
    command += ["--language", "en", "--topics", str(options.topics), "--model", options.model]
    command += ["--jobs", str(options.n_jobs)] if options.n_jobs else []
    for more in options.option:
        command += more.split()
    environment = os.environ | {"OMP_NUM_THREADS": str(options.threads), "BEGAN": str(time.time())}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled once, and not in each process
    process = [sys.executable, __file__, "--job", json.dumps(command)]
    done = subprocess.run(process, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    row = json.loads(done.stdout.splitlines()[-1])
    about = {"corpus": name, "model": options.model, "topics": options.topics, "threads": options.threads}
    return about | {"options": " ".join(options.option)} | row


def page(rows: list[dict[str, Any]], options: argparse.Namespace) -> str:
    """Return the page: for each corpus, the steps with their times and shares."""
    load = os.getloadavg()[0]
    parts = [HEAD.format(topics=options.topics, cores=os.cpu_count(), threads=options.threads,
                         s="" if options.threads == 1 else "s", load=load)]  # fmt: skip
    for name in SIZES:
        found = [row for row in rows if row["corpus"] == name and row["topics"] == options.topics]
        found = [row for row in found if row["model"] == "loom" and not row.get("options")]
        if not found:
            continue
        times = {
            step: tuple(median(row[kind].get(step, 0.0) for row in found) for kind in ("elapsed", "processor"))
            for step in ORDER
        }
        whole = sum(each[1] for each in times.values())
        parts += [f"\n## {name}: {SIZES[name]:,} documents\n", "| step | s | processor, s | share |  |"]
        parts += ["| --- | --- | --- | --- | --- |"]
        for step, (elapsed, processor) in times.items():
            share = processor / whole
            parts += [f"| {step} | {elapsed:.1f} | {processor:.1f} | {share:.0%} | {'█' * round(40 * share)} |"]
        elapsed = sum(each[0] for step, each in times.items() if step != "positions")
        gib = median(max(row["gib"], row["gib_of_a_worker"]) for row in found)
        parts += [f"| all | {elapsed:.1f} | {whole:.1f} | 100% | {gib:.2f} GiB |"]
    return "\n".join(parts) + "\n" + many_topics(rows)


def many_topics(rows: list[dict[str, Any]]) -> str:
    """Return the table of fits with many topics: the time and the peak memory of each step."""
    measured = [row for row in rows if "gib_of_step" in row]
    chosen = {(row["corpus"], row["model"], row["topics"], row.get("options", "")): row for row in measured}
    fits = [chosen[key] for key in sorted(chosen) if key[2] >= MANY]
    if not fits:
        return ""
    steps = [step for step in ORDER if step not in ("reading", "cutting", "counting")]
    heads = [f"{row['model']}, K={row['topics']:,}, {row['corpus']} {row.get('options', '')}".rstrip() for row in fits]
    lines = [f"| step | {' | '.join(heads)} |", f"| --- |{' --- |' * len(fits)}"]
    for step in steps:
        cells = (
            f"{row['processor'].get(step, 0.0):.1f} s, {row['gib_of_step'].get(step, 0.0):.2f} GiB" for row in fits
        )
        lines.append(f"| {step} | {' | '.join(cells)} |")
    sums = (f"{sum(row['processor'].values()):.0f} s, {row['gib']:.2f} GiB" for row in fits)
    return MANY_TOPICS + "\n".join([*lines, f"| all | {' | '.join(sums)} |"]) + "\n"


def main() -> None:
    parser = shared.parser(__doc__)
    parser.add_argument("corpora", nargs="*", help=f"{', '.join(SIZES)}; all by default")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--topics", type=int, default=50)
    parser.add_argument("--model", default="loom")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--n-jobs", type=int, help="processes that count words; by default as the command chooses")
    parser.add_argument(
        "--option", action="append", default=[], help="further options of train, such as '--no-explorer'"
    )
    parser.add_argument("--table", action="store_true", help="only write the page, from the stored results")
    parser.add_argument("--fresh", action="store_true", help="forget the results of these corpora and topics")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        print(json.dumps(measure(json.loads(options.job))))
        return
    rows = [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []
    names = [] if options.table else options.corpora or list(SIZES)
    if options.fresh:
        rows = [row for row in rows if row["corpus"] not in names or row["topics"] != options.topics]
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            for name in names:
                rows.append(run(options, name, Path(folder, name)))
                processor = rows[-1]["processor"]
                shown = {step: round(processor[step], 2) for step in ORDER if step in processor}
                print(name, shown, f"{rows[-1]['gib']:.2f} GiB", flush=True)
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text("".join(json.dumps(row) + "\n" for row in rows))
    PAGE.write_text(page(rows, options))


if __name__ == "__main__":
    main()
