"""Temporary names, and the removal of what killed processes left under them."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import re
import secrets
import shutil
import time
from contextlib import suppress
from pathlib import Path

_DAY = 86_400  # seconds
_marks_here: set[str] = set()  # in the names that this process has made


def temporary_name(path: Path) -> Path:
    """Return a new hidden name beside `path`, with its suffix. It says which process made it."""
    mark = secrets.token_hex(4)
    _marks_here.add(mark)
    return path.with_name(f".{path.name}.{_machine()}-{os.getpid()}-{mark}{path.suffix}")


def moved_aside(temporary: Path) -> Path:
    """Return the name under which the old directory is kept while the temporary one takes its place."""
    return temporary.with_name(temporary.name + ".old")


def remove_leftovers(path: Path) -> None:
    """Remove what killed processes left beside `path`, after `put_back`."""
    put_back(path)
    for leftover, _ in _abandoned(path):
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


def put_back(path: Path) -> None:
    """Put an old directory back that a killed process moved aside and never replaced, if nothing is at `path`."""
    if not path.exists():
        for leftover, is_old in _abandoned(path):
            if is_old:
                with suppress(OSError):  # another process was faster, or nothing may be written here
                    leftover.replace(path)
                return


def _abandoned(path: Path) -> list[tuple[Path, bool]]:
    """Return what killed processes left beside `path`, and whether it is an old directory that was moved aside."""
    try:
        names = os.listdir(path.parent)
    except OSError:  # it does not exist, or it may not be listed
        return []
    start, end = re.escape(f".{path.name}."), re.escape(path.suffix)
    temporary = re.compile(rf"{start}([0-9a-f]{{6}})-(\d+)-([0-9a-f]{{8}}){end}(\.old)?")
    found = [(path.with_name(name), each) for name in names if (each := temporary.fullmatch(name))]
    return [(place, each[4] is not None) for place, each in found if _is_abandoned(place, *each.group(1, 2, 3))]


@functools.cache
def _machine() -> str:
    """Return a short name of this machine. Containers that share a host name but not their process ids differ."""
    try:
        processes = os.readlink("/proc/self/ns/pid")
    except OSError:
        processes = ""
    return hashlib.sha256(f"{platform.node()} {processes}".encode()).hexdigest()[:6]


def _is_abandoned(leftover: Path, machine: str, number: str, mark: str) -> bool:
    process = int(number)
    if machine == _machine() and process == os.getpid():  # in a container that was started again, numbers return
        return mark not in _marks_here
    if machine == _machine() and os.name != "nt":  # on Windows, this way of asking for a process would end it
        return not _is_alive(process)
    try:  # processes elsewhere cannot be looked up, so their files count as abandoned after a day
        newest = max(file.stat().st_mtime for file in (leftover, *leftover.rglob("*")))
    except OSError:  # it is being written or removed
        return False
    return time.time() - newest > _DAY


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it belongs to another user
        return True
    return True
