"""Services with OpenAI's interface: an address, a key from the environment, and requests that are tried again."""

from __future__ import annotations

import json
import logging
import os
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from ..errors import InputError, SettingError

logger = logging.getLogger("topicloom")

_OPENAI_KEY, _OPENAI = "OPENAI_API_KEY", "api.openai.com"
_SECONDS, _PATIENCE = 60.0, 120.0  # for an answer, and for all attempts at one request
_UNREACHABLE = 5.0  # seconds for all attempts, if there is no such host, or nothing listens there
_FIRST_PAUSE = 1.0
_TRANSIENT = (408, 409, 425, 429, 500, 502, 503, 504, 529)
_REFUSES = (400, 413, 422)
_LONG_PAUSE = 4.0  # seconds, from which a pause is worth a line
_WHAT_TO_CHECK = "; check the address and the model's name"  # services answer 404 to either


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirects, which would send texts and the key elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        return None


def is_address(address: object) -> bool:
    """Return whether a service can be asked at an address: http or https, a host, and nothing that a URL cannot have.

    >>> is_address("http://localhost:11434/v1"), is_address("localhost:11434"), is_address("http://localhost:x/v1")
    (True, False, False)
    """
    if not isinstance(address, str) or not address.isprintable() or " " in address:
        return False
    try:
        parts = urlsplit(address)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and parts.path.isascii()
    except ValueError:  # of a port that is no number, or of half a bracket
        return False


class RequestRefusedError(InputError):
    """A service refuses the content of a request, perhaps because a text is too long."""


class Service:
    """A service with OpenAI's interface.

    Its key is an environment variable or, for api.openai.com, also OPENAI_API_KEY. It is sent over https, or to this
    machine. Redirects are not followed.

    Args:
        address: such as "https://host/v1", which `is_address` accepts.
        path: what is asked for there, such as "/embeddings".
        key: the name of the environment variable with the key.
        what: what the service is, such as "an encoder", for messages.
        seconds: how long to wait for an answer; no attempt at a request begins later than after twice as long.

    Raises:
        SettingError: the address has a user, a password or a query.
        InputError: the key has characters that no key has, or would be sent over a connection that is not encrypted.
    """

    def __init__(self, address: str, path: str, key: str, what: str, seconds: float | None = None) -> None:
        parts = urlsplit(address)
        if parts.username or parts.password or parts.query:
            raise SettingError(f"the address of {what} has no user, password or query; give the key by {key}")
        place = parts.path.rstrip("/")
        self.address = f"{parts.scheme}://{parts.netloc}{place}{'' if place.endswith(path) else path}"
        self.host = parts.netloc
        self.is_here = parts.hostname in ("localhost", "127.0.0.1", "::1")
        self.seconds = _SECONDS if seconds is None else seconds
        self._patience = _PATIENCE if seconds is None else 2 * seconds
        self._key, self._has_said = key, False
        secret = os.environ.get(key) or (os.environ.get(_OPENAI_KEY) if parts.hostname == _OPENAI else None)
        secret = (secret or "").strip()  # a key from a file may end in a new line
        if not secret.isascii() or not secret.isprintable():  # the error of the request would show the key
            raise InputError(f"the key of {key} has characters that a key cannot have; copy it again")
        if secret and parts.scheme == "http" and not self.is_here:
            raise InputError(
                f"{address} is not encrypted, so the key of {key} is not sent there; give an https address"
            )
        self.headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {secret}"} if secret else {})
        proxies = [urllib.request.ProxyHandler({})] if self.is_here else []
        self._opener = urllib.request.build_opener(_NoRedirects, *proxies)

    def answer(self, content: Mapping[str, Any]) -> bytes:
        """Send a request, again after a pause if the service is busy or cannot be reached, and return the answer.

        Args:
            content: what is sent, as JSON.

        Raises:
            RequestRefusedError: the service refuses the content.
            InputError: the service cannot be reached, stays busy, or refuses the key or the address.
        """
        body = json.dumps(content).encode()
        began, pause = time.monotonic(), _FIRST_PAUSE
        end = began + self._patience
        while True:
            wait = pause
            try:
                request = urllib.request.Request(self.address, body, self.headers)
                with self._opener.open(request, timeout=self.seconds) as response:
                    answer: bytes = response.read()
                    return answer
            except urllib.error.HTTPError as error:
                reason = f"{error.code} {error.reason}{_detail(error)}"
                if error.code in _REFUSES:
                    raise RequestRefusedError(
                        f"{self.address} refuses the texts: {reason}; check the model's name"
                    ) from None
                if error.code not in _TRANSIENT:
                    about = f"; give the key by {self._key}" if error.code in (401, 403) else _WHAT_TO_CHECK
                    raise InputError(f"{self.address} answers: {reason}{about}") from None
                wait = max(wait, _asked_pause(error))
            except (
                OSError,
                ValueError,
                HTTPException,
            ) as error:  # no connection, too slow, or a broken answer
                cause = getattr(error, "reason", error)
                reason = " ".join(str(cause).split()) or type(error).__name__
                if isinstance(cause, ConnectionRefusedError | socket.gaierror):
                    end = min(end, began + _UNREACHABLE)
            if time.monotonic() + wait > end:
                raise InputError(
                    f"{self.address} does not answer ({reason:.200}); check the address, or try again later"
                )
            self._say_that_it_waits(wait, reason, end - began)
            time.sleep(wait)
            pause = min(2 * pause, 30.0)

    def _say_that_it_waits(self, wait: float, reason: str, seconds: float) -> None:
        """Say once why nothing happens for a while."""
        if wait >= _LONG_PAUSE and not self._has_said:
            self._has_said = True
            logger.warning(
                "%s does not answer (%.200s); each request is sent again for up to %.0f seconds",
                self.host, reason, seconds,
            )  # fmt: skip


def _detail(error: urllib.error.HTTPError) -> str:
    """Return what a service says about an error."""
    try:
        with error:
            said = json.loads(error.read(10_000))
        found = said.get("error", said)
        message = found.get("message", found.get("detail", "")) if isinstance(found, Mapping) else found
    except (OSError, ValueError, HTTPException, AttributeError):
        return ""
    return f" ({' '.join(str(message).split()):.200})" if message else ""


def _asked_pause(error: urllib.error.HTTPError) -> float:
    """Return the seconds that a service asks to wait."""
    try:
        return max(0.0, float(error.headers.get("Retry-After", 0)))
    except (TypeError, ValueError):
        return 0.0
