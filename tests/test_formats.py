"""Files as people have them: sheets, quotation marks, nested JSON, Word, PDF, e-mails, archives, patterns, pieces."""

from __future__ import annotations

import csv
import gc
import gzip
import io
import json
import mailbox
import random
import warnings
import zipfile
import zlib
from email.message import EmailMessage
from pathlib import Path

import numpy as np
import pytest

import topicloom as tl
from command_line import MONEY, PETS, call, refused, shown, table
from topicloom.errors import InputError, SettingError
from topicloom.text import Document, read, records
from topicloom.text.pieces import pieces_of, runs_of_tokens, sentences
from topicloom.topics.document_topics import sum_by_parent, sums_by_parent


def texts(*args, **options):
    return [document.text for document in read(*args, **options)]


# Workbooks


def test_a_workbook_is_read_as_it_is_shown(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    for row in (["text", "postcode", "price"], ["a", 1067, 1067], ["b", 80331, 7]):
        sheet.append(row)
    sheet["B2"].number_format = sheet["B3"].number_format = "00000"
    book.save(tmp_path / "codes.xlsx")
    found = list(read(tmp_path / "codes.xlsx", covariates=["postcode", "price"]))
    assert [each.covariates for each in found] == [
        {"postcode": "01067", "price": "1067"},
        {"postcode": "80331", "price": "7"},
    ]
    sheet.insert_rows(1)
    sheet["A1"] = "Report 2024"
    sheet.merge_cells("A1:C1")
    book.save(tmp_path / "titled.xlsx")
    says = "its columns are Report 2024; row 2 has them, so remove what is above this row"
    with pytest.raises(InputError, match=says):
        texts(tmp_path / "titled.xlsx", label="price")


def test_a_worksheet_is_chosen_by_name_or_number(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("openpyxl")
    path = tmp_path / "two.xlsx"
    with pandas.ExcelWriter(path) as writer:
        pandas.DataFrame({"note": ["n"]}).to_excel(writer, sheet_name="Notes", index=False)
        pandas.DataFrame({"review": ["a", "b"], "stars": [1, 2]}).to_excel(writer, sheet_name="May", index=False)
        pandas.DataFrame({"review": ["c"]}).to_excel(writer, sheet_name="3", index=False)
    for sheet in ("May", "2", 2):
        found = list(read(path, sheet=sheet, text="review", covariates=["stars"]))
        assert [(each.text, each.covariates["stars"]) for each in found] == [("a", "1"), ("b", "2")]
    assert texts(path, sheet="3", text="review") == ["c"]
    for options, says in (
        (
            {"text": "review"},
            r"'Notes' of .*two.xlsx has no column 'review'; its columns are note; 'May', '3' has it: ",
        ),
        ({"text": "review", "label": "stars"}, "its columns are note; 'May' has them: give `sheet='May'`"),
        ({"text": "body"}, "the other worksheets are 'May', '3'; name the column by `text`, or give `sheet`"),
        ({"sheet": "June"}, "has no worksheet 'June'; its worksheets are 'Notes', 'May', '3'; check `sheet`"),
        ({"sheet": "4"}, "has no worksheet '4'"),
    ):
        with pytest.raises(InputError, match=says):
            texts(path, **options)
    (tmp_path / "titled.csv").write_text("Report 2024\n\nid,text\n1,a\n")
    with pytest.raises(InputError, match="are Report 2024; line 3 has it, so remove what is above this line"):
        texts(tmp_path / "titled.csv")
    (tmp_path / "a.csv").write_text("text\na\n")
    with pytest.raises(InputError, match=r"`sheet='May'` is for .xlsx files; leave it out for .*a.csv"):
        texts(tmp_path / "a.csv", sheet="May")
    (tmp_path / "a.txt").write_text("a\n")
    with pytest.raises(InputError, match=r"`text='body'` is for .csv, .* and .eml files; leave it out for .*a.txt"):
        texts(tmp_path / "a.txt", text="body")


# Quotation marks and escapes of CSV

ROWS = [
    ('He said "hi", and left', "x;y", "it's 5\" wide"),
    ("line one\nline two", "'tis", "C:\\dir\\"),
    ("a, b; c", "", 'back\\slash "quoted"'),
    ("plain", "don't", "5' 11\""),
]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"quoting": csv.QUOTE_ALL},
        {"quotechar": "'"},
        {"quotechar": "'", "quoting": csv.QUOTE_ALL},
        {"doublequote": False, "escapechar": "\\"},
        {"doublequote": False, "escapechar": "\\", "quoting": csv.QUOTE_ALL},
        {"quotechar": "'", "doublequote": False, "escapechar": "\\", "quoting": csv.QUOTE_ALL},
    ],
)
def test_exports_of_pandas_are_read_when_described(tmp_path, options, delimiter):
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "a.csv"
    pandas.DataFrame(ROWS, columns=["text", "label", "more"]).to_csv(path, index=False, sep=delimiter, **options)
    given = {name: value for name, value in options.items() if name in ("quotechar", "escapechar")}
    given = {"quotechar": '"', "escapechar": "none"} | given
    found = list(read(path, covariates=["more"], delimiter=delimiter, **given))
    assert [(each.text, each.label, each.covariates["more"]) for each in found] == ROWS
    recognised = list(read(path, covariates=["more"]))
    assert recognised == found


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("'text';'label'\n'a; b';'x'\n'it''s';'y'\n", [("a; b", "x"), ("it's", "y")]),
        ("text;label\n'a; b';'x'\n'c';'y'\n", [("a; b", "x"), ("c", "y")]),
        ("text;label\n'a';'x'\n'c';'y'\n", [("a", "x"), ("c", "y")]),
        ("text;label\n'tis so;x\nc;y\n", [("'tis so", "x"), ("c", "y")]),
        ("text,label\n'a' and 'b',x\n'c',y\n", [("'a' and 'b'", "x"), ("'c'", "y")]),
        ('text,label\n"say \\"hi, you\\"",x\nb,y\n', [('say "hi, you"', "x"), ("b", "y")]),
        ('text,label\n"C:\\dir\\",x\nb,y\n', [("C:\\dir\\", "x"), ("b", "y")]),
        ("text,label\nhi\\, you,x\nb,y\n", [("hi, you", "x"), ("b", "y")]),
        ('text,label\n5\\" wide,x\nb,y\n', [('5" wide', "x"), ("b", "y")]),
    ],
)
def test_quotation_marks_and_escapes_are_recognised_where_certain(tmp_path, content, expected):
    (tmp_path / "a.csv").write_text(content)
    assert [(each.text, each.label) for each in read(tmp_path / "a.csv")] == expected


