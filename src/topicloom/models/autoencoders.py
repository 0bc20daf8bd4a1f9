"""The autoencoders that several models share.

- VariationalTopicModel is the base of the models whose loss is minus an evidence lower bound.
- GaussianNetwork is the network of ETM, and the base of those of GSM, NVDM, ECRTM and GMNTM: codes are Gaussian.
- DeterministicNetwork is the network of BATM and WLDA, whose encoder gives a document a single theta.
- `limit_shares` ends the training of models whose documents are mixtures of topics with a Gaussian code.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from ..distributed import current, step
from ..nn.decoders import Decoder, MixtureDecoder
from ..nn.encoders import BagEncoder, GaussianHead
from ..nn.execution import is_worth_compiling
from ..nn.layers import linear, norm_of_location, normal_like
from ..nn.network import AutoencoderNetwork, Loss, VariationalNetwork
from ..nn.posteriors import GaussianPosterior, NormalPrior, PointPosterior, Prior, SampledPosterior, TopicShares
from ..nn.samplers import ThetaSampler
from ..nn.sparse import TINY, Batch, SparseCounts, expected_tokens
from ..settings import AtLeastOne, NotNegative
from ..training.batches import BatchReader
from ..training.monitors import CollapseSign
from ..training.state import Snapshot, TrainingPlan, TrainingState
from .neural import NeuralTopicModel
from .words import Words

logger = logging.getLogger("topicloom")


@dataclass(eq=False, repr=False, kw_only=True)
class VariationalTopicModel(NeuralTopicModel):
    """The base of the variational autoencoders, which draw theta from its posterior in training.

    The settings that all neural models share are described in `help(topicloom.NeuralTopicModel)`.

    Training args:
        n_samples: the number of draws of theta that estimate the loss of a document.

    Collapse args:
        kl_weight: the weight of the divergence from the prior in the loss (beta-VAE, Higgins et al. 2017). With a
            weight of 1, the loss is minus the evidence lower bound. With a higher weight, codes are less certain and
            more alike. With code_norm="fixed" it has less effect: the divergence of a Gaussian code hardly changes.
        kl_warmup: the number of epochs in which this weight rises from 0 (Bowman et al. 2016). Without a warm-up, the
            codes of short texts become uncertain before topics have formed. None is three quarters of the epochs of
            `fit`; in DirichletVAE with the estimators "implicit", "rsvi", "icdf" and "score" it is a quarter of them,
            and in Loom a quarter of the epochs before the sampling stage. In `partial_fit`, None is 0.

    Examples:
        >>> import topicloom as tl
        >>> tl.GSM(n_topics=10, kl_weight=0.5).divergence_weight
        0.5
    """

    kl_weight: NotNegative = 1.0
    kl_warmup: NotNegative | None = None
    n_samples: AtLeastOne = 1

    @property
    def divergence_weight(self) -> float:
        return self.kl_weight

    def helpful_settings(self, sign: CollapseSign) -> dict[str, Any]:
        helpful = super().helpful_settings(sign)
        if sign.kind != "idle dimensions":
            return helpful
        longer_warmup = max(1, max(sign.epoch, self.epochs) // 2)
        warmup = {"kl_warmup": longer_warmup} if longer_warmup > self.training_plan().kl_warmup else {}
        return warmup | {"kl_weight": self.divergence_weight / 2} | helpful

    @property
    def warmup_share(self) -> float:
        """The share of the epochs in which the divergence's weight rises by default."""
        return 0.75  # benchmarks/shares_tried.md compares other values

    @property
    def has_limited_divergence(self) -> bool:
        """Whether the settings limit how much the divergence from the prior changes with its weight."""
        return self.code_norm == "fixed"

    @property
    def cycle_end(self) -> int | None:
        """The number of epochs after which the learning rate no longer changes; None if it changes until the end."""
        return None

    def training_plan(self) -> TrainingPlan:
        plan = replace(super().training_plan(), cycle_end=self.cycle_end)
        warmup = self.warmup_share * (plan.cycle_end or plan.epochs) if self.kl_warmup is None else self.kl_warmup
        return replace(plan, kl_warmup=warmup)

    def stream_plan(self, epochs: int) -> TrainingPlan:
        return replace(super().stream_plan(epochs), kl_warmup=self.kl_warmup or 0.0)

    def _start(self, snapshot: Snapshot | None = None, *, for_fit: bool) -> TrainingState:
        plan, is_new_fit = self.training_plan(), for_fit and snapshot is None
        if self.has_limited_divergence:
            if self.kl_weight != type(self).kl_weight or (self.kl_warmup or 0) > 0:
                logger.warning(
                    "`kl_weight` and `kl_warmup` have less effect with `code_norm='fixed'`, because the divergence "
                    "from the prior changes less; try `code_norm='mean'`"
                )
        elif is_new_fit and plan.kl_weight > 0 and plan.kl_warmup > plan.epochs and plan.cycle_end is None:
            logger.warning(
                "the warm-up is longer than the training, so the weight of the divergence rises only to %.3g, not %g; "
                "try `kl_warmup=%g`",
                plan.kl_weight * plan.epochs / plan.kl_warmup, plan.kl_weight, self.warmup_share * plan.epochs,
            )  # fmt: skip
        return super()._start(snapshot, for_fit=for_fit)


