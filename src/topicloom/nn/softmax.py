"""A softmax over the words, which turns weights into topics, in few passes over (V, K)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class _ColumnSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, offset: Tensor, gain: float) -> Tensor:
        out = torch.add(offset, weight, alpha=gain)  # (V, K)
        out.sub_(out.amax(0)).exp_()
        out.mul_(out.sum(0).reciprocal_())
        ctx.gain = gain
        ctx.save_for_backward(out)
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (out,) = ctx.saved_tensors
        product = out * grad  # (V, K)
        return product.addcmul_(out, product.sum(0), value=-1).mul_(ctx.gain), None, None


def column_softmax(weight: Tensor, offset: Tensor, gain: float = 1.0) -> Tensor:
    """Return softmax(offset + gain * weight, dim=0).

    With 50 or 100 topics, this and its gradient take little more than half the time of the separate operations.

    Args:
        weight: (V, K).
        offset: (V, K) or (V, 1), which is not differentiated.
        gain: a factor.

    Returns:
        (V, K), columns sum to 1.
    """
    out: Tensor = _ColumnSoftmax.apply(weight, offset, gain)  # type: ignore[no-untyped-call]
    return out
