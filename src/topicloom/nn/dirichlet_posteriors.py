"""Dirichlet posteriors and approximations of them, with six estimators of the gradients of samples.

A draw from a Dirichlet is a vector of independent gamma variables divided by their sum. Gamma variables with small
shapes underflow, so their logarithms are drawn, and theta is the softmax of the logarithms.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..distributed import step
from .layers import SCALE_GAIN, START_LOGIT, CodeNormKind, normal_like
from .posteriors import (
    Draw,
    NormalPrior,
    SampledPosterior,
    kl_bernoulli,
    kl_dirichlet,
    kl_gamma,
    kl_normal,
    kl_weibull,
    kl_weibull_gamma,
)

_LOG_WEIGHT_IF_ABSENT = -1e4  # added to the log weight of a topic that is not in a document
_LOG_OF_SMALL_GAMMA = -15.0  # below exp(this), a gamma's distribution function equals the first term of its series
_LEAST_SHARE_OF_MOST = 0.1  # the least concentration relative to `most`; see benchmarks/shares_tried.md
_LOGIT_OF_MOST = -4.0  # the parameter with which c is nearly `most`


def open_uniform(size: torch.Size, like: Tensor, generator: torch.Generator) -> Tensor:
    """Draw from the open interval (0, 1), so that the logarithms of u and of 1 - u are finite."""

    def uniform(n: int) -> Tensor:
        return torch.rand(n, *size[1:], generator=generator, dtype=like.dtype, device=like.device)

    u = step().drawn(uniform, size[0])
    return u.clamp_(2.0**-25, 1 - 2.0**-24)


class SimplexPosterior(SampledPosterior):
    """A posterior of log weights, whose softmax is theta."""

    @abstractmethod
    def draw(self, generator: torch.Generator) -> tuple[Tensor, Tensor | None]:
        """Return a draw of the log weights, (B, K), and the log_weight of a `Draw`, (B,) or None."""

    @abstractmethod
    def log_point(self) -> Tensor:
        """Return log weights that represent the posterior, (B, K)."""

    def exact(self) -> SimplexPosterior:
        return self

    def sample(self, generator: torch.Generator) -> Draw:
        log_weights, missed = self.draw(generator)
        return Draw(torch.softmax(log_weights, dim=1), missed)

    def point(self) -> Tensor:
        return torch.softmax(self.log_point(), dim=1)

    def code(self) -> Tensor:
        return self.log_point()


@dataclass(frozen=True)
class LaplacePosterior(SimplexPosterior):
    """A Gaussian z ~ N(mean, diag exp(log_var)) plus a constant instead of log gammas (Srivastava & Sutton 2017).

    >>> import torch
    >>> from topicloom.nn.posteriors import laplace_dirichlet
    >>> prior = laplace_dirichlet(torch.full((2,), 0.5))
    >>> LaplacePosterior(torch.zeros(1, 2), torch.zeros(1, 2), prior).point()
    tensor([[0.5000, 0.5000]])
    """

    mean: Tensor  # (B, K)
    log_var: Tensor  # (B, K)
    prior: NormalPrior  # of z
    offset: Tensor | float = 0.0  # (K,) the constant

    def draw(self, generator: torch.Generator) -> tuple[Tensor, None]:
        noise = normal_like(self.mean, generator)  # (B, K)
        return self.offset + self.mean + noise * (0.5 * self.log_var).exp(), None

    def log_point(self) -> Tensor:
        return self.offset + self.mean

    def divergence(self) -> Tensor:
        return kl_normal(self.mean, self.log_var, self.prior.mean, self.prior.var)


@dataclass(frozen=True)
class _GammaPosterior(SimplexPosterior):
    """theta ~ Dirichlet(alpha), drawn as gamma variables of shape alpha.

    The divergence is that of the Dirichlets. With `of_gammas`, it is that of the gamma variables (Joo et al. 2019).
    This includes their sum, although theta does not depend on it.
    """

    alpha: Tensor  # (B, K)
    prior: Tensor  # (K,)
    of_gammas: bool = field(default=False, kw_only=True)

    def log_point(self) -> Tensor:
        return self.alpha.log()  # the mean

    def divergence(self) -> Tensor:
        return (kl_gamma if self.of_gammas else kl_dirichlet)(self.alpha, self.prior)


class ImplicitDirichlet(_GammaPosterior):
    """Implicit reparameterisation (Figurnov, Mohamed & Mnih 2018): exact draws with their exact gradient.

    >>> import torch
    >>> q = ImplicitDirichlet(torch.tensor([[3.0, 1.0]]), torch.ones(2))
    >>> q.point()
    tensor([[0.7500, 0.2500]])
    >>> q.sample(torch.Generator().manual_seed(0)).theta.shape
    torch.Size([1, 2])
    """

    def draw(self, generator: torch.Generator) -> tuple[Tensor, None]:
        log_gamma: Tensor = _LogGamma.apply(self.alpha, generator)  # type: ignore[no-untyped-call]
        return log_gamma, None


class _LogGamma(torch.autograd.Function):
    """log g for g ~ Gamma(a), with d log g / da = -(dF/da) / (g dF/dg), where F(g; a) is the distribution function."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, generator: torch.Generator) -> Tensor:
        log_g = log_gamma_draws(a, generator)
        ctx.save_for_backward(a, log_g)
        return log_g

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        a, log_g = ctx.saved_tensors
        return grad * log_gamma_slope(a, log_g), None


