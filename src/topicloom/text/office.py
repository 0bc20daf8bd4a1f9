"""Reading whole files that are documents: Word files, PDF files and e-mails."""

from __future__ import annotations

import logging
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage, Message
from email.utils import parsedate_to_datetime
from functools import lru_cache
from html.parser import HTMLParser
from typing import IO, Any

from ..errors import InputError, MissingExtraError
from ..messages import counted
from .records import MOST_CHARACTERS, Document, Input, Layout, document_of, faults_named, opened, too_long, unreadable

logger = logging.getLogger("topicloom")

MOST_BYTES = 4 * MOST_CHARACTERS  # of a part of a Word file, and of an e-mail with its attachments

# Word files


def read_docx(given: Input, layout: Layout) -> Iterator[Document]:
    """Read the paragraphs of a Word file, those in its tables and text boxes too, as they are after all changes."""
    try:
        import docx
        from docx.oxml.ns import qn
    except ImportError:
        raise MissingExtraError.of("a .docx file", "python-docx", "documents") from None
    with _binary(given) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                if (size := max((each.file_size for each in archive.infolist()), default=0)) > MOST_BYTES:
                    raise too_long(given.name, f"a part of {size:,} bytes, which may be more than {MOST_CHARACTERS:,}")
            file.seek(0)
            body: Any = docx.Document(file).element.body
            text = "\n".join(_paragraphs(body, qn))
        except InputError:
            raise
        except Exception as error:  # a damaged file ends in errors of zipfile, lxml and python-docx of many kinds
            raise unreadable(given, "docx", _plain(error), "txt") from None
    yield document_of(_fields(given, text), given, layout)


def _paragraphs(body: Any, qn: Any) -> Iterator[str]:
    paragraph, text = qn("w:p"), qn("w:t")
    copy = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
    blanks = {qn("w:tab"): "\t", qn("w:br"): "\n", qn("w:cr"): "\n", qn("w:noBreakHyphen"): "-"}
    without = (qn("w:tabs"), qn("w:moveFrom"))  # the places of tabs, and where a text was before it was moved
    for each in body.iter(paragraph):
        if next(each.iterancestors(copy), None) is not None:  # of a text box, there is a copy for old programs
            continue
        parts = []
        for part in each.iter(text, *blanks):
            if next(part.iterancestors(paragraph, *without)) is each:
                parts.append(part.text or "" if part.tag == text else blanks[part.tag])
        yield "".join(parts)


# PDF files


def read_pdf(given: Input, layout: Layout) -> Iterator[Document]:
    """Read the text of a PDF file. Words that are divided at the end of a line are joined."""
    try:
        import pypdf
    except ImportError:
        raise MissingExtraError.of("a .pdf file", "pypdf", "documents") from None
    with _binary(given) as file, _without_log("pypdf"):
        try:
            reader = pypdf.PdfReader(file)
            if reader.is_encrypted and not _opens(reader):
                raise InputError(f"{given.name} is encrypted; save it without a password")
            pages = [page.extract_text() for page in reader.pages]
        except InputError:
            raise
        except Exception as error:  # a damaged file ends in errors of many kinds
            raise unreadable(given, "pdf", _plain(error), "txt") from None
    yield document_of(_fields(given, joined_lines("\n\n".join(pages))), given, layout)


def _opens(reader: Any) -> bool:
    """Return whether an encrypted file opens without a password, as files do that only forbid to print."""
    try:
        return bool(reader.decrypt(""))
    except Exception:  # such as that the package for this cipher is missing
        return False


_HYPHEN = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]\n(?=[^\W\d_A-Z])")
_BETWEEN_CHARACTERS = re.compile(r"(?<=[\u3040-\u30ff\u3400-\u9fff])\n(?=[\u3040-\u30ff\u3400-\u9fff])")


def joined_lines(text: str) -> str:
    r"""Join the words of lines, as PDF files divide them: at a hyphen, or between two Chinese or Japanese characters.

    >>> joined_lines("exam-\nple, South-\nWest and 主题模\n型")
    'example, South-\nWest and 主题模型'
    """
    return _BETWEEN_CHARACTERS.sub("", _HYPHEN.sub("", text))


@contextmanager
def _without_log(name: str) -> Iterator[None]:
    """Silence the warnings of a library about small faults of files that it can read."""
    log = logging.getLogger(name)
    before = log.level
    log.setLevel(logging.CRITICAL + 1)  # which its modules inherit
    try:
        yield
    finally:
        log.setLevel(before)


