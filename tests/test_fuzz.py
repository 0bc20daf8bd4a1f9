"""A few cases of every target of the fuzzer (`make fuzz` runs millions), and the inputs that were faults once."""

from __future__ import annotations

import logging
import re
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from fuzz.campaign import one, watch
from fuzz.case import SEEDS, Case
from fuzz.targets import TARGETS
from topicloom.cli import main
from topicloom.corpus import Corpus
from topicloom.corpus.fields import parse_times
from topicloom.embeddings import read_document_vectors, read_word_vectors
from topicloom.errors import InputError
from topicloom.files.content import read_yaml_or_toml
from topicloom.text import Pretokenized, make_tokenizer, read
from topicloom.text.tokenizing import token_spans
from topicloom.topics.edits import checked_edits, read_edits

CASES = {
    "corpus.from_counts": 150,
    "cli.arguments": 3,
    "cli.config": 5,
    "corpus.load": 10,
    "model.load": 10,
    "read.large": 2,
    "corpus.from_file": 20,
    "cli.runs": 1,
    "corpus.options": 4,
    "llm.answers": 15,
    "read.docx": 4,
    "read.eml": 12,
    "read.mbox": 5,
    "text.boilerplate": 5,
    "text.duplicates": 8,
    "tokenizer.lemmas": 4,
    "tokenizer.posts": 6,
}


@pytest.fixture
def no_log():
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TARGETS)
def test_a_few_cases(name, tmp_path, no_log):
    for package in TARGETS[name].needs:
        pytest.importorskip(package, reason=f"needs {package}")
    for number in range(CASES.get(name, 40)):
        folder = tmp_path / str(number)
        folder.mkdir()
        fault, checked = one(TARGETS[name], Case(name, 2026, number, folder))
        assert fault is None, f"python -m tests.fuzz --target {name} --seed 2026 --number {number}: {fault}"
        assert checked >= 0


def test_a_case_is_repeated_by_its_numbers(tmp_path):
    cases = [Case("read.txt", 1, number, tmp_path) for number in (7, 7, 8)]
    texts = [[case.text() for _ in range(5)] for case in cases]
    assert texts[0] == texts[1] != texts[2]


def test_crashes_hangs_and_wrong_results_are_noticed():
    found = watch("spoilt", 0, cases=4, seconds=100, hang=1, start=8)
    places = {fault["number"]: fault["place"].partition(" ")[0] for fault in found.faults}
    assert (found.cases, places) == (4, {8: "hang", 9: "AssertionError", 11: "ended"})


# Inputs that were faults.


def test_the_header_of_an_array_whose_bracket_is_not_closed(tmp_path):
    """NumPy splits such a header into tokens of Python, which ends in an error of its own."""
    Corpus.from_counts([[1, 2]], vectors=[[1.0, 2.0]]).save(tmp_path / "corpus")
    path = tmp_path / "corpus" / "vectors.npy"
    path.write_bytes(path.read_bytes().replace(b"), }", b",   "))
    for mmap in (True, False):
        with pytest.raises(InputError, match=r"vectors\.npy is damaged or cut short"):
            Corpus.load(tmp_path / "corpus", mmap, verify=False)
    with pytest.raises(InputError, match=r"vectors\.npy cannot be read as an array of numbers"):
        read_document_vectors(path)


@pytest.mark.parametrize("name", ["repeated_lists.yaml", "list_in_itself.yaml"])
def test_lists_that_aliases_repeat(name):
    """Ten lines of YAML can stand for a billion values, which a message would write out."""
    begin = time.monotonic()
    with pytest.raises(InputError, match=rf"{name}, line 2.*an alias may stand for a single value only"):
        read_edits(SEEDS / name)
    assert time.monotonic() - begin < 10


def test_lists_that_aliases_repeat_on_the_command_line(capsys, monkeypatch):
    arguments = ["train", "no.txt", "--config", str(SEEDS / "repeated_lists_setting.yaml")]
    monkeypatch.setattr("sys.argv", ["topicloom", *arguments])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "an alias may stand for a single value only" in re.sub(r"\s+", " ", capsys.readouterr().err)


