"""A run: the directory that training leaves behind, its edited form and its evaluation."""

from __future__ import annotations

import logging
import math
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from .. import metrics
from ..corpus import Corpus
from ..corpus.inputs import parts_of_source, stored_or_read
from ..distributed import current
from ..errors import (
    InputError,
    MissingExtraError,
    OutOfMemoryError,
    StateNotSavedError,
    TrainingDivergedError,
)
from ..files import atomic_directory, can_be_replaced, holds_corpus, link_or_copy, located, lock_directory, put_in_place
from ..messages import counted, joined, without_backquotes
from ..models.base import Perplexity, TopicModel
from ..models.inference import device_of
from ..models.loading import load
from ..models.refitting import Variation, require_variation
from ..settings import settings_as_json
from ..text.strings import replace_surrogates
from ..topics.document_topics import DocumentTopics, require_known
from ..topics.edits import Edit, EditsFile, joint_edits, read_edits, write_edits
from ..topics.positions import MOST_PLACED
from ..topics.saved import (
    ANSWERS,
    DOCUMENTS,
    EDITS,
    LOG,
    METRICS,
    NEW_LOG,
    OLD_EDITS,
    PAGE,
    PICTURES,
    REFITS,
    RETURNING,
    RETURNS,
    STATE,
    TOPICS,
    TRAINING_OPTIONS,
    is_run_file,
    is_too_large,
    past_of,
    read_metrics,
    read_stored,
    write_metrics,
    write_stored,
)
from ..topics.table import BOM, describe, write_documents, write_topics
from ..training.callbacks import JsonLines, RunState
from ..training.checkpoints import Checkpoints, machine, versions
from .wording import FigureLanguage

if TYPE_CHECKING:
    from ..corpus.fields import Vectors
    from ..evaluation import Evaluation
    from ..topics.language_model import LanguageModelAnswers
    from ..topics.view import Topics

logger = logging.getLogger("topicloom")

DocTopics = Literal["csv", "parquet", "none"]

