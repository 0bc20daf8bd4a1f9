"""Layers that draw their starting weights and their noise from a generator that they are given.

torch's own layers use the global random state, which this package neither reads nor changes.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def linear(n_in: int, n_out: int, generator: torch.Generator, *, bias: bool = True) -> nn.Linear:
    """A linear layer with torch's default start, U(-1/sqrt(n_in), 1/sqrt(n_in))."""
    layer: nn.Linear = nn.utils.skip_init(nn.Linear, n_in, n_out, bias=bias)
    bound = 1 / math.sqrt(n_in)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.uniform_(-bound, bound, generator=generator)
    return layer


def normal_parameter(*size: int, scale: float, generator: torch.Generator) -> nn.Parameter:
    """A parameter that starts from N(0, scale^2)."""
    return nn.Parameter(torch.randn(*size, generator=generator) * scale)


def dropout(x: Tensor, rate: float, generator: torch.Generator | None) -> Tensor:
    """Each entry is kept with probability 1 - rate and scaled to keep its mean; generator None: x as it is."""
    if rate == 0 or generator is None:
        return x
    keep = torch.rand(x.shape, generator=generator, device=x.device) >= rate  # faster than bernoulli_ on a CPU
    return x * keep / (1 - rate)


class BatchNorm(nn.Module):
    """Batch normalisation without a scale, with or without a learned shift.

    A batch of one document has no variance: it is normalised by the running figures, where torch's own layer stops.
    """

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, n_features: int, *, shift: bool = False, momentum: float = 0.1, eps: float = 1e-5) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(n_features)) if shift else None
        self.momentum = momentum
        self.eps = eps
        self.register_buffer("running_mean", torch.zeros(n_features))
        self.register_buffer("running_var", torch.ones(n_features))

    def forward(self, x: Tensor) -> Tensor:
        """(B, n_features) -> (B, n_features)"""
        use_batch = self.training and len(x) > 1
        return F.batch_norm(
            x, self.running_mean, self.running_var, None, self.shift, use_batch, self.momentum, self.eps
        )


class FoldedNorm(nn.Module):
    """Batch normalisation of x W^T with a learned shift and no scale, as a change of W and not of the products.

    The mean of x w is that of x, times w, and its variance w^T Cov(x) w: there is no pass over the (B, n_features)
    values. The running figures are of x, so outside training the norm is that of the weights as they are now.
    """

    running_mean: Tensor  # (K,) of x
    running_cov: Tensor  # (K, K)

    def __init__(self, n_inputs: int, n_features: int, *, momentum: float = 0.1, eps: float = 1e-5) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(n_features))
        self.momentum = momentum
        self.eps = eps
        self.register_buffer("running_mean", torch.full((n_inputs,), 1 / n_inputs))
        self.register_buffer("running_cov", torch.eye(n_inputs) / n_inputs)

    def forward(self, x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Weight (n_features, K) and bias (n_features,) whose map of x is norm(x weight^T).

        Args:
            x: (B, K).
            weight: (n_features, K).
        """
        mean, cov = self.running_mean, self.running_cov
        if self.training and len(x) > 1:
            mean = x.mean(0)  # (K,)
            cov = (x - mean).mT @ (x - mean) / len(x)  # (K, K)
            with torch.no_grad():
                self.running_mean.lerp_(mean, self.momentum)
                self.running_cov.lerp_(cov * len(x) / (len(x) - 1), self.momentum)
        scale = (((weight @ cov) * weight).sum(1) + self.eps).rsqrt()  # (n_features,)
        return weight * scale[:, None], self.shift - (weight @ mean) * scale
