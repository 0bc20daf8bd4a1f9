"""NVDM: the neural variational document model, the predecessor of GSM. Its code is a Gaussian and not a mixture.

Miao, Yu & Blunsom 2016, "Neural Variational Inference for Text Processing": z ~ N(0, I), p(w | z) = softmax(R z + b).

A code has no topic shares. To have the interface of the other models, it is returned as theta = softmax(z), and the
decoder recovers it as the centred log-ratio z_k - mean z = log theta_k - mean log theta. Departures from the paper:
- The mean of z over its dimensions has no effect, so there is one degree of freedom less.
- Topic k is what the decoder returns for a code along dimension k of the length sqrt(K), which is typical of N(0, I).
- b is fixed at the background word frequencies (background="learned" learns it, as `as_published` does). As in GSM, the
  mean and the log-variance are batch-normalised (code_norm="none"), words are hidden from the encoder in training
  (input_dropout=0), and a term of the loss keeps the rows of topics apart (min_diversity=0).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from ..nn.batch import Batch
from ..nn.decoders import LogRatioDecoder
from ..nn.encoders import GaussianHead
from ..nn.network import VariationalNetwork
from ..nn.posteriors import GaussianPosterior
from ..nn.priors import standard_normal
from ..settings import NotNegative, Positive
from .published import PLAIN_VARIATIONAL
from .variational import VariationalTopicModel
from .words import Words


class NVDMNetwork(VariationalNetwork):
    """x -> h -> N(mu, diag sigma^2) -> z -> words."""

    def __init__(self, settings: NVDM, words: Words, generator: torch.Generator) -> None:
        topics = settings.build_topics(words, generator)
        super().__init__(
            LogRatioDecoder(topics),
            settings.build_encoder(words, generator),
            settings.build_separation_term(words),
            criterion=settings.criterion,
            n_samples=settings.n_samples,
        )
        self.prior = standard_normal(settings.n_topics)
        self.head = GaussianHead(settings.hidden_size, self.prior.var, generator, norm=settings.code_norm)
        self.shares = settings.build_shares()

    def posterior(self, batch: Batch) -> GaussianPosterior:
        mean, log_var = self.head(self.encoder(batch, self.noise))  # (B, K), (B, K)
        return GaussianPosterior(mean, log_var, self.prior, self.to_theta)

    def to_theta(self, z: Tensor) -> Tensor:
        """Return softmax(z + b): (B, K) -> (B, K)."""
        return torch.softmax(z + self.shares.logits, dim=1)

    def prior_theta(self) -> Tensor:
        return self.to_theta(self.prior.mean[None])[0]


@dataclass(eq=False, repr=False, kw_only=True)
class NVDM(VariationalTopicModel):
    """Neural variational document model (Miao, Yu & Blunsom 2016).

    Its topics are directions of a latent space and not parts of a mixture, so it serves mainly for comparison. Each
    batch takes memory in proportion to the vocabulary.

    All settings are those that variational models share; they are described in `help(topicloom.VariationalTopicModel)`.
    As its topics have no shares, `learn_shares` and `spare_topics` are off, and so is `kl_warmup`.
    """

    published: ClassVar[dict[str, Any]] = PLAIN_VARIATIONAL | {
        "background": "learned",
        "hidden_size": 500,
        "activation": "relu",
        "batch_size": 64,
        "learning_rate": 5e-5,
        "epochs": 1000,
    }

    topic_gain: Positive = 4.0
    learn_shares: bool = False
    spare_topics: NotNegative = 0.0
    kl_warmup: NotNegative | None = 0.0

    def build_network(self, words: Words, generator: torch.Generator) -> NVDMNetwork:
        return NVDMNetwork(self, words, generator)