# Shares of topics after training
#
# If documents have few words and most words are rare, the loss gives one broad topic a large share, because it is the
# safest guess for all documents. Given the topics, the words of the documents tell which share it has.

_SHARE_STEPS = 50  # of EM
_PRIOR_TOKENS = 2.0  # tokens with the average shares, added to each document
_MOST_READ = 20_000  # the most documents from which shares are estimated
_READ_AT_ONCE = 512  # documents; large batches are read faster
_MOST_EXPLAINED = 1.2  # the largest share of a large topic, relative to that; see benchmarks/shares_tried.md
_SHIFT_STEPS, _SHIFT_TOLERANCE = 100, 1e-3  # of b


def explained_shares(documents: Sequence[SparseCounts], beta_t: Tensor) -> Tensor:
    """Return the average shares of topics that explain documents, by EM given the topics: (K,).

    Each document has a theta of its own. It is the mean of its Dirichlet posterior, whose prior adds `_PRIOR_TOKENS`
    tokens with the average shares.

    Args:
        documents: those of this rank, in parts.
        beta_t: (V, K) the topics, columns sum to 1.
    """
    shares = beta_t.new_full((beta_t.shape[1],), 1 / beta_t.shape[1])  # (K,)
    thetas = [shares.expand(counts.n_docs, -1) for counts in documents]  # (B, K) each
    for _ in range(_SHARE_STEPS):
        for number, counts in enumerate(documents):
            tokens = expected_tokens(thetas[number], beta_t, counts)  # (B, K)
            thetas[number] = (tokens + _PRIOR_TOKENS * shares) / (counts.totals[:, None] + _PRIOR_TOKENS)
        total = current().sum(sum((theta.sum(0) for theta in thetas), torch.zeros_like(shares)))
        shares = total / total.sum()
    return shares


def in_large_batches(documents: Iterable[Batch], least: int = _READ_AT_ONCE) -> Iterable[Batch]:
    """Return the same documents, in batches of at least `least` documents on each rank if a reader makes them."""
    return documents.with_batches_of(least * current().size) if isinstance(documents, BatchReader) else documents


def spaced_rows(batch: Batch, before: int, every: int) -> Tensor:
    """Return the rows of a batch that have every `every`-th document, after `before` documents in other batches.

    A small batch may have none of them.
    """
    return torch.arange(min(-before % every, batch.n_docs), batch.n_docs, every, device=batch.device)


