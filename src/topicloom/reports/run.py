"""A run: the directory that training leaves behind.

    model/            what `topicloom.load` reads
    topics.csv        the share, the documents and the words of each topic
    doc_topics.csv    the main topic and the topic shares of each document (or doc_topics.parquet)
    documents/        the training documents with their fields and theta, which `topicloom.Topics.from_run` reads
    explorer.html     the topics and documents as one page, for a browser
    metrics.json      sizes, times, measures, shares, settings, seed, digests, versions, the machine and the source;
                      `evaluate` adds what it finds
    train.yaml        the options of the training, with which `train --config` repeats it
    log.jsonl         a line for each epoch, written while training
    checkpoints/      the state of training, from which a run that was stopped goes on; only until it is complete
    state.safetensors the state at the end of training, from which `train --continue` goes on
    loss.png, collapse.png, quality.png (coherence and diversity), topics.png (and topics-2.png, ... for many topics)

A run is first written beside its place, and then moved there as a whole, so that an earlier run stays until the new one
is complete. Only the log is written in the directory itself; while a run is overwritten, the new log is log.new.jsonl.
"""

from __future__ import annotations

import logging
import math
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from .. import metrics
from ..corpus import Corpus
from ..errors import InputError, MissingExtraError, TrainingDivergedError
from ..files import atomic_directory, link_or_copy, put_in_place
from ..models.base import TopicModel
from ..models.fitted import Perplexity
from ..models.inference import device_of
from ..settings import settings_as_json
from ..topics.document_topics import DocumentTopics
from ..topics.edit_files import read_edits
from ..topics.run_metrics import write_metrics
from ..topics.saved import EDITS
from ..topics.stored import is_too_large, write_stored
from ..topics.tables import describe, write_documents, write_topics
from ..topics.view import Topics
from ..training.callbacks import JsonLines, RunState
from ..training.checkpoints import Checkpoints
from ..training.surroundings import machine, versions
from .explorer import PageOptions, write_page
from .place import LOG, NEW_LOG, OLD_EDITS, PAGE, PICTURES, REPEATED, STATE, is_run_file

logger = logging.getLogger("topicloom")

DocTopics = Literal["csv", "parquet", "none"]

_STAGED = ".new-run"
_WORDS_IN_TABLE = 25


@dataclass(frozen=True)
class RunOptions:
    """What is written into a run.

    Attributes:
        doc_topics: the format of the table of documents.
        texts: whether that table and documents/ hold the texts, if they are known.
        documents: whether documents/ is written; None writes it unless the counts and theta take more than 1 GiB.
        excel: makes CSV files safe to open in Excel: with a byte order mark, and no text that is a formula.
        explorer: whether explorer.html is written.
        font: a font family or file for the pictures; None chooses one that has the characters.
    """

    doc_topics: DocTopics = "csv"
    texts: bool = True
    documents: bool | None = None
    excel: bool = False
    explorer: bool = False
    font: str | None = None


def fit(
    model: TopicModel,
    corpus: Corpus,
    folder: Path | None = None,
    monitor: Sequence[str] = (),
    monitor_every: int = 5,
    checkpoints: Checkpoints | None = None,
    validation: Corpus | None = None,
) -> float:
    """Train a model, write log.jsonl in `folder` meanwhile, and return the seconds that training took.

    Args:
        monitor, monitor_every: what to measure while training, as for `TopicModel.fit`.
        checkpoints: writes the state of training, and goes on from it. The seconds include those before it.
        validation: held-out documents, as for `TopicModel.fit`.

    Raises:
        InputError: the settings or the corpus cannot be used; the folder is as it was.
        TrainingDivergedError: training met a value that is not finite; folder/model holds the last whole epoch.
    """
    began = time.perf_counter()
    try:
        log = [] if folder is None else [_Log(folder, checkpoints)]
        model.fit(
            corpus,
            callbacks=log,
            monitor=monitor,
            monitor_every=monitor_every,
            validation=validation,
            checkpoint=checkpoints,
        )
    except TrainingDivergedError as error:
        if folder is None or not hasattr(model, "components_"):
            raise
        with _new_run(folder) as staged:
            model.save(staged / "model")
        raise TrainingDivergedError(f"{error}; the model of the last whole epoch is in {folder / 'model'}") from None
    earlier = None if checkpoints is None else checkpoints.resumed_from
    return time.perf_counter() - began + (0.0 if earlier is None else earlier.seconds)


