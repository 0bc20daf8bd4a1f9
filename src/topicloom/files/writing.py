"""Files and directories that are written whole or not at all, by one process at a time."""

from __future__ import annotations

import ctypes
import errno
import functools
import hashlib
import os
import platform
import re
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import InputError

# Files and directories that are written beside their place, flushed to disk and then renamed.


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
        except BaseException:
            with suppress(OSError):  # the first error says what is wrong
                temporary.unlink()
            raise
        _sync(path.parent)


@contextmanager
def atomic_directory(
    path: Path, marker: str, *, overwrite: bool = False, known: Collection[str] = ()
) -> Iterator[Path]:
    """Yield a directory to fill, which becomes `path` on success and is removed on an exception.

    If `path` is a symbolic link, the directory that it points to is replaced. On Linux, the old and the new directory
    are exchanged in one step, so that one of them is under the name at any time.

    Args:
        path: the directory.
        marker: the file that identifies an earlier directory of the same kind. No other directory is overwritten.
        overwrite: whether an earlier directory may be replaced.
        known: the files that such a directory can hold. A directory that holds no others may be replaced as well, even
            without its marker, because it is what remains of an earlier one.

    Raises:
        InputError: `path` holds something that may not be replaced, is a mounted directory, or another process has
            written it meanwhile.
        OSError: the directory cannot be written, for example because the disk is full. The error names `path`.
    """
    path = _without_links(Path(path))
    _refuse_mounted(path)
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


def require_writable(path: Path) -> None:
    """Check that something can be written at `path`, before anything takes time. Nothing stays there.

    Raises:
        InputError: the name is too long, a part of the path is a file, or nothing may be written or fits there.
    """
    _refuse_mounted(path)
    try:
        try_place(path)
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror or error}); give another place") from None


def _refuse_mounted(path: Path) -> None:
    if os.path.ismount(path):
        raise InputError(f"{path} is a mounted directory, which cannot be replaced; give a directory in it")


def try_place(path: Path) -> None:
    """Make and remove a directory beside `path`, or in the first directory above it that exists.

    Raises:
        OSError: nothing can be written at `path`.
    """
    path = Path(os.path.abspath(_without_links(Path(path))))
    with suppress(FileNotFoundError):
        path.stat()  # a loop of links, or a file as a directory
    missing = [path.name]
    above = path.parent
    while not os.path.lexists(above):
        missing.append(above.name)
        above = above.parent
    longest = os.pathconf(above, "PC_NAME_MAX") if hasattr(os, "pathconf") else _LONGEST_NAME
    if any(len(os.fsencode(name)) > longest for name in missing):
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), str(path))
    probe = temporary_name(above / missing[-1])
    probe.mkdir()
    with suppress(OSError):  # a later process that writes there removes it
        probe.rmdir()


def can_be_replaced(folder: Path) -> bool:
    """Whether a directory can be written beside `folder` and take its place, which a mounted one does not allow."""
    try:
        try_place(folder)
    except OSError:
        return False
    return not os.path.ismount(folder)


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


_IN_USE = (5, 32)  # errors of Windows: access is denied, and a file is used by another process


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
        try:
            path.replace(aside)
        except PermissionError as error:
            if getattr(error, "winerror", None) not in _IN_USE:
                raise
            raise InputError(
                f"{path} cannot be replaced, because a program has files in it open; close what reads it, such as a "
                "service or a Python that loaded its corpus, or give another place"
            ) from None
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


# Errors that name the place, symbolic links, and flushing to disk.

