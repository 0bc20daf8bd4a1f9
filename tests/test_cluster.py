"""Work over a cluster, whose nodes are lost. A stand-in for Ray makes the calls here; tests/soak/nodes.py uses Ray."""

from __future__ import annotations

import itertools
import logging
import pickle
import sys
from collections import deque
from types import SimpleNamespace

import pytest

import topicloom as tl
from soak.kills import files_of, search
from topicloom.datasets import synthetic_lda
from topicloom.errors import InputError, MissingExtraError
from topicloom.experiments.compare import compare
from topicloom.experiments.jobs import read_rows
from topicloom.experiments.tune import tune
from topicloom.processes import _called

PLANTED = synthetic_lda(n_docs=120, n_topics=3, n_words=40, doc_length=20, random_state=0).corpus
TEXTS = [f"w{n % 13} v{n % 5} u{n}" for n in range(60)]


class StandIn:
    """What the package uses of Ray. The calls with the numbers in `lost` lose their node; others are made at once."""

    numbers = itertools.count()  # of all values that were sent, which processes remember

    def __init__(self, lost=(), cores=2, init_error=None):
        self.lost, self.cores, self.init_error = set(lost), cores, init_error
        self.n_calls, self.waiting, self.sent = 0, deque(), {}
        base = type("RayError", (Exception,), {})
        names = ["NodeDiedError", "ObjectLostError", "LocalRayletDiedError", "OutOfMemoryError", "WorkerCrashedError"]
        names += ["RuntimeEnvSetupError", "RayTaskError", "TaskCancelledError"]
        self.exceptions = SimpleNamespace(RayError=base, **{name: type(name, (base,), {}) for name in names})
        self.cloudpickle = pickle

    def is_initialized(self):
        return self.init_error is None

    def init(self, **options):
        raise self.init_error

    def cluster_resources(self):
        return {"CPU": self.cores} if self.cores else {}

    def put(self, value):
        number = next(self.numbers)
        self.sent[number] = pickle.dumps(value)
        return number

    def remote(self, **options):
        assert options["max_retries"] == 0
        return lambda function: SimpleNamespace(remote=lambda *arguments: self._begin(function, arguments))

    def _begin(self, function, arguments):
        self.n_calls += 1
        self.waiting.append((self.n_calls, function, pickle.dumps(arguments)))
        return self.waiting[-1]

    def wait(self, references, num_returns):
        return [references[-1]], references[:-1]  # the last one ends first

    def cancel(self, reference, force):
        self.waiting.remove(reference)

    def get(self, reference):
        if isinstance(reference, int):
            return pickle.loads(self.sent[reference])
        self.waiting.remove(reference)
        number, function, arguments = reference
        if number in self.lost:
            raise self.exceptions.NodeDiedError("the node is dead")
        try:
            return function(*pickle.loads(arguments))
        except Exception as error:
            failed = self.exceptions.RayTaskError(str(error))
            failed.cause = error
            raise failed from None


@pytest.fixture
def ray(monkeypatch):
    """A function that puts the stand-in in Ray's place."""

    def put(**options):
        stand_in = StandIn(**options)
        monkeypatch.setitem(sys.modules, "ray", stand_in)
        return stand_in

    monkeypatch.setattr("topicloom.text.counting._CHUNK_DOCUMENTS", 7)
    return put


def counted(**where):
    corpus = tl.Corpus.from_texts(TEXTS, language="en", min_df=1, **where)
    return corpus.vocabulary, corpus.counts.toarray().tolist(), list(corpus.texts)


def test_texts_are_counted_on_nodes_that_are_lost(ray, caplog):
    stand_in = ray(lost=[2, 9, 11])
    assert counted(cluster="auto") == counted(n_jobs=1)
    assert stand_in.n_calls == 12  # nine chunks, three of them twice
    assert caplog.text.count("its node was lost; it is done again") == 3
    assert "documents 7 to 13: its node was lost" in caplog.text
    with pytest.raises(InputError, match=r"documents \d+ to \d+ could not be counted in 3 attempts \(its node was"):
        ray(lost=range(1, 100)) and counted(cluster="auto")
    assert not sys.modules["ray"].waiting
    with pytest.raises(InputError, match="document 8: expected a text"):
        ray() and tl.Corpus.from_texts([*TEXTS[:8], 3], language="en", cluster="auto")


def largest_share(model, documents):
    return model.transform(documents).max()


