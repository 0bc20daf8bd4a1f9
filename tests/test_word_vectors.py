"""Word vectors: every format is read, every fault is one sentence, and training depends only on its seed."""

from __future__ import annotations

import copy
import gzip
import logging
import os
import struct
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from topicloom import Corpus, InputError, WordVectors, read_word_vectors, train_word_vectors
from topicloom.embeddings.word_vectors import as_word_vectors
from topicloom.errors import SettingError

needs_gensim = pytest.mark.skipif(find_spec("gensim") is None, reason="needs gensim, of the extra vectors")

WORDS = ["river", "bank", "舟", "don't"]
VECTORS = np.array([[1, 0.5, -2], [0, 1e-3, 3], [-1, -1, -1], [0.25, 8, 0]], np.float32)
ROWS = ["river 1 0.5 -2", "bank 0 1e-3 3", "舟 -1 -1 -1", "don't 0.25 8 0"]
HEADED = "\n".join(["4 3", *ROWS]) + "\n"


def packed(after: bytes = b"", words: list[str] | None = None, n_words: int = 4) -> bytes:
    rows = zip(words or WORDS, VECTORS, strict=True)
    return f"{n_words} 3\n".encode() + b"".join(f"{w} ".encode() + struct.pack("<3f", *v) + after for w, v in rows)


FILES = {
    "word2vec text": HEADED.encode(),
    "word2vec text without a last line feed": HEADED.rstrip().encode(),
    "fastText .vec, a blank at the end of lines": HEADED.replace("\n", " \n").encode(),
    "Windows line ends": HEADED.replace("\n", "\r\n").encode(),
    "tabs": HEADED.replace(" ", "\t").encode(),
    "word2vec binary": packed(),
    "word2vec binary with line feeds": packed(b"\n"),
    "GloVe": "\n".join(ROWS).encode(),
}


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("kind", FILES)
def test_formats(kind, compressed, tmp_path):
    path = tmp_path / ("vectors.gz" if compressed else "vectors")
    path.write_bytes(gzip.compress(FILES[kind]) if compressed else FILES[kind])
    read = read_word_vectors(path)
    assert list(read.words) == WORDS
    np.testing.assert_array_equal(read.vectors, VECTORS)
    some = read_word_vectors(path, ["don't", "unheard", "bank"], size=3)
    assert sorted(some.words) == ["bank", "don't"]
    np.testing.assert_array_equal(some["bank"], VECTORS[1])


def test_a_long_binary_file_is_read_over_its_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("topicloom.embeddings.word_vectors._BLOCK", 7)
    (tmp_path / "v.bin").write_bytes(packed(b"\n"))
    np.testing.assert_array_equal(read_word_vectors(tmp_path / "v.bin").vectors, VECTORS)
    (tmp_path / "v.txt").write_text(HEADED, encoding="utf-8")
    np.testing.assert_array_equal(read_word_vectors(tmp_path / "v.txt").vectors, VECTORS)