_NUMPY_WROTE_LESS = re.compile(r"\d+ requested and \d+ written")  # an array, without the system's error
_FULL_DISK_ERRORS = {errno.EIO, errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}


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
    """Put `path` into an OSError that names no file because the disk is full or broken."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno in _FULL_DISK_ERRORS:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


_SYSTEM_ERROR = re.compile(r"\(os error (\d+)\)")


def system_error(error: Exception, path: Path) -> OSError:
    """Return the error of the system that the message of a library names, such as that the disk is full.

    Args:
        error: the error, as safetensors raises it.
        path: the file.
    """
    found = _SYSTEM_ERROR.search(str(error))
    if found is None:
        return OSError(str(error).splitlines()[0])
    return OSError(int(found[1]), os.strerror(int(found[1])), str(path))


def _sync(path: Path) -> None:
    on_windows = os.name == "nt"  # it cannot flush directories, nor files that are open for reading only
    if on_windows and path.is_dir():
        return
    handle = os.open(path, os.O_RDWR if on_windows else os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        os.close(handle)


# The exchange of two directories in one step, which only Linux offers.

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # as Linux numbers them
_NOT_OFFERED = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM)  # by the kernel or by the file system


def exchange(one: Path, other: Path) -> bool:
    """Exchange two directories in one step, so that each name always stands for one of them.

    Returns:
        False if the system cannot do this; nothing has changed then.

    Raises:
        OSError: the directories may not be renamed.
    """
    rename = _renameat2()
    if rename is None:
        return False
    if rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NOT_OFFERED:
        return False
    raise OSError(code, os.strerror(code), str(other))


@functools.cache
def _renameat2() -> Any:
    if platform.system() != "Linux":
        return None
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is not None:
        function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    return function


# Temporary names, and the removal of what killed processes left under them.

_DAY_SECONDS = 86_400
_LONGEST_NAME = 255  # bytes, in nearly all file systems
_LONGEST_SUFFIX = 20  # bytes of a suffix that a writer may look at, such as .parquet
_marks_here: set[str] = set()  # in the names that this process has made


def temporary_name(path: Path) -> Path:
    """Return a new hidden name beside `path`, with its suffix. It says which process made it."""
    mark = secrets.token_hex(4)
    _marks_here.add(mark)
    start, end = _ends_of_temporary(path)
    return path.with_name(f"{start}{_machine()}-{os.getpid()}-{mark}{end}")


def _ends_of_temporary(path: Path) -> tuple[str, str]:
    """Return the start and the end of the temporary names beside `path`. They have a digest for a long name."""
    start, end = f".{path.name}.", path.suffix
    mark = f"{_machine()}-{2**32}-12345678.old"
    if len(os.fsencode(start + mark + end)) <= _LONGEST_NAME:
        return start, end
    return f".{_short(path.name)}.", end if len(os.fsencode(end)) <= _LONGEST_SUFFIX else ""


def _short(name: str) -> str:
    return hashlib.sha256(os.fsencode(name)).hexdigest()[:16]


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
    start, end = map(re.escape, _ends_of_temporary(path))
    temporary = re.compile(rf"{start}([0-9a-f]{{6}})-(\d+)-([0-9a-f]{{8}}){end}(\.old)?")
    found = [(path.with_name(name), each) for name in names if (each := temporary.fullmatch(name))]
    return [(place, each[4] is not None) for place, each in found if _is_abandoned(place, *each.group(1, 2, 3))]


_LINUX_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_DARWIN_BOOT_ID = b"kern.bootsessionuuid"


@functools.cache
def _machine() -> str:
    """Return a short name of this machine since it was started.

    Containers that share a host name but not their process ids differ, and so do machines that were cloned from one
    image. After a restart of the machine, what was left before counts as that of another machine.
    """
    try:
        processes = os.readlink("/proc/self/ns/pid")
    except OSError:
        processes = ""
    return hashlib.sha256(f"{platform.node()} {processes} {_boot_id()}".encode()).hexdigest()[:6]


def _boot_id() -> str:
    """Return what differs from one start of a machine's system to the next, or "" where the system has no such id."""
    with suppress(OSError, ValueError):
        return _LINUX_BOOT_ID.read_text("ascii").strip()
    if platform.system() == "Darwin":
        found = ctypes.create_string_buffer(64)
        size = ctypes.c_size_t(len(found))
        with suppress(OSError, AttributeError):
            ask = ctypes.CDLL(None).sysctlbyname
            if ask(_DARWIN_BOOT_ID, found, ctypes.byref(size), None, ctypes.c_size_t(0)) == 0:
                return found.value.decode("ascii", "replace")
    return ""


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
    return time.time() - newest > _DAY_SECONDS


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it belongs to another user
        return True
    return True


