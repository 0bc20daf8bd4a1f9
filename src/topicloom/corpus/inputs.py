"""What users hand to `fit`, `transform` and `evaluate`: recognised once, here, and turned into a Corpus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import scipy.sparse as sp

from ..errors import InputError
from ..text import AnyTokenizer, Document, Pretokenized
from ..text.counting import counts_of
from .corpus import Corpus
from .fields import Fields
from .frames import column_names, is_frame, is_numeric, read_frame

Kind = Literal["corpus", "counts", "frame", "texts"]


def kind_of(X: Any) -> Kind:
    """Say what X is: a Corpus, a matrix of counts, a data frame with texts, or texts and token lists.

    Raises:
        InputError: X is none of them.
    """
    if isinstance(X, Corpus):
        return "corpus"
    if isinstance(X, str | bytes):
        raise InputError("give a list of texts, even for one text: [text]")
    if is_frame(X):
        return "counts" if is_numeric(X) else "frame"
    if _is_matrix(X):
        return "counts"
    if not isinstance(X, Iterable) or isinstance(X, dict):
        raise InputError(
            f"a Corpus, a list of texts or of token lists, a data frame or counts are needed; this is {X!r:.80}"
        )
    return "texts"


def corpus_of(
    X: Any,
    vocabulary: Sequence[str] | None = None,
    *,
    fractional: bool = False,
    matrix: Callable[[Any], tuple[Any, Sequence[str] | None]] = lambda X: (X, None),
) -> Corpus:
    """Turn X into a corpus with a vocabulary of its own.

    Args:
        X: a Corpus, texts, token lists, a data frame with a column "text", or (n_docs, n_words) counts.
        vocabulary: the word of each column, when X is a matrix.
        fractional: accepts counts that are not whole.
        matrix: checks a matrix, and returns it with the words of its columns where these are known.

    Raises:
        InputError: X cannot be used.
    """
    kind = kind_of(X)
    if kind == "counts":
        counts, words = matrix(X)
        return Corpus.from_counts(counts, words if vocabulary is None else vocabulary, fractional=fractional)
    _refuse_vocabulary(vocabulary)
    if kind == "corpus":
        return _whole(X, fractional)
    if kind == "frame":
        _require_text(X)
        return Corpus.from_frame(X)
    documents = list(X)
    return Corpus.from_texts(documents)


def corpus_over(
    X: Any,
    words: Sequence[str],
    tokenizer: AnyTokenizer,
    vocabulary: Sequence[str] | None = None,
    *,
    fractional: bool = False,
    matrix: Callable[[Any], tuple[Any, Sequence[str] | None]] = lambda X: (X, None),
) -> Corpus:
    """Turn X into a corpus over the words of a fitted model; words that it does not know are left out, rows never are.

    Args:
        X, vocabulary, fractional, matrix: as for `corpus_of`.
        words: the V words of the model.
        tokenizer: splits texts as the training corpus was split.

    Raises:
        InputError: X cannot be used.
    """
    kind = kind_of(X)
    if kind == "counts":
        if vocabulary is not None:
            return _whole(Corpus.from_counts(X, vocabulary, fractional=fractional), fractional).over(words)
        return Corpus.from_counts(matrix(X)[0], words, fractional=fractional)
    _refuse_vocabulary(vocabulary)
    if kind == "corpus":
        return _whole(X, fractional).over(words)
    columns = None
    if kind == "frame":
        _require_text(X)
        columns = read_frame(X)
    documents = list(X) if columns is None else columns.texts
    are_tokens = bool(documents) and isinstance(documents[0], list | tuple)
    if are_tokens and not isinstance(tokenizer, Pretokenized):
        tokenizer = Pretokenized()
    counts = counts_of(documents, words, tokenizer)
    known = {} if columns is None else {"ids": columns.ids, "labels": columns.labels, "timestamps": columns.timestamps}
    texts, tokens = (None, documents) if are_tokens else (documents, None)
    return Corpus(counts, list(words), Fields.of(len(documents), texts=texts, tokens=tokens, **known), tokenizer)


def corpus_of_documents(
    documents: Sequence[Document],
    words: Sequence[str],
    tokenizer: AnyTokenizer,
    first_row: int = 0,
    n_jobs: int | None = None,
) -> Corpus:
    """Turn documents that were read from a file into a corpus over the words of a fitted model.

    Args:
        first_row: the number of the first document, which is its id if it has no other.

    Raises:
        InputError: a document cannot be used.
    """
    counts = counts_of((document.text for document in documents), words, tokenizer, n_jobs)
    ids = [str(row) if each.id is None else each.id for row, each in enumerate(documents, first_row)]
    labels = [document.label for document in documents]
    times = [document.timestamp for document in documents]
    fields = Fields.of(
        len(documents),
        ids=ids,
        labels=None if all(label is None for label in labels) else labels,
        timestamps=None if all(time is None for time in times) else times,
        texts=[document.text for document in documents],
    )
    return Corpus(counts, list(words), fields, tokenizer)


def _whole(corpus: Corpus, fractional: bool) -> Corpus:
    """The corpus, after a check that its counts are whole where they have to be."""
    if not fractional and not corpus.is_whole:
        raise InputError(
            "the corpus holds counts that are not whole numbers; fractional_counts=True takes them as weights"
        )
    return corpus


def _require_text(frame: Any) -> None:
    names = column_names(frame)
    if "text" not in names:
        raise InputError(
            f"the data frame has no column 'text' (its columns: {', '.join(names[:10])}); make a corpus with "
            "Corpus.from_frame(frame, text=...), or give a frame of counts alone"
        )


def _is_matrix(X: Any) -> bool:
    """Counts and not texts: an array, a sparse matrix, or nested lists of numbers."""
    if sp.issparse(X):
        return True
    if hasattr(X, "dtype"):
        kind = getattr(X.dtype, "kind", "O")  # tensors and polars' columns have types of their own
        return not (kind in "OUST" and any(isinstance(x, str | list | tuple) for x in X))
    if isinstance(X, list | tuple) and X:
        first = X[0]
        tokens = isinstance(first, list | tuple) and all(isinstance(word, str) for word in first)
        return not (first is None or isinstance(first, str) or tokens)
    return hasattr(X, "__array__")


def _refuse_vocabulary(vocabulary: Sequence[str] | None) -> None:
    if vocabulary is not None:
        raise InputError("vocabulary= names the columns of a matrix; a Corpus has its own, and texts make theirs")