def log_gamma_slope(a: Tensor, log_g: Tensor) -> Tensor:
    """Return d log g / da of a Gamma(a) variable at a fixed quantile, in the shape of a and log_g.

    As g approaches 0, F approaches g^a / Gamma(a + 1), and the slope (digamma(a + 1) - log g) / a.
    """
    g = log_g.clamp_min(_LOG_OF_SMALL_GAMMA).exp()
    by_series = (torch.digamma(a + 1) - log_g) / a
    return torch.where(log_g < _LOG_OF_SMALL_GAMMA, by_series, torch._standard_gamma_grad(a, g) / g)


def log_gamma_draws(a: Tensor, generator: torch.Generator) -> Tensor:
    """Return logarithms of Gamma(a) draws, without gradients.

    Gamma(a) is drawn as Gamma(a + 1) U^(1/a), which does not underflow in logarithms.
    """
    gammas = torch._standard_gamma(a + 1, generator=step().own(generator))
    return gammas.log() + open_uniform(a.shape, a, generator).log() / a


@dataclass(frozen=True)
class RejectionDirichlet(_GammaPosterior):
    """Reparameterisation through a rejection sampler (Naesseth, Ruiz, Linderman & Blei 2017).

    g = h(eps, a + B) prod_{i=1..B} u_i^(1 / (a + i - 1)), with Marsaglia & Tsang's
    h(eps, c) = (c - 1/3) (1 + eps / sqrt(9c - 3))^3. The gradient through h needs a correction by the score of the
    accepted eps, log Gamma(h; c) + log |dh / deps|, which becomes smaller as the shape augmentation B grows.

    >>> import torch
    >>> draw = RejectionDirichlet(torch.tensor([[3.0, 1.0]]), torch.ones(2)).sample(torch.Generator().manual_seed(0))
    >>> draw.theta.shape, draw.log_weight.shape
    (torch.Size([1, 2]), torch.Size([1]))
    """

    augmentation: int = 5

    def draw(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        c = self.alpha + self.augmentation  # (B, K)
        shift, root = c - 1 / 3, (9 * c - 3).sqrt()
        # The accepted eps is the one that h maps to a gamma draw, so it follows from any draw.
        with torch.no_grad():
            gammas = torch._standard_gamma(c, generator=step().own(generator))
            eps = root * ((gammas / shift) ** (1 / 3) - 1)
        cube_root = (1 + eps / root).clamp_min(1e-6)  # (B, K)
        h = shift * cube_root**3
        log_h = shift.log() + 3 * cube_root.log()
        steps = torch.arange(self.augmentation, device=c.device, dtype=c.dtype)  # (A,) i - 1
        u = open_uniform(torch.Size([*c.shape, self.augmentation]), c, generator)
        log_g = log_h + (u.log() / (self.alpha[..., None] + steps)).sum(-1)  # (B, K)
        slope = (3 * shift / root).log() + 2 * cube_root.log()  # log dh / deps
        score = (c - 1) * log_h - h - torch.lgamma(c) + slope
        return log_g, score.sum(1)


class ScoreDirichlet(_GammaPosterior):
    """The score function (REINFORCE, Williams 1992): exact draws, and the gradient of their log density.

    No gradient passes through theta: the gradient of E[f] is E[f * gradient of log q(theta)], whatever f is. It is
    exact, but varies far more than the others, because it knows only how large f is and not how f changes.

    >>> import torch
    >>> q = ScoreDirichlet(torch.tensor([[3.0, 1.0]]).requires_grad_(), torch.ones(2))
    >>> draw = q.sample(torch.Generator().manual_seed(0))
    >>> draw.theta.requires_grad, draw.log_weight.requires_grad
    (False, True)
    """

    def draw(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        log_g = log_gamma_draws(self.alpha.detach(), generator)  # (B, K)
        log_theta = torch.log_softmax(log_g, dim=1)
        log_density = torch.lgamma(self.alpha.sum(1)) + ((self.alpha - 1) * log_theta - torch.lgamma(self.alpha)).sum(1)
        return log_g, log_density


class InverseDirichlet(_GammaPosterior):
    """The inverse of the gamma's distribution function near zero: g = (u a Gamma(a))^(1/a) (Joo et al. 2019).

    The approximation is good for shapes below 1. Above 1 it is biased, because it cuts off the upper tail. The
    divergence is that of the Dirichlet, so a loss with these draws can be below minus the log likelihood.

    >>> import torch
    >>> InverseDirichlet(torch.tensor([[0.6, 0.2]]), torch.ones(2)).sample(torch.Generator().manual_seed(0)).theta.shape
    torch.Size([1, 2])
    """

    def draw(self, generator: torch.Generator) -> tuple[Tensor, None]:
        u = open_uniform(self.alpha.shape, self.alpha, generator)  # (B, K)
        return (u.log() + torch.lgamma(self.alpha + 1)) / self.alpha, None

    def exact(self) -> ImplicitDirichlet:
        return ImplicitDirichlet(self.alpha, self.prior, of_gammas=self.of_gammas)


@dataclass(frozen=True)
class WeibullPosterior(SimplexPosterior):
    """Weibull variables lambda (-log u)^(1/k) instead of gammas (Zhang, Chen, Guo & Zhou 2018).

    The prior has Weibull variables as well, with the means of the gammas and a common shape, `prior_shape`. Without
    `prior_shape` it has the gammas themselves, as in the paper. The divergence is then large if the shapes of the
    gammas are small, because no Weibull variable is similar to such a gamma.

    >>> import torch
    >>> WeibullPosterior(torch.ones(1, 2), torch.zeros(1, 2), torch.ones(2)).point()
    tensor([[0.5000, 0.5000]])
    """

    shape: Tensor  # (B, K) k
    log_scale: Tensor  # (B, K) log lambda
    prior: Tensor  # (K,) the shapes of the prior's gammas
    prior_shape: Tensor | None = None  # ()

    def draw(self, generator: torch.Generator) -> tuple[Tensor, None]:
        u = open_uniform(self.shape.shape, self.shape, generator)  # (B, K)
        return self.log_scale + (-u.log()).log() / self.shape, None

    def log_point(self) -> Tensor:
        return self.log_scale + torch.lgamma(1 + 1 / self.shape)  # the weights' means

    def divergence(self) -> Tensor:
        """Return the divergence, minimised over a common factor of the weights, which theta does not depend on.

        For gammas, the minimum is where their means and those of the Weibulls have the same sum.
        """
        if self.prior_shape is not None:
            prior_log_scale = self.prior.log() - torch.lgamma(1 + 1 / self.prior_shape)  # (K,)
            return kl_weibull(self.shape, self.log_scale, self.prior_shape, prior_log_scale)
        log_rate = self.prior.sum().log() - torch.logsumexp(self.log_point(), dim=1, keepdim=True)  # (B, 1)
        return kl_weibull_gamma(self.shape, self.log_scale + log_rate, self.prior)


@dataclass(frozen=True)
class SparsePosterior(SimplexPosterior):
    """theta proportional to b times the weights of another posterior, where b_k = 1 if topic k is in the document.

    b is drawn from the binary concrete distribution (Maddison, Mnih & Teh 2017). At a low temperature this is nearly a
    Bernoulli distribution, whose divergence has a closed form and is used; a temperature of 0 draws from it. If no
    topic is in a document, theta consists of the weights of all topics. `point` uses the probabilities of b.

    >>> import torch
    >>> weights = ImplicitDirichlet(torch.tensor([[3.0, 1.0]]), torch.ones(2))
    >>> SparsePosterior(weights, torch.zeros(1, 2), prior_probability=0.5, temperature=0.5).n_present()
    tensor([1.])
    """

    weights: SimplexPosterior
    logits: Tensor  # (B, K) the log odds of b_k = 1
    prior_probability: float
    temperature: float

    def draw(self, generator: torch.Generator) -> tuple[Tensor, Tensor | None]:
        log_weights, missed = self.weights.draw(generator)
        u = open_uniform(self.logits.shape, self.logits, generator)
        noise = u.log() - torch.log1p(-u)  # logistic
        log_odds = self.logits + noise
        if not self.temperature:
            return log_weights + _LOG_WEIGHT_IF_ABSENT * (log_odds < 0), missed
        return log_weights + F.logsigmoid(log_odds / self.temperature), missed

    def exact(self) -> SparsePosterior:
        return replace(self, weights=self.weights.exact(), temperature=0.0)

    def log_point(self) -> Tensor:
        return self.weights.log_point() + F.logsigmoid(self.logits)

    def n_present(self) -> Tensor:
        """Return the expected number of topics in each document, (B,)."""
        return torch.sigmoid(self.logits).sum(1)

    def divergence(self) -> Tensor:
        return self.weights.divergence() + kl_bernoulli(self.logits, self.prior_probability)


class Concentration(nn.Module):
    """The posterior concentration c: the weight of one observed token, shared by all documents.

    Args:
        most: the value of the setting `concentration`.
        kind: with "mean", c is learned and stays between a tenth of `most` and `most`, so that no document's posterior
            becomes as uncertain as the prior. With "affine", it is learned without limits and starts at `most`.
            Otherwise it is `most`.

    >>> Concentration(1.5, "fixed")()
    1.5
    """

    def __init__(self, most: float, kind: CodeNormKind) -> None:
        super().__init__()
        self.most, self.bounded = most, kind == "mean"
        start = START_LOGIT if self.bounded else 0.0
        self.scale = nn.Parameter(torch.tensor(start / SCALE_GAIN)) if kind in ("mean", "affine") else None

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        """Read the scale. In models of older versions, c is not learned, so it gets the value of the setting."""
        if self.scale is not None and f"{prefix}scale" not in state_dict:
            state_dict[f"{prefix}scale"] = torch.full_like(self.scale, _LOGIT_OF_MOST if self.bounded else 0.0)
        super()._load_from_state_dict(state_dict, prefix, *others)

    def forward(self) -> Tensor | float:
        """Return c, a number, or a tensor () if it is learned."""
        if self.scale is None:
            return self.most
        scale = SCALE_GAIN * self.scale  # ()
        c: Tensor = self.most * (_LEAST_SHARE_OF_MOST ** scale.sigmoid() if self.bounded else scale.exp())
        return c


def weibull_shape(a: Tensor) -> Tensor:
    """Return the shape k for which the logarithms of a Weibull and of a Gamma(a) variable have the same variance.

    The variances are pi^2 / (6 k^2) and trigamma(a) = 1/a^2 + 1/(a+1)^2 + trigamma(a + 2). The last term is computed by
    its asymptotic series, with an error below .1 %.
    """
    r = 1 / (a + 2)
    trigamma = a**-2 + (a + 1) ** -2 + r + r**2 / 2 + r**3 / 6
    return math.pi / (6 * trigamma).sqrt()
