"""The sampling stage of Loom, in which the topic of each token is drawn.

A collapsed Gibbs sampler (Griffiths & Steyvers 2004) draws the topic of one token after the other, given the topics of
all others. Here, the counts of words are those of the last pass, as in distributed samplers (Newman, Asuncion, Smyth &
Welling 2009, "Distributed Algorithms for Topic Models"). The tokens of a document are drawn in four groups, all tokens
of a group at the same time. The draws do not depend on the order of the documents, the number of threads, or the
division of the documents among processes.

`sample` has two forms, which draw with the same probabilities, but not the same topics. The plain form consists of
PyTorch operations and runs on every device. The compiled form is a loop over tokens, which numba compiles for the CPU.
It draws as SparseLDA does (Yao, Mimno & McCallum 2009, "Efficient Methods for Topic Model Inference on Streaming
Document Collections"): the probability of a topic has a part from the counts of the document, of which few are not 0,
and a part from alpha, whose sum over the topics is the same for all tokens of a word in a pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from ...nn.execution import arrays_of, compiled
from ...nn.sparse import Batch, SparseCounts, document_pieces, members_of, rows_at_once
from ...text.strings import release
from ...training.batches import BatchReader
from .cvb0 import (
    INCREMENT,
    MULTIPLIER_1,
    MULTIPLIER_2,
    SMALLEST,
    Array,
    CountedTopics,
    Recounted,
    denominator_of,
    dirichlet_step,
    drawn_seeds,
    in_halves,
    rises_of,
)

N_GROUPS = 4  # groups of a document's tokens; with a single group, theta is less certain, and alpha higher
MAX_TOKENS = 64  # a word that occurs more often in a document is drawn this many times, with a higher weight
_NON_ZEROS_AT_ONCE = 1 << 20  # non-zeros in a block of `token_starts`
_TOPICS_AT_ONCE = 32  # topics in a block of the search for a topic that the document does not have
_MOST_SUMS = 1 << 20  # numbers in a table of sums over topics, which should fit into the cache
# The halves of a batch are sampled in parallel, each in a table (V, K) of its own. If the table has more elements than
# this for each token, the second table costs more time than the second thread saves.
_MOST_COUNTS = 8


@dataclass(frozen=True)
class SampledDocuments:
    """Documents whose tokens are drawn.

    Attributes:
        starts: (D + 1,) where the tokens of each document start, as `token_starts` returns it.
        n_docs: the number of documents whose tokens are drawn. Others are empty, or held out.
    """

    starts: Tensor
    n_docs: int

    @classmethod
    def of(cls, reader: BatchReader) -> SampledDocuments:
        """Return the documents of a reader."""
        return cls(token_starts(reader.counts).to(reader.device), reader.n_docs)


class SamplingStage:
    """The state of the sampling passes: the topics of all tokens, and the mean of the counts.

    Args:
        n_passes: the number of passes that are planned.
        documents: the documents. The counts of the later half of the passes over all of them are averaged.
        count_power: a word that occurs x times in a document counts x ** count_power times.
        subset: the documents that the first passes read, if these are not all documents.
        n_subset_passes: the number of the passes over the subset.
    """

    mean_counts: Tensor | None  # (V, K) the mean of N_vk over the passes that are averaged

    def __init__(
        self,
        n_passes: int,
        documents: SampledDocuments,
        *,
        count_power: float,
        subset: SampledDocuments | None = None,
        n_subset_passes: int = 0,
    ) -> None:
        self.n_passes, self.n_subset_passes, self.count_power = n_passes, n_subset_passes, count_power
        self._all, self._subset = documents, documents if subset is None else subset
        self.passes_done, self.mean_counts = 0, None
        self.assignments: Assignments | None = None
        self._last: tuple[SparseCounts, Tensor, Tensor, Tensor, Tensor] | None = None  # the last batch and its tokens

    @property
    def documents(self) -> SampledDocuments:
        """The documents of the current pass."""
        return self._subset if self.reads_subset else self._all

    @property
    def reads_subset(self) -> bool:
        """Whether the current pass reads a subset of the documents."""
        return self.passes_done < self.n_subset_passes

    @property
    def leaves_subset(self) -> bool:
        """Whether the current pass is the first one over all documents, after passes over a subset."""
        return 0 < self.passes_done == self.n_subset_passes

    def state(self) -> tuple[dict[str, Tensor], dict[str, float]]:
        """Return what changes in these passes: tensors and JSON values."""
        tensors = {} if self.assignments is None else {"assignments": self.assignments.topics}
        tensors |= {} if self.mean_counts is None else {"mean_counts": self.mean_counts}
        return tensors, {"passes_done": self.passes_done}

    def load_state(self, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
        """Restore the state that `state` returned."""
        self.passes_done = values["passes_done"]
        if "assignments" in tensors:
            self.assignments = Assignments(self.documents.starts, tensors["assignments"])
        self.mean_counts = tensors.get("mean_counts")

    def draw(
        self,
        batch: Batch,
        doc_topics: Tensor | None,
        topics: CountedTopics,
        alpha: Tensor,
        word_topics: Tensor,
        generator: torch.Generator,
        *,
        are_kept: bool = True,
    ) -> Recounted:
        """Draw the topics of the tokens of a batch.

        Args:
            batch: the documents.
            doc_topics: (B, K) N_dk in the first pass over these documents, and None in later ones.
            topics: the topics of the last pass.
            alpha: (K,) Dirichlet parameter of theta.
            word_topics: (V, K), to which the tokens of the batch are added in place.
            generator: draws the seed of each document.
            are_kept: whether to return the counts of the documents. They take more time than the draws of a title.
        """
        assert batch.rows is not None
        if self.assignments is None:
            self.assignments = Assignments.empty(self.documents.starts, len(alpha))
        tokens, weights, totals, starts = self._tokens(batch.counts, batch.rows)
        draws = Draws(tokens, weights, drawn_seeds(batch.n_docs, generator).to(batch.device), starts)
        given = batch.counts, draws, self.assignments.topics, topics, alpha, word_topics
        if doc_topics is not None:
            counts = sample_first(batch.counts, draws, doc_topics, *given[2:])
            return Recounted(counts, *dirichlet_step(counts, alpha))
        drawn, numerator = sample_with_numerator(*given, are_kept=are_kept)
        return Recounted(drawn, numerator, denominator_of(totals, alpha))

    def _tokens(self, counts: SparseCounts, rows: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the result of `tokens`, the weight of each document, and where its tokens start, (B,) each.

        They are kept from the last call if a small corpus has the same batch in every pass.
        """
        if self._last is None or self._last[0] is not counts:
            tokens, weights = self.tokens(counts)
            totals, starts = counts.sum_by_document(weights * tokens), self.documents.starts[rows]  # (B,) each
            self._last = counts, tokens, weights, totals, starts
        return self._last[1:]

    def tokens(self, counts: SparseCounts) -> tuple[Tensor, Tensor]:
        """Return the number of tokens of each non-zero and the weight of each of these tokens, (N,) each."""
        tokens = tokens_of(counts.values)
        return tokens, counts.values**self.count_power / tokens

    def end_pass(self, word_topics: Tensor) -> None:
        """Add a pass that has counted N_vk (V, K) to the mean, if it belongs to the later half."""
        self.passes_done += 1
        if self.leaves_subset:
            self.assignments = self._last = None
        n_averaged = self.passes_done - (self.n_passes + self.n_subset_passes) // 2
        if n_averaged > 0:
            if self.mean_counts is None:
                self.mean_counts = word_topics.clone()
            self.mean_counts.lerp_(word_topics, 1 / n_averaged)


