"""Edits in a YAML file, with the fingerprint of the model that they belong to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ..config import read_config
from ..errors import InputError, ModelFileError
from ..files import atomic_file
from ..files.digests import DIGESTS, content_digest
from .edits import Edit, checked_edits

_HEAD = """\
# Edits of topics, for `topicloom edit RUN --edits FILE --out RUN2`. Numbers are those of the topics before all edits.
"""


@dataclass(frozen=True)
class EditsFile:
    """The content of a file of edits.

    Attributes:
        edits: the edits.
        fingerprint: that of the model which they belong to; None in a file that does not say so.
    """

    edits: list[Edit]
    fingerprint: str | None = None

    def check(self, fingerprint: str, path: str | Path) -> None:
        """Check that the edits belong to a model.

        Raises:
            InputError: they belong to another model.
        """
        if self.fingerprint is not None and self.fingerprint != fingerprint:
            raise InputError(
                f"{path} belongs to another model (its fingerprint is {self.fingerprint}, that of this model is "
                f"{fingerprint}), whose topics have other numbers; replay the run of that model (`replay`), or take "
                "the line 'model' out of the file"
            )


def write_edits(path: str | Path, edits: Sequence[Edit], fingerprint: str, *, sealed: bool = False) -> None:
    """Write edits to a YAML file.

    Args:
        path: the file.
        edits: the edits of a model.
        fingerprint: that of the model before the edits.
        sealed: whether the file has a checksum of its content. It cannot be changed by hand then.

    Raises:
        InputError: the name of the file does not end in .yaml.
    """
    path = Path(path)
    if path.suffix.lower() not in (".yaml", ".yml"):
        raise InputError(f"{path} does not end in .yaml; give a name that does")
    content: dict[str, Any] = {"model": fingerprint, "edits": list(edits)}
    if sealed:
        content = {DIGESTS: content_digest(content), **content}
    with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        file.write(_HEAD)
        yaml.dump(content, file, _Dumper, sort_keys=False, allow_unicode=True, default_flow_style=None, width=10_000)


class _Dumper(yaml.SafeDumper):
    """A dumper that quotes names such as 1e5, which `read_config` would read as numbers."""

    def ignore_aliases(self, data: object) -> bool:
        return True


_Dumper.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$"),
    list("-+.0123456789"),
)


def read_edits(path: str | Path) -> EditsFile:
    """Read a file of edits, which `write_edits` or a person wrote.

    Raises:
        InputError: the file cannot be read, or an edit in it has not the form of one; the message names the file.
    """
    path = Path(path)
    found = read_config(path, "edits: [{merge: [3, 7]}]")
    digest = found.pop(DIGESTS, None)
    if digest is not None and digest != content_digest(found):
        raise ModelFileError(
            f"{path} has changed since it was written; if you changed it yourself, take the line '{DIGESTS}' out of it"
        )
    unknown = [name for name in found if name not in ("model", "edits")]
    if unknown or not isinstance(found.get("edits"), list):
        raise InputError(
            f"{path} should have the entry 'edits', a list, and may have 'model', a fingerprint; see docs/topics.md"
        )
    fingerprint = found.get("model")
    try:
        return EditsFile(checked_edits(found["edits"]), None if fingerprint is None else str(fingerprint))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
