"""Collapsed variational inference for latent Dirichlet allocation: theta and beta are replaced by counts of topics.

CVB0, the zero-order collapsed variational Bayes of Asuncion, Welling, Smyth & Teh 2009, "On Smoothing and Inference for
Topic Models"; Dirichlet parameters by the fixed point of Minka 2000, "Estimating a Dirichlet distribution"; momentum as
in Nesterov 1983, "A method of solving a convex programming problem with convergence rate O(1/k^2)".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ...distributed.ranks import Step, current, step
from ...nn.sparse import TINY, SparseCounts

_CHUNK = 1 << 17  # elements of a (non-zeros, K) block; a few such blocks fit into a core's cache
SMALLEST = 1e-30  # below any product of a count and a probability
_N_TOP_WORDS = 30  # top words of a topic: a few more than most people read
_MOMENTUM, _MAX_CHANGE = 0.8, 2.0  # a momentum of 1 makes the topics oscillate
_TOPICS = ("beta_t", "sizes", "smallest")
_SUMS = ("word_topics", "tokens", "alpha_numerator", "alpha_denominator")


@dataclass(frozen=True)
class CountedTopics:
    """The topics that one pass over the documents uses, computed from counts."""

    beta_t: Tensor  # (V, K) (N_vk + eta) / (N_k + V eta), or these `extrapolated`
    sizes: Tensor  # (K,) N_k + V eta
    smallest: Tensor  # (K,) eta / (N_k + V eta)

    @classmethod
    def from_counts(cls, word_topics: Tensor, eta: float) -> CountedTopics:
        """Return the topics of the counts N_vk (V, K)."""
        sizes = word_topics.sum(0) + len(word_topics) * eta
        return cls((word_topics + eta) / sizes, sizes, eta / sizes)

    def extrapolated(self, previous: Tensor) -> CountedTopics:
        """Return the topics with momentum: they continue in the direction of their last change.

        Near the optimum, a pass reduces the remaining distance by a small and constant fraction, and momentum by
        several times that fraction. As in Nesterov's method, the next counts start from the extrapolated topics.

        Args:
            previous: (V, K) the topics one pass ago, before momentum.
        """
        change = (self.beta_t / previous).clamp_(1 / _MAX_CHANGE, _MAX_CHANGE)
        beta_t = self.beta_t * change.pow_(_MOMENTUM)
        return replace(self, beta_t=beta_t / beta_t.sum(0))


@dataclass(frozen=True)
class CountingPass:
    """One pass over the documents: the topics that it uses, and the sums that it collects."""

    topics: CountedTopics  # used
    noise: float  # variance of the counts of documents, divided by their mean
    excluded: float  # the share of a token's own count that is excluded from the counts of its word
    word_topics: Tensor  # (V, K) new N_vk
    tokens: Tensor  # (V,) frequency of each word
    alpha_numerator: Tensor  # (K,) of Minka's fixed point
    alpha_denominator: Tensor  # ()

    @classmethod
    def start(cls, topics: CountedTopics, noise: float, excluded: float) -> CountingPass:
        """Return a pass whose sums are all 0."""
        zeros = torch.zeros_like(topics.beta_t)
        return cls(topics, noise, excluded, zeros, zeros[:, 0].clone(), zeros[0].clone(), zeros.new_zeros(()))

    def of_all_ranks(self) -> CountingPass:
        """Return the pass with the sums over the documents of all ranks. It is called once, at the end of the pass."""
        current().sum_in_place([self.word_topics, self.tokens, self.alpha_numerator, self.alpha_denominator])
        return self

    def state(self) -> tuple[dict[str, Tensor], dict[str, float]]:
        """Return tensors and numbers from which `from_state` makes the same pass."""
        tensors = {name: getattr(self.topics, name) for name in _TOPICS}
        tensors |= {name: getattr(self, name) for name in _SUMS}
        return tensors, {"noise": self.noise, "excluded": self.excluded}

    @classmethod
    def from_state(cls, tensors: Mapping[str, Tensor], values: Mapping[str, float]) -> CountingPass:
        """Return the pass that `state` describes."""
        topics = CountedTopics(*(tensors[name] for name in _TOPICS))
        return cls(topics, values["noise"], values["excluded"], *(tensors[name] for name in _SUMS))


def reassign(
    counts: SparseCounts,
    values: Tensor,
    doc_topics: Tensor,
    topics: CountedTopics,
    alpha: Tensor,
    word_topics: Tensor,
    *,
    excluded: float = 1.0,
) -> Tensor:
    """Reassign each token to the topics in proportion to its posterior, given the assignments of all other tokens.

    gamma_dvk is proportional to (N_dk - g_dvk + alpha_k) (N_vk - e x_dv g_dvk + eta) / (N_k + V eta), where g is the
    token's own contribution to both counts and e is `excluded`, which is 1 in CVB0. CVB0 stores g of every token. Here
    g is computed from the current counts, proportional to (N_dk + alpha_k) (N_vk + eta) / (N_k + V eta), so that no
    (non-zeros, K) array is stored. For extrapolated topics, the contribution to the actual counts is subtracted.

    Args:
        counts: a batch of B documents.
        values: (N,) the weight of each non-zero.
        doc_topics: (B, K) N_dk.
        topics: the topics of the previous pass, possibly extrapolated.
        alpha: (K,) Dirichlet parameter of theta.
        word_topics: (V, K), to which the words of the batch are added in place.
        excluded: the share of a token's own count that is excluded from the counts of its word. It is 0 where these do
            not contain the token, or are so large that excluding it is not needed.

    Returns:
        (B, K) the new counts of the documents.
    """
    shares = doc_topics + alpha  # (B, K)
    new, per_size, ones = torch.zeros_like(doc_topics), -excluded / topics.sizes, torch.ones_like(alpha)[:, None]
    step = max(1, _CHUNK // len(alpha))
    for rows, words, x in zip(
        counts.documents.split(step), counts.indices.split(step), values[:, None].split(step), strict=True
    ):
        theta, beta = shares.index_select(0, rows), topics.beta_t.index_select(0, words)  # (n, K) each
        own = theta * beta
        own *= (own @ ones + SMALLEST).reciprocal_()  # a matrix product sums few columns faster than sum does
        theta = torch.maximum(theta.sub_(own), alpha, out=theta)
        if excluded:
            beta = torch.maximum(beta.addcmul_(own.mul_(x), per_size), topics.smallest, out=beta)
        gamma = theta.mul_(beta)
        gamma *= x / (gamma @ ones + SMALLEST)
        new.index_add_(0, rows, gamma)
        word_topics.index_add_(0, words, gamma)
    return new


def draw_counts(means: Tensor, noise: float, generator: torch.Generator, *, of_batch: bool = False) -> Tensor:
    """Draw gamma variables with the given means, of any shape, and with variances of `noise` times the means.

    A Gamma(a) variable is a Gamma(a + 1) variable times U^(1 / a), and the cube root of the latter gamma is nearly
    normal (Wilson & Hilferty 1931, "The distribution of chi-square"). Mean, variance and skewness are accurate to about
    one percent. Exact draws take up to four times as long.
    """
    taken = step() if of_batch else Step(current())

    def standard(n: int) -> Tensor:
        return means.new_empty(n, means.shape[1]).normal_(generator=generator)

    def uniform(n: int) -> Tensor:
        return means.new_empty(n, means.shape[1]).uniform_(generator=generator)

    shape = means / noise
    larger = shape + 1
    spread = (9 * larger).reciprocal_()
    root = taken.drawn(standard, len(means)).mul_(spread.sqrt()).add_(1).sub_(spread).clamp_min_(0)
    share = taken.drawn(uniform, len(means)).log_().div_(shape).exp_()  # 0 for a shape of 0
    return share.mul_(larger).mul_(root).mul_(root).mul_(root).mul_(noise)


def dirichlet_step(doc_topics: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
    """Return the numerator (K,) and denominator () of Minka's fixed point, alpha <- alpha * numerator / denominator.

    The numerator is the expectation over counts that are rounded up or down at random. With the smooth digamma
    function, a document with a hundredth of a token of some topic would be strong evidence for a high alpha, although
    rounding leaves most such documents without the topic.

    Args:
        doc_topics: (B, K) counts.
        alpha: (K,) Dirichlet parameter of theta.
    """
    whole, total = doc_topics.floor(), alpha.sum()
    rounded = whole + alpha  # (B, K)
    # psi(a + 1) = psi(a) + 1 / a
    rises = torch.digamma(rounded) - torch.digamma(alpha) + (doc_topics - whole) / rounded  # (B, K)
    return rises.sum(0), (torch.digamma(doc_topics.sum(1) + total) - torch.digamma(total)).sum()


def expected_counts(documents: SparseCounts, beta_t: Tensor, alpha: Tensor, start: Tensor, steps: int) -> Tensor:
    """Return the expected counts of topics in documents, given the topics: (B, K).

    Args:
        documents: a batch of B documents.
        beta_t: (V, K) topics.
        alpha: (K,), or (B, K) for each document.
        start: (B, K) theta to start from, rows sum to 1.
        steps: steps of the fixed point N_dk = sum_v x_dv theta_dk beta_kv / p_dv, theta_dk proportional to
            N_dk + alpha_k.
    """
    counts = documents.totals[:, None] * start
    theta = start
    for number in range(steps):
        if number:
            theta = counts + alpha
            theta = theta / theta.sum(1, keepdim=True)
        ratio = documents.values / (documents.sampled_product(theta, beta_t) + TINY)  # (N,)
        counts = theta * documents.times(ratio, beta_t)
    return counts


def sharpen(word_topics: Tensor, tokens: Tensor, sharpness: float, eta: float) -> Tensor:
    """Return topics from counts, with p(topic | word) sharpened for top words: (V, K), columns sum to 1.

    beta_kv is proportional to F_v p(k | v)^s p(k)^(1 - s), normalised over k for each word before it is multiplied by
    F_v, so that words keep their share of the corpus. s is 1 for words that are not among the top words of any topic:
    few of them are read, and a sharper p(k | v) predicts words less well.

    Args:
        word_topics: (V, K) counts.
        tokens: (V,) F, the frequency of each word.
        sharpness: s of the top words; 1 leaves p(k | v) as counted.
        eta: Dirichlet parameter of the topics.
    """
    smoothed = word_topics + eta
    topic = smoothed.sum(0) / smoothed.sum()  # (K,) p(k)
    shares = smoothed / smoothed.sum(1, keepdim=True)  # (V, K) p(k | v)
    sharp = torch.softmax(sharpness * (shares / topic).log() + topic.log(), dim=1)  # (V, K)
    frequency = (tokens + eta)[:, None]  # (V, 1)
    is_top = top_word_mask(sharp * frequency, frequency)  # (V, 1)
    weights = torch.where(is_top, sharp, shares) * frequency
    return weights / weights.sum(0)


def top_word_mask(weights: Tensor, frequency: Tensor) -> Tensor:
    """Return whether each word is among the 30 top words of some topic, by probability or by relevance .6: (V, 1) bool.

    The order by log beta_kv - .4 log p(v) is the order by relevance (Sievert & Shirley 2014, "LDAvis").

    Args:
        weights: (V, K) topics, up to a factor for each topic.
        frequency: (V, 1) frequency of each word.
    """
    top_n = min(_N_TOP_WORDS, len(weights))
    is_top = torch.zeros_like(frequency, dtype=torch.bool)
    for ranked in (weights, weights / frequency**0.4):
        is_top[ranked.topk(top_n, dim=0, sorted=False).indices] = True
    return is_top


def mix_background(beta_t: Tensor, weights: Tensor, share: float) -> Tensor:
    """Replace `share` of each topic by words of the background topics, which do not change themselves: (V, K).

    Args:
        beta_t: (V, K) topics, columns sum to 1.
        weights: (K,) the weight of each background topic in the mixture; 0 for the other topics.
        share: from 0 to 1.
    """
    words = beta_t @ (weights / weights.sum())  # (V,)
    return torch.where(weights > 0, beta_t, torch.lerp(beta_t, words[:, None], share))
