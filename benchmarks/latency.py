"""Measure inference beside other packages, and how soon commands answer: benchmarks/latency.md.

    python benchmarks/latency.py [--peers .venv-peers/bin/python] [--rounds 5] [--only gensim] [--commands]

`make bench-latency` makes .venv-peers with the other packages first. Every package has a process of its own, which
waits while the others are measured; a round measures each model once, one after the other. Figures are medians of the
rounds.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse as sp

import jobs
import shared
import topicloom as tl
from latency_worker import N_TOPICS, PACKAGES

PAGE = Path(__file__).with_name("latency.md")
FOLDER = shared.RESULTS / "latency"
SHORT = 15  # words of a short text
FIRST = """\
import topicloom as tl
texts = ["red green blue tea", "green blue leaf", "sea sand sun", "sun sea fish"] * 5
model = tl.GSM(2, epochs=2).fit(tl.Corpus.from_texts(texts, "en", min_df=1, max_df=1.0))
model.transform(["red sea"])
"""
HEAD = f"""# Inference, and the time to the first answer

`make bench-latency` writes this page. The documents are the abstracts of emnlp2020, K = {N_TOPICS}. Every model infers
in a process that waits while the others are measured; figures are medians of {{rounds}} rounds, in which each is
measured once. Everything has its default number of threads, on {{cores}} cores{{load}}.

- one text: milliseconds for a single short text of {SHORT} words, median and 95th percentile. Ours start from the raw
  text, and the other packages from tokens or counts.
- raw texts, documents: thousands of abstracts per second, from raw text and from counts (from tokens for tomotopy and
  topica).
- processor: thousands of documents per second of processor time.
- times ...: documents per second as a multiple of the other package's.

"""
COMMANDS = """
## Commands

Seconds from the start of a process to its end, and processor seconds. The run has {docs} documents.

"""


def prepare(folder: Path) -> None:
    """Write the documents that all packages read, and a run for the commands."""
    if (FOLDER / "run").exists():
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    texts = (folder / "data" / "emnlp2020" / "lines.txt").read_text(encoding="utf-8").splitlines()
    corpus = tl.Corpus.from_texts(texts, "en")
    short = [" ".join(text.split()[:SHORT]) for text in texts]
    counts = corpus.encode(short)
    kept = np.flatnonzero(np.diff(counts.indptr) > 2)
    corpus = corpus[np.flatnonzero(~corpus.is_empty)]
    corpus.save(FOLDER / "corpus", overwrite=True)
    for name, lines in (("texts.txt", corpus.fields.texts or []), ("short.txt", [short[row] for row in kept])):
        (FOLDER / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    sp.save_npz(FOLDER / "counts.npz", sp.csr_matrix(corpus.counts))
    sp.save_npz(FOLDER / "short.npz", sp.csr_matrix(counts[kept]))
    command = [sys.executable, "-m", "topicloom", "train", str(FOLDER / "texts.txt"), "--model", "gsm", "--epochs", "5"]
    subprocess.run([*command, "--topics", str(N_TOPICS), "--out", str(FOLDER / "run"), "--quiet"], check=True)


class Worker:
    """A process with the models of one package."""

    def __init__(self, package: str, python: str) -> None:
        command = [python, str(Path(__file__).with_name("latency_worker.py")), package, str(FOLDER)]
        environment = os.environ | {"TQDM_DISABLE": "1"}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=environment,
        )  # fmt: skip
        self.models: list[str] = self._answer()

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(("[", "{")):
                return json.loads(line)
        raise RuntimeError(f"{' '.join(map(str, self.process.args[1:3]))} ended without an answer")  # type: ignore[index]

    def measure(self, model: str) -> dict[str, Any]:
        """Measure a model once."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{model}\n")
        self.process.stdin.flush()
        return dict(self._answer())

    def close(self) -> None:
        """End the process."""
        self.process.stdin.close()  # type: ignore[union-attr]
        self.process.wait()


def inference(packages: list[str], peers: str, rounds: int) -> dict[str, list[dict[str, Any]]]:
    """Return what each round measured, by model."""
    workers = []
    for package in packages:
        try:
            workers.append(Worker(package, sys.executable if package == "topicloom" else peers))
        except RuntimeError as error:
            print(f"left out: {error}", file=sys.stderr)
    found: dict[str, list[dict[str, Any]]] = {model: [] for worker in workers for model in worker.models}
    for number in range(rounds):
        for worker in workers:
            for model in worker.models:
                found[model].append(worker.measure(model))
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    for worker in workers:
        worker.close()
    return found


