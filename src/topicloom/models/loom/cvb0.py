"""CVB0 for latent Dirichlet allocation. Theta and the topics are integrated out; only counts of topics remain.

CVB0 is the zero-order collapsed variational Bayes of Asuncion, Welling, Smyth & Teh 2009, "On Smoothing and Inference
for Topic Models". Dirichlet parameters follow from the fixed point of Minka 2000, "Estimating a Dirichlet
distribution".

`reassign`, `dirichlet_step` and `expected_counts` have two forms, which give the same results up to rounding. The plain
form consists of PyTorch operations and runs on every device. The compiled form is a loop over tokens, which numba
compiles for the CPU. Each PyTorch operation reads and writes memory; in the loop, the intermediate values of a token
stay in the core's nearest cache. `recount` also draws, so that its two forms give the same distribution of counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from ...distributed import step
from ...nn.execution import (
    FEWEST_DOCUMENTS_TO_COMPILE,
    NUMBERS_BETWEEN_ARRAYS,
    arrays_of,
    compiled,
    logarithm,
    run_on_threads,
)
from ...nn.sparse import SparseCounts, document_pieces, rows_at_once

Array = np.ndarray[Any, Any]

MIN_ALPHA, MAX_ALPHA = 1e-3, 5.0  # bounds of the Dirichlet parameter of a topic
SMALLEST = 1e-30  # below any product of a count and a probability
_SMALLEST = np.float32(SMALLEST)
_N_TOP_WORDS = 30  # top words of a topic, a few more than are usually read
_WHOLE_PARTS = 64  # whole parts of counts for which terms of alpha's step are computed once
_LEAST_DRAW, _N_QUANTILES = 1e-4, 1 << 12  # see `recount`
# The state of SplitMix64 grows by the first number from one draw to the next; the others mix its bits.
INCREMENT, MULTIPLIER_1, MULTIPLIER_2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_WHOLE_COUNTS = 256  # whole counts for which differences of digammas are computed once
_DIGAMMA_TERMS = 16  # terms of a difference of digammas that are summed exactly
# The halves of a batch are counted in parallel, each in a table (V, K) of its own. If the number of words exceeds this
# share of the number of non-zeros, the second table costs more time than the second thread saves.
_MOST_WORDS = 0.5


@dataclass(frozen=True)
class CountedTopics:
    """The topics that one pass over the documents uses, computed from counts."""

    beta_t: Tensor  # (V, K) (N_vk + eta) / (N_k + V eta)
    sizes: Tensor  # (K,) N_k + V eta
    smallest: Tensor  # (K,) eta / (N_k + V eta)

    @classmethod
    def from_counts(cls, word_topics: Tensor, eta: Tensor | float) -> CountedTopics:
        """Return the topics of the counts N_vk (V, K)."""
        sizes = word_topics.sum(0) + len(word_topics) * eta
        return cls((word_topics + eta) / sizes, sizes, eta / sizes)


# Reassignment of tokens


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
    """Divide each token among the topics in proportion to its posterior, given the assignments of all other tokens.

    gamma_dvk is proportional to (N_dk - g_dvk + alpha_k) (N_vk - x_dv g_dvk + eta) / (N_k + V eta), where g is the
    token's own contribution to both counts. CVB0 stores g of every token. Here g is computed from the current counts,
    proportional to (N_dk + alpha_k) (N_vk + eta) / (N_k + V eta), so that no (non-zeros, K) array is stored.

    Args:
        counts: a batch of B documents.
        values: (N,) the weight of each non-zero.
        doc_topics: (B, K) N_dk.
        topics: the topics of the previous pass.
        alpha: (K,) Dirichlet parameter of theta.
        word_topics: (V, K), to which the words of the batch are added in place.
        excluded: whether to exclude the token from the counts of words. In a stream, they do not contain it yet.

    Returns:
        (B, K) the new counts of the documents.
    """
    loop = compiled(_recount_loop, _recount_example) if values.device.type == "cpu" else None
    if loop is None or not word_topics.is_contiguous():
        return reassign_plain(counts, values, doc_topics, topics, alpha, word_topics, excluded=excluded)
    return _recounted(loop, counts, values, doc_topics, topics, alpha, word_topics, None, excluded=excluded)[0]


@dataclass(frozen=True)
class Recounted:
    """The counts of a batch of B documents, and the terms of a step of alpha (see `dirichlet_step`)."""

    doc_topics: Tensor | None  # (B, K) N_dk, or None if they are not kept
    numerator: Tensor  # (K,)
    denominator: Tensor  # ()


def recount(
    counts: SparseCounts,
    values: Tensor,
    means: Tensor,
    topics: CountedTopics,
    alpha: Tensor,
    word_topics: Tensor,
    generator: torch.Generator,
    *,
    excluded: bool = True,
) -> Recounted:
    """Draw the counts of documents around their means (see `draw_counts`), and reassign the tokens given the draws.

    The compiled loop draws from the seeds of documents. It takes a draw of less than 1e-4 tokens as 0, and a normal
    variable as one of 4,096 quantiles.

    Args:
        counts: a batch of B documents.
        values: (N,) the weight of each non-zero.
        means: (B, K) N_dk.
        topics: the topics of the previous pass.
        alpha: (K,) Dirichlet parameter of theta.
        word_topics: (V, K), to which the words of the batch are added in place.
        generator: draws the counts, or the seed of each document.
        excluded: as in `reassign`.
    """
    loop = compiled(_recount_loop, _recount_example) if values.device.type == "cpu" else None
    if loop is None or not word_topics.is_contiguous():
        return recount_plain(counts, values, means, topics, alpha, word_topics, generator, excluded=excluded)
    seeds = drawn_seeds(counts.n_docs, generator)
    new, numerator = _recounted(loop, counts, values, means, topics, alpha, word_topics, seeds, excluded=excluded)
    return Recounted(new, numerator, denominator_of(counts.sum_by_document(values), alpha))


def recount_plain(
    counts: SparseCounts,
    values: Tensor,
    means: Tensor,
    topics: CountedTopics,
    alpha: Tensor,
    word_topics: Tensor,
    generator: torch.Generator,
    *,
    excluded: bool = True,
) -> Recounted:
    """Do the same as `recount`, by `draw_counts`, `reassign` and `dirichlet_step`."""
    drawn = draw_counts(means, generator)
    new = reassign(counts, values, drawn, topics, alpha, word_topics, excluded=excluded)
    return Recounted(new, *dirichlet_step(new, alpha))


def drawn_seeds(n: int, generator: torch.Generator) -> Tensor:
    """Return a seed for each document of this rank's part of a batch, (n,) int64."""

    def seeds(n: int) -> Tensor:
        return torch.randint(2**62, (n, 1), generator=generator, device=generator.device)

    return step().drawn(seeds, n)[:, 0]


