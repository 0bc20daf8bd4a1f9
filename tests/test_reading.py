"""Files of every format, and every way in which they can be wrong."""

from __future__ import annotations

import codecs
import csv
import datetime
import gzip
import io
import json
import os
import random
import re
import sys
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

import topicloom as tl
from topicloom.errors import InputError, MissingExtraError, SettingError
from topicloom.text import Document, counting, read, records, tables


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def texts(*args, **options):
    return [document.text for document in read(*args, **options)]


def test_lines(write):
    path = write("a.txt", "\ufefffirst\r\n\r\nthird\0x\nlast \u2028line")
    assert texts(path) == ["first", "", "third x", "last \u2028line"]
    assert next(read(path)) == Document("first", None, None, None)


def test_table(write):
    path = write("a.csv", 'id,text,label,when\n1,"a, ""b""\nc",x,2020\n2,,y,2021\n')
    assert list(read(path, timestamp="when")) == [
        Document('a, "b"\nc', "1", "x", "2020"),
        Document("", "2", "y", "2021"),
    ]
    assert texts(write("a.tsv", "n\tbody\n1\tx y\n"), text="body") == ["x y"]
    assert texts(write("one.csv", "text\na\n\nb\n")) == ["a", "", "b"]
    assert texts(write("two.csv", "text,id\na,1\n\nb,2\n")) == ["a", "b"]


def test_long_fields_are_read(write):
    assert len(texts(write("a.csv", "text\n" + "x" * 300_000 + "\n"))[0]) == 300_000


def test_json_lines(write):
    path = write(
        "a.jsonl", '{"text": "a", "id": 7, "label": null}\n\n{"text": "b\\u0000c", "label": "x", "more": []}\n'
    )
    assert list(read(path)) == [Document("a", "7"), Document("b c", None, "x")]
    assert texts(write("a.ndjson", '{"text": "a"}')) == ["a"]


def test_covariates_are_read_where_the_file_has_them(write, tmp_path):
    def covariates(path, **options):
        return [document.covariates for document in read(path, covariates=["price", "place"], **options)]

    table = write("a.csv", "text,price,id\na,1,x\nb,,y\n")
    assert covariates(table) == [{"price": "1"}, {"price": ""}]
    assert covariates(table, label="price") == [{"price": "1"}, {"price": ""}]
    assert [document.label for document in read(table, label="price", covariates=["price"])] == ["1", ""]
    assert [document.covariates for document in read(table)] == [None, None]
    lines = write("a.jsonl", '{"text": "a", "price": 1.5}\n{"text": "b", "place": null}\n{"text": "c"}\n')
    assert covariates(lines) == [{"price": "1.5"}, {"place": None}, None]
    assert covariates(write("a.txt", "a\n")) == [None]
    with pytest.raises(InputError, match="`covariates='price'` is a single string; give a list"):
        read(table, covariates="price")
    with pytest.raises(InputError, match="has 2 columns 'price'"):
        covariates(write("b.csv", "text,price,price\na,1,2\n"))
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pandas.DataFrame({"text": ["a"], "price": [2.5], "more": [1]}).to_parquet(tmp_path / "a.parquet")
    assert covariates(tmp_path / "a.parquet") == [{"price": "2.5"}]
    pytest.importorskip("openpyxl")
    pandas.DataFrame({"text": ["a"], "place": ["here"]}).to_excel(tmp_path / "a.xlsx", index=False)
    assert covariates(tmp_path / "a.xlsx") == [{"place": "here"}]


def test_a_record_without_a_text_is_an_empty_document(write, caplog):
    path = write("a.jsonl", '{"id": 1}\n{"text": "a", "id": 2}\n{"text": null, "id": 3}\n{"id": 4}\n')
    assert list(read(path)) == [Document("", "1"), Document("a", "2"), Document("", "3"), Document("", "4")]
    assert "2 of 4 records of" in caplog.text
    assert "have no 'text'; they are empty documents" in caplog.text


def test_a_wrong_text_field_is_reported_at_once(write):
    path = write("a.jsonl", '{"body": "x"}\n' * 1000 + "broken\n")
    with pytest.raises(InputError, match=r"a.jsonl, line 1 has no column 'text'; its columns are body; name"):
        next(iter(read(path)))


