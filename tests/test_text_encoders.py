"""Encoders of texts: what they may be, what they may return, their cache, and models that read their vectors."""

from __future__ import annotations

import copy
import json
import logging
import os
import pickle
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

import topicloom as tl
from stub_service import StubHandler, served, without_waiting
from topicloom import Corpus
from topicloom.errors import InputError, MissingExtraError, SettingError
from topicloom.nn.encoders import BagEncoder
from topicloom.nn.layers import linear
from topicloom.text import TextEncoder, services, text_encoders

TEXTS = ["the cat sees the dog", "banks and markets", "", "a dog and a cat", "  \n", "banks and markets", "<b>rain</b>"]
OPEN: dict[str, Any] = {"language": "en", "min_df": 1, "max_df": 1.0}
WORDS = ["cat", "dog", "bank", "banks", "market", "markets", "rain", "sun", "computer", "music", "ship", "game"]
WORDS += ["team", "prices"]


def by_words(texts: list[str]) -> np.ndarray:
    """How often each word occurs in a text, and its length: a vector that the text alone determines."""
    return np.array([[*(text.split().count(word) for word in WORDS), len(text) / 100] for text in texts])


def other(texts: list[str]) -> np.ndarray:
    return by_words(texts)[:, ::-1] + 1


class Counting:
    """An encoder that remembers what it was given, and that can fail."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.calls: list[list[str]] = []
        self.fails_at = fails_at

    def encode(self, texts: list[str]) -> np.ndarray:
        own = [text for text in texts if text not in text_encoders._PROBES]
        if own and self.fails_at is not None and len(self.calls) >= self.fails_at:
            raise RuntimeError("the GPU fell over")
        if own:
            self.calls.append(own)
        return by_words(texts)

    @property
    def texts(self) -> list[str]:
        return [text for call in self.calls for text in call]


def counting(**options: Any) -> tuple[Counting, TextEncoder]:
    own = Counting(**options)
    return own, TextEncoder.of(own)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_encoders, "_BATCH", 2)
    monkeypatch.setattr(text_encoders._Source, "__init__", _with_batch(text_encoders._Source.__init__))


def _with_batch(made: Any) -> Any:
    def init(self: Any, name: str, encode: Any, pieces: Any = None, reads: str = "", batch: int = 2) -> None:
        made(self, name, encode, pieces, reads, min(batch, 2))

    return init


# What an encoder is


def test_rows_are_the_documents_and_empty_texts_zero():
    corpus = Corpus.from_texts(TEXTS, encoder=by_words, **OPEN)
    expected = by_words([text.replace("<b>", " ").replace("</b>", " ") for text in TEXTS]).astype(np.float16)
    expected[[2, 4]] = 0
    assert corpus.vectors.dtype == np.float16
    np.testing.assert_array_equal(corpus.vectors, expected)
    assert corpus.encoder.size == expected.shape[1]


@pytest.mark.parametrize(
    "given", [by_words, Counting(), Counting().encode, TextEncoder.of(by_words)], ids=["f", "o", "m", "e"]
)
def test_functions_and_objects_encode(given):
    found = TextEncoder.of(given).encode(TEXTS)
    np.testing.assert_array_equal(found[0], by_words(TEXTS[:1])[0].astype(np.float16))


def test_a_name_imports_a_function_an_object_or_a_class(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = "def encode(texts):\n    return [[len(text), 1] for text in texts]\n\n\nclass Own:\n"
    module += "    def encode(self, texts):\n        return encode(texts)\n\n\nobject = Own()\n"
    (tmp_path / "named_encoder.py").write_text(module, "utf-8")
    for name in ("encode", "Own", "object"):
        encoder = TextEncoder.of(f"named_encoder:{name}")
        assert encoder.encode(["cat"]).tolist() == [[3, 1]]
        assert encoder.name == f"named_encoder:{name}"
    with pytest.raises(InputError, match="the module 'named_encoder' has no 'none'"):
        TextEncoder.of("named_encoder:none")
    assert TextEncoder.of(Counting).encode(["cat"]).tolist() == TextEncoder.of(Counting()).encode(["cat"]).tolist()
    (tmp_path / "needs_path.py").write_text("class Own:\n    def __init__(self, path):\n        pass\n", "utf-8")
    with pytest.raises(InputError, match=r"needs_path:Own is a class, of which no object .* argument: 'path'; give"):
        TextEncoder.of("needs_path:Own")


@pytest.mark.parametrize(
    ("encoder", "says"),
    [
        (7, "`encoder` is 7; give sentence-transformers:NAME_OR_DIRECTORY"),
        ("nothing", "is not the name of an encoder; write sentence"),
        ("sentence-transformer:x/y", "is not the name of an encoder; write sentence"),
        ("model2vec:", "names no model; write model2vec:NAME_OR_DIRECTORY"),
        ("https://host/v1", "should have an address and a model, such as https://host/v1#model"),
        ("https://user:secret@host/v1#m", "no user, password or query"),
    ],
)
def test_what_is_no_encoder_is_refused(encoder, says):
    with pytest.raises(SettingError, match=says):
        TextEncoder.of(encoder)


def test_auto_takes_what_is_installed(monkeypatch, caplog):
    installed = {"model2vec"}
    monkeypatch.setattr(text_encoders, "find_spec", lambda name: name if name in installed else None)
    assert text_encoders.recommended("en") == "model2vec:minishlab/potion-base-8M"
    assert (
        text_encoders.recommended("fr")
        == text_encoders.recommended("zh")
        == "model2vec:minishlab/potion-multilingual-128M"
    )
    installed.add("sentence_transformers")
    assert text_encoders.recommended("zh") == "sentence-transformers:BAAI/bge-small-zh-v1.5"
    monkeypatch.setattr(text_encoders, "_named", lambda name: text_encoders._Source(name, by_words))
    with caplog.at_level(logging.INFO, "topicloom"):
        corpus = Corpus.from_texts(["股市今天上涨", "球队赢得比赛"], min_df=1, max_df=1.0, encoder="auto")
    assert "the encoder is sentence-transformers:BAAI/bge-small-zh-v1.5" in caplog.text
    assert corpus.encoder.name == "sentence-transformers:BAAI/bge-small-zh-v1.5"
    installed.clear()
    with pytest.raises(MissingExtraError, match=r"pip install 'topicloom\[sentence\]'"):
        TextEncoder.of("auto", "en")


# What an encoder may return


def of_texts(values: dict[str, Any]) -> Any:
    """An encoder that returns these values for texts, and vectors for the fixed ones."""

    def encode(texts: list[str]) -> Any:
        return [values.get(text, row) for text, row in zip(texts, by_words(texts), strict=True)]

    return encode


@pytest.mark.parametrize(
    ("encode", "says"),
    [
        (lambda texts: by_words(texts)[1:], r"returned an array of shape \(3, 15\) for 4 texts"),
        (lambda texts: by_words(texts)[:, 0], r"returned an array of shape \(4,\)"),
        (lambda texts: np.zeros((len(texts), 0)), r"returned an array of shape \(4, 0\)"),
        (lambda texts: "no", "returned 'no'; it should return"),
        (lambda texts: None, "returned None; it should return"),
        (lambda texts: 1 / 0, "failed: ZeroDivisionError: division by zero"),
        (of_texts({"a": [np.nan] * 15}), "returned a number that is not finite for the text 'a'"),
        (of_texts({"a": [1e39] * 15}), "returned a number that is not finite for the text 'a'"),
        (of_texts({"a": [1e6] * 15}), r"with numbers up to 1e\+06, which half precision cannot hold"),
        (of_texts({"a": [1e-7] * 15}), "which half precision cannot hold"),
        (lambda texts: by_words(texts)[:, : 15 - ("a" in texts)], "returned 14 numbers for a text, and 15 before"),
    ],
)
def test_what_is_no_vector_is_refused(encode, says):
    with pytest.raises(InputError, match=says):
        TextEncoder.of(encode).encode(["b", "a"])


def test_an_encoder_whose_answers_change_is_refused(small_batches):
    calls = []

    def drifting(texts: list[str]) -> np.ndarray:
        calls.append(1)
        return by_words(texts) + (len(calls) > 3) * np.arange(15)

    encoder = TextEncoder.of(drifting)
    with pytest.raises(InputError, match="gave the same text two different vectors in two calls"):
        encoder.encode([f"cat {n}" for n in range(12)])

    def centred(texts: list[str]) -> np.ndarray:
        found = by_words(texts)
        return found - found.mean(axis=0)

    with pytest.raises(InputError, match="depends on this text alone"):
        TextEncoder.of(centred).encode([f"cat {n}" for n in range(12)])


def test_tensors_and_lists_are_vectors():
    import torch

    expected = by_words(TEXTS[:2]).astype(np.float16)
    for kind in (
        lambda texts: torch.tensor(by_words(texts), requires_grad=True),
        lambda texts: by_words(texts).tolist(),
    ):
        np.testing.assert_array_equal(TextEncoder.of(kind).encode(TEXTS[:2]), expected)


# Each text once, and what was encoded is kept


def test_equal_texts_are_encoded_once(small_batches):
    own, encoder = counting()
    texts = ["cat", "dog", "cat", "", "dog", "rain"] * 3
    found = encoder.encode(texts)
    assert sorted(own.texts) == ["cat", "dog", "rain"]
    np.testing.assert_array_equal(
        found, [row if text else 0 * row for text, row in zip(texts, by_words(texts).astype(np.float16), strict=True)]
    )


def test_an_interrupted_call_goes_on(tmp_path, small_batches):
    texts = [f"cat {n}" for n in range(9)]
    _, failing = counting(fails_at=2)
    with pytest.raises(InputError, match=r"failed: RuntimeError: the GPU fell over \(.* keeps the vectors of 4 texts"):
        failing.encode(texts, cache=tmp_path / "cache")
    own, encoder = counting()
    found = encoder.encode([*texts, "rain"], cache=tmp_path / "cache")
    assert [text for text in own.texts if text not in texts[:4]] == [*texts[4:], "rain"]
    assert own.texts[:4] == texts[:4]  # a sample of what is kept is compared
    np.testing.assert_array_equal(found, by_words([*texts, "rain"]).astype(np.float16))
    own, encoder = counting()
    np.testing.assert_array_equal(encoder.encode(texts, cache=tmp_path / "cache"), found[:-1])
    assert len(own.texts) <= 8
    _, failing = counting(fails_at=0)
    with pytest.raises(InputError, match="give `encoder_cache` a directory"):
        failing.encode(texts)


def test_a_killed_writer_leaves_whole_vectors(tmp_path, small_batches):
    texts = [f"cat {n}" for n in range(6)]
    TextEncoder.of(by_words).encode(texts, cache=tmp_path / "cache")
    (folder,) = (entry for entry in (tmp_path / "cache").iterdir() if entry.is_dir())
    whole = (folder / "vectors.f16").read_bytes(), (folder / "texts.bin").read_bytes()
    for name, cut in ((0, 7), (1, 3), (0, len(whole[0])), (1, len(whole[1]))):
        for place, content in zip(("vectors.f16", "texts.bin"), whole, strict=True):
            (folder / place).write_bytes(content)
        path = folder / ("vectors.f16", "texts.bin")[name]
        path.write_bytes(whole[name][:-cut])
        found = TextEncoder.of(by_words).encode(texts, cache=tmp_path / "cache")
        np.testing.assert_array_equal(found, by_words(texts).astype(np.float16))
        assert ((folder / "vectors.f16").read_bytes(), (folder / "texts.bin").read_bytes()) == whole


def test_a_damaged_vector_is_made_again(tmp_path):
    texts = [f"cat {n}" for n in range(6)]
    TextEncoder.of(by_words).encode(texts, cache=tmp_path)
    (folder,) = (entry for entry in tmp_path.iterdir() if entry.is_dir())
    content = bytearray((folder / "vectors.f16").read_bytes())
    content[40] ^= 0x40
    (folder / "vectors.f16").write_bytes(content)
    for _ in range(2):
        own, encoder = counting()
        encoder.name = TextEncoder.of(by_words).name
        np.testing.assert_array_equal(encoder.encode(texts, cache=tmp_path), by_words(texts).astype(np.float16))
    assert texts[1] not in own.calls[-1] or len(own.calls) == 1


def test_vectors_of_another_function_are_not_taken(tmp_path, caplog):
    """One has another fingerprint, and one differs on the texts alone."""
    texts = ["cat 1", "cat 2"]
    for function in (by_words, other, of_texts({"cat 1": [3.0] * 15}), by_words):
        encoder = TextEncoder.of(function)
        encoder.name = "the same"
        expected = np.array(function(texts)).astype(np.float16)
        np.testing.assert_array_equal(encoder.encode(texts, cache=tmp_path), expected)
    assert caplog.text.count("gives other vectors than those in") == 3


def test_a_directory_of_other_files_is_no_cache(tmp_path):
    encoder = TextEncoder.of(by_words)
    encoder.encode(["cat"], cache=tmp_path)
    (folder,) = (entry for entry in tmp_path.iterdir() if entry.is_dir())
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "letter.txt").write_text("dear", "utf-8")
    with pytest.raises(InputError, match=r"holds other files \(no encoder.json\)"):
        encoder.encode(["cat"], cache=tmp_path)


def test_long_texts_are_read_in_pieces(caplog):
    encoder = TextEncoder.of(by_words)
    encoder._source = text_encoders._Source(
        "own", by_words, lambda text: [text[:9], text[9:]] if len(text) > 9 else [text], "9 letters"
    )
    with caplog.at_level(logging.INFO, "topicloom"):
        found = encoder.encode(["cat", "cat rain dog sun", "dog"])
    expected = by_words(["cat", "cat rain ", "dog sun", "dog"])
    np.testing.assert_allclose(found, [expected[0], expected[1:3].mean(axis=0), expected[3]], atol=1e-3)
    assert "1 text is longer than own reads (9 letters); pieces were encoded, and their vectors averaged" in [
        record.getMessage().replace(encoder.name, "own") for record in caplog.records
    ]


# Corpora


def test_a_saved_corpus_knows_its_encoder(tmp_path):
    corpus = Corpus.from_texts(TEXTS, encoder=by_words, **OPEN)
    corpus.save(tmp_path / "corpus")
    loaded = Corpus.load(tmp_path / "corpus")
    assert isinstance(loaded.vectors, np.memmap)
    assert loaded.vectors.tobytes() == corpus.vectors.tobytes()
    for part in (loaded, loaded[[3, 0]], Corpus.concatenate([loaded, corpus])):
        assert part.encoder.is_same(corpus.encoder)
        assert part.encoder.name == corpus.encoder.name
    unlike = Corpus.from_texts(TEXTS, encoder=other, **OPEN)
    with pytest.raises(
        InputError, match=r"the vectors of corpus 1 are by .*other \(15 numbers\), and those of corpus 0"
    ):
        Corpus.concatenate([corpus, unlike])
    content = json.loads((tmp_path / "corpus" / "corpus.json").read_text("utf-8"))
    assert content["encoder"]["size"] == 15


def test_files_and_frames_are_encoded(tmp_path):
    import pandas as pd

    expected = by_words(["the cat", "a dog"]).astype(np.float16)
    (tmp_path / "two.txt").write_text("the cat\na dog\n", "utf-8")
    for texts in (True, False):
        found = Corpus.from_file(
            tmp_path / "two.txt", encoder=by_words, out=tmp_path / "out", overwrite=True, keep_texts=texts,
            encoder_cache=tmp_path / "cache", **OPEN,
        )  # fmt: skip
        np.testing.assert_array_equal(found.vectors, expected)
        assert (found.texts is not None) == texts
        assert (tmp_path / "out" / "texts.utf8").exists() == texts
    frame = pd.DataFrame({"text": ["the cat", "a dog"]})
    np.testing.assert_array_equal(Corpus.from_frame(frame, encoder=by_words, **OPEN).vectors, expected)
    np.testing.assert_array_equal(Corpus.from_frame(frame, vectors=expected, **OPEN).vectors, expected)
    with pytest.raises(InputError, match=r"`label` is \['a', 'b'\]; give the name of a column"):
        Corpus.from_frame(frame, label=["a", "b"], **OPEN)
    np.testing.assert_array_equal(Corpus.from_file(tmp_path / "two.txt", vectors=expected, **OPEN).vectors, expected)
    for make in (Corpus.from_texts, Corpus.from_frame):
        with pytest.raises(SettingError, match="`encoder_cache` keeps the vectors of an `encoder`"):
            make(frame if make == Corpus.from_frame else ["the cat"], encoder_cache=tmp_path / "cache", **OPEN)
    with pytest.raises(InputError, match="which is a file; give a directory"):
        Corpus.from_frame(frame, encoder=by_words, encoder_cache=tmp_path / "two.txt", **OPEN)


def test_texts_must_be_known_and_one_source_given():
    counts = Corpus.from_counts([[1]])
    with pytest.raises(InputError, match="the texts of the corpus are not known"):
        Corpus.from_texts(TEXTS, keep_texts=False, **OPEN).with_vectors(encoder=by_words)
    for made in (counts.with_vectors, lambda encoder: Corpus.from_texts([["cat"]], encoder=encoder, min_df=1)):
        with pytest.raises(InputError, match="these documents are lists of tokens; give texts, or `vectors`"):
            made(encoder=by_words)
    with pytest.raises(SettingError, match="give one of them"):
        Corpus.from_texts(TEXTS, encoder=by_words, vectors=np.ones((7, 1)), **OPEN)
    with pytest.raises(SettingError, match="needs `vectors` or `encoder`"):
        counts.with_vectors()
    with pytest.raises(InputError, match="2 vectors and 1 documents"):
        counts.with_vectors(np.ones((2, 2)))
    for given, says in (
        (
            [[1, 2], [1, 2], [1]],
            "the vector of document 2 has 1 number, and that of document 0 has 2; give each as many",
        ),
        ([np.ones(2), None], "the vector of document 1 is None, and that of document 0 has 2"),
        (["x", "y"], "cannot be read; give an"),
        (np.ones((1, 0)), r"has shape \(1, 0\)"),
        (np.ones((1, 2), complex), "cannot be read; give an"),
        ("vectors.npy", "'vectors.npy'; read a file of vectors by topicloom.embeddings.read_document_vectors"),
    ):
        with pytest.raises(InputError, match=says):
            counts.with_vectors(given)
    with pytest.raises(InputError, match="an encoder reads texts, and these are counts"):
        tl.GSM(2).fit(np.eye(4), encoder=by_words)


# Models


class VectorEncoder(BagEncoder):
    """An encoder of counts that reads vectors besides."""

    def __init__(self, words: Any, n_hidden: int, generator: Any, **options: Any) -> None:
        super().__init__(words.idf, n_hidden, generator, **options)
        self.further = linear(words.field_size("vectors"), n_hidden, generator)

    def first_sums(self, batch: Any, generator: Any) -> Any:
        return super().first_sums(batch, generator) + 9 * self.further(batch.fields["vectors"])


@dataclass(eq=False, repr=False, kw_only=True)
class VectorTM(tl.ProdLDA):
    def build_encoder(self, words: Any, generator: Any) -> Any:
        return VectorEncoder(words, self.hidden_size, generator)

    def build_network(self, words: Any, generator: Any) -> Any:
        network = super().build_network(words, generator)
        network.fields = ("vectors",)
        return network


DOCUMENTS = ["the cat sees the dog", "banks and markets rise", "a dog and a cat", "markets and banks fall"] * 10
NEW = ["a cat", "no known word", "banks"]


@pytest.fixture(scope="module")
def fitted() -> VectorTM:
    corpus = Corpus.from_texts(DOCUMENTS, encoder=by_words, **OPEN)
    return VectorTM(n_topics=2, epochs=2, random_state=0).fit(corpus)


def test_new_texts_are_encoded_as_those_of_training(fitted):
    vectors = by_words(NEW).astype(np.float16)
    corpus = Corpus.from_counts(fitted.encode(NEW), fitted.vocabulary_, vectors=vectors)
    np.testing.assert_array_equal(fitted.transform(NEW), fitted.transform(corpus))
    moved = Corpus.from_counts(fitted.encode(NEW), fitted.vocabulary_, vectors=-vectors)
    assert abs(fitted.transform(moved) - fitted.transform(NEW)).max() > 1e-3
    held_out = VectorTM(n_topics=2, epochs=2, random_state=0)
    held_out.fit(Corpus.from_texts(DOCUMENTS, encoder=by_words, **OPEN), validation=DOCUMENTS[:4])
    assert held_out.fingerprint == fitted.fingerprint
    assert "validation_loss" in held_out.history_[0]


def test_fit_takes_texts_and_an_encoder(fitted):
    own = Counting()
    texts = [text.replace("rise", "banks") for text in DOCUMENTS]
    model = VectorTM(n_topics=2, epochs=2, random_state=0)
    shares = model.fit_transform(iter(texts), encoder=own)
    assert len(own.texts) == len(set(texts))
    np.testing.assert_array_equal(shares, model.transform(Corpus.from_texts(texts, encoder=by_words)))
    assert tl.GSM(2, epochs=1).fit(texts).encoder_ is None


def test_another_encoder_is_refused(fitted, tmp_path):
    says = r"the vectors of these are by .*other \(15 numbers\), and those of the training documents by .*by_words"
    with pytest.raises(InputError, match=says):
        fitted.transform(Corpus.from_texts(NEW, encoder=other, **OPEN))
    fitted.save(tmp_path / "model")
    with pytest.raises(InputError, match="the vectors of this encoder are by"):
        tl.load(tmp_path / "model", encoder=other, allow=__name__)
    with pytest.raises(InputError, match="14 numbers"):
        fitted.transform(Corpus.from_texts(NEW, encoder=lambda texts: by_words(texts)[:, 1:], **OPEN))


def test_a_loaded_model_needs_its_function_again(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    loaded = tl.load(tmp_path / "model", allow=__name__)
    assert loaded.encoder_.is_same(fitted.encoder_)
    with pytest.raises(InputError, match="by_words', which is not saved; pass it again"):
        loaded.transform(NEW)
    given = tl.load(tmp_path / "model", encoder=by_words, allow=__name__)
    np.testing.assert_array_equal(given.transform(NEW), fitted.transform(NEW))
    edited = fitted.rename({0: "first"})
    np.testing.assert_array_equal(edited.transform(NEW), fitted.transform(NEW))
    edited.save(tmp_path / "edited")
    given = tl.load(tmp_path / "edited", encoder=by_words, allow=__name__)
    np.testing.assert_array_equal(given.transform(NEW), fitted.transform(NEW))


def test_named_functions_and_services_of_saved_models_need_leave(tmp_path, service, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lengths.py").write_text("def encode(texts):\n    return [[len(text), 1] for text in texts]\n", "utf-8")
    for encoder, place, what in (
        ("lengths:encode", "lengths", "whose code would be run"),
        (service, service.partition("#")[0], "to which texts would be sent"),
    ):
        model = VectorTM(n_topics=2, epochs=1, random_state=0).fit(DOCUMENTS, encoder=encoder)
        model.save(tmp_path / "model", overwrite=True)
        n_seen = len(Stub.seen)
        with pytest.raises(InputError, match=f"{what}; give `allow='{place}'` if you trust it"):
            tl.load(tmp_path / "model", allow=__name__).transform(NEW)
        assert len(Stub.seen) == n_seen
        loaded = tl.load(tmp_path / "model", allow=[__name__, place])
        np.testing.assert_array_equal(loaded.transform(NEW), model.transform(NEW))


def test_a_changed_encoder_of_the_same_name_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "changing.py").write_text(
        "def encode(texts):\n    return [[len(text), 1] for text in texts]\n", "utf-8"
    )
    model = VectorTM(n_topics=2, epochs=1, random_state=0).fit(DOCUMENTS, encoder="changing:encode")
    model.save(tmp_path / "model")
    loaded = tl.load(tmp_path / "model", allow=[__name__, "changing"])
    import changing

    changing.encode = lambda texts: [[1, len(text)] for text in texts]
    with pytest.raises(InputError, match="changing:encode gives other vectors than it gave when the documents were"):
        loaded.transform(NEW)


def test_a_model_that_reads_no_vectors_encodes_nothing():
    own = Counting()
    model = tl.GSM(n_topics=2, epochs=1, random_state=0, encoder_reads="counts").fit(DOCUMENTS, encoder=own)
    n_calls = len(own.calls)
    model.transform(NEW)
    assert (len(own.calls), model.reads_vectors, model.encoder_.size) == (n_calls, False, 15)


@pytest.mark.parametrize("given", [{"vectors": np.ones((3, 15))}, {"encoder": by_words}])
def test_vectors_that_change_nothing_are_mentioned_once(caplog, given):
    model = tl.GSM(n_topics=2, epochs=1, random_state=0).fit(DOCUMENTS)
    caplog.clear()
    for _ in "12":
        np.testing.assert_array_equal(model.infer(NEW, **given).theta, model.transform(NEW))
    says = "the model infers topics from words alone, so the given vectors or encoder change nothing"
    assert [message for message in caplog.messages if "vectors" in message] == [says]


# Encoders and their copies


def test_copies_have_the_name_and_processes_no_function():
    encoder = TextEncoder.of(by_words)
    assert copy.deepcopy(encoder) is encoder
    sent = pickle.loads(pickle.dumps(encoder))
    assert sent.is_same(encoder)
    with pytest.raises(InputError, match=r"by_words', which is not saved; pass it again: tl.load\(dir, encoder=...\)"):
        sent.encode(["cat"])


# Services


class Stub(StubHandler):
    """A service with OpenAI's interface on this machine, which does what `plan` says for each request, in order."""

    plan: ClassVar[list[Any]] = []
    seen: ClassVar[list[tuple[str, Any, dict[str, Any]]]] = []
    longest = 10**9

    def do_POST(self) -> None:
        body = self.body()
        self.seen.append((self.path, self.headers.get("Authorization"), body))
        planned = self.plan.pop(0) if self.plan else 200
        status, answer = planned if isinstance(planned, tuple) else (planned, None)
        if any(len(text) > self.longest for text in body["input"]):
            status = 400
        if answer is None:
            rows = by_words(body["input"]).tolist()
            data = [{"index": n, "embedding": row} for n, row in enumerate(rows)][::-1]
            answer = {"data": data} if status == 200 else {"error": {"message": "the stub says no"}}
        self.respond(status, answer, {"Location": "/elsewhere"} if status == 302 else {})


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a stub with a model."""
    without_waiting(monkeypatch)
    Stub.plan, Stub.seen, Stub.longest = [], [], 10**9
    with served(Stub) as address:
        yield f"{address}#small"


def test_a_service_encodes_in_requests(service, monkeypatch):
    monkeypatch.setenv("TOPICLOOM_ENCODER_KEY", "secret")
    texts = [f"cat {n}" for n in range(250)]
    Stub.plan = [200, 429, 503, 200]
    np.testing.assert_array_equal(TextEncoder.of(service).encode(texts), by_words(texts).astype(np.float16))
    assert {path for path, _, _ in Stub.seen} == {"/v1/embeddings"}
    assert {key for _, key, _ in Stub.seen} == {"Bearer secret"}
    assert {body["model"] for _, _, body in Stub.seen} == {"small"}
    assert max(len(body["input"]) for _, _, body in Stub.seen) <= 101


def test_texts_that_a_service_finds_too_long_are_divided(service):
    encoder = TextEncoder.of(service)
    Stub.longest = 100
    long = "cat dog " * 25  # 200 characters
    found = encoder.encode(["rain", long, "sun"])
    np.testing.assert_allclose(found[[0, 2]], by_words(["rain", "sun"]), atol=1e-3)
    assert found[1, 0] == found[1, 1] > 0  # as many cats as dogs
    Stub.longest = 5
    with pytest.raises(InputError, match=r"refuses the texts: 400 .*the stub says no.*check the model's name"):
        encoder.encode(["a text of more than five letters"])


@pytest.mark.parametrize(
    ("planned", "says"),
    [
        (401, "answers: 401 .*give the key by TOPICLOOM_ENCODER_KEY"),
        (404, "answers: 404 .*the stub says no.*check the address"),
        (302, "answers: 302 .*check the address"),
        ((200, b"<html>"), "answers without vectors"),
        ((200, {"data": []}), "with 0 vectors for 4 texts"),
        ((200, {"data": [{"index": 0, "embedding": "text"}]}), "answers without vectors"),
    ],
)
def test_answers_that_are_refused(service, planned, says):
    Stub.plan = [planned]
    with pytest.raises(InputError, match=says):
        TextEncoder.of(service)
    assert len(Stub.seen) == 1


def test_a_service_that_stays_busy_is_left(service, monkeypatch):
    monkeypatch.setattr(services, "_PATIENCE", 0.2)
    monkeypatch.setattr(services, "_UNREACHABLE", 0.1)
    Stub.plan = [503] * 99
    with pytest.raises(InputError, match=r"does not answer \(503 .*or try again later"):
        TextEncoder.of(service)
    with pytest.raises(InputError, match="does not answer"):
        TextEncoder.of("http://127.0.0.1:9/v1#small")


@pytest.mark.parametrize("sent", [b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", b"\x15\x03\x01\r\n\r\n"])
def test_broken_answers_are_refused(service, monkeypatch, sent):
    monkeypatch.setattr(services, "_PATIENCE", 0.2)

    class Broken(StubHandler):
        def do_POST(self) -> None:
            self.body()
            self.wfile.write(sent)

    with served(Broken) as address, pytest.raises(InputError, match="does not answer"):
        TextEncoder.of(f"{address}#small")


@pytest.mark.parametrize(
    "bad", ["http://localhost:x/v1", "http://[::1/v1", "http://localhost/v 1", "http://localhost/é"]
)
def test_addresses_that_no_url_has_are_refused(bad):
    with pytest.raises(SettingError, match="should have an address and a model"):
        TextEncoder.of(f"{bad}#small")


def test_no_message_shows_a_key(service, monkeypatch):
    monkeypatch.setenv("TOPICLOOM_ENCODER_KEY", "of a file\n")
    TextEncoder.of(service).encode(["cat"])
    assert Stub.seen[0][1] == "Bearer of a file"
    for key in ("se\ncret", "secrét"):
        monkeypatch.setenv("TOPICLOOM_ENCODER_KEY", key)
        with pytest.raises(InputError, match=r"^the key of TOPICLOOM_ENCODER_KEY has characters .*; copy it again$"):
            TextEncoder.of(service)


def test_keys_are_sent_to_where_they_belong(service, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "of OpenAI")
    TextEncoder.of(service)
    assert Stub.seen[0][1] is None
    openai = text_encoders._EncodingService("https://api.openai.com/v1#m").service
    assert openai.headers["Authorization"] == "Bearer of OpenAI"
    assert "Authorization" not in text_encoders._EncodingService("https://example.org/v1#m").service.headers
    monkeypatch.setenv("TOPICLOOM_ENCODER_KEY", "own")
    with pytest.raises(InputError, match="is not encrypted, so the key"):
        text_encoders._EncodingService("http://example.org/v1#m")


# The extras, with tiny models


VOCABULARY = ["[UNK]", "[PAD]", "[CLS]", "[SEP]", *WORDS]


def tiny_tokenizer() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    made = Tokenizer(models.WordLevel({word: n for n, word in enumerate(VOCABULARY)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    special = [("[CLS]", 2), ("[SEP]", 3)]
    made.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=special)
    return made


@pytest.fixture(scope="module")
def static_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("model2vec", reason="the extra static is not installed")
    from model2vec import StaticModel

    numbers = np.random.default_rng(0).normal(size=(len(VOCABULARY), 8)).astype(np.float32)
    place = tmp_path_factory.mktemp("static")
    StaticModel(numbers, tiny_tokenizer()).save_pretrained(str(place))
    return place


@pytest.fixture(scope="module")
def sentence_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sentence_transformers", reason="the extra sentence is not installed")
    import torch
    from sentence_transformers import SentenceTransformer
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    place, bert = tmp_path_factory.mktemp("sentence"), tmp_path_factory.mktemp("bert")
    names = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=tiny_tokenizer(), model_max_length=8, **names).save_pretrained(bert)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = BertConfig(vocab_size=len(VOCABULARY), max_position_embeddings=8, initializer_range=1.0, **sizes)
        BertModel(config).save_pretrained(bert)
    SentenceTransformer(str(bert), device="cpu").save(str(place))
    return place


def test_model2vec_reads_texts_of_any_length(static_model):
    from model2vec import StaticModel

    model = StaticModel.from_pretrained(static_model)
    texts = ["cat dog", "bank " * 600 + "rain " * 600, "rain sun", ""]
    expected = model.encode(texts, max_length=None)
    for given in (f"model2vec:{static_model}", model):
        np.testing.assert_allclose(TextEncoder.of(given).encode(texts), expected, atol=2e-3)


def test_sentence_transformers_encodes(sentence_model):
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(sentence_model), device="cpu")
    expected = model.encode(["cat dog", "bank rain"], show_progress_bar=False)
    for given in (f"sentence-transformers:{sentence_model}", model):
        np.testing.assert_allclose(TextEncoder.of(given).encode(["cat dog", "bank rain"]), expected, atol=5e-3)


def test_a_long_text_is_the_mean_of_its_pieces(sentence_model, caplog):
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(sentence_model), device="cpu")  # it reads 8 tokens, of which 2 are special
    words = ["cat", "dog", "bank", "market", "rain", "sun", "music", "game", "ship", "team", "prices", "computer"]
    with caplog.at_level(logging.INFO, "topicloom"):
        found = TextEncoder.of(model).encode([" ".join(words)])
    pieces = model.encode([" ".join(words[:6]), " ".join(words[6:])], show_progress_bar=False)
    np.testing.assert_allclose(found[0], pieces.mean(axis=0), atol=5e-3)
    assert "1 text is longer than" in caplog.text
    assert "reads (8 tokens)" in caplog.text


@pytest.mark.parametrize("kind", ["model2vec", "sentence-transformers"])
def test_a_saved_model_loads_its_encoder_by_name(kind, request, tmp_path):
    place = request.getfixturevalue({"model2vec": "static_model", "sentence-transformers": "sentence_model"}[kind])
    model = VectorTM(n_topics=2, epochs=1, random_state=0).fit(DOCUMENTS, encoder=f"{kind}:{place}")
    model.save(tmp_path / "model")
    loaded = tl.load(tmp_path / "model", allow=__name__)
    np.testing.assert_allclose(loaded.transform(NEW), model.transform(NEW), atol=1e-5)
    assert loaded.encoder_.name == f"{kind}:{place}"


@pytest.mark.parametrize("kind", ["model2vec", "sentence-transformers"])
def test_a_missing_model_is_named(kind, tmp_path):
    pytest.importorskip(kind.replace("-", "_"), reason=f"{kind} is not installed")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=f"the encoder {kind}:.*empty cannot be loaded"):
        TextEncoder.of(f"{kind}:{tmp_path / 'empty'}")


def test_without_a_network_the_model_on_the_machine_is_taken(monkeypatch, tmp_path):
    """sentence-transformers itself tries to reach the host again and again, for a minute or more."""
    calls, asked = [], []

    def model(place: str, **options: Any) -> Any:
        calls.append(options)
        raise OSError("there is no such model")

    def connect(address: Any, timeout: float) -> Any:
        asked.append(address)
        raise OSError("Name or service not known")

    monkeypatch.setitem(sys.modules, "sentence_transformers", SimpleNamespace(SentenceTransformer=model))
    monkeypatch.setattr(text_encoders.socket, "create_connection", connect)
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    host = SimpleNamespace(ENDPOINT="http://models.example.org:8080")
    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(constants=host))
    monkeypatch.setitem(sys.modules, "huggingface_hub.constants", host)

    def load(name: Any) -> dict[str, Any]:
        with pytest.raises(InputError, match="cannot be loaded: there is no such model"):
            TextEncoder.of(f"sentence-transformers:{name}")
        return calls.pop()

    assert load("some/name") == {"local_files_only": True}
    assert asked == [("models.example.org", 8080)]
    assert load(tmp_path) == {}  # a directory needs no network
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example.org")
    assert load("some/name") == {}  # a proxy reaches more than this machine does
    monkeypatch.delenv("HTTP_PROXY")
    monkeypatch.setattr(text_encoders.socket, "create_connection", lambda *_: SimpleNamespace(close=lambda: None))
    assert load("some/name") == {}
    assert len(asked) == 1


@pytest.mark.parametrize("kind", ["model2vec", "sentence-transformers"])
def test_without_the_extra_the_message_names_it(kind):
    if text_encoders.find_spec(kind.replace("-", "_")) is not None:
        pytest.skip(f"{kind} is installed")
    extra = {"model2vec": "static", "sentence-transformers": "sentence"}[kind]
    with pytest.raises(MissingExtraError, match=rf"this encoder needs {kind}: pip install 'topicloom\[{extra}\]'"):
        TextEncoder.of(f"{kind}:some/model")
