"""VariationalTopicModel: the base of the neural models whose loss is minus an evidence lower bound."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from ..settings import AtLeastOne, NotNegative
from ..training.state import Snapshot, TrainingPlan, TrainingState
from .neural import NeuralTopicModel

logger = logging.getLogger("topicloom")


@dataclass(eq=False, repr=False, kw_only=True)
class VariationalTopicModel(NeuralTopicModel):
    """The base of the neural models that draw theta from its posterior in training: variational autoencoders.

    The settings that all neural models share are described in `help(topicloom.NeuralTopicModel)`.

    Args:
        kl_weight: the weight of the divergence from the prior in the loss, as in a beta-VAE (Higgins et al. 2017). With
            a weight of 1, the loss is minus the evidence lower bound. With a higher weight, codes are less certain and
            more alike. With code_norm="fixed" it has less effect: the divergence of a Gaussian code hardly changes.
        kl_warmup: the number of epochs in which this weight rises from 0 (Bowman et al. 2016). Without a warm-up, the
            codes of short texts become uncertain before there are topics that they could tell apart. None is three
            quarters of the epochs in `fit`; in DirichletVAE with the estimators "implicit", "rsvi" and "icdf" a quarter
            of them, and in Loom a quarter of those before the sampling stage. In `partial_fit`, None is 0.
        n_samples: the number of draws of theta for each document, by which its loss is estimated.
    """

    kl_weight: NotNegative = 1.0
    kl_warmup: NotNegative | None = None
    n_samples: AtLeastOne = 1

    @property
    def divergence_weight(self) -> float:
        return self.kl_weight

    @property
    def warmup_share(self) -> float:
        """The share of the epochs in which the divergence's weight rises by default."""
        return 0.75  # benchmarks/shares_tried.md has what it changes

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
                    "`kl_weight` and `kl_warmup` have less effect with `code_norm='fixed'`, with which the divergence "
                    "from the prior changes less; try `code_norm='mean'`"
                )
        elif is_new_fit and plan.kl_weight > 0 and plan.kl_warmup > plan.epochs and plan.cycle_end is None:
            logger.warning(
                "the warm-up is longer than the training, so the weight of the divergence rises to %.3g and not to %g; "
                "try `kl_warmup=%g`",
                plan.kl_weight * plan.epochs / plan.kl_warmup, plan.kl_weight, self.warmup_share * plan.epochs,
            )  # fmt: skip
        return super()._start(snapshot, for_fit=for_fit)
