"""Posteriors of theta: an object for each batch, which both the loss and `transform` use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ..distributed.ranks import step
from .divergences import kl_dirichlet
from .layers import normal_like
from .priors import Prior


class Posterior(ABC):
    """The posterior q(theta | x) of the documents of a batch."""

    @abstractmethod
    def point(self) -> Tensor:
        """Return the theta that represents the posterior, (B, K); rows sum to 1. It is not random."""

    @abstractmethod
    def divergence(self) -> Tensor:
        """Return the divergence from the prior for each document and latent variable, (B, M)."""

    def code(self) -> Tensor:
        """Return the position of each document in the latent space, (B, L).

        By default it is the centred log-ratio of `point`.
        """
        log_theta = self.point().clamp_min(1e-12).log()  # (B, K)
        return log_theta - log_theta.mean(1, keepdim=True)

    def decode(self, code: Tensor) -> Tensor:
        """Return theta at other positions of the latent space, (M, L) -> (M, K), so that decode(code()) is `point`.

        By default it is the softmax, the inverse of a log-ratio. A posterior with a `code` of its own defines both.
        """
        return torch.softmax(code, dim=1)


@dataclass(frozen=True)
class PointPosterior(Posterior):
    """The posterior of a deterministic encoder: a single theta, which has no divergence from a prior."""

    theta: Tensor  # (B, K), rows sum to 1

    def point(self) -> Tensor:
        return self.theta

    def divergence(self) -> Tensor:
        return self.theta.new_zeros(len(self.theta), 0)


@dataclass(frozen=True)
class Draw:
    """A draw of theta, and the correction that its gradient needs.

    For a function f of theta, the gradient of E[f] is estimated by the gradient of f(theta) + f * log_weight, in which
    the second f counts as a constant (Naesseth et al. 2017, equation 8).

    Attributes:
        theta: (B, K), rows sum to 1; gradients pass through it.
        log_weight: (B,), or None if the gradient needs no correction.
    """

    theta: Tensor
    log_weight: Tensor | None = None

    def surrogate(self, f: Tensor, sizes: Tensor | None = None) -> Tensor:
        """Return f with the gradient of its expectation, (B,).

        Args:
            f: (B,) a function of theta.
            sizes: (B,) numbers that f grows with, such as tokens. If they are given, the mean of the other documents
                for each unit is subtracted from the constant f. This is a control variate (Mnih & Gregor 2014): the
                expectation is the same, because no document's own draw is subtracted, and the variance is much smaller.
                It is not quite the same if f is normalised over the batch: the relative bias was .03 with an
                augmentation of 1, and too small to be measured with 5.
        """
        if self.log_weight is None:
            return f
        constant = f.detach()
        if sizes is not None and len(f) > 1:
            others = (constant.sum() - constant) / (sizes.sum() - sizes).clamp_min(1e-12)  # (B,) for each unit
            constant = constant - sizes * others
        return f + constant * (self.log_weight - self.log_weight.detach())


class SampledPosterior(Posterior):
    """A posterior that is learned from draws."""

    @abstractmethod
    def sample(self, generator: torch.Generator) -> Draw:
        """Draw one theta for each document."""

    def exact(self) -> SampledPosterior:
        """Return the posterior whose divergence is counted, which a bound needs. Draws with gradients may differ."""
        return self


@dataclass(frozen=True)
class GaussianPosterior(SampledPosterior):
    """z ~ N(mean, diag exp(log_var)), theta = to_theta(z), which is a logistic normal if to_theta is a softmax.

    `point` is to_theta(mean). The mean of a logistic normal has no closed form.
    """

    mean: Tensor  # (B, L)
    log_var: Tensor  # (B, L)
    prior: Prior
    to_theta: Callable[[Tensor], Tensor]  # (B, L) -> (B, K)

    def sample(self, generator: torch.Generator) -> Draw:
        noise = normal_like(self.mean, generator)  # (B, L)
        return Draw(self.to_theta(self.mean + noise * (0.5 * self.log_var).exp()))

    def point(self) -> Tensor:
        return self.to_theta(self.mean)

    def code(self) -> Tensor:
        return self.mean

    def decode(self, code: Tensor) -> Tensor:
        return self.to_theta(code)

    def divergence(self) -> Tensor:
        return self.prior.divergence(self.mean, self.log_var)


@dataclass(frozen=True)
class DirichletPosterior(SampledPosterior):
    """theta ~ Dirichlet(alpha), with draws that have no gradient. nn/dirichlet.py has draws with gradients."""

    alpha: Tensor  # (B, K)
    prior: Tensor  # (K,)

    def sample(self, generator: torch.Generator) -> Draw:
        drawn = torch._standard_gamma(self.alpha.detach(), generator=step().own(generator))  # (B, K)
        gammas = drawn.clamp_min(1e-30)
        return Draw(gammas / gammas.sum(1, keepdim=True))

    def point(self) -> Tensor:
        return self.alpha / self.alpha.sum(1, keepdim=True)

    def divergence(self) -> Tensor:
        return kl_dirichlet(self.alpha, self.prior)

    def expected_log(self) -> Tensor:
        """Return E[log theta], (B, K)."""
        return torch.digamma(self.alpha) - torch.digamma(self.alpha.sum(1, keepdim=True))
