"""Copies of the test process that work by themselves. A new process would import for seconds first."""

from __future__ import annotations

import ctypes
import io
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

FORKS = sys.platform == "linux"  # elsewhere, libraries may not work in a copy
needs_fork = pytest.mark.skipif(not FORKS, reason="needs Linux, whose processes can be copied with their libraries")

_END_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux


class Fork:
    """A process that calls a function and ends, with as much of the interface of `subprocess.Popen` as tests need.

    Args:
        function: what it does. Its exit code is that of a `SystemExit`, 1 after another exception, and 0 otherwise.
        encoding: that of its standard output and standard error.
        environment: variables that are set in it.
    """

    def __init__(self, function: Callable[[], object], encoding: str = "utf-8", **environment: str) -> None:
        pipes = [os.pipe(), os.pipe()]
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            ctypes.CDLL(None).prctl(_END_WITH_PARENT, signal.SIGKILL)  # also if a test fails before it ends the process
            os.environ.update(environment)
            for number, (_, writing) in enumerate(pipes, 1):
                os.dup2(writing, number)
            sys.stdin = io.StringIO()
            sys.stdout = io.TextIOWrapper(io.FileIO(1, "w"), encoding, line_buffering=True)
            sys.stderr = io.TextIOWrapper(io.FileIO(2, "w"), encoding, "backslashreplace", line_buffering=True)
            _end_with(function)
        for _, writing in pipes:
            os.close(writing)
        self.stdout, self.stderr = (io.TextIOWrapper(io.FileIO(reading), encoding) for reading, _ in pipes)

    def poll(self) -> int | None:
        """Return the exit code, or None while it works."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float = 60) -> int:
        """Return the exit code. A process that works longer is killed."""
        until = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > until:
                self.send_signal(signal.SIGKILL)
            time.sleep(0.005)
        return code

    def output(self) -> tuple[int, str, str]:
        """Return the exit code, and what it wrote to standard output and to standard error, which is little."""
        with self.stdout, self.stderr:
            written = self.stdout.read(), self.stderr.read()
        return self.wait(), *written

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)


def _end_with(function: Callable[[], object]) -> NoReturn:
    code = 1
    try:
        function()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


def run_command(*arguments: object) -> None:
    """Do what the program does with these arguments, and end the process. It is for a `Fork`."""
    from topicloom.cli import main

    sys.argv = ["topicloom", *map(str, arguments)]
    main()


def serve(run: Path, *options: str, modules: Path | None = None) -> tuple[Fork | subprocess.Popen[str], str]:
    """Start the service of a run on a free port, and return its process and its address.

    Args:
        run: the run.
        *options: further arguments of the command `serve`.
        modules: a folder that the process imports from.
    """
    import uvicorn  # noqa: F401  # so that the process need not import it

    import topicloom.service.app  # noqa: F401

    def serving() -> None:
        sys.path[:0] = [str(modules)] if modules else []
        run_command("serve", run, "--port", 0, *options)

    process: Fork | subprocess.Popen[str] = Fork(serving) if FORKS else serve_anew(run, *options, modules=modules)
    return process, address_of(process)


def serve_anew(run: Path, *options: str, modules: Path | None = None) -> subprocess.Popen[str]:
    """Start the service of a run by the program itself."""
    found = [str(each) for each in (modules, os.environ.get("PYTHONPATH")) if each]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(found)}
    command = [sys.executable, "-m", "topicloom", "serve", str(run), "--port", "0", *options]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)


def address_of(process: Fork | subprocess.Popen[str]) -> str:
    """Wait until a service says where it is."""
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        if "serving on " in line:
            return line.split("serving on ")[1].strip()
        said.append(line)
    raise AssertionError("the service did not start:\n" + "".join(said))
