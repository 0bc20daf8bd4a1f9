"""A run that is written after any epoch, and goes on in another process, ends as the run that was never stopped."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import topicloom as tl
from histories import Keeper, without_seconds
from topicloom.training.state import Snapshot

CORPUS = tl.datasets.synthetic_lda(90, 3, 30, random_state=1).corpus
SMALL: dict[str, Any] = {"n_topics": 3, "hidden_size": 8, "batch_size": 40, "epochs": 4, "random_state": 3}
RUNS: dict[str, dict[str, Any]] = {
    "BATM": {"critic_steps": 2},
    "DirichletVAE": {"estimator": "rsvi"},
    "ETM": {},
    "GMNTM": {"pretrain_epochs": 3},
    "GSM": {"patience": 2},
    "LDA": {"method": "variational", "hidden_size": None},
    "LDA gibbs": {"method": "gibbs", "hidden_size": None, "epochs": 40},
    "Loom": {"epochs": 8},
    "NVDM": {},
    "NVLDA": {"kl_warmup": 3.0},
    "ProdLDA": {"batch_norm": True},
    "WLDA": {"prior": "gmm-ctm"},
}
GO_ON = """
import sys, json, numpy as np, topicloom as tl
from safetensors.torch import load_file
from topicloom.training.state import Snapshot

def go_on(folder):
    plan = json.load(open(folder + "/plan.json"))
    corpus = tl.Corpus.load(folder + "/corpus")
    for name in plan["snapshots"]:
        values = json.load(open(f"{folder}/{name}.json"))
        snapshot = Snapshot(load_file(f"{folder}/{name}.safetensors"), values)
        model = getattr(tl, plan["model"])(**plan["settings"]).fit(corpus, resume_from=snapshot)
        np.savez(f"{folder}/{name}.npz", components=model.components_, theta=model.transform(corpus))
        json.dump(model.history_, open(f"{folder}/{name}.history.json", "w"))

for line in sys.stdin:
    go_on(line.strip())
    print("done", flush=True)
"""


@pytest.fixture(scope="module")
def other_process():
    """A process that goes on with runs, a directory each line; it imports the package once for all tests."""
    process = subprocess.Popen([sys.executable, "-c", GO_ON], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    yield process
    process.stdin.close()
    assert process.wait(timeout=60) == 0


def make(name: str) -> tuple[str, dict[str, Any]]:
    settings = {key: value for key, value in (SMALL | RUNS[name]).items() if value is not None}
    return name.split()[0], settings


def write(folder: Path, name: str, snapshot: Snapshot) -> None:
    save_file(snapshot.tensors, folder / f"{name}.safetensors")
    (folder / f"{name}.json").write_text(json.dumps(snapshot.values, allow_nan=False), encoding="utf-8")


@pytest.mark.parametrize("name", RUNS)
def test_a_run_goes_on_as_if_it_had_never_stopped(name, other_process, tmp_path):
    if name == "LDA gibbs":
        pytest.importorskip("tomotopy")
    model, settings = make(name)
    keeper = Keeper()
    whole = getattr(tl, model)(**settings).fit(CORPUS, callbacks=[keeper])
    names = []
    for number, snapshot in enumerate(keeper.snapshots):
        write(tmp_path, f"after-{number}", snapshot)
        names.append(f"after-{number}")
    assert len(names) >= 3
    CORPUS.save(tmp_path / "corpus")
    plan = {"model": model, "settings": settings, "snapshots": names}
    (tmp_path / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    print(tmp_path, file=other_process.stdin, flush=True)
    assert other_process.stdout.readline() == "done\n"
    for each in names:
        resumed = np.load(tmp_path / f"{each}.npz")
        np.testing.assert_array_equal(resumed["components"], whole.components_, err_msg=each)
        np.testing.assert_array_equal(resumed["theta"], whole.transform(CORPUS), err_msg=each)
        history = json.loads((tmp_path / f"{each}.history.json").read_text(encoding="utf-8"))
        assert without_seconds(history) == without_seconds(json.loads(json.dumps(whole.history_))), each


class StopsWithin(tl.Callback):
    """Takes a snapshot within an epoch, after so many of its batches."""

    def __init__(self, epoch: int, batches: int) -> None:
        self.epoch, self.left, self.state, self.snapshot = epoch, batches, None, None

    def on_state(self, state: Any) -> None:
        if len(state.history) == self.epoch:  # the epochs of the last stage
            self.state = state

    def on_batch(self) -> None:
        if self.state is not None and self.snapshot is None:
            self.left -= 1
            if not self.left:
                self.snapshot = self.state.snapshot()


@pytest.mark.parametrize("name", ["GSM", "BATM"])
def test_a_run_goes_on_within_an_epoch(name, tmp_path):
    model, settings = make(name)
    stopper = StopsWithin(2, 2)
    whole = getattr(tl, model)(**settings).fit(CORPUS, callbacks=[stopper])
    write(tmp_path, "within", stopper.snapshot)
    values = json.loads((tmp_path / "within.json").read_text(encoding="utf-8"))
    assert (values["epoch"], values["batch"]) == (2, 2)
    snapshot = Snapshot(load_file(tmp_path / "within.safetensors"), values)
    resumed = getattr(tl, model)(**settings).fit(CORPUS, resume_from=snapshot)
    np.testing.assert_array_equal(resumed.components_, whole.components_)
    assert without_seconds(resumed.history_) == without_seconds(whole.history_)


def test_taking_snapshots_changes_nothing():
    plain = tl.GSM(**SMALL).fit(CORPUS)
    np.testing.assert_array_equal(tl.GSM(**SMALL).fit(CORPUS, callbacks=[Keeper()]).components_, plain.components_)


@pytest.mark.parametrize("name", ["GSM", "Loom"])
def test_a_run_goes_on_on_another_kind_of_device(name):
    """The state of a GPU's generator has 16 bytes. Its run goes on with other noise, the same each time."""
    model, settings = make(name)
    keeper = Keeper()
    getattr(tl, model)(**settings).fit(CORPUS, callbacks=[keeper])
    snapshot = keeper.snapshots[1]
    snapshot.tensors["generator.noise"] = torch.zeros(16, dtype=torch.uint8)
    one, two = (getattr(tl, model)(**settings).fit(CORPUS, resume_from=snapshot) for _ in range(2))
    assert len(one.history_) == settings["epochs"] or name == "Loom"
    np.testing.assert_array_equal(one.components_, two.components_)
