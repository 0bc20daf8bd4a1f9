"""Reading documents from files, one at a time, so that a file may be larger than memory.

`read` chooses the reader of a format. Plain text, folders, CSV, TSV and Excel are read here, JSON Lines and Parquet in
records.py.
"""

from __future__ import annotations

import codecs
import csv
import datetime
import logging
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, dropwhile, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..errors import InputError, MissingExtraError, SettingError
from ..files import as_path, holds_corpus, holds_model
from ..messages import brief, counted, nearest
from ..preparing import FileOptions, described
from .records import (
    MOST_CHARACTERS,
    Columns,
    Document,
    Input,
    Layout,
    as_string,
    opened,
    read_json_lines,
    read_parquet,
    resolve_columns,
    unreadable,
)
from .strings import is_utf8, replace_surrogates, require_utf8

logger = logging.getLogger("topicloom")

# Tables with a text column: CSV and TSV files, and Excel workbooks.

_DELIMITERS = ",;\t|"  # the ones that are recognised, the likeliest first
_SAMPLE_LINES = 20
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
    if "field limit" in message:
        fault = (
            f"{name}, line {first}: a field of the record that begins here has more than {MOST_CHARACTERS:,} characters"
        )
        return InputError(f"{fault}; look for a quotation mark that is not closed, or divide the text into documents")
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
                self._before = csv.field_size_limit(MOST_CHARACTERS)  # 131,072 by default
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


# What to do with files that are often at hand and cannot be read, whatever `format` is given.
_TO_CONVERT = {
    **dict.fromkeys((".xls", ".xlsb", ".ods", ".numbers"), "save it as .xlsx or .csv"),
    **dict.fromkeys((".doc", ".docx", ".odt", ".rtf", ".pdf", ".epub"), "save its text as .txt"),
    **dict.fromkeys((".zip", ".7z", ".rar", ".tar", ".tgz"), "unpack it"),
    **dict.fromkeys((".bz2", ".xz", ".lzma", ".zst", ".lz4", ".br"), "unpack it, or compress it by gzip as .gz"),
    ".json": "write each record as an object on a line of its own, as .jsonl",
}
_DOCUMENTS = (".txt", ".md")  # of a folder, in lower case; some systems write .TXT
_NOT_IN_FOLDERS = (".csv", ".tsv", ".xlsx", ".jsonl", ".ndjson", ".parquet")
_ERRORS = ("strict", "replace", "ignore")
# Codecs that are not meant for files, but for domain names or for escapes in source code.
_NOT_FOR_FILES = {"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"}


@described(reading=FileOptions)
def read(
    source: str | Path,
    *,
    text: str = "text",
    id: str | None = None,
    label: str | None = None,
    timestamp: str | None = None,
    covariates: Iterable[str] = (),
    format: str | None = None,
    encoding: str = "utf-8",
    errors: str = "strict",
    delimiter: str | None = None,
    header: bool = True,
    quoting: bool = True,
) -> Iterator[Document]:
    r"""Read documents in their order.

    Ids, labels and timestamps are strings; dates are in ISO format, and missing values are None. NUL characters are
    read as blanks. A lone surrogate in a text, such as "\ud800" in JSON, or in the name of a file of a folder, is read
    as U+FFFD, so that everything that is read can be written. In another column, it is refused.

    Args:
        source: one of these, or "-" for standard input:

            - a .txt file with one document on each line; a blank line is an empty document
            - a .csv, .tsv, .xlsx, .jsonl or .parquet file with a text column
            - a .md file, which is one document
            - a folder of .txt and .md files; each file is one document, and its id is the relative path. A saved
              corpus and a run are no such folders, and are refused.

            Text files may be compressed as .gz. Of an .xlsx file, the first worksheet is read, without blank rows.
        {reading}
        covariates: columns whose values the documents have as `covariates`; a column that the file lacks is left out.

    Raises:
        InputError: the source cannot be read; the message names the file and the line.
        SettingError: a format, an encoding or another setting is not known.
        MissingExtraError: a .parquet or .xlsx file is to be read, and pyarrow or openpyxl is not installed.

    Examples:
        >>> from topicloom.text import read
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "news.jsonl")
        ...     _ = path.write_text('{"text": "The cat", "id": 7, "stars": 5}\n{"text": "A bird"}\n')
        ...     documents = list(read(path, covariates=["stars"]))
        >>> documents[0]
        Document(text='The cat', id='7', label=None, timestamp=None, covariates={'stars': '5'})
        >>> documents[1].text, documents[1].id
        ('A bird', None)
    """
    if isinstance(covariates, str):
        raise InputError(f"`covariates={covariates!r}` is a single string; give a list of the names of columns")
    options = FileOptions(
        text=text, id=id, label=label, timestamp=timestamp, format=format, encoding=encoding, errors=errors,
        delimiter=delimiter, header=header, quoting=quoting,
    )  # fmt: skip
    return documents_in(source, options, dict.fromkeys(covariates))


