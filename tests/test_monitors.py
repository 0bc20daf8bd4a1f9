"""What is measured during training: the topics, and the loss of held-out documents. Neither changes the fit."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import torch

import topicloom as tl
from histories import Keeper
from kinds import params
from topicloom import metrics
from topicloom.datasets import synthetic_lda
from topicloom.errors import InputError, SettingError

PLANTED = synthetic_lda(n_docs=150, n_topics=3, n_words=120, doc_length=30).corpus
TEXTS = [" ".join(np.random.default_rng(row).permutation(words.split())) for row, words in enumerate(
    ["cats dogs vets pets fish birds homes toys", "stocks bonds banks money markets rates years traders"] * 20
)]  # fmt: skip
TOKENS = [text.split() for text in TEXTS]


def measured(model, name):
    """The epochs whose rows have a measure."""
    return [row["epoch"] for row in model.history_ if name in row]


def test_every_few_epochs_and_at_the_end():
    model = tl.GSM(3, epochs=8, random_state=0).fit(PLANTED, monitor=["document_npmi", "inverted_rbo"], monitor_every=3)
    assert measured(model, "document_npmi") == measured(model, "inverted_rbo") == [3, 6, 8]
    assert measured(model, "topic_diversity") == list(range(1, 9))
    ids = model.topic_ids(25)
    assert model.history_[-1]["document_npmi"] == pytest.approx(float(metrics.document_npmi(ids, PLANTED.counts)))
    assert model.history_[-1]["inverted_rbo"] == pytest.approx(float(metrics.inverted_rbo(ids)))


def test_every_few_fits_of_an_ensemble_and_at_the_end():
    model = tl.Ensemble(model="gsm:epochs=3", n_topics=3, n_fits=5, min_similarity=0.1, random_state=0)
    model.fit(PLANTED, monitor=["document_npmi"], monitor_every=2)
    assert measured(model, "document_npmi") == [2, 4, 5]
    expected = float(metrics.document_npmi(model.topic_ids(25), PLANTED.counts))
    assert model.history_[-1]["document_npmi"] == pytest.approx(expected)


def test_what_is_learned_does_not_change():
    watched, alone = (
        tl.GSM(3, epochs=4, random_state=0).fit(PLANTED, monitor=names, monitor_every=1)
        for names in (["document_npmi", "topic_diversity", "redundancy"], [])
    )
    np.testing.assert_array_equal(watched.components_, alone.components_)
    for row, plain in zip(watched.history_, alone.history_, strict=True):
        assert {name: row[name] for name in plain if name != "seconds"} == {
            name: value for name, value in plain.items() if name != "seconds"
        }


def test_the_column_that_steers_training_stays_the_watchs(monkeypatch):
    model = tl.GSM(3, epochs=2, random_state=0).fit(PLANTED)
    other = replace(metrics.CATALOGUE["topic_diversity"], function=lambda _: metrics.Measured(-1))
    monkeypatch.setitem(metrics.CATALOGUE, "topic_diversity", other)
    same = tl.GSM(3, epochs=2, random_state=0).fit(PLANTED, monitor=["topic_diversity"], monitor_every=1)
    assert [row["topic_diversity"] for row in same.history_] == [-1, -1]
    steering = [[row["lowest_topic_diversity"] for row in each.history_] for each in (model, same)]
    assert steering[0] == steering[1]
    np.testing.assert_array_equal(model.components_, same.components_)


@pytest.mark.parametrize(
    "documents",
    [TEXTS, TOKENS, tl.Corpus.from_texts(TEXTS, language="en", min_df=1), tuple(map(tuple, TOKENS))],
    ids=["texts", "tokens", "corpus", "tuples"],
)
def test_the_order_of_words_is_that_of_the_documents(documents):
    model = tl.GSM(2, epochs=2, random_state=0).fit(documents, monitor=["c_npmi", "c_v"], monitor_every=2)
    for name in ("c_npmi", "c_v"):
        expected = float(getattr(metrics, name)(model.topics(25), TOKENS))
        assert model.history_[-1][name] == pytest.approx(expected)


@pytest.mark.parametrize("kind", params(kind for kind in tl.MODELS if not kind.needs_vectors))
def test_every_model_can_be_watched(kind):
    model = kind(3, epochs=3, random_state=0).fit(PLANTED, monitor=["u_mass", "topic_uniqueness"], monitor_every=2)
    assert measured(model, "u_mass") == [2, 3]
    words = [[model.vocabulary_[word] for word in topic] for topic in model.topic_ids(25)]
    expected = float(metrics.u_mass(words, PLANTED.counts, PLANTED.vocabulary))
    assert model.history_[-1]["u_mass"] == pytest.approx(expected)


@pytest.mark.skipif(find_spec("tomotopy") is None, reason="needs tomotopy, of the extra eval")
def test_the_sampler_is_watched_by_the_rows_of_its_history():
    model = tl.LDA(3, method="gibbs", epochs=35, random_state=0)
    model.fit(PLANTED, monitor=["document_npmi"], monitor_every=2)
    assert measured(model, "document_npmi") == [20, 35]
    alone = tl.LDA(3, method="gibbs", epochs=35, random_state=0).fit(PLANTED)
    np.testing.assert_array_equal(model.components_, alone.components_)


def test_the_history_is_saved_with_the_model(tmp_path):
    model = tl.GSM(2, epochs=2, random_state=0).fit(PLANTED, monitor=["document_npmi"], monitor_every=1)
    model.save(tmp_path / "model")
    assert tl.load(tmp_path / "model").history_ == json.loads(json.dumps(model.history_))


@pytest.mark.parametrize("options", [{"monitor": ["c_vv"]}, {"monitor_every": 0}, {"monitor": 3}])
def test_a_mistake_leaves_the_earlier_fit_as_it_is(options):
    model = tl.GSM(2, epochs=1, random_state=0).fit(PLANTED)
    before = model.components_
    with pytest.raises(tl.InputError):
        model.fit(PLANTED, **options)
    assert model.components_ is before
    assert len(model.history_) == 1


@pytest.mark.parametrize(
    ("documents", "options", "says"),
    [
        (PLANTED, {"monitor": ["c_vv"]}, "unknown measure 'c_vv' in `monitor`; did you mean c_v"),
        (PLANTED, {"monitor": ["perplexity"]}, "unknown measure 'perplexity' in `monitor`; choose one of"),
        (PLANTED, {"monitor": "c_v"}, "list of measures"),
        (PLANTED, {"monitor": ["c_v"]}, "c_v cannot be measured: the order of words is not known"),
        (PLANTED.counts, {"monitor": ["c_npmi"]}, "c_npmi cannot be measured"),
        (TEXTS, {"monitor": ["c_v"], "monitor_every": 0}, "`monitor_every=0` should be a whole number from 1"),
    ],
)
def test_what_cannot_be_watched(documents, options, says):
    with pytest.raises(tl.InputError, match=says):
        tl.GSM(2, epochs=1).fit(documents, **options)


@pytest.mark.parametrize("model", [tl.GSM(3, epochs=2, random_state=0), tl.LDA(3, epochs=2, random_state=0)])
def test_what_a_callback_adds_to_a_row_can_be_saved(model, tmp_path):
    class Adds(tl.Callback):
        def __init__(self, value):
            self.value = value

        def on_epoch(self, row):
            row["mine"] = self.value

    for value in (np.float32(0.5), torch.tensor(0.5), 0.5):
        model.fit(PLANTED, callbacks=[Adds(value)], checkpoint=tmp_path / "checkpoints")
        model.save(tmp_path / "model", overwrite=True)
        assert tl.load(tmp_path / "model").history_[-1]["mine"] == 0.5
        shutil.rmtree(tmp_path / "checkpoints")
    for value in (float("nan"), np.ones(2), object()):
        with pytest.raises(tl.InputError, match=r"Adds gave epoch 1 'mine' the value .* which cannot be saved"):
            model.fit(PLANTED, callbacks=[Adds(value)])


# Held-out documents of the user's own in `fit`.

CORPUS = tl.datasets.synthetic_lda(200, 3, 40, random_state=1).corpus
TRAIN, HELD_OUT = CORPUS[:140], CORPUS[140:]
SMALL: dict[str, Any] = {"n_topics": 3, "hidden_size": 8, "random_state": 3}


def test_the_recorded_held_out_loss_changes_nothing():
    plain = tl.GSM(**SMALL, epochs=3).fit(TRAIN)
    watched = tl.GSM(**SMALL, epochs=3).fit(TRAIN, validation=HELD_OUT)
    assert np.array_equal(plain.components_, watched.components_)
    assert "validation_loss" not in plain.history_[0]
    losses = [row["validation_loss"] for row in watched.history_]
    other = tl.GSM(**SMALL, epochs=3).fit(TRAIN, validation=HELD_OUT[:30])
    assert losses != [row["validation_loss"] for row in other.history_]
    assert np.isfinite(losses).all()


def test_patience_stops_by_the_given_documents():
    """Documents of noise get no better for long, whatever the training documents do; all of these are trained on."""
    noise = tl.Corpus.from_counts(np.random.default_rng(0).poisson(1, (60, 40)), CORPUS.vocabulary)
    model = tl.GSM(**SMALL, epochs=200, patience=2, spare_topics=0, kl_warmup=0).fit(TRAIN, validation=noise)
    losses = [row["validation_loss"] for row in model.history_]
    assert len(losses) < 200
    assert int(np.argmin(losses)) == len(losses) - 3
    assert model.n_documents_ == len(TRAIN)


def test_held_out_documents_may_be_texts_over_other_words():
    texts = ["cat dog cat fish", "bank money bank rates"] * 20
    model = tl.GSM(2, epochs=2, hidden_size=8).fit(texts, validation=["cat dog unseen", "money rates"])
    assert np.isfinite(model.history_[-1]["validation_loss"])


def test_mistakes_keep_the_earlier_fit():
    model = tl.GSM(**SMALL, epochs=1).fit(TRAIN)
    before = model.components_
    with pytest.raises(InputError, match="no document of `validation` has a word"):
        model.fit(TRAIN, validation=[["unknown", "words"]])
    assert model.components_ is before
    with pytest.raises(SettingError, match="LDA has no loss by epoch"):
        tl.LDA(3).fit(TRAIN, validation=HELD_OUT)
    with pytest.raises(SettingError, match="callbacks should be a list"):
        model.fit(TRAIN, callbacks=print)


def test_a_resumed_fit_holds_out_the_same_documents():
    """The seed that was drawn for the first fit is in the snapshot."""
    keeper = Keeper()
    settings = SMALL | {"random_state": None, "epochs": 4, "patience": 4}
    whole = tl.GSM(**settings).fit(CORPUS, callbacks=[keeper])
    resumed = tl.GSM(**settings).fit(CORPUS, resume_from=keeper.snapshots[1])
    assert np.array_equal(whole.components_, resumed.components_)
    assert [row["validation_loss"] for row in whole.history_] == [row["validation_loss"] for row in resumed.history_]


@pytest.mark.skipif(find_spec("gensim") is None, reason="needs gensim, of the extra vectors")
def test_vectors_of_the_same_texts_judge_topics():
    corpus = tl.Corpus.from_texts(TEXTS, language="en", min_df=1)
    model = tl.GSM(2, epochs=3, random_state=0).fit(corpus, monitor=["c_w2v"], monitor_every=3)
    vectors = tl.train_word_vectors(corpus)
    topics = model.topics(25)
    means = []
    for words in topics:
        own = np.stack([vectors[word] for word in words[:10]])
        centre = own.mean(0)
        means.append((own @ centre / np.linalg.norm(own, axis=1) / np.linalg.norm(centre)).mean())
    assert measured(model, "c_w2v") == [3]
    assert model.history_[-1]["c_w2v"] == pytest.approx(np.mean(means), abs=1e-5)
    with pytest.raises(InputError, match="c_w2v cannot be measured: the order of words is not known"):
        tl.GSM(3, epochs=1).fit(PLANTED, monitor=["c_w2v"])


@pytest.mark.parametrize("kind", [tl.GSM, tl.Loom])
def test_the_history_says_how_many_topics_are_left(kind):
    history = kind(3, epochs=20, random_state=0).fit(PLANTED).history_
    left = [row["n_topics"] for row in history]
    assert left[0] > 3 == left[-1]
    assert left == sorted(left, reverse=True)
    watched = [row for row in history if "kl_per_dimension" in row]
    assert len({len(row["kl_per_dimension"]) for row in watched}) > 1
    assert all(row["n_topics"] == len(row["kl_per_dimension"]) for row in watched)
    without = kind(3, epochs=2, spare_topics=0, random_state=0).fit(PLANTED).history_
    assert not [row for row in without if "n_topics" in row]


def test_c_v_is_high_for_words_that_never_meet():
    """The pictures say so: such words resemble each other, because none occurs with any other."""
    random = np.random.default_rng(0)
    common = [[f"c{word}" for word in random.integers(60, size=12)] for _ in range(300)]
    texts = [[*tokens, f"r{number}"] if number < 10 else tokens for number, tokens in enumerate(common)]
    rare, frequent = [f"r{number}" for number in range(10)], [f"c{number}" for number in range(10)]
    c_v, c_npmi = (getattr(metrics, name)([rare, frequent], texts).per_topic for name in ("c_v", "c_npmi"))
    assert c_npmi[0] < -0.4 < c_npmi[1]
    assert c_v[0] > c_v[1] + 0.1
