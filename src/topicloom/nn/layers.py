"""Layers that draw their initial weights and their noise from a generator that is passed to them.

PyTorch's own layers use the global random state, which this package neither reads nor changes.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..distributed.ranks import Step, step

_MOMENTUM = 0.1  # the weight of a batch in running statistics, PyTorch's default


class _Linear(nn.Linear):
    """A linear layer whose weights are not set when it is made, as PyTorch would draw them from the global state."""

    def reset_parameters(self) -> None:
        pass


def linear(n_in: int, n_out: int, generator: torch.Generator, *, bias: bool = True) -> nn.Linear:
    """Return a linear layer with PyTorch's default initial weights, U(-1/sqrt(n_in), 1/sqrt(n_in))."""
    layer = _Linear(n_in, n_out, bias=bias)  # `nn.utils.skip_init` would import SymPy
    bound = 1 / math.sqrt(n_in)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.uniform_(-bound, bound, generator=generator)
    return layer


def normal_parameter(*size: int, scale: float, generator: torch.Generator) -> nn.Parameter:
    """Return a parameter with initial values from N(0, scale^2)."""
    return nn.Parameter(torch.randn(*size, generator=generator) * scale)


def dropout(x: Tensor, rate: float, generator: torch.Generator | None, lengths: Tensor | None = None) -> Tensor:
    """Keep each entry with probability 1 - rate, scaled so that its mean does not change.

    Without a generator, x is returned as it is.

    Args:
        x: (B, ...), or (N,) the entries of B documents.
        rate: the rate.
        generator: draws what is kept, or None.
        lengths: (B,) the number of entries of each document, in the latter case.
    """
    if rate == 0 or generator is None:
        return x

    def uniform(n: int) -> Tensor:
        return torch.rand(n, *x.shape[1:], generator=generator, device=x.device)

    taken = step()
    drawn = taken.drawn(uniform, len(x)) if lengths is None else taken.drawn_entries(uniform, len(x), lengths)
    keep = drawn >= rate  # faster than bernoulli_ on a CPU
    return x * keep / (1 - rate)


def normal_like(x: Tensor, generator: torch.Generator) -> Tensor:
    """Draw from N(0, 1) for each entry of (B, L)."""

    def normal(n: int) -> Tensor:
        return x.new_empty(n, *x.shape[1:]).normal_(generator=generator)

    return step().drawn(normal, len(x))


class BatchNorm(nn.Module):
    """Batch normalisation without a scale or a shift.

    In a step of several ranks, the statistics are those of the batch of all ranks. A batch of one document has no
    variance, so it is normalised by the running statistics. PyTorch's own layer raises an error in this case.

    Args:
        n_features: the number of columns F.
        eps: a number added to the variance.
    """

    running_mean: Tensor  # (F,)
    running_var: Tensor  # (F,)

    def __init__(self, n_features: int, *, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.register_buffer("running_mean", torch.zeros(n_features))
        self.register_buffer("running_var", torch.ones(n_features))

    def forward(self, x: Tensor) -> Tensor:
        """Return the normalised columns, (B, F) -> (B, F)."""
        taken = step()
        use_batch = self.training and taken.n_docs(len(x)) > 1
        if use_batch and taken.is_shared:
            normal, mean, var = self._over_ranks(x, taken, n := taken.n_docs(len(x)))
            with torch.no_grad():
                self.running_mean.lerp_(mean, _MOMENTUM)
                self.running_var.lerp_(var * n / (n - 1), _MOMENTUM)
            return normal
        return F.batch_norm(x, self.running_mean, self.running_var, None, None, use_batch, _MOMENTUM, self.eps)

    def of_halves(self, x: Tensor) -> Tensor:
        """Return the columns, (B, F), each half of the batch normalised by itself.

        The normalised rows of a batch depend on each other: their mean is always 0. Those of one half do not depend on
        those of the other. The running statistics do not change.
        """
        taken = step()
        n_first = taken.n_first_half(len(x))
        sizes = n_first, taken.n_docs(len(x)) - n_first
        if taken.is_shared and min(sizes) > 1:
            halves = zip(x.tensor_split([taken.own_first_half(len(x))]), sizes, strict=True)
            return torch.cat([self._over_ranks(half, taken, n)[0] for half, n in halves])
        parts = [
            F.batch_norm(half, None, None, None, None, True, 0.0, self.eps)
            if len(half) > 1
            else F.batch_norm(half, self.running_mean, self.running_var, None, None, False, 0.0, self.eps)
            for half in x.tensor_split(2)
        ]
        return torch.cat(parts)

    def _over_ranks(self, x: Tensor, taken: Step, n: int) -> tuple[Tensor, Tensor, Tensor]:
        """Normalise columns by the n rows of all ranks, (B, F), and return their mean and variance, (F,) each.

        Both are computed from the deviations from the running mean, which are small, so that one message is enough.
        """
        deviation = x - self.running_mean  # (B, F)
        moments = taken.sum(torch.stack([deviation.sum(0), deviation.square().sum(0)])) / n  # (2, F)
        var = (moments[1] - moments[0].square()).clamp_min(0)
        normal = (deviation - moments[0]) * (var + self.eps).rsqrt()
        return normal, self.running_mean + moments[0], var


class FoldedNorm(nn.Module):
    """Batch normalisation of x W^T with a learned shift and without a scale, computed as a change of W.

    The mean of x w is the mean of x times w, and its variance is w^T Cov(x) w. So the products (B, F) are not needed.
    The running statistics are those of x. Outside training, the norm therefore follows the current weights.

    Args:
        n_inputs: the number of columns of x, K.
        n_features: the number of rows of W, F.
        momentum: the weight of a batch in the running statistics.
        eps: a number added to the variance.
    """

    running_mean: Tensor  # (K,) of x
    running_cov: Tensor  # (K, K) of x

    def __init__(self, n_inputs: int, n_features: int, *, momentum: float = _MOMENTUM, eps: float = 1e-5) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(n_features))
        self.momentum = momentum
        self.eps = eps
        self.register_buffer("running_mean", torch.full((n_inputs,), 1 / n_inputs))
        self.register_buffer("running_cov", torch.eye(n_inputs) / n_inputs)

    def forward(self, x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Return weights (F, K) and biases (F,) with which x is mapped to norm(x weight^T).

        Args:
            x: (B, K).
            weight: (F, K).
        """
        mean, cov = self.running_mean, self.running_cov
        taken = step()
        n = taken.n_docs(len(x))
        if self.training and n > 1:
            mean = taken.mean(x)  # (K,)
            cov = taken.sum((x - mean).mT @ (x - mean)) / n  # (K, K)
            with torch.no_grad():
                self.running_mean.lerp_(mean, self.momentum)
                self.running_cov.lerp_(cov * n / (n - 1), self.momentum)
        scale = (((weight @ cov) * weight).sum(1) + self.eps).rsqrt()  # (F,)
        return weight * scale[:, None], self.shift - (weight @ mean) * scale
