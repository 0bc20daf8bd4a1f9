"""Mean-field inference of theta, given topics that were learned by another method."""

from __future__ import annotations

import torch
from torch import Tensor

from .batch import Batch
from .network import Loss, TopicNetwork
from .posteriors import DirichletPosterior
from .sparse import TINY, SparseCounts, mixture_log_likelihood

MAX_STEPS = 100
TOLERANCE = 1e-3  # the inference of a document ends when the mean change of its gamma is below this


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

    def posterior(self, batch: Batch) -> DirichletPosterior:
        """Return the posterior Dirichlet(gamma) after the iteration for gamma has converged.

        gamma_k = alpha_k + sum_v x_v phi_vk, where phi_vk is proportional to exp(E[log theta_k]) beta_kv.
        """
        counts = batch.counts
        gamma = self.alpha + (counts.totals / len(self.alpha))[:, None]  # (B, K)
        moving = torch.ones(batch.n_docs, 1, dtype=torch.bool, device=batch.device)
        for _ in range(MAX_STEPS):
            weights = DirichletPosterior(gamma, self.alpha).expected_log().exp()  # (B, K)
            mass = counts.sampled_product(weights, self.beta_t) + TINY  # (N,)
            update = self.alpha + weights * counts.times(counts.values / mass, self.beta_t)  # (B, K)
            change = (update - gamma).abs().mean(1, keepdim=True)  # (B, 1)
            # A document that has converged does not change, so that its theta does not depend on the rest of the batch.
            gamma = torch.where(moving, update, gamma)
            moving = moving & (change > TOLERANCE)
            if not moving.any():
                break
        return DirichletPosterior(gamma, self.alpha)

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
