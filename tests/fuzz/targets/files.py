"""Binary tables, word vectors, lists of edits, configuration files, the command line and saved models."""

from __future__ import annotations

import contextlib
import io
import re
import shutil
import struct
import tempfile
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import topicloom as tl
from hostile import MARKS, PLAIN_WORDS, SEPARATORS, SURROGATES
from topicloom.embeddings import WordVectors, read_document_vectors, read_word_vectors
from topicloom.errors import InputError
from topicloom.files.content import read_yaml_or_toml
from topicloom.text import Document, read
from topicloom.topics.edits import checked_edits, read_edits, write_edits

from ..campaign import Target
from ..case import Case, same
from .corpora import values
from .readers import clean, json_value
from .words import PIECES


def refusal(error: InputError, path: Path | None = None) -> int:
    text = str(error)
    assert text and "\n" not in text and len(text) < 3000, text
    assert path is None or str(path) in text, f"the message does not name the file: {text}"
    return 1


def parquet(case: Case) -> int:
    """Tables of all types, compared row by row with what pyarrow reads."""
    import pyarrow
    from pyarrow import parquet

    n_rows = 1 + case.below(20)
    columns: dict[str, Any] = {"text": [case.text(SEPARATORS) if case.chance(0.9) else None for _ in range(n_rows)]}
    for name in ("id", "label", "timestamp"):
        if case.chance(0.5):
            columns[name] = values(case, n_rows)
    if case.chance(0.1):
        columns["text"] = values(case, n_rows)
    try:
        table = pyarrow.table(columns)
        if case.chance(0.2):
            table = table.set_column(
                0, "text", table["text"].cast(case.pick([pyarrow.large_string(), pyarrow.binary()]))
            )
        path = case.folder / "input.parquet"
        parquet.write_table(table, path, row_group_size=1 + case.below(30))
    except (pyarrow.ArrowException, ValueError, TypeError, OverflowError):
        return 0
    rows = table.to_pylist()
    texts_only = all(isinstance(row["text"], str | None) for row in rows) and not any(
        value and isinstance(value, list | dict) for row in rows for value in row.values()
    )
    try:
        found = list(read(path))
    except InputError as error:
        assert not texts_only or not rows, str(error)
        return refusal(error)
    assert texts_only
    same([each.text for each in found], [clean(row["text"] or "") for row in rows], "text")
    return len(found)


def damaged_binary(case: Case, ending: str) -> int:
    data = case.mutated(case.seed_bytes(ending))
    path = case.write(f"input{ending}", data)
    try:
        found = list(read(path))
    except InputError as error:
        return refusal(error)
    assert all(isinstance(each, Document) and isinstance(each.text, str) for each in found)
    return 1


def damaged_parquet(case: Case) -> int:
    return damaged_binary(case, ".parquet")


def excel(case: Case) -> int:
    """Workbooks whose archive, or a file in it, is damaged."""
    if case.chance(0.4):
        return damaged_binary(case, ".xlsx")
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(case.seed_bytes(".xlsx"))) as old, zipfile.ZipFile(out, "w") as new:
        spoilt = case.pick(old.namelist())
        for name in old.namelist():
            data = old.read(name)
            if name != spoilt:
                new.writestr(name, data)
            elif case.chance(0.9):
                new.writestr(name, case.mutated(data))
    try:
        list(read(case.write("input.xlsx", out.getvalue())))
    except InputError as error:
        return refusal(error)
    return 1


def vectors(case: Case) -> int:
    """Word vectors that were written come back; damaged files are vectors or a refusal."""
    size, n_words = 1 + case.below(4), 1 + case.below(6)
    words = sorted({case.text(most=3).replace("\n", "") for _ in range(n_words)} - {""})
    words = [word for word in words if not any(map(str.isspace, word)) and word.isprintable()] or ["cat"]
    rows = np.array([[case.random.random() * 10 - 5 for _ in range(size)] for _ in words], np.float32)
    head = f"{len(words)} {size}\n".encode()
    text = b"".join(
        word.encode() + b" " + " ".join(map(repr, map(float, row))).encode() + b"\n"
        for word, row in zip(words, rows, strict=True)
    )
    binary = b"".join(word.encode() + b" " + row.tobytes() + b"\n" for word, row in zip(words, rows, strict=True))
    data = case.pick([head + text, text, head + binary])
    intact = case.chance(0.3)
    path = case.write(case.pick(["vectors.vec", "vectors.txt", "vectors.bin"]), data if intact else case.mutated(data))
    try:
        found = read_word_vectors(path, words if case.chance(0.2) else None)
    except InputError as error:
        # Numbers of the binary format may look like text, if a file has a few of them only.
        assert not intact or size == 1 or words[0].isdigit() or data.startswith(head + binary[:9]), str(error)
        return refusal(error)
    assert found.vectors.shape == (len(found.words), found.size) and np.isfinite(found.vectors).all()
    if intact and size > 1:
        same(found.words, words, "word")
        np.testing.assert_array_equal(found.vectors, rows)
    return 1


