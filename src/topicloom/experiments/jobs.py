"""Resumable jobs. Each result is kept as a line of a file as soon as it is known, so that a killed run can continue.

A job is a dictionary of plain values that says what to do. Its row is the job together with its result, or with the
`error` that it ended in. A job that ended in an error is tried again by the next run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

from ..files import full_disk_names
from ..files.digests import DIGESTS, content_digest
from .fitting import FittingWork
from .nodes import on_cluster
from .workers import Job, Row, Work, attempt, in_processes


def run(
    jobs: Sequence[Job],
    work: Work,
    file: Path,
    n_jobs: int = 1,
    again: bool = False,
    is_complete: Callable[[Row], bool] | None = None,
    cluster: str | None = None,
) -> Generator[Row, None, None]:
    """Do the jobs that have no result yet, and yield each row as soon as it is kept.

    Args:
        jobs: the jobs, which are started in this order. They need not all have the same names.
        work: does a job and returns its result. With several processes it must be possible to pickle it.
        file: the file of rows, as JSON lines. An incomplete line, which a killed run may leave, is passed over.
        n_jobs: the number of processes, of one thread each; 1 works in this process.
        again: does finished jobs again.
        is_complete: says whether the result of an earlier run is still there; a job whose result is not is done again.
        cluster: the address of a Ray cluster whose nodes do the jobs in place of processes; `work` has to be a
            `FittingWork` then.

    Raises:
        InputError: the processes cannot start, or `work` cannot be sent to them; or there is no such cluster.
        MissingExtraError: Ray is not installed.
    """
    finished = [] if again else [row for row in latest(file, jobs) if "error" not in row]
    names = _names(jobs)
    done = {_key(row, names) for row in finished if is_complete is None or is_complete(row)}
    waiting = [job for job in jobs if _key(job, names) not in done]
    file.parent.mkdir(parents=True, exist_ok=True)
    if cluster is not None:
        assert isinstance(work, FittingWork)
        rows = on_cluster(waiting, work, cluster)
    elif n_jobs == 1 or len(waiting) < 2:
        rows = (attempt(work, job) for job in waiting)
    else:
        rows = in_processes(waiting, work, n_jobs)
    try:
        for row in rows:
            _append(file, row)
            yield row
    finally:
        rows.close()  # ends the processes


def read(file: Path) -> list[Row]:
    """Return the rows of a file, without damaged ones; there are none if the file does not exist."""
    rows = []
    for line in file.read_bytes().split(b"\n") if file.exists() else ():
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):  # a run was killed while it wrote this line, or the line is damaged
            continue
        if isinstance(row, dict) and row.pop(DIGESTS, None) in (None, content_digest(row)):
            rows.append(row)
    return rows


def latest(file: Path, jobs: Sequence[Job]) -> list[Row]:
    """Return the last row of each job, in the order of the jobs; an error only if nothing else is known."""
    rows: dict[Any, Row] = {}
    names = _names(jobs)
    for row in read(file):
        key = _key(row, names)
        if "error" not in row or "error" in rows.get(key, row):
            rows[key] = row
    return [rows[key] for key in (_key(job, names) for job in jobs) if key in rows]


def _append(file: Path, row: Row) -> None:
    """Write one whole line and flush it to disk. After an incomplete line, the new one starts on a line of its own."""
    line = (json.dumps(row | {DIGESTS: content_digest(row)}, ensure_ascii=False) + "\n").encode()
    with full_disk_names(file), file.open("ab+") as out:
        if out.tell():
            out.seek(-1, os.SEEK_END)
            line = line if out.read(1) == b"\n" else b"\n" + line
        out.write(line)
        out.flush()
        os.fsync(out.fileno())


def _names(jobs: Sequence[Job]) -> list[str]:
    """Return the names of all jobs, as jobs of several kinds may stand in one file."""
    return list({name: None for job in jobs for name in job})


def _key(row: Row, names: Sequence[str]) -> tuple[Any, ...]:
    """Return what distinguishes a job, or the row of a job, from others with the same names."""
    return tuple(row.get(name) for name in names)
