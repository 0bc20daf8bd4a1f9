"""The fields of a corpus: what is known of each document besides its counts, each of one type and of one length."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..text.characters import replace_surrogates
from ..text.storage import StoredTexts
from .times import Times, parse_times

Rows: TypeAlias = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Categories:
    """A categorical covariate.

    Attributes:
        codes: (n_docs,) int32, the place of each document's value in `names`; -1 where the value is not known.
        names: the different values, sorted.
    """

    codes: npt.NDArray[np.int32]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.codes)

    def values(self) -> list[str | None]:
        """Return each document's value; None where it is not known."""
        return [None if code < 0 else self.names[code] for code in self.codes.tolist()]


Covariate: TypeAlias = "npt.NDArray[np.float64] | Categories"


@dataclass(frozen=True, eq=False)
class Fields:
    """The fields of n documents; a field that is None is not known of any of them.

    Attributes:
        ids: a name for each document.
        labels: a class for each document; "" where it is not known.
        times: (n_docs,) datetime64[us] in UTC; NaT where the time is not known.
        texts: the raw texts.
        tokens: the documents as lists of tokens in their order; not saved.
        vectors: (n_docs, E) float32, a vector for each document, such as a sentence embedding.
        covariates: by name, (n_docs,) float64 (NaN where not known) or `Categories`.
    """

    ids: list[str]
    labels: list[str] | None = None
    times: Times | None = None
    texts: Sequence[str] | None = None
    tokens: Sequence[Sequence[str]] | None = None
    vectors: npt.NDArray[np.float32] | None = None
    covariates: Mapping[str, Covariate] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        n_docs: int,
        *,
        ids: Iterable[Any] | None = None,
        labels: Iterable[Any] | None = None,
        timestamps: Iterable[Any] | None = None,
        texts: Sequence[str] | None = None,
        tokens: Sequence[Sequence[str]] | None = None,
        vectors: Any = None,
        covariates: Mapping[str, Iterable[Any]] | None = None,
    ) -> Fields:
        """Make fields of what users give, of any type that can be read.

        Raises:
            InputError: a field has another length than `n_docs`, or a value that cannot be read.
        """
        made = cls(
            numbers(n_docs) if ids is None else _strings(ids),
            None if labels is None else _strings(labels),
            None if timestamps is None else parse_times(timestamps),
            texts,
            tokens,
            None if vectors is None else _vectors(vectors),
            {str(name): _covariate(str(name), values) for name, values in (covariates or {}).items()},
        )
        made.check(n_docs)
        return made

    def check(self, n_docs: int) -> None:
        """Raise InputError for the first field that has another length than `n_docs`."""
        columns = {
            "timestamps" if part.name == "times" else part.name: getattr(self, part.name) for part in fields(self)
        }
        covariates = columns.pop("covariates")
        for name, column in (columns | {f"values of {name!r}": each for name, each in covariates.items()}).items():
            if column is not None and len(column) != n_docs:
                raise InputError(f"there are {len(column)} {name} and {n_docs} documents; give one for each")

    def take(self, rows: Rows) -> Fields:
        """Return the fields of some rows, in the order given; memory-mapped texts are not read."""

        def pick(column: Any) -> Any:
            if column is None:
                return None
            if isinstance(column, StoredTexts):
                return column.take(rows)
            if isinstance(column, Categories):
                return replace(column, codes=column.codes[rows])
            return column[rows] if isinstance(column, np.ndarray) else [column[row] for row in rows]

        covariates = {name: pick(column) for name, column in self.covariates.items()}
        columns = {part.name: pick(getattr(self, part.name)) for part in fields(self) if part.name != "covariates"}
        return Fields(**columns, covariates=covariates)

    def array(self, name: str) -> npt.NDArray[Any]:
        """Return the field as numbers, as networks read it.

        Args:
            name: "vectors" (n_docs, E) float32; "times" (n_docs,) float32, days since 1970; or a covariate: (n_docs,)
                float32, or int64 codes of a categorical one.

        Raises:
            InputError: the documents have no such field.
        """
        if name == "vectors" and self.vectors is not None:
            return self.vectors
        if name == "times" and self.times is not None:
            days = (self.times - np.datetime64(0, "us")) / np.timedelta64(1, "D")
            return np.asarray(days, np.float32)
        if name in self.covariates:
            covariate = self.covariates[name]
            return (
                covariate.codes.astype(np.int64) if isinstance(covariate, Categories) else covariate.astype(np.float32)
            )
        raise InputError(f"the model reads the field {name!r} of each document, which these documents do not have")


class WithFields:
    """Reads the fields of what has some."""

    fields: Fields

    @property
    def ids(self) -> list[str]:
        """A name for each row: "0", "1", ... unless given."""
        return self.fields.ids

    @property
    def labels(self) -> list[str] | None:
        """A class for each row, "" where it is not known; or None."""
        return self.fields.labels

    @property
    def times(self) -> Times | None:
        """(n_docs,) datetime64[us] in UTC, NaT where the time is not known; or None."""
        return self.fields.times

    @property
    def texts(self) -> Sequence[str] | None:
        """The raw texts, or None; a loaded corpus reads them from disk when asked."""
        return self.fields.texts

    @property
    def vectors(self) -> npt.NDArray[np.float32] | None:
        """(n_docs, E) float32, a vector for each document; or None."""
        return self.fields.vectors

    @property
    def covariates(self) -> Mapping[str, Covariate]:
        """By name, (n_docs,) float64 or `Categories`."""
        return self.fields.covariates


def numbers(count: int) -> list[str]:
    """Return "0", "1", ...: the ids of documents that have no others."""
    return [str(row) for row in range(count)]


def is_missing(value: Any) -> bool:
    """Whether a value stands for one that is not known: None, NaN, NaT or pandas' NA."""
    if value is None:
        return True
    if isinstance(value, float):
        return math.isnan(value)
    if isinstance(value, str | int):
        return False
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas' NA has no truth value
        return True


def _strings(values: Iterable[Any]) -> list[str]:
    return ["" if is_missing(value) else replace_surrogates(str(value)) for value in values]


def _vectors(values: Any) -> npt.NDArray[np.float32]:
    try:
        vectors = np.asarray(values, np.float32)
    except (TypeError, ValueError):
        raise InputError("vectors have to be numbers, as many for each document; give an (n_docs, E) array") from None
    if vectors.ndim != 2:
        raise InputError(f"vectors have shape {vectors.shape}; give an (n_docs, E) array")
    if not np.isfinite(vectors).all():
        row = int((~np.isfinite(vectors)).any(1).argmax())
        raise InputError(f"the vector of document {row} holds a number that is not finite; correct it")
    return vectors


def _covariate(name: str, values: Iterable[Any]) -> Covariate:
    """Numbers become float64; anything else becomes categories."""
    if isinstance(values, Categories):
        return values
    column = list(values)
    known = [value for value in column if not is_missing(value)]
    if all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in known):
        return np.array([math.nan if is_missing(value) else float(value) for value in column], np.float64)
    if any(isinstance(value, list | tuple | dict | np.ndarray) for value in known):
        raise InputError(
            f"the covariate {name!r} holds a list or a dictionary; give each document a number or a string"
        )
    names = tuple(sorted({str(value) for value in known}))
    place = {each: code for code, each in enumerate(names)}
    codes = [-1 if is_missing(value) else place[str(value)] for value in column]
    return Categories(np.array(codes, np.int32), names)
