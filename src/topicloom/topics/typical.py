"""The documents that stand for a topic, and the words of a document that are typical of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ..embeddings.document_vectors import unit_vectors
from ..errors import InputError
from ..ranking import top_words, word_scores
from ..text.strings import pieces

Array = npt.NDArray[Any]

_PROFILE_WORDS = 30  # of a topic, with which its documents are compared
_HALF_WEIGHT_SPREADS = 2.0  # a document this many spreads from the middle length has half of the weight
_SMALLEST_SPREAD = 0.25  # of the logarithms of lengths
_COPY = 0.8  # a document with a larger cosine with an earlier one repeats it
_DIVERSE_SHARE = 0.6  # diverse documents have at least this part of the score of the first
_CANDIDATES = 40  # for diverse documents
_SHOWN_WORDS = 8  # of a document


@dataclass(frozen=True, eq=False)
class TypicalDocuments:
    """Documents in the order in which a reader who knows the words of a topic would call them typical of it.

    The score of a document d for a topic k is the product of these factors:

    - theta_dk, its share of the topic;
    - the cosine of x_d and g_k. x_dw is log(1 + n_dw) for n_dw tokens of word w, so that repetition counts little. g_kw
      is the square root of p(w | k) / sqrt(p(w)) for the 30 words that stand for the topic, and 0 for the others;
    - 1 / (1 + (z_d / 2)^2), where z_d is how many spreads the number of distinct words of d is from the median of the
      topic's documents, both as logarithms. The spread is 1.4826 times the median absolute deviation, or at least 0.25;
    - where there are vectors, the cosine of the document with the topic's centre, or 0 if that is negative. The centre
      is the mean of the documents' vectors weighted by theta_dk. Vectors have length 1, and the mean of all documents
      is subtracted from each. A document without a vector has the median cosine of the others.

    Only documents in which the topic has more than the share 1 / K count as documents of the topic.

    Args:
        theta: (n_docs, K) topic shares.
        empty: (n_docs,) True for documents without a known word, which are left out.
        counts: (n_docs, V) the words of the documents.
        components: (K, V) topics, whose rows sum to 1.
        word_counts: (V,) tokens of each word in the training corpus.
        vectors: (n_docs, E) vectors of the documents; a zero row stands for no vector. None is without vectors.
    """

    theta: Array
    empty: npt.NDArray[np.bool_]
    counts: sp.csr_array
    components: Array
    word_counts: Array
    vectors: Array | None = None

    def scores(self, topic: int) -> tuple[Array, Array]:
        """Return the rows of the documents of a topic, (D,), and their scores, (D,), the highest first."""
        share = np.asarray(self.theta[:, topic], np.float64)
        rows: Array = np.flatnonzero((share > 1 / self.theta.shape[1]) & ~self.empty)
        if not len(rows):
            return rows, np.zeros(0)
        words = self._words(rows)
        score = share[rows] * self._likeness(words, topic) * _weights_of_lengths(np.diff(words.indptr))
        if self.vectors is not None:
            score *= self._centrality(self.vectors[rows], share[rows])
        order = np.lexsort((rows, -share[rows], -score))
        return rows[order], score[order]

    def ranked(self, topic: int, n: int | None = None) -> Array:
        """Return the rows of the n most typical documents of a topic, best first; None is all.

        A document whose words have a cosine above 0.8 with those of an earlier one comes after all that have not.
        """
        rows, _ = self.scores(topic)
        return self._ranked(rows, len(rows) if n is None else n)

    def _ranked(self, rows: Array, n: int) -> Array:
        """As `ranked`, given the rows in the order of their scores."""
        n = min(n, len(rows))
        units = _unit_rows(self._words(rows))
        left = np.ones(len(rows), np.bool_)  # neither chosen nor like one that is
        chosen: list[int] = []
        at = 0
        while len(chosen) < n and left[at:].any():
            at += int(left[at:].argmax())
            chosen.append(at)
            left &= _cosines(units, at) <= _COPY
            left[at] = False
        others = np.setdiff1d(np.arange(len(rows)), chosen)[: n - len(chosen)]
        found: Array = rows[np.concatenate([np.array(chosen, np.intp), others])]
        return found

    def diverse(self, topic: int, n: int) -> Array:
        """Return the rows of n typical documents of a topic that differ from one another, best first.

        They are chosen by maximal marginal relevance (Carbonell & Goldstein 1998): the score of a document, divided by
        the highest, and its largest cosine with a document that is chosen already have equal weights. The cosine is
        that of the vectors, or else of the words. The candidates are the 40 documents with the highest scores, as far
        as these are at least 0.6 of the highest. If they are too few, the next ones of `ranked` follow.
        """
        return self._diverse(topic, n, *self.scores(topic))

    def _diverse(self, topic: int, n: int, rows: Array, scores: Array) -> Array:
        """As `diverse`, given the result of `scores`."""
        if not len(rows):
            return rows
        fits = scores >= _DIVERSE_SHARE * scores[0]
        candidates, relevance = rows[fits][:_CANDIDATES], scores[fits][:_CANDIDATES]
        words = _unit_rows(self._words(candidates))
        points = words if self.vectors is None else sp.csr_array(unit_vectors(self.vectors[candidates], np.float64))
        score = 0.5 * relevance / max(float(relevance[0]), 1e-300)
        nearest = np.zeros(len(candidates))
        left = np.ones(len(candidates), np.bool_)
        chosen: list[int] = []
        while len(chosen) < n and left.any():
            chosen.append(int(np.where(left, score - 0.5 * nearest, -np.inf).argmax()))
            nearest = np.maximum(nearest, _cosines(points, chosen[-1]))
            left &= _cosines(words, chosen[-1]) <= _COPY
            left[chosen[-1]] = False
        found: Array = candidates[chosen]
        if len(found) < min(n, len(rows)):
            ranked = self._ranked(rows, n)
            found = np.concatenate([found, ranked[~np.isin(ranked, found)]])[:n]
        return found

    def order(self, topic: int, n_first: int = 20) -> npt.NDArray[np.float32]:
        """Return numbers by which all documents can be sorted for a topic, (n_docs,), the first with the highest.

        The first ones are diverse, and have numbers above 1. The other documents of the topic follow by their scores,
        from 1 to 0, and the rest by its shares, with negative numbers.
        """
        values = np.asarray(self.theta[:, topic], np.float32) - 2
        rows, scores = self.scores(topic)
        if len(rows):
            values[rows] = scores / max(float(scores[0]), 1e-300)
            first = self._diverse(topic, n_first, rows, scores)
            values[first] = 2 - np.arange(len(first)) / (2 * n_first)
        return values

    def _words(self, rows: Array) -> sp.csr_array:
        """Return log(1 + n) of the words of documents, (D, V)."""
        return sp.csr_array(np.log1p(self.counts[rows].astype(np.float64)))

    def _likeness(self, words: sp.csr_array, topic: int) -> Array:
        """Return the cosines of documents (D, V) with the words of a topic, (D,)."""
        likeness: Array = _unit_rows(words) @ self._profile(topic)
        return likeness

    def _profile(self, topic: int) -> Array:
        """Return the weights of words in a topic, (V,), a vector of length 1."""
        if topic not in self._profiles:
            scores = word_scores(np.asarray(self.components[[topic]], np.float64), self.word_counts)  # (1, V)
            best = top_words(scores, _PROFILE_WORDS)[0]
            weights = np.exp(0.5 * (scores[0, best] - scores[0, best[0]]))
            self._profiles[topic] = best, weights / np.linalg.norm(weights)
        best, weights = self._profiles[topic]
        profile = np.zeros(self.components.shape[1])
        profile[best] = weights
        return profile

    @cached_property
    def _profiles(self) -> dict[int, tuple[Array, Array]]:
        """The best words of topics, and their weights, as far as they were asked for."""
        return {}

    def _centrality(self, vectors: Array, share: Array) -> Array:
        """Return how near vectors (D, E) are to their centre, (D,), from 0 to 1."""
        points = unit_vectors(vectors, np.float64)
        known = points.any(axis=1)
        if not known.any():
            return np.ones(len(points))
        points[known] = unit_vectors(points[known] - self._mean_vector, np.float64)
        centre = share[known] @ points[known]
        cosine = points @ (centre / max(float(np.linalg.norm(centre)), 1e-300))
        cosine[~known] = np.median(cosine[known])
        near: Array = np.maximum(cosine, 0)
        return near

    @cached_property
    def _mean_vector(self) -> Array:
        """(E,) the mean of the vectors of all documents, each of length 1."""
        assert self.vectors is not None
        total, n = np.zeros(self.vectors.shape[1]), 0
        for part in pieces(self.vectors):
            units = unit_vectors(part, np.float64)
            total += units.sum(axis=0)
            n += int(units.any(axis=1).sum())
        mean: Array = total / max(n, 1)
        return mean


def _weights_of_lengths(n_words: Array) -> Array:
    """Return the weights of documents by their numbers of distinct words, (D,): the middle ones have the highest."""
    lengths = np.log(np.maximum(n_words, 1))
    apart = np.abs(lengths - np.median(lengths))
    spread = max(1.4826 * float(np.median(apart)), _SMALLEST_SPREAD)
    weights: Array = 1 / (1 + (apart / spread / _HALF_WEIGHT_SPREADS) ** 2)
    return weights


def _unit_rows(rows: sp.csr_array) -> sp.csr_array:
    """Return rows with length 1; zero rows stay zero."""
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    return sp.csr_array(sp.diags_array(1 / np.maximum(lengths, 1e-12)) @ rows)


def _cosines(units: sp.csr_array, row: int) -> Array:
    """Return the cosines (D,) of rows of length 1 with one of them."""
    place = slice(units.indptr[row], units.indptr[row + 1])
    vector = np.zeros(units.shape[1])  # a product of two sparse matrices takes some 20 times as long
    vector[units.indices[place]] = units.data[place]
    found: Array = units @ vector
    return found


def recent_documents(theta: Array, times: Array | None, empty: npt.NDArray[np.bool_], topic: int, n: int) -> Array:
    """Return the rows of the last documents whose main topic is this one, the latest first.

    Args:
        theta: (n_docs, K) topic shares.
        times: (n_docs,) NaT where the time is unknown; None if no time is known.
        empty: (n_docs,) True for documents without a known word, which are left out.
        topic: the number of the topic.
        n: how many.

    Raises:
        InputError: no document has a time.
    """
    if times is None or np.isnat(times).all():
        raise InputError(
            "no document has a time, so none is recent; times are given when the corpus is made (`timestamps`)"
        )
    mains = np.asarray(theta).argmax(axis=1)
    rows = np.flatnonzero((mains == topic) & ~empty & ~np.isnat(times))
    latest: Array = rows[np.argsort(-times[rows].astype(np.int64), kind="stable")][:n]
    return latest


def topics_of_words(theta: Array, components: Array, words: Array) -> Array:
    """Return p(k | w, d), the probability that a topic produced a word of a document: (n, K).

    Args:
        theta: (K,) topic shares of the document.
        components: (K, V) topics, whose rows sum to 1.
        words: (n,) columns of `components`.
    """
    both = np.asarray(theta, np.float64) * components[:, words].T
    weights: Array = both / np.maximum(both.sum(axis=1, keepdims=True), 1e-300)
    return weights


def typical_words(
    words: Array, counts: Array, theta: Array, components: Array, word_counts: Array, topic: int
) -> list[int]:
    """Return the words of a document that are most typical of a topic, as columns of `components`, best first: up to 8.

    The score of a word is the number of its tokens in the document that the topic is expected to have produced, times
    the logarithm of its lift, the ratio of its probability in the topic to its share of the corpus.

    Args:
        words, counts: (n,) the columns of the document's words, and how often the document contains each.
        theta: (K,) topic shares of the document.
        components: (K, V) topics, whose rows sum to 1.
        word_counts: (V,) tokens of each word in the training corpus.
        topic: the number of the topic.
    """
    share = topics_of_words(theta, components, words)[:, topic]
    usual = word_counts[words] / max(float(word_counts.sum()), 1.0)
    lift = np.log(np.maximum(components[topic, words], 1e-12) / np.maximum(usual, 1e-12))
    score = counts * share * lift
    order = np.argsort(-score, kind="stable")[:_SHOWN_WORDS]
    return [int(words[place]) for place in order if score[place] > 0]
