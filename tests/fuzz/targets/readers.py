"""Readers of files. Each result is compared with a reference that decodes and splits the whole file in memory."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hostile import BYTES, MARKS, SEPARATORS, SURROGATES
from topicloom.errors import InputError
from topicloom.text import Document, read
from topicloom.text.strings import replace_surrogates

from ..campaign import Target
from ..case import Case, same

ENCODINGS = ["utf-8"] * 6 + [
    "utf-16", "utf-16-le", "utf-16-be", "utf-32", "gb18030", "gbk", "big5", "shift_jis", "euc_jp", "euc_kr",
    "cp1252", "latin-1",
    "iso2022_jp", "cp037", "utf-8-sig", "ascii", "koi8-r", "cp949", "big5hkscs", "utf-7",
]  # fmt: skip
ERRORS = ["strict", "strict", "replace", "ignore"]


@contextmanager
def standard_input(data: bytes) -> Iterator[None]:
    before, sys.stdin = sys.stdin, SimpleNamespace(buffer=io.BytesIO(data))  # type: ignore[assignment]
    try:
        yield
    finally:
        sys.stdin = before


def documents_of(
    case: Case, data: bytes, ending: str, compress: bool = False, *, pipe: bool = True, **options: Any
) -> list[Document] | str:
    """The documents that are read from a file, from standard input or from a compressed file; or the refusal."""
    try:
        if compress:
            path = case.write(f"input.{ending}.gz", gzip.compress(data, 1))
        elif case.chance(0.5) or not pipe:
            path = case.write(f"input.{ending}", data)
        else:
            with standard_input(data):
                return list(read("-", format=ending, **options))
        return list(read(path, **options))
    except InputError as error:
        assert "\n" not in str(error), str(error)
        return str(error)


def decoded(data: bytes, encoding: str, errors: str) -> str | None:
    """The whole text; None if it cannot be decoded, or is in UTF-16 or UTF-32 without a byte order mark."""
    marks = {"utf-16": (b"\xff\xfe", b"\xfe\xff"), "utf-32": (b"\xff\xfe\0\0", b"\0\0\xfe\xff")}
    if data.startswith(marks["utf-16"]) and not data.startswith(marks["utf-32"]):
        encoding = "utf-16"  # which is recognised by its mark
    if encoding in marks and not data.startswith(marks[encoding]):
        return None
    try:
        return data.decode("utf-8-sig" if encoding == "utf-8" else encoding, errors)
    except UnicodeError:
        return None


def lines_of(text: str) -> list[str]:
    lines = re.split("\r\n|\r|\n", text)
    return lines if lines[-1] else lines[:-1]


def clean(text: str) -> str:
    return replace_surrogates(text.replace("\0", " "))


def compare(found: list[Document] | str, expected: list[Document] | None, text: str | None) -> int:
    """Compare documents with the reference; None is a refusal."""
    if isinstance(found, str):
        guessed = "looks like UTF-16" in found and text is not None and lines_of(text)[0].count("\0") > 2
        guessed |= (
            "pending buffer overflow" in found
        )  # Python's ISO 2022 gives up where its whole-text decoder does not
        assert guessed or not expected, f"refused: {found}"
        return 1
    assert expected, f"read {len(found)} documents of a file that should be refused"
    same(found, expected, "document")
    return max(1, len(found))


def txt(case: Case) -> int:
    encoding, errors = case.pick(ENCODINGS), case.pick(ERRORS)
    lines = case.some(case.text, 60)
    data = case.pick(["\n", "\n", "\r\n", "\r"]).join(lines).encode(encoding, "ignore")
    if case.chance(0.3):
        data = case.mutated(data)
    text = decoded(data, encoding, errors)
    expected = None if text is None else [Document(clean(line)) for line in lines_of(text)]
    found = documents_of(case, data, "txt", case.chance(0.1), encoding=encoding, errors=errors)
    if len(data) < 4:  # Python's own codecs differ on the beginning of a byte order mark
        return 1
    return compare(found, expected, text)


def markdown(case: Case) -> int:
    data = case.mutated("\n".join(case.some(lambda: case.text(SEPARATORS), 9)).encode("utf-8", "surrogatepass"))
    text = decoded(data, "utf-8", "replace")
    assert text is not None
    name = case.write("input.md", data)
    if len(data) < 3:  # Python's own codecs differ on the beginning of a byte order mark
        return 1
    found = [each.text for each in read(name, errors="replace")] if text.count("\0") < 3 else None
    if found is not None:
        same(found, [clean(re.sub("\r\n?", "\n", text))])
    return 1


def written_table(case: Case) -> int:
    """A table that Python's csv has written. Every field comes back."""
    columns = ["text", "id", "label", "timestamp"][: 1 + case.below(4)]
    case.random.shuffle(columns)
    delimiter = case.pick(",;\t|")
    rows = case.some(lambda: [case.text(SEPARATORS, 6) for _ in columns], 40, 1)
    end = case.pick(["\r\n", "\n", "\r"])
    out = io.StringIO(newline="")
    quoting = csv.QUOTE_ALL if end != "\r\n" or case.chance(0.3) else csv.QUOTE_MINIMAL
    writer = csv.writer(out, delimiter=delimiter, lineterminator=end, quoting=quoting)
    writer.writerows([columns, *rows])
    data = out.getvalue().encode("utf-8")
    named = [Document(**dict(zip(columns, map(clean, row), strict=True))) for row in rows]
    options = {"delimiter": delimiter} if len(columns) == 1 or case.chance(0.5) else {}
    ending = "tsv" if delimiter == "\t" and case.chance(0.5) else "csv"
    return compare(documents_of(case, data, ending, case.chance(0.05), **options), named, None)


