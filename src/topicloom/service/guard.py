"""Access to the service, limits and counts of requests, and the guard that every request passes."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import ipaddress
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from ..errors import InputError
from ..settings import AtLeastOne, Positive, ReadableSettings, check_settings

logger = logging.getLogger("topicloom")

# Counters, in the text format of Prometheus

_SECONDS_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Measures:
    """Counters of one service. All unknown paths share one entry, so that the number of entries is bounded."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram  # in the extra `serve`
        from prometheus_client.process_collector import ProcessCollector

        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = Counter(
            "topicloom_requests", "Requests answered.", ("route", "method", "status"), registry=self.registry
        )
        self.seconds = Histogram(
            "topicloom_request_seconds", "Time to answer.", ("route",), buckets=_SECONDS_BUCKETS, registry=self.registry
        )
        self.in_progress = Gauge("topicloom_requests_in_progress", "Requests worked on.", registry=self.registry)
        self.texts = Counter("topicloom_inferred_texts", "Texts whose topics were inferred.", registry=self.registry)
        self.refused = Counter(
            "topicloom_refused", "Requests refused because too many were worked on.", registry=self.registry
        )

    def text(self) -> bytes:
        """Return all measures in the text format."""
        from prometheus_client import generate_latest

        return generate_latest(self.registry)


# Limits


@dataclass(frozen=True)
class Limits(ReadableSettings):
    """Limits of the service.

    Attributes:
        body: the greatest size of a request's body, in bytes.
        texts: the most texts in a request.
        characters: the greatest length of a text, in characters.
        documents: the most documents on a page of /api/documents.
        edits: the most edits that can be stored.
        requests: the most requests that are processed at a time. Further requests get the answer 503. A request whose
            body has not arrived does not count.
        connections: the most open connections. If there are more, the one that has been idle for longest is closed.
        seconds: the most seconds in which a request must arrive, and in which it must then be answered.

    Raises:
        SettingError: a limit does not exist, or its value is not allowed.

    Examples:
        >>> from topicloom.service import Limits
        >>> Limits(texts=16).texts
        16
    """

    body: AtLeastOne = 4_000_000
    texts: AtLeastOne = 256
    characters: AtLeastOne = 100_000
    documents: AtLeastOne = 200
    edits: AtLeastOne = 1_000
    requests: AtLeastOne = 64
    connections: AtLeastOne = 512
    seconds: Positive = 20.0

    def __post_init__(self) -> None:
        check_settings(self)


# Access

_MIN_TOKEN_CHARACTERS = 16


@dataclass(frozen=True)
class Access:
    """Who may send requests.

    Attributes:
        token: the secret that each request must contain. None accepts every request.
        names: the host names, in lower case, by which requests may call the service.

    Examples:
        >>> from topicloom.service import Access
        >>> access = Access.on("127.0.0.1", names=["topics.example.org"])
        >>> access.is_known_host("topics.example.org:8000"), access.is_known_host("elsewhere.example.org")
        (True, False)
    """

    token: str | None = None
    names: frozenset[str] = frozenset({"localhost"})

    @classmethod
    def on(cls, host: str, token: str | None = None, names: Iterable[str] = ()) -> Access:
        """Return the access to a service that listens on an address.

        Args:
            host: the address, or its name.
            token: the token; it is needed on any address that other machines can reach.
            names: further host names of this service, such as "topics.example.org".

        Raises:
            InputError: the token is missing, too short, or has characters that a header cannot have.
        """
        if token is None and not is_loopback(host):
            raise InputError(
                f"{host} can be reached from other machines, so a token is needed; give `token`, or leave out `host` "
                "to serve this machine alone"
            )
        if token is not None and (len(token) < _MIN_TOKEN_CHARACTERS or not re.fullmatch(r"[!-~]+", token)):
            raise InputError(
                f"`token` should have at least {_MIN_TOKEN_CHARACTERS} characters, all of them ASCII letters, digits "
                "or signs; `python -c 'import secrets; print(secrets.token_urlsafe())'` makes one"
            )
        return cls(token, frozenset(name.lower().rstrip(".") for name in ("localhost", host, *names)))

    def is_known_host(self, header: str) -> bool:
        """Whether a Host header names this service.

        A page of another site can let its own host name point to this machine, and then send requests as if it were
        this site (DNS rebinding). Therefore only known names are accepted. Every IP address is accepted.
        """
        name = host_of(header)
        return name is not None and (name in self.names or _address(name) is not None)

    def is_authorized(self, header: str) -> bool:
        """Whether an Authorization header has the token, as Bearer token or, from browsers, as password of Basic."""
        if self.token is None:
            return True
        scheme, _, given = header.partition(" ")
        if scheme.lower() == "basic":
            try:
                given = base64.b64decode(given, validate=True).decode("utf-8").partition(":")[2]
            except (binascii.Error, ValueError):
                return False
        elif scheme.lower() != "bearer":
            return False
        # The time of this comparison does not depend on the place of the first difference.
        return hmac.compare_digest(given.strip().encode("utf-8", "surrogatepass"), self.token.encode())


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    address = _address(host)
    return host.lower() == "localhost" if address is None else address.is_loopback


