"""The evaluation of a run: its documents are read again, or taken from it, and its metrics.json gets the results.

Under "evaluations", metrics.json has one entry for the training documents ("training") and one for each file of others,
by its path. What training wrote there stays.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..corpus import Corpus
from ..corpus.reading import documents_of_file, parts_of_source
from ..embeddings import read_word_vectors
from ..errors import InputError
from ..evaluation import Evaluation, evaluate
from ..files import holds_corpus, lock_directory
from ..models.base import TopicModel
from ..models.persistence import load
from ..topics.document_topics import require_known
from ..topics.run_metrics import METRICS, read_metrics, write_metrics
from ..topics.stored import DOCUMENTS, read_stored

logger = logging.getLogger("topicloom")


@dataclass(frozen=True)
class Request:
    """What `evaluate_run` is asked for.

    Attributes:
        new: a file of documents, or a corpus that `prepare` wrote; None is what the run was trained on.
        reading: how the file is read (see `topicloom.text.read`). For the training documents, arguments that are not
            given are those of training.
        labels: a file with a class on each line, blank where it is not known.
        reference: a file of documents, or a corpus, to measure coherence against.
        vectors: a file of word vectors.
        measures, top_n, relevance: as for `topicloom.evaluate`.
        device: where the model runs.
        allow: modules that may be imported for the model's class (see `topicloom.load`).
        force: whether to go on even if most of the new documents contain no word that the model knows.
    """

    new: str | None = None
    reading: Mapping[str, Any] | None = None
    labels: Path | None = None
    reference: str | None = None
    vectors: Path | None = None
    measures: Sequence[str] | None = None
    top_n: int | None = None
    relevance: float | None = None
    device: str = "auto"
    allow: Sequence[str] = ()
    force: bool = False


def evaluate_run(folder: Path, request: Request, show: Callable[[Evaluation], None]) -> Path | None:
    """Evaluate a run, or a saved model, show the results, and write them into the run's metrics.json.

    Where the results cannot be written, such as on a read-only disk, a warning says so.

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
        try:
            write_metrics(folder, about | {"evaluations": _earlier(about) | {name: found.to_dict()}})
        except OSError as error:
            reason = error.strerror or error
            logger.warning("the results are not stored, because %s cannot be written (%s)", folder / METRICS, reason)
            return None
    return folder / METRICS


def _evaluated(folder: Path, request: Request) -> Evaluation:
    """Evaluate a run or a saved model."""
    model = load(folder, device=request.device, allow=request.allow)
    about = read_metrics(folder)
    training = _training_documents(folder, model, about, request)
    given = training if request.new is None else _read(model, request.new, request.reading or {})
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
    found = evaluate(
        model,
        given,
        labels=None if request.labels is None else _read_labels(request.labels),
        training=None if request.new is None else training,
        reference=None if request.reference is None else _read(model, request.reference, {}),
        vectors=None if request.vectors is None else read_word_vectors(request.vectors, model.vocabulary_),
        measures=request.measures,
        top_n=request.top_n,
        relevance=request.relevance,
    )
    files = {"documents_from": request.new, "reference_from": request.reference, "vectors_from": request.vectors}
    found.about.update({name: str(file) for name, file in files.items() if file is not None})
    return found


def _earlier(about: dict[str, Any]) -> dict[str, Any]:
    earlier = about.get("evaluations", {})
    return earlier if isinstance(earlier, dict) else {}


def _training_documents(folder: Path, model: TopicModel, about: dict[str, Any], request: Request) -> Corpus | None:
    """The documents of the run, or None if they are not available and other documents are evaluated.

    They are read again from their file. If that cannot be done, they are those that the run holds.
    """
    if _source(about).get("document_vectors") and (held := _held(folder, model, request)) is not None:
        return held  # with their vectors, which are in a file of their own
    try:
        return _read_again(folder, model, about, request)
    except InputError as error:
        if (held := _held(folder, model, request)) is not None:
            if _source(about):
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


def _is_divided_source(new: str, about: dict[str, Any]) -> bool:
    """Whether a part of these documents, which a column named, was what the run was trained on."""
    source = _source(about)
    return "split" in source and Path(new).resolve() == Path(source["path"]).resolve()


def _read_again(folder: Path, model: TopicModel, about: dict[str, Any], request: Request) -> Corpus:
    """The documents of the run, from their file."""
    source = _source(about)
    if not source:
        raise InputError(f"{folder} does not say which file it was trained on; give the documents to evaluate on")
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


def _read(model: TopicModel, source: str, reading: Mapping[str, Any]) -> Corpus:
    """The documents of a file, or of a corpus that `prepare` wrote, over the model's words."""
    if holds_corpus(source):
        return model.documents(Corpus.load(source))
    return next(documents_of_file(source, model.vocabulary_, model.tokenizer_, reading, model.origin.fields_))


def _read_labels(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}, byte {error.start}: not UTF-8; save it as UTF-8") from None
    return [line.strip() for line in text.removesuffix("\n").split("\n")]  # no other character ends a line
