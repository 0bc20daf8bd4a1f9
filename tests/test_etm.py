"""ETM: where its word vectors come from, and what happens to them."""

from __future__ import annotations

import itertools
import json
import logging
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.preprocessing import normalize

from topicloom import (
    ETM,
    Corpus,
    GaussianBATM,
    InputError,
    TrainingDivergedError,
    WordVectors,
    compare,
    load,
    read_word_vectors,
)
from topicloom.datasets import synthetic_lda
from topicloom.errors import SettingError
from topicloom.models.etm import placed_vectors
from topicloom.reports import run
from topicloom.settings import settings_as_json, settings_as_text

N_TOPICS = 4
CORPUS = synthetic_lda(n_docs=200, n_topics=N_TOPICS, n_words=40, doc_length=30).corpus
SETTINGS = {"epochs": 3, "batch_size": 32, "hidden_size": 16, "random_state": 0, "device": "cpu"}
_random = np.random.default_rng(0)
VECTORS = WordVectors(CORPUS.vocabulary, 3 + _random.normal(size=(40, 8)) * np.geomspace(1, 0.1, 8))


def etm(**settings) -> ETM:
    return ETM(N_TOPICS, **{**SETTINGS, **settings})


def at_start(model: ETM) -> np.ndarray:
    """The word vectors before the first step."""
    model._begin(CORPUS, None)
    return model._start(for_fit=True).network.decoder.topics.word_vectors.detach().numpy()


def placed(vectors: np.ndarray, whiten: str) -> np.ndarray:
    """The vectors at the start of training, by scikit-learn."""
    n_dimensions = vectors.shape[1]
    if whiten == "none":
        return vectors / np.sqrt(np.mean(vectors**2))
    if whiten == "full":
        white = PCA(whiten=True).fit(vectors)
        vectors = white.transform(vectors) @ white.components_
    return normalize(vectors - vectors.mean(0)) * n_dimensions**0.5


def groups(n_words: int, n_dimensions: int) -> tuple[WordVectors, np.ndarray]:
    """Word vectors of 25 groups of related words, and the group of each word."""
    random = np.random.default_rng(0)
    group = np.arange(n_words) % 25
    vectors = random.normal(size=(25, n_dimensions))[group] + 0.73 * random.normal(size=(n_words, n_dimensions))
    return WordVectors(map(str, range(n_words)), vectors), group


def cosines(vectors: np.ndarray, group: np.ndarray) -> tuple[float, float]:
    """The mean cosine of the words of one group, and that of words of different groups."""
    cosine, same = cosine_similarity(vectors - vectors.mean(0)), group[:, None] == group
    return cosine[same & ~np.eye(len(group), dtype=bool)].mean(), cosine[~same].mean()


@pytest.fixture
def path(tmp_path) -> Path:
    VECTORS.save(tmp_path / "vectors.txt")
    return tmp_path / "vectors.txt"


def test_learned():
    model = etm(embedding_size=6).fit(CORPUS)
    assert model.word_embeddings_.shape == (40, 6)
    assert model.topic_embeddings_.shape == (N_TOPICS, 6)
    assert not np.array_equal(model.word_embeddings_, at_start(etm(embedding_size=6)))


@pytest.mark.parametrize("whiten", ["none", "length", "full"])
def test_started_from_vectors(whiten):
    start = at_start(etm(word_vectors=VECTORS, whiten=whiten))
    np.testing.assert_allclose(start, placed(VECTORS.vectors, whiten), rtol=1e-2, atol=1e-4)
    np.testing.assert_allclose((start**2).mean(), 1, rtol=1e-5)
    model = etm(word_vectors=VECTORS, whiten=whiten).fit(CORPUS)
    assert not np.array_equal(model.word_embeddings_, start)
    np.testing.assert_allclose(model.word_embeddings_, start, atol=0.3)


