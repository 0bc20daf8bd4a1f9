"""GMNTM: a topic model whose documents' codes follow a mixture of Gaussians, with one component for each topic.

VaDE, Jiang et al. 2017, "Variational Deep Embedding"; GMVAE, Dilokthanakul et al. 2016; as a topic model it follows the
Neural_Topic_Models of zll17. c ~ pi, z | c ~ N(mu_c, diag sigma^2), theta = softmax(W z + b) and
p(w | theta) = theta beta. Training has three parts: first the autoencoder alone; then scikit-learn fits a Gaussian
mixture to the means of its codes, from which mu and sigma start; then the evidence lower bound, with c summed out, is
maximised. Topic k is the output of the decoder for the mean of component k, softmax(W mu_k + b).

In the original VaDE, components merge during training: of 20 on 2,000 news articles, 4 to 9 are left. To prevent this,
the model departs from VaDE:
- All components share one variance, which is learned (component_variances=True). With a variance of its own, a wide
  component takes the documents of its neighbours. pi follows the components' shares of the documents (with
  learn_shares=False it is uniform).
- W is a multiple of the identity (spread=None learns it), and the means of the codes are batch-normalised, so that no
  dimension can be dropped.
- Component k starts at the documents of topic k. A term of the loss, -component_separation * mean_k log
  softmax(W mu_k)_k, keeps it in the region of topic k. The term does not depend on the documents' codes.
- A term `balance` keeps the documents' components near pi.
- Training starts at clusters of documents (start="random").
- Training starts with spare components, which are removed early in its last part (spare_topics=0).
Other departures:
- q(c | x) is the distribution that makes the bound tightest. VaDE takes p(c | z) at a draw of z
  (component_posterior="draw").
- The weight of the divergence rises to 1 in the first three quarters of the epochs of the last part (kl_warmup=0).
- Topics are deviations from background frequencies, and words are hidden from the encoder in training.
The recipe "zll17" has the settings of Neural_Topic_Models, with an MLP as decoder and a term that moves means apart.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor, nn
from torch.nn.functional import normalize

from ..corpus import Corpus
from ..distributed import current, step
from ..errors import InputError
from ..nn.decoders import Criterion, Decoder, make_decoder
from ..nn.layers import linear, normal_like
from ..nn.network import Loss, TopicNetwork
from ..nn.posteriors import DrawnComponentPosterior, GaussianPosterior, MixturePrior, SampledPosterior
from ..nn.sparse import Batch
from ..settings import AtLeastOne, LayerSizes, NotNegative, Positive
from ..training.batches import BatchReader
from ..training.monitors import NotFinite, Sign
from ..training.state import Stage, TrainingState
from .autoencoders import GaussianNetwork, VariationalTopicModel
from .base import UsedIf, of_one_fit
from .inference import Array, each_batch
from .neural import PLAIN_VARIATIONAL, mlp_decoder
from .words import Words

_LEAST_WEIGHT = 1e-12
_DECODER_SIZES = (2000, 500, 500)
_DOCUMENTS = 512  # in a batch of zll17, whose loss has the sum of their reconstructions and the mean of divergences
_ZLL17: dict[str, Any] = PLAIN_VARIATIONAL | {
    "learn_shares": True,
    "spread": None,
    "component_variances": True,
    "component_posterior": "draw",
    "component_separation": 0.0,
    "mutual_distance": 1e7 / _DOCUMENTS,
    "balance": 0.0,
    "kl_weight": 1 / _DOCUMENTS,
    "hidden_sizes": [500, 500, 2000],
    "activation": "relu",
    "dropout": 0.2,
    "decoder": "mlp",
    "decoder_sizes": list(_DECODER_SIZES),
    "background": "learned",
    "criterion": "bce_softmax",
    "pretrain_epochs": 30,
    "batch_size": _DOCUMENTS,
    "learning_rate": 2e-3,
    "epochs": 100,
}


class GMNTMNetwork(GaussianNetwork):
    """x -> h -> N(mu, diag sigma^2) -> z -> theta = softmax(W z + b) -> words, with a mixture prior of z."""

    prior: MixturePrior

    def __init__(self, settings: GMNTM, words: Words, generator: torch.Generator) -> None:
        n_topics = settings.n_topics
        decoder = _decoder(settings, words, generator)
        prior = MixturePrior(n_topics, n_topics, own_variances=settings.component_variances)
        super().__init__(decoder, prior, settings, words, generator)
        learned = settings.spread is None
        self.spread = settings.spread
        self.projection: nn.Linear | None = linear(n_topics, n_topics, generator, bias=False) if learned else None
        self.component_separation = settings.component_separation
        self.mutual_distance = settings.mutual_distance
        self.draws_components = settings.component_posterior == "draw"
        self.pretrain_criterion = settings.pretrain_criterion or settings.criterion
        self.balance = settings.balance
        self.follows = settings.learn_shares

    def code(self, batch: Batch) -> GaussianPosterior:
        """Return q(z | x). In training, its q(c | x) can be that of a draw of z."""
        code = super().code(batch)
        if not (self.training and self.draws_components):
            return code
        drawn = code.mean + normal_like(code.mean, self.generator) * (0.5 * code.log_var).exp()  # (B, L)
        return DrawnComponentPosterior(code.mean, code.log_var, code.prior, code.to_theta, drawn)

    def to_theta(self, z: Tensor) -> Tensor:
        """Return softmax(W z + b): (B, K) -> (B, K)."""
        return super().to_theta(self._projected(z))

    def _projected(self, z: Tensor) -> Tensor:
        """Return W z, where W is learned or is spread * I: (B, K) -> (B, K)."""
        if self.projection is None:
            assert self.spread is not None
            return self.spread * z
        projected: Tensor = self.projection(z)
        return projected

    def pretraining_loss(self, batch: Batch) -> Loss:
        """Return the loss of an autoencoder without noise and without a prior."""
        theta = self.posterior(batch).point()  # (B, K)
        score = self.decoder.score(theta, self.scored(batch.counts), self.pretrain_criterion)  # (B,)
        return Loss(-score, torch.zeros_like(score), self.regularisation(theta, batch))

    def extras(self, posterior: SampledPosterior, theta: Tensor, batch: Batch) -> dict[str, Tensor]:
        """Return the terms that keep topics and components apart, which are the same for all documents."""
        terms = super().extras(posterior, theta, batch)
        if self.mutual_distance:
            closeness = self._closeness_of_components()
            terms["mutual_distance"] = self.mutual_distance * closeness.expand(batch.n_docs)
        if self.component_separation:
            own = torch.log_softmax(self._projected(self.prior.means), dim=1).diagonal()  # (K,)
            terms["component_separation"] = -self.component_separation * own.mean().expand(batch.n_docs)
        if self.balance or self.follows:
            assert isinstance(posterior, GaussianPosterior)
            eta = self.prior.responsibilities(posterior.mean, posterior.log_var)  # (B, C)
            shares, pi = step().mean(eta).clamp_min(1e-12), self.prior.log_pi.exp()  # (C,) both
            terms["balance"] = self.balance * (pi * (pi / shares).log()).sum().expand(batch.n_docs)
            if self.training and self.follows:
                self.prior.follow(shares.detach())
        return terms

    def _closeness_of_components(self) -> Tensor:
        """Return sum_cc' cos(mu_c, mu_c') + <theta_c, theta_c'>, where theta_c is that of mean mu_c: ()."""
        directions = normalize(self.prior.means, dim=1)  # (K, K)
        shares = self.to_theta(self.prior.means)  # (K, K)
        return (directions @ directions.mT).sum() + (shares @ shares.mT).sum()

    def start_mixture(self, documents: Iterable[Batch], seed: int) -> None:
        """Start the prior at a Gaussian mixture fitted to the codes of all documents.

        Args:
            documents: the training documents in batches.
            seed: the seed of scikit-learn.
        """
        codes, shares = _codes(self, documents)
        parts = _mixture(codes, shares, seed, even=not self.follows, shared=not self.prior.own_variances)
        self.prior.set(*map(current().of_first, parts))

    def components(self, batch: Batch) -> Tensor:
        """Return q(c | x), (B, K)."""
        code = self.code(batch)
        return self.prior.responsibilities(code.mean, code.log_var)

    def end_training(self, documents: Iterable[Batch]) -> None:
        """Limit the shares, unless b is the bias of a learned projection as in the paper."""
        if self.projection is None:
            super().end_training(documents)

    def topic_word(self) -> Tensor:
        return self.decoder.at(self.to_theta(self.prior.means))

    def prior_theta(self) -> Tensor:
        return self.prior.log_pi.exp() @ self.to_theta(self.prior.means)