def _recounted(
    loop: Callable[..., None],
    counts: SparseCounts,
    values: Tensor,
    means: Tensor,
    topics: CountedTopics,
    alpha: Tensor,
    word_topics: Tensor,
    seeds: Tensor | None,
    *,
    excluded: bool,
) -> tuple[Tensor, Tensor]:
    """Return the new counts of documents (B, K), and the numerator of the step of alpha (K,).

    Args:
        loop: the compiled loop; the others as in `recount`.
        seeds: (B,) the seeds of the documents. None if counts are not drawn.
    """
    means, seeds = means.contiguous(), means.new_empty(0, dtype=torch.int64) if seeds is None else seeds
    new, numerators = torch.empty_like(means), alpha.new_zeros(2, len(alpha), dtype=torch.float64)  # (B, K), (2, K)
    per_size = -float(excluded) / topics.sizes  # (K,)
    tables = topics.beta_t, per_size, topics.smallest, alpha, rises_of(alpha), torch.digamma(alpha), _quantiles()
    of_topics = _TopicArrays(*arrays_of(*tables))

    def count(number: int, first: int, last: int, changed: Tensor) -> None:
        parts = counts.offsets[first : last + 1], counts.indices, values, means[first:last], seeds[first:last]
        out = _CountArrays(new[first:last].numpy(), changed.numpy(), numerators[number].numpy())
        loop(_DocumentArrays(*arrays_of(*parts)), of_topics, out)

    in_halves(count, counts, word_topics, are_worth_it=len(word_topics) <= _MOST_WORDS * len(values))
    return new, numerators.sum(0).to(alpha.dtype)


