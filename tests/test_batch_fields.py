"""Fields of the documents reach the network that asks for them, in training and in inference, row by row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor

from topicloom import Corpus, NeuralTopicModel
from topicloom.errors import InputError
from topicloom.experiments.protocol import require_same_documents, split_documents
from topicloom.models.words import Words
from topicloom.nn.batch import Batch
from topicloom.nn.decoders import FreeTopics, MixtureDecoder
from topicloom.nn.layers import linear
from topicloom.nn.network import AutoencoderNetwork, Loss
from topicloom.nn.posteriors import PointPosterior
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
        self.head = linear(3, settings.n_topics, generator)
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
