"""How different topics are from one another, by their top words.

All take topics as lists of words or of word ids, best first, which may differ in length. A measure of pairs is 1 (or 0,
where it is of likeness) when there is no pair; `settings["pairs"]` then is 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .measured import Measured

Topics: TypeAlias = "Sequence[Sequence[Hashable]] | npt.NDArray[Any]"  # (K, n) word ids
Floats = npt.NDArray[np.float64]


def topic_diversity(topics: Topics, top_n: int = 25) -> Measured:
    """Different words among the top words of all topics, as a share: 1 when no two topics share a word.

    Args:
        topics: each topic's words (or word ids), best first.

    Source: Dieng, Ruiz & Blei 2020, section 5.
    """
    words = [word for topic in topics for word in topic[:top_n]]
    return Measured(len(set(words)) / len(words) if words else 0.0, top_n=top_n)


def topic_uniqueness(topics: Topics, top_n: int = 10) -> Measured:
    """Mean over topics and their words of 1 / the number of topics that have the word among their top words.

    A topic without words is left out.

    Source: Nan, Ding, Nallapati & Xiang 2019, section 4.1.
    """
    counts = Counter(word for topic in topics for word in topic[:top_n])
    shares = [np.mean([1 / counts[word] for word in topic[:top_n]]) for topic in topics if len(topic)]
    return Measured(float(np.mean(shares)) if shares else 0.0, top_n=top_n)


def inverted_rbo(topics: Topics, weight: float = 0.9, top_n: int = 10) -> Measured:
    """1 less the mean rank-biased overlap of all pairs of topics: 1 when no two share a word, 0 when all are alike.

    The overlap is extrapolated: below the last word, two topics are taken to agree as far as they did down to it.

    Args:
        weight: p, above 0 and below 1; the first words count for more as it is smaller.

    Returns:
        Measured, with the number of pairs; a topic without words is in none.

    Source: Webber, Moffat & Zobel 2010, equation 32; as a diversity, Bianchi, Terragni & Hovy 2021 (.9, 10 words).
    """
    if not 0 < weight < 1:
        raise ValueError(f"weight should be above 0 and below 1; it is {weight!r}")
    overlaps = _pairs(rank_biased_overlap([topic for topic in topics if len(topic[:top_n])], weight, top_n))
    settings = {"top_n": top_n, "weight": weight, "overlap": "extrapolated", "pairs": len(overlaps)}
    return Measured(1.0 - float(overlaps.mean()) if len(overlaps) else 1.0, **settings)


def rank_biased_overlap(topics: Topics, weight: float = 0.9, top_n: int = 10) -> Floats:
    """(K, K) extrapolated rank-biased overlap of every two topics, none of them without words: 1 on the diagonal.

    Source: Webber, Moffat & Zobel 2010, equation 32, whose sums are written here as one: the agreement at depth d is
    that of the words seen, and of those beyond the end of the shorter list as many as agreed before.
    """
    ranks = _ranks(topics, top_n)  # (K, W)
    lengths = np.isfinite(ranks).sum(axis=1)  # (K,)
    shorter, longer = np.minimum.outer(lengths, lengths), np.maximum.outer(lengths, lengths)  # (K, K)
    deepest = int(lengths.max(initial=0))
    shared = np.stack([_shared(ranks <= depth) for depth in range(1, deepest + 1)] or [np.zeros((0, 0))])
    at_shorter = np.take_along_axis(shared, shorter[None] - 1, axis=0)[0]  # (K, K)
    overlap = np.zeros(shorter.shape)
    agreement = np.zeros(shorter.shape)
    for depth in range(1, deepest + 1):
        beyond = at_shorter * np.maximum(depth - shorter, 0) / shorter
        agreement = np.where(depth <= longer, (shared[depth - 1] + beyond) / depth, agreement)
        overlap += (1 - weight) * weight ** (depth - 1) * agreement  # past the longer list, agreement stays
    return overlap + weight**deepest * agreement


def embedding_diversity(
    topics: Topics, vectors: Mapping[Any, npt.NDArray[Any]] | npt.NDArray[Any], top_n: int = 10
) -> Measured:
    """Mean over pairs of topics of 1 less the cosine of their centroids, a centroid being the mean of word vectors.

    From 0 (all point the same way) to 2; unlike the others it sees that "car" and "cars" are no two subjects.

    Args:
        vectors: a vector for each word, or an array with a row for each word id.

    Returns:
        Measured, with the number of pairs, of words without a vector (left out of their topic's mean), and of topics
        left without a centroid, which are in no pair.

    Source: one less the word embedding-based centroid similarity (WECS) of Terragni, Fersini & Messina 2021.
    """
    known = _known(topics, vectors, top_n)
    means = [np.array([vectors[word] for word in words], np.float64).mean(axis=0) for words in known if words]
    centroids = [mean / np.linalg.norm(mean) for mean in means if np.any(mean)]
    unit = np.array(centroids).reshape(len(centroids), -1)
    distances = _pairs(1.0 - unit @ unit.T)
    settings = {
        "top_n": top_n,
        "pairs": len(distances),
        "words_without_vector": sum(len(topic[:top_n]) for topic in topics) - sum(map(len, known)),
        "topics_left_out": len(topics) - len(centroids),
    }
    return Measured(float(distances.mean()) if len(distances) else 1.0, **settings)


def redundancy(topics: Topics, top_n: int = 10, shared: int = 8) -> Measured:
    """The share of pairs of topics that are one topic: that have `shared` of their `top_n` words in common."""
    pairs = len(topics) * (len(topics) - 1) // 2
    twins = duplicate_topics(topics, top_n, shared)
    return Measured(twins / pairs if pairs else 0.0, top_n=top_n, shared=shared, pairs=pairs)


def duplicate_topics(topics: Topics, top_n: int = 10, shared: int = 8) -> int:
    """Pairs of topics that share at least `shared` of their `top_n` words, or as large a part of fewer words."""
    member = np.isfinite(_ranks(topics, top_n))  # (K, W)
    lengths = member.sum(axis=1)
    shorter = np.minimum.outer(lengths, lengths)
    return int(_pairs((_shared(member) >= shared / top_n * shorter - 1e-9) & (shorter > 0)).sum())


def _known(topics: Topics, vectors: Any, top_n: int) -> list[list[Any]]:
    """Each topic's words that have a vector."""
    if isinstance(vectors, np.ndarray):
        return [list(topic[:top_n]) for topic in topics]
    return [[word for word in topic[:top_n] if word in vectors] for topic in topics]


def _ranks(topics: Topics, top_n: int) -> Floats:
    """(K, W) the rank from 1 of each of the W words in each topic; infinite where it has none. Repeats do not count."""
    lists = [list(dict.fromkeys(topic[:top_n])) for topic in topics]
    places = {word: place for place, word in enumerate(dict.fromkeys(word for words in lists for word in words))}
    ranks = np.full((len(lists), len(places)), np.inf)
    for row, words in zip(ranks, lists, strict=True):
        row[[places[word] for word in words]] = np.arange(1, len(words) + 1)
    return ranks


def _shared(member: npt.NDArray[np.bool_]) -> Floats:
    """(K, K) words that two topics have in common; member (K, W)"""
    # Sparse: after a dense product BLAS's threads spin for a tenth of a second, each on a core.
    each = sp.csr_array(member.astype(np.float64))
    found = (each @ each.T).tocoo()
    shared = np.zeros(found.shape)
    shared[found.row, found.col] = found.data
    return shared


def _pairs(square: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """(K * (K - 1) / 2,) what a (K, K) array has of every two topics."""
    pairs: npt.NDArray[Any] = square[np.triu_indices(len(square), 1)]
    return pairs
