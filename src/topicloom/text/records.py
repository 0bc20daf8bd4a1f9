"""Opening files, and the documents in them: JSON, JSON Lines, Parquet, and the columns that documents are read from."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import logging
import reprlib
import sys
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, count, islice
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, NamedTuple, TextIO, cast

from ..errors import InputError, MissingExtraError
from ..messages import brief, counted, nearest
from .strings import plain_string

logger = logging.getLogger("topicloom")

# Opening text files. Each fault in a file is reported in one sentence that names its place.

_PART = 1 << 16  # characters that are read at once
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


def on_one_line(name: str) -> str:
    """Return the name of a file for a message; one with a line break or another such character is quoted."""
    return name if name.isprintable() else ascii(name)


class Input(NamedTuple):
    """A file and how its bytes are decoded.

    Args:
        path: the file, or the archive that it is a member of; None is standard input.
        encoding: the encoding of its text.
        errors: what to do with bytes that are not in the encoding.
        place: the fields "file" and "folder" of its documents.
        member: opens the member of an archive; None if the file is no member.
    """

    path: Path | None
    encoding: str
    errors: str
    place: Mapping[str, str] = MappingProxyType({})
    member: Callable[[], IO[bytes]] | None = None
    name_of_member: str = ""
    shown: str | None = None

    @property
    def name(self) -> str:
        """The file's name in messages."""
        if self.shown is not None:
            return self.shown
        if self.path is None:
            return "standard input"
        path = on_one_line(str(self.path))
        return f"{on_one_line(self.name_of_member)} in {path}" if self.member else path

    @property
    def ending(self) -> str:
        """The ending of the file's name in lower case, such as ".gz"."""
        return Path(self.name_of_member or self.path or "").suffix.lower()

    def binary(self) -> IO[bytes]:
        """Open the file. Compressed text is decompressed."""
        if self.member is None and self.path is None:
            buffer: IO[bytes] | None = getattr(sys.stdin, "buffer", None)
            if buffer is None or buffer.closed:
                raise InputError("standard input is closed; give a file")
            return buffer
        assert self.path is not None
        is_gzip = self.ending == ".gz"
        if self.member is None:
            return cast("IO[bytes]", gzip.open(self.path)) if is_gzip else self.path.open("rb")
        file = self.member()
        return cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if is_gzip else file


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
        readline = self._file.readline
        number = 0
        while line := readline(most):
            number += 1
            if len(line) > MOST_CHARACTERS:
                self._check_length(line.rstrip("\r\n"), f"{self._given.name}, line {number}")
            if "\0" in line:
                line = self._without_nul(line) if number == 1 else line.replace("\0", " ")
            yield line

    @property
    def bytes(self) -> IO[bytes]:
        """The file before it is decoded, for formats of which a part is no text."""
        binary: Any = self._file.buffer
        return cast("IO[bytes]", binary)

    def parts(self) -> Iterator[str]:
        """Yield the text in parts of any length."""
        for number, part in enumerate(iter(lambda: self._file.read(_PART), "")):
            yield part.replace("\0", " ") if number else self._without_nul(part)

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
def faults_named(given: Input) -> Iterator[None]:
    """Report the faults of a file that cannot be read or decompressed.

    Raises:
        InputError: there was such a fault.
    """
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error, zipfile.BadZipFile):
        fault = f"{given.name} is damaged" if given.member else f"{given.name} is not a complete gzip file"
        raise InputError(f"{fault}; make it again") from None
    except OSError as error:
        raise InputError(f"{given.name} cannot be read: {error.strerror or error}") from None


@contextmanager
def opened(given: Input, newline: str | None = None) -> Iterator[Lines]:
    """Open a text file, and report the faults that occur while it is read.

    Raises:
        InputError: the file cannot be opened, decompressed or decoded.
    """
    try:
        with faults_named(given), _open(given, newline) as file:
            given = given._replace(encoding=file.encoding)
            yield Lines(file, given)
    except UnicodeDecodeError as error:
        raise _undecodable(given, error) from None
    except UnicodeError as error:
        fault = f"{given.name} cannot be read as {given.encoding}: {error}"
        raise InputError(f"{fault}; {_advice(given, 'utf-16-le' if '16' in given.encoding else None)}") from None


def _open(given: Input, newline: str | None) -> TextIO:
    buffer = given.binary()
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


