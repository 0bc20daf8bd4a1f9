"""DeterministicNetwork: the network of the models whose encoder gives a document a single theta, BATM and WLDA."""

from __future__ import annotations

import torch
from torch import Tensor

from ..nn.batch import Batch
from ..nn.code_norm import TopicShares, norm_of_location
from ..nn.decoders import Decoder
from ..nn.layers import linear
from ..nn.network import AutoencoderNetwork
from ..nn.posteriors import PointPosterior
from ..nn.samplers import Sampler
from .neural import NeuralTopicModel
from .words import Words


class DeterministicNetwork(AutoencoderNetwork):
    """x -> h -> f(x) -> z = spread norm(f(x)) + b -> theta = softmax(z) -> words.

    Args:
        decoder: the decoder.
        settings: the estimator.
        words: the vocabulary.
        generator: draws the initial weights of the encoder.

    Attributes:
        prior: p(theta), with which the model's loss compares theta.
        spread: the standard deviation of the normalised codes.
    """

    prior: Sampler
    shares: TopicShares
    spread: float

    def __init__(self, decoder: Decoder, settings: NeuralTopicModel, words: Words, generator: torch.Generator) -> None:
        super().__init__(decoder, settings.build_encoder(words, generator), settings.build_separation_term(words))
        self.code = linear(settings.hidden_size, settings.n_topics, generator, bias=False)
        self.norm = norm_of_location(settings.n_topics, settings.code_norm)
        self.shares = settings.build_shares(words)
        self.criterion = settings.criterion

    def raw_codes(self, batch: Batch) -> Tensor:
        """Return f(x), (B, K)."""
        raw: Tensor = self.code(self.encoder(batch, self.noise))
        return raw

    def scaled(self, normal: Tensor) -> Tensor:
        """Return the codes z of normalised f(x): (B, K) -> (B, K)."""
        return self.spread * normal + self.shares.logits

    def codes(self, batch: Batch) -> Tensor:
        """Return z, (B, K)."""
        return self.scaled(self.norm(self.raw_codes(batch)))

    def posterior(self, batch: Batch) -> PointPosterior:
        return PointPosterior(torch.softmax(self.codes(batch), dim=1))

    def bound(self, batch: Batch, generator: torch.Generator) -> Tensor:
        """Return the log likelihood at the encoder's theta, because a point posterior has no evidence lower bound."""
        return self.decoder.score(self.posterior(batch).point(), batch.counts, self.criterion)

    def prior_theta(self) -> Tensor:
        return self.prior.mean()
