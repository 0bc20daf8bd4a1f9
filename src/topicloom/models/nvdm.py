"""NVDM: the neural variational document model, GSM's forerunner, whose code is a Gaussian and no mixture of topics.

Miao, Yu & Blunsom 2016, "Neural Variational Inference for Text Processing": z ~ N(0, I), p(w | z) = softmax(R z + b).

A code has no shares of topics. To be read as the other models are, it is given as theta = softmax(z), and the decoder
takes it back by its centred log-ratio, z_k - mean z = log theta_k - mean log theta. What departs from the paper:
- the mean of z over its dimensions says nothing (one degree of freedom less);
- topic k is what the decoder says of a code as long as N(0, I) draws them, sqrt(K), all of it along dimension k;
- b is fixed to the background word frequencies (background=False: to zero), mean and log-variance are
  batch-normalised, and words are hidden from the encoder, as in GSM.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..nn.batch import Batch
from ..nn.decoders import FreeTopics, LogRatioDecoder
from ..nn.encoders import GaussianHead
from ..nn.network import VariationalNetwork
from ..nn.posteriors import GaussianPosterior
from ..nn.priors import standard_normal
from .neural import VariationalTopicModel
from .words import Words


class NVDMNetwork(VariationalNetwork):
    """x -> h -> N(mu, diag sigma^2) -> z -> words."""

    def __init__(self, settings: NVDM, words: Words, generator: torch.Generator) -> None:
        topics = FreeTopics(
            settings.background_logits(words), settings.n_topics, generator, seeds=words.seeds, gain=4.0
        )
        super().__init__(
            LogRatioDecoder(topics),
            settings.build_encoder(words, generator),
            settings.build_separation_term(words),
            criterion=settings.criterion,
            n_samples=settings.n_samples,
        )
        self.prior = standard_normal(settings.n_topics)
        self.head = GaussianHead(settings.hidden_size, self.prior.var, generator)

    def posterior(self, batch: Batch) -> GaussianPosterior:
        mean, log_var = self.head(self.encoder(batch, self.noise))  # (B, K), (B, K)
        return GaussianPosterior(mean, log_var, self.prior, lambda z: torch.softmax(z, dim=1))

    def prior_theta(self) -> Tensor:
        return torch.softmax(self.prior.mean, dim=0)


@dataclass(eq=False, repr=False, kw_only=True)
class NVDM(VariationalTopicModel):
    """Neural variational document model (Miao, Yu & Blunsom 2016).

    Its decoder is dense over the vocabulary, one batch at a time. The settings are those that all neural models share;
    they are described at NeuralTopicModel.
    """

    def build_network(self, words: Words, generator: torch.Generator) -> NVDMNetwork:
        return NVDMNetwork(self, words, generator)
