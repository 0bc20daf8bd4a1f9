"""The fields of documents: what is known of each document besides its counts, such as its label and its time."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..text.characters import replace_surrogates
from ..text.storage import StoredTexts, TextWriter
from ..text.strings import RowNumbers, Strings
from .covariates import Categories, Covariate, covariates_of
from .missing import are_marked_numbers, is_mark, is_missing, values_of
from .times import Times, parse_times

logger = logging.getLogger("topicloom")

MOST_IN_A_LIST = 1 << 16  # ids or labels; more are kept as bytes, which take a third of the memory
_HASHED_ROWS = 1 << 14

_NAMED = 5  # values in a message

Rows: TypeAlias = npt.NDArray[np.intp]
# What a network knows of a field before it reads a document: how many numbers a document has, or the categories' names.
FieldKind: TypeAlias = int | tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Fields:
    """The fields of n documents. A field that the documents do not have is None.

    Attributes:
        ids: a name for each document.
        labels: a class for each document; "" if it is unknown.
        times: (n_docs,) datetime64[us] in UTC; NaT if the time is unknown.
        texts: the raw texts.
        tokens: the tokens of each document, in their order. They are not saved.
        vectors: (n_docs, E) float32, a vector for each document, such as a sentence embedding.
        covariates: name -> (n_docs,) float64, with NaN for unknown values, or `Categories`.
    """

    ids: Sequence[str]
    labels: Sequence[str] | None = None
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
        """Convert fields to the types of this class.

        Args:
            n_docs: the number of documents.
            ids, labels, timestamps, vectors, covariates: as for `Corpus.from_texts`.
            texts: the raw texts.
            tokens: the tokens of each document.

        Raises:
            InputError: the length of a field is not `n_docs`, or a value cannot be read.
        """
        made = cls(
            numbers(n_docs) if ids is None else _strings("ids", ids),
            None if labels is None else _labels(labels),
            None if timestamps is None else parse_times(timestamps),
            texts,
            tokens,
            None if vectors is None else _vectors(vectors),
            covariates_of(covariates),
        )
        made.check(n_docs)
        return made

    def check(self, n_docs: int) -> None:
        """Check that all fields have the same length.

        Raises:
            InputError: the length of a field is not `n_docs`.
        """
        columns = {
            "timestamps" if part.name == "times" else part.name: getattr(self, part.name) for part in fields(self)
        }
        covariates = columns.pop("covariates")
        for name, column in (columns | {f"values of {name!r}": each for name, each in covariates.items()}).items():
            if column is not None and len(column) != n_docs:
                raise InputError(f"there are {len(column)} {name} and {n_docs} documents; give one for each")

    def take(self, rows: Rows) -> Fields:
        """Return the fields of some documents, in the order of `rows`. Texts on disk are not read."""

        def pick(column: Any) -> Any:
            if column is None:
                return None
            if isinstance(column, StoredTexts | RowNumbers):
                return column.take(rows)
            if isinstance(column, Categories):
                return replace(column, codes=column.codes[rows])
            return column[rows] if isinstance(column, np.ndarray) else [column[row] for row in rows]

        covariates = {name: pick(column) for name, column in self.covariates.items()}
        columns = {part.name: pick(getattr(self, part.name)) for part in fields(self) if part.name != "covariates"}
        columns |= {name: compact(columns[name]) for name in ("ids", "labels") if columns[name] is not None}
        return Fields(**columns, covariates=covariates)

    def kinds(self) -> dict[str, FieldKind]:
        """Return the kind of each field that `array` returns, by its name.

        Returns:
            vectors: the length E of a vector; times and covariates of numbers: 1; categories: their names.
        """
        found: dict[str, FieldKind] = {} if self.vectors is None else {"vectors": self.vectors.shape[1]}
        found |= {} if self.times is None else {"times": 1}
        return found | {
            name: each.names if isinstance(each, Categories) else 1 for name, each in self.covariates.items()
        }

    def array(self, name: str, kind: FieldKind | None = None) -> npt.NDArray[Any]:
        """Return a field as numbers that a network can read.

        Args:
            name: "vectors", "times", or the name of a covariate.
            kind: the kind that it has in the documents of training; None if these are those.

        Returns:
            vectors: (n_docs, E) float32; times: (n_docs,) float32, in days since 1970; a covariate: (n_docs,) float32,
            or int64 codes if it is categorical, which are positions among the categories of training.

        Raises:
            InputError: the documents do not have this field, or it is of another kind.
        """
        if name == "vectors" and self.vectors is not None:
            if kind not in (None, self.vectors.shape[1]):
                raise InputError(
                    f"the vectors of these documents have {self.vectors.shape[1]} numbers, and those of the training "
                    f"documents {kind}; make both with the same model"
                )
            return self.vectors
        if name == "times" and self.times is not None:
            days = (self.times - np.datetime64(0, "us")) / np.timedelta64(1, "D")
            return np.asarray(days, np.float32)
        if name in self.covariates:
            return _numbers(name, self.covariates[name], kind)
        raise no_field(name)

    def digests(self) -> dict[str, str]:
        """Return a digest of each field that `array` returns, by its name."""
        names = [name for name in ("vectors", "times") if getattr(self, name) is not None]
        return {name: array_digest(self.array(name)) for name in (*names, *self.covariates)}


def no_field(name: str) -> InputError:
    """Return the error that says that documents lack a field."""
    return InputError(
        f"the model reads the field {name!r} of each document, which these documents do not have; give it when the "
        "corpus is made (`vectors`, `timestamps` or `covariates`)"
    )


def _numbers(name: str, covariate: Covariate, kind: FieldKind | None) -> npt.NDArray[Any]:
    """Return a covariate as `Fields.array` does."""
    if not isinstance(covariate, Categories):
        if not isinstance(kind, tuple):
            return covariate.astype(np.float32)
        if np.isnan(covariate).all():  # a column without a value is taken as one of numbers
            return np.full(len(covariate), -1, np.int64)
        raise InputError(
            f"the covariate {name!r} has numbers, but categories in the training documents; give categories"
        )
    if kind is None or kind == covariate.names:
        return covariate.codes.astype(np.int64)
    if not isinstance(kind, tuple):
        raise InputError(f"the covariate {name!r} has categories, but numbers in the training documents; give numbers")
    places = {value: code for code, value in enumerate(kind)}
    codes = np.array([*(places.get(value, -1) for value in covariate.names), -1], np.int64)  # the last: not known
    used = set(covariate.codes.tolist())
    if new := [repr(value) for code, value in enumerate(covariate.names) if codes[code] < 0 and code in used]:
        logger.warning(
            "the covariate %r has values that no training document has, which the model takes as unknown: %s%s",
            name, ", ".join(new[:_NAMED]), " and more" if len(new) > _NAMED else "",
        )  # fmt: skip
    chosen: npt.NDArray[Any] = codes[covariate.codes]
    return chosen


def array_digest(array: npt.NDArray[Any]) -> str:
    """Return a short digest of the numbers and the shape of an array."""
    digest = hashlib.sha256(f"{array.dtype.str} {array.shape}".encode())
    for start in range(0, len(array), _HASHED_ROWS):  # an array on disk need not fit in memory
        digest.update(np.ascontiguousarray(array[start : start + _HASHED_ROWS]).data)
    return digest.hexdigest()[:16]


class WithFields:
    """Properties that return the fields of the documents of a class."""

    fields: Fields

    @property
    def ids(self) -> Sequence[str]:
        """A name for each document: "0", "1", ... unless given. Of 65,536 documents or fewer, a list.

        For more documents, it is a sequence that equals a list of the same strings and takes less memory. The same
        holds for `labels`.
        """
        return self.fields.ids

    @property
    def labels(self) -> Sequence[str] | None:
        """A class for each document, "" if it is unknown; None if the documents have no labels."""
        return self.fields.labels

    @property
    def times(self) -> Times | None:
        """(n_docs,) datetime64[us] in UTC, NaT if the time is unknown; None if the documents have no times."""
        return self.fields.times

    @property
    def texts(self) -> Sequence[str] | None:
        """The raw texts, which a loaded corpus reads from disk when they are needed; None if they were not kept."""
        return self.fields.texts

    @property
    def vectors(self) -> npt.NDArray[np.float32] | None:
        """(n_docs, E) float32, a vector for each document; None if the documents have no vectors."""
        return self.fields.vectors

    @property
    def covariates(self) -> Mapping[str, Covariate]:
        """Name -> (n_docs,) float64, with NaN for unknown values, or `Categories`."""
        return self.fields.covariates


def numbers(count: int) -> Sequence[str]:
    """Return "0", "1", ...: the ids of documents without ids of their own."""
    return compact(RowNumbers(range(count)))


def compact(strings: Sequence[str]) -> Sequence[str]:
    """Return a list of strings if there are not many, and otherwise a sequence that takes less memory than a list."""
    if len(strings) <= MOST_IN_A_LIST:
        return strings if isinstance(strings, list) else list(strings)
    if isinstance(strings, Strings):
        return strings
    with TextWriter() as writer:
        for each in strings:
            writer.append(each)
        return writer.finish()


def _strings(name: str, values: Iterable[Any]) -> Sequence[str]:
    if isinstance(values, Strings):
        return compact(values)
    column = values_of(f"`{name}`", list(values) if isinstance(values, str) else values)  # "aab" is three labels
    return compact(["" if is_missing(value) else replace_surrogates(str(value)) for value in column])


def _labels(values: Iterable[Any]) -> Sequence[str]:
    """Convert labels. Where all others are numbers, a mark such as "N/A" stands for an unknown class."""
    strings = _strings("labels", values)
    return compact(["" if is_mark(each) else each for each in strings]) if are_marked_numbers(strings) else strings


def _vectors(values: Any) -> npt.NDArray[np.float32]:
    try:
        vectors = np.asarray(values, np.float32)
    except (TypeError, ValueError):
        raise InputError(
            "`vectors` cannot be read; give an (n_docs, E) array, with the same number of values for each document"
        ) from None
    if vectors.ndim != 2:
        raise InputError(f"`vectors` has shape {vectors.shape}; give an (n_docs, E) array")
    if not np.isfinite(vectors).all():
        row = int((~np.isfinite(vectors)).any(1).argmax())
        raise InputError(f"the vector of document {row} contains a number that is not finite; replace it")
    return vectors