class Assignments:
    """The topic of each token of the training documents.

    Args:
        starts: (D + 1,) int64, where the tokens of each document start.
        topics: (T,) the topic of each token, of an integer type.
    """

    def __init__(self, starts: Tensor, topics: Tensor) -> None:
        self.starts, self.topics = starts, topics

    @classmethod
    def empty(cls, starts: Tensor, n_topics: int) -> Assignments:
        """Return assignments of all tokens to the first of `n_topics` topics."""
        dtype = torch.uint8 if n_topics <= 1 << 8 else torch.int16 if n_topics <= 1 << 15 else torch.int32
        return cls(starts, torch.zeros(int(starts[-1]), dtype=dtype, device=starts.device))

    def places(self, rows: Tensor) -> Tensor:
        """Return the positions of the tokens of some documents (B,), one document after the other, (T,) int64."""
        return members_of(self.starts[rows], self.starts[rows + 1] - self.starts[rows])


def token_starts(counts: sparse.csr_array) -> Tensor:
    """Return where the tokens of each document start among those of all documents, (D + 1,) int64."""
    sums = np.zeros(counts.shape[0] + 1, np.int64)
    for first, last in document_pieces(counts.indptr, _NON_ZEROS_AT_ONCE):
        start, end = counts.indptr[first], counts.indptr[last]
        tokens = np.clip(np.ceil(counts.data[start:end]), 1, MAX_TOKENS).astype(np.int64)
        upto = np.concatenate([[0], tokens.cumsum()])[counts.indptr[first : last + 1] - start]
        sums[first + 1 : last + 1] = sums[first] + upto[1:]
        release(counts.data)
    return torch.from_numpy(sums)


