"""Collapsed variational inference for latent Dirichlet allocation: theta and beta are replaced by counts of topics.

CVB0, the zero-order collapsed variational Bayes of Asuncion, Welling, Smyth & Teh 2009, "On Smoothing and Inference for
Topic Models"; Dirichlet parameters by the fixed point of Minka 2000, "Estimating a Dirichlet distribution".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import pad

from ...distributed import current, step
from ...nn.sparse import SparseCounts, document_pieces, rows_at_once

MIN_ALPHA, MAX_ALPHA = 1e-3, 5.0  # the smallest and the largest Dirichlet parameter of a topic
SMALLEST = 1e-30  # below any product of a count and a probability
_N_TOP_WORDS = 30  # top words of a topic: a few more than most people read
_TOPICS = ("beta_t", "sizes", "smallest")
_SUMS = ("word_topics", "tokens", "alpha_numerator", "alpha_denominator")


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


@dataclass(frozen=True)
class CountingPass:
    """One pass over the documents: the topics that it uses, and the sums that it collects."""

    topics: CountedTopics  # used
    word_topics: Tensor  # (V, K) new N_vk
    tokens: Tensor  # (V,) frequency of each word
    alpha_numerator: Tensor  # (K,) of Minka's fixed point
    alpha_denominator: Tensor  # ()

    @classmethod
    def start(cls, topics: CountedTopics) -> CountingPass:
        """Return a pass whose sums are all 0."""
        zeros = torch.zeros_like(topics.beta_t)
        return cls(topics, zeros, zeros[:, 0].clone(), zeros[0].clone(), zeros.new_zeros(()))

    def of_all_ranks(self) -> CountingPass:
        """Return the pass with the sums over the documents of all ranks. It is called once, at the end of the pass."""
        current().sum_in_place([self.word_topics, self.tokens, self.alpha_numerator, self.alpha_denominator])
        return self

    def state(self) -> dict[str, Tensor]:
        """Return tensors from which `from_state` makes the same pass."""
        tensors = {name: getattr(self.topics, name) for name in _TOPICS}
        return tensors | {name: getattr(self, name) for name in _SUMS}

    @classmethod
    def from_state(cls, tensors: Mapping[str, Tensor]) -> CountingPass:
        """Return the pass that `state` describes."""
        topics = CountedTopics(*(tensors[name] for name in _TOPICS))
        return cls(topics, *(tensors[name] for name in _SUMS))


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
    """Reassign each token to the topics in proportion to its posterior, given the assignments of all other tokens.

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
        excluded: whether a token's own count is excluded from the counts of its word. A stream's do not contain it.

    Returns:
        (B, K) the new counts of the documents.
    """
    shares = doc_topics + alpha  # (B, K)
    new, per_size, ones = torch.zeros_like(doc_topics), -float(excluded) / topics.sizes, torch.ones_like(alpha)[:, None]
    step = rows_at_once(len(alpha), alpha.device)
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


def dirichlet_step(doc_topics: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
    """Return the numerator (K,) and denominator () of Minka's fixed point, alpha <- alpha * numerator / denominator.

    The numerator is the expectation over counts that are rounded up or down at random. With the smooth digamma
    function, a document with a hundredth of a token of some topic would be strong evidence for a high alpha, although
    rounding leaves most such documents without the topic.

    Args:
        doc_topics: (B, K) counts.
        alpha: (K,) Dirichlet parameter of theta.
    """
    where = doc_topics.nonzero(as_tuple=True)  # most counts are 0 after topics of tokens were drawn, and add nothing
    values, prior, total = doc_topics[where], alpha[where[1]], alpha.sum()  # (n,), (n,), ()
    whole = values.floor()
    rounded = whole + prior
    # psi(a + 1) = psi(a) + 1 / a
    rises = torch.digamma(rounded) - torch.digamma(alpha)[where[1]] + (values - whole) / rounded  # (n,)
    numerator = torch.zeros_like(alpha).index_add_(0, where[1], rises)
    return numerator, (torch.digamma(doc_topics.sum(1) + total) - torch.digamma(total)).sum()


def expected_counts(documents: SparseCounts, beta_t: Tensor, alpha: Tensor, start: Tensor, steps: int) -> Tensor:
    """Return the expected counts of topics in documents, given the topics: (B, K).

    A step of the fixed point is that of CVB0 with constant topics: gamma_dvk is proportional to
    (N_dk - gamma_dvk + alpha_dk) beta_kv, and N_dk = sum_v x_dv gamma_dvk. In a short document, a token whose own count
    were not excluded would confirm itself.

    Args:
        documents: a batch of B documents.
        beta_t: (V, K) topics.
        alpha: (K,), or (B, K) for each document.
        start: (B, K) theta to start from, rows sum to 1.
        steps: steps of the fixed point; the first one uses `start` in place of the shares.
    """
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


def sharpen(word_topics: Tensor, tokens: Tensor, sharpness: float, eta: Tensor | float) -> Tensor:
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


# The counts of topics in documents, N_dk, for so many documents that an array of all of them would be too large.

DENSE = 1 << 26  # counts: up to 256 MiB, they are an array of 32-bit numbers
KEPT = 32  # counts that are kept of each document otherwise, besides the mean of the others
_LARGEST = 65504.0  # 16-bit number
_AT_ONCE = 1 << 16  # documents


class LargestCounts:
    """An array of counts (D, K) that keeps the largest ones of each document, and the mean of the others.

    Documents of a few hundred words have tokens of a few topics, however many there are. The many small counts are
    hardly above 0 each, but without them a document would keep to the topics that it has.

    Rows are read and written as those of a tensor: `counts[rows]` is (B, K) float32.

    Args:
        topics: (D, n) the topics of the kept counts, of a type of whole numbers.
        values: (D, n + 1) float16, the counts, and the mean of the other counts of the document.
        n_topics: the number of topics K.
    """

    def __init__(self, topics: Tensor, values: Tensor, n_topics: int) -> None:
        self.topics, self.values, self.n_topics = topics, values, n_topics

    @classmethod
    def zeros(cls, n_docs: int, n_topics: int, device: torch.device) -> LargestCounts:
        """Return counts that are all 0."""
        n_kept = min(KEPT, n_topics)
        number = torch.int16 if n_topics < 1 << 15 else torch.int32
        return cls(
            torch.zeros(n_docs, n_kept, dtype=number, device=device),
            torch.zeros(n_docs, n_kept + 1, dtype=torch.float16, device=device),
            n_topics,
        )

    def __len__(self) -> int:
        return len(self.values)

    @property
    def shape(self) -> tuple[int, int]:
        """(D, K)."""
        return len(self), self.n_topics

    def __getitem__(self, rows: Tensor | None) -> Tensor:
        assert rows is not None  # documents without rows are in no corpus
        values = self.values[rows].float()  # (B, n + 1)
        others = values[:, -1:]
        counts = others.expand(-1, self.n_topics).clone()  # (B, K)
        return counts.scatter_add_(1, self.topics[rows].long(), values[:, :-1] - others).clamp_min_(0)

    def __setitem__(self, rows: Tensor | None, counts: Tensor) -> None:
        assert rows is not None
        places = self.topics.shape[1]
        values, topics = counts.topk(min(places, self.n_topics), dim=1, sorted=False)
        n_others = self.n_topics - values.shape[1]
        rest = (counts.sum(1, keepdim=True) - values.sum(1, keepdim=True)).clamp_min_(0)
        unused = (0, places - values.shape[1])
        stored = torch.cat([pad(values, unused), rest / max(1, n_others)], dim=1)  # (B, n + 1)
        self.values[rows] = stored.clamp_max_(_LARGEST).half()
        self.topics[rows] = pad(topics.to(self.topics.dtype), unused)

    def select(self, which: Tensor) -> LargestCounts:
        """Return the counts of some topics (m,), in their order, which replace these. Those of the others are lost."""
        place = torch.full((self.n_topics,), -1, dtype=self.topics.dtype, device=which.device)
        place[which] = torch.arange(len(which), dtype=place.dtype, device=which.device)
        new = LargestCounts(self.topics, self.values, len(which))
        for start in range(0, len(self), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            topics, values = place[self.topics[part].int()], self.values[part]
            values[:, :-1] = values[:, :-1].where(topics >= 0, values[:, -1:])  # as much as any other topic has
            self.topics[part] = topics.clamp_min_(0)
        return new


DocumentCounts: TypeAlias = Tensor | LargestCounts  # (D, K) N_dk


def zero_counts(n_docs: int, n_topics: int, device: torch.device) -> DocumentCounts:
    """Return counts (D, K) that are all 0: a tensor if it is not too large, and `LargestCounts` otherwise."""
    if n_docs * n_topics > DENSE:
        return LargestCounts.zeros(n_docs, n_topics, device)
    return torch.zeros(n_docs, n_topics, device=device)


def select(counts: DocumentCounts, which: Tensor) -> DocumentCounts:
    """Return the counts of some topics (m,), (D, K) -> (D, m)."""
    return counts.select(which) if isinstance(counts, LargestCounts) else counts[:, which]


def tensors_of(counts: DocumentCounts | None) -> dict[str, Tensor]:
    """Return tensors by name, from which `from_tensors` makes the same counts."""
    if isinstance(counts, LargestCounts):
        return {"document_topics": counts.topics, "document_counts": counts.values}
    return {} if counts is None else {"document_topics": counts}


def from_tensors(tensors: Mapping[str, Tensor], n_topics: int) -> DocumentCounts | None:
    """Return the counts of `tensors_of`, of so many topics."""
    if "document_counts" in tensors:
        return LargestCounts(tensors["document_topics"], tensors["document_counts"], n_topics)
    return tensors.get("document_topics")
