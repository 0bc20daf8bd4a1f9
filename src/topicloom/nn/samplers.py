"""Priors of theta that are given by samples, and the discrepancy between samples and theta."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor, nn

from .dirichlet_posteriors import log_gamma_draws

_RATE = 0.05  # the weight of a batch in running statistics
_MOST_NUMBERS_AT_ONCE = 1 << 24
_CORNER_DISTANCE, _CORNER_DEVIATION = 20.0, 4.0  # the values of "gmm-std" in zll17's Neural_Topic_Models
_GREATEST_COSINE = 1 - 1e-6  # the slope of arccos is infinite at 1


class ThetaSampler(nn.Module, ABC):
    """A prior p(theta)."""

    @abstractmethod
    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """Draw n samples, (n, K); rows sum to 1."""

    @abstractmethod
    def mean(self) -> Tensor:
        """Return the mean, (K,)."""

    def prepare(self, codes: Tensor) -> None:
        """Adapt the prior to the codes (B, K) of a training batch before it is sampled. By default, do nothing."""

    def update(self, codes: Tensor) -> None:
        """Adapt the prior to the codes (B, K) of a training batch after it was sampled. By default, do nothing."""


class DirichletSampler(ThetaSampler):
    """Dirichlet(K * alpha * p), where p are the topics' average shares.

    Args:
        n_topics: the number of topics K.
        alpha: the mean of the parameters.
        follows: whether p follows the mean of theta = softmax(codes), an empirical Bayes estimate. Otherwise all shares
            are equal.

    >>> import torch
    >>> prior = DirichletSampler(4, alpha=0.1)
    >>> prior.mean().tolist(), prior.sample(3, torch.Generator().manual_seed(0)).shape
    ([0.25, 0.25, 0.25, 0.25], torch.Size([3, 4]))
    """

    shares: Tensor  # (K,) p

    def __init__(self, n_topics: int, alpha: float, *, follows: bool = False) -> None:
        super().__init__()
        self.register_buffer("shares", torch.full((n_topics,), 1 / n_topics))
        self.total = n_topics * alpha
        self.follows = follows

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
            self.shares.lerp_(_usage(codes), _RATE)


class GaussianMixtureSampler(ThetaSampler):
    """softmax(z) for z ~ sum_c pi_c N(means_c, diag vars_c).

    Args:
        weights: (C,) in proportion to the probabilities pi. Their sum need not be 1, because topics may be removed.
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
        """Return the mean of softmax at the centres, because the softmax of a Gaussian has no mean in closed form."""
        return self.weights @ torch.softmax(self.means, dim=1) / self.weights.sum()


class GaussianSampler(GaussianMixtureSampler):
    """softmax(z) for z ~ N(m, deviation^2 I).

    Args:
        n_topics: the number of topics K.
        deviation: the standard deviation of z.
        follows: whether m follows the mean of the codes, an empirical Bayes estimate. Otherwise m is 0.
    """

    def __init__(self, n_topics: int, deviation: float = 1.0, *, follows: bool = False) -> None:
        super().__init__(torch.ones(1), torch.zeros(1, n_topics), torch.full((1, n_topics), deviation**2))
        self.follows = follows

    def update(self, codes: Tensor) -> None:
        if self.follows:
            centre = codes.mean(0)  # (K,)
            self.means.lerp_(centre - centre.mean(), _RATE)


class CornerMixture(GaussianMixtureSampler):
    """A mixture of K components at 20 e_k with standard deviation 4, so that documents have nearly a single topic.

    Args:
        n_topics: the number of topics K.
        follows: whether the weights of the components follow the mean of theta = softmax(codes), an empirical Bayes
            estimate. Otherwise they are equal.
    """

    def __init__(self, n_topics: int, *, follows: bool = False) -> None:
        even = torch.full((n_topics,), 1 / n_topics)
        corners = _CORNER_DISTANCE * torch.eye(n_topics)
        super().__init__(even, corners, torch.full((n_topics, n_topics), _CORNER_DEVIATION**2))
        self.follows = follows

    def update(self, codes: Tensor) -> None:
        if self.follows:
            self.weights.lerp_(_usage(codes), _RATE)


