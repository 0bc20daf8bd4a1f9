"""Which results are the same, bit for bit, when a fit is repeated: benchmarks/determinism.md.

    python benchmarks/determinism.py [--models gsm,loom] [--report benchmarks/determinism.md]

Each model is fitted with one seed: twice in one process, and there again after another model; in a new process, which
orders sets of strings differently; and in processes with two threads, twice. This is done with a small vocabulary and
with one of 20,000 words. Compared are the topics, theta and perplexity. A corpus is counted by one process and by two.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import topicloom as tl
from topicloom.models import estimator_named
from topicloom.training import loop

SMALL, LARGE = 2_000, 20_000  # words
MODELS = [name.lower() for name in (model.__name__ for model in tl.MODELS if not model.needs_vectors) if name != "LDA"]
MODELS += ["lda:method=variational", "lda:method=gibbs"]
GRADES = {
    "A": "the same with any number of threads that was tried",
    "B": "the same with the same number of threads; with another one, large networks differ, because numbers are "
    "rounded differently",
    "C": "not the same",
}


def digest(*arrays: Any) -> str:
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


def fitted(name: str, corpus: tl.Corpus) -> str:
    """Fit a model and return a digest of its topics, theta and perplexity."""
    model = estimator_named(name).set_params(n_topics=20, epochs=2, random_state=0)
    model.fit(corpus)
    return digest(model.components_, model.transform(corpus), model.perplexity(corpus))


def child(name: str, n_words: int, n_threads: int, n_fits: int) -> None:
    """Print the digests of fits in this process; the last of three comes after another model."""
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(n_threads)
    corpus = tl.datasets.synthetic_lda(150, 20, n_words, 60, random_state=1).corpus
    found = []
    for number in range(n_fits):
        if number == 2:
            tl.GSM(3, epochs=1).fit(corpus[:50])
        found.append(fitted(name, corpus))
    print(json.dumps(found))


def counted(n_jobs: int) -> str:
    """Return a digest of a corpus that so many processes counted."""
    drawn = np.random.default_rng(0).integers(0, 5000, (6000, 30))
    texts = [" ".join(f"w{word}" for word in row) for row in drawn.tolist()]
    corpus = tl.Corpus.from_texts(texts, language="en", n_jobs=n_jobs)
    counts = corpus.counts
    return digest(counts.data, counts.indices, counts.indptr, np.array(corpus.vocabulary))


def run(name: str, n_words: int, n_threads: int, n_fits: int = 1, hash_seed: int = 0) -> list[str]:
    environment = os.environ | {"OMP_NUM_THREADS": str(n_threads), "PYTHONHASHSEED": str(hash_seed)}
    environment.setdefault("GOMP_SPINCOUNT", "3000")  # as on the command line
    arguments = ["--child", name, str(n_words), str(n_threads), str(n_fits)]
    script = [sys.executable, str(Path(__file__).resolve()), *arguments]
    done = subprocess.run(script, env=environment, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


def checked(name: str) -> dict[str, bool]:
    """Return what is the same."""
    found: dict[str, bool] = {}
    for n_words in (SMALL, LARGE):
        first, again, after = run(name, n_words, 1, n_fits=3)
        two = [run(name, n_words, 2, hash_seed=seed)[0] for seed in (1, 2)]
        same = {
            "twice": first == again,
            "after others": again == after,
            "new process": first == run(name, n_words, 1, hash_seed=1)[0],
            "two threads, twice": two[0] == two[1],
            "one and two threads": first == two[0],
        }
        found |= {f"{what} {n_words}": value for what, value in same.items()}
    return found


def grade(same: dict[str, bool]) -> str:
    differ = {what for what, value in same.items() if not value}
    return "A" if not differ else "B" if all(what.startswith("one and two threads") for what in differ) else "C"


def report(found: dict[str, dict[str, bool]], jobs: bool, seconds: float) -> str:
    columns = ["twice", "after others", "new process", "two threads, twice", "one and two threads"]
    heads = ["twice in a process", "after other fits", "in a new process", "two threads, twice", "one and two threads"]
    lines = [
        "# The same seed gives the same results",
        "",
        f"`make check-determinism` ({seconds / 60:.0f} minutes; topicloom {tl.__version__}, torch {torch.__version__}, "
        f"{torch.backends.cpu.get_cpu_capability()}, {os.cpu_count()} processors, {platform.system()}) fitted each "
        f"model with one seed, and compared topics, theta and perplexity bit for bit, with {SMALL:,} words (small) and "
        f"with {LARGE:,} (large). A cell says with which of them they are the same.",
        "",
        f"A corpus that is counted by one process and by two is {'the same' if jobs else 'NOT the same'}.",
        "",
        *(f"- **{letter}**: {meaning}." for letter, meaning in GRADES.items()),
        "",
        f"| model | {' | '.join(heads)} | grade |",
        f"|---|{'---|' * len(heads)}---|",
    ]
    for name, same in found.items():
        cells = []
        for column in columns:
            small, large = same[f"{column} {SMALL}"], same[f"{column} {LARGE}"]
            cells.append(
                {(True, True): "both", (True, False): "small", (False, True): "large"}.get((small, large), "-")
            )
        lines.append(f"| `{name}` | {' | '.join(cells)} | {grade(same)} |")
    lines += [
        "",
        f"A network of fewer than {loop._FEWEST_WEIGHTS_FOR_THREADS:,} numbers is trained with one thread for "
        "each operation, so the "
        "number of threads has no effect on what it learns; `components_` of NVDM differs all the same, because its "
        "softmax over the words is "
        "divided among the threads. For larger networks PyTorch divides some sums among the threads, among them those "
        "of batch normalisation and of the gradient of softmax, and sums that are divided differently are rounded "
        "differently. With `OMP_NUM_THREADS=1`, or the same number of threads on both machines, results are the same. "
        "Other processors, and other versions of PyTorch, NumPy or numba, may round differently as well; the "
        "`metrics.json` of a run names them.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--report", type=Path)
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        name, *numbers = options.child
        child(name, *map(int, numbers))
        return
    began = time.monotonic()
    found = {}
    for name in options.models.split(","):
        found[name] = checked(name)
        print(name, grade(found[name]), [what for what, value in found[name].items() if not value], flush=True)
    written = report(found, counted(1) == counted(2), time.monotonic() - began)
    print(written)
    if options.report is not None:
        options.report.write_text(written, encoding="utf-8")
    sys.exit(any(grade(same) == "C" for same in found.values()))


if __name__ == "__main__":
    main()
