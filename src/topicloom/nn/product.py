"""The likelihood of a product of experts, softmax(theta W + b), which is dense over the words, in few passes.

log p(x | theta) = sum_v x_v (theta W_v + b_v) - n logsumexp_v(theta W_v + b_v). The first sum is over the non-zero
counts, and only the second one is dense. Its exponentials are kept, without normalisation, for the backward pass, which
then consists of two products.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .sparse import SparseCounts

_BLOCK = 1 << 18  # elements of a block of rows that fits into the processor's cache


class _ProductLogLikelihood(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, theta: Tensor, weight: Tensor, counts: SparseCounts) -> Tensor:
        scores = counts.sampled_product(theta, weight)  # (N,)
        exponentials = theta.new_empty(len(theta), len(weight))  # (B, V), each row divided by its largest element
        normaliser = theta.new_empty(len(theta))  # (B,) the logarithm of the sum of each row
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
        # The product of `expected` and the exponentials is the expected counts.
        expected = (grad * counts.totals / sums)[:, None]  # (B, 1)
        theta_grad = counts.times(weights, weight) - expected * (exponentials @ weight)  # (B, K)
        weight_grad = counts.transposed_times(weights, theta).addmm_(
            exponentials.mT, expected * theta, alpha=-1
        )  # (V, K)
        return theta_grad, weight_grad, None


def product_log_likelihood(theta: Tensor, weight: Tensor, bias: Tensor, counts: SparseCounts) -> Tensor:
    """Return log p(x_d | theta_d) = sum_v x_dv log softmax(theta_d W + b)_v, up to the multinomial coefficient.

    Args:
        theta: (B, K).
        weight: (V, K), the transpose of W.
        bias: (V,), b.
        counts: the counts x.

    Returns:
        (B,), which can be differentiated once with respect to theta, weight and bias.
    """
    # The bias is the weight of one more topic, which is 1 in every document, so that one product gives all gradients.
    theta = torch.cat([theta, torch.ones_like(theta[:, :1])], dim=1)  # (B, K + 1)
    weight = torch.cat([weight, bias[:, None]], dim=1)  # (V, K + 1)
    out: Tensor = _ProductLogLikelihood.apply(theta, weight, counts)  # type: ignore[no-untyped-call]
    return out
