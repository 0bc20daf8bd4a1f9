"""Writing and commands are killed: the old or the new is always there and whole, and a command goes on."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import topicloom as tl
from soak import faults, kills
from soak.damage import corpus, model
from topicloom.errors import CorpusFileError
from topicloom.files import atomic_directory, atomic_file, put_back, writing
from topicloom.reports.run import write

pytestmark = [pytest.mark.syncs, pytest.mark.skipif(sys.platform != "linux", reason="needs fork")]

OPERATIONS = {"open", "os.mkdir", "os.rename", "os.rmdir", "os.remove", "os.chmod", "os.link", "shutil.rmtree"}
PARTS = ("one", "two", "mark")
STEPS_OF_A_RUN = {False: range(5, 400, 45), True: [*range(5, 195, 38), *range(196, 208, 3), 240]}


def finished(write: Callable[[], None], step: int) -> bool:
    """Call `write` in a process that is killed before its file operation number `step`; whether it came to its end."""
    child = os.fork()
    if child == 0:
        left = step

        def count(event: str, _: tuple[object, ...] = ()) -> None:
            nonlocal left
            if event in OPERATIONS:
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        exchange = writing.exchange

        def counted(one: Path, other: Path) -> bool:
            count("os.rename")
            done = exchange(one, other)
            count("os.rename")
            return done

        writing.exchange = counted
        sys.addaudithook(count)
        try:
            write()
        except BaseException:
            os._exit(1)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "it failed by itself"
    return not os.WIFSIGNALED(status)


def write_parts(path: Path, text: str) -> None:
    with atomic_directory(path, "mark", overwrite=True) as folder:
        for part in PARTS:
            (folder / part).write_text(text)


@pytest.mark.parametrize("has_exchange", [True, False])
def test_a_directory_that_is_replaced(tmp_path, monkeypatch, has_exchange):
    if not has_exchange:
        monkeypatch.setattr(writing, "exchange", lambda one, other: False)
    path, found, step = tmp_path / "model", [], 0
    while True:
        write_parts(path, "old")
        done = finished(lambda: write_parts(path, "new"), step)
        if has_exchange:
            assert path.is_dir(), step
        put_back(path)  # as all readers do
        found.append({(path / part).read_text() for part in PARTS})
        assert found[-1] in ({"old"}, {"new"}), step
        write_parts(path, "next")
        assert [entry.name for entry in tmp_path.iterdir()] == ["model"], step
        if done:
            break
        step += 1
    assert found[0] == {"old"}
    assert found[-1] == {"new"}
    assert step > 15


def test_a_file_that_is_replaced(tmp_path):
    path, step = tmp_path / "a.json", 0

    def replace(text: str) -> None:
        with atomic_file(path) as temporary:
            temporary.write_text(text)

    while True:
        replace("old")
        done = finished(lambda: replace("new"), step)
        assert path.read_text() in ("old", "new")
        replace("next")
        assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"], step
        if done:
            break
        step += 1
    assert step > 3


@pytest.mark.parametrize("others", [False, True])
def test_a_run_that_is_replaced(tmp_path, monkeypatch, others):
    """Beside other files, a run is replaced file by file: a run that is neither the old nor the new one is refused."""
    monkeypatch.setattr("topicloom.reports.run._draw", lambda *_: None)
    documents, fitted = corpus(), [model("GSM", hidden_size=4), model("LDA")]
    theta = [each.infer(documents) for each in fitted]
    out = tmp_path / "run"

    def run(which: int) -> None:
        write(out, fitted[which], documents, theta[which], 0.0)

    run(0)
    if others:
        (out / "notes.txt").write_text("mine")
    steps, seen = STEPS_OF_A_RUN[others], set()
    for step in [*steps, 10_000]:
        done = finished(lambda: run(1), step)
        which = int((out / "model" / "config.json").read_text().count('"LDA"'))
        try:
            topics = tl.Topics.from_run(out, device="cpu")
        except CorpusFileError as error:
            seen.add(str(error).partition(" does not ")[2][:17])
        else:
            seen.add(which)
            assert (topics.documents.theta == theta[which].theta).all()
        assert not others or (out / "notes.txt").read_text() == "mine"
        if done:
            break
        if which or not seen <= {0, 1}:
            run(0)
    assert {0, 1} <= seen <= {0, 1} | ({"belong to the mod", "hold its document"} if others else set())
    run(0)
    assert {entry.name for entry in out.iterdir() if entry.name.startswith(".")} == set()
    assert [entry.name for entry in tmp_path.iterdir()] == ["run"]


# A full disk and a directory that may not be written.


def write_all(folder: Path) -> dict[str, Callable[[], object]]:
    fitted, documents = model("LDA"), corpus()
    theta = fitted.infer(documents)
    return {
        "model": lambda: fitted.save(folder / "model", overwrite=True),
        "corpus": lambda: documents.save(folder / "corpus", overwrite=True),
        "run": lambda: write(folder / "run", fitted, documents, theta, 0.0),
    }


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("n_bytes", [0, 300, 1_000])
def test_a_full_disk_is_one_sentence_and_the_old_stays(tmp_path, monkeypatch, n_bytes):
    import resource

    monkeypatch.setattr("topicloom.reports.run._draw", lambda *_: None)
    writers = write_all(tmp_path)
    for writer in writers.values():
        writer()
    before = contents(tmp_path)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        for name, writer in writers.items():
            resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, limit[1]))  # no file can be larger
            try:
                with pytest.raises((OSError, tl.InputError)) as caught:
                    writer()
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limit)
            assert str(tmp_path / name) in str(caught.value), name
            assert "\n" not in str(caught.value)
            assert contents(tmp_path) == before
    finally:
        signal.signal(signal.SIGXFSZ, ignored)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_that_may_not_be_written_is_one_sentence(tmp_path):
    writers = write_all(tmp_path)
    for name in ("model", "corpus"):
        writers[name]()
    before = contents(tmp_path)
    tmp_path.chmod(0o500)
    try:
        for name in ("model", "corpus"):
            with pytest.raises(PermissionError, match=str(tmp_path / name)):
                writers[name]()
    finally:
        tmp_path.chmod(0o700)
    assert contents(tmp_path) == before


# A few operations that fail; `make soak-io` lets each of every command fail.


@pytest.mark.skipif(not faults.is_possible(), reason="needs seccomp's notifications")
def test_a_failed_operation_leaves_the_old_or_the_new(tmp_path):
    (tmp_path / "base").mkdir()
    faults.write_base(tmp_path / "base", run=False)
    said: list[str] = []
    counts = faults.Sweep("prepare", tmp_path / "base", said.append).run([3, 25, 45])
    assert counts.faults == 0, said
    assert counts.points > 2
    assert counts.refused > 1


# A few kills of commands that are then continued; `make soak-kill` makes more of them.

LESS = ("--jobs", "2")  # these commands need no workers here, which take time to start
SMALLER = {
    "tune": ["--trials", "3"],
    "compare": ["--seeds", "1", "--topics", "2", "--models", "gsm:epochs=1,lda:epochs=1"],
    "prepare": [],
}


@pytest.mark.skipif(not hasattr(os, "fork") or not os.path.isdir("/proc"), reason="forks, and reads /proc")
@pytest.mark.parametrize("name", SMALLER)  # test_runs.py kills the writing of a run
def test_a_kill_loses_no_finished_work_and_changes_no_result(name, tmp_path, monkeypatch):
    pytest.importorskip("optuna")
    command = kills.COMMANDS[name]
    arguments = [each for each in command.arguments if each not in LESS]
    arguments += SMALLER[name]
    monkeypatch.setitem(kills.COMMANDS, name, replace(command, arguments=arguments))
    kills.write_texts(tmp_path, n_many=3000)
    counts = kills.Soak(name, tmp_path, start=kills.forked).run(1)
    assert counts == kills.Counts(kills=1)
