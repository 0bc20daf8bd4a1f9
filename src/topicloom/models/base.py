"""TopicModel: the base of all models, whatever method trains them."""

from __future__ import annotations

import copy
import inspect
import logging
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import partial, wraps
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Concatenate, Literal, ParamSpec, Self, TypeVar
from weakref import WeakKeyDictionary, WeakSet

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from pydantic import Field
from safetensors import SafetensorError
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from .. import metrics
from ..corpus import Corpus
from ..corpus.checks import no_matrix
from ..corpus.corpus import CorpusReference
from ..corpus.frames import is_frame, named_columns
from ..corpus.inputs import corpus_of, corpus_over, refuse_vocabulary_as_y
from ..display import html_table
from ..distributed import current
from ..embeddings.expansion import DocumentExpansion, given, shares_words
from ..embeddings.word_vectors import train_word_vectors
from ..errors import InputError, OutOfMemoryError, SettingError, TrainingDivergedError
from ..files import as_path, atomic_directory, system_error
from ..messages import counted
from ..metrics.cooccurrence import Vocabulary
from ..nn.edited import EditedNetwork
from ..nn.execution import full_precision, usual_device, with_gradients
from ..nn.network import TopicNetwork
from ..ranking import NAME_CANDIDATES, as_written, complete_names, topic_word_ids
from ..settings import AtLeastOne, ReadableSettings, check_settings, from_text, settle_settings
from ..text import TextEncoder, tokenizer_from_settings
from ..text.tokenizing import fold_word_of
from ..topics.document_topics import DocumentTopics, empty_warning
from ..topics.edits import Edit
from ..topics.saved import (
    COMPONENTS,
    CONFIG,
    FORMAT_VERSION,
    MODEL_FILES,
    MODEL_FORMAT,
    SPELLINGS,
    WEIGHTS,
    read_spellings,
)
from ..training.batches import BatchReader, choose_device, own_part, sum_of_ranks, totals
from ..training.callbacks import Callback, check_callbacks
from ..training.checkpoints import Checkpoints, check_start
from ..training.loop import Monitor, evaluated
from ..training.monitors import CollapseSign, CollapseWatch, Sign, TopicMonitor, check_monitors
from ..training.state import Snapshot
from .card import ModelCard
from .editing import AppliedEdits, Editor, edited_network, prepared_edits
from .inference import (
    Array,
    Inference,
    Interpolation,
    device_of,
    document_topics,
    evidence_bound,
    interpolate,
    latent_codes,
    log_likelihood,
)
from .saving import (
    COUNTS,
    check_tensors,
    check_vocabulary,
    field_kind,
    fingerprint_of,
    refuse_paths,
    settings_for_json,
    write_model,
)
from .words import Words, seed_weights, with_fields

logger = logging.getLogger("topicloom")

# For each setting: a clause that says where it has no effect, and a function that says whether a model uses it.
UsedIf = Mapping[str, tuple[str, Callable[[Any], bool]]]

Perplexity = Literal["bound", "completion"]
PUBLISHED = "published"  # the recipe of a model's own paper

_WORDS_IN_NOTEBOOKS = 10  # words shown for each topic
_NAMED_WORDS = 10  # in a message about words that are left out
_MUCH_LEFT_OUT = 0.1  # of the tokens; more is worth a warning
_NO_NEIGHBOURS = "in a model that groups documents by their vectors"
# What a model records of its training beside the topics. Edits keep it, and `partial_fit` never changes it in place.
_RECORDED = (
    "vocabulary_", "tokenizer_", "word_counts_", "document_counts_", "n_documents_", "n_features_in_",
    "feature_names_in_", "fields_", "settings_", "stopped_after_", "encoder_", "n_lent_tokens_", "spellings_",
)  # fmt: skip
# Settings that can make training fail. Messages name them in this order.
_SUSPECTS = (
    "start", "code_norm", "background", "prior", "input_dropout", "weight_decay", "latent_size", "embedding_size",
    "alpha", "eta", "kl_weight", "mmd_weight", "critic_weight", "learning_rate", "min_diversity",
)  # fmt: skip
# The words and their columns, by network. They are kept outside the model, because inference must not change it.
_columns_of: WeakKeyDictionary[TopicNetwork, tuple[list[str], dict[str, int]]] = WeakKeyDictionary()
# Networks for which a warning has said that documents have no vectors.
_warned_of: WeakSet[TopicNetwork] = WeakSet()
WORDS_ALONE = "the model infers topics from words alone, so the given vectors or encoder change nothing"

Model = TypeVar("Model", bound="TopicModel")
Given = ParamSpec("Given")
Result = TypeVar("Result")


def of_one_fit(
    method: Callable[Concatenate[Model, Given], Result],
) -> Callable[Concatenate[Model, Given], Result]:
    """Let a method read the model as it is when it is called, even if a fit in another thread ends meanwhile.

    A fit replaces what the model has learned and changes nothing in place, so a shallow copy keeps the earlier fit.
    """

    @wraps(method)
    def read(model: Model, /, *given: Given.args, **options: Given.kwargs) -> Result:
        with usual_device():
            return method(copy.copy(model), *given, **options)

    return read


