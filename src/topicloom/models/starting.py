"""How training starts: at clusters of documents, and with spare topics, which are removed early.

From random weights, a network learns little in the first epochs. Topics cannot form before theta depends on the words,
and theta has hardly any gradient as long as topics are alike. With titles, this takes a tenth of the training.
Therefore spherical k-means first clusters the documents, as vectors of log(1 + x) idf with unit length (Dhillon & Modha
2001, "Concept Decompositions for Large Sparse Text Data using Clustering"). It starts like k-means++ (Arthur &
Vassilvitskii 2007). Topics start at the words of the clusters, and the encoder learns to tell the clusters apart. Then
both are trained by the loss of the model. docs/lab/start.md has the figures.

If a model has only as many topics as the texts, several of its topics soon divide a large topic of the texts, and two
rare topics share one. With spare topics, rare topics get a place of their own. Duplicates of the large topic are then
joined, and their shares are added. The share of a topic that is no duplicate is divided among all topics. If many
topics are requested, a few spare ones stay longer. When these are removed, topics that are not the main topic of any
document go first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from ..distributed import current
from ..metrics import document_npmi
from ..metrics.cooccurrence import Reference
from ..nn.execution import one_thread_with_mkl
from ..nn.network import TOP_N, AutoencoderNetwork, Loss, TopicNetwork
from ..nn.posteriors import TopicShares
from ..nn.sparse import Batch, SparseCounts, document_pieces
from ..ranking import top_words, word_scores
from ..text.strings import release
from ..training.batches import BatchReader, sum_of_ranks
from ..training.loop import evaluated
from ..training.state import Stage, TrainingState, select
from .inference import Array
from .words import Words

STAGE = "clusters"  # the name of the first stage
# The most documents and non-zeros from which clusters are found; at least sixteen documents for each cluster.
_SAMPLED, _SAMPLED_NON_ZEROS = 1 << 14, 1 << 20
_TINY = 1e-9  # the least share of which a logarithm is taken
_STEPS = 8  # steps of k-means; later steps would move few documents
_DRAWN_FROM = 4096  # the first centres are drawn from this many documents, or from four for each cluster
_OWN_SHARE = 0.7  # the share of a document's theta that its cluster's topic gets; all topics share the rest equally
_SMOOTHING = 20.0  # weighted tokens with the word frequencies of the corpus that are added to each cluster
_BLOCK = 1 << 17  # non-zeros in a block of a sum
_LARGEST = 1.5  # the largest initial deviation of a topic from the word frequencies, in nats


@dataclass(frozen=True)
class Clusters:
    """K clusters of documents.

    Attributes:
        centres: (V, K), whose columns have unit length.
        deviations: (V, K) the log ratio of a word's frequency in a cluster and in all documents.
        idf: (V,) inverse document frequencies.
    """

    centres: Tensor
    deviations: Tensor
    idf: Tensor

    def theta(self, counts: SparseCounts) -> Tensor:
        """Return theta of documents as their clusters suggest it, (B, K). Those without a cluster have equal shares."""
        closeness, own = counts.times(vectors(counts, self.idf), self.centres).max(1)  # (B,) each
        n_topics = self.centres.shape[1]
        theta = torch.full((counts.n_docs, n_topics), (1 - _OWN_SHARE) / n_topics, device=counts.device)
        theta.scatter_add_(1, own[:, None], torch.full_like(closeness, _OWN_SHARE)[:, None])
        return torch.where(closeness[:, None] > 0, theta, 1 / n_topics)


def vectors(counts: SparseCounts, idf: Tensor) -> Tensor:
    """Return the values of the documents' vectors at the non-zeros, (N,), given inverse document frequencies (V,)."""
    weighted = counts.values.log1p().mul_(idf[counts.indices])  # (N,)
    lengths = counts.sum_by_document(weighted**2).sqrt_().clamp_min_(1e-12)  # (B,)
    # If the size of the result is given, the processor need not wait for a GPU.
    return weighted.div_(lengths.repeat_interleave(counts.offsets.diff(), output_size=len(weighted)))


def find_clusters(
    counts: SparseCounts, idf: Tensor, n_clusters: int, generator: torch.Generator, seeds: Tensor | None = None
) -> Clusters:
    """Divide documents into clusters.

    Args:
        counts: the documents.
        idf: (V,) inverse document frequencies.
        n_clusters: the number of clusters K.
        generator: draws the documents at which clusters start, on the CPU.
        seeds: (V, K) weights of the seed words of topics, or None. The clusters of these topics stay near them.
    """
    values = vectors(counts, idf)  # (N,)
    seeded = torch.zeros(counts.n_words, n_clusters, device=counts.device)
    if seeds is not None:  # the mean of the documents with the seed words
        closeness = counts.times(values, _unit((seeds > 0) * idf[:, None]))  # (B, K)
        seeded = _unit(counts.transposed_times(values, closeness**2))  # (V, K)
    centres = _first_centres(counts, values, seeded, generator)  # (V, K)
    own = torch.zeros(counts.n_docs, dtype=torch.int64, device=counts.device)
    for _ in range(_STEPS):
        own = counts.times(values, centres).argmax(1)  # (B,)
        moved = _unit(_unit(_sums(counts, values, own, n_clusters)) + seeded)  # (V, K)
        centres = torch.where(moved.any(0), moved, centres)  # an empty cluster stays
    tokens = _sums(counts, counts.values.log1p(), own, n_clusters)  # (V, K)
    frequency = tokens.sum(1) + 0.01  # (V,)
    frequency = (frequency / frequency.sum())[:, None]
    smoothed = tokens + _SMOOTHING * frequency
    deviations = (smoothed / smoothed.sum(0) / frequency).log().clamp_(-_LARGEST, _LARGEST)
    return Clusters(centres, deviations, idf)


