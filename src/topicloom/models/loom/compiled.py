"""Functions of `cvb0` and `sampling` as loops over tokens that numba compiles for the CPU, if it is installed.

numba is the extra `fast`. The functions in those files run on every device, but each of their operations reads and
writes memory once. In a compiled loop the intermediate values of a token stay in the core's nearest cache.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...nn.helpers import together
from ...nn.sparse import SparseCounts
from ..compiling import DISTANCE, FEWEST_DOCUMENTS, compiled
from . import cvb0, sampling
from .cvb0 import CountedTopics

Array = np.ndarray[Any, Any]
_SMALLEST = np.float32(cvb0.SMALLEST)
_BLOCK = 32  # topics
_TERMS = 16  # of the sum by which digamma rises
_FEW_COUNTS = 8  # counts of words in topics for each token of a batch
_GROUPS, _GOLDEN, _MIX_1, _MIX_2 = sampling.GROUPS, sampling.GOLDEN, sampling.MIX_1, sampling.MIX_2


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
    new = doc_topics.new_zeros(doc_topics.shape)
    inputs = (
        counts.offsets, counts.indices, values, doc_topics + alpha, topics.beta_t, -float(excluded) / topics.sizes,
        topics.smallest, alpha,
    )  # fmt: skip
    loop(*(each.contiguous().numpy() for each in inputs), new.numpy(), word_topics.numpy(), _SMALLEST)
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
    gamma = np.empty(n_topics + 2 * DISTANCE, alpha.dtype)[DISTANCE : DISTANCE + n_topics]
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
    is_worth_it = steps > 0 and documents.n_docs >= FEWEST_DOCUMENTS and start.device.type == "cpu"
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
    together([partial(count, 0, middle), partial(count, middle, documents.n_docs)])
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
    share = np.empty(n_topics + 2 * DISTANCE, counts.dtype)[DISTANCE : DISTANCE + n_topics]
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


def sample(
    counts: SparseCounts,
    draws: sampling.Draws,
    previous: Tensor,
    topics: CountedTopics,
    alpha: Tensor,
    word_topics: Tensor,
) -> tuple[Tensor, Tensor]:
    """`sampling.sample` with other random draws: compiled where possible, and otherwise that function itself.

    As in SparseLDA (Yao, Mimno & McCallum 2009, "Efficient Methods for Topic Model Inference on Streaming Document
    Collections"), the probabilities are those of the document's counts, of which few are not 0, and those of alpha,
    whose sum over the topics is the same for all tokens of a word in a pass.
    """
    loop = compiled(_sample, _one_token) if alpha.device.type == "cpu" else None
    if loop is None or not word_topics.is_contiguous():
        return sampling.sample(counts, draws, previous, topics, alpha, word_topics)
    found, new = previous.clone(), alpha.new_zeros(counts.n_docs, len(alpha))
    of_tokens = [each.numpy() for each in (counts.indices, draws.tokens, draws.weights)]
    of_topics = topics.beta_t, 1 / topics.sizes, topics.smallest, alpha, topics.beta_t @ alpha
    tables = [each.contiguous().numpy() for each in of_topics]

    def draw(first: int, last: int, places: slice, of_words: Tensor) -> None:
        offsets, seeds = counts.offsets[first : last + 1], draws.seeds[first:last]
        changed = found[places], new[first:last], of_words
        loop(offsets.numpy(), *of_tokens, seeds.numpy(), *tables, *(each.numpy() for each in changed))

    if word_topics.numel() > _FEW_COUNTS * len(found):  # a second table would take longer than a second thread saves
        draw(0, counts.n_docs, slice(None), word_topics)
        return found, new
    # In halves whatever the number of threads is, so that sums are the same.
    middle, others = _middle(counts), torch.zeros_like(word_topics)  # (V, K)
    place = int(draws.tokens[: counts.offsets[middle]].sum())
    first_half = partial(draw, 0, middle, slice(place), word_topics)
    together([first_half, partial(draw, middle, counts.n_docs, slice(place, None), others)])
    word_topics += others
    return found, new


def _sample(
    offsets: Array,
    words: Array,
    tokens: Array,
    weights: Array,
    seeds: Array,
    beta_t: Array,
    per_size: Array,
    smallest: Array,
    alpha: Array,
    of_alpha: Array,
    found: Array,
    of_docs: Array,
    of_words: Array,
) -> None:
    """Replace the topics of tokens in `found` (T,), and add the new counts to of_docs (B, K) and of_words (V, K)."""
    n_topics, most, token = of_docs.shape[1], 0, 0
    for doc in range(len(offsets) - 1):
        before = token
        for i in range(offsets[doc], offsets[doc + 1]):
            token += tokens[i]
        most = max(most, token - before)
    word_of, weight_of, drawn = np.empty(most, np.int64), np.empty(most, of_docs.dtype), np.empty(most, np.int64)
    share, is_used = np.zeros(n_topics, of_docs.dtype), np.zeros(n_topics, np.bool_)  # counts of the document
    used, parts = np.empty(n_topics, np.int64), np.empty(n_topics, of_docs.dtype)
    start = 0
    for doc in range(len(offsets) - 1):
        of_doc = of_docs[doc]
        n_used = n_tokens = 0
        for i in range(offsets[doc], offsets[doc + 1]):
            for _ in range(tokens[i]):
                word_of[n_tokens], weight_of[n_tokens] = words[i], weights[i]
                topic = found[start + n_tokens]
                n_tokens += 1
                share[topic] += weights[i]
                if not is_used[topic]:
                    is_used[topic], used[n_used] = True, topic
                    n_used += 1
        for group in range(_GROUPS):
            for n in range(group, n_tokens, _GROUPS):
                word, weight, old = word_of[n], weight_of[n], found[start + n]
                beta, own = beta_t[word], beta_t[word, old]
                less = max(own - weight * per_size[old], smallest[old])  # without the token itself
                of_others = max(of_alpha[word] - alpha[old] * (own - less), np.float32(0))
                own_share, share[old] = share[old], max(share[old] - weight, np.float32(0)) * (less / own)
                of_used = np.float32(0)
                for j in range(n_used):
                    of_used += share[used[j]] * beta[used[j]]
                    parts[j] = of_used
                share[old] = own_share
                x = np.uint64(seeds[doc]) + np.uint64(n + 1) * np.uint64(_GOLDEN)
                x = (x ^ (x >> np.uint64(30))) * np.uint64(_MIX_1)
                x = (x ^ (x >> np.uint64(27))) * np.uint64(_MIX_2)
                x = x ^ (x >> np.uint64(31))
                rest = np.float32(x >> np.uint64(40)) * np.float32(2.0**-24) * (of_used + of_others)
                if rest < of_used:
                    j = 0
                    while parts[j] <= rest:
                        j += 1
                    topic = used[j]
                else:
                    rest -= of_used
                    topic = first = 0
                    while True:  # a block of topics after the other
                        last = min(first + _BLOCK, n_topics)
                        part = np.float32(0)
                        for k in range(first, last):
                            part += alpha[k] * beta[k]
                        if first <= old < last:
                            part -= alpha[old] * (own - less)
                        if rest < part or last == n_topics:
                            break
                        rest -= part
                        first = last
                    for topic in range(first, last):
                        rest -= alpha[topic] * (less if topic == old else beta[topic])
                        if rest < 0:
                            break
                drawn[n] = topic
                of_doc[topic] += weight
                of_words[word, topic] += weight
            for n in range(group, n_tokens, _GROUPS):  # which have been drawn at the same time
                old, topic = found[start + n], drawn[n]
                found[start + n] = topic
                share[old] -= weight_of[n]
                share[topic] += weight_of[n]
                if not is_used[topic]:
                    is_used[topic], used[n_used] = True, topic
                    n_used += 1
        for j in range(n_used):
            share[used[j]], is_used[used[j]] = 0, False
        start += n_tokens


def _one_word() -> tuple[Any, ...]:
    """Return arguments of `_reassign` for one document of one word and one topic."""
    of_topics, table = np.ones(1, np.float32), np.ones((1, 1), np.float32)
    offsets, words = np.array([0, 1]), np.zeros(1, np.int64)
    copies = table.copy(), table.copy()
    return offsets, words, of_topics, table, table, of_topics, of_topics, of_topics, *copies, _SMALLEST


def _one_token() -> tuple[Any, ...]:
    """Return arguments of `_sample` for one document of one token and one topic."""
    offsets, words, table = np.array([0, 1]), np.zeros(1, np.int64), np.ones((1, 1), np.float32)
    inputs = offsets, words, words + 1, table[0], words, table, table[0], table[0], table[0], table[0]
    return *inputs, words.copy(), table.copy(), table.copy()


def _one_table() -> tuple[Any, ...]:
    """Return arguments of `_rises` for one document and one topic."""
    return np.ones((1, 1), np.float32), np.ones(1, np.float32), np.zeros(1)


def _one_document() -> tuple[Any, ...]:
    """Return arguments of `_expected` for one document of one token and one topic."""
    offsets, words, table = np.array([0, 1]), np.zeros(1, np.int64), np.ones((1, 1), np.float32)
    return offsets, words, table[0], table, table, table, 2, table.copy(), _SMALLEST