def document_vectors(case: Case) -> int:
    """Arrays that were written come back; damaged files are arrays of finite numbers or a refusal."""
    shape = 1 + case.below(5), 1 + case.below(4)
    rows = np.array([case.random.random() * 10 - 5 for _ in range(shape[0] * shape[1])])
    rows = rows.reshape(shape).astype(case.pick(["f4", "f8", ">f4", "i2", "f2"]))
    packed, out = case.chance(0.4), io.BytesIO()
    if packed:
        case.pick([np.savez, np.savez_compressed])(out, vectors=rows, ids=[1])
    else:
        np.save(out, rows if case.chance(0.5) else np.asfortranarray(rows))
    intact = case.chance(0.3)
    data = out.getvalue() if intact else case.mutated(out.getvalue())
    try:
        found = read_document_vectors(case.write("vectors.npz" if packed else "vectors.npy", data))
    except InputError as error:
        assert not intact, str(error)
        return refusal(error)
    assert found.ndim == 2 and found.dtype in (np.float16, np.float32) and np.isfinite(found).all()
    if intact:
        assert found.dtype == (np.float16 if rows.dtype == np.float16 else np.float32)
        rounded = [struct.unpack("f", struct.pack("f", number))[0] for number in rows.ravel().tolist()]
        same(found.ravel().tolist(), rounded, "number")
    return 1


def fasttext(case: Case) -> int:
    head = struct.pack("<i", 793_712_314) + struct.pack("<i", 12)
    path = case.write(
        "model.bin", case.mutated(head + struct.pack("<13i", *[case.below(5) for _ in range(13)]) + b"cat\0" * 9)
    )
    try:
        read_word_vectors(path)
    except InputError as error:
        return refusal(error)
    return 1


def saved_vectors(case: Case) -> int:
    words = sorted({case.text(PIECES, 3) for _ in range(4)})
    try:
        made = WordVectors(words, np.ones((len(words), 2)))
        path = case.folder / "out.vec"
        made.save(path)
        same(read_word_vectors(path).words, ["_".join(re.split("[ \t\r\n]+", word)) for word in words], "word")
    except InputError as error:
        return refusal(error)
    return 1


YAML = """model: 0123abcd
edits:
- merge: [3, 7]
- drop: [5]
- rename: {3: shipping, 4: null, "5": "a: b"}
- reduce_to: 20
- {split: 4, into: 3, random_state: 0}
"""
CONFIG = """model: gsm
topics: 5   # a number
learning_rate: 1e-3
seed: 0
settings: {hidden_size: 8, dropout: 0.5, beta: .inf}
text: body
no: no
date: 2021-05-03
list: [1, {a: b}, &x [1, 2], *x, !!set {a, b}]
long: |
  two
  lines
"""
TOML = """model = "gsm"
topics = 5
learning-rate = 1e-3
when = 2021-05-03T10:00:00Z
[settings]
hidden_size = 8
dropout = 0.5
list = [1, [2, {a = "b"}]]
"""
MARKUP = ["&a ", "*a", "<<: *a\n", "!!python/object:os.system", "!!binary aGk=", "!!set", "? ", "- ", ": ",
    "%YAML 9.9\n", "---\n", "...",
          "|\n", ">-\n", "1e999", "0x1F", "0o7", "1_000", ".nan", "-.inf", "9" * 5000, "[" * 2000, "{" * 500,
          "2021-02-30", "12:30:45", "~",
          "'", '"', "\t", "# ", "[a]\n", "[[a]]\n", "a.b = 1\n", "a = ", "'''", '"""', "= ", "\\U00110000",
          "!<tag:yaml.org,2002:int> x"]  # fmt: skip


def markup(case: Case, seed: str) -> bytes:
    """A mutated file of YAML or TOML, sometimes with lists that aliases repeat a billion times."""
    text = seed
    for _ in range(case.below(4)):
        place = case.below(len(text) + 1)
        text = text[:place] + case.pick(MARKUP if case.chance(0.7) else MARKS) + text[place:]
    if case.chance(0.02):
        bomb = case.seed_bytes(".yaml").decode().partition(": ")[2]
        text = text.replace(case.pick(["[3, 7]", "20", "gsm", "5", "shipping", "8"]), bomb.strip(), 1)
    data = text.encode("utf-8", "replace")
    return case.mutated(data) if case.chance(0.6) else data


