"""Cells of a benchmark: worked off in parallel, kept one JSON line each, and taken up again where a run ended.

A cell says what to do and is a dict of plain values. Its line in the file is the cell with its figures, or with the
`error` that it ended in; cells that ended in an error are tried again by the next run.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

Cell = dict[str, Any]
Work = Callable[[Cell], dict[str, Any]]


def arguments(parser: argparse.ArgumentParser, out: Path) -> None:
    """Adds what every benchmark of cells can be told."""
    parser.add_argument("--out", type=Path, default=out, help="the file of cells")
    parser.add_argument("--jobs", type=int, default=2, help="processes, of one thread each")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start no cell after so many")
    parser.add_argument("--again", action="store_true", help="work off finished cells again")
    parser.add_argument("--table", action="store_true", help="only write the table, from the cells there are")


def run(cells: Sequence[Cell], work: Work, options: argparse.Namespace) -> None:
    """Works off the cells that have no figures yet, in order; a killed run loses those under way.

    Args:
        work: a function of a module, which gives the figures of a cell.
        options: of `arguments`.
    """
    finished = set() if options.again else {_key(row, cells) for row in read(options.out) if "error" not in row}
    waiting = [] if options.table else [cell for cell in cells if _key(cell, cells) not in finished]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    os.environ |= threads  # read by the processes when they start
    began, total = time.monotonic(), len(waiting)
    waiting.reverse()
    under_way: dict[Future[dict[str, Any]], Cell] = {}
    pool = _pool(options.jobs)
    try:
        while waiting or under_way:
            while waiting and len(under_way) < options.jobs and time.monotonic() - began < 60 * options.minutes:
                cell = waiting.pop()
                under_way[pool.submit(_work, work, cell)] = cell
            if not under_way:
                print(f"{len(waiting)} cells are left for the next run")
                break
            for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                cell = under_way.pop(future)
                try:
                    row = future.result()
                except BrokenProcessPool:  # killed for its memory, say; what else was under way is lost with it
                    row = cell | {"error": "the process died"}
                    pool = _pool(options.jobs)
                with options.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
                said = row.get("error") or f"{row['seconds']:.1f} s, {row['cell_seconds']:.1f} s in all"
                minutes = (time.monotonic() - began) / 60
                done = total - len(waiting) - len(under_way)
                print(f"{minutes:5.1f} min {done}/{total}", *cell.values(), said, flush=True)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _pool(jobs: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))


def _work(work: Work, cell: Cell) -> dict[str, Any]:
    logging.getLogger("topicloom").setLevel(logging.ERROR)
    began = time.monotonic()
    try:
        row = cell | work(cell)
    except Exception as error:  # whatever it is, the other cells go on
        row = cell | {"error": f"{type(error).__name__}: {error}"[:300]}
    return row | {"cell_seconds": time.monotonic() - began}


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of cells; none where there is no file."""
    if not path.exists():
        return []
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:  # the line that a killed run was writing
            continue
    return rows


def latest(path: Path, cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """The last row of each of the cells that have one, in the order of the cells; errors only where nothing else is."""
    rows: dict[Any, dict[str, Any]] = {}
    for row in read(path):
        key = _key(row, cells)
        if "error" not in row or "error" in rows.get(key, row):
            rows[key] = row
    return [rows[key] for key in (_key(cell, cells) for cell in cells) if key in rows]


def _key(row: Cell, cells: Sequence[Cell]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in cells[0]) if cells else ()


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
