"""The server: it listens on an address, and answers until it is stopped."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ..errors import InputError
from .app import make_app
from .guard import Access, Limits
from .live import Live

logger = logging.getLogger("topicloom")

_SWITCH_SECONDS = 0.0005  # a tenth of Python's default, so that short requests wait less during a long one
_MAX_HEAD_BYTES = 1 << 16  # the greatest size of a request's head
_MAX_PIPELINED = 100  # the most requests of a connection that wait for answers to earlier ones
_MAX_CHUNKS = 20_000  # the most pieces of a request's body; honest ones have a kilobyte or more
_MAX_FIELDS = 200  # the most fields of a request's head and after its body
_STOP_SECONDS = 5  # the time for answers in progress when the server is stopped
_BACKLOG = 1024  # the most connections that wait to be accepted


def serve(
    run: str | Path,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    token: str | None = None,
    names: Iterable[str] = (),
    limits: Limits | None = None,
    device: str = "cpu",
    allow: Iterable[str] = (),
    tokenizer: Callable[[str], Iterable[str]] | None = None,
    encoder: Any = None,
    started: Callable[[str], None] | None = None,
) -> None:
    """Serve a run until the process is interrupted (SIGINT or SIGTERM).

    The process should do nothing else meanwhile. PyTorch uses one thread, which is the fastest for single texts, and
    Python switches between threads more often.

    Args:
        run: a run directory of `topicloom train`, or a saved model.
        host: the address to listen on; by default only this machine reaches it.
        port: the port; 0 takes any that is free.
        token: the secret that each request must contain; it is needed if other machines can reach the address.
        names: host names of this service besides `host` and localhost.
        limits: the limits of requests.
        device: where the model computes, such as "cpu" or "cuda".
        allow: modules that may be imported for your own classes and functions that the model needs.
        tokenizer: your own function that splits texts, if the model was trained with one.
        encoder: what gave the documents their vectors, if the run does not name it, or if it is a function.
        started: a function that is called with the address once the service answers.

    Raises:
        InputError: there is no model, the port is in use, or the token is missing.

    Examples:
        >>> from topicloom.service import serve
        >>> serve("runs/news", port=8000)  # doctest: +SKIP
    """
    access = Access.on(host, token, names)
    limits = limits or Limits()
    with _listen(host, port) as listener:  # first, because reading the model takes longer
        live = Live.open(run, limits, device=device, allow=allow, tokenizer=tokenizer, encoder=encoder)
        try:
            with _own_process():
                _run(make_app(live, access), listener, limits, started)
        finally:
            live.close()


def _listen(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65535:
        raise InputError(f"`port` should be from 0 to 65535; it is {port}")
    try:
        family, kind, number, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, number)
    except (OSError, UnicodeError):
        raise InputError(
            f"`host` is {host!r}, which is not an address of this machine; give one, or leave it out"
        ) from None
    try:
        # Without this, a port could not be used again for a minute after the service was stopped.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise InputError(f"port {port} of {host} is in use; give another one by `port`") from None
        if error.errno == errno.EACCES:
            raise InputError(
                f"port {port} needs more rights than this user has; give one from 1024 by `port`"
            ) from None
        raise InputError(f"{host} cannot be listened on ({error.strerror}); give another `host`") from None
    return listener


def _run(app: Any, listener: socket.socket, limits: Limits, started: Callable[[str], None] | None) -> None:
    address, port = listener.getsockname()[:2]
    url = f"http://{f'[{address}]' if ':' in address else address}:{port}"
    config = uvicorn.Config(
        app,
        http=partial(_Protocol, limits, {}),  # type: ignore[arg-type]  # uvicorn only calls it
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=2 * limits.connections,  # for busy connections; `_Protocol` closes idle ones earlier
        timeout_keep_alive=max(1, round(limits.seconds)),
        timeout_graceful_shutdown=_STOP_SECONDS,
    )
    server = _Server(config, lambda: started(url) if started else logger.info("serving on %s", url))
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    with _quiet_signals():
        server.run([listener])


class _Server(uvicorn.Server):
    """A server that calls a function once it answers."""

    def __init__(self, config: uvicorn.Config, on_start: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_start()


@contextmanager
def _own_process() -> Iterator[None]:
    """Return a context in which the process has settings for many short requests."""
    threads, interval = torch.get_num_threads(), sys.getswitchinterval()
    torch.set_num_threads(1)
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.collect()
    gc.freeze()  # otherwise reading a large body of JSON would scan all objects of the libraries many times
    try:
        yield
    finally:
        gc.unfreeze()
        torch.set_num_threads(threads)
        sys.setswitchinterval(interval)


class _quiet_signals:
    """A context that ignores the SIGINT or SIGTERM that uvicorn raises again after it has stopped."""

    def __enter__(self) -> None:
        self.earlier: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self.earlier[number] = signal.signal(number, lambda *_: None)

    def __exit__(self, *_: object) -> None:
        for number, handler in self.earlier.items():
            signal.signal(number, handler)


class _Protocol(HttpToolsProtocol):
    """uvicorn's protocol with limits of the size and time of requests and of the number of connections.

    Args:
        limits: the limits.
        pending: the idle connections of the server, longest idle first.
        options: arguments of uvicorn's protocol.
    """

    timer: asyncio.TimerHandle | None = None  # runs until the head of a request has arrived
    is_flooded = False  # whether more has arrived than a client may send
    arriving = False  # whether a request has begun and is not complete
    n_bytes = 0  # of this request
    n_chunks = n_fields = 0  # of this request

    def __init__(self, limits: Limits, pending: dict[_Protocol, None], **options: Any) -> None:
        super().__init__(**options)
        self.limits, self.pending = limits, pending
        self.waiting = bytearray()  # what has arrived of the body and was not passed on

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()
        if len(self.connections) >= self.limits.connections:
            next(iter(self.pending)).transport.abort()  # so that slow clients do not block others

    def data_received(self, data: bytes) -> None:
        self.n_bytes += len(data)
        super().data_received(data)
        self._pass_on()
        # A body in many small pieces can double in size. What follows an answer is discarded by the guard.
        most = _MAX_HEAD_BYTES if self.timer else _MAX_HEAD_BYTES + 2 * self.limits.body
        is_answered = self.arriving and self.timer is None and self.cycle.response_started
        if (self.n_bytes > most and not is_answered) or self.is_flooded:
            self.transport.abort()

    def on_message_begin(self) -> None:
        if len(self.pipeline) > _MAX_PIPELINED:
            self._refuse()
        super().on_message_begin()
        self.arriving, self.n_bytes, self.n_chunks, self.n_fields = True, 0, 0, 0
        self._wait()

    def on_header(self, name: bytes, value: bytes) -> None:
        self.n_fields += 1
        if self.n_fields > _MAX_FIELDS:
            self._refuse()
        if self.timer:  # headers after the body are ignored
            super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        self.n_chunks += 1
        if self.n_chunks > _MAX_CHUNKS:
            self._refuse()
        self.waiting += body  # uvicorn would copy the whole body for each chunk

    def _refuse(self) -> None:
        """Stop reading what arrives. Without this, a block of a thousand requests would hold up everybody else."""
        self.is_flooded = True
        raise ValueError("there is too much of it")

    def _pass_on(self) -> None:
        if self.waiting and not self.is_flooded:
            body = bytes(self.waiting)
            self.waiting.clear()
            super().on_body(body)

    def on_headers_complete(self) -> None:
        self._stop_waiting()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._pass_on()
        super().on_message_complete()
        self.arriving = False

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete and not self.arriving:  # there is nothing more to do for now
            self.pending[self] = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._stop_waiting()
        self.timer = self.loop.call_later(self.limits.seconds, self.transport.abort)
        self.pending[self] = None

    def _stop_waiting(self) -> None:
        self.pending.pop(self, None)
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
