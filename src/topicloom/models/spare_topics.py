"""Spare topics: a fit starts with more topics than requested, and removes the superfluous ones early.

If a model has only as many topics as the texts, several of its topics soon divide a large topic of the texts, and two
rare topics share one. With spare topics, rare topics get a place of their own. Duplicates of the large topic are then
joined, and their shares are added. If many topics are requested, a few spare ones stay longer. When these are removed,
topics that are not the main topic of any document go first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..distributed import current
from ..metrics import document_npmi
from ..metrics.cooccurrence import Reference
from ..nn.network import TOP_N as SHARED_N
from ..nn.network import TopicNetwork
from ..nn.posteriors import TopicShares
from ..ranking import top_words, word_scores
from ..text.strings import release
from ..training.batches import BatchReader, sum_of_ranks
from ..training.loop import evaluated
from ..training.state import Stage, TrainingState, select

Array = npt.NDArray[Any]

RANKINGS = (1.0, 0.6)  # relevance: by probability, and as Sievert & Shirley recommend
COHERENCE_N = 10  # top words of a topic whose coherence is measured


def overlaps(topic_word: Array) -> Array:
    """Return 1 minus the total variation distance of each pair of topics (K, V), with 0 on the diagonal: (K, K)."""
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
    """Return the documents of a reader, of all ranks if there are several, as a reference for coherence."""
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


def select_topics(wide: Mapping[str, Tensor], wanted: Mapping[str, Tensor], kept: Tensor) -> dict[str, Tensor]:
    """Return the weights of a network of K' topics as those of a network of the K kept topics.

    Args:
        wide: the weights by name, of shapes (.., K', ..).
        wanted: tensors of the shapes (.., K, ..) to return, by the same names.
        kept: (K,) indices of the kept topics.
    """
    return {**wide, **{name: select(wide[name], goal.shape, kept) for name, goal in wanted.items()}}


# Bounds of the number of spare topics. Even with few topics, many spare ones are needed before rare topics are found.
MIN_SPARE, MAX_SPARE = 12, 50
# These values were chosen on held-out documents. benchmarks/shares_tried.md compares others.
_MOMENTS = (0.3, 0.4, 0.5)  # shares of the epochs after which topics are removed, the same number each time
_LAST = 0.75  # the share of the epochs after which the last spare topics are removed
_SMALL_SHARE = 0.2  # topics with a share below this multiple of 1 / K get a lower score
_COHERENCE_WEIGHT = 0.2  # the weight of a topic's NPMI; its distance from other topics has the weight 1
_UNUSED_PENALTY = 2.0  # larger than any difference of scores


def choose_distinct(
    topic_word: Array,
    shares: Array,
    n_topics: int,
    coherence: Array | None = None,
    protected: Array | None = None,
    unused: Array | None = None,
) -> tuple[Array, Array]:
    """Select the topics to keep, and for each topic the kept one that gets its share.

    Topics are removed one at a time, each time the one with the lowest score: its total variation distance from the
    nearest topic that is left, times min(1, 5 K share), plus a fifth of its coherence. Its share goes to the nearest
    topic. One of two equal topics is therefore removed, however large they are, and a rare topic with words of its own
    is kept. Unused topics are removed before all others.

    Args:
        topic_word: (K', V) topics, rows sum to 1.
        shares: (K',) the topics' shares of the documents.
        n_topics: how many topics to keep, K.
        coherence: (K',) the NPMI of the topics' top words; None leaves it out.
        protected: (K',) bool, topics that are kept whatever their score; at most `n_topics`.
        unused: (K',) bool, topics that are not the main topic of any document.

    Returns:
        (n_topics,) indices of the kept topics, ascending, and (K',) the index of the kept topic that gets the share of
        each topic. A kept topic gets its own.
    """
    n = len(topic_word)
    overlap = overlaps(topic_word)
    shares, heirs, kept = shares.astype(np.float64), np.arange(n), np.ones(n, bool)
    extra = np.zeros(n) if coherence is None else _COHERENCE_WEIGHT * coherence
    extra = extra if unused is None else extra - _UNUSED_PENALTY * unused
    for _ in range(n - n_topics):
        distance = 1 - overlap[:, kept].max(1)  # (K',)
        score = distance * np.minimum(1, shares * n_topics / _SMALL_SHARE) + extra
        score[~kept | (False if protected is None else protected)] = np.inf
        lost = int(score.argmin())
        kept[lost] = False
        heir = int(np.where(kept, overlap[lost], -1).argmax())
        shares[heir] += shares[lost]
        heirs[heirs == lost] = heir
    return np.flatnonzero(kept), heirs


class SpareTopics:
    """Removes the spare topics of a network while it is trained, in the last stage of training.

    Args:
        n_topics: the number of topics that are left at the end, K.
        n_spare: the number of spare topics at the start.
        build: returns a new network of a model with another number of topics.
        seeds: (V, K) what seed words add to the log weights of their topics, or None.
        word_counts: (V,) the tokens of each word in the training documents.
        reader: the training documents.
        stages: the stages of training.
    """

    def __init__(
        self,
        n_topics: int,
        n_spare: int,
        build: Callable[[int], TopicNetwork],
        *,
        seeds: Tensor | None,
        word_counts: Array,
        reader: BatchReader,
        stages: Sequence[Stage],
    ) -> None:
        self.n_topics, self.build, self.seeds, self.word_counts = n_topics, build, seeds, word_counts
        self.reader, self.stages = reader, stages
        self.wide = n_topics + n_spare
        self.late_width = min(self.wide, n_topics + n_late(n_topics))
        early, steps = self.wide - self.late_width, len(_MOMENTS)
        widths = [self.late_width + round(early * (1 - number / steps)) for number in range(1, steps + 1)]
        epochs = [max(1, round(moment * stages[-1].plan.epochs)) for moment in (*_MOMENTS, _LAST)]
        self.widths = dict(zip(epochs, (*widths, n_topics), strict=True))

    def begin(self, state: TrainingState, width: int | None = None) -> None:
        """Prepare a new state, or one that will be restored from a snapshot with `width` topics."""
        state.n_topics = self.wide
        if width is not None and width < self.wide:
            self._narrow(state, np.arange(width))
        self._mark(state.network, state.n_topics)

    def after_epoch(self, state: TrainingState) -> None:
        """Remove the topics that are due after this epoch."""
        width = self.widths.get(state.epoch) if state.stage == len(self.stages) - 1 else None
        if width is not None and width < state.n_topics:
            self.remove(state, width)

    def finish(self, state: TrainingState) -> None:
        """Remove all spare topics that are left, for example after an interruption."""
        if state.n_topics > self.n_topics:
            self.remove(state, self.n_topics)

    def remove(self, state: TrainingState, n_topics: int) -> None:
        """Remove all but `n_topics` topics, with the parts of the network and of the optimizers that belong to them."""
        topic_word, shares, used = evaluated(state.network, state.device, self._topics_and_use)
        seeds = self.seeds
        seeded = np.zeros(len(shares), bool)
        if seeds is not None:
            seeded[: self.n_topics] = (seeds > 0).any(0).cpu().numpy()
        coherence = mean_coherence(ranked_words(topic_word, self.word_counts), self._reference)
        unused = ~used if self.late_width > n_topics == self.n_topics else None
        kept, heirs = choose_distinct(topic_word, shares, n_topics, coherence, seeded, unused)
        if seeds is not None:  # a seeded topic keeps its number
            kept = in_place(torch.from_numpy(kept), torch.from_numpy(seeded), torch.arange(len(seeded))).numpy()
        kept, heirs = (current().of_first(torch.from_numpy(chosen)).numpy() for chosen in (kept, heirs))
        for part in state.network.modules():
            if isinstance(part, TopicShares):
                part.absorb(torch.from_numpy(heirs).to(state.device))
        self._narrow(state, kept)

    def _topics_and_use(self, network: TopicNetwork) -> tuple[Array, Array, Array]:
        """Return the topics (K', V), their shares of the training documents and whether they are a main topic (K',)."""
        points = (network.posterior(batch).point() for batch in self.reader)
        parts = [torch.stack([theta.sum(0), theta.argmax(1).bincount(minlength=theta.shape[1])]) for theta in points]
        total, mains = current().sum(torch.stack(parts).sum(0)).cpu().numpy()  # (K',) each
        return network.topic_word().double().cpu().numpy(), total / total.sum(), mains > 0

    @cached_property
    def _reference(self) -> Reference:
        return reference_of(self.reader)

    def _narrow(self, state: TrainingState, kept: Array) -> None:
        """Replace the network by one of the kept topics alone."""
        old, which = state.network, torch.from_numpy(kept).to(state.device)
        new = self.build(len(kept)).to(state.device)
        new.load_state_dict(select_topics(old.state_dict(), new.state_dict(), which))
        new.generator, new.fields = old.generator, old.fields
        state.narrow(new, which)
        self._mark(new, len(kept))

    def _mark(self, network: TopicNetwork, width: int) -> None:
        network.has_spare_topics = width > self.n_topics
        network.keeps_apart = width <= self.late_width


def spare_at_start(n_topics: int, multiple: float, n_docs: int, n_words: int) -> int:
    """Return how many topics a fit has at first in addition to those requested.

    Args:
        n_topics: the number of requested topics.
        multiple: the setting `spare_topics`.
        n_docs: the number of training documents with words.
        n_words: the number of words.
    """
    if multiple == 0:
        return 0
    wanted = max(MIN_SPARE, round(multiple * n_topics))
    enough = n_docs // 2  # a topic needs documents
    return max(0, min(wanted, MAX_SPARE, n_words - n_topics, enough - n_topics))


def n_late(n_topics: int) -> int:
    """Return how many spare topics stay longer: a tenth of the topics beyond 20, as fewer are hardly ever unused."""
    return max(0, n_topics - 20) // 10
