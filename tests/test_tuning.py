"""Tuning: on validation documents only, resumable, and never by coherence alone."""

from __future__ import annotations

import logging

import pytest
import yaml

from topicloom.corpus import Corpus
from topicloom.datasets import synthetic_lda
from topicloom.errors import InputError, MissingExtraError
from topicloom.experiments.protocol import split
from topicloom.experiments.tune import OBJECTIVE, SPACE, tune
from topicloom.models import GSM
from topicloom.models.persistence import estimator_named

PLANTED = synthetic_lda(n_docs=200, n_topics=3, n_words=60, doc_length=30, random_state=0).corpus
MODEL = "gsm:epochs=2"


@pytest.fixture(autouse=True)
def _quiet(caplog):
    pytest.importorskip("optuna")
    caplog.set_level(logging.ERROR)


def test_the_best_trial_is_the_best():
    found = tune(PLANTED, MODEL, 3, trials=4, sampler="random")
    assert len(found.trials) == 4
    assert found.value == max(trial["value"] for trial in found.trials)
    assert found.best == max(found.trials, key=lambda trial: trial["value"])["settings"]
    assert set(found.best) == set(SPACE) - {"eta"}  # which is LDA's
    assert found.objective == OBJECTIVE
    for trial in found.trials:
        figures = trial["figures"]
        assert trial["value"] == pytest.approx(sum(w * figures[name] for name, w in OBJECTIVE.items()))


def test_test_documents_are_not_looked_at():
    """Other words in the test part change nothing."""
    parts = split(PLANTED)
    spoiled = PLANTED.counts.tolil()
    places = [PLANTED.ids.index(id) for id in parts.test.ids]
    spoiled[places] = 0
    spoiled[places, 0] = 50
    other = Corpus.from_counts(spoiled.tocsr(), PLANTED.vocabulary)
    assert split(other).test.ids == parts.test.ids
    one, two = (tune(corpus, MODEL, 3, trials=2) for corpus in (PLANTED, other))
    assert [trial["value"] for trial in one.trials] == [trial["value"] for trial in two.trials]


def test_a_search_goes_on(tmp_path):
    first = tune(PLANTED, MODEL, 3, trials=2, out=tmp_path)
    told = []
    again = tune(PLANTED, MODEL, 3, trials=4, out=tmp_path, told=lambda *each: told.append(each[:2]))
    assert told == [(3, 4), (4, 4)]
    assert again.trials[:2] == first.trials
    assert len({str(trial["settings"]) for trial in again.trials}) == 4  # no trial is drawn again
    best = yaml.safe_load((tmp_path / "best.yaml").read_text())
    assert best == {"model": "gsm", "topics": 3, "seed": 0, "settings": again.best}
    with pytest.raises(InputError, match="another n_topics"):
        tune(PLANTED, MODEL, 4, trials=1, out=tmp_path)


def test_a_space_of_ones_own():
    found = tune(PLANTED, GSM(epochs=2), 3, trials=3, space={"hidden_size": [16, 32], "epochs": (1, 2)}, random_state=1)
    assert all(trial["settings"]["hidden_size"] in (16, 32) for trial in found.trials)
    assert all(trial["settings"]["epochs"] in (1, 2) for trial in found.trials)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"objective": {"c_v": 1.0}}, "alone rewards topics that are all alike"),
        ({"objective": {"c_v": 1.0, "document_npmi": 1.0}}, "alone rewards"),
        ({"objective": {"npmi": 1.0}}, "did you mean nmi or c_npmi"),
        ({"objective": {}}, "empty"),
        ({"space": {"alfa": (0.1, 1.0)}}, "did you mean alpha"),
        ({"space": {"alpha": (1.0, 0.1)}}, "space of alpha is empty"),
        ({"space": {"alpha": (-1.0, 0.1)}}, "alpha"),
        ({"sampler": "grid"}, "sampler"),
        ({"objective": {"nmi": 1.0}}, "does not allow nmi in the objective: the corpus has no labels"),
    ],
)
def test_mistakes_are_one_sentence(options, said):
    with pytest.raises(InputError, match=said):
        tune(PLANTED, MODEL, 3, trials=1, **options)


def test_without_optuna(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r"topicloom\[tune\]"):
        tune(PLANTED, MODEL, 3, trials=1)


def test_a_model_by_its_name_with_settings():
    assert estimator_named("lda:method=gibbs+epochs=5").get_params()["epochs"] == 5
    assert estimator_named("GSM").get_params() == GSM().get_params()