def records(text: str, delimiter: str, quoting: bool) -> list[list[str]] | None:
    """A CSV parser, character by character, as RFC 4180 has it; None for a file that is not a table."""
    rows: list[list[str]] = []
    row: list[str] = []
    field, state = "", "record"
    for line in re.findall("[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text):
        for character in line:
            if state == "quoted":
                if character == '"':
                    state = "quote"
                else:
                    field += character
            elif state == "quote" and character == '"':
                field, state = field + '"', "quoted"
            elif character in "\r\n":
                if state != "record":
                    row.append(field)
                    rows.append(row)
                elif not line.strip("\r\n"):
                    rows.append([])
                row, field, state = [], "", "record"
                break
            elif character == delimiter:
                row.append(field)
                field, state = "", "field"
            elif state == "quote":
                return None
            elif character == '"' and quoting and state in ("record", "field"):
                state = "quoted"
            else:
                field, state = field + character, "inside"
    if state == "quoted":
        return None
    if state != "record":
        rows.append([*row, field])
    return rows


def table(rows: list[list[str]], header: bool, text: str = "text") -> list[Document] | None:
    """The documents of a table; None if it is refused."""
    if header:
        while rows and not rows[0]:
            rows = rows[1:]
    if not rows:
        return []
    names = rows[0] if header else [str(number) for number in range(1, max(len(rows[0]), 1) + 1)]
    if text not in names:
        return None
    found = []
    for row in rows[1:] if header else rows:
        if not row:
            if len(names) > 1:
                continue
            row = [""]
        if len(row) != len(names):
            return None
        places = {role: names.index(role) for role in ("id", "label", "timestamp") if role in names}
        fields = {role: clean(row[place]) for role, place in places.items()}
        found.append(Document(clean(row[names.index(text)]), **fields))
    return found


def damaged_table(case: Case) -> int:
    """A mutated table, compared with a parser that reads character by character."""
    delimiter, header, quoting = case.pick(",;\t|"), case.chance(0.7), case.chance(0.8)
    data = case.seed_bytes(".csv").replace(b",", delimiter.encode())
    data = case.mutated(data) if case.chance(0.9) else data
    if case.chance(0.3):
        place = case.below(len(data))
        data = data[:place] + case.text(SEPARATORS).encode() + data[place:]
    errors = case.pick(["strict", "replace"])
    text = decoded(data, "utf-8", errors)
    rows = None if text is None else records(text.replace("\0", " "), delimiter, quoting)
    name = "text" if header else "1"
    expected = None if rows is None else table(rows, header, name)
    options = {"delimiter": delimiter, "header": header, "quoting": quoting, "errors": errors, "text": name}
    options |= {"quotechar": '"', "escapechar": "none"} if quoting else {}
    first, *others = [[cell.lstrip("\ufeff") for cell in row] for row in rows or [] if row] or [[]]
    pipe = not header or first not in others  # standard input leaves out rows that repeat the header
    return compare(documents_of(case, data, "csv", pipe=pipe, **options), expected, text)


def json_value(case: Case, depth: int = 0) -> Any:
    kind = case.below(9 if depth < 3 else 6)
    if kind < 2:
        return case.text([*SEPARATORS, *SURROGATES])
    if kind == 2:
        return case.pick([None, True, False, 0, -1, 10**30, 2**63, 1e308, -0.0, float("nan"), float("inf")])
    if kind < 6:
        return case.below(100)
    if kind == 6:
        return case.some(lambda: json_value(case, depth + 1), 3)
    return {case.text(): json_value(case, depth + 1) for _ in range(case.below(3))}


def string_of(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and abs(value) < 1e15 and not value % 1:
        return str(round(value))
    if isinstance(value, list | dict) and value:
        raise ValueError("several values")
    return None if value is None or value != value or value in ([], {}) else replace_surrogates(str(value))


def document_of(line: str) -> Document:
    """The document of a line of JSON. Its id and its class have numbers as they are written; lists are refused."""
    record, written = json.loads(line), json.loads(line, parse_float=str)
    if not isinstance(record, dict) or not isinstance(record["text"], str | None):
        raise ValueError
    text = replace_surrogates((record["text"] or "").replace("\0", " "))
    given = [(written if isinstance(record.get(name), float) else record).get(name) for name in ("id", "label")]
    return Document(text, *map(string_of, [*given, record.get("timestamp")]))


def json_lines(case: Case) -> int:
    rows = []
    for _ in range(1 + case.below(40)):
        row = {"text": case.text([*SEPARATORS, *SURROGATES]) if case.chance(0.95) else None}
        for name in ("id", "label", "timestamp", case.text()):
            if case.chance(0.3) and name != "text":
                row[name] = json_value(case)
        rows.append(row)
    dumped = [json.dumps(row, ensure_ascii=case.chance(0.5) or not _is_utf8(row)) for row in rows]
    blank = ["", "  "] if case.chance(0.2) else []
    data = case.pick(["\n", "\r\n"]).join([*dumped, *blank]).encode("utf-8", "replace")
    found, read_back = documents_of(case, data, "jsonl", case.chance(0.05)), map(json.loads, dumped)
    fields = [str(row.get(name)) for row in read_back for name in ("id", "label", "timestamp")]
    is_whole = all(_is_utf8(field) for field in fields)  # a lone surrogate is refused, but in a text
    try:
        return compare(found, [document_of(row) for row in dumped] if is_whole else None, None)
    except ValueError:
        return compare(found, None, None)


def _is_utf8(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def damaged_json(case: Case) -> int:
    """Mutated lines, each read alone and compared with Python's own reader of JSON."""
    count = 0
    for _ in range(20):
        line = case.mutated(case.pick(case.seed_bytes(".jsonl").splitlines() or [b""]))
        if case.chance(0.1):
            line = line.replace(b"0", case.pick([b"9" * 5000, b"[" * 3000, b"1e400", b"-", b'{"a":' * 2000]), 1)
        expected, text = [], decoded(line, "utf-8", "strict")
        try:
            for each in [] if text is None else lines_of(text.replace("\0", " ")):
                if each.strip():
                    expected.append(document_of(each))
        except (ValueError, RecursionError, KeyError):
            expected = []
        count += compare(documents_of(case, line, "jsonl"), expected, text)
    return count


def compressed(case: Case) -> int:
    """A damaged .gz file, compared with one decompression of the whole file."""
    lines = case.some(case.text, 20)
    data = gzip.compress("\n".join(lines).encode(), case.pick([0, 1, 9]))
    if case.chance(0.2):
        data += gzip.compress(b"more\n")
    data = case.mutated(data) if case.chance(0.9) else data
    path = case.write(case.pick(["a.txt.gz", "a.TXT.GZ"]), data)
    try:
        text = decoded(gzip.decompress(data), "utf-8", "strict")
    except Exception:
        text = None
    try:
        found: list[Document] | str = list(read(path))
    except InputError as error:
        found = str(error)
    if text is None:
        return compare(found, None, None)
    return compare(found, [Document(clean(line)) for line in lines_of(text)], text)


def folder(case: Case) -> int:
    """A folder with names and contents of all kinds; every .txt and .md file is one document."""
    root = os.fsencode(case.folder / "folder")
    os.mkdir(root)
    expected: dict[bytes, bytes] = {}
    for number in range(1 + case.below(12)):
        stem = case.pick(
            [b"a", b"\xff\xfe", "文".encode(), b"a\nb", b" ", b"%s", b"-", b"*", b"[a]", b".", b"\xed\xa0\x80"]
        )
        name = stem + str(number).encode() + case.pick([b".txt", b".txt", b".md", b".TXT", b".csv", b"", b".txt.gz"])
        inside = root
        if case.chance(0.3):
            inside = os.path.join(root, case.pick([b"sub", b"sub.txt", b"\xff"]))
            os.makedirs(inside, exist_ok=True)
        path = os.path.join(inside, name)
        kind = case.below(10)
        if kind == 0:
            os.symlink(case.pick([b"nowhere", path, root]), path)
        elif kind == 1:
            os.mkdir(path)
        else:
            data = case.text(SEPARATORS).encode("utf-8", "ignore")
            Path(os.fsdecode(path)).write_bytes(data)
            if not name.startswith(b".") and name.lower().endswith((b".txt", b".md")):
                expected[os.path.relpath(path, root)] = data
    options = {"errors": "replace"} if case.chance(0.5) else {}
    try:
        found = list(read(os.fsdecode(root), **options))
    except InputError as error:
        assert not expected or any(data.count(b"\0") > 2 for data in expected.values()), str(error)
        return 1
    ids = {replace_surrogates(os.fsdecode(name)): data for name, data in expected.items()}
    assert len(found) == len(expected), f"{len(found)} documents of {len(expected)} files"
    for each in found:
        assert each.id is not None
        if len(ids) == len(expected):
            text = ids[each.id].decode("utf-8-sig")
            assert each.text == clean(re.sub("\r\n?", "\n", text)), (each, text)
    return len(found)


def pipe(case: Case) -> int:
    """A named pipe, which can be read only once."""
    path = case.folder / "pipe.txt"
    os.mkfifo(path)
    data = "\n".join(case.some(case.text, 20, 1)).encode()
    data = case.mutated(data) if case.chance(0.7) else data

    def write() -> None:
        try:
            with path.open("wb") as file:
                file.write(data)
        except BrokenPipeError:
            pass

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    try:
        found: list[Document] | str = list(read(path))
    except InputError as error:
        found = str(error)
    writer.join(10)
    assert not writer.is_alive(), "the pipe was never opened"
    text = decoded(data, "utf-8", "strict")
    return compare(found, None if text is None else [Document(clean(line)) for line in lines_of(text)], text)


MORE = ("sheet", "quotechar", "escapechar", "split_texts")  # arguments of some formats


def options(case: Case) -> int:
    """Arguments of all kinds. Each gives documents or a refusal."""
    from encodings.aliases import aliases

    ending = case.pick(["txt", "md", "csv", "tsv", "jsonl", "parquet", "xlsx", "zip", "json", "csv.gz", ""])
    seeds = {"csv.gz": ".csv.gz", "parquet": ".parquet", "xlsx": ".xlsx", "jsonl": ".jsonl"}
    data = case.seed_bytes(seeds.get(ending, ".csv"))
    path = case.write(f"input.{ending}" if ending else "input", data)
    odd = [
        *MARKS,
        *SURROGATES,
        "'",
        "\\",
        ";",
        "none",
        "1",
        "sentences",
        "tokens:3",
        *SEPARATORS,
        "text",
        "utf-8",
        "csv",
        "",
        "\\t",
        "tab",
    ]
    given: dict[str, Any] = {}
    for name in ("text", "id", "label", "timestamp", "format", "encoding", "errors", "delimiter", *MORE):
        if case.chance(0.25):
            given[name] = case.pick(odd)
    if case.chance(0.5):
        given["encoding"] = case.pick(sorted(aliases))
    for name in ("header", "quoting"):
        if case.chance(0.2):
            given[name] = case.chance(0.5)
    source: Any = (
        path if case.chance(0.9) else case.pick(["", "\0", os.fsdecode(b"\xff"), "a" * 5000, ".", "/dev/null"])
    )
    if source == "-":
        source = path
    if source == ".":
        source = case.folder
    found = list(read(source, **given))
    assert found
    assert all(isinstance(each.text, str) for each in found)
    return 1


def large(case: Case) -> int:
    """Files that are long in one direction."""
    n = 10_000_000
    kind = case.below(8)
    if kind == 0:  # one line of 10 MB
        text = case.pick(["a", "a ", "中", "\0", "<", "&", "@a", "👩\u200d"]) * n
        data, ending, expected = text[:n].encode()[:n].decode("utf-8", "ignore").encode(), "txt", 1
    elif kind == 1:  # a million empty lines
        data, ending, expected = case.pick([b"\n", b"\r", b"\r\n"]) * 1_000_000, "txt", 1_000_000
    elif kind == 2:
        data, ending, expected = b"text\n" + b"\n" * 1_000_000, "csv", 1_000_000
    elif kind == 3:
        data, ending, expected = b'text,id\n"' + b"a\n," * (n // 3) + b'",1\n', "csv", 1
    elif kind == 4:
        data, ending, expected = b'text,id\n"' + b"a\n," * (n // 3), "csv", None
    elif kind == 5:
        data, ending, expected = (
            b'{"text": "a", "b": ' + case.pick([b"[", b'{"a":', b'"', b"9"]) * 100_000,
            "jsonl",
            None,
        )
    elif kind == 6:
        data, ending, expected = b'{"text": "' + b"a" * n + b'"}\n' + b"\n" * 100_000, "jsonl", 1
    else:
        data, ending, expected = b"text" + b"," * 100_000 + b"\na" + b"," * 100_000 + b"\n", "csv", 1
    found = documents_of(case, data, ending, case.chance(0.2))
    if expected is None:
        assert isinstance(found, str), "read a damaged file"
        return 1
    if isinstance(found, str) and data.startswith(b"\0"):
        return 1
    assert len(found) == expected and not isinstance(found, str), found if isinstance(found, str) else len(found)
    return 1


def hostile_bytes(case: Case) -> bytes:
    return b"".join(case.random.choices(BYTES, k=case.below(30)))


def garbage(case: Case) -> int:
    """Bytes that are no file of any kind, under every format."""
    data = hostile_bytes(case) if case.chance(0.5) else case.random.randbytes(case.below(200))
    for ending in ("txt", "md", "csv", "tsv", "jsonl"):
        documents_of(case, data, ending, errors=case.pick(ERRORS))
    for ending in ("parquet", "xlsx", "txt.gz"):
        with suppress(InputError):
            list(read(case.write(f"input.{ending}", data)))
    return 8


TARGETS = {
    "read.txt": Target(txt, "a line, compared; or a file that is refused", 10),
    "read.md": Target(markdown, "a file", 0.3),
    "read.csv": Target(written_table, "a row, compared field by field", 10),
    "read.csv.damaged": Target(damaged_table, "a row, compared; or a file that is refused", 2),
    "read.jsonl": Target(json_lines, "a line, compared field by field", 7),
    "read.jsonl.damaged": Target(damaged_json, "a line, read alone", 2),
    "read.gz": Target(compressed, "a line, compared; or a file that is refused", 1),
    "read.folder": Target(folder, "a file of a folder", 0.5),
    "read.pipe": Target(pipe, "a line, compared; or a pipe that is refused", 0.3),
    "read.options": Target(options, "a file", 0.5, allow_refusal=True),
    "read.large": Target(large, "a file of up to 20 MB", 1),
    "read.garbage": Target(garbage, "a file", 0.5),
}