def test_a_record_is_read_as_it_was_written_or_refused(tmp_path):
    """Tables of hostile cells by the writer of Python, read without being told how they were written."""
    draw = random.Random(5)
    alphabet = ["a", "b c", ",", ";", "\t", '"', "'", "\\", "\n", '\\"', "''", '""', "é"]
    path = tmp_path / "a.csv"
    n_read = 0
    for _ in range(400):
        rows = [["".join(draw.choices(alphabet, k=draw.randint(0, 5))) for _ in range(3)] for _ in range(4)]
        rows[2:2] = [["w", "x", "y"]] * draw.choice([0, 0, 1100])  # beyond the lines by which marks are recognised
        style = draw.choice([{}, {"quotechar": "'"}, {"doublequote": False, "escapechar": "\\"}])
        file = io.StringIO(newline="")
        writer = csv.writer(file, delimiter=draw.choice(",;"), quoting=draw.choice([0, 1]), **style)
        writer.writerows([["text", "label", "more"], *rows])
        path.write_bytes(file.getvalue().encode())
        try:
            found = [[each.text, each.label, each.covariates["more"]] for each in read(path, covariates=["more"])]
        except InputError:
            continue
        n_read += 1
        if (
            style.get("quotechar") == "'" or "escapechar" in style
        ):  # cells may keep their marks, but not lose their ends
            assert len(found) == len(rows)
            for cells, row in zip(found, rows, strict=True):
                for cell, value in zip(cells, row, strict=True):
                    plain = cell.replace("\\", "").replace("'", "").replace('"', "")
                    assert plain == value.replace("\\", "").replace("'", "").replace('"', "")
        else:
            assert found == rows
    assert n_read > 250


@pytest.mark.parametrize(
    ("late", "says"),
    [
        ('"say \\"hi, you\\"",x\n', r"line 1202.*: text follows a closing quotation mark; give `escapechar='\\'`"),
        ("hi\\, you,x\n", r"line 1202 has 3 fields, .* or give `escapechar='\\'` if backslashes precede delimiters"),
        ("'hi, you',x\n", 'line 1202 has 3 fields, .* or give `quotechar="\'"` if such marks enclose fields'),
        ('a"\\,",\\"\n', r"line 1202 can be read in two ways, because a backslash .*; give `escapechar='\\'` if"),
    ],
)
def test_marks_beyond_the_sample_are_refused_with_advice(tmp_path, late, says):
    (tmp_path / "a.csv").write_text("text,label\n" + "b,y\n" * 1200 + late)
    with pytest.raises(InputError, match=says):
        texts(tmp_path / "a.csv")


def test_marks_that_cannot_be(tmp_path):
    (tmp_path / "a.csv").write_text("text\na\n")
    for options, says in (
        ({"quotechar": "''"}, "`quotechar=\"''\"` must be one character"),
        ({"escapechar": "slash"}, "`escapechar='slash'` must be one character, such as .*, or none"),
        ({"quotechar": "'", "quoting": False}, "`quotechar` and `quoting=False` exclude each other"),
    ):
        with pytest.raises(InputError, match=says):
            texts(tmp_path / "a.csv", **options)


def test_parquet_strings_without_their_mark_are_decoded(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {"text": ["the cat"], "id": ["中-7"], "label": pyarrow.array(["中".encode()], pyarrow.binary())}
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    assert next(read(tmp_path / "a.parquet"))[:3] == ("the cat", "中-7", "中")
    columns["label"] = pyarrow.array([b"\xe4\xff"], pyarrow.binary())  # not UTF-8
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"the label of document 0 .* a lone surrogate"):
        list(read(tmp_path / "a.parquet"))


# JSON