def tokens_of(values: Tensor) -> Tensor:
    """Return the number of tokens of each non-zero, (N,) int64. A fraction of a token counts as one."""
    return values.ceil().clamp(1, MAX_TOKENS).long()


@dataclass(frozen=True)
class Draws:
    """The tokens of a batch of B documents, and the seeds with which their topics are drawn.

    Attributes:
        tokens: (N,) int64, the number of tokens of each non-zero.
        weights: (N,) the weight of each of these tokens.
        seeds: (B,) int64, the seed of each document.
        starts: (B,) int64, where the tokens of each document start among those of all documents.
    """

    tokens: Tensor
    weights: Tensor
    seeds: Tensor
    starts: Tensor


def sample_first(
    counts: SparseCounts,
    draws: Draws,
    doc_topics: Tensor,
    assigned: Tensor,
    topics: CountedTopics,
    alpha: Tensor,
    word_topics: Tensor,
) -> Tensor:
    """Draw the topic of each token in the first pass, given expected counts.

    Nothing is excluded from these counts, because no topics of tokens have been drawn yet.

    Args:
        counts: a batch of B documents.
        draws: the tokens of the batch.
        doc_topics: (B, K) N_dk.
        assigned: (T,) the topics of the tokens of all documents. Those of the batch are replaced in place.
        topics: the topics of the last pass.
        alpha: (K,) Dirichlet parameter of theta.
        word_topics: (V, K), to which the tokens of the batch are added in place.

    Returns:
        the new counts of the documents, (B, K).
    """
    tokens = _Tokens.of(counts, draws)
    found, new, shares = torch.empty_like(tokens.words), torch.zeros_like(doc_topics), doc_topics + alpha  # (B, K)
    for some in torch.arange(len(found), device=found.device).split(rows_at_once(len(alpha), alpha.device)):
        theta = shares.index_select(0, tokens.docs[some])  # (n, K)
        found[some] = _draw(theta.mul_(topics.beta_t.index_select(0, tokens.words[some])), tokens.random[some])
        tokens.add(some, found[some], new, word_topics)
    assigned[tokens.places] = found.to(assigned)
    return new


def sample(
    counts: SparseCounts,
    draws: Draws,
    assigned: Tensor,
    topics: CountedTopics,
    alpha: Tensor,
    word_topics: Tensor,
) -> Tensor:
    """Draw the topic of each token given the topics of the others.

    The probability of topic k is proportional to (N_dk + alpha_k) (N_vk + eta) / (N_k + V eta). N_dk and N_vk do not
    contain the token; N_k is large, and contains it. N_vk and N_k are the counts of the last pass.

    Args:
        counts: a batch of B documents.
        draws: the tokens of the batch.
        assigned: (T,) the topics of the tokens of all documents in the last pass, of any integer type. Those of the
            batch are replaced in place.
        topics: the topics of the last pass.
        alpha: (K,) Dirichlet parameter of theta.
        word_topics: (V, K), to which the tokens of the batch are added in place.

    Returns:
        the new counts of the documents, (B, K).
    """
    drawn, _ = sample_with_numerator(counts, draws, assigned, topics, alpha, word_topics)
    assert drawn is not None
    return drawn


