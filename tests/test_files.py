"""Files and directories are written whole or not at all, and damaged ones are refused with a clear message."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from safetensors import SafetensorError

import topicloom as tl
from topicloom.corpus import Corpus
from topicloom.corpus.storage import read_manifest
from topicloom.errors import InputError, ModelFileError
from topicloom.files import (
    atomic_directory,
    atomic_file,
    lock_directory,
    read_json,
    read_lines,
    read_whole,
    require_free,
    write_json,
    write_lines,
    write_manifest,
    writing,
)
from topicloom.models import GSM, model_class
from topicloom.models.loading import load, read_config
from topicloom.text.strings import write_array

pytestmark = pytest.mark.syncs

TEXTS = ["red-green", "green-blue", "blue-red-red", "green"] * 3


SOURCE = str(Path(__file__).resolve().parents[1] / "src")


class Cut(Exception):
    """Ends a writer in the middle."""


def write_half(path: Path) -> None:
    path.write_text("half")
    raise Cut


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# One file.


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "new" / "a.txt"
    for text in ("old", "new"):
        with atomic_file(path) as temporary:
            temporary.write_text(text)
            assert not path.exists() or path.read_text() == "old"
    assert path.read_text() == "new"
    assert names(path.parent) == ["a.txt"]


@pytest.mark.parametrize("size", [1, 400, 5000])
def test_an_array_that_does_not_fit_is_noticed(size, tmp_path):
    """NumPy itself loses the last bytes of an array without a word: it ignores the error of closing its file."""
    import io

    class Full(io.RawIOBase):
        def writable(self) -> bool:
            return True

        def write(self, part: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left"):  # noqa: PT012  # which call fails depends on the size
        file = io.BufferedWriter(Full())
        write_array(file, np.arange(size))
        file.flush()
    write_array(tmp_path / "array.npy", np.arange(size))
    np.save(tmp_path / "numpy.npy", np.arange(size))
    assert (tmp_path / "array.npy").read_bytes() == (tmp_path / "numpy.npy").read_bytes()


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(Cut), atomic_file(path) as temporary:
        write_half(temporary)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_files_can_be_read_by_whom_the_umask_lets(tmp_path):
    plain = tmp_path / "plain"
    plain.touch()
    write_json(tmp_path / "a.json", {})
    assert (tmp_path / "a.json").stat().st_mode == plain.stat().st_mode


def in_another_process(script: str, folder: Path) -> subprocess.Popen[str]:
    """Start a process in `folder` that has imported topicloom.files, and wait for its first line."""
    process = subprocess.Popen(
        [sys.executable, "-c", f"import os; from pathlib import Path; from topicloom.files import *\n{script}"],
        cwd=folder, env=os.environ | {"PYTHONPATH": SOURCE}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    process.stdout.readline()
    return process


def test_a_link_to_a_file_stays_a_link(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "a.txt").symlink_to(tmp_path / "disk" / "b.txt")
    for text in ("old", "new"):  # at first the link points to nothing
        with atomic_file(tmp_path / "a.txt") as temporary:
            temporary.write_text(text)
    assert (tmp_path / "a.txt").is_symlink()
    assert (tmp_path / "disk" / "b.txt").read_text() == "new"
    assert names(tmp_path / "disk") == ["b.txt"]


def test_a_full_disk_is_an_error_naming_the_file(tmp_path):
    full = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(OSError, match=r"a\.txt") as caught, atomic_file(tmp_path / "a.txt"):
        raise full
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(tmp_path / "a.txt"))
    with pytest.raises(OSError, match="model") as caught, atomic_directory(tmp_path / "model", "mark"):
        raise full
    assert caught.value.filename == str(tmp_path / "model")
    with pytest.raises(OSError, match=r"No space left.*a\.npy"), atomic_file(tmp_path / "a.npy"):
        raise OSError("4001 requested and 2032 written")  # as NumPy says it
    with pytest.raises(OSError, match="absent") as caught, atomic_directory(tmp_path / "model", "mark") as folder:
        (folder / "absent").read_text()
    assert caught.value.filename == str(tmp_path / "model" / "absent")
    with pytest.raises(OSError, match="No space") as caught, atomic_directory(tmp_path / "model", "mark") as folder:
        raise OSError(full.errno, full.strerror, str(tmp_path / "source"), None, str(folder / "copy"))  # as shutil does
    assert caught.value.filename == str(tmp_path / "model" / "copy")
    assert names(tmp_path) == []


def test_a_probe_that_cannot_be_removed_is_removed_later(tmp_path, monkeypatch):
    def broken(path):
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rmdir", broken)
        writing.require_writable(tmp_path / "run")
    assert len(names(tmp_path)) == 1
    monkeypatch.setattr(writing, "_marks_here", set())  # as in another process
    with atomic_directory(tmp_path / "run", "mark"):
        pass
    assert names(tmp_path) == ["run"]


def test_an_error_of_an_inner_writer_names_the_outer_place(tmp_path):
    with pytest.raises(InputError) as caught, atomic_directory(tmp_path / "run", "mark") as folder:
        raise InputError(f"{folder / 'model'} cannot be written")
    assert str(caught.value) == f"{tmp_path / 'run' / 'model'} cannot be written"


def test_another_error_of_reading_is_not_blamed_on_the_file(tmp_path):
    with pytest.raises(FileNotFoundError) as caught, atomic_file(tmp_path / "a.txt"):
        (tmp_path / "source").read_text()
    assert caught.value.filename == str(tmp_path / "source")


# A directory; it is one of ours if it holds "mark".


@pytest.fixture
def ours(tmp_path) -> Path:
    """A directory as it was written before."""
    path = tmp_path / "model"
    with atomic_directory(path, "mark") as folder:
        (folder / "mark").write_text("old")
    return path


def test_a_directory_is_replaced_whole(ours):
    with atomic_directory(ours, "mark", overwrite=True) as folder:
        (folder / "other").touch()
        assert (ours / "mark").read_text() == "old"
    assert names(ours) == ["other"]
    assert names(ours.parent) == ["model"]


def test_a_failed_write_leaves_the_old_directory(ours):
    with pytest.raises(Cut), atomic_directory(ours, "mark", overwrite=True) as folder:
        write_half(folder / "mark")
    assert (ours / "mark").read_text() == "old"
    assert names(ours.parent) == ["model"]


def test_an_empty_directory_is_free(tmp_path):
    with atomic_directory(tmp_path, "mark") as folder:
        (folder / "mark").touch()
    assert names(tmp_path) == ["mark"]


def test_what_is_there_is_not_overwritten_unasked(ours):
    with pytest.raises(InputError, match="model already holds files"), atomic_directory(ours, "mark"):
        pytest.fail("it was begun all the same")
    require_free(ours, "mark", overwrite=True)


@pytest.mark.parametrize("overwrite", [False, True])
def test_what_is_not_ours_is_never_overwritten(ours, overwrite):
    with pytest.raises(InputError, match="model"):
        require_free(ours, "another mark", overwrite)
    with pytest.raises(InputError, match="mark is a file"):
        require_free(ours / "mark", "mark", overwrite)


def test_a_directory_is_under_its_name_at_any_time(ours, monkeypatch):
    """The two renames that other systems need would leave a moment without it."""
    if sys.platform != "linux":
        pytest.skip("only Linux exchanges directories")
    rename = Path.replace

    def replace(self, target):
        moved = rename(self, target)
        assert (ours / "mark").is_file()
        return moved

    monkeypatch.setattr(Path, "replace", replace)
    with atomic_directory(ours, "mark", overwrite=True) as folder:
        (folder / "mark").write_text("new")
    assert (ours / "mark").read_text() == "new"
    assert names(ours.parent) == ["model"]


def test_a_directory_is_replaced_where_the_system_cannot_exchange(ours, monkeypatch):
    monkeypatch.setattr("topicloom.files.writing.exchange", lambda one, other: False)
    test_a_directory_is_replaced_whole(ours)


def test_a_link_to_a_directory_stays_a_link(ours):
    link = ours.with_name("link")
    link.symlink_to("model")
    with atomic_directory(link, "mark", overwrite=True) as folder:
        (folder / "mark").write_text("new")
    assert link.is_symlink()
    assert (ours / "mark").read_text() == "new"
    assert names(ours.parent) == ["link", "model"]


def test_what_another_process_wrote_in_the_meantime_stays(tmp_path):
    path = tmp_path / "model"

    def write(text: str) -> None:
        with atomic_directory(path, "mark") as folder:
            (folder / "mark").write_text(text)
            if text == "second":
                write("first")

    with pytest.raises(InputError, match="in the meantime"):
        write("second")
    assert (path / "mark").read_text() == "first"
    assert names(tmp_path) == ["model"]


def test_what_remains_of_an_earlier_directory_is_overwritten(ours):
    (ours / "mark").rename(ours / "weights")
    with pytest.raises(InputError, match="holds other files"):
        require_free(ours, "mark", overwrite=True)
    with pytest.raises(InputError, match="already holds files"):
        require_free(ours, "mark", known={"mark", "weights"})
    with atomic_directory(ours, "mark", overwrite=True, known={"mark", "weights"}) as folder:
        (folder / "mark").touch()
    assert names(ours) == ["mark"]
    (ours / "mark").rename(ours / "diary")
    with pytest.raises(InputError, match="holds other files"):
        require_free(ours, "mark", overwrite=True, known={"mark", "weights"})


KILLED = """
with atomic_directory(Path("model"), "mark", overwrite=True) as folder, atomic_file(Path("a.txt")) as file:
    (folder / "mark").touch()
    print("begun", flush=True)
    os.kill(os.getpid(), 9)
