"""Jobs that fit models on the nodes of a Ray cluster.

The files that a job writes come back with its row, so the directory of an experiment need not be on a file system that
the nodes share. The documents are read from that directory on nodes that see it, and sent to the others.
"""

from __future__ import annotations

import pickle
from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..errors import InputError
from ..files import atomic_directory, atomic_file
from ..processes.cluster import Lost, calls_on, shared
from .fitting import FittingWork
from .workers import Job, Row, attempt, name_of

_Files = dict[str, "bytes | dict[str, bytes]"]  # the content of a file, or the contents of the files of a directory
_MARKER = "config.json"  # of a saved model


def on_cluster(jobs: Sequence[Job], work: FittingWork, address: str) -> Generator[Row, None, None]:
    """Do jobs on the nodes of a cluster, a core for each, and yield the row of each job as soon as it is done.

    A job whose node or process is lost is begun again when all others have been begun, three times at most.

    Args:
        jobs: the jobs; they are started in this order.
        work: is sent to each node once.
        address: "auto", or the address of the cluster.

    Raises:
        MissingExtraError: Ray is not installed.
        InputError: there is no such cluster, a node cannot do the work, or `work` cannot be sent to the nodes.
    """
    if not jobs:
        return
    with calls_on(address, _fit_on_node, lambda number: name_of(jobs[number])) as calls:
        sent = calls.share(_pickled(work))
        parts = None
        for number, job in enumerate(jobs):
            calls.begin(number, sent, job, work.documents.digest, None)
        while len(calls):
            number, done = calls.next()
            if isinstance(done, Lost):
                yield jobs[number] | {"error": done.cause}
            elif done is None:
                parts = parts or calls.share(work.documents.read())
                calls.begin(number, sent, jobs[number], work.documents.digest, parts)
            else:
                row, files = done
                _write(work.folder, files)
                yield row


def _pickled(work: FittingWork) -> bytes:
    from ray import cloudpickle  # which pickles the classes of notebooks and scripts, too

    try:
        content: bytes = cloudpickle.dumps(work)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InputError(
            f"the models cannot be sent to the nodes of the cluster ({error}); leave `cluster` out"
        ) from None
    return content


def _fit_on_node(sent: tuple[Any], job: Job, digest: str | None, parts: tuple[Any] | None) -> tuple[Row, _Files] | None:
    """Do a job on a node, and return its row and files; None if the documents have to be sent."""
    work = _work(sent)
    if parts is not None:
        _receive(sent, parts)
    elif digest is None or work.documents.digest != digest:
        return None
    with TemporaryDirectory(prefix="topicloom-") as folder:
        here = replace(work, folder=Path(folder))
        row = attempt(here, job)
        return row, {str(path.relative_to(folder)): _content(path) for path in here.outputs(job) if path.exists()}


@lru_cache(maxsize=1)
def _work(sent: tuple[Any]) -> FittingWork:
    """The work, which a process of a node unpickles once."""
    work: FittingWork = pickle.loads(shared(sent))
    return work


@lru_cache(maxsize=1)
def _receive(sent: tuple[Any], parts: tuple[Any]) -> None:
    """Give the work the documents that were sent, once."""
    _work(sent).documents.receive(shared(parts))


def _content(path: Path) -> bytes | dict[str, bytes]:
    if path.is_file():
        return path.read_bytes()
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def _write(folder: Path, files: _Files) -> None:
    for name, content in files.items():
        if isinstance(content, bytes):
            with atomic_file(folder / name) as temporary:
                temporary.write_bytes(content)
            continue
        with atomic_directory(folder / name, _MARKER, overwrite=True) as directory:
            for file, each in content.items():
                (directory / file).parent.mkdir(parents=True, exist_ok=True)
                (directory / file).write_bytes(each)
