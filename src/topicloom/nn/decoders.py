"""Decoders: from theta to words. Topics are logits of words: free, or points in one space with the words."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .execution import NUMBERS_BETWEEN_ARRAYS, arrays_of, compiled_for, exponential
from .layers import ACTIVATIONS, Activation, FoldedNorm, linear, normal_parameter
from .sparse import TINY, SparseCounts, mixture_log_likelihood, product_log_likelihood
from .transport import squared_distances

Array = np.ndarray[Any, Any]
Criterion = Literal["cross_entropy", "bernoulli", "bce_softmax", "bce_sigmoid"]

_KEPT_NOISE = 0.2  # the share of the random deviations that topics keep if they start at given deviations
_RIDGE = 0.01  # the ridge penalty per word in the regression of given deviations on the word vectors
# The gain of the logarithmic scales relative to that of the means. A step changes all dimensions of a word at once.
_SCALE_GAIN = 0.1
_LEAST_LOGARITHM = -100.0  # as in torch.nn.functional.binary_cross_entropy
_SMALL_PROBABILITY = 1e-6  # below this, g and -log(1 - g) are the same in single precision


class Decoder(nn.Module, ABC):
    """The distribution p(w | theta) over the vocabulary.

    Attributes:
        uses_helpers: whether several threads share the computation of the log likelihood (see nn/execution.py).
    """

    uses_helpers: ClassVar[bool] = False

    @abstractmethod
    def log_probabilities(self, theta: Tensor) -> Tensor:
        """Return log p(w | theta) for all words, (B, K) -> (B, V). The result is dense: one batch at a time."""

    def logits(self, theta: Tensor) -> Tensor:
        """Return logits whose softmax is p(w | theta), (B, K) -> (B, V). By default, they are log p(w | theta)."""
        return self.log_probabilities(theta)

    @abstractmethod
    def topic_word(self) -> Tensor:
        """Return the topics, (K, V), whose rows are distributions."""

    def beta_t(self) -> Tensor:
        """Return the topics, (V, K), whose columns are distributions. The separation term reads them."""
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
        """A context in which the topics are computed only once. The weights must not change in it."""
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
        and n_d, words are assumed to be independent of each other.
        """
        log_p = self.log_probabilities(theta).clamp(max=-1e-6)  # (B, V)
        log_absent = counts.totals[:, None] * torch.log1p(-log_p.exp())  # (B, V) log(1 - g)
        absent = counts.at_counts(log_absent)  # (N,)
        rare = counts.totals.log()[counts.documents] + counts.at_counts(log_p)  # (N,) log(n p), which is log g if small
        usual = (-torch.expm1(absent.clamp(max=-_SMALL_PROBABILITY))).log()  # (N,)
        present = torch.where(absent > -_SMALL_PROBABILITY, rare, usual)  # (N,) log g
        return log_absent.sum(1) + counts.sum_by_document(present - absent)

    def binary_cross_entropy(self, theta: Tensor, counts: SparseCounts, *, softmax: bool) -> Tensor:
        """Return sum_v x_dv log p_dv + (1 - x_dv) log(1 - p_dv), (B, K) -> (B,), where x are the counts.

        As in zll17's Neural_Topic_Models, counts above 1 give the second term a weight below 0, so this is no
        likelihood. Logarithms below -100 count as -100, as in PyTorch's function, which now refuses counts above 1.

        Args:
            theta: (B, K).
            counts: the counts x.
            softmax: whether p is p(w | theta) ("bce_softmax"), or the sigmoid of each logit ("bce_sigmoid").
        """
        if softmax:
            log_p = self.log_probabilities(theta).clamp(max=-1e-6)  # (B, V)
            log_absent = torch.log1p(-log_p.exp())
        else:
            logits = self.logits(theta)
            log_p, log_absent = F.logsigmoid(logits), F.logsigmoid(-logits)
        log_p, log_absent = (each.clamp_min(_LEAST_LOGARITHM) for each in (log_p, log_absent))
        difference = counts.at_counts(log_p) - counts.at_counts(log_absent)  # (N,)
        return log_absent.sum(1) + counts.sum_by_document(counts.values * difference)

    def score(self, theta: Tensor, counts: SparseCounts, criterion: Criterion) -> Tensor:
        """Return the log likelihood with this criterion: (B, K) -> (B,)."""
        if criterion == "cross_entropy":
            return self.log_likelihood(theta, counts)
        if criterion == "bernoulli":
            return self.bernoulli_log_likelihood(theta, counts)
        return self.binary_cross_entropy(theta, counts, softmax=criterion == "bce_softmax")


