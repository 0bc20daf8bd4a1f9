"""Sparse counts, and products with them that stay sparse.

A mixture decoder needs p(w|d) = sum_k theta_dk beta_kw only where document d contains word w. The forward pass is a
sampled dense-dense product (SDDMM). The backward pass consists of two sparse-dense products with S = g c / p at the
same non-zeros: d loss / d theta = S beta^T and d loss / d beta^T = S^T theta. Time and memory are linear in the number
of non-zeros.
"""

from __future__ import annotations

import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from .execution import arrays_of, compiled_for, run_on_threads

Array = np.ndarray[Any, Any]

TINY = 1e-10  # keeps log p finite if a mixture of topics gives a word no probability
_CPU_BLOCK = 1 << 17  # elements of a gathered block; a few such blocks fit into a core's cache
_CACHED_NUMBERS = 1 << 18  # numbers in a block of rows of logits that fits into the processor's cache
_DEVICE_BLOCK = 1 << 24  # elements of a block on a GPU, 64 MiB; fewer would leave it idle

# PyTorch warns once in a process that its CSR tensors are in beta. The warning is triggered and ignored here, so that
# the user's filters need not change.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor([0], [], [], (0, 0))


@dataclass(frozen=True)
class SparseCounts:
    """The counts of B documents over V words, with N non-zeros.

    Backward products need the non-zeros in the order of their words. This order is computed at its first use.

    Attributes:
        indices: (N,) int64, the word of each non-zero, one document after the other.
        values: (N,) float, the count of each non-zero.
        offsets: (B + 1,) int64, where each document starts.
        n_words: the size of the vocabulary V.
        find_by_word: a function that returns `by_word` faster than sorting does, or None.

    >>> import torch
    >>> counts = SparseCounts(torch.tensor([0, 3, 1]), torch.tensor([2.0, 1.0, 1.0]), torch.tensor([0, 2, 3]), 5)
    >>> counts.totals, counts.n_docs
    (tensor([3., 1.]), 2)
    """

    indices: Tensor
    values: Tensor
    offsets: Tensor
    n_words: int
    find_by_word: Callable[[], Tensor] | None = None

    @property
    def n_docs(self) -> int:
        """The number of documents B."""
        return len(self.offsets) - 1

    @property
    def device(self) -> torch.device:
        """The device of the tensors."""
        return self.values.device

    @cached_property
    def documents(self) -> Tensor:
        """The document of each non-zero, (N,) int64."""
        numbers = torch.arange(self.n_docs, device=self.device)
        return torch.repeat_interleave(numbers, self.offsets.diff(), output_size=len(self.indices))

    @cached_property
    def by_word(self) -> Tensor:
        """The positions of the non-zeros in the order of their words, (N,) int64."""
        return self.indices.argsort(stable=True) if self.find_by_word is None else self.find_by_word()

    @cached_property
    def word_documents(self) -> Tensor:
        """The document of each non-zero in that order, (N,) int64."""
        return self.documents[self.by_word]

    @cached_property
    def word_offsets(self) -> Tensor:
        """The position at which each word starts in that order, (V + 1,) int64."""
        return starts_of(self.indices, self.n_words)

    @cached_property
    def totals(self) -> Tensor:
        """The number of tokens of each document, (B,)."""
        return self.sum_by_document(self.values)

    def with_values(self, values: Tensor) -> SparseCounts:
        """Return counts with other values (N,) at the same non-zeros. Both share the order by word."""
        return replace(self, values=values, find_by_word=lambda: self.by_word)

    def divided(self, is_first: Tensor) -> tuple[SparseCounts, SparseCounts]:
        """Return the counts at the non-zeros of a mask, (N,) bool, and the counts at all others. The rest is 0."""
        return self.with_values(self.values * is_first), self.with_values(self.values * ~is_first)

    def take(self, rows: Tensor) -> SparseCounts:
        """Return the counts of some documents, (n,) int64, in that order."""
        starts, lengths = self.offsets[rows], self.offsets.diff()[rows]  # (n,)
        offsets, where = F.pad(lengths.cumsum(0), (1, 0)), members_of(starts, lengths)
        return SparseCounts(self.indices[where], self.values[where], offsets, self.n_words)

    def sum_by_document(self, values: Tensor) -> Tensor:
        """Return the sum of the values of each document, (N,) -> (B,)."""
        if self.device.type == "mps":
            return torch.zeros(self.n_docs, dtype=values.dtype, device=self.device).index_add_(
                0, self.documents, values
            )
        return torch.segment_reduce(values, "sum", offsets=self.offsets, initial=0)

    def at_counts(self, dense: Tensor) -> Tensor:
        """Return the elements of a tensor (B, V) at the non-zeros, (N,)."""
        return dense[self.documents, self.indices]

    def sampled_product(self, left: Tensor, right: Tensor) -> Tensor:
        """Return left right^T at the non-zeros, (B, K) and (V, K) -> (N,)."""
        if _has_sampled_product(self.device):
            pattern = self._by_document(torch.zeros_like(self.values, dtype=left.dtype))
            product: Tensor = torch.sparse.sampled_addmm(pattern, left, right.mT, beta=0.0)
            return product.values()
        step = rows_at_once(left.shape[1], self.device)
        parts = [
            (left[rows] * right[words]).sum(1)  # (step, K) -> (step,)
            for rows, words in zip(self.documents.split(step), self.indices.split(step), strict=True)
        ]
        return torch.cat(parts)

    def times(self, values: Tensor, right: Tensor) -> Tensor:
        """Return S right, (B, K), where S (B, V) has the `values` (N,) at the non-zeros and right is (V, K)."""
        if self.device.type == "mps":
            out = torch.zeros(self.n_docs, right.shape[1], dtype=right.dtype, device=self.device)
            return out.index_add_(0, self.documents, right[self.indices] * values[:, None])
        if _has_fast_bag(right):
            return _bags(self.indices, values, self.offsets, right)
        return _product(self._by_document(values), right)

    def transposed_times(self, values: Tensor, right: Tensor) -> Tensor:
        """Return S^T right, (V, K), where S (B, V) has the `values` (N,) at the non-zeros and right is (B, K)."""
        if self.device.type == "mps":
            out = torch.zeros(self.n_words, right.shape[1], dtype=right.dtype, device=self.device)
            return out.index_add_(0, self.indices, right[self.documents] * values[:, None])
        if _has_fast_bag(right):
            return _bags(self.word_documents, values[self.by_word], self.word_offsets, right)
        size = (self.n_words, self.n_docs)
        by_word = torch.sparse_csr_tensor(
            self.word_offsets, self.word_documents, values[self.by_word], size, check_invariants=False
        )
        return _product(by_word, right)

    def _by_document(self, values: Tensor) -> Tensor:
        size = (self.n_docs, self.n_words)
        return torch.sparse_csr_tensor(self.offsets, self.indices, values, size, check_invariants=False)


