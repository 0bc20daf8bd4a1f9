"""Pruning of Loom's spare topics: a fit starts with more topics than requested, and removes some while it counts.

Other models remove their spare topics by the rules of `spare_topics.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from ...distributed import current
from ...metrics.cooccurrence import Reference
from ...training.batches import BatchReader
from ..spare_topics import Array, in_place, mean_coherence, overlaps, ranked_words, reference_of

# (topics (n, V), word counts (V,), how many to keep, protected topics (n,)) -> topics to keep, ascending
Selector = Callable[[Tensor, Tensor, int, Tensor], Tensor]

_N_STEPS = 3  # the spare topics are removed in this many steps, with passes in between for the kept ones to adapt
_PRUNING_SHARE = 1 / 3  # the share of the passes after which all spare topics have been removed
_SHARED_PENALTY = 0.5  # subtracted from the NPMI of a topic if other topics share all its top words
_OVERLAP_PENALTY = 0.5  # subtracted for a topic that is equal to another; top words say little for a small vocabulary


class Pruning:
    """Which of the initial K' topics are kept, and when the others are removed.

    Args:
        n_topics: K, the number of topics in the end.
        n_spare: K' - K, the number of spare topics.

    Attributes:
        kept: (n,) indices of the kept topics among the initial K'; None as long as none has been removed.
    """

    def __init__(self, n_topics: int, n_spare: int) -> None:
        self.n_topics, self.n_spare = n_topics, n_spare
        self.kept: Tensor | None = None

    def select(self, tensor: Tensor) -> Tensor:
        """Return the columns of the kept topics: (..., K') -> (..., n)."""
        return tensor if self.kept is None else tensor[..., self.kept]

    def n_kept(self, passes_done: int, n_passes: int) -> int:
        """Return how many topics there should be after so many of the passes."""
        n_removals = int(_N_STEPS * passes_done / max(1.0, _PRUNING_SHARE * n_passes))
        return self.n_topics + round(self.n_spare * max(0.0, 1 - n_removals / _N_STEPS))

    def most_used(self, usage: Tensor, protected: Tensor) -> Tensor:
        """Return the protected topics and those with the highest usage, K in all, ascending.

        Args:
            usage: (n,) the share of the documents that each kept topic has.
            protected: (n,) bool.
        """
        priority = usage + protected * usage.sum()
        return priority.argsort(descending=True)[: self.n_topics].sort()[0]

    def keep(self, which: Tensor, seeded: Tensor) -> Tensor:
        """Remove all topics but these.

        Args:
            which: (m,) indices among the topics kept so far, ascending.
            seeded: (n,) bool, those of the topics kept so far that must have their initial index in the end.

        Returns:
            (m,) `which`; if only K topics are left, in their final order.
        """
        which = which.to(seeded.device)
        before = torch.arange(len(seeded), device=seeded.device) if self.kept is None else self.kept
        if len(which) == self.n_topics:
            which = in_place(which, seeded, before)
        self.kept = before[which]
        return which


class CoherenceSelector:
    """`choose_topics` with co-occurrences in the documents of a reader, which are counted once."""

    def __init__(self, reader: BatchReader) -> None:
        self.reference = reference_of(reader)

    def __call__(self, topic_word: Tensor, word_counts: Tensor, n_topics: int, protected: Tensor) -> Tensor:
        topics, counts, stay = (tensor.cpu().numpy() for tensor in (topic_word, word_counts, protected))
        chosen = torch.from_numpy(choose_topics(topics, counts, self.reference, n_topics, stay))
        return current().of_first(chosen)


def choose_topics(
    topic_word: Array, word_counts: Array, reference: Reference, n_topics: int, protected: Array
) -> Array:
    """Select the topics to keep when a model has more than it needs.

    Topics are removed one at a time, each time the one with the lowest score. The score of a topic is the NPMI of its
    10 top words, minus half the share of its 25 top words that are also top words of another kept topic (both are means
    over two rankings of its words), minus half its overlap with the most similar kept topic, 1 - their total variation
    distance. Of two equal topics one is removed, and a topic that resembles no other is likely to be kept even if its
    words are less coherent.

    Args:
        topic_word: (K', V) topics, rows sum to 1.
        word_counts: (V,) tokens of each word.
        reference: the documents in which co-occurrences are counted.
        n_topics: how many topics to keep.
        protected: (K',) bool, topics that are kept whatever their score; at most `n_topics`.

    Returns:
        (n_topics,) indices of the kept topics, ascending.
    """
    tops = ranked_words(topic_word, word_counts)
    coherence = mean_coherence(tops, reference)  # (K',)
    kept = np.ones(len(topic_word), bool)
    overlap = overlaps(topic_word)
    for _ in range(len(topic_word) - n_topics):
        users = [np.bincount(top[kept].ravel(), minlength=len(word_counts)) for top in tops]  # (V,) each
        shared = np.mean([(count[top] > 1).mean(1) for count, top in zip(users, tops, strict=True)], axis=0)
        score = coherence - _SHARED_PENALTY * shared - _OVERLAP_PENALTY * overlap[:, kept].max(1)
        score[~kept | protected] = np.inf
        kept[score.argmin()] = False
    return np.flatnonzero(kept)