def test_an_alias_of_a_single_value(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("topics: &n 5\nseed: *n\n")
    assert read_yaml_or_toml(path) == {"topics": 5, "seed": 5}


def test_a_fasttext_file_with_fewer_words_than_it_announces():
    pytest.importorskip("gensim")
    with pytest.raises(InputError, match="it ends in word 2 of its dictionary; download it again"):
        read_word_vectors(SEEDS / "short_dictionary.bin")


def test_binary_numbers_that_look_like_text():
    found = read_word_vectors(SEEDS / "binary_numbers_like_text.vectors")
    assert found.words == ("cat", "dog")
    np.testing.assert_array_equal(found["cat"], np.frombuffer(b"AAAABBBB", "<f4"))


def test_messages_are_one_line_whatever_the_columns_name():
    with pytest.raises(InputError, match="its columns are id, b c, d; name the column by `text`"):
        list(read(SEEDS / "line_break_in_header.csv"))


def test_words_inside_one_character_have_no_place():
    """U+FDFA stands for four words of Arabic."""
    tokens = make_tokenizer("ar", None)("ﷺ cat")
    spans = token_spans("ﷺ cat", tokens)
    assert len(tokens) > 2
    assert spans[-1] == (2, 5)
    assert all(span is None or span[0] < span[1] for span in spans)


@pytest.mark.parametrize(
    ("stop_words", "message"), [("a\0b", "cannot be the name of a file"), (["a", 1], "contains 1")]
)
def test_stop_words_that_cannot_be(stop_words, message):
    with pytest.raises(InputError, match=message):
        make_tokenizer("en", stop_words)


def changed(matrix, **arrays):
    for name, array in arrays.items():
        setattr(matrix, name, array)
    return matrix


EYE = np.eye(4, dtype=np.float32)


@pytest.mark.parametrize(
    "matrix",
    [
        changed(sparse.bsr_array(EYE), indices=np.array([0, 1, 2, 2**30], np.int32)),
        changed(sparse.bsr_array(EYE), indptr=np.array([0, 1, 2, 3, 2**30], np.int32)),
        changed(sparse.bsr_array(EYE), data=np.ones(1, np.float32)),
        changed(sparse.dia_array(EYE), offsets=np.array([2**31 - 1], np.int32)),
        changed(sparse.dia_array(EYE), offsets=np.array([0, 0], np.int32)),
        changed(sparse.csr_array(EYE), indices=np.array([0.0, 1, 2, 3])),
        changed(sparse.csc_array(EYE), indptr=np.array([0, 1, 2, 3, 4.0])),
        changed(sparse.lil_array(EYE), rows=np.array([[9], [1], [2], [3]], object)),
        changed(sparse.lil_array(EYE), rows=np.array([[2**40], [1], [2], [3]], object)),
    ],
)
def test_damaged_matrices_of_every_format(matrix):
    with pytest.raises(InputError, match="the sparse matrix is damaged"):
        Corpus.from_counts(matrix)


def test_sums_of_duplicate_entries_do_not_overflow():
    entries = (np.full(3, 100, np.int8), ([0, 0, 0], [1, 1, 1]))
    found = Corpus.from_counts(sparse.coo_array(entries, shape=(1, 2)))
    np.testing.assert_array_equal(found.counts.toarray(), [[0, 300]])


@pytest.mark.parametrize("texts", [np.array("a"), np.array(3), np.array(None)])
def test_an_array_without_axes_is_no_list_of_texts(texts):
    with pytest.raises(InputError, match="give a list with a string for each document"):
        Corpus.from_texts(texts)


@pytest.mark.parametrize("vocabulary", [3.5, object(), "ab"])
def test_a_vocabulary_that_is_no_list(vocabulary):
    with pytest.raises(InputError, match="give a list with the word of each column"):
        Corpus.from_counts(np.eye(2), vocabulary)


def test_messages_with_an_array_are_one_line():
    for call in (
        Pretokenized(),
        make_tokenizer("en"),
        lambda value: parse_times([value]),
        lambda value: checked_edits([value]),
    ):
        with pytest.raises(InputError) as found:
            call([np.eye(3)])
        assert "\n" not in str(found.value)


def test_messages_about_damaged_workbooks_are_short(tmp_path):
    """openpyxl repeats the damaged name of a file, which may be as long as the workbook."""
    pytest.importorskip("openpyxl")
    data = bytearray((SEEDS / "table.xlsx").read_bytes())
    for header in re.finditer(b"PK\x03\x04", bytes(data)):
        data[header.start() + 26 : header.start() + 28] = (4_000).to_bytes(2, "little")  # the length of a name
    (tmp_path / "damaged.xlsx").write_bytes(data)
    with pytest.raises(InputError, match="cannot be read as xlsx: File name in directory") as found:
        list(read(tmp_path / "damaged.xlsx"))
    assert len(str(found.value)) < 400


def test_groups_of_topics_that_are_no_lists():
    with pytest.raises(InputError, match=r"`groups` needs lists of topics, such as \[\[0, 2\], \[5\]\]; it is 3"):
        checked_edits([{"reduce_to": 2, "groups": 3}])


def test_surrogates_in_covariates_come_back(tmp_path: Path):
    corpus = Corpus.from_counts(np.eye(2), covariates={"\ud83d\ude00": ["\ud83d\ude00", "x"]})
    corpus.save(tmp_path / "corpus")
    again = Corpus.load(tmp_path / "corpus")
    assert list(again.covariates) == list(corpus.covariates) == ["😀"]
    assert again.covariates["😀"].values() == corpus.covariates["😀"].values() == ["😀", "x"]
