"""Priors and posteriors of a document's latent code, and the divergences between them.

Posteriors whose topics have positive weights, such as Dirichlet posteriors, are in dirichlet_posteriors.py.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..distributed import step
from .execution import NUMBERS_BETWEEN_ARRAYS, arrays_of, compiled_for, logarithm
from .layers import normal_like

Array = np.ndarray[Any, Any]
EULER = 0.5772156649015329
_CACHED_NUMBERS = 1 << 17  # numbers in a block of rows that fits into the cache of a core
_MIXTURE_RATE = 0.05  # the weight of a batch in the weights of a mixture
_LENGTH_OF_NO_PRIOR = 20.0  # tokens; in shorter documents, the prior of the shares would outweigh the data


# Divergences in closed form, and the mutual information of topics and words


def kl_normal(mean: Tensor, log_var: Tensor, prior_mean: Tensor, prior_var: Tensor) -> Tensor:
    """Return KL(N(mean, exp(log_var)) || N(prior_mean, prior_var)) with diagonal covariances.

    Args:
        mean, log_var: (B, L).
        prior_mean, prior_var: (L,) or (B, L).

    Returns:
        (B, L), one value for each dimension, whose sum over dimensions is the divergence.
    """
    ratio = (log_var.exp() + (mean - prior_mean) ** 2) / prior_var  # (B, L)
    return 0.5 * (ratio - 1 + prior_var.log() - log_var)


def kl_dirichlet(alpha: Tensor, prior: Tensor) -> Tensor:
    """Return KL(Dirichlet(alpha) || Dirichlet(prior)), divided between the topics.

    Args:
        alpha: (B, K), positive.
        prior: (K,), positive.

    Returns:
        (B, K), not negative up to rounding; the sum over topics is the divergence. A topic's part is proportional to
        the divergence of its gamma variable. The proportions have no gradient, so that the gradient of the sum is that
        of the divergence.
    """
    per_gamma = kl_gamma(alpha, prior)  # (B, K)
    divergence = per_gamma.sum(1, keepdim=True) - kl_gamma(alpha.sum(1, keepdim=True), prior.sum())  # (B, 1)
    weights = per_gamma.detach().clamp_min(1e-12)  # (B, K); near the prior, rounding can make them negative
    return weights / weights.sum(1, keepdim=True) * divergence


def kl_gamma(shape: Tensor, prior: Tensor) -> Tensor:
    """Return KL(Gamma(shape, 1) || Gamma(prior, 1)) for each entry."""
    return torch.lgamma(prior) - torch.lgamma(shape) + (shape - prior) * torch.digamma(shape)


def kl_weibull_gamma(shape: Tensor, log_scale: Tensor, prior: Tensor) -> Tensor:
    """Return KL(Weibull(shape, exp(log_scale)) || Gamma(prior, 1)) (Zhang et al. 2018, WHAI).

    Args:
        shape: (B, K), positive, k.
        log_scale: (B, K), log lambda.
        prior: (K,), positive, the shapes of the gammas.

    Returns:
        (B, K), one value for each topic.
    """
    mean = (log_scale + torch.lgamma(1 + 1 / shape)).exp()  # (B, K)
    entropy = EULER * (1 - 1 / shape) + log_scale - shape.log() + 1  # (B, K)
    expected_log = log_scale - EULER / shape  # (B, K)
    return mean - (prior - 1) * expected_log + torch.lgamma(prior) - entropy


def kl_weibull(shape: Tensor, log_scale: Tensor, prior_shape: Tensor, prior_log_scale: Tensor) -> Tensor:
    """Return the smallest KL(Weibull(shape, r exp(log_scale)) || Weibull(prior_shape, exp(prior_log_scale))) over r.

    Each row has one factor r, which does not change theta. With d = log(r lambda / lambda0),
    KL = log(k / k0) - k0 d + EULER (k0 / k - 1) + exp(k0 d) Gamma(1 + k0 / k) - 1 (Bauckhage 2013). As k0 is the same
    for all topics, the sum over the topics has its minimum where the mean of exp(k0 d) Gamma(1 + k0 / k) is 1.

    Args:
        shape: (B, K), positive, k.
        log_scale: (B, K), log lambda.
        prior_shape: (), positive, k0.
        prior_log_scale: (K,), log lambda0.

    Returns:
        (B, K), one value for each topic.
    """
    ratio = prior_shape / shape  # (B, K)
    log_moment = prior_shape * (log_scale - prior_log_scale) + torch.lgamma(1 + ratio)  # (B, K) log E[(w / lambda0)^k0]
    log_moment = log_moment - torch.logsumexp(log_moment, dim=1, keepdim=True) + math.log(log_moment.shape[1])
    difference = log_moment - torch.lgamma(1 + ratio)  # (B, K) k0 d
    return -ratio.log() - difference + EULER * (ratio - 1) + log_moment.exp() - 1


def kl_bernoulli(logits: Tensor, prior_probability: float) -> Tensor:
    """Return KL(Bernoulli(sigmoid(logits)) || Bernoulli(prior_probability)) for each entry."""
    p = torch.sigmoid(logits)
    present = F.logsigmoid(logits) - math.log(prior_probability)
    absent = F.logsigmoid(-logits) - math.log1p(-prior_probability)
    return p * present + (1 - p) * absent


class _TopicInformation(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, beta_t: Tensor, shares: Tensor) -> Tensor:
        log_ratio, total = torch.empty_like(beta_t), shares.new_zeros(())  # (V, K), ()
        loop = None
        if ctx.needs_input_grad[0] and beta_t.is_contiguous():
            loop = compiled_for(_information_loop, _information_example, beta_t.numel(), beta_t, shares)
        if loop is not None:
            found = shares.new_empty(1)
            loop(*arrays_of(beta_t, shares, log_ratio, found))
            ctx.save_for_backward(log_ratio, shares)
            return found[0]
        step = max(1, _CACHED_NUMBERS // len(shares)) if beta_t.device.type == "cpu" else len(beta_t)
        for topics, out in zip(beta_t.split(step), log_ratio.split(step), strict=True):
            mean = (topics @ shares).clamp_min_(1e-30)  # (step,)
            torch.div(topics, mean[:, None], out=out).clamp_min_(1e-30).log_()  # (step, K)
            total += ((topics * out) @ shares).sum()
        ctx.save_for_backward(log_ratio, shares)
        return total

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        log_ratio, shares = ctx.saved_tensors
        return log_ratio * (grad * shares), None


def _information_loop(beta_t: Array, shares: Array, log_ratio: Array, found: Array) -> None:
    """Write log(beta_kv / p(v)) to `log_ratio` (V, K), and the mutual information to `found` (1,)."""
    n_words, n_topics = beta_t.shape
    of_topics = np.zeros(n_topics + 2 * NUMBERS_BETWEEN_ARRAYS, np.float32)
    of_topics = of_topics[NUMBERS_BETWEEN_ARRAYS:-NUMBERS_BETWEEN_ARRAYS]
    for word in range(n_words):
        beta, ratio, mean = beta_t[word], log_ratio[word], np.float32(0)
        for k in range(n_topics):
            mean += beta[k] * shares[k]
        scale = 1 / max(mean, np.float32(1e-30))
        for k in range(n_topics):
            ratio[k] = logarithm(max(beta[k] * scale, np.float32(1e-30)))
            of_topics[k] += beta[k] * ratio[k]
    total = np.float64(0)
    for k in range(n_topics):
        total += of_topics[k] * shares[k]
    found[0] = total


def _information_example() -> tuple[Any, ...]:
    """Return arguments of `_information_loop` for one word and one topic."""
    table = np.ones((1, 1), np.float32)
    return table, table[0], table.copy(), np.ones(1, np.float32)


def topic_information(beta_t: Tensor, shares: Tensor) -> Tensor:
    """Return the mutual information of topics and words in nats, the generalised Jensen-Shannon divergence of topics.

    I(topic; word) = sum_k p_k sum_v beta_kv log(beta_kv / sum_i p_i beta_iv). It is 0 if all topics are the same, and
    equals the entropy of p if no two topics share a word. A topic that no document has does not count.

    Args:
        beta_t: (V, K), columns sum to 1.
        shares: (K,) the share p of each topic, with the sum 1; it is not differentiated.

    Returns:
        a scalar.
    """
    out: Tensor = _TopicInformation.apply(beta_t, shares)  # type: ignore[no-untyped-call]
    return out


# Priors


class Prior(nn.Module, ABC):
    """The prior p(z) of a Gaussian posterior."""

    @abstractmethod
    def divergence(self, mean: Tensor, log_var: Tensor) -> Tensor:
        """Return the divergence of N(mean, diag exp(log_var)) from this prior.

        Args:
            mean, log_var: (B, L).

        Returns:
            (B, M), one column for each latent variable.
        """

    @abstractmethod
    def unit_var(self) -> Tensor:
        """Return the variance, (L,), to which a code's mean and variance are scaled at the start of training."""


