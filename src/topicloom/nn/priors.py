"""Priors over a document's latent code, as objects that know what a network needs of them."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class NormalPrior(nn.Module):
    """p(z) = N(mean, diag var). Kept as buffers, so that it moves to the device with its network."""

    mean: Tensor  # (L,)
    var: Tensor  # (L,)

    def __init__(self, mean: Tensor, var: Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("var", var)


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
