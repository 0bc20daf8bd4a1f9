"""Never half a file: everything is written beside its place, flushed to disk, and renamed."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .errors import InputError


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yields a path to write to; on success it becomes `path`, on an exception it is removed."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        _sync(temporary)
        temporary.chmod(0o666 & ~_umask())  # mkstemp makes files for the owner alone
        temporary.replace(path)
        _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_directory(path: Path, marker: str, *, overwrite: bool = False) -> Iterator[Path]:
    """Yields a directory to fill; on success it becomes `path`, on an exception it is removed.

    Args, Raises: as for `require_free`.
    """
    path = Path(path)
    require_free(path, marker, overwrite)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    try:
        yield temporary
        for file in temporary.rglob("*"):
            _sync(file)
            file.chmod((0o777 if file.is_dir() else 0o666) & ~_umask())
        temporary.chmod(0o777 & ~_umask())
        if path.exists():
            # A directory cannot be replaced in one rename, so the old one steps aside first.
            aside = temporary.with_name(temporary.name + ".old")
            path.replace(aside)
            try:
                temporary.replace(path)
            except OSError:
                aside.replace(path)
                raise
            shutil.rmtree(aside)
        else:
            temporary.replace(path)
        _sync(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def require_free(path: Path, marker: str, overwrite: bool = False) -> None:
    """Makes sure that a directory can be written at `path`.

    Args:
        marker: the file by which an earlier one is known: nothing else is ever overwritten.
        overwrite: whether an earlier one may be replaced.

    Raises:
        InputError: `path` holds something that may not be replaced.
    """
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} is a file, and a directory is to be written there; give another place")
    if not path.is_dir() or not any(path.iterdir()):
        return
    if not overwrite:
        raise InputError(f"{path} already holds files; give another place, or --overwrite (overwrite=True)")
    if not (path / marker).is_file():
        raise InputError(f"{path} holds other files (no {marker}), which are not overwritten; give another place")


def write_json(path: Path, value: Any) -> None:
    """Writes `value` as readable JSON. NaN and infinity are refused, as JSON has no words for them."""
    with atomic_file(path) as temporary:
        text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
        temporary.write_text(text + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    """Reads JSON.

    Raises:
        InputError: there is no such file, or it is not JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not readable JSON: {error}") from None


def write_lines(path: Path, lines: list[str]) -> None:
    """Writes one string a line.

    Raises:
        InputError: a string holds a line break.
    """
    for number, line in enumerate(lines):
        if "\n" in line or "\r" in line:
            raise InputError(f"entry {number} of {path.name} holds a line break: {line!r}; remove it")
    with atomic_file(path) as temporary:
        temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


def read_lines(path: Path) -> list[str]:
    """Reads what write_lines wrote; only line feeds end a line."""
    text = path.read_text(encoding="utf-8")
    return text.removesuffix("\n").split("\n") if text else []


def _sync(path: Path) -> None:
    if os.name == "nt":  # Windows syncs no directories, and no files that are open for reading only
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
