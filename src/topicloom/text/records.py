"""Opening files, and the documents in them: JSON Lines, Parquet, and the columns that documents are read from."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import logging
import reprlib
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, NamedTuple, TextIO

from ..errors import InputError, MissingExtraError
from ..messages import nearest

logger = logging.getLogger("topicloom")

# Opening text files. Each fault in a file is reported in one sentence that names its place.

_HEAD = 4096  # bytes that are searched for the signs of UTF-16 and of binary files
_CONTROL = bytes({*range(32), 127} - set(b"\t\n\f\r\x1b"))  # bytes that encodings of text hardly use
_MOST_CONTROL = 0.01  # of the bytes of a text
MOST_CHARACTERS = 50_000_000  # of a document; while they are counted, they take up to a gigabyte
_FEW = 2  # such bytes that a short text may have by mistake


def too_long(where: str, n_characters: str) -> InputError:
    """Return the error that a text is longer than a document can be, given how many characters it has."""
    return InputError(
        f"{where} has {n_characters} characters, and a document should have at most {MOST_CHARACTERS:,}; divide the "
        "text into documents, such as its paragraphs"
    )


class Input(NamedTuple):
    """A file and how its bytes are decoded."""

    path: Path | None  # None is standard input
    encoding: str
    errors: str

    @property
    def name(self) -> str:
        """The file's name in messages."""
        return "standard input" if self.path is None else str(self.path)


class Lines:
    """A text file whose NUL characters are read as blanks.

    Args:
        file: the file.
        given: where it comes from.
    """

    def __init__(self, file: TextIO, given: Input) -> None:
        self._file = file
        self._given = given

    def __iter__(self) -> Iterator[str]:
        most = MOST_CHARACTERS + len("\r\n")
        for number, line in enumerate(iter(lambda: self._file.readline(most), ""), 1):
            if len(line) > MOST_CHARACTERS:
                self._check_length(line.rstrip("\r\n"), f"{self._given.name}, line {number}")
            yield self._without_nul(line) if number == 1 else line.replace("\0", " ")

    def read(self) -> str:
        """Return the whole text."""
        text = self._file.read(MOST_CHARACTERS + 1)
        self._check_length(text, self._given.name)
        return self._without_nul(text)

    @staticmethod
    def _check_length(text: str, where: str) -> None:
        if len(text) > MOST_CHARACTERS:
            raise too_long(where, f"more than {MOST_CHARACTERS:,}")

    def _without_nul(self, text: str) -> str:
        # Latin text in UTF-16 decodes as UTF-8 without an error, to letters with NUL characters between them.
        head = text[:_HEAD].encode("utf-8", "replace")
        n_nul = head.count(0)
        if n_nul > 2 and 3 * n_nul > len(head) and (codec := _utf16(head)):
            raise InputError(f"{self._given.name} looks like UTF-16 text; {_advice(self._given, codec)}")
        return text.replace("\0", " ")


@contextmanager
def opened(given: Input, newline: str | None = None) -> Iterator[Lines]:
    """Open a text file, and report the faults that occur while it is read.

    Raises:
        InputError: the file cannot be opened, decompressed or decoded.
    """
    try:
        with _open(given, newline) as file:
            given = given._replace(encoding=file.encoding)
            yield Lines(file, given)
    except UnicodeDecodeError as error:
        raise _undecodable(given, error) from None
    except UnicodeError as error:
        fault = f"{given.name} cannot be read as {given.encoding}: {error}"
        raise InputError(f"{fault}; {_advice(given, 'utf-16-le' if '16' in given.encoding else None)}") from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InputError(f"{given.name} is not a complete gzip file; make it again") from None
    except OSError as error:
        raise InputError(f"{given.name} cannot be read: {error.strerror or error}") from None


def _open(given: Input, newline: str | None) -> TextIO:
    buffer = getattr(sys.stdin, "buffer", None) if given.path is None else _open_binary(given.path)
    if buffer is None or buffer.closed:
        raise InputError("standard input is closed; give a file")
    return io.TextIOWrapper(buffer, _marked(buffer) or given.encoding, given.errors, newline)


def _marked(file: Any) -> str | None:
    """Return "utf-16" if a file begins with the mark of this encoding, whose bytes begin no text in UTF-8.

    Excel's "Unicode text" and some editors on Windows write such files. The file is not read on.
    """
    if file.seekable():
        start = file.tell()
        head = file.read(4)
        file.seek(start)
    else:
        head = file.peek(4)[:4] if hasattr(file, "peek") else b""
    if head == codecs.BOM_UTF32_LE:  # which begins with that of UTF-16
        return None
    return "utf-16" if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else None


def _open_binary(path: Path) -> IO[bytes]:
    file: Any = gzip.GzipFile(path) if path.suffix.lower() == ".gz" else path.open("rb")
    binary: IO[bytes] = file
    return binary


