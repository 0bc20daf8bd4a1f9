"""Campaigns: each target runs in a child process, whose crashes and hangs are found by its parent.

The child writes the number of each case to shared memory before it runs it. If the number stands still for too long,
the parent ends the child, notes a hang, and starts another child behind that case.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import logging
import mmap
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from topicloom.errors import InputError

from .case import Case

ROOT = Path(__file__).parents[2]
HANG = 60.0  # seconds for one case
MEMORY = 8 << 30  # bytes of address space for a child
_STATE = struct.Struct("qqqd")  # the number of the case, finished cases, checked inputs, seconds
_MEMORY_DISK = Path("/dev/shm")


@dataclass(frozen=True)
class Target:
    """What is fuzzed.

    Attributes:
        run: does one case; returns how many inputs it checked, each on its own. An InputError where the reference has
            no error, any other exception, and a failed assertion are faults.
        share: the share of the time of a campaign, in relation to other targets.
        counts: what counts as one input.
        allow_refusal: whether an InputError of any case is a right result, because there is no reference.
        needs: the optional packages without which it cannot run.
    """

    run: Callable[[Case], int]
    counts: str
    share: float = 1.0
    allow_refusal: bool = False
    needs: tuple[str, ...] = ()


@dataclass
class Result:
    """The result of a target."""

    cases: int = 0
    inputs: int = 0
    seconds: float = 0.0
    faults: list[dict[str, Any]] = field(default_factory=list)


def work(
    target: Target, name: str, seed: int, start: int, cases: int | None, seconds: float, state: Any, folder: Path
) -> None:
    """Run cases in this process, until `cases` are done or `seconds` are over, and print each fault as JSON."""
    quiet()
    begin = time.monotonic()
    number, done, inputs = start, 0, 0
    seen: dict[str, int] = {}
    while (cases is None or done < cases) and time.monotonic() - begin < seconds:
        state[:] = _STATE.pack(number, done, inputs, time.monotonic() - begin)
        fault, checked = one(target, Case(name, seed, number, folder))
        inputs += checked
        if fault is not None:
            place = fault["place"]
            seen[place] = seen.get(place, 0) + 1
            if seen[place] <= 3:
                print(json.dumps({"target": name, "seed": seed, "number": number, **fault}), flush=True)
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                os.unlink(entry.path)
        number, done = number + 1, done + 1
    state[:] = _STATE.pack(-1, done, inputs, time.monotonic() - begin)


def _spoilt(case: Case) -> int:
    """Crash, hang and fail, so that it can be tested that a campaign notices."""
    number = case.below(4)
    if number == 0:
        os.kill(os.getpid(), signal.SIGSEGV)
    if number == 1:
        time.sleep(60)
    assert number == 2, "a wrong result"
    return 1


SPOILT = Target(_spoilt, "a fault", 0)


def quiet() -> None:
    """Turn off logging and warnings, which hostile input causes by the million."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")


def one(target: Target, case: Case) -> tuple[dict[str, str] | None, int]:
    """Run one case. Return its fault, if any, and the number of inputs that it checked."""
    try:
        return None, target.run(case)
    except InputError as error:
        if target.allow_refusal:
            message = str(error)
            if message and "\n" not in message and len(message) < 2000:
                return None, 1
        return _fault(error), 1
    except Exception as error:
        return _fault(error), 1


def _fault(error: Exception) -> dict[str, str]:
    frames = traceback.extract_tb(error.__traceback__)
    inner = next((frame for frame in reversed(frames) if "/topicloom/" in frame.filename), frames[-1])
    place = f"{type(error).__name__} {Path(inner.filename).name}:{inner.lineno}"
    last = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}"
    return {"place": f"{place} ({last})", "message": f"{error}"[:500].encode("utf-8", "backslashreplace").decode()}


def child(target: Target, name: str, seed: int, start: int, cases: int | None, seconds: float, path: str) -> None:
    """The main function of a child process."""
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), _STATE.size) as state:
        folder = Path(path).with_name("work")
        folder.mkdir(exist_ok=True)
        work(target, name, seed, start, cases, seconds, state, folder)
    gc.collect()


def watch(name: str, seed: int, cases: int | None, seconds: float, hang: float = HANG, start: int = 0) -> Result:
    """Run a target in child processes."""
    result = Result()
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(dir=_MEMORY_DISK if _MEMORY_DISK.is_dir() else None) as folder:
        path, out, errors = Path(folder, "state"), Path(folder, "out"), Path(folder, "errors")
        while True:
            left = end - time.monotonic()
            todo = None if cases is None else cases - result.cases
            if left <= 0 or (todo is not None and todo <= 0):
                return result
            path.write_bytes(_STATE.pack(start, -1, 0, 0.0))
            command = [sys.executable, "-m", "tests.fuzz", "--child", name, "--seed", str(seed), "--start", str(start)]
            command += ["--seconds", str(left), "--state", str(path), *([] if todo is None else ["--cases", str(todo)])]
            with out.open("wb") as stdout, errors.open("wb") as stderr:
                process = subprocess.Popen(command, cwd=ROOT, stdout=stdout, stderr=stderr, stdin=subprocess.DEVNULL)
                try:
                    hung = _wait(process, path, hang)
                finally:
                    process.kill()
                    process.wait()
            number, done, inputs, spent = _STATE.unpack(path.read_bytes())
            result.cases += max(done, 0)
            result.inputs += inputs
            result.seconds += spent
            result.faults += [json.loads(line) for line in out.read_text().splitlines()]
            if number == -1 and process.returncode == 0:
                return result
            place = "hang" if hung else f"ended with {process.returncode}"
            tail = errors.read_text(errors="replace")[-1500:]
            result.faults.append({"target": name, "seed": seed, "number": number, "place": place, "message": tail})
            if number == -1:  # a crash after the last case, as damaged memory causes
                return result
            result.cases += 1
            start = number + 1


def _wait(process: subprocess.Popen[bytes], path: Path, hang: float) -> bool:
    """Wait for a child; return whether it hung."""
    first = path.read_bytes()
    last, since = first, time.monotonic()
    while True:
        try:
            process.wait(0.2)
            return False
        except subprocess.TimeoutExpired:
            number = path.read_bytes()
            if number != last:
                last, since = number, time.monotonic()
            elif time.monotonic() - since > (max(hang, HANG) if number == first else hang):  # it imports much at first
                return True


def as_json(results: dict[str, Result]) -> str:
    return json.dumps({name: asdict(result) for name, result in results.items()}, indent=1)
