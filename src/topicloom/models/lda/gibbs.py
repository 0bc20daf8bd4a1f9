"""Collapsed Gibbs sampling for LDA (Griffiths & Steyvers 2004), as tomotopy has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ...errors import InputError, MissingExtraError
from ...training.state import Snapshot
from ..inference import Array


class GibbsRun:
    """tomotopy's model with the documents in it.

    Args:
        counts: (D, V) whole counts.
        n_topics: K.
        alpha: where the Dirichlet parameter of theta starts, which is learned for each topic.
        eta: Dirichlet parameter of the topics.
        seed: of the sampler.
        n_jobs: workers; with more than one, tomotopy does not promise the same result for the same seed.
        pseudo_counts: (K, V) tokens that words have in topics beforehand; None for none.

    Raises:
        MissingExtraError: tomotopy is not installed.
        InputError: counts that are not whole.
    """

    def __init__(
        self,
        counts: sp.csr_array,
        n_topics: int,
        *,
        alpha: float,
        eta: float,
        seed: int,
        n_jobs: int,
        pseudo_counts: Array | None,
    ) -> None:
        try:
            import tomotopy
        except ImportError:
            raise MissingExtraError.of('LDA(method="gibbs")', "tomotopy", "eval") from None
        if not np.array_equal(counts.data, np.floor(counts.data)):
            raise InputError('LDA(method="gibbs") needs whole counts; use method="variational" for weights')
        self.n_jobs, self.n_words = n_jobs, counts.shape[1]
        self.history: list[dict[str, Any]] = []
        self.model = tomotopy.LDAModel(k=n_topics, alpha=alpha, eta=eta, seed=seed)
        tokens = np.repeat(counts.indices, counts.data.astype(np.int64)).astype(str)
        ends = np.cumsum(counts.sum(axis=1)).astype(np.int64)
        for document in np.split(tokens, ends[:-1]):
            self.model.add_doc(document.tolist())
        if pseudo_counts is not None:
            for word in np.flatnonzero(pseudo_counts.any(axis=0)):
                self.model.set_word_prior(str(word), (eta + pseudo_counts[:, word]).tolist())

    @property
    def iterations(self) -> int:
        """How many are done."""
        return int(self.model.global_step)

    def sample(self, iterations: int) -> None:
        """Draw the topic of every token so many times."""
        self.model.train(iterations, workers=self.n_jobs)

    @property
    def loss(self) -> float:
        """Minus the sampler's own log likelihood, in nats per document."""
        tokens_in_document: float = self.model.num_words / len(self.model.docs)
        return -float(self.model.ll_per_word) * tokens_in_document

    @property
    def topics(self) -> Array:
        """(K, V), not normalised."""
        topics = np.full((self.model.k, self.n_words), 1e-12)  # words that no document has
        topics[:, [int(word) for word in self.model.used_vocabs]] = [
            self.model.get_topic_word_dist(k) for k in range(self.model.k)
        ]
        return topics

    @property
    def alpha(self) -> Array:
        """(K,) the Dirichlet parameter of theta, as learned so far."""
        alpha: Array = self.model.alpha
        return alpha

    def snapshot(self) -> Snapshot:
        """Return how far the sampler is: tomotopy cannot write the state of its random generator."""
        return Snapshot({}, {"iterations": self.iterations, "history": [dict(row) for row in self.history]})

    def restore(self, snapshot: Snapshot, step: int) -> None:
        """Sample again, from the seed, as many iterations as had been done, `step` at a time as they were."""
        while (left := snapshot.values["iterations"] - self.iterations) > 0:
            self.sample(min(step, left))
        self.history = [dict(row) for row in snapshot.values["history"]]
