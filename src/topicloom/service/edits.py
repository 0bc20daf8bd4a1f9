"""The edits of a run that is served, which are stored in edits.yaml in its directory."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..errors import InputError, ModelFileError
from ..files import plain_file
from ..topics.edit_files import read_edits, write_edits
from ..topics.edits import Edit, checked_edits
from ..topics.saved import EDITS
from ..topics.view import Topics


class ConflictError(InputError):
    """The edits were changed in the meantime."""


class NotWritableError(InputError):
    """The edits cannot be stored."""


def stored_edits(run: Path, topics: Topics) -> Topics:
    """Return the topics of a run after the edits that are stored in its directory.

    Args:
        run: the run directory.
        topics: the topics of the run's model.

    Raises:
        ModelFileError: the file of edits is damaged.
        InputError: the file belongs to another model.
    """
    path = run / EDITS
    if not path.exists():
        return topics
    try:
        file = read_edits(plain_file(run, EDITS, ModelFileError))
    except InputError as error:
        raise ModelFileError(str(error)) from None
    origin = topics.model.origin
    if origin is not topics.model and file.fingerprint == origin.fingerprint:  # the run's model was edited before
        return applied(Topics(origin, topics.corpus), file.edits)
    file.check(topics.model.fingerprint, path)
    return applied(topics, file.edits)


def store_edits(run: Path, topics: Topics) -> None:
    """Write the edits of edited topics into the run's directory.

    Raises:
        NotWritableError: the file cannot be written.
    """
    model = topics.model
    try:
        write_edits(run / EDITS, model.edits, model.origin.fingerprint, sealed=True)
    except OSError as error:
        raise NotWritableError(f"{EDITS} cannot be written into the run directory ({error.strerror})") from None


def new_edits(given: Iterable[Mapping[str, Any]], most: int) -> list[Edit]:
    """Check edits that a request brought.

    Raises:
        InputError: there are too many, an edit has not the form of one, or it takes too long for a request.
    """
    given = list(given)
    if len(given) > most:
        raise InputError(f"there are {len(given):,} edits; send at most {most:,}")
    edits = checked_edits(given)
    if any("split" in edit for edit in edits):
        raise InputError("a topic cannot be split here, because that takes long; use `topicloom edit`")
    return edits


def applied(topics: Topics, edits: list[Edit]) -> Topics:
    """Return topics after edits."""
    if len(topics.documents):
        return topics.apply(edits)
    return Topics(topics.model.apply(edits), topics.corpus)


def version_of(topics: Topics) -> str:
    """Return what distinguishes these edits of this model from others, and from those of another model."""
    written = json.dumps([topics.model.origin.fingerprint, topics.edits], sort_keys=True)
    return hashlib.sha256(written.encode()).hexdigest()[:12]