@contextmanager
def _binary(given: Input) -> Iterator[IO[bytes]]:
    if given.path is None:
        raise InputError("such a file cannot be read from standard input; give its path")
    with faults_named(given), given.binary() as file:
        yield file


def _plain(error: Exception) -> Exception:
    """Return an error without the path and the object that it names."""
    return (
        type(error)(re.sub(r"'?<[^>]*>'?|'[^']*/[^']*'", "the file", str(error))) if type(error) is KeyError else error
    )


# E-mails

# Python's parser reads the same headers many times, which would take most of the time.
_POLICY = policy.default.clone(header_factory=lru_cache(maxsize=64)(policy.default.header_factory))
_FIRST_LINE = re.compile(rb"From \S+.* \d?\d:\d\d")  # of each e-mail in an mbox


def read_eml(given: Input, layout: Layout) -> Iterator[Document]:
    """Read an e-mail: its text, or that of its HTML, without attachments."""
    with _binary(given) as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise InputError(f"{given.name} has more than {MOST_BYTES:,} bytes, too many for an e-mail; check the file")
    record, is_whole = _mail(data, given)
    if not {"subject", "from", "date", "received"} & record.keys() and not record["text"].strip():
        raise InputError(f"{given.name} is no e-mail; give a file with the headers and the text of one")
    if not is_whole:
        _warn_of_bytes(f"{given.name} has", given)
    yield document_of(_fields(given) | record, given, layout)


def read_mbox(given: Input, layout: Layout) -> Iterator[Document]:
    """Read the e-mails of an mbox, one after another."""
    stem = given.place.get("file", "mail").removesuffix(".gz").removesuffix(".mbox")
    n_damaged = 0
    for number, data in enumerate(_mails(given), 1):
        found, is_whole = _mail(data, given)
        n_damaged += not is_whole
        yield document_of(_fields(given) | found | {"id": f"{stem}#{number}"}, given, layout)
    if n_damaged:
        _warn_of_bytes(f"{counted(n_damaged, 'e-mail')} of {given.name} {'has' if n_damaged == 1 else 'have'}", given)


def _warn_of_bytes(who: str, given: Input) -> None:
    if given.errors == "strict":
        logger.warning(
            '%s bytes that are not in the named encoding, or in UTF-8 where none is named; they become \ufffd; give '
            '`encoding`, such as `encoding="gb18030"`, or `errors="replace"` to read them so without this warning',
            who,
        )  # fmt: skip


def _mails(given: Input) -> Iterator[bytes]:
    """Yield the bytes of each e-mail of an mbox. Only one is in memory."""
    lines: list[bytes] = []
    n_bytes = 0
    blank, found = True, False
    with opened(given) as text:
        for line in iter(text.bytes.readline, b""):
            if blank and line.startswith(b"From ") and _FIRST_LINE.match(line):
                if found:
                    yield b"".join(lines)
                found, n_bytes = True, 0
                lines.clear()
                continue
            blank = line in (b"\n", b"\r\n")
            if not found:
                if not blank:
                    raise InputError(f'{given.name} is no mbox: its first line does not begin with "From "; check it')
                continue
            n_bytes += len(line)
            if n_bytes > MOST_BYTES:
                raise InputError(f"{given.name} has an e-mail of more than {MOST_BYTES:,} bytes; remove it")
            lines.append(line[1:] if line.startswith(b">From ") else line)
    if found:
        yield b"".join(lines)


def _mail(data: bytes, given: Input) -> tuple[dict[str, Any], bool]:
    """Return the fields of an e-mail, and whether all could be decoded. What it does not have is left out."""
    data, is_whole = _with_utf8_headers(data, given)
    message: Message
    try:
        message = message_from_bytes(data, policy=_POLICY)
    except Exception:  # headers that this parser does not expect end in errors of many kinds; the older one reads any
        message = message_from_bytes(data)
    found: dict[str, Any] = {}
    for header in ("message-id", "subject", "from", "to", "date"):
        try:
            value = message[header]
        except Exception:  # as above
            value = next((str(raw) for name, raw in message.raw_items() if name.lower() == header), None)
        if value is not None:
            found[header] = " ".join(str(value).split())
    if "date" in found:
        found["timestamp"] = _iso(found["date"])
    text, is_decoded = _body(message, data, given)
    return found | {"text": text}, is_whole and is_decoded