@dataclass(frozen=True)
class Batch:
    """B documents: their counts, their rows in the corpus, and their fields as tensors.

    Attributes:
        counts: the word counts. In training, they may include words of the nearest documents.
        rows: (B,) int64, the row of each document in the corpus; None for documents outside a corpus.
        fields: a tensor for each field that the network names in `TopicNetwork.fields`, such as "vectors" (B, E),
            "times" (B,) or a covariate (B,).
        sizes: the number of documents of each rank in a batch of several ranks.
        positions: (B,) the places of this rank's documents in that batch, or None.
        own: the documents' own counts, if `counts` includes words of other documents; else None.
    """

    counts: SparseCounts
    rows: Tensor | None = None
    fields: Mapping[str, Tensor] = field(default_factory=dict)
    sizes: Sequence[int] = ()
    positions: Tensor | None = None
    own: SparseCounts | None = None

    @property
    def own_counts(self) -> SparseCounts:
        """The documents' own counts, which encoders read."""
        return self.counts if self.own is None else self.own

    @property
    def n_docs(self) -> int:
        """The number of documents B."""
        return self.counts.n_docs

    @property
    def n_words(self) -> int:
        """The size of the vocabulary V."""
        return self.counts.n_words

    @property
    def device(self) -> torch.device:
        """The device of the tensors."""
        return self.counts.device


