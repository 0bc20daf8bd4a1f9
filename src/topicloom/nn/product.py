"""The likelihood of a product of experts, softmax(theta W + b), which is dense over the words, in few passes.

log p(x | theta) = sum_v x_v (theta W_v + b_v) - n logsumexp_v(theta W_v + b_v). The first sum is over the non-zero
counts, and only the second one is dense. Its exponentials are kept, without normalisation, for the backward pass, which
then consists of two products.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from .helpers import together
from .sparse import SparseCounts

_BLOCK = 1 << 18  # elements of a block of rows that fits into the processor's cache


class _ProductLogLikelihood(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, theta: Tensor, weight: Tensor, counts: SparseCounts) -> Tensor:
        exponentials = theta.new_empty(len(theta), len(weight))  # (B, V), each row divided by its largest element
        normaliser = theta.new_empty(len(theta))  # (B,) the logarithm of the sum of each row
        sums = theta.new_empty(len(theta))
        scores: list[Tensor] = []  # (N,)

        def normalise(rows: slice) -> None:
            block = torch.mm(theta[rows], weight.mT, out=exponentials[rows])  # (step, V)
            top = block.amax(1)  # (step,)
            sums[rows] = block.sub_(top[:, None]).exp_().sum(1)
            normaliser[rows] = top + sums[rows].log()

        step = max(1, _BLOCK // len(weight)) if theta.device.type == "cpu" else max(1, len(theta))
        blocks = [slice(start, start + step) for start in range(0, len(theta), step)]
        together(
            [
                lambda: scores.append(counts.sampled_product(theta, weight)),
                *(partial(normalise, rows) for rows in blocks),
            ]
        )
        ctx.counts = counts
        ctx.save_for_backward(theta, weight, exponentials, sums)
        return counts.sum_by_document(counts.values * scores[0]) - counts.totals * normaliser

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        counts = ctx.counts
        theta, weight, exponentials, sums = ctx.saved_tensors
        observed = grad[counts.documents] * counts.values  # (N,)
        # The product of `expected` and the exponentials is the expected counts.
        expected = (grad * counts.totals / sums)[:, None]  # (B, 1)
        weighted = expected * theta  # (B, K)
        theta_grad, weight_grad = torch.empty_like(theta), torch.empty_like(weight)
        of_documents, of_words = torch.empty_like(theta), torch.empty_like(weight)
        document_halves, word_halves = _halves(len(theta)), _halves(len(weight))

        def document_product(rows: slice) -> None:
            torch.mm(exponentials[rows], weight, out=of_documents[rows])

        def word_product(rows: slice) -> None:
            torch.mm(exponentials[:, rows].mT, weighted, out=of_words[rows])

        together(
            [
                lambda: weight_grad.copy_(counts.transposed_times(observed, theta)),
                lambda: theta_grad.copy_(counts.times(observed, weight)),
                *(partial(document_product, rows) for rows in document_halves),
                *(partial(word_product, rows) for rows in word_halves),
            ]
        )
        return theta_grad.sub_(expected * of_documents), weight_grad.sub_(of_words), None


def _halves(n: int) -> tuple[slice, slice]:
    return slice(0, n // 2), slice(n // 2, n)


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
