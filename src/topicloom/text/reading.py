"""Reading documents from files, one at a time, so that a file may be larger than memory.

`read` finds the files of a source and chooses the reader of each format. Plain text is read here, tables in tables.py,
JSON and Parquet in records.py, Word files, PDF files and e-mails in office.py.
"""

from __future__ import annotations

import codecs
import glob
import logging
import os
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import IO, NamedTuple, TypeAlias

from ..errors import InputError, SettingError
from ..files import as_path, holds_corpus, holds_model
from ..messages import counted, joined, nearest
from ..preparing import FileOptions, described
from .office import MOST_BYTES, read_docx, read_eml, read_mbox, read_pdf
from .pieces import pieces_of, splitter
from .records import (
    Columns,
    Document,
    Input,
    Layout,
    document_of,
    on_one_line,
    opened,
    read_json,
    read_json_lines,
    read_parquet,
)
from .strings import is_utf8, replace_surrogates, require_utf8
from .tables import read_csv, read_tsv, read_xlsx

logger = logging.getLogger("topicloom")

Source: TypeAlias = str | Path | Sequence[str | Path]
"""A file, a folder, a pattern of files, or several of these."""

# What to do with files that are often at hand and cannot be read, whatever `format` is given.
_TO_CONVERT = {
    **dict.fromkeys((".xls", ".xlsb", ".ods", ".numbers"), "save it as .xlsx or .csv"),
    **dict.fromkeys((".doc", ".odt", ".rtf"), "save it as .docx or .txt"),
    **dict.fromkeys((".epub", ".html", ".htm"), "save its text as .txt"),
    **dict.fromkeys((".msg", ".pst"), "save it as .eml or .mbox"),
    **dict.fromkeys((".7z", ".rar", ".tar", ".tgz"), "unpack it"),
    **dict.fromkeys((".bz2", ".xz", ".lzma", ".zst", ".lz4", ".br"), "unpack it, or compress it by gzip as .gz"),
}
_ARCHIVES = (".zip", ".7z", ".rar", ".tar", ".tgz")
_TO_UNPACK = {**_TO_CONVERT, ".zip": "unpack it"}  # in a folder or a .zip file
_WHOLE = ("txt", "md", "docx", "pdf", "eml")  # formats whose files are documents in a folder or a .zip file
_TABLES = ("csv", "tsv", "xlsx", "jsonl", "json", "parquet", "mbox")  # those that are not read there by themselves
_OWN_TEXT = ("txt", "md", "docx", "pdf")  # formats that have a single text, whatever its column is called
# The options that are for files of some formats alone, with these.
_DELIMITED = ("csv", "tsv")
_FOR_FORMATS: dict[str, tuple[str, ...]] = {
    "text": (*_TABLES, "eml"),
    "header": (*_DELIMITED, "xlsx"),
    **dict.fromkeys(("delimiter", "quoting", "quotechar", "escapechar"), _DELIMITED),
    "sheet": ("xlsx",),
    # the names in a .zip file may be in this encoding, too
    **dict.fromkeys(("encoding", "errors"), ("txt", "md", *_DELIMITED, "jsonl", "json", "eml", "mbox", "zip")),
}
_ALIASES = {".markdown": ".md", ".ndjson": ".jsonl", ".text": ".txt", ".mbx": ".mbox"}
_ERRORS = ("strict", "replace", "ignore")
# Codecs that are not meant for files, but for domain names or for escapes in source code.
_NOT_FOR_FILES = {"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"}


