"""The inference of a fitted model as arrays, for programs without PyTorch, such as the explorer's page.

`PortableInference` computes theta from the arrays; the page has the same code in TypeScript. It knows encoders of two
layers over the counts, and posteriors that are a function of an affine map of the hidden vector. The map is found by
applying the network's own code to the zero vector and to each unit vector, in double precision. So no model needs code
of its own here, and a model of the user's with the package's encoder works too. Whether the result equals the network's
is then checked on documents (`PortableInference.error`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from scipy.special import digamma
from torch import Tensor, nn

from ..errors import InputError
from ..nn.dirichlet_posteriors import LaplacePosterior, SparsePosterior
from ..nn.edited import EM_STEPS, LEAST_KEPT_SHARE, AddedTopics, EditedNetwork, Regroup
from ..nn.encoders import TINY_TOTAL, BagEncoder, DirichletHead, WeibullHead
from ..nn.execution import usual_device, without_gradients
from ..nn.mean_field import MAX_STEPS, TOLERANCE, MeanFieldNetwork
from ..nn.network import TopicNetwork
from ..nn.posteriors import Posterior
from ..nn.sparse import TINY, Batch, SparseCounts
from .gsm import GSMNetwork

Array = npt.NDArray[Any]
Link = Literal["softmax", "counts", "softplus"]

_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "softplus": lambda x: np.logaddexp(0, x),
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
}


@dataclass(frozen=True, eq=False)
class PortableEncoder:
    """h = f(A f(W x + b) + a), where f is the activation and x a form of the counts; see `nn.encoders.BagEncoder`.

    Attributes:
        input: the form of the counts: "raw", "l1", "log1p" or "tfidf".
        activation: "softplus", "relu" or "tanh".
        weight: (V, H) W.
        bias: (H,) b.
        hidden: (H, H) A.
        hidden_bias: (H,) a.
        idf: (V,) inverse document frequencies, for "tfidf".
    """

    input: str
    activation: str
    weight: Array
    bias: Array
    hidden: Array
    hidden_bias: Array
    idf: Array

    def __call__(self, counts: sp.csr_array) -> Array:
        """Return the hidden vectors of documents: counts (n, V) -> (n, H)."""
        x = counts.astype(np.float64)
        if self.input == "log1p":
            x.data = np.log1p(x.data)
        elif self.input == "l1":
            x = sp.csr_array(sp.diags_array(1 / np.maximum(x.sum(axis=1), TINY_TOTAL)) @ x)
        elif self.input == "tfidf":
            x = sp.csr_array(x @ sp.diags_array(self.idf.astype(np.float64)))
            x = sp.csr_array(sp.diags_array(1 / np.maximum(np.sqrt((x**2).sum(axis=1)), TINY_TOTAL)) @ x)
        f = _ACTIVATIONS[self.activation]
        hidden: Array = f(f(x @ self.weight + self.bias) @ self.hidden.T + self.hidden_bias)
        return hidden


@dataclass(frozen=True, eq=False)
class PortableReadout:
    """theta in proportion to link(M h + c), multiplied by sigmoid(G h + g) if topics can be absent.

    Attributes:
        weight: (K, H) M.
        bias: (K,) c.
        link: "softmax"; "counts", the tokens of the document times softmax(.), plus `smoothing`; or "softplus",
            softplus(.) + `floor`, for Dirichlet posteriors.
        floor: with "softplus", the smallest parameter of a Dirichlet.
        gate: (K, H) G and (K,) g, or None.
        smoothing: with "counts", (K,) tokens that every document has in addition.
    """

    weight: Array
    bias: Array
    link: Link
    floor: float = 0.0
    gate: tuple[Array, Array] | None = None
    smoothing: Array | None = None

    def __call__(self, hidden: Array, totals: Array) -> Array:
        """Return theta (n, K), given hidden vectors (n, H) and the tokens of the documents (n,)."""
        x = hidden @ self.weight.T + self.bias
        if self.link == "softplus":
            weights = np.logaddexp(0, x) + self.floor
        else:
            weights = np.exp(x - x.max(axis=1, keepdims=True))
            if self.smoothing is not None:
                weights = totals[:, None] * weights / weights.sum(axis=1, keepdims=True) + self.smoothing
        if self.gate is not None:
            weights = weights * np.exp(-np.logaddexp(0, -(hidden @ self.gate[0].T + self.gate[1])))
        theta: Array = weights / weights.sum(axis=1, keepdims=True)
        return theta


@dataclass(frozen=True, eq=False)
class PortableTopics:
    """Inference of theta given topics: the refinement of Loom, or the mean-field iteration of LDA.

    Attributes:
        kind: "refine" starts from the encoder's theta; "mean_field" needs no encoder.
        beta_t: (V, K) the topics, up to a factor for each word.
        alpha: (K,) the Dirichlet parameter of theta.
        steps: steps of refinement, or the most steps of the iteration.
        share: with "refine", the share of the parameter that is proportional to the encoder's theta.
        prior_tokens: with "refine", prior_tokens / n is added to the sum of the parameter for a document of n tokens.
        tolerance: with "mean_field", the mean change of gamma at which the iteration ends.
    """

    kind: Literal["refine", "mean_field"]
    beta_t: Array
    alpha: Array
    steps: int
    share: float = 0.0
    prior_tokens: float = 0.0
    tolerance: float = 0.0

    def __call__(self, values: Array, words: Array, theta: Array | None) -> Array:
        """Return theta (K,) of one document, given its counts (N,) of words (N,), and the encoder's theta (K,)."""
        beta, alpha = self.beta_t[words].astype(np.float64), self.alpha.astype(np.float64)  # (N, K), (K,)
        if self.kind == "mean_field":
            gamma = alpha + values.sum() / len(alpha)
            for _ in range(self.steps):
                weights = np.exp(digamma(gamma) - digamma(gamma.sum()))
                update = alpha + weights * ((values / (beta @ weights + TINY)) @ beta)
                change, gamma = np.abs(update - gamma).mean(), update
                if change <= self.tolerance:
                    break
            shares: Array = gamma / gamma.sum()
            return shares
        assert theta is not None
        alpha = (1 - self.share) * alpha + self.share * alpha.sum() * theta
        alpha *= 1 + self.prior_tokens / (alpha.sum() * max(values.sum(), 1))
        counts, gamma = values.sum() * theta, np.zeros_like(beta)  # (K,), (N, K)
        for step in range(self.steps):  # a token's own count is excluded, see models/loom/cvb0.py
            weights = beta * (np.maximum(counts - gamma, 0) + alpha if step else theta)  # (N, K)
            gamma = weights / (weights.sum(axis=1, keepdims=True) + TINY)
            counts = values @ gamma
        refined: Array = (alpha + counts) / (alpha + counts).sum()
        return refined


