"""Check that `compare`, when it is killed and started again, writes the same table as without the interruption.

    python benchmarks/comparing.py [--models gsm,etm,wlda,gmntm,dirichletvae,lda:method=gibbs] [--seeds 3] [--jobs 2]

The corpus is bbc-news with its classes, K=20. The command line's `compare` first runs to the end. A second comparison
is killed when a third of the fits are done, and is then started again and runs to the end. The script prints the time
of both, and the largest difference between the tables.
"""

from __future__ import annotations

import csv
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import shared
import topicloom as tl
from topicloom.experiments.jobs import read_rows

UNTIMED = ("seconds", "seconds_sd")


def rows(folder: Path) -> list[dict[str, str]]:
    """Return the rows of the table without times."""
    with (folder / "comparison.csv").open(encoding="utf-8") as file:
        return [{name: value for name, value in row.items() if name not in UNTIMED} for row in csv.DictReader(file)]


def largest_difference(one: list[dict[str, str]], other: list[dict[str, str]]) -> float:
    """Return the largest relative difference of a figure; 1 if the tables have different rows."""
    if [(row["part"], row["model"]) for row in one] != [(row["part"], row["model"]) for row in other]:
        return 1.0
    worst = 0.0
    for first, second in zip(one, other, strict=True):
        for name in first.keys() - {"part", "model"}:
            if first[name] != second[name]:
                a, b = float(first[name] or np.nan), float(second[name] or np.nan)
                worst = max(worst, abs(a - b) / max(abs(a), abs(b)) if np.isfinite(a + b) else 1.0)
    return worst


def main() -> None:
    parser = shared.parser(__doc__)
    parser.add_argument("--models", default="gsm,etm,wlda,gmntm,dirichletvae,lda:method=gibbs", help="as for compare")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds")
    parser.add_argument("--jobs", type=int, default=2, help="number of processes")
    options = parser.parse_args()
    lines = [line.rstrip("\n").split("\t") for line in (options.shared / "data/bbc-news/corpus.tsv").open()]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        tl.Corpus.from_texts([line[0] for line in lines], labels=[line[2] for line in lines]).save(folder / "corpus")
        command = [
            sys.executable, "-m", "topicloom", "compare", str(folder / "corpus"), "--models", options.models,
            "--topics", "20", "--seeds", str(options.seeds), "--jobs", str(options.jobs), "--quiet", "--out",
        ]  # fmt: skip
        start = time.monotonic()
        subprocess.run([*command, str(folder / "whole")], check=True)
        seconds = time.monotonic() - start
        n_fits = len(read_rows(folder / "whole" / "jobs.jsonl"))
        print(f"uninterrupted: {n_fits} fits in {seconds / 60:.1f} minutes with {options.jobs} processes", flush=True)
        start = time.monotonic()
        process = subprocess.Popen([*command, str(folder / "killed")], stdout=subprocess.DEVNULL)
        while len(read_rows(folder / "killed" / "jobs.jsonl")) < n_fits // 3:
            time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
        process.wait()
        print(f"killed after {len(read_rows(folder / 'killed' / 'jobs.jsonl'))} of {n_fits} fits", flush=True)
        subprocess.run([*command, str(folder / "killed")], check=True, stdout=subprocess.DEVNULL)
        seconds = time.monotonic() - start
        difference = largest_difference(rows(folder / "whole"), rows(folder / "killed"))
        print(f"killed and continued: {seconds / 60:.1f} minutes in all")
        print(f"largest relative difference of a figure: {difference:.2g}")


if __name__ == "__main__":
    main()
