"""Covariates of documents: a number or a category for each."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..text.characters import brief, replace_surrogates
from .missing import are_marked_numbers, as_number, is_mark, is_missing, values_of

logger = logging.getLogger("topicloom")


_EXACT = 2**53  # up to here, a float64 holds every whole number


@dataclass(frozen=True, eq=False)
class Categories:
    """A categorical covariate.

    Attributes:
        codes: (n_docs,) int32, the position of each document's value in `names`; -1 if the value is unknown.
        names: the distinct values, sorted.
    """

    codes: npt.NDArray[np.int32]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.codes)

    def values(self) -> list[str | None]:
        """Return the value of each document; None if it is unknown."""
        return [None if code < 0 else self.names[code] for code in self.codes.tolist()]


Covariate: TypeAlias = "npt.NDArray[np.float64] | Categories"


def covariates_of(given: Mapping[str, Iterable[Any]] | None) -> dict[str, Covariate]:
    """Convert covariates. Columns of numbers become float64, and others categories.

    Strings are categories, even if they spell numbers; `spelled_numbers` converts those of files.

    Raises:
        InputError: a covariate is not a list of numbers or strings.
    """
    if given is not None and not isinstance(given, Mapping):
        raise InputError(f'`covariates` is a {type(given).__name__}; give a dictionary such as {{"price": [1.5, 2.0]}}')
    names = {name: replace_surrogates(str(name)) for name in given or {}}
    return {names[name]: _covariate(names[name], values) for name, values in (given or {}).items()}


def plain_values(covariate: Covariate) -> list[str | None] | list[float | None]:
    """Return the value of each document as plain Python; None if it is unknown.

    If all numbers are whole, as years are, they are integers.
    """
    if isinstance(covariate, Categories):
        return covariate.values()
    known = covariate[~np.isnan(covariate)]
    whole = bool((np.abs(known) < _EXACT).all() and (known == np.floor(known)).all())
    return [None if math.isnan(value) else int(value) if whole else value for value in covariate.tolist()]


def spelled_numbers(values: Sequence[str | None]) -> Sequence[str | float | None]:
    """Return a column of a file as numbers, with NaN for missing values, if there is no other word in it."""
    numbers = [as_number(value) for value in values]
    is_column_of_numbers = None not in numbers and any(number == number for number in numbers)  # NaN is not itself
    return numbers if is_column_of_numbers else values


def covariate_like(values: Sequence[str | None], *, numbers: bool) -> Covariate:
    """Return a column of a file as a covariate of the type that it has in other documents.

    Args:
        values: the value of each document.
        numbers: whether it is one of numbers, among which other words are unknown values.
    """
    if not numbers:
        return _categories(values)
    found = (as_number(value) for value in values)
    return np.array([math.nan if number is None else number for number in found], np.float64)


def _covariate(name: str, values: Iterable[Any]) -> Covariate:
    if isinstance(values, Categories):
        return values
    column = list(values_of(f"the covariate {name!r}", values))
    known = [value for value in column if not is_missing(value)]
    if any(isinstance(value, list | tuple | dict | np.ndarray) for value in known):
        raise InputError(
            f"the covariate {name!r} contains a list or a dictionary; give each document a number or a string"
        )
    numbers = [as_number(value) for value in column]
    are_strings = all(isinstance(value, str) for value in known)
    if None not in numbers and not (known and are_strings):
        return np.array(numbers, np.float64)
    _warn_of_numbers(name, column, numbers)
    if are_marked_numbers(column):
        column = [None if is_mark(value) else value for value in column]
    return _categories(column)


def _categories(column: Sequence[Any]) -> Categories:
    as_text = ["" if is_missing(value) else replace_surrogates(str(value)) for value in column]
    names = tuple(sorted({text for text, value in zip(as_text, column, strict=True) if not is_missing(value)}))
    place = {each: code for code, each in enumerate(names)}
    codes = [-1 if is_missing(value) else place[text] for text, value in zip(as_text, column, strict=True)]
    return Categories(np.array(codes, np.int32), names)


def _warn_of_numbers(name: str, column: Sequence[Any], numbers: Sequence[float | None]) -> None:
    """Warn that a column becomes a category although it has numbers, unless all its values are strings of numbers."""
    first = next((row for row, number in enumerate(numbers) if number is not None and not math.isnan(number)), None)
    if first is None:
        return
    if None in numbers:
        row = numbers.index(None)
        logger.warning(
            "the covariate %r is taken as a category although it has numbers, because it is %s in document %d; correct "
            "this value if the column should hold numbers", name, brief(column[row]), row,
        )  # fmt: skip
    elif are_marked_numbers(column):
        logger.warning(
            "the covariate %r is taken as a category, because its numbers are strings, such as %s in document %d; "
            "convert the column if it should hold numbers", name, brief(column[first]), first,
        )  # fmt: skip