@dataclass(frozen=True, eq=False)
class PortableRegroup:
    """Topics that were merged or dropped after training; see `nn.edited.Regroup`.

    Attributes:
        assign: (K,) the new number of each topic, -1 for one that was dropped.
        average: (K',) the shares of a document whose remaining topics have a total share below `fewest`.
        fewest: the least total share of the remaining topics.
    """

    assign: Array
    average: Array
    fewest: float

    def __call__(self, values: Array, words: Array, theta: Array) -> Array:
        """Return theta (K',) of one document, given that before (K,)."""
        sums = np.zeros(len(self.average))
        kept = self.assign >= 0
        np.add.at(sums, self.assign[kept], theta[kept])
        return sums / sums.sum() if sums.sum() >= self.fewest else self.average.astype(np.float64)


@dataclass(frozen=True, eq=False)
class PortableSplit:
    """A topic that was divided after training; see `nn.edited.SplitTopic`.

    Attributes:
        topic: its number.
        beta_t: (V, K) the topics before, up to a factor for each word.
        parts: the inference of the parts.
    """

    topic: int
    beta_t: Array
    parts: PortableTopics

    def __call__(self, values: Array, words: Array, theta: Array) -> Array:
        """Return theta (K',) of one document with the counts (N,) of words (N,), given that before (K,)."""
        beta = self.beta_t[words].astype(np.float64)  # (N, K)
        own = values * theta[self.topic] * beta[:, self.topic] / (beta @ theta + TINY)
        shares = theta[self.topic] * self.parts(own, words, None)
        whole = np.concatenate([theta, shares[1:]])
        whole[self.topic] = shares[0]
        return whole


