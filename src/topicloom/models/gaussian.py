"""GaussianNetwork: the network of the models whose documents have a Gaussian code, GSM, NVDM, ETM and GMNTM."""

from __future__ import annotations

import torch
from torch import Tensor

from ..nn.batch import Batch
from ..nn.code_norm import TopicShares
from ..nn.decoders import Decoder
from ..nn.encoders import GaussianHead
from ..nn.network import VariationalNetwork
from ..nn.posteriors import GaussianPosterior, SampledPosterior
from ..nn.priors import NormalPrior, Prior
from .variational import VariationalTopicModel
from .words import Words


class GaussianNetwork(VariationalNetwork):
    """x -> h -> q(z | x) = N(mu, diag sigma^2) -> theta = softmax(z + b) -> words.

    Args:
        decoder: the decoder.
        prior: p(z).
        settings: the estimator.
        words: the vocabulary.
        generator: draws the initial weights of the encoder.
        scaled: as in `GaussianHead`.
    """

    prior: Prior
    shares: TopicShares

    def __init__(
        self,
        decoder: Decoder,
        prior: Prior,
        settings: VariationalTopicModel,
        words: Words,
        generator: torch.Generator,
        *,
        scaled: bool = True,
    ) -> None:
        super().__init__(
            decoder,
            settings.build_encoder(words, generator),
            settings.build_separation_term(words),
            criterion=settings.criterion,
            n_samples=settings.n_samples,
        )
        self.prior = prior
        norm = settings.code_norm
        self.head = GaussianHead(settings.hidden_size, prior.unit_var(), generator, norm=norm, scaled=scaled)
        self.shares = settings.build_shares(words)

    def code(self, batch: Batch) -> GaussianPosterior:
        """Return q(z | x)."""
        mean, log_var = self.head(self.encoder(batch, self.noise))  # (B, L), (B, L)
        return GaussianPosterior(mean, log_var, self.prior, self.to_theta)

    def posterior(self, batch: Batch) -> SampledPosterior:
        return self.code(batch)

    def to_theta(self, z: Tensor) -> Tensor:
        """Return the shares of topics that a code stands for: (B, L) -> (B, K)."""
        return torch.softmax(z + self.shares.logits, dim=1)

    def prior_theta(self) -> Tensor:
        assert isinstance(self.prior, NormalPrior)
        return self.to_theta(self.prior.mean[None])[0]
