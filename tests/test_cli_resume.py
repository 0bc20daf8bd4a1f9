"""`train --resume` and `train --continue`."""

from __future__ import annotations

import errno
import json
import shutil
import signal
import tempfile
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

import topicloom as tl
from command_line import MONEY, PETS, call, refused
from topicloom.reports import run
from topicloom.training import checkpoints
from topicloom.training.checkpoints import Checkpoints

FAST = ("--model", "gsm", "--topics", 2, "--epochs", 6, "--set", "hidden_size=8", "--set", "kl_warmup=0")
FAST += ("--set", "start=random", "--min-df", 1)
EVERY = ("--checkpoint-every", "1 epoch", "--no-explorer")


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text(f"{PETS}\n{MONEY}\n" * 30, encoding="utf-8")
    return path


@pytest.fixture
def stop_after(monkeypatch):
    """Returns a function after whose call the next training gets a signal after so many epochs."""
    usual = Checkpoints.on_state

    def arrange(epochs: int) -> None:
        left = [epochs]

        def on_state(self, state):
            left[0] -= 1
            if left[0] == 0:
                signal.raise_signal(signal.SIGTERM)
            usual(self, state)

        monkeypatch.setattr(Checkpoints, "on_state", on_state)

    return arrange


def test_a_run_that_cannot_be_written_is_written_by_resume(texts, tmp_path, monkeypatch):
    out, written = tmp_path / "run", run.write
    full = OSError(errno.ENOSPC, "No space left on device", str(out / "model"))
    monkeypatch.setattr(run, "write", Mock(side_effect=full))
    says = [
        f"{out / 'model'}: No space left on device",
        "training has ended",
        "same command with --resume writes the run",
    ]
    refused("train", texts, *FAST, *EVERY, "--out", out, says=says)
    monkeypatch.setattr(run, "write", written)
    assert call("train", texts, *FAST, *EVERY, "--out", out, "--resume").exit_code == 0
    assert epochs_in(out) == [1, 2, 3, 4, 5, 6]


@pytest.fixture
def full_disk(tmp_path, monkeypatch):
    """No file can be written in tmp_path/full, and temporary files are in tmp_path/elsewhere."""
    (tmp_path / "full").mkdir()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "elsewhere"))
    written = run.write

    def write(place: Path, *given: object) -> object:
        if place.is_relative_to(tmp_path / "full"):
            raise OSError(errno.ENOSPC, "No space left on device", str(place / "model"))
        return written(place, *given)

    monkeypatch.setattr(run, "write", write)
    return tmp_path / "full" / "run"


NO_STATE = ("--checkpoint-every", "none", "--no-explorer", "--quiet")


def test_a_batch_job_writes_elsewhere_on_a_full_disk(texts, tmp_path, full_disk):
    says = ["model: No space left on device; training has ended, and the run is in", "move it where there is room"]
    refused("train", texts, *FAST, *NO_STATE, "--out", full_disk, says=says)
    (kept,) = (tmp_path / "elsewhere").glob("topicloom-*/run")
    assert len(tl.Topics.from_run(kept).corpus) == 60


def test_a_batch_job_waits_for_room_for_a_limited_time(texts, tmp_path, full_disk, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "full" / "temporary"))
    naps: list[float] = []
    monkeypatch.setattr("topicloom.cli.train.time.sleep", naps.append)
    refused("train", texts, *FAST, *NO_STATE, "--out", full_disk, says=["so the run is lost"])
    assert sum(naps) == 600


def test_a_run_is_written_as_soon_as_there_is_room(texts, tmp_path, full_disk, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "full" / "temporary"))
    monkeypatch.setattr("topicloom.cli.train.time.sleep", lambda _: monkeypatch.undo())
    assert call("train", texts, *FAST, *NO_STATE, "--out", full_disk).exit_code == 0
    assert len(tl.Topics.from_run(full_disk).corpus) == 60


def test_a_user_at_a_terminal_is_asked_for_another_place(texts, tmp_path, full_disk, monkeypatch):
    monkeypatch.setattr("topicloom.cli.train.at_terminal", lambda: True)
    answers = [str(tmp_path / "full" / "again"), "", str(texts), str(tmp_path / "other")]
    result = call("train", texts, *FAST, *NO_STATE, "--out", full_disk, stdin="\n".join(answers) + "\n")
    assert result.exit_code == 0, result.output
    assert result.stderr.count("its result is not on disk yet") == 4
    assert "is a file" in result.stderr
    assert len(tl.Topics.from_run(tmp_path / "other").corpus) == 60
    assert not (tmp_path / "elsewhere" / "run").exists()