def _undecodable(given: Input, error: UnicodeDecodeError) -> InputError:
    """Return the error for bytes that the encoding does not have, with their place and the encoding to try."""
    place, head = "", bytes(error.object[:_HEAD])
    if given.path is not None and given.path.is_file():  # a pipe cannot be opened again
        try:
            place = _place_of_fault(given)
            with given.binary() as file:
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
        return f'give its encoding, such as `encoding="utf-8"`, or {replace}'
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


def _place_of_fault(given: Input) -> str:
    """Read a file again to find the line and the byte that cannot be decoded; decoding in blocks does not show them."""
    decoder = codecs.getincrementaldecoder(given.encoding)()
    start, n_lines, data = 0, 1, b""
    with given.binary() as file:
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
    argument, a column is read only if the file has it. So are the columns of the roles in `optional`, such as "label".
    """

    text: str = "text"
    id: str | None = None
    label: str | None = None
    timestamp: str | None = None
    covariates: Mapping[str, str | None] = MappingProxyType({})
    optional: Collection[str] = ()

    def roles(self) -> dict[str, str | None]:
        """Return the columns of the text, id, label and timestamp, by these roles."""
        return {role: name for role, name in self._asdict().items() if role not in ("covariates", "optional")}

    def asked(self) -> dict[str, str]:
        """Return the columns that a file should have besides the text, each with the argument that names it."""
        must = {role: name for role, name in self.roles().items() if role not in self.optional}
        roles = {name: role for role, name in must.items() if name not in (None, self.text)}
        named = {name: argument for name, argument in self.covariates.items() if argument is not None}
        return {name: argument for name, argument in (named | roles).items() if name is not None}

    def of_documents(self) -> tuple[str | None, str | None, str | None]:
        """Return the columns of ids, labels and timestamps."""
        return self.id, self.label, self.timestamp

    def names(self) -> list[str]:
        """Return all columns that are read, each once."""
        return list(dict.fromkeys(name for name in (*self.roles().values(), *self.covariates) if name))

    def missing(self, present: Iterable[str], known: Mapping[str, str]) -> dict[str, str]:
        """Return those of the known fields that are to be read, and that are not among the columns of the file."""
        present = set(present)
        return {name: known[name] for name in self.names() if name in known and name not in present}


class Layout(NamedTuple):
    """Where a file has its texts.

    Args:
        columns: the columns to read.
        delimiter: the character between the fields of a table, or None to recognise it.
        header: whether the first line of a table names its columns.
        quoting: whether quotation marks enclose the fields of a table.
        quotechar: the quotation mark of a table, or None to recognise it.
        escapechar: the character that precedes quotation marks and delimiters inside of fields, "none" for no such
            character, or None to recognise it.
        sheet: the name or the number of a worksheet; None is the first one.
    """

    columns: Columns
    delimiter: str | None = None
    header: bool = True
    quoting: bool = True
    quotechar: str | None = None
    escapechar: str | None = None
    sheet: str | None = None


def read_json_lines(given: Input, layout: Layout) -> Iterator[Document]:
    """Read one JSON object from each line; blank lines are skipped.

    A record may lack any column. One without a text is an empty document.

    Raises:
        InputError: a line cannot be read, or no record has a column that was asked for.
    """
    with opened(given) as file:
        yield from _of_records(_of_lines(enumerate(file, 1), given.name), given, layout)


def read_json(given: Input, layout: Layout) -> Iterator[Document]:
    """Read a list of objects; an object with a single list of objects in it; or an object that is a document itself.

    JSON Lines are read as such.

    Raises:
        InputError: as for `read_json_lines`.
    """
    with opened(given) as file:
        parts = file.parts()
        first = next(parts, "")
        line, _, rest = first.partition("\n")
        if first.lstrip().startswith("["):
            records = _of_list(_Text(chain([first], parts)), given.name)
        elif rest.strip() and _is_json(line):
            records = _of_lines(enumerate(_lines_of(chain([first], parts)), 1), given.name)
        else:
            records = _of_object("".join(chain([first], parts)), given.name, layout.columns.text)
        yield from _of_records(records, given, layout)


def _of_records(records: Iterator[tuple[str, dict[str, Any]]], given: Input, layout: Layout) -> Iterator[Document]:
    """Yield the document of each record, which comes with its place for messages."""
    text = layout.columns.text
    names = layout.columns.names()
    nested = [name for name in names if "." in name]
    asked = layout.columns.asked()
    waiting: list[Document] = []  # until a record has a text: a wrong name should be reported before all are read
    first: tuple[str, dict[str, Any]] | None = None
    n_records = n_without = 0
    record: dict[str, Any] = {}
    for where, record in records:
        n_records += 1
        found = dict(record)
        found |= {name: found_value for name in nested if (found_value := value_at(record, name)) is not _MISSING}
        found |= layout.columns.missing(found, given.place)
        if asked:
            asked = {name: argument for name, argument in asked.items() if name not in found}
        lacks = text not in found
        if lacks:
            n_without += 1
            first = first or (where, record)
            found[text] = None
        waiting.append(_document(found, resolve_columns(layout.columns, found, where, optional=True), where))
        if n_without < n_records:
            yield from waiting
            waiting.clear()
        elif n_without == _MOST_WITHOUT_TEXT:
            break
    if first and n_without == n_records:
        resolve_columns(layout.columns, paths_of(first[1]), first[0], optional=True)  # raises the error
    if record and asked:
        name, argument = next(iter(asked.items()))
        advice = nearest(name, paths_of(record))
        raise InputError(f"no record of {given.name} has {name!r}, the column of `{argument}`; {advice}")
    if n_without:
        logger.warning(
            "%s of %s of %s %s",
            f"{n_without:,}",
            counted(n_records, "record"),
            given.name,
            f"has no {text!r}; it is an empty document"
            if n_without == 1
            else f"have no {text!r}; they are empty documents",
        )


_MISSING = object()


def value_at(value: Any, path: str) -> Any:
    """Return what is at a path such as "data.0.text": a key of an object, or a number from 0 for an entry of a list.

    A key that contains dots itself comes before a path of several keys. Where there is nothing, `_MISSING` is returned.

    >>> value_at({"data": [{"text": "a"}], "data.0": {"text": "b"}}, "data.0.text")
    'b'
    """
    if isinstance(value, Mapping):
        if path in value:
            return value[path]
        parts = path.split(".")
        for n_parts in range(len(parts) - 1, 0, -1):
            key = ".".join(parts[:n_parts])
            found = value_at(value[key], ".".join(parts[n_parts:])) if key in value else _MISSING
            if found is not _MISSING:
                return found
        return _MISSING
    if isinstance(value, list):
        number, _, rest = path.partition(".")
        if number.isdecimal() and len(number) < 10 and int(number) < len(value):
            return value_at(value[int(number)], rest) if rest else value[int(number)]
    return _MISSING


def paths_of(record: Mapping[str, Any]) -> list[str]:
    """Return the paths to the values of a record, those inside of objects and lists too, for messages.

    >>> paths_of({"id": 7, "data": {"texts": ["a", "b"]}})
    ['id', 'data.texts.0', 'data.texts.1']
    """
    found: list[str] = []
    waiting: list[tuple[str, Any]] = [(str(name), value) for name, value in reversed([*record.items()])]
    while waiting and len(found) < _MOST_PATHS:
        path, value = waiting.pop()
        inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        entries = list(islice(inside, _MOST_PATHS))
        if not entries or path.count(".") > _DEEPEST_PATH:
            found.append(path)
        waiting += [(f"{path}.{name}", entry) for name, entry in reversed(entries) if path.count(".") <= _DEEPEST_PATH]
    return found


_MOST_PATHS, _DEEPEST_PATH = 50, 8  # in messages


def _of_lines(lines: Iterable[tuple[int, str]], name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the object on each line, with its place for messages."""
    for number, line in lines:
        if line.strip():
            where = f"{name}, line {number}"
            value = _parsed(line.rstrip("\r\n"), where, "correct the line")
            yield where, _record(value, where, "each line must be one")


