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


def test_new_documents_of_a_file_have_the_covariates_that_a_network_reads(place):
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
