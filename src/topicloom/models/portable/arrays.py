"""The inference of a model as arrays, computed without PyTorch. The explorer's page has the same in TypeScript."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import digamma

TINY_TOTAL, TINY = 1e-12, 1e-10  # as in nn.encoders and nn.sparse

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
    """theta proportional to link(M h + c), and times sigmoid(G h + g) where topics can be absent.

    Attributes:
        weight: (K, H) M.
        bias: (K,) c.
        link: "softmax"; "counts" is the tokens of the document times softmax(.), plus smoothing, and "softplus" is
            softplus(.) + floor, as Dirichlets have.
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
        for step in range(self.steps):  # as in models/loom/cvb0.py: a token does not count for itself
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
        average: (K',) for documents that have less than `fewest` in the topics that are left.
        fewest: a share.
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
    """A topic that was divided after training; see `nn.edited.Split`.

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
class PortableInference:
    """The inference of a model as arrays.

    Attributes:
        average: (K,) the shares that a document without a known word gets.
        encoder: from counts to hidden vectors, or None.
        readout: from hidden vectors to theta, or None.
        topics: inference given topics, or None.
        steps: what people did to the topics after training, in its order.
    """

    average: Array
    encoder: PortableEncoder | None = None
    readout: PortableReadout | None = None
    topics: PortableTopics | None = None
    steps: tuple[PortableRegroup | PortableSplit, ...] = ()

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
        """Return the largest difference from the theta (n, K) that the model has for these documents (n, V)."""
        return float(np.abs(self.theta(counts) - theta).max(initial=0.0))

    def halved(self) -> PortableInference:
        """Return the same with the large matrices in half precision."""
        encoder, topics = self.encoder, self.topics
        if encoder is not None:
            encoder = replace(encoder, weight=encoder.weight.astype(np.float16))
        if topics is not None:
            topics = replace(topics, beta_t=topics.beta_t.astype(np.float16))
        return replace(self, encoder=encoder, topics=topics, steps=tuple(map(_halved, self.steps)))


def _halved(step: PortableRegroup | PortableSplit) -> PortableRegroup | PortableSplit:
    if isinstance(step, PortableRegroup):
        return step
    parts = replace(step.parts, beta_t=step.parts.beta_t.astype(np.float16))
    return replace(step, beta_t=step.beta_t.astype(np.float16), parts=parts)