@pytest.mark.parametrize("whiten", ["none", "length"])
def test_related_words_stay_together_however_few_they_are(whiten):
    vectors, group = groups(150, 300)
    before, after = cosines(vectors.vectors, group), cosines(placed_vectors(vectors.vectors, whiten), group)
    np.testing.assert_allclose(after, before, atol=0.02)
    assert before[0] > 0.6 > 0 > before[1]


def test_whitening_of_few_words_is_refused():
    """In as many dimensions as words, whitening makes all words equally far from each other."""
    vectors, group = groups(150, 300)
    within, between = cosines(placed_vectors(vectors.vectors, "full"), group)
    assert abs(within - between) < 0.01
    ids = Corpus.from_counts(np.ones((3, 150)), vectors.words)
    with pytest.raises(SettingError, match=r"`whiten='full'` would erase what the vectors of 150 words .*'length'`$"):
        etm(word_vectors=vectors, whiten="full").fit(ids)
    assert etm(word_vectors=vectors).fit(ids).word_embeddings_.shape == (150, 300)
    enough, group = groups(150, 50)
    etm(word_vectors=enough, whiten="full").fit(ids)
    nearest = cosine_similarity(placed_vectors(enough.vectors, "full")) - 2 * np.eye(150)
    assert (group[nearest.argmax(1)] == group).mean() > 0.5


def test_fixed():
    model = etm(word_vectors=VECTORS, fixed_word_vectors=True).fit(CORPUS)
    np.testing.assert_array_equal(model.word_embeddings_, at_start(model))


@pytest.mark.parametrize("kind", [ETM, GaussianBATM])
def test_vectors_that_are_fixed_have_to_be_given(kind, tmp_path):
    says = "`fixed_word_vectors=True` keeps the given word vectors as they are, but none are given; give `word_vectors="
    model = kind(N_TOPICS, word_vectors=VECTORS, fixed_word_vectors=True, **SETTINGS).fit(CORPUS)
    vectors = model.word_embeddings_
    with pytest.raises(SettingError, match=says):
        model.set_params(word_vectors=None).fit(CORPUS)
    np.testing.assert_array_equal(model.word_embeddings_, vectors)  # the earlier fit is kept
    with pytest.raises(SettingError, match=says):
        kind(N_TOPICS, fixed_word_vectors=True).partial_fit(CORPUS)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model", device="cpu")
    np.testing.assert_array_equal(loaded.partial_fit(CORPUS).word_embeddings_, vectors)
    with pytest.raises(SettingError, match=says):
        loaded.fit(CORPUS)  # with other words, the vectors would be drawn at random


@pytest.mark.parametrize("background", [True, False])
@pytest.mark.parametrize(
    "settings", [{}, {"word_vectors": VECTORS}, {"word_vectors": VECTORS, "fixed_word_vectors": True}]
)
def test_topics_are_products_of_what_is_shown(settings, background):
    model = etm(background=background, **settings).fit(CORPUS)
    logits = model.topic_embeddings_ @ model.word_embeddings_.T
    if background:
        logits += np.log(model.word_counts_ + 1)
    expected = torch.softmax(torch.from_numpy(logits), dim=1)
    np.testing.assert_allclose(model.components_, expected, rtol=1e-3, atol=1e-6)


def test_a_file_is_as_good_as_the_object(path, caplog):
    with caplog.at_level(logging.INFO, "topicloom"):
        from_file = etm(word_vectors=path).fit(CORPUS)
    assert [line for line in caplog.messages if "found" in line] == [f"40 of 40 words (100.0 %) found in {path}"]
    np.testing.assert_array_equal(from_file.components_, etm(word_vectors=VECTORS).fit(CORPUS).components_)
    np.testing.assert_array_equal(from_file.components_, etm(word_vectors=str(path)).fit(CORPUS).components_)