def test_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    day = datetime.date(2020, 1, 2)
    parquet.write_table(pyarrow.table({"text": ["a", "b"], "id": [3, 4], "timestamp": [day, None]}), path)
    assert list(read(path)) == [Document("a", "3", None, "2020-01-02"), Document("b", "4")]
    with pytest.raises(
        InputError,
        match=r"a.parquet has no column 'body'; its columns are text, id, timestamp; name the column by `text`",
    ):
        texts(path, text="body")
    parquet.write_table(pyarrow.table({"text": ["a", None]}), path)
    assert texts(path) == ["a", ""]  # what is missing is a document without words, and keeps its row
    path.write_bytes(b"PAR1 not really")
    with pytest.raises(InputError, match=r"a.parquet cannot be read as parquet"):
        texts(path)


def test_parquet_needs_its_extra(write, monkeypatch):
    path = write("a.parquet", "")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"a .parquet file needs pyarrow: pip install 'topicloom\[io\]'"):
        texts(path)


def test_compressed(write):
    assert texts(write("a.txt.gz", gzip.compress(b"a\nb\n"))) == ["a", "b"]
    assert texts(write("a.csv.gz", gzip.compress(b"text\na\n"))) == ["a"]
    for broken in (b"not gzip", gzip.compress(b"abc" * 1000)[:-9]):
        with pytest.raises(InputError, match="is not a complete gzip file"):
            texts(write("b.jsonl.gz", broken))


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO("一\n二\n".encode())))
    assert texts("-") == ["一", "二"]
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"\xff")))
    with pytest.raises(InputError, match="standard input: not utf-8"):
        texts("-")


def test_the_headers_of_further_files_on_standard_input(monkeypatch, write, caplog):
    may, june = "text,label\na cat,pets\n\ntext,pets\n", "\ufefftext,label\na bank,money\n"

    def piped(*files, **options):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO("".join(files).encode())))
        return [document.text for document in read("-", format="csv", **options)]

    assert piped(may, june, may) == ["a cat", "text", "a bank", "a cat", "text"]
    assert caplog.messages == [
        "standard input repeats its header 2 times, as files one after another do; these rows are left out"
    ]
    assert piped(may) == ["a cat", "text"]
    assert piped("text\na\n", "text\nb\n") == ["a", "text", "b"]  # which may be a text
    assert piped(may, may, header=False, text="1")[3:5] == ["text", "a cat"]
    assert texts(write("both.csv", may + may)) == ["a cat", "text", "text", "a cat", "text"]  # a file is as it is
    assert len(caplog.messages) == 1


def test_folder(tmp_path, caplog):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "1.txt").write_text("one\nline")
    (tmp_path / "a.txt").write_text("")
    (tmp_path / "b" / "c.md").write_text("# Title")
    (tmp_path / "d.csv").write_text("not read")
    (tmp_path / "B.TXT").write_text("capitals")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "note.txt").write_text("hidden")
    (tmp_path / "._a.txt").write_text("what macOS writes beside a.txt")
    assert list(read(tmp_path)) == [
        Document("capitals", "B.TXT"),
        Document("", "a.txt"),
        Document("one\nline", "b/1.txt"),
        Document("# Title", "b/c.md"),
    ]
    assert caplog.messages == [
        f"the folder {tmp_path} contains 1 table or compressed file, such as d.csv; only .txt, .md, .docx, .pdf and "
        ".eml files are read, unless `format` names others"
    ]
    with pytest.raises(InputError, match="plain text has no columns"):
        read(tmp_path, id="name")
    (tmp_path / "d").mkdir()
    with pytest.raises(InputError, match=r"d contains no .txt, .md, .docx, .pdf or .eml files; give a file of texts"):
        read(tmp_path / "d")
    (tmp_path / "d" / "texts.TXT.gz").write_bytes(b"")
    with pytest.raises(InputError, match=r"give one of its files, such as texts.TXT.gz"):
        read(tmp_path / "d")