def limit_shares(network: VariationalNetwork, documents: Iterable[Batch]) -> None:
    """Lower b, the logits of learned shares, of topics whose mean theta is beyond what the documents explain.

    Afterwards, the mean theta of a topic is at most 1.2 times its part of `explained_shares`, or at most 1 / K. Nothing
    happens if shares are not learned, or if documents are not mixtures of topics. theta must be softmax(z + b).

    Args:
        network: the network.
        documents: the training documents in batches.
    """
    own = network.shares
    if own is None or not own.is_learned or not isinstance(network.decoder, MixtureDecoder):
        return
    documents = in_large_batches(documents)
    n_docs = sum(current().every(sum(batch.n_docs for batch in documents)))
    every, before = math.ceil(n_docs / _MOST_READ), 0
    read, logits = [], []
    for batch in documents:
        rows = spaced_rows(batch, before, every)
        before += batch.n_docs
        if len(rows):
            read.append(batch.counts.take(rows))
            logits.append(network.posterior(batch).point()[rows].clamp_min(TINY).log())  # (n, K)
    shares = explained_shares(read, network.decoder.beta_t())  # (K,)
    most = (_MOST_EXPLAINED * shares).clamp_min(1 / len(shares))
    shift = torch.zeros_like(shares)
    for _ in range(_SHIFT_STEPS):
        total = sum((torch.softmax(part + shift, dim=1).sum(0) for part in logits), torch.zeros_like(shares))
        total = current().sum(total)
        excess = (total / total.sum() / most).log().clamp_min(0)  # (K,)
        if not excess.max() > _SHIFT_TOLERANCE:  # also if training has diverged, and it is not a number
            break
        shift -= excess
    own.logits.add_(current().of_first(shift))  # other machines may round differently


class GaussianNetwork(VariationalNetwork):
    """x -> h -> q(z | x) = N(mu, diag sigma^2) -> theta = softmax(z + b) -> words.

    Args:
        decoder: the decoder.
        prior: p(z).
        settings: the estimator.
        words: the vocabulary.
        generator: draws the initial weights of the encoder.
        scaled: whether code_norm="mean" has learned scales.
    """

    # Whether `gaussian_loss` computes the loss of this class. Classes that derive from it may have other losses.
    has_compiled_loss: ClassVar[bool] = True
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
        self.head = GaussianHead(
            settings.last_hidden_size,
            prior.unit_var(),
            generator,
            norm=settings.code_norm,
            norm_eps=settings.code_norm_eps,
            scaled=scaled,
        )
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

    def code_factor(self) -> Tensor | None:
        """Return the factor () of z if theta is softmax(factor z + b), and None if it is not."""
        return torch.ones((), device=self.shares.logits.device)

    def loss(self, batch: Batch) -> Loss:
        if not (self.training and torch.is_grad_enabled() and vars(type(self)).get("has_compiled_loss", False)):
            return super().loss(batch)
        with self.decoder.cached_topics():
            found = compiled_loss(self, batch)
            if found is None:
                return super().loss(batch)
            loss, theta = found
            return replace(loss, extras=self.regularisation(theta, batch))

    def prior_theta(self) -> Tensor:
        assert isinstance(self.prior, NormalPrior)
        return self.to_theta(self.prior.mean[None])[0]

    def end_training(self, documents: Iterable[Batch]) -> None:
        limit_shares(self, documents)


