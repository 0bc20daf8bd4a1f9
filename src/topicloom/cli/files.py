"""The runs that commands read, and the files that they write."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InputError

if TYPE_CHECKING:
    from ..topics.view import Topics

logger = logging.getLogger("topicloom")


def open_topics(run: Path, allow: Iterable[str] | None = None, device: str = "cpu") -> Topics:
    """Return the topics of a run with its documents."""
    from ..topics.view import Topics

    mention_edits(run)
    return Topics.from_run(run, device=device, allow=allow or ())


def mention_edits(run: Path) -> None:
    """Say that a run has edits which were made in the service: all other commands show the topics of the run itself."""
    from ..topics.saved import EDITS

    path = run / EDITS
    if not path.is_file():
        return
    from ..topics.edit_files import read_edits

    with suppress(InputError):  # a file that cannot be read is no reason to show nothing
        if read_edits(path).edits:
            apply = shlex.join(["topicloom", "edit", str(run), "--edits", str(path)])
            logger.info(
                "the edits in %s, which were made in the service, are not applied; %s --out NEW_RUN writes a run with "
                "them", path, apply,
            )  # fmt: skip


def check_new(path: Path | None, overwrite: bool) -> None:
    """Raise InputError if a file exists that may not be replaced."""
    if path is not None and path.exists() and not overwrite:
        raise InputError(f"{path} already exists; give another name, or --overwrite to replace it")


def check_table(path: Path | None, overwrite: bool) -> None:
    """Check the file of a table before anything takes time."""
    if path is not None:
        from ..topics.table import require_format

        require_format(path)
        check_new(path, overwrite)
