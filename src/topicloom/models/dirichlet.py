"""DirichletVAE: a topic model whose documents have a Dirichlet prior and a Dirichlet posterior.

Burkhardt & Kramer 2019, "Decoupling Sparsity and Smoothness in the Dirichlet Variational Autoencoder Topic Model"
(JMLR 20): p(theta) = Dir(alpha), q(theta | x) = Dir(a(x)), p(w | theta) = theta beta or softmax(theta B + b), and the
divergence of the two Dirichlets in closed form. A draw of a Dirichlet is no smooth function of a(x) and noise; the five
estimators of the gradient are five ways around it, each in nn/dirichlet.py:
- "implicit": exact draws and their implicit gradient (Figurnov et al. 2018);
- "rsvi": exact draws through a rejection sampler and what its path misses (Naesseth et al. 2017);
- "icdf": approximate inverse of the gamma's distribution function (Joo et al. 2019);
- "weibull": Weibulls in place of gammas, with parameters of their own (Zhang et al. 2018);
- "laplace": a logistic normal, the prior being approximated too (Srivastava & Sutton 2017).
With `sparsity`, theta is proportional to b times the draw, b_k ~ Bernoulli(sparsity) saying whether topic k is in the
document, so that how many topics a document has and how evenly it has them are two settings.

Where it departs from the paper:
- a(x) is the exponential of a batch-normalised layer and not a softplus, so that every topic stays in use from the
  first step, and the divergence needs no warm-up (kl_warmup; the paper takes some 100 epochs); its floor is 1e-5;
- topics are deviations from the background frequencies (background=False) and held apart (min_diversity=0);
- half of a document's words are hidden from the encoder in training (input_dropout=0);
- with `sparsity`, the divergence counts the weights of absent topics too, and is that of the discrete b while a relaxed
  one is drawn: no strict bound (Maddison et al. 2017, appendix C.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from ..nn.batch import Batch
from ..nn.decoders import (
    Decoder,
    FreeTopics,
    MixtureDecoder,
    ProductDecoder,
)
from ..nn.dirichlet import (
    ImplicitDirichlet,
    InverseDirichlet,
    LaplacePosterior,
    RejectionDirichlet,
    SimplexPosterior,
    SparsePosterior,
    WeibullPosterior,
    weibull_like_gamma,
)
from ..nn.encoders import (
    DirichletHead,
    GaussianHead,
    PresenceHead,
    WeibullHead,
)
from ..nn.network import VariationalNetwork
from ..nn.priors import laplace_dirichlet
from ..settings import AtLeastOne, Positive, Share
from .neural import VariationalTopicModel
from .words import Words

# What each needs to have all topics alive and apart on long texts and short ones.
_LAPLACE_ALPHA, _ALPHA_OF_ALL = 0.3, 0.5

Estimator = Literal["laplace", "implicit", "rsvi", "weibull", "icdf"]


class DirichletNetwork(VariationalNetwork):
    """x -> h -> a -> theta -> words."""

    alpha: Tensor  # (K,)

    def __init__(self, settings: DirichletVAE, words: Words, generator: torch.Generator) -> None:
        super().__init__(
            _decoder(settings, words, generator),
            settings.build_encoder(words, generator),
            settings.build_separation_term(words),
            criterion=settings.criterion,
            n_samples=settings.n_samples,
        )
        self.estimator = settings.estimator
        self.augmentation = settings.augmentation
        self.sparsity = settings.sparsity
        self.temperature = settings.temperature
        self.register_buffer("alpha", torch.full((settings.n_topics,), settings._alpha))
        self.prior = laplace_dirichlet(self.alpha)
        self.head = self._head(settings, generator)
        self.presence = (
            None
            if settings.sparsity is None
            else PresenceHead(settings.hidden_size, settings.n_topics, generator, probability=settings.sparsity)
        )

    def _head(self, settings: DirichletVAE, generator: torch.Generator) -> nn.Module:
        if settings.estimator == "laplace":
            return GaussianHead(settings.hidden_size, self.prior.var, generator)
        concentration = settings.concentration
        if settings.estimator == "weibull":
            shape = float(weibull_like_gamma(concentration * self.alpha[0])[0])
            return WeibullHead(settings.hidden_size, self.alpha, generator, concentration=concentration, shape=shape)
        return DirichletHead(settings.hidden_size, self.alpha, generator, concentration=concentration)

    def posterior(self, batch: Batch) -> SimplexPosterior:
        h = self.encoder(batch, self.noise)  # (B, H)
        weights = self._weights(h)
        if self.presence is None or self.sparsity is None:
            return weights
        return SparsePosterior(weights, self.presence(h), self.sparsity, self.temperature)

    def _weights(self, h: Tensor) -> SimplexPosterior:
        if self.estimator == "laplace":
            mean, log_var = self.head(h)  # (B, K), (B, K)
            return LaplacePosterior(mean, log_var, self.prior)
        if self.estimator == "weibull":
            k, log_scale = self.head(h)  # (B, K), (B, K)
            return WeibullPosterior(k, log_scale, self.alpha)
        a = self.head(h)  # (B, K)
        if self.estimator == "rsvi":
            return RejectionDirichlet(a, self.alpha, self.augmentation)
        return (ImplicitDirichlet if self.estimator == "implicit" else InverseDirichlet)(a, self.alpha)

    def prior_theta(self) -> Tensor:
        return self.alpha / self.alpha.sum()


@dataclass(eq=False, repr=False, kw_only=True)
class DirichletVAE(VariationalTopicModel):
    """Dirichlet variational autoencoder (Burkhardt & Kramer 2019).

    The settings that all neural models share are described at NeuralTopicModel.

    Args:
        estimator: how the gradient of an expectation over the posterior is estimated: "implicit", "rsvi", "icdf",
            "weibull" or "laplace"; benchmarks/gradients.md compares them.
        decoder: "mixture" theta beta, or "product" softmax(theta B + b), batch-normalised, and dense over the
            vocabulary, one batch at a time.
        alpha: the Dirichlet parameter of the prior, the same for each topic; less makes theta sparser. None is
            0.5 / n_topics; with the "laplace" estimator, whose Gaussians are no good likeness of those, 0.3.
        concentration: how many times the prior's parameters a document's are, in the median: more makes the posterior
            surer. Not with the "laplace" estimator.
        augmentation: B of "rsvi": uniforms drawn for each gamma, so that the path misses less of the gradient.
        sparsity: the prior probability that a topic is in a document; None has all topics in all documents.
        temperature: of the relaxed choice whether it is, when there is a sparsity; less is nearer to yes or no.
        batch_norm: whether theta B of the product decoder is normalised per word, over the documents of a batch.
        topic_gain: how many times as fast as the encoder topics are learned.
    """

    estimator: Estimator = "implicit"
    decoder: Literal["mixture", "product"] = "mixture"
    alpha: Positive | None = None
    concentration: Positive = 30.0
    augmentation: AtLeastOne = 5
    sparsity: Share | None = None
    temperature: Positive = 0.5
    topic_gain: Positive = 10.0
    batch_norm: bool = True

    @property
    def _alpha(self) -> float:
        return self.alpha or (_LAPLACE_ALPHA if self.estimator == "laplace" else _ALPHA_OF_ALL / self.n_topics)

    def build_network(self, words: Words, generator: torch.Generator) -> DirichletNetwork:
        return DirichletNetwork(self, words, generator)


def _decoder(settings: DirichletVAE, words: Words, generator: torch.Generator) -> Decoder:
    topics = FreeTopics(
        settings.background_logits(words), settings.n_topics, generator, seeds=words.seeds, gain=settings.topic_gain
    )
    if settings.decoder == "product":
        return ProductDecoder(topics, batch_norm=settings.batch_norm)
    return MixtureDecoder(topics)
