"""Documents as counts of words, and checks of counts and words that were made elsewhere."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ..errors import InputError
from ..text.counting import Counts, refuse_line_breaks
from .vocabulary import index_type


@dataclass(frozen=True, eq=False, repr=False)
class CountedDocuments:
    """Documents as counts of words.

    Attributes:
        counts: (n_docs, n_words) CSR, float32, without explicit zeros or duplicates, columns sorted within a row.
        vocabulary: the word of each column.
    """

    counts: Counts
    vocabulary: list[str]

    @cached_property
    def is_empty(self) -> npt.NDArray[np.bool_]:
        """(n_docs,) True where a document has no word of the vocabulary."""
        empty: npt.NDArray[np.bool_] = np.diff(self.counts.indptr) == 0
        return empty

    @cached_property
    def is_whole(self) -> bool:
        """Whether all counts are whole numbers."""
        return bool(np.array_equal(self.counts.data, np.floor(self.counts.data)))

    @property
    def shape(self) -> tuple[int, int]:
        """(n_docs, n_words). scikit-learn needs it to split a corpus."""
        return self.n_docs, self.n_words

    @property
    def n_docs(self) -> int:
        """The number of documents."""
        return int(self.counts.shape[0])

    @property
    def n_words(self) -> int:
        """The size of the vocabulary."""
        return int(self.counts.shape[1])

    @cached_property
    def n_tokens(self) -> int:
        """The sum of all counts."""
        return round(float(self.counts.data.sum(dtype=np.float64)))

    @cached_property
    def counts_digest(self) -> str:
        """A short digest of the words and the counts."""
        digest = hashlib.sha256("\n".join(self.vocabulary).encode("utf-8", "surrogatepass"))
        counts = self.counts
        for array in (counts.indptr.astype(np.int64), counts.indices.astype(np.int64), counts.data.astype(np.float64)):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()[:16]

    def __len__(self) -> int:
        return self.n_docs

    def __repr__(self) -> str:
        return f"Corpus({self.n_docs:,} documents, {self.n_words:,} words, {self.n_tokens:,} tokens)"

    def _repr_html_(self) -> str:
        from .summary import corpus_as_html

        return corpus_as_html(self)


def checked_counts(counts: Any, fractional: bool) -> Counts:
    """Return a copy of counts as CSR, float32.

    Args:
        counts: (n_docs, n_words) sparse or dense.
        fractional: whether counts may be fractions.

    Raises:
        InputError: the shape, the type, an index or a count is not allowed; the message names its place.
    """
    if not sparse.issparse(counts):
        try:
            counts = np.asarray(counts)
        except (TypeError, ValueError, RuntimeError):  # lists of several lengths, or a tensor that NumPy cannot read
            raise InputError(
                f"the counts cannot be read as a matrix (they are a {type(counts).__name__}); give rows of the same "
                "length, a NumPy array or a SciPy sparse matrix"
            ) from None
    if counts.ndim != 2 or 0 in counts.shape:
        raise InputError(f"counts have shape {counts.shape}; give (documents, words), with at least one of each")
    if counts.dtype.kind not in "biuf":
        raise InputError(f"counts are of type {counts.dtype}; give numbers")
    _check_indices(counts)
    if counts.dtype == np.float16:
        counts = counts.astype(np.float32)  # SciPy has no sparse matrices of this type
    matrix = sparse.csr_array(counts).astype(np.float32)  # always a copy
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    faults = {
        "not finite": ~np.isfinite(matrix.data),
        "negative": matrix.data < 0,
        "not a whole number (`fractional=True` allows it; in a model, `fractional_counts=True`)": matrix.data
        != np.trunc(matrix.data),
    }
    if fractional:
        faults.popitem()
    for fault, bad in faults.items():
        if bad.any():
            entry = int(bad.argmax())
            row = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
            column = int(matrix.indices[entry])
            raise InputError(f"the count in row {row}, column {column} is {matrix.data[entry]:g}, which is {fault}")
    index = index_type(matrix.nnz)
    arrays = (matrix.data, matrix.indices.astype(index, copy=False), matrix.indptr.astype(index, copy=False))
    return sparse.csr_array(arrays, shape=matrix.shape)


def checked_vocabulary(vocabulary: Iterable[str] | None, n_words: int) -> list[str]:
    """Return the word of each column.

    Args:
        vocabulary: the words; None stands for "word0", "word1", ...
        n_words: the number of columns.

    Raises:
        InputError: the number of words is not the number of columns, or a word occurs twice, is blank, or contains a
            line break.
    """
    words = [f"word{i}" for i in range(n_words)] if vocabulary is None else [str(word) for word in vocabulary]
    if len(words) != n_words:
        raise InputError(f"the vocabulary has {len(words)} words, and the counts have {n_words} columns")
    if len(set(words)) < n_words:
        seen: set[str] = set()
        twice = next(word for word in words if word in seen or seen.add(word))  # type: ignore[func-returns-value]
        raise InputError(f"the vocabulary contains {twice!r} twice; every column needs a word of its own")
    refuse_line_breaks(words)
    return words


def _check_indices(counts: Any) -> None:
    """Refuse a damaged sparse matrix. SciPy trusts its indices, and would read any memory that a wrong one points to.

    Raises:
        InputError: an index is out of range, or the arrays of the matrix do not fit together.
    """
    kind = getattr(counts, "format", None)
    if kind == "coo":
        axes = {"rows": (counts.row, counts.shape[0]), "columns": (counts.col, counts.shape[1])}
    elif kind in ("csr", "csc"):
        axis = 1 if kind == "csr" else 0
        axes = {"columns" if axis else "rows": (counts.indices, counts.shape[axis])}
        starts = counts.indptr
        rising = len(starts) == counts.shape[1 - axis] + 1 and starts[0] == 0 and bool((np.diff(starts) >= 0).all())
        if not rising or starts[-1] > len(counts.indices):
            raise InputError("the sparse matrix is damaged: its indptr does not fit its indices; make it again")
    else:
        return
    for name, (indices, size) in axes.items():
        if len(indices) != len(counts.data):
            raise InputError("the sparse matrix is damaged: it has more indices than counts, or fewer; make it again")
        if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < size:
            raise InputError(
                f"the sparse matrix is damaged: its indices go from {indices.min()} to {indices.max()}, and it has "
                f"{size} {name}; make it again"
            )