@dataclass(frozen=True, eq=False)
class PortableAddition:
    """Topics that were added after training; see `nn.edited.AddedTopics`.

    Attributes:
        beta_t: (V, K + n) the topics before and the new ones, up to a factor for each word.
        alpha: (1 + n,) the tokens that the prior adds to all those of the old topics, and to those of each new one.
        steps: steps of EM.
    """

    beta_t: Array
    alpha: Array
    steps: int

    def __call__(self, values: Array, words: Array, theta: Array) -> Array:
        """Return theta (K + n,) of one document with the counts (N,) of words (N,), given that before (K,)."""
        beta, alpha = self.beta_t[words].astype(np.float64), self.alpha.astype(np.float64)
        parts = np.column_stack([beta[:, : len(theta)] @ theta, beta[:, len(theta) :]])  # (N, 1 + n)
        shares = alpha / alpha.sum()
        for _ in range(self.steps):
            weights = parts * shares
            shares = alpha + values @ (weights / (weights.sum(axis=1, keepdims=True) + TINY))
            shares /= alpha.sum() + values.sum()
        return np.concatenate([theta * shares[0], shares[1:]])


PortableStep: TypeAlias = PortableRegroup | PortableSplit | PortableAddition


@dataclass(frozen=True, eq=False)
class PortableInference:
    """The inference of a model as arrays.

    Attributes:
        average: (K,) the shares that a document without a known word gets.
        encoder: from counts to hidden vectors, or None.
        readout: from hidden vectors to theta, or None.
        topics: inference given topics, or None.
        steps: the edits of the topics after training, in their order.
    """

    average: Array
    encoder: PortableEncoder | None = None
    readout: PortableReadout | None = None
    topics: PortableTopics | None = None
    steps: tuple[PortableStep, ...] = ()

    def theta(self, counts: sp.csr_array) -> Array:
        """Return the topic shares of documents, counts (n, V) -> (n, K)."""
        encoded = None
        if self.encoder is not None and self.readout is not None:
            encoded = self.readout(self.encoder(counts), counts.sum(axis=1))
        rows = np.tile(self.average.astype(np.float64), (counts.shape[0], 1))
        for row in range(len(rows)):
            place = slice(counts.indptr[row], counts.indptr[row + 1])
            values, words = counts.data[place].astype(np.float64), counts.indices[place]
            if len(words) == 0:
                continue
            theta = None if encoded is None else encoded[row]
            theta = theta if self.topics is None else self.topics(values, words, theta)
            assert theta is not None
            for step in self.steps:
                theta = step(values, words, theta)
            rows[row] = theta
        return rows

    def error(self, counts: sp.csr_array, theta: Array) -> float:
        """Return the largest difference from the model's theta (n, K) of the same documents (n, V)."""
        return float(np.abs(self.theta(counts) - theta).max(initial=0.0))

    def halved(self) -> PortableInference:
        """Return a copy with the large matrices in half precision."""
        encoder, topics = self.encoder, self.topics
        if encoder is not None:
            encoder = replace(encoder, weight=encoder.weight.astype(np.float16))
        if topics is not None:
            topics = replace(topics, beta_t=topics.beta_t.astype(np.float16))
        return replace(self, encoder=encoder, topics=topics, steps=tuple(map(_halved, self.steps)))


