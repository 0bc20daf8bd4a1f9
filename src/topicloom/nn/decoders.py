"""Decoders: theta in, the likelihood of a document's words out; and topics that are always distributions."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .layers import FoldedNorm, linear, normal_parameter
from .product import product_log_likelihood
from .softmax import column_softmax
from .sparse import SparseCounts, mixture_log_likelihood

Criterion = Literal["cross_entropy", "bernoulli"]


class TopicLogits(nn.Module, ABC):
    """Topics by their log weights of words: deviations from a background, from which calling it gives distributions."""

    background: Tensor  # (V,) log word frequencies, or zeros
    seeds: Tensor | None  # (V, K) what seed words weigh more in their topics from the start

    def __init__(self, background: Tensor, seeds: Tensor | None) -> None:
        super().__init__()
        self.register_buffer("background", background)
        self.register_buffer("seeds", seeds, persistent=False)  # the settings hold them

    @abstractmethod
    def learned(self) -> Tensor:
        """(V, K)"""

    def deviations(self) -> Tensor:
        """(V, K), with the seeds. They stay, so a topic keeps to its words; what is learned may outweigh them."""
        return self.learned() if self.seeds is None else self.learned() + self.seeds

    def forward(self) -> Tensor:
        """(V, K), every column a distribution: softmax(m + deviation), m the background, after SAGE and SCHOLAR."""
        return column_softmax(self.learned(), self._offset)

    @property
    def _offset(self) -> Tensor:
        """(V, 1) or (V, K)"""
        background = self.background[:, None]
        return background if self.seeds is None else background + self.seeds


class FreeTopics(TopicLogits):
    """Every word has its own weight in every topic.

    Args:
        gain: deviations are weights times this, so that under Adam topics move `gain` times as fast as the encoder:
            they have far to go, and an encoder at their rate is not stable.
    """

    def __init__(
        self,
        background: Tensor,
        n_topics: int,
        generator: torch.Generator,
        *,
        seeds: Tensor | None = None,
        gain: float = 10.0,
    ) -> None:
        super().__init__(background, seeds)
        self.weight = normal_parameter(len(background), n_topics, scale=0.5 / gain, generator=generator)
        self.gain = gain

    def learned(self) -> Tensor:
        return self.gain * self.weight

    def forward(self) -> Tensor:
        return column_softmax(self.weight, self._offset, self.gain)


class EmbeddedTopics(TopicLogits):
    """Words and topics are points of one space: deviation_vk = <rho_v, t_k> (Miao et al. 2017; Dieng et al. 2020).

    Args:
        word_vectors: (V, L) where the word vectors rho start, of unit scale; None starts at random.
        fixed: the word vectors are not trained.
        gain: topic vectors are weights times this. A step of Adam moves a deviation along all L dimensions at once:
            without it so far that topics die on short texts.
    """

    word_vectors: Tensor  # (V, L)

    def __init__(
        self,
        background: Tensor,
        n_topics: int,
        n_dimensions: int,
        generator: torch.Generator,
        *,
        seeds: Tensor | None = None,
        word_vectors: Tensor | None = None,
        fixed: bool = False,
        gain: float = 0.2,
    ) -> None:
        super().__init__(background, seeds)
        if word_vectors is None:
            start = normal_parameter(len(background), n_dimensions, scale=1.0, generator=generator)
        else:
            start = nn.Parameter(word_vectors.clone())
        n_dimensions = start.shape[1]
        if fixed:
            self.register_buffer("word_vectors", start.detach())
        else:
            self.word_vectors = start
        # With word vectors of unit scale, deviations of about 0.5, as FreeTopics starts with.
        scale = 0.5 / gain * n_dimensions**-0.5
        self.weight = normal_parameter(n_topics, n_dimensions, scale=scale, generator=generator)
        self.gain = gain

    @property
    def topic_vectors(self) -> Tensor:
        """(K, L)"""
        return self.gain * self.weight

    def learned(self) -> Tensor:
        return self.word_vectors @ self.topic_vectors.mT  # (V, L) (L, K)


class Decoder(nn.Module, ABC):
    """p(w | theta) over the vocabulary."""

    @abstractmethod
    def log_probabilities(self, theta: Tensor) -> Tensor:
        """(B, K) -> (B, V), every row the logarithm of a distribution. Dense: for one batch at a time."""

    @abstractmethod
    def topic_word(self) -> Tensor:
        """(K, V), every row a distribution."""

    def beta_t(self) -> Tensor:
        """(V, K), every column a distribution: the topics, as a training step holds them apart."""
        return self.topic_word().mT

    def at(self, theta: Tensor) -> Tensor:
        """p(w | theta) of mixtures that are no documents: (M, K) -> (M, V)."""
        training = self.training
        self.eval()  # they are no sample that batch statistics could be taken from
        try:
            return self.log_probabilities(theta).exp()
        finally:
            self.train(training)

    @contextmanager
    def held(self) -> Iterator[None]:
        """In it the weights do not change, so that what is derived from them may be kept."""
        yield

    def log_likelihood(self, theta: Tensor, counts: SparseCounts) -> Tensor:
        """sum_v x_dv log p(v | theta_d): (B, K) -> (B,)"""
        return counts.sum_by_document(counts.values * counts.at_counts(self.log_probabilities(theta)))

    def presence_log_likelihood(self, theta: Tensor, counts: SparseCounts) -> Tensor:
        """sum_v w_dv log g_v + (1 - w_dv) log(1 - g_v), w = 1 where the word is there, g = p(v | theta): -> (B,)"""
        log_g = self.log_probabilities(theta).clamp(max=-1e-6)  # (B, V)
        log_absent = torch.log1p(-log_g.exp())  # (B, V)
        present = counts.at_counts(log_g) - counts.at_counts(log_absent)  # (N,)
        return log_absent.sum(1) + counts.sum_by_document(present)

    def score(self, theta: Tensor, counts: SparseCounts, criterion: Criterion) -> Tensor:
        """The log likelihood that `criterion` names: (B,)"""
        likelihood = self.log_likelihood if criterion == "cross_entropy" else self.presence_log_likelihood
        return likelihood(theta, counts)


class MixtureDecoder(Decoder):
    """p(w | theta) = theta beta, beta_k = softmax(logits_k): sparse, the cost of a step is in the non-zeros."""

    def __init__(self, topics: TopicLogits) -> None:
        super().__init__()
        self.topics = topics
        self._held: Tensor | None = None

    def beta_t(self) -> Tensor:
        """(V, K), every column a distribution."""
        return self.topics() if self._held is None else self._held

    @contextmanager
    def held(self) -> Iterator[None]:
        self._held = self.beta_t()
        try:
            yield
        finally:
            self._held = None

    def topic_word(self) -> Tensor:
        return self.beta_t().mT

    def log_probabilities(self, theta: Tensor) -> Tensor:
        return (theta @ self.topic_word()).clamp_min(torch.finfo(theta.dtype).tiny).log()

    def log_likelihood(self, theta: Tensor, counts: SparseCounts) -> Tensor:
        return mixture_log_likelihood(theta, self.beta_t(), counts)


class ProductDecoder(Decoder):
    """p(w | theta) = softmax(theta B + b), a product of experts (Srivastava & Sutton 2017): dense over V.

    Args:
        batch_norm: whether theta B is normalised per word, with a learned shift and no scale.
    """

    def __init__(self, topics: TopicLogits, *, batch_norm: bool = False) -> None:
        super().__init__()
        self.topics = topics
        n_words, n_topics = topics.deviations().shape
        self.norm = FoldedNorm(n_topics, n_words) if batch_norm else None

    def beta_t(self) -> Tensor:
        beta_t: Tensor = self.topics()
        return beta_t

    def log_probabilities(self, theta: Tensor) -> Tensor:
        weight, bias = self._normalised(theta)
        return F.log_softmax(torch.addmm(bias, theta, weight.mT), dim=1)  # (B, V)

    def log_likelihood(self, theta: Tensor, counts: SparseCounts) -> Tensor:
        return product_log_likelihood(theta, *self._normalised(theta), counts)

    def _normalised(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """Weights (V, K) and biases (V,) that give the logits of these documents (B, K), the norm folded in."""
        weight = self.topics.deviations()
        if self.norm is None:
            return weight, self.topics.background
        weight, shift = self.norm(theta, weight)
        return weight, shift + self.topics.background

    def topic_word(self) -> Tensor:
        return self.at(torch.eye(self.topics.deviations().shape[1], device=self.topics.background.device))


class LogRatioDecoder(ProductDecoder):
    """p(w | z) = softmax(B z + b), z being the centred log-ratio of theta = softmax(z) (Miao et al. 2016).

    Corners have no log-ratio: topic k is read off a code as long as N(0, I) draws them, sqrt(K), and all of it along
    the k-th dimension.
    """

    def log_likelihood(self, theta: Tensor, counts: SparseCounts) -> Tensor:
        return super().log_likelihood(_log_ratio(theta), counts)

    def log_probabilities(self, theta: Tensor) -> Tensor:
        return super().log_probabilities(_log_ratio(theta))

    def beta_t(self) -> Tensor:
        weight = self.topics.deviations()  # (V, K)
        centred = weight - weight.mean(1, keepdim=True)
        return torch.softmax(math.sqrt(weight.shape[1]) * centred + self.topics.background[:, None], dim=0)

    def topic_word(self) -> Tensor:
        return self.beta_t().mT


def _log_ratio(theta: Tensor) -> Tensor:
    """log theta_k - mean_i log theta_i: (B, K)"""
    log_theta = theta.clamp_min(torch.finfo(theta.dtype).tiny).log()
    return log_theta - log_theta.mean(1, keepdim=True)


class MLPDecoder(Decoder):
    """p(w | theta) = softmax(B f(A theta + a) + b): topics are read off one-hot theta; dense over V."""

    def __init__(self, background: Tensor, n_topics: int, n_hidden: int, generator: torch.Generator) -> None:
        super().__init__()
        self.hidden = linear(n_topics, n_hidden, generator)
        self.topics = FreeTopics(background, n_hidden, generator)

    def log_probabilities(self, theta: Tensor) -> Tensor:
        h = F.softplus(self.hidden(theta))  # (B, H)
        return F.log_softmax(h @ self.topics.deviations().mT + self.topics.background, dim=1)

    def topic_word(self) -> Tensor:
        return self.at(torch.eye(self.hidden.in_features, device=self.topics.background.device))


def make_decoder(kind: Literal["mixture", "product"], topics: TopicLogits) -> Decoder:
    """The decoder of that name over these topics."""
    return MixtureDecoder(topics) if kind == "mixture" else ProductDecoder(topics)
