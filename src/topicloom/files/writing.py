"""Files and directories that are written whole or not at all.

Everything is written beside its place under a temporary name, flushed to disk, and then renamed. An earlier file or
directory stays in place until that moment. What a killed process left behind is removed by the next write.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import InputError
from .exchange import exchange
from .leftovers import moved_aside, remove_leftovers, temporary_name

_NUMPY_WROTE_LESS = re.compile(r"\d+ requested and \d+ written")  # an array, without the system's error
_DISK_IS_FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a path to write to, which becomes `path` on success and is removed on an exception.

    If `path` is a symbolic link, the file that it points to is replaced.

    Raises:
        OSError: the file cannot be written, for example because the disk is full. The error names `path`.
    """
    path = _without_links(Path(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path)
    temporary = temporary_name(path)
    with _errors_name(path, temporary):
        try:
            temporary.touch(exist_ok=False)
            yield temporary
            _sync(temporary)
            temporary.replace(path)
            _sync(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def atomic_directory(
    path: Path, marker: str, *, overwrite: bool = False, known: Collection[str] = ()
) -> Iterator[Path]:
    """Yield a directory to fill, which becomes `path` on success and is removed on an exception.

    If `path` is a symbolic link, the directory that it points to is replaced. On Linux, the old and the new directory
    are exchanged in one step, so that one of them is under the name at any time.

    Args:
        marker, overwrite, known: as for `require_free`.

    Raises:
        InputError: as for `require_free`, also if `path` is written by another process in the meantime.
        OSError: the directory cannot be written, for example because the disk is full. The error names `path`.
    """
    path = _without_links(Path(path))
    remove_leftovers(path)
    require_free(path, marker, overwrite, known)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_name(path)
    with _errors_name(path, temporary):
        try:
            temporary.mkdir()
            yield temporary
            mode = temporary.stat().st_mode & 0o777  # as the umask of the process allows
            for file in temporary.rglob("*"):
                _sync(file)
                file.chmod(mode if file.is_dir() else mode & 0o666)
            put_in_place(temporary, path, overwrite)
            _sync(path.parent)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def require_free(path: Path, marker: str, overwrite: bool = False, known: Collection[str] = ()) -> None:
    """Check that a directory can be written at `path`.

    Args:
        marker: the file that identifies an earlier directory of the same kind. No other directory is overwritten.
        overwrite: whether an earlier directory may be replaced.
        known: the files that such a directory can hold. A directory that holds no others may be replaced as well, even
            without its marker, because it is what remains of an earlier one.

    Raises:
        InputError: `path` holds something that may not be replaced.
    """
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} is a file, but a directory is to be written there; give another place")
    names = {entry.name for entry in path.iterdir()} if path.is_dir() else set()
    if not names:
        return
    if not overwrite:
        raise InputError(f"{path} already holds files; give another place, or `overwrite=True` to replace them")
    if not (path / marker).is_file() and not names <= set(known):
        raise InputError(f"{path} holds other files (no {marker}) and is not overwritten; give another place")


def put_in_place(temporary: Path, path: Path, overwrite: bool) -> None:
    """Move a directory to `path`. What is there is exchanged with it, or moved aside and then removed.

    Raises:
        InputError: something is there, and `overwrite` is off.
    """
    with suppress(OSError):
        path.rmdir()  # removes an empty directory, and fails for any other
    if not path.exists():
        temporary.replace(path)
    elif not overwrite and any(path.iterdir()):
        raise InputError(f"{path} was written by another process in the meantime; give another place")
    elif not exchange(temporary, path):
        # No other call replaces a directory in one step, so the old one is moved aside first.
        aside = moved_aside(temporary)
        path.replace(aside)
        try:
            temporary.replace(path)
        except OSError:
            aside.replace(path)
            raise
        shutil.rmtree(aside)


def link_or_copy(file: Path, target: Path) -> None:
    """Give a file a second name, or copy it where the file system has no links."""
    try:
        os.link(file, target)
    except OSError:
        shutil.copyfile(file, target)


# Helpers.


def _without_links(path: Path) -> Path:
    """Return the place that a symbolic link points to, and any other path as it is."""
    return Path(os.path.realpath(path)) if path.is_symlink() or path.name in ("", "..") else path


@contextmanager
def _errors_name(path: Path, temporary: Path) -> Iterator[None]:
    """Put `path` into an error that names the temporary file, or that names no file because the disk is full."""
    try:
        with full_disk_names(path):
            yield
    except InputError as error:
        if str(temporary) in str(error):
            raise type(error)(str(error).replace(str(temporary), str(path))) from error
        raise
    except OSError as error:
        place = error.filename2 or error.filename  # of a copy, the file that is written
        name = "" if place is None else os.fsdecode(place)
        if error.errno is None and _NUMPY_WROTE_LESS.fullmatch(str(error)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from error
        if name.startswith(str(temporary)):
            raise OSError(error.errno, error.strerror, str(path) + name[len(str(temporary)) :]) from error
        raise


@contextmanager
def full_disk_names(path: Path) -> Iterator[None]:
    """Put `path` into an OSError that names no file because the disk is full."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno in _DISK_IS_FULL:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def _sync(path: Path) -> None:
    if os.name == "nt":  # Windows cannot flush directories, nor files that are open for reading only
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
