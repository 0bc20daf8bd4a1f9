"""Priors of theta that are used by drawing samples, as for a discrepancy."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from .dirichlet import log_gamma_draws

_RATE = 0.05  # the weight of a batch in running statistics


class Sampler(nn.Module, ABC):
    """A prior p(theta)."""

    @abstractmethod
    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """Draw n samples, (n, K); rows sum to 1."""

    @abstractmethod
    def mean(self) -> Tensor:
        """Return the mean, (K,)."""

    def update(self, codes: Tensor) -> None:
        """Adapt the prior to the codes (B, K) of a training batch. By default, do nothing."""


class DirichletSampler(Sampler):
    """Dirichlet(K * alpha * p), where p are the topics' average shares.

    Args:
        n_topics: the number of topics K.
        alpha: the mean of the parameters.
        follows: whether p follows the mean of theta = softmax(codes), by an empirical Bayes estimate. Otherwise p is
            even.
        rate: the weight of a batch in the running mean.
    """

    shares: Tensor  # (K,) p

    def __init__(self, n_topics: int, alpha: float, *, follows: bool = False, rate: float = _RATE) -> None:
        super().__init__()
        self.register_buffer("shares", torch.full((n_topics,), 1 / n_topics))
        self.total = n_topics * alpha
        self.follows = follows
        self.rate = rate

    @property
    def alpha(self) -> Tensor:
        """The parameters, (K,)."""
        return self.total * self.mean()

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        return torch.softmax(log_gamma_draws(self.alpha.expand(n, -1), generator), dim=1)

    def mean(self) -> Tensor:
        return self.shares / self.shares.sum()

    def update(self, codes: Tensor) -> None:
        if self.follows:
            self.shares.lerp_(_usage(codes), self.rate)


class GaussianMixtureSampler(Sampler):
    """softmax(z) for z ~ sum_c pi_c N(means_c, diag vars_c).

    Args:
        weights: (C,) in proportion to the probabilities pi, whose sum is no longer 1 if topics were removed.
        means: (C, K).
        vars: (C, K).
    """

    weights: Tensor  # (C,)
    means: Tensor  # (C, K)
    vars: Tensor  # (C, K)

    def __init__(self, weights: Tensor, means: Tensor, vars: Tensor) -> None:
        super().__init__()
        self.register_buffer("weights", weights)
        self.register_buffer("means", means)
        self.register_buffer("vars", vars)

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        component = torch.multinomial(self.weights, n, replacement=True, generator=generator)  # (n,)
        noise = torch.empty(n, self.means.shape[1], device=self.means.device).normal_(generator=generator)
        return torch.softmax(self.means[component] + self.vars[component].sqrt() * noise, dim=1)

    def mean(self) -> Tensor:
        """Return the mean of the components' centres, as the mean of the softmax of a Gaussian has no closed form."""
        return self.weights @ torch.softmax(self.means, dim=1) / self.weights.sum()


class GaussianSampler(GaussianMixtureSampler):
    """softmax(z) for z ~ N(m, deviation^2 I).

    Args:
        n_topics: the number of topics K.
        deviation: the standard deviation of z.
        follows: whether m follows the mean of the codes, by an empirical Bayes estimate. Otherwise m is 0.
        rate: the weight of a batch in the running mean.
    """

    def __init__(self, n_topics: int, deviation: float = 1.0, *, follows: bool = False, rate: float = _RATE) -> None:
        super().__init__(torch.ones(1), torch.zeros(1, n_topics), torch.full((1, n_topics), deviation**2))
        self.follows = follows
        self.rate = rate

    def update(self, codes: Tensor) -> None:
        if self.follows:
            centre = codes.mean(0)  # (K,)
            self.means.lerp_(centre - centre.mean(), self.rate)


class CornerMixture(GaussianMixtureSampler):
    """K components at 20 e_k with standard deviation 4: documents have nearly one topic.

    Args:
        n_topics: the number of topics K.
        centre: the distance of the components from the origin.
        deviation: their standard deviation.
        follows, rate: as in `DirichletSampler`, for the weights of the components.
    """

    def __init__(
        self,
        n_topics: int,
        centre: float = 20.0,
        deviation: float = 4.0,
        *,
        follows: bool = False,
        rate: float = _RATE,
    ) -> None:
        even = torch.full((n_topics,), 1 / n_topics)
        super().__init__(even, centre * torch.eye(n_topics), torch.full((n_topics, n_topics), deviation**2))
        self.follows = follows
        self.rate = rate

    def update(self, codes: Tensor) -> None:
        if self.follows:
            self.weights.lerp_(_usage(codes), self.rate)


class FittedMixture(GaussianMixtureSampler):
    """K components, one for each topic, that follow the codes by one step of online EM for each batch.

    Args:
        n_topics: the number of topics K.
        spread: the standard deviation of the codes. Components start at twice this distance along their dimension.
        rate: the weight of a batch in the running statistics.
    """

    def __init__(self, n_topics: int, spread: float, rate: float = _RATE) -> None:
        even = torch.full((n_topics,), 1 / n_topics)
        super().__init__(even, 2 * spread * torch.eye(n_topics), torch.full((n_topics, n_topics), spread**2))
        self.rate = rate
        self.floor = (0.1 * spread) ** 2

    def update(self, codes: Tensor) -> None:
        gap = (codes[:, None] - self.means) ** 2  # (B, K, K)
        log_density = -0.5 * (gap / self.vars + self.vars.log()).sum(2) + self.weights.log()  # (B, K)
        eta = torch.softmax(log_density, dim=1)  # (B, K)
        mass = eta.sum(0)  # (K,)
        # A component moves in proportion to its documents. One without documents stays, and may get some later.
        step = (self.rate * mass / mass.mean()).clamp(max=1.0)[:, None]  # (K, 1)
        share = (eta / mass.clamp_min(1e-8)).mT  # (K, B)
        centre = share @ codes  # (K, K)
        about_new = step * (2 - step) * (centre - self.means) ** 2  # (K, K)
        spread = torch.einsum("kb,bkl->kl", share, gap) - about_new  # (K, K)
        self.means.lerp_(centre, step)
        self.vars.lerp_(spread, step).clamp_(min=self.floor)
        self.weights.lerp_(mass / len(codes), self.rate).clamp_(min=1e-3 / len(mass))
        self.weights /= self.weights.sum()


def _usage(codes: Tensor) -> Tensor:
    """Return the mean of softmax(codes), (B, K) -> (K,), with no topic below a thousandth of an even share."""
    usage = torch.softmax(codes, dim=1).mean(0)
    return usage.clamp_min(1e-3 / len(usage))
