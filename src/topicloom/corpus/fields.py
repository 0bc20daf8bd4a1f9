"""The fields of documents besides their counts: ids, labels, times, texts, vectors and covariates."""

from __future__ import annotations

import hashlib
import logging
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from os import PathLike
from typing import Any, SupportsIndex, TypeAlias, cast, overload

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..messages import brief, counted
from ..text import TextEncoder
from ..text.strings import (
    RowNumbers,
    StoredTexts,
    Strings,
    TextWriter,
    is_utf8,
    numeric_array,
    pieces,
    plain_string,
    require_utf8,
)
from .dates import TimeReader, Times

logger = logging.getLogger("topicloom")

# Missing values: what stands for one in a list, a table or a file.

_EXACT = 2**53  # up to here, a float64 holds every whole number
# Codes that consist of digits. As numbers they would lose their zeros or their sign, and 12E3 would become 12000.
_CODE = re.compile(r"[+-]?0\d.*|\+\d{7,}|[+-]?\d+[eE]\d+")
# 2,13 and 1.234,5 in German, but 1,234 in English; 10%, €10, 10 € and -$1,234.50
_CURRENCY = "$¢£¥￥₩₹€元"
_WITH_MARKS = re.compile(rf"[+-]?(?:\d[\d.]*(?:,\d+)+|\d[\d.,]*\s?[%％‰{_CURRENCY}]|[{_CURRENCY}]\s?[+-]?\d[\d.,]*)")
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


def is_arrow_column(X: Any) -> bool:
    """Return whether X is a column of an Arrow table, which is neither a list nor an array."""
    return hasattr(X, "to_pylist") and hasattr(X, "null_count")


