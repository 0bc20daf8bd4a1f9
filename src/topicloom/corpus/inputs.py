"""What users hand to fit and transform: told apart, and turned into a Corpus or counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import scipy.sparse as sp

from ..errors import InputError


def is_matrix(X: Any) -> bool:
    """Counts and not texts: an array, a sparse matrix, a data frame, or nested lists of numbers."""
    if sp.issparse(X) or hasattr(X, "columns"):
        return True
    if hasattr(X, "dtype"):
        kind = getattr(X.dtype, "kind", "O")  # tensors and polars' columns have types of their own
        return not (kind in "OUST" and any(isinstance(x, str | list | tuple) for x in X))
    if isinstance(X, list | tuple) and X:
        first = X[0]
        tokens = isinstance(first, list | tuple) and all(isinstance(word, str) for word in first)
        return not (first is None or isinstance(first, str) or tokens)
    return hasattr(X, "__array__")


def as_texts(X: Any) -> Iterable[Any]:
    """X as an iterable of texts or token lists.

    Raises:
        InputError: it is a single text, or nothing that holds texts.
    """
    if isinstance(X, str | bytes):
        raise InputError("give a list of texts, even for one text: [text]")
    if not isinstance(X, Iterable):
        raise InputError(f"a Corpus, a list of texts or of tokens, or counts are needed; this is {X!r}")
    return X


def refuse_vocabulary(vocabulary: Sequence[str] | None) -> None:
    """Raises InputError when words are given for the columns of something that has no columns."""
    if vocabulary is not None:
        raise InputError("vocabulary= names the columns of a matrix; a Corpus has its own, and texts make theirs")
