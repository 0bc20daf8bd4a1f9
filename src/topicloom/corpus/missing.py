"""Columns of values, one for each document, and the values and marks in them that stand for missing ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..errors import InputError
from ..text.characters import brief

_MARKS = frozenset({"", "-", "#n/a", "#na", "<na>", "n/a", "na", "nan", "nat", "none", "null"})


def is_missing(value: Any) -> bool:
    """Return whether a value stands for an unknown one: None, NaN, NaT or pandas' NA."""
    if value is None:
        return True
    if isinstance(value, float):
        return math.isnan(value)
    if isinstance(value, str | int):
        return False
    try:
        return bool(value != value)
    except TypeError:  # pandas' NA has no truth value
        return True
    except ValueError:  # an array, which is a value that is known
        return False


def values_of(name: str, column: Any) -> Iterable[Any]:
    """Return a column; of a tensor of PyTorch, its numbers, as its elements are written tensor(3).

    Args:
        name: what the column is, for messages.
        column: one value for each document.

    Raises:
        InputError: the column is no list of values, or it does not say which value belongs to which document.
    """
    advice = "give a list with one value for each document"
    if isinstance(column, str | bytes) or not isinstance(column, Iterable):
        raise InputError(f"{name} is {brief(column)}; {advice}")
    if isinstance(column, Mapping):
        raise InputError(f"{name} is a mapping; {advice}, in the order of the documents")
    if isinstance(column, set | frozenset):
        raise InputError(f"{name} is a set, which has no order; {advice}")
    if getattr(column, "ndim", 1) != 1:
        raise InputError(f"{name} has shape {tuple(getattr(column, 'shape', ()))}; {advice}")
    return column.tolist() if hasattr(column, "tolist") and hasattr(column, "requires_grad") else column


def is_mark(value: Any) -> bool:
    """Return whether a value is one of the usual marks of a missing value in tables, such as "N/A" or an empty cell.

    Among numbers and times, a mark can mean nothing else. Among words it may be a word, such as the code of Namibia.
    """
    return isinstance(value, str) and value.strip().casefold() in _MARKS


def as_number(value: Any) -> float | None:
    """Return the number that a value is or spells, NaN for a missing value or a mark of one, and None for words."""
    if is_missing(value) or is_mark(value):
        return math.nan
    if isinstance(value, bool) or not isinstance(value, str | int | float | np.number):
        return None
    try:
        return float(value)
    except (ValueError, TypeError, OverflowError):
        return None


def are_marked_numbers(values: Iterable[Any]) -> bool:
    """Return whether values are numbers, or strings that spell numbers, but for marks of missing values among them."""
    n_marks = n_numbers = 0
    for value in values:
        number = as_number(value)
        if number is None:
            return False
        n_marks += is_mark(value)
        n_numbers += not math.isnan(number)
    return n_marks > 0 and n_numbers > 0
