"""Diversity: how much topics differ by their top words; and signs that a model has collapsed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ..errors import InputError
from .measured import Floats, Measured, TopicWords, first_words

Array = npt.NDArray[Any]
_LARGEST = np.finfo(np.float32).max


def topic_diversity(topics: TopicWords, top_n: int = 25) -> Measured:
    """Share of distinct words among the top words of all topics: 1 if no two topics share a word.

    Args:
        topics: each topic's words or word ids, best first.
        top_n: the number of words of a topic that are used.

    Raises:
        InputError: `top_n` is below 1, or the topics are not lists of words.

    Source: Dieng, Ruiz & Blei 2020, section 5.

    Examples:
        >>> from topicloom.metrics import topic_diversity
        >>> topic_diversity([["cat", "dog"], ["cat", "rain"]])
        0.75
    """
    words = [word for topic in first_words(topics, top_n) for word in topic]
    return Measured(len(set(words)) / len(words) if words else 0.0, top_n=top_n)


def topic_uniqueness(topics: TopicWords, top_n: int = 10) -> Measured:
    """Mean of 1 / (number of topics that have the word among their top words), over topics and their words.

    Topics without words are left out.

    Args:
        topics: each topic's words or word ids, best first.
        top_n: the number of words of a topic that are used.

    Raises:
        InputError: `top_n` is below 1, or the topics are not lists of words.

    Source: Nan, Ding, Nallapati & Xiang 2019, section 4.1.

    Examples:
        >>> from topicloom.metrics import topic_uniqueness
        >>> topic_uniqueness([["cat", "dog"], ["cat", "rain"]])
        0.75
    """
    tops = first_words(topics, top_n)
    counts = Counter(word for topic in tops for word in topic)
    shares = [np.mean([1 / counts[word] for word in topic]) for topic in tops if topic]
    return Measured(float(np.mean(shares)) if shares else 0.0, top_n=top_n)


def inverted_rbo(topics: TopicWords, weight: float = 0.9, top_n: int = 10) -> Measured:
    """1 - mean rank-biased overlap of all pairs of topics: 1 if no two share a word, 0 if all are the same.

    The overlap is extrapolated: beyond the last word, two topics are assumed to agree to the same degree as before it.

    Args:
        topics: each topic's words or word ids, best first.
        weight: p, above 0 and below 1. The smaller it is, the more the first words count.
        top_n: the number of words of a topic that are used.

    Returns:
        Measured, with the number of pairs in its settings. Topics without words are in no pair.

    Raises:
        InputError: the weight is not above 0 and below 1, `top_n` is below 1, or the topics are not lists of words.

    Source: Webber, Moffat & Zobel 2010, equation 32; as a diversity, Bianchi, Terragni & Hovy 2021 (.9, 10 words).

    Examples:
        >>> from topicloom.metrics import inverted_rbo
        >>> inverted_rbo([["cat", "dog"], ["rain", "sun"]])
        1.0
    """
    overlaps = _pairs(rank_biased_overlap([topic for topic in first_words(topics, top_n) if topic], weight, top_n))
    settings: dict[str, Any] = {"top_n": top_n, "weight": weight, "overlap": "extrapolated", "pairs": len(overlaps)}
    return Measured(1.0 - float(overlaps.mean()) if len(overlaps) else 1.0, **settings)


def rank_biased_overlap(topics: TopicWords, weight: float = 0.9, top_n: int = 10) -> Floats:
    """(K, K) extrapolated rank-biased overlap of every two topics, 1 on the diagonal. Every topic must have words.

    Args:
        topics: each topic's words or word ids, best first.
        weight: p, above 0 and below 1. The smaller it is, the more the first words count.
        top_n: the number of words of a topic that are used.

    Raises:
        InputError: a topic has no words, the weight is not above 0 and below 1, `top_n` is below 1, or the topics are
            not lists of words.

    Source: Webber, Moffat & Zobel 2010, equation 32. Its sums are computed as one sum here. The agreement at depth d is
    the share of common words up to d. Beyond the end of the shorter list, this share is assumed to stay the same.

    Examples:
        >>> from topicloom.metrics import rank_biased_overlap
        >>> rank_biased_overlap([["cat", "dog"], ["cat", "rain"]]).round(2).tolist()
        [[1.0, 0.55], [0.55, 1.0]]
    """
    if not 0 < weight < 1:
        raise InputError(f"`weight` should be above 0 and below 1; it is {weight!r}")
    ranks = _ranks(topics, top_n)  # (K, W)
    lengths = np.isfinite(ranks).sum(axis=1)  # (K,)
    if not lengths.all():
        raise InputError(f"topic {int(lengths.argmin())} has no words; leave topics without words out")
    shorter, longer = np.minimum.outer(lengths, lengths), np.maximum.outer(lengths, lengths)  # (K, K)
    deepest = int(lengths.max(initial=0))
    shared = np.stack([_shared(ranks <= depth) for depth in range(1, deepest + 1)] or [np.zeros((0, 0))])
    at_shorter = np.take_along_axis(shared, shorter[None] - 1, axis=0)[0]  # (K, K)
    overlap = np.zeros(shorter.shape)
    agreement = np.zeros(shorter.shape)
    for depth in range(1, deepest + 1):
        beyond = at_shorter * np.maximum(depth - shorter, 0) / shorter
        # Beyond the longer list the agreement stays the same.
        agreement = np.where(depth <= longer, (shared[depth - 1] + beyond) / depth, agreement)
        overlap += (1 - weight) * weight ** (depth - 1) * agreement
    return overlap + weight**deepest * agreement


def embedding_diversity(
    topics: TopicWords, vectors: Mapping[Any, npt.NDArray[Any]] | npt.NDArray[Any], top_n: int = 10
) -> Measured:
    """Mean of 1 - cosine between the centroids of two topics, over all pairs. A centroid is the mean of word vectors.

    Values go from 0 (all centroids point the same way) to 2. Unlike the other measures, this one knows that "car" and
    "cars" are the same subject.

    Args:
        topics: each topic's words or word ids, best first.
        vectors: a mapping from words to vectors, or an array with a row for each word id.
        top_n: the number of words of a topic that are used.

    Returns:
        Measured. Its settings have the number of pairs, the number of words without a vector (which their topic's mean
        leaves out), and the number of topics without a centroid (which are in no pair).

    Raises:
        InputError: the vectors are an array, and a word is not the number of one of its rows.

    Source: 1 - the word embedding-based centroid similarity (WECS) of Terragni, Fersini & Messina 2021.

    Examples:
        >>> from topicloom.metrics import embedding_diversity
        >>> embedding_diversity([["cat"], ["rain"]], {"cat": [1.0, 0.0], "rain": [0.0, 1.0]})
        1.0
    """
    tops = first_words(topics, top_n)
    known = _known(tops, vectors)
    means = [np.array([vectors[word] for word in words], np.float64).mean(axis=0) for words in known if words]
    centroids = [mean / np.linalg.norm(mean) for mean in means if np.any(mean)]
    unit = np.array(centroids).reshape(len(centroids), -1)
    distances = _pairs(1.0 - unit @ unit.T)
    settings: dict[str, Any] = {
        "top_n": top_n,
        "pairs": len(distances),
        "words_without_vector": sum(map(len, tops)) - sum(map(len, known)),
        "topics_left_out": len(tops) - len(centroids),
    }
    return Measured(float(distances.mean()) if len(distances) else 1.0, **settings)


def redundancy(topics: TopicWords, top_n: int = 10, shared: int = 8) -> Measured:
    """Share of the pairs of topics that have at least `shared` of their `top_n` words in common.

    Args:
        topics: each topic's words or word ids, best first.
        top_n: the number of words of a topic that are used.
        shared: the number of common words that makes two topics duplicates.

    Returns:
        Measured, with the number of pairs in its settings.

    Raises:
        InputError: `top_n` is below 1, or the topics are not lists of words.

    Examples:
        >>> from topicloom.metrics import redundancy
        >>> redundancy([["cat", "dog"], ["dog", "cat"], ["rain", "sun"]], top_n=2, shared=2).settings["pairs"]
        3
    """
    tops = first_words(topics, top_n)
    pairs = len(tops) * (len(tops) - 1) // 2
    duplicates = duplicate_topics(tops, top_n, shared)
    return Measured(duplicates / pairs if pairs else 0.0, top_n=top_n, shared=shared, pairs=pairs)


def duplicate_topics(topics: TopicWords, top_n: int = 10, shared: int = 8) -> Measured:
    """Number of pairs of topics that have at least `shared` of their `top_n` words in common.

    Of topics with fewer words, the same proportion must be common.

    Args:
        topics: each topic's words or word ids, best first.
        top_n: the number of words of a topic that are used.
        shared: the number of common words that makes two topics duplicates.

    Raises:
        InputError: `top_n` is below 1, or the topics are not lists of words.

    Examples:
        >>> from topicloom.metrics import duplicate_topics
        >>> duplicate_topics([["cat", "dog"], ["dog", "cat"], ["rain", "sun"]], top_n=2, shared=2)
        1.0
    """
    member = np.isfinite(_ranks(topics, top_n))  # (K, W)
    lengths = member.sum(axis=1)
    shorter = np.minimum.outer(lengths, lengths)
    duplicates = int(_pairs((_shared(member) >= shared / top_n * shorter - 1e-9) & (shorter > 0)).sum())
    return Measured(duplicates, top_n=top_n, shared=shared)


def _known(tops: list[list[Hashable]], vectors: Any) -> list[list[Any]]:
    """Return each topic's words that have a vector."""
    if isinstance(vectors, np.ndarray):
        for word in (word for top in tops for word in top):
            if not isinstance(word, Integral) or not 0 <= word < len(vectors):
                raise InputError(f"{word!r} is no row of {len(vectors)} vectors; give word ids, or a vector by word")
        return tops
    return [[word for word in top if word in vectors] for top in tops]


