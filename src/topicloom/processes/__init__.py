"""What processes have in common: how their threads wait, how often a job is given again, and the end of workers."""

from __future__ import annotations

import functools
import os
import re
import signal
import threading
import time

ATTEMPTS = 3  # so often a job is begun whose worker process dies
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")  # environment of a worker
SPIN_COUNT = "GOMP_SPINCOUNT"  # a variable of the environment; see `limit_spinning`
_SECONDS = 1  # between two looks at the parent process


def limit_spinning() -> None:
    """Set the environment so that threads which wait for others soon sleep, unless the user has set how they wait.

    A thread that waits for another one spins before it sleeps. By default it spins for so long that a training step
    takes several times as long while a second process is busy. PyTorch reads the variable when it is first imported.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault(SPIN_COUNT, "3000")


@functools.cache
def end_with(parent: int) -> None:
    """End this process when the process that started it was killed, because no other process would end it."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def cause_of(code: int | None) -> str:
    """Return in words why a process with this exit code has died."""
    if code is None or code >= 0:
        return f"exit code {code}"
    return "out of memory?" if code == -getattr(signal, "SIGKILL", 9) else f"signal {-code}"


def cause_in(message: str) -> str:
    """Return in words why the processes died whose exit codes are in a message of joblib, such as {SIGKILL(-9)}."""
    codes = re.findall(r"\((-?\d+)\)", message)
    return ", ".join(dict.fromkeys(cause_of(int(code)) for code in codes)) or "exit code unknown"