@dataclass(eq=False, repr=False)
class TopicModel(
    ReadableSettings,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
    ABC,
):
    """The base of all topic models.

    A model is a scikit-learn estimator: the constructor stores its settings, `fit` checks them, and names of learned
    attributes end in an underscore. After `fit`, use `topics`, `transform`, `infer`, `perplexity` and `save`.

    To write a model of your own that is not trained by gradient descent, define `build_network`, `fit_corpus` and
    `partial_fit_corpus`; for any other, see `NeuralTopicModel`. These methods are for your class to call:
    `word_statistics()` returns the vocabulary for the network, `draw_seed()` a seed, and `adopt_network(network)` makes
    a trained network the one that `transform` and `topics` use. `from_saved` reads a saved model; you may override it.

    Main args:
        n_topics: the number of topics K, from 2 to the size of the vocabulary.
        random_state: the seed. The same one gives the same model on the same machine, None another model each time.

    Text args:
        seed_words: words that a topic should be about, by the number of the topic, such as {0: ["market", "bank"]}.
            Related words join them during training. The topic keeps its number.
        fractional_counts: whether matrices may contain fractions, such as weights. Not all models can use them.

    Vectors args:
        neighbour_tokens: how many tokens each training document gets from its nearest documents, if the documents have
            vectors (document expansion, Tao et al. 2006). Documents that are near each other then have words in common,
            which short texts often have not. The longer a document, the less they change. 0 is none.
        neighbours: the number of nearest documents, by the cosine of the vectors.
        infer_with_neighbours: whether new documents get tokens of their nearest training documents, too, if the model
            counts words to infer topics. It then keeps the vectors and the counts of the training documents, also in
            its files. Otherwise the encoder infers the topics from the words and the vector of a document. A model
            without an encoder always keeps them.

    Run args:
        device: "cpu", "cuda", "cuda:1" or "mps"; "auto" is CUDA if it is available, and the CPU otherwise.
        verbose: 1 shows a progress bar on standard error, 0 shows nothing.

    Attributes:
        components_: the topics, (K, V) float32; each row is a distribution over the words.
        vocabulary_: the V words.
        spellings_: how the training documents write words whose form in `vocabulary_` is another one, apart from
            capital letters, such as {"strasse": "straße"}. Tables and pages show these forms.
        word_counts_: (V,) the number of tokens of each word in the training documents.
        document_counts_: (V,) the number of training documents with each word.
        n_documents_: the number of training documents that are not empty.
        n_lent_tokens_: the number of tokens that all training documents got from their neighbours.
        history_: a list with a dictionary for each epoch: the terms of the loss, and the measures of collapse.
        tokenizer_: the tokenizer of the training documents, which splits raw text in `transform`.
        n_features_in_: the size of the vocabulary V.
        fields_: the fields of the training documents by name: the length of "vectors", 1 for "times" and for numbers,
            and the names of the categories for a covariate that has categories.
        encoder_: the `TextEncoder` that made the vectors of the training documents; None if it is not known.
        stopped_after_: the last complete epoch, if training was stopped before its end; other models lack this
            attribute.
        base_: the trained model at the time of the edits; only models with edits have this attribute.

    Examples:
        >>> import topicloom as tl
        >>> corpus = tl.datasets.synthetic_lda(n_docs=80, n_words=50, n_topics=3).corpus
        >>> model = tl.GSM(n_topics=3, epochs=3, random_state=0).fit(corpus)
        >>> model.components_.shape
        (3, 50)
        >>> edited = model.rename({0: "first"}).merge([1, 2])
        >>> edited.given_names
        ['first', None]
        >>> edited.edits
        [{'rename': {0: 'first'}}, {'merge': [1, 2]}]
        >>> edited.base_.given_names
        [None, None, None]
    """

    published: ClassVar[dict[str, Any]] = {}  # the settings of the model's paper, which `as_published` uses
    recipes: ClassVar[dict[str, dict[str, Any]]] = {}  # the settings of further papers, by the names for `as_published`
    uses_validation: ClassVar[bool] = False  # whether `fit` can measure a loss on held-out documents
    needs_vectors: ClassVar[bool] = False  # whether it groups documents by their vectors; they get no neighbours' words
    # Whether new documents, too, get words of their neighbours: always, never, or as `infer_with_neighbours` says.
    expands_new_documents: ClassVar[Literal["always", "never", "as set"]] = "as set"
    predicts_words: ClassVar[bool] = True  # whether it has a perplexity
    uses_ranks: ClassVar[bool] = False  # whether several processes can train it together (`topicloom.distributed`)
    model_format: ClassVar[int] = 1  # of saved weights and settings; raise it when they mean something else
    settings_without_effect: ClassVar[tuple[str, ...]] = ("device", "verbose")  # they do not change what is learned
    used_if: ClassVar[UsedIf] = {
        "neighbour_tokens": (_NO_NEIGHBOURS, lambda model: not (model.needs_vectors and model.neighbour_tokens)),
        "neighbours": (_NO_NEIGHBOURS, lambda model: not model.needs_vectors),
        "infer_with_neighbours": (_NO_NEIGHBOURS, lambda model: not model.needs_vectors),
    }

    n_topics: Annotated[int, Field(ge=2)] = 20
    _: KW_ONLY
    seed_words: dict[int, list[str]] | None = None
    random_state: Annotated[int, Field(ge=0, lt=2**32)] | np.random.RandomState | None = None
    fractional_counts: bool = False
    neighbour_tokens: Annotated[int, Field(ge=0)] = 20
    neighbours: AtLeastOne = 20
    infer_with_neighbours: bool = False
    device: str = "auto"
    verbose: Literal[0, 1] | bool = 0

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "transform" in vars(cls):  # outside scikit-learn's wrapper, which names the columns
            cls.transform = of_one_fit(cls.transform)  # type: ignore[assignment,method-assign]
        ForkingPickler.register(cls, _by_value)

    @classmethod
    def as_published(cls, n_topics: int = 50, *, recipe: str = PUBLISHED, **overrides: Any) -> Self:
        """Return a model with the settings of a paper, as far as the model has them; see docs/published.md.

        Args:
            n_topics: the number of topics K.
            recipe: the paper. "published" is that of the model. Some models also have others: "combined" (CombinedTM)
                and "zeroshot" (ZeroShotTM), whose documents need vectors, "gsb" and "rsb" (stick-breaking), and "zll17"
                (Neural_Topic_Models).
            overrides: settings that differ from the paper. A `hidden_size` replaces the paper's `hidden_sizes`.

        Raises:
            SettingError: the model has no such paper, its defaults are those of its paper, a setting does not exist, or
                it has no effect with those of the paper.

        Examples:
            >>> import topicloom as tl
            >>> tl.ProdLDA.as_published(20, recipe="zeroshot").encoder_reads
            'vectors'
        """
        made = cls(**{"n_topics": n_topics} | published_settings(cls, recipe, overrides))
        made._refuse_without_effect(overrides)
        return made

    def _refuse_without_effect(self, names: Iterable[str]) -> None:
        """Raise SettingError if one of these settings, which a user gave beside a recipe, has no effect."""
        for name, where_unused in _without_effect(self).items():
            if name in names:
                value = getattr(self, name)
                raise SettingError(
                    f"`{name}={value!r}` has no effect {where_unused}; leave it out, or change that, too"
                )

    # Methods that a model defines

    @abstractmethod
    def build_network(self, words: Words, generator: torch.Generator) -> TopicNetwork:
        """Return the network before training. A loaded model builds it too, and then reads its weights.

        Args:
            words: what is known about the vocabulary.
            generator: draws the initial weights, on the CPU.
        """

    @abstractmethod
    def fit_corpus(
        self,
        corpus: Corpus,
        callbacks: Sequence[Callback] = (),
        monitors: Sequence[Monitor] = (),
        snapshot: Snapshot | None = None,
        validation: Corpus | None = None,
    ) -> None:
        """Learn from a corpus: fill `history_` and adopt the trained network.

        `fit` calls this method of a copy, whose attributes replace those of the model at the end.

        Args:
            corpus: the documents.
            callbacks: objects that watch the training.
            monitors: functions that measure the network after each epoch, for the epoch's row of `history_`.
            snapshot: the state of an earlier fit with the same documents and settings, from which to continue.
            validation: held-out documents over the same words; None for models with `uses_validation` off.
        """

    @abstractmethod
    def partial_fit_corpus(self, corpus: Corpus) -> None:
        """Learn from more documents in one pass, and adopt the trained network.

        `partial_fit` calls this method of a copy, whose learned attributes are deep copies.
        """

    def check_combinations(self) -> None:
        """Raise SettingError if settings that are valid alone cannot be combined. By default, do nothing."""

    @property
    def n_history_rows(self) -> int:
        """The greatest number of rows that `history_` can have after `fit`."""
        return self.rows_of(int(getattr(self, "epochs", None) or 0))

    def rows_of(self, epochs: int) -> int:
        """Return the number of rows that `history_` has for this many epochs."""
        return epochs

    # Learning

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        vocabulary: Vocabulary | None = None,
        callbacks: Sequence[Callback] = (),
        monitor: Iterable[str] = (),
        monitor_every: int = 5,
        validation: Any = None,
        resume_from: Snapshot | None = None,
        checkpoint: str | Path | Checkpoints | None = None,
        encoder: Any = None,
    ) -> Self:
        """Learn the topics of documents.

        Args:
            X: a Corpus, texts, lists of tokens, a data frame with a column "text", or counts (D, V), sparse or dense.
            y: not used; it is there for scikit-learn.
            vocabulary: the V words of the columns, if X is a matrix; a list, or a mapping from words to columns.
            callbacks: objects that watch the training; see `topicloom.Callback`.
            monitor: measures of the topics that become columns of `history_`, taken on the documents of X. Any of
                "document_npmi", "u_mass", "topic_uniqueness", "inverted_rbo" and "redundancy"; with texts or lists of
                tokens, whose order is known, also "c_npmi", "c_v" and "c_uci", and "c_w2v", whose word vectors are
                first trained on X. "topic_diversity" is there anyway, but not after every epoch of a model that changes
                slowly, unless it is asked for.
            monitor_every: the number of epochs from one measurement to the next. The last epoch is always measured.
            validation: held-out documents, in any form that X can have. Their mean loss becomes the column
                `validation_loss` of `history_`, and `patience` stops training by it. Without them, `patience` holds
                out `validation_fraction` of X. Models without a loss by epoch do not take them.
            resume_from: the state of an earlier fit with the same documents, settings and seed, which a callback took
                in `Callback.on_state`. Training continues from it and gives the result of a fit that never stopped.
            checkpoint: a directory for the state of the fit, which is written every minute and at the end; or
                `topicloom.Checkpoints`, which has settings. If the directory has a checkpoint of the same fit, training
                goes on from it.
            encoder: what gives each document its vector, for models that read vectors: a function from n texts to
                (n, E) numbers, an object with such a method `encode`, or a name, as `TextEncoder.of` takes them. New
                texts are encoded by it, too.

        Returns:
            the model itself.

        Raises:
            InputError: X or a setting cannot be used, or the checkpoints are of another fit.
            TrainingDivergedError: a loss is not finite.
            OutOfMemoryError: the device has too little memory for a batch.
            TrainingInterrupted: a signal stopped the training, and there is a checkpoint.

        The fit learns into a copy, which replaces what the model has learned all at once when training has ended. Until
        then, other threads use the earlier fit, and `set_params` has no effect on the fit. If training fails or is
        interrupted, an earlier fit stays. Without one, the model gets the state of the last complete epoch, the
        attribute `stopped_after_`, and a warning in `transform`. If two threads fit a model, the last one to end wins.
        """
        self._refuse_training_of_edited()
        refuse_vocabulary_as_y(X, y)
        check_callbacks(callbacks)
        check_start(checkpoint, resume_from)
        names = check_monitors(monitor, monitor_every)
        learner = self._unfitted()
        before = dict(vars(learner))
        with ExitStack() as stack:
            stack.enter_context(usual_device())
            corpus = learner._begin(X, vocabulary, encoder)
            held_out = None if validation is None else own_part(learner._held_out(validation, vocabulary))
            snapshot = resume_from
            if checkpoint is not None:
                checkpoints = Checkpoints.of(checkpoint)
                snapshot = stack.enter_context(checkpoints.watching(learner, corpus, held_out))
                callbacks = [*callbacks, checkpoints]
            done = 0 if snapshot is None else len(snapshot.values["history"])
            n_rows = learner.n_history_rows
            if snapshot is not None and snapshot.continued is not None:
                n_rows = done + learner.rows_of(snapshot.continued.epochs)
            reference = CorpusReference(given(corpus), "the training corpus", total=sum_of_ranks())
            words = learner.vocabulary_, learner.word_counts_
            vectors = partial(train_word_vectors, given(corpus))
            topic_monitor = TopicMonitor(
                names, monitor_every, n_rows, reference, *words, seen=done, word_vectors=vectors
            )
            try:
                learner.fit_corpus(corpus, callbacks, [topic_monitor] if names else [], snapshot, held_out)
            except BaseException as error:
                self._keep_what_there_is(learner, before, error, n_rows)
                raise
            self._take(learner, before)
        return self

    def partial_fit(self, X: Any, y: Any = None, *, vocabulary: Vocabulary | None = None) -> Self:
        """Learn from more documents in one pass.

        The first call determines the vocabulary. Later calls use only the words in it, and say in the log which others
        the documents have: as a warning if these are more than a tenth of their tokens. `history_` gets a row for each
        call; models that are trained by gradient descent keep the last 1,000.

        Args:
            X: a Corpus, texts, lists of tokens, a data frame with a column "text", or counts (D, V), sparse or dense.
            y: not used; it is there for scikit-learn.
            vocabulary: the words of the columns, if X is a matrix. Another vocabulary is matched word by word.

        Returns:
            the model itself.

        Raises:
            InputError: X or a setting cannot be used, the model has edits, or another thread has trained it meanwhile.
            TrainingDivergedError: a loss is not finite.

        A call learns into a copy, which takes as much memory as the model and replaces it at the end. Until then, other
        threads use the model as it was. After an error or an interruption, the model is as it was.
        """
        self._refuse_training_of_edited()
        refuse_vocabulary_as_y(X, y)
        if current().size > 1:
            raise SettingError("`partial_fit` learns in one process; use `fit`, or start a single process")
        learner = copy.copy(self)
        if is_first := not hasattr(learner, "components_"):
            learner = learner._unfitted()
        before = dict(vars(learner))
        with usual_device():
            if is_first:
                learner.partial_fit_corpus(learner._begin(X, vocabulary, for_fit=False))
            elif not learner._learn_more(X, vocabulary):
                return self
        if vars(self).get("network_") is not before.get("network_"):
            raise InputError(
                "another thread has trained this model meanwhile, so these documents were not learned; call "
                "`partial_fit` again, from one thread at a time"
            )
        self._take(learner, before)
        return self

    def _learn_more(self, X: Any, vocabulary: Vocabulary | None) -> bool:
        """Learn from more documents, in copies of the weights. Return whether there was anything to learn."""
        settle_settings(self)
        self.check_combinations()
        if self.n_topics != len(self.components_):
            raise SettingError(
                f"n_topics is {self.n_topics}, but the model has {len(self.components_)} topics; set it back, or call "
                "fit to start again"
            )
        left_out: dict[str, float] = {}
        corpus = self._over_words(X, vocabulary, left_out)
        _say_what_is_left_out(left_out, float(corpus.counts.sum(dtype=np.float64)))
        if not corpus.counts.nnz:
            if corpus.n_docs:
                logger.warning("no document has a word of the first call of `partial_fit`, so nothing was learned")
            return False
        learned = {
            name: value
            for name, value in vars(self).items()
            if name.endswith("_") and name not in (*_RECORDED, "components_")
        }
        rows = {id(row): row for row in self.history_}  # rows are added, and not changed
        with with_gradients():
            self.__dict__.update(copy.deepcopy(learned, rows))
        self.partial_fit_corpus(corpus)
        self._count_words(corpus)
        return True

    def _refuse_training_of_edited(self) -> None:
        if self._applied_edits is not None:
            raise InputError(
                "an edited model cannot be trained; fit a new model, and apply the edits to it: "
                "model.apply(edited.edits)"
            )

    def _unfitted(self) -> Self:
        """Return a copy with the same settings that has learned nothing."""
        model = copy.copy(self)
        for name in [name for name in vars(model) if name.endswith("_")]:
            delattr(model, name)
        return model

    def _take(self, learner: Self, before: Mapping[str, Any]) -> None:
        """Take all that a copy of this model has learned, in one assignment.

        Settings are those of this model, which may have changed meanwhile, unless the learner itself changed them.

        Args:
            learner: the copy.
            before: the attributes of the copy before it learned.
        """
        own = {name: value for name, value in dict(vars(self)).items() if not name.endswith("_")}
        learned = {
            name: value
            for name, value in vars(learner).items()
            if name.endswith("_") or name not in before or before[name] is not value
        }
        self.__dict__ = own | learned

    def _keep_what_there_is(self, learner: Self, before: Mapping[str, Any], error: BaseException, n_rows: int) -> None:
        """Keep an earlier fit, or else what a fit has learned before it failed, and let the error say so.

        Args:
            learner: the copy of this model that was trained.
            before: the attributes of the copy before it learned.
            error: what stopped the training.
            n_rows: the planned number of rows of `history_`.
        """
        if hasattr(self, "components_"):
            kept = "the model is as it was before this fit"
        elif hasattr(learner, "components_"):
            epoch = int(learner.history_[-1].get("epoch", len(learner.history_))) if learner.history_ else 0
            kept = f"the model has the state after epoch {epoch}"
            if not 0 < n_rows <= len(learner.history_):
                learner.stopped_after_ = epoch
                kept = f"{kept}, and `transform` warns of that"
            self._take(learner, before)
        else:
            return
        if isinstance(error, TrainingDivergedError | OutOfMemoryError):
            error.kept = kept
        else:
            error.add_note(f"{kept[0].upper()}{kept[1:]}.")

    def _begin(self, X: Any, vocabulary: Vocabulary | None, encoder: Any = None, *, for_fit: bool = True) -> Corpus:
        """Check the settings, note the words of X, and return X as a corpus.

        For `fit`, the documents also get words of their neighbours. A stream has only some of the documents at a time.
        """
        settle_settings(self)
        self.check_combinations()
        _warn_of_unused_settings(self)
        if current().size > 1 and not self.uses_ranks:
            raise SettingError(f"{type(self).__name__} is trained by one process; start a single process")
        fractional = self.fractional_counts
        corpus = corpus_of(X, vocabulary, fractional=fractional, matrix=self._matrix, encoder=encoder)
        if self.needs_vectors and corpus.vectors is None:
            raise InputError(
                f"{type(self).__name__} groups documents by their vectors, and these have none; give `encoder` or "
                "`vectors`"
            )
        if self.n_topics > corpus.n_words:
            raise InputError(
                f"`n_topics={self.n_topics}` is more than the {counted(corpus.n_words, 'word')} of the vocabulary; "
                "ask for fewer topics, or keep more words (`min_df`, `max_df`)"
            )
        if corpus.is_empty.all():
            raise InputError("every document is empty, so there are no words to learn from")
        self.vocabulary_, self.tokenizer_ = list(corpus.vocabulary), corpus.tokenizer
        self.spellings_: dict[str, str] = corpus.spellings
        self.encoder_: TextEncoder | None = corpus.encoder
        corpus = own_part(self._expanded(corpus) if for_fit else corpus)
        self.word_counts_, self.document_counts_, self.n_documents_ = totals(given(corpus))
        self.n_lent_tokens_ = float(totals(corpus)[0].sum() - self.word_counts_.sum())
        self.n_features_in_, self.fields_ = corpus.n_words, corpus.fields.kinds()
        self.history_: list[dict[str, Any]] = []
        self.settings_ = self.get_params(deep=False)  # the settings to save, which set_params does not change
        return corpus

    def _expanded(self, corpus: Corpus) -> Corpus:
        """Return training documents with words of their neighbours, if they have vectors and the settings ask for it.

        If new documents will get such words too, the model keeps what that needs.
        """
        if corpus.vectors is None or not self.neighbour_tokens or self.needs_vectors:
            return corpus
        expansion = DocumentExpansion(corpus.counts, corpus.vectors, self.neighbours, self.neighbour_tokens)
        if self.infers_with_neighbours:
            self.expansion_ = expansion
        expanded = expansion.of_training(corpus)
        if not shares_words(expanded):
            logger.warning(
                "documents share no more words with those whose vectors are nearest than with others; check that the "
                "vectors are of these texts and in their order, or turn them off by `neighbour_tokens=0`"
            )
        return expanded

    @property
    def infers_with_neighbours(self) -> bool:
        """Whether new documents get tokens of their nearest training documents before their topics are inferred."""
        kind = self.expands_new_documents
        return self.infer_with_neighbours if kind == "as set" else kind == "always"

    def _held_out(self, X: Any, vocabulary: Vocabulary | None) -> Corpus:
        """Return documents for validation as a corpus over the words of training."""
        if not self.uses_validation:
            raise SettingError(f"{type(self).__name__} has no loss by epoch, so `validation` should be None")
        corpus = self._over_words(X, vocabulary)
        if corpus.is_empty.all():
            raise InputError("no document of `validation` has a word of the training documents")
        return corpus

    def _count_words(self, corpus: Corpus) -> None:
        """Add the words of documents to the counts, which the ranking of words and the network read."""
        tokens, documents, n_documents = totals(corpus)
        self.word_counts_ = self.word_counts_ + tokens
        self.document_counts_ = self.document_counts_ + documents
        self.n_documents_ += n_documents  # empty documents add nothing

    # Inference. It does not change the model, so threads can share one.

    @property
    def reads_vectors(self) -> bool:
        """Whether inference needs the vectors of documents. Texts are then encoded by `encoder_`, if it is known."""
        network = vars(self).get("network_")
        if network is None or "vectors" in network.fields:  # during training, the network may not be known yet
            return True
        return hasattr(self.origin, "expansion_")

    @of_one_fit
    def documents(
        self,
        X: Any,
        vocabulary: Vocabulary | None = None,
        *,
        vectors: Any = None,
        encoder: Any = None,
        words_only: bool = False,
    ) -> Corpus:
        """Return X as a corpus over the model's words. Texts get vectors if the model reads vectors.

        Args:
            X: a Corpus, texts, lists of tokens, a data frame with a column "text", or counts (n_docs, V).
            vocabulary: the words of the columns, if X is a matrix with another vocabulary.
            vectors: (n_docs, E) the vectors of the documents, by the encoder of the training documents.
            encoder: the encoder of the training documents, if `encoder_` is None. With another one, the call ends.
            words_only: whether documents are left as they are if they have no vectors; their texts are not encoded.

        Raises:
            InputError: X cannot be used, there are more or fewer vectors than documents, the vectors have another
                length than those of training, or the encoder is another one.
            SettingError: vectors and an encoder are given.
        """
        check_is_fitted(self, "components_")
        return self._over_words(X, vocabulary, vectors=vectors, encoder=encoder, words_only=words_only)

    @of_one_fit
    def infer(self, X: Any, *, vectors: Any = None, encoder: Any = None) -> DocumentTopics:
        """Infer the topics of documents, and return them together with the ids, labels, times and texts that X has.

        Args:
            X: a Corpus, texts, lists of tokens, a data frame with a column "text", or counts (n_docs, V).
                Texts are split as in training. A Corpus with other words is matched word by word.
            vectors: (n_docs, E) the vectors of the documents, by the encoder of the training documents.
            encoder: the encoder of the training documents, if `encoder_` is None.

        Returns:
            an object with `theta` (n_docs, K), `empty` (n_docs,), which is True for documents without a known word, and
            `fields`, such as ids and labels.

        Raises:
            InputError: X, the vectors or the encoder cannot be used.
            SettingError: vectors and an encoder are given.
        """
        return self.infer_with(self.documents(X, vectors=vectors, encoder=encoder))

    @of_one_fit
    def infer_with(self, X: Any, posterior: Inference | None = None) -> DocumentTopics:
        """Infer the topics of documents with another posterior.

        Args:
            X: a Corpus, texts, lists of tokens, a data frame with a column "text", or counts (n_docs, V).
            posterior: a function from a batch to a posterior. None is the posterior of the network.

        Returns:
            what `infer` returns.

        Raises:
            InputError: X cannot be used.
        """
        if (epoch := vars(self).get("stopped_after_")) is not None:
            logger.warning("the training of this model was stopped after epoch %d; fit it again to finish it", epoch)
        corpus = self._with_neighbours(self.documents(X))  # which raises an error before the first fit
        return document_topics(self.network_, corpus, posterior)

    def _with_neighbours(self, corpus: Corpus) -> Corpus:
        """Return documents with words of their nearest training documents, if inference needs these."""
        expansion: DocumentExpansion | None = getattr(self.origin, "expansion_", None)
        return corpus if expansion is None or corpus.vectors is None else expansion.of_new(corpus)

    def transform(self, X: Any) -> Array:
        """Infer the topic shares of documents.

        Args:
            X: a Corpus, texts, lists of tokens, a data frame with a column "text", or counts (n_docs, V).

        Returns:
            (n_docs, K) float32; rows sum to 1, and row i is always document i. A document without a known word gets
            the model's average shares, and one warning says how many there are.

        Raises:
            InputError: X cannot be used.
        """
        return theta_of(self.infer_with(X))

    @of_one_fit
    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log likelihood per token in nats by document completion, -log(`perplexity(X)`).

        Higher is better. The score counts the same tokens as `perplexity(X)`, so `GridSearchCV` chooses the settings
        with the lowest perplexity.

        Args:
            X: a Corpus, texts, lists of tokens, a data frame with a column "text", or counts (n_docs, V).
            y: not used; it is there for scikit-learn.

        Raises:
            InputError: no document has a word that the model knows, or there is no token to score.
        """
        return -float(np.log(self.perplexity(X)))

    @of_one_fit
    def perplexity(self, X: Any, method: Perplexity = "completion", average: metrics.Average = "corpus") -> float:
        """Return the perplexity of documents, the exponential of the negative log likelihood per token.

        Lower is better.

        Args:
            X: a Corpus, texts, lists of tokens, a data frame with a column "text", or counts (n_docs, V).
            method: "completion" infers theta from one half of each document's tokens and scores the other half. "bound"
                uses the evidence lower bound of all tokens. The bound can be too loose to be useful: on short titles
                its perplexity was 2.4e12, and that of completion 336.
            average: "corpus" gives every token the same weight: exp(-sum of log likelihoods / sum of tokens).
                "document" gives every document the same weight: exp(-mean of log likelihood / tokens), as papers on
                neural models do since Miao et al. 2016.

        Raises:
            InputError: no document has a word that the model knows, or there is no token to score.
            SettingError: the method cannot be used with this model.
        """
        if average not in ("corpus", "document"):
            raise SettingError(f'average should be "corpus" or "document"; it is {average!r}')
        log_likelihoods, n_tokens = self.log_likelihood(X, method)
        if not n_tokens.any():
            raise InputError("the documents are so short that no token is left to score; give more documents")
        return metrics.perplexity(log_likelihoods, n_tokens, average)

    @of_one_fit
    def log_likelihood(self, X: Any, method: Perplexity = "completion") -> tuple[Array, Array]:
        """Return the log likelihood of each document in nats, (n_docs,), and the number of its tokens, (n_docs,).

        Args:
            X: a Corpus, texts, lists of tokens, a data frame with a column "text", or counts (n_docs, V).
            method: "completion" infers theta from one half of each document's tokens and scores the other half, with
                the model's own p(w | theta). A fixed seed draws the halves. "bound" is the evidence lower bound of all
                tokens, and available only for a model that was trained with `criterion="cross_entropy"`.

        Raises:
            InputError: no document has a word that the model knows.
            SettingError: the method is unknown, or cannot be used with this model. Document completion cannot be used
                with an encoder that reads vectors alone: a vector tells the words that are scored.
        """
        check_is_fitted(self, "components_")
        if method == "completion" and "vectors" in set(self.network_.fields) - set(self.network_.optional_fields):
            raise SettingError(
                "document completion cannot score this model, because it needs the vectors of documents, which are "
                'made from whole texts and would tell the words that are scored; use `method="bound"`'
            )
        corpus = self._over_words(X, words_only=method == "completion")
        if not corpus.counts.nnz:
            raise InputError("no document has a word that the model knows, so there is nothing to score")
        if method == "completion":
            # A vector was made from the whole text, so it would tell the words that are scored.
            corpus = self.without_vectors(corpus)
            observed, scored = (replace(corpus, counts=half) for half in metrics.completion_split(corpus.counts))
            theta = document_topics(self.network_, observed).theta
            return log_likelihood(self.network_, theta, scored), scored.counts.sum(axis=1)
        if method != "bound":
            raise SettingError(f'method should be "completion" or "bound"; it is {method!r}')
        if not self.network_.bounds_tokens:
            raise SettingError(
                'edited models have no bound, and with a criterion other than "cross_entropy" it would be none of the '
                'tokens; use `method="completion"`'
            )
        return evidence_bound(self.network_, corpus), corpus.counts.sum(axis=1)

    @of_one_fit
    def latent(self, X: Any) -> tuple[Array, Array]:
        """Return the position of each document in the latent space, and its divergence from the prior in nats.

        Args:
            X: a Corpus, texts, lists of tokens, a data frame with a column "text", or counts (n_docs, V).

        Returns:
            code: (n_docs, L). For a Gaussian posterior, the mean of the code; for a Dirichlet or Weibull posterior that
                an encoder gives, the logarithms of its weights (L = K); otherwise, such as for a Dirichlet posterior
                that is computed given the topics, theta as centred log-ratios (L = K).
            divergence: (n_docs, M), a column for each latent variable. M is L, or L + 1 if the component of a mixture
                is a latent variable too, or 0 if the posterior has no divergence.
        """
        corpus = self._with_neighbours(self.documents(X))
        return latent_codes(self.network_, corpus)

    @of_one_fit
    def interpolate(self, a: Any, b: Any, steps: int = 8, top_n: int = 10) -> Interpolation:
        """Interpolate between two documents, at equal steps on a straight line in the latent space.

        For a Gaussian posterior, the line runs between the means of the codes. For other models, it runs between
        log-weights or log-ratios of theta. The first step has the topics of `transform(a)`, and the
        last step those of `transform(b)`.

        Args:
            a: the first document: a text, or one document in any form that `infer` takes, such as a list of tokens in
                a list, or a Corpus with one document.
            b: the last document.
            steps: the number of steps; both documents count as steps.
            top_n: the number of words for each step. They are ranked by the rule that ranks the words of topics.

        Raises:
            InputError: `a` or `b` is not one document, or contains no word that the model knows.
            SettingError: `steps` is not a whole number from 2, or `top_n` not one from 1.
        """
        check_is_fitted(self, "components_")
        ends = [self._with_neighbours(self._single_document(X, name)) for X, name in ((a, "a"), (b, "b"))]
        topics = self.components_, as_written(self.vocabulary_, self.spellings_), self.word_counts_
        return interpolate(self.network_, ends, topics, steps, top_n)

    def _single_document(self, X: Any, name: str) -> Corpus:
        """Return one document as a corpus over the model's words."""
        corpus = self.documents([X] if isinstance(X, str) else X)
        if corpus.n_docs != 1:
            raise InputError(f"`{name}` should be one document; it has {corpus.n_docs:,}")
        if corpus.is_empty[0]:
            raise InputError(f"`{name}` contains no word that the model knows, so it has no place in the latent space")
        return corpus

    @of_one_fit
    def encode(self, X: Any) -> sp.csr_array:
        """Return the counts of documents over the model's words, (n_docs, V).

        Args:
            X: a Corpus, texts, lists of tokens, a data frame with a column "text", or counts (n_docs, V).

        Raises:
            InputError: X cannot be used.
        """
        return self.documents(X, words_only=True).counts

    # Topics and their edits. Each edit returns a new model. docs/topics.md describes its effect on theta and words.

    @of_one_fit
    def topics(self, top_n: int = 10, relevance: float | None = None, *, written: bool = False) -> list[list[str]]:
        """Return the words that stand for each topic.

        Args:
            top_n: the number of words for each topic.
            relevance: 1 ranks words by probability; a lower value prefers words that are rarer elsewhere. Sievert &
                Shirley (2014) recommend 0.6. None is the package's own rule: 0.5, with less weight on rare words.
            written: whether words have the form that is commonest in the training documents (`spellings_`), to be read:
                straße. Without it, they are those of `vocabulary_`, which measures and `seed_words` take: strasse.

        Returns:
            K lists of words, best first.

        Raises:
            SettingError: `top_n` is not a whole number from 1, or `relevance` is not from 0 to 1.
        """
        words = as_written(self.vocabulary_, self.spellings_) if written else self.vocabulary_
        return [[words[word] for word in row] for row in self.topic_ids(top_n, relevance)]

    @of_one_fit
    def topic_ids(self, top_n: int = 10, relevance: float | None = None) -> npt.NDArray[np.intp]:
        """Return the words that `topics` returns as columns of components_: (K, min(top_n, V))."""
        check_is_fitted(self, "components_")
        return topic_word_ids(self.components_, self.word_counts_, top_n, relevance)

    @property
    def edits(self) -> list[Edit]:
        """The edits since the training, as dictionaries that `apply` takes; empty for a trained model."""
        applied = self._applied_edits
        return [] if applied is None else copy.deepcopy(applied.edits)

    @property
    def _applied_edits(self) -> AppliedEdits | None:
        applied: AppliedEdits | None = vars(self).get("applied_edits_")
        return applied

    @property
    def origin(self) -> Self:
        """The trained model: this one, unless it has edits."""
        origin: Self = vars(self).get("base_", self)
        return origin

    @property
    @of_one_fit
    def given_names(self) -> list[str | None]:
        """The name that a user gave to each topic, or None."""
        check_is_fitted(self, "components_")
        names = {} if self._applied_edits is None else self._applied_edits.names
        return [names.get(column) for column in range(len(self.components_))]

    @property
    @of_one_fit
    def topic_names_(self) -> list[str]:
        """A name for each topic: the one that it was given, or else three of its words that tell it from the others."""
        ids = self.topic_ids(NAME_CANDIDATES)
        weights = np.take_along_axis(self.components_, ids, axis=1).tolist()
        return complete_names(self.given_names, self.topics(NAME_CANDIDATES, written=True), weights)

    @property
    @of_one_fit
    def fingerprint(self) -> str:
        """A short hash of the model's weights and words. A file of edits names its model by this hash."""
        check_is_fitted(self, "components_")
        return fingerprint_of(self.network_, self.vocabulary_)

    def merge(self, topics: Sequence[int], documents: Any = None) -> Self:
        """Return a model in which some topics are merged into one.

        The shares of the merged topics are added. Their word distributions are averaged, weighted by the shares of the
        topics. The merged topic takes the place of the first one, and later topics move up.

        Args:
            topics: two or more topics.
            documents: documents in any form that `infer` takes, usually those of training, whose topic shares are the
                weights. Without documents, the weights are the model's average shares.

        Raises:
            InputError: a topic does not exist or is named twice, or only one topic would be left.
        """
        return self.apply([{"merge": topics}], documents)

    def drop(self, topics: int | Sequence[int], documents: Any = None) -> Self:
        """Return a model without some topics.

        The remaining shares of a document are divided by their sum. If this sum is less than 0.01, the document gets
        the average shares, like a document without known words.

        Args:
            topics: a topic, or several.
            documents: documents in any form that `infer` takes, usually those of training. Their topic shares weight
                topics that were merged. Without documents, the weights are the model's average shares.

        Raises:
            InputError: a topic does not exist or is named twice, or fewer than two topics would be left.
        """
        return self.apply([{"drop": topics}], documents)

    def rename(self, names: Mapping[int, str | None]) -> Self:
        """Return a model with names for some topics.

        Args:
            names: new names by the number of the topic, such as {3: "shipping"}. None removes a name.

        Raises:
            InputError: a topic does not exist, or a name is empty or that of another topic.
        """
        return self.apply([{"rename": names}])

    def reduce_to(self, n_topics: int, documents: Any = None) -> Self:
        """Return a model with fewer topics, in which the most similar ones are merged step by step.

        Topics are similar if they share words and, if `documents` are given, if they share documents.

        Args:
            n_topics: the number of topics that are left.
            documents: documents in any form that `infer` takes, usually those of training. They show which topics occur
                together, and their topic shares are the weights of merged topics. Without documents, the weights are
                the model's average shares.

        Raises:
            InputError: there are not more than `n_topics` topics.
        """
        return self.apply([{"reduce_to": n_topics}], documents)

    def split(self, topic: int, into: int = 2, documents: Any = None, random_state: int = 0) -> Self:
        """Return a model in which a topic is divided into parts, by latent Dirichlet allocation.

        The first part takes the place of the topic, and the others come after all other topics.

        Args:
            topic: the topic.
            into: the number of parts.
            documents: documents to learn the parts from, usually those of training.
            random_state: the seed.

        Raises:
            InputError: there are no documents, or too few of them have the topic.
        """
        return self.apply([{"split": topic, "into": into, "random_state": random_state}], documents)

    @of_one_fit
    def apply(
        self, edits: Iterable[Mapping[str, Any]], documents: Any = None, *, matching: Sequence[int | None] | None = None
    ) -> Self:
        """Return a model with a list of edits. This model stays as it is.

        Args:
            edits: such as [{"merge": [3, 7]}, {"drop": [5]}, {"rename": {3: "shipping"}}, {"reduce_to": 20},
                {"split": 4, "into": 3}]. Every number is that of a topic of this model, before any edit of the list.
            documents: documents in any form that `infer` takes, usually those of training. Merged topics are weighted
                by their shares in them; without documents, by the model's own average shares. A split needs them.
            matching: for edits of another model, the number in this model of each topic of the other one. None marks a
                topic without a counterpart; its edits are left out with a warning.

        Raises:
            InputError: an edit cannot be applied; the model is as it was.
        """
        check_is_fitted(self, "components_")
        prepared = prepared_edits(edits, len(self.components_), matching)
        corpus = None if documents is None else self.documents(documents)
        return self._edited(prepared, corpus, None if corpus is None else self.infer(corpus))[0]

    @of_one_fit
    def apply_with(
        self,
        edits: Iterable[Mapping[str, Any]],
        corpus: Corpus,
        documents: DocumentTopics,
        matching: Sequence[int | None] | None = None,
    ) -> tuple[Self, DocumentTopics]:
        """Apply edits to the model and to documents whose topics are known. Return the new model and the new topics.

        Args:
            edits: a list such as [{"merge": [3, 7]}, {"drop": [5]}], with the numbers of topics before any edit.
            corpus: documents over the model's words.
            documents: the topics of these documents, from `infer(corpus)`.
            matching: for edits of another model, the number in this model of each topic of the other one, or None.

        Raises:
            InputError: an edit cannot be applied; the model is as it was.
        """
        check_is_fitted(self, "components_")
        prepared = prepared_edits(edits, len(self.components_), matching)
        model, found = self._edited(prepared, corpus, documents)
        assert found is not None
        return model, found

    def _edited(
        self, edits: Iterable[Edit], corpus: Corpus | None, documents: DocumentTopics | None
    ) -> tuple[Self, DocumentTopics | None]:
        words = self.vocabulary_, self.word_counts_
        editor = Editor(
            self.network_, self._applied_edits, *words, corpus=corpus, documents=documents, read=self._with_neighbours
        )
        for edit in edits:
            editor.apply(edit)
        return self.with_edits(editor.network, editor.applied_edits()), editor.documents

    def with_edits(self, network: EditedNetwork, applied: AppliedEdits) -> Self:
        """Return this model with other edits. The trained network infers theta, and the edits are applied to it.

        The edited model has the class, the settings and the words of the trained model. It cannot be trained further.

        Args:
            network: the trained network with the steps of the edits.
            applied: the edits.
        """
        model = copy.copy(self)
        kept = (*_RECORDED, "history_")
        for learned in [name for name in vars(model) if name.endswith("_") and name not in kept]:
            delattr(model, learned)
        model.n_topics, model.seed_words = len(applied.numbering), None
        model.base_, model.applied_edits_ = self.origin, applied
        if isinstance(network.fields, Mapping):  # added topics may read vectors
            model.fields_ = {
                **self.fields_,
                **{name: kind for name, kind in network.fields.items() if kind is not None},
            }
        TopicModel.adopt_network(model, network)  # attributes of a class's own network stay in base_
        return model

    def refuse_edits(self, action: str) -> None:
        """Raise InputError if this model has edits. Methods that read the trained network alone call this first.

        Args:
            action: what cannot be done, such as "`predict`".
        """
        if self._applied_edits is not None:
            raise InputError(f"{action} needs the trained model; use `base_` of the edited one")

    # Files

    @of_one_fit
    def save(self, directory: str | Path, overwrite: bool = False) -> None:
        """Write the model to a directory, from which `topicloom.load` reads it.

        The files are model.safetensors, config.json, vocabulary.txt and README.md, a model card. They are written
        completely or not at all.

        Args:
            directory: the directory.
            overwrite: whether an earlier model may be replaced.

        Raises:
            InputError: the directory is not empty and `overwrite` is off, or it contains other files; or the model
                cannot be written.
        """
        check_is_fitted(self, "components_")
        place = as_path(directory, "directory")
        try:
            with atomic_directory(place, CONFIG, overwrite=overwrite, known=MODEL_FILES) as folder:
                self._write(folder)
        except SafetensorError as error:
            reason = system_error(error, place)
            raise InputError(f"{directory} cannot be written: {reason.strerror or reason}") from None

    def _write(self, folder: Path) -> None:
        """Write the files of the model into an empty folder."""
        kind, applied = type(self.origin), self._applied_edits
        config: dict[str, Any] = {
            "format_version": FORMAT_VERSION,
            "model": kind.__name__,
            "module": kind.__module__,
            **({} if kind.model_format == 1 else {MODEL_FORMAT: kind.model_format}),
            "settings": settings_for_json(self.settings_),
            "n_documents": self.n_documents_,
            "tokenizer": self.tokenizer_.model_dump(mode="json"),
            "history": self.history_,
            "named_columns": hasattr(self, "feature_names_in_"),
        }
        if (epoch := vars(self).get("stopped_after_")) is not None:
            config["stopped_after"] = epoch
        encoder: TextEncoder | None = vars(self).get("encoder_")
        if encoder is not None:
            config["encoder"] = encoder.as_json()
        if self.n_lent_tokens_:
            config["n_lent_tokens"] = self.n_lent_tokens_
        if isinstance(self.network_.fields, Mapping):
            config["fields"] = {name: kind for name, kind in self.network_.fields.items() if kind is not None}
        if applied is not None:
            config |= {"topic_names": self.given_names, "edited": applied.as_json(edited_network(self.network_))}
        if self.spellings_:
            config[SPELLINGS] = self.spellings_
        learned = {name: getattr(self, name) for name in (*COUNTS, COMPONENTS)}
        expansion = getattr(self.origin, "expansion_", None)
        card = self._card(config["settings"], keeps_documents=expansion is not None).to_markdown()
        write_model(folder, config, self.network_, self.vocabulary_, learned, expansion, card=card)

    def _card(self, settings: Mapping[str, Any], keeps_documents: bool) -> ModelCard:
        kind, encoder = type(self.origin), vars(self).get("encoder_")
        defaults = {name: each.default for name, each in inspect.signature(kind).parameters.items()}
        changed = {
            name: value
            for name, value in settings.items()
            if name in ("n_topics", "random_state") or value != defaults.get(name)
        }
        return ModelCard(
            model=kind.__name__,
            n_documents=self.n_documents_,
            n_tokens=int(self.word_counts_.sum()),
            n_words=len(self.vocabulary_),
            language=getattr(self.tokenizer_, "language", None),
            topics=self.topics(10, written=True),
            names=self.given_names,
            settings=changed,
            encoder=None if encoder is None else encoder.name,
            keeps_documents=keeps_documents,
            is_edited=self._applied_edits is not None,
        )

    @classmethod
    @usual_device()
    @full_precision()
    def from_saved(cls, config: dict[str, Any], vocabulary: list[str], tensors: dict[str, Tensor]) -> Self:
        """Return a saved model without its edits, given the contents of its files; `topicloom.load` calls this.

        Args:
            config: the content of config.json.
            vocabulary: the V words.
            tensors: the content of model.safetensors. All entries but the weights are removed from it.

        Raises:
            ValueError: the files do not fit together, or contain values that no model can have.
            SettingError: the class does not have a setting, or the value of a setting is not allowed.
        """
        refuse_paths(cls, config["settings"])
        model = cls(**from_text(cls, config["settings"]))
        check_settings(model)
        check_vocabulary(vocabulary)
        check_tensors(tensors, model.n_topics, len(vocabulary))
        model.settings_ = model.get_params(deep=False)
        model.vocabulary_ = vocabulary
        model.tokenizer_ = tokenizer_from_settings(config["tokenizer"])
        model.n_features_in_ = len(vocabulary)
        model.n_documents_ = config["n_documents"]
        if model.n_documents_ < max(1, int(tensors["document_counts_"].max())):
            raise ValueError(f"{CONFIG} says that there were {model.n_documents_} documents, and {WEIGHTS} counts more")
        model.n_lent_tokens_ = float(config.get("n_lent_tokens", 0))
        model.spellings_ = read_spellings(config)
        model.history_ = config["history"]
        if "stopped_after" in config:
            model.stopped_after_ = int(config["stopped_after"])
        about = config.get("encoder")
        model.encoder_ = None if about is None else TextEncoder.from_json(about)
        model.fields_ = {name: field_kind(kind) for name, kind in config.get("fields", {}).items()}
        if config["named_columns"]:
            model.feature_names_in_ = np.array(vocabulary, dtype=object)  # so that columns of data frames are checked
        for name in COUNTS:
            setattr(model, name, tensors.pop(name).numpy())
        tensors.pop(COMPONENTS)  # it is computed from the weights
        words = model.word_statistics()
        network = with_fields(model.build_network(words, torch.Generator().manual_seed(0)), words)
        try:
            network.load_state_dict(tensors)
        except RuntimeError as error:
            reason = str(error).splitlines()[-1].strip()
            raise ValueError(f"{WEIGHTS} does not fit the network that {cls.__name__} builds: {reason}") from None
        if torch.get_default_dtype() != torch.float32:  # a user may have changed it, but batches are float32
            network.float()
        model.adopt_network(network.on(choose_device(model.device), seed=0))
        return model

    # Methods for subclasses

    def adopt_network(self, network: TopicNetwork) -> None:
        """Make a trained network the one that `transform` and `topics` use."""
        self.network_ = network.eval()
        with torch.inference_mode():
            self.components_: Array = network.topic_word().float().cpu().contiguous().numpy()

    def word_statistics(self) -> Words:
        """Return what is known about the vocabulary, for `build_network`."""
        counts = torch.from_numpy(self.word_counts_ + 1.0)
        idf = np.log((1 + self.n_documents_) / (1 + self.document_counts_)) + 1
        log_frequency = (counts / counts.sum()).log().float()
        sizes = self.n_documents_, float(self.word_counts_.sum()) + self.n_lent_tokens_
        seeds = seed_weights(self.seed_words, self.vocabulary_, self.n_topics, fold_word_of(self.tokenizer_))
        idfs = torch.from_numpy(idf).float()
        return Words(log_frequency, idfs, self.vocabulary_, *sizes, seeds, self.fields_, self.n_lent_tokens_)

    def draw_seed(self) -> int:
        """Return a seed that `random_state` determines. The global random state is not read."""
        if self.random_state is None:
            return int(np.random.SeedSequence().generate_state(1)[0] >> 1)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def collapse_watch(self, reader: BatchReader) -> CollapseWatch:
        """Return an object that measures a network for collapse on a sample of the documents."""
        return CollapseWatch.of(reader, self.word_counts_, self.n_topics)

    def warn_of_collapse(self, watch: CollapseWatch) -> None:
        """Warn if the trained network has collapsed. It may be the network of an earlier epoch than the last one."""
        if not current().is_first:
            return
        row = self.history_[-1] | evaluated(self.network_, device_of(self.network_), watch)
        for sentence in watch.advice(self, row):
            logger.warning("%s", sentence)

    def remedies(self, sign: Sign) -> str:
        """Return what to try against a sign that training fails, as a clause such as "try `epochs=120`".

        Args:
            sign: what is wrong.
        """
        if not isinstance(sign, CollapseSign):
            return "check the documents and the settings"
        if sign.kind == "few documents":
            fewer = f"`n_topics={sign.fewer_topics}` or " if sign.fewer_topics < self.n_topics else ""
            return f"try {fewer}more documents"
        return _settings_to_try(self, self.helpful_settings(sign))

    def helpful_settings(self, sign: CollapseSign) -> dict[str, Any]:
        """Return settings with values that help against a sign of collapse. Messages name them in this order.

        Args:
            sign: what is wrong.
        """
        if sign.kind == "one large topic":
            return {"learn_shares": False, "n_topics": 2 * self.n_topics}
        fewer = {"n_topics": sign.fewer_topics} if sign.kind != "idle dimensions" else {}
        longer = {"epochs": 2 * max(sign.epoch, getattr(self, "epochs", None) or 0)}
        return fewer | (longer if sign.kind != "frequent words" else {})

    # The columns of matrices

    def accepted_encoder(self, encoder: Any) -> TextEncoder:
        """Return an encoder, as `TextEncoder.of` takes it, if it can be that of the training documents.

        Raises:
            InputError: it is another one, or cannot be used.
        """
        found = TextEncoder.of(encoder, getattr(self.tokenizer_, "language", None))
        known: TextEncoder | None = vars(self).get("encoder_")
        if known is not None:
            found.require_same(known, "the training documents", "this encoder")
        elif (size := self.fields_.get("vectors", found.size)) != found.size:
            raise InputError(
                f"the vectors of the training documents had {size:,} numbers, and those of {found.name} have "
                f"{found.size:,}; give the encoder that made them"
            )
        return found

    def _over_words(
        self,
        X: Any,
        vocabulary: Vocabulary | None = None,
        left_out: dict[str, float] | None = None,
        *,
        vectors: Any = None,
        encoder: Any = None,
        words_only: bool = False,
    ) -> Corpus:
        corpus = corpus_over(
            X,
            self.vocabulary_,
            self.tokenizer_,
            vocabulary,
            fractional=self.fractional_counts,
            matrix=lambda counts: self._matrix(counts, reset=False),
            columns_of=self._columns,
            left_out=left_out,
        )
        if vectors is not None:
            if encoder is not None:
                raise SettingError("`vectors` and `encoder` both give vectors; give one of them")
            corpus = corpus.with_vectors(vectors)
            corpus.fields.array("vectors", self.fields_.get("vectors"))  # which checks their length
        known: TextEncoder | None = vars(self).get("encoder_")
        if encoder is not None:
            known = self.accepted_encoder(encoder)
        if known is not None and self.reads_vectors:
            if corpus.vectors is None and corpus.texts is not None and not words_only:
                return corpus.with_vectors(encoder=known)
            if corpus.encoder is not None:
                corpus.encoder.require_same(known, "the training documents")
        network: TopicNetwork | None = vars(self).get("network_")  # None during training
        if (vectors is not None or encoder is not None) and not self.reads_vectors and network not in _warned_of:
            logger.warning("%s", WORDS_ALONE)
            if network is not None:
                _warned_of.add(network)
        return corpus if words_only or network is None else self.read_by(network, corpus)

    def read_by(self, network: TopicNetwork, corpus: Corpus) -> Corpus:
        """Return documents that a network can read: without vectors, their topics are inferred from their words.

        A warning says so, once for each network, because a file or a service gives documents in many parts.
        """
        if corpus.vectors is not None or not (_may_lack_vectors(network) or hasattr(self.origin, "expansion_")):
            return corpus
        if network not in _warned_of:
            logger.warning("the documents have no vectors, so their topics are inferred from their words alone")
            _warned_of.add(network)
        return self.without_vectors(corpus, network)

    def without_vectors(self, corpus: Corpus, network: TopicNetwork | None = None) -> Corpus:
        """Return documents with zero vectors if the network may lack vectors. A zero vector stands for no vector.

        Args:
            corpus: the documents.
            network: the network; None is that of the fitted model.
        """
        if not _may_lack_vectors(self.network_ if network is None else network):
            return corpus
        size = self.fields_["vectors"]
        assert isinstance(size, int)
        zero = np.broadcast_to(np.float16(0), (corpus.n_docs, size))  # takes no memory
        return replace(corpus, fields=replace(corpus.fields, vectors=zero))

    def _columns(self) -> dict[str, int]:
        """Return the column of each word. It is computed once for each network."""
        network = getattr(self, "network_", None)
        words, columns = _columns_of.get(network, (None, {})) if network is not None else (None, {})
        if words is not self.vocabulary_:
            columns = {word: column for column, word in enumerate(self.vocabulary_)}
            if network is not None:
                _columns_of[network] = self.vocabulary_, columns
        return columns

    def _matrix(self, X: Any, *, reset: bool = True) -> tuple[Any, Sequence[str] | None]:
        """Check a matrix as scikit-learn does, and return it with the words of its columns if it is a data frame."""
        if not reset:
            self._check_columns(X)
        # Corpus.from_counts checks for values that are not finite, and names their row and column.
        limits = {"ensure_all_finite": False, "ensure_min_features": 2 if reset else 1}
        try:
            matrix = validate_data(self, X, reset=reset, accept_sparse="csr", dtype="numeric", **limits)
        except ValueError as error:
            message = " ".join(str(error).split())  # messages of scikit-learn have several lines and may quote texts
            raise InputError(message if len(message) < 300 else f"{message[:297]}...") from None
        except (TypeError, RuntimeError):
            if isinstance(X, np.ndarray | list | tuple):
                raise  # scikit-learn's own checks expect this error
            raise no_matrix(X) from None  # such as a sparse tensor, or a tensor with a gradient
        return matrix, getattr(self, "feature_names_in_", None)

    def _check_columns(self, X: Any) -> None:
        """Raise InputError if X is a data frame whose columns are words of the model in another order.

        scikit-learn compares the columns only if the model was fitted with a data frame.
        """
        if hasattr(self, "feature_names_in_") or not is_frame(X):
            return
        names = named_columns(X)
        if names != self.vocabulary_ and not set(names).isdisjoint(self.vocabulary_):
            raise InputError(
                "the columns of the data frame are not the words of `vocabulary_` in their order; give "
                "Corpus.from_counts(frame), whose words are found by their names"
            )

    # The interface for scikit-learn and notebooks

    if TYPE_CHECKING:  # the types of a method of scikit-learn, which has none

        def set_output(self, *, transform: Literal["default", "pandas", "polars"] | None = None) -> Self: ...

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> Array:
        """Learn the topics of documents, and return their topic shares.

        Args:
            X: a Corpus, texts, lists of tokens, a data frame with a column "text", or counts (n_docs, V).
            y: not used; it is there for scikit-learn.
            options: further arguments of `fit`, such as `callbacks` or `checkpoint`.

        Returns:
            (n_docs, K) float32; rows sum to 1.

        Raises:
            InputError: X or a setting cannot be used.
            TrainingDivergedError: a loss is not finite.
        """
        kept = list(X) if isinstance(X, Iterator) else X  # X is read twice
        if (encoder := options.pop("encoder", None)) is not None:  # and encoded once
            kept = corpus_of(kept, fractional=self.fractional_counts, encoder=encoder)
        shares: Array = super().fit_transform(kept, y, **options)
        return shares

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> Array:
        """Return a name for each column of theta, such as "gsm0".

        Args:
            input_features: the names of the columns of counts, which are only checked; or, from scikit-learn's
                ColumnTransformer, the name of a column of texts.
        """
        of_texts = input_features is not None and len(input_features) == 1  # counts have two columns or more
        names: Array = super().get_feature_names_out(None if of_texts else input_features)
        return names

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        if self._applied_edits is None:
            text: str = super().__repr__(N_CHAR_MAX)
            return text
        edits = counted(len(self._applied_edits.edits), "edit")
        return f"{self.base_.__repr__(N_CHAR_MAX)} with {edits}: {counted(len(self.components_), 'topic')}"

    @of_one_fit
    def _repr_html_(self) -> str:
        if not hasattr(self, "components_"):  # scikit-learn's diagram
            diagram: str = super()._repr_mimebundle_().get("text/html", "")
            return diagram
        words = self.topics(_WORDS_IN_NOTEBOOKS, written=True)
        rows = zip(range(len(self.components_)), self.topic_names_, words, strict=True)
        n_topics, n_words = self.components_.shape
        return html_table(
            ["topic", "name", "words"],
            list(rows),
            repr(self),
            f"{n_topics} topics over {counted(n_words, 'word')}, of {counted(self.n_documents_, 'document')}",
        )

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(**options)
        if hasattr(self, "components_") and "text/html" in bundle:
            bundle["text/html"] = self._repr_html_()
        return bundle

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


