"""Commands of one model: from text to a run, and what is done with a run."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from .corpora import need_order, open_corpus
from .options import (
    Allow,
    AsJson,
    Config,
    Device,
    DocTopics,
    Epochs,
    Model,
    Overwrite,
    Preparing,
    Quiet,
    Reading,
    Run,
    Seed,
    Source,
    Topics,
    Words,
    read_names,
    read_setting,
)
from .shell import (
    command,
    muted,
    print_evaluation,
    print_json,
    print_table,
    show_topics,
)

if TYPE_CHECKING:
    from ..corpus import Corpus
    from ..models.base import TopicModel
    from ..reports.run import Part

logger = logging.getLogger("topicloom")

_CHUNK = 10_000  # documents inferred at a time
_MONITORED = "document_npmi"  # needs no more than the counts


@command
def demo(
    topics: Topics = 20,
    model: Model = "loom",
    epochs: Epochs = None,
    seed: Seed = 0,
    device: Device = "auto",
    words: Words = 10,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep the run here; else nothing is written.")] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Train on the documentation of this Python's library, and show the topics."""
    _require_free(out, overwrite)
    chosen = _model(model, {"n_topics": topics, "random_state": seed, "device": device, "verbose": not quiet}, epochs)
    from ..datasets import python_docs

    corpus = python_docs()
    logger.info("%s: the documentation of this Python's standard library", corpus)
    _train(chosen, corpus, out, DocTopics.csv, words, quiet, as_json)