def test_written_results_in_a_folder_are_not_read_as_texts(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a text")
    corpus = tl.datasets.synthetic_lda(40, 2, 30, random_state=0).corpus
    corpus.save(tmp_path / "results" / "corpus")
    tl.GSM(2, epochs=1, random_state=0).fit(corpus).save(tmp_path / "results" / "fitted")
    assert list(read(tmp_path)) == [Document("a text", "a.txt")]
    with pytest.raises(InputError, match="results contains only what topicloom has written; give a file of texts"):
        read(tmp_path / "results")


def test_encodings(write):
    path = write("a.txt", "好\n中文\n".encode("gb18030"))
    assert texts(path, encoding="gb18030") == ["好", "中文"]
    assert "\ufffd" in texts(path, errors="replace")[0]
    assert texts(write("c.txt", "好\n".encode("utf-16")), encoding="utf-16") == ["好"]
    path = write("b.txt", b"good\nfine\n bad \xff\n")
    with pytest.raises(
        InputError,
        match=r"b.txt, line 3, byte 16: not utf-8 \(byte 0xff\); "
        r'.*`encoding="gb18030"`.*`encoding="big5"` for traditional Chinese.*or give `errors="replace"` to',
    ):
        texts(path)
    path = write("d.txt", "好\n骉㐂\n".encode("gb18030"))
    for encoding in ("gbk", "GB2312", "cp936"):
        with pytest.raises(InputError, match=r'line 2, .*; give `encoding="gb18030"`, which has more'):
            texts(path, encoding=encoding)
    for encoding in ("utf-9", "idna", "punycode", "rot13", None):
        with pytest.raises(SettingError, match=r"`encoding=.*` is not known as an encoding of text"):
            texts(path, encoding=encoding)
    with pytest.raises(SettingError, match=r"`errors='shout'` is not known"):
        texts(path, errors="shout")


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("a.txt", "", {}, "a.txt contains no documents"),
        ("a.csv", "", {}, "a.csv contains no documents"),
        ("a.csv", "text\n", {}, "a.csv contains no documents"),
        ("a.jsonl", "\n", {}, "a.jsonl contains no documents"),
        ("a.txt", "x", {"id": "n"}, "plain text has no columns"),
        ("a.rtf", "x", {}, "a.rtf ends in '.rtf', which is not a known format; save it as .docx or .txt"),
        ("a.csv.bz2", "x", {}, "which is not a known format; unpack it, or compress it by gzip"),
        ("a.XLS", "x", {}, "a.XLS ends in '.XLS', which is not a known format; save it as .xlsx or .csv"),
        ("a.png", "x", {}, "a.png ends in '.png', which is not a known format; give `format` as one of txt"),
        ("a", "x", {}, "a has no ending that shows its format; give `format`"),
        ("a.txt", "x", {"format": "xml"}, r"`format='xml'` is not known; did you mean eml"),
        ("a.csv", "body,n\nx,1\n", {}, "a.csv has no column 'text'; its columns are body, n; name .* by `text`"),
        ("a.csv", "text,n,text\nx,1,y\n", {}, "a.csv has 2 columns 'text'; rename all but the one to read"),
        ("a.csv", "text,id,id\nx,1,2\n", {}, "a.csv has 2 columns 'id'; rename all but the one to read"),
        ("a.csv", "text , n\nx,1\n", {}, r"no column 'text'; .* by `text`, with its blanks \('text '\)"),
        (
            "a.csv",
            "text,n\nx,1\n",
            {"label": "m"},
            "a.csv has no column 'm'; its columns are text, n; name the column by `label`",
        ),
        ("a.csv", "text,n\nx,1\ny\n", {}, "a.csv, line 3 has 1 field, but the header has 2"),
        ("a.csv", "text,n\nx,1,2\n", {}, "a.csv, line 2 has 3 fields, but the header has 2"),
        ("a.jsonl", '{"text": "a"}\n{"text": \n', {}, "a.jsonl, line 2, column .*: not JSON .*; correct the line"),
        ("a.jsonl", '{"text": "a", "kind": "b"}\n{"text": "a"}\n', {"label": "knd"}, "no record of .* has 'knd', the"),
        ("a.jsonl", '["a"]\n', {}, "a.jsonl, line 1: not a JSON object"),
        ("a.jsonl", '{"text": 5}\n', {}, "a.jsonl, line 1: 'text' is 5, not a string"),
        ("a.jsonl", '{"text": 7}\n', {}, "a.jsonl, line 1: 'text' is 7, not a string"),
        ("a.jsonl", '{"body": "x"}\n', {}, "a.jsonl, line 1 has no column 'text'; its columns are body; name"),
        ("a.jsonl", "{}\n", {}, "a.jsonl, line 1 has no column 'text'; it has none; name"),
    ],
)
def test_faults(write, name, content, options, message):
    with pytest.raises(InputError, match=message):
        texts(write(name, content), **options)


