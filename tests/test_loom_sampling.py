"""The sampling passes of Loom: what is drawn, with which probabilities, and on what it does not depend."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.metrics import normalized_mutual_info_score
from torch import Tensor

from ranks import SMALL_SUBSET
from topicloom import load
from topicloom.datasets import synthetic_lda
from topicloom.metrics.catalogue import measures_of
from topicloom.models import Loom
from topicloom.models.loom import cvb0, sampling
from topicloom.models.loom import model as loom_model
from topicloom.models.loom.collapsed import CollapsedCounts, Pruning
from topicloom.models.loom.cvb0 import CountedTopics, eta_step
from topicloom.models.loom.sampling import Assignments, Draws, token_starts, tokens_of, uniform
from topicloom.nn.execution import helper_threads
from topicloom.nn.sparse import SparseCounts
from topicloom.training.callbacks import Callback

WAYS = {"plain": sampling.sample_plain, "compiled": sampling.sample}
D, V, K = 30, 40, 7


def batch(seed: int = 0) -> SparseCounts:
    random = np.random.default_rng(seed)
    dense = random.integers(1, 4, (D, V)) * (random.random((D, V)) < 0.4)
    dense = sparse.csr_array(dense.astype(np.float32))
    dense.data[::9] *= 0.7  # a part of a token
    tensors = (torch.from_numpy(each) for each in (dense.indices.astype(np.int64), dense.data))
    return SparseCounts(*tensors, torch.from_numpy(dense.indptr.astype(np.int64)), V)


def state(counts: SparseCounts, seed: int = 0) -> tuple[Draws, Tensor, CountedTopics, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    seeds = torch.randint(2**62, (counts.n_docs,), generator=generator)
    before = 5 * torch.rand(counts.n_docs, K, generator=generator)
    topics = CountedTopics.from_counts(9 * torch.rand(V, K, generator=generator), 0.01)
    return draws_of(counts, seeds), before, topics, torch.rand(K, generator=generator) + 0.05


def draws_of(counts: SparseCounts, seeds: Tensor) -> Draws:
    """Return draws of documents whose tokens are one after the other."""
    tokens = tokens_of(counts.values)
    ends = tokens.cumsum(0)[counts.offsets[1:] - 1]  # (D,)
    starts = torch.cat([torch.zeros(1, dtype=torch.int64), ends[:-1]])
    return Draws(tokens, counts.values / tokens, seeds, starts)


@pytest.mark.parametrize("way", WAYS)
def test_every_token_is_counted_once(way):
    counts = batch()
    draws, before, topics, alpha = state(counts)
    assigned = torch.full((int(draws.tokens.sum()),), K, dtype=torch.uint8)  # none of the topics
    for number in range(3):
        word_topics, inputs = torch.zeros(V, K), (counts, draws)
        if number == 0:
            of_docs = sampling.sample_first(*inputs, before, assigned, topics, alpha, word_topics)
        else:
            of_docs = WAYS[way](*inputs, assigned, topics, alpha, word_topics)
        assert int(assigned.max()) < K
        frequency = torch.zeros(V).index_add_(0, counts.indices, counts.values)
        torch.testing.assert_close(word_topics.sum(1), frequency, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(of_docs.sum(1), counts.totals, rtol=1e-4, atol=1e-4)


@pytest.fixture(params=["sums", "search"])
def way_to_absent_topics(request, monkeypatch):
    """With a table of sums over topics, and with a search that needs none."""
    pytest.importorskip("numba")
    if request.param == "search":
        monkeypatch.setattr(sampling, "_MOST_SUMS", 0)


@pytest.mark.usefixtures("way_to_absent_topics")
def test_the_compiled_loop_draws_with_the_same_probabilities():
    """The same document many times: each token has the same shares of topics, whatever way it is drawn."""
    n, one = 6_000, batch().take(torch.tensor([3]))
    rows = torch.zeros(n, dtype=torch.int64)
    counts = one.take(rows)
    draws, _, topics, _ = state(counts)
    alpha, length = torch.rand(K, generator=torch.Generator().manual_seed(3)) + 0.05, int(tokens_of(one.values).sum())
    previous = torch.randint(K, (length,), generator=torch.Generator().manual_seed(2)).repeat(n)
    shares, of_docs = {}, {}
    for way, sample in WAYS.items():
        drawn = previous.to(torch.uint8)
        docs = sample(counts, draws, drawn, topics, alpha, torch.zeros(V, K))
        shares[way] = torch.nn.functional.one_hot(drawn.long().view(n, length), K).float().mean(0)  # (tokens, K)
        of_docs[way] = docs.mean(0)
    assert float((shares["plain"] - shares["compiled"]).abs().max()) < 0.04  # 4 standard errors
    torch.testing.assert_close(of_docs["compiled"], of_docs["plain"], rtol=0.02, atol=0.02)


@pytest.mark.usefixtures("way_to_absent_topics")
@pytest.mark.parametrize("n_topics", [1, 40, 100])
def test_the_compiled_loop_draws_topics_absent_from_the_document(n_topics):
    """Nearly all of the probability is that of alpha, in one block of topics or another."""
    n = 4_000
    counts = SparseCounts(torch.zeros(n, dtype=torch.int64), torch.ones(n), torch.arange(n + 1), 1)
    alpha = torch.rand(n_topics, generator=torch.Generator().manual_seed(0)) + 0.01
    topics = CountedTopics.from_counts(torch.full((1, n_topics), 9.0), 0.1)
    seeds = torch.randint(2**62, (n,), generator=torch.Generator().manual_seed(1))
    for previous in {0, n_topics - 1}:
        drawn = torch.full((n,), previous, dtype=torch.int16)
        sampling.sample(counts, draws_of(counts, seeds), drawn, topics, alpha, torch.zeros(1, n_topics))
        weights = alpha.clone()
        weights[previous] *= (9 - 1 + 0.1) / (9 + 0.1)  # without the token itself
        found = torch.bincount(drawn, minlength=n_topics) / n
        assert float((found - weights / weights.sum()).abs().max()) < 0.03


@pytest.mark.parametrize("way", WAYS)
def test_a_token_is_drawn_given_all_others(way):
    """A document of three tokens, the second of which is drawn again and again: its shares are those of the formula."""
    n = 20_000
    counts = SparseCounts(torch.tensor([0, 1, 2]).repeat(n), torch.ones(3 * n), torch.arange(0, 3 * n + 1, 3), 3)
    word_topics = torch.tensor([[4.0, 1.0], [2.0, 3.0], [1.0, 5.0]])
    alpha, eta, previous = torch.tensor([0.3, 0.1]), 0.05, torch.tensor([0, 1, 1])
    topics = CountedTopics.from_counts(word_topics, eta)
    seeds = torch.randint(2**62, (n,), generator=torch.Generator().manual_seed(0))
    drawn = previous.repeat(n)
    WAYS[way](counts, draws_of(counts, seeds), drawn, topics, alpha, torch.zeros(3, 2))
    drawn = drawn.view(n, 3)
    for first in (0, 1):  # the first token belongs to the group before
        among = drawn[drawn[:, 0] == first, 1]
        of_doc = torch.bincount(torch.tensor([first, 1]), minlength=2) + alpha
        sizes = word_topics.sum(0) + 3 * eta
        own = torch.tensor([0.0, 1.0])  # the token had topic 1
        weights = of_doc * (word_topics[1] - own + eta) / sizes
        assert among.float().mean() == pytest.approx(float(weights[1] / weights.sum()), abs=0.02)


@pytest.mark.parametrize("way", ["first", *WAYS])
def test_draws_do_not_depend_on_the_rest_of_the_batch(way):
    counts = batch()
    draws, before, topics, alpha = state(counts)
    rows = torch.tensor([7, 2, 19])
    some, few = counts.take(rows), draws_of(counts.take(rows), draws.seeds[rows])
    few = replace(few, starts=draws.starts[rows])  # their tokens are where they are among those of all documents
    together = torch.randint(K, (int(draws.tokens.sum()),), generator=torch.Generator().manual_seed(5))
    before_all, alone = together.clone(), together.clone()
    if way == "first":
        of_docs = sampling.sample_first(counts, draws, before, together, topics, alpha, torch.zeros(V, K))
        of_some = sampling.sample_first(some, few, before[rows], alone, topics, alpha, torch.zeros(V, K))
    else:
        of_docs = WAYS[way](counts, draws, together, topics, alpha, torch.zeros(V, K))
        of_some = WAYS[way](some, few, alone, topics, alpha, torch.zeros(V, K))
    torch.testing.assert_close(of_some, of_docs[rows])
    docs = torch.arange(counts.n_docs).repeat_interleave(counts.sum_by_document(draws.tokens.float()).long())
    is_some = torch.isin(docs, rows)
    assert torch.equal(alone[is_some], together[is_some])
    assert torch.equal(alone[~is_some], before_all[~is_some])  # tokens of other documents keep their topics
    assert not torch.equal(together, before_all)


def test_two_threads_draw_what_one_draws(monkeypatch):
    """A batch is drawn in two halves, unless its tokens are few for the counts of words in topics."""
    pytest.importorskip("numba")
    counts = batch()
    draws, _, topics, alpha = state(counts)
    previous = torch.randint(K, (int(draws.tokens.sum()),), generator=torch.Generator().manual_seed(5))
    found = []
    for n_helpers, most in ((0, 8), (1, 8), (0, 0)):
        monkeypatch.setattr(sampling, "_MOST_COUNTS", most)
        word_topics, drawn = torch.ones(V, K), previous.clone()
        with helper_threads(n_helpers):
            of_docs = sampling.sample(counts, draws, drawn, topics, alpha, word_topics)
        found.append((drawn, of_docs, word_topics))
    for one, two, whole in zip(*found, strict=True):
        assert torch.equal(one, two)
        torch.testing.assert_close(one, whole)


def test_random_numbers_are_uniform_and_independent():
    seeds = torch.randint(2**62, (400,), generator=torch.Generator().manual_seed(1))
    numbers = uniform(seeds[:, None], torch.arange(250)[None])  # (400, 250)
    assert float(numbers.min()) >= 0
    assert float(numbers.max()) < 1
    assert float(numbers.mean()) == pytest.approx(0.5, abs=0.005)
    assert np.histogram(numbers, 20, (0, 1))[0] == pytest.approx(5000, rel=0.06)
    for shifted in (numbers[:, 1:], numbers[1:]):
        same = numbers[: len(shifted), : shifted.shape[1]]
        assert abs(np.corrcoef(same.ravel(), shifted.ravel())[0, 1]) < 0.01


def test_tokens_of_documents_are_found_again(monkeypatch):
    monkeypatch.setattr(sampling, "_NON_ZEROS_AT_ONCE", 17)
    counts = batch()
    arrays = (each.numpy() for each in (counts.values, counts.indices, counts.offsets))
    starts = token_starts(sparse.csr_array(tuple(arrays), (D, V)))
    tokens = tokens_of(counts.values)
    assert starts.tolist() == [0, *tokens.cumsum(0)[counts.offsets[1:] - 1].tolist()]
    store = Assignments.empty(starts, K)
    types = {n: Assignments.empty(starts, n).topics.dtype for n in (K, 256, 257, 1 << 15, (1 << 15) + 1)}
    assert list(types.values()) == [torch.uint8, torch.uint8, torch.int16, torch.int16, torch.int32]
    rows = torch.tensor([5, 0, 29])
    places = store.places(rows)
    expected = [torch.arange(int(starts[row]), int(starts[row + 1])) for row in rows]
    assert torch.equal(places, torch.cat(expected))


def test_a_word_is_drawn_at_most_sixty_four_times():
    assert tokens_of(torch.tensor([0.3, 1.0, 2.5, 64.0, 1e6])).tolist() == [1, 1, 3, 64, 64]


@pytest.mark.parametrize("eta", [0.02, 0.3])
def test_steps_find_the_parameter_of_drawn_topics(eta):
    random = np.random.default_rng(0)
    topics = random.dirichlet(np.full(400, eta), 10)
    counts = torch.from_numpy(np.stack([random.multinomial(20_000, topic) for topic in topics], axis=1)).float()
    found = torch.tensor(0.1)
    for _ in range(100):
        found = eta_step(counts, found)
    assert float(found) == pytest.approx(eta, rel=0.1)
    assert eta_step(torch.zeros(5, 2), torch.tensor(0.01)) > 0


def test_a_prior_has_no_more_tokens_than_its_topic():
    counts = torch.full((400, 10), 0.2)  # all words are as frequent in all topics, so that eta would rise to its bound
    found = torch.tensor(0.01)
    for _ in range(200):
        found = eta_step(counts, found)
    assert float(found) == pytest.approx(0.2)  # 80 tokens of a topic for 400 words


@pytest.mark.parametrize("seed", [0, 1])
def test_topics_of_words_in_few_documents_do_not_become_alike(seed):
    planted = synthetic_lda(800, 10, 1500, 6, alpha=0.05, eta=0.2, random_state=seed)  # a word occurs three times
    model = Loom(10, random_state=0, device="cpu").fit(planted.corpus)
    tops = model.topic_ids(25)
    assert len(np.unique(tops)) > 0.8 * tops.size
    assert model.history_[-1]["concentration"] < 2  # documents have few topics
    found = model.transform(planted.corpus).argmax(1)
    assert normalized_mutual_info_score(planted.theta.argmax(1), found) > 0.1


def test_empty_documents_do_not_change_the_topics():
    """Not even if the limit of alpha, which depends on the mean length of documents, is reached."""
    counts = synthetic_lda(200, 4, 600, 3, alpha=0.05, eta=0.2, random_state=0).corpus.counts
    with_empty = sparse.csr_array(sparse.vstack([counts, sparse.csr_array((400, 600), dtype=counts.dtype)]))
    models = [Loom(4, epochs=60, random_state=0, device="cpu").fit(each) for each in (counts, with_empty)]
    assert models[0].history_[-1]["concentration"] > 0.5  # of the limit of 1; a third as many tokens would allow .34
    np.testing.assert_array_equal(models[1].components_, models[0].components_)


def test_the_learned_eta_is_part_of_the_model(tmp_path):
    corpus = synthetic_lda(200, 4, 60, doc_length=30).corpus
    model = Loom(4, epochs=20, hidden_size=8, random_state=0, device="cpu").fit(corpus)
    eta = float(model.network_.counting.eta)
    assert abs(eta - model.eta) > 1e-3
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert float(again.network_.counting.eta) == eta
    before = again.components_
    again.partial_fit(corpus[:5])
    assert float(again.network_.counting.eta) == eta
    assert abs(again.components_ - before).sum(1).max() < 0.1  # five documents hardly change the topics


def test_the_topics_of_the_best_epoch_are_restored():
    seen = {}

    class Seen(Callback):
        def on_state(self, state) -> None:
            seen[state.epoch] = state.network.counting.topics().clone()

    model = Loom(
        4, epochs=60, pretrain_share=0.1, sample_share=0.8, patience=5, validation_fraction=0.3, random_state=0
    )
    model.set_params(hidden_size=8, device="cpu").fit(
        synthetic_lda(100, 4, 60, doc_length=20).corpus, callbacks=[Seen()]
    )
    averaged = range(60 - 48 // 2 + 1, len(model.history_) + 1)
    best = min(averaged, key=lambda epoch: model.history_[epoch - 1]["validation_loss"])
    assert best < len(model.history_)
    np.testing.assert_array_equal(model.components_, seen[best].mT)


def test_patience_waits_until_counts_are_averaged():
    """The loss of one draw of the topics varies, and that of their mean falls with each further pass."""
    model = Loom(4, epochs=60, pretrain_share=0.1, sample_share=0.8, patience=1, validation_fraction=0.3)
    model.set_params(hidden_size=8, device="cpu", random_state=0)
    model.fit(synthetic_lda(100, 4, 60, doc_length=20).corpus)
    assert len(model.history_) > 60 - 48 // 2


def test_an_interrupted_run_keeps_the_topics_of_its_last_pass(interrupted_after):
    corpus = synthetic_lda(100, 4, 60, doc_length=20).corpus
    settings = {"epochs": 60, "pretrain_share": 0.1, "sample_share": 0.8, "hidden_size": 8, "random_state": 0}
    model = Loom(4, **settings, device="cpu")
    with pytest.raises(KeyboardInterrupt):
        model.fit(corpus, callbacks=[interrupted_after(31)])
    counting = model.network_.counting
    assert not counting.is_outdated
    expected = cvb0.sharpen(counting.word_topics, counting.tokens, counting.sharpness, counting.eta)
    np.testing.assert_allclose(model.components_, expected.mT, rtol=1e-5)


def test_passes_after_pretraining_have_large_batches():
    counted = []

    class Counter(Callback):
        def on_batch(self) -> None:
            counted[-1] += 1

        def on_epoch(self, row) -> None:
            counted.append(0)

    counted.append(0)
    model = Loom(4, epochs=10, sample_share=0.6, batch_size=50, hidden_size=8, random_state=0, device="cpu")
    model.fit(synthetic_lda(200, 4, 60, doc_length=30).corpus, callbacks=[Counter()])
    n_pretraining, n_counting, *_ = model.stage_epochs(model.word_statistics())
    assert counted[:-1] == [4] * n_pretraining + [1] * (n_counting + 6)


def test_topics_of_a_subset_count_all_documents(monkeypatch, caplog):
    for name, value in SMALL_SUBSET.items():
        monkeypatch.setattr(loom_model, name, value)
    planted = synthetic_lda(1000, 4, 60, doc_length=30, random_state=0)
    model = Loom(4, epochs=100, hidden_size=8, random_state=0, device="cpu")
    with caplog.at_level(logging.INFO, "topicloom"):
        model.fit(planted.corpus)
    n_epochs = sum(model.stage_epochs(model.word_statistics())[:3])
    assert f"the first {n_epochs} epochs of Loom read a subset of 100 documents" in caplog.messages
    counting = model.network_.counting
    tokens = planted.corpus.counts.copy()
    tokens.data = tokens.data**model.count_power
    np.testing.assert_allclose(counting.word_topics.sum(1), tokens.sum(0), rtol=1e-4)
    np.testing.assert_array_equal(counting.tokens, planted.corpus.counts.sum(0))
    distance = np.abs(planted.topics[:, None] - model.components_[None]).sum(2) / 2  # (4, 4)
    assert distance.min(1).max() < 0.15
    theta = model.transform(planted.corpus)[:, distance.argmin(1)]
    assert np.abs(theta - planted.theta).mean() < 0.1


def test_only_passes_that_read_the_encoder_shuffle_documents(monkeypatch):
    """Batch statistics of the encoder would depend on the order of a corpus whose classes follow each other."""
    for name, size in (("_COUNTING_BATCH", 20), ("_SAMPLING_BATCH", 40), ("_ENCODER_SAMPLING_PASSES", 4)):
        monkeypatch.setattr(loom_model, name, size)
    passes: list[list[int]] = []
    count = CollapsedCounts.count

    def counted(counting, batch, theta, *rest, **options):
        if not counting.batches_done:
            passes.append([])
        passes[-1] += batch.rows.tolist()
        return count(counting, batch, theta, *rest, **options)

    monkeypatch.setattr(CollapsedCounts, "count", counted)
    model = Loom(4, epochs=20, pretrain_share=0.1, sample_share=0.6, batch_size=20, hidden_size=8, random_state=0)
    model.fit(synthetic_lda(200, 4, 60, doc_length=30).corpus)
    assert all(sorted(rows) == list(range(200)) for rows in passes)
    in_order = [rows == sorted(rows) for rows in passes]
    counting = [False] + [(6 - done) % 4 != 1 for done in range(1, 6)]
    assert in_order == counting + [(12 - done) % 4 != 1 for done in range(12)]


def test_all_batches_of_a_pass_are_of_one_size(monkeypatch):
    """A run that goes on in the middle of a pass reads the rest of its batches only if their size has not changed."""
    for name, size in (("_COUNTING_BATCH", 20), ("_SAMPLING_BATCH", 40), ("_ENCODER_INTERVAL", 3)):
        monkeypatch.setattr(loom_model, name, size)
    monkeypatch.setattr(loom_model, "_ENCODER_SAMPLING_PASSES", 4)
    seen = []

    class Seen(Callback):
        def on_step(self, state) -> None:
            seen.append((state.epoch, state.network.epoch_options().min_batch_size))

    model = Loom(4, epochs=20, pretrain_share=0.1, sample_share=0.6, batch_size=20, hidden_size=8, random_state=0)
    model.fit(synthetic_lda(200, 4, 60, doc_length=30).corpus, callbacks=[Seen()])
    sizes = [{size for number, size in seen if number == epoch} for epoch in range(20)]
    sampling = [{20} if (12 - done) % 4 == 1 else {40} for done in range(12)]
    assert sizes == [{1}] * 2 + [{20}] * 6 + sampling


def test_the_collapse_watch_runs_at_removals_and_every_32_epochs():
    model = Loom(4, epochs=70, pretrain_share=0.1, sample_share=0.5, hidden_size=8, random_state=0, device="cpu")
    history = model.fit(synthetic_lda(200, 4, 60, doc_length=30).corpus).history_
    n_pretraining, n_counting, *_ = model.stage_epochs(model.word_statistics())
    kept = [Pruning(4, 8).n_kept(done, n_counting) for done in range(n_counting + 1)]
    removed = [n_pretraining + done for done in range(1, n_counting + 1) if kept[done] < kept[done - 1]]
    assert len(removed) == 3
    measured = {name: [row["epoch"] for row in history if name in row] for name in measures_of("watch")}
    always = {*range(1, n_pretraining + 2), *removed, len(history)}
    expected = [each for each in range(1, len(history) + 1) if each in always or each % 32 == 0]
    assert measured == dict.fromkeys(measures_of("watch"), expected)  # no row repeats the values of an earlier one