@dataclass(eq=False, repr=False, kw_only=True)
class GMNTM(VariationalTopicModel):
    """Gaussian mixture neural topic model: VaDE (Jiang et al. 2017) for word counts.

    The codes of documents form clusters, one for each topic; `predict` returns the cluster of a document. The settings
    that the variational models share are described in `help(topicloom.VariationalTopicModel)`.

    Shape args:
        decoder: "mixture" mixes the topics' word distributions, theta beta. "product" is a product of experts,
            softmax(theta B + b), and takes memory in proportion to the vocabulary for each batch. So does "mlp",
            softmax(B f(theta) + b), where f has the layers of `decoder_sizes`.
        decoder_sizes: the widths of the hidden layers of the "mlp" decoder. Their function is `activation`. None is
            [2000, 500, 500].

    Prior args:
        spread: the factor of a document's code z, which has about unit variance, in theta = softmax(spread * z). A
            larger value gives documents fewer topics. None learns a matrix W, theta = softmax(W z).
        component_variances: whether each cluster has a variance of its own, as in VaDE. A wide cluster then takes the
            documents of its neighbours.
        component_posterior: the distribution q(c | x) of a document's cluster in the loss. "optimal" makes the bound
            tightest; "draw" is p(c | z) at a draw of the code z, as in VaDE. Outside training it is the optimal one.
        mutual_distance: the weight of a term that moves clusters apart, as in zll17's Neural_Topic_Models: the sum of
            the cosines of their means, and of the products of the means' theta, over all pairs.
        component_separation: the weight of the term that keeps cluster k in the region of topic k. With 0, clusters can
            merge.

    Training args:
        pretrain_epochs: the number of passes over the documents before the clusters are introduced, in which the
            network learns to reconstruct documents. They are not in history_.
        pretrain_criterion: the likelihood in these passes; see `criterion`. None is that of `criterion`.

    Collapse args:
        balance: the weight of a term that keeps clusters from losing their documents. The term is the divergence of pi,
            the clusters' shares so far, from the mean of q(c | x) over a batch, in nats per document.

    Examples:
        >>> import topicloom as tl
        >>> corpus = tl.datasets.synthetic_lda(n_docs=80, n_words=50, n_topics=3).corpus
        >>> model = tl.GMNTM(n_topics=3, epochs=3, random_state=0, pretrain_epochs=2).fit(corpus)
        >>> model.transform(corpus).shape
        (80, 3)
        >>> model.predict(corpus).shape
        (80,)
    """

    published: ClassVar[dict[str, Any]] = PLAIN_VARIATIONAL | {
        "learn_shares": True,
        "spread": None,
        "component_variances": True,
        "component_posterior": "draw",
        "component_separation": 0.0,
        "balance": 0.0,
        "encoder_input": "tfidf",
        "hidden_sizes": [500, 500, 2000],
        "activation": "relu",
        "batch_size": 100,
        "learning_rate": 2e-3,
        "epochs": 15,
    }

    recipes: ClassVar[dict[str, dict[str, Any]]] = {"zll17": _ZLL17}

    used_if: ClassVar[UsedIf] = {
        "decoder_sizes": ("without `decoder='mlp'`", lambda model: model.decoder == "mlp"),
    }

    pretrain_epochs: AtLeastOne = 20
    pretrain_criterion: Criterion | None = None
    spread: Positive | None = 2.0
    component_variances: bool = False
    component_posterior: Literal["optimal", "draw"] = "optimal"
    component_separation: NotNegative = 10.0
    mutual_distance: NotNegative = 0.0
    balance: NotNegative = 1.0
    decoder: Literal["mixture", "product", "mlp"] = "mixture"
    decoder_sizes: LayerSizes | None = None

    @of_one_fit
    def predict(self, X: Any) -> Array:
        """Return the most probable mixture component of each document, (n_docs,) int64. Component k belongs to topic k.

        A document without a known word gets the component with the greatest prior probability.

        Args:
            X: a Corpus, texts, lists of tokens, a data frame with a column "text", or counts (n_docs, V).

        Raises:
            InputError: X cannot be used, or the model has edits.
        """
        self.refuse_edits("`predict`")
        corpus, network = self.documents(X), self.network_
        assert isinstance(network, GMNTMNetwork)
        found = each_batch(network, corpus, lambda batch: network.components(batch).argmax(1))
        component: Array = np.concatenate([np.empty(0, np.int64), *found])
        component[corpus.is_empty] = int(network.prior.log_pi.argmax())
        return component

    @property
    def has_limited_divergence(self) -> bool:
        return False  # the mixture is learned, so the divergence from it can change

    def remedies(self, sign: Sign) -> str:
        # After the pretraining, the log-variance of a long document can be so large that its exponential overflows.
        if isinstance(sign, NotFinite) and self.code_norm == "none" and self.encoder_input in ("raw", "log1p"):
            return "codes are not normalised, and those of long documents are large; try `encoder_input='tfidf'`"
        return super().remedies(sign)

    def build_network(self, words: Words, generator: torch.Generator) -> GMNTMNetwork:
        return GMNTMNetwork(self, words, generator)

    def build_reader(self, corpus: Corpus, state: TrainingState) -> BatchReader:
        reader = super().build_reader(corpus, state)
        if not hasattr(self, "network_") and reader.n_docs_of_all < self.n_topics:
            raise InputError(
                f"`n_topics={self.n_topics}` needs at least as many documents with words, and there are only "
                f"{reader.n_docs_of_all} (n_samples = {reader.n_docs_of_all}); ask for fewer topics"
            )
        return reader

    def prepare_training(self, network: TopicNetwork, reader: BatchReader) -> None:
        assert isinstance(network, GMNTMNetwork)
        n_components = len(network.prior.weights)  # with the spare ones
        if reader.n_docs_of_all < n_components:  # enough documents exist, but some are held out
            raise InputError(
                f"{n_components} topics need at least as many documents with words, but only {reader.n_docs_of_all} "
                "are not held out; ask for fewer topics (`n_topics`, `spare_topics`) or lower `validation_fraction`"
            )

    def training_stages(self) -> list[Stage]:
        plan = replace(self.training_plan(), epochs=self.pretrain_epochs, patience=None)
        *first, last = super().training_stages()
        return [*first, Stage("pretraining", plan, recorded=False, loss=_pretraining_loss, at_end=_start_mixture), last]


