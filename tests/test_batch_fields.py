"""Fields of the documents reach the network that asks for them, in training and in inference, row by row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor

import topicloom as tl
from topicloom import Corpus, NeuralTopicModel
from topicloom.errors import InputError
from topicloom.experiments.protocol import require_same_documents, split_documents
from topicloom.models.words import Words
from topicloom.nn.decoders import FreeTopics, MixtureDecoder
from topicloom.nn.layers import linear
from topicloom.nn.network import AutoencoderNetwork, Loss
from topicloom.nn.posteriors import PointPosterior
from topicloom.nn.sparse import Batch
from topicloom.training.batches import BatchReader

N_DOCS = 90
RANDOM = np.random.default_rng(0)
GROUP = RANDOM.integers(0, 3, N_DOCS)  # what a document is about, which only its vector says
VECTORS = np.eye(3, dtype=np.float32)[GROUP]
COUNTS = RANDOM.poisson(0.2 + 5 * np.kron(np.eye(3), np.ones((1, 4)))[GROUP])
COUNTS[:, 0] += 1  # no document is empty


class VectorNetwork(AutoencoderNetwork):
    """theta = softmax(A v), v being the document's vector: the words are not read at all."""

    fields = ("vectors", "source")

    def __init__(self, settings: VectorTM, words: Words, generator: torch.Generator) -> None:
        topics = FreeTopics(settings.background_logits(words), settings.n_topics, generator)
        encoder = settings.build_encoder(words, generator)
        super().__init__(MixtureDecoder(topics), encoder, settings.build_separation_term(words))
        self.head = linear(words.field_size("vectors"), settings.n_topics, generator)
        self.n_sources = words.field_size("source")
        self.seen: list[Batch] = []

    def posterior(self, batch: Batch) -> PointPosterior:
        self.seen.append(batch)
        return PointPosterior(torch.softmax(self.head(batch.fields["vectors"]), dim=1))

    def loss(self, batch: Batch) -> Loss:
        theta = self.posterior(batch).point()  # (B, K)
        return Loss(-self.decoder.log_likelihood(theta, batch.counts), torch.zeros(batch.n_docs))

    def prior_theta(self) -> Tensor:
        return torch.full((self.head.out_features,), 1 / self.head.out_features)


@dataclass(eq=False, repr=False, kw_only=True)
class VectorTM(NeuralTopicModel):
    """Topics from document vectors."""

    def build_network(self, words: Words, generator: torch.Generator) -> VectorNetwork:
        return VectorNetwork(self, words, generator)


def corpus(**fields: object) -> Corpus:
    return Corpus.from_counts(COUNTS, **fields)


def test_a_network_reads_the_fields_that_it_names():
    source = ["web", "print"] * 45
    whole = corpus(vectors=VECTORS, covariates={"source": source})
    model = VectorTM(n_topics=3, epochs=30, batch_size=30, random_state=0).fit(whole)
    for batch in model.network_.seen:
        rows = batch.rows.numpy()
        np.testing.assert_array_equal(batch.fields["vectors"].numpy(), VECTORS[rows])
        assert [("print", "web")[code] for code in batch.fields["source"].tolist()] == [source[row] for row in rows]
    theta = model.transform(whole)
    assert [len(set(theta[group == GROUP].argmax(1))) for group in range(3)] == [1, 1, 1]
    np.testing.assert_array_equal(model.transform(whole[[5, 2]]), theta[[5, 2]])


@pytest.mark.parametrize("fields", [{}, {"vectors": VECTORS}, {"covariates": {"source": ["x"] * N_DOCS}}])
def test_documents_without_such_a_field_are_refused(fields):
    with pytest.raises(InputError, match=r"reads the field '(vectors|source)'"):
        VectorTM(n_topics=3, epochs=1).fit(corpus(**fields))


@pytest.fixture(scope="module")
def fitted() -> VectorTM:
    covariates = {"source": ["web", "print", "radio"] * 30}
    return VectorTM(n_topics=3, epochs=30, batch_size=30, random_state=0).fit(
        corpus(vectors=VECTORS, covariates=covariates)
    )


def codes_in(model: VectorTM, documents: Corpus) -> list[int]:
    """Return the codes of the sources that the network reads in inference."""
    model.network_.seen.clear()
    model.transform(documents)
    return torch.cat([batch.fields["source"] for batch in model.network_.seen]).tolist()


def test_new_documents_have_the_codes_of_the_training_documents(fitted, caplog, tmp_path):
    assert fitted.network_.n_sources == 3
    new = corpus(vectors=VECTORS, covariates={"source": ["web", "radio", None] * 30})  # "print" does not occur
    fitted.save(tmp_path / "model")
    for model in (fitted, tl.load(tmp_path / "model", allow=[__name__])):
        assert codes_in(model, new) == [2, 1, -1] * 30
    assert codes_in(fitted, new[[1, 2]]) == [1, -1]
    assert codes_in(fitted, corpus(vectors=VECTORS, covariates={"source": [None] * N_DOCS})) == [-1] * N_DOCS
    assert not caplog.messages
    assert codes_in(fitted, corpus(vectors=VECTORS, covariates={"source": ["blog", "web"] * 45})) == [-1, 2] * 45
    message = (
        "the covariate 'source' has values that no training document has, which the model takes as unknown: 'blog'"
    )
    assert caplog.messages == [message]


