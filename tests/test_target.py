"""What the loss of the neural models reconstructs: counts, or counts weighted by tf-idf."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.feature_extraction.text import TfidfTransformer

from topicloom import BATM, ETM, GMNTM, GSM, NVDM, NVLDA, WLDA, Corpus, DirichletVAE, Loom, ProdLDA, load
from topicloom.errors import SettingError
from topicloom.models.neural import NeuralTopicModel
from topicloom.nn.encoders import tfidf_counts
from topicloom.training.batches import sparse_batch

DENSE = np.random.default_rng(0).poisson(np.geomspace(3, 0.05, 30), (120, 30))
DENSE[:, 0] += 1  # a word that is in every document
CORPUS = Corpus.from_counts(sp.csr_array(DENSE), [f"word{word}" for word in range(30)])
SETTINGS = {"epochs": 3, "batch_size": 30, "hidden_size": 8, "random_state": 0, "device": "cpu"}
MODELS = [BATM, DirichletVAE, ETM, GMNTM, GSM, NVDM, NVLDA, ProdLDA, WLDA]


def by_scikit_learn() -> np.ndarray:
    """The weighted counts by scikit-learn, with the totals of the documents."""
    return TfidfTransformer(norm="l1").fit_transform(DENSE).toarray() * DENSE.sum(1, keepdims=True)


def batch():
    return sparse_batch(CORPUS.counts, np.arange(len(DENSE)), torch.device("cpu"))


def started(kind, **settings):
    """A network before its first step."""
    model = kind(4, **SETTINGS, **settings)
    model._begin(CORPUS, None)
    return model._start(for_fit=True).network


def test_weights_are_those_of_scikit_learn():
    counts, idf = batch().counts, started(GSM).encoder.idf
    weighted = tfidf_counts(counts, idf)
    np.testing.assert_allclose(weighted.to_dense(), by_scikit_learn(), rtol=1e-5)
    np.testing.assert_allclose(weighted.totals, DENSE.sum(1), rtol=1e-5)
    right = torch.rand(len(DENSE), 3)
    product = weighted.transposed_times(weighted.values, right)
    np.testing.assert_allclose(product, by_scikit_learn().T @ right.numpy(), rtol=1e-4)
    np.testing.assert_array_equal(counts.to_dense(), DENSE)


def test_a_document_without_words():
    corpus = Corpus.from_counts(sp.csr_array(np.array([[0, 0], [1, 2]])), ["a", "b"])
    counts = sparse_batch(corpus.counts, np.arange(2), torch.device("cpu")).counts
    np.testing.assert_allclose(tfidf_counts(counts, torch.ones(2)).to_dense(), [[0, 0], [1, 2]])


@pytest.mark.parametrize("kind", MODELS)
def test_the_loss_scores_the_weighted_counts(kind, monkeypatch):
    network = started(kind, target="tfidf").on(torch.device("cpu"), 0)
    seen = []
    score = network.decoder.score

    def watched(theta, counts, criterion):
        seen.append(counts.to_dense())
        return score(theta, counts, criterion)

    monkeypatch.setattr(network.decoder, "score", watched)
    network.train().loss(batch())
    assert seen
    for dense in seen:
        np.testing.assert_allclose(dense, by_scikit_learn(), rtol=1e-5)


@pytest.mark.parametrize("kind", MODELS)
def test_a_word_of_every_document_has_less_weight_in_topics(kind):
    settings = SETTINGS | {"epochs": 20, "background": False}
    if kind is NVDM:
        settings["rotation"] = "none"  # corners are found anew in each fit, and are farther away in one than in another
    counts, tfidf = (kind(4, target=target, **settings).fit(CORPUS) for target in ("counts", "tfidf"))
    assert tfidf.components_[:, 0].mean() < counts.components_[:, 0].mean()


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("method", ["bound", "completion"])
def test_perplexity_is_that_of_the_counts(kind, method):
    model = kind(4, target="tfidf", **SETTINGS).fit(CORPUS)
    perplexity = model.perplexity(CORPUS, method=method)
    model.network_.target = "counts"
    assert model.perplexity(CORPUS, method=method) == perplexity


def test_a_loaded_model_keeps_its_target(tmp_path):
    GSM(4, target="tfidf", **SETTINGS).fit(CORPUS).save(tmp_path / "model")
    again = load(tmp_path / "model", device="cpu").partial_fit(CORPUS)
    assert again.network_.target == "tfidf"


def test_targets_that_cannot_be():
    with pytest.raises(SettingError, match="`target` of Loom should be 'counts'; it is 'tfidf'"):
        Loom(4, target="tfidf").fit(CORPUS)
    model = GSM(4, **SETTINGS).fit(CORPUS)
    topics = model.components_
    with pytest.raises(SettingError, match="`criterion='bernoulli'` reads no weights of words, so `target`"):
        model.set_params(target="tfidf", criterion="bernoulli").fit(CORPUS)
    assert model.components_ is topics  # an earlier fit is kept


def test_a_network_that_has_no_target():
    @dataclasses.dataclass(eq=False, repr=False, kw_only=True)
    class Other(NeuralTopicModel):
        def build_network(self, words, generator):
            return torch.nn.Linear(1, 1)

    with pytest.raises(SettingError, match="the loss of Other has no `target='tfidf'`; use 'counts'"):
        Other(4, target="tfidf", device="cpu").fit(CORPUS)
