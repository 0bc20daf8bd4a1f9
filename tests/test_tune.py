"""Tuning: on validation documents only, resumable, and never by coherence alone."""

from __future__ import annotations

import errno
import inspect
import logging
import shutil
import time

import numpy as np
import pytest
import yaml

from histories import without_seconds
from topicloom import metrics
from topicloom.corpus import Corpus
from topicloom.corpus.inputs import split
from topicloom.datasets import synthetic_lda
from topicloom.errors import InputError, MissingExtraError, SettingError
from topicloom.experiments.jobs import Evaluator
from topicloom.experiments.tune import OBJECTIVE, SPACE, tune
from topicloom.files import lock_directory
from topicloom.models import GSM, Loom, estimator_named
from topicloom.models.loading import load
from topicloom.settings import check_settings

PLANTED = synthetic_lda(n_docs=200, n_topics=3, n_words=60, doc_length=30, random_state=0).corpus
MODEL = "gsm:epochs=2"


@pytest.fixture(autouse=True)
def _quiet(caplog):
    pytest.importorskip("optuna")
    caplog.set_level(logging.ERROR)


def test_the_best_trial_is_the_best():
    found = tune(PLANTED, MODEL, 3, trials=4, sampler="random")
    assert len(found.trials) == 4
    assert len(repr(found)) < 500
    assert found.value == max(trial["value"] for trial in found.trials)
    assert found.best == max(found.trials, key=lambda trial: trial["value"])["settings"]
    assert set(found.best) == set(SPACE) - {"eta"}  # which is LDA's
    assert found.objective == OBJECTIVE
    for trial in found.trials:
        measures = trial["measures"]
        assert trial["value"] == pytest.approx(sum(w * measures[name] for name, w in OBJECTIVE.items()))


@pytest.mark.parametrize("at_once", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_measure_and_a_reference_of_ones_own(tmp_path, at_once):
    reference = Corpus.from_counts(PLANTED.counts[:20], PLANTED.vocabulary)
    sizes = []

    def documents_and_rate(model, documents):
        sizes.append(documents.n_docs)
        return documents.n_docs + model.learning_rate

    objective = {"mine": 1.0, "document_npmi": 1.0}
    space = {"learning_rate": [0.002, 0.01]}
    found = tune(PLANTED, MODEL, 3, trials=2, space=space, objective=objective, reference=reference, at_once=at_once,
                 measures={"mine": documents_and_rate}, out=tmp_path)  # fmt: skip
    parts = split(PLANTED)
    for trial in found.trials:
        assert trial["measures"]["mine"] == parts.validation.n_docs + trial["settings"]["learning_rate"]
        assert trial["value"] == trial["measures"]["mine"] + trial["measures"]["document_npmi"]
    best = max(found.trials, key=lambda trial: trial["value"])
    npmi = metrics.document_npmi(found.best_model.topics(), reference)
    assert best["measures"]["document_npmi"] == pytest.approx(float(npmi))
    assert found.coherence_against == "the reference"
    assert set(sizes) <= {parts.validation.n_docs}
    with pytest.raises(InputError, match="another reference"):
        tune(PLANTED, MODEL, 3, trials=2, space=space, objective=objective, at_once=at_once,
             measures={"mine": documents_and_rate}, out=tmp_path)  # fmt: skip
    with pytest.raises(InputError, match="every trial failed, the last with the measure 'mine' failed: KeyError: 'x'"):
        tune(PLANTED, MODEL, 3, trials=1, space=space, objective=objective, measures={"mine": lambda *_: {}["x"]})
    with pytest.raises(InputError, match="unknown measure 'mine' in the objective"):
        tune(PLANTED, MODEL, 3, trials=1, objective=objective)


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
    results = []
    again = tune(PLANTED, MODEL, 3, trials=4, out=tmp_path, on_result=lambda *each: results.append(each[:2]))
    assert results == [(3, 4), (4, 4)]
    assert again.trials[:2] == first.trials
    assert len({str(trial["settings"]) for trial in again.trials}) == 4  # no trial is drawn again
    best = yaml.safe_load((tmp_path / "best.yaml").read_text())
    assert best == {"model": "gsm", "topics": 3, "seed": 0, "epochs": 2, "settings": again.best}
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
        ({"trials": 0}, "`trials=0` should be"),
        ({"at_once": True}, "`at_once=True` should be"),
        ({"n_topics": 1}, "`n_topics` of GSM should be"),
        ({"objective": {"nmi": 1.0}}, "does not allow nmi in the objective: the corpus has no labels"),
    ],
)
def test_mistakes_are_one_sentence(options, said):
    with pytest.raises(InputError, match=said):
        tune(PLANTED, MODEL, **{"n_topics": 3, "trials": 1} | options)


