"""Sparse counts and the products that never make them dense.

A mixture decoder needs p(w|d) = sum_k theta_dk beta_kw only where document d has word w. Forward that is a sampled
dense-dense product (SDDMM); backward it is two sparse-dense products, with S = g c / p at the same non-zeros:
d loss / d theta = S beta^T and d loss / d beta^T = S^T theta. Cost and memory are linear in the non-zeros.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

TINY = 1e-10  # keeps log p finite where a topic mixture gives a word no mass
_CHUNK = 1 << 22  # elements of a gathered block where there is no sampled product

# torch says once a process that its CSR tensors are in beta: let it say so here, and no user's filter is changed.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor([0], [], [], (0, 0))


@dataclass(frozen=True)
class SparseCounts:
    """B documents over V words. N is the number of non-zeros.

    Backward products need the non-zeros ordered by word; the order is found when the first of them asks for it.
    """

    indices: Tensor  # (N,) int64, word of each non-zero, documents one after the other
    values: Tensor  # (N,) float, count of each non-zero
    offsets: Tensor  # (B + 1,) int64, where each document starts
    n_words: int
    find_by_word: Callable[[], Tensor] | None = None  # finds `by_word` of these `indices`, faster than a sort does

    @property
    def n_docs(self) -> int:
        return len(self.offsets) - 1

    @property
    def device(self) -> torch.device:
        return self.values.device

    @cached_property
    def documents(self) -> Tensor:
        """(N,) int64, document of each non-zero."""
        numbers = torch.arange(self.n_docs, device=self.device)
        return torch.repeat_interleave(numbers, self.offsets.diff(), output_size=len(self.indices))

    @cached_property
    def by_word(self) -> Tensor:
        """(N,) int64, the non-zeros ordered by word: positions in `indices`."""
        return self.indices.argsort(stable=True) if self.find_by_word is None else self.find_by_word()

    @cached_property
    def word_documents(self) -> Tensor:
        """(N,) int64, document of each of them."""
        return self.documents[self.by_word]

    @cached_property
    def word_offsets(self) -> Tensor:
        """(V + 1,) int64, where each word starts in that order."""
        return starts_of(self.indices, self.n_words)

    @cached_property
    def totals(self) -> Tensor:
        """(B,) tokens of each document."""
        return self.sum_by_document(self.values)

    def sum_by_document(self, values: Tensor) -> Tensor:
        """(N,) -> (B,)"""
        if self.device.type == "mps":
            return torch.zeros(self.n_docs, dtype=values.dtype, device=self.device).index_add_(
                0, self.documents, values
            )
        return torch.segment_reduce(values, "sum", offsets=self.offsets, initial=0)

    def to_dense(self, values: Tensor | None = None) -> Tensor:
        """(B, V), for the few places where a single batch may be dense."""
        values = self.values if values is None else values
        dense = torch.zeros(self.n_docs, self.n_words, dtype=values.dtype, device=self.device)
        return dense.index_put_((self.documents, self.indices), values)

    def at_counts(self, dense: Tensor) -> Tensor:
        """Entries of a (B, V) tensor where this batch has counts: (N,)."""
        return dense[self.documents, self.indices]

    def sampled_product(self, left: Tensor, right: Tensor) -> Tensor:
        """(left right^T) at the non-zeros: (B, K), (V, K) -> (N,)."""
        if _has_sampled_product(self.device):
            pattern = self._by_document(torch.zeros_like(self.values, dtype=left.dtype))
            product: Tensor = torch.sparse.sampled_addmm(pattern, left, right.mT, beta=0.0)
            return product.values()
        step = max(1, _CHUNK // left.shape[1])
        parts = [
            (left[rows] * right[words]).sum(1)  # (step, K) -> (step,)
            for rows, words in zip(self.documents.split(step), self.indices.split(step), strict=True)
        ]
        return torch.cat(parts)

    def times(self, values: Tensor, right: Tensor) -> Tensor:
        """S right, with `values` (N,) in S (B, V) and right (V, K): (B, K)."""
        if self.device.type == "mps":
            out = torch.zeros(self.n_docs, right.shape[1], dtype=right.dtype, device=self.device)
            return out.index_add_(0, self.documents, right[self.indices] * values[:, None])
        return _product(self._by_document(values), right)

    def transposed_times(self, values: Tensor, right: Tensor) -> Tensor:
        """S^T right, with `values` (N,) in S (B, V) and right (B, K): (V, K)."""
        if self.device.type == "mps":
            out = torch.zeros(self.n_words, right.shape[1], dtype=right.dtype, device=self.device)
            return out.index_add_(0, self.indices, right[self.documents] * values[:, None])
        size = (self.n_words, self.n_docs)
        by_word = torch.sparse_csr_tensor(
            self.word_offsets, self.word_documents, values[self.by_word], size, check_invariants=False
        )
        return _product(by_word, right)

    def _by_document(self, values: Tensor) -> Tensor:
        size = (self.n_docs, self.n_words)
        return torch.sparse_csr_tensor(self.offsets, self.indices, values, size, check_invariants=False)


def starts_of(groups: Tensor, n_groups: int) -> Tensor:
    """Where each group starts once its members stand in order: (N,) int64 groups -> (n_groups + 1,)"""
    return F.pad(torch.bincount(groups, minlength=n_groups).cumsum(0), (1, 0))


def _product(sparse: Tensor, dense: Tensor) -> Tensor:
    """sparse @ dense. The operator @ fills and copies its result first, which costs more than the product itself."""
    # Without MKL, a beta of 0 may be multiplied by what lies in memory, and 0 times NaN is NaN.
    make = torch.empty if _has_sampled_product(dense.device) else torch.zeros
    out = make(sparse.shape[0], dense.shape[1], dtype=dense.dtype, device=dense.device)
    return out.addmm_(sparse, dense, beta=0)


def _has_sampled_product(device: torch.device) -> bool:
    return device.type == "cuda" or (device.type == "cpu" and torch.backends.mkl.is_available())


class _MixtureLogLikelihood(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, theta: Tensor, beta_t: Tensor, counts: SparseCounts) -> Tensor:
        probability = counts.sampled_product(theta, beta_t) + TINY  # (N,)
        ctx.counts = counts
        ctx.save_for_backward(theta, beta_t, probability)
        return counts.sum_by_document(counts.values * probability.log())  # (B,)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        counts = ctx.counts
        theta, beta_t, probability = ctx.saved_tensors
        ratio = grad[counts.documents] * counts.values / probability  # (N,)
        theta_grad = counts.times(ratio, beta_t) if ctx.needs_input_grad[0] else None  # (B, K)
        beta_grad = counts.transposed_times(ratio, theta) if ctx.needs_input_grad[1] else None  # (V, K)
        return theta_grad, beta_grad, None


def mixture_log_likelihood(theta: Tensor, beta_t: Tensor, counts: SparseCounts) -> Tensor:
    """log p(x_d | theta_d) = sum_v x_dv log (theta_d beta)_v, up to the multinomial coefficient.

    Args:
        theta: (B, K), rows in the simplex.
        beta_t: (V, K), columns in the simplex: the topic-word matrix transposed, so that a word is one run of memory.
        counts: the counts x.

    Returns:
        (B,), differentiable once in theta and beta_t.
    """
    out: Tensor = _MixtureLogLikelihood.apply(theta, beta_t, counts)  # type: ignore[no-untyped-call]
    return out


class _BagProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, values: Tensor, counts: SparseCounts) -> Tensor:
        ctx.counts = counts
        ctx.save_for_backward(values)
        return counts.times(values, weight)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (values,) = ctx.saved_tensors
        return ctx.counts.transposed_times(values, grad.contiguous()), None, None


def bag_product(weight: Tensor, values: Tensor, counts: SparseCounts) -> Tensor:
    """The embedding-bag: each document's sum of its words' rows of `weight`, weighted by `values`.

    The same as embedding_bag(mode="sum", per_sample_weights=values), with a backward that reuses the batch's order
    by word, which is faster.

    Args:
        weight: (V, H).
        values: (N,), not differentiated.

    Returns:
        (B, H).
    """
    out: Tensor = _BagProduct.apply(weight, values, counts)  # type: ignore[no-untyped-call]
    return out
