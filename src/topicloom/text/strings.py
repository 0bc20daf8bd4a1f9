"""Sequences of strings that are not a Python list, because a list of a million strings takes a hundred megabytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
import numpy.typing as npt

_MOST_DIGITS = 18  # of a number of a row


class Strings(Sequence[str]):
    """A sequence of strings that equals any list, tuple or other sequence of the same strings."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Strings | list | tuple):
            return NotImplemented
        return len(self) == len(other) and all(ours == theirs for ours, theirs in zip(self, other, strict=True))


class RowNumbers(Strings):
    """The numbers of rows as strings, such as "0", "1", ..., which are made when they are read.

    Args:
        rows: the numbers.
    """

    def __init__(self, rows: range | npt.NDArray[np.intp]) -> None:
        self._rows = rows

    def take(self, rows: npt.NDArray[np.intp]) -> RowNumbers:
        """Select some of the strings."""
        return RowNumbers(np.asarray(self._rows)[rows])

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[str]:
        return map(str, map(int, self._rows))

    def __contains__(self, value: object) -> bool:
        """Return whether a string is among these, without making all of them."""
        if not isinstance(value, str) or not value.isdecimal() or len(value) > _MOST_DIGITS:
            return False
        return str(int(value)) == value and int(value) in self._rows

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> RowNumbers: ...
    def __getitem__(self, index: int | slice) -> str | RowNumbers:
        return RowNumbers(self._rows[index]) if isinstance(index, slice) else str(int(self._rows[index]))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, RowNumbers):
            return bool(np.array_equal(self._rows, other._rows))
        return super().__eq__(other)

    def __repr__(self) -> str:
        return f"RowNumbers({len(self):,} strings)"
