"""The ranking of a topic's words, the same for every model.

Ranked by probability alone, the topics of long texts all start with the same frequent words. Ranked by lift alone, they
start with words that occur five times. The default is a compromise that shrinks the lift of rare words; docs/ranking.md
has the measurements that it rests on.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

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