def _first_centres(counts: SparseCounts, values: Tensor, seeded: Tensor, generator: torch.Generator) -> Tensor:
    """Return documents that differ from each other as centres (V, K). Each is drawn by its distance from the others.

    Args:
        counts: the documents.
        values: (N,) the values of their vectors.
        seeded: (V, K) the centres of topics with seed words; other columns are zero.
        generator: draws the documents.
    """
    centres = seeded.mT.contiguous()  # (K, V)
    n_docs = min(counts.n_docs, max(_DRAWN_FROM, 4 * len(centres)))
    rows = torch.linspace(0, counts.n_docs - 1, n_docs, dtype=torch.float64).long().to(counts.device)
    some = counts.with_values(values).take(rows)
    starts = some.offsets.tolist()
    closest = some.times(some.values, seeded).amax(1)  # (n_docs,) the cosine with the most similar centre
    for number in (~seeded.any(0)).nonzero()[:, 0].tolist():
        centre = centres[number]
        distance = (1 - closest).clamp_min_(1e-6).square_().cpu()
        chosen = int(torch.multinomial(distance, 1, generator=generator))
        part = slice(starts[chosen], starts[chosen + 1])
        centre[some.indices[part]] = some.values[part]
        closest = torch.maximum(closest, some.sum_by_document(some.values * centre[some.indices]))
    return centres.mT.contiguous()


def _sums(counts: SparseCounts, values: Tensor, own: Tensor, n_clusters: int) -> Tensor:
    """Return the sums of the values (N,) of each word in each cluster, (V, K), given the documents' clusters (B,)."""
    sums = torch.zeros(counts.n_words * n_clusters, device=counts.device)
    offsets, lengths = counts.offsets.tolist(), counts.offsets.diff()  # (B + 1,), (B,)
    for first, last in document_pieces(offsets, _BLOCK):  # in blocks, to save memory
        part = slice(offsets[first], offsets[last])
        places = own[first:last].repeat_interleave(lengths[first:last]).add_(counts.indices[part], alpha=n_clusters)
        sums.index_add_(0, places, values[part])
    return sums.view(-1, n_clusters)


def _unit(columns: Tensor) -> Tensor:
    """Return columns of unit length; columns of zeros stay as they are."""
    lengths: Tensor = columns.norm(dim=0)  # (K,)
    return columns / lengths.clamp_min(1e-12)