def sample_with_numerator(
    counts: SparseCounts,
    draws: Draws,
    assigned: Tensor,
    topics: CountedTopics,
    alpha: Tensor,
    word_topics: Tensor,
    *,
    are_kept: bool = True,
) -> tuple[Tensor | None, Tensor]:
    """Draw topics as `sample` does.

    Returns:
        the new counts of the documents (B, K), or None if `are_kept` is False; and the numerator of the step of alpha
        (K,), as `dirichlet_step` returns it.
    """
    loop = compiled(_sample_loop, _sample_example) if alpha.device.type == "cpu" else None
    if loop is None or not word_topics.is_contiguous():
        new = sample_plain(counts, draws, assigned, topics, alpha, word_topics)
        return new, dirichlet_step(new, alpha)[0]
    new = alpha.new_zeros(counts.n_docs if are_kept else 0, len(alpha))  # (B, K), or (0, K)
    numerators = alpha.new_zeros(2, len(alpha), dtype=torch.float64)  # (2, K)
    upto = _upto(topics.beta_t, alpha)
    of_alpha = upto[:, -1] if upto.numel() else topics.beta_t @ alpha
    of_topics = topics.beta_t, 1 / topics.sizes, topics.smallest, alpha, of_alpha, upto
    tables = _SamplerTopicArrays(*arrays_of(*of_topics, rises_of(alpha), torch.digamma(alpha)))

    def draw(number: int, first: int, last: int, of_words: Tensor) -> None:
        of_tokens = counts.indices, draws.tokens, draws.weights
        parts = counts.offsets[first : last + 1], *of_tokens, draws.seeds[first:last], draws.starts[first:last]
        out = assigned, new[first:last], of_words, numerators[number]
        loop(_TokenArrays(*arrays_of(*parts)), tables, _SampleArrays(*(each.numpy() for each in out)))

    n_tokens = int(draws.tokens.sum())
    in_halves(draw, counts, word_topics, are_worth_it=word_topics.numel() <= _MOST_COUNTS * n_tokens)
    return new if are_kept else None, numerators.sum(0).to(alpha.dtype)


def sample_plain(
    counts: SparseCounts,
    draws: Draws,
    assigned: Tensor,
    topics: CountedTopics,
    alpha: Tensor,
    word_topics: Tensor,
) -> Tensor:
    """Do the same as `sample`, by PyTorch operations."""
    tokens, sizes = _Tokens.of(counts, draws), 1 / topics.sizes
    previous = assigned[tokens.places].long()  # (T,)
    found, new = torch.empty_like(previous), alpha.new_zeros(counts.n_docs, len(alpha))
    shares = alpha.repeat(counts.n_docs, 1)  # (B, K) N_dk + alpha_k
    shares.index_put_((tokens.docs, previous), tokens.weights, accumulate=True)
    for number in range(N_GROUPS):
        group = (tokens.positions % N_GROUPS == number).nonzero()[:, 0]
        for some in group.split(rows_at_once(len(alpha), alpha.device)):
            word, old, weight = tokens.words[some], previous[some, None], tokens.weights[some, None]  # (n,), (n, 1)
            theta, beta = shares.index_select(0, tokens.docs[some]), topics.beta_t.index_select(0, word)  # (n, K)
            theta.scatter_add_(1, old, -weight).clamp_min_(SMALLEST)
            own = beta.gather(1, old) - weight * sizes[old]
            beta.scatter_(1, old, torch.maximum(own, topics.smallest[old]))
            found[some] = _draw(theta.mul_(beta), tokens.random[some])
            tokens.add(some, found[some], new, word_topics)
        docs, weights = tokens.docs[group], tokens.weights[group]
        shares.index_put_((docs, previous[group]), -weights, accumulate=True)
        shares.index_put_((docs, found[group]), weights, accumulate=True)
    assigned[tokens.places] = found.to(assigned)
    return new


def _draw(weights: Tensor, random: Tensor) -> Tensor:
    """Return a topic for each row of `weights` (n, K), in proportion to them, by random numbers (n,)."""
    upto = weights.cumsum(1)
    return torch.searchsorted(upto, (random * upto[:, -1])[:, None], right=True)[:, 0].clamp_max_(weights.shape[1] - 1)


