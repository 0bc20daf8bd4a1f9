"""Arrays that are memory-mapped: their pages count as memory of the process until they are released."""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

_AT_ONCE = 1 << 20  # numbers of a piece


def release(*arrays: npt.NDArray[Any]) -> None:
    """Give back the memory of arrays that are mapped from files for reading. They are read again when they are used.

    Other arrays, and systems that know no such advice, are left alone.
    """
    for array in arrays:
        writeable, base = False, array
        while isinstance(base, np.ndarray):
            writeable, base = writeable or base.flags.writeable, base.base  # type: ignore[assignment]
        if not writeable and isinstance(base, mmap.mmap) and hasattr(base, "madvise"):
            base.madvise(mmap.MADV_DONTNEED)


def pieces(array: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    """Yield an array in pieces of a million numbers or fewer, and release what has been read of it."""
    rows = max(1, _AT_ONCE // max(1, math.prod(array.shape[1:])))
    for start in range(0, len(array), rows):
        yield array[start : start + rows]
        release(array)
