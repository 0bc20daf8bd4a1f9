"""The files of a run: its topics, documents and measures, read without the network and without PyTorch."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open

from ..errors import CorpusFileError, InputError, ModelFileError
from ..files import (
    as_path,
    atomic_directory,
    can_be_replaced,
    check_digests,
    holds_corpus,
    holds_stopped_run,
    plain_file,
    put_back,
    read_json,
    read_lines,
    read_manifest,
    require_free,
    require_writable,
    write_manifest,
)
from ..ranking import NAME_CANDIDATES, as_written, complete_names, topic_word_ids

if TYPE_CHECKING:  # the documents of a run take long to import, and its topics are read without them
    from ..corpus import Corpus
    from ..corpus.fields import FieldKind
    from .document_topics import DocumentTopics

CONFIG, WEIGHTS, VOCABULARY = "config.json", "model.safetensors", "vocabulary.txt"
NEIGHBOURS = "neighbours.safetensors"  # the training documents, if new ones get words of their neighbours
CARD = "README.md"  # for people; nothing reads it, and its owner may change it
MODEL_FILES = frozenset({CONFIG, WEIGHTS, VOCABULARY, NEIGHBOURS, CARD})
EDITS = "edits.yaml"  # what the service stores in a run
COMPONENTS = "components_"
RETURNING = "returning_topics"  # the measure in metrics.json that needs further fits
MODEL_FORMAT = "model_format"  # the entry with `TopicModel.model_format`; older files have none, which means 1
SPELLINGS = "spellings"  # the entry with `TopicModel.spellings_`; a model without any has none
_SEALED = 3  # the first version whose config.json has a checksum
FORMAT_VERSION = 3  # version 1 has no edits; versions 1 and 2 have no checksum of config.json

# The entries of config.json and their types.
_ENTRIES = {
    "format_version": int,
    "model": str,
    "settings": dict,
    "tokenizer": dict,
    "history": list,
    "n_documents": int,
    "named_columns": bool,
}


@dataclass(frozen=True, eq=False)
class SavedTopics:
    """Topics as distributions over words, with what ranking their words needs.

    Attributes:
        components: (K, V) float32, rows sum to 1.
        vocabulary: the V words.
        word_counts: (V,) tokens of each word in the training corpus.
        names: the name that each topic was given, None for one without; None if no topic was named.
        spellings: how texts write words whose form in the vocabulary is another one: {"strasse": "straße"}.
        n_documents: the number of training documents that are not empty; None if it is not known.
        agreement_: (K,) for an ensemble, the share of its fits that have each topic; None for other models.
    """

    components: npt.NDArray[Any]
    vocabulary: list[str]
    word_counts: npt.NDArray[Any]
    names: list[str | None] | None = None
    spellings: Mapping[str, str] = field(default_factory=dict)
    n_documents: int | None = None
    agreement_: npt.NDArray[Any] | None = None

    @cached_property
    def words(self) -> list[str]:
        """The V words as texts write them, to be read."""
        return as_written(self.vocabulary, self.spellings)

    @property
    def given_names(self) -> list[str | None]:
        """The name that each topic was given; None for one without."""
        return self.names or [None] * len(self.components)

    @property
    def topic_names(self) -> list[str]:
        """A name for each topic: the one that it was given, or else three of its words (`ranking.complete_names`)."""
        ids = self.word_ids(NAME_CANDIDATES)
        words = [[self.words[word] for word in row] for row in ids]
        return complete_names(self.given_names, words, np.take_along_axis(self.components, ids, axis=1).tolist())

    def topics(self, top_n: int = 10, relevance: float | None = None, *, written: bool = False) -> list[list[str]]:
        """Return the words that stand for each topic, best first.

        Args:
            top_n: the number of words of a topic; there are fewer if the vocabulary has fewer.
            relevance: 1 ranks words by probability, 0 by lift (p(w|k) / p(w)). None is the rule of the package, a
                relevance of 0.5 with little effect of the lift of rare words.
            written: whether words have the form that texts commonly have, and not that of the vocabulary.
        """
        words = self.words if written else self.vocabulary
        return [[words[word] for word in row] for row in self.word_ids(top_n, relevance)]

    def word_ids(self, top_n: int = 10, relevance: float | None = None) -> npt.NDArray[np.intp]:
        """Return the words that `topics` returns as columns of components: (K, min(top_n, V))."""
        return topic_word_ids(self.components, self.word_counts, top_n, relevance)


def find_model(directory: str | Path) -> Path:
    """Return the folder of a saved model: `directory`, or model/ in a run directory.

    Raises:
        ModelFileError: there is no model.
    """
    folder = as_path(directory, "directory")
    put_back(folder)
    if not (folder / CONFIG).is_file() and (folder / "model").is_dir():
        folder = folder / "model"
    if not (folder / CONFIG).is_file():
        if holds_corpus(folder):
            raise ModelFileError(f"{folder} is a saved corpus and holds no model; give it to train, which writes one")
        if holds_stopped_run(folder):
            raise ModelFileError(
                f"the run in {folder} is not complete; if it was stopped, repeat its command with `resume=True`"
            )
        if not folder.exists():
            raise ModelFileError(f"{folder} does not exist; check the path")
        if not folder.is_dir():
            raise ModelFileError(f"{folder} is a file; give a run directory, or the directory of a saved model")
        raise ModelFileError(f"{folder} holds no saved model (no {CONFIG}); check the path")
    return folder


def read_config(folder: Path) -> dict[str, Any]:
    """Return config.json of a saved model, after a check of all files against their checksums.

    Raises:
        ModelFileError: a file is missing or damaged, or the model is of a newer format.
    """
    path = folder / CONFIG
    config = read_manifest(path, ModelFileError, FORMAT_VERSION, sealed=_SEALED)
    whole = config.get("format_version", 0) >= _SEALED
    for name, kind in _ENTRIES.items():
        if not isinstance(config.get(name), kind):
            problem = f"{name!r} is {config[name]!r:.60}" if name in config else f"it has no {name!r}"
            raise ModelFileError.other_form(path, problem, whole)
    if not all(isinstance(row, dict) for row in config["history"]):
        raise ModelFileError.other_form(path, "'history' is no list of rows", whole)
    for name, default in (("module", ""), (MODEL_FORMAT, 1)):
        if type(config.setdefault(name, default)) is not type(default):
            raise ModelFileError.other_form(path, f"{name!r} is {config[name]!r:.60}", whole)
    missing = {WEIGHTS, VOCABULARY} - config["sha256"].keys()
    if missing and whole:
        raise ModelFileError.of(path, f"is damaged: it has no checksum of {min(missing)}")
    check_digests(folder, config["sha256"], ModelFileError)
    for name in missing:
        plain_file(folder, name, ModelFileError)
    return config


def weights_digest(folder: Path) -> str | None:
    """Return the checksum of the weights of a saved model that was read before; None if it has none."""
    digest: str | None = read_json(folder / CONFIG, ModelFileError).get("sha256", {}).get(WEIGHTS)
    return digest


def read_vocabulary(folder: Path) -> list[str]:
    """Return the words of a saved model.

    Raises:
        ModelFileError: they cannot be read.
    """
    try:
        return read_lines(folder / VOCABULARY)
    except UnicodeDecodeError as error:
        raise ModelFileError.of(folder / VOCABULARY, f"is damaged: byte {error.start} is not UTF-8") from None


def read_topics(directory: str | Path) -> SavedTopics:
    """Read the topics of a saved model or of a run.

    Raises:
        ModelFileError: there is no model, or it is damaged.
    """
    folder = find_model(directory)
    config = read_config(folder)
    try:
        with safe_open(folder / WEIGHTS, framework="numpy") as file:
            components, counts = file.get_tensor(COMPONENTS), file.get_tensor("word_counts_")
            edits = config.get("edited")
            key = "agreement" if edits is None else "base.agreement"
            were_renamed_at_most = edits is None or not edits["steps"]
            is_known = were_renamed_at_most and key in file.keys()  # noqa: SIM118
            agreement = file.get_tensor(key) if is_known else None
    except OSError as error:
        raise ModelFileError.unreadable(folder / WEIGHTS, error) from None
    except SafetensorError as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ModelFileError.of(folder / WEIGHTS, f"is damaged: {reason}") from None
    words = read_vocabulary(folder)
    if components.ndim != 2 or components.shape[1] != len(words) or counts.shape != (len(words),):
        raise ModelFileError.of(folder / WEIGHTS, f"is damaged: its words are not the {len(words)} of {VOCABULARY}")
    for name, numbers in ((COMPONENTS, components), ("word_counts_", counts)):
        if numbers.dtype.kind not in "fi" or not np.isfinite(numbers).all() or numbers.min() < 0:
            raise ModelFileError.of(folder / WEIGHTS, f"is damaged: {name!r} contains what no model has")
    names = config.get("topic_names")
    if names is not None and (not isinstance(names, list) or len(names) != len(components)):
        raise ModelFileError.of(folder / CONFIG, "is damaged: its topics and their names differ in number")
    try:
        known = agreement if agreement is not None and agreement.shape == (len(components),) else None
        return SavedTopics(components, words, counts, names, read_spellings(config), config["n_documents"], known)
    except ValueError as error:
        raise ModelFileError.of(folder / CONFIG, f"is damaged: {error}") from None


def read_spellings(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the written forms of words in config.json; a model of an earlier version has none.

    Raises:
        ValueError: they are not words.
    """
    found = config.get(SPELLINGS, {})
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise ValueError(f"{SPELLINGS!r} is {found!r:.60}, and not the written form of each word")
    return found