def test_words_with_blanks_and_words_twice(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_text("a 1 2\n. . . 3 4\na 5 6\n", encoding="utf-8")
    read = read_word_vectors(path)
    assert read.words == ("a", ". . .")
    np.testing.assert_array_equal(read.vectors, [[1, 2], [3, 4]])


@needs_gensim
@pytest.mark.parametrize("binary", [False, True])
def test_gensim_reads_and_writes_the_same(binary, tmp_path):
    from gensim.models import KeyedVectors

    theirs = KeyedVectors(3)
    theirs.add_vectors(WORDS, VECTORS)
    theirs.save_word2vec_format(str(tmp_path / "theirs"), binary=binary)
    np.testing.assert_array_equal(read_word_vectors(tmp_path / "theirs").vectors, VECTORS)
    WordVectors(WORDS, VECTORS).save(tmp_path / "ours.txt.gz")
    again = KeyedVectors.load_word2vec_format(str(tmp_path / "ours.txt.gz"))
    assert again.index_to_key == WORDS
    np.testing.assert_array_equal(again.vectors, VECTORS)
    np.testing.assert_array_equal(read_word_vectors(tmp_path / "ours.txt.gz").vectors, VECTORS)


@needs_gensim
def test_fasttext_binary_makes_vectors_of_unseen_words(tmp_path):
    from gensim.models.fasttext import FastText, save_facebook_model

    model = FastText(DOCUMENTS, vector_size=4, min_count=1, epochs=1, seed=1, workers=1, bucket=100)
    save_facebook_model(model, str(tmp_path / "model.bin"))
    read = read_word_vectors(tmp_path / "model.bin")
    assert set(read.words) == set(model.wv.index_to_key)
    some = read_word_vectors(tmp_path / "model.bin", ["stream", "streamlet"])
    assert some.words == ("stream", "streamlet")
    np.testing.assert_allclose(some["stream"], model.wv["stream"], rtol=1e-6)
    (tmp_path / "broken.bin").write_bytes((tmp_path / "model.bin").read_bytes()[:90])
    with pytest.raises(InputError, match="cannot be read as fastText"):
        read_word_vectors(tmp_path / "broken.bin")


FAULTS = {
    "empty": (b"", "is empty"),
    "blank": (b"\n\n", "is empty or begins with an empty line"),
    "a word alone": (b"river\n", "line 1: 'river' is neither a header nor the row of a word"),
    "text": (b"once upon a time\n", "line 1: 'once upon a time' is neither a header"),
    "header of nothing": (b"0 3\n", "line 1: the header '0 3' should be"),
    "negative header": (b"4 -3\n", "line 1: the header '4 -3' should be"),
    "header alone": (b"4 3\n", "ends after its header"),
    "header too high": (HEADED.replace("4 3", "5 3").encode(), "has 4 rows, but its header announces 5 words"),
    "short row": (HEADED.replace(" 3\n舟", "\n舟").encode(), "line 3 has 2 numbers, but the header announces 3"),
    "long row": (HEADED.replace("-1 -1", "-1 -1 7").encode(), "line 4 has 4 numbers, but the header announces 3"),
    "short row of GloVe": (b"a 1 2 3\nb 1 2\n", "line 2 has 2 numbers, but line 1 has 3"),
    "no number": (HEADED.replace("0.25", "a.25").encode(), "line 5: 'a.25' is not a number"),
    "not a number": (HEADED.replace("0.25", "nan").encode(), "line 5: a number is not finite"),
    "not UTF-8": (HEADED.encode("gb18030"), "line 4 is not UTF-8"),
    "binary cut short": (packed()[:-5], "incomplete: its header announces 4 words, but it ends in word 4"),
    "binary with too high a header": (
        packed(n_words=9),
        "incomplete: its header announces 9 words, but it ends in word 5",
    ),
    "binary not UTF-8": (packed().replace("舟".encode(), b"\xff\xfe"), "word 3 is not UTF-8"),
    "binary not finite": (packed().replace(struct.pack("<f", 8), struct.pack("<f", np.nan)), "not finite"),
    "binary of noise": (b"4 3\n\0" + b"\1" * (1 << 20), "damaged at word 1"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_one_sentence(fault, tmp_path):
    content, said = FAULTS[fault]
    (tmp_path / "vectors").write_bytes(content)
    with pytest.raises(InputError, match=said) as caught:
        read_word_vectors(tmp_path / "vectors")
    assert "\n" not in str(caught.value)
    assert str(tmp_path / "vectors") in str(caught.value)


@pytest.mark.parametrize("kind", ["word2vec text", "word2vec binary", "GloVe"])
def test_another_size_and_another_vocabulary_are_refused(kind, tmp_path):
    (tmp_path / "vectors").write_bytes(FILES[kind])
    with pytest.raises(InputError, match="has vectors of 3 numbers, not 300"):
        read_word_vectors(tmp_path / "vectors", size=300)
    with pytest.raises(InputError, match=r"contains no word of the vocabulary \(1 word\)"):
        read_word_vectors(tmp_path / "vectors", ["unheard"])


def test_files_that_cannot_be_opened(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        read_word_vectors(tmp_path / "nowhere")
    with pytest.raises(InputError, match="cannot be read"):
        read_word_vectors(tmp_path)
    (tmp_path / "half.gz").write_bytes(gzip.compress(HEADED.encode())[:-12])
    with pytest.raises(InputError, match="not a complete gzip file"):
        read_word_vectors(tmp_path / "half.gz")


def test_the_share_is_logged(tmp_path, caplog):
    (tmp_path / "vectors").write_text(HEADED, encoding="utf-8")
    with caplog.at_level(logging.INFO, "topicloom"):
        read_word_vectors(tmp_path / "vectors", [*WORDS[:2], "unheard"])
        WordVectors(WORDS, VECTORS).rows(["river", *map(str, range(1999))])
    assert caplog.messages == [
        f"2 of 3 words (66.7 %) found in {tmp_path / 'vectors'}",
        "only 1 of 2,000 words (0.1 %) found in the word vectors; the others get random vectors, so give vectors of "
        "the language of the texts",
    ]


# The object.


def test_rows_follow_the_vocabulary():
    random = np.random.default_rng(0)
    known = random.normal([5, -5], [1, 0.1], (500, 2)).astype(np.float32)
    vectors = WordVectors([f"w{i}" for i in range(500)], known)
    vocabulary = [f"w{i}" for i in range(999, -1, -1)]
    rows = vectors.rows(vocabulary, random_state=1)
    np.testing.assert_array_equal(rows[500:], known[::-1])
    np.testing.assert_allclose(rows[:500].mean(0), [5, -5], atol=0.2)
    np.testing.assert_allclose(rows[:500].std(0), [1, 0.1], rtol=0.1)
    np.testing.assert_array_equal(rows, vectors.rows(vocabulary, random_state=1))
    assert not np.array_equal(rows, vectors.rows(vocabulary, random_state=2))
    with pytest.raises(InputError, match="none of the 1 words"):
        vectors.rows(["unheard"])


def test_nearest_words():
    vectors = WordVectors(["a", "b", "c", "zero"], [[1, 0], [9, 1], [0, 1], [0, 0]])
    assert vectors.nearest("a", 2) == ["b", "c"]
    assert vectors.nearest([0, 3], 2) == ["c", "b"]
    with pytest.raises(InputError, match="'d' is not among these 4 words with a vector"):
        vectors.nearest("d")
    with pytest.raises(InputError, match="a vector of 2 numbers"):
        vectors.nearest([1, 2, 3])
    with pytest.raises(SettingError, match="top_n"):
        vectors.nearest("a", 0)


def test_word_vectors_are_fixed_once_made():
    given = VECTORS.copy()
    vectors = WordVectors(WORDS, given)
    given[0] = 7
    np.testing.assert_array_equal(vectors["river"], VECTORS[0])
    with pytest.raises(ValueError, match="read-only"):
        vectors.vectors[0] = 7
    assert copy.deepcopy(vectors) is copy.copy(vectors) is vectors
    assert "舟" in vectors
    assert (len(vectors), vectors.size) == (4, 3)
    assert repr(vectors) == "WordVectors(4 words of 3 dimensions)"


@pytest.mark.parametrize(
    ("words", "vectors", "said"),
    [
        (["a"], [[1], [2]], "1 words cannot have vectors of shape"),
        ([], np.zeros((0, 3)), "0 words"),
        (["a", "b", "a"], [[1], [2], [3]], "the word 'a' occurs twice"),
        (["a", "b"], [[1], [np.inf]], "'b' contains a number that is not finite"),
    ],
)
def test_vectors_that_cannot_be(words, vectors, said):
    with pytest.raises(InputError, match=said):
        WordVectors(words, vectors)


def test_phrases_are_saved_as_gensim_writes_them(tmp_path, caplog):
    path, numbers = tmp_path / "vectors.txt", np.arange(6).reshape(3, 2)
    with caplog.at_level(logging.INFO, "topicloom"):
        WordVectors(["new york", "a\tb  c", "sea"], numbers).save(path)
    assert "2 words with white space are written with _ in its place, such as new_york" in caplog.text
    keyed = pytest.importorskip("gensim.models").KeyedVectors.load_word2vec_format(str(path))
    assert keyed.index_to_key == ["new_york", "a_b_c", "sea"]
    np.testing.assert_array_equal(keyed.vectors, numbers)
    assert read_word_vectors(path).words == ("new_york", "a_b_c", "sea")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["new_york", "new york"], "^the words 'new_york' and 'new york' would both be written as new_york, "),
        (["sea", " "], "^the word ' ' is blank or is not valid Unicode"),
        (["sea", "\ud800"], r"^the word '.ud800' is blank or is not valid Unicode"),
    ],
)
def test_words_that_no_file_can_tell_apart_are_refused(tmp_path, words, says):
    with pytest.raises(InputError, match=says):
        WordVectors(words, [[1.0], [2.0]]).save(tmp_path / "vectors.txt")
    assert not (tmp_path / "vectors.txt").exists()


def test_numbers_that_overflow_are_refused(tmp_path):
    """1e39 became infinite without a word in the binary formats of other programs, and "inf" elsewhere."""
    path = tmp_path / "vectors.txt"
    for number in ("1e39", "-4e38", "1e-50", "1e400", "-.9e999", "1.2e-44"):
        path.write_text(f"a 1 2\nb 3 {number}\n")
        with pytest.raises(InputError, match=f"line 2: '{number}' is a number that 32-bit floating point cannot hold"):
            read_word_vectors(path)
    path.write_text("a 1 3.4e38\nb 0 -0.0\nc 0.1 1.4013e-45\nd 0.1 1e-45\n")
    np.testing.assert_array_equal(
        read_word_vectors(path).vectors, np.float32([[1, 3.4e38], [0, -0.0], [0.1, 1e-45], [0.1, 1e-45]])
    )
    for given in ([[1e39]], np.array([[1e-50]])):
        for make in (lambda row: WordVectors(["a"], [row]), lambda row: as_word_vectors({"a": row})):
            with pytest.raises(
                InputError, match=r"^the vector of 'a' contains 1e.*, which 32-bit floating point cannot"
            ):
                make(given[0])


def test_a_digest_tells_vectors_apart():
    vectors = WordVectors(WORDS, VECTORS)
    same = WordVectors(tuple(WORDS), np.asfortranarray(VECTORS.astype(np.float64)))
    assert vectors.digest == same.digest == "85244116bc13264b"
    assert vectors.summary() == {"words": 4, "size": 3}
    others = [
        WordVectors(WORDS[::-1], VECTORS),
        WordVectors(WORDS, -VECTORS),
        WordVectors(["river", "bank", "舟", "don"], VECTORS),
        WordVectors([*WORDS, *"ab"], VECTORS.reshape(6, 2)),
    ]
    assert len({vectors.digest, *(other.digest for other in others)}) == 5


# What people have.


class Keyed:
    """Has the attributes of gensim's KeyedVectors."""

    index_to_key = WORDS
    vectors = VECTORS


def test_word_vectors_in_every_form(tmp_path):
    vectors = WordVectors(WORDS, VECTORS)
    vectors.save(tmp_path / "v.txt")
    by_word = dict(zip(WORDS, VECTORS, strict=True))
    lists = {word: vector.tolist() for word, vector in by_word.items()}
    for form in (vectors, by_word, lists, Keyed(), tmp_path / "v.txt", str(tmp_path / "v.txt")):
        assert as_word_vectors(form).digest == vectors.digest
        some = as_word_vectors(form, ["舟", "unheard", "bank"])
        np.testing.assert_array_equal(some.rows(["舟", "bank"]), VECTORS[[2, 1]])
        assert some is vectors or some.words == ("bank", "舟")


@needs_gensim
def test_word_vectors_of_gensim():
    from gensim.models import KeyedVectors

    theirs = KeyedVectors(3)
    theirs.add_vectors(WORDS, VECTORS)
    assert as_word_vectors(theirs).digest == WordVectors(WORDS, VECTORS).digest


@pytest.mark.parametrize(
    ("form", "said"),
    [
        (3, "should be WordVectors, a dictionary .* of type int"),
        (VECTORS, "of type ndarray"),
        ({"a": [1, 2], "b": [1]}, r"the vector of 'b' has shape \(1,\); it should have 2 numbers"),
        ({"a": 1.0}, r"the vector of 'a' has shape \(\); it should have one dimension"),
        ({"a": ["x"]}, "the vector of 'a' does not consist of numbers"),
        ({"a": [np.nan]}, "the vector of 'a' contains a number that is not finite"),
        ({3: [1.0]}, "should be strings; 3 is of type int"),
        ({}, "0 words cannot have vectors"),
        ("nowhere.txt", "nowhere.txt does not exist"),
    ],
    ids=repr,
)
def test_what_cannot_be_word_vectors(form, said):
    with pytest.raises(InputError, match=said) as caught:
        as_word_vectors(form)
    assert "\n" not in str(caught.value)


def test_no_word_of_the_vocabulary_has_a_vector():
    with pytest.raises(InputError, match="none of the 1 words of the vocabulary"):
        as_word_vectors({"a": [1.0]}, ["b"])


# Training.

DOCUMENTS = [["stream", "water", "boat", "water"], ["money", "bank", "loan"], ["boat", "stream"]] * 30
SETTINGS = {"size": 8, "epochs": 2}


METHODS = ("cbow", "skip-gram")


@needs_gensim
def test_a_seed_gives_the_same_vectors_in_any_process(tmp_path):
    script = (
        f"import topicloom as tl\nfor method in {METHODS}:\n"
        f"    found = tl.train_word_vectors({DOCUMENTS}, method, random_state=3, size=8, epochs=2)\n"
        f"    found.save({str(tmp_path)!r} + f'/{{method}}.txt')"
    )
    environment = os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": str(Path(__file__).resolve().parents[1] / "src")}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)
    for method in METHODS:
        trained = train_word_vectors(DOCUMENTS, method, random_state=3, **SETTINGS)
        assert set(trained.words) == {word for document in DOCUMENTS for word in document}
        again = read_word_vectors(tmp_path / f"{method}.txt")
        assert again.words == trained.words
        np.testing.assert_array_equal(again.vectors, trained.vectors)
        other = train_word_vectors(DOCUMENTS, method, random_state=4, **SETTINGS)
        assert not np.allclose(other.vectors, trained.vectors)


@needs_gensim
def test_words_of_one_context_are_near():
    random = np.random.default_rng(0)
    halves = np.array([[f"{side}{word}" for word in range(8)] for side in "xy"])
    documents = [random.choice(halves[row % 2], 12).tolist() for row in range(600)]
    for method in ("cbow", "skip-gram"):
        vectors = train_word_vectors(documents, method, size=10, epochs=10)
        assert {word[0] for word in vectors.nearest("x0", 7)} == {"x"}


@needs_gensim
def test_a_corpus_is_tokenized_again_and_keeps_its_vocabulary():
    texts = [" ".join(document) + " rarely" * (row == 0) for row, document in enumerate(DOCUMENTS)]
    corpus = Corpus.from_texts(texts, language="en", min_df=5, max_df=1.0)
    from_corpus = train_word_vectors(corpus, **SETTINGS)
    assert set(from_corpus.words) == set(corpus.vocabulary) == {word for document in DOCUMENTS for word in document}
    assert "rarely" in train_word_vectors(texts, **SETTINGS)
    np.testing.assert_array_equal(from_corpus.vectors, train_word_vectors(DOCUMENTS, **SETTINGS).vectors)
    of_tokens = Corpus.from_texts(DOCUMENTS, min_df=5, max_df=1.0)
    np.testing.assert_array_equal(from_corpus.vectors, train_word_vectors(of_tokens, **SETTINGS).vectors)


@needs_gensim
def test_long_documents_are_read_to_their_end():
    assert "last" in train_word_vectors([["first"] * 12_000 + ["last"]], size=2, epochs=1)


@needs_gensim
@pytest.mark.parametrize(
    ("X", "said"),
    [
        pytest.param(Corpus.from_counts(np.eye(3)), "order of the words is not known", id="corpus of counts"),
        pytest.param(np.eye(3), "counts have no word order", id="counts"),
        pytest.param("one text", "list of texts", id="one text"),
        pytest.param([], "no word occurs 1 times", id="nothing"),
        pytest.param([["a", "b"], "text"], "document 0", id="tokens and texts"),
    ],
)
def test_what_has_no_word_order_is_refused(X, said):
    with pytest.raises(InputError, match=said) as caught:
        train_word_vectors(X)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"method": "glove"},
        {"size": 0},
        {"window": 1.5},
        {"epochs": -1},
        {"min_count": 0},
        {"n_jobs": 0},
        {"random_state": -1},
    ],
)
def test_settings_that_cannot_be(settings):
    with pytest.raises(SettingError, match=next(iter(settings))):
        train_word_vectors(DOCUMENTS, **settings)


def test_without_gensim(monkeypatch):
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    with pytest.raises(InputError, match=r"needs gensim: pip install 'topicloom\[vectors\]'"):
        train_word_vectors(DOCUMENTS)
