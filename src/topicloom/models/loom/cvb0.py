"""Latent Dirichlet allocation with theta and beta integrated out: counts of topics in place of both.

CVB0, the zero-order collapsed variational Bayes of Asuncion, Welling, Smyth & Teh 2009, "On Smoothing and Inference for
Topic Models"; Dirichlet parameters by the fixed point of Minka 2000, "Estimating a Dirichlet distribution"; steps that
go further as in Nesterov 1983, "A method of solving a convex programming problem with convergence rate O(1/k^2)".
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ...nn.sparse import TINY, SparseCounts

_CHUNK = 1 << 17  # elements of a block that is (non-zeros, K): a few of them stay in a core's cache
LEAST = 1e-30  # below any product of a count and a probability
_LEADING = 30  # words of a topic, a few more than most people read
_BEYOND, _MOST_CHANGE = 0.8, 2.0  # momentum of the topics; at 1 they swing to and fro


@dataclass(frozen=True)
class CountedTopics:
    """Topics as counts give them, for one pass over the documents."""

    beta_t: Tensor  # (V, K) (N_vk + eta) / (N_k + V eta), or what lies `beyond`
    sizes: Tensor  # (K,) N_k + V eta
    least: Tensor  # (K,) eta / (N_k + V eta)

    @classmethod
    def of(cls, word_topics: Tensor, eta: float) -> CountedTopics:
        """Those of N_vk (V, K)."""
        sizes = word_topics.sum(0) + len(word_topics) * eta
        return cls((word_topics + eta) / sizes, sizes, eta / sizes)

    def beyond(self, before: Tensor) -> CountedTopics:
        """With momentum: probabilities go on as they have changed from `before` (V, K), those of a pass ago.

        Near its end, a pass makes up for a small and fixed part of what is left to do; with momentum for several times
        that, as in Nesterov's method: what is counted next is counted from there, and not from where it led.
        """
        change = (self.beta_t / before).clamp_(1 / _MOST_CHANGE, _MOST_CHANGE)
        beta_t = self.beta_t * change.pow_(_BEYOND)
        return replace(self, beta_t=beta_t / beta_t.sum(0))


def reassign(
    counts: SparseCounts,
    values: Tensor,
    doc_topics: Tensor,
    topics: CountedTopics,
    alpha: Tensor,
    word_topics: Tensor,
    *,
    left_out: float = 1.0,
) -> Tensor:
    """Shares out each token among the topics anew, given how all other tokens are shared out.

    gamma_dvk is proportional to (N_dk - g_dvk + alpha_k) (N_vk - l x_dv g_dvk + eta) / (N_k + V eta), g being the
    token's own part in both counts and l `left_out`, 1 in CVB0. CVB0 keeps g for every token; here it is what the
    counts as they stand give, proportional to (N_dk + alpha_k) (N_vk + eta) / (N_k + V eta), so that no memory of
    (non-zeros, K) is needed. Where topics lie beyond the counts, the token's part is taken off as it was counted.

    Args:
        values: (N,) how much each non-zero counts.
        doc_topics: (B, K) N_dk.
        topics: those of the pass before, or beyond them.
        alpha: (K,)
        word_topics: (V, K), to which the words of the batch are added in place.
        left_out: how much of a token's own part is left out of the counts of its word; 0 where these do not have it, or
            have so many that it may stay.

    Returns:
        (B, K) the new counts of the documents.
    """
    shares = doc_topics + alpha  # (B, K)
    of_docs, per_size, ones = torch.zeros_like(doc_topics), -left_out / topics.sizes, torch.ones_like(alpha)[:, None]
    step = max(1, _CHUNK // len(alpha))
    for rows, words, x in zip(
        counts.documents.split(step), counts.indices.split(step), values[:, None].split(step), strict=True
    ):
        theta, beta = shares.index_select(0, rows), topics.beta_t.index_select(0, words)  # (n, K) each
        own = theta * beta
        own *= (own @ ones + LEAST).reciprocal_()  # a sum over few columns is faster as a product
        theta = torch.maximum(theta.sub_(own), alpha, out=theta)
        if left_out:
            beta = torch.maximum(beta.addcmul_(own.mul_(x), per_size), topics.least, out=beta)
        gamma = theta.mul_(beta)
        gamma *= x / (gamma @ ones + LEAST)
        of_docs.index_add_(0, rows, gamma)
        word_topics.index_add_(0, words, gamma)
    return of_docs


def noisy(counts: Tensor, noise: float, generator: torch.Generator) -> Tensor:
    """Draws of gamma variables whose means are `counts`, of any shape, and whose variances are `noise` times that.

    Gamma(a) is Gamma(a + 1) times U^(1 / a), and the cube root of the former is nearly normal (Wilson & Hilferty 1931,
    "The distribution of chi-square"): mean, variance and skewness are right to about a hundredth, and exact
    draws take up to four times as long.
    """
    shape = counts / noise
    above = shape + 1
    spread = (9 * above).reciprocal_()
    root = torch.empty_like(shape).normal_(generator=generator).mul_(spread.sqrt()).add_(1).sub_(spread).clamp_min_(0)
    share = torch.empty_like(shape).uniform_(generator=generator).log_().div_(shape).exp_()  # 0 where the shape is
    return share.mul_(above).mul_(root).mul_(root).mul_(root).mul_(noise)


def dirichlet_step(doc_topics: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
    """Numerator (K,) and denominator () of Minka's fixed point: alpha moves to alpha * numerator / denominator.

    The numerator is its mean over counts rounded at random to whole ones, up or down. A document that has a hundredth
    of a token of some topic says far less for a high alpha than the smooth digamma would have it: most such documents
    have none.

    Args:
        doc_topics: (B, K) counts.
        alpha: (K,)
    """
    whole, total = doc_topics.floor(), alpha.sum()
    least = whole + alpha  # (B, K)
    rises = torch.digamma(least) - torch.digamma(alpha) + (doc_topics - whole) / least  # psi(a + 1) = psi(a) + 1 / a
    return rises.sum(0), (torch.digamma(doc_topics.sum(1) + total) - torch.digamma(total)).sum()


def expected_counts(documents: SparseCounts, beta_t: Tensor, alpha: Tensor, start: Tensor, steps: int) -> Tensor:
    """Expected counts of topics in documents of given topics: (B, K)

    Args:
        beta_t: (V, K) topics.
        alpha: (K,), or (B, K) of each document.
        start: (B, K) theta to start from, rows in the simplex.
        steps: of the fixed point N_dk = sum_v x_dv theta_dk beta_kv / p_dv, theta_dk proportional to N_dk + alpha_k.
    """
    counts = documents.totals[:, None] * start
    theta = start
    for step in range(steps):
        if step:
            theta = counts + alpha
            theta = theta / theta.sum(1, keepdim=True)
        ratio = documents.values / (documents.sampled_product(theta, beta_t) + TINY)  # (N,)
        counts = theta * documents.times(ratio, beta_t)
    return counts


def sharpened(word_topics: Tensor, tokens: Tensor, sharpness: float, eta: float) -> Tensor:
    """Topics whose words keep their share of the corpus: (V, K), columns sum to 1.

    beta_kv is proportional to F_v p(k | v)^s p(k)^(1 - s), normalised over k for each word before F_v comes in. s is 1
    for words that lead no topic: few of those are read, and a sharper p(k | v) predicts words less well.

    Args:
        word_topics: (V, K) counts.
        tokens: (V,) F, how often each word occurs.
        sharpness: s of words that lead one; 1 leaves p(k | v) as counted.
    """
    smoothed = word_topics + eta
    topic = smoothed.sum(0) / smoothed.sum()  # (K,) p(k)
    shares = smoothed / smoothed.sum(1, keepdim=True)  # (V, K) p(k | v)
    sharp = torch.softmax(sharpness * (shares / topic).log() + topic.log(), dim=1)  # (V, K)
    frequency = (tokens + eta)[:, None]  # (V, 1)
    leads = leading(sharp * frequency, frequency)  # (V, 1)
    weights = torch.where(leads, sharp, shares) * frequency
    return weights / weights.sum(0)


def leading(weights: Tensor, frequency: Tensor) -> Tensor:
    """Words that are among the 30 best of some topic, by probability or by relevance .6: (V, 1) bool

    log beta_kv - .4 log p(v) orders the words of a topic as relevance does (Sievert & Shirley 2014, "LDAvis").

    Args:
        weights: (V, K) topics, or multiples of them.
        frequency: (V, 1)
    """
    best = min(_LEADING, len(weights))
    leads = torch.zeros_like(frequency, dtype=torch.bool)
    for ranked in (weights, weights / frequency**0.4):
        leads[ranked.topk(best, dim=0, sorted=False).indices] = True
    return leads


def tinted(beta_t: Tensor, weights: Tensor, share: float) -> Tensor:
    """Topics that have `share` of their words from some among them, which stay as they are: (V, K)

    Args:
        beta_t: (V, K) topics, columns sum to 1.
        weights: (K,) how much each of those gives to the others; 0 for the others.
    """
    words = beta_t @ (weights / weights.sum())  # (V,)
    return torch.where(weights > 0, beta_t, torch.lerp(beta_t, words[:, None], share))