def test_a_user_who_gives_no_place_finds_the_run_elsewhere(texts, tmp_path, full_disk, monkeypatch):
    monkeypatch.setattr("topicloom.cli.train.at_terminal", lambda: True)
    refused("train", texts, *FAST, *NO_STATE, "--out", full_disk, says=["the run is in"])  # the input ends
    assert len(list((tmp_path / "elsewhere").glob("topicloom-*/run/model"))) == 1


@pytest.mark.parametrize("name", ["n" * 100 + "." + "s" * 51, "n" * 235, "n" * 255, "名" * 85])
def test_a_run_has_any_name_that_a_directory_can_have(name, texts, tmp_path):
    assert call("train", texts, *FAST, *EVERY, "--epochs", 1, "--quiet", "--out", tmp_path / name).exit_code == 0
    assert len(tl.Topics.from_run(tmp_path / name).corpus) == 60
    assert {path.name for path in tmp_path.iterdir()} == {name, texts.name}


@pytest.mark.parametrize("out", ["n" * 256, "new/" + "n" * 256, "texts.txt/run", "loop/run"])
def test_a_run_without_a_place_is_refused_before_training(out, texts, tmp_path, monkeypatch):
    (tmp_path / "loop").symlink_to("loop")
    monkeypatch.setattr("topicloom.text.reading.read", Mock(side_effect=AssertionError("the texts are read")))
    refused("train", texts, *FAST, "--out", tmp_path / out, says=["cannot be written", "give another place"])


def test_a_run_is_written_into_a_mounted_directory(texts, tmp_path, monkeypatch):
    """A mounted directory cannot be renamed, so the files of the run are moved into it."""
    out, other = tmp_path / "mounted", tmp_path / "other"
    out.mkdir()
    other.mkdir()
    monkeypatch.setattr("os.path.ismount", lambda path: Path(path) in (out, other))
    for more in ((), ("--overwrite",)):
        assert call("train", texts, *FAST, *EVERY, "--quiet", "--out", out, *more).exit_code == 0
    assert len(tl.Topics.from_run(out).corpus) == 60
    refused("prepare", texts, "--min-df", 1, "--out", other, says=["is a mounted directory"])


def test_a_run_goes_on_with_other_versions_if_it_may(texts, tmp_path, stop_after, monkeypatch):
    out = tmp_path / "run"
    stop_after(3)
    assert call("train", texts, *FAST, *EVERY, "--out", out).exit_code == 143
    other = checkpoints.versions() | {"numpy": "99.0"}
    monkeypatch.setattr(checkpoints, "versions", lambda: other)
    says = ["here it is 99.0; --allow-other-versions goes on without the promise of the same bits, or"]
    refused("train", texts, *FAST, *EVERY, "--out", out, "--resume", says=says)
    allowed = ("--resume", "--allow-other-versions")
    result = call("train", texts, *FAST, *EVERY, "--out", out, *allowed)
    assert result.exit_code == 0, result.output
    assert "here it is 99.0; the result can differ from that of an uninterrupted training" in result.stderr
    assert epochs_in(out) == [1, 2, 3, 4, 5, 6]
    newer = other | {"python": "4.0.0"}
    monkeypatch.setattr(checkpoints, "versions", lambda: newer)
    more = ("train", "--continue", out, "--epochs", "+1", *EVERY)
    refused(*more, says=["here it is 4.0.0; --allow-other-versions"])
    assert call(*more, "--allow-other-versions").exit_code == 0
    assert epochs_in(out) == [1, 2, 3, 4, 5, 6, 7]
    refused("train", texts, "--allow-other-versions", says=["needs --resume or --continue"])


def weights(run: Path) -> bytes:
    return (run / "model" / "model.safetensors").read_bytes()


def epochs_in(run: Path) -> list[int]:
    return [json.loads(line)["epoch"] for line in (run / "log.jsonl").read_text().splitlines()]