class NormalPrior(Prior):
    """p(z) = N(mean, diag var). Both are buffers, so they move to the device with their network.

    Args:
        mean: (L,).
        var: (L,), positive.

    >>> import torch
    >>> prior = NormalPrior(torch.zeros(2), torch.ones(2))
    >>> prior.divergence(torch.tensor([[1.0, 0.0]]), torch.zeros(1, 2))  # 1/2 of the squared mean
    tensor([[0.5000, 0.0000]])
    """

    mean: Tensor  # (L,)
    var: Tensor  # (L,)

    def __init__(self, mean: Tensor, var: Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", mean, persistent=False)  # the settings contain them
        self.register_buffer("var", var, persistent=False)

    def divergence(self, mean: Tensor, log_var: Tensor) -> Tensor:
        return kl_normal(mean, log_var, self.mean, self.var)

    def unit_var(self) -> Tensor:
        return self.var


class MixturePrior(Prior):
    """A mixture of Gaussians, p(c) = pi_c and p(z | c) = N(mean_c, diag var), with learned means and variance.

    By default all components share the variance. With a variance of its own, a wide component takes the documents of
    its neighbours, and most components are lost. pi is constant, or follows the components' shares of the documents.

    Args:
        n_components: the number of components C.
        n_dimensions: the number of dimensions L of z.
        own_variances: whether each component has a variance of its own, var_c, as in VaDE.

    >>> import torch
    >>> prior = MixturePrior(3, 2)
    >>> prior.responsibilities(torch.zeros(1, 2), torch.zeros(1, 2))  # all components are alike at first
    tensor([[0.3333, 0.3333, 0.3333]], grad_fn=<SoftmaxBackward0>)
    """

    weights: Tensor  # (C,) the logarithm of pi, plus a constant if components were removed

    def __init__(self, n_components: int, n_dimensions: int, *, own_variances: bool = False) -> None:
        super().__init__()
        self.means = nn.Parameter(torch.zeros(n_components, n_dimensions))
        self.own_variances = own_variances
        self.log_var = nn.Parameter(torch.zeros_like(self.means) if own_variances else torch.zeros(n_dimensions))
        self.register_buffer("weights", torch.full((n_components,), 1 / n_components).log())

    def set(self, weights: Tensor, means: Tensor, var: Tensor) -> None:
        """Set pi (C,), the means (C, L) and the variance (L,), or the variances (C, L)."""
        with torch.no_grad():
            self.weights.copy_(weights.log())
            self.means.copy_(means)
            self.log_var.copy_(var.log())

    @property
    def log_pi(self) -> Tensor:
        """The logarithm of pi, (C,)."""
        return torch.log_softmax(self.weights, dim=0)

    @torch.no_grad()
    def follow(self, shares: Tensor) -> None:
        """Move pi towards the components' shares (C,) of a batch."""
        pi = self.log_pi.exp().lerp_(shares, _MIXTURE_RATE).clamp_min_(1e-3 / len(shares))
        self.weights.copy_((pi / pi.sum()).log())

    def responsibilities(self, mean: Tensor, log_var: Tensor) -> Tensor:
        """Return eta_c = q(c | x), proportional to pi_c exp(E_q[log N(z | mean_c, var_c)]): (B, C).

        This is the distribution that makes the bound tightest. VaDE uses p(c | z) at a draw of z.

        Args:
            mean, log_var: (B, L), the parameters of q(z | x).
        """
        precision = (-self.log_var).exp()  # (L,) or (C, L)
        if self.own_variances:
            constant = (self.means**2 * precision + self.log_var).sum(1)  # (C,)
            spread = (mean**2 + log_var.exp()) @ precision.mT  # (B, C)
            return torch.softmax(self.log_pi - 0.5 * (constant + spread) + mean @ (self.means * precision).mT, dim=1)
        # The square is expanded, so that no tensor is (B, C, L). Terms that are equal for all c are left out.
        distance = (self.means**2) @ precision - 2 * mean @ (self.means * precision).mT  # (C,) + (B, C)
        return torch.softmax(self.log_pi - 0.5 * distance, dim=1)

    def component_of(self, z: Tensor) -> Tensor:
        """Return p(c | z), the probabilities of the components at a position (B, L): (B, C)."""
        return self.responsibilities(z, torch.full_like(z, -math.inf))  # a posterior without variance

    def divergence(self, mean: Tensor, log_var: Tensor, eta: Tensor | None = None) -> Tensor:
        """Return KL(q(z) q(c) || p(z | c) p(c)), with a column for each dimension of z and one for c: (B, L + 1).

        It is sum_c eta_c KL(N(mean, exp(log_var)) || N(mean_c, var)) + sum_c eta_c log(eta_c / pi_c), the loss of VaDE
        (Jiang et al. 2017, equation 13) without its reconstruction.

        Args:
            mean, log_var: (B, L), the parameters of q(z | x).
            eta: (B, C), q(c | x). None is that of `responsibilities`, with which the divergence is least.
        """
        eta = self.responsibilities(mean, log_var) if eta is None else eta  # (B, C)
        if self.own_variances:
            precision = (-self.log_var).exp()  # (C, L)
            square = (mean**2 + log_var.exp()) * (eta @ precision) - 2 * mean * (eta @ (self.means * precision))
            ratio = square + eta @ (self.means**2 * precision)  # (B, L)
            of_code = 0.5 * (ratio - 1 + eta @ self.log_var - log_var)  # (B, L)
        else:
            of_code = self._shared_divergence(mean, log_var, eta)
        of_component = (eta * (eta.clamp_min(1e-12).log() - self.log_pi)).sum(1, keepdim=True)  # (B, 1)
        return torch.cat([of_code, of_component], dim=1)

    def unit_var(self) -> Tensor:
        return torch.ones_like(self.means[0])

    def _shared_divergence(self, mean: Tensor, log_var: Tensor, eta: Tensor) -> Tensor:
        """Return sum_c eta_c KL(N(mean, exp(log_var)) || N(mean_c, var)) for each dimension, (B, L)."""
        square = mean**2 - 2 * mean * (eta @ self.means) + eta @ self.means**2  # (B, L) sum_c eta_c (mean - mean_c)^2
        ratio = (square + log_var.exp()) * (-self.log_var).exp()  # (B, L)
        return 0.5 * (ratio - 1 + self.log_var - log_var)


def standard_normal(n_dimensions: int) -> NormalPrior:
    """Return N(0, I).

    Args:
        n_dimensions: the number of dimensions L.

    >>> standard_normal(2).var
    tensor([1., 1.])
    """
    return NormalPrior(torch.zeros(n_dimensions), torch.ones(n_dimensions))


def laplace_dirichlet(alpha: Tensor) -> NormalPrior:
    """Return the Laplace approximation of Dirichlet(alpha) in the softmax basis, with a diagonal covariance.

    mean_k = log alpha_k - mean_i log alpha_i; var_k = (1 - 2/K) / alpha_k + (1/K^2) sum_i 1/alpha_i
    (MacKay 1998; Srivastava & Sutton 2017, equation 3).

    Args:
        alpha: (K,), positive.

    >>> import torch
    >>> laplace_dirichlet(torch.full((4,), 0.5)).var
    tensor([1.5000, 1.5000, 1.5000, 1.5000])
    """
    n_topics = len(alpha)
    mean = alpha.log() - alpha.log().mean()
    var = (1 - 2 / n_topics) / alpha + (1 / alpha).sum() / n_topics**2
    return NormalPrior(mean, var)


class TopicShares(nn.Module):
    """The average shares of the topics, p = softmax(b).

    If the shares are learned, b is a parameter, and topics can differ in size. Otherwise b is zero. With a Gaussian
    code, theta = softmax(z + b), which is the same as a prior with a learned mean, an empirical Bayes estimate. A
    Dirichlet prior has parameters in proportion to p.

    Learned shares can have a prior that favours equal shares, p ~ Dirichlet(1 + D s / K) for D documents. Its logarithm
    is -s KL(u || p) for each document, up to a constant, where u_k = 1 / K.

    Args:
        n_topics: the number of topics K.
        learned: whether the shares are learned.
        prior: the weight s of this prior in long documents, in nats for each of them.
        mean_length: the mean number of tokens L of the documents. s is multiplied by max(0, 1 - 20 / L).

    >>> TopicShares(4, learned=True)().tolist()
    [0.25, 0.25, 0.25, 0.25]
    """

    logits: Tensor  # (K,) b

    def __init__(self, n_topics: int, *, learned: bool, prior: float = 0.0, mean_length: float = 1.0) -> None:
        super().__init__()
        self.prior = prior * max(0.0, 1 - _LENGTH_OF_NO_PRIOR / max(mean_length, 1.0)) if learned else 0.0
        zeros = torch.zeros(n_topics)
        if learned:
            self.logits = nn.Parameter(zeros)
        else:
            self.register_buffer("logits", zeros)

    @property
    def is_learned(self) -> bool:
        """Whether the shares are learned."""
        return isinstance(self.logits, nn.Parameter)

    def forward(self) -> Tensor:
        """Return the shares, (K,), with the sum 1."""
        return torch.softmax(self.logits, dim=0)

    def negative_log_prior(self) -> Tensor:
        """Return minus the log prior of the shares for each document, up to a constant: s KL(u || p), ()."""
        return -self.prior * (torch.log_softmax(self.logits, dim=0).mean() + math.log(len(self.logits)))

    def unmoved(self, codes: Tensor) -> Tensor:
        """Return the codes z + b, (B, K), with the same values, but without a gradient for b.

        This is for a discrepancy from a prior that follows the shares.
        """
        return codes - self.logits + self.logits.detach()

    @torch.no_grad()
    def absorb(self, heirs: Tensor, parts: Tensor) -> None:
        """Divide the shares of the topics that will be removed among those that stay.

        Args:
            heirs: (K,) the topic that inherits from each topic. A topic that stays inherits its own share.
            parts: (K,) the part of its share that each topic leaves to its heir. The rest is divided among all topics
                that stay, in proportion to their shares.
        """
        if not self.is_learned:
            return
        total = torch.zeros_like(self.logits).index_add_(0, heirs, self() * parts.to(self.logits))
        self.logits.copy_(total.clamp_min(1e-12).log())


# Posteriors


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
    """The posterior of a deterministic encoder: a single theta, which has no divergence from a prior.

    >>> import torch
    >>> PointPosterior(torch.tensor([[0.9, 0.1]])).divergence().shape
    torch.Size([1, 0])
    """

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
            sizes: (B,) numbers that f grows with, such as tokens. If they are given, the mean of f per unit over the
                other documents is subtracted from the constant f. This is a control variate (Mnih & Gregor 2014). It
                makes the variance much smaller, and does not change the expectation, because no document's own draw is
                subtracted. If f is normalised over the batch, there is a small bias: .03 (relative) with an
                augmentation of 1, and too small to measure with 5.
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
        """Return the posterior whose divergence is computed, for bounds. Draws with gradients may differ from it."""
        return self


@dataclass(frozen=True)
class GaussianPosterior(SampledPosterior):
    """z ~ N(mean, diag exp(log_var)), theta = to_theta(z), which is a logistic normal if to_theta is a softmax.

    `point` is to_theta(mean). The mean of a logistic normal has no closed form.

    >>> import torch
    >>> prior = standard_normal(2)
    >>> q = GaussianPosterior(torch.zeros(1, 2), torch.zeros(1, 2), prior, lambda z: torch.softmax(z, dim=1))
    >>> q.point(), q.divergence()
    (tensor([[0.5000, 0.5000]]), tensor([[0., 0.]]))
    >>> q.sample(torch.Generator().manual_seed(0)).theta.shape
    torch.Size([1, 2])
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
class DrawnComponentPosterior(GaussianPosterior):
    """A Gaussian posterior with a mixture prior, whose q(c | x) is p(c | z) at a draw of z (Jiang et al. 2017).

    >>> import torch
    >>> prior = MixturePrior(2, 2)
    >>> prior.set(torch.tensor([0.5, 0.5]), torch.tensor([[1.0, 0.0], [-1.0, 0.0]]), torch.ones(2))
    >>> zero = torch.zeros(1, 2)
    >>> drawn = torch.tensor([[3.0, 0.0]])
    >>> q = DrawnComponentPosterior(zero, zero, prior, lambda z: torch.softmax(z, dim=1), drawn)
    >>> bool(q.divergence().sum() > prior.divergence(zero, zero).sum())
    True
    """

    drawn: Tensor  # (B, L) the draw

    def divergence(self) -> Tensor:
        assert isinstance(self.prior, MixturePrior)
        return self.prior.divergence(self.mean, self.log_var, self.prior.component_of(self.drawn))


@dataclass(frozen=True)
class DirichletPosterior(SampledPosterior):
    """theta ~ Dirichlet(alpha), with draws that have no gradient. dirichlet_posteriors.py has draws with gradients.

    >>> import torch
    >>> DirichletPosterior(torch.tensor([[3.0, 1.0]]), torch.ones(2)).point()
    tensor([[0.7500, 0.2500]])
    """

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
