"""Collapsed Gibbs sampling for LDA (Griffiths & Steyvers 2004), by tomotopy."""

from __future__ import annotations

import sys
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...errors import InputError, MissingExtraError
from ...nn.mean_field import MeanFieldNetwork
from ...training.state import Snapshot
from ..mean_field import Array, mean_field_network

_MOST_TOKENS = 1 << 29  # more take some 10 GiB, and many hours


class GibbsRun:
    """A sampler with its documents.

    Args:
        counts: (D, V) whole counts.
        n_topics: the number of topics K.
        alpha: the initial Dirichlet parameter of theta. The sampler learns one for each topic.
        eta: the Dirichlet parameter of the topics.
        seed: the seed of the sampler.
        n_jobs: the number of threads. With more than one, tomotopy does not promise equal results for equal seeds.
        pseudo_counts: (K, V) tokens that words have in topics from the start, or None.

    Raises:
        MissingExtraError: tomotopy is not installed.
        InputError: the counts are not whole.
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
            if "tomotopy" not in sys.modules:
                with warnings.catch_warnings():
                    # Where warnings are errors, its compiled module could not be imported.
                    warnings.filterwarnings("ignore", "builtin type", DeprecationWarning)
                    import tomotopy
            import tomotopy
        except ImportError:
            raise MissingExtraError.of('LDA(method="gibbs")', "tomotopy", "eval") from None
        if not np.array_equal(counts.data, np.floor(counts.data)):
            raise InputError('LDA by Gibbs sampling needs whole counts; for weights use `method="variational"`')
        if counts.data.sum(dtype=np.float64) > _MOST_TOKENS:
            raise InputError(
                f"LDA by Gibbs sampling keeps every token in memory, and these documents have {counts.data.sum():.3g}; "
                'use `method="variational"`, or divide the counts'
            )
        self.n_jobs, self.n_words = n_jobs, counts.shape[1]
        self.history: list[dict[str, Any]] = []
        self.model = tomotopy.LDAModel(k=n_topics, alpha=alpha, eta=eta, seed=seed)
        names = np.array([str(word) for word in range(self.n_words)], object)
        repeats = counts.data.astype(np.int64)
        for start, end in pairwise(counts.indptr):
            self.model.add_doc(np.repeat(names[counts.indices[start:end]], repeats[start:end]).tolist())
        if pseudo_counts is not None:
            for word in np.flatnonzero(pseudo_counts.any(axis=0)):
                self.model.set_word_prior(str(word), (eta + pseudo_counts[:, word]).tolist())

    @property
    def iterations(self) -> int:
        """The number of iterations so far."""
        return int(self.model.global_step)

    def sample(self, iterations: int) -> None:
        """Draw the topic of every token anew, this many times."""
        self.model.train(iterations, workers=self.n_jobs)

    @property
    def loss(self) -> float:
        """Minus the log likelihood that the sampler reports, in nats per document."""
        tokens_per_document: float = self.model.num_words / len(self.model.docs)
        return -float(self.model.ll_per_word) * tokens_per_document

    @property
    def topics(self) -> Array:
        """The topics (K, V), whose rows do not sum to 1."""
        topics = np.full((self.model.k, self.n_words), 1e-12)  # for words that no document has
        topics[:, [int(word) for word in self.model.used_vocabs]] = [
            self.model.get_topic_word_dist(k) for k in range(self.model.k)
        ]
        return topics

    @property
    def alpha(self) -> Array:
        """The Dirichlet parameter of theta as learned so far, (K,)."""
        alpha: Array = self.model.alpha
        return alpha

    @property
    def network(self) -> MeanFieldNetwork:
        """A new network with the topics as they are now."""
        return mean_field_network(self.topics, self.alpha)

    def snapshot(self) -> Snapshot:
        """Return the number of iterations so far, because tomotopy cannot save the state of its random generator."""
        return Snapshot({}, {"iterations": self.iterations, "history": [dict(row) for row in self.history]})

    def restore(self, snapshot: Snapshot, step: int) -> None:
        """Repeat the iterations of a snapshot from the seed, `step` at a time as they were done."""
        while (left := snapshot.values["iterations"] - self.iterations) > 0:
            self.sample(min(step, left))
        self.history = [dict(row) for row in snapshot.values["history"]]