class MixtureDecoder(Decoder):
    """p(w | theta) = theta beta, beta_k = softmax(logits_k).

    The likelihood is computed at the non-zero counts only, so the cost of a step grows with their number.

    Args:
        topics: the logits.
        floor: the number that is added to p(w | theta) in training. It keeps the logarithm finite.

    >>> import torch
    >>> decoder = MixtureDecoder(FreeTopics(torch.zeros(5), 2, torch.Generator().manual_seed(0)))
    >>> decoder.topic_word().shape  # (K, V), rows sum to 1
    torch.Size([2, 5])
    >>> theta = torch.tensor([[0.5, 0.5]])  # (B, K)
    >>> round(decoder.log_probabilities(theta).exp().sum().item(), 3)
    1.0
    """

    def __init__(self, topics: TopicLogits, *, floor: float = TINY) -> None:
        super().__init__()
        self.topics, self.floor = topics, floor
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
        return mixture_log_likelihood(theta, self.beta_t(), counts, self.floor if self.training else TINY)


class ProductDecoder(Decoder):
    """p(w | theta) = softmax(theta B + b), a product of experts (Srivastava & Sutton 2017).

    A batch takes memory in proportion to the vocabulary.

    Args:
        topics: the logits B and the background b.
        batch_norm: whether theta B is normalised for each word, with a learned shift and without a scale.
        eps: a number added to the variance in this normalisation.

    >>> import torch
    >>> decoder = ProductDecoder(FreeTopics(torch.zeros(5), 2, torch.Generator().manual_seed(0)))
    >>> decoder.log_probabilities(torch.tensor([[0.5, 0.5]])).shape
    torch.Size([1, 5])
    """

    uses_helpers = True

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

    def logits(self, theta: Tensor) -> Tensor:
        weight, bias = self._normalised(theta)
        return torch.addmm(bias, theta, weight.mT)  # (B, V)

    def log_probabilities(self, theta: Tensor) -> Tensor:
        return F.log_softmax(self.logits(theta), dim=1)

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
    """p(w | theta) = softmax(B f(A theta + a) + b), with one hidden layer or several.

    Topic k is p(w | theta) for a document that consists of topic k. A batch takes memory in proportion to the
    vocabulary.

    Args:
        background: (V,) b, the logarithms of the word frequencies, or zeros. It is learned if it is a parameter.
        n_topics: the number of topics K.
        n_hidden: the width H of the hidden layer, or the widths of several layers.
        generator: draws the initial weights.
        activation: the function f.
        gain: the factor from the weights of B to its entries. With Adam, the entries change `gain` times as fast.
        scale: the standard deviation of the initial entries of B. None is sqrt(2 / (V + H)), by Glorot & Bengio 2010.

    >>> import torch
    >>> MLPDecoder(torch.zeros(5), 2, 3, torch.Generator().manual_seed(0)).topic_word().shape
    torch.Size([2, 5])
    """

    def __init__(
        self,
        background: Tensor,
        n_topics: int,
        n_hidden: int | Sequence[int],
        generator: torch.Generator,
        *,
        activation: Activation = "softplus",
        gain: float = 10.0,
        scale: float | None = 0.5,
    ) -> None:
        super().__init__()
        widths = (n_hidden,) if isinstance(n_hidden, int) else tuple(n_hidden)
        self.hidden = linear(n_topics, widths[0], generator)
        self.deeper = nn.ModuleList(linear(*each, generator) for each in itertools.pairwise(widths))
        self.topics = FreeTopics(background, widths[-1], generator, gain=gain, scale=scale)
        self.activation = activation

    def logits(self, theta: Tensor) -> Tensor:
        f = ACTIVATIONS[self.activation]
        h = f(self.hidden(theta))  # (B, H)
        for layer in self.deeper:
            h = f(layer(h))
        return h @ self.topics.deviations().mT + self.topics.background

    def log_probabilities(self, theta: Tensor) -> Tensor:
        return F.log_softmax(self.logits(theta), dim=1)

    def topic_word(self) -> Tensor:
        return self.at(_unmixed(self.hidden.in_features, self.topics.background))


