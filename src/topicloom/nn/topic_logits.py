"""Topics as logits of words: free, or points in one space with the words."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from .layers import normal_parameter
from .softmax import column_softmax

_START_NOISE = 0.2  # what is left of random deviations when topics start elsewhere
_RIDGE = 0.01  # of the topic vectors that give words certain deviations, for each word


class TopicLogits(nn.Module, ABC):
    """Topics as logits: deviations of the words' log weights from a background. A call returns them as distributions.

    Args:
        background: (V,) the logarithms of the word frequencies, or zeros; a parameter is learned.
        seeds: (V, K) what is added to the logits of seed words in their topics, or None.
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
        """Return the deviations that are learned, (V, K)."""

    def deviations(self) -> Tensor:
        """Return the deviations with the seeds, (V, K).

        The seeds are always added, so that a topic keeps its words, although learned deviations can outweigh them.
        """
        return self.learned() if self.seeds is None else self.learned() + self.seeds

    def forward(self) -> Tensor:
        """Return softmax(background + deviations), (V, K), whose columns are distributions, as in SAGE and SCHOLAR."""
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
        background, seeds: as in `TopicLogits`.
        n_topics: the number of topics K.
        generator: draws the initial weights.
        gain: the factor from weights to deviations. With Adam, topics change `gain` times as fast as the encoder. They
            have to change much more, and the encoder would not be stable at their rate.
        scale: the standard deviation of the initial deviations. None is sqrt(2 / (V + K)), by Glorot & Bengio 2010.
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
    ) -> None:
        super().__init__(background, seeds)
        scale = math.sqrt(2 / (len(background) + n_topics)) if scale is None else scale
        self.weight = normal_parameter(len(background), n_topics, scale=scale / gain, generator=generator)
        self.gain = gain

    def learned(self) -> Tensor:
        return self.gain * self.weight

    @torch.no_grad()
    def start_at(self, deviations: Tensor) -> None:
        self.weight.mul_(_START_NOISE).add_(deviations - deviations.mean(0), alpha=1 / self.gain)

    def forward(self) -> Tensor:
        return self._columns(self.weight, self.gain)


class EmbeddedTopics(TopicLogits):
    """Topics whose words and topics are points of one space: deviation_vk = <rho_v, t_k>.

    Miao et al. 2017; Dieng et al. 2020.

    Args:
        background, seeds, n_topics, generator: as in `FreeTopics`.
        n_dimensions: the number of dimensions L of the space, if no word vectors are given.
        word_vectors: (V, L) the initial word vectors rho, of unit scale; None draws them at random.
        fixed: whether the word vectors are not trained.
        gain: the factor from weights to topic vectors. A step of Adam changes a deviation in all L dimensions at once;
            without this factor, the steps are so large that topics of short texts are lost.
        scale: as in `FreeTopics`; None is sqrt(1 / 3), as in the code of ETM.
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
        self.weight.mul_(_START_NOISE).add_(vectors.mT, alpha=1 / self.gain)
