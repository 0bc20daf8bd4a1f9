"""Mean-field inference of theta, given topics that were learned by another method.

The iteration for q(theta) has two forms, which give the same results up to rounding. The plain form consists of PyTorch
operations and runs on every device. The compiled form is a loop over documents, which numba compiles for the CPU; each
document iterates by itself in the core's nearest cache.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from .execution import FEWEST_DOCUMENTS_TO_COMPILE, arrays_of, compiled
from .network import Loss, TopicNetwork
from .posteriors import DirichletPosterior
from .sparse import TINY, Batch, SparseCounts, mixture_log_likelihood

Array = np.ndarray[Any, Any]

MAX_STEPS = 100  # scikit-learn's limit; 1 to 2 % of news articles would need more
TOLERANCE = 1e-3  # the iteration for a document ends when the mean change of its gamma is lower
_MOVING_SHARE = 0.8  # if fewer documents still change, the iteration continues without the others
_LOG2_E = np.float32(1.4426950408889634)
_LOWEST_EXPONENT = np.float32(-125.0)  # smaller powers of 2 are treated as 0


class MeanFieldNetwork(TopicNetwork):
    """LDA with given topics and alpha (Blei, Ng & Jordan 2003, section 5.2). It is not random.

    Args:
        n_words: the size of the vocabulary V.
        n_topics: the number of topics K.
    """

    beta_t: Tensor  # (V, K) the topics, columns sum to 1
    alpha: Tensor  # (K,) the Dirichlet parameter of theta

    def __init__(self, n_words: int, n_topics: int) -> None:
        super().__init__()
        self.register_buffer("beta_t", torch.full((n_words, n_topics), 1 / n_words))
        self.register_buffer("alpha", torch.ones(n_topics))

    @classmethod
    def of(cls, beta_t: Tensor, alpha: Tensor) -> Self:
        """Return a network with topics (V, K), whose columns sum to 1, and alpha (K,), neither of which is copied."""
        network = cls(1, 1)
        network.beta_t, network.alpha = beta_t, alpha
        return network

    def posterior(self, batch: Batch) -> DirichletPosterior:
        """Return the posterior Dirichlet(gamma) after the iteration for gamma has converged, or after 100 steps.

        gamma_k = alpha_k + sum_v x_v phi_vk, where phi_vk is proportional to exp(E[log theta_k]) beta_kv.
        """
        one = batch.counts.n_docs == 1 and batch.device.type == "cpu"
        gamma = self._gamma_of_one(batch.counts)[None] if one else self.gamma_of(batch.counts)
        return DirichletPosterior(gamma, self.alpha)

    def gamma_of(self, counts: SparseCounts) -> Tensor:
        """Return gamma (B, K) of documents."""
        is_worth_it = counts.n_docs >= FEWEST_DOCUMENTS_TO_COMPILE and self.beta_t.device.type == "cpu"
        loop = compiled(_gamma_loop, _gamma_example) if is_worth_it else None
        if loop is None:
            return self._gamma_plain(counts)
        gamma = torch.empty(counts.n_docs, len(self.alpha))
        documents = _BagArrays(*arrays_of(counts.offsets, counts.indices, counts.values))
        topics = _LDAArrays(*arrays_of(self.beta_t, self.alpha))
        loop(documents, topics, _StoppingRule(MAX_STEPS, np.float32(TOLERANCE)), np.float32(TINY), gamma.numpy())
        return gamma

    def _gamma_plain(self, counts: SparseCounts) -> Tensor:
        """Do the same as `gamma_of`, by PyTorch operations."""
        found = gamma = self.alpha + (counts.totals / len(self.alpha))[:, None]  # (B, K)
        rows = torch.arange(counts.n_docs, device=gamma.device)  # (n,) the documents of `counts` and `gamma`
        moving = None  # (n,) the documents that have not converged; None if these are all
        for _ in range(MAX_STEPS):
            weights = exp_digamma(gamma)  # (n, K), exp(E[log theta]) up to a factor of each document
            mass = counts.sampled_product(weights, self.beta_t) + TINY  # (N,)
            update = torch.addcmul(self.alpha, weights, counts.times(counts.values / mass, self.beta_t))  # (n, K)
            moves = torch.linalg.vector_norm(update - gamma, 1, dim=1) > TOLERANCE * len(self.alpha)  # (n,)
            # A converged document does not change any more, so its theta does not depend on the rest of the batch.
            gamma = update if moving is None else torch.where(moving[:, None], update, gamma)
            moving = moves if moving is None else moving & moves
            n_moving = int(moving.sum())
            if n_moving == 0:
                break
            if n_moving == len(rows):
                moving = None
            elif n_moving < _MOVING_SHARE * len(rows):
                found = found.index_copy(0, rows, gamma)
                (kept,) = moving.nonzero(as_tuple=True)
                counts, gamma, rows, moving = counts.take(kept), gamma[kept], rows[kept], None
        return found.index_copy(0, rows, gamma)

    def _gamma_of_one(self, counts: SparseCounts) -> Tensor:
        """Return gamma of one document, (K,). This uses few operations, because calling them takes most of the time."""
        alpha, values = self.alpha.double(), counts.values.double()  # (K,), (N,)
        words = self.beta_t[counts.indices].double()  # (N, K)
        gamma = alpha + values.sum() / len(alpha)  # (K,)
        for _ in range(MAX_STEPS):
            weights = torch.special.digamma(gamma).exp_()  # (K,), exp(E[log theta]) up to a factor
            update = torch.addcmul(alpha, weights, (values / (words @ weights).add_(TINY)) @ words)  # (K,)
            moves = float(torch.linalg.vector_norm(update - gamma, 1))
            gamma = update
            if moves <= TOLERANCE * len(alpha):
                break
        return gamma.to(self.alpha.dtype)

    def topic_word(self) -> Tensor:
        return self.beta_t.mT

    def loss(self, batch: Batch) -> Loss:
        return self.loss_of(self.posterior(batch), batch)

    def loss_of(self, posterior: DirichletPosterior, batch: Batch) -> Loss:
        """Return the loss of a batch, given its posterior, whose computation takes most of the time."""
        return lda_loss(posterior, self.beta_t, batch.counts)

    def log_likelihood(self, theta: Tensor, batch: Batch) -> Tensor:
        return mixture_log_likelihood(theta, self.beta_t, batch.counts)

    def prior_theta(self) -> Tensor:
        return self.alpha / self.alpha.sum()


def mean_field_network(topics: Array, alpha: Array) -> MeanFieldNetwork:
    """Return a network that infers theta given topics.

    Args:
        topics: (K, V), positive; the rows need not sum to 1.
        alpha: (K,) the Dirichlet parameter of theta.
    """
    beta_t = (topics / topics.sum(axis=1, keepdims=True)).T  # (V, K)
    return MeanFieldNetwork.of(*(torch.tensor(np.ascontiguousarray(x, np.float32)) for x in (beta_t, alpha)))


def lda_loss(posterior: DirichletPosterior, beta_t: Tensor, counts: SparseCounts) -> Loss:
    """Return minus the variational bound of LDA given its topics, as its two terms.

    The assignments of words to topics are summed out: sum_v x_dv log sum_k exp(E[log theta_dk]) beta_kv.

    Args:
        posterior: the posterior of the documents.
        beta_t: (V, K) the topics, columns sum to 1.
        counts: the word counts of the documents.
    """
    likelihood = mixture_log_likelihood(posterior.expected_log().exp(), beta_t, counts)  # (B,)
    return Loss(-likelihood, posterior.divergence().sum(1))


def exp_digamma(x: Tensor) -> Tensor:
    """Return exp(digamma(x)) of positive numbers, by a series that is much faster than PyTorch's digamma.

    digamma(x) = digamma(x + 2) - 1/x - 1/(x + 1), and exp(digamma(z)) = z - 1/2 + 1/(24 z) + ... The terms after 1/2
    are a minimax polynomial of 1/z for z >= 2. The relative error is below 3e-6.
    """
    r = (x + 2).reciprocal_()
    leading = (r * -0.00195056).add_(0.02290901).mul_(r).add_(0.04144566).mul_(r).add_(x).add_(1.5)
    return (x + 1).reciprocal_().add_(x.reciprocal()).neg_().exp_().mul_(leading)


class _BagArrays(NamedTuple):
    """The counts of B documents."""

    offsets: Array  # (B + 1,) where each document starts
    words: Array  # (N,)
    values: Array  # (N,)


class _LDAArrays(NamedTuple):
    """The topics and the prior of an LDA model."""

    beta_t: Array  # (V, K)
    alpha: Array  # (K,)


class _StoppingRule(NamedTuple):
    """When the iteration for a document ends."""

    max_steps: int
    tolerance: np.float32


def _gamma_loop(
    documents: _BagArrays, topics: _LDAArrays, stop: _StoppingRule, tiny: np.float32, gammas: Array
) -> None:
    """Write the parameters of q(theta) of documents to `gammas` (B, K)."""
    offsets, words, values = documents
    beta_t, alpha = topics
    steps, tolerance = stop
    n_topics = len(alpha)
    powers = np.empty(n_topics, np.int32)  # the bits of 32-bit powers of 2
    power = powers.view(np.float32)
    weights, new = np.empty(n_topics, np.float32), np.empty(n_topics, np.float32)
    for doc in range(len(offsets) - 1):
        first, last = offsets[doc], offsets[doc + 1]
        gamma, n_tokens = gammas[doc], np.float32(0)
        for i in range(first, last):
            n_tokens += values[i]
        for k in range(n_topics):
            gamma[k] = alpha[k] + n_tokens / np.float32(n_topics)
        for _ in range(steps):
            for k in range(n_topics):  # exp(digamma(gamma)), by the series of `exp_digamma`
                x = gamma[k]
                exponent = max(-(np.float32(1) / (x + np.float32(1)) + np.float32(1) / x) * _LOG2_E, _LOWEST_EXPONENT)
                whole = np.int32(exponent - np.float32(0.5))  # the nearest whole number, as `exponent` is negative
                rest = exponent - np.float32(whole)
                powers[k] = (whole + np.int32(127)) << np.int32(23)  # 2 ** whole
                part = np.float32(1.5403530e-4)  # 2 ** rest, by its Taylor series
                part = part * rest + np.float32(1.3333558e-3)
                part = part * rest + np.float32(9.6181291e-3)
                part = part * rest + np.float32(5.5504109e-2)
                part = part * rest + np.float32(2.4022651e-1)
                part = part * rest + np.float32(6.9314718e-1)
                part = part * rest + np.float32(1)
                r = np.float32(1) / (x + np.float32(2))
                series = (r * np.float32(-0.00195056) + np.float32(0.02290901)) * r + np.float32(0.04144566)
                weights[k] = part * (series * r + x + np.float32(1.5))
                new[k] = 0
            for k in range(n_topics):
                weights[k] *= power[k]
            for i in range(first, last):
                beta, mass = beta_t[words[i]], np.float32(0)
                for k in range(n_topics):
                    mass += weights[k] * beta[k]
                part = values[i] / (mass + tiny)
                for k in range(n_topics):
                    new[k] += part * beta[k]
            for k in range(n_topics):
                new[k] = alpha[k] + weights[k] * new[k]
            change = np.float32(0)
            for k in range(n_topics):
                change += abs(new[k] - gamma[k])
            for k in range(n_topics):
                gamma[k] = new[k]
            if change <= tolerance * np.float32(n_topics):
                break


def _gamma_example() -> tuple[Any, ...]:
    """Return arguments of `_gamma_loop` for one document of one token and one topic."""
    offsets, words, table = np.array([0, 1]), np.zeros(1, np.int64), np.ones((1, 1), np.float32)
    stop = _StoppingRule(2, np.float32(1e-3))
    return _BagArrays(offsets, words, table[0]), _LDAArrays(table, table[0]), stop, np.float32(TINY), table.copy()