@described(reading=FileOptions)
def read(
    source: Source,
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
    sheet: str | None = None,
    quotechar: str | None = None,
    escapechar: str | None = None,
    quoting: bool = True,
    split_texts: str | None = None,
) -> Iterator[Document]:
    r"""Read documents in their order.

    Ids, labels and timestamps are strings; dates are in ISO format, and missing values are None. NUL characters are
    read as blanks. A lone surrogate in a text, such as "\ud800" in JSON, or in the name of a file of a folder, is read
    as U+FFFD, so that everything that is read can be written. In another column, it is refused.

    Args:
        source: one of these, or "-" for standard input:

            - a .txt file with one document on each line; a blank line is an empty document
            - a .csv, .tsv, .xlsx, .jsonl, .json or .parquet file with a text column
            - a .md, .docx, .pdf or .eml file, which is one document, or an .mbox file of e-mails. E-mails have the
              fields subject, from, to, date and message-id.
            - a folder or a .zip file of .txt, .md, .docx, .pdf and .eml files; each file is one document, and its id
              is the relative path. A saved corpus and a run are no such folders, and are refused.
            - a pattern such as "2024-*.csv", or a list of files, folders and patterns

            Text files may be compressed as .gz. Of an .xlsx file, the first worksheet is read, without blank rows.
            Documents of all files have the fields "file" and "folder", unless a table has such columns.
        {reading}
        covariates: columns whose values the documents have as `covariates`; a column that the file lacks is left out.

    Raises:
        InputError: the source cannot be read; the message names the file and the line.
        SettingError: a format, an encoding or another setting is not known.
        MissingExtraError: a .parquet, .xlsx, .docx or .pdf file is to be read, and its package is not installed.

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
        delimiter=delimiter, header=header, sheet=sheet, quotechar=quotechar, escapechar=escapechar, quoting=quoting,
        split_texts=split_texts,
    )  # fmt: skip
    return documents_in(source, options, dict.fromkeys(covariates))


def documents_in(
    source: Source,
    options: FileOptions,
    covariates: Mapping[str, str | None] | None = None,
    optional: Collection[str] = (),
) -> Iterator[Document]:
    """Read documents in their order. The source is opened once, when the first document is read.

    Args:
        source: a file, a folder, a pattern, several of them, or "-" for standard input, as `read` describes them.
        options: how it is read.
        covariates: columns whose values the documents have as `covariates`, each with the argument that names it for
            messages. A column whose argument is None may be missing.
        optional: which of id, label and timestamp may be missing although the options name their columns, and which
            options may be for files of other formats.

    Raises:
        InputError: the source cannot be read, or no document has a value of a column; the message names the file and
            the line.
        SettingError: a format, an encoding or another setting is not known.
        MissingExtraError: a .parquet, .xlsx, .docx or .pdf file is to be read, and its package is not installed.
    """
    if isinstance(source, str | Path) or not isinstance(source, Iterable):
        source = [as_path(source, "source")]
    sources = list(source)
    base = Input(None, _checked_encoding(options.encoding), options.errors)
    if options.errors not in _ERRORS:
        raise SettingError(f"`errors={options.errors!r}` is not known; {nearest(options.errors, _ERRORS)}")
    if options.format is not None and options.format not in _READERS:
        raise SettingError(f"`format={options.format!r}` is not known; {nearest(options.format, _READERS)}")
    split = None if options.split_texts is None else splitter(options.split_texts)
    files = _files_of(sources, options.format, base)
    name = files[0].given.name if len(files) == 1 else _name_of(sources)
    formats = {file.format for file in files} | {"zip" for file in files if file.given.member is not None}
    columns = Columns(options.text, options.id, options.label, options.timestamp, covariates or {}, optional)
    _check_options(options, formats, name, optional)
    if formats <= {"txt", "md"}:
        _check_plain(columns, files[0].given, name)
    layout = Layout(
        columns,
        None if options.delimiter is None else _checked_delimiter(options.delimiter),
        options.header,
        options.quoting,
        None if options.quotechar is None else _checked_mark("quotechar", options.quotechar),
        None if options.escapechar is None else _checked_mark("escapechar", options.escapechar),
        None if options.sheet is None else str(options.sheet),
    )
    if split is None:
        return _checked(_documents_of(files, layout), name, columns.covariates)
    whole = [file._replace(format="md") if file.format == "txt" else file for file in files]
    return pieces_of(_checked(_documents_of(whole, layout), name, columns.covariates), split)


def options_of_others(given: Collection[str] = ()) -> list[str]:
    """Return what may not suit a file, of the options that were given for other files.

    Args:
        given: the options that were given for this file, which must suit it.
    """
    return [name for name in ("id", "label", "timestamp", *_FOR_FORMATS) if name not in given]


def _check_options(options: FileOptions, formats: set[str], name: str, optional: Collection[str]) -> None:
    """Raise InputError if an option is for files of another format, except those in `optional`."""
    for option, suitable in _FOR_FORMATS.items():
        value = getattr(options, option)
        is_given = option not in optional and value != getattr(FileOptions, option)
        if is_given and formats.isdisjoint(suitable):
            kinds = joined(f".{each}" for each in suitable)
            raise InputError(f"`{option}={value!r}` is for {kinds} files; leave it out for {name}")
    marks = [each for each in (options.delimiter, options.quotechar, options.escapechar) if each is not None]
    if len(set(marks)) < len(marks):
        raise InputError("`delimiter`, `quotechar` and `escapechar` must differ from each other; correct them")
    if options.quotechar is not None and not options.quoting:
        raise InputError("`quotechar` and `quoting=False` exclude each other; leave one of them out")


def _check_plain(columns: Columns, given: Input, name: str) -> None:
    """Raise InputError if a column of plain text is asked for. It has the fields of its file alone."""
    known = given.place.keys() | {"text"}
    must = {role: column for role, column in columns.roles().items() if role not in ("text", *columns.optional)}
    roles = [role for role, column in must.items() if column and column not in known]
    arguments = [argument for column, argument in columns.covariates.items() if argument and column not in known]
    if roles or arguments:
        shown = " or ".join(dict.fromkeys(f"`{each}`" for each in arguments)) or "id, label or timestamp"
        advice = "give `format` as csv, tsv or jsonl" if given.path is None else "use .csv or .jsonl"
        raise InputError(f"{name}: plain text has no columns for {shown}; {advice}")


# The files of a source.


class _File(NamedTuple):
    """A file with its format."""

    given: Input
    format: str


def _files_of(sources: Sequence[str | Path], format: str | None, base: Input) -> list[_File]:
    """Return the files of sources, with the fields "file" and "folder" that their documents have."""
    if not sources:
        raise InputError("no file was given; give one")
    if "-" in map(str, sources):
        if len(sources) > 1:
            raise InputError('standard input ("-") cannot be read together with files; give one or the other')
        return [_File(base, format or "txt")]
    paths: list[Path] = []
    for source in sources:
        paths += _matched(as_path(source, "source"))
    anchors = [path.absolute() if path.is_dir() else path.absolute().parent for path in paths]
    try:
        root = Path(os.path.commonpath(anchors))
    except ValueError:  # on several drives
        root = Path(anchors[0].anchor)
    found: list[_File] = []
    for path in paths:
        inside = (
            path.absolute().relative_to(root).as_posix() if len(paths) > 1 and root in path.absolute().parents else ""
        )
        if path.is_dir():
            found += _of_folder(path, "" if inside == "." else inside, format, base)
        elif path.suffix.lower() == ".zip":
            found += _of_archive(path, inside, format, base)
        else:
            name = inside or path.name
            found.append(_File(base._replace(path=path, place=_place(name, path)), format or _format_of(path)))
    return found


def _matched(path: Path) -> list[Path]:
    """Return a file or a folder, or the files that a pattern matches."""
    if not glob.has_magic(str(path)) or _exists(path):
        _require(path)
        _refuse_saved(path)
        return [path]
    found = sorted(map(Path, glob.iglob(str(path), recursive=True)), key=_order)
    if files := [each for each in found if each.is_file()]:
        return files
    raise InputError(f"the pattern {str(path)!r} matches no file; check it")


def _order(path: Path) -> tuple[str, ...]:
    """Return the place of a file among others. On Windows, paths themselves are compared without regard to case."""
    return path.parts


def _name_of(sources: Sequence[str | Path]) -> str:
    more = f" and {counted(len(sources) - 1, 'further source')}" if len(sources) > 1 else ""
    return f"{sources[0]}{more}"


def _place(name: str, path: Path) -> dict[str, str]:
    """Return the fields of a file: its path in the source, and the folder in which it is.

    The folder of a file at the top is the one that the source is, or that it is in.
    """
    folder = name.rpartition("/")[0] or (path.stem if path.suffix.lower() == ".zip" else path.absolute().parent.name)
    return {"file": replace_surrogates(name), "folder": replace_surrogates(folder)}


def _of_folder(root: Path, inside: str, format: str | None, base: Input) -> list[_File]:
    """Return the files of a folder that are documents, or those of a format."""
    shown = [file for file in root.rglob("*") if _is_shown(file.relative_to(root)) and file.is_file()]
    shown.sort(key=_order)
    # A folder of texts may have runs in it, whose .txt files are words of a vocabulary.
    saved = {folder for folder in {file.parent for file in shown} if _is_saved(folder) or holds_model(folder)}
    names = {file.relative_to(root).as_posix(): file for file in shown if file.parent not in saved}
    chosen = _chosen(names, format, f"the folder {root}", is_written=len(names) < len(shown))
    files = []
    for name, kind in chosen.items():
        place = _place(f"{inside}/{name}" if inside else name, names[name])
        files.append(_File(base._replace(path=names[name], place=place), kind))
    return files


_MOST_EXPANDED, _LARGE_ARCHIVE = 100, 1 << 28  # how often, and to how many bytes, a .zip file unpacks


def _of_archive(path: Path, inside: str, format: str | None, base: Input) -> list[_File]:
    """Return the files in a .zip file that are documents, or those of a format."""
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        raise InputError(f"{path} is not a complete .zip file; copy it again") from None
    members = {
        _name_in(each, base.encoding): each for each in archive.infolist() if each.filename and not each.is_dir()
    }
    size = sum(each.file_size for each in members.values())
    if size > max(_LARGE_ARCHIVE, _MOST_EXPANDED * path.stat().st_size):
        raise InputError(
            f"{path} would unpack to {size:,} bytes, more than {_MOST_EXPANDED} times its own size, as archives do "
            "that are made to fill a disk; unpack it yourself if you trust it, and give the folder"
        )
    names = [name for name in sorted(members) if _is_shown(Path(name)) and not name.startswith("__MACOSX/")]
    chosen = _chosen(names, format, str(path), is_archive=True)
    files = []
    for name, kind in chosen.items():
        member = members[name]
        if member.flag_bits & 1:
            raise InputError(f"{on_one_line(name)} in {path} is encrypted; unpack it, and give the folder")
        if member.file_size > MOST_BYTES and kind in _WHOLE:
            raise InputError(
                f"{on_one_line(name)} in {path} has {member.file_size:,} bytes, too many for a document; leave it out"
            )
        if kind in ("xlsx", "parquet"):
            raise InputError(f"{on_one_line(name)} in {path} cannot be read there; unpack it, and give the file")
        place = _place(f"{inside}/{name}" if inside else name, path)
        opener = partial(_open_member, archive, member)
        files.append(_File(base._replace(path=path, place=place, member=opener, name_of_member=name), kind))
    return files


def _open_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> IO[bytes]:
    try:
        return archive.open(member)
    except (zipfile.BadZipFile, RuntimeError, ValueError, struct.error, zlib.error) as error:
        name = on_one_line(member.filename)
        raise InputError(f"{name} in {archive.filename} cannot be unpacked ({error}); unpack it") from None


def _name_in(member: zipfile.ZipInfo, encoding: str) -> str:
    """Return the name of a member. Without a mark it may be in UTF-8 or in the encoding of the texts."""
    if member.flag_bits & 0x800 or member.filename.isascii():
        return member.filename
    try:
        raw = member.filename.encode("cp437")
    except UnicodeEncodeError:
        return member.filename
    for codec in ("utf-8", encoding, "gb18030" if encoding.startswith("utf-8") else "utf-8"):
        try:
            return raw.decode(codec)
        except UnicodeDecodeError:
            continue
    return member.filename


def _chosen(
    names: Iterable[str], format: str | None, where: str, is_written: bool = False, is_archive: bool = False
) -> dict[str, str]:
    """Return the names of files that are read of a folder or an archive, with their formats."""
    every = {name: _format_named(name) for name in names}
    unread = {name: advice for name in every if (advice := _TO_UNPACK.get(Path(name).suffix.lower()))}
    others = ""
    if unread:
        first, advice = next(iter(unread.items()))
        others = f"{counted(len(unread), 'file')} of formats that are not read, such as {on_one_line(first)}: {advice}"
    if format is not None:
        if chosen := {name: each for name, each in every.items() if each == format}:
            if packed := [name for name in unread if Path(name).suffix.lower() in _ARCHIVES]:
                logger.warning(
                    "%s also contains %s, such as %s; unpack it",
                    where,
                    counted(len(packed), "archive"),
                    on_one_line(packed[0]),
                )
            return {name: "md" if each == "txt" else each for name, each in chosen.items()}
        more = f", but {others}" if unread else "; check `format`, or leave it out"
        raise InputError(f"{where} contains no .{format} files{more}")
    chosen = {
        name: "md" if each == "txt" else each
        for name, each in every.items()
        if each in _WHOLE and not name.lower().endswith(".gz")
    }
    tables = [name for name, each in every.items() if each is not None and name not in chosen]
    example = f", such as {on_one_line(tables[0])}" if tables else ""
    if not chosen:
        if len(every) == len(tables) == 1 and is_archive:  # a compressed table
            return {tables[0]: every[tables[0]] or ""}
        problem = (
            "only what topicloom has written" if is_written and not every else "no .txt, .md, .docx, .pdf or .eml files"
        )
        kinds = sorted(
            {each for name in tables if (each := every[name]) in _TABLES and not name.lower().endswith(".gz")}
        )
        if unread and not tables:
            raise InputError(f"{where} contains {problem}, but {others}")
        advice = f"give one of its files{example}" if tables else "give a file of texts, or a folder that contains some"
        if kinds:
            advice += f', or `format="{kinds[0]}"` to read all of this format'
        raise InputError(f"{where} contains {problem}; {advice}")
    if tables:
        which = counted(len(tables), "table or compressed file", "tables and compressed files")
        logger.warning(
            "%s contains %s%s; only .txt, .md, .docx, .pdf and .eml files are read, unless `format` names others",
            where, which, example,
        )  # fmt: skip
    if unread:
        logger.warning("%s contains %s", where, others)
    counts = Counter(every[name] for name in chosen)
    kinds_read = [f"{counts[each]:,} .{each}" for each in _WHOLE if counts[each]]
    if len(kinds_read) > 1:
        logger.info("%s: %s files are read; `format` chooses one of these formats", where, joined(kinds_read))
    return chosen


def _documents_of(files: Sequence[_File], layout: Layout) -> Iterator[Document]:
    """Yield the documents of all files. PDF files without text are counted, if there are other files."""
    own_text = layout._replace(columns=layout.columns._replace(text="text"))
    without: list[str] = []
    for given, format in files:
        for document in _READERS[format](given, own_text if format in _OWN_TEXT else layout):
            if format == "pdf" and not document.text.strip():
                if len(files) == 1:
                    raise InputError(
                        f"{given.name} has no text, because its pages are pictures; recognise their text first, such "
                        "as by ocrmypdf"
                    )
                without.append(given.name)
            yield document
    if without:
        logger.warning(
            "%s without text, such as %s, whose pages are pictures: recognise their text first, such as by ocrmypdf; "
            "now they are empty documents",
            counted(len(without), "PDF file"), without[0],
        )  # fmt: skip


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # the name is too long, or contains NUL
        return False


def _require(path: Path) -> None:
    if not is_utf8(str(path)):
        raise InputError(f"the path {str(path)!a} is not UTF-8, so it cannot be recorded; rename the file")
    if not _exists(path):
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


def _checked_mark(option: str, mark: str) -> str:
    if option == "escapechar":
        mark = {"\\\\": "\\", "backslash": "\\"}.get(mark, mark)
        if mark == "none":
            return mark
    if len(mark) != 1 or mark in "\r\n\t\0 ":
        example = "\" or '" if option == "quotechar" else "\\, or none"
        raise SettingError(f"`{option}={mark!r}` must be one character, such as {example}")
    return mark


def _format_named(name: str) -> str | None:
    """Return the format that the name of a file shows, if any."""
    path = Path(name)
    ending = path.with_suffix("").suffix if path.suffix.lower() == ".gz" else path.suffix
    format = _ALIASES.get(ending.lower(), ending.lower()).removeprefix(".")
    return format if format in _READERS else None


def _format_of(path: Path) -> str:
    name = _format_named(path.name)
    if name is None:
        ending = path.with_suffix("").suffix if path.suffix.lower() == ".gz" else path.suffix
        fault = f"ends in {ending!r}, which is not a known format" if ending else "has no ending that shows its format"
        advice = _TO_CONVERT.get(ending.lower(), f"give `format` as one of {', '.join(_READERS)}")
        raise InputError(f"{path} {fault}; {advice}")
    return name


def _lines(given: Input, layout: Layout) -> Iterator[Document]:
    """Read each line as a document. A few long lines, and lines that end inside of sentences, are worth a warning."""
    plain = document_of({"text": "", **given.place}, given, layout)
    has_fields = plain[1:] != _ONLY_TEXT
    sample: list[str] = []
    n_lines = n_characters = 0
    with opened(given) as file:
        for line in file:
            text = line.rstrip("\n")
            if n_lines < _FIRST_LINES:
                sample.append(text)
            n_lines += 1
            n_characters += len(text)
            yield plain._replace(text=text) if has_fields else Document(text)
    if n_lines <= _FEW_LINES and n_characters > n_lines * _LONG_LINE:
        logger.warning(
            '%s has %s of %s characters, and a line is a document; `split_texts="tokens:300"` makes '
            "pieces of about 300 words the documents instead, and sentences makes the sentences the documents",
            given.name, counted(n_lines, "line"), f"{n_characters:,}",
        )  # fmt: skip
    elif _are_wrapped(sample):
        logger.warning(
            '%s has lines that end inside of sentences, and a line is a document; `split_texts="paragraphs"` makes '
            "paragraphs the documents",
            given.name,
        )


_FIRST_LINES, _FEW_LINES, _LONG_LINE = 400, 4, 5_000
_WIDEST = 120  # characters of a line of wrapped text
_INNER_END = re.compile(r"[.!?;:]['\"”’]? [A-Z\"“‘]")  # of a sentence, inside of a line


def _are_wrapped(lines: Sequence[str]) -> bool:
    """Return whether lines look as if a program had wrapped a text: they are of similar length, and end anywhere."""
    lines = [line.strip() for line in lines if line.strip()]
    widest = max(map(len, lines), default=0)
    if len(lines) < 50 or not 40 <= widest <= _WIDEST:
        return False
    full = sum(len(line) > 0.75 * widest for line in lines)
    goes_on = sum(b[:1].islower() and a[-1] not in ".!?:;" for a, b in pairwise(lines))
    inner = sum(_INNER_END.search(line) is not None for line in lines)
    return min(2 * full, 4 * goes_on, 8 * inner) > len(lines)


def _whole(given: Input, layout: Layout) -> Iterator[Document]:
    named = {"id": given.place["file"]} if given.place else {}
    with opened(given) as file:
        yield document_of({"text": file.read(), **named, **given.place}, given, layout)


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
    "json": read_json,
    "parquet": read_parquet,
    "docx": read_docx,
    "pdf": read_pdf,
    "eml": read_eml,
    "mbox": read_mbox,
}


def _checked(
    documents: Iterator[Document],
    name: str,
    covariates: Mapping[str, str | None] = MappingProxyType({}),
) -> Iterator[Document]:
    """Replace the surrogates in texts, and check that there are documents and values.

    Args:
        documents: the documents.
        name: the file, for messages.
        covariates: columns that were asked for, with the argument that named each.

    Raises:
        InputError: the file contains no documents, none of them has a value of a column that was asked for, or a value
            contains a lone surrogate.
    """
    document = None
    unseen = {column: argument for column, argument in covariates.items() if argument is not None}
    for row, document in enumerate(documents):
        if not (document.text.isascii() or is_utf8(document.text)):
            document = document._replace(text=replace_surrogates(document.text))
        if document[1:] != _ONLY_TEXT:
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