def _decoder(settings: GMNTM, words: Words, generator: torch.Generator) -> Decoder:
    if settings.decoder == "mlp":
        return mlp_decoder(settings, words, settings.decoder_sizes or _DECODER_SIZES, settings.activation, generator)
    return make_decoder(settings.decoder, settings.build_topics(words, generator))


def _pretraining_loss(network: TopicNetwork, batch: Batch) -> Loss:
    assert isinstance(network, GMNTMNetwork)
    return network.pretraining_loss(batch)


def _start_mixture(network: TopicNetwork, documents: Iterable[Batch], seed: int) -> None:
    assert isinstance(network, GMNTMNetwork)
    network.start_mixture(documents, seed)


@torch.inference_mode()
def _codes(network: GMNTMNetwork, documents: Iterable[Batch]) -> tuple[Array, Array]:
    """Return the means of the codes of all ranks' documents, and their theta: (D, K) each."""
    network.eval()
    posteriors = [network.code(batch) for batch in documents]
    codes = current().rows(torch.cat([posterior.mean for posterior in posteriors]).cpu())
    shares = current().rows(torch.cat([posterior.point() for posterior in posteriors]).cpu())
    return codes.numpy().astype(np.float64), shares.numpy().astype(np.float64)


def _mixture(codes: Array, shares: Array, seed: int, *, even: bool, shared: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Fit a mixture that starts at each topic's documents.

    Args:
        codes: (D, K) the means of the documents' codes.
        shares: (D, K) their theta.
        seed: the seed of scikit-learn.
        even: whether the components begin with equal shares.
        shared: whether they share one variance.

    Returns:
        pi (K,), the means (K, K), and the variance, (K,) if it is shared and else (K, K).
    """
    from sklearn.mixture import GaussianMixture

    purity = shares**2 + 1e-9  # (D, K) documents with a single topic locate it best
    start = (purity.T @ codes) / purity.sum(0)[:, None]  # (K, K)
    n_topics = shares.shape[1]
    weights = np.full(n_topics, 1 / n_topics) if even else shares.mean(0) / shares.mean(0).sum()
    weights = np.maximum(weights, _LEAST_WEIGHT)  # without it, a topic that no document has would give log 0
    fitted = GaussianMixture(
        n_topics, covariance_type="diag", means_init=start, weights_init=weights, reg_covar=1e-3, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is only a start
        fitted.fit(codes)
    variance = fitted.weights_ @ fitted.covariances_ if shared else fitted.covariances_  # (K,) or (K, K)
    pi, means, var = (torch.tensor(part, dtype=torch.float32) for part in (weights, fitted.means_, variance))
    return pi, means, var
