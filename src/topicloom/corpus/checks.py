"""Checks of counts and words that were made elsewhere, and warnings about the documents of a new corpus."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ..errors import InputError
from ..messages import brief, counted
from ..metrics.cooccurrence import Vocabulary, words_by_column
from ..text.counting import Counts, refuse_line_breaks
from ..text.strings import RowNumbers, pieces, unmasked
from .building import index_type
from .fields import as_float32, is_missing
from .frames import refuse_bags

logger = logging.getLogger("topicloom")

_MOST_COUNT = 2**24  # up to here, a float32 holds every whole number
_MANY_DIGITS = 10**21


def no_matrix(counts: Any) -> InputError:
    """Return the error that NumPy cannot read counts."""
    return InputError(
        f"the counts cannot be read as a matrix (they are a {type(counts).__name__}); give rows of the same length, "
        "a NumPy array or a SciPy sparse matrix"
    )


def checked_counts(counts: Any, fractional: bool) -> Counts:
    """Return a copy of counts as CSR, float32.

    Args:
        counts: (n_docs, n_words) sparse or dense.
        fractional: whether counts may be fractions.

    Raises:
        InputError: the shape, the type, an index or a count is not allowed; the message names its place.
    """
    if not sparse.issparse(counts):
        refuse_bags(counts)
        try:
            counts = np.asarray(unmasked(counts))
        except (TypeError, ValueError, RuntimeError):  # lists of several lengths, or a tensor that NumPy cannot read
            raise no_matrix(counts) from None
    if counts.ndim != 2 or 0 in counts.shape:
        raise InputError(f"counts have shape {counts.shape}; give (documents, words), with at least one of each")
    if counts.dtype.kind not in "biuf":
        raise InputError(f"counts are of type {counts.dtype}; give numbers")
    matrix = _as_csr(counts)
    stored = np.empty(matrix.nnz, np.float32)
    first = 0
    for part in pieces(matrix.data):
        stored[first : first + len(part)], is_lost = as_float32(part)
        for fault, bad in _faults(part, is_lost, fractional):
            if bad.any():
                entry = first + int(bad.argmax())
                row = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
                place = f"row {row}, column {matrix.indices[entry]}"
                raise InputError(f"the count in {place} is {_plain(matrix.data[entry])}, which is {fault}")
        first += len(part)
    index = index_type(matrix.nnz)
    arrays = (stored, matrix.indices.astype(index, copy=False), matrix.indptr.astype(index, copy=False))
    return sparse.csr_array(arrays, shape=matrix.shape)


def _faults(
    given: npt.NDArray[Any], is_lost: npt.NDArray[np.bool_], fractional: bool
) -> Iterator[tuple[str, npt.NDArray[np.bool_]]]:
    """Yield each fault that counts may have, and which of the counts have it.

    Args:
        given: (n,) counts.
        is_lost: (n,) whether each was lost in the conversion to float32.
        fractional: whether counts may be fractions.
    """
    may_be_fractions = given.dtype.kind == "f"
    if may_be_fractions:
        yield "not finite", ~np.isfinite(given)
    yield "negative", given < 0
    if fractional:
        yield "too large or too small for 32-bit floating point; scale the counts", is_lost
        return
    if may_be_fractions:
        advice = "`fractional=True` allows it; in a model, `fractional_counts=True`"
        yield f"not a whole number ({advice})", given != np.trunc(given)
    yield f"more than {_MOST_COUNT:,}, up to which counts are exact; divide all counts by a number", given > _MOST_COUNT


def _plain(number: Any) -> str:
    """Return a number with all its digits, if these are not many."""
    value = number.item()
    is_whole = isinstance(value, int) or (
        math.isfinite(value) and value == int(value) and abs(int(value)) < _MANY_DIGITS
    )
    return str(int(value)) if is_whole else str(value)


def checked_vocabulary(vocabulary: Vocabulary | None, n_words: int) -> list[str]:
    """Return the word of each column.

    Args:
        vocabulary: the words, as `words_by_column` reads them; None stands for "word0", "word1", ...
        n_words: the number of columns.

    Raises:
        InputError: the number of words is not the number of columns, their order is not known, or a word occurs twice,
            is blank, or contains a line break.
    """
    if isinstance(vocabulary, str) or not isinstance(vocabulary, Iterable | None):
        raise InputError(f"`vocabulary` is {brief(vocabulary)}; give a list with the word of each column")
    given = [f"word{i}" for i in range(n_words)] if vocabulary is None else words_by_column(vocabulary)
    unknown = next((column for column, word in enumerate(given) if is_missing(word)), None)
    if unknown is not None:
        raise InputError(f"the word of column {unknown} in `vocabulary` is {given[unknown]}; give every column a word")
    words = [str(word) for word in given]
    if len(words) != n_words:
        raise InputError(
            f"the vocabulary has {counted(len(words), 'word')}, and the counts have {counted(n_words, 'column')}"
        )
    _refuse_repeated(words)
    refuse_line_breaks(words)
    return words


def wanted_words(vocabulary: Vocabulary) -> list[Any]:
    """Return the words of a vocabulary over which documents are to be counted, by column.

    Raises:
        InputError: it is a single string, its order is not known, or a word occurs twice.
    """
    if isinstance(vocabulary, str) or not isinstance(vocabulary, Iterable):
        raise InputError(f"`vocabulary` is {brief(vocabulary)}; give a list of words")
    words = words_by_column(vocabulary)
    _refuse_repeated(words)
    return words


def _refuse_repeated(words: list[Any]) -> None:
    if len(set(words)) < len(words):
        seen: set[Any] = set()
        twice = next(word for word in words if word in seen or seen.add(word))  # type: ignore[func-returns-value]
        raise InputError(f"the vocabulary contains {twice!r} twice; every column needs a word of its own")


def _as_csr(counts: Any) -> Counts:
    """Copy a matrix as CSR without zeros or duplicates, in its own type or, if duplicates were added up, a wider one.

    SciPy trusts the arrays of a sparse matrix, so they are checked before and after.

    Raises:
        InputError: an index is out of range, or the arrays of the matrix do not fit together.
    """
    if sparse.issparse(counts):
        _check_arrays(counts)
        try:
            matrix = _csr_of_coo(counts) if counts.format == "coo" else sparse.csr_array(counts, copy=True)
        except (AttributeError, IndexError, OverflowError, TypeError, ValueError):
            raise _damaged("its arrays do not fit together") from None
        _check_arrays(matrix)
    else:  # SciPy reads neither float16 nor another order of bytes
        known = np.float32 if counts.dtype == np.float16 else counts.dtype.newbyteorder("=")
        matrix = sparse.csr_array(counts.astype(known, copy=False))
    matrix.sort_indices()
    if not matrix.has_canonical_format:  # sums of duplicates may be too large for the given type
        matrix = matrix.astype(np.promote_types(np.float64, matrix.dtype if matrix.dtype.kind == "f" else np.float64))
        matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def _csr_of_coo(counts: Any) -> Counts:
    """Convert COO. SciPy's own conversion would add duplicates up in the given type."""
    rows = counts.row.astype(np.intp, copy=False)
    order = np.argsort(rows, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=counts.shape[0]))])
    return sparse.csr_array((counts.data[order], counts.col[order], starts), shape=counts.shape)


