"""Documents, the columns that they are read from, and files of records: JSON Lines and Parquet."""

from __future__ import annotations

import json
import logging
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Any, NamedTuple

from ..errors import InputError, MissingExtraError, nearest
from .opening import Input, opened

logger = logging.getLogger("topicloom")

_MOST_WITHOUT_TEXT = 1_000  # records at the start of a file; if none of them has the text, its name is wrong


class Document(NamedTuple):
    """A text and what is known about it; None means that it is not known.

    `covariates` has the values of the columns that were asked for and that the file has, by their names.
    """

    text: str
    id: str | None = None
    label: str | None = None
    timestamp: str | None = None
    covariates: Mapping[str, str | None] | None = None


class Columns(NamedTuple):
    """The columns to read. None for `id`, `label` or `timestamp` means the column of that name, if the file has one.

    Of `covariates`, those are read that the file has.
    """

    text: str = "text"
    id: str | None = None
    label: str | None = None
    timestamp: str | None = None
    covariates: tuple[str, ...] = ()

    def roles(self) -> dict[str, str | None]:
        """Return the column of each role of which a file has one column at most."""
        return {role: name for role, name in self._asdict().items() if role != "covariates"}

    def of_documents(self) -> tuple[str | None, str | None, str | None]:
        """Return the columns of ids, labels and timestamps."""
        return self.id, self.label, self.timestamp

    def names(self) -> list[str]:
        """Return all columns that are read, each once."""
        return list(dict.fromkeys(name for name in (*self.roles().values(), *self.covariates) if name))


class Layout(NamedTuple):
    """Where a file has its texts.

    Args:
        columns: the columns to read.
        delimiter: the character between the fields of a table, or None to recognise it.
        header: whether the first line of a table names its columns.
        quoting: whether quotation marks enclose the fields of a table.
    """

    columns: Columns
    delimiter: str | None = None
    header: bool = True
    quoting: bool = True


def read_json_lines(given: Input, layout: Layout) -> Iterator[Document]:
    """Read one JSON object from each line; blank lines are skipped.

    A record may lack any column. One without a text is an empty document.

    Raises:
        InputError: a line cannot be read, or no record has a column that was asked for.
    """
    text = layout.columns.text
    asked = {name: role for role, name in layout.columns.roles().items() if name not in (None, text)}
    waiting: list[Document] = []  # until a record has a text: a wrong name should be reported before all are read
    first: tuple[str, dict[str, Any]] | None = None
    n_records = n_without = 0
    record: dict[str, Any] = {}
    for where, record in _json_objects(given):
        n_records += 1
        if asked:
            asked = {name: role for name, role in asked.items() if name not in record}
        lacks = text not in record
        if lacks:
            n_without += 1
            first = first or (where, record)
        found = {**record, text: None} if lacks else record
        waiting.append(_document(found, resolve_columns(layout.columns, found, where, optional=True), where))
        if n_without < n_records:
            yield from waiting
            waiting.clear()
        elif n_without == _MOST_WITHOUT_TEXT:
            break
    if first and n_without == n_records:
        resolve_columns(layout.columns, first[1], first[0], optional=True)  # raises the error
    if record and asked:
        name, role = next(iter(asked.items()))
        raise InputError(f"no record of {given.name} has {name!r}, the column of `{role}`; {nearest(name, record)}")
    if n_without:
        logger.warning(
            "%d of %d records of %s have no %r; they are empty documents", n_without, n_records, given.name, text
        )