def values_of(name: str, column: Any) -> Iterable[Any]:
    """Return a column. That of a PyTorch tensor has numbers, because str() of its elements is tensor(3).

    What NumPy's mask hides is None, and so is a missing value of Arrow.

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
    if is_arrow_column(column):
        return list(cast(Any, column).to_pylist())
    if isinstance(column, np.ma.MaskedArray) and column.mask.any():
        pairs = zip(column.data, np.ma.getmaskarray(column), strict=True)
        return [None if is_hidden else value for value, is_hidden in pairs]
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
    if isinstance(value, bool) or not isinstance(value, str | int | float | np.number | Decimal):
        return None
    if isinstance(value, str) and "_" in value:  # 2020_10 is a code, which Python would read as 202010
        return None
    try:
        number = float(value)
    except (ValueError, TypeError, OverflowError):
        return None
    return number if _is_exact(value, number) else None


def _is_exact(value: Any, number: float) -> bool:
    """Return whether a float64 holds a whole number exactly, and any other without overflow or underflow."""
    if (abs(number) < _EXACT and number != 0) or math.isnan(number):
        return True
    if not isinstance(value, str):
        return not isinstance(value, int | np.integer | Decimal) or math.isinf(number) or int(value) == int(number)
    spelled = value.strip()
    if math.isinf(number):
        return not any(map(str.isdigit, spelled))  # inf, and not 1e400
    if number == 0:
        return not any(digit in "123456789" for digit in spelled.lower().partition("e")[0])
    try:
        return int(spelled) == int(number)
    except ValueError:  # with a point or an exponent, it is written to the precision of a float64
        return True


def as_float32(values: npt.NDArray[Any]) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
    """Return numbers as float32, and whether each became infinite or lost its digits because it is too small.

    Rounding within the precision of float32 is no fault.
    """
    with np.errstate(all="ignore"):
        stored = np.asarray(values, np.float32)
        if stored.dtype == values.dtype or values.dtype.kind in "biu":  # whole numbers are neither too large nor small
            return stored, np.zeros(stored.shape, bool)
        is_small = (np.abs(stored) < np.finfo(np.float32).tiny) & (stored != values)
        return stored, is_small | (np.isinf(stored) & np.isfinite(values))


def are_marked_numbers(values: Iterable[Any]) -> bool:
    """Return whether all values are numbers, spelled numbers or missing, with at least one number and one mark."""
    n_marks = n_numbers = 0
    for value in values:
        number = as_number(value)
        if number is None:
            return False
        n_marks += is_mark(value)
        n_numbers += not math.isnan(number)
    return n_marks > 0 and n_numbers > 0


# Dates and times of documents.


def parse_times(values: Iterable[Any], *, day_first: bool | None = None, date_format: str | None = None) -> Times:
    """Read a column of dates and times.

    Read are ISO 8601 ("2021-05-03", "2021-05-03T10:00:00+02:00"), years and months ("2021", "2021-05"), "2021/05/03",
    "2021年5月3日", "Feb 15 2015", "15 Feb 2015 11:35 UTC", the dates of e-mail, dates, datetimes and datetime64, and
    years or days as numbers (2021, 20210503). Numbers are also seconds, milliseconds, microseconds or nanoseconds since
    1970, which are told apart by their size, for times up to the end of 2099. "03/04/2015" is read if another row shows
    the order, as "15/02/2015" does. Times without a time zone are in UTC. Parts of a microsecond are cut off.

    None, NaN, NaT, pandas' NA, the usual marks such as "", "-" and "N/A", and MySQL's "0000-00-00" stand for an unknown
    time. Years are from 100 to 3000: many systems write year 1 or 9999 for a time that is not known.

    Args:
        values: one value for each document.
        day_first: whether dates such as "03/04/2015" begin with the day; None lets the column decide.
        date_format: the format of all strings, such as "%d.%m.%y", as `datetime.strptime` takes it.

    Returns:
        (n,) datetime64[us]; NaT if the time is unknown.

    Raises:
        InputError: a value cannot be read, or rows contradict each other; the message names the row.
        SettingError: `day_first` or `date_format` cannot be used.

    Examples:
        >>> from topicloom.corpus.fields import parse_times
        >>> parse_times(["2021-05-03", "2021年5月", 2021, "n/a"]).astype("datetime64[D]")
        array(['2021-05-03', '2021-05-01', '2021-01-01',        'NaT'],
              dtype='datetime64[D]')
        >>> parse_times(["03/04/2015", "15/02/2015"]).astype("datetime64[D]")
        array(['2015-04-03', '2015-02-15'], dtype='datetime64[D]')
    """
    reader = TimeReader(day_first, date_format)
    read_times(reader, values, first_row=0)
    return reader.finish()


def read_times(reader: TimeReader, values: Iterable[Any], first_row: int) -> None:
    """Let a reader of times read a column, or the next part of one, which begins with this row.

    Raises:
        InputError: a value cannot be read; the message names its row.
    """
    column = values_of("`timestamps`", values)
    if isinstance(column, np.ndarray) and column.dtype.kind == "M":
        reader.add(column, first_row)
    else:
        reader.add((None if is_missing(value) or is_mark(value) else value for value in column), first_row)


# Covariates of documents: a number or a category for each.


@dataclass(frozen=True, eq=False)
class Categories(Sequence[str | None]):
    """A categorical covariate: a sequence of the documents' values, in which None stands for an unknown value.

    It is indexed and compared as an array is: a number gives a value; a slice, a mask or an array of rows gives
    `Categories` with the same names; and `==` gives an array of truth values. NumPy and pandas convert it to objects.

    Attributes:
        codes: (n_docs,) int32, the position of each document's value in `names`; -1 if the value is unknown.
        names: the distinct values, sorted.

    Examples:
        >>> import topicloom as tl
        >>> corpus = tl.Corpus.from_counts([[1], [2], [3]], ["cat"], covariates={"shop": ["b", "a", None]})
        >>> corpus.covariates["shop"].names, corpus.covariates["shop"].codes
        (('a', 'b'), array([ 1,  0, -1], dtype=int32))
        >>> shops = corpus.covariates["shop"]
        >>> list(shops), shops[0], shops == "a"
        (['b', 'a', None], 'b', array([False,  True, False]))
        >>> list(shops[~corpus.is_empty & (shops != "b")])
        ['a', None]
    """

    codes: npt.NDArray[np.int32]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.codes)

    @overload
    def __getitem__(self, index: SupportsIndex) -> str | None: ...
    @overload
    def __getitem__(self, index: slice | npt.ArrayLike) -> Categories: ...
    def __getitem__(self, index: Any) -> str | Categories | None:
        found = self.codes[index]
        if isinstance(found, np.ndarray):
            if found.ndim != 1:
                raise IndexError(f"categories have one axis, and an index of {found.ndim} axes was given")
            return replace(self, codes=found)
        return None if found < 0 else self.names[found]

    def __iter__(self) -> Iterator[str | None]:
        return iter(self.values())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("categories are no array, so that NumPy has to copy them")
        names = np.array([*self.names, None], object)  # the last one is that of the code -1
        return names[self.codes].astype(object if dtype is None else dtype)

    def __eq__(self, other: object) -> npt.NDArray[np.bool_]:  # type: ignore[override]
        if other is None or isinstance(other, str):
            code = -1 if other is None else self.names.index(other) if other in self.names else len(self.names)
            return np.equal(self.codes, code)
        values = np.asarray(other, object)
        if values.ndim == 0:  # such as a number, which no category is
            return np.zeros(len(self), bool)
        if values.shape != self.codes.shape:
            raise InputError(f"{len(self)} categories cannot be compared with values of shape {values.shape}")
        return np.asarray(np.asarray(self) == values, bool)

    def __ne__(self, other: object) -> npt.NDArray[np.bool_]:  # type: ignore[override]
        return ~self.__eq__(other)

    __hash__ = None  # type: ignore[assignment]

    def values(self) -> list[str | None]:
        """Return the value of each document; None if it is unknown."""
        return [None if code < 0 else self.names[code] for code in self.codes.tolist()]


Covariate: TypeAlias = "npt.NDArray[np.float64] | Categories"


def covariates_of(given: Mapping[str, Iterable[Any]] | None) -> dict[str, Covariate]:
    """Convert covariates. Columns of numbers become float64, and others categories.

    Strings are categories, even if they spell numbers; `spelled_numbers` converts those of files.

    Raises:
        InputError: a covariate is not a list of numbers or strings, or a string contains a lone surrogate.
    """
    if given is not None and not isinstance(given, Mapping):
        raise InputError(f'`covariates` is a {type(given).__name__}; give a dictionary such as {{"price": [1.5, 2.0]}}')
    names = {name: require_utf8(str(name), "the name of a covariate") for name in given or {}}
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


def spelled_numbers(name: str, values: Sequence[str | None]) -> Sequence[str | float | None]:
    """Return a column of a file as numbers, with NaN for missing values, if there is no other word in it.

    Codes are words: a number with zeros before it (01234, 007), a plus sign before seven digits (+4930123456), and a
    whole number with an exponent (12E3), unless the exponent has a sign, as programs write it.

    Args:
        name: the name of the column, for a message.
        values: the value of each document.
    """
    numbers = [as_number(value) for value in values]
    if None in numbers or all(number != number for number in numbers):  # NaN is not itself
        return values
    if (row := next((row for row, value in enumerate(values) if is_code(value)), None)) is not None:
        logger.info(
            "the covariate %r is taken as a category, because %s in document %d is a code; if the column should hold "
            "numbers, write it as %s",
            name, brief(values[row]), row, f"{numbers[row]:.15g}",
        )  # fmt: skip
        return [None if value is None or is_mark(value) else value for value in values]
    return numbers


def is_code(value: Any) -> bool:
    """Return whether a string that spells a number is rather a code, such as 01234, 007, +4930123456 or 12E3."""
    return isinstance(value, str) and _CODE.fullmatch(value.strip()) is not None


def covariate_like(values: Sequence[str | None], *, numbers: bool) -> Covariate:
    """Return a column of a file as a covariate of the type that it has in other documents.

    Args:
        values: the value of each document.
        numbers: whether it is one of numbers, among which other words are unknown values.
    """
    if not numbers:
        return _categories("a covariate", values)
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
    column = [None if isinstance(value, str) and not value.strip() else value for value in column]  # an empty cell
    if are_marked_numbers(column):
        column = [None if is_mark(value) else value for value in column]
    return _categories(f"the covariate {name!r}", column)


def _categories(what: str, column: Sequence[Any]) -> Categories:
    as_text = _as_strings(what, column)
    names = tuple(sorted({text for text, value in zip(as_text, column, strict=True) if not is_missing(value)}))
    place = {each: code for code, each in enumerate(names)}
    codes = [-1 if is_missing(value) else place[text] for text, value in zip(as_text, column, strict=True)]
    return Categories(np.array(codes, np.int32), names)


def _warn_of_numbers(name: str, column: Sequence[Any], numbers: Sequence[float | None]) -> None:
    """Warn that a column becomes a category although it has numbers, unless all its values are strings of numbers."""
    marked = next((row for row, number in enumerate(numbers) if number is None), None)
    if marked is not None and all(
        number is not None or (isinstance(value, str) and _WITH_MARKS.fullmatch(value.strip()))
        for value, number in zip(column, numbers, strict=True)
    ):
        logger.warning(
            "the covariate %r is taken as a category, because its numbers have commas or signs, such as %s in document "
            "%d; write them with a decimal point, without a mark between thousands, %% or a currency, if the column "
            "should hold numbers",
            name, brief(column[marked]), marked,
        )  # fmt: skip
        return
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


MOST_IN_A_LIST = 1 << 16  # ids or labels; more are kept as bytes, which take a third of the memory
_HASHED_ROWS = 1 << 14

_NAMED = 5  # values in a message

Rows: TypeAlias = npt.NDArray[np.intp]
Vectors: TypeAlias = npt.NDArray[np.float16] | npt.NDArray[np.float32]
# What a network knows of a field before it reads a document: how many numbers a document has, or the categories' names.
FieldKind: TypeAlias = int | tuple[str, ...]


COPIES = "copies"  # the covariate that counts the documents with the same text


@dataclass(frozen=True, eq=False)
class Fields:
    """The fields of n documents. A field that the documents do not have is None.

    Attributes:
        ids: a name for each document.
        labels: a class for each document; "" if it is unknown.
        times: (n_docs,) datetime64[us] in UTC; NaT if the time is unknown.
        texts: the raw texts.
        tokens: the tokens of each document, in their order. They are not saved.
        vectors: (n_docs, E) float16 or float32, a vector for each document, such as a sentence embedding. Other types
            are rounded to float32. Zeros mean that a document has no vector. Vectors keep the lengths that they came
            with; what compares directions normalises them where it does so.
        covariates: name -> (n_docs,) float64, with NaN for unknown values, or `Categories`.
        encoder: what made the vectors; None if that is not known.

    Examples:
        >>> from topicloom.corpus.fields import Fields
        >>> fields = Fields.of(2, labels=["pets", "birds"], timestamps=["2021", None])
        >>> fields.ids, fields.labels
        (['0', '1'], ['pets', 'birds'])
        >>> fields.times.astype("datetime64[Y]")
        array(['2021',  'NaT'], dtype='datetime64[Y]')
    """

    ids: Sequence[str]
    labels: Sequence[str] | None = None
    times: Times | None = None
    texts: Sequence[str] | None = None
    tokens: Sequence[Sequence[str]] | None = None
    vectors: Vectors | None = None
    covariates: Mapping[str, Covariate] = field(default_factory=dict)
    encoder: TextEncoder | None = None

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
        encoder: TextEncoder | None = None,
        day_first: bool | None = None,
        date_format: str | None = None,
    ) -> Fields:
        """Convert fields to the types of this class.

        Args:
            n_docs: the number of documents.
            ids: a name for each document; None numbers them.
            labels: a class for each document; None and "" are unknown.
            timestamps: a date or time for each document, as `parse_times` reads them.
            vectors: (n_docs, E) a vector for each document.
            covariates: name -> one number or category for each document.
            encoder: what made the vectors.
            texts: the raw texts.
            tokens: the tokens of each document.
            day_first, date_format: how dates are written, as `parse_times` takes it.

        Raises:
            InputError: the length of a field is not `n_docs`, or a value cannot be read.
        """
        if timestamps is None:
            TimeReader(day_first, date_format).require_none_given()
        made = cls(
            row_numbers(n_docs) if ids is None else _strings("ids", ids),
            None if labels is None else _labels(labels),
            None if timestamps is None else parse_times(timestamps, day_first=day_first, date_format=date_format),
            texts,
            tokens,
            None if vectors is None else _vectors(vectors),
            covariates_of(covariates),
            encoder,
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
        del columns["encoder"]
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
        names = [part.name for part in fields(self) if part.name not in ("covariates", "encoder")]
        columns = {name: pick(getattr(self, name)) for name in names}
        columns |= {name: compact(columns[name]) for name in ("ids", "labels") if columns[name] is not None}
        return Fields(**columns, covariates=covariates, encoder=self.encoder)

    def with_copies(self, numbers: Sequence[float]) -> Fields:
        """Return the fields with the covariate `copies`: how often the text of each document occurs.

        Raises:
            InputError: the documents have a covariate of this name already.
        """
        if COPIES in self.covariates:
            raise InputError(
                f"`drop_duplicates` makes a covariate {COPIES!r}, and the documents have one already; give it another "
                "name"
            )
        return replace(self, covariates={**self.covariates, COPIES: np.array(numbers, np.float64)})

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
            vectors: (n_docs, E) float16 or float32; times: (n_docs,) float32, in days since 1970; a covariate:
            (n_docs,) float32, or int64 codes if it is categorical, which are positions among the categories of
            training.

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
    source = "`encoder` or `vectors`" if name == "vectors" else "`timestamps` or `covariates`"
    return InputError(
        f"the model reads the field {name!r} of each document, which these documents do not have; give it when the "
        f"corpus is made ({source})"
    )


def _numbers(name: str, covariate: Covariate, kind: FieldKind | None) -> npt.NDArray[Any]:
    """Return a covariate as `Fields.array` does."""
    if not isinstance(covariate, Categories):
        if not isinstance(kind, tuple):
            numbers, is_bad = as_float32(covariate)
            if is_bad.any():
                row = int(is_bad.argmax())
                raise InputError(
                    f"the covariate {name!r} is {covariate[row]:g} in document {row}, which 32-bit floating point "
                    "cannot hold, as models need it; scale the covariate"
                )
            return numbers
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
        """A name for each document: "0", "1", ... unless given. For up to 65,536 documents, it is a list.

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
    def vectors(self) -> Vectors | None:
        """(n_docs, E) float16 or float32, a vector for each document; None if the documents have no vectors.

        A vector of zeros means that its document has none. Vectors have the lengths that they came with.
        """
        return self.fields.vectors

    @property
    def encoder(self) -> TextEncoder | None:
        """The encoder that made the vectors; None if it is not known."""
        return self.fields.encoder

    @property
    def covariates(self) -> Mapping[str, Covariate]:
        """Name -> (n_docs,) float64, with NaN for unknown values, or `Categories`."""
        return self.fields.covariates


