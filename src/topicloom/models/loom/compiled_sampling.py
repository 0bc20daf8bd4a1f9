"""`sampling.sample` as a loop over tokens that numba compiles for the CPU, if it is installed (the extra `fast`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from ...nn.sparse import SparseCounts
from ..compiling import compiled
from . import sampling
from .compiled import in_halves
from .cvb0 import CountedTopics

Array = np.ndarray[Any, Any]
_BLOCK = 32  # topics
# A batch is sampled in two halves unless the table of words and topics has more elements than this for each token: then
# a second table takes longer than a second thread saves.
_FEW_COUNTS = 8
_GROUPS, _GOLDEN, _MIX_1, _MIX_2 = sampling.GROUPS, sampling.GOLDEN, sampling.MIX_1, sampling.MIX_2


def sample(
    counts: SparseCounts,
    draws: sampling.Draws,
    assigned: Tensor,
    topics: CountedTopics,
    alpha: Tensor,
    word_topics: Tensor,
) -> Tensor:
    """`sampling.sample` with other random draws: compiled where possible, and otherwise that function itself.

    As in SparseLDA (Yao, Mimno & McCallum 2009, "Efficient Methods for Topic Model Inference on Streaming Document
    Collections"), the probabilities are those of the document's counts, of which few are not 0, and those of alpha,
    whose sum over the topics is the same for all tokens of a word in a pass.
    """
    loop = compiled(_sample, _one_token) if alpha.device.type == "cpu" else None
    if loop is None or not word_topics.is_contiguous():
        return sampling.sample(counts, draws, assigned, topics, alpha, word_topics)
    new = alpha.new_zeros(counts.n_docs, len(alpha))
    of_tokens = [each.numpy() for each in (counts.indices, draws.tokens, draws.weights)]
    of_topics = topics.beta_t, 1 / topics.sizes, topics.smallest, alpha, topics.beta_t @ alpha
    tables = [each.contiguous().numpy() for each in of_topics]

    def draw(first: int, last: int, of_words: Tensor) -> None:
        offsets, of_docs = counts.offsets[first : last + 1], (draws.seeds[first:last], draws.starts[first:last])
        changed = assigned, new[first:last], of_words
        loop(offsets.numpy(), *of_tokens, *(each.numpy() for each in of_docs), *tables, *(e.numpy() for e in changed))

    n_tokens = int(draws.tokens.sum())
    in_halves(draw, counts, word_topics, are_worth_it=word_topics.numel() <= _FEW_COUNTS * n_tokens)
    return new


def _sample(
    offsets: Array,
    words: Array,
    tokens: Array,
    weights: Array,
    seeds: Array,
    starts: Array,
    beta_t: Array,
    per_size: Array,
    smallest: Array,
    alpha: Array,
    of_alpha: Array,
    found: Array,
    of_docs: Array,
    of_words: Array,
) -> None:
    """Replace the topics of tokens in `found`, and add the new counts to of_docs (B, K) and of_words (V, K)."""
    n_topics, most, token = of_docs.shape[1], 0, 0
    for doc in range(len(offsets) - 1):
        before = token
        for i in range(offsets[doc], offsets[doc + 1]):
            token += tokens[i]
        most = max(most, token - before)
    word_of, weight_of, drawn = np.empty(most, np.int64), np.empty(most, of_docs.dtype), np.empty(most, np.int64)
    share, is_used = np.zeros(n_topics, of_docs.dtype), np.zeros(n_topics, np.bool_)  # counts of the document
    used, parts = np.empty(n_topics, np.int64), np.empty(n_topics, of_docs.dtype)
    for doc in range(len(offsets) - 1):
        of_doc, start = of_docs[doc], starts[doc]
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


def _one_token() -> tuple[Any, ...]:
    """Return arguments of `_sample` for one document of one token and one topic."""
    offsets, words, table = np.array([0, 1]), np.zeros(1, np.int64), np.ones((1, 1), np.float32)
    inputs = offsets, words, words + 1, table[0], words, words, table, table[0], table[0], table[0], table[0]
    return *inputs, np.zeros(1, np.uint8), table.copy(), table.copy()