_STAGED = ".new-run"  # the folder of a new run inside a directory with other files
_PICTURES_OF_TRAINING = ["loss.png", "collapse.png", "quality.png"]
_WORDS_IN_TABLE = 25
_MANY_DOCUMENTS = 5_000  # with which steps after training take seconds


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
        figure_language: "en" or "zh", the language of the pictures; "auto" is Chinese if the texts are Chinese, and
            otherwise English.
    """

    doc_topics: DocTopics = "csv"
    texts: bool = True
    documents: bool | None = None
    excel: bool = False
    explorer: bool = False
    font: str | None = None
    figure_language: FigureLanguage = "auto"


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
        monitor: the names of measures that are taken while training.
        monitor_every: the number of epochs between two measurements.
        checkpoints: writes the state of training, and goes on from it. The seconds include those before it.
        validation: held-out documents, whose loss is measured after each epoch.

    Raises:
        InputError: the settings or the corpus cannot be used; the folder is as it was.
        TrainingDivergedError: training met a value that is not finite; folder/model holds the last whole epoch.
    """
    began = time.perf_counter()
    try:
        log = [] if folder is None else [_Log(folder, checkpoints)]
        with suppress(StateNotSavedError):  # a warning has said it, and the run is still to be written
            model.fit(
                corpus,
                callbacks=log,
                monitor=monitor,
                monitor_every=monitor_every,
                validation=validation,
                checkpoint=checkpoints,
            )
    except (TrainingDivergedError, OutOfMemoryError) as error:
        error.kept = ""  # only what is written outlives the command
        if isinstance(error, OutOfMemoryError) or folder is None or not hasattr(model, "components_"):
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
    answers: LanguageModelAnswers | None = None,
    further: Mapping[str, Any] | None = None,
    edits: EditsFile | None = None,
    drawn: Path | None = None,
) -> dict[str, Any]:
    """Write the run of a model, and return the contents of metrics.json.

    Args:
        model: fitted to `corpus`.
        corpus: the documents that the model was fitted to.
        documents: the same documents with their topics.
        seconds: how long the fit took.
        options: what is written; None is the default of each option.
        source: the "path" that the corpus was read from, and how ("reading"), so that it can be read again; the column
            that divided it ("split"), or the path of the held-out documents ("validation").
        state: a file with the final state of training, which the run keeps.
        again: the content of train.yaml; None writes none.
        answers: what language models said about the topics.
        further: further entries of metrics.json, about updates.
        edits: the edits of the model that the service has stored and that the run keeps.
        drawn: an earlier run of the same training, whose pictures of it are taken along.
    """
    options = options or RunOptions()
    measured = measure(model, corpus, seconds) | {"source": source, **(further or {})}
    from ..topics.view import Topics

    topics = Topics.of(model, corpus, documents)
    with ThreadPoolExecutor(1) as other, _new_run(folder) as staged:
        places = options.explorer and len(documents) <= MOST_PLACED
        placing = other.submit(topics.positions) if places else None  # t-SNE leaves the interpreter to this thread
        model.save(staged / "model")
        table = describe(model, documents.shares, _WORDS_IN_TABLE)
        write_topics(staged / TOPICS, table, documents, excel=options.excel)
        if options.doc_topics != "none":
            target = staged / f"doc_topics.{options.doc_topics}"
            write_documents(target, [documents], model, texts=options.texts, excel=options.excel)
        if answers:
            topics.answers = answers
            answers.copy_to(staged / ANSWERS)
        write_metrics(staged, measured | {"shares": [row["share"] for row in table]})
        _say_step("placing documents on the map, and drawing pictures", documents)
        _draw(staged, topics, options, drawn)
        if placing is not None:
            placing.result()
        _keep_documents(staged, corpus, topics.documents, options)  # with their places
        if state is not None:
            link_or_copy(state, staged / STATE)
        if again is not None:
            (staged / TRAINING_OPTIONS).write_text(again, encoding="utf-8", newline="\n")
        if edits is not None:
            write_edits(staged / EDITS, edits.edits, edits.fingerprint or model.fingerprint, sealed=True)
        if options.explorer:
            _say_step("writing the page", documents)
            _write_page(staged, folder.resolve().name, topics, options, measured)
    if edits is None:
        _set_edits_aside(folder, model)
    return measured


def _say_step(step: str, documents: DocumentTopics) -> None:
    """Log a step that takes seconds with many documents."""
    if len(documents) >= _MANY_DOCUMENTS:
        logger.info("%s", step)


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
    from .explorer import PageOptions, write_page

    try:
        write_page(staged / PAGE, topics, PageOptions(replace_surrogates(title), texts=options.texts), measured)
    except InputError as error:
        logger.warning("explorer.html is not written: %s", error)


