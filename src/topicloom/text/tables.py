"""Tables with a text column: CSV and TSV files, and Excel workbooks."""

from __future__ import annotations

import csv
import datetime
import logging
import threading
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain, dropwhile, islice
from typing import Any

from ..errors import InputError, MissingExtraError
from .characters import brief
from .opening import Input, opened
from .records import Document, Layout, as_string, resolve_columns, unreadable

logger = logging.getLogger("topicloom")

_DELIMITERS = ",;\t|"  # the ones that are recognised, the likeliest first
_SAMPLE_LINES = 20
_LONGEST_FIELD = 2**31 - 1  # characters; csv refuses more than 131,072 by default
_MANY_LINES = 1_000  # a record of more lines is worth a warning
_ADVICE = {
    "line": "quote the fields that contain the delimiter ({!r}), or give another `delimiter`",
    "row": "give each column a name, or remove the cells beyond the last one",
}
# What openpyxl raises for a damaged workbook; faults in its XML are a SyntaxError.
_XLSX_FAULTS = (
    zipfile.BadZipFile, zlib.error, SyntaxError, LookupError, ValueError, TypeError, AttributeError, RuntimeError,
    OSError, EOFError,
)  # fmt: skip


def read_csv(given: Input, layout: Layout) -> Iterator[Document]:
    """Read a table of text fields."""
    with opened(given, newline="") as file:
        lines = iter(file)
        sample = list(islice(lines, _SAMPLE_LINES))
        layout = layout._replace(delimiter=layout.delimiter or _delimiter_of(sample, layout))
        rows = _rows(chain(sample, lines), layout, given.name)
        if given.path is None and layout.header:
            rows = _without_further_headers(rows, given.name)
        yield from _documents(rows, layout, given.name, "line")


def read_tsv(given: Input, layout: Layout) -> Iterator[Document]:
    """Read a table of text fields between tabs."""
    return read_csv(given, layout._replace(delimiter=layout.delimiter or "\t"))


def read_xlsx(given: Input, layout: Layout) -> Iterator[Document]:
    """Read the first worksheet of an Excel workbook."""
    sheets: list[str] = []
    rows = ((number, row) for number, row in enumerate(_sheet_rows(given, sheets), 1) if any(row))
    try:
        yield from _documents(rows, layout, given.name, "row")
    except InputError:  # the texts may be in another worksheet
        _warn_of_sheets(given, sheets)
        raise
    _warn_of_sheets(given, sheets)  # after the rows, so that a look at the first one does not say it, too


def _warn_of_sheets(given: Input, sheets: list[str]) -> None:
    if len(sheets) > 1:
        logger.warning(
            "%s has %d worksheets, and only the first one, %s, is read; move another one to the front to read it",
            given.name, len(sheets), brief(sheets[0]),
        )  # fmt: skip


def _documents(rows: Iterator[tuple[int, list[str]]], layout: Layout, name: str, unit: str) -> Iterator[Document]:
    """Yield the documents of a table, whose rows come with their line or row number."""
    if layout.header:
        rows = dropwhile(_is_blank, rows)
    first = next(rows, None)
    if first is None:
        return
    header = first[1]
    if not layout.header:
        header = [str(number) for number in range(1, max(len(header), 1) + 1)]
        rows = chain([first], rows)
    columns = resolve_columns(layout.columns, header, name, header=layout.header)
    place_of_text = header.index(columns.text)
    places = [None if column is None else header.index(column) for column in columns.of_documents()]
    further = {column: header.index(column) for column in columns.covariates}
    for number, row in rows:
        if not row:  # a blank line is an empty text in a table of one column, and is skipped in any other
            if len(header) > 1:
                continue
            row = [""]
        if len(row) != len(header):
            first_row = "header" if layout.header else "first row"
            fields = f"{len(row)} field{'s' * (len(row) != 1)}"
            raise InputError(
                f"{name}, {unit} {number} has {fields}, but the {first_row} has {len(header)}; "
                f"{_ADVICE[unit].format(layout.delimiter)}"
            )
        id, label, timestamp = (None if place is None else row[place] for place in places)
        covariates = {column: row[place] for column, place in further.items()} if further else None
        yield Document(row[place_of_text], id, label, timestamp, covariates)


def _without_further_headers(rows: Iterator[tuple[int, list[str]]], name: str) -> Iterator[tuple[int, list[str]]]:
    """Leave out the rows that repeat the header, as in several files one after another (`cat *.csv`).

    In a table of one column, such a row may be a text, and stays.
    """
    header: list[str] = []
    n_repeated = 0
    for number, row in rows:
        if len(header) > 1 and [cell.removeprefix("\ufeff") for cell in row[:1]] + row[1:] == header:
            n_repeated += 1
            continue
        header = header or row
        yield number, row
    if n_repeated:
        logger.warning(
            "%s repeats its header %s, as files one after another do; these rows are left out",
            name, "once" if n_repeated == 1 else f"{n_repeated:,} times",
        )  # fmt: skip


