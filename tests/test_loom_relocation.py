"""Topics that are nearly equal are joined, and start again with words that no topic explains."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from batches import CPU
from planted import found_shares
from topicloom.datasets import synthetic_lda
from topicloom.models import Loom
from topicloom.models.loom import relocation
from topicloom.models.loom.cvb0 import CountedTopics
from topicloom.models.loom.relocation import Relocation, alike, find_topics, joined_topics
from topicloom.models.loom.sampling import Assignments, SampledDocuments, SamplingStage, token_starts
from topicloom.training.batches import BatchReader

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
def test_copies_are_alike_however_few_tokens_they_have(n_tokens):
    copies = [drawn(0, n_tokens, 0), drawn(0, n_tokens // 3, 1), drawn(0, n_tokens // 2, 2)]
    counts = torch.stack([*copies, *(drawn(topic, n_tokens, 3 + topic) for topic in (1, 2, 3))], 1)
    assert alike(counts).nonzero().tolist() == [[0, 1], [0, 2], [1, 2]]


def best_topics(counts, topics):
    """Return the most probable of some topics (V, 5) for each token, as a sampler would leave them."""
    batch = BatchReader(counts, 200, CPU).sample(counts.shape[0]).counts
    best = (theta_of(batch, topics)[batch.documents] * topics[batch.indices]).argmax(1)
    tokens, _ = SamplingStage(8, documents_of(counts), count_power=0.6).tokens(batch)
    return best.repeat_interleave(tokens)


def are_copies(counts, topics, pairs):
    stage, word_topics = stage_with(counts, topics.to(torch.uint8))
    relocated = Relocation(BatchReader(counts, 200, CPU))
    alpha = torch.full((5,), 0.1)
    return relocated._are_copies(torch.tensor(pairs), word_topics, alpha, ETA, stage, stage.assignments).tolist()


@pytest.mark.parametrize("n_tokens", [6, 40])
def test_halves_of_a_topic_are_copies_and_topics_are_not(n_tokens):
    planted = synthetic_lda(1500, 5, 300, n_tokens, alpha=0.2, eta=0.05, shares=SHARES, random_state=4)
    counts, beta_t = planted.corpus.counts, torch.from_numpy(planted.topics).float().mT
    topics = best_topics(counts, beta_t)
    document = np.repeat(np.arange(1500), np.diff(token_starts(counts).numpy()))
    is_moved = (topics == 0) & torch.from_numpy(document % 2 == 1)  # what every second document has of topic 0
    topics = torch.where(topics == 3, 1, topics)
    assert are_copies(counts, torch.where(is_moved, 3, topics), [[0, 3], [1, 2], [0, 1]]) == [True, False, False]


def test_topics_that_share_most_words_are_no_copies():
    random = np.random.default_rng(0)
    theme, own = random.dirichlet(np.full(300, 0.05)), random.dirichlet(np.full(300, 0.05), 5)
    topics = 0.7 * theme + 0.3 * own
    mixed = random.dirichlet(np.full(5, 0.1), 1000) @ topics
    counts = sp.csr_array(np.stack([random.multinomial(60, row / row.sum()) for row in mixed]).astype(np.float32))
    found = best_topics(counts, torch.from_numpy(topics).float().mT)
    _, word_topics = stage_with(counts, found.to(torch.uint8))
    pairs = alike(word_topics).nonzero().tolist()
    assert len(pairs) == 10
    assert not any(are_copies(counts, found, pairs))


def test_few_documents_give_no_evidence_of_copies():
    counts = PLANTED.corpus.counts[:90]  # a fifth of these is less than 20
    assert are_copies(counts, torch.zeros(int(token_starts(counts)[-1])), [[0, 1]]) == [False]


def test_topics_that_predict_words_have_no_tokens_of_these_documents(monkeypatch):
    counts, kept = PLANTED.corpus.counts, []
    from_counts = CountedTopics.from_counts

    def recorded(word_topics, eta):
        kept.append(word_topics.sum(1))
        return from_counts(word_topics, eta)

    monkeypatch.setattr(relocation.CountedTopics, "from_counts", recorded)
    are_copies(counts, best_topics(counts, TOPICS), [[0, 1]])
    sample = BatchReader(counts, 200, CPU).sample(300).counts
    powered = torch.zeros(300).index_add_(0, sample.indices, sample.values**0.6)
    whole = torch.from_numpy(np.asarray(counts.power(0.6).sum(0))).float()
    torch.testing.assert_close(kept[0], whole - powered, rtol=1e-4, atol=1e-3)


def test_a_rank_may_have_fewer_documents_than_there_are_batches():
    counts = PLANTED.corpus.counts[:30]
    reader = BatchReader(counts, 4, CPU)
    reader.parts = [30, 4_000]  # of this rank and of another one
    stage, word_topics = stage_with(counts, torch.zeros(int(token_starts(counts)[-1]), dtype=torch.uint8))
    relocated = Relocation(reader)
    relocated.documents.batch_size = 4
    assert min(batch.n_docs for batch in relocated.documents) == 0
    change = relocated._give_tokens(TOPICS, torch.tensor([1]), stage, stage.assignments)
    torch.testing.assert_close(word_topics + change, word_topics_of(counts, stage), rtol=1e-4, atol=1e-3)
    assert change[:, 1].sum() > 0


def test_new_topics_get_the_words_they_explain_best():
    counts, new = PLANTED.corpus.counts[:200], torch.tensor([1, 3, 4])
    stage, _ = stage_with(counts, torch.zeros(int(token_starts(counts)[-1]), dtype=torch.uint8))
    relocated = Relocation(BatchReader(counts, 64, CPU))
    expected = []
    for batch in relocated.documents:
        theta = relocated._theta(batch.counts, TOPICS, relocation._ALL_TOPICS_STEPS)
        best = (theta[batch.counts.documents] * TOPICS[batch.counts.indices]).argmax(1)
        tokens, _ = stage.tokens(batch.counts)
        expected.append(torch.where(torch.isin(best, new), best, 0).repeat_interleave(tokens))
    relocated._give_tokens(TOPICS, new, stage, stage.assignments)
    places = torch.cat([stage.assignments.places(batch.rows) for batch in relocated.documents])
    found = stage.assignments.topics[places].long()
    torch.testing.assert_close(found, torch.cat(expected))
    assert set(found.unique().tolist()) == {0, 1, 3, 4}


def test_topics_are_not_relocated_once_counts_are_averaged():
    stage, _ = stage_with(PLANTED.corpus.counts[:5], torch.zeros(1, dtype=torch.uint8))
    relocated = Relocation(BatchReader(PLANTED.corpus.counts, 200, CPU))
    assert relocated.is_due(stage)
    stage.mean_counts = torch.zeros(1, 1)
    assert not relocated.is_due(stage)


def test_pairs_are_joined_to_the_largest_topic_of_their_group():
    sizes = torch.tensor([5.0, 9.0, 2.0, 7.0, 1.0])
    pairs = torch.tensor([[0, 1], [0, 2], [3, 4]])
    assert joined_topics(pairs, sizes, none_protected()).tolist() == [1, 1, 1, 3, 3]
    assert joined_topics(pairs[:0], sizes, none_protected()).tolist() == [0, 1, 2, 3, 4]


def test_protected_topics_stay_and_are_not_joined():
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
    return Relocation(BatchReader(PLANTED.corpus.counts, 256, CPU))._theta(documents, beta_t, 20)


def stage_with(counts, topics, count_power=0.6):
    """Return a sampling stage whose tokens have these topics, and N_vk."""
    stage = SamplingStage(80, documents_of(counts), count_power=count_power)
    starts = stage.documents.starts
    stage.assignments = Assignments(starts, topics)
    stage.passes_done = 10
    return stage, word_topics_of(counts, stage) if len(topics) == starts[-1] else torch.empty(0)


def documents_of(counts):
    return SampledDocuments.of(BatchReader(counts, len(counts.indptr), CPU))


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
    topics = best_topics(counts, TOPICS)
    topics[topics == 3] = 1
    is_moved = (topics == 0) & (torch.rand(len(topics), generator=torch.Generator().manual_seed(0)) < 0.5)
    topics[is_moved] = 3
    stage, word_topics = stage_with(counts, topics.to(torch.uint8))
    total, alpha = word_topics.sum(), torch.full((5,), 0.1)
    relocated = Relocation(reader)
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
    Relocation(BatchReader(counts, 200, CPU)).apply(word_topics, alpha, ETA, torch.zeros(300, 5), stage)
    torch.testing.assert_close(word_topics, 5_000 * TOPICS, rtol=0, atol=0)
    torch.testing.assert_close(stage.assignments.topics, topics.to(torch.uint8), rtol=0, atol=0)
    assert alpha.tolist() == pytest.approx([0.1] * 5)


def test_loom_finds_unequal_shares_which_it_does_not_without_relocation(monkeypatch):
    """From a random start, which leads to more copies of large topics than clusters do."""

    def correlation() -> float:
        model = Loom(5, random_state=0, device="cpu", start="random").fit(PLANTED.corpus)
        found, _ = found_shares(PLANTED.topics, model, PLANTED.corpus)
        return float(np.corrcoef(PLANTED.theta.mean(0), found)[0, 1])

    assert correlation() > 0.98
    monkeypatch.setattr(relocation, "_MOMENTS", ())
    assert correlation() < 0.97


def test_a_rank_may_hold_no_documents_of_the_prediction(monkeypatch):
    counts = PLANTED.corpus.counts
    reader = BatchReader(counts, 200, CPU)
    monkeypatch.setattr(BatchReader, "own_sample", lambda self, n_docs: self._batch(np.zeros(0, np.intp)))
    stage, word_topics = stage_with(counts, best_topics(counts, TOPICS).to(torch.uint8))
    pairs, alpha = torch.tensor([[0, 1]]), torch.full((5,), 0.1)
    relocated = Relocation(reader)
    assert relocated._are_copies(pairs, word_topics, alpha, ETA, stage, stage.assignments).shape == (1,)


def test_two_topics_that_hardly_predict_better_than_one_are_copies(monkeypatch):
    """Two topics that share 93 % of their words predict them better than one does, but hardly."""
    random = np.random.default_rng(3)
    both, own = random.dirichlet(np.full(300, 1.0)), random.dirichlet(np.full(300, 0.01), 5)
    topics = np.concatenate([0.93 * both + 0.07 * own[:2], own[2:]])
    theta = random.dirichlet(np.full(5, 0.1), 2000)
    counts = sp.csr_array(np.stack([random.multinomial(150, row / row.sum()) for row in theta @ topics]))
    found = best_topics(counts.astype(np.float32), torch.from_numpy(topics).float().mT)
    assert are_copies(counts.astype(np.float32), found, [[0, 1], [2, 3]]) == [True, False]
    monkeypatch.setattr(relocation, "_NATS_PER_TOKEN", 0.0)
    assert are_copies(counts.astype(np.float32), found, [[0, 1], [2, 3]]) == [False, False]


# Joining a pair of topics while another topic is divided

EQUAL = synthetic_lda(3000, 5, 300, 12, alpha=0.1, eta=0.05, random_state=5)
EQUAL_TOPICS = torch.from_numpy(EQUAL.topics).float().mT  # (V, 5)


def with_two_in_one(counts):
    """Return topics of tokens: topics 0 and 1 share topic 0, and topic 2 is divided between 1 and 2 by its words."""
    topics = best_topics(counts, EQUAL_TOPICS)
    batch = BatchReader(counts, 200, CPU).sample(counts.shape[0]).counts
    tokens, _ = SamplingStage(8, documents_of(counts), count_power=0.6).tokens(batch)
    words = batch.indices.repeat_interleave(tokens)
    topics[topics == 1] = 0
    is_moved = (topics == 2) & (
        torch.rand(len(topics), generator=torch.Generator().manual_seed(1)) < 0.15 + 0.7 * (words % 2)
    )
    topics[is_moved] = 1
    return topics.to(torch.uint8)


def distances_after(counts, topics):
    """Return how far each planted topic is from the nearest one after a relocation, (5,), and the counts."""
    stage, word_topics = stage_with(counts, topics)
    Relocation(BatchReader(counts, 200, CPU)).apply(word_topics, torch.full((5,), 0.1), ETA, torch.zeros(300, 5), stage)
    torch.testing.assert_close(word_topics, word_topics_of(counts, stage), rtol=1e-4, atol=1e-3)
    beta_t = word_topics / word_topics.sum(0)
    return (beta_t[:, :, None] - EQUAL_TOPICS[:, None]).abs().sum(0).min(0).values / 2, word_topics


def test_a_topic_of_two_subjects_is_divided(monkeypatch):
    counts = EQUAL.corpus.counts
    topics = with_two_in_one(counts)
    monkeypatch.setattr(Relocation, "_join_copies", lambda *_: None)
    distances, _ = distances_after(counts, topics.clone())
    assert distances.max() < 0.3
    monkeypatch.setattr(relocation, "_MAX_DIVIDED", 0)
    distances, _ = distances_after(counts, topics.clone())
    assert distances[:2].max() > 0.4


def test_the_planted_topics_are_neither_joined_nor_divided():
    counts = EQUAL.corpus.counts
    topics = best_topics(counts, EQUAL_TOPICS).to(torch.uint8)
    _, word_topics = stage_with(counts, topics.clone())
    _, after = distances_after(counts, topics.clone())
    torch.testing.assert_close(after, word_topics, rtol=0, atol=0)


def test_exchanges_gain_enough_in_all_and_by_token():
    pairs = torch.tensor([[0, 1], [1, 2], [3, 4]])
    losses, gains = torch.tensor([10.0, 4.0, 3.0]), torch.tensor([9.0, 0.0, 0.0, 5.0, 0.0])

    def found(loss_of_token, gain_of_token):
        per_token = torch.tensor(loss_of_token), torch.tensor(gain_of_token)
        return relocation._exchanges(pairs, (losses, per_token[0]), (gains, per_token[1]))

    assert found([1.0, 1.0, 1.0], [1.0] * 5) == [([3, 4], 0)]  # 9 - 3 is more than 9 - 4; topic 3 is used up
    assert found([1.0, 1.0, 9.0], [1.0] * 5) == [([1, 2], 0)]  # 3 and 4 are too distinct
    assert found([1.0, 1.0, 1.0], [0.1] * 5) == []  # the halves are hardly distinct


def test_halves_of_a_topic_are_its_subjects():
    mixed = torch.stack([EQUAL_TOPICS[:, 0] + EQUAL_TOPICS[:, 1], *EQUAL_TOPICS.unbind(1)[2:]], 1)
    mixed /= mixed.sum(0)
    documents = BatchReader(EQUAL.corpus.counts, 2_000, CPU).sample(2_000).counts
    halves = Relocation(BatchReader(EQUAL.corpus.counts, 256, CPU))._halves(documents, mixed)  # (V, 2, 4)
    torch.testing.assert_close(halves.sum(1), mixed)
    parts = halves[:, :, 0] / halves[:, :, 0].sum(0)
    distances = (parts[:, :, None] - EQUAL_TOPICS[:, None, :2]).abs().sum(0) / 2  # (2, 2)
    assert distances.min(0).values.max() < 0.2
    assert sorted(distances.argmin(0).tolist()) == [0, 1]


def test_a_topic_without_halves_is_not_divided(monkeypatch):
    counts = EQUAL.corpus.counts
    topics = best_topics(counts, EQUAL_TOPICS)
    is_moved = (topics == 0) & (torch.rand(len(topics), generator=torch.Generator().manual_seed(2)) < 0.5)
    topics = torch.where(is_moved, 1, torch.where(topics == 1, 2, topics)).to(
        torch.uint8
    )  # joining 0 and 1 loses nothing
    monkeypatch.setattr(Relocation, "_join_copies", lambda *_: None)
    monkeypatch.setattr(Relocation, "_halves", lambda self, _, beta_t: (beta_t / 2)[:, None].repeat(1, 2, 1))
    monkeypatch.setattr(relocation, "_MIN_ERRORS", -1.0)  # rounding is no gain, however small its error
    _, word_topics = stage_with(counts, topics.clone())
    _, after = distances_after(counts, topics.clone())
    torch.testing.assert_close(after, word_topics, rtol=0, atol=0)