def row_numbers(count: int) -> Sequence[str]:
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
    return compact(_as_strings(f"the {name.removesuffix('s')}", column))


def _as_strings(what: str, column: Iterable[Any]) -> list[str]:
    """Return values as strings; "" if one is missing.

    Args:
        what: what a value is, for messages.
        column: the values.

    Raises:
        InputError: a value is bytes or a list, or a string contains a lone surrogate; the message names its row.
    """
    column = list(column)
    if (row := next((row for row, value in enumerate(column) if isinstance(value, bytes)), None)) is not None:
        raise InputError(f"{what} of document {row} is {brief(column[row])}, which is bytes; decode it to a string")
    several = (list, tuple, set, dict, np.ndarray)
    if (row := next((row for row, value in enumerate(column) if isinstance(value, several)), None)) is not None:
        raise InputError(f"{what} of document {row} is {brief(column[row])}, which is not one value; give a string")
    strings = ["" if is_missing(value) else plain_string(value) for value in column]
    if is_utf8("".join(strings)):
        return strings
    return [require_utf8(each, f"{what} of document {row}") for row, each in enumerate(strings)]


def _labels(values: Iterable[Any]) -> Sequence[str]:
    """Convert labels. Where all others are numbers, a mark such as "N/A" stands for an unknown class."""
    strings = _strings("labels", values)
    return compact(["" if is_mark(each) else each for each in strings]) if are_marked_numbers(strings) else strings


