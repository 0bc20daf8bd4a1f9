"""TopicNetwork: the network of a topic model, with the methods that training and inference call."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import torch
from torch import Tensor, nn

from ..distributed import step
from .decoders import Criterion, Decoder
from .encoders import BagEncoder, Target, tfidf_counts
from .layers import dropout
from .posteriors import Posterior, SampledPosterior, TopicShares, topic_information
from .sparse import Batch, SparseCounts

TOP_N = 25  # top words of a topic in topic diversity (Dieng et al. 2020)
_MAX_SHARE_OF_VOCABULARY = 0.6  # good topics cannot use a larger share of the vocabulary as top words
# The control of the weight of the separation term. These values were chosen on held-out training documents of five
# corpora. If the weight changes faster, coherence suffers: words are pushed into topics that do not have their
# documents yet, and stay there.
_FIRST_WEIGHT, _MIN_WEIGHT, _MAX_WEIGHT = 0.03, 1e-3, 0.3
_STEP, _MAX_ERROR = 3.0, 0.1  # if diversity is too low by .1 or more, the weight rises by 35 % after an epoch
_LOOKAHEAD = 5  # the rise of diversity in the last epoch is extrapolated for this many epochs
# The weight is constant until this share of the topics is active, or until this epoch.
_SETTLED_SHARE, _LAST_UNSETTLED_EPOCH = 0.5, 20


class TopicNetwork(nn.Module, ABC):
    """The network of a topic model.

    A network defines `posterior`, `topic_word`, `loss`, `log_likelihood` and `prior_theta`. Most networks derive from
    `VariationalNetwork`, which has all of them but `posterior` and `prior_theta`.

    Attributes:
        generator: the only source of randomness, so that the state of a run can be saved. `on` sets it.
        fields: the names of the documents' fields that batches must contain. When the network becomes part of a model,
            this becomes a mapping from the names to the kinds of the fields (`Words.fields`).
        optional_fields: those of the fields that documents may lack after training.
        needs_words: whether documents without a known word get `prior_theta`. Otherwise they also get their posterior.
        has_spare_topics: whether some of the topics will be removed during training.
        keeps_apart: whether the loss may move topics apart. It may not as long as many topics will be removed.
        criterion: the likelihood in the loss and in the bound.

    >>> import topicloom
    >>> corpus = topicloom.datasets.synthetic_lda(60, 2, 30, random_state=0).corpus
    >>> network = topicloom.GSM(2, epochs=1, random_state=0).fit(corpus).network_
    >>> isinstance(network, TopicNetwork), network.topic_word().shape, network.prior_theta().shape
    (True, torch.Size([2, 30]), torch.Size([2]))
    """

    generator: torch.Generator
    fields: Collection[str] = ()
    optional_fields: Collection[str] = ()
    needs_words: bool = True
    has_spare_topics: bool = False
    keeps_apart: bool = True
    criterion: Criterion = "cross_entropy"

    @abstractmethod
    def posterior(self, batch: Batch) -> Posterior:
        """Return q(theta | x), which both the loss and `transform` use."""

    @abstractmethod
    def topic_word(self) -> Tensor:
        """Return the topics, (K, V), whose rows are distributions over the words."""

    @abstractmethod
    def loss(self, batch: Batch) -> Loss:
        """Return the terms of the loss for each document."""

    @abstractmethod
    def log_likelihood(self, theta: Tensor, batch: Batch) -> Tensor:
        """Return sum_v x_dv log p(v | theta_d): (B, K) -> (B,)."""

    @abstractmethod
    def prior_theta(self) -> Tensor:
        """Return the model's average shares of topics, (K,), which a document without a known word gets."""

    def word_probabilities(self, theta: Tensor) -> Tensor:
        """Return p(w | theta) of all words, (M, K) -> (M, V). By default, it is that of a mixture of the topics."""
        return theta @ self.topic_word()

    def players(self) -> Sequence[Player]:
        """Return the players in the order of their moves. By default, one player has all weights."""
        return [Player([weights for weights in self.parameters() if weights.requires_grad], self.loss)]

    def end_training(self, documents: Iterable[Batch]) -> None:
        """Finish the training of `fit`, for example rotate a code. By default, do nothing.

        `fit` calls this before the last epoch is measured, and again at its end, because training may have ended early.
        Therefore a second call must change nothing.

        Args:
            documents: the training documents in batches.
        """

    def adapt(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Change the network after an epoch, and return columns for the epoch's row. By default, do nothing.

        Args:
            row: the epoch's row of history_, with the measures of the monitors.
        """
        return {}

    def further_measures(self, posterior: Posterior) -> dict[str, Any]:
        """Return columns for the row of an epoch that only this network has. By default, there are none.

        Args:
            posterior: the posterior of the documents that the collapse watch measures.
        """
        return {}

    def epoch_options(self) -> EpochOptions:
        """Return the options of training for the next epoch."""
        return EpochOptions(may_end=not self.has_spare_topics)

    @property
    def bounds_tokens(self) -> bool:
        """Whether `bound` is a bound of the tokens of a document, so that it gives a perplexity."""
        return self.criterion == "cross_entropy"

    def bound(self, batch: Batch, generator: torch.Generator) -> Tensor:
        """Return the evidence lower bound of each document, (B,), with the likelihood that `criterion` names.

        Args:
            batch: B documents.
            generator: draws the noise for an expectation without a closed form.
        """
        loss = self.loss(batch)
        return -(loss.reconstruction + loss.divergence)

    def on(self, device: torch.device, seed: int) -> Self:
        """Move the network to a device and give it a generator there."""
        self.to(device)
        self.generator = torch.Generator(device).manual_seed(seed)
        return self

    @property
    def noise(self) -> torch.Generator | None:
        """The generator during training. It is None outside training, where there is no dropout."""
        return self.generator if self.training else None


@dataclass(frozen=True)
class Loss:
    """The terms of a loss that is minimised, each with one value for each document, (B,).

    Attributes:
        reconstruction: the negative log likelihood.
        divergence: the divergence of the posterior from the prior. Its weight is that of the training plan.
        extras: further terms by name. Their weights are included.

    >>> import torch
    >>> loss = Loss(torch.tensor([4.0]), torch.tensor([2.0]), {"separation": torch.tensor([-1.0])})
    >>> loss.total(divergence_weight=0.5)
    tensor([4.])
    """

    reconstruction: Tensor
    divergence: Tensor
    extras: Mapping[str, Tensor] = field(default_factory=dict)

    def terms(self) -> dict[str, Tensor]:
        """Return all terms by the names that they have in history_."""
        return {"reconstruction": self.reconstruction, "divergence": self.divergence, **self.extras}

    def without_extras(self, divergence_weight: float = 1.0) -> Tensor:
        """Return the sum without the extra terms, (B,).

        The weights of the extra terms can change during training, so epochs are compared without them.
        """
        return self.reconstruction + divergence_weight * self.divergence

    def total(self, divergence_weight: float = 1.0) -> Tensor:
        """Return the sum of all terms, (B,). With weight 1 and no extras it is minus the evidence lower bound."""
        total = self.without_extras(divergence_weight)
        for extra in self.extras.values():
            total = total + extra
        return total


@dataclass(frozen=True)
class Player:
    """Weights that are trained with a loss of their own. Most networks have one player; adversaries are two.

    Attributes:
        parameters: the weights.
        loss: a function from a batch to the loss, or to None if the batch has no gradients for this player.
        name: the prefix of the player's terms in history_.
        every: the number of steps between two moves of the player.
        after: a function that is called after each move.

    >>> from torch import nn
    >>> critic = nn.Linear(2, 1)
    >>> Player(list(critic.parameters()), loss=lambda batch: None, name="critic", every=5).every
    5
    """

    parameters: Sequence[nn.Parameter]
    loss: Callable[[Batch], Loss | None]
    name: str = ""
    every: int = 1
    after: Callable[[], None] | None = None


@dataclass(frozen=True)
class EpochOptions:
    """Options of the training loop for the next epoch of a network.

    Attributes:
        min_batch_size: the least number of documents in a batch, whatever `batch_size` is.
        divergence_weight: the weight of the divergence in the loss; None for that of the training plan.
        watch_every: the number of epochs between two measurements by the collapse watch. A network that changes little
            in an epoch need not be measured after each epoch.
        may_end: whether training may end when the loss no longer falls. If training has several parts, this is False
            until the last part begins.
        uses_helpers: whether several threads share most of a step, whatever its size (see nn/execution.py).
        changing: the only part of the network that the epoch changes, or None if it may change all of it. If an epoch
            fails, only this part is restored.
        n_docs: the number of training documents that the epoch reads, or None for all (see `BatchReader.subset`).
        is_shuffled: whether the documents are read in random order. Reading them in their own order is faster.

    >>> EpochOptions(min_batch_size=1000).min_batch_size
    1000
    """

    min_batch_size: int = 1
    divergence_weight: float | None = None
    watch_every: int = 1
    may_end: bool = True
    uses_helpers: bool = False
    changing: nn.Module | None = None
    n_docs: int | None = None
    is_shuffled: bool = True


class AutoencoderNetwork(TopicNetwork):
    """A network with an encoder, and a decoder that determines the topics and the likelihood.

    Args:
        decoder: the decoder.
        encoder: the encoder.
        separation: the term of the loss that moves topics apart.

    Attributes:
        target: what the loss reconstructs: "counts" or "tfidf" (see `tfidf_counts`).
        shares: the average shares of the topics, if the network has such a part.

    >>> import topicloom
    >>> corpus = topicloom.datasets.synthetic_lda(60, 2, 30, random_state=0).corpus
    >>> network = topicloom.WLDA(2, epochs=1, random_state=0).fit(corpus).network_
    >>> isinstance(network, AutoencoderNetwork), type(network.decoder).__name__
    (True, 'MixtureDecoder')
    """

    target: Target = "counts"
    shares: TopicShares | None

    def __init__(self, decoder: Decoder, encoder: BagEncoder, separation: SeparationTerm) -> None:
        super().__init__()
        self.decoder = decoder
        self.encoder = encoder
        self.separation = separation
        self.shares = None
        if encoder.of_vectors is not None:
            self.fields, self.needs_words = [*self.fields, "vectors"], False
            self.optional_fields = ["vectors"] if encoder.reads == "both" else []

    def epoch_options(self) -> EpochOptions:
        return replace(super().epoch_options(), uses_helpers=self.decoder.uses_helpers)

    def scored(self, counts: SparseCounts) -> SparseCounts:
        """Return the target of the reconstruction, given the counts. Bounds and perplexities use the counts."""
        return counts if self.target == "counts" else tfidf_counts(counts, self.encoder.idf)

    def regularisation(self, theta: Tensor, batch: Batch) -> dict[str, Tensor]:
        """Return the terms that regularise topics and shares, (B,) each, by name.

        The separation term weights each topic by its mean theta. Spare topics may resemble others, so the term is zero
        as long as there are many.

        Args:
            theta: (B, K), rows sum to 1.
            batch: B documents.
        """
        terms = {}
        if self.separation.target and not self.keeps_apart:
            terms["separation"] = theta.new_zeros(len(theta))
        elif self.separation.target:
            shares = step().mean(theta.detach())  # (K,)
            terms["separation"] = self.separation(self.decoder.beta_t(), shares, batch.counts.totals)
        if self.shares is not None and self.shares.prior > 0:
            terms["shares_prior"] = self.shares.negative_log_prior().expand(len(theta))
        return terms

    def adapt(self, row: Mapping[str, Any]) -> dict[str, Any]:
        if "lowest_topic_diversity" not in row or not self.separation.target:
            return {}
        if not self.keeps_apart:
            return {"separation_weight": 0.0}
        return self.separation.adapt(row["lowest_topic_diversity"], row["active_topics"], row["epoch"])

    def topic_word(self) -> Tensor:
        return self.decoder.topic_word()

    def log_likelihood(self, theta: Tensor, batch: Batch) -> Tensor:
        return self.decoder.log_likelihood(theta, batch.counts)

    def word_probabilities(self, theta: Tensor) -> Tensor:
        return self.decoder.log_probabilities(theta).exp()


class VariationalNetwork(AutoencoderNetwork):
    """A variational autoencoder, whose loss is minus the evidence lower bound (Kingma & Welling 2014).

    The loss is -E_q[log p(x | theta)] + KL(q || p), and `n_samples` draws for each document estimate the expectation.

    Args:
        decoder: from theta to words.
        encoder: from a batch to hidden vectors, (B, H).
        separation: the term of the loss that moves topics apart.
        criterion: the likelihood in the loss and in the bound; see `Decoder.score`.
        n_samples: the number of draws of theta for each document.
        theta_dropout: the share of the entries of theta that the decoder does not receive in training.

    A subclass defines `posterior` and `prior_theta`:

    >>> import torch
    >>> from topicloom.nn.decoders import FreeTopics, MixtureDecoder
    >>> from topicloom.nn.encoders import BagEncoder, GaussianHead
    >>> from topicloom.nn.posteriors import GaussianPosterior, standard_normal
    >>> class Network(VariationalNetwork):
    ...     def __init__(self, n_words, n_topics, generator):
    ...         decoder = MixtureDecoder(FreeTopics(torch.zeros(n_words), n_topics, generator))
    ...         encoder = BagEncoder(torch.ones(n_words), 8, generator)
    ...         super().__init__(decoder, encoder, SeparationTerm(0.0, n_topics, n_words))
    ...         self.prior = standard_normal(n_topics)
    ...         self.head = GaussianHead(8, self.prior.var, generator)
    ...
    ...     def posterior(self, batch):
    ...         mean, log_var = self.head(self.encoder(batch, self.noise))  # (B, K) both
    ...         return GaussianPosterior(mean, log_var, self.prior, lambda z: torch.softmax(z, dim=1))
    ...
    ...     def prior_theta(self):
    ...         return torch.softmax(self.prior.mean, dim=0)
    >>> network = Network(5, 2, torch.Generator().manual_seed(0)).on(torch.device("cpu"), seed=0)
    >>> counts = SparseCounts(torch.tensor([0, 3, 1]), torch.tensor([2.0, 1.0, 1.0]), torch.tensor([0, 2, 3]), 5)
    >>> network.loss(Batch(counts)).total().shape  # two documents
    torch.Size([2])
    """

    def __init__(
        self,
        decoder: Decoder,
        encoder: BagEncoder,
        separation: SeparationTerm,
        *,
        criterion: Criterion = "cross_entropy",
        n_samples: int = 1,
        theta_dropout: float = 0.0,
    ) -> None:
        super().__init__(decoder, encoder, separation)
        self.criterion = criterion
        self.n_samples = n_samples
        self.theta_dropout = theta_dropout

    @abstractmethod
    def posterior(self, batch: Batch) -> SampledPosterior: ...

    def loss(self, batch: Batch) -> Loss:
        with self.decoder.cached_topics():
            posterior = self.posterior(batch)
            loss, theta = self._free_energy(posterior, self.scored(batch.counts), self.generator)
            return replace(loss, extras=self.extras(posterior, theta, batch))

    def extras(self, posterior: SampledPosterior, theta: Tensor, batch: Batch) -> dict[str, Tensor]:
        """Return the terms that the loss adds to the bound, (B,) each, by name.

        Args:
            posterior: the posterior of the documents.
            theta: (B, K) a draw from it.
            batch: B documents.
        """
        return self.regularisation(theta, batch)

    def bound(self, batch: Batch, generator: torch.Generator) -> Tensor:
        loss, _ = self._free_energy(self.posterior(batch).exact(), batch.counts, generator)
        return -loss.total()

    def _free_energy(
        self, posterior: SampledPosterior, counts: SparseCounts, generator: torch.Generator
    ) -> tuple[Loss, Tensor]:
        """Return minus the bound, as its two terms, and a draw of theta, (B, K)."""
        draws = [posterior.sample(generator) for _ in range(self.n_samples)]
        decoded = [dropout(draw.theta, self.theta_dropout, self.noise) for draw in draws]  # (B, K) each
        scores = [
            draw.surrogate(self.decoder.score(theta, counts, self.criterion), counts.totals)
            for draw, theta in zip(draws, decoded, strict=True)
        ]  # (B,) each
        return Loss(-torch.stack(scores).mean(0), posterior.divergence().sum(1)), draws[0].theta


class SeparationTerm(nn.Module):
    """A term of the loss, -weight * I(topic; word) for each token, whose weight follows the diversity of the topics.

    The likelihood alone allows all topics to share the corpus's common words. Topic diversity of at least `target` is a
    constraint, and the weight is its multiplier: it rises while the constraint is violated and falls while it is met
    (Rezende & Viola 2018, "Taming VAEs"). If topics are diverse anyway, the term has hardly any effect.

    Args:
        diversity: the required share of different words among the 25 top words of all topics; 0 turns the term off.
        n_topics: the number of topics K.
        n_words: the size of the vocabulary V. A small vocabulary lowers the target, because at most .6 of its words
            are expected to be top words.

    >>> import torch
    >>> term = SeparationTerm(0.7, n_topics=2, n_words=100)
    >>> topics = torch.eye(100)[:, :2]  # (V, K): two topics of one word each
    >>> round(float(term(topics, torch.tensor([0.5, 0.5]), torch.tensor([10.0]))), 3)  # -.03 log(2) 10
    -0.208
    """

    step: float = _STEP  # after an epoch, the weight is multiplied by exp(step * error)
    weight: Tensor  # () the multiplier, saved with the network
    last_diversity: Tensor  # () the diversity after the previous epoch

    def __init__(self, diversity: float, n_topics: int, n_words: int) -> None:
        super().__init__()
        self.n_topics = n_topics
        self.target = min(diversity, _MAX_SHARE_OF_VOCABULARY * n_words / (TOP_N * n_topics))
        self.register_buffer("weight", torch.tensor(_FIRST_WEIGHT))
        self.register_buffer("last_diversity", torch.ones(()))

    def forward(self, beta_t: Tensor, shares: Tensor, totals: Tensor) -> Tensor:
        """Return -weight * I(topic; word) times the tokens of each document: (B,).

        Args:
            beta_t: (V, K) topics, columns sum to 1.
            shares: (K,) the share of each topic, with the sum 1; it is not differentiated.
            totals: (B,) tokens of each document.
        """
        return -self.weight * topic_information(beta_t, shares) * totals

    def adapt(self, diversity: float, active: int, epoch: int) -> dict[str, float]:
        """Set the weight for the next epoch, and return it as a column of the history.

        Args:
            diversity: topic diversity at the end of the epoch.
            active: the number of topics that are the main topic of some document.
            epoch: the number of the epoch; the first is 1.
        """
        if not self.target:
            return {}
        expected = diversity + _LOOKAHEAD * max(0.0, diversity - float(self.last_diversity))
        self.last_diversity.fill_(diversity)
        if active > _SETTLED_SHARE * self.n_topics or epoch > _LAST_UNSETTLED_EPOCH:
            error = min(_MAX_ERROR, max(-_MAX_ERROR, self.target - expected))
            self.weight.mul_(math.exp(self.step * error)).clamp_(_MIN_WEIGHT, _MAX_WEIGHT)
        return {"separation_weight": float(self.weight)}