def write(
    folder: Path,
    model: TopicModel,
    corpus: Corpus,
    documents: DocumentTopics,
    seconds: float,
    options: RunOptions | None = None,
    source: dict[str, Any] | None = None,
    state: Path | None = None,
    again: str | None = None,
) -> dict[str, Any]:
    """Write the run of a model, and return the contents of metrics.json.

    Args:
        model: fitted to `corpus` in so many seconds.
        documents: the documents of the corpus with their topics.
        source: the "path" that the corpus was read from, and how ("reading"), so that it can be read again; the column
            that divided it ("split"), or the path of the held-out documents ("validation").
        state: a file with the final state of training, which the run keeps.
        again: the content of train.yaml; None writes none.
    """
    options = options or RunOptions()
    measured = measure(model, corpus, seconds) | {"source": source}
    with _new_run(folder) as staged:
        model.save(staged / "model")
        table = describe(model, documents.shares, _WORDS_IN_TABLE)
        write_topics(staged / "topics.csv", table, documents, excel=options.excel)
        if options.doc_topics != "none":
            target = staged / f"doc_topics.{options.doc_topics}"
            write_documents(target, [documents], model, texts=options.texts, excel=options.excel)
        _keep_documents(staged, corpus, documents, options)
        write_metrics(staged, measured | {"shares": [row["share"] for row in table]})
        topics = Topics.of(model, corpus, documents)
        _draw(staged, topics, options.font)
        if state is not None:
            link_or_copy(state, staged / STATE)
        if again is not None:
            (staged / REPEATED).write_text(again, encoding="utf-8", newline="\n")
        if options.explorer:
            _write_page(staged, folder.resolve().name, topics, options, measured)
    _set_edits_aside(folder, model)
    return measured


def _set_edits_aside(folder: Path, model: TopicModel) -> None:
    """Rename the edits that the service stored for an earlier model of this directory."""
    path = folder / EDITS
    if not path.is_file():
        return
    try:
        belongs = read_edits(path).fingerprint in (None, model.fingerprint)
    except InputError:
        belongs = False
    if not belongs:
        path.replace(folder / OLD_EDITS)
        logger.warning("%s has edits of the earlier model; it is %s now, and is not applied", path, OLD_EDITS)


def _write_page(staged: Path, title: str, topics: Topics, options: RunOptions, measured: dict[str, Any]) -> None:
    """Write explorer.html. A run is not lost because its page cannot be written."""
    try:
        write_page(staged / PAGE, topics, PageOptions(title, texts=options.texts), measured)
    except InputError as error:
        logger.warning("explorer.html is not written: %s", error)


def _keep_documents(staged: Path, corpus: Corpus, documents: DocumentTopics, options: RunOptions) -> None:
    """Write documents/, unless it is not wanted or too large."""
    if options.documents is None and is_too_large(corpus, documents.theta.shape[1]):
        logger.warning(
            "the documents take more than 1 GiB and are not kept in the run; `documents=True` keeps them all the same"
        )
    elif options.documents is not False:
        write_stored(staged, corpus, documents.theta, texts=options.texts)


def measure(model: TopicModel, corpus: Corpus, seconds: float) -> dict[str, Any]:
    """Return the contents of metrics.json. Perplexities are those of the training documents, as their names say."""
    ids = model.topic_ids(_WORDS_IN_TABLE).tolist()
    last = model.history_[-1] if model.history_ else {}
    measures = {
        "documents": corpus.n_docs,
        "empty_documents": int(corpus.is_empty.sum()),
        "words": corpus.n_words,
        "tokens": corpus.n_tokens,
        "digest": corpus.counts_digest,
        **({"filters": corpus.settings} if corpus.settings else {}),
        "epochs": int(last.get("epoch", 0)),
        "training_seconds": round(seconds, 3),
        "final": {name: value for name, value in last.items() if name != "epoch"},
        "perplexity_completion_training": _perplexity(model, corpus, "completion"),
        "perplexity_bound_training": _perplexity(model, corpus, "bound"),
        "topic_diversity": metrics.topic_diversity(ids),  # of the 25 best words
        "topic_uniqueness": metrics.topic_uniqueness(ids),  # of the 10 best
        "document_npmi": metrics.document_npmi(ids, corpus.counts),  # of the 10 best
        "model": type(model.origin).__name__,
        "settings": settings_as_json(model.origin),
        **({"edits": model.edits} if model.edits else {}),
        "seed": model.origin.random_state if isinstance(model.origin.random_state, int) else None,
        "fingerprint": model.fingerprint,
        "versions": versions(),
        "machine": machine(device_of(model.network_)),
    }
    return {name: None if _is_not_finite(value) else value for name, value in measures.items()}