def _unmixed(n_topics: int, like: Tensor) -> Tensor:
    """Return the theta of documents with a single topic each, (K, K), with the type and device of `like`."""
    return torch.eye(n_topics, dtype=like.dtype, device=like.device)


def make_decoder(kind: Literal["mixture", "product"], topics: TopicLogits) -> Decoder:
    """Return the decoder of this name with these topics.

    >>> import torch
    >>> type(make_decoder("product", FreeTopics(torch.zeros(5), 2, torch.Generator().manual_seed(0)))).__name__
    'ProductDecoder'
    """
    return MixtureDecoder(topics) if kind == "mixture" else ProductDecoder(topics)


# Topics


class TopicLogits(nn.Module, ABC):
    """Topics as logits: deviations of the words' log weights from a background. A call returns them as distributions.

    Args:
        background: (V,) the logarithms of the word frequencies, or zeros. It is learned if it is a parameter.
        seeds: (V, K) numbers that are added to the logits of seed words in their topics, or None.
    """

    background: Tensor  # (V,)
    seeds: Tensor | None  # (V, K)

    def __init__(self, background: Tensor, seeds: Tensor | None) -> None:
        super().__init__()
        if isinstance(background, nn.Parameter):
            self.background = background
        else:
            self.register_buffer("background", background)
        self.register_buffer("seeds", seeds, persistent=False)  # the settings contain them

    @abstractmethod
    def learned(self) -> Tensor:
        """Return the learned deviations, (V, K)."""

    def deviations(self) -> Tensor:
        """Return the deviations with the seeds, (V, K).

        The seeds are always added, so that a topic tends to keep its words. Learned deviations can still outweigh them.
        """
        return self.learned() if self.seeds is None else self.learned() + self.seeds

    def forward(self) -> Tensor:
        """Return softmax(background + deviations), (V, K), whose columns are distributions (as in SAGE and SCHOLAR)."""
        return self._columns(self.learned())

    def _columns(self, weight: Tensor, gain: float = 1.0) -> Tensor:
        """Return softmax(background + seeds + gain * weight), (V, K)."""
        if self.background.requires_grad:  # column_softmax does not differentiate the offset
            return torch.softmax(self._offset + gain * weight, dim=0)
        return column_softmax(weight, self._offset, gain)

    def start_at(self, deviations: Tensor) -> None:
        """Start the topics near these deviations, (V, K), instead of random ones. By default, do nothing."""

    @property
    def _offset(self) -> Tensor:
        """(V, 1) or (V, K)"""
        background = self.background[:, None]
        return background if self.seeds is None else background + self.seeds


