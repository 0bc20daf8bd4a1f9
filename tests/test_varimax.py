"""The rotation of NVDM's code, against a rotation that is known and against the distribution of words."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment

from planted import matched
from topicloom import NVDM, Callback, load
from topicloom.datasets import synthetic_lda
from topicloom.errors import SettingError
from topicloom.models.nvdm import TopicCoordinates, topic_simplex, varimax
from topicloom.training.batches import BatchReader

K = 5
SMALL = {"epochs": 20, "random_state": 0, "device": "cpu"}
CORPUS, TOPICS, _ = synthetic_lda(n_docs=500, n_topics=K, n_words=100, doc_length=60, alpha=0.1)


def rotated_simplex(n=2000, seed=0):
    """Codes of documents whose theta is sparse, after a random linear map; and the codes of the corners."""
    random = np.random.default_rng(seed)
    theta = random.dirichlet(np.full(K, 0.05), n)
    corners = random.normal(size=(K, K))
    corners -= corners.mean(1, keepdims=True)
    return torch.from_numpy(theta @ corners), torch.from_numpy(corners), torch.from_numpy(theta)


def test_varimax_undoes_a_rotation():
    random = np.random.default_rng(0)
    heavy = torch.from_numpy(random.laplace(size=(5000, 4)))
    turn = torch.from_numpy(np.linalg.qr(random.normal(size=(4, 4)))[0])
    found = turn @ varimax(heavy @ turn)  # a permutation with signs, if the axes are found
    torch.testing.assert_close(found.abs().amax(0), torch.ones(4, dtype=torch.float64), rtol=0, atol=0.02)
    torch.testing.assert_close(found @ found.mT, torch.eye(4, dtype=torch.float64))


def test_varimax_never_lowers_its_criterion(monkeypatch):
    x = torch.randn(300, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64) ** 3
    values = []
    for steps in range(1, 12):
        monkeypatch.setattr("topicloom.models.nvdm._STEPS", steps)
        y = x @ varimax(x)
        values.append(float((y**2).var(0).sum()))
    assert all(later >= earlier * (1 - 1e-9) for earlier, later in pairwise(values))


@pytest.mark.parametrize("seed", range(3))
def test_the_corners_of_a_simplex_are_found(seed):
    codes, corners, theta = rotated_simplex(seed=seed)
    simplex = topic_simplex(codes, torch.full((K,), 1e-6))
    found = (codes @ simplex.linear + simplex.shift) * simplex.weights  # barycentric coordinates
    torch.testing.assert_close(found.sum(1), torch.ones(len(codes), dtype=torch.float64))
    distance = torch.cdist(corners, simplex.corners).numpy()
    rows, columns = linear_sum_assignment(distance)
    assert (distance[rows, columns] < 0.25 * torch.cdist(corners, corners).max().item()).all()
    for planted, k in zip(rows, columns, strict=True):
        assert np.corrcoef(theta[:, planted], found[:, k])[0, 1] > 0.97


def test_coordinates_and_codes_are_inverse_to_each_other():
    codes, _, _ = rotated_simplex()
    coordinates = TopicCoordinates(K).double()
    torch.testing.assert_close(coordinates.code(coordinates.theta(codes)), codes)  # dimensions are topics
    coordinates.place(topic_simplex(codes, torch.full((K,), 0.1)))
    theta = coordinates.theta(codes)
    assert (theta - torch.softmax(codes, 1)).abs().max() > 0.1
    torch.testing.assert_close(coordinates.code(theta), codes)
    torch.testing.assert_close(coordinates.theta(coordinates.topic_codes()).argmax(1), torch.arange(K))


def test_the_rotation_changes_topics_and_no_distribution_of_words():
    turned, plain = (NVDM(K, rotation=name, **SMALL).fit(CORPUS) for name in ("varimax", "none"))
    theta, before = turned.transform(CORPUS), plain.transform(CORPUS)
    words, same = (
        model.network_.word_probabilities(torch.from_numpy(each)).detach()
        for model, each in ((turned, theta), (plain, before))
    )
    torch.testing.assert_close(words, same, rtol=1e-3, atol=1e-6)
    assert turned.perplexity(CORPUS) == pytest.approx(plain.perplexity(CORPUS), rel=1e-3)
    assert turned.perplexity(CORPUS, "bound") == pytest.approx(plain.perplexity(CORPUS, "bound"), rel=1e-2)
    distances = []
    for model in (turned, plain):
        distances.append(matched(TOPICS, model.components_)[1].mean())
    assert distances[0] < 0.6 * distances[1]


def test_seed_words_and_the_setting_keep_the_dimensions():
    word = CORPUS.vocabulary[0]
    seeded = NVDM(K, seed_words={0: [word]}, **SMALL).fit(CORPUS)
    for model in (seeded, NVDM(K, rotation="none", **SMALL).fit(CORPUS)):
        torch.testing.assert_close(model.network_.decoder.coordinates.linear, torch.eye(K))
    with pytest.raises(SettingError, match="rotation"):
        NVDM(K, rotation="promax").fit(CORPUS)


def test_unrotated_topics_are_dimensions_of_typical_length():
    model = NVDM(K, rotation="none", spare_topics=1.0, **SMALL).fit(CORPUS)  # trained with more topics at first
    codes = model.network_.decoder.coordinates.topic_codes()
    torch.testing.assert_close(codes, K**0.5 * (torch.eye(K) - 1 / K))


def test_ending_twice_and_streaming_keep_the_topics():
    model = NVDM(K, **SMALL).fit(CORPUS)
    coordinates = model.network_.decoder.coordinates
    before = {name: tensor.clone() for name, tensor in coordinates.state_dict().items()}
    assert before["placed"]
    reader = BatchReader.of(CORPUS, 100, torch.device("cpu"))
    with torch.inference_mode():
        model.network_.end_training(reader)
    for name, tensor in coordinates.state_dict().items():
        torch.testing.assert_close(tensor, before[name], rtol=1e-3, atol=1e-4)
    model.partial_fit(CORPUS)
    torch.testing.assert_close(model.network_.decoder.coordinates.linear, before["linear"], rtol=1e-3, atol=1e-4)


def test_a_fit_that_ends_early_is_rotated():
    stopped = NVDM(K, patience=1, **(SMALL | {"epochs": 200})).fit(CORPUS)
    assert len(stopped.history_) < 200
    assert stopped.network_.decoder.coordinates.placed

    class Stop(Callback):
        def on_epoch(self, row):
            raise KeyboardInterrupt

    interrupted = NVDM(K, **SMALL)
    with pytest.raises(KeyboardInterrupt):
        interrupted.fit(CORPUS, callbacks=[Stop()])
    assert interrupted.network_.decoder.coordinates.placed


@pytest.mark.parametrize("scale", [0.0, 1e-30, 1e18])
@pytest.mark.parametrize("variance", [1e-30, 1.0, 1e18])
def test_codes_that_are_equal_or_huge_have_finite_corners(scale, variance):
    codes, _, _ = rotated_simplex(n=20)
    found = topic_simplex(scale * codes, torch.full((K,), variance))
    assert all(tensor.isfinite().all() for tensor in (found.linear, found.shift, found.corners))


def test_a_loaded_model_has_the_same_topics(tmp_path):
    model = NVDM(K, **SMALL).fit(CORPUS)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model", device="cpu")
    np.testing.assert_array_equal(loaded.components_, model.components_)
    np.testing.assert_array_equal(loaded.transform(CORPUS), model.transform(CORPUS))