def test_dictionaries_and_gensim_vectors_serve_as_word_vectors(tmp_path):
    expected = etm(word_vectors=VECTORS).fit(CORPUS)
    by_word = dict(zip(VECTORS.words, VECTORS.vectors, strict=True))
    lists = {word: vector.tolist() for word, vector in by_word.items()}
    keyed = SimpleNamespace(index_to_key=list(VECTORS.words), vectors=VECTORS.vectors)
    for given in (by_word, lists, keyed):
        model = etm(word_vectors=given).fit(CORPUS)
        np.testing.assert_array_equal(model.components_, expected.components_)
    model.set_params(word_vectors=lists).fit(CORPUS).save(tmp_path / "model")
    assert json.loads((tmp_path / "model" / "config.json").read_text())["settings"]["word_vectors"] is None


def test_metrics_of_a_run_describe_the_vectors(path):
    model = etm(word_vectors=VECTORS).fit(CORPUS)
    measured = run.measure(model, CORPUS, seconds=1.0)
    assert json.loads(json.dumps(measured, allow_nan=False))["settings"]["word_vectors"] == {
        "words": 40, "size": 8, "digest": VECTORS.digest
    }  # fmt: skip
    assert settings_as_json(etm(word_vectors=path))["word_vectors"] == str(path)


def test_other_vectors_make_another_plan(path):
    texts = [settings_as_text(etm(word_vectors=given)) for given in (VECTORS, VECTORS, path, str(path))]
    assert texts[0] == texts[1]
    assert texts[2] == texts[3]
    WordVectors(VECTORS.words, VECTORS.vectors + 1).save(path)
    changed = [settings_as_text(etm(word_vectors=given)) for given in (read_word_vectors(path), path)]
    assert changed[0] != texts[0]
    assert changed[1] != texts[2]


def test_a_comparison_does_not_go_on_with_other_vectors(tmp_path):
    models = {"etm": etm(word_vectors=VECTORS, epochs=1)}
    compare(CORPUS, models, [2], 1, out=tmp_path)
    models["etm"].set_params(word_vectors=WordVectors(VECTORS.words, -VECTORS.vectors))
    with pytest.raises(InputError, match="has etm with other settings"):
        compare(CORPUS, models, [2], 1, out=tmp_path)


def test_words_without_a_vector_are_drawn():
    some = WordVectors(VECTORS.words[:30], VECTORS.vectors[:30])
    one, other = (
        etm(word_vectors=some, fixed_word_vectors=True, random_state=seed).fit(CORPUS).word_embeddings_
        for seed in (0, 1)
    )
    cosine = (one * other).sum(1) / 8  # the length is sqrt(8)
    assert (cosine[:30] > 0.9).all()
    assert (cosine[30:] < 0.9).all()


@pytest.mark.parametrize("whiten", ["none", "length", "full"])
def test_one_dimensional_and_equal_vectors_do_no_harm(whiten):
    for vectors in (VECTORS.vectors[:, :1], np.ones((40, 5)), np.zeros((40, 5))):
        given = WordVectors(VECTORS.words, vectors)
        assert np.isfinite(etm(word_vectors=given, whiten=whiten).fit(CORPUS).components_).all()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"word_vectors": VECTORS, "embedding_size": 9},
            "`embedding_size=9` does not fit word vectors of 8 dimensions",
        ),
        ({"word_vectors": WordVectors(["unheard"], [[1.0]])}, "none of the 40 words of the vocabulary"),
        ({"word_vectors": "nowhere.txt"}, "nowhere.txt does not exist"),
        ({"word_vectors": 3}, "`word_vectors` of ETM should be an instance of WordVectors or"),
    ],
)
def test_vectors_that_cannot_be_used(settings, said):
    with pytest.raises(InputError, match=said) as caught:
        etm(**settings).fit(CORPUS)
    assert "\n" not in str(caught.value)


def test_a_file_of_another_size(path):
    with pytest.raises(InputError, match="has vectors of 8 numbers, not 9"):
        etm(word_vectors=path, embedding_size=9).fit(CORPUS)
    assert etm(word_vectors=path, embedding_size=8).fit(CORPUS).word_embeddings_.shape == (40, 8)


