"""Priors of a document's latent code."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from .divergences import kl_normal

_RATE = 0.05  # the weight of a batch in the weights of a mixture


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
        """Return the variance, (L,), that is the unit of a code's mean and variance at the start of training."""


class NormalPrior(Prior):
    """p(z) = N(mean, diag var). Both are buffers, so they move to the device with their network."""

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
        pi = self.log_pi.exp().lerp_(shares, _RATE).clamp_min_(1e-3 / len(shares))
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

    def divergence(self, mean: Tensor, log_var: Tensor) -> Tensor:
        """Return KL(q(z) q(c) || p(z | c) p(c)), with a column for each dimension of z and one for c: (B, L + 1).

        It is sum_c eta_c KL(N(mean, exp(log_var)) || N(mean_c, var)) + sum_c eta_c log(eta_c / pi_c), the loss of VaDE
        (Jiang et al. 2017, equation 13) without its reconstruction.
        """
        eta = self.responsibilities(mean, log_var)  # (B, C)
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
    """Return N(0, I)."""
    return NormalPrior(torch.zeros(n_dimensions), torch.ones(n_dimensions))


def laplace_dirichlet(alpha: Tensor) -> NormalPrior:
    """Return the Laplace approximation of Dirichlet(alpha) in the softmax basis, with a diagonal covariance.

    mean_k = log alpha_k - mean_i log alpha_i; var_k = (1 - 2/K) / alpha_k + (1/K^2) sum_i 1/alpha_i
    (MacKay 1998; Srivastava & Sutton 2017, equation 3).

    Args:
        alpha: (K,), positive.
    """
    n_topics = len(alpha)
    mean = alpha.log() - alpha.log().mean()
    var = (1 - 2 / n_topics) / alpha + (1 / alpha).sum() / n_topics**2
    return NormalPrior(mean, var)
