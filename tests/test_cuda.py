"""The same models on a GPU; skipped where there is none."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import topicloom as tl
from batches import dense_of, sparse_batch
from histories import Keeper
from topicloom.models.loom.cvb0 import CountedTopics
from topicloom.models.loom.sampling import Draws, sample_plain
from topicloom.nn.network import VariationalNetwork
from topicloom.nn.sparse import bag_product, mixture_log_likelihood
from topicloom.training import loop
from topicloom.training.batches import BatchReader

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

CUDA = torch.device("cuda")
KINDS: dict[str, tuple[type[tl.NeuralTopicModel], dict[str, Any]]] = {
    "BATM": (tl.BATM, {}),
    "DirichletVAE icdf": (tl.DirichletVAE, {"estimator": "icdf"}),
    "DirichletVAE implicit": (tl.DirichletVAE, {"estimator": "implicit"}),
    "DirichletVAE laplace": (tl.DirichletVAE, {"estimator": "laplace"}),
    "DirichletVAE rsvi": (tl.DirichletVAE, {"estimator": "rsvi"}),
    "DirichletVAE sparse": (tl.DirichletVAE, {"sparsity": 0.5}),
    "DirichletVAE weibull": (tl.DirichletVAE, {"estimator": "weibull"}),
    "ETM": (tl.ETM, {"embedding_size": 8}),
    "GMNTM": (tl.GMNTM, {"pretrain_epochs": 2}),
    "GSM": (tl.GSM, {}),
    "GSM bernoulli": (tl.GSM, {"criterion": "bernoulli"}),
    "GSM mlp": (tl.GSM, {"decoder": "mlp"}),
    "GSM tf-idf": (tl.GSM, {"target": "tfidf"}),
    "GaussianBATM": (tl.GaussianBATM, {"embedding_size": 8}),
    "LDA": (tl.LDA, {"method": "variational"}),
    "Loom": (tl.Loom, {"epochs": 20, "background_topics": 0.4}),
    "NVDM": (tl.NVDM, {}),
    "NVLDA": (tl.NVLDA, {}),
    "ProdLDA": (tl.ProdLDA, {}),
    "WLDA gaussian": (tl.WLDA, {"prior": "gaussian"}),
    "WLDA gmm-ctm": (tl.WLDA, {"prior": "gmm-ctm"}),
    "WLDA": (tl.WLDA, {}),
}


def make(name: str, **settings: Any) -> tl.NeuralTopicModel:
    kind, own = KINDS[name]
    return kind(5, **{"epochs": 5, "random_state": 0, "device": "cuda", "batch_size": 100, **own, **settings})


@pytest.fixture(scope="module")
def corpus() -> tl.Corpus:
    return tl.datasets.synthetic_lda(600, 5, 100, random_state=0).corpus


@pytest.fixture(scope="module", params=KINDS)
def fitted(request, corpus: tl.Corpus) -> tl.NeuralTopicModel:
    return make(request.param).fit(corpus)


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


def test_topics_of_tokens_are_those_of_the_cpu(corpus: tl.Corpus) -> None:
    """Random numbers are a function of the document and the token, so that both draw the same."""
    rows, n_topics = np.arange(200), 7
    generator = torch.Generator().manual_seed(0)
    batch = sparse_batch(corpus.counts, rows, torch.device("cpu")).counts
    tokens = batch.values.long()
    lengths = batch.sum_by_document(batch.values).long()
    starts = torch.cat([torch.zeros(1, dtype=torch.long), lengths.cumsum(0)[:-1]])
    seeds = torch.randint(2**62, (200,), generator=generator)
    assigned = torch.randint(n_topics, (int(lengths.sum()),), generator=generator)
    word_topics = 100 * torch.rand(corpus.counts.shape[1], n_topics, generator=generator)
    found = []
    for device in ("cpu", "cuda"):
        counts = sparse_batch(corpus.counts, rows, torch.device(device)).counts
        draws = Draws(*(each.to(device) for each in (tokens, torch.ones(len(tokens)), seeds, starts)))
        topics = CountedTopics.from_counts(word_topics.to(device), 0.1)
        own, sums = assigned.clone().to(device), torch.zeros_like(word_topics, device=device)
        alpha = torch.full((n_topics,), 0.1, device=device)
        documents = sample_plain(counts, draws, own, topics, alpha, sums)
        found.append((own.cpu(), documents.cpu(), sums.cpu()))
    (on_cpu, _, _), (on_gpu, documents, words) = found
    assert (on_cpu != on_gpu).double().mean() < 1e-3  # where rounding decides
    torch.testing.assert_close(documents.sum(1), lengths.float())
    torch.testing.assert_close(words.sum(), lengths.sum().float())


def test_a_model_trained_on_the_gpu_reads_on_the_cpu(
    fitted: tl.NeuralTopicModel, corpus: tl.Corpus, tmp_path: Path
) -> None:
    assert all(each.is_cuda for each in fitted.network_.parameters())
    assert all(np.isfinite(value).all() for row in fitted.history_ for value in row.values())
    fitted.save(tmp_path / "model")
    loaded = tl.load(tmp_path / "model", device="cpu")
    np.testing.assert_allclose(loaded.components_, fitted.components_, atol=1e-5)
    np.testing.assert_allclose(loaded.transform(corpus), fitted.transform(corpus), atol=1e-3)
    ours, theirs = (model.perplexity(corpus, "completion") for model in (fitted, loaded))
    assert ours == pytest.approx(theirs, rel=1e-3)
    assert np.isfinite(ours)


@pytest.mark.parametrize("name", ["GSM", "ETM", "ProdLDA", "WLDA", "GMNTM", "Loom", "DirichletVAE weibull"])
def test_topics_are_found_as_on_the_cpu(name: str) -> None:
    """Two fits with other random numbers: what they have learned is equally good."""
    planted = tl.datasets.synthetic_lda(1500, 5, 200, doc_length=60, random_state=1).corpus
    found = []
    for device in ("cpu", "cuda"):
        model = make(name, device=device, epochs=40, batch_size=100).fit(planted[:1200])
        found.append(model.perplexity(planted[1200:], "completion"))
    assert found[1] == pytest.approx(found[0], rel=0.05)


def test_a_fit_is_repeated_on_the_gpu(corpus: tl.Corpus) -> None:
    one, two = (make("GSM").fit(corpus) for _ in range(2))
    np.testing.assert_allclose(one.components_, two.components_, rtol=0.02, atol=1e-4)


def test_topics_counted_on_the_gpu_stay_there(corpus: tl.Corpus) -> None:
    model = make("Loom").fit(corpus)
    assert model.network_.counting.background.sum() == 2
    assert model.network_.counting.beta_t.is_cuda


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


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(("first", "device"), [("cuda", "cuda"), ("cuda", "cpu"), ("cpu", "cuda")])
def test_a_run_goes_on_from_a_checkpoint(name: str, first: str, device: str, corpus: tl.Corpus) -> None:
    """On the GPU nearly as if it had never stopped, and on another device, too."""
    keeper = Keeper()
    whole = make(name, device=first).fit(corpus, callbacks=[keeper])
    model = make(name, device=device).fit(corpus, resume_from=keeper.snapshots[len(keeper.snapshots) // 2])
    assert len(model.history_) == len(whole.history_)
    if first == device and name in ("GSM", "ETM", "WLDA gaussian"):
        np.testing.assert_allclose(model.components_, whole.components_, rtol=0.05, atol=1e-3)


def test_held_out_documents_end_training(corpus: tl.Corpus) -> None:
    model = make("GSM", epochs=200, patience=2, learning_rate=0.02).fit(corpus)
    assert len(model.history_) < 200


@pytest.fixture
def steps_that_wait(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every place where a step of gradient descent makes the processor wait for the GPU."""
    found: list[str] = []
    move = loop._take_step

    def watched(*arguments: Any) -> Any:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            torch.cuda.set_sync_debug_mode("warn")
            try:
                return move(*arguments)
            finally:
                torch.cuda.set_sync_debug_mode("default")
                found.extend(
                    f"{each.filename}:{each.lineno}" for each in seen if "called a synchronizing" in str(each.message)
                )

    monkeypatch.setattr("topicloom.training.loop._take_step", watched)
    return found