NESTED = [
    {"id": 1, "data": {"body": {"text": "a"}, "tags": ["x", "y"]}, "data.when": "2020", "user": {"age": 5}},
    {"id": 2, "data": {"body": {"text": "b"}, "tags": ["z"]}, "user": {"age": 7}},
]


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "lines.json", "object.json", "a.parquet"])
def test_fields_inside_of_fields(tmp_path, name):
    lines = "\n".join(map(json.dumps, NESTED)) + "\n"
    contents = {"a.json": json.dumps(NESTED, indent=1), "object.json": json.dumps({"n": 2, "rows": NESTED})}
    path = tmp_path / name
    if name == "a.parquet":
        pandas = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        pandas.DataFrame(NESTED).to_parquet(path)
    else:
        path.write_text(contents.get(name, lines))
    options = {"text": "data.body.text", "label": "data.tags.0", "timestamp": "data.when", "covariates": ["user.age"]}
    found = list(read(path, **options))
    assert [each[:4] for each in found] == [("a", "1", "x", "2020"), ("b", "2", "z", None)]
    assert [each.covariates for each in found] == [{"user.age": "5"}, {"user.age": "7"}]
    if name != "a.parquet":
        with pytest.raises(
            InputError, match=r"has no column 'data.body.txt'; its columns are id, data.body.text, data"
        ):
            texts(path, text="data.body.txt")
        with pytest.raises(InputError, match=r"has 'user.ag', the column of `label`; did you mean user.age"):
            texts(path, text="data.body.text", label="user.ag")


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "object.json", "a.csv"])
def test_classes_and_ids_are_as_the_file_writes_them(tmp_path, name):
    written = ["true", "1.10", "2.0", "1e3", "7", "12E3"]
    rows = [f'{{"text": "a", "label": {each}, "id": {each}, "x": {each}}}' for each in written]
    lines = ["text,label,id,x", *(f"a,{each},{each},{each}" for each in written)]
    records = ", ".join(rows)
    contents = {"a.json": f"[{records}]", "a.jsonl": "\n".join(rows), "object.json": f'{{"rows": [{records}]}}'}
    (tmp_path / name).write_text(contents.get(name, "\n".join(lines)) + "\n")
    found = list(read(tmp_path / name, label="label", id="id"))
    assert [each.label for each in found] == [each.id for each in found] == written
    if name != "a.csv":  # a number of JSON stays a number, and is no code
        numbers = [each.covariates["x"] for each in read(tmp_path / name, covariates=["x"])]
        assert list(map(float, numbers[1:])) == [1.1, 2, 1000, 7, 12000]
        assert "E" not in numbers[-1]


def test_a_key_with_dots_comes_before_a_path():
    assert records.value_at({"a.b": 1, "a": {"b": 2}}, "a.b") == 1
    assert records.value_at({"a": {"b.c": 1, "b": {"c": 2}}}, "a.b.c") == 1
    assert records.value_at({"a": [{"b": None}]}, "a.0.b") is None
    for path in ("a.1", "a.-1", "a.0.c", "b", "a.x", "a.0.b.c", "."):
        assert records.value_at({"a": [{"b": "t"}]}, path) is records._MISSING


def test_lists_of_records_are_read_in_parts(tmp_path, monkeypatch):
    draw = random.Random(3)
    path = tmp_path / "a.json"
    for part in (1, 3, 7, 1 << 16):
        monkeypatch.setattr(records, "_PART", part)
        for _ in range(8):
            rows = [{"text": 'x"]},' * draw.randint(0, 9) + "é\\", "n": [1.5e3, True, None]} for _ in range(9)]
            path.write_text(json.dumps(rows, indent=draw.choice([None, 2]), ensure_ascii=draw.random() < 0.5))
            assert texts(path) == [row["text"] for row in rows]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('[{"text": "a"}', "the list has no end"),
        ('[{"text": "a"},', "the list has no end"),
        ('[{"text": "a"} {"text": "b"}]', "record 2: there is no comma before it"),
        ('[{"text": "a"}] x', "more follows after the list"),
        ('[{"text": "a"}, 5]', "record 2: not a JSON object; each entry of the list must be one"),
        ('[{"text": "a" x}]', "record 1, column 14: not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": [{"text": "x"}], "b": [{"text": "y"}]}', r"several lists of records \('a', 'b'\)"),
        ("5", "not a list of JSON objects"),
        ("[]", "contains no documents"),
        ("", "contains no documents"),
        ("nothing", "column 1: not JSON"),
    ],
)
def test_json_that_cannot_be_read(tmp_path, content, says):
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(InputError, match=says):
        texts(tmp_path / "a.json")


def test_an_object_with_a_text_is_a_document(tmp_path):
    (tmp_path / "a.json").write_text('{"text": "a cat", "authors": [{"name": "x"}], "tags": [{"name": "y"}]}')
    assert texts(tmp_path / "a.json") == ["a cat"]
    assert texts(tmp_path / "a.json", text="authors.0.name") == ["x"]
    (tmp_path / "a.json").write_text('{"text": "a title", "data": [{"text": "a cat"}, {}]}')
    assert texts(tmp_path / "a.json") == ["a cat", ""]


# Word files, PDF files, e-mails


def test_word_files(tmp_path):
    docx = pytest.importorskip("docx")
    document = docx.Document()
    document.add_heading("Title", 1)
    document.add_paragraph("First ").add_run("bold").bold = True
    cells = document.add_table(1, 2).rows[0].cells
    cells[0].text, cells[1].text = "left", "右"
    document.add_paragraph("one\ttab\nline")
    document.save(tmp_path / "a.docx")
    found = next(read(tmp_path / "a.docx"))
    assert (found.text, found.id) == ("Title\nFirst bold\nleft\n右\none\ttab\nline", "a.docx")
    whole = (tmp_path / "a.docx").read_bytes()
    for damaged in (b"", b"no archive", whole[:-900], whole.replace(b"word/document.xml", b"word/documens.xml")):
        (tmp_path / "b.docx").write_bytes(damaged)
        with pytest.raises(InputError, match=r"b.docx cannot be read as docx: .*; save it again as .docx or .txt$"):
            texts(tmp_path / "b.docx")


