"""The likelihood of a product of experts, softmax(theta W + b), which is dense over the words, in few passes.

log p(x | theta) = sum_v x_v (theta W_v + b_v) - n logsumexp_v(theta W_v + b_v). The first sum is over the non-zero
counts, and only the second one is dense. Its exponentials are kept, without normalisation, for the backward pass, which
then consists of two products.

The likelihood is computed in single precision. Where the processor multiplies bfloat16 numbers, the exponentials are
kept in half the memory, and the two products of the backward pass take half the time or less. A rounded exponential
differs by at most 0.4 %, which is far less than the noise of a gradient that is estimated from a batch.
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
        # (B, V), each row divided by its largest element
        exponentials = theta.new_empty(len(theta), len(weight), dtype=kept_dtype(theta.device))
        normaliser = theta.new_empty(len(theta))  # (B,) the logarithm of the sum of each row
        sums = theta.new_empty(len(theta))
        step = max(1, _BLOCK // len(weight)) if theta.device.type == "cpu" else len(theta)
        rounded = exponentials.dtype != theta.dtype
        buffer = theta.new_empty(step if rounded else 0, len(weight))
        for start in range(0, len(theta), step):
            rows = slice(start, start + step)
            kept = exponentials[rows]
            block = torch.mm(theta[rows], weight.mT, out=buffer[: len(kept)] if rounded else kept)  # (step, V)
            top = block.amax(1)  # (step,)
            sums[rows] = block.sub_(top[:, None]).exp_().sum(1)
            if rounded:
                kept.copy_(block)
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
        dtype = exponentials.dtype
        theta_grad = counts.times(weights, weight) - expected * (exponentials @ weight.to(dtype))  # (B, K)
        of_words = exponentials.mT @ (expected * theta).to(dtype)  # (V, K)
        weight_grad = counts.transposed_times(weights, theta).sub_(of_words)  # (V, K)
        return theta_grad, weight_grad, None


def kept_dtype(device: torch.device) -> torch.dtype:
    """Return the type of the exponentials: bfloat16 if the processor has instructions for its products."""
    supported = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    return torch.bfloat16 if device.type == "cpu" and supported() else torch.float32


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