@cache
def _quantiles() -> Tensor:
    """Return quantiles of the normal distribution at even distances, (4096,) float32."""
    shares = (torch.arange(_N_QUANTILES, dtype=torch.float64) + 0.5) / _N_QUANTILES
    found: Tensor = torch.special.ndtri(shares)
    return found.float()


def reassign_plain(
    counts: SparseCounts,
    values: Tensor,
    doc_topics: Tensor,
    topics: CountedTopics,
    alpha: Tensor,
    word_topics: Tensor,
    *,
    excluded: bool = True,
) -> Tensor:
    """Do the same as `reassign`, by PyTorch operations."""
    shares = doc_topics + alpha  # (B, K)
    new, per_size, ones = torch.zeros_like(doc_topics), -float(excluded) / topics.sizes, torch.ones_like(alpha)[:, None]
    step = rows_at_once(len(alpha), alpha.device)
    for rows, words, x in zip(
        counts.documents.split(step), counts.indices.split(step), values[:, None].split(step), strict=True
    ):
        theta, beta = shares.index_select(0, rows), topics.beta_t.index_select(0, words)  # (n, K) each
        own = theta * beta
        own *= (own @ ones + SMALLEST).reciprocal_()  # for few columns, a matrix product is faster than sum
        theta = torch.maximum(theta.sub_(own), alpha, out=theta)
        if excluded:
            beta = torch.maximum(beta.addcmul_(own.mul_(x), per_size), topics.smallest, out=beta)
        gamma = theta.mul_(beta)
        gamma *= x / (gamma @ ones + SMALLEST)
        new.index_add_(0, rows, gamma)
        word_topics.index_add_(0, words, gamma)
    return new


class _DocumentArrays(NamedTuple):
    """A batch of B documents whose tokens are reassigned."""

    offsets: Array  # (B + 1,) where each document starts
    words: Array  # (N,)
    values: Array  # (N,) the weight of each non-zero
    means: Array  # (B, K) N_dk
    seeds: Array  # (B,), or (0,) if the counts are not drawn


class _TopicArrays(NamedTuple):
    """The topics among which tokens are divided."""

    beta_t: Array  # (V, K)
    per_size: Array  # (K,) -1 / (N_k + V eta), or 0 if a token's own count is not excluded
    smallest: Array  # (K,) eta / (N_k + V eta)
    alpha: Array  # (K,)
    rises: Array  # (K, n) float64, as `rises_of` returns them
    psi: Array  # (K,) psi(alpha_k)
    quantiles: Array  # (4096,) of the normal distribution


class _CountArrays(NamedTuple):
    """The counts to which tokens are added, and the numerator of the step of alpha."""

    of_docs: Array  # (B, K)
    of_words: Array  # (V, K)
    numerator: Array  # (K,) float64


