"""Inference: what a call computes, in how many threads, and that it changes nothing."""

from __future__ import annotations

import os
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from scipy.special import digamma

import topicloom as tl
from batches import dense_of, sparse_batch
from topicloom.models import inference
from topicloom.nn import mean_field
from topicloom.nn.execution import mkl_threads, one_thread
from topicloom.nn.mean_field import exp_digamma
from topicloom.nn.sparse import SparseCounts


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_one_thread_is_a_limit_of_this_thread_alone(two_threads):
    with one_thread(), ThreadPoolExecutor(1) as pool:
        assert torch.get_num_threads() == 1
        assert pool.submit(torch.get_num_threads).result() == 2
        with one_thread():
            pass
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2


def test_training_limits_mkl_too_and_leaves_it_as_it_was(two_threads):
    seen: list[tuple[int, int]] = []

    class Look(tl.Callback):
        def on_epoch(self, row):
            seen.append((torch.get_num_threads(), mkl_threads()))

    corpus = tl.datasets.synthetic_lda(40, 2, 20, random_state=1).corpus
    before = torch.get_num_threads(), mkl_threads()
    tl.GSM(2, epochs=1, hidden_size=4, random_state=0).fit(corpus, callbacks=[Look()])
    assert seen == [(1, 1)]
    assert (torch.get_num_threads(), mkl_threads()) == before


def test_threads_share_the_batches_of_a_call(two_threads, monkeypatch):
    corpus = tl.datasets.synthetic_lda(300, 3, 40, random_state=1).corpus
    model = tl.GSM(3, epochs=2, hidden_size=8, random_state=0).fit(corpus)
    monkeypatch.setattr(inference, "_BATCH", 32)
    asked: list[int] = []

    def in_order(function, items, n_threads):
        asked.append(n_threads)
        return original(function, items, n_threads)

    original = inference.in_order
    monkeypatch.setattr(inference, "in_order", in_order)
    shared = model.transform(corpus)
    torch.set_num_threads(1)
    assert np.array_equal(model.transform(corpus), shared)
    assert asked == [2, 1]


