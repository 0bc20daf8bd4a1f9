"""LoomNetwork: the network of a pretrained topic model, whose topics are replaced by counts in the counting stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor
from torch.nn.functional import pad

from ...distributed.ranks import current, step
from ...nn.batch import Batch
from ...nn.network import Loss, Player
from ...nn.posteriors import DirichletPosterior, SampledPosterior
from ...nn.sparse import mixture_log_likelihood
from ...training.batches import BatchReader
from ..gsm import GSMNetwork
from ..mean_field import CompiledMeanFieldNetwork
from ..words import Words
from .background import SAMPLED, BackgroundDivision
from .compiled import dirichlet_step, expected_counts, reassign
from .counting import CollapsedCounts
from .run_state import load_run_state, run_state

if TYPE_CHECKING:
    from .model import Loom

_STREAM_STEPS = 500  # after this many steps of pretraining, a stream enters the counting stage
_SEED_COUNT = 50.0  # tokens by which a seed word counts in its topic from the start
_COUNTED_AT_ONCE = 2048  # documents; counts do not depend on the batches, of which each takes some time
# A batch of the sampling stage has at most so many documents, tokens, and counts of topics in documents (B K), but not
# fewer documents than one of the counting stage.
_SAMPLED_AT_ONCE, _SAMPLED_TOKENS, _SAMPLED_COUNTS = 1 << 14, 1 << 19, 1 << 22
_ENCODER_EVERY = 20  # the encoder is trained at every such batch of a pass; training it more often overfits titles
_COUNTING_PASSES, _SAMPLING_PASSES = 4, 32  # and at the first batch of the last of so many passes of a stage
_SEPARATION_STEP = 1.5  # half of that of other models: Loom's other settings were chosen with it


class LoomNetwork(GSMNetwork):
    """A network with two stages.

    In the pretraining stage it is GSM with K' topics, z ~ N(mu(x), diag sigma^2(x)). In the counting stage the
    posterior is theta ~ Dirichlet(alpha_d + N_d), with the topics and alpha of `counting`.

    Args:
        settings: the estimator.
        words: the vocabulary.
        n_spare: K' - K, the number of topics that are removed while training.
        generator: draws the initial weights.
    """

    steps: Tensor  # () steps of pretraining
    usage: Tensor  # (K',) the share of the documents that each topic has, a running mean of pretraining

    def __init__(self, settings: Loom, words: Words, n_spare: int, generator: torch.Generator) -> None:
        n_topics, seeds = settings.n_topics, words.seeds
        wide = None if seeds is None else pad(seeds, (0, n_spare))  # (V, K')
        super().__init__(settings._gsm(n_topics + n_spare), replace(words, seeds=wide), generator, scaled=False)
        self.separation.step = _SEPARATION_STEP
        self.counting = CollapsedCounts(
            len(words),
            n_topics,
            eta=settings.eta,
            count_power=settings.count_power,
            sharpness=settings.sharpness,
            n_background=round(settings.background_topics * n_topics),
            n_spare=n_spare,
            seed_counts=None if seeds is None else (seeds > 0) * _SEED_COUNT,
            reassign=reassign,
            expected_counts=expected_counts,
            dirichlet_step=dirichlet_step,
        )
        self.refine = settings.refine
        self.mean_length = words.mean_length
        self.pretrain_epochs, self.count_epochs, self.sample_epochs = settings.stage_epochs(words)
        self.register_buffer("steps", torch.tensor(0))
        self.register_buffer("usage", torch.full((n_topics + n_spare,), 1 / (n_topics + n_spare)))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self.counting.started = self.counting.started.cpu()  # each step reads it, and would wait for another device
        return self

    def posterior(self, batch: Batch) -> SampledPosterior:
        return self.refined_posterior(batch, self.refine)

    def refined_posterior(self, batch: Batch, steps: int) -> SampledPosterior:
        """Return q(theta | x) after so many steps of refinement; in the pretraining stage there are none."""
        code = self.code(batch)
        return self.counting.infer(batch, code.point(), steps) if self.counting.started else code

    def to_theta(self, z: Tensor) -> Tensor:
        return torch.softmax(self.logits(z), dim=1)

    def logits(self, z: Tensor) -> Tensor:
        """Return z + b of the topics that are left, (B, K') -> (B, n)."""
        return self.counting.pruning.select(z + self.shares.logits)

    def beta_t(self) -> Tensor:
        """Return the topics (V, K), columns sum to 1."""
        return self.counting.topics() if self.counting.started else self.decoder.beta_t()

    def topic_word(self) -> Tensor:
        return self.beta_t().mT

    def log_likelihood(self, theta: Tensor, batch: Batch) -> Tensor:
        return mixture_log_likelihood(theta, self.beta_t(), batch.counts)

    def word_probabilities(self, theta: Tensor) -> Tensor:
        return theta @ self.topic_word()

    def prior_theta(self) -> Tensor:
        alpha = self.counting.alpha
        return alpha / alpha.sum() if self.counting.started else super().prior_theta()

    @property
    def bounds_tokens(self) -> bool:
        return bool(self.counting.started) or super().bounds_tokens

    def bound(self, batch: Batch, generator: torch.Generator) -> Tensor:
        if not self.counting.started:
            return super().bound(batch, generator)
        # The posterior that predicts words best is not the one with the highest bound, above all in titles.
        mean_field = CompiledMeanFieldNetwork.of(self.beta_t(), self.counting.alpha)
        return mean_field.bound(batch, generator)

    def may_end(self) -> bool:
        counting = self.counting
        sampling = counting.sampling
        is_averaged = sampling is None or sampling.mean_counts is not None  # the loss falls with each further pass
        return bool(counting.started) and not counting.has_spare and is_averaged

    @property
    def least_batch(self) -> int:
        if not self.counting.started or self.counting.is_stream:
            return 1
        if self.counting.current_sampling is None or self._begins_with_encoder:
            return _COUNTED_AT_ONCE
        limits = _SAMPLED_TOKENS / self.mean_length, _SAMPLED_COUNTS / len(self.counting.alpha), _SAMPLED_AT_ONCE
        return max(_COUNTED_AT_ONCE, int(min(limits)))

    def divergence_weight(self, planned: float) -> float:
        return 1.0 if self.counting.started else planned  # the loss of the later stages is a bound

    @property
    def changes_slowly(self) -> bool:
        counting = self.counting
        first, last = (counting.pruning.n_kept(counting.passes_done - ago, counting.n_passes) for ago in (1, 0))
        return counting.passes_done > 1 and first == last and not counting.is_stream  # no topic has been removed

    @property
    def shares_work(self) -> bool:
        return bool(self.counting.started)

    def players(self) -> list[Player]:
        return [replace(player, loss=self.training_loss) for player in super().players()]

    def loss(self, batch: Batch) -> Loss:
        if not self.counting.started:
            return super().loss(batch)
        posterior = self.posterior(batch)
        assert isinstance(posterior, DirichletPosterior)
        return self.counting.loss(posterior, batch)

    def training_loss(self, batch: Batch) -> Loss | None:
        """Return the loss whose gradient is taken, and count the batch in the counting stage.

        In the counting stage it is the divergence of the encoder's theta from that of the counts, and None at batches
        where the encoder is not trained. A batch whose counts are not finite has a loss too, so that training stops.
        """
        if not self.counting.started:
            return self.loss(batch)
        trains = self._trains_encoder
        code = self.code(batch) if trains or self.counting.needs_encoder else None
        with torch.no_grad():
            posterior = self.counting.count(batch, None if code is None else code.point(), self.generator)
            if not trains and (current().size > 1 or bool(posterior.alpha.sum().isfinite())):
                return None  # several processes only meet where the encoder is trained
            loss, theta = self.counting.loss(posterior, batch), posterior.point()
        encoded = torch.log_softmax(self.logits((code or self.code(batch)).mean), dim=1)
        divergence = (theta * (theta.log() - encoded)).sum(1)  # (B,) KL(theta || encoder's theta)
        return Loss(loss.reconstruction, loss.divergence, {"encoder_divergence": divergence})

    @property
    def _trains_encoder(self) -> bool:
        """Whether the encoder is trained at this batch of the counting or sampling stage."""
        n_done = self.counting.batches_done
        return n_done % _ENCODER_EVERY == 0 and (n_done > 0 or self._begins_with_encoder)

    @property
    def _begins_with_encoder(self) -> bool:
        """Whether the encoder is trained at the first batch of this pass."""
        counting = self.counting
        if counting.is_stream:
            return True
        if sampling := counting.current_sampling:
            return (sampling.n_passes - sampling.passes_done) % _SAMPLING_PASSES == 1
        return (counting.n_passes - counting.passes_done) % _COUNTING_PASSES == 1

    def extras(self, posterior: SampledPosterior, theta: Tensor, batch: Batch) -> dict[str, Tensor]:
        if self.training:
            self.steps += 1
            self.usage.lerp_(step().mean(theta.detach()), 0.02)
            if self.counting.is_stream:
                self.counting.tokens.index_add_(0, batch.counts.indices, batch.counts.values)
        return super().extras(posterior, theta, batch)

    def end_pass(self) -> None:
        if self.counting.started:
            n_batches = self.counting.batches_done
            self.counting.end_pass()
            if self._begins_with_encoder or n_batches > _ENCODER_EVERY:
                self.counting.topics()  # which the next pass reads, perhaps several times

    def adapt(self, row: Mapping[str, Any]) -> dict[str, Any]:
        if self.counting.started:
            return {"concentration": float(self.counting.alpha.sum())}
        changes = super().adapt(row)
        if self.counting.is_stream:
            is_pretrained = bool(self.steps >= _STREAM_STEPS)
        else:
            is_pretrained = row["epoch"] >= self.pretrain_epochs and self.count_epochs > 0
        if is_pretrained:
            shared = current().shared(self.generator)
            self.counting.start(self.decoder.beta_t().detach().clone(), self.usage, shared)
        return changes

    def end_training(self, documents: Iterable[Batch]) -> None:
        """Divide what all documents have of the background topics among all topics."""
        counting = self.counting
        if not counting.started or counting.is_stream or counting.has_spare or not counting.background.any():
            return
        if counting.divided_alpha is not None and counting.divided_alpha.equal(counting.alpha):
            return  # it was done already, and counts have not changed since
        assert isinstance(documents, BatchReader)
        BackgroundDivision(self, documents.sample_of_all(SAMPLED)).divide()
        counting.divided_alpha = counting.alpha.clone()

    def run_state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        return run_state(self.counting)

    def load_run_state(self, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
        load_run_state(self.counting, tensors, values)
