"""Checksums of files, by which damage to a file is noticed when it is read.

A directory that topicloom wrote has a manifest: a JSON file such as config.json, whose entry "sha256" has the checksum
of each other file, and one of the manifest's own content.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..errors import SavedFileError
from .content import read_json, write_json

VERSION, DIGESTS = "format_version", "sha256"


def file_digest(path: Path) -> str:
    """Return the SHA-256 checksum of a file as 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def content_digest(content: Any) -> str:
    """Return the SHA-256 checksum of a JSON value, which does not depend on its layout or on the order of names."""
    as_read = json.loads(json.dumps(content))  # in which all names are strings
    text = json.dumps(as_read, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def write_manifest(path: Path, content: Mapping[str, Any], files: Iterable[str] = ()) -> None:
    """Write JSON with checksums of its own content and of files beside it.

    Args:
        path: the JSON file.
        content: a dictionary of JSON values.
        files: the names of the other files.

    Raises:
        ValueError: a number is NaN or infinite, which JSON cannot express.
    """
    digests = {name: file_digest(path.parent / name) for name in files}
    whole = {**content, DIGESTS: digests}
    digests[path.name] = content_digest(whole)
    write_json(path, whole)


def read_manifest(path: Path, error: type[SavedFileError], newest: int, sealed: int) -> dict[str, Any]:
    """Read what `write_manifest` wrote, and check its own checksum.

    Args:
        path: the JSON file.
        error: what is raised.
        newest: the newest format version that can be read.
        sealed: the first format version with a checksum of the manifest. In older ones there may be none.

    Returns:
        the content, in which the entry "sha256" has the checksums of the other files.

    Raises:
        SavedFileError: the file is missing or damaged, or its format is newer.
    """
    content = read_json(plain_file(path.parent, path.name, error), error)
    if not isinstance(content, dict):
        raise error.of(path, "is damaged: it is not a JSON object")
    version, digests = content.get(VERSION, 0), content.get(DIGESTS, {})
    if not isinstance(version, int):
        raise error.of(path, f"is damaged: {VERSION!r} is {version!r:.60}")
    if version > newest:
        raise error.newer(path)
    if not isinstance(digests, dict) or not all(isinstance(digest, str) for digest in digests.values()):
        raise error.of(path, f"is damaged: {DIGESTS!r} is {digests!r:.60}")
    if path.name not in digests and version < sealed:
        return content | {DIGESTS: digests}
    others = {name: digest for name, digest in digests.items() if name != path.name}
    if digests.get(path.name) != content_digest(content | {DIGESTS: others}):
        raise error.of(path, "is damaged: its content has changed since it was written")
    return content | {DIGESTS: others}


def check_digests(
    folder: Path, digests: Mapping[str, str], error: type[SavedFileError], most_bytes: int | None = None
) -> None:
    """Check files of a folder against the checksums that were noted when they were written.

    Args:
        folder: the folder.
        digests: the SHA-256 checksum of each file, by the file's name.
        error: what is raised.
        most_bytes: a larger file is not read; that it is there is checked all the same.

    Raises:
        SavedFileError: a file is missing, is not a file of this folder, or has changed since it was written.
    """
    for name, digest in digests.items():
        path = plain_file(folder, name, error)
        if most_bytes is None or path.stat().st_size <= most_bytes:
            try:
                found = file_digest(path)
            except OSError as fault:
                raise error.unreadable(path, fault) from None
            if found != digest:
                raise error.of(path, "is damaged: its content has changed since it was written")


def plain_file(folder: Path, name: str, error: type[SavedFileError]) -> Path:
    """Return the path of a regular file in a folder. A link to a file elsewhere, or a path that leads there, is none.

    Raises:
        SavedFileError: there is no such file.
    """
    path = folder / name
    if name in ("", ".", "..") or any(mark in name for mark in "/\\:\0"):
        raise error(f"{folder} names {name!r} as one of its files, which is not in this directory; do not trust it")
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise error.of(path, "is missing") from None
    except OSError as fault:
        raise error.unreadable(path, fault) from None
    if not stat.S_ISREG(mode):
        raise error.of(path, "is not a file")
    if path.is_symlink() and os.path.dirname(os.path.realpath(path)) != os.path.realpath(folder):
        raise error(f"{path} is a link to a file elsewhere, which is not read; put the file itself there")
    return path