def test_a_stopped_run_goes_on(texts, tmp_path, stop_after):
    whole, run = tmp_path / "whole", tmp_path / "run"
    assert call("train", texts, *FAST, *EVERY, "--out", whole).exit_code == 0
    stop_after(3)
    refused("train", texts, *FAST, *EVERY, "--out", run, says=["after epoch 3", "go on with: topicloom"], code=143)
    assert sorted(path.name for path in run.iterdir()) == ["checkpoints", "log.jsonl"]
    refused("topics", run, says=["run is not complete; if it was stopped, repeat its command with --resume of train"])
    refused("train", texts, *FAST, "--out", run, says=["was stopped", "--resume goes on", "--overwrite starts again"])
    refused("train", texts, *FAST, "--seed", 5, "--out", run, "--resume", says=["random_state is 0, not 5"])
    assert call("train", texts, *FAST, *EVERY, "--out", run, "--resume").exit_code == 0
    assert weights(run) == weights(whole)
    assert epochs_in(run) == [1, 2, 3, 4, 5, 6]
    assert not (run / "checkpoints").exists()
    again = call("train", texts, *FAST, *EVERY, "--out", run, "--resume")  # nothing is left to do
    assert (again.exit_code, "has finished" in again.stderr) == (0, True)
    finished = ["random_state is 0, not 5", "has finished, so give --overwrite and not --resume"]
    refused("train", texts, *FAST, "--seed", 5, "--out", run, "--resume", says=finished)


def test_a_new_run_forgets_the_stopped_one(texts, tmp_path, stop_after):
    whole, run = tmp_path / "whole", tmp_path / "run"
    assert call("train", texts, *FAST, "--seed", 5, "--no-explorer", "--out", whole).exit_code == 0
    stop_after(3)
    assert call("train", texts, *FAST, *EVERY, "--out", run).exit_code == 143
    assert call("train", texts, *FAST, "--seed", 5, "--no-explorer", "--out", run, "--overwrite").exit_code == 0
    assert weights(run) == weights(whole)


def test_a_finished_run_is_continued(texts, tmp_path, stop_after):
    whole, run = tmp_path / "whole", tmp_path / "run"
    for out in (whole, run):
        assert call("train", texts, *FAST, *EVERY, "--out", out).exit_code == 0
    before = weights(run)
    assert call("train", "--continue", whole, "--epochs", "+4", *EVERY).exit_code == 0
    assert epochs_in(whole) == list(range(1, 11))
    assert weights(whole) != before
    assert call("train", "--continue", run, "--epochs", "+4", *EVERY, "--resume").exit_code == 0  # from the beginning
    assert weights(run) == weights(whole)
    shutil.rmtree(run)
    assert call("train", texts, *FAST, *EVERY, "--out", run).exit_code == 0
    metrics = json.loads((whole / "metrics.json").read_text(encoding="utf-8"))
    assert (metrics["epochs"], metrics["source"]["path"]) == (10, str(texts))
    stop_after(2)
    more = ("train", "--continue", run, "--epochs", "+4", *EVERY)
    refused(*more, says=["after epoch 8", "--resume"], code=143)
    assert weights(run) == before  # the earlier run stays until the new one is complete
    refused(*more, says=["was being continued and was stopped", "--resume goes on"])
    others = (*more[:4], "+2", "--resume", *EVERY)
    refused(*others, says=["was stopped while 4 epochs were added; give --epochs 4 to go on, or --overwrite in place"])
    assert call(*more, "--resume").exit_code == 0
    assert weights(run) == weights(whole)
    again = call(*more, "--resume")  # as a job scheduler may repeat it
    assert (again.exit_code, again.stderr) == (
        0,
        f"{run} has 4 further epochs already; leave out --resume to add as many again\n",
    )
    assert epochs_in(run) == list(range(1, 11))
    edited = tmp_path / "edited"
    assert call("edit", run, "--rename", "0=pets", "--out", edited).exit_code == 0
    refused("train", "--continue", edited, "--epochs", 1, says=[f"topicloom edit RUN --replay {edited} --out EDITED"])