def _check_arrays(counts: Any) -> None:
    kind, (n_rows, n_columns) = counts.format, counts.shape
    if kind == "dok":
        return
    data = counts.data
    if kind == "lil":
        rows = counts.rows
        if not rows.shape == data.shape == (n_rows,) or [*map(len, rows)] != [*map(len, data)]:
            raise _damaged("it has more indices than counts, or fewer")
    elif kind == "coo":
        _check_indices(counts.row, n_rows, "rows", len(data))
        _check_indices(counts.col, n_columns, "columns", len(data))
    elif kind == "dia":
        if data.ndim != 2 or counts.offsets.ndim != 1 or len(counts.offsets) != len(data):
            raise _damaged("it has more offsets than diagonals, or fewer")
        if len(data) and not -n_rows < int(counts.offsets.min()) <= int(counts.offsets.max()) < n_columns:
            raise _damaged("an offset is out of range")
    else:
        height, width = data.shape[1:] if kind == "bsr" and data.ndim == 3 else (1, 1)
        if data.ndim != (3 if kind == "bsr" else 1) or n_rows % height or n_columns % width:
            raise _damaged("its counts have another shape")
        n_starts, size = (n_columns, n_rows) if kind == "csc" else (n_rows // height, n_columns // width)
        starts = counts.indptr
        if (
            starts.dtype.kind not in "iu"
            or starts.shape != (n_starts + 1,)
            or starts[0] != 0
            or (starts[1:] < starts[:-1]).any()
            or starts[-1] > len(counts.indices)
        ):
            raise _damaged("its indptr does not fit its indices")
        _check_indices(counts.indices, size, "rows" if kind == "csc" else "columns", len(data))


def _check_indices(indices: Any, size: int, name: str, n_counts: int) -> None:
    if indices.ndim != 1 or indices.dtype.kind not in "iu" or len(indices) != n_counts:
        raise _damaged("it has more indices than counts, or fewer")
    if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < size:
        raise _damaged(f"its indices go from {indices.min()} to {indices.max()}, and it has {size} {name}")


def _damaged(fault: str) -> InputError:
    return InputError(f"the sparse matrix is damaged: {fault}; make it again")


def warn_of_empty(is_empty: npt.NDArray[np.bool_]) -> None:
    """Warn if documents have no word of the vocabulary.

    Args:
        is_empty: (n_docs,) whether each document has none.
    """
    if n_empty := int(is_empty.sum()):
        logger.warning(
            "%s of %s no word of the vocabulary; %s",
            f"{n_empty:,}",
            counted(len(is_empty), "document") + (" has" if n_empty == 1 else " have"),
            "it keeps its row" if n_empty == 1 else "they keep their rows",
        )


def warn_of_ids(ids: Sequence[str]) -> None:
    """Warn if an id occurs more than once, or is empty."""
    if isinstance(ids, RowNumbers):
        return
    # Hashes take 8 bytes for each document; the ids of a large corpus may not fit in memory.
    hashes = np.fromiter(map(hash, ids), np.int64, len(ids))
    distinct, n_each = np.unique(hashes, return_counts=True)
    repeated = set(distinct[n_each > 1].tolist()) | {hash("")}
    if len(distinct) == len(ids) and not (hashes == hash("")).any():
        return
    found = Counter(each for each, digest in zip(ids, hashes.tolist(), strict=True) if digest in repeated)
    n_empty = found.pop("", 0)
    several = [(each, count) for each, count in found.most_common() if count > 1]
    clauses = []
    if several:
        clauses.append(f"the id {brief(several[0][0])} occurs {several[0][1]:,} times")
        if n_more := len(several) - 1:
            clauses.append("1 other id is repeated" if n_more == 1 else f"{n_more:,} other ids are repeated")
    if n_empty:
        clauses.append("1 document has an empty id" if n_empty == 1 else f"{n_empty:,} documents have an empty id")
    logger.warning("%s; give each document an id of its own, by which it can be found", ", ".join(clauses))
