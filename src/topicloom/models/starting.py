"""The start of training at clusters of documents.

From random weights, a network learns little in the first epochs: theta does not depend on the words yet, so that topics
cannot form, and while topics are alike, theta has hardly any gradient. With titles, this takes a tenth of the training.
So k-means clusters the documents first. Topics start at the words of the clusters, and the encoder learns to tell the
clusters apart, before both are trained by the loss of the model. docs/start.md has the figures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch.nn.functional import pad

from ..distributed.ranks import current
from ..nn.batch import Batch
from ..nn.clusters import Clusters, find_clusters
from ..nn.network import AutoencoderNetwork, Loss, TopicNetwork
from ..nn.threads import one_thread
from ..training.batches import BatchReader
from ..training.state import Stage, TrainingState
from .words import Words

if TYPE_CHECKING:
    from .neural import NeuralTopicModel

STAGE = "clusters"
# Clusters are found from so many documents and non-zeros at most, but from sixteen documents for each cluster.
_SAMPLED, _SAMPLED_NON_ZEROS = 1 << 14, 1 << 20
_TINY = 1e-9


def start_stages(model: NeuralTopicModel) -> list[Stage]:
    """Return the stage in which the encoder learns the clusters, or nothing; it is one pass over the documents."""
    if model.start == "random":
        return []
    plan = replace(model.training_plan(), epochs=1, kl_warmup=0.0, patience=None, cycle_end=None)
    return [Stage(STAGE, plan, recorded=False)]


@torch.no_grad()
def start_at_clusters(state: TrainingState, reader: BatchReader, stages: Sequence[Stage], words: Words) -> list[Stage]:
    """Start topics at clusters, and return the stages of training, in the first of which the encoder learns these.

    Args:
        state: the state of a run before its first step. A network without an encoder and a decoder keeps its start.
        reader: the training documents.
        stages: those of the model.
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
    """Return the loss that is the divergence of theta from that of the clusters."""

    def loss(network: TopicNetwork, batch: Batch) -> Loss:
        wanted = clusters.theta(batch.counts)  # (B, K)
        theta = network.posterior(batch).point().clamp_min(_TINY)  # (B, K)
        divergence = (wanted * (wanted / theta).log()).sum(1)  # (B,)
        return Loss(divergence, torch.zeros_like(divergence))

    return loss
