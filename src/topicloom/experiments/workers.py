"""Worker processes that do jobs. If one of them dies, for example for lack of memory, its job is done again."""

from __future__ import annotations

import logging
import multiprocessing.connection
import os
import pickle
import signal
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any

from ..errors import InputError
from ..processes import ATTEMPTS, SPIN_COUNT, THREADS, cause_of, end_with, limit_spinning

Job = dict[str, Any]
Row = dict[str, Any]
Work = Callable[[Job], Row]

_log = logging.getLogger("topicloom")
_own_log = logging.getLogger("topicloom.workers")  # the command line mutes the other one while models are fitted
_LONGEST = 300  # characters of an error
_PATIENCE = 5  # seconds to wait for the end of a process whose connection has ended


def attempt(work: Work, job: Job) -> Row:
    """Do a job. Return its row: the result, or the error that it ended in, and the seconds that it took."""
    began = time.perf_counter()
    try:
        row = job | work(job)
    except Exception as error:  # an error in one job must not stop the others
        row = job | {"error": described(error)}
    return row | {"job_seconds": round(time.perf_counter() - began, 3)}


def described(error: Exception) -> str:
    """Return an error as one line. An `InputError` is a sentence already; any other error is preceded by its class."""
    message = " ".join(str(error).split())
    return (message if isinstance(error, InputError) else f"{type(error).__name__}: {message}")[:_LONGEST]


def in_processes(jobs: Sequence[Job], work: Work, n_jobs: int) -> Generator[Row, None, None]:
    """Do jobs in worker processes of one thread each, and yield the row of each job as soon as it is done.

    A job whose process dies is begun again when all others have been begun, three times at most. A process that ends in
    an exception before its first job is not replaced, because the next one would end alike. Workers are fresh
    interpreters ("spawn"). They search the current directory for modules, too. All of them end when the iterator is
    closed, or when this process dies.

    Args:
        jobs: the jobs; they are started in this order.
        work: is pickled once, and each worker receives a copy.
        n_jobs: the number of processes.

    Raises:
        InputError: a worker cannot start, or `work` cannot be sent to it.
    """
    try:
        payload = pickle.dumps(work)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InputError(f"{_CANNOT_BE_SENT} ({described(error)}); {_ADVICE}") from None
    waiting = deque(jobs)
    n_deaths: Counter[int] = Counter()  # by the identity of the job, or of None before the first job
    workers = [_Worker(payload) for _ in range(min(n_jobs, len(jobs)))]
    try:
        while workers:
            for worker in _ready(workers):
                try:
                    message = worker.connection.recv()
                except (EOFError, OSError, pickle.UnpicklingError):
                    workers.remove(worker)
                    job, cause = worker.job, worker.died()
                    n_deaths[id(job)] += 1
                    if n_deaths[id(job)] == ATTEMPTS or worker.ended_in_an_error:
                        yield worker.row(cause)
                    elif job is not None:
                        _own_log.warning("%s: %s; it is done again", name_of(job), cause)
                        waiting.append(job)
                    if waiting:
                        workers.append(_Worker(payload))
                    continue
                if worker.job is not None:
                    yield message
                elif message is not None:  # the worker cannot read the work
                    raise InputError(f"{_CANNOT_BE_SENT} ({message}); {_ADVICE}")
                if waiting:
                    worker.give(waiting.popleft())
                else:
                    workers.remove(worker)
                    worker.end()
    finally:
        for worker in workers:
            worker.end()


_CANNOT_BE_SENT = "the models cannot be sent to worker processes"
_ADVICE = "define classes and functions of your own in a module that can be imported, or use `n_jobs=1`"


class _Worker:
    """A process with the connection to it, and the job that it is doing; None until it has started."""

    def __init__(self, payload: bytes) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        level = logging.CRITICAL + 1 if _log.disabled else _log.getEffectiveLevel()
        arguments = (theirs, os.getpid(), os.getcwd(), payload, level)
        self.process = context.Process(target=_serve, args=arguments)
        self.job: Job | None = None
        with _environment():
            self.process.start()
        theirs.close()  # so that the connection ends when the process does
        self._given = time.perf_counter()

    def give(self, job: Job) -> None:
        self.job, self._given = job, time.perf_counter()
        with suppress(OSError):  # the process has died, which the next read shows
            self.connection.send(job)

    def died(self) -> str:
        """Return in words how the process died."""
        self.process.join(_PATIENCE)
        cause = cause_of(self.process.exitcode)
        self.end()
        return f"its process died ({cause})"

    @property
    def ended_in_an_error(self) -> bool:
        """Whether the process has ended in an exception before its first job."""
        return self.job is None and (self.process.exitcode or 0) > 0

    def row(self, error: str) -> Row:
        """Return the row of the job with an error.

        Raises:
            InputError: the process died before it was given a job.
        """
        if self.job is None:
            raise InputError(
                f"a worker process could not start: {error}; if a script makes this call, put it under "
                "if __name__ == '__main__':, or use `n_jobs=1`"
            )
        return self.job | {"error": error, "job_seconds": round(time.perf_counter() - self._given, 3)}

    def end(self) -> None:
        self.connection.close()
        self.process.terminate()
        self.process.join()


def name_of(job: Job) -> str:
    """Return a job as it is named in messages."""
    return ", ".join(f"{name} {value}" for name, value in job.items())


def _ready(workers: Sequence[_Worker]) -> list[_Worker]:
    """Wait until some workers have answered or died, and return them."""
    answered = multiprocessing.connection.wait([worker.connection for worker in workers])
    return [worker for worker in workers if worker.connection in answered]


@contextmanager
def _environment() -> Iterator[None]:
    """Set environment variables that a new process inherits and its libraries read, and restore those of this one."""
    before = dict(os.environ)
    os.environ |= THREADS
    limit_spinning()
    try:
        yield
    finally:
        for name in (*THREADS, SPIN_COUNT):
            if name in before:
                os.environ[name] = before[name]
            else:
                os.environ.pop(name, None)


def _serve(connection: Connection, parent: int, directory: str, payload: bytes, log_level: int) -> None:
    """Do the jobs that arrive, until the connection is closed."""
    _log.setLevel(log_level)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # after Ctrl-C, the parent process ends this one
    end_with(parent)
    try:
        work = _read_work(payload, directory)
    except Exception as error:
        connection.send(described(error))
        return
    connection.send(None)
    with suppress(EOFError, OSError):
        while True:
            connection.send(attempt(work, connection.recv()))


def _read_work(payload: bytes, directory: str) -> Work:
    """Unpickle the work. Modules are searched in the current directory first, as for models by name."""
    sys.path.insert(0, directory)
    try:
        work: Work = pickle.loads(payload)
    finally:
        sys.path.remove(directory)
        if directory not in sys.path:
            sys.path.append(directory)  # for imports inside functions
    return work