def test_validation_has_the_codes_of_the_training_documents():
    whole = corpus(vectors=VECTORS, covariates={"source": ["print", "web"] * 45})
    model = VectorTM(n_topics=3, epochs=1, random_state=0)
    model.fit(whole, validation=corpus(vectors=VECTORS, covariates={"source": ["web"] * N_DOCS}))
    codes = [batch.fields["source"].tolist() for batch in model.network_.seen if not model.network_.training]
    assert sum(len(part) for part in codes if 0 not in part) == N_DOCS


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"vectors": VECTORS[:, :2], "covariates": {"source": ["web"] * N_DOCS}},
            "have 2 numbers, and those of the tr",
        ),
        ({"vectors": VECTORS, "covariates": {"source": [1.5] * N_DOCS}}, "'source' has numbers, but categories in the"),
    ],
)
def test_documents_with_fields_of_another_kind_are_refused(fitted, fields, message):
    with pytest.raises(InputError, match=message):
        fitted.transform(corpus(**fields))


def test_categories_in_place_of_numbers_are_refused():
    model = VectorTM(n_topics=3, epochs=1).fit(corpus(vectors=VECTORS, covariates={"source": [1.5] * N_DOCS}))
    assert model.network_.n_sources == 1
    with pytest.raises(InputError, match="'source' has categories, but numbers in the training documents"):
        model.transform(corpus(vectors=VECTORS, covariates={"source": ["web"] * N_DOCS}))


@pytest.mark.parametrize("needs_words", [True, False])
def test_a_network_can_infer_documents_without_words(fitted, needs_words, monkeypatch):
    monkeypatch.setattr(fitted.network_, "needs_words", needs_words)
    covariates = {"source": ["web", "print", "radio"] * 30}
    whole = corpus(vectors=VECTORS, covariates=covariates)
    theta = fitted.transform(whole)
    found = fitted.infer(Corpus.from_counts(0 * COUNTS, vectors=VECTORS, covariates=covariates))
    expected = np.full_like(theta, 1 / 3) if needs_words else theta
    np.testing.assert_allclose(found.theta, expected, rtol=1e-6)
    assert found.empty.all() == needs_words == found.empty.any()
    merged = fitted.merge([0, 1]).infer(Corpus.from_counts(0 * COUNTS, vectors=VECTORS, covariates=covariates))
    np.testing.assert_allclose(merged.theta[:, 0], expected[:, :2].sum(1), rtol=1e-5)


def test_readers_keep_fields_through_splits_and_samples():
    whole = corpus(vectors=VECTORS)
    reader = BatchReader.of(whole, 20, torch.device("cpu"), ["vectors"]).without_empty()
    kept, validation = reader.split(0.2, torch.Generator().manual_seed(0))
    for part in (kept, validation):
        for batch in [*part, *part.chunks(), part.sample(5)]:
            np.testing.assert_array_equal(batch.fields["vectors"].numpy(), VECTORS[batch.rows.numpy()])


def test_a_fit_goes_on_with_the_fields_that_it_had(tmp_path):
    model, source = VectorTM(n_topics=3, epochs=2, random_state=0), {"source": ["web", "print"] * 45}
    whole, other = (corpus(vectors=vectors, covariates=source) for vectors in (VECTORS, -VECTORS))
    for _ in range(2):
        model.fit(whole, validation=whole[:9], checkpoint=tmp_path / "fit")
    for documents, validation in ((other, whole[:9]), (whole, other[:9])):
        with pytest.raises(InputError, match="other values of the documents' field 'vectors"):
            model.fit(documents, validation=validation, checkpoint=tmp_path / "fit")


@pytest.mark.parametrize("split", [None, "source", "parts"])
def test_comparisons_go_on_with_the_fields_that_they_had(split):
    plans = []
    for vectors, price in ((VECTORS, 1), (-VECTORS, 1), (VECTORS, 2)):
        covariates = {"source": ["train", "test", "validation"] * (N_DOCS // 3), "price": [price] * N_DOCS}
        made = corpus(vectors=vectors, covariates=covariates)
        plans.append(split_documents(made, (made[:50], made[50:70], made[70:]) if split == "parts" else split)[1])
    first, *others = plans
    require_same_documents(first, first, "runs/compare has a comparison")
    require_same_documents({"corpus": first["corpus"], "split": first["split"]}, first, "of an earlier version")
    for other in others:
        with pytest.raises(InputError, match="runs/compare has a comparison with other vectors"):
            require_same_documents(first, other, "runs/compare has a comparison")
