"""Pools of worker processes, on this machine or on the nodes of a Ray cluster, that make calls of a function.

A worker can be lost: the system ends a process for lack of memory, or a machine stops. `Pool` then makes the call
again. `LocalPool` and `ClusterPool` notice the loss and know its cause.
"""

from __future__ import annotations

import atexit
import functools
import itertools
import logging
import os
import pickle
import platform
import signal
import socket
import sys
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from queue import Empty, SimpleQueue
from typing import Any, Generic, Self, TypeVar

from ._version import __version__
from .errors import InputError, MissingExtraError

ATTEMPTS = 3  # Attempts per call before giving up.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")  # for the environment
_SPIN_COUNT = "GOMP_SPINCOUNT"  # an environment variable that GNU's OpenMP reads
_SHORT_SPIN = "3000"  # turns of the loop
_ERROR_LENGTH = 300  # characters
_PARENT_CHECK_SECONDS = 1
_EXIT_SECONDS = 5  # to wait for the end of a process whose connection has ended
_IDLE_SECONDS = 60  # after which an idle process ends
_CONNECT_SECONDS = 10  # for an answer of the cluster; Ray itself waits for minutes, and then ends the process

_log = logging.getLogger("topicloom")
_workers_log = logging.getLogger("topicloom.workers")  # The command line mutes the other one while models are fitted.

Key = TypeVar("Key")
Result = TypeVar("Result")


def limit_spinning() -> None:
    """Set the environment so that waiting threads soon sleep, unless the user has set how they wait.

    A waiting thread spins before it sleeps. By default it spins so long that a training step takes several times as
    long while a second process is busy. PyTorch reads the variable when it is first imported.
    """
    os.environ |= _short_spinning()


def _short_spinning() -> dict[str, str]:
    if "OMP_WAIT_POLICY" in os.environ:
        return {}
    return {_SPIN_COUNT: os.environ.get(_SPIN_COUNT, _SHORT_SPIN)}


def described(error: Exception) -> str:
    """Return an error as one line, preceded by its class unless it is an `InputError` or an error about a file."""
    message = " ".join(str(error).split())
    if isinstance(error, OSError) and error.strerror and (place := error.filename2 or error.filename):
        message = f"{os.fsdecode(place)}: {error.strerror}"  # as the command line says it
    elif not isinstance(error, InputError):
        message = f"{type(error).__name__}: {message}"
    return message[:_ERROR_LENGTH]


# What all pools have in common.


@dataclass(frozen=True)
class Lost:
    """The last attempt of a call whose worker was lost each time.

    Attributes:
        event: what happened, such as "its node was lost".
        reason: why it happened, such as "out of memory?"; empty if nothing is known.
        seconds: how long the attempt took.
    """

    event: str
    reason: str = ""
    seconds: float = 0.0

    @property
    def cause(self) -> str:
        """The event with its reason."""
        return f"{self.event} ({self.reason})" if self.reason else self.event


class Sent(ABC):
    """A value that was sent to the workers once, as an argument of their calls."""

    @abstractmethod
    def value(self) -> Any:
        """Return the value, in a worker."""


@dataclass
class _Call(Generic[Key]):
    key: Key
    arguments: tuple[Any, ...]
    n_losses: int = 0
    began: float = 0.0