@torch.no_grad()
def start_at_clusters(state: TrainingState, reader: BatchReader, stages: Sequence[Stage], words: Words) -> list[Stage]:
    """Start topics at clusters, and return the stages of training. In the first, the encoder learns the clusters.

    Args:
        state: the state of a run before its first step. A network without an encoder and a decoder keeps its start.
        reader: the training documents.
        stages: the stages of the model.
        words: the vocabulary.
    """
    first, *others = stages
    if first.name != STAGE:
        return [first, *others]
    network = state.network
    if not isinstance(network, AutoencoderNetwork):
        return [replace(first, plan=replace(first.plan, epochs=0)), *others]
    n_topics, device = len(network.topic_word()), state.device
    n_docs = min(_SAMPLED, _SAMPLED_NON_ZEROS * reader.n_docs_of_all // max(reader.n_non_zeros, 1))
    documents = reader.sample_of_all(max(n_docs, 16 * n_topics)).counts
    seeds = None if words.seeds is None else pad(words.seeds, (0, n_topics - words.seeds.shape[1])).to(device)
    generator = torch.Generator().manual_seed(state.seed)
    # With more threads, a tenth of a second becomes three seconds while another process is busy, and sums over words
    # have other roundings.
    with one_thread_with_mkl():
        found = find_clusters(documents, words.idf.to(device), n_topics, generator, seeds)
        of_first = {name: current().of_first(getattr(found, name)) for name in ("centres", "deviations")}
        clusters = replace(found, **of_first)
        network.decoder.start_at(clusters.deviations)
    return [replace(first, loss=_encoder_loss(clusters)), *others]


def _encoder_loss(clusters: Clusters) -> Callable[[TopicNetwork, Batch], Loss]:
    """Return a loss: the divergence of theta from the theta that the clusters suggest."""

    def loss(network: TopicNetwork, batch: Batch) -> Loss:
        wanted = clusters.theta(batch.counts)  # (B, K)
        theta = network.posterior(batch).point().clamp_min(_TINY)  # (B, K)
        divergence = (wanted * (wanted / theta).log()).sum(1)  # (B,)
        return Loss(divergence, torch.zeros_like(divergence))

    return loss


# Spare topics

# Bounds of the number of spare topics. Even with few topics, many spare ones are needed before rare topics are found.
_MIN_SPARE, MAX_SPARE = 12, 50
RANKINGS = (1.0, 0.6)  # relevance: by probability, and as Sievert & Shirley recommend
_COHERENCE_N = 10  # top words of a topic whose coherence is measured
# These values were chosen on held-out documents. benchmarks/shares_tried.md compares others.
_MOMENTS = (0.3, 0.4, 0.5)  # shares of the epochs after which topics are removed, the same number each time
_LAST = 0.75  # the share of the epochs after which the last spare topics are removed
_SMALL_SHARE = 0.2  # topics with a share below this multiple of 1 / K get a lower score
_COHERENCE_WEIGHT = 0.2  # the weight of a topic's NPMI; its distance from other topics has the weight 1
_UNUSED_PENALTY = 2.0  # larger than any difference of scores


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
    wanted = max(_MIN_SPARE, round(multiple * n_topics))
    enough = n_docs // 2  # a topic needs documents
    return max(0, min(wanted, MAX_SPARE, n_words - n_topics, enough - n_topics))


def _n_late(n_topics: int) -> int:
    """Return how many spare topics stay longer: a tenth of the topics beyond 20, as fewer are hardly ever unused."""
    return max(0, n_topics - 20) // 10


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
        self.late_width = min(self.wide, n_topics + _n_late(n_topics))
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
        found = kept, heirs, inherited_parts(topic_word, kept, heirs).astype(np.float32)
        first = [current().of_first(torch.from_numpy(each)) for each in found]  # so that all ranks go on alike
        for module in state.network.modules():
            if isinstance(module, TopicShares):
                module.absorb(*(each.to(state.device) for each in first[1:]))
        self._narrow(state, first[0].numpy())

    def _topics_and_use(self, network: TopicNetwork) -> tuple[Array, Array, Array]:
        """Return the topics (K', V), their shares of the training documents and whether they are a main topic (K',)."""
        points = (network.posterior(batch).point() for batch in self.reader)
        parts = [torch.stack([theta.sum(0), theta.argmax(1).bincount(minlength=theta.shape[1])]) for theta in points]
        total, mains = current().sum(torch.stack(parts).sum(0)).cpu().numpy()  # (K',) each
        return network.topic_word().cpu().double().numpy(), total / total.sum(), mains > 0

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


def inherited_parts(topic_word: Array, kept: Array, heirs: Array) -> Array:
    """Return the part of each topic's share that its heir gets, (K',). It is 1 for a topic that is kept.

    A copy leaves its share to the topic that it repeats. A topic that is as near to the mean of all kept topics has no
    copy: its nearest topic is only the blandest one. If texts are short and words rare, most removed topics are of this
    kind, and one topic would inherit the shares of all of them. The part is therefore the overlap with the heir beyond
    the overlap with the mean, as a fraction of what is possible.

    Args:
        topic_word: (K', V) topics, rows sum to 1.
        kept: (K,) the indices of the kept topics.
        heirs: (K',) the kept topic that gets the share of each topic.
    """
    mean = topic_word[kept].mean(0)  # (V,)
    usual = np.minimum(topic_word, mean).sum(1)  # (K',)
    own = np.minimum(topic_word, topic_word[heirs]).sum(1)  # (K',)
    parts: Array = ((own - usual) / np.maximum(1 - usual, _TINY)).clip(0, 1)
    parts[kept] = 1
    return parts


def overlaps(topic_word: Array) -> Array:
    """Return 1 minus the total variation distance of each pair of topics (K, V), with 0 on the diagonal: (K, K)."""
    overlap = np.zeros((len(topic_word), len(topic_word)), topic_word.dtype)
    for number, row in enumerate(topic_word):
        overlap[number, number + 1 :] = np.minimum(topic_word[number + 1 :], row).sum(1)
    return overlap + overlap.T


def ranked_words(topic_word: Array, word_counts: Array) -> list[Array]:
    """Return the 25 top words of the topics (K', V) by each of `RANKINGS`: (K', 25) word ids each."""
    return [top_words(word_scores(topic_word, word_counts, relevance), TOP_N) for relevance in RANKINGS]


def mean_coherence(tops: list[Array], reference: Reference) -> Array:
    """Return the NPMI of the 10 top words of each topic, the mean over the rankings of `ranked_words`: (K',)."""
    per_topic = document_npmi(np.concatenate(tops), reference, _COHERENCE_N).per_topic
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
