"""Jobs in other processes of this machine or on the nodes of a Ray cluster. A job whose process dies is done again."""

from __future__ import annotations

import functools
import logging
import multiprocessing.connection
import os
import pickle
import platform
import re
import signal
import socket
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar

from ._version import __version__
from .errors import InputError, MissingExtraError

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


# Calls on the nodes of a Ray cluster. A call whose node or process is lost is made again, on any node.

Key = TypeVar("Key")
Result = TypeVar("Result")

_workers_log = logging.getLogger("topicloom.workers")  # the command line mutes the other one while models are fitted
_NODE_PATIENCE = 10  # seconds for an answer of the cluster; Ray itself waits for minutes, and then ends the process


@dataclass(frozen=True)
class Lost:
    """What is known of a call whose node or process was lost each time that it was made."""

    cause: str


@dataclass
class _Call(Generic[Key]):
    key: Key
    arguments: tuple[Any, ...]
    n_losses: int = 0


class NodeCalls(Generic[Key, Result]):
    """Calls of one function on the nodes of a cluster, with one core and one thread each.

    Args:
        ray: the module, which is connected to the cluster.
        function: is imported on the nodes.
        name_of: says in a message what the call with a key does.
    """

    def __init__(self, ray: Any, function: Callable[..., Result], name_of: Callable[[Key], str]) -> None:
        self._ray, self._name_of = ray, name_of
        # Ray would make calls again itself, but without a limit where memory is short, and without a word.
        options = {"num_cpus": 1, "max_retries": 0, "scheduling_strategy": "SPREAD"}
        self._remote = ray.remote(**options, runtime_env={"env_vars": THREADS})(_called)
        self._function = function
        self._calls: dict[Any, _Call[Key]] = {}

    @property
    def n_cores(self) -> int:
        """The number of cores of all nodes, which changes when nodes come and go."""
        return int(self._ray.cluster_resources().get("CPU", 0))

    def __len__(self) -> int:
        """Return the number of calls that have begun and not ended."""
        return len(self._calls)

    def share(self, value: Any) -> tuple[Any]:
        """Send a value to the nodes that ask for it with `shared`, once to each. Return what a call receives of it."""
        return (self._ray.put(value),)  # in a tuple, because Ray would replace the reference itself by the value

    def begin(self, key: Key, *arguments: Any) -> None:
        """Begin a call on some node; `key` is returned with its result."""
        self._submit(_Call(key, arguments))

    def next(self) -> tuple[Key, Result | Lost]:
        """Wait until a call has ended, and return its result. A call that was lost is begun again after the others.

        Raises:
            InputError: the function raised one, or a node cannot call the function.
        """
        errors = self._ray.exceptions
        while True:
            [ended], _ = self._ray.wait(list(self._calls), num_returns=1)
            call = self._calls.pop(ended)
            try:
                return call.key, self._ray.get(ended)
            except errors.RayError as error:
                cause = getattr(error, "cause", None)
                if isinstance(cause, InputError):
                    raise cause from None
                if isinstance(error, errors.RuntimeEnvSetupError) or (
                    isinstance(error, errors.RayTaskError) and not isinstance(error, errors.TaskCancelledError)
                ):
                    reason = " ".join(str(cause or error).split())
                    raise InputError(
                        f"a node of the cluster cannot do the work ({type(cause or error).__name__}: {reason:.200}); "
                        "install the same topicloom, with the same extras, on all nodes"
                    ) from None
                lost = self._cause(error)
            call.n_losses += 1
            if call.n_losses == ATTEMPTS:
                return call.key, Lost(lost)
            _workers_log.warning("%s: %s; it is done again", self._name_of(call.key), lost)
            self._submit(call)

    def cancel(self) -> None:
        """End all calls."""
        for reference in self._calls:
            with suppress(Exception):  # the node may be gone
                self._ray.cancel(reference, force=True)
        self._calls.clear()

    def _submit(self, call: _Call[Key]) -> None:
        self._calls[self._remote.remote(__version__, self._function, *call.arguments)] = call

    def _cause(self, error: Exception) -> str:
        errors = self._ray.exceptions
        if isinstance(error, errors.OutOfMemoryError):
            return "its node was out of memory"
        if isinstance(error, errors.NodeDiedError | errors.ObjectLostError | errors.LocalRayletDiedError):
            return "its node was lost"
        return "its process died"


def shared(sent: tuple[Any]) -> Any:
    """Return, on a node, a value that `NodeCalls.share` has sent. Arrays are in memory that all processes share."""
    import ray

    return ray.get(sent[0])


@contextmanager
def calls_on(
    address: str, function: Callable[..., Result], name_of: Callable[[Any], str]
) -> Iterator[NodeCalls[Any, Result]]:
    """Connect to a cluster, and yield calls of a function on its nodes, which end with this block.

    Args:
        address: "auto" for the cluster of this machine or of RAY_ADDRESS, or the address of the head node. A process
            that is connected to a cluster already stays with it.
        function: is imported on the nodes.
        name_of: says in a message what the call with a key does.

    Raises:
        MissingExtraError: Ray is not installed.
        InputError: no cluster can be reached, or it has no core.
    """
    with connected(address) as ray:
        calls: NodeCalls[Any, Result] = NodeCalls(ray, function, name_of)
        if not calls.n_cores:
            raise InputError(f"the Ray cluster at {address} has no CPU for tasks; add a node with ray start")
        try:
            yield calls
        finally:
            calls.cancel()


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Connect to a cluster, as `calls_on` does, for everything that is done in this block. Yield Ray."""
    try:
        import ray
    except ImportError:
        raise MissingExtraError.of("a cluster", "ray", "ray") from None
    if ray.is_initialized():
        yield ray
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        _require_answer(os.environ.get("RAY_ADDRESS", address) if address == "auto" else address)
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (Exception, SystemExit) as error:
        reason = " ".join(str(error).split()).split(". ")[0]
        raise InputError(
            f"no Ray cluster can be reached at {address} ({reason:.150}); start one with ray start --head, or give "
            "`cluster` the address of its head node"
        ) from None
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)  # which Ray replaces
    try:
        yield ray
    finally:
        ray.shutdown()


def _called(version: str, function: Callable[..., Result], *arguments: Any) -> Result:
    """Call a function on a node."""
    if version != __version__:
        raise InputError(
            f"the node {platform.node()} has topicloom {__version__}, and this machine has {version}; install the same "
            "version on all nodes"
        )
    return function(*arguments)


def _require_answer(address: str) -> None:
    """Raise an OSError if the head node does not listen at its address."""
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), _NODE_PATIENCE).close()


# Worker processes that do jobs. If one of them dies, for example for lack of memory, its job is done again.

Job = dict[str, Any]
Row = dict[str, Any]
Work = Callable[[Job], Row]

_log = logging.getLogger("topicloom")
_workers_log2 = logging.getLogger("topicloom.workers")  # the command line mutes the other one while models are fitted
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
                        _workers_log2.warning("%s: %s; it is done again", name_of(job), cause)
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