def _recount_loop(documents: _DocumentArrays, topics: _TopicArrays, out: _CountArrays) -> None:
    offsets, words, values, means, seeds = documents
    beta_t, per_size, smallest, alpha, rises, psi, quantiles = topics
    of_docs, of_words, numerator = out
    n_topics, one, ninth = len(alpha), np.float32(1), np.float32(1 / 9)
    least = np.float32(np.log(_LEAST_DRAW))
    rows = np.empty((3, n_topics + 2 * NUMBERS_BETWEEN_ARRAYS), alpha.dtype)
    rows = rows[:, NUMBERS_BETWEEN_ARRAYS:-NUMBERS_BETWEEN_ARRAYS]
    gamma, theta, small = rows[0], rows[1], rows[2]
    small[:] = 0  # the sum of the counts below 1
    for doc in range(len(offsets) - 1):
        mean, of_doc = means[doc], of_docs[doc]
        for k in range(n_topics):
            theta[k] = mean[k] + alpha[k]
            of_doc[k] = 0
        if len(seeds):
            for k in range(n_topics):
                x = np.uint64(seeds[doc]) + np.uint64(k + 1) * np.uint64(INCREMENT)
                x = (x ^ (x >> np.uint64(30))) * np.uint64(MULTIPLIER_1)
                x = (x ^ (x >> np.uint64(27))) * np.uint64(MULTIPLIER_2)
                x = x ^ (x >> np.uint64(31))
                share = (np.float32(x >> np.uint64(41)) + np.float32(0.5)) * np.float32(2.0**-23)
                if share <= one + least * mean[k]:  # less than share ** (1 / mean)
                    theta[k] = alpha[k]
                elif mean[k] == mean[k]:  # not NaN
                    larger = mean[k] + one
                    spread = ninth / larger
                    root = quantiles[np.int64(x & np.uint64(_N_QUANTILES - 1))] * np.sqrt(spread) + one - spread
                    root = max(root, np.float32(0))
                    theta[k] = alpha[k] + np.exp(np.log(share) / mean[k]) * larger * root * root * root
        for i in range(offsets[doc], offsets[doc + 1]):
            x, beta, of_word = values[i], beta_t[words[i]], of_words[words[i]]
            total = _SMALLEST
            for k in range(n_topics):
                gamma[k] = theta[k] * beta[k]
                total += gamma[k]
            scale, rest = one / total, _SMALLEST
            for k in range(n_topics):
                own = gamma[k] * scale
                gamma[k] = max(theta[k] - own, alpha[k]) * max(beta[k] + own * x * per_size[k], smallest[k])
                rest += gamma[k]
            part = x / rest
            for k in range(n_topics):
                of_doc[k] += gamma[k] * part
                of_word[k] += gamma[k] * part
        for k in range(n_topics):
            small[k] += of_doc[k] if not of_doc[k] >= one else np.float32(0)  # NaN is passed on
        for k in range(n_topics):
            if of_doc[k] >= one:
                value = of_doc[k]
                if value < rises.shape[1]:
                    whole = int(value)
                    numerator[k] += rises[k, whole] + (value - whole) / (alpha[k] + whole)
                else:
                    end = float(alpha[k]) + np.floor(value)
                    numerator[k] += np.log(end) - 0.5 / end - 1 / (12 * end * end) - psi[k]
        if doc % 1024 == 1023 or doc == len(offsets) - 2:  # a longer sum would be less exact
            for k in range(n_topics):
                numerator[k] += float(small[k]) / alpha[k]
                small[k] = 0


def _recount_example() -> tuple[Any, ...]:
    """Return arguments of `_recount_loop` for one document of one word and one topic."""
    offsets, words, one, table = np.array([0, 1]), np.zeros(1, np.int64), np.ones(1, np.float32), _one_number()
    topics = _TopicArrays(table, one, one, one, np.ones((1, 2)), one, np.zeros(_N_QUANTILES, np.float32))
    out = _CountArrays(_one_number(), _one_number(), np.zeros(1))
    return _DocumentArrays(offsets, words, one, table, words), topics, out


def _one_number() -> Array:
    return np.ones((1, 1), np.float32)


def in_halves(
    count: Callable[[int, int, int, Tensor], None], documents: SparseCounts, word_topics: Tensor, *, are_worth_it: bool
) -> None:
    """Count two halves of the documents in parallel.

    Sums do not depend on the number of threads, because the documents are halved whatever that number is.

    Args:
        count: a function of the number of the half, its first document, the document after its last one, and a table
            (V, K). It adds the counts of these documents to the table.
        documents: a batch.
        word_topics: (V, K), to which both halves are added in place.
        are_worth_it: whether to count two halves. Otherwise all documents are counted together.
    """
    if not are_worth_it:
        count(0, 0, documents.n_docs, word_topics)
        return
    middle, others = _middle(documents), torch.zeros_like(word_topics)  # (V, K)
    run_on_threads([partial(count, 0, 0, middle, word_topics), partial(count, 1, middle, documents.n_docs, others)])
    word_topics += others