class FittedMixture(GaussianMixtureSampler):
    """K components, one for each topic, that follow the codes by one step of online EM for each batch.

    Args:
        n_topics: the number of topics K.
        spread: the standard deviation of the codes. Components start at twice this distance along their dimension.
    """

    def __init__(self, n_topics: int, spread: float) -> None:
        even = torch.full((n_topics,), 1 / n_topics)
        super().__init__(even, 2 * spread * torch.eye(n_topics), torch.full((n_topics, n_topics), spread**2))
        self.floor = (0.1 * spread) ** 2

    def update(self, codes: Tensor) -> None:
        # All components at once would take memory in proportion to B K^2.
        n_at_once = max(1, _MOST_NUMBERS_AT_ONCE // codes.numel())
        parts = [slice(start, start + n_at_once) for start in range(0, len(self.weights), n_at_once)]

        @lru_cache(maxsize=1)  # usually there is one part, which is then computed once
        def gap(number: int) -> Tensor:
            return (codes[:, None] - self.means[parts[number]]) ** 2  # (B, C, K)

        distances = [
            (gap(n) / self.vars[part] + self.vars[part].log()).sum(2) for n, part in enumerate(parts)
        ]  # (B, C)
        log_density = -0.5 * torch.cat(distances, dim=1) + self.weights.log()  # (B, K)
        eta = torch.softmax(log_density, dim=1)  # (B, K)
        mass = eta.sum(0)  # (K,)
        # A component moves in proportion to its documents. Without documents it stays, and may get some later.
        step = (_RATE * mass / mass.mean()).clamp(max=1.0)[:, None]  # (K, 1)
        share = (eta / mass.clamp_min(1e-8)).mT  # (K, B)
        centre = share @ codes  # (K, K)
        about_new = step * (2 - step) * (centre - self.means) ** 2  # (K, K)
        spreads = [torch.einsum("kb,bkl->kl", share[part], gap(n)) for n, part in enumerate(parts)]  # (C, K)
        spread = torch.cat(spreads) - about_new  # (K, K)
        self.means.lerp_(centre, step)
        self.vars.lerp_(spread, step).clamp_(min=self.floor)
        self.weights.lerp_(mass / len(codes), _RATE).clamp_(min=1e-3 / len(mass))
        self.weights /= self.weights.sum()


class RefittedMixture(ThetaSampler):
    """softmax(z) for K Gaussians with full covariances that are fitted to the codes of each batch.

    As in zll17's Neural_Topic_Models ("gmm_ctm"). A batch with fewer documents than topics keeps the mixture of the
    batch before.

    Args:
        n_topics: the number of topics K.
        spread: the standard deviation of the components before the first fit.
        fit: returns the weights (K,), the means (K, K) and the covariances (K, K, K) of a mixture with K components,
            given codes (B, K) in double precision.

    >>> import torch
    >>> prior = RefittedMixture(3, spread=1.0, fit=lambda codes: None)
    >>> prior.sample(2, torch.Generator().manual_seed(0)).shape
    torch.Size([2, 3])
    """

    weights: Tensor  # (K,) in proportion to the probabilities of the components
    means: Tensor  # (K, K)
    covariances: Tensor  # (K, K, K)

    def __init__(self, n_topics: int, spread: float, fit: Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]) -> None:
        super().__init__()
        self.fit = fit
        self.register_buffer("weights", torch.full((n_topics,), 1 / n_topics))
        self.register_buffer("means", 2 * spread * torch.eye(n_topics))
        self.register_buffer("covariances", (spread**2 * torch.eye(n_topics)).repeat(n_topics, 1, 1))

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        component = torch.multinomial(self.weights, n, replacement=True, generator=generator)  # (n,)
        noise = torch.empty(n, self.means.shape[1], device=self.means.device).normal_(generator=generator)
        # The covariance of few documents is singular, so that rounding can make eigenvalues negative.
        values, vectors = torch.linalg.eigh(self.covariances.cpu().double())  # (K, K), (K, K, K)
        factors = (vectors * values.clamp_min(0).sqrt()[:, None]).to(noise)  # (K, K, K), whose squares they are
        z = self.means[component] + torch.einsum("nij,nj->ni", factors[component], noise)
        return torch.softmax(z, dim=1)

    def mean(self) -> Tensor:
        """Return the mean of softmax at the centres, as `GaussianMixtureSampler` does."""
        return self.weights @ torch.softmax(self.means, dim=1) / self.weights.sum()

    def prepare(self, codes: Tensor) -> None:
        if len(codes) < len(self.weights):
            return
        own = self.weights, self.means, self.covariances
        for tensor, found in zip(own, self.fit(codes.cpu().double()), strict=True):
            tensor.copy_(found)


def _usage(codes: Tensor) -> Tensor:
    """Return the mean of softmax(codes), (B, K) -> (K,). Each topic has at least a thousandth of an equal share."""
    usage = torch.softmax(codes, dim=1).mean(0)
    return usage.clamp_min(1e-3 / len(usage))


# Discrepancies between two samples, for models whose posterior is a single point and has no divergence


def diffusion_kernel(left: Tensor, right: Tensor, tau: float = 1.0) -> Tensor:
    """Return the information-diffusion kernel of the simplex, exp(-arccos^2(sum_k sqrt(t_k t'_k)) / tau).

    Lafferty & Lebanon 2005; Nan et al. 2019, equation 9. Unlike a Euclidean kernel it distinguishes sparse vectors.

    Args:
        left: (M, K), rows sum to 1.
        right: (N, K), rows sum to 1.
        tau: the width of the kernel.

    Returns:
        (M, N).
    """
    roots = [theta.clamp_min(1e-12).sqrt() for theta in (left, right)]
    angle = (roots[0] @ roots[1].mT).clamp(max=_GREATEST_COSINE).arccos()  # (M, N)
    return torch.exp(-(angle**2) / tau)


def mmd(prior: Tensor, drawn: Tensor, tau: float = 1.0, *, n_first: int | None = None) -> Tensor:
    """Return the unbiased estimate of the squared maximum mean discrepancy of two samples.

    Gretton et al. 2012, lemma 6. The estimate may be below zero. A sample of one has no pairs, and its term is 0.

    Args:
        prior: (M, K), rows sum to 1.
        drawn: (N, K), rows sum to 1.
        tau: the width of the kernel.
        n_first: if given, only pairs of one of the first `n_first` members of `drawn` and one of the others are
            compared, because members of the same group depend on each other. Both groups need a member.

    Returns:
        a scalar.

    >>> import torch
    >>> corners, centre = torch.eye(3), torch.full((3, 3), 1 / 3)
    >>> round(float(mmd(corners, centre)), 3)
    0.282
    """
    if n_first is None:
        among_drawn = _within(drawn, tau)
    else:
        among_drawn = diffusion_kernel(drawn[:n_first], drawn[n_first:], tau).mean()
    return _within(prior, tau) + among_drawn - 2 * diffusion_kernel(prior, drawn, tau).mean()


def _within(sample: Tensor, tau: float) -> Tensor:
    """Return the mean of the kernel over pairs of different members."""
    n = len(sample)
    kernel = diffusion_kernel(sample, sample, tau)  # (n, n)
    return (kernel.sum() - kernel.diagonal().sum()) / max(1, n * (n - 1))
