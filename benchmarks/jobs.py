"""Run the jobs of a benchmark, report each result on the terminal, and format tables in Markdown.

A job is one fit or one measurement, described by a dictionary of plain values. `topicloom.experiments.jobs` runs the
jobs and stores every result as one line of a file, so that an interrupted benchmark can be continued.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from topicloom.experiments.jobs import latest_rows as latest
from topicloom.experiments.jobs import read_rows as read
from topicloom.experiments.jobs import run_jobs

__all__ = ["Job", "add_arguments", "latest", "markdown", "read", "run", "spread"]

Job = dict[str, Any]
Work = Callable[[Job], dict[str, Any]]


def add_arguments(parser: argparse.ArgumentParser, out: Path | None) -> None:
    """Add the options that all benchmarks with jobs share."""
    parser.add_argument("--out", type=Path, default=out, help="file of results")
    parser.add_argument("--jobs", type=int, default=2, help="number of processes, with one thread each")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after this many minutes")
    parser.add_argument("--again", action="store_true", help="run finished jobs again")
    parser.add_argument("--table", action="store_true", help="only write the page, from the results in the file")


def run(jobs: Sequence[Job], work: Work, options: argparse.Namespace) -> None:
    """Run the jobs that have no result yet, in order, and print a line for each.

    Args:
        work: a function at the top level of a module, or a partial of one, that returns the figures of a job.
        options: the parsed options of `add_arguments`.
    """
    start = time.monotonic()
    quiet_work = partial(_quietly, work)
    requested = [] if options.table else jobs
    rows = run_jobs(requested, quiet_work, options.out, options.jobs, options.again)
    for number, row in enumerate(rows, start=1):
        outcome = row.get("error") or f"fit {row['seconds']:.1f} s, job {row['job_seconds']:.1f} s"
        minutes = (time.monotonic() - start) / 60
        description = (value for name, value in row.items() if jobs and name in jobs[0])
        print(f"{minutes:5.1f} min {number}", *description, outcome, flush=True)
        if minutes > options.minutes:
            print("The time is over; the next run continues with the remaining jobs.")
            break


def _quietly(work: Work, job: Job) -> dict[str, Any]:
    logging.getLogger("topicloom").setLevel(logging.ERROR)
    return work(job) | {"commit": _commit()}


@cache
def _commit() -> str | None:
    """Return the commit of the code that is measured, with a mark if code was changed since; None without git."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(Path(__file__).parent), *arguments]
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()

    if shutil.which("git") is None or not (commit := git("rev-parse", "--short", "HEAD")):
        return None
    return commit + "-dirty" * bool(git("status", "--porcelain", "--", "../src", "*.py"))


def spread(rows: Iterable[dict[str, Any]], name: str, digits: int) -> str:
    """Format the mean of a column, with the standard deviation if there are several rows.

    Values that are missing or not finite are left out; without any value the result is a dash.
    """
    values = np.array([row[name] for row in rows if np.isfinite(row.get(name, np.nan))])
    if not len(values):
        return "-"
    mean = f"{values.mean():.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {values.std(ddof=1):.{digits}f}"


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
