"""Layers and normalisations. They draw initial weights and noise from a generator that is passed to them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..distributed import Step, step

Activation = Literal["softplus", "relu", "tanh"]
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"softplus": F.softplus, "relu": F.relu, "tanh": torch.tanh}
CodeNormKind = Literal["mean", "fixed", "affine", "shift", "none"]
PLAIN_NORMS = ("shift", "none")  # the norms of papers, with which heads are not scaled to the prior

SCALE_GAIN = 5.0  # scales and shifts must change much, so they change faster than other weights
# The initial logit of a bounded scale. The logistic function of -3 is .05, so the scale starts at least_scale ** .05.
START_LOGIT = -3.0
_MOMENTUM = 0.1  # the weight of a batch in running statistics, PyTorch's default
# The least scales that a norm of kind "mean" learns. benchmarks/shares_tried.md compares others.
_LEAST_SCALE_OF_MEAN, _LEAST_SCALE_OF_LOG_VAR = 0.75, 0.05
EPS_OF_CODES = 1e-8  # with the usual 1e-5, an encoder with very small outputs would escape the norm and collapse


class _Linear(nn.Linear):
    """A linear layer without initial weights, because PyTorch would draw them from the global random state."""

    def reset_parameters(self) -> None:
        pass


def linear(n_in: int, n_out: int, generator: torch.Generator, *, bias: bool = True) -> nn.Linear:
    """Return a linear layer with PyTorch's default initial weights, U(-1/sqrt(n_in), 1/sqrt(n_in)).

    Args:
        n_in: the number of input columns.
        n_out: the number of output columns.
        generator: draws the weights, on the CPU.
        bias: whether the layer has a bias.

    >>> import torch
    >>> layer = linear(4, 2, torch.Generator().manual_seed(0))
    >>> layer(torch.zeros(3, 4)).shape
    torch.Size([3, 2])
    """
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
        rate: the share of entries that are dropped.
        generator: draws the entries that are kept, or None.
        lengths: (B,) the number of entries of each document, if x is (N,).
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


def stick_breaking(logits: Tensor) -> Tensor:
    """Return theta whose topics break off a stick in turn: (B, K - 1) -> (B, K), rows sum to 1.

    Topic k gets the fraction eta_k = sigmoid(logits_k) of what topics 1 to k - 1 have left, and topic K gets the rest.

    >>> import torch
    >>> stick_breaking(torch.zeros(1, 3))
    tensor([[0.5000, 0.2500, 0.1250, 0.1250]])
    """
    left = F.pad(F.logsigmoid(-logits).cumsum(1), (1, 0))  # (B, K) log of the rest before each topic
    return (left + F.pad(F.logsigmoid(logits), (0, 1))).exp()


class BatchNorm(nn.Module):
    """Batch normalisation without a scale or a shift.

    In a step of several ranks, the statistics are those of the batch of all ranks. A batch of one document has no
    variance, and is normalised by the running statistics, where PyTorch's own layer raises an error.

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
            self.follow(mean, var, n)
            return normal
        return F.batch_norm(x, self.running_mean, self.running_var, None, None, use_batch, _MOMENTUM, self.eps)

    @torch.no_grad()
    def follow(self, mean: Tensor, var: Tensor, n: int) -> None:
        """Move the running statistics towards the means (F,) and biased variances (F,) of a batch of n documents."""
        self.running_mean.lerp_(mean, _MOMENTUM)
        self.running_var.lerp_(var * n / (n - 1), _MOMENTUM)

    def of_halves(self, x: Tensor) -> Tensor:
        """Normalise each half of the batch by itself, (B, F) -> (B, F).

        The normalised rows of a batch depend on each other, because their mean is 0. The rows of one half do not depend
        on those of the other half. The running statistics do not change.
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

        Both are computed from the small deviations from the running mean, so that one message is enough.
        """
        deviation = x - self.running_mean  # (B, F)
        moments = taken.sum(torch.stack([deviation.sum(0), deviation.square().sum(0)])) / n  # (2, F)
        var = (moments[1] - moments[0].square()).clamp_min(0)
        normal = (deviation - moments[0]) * (var + self.eps).rsqrt()
        return normal, self.running_mean + moments[0], var


class FoldedNorm(nn.Module):
    """Batch normalisation of x W^T with a learned shift and without a scale, computed as a change of W.

    The mean of x w is the mean of x times w, and its variance is w^T Cov(x) w, so the products (B, F) are not needed.
    The running statistics describe x. Outside training, the norm therefore follows the current weights.

    Args:
        n_inputs: the number of columns of x, K.
        n_features: the number of rows of W, F.
        eps: a number added to the variance.
    """

    running_mean: Tensor  # (K,) the mean of x
    running_cov: Tensor  # (K, K) the covariance of x

    def __init__(self, n_inputs: int, n_features: int, *, eps: float = 1e-5) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(n_features))
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
                self.running_mean.lerp_(mean, _MOMENTUM)
                self.running_cov.lerp_(cov * n / (n - 1), _MOMENTUM)
        scale = (((weight @ cov) * weight).sum(1) + self.eps).rsqrt()  # (F,)
        return weight * scale[:, None], self.shift - (weight @ mean) * scale