def test_the_best_model_is_kept(tmp_path, monkeypatch):
    found = tune(PLANTED, MODEL, 3, trials=3, out=tmp_path)
    assert {name: getattr(found.best_model, name) for name in found.best} == found.best
    assert found.best_model.n_topics == 3
    parts = split(PLANTED)
    alone = GSM(3, epochs=2, random_state=0, **found.best).fit(parts.train)
    np.testing.assert_array_equal(alone.components_, found.best_model.components_)
    measures = max(found.trials, key=lambda trial: trial["value"])["measures"]
    by_words = np.log(alone.perplexity(parts.validation)) / np.log(PLANTED.n_words)
    assert measures["log_perplexity"] == pytest.approx(by_words)
    assert load(tmp_path / "best_model").topics(5) == found.best_model.topics(5)
    again = tune(PLANTED, MODEL, 3, trials=3, out=tmp_path)  # no fit is needed
    np.testing.assert_array_equal(again.best_model.components_, alone.components_)
    shutil.rmtree(tmp_path / "best_model")
    again = tune(PLANTED, MODEL, 3, trials=3, out=tmp_path)
    np.testing.assert_array_equal(again.best_model.components_, alone.components_)
    assert (tmp_path / "best_model" / "config.json").is_file()
    assert "best_model" not in found.to_dict()
    assert tune(PLANTED, MODEL, 3, trials=1).best_model.n_topics == 3  # in memory


def failing(*errors):
    """A fit that raises these errors first, and then works."""
    waiting, fit = list(errors), Evaluator.fit

    def failing_fit(self, model):
        if waiting:
            raise waiting.pop(0)
        return fit(self, model)

    return failing_fit


