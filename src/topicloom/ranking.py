"""The words that stand for each topic, and the names and numbers of topics: the same for every model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import SettingError
from .settings import require_whole

Array = npt.NDArray[Any]

DEFAULT_RELEVANCE = 0.5
DEFAULT_SHRINKAGE = 50.0  # tokens


def word_scores(
    topic_word: Array, word_counts: Array, relevance: float | None = None, shrinkage: float | None = None
) -> Array:
    """Score each word for each topic: relevance * log p(w|k) + (1 - relevance) * log (p(w|k) / p(w)).

    Args:
        topic_word: (K, V), rows sum to 1.
        word_counts: (V,) tokens of each word in the training corpus.
        relevance: 1 ranks by probability and 0 by lift; Sievert & Shirley (2014, equation 1) recommend 0.6. None is the
            package's rule, a relevance of 0.5 with a shrinkage of 50.
        shrinkage: the tokens added to each word's count before p(w) is computed, so that the lift of a rare word has
            little effect. None is 1. Without a relevance it is ignored.

    Returns:
        (K, V) scores; the best word has the highest.
    """
    if relevance is None:
        relevance, shrinkage = DEFAULT_RELEVANCE, DEFAULT_SHRINKAGE
    smoothed = word_counts + (1.0 if shrinkage is None else shrinkage)
    scores: Array = np.log(topic_word + 1e-12) - (1 - relevance) * np.log(smoothed / smoothed.sum())
    return scores


def top_words(scores: Array, top_n: int) -> npt.NDArray[np.intp]:
    """Return the ids of each topic's best words, best first. Of words with equal scores, the lower id comes first.

    Args:
        scores: (K, V), as `word_scores` returns them.
        top_n: the number of words for each topic.

    Returns:
        (K, min(top_n, V)) word ids.

    >>> top_words(np.array([[0.1, 0.9, 0.5], [0.2, 0.2, 0.3]]), 2).tolist()
    [[1, 2], [2, 0]]
    """
    n_topics, n_words = scores.shape
    n = min(top_n, n_words)
    # Each of the n best groups of words has a word that scores at least as high as the best word of the n-th of them.
    # So the top words are among those that score as high, which are few.
    size = math.isqrt(n_words // n)
    m = n_words // size
    best = scores[:, : m * size].reshape(n_topics, size, m).max(1)  # (K, m)
    floors = -np.partition(-best, n - 1)[:, n - 1]  # (K,)
    rows = []
    for row, floor in zip(scores, floors, strict=True):
        candidates = np.flatnonzero(row >= floor)
        rows.append(candidates[np.argsort(-row[candidates], kind="stable")[:n]])
    return np.stack(rows)


def topic_word_ids(
    components: npt.NDArray[Any], word_counts: npt.NDArray[Any], top_n: int = 10, relevance: float | None = None
) -> npt.NDArray[np.intp]:
    """Rank the words of each topic.

    Args:
        components: (K, V), rows sum to 1.
        word_counts: (V,) tokens of each word in the training corpus.
        top_n: how many words a topic has.
        relevance: 1 ranks words by probability and 0 by lift. None is a relevance of 0.5, with which words of few
            tokens count less.

    Returns:
        (K, min(top_n, V)) columns of components, best first.

    Raises:
        SettingError: `top_n` or `relevance` is out of its range.
    """
    if relevance is not None and not 0 <= relevance <= 1:
        raise SettingError(f"`relevance` should be from 0 to 1; it is {relevance!r}")
    require_whole("top_n", top_n)
    return top_words(word_scores(components, word_counts, relevance), int(top_n))


def complete_names(given: Sequence[str | None], words: Sequence[Sequence[str]]) -> list[str]:
    """Return a name for each topic: the one that it was given, or else its first words.

    >>> complete_names(["pets", None], [["cat", "dog"], ["bank", "loan", "rate", "tax"]])
    ['pets', 'bank, loan, rate']
    """
    return [", ".join(topic[:3]) if name is None else name for name, topic in zip(given, words, strict=True)]


def names_or_numbers(names: Sequence[str] | None, n_topics: int) -> list[str]:
    """Return the names of topics, or their numbers if they have none."""
    return [str(topic) for topic in range(n_topics)] if names is None else list(names)


def chosen_topics(topics: Sequence[int] | None, n_topics: int) -> list[int]:
    """Return the given topics, or all.

    >>> chosen_topics(None, 3), chosen_topics([2, 0], 3)
    ([0, 1, 2], [2, 0])

    Raises:
        SettingError: there is no such topic.
    """
    chosen = list(range(n_topics)) if topics is None else [int(topic) for topic in topics]
    for topic in chosen:
        if not 0 <= topic < n_topics:
            raise SettingError(f"there is no topic {topic}; topics are numbered 0 to {n_topics - 1}")
    return chosen
