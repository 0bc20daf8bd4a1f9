"""Which words speak for a topic: one rule for every model."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
DEFAULT_RELEVANCE = 0.6


def relevance_scores(topic_word: Array, word_counts: Array, relevance: float = DEFAULT_RELEVANCE) -> Array:
    """relevance * log p(w|k) + (1 - relevance) * log (p(w|k) / p(w)).

    Args:
        topic_word: (K, V), rows sum to 1.
        word_counts: (V,) tokens of each word in the training corpus; p(w) is of counts plus one.
        relevance: 1 ranks by probability, 0 by lift.

    Returns:
        (K, V), higher is more telling.

    Source: Sievert & Shirley 2014, equation 1.
    """
    log_p = np.log(topic_word + 1e-12)
    smoothed = word_counts + 1.0
    return log_p - (1 - relevance) * np.log(smoothed / smoothed.sum())


def top_words(scores: Array, top_n: int) -> npt.NDArray[np.intp]:
    """(K, min(top_n, V)) word ids, best first; ties go to the lower id.

    Args:
        scores: (K, V).
    """
    n = min(top_n, scores.shape[1])
    # The n best of each row by a partial sort, and then only those in order.
    best = np.sort(np.argpartition(-scores, n - 1, axis=1)[:, :n], axis=1)
    order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1, kind="stable")
    return np.take_along_axis(best, order, axis=1)
