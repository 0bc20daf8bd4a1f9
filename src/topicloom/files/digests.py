"""Checksums of files, by which damage to a file is noticed when it is read."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from ..errors import InputError


def file_digest(path: Path) -> str:
    """Return the SHA-256 checksum of a file as 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_digests(folder: Path, digests: Mapping[str, str]) -> None:
    """Check files of a folder against the checksums that were noted when they were written.

    Args:
        digests: the SHA-256 checksum of each file, by the file's name.

    Raises:
        InputError: a file is missing or cannot be read, or has changed since it was written. The message names it.
    """
    for name, digest in digests.items():
        try:
            found = file_digest(folder / name)
        except OSError as error:
            raise InputError(f"{folder / name} cannot be read ({error.strerror}); copy the directory again") from None
        if found != digest:
            raise InputError(
                f"{folder / name} is damaged: its content has changed since it was written; copy the directory again"
            )