@command
def prepare(
    source: Source,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the corpus goes.")],
    options: Preparing,
    texts: Annotated[bool, typer.Option("--texts/--no-texts", help="Keep the raw texts in the corpus.")] = True,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Turn text into a corpus of word counts, to train on it more than once."""
    from ..corpus import Corpus
    from ..files import require_free

    require_free(out, "corpus.json", overwrite)
    if (Path(source) / "corpus.json").is_file():
        raise InputError(f"{source} is a saved corpus already; give the text that it was made of")
    corpus = Corpus.from_file(
        source, **asdict(options), keep_texts=texts, out=out, overwrite=overwrite, progress=not quiet
    )
    logger.info("%s in %s", corpus, out)
    if as_json:
        print_json(
            {
                "corpus": str(out),
                "n_documents": corpus.n_docs,
                "n_empty_documents": int(corpus.is_empty.sum()),
                "n_words": corpus.n_words,
                "n_tokens": corpus.n_tokens,
            }
        )


@command
def train(
    options: Preparing,
    source: Annotated[
        str | None, typer.Argument(help="A corpus that prepare wrote, or any text that prepare takes.")
    ] = None,
    config: Config = None,
    model: Model = "loom",
    topics: Topics = 20,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Where the run goes; runs/NAME by default.")] = None,
    epochs: Epochs = None,
    seed: Seed = 0,
    device: Device = "auto",
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Any setting of the model; repeatable.")
    ] = None,
    doc_topics: Annotated[DocTopics, typer.Option(help="Format of the table of documents.")] = DocTopics.csv,
    monitor: Annotated[
        str, typer.Option(metavar="NAME,NAME", help="Measures of the topics while training, such as c_npmi; or none.")
    ] = _MONITORED,
    monitor_every: Annotated[int, typer.Option(min=1, help="Epochs from one such measurement to the next.")] = 5,
    words: Words = 10,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Train a model, write its run directory, and show the topics."""
    if source is None:
        raise InputError("there is nothing to train on; give a file of text, a corpus, or - for standard input")
    out = out or Path("runs") / _stem(source)
    _require_free(out, overwrite)
    given = config | dict(read_setting(text) for text in settings or [])
    for name, option in {"n_topics": "topics", "random_state": "seed", "epochs": "epochs", "device": "device"}.items():
        if name in given:
            raise InputError(f"{name} has an option of its own: give --{option}, or {option} in the file of --config")
    own = {"n_topics": topics, "random_state": seed, "device": device, "verbose": not quiet}
    chosen = _model(model, own | given, epochs)
    watched = _monitored(monitor)
    corpus = open_corpus(source, options, progress=not quiet, keep_texts=need_order(watched))
    logger.info("%s", corpus)
    given_source = None if source == "-" else {"path": str(Path(source).resolve()), "reading": _reading(options)}
    _train(chosen, corpus, out, doc_topics, words, quiet, as_json, given_source, watched, monitor_every)


@command
def models(
    name: Annotated[str | None, typer.Argument(metavar="[MODEL]", help="One of them, to see its settings.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the models, or the settings of one: what each may be, its default, and what it means."""
    from ..models.registry import REGISTRY

    if name is None:
        summaries = {kind: entry.summary for kind, entry in REGISTRY.items()}
        if as_json:
            print_json({"models": [{"name": kind, "summary": said} for kind, said in summaries.items()]})
        else:
            print_table(["model", "what it is"], summaries.items())
        return
    from ..models.persistence import model_class
    from ..settings import describe_settings

    kind = model_class(name)
    settings = describe_settings(kind)
    if as_json:
        print_json({"model": kind.__name__, "settings": [asdict(setting) for setting in settings]})
    else:
        rows = ([s.name, json.dumps(s.default), f"{s.type}: {s.meaning}"] for s in settings)
        print_table(["setting", "default", "what it may be, and what it means"], rows)


@command
def topics(
    run: Run,
    words: Words = 10,
    relevance: Annotated[
        float | None, typer.Option(help="1 ranks words by probability; less favours words rare elsewhere.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the topics of a run."""
    from ..reports.run import describe, read_shares
    from ..topics.saved import read_topics

    saved = read_topics(run)
    found = describe(saved, read_shares(run, len(saved.components)), words, relevance)
    if as_json:
        print_json({"run": str(run), "topics": found})
    else:
        show_topics(found)


@command
def infer(
    run: Run,
    file: Source,
    options: Reading,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A .csv or .parquet file; standard output by default.")
    ] = None,
    device: Device = "auto",
    allow: Allow = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Find the topics of new documents: a row each, in their order, with the share of every topic."""
    if out is not None and out.suffix.lower() not in (".csv", ".parquet"):
        raise InputError(f"{out} ends in neither .csv nor .parquet; give a name that does")
    if out is not None and out.exists() and not overwrite:
        raise InputError(f"{out} already exists; give another name, or --overwrite to replace it")
    from ..models.persistence import load
    from ..reports.run import write_documents

    write_documents(out or sys.stdout, _inferred(load(run, device=device, allow=allow or ()), file, options))
    if out is not None:
        logger.info("wrote %s", out)


@command
def evaluate(
    run: Run,
    options: Reading,
    texts: Annotated[
        str | None,
        typer.Argument(
            metavar="[NEW_TEXTS]", help="Documents as for train, best not of the training ones; those by default."
        ),
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A class on each line, for the documents.")
    ] = None,
    reference: Annotated[
        str | None, typer.Option(metavar="FILE", help="Other documents to measure coherence against.")
    ] = None,
    vectors: Annotated[Path | None, typer.Option(metavar="FILE", help="Word vectors, for measures of meaning.")] = None,
    measures: Annotated[
        str | None, typer.Option(metavar="NAME,NAME", help="These measures only; all by default.")
    ] = None,
    words: Annotated[
        int | None, typer.Option(min=1, help="Words of a topic that are read; each measure's own number by default.")
    ] = None,
    relevance: Annotated[float | None, typer.Option(help="How topics rank their words, as in topics.")] = None,
    device: Device = "auto",
    allow: Allow = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Measure a run: coherence, diversity, perplexity, classes, collapse; into its metrics.json and a table."""
    from ..reports.evaluation import Request, evaluate_run

    names = None if measures is None else read_names(measures)
    request = Request(
        texts, _reading(options), labels, reference, vectors, names, words, relevance, device, allow or ()
    )
    found, path = evaluate_run(run, request)
    if as_json:
        print_json({"run": str(run), **found.to_dict()})
    else:
        print_evaluation(found)
    if path is not None:
        logger.info("written to %s", path)


def _monitored(text: str) -> list[str]:
    """Return the measures that --monitor names, so that a mistake is reported before anything is read."""
    from ..metrics.catalogue import known_measures, measures_of

    return [] if text == "none" else known_measures(read_names(text), measures_of("monitor"), "--monitor")


def _inferred(model: TopicModel, file: str, options: Reading) -> Iterator[Part]:
    """The topics of a file's documents, a bounded number at a time; one warning at the end counts the empty ones."""
    import numpy as np

    from ..reports.run import Part
    from ..text import read
    from ..text.counting import counts_of

    documents = read(file, **asdict(options))
    n_done = n_empty = 0
    while chunk := list(islice(documents, _CHUNK)):
        counts = counts_of((document.text for document in chunk), model.vocabulary_, model.tokenizer_)
        empty = np.diff(counts.indptr) == 0
        with muted():
            theta = model.transform(counts)
        ids = [str(row) if document.id is None else document.id for row, document in enumerate(chunk, n_done)]
        labels = [document.label or "" for document in chunk] if options.label else None
        yield Part(ids, theta, empty, labels)
        n_done, n_empty = n_done + len(chunk), n_empty + int(empty.sum())
    if n_empty:
        logger.warning(
            "%d of %d documents have no word that the model knows; they get the prior's mean", n_empty, n_done
        )


def _reading(options: Reading) -> dict[str, Any]:
    """What the options say of reading the file, where it is not the default."""
    return {f.name: getattr(options, f.name) for f in fields(Reading) if getattr(options, f.name) != f.default}


def _train(
    model: TopicModel,
    corpus: Corpus,
    out: Path | None,
    doc_topics: DocTopics,
    words: int,
    quiet: bool,
    as_json: bool,
    source: dict[str, Any] | None = None,
    monitor: Sequence[str] = (_MONITORED,),
    monitor_every: int = 5,
) -> None:
    from ..reports import run

    seconds = run.fit(model, corpus, out, monitor, monitor_every)
    with muted():  # the corpus has told of its empty documents
        theta = model.transform(corpus)
    documents = run.Part(corpus.ids, theta, corpus.is_empty, corpus.labels)
    found = run.describe(model, documents.shares, words)
    measured = None
    if out is not None:
        measured = run.write(out, model, corpus, documents, seconds, doc_topics.value, source)
    if as_json:
        print_json(
            {
                "run": None if out is None else str(out),
                "n_documents": corpus.n_docs,
                "n_words": corpus.n_words,
                "seconds": round(seconds, 3),
                "topics": found,
                "metrics": measured,
            }
        )
    elif not quiet:
        show_topics(found)
    logger.info("trained in %.1f seconds%s", seconds, "" if out is None else f"; the run is in {out}")


def _model(name: str, settings: dict[str, Any], epochs: int | None) -> TopicModel:
    """A model whose settings hold and whose device is there, so that mistakes are told before anything is read."""
    from ..models.persistence import model_class
    from ..settings import check_settings, from_text
    from ..training.batches import choose_device

    if epochs is not None:
        settings = settings | {"epochs": epochs}
    kind = model_class(name)
    model = kind(**from_text(kind, settings))
    check_settings(model)
    choose_device(model.device)
    return model


def _stem(source: str) -> str:
    """'data/news.txt.gz' -> 'news'"""
    return "stdin" if source == "-" else Path(source).resolve().name.split(".")[0] or "run"


def _require_free(out: Path | None, overwrite: bool) -> None:
    """Into a directory, --overwrite writes a run's own files and no others, whatever else is there."""
    from ..files import require_free
    from ..models.saving import MODEL_FILES
    from ..reports.run import is_unfinished

    if out is None or is_unfinished(out):
        return
    if not (overwrite and out.is_dir()):
        require_free(out, "log.jsonl")
    require_free(out / "model", "config.json", overwrite, MODEL_FILES)
