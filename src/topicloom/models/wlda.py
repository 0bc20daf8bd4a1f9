"""W-LDA: a Wasserstein autoencoder whose theta follows a Dirichlet or a mixture of Gaussians.

Nan, Ding, Nallapati & Xiang 2019, "Topic Modeling with Wasserstein Autoencoders"; Tolstikhin et al. 2018. The encoder
is deterministic, theta = softmax(f(x)). The loss is -sum_v x_v log p(v | theta) / (s log V) + lambda MMD(theta, prior),
where s is the mean length of a document and MMD the unbiased estimate over a batch, with the information-diffusion
kernel, of the maximum mean discrepancy. In training, Dirichlet noise eta is mixed into theta before it is decoded:
(1 - a) theta + a eta. The priors gaussian, gmm-std and gmm-ctm are those of the Neural_Topic_Models of zll17. Its
gmm_ctm refits a mixture with full covariances to each batch, which is gmm-batch here.

The defaults depart from the paper as follows; the settings in parentheses are the paper's:
- f(x) is batch-normalised and scaled to a standard deviation of `spread` (code_norm="none", spread=1). Otherwise the
  gradient of the MMD, which is nearly zero for sparse theta, is too weak against the gradient of the likelihood, and
  two to six topics take all documents.
- In training, each half of a batch is normalised by itself for the MMD, and its theta is compared with that of the
  other half only (mmd_pairs="all"). Codes that are normalised together depend on each other, which would bias the
  estimate.
- The loss is multiplied by s log V. It has the same minimum, and the reconstruction is in nats per document as in every
  model.
- Training starts at clusters of documents (start="random").
- f(x) has a learned bias, which follows the likelihood alone, the prior follows the shares of the topics
  (learn_shares=False), and training starts with spare topics (spare_topics=0).
- There is less noise, so that small topics are found (noise=0.2). The weight lambda is lower, because a weight of 1
  makes topics of real texts worse (mmd_weight=1).
- p(w | theta) is theta beta and not softmax(theta B + b) (decoder="product"). The cost of a step then grows with the
  number of non-zero counts only, and planted topics are found more exactly.
- Topics are deviations from the background frequencies, where the paper's decoder learns its bias
  (background="learned"), and half of a document's words are hidden from the encoder in training (input_dropout=0).
A point posterior has no bound on the likelihood, so `bound` is the likelihood at the point itself.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from ..distributed import step
from ..nn.decoders import make_decoder
from ..nn.network import Loss, TopicNetwork
from ..nn.posteriors import Posterior
from ..nn.samplers import (
    CornerMixture,
    DirichletSampler,
    FittedMixture,
    GaussianSampler,
    RefittedMixture,
    ThetaSampler,
    mmd,
)
from ..nn.sparse import Batch
from ..settings import DirichletParameter, NotNegative, Positive, Rate
from ..training.monitors import CollapseSign
from .autoencoders import DeterministicNetwork
from .base import UsedIf
from .neural import PLAIN, NeuralTopicModel
from .words import Words

_SPREADS = {"gaussian": 1.0, "gmm-std": 9.0}  # standard deviations that match codes to these priors; others have 3


class WLDANetwork(DeterministicNetwork):
    """x -> h -> z -> theta = softmax(z) -> words; the thetas of a batch are compared with samples of the prior."""

    def __init__(self, settings: WLDA, words: Words, generator: torch.Generator) -> None:
        topics = settings.build_topics(words, generator)
        super().__init__(make_decoder(settings.decoder, topics), settings, words, generator)
        self.prior = _prior(settings)
        self.spread = settings._spread
        self.eta = DirichletSampler(settings.n_topics, settings.alpha)
        self.noise_share = settings.noise
        self.compares_halves = settings.mmd_pairs == "halves"
        self.tau = settings.tau
        self.nats = _nats(words)

    def loss(self, batch: Batch) -> Loss:
        raw = self.raw_codes(batch)  # (B, K)
        z = self.scaled(self.norm(raw))  # (B, K)
        theta = torch.softmax(z, dim=1)
        codes = self.scaled(self.norm.of_halves(raw)) if self.compares_halves else z  # (B, K)
        compared = torch.softmax(self.shares.unmoved(codes), dim=1)  # (B, K)
        taken = step()
        halved = self.compares_halves and self.training and taken.n_docs(len(z)) > 1
        if self.training:
            self.prior.prepare(taken.rows(z.detach()))
        discrepancy = self._discrepancy(compared, taken.n_first_half(len(z)) if halved else None)  # ()
        if self.training:  # after the estimate, which is unbiased only if the sample is independent of the batch
            self.prior.update(taken.rows(z.detach()))
        with self.decoder.cached_topics():
            score = self.decoder.score(self._disturbed(theta), self.scored(batch.counts), self.criterion)  # (B,)
            return Loss(-score, self.nats * discrepancy.expand(len(z)), self.regularisation(theta, batch))

    def _discrepancy(self, theta: Tensor, n_first: int | None = None) -> Tensor:
        """Return the MMD of theta (B, K) and B samples of the prior, a scalar. A step uses the theta of all ranks."""
        prior = step().drawn_for_all(lambda n: self.prior.sample(n, self.generator), len(theta))
        return mmd(prior, step().halves(theta), self.tau, n_first=n_first)

    def further_measures(self, posterior: Posterior) -> dict[str, float]:
        return {"mmd": float(self._discrepancy(posterior.point()))}

    def _disturbed(self, theta: Tensor) -> Tensor:
        """Return theta (B, K), with Dirichlet noise mixed in during training."""
        if not self.training or self.noise_share == 0:
            return theta
        eta = step().drawn(lambda n: self.eta.sample(n, self.generator), len(theta))  # (B, K)
        return (1 - self.noise_share) * theta + self.noise_share * eta


@dataclass(eq=False, repr=False, kw_only=True)
class WLDA(NeuralTopicModel):
    """Wasserstein autoencoder for topics, W-LDA (Nan, Ding, Nallapati & Xiang 2019).

    The settings that all neural models share are described in `help(topicloom.NeuralTopicModel)`.

    Shape args:
        decoder: "mixture" mixes the topics' word distributions, theta beta. "product" is the paper's product of
            experts, softmax(theta B + b), and takes memory in proportion to the vocabulary for each batch.

    Prior args:
        prior: the prior of theta. "dirichlet" is Dirichlet(alpha). "gaussian" is the softmax of a Gaussian with the
            standard deviation `spread`, whose documents have many topics. "gmm-std" is the softmax of a mixture of K
            Gaussians that are fixed at 20 e_k with standard deviation 4, so that nearly every document has one topic.
            "gmm-ctm" is the softmax of a mixture of K Gaussians that follow the documents' codes during training.
            "gmm-batch" is the softmax of K Gaussians with full covariances, which scikit-learn fits to the codes of
            each batch. The fit takes most of the time of a step.
        alpha: the parameter of the Dirichlet prior and of the noise, the same for all topics. A smaller value gives
            documents fewer topics.
        mmd_weight: the weight lambda of the discrepancy between the documents' theta and the prior. A higher weight
            keeps theta closer to the prior.
        mmd_pairs: the pairs of documents of a batch that the discrepancy compares. "all" is the paper's. "halves" are
            the pairs of a document of one half and one of the other half, and each half is normalised by itself. If
            codes are normalised together, they depend on each other, which would bias the estimate with "all".
        noise: the share of Dirichlet noise that is mixed into theta during training.
        tau: the width of the kernel, exp(-angle^2 / tau), by which theta is compared with the prior.
        spread: the standard deviation of each dimension of the code before the softmax. A larger value gives documents
            fewer topics. None is 9 with "gmm-std", whose documents have nearly one topic, 1 with "gaussian", and 3 with
            the other priors.

    Examples:
        >>> import topicloom as tl
        >>> corpus = tl.datasets.synthetic_lda(n_docs=80, n_words=50, n_topics=3).corpus
        >>> model = tl.WLDA(n_topics=3, epochs=3, random_state=0).fit(corpus)
        >>> model.transform(corpus).shape
        (80, 3)
    """

    published: ClassVar[dict[str, Any]] = PLAIN | {
        "decoder": "product",
        "background": "learned",
        "spread": 1.0,
        "noise": 0.2,
        "mmd_weight": 1.0,
        "mmd_pairs": "all",
        "hidden_size": 100,
        "batch_size": 100,
        "learning_rate": 2e-3,
        "beta1": 0.99,
        "epochs": 450,
    }

    used_if: ClassVar[UsedIf] = {
        "alpha": (
            "without `prior='dirichlet'` and without `noise`",
            lambda model: model.prior == "dirichlet" or model.noise > 0,
        ),
    }

    prior: Literal["dirichlet", "gaussian", "gmm-std", "gmm-ctm", "gmm-batch"] = "dirichlet"
    alpha: DirichletParameter = 0.1
    mmd_weight: NotNegative = 0.2
    mmd_pairs: Literal["halves", "all"] = "halves"
    noise: Rate = 0.05
    tau: Positive = 1.0
    spread: Positive | None = None
    decoder: Literal["mixture", "product"] = "mixture"

    @property
    def _spread(self) -> float:
        return self.spread or _SPREADS.get(self.prior, 3.0)

    @property
    def divergence_weight(self) -> float:
        return self.mmd_weight

    def helpful_settings(self, sign: CollapseSign) -> dict[str, Any]:
        helpful = super().helpful_settings(sign)
        if sign.kind != "unused topics":
            return helpful
        # A prior that follows the topics' shares draws documents to the large ones; an even one spreads them.
        return {"mmd_weight": (0.5 if self.learn_shares else 2) * self.mmd_weight} | helpful

    def build_network(self, words: Words, generator: torch.Generator) -> WLDANetwork:
        return WLDANetwork(self, words, generator)

    def set_loss(self, network: TopicNetwork) -> None:
        super().set_loss(network)
        assert isinstance(network, WLDANetwork)
        network.nats = _nats(self.word_statistics())  # later documents of a stream may be longer


def _nats(words: Words) -> float:
    """Return s log V, the scale of the discrepancy."""
    return words.mean_length * math.log(len(words))


def _prior(settings: WLDA) -> ThetaSampler:
    if settings.prior == "dirichlet":
        return DirichletSampler(settings.n_topics, settings.alpha, follows=settings.learn_shares)
    if settings.prior == "gaussian":
        return GaussianSampler(settings.n_topics, settings._spread, follows=settings.learn_shares)
    if settings.prior == "gmm-std":
        return CornerMixture(settings.n_topics, follows=settings.learn_shares)
    if settings.prior == "gmm-ctm":
        return FittedMixture(settings.n_topics, settings._spread)
    return RefittedMixture(settings.n_topics, settings._spread, full_mixture)


def full_mixture(codes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Fit a mixture of K Gaussians to codes (B, K) by scikit-learn's EM algorithm, which starts at k-means.

    Returns:
        the weights (K,), the means (K, K) and the full covariances (K, K, K).
    """
    from sklearn.mixture import GaussianMixture

    mixture = GaussianMixture(codes.shape[1], covariance_type="full", max_iter=200, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # codes may be equal, and it is fitted again
        mixture.fit(codes.numpy())
    weights, means, covariances = map(torch.from_numpy, (mixture.weights_, mixture.means_, mixture.covariances_))
    return weights, means, covariances