def load_model(run: Path, device: str, allow: Iterable[str], encoder: Any = None) -> Any:
    """Load a model as `topicloom.load` does; the function is looked up when a model is needed.

    Models are above this package, and need PyTorch.
    """
    return import_module("topicloom.models.loading").load(run, device=device, allow=allow, encoder=encoder)


def load_model_of(topics: SavedTopics, run: Path, device: str, allow: Iterable[str], encoder: Any = None) -> Any:
    """Load the model of a run whose topics were read before.

    Args:
        topics: the topics.
        run: the run directory.
        device: where the model runs: "cpu", "cuda" or "mps"; "auto" is a GPU if there is one.
        allow: the names of modules outside the package that may be imported for the model.
        encoder: the encoder of the model's training documents; None is the one that the model names.

    Raises:
        InputError: the run has been replaced by one with other topics since then.
    """
    model = load_model(run, device, allow, encoder)
    is_same = model.vocabulary_ == topics.vocabulary and model.components_.shape == topics.components.shape
    if not is_same or not np.allclose(model.components_, topics.components, rtol=1e-3, atol=1e-6):
        raise InputError(f"the run in {run} was replaced after its topics had been read; read it again")
    return model


# The documents of a run, kept in its folder documents/: a saved Corpus over the model's words, and theta.npy.
#
# They are read without PyTorch, and their counts, texts and theta stay on disk until they are needed.