class Pool(ABC, Generic[Key, Result]):
    """Workers that make calls of one function, each with one core and one thread.

    A call whose worker is lost is made again after the others, up to `ATTEMPTS` times in all. Calls end in any order.

    Args:
        function: what is called; the workers import it.
        name_of: names the call with a key in messages.
    """

    def __init__(self, function: Callable[..., Result], name_of: Callable[[Key], str]) -> None:
        self._function, self._name_of = function, name_of
        self._n_calls = 0

    def __len__(self) -> int:
        """Return the number of calls that have begun and not ended."""
        return self._n_calls

    @property
    @abstractmethod
    def n_workers(self) -> int:
        """The number of calls that are made at the same time. It changes when nodes of a cluster come and go."""

    @abstractmethod
    def share(self, value: Any, name: str) -> Sent:
        """Send a value to the workers, once to each. Return what stands for it among the arguments of calls.

        Args:
            value: the value.
            name: what it is, for messages.

        Raises:
            InputError: the value cannot be pickled.
        """

    def begin(self, key: Key, *arguments: Any) -> None:
        """Begin a call; `key` is returned with its result."""
        self._submit(_Call(key, arguments))
        self._n_calls += 1

    def next(self) -> tuple[Key, Result | Lost]:
        """Wait until a call has ended, and return its key and its result.

        Raises:
            InputError: the function raised one, or a node cannot call the function.
            Exception: any other error that the function raised in a process of this machine.
        """
        while True:
            call, outcome = self._wait()
            if isinstance(outcome, Lost):
                call.n_losses += 1
                if call.n_losses < ATTEMPTS:
                    _workers_log.warning("%s: %s; it is done again", self._name_of(call.key), outcome.cause)
                    self._submit(call)
                    continue
                outcome = replace(outcome, seconds=time.perf_counter() - call.began)
            self._n_calls -= 1
            return call.key, outcome

    @abstractmethod
    def close(self) -> None:
        """End all calls."""

    @abstractmethod
    def _submit(self, call: _Call[Key]) -> None:
        """Give a call to a worker, or let it wait for one."""

    @abstractmethod
    def _wait(self) -> tuple[_Call[Key], Result | Lost]:
        """Wait until a call has ended or was lost, or raise the error that it ended in."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# Processes of this machine.


class LocalPool(Pool[Key, Result]):
    """Worker processes of this machine.

    Workers are fresh interpreters that do not import the main module, so a script needs no main guard. They search the
    current directory for modules, too. All of them end when the pool is closed or this process ends.

    Args:
        function: what is called.
        name_of: names the call with a key in messages.
        n_workers: the number of processes. They start when there are calls for them.
        short_calls: whether calls take less than a second. A process then receives a call before the last one has
            ended. Idle processes, with the modules that they have imported, wait for the next such pool for a minute.

    Examples:
        >>> from topicloom.processes import LocalPool
        >>> with LocalPool(divmod, str, n_workers=1) as pool:
        ...     pool.begin("first", 7, 2)
        ...     pool.next()
        ('first', (3, 1))
    """

    def __init__(
        self, function: Callable[..., Result], name_of: Callable[[Key], str], n_workers: int, short_calls: bool = False
    ) -> None:
        super().__init__(function, name_of)
        self._n_workers, self._short_calls = n_workers, short_calls
        self._payloads: dict[int, bytes] = {}  # of the values that are shared
        self._calls: SimpleQueue[tuple[_Call[Key] | None, bytes]] = SimpleQueue()  # None closes a thread
        self._ended: SimpleQueue[tuple[_Call[Key], Any]] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._workers: list[_Worker] = []
        self._is_closed = False

    @property
    def n_workers(self) -> int:
        return self._n_workers

    def share(self, value: Any, name: str) -> Sent:
        sent = _SentToProcesses(next(_numbers), name)
        try:
            self._payloads[sent.number] = _pickled(value)
        except Exception as error:  # the value's own code runs
            raise _cannot_be_sent(name, error) from None
        return sent

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            for worker in self._workers:
                if worker.n_calls:
                    worker.process.terminate()
        for _ in self._threads:
            self._calls.put((None, b""))
        for thread in self._threads:
            thread.join()

    def _submit(self, call: _Call[Key]) -> None:
        self._calls.put((call, _pickled((self._function, call.arguments))))
        if len(self._threads) < self._n_workers:
            self._threads.append(threading.Thread(target=self._make_calls, daemon=True))
            self._threads[-1].start()

    def _wait(self) -> tuple[_Call[Key], Result | Lost]:
        call, outcome = self._ended.get()
        if isinstance(outcome, _Raised):
            raise outcome.error
        return call, outcome

    def _make_calls(self) -> None:
        """Make calls with one process at a time, until the pool is closed. A process that dies is replaced."""
        worker: _Worker | None = None
        given: deque[tuple[_Call[Key], bytes]] = deque()  # to the process, which makes the first one
        while not self._is_closed:
            if not given or (self._short_calls and len(given) == 1 and self._calls.qsize() > self._n_workers):
                with suppress(Empty):  # another process may have taken the call
                    call, message = self._calls.get(block=not given)
                    if call is None:
                        break
                    given.append((call, message))
                    try:
                        worker = self._working(worker)
                        worker.send(message, self._payloads)
                    except Exception as error:  # the system starts no more processes, or gives no more memory
                        given.pop()
                        self._ended.put((call, _Raised(error)))
                continue
            assert worker is not None  # it was given a call
            given[0][0].began = time.perf_counter()
            outcome = worker.receive()
            self._ended.put((given.popleft()[0], outcome))
            if isinstance(outcome, Lost):
                worker = None
                while given:
                    self._calls.put(given.popleft())
        if worker is not None:
            worker.put_aside() if self._short_calls and not given else worker.end()

    def _working(self, worker: _Worker | None) -> _Worker:
        """Return the process, or a new one, which has one more call."""
        with self._lock:  # so that `close` ends all processes that have calls
            if worker is None:
                worker = _Worker.take(self._short_calls)
                self._workers.append(worker)
            worker.n_calls += 1
            if self._is_closed:
                worker.process.terminate()
        return worker


@dataclass(frozen=True)
class _Raised:
    """The error in which a call ended."""

    error: Exception


@dataclass(frozen=True)
class _SentToProcesses(Sent):
    """A value that `LocalPool.share` has sent."""

    number: int
    name: str

    def value(self) -> Any:
        value = _received[self.number]
        if isinstance(value, _Raised):
            raise _cannot_be_sent(self.name, value.error)
        return value


_numbers = itertools.count()  # of the values that this process has sent
_FORGET = b"forget"  # a message: no value that was sent is needed any more
_received: dict[int, Any] = {}  # in a worker: the values that it was sent, or `_Raised` for one that cannot be read


def _cannot_be_sent(name: str, error: Exception) -> InputError:
    return InputError(
        f"{name} cannot be sent to worker processes ({described(error)}); define classes and functions of your own in "
        "a module that can be imported, or use `n_jobs=1`"
    )


def _pickled(value: Any) -> bytes:
    """Pickle a value, with functions and classes of scripts and notebooks."""
    from joblib.externals.loky.backend.reduction import dumps

    return bytes(dumps(value))


class _Worker:
    """A process of this machine that makes one call after another, and the connection to it.

    Attributes:
        connection: for calls and their results.
        process: the process.
        surroundings: what the process took over from this one when it started.
        sent: the numbers of the values that it has received.
        n_calls: how many calls it has received and not ended.
    """

    _idle: list[_Worker] = []  # noqa: RUF012  # those that wait for another pool
    _alive: set[_Worker] = set()  # noqa: RUF012
    _lock = threading.Lock()  # `start` and `join` ask the system for the exit codes of all processes

    def __init__(self) -> None:
        from joblib.externals.loky.backend.process import LokyProcess  # which does not import the main module

        self.surroundings = _surroundings()
        self.connection, theirs = Pipe()
        self.sent: set[int] = set()
        self.n_calls = 0
        directory, level, _ = self.surroundings
        arguments = (theirs, os.getpid(), directory, level)
        self.process = LokyProcess(target=_serve, args=arguments, env=_ONE_THREAD | _short_spinning())
        with self._lock:
            self.process.start()
        self._alive.add(self)
        theirs.close()  # so that the connection ends when the process does

    @classmethod
    def take(cls, from_idle: bool) -> _Worker:
        """Return an idle worker with the present surroundings, or a new one."""
        surroundings = _surroundings()
        with suppress(IndexError):  # none is idle
            while from_idle:
                worker = cls._idle.pop()
                if worker.surroundings == surroundings and worker.process.is_alive():
                    return worker
                worker.end()
        return cls()

    def send(self, call: bytes, payloads: dict[int, bytes]) -> None:
        """Send a pickled function with its arguments to the process, and the shared values that it does not have."""
        unknown = {number: payload for number, payload in tuple(payloads.items()) if number not in self.sent}
        self.sent |= unknown.keys()
        with suppress(OSError):  # the process has died, as `receive` notices
            if unknown:
                self.connection.send_bytes(pickle.dumps(unknown))
            self.connection.send_bytes(call)

    def receive(self) -> Any:
        """Return the result of a call, `_Raised` with its error, or `Lost` if the process died."""
        try:
            # On Windows, the connection of a process that dies at its start does not end.
            wait([self.connection, self.process.sentinel])
            if not self.connection.poll():
                raise EOFError
            message = self.connection.recv_bytes()
        except (EOFError, OSError):
            with self._lock:
                self.process.join(_EXIT_SECONDS)
            code = self.process.exitcode
            self.end()
            return Lost("its process died", _reason(code))
        self.n_calls -= 1
        try:
            return pickle.loads(message)
        except Exception as error:
            return _Raised(error)

    def put_aside(self) -> None:
        """Keep the process for another pool, for some time."""
        with suppress(OSError):
            self.connection.send_bytes(_FORGET)
        self.sent.clear()
        self._idle.append(self)
        timer = threading.Timer(_IDLE_SECONDS, self._end_if_idle)
        timer.daemon = True
        timer.start()

    def _end_if_idle(self) -> None:
        with suppress(ValueError):
            self._idle.remove(self)
            self.end()

    def end(self) -> None:
        """End the process."""
        self.connection.close()
        self.process.terminate()
        with self._lock:
            self.process.join()
        self._alive.discard(self)

    @classmethod
    def end_all(cls) -> None:
        """End all processes, as this one ends."""
        for worker in list(cls._alive):
            worker.process.terminate()

    @classmethod
    def forget_all(cls) -> None:
        """Forget all processes, because they belong to the process that this one was forked from."""
        cls._idle.clear()
        cls._alive.clear()
        cls._lock = threading.Lock()


atexit.register(_Worker.end_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Worker.forget_all)


def _surroundings() -> tuple[str, int, tuple[str, ...]]:
    """Return what a worker takes over: the current directory, the level of messages, and where modules are searched."""
    level = logging.CRITICAL + 1 if _log.disabled else _log.getEffectiveLevel()
    return os.getcwd(), level, tuple(sys.path)


def _reason(code: int | None) -> str:
    """Return in words why a process with this exit code has died."""
    if code is None or code >= 0:
        return f"exit code {code}"
    return "out of memory?" if code == -getattr(signal, "SIGKILL", 9) else f"signal {-code}"


def _serve(connection: Connection, parent: int, directory: str, log_level: int) -> None:
    """Make the calls that arrive in this worker process, until the connection is closed."""
    _log.setLevel(log_level)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # after Ctrl-C, the parent process ends this one
    _end_with(parent)
    messages: SimpleQueue[bytes | None] = SimpleQueue()

    def receive() -> None:
        with suppress(EOFError, OSError):
            while True:
                messages.put(connection.recv_bytes())
        messages.put(None)

    threading.Thread(target=receive, daemon=True).start()
    with suppress(OSError):
        while (message := messages.get()) is not None:
            if message == _FORGET:
                _received.clear()
            elif (outcome := _outcome(message, directory)) is not None:
                connection.send_bytes(outcome)


def _outcome(message: bytes, directory: str) -> bytes | None:
    """Make a call, and return its pickled result or error. Return None for a message that brings shared values."""
    try:
        content = pickle.loads(message)
        if isinstance(content, dict):
            for number, payload in content.items():
                _received[number] = _unpickled(payload, directory)
            return None
        function, arguments = content
        return _pickled(function(*arguments))
    except Exception as error:
        return _pickled_error(error)


def _pickled_error(error: Exception) -> bytes:
    """Pickle an error that is being handled, or a RuntimeError with its message if it could not be unpickled."""
    note = f"in a worker process:\n{traceback.format_exc()}"
    if not isinstance(error, InputError):
        error.add_note(note)
    try:
        outcome = _pickled(_Raised(error))
        pickle.loads(outcome)  # fails if the constructor of the class takes other arguments
        return outcome
    except Exception:
        plain = RuntimeError(described(error))
        plain.add_note(note)
        return _pickled(_Raised(plain))


def _unpickled(payload: bytes, directory: str) -> Any:
    """Unpickle a value, or return the error as `_Raised`.

    Modules are searched in the current directory first, as for models by name.
    """
    sys.path.insert(0, directory)
    try:
        return pickle.loads(payload)
    except Exception as error:  # the value's own code runs
        return _Raised(error)
    finally:
        sys.path.remove(directory)
        if directory not in sys.path:
            sys.path.append(directory)  # for imports inside functions


def _end_with(parent: int) -> None:
    """End this process when the process that started it was killed, because no other process would end it."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_CHECK_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


