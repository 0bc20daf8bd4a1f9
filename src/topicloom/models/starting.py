"""The start of training at clusters of documents.

From random weights, a network learns little in the first epochs. Topics cannot form before theta depends on the words,
and theta has hardly any gradient as long as topics are alike. With titles, this takes a tenth of the training.
Therefore spherical k-means first clusters the documents, as vectors of log(1 + x) idf with unit length (Dhillon & Modha
2001, "Concept Decompositions for Large Sparse Text Data using Clustering"). It starts like k-means++ (Arthur &
Vassilvitskii 2007). Topics start at the words of the clusters, and the encoder learns to tell the clusters apart. Then
both are trained by the loss of the model. docs/start.md has the figures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from ..distributed import current
from ..nn.execution import one_thread
from ..nn.network import AutoencoderNetwork, Loss, TopicNetwork
from ..nn.sparse import Batch, SparseCounts, document_pieces
from ..training.batches import BatchReader
from ..training.state import Stage, TrainingState
from .words import Words

STAGE = "clusters"
# The most documents and non-zeros from which clusters are found; at least sixteen documents for each cluster.
_SAMPLED, _SAMPLED_NON_ZEROS = 1 << 14, 1 << 20
_TINY = 1e-9

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
    with one_thread():  # with more, a tenth of a second becomes three seconds while another process is busy
        found = find_clusters(documents, words.idf.to(device), n_topics, generator, seeds)
    clusters = replace(found, **{name: current().of_first(getattr(found, name)) for name in ("centres", "deviations")})
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
