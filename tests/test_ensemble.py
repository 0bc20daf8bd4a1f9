"""Ensembles: which topics of several fits become one, what is kept, and that the result is a model like any other."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

import topicloom as tl
from command_line import call, refused
from topicloom.errors import InputError
from topicloom.metrics import topic_similarity
from topicloom.models.ensemble import cluster_topics
from topicloom.topics.saved import read_topics

RANDOM = np.random.default_rng(0)
PLANTED = tl.datasets.synthetic_lda(n_docs=60, n_words=60, n_topics=4, random_state=1)


def noisy(topics, weight=0.2):
    return (1 - weight) * topics + weight * RANDOM.dirichlet(np.full(topics.shape[1], 0.1), len(topics))


def test_planted_topics_are_found_in_shuffled_fits():
    topics = RANDOM.dirichlet(np.full(300, 0.03), 8)
    orders = [RANDOM.permutation(8)[:7] for _ in range(5)]  # one topic is missing in each fit
    fits = [np.concatenate([noisy(topics[order]), RANDOM.dirichlet(np.full(300, 0.03), 2)]) for order in orders]
    found = cluster_topics(fits, 0.4)
    expected = {
        tuple((fit, list(order).index(topic)) for fit, order in enumerate(orders) if topic in order)
        for topic in range(8)
    }
    several = [each for each in found if len(each.members) > 1]
    assert {tuple(each.members) for each in several} == expected
    assert len(found) == 8 + 10  # and the topics that are in no other fit
    for each in several:
        pairs = [(a, b) for a in each.members for b in each.members if a < b]
        values = [similarity_in(fits, a, b) for a, b in pairs]
        assert each.similarity == pytest.approx(np.mean(values))


def similarity_in(fits, a, b):
    return topic_similarity(fits[a[0]], fits[b[0]])[a[1], b[1]]


def test_no_cluster_has_two_topics_of_a_fit():
    topic = RANDOM.dirichlet(np.full(100, 0.05), 1)
    fits = [noisy(np.concatenate([topic, topic, RANDOM.dirichlet(np.full(100, 0.05), 3)])) for _ in range(3)]
    for each in cluster_topics(fits, 0.1):
        assert len({fit for fit, _ in each.members}) == len(each.members)


@pytest.fixture(scope="module")
def fits():
    return [tl.LDA(4, epochs=2, random_state=seed).fit(PLANTED.corpus) for seed in range(3)]


def test_an_ensemble_is_the_mean_of_topics_that_agree(fits, tmp_path):
    corpus = PLANTED.corpus
    model = tl.Ensemble(model="lda:epochs=2", n_topics=4, n_fits=3, random_state=0).fit(corpus)
    clusters = [c for c in cluster_topics([fit.components_ for fit in fits], 0.4) if len(c.members) >= 2]
    means = [np.mean([fits[fit].components_[topic] for fit, topic in c.members], axis=0) for c in clusters]
    np.testing.assert_allclose(model.components_, means, atol=1e-6)
    np.testing.assert_allclose(model.agreement_, [len(c.members) / 3 for c in clusters])
    assert [row["epoch"] for row in model.history_] == [1, 2, 3]
    same = tl.Ensemble.of(fits, corpus)
    np.testing.assert_array_equal(same.components_, model.components_)
    model.save(tmp_path / "model")
    loaded = tl.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(corpus), model.transform(corpus))
    np.testing.assert_array_equal(loaded.agreement_, model.agreement_)
    edited = loaded.merge([0, 1])
    assert not hasattr(edited, "agreement_")
    loaded.rename({0: "first"}).save(tmp_path / "renamed")
    for renamed in (tl.load(tmp_path / "renamed"), read_topics(tmp_path / "renamed")):
        np.testing.assert_array_equal(renamed.agreement_, model.agreement_)
    edited.save(tmp_path / "edited")
    assert read_topics(tmp_path / "edited").agreement_ is None
    assert edited.transform(corpus).shape == (60, len(model.components_) - 1)


def test_an_interrupted_ensemble_goes_on_with_its_fits(tmp_path, interrupted_after):
    corpus, states = PLANTED.corpus, []

    class Keep(tl.Callback):
        def on_state(self, state):
            states.append(state.snapshot())

    whole = tl.Ensemble(model="lda:epochs=2", n_topics=4, n_fits=3, random_state=0, min_similarity=0.1)
    whole.fit(corpus, callbacks=[Keep()])
    again = tl.Ensemble(model="lda:epochs=2", n_topics=4, n_fits=3, random_state=0, min_similarity=0.1)
    again.fit(corpus, resume_from=states[1])
    np.testing.assert_array_equal(again.components_, whole.components_)
    assert len(states) == 3


def test_without_a_seed_each_ensemble_is_another_one():
    one, other = (tl.Ensemble(model="lda:epochs=1", n_topics=3, n_fits=2, min_similarity=0.01) for _ in range(2))
    assert not np.array_equal(one.fit(PLANTED.corpus).components_, other.fit(PLANTED.corpus).components_)


def test_mistakes_are_said(fits):
    corpus = PLANTED.corpus
    other = tl.LDA(2, epochs=1, random_state=0).fit(np.eye(6))
    for make, message in (
        (lambda: tl.Ensemble.of(fits[:1], corpus), "two fitted models"),
        (lambda: tl.Ensemble.of(fits[0], corpus), "two fitted models"),
        (lambda: tl.Ensemble.of([fits[0], other], corpus), "same words"),
        (lambda: tl.Ensemble(model="ensemble").fit(corpus), "ensemble of ensembles"),
        (lambda: tl.Ensemble(model="ldda").fit(corpus), "did you mean"),
        (lambda: tl.Ensemble(model="lda:n_topics=3").fit(corpus), "setting n_topics"),
        (lambda: tl.Ensemble(model="lda:epochs=1").partial_fit(corpus), "partial_fit"),
    ):
        with pytest.raises(InputError, match=message):
            make()


def test_fits_that_do_not_agree_still_give_a_model(fits, caplog):
    topics = [fit.components_ for fit in fits]
    similar = [[topic_similarity(a, b).max(1).mean() for b in topics] for a in topics]
    typical = int((np.sum(similar, 1) - np.diag(similar)).argmax())
    model = tl.Ensemble.of(fits, PLANTED.corpus, min_similarity=1.0)
    np.testing.assert_allclose(model.components_, topics[typical], atol=1e-6)
    np.testing.assert_allclose(model.agreement_, 1 / 3)
    (said,) = [record.getMessage() for record in caplog.records if "ensemble" in record.getMessage()]
    assert said.startswith("of 4 topics, 0 returned in at least 2 of 3 fits, so the ensemble has the topics of fit ")
    caplog.clear()
    shared = np.repeat(np.eye(20)[:6], 2, 0).reshape(6, 2, 20).mean(1)
    given = [shared[[0, 1, 2, 3, each]] for each in (4, 5)]
    given[1][2:4] = np.eye(20)[8:10]
    two = tl.Ensemble(model="lda", n_topics=5, n_fits=2)
    network = two._combined(given, tl.Corpus.from_counts(np.eye(20)), torch.device("cpu"))
    assert len(network.agreement) == 2
    assert "of 5 topics, 2 returned in at least 2 of 2 fits, and the ensemble has no others" in caplog.text


def test_finished_fits_are_kept_when_a_later_one_fails(fits, monkeypatch):
    made = tl.Ensemble(model="lda:epochs=2", n_topics=4, n_fits=4, random_state=0)
    whole = tl.LDA.fit

    def fit(self, X, **options):
        if self.random_state == 2:
            raise tl.TrainingDivergedError("the loss is not finite")
        return whole(self, X, **options)

    monkeypatch.setattr(tl.LDA, "fit", fit)
    with pytest.raises(tl.TrainingDivergedError, match=r"^fit 3 of 4: the loss is not finite; .* after epoch 2"):
        made.fit(PLANTED.corpus)
    monkeypatch.undo()
    np.testing.assert_array_equal(made.components_, tl.Ensemble.of(fits[:2], PLANTED.corpus).components_)
    assert made.stopped_after_ == 2


def test_an_ensemble_is_trained_on_the_command_line(tmp_path):
    texts = tmp_path / "texts.txt"
    lines = ["cat dog mouse bird", "rain sun snow wind", "bank loan price money"] * 12
    texts.write_text("\n".join(lines) + "\n")
    run = tmp_path / "run"
    options = ["--model", "lda", "--topics", 3, "--epochs", 5, "--max-df", "1.0", "--min-df", 1, "--no-explorer"]
    made = call("train", texts, *options, "--ensemble", 3, "--out", run, "--quiet", "--set", "alpha=0.2")
    assert made.exit_code == 0, made.output
    model = tl.load(run)
    assert (type(model).__name__, model.n_fits) == ("Ensemble", 3)
    assert dict(part.split("=") for part in model.model.partition(":")[2].split("+")) == {"epochs": "5", "alpha": "0.2"}
    shown = json.loads(call("topics", run, "--json").stdout)["topics"]
    assert [each["agreement"] for each in shown] == pytest.approx(model.agreement_.tolist())
    repeated = call("train", "--config", run / "train.yaml", "--out", tmp_path / "again", "--quiet", "--no-explorer")
    assert repeated.exit_code == 0, repeated.output
    np.testing.assert_array_equal(tl.load(tmp_path / "again").components_, model.components_)
    refused("train", texts, "--ensemble", 3, "--continue", run, says=["--ensemble"])