"""


def test_the_next_write_removes_leftovers_of_a_killed_process(ours):
    folder = ours.parent
    (folder / ".model.backup").mkdir()  # not ours
    in_another_process(KILLED, folder).wait()
    assert len(names(folder)) == 4
    with atomic_file(folder / "a.txt"), atomic_directory(ours, "mark", overwrite=True) as new:
        (new / "mark").touch()
        assert len(names(folder)) == 4
        with suppress(Cut), atomic_directory(ours, "mark", overwrite=True):
            assert new.is_dir()  # another thread's, which goes on
            raise Cut
    assert names(folder) == [".model.backup", "a.txt", "model"]


def test_leftovers_of_another_machine_are_given_a_day(ours):
    path = ours.parent / "a.txt"
    leftover = path.with_name(".a.txt.ffffff-1-00000000.txt")
    for age, stays in ((0, True), (90_000, False)):
        leftover.touch()
        os.utime(leftover, (leftover.stat().st_atime - age,) * 2)
        with atomic_file(path):
            assert leftover.exists() == stays


def test_machines_of_one_image_leave_each_others_files(ours, monkeypatch):
    """Clones share their host name. A process of one is not among those of the other, and may be alive all the same."""
    path = ours.parent / "a.txt"
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    for boot in ("1", "2"):
        (ours.parent / f"boot{boot}").write_text(f"0000-{boot}\n")

    def on_machine(number):
        monkeypatch.setattr(writing, "_LINUX_BOOT_ID", ours.parent / f"boot{number}")
        writing._machine.cache_clear()

    on_machine(1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: ended.pid)
        live = writing.temporary_name(path)
    live.touch()
    for number, stays in ((2, True), (1, False)):
        on_machine(number)
        with atomic_file(path):
            assert live.exists() == stays
    writing._machine.cache_clear()


def test_leftovers_are_removed_though_their_process_id_is_reused(ours):
    # In containers the first process has the number 1, also after a new start.
    path = ours.parent / "a.txt"
    with atomic_file(path) as temporary:
        machine = temporary.name.split(".")[3].split("-")[0]
        leftover = path.with_name(f".a.txt.{machine}-{os.getpid()}-00000000.txt")
        leftover.touch()
        with atomic_file(path) as other:
            assert not leftover.exists()
            assert temporary.exists()  # of this process
            assert other.exists()
    assert names(ours.parent) == ["a.txt", "model"]


CUT_BETWEEN_TWO_RENAMES = """
import topicloom.files.writing
topicloom.files.writing.exchange = lambda one, other: False
rename = Path.replace
def replace(self, target):
    rename(self, target)
    print("moved", flush=True)
    os.kill(os.getpid(), 9)