def _json_objects(given: Input) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the object on each line, with its place for messages."""
    with opened(given) as file:
        for number, line in enumerate(file, 1):
            where = f"{given.name}, line {number}"
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except json.JSONDecodeError as error:
                raise InputError(f"{where}, column {error.colno}: not JSON ({error.msg}); correct the line") from None
            except RecursionError:
                raise InputError(f"{where}: the JSON is nested too deeply; correct the line") from None
            except ValueError:  # Python converts no integer of more than 4,300 digits
                raise InputError(f"{where}: the JSON has a number with too many digits; correct the line") from None
            if not isinstance(record, dict):
                raise InputError(f'{where}: not a JSON object; each line must be one, such as {{"text": "..."}}')
            yield where, record


def read_parquet(given: Input, layout: Layout) -> Iterator[Document]:
    """Read a Parquet file in batches of rows."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise MissingExtraError.of("a .parquet file", "pyarrow", "io") from None
    if given.path is None:
        raise InputError("a .parquet file cannot be read from standard input; give its path")
    try:
        with parquet.ParquetFile(given.path) as file:
            columns = resolve_columns(layout.columns, file.schema_arrow.names, given.name)
            row = count()
            for batch in file.iter_batches(batch_size=1024, columns=columns.names()):
                for record in batch.to_pylist():
                    yield _document(record, columns, f"{given.name}, row {next(row)}")
    except InputError:
        raise
    except (ArrowException, OSError, ValueError, OverflowError) as error:  # values such as the year 10000
        raise unreadable(given, "parquet", error) from None


def unreadable(given: Input, format: str, error: Exception) -> InputError:
    """Return the error for a binary file that its library cannot read."""
    reason = (str(error) or repr(error)).splitlines()[0].rstrip(".")
    return InputError(f"{given.name} cannot be read as {format}: {reason:.200}; save it again as .{format} or .csv")


def resolve_columns(
    columns: Columns, present: Iterable[str], where: str, *, optional: bool = False, header: bool | None = None
) -> Columns:
    """Return the columns to read out of those that are present.

    Args:
        columns: the columns that were asked for.
        present: the columns of the file.
        where: the file, for messages.
        optional: read None for a missing column other than the text, instead of raising an error.
        header: whether the first line names the columns, for tables; the message about a missing column says so.

    Raises:
        InputError: a column is missing.
    """
    present = list(present)

    def resolve(role: str, name: str | None) -> str | None:
        if name is None:
            return role if role in present else None
        if present.count(name) > 1:
            raise InputError(f"{where} has {present.count(name)} columns {name!r}; rename all but the one to read")
        if name in present:
            return name
        if optional and role != "text":
            return None
        shown = (" ".join(column.split()) for column in present)  # a name may contain line breaks
        names = ", ".join(f"{column:.30}..." if len(column) > 30 else column for column in shown)
        found = f"its columns are {names}" if present else "it has none"
        advice = f"name the column by `{role}`"
        twin = next((column for column in present if column.strip() == name), None)
        if twin is not None:  # it looks as if the column were there
            advice += f", with its blanks ({twin!r})"
        elif header is True:
            advice += ", or give `header=False` if the first line is a document"
        elif header is False:
            found = f"without a header, its columns are {names}"
        raise InputError(f"{where} has no column {name!r}; {found}; {advice}")

    found = {role: resolve(role, name) for role, name in columns.roles().items()}
    text = found.pop("text")
    assert text is not None
    further = tuple(name for name in columns.covariates if name in present and resolve("covariate", name))
    return Columns(text, **found, covariates=further)


def _document(record: dict[str, Any], columns: Columns, where: str) -> Document:
    text = "" if record[columns.text] is None else record[columns.text]  # a missing text keeps its row
    if not isinstance(text, str):
        raise InputError(f"{where}: {columns.text!r} is {reprlib.repr(text)}, not a string; correct it")
    id, label, timestamp = (None if name is None else as_string(record[name]) for name in columns.of_documents())
    covariates = {name: as_string(record[name]) for name in columns.covariates} if columns.covariates else None
    return Document(text.replace("\0", " "), id, label, timestamp, covariates)


def as_string(value: Any) -> str | None:
    """Return an id, label or time as a string; None where it is missing or NaN."""
    if value is None or value != value:
        return None
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)
