"""Arrays that are memory-mapped: their pages count as memory of the process until they are released."""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

_AT_ONCE = 1 << 20  # numbers of a piece


def release(*arrays: npt.NDArray[Any]) -> None:
    """Give back the memory of arrays that are mapped from files for reading. They are read again when they are used.

    Other arrays, and systems that know no such advice, are left alone.
    """
    for array in arrays:
        mapped = _mapping_of(array)
        if mapped is not None and hasattr(mapped, "madvise"):
            mapped.madvise(mmap.MADV_DONTNEED)


def _mapping_of(array: npt.NDArray[Any]) -> mmap.mmap | None:
    """Return the mapped file that an array is a part of, if it is mapped for reading alone."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return None
        base = base.base
    return base if isinstance(base, mmap.mmap) else None


def asked_rows(rows: Any) -> Any:
    """Return the rows in the brackets after a corpus, for which scikit-learn writes [rows, ...].

    Raises:
        IndexError: there is another second index, such as that of a word.
    """
    if not isinstance(rows, tuple):
        return rows
    if len(rows) == 2 and (rows[1] is Ellipsis or rows[1] == slice(None)):
        return rows[0]
    raise IndexError(
        "a corpus is indexed by its documents alone; give a list for several, such as corpus[[1, 2]], and select words "
        "with `over`"
    )


def rows_of(counts: sparse.csr_array, rows: npt.NDArray[np.intp]) -> sparse.csr_array:
    """Return some rows of counts. Consecutive rows of memory-mapped counts stay on disk."""
    if len(rows) == 0 or (np.diff(rows) != 1).any() or _mapping_of(counts.indices) is None:
        return counts[rows]
    indptr = counts.indptr[rows[0] : rows[-1] + 2]
    part = slice(indptr[0], indptr[-1])
    made = sparse.csr_array((len(rows), counts.shape[1]), dtype=counts.dtype)
    # The constructor would copy what is a small part of an array.
    made.data, made.indices, made.indptr = counts.data[part], counts.indices[part], indptr - indptr[0]
    return made


def pieces(array: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    """Yield an array in pieces of a million numbers or fewer, and release what has been read of it."""
    rows = max(1, _AT_ONCE // max(1, math.prod(array.shape[1:])))
    for start in range(0, len(array), rows):
        yield array[start : start + rows]
        release(array)
