"""A run: the directory that training leaves behind, and tables of documents with their topics.

    model/            what `topicloom.load` reads
    topics.csv        share, documents and words of each topic
    doc_topics.csv    each document's topic and shares (or doc_topics.parquet)
    metrics.json      sizes, times, measures, settings, versions and the source; what `evaluate` finds is added
    log.jsonl         a line per epoch, written while training
    loss.png, collapse.png, quality.png (coherence and diversity), topics.png

All but log.jsonl are written whole or not at all. While a run is overwritten, the new log is log.new.jsonl.
"""

from __future__ import annotations

import csv
import logging
import math
import platform
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, TypedDict

import numpy as np
import numpy.typing as npt
import torch

from .. import metrics
from .._version import __version__
from ..corpus import Corpus
from ..errors import InputError, MissingExtraError, TrainingDivergedError
from ..files import atomic_file, write_json
from ..models.base import TopicModel
from ..settings import settings_as_json
from ..topics.saved import SavedTopics
from ..training.callbacks import JsonLines

logger = logging.getLogger("topicloom")

DocTopics = Literal["csv", "parquet", "none"]
Array = npt.NDArray[Any]

_LOG, _NEW_LOG = "log.jsonl", "log.new.jsonl"
_PICTURES = ("loss.png", "collapse.png", "quality.png", "topics.png")
_FILES = ("topics.csv", "doc_topics.csv", "doc_topics.parquet", "metrics.json", *_PICTURES)
_WORDS_IN_TABLE = 25
_WORDS_IN_PICTURE = 10


class Topic(TypedDict):
    """A topic as a reader meets it."""

    topic: int
    share: float | None  # mean of theta over the documents; None is not known
    words: list[str]


class Part(NamedTuple):
    """Some documents with their topics."""

    ids: list[str]
    theta: Array  # (D, K)
    empty: Array  # (D,) True for a document without a known word, which has no topic of its own
    labels: list[str] | None = None

    @property
    def topics(self) -> list[int | None]:
        """The largest topic of each document, None where it is empty."""
        best = self.theta.argmax(axis=1).tolist()
        return [None if empty else topic for topic, empty in zip(best, self.empty, strict=True)]

    @property
    def shares(self) -> Array:
        """(K,) mean of theta over the documents that have words."""
        mean: Array = self.theta[~self.empty].mean(axis=0)
        return mean


def fit(
    model: TopicModel,
    corpus: Corpus,
    folder: Path | None = None,
    monitor: Sequence[str] = (),
    monitor_every: int = 5,
) -> float:
    """Trains, with log.jsonl growing in `folder`; returns the seconds that took.

    Args:
        monitor, monitor_every: what to measure while training, as for `TopicModel.fit`.

    Raises:
        InputError: the settings or the corpus cannot be used; the folder is as it was.
        TrainingDivergedError: training met a value that is not finite; folder/model holds the last whole epoch.
    """
    began = time.perf_counter()
    try:
        log = [] if folder is None else [_Log(folder)]
        model.fit(corpus, callbacks=log, monitor=monitor, monitor_every=monitor_every)
    except TrainingDivergedError as error:
        if folder is None or not hasattr(model, "components_"):
            raise
        _clear(folder)
        model.save(folder / "model", overwrite=True)
        raise TrainingDivergedError(f"{error}; the model of the last whole epoch is in {folder / 'model'}") from None
    return time.perf_counter() - began