def test_an_interrupted_trial_is_no_failure(tmp_path, monkeypatch):
    monkeypatch.setattr(Evaluator, "fit", failing(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        tune(PLANTED, MODEL, 3, trials=1, out=tmp_path)
    assert len(tune(PLANTED, MODEL, 3, trials=1, out=tmp_path).trials) == 1


def test_an_interrupted_search_gives_what_a_whole_one_gives(tmp_path, monkeypatch):
    """Twelve trials, because the first ten of TPE are random."""
    options = {"trials": 12, "space": {"epochs": (1, 2), "learning_rate": (1e-3, 1e-1, "log")}}

    whole = tune(PLANTED, "gsm:hidden_size=4", 3, **options)
    fit = Evaluator.fit
    for n_whole in (1, 10):
        waiting = [None] * n_whole + [KeyboardInterrupt()]

        def interrupted_fit(self, model, waiting=waiting):
            error = waiting.pop(0) if waiting else None
            if error is not None:
                raise error
            return fit(self, model)

        monkeypatch.setattr(Evaluator, "fit", interrupted_fit)
        with pytest.raises(KeyboardInterrupt):
            tune(PLANTED, "gsm:hidden_size=4", 3, out=tmp_path, **options)
    again = tune(PLANTED, "gsm:hidden_size=4", 3, out=tmp_path, **options)
    assert without_seconds(again.trials) == without_seconds(whole.trials)
    np.testing.assert_array_equal(again.best_model.components_, whole.best_model.components_)


def test_a_failed_trial_is_reported_and_tried_again(tmp_path, monkeypatch):
    monkeypatch.setattr(Evaluator, "fit", failing(KeyError("name"), MemoryError()))
    with pytest.raises(InputError, match="every trial failed, the last with MemoryError"):
        tune(PLANTED, MODEL, 3, trials=2, out=tmp_path)
    found = tune(PLANTED, MODEL, 3, trials=1, out=tmp_path)
    assert [trial.get("error") for trial in found.trials] == ["KeyError: 'name'", "MemoryError: ", None]


def test_a_killed_process_leaves_no_lock_to_wait_for(tmp_path):
    tune(PLANTED, MODEL, 3, trials=1, out=tmp_path)
    (tmp_path / "study.journal.lock").symlink_to(tmp_path / "study.journal")  # as Optuna leaves its own
    began = time.monotonic()
    tune(PLANTED, MODEL, 3, trials=1, out=tmp_path)
    assert time.monotonic() - began < 20


def test_an_incomplete_line_of_the_journal_costs_its_trial_alone(tmp_path):
    first = tune(PLANTED, MODEL, 3, trials=2, out=tmp_path)
    journal = tmp_path / "study.journal"
    journal.write_bytes(journal.read_bytes()[:-20])
    again = tune(PLANTED, MODEL, 3, trials=2, out=tmp_path)
    assert [trial["value"] for trial in again.trials] == [trial["value"] for trial in first.trials]
    journal.write_bytes(b"{}\n" + journal.read_bytes())
    with pytest.raises(InputError, match=r"study\.journal is damaged"):
        tune(PLANTED, MODEL, 3, trials=2, out=tmp_path)


def test_a_journal_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    def full(self, logs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pytest.importorskip("optuna").storages.journal.JournalFileBackend, "append_logs", full)
    with pytest.raises(OSError, match=r"No space left on device.*study\.journal"):
        tune(PLANTED, MODEL, 3, trials=1, out=tmp_path)


def test_a_search_under_way_is_not_disturbed(tmp_path):
    with lock_directory(tmp_path), pytest.raises(InputError, match="is being written by"):
        tune(PLANTED, MODEL, 3, trials=1, out=tmp_path)


def test_the_log_of_optuna_is_left_as_it_was():
    optuna = pytest.importorskip("optuna")
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.DEBUG)
    try:
        tune(PLANTED, MODEL, 3, trials=1)
        assert optuna.logging.get_verbosity() == optuna.logging.DEBUG
    finally:
        optuna.logging.set_verbosity(before)


def test_loom_is_the_default_with_every_searched_setting():
    assert inspect.signature(tune).parameters["model"].default == "loom"
    assert set(SPACE) <= set(Loom().get_params())
    for name, values in SPACE.items():
        for value in values if isinstance(values, list) else values[:2]:
            check_settings(Loom(**{name: value}))


def test_texts_and_parts_of_ones_own():
    texts = [f"{'cat dog pet' if row % 2 else 'bank money loan'} w{row % 3}" for row in range(40)]
    parts = [texts[:20], texts[20:30], texts[30:]]
    found = tune(None, MODEL, 2, trials=1, split=[Corpus.from_texts(parts[0], min_df=1, max_df=1.0), *parts[1:]])
    assert found.best_model.n_documents_ == 20
    assert len(tune(texts, MODEL, 2, trials=1).trials) == 1


def test_the_best_settings_file_includes_the_given_ones(tmp_path):
    model = GSM(epochs=1, hidden_size=16)
    found = tune(PLANTED, model, 2, trials=1, space={"epochs": (1, 2), "dropout": (0.1, 0.2)}, out=tmp_path)
    best = yaml.safe_load((tmp_path / "best.yaml").read_text())
    assert best["epochs"] == found.best["epochs"]
    assert best["settings"]["hidden_size"] == 16
    assert best["settings"]["dropout"] == found.best["dropout"]


def test_without_optuna(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r"topicloom\[tune\]"):
        tune(PLANTED, MODEL, 3, trials=1)


def test_a_model_by_its_name_with_settings():
    assert estimator_named("lda:method=gibbs+epochs=5").get_params()["epochs"] == 5
    assert estimator_named("lda:alpha=1e+0+epochs=5").get_params()["alpha"] == 1.0
    assert estimator_named("lda:alpha=1e+0+epochs=5").get_params()["epochs"] == 5
    assert estimator_named("GSM").get_params() == GSM().get_params()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"space": ["learning_rate"]}, "`space` should be a dictionary"),
        ({"space": {"learning_rate": 0.1}}, r"the space of learning_rate should be a range \(low, high\)"),
        ({"space": {"learning_rate": (0.1,)}}, r"the space of learning_rate should be a range \(low, high\)"),
        ({"space": {"learning_rate": (0.1, 0.2, "linear")}}, r"the space of learning_rate should be a range"),
        ({"random_state": np.random.RandomState(0)}, "`random_state.* should be a whole number"),
        ({"validation": Corpus.from_counts([[1, 1]])}, "give documents of your own as `split`"),
    ],
)
def test_arguments_that_cannot_be_searched_with(wrong, said):
    with pytest.raises(SettingError, match=said):
        tune(Corpus.from_counts(np.ones((20, 3))), GSM(), n_topics=2, trials=1, **wrong)


def test_a_file_is_no_place_for_a_search(tmp_path):
    (tmp_path / "search").touch()
    with pytest.raises(InputError, match="is a file, but a directory is to be written there"):
        tune(Corpus.from_counts(np.ones((20, 3))), GSM(), n_topics=2, trials=1, out=tmp_path / "search")