@pytest.mark.parametrize(
    ("given", "fixed"),
    [*itertools.product(["object", "path", "string"], [False, True]), ("nothing", False)],
)
def test_saved_is_loaded_without_the_file(given, fixed, path, tmp_path):
    vectors = {"object": VECTORS, "path": path, "string": str(path), "nothing": None}[given]
    model = etm(word_vectors=vectors, fixed_word_vectors=fixed).fit(CORPUS)
    model.save(tmp_path / "model")
    path.unlink()
    again = load(tmp_path / "model", device="cpu")
    for name in ("components_", "word_embeddings_", "topic_embeddings_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    np.testing.assert_array_equal(again.transform(CORPUS), model.transform(CORPUS))
    assert again.nearest_words(1) == model.nearest_words(1)
    assert again.word_vectors is None
    assert again.fixed_word_vectors == fixed
    again.save(tmp_path / "again")
    again.partial_fit(CORPUS)
    assert np.array_equal(again.word_embeddings_, model.word_embeddings_) == fixed


def test_scikit_learn_copies_the_setting():
    model = etm(word_vectors=VECTORS)
    assert clone(model).get_params() == model.get_params()
    assert clone(model).word_vectors is VECTORS


def test_learning_in_parts():
    model = etm(word_vectors=VECTORS, fixed_word_vectors=True).partial_fit(CORPUS[:100]).partial_fit(CORPUS[100:])
    np.testing.assert_array_equal(model.word_embeddings_, at_start(etm(word_vectors=VECTORS)))


def test_nearest_words_of_a_topic():
    model = etm(word_vectors=VECTORS).fit(CORPUS)
    topic, words = model.topic_embeddings_[2], model.word_embeddings_
    cosine = words @ topic / np.linalg.norm(words, axis=1)
    assert model.nearest_words(2, top_n=3) == [model.vocabulary_[word] for word in np.argsort(-cosine)[:3]]
    fixed = etm(word_vectors=VECTORS, fixed_word_vectors=True).fit(CORPUS)
    lift = fixed.components_[2] / (fixed.word_counts_ + 1)
    assert fixed.nearest_words(2, top_n=3) == [fixed.vocabulary_[word] for word in np.argsort(-lift)[:3]]
    for topic in (-1, N_TOPICS, 1.5, None):
        with pytest.raises(SettingError, match=f"there is no topic {topic}"):
            model.nearest_words(topic)


@pytest.mark.parametrize("background", [True, False, "learned"])
def test_topics_follow_from_their_vectors_and_seed_words(background):
    word = CORPUS.vocabulary[5]
    model = etm(background=background, seed_words={1: [word]}).fit(CORPUS)
    m = {True: np.log((model.word_counts_ + 1) / (model.word_counts_ + 1).sum()), False: 0.0}
    logits = model.topic_embeddings_ @ model.word_embeddings_.T  # (K, V)
    logits = logits + m.get(background, model.network_.decoder.topics.background.detach().numpy())
    logits[1, model.vocabulary_.index(word)] += 4
    weights = np.exp(logits)
    np.testing.assert_allclose(model.components_, weights / weights.sum(1, keepdims=True), rtol=1e-4)


def test_the_papers_recipe_runs():
    model = etm(
        prior="standard",
        background=False,
        min_diversity=0.0,
        encoder_input="l1",
        schedule="constant",
        learn_shares=False,
    )
    try:
        model.fit(CORPUS)
    except TrainingDivergedError as error:  # pragma: no cover
        pytest.fail(str(error))
    np.testing.assert_allclose(model.network_.prior_theta().detach(), np.full(N_TOPICS, 1 / N_TOPICS))


def test_topics_are_learned_faster_with_random_word_vectors(tmp_path):
    assert (etm().gain, etm(word_vectors=VECTORS).gain, etm(word_vectors=VECTORS, topic_gain=3.0).gain) == (
        0.8,
        0.2,
        3.0,
    )
    etm(word_vectors=VECTORS).fit(CORPUS).save(tmp_path / "model")
    assert load(tmp_path / "model").gain == 0.2  # though it no longer has the vectors that were given
