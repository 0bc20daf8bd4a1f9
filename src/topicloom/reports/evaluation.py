"""The evaluation of a run: its documents are read again, and its metrics.json says what was found.

Under "evaluations", metrics.json has one entry for the training documents ("training") and one for each file of others,
by its path. What training wrote there stays.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..corpus import Corpus
from ..corpus.fields import Fields
from ..embeddings.files import read_word_vectors
from ..errors import InputError
from ..evaluation import Evaluation, evaluate
from ..files import read_json, write_json
from ..models.base import TopicModel
from ..models.persistence import load
from ..text import read

logger = logging.getLogger("topicloom")


@dataclass(frozen=True)
class Request:
    """What is asked of `evaluate_run`.

    Attributes:
        new: a file of documents, or a corpus that `prepare` wrote; None is what the run was trained on.
        reading: how it is read (see `topicloom.text.read`); what is not said is as in training, of the same documents.
        labels: a file with a class on each line, blank where it is not known.
        reference: a file of documents, or a corpus, to measure coherence against.
        vectors: a file of word vectors.
        measures, top_n, relevance: as for `topicloom.evaluate`.
        device: where the model runs.
        allow: modules that may be imported for the model's class (see `topicloom.load`).
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


def evaluate_run(folder: Path, request: Request) -> tuple[Evaluation, Path | None]:
    """Evaluates a run, or a saved model, and writes what was found into the run's metrics.json.

    Returns:
        the evaluation, and the file that has it: None for a model without a run.

    Raises:
        InputError: the run, its documents or a file cannot be read; or a measure that was asked for cannot be taken.
    """
    model = load(folder, device=request.device, allow=request.allow)
    path = folder / "metrics.json"
    about = read_json(path) if path.is_file() else {}
    if not isinstance(about, dict):
        raise InputError(f"{path} is damaged; train again, or remove it")
    own = _training_documents(folder, about, request)
    documents = own if request.new is None else _read(request.new, request.reading or {})
    assert documents is not None  # the run's own are there, or an error was raised
    training = None if request.new is None or own is None else _with_labels(model, own)
    found = evaluate(
        model,
        documents.X,
        labels=documents.labels if request.labels is None else _read_labels(request.labels),
        training=training,
        reference=None if request.reference is None else _read(request.reference, {}).X,
        vectors=None if request.vectors is None else read_word_vectors(request.vectors, model.vocabulary_),
        measures=request.measures,
        top_n=request.top_n,
        relevance=request.relevance,
    )
    files = {"documents_from": request.new, "reference_from": request.reference, "vectors_from": request.vectors}
    found.about.update({name: str(file) for name, file in files.items() if file is not None})
    if not (folder / "model").is_dir():
        return found, None
    name = "training" if request.new is None else str(request.new)
    write_json(path, about | {"evaluations": about.get("evaluations", {}) | {name: found.to_dict()}})
    return found, path


@dataclass(frozen=True)
class _Read:
    X: Any  # a Corpus, or a list of texts
    labels: list[str | None] | None = None

    def __len__(self) -> int:
        return len(self.X)


def _training_documents(folder: Path, about: dict[str, Any], request: Request) -> _Read | None:
    """What the run was trained on; None where it cannot be had and is not what is to be evaluated."""
    try:
        source = about.get("source") or {}
        if not source.get("path"):
            raise InputError(f"{folder} does not say which file it was trained on; give the documents to evaluate on")
        reading = source.get("reading", {}) | (request.reading or {} if request.new is None else {})
        documents = _read(source["path"], reading)
        if len(documents) != about.get("documents"):
            raise InputError(
                f"{source['path']} has changed: {about.get('documents')} documents in training, {len(documents)} now; "
                "give the documents to evaluate on"
            )
    except InputError as error:
        if request.new is None:
            raise
        logger.warning(
            "coherence is measured on the documents given, as the training documents are not there: %s", error
        )
        return None
    return documents


def _read(source: str, reading: Mapping[str, Any]) -> _Read:
    if (Path(source) / "corpus.json").is_file():
        return _Read(Corpus.load(source))
    documents = list(read(source, **reading))
    if not documents:
        raise InputError(f"{source} holds no document")
    labels = [document.label for document in documents]
    return _Read([document.text for document in documents], labels if any(labels) else None)


def _with_labels(model: TopicModel, documents: _Read) -> Any:
    """Training documents with their labels, over the model's words."""
    if isinstance(documents.X, Corpus) or documents.labels is None:
        return documents.X
    labels = ["" if label is None else label for label in documents.labels]
    fields = Fields([str(row) for row in range(len(documents))], labels, texts=documents.X)
    return Corpus(model.encode(documents.X), model.vocabulary_, fields, model.tokenizer_)


def _read_labels(path: Path) -> list[str]:
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    except UnicodeDecodeError as error:
        raise InputError(f"{path}, byte {error.start}: not UTF-8; save it as UTF-8") from None