def _ranks(topics: TopicWords, top_n: int) -> Floats:
    """(K, W) the rank of each of the W words in each topic, from 1; infinite if it is absent. Repeats do not count."""
    lists = [list(dict.fromkeys(top)) for top in first_words(topics, top_n)]
    places = {word: place for place, word in enumerate(dict.fromkeys(word for words in lists for word in words))}
    ranks = np.full((len(lists), len(places)), np.inf)
    for row, words in zip(ranks, lists, strict=True):
        row[[places[word] for word in words]] = np.arange(1, len(words) + 1)
    return ranks


def _shared(member: npt.NDArray[np.bool_]) -> Floats:
    """(K, K) number of words that two topics have in common; member is (K, W)"""
    # A sparse product, because after a dense one the threads of BLAS keep their cores busy for a tenth of a second.
    each = sp.csr_array(member.astype(np.float64))
    found = (each @ each.T).tocoo()
    shared = np.zeros(found.shape)
    shared[found.row, found.col] = found.data
    return shared


def _pairs(square: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """(K * (K - 1) / 2,) the entries of a (K, K) array above its diagonal."""
    pairs: npt.NDArray[Any] = square[np.triu_indices(len(square), 1)]
    return pairs


# Signs of collapse: a latent code that carries no information, or topics in no document.


def kl_per_dimension(divergence: Array) -> Measured:
    """Mean divergence of each latent dimension from its prior, in nats.

    Args:
        divergence: (D, L) divergence of each document's posterior from the prior.

    Returns:
        Measured, the mean over dimensions, with the value of each in `per_dimension` (L,).

    Examples:
        >>> import numpy as np
        >>> from topicloom.metrics import kl_per_dimension
        >>> kl_per_dimension(np.array([[0.0, 1.0], [0.0, 3.0]])).per_dimension.tolist()
        [0.0, 2.0]
    """
    per_dimension = _mean(divergence)
    value = float(per_dimension.mean()) if len(per_dimension) else 0.0
    return Measured(value, per_dimension=per_dimension, unit="nats", units=len(per_dimension))


def active_units_by_divergence(divergence: Array, threshold: float = 0.01) -> Measured:
    """Number of latent dimensions whose mean divergence from the prior is above a threshold.

    Args:
        divergence: (D, L) divergence of each document's posterior from the prior.
        threshold: in nats.

    Returns:
        Measured, with the threshold and the number of dimensions in its settings.

    Examples:
        >>> import numpy as np
        >>> from topicloom.metrics import active_units_by_divergence
        >>> active_units_by_divergence(np.array([[0.0, 1.0], [0.0, 3.0]]))
        1.0
    """
    active = int((_mean(divergence) > threshold).sum())
    return Measured(active, by="mean divergence", threshold=threshold, units=divergence.shape[1])


def active_units_by_variance(means: Array, threshold: float = 0.01) -> Measured:
    """Number of latent dimensions whose posterior mean varies over the documents by more than a threshold.

    Args:
        means: (D, L) mean of each document's posterior.
        threshold: of the variance.

    Returns:
        Measured, with the threshold and the number of dimensions in its settings.

    Source: Burda, Grosse & Salakhutdinov 2016, who call these "active units" and use the threshold 0.01.

    Examples:
        >>> import numpy as np
        >>> from topicloom.metrics import active_units_by_variance
        >>> active_units_by_variance(np.array([[0.5, 1.0], [0.5, -1.0]]))
        1.0
    """
    variance = means.var(axis=0, dtype=np.float64) if len(means) else np.zeros(means.shape[1])
    active = int((variance > threshold).sum())
    return Measured(active, by="variance of the posterior mean", threshold=threshold, units=means.shape[1])


def active_topics(theta: Array) -> Measured:
    """Number of topics that are the main topic of at least one document.

    Args:
        theta: (D, K) topic shares of the documents.

    Returns:
        Measured, with the number of all topics in its settings.

    Examples:
        >>> import numpy as np
        >>> from topicloom.metrics import active_topics
        >>> active_topics(np.array([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0]]))
        2.0
    """
    theta = np.asarray(theta)  # which may be a data frame
    active = len(np.unique(theta.argmax(axis=1))) if len(theta) else 0
    return Measured(active, topics=theta.shape[1])


def largest_share(theta: Array) -> Measured:
    """Share of the largest topic: the largest mean of a column of theta.

    With equal shares, it is 1 / K. In real texts it is often several times as much; if it is far more than the texts
    suggest, documents about which the model says nothing may all be given to one topic.

    Args:
        theta: (D, K) topic shares of the documents.

    Returns:
        Measured, with the number of all topics in its settings. Without documents, the value is 0.

    Examples:
        >>> import numpy as np
        >>> from topicloom.metrics import largest_share
        >>> largest_share(np.array([[0.75, 0.25], [1.0, 0.0]]))
        0.875
    """
    theta = np.asarray(theta)  # which may be a data frame
    value = float(theta.mean(axis=0, dtype=np.float64).max()) if len(theta) else 0.0
    return Measured(value, topics=theta.shape[1])


def frequent_mass(topic_word: Array, word_counts: Array, top_n: int = 50) -> Measured:
    """Mean probability that a topic gives to the most frequent words of the corpus.

    Args:
        topic_word: (K, V), rows sum to 1.
        word_counts: (V,) tokens of each word.
        top_n: the number of most frequent words.

    Examples:
        >>> import numpy as np
        >>> from topicloom.metrics import frequent_mass
        >>> frequent_mass(np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([10, 2]), top_n=1)
        0.75
    """
    frequent = np.argsort(-word_counts, kind="stable")[:top_n]
    return Measured(float(topic_word[:, frequent].sum(axis=1).mean()), top_n=top_n)


def _mean(divergence: Array) -> Array:
    # The divergence of a very long document may be too large for float32. A mean of infinity could not be stored.
    finite = np.fmin(divergence, _LARGEST)
    mean: Array = finite.mean(axis=0, dtype=np.float64) if len(finite) else np.zeros(finite.shape[1])
    return mean
