"""Topics that are Gaussian distributions over word vectors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from .topic_logits import EmbeddedTopics

_SCALE_GAIN = 0.1  # of the logarithmic scales, against the means: a step changes all dimensions of a word at once


class GaussianTopics(EmbeddedTopics):
    """Topics as Gaussian distributions over the space of word vectors.

    Gaussian-BAT of Wang et al. 2020, section 3.3: p(v | k) is in proportion to N(rho_v; mu_k, Sigma_k), normalised over
    the vocabulary. Here Sigma_k is diagonal. All scales are 1 at the start, where the deviations are
    <rho_v, mu_k> - |rho_v|^2 / 2. If all word vectors have one length, as given ones by default, these are the topics
    of `EmbeddedTopics` with t_k = mu_k. Vectors that are drawn at random differ in length, and words with short ones
    begin with more weight in all topics.

    The arguments are those of `EmbeddedTopics`.
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
