"""The limits of the service: what one request may ask for, and how many are answered at a time."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ..errors import SettingError


@dataclass(frozen=True)
class Limits:
    """Limits of the service.

    Attributes:
        body: the greatest size of a request's body, in bytes.
        texts: the most texts in a request.
        characters: the greatest length of a text, in characters.
        documents: the most documents on a page of /api/documents.
        edits: the most edits that can be stored.
        requests: the most requests that are worked on at a time. Further ones are told to come back later (503).
        connections: the most open connections.
        seconds: the longest time in which a request has to arrive, and then to be answered.
    """

    body: int = 4_000_000
    texts: int = 256
    characters: int = 100_000
    documents: int = 200
    edits: int = 1_000
    requests: int = 64
    connections: int = 512
    seconds: float = 20.0

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise SettingError(f"`{field.name}` should be greater than 0; it is {getattr(self, field.name)!r}")
