"""Reading documents from tables: CSV and TSV files, and Excel workbooks."""

from __future__ import annotations

import csv
import datetime
import logging
import re
import threading
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, dropwhile, islice
from typing import Any

from ..errors import InputError, MissingExtraError
from ..messages import brief
from .records import (
    MOST_CHARACTERS,
    Document,
    Input,
    Layout,
    MissingColumnError,
    as_string,
    opened,
    resolve_columns,
    unreadable,
)

logger = logging.getLogger("topicloom")

_DELIMITERS = ",;\t|"  # the ones that are recognised, the likeliest first
_QUOTATION_MARKS = "\"'"
_ESCAPE = "\\"
_SAMPLE_LINES = 20  # by which the delimiter is recognised
_MORE_LINES, _MORE_CHARACTERS = 1_000, 1_000_000  # by which quotation marks and escapes are recognised
_CODE_FORMAT = re.compile("0{2,}")  # of whole numbers with zeros before them
# Excel writes a carriage return in a cell as _x000D_, and _x000D_ itself as _x005F_x000D_ (ECMA-376, 22.9.2.19).
_ESCAPED_CHARACTER = re.compile("_x([0-9A-Fa-f]{4})_")
# A cell of a worksheet with a formula, and without a value or with an empty one.
_NOT_COMPUTED = re.compile(
    rb"""<(?:\w+:)?c\ r="([A-Z]+[0-9]+)"[^>]*>\s*<(?:\w+:)?f(?:\s[^>]*)?(?:/>|>[^<]*</(?:\w+:)?f>)\s*
    (?:<(?:\w+:)?v\s*(?:/>|></(?:\w+:)?v>)\s*)?</(?:\w+:)?c>""", re.VERBOSE,
)  # fmt: skip
_XML_AT_ONCE, _LONGEST_FORMULA = 1 << 20, 1 << 16  # bytes
_ROWS_AT_ONCE = 200  # records that are read before the first of them is passed on
_MANY_LINES = 1_000  # a record of more lines is worth a warning
_ADVICE = {
    "line": "quote the fields that contain the delimiter ({delimiter!r}), or give another `delimiter`{more}",
    "row": "give each column a name, or remove the cells beyond the last one{more}",
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
        sample, is_whole = _sample_of(lines)
        given_escape = layout.escapechar
        layout = _recognised(sample, is_whole, layout)
        rows = _rows(chain(sample, lines), layout, given.name, may_be_escaped=given_escape is None)
        if given.path is None and layout.header:
            rows = _without_further_headers(rows, given.name)
        yield from _documents(rows, layout, given, "line")


def read_tsv(given: Input, layout: Layout) -> Iterator[Document]:
    """Read a table of text fields between tabs."""
    return read_csv(given, layout._replace(delimiter=layout.delimiter or "\t"))


def read_xlsx(given: Input, layout: Layout) -> Iterator[Document]:
    """Read a worksheet of an Excel workbook."""
    try:
        import openpyxl
    except ImportError:
        raise MissingExtraError.of("an .xlsx file", "openpyxl", "io") from None
    if given.path is None:
        raise InputError("an .xlsx file cannot be read from standard input; give its path")
    try:
        with given.binary() as file:
            workbook = openpyxl.load_workbook(file, read_only=True, data_only=True)
            yield from _of_workbook(workbook.worksheets, given, layout)
    except InputError:
        raise
    except _XLSX_FAULTS as error:
        raise unreadable(given, "xlsx", error) from None


def _of_workbook(sheets: Sequence[Any], given: Input, layout: Layout) -> Iterator[Document]:
    sheet = _chosen_sheet(sheets, given, layout.sheet)
    rows = ((number, row) for number, row in enumerate(_cells(sheet), 1) if any(row))
    where = given if len(sheets) == 1 else given._replace(shown=f"worksheet {brief(sheet.title)} of {given.name}")
    documents = _documents(rows, layout, where, "row")
    try:
        first = next(documents, None)
    except MissingColumnError as error:  # the texts may be in another worksheet
        if len(sheets) == 1:
            raise
        raise error.advising(_others(sheets, sheet, layout)) from None
    if first is None:
        _warn_of_formulas(sheet, given)
        if len(sheets) == 1:
            return
        raise InputError(f"{where.name} contains no documents; {_others(sheets, sheet, layout)}")
    yield first
    yield from documents
    # Warnings come after the rows, so that a look at the first one does not give them, too.
    _warn_of_formulas(sheet, given)
    if len(sheets) > 1 and layout.sheet is None:
        logger.warning(
            "%s has %d worksheets, and only the first one, %s, is read; `sheet` chooses another one",
            given.name, len(sheets), brief(sheet.title),
        )  # fmt: skip


def _warn_of_formulas(sheet: Any, given: Input) -> None:
    """Warn of the first cell whose formula has no value. openpyxl reads it as an empty one."""
    before = b""
    with sheet._get_source() as file:
        while part := file.read(_XML_AT_ONCE):
            if found := _NOT_COMPUTED.search(before + part):
                logger.warning(
                    "%s: the formula in cell %s has no value, because the program that wrote the file computes none; "
                    "such cells are read as empty ones; open the file in Excel or LibreOffice, and save it",
                    given.name, str(found[1], "ascii"),
                )  # fmt: skip
                return
            before = (before + part)[-_LONGEST_FORMULA:]


def _chosen_sheet(sheets: Sequence[Any], given: Input, name: str | None) -> Any:
    """Return a worksheet by its name, or by its number from 1."""
    if not sheets:
        raise ValueError("it has no worksheet")
    if name is None:
        return sheets[0]
    for sheet in sheets:
        if sheet.title == name:
            return sheet
    if name.isdecimal() and 0 < int(name[:9]) <= len(sheets):
        return sheets[int(name) - 1]
    titles = [sheet.title for sheet in sheets]
    raise InputError(f"{given.name} has no worksheet {brief(name)}; its worksheets are {_named(titles)}; check `sheet`")


def _others(sheets: Sequence[Any], chosen: Any, layout: Layout) -> str:
    """Say which other worksheets have the columns, or else what worksheets there are."""
    wanted = {layout.columns.text, *layout.columns.asked()}
    titles = [sheet.title for sheet in sheets if sheet is not chosen]
    found = [
        sheet.title
        for sheet in sheets
        if sheet is not chosen and wanted <= set(next(filter(any, _cells(sheet)), ["1"] if layout.header else []))
    ]
    if found and layout.header:
        return f"{_named(found)} has {'it' if len(wanted) == 1 else 'them'}: give `sheet={found[0]!r}`"
    return f"the other worksheets are {_named(titles)}; name the column by `text`, or give `sheet`"


def _named(titles: Sequence[str]) -> str:
    more = f" and {len(titles) - 10} more" if len(titles) > 10 else ""
    return ", ".join(brief(title) for title in titles[:10]) + more


def _documents(rows: Iterator[tuple[int, list[str]]], layout: Layout, given: Input, unit: str) -> Iterator[Document]:
    """Yield the documents of a table, whose rows come with their line or row number."""
    name = given.name
    if layout.header:
        rows = dropwhile(_is_blank, rows)
    first = next(rows, None)
    if first is None:
        return
    header = first[1]
    if not layout.header:
        header = [str(number) for number in range(1, max(len(header), 1) + 1)]
        rows = chain([first], rows)
    width = len(header)
    further_fields = layout.columns.missing(header, given.place)
    header = [*header, *further_fields]
    try:
        columns = resolve_columns(layout.columns, header, name, header=layout.header)
    except MissingColumnError as error:
        raise _of_later_header(error, rows, layout, unit) from None
    place_of_text = header.index(columns.text)
    places = [None if column is None else header.index(column) for column in columns.of_documents()]
    further = {column: header.index(column) for column in columns.covariates}
    values_of_file = list(further_fields.values())
    is_plain = not (further or any(place is not None for place in places))
    for number, row in rows:
        if is_plain and len(row) == width and place_of_text < width:
            yield Document(row[place_of_text])
            continue
        if not row:  # a blank line is an empty text in a table of one column, and is skipped in any other
            if width > 1:
                continue
            row = [""]
        if len(row) != width:
            first_row = "header" if layout.header else "first row"
            fields = f"{len(row)} field{'s' * (len(row) != 1)}"
            raise InputError(
                f"{name}, {unit} {number} has {fields}, but the {first_row} has {width}; "
                f"{_ADVICE[unit].format(delimiter=layout.delimiter, more=_advice_on_marks(row, layout))}"
            )
        row += values_of_file
        id, label, timestamp = (None if place is None else row[place] for place in places)
        covariates = {column: row[place] for column, place in further.items()} if further else None
        yield Document(row[place_of_text], id, label, timestamp, covariates)


def _of_later_header(
    error: MissingColumnError, rows: Iterator[tuple[int, list[str]]], layout: Layout, unit: str
) -> MissingColumnError:
    """Return the error about a missing column. If a title precedes the header, it names the row of the header."""
    wanted = {layout.columns.text, *layout.columns.asked()}
    later = next((number for number, row in islice(rows, _SAMPLE_LINES) if wanted <= set(row)), None)
    if later is None or not layout.header:
        return error
    them = "it" if len(wanted) == 1 else "them"
    return error.advising(f"{unit} {later} has {them}, so remove what is above this {unit}")


def _advice_on_marks(row: list[str], layout: Layout) -> str:
    """Return further advice if the fields look as if they had another quotation mark, or escapes."""
    if layout.delimiter is None:  # of a workbook
        return ""
    if any(cell.startswith("'") for cell in row) and any(cell.endswith("'") for cell in row):
        return """, or give `quotechar="'"` if such marks enclose fields"""
    if any(cell.endswith(_ESCAPE) for cell in row[:-1]) and layout.escapechar in (None, "none"):
        return rf", or give `escapechar='{_ESCAPE}'` if backslashes precede delimiters"
    return ""


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
    return csv.reader(
        lines,
        delimiter=delimiter,
        quotechar=layout.quotechar or _QUOTATION_MARKS[0],
        escapechar=None if layout.escapechar == "none" else layout.escapechar,
        strict=strict,
        quoting=csv.QUOTE_MINIMAL if layout.quoting else csv.QUOTE_NONE,
    )


def _rows(
    lines: Iterator[str], layout: Layout, name: str, *, may_be_escaped: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Yield the records of a CSV file, each with the number of its last line.

    Args:
        lines: the lines of the file.
        layout: its marks.
        name: the file, for messages.
        may_be_escaped: whether quotation marks inside of fields may be escaped, although the layout says no such thing.
    """
    assert layout.delimiter is not None
    quoted = layout.quotechar or _QUOTATION_MARKS[0]
    may_be_escaped = may_be_escaped and layout.quoting and layout.escapechar is None
    taken: list[str] = []  # the lines of the records that were read last

    n_characters = 0

    def noted() -> Iterator[str]:
        nonlocal n_characters
        for line in lines:
            taken.append(line)
            n_characters += len(line)
            yield line

    reader = _reader(noted(), layout.delimiter, layout, strict=True)
    warned = False
    width: int | None = None
    while True:
        before = reader.line_num
        taken.clear()
        n_characters = 0
        rows: list[tuple[int, list[str]]] = []
        error: Exception | None = None
        try:
            with _long_fields:
                for row in reader:
                    rows.append((reader.line_num, row))
                    if len(rows) == _ROWS_AT_ONCE or n_characters > _MORE_CHARACTERS:
                        break
        except Exception as fault:  # in the record after `rows`
            error = fault
        is_escaped = may_be_escaped and any(_ESCAPE + quoted in line for line in taken)
        first = before
        for number, row in rows:
            width = width or len(row)
            if is_escaped and any(_ESCAPE + quoted in line for line in taken[first - before : number - before]):
                record = taken[first - before : number - before]
                _refuse_ambiguous(record, row, width, layout, f"{name}, line {first + 1}")
            if number - first > _MANY_LINES and not warned:
                warned = True
                logger.warning(
                    "%s: one record goes from line %d to line %d; look for a quotation mark that is not closed",
                    name, first + 1, number,
                )  # fmt: skip
            first = number
            yield number, row
        if isinstance(error, csv.Error):
            is_escaped = may_be_escaped and any(_ESCAPE + quoted in line for line in taken[first - before :])
            raise _not_a_table(error, name, first + 1, reader.line_num, layout, is_escaped) from None
        if error is not None:
            raise error
        if not rows:
            return


def _refuse_ambiguous(record: list[str], row: list[str], width: int, layout: Layout, where: str) -> None:
    """Raise InputError if a record is a table row with and without escapes, whose fields differ in their ends."""
    assert layout.delimiter is not None
    try:
        with _long_fields:
            rows = list(_reader(record, layout.delimiter, layout._replace(escapechar=_ESCAPE), strict=True))
    except csv.Error:
        return
    if [_ESCAPED.sub(r"\1", cell) for cell in row] in rows or any(len(other) != width for other in rows):
        return
    raise InputError(
        f"{where} can be read in two ways, because a backslash precedes a quotation mark; give "
        f"`escapechar='{_ESCAPE}'` if the mark is then part of the text, or else `escapechar='none'`"
    )


_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def _not_a_table(error: csv.Error, name: str, first: int, last: int, layout: Layout, is_escaped: bool) -> InputError:
    message = str(error)
    mark = layout.quotechar or _QUOTATION_MARKS[0]
    advice = (
        f"write a quotation mark inside a quoted field twice ({mark * 2}), or give `quoting=False` if quotation marks "
        "are ordinary characters in this file"
    )
    if is_escaped:
        advice = f"give `escapechar='{_ESCAPE}'` if backslashes precede quotation marks inside of fields, or {advice}"
    if message == "unexpected end of data":
        fault = f"{name}, line {first}: a quotation mark opens in the record that begins here and is never closed"
        return InputError(f"{fault}; close it, {advice}")
    if "expected after" in message:
        begins = "" if first == last else f", in the record that begins on line {first}"
        return InputError(f"{name}, line {last}{begins}: text follows a closing quotation mark; {advice}")
    if "field limit" in message:
        fault = (
            f"{name}, line {first}: a field of the record that begins here has more than {MOST_CHARACTERS:,} characters"
        )
        return InputError(f"{fault}; look for a quotation mark that is not closed, or divide the text into documents")
    return InputError(f"{name}, line {last}: not readable as a table: {message}")


def _sample_of(lines: Iterator[str]) -> tuple[list[str], bool]:
    """Return the first lines of a file, and whether these are all of them."""
    sample: list[str] = []
    n_characters = 0
    for line in lines:
        sample.append(line)
        n_characters += len(line)
        if len(sample) == _MORE_LINES or (len(sample) >= _SAMPLE_LINES and n_characters > _MORE_CHARACTERS):
            return sample, False
    return sample, True


def _recognised(sample: list[str], is_whole: bool, layout: Layout) -> Layout:
    """Return a layout with a delimiter, a quotation mark and an escape. What was given is kept.

    A single quotation mark encloses fields, and a backslash is an escape, only if the sample is a table with it, and no
    table without it.
    """
    quotechars = [layout.quotechar] if layout.quotechar or not layout.quoting else [*_QUOTATION_MARKS]
    escapechars = [layout.escapechar] if layout.escapechar else [None, _ESCAPE]
    choices = []
    for escapechar in escapechars:
        for quotechar in quotechars:
            choice = layout._replace(quotechar=quotechar, escapechar=escapechar)
            delimiter = layout.delimiter or _delimiter_of(sample[:_SAMPLE_LINES], choice)
            choices.append(choice._replace(delimiter=delimiter))
    usual, *others = choices
    is_table = _fits(sample, is_whole, usual)
    for choice in others:
        marked = choice.quotechar != usual.quotechar
        if choice.escapechar and not any(_ESCAPE in line for line in sample):
            continue
        if choice.escapechar == _ESCAPE and not marked and is_table:
            if _are_escapes(sample, choice) and _fits(sample, is_whole, choice):
                return choice
            continue
        if marked and not _are_enclosed(sample, choice, everywhere=is_table):
            continue
        if (not is_table or (marked and not choice.escapechar)) and _fits(sample, is_whole, choice):
            return choice
    if not is_table and layout.header:  # a file without the column of the texts is refused with its columns
        return next((choice for choice in choices if _fits(sample, is_whole, choice, lacks_text=True)), usual)
    return usual


def _are_escapes(sample: list[str], layout: Layout) -> bool:
    """Return whether all backslashes of a sample precede what needs an escape, and some of them a quotation mark."""
    quoted, text = layout.quotechar or _QUOTATION_MARKS[0], "".join(sample)
    needs = {quoted, layout.delimiter, _ESCAPE, "\n", "\r"}
    return _ESCAPE + quoted in text and all(following in needs for following in _ESCAPED.findall(text))


def _fits(sample: list[str], is_whole: bool, layout: Layout, *, lacks_text: bool = False) -> bool:
    """Return whether a sample is a table whose rows have equal lengths, and which has the column of the texts.

    Args:
        lacks_text: whether it should be a table of several columns that lacks the column of the texts, instead.
    """
    assert layout.delimiter is not None
    width = None
    reader = _reader(sample, layout.delimiter, layout, strict=True)
    try:
        with _long_fields:
            for row in reader:
                if not row or (not is_whole and reader.line_num == len(sample)):
                    continue  # the sample may end inside of a record
                if width is None and layout.header:
                    has_text = layout.columns.text in [row[0].lstrip("\ufeff"), *row[1:]]
                    if has_text == lacks_text or (lacks_text and len(row) == 1):
                        return False
                width = width or len(row)
                if len(row) != width:
                    return False
    except csv.Error as error:
        return width is not None and not is_whole and str(error) == "unexpected end of data"
    return width is not None


def _are_enclosed(sample: list[str], layout: Layout, *, everywhere: bool) -> bool:
    """Return whether fields of a sample are enclosed by a single quotation mark, and none by a double one.

    Args:
        everywhere: whether each record must have such a field, because the sample is a table without it, too.
    """
    limits = re.escape(layout.delimiter or ",")
    text = "".join(sample)
    if re.search(rf'(?:^|{limits})"', text, re.MULTILINE):
        return False
    field = rf"(?:^|(?<={limits}))'(?:[^'\\]|''|\\.)*'(?=$|{limits})"
    found = len(re.findall(field, text, re.MULTILINE | re.DOTALL))
    opened_fields = len(re.findall(rf"(?:^|{limits})'", text, re.MULTILINE))
    if everywhere:  # fields of several lines are not counted, but then the sample is hardly a table without the mark
        lines = [line for line in sample[layout.header :] if line.strip()]
        return bool(lines) and all(re.search(field, line.rstrip("\r\n")) for line in lines) and found == opened_fields
    return found >= 2


def _delimiter_of(sample: list[str], layout: Layout) -> str:
    """Return the delimiter of a CSV file: one that gives the text column, or else one with rows of equal length."""
    delimiters = [each for each in _DELIMITERS if each not in (layout.quotechar, layout.escapechar)]
    tables = {delimiter: _parsed(sample, delimiter, layout) for delimiter in delimiters}
    if layout.header:
        for delimiter, table in tables.items():
            if table and layout.columns.text in table[0]:
                return delimiter
    for delimiter, table in tables.items():
        widths = {len(row) for row in table if row}
        if len(widths) == 1 and widths != {1}:
            return delimiter
    return delimiters[0]


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
                self._before = csv.field_size_limit(MOST_CHARACTERS)  # 131,072 by default
            self._entered += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._entered -= 1
            if self._entered == 0:
                csv.field_size_limit(self._before)


_long_fields = _LongFields()


def _cells(sheet: Any) -> Iterator[list[str]]:
    """Yield the rows of a worksheet as strings, without the blank cells at their ends."""
    width = 0
    for row in sheet.iter_rows():
        cells = [_cell(each) for each in row]
        while len(cells) > width and not cells[-1]:
            cells.pop()
        width = width or len(cells)
        yield cells + [""] * (width - len(cells))


def _cell(cell: Any) -> str:
    value = cell.value
    if type(value) is int and value >= 0 and _CODE_FORMAT.fullmatch(cell.number_format):
        return format(value, f"0{len(cell.number_format)}")  # a code such as 01067 is a number that is shown so
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        value = value.date()  # Excel has no dates without a time
    if isinstance(value, str) and "_x" in value:
        return _ESCAPED_CHARACTER.sub(_character, value)
    return "" if value is None else as_string(value) or ""


def _character(escape: re.Match[str]) -> str:
    """Return the character of an escape; half of a surrogate pair is no character, and its escape stays."""
    code = int(escape[1], 16)
    return escape[0] if 0xD800 <= code < 0xE000 else chr(code).replace("\0", " ")
