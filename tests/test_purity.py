"""Inference changes nothing: not the model, not its generator, not the process; threads get what one thread gets."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch

import topicloom as tl

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


def test_importing_changes_no_environment():
    script = (
        "import os; before = dict(os.environ); import topicloom as tl; tl.GSM, tl.compare; assert os.environ == before"
    )
    environment = {name: value for name, value in os.environ.items() if name != "GOMP_SPINCOUNT"}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)


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