def test_no_file(tmp_path):
    with pytest.raises(InputError, match=r"nowhere.txt does not exist; check the path"):
        read(tmp_path / "nowhere.txt")


def test_a_large_file_is_not_read_whole(write):
    path = write("a.jsonl", (json.dumps({"text": "word " * 100}) + "\n") * 1000 + "broken\n")
    assert next(read(path)).text.startswith("word")


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        (
            "a.csv",
            'id,text\n1,fine\n2,"open\n' + "".join(f"{n},more\n" for n in range(1000)),
            "line 3: .* never closed",
        ),
        (
            "a.csv",
            'id,text\n1,"open\n2,"next"\n',
            "line 3, in the record that begins on line 2: text follows a closing",
        ),
        ("a.csv", 'id,text\n1,"one" two\n', "line 2: text follows a closing quotation mark; .*quoting=False"),
        ("a.tsv", 'text\tid\n"a\t1\nb\t2', "line 2: a quotation mark opens in the record that begins here"),
    ],
)
def test_a_quotation_mark_that_is_not_closed(write, name, content, place):
    with pytest.raises(InputError, match=f"{name}, {place}"):
        texts(write(name, content))


def test_quotation_marks_may_be_ordinary_characters(write):
    assert texts(write("a.tsv", 'text\tid\n"A" b\t1\n"c\t2\n'), quoting=False) == ['"A" b', '"c']


def test_a_record_of_very_many_lines_is_reported(write, caplog):
    lines = 'text,id\n"open,1\n' + "a,2\n" * 1500 + 'b",3\n'
    with caplog.at_level("WARNING", "topicloom"):
        assert len(texts(write("a.csv", lines))) == 1
    assert len(caplog.messages) == 1
    assert "a.csv: one record goes from line 2 to line 1503; look for a quotation mark" in caplog.messages[0]


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        ("text;label\na, b;x\nc;y\n", {}, [("a, b", "x"), ("c", "y")]),
        ("label|text\nx|a; b, c\n", {}, [("a; b, c", "x")]),
        ("label\ttext\nx\ta\n", {}, [("a", "x")]),
        ('"text";"label"\n"a; b";x\n', {}, [("a; b", "x")]),
        ("text^label\na^x\n", {"delimiter": "^"}, [("a", "x")]),
        ("text,label\na;b,x\n", {}, [("a;b", "x")]),
        ("text\na; b\n", {}, [("a; b", None)]),
        ("1;a, b\n2;c\n", {"header": False, "text": "2", "label": "1"}, [("a, b", "1"), ("c", "2")]),
        ("a,x\n", {"header": False, "text": "1"}, [("a", None)]),
        ("\n\ntext,label\na,x\n", {}, [("a", "x")]),
        ("\na\n", {"header": False, "text": "1"}, [("", None), ("a", None)]),
    ],
)
def test_delimiters_and_headers(write, content, options, expected):
    found = list(read(write("a.csv", content), **options))
    assert [(document.text, document.label) for document in found] == expected


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("a.csv", {"header": False}, r"no column 'text'; without a header, its columns are 1, 2; name .* by `text`$"),
        ("a.csv", {"text": "x"}, r"`header=False` if the first line is a document"),
        ("a.csv", {"delimiter": ";;"}, r"`delimiter=';;'` must be one character"),
        ("a.txt", {"delimiter": ";"}, r"`delimiter=';'` is for .csv and .tsv files"),
        ("a.txt", {"header": False}, r"`header=False` is for .csv, .tsv and .xlsx files"),
        ("a.jsonl", {"quoting": False}, r"`quoting=False` is for .csv and .tsv files"),
        ("a.xlsx", {"encoding": "gb18030"}, r"`encoding='gb18030'` is for .txt, .* and .zip files; leave it out for"),
        ("a.parquet", {"errors": "replace"}, r"`errors='replace'` is for .txt, .* and .zip files; leave it out for"),
    ],
)
def test_delimiters_and_headers_that_cannot_be(write, name, options, message):
    with pytest.raises(InputError, match=message):
        texts(write(name, "one,two\n"), **options)


