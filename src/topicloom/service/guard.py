"""The guard before the application: every request passes it, and every answer gets its headers."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from .access import Access, host_of
from .limits import Limits
from .measures import Measures

logger = logging.getLogger("topicloom")

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

# A page that needs more than nothing says so itself, by a Content-Security-Policy of its own.
NO_SOURCES = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
_HEADERS: dict[bytes, bytes] = {
    b"content-security-policy": NO_SOURCES.encode(),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
}
_OPEN = "/health"  # the one path that needs no token
_METHODS = ("GET", "HEAD", "POST")


class Refusal(Exception):
    """A request that is not passed on."""

    def __init__(self, status: int, message: str, headers: Headers | None = None) -> None:
        super().__init__(message)
        self.status, self.headers = status, headers or []


class Guard:
    """An ASGI application that checks requests before it passes them to another one.

    Args:
        app: the application.
        access: who may ask.
        limits: what may be asked.
        measures: where requests are counted.
    """

    def __init__(self, app: App, access: Access, limits: Limits, measures: Measures) -> None:
        self.app, self.access, self.limits, self.measures = app, access, limits, measures
        self.n_requests = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        method = scope["method"] if scope["method"] in _METHODS else "other"
        answer = _Answer(send, _CLOSE if _has_body(scope) else [], is_head=method == "HEAD")
        if method == "HEAD":  # what GET answers, without the body
            scope = {**scope, "method": "GET"}
        self.n_requests += 1
        self.measures.in_progress.inc()
        try:
            async with asyncio.timeout(2 * self.limits.seconds):  # also for a client that does not read its answer
                await self._answer(scope, receive, answer)
        except Refusal as refusal:
            await answer.refuse(refusal)
        except TimeoutError:
            late = "the answer took too long; ask for less, or try again later"
            await answer.refuse(Refusal(503, late, [(b"retry-after", b"5")]))
        except Exception:
            logger.exception("a request to %r failed", scope["path"])
            await answer.refuse(Refusal(500, "an error occurred in the service; its log says more"))
        finally:
            self.n_requests -= 1
            self.measures.in_progress.dec()
            route = getattr(scope.get("route"), "path", "other")
            self.measures.requests.labels(route, method, str(answer.status)).inc()
            self.measures.seconds.labels(route).observe(time.perf_counter() - began)

    async def _answer(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        headers = _headers(scope)
        self._check(scope, headers)
        if self.n_requests > self.limits.requests and scope["path"] != _OPEN:
            self.measures.refused.inc()
            raise Refusal(
                503, "the service is busy with other requests; try again in a second", [(b"retry-after", b"1")]
            )
        body = await self._body(headers, receive)
        answer.unread = []
        given = [body]

        async def replay() -> Message:
            if given:
                return {"type": "http.request", "body": given.pop(), "more_body": False}
            return await receive()

        async with asyncio.timeout(self.limits.seconds):
            await self.app(scope, replay, answer)

    def _check(self, scope: Scope, headers: dict[str, str]) -> None:
        host = headers.get("host", "")
        if not self.access.is_known_host(host):
            raise Refusal(
                400, "the Host header names another site; the service can be given more names by --allow-host"
            )
        if scope["path"] != _OPEN and not self.access.is_authorized(headers.get("authorization", "")):
            challenges = [
                b"Bearer",
                b'Basic realm="topicloom: any name, and the token as the password", charset="UTF-8"',
            ]
            raise Refusal(
                401,
                "the token is missing or wrong; send the header 'Authorization: Bearer TOKEN'",
                [(b"www-authenticate", challenge) for challenge in challenges],
            )
        if scope["method"] not in _METHODS:
            raise Refusal(405, "only GET, HEAD and POST are answered", [(b"allow", ", ".join(_METHODS).encode())])
        if scope["method"] == "POST":
            _check_origin(host, headers)

    async def _body(self, headers: dict[str, str], receive: Receive) -> bytes:
        """Read the body, within the limits of size and time."""
        most = self.limits.body
        too_large = Refusal(413, f"the body is larger than {most:,} bytes; send less in a request")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length[:20]) > most:
            raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(self.limits.seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refusal(400, "the connection was closed before the whole body had arrived")
                    body += message.get("body", b"")
                    if len(body) > most:
                        raise too_large
                    if not message.get("more_body", False):
                        return bytes(body)
        except TimeoutError:
            raise Refusal(
                408, f"the body did not arrive within {self.limits.seconds:g} seconds; send it faster"
            ) from None


_CLOSE: Headers = [(b"connection", b"close")]


def _has_body(scope: Scope) -> bool:
    return any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])


def _check_origin(host: str, headers: dict[str, str]) -> None:
    """Refuse what a page of another site could send without the user's knowledge."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refusal(415, "the body should be JSON; send it with the header 'Content-Type: application/json'")
    origin = headers.get("origin")
    foreign = origin is not None and host_of(urlsplit(origin).netloc) != host_of(host)
    if foreign or headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise Refusal(403, "pages of other sites may not send anything to the service")


def _headers(scope: Scope) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        if key in ("host", "authorization", "content-length", "content-type", "origin") and key in found:
            raise Refusal(400, f"the header {key} is there twice; send it once")
        found[key] = value.decode("latin-1")
    return found


class _Answer:
    """Sends an answer, with the headers that each one has.

    Args:
        send: sends a message.
        unread: headers of an answer that is given before the whole body was read. They close the connection, because a
            client could otherwise keep it for as long as it likes by sending the rest slowly.
        is_head: whether only the headers are sent.
    """

    def __init__(self, send: Send, unread: Headers, *, is_head: bool = False) -> None:
        self.send, self.unread, self.is_head, self.status = send, unread, is_head, 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = list(message.get("headers", ()))
            given = {name.lower() for name, _ in headers}
            message["headers"] = headers + [each for each in _HEADERS.items() if each[0] not in given]
        elif self.is_head:
            message = {**message, "body": b""}
        await self.send(message)

    async def refuse(self, refusal: Refusal) -> None:
        if self.status:  # the answer has begun, and cannot be taken back
            return
        body = json.dumps({"error": str(refusal)}, ensure_ascii=False).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            *refusal.headers,
            *self.unread,
        ]
        await self({"type": "http.response.start", "status": refusal.status, "headers": headers})
        await self({"type": "http.response.body", "body": body, "more_body": False})
