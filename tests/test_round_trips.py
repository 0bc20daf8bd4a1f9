"""A step on a GPU, as far as a CPU can show it: nothing in it needs a number from the device."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import topicloom as tl
from topicloom.nn import sparse
from topicloom.training import loop
from topicloom.training.batches import BatchReader

# Operations whose result, or the size of it, is read by the processor.
WAITS = ("_local_scalar_dense", "nonzero", "bincount", "masked_select", "unique", "equal.default", "histc")
PACKAGE = str(Path(tl.__file__).parent)
CORPUS = tl.datasets.synthetic_lda(300, 5, 100, random_state=0).corpus


class Waits(TorchDispatchMode):
    """Notes where the processor would wait for a GPU."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, name = kwargs or {}, str(operation)
        unknown_size = "repeat_interleave" in name and kwargs.get("output_size") is None
        if unknown_size or any(each in name for each in WAITS):
            line = [frame for frame in traceback.extract_stack() if frame.filename.startswith(PACKAGE)][-1]
            self.found.add(f"{name} in {line.name}: {line.line}")
        return operation(*args, **kwargs)


def waits(model: tl.NeuralTopicModel, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Train as on a GPU, and return where a step waits."""
    monkeypatch.setattr("topicloom.training.loop.defers", lambda device: True)
    monkeypatch.setattr(sparse, "_sizes", sparse._sizes_on_device)
    move, mode = loop._take_step, Waits()

    def watched(*arguments: Any) -> Any:
        with mode:
            return move(*arguments)

    monkeypatch.setattr("topicloom.training.loop._take_step", watched)
    model.fit(CORPUS)
    return mode.found


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (tl.GSM, {}),
        (tl.GSM, {"criterion": "bernoulli"}),
        (tl.ETM, {}),
        (tl.ProdLDA, {"batch_norm": True}),
        (tl.NVDM, {}),
        (tl.WLDA, {}),
        (tl.GMNTM, {}),
        *((tl.DirichletVAE, {"estimator": name}) for name in ("implicit", "rsvi", "weibull", "icdf", "score")),
    ],
)
def test_a_step_waits_for_nothing(
    kind: type[tl.NeuralTopicModel], settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = kind(5, epochs=2, batch_size=150, random_state=0, **settings)
    assert waits(model, monkeypatch) == set()
    assert len(model.history_) == 2


def test_pretraining_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tl.Loom(5, epochs=4, batch_size=150, random_state=0)
    found = {each for each in waits(model, monkeypatch) if "counting.started" not in each}  # which is on the CPU
    counting = (
        "in _initial_counts",
        "in empty",
        "in members_of",
        "in of",
        "in sample",
        "in dirichlet_step",
        "in _middle",
        "alpha_numerator.sum().isfinite()",
    )
    assert found, "the counting stage waits, so waiting is noticed"
    unknown = [each for each in found if not any(place in each for place in counting)]
    assert not unknown


def test_groups_have_the_same_sizes_on_every_device() -> None:
    groups = torch.tensor([3, 0, 3, 3, 5])
    assert sparse._sizes(groups, 7).tolist() == sparse._sizes_on_device(groups, 7).tolist() == [1, 0, 0, 3, 0, 1, 0]


@pytest.mark.parametrize("rows", [[3, 0, 299], [7], [0, 1, 2, 3]])
def test_counts_that_stay_on_the_device_make_the_same_batches(rows: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    reader = BatchReader(CORPUS.counts, 50, torch.device("cpu"))
    usual = reader._batch(np.array(rows))
    assert reader.resident._arrays is None  # a CPU has them in memory already
    monkeypatch.setattr("topicloom.training.batches.room", lambda device: 1e9)
    reader = BatchReader(CORPUS.counts, 50, torch.device("cpu")).without_empty()
    with Waits() as mode:
        batch = reader._batch(np.array(rows))
    assert mode.found == set()
    for name in ("indices", "values", "offsets", "by_word"):
        assert torch.equal(getattr(batch.counts, name), getattr(usual.counts, name))
    assert torch.equal(batch.rows, usual.rows)


def test_counts_stay_elsewhere_if_the_device_has_too_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topicloom.training.batches.room", lambda device: 1000)
    reader = BatchReader(CORPUS.counts, 50, torch.device("cpu"))
    assert reader.resident._arrays is None
    assert len(list(reader)) == 6
