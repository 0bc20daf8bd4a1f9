"""Pieces of texts. No token crosses the border of a piece, so that each distinct piece is split into tokens only once.

Pieces of spaced text are UTF-8 between ASCII characters that no token contains. They are found by methods of `bytes`,
which are many times faster than a regular expression. Pieces of unspaced text are those of a segmenter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

Key = TypeVar("Key", bound="bytes | str")
Value = TypeVar("Value")

BOUNDARY = "\x1e"  # the piece after each document; it is blank, so no token contains it
_MOST = 1 << 18  # entries of a cache
_LONGEST = 64  # characters or bytes of a key
_BLOCK = 20_000  # characters
_RUNS = re.compile(rb"\x01{2,}")


class Cache(dict[Key, Value], Generic[Key, Value]):
    """The values of a function, which is called once for most keys. The memory is bounded.

    Args:
        function: the function from a key to its value.
    """

    def __init__(self, function: Callable[[Key], Value]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, key: Key) -> Value:
        value = self._function(key)
        if len(key) <= _LONGEST:
            if len(self) >= _MOST:
                self.clear()
            self[key] = value
        return value


def inner_characters(joiners: str) -> bytes:
    """Return a table for `spaced_pieces`: letters and digits in lower case, joiners, all beyond ASCII; else a blank."""
    kept = f"{joiners}{BOUNDARY}".encode()
    return bytes(c if c >= 128 or chr(c).isalnum() or c in kept else 32 for c in range(256)).lower()


def joined(texts: Sequence[str]) -> str:
    """All texts as one, with a boundary after each."""
    whole = "".join(f"{text} {BOUNDARY} " for text in texts)
    if whole.count(BOUNDARY) == len(texts):
        return whole
    return joined([text.replace(BOUNDARY, " ") for text in texts])


def in_blocks(texts: Sequence[str]) -> Iterator[str]:
    """Texts that are joined to blocks of some thousand characters, for segmenters, each call of which takes time."""
    block: list[str] = []
    length = 0
    for text in texts:
        block.append(text)
        length += len(text)
        if length >= _BLOCK:
            yield joined(block)
            block, length = [], 0
    if block:
        yield joined(block)


def spaced_pieces(text: str, table: bytes) -> list[bytes]:
    """Return the pieces of text that is written with spaces.

    Args:
        text: the text.
        table: the byte that each byte becomes; pieces lie between blanks.
    """
    return text.encode("utf-8", "surrogatepass").translate(table).split()


def join_runs(pieces: list[str], joins: Mapping[str, int]) -> list[str]:
    """Join the pieces of a segmenter that a token may cross.

    Args:
        pieces: the pieces.
        joins: 1 for each piece that is joined to neighbours of which this is true, too; 0 for others.
    """
    flags = bytes(map(joins.__getitem__, pieces))
    if b"\1\1" not in flags:
        return pieces
    found: list[str] = []
    place = 0
    for run in _RUNS.finditer(flags):
        found += pieces[place : run.start()]
        found.append("".join(pieces[run.start() : run.end()]))
        place = run.end()
    return found + pieces[place:]
