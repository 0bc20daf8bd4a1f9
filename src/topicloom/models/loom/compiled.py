"""Functions of `cvb0` as loops over tokens that numba compiles for the CPU, if it is installed.

numba is the extra `fast`. The functions in that file run on every device, but each of their operations reads and
writes memory once. In a compiled loop the intermediate values of a token stay in the core's nearest cache.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...nn.execution import FEWEST_DOCUMENTS_TO_COMPILE, NUMBERS_BETWEEN_ARRAYS, compiled, run_jobs
from ...nn.sparse import SparseCounts
from . import cvb0
from .cvb0 import CountedTopics

Array = np.ndarray[Any, Any]
_SMALLEST = np.float32(cvb0.SMALLEST)
_TERMS = 16  # of the sum by which digamma rises
# A batch is counted in two halves, each with a table of words and topics, unless there are more words than this share
# of its non-zeros: then a second table takes longer than a second thread saves.
_FEW_WORDS = 0.5


def reassign(
    counts: SparseCounts,
    values: Tensor,
    doc_topics: Tensor,
    topics: CountedTopics,
    alpha: Tensor,
    word_topics: Tensor,
    *,
    excluded: bool = True,
) -> Tensor:
    """`cvb0.reassign` up to rounding: compiled where possible, and otherwise that function itself."""
    loop = compiled(_reassign, _one_word) if values.device.type == "cpu" else None
    if loop is None or not word_topics.is_contiguous():
        return cvb0.reassign(counts, values, doc_topics, topics, alpha, word_topics, excluded=excluded)
    new, shares = doc_topics.new_zeros(doc_topics.shape), (doc_topics + alpha).contiguous()  # (B, K) both
    of_words = [each.contiguous().numpy() for each in (counts.indices, values)]
    of_topics = topics.beta_t, -float(excluded) / topics.sizes, topics.smallest, alpha
    tables = [each.contiguous().numpy() for each in of_topics]

    def count(first: int, last: int, changed: Tensor) -> None:
        offsets, of_docs = counts.offsets[first : last + 1].numpy(), shares[first:last].numpy()
        loop(offsets, *of_words, of_docs, *tables, new[first:last].numpy(), changed.numpy(), _SMALLEST)

    in_halves(count, counts, word_topics, are_worth_it=len(word_topics) <= _FEW_WORDS * len(values))
    return new


def _reassign(
    offsets: Array,
    words: Array,
    values: Array,
    shares: Array,
    beta_t: Array,
    per_size: Array,
    smallest: Array,
    alpha: Array,
    of_docs: Array,
    of_words: Array,
    tiny: np.float32,
) -> None:
    """Add the new counts to of_docs (B, K) and of_words (V, K); `cvb0.reassign` has the formula."""
    n_topics = len(alpha)
    gamma = np.empty(n_topics + 2 * NUMBERS_BETWEEN_ARRAYS, alpha.dtype)[
        NUMBERS_BETWEEN_ARRAYS : NUMBERS_BETWEEN_ARRAYS + n_topics
    ]
    for doc in range(len(offsets) - 1):
        theta, of_doc = shares[doc], of_docs[doc]
        for i in range(offsets[doc], offsets[doc + 1]):
            x, beta, of_word = values[i], beta_t[words[i]], of_words[words[i]]
            total = tiny
            for k in range(n_topics):
                gamma[k] = theta[k] * beta[k]
                total += gamma[k]
            scale, rest = np.float32(1) / total, tiny
            for k in range(n_topics):
                own = gamma[k] * scale
                gamma[k] = max(theta[k] - own, alpha[k]) * max(beta[k] + own * x * per_size[k], smallest[k])
                rest += gamma[k]
            part = x / rest
            for k in range(n_topics):
                of_doc[k] += gamma[k] * part
                of_word[k] += gamma[k] * part


def dirichlet_step(doc_topics: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
    """`cvb0.dirichlet_step` up to rounding: compiled where possible, and otherwise that function itself."""
    loop = compiled(_rises, _one_table) if alpha.device.type == "cpu" else None
    if loop is None:
        return cvb0.dirichlet_step(doc_topics, alpha)
    numerator, total = torch.zeros_like(alpha, dtype=torch.float64), alpha.sum()  # (K,), ()
    loop(doc_topics.contiguous().numpy(), alpha.numpy(), numerator.numpy())
    denominator = (torch.digamma(doc_topics.sum(1) + total) - torch.digamma(total)).sum()
    return numerator.to(alpha.dtype), denominator


def _rises(doc_topics: Array, alpha: Array, numerator: Array) -> None:
    """Add the numerator of `cvb0.dirichlet_step` to `numerator` (K,).

    psi(alpha + n) - psi(alpha) is the sum of 1 / (alpha + j) over the whole numbers j below n. Beyond the first terms,
    it follows from the asymptotic series of psi.
    """
    for doc in range(len(doc_topics)):
        for k in range(len(alpha)):
            value = doc_topics[doc, k]
            if value > 0:
                whole, rise = int(value), 0.0
                start, end = alpha[k] + min(whole, _TERMS), alpha[k] + whole
                for j in range(min(whole, _TERMS)):
                    rise += 1 / (alpha[k] + j)
                if end > start:
                    for x, sign in ((end, 1.0), (start, -1.0)):
                        rise += sign * (np.log(x) - 1 / (2 * x) - 1 / (12 * x * x))
                numerator[k] += rise + (value - whole) / end
            elif value != 0:  # NaN
                numerator[k] += value


def expected_counts(documents: SparseCounts, beta_t: Tensor, alpha: Tensor, start: Tensor, steps: int) -> Tensor:
    """`cvb0.expected_counts` up to rounding: compiled where possible, and otherwise that function itself."""
    is_worth_it = steps > 0 and documents.n_docs >= FEWEST_DOCUMENTS_TO_COMPILE and start.device.type == "cpu"
    loop = compiled(_expected, _one_document) if is_worth_it else None
    if loop is None:
        return cvb0.expected_counts(documents, beta_t, alpha, start, steps)
    counts = torch.empty_like(start)
    shared = [each.contiguous().numpy() for each in (documents.indices, documents.values, beta_t)]
    of_documents = alpha.expand_as(start).contiguous(), start.contiguous(), counts

    def count(first: int, last: int) -> None:
        prior, shares, found = (each[first:last].numpy() for each in of_documents)
        loop(documents.offsets[first : last + 1].numpy(), *shared, prior, shares, steps, found, _SMALLEST)

    middle = _middle(documents)
    run_jobs([partial(count, 0, middle), partial(count, middle, documents.n_docs)])
    return counts


def _middle(counts: SparseCounts) -> int:
    """Return the document before which half of the non-zeros are."""
    return int(torch.searchsorted(counts.offsets, counts.offsets[-1] // 2))


def _expected(
    offsets: Array,
    words: Array,
    values: Array,
    beta_t: Array,
    alpha: Array,
    start: Array,
    steps: int,
    counts: Array,
    tiny: np.float32,
) -> None:
    """Write the expected counts of documents to `counts` (B, K)."""
    n_topics = counts.shape[1]
    longest = 0
    for doc in range(len(offsets) - 1):
        longest = max(longest, offsets[doc + 1] - offsets[doc])
    gamma = np.empty((longest, n_topics), counts.dtype)
    share = np.empty(n_topics + 2 * NUMBERS_BETWEEN_ARRAYS, counts.dtype)[
        NUMBERS_BETWEEN_ARRAYS : NUMBERS_BETWEEN_ARRAYS + n_topics
    ]
    for doc in range(len(offsets) - 1):
        count, prior, first = counts[doc], alpha[doc], offsets[doc]
        for step in range(steps):
            for k in range(n_topics):
                share[k] = count[k] + prior[k] if step else start[doc, k]
                count[k] = 0
            for i in range(first, offsets[doc + 1]):
                of_word, own, total = beta_t[words[i]], gamma[i - first], np.float32(0)
                if step:
                    for k in range(n_topics):
                        own[k] = max(share[k] - own[k], prior[k]) * of_word[k]
                        total += own[k]
                else:
                    for k in range(n_topics):
                        own[k] = share[k] * of_word[k]
                        total += own[k]
                part = np.float32(1) / (total + tiny)
                for k in range(n_topics):
                    own[k] *= part
                    count[k] += values[i] * own[k]


def in_halves(
    count: Callable[[int, int, Tensor], None], documents: SparseCounts, word_topics: Tensor, *, are_worth_it: bool
) -> None:
    """Count two halves of the documents at the same time, whatever the number of threads, so that sums are the same.

    Args:
        count: a function that adds what is counted from one document until before another to a table (V, K).
        documents: a batch.
        word_topics: (V, K), to which both halves are added in place.
        are_worth_it: whether there are two halves; otherwise all documents are counted together.
    """
    if not are_worth_it:
        count(0, documents.n_docs, word_topics)
        return
    middle, others = _middle(documents), torch.zeros_like(word_topics)  # (V, K)
    run_jobs([partial(count, 0, middle, word_topics), partial(count, middle, documents.n_docs, others)])
    word_topics += others


def _one_word() -> tuple[Any, ...]:
    """Return arguments of `_reassign` for one document of one word and one topic."""
    of_topics, table = np.ones(1, np.float32), np.ones((1, 1), np.float32)
    offsets, words = np.array([0, 1]), np.zeros(1, np.int64)
    copies = table.copy(), table.copy()
    return offsets, words, of_topics, table, table, of_topics, of_topics, of_topics, *copies, _SMALLEST


def _one_table() -> tuple[Any, ...]:
    """Return arguments of `_rises` for one document and one topic."""
    return np.ones((1, 1), np.float32), np.ones(1, np.float32), np.zeros(1)


def _one_document() -> tuple[Any, ...]:
    """Return arguments of `_expected` for one document of one token and one topic."""
    offsets, words, table = np.array([0, 1]), np.zeros(1, np.int64), np.ones((1, 1), np.float32)
    return offsets, words, table[0], table, table, table, 2, table.copy(), _SMALLEST
