"""Discrepancies between two samples, for models whose posterior is a single point and has no divergence."""

from __future__ import annotations

import torch
from torch import Tensor

_NEAREST = 1 - 1e-6  # the slope of arccos is infinite at 1


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
    angle = (roots[0] @ roots[1].mT).clamp(max=_NEAREST).arccos()  # (M, N)
    return torch.exp(-(angle**2) / tau)


def mmd(prior: Tensor, drawn: Tensor, tau: float = 1.0, *, n_first: int | None = None) -> Tensor:
    """Return the unbiased estimate of the squared maximum mean discrepancy of two samples.

    Gretton et al. 2012, lemma 6. The estimate may be below zero. A sample of one has no pairs, and its term is 0.

    Args:
        prior: (M, K), rows sum to 1.
        drawn: (N, K), rows sum to 1.
        tau: the width of the kernel.
        n_first: if given, only pairs of one of so many first members of `drawn` and one of the others are compared,
            because members of the same group depend on each other. There should be one of each at least.

    Returns:
        a scalar.
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
