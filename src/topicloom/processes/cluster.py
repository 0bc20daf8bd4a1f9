"""Calls on the nodes of a Ray cluster. A call whose node or process is lost is made again, on any node."""

from __future__ import annotations

import logging
import os
import platform
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from .._version import __version__
from ..errors import InputError, MissingExtraError
from . import ATTEMPTS, THREADS

Key = TypeVar("Key")
Result = TypeVar("Result")

_log = logging.getLogger("topicloom.workers")  # the command line mutes the other one while models are fitted
_PATIENCE = 10  # seconds for an answer of the cluster; Ray itself waits for minutes, and then ends the process


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
            _log.warning("%s: %s; it is done again", self._name_of(call.key), lost)
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
        socket.create_connection((host.strip("[]"), int(port)), _PATIENCE).close()