DOCUMENTS, THETA, POSITIONS = "documents", "theta.npy", "positions.npy"
# Entries of corpus.json: the checksum of the model's weights, and the documents with topics by their vectors alone.
_MODEL, _BY_VECTOR = "model", "topics_by_vector"
_MOST_BYTES_BY_DEFAULT = 1 << 30  # of the counts and theta that a run keeps
_CORPUS_FILE = re.compile(
    r"corpus\.json|vocabulary\.txt|(data|indices|indptr|times|vectors|theta|positions|covariate-\d+)\.npy"
    r"|(ids|labels|texts)\.(utf8|offsets\.npy)"
)


def is_too_large(corpus: Corpus, n_topics: int) -> bool:
    """Return whether the documents of a run are so large that it keeps them only if it is asked to."""
    counts = corpus.counts
    return bool(corpus.n_docs * n_topics * 4 + counts.data.nbytes + counts.indices.nbytes > _MOST_BYTES_BY_DEFAULT)


def holds_only_documents(folder: Path) -> bool:
    """Return whether a folder has nothing but what `write_stored` writes, so that a new run may replace it."""
    return folder.is_dir() and all(_CORPUS_FILE.fullmatch(entry.name) for entry in folder.iterdir())


def write_stored(
    run: Path,
    corpus: Corpus,
    theta: npt.NDArray[Any],
    *,
    texts: bool = True,
    empty: npt.NDArray[np.bool_] | None = None,
    positions: npt.NDArray[Any] | None = None,
) -> None:
    """Write documents with their topics, and the checksum of the model that they belong to.

    Args:
        run: a directory with a saved model, and without documents.
        corpus: the documents, over the model's words.
        theta: (n_docs, K) their topic shares.
        texts: whether the texts are written, if they are known.
        empty: (n_docs,) the documents to which no topic can be assigned; None is those without a known word.
        positions: (n_docs, 2) their places on the map; None writes none.
    """
    from ..corpus.storage import MANIFEST, save_into
    from ..text.strings import write_array

    kept = corpus if texts else replace(corpus, fields=replace(corpus.fields, texts=None))
    with atomic_directory(run / DOCUMENTS, MANIFEST) as staged:
        write_array(staged / THETA, np.asarray(theta, np.float32))
        if positions is not None:
            write_array(staged / POSITIONS, np.asarray(positions, np.float32))
        by_vector = [] if empty is None else np.flatnonzero(corpus.is_empty & ~empty).tolist()
        further = {_BY_VECTOR: by_vector} if by_vector else {}
        save_into(kept, staged, {_MODEL: weights_digest(find_model(run)), **further})


