"""The cells of a benchmark: worked off by topicloom.cells, told of on the terminal, and shown in Markdown."""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from topicloom.experiments import jobs as resumable
from topicloom.experiments.jobs import latest, read

__all__ = ["Cell", "arguments", "latest", "markdown", "read", "run", "spread"]

Cell = dict[str, Any]
Work = Callable[[Cell], dict[str, Any]]


def arguments(parser: argparse.ArgumentParser, out: Path) -> None:
    """Adds what every benchmark of cells can be told."""
    parser.add_argument("--out", type=Path, default=out, help="the file of cells")
    parser.add_argument("--jobs", type=int, default=2, help="processes, of one thread each")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so many")
    parser.add_argument("--again", action="store_true", help="work off finished cells again")
    parser.add_argument("--table", action="store_true", help="only write the table, from the cells there are")


def run(cells: Sequence[Cell], work: Work, options: argparse.Namespace) -> None:
    """Works off the cells that have no figures yet, in order, and tells of each.

    Args:
        work: a function of a module, which gives the figures of a cell.
        options: of `arguments`.
    """
    began = time.monotonic()
    logged = partial(_quietly, work)
    asked = [] if options.table else cells
    for number, row in enumerate(resumable.run(asked, logged, options.out, options.jobs, options.again), start=1):
        said = row.get("error") or f"{row['seconds']:.1f} s, {row['job_seconds']:.1f} s in all"
        minutes = (time.monotonic() - began) / 60
        names = (value for name, value in row.items() if cells and name in cells[0])
        print(f"{minutes:5.1f} min {number}", *names, said, flush=True)
        if minutes > options.minutes:
            print("the rest is left for the next run")
            break


def _quietly(work: Work, cell: Cell) -> dict[str, Any]:
    logging.getLogger("topicloom").setLevel(logging.ERROR)
    return work(cell)


def spread(rows: Iterable[dict[str, Any]], name: str, digits: int) -> str:
    """The mean over rows and, of two or more, the standard deviation; a dash where no row has a finite figure."""
    values = np.array([row[name] for row in rows if np.isfinite(row.get(name, np.nan))])
    if not len(values):
        return "-"
    mean = f"{values.mean():.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {values.std(ddof=1):.{digits}f}"


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as Markdown has it."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
