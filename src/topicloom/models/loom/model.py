"""Loom: this project's own topic model. A network lays out the topics; counting weaves them.

LDA (Blei, Ng & Jordan 2003), trained in two parts, in one run of the loop:
- warp: an encoder and free topics learn the evidence lower bound, as in GSM. In a few epochs this finds topics that
  speak of what documents have in common, where a sampler started at random takes hundreds of passes;
- weft: tokens are shared out among the topics after CVB0 (Asuncion et al. 2009), by counts that each document keeps and
  that are drawn anew at every pass. No gradient is taken through them; the encoder learns to say what they say.
Spare topics, whose words do not go together or are not theirs alone, go early. docs/models/loom.md has the mathematics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from numbers import Integral
from typing import Annotated, Any

import torch
from pydantic import Field
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from ...errors import SettingError
from ...nn.batch import Batch
from ...nn.network import Loss, Player, TopicNetwork
from ...nn.posteriors import DirichletPosterior, SampledPosterior
from ...nn.sparse import mixture_log_likelihood
from ...settings import (
    AtLeastOne,
    NotNegative,
    Positive,
    Rate,
    Share,
)
from ...training.batches import BatchReader
from ...training.state import TrainingPlan, TrainingState
from ..gsm import GSM, GSMNetwork
from ..inference import Array
from ..neural import NeuralTopicModel
from ..words import Words
from .compiled import reassign
from .counting import Weft
from .pruning import TopicChoice
from .spare_topics import narrowed

_STREAM_STEPS = 500  # after which a stream goes from warp to weft
_SEED_COUNT = 50.0  # tokens that a seed word has in its topic beforehand
_MOST_SPARE = 50  # topics
_LONG, _LEAST_WARP = 20, 0.4  # tokens of a document from which fewer epochs do, and the least share of them
_LESSON = 20  # every so many batches of a pass teach the encoder, and what is not finite; more teach titles by heart


class LoomNetwork(GSMNetwork):
    """In the warp GSM of K' topics, z ~ N(mu(x), diag sigma^2(x)); in the weft theta ~ Dirichlet(alpha_d + N_d)."""

    steps: Tensor  # () of the warp
    usage: Tensor  # (K',) how much of the documents each topic has, in the warp

    def __init__(self, settings: Loom, words: Words, n_spare: int, generator: torch.Generator) -> None:
        n_topics, seeds = settings.n_topics, words.seeds
        wide = None if seeds is None else torch.nn.functional.pad(seeds, (0, n_spare))  # (V, K')
        super().__init__(settings._gsm(n_topics + n_spare), replace(words, seeds=wide), generator)
        self.weft = Weft(
            len(words),
            n_topics,
            eta=settings.eta,
            damping=settings.damping,
            sharpness=settings.sharpness,
            n_common=round(settings.common * n_topics),
            n_spare=n_spare,
            seeded=None if seeds is None else (seeds > 0) * _SEED_COUNT,
            reassign=reassign,
        )
        self.refine = settings.refine
        self.warp_epochs, self.weft_epochs = settings._parts(words.mean_length)
        self.register_buffer("steps", torch.tensor(0))
        self.register_buffer("usage", torch.full((n_topics + n_spare,), 1 / (n_topics + n_spare)))

    def posterior(self, batch: Batch) -> SampledPosterior:
        code = self.code(batch)
        return self.weft.infer(batch, code.point(), self.refine) if self.weft.begun else code

    def to_theta(self, z: Tensor) -> Tensor:
        return super().to_theta(self.weft.spares.of_left(z))

    def beta_t(self) -> Tensor:
        """(V, K) the topics, columns sum to 1."""
        return self.weft.beta_t if self.weft.begun else self.decoder.beta_t()

    def topic_word(self) -> Tensor:
        return self.beta_t().mT

    def log_likelihood(self, theta: Tensor, batch: Batch) -> Tensor:
        return mixture_log_likelihood(theta, self.beta_t(), batch.counts)

    def prior_theta(self) -> Tensor:
        alpha = self.weft.alpha
        return alpha / alpha.sum() if self.weft.begun else super().prior_theta()

    def bound(self, batch: Batch, generator: torch.Generator) -> Tensor:
        return -self.loss(batch).without_extras() if self.weft.begun else super().bound(batch, generator)

    def may_end(self) -> bool:
        return bool(self.weft.begun) and not self.weft.crowded

    def players(self) -> list[Player]:
        return [replace(player, loss=self.lesson) for player in super().players()]

    def loss(self, batch: Batch) -> Loss:
        if not self.weft.begun:
            return super().loss(batch)
        posterior = self.posterior(batch)
        assert isinstance(posterior, DirichletPosterior)
        return self.weft.loss(posterior, batch)

    def lesson(self, batch: Batch) -> Loss | None:
        """What gradients are taken of: in the weft, of how far the encoder is from the counts, now and then."""
        if not self.weft.begun:
            return self.loss(batch)
        teaches = self.weft.woven % _LESSON == 0
        code = self.code(batch) if teaches or self.weft.starts else None
        with torch.no_grad():
            posterior = self.weft.weave(batch, None if code is None else code.point(), self.generator)
            if not teaches and bool(posterior.alpha.isfinite().all()):
                return None
            loss, theta = self.weft.loss(posterior, batch), posterior.point()
        said = torch.log_softmax(self.weft.spares.of_left((code or self.code(batch)).mean), dim=1)
        amortisation = (theta * (theta.log() - said)).sum(1)  # (B,) KL(theta || encoder's)
        return Loss(loss.reconstruction, loss.divergence, {"amortisation": amortisation})

    def extras(self, posterior: SampledPosterior, theta: Tensor, batch: Batch) -> dict[str, Tensor]:
        if self.training:
            self.steps += 1
            self.usage.lerp_(theta.detach().mean(0), 0.02)
            if self.weft.local is None:
                self.weft.tokens.index_add_(0, batch.counts.indices, batch.counts.values)
        return super().extras(posterior, theta, batch)

    def end_pass(self) -> None:
        if self.weft.begun:
            self.weft.gather()

    def adapt(self, row: Mapping[str, Any]) -> dict[str, Any]:
        streaming = self.weft.local is None
        if self.weft.begun:
            return {"concentration": float(self.weft.alpha.sum())}
        changes = super().adapt(row)
        if self.steps >= _STREAM_STEPS if streaming else row["epoch"] >= self.warp_epochs and self.weft_epochs:
            self.weft.begin(self.decoder.beta_t().detach().clone(), self.usage, self.generator)
        return changes


