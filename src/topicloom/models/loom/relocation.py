"""Relocation of topics: one of two similar topics starts again where it explains more words.

Sometimes a large topic of the texts is divided among several topics of the model, and rare topics have none. A sampler
seldom leaves such a state, because moving a single token to another topic makes nothing more likely. Here, nearly equal
topics are joined. Each topic that becomes free starts again from the component whose addition to the mixture raises the
likelihood most, as in greedy learning of mixtures (Verbeek, Vlassis & Krose 2003, "Efficient Greedy Learning of
Gaussian Mixture Models").

Or one topic has two subjects of the texts, and two other topics share one. Then these two are joined, and the first one
is divided (Ueda, Nakano, Ghahramani & Hinton 2000, "SMEM Algorithm for Mixture Models").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from ...distributed import current
from ...nn.execution import run_on_threads
from ...nn.posteriors import kl_dirichlet
from ...nn.sparse import TINY, Batch, SparseCounts, members_of, rows_at_once
from ...training.batches import BatchReader
from .cvb0 import MAX_ALPHA, MIN_ALPHA, CountedTopics, expected_counts
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

# Which topics are joined while another one is divided.
_N_COMPARED, _PREDICTED_EVERY = 1 << 13, 5  # documents; the words of every fifth of them are predicted
_MIN_ERRORS = 4.0  # a division gains more than this many standard errors
_MAX_DIVIDED = 32  # with more topics, none is divided: each takes time, and with 50 nothing was gained
_MIN_GAINS = 0.8, 0.4  # what a division gains, relative to what is lost where topics are joined, in all and by token
_MIN_HALF = 0.1  # the least share of the smaller half of a topic
_N_DIVISIONS, _FIRST_STEPS, _LAST_STEPS = 4, 5, 10  # random starts of a division, steps of each, and of the best one
_MIN_SHARE = 0.1  # a document with a smaller share of the topic is not used
_MIN_DIVIDED = 40  # the fewest documents by which a topic is divided

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


@dataclass(frozen=True)
class _Sampled:
    """The topics of a sampling stage, which relocation changes in place.

    Attributes:
        word_topics: (V, K) N_vk.
        alpha: (K,) Dirichlet parameter of theta.
        eta: () Dirichlet parameter of the topics.
        seed_counts: (V, K) counts that words have in topics from the start. A topic with such counts stays.
        stage: the sampling stage.
        assignments: the topics of tokens.
    """

    word_topics: Tensor
    alpha: Tensor
    eta: Tensor
    seed_counts: Tensor
    stage: SamplingStage
    assignments: Assignments

    @property
    def counts(self) -> Tensor:
        """N_vk with the counts of seed words, (V, K)."""
        return self.word_topics + self.seed_counts

    def topics(self) -> Tensor:
        """Return the topics (V, K), columns sum to 1."""
        return CountedTopics.from_counts(self.counts, self.eta).beta_t

    def join(self, joined: Tensor) -> None:
        """Give the tokens and alpha of each topic to the topic that it becomes, (K,) int64."""
        for part in self.assignments.topics.split(_TOKENS_AT_ONCE):
            part.copy_(joined[part.long()])
        self.word_topics.copy_(torch.zeros_like(self.word_topics).index_add_(1, joined, self.word_topics))
        self.alpha.copy_(torch.zeros_like(self.alpha).index_add_(0, joined, self.alpha)).clamp_(max=MAX_ALPHA)


class Relocation:
    """Joins topics that are nearly equal, or two topics where another is divided. Free topics start again elsewhere.

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
        """Join topics that are nearly equal, then those whose joining lets another topic be divided with more gain.

        Args:
            word_topics: (V, K) N_vk. It is changed in place.
            alpha: (K,) Dirichlet parameter of theta. It is changed in place.
            eta: () Dirichlet parameter of the topics.
            seed_counts: (V, K) counts that words have in topics from the start. A topic with such counts stays.
            stage: the sampling stage. Its topics of tokens are changed in place.
        """
        assert stage.assignments is not None
        sampled = _Sampled(word_topics, alpha, eta, seed_counts, stage, stage.assignments)
        self._join_copies(sampled)
        if len(alpha) <= _MAX_DIVIDED:
            self._split_and_merge(sampled)

    def _join_copies(self, sampled: _Sampled) -> None:
        """Join topics that are nearly equal. Each topic that becomes free starts again at other words."""
        counts, alpha, stage, assignments = sampled.counts, sampled.alpha, sampled.stage, sampled.assignments
        pairs = current().of_first(alike(counts)).nonzero()  # (n, 2)
        copies = pairs[self._are_copies(pairs, counts, alpha, sampled.eta, stage, assignments)]
        joined = current().of_first(joined_topics(copies, counts.sum(0), sampled.seed_counts.any(0)))  # (K,)
        numbers, left = torch.arange(len(joined), device=joined.device), joined.unique()
        if len(left) == len(joined):
            return
        free = numbers[joined != numbers]  # (n,)
        del counts
        sampled.join(joined)
        topics = sampled.topics()  # (V, K)
        topics[:, free] = current().of_first(self._new_topics(topics[:, left], len(free)))
        alpha[free] = _ALPHA
        sampled.word_topics.add_(self._give_tokens(topics, free, stage, assignments)).clamp_min_(0)

    def _split_and_merge(self, sampled: _Sampled) -> None:
        """Join a pair of topics and divide another topic, where that predicts words nearly as well or better.

        The halves of a topic are known only roughly, and the next passes improve them. So the division may gain a
        little less than the pair loses. The loss and the gain are also compared by token, of the smaller topic of the
        pair and of the smaller half. So a rare topic is not given up for a common one.
        """
        counts, alpha = sampled.counts, sampled.alpha
        held, others = self._compared()
        left = self._counts_without(held, counts, sampled.stage, sampled.assignments)  # (V, K)
        beta_t = CountedTopics.from_counts(left, sampled.eta).beta_t
        halves = current().of_first(self._halves(others, beta_t))  # (V, 2, K)
        pairs = current().of_first(alike(counts, 0.0)).nonzero()  # (n, 2)
        joining, dividing = self._changes(held, beta_t, alpha, left, sampled.eta, pairs, halves)

        is_seeded, sizes, shares = sampled.seed_counts.any(0), left.sum(0), halves.sum(0)  # (K,), (K,), (2, K)
        is_whole = (halves[:, 0] == halves[:, 1]).all(0)  # (K,) topics without two different halves
        losses = torch.where(is_seeded[pairs].any(1), torch.inf, -joining)
        gains = torch.where(is_seeded | is_whole, 0, dividing)
        loss_of_token = losses / sizes[pairs].amin(1).clamp_min(TINY)
        gain_of_token = gains / (sizes * shares.amin(0)).clamp_min(TINY)
        for pair, topic in _exchanges(pairs, (losses, loss_of_token), (gains, gain_of_token)):
            stays, free = sorted(pair, key=lambda each: float(-sizes[each]))
            joined = torch.arange(len(alpha), device=alpha.device)
            joined[free] = stays
            sampled.join(joined)
            topics = sampled.topics()  # (V, K)
            topics[:, [topic, free]] = halves[:, :, topic] / shares[:, topic]
            alpha[[topic, free]] = (alpha[topic] * shares[:, topic]).clamp_min(MIN_ALPHA)
            given = self._give_tokens(topics, joined.new_tensor([free]), sampled.stage, sampled.assignments)
            sampled.word_topics.add_(given).clamp_min_(0)

    def _compared(self) -> tuple[Batch, SparseCounts]:
        """Return the documents of this rank whose words are predicted, and the other documents of the sample."""
        own = self.documents.own_sample(_N_COMPARED)
        first = sum(current().every(own.n_docs)[: current().rank])
        rows = torch.arange(-first % _PREDICTED_EVERY, own.n_docs, _PREDICTED_EVERY, device=own.device)
        assert own.rows is not None
        every = self.documents.sample_of_all(_N_COMPARED).counts
        others = torch.arange(every.n_docs, device=own.device)
        return Batch(own.counts.take(rows), own.rows[rows]), every.take(others[others % _PREDICTED_EVERY != 0])

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
            given, scored = _in_turns(batch.counts)
            theta = self._inferred(given, beta_t, alpha, _PREDICTION_STEPS)  # (B, K)
            likely, sizes = scored.sampled_product(theta, beta_t) + TINY, scored.totals @ theta  # (N,), (K,)
            for number, changes in enumerate(_joining(pairs, left, eta, beta_t, theta, scored, likely)):
                sums[number] = torch.stack([changes.sum(), changes.square().sum()])
        (total, squares), sizes = current().sum(sums).unbind(1), current().sum(sizes)  # (n,) each, (K,)
        return total >= -torch.maximum(squares.sqrt(), _NATS_PER_TOKEN * sizes[pairs].amin(1))

    def _changes(
        self,
        held: Batch,
        beta_t: Tensor,
        alpha: Tensor,
        left: Tensor,
        eta: Tensor,
        pairs: Tensor,
        halves: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Return by how much joined and divided topics change the log likelihood of half of the words of documents.

        The other half of the words is given.

        Args:
            held: the documents.
            beta_t: (V, K) topics that are counted without these documents, columns sum to 1.
            alpha: (K,) Dirichlet parameter of theta.
            left: (V, K) the counts of these topics.
            eta: () Dirichlet parameter of the topics.
            pairs: (n, 2) the topics that are joined.
            halves: (V, 2, K) the halves of each topic, which add up to it.

        Returns:
            (n,) changes by joining, and (K,) changes by dividing, in nats.
        """
        joining, dividing = beta_t.new_zeros(len(pairs)), beta_t.new_zeros(len(alpha), 2)
        if held.n_docs:  # a rank may have none of the sample
            given, scored = _in_turns(held.counts)
            theta = self._inferred(given, beta_t, alpha, _PREDICTION_STEPS)  # (B, K)
            likely = scored.sampled_product(theta, beta_t) + TINY  # (N,)
            for number, changes in enumerate(_joining(pairs, left, eta, beta_t, theta, scored, likely)):
                joining[number] = changes.sum()
            known = given.values / (given.sampled_product(theta, beta_t) + TINY)  # (N',)
            docs, words = scored.documents, scored.indices  # (N,) each
            for topic, own in enumerate(theta.unbind(1)):  # (B,)
                tokens = known * own[given.documents] * beta_t[given.indices, topic]  # (N',) of the topic
                parts = halves[:, :, topic]  # (V, 2)
                chances = _cluster_scores(given.with_values(tokens), parts[:, None])[:, 0].softmax(1)  # (B, 2)
                divided = (chances[docs] * (parts / parts.sum(0))[words]).sum(1)  # (N,) p(word | topic)
                changes = _change(own[docs] * (divided - beta_t[words, topic]), scored, likely)  # (B,)
                dividing[topic] = torch.stack([changes.sum(), changes.square().sum()])
        total, squares = current().sum(dividing).unbind(1)  # (K,) each
        return current().sum(joining), torch.where(total > _MIN_ERRORS * squares.sqrt(), total, 0)

    def _halves(self, documents: SparseCounts, beta_t: Tensor) -> Tensor:
        """Return two parts of each topic (V, K), which add up to it: (V, 2, K).

        The tokens that documents have of a topic are divided into two clusters of documents by a mixture of
        multinomial distributions, which starts from two documents. Topics that cannot be divided have two equal halves.
        """
        theta = self._theta(documents, beta_t, _KNOWN_TOPICS_STEPS)  # (B, K)
        likely = documents.values / (documents.sampled_product(theta, beta_t) + TINY)  # (N,)
        halves, generator = (beta_t / 2)[:, None].repeat(1, 2, 1), torch.Generator().manual_seed(0)
        for topic in range(beta_t.shape[1]):
            rows = (theta[:, topic] > _MIN_SHARE).nonzero()[:, 0]
            if len(rows) < _MIN_DIVIDED:
                continue
            some = documents.take(rows)
            places = members_of(documents.offsets[rows], documents.offsets.diff()[rows])
            tokens = likely[places] * theta[rows, topic][some.documents] * beta_t[some.indices, topic]  # (N',)
            divided = partial(_in_two_clusters, some.with_values(tokens), beta_t[:, topic])
            starts = torch.randint(len(rows), (_N_DIVISIONS, 2), generator=generator).to(rows.device)
            first = F.one_hot(starts, len(rows)).to(tokens).permute(2, 0, 1)  # (B', n, 2)
            _, chances, likelihood = divided(first, _FIRST_STEPS)
            parts = divided(chances[:, [int(likelihood.argmax())]], _LAST_STEPS)[0][:, 0]  # (V, 2)
            parts = beta_t[:, [topic]] * parts / parts.sum(1, keepdim=True)
            if parts.sum(0).min() >= _MIN_HALF:
                halves[:, :, topic] = parts
        return halves

    @staticmethod
    def _counts_without(batch: Batch, counts: Tensor, stage: SamplingStage, assignments: Assignments) -> Tensor:
        """Return counts (V, K) without those of a batch of documents, on all ranks."""
        assert batch.rows is not None
        tokens, weights = stage.tokens(batch.counts)  # (N,) each
        words, weights = (each.repeat_interleave(tokens) for each in (batch.counts.indices, weights))  # (T,) each
        topics = assignments.topics[assignments.places(batch.rows)].long()  # (T,)
        own = torch.zeros(counts.shape, device=counts.device)
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


def _in_turns(counts: SparseCounts) -> tuple[SparseCounts, SparseCounts]:
    """Return documents with every second word, and with the others.

    Words take turns, so that the halves of a document depend neither on other documents nor on its rank.
    """
    places = torch.arange(len(counts.indices), device=counts.device)  # (N,)
    return counts.divided((places - counts.offsets[counts.documents]) % 2 == 0)


def _joining(
    pairs: Tensor, left: Tensor, eta: Tensor, beta_t: Tensor, theta: Tensor, scored: SparseCounts, likely: Tensor
) -> Iterator[Tensor]:
    """Yield the change of the log likelihood of documents if topics are joined, (B,) for each pair.

    Args:
        pairs: (n, 2) topics.
        left: (V, K) the counts of the topics.
        eta: () Dirichlet parameter of the topics.
        beta_t: (V, K) the topics, columns sum to 1.
        theta: (B, K) their shares.
        scored: the words of the documents.
        likely: (N,) the probability of each word.
    """
    for pair in pairs.tolist():
        joint = CountedTopics.from_counts(left[:, pair].sum(1, keepdim=True), eta).beta_t[:, 0]  # (V,)
        shares, separate = theta[:, pair][scored.documents], beta_t[:, pair][scored.indices]  # (N, 2) each
        yield _change((shares * (joint[scored.indices, None] - separate)).sum(1), scored, likely)


def _change(difference: Tensor, scored: SparseCounts, likely: Tensor) -> Tensor:
    """Return the change of the log likelihood of documents, (B,), given p of each word (N,) and its change (N,)."""
    return scored.sum_by_document(scored.values * (difference / likely).clamp_min(_MIN_CHANGE).log1p())


def _cluster_scores(documents: SparseCounts, clusters: Tensor) -> Tensor:
    """Return log p(words of document, cluster) for n mixtures of clusters with counts of words (V, n, 2): (B, n, 2)."""
    sizes = clusters.sum(0)  # (n, 2)
    words = (clusters / sizes + TINY).log()  # (V, n, 2)
    scores = documents.times(documents.values, words.flatten(1)).view(-1, *sizes.shape)  # (B, n, 2)
    return scores + (sizes / sizes.sum(1, keepdim=True)).log()


def _in_two_clusters(
    documents: SparseCounts, topic: Tensor, chances: Tensor, steps: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Divide documents into two clusters by steps of expectation maximisation, from n starts.

    Args:
        documents: weighted tokens of B documents.
        topic: (V,) the distribution with which both clusters are smoothed.
        chances: (B, n, 2) the probability of the clusters at first.
        steps: the number of steps, at least 1.

    Returns:
        (V, n, 2) the tokens of the clusters, smoothed; (B, n, 2) the probability of the clusters; and (n,) the log
        likelihood.
    """
    prior = (_SMOOTHING * len(topic) * topic)[:, None, None]  # (V, 1, 1)
    clusters = scores = prior
    for _ in range(steps):
        tokens = documents.transposed_times(documents.values, chances.flatten(1))  # (V, 2 n)
        clusters = tokens.view(-1, *chances.shape[1:]) + prior  # (V, n, 2)
        scores = _cluster_scores(documents, clusters)  # (B, n, 2)
        chances = scores.softmax(2)
    return clusters, chances, scores.logsumexp(2).sum(0)


def _exchanges(
    pairs: Tensor, losses: tuple[Tensor, Tensor], gains: tuple[Tensor, Tensor]
) -> list[tuple[list[int], int]]:
    """Return pairs of topics that are joined, each with the topic that is divided. No topic is in two of them.

    Args:
        pairs: (n, 2) topics.
        losses: (n,) what is lost if they are joined, in all and for each token.
        gains: (K,) what is gained if a topic is divided, in all and for each token.
    """
    worth = gains[0] - losses[0][:, None]  # (n, K)
    for loss, gain, least in zip(losses, gains, _MIN_GAINS, strict=True):
        worth[gain < least * loss[:, None]] = -torch.inf
    worth[:, gains[0] <= 0] = -torch.inf
    worth.scatter_(1, pairs, -torch.inf)  # a topic of the pair itself is not divided
    found: list[tuple[list[int], int]] = []
    while len(worth) and worth.max() > -torch.inf:
        number, topic = divmod(int(worth.argmax()), worth.shape[1])
        pair = pairs[number].tolist()
        found.append((pair, topic))
        used = torch.tensor([*pair, topic], device=pairs.device)
        worth[:, used] = -torch.inf
        worth[torch.isin(pairs, used).any(1)] = -torch.inf
    return found


def alike(word_topics: Tensor, min_similarity: float = _MIN_SIMILARITY) -> Tensor:
    """Return which pairs of topics (V, K) have similar words, at most four for each topic: (K, K) bool, k < l.

    Topics without tokens are similar to none.
    """
    roots = (word_topics / word_topics.sum(0).clamp_min(TINY)).sqrt()
    similarity = (roots.mT @ roots).fill_diagonal_(0)
    best = similarity.topk(min(_N_PARTNERS, len(similarity)), dim=1)
    pairs = torch.zeros_like(similarity, dtype=torch.bool).scatter_(1, best.indices, best.values > min_similarity)
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
