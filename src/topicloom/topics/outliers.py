"""Documents that fit no topic: no topic has a large share of them, and no other documents are like them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ..corpus import Corpus
from ..corpus.concatenation import can_split
from ..errors import InputError
from ..text.counting import chunked, count_chunks
from .table import OUTLIER

Array = npt.NDArray[Any]

N_SIMILAR = 5  # documents that are most similar to each one
_MOST_COMPARED = 20_000  # documents with which each one is compared; of more, a sample is taken
_AT_ONCE = 256  # documents whose words are compared at a time
_SHARE, _ALL_WORDS, _WORDS, _VECTORS = "share", "all words", "words", "vectors"  # the criteria


@dataclass(frozen=True, eq=False)
class Fits:
    """How well topics fit documents.

    Attributes:
        fit: (n_docs,) the share of the documents of the run that fit no better, from 0 to 1. A document without a known
            word has 0.
        share: (n_docs,) the share of each document's largest topic.
        similarity: (n_docs,) the mean cosine of each document with the five that are most similar to it.
        score: (n_docs,) what documents are ranked by; the lowest fit worst.
        by_vectors: whether `similarity` is that of vectors; otherwise it is that of words.
    """

    fit: Array
    share: Array
    similarity: Array
    score: Array
    by_vectors: bool

    @property
    def meaning(self) -> str:
        """What `fit` is, in words."""
        alike = "words and a similar vector" if self.by_vectors else "words"
        return (
            "fit is the share of the run's documents that fit no better; it is low if no topic has a large share of a "
            f"document, and no other document has similar {alike}"
        )

    @property
    def is_outlier(self) -> npt.NDArray[np.bool_]:
        """(n_docs,) True for documents that fit no topic: fewer than 5 % of the documents of the run fit so badly."""
        return np.asarray(self.fit < OUTLIER)


@dataclass(frozen=True, eq=False)
class Outliers:
    """The documents of a run, by which it is judged how well the topics fit these and other documents.

    A document fits the topics badly if its largest topic has a small share, if no documents have similar words, and,
    where there are vectors, if no documents have similar ones. For each of these criteria, p is the share of the
    run's documents that are at least as bad. The score of a document is the mean logarithm of its p (Fisher's way of
    combining tests), and its fit is the share of the run's documents whose scores are not higher.

    Similar words are those with similar TF-IDF weights, by the cosine; all words of the texts count, also those that
    the model does not know. The similarity is the mean of the five highest ones. No document is compared with itself.
    If the run has more than 20,000 documents, a random part of them stands for all.

    Args:
        corpus: the documents of the run.
        theta: (n_docs, K) their topic shares.
        empty: (n_docs,) True for documents without a known word.
        tokenizer: the tokenizer, for words that the corpus leaves out.
        seed: of the random part.

    Raises:
        InputError: no document has a known word.

    >>> import topicloom as tl
    >>> corpus = tl.Corpus.from_texts(["cat dog mouse", "rain sun snow"] * 20 + ["dog snow bank"], min_df=1)
    >>> topics = tl.Topics(tl.LDA(2, random_state=0).fit(corpus), corpus)
    >>> found = Outliers(corpus, topics.documents.theta, topics.documents.empty, corpus.tokenizer).own()
    >>> int(found.score.argmin())
    40
    """

    corpus: Corpus
    theta: Array
    empty: npt.NDArray[np.bool_]
    tokenizer: Any
    seed: int = 0

    def own(self) -> Fits:
        """Return how well the topics fit the documents of the run."""
        criteria, rows = self._criteria(self.corpus), self._compared
        others = np.setdiff1d(np.arange(len(self.corpus)), rows)
        values = []
        for name in criteria:
            found = np.empty(len(self.corpus))
            found[rows] = self._usual(name)
            if len(others):
                found[others] = self._values(name, self.corpus[others], self.theta[others])
            values.append(found)
        is_compared = np.zeros(len(self.corpus), np.bool_)
        is_compared[rows] = True
        return self._fits(criteria, values, self.empty, is_compared)

    def of(self, corpus: Corpus, theta: Array, empty: npt.NDArray[np.bool_]) -> Fits:
        """Return how well the topics fit other documents.

        Args:
            corpus: the documents.
            theta: (n_docs, K) their topic shares.
            empty: (n_docs,) True for documents without a known word.
        """
        criteria = self._criteria(corpus)
        values = [self._values(name, corpus, theta) for name in criteria]
        return self._fits(criteria, values, empty, np.zeros(len(corpus), np.bool_))

    def _fits(
        self, criteria: Sequence[str], values: Sequence[Array], empty: Array, is_compared: npt.NDArray[np.bool_]
    ) -> Fits:
        """Return what follows from the values of each criterion.

        Args:
            criteria: their names.
            values: (n_docs,) each; the lowest fit worst.
            empty: (n_docs,) True for documents without a known word.
            is_compared: (n_docs,) True for those that are among the compared documents themselves.
        """
        usual = [self._usual(name) for name in criteria]
        all_compared = np.ones(len(self._compared), np.bool_)
        reference = _mean_log([_share_below(each, each, all_compared) for each in usual])
        shares = [_share_below(each, value, is_compared) for each, value in zip(usual, values, strict=True)]
        score = np.where(empty, -np.inf, _mean_log(shares))
        fit = np.where(empty, 0.0, _share_below(reference, score, is_compared))
        return Fits(fit, values[0], np.nan_to_num(values[-1]), score, criteria[-1] == _VECTORS)

    def _criteria(self, corpus: Corpus) -> list[str]:
        """Return the names of the criteria by which documents can be judged."""
        has_texts = all(each.texts is not None for each in (self.corpus, corpus)) and can_split(self.tokenizer)
        has_vectors = self.corpus.vectors is not None and corpus.vectors is not None
        return [_SHARE, _ALL_WORDS if has_texts else _WORDS, *([_VECTORS] if has_vectors else [])]

    @cached_property
    def _compared(self) -> Array:
        """The rows of the documents with which others are compared."""
        rows: Array = np.flatnonzero(~self.empty)
        if not len(rows):
            raise InputError("no document of the run has a word that the model knows, so none can be compared")
        if len(rows) > _MOST_COMPARED:
            rows = np.sort(np.random.default_rng(self.seed).choice(rows, _MOST_COMPARED, replace=False))
        return rows

    @cached_property
    def _known(self) -> dict[str, Any]:
        """The values of the compared documents, and what similar ones are found by."""
        return {}

    def _usual(self, name: str) -> Array:
        """Return the values of the compared documents by a criterion, (n_compared,)."""
        if name not in self._known:
            rows = self._compared
            self._known[name] = self._values(name, self.corpus[rows], self.theta[rows], is_own=True)
        found: Array = self._known[name]
        return found

    def _values(self, name: str, corpus: Corpus, theta: Array, *, is_own: bool = False) -> Array:
        """Return the values of documents by a criterion, (n_docs,); NaN where there is none.

        Args:
            is_own: whether these are the compared documents.
        """
        if name == _SHARE:
            share: Array = np.asarray(theta, np.float64).max(axis=1)
            return share
        if name == _VECTORS:
            return self._similarity_of_vectors(corpus, is_own)
        words = self._words(name == _ALL_WORDS)
        return words.similarity(None if is_own else self._counts(corpus, name == _ALL_WORDS))

    def _similarity_of_vectors(self, corpus: Corpus, is_own: bool) -> Array:
        from ..embeddings.neighbours import VectorIndex  # it needs PyTorch

        if "index" not in self._known:
            assert self.corpus.vectors is not None
            self._known["index"] = VectorIndex.of(np.asarray(self.corpus.vectors[self._compared], np.float32))
        index = self._known["index"]
        vectors = np.asarray(corpus.vectors, np.float32)
        n = min(N_SIMILAR + is_own, len(index))
        ids, cosines = index.nearest(vectors, n)
        cosines = np.where(ids >= 0, cosines, 0).astype(np.float64)
        if is_own:
            is_itself = ids == np.arange(len(ids))[:, None]
            is_itself[~is_itself.any(axis=1), -1] = True  # copies of a document may take its place
            cosines = np.where(is_itself, 0, cosines)
            n -= 1
        return np.where(vectors.any(axis=1), cosines.sum(axis=1) / max(n, 1), np.nan)

    def _words(self, all_words: bool) -> _Words:
        name = f"words of {_ALL_WORDS if all_words else _WORDS}"
        if name not in self._known:
            self._known[name] = _Words(list(self._counts(self.corpus[self._compared], all_words)))
        found: _Words = self._known[name]
        return found

    def _counts(self, corpus: Corpus, all_words: bool) -> Iterator[tuple[Sequence[str], Any]]:
        """Yield words with their counts (n, n_words), for parts of the documents."""
        if not all_words:
            yield corpus.vocabulary, corpus.counts
            return
        assert corpus.texts is not None
        for part in count_chunks(chunked(corpus.texts), self.tokenizer):
            yield part.words, part.counts


class _Words:
    """The TF-IDF weights of documents, by which the most similar ones are found.

    A word of n_d documents among n has the weight (1 + log tf) (log((1 + n) / (1 + n_d)) + 1). Rows have length 1; a
    word that no document has counts for the length alone.

    Args:
        parts: the words and the counts of parts of the documents.
    """

    def __init__(self, parts: Iterable[tuple[Sequence[str], Any]]) -> None:
        columns: dict[str, int] = {}
        blocks = []
        for words, counts in parts:
            places = np.array([columns.setdefault(word, len(columns)) for word in words], np.int64)
            blocks.append((counts.data, places[counts.indices], counts.indptr))
        shape = len(columns)
        found = [sp.csr_array(block, shape=(len(block[2]) - 1, shape)) for block in blocks]
        counts = sp.csr_array(sp.vstack(found, format="csr"))
        documents = np.bincount(counts.indices, minlength=shape)
        self.columns = columns
        self.idf = np.log((1 + counts.shape[0]) / (1 + documents)) + 1
        self.idf_of_unknown = float(np.log(1 + counts.shape[0]) + 1)
        self.weights = _weighted(counts, self.idf[counts.indices])
        self.by_word = sp.csr_array(self.weights.T)

    def similarity(self, parts: Iterable[tuple[Sequence[str], Any]] | None) -> Array:
        """Return the mean of the five highest cosines of other documents, (n_docs,); None stands for these ones."""
        if parts is None:
            return self._nearest(self.weights, is_own=True)
        found = []
        for words, counts in parts:
            places = np.array([self.columns.get(word, -1) for word in words], np.int64)[counts.indices]
            is_known = places >= 0
            weights = _weighted(counts, np.where(is_known, self.idf[places], self.idf_of_unknown))
            ends = np.concatenate([[0], np.cumsum(is_known)])[counts.indptr]
            known = (weights.data[is_known], places[is_known], ends)
            found.append(self._nearest(sp.csr_array(known, shape=(counts.shape[0], len(self.columns))), is_own=False))
        return np.concatenate(found) if found else np.zeros(0)

    def _nearest(self, weights: sp.csr_array, *, is_own: bool) -> Array:
        n = min(N_SIMILAR, self.weights.shape[0] - is_own)
        if n < 1:
            return np.zeros(weights.shape[0])
        found = []
        for first in range(0, weights.shape[0], _AT_ONCE):
            cosines = (weights[first : first + _AT_ONCE] @ self.by_word).toarray()  # (B, n)
            if is_own:
                rows = np.arange(len(cosines))
                cosines[rows, first + rows] = 0
            found.append(np.partition(cosines, -n, axis=1)[:, -n:].mean(axis=1))
        return np.concatenate(found) if found else np.zeros(0)


def _weighted(counts: Any, idf: Array) -> sp.csr_array:
    """Return rows of length 1 with the weights of words, given the idf of each count."""
    data = (1 + np.log(counts.data.astype(np.float64))) * idf
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    lengths = np.sqrt(np.bincount(rows, data**2, counts.shape[0]))
    return sp.csr_array((data / lengths[rows], counts.indices, counts.indptr), shape=counts.shape)


def _share_below(usual: Array, values: Array, is_compared: npt.NDArray[np.bool_]) -> Array:
    """Return the share of the compared documents whose value is not higher, (n_docs,); a half where it is unknown.

    A document that is not among them is counted with them, so that no share is 0.
    """
    known = np.sort(usual[~np.isnan(usual)])
    n_below = np.searchsorted(known, values, side="right")
    extra = np.where(is_compared, 0, 1)
    share: Array = np.where(np.isnan(values), 0.5, (n_below + extra) / np.maximum(len(known) + extra, 1))
    return share


def _mean_log(shares: Sequence[Array]) -> Array:
    mean: Array = np.mean([np.log(share) for share in shares], axis=0)
    return mean