@pytest.mark.parametrize("name", [name for name in KINDS if "BATM" not in name and name not in ("LDA", "Loom")])
def test_no_step_waits_for_the_gpu(name: str, corpus: tl.Corpus, steps_that_wait: list[str]) -> None:
    make(name).fit(corpus)
    assert not set(steps_that_wait)


@pytest.mark.parametrize("at_step", [1, 8])
def test_what_is_not_finite_is_noticed(at_step: int, corpus: tl.Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    original, calls = VariationalNetwork.loss, []

    def spoiled(network: VariationalNetwork, batch: Any) -> Any:
        calls.append(network.training)
        loss = original(network, batch)
        return replace(loss, reconstruction=loss.reconstruction * (math.nan if sum(calls) == at_step else 1))

    monkeypatch.setattr(VariationalNetwork, "loss", spoiled)
    with pytest.raises(tl.TrainingDivergedError, match=f"epoch {1 + at_step // 8}, batch .: the loss is not finite"):
        make("GSM").fit(corpus)


def test_too_little_memory_is_one_sentence(corpus: tl.Corpus) -> None:
    wide = tl.datasets.synthetic_lda(4000, 5, 20_000, doc_length=100, random_state=0).corpus
    torch.cuda.empty_cache()
    taken = torch.cuda.memory_reserved()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((taken + (300 << 20)) / total)
    try:
        with pytest.raises(tl.OutOfMemoryError, match=r"cuda.* has too little memory") as caught:
            tl.ProdLDA(5, random_state=0, device="cuda", batch_size=4000, epochs=1).fit(wide)
        assert "\n" not in str(caught.value)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
        torch.cuda.empty_cache()
    assert np.isfinite(make("GSM").fit(corpus).components_).all()


@pytest.mark.parametrize("resident", [True, False])
def test_reading_batches_never_waits_for_the_gpu(
    resident: bool, corpus: tl.Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not resident:
        monkeypatch.setattr("topicloom.training.batches.room", lambda device: 0.0)
    reader = BatchReader.of(corpus, 100, CUDA)
    order = torch.randperm(600, generator=torch.Generator().manual_seed(0))
    next(reader.ordered(order))  # copies the counts, if they fit
    torch.cuda.set_sync_debug_mode("error")
    try:
        batches = list(reader.ordered(order))
    finally:
        torch.cuda.set_sync_debug_mode("default")
    dense: Tensor = torch.cat([dense_of(batch.counts) for batch in batches])
    np.testing.assert_array_equal(dense.cpu().numpy(), corpus.counts[order.numpy()].toarray())


def test_auto_is_the_gpu(corpus: tl.Corpus) -> None:
    model = tl.GSM(5, epochs=1, random_state=0).fit(corpus)
    assert next(model.network_.parameters()).is_cuda