def _is_blank(row: tuple[int, list[str]]) -> bool:
    return not row[1]


def _reader(lines: Iterable[str], delimiter: str, layout: Layout, *, strict: bool) -> Any:
    if layout.quoting:
        return csv.reader(lines, delimiter=delimiter, strict=strict)
    return csv.reader(lines, delimiter=delimiter, strict=strict, quoting=csv.QUOTE_NONE)


def _rows(lines: Iterator[str], layout: Layout, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the records of a CSV file, each with the number of its last line."""
    assert layout.delimiter is not None
    reader = _reader(lines, layout.delimiter, layout, strict=True)
    warned = False
    while True:
        before = reader.line_num
        try:
            with _long_fields:
                row = next(reader, None)
        except csv.Error as error:
            raise _not_a_table(error, name, before + 1, reader.line_num) from None
        if row is None:
            return
        if reader.line_num - before > _MANY_LINES and not warned:
            warned = True
            logger.warning(
                "%s: one record goes from line %d to line %d; look for a quotation mark that is not closed",
                name, before + 1, reader.line_num,
            )  # fmt: skip
        yield reader.line_num, row


def _not_a_table(error: csv.Error, name: str, first: int, last: int) -> InputError:
    message = str(error)
    advice = (
        'write a quotation mark inside a quoted field twice (""), or give `quoting=False` if quotation marks are '
        "ordinary characters in this file"
    )
    if message == "unexpected end of data":
        fault = f"{name}, line {first}: a quotation mark opens in the record that begins here and is never closed"
        return InputError(f"{fault}; close it, {advice}")
    if "expected after" in message:
        begins = "" if first == last else f", in the record that begins on line {first}"
        return InputError(f"{name}, line {last}{begins}: text follows a closing quotation mark; {advice}")
    return InputError(f"{name}, line {last}: not readable as a table: {message}")


def _delimiter_of(sample: list[str], layout: Layout) -> str:
    """Return the delimiter of a CSV file: one that gives the text column, or else one with rows of equal length."""
    tables = {delimiter: _parsed(sample, delimiter, layout) for delimiter in _DELIMITERS}
    if layout.header:
        for delimiter, table in tables.items():
            if table and layout.columns.text in table[0]:
                return delimiter
    for delimiter, table in tables.items():
        widths = {len(row) for row in table if row}
        if len(widths) == 1 and widths != {1}:
            return delimiter
    return _DELIMITERS[0]


def _parsed(sample: list[str], delimiter: str, layout: Layout) -> list[list[str]]:
    """Return the records of a sample. The last one is left out if the sample may end inside it."""
    try:
        with _long_fields:
            rows = list(_reader(sample, delimiter, layout, strict=False))
    except csv.Error:
        return []
    return rows[:-1] if len(rows) > 1 and len(sample) == _SAMPLE_LINES else rows


class _LongFields:
    """A context in which csv accepts long fields.

    The limit belongs to the whole process. It is restored when the last thread leaves the context.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entered = 0
        self._before = 0

    def __enter__(self) -> None:
        with self._lock:
            if self._entered == 0:
                self._before = csv.field_size_limit(_LONGEST_FIELD)
            self._entered += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._entered -= 1
            if self._entered == 0:
                csv.field_size_limit(self._before)


_long_fields = _LongFields()


def _sheet_rows(given: Input, sheets: list[str]) -> Iterator[list[str]]:
    """Yield the rows of a workbook's first worksheet as strings, without the blank cells at their ends.

    The names of all worksheets are appended to `sheets`.
    """
    try:
        import openpyxl
    except ImportError:
        raise MissingExtraError.of("an .xlsx file", "openpyxl", "io") from None
    if given.path is None:
        raise InputError("an .xlsx file cannot be read from standard input; give its path")
    width = 0
    try:
        with given.path.open("rb") as file:
            workbook = openpyxl.load_workbook(file, read_only=True, data_only=True)
            sheets += [sheet.title for sheet in workbook.worksheets]
            for row in workbook.worksheets[0].iter_rows(values_only=True):
                cells = [_cell(value) for value in row]
                while len(cells) > width and not cells[-1]:
                    cells.pop()
                width = width or len(cells)
                yield cells + [""] * (width - len(cells))
    except _XLSX_FAULTS as error:
        raise unreadable(given, "xlsx", error) from None


def _cell(value: Any) -> str:
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        value = value.date()  # Excel has no dates without a time
    return "" if value is None else as_string(value) or ""
