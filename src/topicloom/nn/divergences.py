"""Divergences between distributions, in closed form, one value per document."""

from __future__ import annotations

import torch
from torch import Tensor


def kl_normal(mean: Tensor, log_var: Tensor, prior_mean: Tensor, prior_var: Tensor) -> Tensor:
    """KL(N(mean, exp(log_var)) || N(prior_mean, prior_var)) with diagonal covariances.

    Args:
        mean, log_var: (B, L).
        prior_mean, prior_var: (L,) or (B, L).

    Returns:
        (B, L), one value per dimension: the sum over dimensions is the divergence.
    """
    ratio = (log_var.exp() + (mean - prior_mean) ** 2) / prior_var  # (B, L)
    return 0.5 * (ratio - 1 + prior_var.log() - log_var)


def kl_dirichlet(alpha: Tensor, prior: Tensor) -> Tensor:
    """KL(Dirichlet(alpha) || Dirichlet(prior)).

    Args:
        alpha: (B, K), positive.
        prior: (K,), positive.

    Returns:
        (B, K), terms whose sum over topics is the divergence.
    """
    total = alpha.sum(1, keepdim=True)  # (B, 1)
    normalisers = (torch.lgamma(total) - torch.lgamma(prior.sum())) / alpha.shape[1]  # (B, 1), shared out over topics
    expected_log = torch.digamma(alpha) - torch.digamma(total)  # (B, K)
    return normalisers + torch.lgamma(prior) - torch.lgamma(alpha) + (alpha - prior) * expected_log