def documents_in(
    source: str | Path, options: FileOptions, covariates: Mapping[str, str | None] | None = None
) -> Iterator[Document]:
    """Read documents in their order. The source is opened once, when the first document is read.

    Args:
        source: a file, a folder, or "-" for standard input, as `read` describes them.
        options: how it is read.
        covariates: columns whose values the documents have as `covariates`, each with the argument that names it for
            messages. A column whose argument is None may be missing.

    Raises:
        InputError: the source cannot be read, or no document has a value of a column; the message names the file and
            the line.
        SettingError: a format, an encoding or another setting is not known.
        MissingExtraError: a .parquet or .xlsx file is to be read, and pyarrow or openpyxl is not installed.
    """
    path = None if str(source) == "-" else as_path(source, "source")
    given = Input(path, _checked_encoding(options.encoding), options.errors)
    if options.errors not in _ERRORS:
        raise SettingError(f"`errors={options.errors!r}` is not known; {nearest(options.errors, _ERRORS)}")
    if path is not None:
        _require(path)
        _refuse_saved(path)
    is_folder = path is not None and path.is_dir()
    if is_folder and options.format is not None:
        raise InputError(f"`format={options.format!r}` is for a single file; leave it out for the folder {given.name}")
    name = "md" if is_folder else options.format or _format_of(path)
    if name not in _READERS:
        raise SettingError(f"`format={name!r}` is not known; {nearest(name, _READERS)}")
    columns = Columns(options.text, options.id, options.label, options.timestamp, covariates or {})
    arguments = dict.fromkeys(f"`{argument}`" for argument in columns.covariates.values() if argument is not None)
    if name in ("md", "txt") and (options.id or options.label or options.timestamp or arguments):
        roles = " or ".join(arguments) or "id, label or timestamp"
        advice = "give `format` as csv, tsv or jsonl" if path is None else "use .csv or .jsonl"
        raise InputError(f"{given.name}: plain text has no columns for {roles}; {advice}")
    if not options.header and name not in ("csv", "tsv", "xlsx"):
        raise InputError(f"`header=False` is for .csv, .tsv and .xlsx files; leave it out for {given.name}")
    for argument, is_given in (
        (f"`delimiter={options.delimiter!r}`", options.delimiter is not None),
        ("`quoting=False`", not options.quoting),
    ):
        if is_given and name not in ("csv", "tsv"):
            raise InputError(f"{argument} is for .csv and .tsv files; leave it out for {given.name}")
    delimiter = None if options.delimiter is None else _checked_delimiter(options.delimiter)
    if is_folder:
        return _checked(_folder(given), given.name, are_names=True)
    layout = Layout(columns, delimiter, options.header, options.quoting)
    return _checked(_READERS[name](given, layout), given.name, columns.covariates)


def _require(path: Path) -> None:
    if not is_utf8(str(path)):
        raise InputError(f"the path {str(path)!a} is not UTF-8, so it cannot be recorded; rename the file")
    try:
        exists = path.exists()
    except (OSError, ValueError):  # the name is too long, or contains NUL
        exists = False
    if not exists:
        raise InputError(f"{path!s:.200} does not exist; check the path")


def _refuse_saved(path: Path) -> None:
    """Refuse a directory that topicloom wrote: its .txt files are the words of a vocabulary and no documents."""
    if holds_corpus(path):
        raise InputError(f"{path} is a saved corpus already; give the text that it was made of")
    if holds_model(path):
        raise InputError(f"{path} is a trained model; give a text, or use the model with the commands topics and infer")


def _checked_encoding(encoding: str) -> str:
    try:
        "".encode(encoding)  # refuses codecs that do not encode text
        name = codecs.lookup(encoding).name.replace("_", "-")
    except (LookupError, TypeError, ValueError):
        name = "undefined"
    if name in _NOT_FOR_FILES:
        raise SettingError(
            f"`encoding={encoding!r}` is not known as an encoding of text files; give one such as utf-8, utf-16, "
            "gb18030, big5 or cp1252"
        )
    return "utf-8-sig" if name == "utf-8" else encoding


def _checked_delimiter(delimiter: str) -> str:
    delimiter = {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter)
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise SettingError(f"`delimiter={delimiter!r}` must be one character, such as ; or \\t for a tab")
    return delimiter


def _format_of(path: Path | None) -> str:
    if path is None:
        return "txt"
    ending = path.with_suffix("").suffix if path.suffix.lower() == ".gz" else path.suffix
    aliases = {".markdown": ".md", ".ndjson": ".jsonl", ".text": ".txt"}
    name = aliases.get(ending.lower(), ending.lower()).removeprefix(".")
    if name not in _READERS:
        fault = f"ends in {ending!r}, which is not a known format" if ending else "has no ending that shows its format"
        advice = _TO_CONVERT.get(ending.lower(), f"give `format` as one of {', '.join(_READERS)}")
        raise InputError(f"{path} {fault}; {advice}")
    return name


