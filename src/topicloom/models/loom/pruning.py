"""Which of too many topics to keep: those whose words go together, and are theirs alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ...metrics import document_npmi
from ...metrics.cooccurrence import Reference
from ...nn.separation import TOP_N as SHARED_N
from ...ranking import top_words, word_scores
from ...training.batches import BatchReader

Array = npt.NDArray[Any]

RANKINGS = (1.0, 0.6)  # relevance: by probability, and as Sievert & Shirley recommend
COHERENCE_N = 10  # words of a topic that should go together
_SHARED = 0.5  # what a topic loses, in NPMI, when other topics have all its best words
_ALIKE = 0.5  # and when another has the same words in all; best words alone say little where the vocabulary is small


def choose_topics(topic_word: Array, word_counts: Array, reference: Reference, n_topics: int, held: Array) -> Array:
    """Leaves out one topic after another, each time the worst of those that are left.

    A topic's worth is the NPMI of its 10 best words over documents, less half the share of its 25 best words that other
    topics left have among theirs (means over two rankings of its words), less half the mass that it has in common with
    the topic most like it, 1 less their total variation: of two topics that are one, one goes, and a topic that is the
    only one of its kind stays, though its words go together less.

    Args:
        topic_word: (K', V), rows sum to 1.
        word_counts: (V,) tokens of each word.
        reference: the documents.
        n_topics: how many to keep.
        held: (K',) bool, topics that stay whatever they are worth; no more than `n_topics`.

    Returns:
        (n_topics,) indices, ascending.
    """
    best = [top_words(word_scores(topic_word, word_counts, relevance), SHARED_N) for relevance in RANKINGS]
    per_topic = document_npmi(np.concatenate(best), reference, COHERENCE_N).per_topic
    coherence = per_topic.reshape(len(best), -1).mean(0)  # (K',)
    left = np.ones(len(topic_word), bool)
    # (K', K') the mass that two topics have in common: 1 less their total variation.
    alike = np.stack([np.minimum(topic_word, row).sum(1) for row in topic_word])
    np.fill_diagonal(alike, 0)
    for _ in range(len(topic_word) - n_topics):
        users = [np.bincount(tops[left].ravel(), minlength=len(word_counts)) for tops in best]  # (V,) each
        shared = np.mean([(count[tops] > 1).mean(1) for count, tops in zip(users, best, strict=True)], axis=0)
        worth = coherence - _SHARED * shared - _ALIKE * alike[:, left].max(1)
        worth[~left | held] = np.inf
        left[worth.argmin()] = False
    return np.flatnonzero(left)


class TopicChoice:
    """`choose_topics` by the documents that a reader reads. What it counted of them is kept."""

    def __init__(self, reader: BatchReader) -> None:
        whole = len(reader.rows) == reader.counts.shape[0]  # then nothing is copied
        self.reference = Reference.from_counts(reader.counts if whole else reader.counts[reader.rows])

    def __call__(self, topic_word: Tensor, word_counts: Tensor, n_topics: int, held: Tensor) -> Tensor:
        topics, counts, stay = (tensor.cpu().numpy() for tensor in (topic_word, word_counts, held))
        return torch.from_numpy(choose_topics(topics, counts, self.reference, n_topics, stay))