def _perplexity(model: TopicModel, corpus: Corpus, method: Perplexity) -> float | None:
    """Return a perplexity, or None if the model or the documents have none."""
    try:
        return model.perplexity(corpus, method)
    except InputError:
        return None


class _Log(JsonLines):
    """The log of a run under way. It has another name beside an earlier run, which stays until this one is complete."""

    def __init__(self, folder: Path, checkpoints: Checkpoints | None) -> None:
        super().__init__(folder / (NEW_LOG if (folder / "model").exists() else LOG))
        self.checkpoints = checkpoints
        self._waiting: list[dict[str, Any]] = []  # rows that are not written yet

    def on_start(self, model: Any, n_epochs: int, n_batches: int) -> None:
        """Begin the log with the epochs that were trained before a checkpoint."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.unlink(missing_ok=True)
        if self.checkpoints is not None and self.checkpoints.resumed_from is not None:
            for row in self.checkpoints.resumed_from.history:
                self.on_epoch(row)

    def on_epoch(self, row: dict[str, Any]) -> None:
        """Write a row. If it cannot be written, training goes on, and the next call tries again."""
        had_failed = bool(self._waiting)
        self._waiting.append(row)
        try:
            self.append(self._waiting)
            self._waiting = []
        except OSError as error:
            if not had_failed:
                logger.warning("%s cannot be written (%s); training goes on without it", self.path, error.strerror)

    def on_finish(self, state: RunState) -> None:
        """Write the rows that could not be written before."""
        with suppress(OSError):
            self.append(self._waiting)
            self._waiting = []


@contextmanager
def _new_run(folder: Path) -> Iterator[Path]:
    """Yield a directory to fill with a run. The run takes the place of an earlier one when it is complete.

    Where `folder` holds other files or links, these stay, and the files of the run are replaced one after another. If
    that is interrupted, documents/ belongs to another model than model/, and is refused.
    """
    entries = list(folder.iterdir()) if folder.is_dir() else []
    ours = {entry.name for entry in entries if is_run_file(entry.name) or entry.name in (EDITS, OLD_EDITS)}
    known = ours - {entry.name for entry in entries if entry.is_symlink()}
    place = folder if len(known) == len(entries) else folder / _STAGED
    left = {entry.name for entry in place.iterdir()} if place.is_dir() else set()
    with atomic_directory(place, LOG, overwrite=True, known=left) as fresh:
        yield fresh
        _take_along(folder, fresh, [] if place is not folder else [EDITS, OLD_EDITS])
    if place is not folder:
        _replace_entries(folder, place)
        shutil.rmtree(place, ignore_errors=True)


def _replace_entries(folder: Path, staged: Path) -> None:
    """Move the files of a run that is complete into a directory that holds other files too."""
    names = {entry.name for place in (folder, staged) for entry in place.iterdir() if is_run_file(entry.name)}
    for name in sorted(names):
        new, old = staged / name, Path(os.path.realpath(folder / name))  # a link stays
        if new.is_dir():
            put_in_place(new, old, overwrite=True)
        elif new.exists():
            new.replace(old)
        elif old.is_dir():
            shutil.rmtree(old)
        else:
            old.unlink(missing_ok=True)


def _take_along(folder: Path, staged: Path, others: Sequence[str]) -> None:
    """Copy the log of training, and other files, into a new run."""
    for name in others:
        if (folder / name).is_file():
            shutil.copyfile(folder / name, staged / name)
    for name in (NEW_LOG, LOG):
        if (folder / name).is_file():
            shutil.copyfile(folder / name, staged / LOG)
            return


def _draw(folder: Path, topics: Topics, font: str | None) -> None:
    try:
        from . import figures
    except ImportError as error:
        missing = MissingExtraError.of(f"drawing {', '.join(PICTURES)}", "matplotlib", "viz")
        logger.warning("%s", error if isinstance(error, MissingExtraError) else missing)
        return
    figures.save_pages(figures.draw(topics, "topics", font=font), folder / "topics.png")
    if history := topics.model.history_:
        figures.save(figures.loss_curve(history), folder / "loss.png")
        figures.save(figures.collapse_curve(history, topics.model.n_topics), folder / "collapse.png")
        figures.save(figures.quality_curve(history), folder / "quality.png")


def _is_not_finite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
