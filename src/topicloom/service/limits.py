"""The limits of the service: what one request may ask for, and how many are answered at a time."""

from __future__ import annotations

from dataclasses import dataclass

from ..settings import AtLeastOne, Positive, ReadableSettings, check_settings


@dataclass(frozen=True)
class Limits(ReadableSettings):
    """Limits of the service.

    Attributes:
        body: the greatest size of a request's body, in bytes.
        texts: the most texts in a request.
        characters: the greatest length of a text, in characters.
        documents: the most documents on a page of /api/documents.
        edits: the most edits that can be stored.
        requests: the most requests that are worked on at a time. Further ones are told to come back later (503).
        connections: the most open connections. Beyond it, the one that has been waited for longest is closed.
        seconds: the longest time in which a request has to arrive, and then to be answered.

    Raises:
        SettingError: there is no such limit, or it cannot have the value.
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