def members_of(starts: Tensor, lengths: Tensor) -> Tensor:
    """Return the numbers starts_i, starts_i + 1, ... of each interval, one interval after the other: (N,) int64.

    Args:
        starts: (n,) int64, the first number of each interval.
        lengths: (n,) int64, the length of each interval; the sum is N.
    """
    moved = torch.repeat_interleave(starts - (lengths.cumsum(0) - lengths), lengths)  # (N,)
    return moved.add_(torch.arange(len(moved), device=starts.device))


def rows_at_once(width: int, device: torch.device) -> int:
    """Return how many rows of `width` numbers are gathered at once on a device."""
    return max(1, (_CPU_BLOCK if device.type == "cpu" else _DEVICE_BLOCK) // width)


def document_pieces(offsets: Sequence[int], most: int) -> Iterator[tuple[int, int]]:
    """Yield pieces of consecutive documents, each as its first document and the document after its last one.

    Args:
        offsets: (D + 1,), where the non-zeros of each document start.
        most: the greatest number of non-zeros in a piece. A document with more is a piece of its own.
    """
    first = 0
    while first < len(offsets) - 1:
        last = max(first + 1, bisect_right(offsets, int(offsets[first]) + most) - 1)
        yield first, last
        first = last


def starts_of(groups: Tensor, n_groups: int) -> Tensor:
    """Return the position at which each group starts when members are sorted by group, (n_groups + 1,).

    Args:
        groups: (N,) int64, the group of each member.
        n_groups: the number of groups.
    """
    return F.pad(_sizes(groups, n_groups).cumsum(0), (1, 0))


def _sizes(groups: Tensor, n_groups: int) -> Tensor:
    """Return the number of members of each group, (n_groups,)."""
    if groups.device.type == "cpu":
        return torch.bincount(groups, minlength=n_groups)
    return _sizes_on_device(groups, n_groups)


def _sizes_on_device(groups: Tensor, n_groups: int) -> Tensor:
    """Return the sizes without waiting for the device. bincount would wait to learn the number of groups."""
    return groups.new_zeros(n_groups).index_add_(0, groups, torch.ones_like(groups))


def _has_fast_bag(right: Tensor) -> bool:
    """Return whether an embedding-bag is faster than a product of PyTorch's sparse matrices."""
    return right.device.type == "cpu" and right.dtype == torch.float32


def _bags(indices: Tensor, values: Tensor, offsets: Tensor, right: Tensor) -> Tensor:
    """Return a row for each interval of offsets: the sum of the rows of `right` at `indices`, weighted by `values`.

    A row depends neither on the other rows nor on the number of threads. This takes a third to a half of the time of a
    product by MKL, which starts all of its threads even for a single document.
    """
    return F.embedding_bag(
        indices, right.contiguous(), offsets, mode="sum", per_sample_weights=values, include_last_offset=True
    )


def _product(sparse: Tensor, dense: Tensor) -> Tensor:
    """Return sparse @ dense. The operator @ first fills and copies its result, which takes longer than the product."""
    # Without MKL, a beta of 0 may be multiplied by uninitialised memory, and 0 times NaN is NaN.
    make = torch.empty if _has_sampled_product(dense.device) else torch.zeros
    out = make(sparse.shape[0], dense.shape[1], dtype=dense.dtype, device=dense.device)
    return out.addmm_(sparse, dense, beta=0)


def _has_sampled_product(device: torch.device) -> bool:
    return device.type == "cuda" or (device.type == "cpu" and torch.backends.mkl.is_available())


class _MixtureLogLikelihood(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, theta: Tensor, beta_t: Tensor, counts: SparseCounts, floor: float) -> Tensor:
        ctx.counts, work, loop = counts, theta.shape[1] * len(counts.values), None
        if any(ctx.needs_input_grad[:2]):  # in training; otherwise, documents would depend on the size of a batch
            loop = compiled_for(mixture_loop, mixture_example, work, theta, beta_t, counts.values)
        if loop is None:
            probability = counts.sampled_product(theta, beta_t) + floor  # (N,)
            total = counts.sum_by_document(counts.values * probability.log())  # (B,)
        else:
            probability, total = torch.empty_like(counts.values), theta.new_empty(len(theta))
            loop(*arrays_of(counts.offsets, counts.indices, counts.values, theta, beta_t, probability, total), floor)
        ctx.save_for_backward(theta, beta_t, probability)
        return total

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        counts = ctx.counts
        theta, beta_t, probability = ctx.saved_tensors
        work, loop = theta.shape[1] * len(counts.values), None
        if all(ctx.needs_input_grad[:2]):
            loop = compiled_for(mixture_gradient_loop, mixture_gradient_example, work, theta, beta_t, grad, probability)
        if loop is not None:
            of_theta, of_beta = torch.zeros_like(theta), torch.zeros_like(beta_t)
            documents = counts.offsets, counts.indices, counts.values, probability, grad
            loop(*arrays_of(*documents, theta, beta_t, of_theta, of_beta))
            return of_theta, of_beta, None, None
        ratio = grad[counts.documents] * counts.values / probability  # (N,)
        theta_grad = counts.times(ratio, beta_t) if ctx.needs_input_grad[0] else None  # (B, K)
        beta_grad = counts.transposed_times(ratio, theta) if ctx.needs_input_grad[1] else None  # (V, K)
        return theta_grad, beta_grad, None, None


def mixture_loop(
    offsets: Array,
    words: Array,
    values: Array,
    theta: Array,
    beta_t: Array,
    probability: Array,
    total: Array,
    floor: float,
) -> None:
    """Write p(w | d) + floor of the non-zeros to `probability` (N,), and the log likelihood to `total` (B,)."""
    for doc in range(len(theta)):
        shares, likelihood = theta[doc], np.float32(0)
        for i in range(offsets[doc], offsets[doc + 1]):
            beta, p = beta_t[words[i]], np.float32(floor)
            for k in range(len(shares)):
                p += shares[k] * beta[k]
            probability[i] = p
            likelihood += values[i] * np.log(p)
        total[doc] = likelihood


def mixture_example() -> tuple[Any, ...]:
    """Return arguments of `mixture_loop` for one document of one word and one topic."""
    words, one = np.zeros(1, np.int64), np.ones(1, np.float32)
    return np.array([0, 1]), words, one, one[:, None], one[:, None], one.copy(), one.copy(), TINY


def mixture_gradient_loop(
    offsets: Array,
    words: Array,
    values: Array,
    probability: Array,
    grad: Array,
    theta: Array,
    beta_t: Array,
    theta_grad: Array,
    beta_grad: Array,
) -> None:
    """Add the gradients of the log likelihood to `theta_grad` (B, K) and `beta_grad` (V, K), given that of it (B,)."""
    for doc in range(len(theta)):
        shares, of_doc = theta[doc], theta_grad[doc]
        for i in range(offsets[doc], offsets[doc + 1]):
            ratio, beta, of_word = grad[doc] * values[i] / probability[i], beta_t[words[i]], beta_grad[words[i]]
            for k in range(len(shares)):
                of_doc[k] += ratio * beta[k]
                of_word[k] += ratio * shares[k]


def mixture_gradient_example() -> tuple[Any, ...]:
    """Return arguments of `mixture_gradient_loop` for one document of one word and one topic."""
    words, one, table = np.zeros(1, np.int64), np.ones(1, np.float32), np.ones((1, 1), np.float32)
    return np.array([0, 1]), words, one, one, one, table, table, table.copy(), table.copy()


def mixture_log_likelihood(theta: Tensor, beta_t: Tensor, counts: SparseCounts, floor: float = TINY) -> Tensor:
    """Return log p(x_d | theta_d) = sum_v x_dv log (theta_d beta)_v, up to the multinomial coefficient.

    Args:
        theta: (B, K), rows sum to 1.
        beta_t: (V, K), columns sum to 1: the transpose of beta, in which the numbers of a word are contiguous.
        counts: the counts x.
        floor: a number that is added to each probability, so that its logarithm is finite.

    Returns:
        (B,), which can be differentiated once with respect to theta and beta_t.
    """
    out: Tensor = _MixtureLogLikelihood.apply(theta, beta_t, counts, floor)  # type: ignore[no-untyped-call]
    return out


def expected_tokens(theta: Tensor, beta_t: Tensor, counts: SparseCounts) -> Tensor:
    """Return the expected tokens of each topic in documents, sum_v x_dv theta_dk beta_kv / (theta_d beta)_v: (B, K).

    A small number is added to the denominator, which may be 0.

    Args:
        theta: (B, K) the documents' shares of the topics.
        beta_t: (V, K) the topics, columns sum to 1.
        counts: the counts x.
    """
    work = theta.shape[1] * len(counts.values)
    loop = compiled_for(_tokens_loop, _tokens_example, work, theta, beta_t, counts.values)
    if loop is None:
        mass = counts.sampled_product(theta, beta_t) + TINY  # (N,)
        return theta * counts.times(counts.values / mass, beta_t)
    tokens = torch.zeros_like(theta, memory_format=torch.contiguous_format)  # (B, K)
    loop(*arrays_of(counts.offsets, counts.indices, counts.values, theta, beta_t, tokens), TINY)
    return tokens.mul_(theta)


def _tokens_loop(
    offsets: Array, words: Array, values: Array, theta: Array, beta_t: Array, tokens: Array, floor: float
) -> None:
    """Add the expected tokens of documents, divided by theta, to `tokens` (B, K)."""
    for doc in range(len(theta)):
        shares, of_doc = theta[doc], tokens[doc]
        for i in range(offsets[doc], offsets[doc + 1]):
            beta, mass = beta_t[words[i]], np.float32(floor)
            for k in range(len(shares)):
                mass += shares[k] * beta[k]
            ratio = values[i] / mass
            for k in range(len(shares)):
                of_doc[k] += ratio * beta[k]


def _tokens_example() -> tuple[Any, ...]:
    """Return arguments of `_tokens_loop` for one document of one word and one topic."""
    words, one, table = np.zeros(1, np.int64), np.ones(1, np.float32), np.ones((1, 1), np.float32)
    return np.array([0, 1]), words, one, table, table, table.copy(), TINY


class _BagProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, values: Tensor, counts: SparseCounts) -> Tensor:
        ctx.counts = counts
        ctx.save_for_backward(values)
        return counts.times(values, weight)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (values,), counts = ctx.saved_tensors, ctx.counts
        loop = compiled_for(_bag_gradient_loop, _bag_gradient_example, grad.shape[1] * len(values), grad, values)
        if loop is None:
            return counts.transposed_times(values, grad.contiguous()), None, None
        of_weight = grad.new_zeros(counts.n_words, grad.shape[1])
        loop(*arrays_of(counts.offsets, counts.indices, values, grad, of_weight))
        return of_weight, None, None