TopicModel.transform = of_one_fit(TopicModel.transform)  # type: ignore[assignment,method-assign]

# scikit-learn breaks the lines of a long representation only if it knows the `__repr__` of the class.
with suppress(ImportError, AttributeError):  # this part of scikit-learn is private
    from sklearn.utils._pprint import _EstimatorPrettyPrinter

    _EstimatorPrettyPrinter._dispatch[TopicModel.__repr__] = _EstimatorPrettyPrinter._pprint_estimator


def _say_what_is_left_out(left_out: Mapping[str, float], n_known: float) -> None:
    """Log the words that `partial_fit` leaves out.

    Args:
        left_out: word -> how often it occurs in the documents.
        n_known: the number of tokens that are not left out.
    """
    n_left_out = sum(left_out.values())
    if not n_left_out:
        return
    share = n_left_out / (n_left_out + n_known)
    names = sorted(left_out, key=lambda word: (-left_out[word], word))[:_NAMED_WORDS]
    logger.log(
        logging.WARNING if share > _MUCH_LEFT_OUT else logging.INFO,
        "`partial_fit` leaves out %s that the model does not know (%.3g %% of the tokens): %s%s",
        counted(len(left_out), "word"), 100 * share, ", ".join(names),
        " and more" if len(left_out) > len(names) else "",
    )  # fmt: skip