def _undecodable(given: Input, error: UnicodeDecodeError) -> InputError:
    """Return the error for bytes that the encoding does not have, with their place and the encoding to try."""
    place, head = "", bytes(error.object[:_HEAD])
    if given.path is not None and given.path.is_file():  # a pipe cannot be opened again
        try:
            place = _place_of_fault(given.path, given.encoding)
            with _open_binary(given.path) as file:
                head = file.read(_HEAD)
        except (OSError, EOFError, zlib.error):
            pass  # the file is damaged elsewhere too; the fault is reported without its place
    if _is_binary(head):
        return InputError(f"{given.name} looks like a binary file and not like text; give a file of text, or remove it")
    fault = f"{given.name}{place}: not {given.encoding.removesuffix('-sig')} (byte 0x{error.object[error.start]:02x})"
    return InputError(f"{fault}; {_advice(given, _utf16(head))}")


def _advice(given: Input, codec: str | None) -> str:
    """What to do about a file that cannot be decoded and may be in UTF-16."""
    if codec is not None and codec != given.encoding:
        codecs_to_try = [codec, *{"utf-16-le": ["utf-16-be"], "utf-16-be": ["utf-16-le"]}.get(codec, [])]
        return "give " + " or ".join(f'`encoding="{each}"`' for each in codecs_to_try)
    replace = 'give `errors="replace"` to read the file all the same'
    if codecs.lookup(given.encoding).name in ("gb2312", "gbk"):
        return f'give `encoding="gb18030"`, which has more characters, or {replace}'
    if given.encoding != "utf-8-sig":
        return f"give its encoding by `encoding`, or {replace}"
    return (
        'give its encoding, such as `encoding="gb18030"` for simplified Chinese, `encoding="big5"` for traditional '
        f'Chinese or `encoding="cp1252"` for Western European text, or {replace}'
    )


def _is_binary(head: bytes) -> bool:
    """Whether the first bytes of a file that cannot be decoded are not text in another encoding."""
    if head.startswith(b"%PDF-"):
        return True
    if (codec := _utf16(head)) is not None:  # has such bytes, too; but not everything can be decoded as UTF-16
        try:
            codecs.getincrementaldecoder(codec)().decode(head)
            return False
        except UnicodeDecodeError:
            pass
    return len(head) - len(head.translate(None, _CONTROL)) > max(_FEW, _MOST_CONTROL * len(head))


def _utf16(head: bytes) -> str | None:
    """Return the variant of UTF-16 that the first bytes of a file look like, if any."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    even, odd = head[::2].count(0), head[1::2].count(0)  # one byte of each ASCII character is 0
    if max(even, odd) <= 4 * min(even, odd):
        return None
    return "utf-16-le" if odd > even else "utf-16-be"


def _place_of_fault(path: Path, encoding: str) -> str:
    """Read a file again to find the line and the byte that cannot be decoded; decoding in blocks does not show them."""
    decoder = codecs.getincrementaldecoder(encoding)()
    start, n_lines, data = 0, 1, b""
    with _open_binary(path) as file:
        try:
            for data in file:
                n_lines += decoder.decode(data).count("\n")
                start += len(data)
            data = b""
            decoder.decode(data, final=True)
        except UnicodeDecodeError as error:
            place = start + len(data) - len(error.object) + error.start + 1
            return f", line {n_lines}, byte {place}"
        except UnicodeError:  # UTF-16 without a byte order mark
            return ""
    return ""


_MOST_WITHOUT_TEXT = 1_000  # records at the start of a file; if none of them has the text, its name is wrong


class Document(NamedTuple):
    """A text and what is known about it; None means that it is not known.

    `covariates` has the values of the columns that were asked for and that the file has, by their names.

    Examples:
        >>> from topicloom.text import Document
        >>> Document("The cat sees a dog", label="pets").label
        'pets'
    """

    text: str
    id: str | None = None
    label: str | None = None
    timestamp: str | None = None
    covariates: Mapping[str, str | None] | None = None


class Columns(NamedTuple):
    """The columns to read. None for `id`, `label` or `timestamp` means the column of that name, if the file has one.

    `covariates` has further columns, each with the argument that names it for messages. With None in place of the
    argument, a column is read only if the file has it.
    """

    text: str = "text"
    id: str | None = None
    label: str | None = None
    timestamp: str | None = None
    covariates: Mapping[str, str | None] = MappingProxyType({})

    def roles(self) -> dict[str, str | None]:
        """Return the columns of the text, id, label and timestamp, by these roles."""
        return {role: name for role, name in self._asdict().items() if role != "covariates"}

    def asked(self) -> dict[str, str]:
        """Return the columns that a file should have besides the text, each with the argument that names it."""
        roles = {name: role for role, name in self.roles().items() if name not in (None, self.text)}
        named = {name: argument for name, argument in self.covariates.items() if argument is not None}
        return {name: argument for name, argument in (named | roles).items() if name is not None}

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
    asked = layout.columns.asked()
    waiting: list[Document] = []  # until a record has a text: a wrong name should be reported before all are read
    first: tuple[str, dict[str, Any]] | None = None
    n_records = n_without = 0
    record: dict[str, Any] = {}
    for where, record in _json_objects(given):
        n_records += 1
        if asked:
            asked = {name: argument for name, argument in asked.items() if name not in record}
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
        name, argument = next(iter(asked.items()))
        raise InputError(f"no record of {given.name} has {name!r}, the column of `{argument}`; {nearest(name, record)}")
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
    further = {
        name: argument
        for name, argument in columns.covariates.items()
        if (argument is not None or name in present) and resolve(argument or "covariates", name)
    }
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
