"""What other systems do differently, imitated on this one: order of paths, locks, open files, a missing PyTorch."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from pathlib import Path, PurePath, PurePosixPath
from types import SimpleNamespace

import pytest

from forks import Fork, needs_fork
from topicloom.errors import InputError
from topicloom.experiments.compare import job_name
from topicloom.files import atomic_directory, lock_directory, writing
from topicloom.text import read

ROOT = Path(__file__).resolve().parents[1]
# As Microsoft lists them; they are reserved with any suffix.
RESERVED = {"con", "prn", "aux", "nul", *(f"{name}{number}" for name in ("com", "lpt") for number in range(1, 10))}


def test_files_of_folders_have_one_order_on_every_system(tmp_path, monkeypatch):
    names = ["B.txt", "a.txt", "a/b.txt", "a-b/c.txt", "C/d.txt"]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name, encoding="utf-8")
    wanted = [str(path.relative_to(tmp_path)) for path in sorted(map(tmp_path.joinpath, names))]
    monkeypatch.setattr(PurePath, "__lt__", lambda one, other: str(one).lower() < str(other).lower())
    assert [each.text for each in read(tmp_path)] == wanted == ["B.txt", "C/d.txt", "a/b.txt", "a-b/c.txt", "a.txt"]
    assert [each.text for each in read(tmp_path / "*.txt")] == ["B.txt", "a.txt"]


def test_a_directory_with_open_files_stays_as_it_was(tmp_path, monkeypatch):
    """Windows renames no directory in which a program has a file open."""

    def refuse(path: Path, target: Path) -> None:
        if Path(target).suffix == ".old":
            error = PermissionError(errno.EACCES, "The process cannot access the file", str(path))
            error.winerror = 32
            raise error
        os.replace(path, target)

    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mark").write_text("old", encoding="utf-8")
    monkeypatch.setattr(writing, "_renameat2", lambda: None)
    monkeypatch.setattr(Path, "replace", refuse)
    with (
        pytest.raises(InputError, match="run cannot be replaced, because a program has files in it open"),
        atomic_directory(tmp_path / "run", "mark", overwrite=True) as folder,
    ):
        (folder / "mark").write_text("new", encoding="utf-8")
    assert (tmp_path / "run" / "mark").read_text(encoding="utf-8") == "old"
    assert os.listdir(tmp_path) == ["run"]


@pytest.fixture
def locks_of_windows(monkeypatch):
    """No `fcntl` but `msvcrt`, which locks bytes from the position of an open file, and no removal of open files."""
    import fcntl

    def locking(handle: int, mode: int, n_bytes: int) -> None:
        start = os.lseek(handle, 0, os.SEEK_CUR)
        assert start > 1000, "nobody could read the name of the owner"
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB if mode else fcntl.LOCK_UN, n_bytes, start)
        except OSError:
            raise PermissionError(errno.EACCES, "Permission denied") from None

    def unlink(path: Path) -> None:
        for link in Path("/proc").glob("[0-9]*/fd/*"):
            try:
                is_open = os.readlink(link) == str(path)
            except OSError:  # a file that was closed since, or a process that has ended
                continue
            if is_open:
                raise PermissionError(errno.EACCES, "The process cannot access the file", str(path))
        os.unlink(path)

    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(LK_UNLCK=0, LK_NBLCK=2, locking=locking))
    monkeypatch.setattr(Path, "unlink", unlink)


@needs_fork
def test_one_process_writes_to_a_directory_on_windows(tmp_path, locks_of_windows):
    def hold() -> None:
        with lock_directory(tmp_path / "run"):
            print("locked", flush=True)
            time.sleep(60)

    holder = Fork(hold)
    assert holder.stdout.readline() == "locked\n"
    with (
        pytest.raises(InputError, match=f"run is being written by process {holder.pid} on .*; wait until it has"),
        lock_directory(tmp_path / "run"),
    ):
        pytest.fail("it is locked")
    holder.terminate()
    holder.output()
    assert os.listdir(tmp_path) == [".run.lock"]
    with lock_directory(tmp_path / "run"), (tmp_path / ".run.lock").open() as next_owner:
        assert next_owner.read().startswith(f"process {os.getpid()} on ")
    assert os.listdir(tmp_path) == []
    with lock_directory(tmp_path / "run"):
        next_owner = (tmp_path / ".run.lock").open()
    assert os.listdir(tmp_path) == [".run.lock"]  # it was not taken from the next owner
    next_owner.close()


def test_names_of_fits_differ_where_case_does_not_count():
    models = ["lda", "LDA", "Lda", "lda:method=gibbs", "lda:Method=gibbs", "lda-method-gibbs"]
    names = [job_name({"model": model, "n_topics": 5, "seed": 0}) for model in models]
    assert len({name.lower() for name in names}) == len(models)
    assert not any(set(name) & set('<>:"/\\|?*') for name in names)


def test_every_system_can_check_out_the_repository():
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    names = done.stdout.decode().split("\0")[:-1]
    if not names:
        pytest.skip("this is no repository")
    assert len({name.lower() for name in names}) == len(names)
    parts = {part for name in names for part in PurePosixPath(name).parts}
    assert not any(part.lower().partition(".")[0] in RESERVED or part[-1] in ". " for part in parts)
    assert not any(set(part) & set('<>:"\\|?*') for part in parts)
    assert max(map(len, names)) < 200  # Windows takes 259 characters, with the folder


READ_ALONE = """
import sys
sys.modules["torch"] = None
sys.argv = ["topicloom", "topics", sys.argv[1]]
from topicloom.cli import main
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended
import topicloom as tl
try:
    tl.GSM
except ImportError as error:
    print(error)
sys.argv = ["topicloom", "infer", sys.argv[2], "-"]
main()
"""


def test_runs_are_read_without_pytorch(tmp_path):
    run = ROOT / "tests" / "fixtures" / "1.0.0" / "run"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-c", READ_ALONE.replace("sys.argv[2]", repr(str(run))), str(run)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, input="cat\n")
    assert "cat" in done.stdout
    assert "`GSM` needs PyTorch: pip install torch" in done.stdout
    assert done.returncode == 2
    assert done.stderr.endswith("topicloom: error: this command needs PyTorch: pip install torch\n")
