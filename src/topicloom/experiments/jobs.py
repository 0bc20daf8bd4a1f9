"""Cells: pieces of work, each kept as one line of a file as soon as it is done, and taken up again after a kill.

A cell says what to do and is a dict of plain values; its line is the cell with what came of it, or with the `error`
that it ended in. A cell that ended in an error is tried again by the next run.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any

Cell = dict[str, Any]
Row = dict[str, Any]
Work = Callable[[Cell], Row]

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def run(cells: Sequence[Cell], work: Work, file: Path, jobs: int = 1, again: bool = False) -> Iterator[Row]:
    """Works off the cells that have no result yet, in order, and yields each row as it is kept.

    Args:
        work: gives what came of a cell; with several jobs, a function of a module, or a partial of one.
        file: JSON lines; a line that a killed run left half is passed over.
        jobs: processes, of one thread each; 1 works in this process.
        again: finished cells are worked off once more.
    """
    done = set() if again else {_key(row, cells) for row in read(file) if "error" not in row}
    waiting = [cell for cell in cells if _key(cell, cells) not in done]
    file.parent.mkdir(parents=True, exist_ok=True)
    for row in _worked(waiting, work, jobs):
        _append(file, row)
        yield row


def read(file: Path) -> list[Row]:
    """The rows of a file of cells; none where there is no file."""
    rows = []
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        try:
            rows.append(json.loads(line))
        except ValueError:  # what a killed run was writing
            continue
    return rows


def latest(file: Path, cells: Sequence[Cell]) -> list[Row]:
    """The last row of each cell that has one, in the order of the cells; an error only where nothing else is."""
    rows: dict[Any, Row] = {}
    for row in read(file):
        key = _key(row, cells)
        if "error" not in row or "error" in rows.get(key, row):
            rows[key] = row
    return [rows[key] for key in (_key(cell, cells) for cell in cells) if key in rows]


def _worked(cells: Sequence[Cell], work: Work, jobs: int) -> Iterator[Row]:
    if jobs == 1 or len(cells) < 2:
        yield from (_work(work, cell) for cell in cells)
        return
    waiting = list(reversed(cells))
    under_way: dict[Future[Row], Cell] = {}
    pool = _pool(jobs)
    try:
        while waiting or under_way:
            while waiting and len(under_way) < jobs:
                cell = waiting.pop()
                under_way[pool.submit(_work, work, cell)] = cell
            for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                cell = under_way.pop(future)
                try:
                    yield future.result()
                except BrokenProcessPool:  # killed for its memory, say; what else was under way ends with it
                    yield cell | {"error": "its process died"}
                    pool = _pool(jobs)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _pool(jobs: int) -> ProcessPoolExecutor:
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ |= dict.fromkeys(_THREADS, "1")  # read by the processes when they start
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_end_with, initargs=(os.getpid(),))
    for future in [pool.submit(os.getpid) for _ in range(jobs)]:  # all of them start now
        future.result()
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value
    return pool


def _end_with(parent: int) -> None:
    """This process ends when the one that started it has been killed, which leaves nobody else to end it."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _work(work: Work, cell: Cell) -> Row:
    began = time.perf_counter()
    try:
        row = cell | work(cell)
    except (RuntimeError, ArithmeticError, ValueError, OSError, ImportError) as error:
        row = cell | {"error": f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]}
    return row | {"cell_seconds": round(time.perf_counter() - began, 3)}


def _append(file: Path, row: Row) -> None:
    """One whole line, on disk before anything else is done; after half a line, on a line of its own."""
    line = (json.dumps(row, ensure_ascii=False) + "\n").encode()
    with file.open("ab+") as out:
        if out.tell():
            out.seek(-1, os.SEEK_END)
            line = line if out.read(1) == b"\n" else b"\n" + line
        out.write(line)
        out.flush()
        os.fsync(out.fileno())


def _key(row: Row, cells: Sequence[Cell]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in cells[0]) if cells else ()
