"""What only the recipes of papers use, compared with the equations of the papers in NumPy and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import topicloom as tl
from batches import batch_of, seeded
from topicloom.datasets import synthetic_lda
from topicloom.errors import InputError, SettingError
from topicloom.models.portable import portable_inference
from topicloom.nn.encoders import BagEncoder
from topicloom.nn.sparse import Batch

Array = np.ndarray[Any, Any]
CORPUS = synthetic_lda(n_docs=120, n_topics=4, n_words=60, doc_length=30).corpus
COUNTS = np.random.default_rng(0).poisson(0.7, (6, 9)).astype(float)
QUICK: dict[str, Any] = {"epochs": 2, "random_state": 0, "device": "cpu", "batch_size": 40}


def array(tensor: torch.Tensor | None) -> Array:
    assert tensor is not None
    return tensor.detach().double().numpy()


# An encoder of several widths.


@pytest.mark.parametrize("widths", [(5,), (5, 3), (7, 4, 2), (6, 5, 4, 3)])
def test_an_encoder_has_the_layers_of_its_widths(widths):
    encoder = BagEncoder(torch.ones(9), widths, seeded(), input="raw", activation="relu")
    weights = [(array(encoder.weight), array(encoder.bias))]
    layers = [] if encoder.hidden is None else [encoder.hidden, *encoder.deeper]
    weights += [(array(layer.weight).T, array(layer.bias)) for layer in layers]
    h = COUNTS
    for weight, bias in weights:
        h = np.maximum(h @ weight + bias, 0)
    assert tuple(len(bias) for _, bias in weights) == widths
    assert array(encoder(Batch(batch_of(COUNTS)), None)) == pytest.approx(h, abs=1e-5)


@pytest.mark.parametrize("kind", [tl.GSM, tl.WLDA, tl.DirichletVAE, tl.Loom])
def test_the_widths_of_layers_are_a_setting(kind, tmp_path):
    model = kind(4, hidden_sizes=[12, 5, 7], **QUICK).fit(CORPUS)
    assert [layer.out_features for layer in (model.network_.encoder.hidden, *model.network_.encoder.deeper)] == [5, 7]
    model.save(tmp_path / "model")
    loaded = tl.load(tmp_path / "model", device="cpu")
    assert np.array_equal(loaded.transform(CORPUS), model.transform(CORPUS))
    assert loaded.get_params() == model.get_params()


def test_widths_must_be_whole_numbers():
    for widths in ([], [0], [3.5], 12):
        with pytest.raises(SettingError, match="`hidden_sizes` of GSM"):
            tl.GSM(4, hidden_sizes=widths).fit(CORPUS)


def test_an_encoder_of_another_depth_is_not_written_as_arrays():
    model = tl.GSM(4, hidden_sizes=(6,), **QUICK).fit(CORPUS)
    with pytest.raises(InputError):
        portable_inference(model)
