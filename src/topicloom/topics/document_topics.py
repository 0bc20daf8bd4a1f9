"""DocumentTopics: the result of inference, together with the fields of the documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from ..corpus.fields import Categories, Fields, WithFields
from ..display import html_table
from ..errors import InputError
from ..messages import counted
from ..text import AnyTokenizer
from ..text.languages import language_name
from ..text.pieces import PARENT
from ..text.recognition import other_language

# A notebook shows this many documents, and this many characters of each text.
_DOCUMENTS_SHOWN, _CHARACTERS_SHOWN = 10, 200
# If more than this share of at least this many documents has no known word, the user probably made a mistake.
_MOST_EMPTY, _FEWEST_CHECKED = 0.5, 20
_ROWS_AT_ONCE = 1024
_LANGUAGE_SAMPLE = 200  # documents by which the language is recognised


@dataclass(frozen=True, eq=False, repr=False)
class DocumentTopics(WithFields):
    """Topic shares of documents; row i is document i, always.

    Attributes:
        theta: (n_docs, K) float32, rows sum to 1. A document without a known word has the model's average shares.
        empty: (n_docs,) True for a document without a known word. A model that needs no words has none.
        fields: what is known of the documents; `ids`, `labels`, `times` and `texts` are its parts.
        positions: (n_docs, 2) float32, the places of the documents on the map of a run; None if they are not known.
        fit: (n_docs,) how well the topics fit each document, as in `Topics.outliers`; None if it was not asked for.

    Examples:
        >>> import topicloom as tl
        >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
        >>> found = tl.LDA(3, random_state=0).fit(texts).infer(["the cat and the dog", "xyz"])
        >>> found
        DocumentTopics(2 documents, 3 topics)
        >>> found.empty.tolist()
        [False, True]
        >>> found[:1].theta.shape
        (1, 3)
    """

    theta: npt.NDArray[Any]
    empty: npt.NDArray[np.bool_]
    fields: Fields
    positions: npt.NDArray[Any] | None = None
    fit: npt.NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.theta)

    def __repr__(self) -> str:
        return f"DocumentTopics({counted(len(self), 'document')}, {counted(self.theta.shape[1], 'topic')})"

    def _repr_html_(self) -> str:
        part = self[:_DOCUMENTS_SHOWN]
        columns: dict[str, Any] = {"id": part.ids}
        if part.labels is not None:
            columns["class"] = part.labels
        columns["topic"] = part.main_topics
        columns["share"] = [float(row.max()) for row in part.theta]
        if part.texts is not None:
            columns["text"] = [text[:_CHARACTERS_SHOWN] for text in part.texts]
        rows = list(zip(*columns.values(), strict=True))
        more = f"and {counted(len(self) - len(part), 'more document')}" if len(self) > len(part) else ""
        return html_table(list(columns), rows, repr(self), more)

    def __getitem__(self, rows: Any) -> DocumentTopics:
        chosen = np.atleast_1d(np.arange(len(self))[rows])
        places = None if self.positions is None else self.positions[chosen]
        fields, fit = self.fields.take(chosen), None if self.fit is None else self.fit[chosen]
        theta, empty = self.theta[chosen], self.empty[chosen]
        return replace(self, theta=theta, empty=empty, fields=fields, positions=places, fit=fit)

    @property
    def main_topics(self) -> list[int | None]:
        """The largest topic of each document; None where the document is empty."""
        largest = self.theta.argmax(axis=1).tolist()
        return [None if empty else topic for topic, empty in zip(largest, self.empty, strict=True)]

    @property
    def shares(self) -> npt.NDArray[Any]:
        """(K,) float64, the mean of theta over the documents that are not empty; zeros where all are."""
        return sums_of_shares(self.theta, self.empty) / max(len(self) - int(self.empty.sum()), 1)

    def parts(self, n_docs: int) -> Iterator[DocumentTopics]:
        """Yield the documents in parts of at most `n_docs`."""
        for start in range(0, len(self), n_docs):
            yield self[start : start + n_docs]


def sums_of_shares(theta: npt.NDArray[Any], empty: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Return the sums (K,) of the shares (n_docs, K) of documents that are not empty, without a copy of them."""
    total = np.zeros(theta.shape[1])
    for first in range(0, len(theta), _ROWS_AT_ONCE):
        rows = theta[first : first + _ROWS_AT_ONCE][~empty[first : first + _ROWS_AT_ONCE]]
        total = np.concatenate([total[None], rows], dtype=np.float64).sum(axis=0)
    return total


def sum_by_parent(pieces: DocumentTopics, n_tokens: npt.ArrayLike) -> DocumentTopics:
    """Return the topic shares of texts that were divided into pieces (`split_texts`), in their order.

    The shares of a text are the mean over its pieces, weighted by their numbers of tokens. Its label, its time and its
    covariates are those of its first piece.

    Args:
        pieces: the pieces, with the covariate `parent`. Pieces of a text come one after another. An id such as
            `parent#1` begins the next text, also one with the same id.
        n_tokens: (n_docs,) how many tokens of each piece the model knows.

    Raises:
        InputError: the documents do not say from which texts they are, or `n_tokens` has another length.

    Examples:
        >>> import topicloom as tl
        >>> from topicloom.topics.document_topics import sum_by_parent
        >>> pieces = ["cat dog mouse", "rain sun snow", "cat dog mouse cat"]
        >>> corpus = tl.Corpus.from_texts(pieces * 4, covariates={"parent": list("abb") * 4}, min_df=1, max_df=1.0)
        >>> found = tl.LDA(2, random_state=0).fit(corpus).infer(corpus)
        >>> texts = sum_by_parent(found[:3], [3, 3, 4])
        >>> list(texts.ids)
        ['a', 'b']
        >>> bool(abs(texts.theta[1] - (found.theta[1] * 3 + found.theta[2] * 4) / 7).max() < 1e-6)
        True
    """
    sums, totals = _sums(pieces, n_tokens)
    return _means(sums, totals, pieces.theta.dtype)


