"""Word vectors in the forms that people have them in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..errors import InputError
from .files import read_word_vectors
from .word_vectors import OTHER_WORDS, Floats, WordVectors


@runtime_checkable
class KeyedVectors(Protocol):
    """Word vectors of gensim: `vectors` has a row for each word of `index_to_key`."""

    index_to_key: Any
    vectors: Any


def as_word_vectors(
    vectors: WordVectors | Mapping[str, Any] | KeyedVectors | str | Path,
    vocabulary: Iterable[str] | None = None,
    *,
    size: int | None = None,
) -> WordVectors:
    """Return word vectors as `WordVectors`.

    Args:
        vectors: WordVectors, which are returned as they are; a dictionary of words and their (L,) vectors; gensim's
            KeyedVectors; or the path of a file that `read_word_vectors` can read.
        vocabulary: the words that are needed. Of a dictionary, gensim's vectors and a file, no others are kept.
        size: the dimensions that the vectors of a file should have.

    Raises:
        InputError: `vectors` is something else, contains none of the words, or has vectors that cannot be used.
    """
    if isinstance(vectors, WordVectors):
        return vectors
    if isinstance(vectors, str | Path):
        return read_word_vectors(vectors, vocabulary, size=size)
    pairs: Iterable[tuple[Any, Any]]
    if isinstance(vectors, Mapping):
        pairs = vectors.items()
    elif isinstance(vectors, KeyedVectors):
        pairs = zip(vectors.index_to_key, vectors.vectors, strict=True)
    else:
        raise InputError(
            "word vectors should be WordVectors, a dictionary of words and vectors, gensim's KeyedVectors (model.wv), "
            f"or the path of a file; these are of type {type(vectors).__name__}"
        )
    wanted = None if vocabulary is None else set(vocabulary)
    kept = [(word, vector) for word, vector in pairs if wanted is None or word in wanted]
    if not kept and wanted is not None:
        raise InputError(f"none of the {len(wanted):,} words of the vocabulary has a word vector; {OTHER_WORDS}")
    rows: list[Floats] = []
    for word, vector in kept:
        rows.append(_row(word, vector, len(rows[0]) if rows else None))
    return WordVectors([word for word, _ in kept], rows)


def _row(word: Any, vector: Any, size: int | None) -> Floats:
    """Return a vector as (L,) numbers, L being `size` where it is known."""
    if not isinstance(word, str):
        raise InputError(f"the words of word vectors should be strings; {word!r} is of type {type(word).__name__}")
    try:
        row = np.asarray(vector, np.float32)
    except (TypeError, ValueError):
        raise InputError(f"the vector of {word!r} does not consist of numbers; correct it") from None
    if row.ndim != 1 or len(row) != (len(row) if size is None else size):
        wanted = "one dimension" if size is None else f"{size} numbers, as the first vector has"
        raise InputError(f"the vector of {word!r} has shape {row.shape}; it should have {wanted}")
    return row
