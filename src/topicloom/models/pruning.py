"""Pruning: training starts with more topics than requested, and the spare ones are removed in the counting stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..corpus.mapped import release
from ..corpus.parts import sum_of_ranks
from ..distributed.ranks import current
from ..metrics import document_npmi
from ..metrics.cooccurrence import Reference
from ..nn.separation import TOP_N as SHARED_N
from ..ranking import top_words, word_scores
from ..training.batches import BatchReader
from ..training.state import select

Array = npt.NDArray[Any]
# (topics (n, V), word counts (V,), how many to keep, protected topics (n,)) -> topics to keep, ascending
Selector = Callable[[Tensor, Tensor, int, Tensor], Tensor]

RANKINGS = (1.0, 0.6)  # relevance: by probability, and as Sievert & Shirley recommend
COHERENCE_N = 10  # top words of a topic whose coherence is measured
_SHARED_PENALTY = 0.5  # subtracted from the NPMI of a topic if other topics share all its top words
_OVERLAP_PENALTY = 0.5  # subtracted for a topic that is equal to another; top words say little for a small vocabulary
_STAGES = 3  # spare topics are removed in this many steps, with passes in between for the kept ones to adapt
_PRUNING_PASSES = 1 / 3  # the share of the passes after which all spare topics have been removed


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


def overlaps(topic_word: Array) -> Array:
    """Return 1 minus the total variation distance of each pair of topics (K, V), and 0 for a topic itself: (K, K)."""
    overlap = np.zeros((len(topic_word), len(topic_word)), topic_word.dtype)
    for number, row in enumerate(topic_word):
        overlap[number, number + 1 :] = np.minimum(topic_word[number + 1 :], row).sum(1)
    return overlap + overlap.T


def ranked_words(topic_word: Array, word_counts: Array) -> list[Array]:
    """Return the 25 top words of the topics (K', V) by each of `RANKINGS`: (K', 25) word ids each."""
    return [top_words(word_scores(topic_word, word_counts, relevance), SHARED_N) for relevance in RANKINGS]


def mean_coherence(tops: list[Array], reference: Reference) -> Array:
    """Return the NPMI of the 10 top words of each topic, the mean over the rankings of `ranked_words`: (K',)."""
    per_topic = document_npmi(np.concatenate(tops), reference, COHERENCE_N).per_topic
    coherence: Array = per_topic.reshape(len(tops), -1).mean(0)
    return coherence


def reference_of(reader: BatchReader) -> Reference:
    """Return the documents of a reader as a reference for coherence; of all ranks' readers, if there are several."""
    counts = reader.counts
    rows = None if len(reader.rows) == counts.shape[0] else reader.rows
    release_counts = partial(release, counts.data, counts.indices)
    return Reference.from_counts(counts, rows=rows, after_piece=release_counts, total=sum_of_ranks())


def in_place(which: Tensor, seeded: Tensor, numbers: Tensor) -> Tensor:
    """Return topics in an order in which the seeded ones have their initial number.

    Args:
        which: (m,) indices of topics, ascending.
        seeded: (n,) bool, the topics that must have their initial number, which is below m.
        numbers: (n,) the initial numbers of all topics, ascending.
    """
    fixed = torch.isin(torch.arange(len(which), device=which.device), numbers[which[seeded[which]]])  # (m,) bool
    order = torch.empty_like(which)
    order[fixed], order[~fixed] = which[seeded[which]], which[~seeded[which]]
    return order


class CoherenceSelector:
    """`choose_topics` with co-occurrences in the documents of a reader, which are counted once."""

    def __init__(self, reader: BatchReader) -> None:
        self.reference = reference_of(reader)

    def __call__(self, topic_word: Tensor, word_counts: Tensor, n_topics: int, protected: Tensor) -> Tensor:
        topics, counts, stay = (tensor.cpu().numpy() for tensor in (topic_word, word_counts, protected))
        chosen = torch.from_numpy(choose_topics(topics, counts, self.reference, n_topics, stay))
        return current().of_first(chosen)


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
        stage = int(_STAGES * passes_done / max(1.0, _PRUNING_PASSES * n_passes))
        return self.n_topics + round(self.n_spare * max(0.0, 1 - stage / _STAGES))

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


def select_topics(wide: Mapping[str, Tensor], wanted: Mapping[str, Tensor], kept: Tensor) -> dict[str, Tensor]:
    """Return the weights of a network of K' topics as those of a network of the K kept topics.

    Args:
        wide: the weights by name, of shapes (.., K', ..).
        wanted: tensors of the shapes (.., K, ..) to return, by the same names.
        kept: (K,) indices of the kept topics.
    """
    return {**wide, **{name: select(wide[name], goal.shape, kept) for name, goal in wanted.items()}}
