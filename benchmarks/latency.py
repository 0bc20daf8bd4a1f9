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

`make bench-latency` writes this page. The documents are {{docs}} abstracts of papers (emnlp2020), and every model has
{N_TOPICS} topics. Each package infers in a process of its own, which waits while the others are measured. Figures are
medians of {{rounds}} rounds; a round measures every model once. Every package has its default number of threads, on
{{cores}} cores{{load}}.

"""
TIMES = f"""
The columns of the table are:

- "one text": milliseconds in which the topics of a single text of {SHORT} words are inferred, and the 95th percentile.
  Ours start from the raw text, which they split into words. The others get tokens or counts that were made before.
- "raw texts/s": abstracts per second from raw text.
- "documents/s": abstracts per second from counts. TopMost reads a dense array of counts, tomotopy and topica tokens.
- "documents per processor s": the same for each second of processor time, of all threads together.

"""
RATIOS = """
## Compared with other packages

Documents per second of our models, divided by those of the other package.

"""
COMMANDS = """
## Commands

Seconds from the start of a process to its end, and the processor time in between. The run and the corpus have {docs}
documents. The last three rows are programs in Python. The first of them makes a corpus of 20 short texts, trains GSM
for two epochs and infers a text. Most of the time is the import of PyTorch and scikit-learn, which the third row shows.

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

    def __init__(self, package: str, python: str | Path) -> None:
        command = [str(python), str(Path(__file__).with_name("latency_worker.py")), package, str(FOLDER)]
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


def inference(packages: list[str], peers: Path, rounds: int) -> dict[str, list[dict[str, Any]]]:
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


def text(found: dict[str, list[dict[str, Any]]]) -> str:
    """Format both tables of inference, and say where another package is faster."""
    speed = {model: median(row["many"][0] for row in rows) for model, rows in found.items()}
    single = {model: [1000 * time for row in rows for time in row["single"]] for model, rows in found.items()}
    peers = [model for model in found if " " in model]
    ours = [model for model in found if model not in peers]
    rows = []
    for model, measured in found.items():
        raw = [row["texts"][0] for row in measured if "texts" in row]
        rows.append([
            f"ours: {model}" if model in ours else model,
            f"{median(single[model]):.2f}",
            f"{np.percentile(single[model], 95):.2f}",
            rounded(median(raw)) if raw else "-",
            rounded(speed[model]),
            rounded(median(row["many"][1] for row in measured)),
        ])  # fmt: skip
    header = ["model", "one text, ms", "95th percentile, ms", "raw texts/s", "documents/s", "documents per processor s"]
    ratios = [[model, *(f"{speed[model] / speed[peer]:.3g}" for peer in peers)] for model in ours]
    ahead = slower("many documents", {model: -value for model, value in speed.items()}, ours, peers)
    ahead += slower("one text", {model: median(times) for model, times in single.items()}, ours, peers)
    return (
        "Where another package is faster:\n\n"
        + ahead
        + TIMES
        + jobs.markdown(header, rows)
        + RATIOS
        + jobs.markdown(["model", *peers], ratios)
    )


def slower(task: str, times: dict[str, float], ours: list[str], peers: list[str]) -> str:
    """Say which of our models take more time than other packages."""
    faster: dict[str, list[str]] = {}
    for peer in peers:
        models = [model for model in ours if times[peer] < times[model]]
        if models:
            those = "all of our models" if models == ours else f"our {join(models)}"
            faster.setdefault(those, []).append(peer)
    lines = (
        f"- With {task}, {join(names)} {'are' if len(names) > 1 else 'is'} faster than " for names in faster.values()
    )
    return "".join(f"{line}{those}.\n" for line, those in zip(lines, faster, strict=True))


def join(names: list[str]) -> str:
    """Join names as a sentence does."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def rounded(value: float) -> str:
    """Three significant digits."""
    return f"{float(f'{value:.3g}'):,.0f}"


def main() -> None:
    parser = shared.parser(__doc__)
    shared.add_peers(parser, "the other packages")
    parser.add_argument("--rounds", type=int, default=5, help="number of rounds")
    parser.add_argument("--only", help="packages, separated by commas; the page is then printed and not written")
    parser.add_argument("--commands", action="store_true", help="measure the commands only, and print them")
    options = parser.parse_args()
    prepare(options.shared)
    packages = [] if options.commands else options.only.split(",") if options.only else list(PACKAGES)
    load = os.getloadavg()[0]
    found = inference(packages, options.peers, options.rounds)
    busy = f", which other processes used as well (load {load:.1f})" if load > 1 else ""
    docs = f"{len(tl.Corpus.load(FOLDER / 'corpus')):,}"
    page = HEAD.format(docs=docs, rounds=options.rounds, cores=os.cpu_count(), load=busy) + text(found) if found else ""
    if not options.only:
        page += COMMANDS.format(docs=docs)
        page += jobs.markdown(["command", "seconds", "processor seconds"], answer_times(options.rounds))
    if options.only or options.commands:
        print(page)
    else:
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