@pytest.mark.parametrize("fixed", [False, True])
def test_a_run_with_given_word_vectors_is_continued(fixed, texts, tmp_path):
    """A saved model has the vectors in its weights, and not as a setting."""
    words = sorted({*f"{PETS} {MONEY}".lower().split()})
    numbers = np.random.default_rng(0).normal(size=(len(words), 4))
    rows = (f"{word} {' '.join(map(str, row))}" for word, row in zip(words, numbers, strict=True))
    (tmp_path / "vectors.txt").write_text("\n".join(rows), encoding="utf-8")
    settings = (
        "--set",
        f"word_vectors={tmp_path / 'vectors.txt'}",
        "--set",
        f"fixed_word_vectors={str(fixed).lower()}",
    )
    run = tmp_path / "run"
    own = ("--model", "etm", "--topics", 2, "--epochs", 2, "--min-df", 1, *settings)
    assert call("train", texts, *own, "--no-explorer", "--out", run).exit_code == 0
    before = tl.load(run).word_embeddings_
    for n_epochs in (4, 6):
        assert call("train", "--continue", run, "--epochs", "+2", "--no-explorer").exit_code == 0
        assert epochs_in(run)[-1] == n_epochs
    after = tl.load(run)
    assert after.word_embeddings_.shape == before.shape
    assert np.array_equal(before, after.word_embeddings_) == fixed


def test_continuing_after_a_kill_before_any_checkpoint_trains_all_epochs(texts, tmp_path, monkeypatch):
    whole, run = tmp_path / "whole", tmp_path / "run"
    for out in (whole, run):
        assert call("train", texts, *FAST, *EVERY, "--out", out).exit_code == 0
    more = ("train", "--continue", run, "--epochs", "+4", "--no-explorer")
    with monkeypatch.context() as patched:
        patched.setattr(Checkpoints, "on_step", lambda self, state: signal.raise_signal(signal.SIGINT))
        patched.setattr(Checkpoints, "_write", lambda self, state: None)  # as if SIGKILL had come
        assert call(*more).exit_code == 130
    assert [path.name for path in (run / "checkpoints").iterdir()] == ["checkpoint-1.safetensors"]
    assert call(*more, "--resume").exit_code == 0
    assert call("train", "--continue", whole, "--epochs", "+4", "--no-explorer").exit_code == 0
    assert epochs_in(run) == list(range(1, 11))
    assert weights(run) == weights(whole)


def test_a_stopped_run_that_never_finished_is_not_continued(texts, tmp_path, stop_after):
    run = tmp_path / "run"
    stop_after(3)
    assert call("train", texts, *FAST, *EVERY, "--out", run).exit_code == 143
    refused("train", "--continue", run, "--epochs", 2, says=["run is not complete", "repeat its command with --resume"])


def test_what_cannot_be_continued(texts, tmp_path):
    run = tmp_path / "run"
    assert call("train", texts, *FAST, "--no-explorer", "--no-documents", "--out", run).exit_code == 0
    refused("train", "--continue", run, says=["give the number of epochs to add", "--epochs +50"])
    refused("train", "--continue", run, "--epochs", "+0", says=["--epochs 0 should be a whole number from 1"])
    assert not (run / "checkpoints").exists()
    refused("train", "--continue", run, "--epochs", 2, "--topics", 3, says=["leave out --topics"])
    refused(
        "train", "--continue", run, "--epochs", 2, says=["give the file, with the options", "train FILE --continue"]
    )
    other = tmp_path / "other.txt"
    other.write_text(f"{PETS}\n{MONEY}\n" * 31, encoding="utf-8")
    says = ["is a fit of other documents; a run is trained further with its own"]
    refused("train", other, "--continue", run, "--epochs", 2, "--min-df", 1, says=says)
    assert call("train", texts, "--continue", run, "--epochs", 2, "--min-df", 1, "--no-explorer").exit_code == 0
    (run / "state.safetensors").unlink()
    refused("train", texts, "--continue", run, "--epochs", 2, "--min-df", 1, says=["has no state.safetensors"])


def test_a_run_without_checkpoints(texts, tmp_path):
    run = tmp_path / "run"
    assert call("train", texts, *FAST, "--checkpoint-every", "none", "--no-explorer", "--out", run).exit_code == 0
    assert not (run / "state.safetensors").exists()
    none = ("--checkpoint-every", "none", "--resume")
    refused("train", texts, *FAST, *none, "--out", run, says=["leave out --checkpoint-every none"])
    assert tl.load(run).transform([PETS]).shape == (1, 2)
    refused("train", texts, *FAST, "--checkpoint-every", "often", "--out", tmp_path / "new", says=["'10min'"])
