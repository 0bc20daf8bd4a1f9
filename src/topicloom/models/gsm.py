"""GSM: the Gaussian softmax topic model.

Miao, Grefenstette & Blunsom 2017, "Discovering Discrete Latent Topics with Neural Variational Inference"; a document
is coded by z ~ N(mu(x), diag sigma^2(x)), theta = softmax(W z), p(w | theta) = theta beta.

Where the defaults depart from the paper, and how to come back to it:
- the prior is the Laplace approximation of a Dirichlet and not N(0, I), under which theta stays even and all topics
  become the same frequent words (prior="standard");
- z has one dimension a topic and no W (latent_size=L gives W);
- topics are deviations from the background word frequencies (background=False);
- the mean and log-variance are batch-normalised, and half of a document's words are hidden from the encoder in
  training (input_dropout=0), which helps both the topics and inference on new text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from ..errors import SettingError
from ..nn.batch import Batch
from ..nn.decoders import (
    Decoder,
    EmbeddedTopics,
    FreeTopics,
    MLPDecoder,
    TopicLogits,
    make_decoder,
)
from ..nn.encoders import GaussianHead
from ..nn.layers import linear
from ..nn.network import VariationalNetwork
from ..nn.posteriors import GaussianPosterior, SampledPosterior
from ..nn.priors import NormalPrior, laplace_dirichlet, standard_normal
from ..settings import AtLeastOne, Positive
from .neural import NeuralTopicModel
from .words import Words


class GSMNetwork(VariationalNetwork):
    """x -> h -> N(mu, diag sigma^2) -> z -> theta = softmax(W z) -> words."""

    def __init__(self, settings: GSM, words: Words, generator: torch.Generator) -> None:
        super().__init__(
            _decoder(settings, words, generator),
            settings.build_encoder(words, generator),
            settings.build_separation_term(words),
            criterion=settings.criterion,
            n_samples=settings.n_samples,
        )
        self.prior = _prior(settings)
        self.head = GaussianHead(settings.hidden_size, self.prior.var, generator)
        projected = settings.latent_size is not None
        self.projection = linear(len(self.prior.var), settings.n_topics, generator, bias=False) if projected else None

    def posterior(self, batch: Batch) -> SampledPosterior:
        return self.code(batch)

    def code(self, batch: Batch) -> GaussianPosterior:
        """q(z | x)"""
        mean, log_var = self.head(self.encoder(batch, self.noise))  # (B, L), (B, L)
        return GaussianPosterior(mean, log_var, self.prior, self.to_theta)

    def to_theta(self, z: Tensor) -> Tensor:
        """(B, L) -> (B, K)"""
        return torch.softmax(z if self.projection is None else self.projection(z), dim=1)

    def prior_theta(self) -> Tensor:
        return self.to_theta(self.prior.mean[None])[0]


@dataclass(eq=False, repr=False, kw_only=True)
class GSM(NeuralTopicModel):
    """Gaussian softmax topic model (Miao, Grefenstette & Blunsom 2017).

    The settings that all neural models share are described at NeuralTopicModel.

    Args:
        prior: "laplace" approximates Dirichlet(alpha); "standard" is N(0, I), the paper's.
        alpha: the Dirichlet parameter of the "laplace" prior, the same for each topic; less makes theta sparser. With a
            latent_size, the prior is on z, before the matrix.
        latent_size: dimensions of z, mapped to topics by a matrix; None has one a topic and no matrix.
        decoder: "mixture" theta beta; "product" softmax(theta B + b); "mlp" one hidden layer, topics read off one-hot
            theta. The last two are dense over the vocabulary, one batch at a time.
        decoder_size: width of the "mlp" decoder.
        embedding_size: topic and word vectors of this size whose products give beta; None has beta free. Not with
            the "mlp" decoder.
    """

    prior: Literal["laplace", "standard"] = "laplace"
    alpha: Positive = 0.3
    latent_size: Annotated[int, Field(ge=2)] | None = None
    decoder: Literal["mixture", "product", "mlp"] = "mixture"
    decoder_size: AtLeastOne = 256
    embedding_size: AtLeastOne | None = None

    def build_network(self, words: Words, generator: torch.Generator) -> GSMNetwork:
        return GSMNetwork(self, words, generator)


def _prior(settings: GSM) -> NormalPrior:
    n_latent = settings.latent_size or settings.n_topics
    if settings.prior == "standard":
        return standard_normal(n_latent)
    return laplace_dirichlet(torch.full((n_latent,), settings.alpha))


def _decoder(settings: GSM, words: Words, generator: torch.Generator) -> Decoder:
    background = settings.background_logits(words)
    if settings.decoder == "mlp":
        if settings.embedding_size is not None:
            raise SettingError('decoder="mlp" has no topic vectors; leave embedding_size out, or take another decoder')
        if settings.seed_words:
            raise SettingError('decoder="mlp" has no topic-word matrix to seed; leave seed_words out')
        return MLPDecoder(background, settings.n_topics, settings.decoder_size, generator)
    topics: TopicLogits
    if settings.embedding_size is None:
        topics = FreeTopics(background, settings.n_topics, generator, seeds=words.seeds)
    else:
        topics = EmbeddedTopics(background, settings.n_topics, settings.embedding_size, generator, seeds=words.seeds)
    return make_decoder(settings.decoder, topics)