_END_OF_HEADERS = re.compile(rb"\r?\n\r?\n|\Z")


def _with_utf8_headers(data: bytes, given: Input) -> tuple[bytes, bool]:
    """Return an e-mail whose headers are in ASCII or UTF-8, and whether they could be decoded.

    Programs of the past wrote other encodings there, without saying which.
    """
    end = _END_OF_HEADERS.search(data)
    head = data[: end.start() if end else None]
    for encoding in ("utf-8", given.encoding):
        try:
            return head.decode(encoding).encode() + data[len(head) :], True
        except ValueError:
            continue
    return data, False


def _iso(date: str) -> str:
    """Return a date of an e-mail in ISO format, or as it is."""
    try:
        return parsedate_to_datetime(date).isoformat()
    except (ValueError, TypeError, OverflowError, IndexError):
        return date


def _body(message: Message, data: bytes, given: Input) -> tuple[str, bool]:
    """Return the text of an e-mail, that of its HTML where there is no plain text, and whether it could be decoded."""
    is_whole = True
    for part in _bodies(message, data):
        payload = part.get_payload(decode=True)
        raw = payload if isinstance(payload, bytes) else b""
        text, is_whole = _decoded(raw, part.get_content_charset(), given)
        text = text_of_html(text) if part.get_content_subtype() == "html" else text
        if text.strip():
            return text, is_whole
    return "", is_whole


def _bodies(message: Message, data: bytes) -> Iterator[Message]:
    """Yield the part with the plain text and that with the HTML, or else the first part that is a text."""
    found = False
    for kind in ("plain", "html"):
        try:
            part = message.get_body((kind,)) if isinstance(message, EmailMessage) else None
        except Exception:  # of headers, as above
            continue
        if part is not None:
            found = True
            yield part
    if not found:
        parts = message_from_bytes(data).walk()
        yield from (each for each in parts if each.get_content_maintype() == "text" and not each.get_filename())


_WIDER = {"gb2312": "gb18030", "gbk": "gb18030", "us-ascii": "utf-8", "ascii": "utf-8", "iso-8859-1": "cp1252"}


def _decoded(data: bytes, charset: str | None, given: Input) -> tuple[str, bool]:
    """Return a text in the encoding that it names, or else in that of the file, and whether it could be decoded.

    Otherwise, it is what can be read.
    """
    named = _WIDER.get((charset or "").lower(), charset)
    for encoding in dict.fromkeys([named or "utf-8", given.encoding, "utf-8"]):
        try:
            return data.decode(encoding).replace("\r\n", "\n"), True
        except (LookupError, ValueError):  # an encoding that is not known, or bytes that it does not have
            continue
    try:
        return data.decode(named or "utf-8", "replace").replace("\r\n", "\n"), False
    except (LookupError, ValueError):
        return data.decode("utf-8", "replace").replace("\r\n", "\n"), False


_BLOCKS = {
    "address", "article", "blockquote", "br", "dd", "div", "dl", "dt", "figure", "footer", "form", "h1", "h2", "h3",
    "h4", "h5", "h6", "header", "hr", "li", "main", "ol", "p", "pre", "section", "table", "td", "th", "title", "tr",
    "ul",
}  # fmt: skip
_NO_TEXT = {"script", "style", "head", "template"}


class _TextOfHtml(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._inside: list[str] = []  # elements without text

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag in _NO_TEXT:
            self._inside.append(tag)
        elif tag == "body":
            self._inside.clear()  # of a head without an end
        if tag in _BLOCKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._inside:
            del self._inside[self._inside.index(tag) :]
        if tag in _BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self.parts.append(data)


def text_of_html(html: str) -> str:
    """Return the text of HTML, with a line for each block.

    >>> text_of_html("<style>p {}</style><p>Tea &amp; <b>cake</b></p><p>at 5</p>")
    'Tea & cake\\nat 5'
    """
    parser = _TextOfHtml()
    try:
        parser.feed(html)
        parser.close()
    except (AssertionError, RecursionError, ValueError):  # of a damaged declaration; what was found before is kept
        pass
    lines = (" ".join(line.split()) for line in "".join(parser.parts).split("\n"))
    return "\n".join(line for line in lines if line)


def _fields(given: Input, text: str = "", **further: Any) -> dict[str, Any]:
    """Return the fields that every whole file has."""
    return {"text": text, "id": given.place.get("file", given.name), **given.place, **further}