def _bag_gradient_loop(offsets: Array, words: Array, values: Array, grad: Array, of_weight: Array) -> None:
    """Add the gradient of the sums (B, H) to that of the weights, `of_weight` (V, H)."""
    for doc in range(len(offsets) - 1):
        of_doc = grad[doc]
        for i in range(offsets[doc], offsets[doc + 1]):
            value, of_word = values[i], of_weight[words[i]]
            for j in range(len(of_doc)):
                of_word[j] += value * of_doc[j]


def _bag_gradient_example() -> tuple[Any, ...]:
    """Return arguments of `_bag_gradient_loop` for one document of one word and one unit."""
    table = np.ones((1, 1), np.float32)
    return np.array([0, 1]), np.zeros(1, np.int64), table[0], table, table.copy()


def bag_product(weight: Tensor, values: Tensor, counts: SparseCounts) -> Tensor:
    """Return an embedding-bag: for each document, the sum of the rows of its words in `weight`, weighted by `values`.

    This equals embedding_bag(mode="sum", per_sample_weights=values). The backward pass is faster, because the batch
    already has the order of the non-zeros by word.

    Args:
        weight: (V, H).
        values: (N,), which are not differentiated.
        counts: the batch.

    Returns:
        (B, H).
    """
    out: Tensor = _BagProduct.apply(weight, values, counts)  # type: ignore[no-untyped-call]
    return out


# The likelihood of a product of experts, softmax(theta W + b)
#
# log p(x | theta) = sum_v x_v (theta W_v + b_v) - n logsumexp_v(theta W_v + b_v). The first sum is over the non-zero
# counts; only the second one is dense. Its exponentials are kept without normalisation, so that the backward pass
# consists of two products.


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

        step = max(1, _CACHED_NUMBERS // len(weight)) if theta.device.type == "cpu" else max(1, len(theta))
        blocks = [slice(start, start + step) for start in range(0, len(theta), step)]
        run_on_threads(
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

        run_on_threads(
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
