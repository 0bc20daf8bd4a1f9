"""Files to documents, one at a time, so that a file larger than memory can be read."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from ..errors import (
    InputError,
    MissingExtraError,
    SettingError,
    nearest,
)

_ERRORS = ("strict", "replace", "ignore")


class Document(NamedTuple):
    """A text and what is known of it; None is not known."""

    text: str
    id: str | None = None
    label: str | None = None
    timestamp: str | None = None


class Columns(NamedTuple):
    """The columns to read; an `id`, `label` or `timestamp` of None means the column of that name, if there is one."""

    text: str = "text"
    id: str | None = None
    label: str | None = None
    timestamp: str | None = None


class _Input(NamedTuple):
    path: Path | None  # None is standard input
    encoding: str
    errors: str

    @property
    def name(self) -> str:
        return "standard input" if self.path is None else str(self.path)


def read(
    source: str | Path,
    *,
    text: str = "text",
    id: str | None = None,
    label: str | None = None,
    timestamp: str | None = None,
    format: str | None = None,
    encoding: str = "utf-8",
    errors: str = "strict",
) -> Iterator[Document]:
    """Reads documents in their order; a blank line of a .txt file is a document too.

    Args:
        source: a .txt (a document a line), .csv, .tsv, .jsonl or .parquet file, the first four also with .gz; a folder
            of .txt files (a document a file, its id the relative path); or "-" for lines on standard input.
        text: the column or field with the text.
        id: the column with the document's id; None takes the column `id` where there is one.
        label: likewise, a class.
        timestamp: likewise, a time.
        format: "txt", "csv", "tsv", "jsonl" or "parquet", when the file's name does not say it.
        encoding: the encoding of text files; a UTF-8 byte order mark is passed over.
        errors: what to do with undecodable bytes: "strict", "replace" or "ignore".

    Raises:
        InputError: the source cannot be read; the sentence names the file and the line.
        MissingExtraError: a .parquet file without pyarrow.
    """
    path = None if str(source) == "-" else Path(source)
    try:
        "".encode(encoding)
    except (LookupError, ValueError):  # there is none, or it is no encoding of text
        raise SettingError(f"encoding={encoding!r} is not known; utf-8, gb18030 and big5 are") from None
    if errors not in _ERRORS:
        raise SettingError(f"errors={errors!r} is not known; {nearest(errors, _ERRORS)}")
    if encoding.lower().replace("_", "-") in {"utf-8", "utf8"}:
        encoding = "utf-8-sig"
    given = _Input(path, encoding, errors)
    columns = Columns(text, id, label, timestamp)
    if path is not None and not path.exists():
        raise InputError(f"{path} does not exist; check the path")
    if path is not None and path.is_dir():
        return _folder(given)
    name = format or _format_of(path)
    if name not in _READERS:
        raise SettingError(f"format={name!r} is not known; {nearest(name, _READERS)}")
    if name == "txt" and (id or label or timestamp):
        raise InputError(f"{given.name}: plain text has no columns for id, label or timestamp; use .csv or .jsonl")
    return _not_empty(_READERS[name](given, columns), given.name)


def _format_of(path: Path | None) -> str:
    if path is None:
        return "txt"
    ending = path.with_suffix("").suffix if path.suffix.lower() == ".gz" else path.suffix
    name = {".ndjson": ".jsonl", ".text": ".txt"}.get(ending.lower(), ending.lower()).removeprefix(".")
    if name not in _READERS:
        ending = f"ends in {ending!r}" if ending else "has no ending"
        formats = ", ".join(_READERS)
        raise InputError(f"{path} {ending}, which is no known format; name one of {formats} by format= (--format)")
    return name


def _lines(given: _Input, columns: Columns) -> Iterator[Document]:
    with _opened(given) as file:
        for line in file:
            yield Document(line.rstrip("\n"))


def _csv(given: _Input, columns: Columns) -> Iterator[Document]:
    return _table(given, columns, "excel")


def _tsv(given: _Input, columns: Columns) -> Iterator[Document]:
    return _table(given, columns, "excel-tab")


def _table(given: _Input, columns: Columns, dialect: str) -> Iterator[Document]:
    csv.field_size_limit(max(csv.field_size_limit(), 2**31 - 1))  # long documents are no fault
    with _opened(given, newline="") as file:
        rows = csv.reader(file, dialect)
        try:
            header = next(rows, None)
            if header is None:
                return
            places = [header.index(name) if name else None for name in _resolved(columns, header, given.name)]
            for row in rows:
                if not row:  # a blank line: an empty text where there is one column, and nothing otherwise
                    if len(header) > 1:
                        continue
                    row = [""]
                if len(row) != len(header):
                    raise InputError(
                        f"{given.name}, line {rows.line_num}: {len(row)} fields, and the header has {len(header)}; "
                        "quote the fields that hold the separator"
                    )
                text, *rest = (None if place is None else row[place] for place in places)
                yield Document(text or "", *rest)
        except csv.Error as error:
            raise InputError(f"{given.name}, line {rows.line_num}: not readable as a table: {error}") from None


def _json_lines(given: _Input, columns: Columns) -> Iterator[Document]:
    with _opened(given) as file:
        for number, line in enumerate(file, 1):
            where = f"{given.name}, line {number}"
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except json.JSONDecodeError as error:
                raise InputError(f"{where}, column {error.colno}: not JSON ({error.msg}); correct the line") from None
            if not isinstance(record, dict):
                raise InputError(f'{where}: not a JSON object; each line must be one, such as {{"text": "..."}}')
            yield _document(record, _resolved(columns, record, where, optional=True), where)


def _parquet(given: _Input, columns: Columns) -> Iterator[Document]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise MissingExtraError.of("a .parquet file", "pyarrow", "io") from None
    if given.path is None:
        raise InputError("parquet cannot be read from standard input; give the file's path")
    try:
        with parquet.ParquetFile(given.path) as file:
            resolved = _resolved(columns, file.schema_arrow.names, given.name)
            row = count()
            for batch in file.iter_batches(batch_size=1024, columns=[name for name in resolved if name]):
                for record in batch.to_pylist():
                    yield _document(record, resolved, f"{given.name}, row {next(row)}")
    except (ArrowException, OSError) as error:
        raise InputError(f"{given.name} cannot be read as parquet: {str(error).splitlines()[0]}") from None


def _folder(given: _Input) -> Iterator[Document]:
    assert given.path is not None
    files = sorted(file for file in given.path.rglob("*.txt") if file.is_file())
    if not files:
        raise InputError(f"{given.path} is a folder without .txt files; give a file, or a folder that holds some")

    def documents(root: Path) -> Iterator[Document]:
        for path in files:
            with _opened(given._replace(path=path)) as file:
                yield Document(file.read(), id=path.relative_to(root).as_posix())

    return documents(given.path)


_READERS: dict[str, Callable[[_Input, Columns], Iterator[Document]]] = {
    "txt": _lines,
    "csv": _csv,
    "tsv": _tsv,
    "jsonl": _json_lines,
    "parquet": _parquet,
}


def _resolved(columns: Columns, present: Iterable[str], where: str, *, optional: bool = False) -> Columns:
    """The columns to read out of those present; with `optional`, one that is named and absent is None, not an error."""
    present = list(present)

    def resolve(role: str, name: str | None) -> str | None:
        if name is None:
            return role if role in present else None
        if name in present:
            return name
        if optional and role != "text":
            return None
        names = ", ".join(f"{column:.30}..." if len(column) > 30 else column for column in present)
        there_are = f"there are: {names}" if present else "there are none"
        raise InputError(f"{where} has no column {name!r}; {there_are}; name it by {role}= (--{role})")

    text, *rest = (resolve(role, name) for role, name in columns._asdict().items())
    assert text is not None
    return Columns(text, *rest)


def _document(record: dict[str, Any], columns: Columns, where: str) -> Document:
    text = "" if record[columns.text] is None else record[columns.text]  # a document without words, which keeps its row
    if not isinstance(text, str):
        raise InputError(f"{where}: {columns.text!r} is {json.dumps(text, default=str):.40}, not a string; correct it")
    rest = (None if name is None or record[name] is None else _as_string(record[name]) for name in columns[1:])
    return Document(text.replace("\0", " "), *rest)


def _as_string(value: Any) -> str:
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)


def _not_empty(documents: Iterator[Document], name: str) -> Iterator[Document]:
    first = next(documents, None)
    if first is None:
        raise InputError(f"{name} holds no document")
    yield first
    yield from documents


@contextmanager
def _opened(given: _Input, newline: str | None = None) -> Iterator[_WithoutNul]:
    """The input as text, NUL characters as blanks, with errors of the file as sentences."""
    try:
        with _open(given, newline) as file:
            yield _WithoutNul(file)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{given.name}{_place_of_fault(given)}: not {given.encoding.removesuffix('-sig')} "
            f'(byte 0x{error.object[error.start]:02x}); give its encoding (such as encoding="gb18030"), or '
            'errors="replace" (--errors replace) to read on'
        ) from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InputError(f"{given.name} is not a whole gzip file; make it again") from None
    except OSError as error:
        raise InputError(f"{given.name} cannot be read: {error.strerror or error}") from None


def _open(given: _Input, newline: str | None) -> TextIO:
    if given.path is None:
        return io.TextIOWrapper(sys.stdin.buffer, given.encoding, given.errors, newline)
    return io.TextIOWrapper(_open_binary(given.path), given.encoding, given.errors, newline)


def _open_binary(path: Path) -> Any:
    return gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb")


class _WithoutNul:
    def __init__(self, file: TextIO) -> None:
        self._file = file

    def __iter__(self) -> Iterator[str]:
        return (line.replace("\0", " ") for line in self._file)

    def read(self) -> str:
        return self._file.read().replace("\0", " ")


def _place_of_fault(given: _Input) -> str:
    """Finds the first undecodable line by reading the file again, which text decoding in blocks cannot tell."""
    if given.path is None:
        return ""
    start = 0
    with _open_binary(given.path) as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode(given.encoding)
            except UnicodeDecodeError as error:
                return f", line {number}, byte {start + error.start + 1}"
            start += len(line)
    return ""