Path.replace = replace
with atomic_directory(Path("model"), "mark", overwrite=True) as folder:
    (folder / "mark").touch()
"""


def test_a_directory_moved_aside_by_a_kill_is_put_back(ours):
    in_another_process(CUT_BETWEEN_TWO_RENAMES, ours.parent).wait()
    assert not ours.exists()
    with pytest.raises(InputError, match="already holds files"), atomic_directory(ours, "mark"):
        pass
    assert (ours / "mark").read_text() == "old"
    assert names(ours.parent) == ["model"]


# One writer at a time.

HOLDS = 'with lock_directory("run"):\n    print("locked", flush=True)\n    input()'


@pytest.mark.skipif(sys.platform == "win32", reason="needs locks of POSIX")
def test_one_process_at_a_time_writes_to_a_directory(tmp_path):
    process = in_another_process(HOLDS, tmp_path)
    (tmp_path / "link").symlink_to("run")
    for name in ("run", "link"):
        said = f"{name} is being written by process {process.pid} on"
        with pytest.raises(InputError, match=said), lock_directory(tmp_path / name):
            pytest.fail("it is locked")
    process.communicate("\n")
    with lock_directory(tmp_path / "run"):
        assert names(tmp_path) == [".run.lock", "link"]
    assert names(tmp_path) == ["link"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs locks of POSIX")
def test_the_lock_of_a_killed_process_does_not_block(tmp_path):
    process = in_another_process(HOLDS, tmp_path)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert names(tmp_path) == [".run.lock"]
    with lock_directory(tmp_path / "run"):
        pass
    assert names(tmp_path) == []


@pytest.mark.parametrize("has_locks", [True, False])  # of the system; Windows has none of this kind
def test_one_thread_at_a_time_writes_to_a_directory(tmp_path, monkeypatch, has_locks):
    if not has_locks:
        monkeypatch.setitem(sys.modules, "fcntl", None)
    refused = []

    def write():
        try:
            with lock_directory(tmp_path / "run"):
                pass
        except InputError as error:
            refused.append(str(error))

    with lock_directory(tmp_path / "run"):
        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
    write()
    assert len(refused) == 1
    assert "by another thread of this process" in refused[0]


def test_a_directory_that_cannot_have_a_lock_is_written_without(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with lock_directory(tmp_path / "run"):
        assert names(tmp_path) == []


# JSON and lines.


def test_json_round_trip(tmp_path):
    value = {"词": [1, 2.5, None], "é": "\u2028"}
    write_json(tmp_path / "a.json", value)
    assert read_json(tmp_path / "a.json") == value
    assert "词" in (tmp_path / "a.json").read_text(encoding="utf-8")


def test_a_lone_surrogate_is_written_as_an_escape(tmp_path):
    value = {"a\ud800b": ["\udfff", "词"]}  # as names of files that are not UTF-8 have them
    write_json(tmp_path / "a.json", value)
    assert read_json(tmp_path / "a.json") == value


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_json_has_no_word_for(tmp_path, value):
    write_json(tmp_path / "a.json", 1)
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "a.json", [value])
    assert read_json(tmp_path / "a.json") == 1
    assert names(tmp_path) == ["a.json"]


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b"", b"[" * 100_000, b"9" * 5_000], ids=lambda x: str(x[:2]))
def test_unreadable_json_is_named(tmp_path, content):
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(InputError, match=r"a\.json is not readable JSON"):
        read_json(tmp_path / "a.json")


def test_absent_json_is_named(tmp_path):
    with pytest.raises(InputError, match=r"b\.json does not exist"):
        read_json(tmp_path / "b.json")


@pytest.mark.parametrize("lines", [[], ["a"], ["a", "", "b"], ["\u2028", "\x0b", "\x85"]], ids=repr)
def test_lines_round_trip(tmp_path, lines):
    write_lines(tmp_path / "a.txt", lines)
    assert read_lines(tmp_path / "a.txt") == lines


@pytest.mark.parametrize(("line", "why"), [("a\nb", "line break"), ("a\rb", "line break"), ("a\ud800", "Unicode")])
def test_a_line_that_cannot_be_read_back_is_refused(tmp_path, line, why):
    with pytest.raises(InputError, match=rf"entry 1 of .*a\.txt .*{why}"):
        write_lines(tmp_path / "a.txt", ["whole", line])
    assert names(tmp_path) == []


# Saved models.


def hyphens(text: str) -> list[str]:
    return text.split("-")


@pytest.fixture(scope="module")
def model() -> GSM:
    corpus = Corpus.from_texts(TEXTS, tokenizer=hyphens, min_df=1, max_df=1.0)
    return GSM(2, epochs=2, random_state=0, device="cpu").fit(corpus)


@pytest.fixture
def saved(model, tmp_path) -> Path:
    model.save(tmp_path / "model")
    return tmp_path / "model"


def edit(file: Path, **changes: object) -> None:
    content = json.loads(file.read_text()) | changes
    write_manifest(file, content, content["sha256"].keys() - {file.name})


def cut_short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


DAMAGE = {
    "no config": (lambda folder: (folder / "config.json").unlink(), "no saved model"),
    "no folder": (lambda folder: folder.rename(folder.with_name("elsewhere")), "does not exist; check the path"),
    "newer": (lambda folder: edit(folder / "config.json", format_version=99), "newer version of topicloom"),
    "not JSON": (lambda folder: cut_short(folder / "config.json"), "not readable JSON"),
    "not a dict": (lambda folder: (folder / "config.json").write_text("[]"), "damaged"),
    "settings lost": (lambda folder: (folder / "config.json").write_text('{"format_version": 1}'), "damaged"),
    "another form": (lambda folder: edit(folder / "config.json", history={}), r"form .*'history' is \{\}.*another ver"),
    "newer meaning": (lambda folder: edit(folder / "config.json", model_format=2), "newer version of topicloom"),
    "older meaning": (
        lambda folder: edit(folder / "config.json", model_format=0),
        "GSM had format 0, and has format 1",
    ),
    "unknown setting": (lambda folder: edit(folder / "config.json", settings={"n_topics": 2, "mood": 1}), "'mood'"),
    "unknown model": (lambda folder: edit(folder / "config.json", model="GSN"), "no model 'GSN'; did you mean gsm"),
    "weights cut": (lambda folder: cut_short(folder / "model.safetensors"), "damaged"),
    "weights lost": (lambda folder: (folder / "model.safetensors").unlink(), "is missing"),
    "other shapes": (
        lambda folder: edit(folder / "config.json", settings={"n_topics": 3}),
        "another version of topicloom wrote it",
    ),
    "words lost": (lambda folder: (folder / "vocabulary.txt").unlink(), "is missing"),
    "a word too few": (lambda folder: (folder / "vocabulary.txt").write_text("red\ngreen\n"), "damaged"),
    "words not text": (lambda folder: (folder / "vocabulary.txt").write_bytes(b"\xff\n"), "damaged"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_model_is_refused_in_a_sentence(saved, kind):
    damage, said = DAMAGE[kind]
    damage(saved)
    with pytest.raises(ModelFileError, match=said) as caught:
        load(saved)
    assert "\n" not in str(caught.value)
    assert str(saved.parent) in str(caught.value) or kind.startswith("unknown")


def test_saving_twice_asks_first(model, saved):
    with pytest.raises(InputError, match="already holds files"):
        model.save(saved)
    model.save(saved, overwrite=True)
    assert load(saved).vocabulary_ == model.vocabulary_


def test_a_failed_save_leaves_the_old_model(model, saved, monkeypatch):
    before = {name: (saved / name).read_bytes() for name in names(saved)}
    monkeypatch.setattr(model, "history_", [{"loss": float("nan")}])
    with pytest.raises(ValueError, match="JSON"):
        model.save(saved, overwrite=True)
    assert {name: (saved / name).read_bytes() for name in names(saved)} == before


def test_what_remains_of_a_saved_model_is_overwritten(model, saved):
    (saved / "config.json").unlink()
    model.save(saved, overwrite=True)
    assert load(saved).vocabulary_ == model.vocabulary_


def test_a_model_too_large_for_the_disk_is_one_sentence(model, tmp_path, monkeypatch):
    def fail(*_):
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("topicloom.models.saving.save_file", fail)
    with pytest.raises(InputError, match=r"model cannot be written: .*No space left") as caught:
        model.save(tmp_path / "model")
    assert "\n" not in str(caught.value)
    assert names(tmp_path) == []


def test_your_own_tokenizer_is_given_again(model, saved):
    again = load(saved, device="cpu")
    with pytest.raises(InputError, match="tokenizer"):
        again.transform(TEXTS)
    np.testing.assert_array_equal(load(saved, tokenizer=hyphens, device="cpu").transform(TEXTS), model.transform(TEXTS))


def test_a_run_directory_holds_a_model(saved):
    assert load(saved.parent).vocabulary_ == load(saved).vocabulary_


def test_models_by_name():
    assert model_class("gsm") is model_class("GSM") is GSM


def test_what_is_replaced_during_reading_is_read_again(tmp_path, monkeypatch):
    corpora = [tl.Corpus.from_counts([[1, 2, 3], [3, 2, 1]] * n, ["a", "b", "c"]) for n in (5, 7)]
    models = [tl.GSM(k, epochs=1, hidden_size=8, random_state=0).fit(corpora[0]) for k in (2, 3)]
    models[0].save(tmp_path / "model")
    corpora[0].save(tmp_path / "corpus")
    once = iter([0])

    def replaced(read, new, place):
        def reading(*arguments, **options):
            found = read(*arguments, **options)
            for _ in once:
                new.save(tmp_path / place, overwrite=True)
            return found

        return reading

    monkeypatch.setattr("topicloom.models.loading.read_config", replaced(read_config, models[1], "model"))
    assert tl.load(tmp_path / "model").n_topics == 3
    once = iter([0])
    monkeypatch.setattr("topicloom.corpus.storage.read_manifest", replaced(read_manifest, corpora[1], "corpus"))
    assert tl.Corpus.load(tmp_path / "corpus").n_docs == 14


def test_reading_gives_up_on_what_is_replaced_endlessly(tmp_path):
    manifest, numbers = tmp_path / "config.json", count()

    def read():
        manifest.write_text("x" * next(numbers))
        os.utime(manifest, ns=(0, next(numbers)))
        raise InputError("damaged")

    with pytest.raises(InputError, match="damaged"):
        read_whole([manifest], read)
    assert next(numbers) < 20
    with pytest.raises(InputError, match="as it is"):
        read_whole([manifest], lambda: (_ for _ in ()).throw(InputError("as it is")))
