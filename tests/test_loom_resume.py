"""A fit of Loom that continues from a snapshot gives the same model, bit for bit, as the fit that never stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from histories import without_seconds
from ranks import SMALL_SUBSET
from topicloom.datasets import synthetic_lda
from topicloom.models import Loom
from topicloom.models.loom import model as loom_model
from topicloom.training.callbacks import Callback
from topicloom.training.state import Snapshot, TrainingState

CORPUS = synthetic_lda(n_docs=120, n_topics=4, n_words=60, doc_length=20).corpus
SEEDED = {"seed_words": {1: CORPUS.vocabulary[:2], 3: CORPUS.vocabulary[2:4]}}
SETTINGS = [
    pytest.param({}, id="spare topics"),
    pytest.param({**SEEDED, "background_topics": 0.3}, id="seed words"),
    pytest.param({"spare_topics": 0.0, "background_topics": 0.5}, id="background topics"),
]
STAGES = {"epochs": 20, "pretrain_share": 0.1, "sample_share": 0.0}
PATIENT = {"patience": 1, "validation_fraction": 0.3, "count_power": 1.0, **STAGES}


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """The sampling stage has batches of `batch_size`, so that it can stop in the middle of a pass."""
    for name in ("_COUNTING_BATCH", "_SAMPLING_BATCH"):
        monkeypatch.setattr(loom_model, name, 1)


def small(**settings: Any) -> Loom:
    fixed = {"epochs": 8, "hidden_size": 8, "batch_size": 30, "random_state": 1, "device": "cpu"}
    return Loom(4, **fixed | settings)


class Recorder(Callback):
    """Takes a snapshot after each epoch, and after each batch of all epochs but the first."""

    def __init__(self) -> None:
        self.state: TrainingState | None = None
        self.after_epochs: list[Snapshot] = []
        self.after_batches: list[Snapshot] = []

    def on_state(self, state: TrainingState) -> None:
        self.state = state
        self.after_epochs.append(state.snapshot())

    def on_batch(self) -> None:
        if self.state is not None:
            self.after_batches.append(self.state.snapshot())


def recorded(**settings: Any) -> tuple[Loom, Recorder]:
    recorder = Recorder()
    return small(**settings).fit(CORPUS, callbacks=[recorder]), recorder


def continued(snapshot: Snapshot, **settings: Any) -> Loom:
    """Return a new model that was fitted from the snapshot on."""
    model = small(**settings)
    model.fit_corpus(model._begin(CORPUS, None), snapshot=snapshot)
    return model


def stored(snapshot: Snapshot, folder: Path) -> Snapshot:
    """Return the snapshot after it was written to files and read again."""
    save_file(snapshot.tensors, folder / "state.safetensors")
    (folder / "state.json").write_text(json.dumps(snapshot.values, allow_nan=False))
    values = json.loads((folder / "state.json").read_text())
    return Snapshot(load_file(folder / "state.safetensors"), values)


def assert_same(model: Loom, whole: Loom) -> None:
    np.testing.assert_array_equal(model.components_, whole.components_)
    np.testing.assert_array_equal(model.transform(CORPUS), whole.transform(CORPUS))
    assert without_seconds(model.history_) == without_seconds(whole.history_)


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_fit_continues_after_each_epoch(settings, tmp_path):
    whole, recorder = recorded(**settings)
    assert len(recorder.after_epochs) == 9  # with that of the start
    for snapshot in recorder.after_epochs:
        assert_same(continued(stored(snapshot, tmp_path), **settings), whole)


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_fit_continues_in_the_middle_of_an_epoch(settings, tmp_path):
    """The four batches of an epoch give states with a fourth of its sums, up to all of them."""
    whole, recorder = recorded(**settings)
    assert len(recorder.after_batches) == 32
    for snapshot in recorder.after_batches[::3]:
        assert_same(continued(stored(snapshot, tmp_path), **settings), whole)


def test_a_fit_from_a_subset_continues_after_each_batch(monkeypatch, tmp_path):
    """Of six sampling passes, three read the subset. The first pass over all documents infers their counts."""
    for name, value in (SMALL_SUBSET | {"_SUBSET": 60}).items():
        monkeypatch.setattr(loom_model, name, value)
    settings = {"epochs": 10, "pretrain_share": 0.1, "sample_share": 0.6}
    whole, recorder = recorded(**settings)
    assert len(recorder.after_epochs) == 1 + 10
    assert len(recorder.after_batches) == 7 * 2 + 3 * 4
    for snapshot in recorder.after_batches:
        assert_same(continued(stored(snapshot, tmp_path), **settings), whole)


def test_a_fit_continues_with_the_right_batches_for_the_encoder(tmp_path):
    """In the counting stage, every twentieth batch of a pass trains it."""
    whole, recorder = recorded(batch_size=5)
    of_last_pass = [each for each in recorder.after_batches if each.values["epoch"] == 7]
    assert len(of_last_pass) == 24
    for snapshot in of_last_pass[18:22]:
        assert_same(continued(stored(snapshot, tmp_path), batch_size=5), whole)


def test_a_fit_that_ended_early_does_not_continue(tmp_path):
    """The snapshot after its last epoch says that the patience is exhausted."""
    whole, recorder = recorded(**PATIENT)
    assert len(whole.history_) < 20
    for snapshot in [*recorder.after_epochs[3::5], recorder.after_epochs[-1]]:
        assert_same(continued(stored(snapshot, tmp_path), **PATIENT), whole)


def test_a_snapshot_has_the_topics_that_are_left(tmp_path):
    _, recorder = recorded(**SEEDED, epochs=10, pretrain_share=0.4, sample_share=0.2)
    found = [each.tensors["network.counting.alpha"].shape[0] for each in recorder.after_epochs]
    assert found == [4, 4, 4, 4, 12, 7, 4, 4, 4, 4, 4]  # before, there are 12 topics that alpha does not know yet
    documents = [each.tensors["run.document_topics"].shape for each in recorder.after_epochs]
    assert documents == [(120, 0)] * 4 + [(120, n_topics) for n_topics in found[4:9]] + [(120, 0)] * 2
    assert [len(each.tensors.get("run.assignments", ())) > 0 for each in recorder.after_epochs] == [False] * 9 + [
        True
    ] * 2
    last = recorder.after_epochs[-1]
    assert sorted(last.tensors["run.kept"].tolist()) != [0, 1, 2, 3]
    assert not any(name.startswith("run.pass.") for name in last.tensors)