# Locks that let one process at a time write to a directory.
#
# The package filelock is not used: on POSIX systems it leaves its lock file behind, and warns against removing it. Here
# nothing is left beside the directory, and the lock file says which process holds it.

_TAKEN_ERRORS = {errno.EACCES, errno.EAGAIN}
_NO_LOCK_ERRORS = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}
_LOCKED_BYTE = 1 << 30  # on Windows, far behind the name of the owner, which others are to read
# A lock of the operating system does not exclude the process that holds it, so each process keeps its own list.
_locked_here: set[Path] = set()
_list_lock = threading.Lock()


@contextmanager
def lock_directory(path: str | Path) -> Iterator[None]:
    """Let one process, and one thread of it, work on a directory at a time.

    The lock is a hidden file beside the directory, so that the directory itself can be replaced. The operating system
    releases it when the process ends, even if the process is killed. On file systems that have no locks or cannot be
    written, only the threads of one process exclude each other.

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
        name = f".{place.name}.lock"
        if len(os.fsencode(name)) > _LONGEST_NAME:
            name = f".{_short(place.name)}.lock"
        file = place.with_name(name)
        release = _lock(file, path)
        try:
            yield
        finally:
            if release is not None:
                release()
    finally:
        with _list_lock:
            _locked_here.discard(place)


def _lock(file: Path, directory: str | Path) -> Callable[[], None] | None:
    """Lock a file, and return the function that removes it and its lock, or None where there are no locks."""
    try:
        import fcntl
    except ImportError:
        return _lock_on_windows(file, directory)
    while True:
        handle = _locked(file, directory, lambda handle: fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB))
        if handle is None:
            return None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), os.stat(file)):
                _sign(handle)
                break
        os.close(handle)  # its last owner removed it after it was opened here

    def release() -> None:
        with suppress(OSError):
            file.unlink()  # while it is still locked; later, it may belong to the next owner
        os.close(handle)

    return release


def _lock_on_windows(file: Path, directory: str | Path) -> Callable[[], None] | None:
    """Do the same on Windows, where nobody can read what is locked, or remove a file that is open."""
    try:
        system: Any = import_module("msvcrt")
    except ImportError:
        return None

    def set_lock(handle: int, mode: int) -> None:
        os.lseek(handle, _LOCKED_BYTE, os.SEEK_SET)
        try:
            system.locking(handle, mode, 1)
        finally:
            os.lseek(handle, 0, os.SEEK_SET)

    handle = _locked(file, directory, lambda handle: set_lock(handle, system.LK_NBLCK))
    if handle is None:
        return None
    _sign(handle)

    def release() -> None:
        with suppress(OSError):
            set_lock(handle, system.LK_UNLCK)  # at once; of a closed file, it may be released later
        os.close(handle)
        with suppress(OSError):
            file.unlink()  # which fails if the next owner has it open

    return release


def _locked(file: Path, directory: str | Path, lock: Callable[[int], None]) -> int | None:
    """Open and lock a file, and return its handle, or None where there are no locks."""
    try:
        handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        if error.errno in _NO_LOCK_ERRORS:
            return None
        raise
    try:
        lock(handle)
    except OSError as error:
        owner = os.read(handle, 200).decode("utf-8", "replace").strip() or "another process"
        os.close(handle)
        if error.errno in _TAKEN_ERRORS:
            raise InputError(
                f"{directory} is being written by {owner}; wait until it has finished, or give another place"
            ) from None
        if error.errno in _NO_LOCK_ERRORS:
            return None
        raise
    return handle


def _sign(handle: int) -> None:
    """Write into a locked file which process has it."""
    with suppress(OSError):  # such as a full disk; the lock holds without the name of its owner
        os.truncate(handle, 0)
        os.write(handle, f"process {os.getpid()} on {platform.node()}\n".encode())