def sums_by_parent(parts: Iterable[tuple[DocumentTopics, npt.ArrayLike]]) -> Iterator[DocumentTopics]:
    """Yield what `sum_by_parent` returns for documents that come in parts, with only one part in memory.

    Args:
        parts: the pieces and their numbers of tokens. A text may begin in one part and end in a later one.

    Raises:
        InputError: as for `sum_by_parent`.
    """
    last: tuple[DocumentTopics, npt.NDArray[np.float64]] | None = None  # the last text, which may go on
    for pieces, n_tokens in parts:
        if not len(pieces):
            continue
        sums, totals = _sums(pieces, n_tokens)
        dtype = pieces.theta.dtype
        if last is not None:
            before, total = last
            if before.ids[0] == sums.ids[0] and not _first_pieces(pieces[:1])[0]:
                theta = np.where(total > 0, before.theta, 0) + np.where(totals[:1] > 0, sums.theta[:1], 0)
                total = total + totals[:1]
                last = replace(before, theta=theta if total[0] > 0 else before.theta, empty=total == 0), total
                sums, totals = sums[1:], totals[1:]
                if not len(sums):
                    continue
            yield _means(*last, dtype)
        if len(sums) > 1:
            yield _means(sums[:-1], totals[:-1], dtype)
        last = sums[-1:], totals[-1:]
    if last is not None:
        yield _means(*last, dtype)


def _sums(pieces: DocumentTopics, n_tokens: npt.ArrayLike) -> tuple[DocumentTopics, npt.NDArray[np.float64]]:
    """Return texts whose `theta` is a sum over tokens, and their numbers of tokens.

    The `theta` of a text without a token is that of its first piece.
    """
    column = pieces.fields.covariates.get(PARENT)
    weights = np.asarray(n_tokens, dtype=np.float64)
    if weights.shape != (len(pieces),):
        raise InputError(
            f"`n_tokens` has {len(weights):,} numbers, and there are {len(pieces):,} documents; give as many"
        )
    if not isinstance(column, Categories):
        raise InputError(
            f"the documents have no covariate {PARENT!r}, which names the text that each is from; read them with "
            "`split_texts`"
        )
    begins = _first_pieces(pieces) | (np.diff(column.codes, prepend=column.codes[:1]) != 0)
    begins[:1] = True
    starts = np.flatnonzero(begins).tolist()
    weights = np.where(pieces.empty, 0.0, weights)
    totals = np.add.reduceat(weights, starts) if starts else weights
    theta = np.add.reduceat(weights[:, None] * pieces.theta, starts) if starts else pieces.theta
    first = pieces[starts] if starts else pieces
    theta = np.where(totals[:, None] > 0, theta, first.theta)
    covariates = {name: values for name, values in first.fields.covariates.items() if name != PARENT}
    parents = first.fields.covariates[PARENT]
    assert isinstance(parents, Categories)
    fields = replace(
        first.fields, ids=[str(name) for name in parents.values()], texts=None, tokens=None, vectors=None, encoder=None,
        covariates=covariates,
    )  # fmt: skip
    return DocumentTopics(theta.astype(np.float64), totals == 0, fields), totals


def _first_pieces(pieces: DocumentTopics) -> npt.NDArray[np.bool_]:
    """Return which pieces are the first of their text by their ids, (n_docs,), as two texts may have the same id."""
    parents = pieces.fields.covariates[PARENT]
    return np.array([id == f"{parent}#1" for id, parent in zip(pieces.ids, parents, strict=True)], np.bool_)


def _means(sums: DocumentTopics, totals: npt.NDArray[np.float64], dtype: npt.DTypeLike) -> DocumentTopics:
    """Return texts with the mean of their sums. Those without a token have the shares of a piece already."""
    return replace(sums, theta=(sums.theta / np.where(totals > 0, totals, 1)[:, None]).astype(dtype))


def empty_warning(n_empty: int, n_docs: int) -> str:
    """Say how many documents got the model's average shares, and why."""
    if n_empty == 1:
        which = "the document" if n_docs == 1 else f"1 of {n_docs} documents"
        return (
            f"{which} contains no word that the model knows; no topic can be assigned to it, and it gets the model's "
            "average shares"
        )
    return (
        f"{n_empty} of {n_docs} documents contain no word that the model knows; no topic can be assigned to them, and "
        "they get the model's average shares"
    )


def require_known(
    n_empty: int, n_docs: int, texts: Sequence[str] | None, tokenizer: AnyTokenizer, which: str = ""
) -> None:
    """Check that documents have words of a model, which was otherwise probably not made for them.

    Args:
        n_empty: how many of the documents have no word of the model.
        n_docs: how many documents there are. A few are not checked.
        texts: their texts, by which their language is recognised; None if they are not known.
        tokenizer: the tokenizer of the model.
        which: which documents these are, if they are not all, such as "first ".

    Raises:
        InputError: most of the documents have no word of the model.
    """
    if n_docs < _FEWEST_CHECKED or n_empty <= _MOST_EMPTY * n_docs:
        return
    trained = getattr(tokenizer, "language", None)
    why = ""
    if trained is not None and texts is not None:
        found = other_language(trained, islice(texts, _LANGUAGE_SAMPLE))
        if found is not None:
            why = f": the texts look {language_name(found)}, and the model was trained on {language_name(trained)}"
    raise InputError(
        f"{n_empty:,} of the {which}{n_docs:,} documents contain no word that the model knows{why}; give a model of "
        "such texts, or `force=True` to use them all the same"
    )
