"""Who may ask: the address that is listened on, the token, and the names by which a browser may call the service."""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import InputError

_SHORTEST_TOKEN = 16  # characters


@dataclass(frozen=True)
class Access:
    """Who may ask.

    Attributes:
        token: what each request has to bring; None lets every request through.
        names: the host names, in lower case, by which requests may call the service.
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
        if token is not None and (len(token) < _SHORTEST_TOKEN or not re.fullmatch(r"[!-~]+", token)):
            raise InputError(
                f"`token` should have at least {_SHORTEST_TOKEN} characters, all of them ASCII letters, digits or "
                "signs; `python -c 'import secrets; print(secrets.token_urlsafe())'` makes one"
            )
        return cls(token, frozenset(name.lower().rstrip(".") for name in ("localhost", host, *names)))

    def is_known_host(self, header: str) -> bool:
        """Whether a Host header names this service.

        A page of another site can let its own name point to this machine, and then ask as if it were this site. It
        needs a name for that, so every address is accepted, and of names only the known ones.
        """
        name = host_of(header)
        return name is not None and (name in self.names or _address(name) is not None)

    def is_authorized(self, header: str) -> bool:
        """Whether an Authorization header has the token: as Bearer, or as the password of Basic, as browsers do."""
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
        # The comparison takes the same time wherever the two differ.
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