def config(case: Case) -> int:
    """Configuration files: names and values, or a refusal that names the file."""
    ending = case.pick(["yaml", "toml"])
    path = case.write(f"config.{ending}", markup(case, TOML if ending == "toml" else case.pick([CONFIG, YAML])))
    try:
        found = read_yaml_or_toml(path)
    except InputError as error:
        return refusal(error, path)
    assert isinstance(found, dict) and all(isinstance(name, str) for name in found)
    return 1


def edits_file(case: Case) -> int:
    """Files of edits: edits that can be written and read again, or a refusal that names the file."""
    path = case.write("edits.yaml", markup(case, YAML))
    try:
        found = read_edits(path)
    except InputError as error:
        return refusal(error, path)
    again = case.folder / "again.yaml"
    write_edits(again, found.edits, found.fingerprint or "x")
    same(read_edits(again).edits, found.edits, "edit")
    return 1


def edits_values(case: Case) -> int:
    """Edits as values of all kinds."""
    for _ in range(10):
        entry = {
            case.pick(["merge", "drop", "rename", "reduce_to", "split", "into", "groups", "x"]): edit_value(case)
            for _ in range(1 + case.below(2))
        }
        given: Any = [entry] if case.chance(0.9) else case.pick([entry, json_value(case), None, 3, "x", [3], [None]])
        try:
            found = checked_edits(given)
        except InputError as error:
            refusal(error)
        else:
            same(checked_edits(found), found, "edit")
            path = case.folder / "edits.yaml"
            write_edits(path, found, "0")
            same(read_edits(path).edits, found, "edit")
    return 10


def edit_value(case: Case) -> Any:
    number = case.pick([0, 1, 2, 3, 3, 7, -1, 2.0, "3", "²", "٣", "", True, None, 10**30, float("nan"), np.int64(4)])
    return case.pick([
        number, [number], [0, 1], [0, number], (3, 4), {3: "a"}, {number: case.text(PIECES)}, {"3": None},
        json_value(case),
        [[0, 1], [number]], np.arange(3), {1, 2}, range(3),
    ])  # fmt: skip


@cache
def application() -> Any:
    from topicloom.cli import main

    return main


def command(*arguments: str) -> tuple[int, str]:
    """Run the command line in this process; return its exit code and what it wrote."""
    import sys

    out, before = io.StringIO(), sys.argv
    sys.argv = ["topicloom", *arguments]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            application()()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    finally:
        sys.argv = before
    return code, out.getvalue()


def command_config(case: Case) -> int:
    """A configuration file on the command line; the corpus does not exist, so that nothing is trained."""
    ending = case.pick(["yaml", "toml"])
    seed = TOML if ending == "toml" else "\n".join(line for line in CONFIG.splitlines()[:6]) + "\n"
    path = case.write(f"config.{ending}", markup(case, seed))
    code, text = command("train", str(case.folder / "no.txt"), "--out", str(case.folder / "run"), "--config", str(path))
    assert code == 2 and "Traceback" not in text, f"exit code {code}: {text[-500:]}"
    return 1


def command_line(case: Case) -> int:
    """Arguments of all kinds."""
    verbs = [
        "train",
        "prepare",
        "topics",
        "infer",
        "evaluate",
        "compare",
        "tune",
        "edit",
        "export",
        "find",
        "show",
        "models",
        "trends",
    ]
    odd = [
        *MARKS,
        *SURROGATES[:1],
        *PLAIN_WORDS[:5],
        "-",
        "--",
        "-1",
        "0",
        "1e999",
        "nan",
        str(case.folder),
        str(case.folder / "no.txt"),
        "=",
        "a=b",
        "9" * 40,
    ]
    options = ["--topics", "--seed", "--out", "--min-df", "--max-df", "--language", "--model", "--set",
        "--format", "--encoding", "--delimiter",
               "--words", "--jobs", "--stop-words", "--text", "--config", "--trials", "--x", "--device",
               "--epochs"]  # fmt: skip
    arguments = [case.pick(verbs), *(case.pick(odd if case.chance(0.5) else options) for _ in range(case.below(6)))]
    code, text = command(*(each.replace("\0", "") for each in arguments))
    assert code in (0, 1, 2) and "Traceback" not in text, f"{arguments}: exit code {code}: {text[-500:]}"
    return 1


