"""Files of every format, and every way in which they can be wrong."""

from __future__ import annotations

import datetime
import gzip
import io
import json
import sys
from types import SimpleNamespace

import pytest

from topicloom.errors import InputError, MissingExtraError, SettingError
from topicloom.text import Document, read


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


def test_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    day = datetime.date(2020, 1, 2)
    parquet.write_table(pyarrow.table({"text": ["a", "b"], "id": [3, 4], "timestamp": [day, None]}), path)
    assert list(read(path)) == [Document("a", "3", None, "2020-01-02"), Document("b", "4")]
    with pytest.raises(
        InputError, match=r"a.parquet has no column 'body'; there are: text, id, timestamp; name it by text="
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
        with pytest.raises(InputError, match="is not a whole gzip file"):
            texts(write("b.jsonl.gz", broken))


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO("一\n二\n".encode())))
    assert texts("-") == ["一", "二"]
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"\xff")))
    with pytest.raises(InputError, match="standard input: not utf-8"):
        texts("-")


def test_folder(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "1.txt").write_text("one\nline")
    (tmp_path / "a.txt").write_text("")
    (tmp_path / "c.md").write_text("not read")
    assert list(read(tmp_path)) == [Document("", "a.txt"), Document("one\nline", "b/1.txt")]
    (tmp_path / "d").mkdir()
    with pytest.raises(InputError, match=r"d is a folder without .txt files"):
        read(tmp_path / "d")


def test_encodings(write):
    path = write("a.txt", "好\n中文\n".encode("gb18030"))
    assert texts(path, encoding="gb18030") == ["好", "中文"]
    assert "\ufffd" in texts(path, errors="replace")[0]
    assert texts(write("c.txt", "好\n".encode("utf-16")), encoding="utf-16") == ["好"]
    path = write("b.txt", b"good\nfine\n bad \xff\n")
    with pytest.raises(
        InputError,
        match=r'b.txt, line 3, byte 16: not utf-8 \(byte 0xff\); .*"gb18030".*errors="replace" \(--errors replace\)',
    ):
        texts(path)
    with pytest.raises(SettingError, match="encoding='utf-9' is not known"):
        texts(path, encoding="utf-9")
    with pytest.raises(SettingError, match="errors='shout' is not known"):
        texts(path, errors="shout")


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("a.txt", "", {}, "a.txt holds no document"),
        ("a.csv", "", {}, "a.csv holds no document"),
        ("a.csv", "text\n", {}, "a.csv holds no document"),
        ("a.jsonl", "\n", {}, "a.jsonl holds no document"),
        ("a.txt", "x", {"id": "n"}, "plain text has no columns"),
        ("a.docx", "x", {}, "a.docx ends in '.docx', which is no known format; name one of txt, csv.*by format="),
        ("a", "x", {}, "a has no ending, which is no known format"),
        ("a.txt", "x", {"format": "xml"}, "format='xml' is not known; there are: csv"),
        ("a.csv", "body,n\nx,1\n", {}, "a.csv has no column 'text'; there are: body, n; name it by text="),
        ("a.csv", "text,n\nx,1\n", {"label": "m"}, "a.csv has no column 'm'; there are: text, n; name it by label="),
        ("a.csv", "text,n\nx,1\ny\n", {}, "a.csv, line 3: 1 fields, and the header has 2"),
        ("a.csv", "text,n\nx,1,2\n", {}, "a.csv, line 2: 3 fields, and the header has 2"),
        ("a.jsonl", '{"text": "a"}\n{"text": \n', {}, "a.jsonl, line 2, column .*: not JSON .*; correct the line"),
        ("a.jsonl", '["a"]\n', {}, "a.jsonl, line 1: not a JSON object"),
        ("a.jsonl", '{"text": 5}\n', {}, "a.jsonl, line 1: 'text' is 5, not a string"),
        ("a.jsonl", '{"text": 7}\n', {}, "a.jsonl, line 1: 'text' is 7, not a string"),
        ("a.txt", "x\n", {"encoding": "rot13"}, "encoding='rot13' is not known"),
        ("a.jsonl", '{"body": "x"}\n', {}, "a.jsonl, line 1 has no column 'text'; there are: body"),
        ("a.jsonl", "{}\n", {}, "a.jsonl, line 1 has no column 'text'; there are none"),
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