class FreeTopics(TopicLogits):
    """Topics in which every word has a weight of its own.

    Args:
        background: (V,) the logarithms of the word frequencies, or zeros. It is learned if it is a parameter.
        seeds: (V, K) numbers that are added to the logits of seed words in their topics, or None.
        n_topics: the number of topics K.
        generator: draws the initial weights.
        gain: the factor from weights to deviations. With Adam, topics change `gain` times as fast as the encoder,
            because they must change much more. The encoder would not be stable at this rate.
        scale: the standard deviation of the initial deviations. None is sqrt(2 / (V + K)), by Glorot & Bengio 2010.
        norm_eps: if given, the weights of each word are normalised over the topics, with a learned shift for each word
            and without a scale, as in the code of NVLDA. This number is added to their variance.

    >>> import torch
    >>> beta_t = FreeTopics(torch.zeros(5), 2, torch.Generator().manual_seed(0))()  # (V, K)
    >>> beta_t.shape, [round(total, 3) for total in beta_t.sum(0).tolist()]
    (torch.Size([5, 2]), [1.0, 1.0])
    """

    def __init__(
        self,
        background: Tensor,
        n_topics: int,
        generator: torch.Generator,
        *,
        seeds: Tensor | None = None,
        gain: float = 10.0,
        scale: float | None = 0.5,
        norm_eps: float | None = None,
    ) -> None:
        super().__init__(background, seeds)
        scale = math.sqrt(2 / (len(background) + n_topics)) if scale is None else scale
        self.weight = normal_parameter(len(background), n_topics, scale=scale / gain, generator=generator)
        self.gain, self.norm_eps = gain, norm_eps
        self.shift = None if norm_eps is None else nn.Parameter(torch.zeros(len(background)))  # (V,)

    def learned(self) -> Tensor:
        weight = self.gain * self.weight  # (V, K)
        if self.norm_eps is None or self.shift is None:
            return weight
        centred = weight - weight.mean(1, keepdim=True)
        return centred * (centred.square().mean(1, keepdim=True) + self.norm_eps).rsqrt() + self.shift[:, None]

    @torch.no_grad()
    def start_at(self, deviations: Tensor) -> None:
        self.weight.mul_(_KEPT_NOISE).add_(deviations - deviations.mean(0), alpha=1 / self.gain)

    def forward(self) -> Tensor:
        return self._columns(self.weight, self.gain) if self.norm_eps is None else super().forward()