def _warn_of_unused_settings(model: Any) -> None:
    """Warn of each setting that was changed and has no effect."""
    if not current().is_first:
        return
    default, published = {field.name: field.default for field in fields(model)}, type(model).published
    for name, where_unused in _without_effect(model).items():
        value = getattr(model, name)
        if value not in (default[name], published.get(name, default[name])):
            logger.warning("`%s=%r` has no effect %s", name, value, where_unused)


def _without_effect(model: Any) -> dict[str, str]:
    """Return the settings that have no effect, and a clause that says where they have none.

    Args:
        model: an estimator. Its class and its base classes may each have a mapping `used_if`.
    """
    conditions: list[UsedIf] = [vars(kind).get("used_if", {}) for kind in type(model).__mro__]
    found = {name: condition for each in reversed(conditions) for name, condition in each.items()}
    return {name: where_unused for name, (where_unused, is_used) in found.items() if not is_used(model)}


def _settings_to_try(model: Any, helpful: Mapping[str, Any]) -> str:
    """Return a clause such as "try `a=1` or `b=2`".

    Suspicious settings that differ from the model's defaults come first. The value to try is their default, because
    defaults are known to work.

    Args:
        model: the estimator.
        helpful: settings with values that help. Those that the model does not have are left out.
    """
    known = dict(helpful)
    now = model.get_params(deep=False)
    default = {field.name: field.default for field in fields(model) if field.init}
    if now.get("kl_weight") is not None and default["kl_weight"] is None:  # the usual one depends on other settings
        default["kl_weight"] = replace(model, kl_weight=None).divergence_weight
    changed = {name: default[name] for name in _SUSPECTS if name in now and now[name] != default[name] is not None}
    if changed:
        known.pop("n_topics", None)  # the number of topics was asked for, and is probably not the cause
    if "patience" not in known and default.get("epochs") is not None and now["epochs"] < default["epochs"]:
        known["epochs"] = default["epochs"]
    others = {
        name: value for name, value in known.items() if name in now and now[name] != value and name not in changed
    }
    settings = changed | others
    if not settings:
        return "try more documents"
    *first, last = [f"`{name}={value!r}`" for name, value in settings.items()]
    return f"try {', '.join(first)} or {last}" if first else f"try {last}"