def _lines_of(parts: Iterable[str]) -> Iterator[str]:
    rest = ""
    for part in parts:
        *lines, rest = (rest + part).split("\n")
        yield from lines
    yield rest


class _Text:
    """A text that is read in parts, and forgotten up to the place `at`."""

    def __init__(self, parts: Iterator[str]) -> None:
        self._parts = parts
        self.known, self.at = "", 0

    def read(self, n_characters: int = 1) -> bool:
        """Read on by at least so many characters. Return whether there were any."""
        added = []
        while n_characters > 0 and (part := next(self._parts, "")):
            added.append(part)
            n_characters -= len(part)
        self.known, self.at = self.known[self.at :] + "".join(added), 0
        return bool(added)

    def character(self) -> str:
        """Return the next character that is no blank, and move there; "" at the end."""
        while True:
            while self.at < len(self.known) and self.known[self.at].isspace():
                self.at += 1
            if self.at < len(self.known):
                return self.known[self.at]
            if not self.read():
                return ""


def _of_list(text: _Text, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects of a list one after another. The list need not fit in memory."""
    decoder = json.JSONDecoder(parse_float=_Decimal)
    text.character()
    text.at += 1  # after the bracket
    for number in count(1):
        where = f"{name}, record {number}"
        mark = text.character()
        if mark == "," and number > 1:
            text.at += 1
            mark = text.character()
        elif mark != "]" and mark and number > 1:
            raise InputError(f"{where}: there is no comma before it; correct the file")
        if mark == "]":
            text.at += 1
            if text.character():
                raise InputError(f"{name}: more follows after the list; correct the file")
            return
        while True:
            try:
                value, text.at = decoder.raw_decode(text.known, text.at)
                break
            except (RecursionError, ValueError) as error:
                incomplete = isinstance(error, json.JSONDecodeError) and error.pos >= len(text.known) - _LONGEST_MARK
                incomplete = incomplete or "Unterminated" in str(error)
                if not incomplete or not text.read(len(text.known) - text.at):
                    if not text.known[text.at :].strip():
                        raise InputError(f"{name}: the list has no end; copy the file again, or add ]") from None
                    _parsed(text.known[text.at :], where)  # raises the error
                    raise
        yield where, _record(value, where, "each entry of the list must be one")


_LONGEST_MARK = 12  # characters of a number, an escape or a word such as false at which a part may end


def _of_object(text: str, name: str, column: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects of the only list of objects in an object; or the object, if it alone has a text."""
    if not text.strip():
        return
    value = _parsed(text, name)
    if not isinstance(value, dict):
        raise InputError(f'{name}: not a list of JSON objects, such as [{{"text": "..."}}]; correct it')
    lists = {key: each for key, each in value.items() if isinstance(each, list) and any(map(_is_object, each))}
    has_text = value_at(value, column) is not _MISSING
    if has_text and all(value_at(each, column) is _MISSING for records in lists.values() for each in records):
        lists = {}
    if len(lists) > 1:
        raise InputError(
            f"{name} has several lists of records ({', '.join(map(brief, list(lists)[:5]))}); write one to a file"
        )
    key, records = next(iter(lists.items()), (None, [value]))
    if key is not None:
        logger.info("%s: the records of %s are read", name, brief(key))
    for number, record in enumerate(records, 1):
        where = name if key is None else f"{name}, record {number} of {brief(key)}"
        yield where, _record(record, where, "each entry of the list must be one")


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _parsed(text: str, where: str, advice: str = "correct the file") -> Any:
    try:
        return json.loads(text, parse_float=_Decimal)
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if error.lineno > 1 else ""
        raise InputError(f"{where}, {line}column {error.colno}: not JSON ({error.msg}); {advice}") from None
    except RecursionError:
        raise InputError(f"{where}: the JSON is nested too deeply; {advice}") from None
    except ValueError:  # Python converts no integer of more than 4,300 digits
        raise InputError(f"{where}: the JSON has a number with too many digits; {advice}") from None


class _Decimal(float):
    """A number of JSON with a point or an exponent, which keeps its characters: class 1.10 is not class 1.1."""

    written: str

    def __new__(cls, written: str) -> _Decimal:
        number = super().__new__(cls, written)
        number.written = written
        return number


def _record(value: Any, where: str, rule: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f'{where}: not a JSON object; {rule}, such as {{"text": "..."}}')
    return value


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
            names = file.schema_arrow.names
            asked = {name: name.partition(".")[0] for name in layout.columns.names() if name not in names}
            if any(path != name and path in names for name, path in asked.items()):  # inside of a column
                tops = {name if name in names else asked[name] for name in layout.columns.names()}
                tops |= {role for role, name in layout.columns.roles().items() if name is None}
                row = count()
                batches = file.iter_batches(batch_size=1024, columns=sorted(tops.intersection(names)))
                records = (record for batch in batches for record in batch.to_pylist())
                placed = ((f"{given.name}, row {next(row)}", record) for record in records)
                yield from _of_records(placed, given, layout)
                return
            further = layout.columns.missing(names, given.place)
            columns = resolve_columns(layout.columns, [*names, *further], given.name)
            row = count()
            wanted = [name for name in columns.names() if name not in further]
            for batch in file.iter_batches(batch_size=1024, columns=wanted):
                for record in batch.to_pylist():
                    yield _document(record | further, columns, f"{given.name}, row {next(row)}")
    except InputError:
        raise
    except (ArrowException, OSError, ValueError, OverflowError) as error:  # values such as the year 10000
        raise unreadable(given, "parquet", error) from None


def unreadable(given: Input, format: str, error: Exception, or_as: str = "csv") -> InputError:
    """Return the error for a binary file that its library cannot read."""
    reason = (str(error) or repr(error)).splitlines()[0].rstrip(".")
    return InputError(f"{given.name} cannot be read as {format}: {reason:.200}; save it again as .{format} or .{or_as}")


def document_of(record: Mapping[str, Any], given: Input, layout: Layout) -> Document:
    """Return the document of a whole file, or of a part of it, from its text and its other fields.

    Raises:
        InputError: it has no field that was asked for.
    """
    return _document(record, resolve_columns(layout.columns, record, given.name), given.name)


class MissingColumnError(InputError):
    """A file lacks a column. The arguments are this fact, and what to do."""

    def __str__(self) -> str:
        return "; ".join(self.args)

    def advising(self, advice: str) -> MissingColumnError:
        """Return the error with other advice."""
        return MissingColumnError(self.args[0], advice)


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
        MissingColumnError: a column is missing.
        InputError: several columns have the name of one to read.
    """
    present = list(present)

    def resolve(role: str, name: str | None) -> str | None:
        if name is None:
            if role not in present:
                return None
            name = role
        if present.count(name) > 1:
            raise InputError(f"{where} has {present.count(name)} columns {name!r}; rename all but the one to read")
        if name in present:
            return name
        if (optional or role in columns.optional) and role != "text":
            return None
        shown = [" ".join(column.split()) for column in present]  # a name may contain line breaks
        shown += ["..."] * (len(shown) == _MOST_PATHS)
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
        raise MissingColumnError(f"{where} has no column {name!r}; {found}", advice)

    found = {role: resolve(role, name) for role, name in columns.roles().items()}
    text = found.pop("text")
    assert text is not None
    further = {
        name: argument
        for name, argument in columns.covariates.items()
        if (argument is not None or name in present) and resolve(argument or "covariates", name)
    }
    return Columns(text, found["id"], found["label"], found["timestamp"], further)


def _document(record: Mapping[str, Any], columns: Columns, where: str) -> Document:
    text = "" if record[columns.text] is None else record[columns.text]  # a missing text keeps its row
    if not isinstance(text, str):
        raise InputError(f"{where}: {columns.text!r} is {reprlib.repr(text)}, not a string; correct it")
    for name in (*columns.of_documents(), *columns.covariates):
        if name is not None and isinstance(record[name], list | tuple | dict) and record[name]:
            raise InputError(
                f"{where}: {name!r} is {reprlib.repr(record[name])}, not one value; name what is inside, such as "
                f"{brief(next(iter(paths_of({name: record[name]}))))}"
            )
    id, label, timestamp = (None if name is None else record[name] for name in columns.of_documents())
    id, label = (value.written if isinstance(value, _Decimal) else as_string(value) for value in (id, label))
    covariates = {name: as_string(record[name]) for name in columns.covariates} if columns.covariates else None
    return Document(text.replace("\0", " "), id, label, as_string(timestamp), covariates)


def as_string(value: Any) -> str | None:
    """Return an id, label or time as a string; None where it is missing, NaN or an empty list or object."""
    if value is None or value != value or (isinstance(value, list | tuple | dict) and not value):
        return None
    if isinstance(value, bytes):  # some programs write strings to Parquet so; a lone surrogate is refused later
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, bool):
        return str(value).lower()  # as JSON writes it
    return str(value.isoformat()) if hasattr(value, "isoformat") else plain_string(value)
