"""Checkpoints: a fit that is stopped goes on from its directory as if it never stopped, and refuses others."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

import topicloom as tl
from forks import Fork, needs_fork
from histories import Keeper, without_seconds
from topicloom.errors import InputError, ModelFileError, SettingError, StateNotSavedError, TrainingInterrupted
from topicloom.training import checkpoints
from topicloom.training.checkpoints import read_checkpoint
from topicloom.training.state import Snapshot

CORPUS = tl.datasets.synthetic_lda(90, 3, 30, random_state=1).corpus
SMALL: dict[str, Any] = {
    "n_topics": 3, "hidden_size": 8, "batch_size": 20, "epochs": 4, "random_state": 3, "start": "random",
}  # fmt: skip


@cache
def whole() -> tl.GSM:
    """The fit that nothing stopped."""
    return tl.GSM(**SMALL).fit(CORPUS)


class Stops(tl.Callback):
    """Raises, or sends a signal to this process, after so many batches."""

    def __init__(self, batches: int, number: int | None = None) -> None:
        self.left, self.number = batches, number

    def on_step(self, state: Any) -> None:
        self.left -= 1
        if self.left == 0:
            if self.number is None:
                raise ZeroDivisionError
            signal.raise_signal(self.number)


class Steps(tl.Callback):
    """Counts batches."""

    count = 0

    def on_step(self, state: Any) -> None:
        self.count += 1


def stopped(folder: Path, batches: int = 12, every: str = "1 epoch", **settings: Any) -> Path:
    """Return the directory with the checkpoints of a fit that failed after so many batches, of five in an epoch."""
    with pytest.raises(ZeroDivisionError):
        tl.GSM(**SMALL | settings).fit(
            CORPUS, checkpoint=tl.Checkpoints(folder, every=every), callbacks=[Stops(batches)]
        )
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_last_two_are_kept_and_the_fit_goes_on(tmp_path):
    folder = stopped(tmp_path / "new" / "ck", 18)
    assert names(folder) == ["checkpoint-2.safetensors", "checkpoint-3.safetensors"]
    steps = Steps()
    resumed = tl.GSM(**SMALL).fit(CORPUS, checkpoint=folder, callbacks=[steps])
    np.testing.assert_array_equal(resumed.components_, whole().components_)
    assert steps.count == 5  # those of the last epoch; a fit that began again would have the same topics
    assert names(folder) == ["checkpoint-3.safetensors", "checkpoint-4.safetensors"]
    assert read_checkpoint(folder / "checkpoint-4.safetensors").finished
    again = tl.GSM(**SMALL).fit(CORPUS, checkpoint=str(folder))  # there is nothing left to do
    np.testing.assert_array_equal(again.components_, whole().components_)
    assert names(folder) == ["checkpoint-3.safetensors", "checkpoint-4.safetensors"]


def test_a_checkpoint_after_every_second_epoch(tmp_path):
    folder = stopped(tmp_path, 28, "2 epochs", epochs=6)  # in the sixth epoch
    assert names(folder) == ["checkpoint-1.safetensors", "checkpoint-2.safetensors"]
    assert [read_checkpoint(folder / name).epoch for name in names(folder)] == [2, 4]


def test_the_time_of_training_is_that_of_all_its_parts(tmp_path, monkeypatch):
    """With a clock that counts its calls, two epochs take longer than the one after them."""
    clock = iter(range(100_000))
    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: next(clock))
    seconds = [read_checkpoint(max(stopped(tmp_path, batches).iterdir())).seconds for batches in (12, 6)]
    assert 0 < seconds[0] < seconds[1]


def test_a_checkpoint_within_an_epoch(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "_GREATEST_COST", 1e9)
    folder = stopped(tmp_path, 12, "0.000001s")
    newest = read_checkpoint(folder / "checkpoint-13.safetensors")  # two ends of epochs are written as well
    assert (newest.epoch, newest.snapshot.values["batch"]) == (2, 1)
    steps = Steps()
    resumed = tl.GSM(**SMALL).fit(CORPUS, checkpoint=folder, callbacks=[steps])
    np.testing.assert_array_equal(resumed.components_, whole().components_)
    assert steps.count == 9


def test_writing_takes_a_hundredth_of_the_time(tmp_path, monkeypatch):
    """With a clock that counts its calls, a write takes one second and the next is a hundred seconds later."""
    clock = iter(range(100_000))
    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: next(clock))
    every = tl.Checkpoints(tmp_path, every="1s")
    tl.GSM(**SMALL | {"epochs": 60}).fit(CORPUS, checkpoint=every)
    assert 3 < max(checkpoints._checkpoints_in(tmp_path)) < 6  # of some 370 readings of the clock


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_writes_a_checkpoint_and_stops(number, tmp_path):
    before = signal.getsignal(number)
    with pytest.raises(TrainingInterrupted, match=r"its state after epoch 1") as caught:
        tl.GSM(**SMALL).fit(CORPUS, checkpoint=tmp_path, callbacks=[Stops(7, number)])
    assert caught.value.signal == number
    assert signal.getsignal(number) is before
    resumed = tl.GSM(**SMALL).fit(CORPUS, checkpoint=tmp_path)
    np.testing.assert_array_equal(resumed.components_, whole().components_)
    assert signal.getsignal(number) is before


def test_handlers_of_the_user_stay(tmp_path):
    seen: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
    try:
        tl.GSM(**SMALL).fit(CORPUS, checkpoint=tmp_path, callbacks=[Stops(7, signal.SIGTERM)])
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen == [signal.SIGTERM]


def test_a_fit_in_another_thread(tmp_path):
    model = tl.GSM(**SMALL)
    thread = threading.Thread(target=model.fit, args=(CORPUS,), kwargs={"checkpoint": tmp_path})
    thread.start()
    thread.join()
    np.testing.assert_array_equal(model.components_, whole().components_)


@pytest.mark.parametrize(
    ("model", "corpus", "message"),
    [
        (tl.ETM(**SMALL), CORPUS, r"is a fit of topicloom\.models\.gsm\.GSM, not of topicloom\.models\.etm\.ETM"),
        (tl.GSM(**SMALL | {"hidden_size": 9}), CORPUS, "has another setting: hidden_size is 8, not 9"),
        (tl.GSM(**SMALL), CORPUS[:89], "is a fit of other documents"),
    ],
)
def test_another_fit_is_refused(model, corpus, message, tmp_path):
    stopped(tmp_path)
    with pytest.raises(InputError, match=message):
        model.fit(corpus, checkpoint=tmp_path)
    assert not hasattr(model, "components_")
    resumed = tl.GSM(**SMALL | {"device": "cpu", "verbose": 0}).fit(CORPUS, checkpoint=tmp_path)  # the same fit
    np.testing.assert_array_equal(resumed.components_, whole().components_)


def test_other_held_out_documents_and_versions_are_refused(tmp_path, monkeypatch):
    stopped(tmp_path)
    with pytest.raises(InputError, match="has other documents for validation"):
        tl.GSM(**SMALL).fit(CORPUS, checkpoint=tmp_path, validation=CORPUS[:20])
    monkeypatch.setattr("topicloom.training.checkpoints.versions", lambda: {"torch": "99.0"})
    with pytest.raises(InputError, match=r"was written with \w+ .*, and here it is"):
        tl.GSM(**SMALL).fit(CORPUS, checkpoint=tmp_path)


def test_a_damaged_checkpoint_leaves_the_one_before_it(tmp_path, caplog):
    stopped(tmp_path, 18)
    newest = tmp_path / "checkpoint-3.safetensors"
    newest.write_bytes(newest.read_bytes()[:1000])
    resumed = tl.GSM(**SMALL).fit(CORPUS, checkpoint=tmp_path)
    np.testing.assert_array_equal(resumed.components_, whole().components_)
    assert f"{newest} is damaged" in caplog.text
    assert names(tmp_path) == ["checkpoint-2.safetensors", "checkpoint-4.safetensors"]
    for path in tmp_path.glob("checkpoint-*"):
        path.write_bytes(b"")
    with pytest.raises(ModelFileError, match=r"is damaged: .*and there is no other; delete"):
        tl.GSM(**SMALL).fit(CORPUS, checkpoint=tmp_path)


def test_an_unreadable_checkpoint_is_not_called_damaged(tmp_path, monkeypatch):
    stopped(tmp_path)
    opened = Path.open

    def refuses(path: Path, *arguments: Any, **named: Any) -> Any:
        if path.name == "checkpoint-2.safetensors":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return opened(path, *arguments, **named)

    monkeypatch.setattr(Path, "open", refuses)  # root may open any file
    with pytest.raises(OSError, match=r"checkpoint-2\.safetensors cannot be read \(Permission denied"):
        tl.GSM(**SMALL).fit(CORPUS, checkpoint=tmp_path)
    monkeypatch.undo()

    def fails(*_: object) -> None:
        raise OSError("Cannot allocate memory (os error 12)")  # as safetensors does

    monkeypatch.setattr("topicloom.training.checkpoints.safe_open", fails)
    with pytest.raises(OSError, match=r"checkpoint-2\.safetensors cannot be read \(Cannot allocate"):
        tl.GSM(**SMALL).fit(CORPUS, checkpoint=tmp_path)
    monkeypatch.undo()
    assert len(list(tmp_path.glob("checkpoint-*"))) == 2
    np.testing.assert_array_equal(tl.GSM(**SMALL).fit(CORPUS, checkpoint=tmp_path).components_, whole().components_)


def test_every_damage_is_noticed(tmp_path):
    """A file that is cut anywhere, or has a flipped byte anywhere, is refused or read as it was."""
    path = stopped(tmp_path) / "checkpoint-2.safetensors"
    whole, right = path.read_bytes(), read_checkpoint(path)
    random = np.random.default_rng(0)
    damaged = [whole[:length] for length in random.integers(0, len(whole), 20)]
    for place in random.integers(0, len(whole), 100):
        damaged.append(whole[:place] + bytes([whole[place] ^ (1 + random.integers(255))]) + whole[place + 1 :])
    refused = 0
    for content in damaged:
        path.write_bytes(content)
        try:
            found = read_checkpoint(path)
        except ModelFileError as error:
            refused += str(path) in str(error)
        else:
            assert found.snapshot.values == right.snapshot.values
    assert refused > 110


def test_a_full_disk_leaves_the_last_checkpoint(tmp_path, monkeypatch, caplog):
    written = save_file

    def full(tensors: Any, place: Any, metadata: Any) -> None:
        if "checkpoint-2" in str(place):
            Path(place).write_bytes(b"half")
            raise OSError(errno.ENOSPC, "No space left on device")
        written(tensors, place, metadata)

    monkeypatch.setattr("topicloom.training.checkpoints.save_file", full)
    with pytest.raises(ZeroDivisionError):
        tl.GSM(**SMALL).fit(CORPUS, checkpoint=tl.Checkpoints(tmp_path, every="1 epoch"), callbacks=[Stops(13)])
    assert names(tmp_path) == ["checkpoint-1.safetensors"]
    assert "no checkpoint can be written" in caplog.text
    assert "No space left on device" in caplog.text
    monkeypatch.undo()
    np.testing.assert_array_equal(tl.GSM(**SMALL).fit(CORPUS, checkpoint=tmp_path).components_, whole().components_)


class Disk:
    """A disk of a directory with room for so many bytes, for the files that safetensors writes."""

    def __init__(self, folder: Path, room: float) -> None:
        self.folder, self.room = folder, room

    def __call__(self, tensors: Any, place: Any, metadata: Any) -> None:
        save_file(tensors, place, metadata)
        taken = sum(path.stat().st_size for path in self.folder.glob("*checkpoint-*"))
        if Path(place).parent == self.folder and taken > self.room:
            Path(place).write_bytes(b"half")
            raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")


@pytest.fixture
def size(tmp_path) -> int:
    """The bytes of a checkpoint."""
    return max(path.stat().st_size for path in stopped(tmp_path / "measured").iterdir())


@pytest.mark.parametrize("room", [1.5, 2.5])
def test_a_full_disk_keeps_the_newest_checkpoint(room, size, tmp_path, monkeypatch, caplog):
    """With room for two and not for three, each epoch is written; with room for one, the first one stays."""
    monkeypatch.setattr(checkpoints, "save_file", Disk(tmp_path / "ck", room * size))
    folder = stopped(tmp_path / "ck", 18)
    epochs = [read_checkpoint(folder / name).epoch for name in names(folder)]
    assert epochs == ([1] if room < 2 else [2, 3])
    assert caplog.text.count("(No space left on device); the last one is of epoch 1") == (2 if room < 2 else 0)
    monkeypatch.undo()
    np.testing.assert_array_equal(tl.GSM(**SMALL).fit(CORPUS, checkpoint=folder).components_, whole().components_)


def test_a_final_state_without_room_leaves_a_usable_model(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(checkpoints, "save_file", Disk(tmp_path / "ck", 0))
    model = tl.GSM(**SMALL)
    with pytest.raises(StateNotSavedError, match=r"ck \(No space left on device\); the model is fitted, so save it"):
        model.fit(CORPUS, checkpoint=tl.Checkpoints(tmp_path / "ck", every="1 epoch"))
    assert "there is none yet, so nothing of the training is kept if it stops" in caplog.messages[0]
    np.testing.assert_array_equal(model.components_, whole().components_)
    model.save(tmp_path / "model")
    assert names(tmp_path / "ck") == []


def test_a_disk_without_room_is_named_at_the_first_step(tmp_path, monkeypatch, caplog):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(checkpoints.shutil, "disk_usage", lambda _: usage._replace(free=1000))
    stopped(tmp_path, 2)
    assert re.search(r"now \(it takes about 0\.0\d+ MB, and 0\.001 MB are free\); make room there", caplog.text)


def test_a_stopped_fit_without_room_is_kept_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "save_file", Disk(tmp_path / "ck", 0))
    monkeypatch.setattr(checkpoints.tempfile, "tempdir", str(tmp_path))
    with pytest.raises(TrainingInterrupted, match=r"its state is in .*/checkpoint-1\.safetensors, because") as caught:
        tl.GSM(**SMALL).fit(CORPUS, checkpoint=tmp_path / "ck", callbacks=[Stops(7, signal.SIGTERM)])
    monkeypatch.undo()
    kept = Path(str(caught.value).partition("its state is in ")[2].partition(", because")[0])
    kept.rename(tmp_path / "ck" / kept.name)
    resumed = tl.GSM(**SMALL).fit(CORPUS, checkpoint=tmp_path / "ck")
    np.testing.assert_array_equal(resumed.components_, whole().components_)


SPECIAL = {
    "directory": Path.mkdir,
    "pipe": os.mkfifo if hasattr(os, "mkfifo") else Path.mkdir,
    "loop of links": lambda path: path.symlink_to(path),
    "device": lambda path: path.symlink_to(os.devnull),
    "link to nothing": lambda path: path.symlink_to("nowhere"),
}


@pytest.mark.parametrize("kind", SPECIAL)
def test_what_is_no_file_leaves_the_checkpoint_before_it(kind, tmp_path, caplog):
    folder = stopped(tmp_path, 12)
    odd = folder / "checkpoint-3.safetensors"
    SPECIAL[kind](odd)
    with pytest.raises(ModelFileError, match=r"checkpoint-3\.safetensors"):
        read_checkpoint(odd)
    resumed = tl.GSM(**SMALL).fit(CORPUS, checkpoint=folder)
    np.testing.assert_array_equal(resumed.components_, whole().components_)
    assert "an earlier checkpoint is used" in caplog.text
    assert read_checkpoint(folder / "checkpoint-4.safetensors").finished


@pytest.mark.parametrize("place", ["file", "file/below", "loop", "n" * 256, "new/" + "n" * 256])
def test_a_place_that_cannot_be_written_is_found_before_training(place, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    steps = Steps()
    with pytest.raises(InputError, match=r"no checkpoint can be written in .*; give another place|is a file"):
        tl.GSM(**SMALL).fit(CORPUS, checkpoint=tmp_path / place, callbacks=[steps])
    assert steps.count == 0


def test_other_versions_go_on_only_if_they_are_allowed(tmp_path, monkeypatch, caplog):
    folder = stopped(tmp_path)
    newer = checkpoints.versions() | {"torch": "99.0", "topicloom": "98.0"}
    monkeypatch.setattr(checkpoints, "versions", lambda: newer)
    with pytest.raises(InputError, match=r"topicloom .* here it is 98\.0; `allow_other_versions=True` goes on without"):
        tl.GSM(**SMALL).fit(CORPUS, checkpoint=folder)
    with pytest.raises(InputError, match=r"has another setting: n_topics is 3, not 4"):
        tl.GSM(**SMALL | {"n_topics": 4}).fit(CORPUS, checkpoint=tl.Checkpoints(folder, allow_other_versions=True))
    model = tl.GSM(**SMALL).fit(CORPUS, checkpoint=tl.Checkpoints(folder, allow_other_versions=True))
    np.testing.assert_array_equal(model.components_, whole().components_)  # they are not really others
    assert "98.0 and torch" in caplog.text
    assert "can differ from that of an uninterrupted training" in caplog.text


def test_a_setting_that_an_older_version_lacked_is_its_default(tmp_path, monkeypatch):
    folder = stopped(tmp_path)
    path = folder / "checkpoint-2.safetensors"
    found = read_checkpoint(path)
    settings = {name: value for name, value in found.identity.settings.items() if name != "topic_gain"}
    identity = replace(found.identity, settings=settings, versions=found.identity.versions | {"topicloom": "0.0.1"})
    replace(found, identity=identity).write(path)
    allowed = tl.Checkpoints(folder, allow_other_versions=True)
    with pytest.raises(InputError, match="topic_gain is"):
        tl.GSM(**SMALL, topic_gain=3.0).fit(CORPUS, checkpoint=allowed)
    np.testing.assert_array_equal(tl.GSM(**SMALL).fit(CORPUS, checkpoint=allowed).components_, whole().components_)


def test_a_state_in_another_form_is_not_called_damaged(tmp_path):
    folder = stopped(tmp_path)
    path = folder / "checkpoint-2.safetensors"
    found = read_checkpoint(path)
    tensors = {name: tensor for name, tensor in found.snapshot.tensors.items() if not name.startswith("network.")}
    replace(found, snapshot=replace(found.snapshot, tensors=tensors)).write(path)
    with pytest.raises(InputError, match=r"does not fit the model of these versions \(.*\); begin a new fit"):
        tl.GSM(**SMALL).fit(CORPUS, checkpoint=folder)
    text = json.dumps({"format_version": 1, "values": {}})
    tensors = {"some": torch.zeros(1)}  # safetensors 0.4 reads no file without any
    save_file(tensors, path, {"topicloom": text, "sha256": checkpoints._digest(text, tensors)})
    with pytest.raises(ModelFileError, match=r"not in the form that this version reads .*another version of topicloom"):
        read_checkpoint(path)


def test_more_epochs(tmp_path):
    tl.GSM(**SMALL).fit(CORPUS, checkpoint=tmp_path)
    more = tl.GSM(**SMALL).fit(CORPUS, checkpoint=tl.Checkpoints(tmp_path, more_epochs=3))
    assert [row["epoch"] for row in more.history_] == [1, 2, 3, 4, 5, 6, 7]
    assert [row["loss"] for row in more.history_[:4]] == [row["loss"] for row in whole().history_]
    rates = [row["learning_rate"] for row in more.history_]
    assert rates[4] > 0.005 > 0.0005 > rates[6]  # a cycle of its own
    assert not np.array_equal(more.components_, whole().components_)
    again = tl.GSM(**SMALL).fit(CORPUS, checkpoint=tl.Checkpoints(tmp_path, more_epochs=1))
    assert len(again.history_) == 8


def test_more_epochs_go_on_after_a_stop(tmp_path):
    for folder in ("whole", "stopped"):
        tl.GSM(**SMALL).fit(CORPUS, checkpoint=tmp_path / folder)
    whole = tl.GSM(**SMALL).fit(CORPUS, checkpoint=tl.Checkpoints(tmp_path / "whole", more_epochs=3))
    more = tl.Checkpoints(tmp_path / "stopped", every="1 epoch", more_epochs=3)
    with pytest.raises(ZeroDivisionError):
        tl.GSM(**SMALL).fit(CORPUS, checkpoint=more, callbacks=[Stops(8)])
    with pytest.raises(InputError, match="stopped while 3 epochs were added; give `more_epochs=3` to go on"):
        tl.GSM(**SMALL).fit(CORPUS, checkpoint=tl.Checkpoints(tmp_path / "stopped", more_epochs=2))
    shutil.copytree(tmp_path / "stopped", tmp_path / "again")
    for checkpoint in (tmp_path / "stopped", tl.Checkpoints(tmp_path / "again", more_epochs=3)):  # the same call
        resumed = tl.GSM(**SMALL).fit(CORPUS, checkpoint=checkpoint)
        np.testing.assert_array_equal(resumed.components_, whole.components_)
        assert resumed.history_[-1]["epoch"] == 7


@pytest.mark.parametrize(
    "model",
    [
        tl.LDA(3, epochs=3, random_state=0),
        tl.Loom(3, hidden_size=8, epochs=6, random_state=0),
        tl.GSM(**SMALL | {"patience": 1, "epochs": 30, "kl_warmup": 0.0}),  # whose patience begins anew
    ],
    ids=["LDA", "Loom", "patience"],
)
def test_more_epochs_of_other_methods(model, tmp_path):
    done = len(model.fit(CORPUS, checkpoint=tmp_path).history_)
    more = model.fit(CORPUS, checkpoint=tl.Checkpoints(tmp_path, more_epochs=2))
    rows = [row["epoch"] for row in more.history_]
    assert rows == list(range(1, len(rows) + 1))
    assert len(rows) == done + 2 or (getattr(model, "patience", None) and len(rows) == done + 1)


def test_added_epochs_are_a_whole_number(tmp_path):
    tl.GSM(**SMALL).fit(CORPUS, checkpoint=tmp_path)
    more = tl.GSM(**SMALL).fit(CORPUS, checkpoint=tl.Checkpoints(tmp_path, more_epochs=np.int64(1)))
    assert len(more.history_) == SMALL["epochs"] + 1
    for wrong in (0, True, 2.5, "3"):
        with pytest.raises(SettingError, match="should be a whole number from 1"):
            tl.Checkpoints(tmp_path, more_epochs=wrong)


def test_epochs_are_added_to_finished_fits_alone(tmp_path):
    with pytest.raises(InputError, match="holds no finished fit"):
        tl.GSM(**SMALL).fit(CORPUS, checkpoint=tl.Checkpoints(tmp_path, more_epochs=3))
    stopped(tmp_path)
    with pytest.raises(InputError, match="holds a fit that has not finished"):
        tl.GSM(**SMALL).fit(CORPUS, checkpoint=tl.Checkpoints(tmp_path, more_epochs=3))


def test_one_fit_at_a_time(tmp_path):
    class Second(tl.Callback):
        def on_step(self, state: Any) -> None:
            with pytest.raises(InputError, match="is being written by"):
                tl.GSM(**SMALL).fit(CORPUS, checkpoint=tmp_path)
            self.tried = True

    second = Second()
    tl.GSM(**SMALL | {"epochs": 1}).fit(CORPUS, checkpoint=tmp_path, callbacks=[second])
    assert second.tried


def test_monitored_epochs_are_the_same_after_a_stop(tmp_path):
    watched = {"monitor": ["document_npmi"], "monitor_every": 3}
    settings = SMALL | {"epochs": 7}
    whole = tl.GSM(**settings).fit(CORPUS, **watched)
    stopped(tmp_path, 22, epochs=7)
    resumed = tl.GSM(**settings).fit(CORPUS, checkpoint=tmp_path, **watched)
    measured = [[row["epoch"] for row in each.history_ if "document_npmi" in row] for each in (whole, resumed)]
    assert measured == [[3, 6, 7], [6, 7]]  # the stopped fit did not measure


@pytest.mark.parametrize("every", ["", "5", "0 epochs", "1.5 epochs", "0s", "ten minutes", "-1min"])
def test_intervals_that_are_refused(every, tmp_path):
    with pytest.raises(SettingError, match="should be a time or a number of epochs"):
        tl.Checkpoints(tmp_path, every=every)


def test_a_fit_goes_on_from_one_state(tmp_path):
    stopped(tmp_path)
    state = read_checkpoint(tmp_path / "checkpoint-2.safetensors").snapshot
    with pytest.raises(SettingError, match="give one of them"):
        tl.GSM(**SMALL).fit(CORPUS, checkpoint=tmp_path, resume_from=state)


@needs_fork
def test_a_killed_process(tmp_path):
    kill = Stops(13, signal.SIGKILL)
    every = tl.Checkpoints(tmp_path, every="1 epoch")
    process = Fork(lambda: tl.GSM(**SMALL).fit(CORPUS, checkpoint=every, callbacks=[kill]))
    assert process.wait() == -signal.SIGKILL
    resumed = tl.GSM(**SMALL).fit(CORPUS, checkpoint=tmp_path)
    np.testing.assert_array_equal(resumed.components_, whole().components_)
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


# A run that is written after any epoch, and goes on in another process, ends as the run that was never stopped.

SMALLER: dict[str, Any] = {"n_topics": 3, "hidden_size": 8, "batch_size": 40, "epochs": 4, "random_state": 3}
RUNS: dict[str, dict[str, Any]] = {
    "BATM": {"critic_steps": 2},
    "DirichletVAE": {"estimator": "rsvi"},
    "ECRTM": {"embedding_size": 8},
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
    settings = {key: value for key, value in (SMALLER | RUNS[name]).items() if value is not None}
    return name.split()[0], settings


def write(folder: Path, name: str, snapshot: Snapshot) -> None:
    save_file(snapshot.tensors, folder / f"{name}.safetensors")
    (folder / f"{name}.json").write_text(json.dumps(snapshot.values, allow_nan=False), encoding="utf-8")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in ("BATM", "ECRTM", "NVLDA") else ()) for name in RUNS]
)
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
    plain = tl.GSM(**SMALLER).fit(CORPUS)
    np.testing.assert_array_equal(tl.GSM(**SMALLER).fit(CORPUS, callbacks=[Keeper()]).components_, plain.components_)


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
