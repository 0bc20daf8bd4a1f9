"""Pages of documents: the part of a sorted list that comes after a document (keyset pagination)."""

from __future__ import annotations

import math
import re
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import InputError

_CURSOR = re.compile(r"([0-9a-f]{8}):(-?[0-9][0-9.e+-]{0,40}):([0-9]{1,15})")


class Key(NamedTuple):
    """The place of a document in a sorted list."""

    value: float
    row: int

    def written(self, question: Any) -> str:
        """Return the place as text.

        Args:
            question: what distinguishes the list from others; it has a `repr` of its own.
        """
        return f"{_mark(question)}:{self.value!r}:{self.row}"

    @classmethod
    def parse(cls, text: str, question: Any) -> Key:
        """Read what `written` returned for the same question.

        Raises:
            InputError: the text is something else, or a place in another list.
        """
        found = _CURSOR.fullmatch(text)
        try:
            key = cls(float(found[2]), int(found[3])) if found and found[1] == _mark(question) else None
        except ValueError:
            key = None
        if key is None or not math.isfinite(key.value):
            raise InputError(
                "`after` should be the value of `next` in an earlier answer to the same `topic`, `q` and `id`"
            )
        return key


def _mark(question: Any) -> str:
    return sha256(repr(question).encode("utf-8", "backslashreplace")).hexdigest()[:8]


def following(rows: npt.NDArray[Any], after: Key | None, n: int) -> list[Key]:
    """Return the first documents after a place, in the order of their rows.

    Args:
        rows: (D,) the rows of the documents, in ascending order.
        after: where the list begins; None is its start.
        n: the length of the list.
    """
    start = 0 if after is None else int(np.searchsorted(rows, after.row, "right"))
    return [Key(0.0, row) for row in rows[start : start + n].tolist()]


def largest(values: npt.NDArray[Any], rows: npt.NDArray[Any], after: Key | None, n: int) -> list[Key]:
    """Return the documents with the largest values, largest first; of equal ones, the lower row comes first.

    Args:
        values: (D,) a number for each document.
        rows: (D,) the rows of the documents.
        after: where the list begins; None is its start.
        n: the length of the list.
    """
    if after is not None:
        last = np.asarray(after.value, values.dtype)
        later = (values < last) | ((values == last) & (rows > after.row))
        values, rows = values[later], rows[later]
    if len(values) > n:
        floor = -np.partition(-values, n - 1)[n - 1]  # the n-th largest value, so that few are sorted
        kept = values >= floor
        values, rows = values[kept], rows[kept]
    order = np.lexsort((rows, -values))[:n]
    return [Key(float(values[i]), int(rows[i])) for i in order]
