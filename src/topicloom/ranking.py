"""Which words speak for a topic: one rule for every model.

By probability alone, topics of long texts all start with the same frequent words; by lift alone, with words that occur
five times. The default stands between them and does not trust the lift of a rare word: see docs/ranking.md for the
measurements behind it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

DEFAULT_RELEVANCE = 0.5
DEFAULT_SHRINKAGE = 50.0  # tokens


def word_scores(
    topic_word: Array, word_counts: Array, relevance: float | None = None, shrinkage: float | None = None
) -> Array:
    """How much each word speaks for each topic: relevance * log p(w|k) + (1 - relevance) * log (p(w|k) / p(w)).

    Args:
        topic_word: (K, V), rows sum to 1.
        word_counts: (V,) tokens of each word in the training corpus.
        relevance: 1 ranks by probability, 0 by lift, and 0.6 is what Sievert & Shirley (2014, equation 1) recommend;
            None is the package's rule: 0.5, and a shrinkage of 50.
        shrinkage: tokens added to every word's count before p(w) is taken, so that a word must be frequent enough
            before its lift counts; 1 by default when there is a relevance.

    Returns:
        (K, V), higher is more telling.
    """
    if relevance is None:
        relevance, shrinkage = DEFAULT_RELEVANCE, DEFAULT_SHRINKAGE
    smoothed = word_counts + (1.0 if shrinkage is None else shrinkage)
    scores: Array = np.log(topic_word + 1e-12) - (1 - relevance) * np.log(smoothed / smoothed.sum())
    return scores


def top_words(scores: Array, top_n: int) -> npt.NDArray[np.intp]:
    """(K, min(top_n, V)) word ids, best first; ties go to the lower id.

    Args:
        scores: (K, V).
    """
    n = min(top_n, scores.shape[1])
    floors = -np.partition(-scores, n - 1, axis=1)[:, n - 1]  # (K,) the n-th best of each row
    rows = []
    for row, floor in zip(scores, floors, strict=True):
        candidates = np.flatnonzero(row >= floor)  # n words and those level with the last: a full sort of few
        rows.append(candidates[np.argsort(-row[candidates], kind="stable")[:n]])
    return np.stack(rows)
