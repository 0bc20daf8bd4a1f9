"""DirichletVAE: a topic model whose documents have a Dirichlet prior and a Dirichlet posterior.

Burkhardt & Kramer 2019, "Decoupling Sparsity and Smoothness in the Dirichlet Variational Autoencoder Topic Model"
(JMLR 20): p(theta) = Dir(alpha), q(theta | x) = Dir(a(x)), p(w | theta) = theta beta or softmax(theta B + b). The
divergence of the two Dirichlets has a closed form. A draw from a Dirichlet is not a smooth function of a(x) and noise;
there are six estimators of the gradient, all of them in nn/dirichlet_posteriors.py:
- "implicit": exact draws and their implicit gradient (Figurnov et al. 2018);
- "rsvi": exact draws by a rejection sampler, with a correction of their gradient (Naesseth et al. 2017);
- "icdf": an approximate inverse of the gamma's distribution function (Joo et al. 2019). The divergence is that of the
  Dirichlet and not that of these draws, so that the loss is not minus a bound;
- "weibull": Weibull variables in place of gamma variables, with parameters of their own (Zhang et al. 2018);
- "laplace": a logistic normal, with a prior that is approximated as well (Srivastava & Sutton 2017);
- "score": exact draws and the gradient of their log density (Williams 1992), which varies thousands of times as much.
With `sparsity`, theta is proportional to b times the draw, where b_k ~ Bernoulli(sparsity) determines whether topic k
is in the document. The number of topics in a document and their evenness are then two separate settings.

The defaults depart from the paper as follows; the settings in parentheses are the paper's:
- a(x) is alpha plus a number of tokens for each topic, which is a softmax of a batch-normalised layer times the tokens
  of the document, and not a softplus (code_norm="shift"). Every topic is then in use from the first step, and a short
  document costs few nats. The weight of a token in the posterior is learned
  within bounds.
- The weight of the divergence is .1, with `sparsity` .15, and 1 with "laplace" (kl_weight=1). It rises in the first
  quarter of the epochs, with "laplace" and "weibull" in three quarters of them, and not in 100 epochs (kl_warmup=100).
- With "weibull", the prior has Weibull variables as well (divergence="gammas").
- p(w | theta) is theta beta unless the product is asked for (decoder="product").
- Training starts at clusters of documents (start="random").
- alpha is asymmetric, in proportion to learned shares (learn_shares=False), and training starts with spare topics
  (spare_topics=0).
- Topics are deviations from the background frequencies (background=False), and a term of the loss keeps them apart
  (min_diversity=0).
- Half of a document's words are hidden from the encoder in training (input_dropout=0).
- With `sparsity`, the divergence includes the weights of absent topics. It is that of the discrete b, although a
  relaxed b is drawn, so that the loss is not minus a bound (Maddison et al. 2017, appendix C.3).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from ..nn.decoders import Decoder, FreeTopics, MixtureDecoder, ProductDecoder, TopicLogits
from ..nn.dirichlet_posteriors import (
    ImplicitDirichlet,
    InverseDirichlet,
    LaplacePosterior,
    RejectionDirichlet,
    ScoreDirichlet,
    SimplexPosterior,
    SparsePosterior,
    WeibullPosterior,
)
from ..nn.encoders import DirichletHead, GaussianHead, IndicatorHead, WeibullHead
from ..nn.layers import PLAIN_NORMS
from ..nn.network import VariationalNetwork
from ..nn.posteriors import Posterior, TopicShares, laplace_dirichlet
from ..nn.sparse import Batch
from ..settings import AtLeastOne, DirichletParameter, NotNegative, Positive, Rate, Share
from .autoencoders import VariationalTopicModel, limit_shares
from .base import UsedIf
from .neural import PLAIN_VARIATIONAL
from .words import Words

# The default Dirichlet parameters: with the Laplace estimator, and with the others.
_LAPLACE_ALPHA, _ALPHA = 0.3, 0.07
_LEAST_WEIBULL_ALPHA = 0.05  # here a Weibull is .3 nats from the gamma; for smaller parameters it is even farther

Estimator = Literal["laplace", "implicit", "rsvi", "weibull", "icdf", "score"]


class DirichletNetwork(VariationalNetwork):
    """x -> h -> a -> theta -> words. Its subclasses differ in q(theta | x), which the estimator determines."""

    shares: TopicShares
    head_kind: ClassVar[type[DirichletHead | WeibullHead]]  # unless `build_head` returns another one

    def __init__(self, settings: DirichletVAE, words: Words, generator: torch.Generator) -> None:
        super().__init__(
            _decoder(settings, words, generator),
            settings.build_encoder(words, generator),
            settings.build_separation_term(words),
            criterion=settings.criterion,
            n_samples=settings.n_samples,
            theta_dropout=settings.theta_dropout,
        )
        self.of_gammas = settings.divergence == "gammas"
        self.sparsity = settings.sparsity
        self.temperature = settings.temperature
        self.shares = settings.build_shares(words)
        self.total_alpha = settings._alpha * settings.n_topics
        self.prior = laplace_dirichlet(torch.full((settings.n_topics,), settings._alpha))
        self.head = self.build_head(settings, generator)
        self.indicator = (
            None
            if settings.sparsity is None
            else IndicatorHead(
                settings.last_hidden_size,
                settings.n_topics,
                generator,
                probability=settings.sparsity,
                norm=settings.code_norm,
                norm_eps=settings.code_norm_eps,
            )
        )

    @property
    def alpha(self) -> Tensor:
        """The parameters of the prior, (K,)."""
        shares: Tensor = self.shares()
        return self.total_alpha * shares

    def build_head(self, settings: DirichletVAE, generator: torch.Generator) -> nn.Module:
        """Return the map from h to the parameters of q(theta | x)."""
        return self.head_kind(
            settings.last_hidden_size,
            settings.n_topics,
            generator,
            concentration=settings.concentration,
            norm=settings.code_norm,
            norm_eps=settings.code_norm_eps,
        )

    @abstractmethod
    def weights(self, h: Tensor, totals: Tensor) -> SimplexPosterior:
        """Return q(theta | x). With `sparsity`, return the posterior of the weights of the topics that are present.

        Args:
            h: (B, H) hidden vectors.
            totals: (B,) the tokens of the documents.
        """

    def posterior(self, batch: Batch) -> SimplexPosterior:
        h = self.encoder(batch, self.noise)  # (B, H)
        weights = self.weights(h, self.encoder.n_tokens(batch))
        if self.indicator is None or self.sparsity is None:
            return weights
        return SparsePosterior(weights, self.indicator(h), self.sparsity, self.temperature)

    def further_measures(self, posterior: Posterior) -> dict[str, float]:
        if not isinstance(posterior, SparsePosterior):
            return {}
        present = posterior.n_present()  # (B,)
        deviation = present.std(correction=0)
        return {"topics_per_document": float(present.mean()), "topics_per_document_deviation": float(deviation)}

    def prior_theta(self) -> Tensor:
        return self.alpha / self.total_alpha


class LaplaceNetwork(DirichletNetwork):
    """The Dirichlet is approximated by a Gaussian before the softmax."""

    def build_head(self, settings: DirichletVAE, generator: torch.Generator) -> GaussianHead:
        norm, eps = settings.code_norm, settings.code_norm_eps
        return GaussianHead(settings.last_hidden_size, self.prior.var, generator, norm=norm, norm_eps=eps)

    def weights(self, h: Tensor, totals: Tensor) -> LaplacePosterior:
        mean, log_var = self.head(h)  # (B, K), (B, K)
        return LaplacePosterior(mean, log_var, self.prior, self.shares.logits)

    def end_training(self, documents: Iterable[Batch]) -> None:
        limit_shares(self, documents)


class WeibullNetwork(DirichletNetwork):
    """Weibull variables replace the gamma variables of a Dirichlet."""

    head_kind = WeibullHead
    head: WeibullHead

    def weights(self, h: Tensor, totals: Tensor) -> WeibullPosterior:
        alpha = self.alpha.clamp_min(_LEAST_WEIBULL_ALPHA) if self.of_gammas else self.alpha  # (K,)
        k, log_scale = self.head(h, alpha, totals)  # (B, K), (B, K)
        if self.of_gammas:
            # A gradient would move the shares until E[log weight] of a Weibull and of a gamma agree.
            return WeibullPosterior(k, log_scale, alpha.detach())
        return WeibullPosterior(k, log_scale, alpha, self.head.prior_shape(alpha))


class GammaNetwork(DirichletNetwork):
    """Dirichlets are drawn as gamma variables, with one of four estimators of the gradient."""

    head_kind = DirichletHead

    def __init__(self, settings: DirichletVAE, words: Words, generator: torch.Generator) -> None:
        super().__init__(settings, words, generator)
        self.estimator = settings.estimator
        self.augmentation = settings.augmentation

    def weights(self, h: Tensor, totals: Tensor) -> SimplexPosterior:
        alpha = self.alpha  # (K,)
        a = self.head(h, alpha, totals)  # (B, K)
        if self.estimator == "rsvi":
            return RejectionDirichlet(a, alpha, self.augmentation, of_gammas=self.of_gammas)
        if self.estimator == "score":
            return ScoreDirichlet(a, alpha, of_gammas=self.of_gammas)
        draws = ImplicitDirichlet if self.estimator == "implicit" else InverseDirichlet
        return draws(a, alpha, of_gammas=self.of_gammas)


@dataclass(eq=False, repr=False, kw_only=True)
class DirichletVAE(VariationalTopicModel):
    """Dirichlet variational autoencoder (Burkhardt & Kramer 2019).

    The settings that the variational models share are described in `help(topicloom.VariationalTopicModel)`.

    Text args:
        augmentation: the number of uniform variables that the "rsvi" estimator draws for each gamma variable. A larger
            number makes the correction of the gradient smaller.

    Shape args:
        decoder: "mixture" mixes the topics' word distributions, theta beta. "product" is a product of experts,
            softmax(theta B + b), and takes memory in proportion to the vocabulary for each batch.
        theta_dropout: the share of the entries of theta that the decoder does not receive in training, as in the code
            of ProdLDA and NVLDA. The other entries are raised, so that their mean does not change.

    Prior args:
        alpha: the Dirichlet parameter of the prior, the same for all topics. A smaller value gives documents fewer
            topics. None is 0.07, or 0.3 with the "laplace" estimator, which approximates small parameters badly.
        concentration: the weight of one observed token in the posterior, shared by all documents. A larger value makes
            the posterior more certain. With code_norm="mean" it is the upper bound of the learned weight, and with
            "affine" its initial value. Not used by the "laplace" estimator, nor with the norms "none" and "shift".
        sparsity: the prior probability that a topic is in a document. None gives every document all topics.
        divergence: "dirichlet" is the divergence of the Dirichlets. "gammas" is that of the K gamma variables that make
            up a Dirichlet (Joo et al. 2019, with the "icdf" estimator). With "implicit", "rsvi", "icdf" and "score",
            the two differ by the divergence of the gammas' sums, which is constant if `code_norm` is "fixed". With
            "weibull", "gammas" is the divergence from gamma variables with parameters of at least 0.05 (Zhang et al.
            2018). "dirichlet" is then the divergence from Weibull variables with the same means, which bounds the
            likelihood of short texts far better. Not used by "laplace".

    Training args:
        estimator: the estimator of the gradient of an expectation over the posterior: "implicit", "rsvi", "icdf",
            "weibull", "laplace" or "score". benchmarks/gradients.md compares them. "score" is there to be studied: its
            gradient is exact, but so noisy that it learns slowly.
        temperature: with `sparsity`, the temperature of the relaxed Bernoulli draws that decide which topics are in a
            document. A lower value is closer to a choice between yes and no.

    Collapse args:
        kl_weight: the weight of the divergence from the prior in the loss. None is 0.1, or 0.15 with a `sparsity`, or
            1 with the "laplace" estimator.
        batch_norm: whether the product decoder normalises theta B for each word over the documents of a batch.
        batch_norm_eps: the number that this normalisation, and that of `topic_norm`, add to the variance. With .001,
            TensorFlow's value, rare words with small weights do not get the weights of common words.
        topic_norm: whether the weights of each word are normalised over the topics, with a learned shift for each word
            and without a scale, as in the code of NVLDA.

    Examples:
        >>> import topicloom as tl
        >>> corpus = tl.datasets.synthetic_lda(n_docs=80, n_words=50, n_topics=3).corpus
        >>> model = tl.DirichletVAE(n_topics=3, epochs=3, random_state=0, estimator="weibull").fit(corpus)
        >>> model.transform(corpus).shape
        (80, 3)
    """

    published: ClassVar[dict[str, Any]] = PLAIN_VARIATIONAL | {
        "estimator": "rsvi",
        "augmentation": 10,
        "decoder": "product",
        "batch_norm_eps": 1e-3,
        "alpha": 0.01,
        "code_norm": "shift",
        "code_norm_eps": 1e-3,
        "hidden_sizes": [100],
        "activation": "relu",
        "dropout": 0.25,
        "batch_size": 200,
        "learning_rate": 1e-3,
        "kl_warmup": 100.0,
        "patience": 30,
        "epochs": 500,
    }

    used_if: ClassVar[UsedIf] = {
        "augmentation": ("without `estimator='rsvi'`", lambda model: model.estimator == "rsvi"),
        "batch_norm": ("without `decoder='product'`", lambda model: model.decoder == "product"),
        "batch_norm_eps": (
            "without `decoder='product'` and without `topic_norm`",
            lambda model: model.decoder == "product" or model.topic_norm,
        ),
        "concentration": (
            "with `estimator='laplace'`, and with `code_norm='shift'` or 'none'",
            lambda model: model.estimator != "laplace" and model.code_norm not in PLAIN_NORMS,
        ),
        "divergence": ("with `estimator='laplace'`", lambda model: model.estimator != "laplace"),
        "temperature": ("without a `sparsity`", lambda model: model.sparsity is not None),
    }

    estimator: Estimator = "implicit"
    decoder: Literal["mixture", "product"] = "mixture"
    alpha: DirichletParameter | None = None
    concentration: DirichletParameter = 1.75
    kl_weight: NotNegative | None = None  # type: ignore[assignment]  # the best weight depends on the estimator
    augmentation: AtLeastOne = 5
    sparsity: Share | None = None
    temperature: Positive = 0.5
    batch_norm: bool = True
    batch_norm_eps: Positive = 1e-5
    topic_norm: bool = False
    theta_dropout: Rate = 0.0
    divergence: Literal["dirichlet", "gammas"] = "dirichlet"

    @property
    def _alpha(self) -> float:
        return self.alpha or (_LAPLACE_ALPHA if self.estimator == "laplace" else _ALPHA)

    def build_topics(self, words: Words, generator: torch.Generator) -> TopicLogits:
        if not self.topic_norm:
            return super().build_topics(words, generator)
        return FreeTopics(
            self.background_logits(words),
            self.n_topics,
            generator,
            seeds=words.seeds,
            gain=self.gain,
            scale=self.topic_scale,
            norm_eps=self.batch_norm_eps,
        )

    @property
    def divergence_weight(self) -> float:
        if self.kl_weight is not None:
            return self.kl_weight
        if self.estimator == "laplace":
            return 1.0
        return 0.1 if self.sparsity is None else 0.15  # with .1, the bound of titles is 4 times as loose as completion

    @property
    def warmup_share(self) -> float:
        return super().warmup_share if self.estimator in ("laplace", "weibull") else 0.25

    @property
    def has_limited_divergence(self) -> bool:
        return super().has_limited_divergence and self.sparsity is None

    def build_network(self, words: Words, generator: torch.Generator) -> DirichletNetwork:
        kinds: dict[str, type[DirichletNetwork]] = {"laplace": LaplaceNetwork, "weibull": WeibullNetwork}
        return kinds.get(self.estimator, GammaNetwork)(self, words, generator)


def _decoder(settings: DirichletVAE, words: Words, generator: torch.Generator) -> Decoder:
    topics = settings.build_topics(words, generator)
    if settings.decoder == "product":
        return ProductDecoder(topics, batch_norm=settings.batch_norm, eps=settings.batch_norm_eps)
    return MixtureDecoder(topics)