def write(
    folder: Path,
    model: TopicModel,
    corpus: Corpus,
    documents: Part,
    seconds: float,
    doc_topics: DocTopics = "csv",
    source: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Writes the run of a model that was fitted to `corpus` in so many seconds; returns what metrics.json holds.

    Args:
        documents: the documents of the corpus with their topics.
        source: the "path" that the corpus was read from, and how ("reading"), so that it can be read again.
    """
    _clear(folder)
    model.save(folder / "model", overwrite=True)
    _write_topics(folder / "topics.csv", describe(model, documents.shares, _WORDS_IN_TABLE), documents)
    if doc_topics != "none":
        write_documents(folder / f"doc_topics.{doc_topics}", [documents])
    measured = measure(model, corpus, seconds) | {"source": source}
    write_json(folder / "metrics.json", measured)
    _draw(folder, model, documents)
    return measured


def describe(
    model: TopicModel | SavedTopics, shares: Iterable[float] | None, top_n: int, relevance: float | None = None
) -> list[Topic]:
    """The topics of a model as rows of a table.

    Args:
        shares: (K,) the part of the corpus that each topic has, where it is known.
        relevance: as for `TopicModel.topics`.
    """
    words = model.topics(top_n, relevance)
    known = [None] * len(words) if shares is None else [round(float(share), 6) for share in shares]
    return [Topic(topic=k, share=known[k], words=words[k]) for k in range(len(words))]


def read_shares(folder: Path, n_topics: int) -> list[float] | None:
    """The topics' shares of the training corpus, from topics.csv; None where a model was saved without them."""
    try:
        with (folder / "topics.csv").open(encoding="utf-8", newline="") as file:
            shares = [float(row["share"]) for row in csv.DictReader(file)]
    except FileNotFoundError:
        return None
    except (KeyError, ValueError):
        raise InputError(f"{folder / 'topics.csv'} is damaged; train again, or remove it") from None
    return shares if len(shares) == n_topics else None


def measure(model: TopicModel, corpus: Corpus, seconds: float) -> dict[str, Any]:
    """Return the contents of metrics.json. Perplexities are those of the training documents, as their names say."""
    ids = model.topic_ids(_WORDS_IN_TABLE).tolist()
    last = model.history_[-1] if model.history_ else {}
    measures = {
        "documents": corpus.n_docs,
        "empty_documents": int(corpus.is_empty.sum()),
        "words": corpus.n_words,
        "tokens": corpus.n_tokens,
        "epochs": int(last.get("epoch", 0)),
        "training_seconds": round(seconds, 3),
        "final": {name: value for name, value in last.items() if name != "epoch"},
        "perplexity_bound_training": model.perplexity(corpus),
        "perplexity_completion_training": _completion(model, corpus),
        "topic_diversity": metrics.topic_diversity(ids),  # of the 25 best words
        "topic_uniqueness": metrics.topic_uniqueness(ids),  # of the 10 best
        "document_npmi": metrics.document_npmi(ids, corpus.counts),  # of the 10 best
        "model": type(model).__name__,
        "settings": settings_as_json(model),
        "versions": {"topicloom": __version__, "torch": torch.__version__, "python": platform.python_version()},
    }
    return {name: None if _is_endless(value) else value for name, value in measures.items()}


def _completion(model: TopicModel, corpus: Corpus) -> float | None:
    """None for weights, which no coin can divide."""
    whole = np.array_equal(corpus.counts.data, np.floor(corpus.counts.data))
    return model.perplexity(corpus, method="completion") if whole else None


def write_documents(target: Path | IO[str], parts: Iterable[Part]) -> None:
    """Writes id, label (where there are labels), topic and the share of each topic, part by part.

    Args:
        target: a file, .parquet or else CSV; or an open stream, for CSV.

    Raises:
        MissingExtraError: a .parquet file without pyarrow.
    """
    if not isinstance(target, Path):
        _write_csv(target, parts)
    elif target.suffix.lower() == ".parquet":
        _write_parquet(target, parts)
    else:
        with atomic_file(target) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
            _write_csv(file, parts)


class _Log(JsonLines):
    """log.jsonl as it grows; beside an earlier run it has another name, as that run stays whole until this one is."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / (_NEW_LOG if _holds_model(folder) else _LOG))

    def on_start(self, model: Any, n_epochs: int, n_batches: int) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.unlink(missing_ok=True)


def _holds_model(folder: Path) -> bool:
    return (folder / "model" / "config.json").is_file()  # any other folder of this name is not ours to remove


def is_unfinished(folder: Path) -> bool:
    """Whether a directory holds nothing but the log of a run that was cut off."""
    return folder.is_dir() and {path.name for path in folder.iterdir()} <= {_LOG, _NEW_LOG}


def _clear(folder: Path) -> None:
    """Remove the tables and pictures of an earlier run, so that no directory mixes two, and give the new log its name.

    The model stays until the new one replaces it.
    """
    new_log = folder / _NEW_LOG
    for name in _FILES:
        (folder / name).unlink(missing_ok=True)
    if new_log.exists():
        new_log.replace(folder / _LOG)


def _write_topics(path: Path, topics: list[Topic], documents: Part) -> None:
    counts = Counter(documents.topics)
    with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["topic", "share", "documents", "words"])
        for topic in topics:
            table.writerow([topic["topic"], topic["share"], counts[topic["topic"]], " ".join(topic["words"])])


def _columns(part: Part) -> list[str]:
    label = [] if part.labels is None else ["label"]
    return ["id", *label, "topic", *(f"topic_{k}" for k in range(part.theta.shape[1]))]


def _write_csv(file: IO[str], parts: Iterable[Part]) -> None:
    table = csv.writer(file, lineterminator="\n")
    for number, part in enumerate(parts):
        if number == 0:
            table.writerow(_columns(part))
        names = zip(part.ids, *([] if part.labels is None else [part.labels]), strict=True)
        shares = part.theta.astype(np.float64).round(6).tolist()
        for name, topic, row in zip(names, part.topics, shares, strict=True):
            table.writerow([*name, topic, *row])


def _write_parquet(path: Path, parts: Iterable[Part]) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError.of("a .parquet file", "pyarrow", "io") from None
    writer = None
    with atomic_file(path) as temporary, ExitStack() as stack:
        for part in parts:
            topics = pyarrow.array(part.topics, pyarrow.int32())
            columns = [part.ids, *([] if part.labels is None else [part.labels]), topics]
            table = pyarrow.table([*columns, *part.theta.T], names=_columns(part))
            writer = writer or stack.enter_context(parquet.ParquetWriter(temporary, table.schema))
            writer.write_table(table)


def _draw(folder: Path, model: TopicModel, documents: Part) -> None:
    try:
        from . import figures
    except ImportError:
        logger.warning("%s", MissingExtraError.of(f"drawing {', '.join(_PICTURES)}", "matplotlib", "viz"))
        return
    topics = describe(model, documents.shares, _WORDS_IN_PICTURE)
    weights = np.take_along_axis(model.components_, model.topic_ids(_WORDS_IN_PICTURE), axis=1).tolist()
    titles = [f"topic {topic['topic']} · {topic['share']:.1%}" for topic in topics]
    figures.save(figures.topic_bars([topic["words"] for topic in topics], weights, titles), folder / "topics.png")
    if model.history_:
        figures.save(figures.loss_curve(model.history_), folder / "loss.png")
        figures.save(figures.collapse_curve(model.history_, model.n_topics), folder / "collapse.png")
        figures.save(figures.quality_curve(model.history_), folder / "quality.png")


def _is_endless(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
