"""NeuralTopicModel: an estimator whose network is trained by the loop."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..corpus import Corpus
from ..errors import InputError
from ..nn.decoders import Criterion
from ..nn.encoders import BagEncoder, EncoderInput
from ..nn.network import TopicNetwork
from ..nn.separation import SeparationTerm
from ..settings import (
    AtLeastOne,
    NotNegative,
    Positive,
    Rate,
    Share,
)
from ..training.batches import BatchReader, choose_device
from ..training.callbacks import Callback, ProgressBar
from ..training.loop import Monitor, train_stages
from ..training.state import Schedule, Snapshot, Stage, TrainingPlan, TrainingState
from .base import TopicModel
from .words import Words

logger = logging.getLogger("topicloom")

# A few hundred documents need small batches, or sixty epochs are too few steps for topics to part.
_SMALLEST_BATCH, _LARGEST_BATCH, _STEPS_AN_EPOCH = 32, 256, 30


@dataclass(eq=False, repr=False, kw_only=True)
class NeuralTopicModel(TopicModel):
    """The base of the models that are trained by gradient descent: autoencoders of word counts.

    Args:
        hidden_size: width of both hidden layers of the encoder.
        encoder_input: what the encoder sees of the counts: "raw", "l1", "log1p" or "tfidf".
        input_dropout: share of a document's words hidden from the encoder at each step (denoising).
        dropout: dropout rate on the encoder's hidden vector.
        background: whether topics are deviations from the corpus's word frequencies (after SAGE and SCHOLAR).
        criterion: "cross_entropy" of the counts, or "bernoulli", each word there or not (dense, one batch at a time).
        min_diversity: the topic diversity that training holds topics to: of the 25 best words of all topics, the share
            that are different. Missed, it raises the weight of a term that moves topics apart, their Jensen-Shannon
            divergence; 0 leaves it to the likelihood.
        epochs: passes over the documents.
        batch_size: documents a step; None is 256, and less on a small corpus, so that an epoch has some 30 steps.
        learning_rate: the highest rate of Adam.
        schedule: "one_cycle" rises in the first tenth and falls to nothing; "constant" stays.
        weight_decay: L2 penalty on all weights.
        beta1: Adam's decay rate of the mean gradient; .99 lets a high learning rate be steady.
        kl_weight: weight of the divergence in the loss (beta-VAE).
        kl_warmup: epochs in which that weight rises linearly from 0.
        patience: stop after so many epochs without a lower loss on held-out documents, and take the best weights
            back. None trains all epochs on all documents.
        validation_fraction: the share of documents held out when there is a patience.
    """

    hidden_size: AtLeastOne = 128
    encoder_input: EncoderInput = "log1p"
    input_dropout: Rate = 0.5
    dropout: Rate = 0.2
    background: bool = True
    criterion: Criterion = "cross_entropy"
    min_diversity: Rate = 0.77
    epochs: AtLeastOne = 60
    batch_size: AtLeastOne | None = None
    learning_rate: Positive = 1e-2
    schedule: Schedule = "one_cycle"
    weight_decay: NotNegative = 0.0
    beta1: Rate = 0.9
    kl_weight: NotNegative = 1.0
    kl_warmup: NotNegative = 0.0
    patience: AtLeastOne | None = None
    validation_fraction: Share = 0.1

    def fit_corpus(
        self,
        corpus: Corpus,
        callbacks: Sequence[Callback] = (),
        monitors: Sequence[Monitor] = (),
        snapshot: Snapshot | None = None,
    ) -> None:
        state, stages = self._start(fit=True), self.training_stages()
        reader = self.build_reader(corpus, state)
        validation = None
        if self.patience is not None:
            if reader.n_docs < 2:
                raise InputError("patience needs at least two documents that are not empty")
            reader, validation = reader.split(self.validation_fraction, state.shuffle)
            state.keep_first_shuffle()
        watch = self.collapse_watch(reader)
        self.prepare_training(state.network, reader)
        if snapshot is not None:
            state.restore(snapshot, stages[snapshot.values["stage"]].plan)
        shown = [ProgressBar()] if self.verbose else []
        try:
            train_stages(
                state,
                reader,
                stages,
                validation=validation,
                monitors=[watch, *monitors],
                callbacks=[*shown, *callbacks],
                model=self,
            )
        finally:
            if state.stage == len(stages) - 1 and state.epoch:
                self.finish_training(state)
        self.warn_of_collapse(watch)

    def training_stages(self) -> list[Stage]:
        """The stages of training; the last is recorded, and its plan is the settings'."""
        return [Stage("training", self.training_plan())]

    def prepare_training(self, network: TopicNetwork, reader: BatchReader) -> None:
        """What a model does to a network that `fit` is about to train on the documents of `reader`; nothing here."""

    def partial_fit_corpus(self, corpus: Corpus) -> None:
        """One epoch at a constant rate, which suits a stream that has no known end."""
        state: TrainingState | None = getattr(self, "state_", None)
        stages = self.training_stages()
        if state is None and hasattr(self, "network_"):  # loaded from a file, with its weights and no optimizer
            state = TrainingState.start(
                self.network_, self.training_plan(), self.draw_seed(), choose_device(self.device)
            )
            state.history, state.epoch = list(self.history_), len(self.history_)
            state.stage = len(stages) - 1
        elif state is None:
            state = self._start(fit=False)
        reader = self.build_reader(corpus, state)
        epochs = state.epoch + 1 if state.stage == len(stages) - 1 else 1
        stages[-1] = replace(stages[-1], plan=replace(self.training_plan(), epochs=epochs, schedule="constant"))
        try:
            train_stages(state, reader, stages, monitors=[self.collapse_watch(reader)])
        finally:
            if state.stage == len(stages) - 1 and state.epoch:
                self.finish_training(state)

    def _start(self, *, fit: bool) -> TrainingState:
        """A new network, before its first step.

        Args:
            fit: whether it is for `fit`, which sees all documents again and again, and not for a stream.
        """
        seed = self.draw_seed()
        device = choose_device(self.device)
        logger.info("training on %s", device)
        make = self.build_training_network if fit else self.build_network
        network = make(self.word_statistics(), torch.Generator().manual_seed(seed))
        return TrainingState.start(network, self.training_stages()[0].plan, seed, device)

    def build_training_network(self, words: Words, generator: torch.Generator) -> TopicNetwork:
        """The network that `fit` trains; by default that of `build_network`, which streams and loaded models have."""
        return self.build_network(words, generator)

    def build_reader(self, corpus: Corpus, state: TrainingState) -> BatchReader:
        """Return a reader of the documents with words, in batches of the size asked for or of one that suits them."""
        reader = BatchReader.of(corpus, _LARGEST_BATCH, state.device, state.network.fields).without_empty()
        suited = min(_LARGEST_BATCH, max(_SMALLEST_BATCH, reader.n_docs // _STEPS_AN_EPOCH))
        reader.batch_size = self.batch_size or suited
        return reader

    def build_encoder(self, words: Words, generator: torch.Generator) -> BagEncoder:
        """The encoder that the settings describe."""
        return BagEncoder(
            words.idf,
            self.hidden_size,
            generator,
            input=self.encoder_input,
            input_dropout=self.input_dropout,
            output_dropout=self.dropout,
        )

    def build_separation_term(self, words: Words) -> SeparationTerm:
        """The separation term that the settings describe."""
        return SeparationTerm(self.min_diversity, self.n_topics, len(words))

    def background_logits(self, words: Words) -> Tensor:
        """(V,) log word frequencies, or zeros where topics are no deviations."""
        return words.log_frequency if self.background else torch.zeros_like(words.log_frequency)

    def finish_training(self, state: TrainingState) -> None:
        self.state_ = state
        self.history_ = state.history
        self.adopt_network(state.network)

    def training_plan(self) -> TrainingPlan:
        return TrainingPlan(
            epochs=self.epochs,
            learning_rate=self.learning_rate,
            schedule=self.schedule,
            weight_decay=self.weight_decay,
            beta1=self.beta1,
            kl_weight=self.kl_weight,
            kl_warmup=self.kl_warmup,
            patience=self.patience,
        )


@dataclass(eq=False, repr=False, kw_only=True)
class VariationalTopicModel(NeuralTopicModel):
    """The base of the neural models whose posterior is sampled: variational autoencoders.

    Args:
        n_samples: the number of samples of theta that are drawn for each document to estimate its loss.
    """

    n_samples: AtLeastOne = 1