def known_covariates(run: Path) -> dict[str, FieldKind]:
    """Return the kinds of the covariates of a run's documents; nothing if the run does not hold its documents.

    Raises:
        CorpusFileError: the file that says them is damaged.
    """
    from ..corpus.storage import MANIFEST

    path = run / DOCUMENTS / MANIFEST
    if not path.is_file():
        return {}
    about = read_json(path, CorpusFileError)
    try:
        kinds = {each["name"]: each["categories"] for each in about["covariates"]}
        return {str(name): 1 if names is None else tuple(map(str, names)) for name, names in kinds.items()}
    except (KeyError, TypeError):
        raise CorpusFileError.of(path, "is damaged") from None


def read_stored(run: Path, vocabulary: list[str], n_topics: int) -> tuple[Corpus, DocumentTopics]:
    """Read the documents of a run.

    Args:
        run: the run directory.
        vocabulary: the words of its model.
        n_topics: the number of topics of its model.

    Raises:
        CorpusFileError: the run keeps no documents, or they are damaged or of another model.
    """
    from ..corpus import Corpus
    from ..corpus.storage import MANIFEST
    from ..text.strings import load_array, pieces
    from .document_topics import DocumentTopics

    folder = run / DOCUMENTS
    if not (folder / MANIFEST).is_file():
        raise CorpusFileError(
            f"{run} does not hold its documents (no {DOCUMENTS}/{MANIFEST}); train it again so that "
            "it keeps them, or make `Topics` of its model and the documents"
        )
    corpus = Corpus.load(folder)
    theta = load_array(folder / THETA, mmap=True)
    about = read_json(folder / MANIFEST)
    model = about.get(_MODEL)
    belongs = model in (None, weights_digest(find_model(run))) and corpus.vocabulary == vocabulary
    if not belongs or theta.shape != (corpus.n_docs, n_topics) or theta.dtype.kind != "f":
        raise CorpusFileError(f"{folder} does not belong to the model in {run}; train the run again")
    if not all(np.isfinite(part).all() for part in pieces(theta)):
        raise CorpusFileError.of(folder / THETA, "is damaged: it contains a number that is not finite")
    empty = corpus.is_empty
    if (rows := about.get(_BY_VECTOR)) is not None:
        if not isinstance(rows, list) or any(type(row) is not int or not 0 <= row < len(empty) for row in rows):
            raise CorpusFileError.of(folder / MANIFEST, "is damaged")
        empty = empty.copy()
        empty[rows] = False
    places = load_array(folder / POSITIONS, mmap=False) if (folder / POSITIONS).is_file() else None
    if places is not None and (places.shape != (len(theta), 2) or not np.isfinite(places).all()):
        raise CorpusFileError.of(folder / POSITIONS, "is damaged")
    return corpus, DocumentTopics(theta, empty, corpus.fields, places)


# metrics.json of a run: what was measured, and the topics' shares of the documents, with a checksum of its content.

# Entries of metrics.json of a run that has got more documents, or was merged from other runs.
UPDATES, TRAINED_ON, MERGED = "updates", "trained_on", "merged"
METRICS, TOPICS = "metrics.json", "topics.csv"
_METRICS_VERSION = 1  # older runs have no version and no checksum, and only topics.csv has their shares


def write_metrics(run: Path, content: Mapping[str, Any]) -> None:
    """Write metrics.json of a run."""
    write_manifest(run / METRICS, {**content, "format_version": _METRICS_VERSION})


