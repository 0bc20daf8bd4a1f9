"""Pruning of spare topics: which topics are kept, in which order, and the model that is left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from topicloom.datasets import synthetic_lda
from topicloom.metrics import document_npmi
from topicloom.metrics.cooccurrence import Reference
from topicloom.models import Loom
from topicloom.models.loading import load
from topicloom.models.loom.collapsed import CollapsedCounts, Pruning, choose_topics
from topicloom.models.loom.cvb0 import sharpen
from topicloom.models.starting import RANKINGS, select_topics
from topicloom.ranking import top_words, word_scores

CORPUS = synthetic_lda(n_docs=400, n_topics=4, n_words=60, doc_length=40).corpus


def blocks() -> tuple[sparse.csr_array, np.ndarray]:
    """Return documents whose words are all from one of three blocks of 30, and the frequency of the 90 words."""
    random = np.random.default_rng(0)
    counts = np.zeros((300, 90))
    for row, document in enumerate(counts):
        document[30 * (row % 3) + random.choice(30, 12, replace=False)] = 1
    return sparse.csr_array(counts), counts.sum(0)


def topic(*starts: int) -> np.ndarray:
    """Return a topic (90,) of the blocks with these first words."""
    weights = np.full(90, 1e-4)
    for start in starts:
        weights[start : start + 30] = np.linspace(2, 1, 30)
    return weights / weights.sum()


# Which topics are kept.


def test_coherent_topics_are_kept_and_one_of_each_kind():
    counts, words = blocks()
    topics = np.stack([topic(0, 30), topic(0), topic(0), topic(30, 60), topic(30), topic(60)])
    chosen = choose_topics(topics, words, Reference.from_counts(counts), 3, np.zeros(6, bool))
    assert chosen.tolist() in ([1, 4, 5], [2, 4, 5])


def test_a_protected_topic_is_kept_whatever_its_score():
    counts, words = blocks()
    topics = np.stack([topic(0, 30, 60), topic(0), topic(30), topic(60)])
    protected = np.array([True, False, False, False])
    assert 0 in choose_topics(topics, words, Reference.from_counts(counts), 2, protected)
    assert 0 not in choose_topics(topics, words, Reference.from_counts(counts), 3, ~protected & False)


@pytest.mark.parametrize("seed", range(4))
def test_topics_are_removed_one_at_a_time_as_in_loops(seed):
    """The score is NPMI minus half the share of shared top words, minus half the overlap with the nearest topic."""
    random = np.random.default_rng(seed)
    counts = sparse.csr_array((random.random((200, 80)) < 0.2) * 1.0)
    words = counts.sum(axis=0)
    topics = random.dirichlet(np.full(80, 0.1), 9)
    protected = random.random(9) < 0.2
    kept = list(range(9))
    while len(kept) > 4:
        scores = {}
        for k in kept:
            if protected[k]:
                continue
            values = []
            for relevance in RANKINGS:
                tops = top_words(word_scores(topics, words, relevance), 25)
                others = {word for other in kept if other != k for word in tops[other]}
                coherence = float(document_npmi([tops[k]], counts))
                values.append(coherence - 0.5 * np.mean([word in others for word in tops[k]]))
            overlap = max(1 - np.abs(topics[k] - topics[other]).sum() / 2 for other in kept if other != k)
            scores[k] = np.mean(values) - 0.5 * overlap
        kept.remove(min(scores, key=scores.__getitem__))
    assert choose_topics(topics, words, Reference.from_counts(counts), 4, protected).tolist() == kept


# How many topics are kept, and in which order.


def test_spare_topics_go_in_three_steps_in_early_passes():
    pruning = Pruning(20, 40)
    assert [pruning.n_kept(done, 30) for done in range(13)] == [60] * 4 + [47] * 3 + [33] * 3 + [20] * 3
    assert Pruning(20, 0).n_kept(1, 30) == 20


@pytest.mark.parametrize("n_passes", [0, 1, 2, 3])
def test_spare_topics_go_at_once_in_few_passes(n_passes):
    assert Pruning(5, 7).n_kept(1, n_passes) == 5


def test_indices_are_among_the_topics_kept_so_far():
    pruning, codes = Pruning(2, 4), torch.arange(6.0)[None]  # (1, 6)
    assert pruning.select(codes) is codes
    none = torch.zeros(6, dtype=torch.bool)
    assert pruning.keep(torch.tensor([0, 2, 3, 5]), none).tolist() == [0, 2, 3, 5]
    assert pruning.select(codes).tolist() == [[0, 2, 3, 5]]
    assert pruning.keep(torch.tensor([1, 3]), none[:4]).tolist() == [1, 3]
    assert pruning.select(codes).tolist() == [[2, 5]]


def test_seeded_topics_end_at_their_index():
    pruning = Pruning(4, 3)
    seeded = torch.tensor([False, True, False, True, False, False, False])  # topics 1 and 3
    assert pruning.keep(torch.tensor([1, 3, 4, 5, 6]), seeded).tolist() == [1, 3, 4, 5, 6]
    which = torch.tensor([0, 1, 3, 4])  # of those kept so far: topics 1, 3, 5 and 6
    assert pruning.keep(which, seeded[[1, 3, 4, 5, 6]]).tolist() == [3, 0, 4, 1]
    assert pruning.kept.tolist() == [5, 1, 6, 3]


def test_the_most_used_and_the_protected_topics_are_kept():
    pruning = Pruning(3, 3)
    protected = torch.tensor([False, False, False, True, False, False])
    assert pruning.most_used(torch.tensor([5.0, 1.0, 4.0, 0.0, 3.0, 2.0]), protected).tolist() == [0, 2, 3]


def test_weights_of_the_kept_topics_are_selected():
    wide = {"a": torch.arange(12.0).view(4, 3), "b": torch.arange(8.0).view(2, 4), "c": torch.ones(5)}
    goal = {"a": torch.empty(2, 3), "b": torch.empty(2, 2), "c": torch.empty(5)}
    narrow = select_topics(wide, goal, torch.tensor([3, 1]))
    assert narrow["a"].tolist() == [[9, 10, 11], [3, 4, 5]]
    assert narrow["b"].tolist() == [[3, 1], [7, 5]]
    assert narrow["c"] is wide["c"]
    assert wide["a"].shape == (4, 3)


# The model that is left.


def small(**settings: Any) -> Loom:
    fixed = {"epochs": 20, "pretrain_share": 0.2, "sample_share": 0.6, "hidden_size": 16, "random_state": 1}
    return Loom(4, **{**fixed, "device": "cpu", **settings})


def shapes(model: Loom) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in model.network_.state_dict().items()}


def test_spare_topics_are_pretrained_and_then_removed():
    model = small(epochs=30).fit(CORPUS)
    widths = [len(row["kl_per_dimension"]) for row in model.history_ if "kl_per_dimension" in row]
    assert widths == [12] * 6 + [9] + [4] * 2
    assert shapes(model) == shapes(small(spare_topics=0.0).fit(CORPUS))
    assert model.components_.shape == (4, 60)


def test_spare_topics_are_limited_by_fifty_and_by_words():
    few = Loom(5, epochs=2, random_state=0, device="cpu").fit(np.eye(7))
    assert len(few.history_[0]["kl_per_dimension"]) == 7
    many = Loom(40, epochs=2, hidden_size=16, random_state=0, device="cpu")
    corpus = synthetic_lda(n_docs=200, n_topics=4, n_words=300, doc_length=40).corpus
    assert len(many.fit(corpus).history_[0]["kl_per_dimension"]) == 90


@pytest.mark.parametrize(
    "epochs", [3, 7, 8, 9, 15], ids=["pretraining", "end of pretraining", "counting", "pruning", "pruned"]
)
def test_an_interrupted_fit_leaves_the_requested_number_of_topics(epochs, tmp_path, interrupted_after):
    model = small()
    with pytest.raises(KeyboardInterrupt):
        model.fit(CORPUS, callbacks=[interrupted_after(epochs)])
    theta = model.transform(CORPUS)
    assert theta.shape == (400, 4)
    assert model.components_.shape == (4, 60)
    assert np.isfinite(model.perplexity(CORPUS))
    assert shapes(model) == shapes(small(spare_topics=0.0).fit(CORPUS))
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model", device="cpu").transform(CORPUS), theta)
    model.partial_fit(CORPUS)
    assert np.isfinite(model.transform(CORPUS)).all()


@pytest.mark.parametrize("settings", [{"stop": 8}, {"stop": 10}, {"epochs": 2}, {"epochs": 3}], ids=str)
def test_the_counts_of_removed_topics_are_not_lost(settings, interrupted_after):
    """They are reassigned, whether or not another pass follows."""
    settings = dict(settings)
    stop = settings.pop("stop", None)
    model = small(**settings)
    try:
        model.fit(CORPUS, callbacks=[interrupted_after(stop or 99)])
    except KeyboardInterrupt:
        assert stop
    totals = CORPUS.counts.power(0.6).sum(axis=0)  # count_power is .6
    np.testing.assert_allclose(model.network_.counting.word_topics.sum(1), totals, rtol=1e-3)


def test_large_corpora_get_fewer_epochs_and_measure_the_last(monkeypatch, caplog):
    said = "Loom trains for 10 of at most 16 epochs, because the corpus has more than 100 tokens"
    with caplog.at_level("INFO", "topicloom"):
        small(epochs=1).fit(CORPUS)
        assert not any("Loom trains for" in message for message in caplog.messages)
        monkeypatch.setattr("topicloom.models.loom.model._SMALL_CORPUS", 100)  # tokens
        model = small(epochs=16).fit(CORPUS, monitor=["document_npmi"], monitor_every=6)
    assert caplog.messages.count(said) == 1
    measured = [row["epoch"] for row in model.history_ if "document_npmi" in row]
    assert measured == [6, 10]
    assert len(model.history_) == 10


def test_background_topics_are_kept_and_saved(monkeypatch, tmp_path):
    """They are the ones that `start` chose among the K' topics, at their final indices."""
    whole, chosen = CollapsedCounts.start, []

    def start(counting: CollapsedCounts, *args: Any) -> None:
        whole(counting, *args)
        chosen.append((counting, counting.background.nonzero()[:, 0].tolist()))

    monkeypatch.setattr(CollapsedCounts, "start", start)
    model = small(background_topics=0.5, sharpness=1.35).fit(CORPUS)
    (counting, at_first), background = chosen[0], model.network_.counting.background
    assert len(at_first) == 2
    assert sorted(counting.pruning.kept[background].tolist()) == at_first
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model", device="cpu")
    assert torch.equal(loaded.network_.counting.background, background)
    loaded.partial_fit(CORPUS)
    assert torch.equal(loaded.network_.counting.background, background)
    after = loaded.network_.counting
    alone = sharpen(after.word_topics, after.tokens, 1.35, after.eta)
    torch.testing.assert_close(after.beta_t, alone)


def test_a_stream_has_no_spare_topics():
    model = small().partial_fit(CORPUS)
    assert len(model.history_[0]["kl_per_dimension"]) == 4


def test_seeded_topics_keep_their_index():
    """Topics are seeded at each index in turn, although the model would find them in another order.

    With so few documents, one seeded topic in fifty loses its words to a topic that is not seeded. A wrong order would
    misplace nine of these twelve.
    """
    topics = small().fit(CORPUS).components_
    # Words that are frequent in one topic and rare in the others, for three topics.
    frequent = np.argsort(-(topics**2) / topics.sum(0))[:3, :4]
    kept = 0
    for shift in range(4):
        at = [(k + shift) % 4 for k in range(3)]
        words = {index: [CORPUS.vocabulary[word] for word in ids] for index, ids in zip(at, frequent, strict=True)}
        model = small(seed_words=words).fit(CORPUS)
        kept += sum(model.components_[:, ids].sum(1).argmax() == index for index, ids in zip(at, frequent, strict=True))
    assert kept >= 11