def commands() -> dict[str, list[str]]:
    """Return the commands by what they do."""
    run, topicloom = str(FOLDER / "run"), [sys.executable, "-m", "topicloom"]
    return {
        "`python -c pass`": [sys.executable, "-c", "pass"],
        '`python -c "import torch"`': [sys.executable, "-c", "import torch"],
        '`python -c "import torch, sklearn.base"`': [sys.executable, "-c", "import torch, sklearn.base"],
        "`topicloom --help`": [*topicloom, "--help"],
        "`topicloom models`": [*topicloom, "models"],
        "`topicloom topics RUN`": [*topicloom, "topics", run],
        "`topicloom documents RUN 0`": [*topicloom, "documents", run, "0"],
        "`topicloom find RUN WORD`": [*topicloom, "find", run, "translation"],
        "`topicloom find RUN TEXT`, which infers": [*topicloom, "find", run, "neural machine translation"],
        "Python: a first corpus, fit and `transform`": [sys.executable, "-c", FIRST],
        "Python: `load` a model": [sys.executable, "-c", f"import topicloom as tl; tl.load({str(FOLDER / 'GSM')!r})"],
        "Python: `Corpus.load`": [
            sys.executable, "-c", f"import topicloom as tl; tl.Corpus.load({str(FOLDER / 'corpus')!r})"
        ],
    }  # fmt: skip


def answer_times(rounds: int) -> list[list[str]]:
    """Return a row of the table for each command."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in commands()}
    for number in range(-1, rounds):  # the first fills the caches of the file system
        for name, command in commands().items():
            start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
            if number >= 0:
                spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                times[name].append((seconds, spent))
    return [[name, *(f"{median(each):.2f}" for each in zip(*found, strict=True))] for name, found in times.items()]


def table(found: dict[str, list[dict[str, Any]]]) -> str:
    """Format the table of inference."""
    speed = {model: median(row["many"][0] for row in rows) for model, rows in found.items()}
    peers = [model for model in found if " " in model]
    rows = []
    for model, measured in found.items():
        single = np.array([value for row in measured for value in row["single"]]) * 1000
        raw = [row["texts"][0] for row in measured if "texts" in row]
        ours = model not in peers
        rows.append([
            f"ours: {model}" if ours else model,
            f"{np.median(single):.2f}, {np.percentile(single, 95):.2f}",
            f"{median(raw) / 1000:.1f}" if raw else "-",
            f"{speed[model] / 1000:.2f}",
            f"{median(row['many'][1] for row in measured) / 1000:.2f}",
            *(f"{speed[model] / speed[peer]:.3g}" if ours else "" for peer in peers),
        ])  # fmt: skip
    head = ["model", "one text, ms", "raw texts", "documents", "processor", *(f"times {peer}" for peer in peers)]
    return jobs.markdown(head, rows)


def main() -> None:
    parser = shared.parser(__doc__)
    python = Path(__file__).resolve().parents[1] / ".venv-peers" / "bin" / "python"
    parser.add_argument("--peers", default=str(python), help="Python interpreter with the other packages")
    parser.add_argument("--rounds", type=int, default=5, help="number of rounds")
    parser.add_argument("--only", help="packages, separated by commas; the page is then printed and not written")
    parser.add_argument("--commands", action="store_true", help="measure the commands only, and print them")
    options = parser.parse_args()
    prepare(options.shared)
    packages = [] if options.commands else options.only.split(",") if options.only else list(PACKAGES)
    load = os.getloadavg()[0]
    found = inference(packages, options.peers, options.rounds)
    busy = f", which other processes used as well (load {load:.1f})" if load > 1 else ""
    text = HEAD.format(rounds=options.rounds, cores=os.cpu_count(), load=busy) + table(found) if found else ""
    if not options.only:
        n_docs = len(tl.Corpus.load(FOLDER / "corpus"))
        text += COMMANDS.format(docs=f"{n_docs:,}")
        text += jobs.markdown(["command", "seconds", "processor"], answer_times(options.rounds))
    if options.only or options.commands:
        print(text)
    else:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
