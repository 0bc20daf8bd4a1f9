"""Diagrams of networks: boxes with the shapes of their weights, read from the network of a fitted model."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Literal

from matplotlib.figure import Figure
from matplotlib.patches import Ellipse, FancyBboxPatch
from torch import Tensor, nn

from ...errors import InputError
from ...models.autoencoders import DeterministicNetwork, GaussianNetwork
from ...models.batm import BATMNetwork
from ...models.dirichlet import DirichletNetwork
from ...models.fastopic import FASTopicNetwork
from ...models.gsm import RecurrentLogits
from ...models.wlda import WLDANetwork
from ...nn.decoders import (
    ClusteredTopics,
    Decoder,
    EmbeddedTopics,
    GaussianTopics,
    MLPDecoder,
    ProductDecoder,
    TopicLogits,
)
from ...nn.edited import EditedNetwork
from ...nn.encoders import BagEncoder, DirichletHead, GaussianHead, WeibullHead
from ...nn.network import AutoencoderNetwork
from ...nn.posteriors import MixturePrior, NormalPrior
from ...nn.samplers import CornerMixture, DirichletSampler, FittedMixture, RefittedMixture
from ..wording import Language, Phrase
from .style import BLACK, BLUE, GREY, fonts_for, label_language, noted, set_fonts

Kind = Literal["data", "layer", "draw", "prior", "weights"]
_WIDTH, _HEIGHT, _STEP, _RISE = 1.44, 0.76, 1.76, 1.16  # inches: a box, and the distances of their middles
_ELLIPSE = 0.54 * _WIDTH, 0.56 * _HEIGHT  # the half axes of a draw
_COLOURS = {"data": "#eeeeee", "layer": "#dbe7f3", "draw": "#fdebd0", "prior": "#ffffff", "weights": "#e3f1e1"}

_DOCUMENTS = Phrase("documents x", "文档 x")
_VECTORS = Phrase("document vectors e", "文档向量 e")
_COUNTS = Phrase("counts, read as {form}", "词频，按 {form} 读入")
_LINEAR = Phrase("linear", "线性层")
_MEAN = Phrase("mean μ", "均值 μ")
_LOG_VAR = Phrase("log variance log σ²", "对数方差 log σ²")
_STICKS = Phrase("θ: stick-breaking", "θ：折棍子")
_CODE = Phrase("code", "编码")
_NOISE = Phrase("noise", "噪声")
_PRIOR = Phrase("prior", "先验")
_MEANS = Phrase("means {shape}", "均值 {shape}")
_MIXTURE = Phrase("mixture of {n} Gaussians", "{n} 个高斯分布的混合")
_LAPLACE = Phrase("close to a Dirichlet", "近似狄利克雷分布")
_CONCENTRATIONS = Phrase("parameters a", "参数 a")
_SHAPES = Phrase("Weibull shapes k", "韦布尔形状 k")
_SCALES = Phrase("Weibull scales λ", "韦布尔尺度 λ")
_PRESENT = Phrase("which topics: b", "含哪些主题：b")
_GRADIENT = Phrase("gradient: {estimator}", "梯度：{estimator}")
_TOPICS = Phrase("topics β", "主题 β")
_LAST_WEIGHTS = Phrase("weights B", "权重 B")
_WORD_VECTORS = Phrase("word vectors ρ", "词向量 ρ")
_TOPIC_VECTORS = Phrase("topic vectors α", "主题向量 α")
_TOPIC_GAUSSIANS = Phrase("topics as Gaussians", "主题的高斯分布")
_WORDS = Phrase("word probabilities", "词的概率")
_RECONSTRUCTION = Phrase("reconstruction", "重构")
_DRAWN = Phrase("drawn documents x̃", "抽取的文档 x̃")
_CRITIC = Phrase("critic D(θ, x)", "判别器 D(θ, x)")
_PLAN = Phrase("transport plan", "传输方案")
_LATER = Phrase("In its later stages, counts of tokens replace this network.", "在之后的阶段，词的计数取代这个网络。")
_SIZES = Phrase(
    "B: documents in a batch. V = {v:,}: words. K = {k}: topics.", "B：一批的文档数。V = {v:,}：词数。K = {k}：主题数。"
)
_COLOURS_EXPLAINED = Phrase(
    "Grey: data. Blue: layers. Orange: random draws. Green: weights of the topics. Dashed: what a loss compares.",
    "灰：数据。蓝：层。橙：随机抽样。绿：主题的权重。虚线：损失所比较的两端。",
)


@dataclass
class _Box:
    """A box at a column and a row of the diagram, with a title and further lines."""

    column: float
    row: float
    title: str
    lines: list[str]
    kind: Kind


@dataclass
class _Edge:
    start: str
    end: str
    label: str = ""
    dashed: bool = False
    above: float | None = None  # the row above the boxes along which the edge runs


@dataclass
class _Sketch:
    """The boxes by name, and the edges, of one network."""

    language: Language
    boxes: dict[str, _Box] = field(default_factory=dict)
    edges: list[_Edge] = field(default_factory=list)

    def box(
        self, name: str, column: float, row: float, title: str, *lines: str, kind: Kind, after: Iterable[str] = ()
    ) -> None:
        self.boxes[name] = _Box(column, row, title, [line for line in lines if line], kind)
        self.edges += [_Edge(start, name) for start in after]

    def compared(self, start: str, end: str, label: str, above: float | None = None) -> None:
        self.edges.append(_Edge(start, end, label, dashed=True, above=above))


def diagram(model: Any, *, language: Language = "en", font: str | PathLike[str] | None = None) -> Figure:
    """Draw the network of a fitted model: its layers, draws, prior and topics, with the shapes of their weights.

    The boxes are read from the network itself, so that they show the settings of the model, such as the width of the
    encoder, the estimator of DirichletVAE or the form of the topics. A network of your own is drawn as well: parts that
    topicloom does not know are boxes with the shapes of their weights.

    Args:
        model: a fitted model with a network. LDA, VectorClusters and other models without an encoder have none.
        language: of the labels, "en" or "zh".
        font: a family name or the path of a font file, which comes before all other fonts.

    Returns:
        the figure; `figure.savefig("model.svg")` writes it as SVG.

    Raises:
        InputError: what was given is no model, or is not fitted, or has no network that can be drawn.

    Examples:
        >>> import topicloom as tl
        >>> corpus = tl.datasets.synthetic_lda(n_docs=80, n_words=50, n_topics=3).corpus
        >>> figure = tl.diagram(tl.GSM(n_topics=3, epochs=1, random_state=0).fit(corpus))
        >>> {"(50, 128)", "(128, 128)", "(128, 3)"} <= {text.get_text() for text in figure.axes[0].texts}
        True
    """
    if isinstance(model, str | type):
        raise InputError(f"`model={model!r:.60}` is no fitted model; give one, such as that of `load`")
    network = getattr(model, "network_", None)
    name = type(model).__name__
    if network is None and not hasattr(model, "components_"):
        raise InputError(f"this {name} is not fitted yet, so the sizes of its network are unknown; call fit first")
    if isinstance(network, EditedNetwork):
        network = network.base
    if not isinstance(network, AutoencoderNetwork | FASTopicNetwork):
        raise InputError(
            f"{name} has no neural network with an encoder to draw; draw that of another model, such as GSM"
        )
    language = label_language(language, font)
    sketch = _Sketch(language)
    if isinstance(network, FASTopicNetwork):
        _sketch_transport(sketch, network)
    else:
        _sketch_autoencoder(sketch, network)
    sizes = _SIZES(language, v=len(model.vocabulary_), k=network.topic_word().shape[0])
    notes = [sizes, _COLOURS_EXPLAINED(language)]
    if hasattr(network, "counting"):
        notes.append(_LATER(language))
    return _drawn(sketch, name, "".join(notes) if language == "zh" else " ".join(notes), font)


def _shape(*sizes: int | str) -> str:
    return "(" + ", ".join(size if isinstance(size, str) else f"{size:,}" for size in sizes) + ")"


def _of(*tensors: Tensor) -> str:
    """Return the shapes of weights as text."""
    return ", ".join(_shape(*tensor.shape) for tensor in tensors)


def _layers(module: nn.Module) -> list[nn.Linear]:
    return [part for part in module.modules() if isinstance(part, nn.Linear)]


def _sketch_autoencoder(sketch: _Sketch, network: AutoencoderNetwork) -> None:
    last, column = _sketch_encoder(sketch, network.encoder)
    if isinstance(network, GaussianNetwork):
        theta, column = _sketch_gaussian(sketch, network, last, column)
    elif isinstance(network, DirichletNetwork):
        theta, column = _sketch_dirichlet(sketch, network, last, column)
    elif isinstance(network, DeterministicNetwork):
        theta, column = _sketch_deterministic(sketch, network, last, column)
    else:
        theta, column = _sketch_others(sketch, network, last, column)
    _sketch_decoder(sketch, network.decoder, theta, column)
    if isinstance(network, BATMNetwork):
        _sketch_critic(sketch, network)


def _sketch_encoder(sketch: _Sketch, encoder: BagEncoder) -> tuple[str, float]:
    """Add the documents and the encoder, and return its last box and the next free column."""
    language, f = sketch.language, encoder.activation
    inputs = []
    if encoder.weight is not None:
        counted = _COUNTS(language, form=encoder.input)
        sketch.box("x", 0, 0, _DOCUMENTS(language), _shape("B", "V"), counted, kind="data")
        inputs.append("x")
    if encoder.of_vectors is not None:
        row = 1 if inputs else 0
        sketch.box("e", 0, row, _VECTORS(language), _shape("B", len(encoder.of_vectors)), kind="data")
        inputs.append("e")
    first = [weight for weight in (encoder.weight, encoder.of_vectors) if weight is not None]
    sketch.box("h1", 1, 0, f"{_LINEAR(language)}, {f}", *map(_of, first), kind="layer", after=inputs)
    last = "h1"
    layers = _layers(encoder)
    for number, layer in enumerate(layers, 2):
        name = f"h{number}"
        title = f"{_LINEAR(language)}, {f}"
        sketch.box(name, number, 0, title, _of(layer.weight.mT), kind="layer", after=[last])
        last = name
    return last, 2.0 + len(layers)


def _sketch_gaussian(sketch: _Sketch, network: GaussianNetwork, last: str, column: float) -> tuple[str, float]:
    """Add q(z | x), z, its prior and theta, and return the box that is decoded and the next free column."""
    head, language = network.head, sketch.language
    sketch.box("mean", column, 0.55, _MEAN(language), _of(head.mean.weight.mT), kind="layer", after=[last])
    sketch.box("log_var", column, -0.55, _LOG_VAR(language), _of(head.log_var.weight.mT), kind="layer", after=[last])
    n_latent = len(head.mean.weight)
    sketch.box("z", column + 1, 0, "z = μ + σ ε", _shape("B", n_latent), kind="draw", after=["mean", "log_var"])
    sketch.box("noise", column + 1, 1.1, "ε ~ N(0, I)", kind="draw")
    sketch.edges.append(_Edge("noise", "z"))
    _sketch_prior(sketch, network.prior, "z", column + 1)
    if hasattr(network.decoder, "coordinates"):  # NVDM decodes the code itself
        return "z", column + 2
    projection = getattr(network, "projection", None)
    scaled = getattr(network, "spread", None) is not None
    z, added = ("W z" if isinstance(projection, nn.Linear) else "s z" if scaled else "z"), ""
    if isinstance(projection, nn.Linear):
        added = f"W {_of(projection.weight)}"
    title = f"θ = softmax({z} + b)"
    if getattr(network, "construction", "softmax") != "softmax":
        title = _STICKS(language)
        if isinstance(projection, RecurrentLogits):
            added = f"h: A {_of(projection.next.weight)}"
    sketch.box("theta", column + 2, 0, title, _shape("B", "K"), added, kind="layer", after=["z"])
    return "theta", column + 3


def _sketch_prior(sketch: _Sketch, prior: object, compared: str, column: float) -> None:
    """Add the prior of a code below it."""
    language = sketch.language
    lines = []
    if isinstance(prior, MixturePrior):
        title = _MIXTURE(language, n=len(prior.means))
        lines = [_MEANS(language, shape=_of(prior.means))]
    elif isinstance(prior, NormalPrior) and bool((prior.mean == 0).all() and (prior.var == 1).all()):
        title = f"{_PRIOR(language)} N(0, I)"
    else:
        title, lines = f"{_PRIOR(language)} N(μ₀, σ₀²)", [_LAPLACE(language)]
    sketch.box("prior", column, -1.2, title, *lines, kind="prior")
    sketch.compared("prior", compared, "KL")


def _sketch_dirichlet(sketch: _Sketch, network: DirichletNetwork, last: str, column: float) -> tuple[str, float]:
    head, language = network.head, sketch.language
    if isinstance(head, GaussianHead):  # a logistic normal in place of the Dirichlet
        sketch.box("mean", column, 0.55, _MEAN(language), _of(head.mean.weight.mT), kind="layer", after=[last])
        title = _LOG_VAR(language)
        sketch.box("log_var", column, -0.55, title, _of(head.log_var.weight.mT), kind="layer", after=[last])
        parts, title, prior = ["mean", "log_var"], "θ = softmax(μ + σ ε)", f"{_PRIOR(language)} N(μ₀, σ₀²)"
    elif isinstance(head, WeibullHead):
        lower, upper = _of(head.mean.log_alpha.weight.mT), _of(head.log_shape.weight.mT)
        sketch.box("shape", column, 0.55, _SHAPES(language), upper, kind="layer", after=[last])
        sketch.box("scale", column, -0.55, _SCALES(language), lower, kind="layer", after=[last])
        parts, title, prior = ["shape", "scale"], "θ ∝ λ (−log u)^(1/k)", f"{_PRIOR(language)} Dir(α)"
    else:
        assert isinstance(head, DirichletHead)
        weight = _of(head.log_alpha.weight.mT)
        sketch.box("a", column, 0, _CONCENTRATIONS(language), weight, kind="layer", after=[last])
        parts, title, prior = ["a"], "θ ~ Dir(a)", f"{_PRIOR(language)} Dir(α)"
    estimator = getattr(network, "estimator", "")
    gradient = _GRADIENT(language, estimator=estimator) if estimator else ""
    if network.indicator is not None:
        weight = _of(network.indicator.logits.weight.mT)
        sketch.box("b", column, 1.3, _PRESENT(language), weight, kind="layer", after=[last])
        parts.append("b")
    sketch.box("theta", column + 1, 0, title, _shape("B", "K"), gradient, kind="draw", after=parts)
    laplace = [_LAPLACE(language)] if prior.endswith("²)") else []
    sketch.box("prior", column + 1, -1.2, prior, *laplace, kind="prior")
    sketch.compared("prior", "theta", "KL")
    return "theta", column + 2


def _sketch_deterministic(
    sketch: _Sketch, network: DeterministicNetwork, last: str, column: float
) -> tuple[str, float]:
    language, prior = sketch.language, network.prior
    sketch.box("z", column, 0, f"{_CODE(language)} z", _of(network.code.weight.mT), kind="layer", after=[last])
    sketch.box("theta", column + 1, 0, "θ = softmax(z)", _shape("B", "K"), kind="layer", after=["z"])
    lines = []
    if isinstance(prior, DirichletSampler):
        title = f"{_PRIOR(language)} Dir(α)"
    elif isinstance(prior, CornerMixture | FittedMixture | RefittedMixture):
        title = _PRIOR(language)
        lines = [_MIXTURE(language, n=network.topic_word().shape[0])]
    else:
        title = f"{_PRIOR(language)} softmax(N)"
    sketch.box("prior", column + 1, -1.2, title, *lines, kind="prior")
    if isinstance(network, WLDANetwork):
        sketch.compared("prior", "theta", "MMD")
    noise = getattr(network, "noise_share", 0.0)
    if not noise:
        return "theta", column + 2
    sketch.box("eta", column + 2, 1.1, f"{_NOISE(language)} η ~ Dir(α)", kind="draw")
    mixed = f"{1 - noise:g} θ + {noise:g} η"
    sketch.box("mixed", column + 2, 0, mixed, _shape("B", "K"), kind="layer", after=["theta", "eta"])
    return "mixed", column + 3


def _sketch_others(sketch: _Sketch, network: AutoencoderNetwork, last: str, column: float) -> tuple[str, float]:
    """Add the parts of a network that topicloom does not know, between the encoder and theta."""
    known = (network.encoder, network.decoder, network.separation, network.shares)
    for name, part in network.named_children():
        weights = [weight for weight in part.parameters() if weight.dim() > 1]
        if any(part is each for each in known) or not weights:
            continue
        shapes = [_of(weight.mT if weight.dim() == 2 else weight) for weight in weights[:3]]
        sketch.box(name, column, 0, name, *shapes, kind="layer", after=[last])
        last, column = name, column + 1
    sketch.box("theta", column, 0, "θ", _shape("B", "K"), kind="layer", after=[last])
    return "theta", column + 1


def _sketch_decoder(sketch: _Sketch, decoder: Decoder, theta: str, column: float) -> None:
    """Add the decoder, the topics that it has, and the word probabilities."""
    language, topics = sketch.language, getattr(decoder, "topics", None)
    last = theta
    if isinstance(decoder, MLPDecoder):
        for number, layer in enumerate(_layers(decoder)):
            name = f"d{number}"
            title = f"{_LINEAR(language)}, {decoder.activation}"
            sketch.box(name, column, 0, title, _of(layer.weight.mT), kind="layer", after=[last])
            last, column = name, column + 1
    z = "z" if theta == "z" else "θ"
    if isinstance(decoder, MLPDecoder):
        formula = "softmax(h B + b)"
    elif isinstance(decoder, ProductDecoder):
        formula = f"softmax({z} B + b)"
    else:
        formula = "θ β"
    sketch.box("words", column, 0, _WORDS(language), formula, _shape("B", "V"), kind="data", after=[last])
    if isinstance(topics, TopicLogits):
        _sketch_topics(sketch, topics, formula, column)
    if "x" in sketch.boxes:
        highest = max(box.row for box in sketch.boxes.values())
        sketch.compared("x", "words", _RECONSTRUCTION(language), above=highest + 0.6)


def _sketch_topics(sketch: _Sketch, topics: TopicLogits, formula: str, column: float) -> None:
    language = sketch.language
    symbol = "β" if formula == "θ β" else "B"
    of_hidden = formula.startswith("softmax(h")  # the rows belong to hidden units, and not to topics
    shape = _shape(topics.deviations().shape[1] if of_hidden else "K", "V")
    if not isinstance(topics, EmbeddedTopics):
        learned = "β = softmax(W)" if symbol == "β" else "B"
        title = _LAST_WEIGHTS(language) if of_hidden else _TOPICS(language).replace("β", symbol)
        sketch.box("topics", column, -1.2, title, learned if symbol == "β" else "", shape, kind="weights")
        sketch.edges.append(_Edge("topics", "words"))
        return
    if isinstance(topics, ClusteredTopics):
        form = "β ∝ exp(−|ρ − α|²/τ)"
    elif isinstance(topics, GaussianTopics):
        form = "β ∝ N(ρ; α, diag s²)"
    else:
        form = "β = softmax(α ρᵀ)"
    sketch.box("topics", column, -1.2, form.replace("β", symbol), shape, kind="weights")
    sketch.edges.append(_Edge("topics", "words"))
    own = _TOPIC_GAUSSIANS(language) if isinstance(topics, GaussianTopics) else _TOPIC_VECTORS(language)
    left = column if "prior" in sketch.boxes and sketch.boxes["prior"].column > column - 1.5 else column - 0.5
    sketch.box("rho", left, -2.3, _WORD_VECTORS(language), _of(topics.word_vectors), kind="weights")
    shapes = [f"α {_of(topics.weight)}", f"s {_of(topics.log_scale)}"] if isinstance(topics, GaussianTopics) else []
    sketch.box("alpha", left + 1, -2.3, own, *(shapes or [_of(topics.topic_vectors)]), kind="weights")
    sketch.edges += [_Edge("rho", "topics"), _Edge("alpha", "topics")]


def _sketch_critic(sketch: _Sketch, network: BATMNetwork) -> None:
    """Add the documents that are drawn from the prior, and the critic of pairs of theta and words."""
    language, critic = sketch.language, network.critic
    prior = sketch.boxes["prior"]
    prior.title, prior.lines = "θ̃ ~ Dir(α)", [_shape("B", "K")]
    prior.kind = "draw"
    below = -2.4
    sketch.box("drawn", prior.column, below, _DRAWN(language), _shape("B", "V"), kind="draw", after=["prior"])
    shapes = [f"x {_of(critic.words)}", f"θ {_of(critic.topics)}", _of(critic.hidden.weight)]
    column = prior.column - 1.5
    sketch.box("critic", column, below + 0.45, _CRITIC(language), *shapes, kind="layer")
    for start, label in (("drawn", "x̃"), ("prior", "θ̃"), ("theta", "θ"), ("x", "x")):
        if start in sketch.boxes:
            sketch.edges.append(_Edge(start, "critic", label))
    sketch.edges.append(_Edge("topics", "drawn"))


def _sketch_transport(sketch: _Sketch, network: FASTopicNetwork) -> None:
    language = sketch.language
    size = network.topic_vectors.shape[1]
    sketch.box("e", 0, 0, _VECTORS(language), _shape("B", size), kind="data")
    sketch.box("alpha", 0, -1.2, _TOPIC_VECTORS(language), _of(network.topic_vectors), kind="weights")
    sketch.box("rho", 0, -2.4, _WORD_VECTORS(language), _of(network.word_vectors), kind="weights")
    title = f"{_PLAN(language)} θ"
    sketch.box("theta", 1.2, -0.4, title, _shape("B", "K"), kind="layer", after=["e", "alpha"])
    title = f"{_PLAN(language)} β"
    sketch.box("beta", 1.2, -2.0, title, _shape("K", "V"), kind="layer", after=["alpha", "rho"])
    sketch.box("words", 2.4, -1.2, _WORDS(language), "θ β", _shape("B", "V"), kind="data", after=["theta", "beta"])
    sketch.box("x", 3.6, -1.2, _DOCUMENTS(language), _shape("B", "V"), kind="data")
    sketch.compared("x", "words", "")


def _drawn(sketch: _Sketch, title: str, note: str, font: str | PathLike[str] | None) -> Figure:
    """Draw the boxes and edges of a sketch."""
    boxes = sketch.boxes.values()
    left = min(box.column for box in boxes) * _STEP - _WIDTH / 2
    right = max(box.column for box in boxes) * _STEP + _WIDTH / 2
    bottom = min(box.row for box in boxes) * _RISE - _HEIGHT / 2 - 0.1
    rows = [box.row + 0.35 for box in boxes] + [edge.above for edge in sketch.edges if edge.above is not None]
    top = max(rows) * _RISE + 0.2
    texts = [note, *(text for box in boxes for text in (box.title, *box.lines))]
    fonts = fonts_for(texts, font)
    figure = noted(right - left + 0.3, top - bottom + 0.35, note, fonts=fonts)
    axes = figure.add_subplot()
    axes.set(xlim=(left - 0.05, right + 0.05), ylim=(bottom, top), aspect="equal")
    axes.axis("off")
    axes.set_title(title, fontsize=11, loc="left", color=BLACK)
    for box in boxes:
        _draw_box(axes, box)
    for edge in sketch.edges:
        _draw_edge(axes, edge, sketch.boxes)
    set_fonts(figure, fonts)
    return figure


def _draw_box(axes: Any, box: _Box) -> None:
    x, y = box.column * _STEP, box.row * _RISE
    style: dict[str, Any] = {"facecolor": _COLOURS[box.kind], "edgecolor": GREY, "linewidth": 0.9, "zorder": 2}
    if box.kind == "prior":
        style |= {"linestyle": "--"}
    if box.kind == "draw":
        axes.add_patch(Ellipse((x, y), 2 * _ELLIPSE[0], 2 * _ELLIPSE[1], **style))
    else:
        corner = (x - _WIDTH / 2 + 0.06, y - _HEIGHT / 2 + 0.06)
        shape = FancyBboxPatch(corner, _WIDTH - 0.12, _HEIGHT - 0.12, boxstyle="round,pad=0.06", **style)
        axes.add_patch(shape)
    spacing = 0.175 if len(box.lines) > 2 else 0.2
    height = spacing * len(box.lines)
    size = 9.5 if len(box.title) < 16 else 8.3 if len(box.title) < 22 else 7.2
    axes.text(x, y + height / 2, box.title, ha="center", va="center", fontsize=size, color=BLACK, zorder=3)
    for number, line in enumerate(box.lines, 1):
        at = y + height / 2 - spacing * number
        size = 8.5 if len(line) < 17 else 7.2
        axes.text(x, at, line, ha="center", va="center", fontsize=size, color=GREY, zorder=3)


def _draw_edge(axes: Any, edge: _Edge, boxes: dict[str, _Box]) -> None:
    start, end = boxes[edge.start], boxes[edge.end]
    (x0, y0), (x1, y1) = (_anchor(start, end), _anchor(end, start))
    arrow = {"arrowstyle": "<|-|>" if edge.dashed else "-|>", "linewidth": 0.9, "shrinkA": 0, "shrinkB": 1}
    arrow |= {"color": BLUE, "linestyle": "--"} if edge.dashed else {"color": GREY}
    if edge.above is not None:  # over the other boxes
        x0, x1, y = start.column * _STEP, end.column * _STEP, edge.above * _RISE
        y0, y1 = (box.row * _RISE + _HEIGHT / 2 for box in (start, end))
        style = {"color": BLUE, "linestyle": "--", "linewidth": 0.9, "zorder": 1}
        axes.plot([x0, x0, x1, x1], [y0, y, y, y1], **style)
        middle, y = (x0 + x1) / 2, y - 0.02
    else:
        axes.annotate("", (x1, y1), (x0, y0), arrowprops=arrow, zorder=1)
        middle, y = (x0 + x1) / 2, (y0 + y1) / 2
    if edge.label:
        patch = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
        axes.text(middle, y, edge.label, ha="center", va="center", fontsize=9, color=BLUE, bbox=patch, zorder=4)


def _anchor(box: _Box, other: _Box) -> tuple[float, float]:
    """Return the point of the edge of a box that an arrow to or from another box touches."""
    x, y = box.column * _STEP, box.row * _RISE
    dx, dy = other.column * _STEP - x, other.row * _RISE - y
    if box.kind == "draw":
        part = 1 / math.hypot(dx / _ELLIPSE[0], dy / _ELLIPSE[1])  # of the way to the other's middle
        return x + part * dx, y + part * dy
    if abs(dx) >= 0.6 * _STEP:
        return x + (_WIDTH / 2 if dx > 0 else -_WIDTH / 2), y
    return x, y + (_HEIGHT / 2 if dy > 0 else -_HEIGHT / 2)