class EmbeddedTopics(TopicLogits):
    """Topics whose words and topics are points of one space: deviation_vk = <rho_v, t_k>.

    Miao et al. 2017; Dieng et al. 2020.

    Args:
        background: (V,) the logarithms of the word frequencies, or zeros. It is learned if it is a parameter.
        seeds: (V, K) numbers that are added to the logits of seed words in their topics, or None.
        n_topics: the number of topics K.
        generator: draws the initial weights.
        n_dimensions: the number of dimensions L of the space, if no word vectors are given.
        word_vectors: (V, L) the initial word vectors rho, of unit scale; None draws them at random.
        fixed: whether the word vectors stay at their initial values.
        gain: the factor from weights to topic vectors. A step of Adam changes a deviation in all L dimensions at once;
            without this factor, the steps are so large that topics of short texts are lost.
        scale: the standard deviation of the initial deviations. None is sqrt(1 / 3), the value in the code of ETM with
            given word vectors of unit scale.
        as_linear: whether topic vectors, and word vectors that are not given, start as the weights of linear layers of
            PyTorch, U(-1/sqrt(L), 1/sqrt(L)), as in the code of ETM. `scale` then has no effect.

    >>> import torch
    >>> topics = EmbeddedTopics(torch.zeros(5), 2, 3, torch.Generator().manual_seed(0))
    >>> topics.word_vectors.shape, topics.topic_vectors.shape, topics().shape
    (torch.Size([5, 3]), torch.Size([2, 3]), torch.Size([5, 2]))
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
        scale: float | None = 0.5,
        as_linear: bool = False,
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
        # With word vectors of unit scale, the deviations start at about `scale`, as those of FreeTopics.
        scale = (3**-0.5 if scale is None else scale) / gain * n_dimensions**-0.5
        self.weight = normal_parameter(n_topics, n_dimensions, scale=scale, generator=generator)
        self.gain = gain
        if as_linear:
            bound = n_dimensions**-0.5
            with torch.no_grad():
                self.weight.uniform_(-bound / gain, bound / gain, generator=generator)
                if word_vectors is None:
                    self.word_vectors.uniform_(-bound, bound, generator=generator)

    @property
    def topic_vectors(self) -> Tensor:
        """The topic vectors t, (K, L)."""
        return self.gain * self.weight

    def learned(self) -> Tensor:
        return self.word_vectors @ self.topic_vectors.mT  # (V, L) (L, K)

    @torch.no_grad()
    def start_at(self, deviations: Tensor) -> None:
        rho = self.word_vectors  # (V, L)
        squares = rho.mT @ rho + _RIDGE * len(rho) * torch.eye(rho.shape[1], device=rho.device)  # (L, L)
        vectors = torch.linalg.solve(squares, rho.mT @ (deviations - deviations.mean(0)))  # (L, K)
        self.weight.mul_(_KEPT_NOISE).add_(vectors.mT, alpha=1 / self.gain)


class GaussianTopics(EmbeddedTopics):
    """Topics as Gaussian distributions over the space of word vectors.

    Gaussian-BAT of Wang et al. 2020, section 3.3: p(v | k) is in proportion to N(rho_v; mu_k, Sigma_k), normalised over
    the vocabulary. Here Sigma_k is diagonal. All scales start at 1, and the deviations then are
    <rho_v, mu_k> - |rho_v|^2 / 2. If all word vectors have one length, as given vectors have by default, these are the
    topics of `EmbeddedTopics` with t_k = mu_k. Random vectors differ in length, and words with short vectors begin with
    more weight in all topics.

    Args:
        background: (V,) the logarithms of the word frequencies, or zeros. It is learned if it is a parameter.
        n_topics: the number of topics K.
        n_dimensions: the number of dimensions L of the space.
        generator: draws the initial weights.
        settings: `seeds`, `word_vectors`, `fixed`, `gain` and `scale` of `EmbeddedTopics`.

    >>> import torch
    >>> topics = GaussianTopics(torch.zeros(5), 2, 3, torch.Generator().manual_seed(0))
    >>> topics().shape, topics.scales.shape
    (torch.Size([5, 2]), torch.Size([2, 3]))
    """

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.log_scale = nn.Parameter(torch.zeros_like(self.weight))  # (K, L)

    @property
    def scales(self) -> Tensor:
        """The standard deviations of the topics, (K, L)."""
        return (_SCALE_GAIN * self.gain * self.log_scale).exp()

    def learned(self) -> Tensor:
        """Return log N(rho_v; mu_k, Sigma_k) for each word and topic, (V, K), up to a constant for each topic."""
        precision = self.scales**-2  # (K, L)
        squares = self.word_vectors**2 @ precision.mT  # (V, L) (L, K)
        return self.word_vectors @ (precision * self.topic_vectors).mT - squares / 2


class ClusteredTopics(EmbeddedTopics):
    """Topics as clusters of word vectors: the deviations of a word are its shares, softmax_k(-|rho_v - t_k|^2 / tau).

    ECRTM of Wu et al. 2023. The shares of a word sum to 1 over the topics. Word and topic vectors start with unit
    length.

    Args:
        background: (V,) the logarithms of the word frequencies, or zeros. It is learned if it is a parameter.
        n_topics: the number of topics K.
        n_dimensions: the number of dimensions L of the space.
        generator: draws the initial weights.
        temperature: tau.
        settings: `seeds`, `word_vectors`, `fixed`, `gain` and `scale` of `EmbeddedTopics`. Here `scale` is the standard
            deviation of the logits of the shares at the start; None is that of topic vectors of unit length.

    >>> import torch
    >>> topics = ClusteredTopics(torch.zeros(5), 2, 3, torch.Generator().manual_seed(0))
    >>> topics.learned().shape, [round(total, 3) for total in topics.learned().sum(1).tolist()]
    (torch.Size([5, 2]), [1.0, 1.0, 1.0, 1.0, 1.0])
    """

    def __init__(self, *args: Any, temperature: float = 0.2, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.temperature = temperature
        scale = settings.get("scale", 0.5)
        with torch.no_grad():
            self.word_vectors.copy_(F.normalize(self.word_vectors, dim=1))
            self.weight.copy_(F.normalize(self.weight, dim=1) / self.gain)
            if scale is not None:
                self.weight.mul_(scale * self.temperature * self.weight.shape[1] ** 0.5 / 2)

    def distances(self) -> Tensor:
        """Return the squared distances of words and topics, (V, K)."""
        return squared_distances(self.word_vectors, self.topic_vectors)

    def learned(self) -> Tensor:
        logits = -self.distances() / self.temperature
        return torch.softmax(logits if self.seeds is None else logits + self.seeds, dim=1)

    def deviations(self) -> Tensor:
        return self.learned()

    def forward(self) -> Tensor:
        return torch.softmax(self.background[:, None] + self.learned(), dim=0)

    def start_at(self, deviations: Tensor) -> None:
        """Keep the random start, because shares are no linear function of the vectors."""


def column_softmax(weight: Tensor, offset: Tensor, gain: float = 1.0) -> Tensor:
    """Return softmax(offset + gain * weight, dim=0).

    With 50 or 100 topics, the function and its gradient take little more than half the time of separate operations.

    Args:
        weight: (V, K).
        offset: (V, K) or (V, 1), which is not differentiated.
        gain: a factor.

    Returns:
        (V, K), columns sum to 1.
    """
    out: Tensor = _ColumnSoftmax.apply(weight, offset, gain)  # type: ignore[no-untyped-call]
    return out


class _ColumnSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, offset: Tensor, gain: float) -> Tensor:
        loop = None
        if ctx.needs_input_grad[0]:
            loop = compiled_for(_softmax_loop, _softmax_example, weight.numel(), weight, offset)
        if loop is not None:
            out = torch.empty_like(weight, memory_format=torch.contiguous_format)
            loop(*arrays_of(weight, offset, out), np.float32(gain))
        else:
            out = torch.add(offset, weight, alpha=gain)  # (V, K)
            out.sub_(out.amax(0)).exp_()
            out.mul_(out.sum(0).reciprocal_())
        ctx.gain = gain
        ctx.save_for_backward(out)
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (out,) = ctx.saved_tensors
        loop = compiled_for(_softmax_gradient_loop, _softmax_gradient_example, out.numel(), out, grad)
        if loop is not None:
            of_weight = torch.empty_like(out)
            loop(*arrays_of(out, grad, of_weight), np.float32(ctx.gain))
            return of_weight, None, None
        product = out * grad  # (V, K)
        return product.addcmul_(out, product.sum(0), value=-1).mul_(ctx.gain), None, None


def _softmax_loop(weight: Array, offset: Array, out: Array, gain: float) -> None:
    """Write the softmax of each column of offset + gain * weight to `out` (V, K)."""
    n_words, n_topics = weight.shape
    rows = np.zeros((2, n_topics + 2 * NUMBERS_BETWEEN_ARRAYS), np.float32)
    rows = rows[:, NUMBERS_BETWEEN_ARRAYS:-NUMBERS_BETWEEN_ARRAYS]
    highest, total = rows[0], rows[1]
    highest[:] = -np.inf
    for word in range(n_words):
        row, own, is_same = out[word], offset[word], offset.shape[1] == 1
        for k in range(n_topics):
            row[k] = (own[0] if is_same else own[k]) + gain * weight[word, k]
            highest[k] = max(highest[k], row[k])
    for word in range(n_words):
        row = out[word]
        for k in range(n_topics):
            below = row[k] - highest[k]
            row[k] = exponential(below if not below < np.float32(-87) else np.float32(-87))  # NaN stays NaN
            total[k] += row[k]
    for k in range(n_topics):
        total[k] = 1 / total[k]
    for word in range(n_words):
        for k in range(n_topics):
            out[word, k] *= total[k]


def _softmax_example() -> tuple[Any, ...]:
    """Return arguments of `_softmax_loop` for one word and one topic."""
    table = np.ones((1, 1), np.float32)
    return table, table, table.copy(), np.float32(1)


def _softmax_gradient_loop(out: Array, grad: Array, of_weight: Array, gain: float) -> None:
    """Write the gradient of the weights to `of_weight`, given the softmax `out` and its gradient, (V, K) each."""
    n_words, n_topics = out.shape
    total = np.zeros(n_topics + 2 * NUMBERS_BETWEEN_ARRAYS, np.float32)
    total = total[NUMBERS_BETWEEN_ARRAYS:-NUMBERS_BETWEEN_ARRAYS]
    for word in range(n_words):
        for k in range(n_topics):
            total[k] += out[word, k] * grad[word, k]
    for word in range(n_words):
        for k in range(n_topics):
            of_weight[word, k] = gain * out[word, k] * (grad[word, k] - total[k])


def _softmax_gradient_example() -> tuple[Any, ...]:
    """Return arguments of `_softmax_gradient_loop` for one word and one topic."""
    table = np.ones((1, 1), np.float32)
    return table, table, table.copy(), np.float32(1)
