"""Loom: variational pretraining of a topic model, then collapsed counting and sampling. This project's own model.

Loom is latent Dirichlet allocation (Blei, Ng & Jordan 2003), trained in three stages of one run:

- Pretraining: an encoder and free topics start at clusters of documents, and maximise the evidence lower bound by
  gradient descent, as in GSM with a Laplace prior. The weight of the divergence rises in the first quarter of the
  epochs of this stage and the next one (kl_warmup). A few epochs find topics of words that occur together in documents,
  for which a Gibbs sampler with a random start needs hundreds of passes.
- Counting: tokens are reassigned to topics as in CVB0 (Asuncion et al. 2009), with counts that are kept for each
  document and drawn again in every pass. The topics have no gradients; the encoder learns to predict the counts.
- Sampling: the topic of each token is drawn as by a collapsed Gibbs sampler (Griffiths & Steyvers 2004), with the
  counts of words of the last pass (Newman et al. 2009). The topics are means over the later half of these passes.

Training starts with more topics than requested. Those whose words do not occur together, or which resemble other
topics, are removed early in the counting stage. docs/models/loom.md has the mathematics.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, fields, replace
from functools import partial
from numbers import Integral
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field
from sklearn.utils.validation import check_is_fitted

from ...errors import SettingError
from ...nn.network import TopicNetwork
from ...settings import (
    AtLeastOne,
    DirichletParameter,
    NotNegative,
    Positive,
    Rate,
    Share,
)
from ...training.batches import BatchReader
from ...training.state import Snapshot, TrainingPlan, TrainingState
from ..fitted import theta_of
from ..gsm import GSM
from ..inference import Array
from ..neural import LARGEST_BATCH
from ..pruning import CoherenceSelector, select_topics
from ..spare_topics import MAX_SPARE
from ..variational import VariationalTopicModel
from ..words import Words
from .compiled_sampling import sample
from .network import LoomNetwork
from .relocation import Relocation
from .sampling import SamplingStage, token_starts

logger = logging.getLogger("topicloom")

# A step of pretraining learns less from short documents, so that it is larger: up to so many times as large. Corpora of
# more tokens than a small one need fewer passes of sampling, as their counts have less noise.
_LONG_DOCUMENT, _LARGEST_STEP = 125, 2.5
_SMALL_CORPUS, _MIN_SAMPLING = 100_000, 1 / 3


@dataclass(eq=False, repr=False, kw_only=True)
class Loom(VariationalTopicModel):
    """This project's own topic model: an autoencoder, then a counting algorithm, then a Gibbs sampler.

    It is trained in these three stages, of which the first two are short. An encoder, which is trained along with them,
    infers the topics of new documents. docs/models/loom.md describes the model.

    The settings that the variational models share are described in `help(topicloom.VariationalTopicModel)`.

    Args:
        batch_size: the number of documents in a step. None is 256, or fewer on a small corpus, so that an epoch has 16
            steps.
        learning_rate: the highest learning rate of the optimizer Adam for batches of up to 256 documents. For larger
            batches it grows with the square root of their size. For documents of less than 125 tokens on average it is
            higher, up to 2.5 times at 20 tokens.
        kl_weight: the weight of the divergence from the prior in pretraining. With a weight of 1, topics of short texts
            form late, because codes carry more nats than such texts have.
        epochs: the most passes over the documents in all three stages, by default 4 of pretraining, 28 of counting and
            254 of sampling. Training is shorter for most corpora, as `sample_share` says.
        pretrain_share: the share of the epochs in which the encoder and the topics are learned by gradient descent.
        sample_share: the share of the epochs, at the end, in which the topic of each token is drawn; 0 for none.
            Corpora of more than 100,000 tokens need fewer of these epochs, down to a third of them at 900,000 tokens.
            The epochs that are neither pretraining nor sampling count.
        spare_topics: the number of additional topics at the start, as a multiple of n_topics; at most 50. They are
            removed in the counting stage.
        background_topics: the share of the topics that start as topics of common words; 0 for none, as in LDA.
        count_power: a word that occurs x times in a document counts x ** count_power times after pretraining; 1 as in
            LDA. A lower value accounts for burstiness: a word that has occurred in a document is likely to recur.
        sharpness: p(topic | word) of top words is raised to this power in the topics; 1 as in LDA.
        alpha: the symmetric Dirichlet parameter of theta in pretraining; the later stages learn their own.
        eta: the symmetric Dirichlet parameter of the topics in the counting stage; the sampling stage learns it,
            starting from this value.
        refine: the number of steps that improve the encoder's theta of a new document; 0 for none.
        target: "counts" alone, as the stages after pretraining assign tokens to topics.
    """

    steps_per_epoch: ClassVar[int] = 16

    target: Literal["counts"] = "counts"
    kl_weight: NotNegative = 0.1
    epochs: AtLeastOne = 286
    pretrain_share: Share = 0.014
    sample_share: Rate = 0.888
    spare_topics: NotNegative = 2.0
    background_topics: Rate = 0.05
    count_power: Annotated[float, Field(gt=0, le=1)] = 0.6
    sharpness: Positive = 1.25
    alpha: DirichletParameter = 0.3
    eta: Annotated[float, Field(ge=1e-6, le=1e30)] = 0.01
    refine: Annotated[int, Field(ge=0)] = 10

    def transform(self, X: Any, refine: int | None = None) -> Array:
        """Return the topics of documents.

        Args:
            X: as for `fit`.
            refine: the number of refinement steps instead of the setting's; 0 returns the encoder's theta at once.

        Returns:
            (n_docs, K) float32, as for every model.

        Raises:
            SettingError: `refine` is not a whole number from 0.
        """
        check_is_fitted(self, "components_")
        if refine is None:
            return super().transform(X)
        if isinstance(refine, bool) or not isinstance(refine, Integral) or refine < 0:
            raise SettingError(f"refine should be a whole number from 0; it is {refine!r}")
        assert isinstance(self.network_, LoomNetwork)
        return theta_of(self.infer_with(X, partial(self.network_.refined_posterior, steps=int(refine))))

    def _gsm(self, n_topics: int) -> GSM:
        """Return the model of the pretraining stage."""
        shared = {field.name: getattr(self, field.name) for field in fields(VariationalTopicModel)}
        return GSM(**shared | {"alpha": self.alpha, "n_topics": n_topics, "spare_topics": 0})

    def stage_epochs(self, words: Words) -> tuple[int, int, int]:
        """Return the epochs of pretraining, of counting and of sampling."""
        pretraining = max(1, min(round(self.pretrain_share * self.epochs), self.epochs - 1))
        sampling = max(0, min(round(self.sample_share * self.epochs), self.epochs - pretraining - 1))
        of_size = max(_MIN_SAMPLING, (_SMALL_CORPUS / max(words.n_tokens, _SMALL_CORPUS)) ** 0.5)
        counting = self.epochs - pretraining - sampling
        return pretraining, counting, math.ceil(of_size * sampling)

    def _start(self, snapshot: Snapshot | None = None, *, for_fit: bool) -> TrainingState:
        """Say that there will be fewer epochs than were asked for, unless a finished training goes on."""
        planned = self.n_history_rows
        if for_fit and planned < self.epochs and (snapshot is None or snapshot.continued is None):
            logger.info(
                "Loom trains for %d of at most %d epochs, because the corpus has more than %s tokens",
                planned, self.epochs, f"{_SMALL_CORPUS:,}",
            )  # fmt: skip
        return super()._start(snapshot, for_fit=for_fit)

    def training_plan(self) -> TrainingPlan:
        of_length = math.sqrt(_LONG_DOCUMENT / max(self.word_statistics().mean_length, 1.0))
        factor = self._step_of_batch() * min(max(of_length, 1.0), _LARGEST_STEP)
        return replace(super().training_plan(), rate_factor=factor)

    def stream_plan(self, epochs: int) -> TrainingPlan:
        return replace(super().stream_plan(epochs), rate_factor=self._step_of_batch())

    def _step_of_batch(self) -> float:
        """Return how many times as large a step is as one of a batch of 256 documents."""
        batch = min(self.batch_size or 0, self.word_statistics().n_docs)
        return math.sqrt(max(1.0, batch / LARGEST_BATCH))

    @property
    def n_history_rows(self) -> int:
        return sum(self.stage_epochs(self.word_statistics()))

    @property
    def warmup_share(self) -> float:
        return 0.25

    @property
    def cycle_end(self) -> int:
        return sum(self.stage_epochs(self.word_statistics())[:2])

    def build_network(self, words: Words, generator: torch.Generator) -> LoomNetwork:
        return LoomNetwork(self, words, 0, generator)

    def build_training_network(self, words: Words, generator: torch.Generator) -> LoomNetwork:
        n_spare = min(round(self.spare_topics * self.n_topics), MAX_SPARE, len(words) - self.n_topics)
        return LoomNetwork(self, words, max(0, n_spare), generator)

    def build_spare_topics(self, reader: BatchReader) -> None:
        """Return None, as the counting stage removes the spare topics."""

    def prepare_training(self, network: TopicNetwork, reader: BatchReader) -> None:
        assert isinstance(network, LoomNetwork)
        tokens, selector = torch.from_numpy(self.word_counts_), CoherenceSelector(reader) if self.spare_topics else None
        sampling = None
        if network.sample_epochs:
            starts = token_starts(reader.counts).to(network.counting.alpha.device)
            sampling = SamplingStage(network.sample_epochs, starts, count_power=self.count_power, sample=sample)
        n_docs = reader.counts.shape[0]
        relocation = Relocation(reader) if sampling else None
        network.counting.keep_documents(n_docs, tokens, network.count_epochs, selector, sampling, relocation)

    def finish_training(self, state: TrainingState) -> None:
        network = state.network
        assert isinstance(network, LoomNetwork)
        network.counting.finish(network.usage)
        if (kept := network.counting.pruning.kept) is not None:  # replace the network by one of K topics
            start = TrainingState.start(
                self.build_network(self.word_statistics(), torch.Generator()), self.training_plan(), 0, state.device
            )
            start.network.load_state_dict(select_topics(network.state_dict(), start.network.state_dict(), kept))
            start.network.generator = network.generator
            state.network, state.optimizers = start.network.eval(), start.optimizers
        super().finish_training(state)
