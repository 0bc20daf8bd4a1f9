"""The run of an edited model: the files of a run, with the edited topics."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..topics.edit_files import read_edits
from ..topics.edits import Edit
from ..topics.run_metrics import read_metrics
from ..topics.view import Topics
from .place import LOG, NEW_LOG, PAGE
from .run import DocTopics, RunOptions, write


def edited_topics(topics: Topics, path: Path | None, further: Iterable[Mapping[str, Any]] = ()) -> Topics:
    """Return topics after the edits of a file, and further ones.

    Args:
        topics: the topics of a run.
        path: a file of edits of their model, or of the model that it was trained as; or None.
        further: edits by the same numbers.

    Raises:
        InputError: the file cannot be read or belongs to another model, or an edit cannot be applied.
    """
    edits: list[Edit] = [dict(edit) for edit in further]
    if path is None:
        return topics.apply(edits)
    file = read_edits(path)
    origin = topics.model.origin
    if origin is not topics.model and file.fingerprint == origin.fingerprint:
        topics = Topics(origin, topics.corpus)  # the file has all edits since training
    else:
        file.check(topics.model.fingerprint, path)
    try:
        return topics.apply([*file.edits, *edits])
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def write_edited(run: Path, out: Path, topics: Topics, options: RunOptions | None = None) -> dict[str, Any]:
    """Write the run of edited topics, and return the contents of its metrics.json.

    Args:
        run: the run that the topics were read from; its source, its log and its time of training are kept.
        out: the directory of the new run. It may be `run` itself, which is then replaced.
        topics: the edited topics.
        options: what is written; None is what `run` has.
    """
    about = read_metrics(run)
    seconds = about.get("training_seconds")
    with _log_of(run, out):
        return write(
            out,
            topics.model,
            topics.corpus,
            topics.documents,
            float(seconds) if isinstance(seconds, int | float) else 0.0,
            options or options_of(run),
            about.get("source"),
        )


@contextmanager
def _log_of(run: Path, out: Path) -> Iterator[None]:
    """Put the log of a run where `write` looks for it, and remove it again on an exception."""
    if not (run / LOG).is_file() or out.resolve() == run.resolve():
        yield
        return
    log = out / (NEW_LOG if (out / "model").exists() else LOG)
    out.mkdir(parents=True, exist_ok=True)
    try:
        shutil.copyfile(run / LOG, log)
        yield
    except BaseException:
        log.unlink(missing_ok=True)
        with suppress(OSError):
            out.rmdir()  # unless it holds something
        raise


def options_of(run: Path) -> RunOptions:
    """Return options by which the files of a new run are those of an earlier one."""
    kinds: list[DocTopics] = ["csv", "parquet"]
    table = next((kind for kind in kinds if (run / f"doc_topics.{kind}").is_file()), None)
    excel = (run / "topics.csv").is_file() and (run / "topics.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    return RunOptions(doc_topics=table or "none", documents=True, excel=excel, explorer=(run / PAGE).is_file())
