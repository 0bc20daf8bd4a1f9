"""Document expansion, encoders that read vectors, and the models that use both."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import sparse
from scipy.special import softmax
from sklearn.base import clone

import topicloom as tl
from batches import dense_of
from kinds import RELATIVES
from topicloom import metrics
from topicloom.embeddings.expansion import DocumentExpansion, ExpandedCorpus, pools_of, shares_words, systematic
from topicloom.errors import InputError
from topicloom.models import MODELS
from topicloom.models.loom.model import LoomNetwork
from topicloom.models.words import Words
from topicloom.nn.sparse import Batch
from topicloom.training.batches import BatchReader, sparse_counts

CPU = torch.device("cpu")
N_GROUPS, N_WORDS = 4, 40


def short_texts(n_docs=240, seed=0):
    """Documents of two words. A group has ten words, and few documents of a group have a word in common."""
    rng = np.random.default_rng(seed)
    group = rng.integers(N_GROUPS, size=n_docs)
    counts = np.zeros((n_docs, N_WORDS), np.int64)
    for row in range(n_docs):
        counts[row, rng.choice(10, size=2, replace=False) + 10 * group[row]] = 1
    vectors = np.eye(8)[group] + rng.normal(scale=0.15, size=(n_docs, 8))
    return counts, vectors.astype(np.float32), group


COUNTS, VECTORS, GROUP = short_texts()
CORPUS = tl.Corpus.from_counts(COUNTS, vectors=VECTORS)
NEW_COUNTS, NEW_VECTORS, NEW_GROUP = short_texts(seed=1)
NEW = tl.Corpus.from_counts(NEW_COUNTS, vectors=NEW_VECTORS)


def purity(theta, group):
    own = theta.argmax(1)
    return sum(np.bincount(group[own == k]).max() for k in np.unique(own)) / len(group)


def agreement(theta, group):
    """The share of documents that have the commonest main topic of their group."""
    own = theta.argmax(1)
    return sum(np.bincount(own[group == each]).max() for each in range(N_GROUPS)) / len(group)


def test_systematic_sampling_against_exact_fractions():
    rng = np.random.default_rng(0)
    for n_drawn in (1, 7, 20):
        row = rng.integers(1, 9, size=13)
        phase = 0.375  # a fraction that floats hold exactly
        ends = [Fraction(int(part), int(row.sum())) * n_drawn + Fraction(3, 8) for part in np.cumsum([0, *row])]
        expected = [int(last) - int(first) for first, last in pairwise(ends)]
        drawn = systematic(sparse.csr_array(row[None].astype(float)), n_drawn, np.array([phase]))
        assert drawn.tolist() == expected
        assert drawn.sum() == n_drawn


def test_the_mean_over_phases_is_the_expected_number():
    row = np.array([[5.0, 0.5, 1.25, 3.25]])
    phases = (np.arange(4000) + 0.5) / 4000
    drawn = systematic(sparse.csr_array(np.repeat(row, 4000, axis=0)), 6, phases).reshape(4000, 4)
    np.testing.assert_allclose(drawn.mean(0), 6 * row[0] / row.sum(), atol=1e-3)


def test_lent_words_against_brute_force():
    expansion = DocumentExpansion(CORPUS.counts, CORPUS.vectors, n_neighbours=5, n_tokens=12)
    found = expansion.of_training(CORPUS)
    unit = (VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)).astype(np.float16).astype(np.float64)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    cosine = unit @ unit.T
    np.fill_diagonal(cosine, -2)
    lent = found.counts.toarray() - COUNTS
    assert found.own is CORPUS.counts
    for row in range(len(COUNTS)):
        nearest = np.argsort(-cosine[row], kind="stable")[:5]
        expected = 12 * COUNTS[nearest].sum(0) / COUNTS[nearest].sum()
        assert lent[row].sum() == 12
        assert np.abs(lent[row] - expected).max() < 1


def test_a_row_depends_on_no_other_row():
    expansion = DocumentExpansion(CORPUS.counts, CORPUS.vectors, n_neighbours=7, n_tokens=20)
    whole = expansion.of_new(NEW)
    for rows in ([3], [5, 3, 200]):
        some = expansion.of_new(NEW[rows])
        np.testing.assert_array_equal(some.counts.toarray(), whole.counts.toarray()[rows])
    chosen = whole[[4, 2]]
    assert isinstance(chosen, ExpandedCorpus)
    np.testing.assert_array_equal(chosen.own.toarray(), NEW_COUNTS[[4, 2]])
    np.testing.assert_array_equal(chosen.given.counts.toarray(), NEW_COUNTS[[4, 2]])


def test_zero_vectors_lend_and_borrow_nothing():
    vectors = VECTORS.copy()
    vectors[[0, 7]] = 0
    expansion = DocumentExpansion(CORPUS.counts, vectors, n_neighbours=239, n_tokens=20)
    found = expansion.of_training(CORPUS).counts.toarray() - COUNTS
    assert not found[[0, 7]].any()
    only_zero = np.zeros_like(VECTORS)
    assert not (DocumentExpansion(CORPUS.counts, only_zero, 5, 20).of_training(CORPUS).counts - CORPUS.counts).nnz


def test_more_neighbours_than_documents_are_all_documents():
    most = DocumentExpansion(CORPUS.counts, CORPUS.vectors, n_neighbours=10**12, n_tokens=20)
    every = DocumentExpansion(CORPUS.counts, CORPUS.vectors, n_neighbours=len(COUNTS), n_tokens=20)
    for found, expected in (
        (most.of_training(CORPUS), every.of_training(CORPUS)),
        (most.of_new(NEW), every.of_new(NEW)),
    ):
        np.testing.assert_array_equal(found.counts.toarray(), expected.counts.toarray())


def test_vectors_in_another_order_are_noticed(caplog):
    rng = np.random.default_rng(0)
    orders = [np.arange(len(COUNTS)), *(rng.permutation(len(COUNTS)) for _ in range(20))]
    corpora = [tl.Corpus.from_counts(COUNTS, vectors=VECTORS[order]) for order in orders]
    found = [shares_words(DocumentExpansion(each.counts, each.vectors, 20, 20).of_training(each)) for each in corpora]
    assert found == [True] + [False] * 20
    for corpus, warns in zip(corpora[:2], (False, True), strict=True):
        caplog.clear()
        tl.LDA(N_GROUPS, epochs=1, random_state=0).fit(corpus)
        assert ("in their order" in caplog.text) == warns


def test_a_reader_gives_own_and_expanded_counts():
    expanded = DocumentExpansion(CORPUS.counts, CORPUS.vectors, 5, 12).of_training(CORPUS)
    reader = BatchReader.of(expanded, 50, CPU, ["vectors"])
    assert sum(batch.n_docs for batch in reader) == 240
    for batch in reader.without_empty():
        rows = batch.rows.numpy()
        np.testing.assert_array_equal(dense_of(batch.own_counts).numpy(), COUNTS[rows])
        np.testing.assert_array_equal(dense_of(batch.counts).numpy(), expanded.counts.toarray()[rows])
        np.testing.assert_array_equal(batch.fields["vectors"].numpy(), VECTORS[rows])


SLOW = {*RELATIVES, tl.NVDM, tl.BATM}  # whose encoders are those of others
READERS = [
    pytest.param(kind, marks=pytest.mark.slow if kind in SLOW else ())
    for kind in MODELS
    if kind is not tl.LDA and not kind.needs_vectors
]


@pytest.mark.parametrize("kind", READERS)
def test_vectors_find_groups_of_short_texts(kind):
    settings = {"n_topics": N_GROUPS, "random_state": 0} | ({"epochs": 60} if kind is tl.Loom else {"epochs": 25})
    model = kind(**settings).fit(CORPUS)
    theta = model.transform(NEW)
    assert purity(theta, NEW_GROUP) > 0.95
    without = kind(**{**settings, "epochs": 1}).fit(tl.Corpus.from_counts(COUNTS))
    assert model.word_counts_.tolist() == without.word_counts_.tolist() == COUNTS.sum(0).tolist()
    assert model.n_lent_tokens_ == 20 * 240
    # A document without words has topics by its vector.
    wordless = tl.Corpus.from_counts(np.zeros_like(NEW_COUNTS), vectors=NEW_VECTORS)
    assert purity(model.transform(wordless), NEW_GROUP) > 0.9


def test_lda_infers_with_neighbours(tmp_path):
    model = tl.LDA(N_GROUPS, random_state=1, epochs=40).fit(CORPUS)
    theta = model.transform(NEW)
    without = tl.LDA(N_GROUPS, random_state=1, epochs=40).fit(tl.Corpus.from_counts(COUNTS))
    assert agreement(theta, NEW_GROUP) > 0.95 > 0.8 > agreement(without.transform(NEW_COUNTS), NEW_GROUP)
    model.save(tmp_path / "model")
    loaded = tl.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(NEW), theta)
    merged = loaded.merge([0, 1])
    merged.save(tmp_path / "merged")
    np.testing.assert_array_equal(tl.load(tmp_path / "merged").transform(NEW), merged.transform(NEW))


@pytest.mark.parametrize("settings", [{}, {"infer_with_neighbours": True}, {"encoder_reads": "vectors"}])
@pytest.mark.parametrize("name", ["GSM", "Loom"])
def test_a_saved_model_infers_the_same(name, settings, tmp_path):
    model = getattr(tl, name)(N_GROUPS, epochs=8, random_state=0, **settings).fit(CORPUS)
    model.save(tmp_path / "model")
    loaded = tl.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(NEW), model.transform(NEW))
    keeps = name == "Loom" and "infer_with_neighbours" in settings
    assert (tmp_path / "model" / "neighbours.safetensors").exists() == keeps


@pytest.mark.parametrize("kind", [tl.LDA, tl.Loom])
def test_interpolation_and_codes_are_those_of_transform(kind):
    settings = {} if kind is tl.LDA else {"infer_with_neighbours": True}
    model = kind(N_GROUPS, epochs=8, random_state=0, **settings).fit(CORPUS)
    path, ends = model.interpolate(NEW[0], NEW[1], steps=3), NEW[[0, 1]]
    np.testing.assert_allclose(path.theta[[0, -1]], model.transform(ends), atol=1e-5)
    codes, _ = model.latent(ends)  # log-ratios of theta
    np.testing.assert_allclose(softmax(codes, axis=1), model.transform(ends), atol=1e-5)


@pytest.mark.parametrize("edit", [{"split": 0, "into": 2}, {"add": 1}, {"merge": [0, 1]}], ids=str)
@pytest.mark.parametrize("kind", [tl.LDA, tl.Loom])
def test_documents_after_edits_have_the_theta_of_transform(kind, edit):
    settings = {} if kind is tl.LDA else {"infer_with_neighbours": True}
    model = kind(N_GROUPS, epochs=8, random_state=0, **settings).fit(CORPUS)
    edited, documents = model.apply_with([edit], CORPUS, model.infer(CORPUS))
    np.testing.assert_allclose(documents.theta, edited.transform(CORPUS), atol=1e-5)


def test_training_vectors_are_kept_only_where_inference_reads_them(caplog):
    settings = {"n_topics": N_GROUPS, "epochs": 8, "random_state": 0}
    kept, usual = (tl.Loom(**settings, infer_with_neighbours=keeps).fit(CORPUS) for keeps in (True, False))
    wordless = tl.Corpus.from_counts(np.zeros_like(NEW_COUNTS), vectors=NEW_VECTORS)
    assert not np.allclose(kept.transform(wordless), usual.transform(wordless), atol=0.05)
    assert "no effect" not in caplog.text
    for kind in (tl.GSM, tl.ETM, tl.WLDA):  # whose encoders read own words
        model = kind(**settings, encoder_reads="counts", infer_with_neighbours=True).fit(CORPUS)
        assert "`infer_with_neighbours=True` has no effect" in caplog.text
        caplog.clear()
        assert not model.reads_vectors
        assert model.infer(wordless).empty.all()


@pytest.mark.parametrize("lent", [20, 2, 0])
def test_the_encoder_of_loom_learns_by_the_lent_share(lent, monkeypatch):
    rates = []
    monkeypatch.setattr(
        "topicloom.models.loom.model.train_stages", lambda state, reader, stages: rates.append(stages[0].plan)
    )
    tl.Loom(N_GROUPS, epochs=8, random_state=0, neighbour_tokens=lent).fit(CORPUS)  # documents have two words
    assert [plan.learning_rate for plan in rates] == ([pytest.approx(0.01 * (lent / (2 + lent)) ** 2)] if lent else [])


def test_lent_words_are_taken_out_of_the_topics_of_loom(monkeypatch):
    """N_vk min(1, O_vk / E_vk), where O are the expected counts of own words, and E those of own and lent words."""
    take_out, expected, found = LoomNetwork._count_own_words, [], []

    def counted(network, batch):
        theta = network.posterior(batch).point().double().numpy()
        x, beta = dense_of(batch.counts).double().numpy() ** network.counting.count_power, topics.double().numpy()
        return beta * ((x / (theta @ beta.T)).T @ theta)

    def observed(network, documents):
        nonlocal topics
        topics, before = network.counting.topics().clone(), network.counting.word_topics.double().numpy()
        (batch,) = documents.with_batches_of(len(COUNTS))
        own, every = (counted(network, each) for each in (replace(batch, counts=batch.own_counts, own=None), batch))
        assert (own > every).any()  # theta of own words alone is another one
        expected.append(before * np.minimum(1, own / every))
        take_out(network, documents)
        found.append(network.counting.word_topics.double().numpy())

    topics = torch.empty(0)
    monkeypatch.setattr(LoomNetwork, "_count_own_words", observed)
    vectors = VECTORS + np.random.default_rng(2).normal(size=VECTORS.shape)  # documents of several groups are near
    model = tl.Loom(N_GROUPS, epochs=40, neighbour_tokens=1, random_state=0, device="cpu")
    model.fit(CORPUS.with_vectors(vectors))
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-3, atol=1e-4)


def test_documents_without_vectors_are_read_by_their_words(caplog):
    model = tl.GSM(N_GROUPS, epochs=25, random_state=0).fit(CORPUS)
    theta = model.transform(NEW_COUNTS)
    assert "the documents have no vectors" in caplog.text
    zero = tl.Corpus.from_counts(NEW_COUNTS, vectors=np.zeros_like(NEW_VECTORS))
    np.testing.assert_array_equal(model.transform(zero), theta)
    assert purity(theta, NEW_GROUP) > 0.6
    vectors_only = tl.GSM(N_GROUPS, epochs=3, random_state=0, encoder_reads="vectors").fit(CORPUS)
    with pytest.raises(InputError, match="vectors"):
        vectors_only.transform(NEW_COUNTS)


def test_completion_does_not_read_vectors_of_whole_texts():
    model = tl.GSM(N_GROUPS, epochs=8, random_state=0).fit(CORPUS)
    other = tl.Corpus.from_counts(NEW_COUNTS, vectors=np.roll(NEW_VECTORS, 1, axis=0))
    assert model.perplexity(NEW) == model.perplexity(other)


def test_settings_turn_vectors_off():
    settings = {"n_topics": N_GROUPS, "epochs": 4, "random_state": 0}
    plain = tl.GSM(**settings).fit(tl.Corpus.from_counts(COUNTS))
    off = tl.GSM(**settings, neighbour_tokens=0, encoder_reads="counts").fit(CORPUS)
    np.testing.assert_array_equal(plain.components_, off.components_)
    assert off.n_lent_tokens_ == 0
    assert tl.GSM.as_published().neighbour_tokens == 0
    assert tl.ProdLDA.as_published().encoder_reads == "counts"


@pytest.mark.parametrize("changed", [{"neighbours": 3}, {"neighbour_tokens": 5}, {"encoder_reads": "counts"}])
def test_settings_of_vectors_have_an_effect(changed):
    settings = {"n_topics": N_GROUPS, "epochs": 2, "random_state": 0}
    usual, other = (tl.GSM(**settings, **more).fit(CORPUS) for more in ({}, changed))
    assert not np.allclose(usual.components_, other.components_)


def test_an_encoder_that_reads_vectors_alone_ignores_words():
    model = tl.WLDA(N_GROUPS, epochs=3, random_state=0, encoder_reads="vectors").fit(CORPUS)
    rows = np.arange(5)
    batch = Batch(sparse_counts(CORPUS.counts, rows, CPU), None, {"vectors": torch.from_numpy(VECTORS[:5])})
    other = Batch(sparse_counts(NEW.counts, rows, CPU), None, {"vectors": torch.from_numpy(VECTORS[:5])})
    with torch.inference_mode():
        first, second = (model.network_.posterior(each).point() for each in (batch, other))
    assert torch.equal(first, second)


def test_an_interrupted_fit_with_vectors_goes_on(tmp_path):
    def model():
        return tl.Loom(N_GROUPS, epochs=40, random_state=0)

    whole = model().fit(CORPUS)

    class Stop(tl.Callback):
        def on_epoch(self, row):
            if row["epoch"] == 7:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model().fit(CORPUS, callbacks=[Stop()], checkpoint=tl.Checkpoints(tmp_path, every="1 epochs"))
    resumed = model().fit(CORPUS, checkpoint=tl.Checkpoints(tmp_path, every="1 epochs"))
    np.testing.assert_array_equal(resumed.components_, whole.components_)
    np.testing.assert_array_equal(resumed.transform(NEW), whole.transform(NEW))


# An encoder of two languages. Words of the same meaning have the same vector.

MEANINGS = [
    "足球 football 比赛 match 球队 team 冠军 champion 进球 goal 教练 coach",
    "银行 bank 股票 shares 利率 rates 市场 market 基金 fund 投资 investment",
    "电影 film 演员 actor 音乐 music 歌手 singer 导演 director 明星 star",
]
PAIRS = [words.split() for words in MEANINGS]
ROW_OF = {word: 6 * group + i // 2 for group, words in enumerate(PAIRS) for i, word in enumerate(words)}
DIRECTIONS = np.random.default_rng(0).normal(size=(18, 12))
DIRECTIONS += 2 * np.repeat(np.random.default_rng(1).normal(size=(3, 12)), 6, axis=0)


def encode_both(texts):
    return np.array([sum((DIRECTIONS[r] for w, r in ROW_OF.items() if w in text), np.zeros(12)) for text in texts])


def titles(language, n_docs=180):
    """Titles of three words of one of three groups, in Chinese (0) or English (1)."""
    rng = np.random.default_rng(language)
    group = rng.integers(3, size=n_docs)
    return [" ".join(rng.choice(PAIRS[each][language::2], size=3, replace=False)) for each in group], group


@pytest.mark.parametrize("trained", [0, 1])
@pytest.mark.parametrize(
    "model",
    [
        tl.GSM(3, encoder_reads="vectors", epochs=20, random_state=0),
        tl.ProdLDA.as_published(3, recipe="zeroshot", epochs=60, random_state=0),
        tl.Loom(3, epochs=40, random_state=0),
    ],
    ids=["GSM", "zeroshot", "Loom"],
)
def test_topics_of_one_language_for_texts_of_another(model, trained):
    texts, group = titles(trained)
    others, other_group = titles(1 - trained)
    language = ("zh", "en")[trained]
    model = clone(model).fit(tl.Corpus.from_texts(texts, language=language, min_df=2, encoder=encode_both))
    assert not set(" ".join(others).split()) & set(model.vocabulary_)
    own, given = model.transform(texts).argmax(1), model.transform(others).argmax(1)
    topic_of = [int(np.bincount(own[group == each]).argmax()) for each in range(3)]
    assert sorted(topic_of) == [0, 1, 2]
    assert (given == np.array(topic_of)[other_group]).mean() > 0.95


def brute_pools(n_neighbours):
    unit = VECTORS.astype(np.float64) / np.linalg.norm(VECTORS, axis=1, keepdims=True)
    cosine = unit @ unit.T
    np.fill_diagonal(cosine, 2)
    return np.argsort(-cosine, axis=1, kind="stable")[:, : 1 + n_neighbours]


def test_pools_against_brute_force():
    expected = brute_pools(6)
    np.testing.assert_array_equal(pools_of(VECTORS, 6), expected)
    np.testing.assert_array_equal(pools_of(VECTORS, 6, most=80), expected[::3])
    some = VECTORS.copy()
    some[::2] = 0  # no vector
    some[3] = some[1]
    found = pools_of(some, 6, most=40)
    assert found[:, 0].tolist() == list(range(1, 240, 6))
    assert (found % 2 == 1).all()
    assert all(len(set(pool)) == 7 for pool in found.tolist())


def test_coherence_of_pooled_documents_is_evaluated():
    model = tl.GSM(N_GROUPS, epochs=40, random_state=0).fit(CORPUS)
    found = tl.evaluate(model, NEW, training=CORPUS)
    joined = COUNTS[brute_pools(20)].sum(axis=1)
    topics = [[int(word) for word in topic] for topic in model.topic_ids(10)]
    np.testing.assert_allclose(found["pooled_npmi"].per_topic, metrics.document_npmi(topics, joined).per_topic)
    assert found["pooled_npmi"] > found["document_npmi"] + 0.3  # two words of a group seldom meet in a document
    without = tl.Corpus.from_counts(COUNTS)
    assert "vectors" in tl.evaluate(tl.LDA(3, epochs=2).fit(without), without).skipped["pooled_npmi"]
    by_counts = metrics.Reference.from_counts(COUNTS)
    with pytest.raises(InputError, match="no vectors of documents"):
        tl.evaluate(model, NEW, reference=by_counts, measures=["pooled_npmi"])


@pytest.mark.parametrize(
    ("model", "expected"), [(tl.GSM(4), 0.862), (tl.ProdLDA(4), 0), (tl.ETM(4, min_diversity=0.5), 0.7)]
)
def test_more_diversity_is_required_with_lent_words(model, expected):
    words = Words(torch.zeros(900), torch.zeros(900), [str(n) for n in range(900)], 100, 1000.0, n_lent=800.0)
    assert model.build_separation_term(words).target == pytest.approx(expected)
    alone = replace(words, n_lent=0.0)
    assert model.build_separation_term(alone).target == model.min_diversity
