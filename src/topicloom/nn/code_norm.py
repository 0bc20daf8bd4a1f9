"""The normalisation of a code, which all heads share, and the learned shares of the topics."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from .layers import BatchNorm

CodeNormKind = Literal["mean", "fixed", "affine", "shift", "none"]
PLAIN_NORMS = ("shift", "none")  # with these, a head is that of a paper: its outputs are not scaled to the prior
_GAIN = 5.0  # scales and shifts have few parameters and far to go, so they change faster than other weights
_EPS = 1e-8  # with the usual 1e-5, an encoder whose outputs become smaller than that escapes the norm and collapses


class CodeNorm(nn.Module):
    """The normalisation of one part of a code over the documents, such as the mean or the log-variance of a Gaussian.

    - "fixed": batch normalisation without a scale or a shift. Its moments cannot change, so the unit stays in use
      whatever the loss says (Zhu et al. 2020, "A Batch Normalized Inference Network Keeps the KL Vanishing Away").
    - "affine": batch normalisation with a learned scale and shift (Ioffe & Szegedy 2015).
    - "shift": batch normalisation with a learned shift and without a scale (Srivastava & Sutton 2017).
    - "bounded": batch normalisation without a scale, and with a learned shift between -1 and 1.
    - "none": a learned shift, as in a linear layer with a bias.

    Args:
        n_units: the number of columns L.
        kind: "fixed", "affine", "shift", "bounded" or "none".
        scale: with "affine", the scale at the start.
    """

    def __init__(
        self,
        n_units: int,
        kind: Literal["fixed", "affine", "shift", "bounded", "none"],
        *,
        scale: float = 1.0,
    ) -> None:
        super().__init__()
        self.norm = None if kind == "none" else BatchNorm(n_units, eps=_EPS)
        self.scale = nn.Parameter(torch.full((n_units,), scale / _GAIN)) if kind == "affine" else None
        self.shift = None if kind == "fixed" else nn.Parameter(torch.zeros(n_units))
        self.bounded = kind == "bounded"

    def forward(self, x: Tensor) -> Tensor:
        """Return the normalised columns, (B, L) -> (B, L)."""
        return self._affine(x if self.norm is None else self.norm(x))

    def of_halves(self, x: Tensor) -> Tensor:
        """Return the columns, (B, L), of which each half of the batch is normalised by itself in training."""
        return self._affine(self.norm.of_halves(x)) if self.training and self.norm is not None else self(x)

    def _affine(self, x: Tensor) -> Tensor:
        if self.scale is not None:
            x = x * (_GAIN * self.scale)
        if self.shift is None:
            return x
        shift = _GAIN * self.shift  # (L,)
        return x + (shift.tanh() if self.bounded else shift)


def norm_of_location(n_units: int, kind: CodeNormKind) -> CodeNorm:
    """Return the norm of where a code is, such as its mean. "mean" normalises it as "fixed" does."""
    return CodeNorm(n_units, "fixed" if kind == "mean" else kind)


def norm_of_spread(n_units: int, kind: CodeNormKind) -> CodeNorm:
    """Return the norm of how certain a code is, such as its log-variance. "mean" lets it change within bounds.

    Without bounds, the codes of short texts become as uncertain as the prior, and topics collapse.
    """
    return CodeNorm(n_units, "bounded" if kind == "mean" else kind)


class TopicShares(nn.Module):
    """The average shares of the topics, p = softmax(b).

    If the shares are learned, b is a parameter, and topics can differ in size as far as the texts do; otherwise b is
    zero. With a Gaussian code, theta = softmax(z + b), which is the same as a prior whose mean is learned: an empirical
    Bayes estimate. A Dirichlet prior has parameters in proportion to p.

    Args:
        n_topics: the number of topics K.
        learned: whether the shares are learned.
    """

    logits: Tensor  # (K,) b

    def __init__(self, n_topics: int, *, learned: bool) -> None:
        super().__init__()
        zeros = torch.zeros(n_topics)
        if learned:
            self.logits = nn.Parameter(zeros)
        else:
            self.register_buffer("logits", zeros)

    def forward(self) -> Tensor:
        """Return the shares, (K,), with the sum 1."""
        return torch.softmax(self.logits, dim=0)

    @torch.no_grad()
    def absorb(self, heirs: Tensor) -> None:
        """Give each topic's share to another one, before topics are removed.

        Args:
            heirs: (K,) the topic that takes the share of each topic; a topic that stays is its own.
        """
        if not isinstance(self.logits, nn.Parameter):
            return
        total = torch.zeros_like(self.logits).index_add_(0, heirs, self())
        self.logits.copy_(total.clamp_min(1e-12).log())