def _middle(counts: SparseCounts) -> int:
    """Return the document before which half of the non-zeros are."""
    return int(torch.searchsorted(counts.offsets, counts.offsets[-1] // 2))


def draw_counts(means: Tensor, generator: torch.Generator) -> Tensor:
    """Draw gamma variables with the given means (B, K), one row for each document of the batch, and equal variances.

    A Gamma(a) variable is a Gamma(a + 1) variable times U^(1 / a), and the cube root of the latter gamma is nearly
    normal (Wilson & Hilferty 1931, "The distribution of chi-square"). Mean, variance and skewness are accurate to about
    one percent. Exact draws take up to four times as long.
    """

    def standard(n: int) -> Tensor:
        return means.new_empty(n, means.shape[1]).normal_(generator=generator)

    def uniform(n: int) -> Tensor:
        return means.new_empty(n, means.shape[1]).uniform_(generator=generator)

    larger = means + 1
    spread = (9 * larger).reciprocal_()
    root = step().drawn(standard, len(means)).mul_(spread.sqrt()).add_(1).sub_(spread).clamp_min_(0)
    share = step().drawn(uniform, len(means)).log_().div_(means).exp_()  # 0 for a mean of 0
    return share.mul_(larger).mul_(root).mul_(root).mul_(root)


# The Dirichlet parameters


def rises_of(alpha: Tensor) -> Tensor:
    """Return psi(alpha_k + n) - psi(alpha_k) for the whole numbers n below 64, (K, 64) float64."""
    steps = (alpha.double()[:, None] + torch.arange(_WHOLE_PARTS - 1)).reciprocal_()  # psi(x + 1) = psi(x) + 1 / x
    return pad(steps.cumsum(1), (1, 0))


def denominator_of(totals: Tensor, alpha: Tensor) -> Tensor:
    """Return the denominator () that `dirichlet_step` returns for documents of so many tokens, (B,)."""
    total = alpha.sum()
    loop = compiled(_digamma_loop, _digamma_example) if alpha.device.type == "cpu" else None
    if loop is None or totals.dtype != torch.float32:
        return (torch.digamma(totals + total) - torch.digamma(total)).sum()
    found = np.zeros(1)
    loop(totals.contiguous().numpy(), np.float32(total), found)
    return (float(found[0]) - len(totals) * torch.digamma(total.double())).to(alpha.dtype)


def _digamma_loop(values: Array, shift: float, found: Array) -> None:
    """Add the sum of psi(x + shift) over positive values x (n,) to `found` (1,)."""
    for first in range(0, len(values), 1024):  # a longer sum in single precision would be less exact
        part = np.float32(0)
        for i in range(first, min(first + 1024, len(values))):
            x = values[i] + shift
            rise = 1 / x  # psi(x) = psi(x + 6) - 1 / x - .. - 1 / (x + 5)
            for j in range(1, 6):
                rise += 1 / (x + np.float32(j))
            end = 1 / (x + np.float32(6))
            square = end * end
            series = square * (np.float32(1 / 12) - square * (np.float32(1 / 120) - square * np.float32(1 / 252)))
            part += logarithm(x + np.float32(6)) - np.float32(0.5) * end - series - rise
        found[0] += part


def _digamma_example() -> tuple[Any, ...]:
    """Return arguments of `_digamma_loop` for one value."""
    return np.ones(1, np.float32), np.float32(1), np.zeros(1)


def dirichlet_step(doc_topics: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
    """Return the numerator (K,) and denominator () of Minka's fixed point, alpha <- alpha * numerator / denominator.

    The numerator is the expectation over counts that are rounded up or down at random. With the digamma function of
    fractional counts, a document with a hundredth of a token of some topic would be strong evidence for a high alpha.
    Rounding leaves most such documents without the topic.

    Args:
        doc_topics: (B, K) counts.
        alpha: (K,) Dirichlet parameter of theta.
    """
    loop = compiled(_dirichlet_loop, _dirichlet_example) if alpha.device.type == "cpu" else None
    if loop is None:
        return dirichlet_step_plain(doc_topics, alpha)
    numerator = torch.zeros_like(alpha, dtype=torch.float64)  # (K,)
    loop(doc_topics.contiguous().numpy(), alpha.numpy(), numerator.numpy())
    return numerator.to(alpha.dtype), denominator_of(doc_topics.sum(1), alpha)


def dirichlet_step_plain(doc_topics: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
    """Do the same as `dirichlet_step`, by PyTorch operations."""
    where = doc_topics.nonzero(as_tuple=True)  # after sampling, most counts are 0 and add nothing
    values, prior = doc_topics[where], alpha[where[1]]  # (n,) each
    whole = values.floor()
    rounded = whole + prior
    # psi(a + 1) = psi(a) + 1 / a
    rises = torch.digamma(rounded) - torch.digamma(alpha)[where[1]] + (values - whole) / rounded  # (n,)
    numerator = torch.zeros_like(alpha).index_add_(0, where[1], rises)
    return numerator, denominator_of(doc_topics.sum(1), alpha)


def _dirichlet_loop(doc_topics: Array, alpha: Array, numerator: Array) -> None:
    """Add the numerator to `numerator` (K,).

    psi(alpha + n) - psi(alpha) is the sum of 1 / (alpha + j) over the whole numbers j below n. Beyond the first terms,
    it follows from the asymptotic series of psi.
    """
    for doc in range(len(doc_topics)):
        for k in range(len(alpha)):
            value = doc_topics[doc, k]
            if value > 0:
                whole, rise = int(value), 0.0
                start, end = alpha[k] + min(whole, _DIGAMMA_TERMS), alpha[k] + whole
                for j in range(min(whole, _DIGAMMA_TERMS)):
                    rise += 1 / (alpha[k] + j)
                if end > start:
                    for x, sign in ((end, 1.0), (start, -1.0)):
                        rise += sign * (np.log(x) - 1 / (2 * x) - 1 / (12 * x * x))
                numerator[k] += rise + (value - whole) / end
            elif value != 0:  # NaN
                numerator[k] += value


def _dirichlet_example() -> tuple[Any, ...]:
    """Return arguments of `_dirichlet_loop` for one document and one topic."""
    return _one_number(), np.ones(1, np.float32), np.zeros(1)


def eta_step(word_topics: Tensor, eta: Tensor) -> Tensor:
    """Return eta after a step of Minka's fixed point for the symmetric Dirichlet parameter of the topics.

    The prior of a topic never has more tokens than topics have on average, V eta <= sum_k N_k / K. If each word is in
    few documents, eta and alpha could otherwise rise together until all topics have all words.

    Args:
        word_topics: (V, K) counts.
        eta: (), the parameter so far.
    """
    n_words, n_topics = word_topics.shape
    start, tokens = eta.double(), word_topics.sum(0).double()  # (), (K,)
    rises, total = _rises(word_topics, start), n_words * start
    sizes = torch.digamma(tokens + total).sum() - n_topics * torch.digamma(total)
    factor = rises / (n_words * sizes)  # ()
    most = (tokens.mean() / n_words).clamp(1e-6, 1.0)  # ()
    return torch.where(factor.isfinite(), (start * factor).clamp_min(1e-6), start).minimum(most).to(eta.dtype)


def _rises(word_topics: Tensor, eta: Tensor) -> Tensor:
    """Return the sum of psi(N_vk + eta) - psi(eta) over the counts N_vk (V, K) that are not 0, () float64."""
    loop = compiled(_rises_loop, _rises_example) if eta.device.type == "cpu" else None
    if loop is None or not word_topics.is_contiguous():
        counts = word_topics[word_topics > 0]  # (n,)
        return torch.digamma(counts + eta).sum(dtype=torch.float64) - len(counts) * torch.digamma(eta)
    found = np.zeros(1)
    loop(word_topics.view(-1).numpy(), float(eta), float(torch.digamma(eta)), found)
    return torch.from_numpy(found)[0]


def _rises_loop(counts: Array, eta: float, first: float, found: Array) -> None:
    """Add psi(n + eta) - psi(eta) to `found` (1,) for each count n > 0, where `first` is psi(eta)."""
    total, last, of_whole = 0.0, np.float32(_WHOLE_COUNTS - 1), np.zeros(_WHOLE_COUNTS)
    for n in range(1, _WHOLE_COUNTS):
        of_whole[n] = of_whole[n - 1] + 1 / (eta + n - 1)  # psi(x + 1) = psi(x) + 1 / x
    for i in range(len(counts)):
        value = counts[i]
        whole = max(int(min(value, last)), 0)
        if value == whole:  # nearly always, also for 0, so that the processor predicts the branch
            total += of_whole[whole]
        elif value > 0:
            x, rise = value + eta, -first
            while x < 6.0:  # psi(x) = psi(x + 1) - 1 / x, until the asymptotic series is exact enough
                rise -= 1 / x
                x += 1.0
            square = 1 / (x * x)
            total += rise + np.log(x) - 0.5 / x - square * (1 / 12 - square * (1 / 120 - square / 252))
        else:  # NaN
            total += value
    found[0] += total


def _rises_example() -> tuple[Any, ...]:
    """Return arguments of `_rises_loop` for one count."""
    return np.ones(1, np.float32), 0.5, 0.5, np.zeros(1)


# Inference of new documents


def expected_counts(documents: SparseCounts, beta_t: Tensor, alpha: Tensor, start: Tensor, steps: int) -> Tensor:
    """Return the expected counts of topics in documents, given the topics: (B, K).

    A step of the fixed point is a step of CVB0 with constant topics: gamma_dvk is proportional to
    (N_dk - gamma_dvk + alpha_dk) beta_kv, and N_dk = sum_v x_dv gamma_dvk. A token's own count is excluded, because it
    would reinforce its own topic in a short document.

    Args:
        documents: a batch of B documents.
        beta_t: (V, K) topics.
        alpha: (K,), or (B, K) for each document.
        start: (B, K) theta to start from, rows sum to 1.
        steps: steps of the fixed point; the first one uses `start` in place of the shares.
    """
    is_worth_it = steps > 0 and documents.n_docs >= FEWEST_DOCUMENTS_TO_COMPILE and start.device.type == "cpu"
    loop = compiled(_expected_counts_loop, _expected_counts_example) if is_worth_it else None
    if loop is None:
        return expected_counts_plain(documents, beta_t, alpha, start, steps)
    counts, prior, topics = torch.empty_like(start), alpha.expand_as(start), beta_t.contiguous().numpy()

    def count(first: int, last: int) -> None:
        of_documents = prior[first:last], start[first:last]
        parts = documents.offsets[first : last + 1], documents.indices, documents.values, *of_documents
        loop(_InferenceArrays(*arrays_of(*parts)), topics, steps, counts[first:last].numpy())

    middle = _middle(documents)
    run_on_threads([partial(count, 0, middle), partial(count, middle, documents.n_docs)])
    return counts


def expected_counts_plain(documents: SparseCounts, beta_t: Tensor, alpha: Tensor, start: Tensor, steps: int) -> Tensor:
    """Do the same as `expected_counts`, by PyTorch operations."""
    counts = documents.totals[:, None] * start
    alpha, ones = alpha.expand_as(counts), torch.ones_like(start[0])[:, None]  # (B, K), (K, 1)
    offsets = documents.offsets.tolist()
    for first, last in document_pieces(offsets, rows_at_once(len(ones), ones.device)) if steps else ():
        rows, which = slice(first, last), slice(offsets[first], offsets[last])
        new = counts[rows]  # (b, K)
        docs, x = documents.documents[which] - rows.start, documents.values[which, None]  # (n,), (n, 1)
        beta, prior = beta_t[documents.indices[which]], alpha[rows][docs]  # (n, K) each
        gamma = start[rows][docs].mul_(beta)  # (n, K)
        for number in range(steps):
            if number:
                gamma = torch.maximum((new + alpha[rows])[docs].sub_(gamma), prior).mul_(beta)
            gamma /= gamma @ ones + SMALLEST
            new = torch.zeros_like(new).index_add_(0, docs, gamma * x)
        counts[rows] = new
    return counts


class _InferenceArrays(NamedTuple):
    """A batch of B documents whose topics are inferred."""

    offsets: Array  # (B + 1,) where each document starts
    words: Array  # (N,)
    values: Array  # (N,)
    alpha: Array  # (B, K)
    start: Array  # (B, K)


def _expected_counts_loop(documents: _InferenceArrays, beta_t: Array, steps: int, counts: Array) -> None:
    """Write the expected counts of documents to `counts` (B, K)."""
    offsets, words, values, alpha, start = documents
    n_topics = counts.shape[1]
    longest = 0
    for doc in range(len(offsets) - 1):
        longest = max(longest, offsets[doc + 1] - offsets[doc])
    gamma = np.empty((longest, n_topics), counts.dtype)
    share = np.empty(n_topics + 2 * NUMBERS_BETWEEN_ARRAYS, counts.dtype)[
        NUMBERS_BETWEEN_ARRAYS:-NUMBERS_BETWEEN_ARRAYS
    ]
    for doc in range(len(offsets) - 1):
        count, prior, first = counts[doc], alpha[doc], offsets[doc]
        for number in range(steps):
            for k in range(n_topics):
                share[k] = count[k] + prior[k] if number else start[doc, k]
                count[k] = 0
            for i in range(first, offsets[doc + 1]):
                of_word, own, total = beta_t[words[i]], gamma[i - first], np.float32(0)
                if number:
                    for k in range(n_topics):
                        own[k] = max(share[k] - own[k], prior[k]) * of_word[k]
                        total += own[k]
                else:
                    for k in range(n_topics):
                        own[k] = share[k] * of_word[k]
                        total += own[k]
                part = np.float32(1) / (total + _SMALLEST)
                for k in range(n_topics):
                    own[k] *= part
                    count[k] += values[i] * own[k]


def _expected_counts_example() -> tuple[Any, ...]:
    """Return arguments of `_expected_counts_loop` for one document of one token and one topic."""
    offsets, words, table = np.array([0, 1]), np.zeros(1, np.int64), _one_number()
    return _InferenceArrays(offsets, words, table[0], table, table), table, 2, _one_number()


# Topics from counts


def sharpen(word_topics: Tensor, tokens: Tensor, sharpness: float, eta: Tensor | float) -> Tensor:
    """Return topics from counts, with p(topic | word) sharpened for top words: (V, K), columns sum to 1.

    beta_kv is proportional to F_v p(k | v)^s p(k)^(1 - s), normalised over k for each word before it is multiplied by
    F_v, so that words keep their share of the corpus. s is 1 for words that are not among the top words of any topic.
    These are rarely read, and a sharper p(k | v) predicts words less well.

    Args:
        word_topics: (V, K) counts.
        tokens: (V,) F, the frequency of each word.
        sharpness: s of the top words; 1 leaves p(k | v) as counted.
        eta: Dirichlet parameter of the topics.
    """
    # Arrays of V x K numbers are changed in place, because they decide the peak memory of a fit.
    shares = word_topics + eta
    topic = shares.sum(0) / shares.sum()  # (K,) p(k)
    shares.div_(shares.sum(1, keepdim=True))  # (V, K) p(k | v)
    sharp = (shares / topic).log_().mul_(sharpness).add_(topic.log())
    sharp = torch.softmax(sharp, dim=1)  # (V, K)
    frequency = (tokens + eta)[:, None]  # (V, 1)
    is_top = top_word_mask(sharp * frequency, frequency)  # (V, 1)
    weights = torch.where(is_top, sharp, shares, out=shares).mul_(frequency)
    return weights.div_(weights.sum(0))


def top_word_mask(weights: Tensor, frequency: Tensor) -> Tensor:
    """Return whether each word is among the 30 top words of some topic, by probability or by relevance .6: (V, 1) bool.

    The order by log beta_kv - .4 log p(v) is the order by relevance (Sievert & Shirley 2014, "LDAvis").

    Args:
        weights: (V, K) topics, up to a factor for each topic. They are changed, to save memory.
        frequency: (V, 1) frequency of each word.
    """
    top_n = min(_N_TOP_WORDS, len(weights))
    is_top = torch.zeros_like(frequency, dtype=torch.bool)
    is_top[weights.topk(top_n, dim=0, sorted=False).indices] = True
    is_top[weights.div_(frequency**0.4).topk(top_n, dim=0, sorted=False).indices] = True
    return is_top