def past_of(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return what metrics.json of a run says about updates and merging."""
    return {name: about[name] for name in (UPDATES, TRAINED_ON, MERGED) if name in about}


def trained_on(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return where the training documents of a run were read from, and how, given its metrics.json."""
    return about.get(TRAINED_ON, about.get("source")) or {}


def read_label_column(run: Path) -> str | None:
    """Return the column that the labels of a run were read from; None if no file of the run names it."""
    import yaml

    try:
        found = trained_on(read_metrics(run)).get("reading", {}).get("label")
        if found is None:  # as after training on standard input
            options = yaml.safe_load((run / TRAINING_OPTIONS).read_text(encoding="utf-8"))
            found = options.get("label") if isinstance(options, dict) else None
    except (ModelFileError, OSError, UnicodeDecodeError, yaml.YAMLError):  # topics can be read without these files
        return None
    return found if isinstance(found, str) else None


def read_metrics(run: Path) -> dict[str, Any]:
    """Return the contents of metrics.json of a run; nothing if the run is a model alone.

    Raises:
        ModelFileError: the file is missing, damaged or of a newer format.
    """
    if not (run / METRICS).exists() and not (run / TOPICS).exists():
        return {}
    return read_manifest(run / METRICS, ModelFileError, _METRICS_VERSION, sealed=1)


def read_shares(run: Path, n_topics: int) -> list[float] | None:
    """Return the topics' shares of the training documents; None if they are not known, or are those of another model.

    Raises:
        ModelFileError: metrics.json, or topics.csv of an older run, is damaged.
    """
    metrics = read_metrics(run)
    shares = metrics["shares"] if "shares" in metrics else _shares_in_table(run)
    return shares if shares is not None and len(shares) == n_topics else None


def _shares_in_table(run: Path) -> list[float] | None:
    path = run / TOPICS
    if not path.exists():
        return None
    try:
        with plain_file(run, TOPICS, ModelFileError).open(encoding="utf-8-sig", newline="") as file:
            return [float(row["share"]) for row in csv.DictReader(file)]
    except (KeyError, ValueError, TypeError, csv.Error):
        raise ModelFileError.of(path, "is damaged") from None


# Checks of the place where a run is to be written, before anything that takes time and without PyTorch.

INDEX = "search.sqlite"  # of the documents, which the service builds and a new run removes
OLD_EDITS = "edits.old.yaml"  # what the service stored in an earlier run
LOG, NEW_LOG = "log.jsonl", "log.new.jsonl"
CHECKPOINTS, STATE = "checkpoints", "state.safetensors"  # of a run under way, and of one that has finished
PICTURES = ("loss.png", "collapse.png", "quality.png", "topics.png")
_MORE_TOPICS = re.compile(r"topics-\d+\.png")  # further pages, if there are too many topics for one
PAGE = "explorer.html"
TRAINING_OPTIONS = "train.yaml"
ANSWERS = "language_model.json"  # what language models said about the topics
REFITS, RETURNS = "refits", "stability.png"  # the topics of further fits, and a picture of those that return
_TABLES = (TOPICS, "doc_topics.csv", "doc_topics.parquet", METRICS)
RUN_FILES = frozenset(
    {
        "model", DOCUMENTS, *_TABLES, PAGE, INDEX, LOG, NEW_LOG, CHECKPOINTS, STATE, TRAINING_OPTIONS, ANSWERS, REFITS,
        RETURNS, *PICTURES,
    }
)  # fmt: skip


def is_run_file(name: str) -> bool:
    """Whether a run may hold a file of this name."""
    return name in RUN_FILES or _MORE_TOPICS.fullmatch(name) is not None


def require_place(folder: Path, overwrite: bool = False, resume: bool = False) -> None:
    """Check that a run can be written at `folder`, before anything takes time.

    A folder may hold other files: a run writes and replaces its own only.

    Args:
        overwrite: whether an earlier run may be replaced.
        resume: whether a run that was stopped goes on. One that has finished stays as it is.

    Raises:
        InputError: `folder` holds a run, or other files, and `overwrite` is off; or it is a file, or cannot be written.
    """
    require_writable(folder / "model" if os.path.isdir(folder) and not can_be_replaced(folder) else folder)
    if holds_stopped_run(folder):
        if not (resume or overwrite):
            raise InputError(
                f"{folder} holds a run that was stopped; `resume=True` goes on with it, `overwrite=True` starts again"
            )
        if resume:
            return
    if is_unfinished(folder) or (resume and is_finished(folder)):
        return
    if not (overwrite and folder.is_dir()):
        require_free(folder, LOG)
    require_free(folder / "model", CONFIG, overwrite, MODEL_FILES)
    documents = folder / DOCUMENTS
    if documents.exists() and not holds_only_documents(documents):
        raise InputError(f"{documents} holds files that no run wrote, and is not overwritten; give another place")


def is_finished(folder: Path) -> bool:
    """Whether a directory has a run that is complete, with the final state of its training."""
    return (folder / STATE).is_file() and not holds_stopped_run(folder)


def is_unfinished(folder: Path) -> bool:
    """Whether a directory holds nothing but the log and the checkpoints of a run that was stopped."""
    return folder.is_dir() and {path.name for path in folder.iterdir()} <= {LOG, NEW_LOG, CHECKPOINTS}
