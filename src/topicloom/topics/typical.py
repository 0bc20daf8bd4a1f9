"""The documents that stand for a topic, and the words of a document that are typical of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ..errors import InputError

Array = npt.NDArray[Any]

_HALF_WEIGHT_TOKENS = 10.0  # a document of this length has half of its weight
_CANDIDATES_PER_DOCUMENT = 20  # n diverse documents are chosen among 20 n typical ones


def typical_documents(theta: Array, n_tokens: Array, empty: npt.NDArray[np.bool_], topic: int) -> Array:
    """Return the rows of the documents in which a topic has more than the share 1 / K, the most typical first.

    The rank of a document is its share of the topic times n / (n + 10) for n tokens, because the shares of short
    documents are uncertain.

    Args:
        theta: (n_docs, K) topic shares.
        n_tokens: (n_docs,) tokens of each document.
        empty: (n_docs,) True for documents without a known word, which are left out.
        topic: the number of the topic.
    """
    share = np.asarray(theta[:, topic])
    rows: Array = np.flatnonzero((share > 1 / theta.shape[1]) & ~empty)
    order: Array = rows[np.argsort(-_weights(theta, n_tokens, rows, topic), kind="stable")]
    return order


def _weights(theta: Array, n_tokens: Array, rows: Array, topic: int) -> Array:
    """Return how typical some documents are of a topic: its share of each, which counts less in a short document."""
    tokens = n_tokens[rows]
    weights: Array = np.asarray(theta[rows, topic], np.float64) * tokens / (tokens + _HALF_WEIGHT_TOKENS)
    return weights


def diverse_documents(
    theta: Array,
    n_tokens: Array,
    empty: npt.NDArray[np.bool_],
    counts: sp.csr_array,
    topic: int,
    n: int,
    vectors: Array | None = None,
) -> Array:
    """Return the rows of typical documents of a topic that differ from one another, the best first.

    Args:
        theta: (n_docs, K) topic shares.
        n_tokens: (n_docs,) tokens of each document.
        empty: (n_docs,) True for documents without a known word, which are left out.
        counts: (n_docs, V) the words of the documents.
        topic: the number of the topic.
        n: how many.
        vectors: (n_docs, E) by which they differ; None are the words.
    """
    rows = typical_documents(theta, n_tokens, empty, topic)[: _CANDIDATES_PER_DOCUMENT * n]
    if not len(rows):
        return rows
    given = sp.csr_array(np.log1p(counts[rows].astype(np.float64))) if vectors is None else vectors[rows]
    chosen: Array = rows[_relevant_and_different(sp.csr_array(given), _weights(theta, n_tokens, rows, topic), n)]
    return chosen


def _relevant_and_different(points: sp.csr_array, relevance: Array, n: int) -> list[int]:
    """Return documents that are relevant and differ from one another, the best first.

    This is maximal marginal relevance (Carbonell & Goldstein 1998). Relevance, divided by that of the first document,
    and the largest cosine with a document that is chosen already have equal weights.

    Args:
        points: (D, E) the documents.
        relevance: (D,) positive, the largest first.
        n: how many.
    """
    vectors = points.astype(np.float64)
    lengths = np.sqrt(np.asarray(vectors.multiply(vectors).sum(axis=1)).ravel())
    vectors = sp.csr_array(sp.diags_array(1 / np.maximum(lengths, 1e-12)) @ vectors)

    def alike(row: int) -> Array:  # (D,) cosines with one of the documents
        found: Array = (vectors @ vectors[[row]].T).toarray().ravel()
        return found

    chosen = [0]
    nearest = alike(0)
    while len(chosen) < min(n, points.shape[0]):
        score = 0.5 * relevance / relevance[0] - 0.5 * nearest
        score[chosen] = -np.inf
        chosen.append(int(score.argmax()))
        nearest = np.maximum(nearest, alike(chosen[-1]))
    return chosen


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
    words: Array, counts: Array, theta: Array, components: Array, word_counts: Array, topic: int, most: int = 8
) -> list[int]:
    """Return the words of a document that are most typical of a topic, as columns of `components`, best first.

    The score of a word is the number of its tokens in the document that the topic is expected to have produced, times
    the logarithm of its lift, the ratio of its probability in the topic to its share of the corpus.

    Args:
        words, counts: (n,) the columns of the document's words, and how often the document contains each.
        theta: (K,) topic shares of the document.
        components: (K, V) topics, whose rows sum to 1.
        word_counts: (V,) tokens of each word in the training corpus.
        topic: the number of the topic.
        most: how many words.
    """
    share = topics_of_words(theta, components, words)[:, topic]
    usual = word_counts[words] / max(float(word_counts.sum()), 1.0)
    lift = np.log(np.maximum(components[topic, words], 1e-12) / np.maximum(usual, 1e-12))
    score = counts * share * lift
    order = np.argsort(-score, kind="stable")[:most]
    return [int(words[place]) for place in order if score[place] > 0]