def test_the_process_keeps_its_limit_of_csv_fields(write):
    before = csv.field_size_limit()
    path = write("a.csv", "text\n" + f"{'x' * 300_000}\n" * 3)
    documents = read(path)
    next(documents)
    assert csv.field_size_limit() == before
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: len(texts(path)), range(8))) == [3] * 8
    assert csv.field_size_limit() == before
    documents.close()
    with pytest.raises(InputError):
        texts(write("b.csv", 'text\n"a'))
    assert csv.field_size_limit() == before


def test_excel(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / "a.xlsx"

    def save(*rows):
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        book.create_sheet("not read").append(["text"])
        book.save(path)

    day, moment = datetime.datetime(2020, 1, 2), datetime.datetime(2020, 1, 2, 3, 4)
    save(["id", "text", "when", None], [7, "新闻\nb", day], [], [8.5, None, moment], ["x", 2024, None])
    assert list(read(path, timestamp="when")) == [
        Document("新闻\nb", "7", None, "2020-01-02"),
        Document("", "8.5", None, "2020-01-02T03:04:00"),
        Document("2024", "x", None, ""),
    ]
    assert texts(path, header=False, text="2")[0] == "text"
    save(["text"], ["a", "b"])
    with pytest.raises(
        InputError,
        match=r"worksheet 'Sheet' of .*a.xlsx, row 2 has 2 fields, but the header has 1; give",
    ):
        texts(path)
    save(["body"], ["a"])
    with pytest.raises(
        InputError,
        match=r"no column 'text'; its columns are body; 'not read' has it: give `sheet='not read'`",
    ):
        texts(path)
    whole = path.read_bytes()
    for damaged in (b"not a workbook", whole[: len(whole) // 2], whole.replace(b"xl/worksheets", b"xl/worksheetz")):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"a.xlsx cannot be read as xlsx: .*; save it again as .xlsx or .csv$"):
            texts(path)


def test_formulas_without_values_are_mentioned(tmp_path, caplog, monkeypatch):
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / "a.xlsx"
    book = openpyxl.Workbook()
    for row in (["text", "n"], ["cat", 1], ['=A2&" and dog"', 2]):
        book.active.append(row)
    book.save(path)
    for at_once in (1 << 20, 7):
        monkeypatch.setattr(tables, "_XML_AT_ONCE", at_once)
        caplog.clear()
        assert next(read(path)).text == "cat"
        assert not caplog.messages
        assert texts(path) == ["cat", ""]
        assert "a.xlsx: the formula in cell A3 has no value" in caplog.text
    whole = {}
    with zipfile.ZipFile(path) as archive:  # what Excel adds when it saves the file
        for name in archive.namelist():
            whole[name] = re.sub(b"<v></v>|<v ?/>", b"<v>cat and dog</v>", archive.read(name))
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in whole.items():
            archive.writestr(name, data.replace(b'<c r="A3">', b'<c r="A3" t="str">'))
    caplog.clear()
    assert texts(path) == ["cat", "cat and dog"]
    assert not caplog.messages


def test_escapes_of_excel_are_characters(tmp_path):
    """The file is written by hand, as Excel writes a cell with a carriage return, and one with the text _x000D_."""
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / "a.xlsx"
    book = openpyxl.Workbook()
    book.active.append(["text", "id"])
    book.active.append(["one_x000D_\ntwo", "a_x005F_x000D_b"])
    book.active.append(["max_x and _x00_ and _xD83D_ and _x0000_", "_x4E2D__x6587_"])
    book.save(path)
    assert list(read(path)) == [
        Document("one\r\ntwo", "a_x000D_b"), Document("max_x and _x00_ and _xD83D_ and  ", "中文")
    ]  # fmt: skip
    corpus = tl.Corpus.from_file(path, language="en", min_df=1, max_df=1.0)
    assert "x000d" not in " ".join(corpus.vocabulary)


@pytest.mark.parametrize(
    ("record", "options", "says"),
    [
        ({"label": ["x", "y"]}, {"label": "label.0"}, r"'label' is \['x', 'y'\], not one value; .*, such as 'label.0'"),
        ({"id": {"$oid": "5f"}}, {"id": "id.$oid"}, r"'id' is \{'\$oid': '5f'\}, not one value; .* as 'id.\$oid'"),
        ({"when": {"$date": "2024"}}, {"timestamp": "when.$date"}, r"line 1: 'when' is .* as 'when.\$date'"),
        ({"tags": [["x"]]}, {"covariates": ["tags.0.0"]}, r"'tags' is .* as 'tags.0.0'"),
    ],
)
def test_lists_and_objects_are_no_values(write, record, options, says):
    """They became Python's own spelling of them."""
    path = write("a.jsonl", json.dumps({"text": "a"} | record) + "\n")
    (role, column), name = next(iter(options.items())), next(iter(record))
    with pytest.raises(InputError, match=says):
        list(read(path, **{role: [name] if role == "covariates" else name}))
    [found] = read(path, **options)
    inside = (found.covariates or {}).get(column[0]) if role == "covariates" else getattr(found, role)
    assert inside == {"label": "x", "id": "5f", "timestamp": "2024", "covariates": "x"}[role]
    path = write("b.jsonl", json.dumps({"text": "a", name: type(record[name])()}) + "\n")
    [found] = read(path, **{role: [name] if role == "covariates" else name})
    assert ((found.covariates or {}).get(name) if role == "covariates" else getattr(found, role)) is None


def test_further_worksheets_are_mentioned_once(tmp_path, caplog):
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / "a.xlsx"
    book = openpyxl.Workbook()
    book.active.append(["text"])
    book.active.append(["read"])
    book.active.title = "notes"
    book.save(path)
    assert texts(path) == ["read"]
    assert not caplog.messages
    book.create_sheet("data").append(["text"])
    book.save(path)
    says = [f"{path} has 2 worksheets, and only the first one, 'notes', is read; `sheet` chooses another one"]
    assert next(read(path)) == Document("read")
    assert not caplog.messages
    assert texts(path) == ["read"]
    assert caplog.messages == says
    caplog.clear()
    with pytest.raises(InputError, match="no column 'body'; its columns are text; the other worksheets are 'data'"):
        texts(path, text="body")
    assert not caplog.messages


def test_excel_needs_its_extra(write, monkeypatch):
    path = write("a.xlsx", "")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match=r"an .xlsx file needs openpyxl: pip install 'topicloom\[io\]'"):
        texts(path)


def test_markdown_is_one_document(write):
    assert list(read(write("a.md", "# Title\n\nText\n"))) == [Document("# Title\n\nText\n", "a.md")]


@pytest.mark.parametrize("mark", [codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "gb18030"])
def test_a_mark_of_utf16_is_recognised(write, monkeypatch, mark, encoding):
    content = mark + "好\nthere\n".encode("utf-16-le" if mark == codecs.BOM_UTF16_LE else "utf-16-be")
    assert texts(write("a.txt", content), encoding=encoding) == ["好", "there"]
    assert texts(write("b.txt.gz", gzip.compress(content)), encoding=encoding) == ["好", "there"]
    for buffer in (io.BytesIO(content), io.BufferedReader(Pipe(content))):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(buffer))
        assert texts("-", encoding=encoding) == ["好", "there"]


class Pipe(io.RawIOBase):
    """Bytes that can only be read on."""

    def __init__(self, content: bytes) -> None:
        self._rest = io.BytesIO(content)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:
        return self._rest.readinto(buffer)


def test_utf32_is_not_taken_for_utf16(write):
    assert texts(write("a.txt", "好\nthere\n".encode("utf-32")), encoding="utf-32") == ["好", "there"]


def test_a_folder_of_utf8_and_utf16(write, tmp_path):
    (tmp_path / "folder").mkdir()
    write("folder/a.txt", "one\n")
    write("folder/b.txt", "two\n".encode("utf-16"))
    assert texts(tmp_path / "folder") == ["one\n", "two\n"]


@pytest.mark.parametrize(
    ("content", "encoding", "advice"),
    [
        (
            "hello\nthere\n".encode("utf-16-le"),
            "utf-8",
            r'UTF-16.*give `encoding="utf-16-le"` or `encoding="utf-16-be"`$',
        ),
        (
            "hello\nthere\n".encode("utf-16-be"),
            "utf-8",
            r'UTF-16.*give `encoding="utf-16-be"` or `encoding="utf-16-le"`$',
        ),
        ("中文\n新闻\n".encode("utf-16-le"), "utf-8", r'give `encoding="utf-16-le"` or `encoding="utf-16-be"`$'),
        ("中文\n".encode("utf-16-le"), "utf-16", r'(cannot be read as|not) utf-16.*`encoding="utf-16-le"` or `'),
        (b"odd", "utf-16", r"a.* utf-16"),
        ("中文\n新".encode("utf-16")[:-1], "utf-16", r'line 2, byte 9: not utf-16 .*or give `errors="replace"`'),
    ],
)
def test_utf16(write, content, encoding, advice):
    for name in ("a.txt", "a.md"):
        with pytest.raises(InputError, match=advice) as caught:
            texts(write(name, content), encoding=encoding)
        assert "gb18030" not in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        Path(sys.executable).read_bytes()[:20_000],
        b"%PDF-1.4\n%\xe2\xe3\n1 0 obj\n",
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\3 \xff",
    ],
)
def test_binary_files(write, content):
    says = "a.txt looks like a binary file and not like text; give a file of text"
    for options in ({}, {"encoding": "gb18030"}):
        with pytest.raises(InputError, match=says) as caught:
            texts(write("a.txt", content + b"\xff\xff"), **options)
        assert "encoding" not in str(caught.value)
    with pytest.raises(InputError, match=r"not utf-8 .*gb18030"):
        texts(write("a.txt", "中文".encode("gb18030") + b"\x01\x1a"))