# The nodes of a Ray cluster.


class ClusterPool(Pool[Key, Result]):
    """The cores of the nodes of a Ray cluster.

    Args:
        ray: the module, which is connected to the cluster.
        function: what is called.
        name_of: names the call with a key in messages.
    """

    def __init__(self, ray: Any, function: Callable[..., Result], name_of: Callable[[Key], str]) -> None:
        super().__init__(function, name_of)
        self._ray = ray
        # Ray would make calls again itself, but without a limit where memory is short, and without a word.
        options = {"num_cpus": 1, "max_retries": 0, "scheduling_strategy": "SPREAD"}
        self._remote = ray.remote(**options, runtime_env={"env_vars": _ONE_THREAD})(_called)
        self._calls: dict[Any, _Call[Key]] = {}

    @property
    def n_workers(self) -> int:
        return int(self._ray.cluster_resources().get("CPU", 0))

    def share(self, value: Any, name: str) -> Sent:
        try:
            return _SentToNodes(self._ray.put(value))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise InputError(
                f"{name} cannot be sent to the nodes of the cluster ({error.__cause__ or error}); leave `cluster` out"
            ) from None  # Ray's own message is long

    def close(self) -> None:
        for reference in self._calls:
            with suppress(Exception):  # the node may be gone
                self._ray.cancel(reference, force=True)
        self._calls.clear()

    def _submit(self, call: _Call[Key]) -> None:
        call.began = time.perf_counter()
        self._calls[self._remote.remote(__version__, self._function, *call.arguments)] = call

    def _wait(self) -> tuple[_Call[Key], Result | Lost]:
        errors = self._ray.exceptions
        [ended], _ = self._ray.wait(list(self._calls), num_returns=1)
        call = self._calls.pop(ended)
        try:
            return call, self._ray.get(ended)
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
            return call, self._loss(error)

    def _loss(self, error: Exception) -> Lost:
        errors = self._ray.exceptions
        if isinstance(error, errors.OutOfMemoryError):
            return Lost("its node was out of memory")
        if isinstance(error, errors.NodeDiedError | errors.ObjectLostError | errors.LocalRayletDiedError):
            return Lost("its node was lost")
        return Lost("its process died")


