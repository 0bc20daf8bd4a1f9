"""W-LDA: a Wasserstein autoencoder whose theta follows a Dirichlet or a mixture of Gaussians.

Nan, Ding, Nallapati & Xiang 2019, "Topic Modeling with Wasserstein Autoencoders"; Tolstikhin et al. 2018. The encoder
is deterministic, theta = softmax(f(x)). The loss is -sum_v x_v log p(v | theta) / (s log V) + lambda MMD(theta, prior),
s being the mean length of a document and the MMD the unbiased estimate over a batch with the information-diffusion
kernel. In training, Dirichlet noise eta is mixed into theta before it is decoded: (1 - a) theta + a eta. The
priors gmm-std and gmm-ctm are those that the Neural_Topic_Models of zll17 added under the name WTM-GMM.

Where it departs from the paper:
- f(x) is batch-normalised, with a learned shift, and spread to `spread` standard deviations: without it the slope of
  the MMD, nearly flat for sparse theta, loses to the likelihood, and two to six topics take all documents;
- the loss is multiplied by s log V: the same minimum, with the reconstruction in nats a document as in every model;
- p(w | theta) = theta beta, where the paper has softmax(theta B + b) (decoder="product"): the cost of a step is in the
  non-zeros, and planted topics come back more exactly;
- topics are deviations from the background frequencies; half of a document's words are hidden from the encoder.
A point posterior has no bound on the likelihood: `bound` is the likelihood at the point itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ..nn.batch import Batch
from ..nn.decoders import FreeTopics, make_decoder
from ..nn.discrepancies import mmd
from ..nn.layers import BatchNorm, linear
from ..nn.network import AutoencoderNetwork, Loss
from ..nn.posteriors import PointPosterior
from ..nn.samplers import (
    CornerMixture,
    DirichletSampler,
    FittedMixture,
    Sampler,
)
from ..settings import Positive, Rate
from .neural import NeuralTopicModel
from .words import Words


class WLDANetwork(AutoencoderNetwork):
    """x -> h -> z -> theta = softmax(z) -> words, theta of a batch held to samples of a prior."""

    def __init__(self, settings: WLDA, words: Words, generator: torch.Generator) -> None:
        topics = FreeTopics(settings.background_logits(words), settings.n_topics, generator, seeds=words.seeds)
        super().__init__(
            make_decoder(settings.decoder, topics),
            settings.build_encoder(words, generator),
            settings.build_separation_term(words),
        )
        self.code = linear(settings.hidden_size, settings.n_topics, generator, bias=False)
        self.norm = BatchNorm(settings.n_topics, shift=True, eps=1e-8)
        self.prior = _prior(settings)
        self.eta = DirichletSampler(torch.full((settings.n_topics,), settings.alpha))
        self.share, self.spread, self.tau, self.criterion = (
            settings.noise,
            settings._spread,
            settings.tau,
            settings.criterion,
        )
        self.nats = words.mean_length * math.log(len(words))  # s log V

    def codes(self, batch: Batch) -> Tensor:
        """z: (B, K)"""
        normal: Tensor = self.norm(self.code(self.encoder(batch, self.noise)))
        return self.spread * normal

    def posterior(self, batch: Batch) -> PointPosterior:
        return PointPosterior(torch.softmax(self.codes(batch), dim=1))

    def loss(self, batch: Batch) -> Loss:
        z = self.codes(batch)  # (B, K)
        theta = torch.softmax(z, dim=1)
        if self.training:
            self.prior.watch(z.detach())
        discrepancy = mmd(self.prior.sample(len(z), self.generator), theta, self.tau)  # ()
        with self.decoder.held():
            score = self.decoder.score(self._disturbed(theta), batch.counts, self.criterion)  # (B,)
            return Loss(-score, self.nats * discrepancy.expand(len(z)), self.separation_loss(theta, batch))

    def _disturbed(self, theta: Tensor) -> Tensor:
        """theta with Dirichlet noise in it, while training: (B, K)"""
        if not self.training or self.share == 0:
            return theta
        return (1 - self.share) * theta + self.share * self.eta.sample(len(theta), self.generator)

    def bound(self, batch: Batch, generator: torch.Generator) -> Tensor:
        return self.decoder.log_likelihood(self.posterior(batch).point(), batch.counts)

    def prior_theta(self) -> Tensor:
        return self.prior.mean()


@dataclass(eq=False, repr=False, kw_only=True)
class WLDA(NeuralTopicModel):
    """Wasserstein LDA (Nan, Ding, Nallapati & Xiang 2019).

    The settings that all neural models share are described at NeuralTopicModel; kl_weight is the weight lambda of the
    discrepancy here, and n_samples has nothing to act on, as theta is not drawn.

    Args:
        prior: of theta. "dirichlet" is Dirichlet(alpha); "gmm-std" the softmax of K Gaussians fixed at 20 e_k with
            standard deviation 4; "gmm-ctm" the softmax of K Gaussians that follow the codes as training goes.
        alpha: parameter of the Dirichlet prior and of the noise, the same for each topic.
        noise: share a of Dirichlet noise that is mixed into theta while training.
        tau: width of the kernel, exp(-angle^2 / tau).
        spread: standard deviation of each dimension of the code before the softmax; more makes theta purer. None is 9
            with "gmm-std", whose samples are nearly corners, and 3 with the others.
        decoder: "mixture" theta beta; or "product" softmax(theta B + b), the paper's, dense over the vocabulary, one
            batch at a time.
    """

    prior: Literal["dirichlet", "gmm-std", "gmm-ctm"] = "dirichlet"
    alpha: Positive = 0.1
    noise: Rate = 0.2
    tau: Positive = 1.0
    spread: Positive | None = None
    decoder: Literal["mixture", "product"] = "mixture"

    @property
    def _spread(self) -> float:
        return self.spread or (9.0 if self.prior == "gmm-std" else 3.0)

    def build_network(self, words: Words, generator: torch.Generator) -> WLDANetwork:
        return WLDANetwork(self, words, generator)


def _prior(settings: WLDA) -> Sampler:
    if settings.prior == "dirichlet":
        return DirichletSampler(torch.full((settings.n_topics,), settings.alpha))
    if settings.prior == "gmm-std":
        return CornerMixture(settings.n_topics)
    return FittedMixture(settings.n_topics, settings._spread)