def test_a_binary_file_in_a_folder(tmp_path):
    (tmp_path / "a.txt").write_text("fine", encoding="utf-8")
    (tmp_path / "ls.txt").write_bytes(b"\x7fELF\2\1\1\0\0\0\xff" * 9)
    with pytest.raises(InputError, match=r"ls.txt looks like a binary file"):
        list(read(tmp_path))
    with pytest.raises(InputError, match=r"contains no .csv files; check `format`, or leave it out"):
        read(tmp_path, format="csv")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_with_a_bad_byte_does_not_hang(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b"good\n\xff\n",), daemon=True)
    writer.start()
    outcome = []

    def reading():
        try:
            outcome.append(texts(path, format="txt"))
        except InputError as error:
            outcome.append(str(error))

    reader = threading.Thread(target=reading, daemon=True)
    reader.start()
    reader.join(5)
    assert outcome
    assert "pipe: not utf-8 (byte 0xff)" in outcome[0]


def test_surrogates_become_the_replacement_character(write, tmp_path):
    path = write("a.jsonl", '{"text": "a \\ud800", "id": "b", "label": "\\ud83d\\ude00"}\n')
    assert list(read(path)) == [Document("a \ufffd", "b", "😀")]
    for column in ("id", "label", "timestamp", "shop"):
        path = write("a.jsonl", f'{{"text": "a"}}\n{{"text": "a", "{column}": "x\\udfff"}}\n')
        with pytest.raises(InputError, match=rf"{column}'? of document 1 of .*a.jsonl contains '.udfff', a lone surr"):
            list(read(path, covariates=["shop"]))
    folder = tmp_path / "folder"
    folder.mkdir()
    try:
        (folder / os.fsdecode(b"\xff.txt")).write_text("x")
    except OSError:
        pytest.skip("this file system has UTF-8 names only")
    assert list(read(folder)) == [Document("x", "\ufffd.txt")]
    with pytest.raises(InputError, match=r"the path '.*udcff.txt' is not UTF-8.*; rename the file"):
        read(folder / os.fsdecode(b"\xff.txt"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[" * 100_000, "line 2: the JSON is nested too deeply"),
        ('{"text": "a", "n": ' + "9" * 5000 + "}", "line 2: the JSON has a number with too many digits"),
        ('{"text": [' + "[" * 500 + "]" * 500 + "]}", "line 2: 'text' is .*, not a string"),
    ],
)
def test_json_that_python_cannot_read(write, line, message):
    with pytest.raises(InputError, match=message):
        texts(write("a.jsonl", f'{{"text": "a"}}\n{line}\n'))


def test_labels_that_are_nan_are_missing(write):
    assert list(read(write("a.jsonl", '{"text": "a", "label": NaN}\n'))) == [Document("a")]


def test_a_damaged_gzip_file_with_bad_bytes(write):
    bad = random.Random(0).randbytes(100_000).translate(None, bytes([*range(32), 127]))
    compressed = gzip.compress(b"ok\n" * 10 + b"\xff" + bad)
    with pytest.raises(InputError, match=r"a.txt.gz: not utf-8 \(byte 0xff\)"):
        texts(write("a.txt.gz", compressed[:50_000]))


def test_closed_standard_input(monkeypatch):
    closed = io.BytesIO()
    closed.close()
    for stdin in (None, SimpleNamespace(buffer=closed), io.StringIO("x")):
        monkeypatch.setattr(sys, "stdin", stdin)
        with pytest.raises(InputError, match="standard input is closed; give a file"):
            texts("-")


def test_parquet_values_that_python_has_not(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    times = pyarrow.array([10**12], pyarrow.timestamp("s"))
    parquet.write_table(pyarrow.table({"text": ["a"], "timestamp": times}), path)
    with pytest.raises(InputError, match=r"a.parquet cannot be read as parquet: "):
        texts(path)


def test_a_path_that_cannot_be(tmp_path):
    for path in ("x" * 5000, "a\0b"):
        with pytest.raises(InputError, match="does not exist"):
            read(path)


@pytest.mark.parametrize(
    ("name", "content", "where"),
    [
        ("a.txt", "short\n" + "cat " * 30 + "\n", "a.txt, line 2 has more than 100 characters"),
        ("a.txt", "cat " * 30, "a.txt, line 1 has more than 100 characters"),
        ("a.md", "short\n" * 20, "a.md has more than 100 characters"),
        ("a.jsonl", '{"text": "%s"}' % ("cat " * 30), "a.jsonl, line 1 has more than 100 characters"),
        ("a.csv", "id,text\n1,%s\n" % ("cat " * 30), "a.csv, line 2 has more than 100 characters"),
        (
            "a.csv",
            'id,text\n1,"%s"\n' % ("cat\n" * 30),
            "a.csv, line 2: a field of the record that begins here has mor",
        ),
    ],
)
def test_documents_without_end_are_refused(write, monkeypatch, name, content, where):
    """A line of 268 MB took 4.7 GB, and a quotation mark that is never closed the rest of the file."""
    monkeypatch.setattr(records, "MOST_CHARACTERS", 100)
    monkeypatch.setattr(tables, "MOST_CHARACTERS", 100)
    monkeypatch.setattr(counting, "MOST_CHARACTERS", 100)
    with pytest.raises(InputError, match=where):
        list(read(write(name, content)))
    assert [each.text for each in read(write("b.txt", "x" * 100 + "\ny\n" + "z" * 100))] == ["x" * 100, "y", "z" * 100]
    with pytest.raises(InputError, match="document 1 has 101 characters, and a document should have at most 100;"):
        tl.Corpus.from_texts(["cat", "c" * 101], language="en", min_df=1)


def test_rows_before_a_faulty_record_are_read_first(tmp_path: Path) -> None:
    path = tmp_path / "many.csv"
    rows = [["text", "label"], *([f'line {row}\n"quoted" {row % 7}', str(row % 3)] for row in range(450))]
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
        file.write('"open,1\n')  # a quotation mark that is never closed
    documents = read(path)
    assert [[document.text, document.label] for _, document in zip(rows[1:], documents, strict=False)] == rows[1:]
    with pytest.raises(InputError, match=r"line 902: a quotation mark opens"):
        next(documents)