def compared(out, **where):
    results = []
    found = compare(
        PLANTED, ["gsm:epochs=1", "lda:epochs=1"], 3, 2, out=out, keep_models=True, **where,
        measures={"largest": largest_share},
        on_result=lambda *each: results.append(each[:2]),
    )  # fmt: skip
    files = files_of(out)
    return {name: files[name] for name in files if not name.endswith((".html", ".csv"))}, found.failed, len(results)


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    """What a comparison in this process writes."""
    return compared(tmp_path_factory.mktemp("comparison") / "here")


@pytest.mark.parametrize("is_visible", [True, False])
def test_a_comparison_over_a_cluster_is_that_of_this_process(
    ray, tmp_path, monkeypatch, caplog, comparison, is_visible
):
    if not is_visible:
        hidden = property(lambda parts: None)
        monkeypatch.setattr("topicloom.experiments.jobs.SavedParts.digest", hidden)
    stand_in = ray(lost=[2])
    assert compared(tmp_path / "nodes", cluster="auto") == comparison
    assert stand_in.n_calls == (5 if is_visible else 9)  # a node without the documents asks for them
    assert "model lda:epochs=1, n_topics 3, seed 0: its node was lost; it is done again" in caplog.text
    assert len(stand_in.sent) == (1 if is_visible else 2)
    assert compared(tmp_path / "nodes", cluster="auto")[2] == 0


def test_a_fit_lost_three_times_is_named_and_retried_later(ray, tmp_path):
    ray(lost=[4, 5, 6])
    files, failed, _ = compared(tmp_path, cluster="auto")
    assert [(row["model"], row["seed"], row["error"]) for row in failed] == [("lda:epochs=1", 1, "its node was lost")]
    assert len([name for name in files if name.startswith("topics/")]) == 3
    ray()
    assert compared(tmp_path, cluster="auto")[1:] == ([], 1)


def tuned(out, **options):
    return tune(PLANTED, "gsm:epochs=1", 3, trials=4, sampler="tpe", out=out, **options)


def test_a_search_over_a_cluster_is_that_of_this_process(ray, tmp_path):
    tuned(tmp_path / "here")
    ray(lost=[2])
    tuned(tmp_path / "nodes", cluster="auto")
    assert not (tmp_path / "nodes" / "trials").exists()
    found = {name: each for name, each in search(tmp_path / "nodes").items() if not name.startswith("corpus/")}
    assert found == search(tmp_path / "here")


def test_a_killed_search_resumes_the_trials_proposed_together(ray, tmp_path, monkeypatch):
    ray()
    whole = tuned(tmp_path / "whole", at_once=2, cluster="auto")
    told = []

    def interrupted(*each):
        told.append(each)
        raise KeyboardInterrupt  # when one trial of two is known to Optuna

    with pytest.raises(KeyboardInterrupt):
        tuned(tmp_path / "killed", at_once=2, cluster="auto", on_result=interrupted)
    assert len(read_rows(tmp_path / "killed" / "trials" / "jobs.jsonl")) == 2
    stand_in = ray()
    again = tuned(tmp_path / "killed", at_once=2, cluster="auto")
    assert stand_in.n_calls == 2
    assert [(each["settings"], each["value"]) for each in again.trials] == [
        (each["settings"], each["value"]) for each in whole.trials
    ]
    with pytest.raises(InputError, match="another at_once"):
        tuned(tmp_path / "killed")


def test_mistakes_are_one_sentence(ray, monkeypatch):
    ray(cores=0)
    with pytest.raises(InputError, match="cluster at auto has no CPU"):
        counted(cluster="auto")
    ray(init_error=ConnectionError("Could not find any running Ray instance. Please specify"))
    with pytest.raises(InputError, match=r"no Ray cluster can be reached at auto \(Could not find any.*`cluster`"):
        counted(cluster="auto")
    with pytest.raises(InputError, match=r"no Ray cluster can be reached at 127.0.0.1:1 \("):
        counted(cluster="127.0.0.1:1")
    ray()
    monkeypatch.setattr("topicloom.processes._called", _called_elsewhere)
    with pytest.raises(InputError, match=r"a node of the cluster cannot do the work \(ModuleNotFoundError: No module"):
        counted(cluster="auto")
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"topicloom\[ray\]"):
        counted(cluster="auto")


def _called_elsewhere(*arguments):
    raise ModuleNotFoundError("No module named 'topicloom'")


def test_a_node_with_another_version_is_named():
    with pytest.raises(InputError, match=r"has topicloom .* and this machine has 0\.0\.0; install the same"):
        _called("0.0.0", logging.getLogger)