def _halved(step: PortableStep) -> PortableStep:
    if isinstance(step, PortableRegroup):
        return step
    if isinstance(step, PortableAddition):
        return replace(step, beta_t=step.beta_t.astype(np.float16))
    parts = replace(step.parts, beta_t=step.parts.beta_t.astype(np.float16))
    return replace(step, beta_t=step.beta_t.astype(np.float16), parts=parts)


@usual_device()
def portable_inference(model: Any) -> PortableInference:
    """Return the inference of a fitted model as arrays.

    Raises:
        InputError: it cannot be written as arrays, because the network has an encoder of its own, reads fields, or
            uses more of a document than the encoder's hidden vector.
    """
    network = getattr(model, "network_", None)
    if not isinstance(network, TopicNetwork):
        raise _not_portable(model)
    return _of_network(network)


def _not_portable(owner: object) -> InputError:
    return InputError(f"the inference of {type(owner).__name__} cannot be written as arrays")


def _of_network(network: TopicNetwork) -> PortableInference:
    average = _numpy(network.prior_theta())
    if isinstance(network, EditedNetwork):
        steps = tuple(_step(network, number) for number in range(len(network.each_step())))
        return replace(_of_network(network.base), average=average, steps=steps)
    if isinstance(network, MeanFieldNetwork):
        return PortableInference(average, topics=_mean_field(network))
    encoder = getattr(network, "encoder", None)
    if type(encoder) is not BagEncoder or encoder.hidden is None or len(encoder.deeper):
        raise _not_portable(network)
    is_softmax = not isinstance(network, GSMNetwork) or network.construction == "softmax"
    if not is_softmax or set(network.fields) - set(network.optional_fields):
        raise _not_portable(network)
    return PortableInference(average, _encoder(encoder), _readout(network, encoder), _refined(network))


def _refined(network: TopicNetwork) -> PortableTopics | None:
    """Return the topics that refine theta. Only Loom has them, after its counting stage has begun."""
    if not hasattr(network, "counting"):
        return None
    from .loom.collapsed import ENCODER_PRIOR_SHARE, PRIOR_TOKENS  # here, as other models need not load Loom
    from .loom.model import LoomNetwork

    if not isinstance(network, LoomNetwork) or not network.counting.started:
        return None
    given = _scaled(network.counting.topics()), _numpy(network.counting.alpha), network.refine
    return PortableTopics("refine", *given, share=ENCODER_PRIOR_SHARE, prior_tokens=PRIOR_TOKENS)


def _mean_field(network: MeanFieldNetwork) -> PortableTopics:
    beta_t, alpha = _scaled(network.beta_t), _numpy(network.alpha)
    return PortableTopics("mean_field", beta_t, alpha, MAX_STEPS, tolerance=TOLERANCE)


def _step(network: EditedNetwork, number: int) -> PortableStep:
    step = network.each_step()[number]
    if isinstance(step, Regroup):
        return PortableRegroup(_numpy(step.assign), _numpy(network.stages[number + 1][1]), LEAST_KEPT_SHARE)
    if isinstance(step, AddedTopics):
        both = torch.cat([network.stages[number][0], step.beta_t], 1)
        return PortableAddition(_scaled(both), _numpy(step.alpha), EM_STEPS)
    return PortableSplit(int(step.topic), _scaled(network.stages[number][0]), _mean_field(step.network))


def _encoder(encoder: BagEncoder) -> PortableEncoder:
    assert encoder.weight is not None  # documents without vectors have been encoded
    assert encoder.hidden is not None
    return PortableEncoder(
        encoder.input,
        encoder.activation,
        _numpy(encoder.weight),
        _numpy(encoder.bias),
        _numpy(encoder.hidden.weight),
        _numpy(encoder.hidden.bias),
        _numpy(encoder.idf),
    )