def test_moved_text_of_word_files_is_read_once(tmp_path):
    docx = pytest.importorskip("docx")
    document = docx.Document()
    for name, words in (("moveFrom", "cat"), ("moveTo", "cat"), ("ins", "dog"), ("del", "bird")):
        paragraph = document.add_paragraph(f"{name} ")
        moved = docx.oxml.OxmlElement(f"w:{name}")
        paragraph.add_run(words)
        moved.append(paragraph.runs[-1]._r)
        paragraph._p.append(moved)
        if name == "del":
            moved[0][0].tag = docx.oxml.ns.qn("w:delText")
    document.save(tmp_path / "a.docx")
    assert texts(tmp_path / "a.docx") == ["moveFrom \nmoveTo cat\nins dog\ndel "]


def pdf_of(*pages: str) -> bytes:
    """A PDF file of pages, each with lines of text, written by hand."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    objects.append("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    kids = []
    for page in pages:
        lines = " T* ".join(f"({line}) Tj" for line in page.split("\n") if line)
        stream = f"BT /F1 12 Tf 14 TL 50 700 Td {lines} ET"
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
        kids.append(f"{len(objects) + 1} 0 R")
        font = "<< /Font << /F1 3 0 R >> >>"
        objects.append(f"<< /Type /Page /Parent 2 0 R /Contents {len(objects)} 0 R /Resources {font} >>")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} /MediaBox [0 0 600 800] >>"
    out, places = "%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{each}\nendobj\n"
    table_of = "".join(f"{place:010d} 00000 n \n" for place in places)
    trailer = f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(out)}\n%%EOF"
    return f"{out}xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table_of}{trailer}".encode()


def test_pdf_files(tmp_path, caplog):
    pypdf = pytest.importorskip("pypdf")
    (tmp_path / "a.pdf").write_bytes(pdf_of("An exam-\nple of text", "Page two"))
    found = next(read(tmp_path / "a.pdf"))
    assert (" ".join(found.text.split()), found.id) == ("An example of text Page two", "a.pdf")
    (tmp_path / "scan.pdf").write_bytes(pdf_of(""))
    with pytest.raises(InputError, match=r"scan.pdf has no text, because its pages are pictures; recognise their text"):
        texts(tmp_path / "scan.pdf")
    assert len(texts(tmp_path)) == 2
    assert caplog.messages[-1].startswith(f"1 PDF file without text, such as {tmp_path / 'scan.pdf'}")
    for password, opens in (("secret", False), ("", True)):
        writer = pypdf.PdfWriter(clone_from=tmp_path / "a.pdf")
        writer.encrypt(password, owner_password="owner", algorithm="RC4-128")
        writer.write(tmp_path / "b.pdf")
        if opens:
            assert "Page two" in texts(tmp_path / "b.pdf")[0]
        else:
            with pytest.raises(InputError, match=r"b.pdf is encrypted; save it without a password"):
                texts(tmp_path / "b.pdf")
    for damaged in (b"", b"%PDF-1.4 nothing", pdf_of("a").replace(b"/Kids [5 0 R]", b"/Kids 7      ")):
        (tmp_path / "c.pdf").write_bytes(damaged)
        with pytest.raises(InputError, match=r"c.pdf (cannot be read as pdf: .*; save it again as|has no text)"):
            texts(tmp_path / "c.pdf")


def mail(subject: str, plain: str | None = None, html: str | None = None, **options: str) -> EmailMessage:
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = subject, "Ann <ann@x.org>", "bob@x.org"
    message["Date"] = "Fri, 02 Feb 2024 10:30:00 +0100"
    if plain is not None:
        message.set_content(plain, **options)
    if html is not None:
        if plain is None:
            message.set_content(html, subtype="html", **options)
        else:
            message.add_alternative(html, subtype="html", **options)
    return message


def test_an_email_has_text_and_fields(tmp_path):
    both = mail("Grüße 你好", "Tea at 5?\n", "<p>Not this</p>")
    both.add_attachment(b"secret words", maintype="text", subtype="plain", filename="a.txt")
    (tmp_path / "a.eml").write_bytes(bytes(both))
    found = next(read(tmp_path / "a.eml", label="subject", covariates=["from", "to", "folder"]))
    assert found[:4] == ("Tea at 5?\n", "a.eml", "Grüße 你好", "2024-02-02T10:30:00+01:00")
    assert found.covariates == {"from": "Ann <ann@x.org>", "to": "bob@x.org", "folder": tmp_path.name}
    assert texts(tmp_path / "a.eml", text="subject") == ["Grüße 你好"]
    html = mail("h", html="<style>p {}</style><p>Tea &amp; <b>cake</b></p><script>x</script><p>at 5", charset="utf-8")
    (tmp_path / "b.eml").write_bytes(bytes(html))
    assert texts(tmp_path / "b.eml") == ["Tea & cake\nat 5"]
    raw = b"Subject: =?gb2312?b?xOO6ww==?=\nContent-Type: text/plain; charset=gb2312\n\n" + "骉㐂好\n".encode("gb18030")
    (tmp_path / "c.eml").write_bytes(raw)
    assert next(read(tmp_path / "c.eml", label="subject"))[:3] == ("骉㐂好\n", "c.eml", "你好")
    for content in (b"", b"\xff\xfe" * 50, b"no headers"):
        (tmp_path / "d.eml").write_bytes(content)
        try:
            next(read(tmp_path / "d.eml"))
        except InputError as error:
            assert "d.eml" in str(error)  # noqa: PT017


@pytest.mark.parametrize("charset", ["undefined", "idna", '"u\0f"', "no-such", "utf-8"])
def test_emails_with_odd_encodings_are_read(tmp_path, charset):
    (tmp_path / "a.eml").write_bytes(
        f"Subject: x\nContent-Type: text/plain; charset={charset}\n\ncaf".encode() + b"\xe9\n"
    )
    assert texts(tmp_path / "a.eml") == ["caf\ufffd\n"]


def test_emails_in_another_encoding_are_not_read_unsaid(tmp_path, caplog):
    whole = "Subject: 股市上涨\nFrom: 张三 <a@x.cn>\n\n今天天气很好\n".encode("gbk")
    path = tmp_path / "a.eml"
    path.write_bytes(whole)
    assert next(read(path, label="subject", encoding="gb18030")).text == "今天天气很好\n"
    assert next(read(path, label="subject", encoding="gb18030")).label == "股市上涨"
    assert texts(path, errors="replace") == ["今天天气很好\n".encode("gbk").decode("utf-8", "replace")]
    assert not caplog.messages
    assert "\ufffd" in texts(path)[0]
    (tmp_path / "a.mbox").write_bytes(b"".join(b"From a@x.cn Fri Feb 02 10:30:00 2024\n" + whole + b"\n" for _ in "12"))
    assert len(texts(tmp_path / "a.mbox")) == 2
    says = "bytes that are not in the named encoding, or in UTF-8 where none is named; they become \ufffd"
    assert [message.split("; give")[0] for message in caplog.messages] == [
        f"{path} has {says}", f"2 e-mails of {tmp_path / 'a.mbox'} have {says}"
    ]  # fmt: skip


def test_a_blank_plain_part_gives_way_to_html(tmp_path):
    (tmp_path / "a.eml").write_bytes(bytes(mail("x", "\n \n", "<p>Tea at 5</p>")))
    assert texts(tmp_path / "a.eml") == ["Tea at 5"]
    (tmp_path / "a.eml").write_bytes(bytes(mail("x", "\n", "<p></p>")))
    assert texts(tmp_path / "a.eml") == [""]


def test_emails_with_a_damaged_type_are_read(tmp_path):
    (tmp_path / "a.eml").write_bytes(b"Subject: x\nContent-Type: text/=?=0name@;attachment*0*\n\nThe cat\n")
    assert texts(tmp_path / "a.eml") == ["The cat\n"]


def test_a_mailbox_of_another_writer(tmp_path):
    box = mailbox.mbox(tmp_path / "in.mbox")
    bodies = [f"Mail {n}\n\nFrom here on\nFrom a to b 10:30\n" for n in range(30)]
    for n, body in enumerate(bodies):
        box.add(mail(f"s{n}", body))
    box.flush()
    box.close()
    found = list(read(tmp_path / "in.mbox", label="subject", covariates=["from"]))
    assert [each.text.strip() for each in found] == [body.strip() for body in bodies]
    assert [(each.id, each.label) for each in found] == [(f"in#{n + 1}", f"s{n}") for n in range(30)]
    (tmp_path / "no.mbox").write_text("Dear all\n")
    with pytest.raises(InputError, match=r'no.mbox is no mbox: its first line does not begin with "From "'):
        texts(tmp_path / "no.mbox")


# Archives, patterns and several files


def test_an_archive_of_texts(tmp_path, caplog):
    path = tmp_path / "news.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("sport/1.txt", "goal\nline")
        archive.writestr("politik/ä.markdown", "vote")
        archive.writestr("__MACOSX/sport/._1.txt", b"\x00\x05")
        archive.writestr("a.csv", "text\nin a table\n")
    with caplog.at_level("INFO", "topicloom"):
        found = list(read(path, label="folder"))
    assert "1 .txt and 1 .md files are read" in caplog.text
    assert [each[:3] for each in found] == [
        ("vote", "politik/ä.markdown", "politik"),
        ("goal\nline", "sport/1.txt", "sport"),
    ]
    assert "news.zip contains 1 table or compressed file, such as a.csv; only" in caplog.text
    assert texts(path, format="csv") == ["in a table"]
    with pytest.raises(InputError, match=r"news.zip contains no .pdf files; check `format`"):
        read(path, format="pdf")
    with zipfile.ZipFile(tmp_path / "one.zip", "w") as archive:
        archive.writestr("archive/data.csv", "text,id\na,1\n")
    assert next(read(tmp_path / "one.zip"))[:2] == ("a", "1")
    whole = path.read_bytes()
    for damaged in (whole[:-30], b"", b"PK"):
        (tmp_path / "b.zip").write_bytes(damaged)
        with pytest.raises(InputError, match=r"b.zip is not a complete .zip file; copy it again"):
            read(tmp_path / "b.zip")
    broken = bytearray(whole)
    broken[whole.index(b"politik/") + 14 : whole.index(b"politik/") + 18] = b"\xff" * 4
    (tmp_path / "c.zip").write_bytes(broken)
    with pytest.raises(InputError, match=r"in .*c.zip (is damaged|cannot be unpacked|looks like)"):
        texts(tmp_path / "c.zip")


def test_damaged_emails_in_archives_are_refused(tmp_path):
    whole = bytes(mail("s", "".join(f"line {n * n}\n" for n in range(500))))
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.eml", whole)
    broken = bytearray((tmp_path / "a.zip").read_bytes())
    broken[60:80] = b"\xff" * 20
    (tmp_path / "a.zip").write_bytes(broken)
    with pytest.raises(InputError, match=r"a.eml in .*a.zip is damaged; make it again"):
        texts(tmp_path / "a.zip")
    (tmp_path / "a.eml.gz").write_bytes(gzip.compress(whole)[:-30])
    with pytest.raises(InputError, match=r"a.eml.gz is not a complete gzip file; make it again"):
        texts(tmp_path / "a.eml.gz")


def test_compressed_files_are_closed(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"text\na cat\n"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert texts(tmp_path / "a.csv.gz") == ["a cat"]
        gc.collect()
    assert not caught


def test_archives_that_would_fill_a_disk(tmp_path):
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", b"")
        packed = zlib.compressobj(9, wbits=-15)
        data = b"".join(packed.compress(bytes(1 << 20)) for _ in range(4)) + packed.flush()
    declared = 1 << 31
    info = zipfile.ZipInfo("b.txt")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(info, data)
        archive.infolist()[-1].file_size = declared
        archive.infolist()[-1].compress_type = zipfile.ZIP_DEFLATED
    with pytest.raises(InputError, match=r"bomb.zip would unpack to 2,147,483,648 bytes, more than 100 times its own"):
        read(path)
    docx = tmp_path / "bomb.docx"
    with zipfile.ZipFile(docx, "w") as archive:
        archive.writestr("word/document.xml", data)
        archive.infolist()[-1].file_size = declared
        archive.infolist()[-1].compress_type = zipfile.ZIP_DEFLATED
    pytest.importorskip("docx")
    with pytest.raises(InputError, match=r"bomb.docx has a part of 2,147,483,648 bytes"):
        texts(docx)


def test_patterns_and_several_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder, name, content in (
        ("may", "a.csv", "text,stars\nx,1\n"),
        ("may", "b.csv", "text;stars\ny;2\n"),
        ("june", "a.jsonl", '{"text": "z", "stars": 3, "file": "own"}\n'),
    ):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / name).write_text(content)
    found = list(read("*/*.*", label="folder", covariates=["file", "stars"]))
    assert [(each.text, each.label, each.covariates) for each in found] == [
        ("z", "june", {"file": "own", "stars": "3"}),
        ("x", "may", {"file": "may/a.csv", "stars": "1"}),
        ("y", "may", {"file": "may/b.csv", "stars": "2"}),
    ]
    assert texts(["may/b.csv", tmp_path / "june" / "a.jsonl"]) == ["y", "z"]
    (tmp_path / "a[1].txt").write_text("brackets")
    assert texts("a[1].txt") == ["brackets"]
    (tmp_path / "note.txt").write_text("n\n")
    assert [each.covariates for each in read("note.txt", covariates=["folder"])] == [{"folder": tmp_path.name}]
    for source, says in (
        ("*/*.pdf", r"the pattern '\*/\*.pdf' matches no file; check it"),
        (["note.txt", "-"], r'standard input \("-"\) cannot be read together with files'),
        ([], "no file was given"),
        (["note.txt", "nowhere.txt"], "nowhere.txt does not exist; check the path"),
        ("*/*", "a.jsonl, .*"),
    ):
        if source == "*/*":
            assert len(texts(source)) == 3
            continue
        with pytest.raises(InputError, match=says):
            texts(source)


# Pieces of texts


def test_pieces_know_their_parent(tmp_path):
    (tmp_path / "a.txt").write_text("One\nline.\n\nTwo. Three!\n")
    (tmp_path / "b.csv").write_text('id,text,label\nx,"P. One. Q two.",k\ny,,k\n')
    assert [each[:2] for each in read(tmp_path / "a.txt", split_texts="paragraphs")] == [
        ("One\nline.", "a.txt#1"),
        ("Two. Three!", "a.txt#2"),
    ]
    found = list(read(tmp_path / "b.csv", split_texts="sentences"))
    assert [(each.text, each.id, each.label, each.covariates["parent"]) for each in found] == [
        ("P. One.", "x#1", "k", "x"),
        ("Q two.", "x#2", "k", "x"),
        ("", "y#1", "k", "y"),
    ]
    (tmp_path / "c.csv").write_text("text,parent\na,b\n")
    with pytest.raises(InputError, match="`split_texts` makes a covariate 'parent', and the documents have one"):
        list(read(tmp_path / "c.csv", covariates=["parent"], split_texts="sentences"))
    for way in ("chapters", "tokens", "tokens:0", "tokens:x", "tokens:-1", 5):
        with pytest.raises(SettingError, match="is not known; give paragraphs, sentences, or a number of tokens"):
            read(tmp_path / "a.txt", split_texts=way)


def test_sentences_of_several_languages():
    assert sentences("Dr. Who met Mr. Y at 5 p.m. today. He ran (fast!) home... Then? “Yes?” she said. No") == [
        "Dr. Who met Mr. Y at 5 p.m. today.",
        "He ran (fast!) home...",
        "Then?",
        "“Yes?” she said.",
        "No",
    ]
    assert sentences("Am 3. Oktober, z. B. um 5 Uhr. Dann nicht.") == ["Am 3. Oktober, z. B. um 5 Uhr.", "Dann nicht."]
    assert sentences("他说：“走吧！”然后走了。真的吗？真的……\n\n第二段") == [
        "他说：“走吧！”",
        "然后走了。",
        "真的吗？",
        "真的……",
        "第二段",
    ]
    assert sentences("") == []


def test_no_character_of_a_text_is_lost_in_pieces():
    draw = random.Random(1)
    words = ["word", "it's", "Mr.", "end.", "end!", "话。", "说：", "“好”", "3.", "\n\n", "\n", "z. B.", "…"]
    for _ in range(300):
        text = " ".join(draw.choices(words, k=draw.randint(0, 60)))
        for pieces in (sentences(text), runs_of_tokens(text, draw.randint(1, 20))):
            assert "".join("".join(pieces).split()) == "".join(text.split())
    sizes = [len(piece.split()) for piece in runs_of_tokens("ab cd ef gh. Ij kl mn op. " * 50, 30)]
    assert sum(sizes) == 400
    assert set(sizes[:-1]) <= {28, 32}


def test_a_wrong_column_names_the_columns_despite_odd_marks(tmp_path):
    (tmp_path / "german.csv").write_text("text;preis\n" + "'der Hund, die ''Katze'';';2,50\n" * 30)
    (tmp_path / "escaped.csv").write_text("text,note\n" + "a dog\\, a cat,none\n" * 30)
    for name, columns in (("german.csv", "text, preis"), ("escaped.csv", "text, note")):
        with pytest.raises(InputError, match=f"has no column 'txt'; its columns are {columns}; name"):
            texts(tmp_path / name, text="txt")


def test_long_lines_and_wrapped_lines_are_mentioned(tmp_path, caplog):
    (tmp_path / "a.txt").write_text("word " * 3000)
    assert len(texts(tmp_path / "a.txt")) == 1
    assert 'a.txt has 1 line of 15,000 characters, and a line is a document; `split_texts="tokens:300"`' in caplog.text
    caplog.clear()
    sentence = "The captain walked along the deck and looked at the sea. He said that a storm would come soon. "
    text = sentence * 60
    lines = [text[start : start + 70] for start in range(0, len(text), 70)]
    (tmp_path / "b.txt").write_text("\n".join(lines))
    texts(tmp_path / "b.txt")
    assert "b.txt has lines that end inside of sentences" in caplog.text
    caplog.clear()
    for ordinary in (
        [sentence] * 100,
        [line.lower().replace(".", "") for line in lines],
        [f"Title {n}" for n in range(99)],
    ):
        (tmp_path / "c.txt").write_text("\n".join(ordinary))
        texts(tmp_path / "c.txt")
    assert not caplog.messages


def test_shares_of_parents_are_means_weighted_by_tokens():
    draw = np.random.default_rng(0)
    counts = draw.integers(0, 4, (40, 6))
    counts[5:7] = 0
    parents = [f"p{row // 7}" for row in range(40)]
    corpus = tl.Corpus.from_counts(counts, list("abcdef"), labels=parents, covariates={"parent": parents})
    model = tl.LDA(3, random_state=0).fit(corpus)
    found = model.infer(corpus)
    whole = sum_by_parent(found, counts.sum(axis=1))
    assert list(whole.ids) == list(whole.labels) == [f"p{n}" for n in range(6)]
    for number, theta in enumerate(whole.theta):
        rows = [row for row in range(40) if parents[row] == f"p{number}"]
        expected = sum(counts[row].sum() * found.theta[row] for row in rows) / sum(counts[row].sum() for row in rows)
        np.testing.assert_allclose(theta, expected, rtol=1e-5)
    assert "parent" not in whole.fields.covariates
    with pytest.raises(InputError, match="`n_tokens` has 3 numbers, and there are 40 documents"):
        sum_by_parent(found, [1, 2, 3])
    with pytest.raises(InputError, match="no covariate 'parent', which names the text"):
        sum_by_parent(model.infer(counts), counts.sum(axis=1))


def test_texts_with_the_same_id_stay_apart():
    model = tl.LDA(2, epochs=2, random_state=0).fit(["cat dog", "rain sun"] * 10)
    documents = [Document("Cat. Dog dog.", "a"), Document("Rain. Sun. Rain.", "a"), Document("", "a")]
    pieces = list(pieces_of(documents, sentences))
    parents = {"parent": [piece.covariates["parent"] for piece in pieces]}
    options = {"language": "en", "min_df": 1, "max_df": 1.0, "stop_words": "none"}
    corpus = tl.Corpus.from_texts(
        [piece.text for piece in pieces], ids=[piece.id for piece in pieces], covariates=parents, **options
    )
    found, n_tokens = model.infer(corpus), corpus.counts.sum(axis=1)
    expected = [np.average(found.theta[rows], axis=0, weights=n_tokens[rows]) for rows in (slice(2), slice(2, 5))]
    for size in (1, 2, 3, 6):
        parts = list(sums_by_parent((found[at : at + size], n_tokens[at : at + size]) for at in range(0, 6, size)))
        assert [id for part in parts for id in part.ids] == ["a", "a", "a"]
        np.testing.assert_allclose(np.concatenate([part.theta for part in parts])[:2], expected, rtol=1e-5)


def test_parents_may_continue_in_the_next_part():
    draw = np.random.default_rng(1)
    counts = draw.integers(0, 3, (60, 5))
    counts[20:33] = counts[41] = 0
    parents = [f"p{number}" for number in np.sort(draw.integers(0, 9, 60))]
    corpus = tl.Corpus.from_counts(counts, list("abcde"), covariates={"parent": parents, "n": list(range(60))})
    found = tl.LDA(3, random_state=0).fit(corpus).infer(corpus)
    n_tokens = counts.sum(axis=1)
    whole = sum_by_parent(found, n_tokens)
    for size in (1, 7, 23, 60):
        parts = list(sums_by_parent((found[at : at + size], n_tokens[at : at + size]) for at in range(0, 60, size)))
        assert [each for part in parts for each in part.ids] == list(whole.ids)
        np.testing.assert_allclose(np.concatenate([part.theta for part in parts]), whole.theta, rtol=1e-5)
        assert np.concatenate([part.empty for part in parts]).tolist() == whole.empty.tolist()
        numbers = np.concatenate([part.fields.covariates["n"] for part in parts])
        assert numbers.tolist() == whole.fields.covariates["n"].tolist()
    assert list(sums_by_parent([])) == []


def test_files_inside_that_are_not_read_are_named(tmp_path, caplog):
    (tmp_path / "in").mkdir()
    for name in ("a.txt", "b.zip", "c.doc", "d.png", "e.csv"):
        (tmp_path / "in" / name).write_text("text\na cat\n")
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for path in sorted((tmp_path / "in").iterdir()):
            archive.write(path, path.name)
    for source in (tmp_path / "in", tmp_path / "all.zip"):
        caplog.clear()
        assert len(list(read(source))) == 1
        assert "contains 2 files of formats that are not read, such as b.zip: unpack it" in caplog.text
        caplog.clear()
        assert len(list(read(source, format="csv"))) == 1
        assert "also contains 1 archive, such as b.zip; unpack it" in caplog.text
        with pytest.raises(InputError, match=r"contains no \.tsv files, but 2 files of formats that are not read"):
            list(read(source, format="tsv"))
    for name in ("a.txt", "e.csv"):
        (tmp_path / "in" / name).unlink()
    with pytest.raises(InputError, match=r"\.pdf or \.eml files, but 2 files .*b\.zip: unpack it"):
        list(read(tmp_path / "in"))


def test_line_breaks_in_names_stay_out_of_messages(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("\n0.txt", "a cat")
    path.write_bytes(path.read_bytes().replace(b"PK\3\4", b"PK\3\5"))
    with pytest.raises(InputError, match=r"^'\\n0\.txt' in .* cannot be unpacked .*; unpack it$"):
        list(read(path))


# The command line

FAST = ("--min-df", 1, "--max-df", 1.0, "--quiet", "--model", "gsm", "--topics", 2, "--epochs", 1)


def test_commands_take_several_files_and_divide_texts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        Path(f"{name}.md").write_text(f"{PETS}.\n\n{MONEY}.\n\n" * 12)
    options = ("--split-texts", "paragraphs", "--label", "file")
    assert call("train", "a.md", "b.md", *FAST, *options, "--monitor", "none", "--out", "run").exit_code == 0
    corpus = tl.Corpus.load("run/documents")
    assert (corpus.n_docs, set(corpus.labels), corpus.ids[0]) == (48, {"a.md", "b.md"}, "a.md#1")
    assert corpus.covariates["parent"].values() == corpus.labels
    pieces = table(shown("infer", "run", "a.md", "b.md", *options, "--quiet"))
    whole = table(shown("infer", "run", "a.md", "b.md", *options, "--by-parent", "--quiet"))
    assert [row["id"] for row in whole] == ["a.md", "b.md"]
    mean = np.mean([float(row["topic_0"]) for row in pieces[:24]])
    assert abs(float(whole[0]["topic_0"]) - mean) < 0.02  # pieces of nearly equal length
    stored = table(shown("infer", "run", "run/documents", "--by-parent", "--quiet"))
    assert [(row["id"], row["topic_0"]) for row in stored] == [(row["id"], row["topic_0"]) for row in whole]
    assert call("evaluate", "run", "--quiet", "--measures", "topic_diversity").exit_code == 0
    again = call("train", "--config", "run/train.yaml", "--out", "again", "--quiet")
    assert again.exit_code == 0, again.output
    assert tl.Corpus.load("again/documents").digest == corpus.digest
    assert "a.md#1" in shown("by", "run", "parent", "--quiet") or "a.md" in shown("by", "run", "parent", "--quiet")
    refused("infer", "run", "a.md", "--by-parent", says=["no covariate 'parent'", "--split-texts"])
    refused("prepare", "a.md", "--split-texts", "pages", "--out", "c", says=["--split-texts pages is not known"])
    refused("prepare", "*.csv", "--out", "c", says=["the pattern '*.csv' matches no file"])


def test_covariates_of_standard_input_keep_their_kinds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"'{MONEY if n % 2 else PETS}; {n}';{n % 5};'shop {n % 3}'\n" for n in range(30))
    columns = ("--covariate", "stars", "--covariate", "shop", "--format", "csv")
    result = call("train", "-", *FAST, *columns, "--monitor", "none", "--out", "run", stdin="text;stars;shop\n" + rows)
    assert result.exit_code == 0, result.output
    assert "shop 1" in shown("by", "run", "shop", "--quiet")
    assert shown("by", "run", "stars", "--quiet")
