"""Posteriors over theta: one object per batch, which both the loss and `transform` read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from .divergences import kl_dirichlet
from .priors import Prior


class Posterior(ABC):
    """q(theta | x) for the documents of one batch."""

    @abstractmethod
    def point(self) -> Tensor:
        """The one theta that stands for the posterior: (B, K), rows in the simplex. Nothing random in it."""

    @abstractmethod
    def divergence(self) -> Tensor:
        """Return the divergence from the prior, by document and latent variable: (B, M)."""

    def code(self) -> Tensor:
        """Return where a document is in the latent space: (B, L). By default the centred log-ratio of `point`."""
        log_theta = self.point().clamp_min(1e-12).log()  # (B, K)
        return log_theta - log_theta.mean(1, keepdim=True)


@dataclass(frozen=True)
class PointPosterior(Posterior):
    """All of it in one theta, as a deterministic encoder gives: there is no divergence from a prior."""

    theta: Tensor  # (B, K), rows in the simplex

    def point(self) -> Tensor:
        return self.theta

    def divergence(self) -> Tensor:
        return self.theta.new_zeros(len(self.theta), 0)


@dataclass(frozen=True)
class Draw:
    """theta drawn from a posterior, and what its path misses of the gradient.

    With a function f of theta, the gradient of E[f] is estimated by that of f(theta) + f * log_weight, f in the second
    term being a constant (Naesseth et al. 2017, equation 8). log_weight None: the path misses nothing.
    """

    theta: Tensor  # (B, K), rows in the simplex; gradients pass through it
    log_weight: Tensor | None = None  # (B,)

    def surrogate(self, f: Tensor, sizes: Tensor | None = None) -> Tensor:
        """f, a function of theta (B,), with the gradient of its expectation: (B,)

        Args:
            sizes: (B,) what f grows with, such as tokens. With them, what the other documents have for each unit is
                taken off f where it stands as a constant: the expectation is the same, as no document's own draw is in
                it, and the variance far smaller (a control variate; Mnih & Gregor 2014).
        """
        if self.log_weight is None:
            return f
        constant = f.detach()
        if sizes is not None and len(f) > 1:
            others = (constant.sum() - constant) / (sizes.sum() - sizes).clamp_min(1e-12)  # (B,) of each unit
            constant = constant - sizes * others
        return f + constant * (self.log_weight - self.log_weight.detach())


class SampledPosterior(Posterior):
    """A posterior that can be learned by sampling."""

    @abstractmethod
    def sample(self, generator: torch.Generator) -> Draw:
        """One draw for each document."""


@dataclass(frozen=True)
class GaussianPosterior(SampledPosterior):
    """z ~ N(mean, diag exp(log_var)), theta = to_theta(z): a logistic normal when to_theta is a softmax.

    `point` is to_theta(mean), the median and not the mean of a logistic normal, which has no closed form.
    """

    mean: Tensor  # (B, L)
    log_var: Tensor  # (B, L)
    prior: Prior
    to_theta: Callable[[Tensor], Tensor]  # (B, L) -> (B, K)

    def sample(self, generator: torch.Generator) -> Draw:
        noise = torch.empty_like(self.mean).normal_(generator=generator)  # (B, L)
        return Draw(self.to_theta(self.mean + noise * (0.5 * self.log_var).exp()))

    def point(self) -> Tensor:
        return self.to_theta(self.mean)

    def code(self) -> Tensor:
        return self.mean

    def divergence(self) -> Tensor:
        return self.prior.divergence(self.mean, self.log_var)


@dataclass(frozen=True)
class DirichletPosterior(SampledPosterior):
    """theta ~ Dirichlet(alpha), whose draws let no gradient pass; nn/dirichlet.py has those that do."""

    alpha: Tensor  # (B, K)
    prior: Tensor  # (K,)

    def sample(self, generator: torch.Generator) -> Draw:
        gammas = torch._standard_gamma(self.alpha.detach(), generator=generator).clamp_min(1e-30)  # (B, K)
        return Draw(gammas / gammas.sum(1, keepdim=True))

    def point(self) -> Tensor:
        return self.alpha / self.alpha.sum(1, keepdim=True)

    def divergence(self) -> Tensor:
        return kl_dirichlet(self.alpha, self.prior)

    def expected_log(self) -> Tensor:
        """E[log theta]: (B, K)"""
        return torch.digamma(self.alpha) - torch.digamma(self.alpha.sum(1, keepdim=True))
