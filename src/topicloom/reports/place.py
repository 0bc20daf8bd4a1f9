"""Checks of the place where a run is to be written, before anything that takes time and without PyTorch."""

from __future__ import annotations

import re
from pathlib import Path

from ..errors import InputError
from ..files import holds_stopped_run, require_free
from ..topics.run_metrics import METRICS
from ..topics.saved import MODEL_FILES
from ..topics.stored import DOCUMENTS, holds_only_documents

INDEX = "search.sqlite"  # of the documents, which the service builds and a new run removes
OLD_EDITS = "edits.old.yaml"  # what the service stored in an earlier run
LOG, NEW_LOG = "log.jsonl", "log.new.jsonl"
CHECKPOINTS, STATE = "checkpoints", "state.safetensors"  # of a run under way, and of one that has finished
PICTURES = ("loss.png", "collapse.png", "quality.png", "topics.png")
_MORE_TOPICS = re.compile(r"topics-\d+\.png")  # further pages, if there are too many topics for one
PAGE = "explorer.html"
REPEATED = "train.yaml"  # the options of the training
_TABLES = ("topics.csv", "doc_topics.csv", "doc_topics.parquet", METRICS)
RUN_FILES = frozenset(
    {"model", DOCUMENTS, *_TABLES, PAGE, INDEX, LOG, NEW_LOG, CHECKPOINTS, STATE, REPEATED, *PICTURES}
)


def is_run_file(name: str) -> bool:
    """Whether a run may hold a file of this name."""
    return name in RUN_FILES or _MORE_TOPICS.fullmatch(name) is not None


def require_place(folder: Path, overwrite: bool = False, resume: bool = False) -> None:
    """Check that a run can be written at `folder`, before anything takes time.

    A folder may hold other files: a run writes and replaces its own only.

    Args:
        overwrite: whether an earlier run may be replaced.
        resume: whether a run that was stopped goes on. One that has finished stays as it is.

    Raises:
        InputError: `folder` holds a run, or other files, and `overwrite` is off; or it is a file.
    """
    if is_stopped(folder):
        if not (resume or overwrite):
            raise InputError(
                f"{folder} holds a run that was stopped; `resume=True` goes on with it, `overwrite=True` starts again"
            )
        if resume:
            return
    if is_unfinished(folder) or (resume and is_finished(folder)):
        return
    if not (overwrite and folder.is_dir()):
        require_free(folder, LOG)
    require_free(folder / "model", "config.json", overwrite, MODEL_FILES)
    documents = folder / DOCUMENTS
    if documents.exists() and not holds_only_documents(documents):
        raise InputError(f"{documents} holds files that no run wrote, and is not overwritten; give another place")


def is_stopped(folder: Path) -> bool:
    """Whether a directory has checkpoints of a run that was stopped before it was complete."""
    return holds_stopped_run(folder)


def is_finished(folder: Path) -> bool:
    """Whether a directory has a run that is complete, with the final state of its training."""
    return (folder / STATE).is_file() and not is_stopped(folder)


def is_unfinished(folder: Path) -> bool:
    """Whether a directory holds nothing but the log and the checkpoints of a run that was stopped."""
    return folder.is_dir() and {path.name for path in folder.iterdir()} <= {LOG, NEW_LOG, CHECKPOINTS}