def _keep_documents(staged: Path, corpus: Corpus, documents: DocumentTopics, options: RunOptions) -> None:
    """Write documents/, unless it is not wanted or too large."""
    if options.documents is None and is_too_large(corpus, documents.theta.shape[1]):
        logger.warning(
            "the documents take more than 1 GiB and are not kept in the run; `documents=True` keeps them all the same"
        )
    elif options.documents is not False:
        theta, empty, places = documents.theta, documents.empty, documents.positions
        write_stored(staged, corpus, theta, texts=options.texts, empty=empty, positions=places)


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
        "processes": current().size,  # that trained together
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
    that is interrupted, documents/ belongs to another model than model/, and is refused. The same happens where the
    folder itself cannot be replaced, such as a mounted one.
    """
    entries = list(folder.iterdir()) if folder.is_dir() else []
    ours = {entry.name for entry in entries if is_run_file(entry.name) or entry.name in (EDITS, OLD_EDITS)}
    known = ours - {entry.name for entry in entries if entry.is_symlink()}
    is_ours = len(known) == len(entries) and (not folder.is_dir() or can_be_replaced(folder))
    place = folder if is_ours else folder / _STAGED
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
        if (folder / name).is_file() and not (staged / name).exists():
            shutil.copyfile(folder / name, staged / name)
    for name in (NEW_LOG, LOG):
        if (folder / name).is_file():
            shutil.copyfile(folder / name, staged / LOG)
            return


def _draw(folder: Path, topics: Topics, options: RunOptions, earlier: Path | None = None) -> None:
    try:
        from . import figures
    except ImportError as error:
        missing = MissingExtraError.of(f"drawing {', '.join(PICTURES)}", "matplotlib", "viz")
        logger.warning("%s", error if isinstance(error, MissingExtraError) else missing)
        return
    drawn = figures.Options(font=options.font, language=options.figure_language).with_language(topics)
    style: dict[str, Any] = {"font": drawn.font, "language": drawn.language}
    figures.save_pages(figures.draw(topics, "topics", **style), folder / "topics.png")
    if earlier is not None and all((earlier / name).is_file() for name in _PICTURES_OF_TRAINING):
        for name in _PICTURES_OF_TRAINING:
            shutil.copyfile(earlier / name, folder / name)
    elif history := topics.model.history_:
        figures.save(figures.loss_curve(history, **style), folder / "loss.png")
        figures.save(figures.collapse_curve(history, topics.model.origin.n_topics, **style), folder / "collapse.png")
        figures.save(figures.quality_curve(history, **style), folder / "quality.png")


def _is_not_finite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


# The run of an edited model.


def edited_topics(topics: Topics, paths: Sequence[Path], further: Iterable[Mapping[str, Any]] = ()) -> Topics:
    """Return topics after the edits of files, and further ones.

    Args:
        topics: the topics of a run.
        paths: files of edits of their model, or of the model that it was trained as. The edits that the run has had
            since then stay.
        further: edits by the same numbers.

    Raises:
        InputError: a file cannot be read or belongs to another model, two files contradict each other, or an edit
            cannot be applied.
    """
    from ..topics.view import Topics

    edits: list[Edit] = [dict(edit) for edit in further]
    if not paths:
        return topics.apply(edits)
    files = [(path, read_edits(path)) for path in paths]
    origin, before = topics.model.origin, list[Edit]()
    if origin is not topics.model and any(file.fingerprint == origin.fingerprint for _, file in files):
        before, topics = topics.edits, Topics(origin, topics.corpus)
    for path, file in files:
        file.check(topics.model.fingerprint, path)
    whole = joint_edits(before, [(str(path), file.edits) for path, file in files], topics.n_topics)
    try:
        return topics.apply([*whole, *edits])
    except InputError as error:
        raise InputError(f"{joined(paths)}: {without_backquotes(str(error))}") from None


def write_edited(
    run: Path,
    out: Path,
    topics: Topics,
    options: RunOptions | None = None,
    updates: Mapping[str, Any] | None = None,
    edits: EditsFile | None = None,
) -> dict[str, Any]:
    """Write the run of edited topics, or of more documents, and return the contents of its metrics.json.

    Args:
        run: the run that the topics were read from; its source, its log and its time of training are kept.
        out: the directory of the new run. It may be `run` itself, which is then replaced.
        topics: the edited topics.
        options: what is written; None is what `run` has.
        updates: what metrics.json says about updates; None is what it says in `run`.
        edits: the edits that the service has stored and that the new run keeps.
    """
    about = read_metrics(run)
    if updates is None:
        updates = past_of(about)
    options = options or options_of(run)
    as_before = options.font is None and options.figure_language == "auto"
    seconds = about.get("training_seconds")
    with _log_of(run, out):
        return write(
            out,
            topics.model,
            topics.corpus,
            topics.documents,
            float(seconds) if isinstance(seconds, int | float) else 0.0,
            options,
            None if updates else about.get("source"),
            answers=topics.answers,
            further=updates,
            edits=edits,
            drawn=run if as_before else None,
        )


@contextmanager
def _log_of(run: Path, out: Path) -> Iterator[None]:
    """Put the log of a run where `write` looks for it, and remove it again on an exception."""
    if not (run / LOG).is_file() or out.resolve() == run.resolve():
        yield
        return
    log = out / (NEW_LOG if (out / "model").exists() else LOG)
    out.mkdir(parents=True, exist_ok=True)
    try:
        shutil.copyfile(run / LOG, log)
        yield
    except BaseException:
        log.unlink(missing_ok=True)
        with suppress(OSError):
            out.rmdir()  # unless it holds something
        raise


def options_of(run: Path) -> RunOptions:
    """Return the options that write the same files as an earlier run has."""
    kinds: list[DocTopics] = ["csv", "parquet"]
    table = next((kind for kind in kinds if (run / f"doc_topics.{kind}").is_file()), None)
    excel = (run / TOPICS).is_file() and (run / TOPICS).read_bytes().startswith(BOM.encode())
    return RunOptions(doc_topics=table or "none", documents=True, excel=excel, explorer=(run / PAGE).is_file())


# The evaluation of a run. Under "evaluations", metrics.json has one entry for the training documents ("training") and
# one for each file of others, by its path. What training wrote there stays.


@dataclass(frozen=True)
class Request:
    """What `evaluate_run` is asked for.

    Attributes:
        new: a file of documents, or a corpus that `prepare` wrote; None is what the run was trained on.
        reading: how the file is read (see `topicloom.text.read`). For the training documents, arguments that are not
            given are those of training.
        labels: a file with a class on each line, blank where it is not known.
        reference: a file of documents, or a corpus, to measure coherence against.
        vectors: (n_docs, E) the vectors of the new documents.
        encoder: the encoder of the training documents, if the model does not name it.
        word_vectors: a file of word vectors.
        measures: names of measures; None takes all that can be taken.
        top_n: the number of words of a topic to use; None is each measure's own number.
        relevance: how topics rank their words, from 0 (by lift) to 1 (by probability); None is the package's rule.
        device: where the model runs.
        allow: modules that may be imported for the model's class (see `topicloom.load`).
        force: whether to go on even if most of the new documents contain no word that the model knows.
        stability: how often the model is fitted again, to see which topics return.
        vary: what differs between these fits.
        font: a font family or file for the picture of the topics that return; None chooses one.
        figure_language: "en" or "zh", the language of this picture; "auto" is that of the texts.
    """

    new: str | list[str] | None = None
    reading: Mapping[str, Any] | None = None
    labels: Path | None = None
    reference: str | None = None
    vectors: Vectors | None = None
    encoder: Any = None
    word_vectors: Path | None = None
    measures: Sequence[str] | None = None
    top_n: int | None = None
    relevance: float | None = None
    device: str = "auto"
    allow: Sequence[str] = ()
    force: bool = False
    stability: int = 0
    vary: Sequence[Variation] = ("seed",)
    font: str | None = None
    figure_language: FigureLanguage = "auto"


def evaluate_run(folder: Path, request: Request, show: Callable[[Evaluation], None]) -> Path | None:
    """Evaluate a run, or a saved model, show the results, and write them into the run's metrics.json.

    Where the results cannot be written, such as on a read-only disk, the log says so as an error. The topics of further
    fits are kept in the directory, and an evaluation that was interrupted goes on with them. What an earlier evaluation
    of the same documents found about topics that return is kept, too.

    Args:
        show: gets the results before they are written.

    Returns:
        the file that has the results: None for a model without a run, or if they could not be written.

    Raises:
        InputError: the run, its documents or a file cannot be read, most of the new documents contain no word that
            the model knows, a measure that was asked for cannot be taken, or another process is writing to the run.
    """
    if not (folder / "model").is_dir():
        show(_evaluated(folder, request))
        return None
    with lock_directory(folder):
        found = _evaluated(folder, request)
        show(found)
        about = read_metrics(folder)
        name = "training" if request.new is None else str(request.new)
        content = _with_earlier_returns(found.to_dict(), _earlier(about).get(name))
        try:
            write_metrics(folder, about | {"evaluations": _earlier(about) | {name: content}})
            if found.stability:
                _draw_returns(folder, found, content["stability"], request)
        except OSError as error:
            reason = error.strerror or error
            logger.error("the results are not stored, because %s cannot be written (%s)", folder / METRICS, reason)
            return None
    return folder / METRICS


def _with_earlier_returns(content: dict[str, Any], earlier: Any) -> dict[str, Any]:
    """Return the content of an evaluation with what an earlier one found about topics that return."""
    before = earlier.get("stability") if isinstance(earlier, dict) else None
    if not isinstance(before, dict):
        return content
    content["stability"] = before | content.get("stability", {})
    measures = earlier.get("measures", {})
    if RETURNING in content["skipped"] and isinstance(measures, dict) and RETURNING in measures:
        content["measures"][RETURNING] = measures[RETURNING]
        del content["skipped"][RETURNING]
    return content


def _draw_returns(folder: Path, found: Evaluation, returns: Mapping[str, Any], request: Request) -> None:
    """Draw the picture of the topics that return, if matplotlib is installed."""
    try:
        from . import figures
    except ImportError as error:
        logger.warning("%s", error)
        return
    from ..topics.publication import chosen_language

    model = load(folder, device="cpu", allow=request.allow, encoder=request.encoder)
    figure = figures.returning_topics(
        {vary: each["similarity"] for vary, each in returns.items()}, found.topic_names,
        threshold=next(iter(found.stability.values())).threshold, font=request.font,
        language=chosen_language(request.figure_language, model.tokenizer_),
    )  # fmt: skip
    figures.save(figure, folder / RETURNS)
    logger.info("the picture of the topics that return is %s", folder / RETURNS)


def _evaluated(folder: Path, request: Request) -> Evaluation:
    """Evaluate a run or a saved model."""
    from ..embeddings import read_word_vectors
    from ..evaluation import evaluate

    for vary in request.vary:
        require_variation(vary)
    model = load(folder, device=request.device, allow=request.allow, encoder=request.encoder)
    about = read_metrics(folder)
    training = _training_documents(folder, model, about, request)
    given = training if request.new is None else _read(model, request.new, request.reading or {}, request.vectors)
    assert given is not None  # without the run's own documents, an error was raised
    if request.new is not None and not request.force:
        require_known(int(given.is_empty.sum()), len(given), given.texts, model.tokenizer_)
    if request.new is not None and given.counts_digest == about.get("digest"):
        logger.warning(
            "%s contains the documents that the model was trained on, so they are not new to it", request.new
        )
        training = None  # measures are those of training documents
    elif request.new is not None and _is_divided_source(request.new, about):
        logger.warning(
            "%s contains the documents that the model was trained on, besides others; give a file of the others, to "
            "measure on new documents",
            request.new,
        )
    if request.stability:
        _announce_fits(about, request, training)
    found = evaluate(
        model,
        given,
        labels=None if request.labels is None else _read_labels(request.labels),
        training=None if request.new is None else training,
        reference=None if request.reference is None else _stored(model, request.reference, {}),
        word_vectors=None
        if request.word_vectors is None
        else read_word_vectors(request.word_vectors, model.vocabulary_),
        measures=request.measures,
        top_n=request.top_n,
        relevance=request.relevance,
        stability=request.stability,
        vary=request.vary,
        refits=folder / REFITS if request.stability and (folder / "model").is_dir() else None,
    )
    files = {
        "documents_from": request.new,
        "reference_from": request.reference,
        "word_vectors_from": request.word_vectors,
    }
    found.about.update({name: str(file) for name, file in files.items() if file is not None})
    return found


def _announce_fits(about: Mapping[str, Any], request: Request, training: Corpus | None) -> None:
    """Say how many fits will be made, and how long each of them takes.

    Raises:
        InputError: the training documents are not available.
    """
    if training is None and request.new is not None:
        raise InputError("the training documents are not available, so `stability` cannot fit the model again")
    seconds = about.get("training_seconds")
    each = f", about {seconds:.0f} seconds each" if isinstance(seconds, int | float) else ""
    logger.info("%s of the model%s", counted(request.stability * len(request.vary), "further fit"), each)


def _earlier(about: dict[str, Any]) -> dict[str, Any]:
    earlier = about.get("evaluations", {})
    return earlier if isinstance(earlier, dict) else {}


def _training_documents(folder: Path, model: TopicModel, about: dict[str, Any], request: Request) -> Corpus | None:
    """The documents of the run, or None if they are not available and other documents are evaluated.

    They are read again from their file. If that cannot be done, they are those that the run holds.
    """
    source = _source(about)
    if (source.get("document_vectors") or source.get("encoder")) and (
        held := _held(folder, model, request)
    ) is not None:
        return held  # with their vectors, which are in a file of their own, or were made
    try:
        return _read_again(folder, model, about, request)
    except InputError as error:
        if (held := _held(folder, model, request)) is not None:
            if source:
                reason = str(error).partition(";")[0]
                logger.warning("the training documents are those that %s holds, because %s", folder / DOCUMENTS, reason)
            return held
        if request.new is None:
            raise
        logger.warning(
            "coherence is measured on the documents given, because the training documents are not available: %s", error
        )
        return None


def _source(about: dict[str, Any]) -> dict[str, Any]:
    """Where the documents of a run were read from; empty if it does not say so."""
    source = about.get("source")
    return source if isinstance(source, dict) and source.get("path") else {}


def _is_divided_source(new: str | list[str], about: dict[str, Any]) -> bool:
    """Whether a part of these documents, which a column named, was what the run was trained on."""
    source = _source(about)
    return "split" in source and located(new) == located(source["path"])


def _read_again(folder: Path, model: TopicModel, about: dict[str, Any], request: Request) -> Corpus:
    """The documents of the run, from their file."""
    source = _source(about)
    if not source:
        raise InputError(f"{folder} does not name its documents; give the documents to evaluate on")
    reading = source.get("reading", {}) | (request.reading or {} if request.new is None else {})
    if column := source.get("split"):
        further = model.tokenizer_, reading, model.origin.fields_
        documents = parts_of_source(source["path"], model.vocabulary_, *further, column).train
    else:
        documents = _read(model, source["path"], reading)
    if len(documents) != about.get("documents"):
        raise InputError(
            f"{source['path']} has changed: {about.get('documents')} documents in training, {len(documents)} now; "
            "give the documents to evaluate on"
        )
    if about.get("digest") is not None and documents.counts_digest != about["digest"]:
        raise InputError(
            f"{source['path']} has changed since training: its documents have other words; give the documents to "
            "evaluate on"
        )
    return documents


def _held(folder: Path, model: TopicModel, request: Request) -> Corpus | None:
    """The training documents that the run holds; None if it holds none, or if they were to be read in another way."""
    if not holds_corpus(folder / DOCUMENTS) or (request.new is None and request.reading):
        return None
    return read_stored(folder, model.vocabulary_, model.n_topics)[0]


def _read(
    model: TopicModel, source: str | list[str], reading: Mapping[str, Any], vectors: Vectors | None = None
) -> Corpus:
    """The documents of a file, or of a corpus that `prepare` wrote, over the model's words.

    Without vectors of their own, their texts are encoded if the model reads vectors.
    """
    return model.documents(_stored(model, source, reading), vectors=vectors)


def _stored(model: TopicModel, source: str | list[str], reading: Mapping[str, Any]) -> Corpus:
    """The documents of a file, or of a corpus that `prepare` wrote, with the vectors that they have."""
    return stored_or_read(source, model.vocabulary_, model.tokenizer_, reading, model.origin.fields_)


def _read_labels(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}, byte {error.start}: not UTF-8; save it as UTF-8") from None
    return [line.strip() for line in text.removesuffix("\n").split("\n")]  # no other character ends a line