class CodeNorm(nn.Module):
    """The normalisation of one part of a code over the documents, such as the mean or the log-variance of a Gaussian.

    - "fixed": batch normalisation without a scale or a shift. Its moments cannot change, so the unit stays in use
      whatever the loss is (Zhu et al. 2020, "A Batch Normalized Inference Network Keeps the KL Vanishing Away").
    - "affine": batch normalisation with a learned scale and shift (Ioffe & Szegedy 2015).
    - "shift": batch normalisation with a learned shift and without a scale (Srivastava & Sutton 2017).
    - "bounded": batch normalisation with a learned scale between `least_scale` and 1, which starts near 1, and a
      learned shift between -`largest_shift` and `largest_shift`. The unit stays in use, with a smaller divergence.
    - "none": only a learned shift, like the bias of a linear layer.

    Args:
        n_units: the number of columns L.
        kind: "fixed", "affine", "shift", "bounded" or "none".
        scale: with "affine", the scale at the start.
        least_scale: with "bounded", the lower limit of the scale. 1 means no scale.
        largest_shift: with "bounded", the greatest absolute shift. 0 means no shift.
        eps: a number added to the variance.

    >>> import torch
    >>> norm = CodeNorm(2, "fixed")
    >>> norm(torch.tensor([[1.0, 0.0], [3.0, 4.0]])).round(decimals=3).tolist()
    [[-1.0, -1.0], [1.0, 1.0]]
    """

    def __init__(
        self,
        n_units: int,
        kind: Literal["fixed", "affine", "shift", "bounded", "none"],
        *,
        scale: float = 1.0,
        least_scale: float = 1.0,
        largest_shift: float = 0.0,
        eps: float = EPS_OF_CODES,
    ) -> None:
        super().__init__()
        self.bounded = kind == "bounded"
        self.least_scale, self.largest_shift = least_scale, largest_shift
        self.norm = None if kind == "none" else BatchNorm(n_units, eps=eps)
        start = START_LOGIT if self.bounded else scale
        scaled = least_scale < 1 if self.bounded else kind == "affine"
        self.scale = nn.Parameter(torch.full((n_units,), start / SCALE_GAIN)) if scaled else None
        shifted = largest_shift > 0 if self.bounded else kind != "fixed"
        self.shift = nn.Parameter(torch.zeros(n_units)) if shifted else None

    def forward(self, x: Tensor) -> Tensor:
        """Return the normalised columns, (B, L) -> (B, L)."""
        return self._affine(x if self.norm is None else self.norm(x))

    def of_halves(self, x: Tensor) -> Tensor:
        """Return the normalised columns, (B, L) -> (B, L). In training, each half is normalised by itself."""
        return self._affine(self.norm.of_halves(x)) if self.training and self.norm is not None else self(x)

    def _affine(self, x: Tensor) -> Tensor:
        scale, shift = self.scale_and_shift()
        if scale is not None:
            x = x * scale
        return x if shift is None else x + shift

    def scale_and_shift(self) -> tuple[Tensor | None, Tensor | None]:
        """Return what normalised columns are multiplied by and what is added, (L,) each; None for none."""
        scale = shift = None
        if self.scale is not None:
            scale = SCALE_GAIN * self.scale  # (L,)
            scale = self.least_scale ** scale.sigmoid() if self.bounded else scale
        if self.shift is not None:
            shift = SCALE_GAIN * self.shift  # (L,)
            shift = self.largest_shift * shift.tanh() if self.bounded else shift
        return scale, shift


def norm_of_location(n_units: int, kind: CodeNormKind, *, eps: float = EPS_OF_CODES) -> CodeNorm:
    """Return the norm of the location of a code, such as its logits. "mean" has the same effect as "fixed".

    A lower scale makes the shares in theta more equal, but hardly changes the divergence of a Dirichlet, which depends
    on its concentration (see `Concentration`).
    """
    return CodeNorm(n_units, "fixed" if kind == "mean" else kind, eps=eps)


def norm_of_mean(n_units: int, kind: CodeNormKind, *, scaled: bool = True, eps: float = EPS_OF_CODES) -> CodeNorm:
    """Return the norm of the mean of a Gaussian. With "mean", its scale is learned, but does not fall below .75.

    A mean of unit variance costs .5 nats in each dimension of every document, which is more than a short text gains by
    it. Without a lower limit, most topics therefore collapse.

    Args:
        n_units: the number of columns.
        kind: the setting `code_norm`. All values but "mean" are kinds of `CodeNorm`.
        scaled: whether "mean" has a learned scale.
        eps: a number added to the variance.
    """
    if kind == "mean":
        return CodeNorm(n_units, "bounded", least_scale=_LEAST_SCALE_OF_MEAN if scaled else 1.0, eps=eps)
    return CodeNorm(n_units, kind, eps=eps)


def norm_of_spread(n_units: int, kind: CodeNormKind, *, scaled: bool = True, eps: float = EPS_OF_CODES) -> CodeNorm:
    """Return the norm of the certainty of a code, such as its log-variance. "mean" lets it change within bounds.

    Without bounds, the codes of short texts become as uncertain as the prior, and topics collapse.

    Args:
        n_units: the number of columns.
        kind: the setting `code_norm`. All values but "mean" are kinds of `CodeNorm`.
        scaled: whether "mean" has a learned scale.
        eps: a number added to the variance.
    """
    if kind == "mean":
        least_scale = _LEAST_SCALE_OF_LOG_VAR if scaled else 1.0
        return CodeNorm(n_units, "bounded", least_scale=least_scale, largest_shift=1.0, eps=eps)
    return CodeNorm(n_units, kind, eps=eps)