def _vectors(values: Any) -> Vectors:
    try:
        given = numeric_array(values)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise InputError(_no_vectors(values)) from None
    if given.ndim != 2 or not given.shape[1]:
        raise InputError(f"`vectors` has shape {given.shape}; give an (n_docs, E) array")
    stored = document_vectors(given, lambda row: f"the vector of document {row}")
    zero = np.concatenate([np.zeros(0, np.bool_), *(~part.any(axis=1) for part in pieces(stored))])
    if zero.any():
        logger.warning(
            "the vectors of %s are zero, which stands for no vector; the first is that of document %d",
            counted(int(zero.sum()), "document"), int(zero.argmax()),
        )  # fmt: skip
    return stored


def _no_vectors(values: Any) -> str:
    """Say why values are no matrix of numbers."""
    if isinstance(values, str | PathLike):
        return f"`vectors` is {brief(values)}; read a file of vectors by topicloom.embeddings.read_document_vectors"

    def size_of(row: Any) -> int | None:
        try:
            array = np.array(row, object)
        except (ValueError, TypeError, RuntimeError):  # of arrays of several shapes, or a tensor without values
            return None
        return array.size if array.ndim == 1 else None

    rows = list(values) if isinstance(values, Iterable) else []
    sizes = [size_of(row) for row in rows]
    row = next((row for row, size in enumerate(sizes) if size != sizes[0]), None)
    if row is None or sizes[0] is None:
        return "`vectors` cannot be read; give an (n_docs, E) array, with the same number of values for each document"
    what = f"is {brief(rows[row])}" if sizes[row] is None else f"has {counted(sizes[row] or 0, 'number')}"
    return f"the vector of document {row} {what}, and that of document 0 has {sizes[0]}; give each as many"


