"""The same models on a GPU; skipped where there is none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import topicloom as tl
from topicloom.nn.sparse import bag_product, mixture_log_likelihood
from topicloom.training.batches import sparse_batch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.fixture(scope="module")
def corpus() -> tl.Corpus:
    return tl.datasets.synthetic_lda(600, 5, 100, random_state=0).corpus


def test_products_agree_with_the_cpu(corpus: tl.Corpus) -> None:
    rows = np.arange(50)
    generator = torch.Generator().manual_seed(0)
    theta = torch.softmax(torch.randn(50, 7, generator=generator), 1)
    beta_t = torch.softmax(torch.randn(100, 7, generator=generator), 0)
    results = []
    for device in ("cpu", "cuda"):
        batch = sparse_batch(corpus.counts, rows, torch.device(device)).counts
        left = theta.to(device).detach().requires_grad_()
        right = beta_t.to(device).detach().requires_grad_()
        (mixture_log_likelihood(left, right, batch).sum() + bag_product(right, batch.values, batch).sum()).backward()
        results.append((left.grad.cpu(), right.grad.cpu()))
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [(tl.GSM, {}), (tl.ProdLDA, {}), (tl.BATM, {}), (tl.GSM, {"decoder": "mlp"}), (tl.GSM, {"criterion": "bernoulli"})],
)
def test_a_model_trained_on_the_gpu_reads_on_the_cpu(
    corpus: tl.Corpus, tmp_path: Path, kind: type[tl.TopicModel], settings: dict[str, str]
) -> None:
    model = kind(5, epochs=5, random_state=0, device="cuda", **settings).fit(corpus)
    assert next(model.network_.parameters()).is_cuda
    model.save(tmp_path / "model")
    loaded = tl.load(tmp_path / "model", device="cpu")
    np.testing.assert_allclose(loaded.transform(corpus), model.transform(corpus), atol=1e-4)
    assert np.isfinite(model.perplexity(corpus, "completion"))


def test_topics_counted_on_the_gpu_read_on_the_cpu(corpus: tl.Corpus, tmp_path: Path) -> None:
    model = tl.Loom(5, epochs=20, background_topics=0.4, random_state=0, device="cuda").fit(corpus)
    assert model.network_.counting.background.sum() == 2
    assert model.network_.counting.beta_t.is_cuda
    model.save(tmp_path / "model")
    loaded = tl.load(tmp_path / "model", device="cpu")
    np.testing.assert_allclose(loaded.transform(corpus), model.transform(corpus), atol=1e-4)


@pytest.mark.parametrize("epochs", [1, 2, 4])
def test_spare_topics_are_pruned_on_the_gpu(epochs: int, corpus: tl.Corpus) -> None:
    """After pretraining alone, after a single pass of counting, and between passes."""
    model = tl.Loom(5, epochs=epochs, random_state=0, device="cuda").fit(corpus)
    assert model.components_.shape[0] == 5
    assert model.transform(corpus).shape[1] == 5


def test_lda_reads_on_the_gpu(corpus: tl.Corpus) -> None:
    on_cpu = tl.LDA(5, epochs=2, random_state=0, device="cpu").fit(corpus)
    on_gpu = tl.LDA(5, epochs=2, random_state=0, device="cuda").fit(corpus)
    np.testing.assert_allclose(on_gpu.transform(corpus), on_cpu.transform(corpus), atol=1e-2)


def test_partial_fit_goes_on_on_the_gpu(corpus: tl.Corpus) -> None:
    model = tl.GSM(5, random_state=0, device="cuda").partial_fit(corpus).partial_fit(corpus)
    assert len(model.history_) == 2
