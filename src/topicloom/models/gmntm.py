"""GMNTM: a topic model whose documents' codes follow a mixture of Gaussians, a component for each topic.

VaDE, Jiang et al. 2017, "Variational Deep Embedding"; GMVAE, Dilokthanakul et al. 2016; as a topic model after zll17's
Neural_Topic_Models. c ~ pi, z | c ~ N(mu_c, diag sigma^2), theta = softmax(W z), p(w | theta) = theta beta. Training:
the autoencoder alone; a Gaussian mixture fitted to the means of its codes (scikit-learn), which gives mu and sigma
their start; then the evidence lower bound with c summed out. Topic k is read off the mean of component k,
softmax(W mu_k) through the decoder.

In VaDE as it is, components merge as training goes on: of 20 on 2,000 news articles 4 to 9 are left. What holds them:
- one variance for all components, learned, and pi even: with their own, a wide one takes its neighbours' documents;
- W is a multiple of the identity, and the codes' means are batch-normalised: no dimension can be dropped;
- component k starts at the documents of topic k, and a term of the loss, -component_separation * mean_k log
  softmax(W mu_k)_k, keeps it in the region of topic k. It has no part in the documents' codes.
Further: q(c | x) is the one that makes the bound tightest, where VaDE takes p(c | z) at a draw of z; background
frequencies, and words hidden from the encoder, as in GSM.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from ..corpus import Corpus
from ..errors import InputError
from ..nn.batch import Batch
from ..nn.decoders import FreeTopics, make_decoder
from ..nn.encoders import GaussianHead
from ..nn.network import Loss, VariationalNetwork
from ..nn.posteriors import GaussianPosterior, SampledPosterior
from ..nn.priors import MixturePrior
from ..settings import AtLeastOne, NotNegative, Positive
from ..training.batches import BatchReader
from ..training.state import Stage, TrainingState
from .inference import Array, each_batch
from .neural import VariationalTopicModel
from .words import Words


class GMNTMNetwork(VariationalNetwork):
    """x -> h -> N(mu, diag sigma^2) -> z -> theta = softmax(W z) -> words, z held to a mixture of Gaussians."""

    def __init__(self, settings: GMNTM, words: Words, generator: torch.Generator) -> None:
        topics = FreeTopics(settings.background_logits(words), settings.n_topics, generator, seeds=words.seeds)
        super().__init__(
            make_decoder(settings.decoder, topics),
            settings.build_encoder(words, generator),
            settings.build_separation_term(words),
            criterion=settings.criterion,
            n_samples=settings.n_samples,
        )
        self.prior = MixturePrior(settings.n_topics, settings.n_topics)
        self.head = GaussianHead(settings.hidden_size, torch.ones(settings.n_topics), generator)
        self.spread = settings.spread
        self.component_separation = settings.component_separation
        self.balance = settings.balance
        self.pretraining = False

    def to_theta(self, z: Tensor) -> Tensor:
        """(B, K) -> (B, K), W = spread * I"""
        return torch.softmax(self.spread * z, dim=1)

    def posterior(self, batch: Batch) -> GaussianPosterior:
        mean, log_var = self.head(self.encoder(batch, self.noise))  # (B, K), (B, K)
        return GaussianPosterior(mean, log_var, self.prior, self.to_theta)

    def loss(self, batch: Batch) -> Loss:
        if self.pretraining:
            theta = self.posterior(batch).point()  # (B, K)
            score = self.decoder.score(theta, batch.counts, self.criterion)  # (B,)
            return Loss(-score, torch.zeros_like(score), self.separation_loss(theta, batch))
        return super().loss(batch)

    def extras(self, posterior: SampledPosterior, theta: Tensor, batch: Batch) -> dict[str, Tensor]:
        """Return the separation term and the terms that keep all components, which are the same for all documents."""
        terms = super().extras(posterior, theta, batch)
        if self.component_separation:
            own = torch.log_softmax(self.spread * self.prior.means, dim=1).diagonal()  # (K,)
            terms["component_separation"] = -self.component_separation * own.mean().expand(batch.n_docs)
        if self.balance:
            assert isinstance(posterior, GaussianPosterior)
            eta = self.prior.responsibilities(posterior.mean, posterior.log_var)  # (B, C)
            shares = eta.mean(0).clamp_min(1e-12)  # (C,)
            terms["balance"] = -self.balance * (shares * len(shares)).log().mean().expand(batch.n_docs)
        return terms

    def begin_stage(self, name: str) -> None:
        self.pretraining = name == "pretraining"

    def end_stage(self, name: str, documents: Iterable[Batch], seed: int) -> None:
        """Start the mixture at a Gaussian mixture that is fitted to the codes of all documents."""
        codes, shares = _codes(self, documents)
        self.prior.set(*_mixture(codes, shares, seed))

    def components(self, batch: Batch) -> Tensor:
        """q(c | x): (B, K)"""
        posterior = self.posterior(batch)
        return self.prior.responsibilities(posterior.mean, posterior.log_var)

    def topic_word(self) -> Tensor:
        return self.decoder.at(self.to_theta(self.prior.means))

    def prior_theta(self) -> Tensor:
        return self.prior.weights.exp() @ self.to_theta(self.prior.means)


@dataclass(eq=False, repr=False, kw_only=True)
class GMNTM(VariationalTopicModel):
    """Gaussian mixture neural topic model (VaDE, Jiang et al. 2017, on word counts).

    The settings that all neural models share are described at NeuralTopicModel.

    Args:
        pretrain_epochs: passes over the documents before the mixture is there, for the reconstruction alone; they are
            not in history_.
        spread: theta = softmax(spread z), for a z of about unit variance; more makes theta purer.
        component_separation: weight of the term that keeps component k in the region of topic k; 0 lets components
            merge.
        balance: weight of the divergence of the even distribution from a batch's mean of q(c | x), in nats a document;
            0 lets components lose their documents.
        decoder: "mixture" theta beta; or "product" softmax(theta B + b), dense over the vocabulary, one batch at a
            time.
    """

    pretrain_epochs: AtLeastOne = 20
    spread: Positive = 2.0
    component_separation: NotNegative = 10.0
    balance: NotNegative = 10.0
    decoder: Literal["mixture", "product"] = "mixture"

    def predict(self, X: Any) -> Array:
        """The mixture component of each document: (n_docs,) int64, component k being that of topic k.

        A document without a known word, of which nothing is known, is given component 0.
        """
        corpus, network = self.documents(X), self.network_
        assert isinstance(network, GMNTMNetwork)
        found = each_batch(network, corpus, lambda batch: network.components(batch).argmax(1))
        component: Array = np.concatenate([np.empty(0, np.int64), *found])
        component[corpus.is_empty] = 0  # components are even: one is as good as another
        return component

    def build_network(self, words: Words, generator: torch.Generator) -> GMNTMNetwork:
        return GMNTMNetwork(self, words, generator)

    def build_reader(self, corpus: Corpus, state: TrainingState) -> BatchReader:
        reader = super().build_reader(corpus, state)
        if not hasattr(self, "network_") and reader.n_docs < self.n_topics:
            raise InputError(
                f"{self.n_topics} components need as many documents with words: n_samples = {reader.n_docs}"
            )
        return reader

    def training_stages(self) -> list[Stage]:
        plan = replace(self.training_plan(), epochs=self.pretrain_epochs, patience=None)
        return [Stage("pretraining", plan, recorded=False), *super().training_stages()]


@torch.inference_mode()
def _codes(network: GMNTMNetwork, documents: Iterable[Batch]) -> tuple[Array, Array]:
    """The means of the documents' codes and their theta: (D, K) each."""
    network.eval()
    posteriors = [network.posterior(batch) for batch in documents]
    codes = np.concatenate([posterior.mean.cpu().numpy() for posterior in posteriors])
    shares = np.concatenate([posterior.point().cpu().numpy() for posterior in posteriors])
    return codes.astype(np.float64), shares.astype(np.float64)


def _mixture(codes: Array, shares: Array, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """pi (K,), means (K, K) and the shared variance (K,) of a mixture that starts at each topic's documents."""
    from sklearn.mixture import GaussianMixture

    purity = shares**2 + 1e-9  # (D, K) documents of one topic say most of where it is
    start = (purity.T @ codes) / purity.sum(0)[:, None]  # (K, K)
    n_topics = shares.shape[1]
    even = np.full(n_topics, 1 / n_topics)
    fitted = GaussianMixture(
        n_topics, covariance_type="diag", means_init=start, weights_init=even, reg_covar=1e-3, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a start is all that is wanted
        fitted.fit(codes)
    variance = fitted.weights_ @ fitted.covariances_  # (K,)
    weights, means, var = (torch.tensor(part, dtype=torch.float32) for part in (even, fitted.means_, variance))
    return weights, means, var
