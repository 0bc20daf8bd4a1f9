"""Mean-field inference of theta, given topics that were learned by another method."""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor

from .batch import Batch
from .network import Loss, TopicNetwork
from .posteriors import DirichletPosterior
from .sparse import TINY, SparseCounts, mixture_log_likelihood

MAX_STEPS = 100  # as in scikit-learn; 1 to 2 % of news articles would need more
_WORTHWHILE = 0.8  # when fewer of the documents still change, the iteration goes on without the others
TOLERANCE = 1e-3  # the inference of a document ends when the mean change of its gamma is below this


def exp_digamma(x: Tensor) -> Tensor:
    """Return exp(digamma(x)) of positive numbers, for which a series is much faster than PyTorch's digamma.

    digamma(x) = digamma(x + 2) - 1/x - 1/(x + 1), and exp(digamma(z)) = z - 1/2 + 1/(24 z) + ... The terms after 1/2
    are a polynomial of 1/z with the smallest greatest error for z >= 2. The relative error is below 3e-6.
    """
    r = (x + 2).reciprocal_()
    leading = (r * -0.00195056).add_(0.02290901).mul_(r).add_(0.04144566).mul_(r).add_(x).add_(1.5)
    return (x + 1).reciprocal_().add_(x.reciprocal()).neg_().exp_().mul_(leading)


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
        found = gamma = self.alpha + (counts.totals / len(self.alpha))[:, None]  # (B, K)
        rows = torch.arange(counts.n_docs, device=gamma.device)  # (n,) the documents of `counts` and `gamma`
        moving = None  # (n,) those that have not converged yet; None if it is all of them
        for _ in range(MAX_STEPS):
            weights = exp_digamma(gamma)  # (n, K), exp(E[log theta]) but for a factor of each document
            mass = counts.sampled_product(weights, self.beta_t) + TINY  # (N,)
            update = torch.addcmul(self.alpha, weights, counts.times(counts.values / mass, self.beta_t))  # (n, K)
            moves = torch.linalg.vector_norm(update - gamma, 1, dim=1) > TOLERANCE * len(self.alpha)  # (n,)
            # A document that has converged does not change, so that its theta does not depend on the rest of the batch.
            gamma = update if moving is None else torch.where(moving[:, None], update, gamma)
            moving = moves if moving is None else moving & moves
            n_moving = int(moving.sum())
            if n_moving == 0:
                break
            if n_moving == len(rows):
                moving = None
            elif n_moving < _WORTHWHILE * len(rows):
                found = found.index_copy(0, rows, gamma)
                (kept,) = moving.nonzero(as_tuple=True)
                counts, gamma, rows, moving = counts.take(kept), gamma[kept], rows[kept], None
        return found.index_copy(0, rows, gamma)

    def _gamma_of_one(self, counts: SparseCounts) -> Tensor:
        """Return gamma of one document, (K,), by few small operations, since calling them takes most of the time."""
        alpha, values = self.alpha.double(), counts.values.double()  # (K,), (N,)
        words = self.beta_t[counts.indices].double()  # (N, K)
        gamma = alpha + values.sum() / len(alpha)  # (K,)
        for _ in range(MAX_STEPS):
            weights = torch.special.digamma(gamma).exp_()  # (K,), exp(E[log theta]) but for a factor
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
        """Return the loss of a batch whose posterior, which takes most of the time, has been computed already."""
        return lda_loss(posterior, self.beta_t, batch.counts)

    def log_likelihood(self, theta: Tensor, batch: Batch) -> Tensor:
        return mixture_log_likelihood(theta, self.beta_t, batch.counts)

    def prior_theta(self) -> Tensor:
        return self.alpha / self.alpha.sum()
