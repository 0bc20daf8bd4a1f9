"""Decoders, which give the likelihood of a document's words given theta."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .layers import FoldedNorm, linear
from .product import product_log_likelihood
from .sparse import SparseCounts, mixture_log_likelihood
from .topic_logits import FreeTopics, TopicLogits

Criterion = Literal["cross_entropy", "bernoulli"]

_SMALL = 1e-6  # below this, a probability g and -log(1 - g) are the same in single precision


class Decoder(nn.Module, ABC):
    """The distribution p(w | theta) over the vocabulary.

    Attributes:
        shares_work: whether several threads compute the log likelihood together (see `nn.helpers`).
    """

    shares_work: ClassVar[bool] = False

    @abstractmethod
    def log_probabilities(self, theta: Tensor) -> Tensor:
        """Return log p(w | theta) for all words, (B, K) -> (B, V): dense, so for one batch at a time."""

    @abstractmethod
    def topic_word(self) -> Tensor:
        """Return the topics, (K, V), whose rows are distributions."""

    def beta_t(self) -> Tensor:
        """Return the topics, (V, K), whose columns are distributions, as the separation term reads them."""
        return self.topic_word().mT

    def at(self, theta: Tensor) -> Tensor:
        """Return p(w | theta) for mixtures that are not documents: (M, K) -> (M, V)."""
        training = self.training
        self.eval()  # these mixtures must not change batch statistics
        try:
            return self.log_probabilities(theta).exp()
        finally:
            self.train(training)

    @contextmanager
    def cached_topics(self) -> Iterator[None]:
        """A context in which the weights do not change, so that the topics are computed only once."""
        yield

    def start_at(self, deviations: Tensor) -> None:
        """Start the topics near these deviations, (V, K). By default, they keep their random start."""

    def log_likelihood(self, theta: Tensor, counts: SparseCounts) -> Tensor:
        """Return sum_v x_dv log p(v | theta_d): (B, K) -> (B,)."""
        return counts.sum_by_document(counts.values * counts.at_counts(self.log_probabilities(theta)))

    def bernoulli_log_likelihood(self, theta: Tensor, counts: SparseCounts) -> Tensor:
        """Return sum_v w_dv log g_dv + (1 - w_dv) log(1 - g_dv): (B, K) -> (B,).

        w_dv is 1 if document d contains word v and 0 otherwise. g_dv = 1 - (1 - p(v | theta_d))^n_d is the probability
        that word v is among n_d tokens drawn from p(w | theta_d), where n_d is the number of tokens of the document.
        The sum of g_dv over the words is therefore the expected number of distinct words in n_d tokens. Given theta
        and n_d, words are taken to be independent of each other.
        """
        log_p = self.log_probabilities(theta).clamp(max=-1e-6)  # (B, V)
        log_absent = counts.totals[:, None] * torch.log1p(-log_p.exp())  # (B, V) log(1 - g)
        absent = counts.at_counts(log_absent)  # (N,)
        rare = counts.totals.log()[counts.documents] + counts.at_counts(log_p)  # (N,) log(n p), which is log g if small
        present = torch.where(absent > -_SMALL, rare, (-torch.expm1(absent.clamp(max=-_SMALL))).log())  # (N,) log g
        return log_absent.sum(1) + counts.sum_by_document(present - absent)

    def score(self, theta: Tensor, counts: SparseCounts, criterion: Criterion) -> Tensor:
        """Return the log likelihood that `criterion` names: (B, K) -> (B,)."""
        likelihood = self.log_likelihood if criterion == "cross_entropy" else self.bernoulli_log_likelihood
        return likelihood(theta, counts)


class MixtureDecoder(Decoder):
    """p(w | theta) = theta beta, beta_k = softmax(logits_k).

    The likelihood is computed at the non-zero counts only, so the cost of a step grows with their number.
    """

    def __init__(self, topics: TopicLogits) -> None:
        super().__init__()
        self.topics = topics
        self._cached: Tensor | None = None

    def start_at(self, deviations: Tensor) -> None:
        self.topics.start_at(deviations)

    def beta_t(self) -> Tensor:
        return self.topics() if self._cached is None else self._cached

    @contextmanager
    def cached_topics(self) -> Iterator[None]:
        self._cached = self.beta_t()
        try:
            yield
        finally:
            self._cached = None

    def topic_word(self) -> Tensor:
        return self.beta_t().mT

    def log_probabilities(self, theta: Tensor) -> Tensor:
        return (theta @ self.topic_word()).clamp_min(torch.finfo(theta.dtype).tiny).log()

    def log_likelihood(self, theta: Tensor, counts: SparseCounts) -> Tensor:
        return mixture_log_likelihood(theta, self.beta_t(), counts)


class ProductDecoder(Decoder):
    """p(w | theta) = softmax(theta B + b), a product of experts (Srivastava & Sutton 2017).

    It is dense over the vocabulary, for one batch at a time.

    Args:
        topics: the logits B and the background b.
        batch_norm: whether theta B is normalised for each word, with a learned shift and without a scale.
        eps: a number added to the variance in this normalisation.
    """

    shares_work = True

    def __init__(self, topics: TopicLogits, *, batch_norm: bool = False, eps: float = 1e-5) -> None:
        super().__init__()
        self.topics = topics
        n_words, n_topics = topics.deviations().shape
        self.norm = FoldedNorm(n_topics, n_words, eps=eps) if batch_norm else None

    def start_at(self, deviations: Tensor) -> None:
        self.topics.start_at(deviations)

    def beta_t(self) -> Tensor:
        beta_t: Tensor = self.topics()
        return beta_t

    def log_probabilities(self, theta: Tensor) -> Tensor:
        weight, bias = self._normalised(theta)
        return F.log_softmax(torch.addmm(bias, theta, weight.mT), dim=1)  # (B, V)

    def log_likelihood(self, theta: Tensor, counts: SparseCounts) -> Tensor:
        return product_log_likelihood(theta, *self._normalised(theta), counts)

    def _normalised(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """Return the weights (V, K) and biases (V,) of the logits of these documents (B, K), including the norm."""
        weight = self.topics.deviations()
        if self.norm is None:
            return weight, self.topics.background
        weight, shift = self.norm(theta, weight)
        return weight, shift + self.topics.background

    def topic_word(self) -> Tensor:
        return self.at(_unmixed(self.topics.deviations().shape[1], self.topics.background))


class MLPDecoder(Decoder):
    """p(w | theta) = softmax(B f(A theta + a) + b), where f is softplus.

    Topic k is p(w | theta) for a document that consists of topic k. The decoder is dense over the vocabulary, for one
    batch at a time.

    Args:
        background, n_topics, generator, gain, scale: as in `FreeTopics`; the background is b.
        n_hidden: the width H of the hidden layer.
    """

    def __init__(
        self,
        background: Tensor,
        n_topics: int,
        n_hidden: int,
        generator: torch.Generator,
        *,
        gain: float = 10.0,
        scale: float | None = 0.5,
    ) -> None:
        super().__init__()
        self.hidden = linear(n_topics, n_hidden, generator)
        self.topics = FreeTopics(background, n_hidden, generator, gain=gain, scale=scale)

    def log_probabilities(self, theta: Tensor) -> Tensor:
        h = F.softplus(self.hidden(theta))  # (B, H)
        return F.log_softmax(h @ self.topics.deviations().mT + self.topics.background, dim=1)

    def topic_word(self) -> Tensor:
        return self.at(_unmixed(self.hidden.in_features, self.topics.background))


def _unmixed(n_topics: int, like: Tensor) -> Tensor:
    """Return the theta of documents of one topic each, (K, K), of the type and on the device of a tensor."""
    return torch.eye(n_topics, dtype=like.dtype, device=like.device)


def make_decoder(kind: Literal["mixture", "product"], topics: TopicLogits) -> Decoder:
    """Return the decoder of this name with these topics."""
    return MixtureDecoder(topics) if kind == "mixture" else ProductDecoder(topics)