def host_of(header: str) -> str | None:
    """Return the host of a Host header or of an origin, without its port and in lower case; None if it has none."""
    found = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^\s:/@\[\]]+)(?::\d{1,5})?", header.strip())
    return found[1].strip("[]").lower().rstrip(".") if found else None


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

# The default Content-Security-Policy. A page that loads anything has its own.
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
_LARGE_BODY = 1 << 18  # bytes
_LARGE_BYTES_PER_SECOND = 8_000_000  # of such bodies, one after another
_DISCARD_SECONDS = 2.0  # the longest time in which the rest of a refused body is read
_MOST_DISCARDING = 32  # the most connections on which that is done at a time
_OPEN = "/health"  # the only path that needs no token
_METHODS = ("GET", "HEAD", "POST")


class Refusal(Exception):
    """The answer to a request that is not passed on."""

    def __init__(self, status: int, message: str, headers: Headers | None = None) -> None:
        super().__init__(message)
        self.status, self.headers = status, headers or []


class Guard:
    """An ASGI application that checks requests before it passes them to another one.

    Args:
        app: the application.
        access: who may send requests.
        limits: the limits of requests.
        measures: the counters of requests.
    """

    def __init__(self, app: App, access: Access, limits: Limits, measures: Measures) -> None:
        self.app, self.access, self.limits, self.measures = app, access, limits, measures
        self.n_requests = 0  # whose bodies have arrived
        self.n_arriving = 0  # bytes of bodies that have not arrived as a whole
        self.n_discarding = 0  # connections on which the rest of a refused body is read
        self._large = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        method = scope["method"] if scope["method"] in _METHODS else "other"
        answer = _Answer(send, _CLOSE if _has_body(scope) else [], is_head=method == "HEAD")
        if method == "HEAD":  # the answer of GET without the body
            scope = {**scope, "method": "GET"}
        self.measures.in_progress.inc()
        try:
            async with asyncio.timeout(2 * self.limits.seconds):  # a client may also fail to read its answer
                await self._answer(scope, receive, answer)
        except Refusal as refusal:
            await answer.refuse(refusal, lambda: self._discard(receive))
        except TimeoutError:
            late = "the answer took too long; ask for less, or try again later"
            await answer.refuse(Refusal(503, late, [(b"retry-after", b"5")]))
        except Exception:
            logger.exception("a request to %r failed", scope["path"])
            await answer.refuse(Refusal(500, "an error occurred in the service; its log says more"))
        finally:
            self.measures.in_progress.dec()
            route = getattr(scope.get("route"), "path", "other")
            self.measures.requests.labels(route, method, str(answer.status)).inc()
            self.measures.seconds.labels(route).observe(time.perf_counter() - began)

    async def _answer(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        headers = _headers(scope)
        self._check(scope, headers)
        body = await self._body(headers, receive)
        answer.unread = []
        if len(body) > _LARGE_BODY:
            await self._spaced(len(body))
        if self.n_requests >= self.limits.requests and scope["path"] != _OPEN:
            raise self._busy()
        given = [body]

        async def replay() -> Message:
            if given:
                return {"type": "http.request", "body": given.pop(), "more_body": False}
            return await receive()

        self.n_requests += 1
        try:
            async with asyncio.timeout(self.limits.seconds):
                await self.app(scope, replay, answer)
        finally:
            self.n_requests -= 1

    async def _discard(self, receive: Receive) -> None:
        """Read the rest of a refused body for a short time.

        Most clients read an answer only after they have sent everything. If the connection were closed before, they
        would report a broken connection instead of the answer.
        """
        if self.n_discarding >= _MOST_DISCARDING:
            return
        self.n_discarding += 1
        try:
            async with asyncio.timeout(min(_DISCARD_SECONDS, self.limits.seconds)):
                while (await receive()).get("more_body", False):
                    pass
        except TimeoutError:
            pass
        finally:
            self.n_discarding -= 1

    def _busy(self) -> Refusal:
        self.measures.refused.inc()
        return Refusal(503, "the service is busy with other requests; try again in a second", [(b"retry-after", b"1")])

    async def _spaced(self, size: int) -> None:
        """Wait, so that large bodies follow each other slowly. While one is parsed, nobody else gets an answer."""
        async with self._large:
            await asyncio.sleep(size / _LARGE_BYTES_PER_SECOND)

    def _check(self, scope: Scope, headers: dict[str, str]) -> None:
        host = headers.get("host", "")
        if not self.access.is_known_host(host):
            raise Refusal(
                400, "the Host header names another site; start the service with --allow-host NAME (in Python, `names`)"
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
                    part = message.get("body", b"")
                    body += part
                    self.n_arriving += len(part)
                    if len(body) > most:
                        raise too_large
                    if self.n_arriving > self.limits.requests * most:
                        raise self._busy()
                    if not message.get("more_body", False):
                        return bytes(body)
        except TimeoutError:
            raise Refusal(
                408, f"the body did not arrive within {self.limits.seconds:g} seconds; send it faster"
            ) from None
        finally:
            self.n_arriving -= len(body)


_CLOSE: Headers = [(b"connection", b"close")]


def _has_body(scope: Scope) -> bool:
    return any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])