def _lines(given: Input, layout: Layout) -> Iterator[Document]:
    with opened(given) as file:
        for line in file:
            yield Document(line.rstrip("\n"))


def _whole(given: Input, layout: Layout) -> Iterator[Document]:
    with opened(given) as file:
        yield Document(file.read(), None if given.path is None else given.path.name)


def _folder(given: Input) -> Iterator[Document]:
    root = given.path
    assert root is not None
    shown = sorted(file for file in root.rglob("*") if _is_shown(file.relative_to(root)) and file.is_file())
    found = [file for file in shown if file.name.lower().endswith(_DOCUMENTS)]
    # A folder of texts may have runs in it, whose .txt files are words of a vocabulary.
    saved = {folder for folder in {file.parent for file in found} if _is_saved(folder)}
    files = [file for file in found if file.parent not in saved]
    tables = [file for file in shown if file.name.lower().removesuffix(".gz").endswith(_NOT_IN_FOLDERS)]
    tables += [file for file in shown if file.name.lower().endswith((".txt.gz", ".md.gz"))]
    tables = [file for file in tables if not holds_model(file.parent)]  # those of a run are no texts
    example = f", such as {tables[0].relative_to(root)}" if tables else ""
    if not files:
        problem = "only what topicloom has written" if found else "no .txt or .md files"
        advice = f"give one of its files{example}" if tables else "give a file of texts, or a folder that contains some"
        raise InputError(f"the folder {root} contains {problem}; {advice}")
    if tables:
        which = counted(len(tables), "table or compressed file", "tables and compressed files")
        logger.warning("%s contains %s%s; of a folder, only .txt and .md files are read", root, which, example)

    def documents() -> Iterator[Document]:
        for path in files:
            with opened(given._replace(path=path)) as file:
                yield Document(file.read(), path.relative_to(root).as_posix())

    return documents()


def _is_saved(folder: Path) -> bool:
    """Return whether the files of a folder are those of a saved corpus or model, such as a run has."""
    return holds_corpus(folder) or (folder / "model.safetensors").is_file()


def _is_shown(path: Path) -> bool:
    """Return whether a file of a folder is neither hidden nor in a hidden folder, such as .git."""
    return not any(part.startswith(".") for part in path.parts)


_ONLY_TEXT = (None, None, None, None)  # the other fields of such a document


def _with_whole_characters(document: Document, where: str) -> Document:
    """Return a document in whose fields besides the text the halves of surrogate pairs are joined.

    Raises:
        InputError: a field contains a lone surrogate.
    """
    known = document.covariates or {}
    if is_utf8("".join(filter(None, (*document[1:4], *known.values())))):
        return document
    id, label, timestamp = (
        value if value is None else require_utf8(value, f"the {name} {where}")
        for name, value in zip(Document._fields[1:4], (document.id, document.label, document.timestamp), strict=True)
    )
    covariates = {
        name: value if value is None else require_utf8(value, f"{name!r} {where}") for name, value in known.items()
    }
    return Document(document.text, id, label, timestamp, document.covariates and covariates)


_READERS: dict[str, Callable[[Input, Layout], Iterator[Document]]] = {
    "txt": _lines,
    "md": _whole,
    "csv": read_csv,
    "tsv": read_tsv,
    "xlsx": read_xlsx,
    "jsonl": read_json_lines,
    "parquet": read_parquet,
}


def _checked(
    documents: Iterator[Document],
    name: str,
    covariates: Mapping[str, str | None] = MappingProxyType({}),
    *,
    are_names: bool = False,
) -> Iterator[Document]:
    """Replace the surrogates in texts, and check that there are documents and values.

    Args:
        documents: the documents.
        name: the file, for messages.
        covariates: columns that were asked for, with the argument that named each.
        are_names: whether the ids are names of files, whose surrogates are replaced too.

    Raises:
        InputError: the file contains no documents, none of them has a value of a column that was asked for, or a value
            contains a lone surrogate.
    """
    document = None
    unseen = {column: argument for column, argument in covariates.items() if argument is not None}
    for row, document in enumerate(documents):
        if not is_utf8(document.text):
            document = document._replace(text=replace_surrogates(document.text))
        if are_names and document.id is not None:
            document = document._replace(id=replace_surrogates(document.id))
        elif document[1:] != _ONLY_TEXT:
            document = _with_whole_characters(document, f"of document {row} of {name}")
        if unseen:
            known = document.covariates or {}
            unseen = {column: argument for column, argument in unseen.items() if not known.get(column)}
        yield document
    if document is None:
        raise InputError(f"{name} contains no documents")
    for column, argument in unseen.items():
        raise InputError(
            f"no document of {name} has a value of {column!r}; check the name of the column (`{argument}`)"
        )
