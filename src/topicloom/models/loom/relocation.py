"""Relocation of topics: if two topics are nearly equal, one of them starts again at words that no topic explains.

Sometimes a large topic of the texts is divided among several topics of the model, and rare topics have none. A sampler
seldom leaves such a state, because moving a single token to another topic makes nothing more likely. Here, nearly equal
topics are joined. Each topic that becomes free starts again from the component whose addition to the mixture raises the
likelihood most, as in greedy learning of mixtures (Verbeek, Vlassis & Krose 2003, "Efficient Greedy Learning of
Gaussian Mixture Models").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from ...distributed import current
from ...nn.execution import run_on_threads
from ...nn.posteriors import kl_dirichlet
from ...nn.sparse import TINY, Batch, SparseCounts, members_of, rows_at_once
from ...training.batches import BatchReader
from .cvb0 import MAX_ALPHA, CountedTopics, expected_counts
from .sampling import Assignments, SamplingStage

# When topics are relocated.
_MOMENTS = (1 / 8, 1 / 4, 3 / 8)  # shares of the sampling passes after which topics are relocated
_MIN_PASSES = 24  # the fewest sampling passes with relocation, because a topic that starts again needs some

# Which topics are copies.
_MIN_SIMILARITY = 0.65  # topics are different if sum_v sqrt(beta_kv beta_lv) is lower
_N_PARTNERS = 4  # similar topics with which each topic is compared; copies of copies are also joined
_N_PREDICTED, _PREDICTED_SHARE = 1 << 11, 0.2  # upper bounds of the documents whose words are predicted
_MIN_PREDICTED = 20  # the fewest documents whose words are predicted
_PREDICTION_STEPS = 10  # steps that infer the topics of these documents
_NATS_PER_TOKEN = 0.02  # two copies gain less than this; two topics that share 70 % of their words gain .07 or more
_MIN_CHANGE = -1 + 1e-6  # the least relative change of the probability of a word

# Where a free topic starts.
_N_SEARCHED = 1 << 14  # documents in which new topics are sought
_DOCUMENTS_PER_UNLIKELY = 10  # a new topic is fitted to the least likely tenth of the documents
_N_CANDIDATES = 8  # documents from which a new topic may start
_INITIAL_SHARE = 0.1  # the new topic's share of each document before the first step
_FIT_STEPS = 20  # steps that fit a new topic
_KNOWN_TOPICS_STEPS = 20  # steps that infer the other topics of these documents
_ALL_TOPICS_STEPS = 5  # steps that infer all topics before tokens are given to new ones
_ROUNDING = 0.999  # a rounded sum of products is too large by at most this factor
_ALPHA = 0.05  # Dirichlet parameter; documents have a large share of a topic or none
_SMOOTHING = 0.01  # tokens per word of the vocabulary, with the frequencies of the corpus, that a new topic gets

_DOCUMENTS_AT_ONCE = 2048  # documents in a batch; large batches are inferred faster
_TOKENS_AT_ONCE = 1 << 20


class Relocation:
    """Joins topics that are nearly equal. The topics that become free start again at other words.

    Args:
        documents: the training documents.
    """

    def __init__(self, documents: BatchReader) -> None:
        self.documents = documents.with_batches_of(_DOCUMENTS_AT_ONCE * current().size)

    def is_due(self, stage: SamplingStage) -> bool:
        """Return whether topics are relocated after the pass that a sampling stage has ended."""
        moments = [round(share * stage.n_passes) for share in _MOMENTS]
        return stage.n_passes >= _MIN_PASSES and stage.passes_done in moments and stage.mean_counts is None

    def apply(self, word_topics: Tensor, alpha: Tensor, eta: Tensor, seed_counts: Tensor, stage: SamplingStage) -> None:
        """Relocate topics, if some are nearly equal.

        Args:
            word_topics: (V, K) N_vk. It is changed in place.
            alpha: (K,) Dirichlet parameter of theta. It is changed in place.
            eta: () Dirichlet parameter of the topics.
            seed_counts: (V, K) counts that words have in topics from the start. A topic with such counts stays.
            stage: the sampling stage. Its topics of tokens are changed in place.
        """
        assert stage.assignments is not None
        counts = word_topics + seed_counts
        pairs = current().of_first(alike(counts)).nonzero()  # (n, 2)
        copies = pairs[self._are_copies(pairs, counts, alpha, eta, stage, stage.assignments)]
        joined = current().of_first(joined_topics(copies, counts.sum(0), seed_counts.any(0)))  # (K,)
        numbers, left = torch.arange(len(joined), device=joined.device), joined.unique()
        if len(left) == len(joined):
            return
        free = numbers[joined != numbers]  # (n,)
        for part in stage.assignments.topics.split(_TOKENS_AT_ONCE):
            part.copy_(joined[part.long()])
        del counts
        word_topics.copy_(torch.zeros_like(word_topics).index_add_(1, joined, word_topics))
        alpha.copy_(torch.zeros_like(alpha).index_add_(0, joined, alpha)).clamp_(max=MAX_ALPHA)
        topics = CountedTopics.from_counts(word_topics + seed_counts, eta).beta_t  # (V, K)
        topics[:, free] = current().of_first(self._new_topics(topics[:, left], len(free)))
        alpha[free] = _ALPHA
        word_topics.add_(self._give_tokens(topics, free, stage, stage.assignments)).clamp_min_(0)

    def _are_copies(
        self, pairs: Tensor, counts: Tensor, alpha: Tensor, eta: Tensor, stage: SamplingStage, assignments: Assignments
    ) -> Tensor:
        """Return whether one topic predicts words as well as the two topics of each pair (n, 2): (n,) bool.

        The topics are computed without a sample of documents. Half of the words of the sample predict the other half.
        The log likelihood of the other half may fall by one standard error, or by .02 nats for each token of the
        smaller topic.
        """
        n_docs = min(_N_PREDICTED, int(_PREDICTED_SHARE * self.documents.n_docs_of_all))
        if n_docs < _MIN_PREDICTED or not len(pairs):
            return torch.zeros(len(pairs), dtype=torch.bool, device=pairs.device)
        batch = self.documents.own_sample(n_docs)
        left = self._counts_without(batch, counts, stage, assignments)  # (V, K)
        sums, sizes = left.new_zeros(len(pairs), 2), torch.zeros_like(alpha)
        if batch.n_docs:  # a rank may have none of the sample
            beta_t = CountedTopics.from_counts(left, eta).beta_t
            # Words take turns, so that the halves of a document depend neither on other documents nor on its rank.
            places = torch.arange(len(batch.counts.indices), device=alpha.device)  # (N,)
            given, scored = batch.counts.divided((places - batch.counts.offsets[batch.counts.documents]) % 2 == 0)
            theta = self._inferred(given, beta_t, alpha, _PREDICTION_STEPS)  # (B, K)
            likely, sizes = scored.sampled_product(theta, beta_t) + TINY, scored.totals @ theta  # (N,), (K,)
            for number, pair in enumerate(pairs.tolist()):
                joint = CountedTopics.from_counts(left[:, pair].sum(1, keepdim=True), eta).beta_t[:, 0]  # (V,)
                shares, separate = theta[:, pair][scored.documents], beta_t[:, pair][scored.indices]  # (N, 2) each
                change = (shares * (joint[scored.indices, None] - separate)).sum(1) / likely  # (N,)
                changes = scored.sum_by_document(scored.values * change.clamp_min(_MIN_CHANGE).log1p())  # (B,)
                sums[number] = torch.stack([changes.sum(), changes.square().sum()])
        (total, squares), sizes = current().sum(sums).unbind(1), current().sum(sizes)  # (n,) each, (K,)
        return total >= -torch.maximum(squares.sqrt(), _NATS_PER_TOKEN * sizes[pairs].amin(1))

    @staticmethod
    def _counts_without(batch: Batch, counts: Tensor, stage: SamplingStage, assignments: Assignments) -> Tensor:
        """Return counts (V, K) without those of a batch of documents, on all ranks."""
        assert batch.rows is not None
        tokens, weights = stage.tokens(batch.counts)  # (N,) each
        words, weights = (each.repeat_interleave(tokens) for each in (batch.counts.indices, weights))  # (T,) each
        topics = assignments.topics[assignments.places(batch.rows)].long()  # (T,)
        own = torch.zeros_like(counts)
        own.view(-1).index_add_(0, words * counts.shape[1] + topics, weights)  # in the same order, see `_give_tokens`
        return (counts - current().sum(own)).clamp_min_(0)

    def _new_topics(self, known: Tensor, n_topics: int) -> Tensor:
        """Return new topics (V, n_topics) beside those that are known (V, K)."""
        documents = self.documents.sample_of_all(_N_SEARCHED).counts
        return find_topics(documents, self._theta(documents, known, _KNOWN_TOPICS_STEPS), known, n_topics)

    def _theta(self, documents: SparseCounts, beta_t: Tensor, steps: int) -> Tensor:
        """Return the shares of topics (V, K) that explain documents best by few topics each: (B, K)."""
        start = torch.full((documents.n_docs, beta_t.shape[1]), 1 / beta_t.shape[1], device=beta_t.device)
        alpha = start.new_full((beta_t.shape[1],), _ALPHA)
        counts = expected_counts(documents, beta_t, alpha, start, steps)
        return counts / counts.sum(1, keepdim=True).clamp_min(TINY)

    def _inferred(self, documents: SparseCounts, beta_t: Tensor, alpha: Tensor, steps: int) -> Tensor:
        """Return the mean shares of topics (V, K) in documents, given the Dirichlet parameter (K,): (B, K)."""
        start = (alpha / alpha.sum()).repeat(documents.n_docs, 1)
        posterior = alpha + expected_counts(documents, beta_t, alpha, start, steps)
        return posterior / posterior.sum(1, keepdim=True)

    def _give_tokens(self, topics: Tensor, new: Tensor, stage: SamplingStage, assignments: Assignments) -> Tensor:
        """Give tokens to new topics if these are the most probable ones, and return the change of N_vk, (V, K).

        Args:
            topics: (V, K) the topics, columns sum to 1.
            new: (n,) the indices of the new topics.
            stage: the sampling stage.
            assignments: the topics of tokens. They are changed in place.
        """
        change, step = topics.new_zeros(topics.shape), rows_at_once(topics.shape[1], topics.device)
        new_topics = topics[:, new]  # (V, n)
        for batch in self.documents:
            if not batch.n_docs:  # a rank may have fewer documents than there are batches
                continue
            assert batch.rows is not None
            counts, theta = batch.counts, self._theta(batch.counts, topics, _ALL_TOPICS_STEPS)  # (B, K)
            docs, words = counts.documents, counts.indices  # (N,) each
            parts = zip(docs.split(step), words.split(step), strict=True)
            shares = theta[:, new]  # (B, n)
            found = [(shares[rows] * new_topics[columns]).max(1) for rows, columns in parts]
            own, which = (torch.cat(each) for each in zip(*found, strict=True))  # (N,) each
            # The most probable topic has at least the mean of all. This excludes most words at little cost.
            is_new = own * topics.shape[1] >= _ROUNDING * counts.sampled_product(theta, topics)  # (N,)
            for some in is_new.nonzero()[:, 0].split(step):
                is_new[some] = own[some] >= (theta[docs[some]] * topics[words[some]]).amax(1)  # (n, K) -> (n,)
            tokens, weights = stage.tokens(counts)  # (N,) each
            given = is_new.repeat_interleave(tokens)  # (T,)
            words, best, weights = (each.repeat_interleave(tokens)[given] for each in (words, new[which], weights))
            places = assignments.places(batch.rows)[given]
            # Sums in one dimension do not depend on the number of threads.
            changes, first = change.view(-1), words * topics.shape[1]
            changes.index_add_(0, first + assignments.topics[places].long(), weights, alpha=-1)
            changes.index_add_(0, first + best, weights)
            assignments.topics[places] = best.to(assignments.topics)
        return current().sum(change)


def alike(word_topics: Tensor) -> Tensor:
    """Return which pairs of topics (V, K) have similar words, at most four for each topic: (K, K) bool, k < l.

    Topics without tokens are similar to none.
    """
    roots = (word_topics / word_topics.sum(0).clamp_min(TINY)).sqrt()
    similarity = (roots.mT @ roots).fill_diagonal_(0)
    best = similarity.topk(min(_N_PARTNERS, len(similarity)), dim=1)
    pairs = torch.zeros_like(similarity, dtype=torch.bool).scatter_(1, best.indices, best.values > _MIN_SIMILARITY)
    return (pairs | pairs.mT).triu(1)


def joined_topics(pairs: Tensor, sizes: Tensor, protected: Tensor) -> Tensor:
    """Return the topic that each topic becomes when pairs of them are joined, (K,) int64.

    Args:
        pairs: (n, 2) topics; the smaller one joins the larger one.
        sizes: (K,) the tokens of the topics.
        protected: (K,) bool, topics that stay.
    """
    heirs = torch.arange(len(sizes), device=sizes.device)
    rank = (sizes + protected * (sizes.sum() + 1)).tolist()
    for pair in pairs:
        stays, goes = sorted(heirs[pair].tolist(), key=rank.__getitem__, reverse=True)
        if not protected[goes]:
            heirs[heirs == goes] = stays
    return heirs


def find_topics(documents: SparseCounts, theta: Tensor, beta_t: Tensor, n_topics: int) -> Tensor:
    """Return new topics for documents that the known topics explain badly: (V, n_topics), columns sum to 1.

    Topics are added one after the other. Candidates start from the documents that are least likely compared with others
    of the same topics. The chosen candidate raises the bound most, relative to its tokens, when it is added to the
    mixture. Only the least likely tenth of the documents may have the new topic. Otherwise it would become a copy of a
    large topic.

    Args:
        documents: the counts of B documents.
        theta: (B, K) their topics.
        beta_t: (V, K) the known topics, columns sum to 1.
        n_topics: the number of new topics.
    """
    explained = documents.sampled_product(theta, beta_t) + TINY  # (N,) p(w | d)
    frequency = torch.zeros_like(beta_t[:, 0]).index_add_(0, documents.indices, documents.values)
    found = []
    for _ in range(n_topics):
        surprise = _surprise(documents, theta, explained)  # (B,)
        rows = surprise.topk(max(1, documents.n_docs // _DOCUMENTS_PER_UNLIKELY)).indices
        places = members_of(documents.offsets[rows], documents.offsets.diff()[rows])
        some = documents.take(rows)
        fit = partial(_Addition.fitted, some, explained[places], frequency / frequency.sum())
        best = max(_all_of(fit, min(_N_CANDIDATES, len(rows))), key=lambda addition: addition.rise)
        found.append(best.topic)
        explained[places] = best.explained
    return torch.stack(found, 1)


def _all_of(function: Callable[[int], _Addition], n: int) -> list[_Addition]:
    """Return the results of a function for 0 to n - 1, computed in parallel."""
    found: dict[int, _Addition] = {}

    def store(number: int) -> None:
        found[number] = function(number)

    run_on_threads([partial(store, number) for number in range(n)])
    return [found[number] for number in range(n)]


def _surprise(documents: SparseCounts, theta: Tensor, explained: Tensor) -> Tensor:
    """Return how much less likely documents are than others of the same topics: (B,) nats / sqrt(tokens).

    Args:
        documents: the counts of B documents.
        theta: (B, K) their topics.
        explained: (N,) the probability of each word.
    """
    likelihood, totals = documents.sum_by_document(documents.values * explained.log()), documents.totals  # (B,) each
    of_topics = (theta.mT @ likelihood) / (theta.mT @ totals).clamp_min(TINY)  # (K,) of a token
    return ((theta @ of_topics) * totals - likelihood) / totals.clamp_min(1).sqrt()


@dataclass(frozen=True)
class _Addition:
    """A topic that is added to the mixtures of documents.

    Attributes:
        topic: (V,) its distribution over the words.
        explained: (N,) the probability of each word with it.
        rise: the rise of the variational bound, in nats for each token of the topic.
    """

    topic: Tensor
    explained: Tensor
    rise: float

    @classmethod
    def fitted(cls, documents: SparseCounts, explained: Tensor, frequency: Tensor, first: int) -> _Addition:
        """Return a topic that is fitted to documents, starting from the words of one of them.

        The share of the topic in a document has the prior Beta(_ALPHA, 1).

        Args:
            documents: the counts of B documents.
            explained: (N,) the probability of each word without the topic.
            frequency: (V,) the frequencies of the words in all documents.
            first: the row of the document.
        """
        values, words, docs = documents.values, documents.indices, documents.documents
        topic = _distribution(values * (docs == first), words, frequency)
        own = _INITIAL_SHARE * documents.totals  # (B,) tokens of the topic
        for _ in range(_FIT_STEPS):
            shares = torch.stack([own + _ALPHA, documents.totals - own + 1], 1)  # (B, 2) of the posterior
            new, old = (torch.digamma(shares) - torch.digamma(shares.sum(1, keepdim=True))).exp()[docs].unbind(1)
            new, old = new * topic[words], old * explained  # (N,) each
            own = documents.sum_by_document(values * new / (new + old))
            topic = _distribution(values * new / (new + old), words, frequency)
        prior = torch.tensor([_ALPHA, 1.0], device=own.device)
        bound = (values * ((new + old) / explained).log()).sum() - kl_dirichlet(shares, prior).sum()
        share = (own / documents.totals.clamp_min(TINY))[docs]  # (N,)
        mixed = share * topic[words] + (1 - share) * explained
        return cls(topic, mixed, float(bound / own.sum()))


def _distribution(weights: Tensor, words: Tensor, frequency: Tensor) -> Tensor:
    """Return the distribution (V,) of weighted words (N,), with some tokens of the corpus's frequencies."""
    counts = torch.zeros_like(frequency).index_add_(0, words, weights) + _SMOOTHING * len(frequency) * frequency
    return counts / counts.sum()
