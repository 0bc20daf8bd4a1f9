"""Reading a directory that another process may replace meanwhile, such as a model that is trained every night."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

_TRIES = 5


def read_whole(manifests: Iterable[Path], read: Callable[[], T]) -> T:
    """Return what `read` returns, from one version of the files.

    A directory is replaced as a whole, so its manifest is another file afterwards. Where it was replaced while it was
    read, an error says nothing about the files, and it is read again.

    Args:
        manifests: the manifests in what is read, of which some may not exist.
        read: reads everything.
    """
    paths = list(manifests)
    for _ in range(_TRIES):
        before = [_identity(path) for path in paths]
        try:
            found = read()
        except Exception:
            if [_identity(path) for path in paths] == before:
                raise
            continue
        if [_identity(path) for path in paths] == before:
            return found
    return read()


def _identity(path: Path) -> tuple[int, int, int] | None:
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_dev, about.st_ino, about.st_mtime_ns