def test_results_are_in_order_and_errors_are_raised():
    assert list(inference.in_order(lambda x: x * x, range(20), 3)) == [x * x for x in range(20)]
    with pytest.raises(ZeroDivisionError):
        list(inference.in_order(lambda x: 1 // (x - 7), range(20), 3))


def test_sums_of_rows_are_products_with_the_counts():
    generator = torch.Generator().manual_seed(0)
    counts = SparseCounts(
        torch.tensor([0, 3, 1, 6, 6]), torch.rand(5, generator=generator), torch.tensor([0, 2, 2, 4, 5]), 7
    )
    words, documents = torch.rand(7, 3, generator=generator), torch.rand(4, 3, generator=generator)
    dense = dense_of(counts)  # (4, 7), with an empty document
    torch.testing.assert_close(counts.times(counts.values, words), dense @ words)
    torch.testing.assert_close(counts.transposed_times(counts.values, documents), dense.mT @ documents)


def test_columns_follow_the_current_words_of_the_model():
    texts = ["red green blue", "green blue", "sea sand sun", "sun sea"] * 5
    model = tl.GSM(2, epochs=1, hidden_size=4, random_state=0).fit(tl.Corpus.from_texts(texts, "en", max_df=1.0))
    first = model.encode(["sea"]).toarray()
    assert first[0, model.vocabulary_.index("sea")] == 1
    model.vocabulary_ = model.vocabulary_[::-1]
    assert np.array_equal(model.encode(["sea"]).toarray(), first[:, ::-1])


def test_documents_can_be_taken_from_counts():
    counts = SparseCounts(torch.tensor([0, 3, 1, 6, 6]), torch.arange(1.0, 6.0), torch.tensor([0, 2, 2, 4, 5]), 7)
    rows = torch.tensor([3, 1, 0])
    assert torch.equal(dense_of(counts.take(rows)), dense_of(counts)[rows])
    assert dense_of(counts.take(rows[:0])).shape == (0, 7)


def test_the_series_is_that_of_digamma():
    x = torch.logspace(-1.5, 5, 2000)
    expected = np.exp(digamma(x.double().numpy()))
    np.testing.assert_allclose(exp_digamma(x).numpy(), expected, rtol=3e-6)
    assert float(exp_digamma(torch.tensor([1e-8]))[0]) == 0


def test_theta_of_mean_field_does_not_depend_on_other_documents():
    data = tl.datasets.synthetic_lda(120, 4, 60, random_state=2)
    topics = np.random.default_rng(0).dirichlet(np.full(60, 0.1), 4)
    network = mean_field.mean_field_network(topics, np.full(4, 0.05))
    together = inference.document_topics(network, data.corpus).theta
    with_another = [inference.document_topics(network, data.corpus[[row, 1]]).theta[0] for row in range(0, 120, 7)]
    assert np.array_equal(together[::7], with_another)
    alone = [inference.document_topics(network, data.corpus[[row]]).theta[0] for row in range(0, 120, 7)]
    assert np.allclose(together[::7], alone, atol=1e-5)  # it is computed in another order
    assert len(np.unique(together.argmax(1))) > 2


@pytest.mark.parametrize("n_topics", [1, 3, 50])
@pytest.mark.parametrize("alpha", [0.002, 0.1, 5.0])
def test_the_compiled_iteration_is_that_of_tensors(n_topics, alpha, monkeypatch):
    pytest.importorskip("numba")
    counts = tl.datasets.synthetic_lda(300, 4, 60, random_state=2).corpus.counts
    counts = sp.vstack([counts, sp.csr_array((1, 60), dtype=counts.dtype)], format="csr")  # and an empty document
    batch = sparse_batch(sp.csr_array(counts), np.arange(301), torch.device("cpu")).counts
    topics = np.random.default_rng(0).dirichlet(np.full(60, 0.1), n_topics) + 1e-9
    network = mean_field.mean_field_network(topics, np.full(n_topics, alpha))
    expected = network.gamma_of(batch)
    monkeypatch.setattr(mean_field, "FEWEST_DOCUMENTS_TO_COMPILE", 1)
    called = []
    iterate = mean_field.compiled(mean_field._gamma_loop, mean_field._gamma_example)
    monkeypatch.setattr(mean_field, "compiled", lambda *_: lambda *given: called.append(1) or iterate(*given))
    found = network.gamma_of(batch)
    assert called == [1]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=2e-3)
    torch.testing.assert_close(found[-1], network.alpha)
    assert torch.equal(network.gamma_of(batch.take(torch.tensor([7, 0]))), found[[7, 0]])
    broken = mean_field.mean_field_network(topics, np.full(n_topics, np.nan))
    assert broken.gamma_of(batch).isnan().all()


# Inference changes nothing: not the model, not its generator, not the process; threads get what one thread gets.

CORPUS = tl.datasets.synthetic_lda(200, 3, 40, random_state=1).corpus
MODELS = ["BATM", "DirichletVAE", "ETM", "GMNTM", "GSM", "LDA", "Loom", "NVDM", "ProdLDA", "WLDA"]


@pytest.fixture(scope="module", params=MODELS)
def model(request: pytest.FixtureRequest) -> tl.TopicModel:
    settings: dict[str, Any] = {"epochs": 2, "random_state": 0}
    settings |= {} if request.param == "LDA" else {"hidden_size": 8}
    fitted: tl.TopicModel = getattr(tl, request.param)(3, **settings).fit(CORPUS)
    return fitted


def calls(model: tl.TopicModel, corpus: tl.Corpus) -> list[Any]:
    return [
        model.transform(corpus),
        float(model.perplexity(corpus)),
        float(model.perplexity(corpus, method="bound")),
        model.latent(corpus)[0],
    ]


def state_of(model: tl.TopicModel) -> list[bytes]:
    network = model.network_
    tensors = [tensor.numpy().tobytes() for tensor in network.state_dict().values()]
    flags = repr([(name, module.training) for name, module in network.named_modules()]).encode()
    return [*tensors, network.generator.get_state().numpy().tobytes(), flags, repr(sorted(vars(network))).encode()]


def test_threads_get_what_one_thread_gets(model):
    parts = [CORPUS[start : start + 25] for start in range(0, 200, 25)]
    before = state_of(model)
    alone = [calls(model, part) for part in parts]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda part: calls(model, part), parts * 4))
    for number, found in enumerate(together):
        for one, other in zip(found, alone[number % 8], strict=True):
            np.testing.assert_array_equal(one, other)
    assert state_of(model) == before


def test_the_process_stays_as_it_was(model):
    def process() -> list[Any]:
        numpy_state = np.random.get_state(legacy=False)["state"]  # noqa: NPY002  # it is read to see that nobody changed it
        return [
            dict(os.environ), torch.get_num_threads(), torch.get_rng_state().tolist(), random.getstate(),
            numpy_state["pos"], numpy_state["key"].tolist(), torch.get_default_dtype(), np.geterr(),
        ]  # fmt: skip

    before = process()
    calls(model, CORPUS)
    model.fit(CORPUS[:60])
    assert process() == before


def test_another_default_type_of_numbers(model, tmp_path, request):
    """It is the user's, and other libraries ask for it; models have single precision all the same."""
    expected = model.transform(CORPUS)
    model.save(tmp_path / "model")
    request.addfinalizer(lambda: torch.set_default_dtype(torch.float32))
    torch.set_default_dtype(torch.float64)
    np.testing.assert_array_equal(model.transform(CORPUS), expected)
    loaded = tl.load(tmp_path / "model")
    np.testing.assert_allclose(loaded.transform(CORPUS), expected, atol=1e-6)
    assert loaded.components_.dtype == np.float32
    if not isinstance(model, tl.LDA):
        for learn in (type(model)(3, epochs=1).fit, loaded.partial_fit):
            with pytest.raises(tl.InputError, match=r"default type is torch.float64.*set_default_dtype.torch.float32."):
                learn(CORPUS)