@dataclass(eq=False, repr=False, kw_only=True)
class Loom(NeuralTopicModel):
    """A neural start, collapsed counting and amortised inference: the project's own model.

    The settings that all neural models share are described at NeuralTopicModel.

    Args:
        warp: share of the epochs in which the encoder and the topics are learned by gradients. Where documents have
            more than 20 tokens fewer of these do, down to .4 of them at 125, and training has so many less.
        spare: topics that there are beyond n_topics at first, as a multiple of them; no more than 50.
        common: share of the topics that start as topics of common words, of which the others keep some; 0 is LDA.
        damping: a word that a document has x times counts x ** damping when topics are counted; 1 is LDA. Less heeds
            that a word which has occurred in a document is likely to occur again.
        sharpness: p(topic | word) to this power, in the topics, for words that lead one; 1 is LDA. None is
            1 + 10 / (3 + sqrt(tokens a word)), 2.5 at most.
        alpha: the Dirichlet parameter of the warp, the same for each topic; the weft learns its own.
        eta: the Dirichlet parameter of the topics.
        refine: steps by which theta of a new document is improved from what the encoder says; 0 for none.
    """

    epochs: AtLeastOne = 56
    warp: Share = 0.5
    spare: NotNegative = 2.0
    common: Rate = 0.05
    damping: Annotated[float, Field(gt=0, le=1)] = 0.5
    sharpness: Positive | None = None
    alpha: Positive = 0.3
    eta: Annotated[float, Field(ge=1e-6, allow_inf_nan=False)] = 0.01
    refine: Annotated[int, Field(ge=0)] = 5

    def transform(self, X: Any, refine: int | None = None) -> Array:
        """(n_docs, K) float32, as for every model.

        Args:
            X: as for `fit`.
            refine: steps in the place of the setting's; 0 is what the encoder says at once.
        """
        check_is_fitted(self, "components_")
        if refine is not None and (isinstance(refine, bool) or not isinstance(refine, Integral) or refine < 0):
            raise SettingError(f"refine should be a whole number from 0; it is {refine!r}")
        network, usual = self.network_, self.network_.refine
        network.refine = usual if refine is None else refine
        try:
            return super().transform(X)
        finally:
            network.refine = usual

    def _gsm(self, n_topics: int) -> GSM:
        """The model of the warp."""
        shared = {field.name: getattr(self, field.name) for field in fields(NeuralTopicModel)}
        return GSM(**shared | {"alpha": self.alpha, "n_topics": n_topics})

    def _parts(self, mean_length: float) -> tuple[int, int]:
        """Epochs of the warp and of the weft."""
        warp = max(1, min(round(self.warp * self.epochs), self.epochs - 1))
        needed = min(1.0, max(_LEAST_WARP, (_LONG / max(mean_length, 1.0)) ** 0.5))
        return max(1, round(needed * warp)), self.epochs - warp

    def _plan(self) -> TrainingPlan:
        return replace(super()._plan(), epochs=sum(self._parts(self._words().mean_length)))

    @property
    def _n_rows(self) -> int:
        return self._plan().epochs

    def _network(self, words: Words, generator: torch.Generator) -> LoomNetwork:
        return LoomNetwork(self, words, 0, generator)

    def _fitting_network(self, words: Words, generator: torch.Generator) -> LoomNetwork:
        n_spare = min(round(self.spare * self.n_topics), _MOST_SPARE, len(words) - self.n_topics)
        return LoomNetwork(self, words, max(0, n_spare), generator)

    def _prepare(self, network: TopicNetwork, reader: BatchReader) -> None:
        assert isinstance(network, LoomNetwork)
        tokens, choice = torch.from_numpy(self.word_counts_), TopicChoice(reader) if self.spare else None
        network.weft.keep(reader.counts.shape[0], tokens, network.weft_epochs, choice)

    def _finish(self, state: TrainingState) -> None:
        network = state.network
        assert isinstance(network, LoomNetwork)
        network.weft.end(network.usage)
        if (left := network.weft.spares.left) is not None:
            start = TrainingState.start(self._network(self._words(), torch.Generator()), self._plan(), 0, state.device)
            start.network.load_state_dict(narrowed(network.state_dict(), start.network.state_dict(), left))
            start.network.generator = network.generator
            state.network, state.optimizers = start.network.eval(), start.optimizers
        super()._finish(state)