def compiled_loss(network: GaussianNetwork, batch: Batch) -> tuple[Loss, Tensor] | None:
    """Return the loss of a network in training, without further terms, and theta (B, K), by `gaussian_loss`.

    It is None for networks, batches and devices that this function does not cover.
    """
    encoder, head, prior, decoder = network.encoder, network.head, network.prior, network.decoder
    factor, counts, words = network.code_factor(), batch.counts, batch.own_counts
    mean_norm, spread_norm = head.mean_norm.norm, head.log_var_norm.norm
    is_covered = (
        (type(encoder), type(head), type(prior), type(decoder))
        == (BagEncoder, GaussianHead, NormalPrior, MixtureDecoder)
        and encoder.reads in ("counts", "both")
        and encoder.activation == "softplus"
        and encoder.hidden is not None
        and not encoder.deeper
        and factor is not None
        and mean_norm is not None
        and spread_norm is not None
        and (network.criterion, network.target, network.n_samples) == ("cross_entropy", "counts", 1)
        and not network.theta_dropout
        and batch.n_docs > 1
        and not step().is_shared
    )
    if not is_covered:
        return None
    assert isinstance(decoder, MixtureDecoder)
    assert isinstance(prior, NormalPrior)
    assert encoder.weight is not None
    assert encoder.hidden is not None
    assert factor is not None
    assert mean_norm is not None
    assert spread_norm is not None
    width = max(encoder.weight.shape[1], len(network.shares.logits))
    works = encoder.weight.numel(), width * len(words.values), width * len(counts.values)
    if not all(is_worth_compiling(work, encoder.weight, counts.values, words.values) for work in works):
        return None
    from ..nn.gaussian_loss import GaussianBatch, GaussianWeights, can_compile, gaussian_loss  # not for small corpora

    if not can_compile():
        return None
    values = encoder.word_values(batch, network.generator)  # (N,)
    rest = encoder.sums_without_words(batch, network.generator)  # (B, H) or (H,)
    rate = encoder.output_dropout
    drawn = values.new_ones(batch.n_docs, encoder.hidden.out_features)  # (B, H)
    drawn = torch.rand(drawn.shape, generator=network.generator) if rate else drawn
    noise = normal_like(values.new_empty(batch.n_docs, len(prior.var)), network.generator)  # (B, K)
    unit, zero = torch.ones_like(prior.var), torch.zeros_like(prior.var)  # (K,)
    mean_scale, mean_shift = head.mean_norm.scale_and_shift()
    spread_scale, spread_shift = head.log_var_norm.scale_and_shift()
    of_prior = (0.5 * head.prior_log_var).exp()  # (K,)
    centre = head.prior_log_var + head.start  # (K,)
    weights = GaussianWeights(
        first=encoder.weight,
        first_rest=rest.expand(batch.n_docs, -1),
        hidden=encoder.hidden.weight,
        hidden_bias=encoder.hidden.bias,
        mean=head.mean.weight,
        spread=head.log_var.weight,
        mean_scale=of_prior if mean_scale is None else mean_scale * of_prior,
        mean_shift=zero if mean_shift is None else mean_shift * of_prior,
        spread_scale=unit if spread_scale is None else spread_scale,
        spread_shift=centre if spread_shift is None else spread_shift + centre,
        factor=factor,
        logits=network.shares.logits,
        beta_t=decoder.beta_t(),
    )
    others = GaussianBatch(
        counts, words, values, drawn, noise, prior.mean, prior.var, rate=rate, eps=mean_norm.eps, floor=decoder.floor
    )
    reconstruction, divergence, theta, moments = gaussian_loss(weights, others)
    for norm, part in zip((mean_norm, spread_norm), moments.tensor_split(2, dim=1), strict=True):
        norm.follow(part[0], part[1], batch.n_docs)
    return Loss(reconstruction, divergence), theta


class DeterministicNetwork(AutoencoderNetwork):
    """x -> h -> f(x) -> z = spread norm(f(x)) + b -> theta = softmax(z) -> words.

    Args:
        decoder: the decoder.
        settings: the estimator.
        words: the vocabulary.
        generator: draws the initial weights of the encoder.

    Attributes:
        prior: p(theta), with which the model's loss compares theta.
        spread: the standard deviation of the normalised codes.
    """

    prior: ThetaSampler
    shares: TopicShares
    spread: float

    def __init__(self, decoder: Decoder, settings: NeuralTopicModel, words: Words, generator: torch.Generator) -> None:
        super().__init__(decoder, settings.build_encoder(words, generator), settings.build_separation_term(words))
        self.code = linear(settings.last_hidden_size, settings.n_topics, generator, bias=False)
        self.norm = norm_of_location(settings.n_topics, settings.code_norm, eps=settings.code_norm_eps)
        self.shares = settings.build_shares(words)
        self.criterion = settings.criterion

    def raw_codes(self, batch: Batch) -> Tensor:
        """Return f(x), (B, K)."""
        raw: Tensor = self.code(self.encoder(batch, self.noise))
        return raw

    def scaled(self, normal: Tensor) -> Tensor:
        """Return the codes z of normalised f(x): (B, K) -> (B, K)."""
        return self.spread * normal + self.shares.logits

    def codes(self, batch: Batch) -> Tensor:
        """Return z, (B, K)."""
        return self.scaled(self.norm(self.raw_codes(batch)))

    def posterior(self, batch: Batch) -> PointPosterior:
        return PointPosterior(torch.softmax(self.codes(batch), dim=1))

    def bound(self, batch: Batch, generator: torch.Generator) -> Tensor:
        """Return the log likelihood at the encoder's theta, because a point posterior has no evidence lower bound."""
        return self.decoder.score(self.posterior(batch).point(), batch.counts, self.criterion)

    def prior_theta(self) -> Tensor:
        return self.prior.mean()