def _check_origin(host: str, headers: dict[str, str]) -> None:
    """Refuse requests that a page of another site could send without the user's knowledge."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refusal(415, "the body should be JSON; send it with the header 'Content-Type: application/json'")
    origin = headers.get("origin")
    is_foreign = origin is not None and not _is_at(origin, host)
    if is_foreign or headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise Refusal(403, "pages of other sites may not send anything to the service")


def _is_at(origin: str, host: str) -> bool:
    """Return whether an Origin header names the host of a Host header."""
    try:
        return host_of(urlsplit(origin).netloc) == host_of(host)
    except ValueError:  # such as http://[::1
        return False


def _headers(scope: Scope) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        if key in ("host", "authorization", "content-length", "content-type", "origin") and key in found:
            raise Refusal(400, f"the header {key} is there twice; send it once")
        found[key] = value.decode("latin-1")
    return found


class _Answer:
    """Sends an answer with the headers that all answers have.

    Args:
        send: sends a message.
        unread: headers of an answer that is sent before the whole body was read. They close the connection, because a
            client could otherwise keep it open by sending the rest slowly.
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

    async def refuse(self, refusal: Refusal, discard: Callable[[], Awaitable[None]] | None = None) -> None:
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
        if self.unread and discard is not None:
            await self({"type": "http.response.body", "body": body, "more_body": True})
            await discard()
            body = b""
        await self({"type": "http.response.body", "body": body, "more_body": False})
