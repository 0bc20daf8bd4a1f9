"""Priors over a document's latent code, as objects that know what a network needs of them."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from .divergences import kl_normal


class Prior(nn.Module, ABC):
    """p(z), of which a Gaussian posterior asks one thing."""

    @abstractmethod
    def divergence(self, mean: Tensor, log_var: Tensor) -> Tensor:
        """Of N(mean, diag exp(log_var)), (B, L) each, from this prior: one column a latent variable, (B, *)."""


class NormalPrior(Prior):
    """p(z) = N(mean, diag var). Kept as buffers, so that it moves to the device with its network."""

    mean: Tensor  # (L,)
    var: Tensor  # (L,)

    def __init__(self, mean: Tensor, var: Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("var", var)

    def divergence(self, mean: Tensor, log_var: Tensor) -> Tensor:
        """(B, L)"""
        return kl_normal(mean, log_var, self.mean, self.var)


class MixturePrior(Prior):
    """p(c) = pi_c, p(z | c) = N(mean_c, diag var): a mixture of Gaussians with learned means and one learned variance.

    pi stays as it is set, and the variance is that of all components: with weights or variances of its own a wide
    component takes its neighbours' documents, and most components die.
    """

    weights: Tensor  # (C,) logarithm of pi

    def __init__(self, n_components: int, n_dimensions: int) -> None:
        super().__init__()
        self.means = nn.Parameter(torch.zeros(n_components, n_dimensions))
        self.log_var = nn.Parameter(torch.zeros(n_dimensions))
        self.register_buffer("weights", torch.full((n_components,), 1 / n_components).log())

    def set(self, weights: Tensor, means: Tensor, var: Tensor) -> None:
        """Moves the components: pi (C,), means (C, L), variance (L,)."""
        with torch.no_grad():
            self.weights.copy_(weights.log())
            self.means.copy_(means)
            self.log_var.copy_(var.log())

    def responsibilities(self, mean: Tensor, log_var: Tensor) -> Tensor:
        """eta_c = q(c | x), proportional to pi_c exp(E_q[log N(z | mean_c, var_c)]): (B, L) each -> (B, C).

        Of all eta it is the one that makes the bound tightest; VaDE takes p(c | z) at a draw of z.
        """
        precision = (-self.log_var).exp()  # (L,)
        # Squares multiplied out, so that no tensor is (B, C, L); what is the same for all c falls away.
        distance = (self.means**2) @ precision - 2 * mean @ (self.means * precision).mT  # (C,) + (B, C)
        return torch.softmax(self.weights - 0.5 * distance, dim=1)

    def divergence(self, mean: Tensor, log_var: Tensor) -> Tensor:
        """KL(q(z) q(c) || p(z | c) p(c)), a column for each dimension of z and one for c: (B, L + 1)

        sum_c eta_c KL(N(mean, exp(log_var)) || N(mean_c, var)) + sum_c eta_c log(eta_c / pi_c), which is the loss of
        VaDE (Jiang et al. 2017, equation 13) less its reconstruction.
        """
        eta = self.responsibilities(mean, log_var)  # (B, C)
        square = mean**2 - 2 * mean * (eta @ self.means) + eta @ self.means**2  # (B, L) sum_c eta_c (mean - mean_c)^2
        ratio = (square + log_var.exp()) * (-self.log_var).exp()  # (B, L)
        of_code = 0.5 * (ratio - 1 + self.log_var - log_var)  # (B, L)
        of_component = (eta * (eta.clamp_min(1e-12).log() - self.weights)).sum(1, keepdim=True)  # (B, 1)
        return torch.cat([of_code, of_component], dim=1)


def standard_normal(n_dimensions: int) -> NormalPrior:
    """N(0, I)."""
    return NormalPrior(torch.zeros(n_dimensions), torch.ones(n_dimensions))


def laplace_dirichlet(alpha: Tensor) -> NormalPrior:
    """The Laplace approximation of Dirichlet(alpha) in the softmax basis, with a diagonal covariance.

    mean_k = log alpha_k - mean_i log alpha_i; var_k = (1 - 2/K) / alpha_k + (1/K^2) sum_i 1/alpha_i
    (MacKay 1998; Srivastava & Sutton 2017, equation 3).

    Args:
        alpha: (K,), all positive.
    """
    n_topics = len(alpha)
    mean = alpha.log() - alpha.log().mean()
    var = (1 - 2 / n_topics) / alpha + (1 / alpha).sum() / n_topics**2
    return NormalPrior(mean, var)