@dataclass(frozen=True)
class _Tokens:
    """The T tokens of a batch of documents, one document after the other."""

    words: Tensor  # (T,)
    docs: Tensor  # (T,) the row of the batch
    weights: Tensor  # (T,)
    positions: Tensor  # (T,) in the document
    places: Tensor  # (T,) among the tokens of all documents
    random: Tensor  # (T,) random numbers from 0 to 1

    @classmethod
    def of(cls, counts: SparseCounts, draws: Draws) -> _Tokens:
        total = int(draws.tokens.sum())
        words = counts.indices.repeat_interleave(draws.tokens, output_size=total)
        docs = counts.documents.repeat_interleave(draws.tokens, output_size=total)
        weights = draws.weights.repeat_interleave(draws.tokens, output_size=total)
        lengths = counts.sum_by_document(draws.tokens.float()).long()  # (B,)
        positions = members_of(torch.zeros_like(lengths), lengths)  # (T,)
        places = draws.starts[docs] + positions  # (T,)
        return cls(words, docs, weights, positions, places, uniform(draws.seeds[docs], positions))

    def add(self, which: Tensor, found: Tensor, doc_topics: Tensor, word_topics: Tensor) -> None:
        """Add tokens (n,) with the topics `found` (n,) to N_dk (B, K) and N_vk (V, K)."""
        weights = self.weights[which]
        doc_topics.index_put_((self.docs[which], found), weights, accumulate=True)
        word_topics.index_put_((self.words[which], found), weights, accumulate=True)


def uniform(seeds: Tensor, positions: Tensor) -> Tensor:
    """Return a random number from 0 to 1 for each token, (T,) float32.

    The numbers are those of SplitMix64 (Steele, Lea & Flood 2014, "Fast Splittable Pseudorandom Number Generators").

    Args:
        seeds: (T,) the seed of the token's document.
        positions: (T,) the position of the token in its document.
    """
    x = seeds + (positions + 1) * _signed(INCREMENT)
    x = (x ^ _shifted(x, 30)) * _signed(MULTIPLIER_1)
    x = (x ^ _shifted(x, 27)) * _signed(MULTIPLIER_2)
    x = x ^ _shifted(x, 31)
    return _shifted(x, 40).float() * 2.0**-24


def _signed(number: int) -> int:
    """Return the signed 64-bit number that has the bits of an unsigned one."""
    return number - (1 << 64) if number >> 63 else number