@dataclass(frozen=True)
class _SentToNodes(Sent):
    """A value that `ClusterPool.share` has sent. Arrays are in memory that all processes of a node share."""

    reference: Any  # Ray replaces references among arguments by their values, but not those inside an object.

    def value(self) -> Any:
        return _fetched(self.reference)


@functools.lru_cache(maxsize=2)
def _fetched(reference: Any) -> Any:
    import ray

    return ray.get(reference)


@contextmanager
def cluster_pool(
    address: str, function: Callable[..., Result], name_of: Callable[[Key], str]
) -> Iterator[ClusterPool[Key, Result]]:
    """Connect to a cluster, and yield a pool of its nodes, which is closed with this block.

    Args:
        address: "auto" for the cluster of this machine or of RAY_ADDRESS, or the address of the head node. A process
            that is connected to a cluster already stays with it.
        function: what is called; the nodes import it.
        name_of: names the call with a key in messages.

    Raises:
        MissingExtraError: Ray is not installed.
        InputError: no cluster can be reached, or it has no core.
    """
    with connected(address) as ray, ClusterPool(ray, function, name_of) as pool:
        if not pool.n_workers:
            raise InputError(f"the Ray cluster at {address} has no CPU for tasks; add a node with ray start")
        yield pool


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Connect to a cluster for everything that is done in this block, and yield Ray.

    Args:
        address: "auto" for the cluster of this machine or of RAY_ADDRESS, or the address of the head node. A process
            that is connected to a cluster already stays with it.

    Raises:
        MissingExtraError: Ray is not installed.
        InputError: no cluster can be reached.
    """
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
            signal.signal(signal.SIGTERM, before)  # Ray replaces the handler
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
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()


# Jobs: calls whose arguments and results are dictionaries. They stand here because a worker imports this module fast.

Job = dict[str, Any]  # what distinguishes a job from the others, as JSON can hold it
Row = dict[str, Any]  # a job with its result
Work = Callable[[Job], Row]  # does a job and returns its result


def attempt(work: Work, job: Job) -> Row:
    """Do a job. Return its row: the result, or the error that it ended in, and the seconds that it took."""
    began = time.perf_counter()
    try:
        row = job | work(job)
    except Exception as error:  # an error in one job must not stop the others
        row = job | {"error": described(error)}
    return row | _duration(time.perf_counter() - began)


def attempt_sent(work: Sent, job: Job) -> Row:
    """Do a job in a worker."""
    return attempt(work.value(), job)


def row_of_loss(job: Job, lost: Lost) -> Row:
    """Return the row of a job whose worker was lost each time."""
    return job | {"error": lost.cause} | _duration(lost.seconds)


def name_of(job: Job) -> str:
    """Return a job as it is named in messages."""
    return ", ".join(f"{name} {value}" for name, value in job.items())


def _duration(seconds: float) -> Row:
    return {"job_seconds": round(seconds, 3)}
