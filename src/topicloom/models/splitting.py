"""The parts of a topic: LDA on what the topic has of each document."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
from torch import Tensor

from ..corpus import Corpus
from ..display import counted
from ..errors import InputError
from ..nn.batch import Batch
from ..nn.edited import EditedNetwork, topic_counts
from ..nn.mean_field import MeanFieldNetwork
from ..topics.document_topics import DocumentTopics
from ..topics.edits import Edit
from .inference import Array, each_batch
from .lda.online import OnlineRun
from .mean_field import mean_field_network

_FEWEST_PASSES, _MOST_PASSES = 6, 40
_DOCUMENTS_READ = 60_000  # in all passes, if that many passes are allowed
_FEWEST_TOKENS = 1.0  # of a topic in a document that the parts are learned from
_MOST_DOCUMENTS = 10_000  # that the parts are learned from; of more, so many are drawn
_ETA = 0.1  # the Dirichlet parameter of the parts' words; a larger one makes one part take most of the topic
_SMALLEST = 0.01  # of a count; smaller ones are left out of learning


def fit_parts(
    network: EditedNetwork, corpus: Corpus, documents: DocumentTopics, column: int, edit: Edit
) -> MeanFieldNetwork:
    """Learn the parts of a topic.

    LDA (online variational Bayes) divides x_dv p(k | v, d), what topic k has of each document, among n topics. It gives
    r(j | v), the share of part j in word v; and beta_jv, proportional to beta_kv r(j | v), is the part. So the mean of
    the parts, weighted by their shares, is the topic itself.

    Args:
        network: the network with the topic.
        corpus: documents over its words.
        documents: their topics.
        column: the topic k.
        edit: "into" is the number of parts n, and "random_state" the seed.

    Returns:
        a network with the parts as topics, the largest first, and their shares as the Dirichlet parameter.

    Raises:
        InputError: too few documents have the topic.
    """
    n_parts, theta = edit["into"], documents.theta
    beta_t, _ = network.stages[-1]

    def read(batch: Batch) -> Tensor:
        assert batch.rows is not None
        shares = beta_t.new_tensor(np.array(theta[batch.rows.cpu().numpy()], np.float32))  # (B, K)
        return topic_counts(column, shares, beta_t, batch.counts)

    values = np.concatenate([np.empty(0, np.float32), *each_batch(network.base, corpus, read)])
    part = sp.csr_array((values, corpus.counts.indices, corpus.counts.indptr), shape=corpus.counts.shape)
    rows = np.flatnonzero(part.sum(axis=1) >= _FEWEST_TOKENS)
    if len(rows) > _MOST_DOCUMENTS:
        random = np.random.default_rng(edit["random_state"])
        rows = np.sort(random.choice(rows, _MOST_DOCUMENTS, replace=False))
    part = part[rows]
    part.data[part.data < _SMALLEST] = 0
    part.eliminate_zeros()
    words = np.unique(part.indices)
    if part.shape[0] < n_parts or len(words) < n_parts:
        raise InputError(
            f"too few documents have words of topic {edit['split']} to split it into {n_parts}: {part.shape[0]} of "
            f"{corpus.n_docs}, with {counted(len(words), 'different word')}; give more documents or ask for fewer parts"
        )
    topic = beta_t[:, column].cpu().double().numpy()  # (V,)
    given = np.full((n_parts, len(topic)), 1 / n_parts)  # r(j | v) of words that the documents do not show
    shares, given[:, words] = _assignments(part[:, words].astype(np.float64), n_parts, edit["random_state"])
    given[:, np.setdiff1d(np.arange(len(topic)), words)] = shares[:, None]
    parts = given * topic + 1e-12  # (n, V)
    shares = parts.sum(axis=1) / parts.sum()
    order = np.argsort(-shares, kind="stable")
    return mean_field_network(parts[order].astype(np.float32), np.maximum(shares[order], 1e-3))


def _assignments(counts: sp.csr_array, n_parts: int, seed: int) -> tuple[Array, Array]:
    """Return the shares of the parts, (n,), and r(j | v), (n, V), which sums to 1 over the parts."""
    n_passes = min(_MOST_PASSES, max(_FEWEST_PASSES, _DOCUMENTS_READ // counts.shape[0]))
    n_batches = math.ceil(_MOST_PASSES / n_passes)  # of a pass
    run = OnlineRun(
        n_parts,
        counts.shape[1],
        counts.shape[0],
        alpha=None,
        eta=_ETA,
        batch_size=math.ceil(counts.shape[0] / n_batches),  # after small ones, one part tends to take all of the topic
        seed=seed,
        pseudo_counts=None,
    )
    for _ in range(n_passes):
        run.learn(counts)
    theta = np.asarray(run.model.transform(counts))  # (D, n); scikit-learn may be set to return data frames
    tokens = counts.sum(axis=1)
    shares: Array = tokens @ theta / tokens.sum()
    weighted = shares[:, None] * run.topics / run.topics.sum(axis=1, keepdims=True)
    return shares, weighted / weighted.sum(axis=0)
