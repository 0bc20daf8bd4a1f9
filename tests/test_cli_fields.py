"""Models on the command line whose networks read more of a document than its words."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import topicloom as tl
from command_line import MONEY, PETS, call, refused, shown, table

OWN = '''
from dataclasses import dataclass

import torch

import topicloom as tl
from topicloom.nn.encoders import BagEncoder
from topicloom.nn.layers import linear


class Encoder(BagEncoder):
    """An encoder that reads the author, or a vector, besides the words."""

    field = "author"

    def __init__(self, words, n_hidden, generator, **options):
        super().__init__(words.idf, n_hidden, generator, **options)
        self.further = linear(self.size(words), n_hidden, generator)

    def size(self, words):
        return words.field_size("author") + 1

    def first_sums(self, batch, generator):
        one_hot = torch.eye(self.further.in_features, device=self.further.weight.device)
        return super().first_sums(batch, generator) + 9 * self.further(one_hot[batch.fields["author"] + 1])


class VectorEncoder(Encoder):
    field = "vectors"

    def size(self, words):
        return words.field_size("vectors")

    def first_sums(self, batch, generator):
        return BagEncoder.first_sums(self, batch, generator) + self.further(batch.fields["vectors"])


@dataclass(eq=False, repr=False, kw_only=True)
class AuthorTM(tl.ProdLDA):
    encoder_class = Encoder

    def build_encoder(self, words, generator):
        return self.encoder_class(
            words, self.hidden_size, generator, input=self.encoder_input, input_dropout=self.input_dropout,
            output_dropout=self.dropout, activation=self.activation,
        )

    def build_network(self, words, generator):
        network = super().build_network(words, generator)
        network.fields = (self.encoder_class.field,)
        return network


@dataclass(eq=False, repr=False, kw_only=True)
class VectorTM(AuthorTM):
    encoder_class = VectorEncoder
'''
FAST = ("--topics", 2, "--epochs", 3, "--min-df", 1, "--max-df", 1.0, "--monitor", "none", "--no-explorer", "--quiet")
ALLOW = ("--allow", "reads_fields")
N_DOCS = 60


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a module of models, and with a table of documents."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "reads_fields.py").write_text(OWN, "utf-8")
    rows = [
        {"id": f"d{n}", "text": MONEY if n % 2 else PETS, "author": f"a{n % 3}", "price": n / 2} for n in range(N_DOCS)
    ]
    (tmp_path / "news.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return tmp_path


def shares(text: str) -> np.ndarray:
    return np.array([[float(row["topic_0"]), float(row["topic_1"])] for row in table(text)])


def test_new_documents_bring_the_covariates_the_network_reads(place):
    train = ("train", "news.jsonl", "--model", "reads_fields:AuthorTM", "--covariate", "author", *FAST)
    assert call(*train, "--no-documents", "--out", "run").exit_code == 0
    new = [{"text": PETS, "author": author} for author in ("a0", "a1", None)]
    (place / "new.jsonl").write_text("".join(json.dumps(row) + "\n" for row in new), "utf-8")
    found = shares(shown("infer", "run", "new.jsonl", *ALLOW))
    corpus = tl.Corpus.from_texts([PETS] * 3, min_df=1, max_df=1.0, covariates={"author": ["a0", "a1", None]})
    expected = tl.load("run", allow="reads_fields").transform(corpus)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert abs(found[0] - found[1]).max() > 1e-4  # the author is read
    (place / "new.txt").write_text(PETS, "utf-8")
    refused("infer", "run", "new.txt", *ALLOW, says=["the model reads the field 'author' of each document"])
    said = call("evaluate", "run", "new.jsonl", *ALLOW, "--measures", "perplexity_completion", "--json")
    assert said.exit_code == 0, said.output


def numbers() -> np.ndarray:
    """A vector for each document, which says more of its topic than the words do."""
    return np.random.default_rng(0).normal(size=(N_DOCS, 4)) + np.arange(N_DOCS)[:, None] % 2


def test_a_model_that_reads_document_vectors_is_trained_and_used(place):
    vectors = numbers()
    np.save(place / "vectors.npy", vectors)
    train = ("train", "news.jsonl", "--model", "reads_fields:VectorTM", *FAST)
    refused(*train, "--out", "run", says=["the model reads the field 'vectors' of each document"])
    assert call(*train, "--document-vectors", "vectors.npy", "--out", "run").exit_code == 0
    np.testing.assert_array_equal(tl.Corpus.load("run/documents").vectors, vectors.astype(np.float32))

    again = ("train", "--config", "run/train.yaml", "--monitor", "none", "--no-explorer", "--quiet", *ALLOW)
    assert call(*again, "--out", "again").exit_code == 0
    assert tl.load("again", allow="reads_fields").fingerprint == tl.load("run", allow="reads_fields").fingerprint
    evaluated = call("evaluate", "run", *ALLOW, "--measures", "perplexity_bound", "--json")
    assert (evaluated.exit_code, "because" in evaluated.stderr) == (0, False), evaluated.output
    assert call("train", "--continue", "run", "--epochs", "+1", *ALLOW, "--no-explorer", "--quiet").exit_code == 0


@pytest.mark.parametrize("at_once", [7, 100])
def test_new_documents_have_their_own_vectors(place, monkeypatch, at_once):
    monkeypatch.setattr("topicloom.cli.apply._CHUNK", at_once)
    vectors = numbers()
    np.savez(place / "vectors.npz", vectors=vectors, more=[1])
    options = ("--min-df", 1, "--max-df", 1.0, "--quiet")
    assert (
        call("prepare", "news.jsonl", "--document-vectors", "vectors.npz", "--out", "corpus", *options).exit_code == 0
    )
    corpus = tl.Corpus.load("corpus")
    np.testing.assert_array_equal(corpus.vectors, vectors.astype(np.float32))
    fast = [each for each in FAST if each not in ("--min-df", 1, "--max-df", 1.0)]
    assert call("train", "corpus", "--model", "reads_fields:VectorTM", *fast, "--out", "run").exit_code == 0
    theta = tl.load("run", allow="reads_fields").transform(corpus)
    np.save(place / "new.npy", vectors[::-1])
    for source in ("news.jsonl", "corpus"):
        found = shares(shown("infer", "run", source, "--document-vectors", "vectors.npz", *ALLOW))
        np.testing.assert_allclose(found, theta, atol=1e-5)
        other = shares(shown("infer", "run", source, "--document-vectors", "new.npy", *ALLOW))
        assert abs(other - theta).max() > 1e-3
    np.testing.assert_allclose(shares(shown("infer", "run", "corpus", *ALLOW)), theta, atol=1e-5)


@pytest.mark.parametrize(
    ("save", "says"),
    [
        (
            lambda path: np.save(path, np.ones((59, 2))),
            ["v.npy has 59 rows, and news.jsonl has 60 documents; give a row"],
        ),
        (lambda path: np.save(path, np.ones(60)), ["an array of shape (60,); save one row of numbers"]),
        (lambda path: np.save(path, np.full((60, 2), "a")), ["an array of type <U1; save numbers"]),
        (lambda path: np.save(path, np.array([[1, None]] * 60)), ["cannot be read as an array of numbers"]),
        (
            lambda path: np.save(path, np.r_[np.ones((7, 2)), [[1, np.nan]], np.ones((52, 2))]),
            ["row 7 of", "not finite"],
        ),
        (
            lambda path: np.save(path, np.full((60, 2), 1e300)),
            ["row 0 of", "1e+300, which 32-bit floating point cannot hold"],
        ),
        (lambda path: path.write_bytes(b"nothing"), ["cannot be read as an array of numbers"]),
        (lambda path: path.write_bytes(b""), ["cannot be read as an array of numbers"]),
        (lambda path: None, ["v.npy does not exist"]),
    ],
)
def test_vectors_that_cannot_be_used(place, save, says):
    save(place / "v.npy")
    vectors = ("--document-vectors", "v.npy")
    for command in (("prepare", "news.jsonl"), ("train", "news.jsonl", *FAST)):
        refused(*command, *vectors, "--out", "x", says=says)
        assert not (place / "x" / "corpus.json").exists()
        assert not (place / "x" / "model").exists()


def test_files_of_vectors_that_are_refused(place):
    np.savez(place / "v.npz", a=[[1]], b=[[2]])
    np.savez(place / "void.npz")
    (place / "v.txt").write_text("1 2", "utf-8")
    vectors = ("prepare", "news.jsonl", "--out", "x", "--document-vectors")
    refused(*vectors, "v.npz", says=["v.npz has the arrays a, b; name the one to read 'vectors'"])
    refused(*vectors, "void.npz", says=["void.npz has an array of shape (0,)"])
    refused(*vectors, "v.txt", says=["v.txt ends in neither .npy nor .npz; save the vectors with numpy.save"])
    np.save(place / "v.npy", numbers())
    assert call("train", "news.jsonl", *FAST, "--out", "run").exit_code == 0
    refused("infer", "run", "-", "--document-vectors", "v.npy", says=["--document-vectors needs a file"], stdin=PETS)
    more = ("train", "--continue", "run", "--epochs", 1, "--document-vectors", "v.npy")
    refused(*more, says=["leave out --document-vectors"])
    assert call("prepare", "news.jsonl", "--min-df", 1, "--max-df", 1.0, "--out", "corpus").exit_code == 0
    np.save(place / "few.npy", numbers()[1:])
    refused(
        "train", "corpus", "--document-vectors", "few.npy", says=["few.npy has 59 rows, and corpus has 60 documents"]
    )


ENCODER = (
    "def encode(texts):\n    return [[text.count('cat'), text.count('bank'), len(text) / 100, 1] for text in texts]\n"
)


def test_a_named_encoder_gives_all_commands_their_vectors(place):
    (place / "own_encoder.py").write_text(ENCODER, "utf-8")
    named = ("--encoder", "own_encoder:encode")
    options = ("--min-df", 1, "--max-df", 1.0, "--quiet")
    assert call("prepare", "news.jsonl", *named, "--out", "made/corpus", "--no-texts", *options).exit_code == 0
    corpus = tl.Corpus.load("made/corpus")
    assert (corpus.texts, corpus.encoder.name, corpus.vectors.shape) == (None, "own_encoder:encode", (N_DOCS, 4))
    assert [entry.is_dir() for entry in (place / "made/.vectors").iterdir()] == [True]

    train = ("train", "news.jsonl", "--model", "reads_fields:VectorTM", *FAST)
    assert call(*train, *named, "--encoder-cache", "cache", "--out", "run").exit_code == 0
    assert (place / "cache").is_dir()
    again = ("train", "--config", "run/train.yaml", "--monitor", "none", "--no-explorer", "--quiet", *ALLOW)
    assert call(*again, "--out", "again").exit_code == 0
    assert tl.load("again", allow="reads_fields").fingerprint == tl.load("run", allow="reads_fields").fingerprint

    says = ["whose code would be run; give --allow own_encoder if you trust it"]
    refused("infer", "run", "news.jsonl", *ALLOW, says=says)
    found = shares(shown("infer", "run", "news.jsonl", *ALLOW, "--allow", "own_encoder"))
    np.testing.assert_allclose(found, shares(shown("infer", "run", "made/corpus", *ALLOW)), atol=1e-6)
    np.testing.assert_array_equal(found, shares(shown("infer", "run", "news.jsonl", *ALLOW, *named)))
    evaluated = call("evaluate", "run", *ALLOW, "--measures", "perplexity_bound", "--json")
    assert (evaluated.exit_code, "because" in evaluated.stderr) == (0, False), evaluated.output


def test_a_cache_without_an_encoder_is_refused(place):
    assert call("prepare", "news.jsonl", "--min-df", 1, "--quiet", "--out", "corpus").exit_code == 0
    says = ["--encoder-cache keeps the vectors of an --encoder; give that, too, or leave it out"]
    for command in (("train",), ("compare",), ("select-topics",), ("tune",)):
        for source in ("news.jsonl", "corpus"):
            refused(*command, source, "--encoder-cache", "cache", "--out", "new", says=says)
    refused("prepare", "news.jsonl", "--encoder-cache", "cache", "--out", "new", says=says)


def test_an_encoder_and_a_file_of_vectors_exclude_each_other(place):
    (place / "own_encoder.py").write_text(ENCODER, "utf-8")
    np.save(place / "v.npy", numbers())
    both = ("--encoder", "own_encoder:encode", "--vectors", "v.npy")
    refused("train", "news.jsonl", *both, says=["--document-vectors and --encoder both give vectors"])
    compare = ("compare", "news.jsonl", "--models", "lda", "--topics", 2)
    refused(*compare, *both, says=["--document-vectors and --encoder both give vectors"])


def bound(*options):
    done = call("evaluate", "run", *ALLOW, "--measures", "perplexity_bound", "--json", *options)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)["measures"]["perplexity_bound"]["value"]


def test_new_documents_are_measured_with_vectors_as_they_are_inferred(place):
    (place / "own_encoder.py").write_text(ENCODER, "utf-8")
    names = {}
    exec(ENCODER, names)
    rows = [{"text": MONEY if n % 2 else PETS, "author": "a0"} for n in range(30)]
    (place / "new.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    texts = [row["text"] for row in rows]
    given = np.array(names["encode"](texts), np.float16)
    np.save(place / "given.npy", given)
    np.save(place / "other.npy", given[::-1] + 3)
    known = np.array(names["encode"]([MONEY if n % 2 else PETS for n in range(N_DOCS)]), np.float16)
    np.save(place / "v.npy", known)  # so that the model does not know its encoder
    train = ("train", "news.jsonl", "--model", "reads_fields:VectorTM", *FAST)
    assert call(*train, "--vectors", "v.npy", "--out", "run").exit_code == 0
    encoder = ("--encoder", "own_encoder:encode")

    found = bound("new.jsonl", "--vectors", "given.npy")
    assert bound("new.jsonl", *encoder) == pytest.approx(found, rel=1e-6)
    assert abs(bound("new.jsonl", "--vectors", "other.npy") / found - 1) > 1e-4
    model = tl.load("run", allow="reads_fields")
    for options in ({"vectors": given}, {"encoder": names["encode"]}):
        said = tl.evaluate(model, texts, measures=["perplexity_bound"], **options)["perplexity_bound"]
        assert said == pytest.approx(found, rel=1e-6)
        theta = model.infer(texts, **options).theta
        np.testing.assert_allclose(theta, shares(shown("infer", "run", "new.jsonl", *ALLOW, *encoder)), atol=1e-5)

    both = ("--vectors", "given.npy", *encoder)
    for command in ("evaluate", "infer"):
        use = (command, "run", "new.jsonl", *ALLOW)
        refused(*use, *both, says=["--document-vectors and --encoder both give vectors"])
        refused(*use, "--vectors", "v.npy", says=["v.npy has 60 rows, and new.jsonl has 30 documents"])
        np.save(place / "long.npy", np.ones((30, 5)))
        refused(*use, "--vectors", "long.npy", says=["5 numbers", "4"])
    refused("evaluate", "run", *ALLOW, "--vectors", "v.npy", says=["needs the new documents"])
    words = ("evaluate", "run", "new.jsonl", *ALLOW, "--vectors", "glove.txt")
    refused(*words, says=["glove.txt ends in neither .npy nor .npz", "--word-vectors"])
    (place / "other_encoder.py").write_text(ENCODER.replace(", 1]", "]"), "utf-8")
    other = ("evaluate", "run", "new.jsonl", *ALLOW, "--encoder", "other_encoder:encode")
    refused(*other, says=["had 4 numbers, and those of other_encoder:encode have 3"])
    for options in ({"vectors": given, "encoder": names["encode"]}, {"vectors": given[1:]}):
        with pytest.raises(tl.InputError):
            model.infer(texts, **options)