@cache
def saved_model() -> tuple[Path, Any]:
    """A small saved model, and theta of a few documents."""
    folder = Path(tempfile.mkdtemp())
    corpus = tl.Corpus.from_texts(
        ["a cat and a dog", "stocks, rates", "dogs", "", "a cat"] * 4, min_df=1, max_df=1.0, language="en"
    )
    model = tl.GSM(2, epochs=1, hidden_size=4, random_state=0, verbose=False).fit(corpus)
    model.save(folder / "model")
    import atexit

    atexit.register(shutil.rmtree, folder, True)
    return folder / "model", model.transform(["a cat", "rates", ""])


def model(case: Case) -> int:
    """A saved model with one file damaged: refused, or the same theta."""
    source, theta = saved_model()
    folder = case.folder / "model"
    shutil.copytree(source, folder)
    case.damage_one_of(folder)
    try:
        found = tl.load(folder)
    except InputError as error:
        return refusal(error)
    np.testing.assert_array_equal(found.transform(["a cat", "rates", ""]), theta)
    return 1


@cache
def saved_run() -> Path:
    """The folder of a small run, which commands copy."""
    import atexit

    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, True)
    (folder / "texts.txt").write_text("the cat and a dog\nstocks, rates\ndogs bark\nmarket rates\n" * 5)
    code, text = command(
        "train", str(folder / "texts.txt"), "--out", str(folder / "run"), "--model", "gsm", "--topics", "2",
        "--epochs", "1", "--min-df", "1", "--language", "en", "--monitor", "none", "--no-explorer", "--quiet",
    )  # fmt: skip
    assert code == 0, text
    return folder / "run"


@contextlib.contextmanager
def talker(case: Case) -> Iterator[str]:
    """The address of a language model that answers anything."""
    from stub_service import StubHandler, served

    class Handler(StubHandler):
        def do_POST(self) -> None:
            self.body()
            answer = case.pick(['{"name": "pets", "sentence": "About pets."}', '{"word": "cat", "documents": [1]}'])
            text = case.pick([answer, answer, answer, case.text(PIECES), "{" * 50])
            body: Any = {"choices": [{"message": {"content": text}}], "usage": json_value(case)}
            self.respond(case.pick([200, 200, 200, 400, 404]), body if case.chance(0.9) else case.text().encode())

    with served(Handler) as address:
        yield address


def run_commands(case: Case) -> int:
    """Commands on a run, with hostile new texts, or with a language model that answers anything."""
    run = case.folder / "run"
    shutil.copytree(saved_run(), run)
    out = case.folder / "out"
    verb = case.pick(["update", "update", "infer", "name", "rate"])
    if verb in ("update", "infer"):
        ending = case.pick(["txt", "csv", "jsonl"])
        path = case.write(f"new.{ending}", case.mutated(case.seed_bytes(".csv" if ending == "txt" else f".{ending}")))
        options = [*case.pick([[], ["--force"]]), *case.pick([[], ["--split-texts", "sentences"]])]
        name = out if verb == "update" else out.with_suffix(".csv")
        code, text = command(verb, str(run), str(path), "--out", str(name), "--quiet", *options)
    else:
        with talker(case) as address:
            options = ["--out", str(out)] if verb == "name" else ["--questions", "1", "--repeats", "1"]
            code, text = command(verb, str(run), "--llm", address, "--model", "stub", "--quiet", *options)
    assert code in (0, 1, 2) and "Traceback" not in text, f"{verb}: exit code {code}: {text[-500:]}"
    if verb in ("update", "name") and code == 0:
        assert len(tl.Topics.from_run(out, device="cpu").names) == 2
    return 1


TARGETS = {
    "read.parquet": Target(parquet, "a row, compared", 1),
    "read.parquet.damaged": Target(damaged_parquet, "a file", 0.7),
    "read.xlsx.damaged": Target(excel, "a file", 0.7),
    "vectors.read": Target(vectors, "a file, compared if it is intact", 1.5),
    "vectors.documents": Target(document_vectors, "a file, compared if it is intact", 0.5),
    "vectors.fasttext": Target(fasttext, "a file", 0.5),
    "vectors.save": Target(saved_vectors, "a set of words", 0.5),
    "config.read": Target(config, "a file", 1),
    "edits.read": Target(edits_file, "a file", 1),
    "edits.values": Target(edits_values, "a list of edits, written and read again", 1),
    "cli.config": Target(command_config, "a file", 1),
    "cli.arguments": Target(command_line, "a command", 1),
    "cli.runs": Target(run_commands, "a command on a run", 1),
    "model.load": Target(model, "a saved model", 1),
}
