"""Diagrams of networks: the shapes in the boxes are those of the weights, and what cannot be drawn is refused."""

from __future__ import annotations

import re
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import topicloom as tl
from topicloom.errors import InputError

CORPUS = tl.datasets.synthetic_lda(n_docs=60, n_topics=3, n_words=47, random_state=0).corpus
SMALL: dict[str, Any] = {"n_topics": 3, "epochs": 1, "random_state": 0, "hidden_size": 11, "device": "cpu"}
# Settings, and texts that a diagram has besides the shapes.
KINDS: dict[str, tuple[type[tl.NeuralTopicModel], dict[str, Any], list[str]]] = {
    "GSM": (tl.GSM, {"latent_size": 5}, ["prior N(0, I)", "θ = softmax(W z + b)", "KL"]),
    "GSB": (tl.GSM, {"construction": "stick_breaking", "latent_size": 5}, ["θ: stick-breaking", "W (3, 5)"]),
    "RSB": (tl.GSM, {"construction": "recurrent", "latent_size": 5}, ["θ: stick-breaking", "h: A (5, 5)"]),
    "MLP": (tl.GSM, {"decoder": "mlp", "decoder_size": 13}, ["(3, 13)", "softmax(h B + b)", "weights B", "(13, V)"]),
    "NVDM": (tl.NVDM, {}, ["softmax(z B + b)", "KL"]),
    "ETM": (tl.ETM, {"embedding_size": 7}, ["β = softmax(α ρᵀ)", "(47, 7)", "(3, 7)"]),
    "WLDA": (tl.WLDA, {"noise": 0.25}, ["0.75 θ + 0.25 η", "prior Dir(α)", "MMD"]),
    "gaussian": (tl.WLDA, {"prior": "gaussian"}, ["prior softmax(N)"]),
    "gmm-std": (tl.WLDA, {"prior": "gmm-std"}, ["prior", "mixture of 3 Gaussians"]),
    "gmm-batch": (tl.WLDA, {"prior": "gmm-batch"}, ["prior", "mixture of 3 Gaussians"]),
    "GMNTM": (tl.GMNTM, {"pretrain_epochs": 1}, ["mixture of 3 Gaussians"]),
    "DirichletVAE": (tl.DirichletVAE, {"estimator": "score"}, ["θ ~ Dir(a)", "gradient: score"]),
    "weibull": (tl.DirichletVAE, {"estimator": "weibull", "sparsity": 0.5}, ["Weibull shapes k", "which topics: b"]),
    "BATM": (tl.BATM, {"critic_size": 9}, ["critic D(θ, x)", "x (47, 9)", "θ (3, 9)"]),
    "ProdLDA": (tl.ProdLDA, {}, ["softmax(θ B + b)", "close to a Dirichlet"]),
}


@cache
def model(kind: str) -> tl.NeuralTopicModel:
    estimator, settings, _ = KINDS[kind]
    return estimator(**SMALL | settings).fit(CORPUS)


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


def encoder_shapes(kind: str) -> set[str]:
    """The shapes of the encoder's weights and of the heads, from the saved tensors."""
    shapes = set()
    for name, weight in model(kind).network_.state_dict().items():
        if weight.dim() == 2 and name.startswith(("encoder", "head", "code")):
            shape = tuple(weight.shape) if name == "encoder.weight" else tuple(weight.shape)[::-1]
            shapes.add(str(shape))
    return shapes


@pytest.mark.parametrize("kind", KINDS)
def test_boxes_have_the_shapes_of_the_weights(kind: str) -> None:
    shown = texts(tl.diagram(model(kind)))
    shapes = encoder_shapes(kind)
    assert len(shapes) >= 3
    assert shapes <= set(shown)
    assert set(KINDS[kind][2]) <= set(shown)
    assert "reconstruction" in shown


@pytest.mark.parametrize("kind", KINDS)
def test_boxes_do_not_overlap(kind: str) -> None:
    figure = tl.diagram(model(kind))
    boxes = [patch.get_window_extent() for patch in figure.axes[0].patches if type(patch).__name__ != "FancyArrowPatch"]
    assert len(boxes) >= 7
    assert not [1 for one, other in combinations(boxes, 2) if one.padded(-4).overlaps(other.padded(-4))]


@pytest.mark.parametrize("kind", KINDS)
def test_no_box_covers_the_head_of_an_arrow(kind: str) -> None:
    axes = tl.diagram(model(kind)).axes[0]
    arrows = [text for text in axes.texts if getattr(text, "arrow_patch", None)]
    assert len(arrows) >= 6
    for arrow in arrows:
        start, end = np.array(arrow.xyann), np.array(arrow.xy)
        head = end + 0.04 * (start - end) / np.linalg.norm(start - end)
        covered = [patch for patch in axes.patches if patch.contains_point(axes.transData.transform(head))]
        assert not covered


@pytest.mark.filterwarnings("ignore:Glyph")
def test_labels_can_be_chinese_and_files_svg(tmp_path: Path, chinese_font: None) -> None:
    figure = tl.diagram(model("GSM"), language="zh")
    assert {"均值 μ", "先验 N(0, I)", "重构"} <= set(texts(figure))
    figure.savefig(tmp_path / "model.svg")
    assert re.search(r"<svg.*", (tmp_path / "model.svg").read_text(encoding="utf-8"))


def test_models_without_a_network_are_refused() -> None:
    with pytest.raises(InputError, match="`model='gsm'` is no fitted model"):
        tl.diagram("gsm")
    with pytest.raises(InputError, match="GSM is not fitted yet"):
        tl.diagram(tl.GSM(3))
    with pytest.raises(InputError, match="LDA has no neural network"):
        tl.diagram(tl.LDA(3, epochs=1, random_state=0).fit(CORPUS))
