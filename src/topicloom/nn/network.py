"""What the training loop and the estimator ask of a model: three methods and a generator."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import torch
from torch import Tensor, nn

from .batch import Batch
from .decoders import Criterion, Decoder
from .encoders import BagEncoder
from .posteriors import Posterior, SampledPosterior
from .separation import SeparationTerm


@dataclass(frozen=True)
class Loss:
    """The named terms of a loss, one value per document each, to be minimised."""

    reconstruction: Tensor  # (B,) negative log likelihood
    divergence: Tensor  # (B,) of the posterior from the prior; weighted by kl_weight
    extras: Mapping[str, Tensor] = field(default_factory=dict)  # (B,) each, already weighted

    def terms(self) -> dict[str, Tensor]:
        """Every term by name, as history_ records them."""
        return {"reconstruction": self.reconstruction, "divergence": self.divergence, **self.extras}

    def without_extras(self, kl_weight: float = 1.0) -> Tensor:
        """(B,) The weights of the extras may change as training goes: without them epochs compare."""
        return self.reconstruction + kl_weight * self.divergence

    def total(self, kl_weight: float = 1.0) -> Tensor:
        """(B,). With kl_weight 1 and no extras it is the negative evidence lower bound."""
        total = self.without_extras(kl_weight)
        for extra in self.extras.values():
            total = total + extra
        return total


@dataclass(frozen=True)
class Player:
    """Who moves in a step: a set of weights with a loss of its own. Most networks have one; adversaries are two."""

    parameters: Sequence[nn.Parameter]
    loss: Callable[[Batch], Loss | None]  # None where a batch teaches it nothing by gradients
    name: str = ""  # what its terms are called by in history_
    every: int = 1  # moves at every so many steps
    after: Callable[[], None] | None = None  # called after each move


class TopicNetwork(nn.Module, ABC):
    """A topic model as the loop sees it.

    `generator` is the only source of noise: the loop owns it, so that its state can be saved with the loop's.
    """

    generator: torch.Generator
    fields: tuple[str, ...] = ()  # names of the documents' fields that batches must bring

    @abstractmethod
    def posterior(self, batch: Batch) -> Posterior:
        """q(theta | x), the one object that the loss and `transform` read."""

    @abstractmethod
    def topic_word(self) -> Tensor:
        """(K, V), every row a distribution, whatever the decoder."""

    @abstractmethod
    def loss(self, batch: Batch) -> Loss:
        """The terms to be minimised, per document."""

    @abstractmethod
    def log_likelihood(self, theta: Tensor, batch: Batch) -> Tensor:
        """sum_v x_dv log p(v | theta_d): (B, K) -> (B,)"""

    def players(self) -> Sequence[Player]:
        """Who is trained, in the order of their moves."""
        return [Player([weights for weights in self.parameters() if weights.requires_grad], self.loss)]

    def begin_stage(self, name: str) -> None:
        """Prepare for a stage of training, such as "pretraining"; by default do nothing."""

    def end_stage(self, name: str, documents: Iterable[Batch], seed: int) -> None:
        """Do what follows a stage, such as fitting a prior to the codes of all documents; by default nothing."""

    def end_pass(self) -> None:
        """Do what follows the batches of an epoch, before anything measures the network; by default nothing."""

    def run_state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return what changes while training and is not in `state_dict()`, as tensors and as JSON values, by name."""
        return {}, {}

    def load_run_state(self, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
        """Take back what `run_state` returned. It is called before `load_state_dict`, and may change shapes for it."""

    def adapt(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """What the network changes in itself after an epoch, as columns of its row; by default nothing.

        Args:
            row: the epoch's row of history_, with what the monitors saw.
        """
        return {}

    def may_end(self) -> bool:
        """Whether training may end here for want of progress. One of several parts would end before the next began."""
        return True

    def bound(self, batch: Batch, generator: torch.Generator) -> Tensor:
        """Return the evidence lower bound of each document's counts, whatever the loss is made of: (B,).

        Args:
            generator: draws the noise of an expectation that has no closed form.
        """
        loss = self.loss(batch)
        return -(loss.reconstruction + loss.divergence)

    @abstractmethod
    def prior_theta(self) -> Tensor:
        """(K,), theta of a document that says nothing."""

    def on(self, device: torch.device, seed: int) -> Self:
        """Moves the network to a device and gives it a generator there."""
        self.to(device)
        self.generator = torch.Generator(device).manual_seed(seed)
        return self

    @property
    def noise(self) -> torch.Generator | None:
        """The generator while training; None outside it, where dropout is off."""
        return self.generator if self.training else None


class AutoencoderNetwork(TopicNetwork):
    """A network with a decoder, from which topics and likelihoods are read, and an encoder.

    Args:
        separation: the term of the loss that moves topics apart.
    """

    def __init__(self, decoder: Decoder, encoder: BagEncoder, separation: SeparationTerm) -> None:
        super().__init__()
        self.decoder = decoder
        self.encoder = encoder
        self.separation = separation

    def separation_loss(self, theta: Tensor, batch: Batch) -> dict[str, Tensor]:
        """Return the separation term (B,) by its name; the mean of theta (B, K) is the weight of each topic in it."""
        if not self.separation.target:
            return {}
        return {"separation": self.separation(self.decoder.beta_t(), theta.detach().mean(0), batch.counts.totals)}

    def adapt(self, row: Mapping[str, Any]) -> dict[str, Any]:
        if "lowest_topic_diversity" not in row:
            return {}
        return self.separation.adapt(row["lowest_topic_diversity"], row["active_topics"], row["epoch"])

    def topic_word(self) -> Tensor:
        return self.decoder.topic_word()

    def log_likelihood(self, theta: Tensor, batch: Batch) -> Tensor:
        return self.decoder.log_likelihood(theta, batch.counts)


class VariationalNetwork(AutoencoderNetwork):
    """The evidence lower bound of an autoencoder: what the Gaussian and Dirichlet models share.

    -E_q[log p(x | theta)] + KL(q || p), the expectation by `n_samples` draws a document (Kingma & Welling 2014).
    """

    def __init__(
        self,
        decoder: Decoder,
        encoder: BagEncoder,
        separation: SeparationTerm,
        *,
        criterion: Criterion = "cross_entropy",
        n_samples: int = 1,
    ) -> None:
        super().__init__(decoder, encoder, separation)
        self.criterion: Criterion = criterion
        self.n_samples = n_samples

    @abstractmethod
    def posterior(self, batch: Batch) -> SampledPosterior: ...

    def loss(self, batch: Batch) -> Loss:
        with self.decoder.held():
            posterior = self.posterior(batch)
            loss, theta = self._free_energy(posterior, batch, self.criterion, self.generator)
            return replace(loss, extras=self.extras(posterior, theta, batch))

    def extras(self, posterior: SampledPosterior, theta: Tensor, batch: Batch) -> dict[str, Tensor]:
        """What a loss adds to the bound, (B,) each; theta (B, K) is a draw from the posterior."""
        return self.separation_loss(theta, batch)

    def bound(self, batch: Batch, generator: torch.Generator) -> Tensor:
        loss, _ = self._free_energy(self.posterior(batch), batch, "cross_entropy", generator)
        return -loss.total()

    def _free_energy(
        self, posterior: SampledPosterior, batch: Batch, criterion: Criterion, generator: torch.Generator
    ) -> tuple[Loss, Tensor]:
        """Minus the bound, in its two terms, and a draw of theta (B, K)."""
        draws = [posterior.sample(generator) for _ in range(self.n_samples)]
        scores = [
            draw.surrogate(self.decoder.score(draw.theta, batch.counts, criterion), batch.counts.totals)
            for draw in draws
        ]  # (B,) each
        return Loss(-torch.stack(scores).mean(0), posterior.divergence().sum(1)), draws[0].theta
