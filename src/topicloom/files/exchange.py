"""The exchange of two directories in one step, which only Linux offers."""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import platform
from pathlib import Path
from typing import Any

_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE in Linux
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
    if rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
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
