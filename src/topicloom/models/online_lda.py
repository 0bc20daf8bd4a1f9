"""Variational Bayes for LDA: online (Hoffman, Blei & Bach 2010), by scikit-learn, or with all documents in a step."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from scipy.special import digamma

from ..nn.execution import without_gradients
from ..nn.mean_field import Array, MeanFieldNetwork, exp_digamma, mean_field_network
from ..training.batches import BatchReader
from ..training.state import Snapshot

_BLOCK = 1024  # documents whose theta is inferred at a time


class OnlineRun:
    """A run of online variational Bayes: scikit-learn's model and the order of the documents.

    Args:
        n_topics: the number of topics K.
        n_words: the size of the vocabulary V.
        n_docs: the number of documents in total.
        alpha: the Dirichlet parameter of theta; None is 1/K.
        eta: the Dirichlet parameter of the topics; None is 1/K.
        batch_size: the number of documents in a step.
        seed: the seed of the initial topics and of the order of the documents.
        pseudo_counts: (K, V) tokens that words have in topics from the start, or None.
    """

    def __init__(
        self,
        n_topics: int,
        n_words: int,
        n_docs: int,
        *,
        alpha: float | None,
        eta: float | None,
        batch_size: int,
        seed: int,
        pseudo_counts: Array | None,
    ) -> None:
        from sklearn.decomposition import LatentDirichletAllocation

        self.seed = seed
        self.history: list[dict[str, Any]] = []
        self.model = LatentDirichletAllocation(
            n_topics,
            doc_topic_prior=alpha,
            topic_word_prior=eta,
            batch_size=batch_size,
            total_samples=n_docs,
            random_state=seed,
        )
        self._nothing = sp.csr_array((1, n_words), dtype=np.float64)
        if pseudo_counts is not None:
            self.model.partial_fit(self._nothing)  # creates its arrays
            self.model.topic_word_prior_ = self.model.topic_word_prior_ + pseudo_counts  # a number becomes (K, V)
            self.model.components_ += pseudo_counts
            self.model.partial_fit(self._nothing)  # updates what it derives from them
        self.begin()

    def begin(self) -> None:
        """Start again with the first order of the documents."""
        self._order = np.random.default_rng(self.seed)

    def learn(self, counts: sp.csr_array) -> None:
        """Learn from the counts (D, V) in one pass, in steps of the batch size."""
        self.model.partial_fit(counts[self._order.permutation(counts.shape[0])])

    @property
    def topics(self) -> Array:
        """The topics (K, V), whose rows do not sum to 1."""
        components: Array = self.model.components_
        return components

    @property
    def alpha(self) -> Array:
        """The Dirichlet parameter of theta, (K,)."""
        return np.full(self.model.n_components, self.model.doc_topic_prior_)

    @property
    def network(self) -> MeanFieldNetwork:
        """A new network with the topics as they are now."""
        return mean_field_network(self.topics, self.alpha)

    def snapshot(self) -> Snapshot:
        """Return the state that `restore` reads. At least one pass must have been made."""
        model = self.model
        generator = model.random_state_.get_state(legacy=False)
        arrays = {
            "components": model.components_,
            "exp_components": model.exp_dirichlet_component_,
            "topic_word_prior": np.asarray(model.topic_word_prior_, np.float64),
            "generator": generator["state"]["key"].astype(np.int64),
        }
        values = {
            "batches": int(model.n_batch_iter_),
            "generator": {name: generator[name] for name in ("bit_generator", "has_gauss", "gauss")},
            "position": int(generator["state"]["pos"]),
            "order": self._order.bit_generator.state,
            "history": [dict(row) for row in self.history],
        }
        return Snapshot({name: torch.from_numpy(np.array(array, order="C")) for name, array in arrays.items()}, values)

    def restore(self, snapshot: Snapshot) -> None:
        """Return to the state in which a snapshot was taken."""
        arrays = {name: tensor.numpy().copy() for name, tensor in snapshot.tensors.items()}
        model, values = self.model, snapshot.values
        model.partial_fit(self._nothing)  # creates its arrays
        model.components_, model.exp_dirichlet_component_ = arrays["components"], arrays["exp_components"]
        prior = arrays["topic_word_prior"]
        model.topic_word_prior_ = float(prior) if prior.ndim == 0 else prior
        model.n_batch_iter_ = values["batches"]
        key, position = arrays["generator"].astype(np.uint32), values["position"]
        model.random_state_.set_state({**values["generator"], "state": {"key": key, "pos": position}})
        self._order.bit_generator.state = values["order"]
        self.history = [dict(row) for row in values["history"]]


class BatchRun:
    """A run of variational Bayes with all documents in each step (Blei, Ng & Jordan 2003, section 5.3 and 5.4).

    A step infers theta of each document by itself, and adds up what all say about the topics. So the order of the
    documents changes the result by rounding only.

    Args:
        n_topics: the number of topics K.
        n_words: the size of the vocabulary V.
        alpha: the Dirichlet parameter of theta; None is 1/K.
        eta: the Dirichlet parameter of the topics; None is 1/K.
        seed: the seed of the initial topics, which are drawn as scikit-learn draws them.
        pseudo_counts: (K, V) tokens that words have in topics from the start, or None.
    """

    def __init__(
        self,
        n_topics: int,
        n_words: int,
        *,
        alpha: float | None,
        eta: float | None,
        seed: int,
        pseudo_counts: Array | None,
    ) -> None:
        self.history: list[dict[str, Any]] = []
        self.alpha: Array = np.full(n_topics, alpha or 1 / n_topics)
        self._prior = (eta or 1 / n_topics) + (
            np.zeros((n_topics, n_words)) if pseudo_counts is None else pseudo_counts
        )
        drawn = np.random.RandomState(seed).gamma(100.0, 0.01, (n_topics, n_words))
        self.topics: Array = drawn + (0 if pseudo_counts is None else pseudo_counts)  # (K, V), the parameters of beta

    def begin(self) -> None:
        """Do nothing: a run has no order of documents."""

    def learn(self, counts: sp.csr_array) -> None:
        """Make one step with the counts (D, V)."""
        weights = np.exp(digamma(self.topics) - digamma(self.topics.sum(axis=1, keepdims=True)))  # exp(E[log beta])
        beta_t, alpha = (torch.tensor(np.ascontiguousarray(x, np.float32)) for x in (weights.T, self.alpha))
        network = MeanFieldNetwork.of(beta_t, alpha)
        by_word = weights.T  # (V, K)
        expected = np.zeros_like(by_word)
        first = 0
        with without_gradients():
            for batch in BatchReader(counts, _BLOCK, torch.device("cpu")):
                theta = exp_digamma(network.gamma_of(batch.counts)).double().numpy()  # (B, K), up to factors
                part = counts[first : first + len(theta)].tocoo()
                rows, words = part.coords
                mass = np.einsum("nk,nk->n", theta[rows], by_word[words])
                ratios = sp.csr_array((part.data / np.maximum(mass, 1e-300), (words, rows)), shape=part.shape[::-1])
                expected += ratios @ theta
                first += len(theta)
        self.topics = self._prior + (by_word * expected).T

    @property
    def network(self) -> MeanFieldNetwork:
        """A new network with the topics as they are now."""
        return mean_field_network(self.topics, self.alpha)

    def snapshot(self) -> Snapshot:
        """Return the state that `restore` reads."""
        return Snapshot(
            {"components": torch.from_numpy(self.topics.copy())}, {"history": [dict(r) for r in self.history]}
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Return to the state in which a snapshot was taken."""
        self.topics = snapshot.tensors["components"].numpy().copy()
        self.history = [dict(row) for row in snapshot.values["history"]]
