"""Opening text files. Every fault in a file is reported as one sentence that names its place."""

from __future__ import annotations

import codecs
import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, TextIO

from ..errors import InputError

_HEAD = 4096  # bytes that are searched for the signs of UTF-16 and of binary files
_CONTROL = bytes({*range(32), 127} - set(b"\t\n\f\r\x1b"))  # bytes that encodings of text hardly use
_MOST_CONTROL = 0.01  # of the bytes of a text
_FEW = 2  # such bytes that a short text may have by mistake


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
        first = next(self._file, "")
        if first:
            yield self._without_nul(first)
        for line in self._file:
            yield line.replace("\0", " ")

    def read(self) -> str:
        """Return the whole text."""
        return self._without_nul(self._file.read())

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
