"""NeuralTopicModel: the base of the models whose network is trained by gradient descent."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from ..corpus import Corpus
from ..distributed import Ranks, current, joined
from ..errors import InputError, SettingError, TrainingDivergedError, TrainingInterrupted
from ..nn.decoders import Criterion, FreeTopics, MLPDecoder, TopicLogits
from ..nn.encoders import BagEncoder, EncoderInput, EncoderReads, Target
from ..nn.execution import with_gradients
from ..nn.layers import Activation, CodeNormKind
from ..nn.network import AutoencoderNetwork, SeparationTerm, TopicNetwork
from ..nn.posteriors import TopicShares
from ..settings import AtLeastOne, LayerSizes, NotNegative, Positive, Rate, Share
from ..training.batches import BatchReader, choose_device
from ..training.callbacks import Callback, ProgressBar
from ..training.loop import Monitor, end_training, train_stages
from ..training.monitors import CollapseSign, NotFinite, Sign, TooLittleMemory
from ..training.state import Schedule, Snapshot, Stage, TrainingPlan, TrainingState
from .base import TopicModel, UsedIf
from .starting import STAGE, SpareTopics, spare_at_start, start_at_clusters
from .words import Words, with_fields

# Settings that are the same in all papers. `published` of a class starts from them; docs/published.md has the sources.
PLAIN: dict[str, Any] = {
    "start": "random",
    "code_norm": "none",
    "learn_shares": False,
    "spare_topics": 0.0,
    "min_diversity": 0.0,
    "background": False,
    "encoder_input": "raw",
    "encoder_reads": "counts",
    "neighbour_tokens": 0,
    "input_dropout": 0.0,
    "dropout": 0.0,
    "topic_gain": 1.0,
    "topic_scale": None,
    "schedule": "constant",
}
PLAIN_VARIATIONAL: dict[str, Any] = PLAIN | {"kl_weight": 1.0, "kl_warmup": 0.0}

logger = logging.getLogger("topicloom")

# A few hundred documents need small batches. Otherwise 60 epochs have too few steps, and topics stay alike.
_SMALLEST_BATCH, LARGEST_BATCH = 32, 256
_MANY_DOCUMENTS = 100  # corpora of this size are checked for a single long document
_LONG_DOCUMENT = 0.1  # its share of all tokens; such a document raised the perplexity of others by 3 to 13 %
_STREAM_ROWS = 1000  # rows of history_ that are kept in a stream


@dataclass(eq=False, repr=False, kw_only=True)
class NeuralTopicModel(TopicModel):
    """The base of the models that are trained by gradient descent: autoencoders of word counts.

    To write a model of your own, derive a dataclass with its settings and define `build_network`, which returns a
    `topicloom.nn.network.TopicNetwork`; docs/your-own-model.md shows a whole model. `build_encoder(words, generator)`
    and similar methods return the parts of a network that the settings describe. These methods may be overridden:

    - `build_training_network`: the network that `fit` trains, if it is not that of `build_network`.
    - `build_reader`: the documents in batches.
    - `training_stages`: the stages of training, such as a pretraining.
    - `training_plan`: the numbers of epochs and the rates of the last stage.
    - `divergence_weight`: the weight of the divergence from the prior.
    - `prepare_training` and `finish_training`: what happens before the first step and after the last one.

    Main args:
        epochs: the number of passes over the documents.
        batch_size: the number of documents in a step. None is 256, or fewer on a small corpus, so that an epoch has
            about 30 steps.
        learning_rate: the highest learning rate of the optimizer Adam.

    Text args:
        encoder_input: the form in which the encoder receives the counts x of a document: "raw" is x, "l1" is x divided
            by its sum, "log1p" is log(1 + x), and "tfidf" weighs words by their inverse document frequency.
        input_dropout: the share of a document's words that are hidden from the encoder in each step of training.
        background: whether topics are deviations from the word frequencies of the corpus, as in SAGE and SCHOLAR, so
            that frequent words need not be learned by every topic. "learned" learns a background, which starts at 0.
        criterion: the likelihood in the loss. "cross_entropy" is the likelihood of the counts. "bernoulli" is the
            likelihood of the presence or absence of each word: n tokens contain word v with the probability
            1 - (1 - p(v | theta))^n. "bce_softmax" and "bce_sigmoid" are those of zll17's Neural_Topic_Models, the
            binary cross-entropy of the counts and p(v | theta), or the sigmoid of each word's logit. They are
            likelihoods only if no word occurs twice in a document. All but the first take memory in proportion to the
            vocabulary for each batch.
        target: what the loss reconstructs: "counts", or "tfidf", the counts weighted by inverse document frequency.
            The weighted counts are scaled to the number of tokens of their document, so that the balance of
            reconstruction and divergence does not change. Bounds and perplexities always use the counts.

    Vectors args:
        encoder_reads: what the encoder reads: "counts", "vectors" or "both". "auto" is "both" if the training documents
            have vectors, and else "counts". With "both", a document without a vector is inferred from its words.

    Shape args:
        hidden_size: the width of the two hidden layers of the encoder.
        hidden_sizes: the widths of the hidden layers of the encoder, such as [1024, 512]. None is two layers of
            `hidden_size`.
        activation: the function of these layers.
        dropout: the dropout rate of the encoder's last hidden layer.

    Prior args:
        learn_shares: whether the average shares of the topics are learned. Otherwise they are equal in the prior.
        shares_prior: the weight s of a prior that favours equal shares u over the learned shares p. It adds
            s max(0, 1 - 20 / L) KL(u || p) to the loss of each document, where L is the mean number of tokens.

    Training args:
        start: the start of training. "clusters" first clusters the documents by k-means. Topics start at the words of
            the clusters, and in one further pass the encoder learns the clusters of the documents. "random" starts
            from random topics. Streams (`partial_fit`) always start at random.
        topic_gain: the factor by which topics are learned faster than the encoder.
        topic_scale: the standard deviation of the initial logits of the topics. None is sqrt(2 / (V + K)), or
            sqrt(1 / 3) in models with word vectors.
        schedule: the learning rate during training. "one_cycle" rises in the first tenth of the epochs and then falls
            to almost zero; "constant" does not change; "anneal" is divided by 4 after an epoch whose loss on held-out
            documents exceeds the least of all but the last ten epochs before it (the code of Dieng et al. 2020).
        clip_norm: the largest Euclidean norm of the gradient of all weights. A larger gradient is scaled down to it.
            None does not change gradients.
        weight_decay: the L2 penalty on all weights.
        beta1: Adam's decay rate of the mean gradient. A high rate such as .99 makes a high learning rate more stable.
        patience: stop after this many epochs without a lower loss on held-out documents, and restore the best weights.
            Epochs in which topics are removed or the divergence's weight rises do not count. None trains for all epochs
            on all documents.
        validation_fraction: the share of the documents that are held out if `patience` is set, or with "anneal".

    Collapse args:
        code_norm: the batch normalisation of a document's code. "mean" normalises its location (the mean of a Gaussian,
            with a standard deviation from .75 to 1, or logits), so that every dimension stays in use, and lets its
            certainty change within bounds. "fixed" fixes both (BN-VAE, Zhu et al. 2020), so that the divergence
            changes little; for a code that is a point, it is the same as "mean". "affine" has a learned scale and
            shift, and "shift" only a learned shift. "none" has no normalisation, like the papers of most models; topics
            can then collapse.
        code_norm_eps: the number that this normalisation adds to the variance. The 0.00001 of PyTorch, or the 0.001 of
            TensorFlow, lets an encoder with very small outputs escape it.
        spare_topics: the number of additional topics at the start, as a multiple of n_topics; at least 12 and at most
            50, or 0 for none. During training, topics that resemble others are removed, and their shares go to those.
            Rare topics are then found, and large topics are not divided.
        min_diversity: the topic diversity that training should reach. Topic diversity is the share of different words
            among the 25 top words of all topics. As long as it is lower, a term of the loss that moves topics apart
            gains weight. Where documents have a share s of their tokens from their neighbours, the target d rises to
            d + s (1 - d) / 2. 0 turns the term off.

    Examples:
        >>> import topicloom as tl
        >>> model = tl.WLDA(n_topics=10, epochs=30)  # a neural model
        >>> model.get_params()["batch_size"] is None
        True
    """

    used_if: ClassVar[UsedIf] = {
        "shares_prior": ("without `learn_shares`", lambda model: model.learn_shares),
        "hidden_size": ("with `hidden_sizes`", lambda model: model.hidden_sizes is None),
        "encoder_input": ("with `encoder_reads='vectors'`", lambda model: model.encoder_reads != "vectors"),
        "input_dropout": ("with `encoder_reads='vectors'`", lambda model: model.encoder_reads != "vectors"),
        "validation_fraction": (
            "without `patience` and without `schedule='anneal'`",
            lambda model: model.patience is not None or model.schedule == "anneal",
        ),
        "code_norm_eps": ("with `code_norm='none'`", lambda model: model.code_norm != "none"),
        "infer_with_neighbours": (
            "in a model whose encoder reads a document's own words",
            lambda model: model.expands_new_documents == "as set",
        ),
    }
    # The encoder reads own words, and would not see those of neighbours.
    expands_new_documents: ClassVar[Literal["always", "never", "as set"]] = "never"
    uses_validation: ClassVar[bool] = True
    uses_ranks: ClassVar[bool] = True
    steps_per_epoch: ClassVar[int] = 30  # on a small corpus, if `batch_size` is None

    hidden_size: AtLeastOne = 128
    hidden_sizes: LayerSizes | None = None
    activation: Activation = "softplus"
    encoder_input: EncoderInput = "log1p"
    encoder_reads: EncoderReads | Literal["auto"] = "auto"
    input_dropout: Rate = 0.5
    dropout: Rate = 0.2
    background: bool | Literal["learned"] = True
    criterion: Criterion = "cross_entropy"
    target: Target = "counts"
    code_norm: CodeNormKind = "mean"
    code_norm_eps: Positive = 1e-8
    start: Literal["clusters", "random"] = "clusters"
    learn_shares: bool = True
    shares_prior: NotNegative = 0.0
    spare_topics: NotNegative = 1.0
    min_diversity: Rate = 0.77
    topic_gain: Positive = 10.0
    topic_scale: Positive | None = 0.5
    epochs: AtLeastOne = 60
    batch_size: AtLeastOne | None = None
    learning_rate: Positive = 1e-2
    schedule: Schedule = "one_cycle"
    clip_norm: Positive | None = None
    weight_decay: NotNegative = 0.0
    beta1: Rate = 0.9
    patience: AtLeastOne | None = None
    validation_fraction: Share = 0.1

    # Parts of the network

    def build_training_network(self, words: Words, generator: torch.Generator) -> TopicNetwork:
        """Return the network that `fit` trains. By default, it is that of `build_network` with spare topics."""
        return self._build_wide(words, generator, self.n_topics + self._n_spare(len(words)))

    def _n_spare(self, n_words: int) -> int:
        return spare_at_start(self.n_topics, self.spare_topics, self.n_documents_, n_words)

    def _build_wide(self, words: Words, generator: torch.Generator, n_topics: int) -> TopicNetwork:
        """Return a new network with another number of topics; seed words keep their topics."""
        seeds = None if words.seeds is None else pad(words.seeds, (0, n_topics - self.n_topics))  # (V, K')
        return self.resized(n_topics).build_network(replace(words, seeds=seeds), generator)

    def resized(self, n_topics: int) -> Self:
        """Return a model with the same settings and another number of topics. Its networks have spare topics."""
        other = copy(self)
        other.n_topics = n_topics
        return other

    @property
    def gain(self) -> float:
        """The factor by which topics are learned faster than the encoder."""
        return self.topic_gain

    @property
    def last_hidden_size(self) -> int:
        """The width H of the encoder's last hidden layer, which heads read."""
        return self.hidden_size if self.hidden_sizes is None else self.hidden_sizes[-1]

    def build_encoder(self, words: Words, generator: torch.Generator) -> BagEncoder:
        """Return the encoder that the settings describe: a module from a batch to (B, last_hidden_size)."""
        reads = self.encoder_reads
        if reads == "auto":
            reads = "both" if "vectors" in words.fields else "counts"
        return BagEncoder(
            words.idf,
            self.hidden_sizes or self.hidden_size,
            generator,
            input=self.encoder_input,
            input_dropout=self.input_dropout,
            output_dropout=self.dropout,
            activation=self.activation,
            reads=reads,
            vector_size=words.field_size("vectors") if reads != "counts" else 0,
            vector_tokens=self.neighbour_tokens,
        )

    def build_separation_term(self, words: Words) -> SeparationTerm:
        """Return the term of the loss that moves topics apart, with the target `min_diversity`.

        Documents that share words of their neighbours make topics alike. The target then rises, at most half the way to
        1, with the share of such words.
        """
        lent = words.n_lent / max(words.n_tokens, 1.0)
        target = self.min_diversity + (1 - self.min_diversity) / 2 * lent if self.min_diversity else 0.0
        return SeparationTerm(target, self.n_topics, len(words))

    def build_shares(self, words: Words) -> TopicShares:
        """Return the average shares of the topics, according to `learn_shares` and `shares_prior`."""
        learned, prior = self.learn_shares, self.shares_prior
        return TopicShares(self.n_topics, learned=learned, prior=prior, mean_length=words.mean_length)

    def build_topics(self, words: Words, generator: torch.Generator) -> TopicLogits:
        """Return topics in which every word has a weight of its own, according to the settings."""
        background, gain, scale = self.background_logits(words), self.gain, self.topic_scale
        return FreeTopics(background, self.n_topics, generator, seeds=words.seeds, gain=gain, scale=scale)

    def background_logits(self, words: Words) -> Tensor:
        """Return the logarithms of the word frequencies, (V,); zeros without a `background`; or a new parameter."""
        if self.background == "learned":
            return nn.Parameter(torch.zeros_like(words.log_frequency))
        return words.log_frequency if self.background else torch.zeros_like(words.log_frequency)

    # Training

    @property
    def divergence_weight(self) -> float:
        """The weight of the divergence from the prior in the loss. Models with a setting for it return the setting."""
        return 1.0

    def training_plan(self) -> TrainingPlan:
        """Return the plan of the last stage of training, which the settings describe."""
        return TrainingPlan(
            epochs=self.n_history_rows, learning_rate=self.learning_rate, schedule=self.schedule,
            weight_decay=self.weight_decay, beta1=self.beta1, kl_weight=self.divergence_weight, patience=self.patience,
            clip_norm=self.clip_norm,
        )  # fmt: skip

    def stream_plan(self, epochs: int) -> TrainingPlan:
        """Return the plan of `partial_fit`, given the number of epochs at its end."""
        return replace(self.training_plan(), epochs=epochs, schedule="constant")

    def training_stages(self) -> list[Stage]:
        """Return the stages of training. The last one is recorded in `history_` and has the plan of the settings."""
        return [*self.start_stages(), Stage("training", self.training_plan(), ends_training=True)]

    def start_stages(self) -> list[Stage]:
        """Return the stage in which the encoder learns clusters of documents in one pass, or nothing."""
        if self.start == "random":
            return []
        plan = replace(self.training_plan(), epochs=1, kl_warmup=0.0, patience=None, cycle_end=None)
        return [Stage(STAGE, plan, recorded=False)]

    def build_spare_topics(self, reader: BatchReader) -> SpareTopics | None:
        """Return an object that removes the spare topics in the last stage, or None if there are none."""
        words = self.word_statistics()
        n_spare = self._n_spare(len(words))
        if not n_spare:
            return None

        def build(n_topics: int) -> TopicNetwork:
            network = self._build_wide(words, torch.Generator().manual_seed(0), n_topics)
            self.set_loss(network)
            return network

        return SpareTopics(
            self.n_topics, n_spare, build,
            seeds=words.seeds, word_counts=self.word_counts_, reader=reader, stages=self.training_stages(),
        )  # fmt: skip

    def build_reader(self, corpus: Corpus, state: TrainingState) -> BatchReader:
        """Return a reader of the documents that have words, in batches of a suitable size."""
        reader = BatchReader.of(corpus, LARGEST_BATCH, state.device, state.network.fields).without_empty()
        n_docs = sum(current().every(reader.n_docs))
        suitable = min(LARGEST_BATCH, max(_SMALLEST_BATCH, n_docs // self.steps_per_epoch))
        reader.batch_size, reader.seed = self.batch_size or suitable, state.seed
        return reader.shared()

    def prepare_training(self, network: TopicNetwork, reader: BatchReader) -> None:
        """Prepare a network that `fit` is about to train on the documents of `reader`. By default, do nothing."""

    def finish_training(self, state: TrainingState) -> None:
        """Keep the history and the network of a finished, interrupted or failed training."""
        self.state_ = state
        self.history_ = state.history
        self.adopt_network(state.network)

    @with_gradients()
    def fit_corpus(
        self,
        corpus: Corpus,
        callbacks: Sequence[Callback] = (),
        monitors: Sequence[Monitor] = (),
        snapshot: Snapshot | None = None,
        validation: Corpus | None = None,
    ) -> None:
        state, stages = self._start(snapshot, for_fit=True), self.training_stages()
        if snapshot is not None and (more := snapshot.continued) is not None:
            plan = replace(stages[-1].plan, epochs=more.end, first_epoch=more.after, cycle_end=None)
            stages[-1] = replace(stages[-1], plan=plan)
        reader, held_out = self._training_readers(corpus, validation, state)
        state.fields = reader.digests()
        if validation is not None and held_out is not None:
            state.fields |= {f"{name} (validation)": digest for name, digest in held_out.digests().items()}
        watch = self.collapse_watch(reader)
        spare = self.build_spare_topics(reader)
        if spare is not None:
            spare.begin(state, None if snapshot is None else snapshot.values["n_topics"])
            stages[-1] = replace(stages[-1], after_epoch=spare.after_epoch)
        self.prepare_training(state.network, reader)
        if snapshot is None or snapshot.values["stage"] == 0:  # later stages need no clusters
            stages = start_at_clusters(state, reader, stages, self.word_statistics())
        if snapshot is not None:
            state.restore(snapshot, stages[snapshot.values["stage"]].plan)
        shown = [ProgressBar()] if self.verbose and current().is_first else []
        is_alone = False  # whether only this rank ends here, and the others expect no message from it
        try:
            train_stages(
                state,
                reader,
                stages,
                validation=held_out,
                monitors=[watch, *monitors],
                callbacks=[*shown, *callbacks],
                model=self,
                remedies=self.remedies,
            )
        except BaseException as error:
            is_alone = not isinstance(error, TrainingDivergedError | TrainingInterrupted)  # all ranks raise these
            raise
        finally:
            if state.stage == len(stages) - 1 and state.epoch:
                with joined(Ranks()) if is_alone else nullcontext():
                    if spare is not None:
                        spare.finish(state)
                    if current().size == 1:
                        end_training(state, reader)
                    self.finish_training(state)
        self.warn_of_collapse(watch)

    def _training_readers(
        self, corpus: Corpus, validation: Corpus | None, state: TrainingState
    ) -> tuple[BatchReader, BatchReader | None]:
        """Return readers of the training documents, and of the validation documents where training needs them.

        Args:
            corpus: the documents of `fit`.
            validation: the validation documents. With None and a `patience`, some documents of `fit` are held out.
            state: the state of the run, which draws them.

        Raises:
            InputError: there is only one document, so none can be held out.
        """
        reader = self.build_reader(corpus, state)
        _warn_of_a_long_document(corpus)
        if validation is not None:
            network = state.network
            readable = self.read_by(network, validation)
            held_out = BatchReader.of(readable, reader.batch_size, state.device, network.fields)
            return reader, held_out.without_empty()
        if self.patience is None and self.schedule != "anneal":
            return reader, None
        if reader.n_docs < 2:
            needs = "`schedule='anneal'`" if self.patience is None else "`patience`"
            raise InputError(f"{needs} needs at least two documents that are not empty")
        others, held_out = reader.split(self.validation_fraction, state.shuffle)
        state.keep_first_shuffle()
        return others.shared(), held_out

    @with_gradients()
    def partial_fit_corpus(self, corpus: Corpus) -> None:
        """Train for one epoch at a constant learning rate, because the length of a stream is not known."""
        state: TrainingState | None = getattr(self, "state_", None)
        stages = self.training_stages()
        if state is None and hasattr(self, "network_"):  # a loaded model has weights, but no optimizer
            state = TrainingState.start(
                self.network_, self.training_plan(), self.draw_seed(), choose_device(self.device)
            )
            state.history = list(self.history_)
            state.epoch = self.history_[-1]["epoch"] if self.history_ else 0
            state.stage = len(stages) - 1
        elif state is None:
            state = self._start(for_fit=False)
        self.set_loss(state.network)
        reader = self.build_reader(corpus, state)
        epochs = state.epoch + 1 if state.stage == len(stages) - 1 else 1
        stages[-1] = replace(stages[-1], plan=self.stream_plan(epochs), ends_training=False)
        try:
            train_stages(state, reader, stages, monitors=[self.collapse_watch(reader)], remedies=self.remedies)
        finally:
            if state.stage == len(stages) - 1 and state.epoch:
                state.history = state.history[-_STREAM_ROWS:]  # a stream may be endless
                self.finish_training(state)

    def _start(self, snapshot: Snapshot | None = None, *, for_fit: bool) -> TrainingState:
        """Return the state of a new network before its first step.

        Args:
            snapshot: the state from which training will continue; its seed draws the same held-out documents.
            for_fit: whether `fit` trains the network. Otherwise it is trained on a stream.
        """
        seed = current().value_of_first(self.draw_seed()) if snapshot is None else int(snapshot.values["seed"])
        device = choose_device(self.device)
        logger.info("training on %s", device)
        build = self.build_training_network if for_fit else self.build_network
        words, stages = self.word_statistics(), self.training_stages()
        stage = 0 if for_fit else len(self.start_stages())  # a stream starts at random
        network = build(words, torch.Generator().manual_seed(seed))
        self.set_loss(network)
        with_fields(network, words)
        state = TrainingState.start(network, stages[stage].plan, seed, device)
        state.stage = stage
        if current().size > 1:
            for tensor in network.state_dict().values():
                tensor.copy_(current().of_first(tensor))
        return state

    def remedies(self, sign: Sign) -> str:
        if isinstance(sign, NotFinite):
            default: Any = next(field.default for field in fields(self) if field.name == "learning_rate")
            rate = default if self.learning_rate > default else float(f"{self.learning_rate / 3:.1g}")
            smaller_rate = f"try `learning_rate={rate:g}`"
            if not sign.at_first_step:
                return smaller_rate
            if self.encoder_input == "raw":
                return "the encoder receives the counts as they are; try `encoder_input='log1p'`"
            return f"check the counts and the settings, or {smaller_rate}"
        if isinstance(sign, TooLittleMemory):
            smaller = sign.smaller_batch
            return f"try `batch_size={smaller}`" if smaller else "keep fewer words (`max_features`)"
        return super().remedies(sign)

    def helpful_settings(self, sign: CollapseSign) -> dict[str, Any]:
        helpful = super().helpful_settings(sign)
        if "epochs" in helpful and self.patience is not None and sign.epoch < self.n_history_rows:
            del helpful["epochs"]  # `patience` ended training before the last epoch
            helpful["patience"] = 2 * self.patience
        if sign.kind == "frequent words":
            return {"background": True} | helpful
        are_alike = sign.kind in ("duplicate topics", "similar topics")
        if are_alike and type(self).min_diversity > 0:  # other models are better without the term
            return {"min_diversity": round((1 + self.min_diversity) / 2, 2)} | helpful
        return helpful

    def set_loss(self, network: TopicNetwork) -> None:
        """Set what the loss depends on besides weights. This is called at the start and before each part of a stream.

        Raises:
            SettingError: the loss of this model can reconstruct counts only.
        """
        if self.target == "counts":
            return
        if not isinstance(network, AutoencoderNetwork):
            raise SettingError(f"{type(self).__name__} cannot reconstruct `target={self.target!r}`; use 'counts'")
        network.target = self.target

    def check_combinations(self) -> None:
        super().check_combinations()
        if self.target == "tfidf" and self.criterion == "bernoulli":
            raise SettingError("`criterion='bernoulli'` does not use weights of words, so `target` should be 'counts'")


def mlp_decoder(
    settings: NeuralTopicModel,
    words: Words,
    n_hidden: int | Sequence[int],
    activation: Activation,
    generator: torch.Generator,
) -> MLPDecoder:
    """Return the decoder that a model calls `decoder="mlp"`, with hidden layers of these widths."""
    if settings.seed_words:
        raise SettingError('`decoder="mlp"` has no topic-word matrix to seed; leave `seed_words` out')
    return MLPDecoder(
        settings.background_logits(words), settings.n_topics, n_hidden, generator,
        activation=activation, gain=settings.gain, scale=settings.topic_scale,
    )  # fmt: skip


def _warn_of_a_long_document(corpus: Corpus) -> None:
    """Warn if one of many documents has a large share of all tokens."""
    if corpus.n_docs < _MANY_DOCUMENTS or current().size > 1:  # a rank has only a part of the documents
        return
    lengths = np.asarray(corpus.counts.sum(axis=1)).ravel()  # (D,)
    longest = int(lengths.argmax())
    if (share := lengths[longest] / lengths.sum()) >= _LONG_DOCUMENT:
        logger.warning(
            "document %d has %.0f %% of all tokens, so the topics follow it more than other documents; divide it into "
            "parts, such as its chapters",
            longest, 100 * share,
        )  # fmt: skip
