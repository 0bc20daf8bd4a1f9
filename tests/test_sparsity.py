"""With a sparsity, the number of topics differs between documents as far as the texts do."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from topicloom.models import DirichletVAE
from topicloom.nn.dirichlet_posteriors import SparsePosterior
from topicloom.training.batches import BatchReader

N_DOCS, N_TOPICS, N_WORDS = 600, 8, 160
N_PLANTED = np.repeat([1, 4], N_DOCS // 2)  # topics of each document


def planted():
    """Return counts (600, 160) of documents with one or four of eight topics, which share no words."""
    random = np.random.default_rng(0)
    topics = np.kron(np.eye(N_TOPICS), random.dirichlet(np.ones(N_WORDS // N_TOPICS)))
    theta = np.zeros((N_DOCS, N_TOPICS))
    for document, n in enumerate(N_PLANTED):
        theta[document, random.choice(N_TOPICS, n, replace=False)] = 1 / n
    return np.stack([random.multinomial(60, p) for p in theta @ topics]).astype(np.float32)


def n_present(model, counts):
    documents = BatchReader.of(model.documents(counts), N_DOCS, torch.device("cpu"), ())
    with torch.inference_mode():
        posterior = model.network_.posterior(next(iter(documents)))
    assert isinstance(posterior, SparsePosterior)
    return posterior.n_present().numpy()


@pytest.mark.parametrize("code_norm", ["mean", "fixed"])
def test_documents_of_more_topics_have_more_topics(code_norm):
    counts = planted()
    model = DirichletVAE(N_TOPICS, sparsity=0.3, epochs=20, hidden_size=32, random_state=0, device="cpu")
    found = n_present(model.set_params(code_norm=code_norm).fit(counts), counts)
    few, many = found[N_PLANTED == 1].mean(), found[N_PLANTED == 4].mean()
    assert many - few > 1
    last = model.history_[-1]
    assert last["topics_per_document"] == pytest.approx(found.mean(), rel=0.01)
    assert last["topics_per_document_deviation"] == pytest.approx(found.std(), rel=0.01)


def test_only_sparse_models_have_the_columns():
    model = DirichletVAE(N_TOPICS, epochs=1, hidden_size=8, random_state=0, device="cpu").fit(planted()[:50])
    assert not [name for name in model.history_[-1] if name.startswith("topics_per_document")]
