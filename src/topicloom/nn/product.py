"""The likelihood of a product of experts, softmax(theta W + b): dense over the words, in as few passes as can be.

log p(x | theta) = sum_v x_v (theta W_v + b_v) - n logsumexp_v(theta W_v + b_v). The first sum is over the non-zeros;
only the second is dense. Its exponentials are kept, unnormalised, for the backward pass, which is then two products.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .sparse import SparseCounts

_BLOCK = 1 << 18  # elements of a block of rows that the processor's cache holds while it is exponentiated


class _ProductLogLikelihood(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, theta: Tensor, weight: Tensor, counts: SparseCounts) -> Tensor:
        scores = counts.sampled_product(theta, weight)  # (N,)
        exponentials = theta.new_empty(len(theta), len(weight))  # (B, V), each row divided by its largest
        normaliser = theta.new_empty(len(theta))  # (B,) log of its sum
        sums = theta.new_empty(len(theta))
        step = max(1, _BLOCK // len(weight)) if theta.device.type == "cpu" else len(theta)
        for start in range(0, len(theta), step):
            rows = slice(start, start + step)
            block = torch.mm(theta[rows], weight.mT, out=exponentials[rows])  # (step, V)
            top = block.amax(1)  # (step,)
            sums[rows] = block.sub_(top[:, None]).exp_().sum(1)
            normaliser[rows] = top + sums[rows].log()
        ctx.counts = counts
        ctx.save_for_backward(theta, weight, exponentials, sums)
        return counts.sum_by_document(counts.values * scores) - counts.totals * normaliser

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        counts = ctx.counts
        theta, weight, exponentials, sums = ctx.saved_tensors
        weights = grad[counts.documents] * counts.values  # (N,)
        expected = (grad * counts.totals / sums)[:, None]  # (B, 1): times the exponentials, the counts expected
        theta_grad = counts.times(weights, weight) - expected * (exponentials @ weight)  # (B, K)
        weight_grad = counts.transposed_times(weights, theta).addmm_(
            exponentials.mT, expected * theta, alpha=-1
        )  # (V, K)
        return theta_grad, weight_grad, None


def product_log_likelihood(theta: Tensor, weight: Tensor, bias: Tensor, counts: SparseCounts) -> Tensor:
    """log p(x_d | theta_d) = sum_v x_dv log softmax(theta_d W + b)_v, up to the multinomial coefficient.

    Args:
        theta: (B, K).
        weight: (V, K), W transposed.
        bias: (V,).
        counts: the counts x.

    Returns:
        (B,), differentiable once in theta, weight and bias.
    """
    # A topic that every document has all of, whose weights are the bias: its gradient comes with the others'.
    theta = torch.cat([theta, torch.ones_like(theta[:, :1])], dim=1)  # (B, K + 1)
    weight = torch.cat([weight, bias[:, None]], dim=1)  # (V, K + 1)
    out: Tensor = _ProductLogLikelihood.apply(theta, weight, counts)  # type: ignore[no-untyped-call]
    return out
