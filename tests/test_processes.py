"""Processes that die: workers that are killed, workers whose parent is killed, and writers on a full disk."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from multiprocessing import Pipe
from pathlib import Path

import pytest

import topicloom as tl
from soak.kills import living
from topicloom.errors import InputError
from topicloom.processes import LocalPool

SOURCE = str(Path(tl.__file__).parents[1])
TEXTS = [f"w{n % 13} v{n % 5} u{n}" for n in range(60)]
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, or mounts a file system")


def start(*arguments: str | Path, folder: Path) -> subprocess.Popen[str]:
    """Start a command of the command line in a session of its own."""
    script = "import sys; from topicloom.cli import app; app(sys.argv[1:])"
    command, path = [sys.executable, "-c", script, *map(str, arguments)], f"{SOURCE}{os.pathsep}{folder}"
    return subprocess.Popen(
        command, cwd=folder, text=True, start_new_session=True, env=os.environ | {"PYTHONPATH": path},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


@pytest.fixture
def chunks_of_seven(monkeypatch):
    monkeypatch.setattr("topicloom.text.counting._CHUNK_DOCUMENTS", 7)


def dies(marker: str | None):
    """A tokenizer that kills its process at one text: once if there is a marker, otherwise always."""
    parent = os.getpid()

    def tokenize(text: str) -> list[str]:
        if text == TEXTS[30] and os.getpid() != parent and not (marker and os.path.exists(marker)):
            if marker:
                open(marker, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return text.split()

    return tokenize


@pytest.mark.skipif(os.name == "nt", reason="needs signals of POSIX")
def test_documents_whose_worker_was_killed_are_counted_again(chunks_of_seven, tmp_path, caplog):
    alone = tl.Corpus.from_texts(TEXTS, min_df=1, tokenizer=dies(None), n_jobs=1)
    found = tl.Corpus.from_texts(TEXTS, min_df=1, tokenizer=dies(str(tmp_path / "died")), n_jobs=2)
    assert found.vocabulary == alone.vocabulary
    assert (found.counts != alone.counts).nnz == 0
    message = r"documents \d+ to \d+: its process died \(out of memory\?\); it is done again"
    assert re.search(message, caplog.text)


@pytest.mark.skipif(os.name == "nt", reason="needs signals of POSIX")
def test_workers_that_die_again_and_again_are_one_sentence(chunks_of_seven):
    with pytest.raises(InputError, match=r"documents \d+ to \d+ died 3 times \(out of memory\?\); use `n_jobs=1`"):
        tl.Corpus.from_texts(TEXTS, min_df=1, tokenizer=dies(None), n_jobs=2)


@pytest.mark.skipif(os.name == "nt", reason="copies a file descriptor")
def test_a_dead_worker_whose_connection_stays_open_is_noticed(monkeypatch):
    copies = []

    def pipe():
        ours, theirs = Pipe()
        copies.append(os.dup(theirs.fileno()))
        return ours, theirs

    monkeypatch.setattr("topicloom.processes.Pipe", pipe)
    with LocalPool(os._exit, str, 1) as pool:
        pool.begin("ends", 7)
        assert pool.next()[1].cause == "its process died (exit code 7)"
    for copy in copies:
        os.close(copy)


class TwoWords(Exception):
    """An error that cannot be unpickled, because its constructor takes other arguments."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(f"{one} and {other}")


def raises_two_words() -> None:
    raise TwoWords("salt", "pepper")


def test_an_error_that_cannot_be_unpickled_keeps_its_message():
    with LocalPool(raises_two_words, str, 1) as pool:
        pool.begin("fails")
        with pytest.raises(RuntimeError) as raised:
            pool.next()
    assert str(raised.value) == "TwoWords: salt and pepper"
    assert "raises_two_words" in raised.value.__notes__[0]


def test_idle_workers_are_not_used_in_another_directory(tmp_path, monkeypatch):
    places = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        with LocalPool(os.getcwd, str, 1, short_calls=True) as pool:
            pool.begin(name)
            places.append(pool.next()[1])
    assert places == [str(tmp_path / "one"), str(tmp_path / "other")]


@LINUX
@pytest.mark.parametrize("number", [getattr(signal, "SIGKILL", signal.SIGTERM), signal.SIGINT])
def test_workers_end_with_the_process_that_started_them(number, tmp_path):
    (tmp_path / "slow.py").write_text(
        "import os, time\n\ndef words(text):\n    open(f'began-{os.getpid()}', 'w').close()\n    time.sleep(60)\n"
    )
    (tmp_path / "texts.txt").write_text("a b\n" * 50_000)  # a chunk for each worker
    arguments = ["--out", "corpus", "--jobs", "2", "--tokenizer", "slow:words", "--quiet"]
    process = start("prepare", "texts.txt", *arguments, folder=tmp_path)
    try:
        deadline = time.monotonic() + 60
        while len(list(tmp_path.glob("began-*"))) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(list(tmp_path.glob("began-*"))) == 2
        assert len(living(process.pid)) >= 3
        process.send_signal(number)
        said = process.communicate(timeout=30)[1]
        deadline = time.monotonic() + 15
        while living(process.pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert living(process.pid) == []
    finally:
        for each in living(process.pid):
            os.kill(each, signal.SIGKILL)
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    assert number != signal.SIGINT or said == "topicloom: error: interrupted\n"
    assert not (tmp_path / "corpus").exists()


@LINUX
def test_prepare_on_a_full_disk_fails_clearly_and_leaves_nothing(tmp_path):
    """The corpus fits in none of these disks. At some of them it is the arrays of counts that are too large."""
    unshare = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = f"mount -t tmpfs -o size={{}}k tmpfs {disk}"
    if shutil.which("unshare") is None or subprocess.run([*unshare, "sh", "-c", mount.format(100)]).returncode:
        pytest.skip("a small disk cannot be mounted here")
    texts = tmp_path / "texts.csv"
    rows = (" ".join(f"w{(7 * n + i * i) % 997}" for i in range(60)) for n in range(1000))
    texts.write_text("text,timestamp\n" + "".join(f"{row},2020-01-01\n" for row in rows))
    prepare = f"{sys.executable} -m topicloom prepare {texts} --out {disk}/corpus --jobs 1 --min-df 1 --quiet"
    for size in (500, 900):
        command = f"{mount.format(size)} && ({prepare}; echo ended with $?; ls -A {disk})"
        environment = os.environ | {"PYTHONPATH": SOURCE}
        found = subprocess.run([*unshare, "sh", "-c", command], capture_output=True, text=True, env=environment)
        assert found.stdout == "ended with 2\n"
        assert found.stderr == f"topicloom: error: {disk}/corpus: No space left on device\n"
