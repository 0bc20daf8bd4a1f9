"""Resumable jobs: one that fails or dies costs no other, and processes find modules where this one does."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import textwrap
from functools import partial

import pytest

from topicloom.errors import InputError
from topicloom.experiments import jobs
from topicloom.processes import _Worker, described

WORK = """
import os, signal, time

def square(job):
    return {"square": job["n"] ** 2}

def fail(job):
    if job["n"] == 1:
        raise KeyError("name")
    if job["n"] == 2:
        raise MemoryError
    return square(job)

def interrupted(job):
    if job["n"] == 1:
        raise KeyboardInterrupt
    return square(job)

def die(job):
    if job["n"] == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if job["n"] == 2:
        os._exit(3)
    time.sleep(0.3)
    return square(job)

def die_once(job):
    if job["n"] == 1 and not os.path.exists("died"):
        open("died", "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return square(job)

def surroundings(job):
    return {"environment": dict(os.environ)}

class Hidden:
    def __reduce__(self):
        return eval, ("no_such_name",)

    def __call__(self, job):
        return square(job)
"""
JOBS = [{"n": n} for n in range(4)]


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A module in the current directory, which is not on the path of the worker processes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    (tmp_path / "work_of_a_test.py").write_text(textwrap.dedent(WORK))
    importlib.invalidate_caches()
    module = importlib.import_module("work_of_a_test")
    sys.path.remove(str(tmp_path))
    yield module
    del sys.modules["work_of_a_test"]


def done(work, tmp_path, n_jobs, file="rows.jsonl", **options):
    rows = list(jobs.run_jobs(JOBS, work, tmp_path / file, n_jobs, **options))
    return {row["n"]: row.get("square", row.get("error")) for row in rows}


def test_jobs_of_several_kinds_in_one_file(work, tmp_path):
    mixed = [{"n": 3}, {"n": 3, "corpus": "a"}, {"n": 3, "corpus": "b"}]
    file = tmp_path / "rows.jsonl"
    list(jobs.run_jobs(mixed[:2], work.square, file, 1))
    assert [row.get("corpus") for row in jobs.run_jobs(mixed, work.square, file, 1)] == ["b"]  # the others are done
    assert [row.get("corpus") for row in jobs.latest_rows(file, mixed)] == [None, "a", "b"]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_exception_is_a_row_with_an_error(work, tmp_path, n_jobs):
    found = done(work.fail, tmp_path, n_jobs)
    assert found == {0: 0, 1: "KeyError: 'name'", 2: "MemoryError: ", 3: 9}
    assert described(InputError("a  sentence")) == "a sentence"
    assert described(OSError(28, "No space left", "a.npy")) == "a.npy: No space left"
    assert done(work.square, tmp_path, 1) == {1: 1, 2: 4}  # errors are tried again


def test_a_job_that_was_interrupted_has_no_row(work, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        done(work.interrupted, tmp_path, 1)
    assert [row["n"] for row in jobs.read_rows(tmp_path / "rows.jsonl")] == [0]
    assert done(work.square, tmp_path, 1) == {1: 1, 2: 4, 3: 9}


def test_a_process_that_dies_costs_its_own_job_alone(work, tmp_path):
    found = done(work.die, tmp_path, 2)
    assert found == {0: 0, 1: "its process died (out of memory?)", 2: "its process died (exit code 3)", 3: 9}


def test_a_job_whose_process_died_is_done_again(work, tmp_path, caplog):
    assert done(work.die_once, tmp_path, 2) == {0: 0, 1: 1, 2: 4, 3: 9}
    assert caplog.messages == ["n 1: its process died (out of memory?); it is done again"]
    assert [row["n"] for row in jobs.read_rows(tmp_path / "rows.jsonl")].count(1) == 1


def test_processes_that_are_killed_before_their_first_job_are_replaced(work, tmp_path, monkeypatch):
    start, killed = _Worker.__init__, []

    def start_and_kill(self):
        start(self)
        if len(killed) < 2:
            killed.append(self.process.pid)
            os.kill(self.process.pid, signal.SIGKILL)

    monkeypatch.setattr("topicloom.processes._Worker.__init__", start_and_kill)
    assert done(work.square, tmp_path, 2) == {0: 0, 1: 1, 2: 4, 3: 9}
    assert len(killed) == 2


def test_workers_have_one_thread_and_the_environment_stays(work, tmp_path, monkeypatch):
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    before = dict(os.environ)
    for row in jobs.run_jobs(JOBS, work.surroundings, tmp_path / "rows.jsonl", 2):
        assert row["environment"]["OMP_NUM_THREADS"] == row["environment"]["MKL_NUM_THREADS"] == "1"
        assert row["environment"]["GOMP_SPINCOUNT"] == "3000"
        assert dict(os.environ) == before


def test_your_own_spin_count_stands(work, tmp_path, monkeypatch):
    monkeypatch.setenv("GOMP_SPINCOUNT", "7")
    row = next(jobs.run_jobs(JOBS, work.surroundings, tmp_path / "rows.jsonl", 2))
    assert row["environment"]["GOMP_SPINCOUNT"] == "7"


def test_what_cannot_be_sent_is_one_sentence(work, tmp_path):
    with pytest.raises(InputError, match=r"cannot be sent to worker processes.*generator.*n_jobs=1"):
        done(partial(work.square, file=(n for n in ())), tmp_path, 2)
    with pytest.raises(InputError, match=r"cannot be sent to worker processes.*no_such_name.*n_jobs=1"):
        done(work.Hidden(), tmp_path, 2)
    assert not jobs.read_rows(tmp_path / "rows.jsonl")


def test_a_result_that_is_gone_is_made_again(work, tmp_path):
    assert len(done(work.square, tmp_path, 1)) == 4
    assert done(work.square, tmp_path, 1) == {}
    assert done(work.square, tmp_path, 1, is_complete=lambda row: row["n"] != 2) == {2: 4}
    assert len(done(work.square, tmp_path, 1, again=True)) == 4


def test_a_script_needs_no_main_guard(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import pathlib\nfrom topicloom.experiments import jobs\n"
        "class Square:\n    def __call__(self, job):\n        return {'square': job['n'] ** 2}\n"
        f"rows = jobs.run_jobs([{{'n': 2}}, {{'n': 3}}], Square(), pathlib.Path({str(tmp_path / 'rows.jsonl')!r}), 2)\n"
        "print(sorted(row['square'] for row in rows))\n"
    )
    ended = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300)
    assert (ended.stdout, ended.stderr) == ("[4, 9]\n", "")
