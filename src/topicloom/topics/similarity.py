"""Which words and topics are near each other as vectors of one space, and which documents differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

Array = npt.NDArray[Any]

_PRIOR_TOKENS = 50.0


def distributional_vectors(components: Array, shares: Array, word_counts: Array) -> tuple[Array, Array]:
    """Return vectors of words and topics for a model that has none of its own.

    The vector of a word is the square root of p(k|w), the shares of topics among its tokens. They are mixed with 50
    tokens of the shares of all documents, so that a rare word is near no topic. The vector of topic k is the k-th unit
    vector. The cosine of two words is the Bhattacharyya coefficient of their topics; the cosine of a word and a topic
    is the square root of p(k|w).

    Args:
        components: (K, V) topics, whose rows sum to 1.
        shares: (K,) shares of the topics.
        word_counts: (V,) tokens of each word in the training corpus.

    Returns:
        (V, K) and (K, K) float32, rows of length 1.
    """
    n_topics = len(components)
    prior = (shares + 1e-9) / (shares + 1e-9).sum()  # (K,)
    joint = (components * prior[:, None]).T.astype(np.float64)  # (V, K)
    totals = joint.sum(axis=1, keepdims=True)
    given_word = np.divide(joint, totals, out=np.broadcast_to(prior, joint.shape).copy(), where=totals > 0)
    tokens = np.asarray(word_counts, np.float64)[:, None]
    mixed = (tokens * given_word + _PRIOR_TOKENS * prior) / (tokens + _PRIOR_TOKENS)
    return np.sqrt(mixed).astype(np.float32), np.eye(n_topics, dtype=np.float32)


def cosines(rows: Array, vector: Array) -> Array:
    """Return the cosine of each of the (n, L) rows with an (L,) vector; 0 where one of them is zero."""
    rows, vector = np.asarray(rows, np.float64), np.asarray(vector, np.float64)
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(vector)
    found: Array = rows @ vector / np.where(lengths > 0, lengths, 1)
    return found


def nearest_of(rows: Array, vector: Array, top_n: int, without: int | None = None) -> list[tuple[int, float]]:
    """Return the rows with the greatest cosine with a vector: (index, cosine), the best first.

    Args:
        rows: (n, L).
        vector: (L,).
        top_n: how many.
        without: a row that is left out.
    """
    return most_similar(cosines(rows, vector), top_n, without)


def most_similar(similarity: Array, top_n: int, without: int | None = None) -> list[tuple[int, float]]:
    """Return the places of the greatest similarities: (index, similarity), the best first.

    Args:
        similarity: (n,).
        top_n: how many.
        without: a place that is left out.
    """
    order = [int(row) for row in np.argsort(-similarity, kind="stable")[: top_n + 1] if row != without]
    return [(row, float(similarity[row])) for row in order[:top_n]]


def diverse(counts: sp.csr_array, relevance: Array, n: int) -> list[int]:
    """Return documents that are relevant and differ from one another, the best first.

    This is maximal marginal relevance (Carbonell & Goldstein 1998). Relevance, divided by that of the first document,
    and the largest cosine with a document that is chosen already have equal weights.

    Args:
        counts: (D, V) the documents.
        relevance: (D,) positive, the largest first.
        n: how many.
    """
    vectors = sp.csr_array(np.log1p(counts.astype(np.float64)))
    lengths = np.sqrt(np.asarray(vectors.multiply(vectors).sum(axis=1)).ravel())
    vectors = sp.csr_array(sp.diags_array(1 / np.maximum(lengths, 1e-12)) @ vectors)

    def alike(row: int) -> Array:  # (D,) cosines with one of the documents
        found: Array = (vectors @ vectors[[row]].T).toarray().ravel()
        return found

    chosen = [0]
    nearest = alike(0)
    while len(chosen) < min(n, counts.shape[0]):
        score = 0.5 * relevance / relevance[0] - 0.5 * nearest
        score[chosen] = -np.inf
        chosen.append(int(score.argmax()))
        nearest = np.maximum(nearest, alike(chosen[-1]))
    return chosen


def free_names(n_topics: int, words: Sequence[str]) -> list[str]:
    """Return names of topics for a file of words, such as topic_3, that no word has."""
    known = set(words)
    mark = "topic_"
    while any(f"{mark}{topic}" in known for topic in range(n_topics)):
        mark += "_"
    return [f"{mark}{topic}" for topic in range(n_topics)]