def published_settings(
    kind: type[Any], recipe: str = PUBLISHED, overrides: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the settings of a paper of a model.

    Args:
        kind: the class of the model.
        recipe: "published" for the paper of the model, or one of its further `recipes`.
        overrides: settings that replace those of the paper.

    Raises:
        SettingError: the model has no such paper, or its defaults are those of its paper.
    """
    further: dict[str, dict[str, Any]] = getattr(kind, "recipes", {})
    settings: dict[str, Any] = further.get(recipe, getattr(kind, "published", {}))
    if recipe != PUBLISHED and recipe not in further:
        known = [PUBLISHED] * bool(settings) + sorted(further)
        has = f"it has {', '.join(map(repr, known))}" if known else "use its defaults"
        raise SettingError(f"{kind.__name__} has no recipe {recipe!r}; {has}")
    if not settings:
        raise SettingError(f"{kind.__name__} has no published configuration that differs from its defaults; use those")
    given = dict(overrides or {})
    replaced = {"hidden_sizes"} if "hidden_size" in given else set()
    return {name: value for name, value in settings.items() if name not in replaced} | given


def _by_value(model: TopicModel) -> tuple[Callable[[bytes], Any], tuple[bytes]]:
    """Send a model to another process by multiprocessing as pickle does it, which copies the weights.

    Without this, torch would share the memory of the weights. Training in the other process would then change this
    model, and no process could be started with a model in which two tensors share memory.
    """
    return pickle.loads, (pickle.dumps(model),)


def theta_of(found: DocumentTopics) -> Array:
    """Return theta, and warn of documents without a known word."""
    if found.empty.any():
        logger.warning("%s", empty_warning(int(found.empty.sum()), len(found)))
    return found.theta


def _may_lack_vectors(network: TopicNetwork) -> bool:
    """Return whether a network reads vectors, and can do without them."""
    return "vectors" in network.optional_fields
