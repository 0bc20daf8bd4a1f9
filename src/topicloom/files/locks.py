"""Locks that let one process at a time write to a directory."""

from __future__ import annotations

import errno
import os
import platform
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import InputError

_TAKEN = {errno.EACCES, errno.EAGAIN}
_NO_LOCKS = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}
# A lock of the operating system does not exclude the process that holds it, so each process keeps its own list.
_locked_here: set[Path] = set()
_list_lock = threading.Lock()


@contextmanager
def lock_directory(path: str | Path) -> Iterator[None]:
    """Let one process, and one thread of it, work on a directory at a time.

    The lock is a hidden file beside the directory, so that the directory itself can be replaced. The operating system
    releases it when the process ends, even if the process is killed. On Windows, and on file systems that have no locks
    or cannot be written, only the threads of one process exclude each other.

    Raises:
        InputError: another process, or another thread of this one, is writing to the directory; or it is a file.
    """
    place = Path(os.path.realpath(path))
    if place.is_file():
        raise InputError(f"{path} is a file, but a directory is to be written there; give another place")
    with _list_lock:
        if place in _locked_here:
            raise InputError(f"{path} is being written by another thread of this process; give another place")
        _locked_here.add(place)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        file = place.with_name(f".{place.name}.lock")
        handle = _lock(file, path)
        try:
            yield
        finally:
            if handle is not None:
                with suppress(OSError):
                    file.unlink()  # while it is still locked; later, it may belong to the next owner
                os.close(handle)
    finally:
        with _list_lock:
            _locked_here.discard(place)


def _lock(file: Path, directory: str | Path) -> int | None:
    """Return the handle of the locked file, or None where there are no locks."""
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    while True:
        try:
            handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return None
            raise
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.read(handle, 200).decode("utf-8", "replace").strip() or "another process"
            os.close(handle)
            if error.errno in _TAKEN:
                raise InputError(
                    f"{directory} is being written by {owner}; wait until it has finished, or give another place"
                ) from None
            if error.errno in _NO_LOCKS:
                return None
            raise
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), os.stat(file)):
                with suppress(OSError):  # such as a full disk; the lock holds without the name of its owner
                    os.truncate(handle, 0)
                    os.write(handle, f"process {os.getpid()} on {platform.node()}\n".encode())
                return handle
        os.close(handle)  # its last owner removed it after it was opened here
