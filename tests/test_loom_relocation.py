"""Topics that are nearly equal are joined, and start again with words that no topic explains."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment

from topicloom.datasets import synthetic_lda
from topicloom.models import Loom
from topicloom.models.loom import relocation
from topicloom.models.loom.cvb0 import expected_counts
from topicloom.models.loom.relocation import Relocation, alike, find_topics, joined_topics, relative_gains
from topicloom.models.loom.sampling import Assignments, SamplingStage, token_starts
from topicloom.training.batches import BatchReader

CPU = torch.device("cpu")
ETA = torch.tensor(0.05)
SHARES = np.array([0.4, 0.3, 0.25, 0.03, 0.02])
PLANTED = synthetic_lda(1500, 5, 300, 40, alpha=0.2, eta=0.05, shares=SHARES, random_state=4)
TOPICS = torch.from_numpy(PLANTED.topics).float().mT  # (V, 5)


def drawn(topic: int, n_tokens: int, seed: int) -> torch.Tensor:
    """Return counts of words (V,) that are drawn from a planted topic."""
    words = np.random.default_rng(seed).choice(300, n_tokens, p=PLANTED.topics[topic] / PLANTED.topics[topic].sum())
    return torch.from_numpy(np.bincount(words, minlength=300)).float()


def none_protected() -> torch.Tensor:
    return torch.zeros(5, dtype=torch.bool)


@pytest.mark.parametrize("n_tokens", [500, 5_000, 50_000])
def test_copies_are_alike_and_their_words_repay_little_however_few_tokens_they_have(n_tokens):
    copies = [drawn(0, n_tokens, 0), drawn(0, n_tokens // 3, 1), drawn(0, n_tokens // 2, 2)]
    counts = torch.stack([*copies, *(drawn(topic, n_tokens, 3 + topic) for topic in (1, 2, 3))], 1)
    pairs = alike(counts).nonzero()
    assert pairs.tolist() == [[0, 1], [0, 2], [1, 2]]
    at_random = torch.stack([counts[:, pair].sum() * np.log(2) for pair in pairs])  # a bit for each token
    assert (relative_gains(counts, ETA, pairs, at_random) < 0.1).all()


def test_words_of_topics_that_share_most_words_repay_much():
    random = torch.from_numpy(np.random.default_rng(0).dirichlet(np.full(300, 0.05), 3)).float().mT  # (V, 3)
    theme = 5_000 * torch.stack([0.7 * random[:, 0] + 0.3 * random[:, k] for k in (1, 2)], 1)
    in_documents = torch.tensor([0.3 * 10_000])  # nats, as in documents of 60 tokens with theta ~ Dirichlet(.1)
    assert relative_gains(theme, ETA, alike(theme).nonzero(), in_documents) > relocation._COPIES_GAIN


def test_the_evidence_of_a_topic_is_the_probability_of_its_words_one_after_the_other():
    counts, n, expected = torch.tensor([3.0, 0.0, 1.0, 2.0]), torch.zeros(4), 0.0
    for word in (0, 3, 0, 2, 3, 0):
        expected += float(torch.log((n[word] + 0.3) / (n.sum() + 4 * 0.3)))
        n[word] += 1
    assert float(relocation._evidence(counts.double(), 0.3)) == pytest.approx(expected)


def test_the_cost_is_the_probability_of_the_topics_of_tokens():
    counts = PLANTED.corpus.counts[:40]
    starts = token_starts(counts)
    topics = torch.randint(5, (int(starts[-1]),), generator=torch.Generator().manual_seed(0))
    stage, _ = stage_with(counts, topics.to(torch.uint8), count_power=1.0)
    alpha, pairs = torch.tensor([0.3, 0.1, 0.5, 0.2, 0.4]), torch.tensor([[0, 2], [1, 4]])
    costs = Relocation(BatchReader(counts, 7, CPU), expected_counts)._costs(pairs, alpha, stage, stage.assignments)

    def log_probability(topics, alpha) -> float:
        total = 0.0
        for first, last in pairwise(starts.tolist()):
            n = torch.zeros(len(alpha))
            for topic in topics[first:last]:
                total += float(torch.log((n[topic] + alpha[topic]) / (n.sum() + alpha.sum())))
                n[topic] += 1
        return total

    for (a, b), cost in zip(pairs.tolist(), costs.tolist(), strict=True):
        joined, joint = torch.where(topics == b, a, topics), alpha.clone()
        joint[a], joint[b] = alpha[a] + alpha[b], 0
        assert cost == pytest.approx(log_probability(joined, joint) - log_probability(topics, alpha), rel=1e-4)


def test_a_rank_may_have_fewer_documents_than_there_are_batches():
    counts = PLANTED.corpus.counts[:30]
    reader = BatchReader(counts, 4, CPU)
    reader.parts = [30, 4_000]  # of this rank and of another one
    stage, word_topics = stage_with(counts, torch.zeros(int(token_starts(counts)[-1]), dtype=torch.uint8))
    relocated = Relocation(reader, expected_counts)
    relocated.documents.batch_size = 4
    assert min(batch.n_docs for batch in relocated.documents) == 0
    change = relocated._give_tokens(TOPICS, torch.tensor([1]), stage, stage.assignments)
    torch.testing.assert_close(word_topics + change, word_topics_of(counts, stage), rtol=1e-4, atol=1e-3)
    assert change[:, 1].sum() > 0


def test_topics_are_not_relocated_once_counts_are_averaged():
    stage, _ = stage_with(PLANTED.corpus.counts[:5], torch.zeros(1, dtype=torch.uint8))
    relocated = Relocation(BatchReader(PLANTED.corpus.counts, 200, CPU), expected_counts)
    assert relocated.is_due(stage)
    stage.mean_counts = torch.zeros(1, 1)
    assert not relocated.is_due(stage)


def test_pairs_are_joined_to_the_largest_topic_of_their_group():
    sizes = torch.tensor([5.0, 9.0, 2.0, 7.0, 1.0])
    pairs = torch.tensor([[0, 1], [0, 2], [3, 4]])
    assert joined_topics(pairs, sizes, none_protected()).tolist() == [1, 1, 1, 3, 3]
    assert joined_topics(pairs[:0], sizes, none_protected()).tolist() == [0, 1, 2, 3, 4]


def test_a_protected_topic_stays_and_two_protected_ones_are_not_joined():
    sizes, protected = torch.tensor([5.0, 9.0, 2.0, 7.0, 1.0]), torch.tensor([False, False, True, True, True])
    assert joined_topics(torch.tensor([[0, 1], [0, 2], [3, 4]]), sizes, protected).tolist() == [2, 2, 2, 3, 4]


def test_a_topic_that_is_missing_is_found():
    known, missing = TOPICS[:, [0, 1, 2, 4]], TOPICS[:, 3]
    documents = BatchReader(PLANTED.corpus.counts, 2_000, CPU).sample(2_000).counts
    found = find_topics(documents, theta_of(documents, known), known, 1)  # (V, 1)
    torch.testing.assert_close(found.sum(0), torch.ones(1))
    distances = (found - TOPICS).abs().sum(0) / 2  # (5,)
    assert distances.argmin() == 3
    assert distances[3] < 0.35
    assert (missing[found[:, 0].topk(10).indices] > 0.005).sum() >= 8


def theta_of(documents, beta_t):
    return Relocation(BatchReader(PLANTED.corpus.counts, 256, CPU), expected_counts)._theta(documents, beta_t, 20)


def stage_with(counts, topics, count_power=0.6):
    """Return a sampling stage whose tokens have these topics, and N_vk."""
    stage = SamplingStage(80, token_starts(counts), count_power=count_power)
    stage.assignments = Assignments(stage.starts, topics)
    stage.passes_done = 10
    return stage, word_topics_of(counts, stage) if len(topics) == stage.starts[-1] else torch.empty(0)


def word_topics_of(counts, stage):
    """Return N_vk (V, 5) of the topics of tokens."""
    batch = BatchReader(counts, counts.shape[0], CPU).sample(counts.shape[0])
    tokens, weights = stage.tokens(batch.counts)
    words, weights = (each.repeat_interleave(tokens) for each in (batch.counts.indices, weights))
    return torch.zeros(300, 5).index_put_((words, stage.assignments.topics.long()), weights, accumulate=True)


def test_relocation_keeps_counts_and_topics_of_tokens_in_step():
    counts = PLANTED.corpus.counts
    reader = BatchReader(counts, 200, CPU)
    # Topic 0 is divided at random between 0 and 3; the tokens of 3 have topic 1, as a sampler leaves them.
    batch = reader.sample(counts.shape[0]).counts
    theta = theta_of(batch, TOPICS)
    best = (theta[batch.documents] * TOPICS[batch.indices]).argmax(1)
    tokens, _ = SamplingStage(8, token_starts(counts), count_power=0.6).tokens(batch)
    topics = best.repeat_interleave(tokens)
    topics[topics == 3] = 1
    is_moved = (topics == 0) & (torch.rand(len(topics), generator=torch.Generator().manual_seed(0)) < 0.5)
    topics[is_moved] = 3
    stage, word_topics = stage_with(counts, topics.to(torch.uint8))
    total, alpha = word_topics.sum(), torch.full((5,), 0.1)
    relocated = Relocation(reader, expected_counts)
    assert relocated.is_due(stage)
    relocated.apply(word_topics, alpha, ETA, torch.zeros(300, 5), stage)

    torch.testing.assert_close(word_topics, word_topics_of(counts, stage), rtol=1e-4, atol=1e-3)
    torch.testing.assert_close(word_topics.sum(), total)
    assert sorted(alpha.tolist()) == pytest.approx([0.05, 0.1, 0.1, 0.1, 0.2])
    beta_t = word_topics / word_topics.sum(0)
    distances = (beta_t[:, :, None] - TOPICS[:, None]).abs().sum(0) / 2  # (5, 5)
    assert distances.min(0).values[:4].max() < 0.35  # each planted topic is there, the third too


def test_nothing_changes_without_copies():
    counts = PLANTED.corpus.counts
    topics = torch.randint(5, (int(token_starts(counts)[-1]),), generator=torch.Generator().manual_seed(0))
    stage, _ = stage_with(counts, topics.to(torch.uint8))
    word_topics, alpha = 5_000 * TOPICS, torch.full((5,), 0.1)
    Relocation(BatchReader(counts, 200, CPU), expected_counts).apply(
        word_topics, alpha, ETA, torch.zeros(300, 5), stage
    )
    torch.testing.assert_close(word_topics, 5_000 * TOPICS, rtol=0, atol=0)
    torch.testing.assert_close(stage.assignments.topics, topics.to(torch.uint8), rtol=0, atol=0)
    assert alpha.tolist() == pytest.approx([0.1] * 5)


def test_loom_finds_unequal_shares_which_it_does_not_without_relocation(monkeypatch):
    def correlation() -> float:
        model = Loom(5, random_state=0, device="cpu").fit(PLANTED.corpus)
        distance = np.abs(PLANTED.topics[:, None] - model.components_[None]).sum(2) / 2
        columns = linear_sum_assignment(distance)[1]
        found = model.transform(PLANTED.corpus).mean(0)[columns]
        return float(np.corrcoef(PLANTED.theta.mean(0), found)[0, 1])

    assert correlation() > 0.98
    monkeypatch.setattr(relocation, "_MOMENTS", ())
    assert correlation() < 0.97