def stored_vectors(given: npt.NDArray[Any], name: Callable[[int], str]) -> Vectors:
    """Return vectors as float32; those of this type, and of float16, are returned as they are.

    Args:
        given: (n, E) numbers.
        name: says what a row is, for messages.

    Raises:
        InputError: a number is not finite, overflows or underflows.
    """
    is_kept = given.dtype in (np.float16, np.float32)
    stored = given if is_kept else np.empty(given.shape, np.float32)
    first = 0
    for part in pieces(given):
        finite = np.isfinite(part).all(axis=1)
        if not finite.all():
            row = first + int(finite.argmin())
            raise InputError(f"{name(row)} contains a number that is not finite; replace it")
        if not is_kept:
            stored[first : first + len(part)], is_bad = as_float32(part)
            if is_bad.any():
                row, column = (int(place) for place in np.argwhere(is_bad)[0])
                raise InputError(
                    f"{name(first + row)} contains {part[row, column]:g}, which 32-bit floating point cannot hold; "
                    "scale the vectors"
                )
        first += len(part)
    return stored


_SHORTEST, _LONGEST = 1e-12, 1e19  # beyond them, scaling to length 1 in float32 gives another length, or zeros


def document_vectors(given: npt.NDArray[Any], name: Callable[[int], str]) -> Vectors:
    """Return vectors of documents as `stored_vectors` does.

    Raises:
        InputError: a number cannot be stored, or a vector is too long or too short for models, which scale it.
    """
    stored = stored_vectors(given, name)
    first = 0
    for part in pieces(stored):
        lengths = np.sqrt(np.einsum("nd,nd->n", part, part, dtype=np.float64))
        is_bad = (lengths > _LONGEST) | ((lengths > 0) & (lengths < _SHORTEST))
        if is_bad.any():
            row = int(is_bad.argmax())
            raise InputError(
                f"{name(first + row)} has the length {lengths[row]:g}, and models compare vectors of lengths from "
                f"{_SHORTEST:g} to {_LONGEST:g}; scale the vectors, for example to length 1"
            )
        first += len(part)
    return stored