def _shifted(x: Tensor, bits: int) -> Tensor:
    """Return x >> bits, where the bits of x are read as unsigned numbers."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


class _TokenArrays(NamedTuple):
    """A batch of B documents whose tokens are drawn."""

    offsets: Array  # (B + 1,) where the non-zeros of each document start
    words: Array  # (N,)
    tokens: Array  # (N,) the number of tokens of each non-zero
    weights: Array  # (N,) the weight of each of these tokens
    seeds: Array  # (B,)
    starts: Array  # (B,) where the tokens of each document start among those of all documents


class _SamplerTopicArrays(NamedTuple):
    """The topics from which tokens are drawn."""

    beta_t: Array  # (V, K)
    per_size: Array  # (K,) 1 / (N_k + V eta)
    smallest: Array  # (K,) eta / (N_k + V eta)
    alpha: Array  # (K,)
    of_alpha: Array  # (V,) sum_k alpha_k beta_kv
    upto: Array  # (V, K) the sum of alpha_l beta_lv over the topics l up to k; (V, 0) if it would be too large
    rises: Array  # (K, n) float64, as `rises_of` returns them
    psi: Array  # (K,) psi(alpha_k)


class _SampleArrays(NamedTuple):
    """The topics of tokens, which are replaced, and the counts to which tokens are added."""

    found: Array  # (T,)
    of_docs: Array  # (B, K), or (0, K) if they are not needed
    of_words: Array  # (V, K)
    numerator: Array  # (K,) float64, of the step of alpha


def _upto(beta_t: Tensor, alpha: Tensor) -> Tensor:
    """Return the sums of alpha_l beta_lv over the topics l up to k, (V, K), or (V, 0) if they would be too large."""
    if beta_t.numel() > _MOST_SUMS:
        return beta_t.new_empty(len(beta_t), 0)
    loop, sums = compiled(_upto_loop, _upto_example), torch.empty_like(beta_t)
    assert loop is not None  # because the loop that draws is compiled
    loop(*arrays_of(beta_t, alpha, sums))
    return sums


def _upto_loop(beta_t: Array, alpha: Array, sums: Array) -> None:
    for word in range(len(beta_t)):
        total = np.float32(0)
        for k in range(len(alpha)):
            total += alpha[k] * beta_t[word, k]
            sums[word, k] = total


def _upto_example() -> tuple[Any, ...]:
    """Return arguments of `_upto_loop` for one word and one topic."""
    table = np.ones((1, 1), np.float32)
    return table, table[0], table.copy()


def _sample_loop(documents: _TokenArrays, topics: _SamplerTopicArrays, out: _SampleArrays) -> None:
    offsets, words, tokens, weights, seeds, starts = documents
    beta_t, per_size, smallest, alpha, of_alpha, upto, rises, psi = topics
    found, of_docs, of_words, numerator = out
    n_topics, most, token, numbers = len(alpha), 0, 0, np.arange(len(alpha)).astype(np.int32)
    for doc in range(len(offsets) - 1):
        before = token
        for i in range(offsets[doc], offsets[doc + 1]):
            token += tokens[i]
        most = max(most, token - before)
    word_of, weight_of, drawn = np.empty(most, np.int64), np.empty(most, of_docs.dtype), np.empty(most, np.int64)
    share, is_used = np.zeros(n_topics, of_docs.dtype), np.zeros(n_topics, np.bool_)  # counts of the document
    used, parts = np.empty(n_topics, np.int64), np.empty(n_topics, of_docs.dtype)
    for doc in range(len(offsets) - 1):
        start = starts[doc]
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
        for group in range(N_GROUPS):
            for n in range(group, n_tokens, N_GROUPS):
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
                x = np.uint64(seeds[doc]) + np.uint64(n + 1) * np.uint64(INCREMENT)
                x = (x ^ (x >> np.uint64(30))) * np.uint64(MULTIPLIER_1)
                x = (x ^ (x >> np.uint64(27))) * np.uint64(MULTIPLIER_2)
                x = x ^ (x >> np.uint64(31))
                rest = np.float32(x >> np.uint64(40)) * np.float32(2.0**-24) * (of_used + of_others)
                if rest < of_used:
                    j = 0
                    while parts[j] <= rest:
                        j += 1
                    topic = used[j]
                elif upto.shape[1]:
                    # Comparing with the sums of all topics is faster than a search, whose branches are unpredictable.
                    rest, own_part, n_below, sums = rest - of_used, alpha[old] * (own - less), 0, upto[word]
                    for k in range(n_topics):
                        n_below += sums[k] - (own_part if numbers[k] >= old else np.float32(0)) <= rest
                    topic = min(n_below, n_topics - 1)
                else:
                    rest -= of_used
                    topic = first = 0
                    while True:  # one block of topics after the other
                        last = min(first + _TOPICS_AT_ONCE, n_topics)
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
                of_words[word, topic] += weight
            for n in range(group, n_tokens, N_GROUPS):  # the tokens that were drawn at the same time
                old, topic = found[start + n], drawn[n]
                found[start + n] = topic
                share[old] -= weight_of[n]
                share[topic] += weight_of[n]
                if not is_used[topic]:
                    is_used[topic], used[n_used] = True, topic
                    n_used += 1
        if len(of_docs):
            for n in range(n_tokens):
                of_docs[doc, found[start + n]] += weight_of[n]
        for n in range(n_tokens):  # counted again, because subtractions leave rounding errors
            share[found[start + n]] = 0
        for n in range(n_tokens):
            share[found[start + n]] += weight_of[n]
        for n in range(n_tokens):
            topic = found[start + n]
            value, share[topic] = share[topic], 0
            whole = int(value)
            if 0 < whole < rises.shape[1]:
                numerator[topic] += rises[topic, whole]
            elif whole:
                end = float(alpha[topic]) + whole
                numerator[topic] += np.log(end) - 0.5 / end - 1 / (12 * end * end) - psi[topic]
            if value > whole:
                numerator[topic] += (value - whole) / (alpha[topic] + whole)
        for j in range(n_used):
            share[used[j]], is_used[used[j]] = 0, False


def _sample_example() -> tuple[Any, ...]:
    """Return arguments of `_sample_loop` for one document of one token and one topic."""
    offsets, words, table = np.array([0, 1]), np.zeros(1, np.int64), np.ones((1, 1), np.float32)
    documents = _TokenArrays(offsets, words, words + 1, table[0], words, words)
    topics = _SamplerTopicArrays(table, table[0], table[0], table[0], table[0], table, np.ones((1, 2)), table[0])
    return documents, topics, _SampleArrays(np.zeros(1, np.uint8), table.copy(), table.copy(), np.zeros(1))