class _Given(nn.Module):
    """An encoder whose hidden vectors are given."""

    def __init__(self, hidden: Tensor) -> None:
        super().__init__()
        self.hidden = hidden

    def forward(self, batch: Batch, generator: torch.Generator | None) -> Tensor:
        return self.hidden

    def n_tokens(self, batch: Batch) -> Tensor:
        return batch.counts.totals


_SHARED = ("encoder", "decoder", "counting")  # large parts that the map from h to theta does not need


def _readout(network: TopicNetwork, encoder: BagEncoder) -> PortableReadout:
    """Find the affine map from h to the posterior by applying the network to 0 and to each unit vector."""
    n_hidden = len(encoder.bias)
    probe = _in_double_precision(network)
    given = torch.cat([torch.zeros(1, n_hidden), torch.eye(n_hidden)]).double()  # (1 + H, H)
    probe._modules["encoder"] = _Given(given)
    empty = torch.zeros(0, dtype=torch.int64)
    batch = Batch(SparseCounts(empty, torch.zeros(0), torch.zeros(n_hidden + 2, dtype=torch.int64), len(encoder.idf)))
    infer: Callable[[Batch], Posterior] = probe.code if isinstance(probe, GSMNetwork) else probe.posterior
    try:
        with without_gradients():
            return _readout_of(infer(batch), getattr(probe, "head", None), given)
    except Exception as error:  # a user's network may need more than h, and can fail in any way
        raise _not_portable(network) from error


def _in_double_precision(network: TopicNetwork) -> TopicNetwork:
    """Return a copy in double precision on the CPU, which shares the large parts."""
    probe = copy.copy(network)
    probe._modules = {
        name: part if part is None or name in _SHARED else copy.deepcopy(part).double().cpu()
        for name, part in network._modules.items()
    }
    for kind in ("_parameters", "_buffers"):
        own = getattr(network, kind).items()
        doubled = {
            name: each.detach().double().cpu() if each is not None and each.is_floating_point() else each
            for name, each in own
        }
        setattr(probe, kind, doubled)
    return probe


def _readout_of(posterior: Posterior, head: nn.Module | None, hidden: Tensor) -> PortableReadout:
    """Return the map, given the posterior of h = 0 and of each unit vector, `hidden`, and the network's head."""
    gate = None
    if isinstance(posterior, SparsePosterior):
        gate = _affine(posterior.logits)
        posterior = posterior.weights
    head = head.mean if isinstance(head, WeibullHead) else head
    if isinstance(head, DirichletHead):
        prior: Tensor = posterior.prior  # type: ignore[attr-defined]
        map_ = _affine(head.logits(hidden, prior))
        if head.plain:
            return PortableReadout(*map_, "softplus", head.floor, gate)
        smoothing = _numpy((prior + head.floor) / head.concentration())
        return PortableReadout(*map_, "counts", gate=gate, smoothing=smoothing)
    logits = posterior.log_point() if isinstance(posterior, LaplacePosterior) else posterior.point().log()
    # Subtracting a constant from logits does not change their softmax.
    return PortableReadout(*_affine(logits - logits.mean(1, keepdim=True)), "softmax", gate=gate)


def _affine(values: Tensor) -> tuple[Array, Array]:
    """Return the weights (K, H) and the bias (K,) of an affine map, given its values at 0 and at unit vectors."""
    bias = values[0]
    return (values[1:] - bias).mT.cpu().numpy(), bias.cpu().numpy()


def _scaled(beta_t: Tensor) -> Array:
    """Return topics (V, K) with the largest weight of each word set to 1, which half precision can express."""
    beta = _numpy(beta_t)
    scaled: Array = beta / beta.max(axis=1, keepdims=True).clip(1e-30)
    return scaled


def _numpy(tensor: Tensor) -> Array:
    array: Array = tensor.detach().cpu().numpy()
    return array
