"""Commands that make a corpus or a run: demo, prepare and train."""

from __future__ import annotations

import logging
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._version import __version__
from ..errors import InputError
from ..files import holds_corpus
from .continuing import continue_run
from .corpora import check_source, need_order, open_corpus, with_covariates, with_document_vectors
from .held_out import HeldOut
from .options import (
    Allow,
    AsJson,
    Config,
    Covariates,
    Device,
    DocTopics,
    DocumentVectors,
    Epochs,
    Excel,
    FigureLanguage,
    FigureLanguages,
    Font,
    Model,
    Overwrite,
    Preparing,
    Quiet,
    Reading,
    Recipe,
    Seed,
    Source,
    Topics,
    Words,
    read_names,
    read_setting,
)
from .outcome import MONITORED, Outcome, train_run
from .repeating import repeating
from .shell import command, print_json
from .together import are_several, together

if TYPE_CHECKING:
    from ..models.base import TopicModel

logger = logging.getLogger("topicloom")

_MODEL, _TOPICS = "loom", 20  # by default


@command
def demo(
    topics: Topics = _TOPICS,
    model: Model = _MODEL,
    epochs: Epochs = None,
    seed: Seed = 0,
    device: Device = "auto",
    words: Words = 10,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the run here. By default nothing is written.")
    ] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Train on the documentation of this Python's standard library, and show the topics."""
    outcome = Outcome(out, words=words, quiet=quiet, as_json=as_json, overwrite=overwrite)
    outcome.require_place()
    chosen = _model(model, {"n_topics": topics, "random_state": seed, "device": device, "verbose": not quiet}, epochs)
    from ..datasets import python_docs

    with outcome.locked():
        corpus = python_docs()
        logger.info("%s: the documentation of this Python's standard library", corpus)
        train_run(chosen, corpus, outcome)


@command
def prepare(
    source: Source,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the corpus is written.")],
    options: Preparing,
    covariate: Covariates = None,
    document_vectors: DocumentVectors = None,
    texts: Annotated[bool, typer.Option("--texts/--no-texts", help="Keep the raw texts in the corpus.")] = True,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Turn text into a corpus of word counts, to train on it more than once."""
    from ..corpus import Corpus
    from ..files import require_free

    require_free(out, "corpus.json", overwrite)
    add = with_covariates(source, options, covariate or [])
    add_vectors = with_document_vectors(source, options, document_vectors)
    corpus = Corpus.from_file(
        source, **asdict(options), keep_texts=texts, out=out, overwrite=overwrite, progress=not quiet
    )
    if covariate or document_vectors:
        add_vectors(add(corpus)).save(out, overwrite=True)
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
    model: Model = _MODEL,
    topics: Topics = _TOPICS,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the run is written; runs/NAME by default.")
    ] = None,
    epochs: Epochs = None,
    recipe: Annotated[
        Recipe, typer.Option(help="The values of settings that you do not give: the defaults, or those of the paper.")
    ] = Recipe.default,
    seed: Seed = 0,
    device: Device = "auto",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting that `models NAME` lists; repeatable."),
    ] = None,
    covariate: Covariates = None,
    document_vectors: DocumentVectors = None,
    split: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column that says train, validation or test for each document. The loss of validation documents is "
            "measured after each epoch, and test documents are not used.",
        ),
    ] = None,
    validation: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Validation documents: a corpus, or a file that is read like the other."),
    ] = None,
    doc_topics: Annotated[
        DocTopics, typer.Option(help="Format of the table of documents; none omits it.")
    ] = DocTopics.csv,
    texts: Annotated[
        bool, typer.Option("--texts/--no-texts", help="Write the texts into the table of documents and documents/.")
    ] = True,
    documents: Annotated[
        bool | None,
        typer.Option(
            "--documents/--no-documents",
            help="Keep the documents in the run, for looking at its topics and editing them; by default up to 1 GiB.",
        ),
    ] = None,
    excel: Excel = False,
    explorer: Annotated[
        bool, typer.Option("--explorer/--no-explorer", help="Write explorer.html, a page of topics and documents.")
    ] = True,
    font: Font = None,
    figure_language: FigureLanguage = FigureLanguages.auto,
    monitor: Annotated[
        str, typer.Option(metavar="NAME,NAME", help="Measures to take during the training, such as c_npmi; or none.")
    ] = MONITORED,
    monitor_every: Annotated[int, typer.Option(min=1, help="Epochs between two such measurements.")] = 5,
    words: Words = 10,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a run that was stopped. Repeat its command with this option.")
    ] = False,
    continued: Annotated[
        Path | None,
        typer.Option("--continue", metavar="RUN", help="Train a finished run further; --epochs +50 adds 50 epochs."),
    ] = None,
    checkpoint_every: Annotated[
        str,
        typer.Option(metavar="TIME|EPOCHS", help="How often the state is written: 10min, '5 epochs' or none."),
    ] = "1min",
    allow: Allow = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Train a model, write its run directory, and show the topics."""
    outcome = Outcome(
        continued or out,
        doc_topics,
        texts,
        documents,
        excel,
        explorer,
        font,
        words,
        quiet,
        as_json,
        overwrite,
        resume,
        None if checkpoint_every == "none" else checkpoint_every,
        figure_language=figure_language,
    )
    held_out = HeldOut(split, validation, reading_of(options))
    if continued is not None:
        if are_several():
            raise InputError("a finished run is continued by one process; start it without others")
        own = {
            "out": out,
            "model": model != _MODEL,
            "topics": topics != _TOPICS,
            "recipe": recipe is not Recipe.default,
            "seed": seed,
            "set": settings or config,
            "covariate": covariate,
            "document-vectors": document_vectors,
        }
        if given := [f"--{name}" for name, value in own.items() if value]:
            raise InputError(f"a run is continued where it is and with its own settings; leave out {', '.join(given)}")
        return continue_run(
            outcome, source, options, epochs, device, allow or [], _monitored(monitor), monitor_every, held_out
        )
    if source is None:
        raise InputError("there is nothing to train on; give a file of text, a corpus, or - for standard input")
    outcome = replace(outcome, out=out or _default_place(source))
    outcome.require_place()
    given = config | dict(read_setting(text) for text in settings or [])
    for name, option in {"n_topics": "topics", "random_state": "seed", "epochs": "epochs", "device": "device"}.items():
        if name in given:
            raise InputError(f"{name} has an option of its own: give --{option}, or {option} in the file of --config")
    monitored = _monitored(monitor)
    check_source(source, options)
    own = {"n_topics": topics, "random_state": seed, "device": device, "verbose": not quiet}
    chosen = _model(model, own | given, epochs, recipe)
    held_out.check(chosen)
    with together(outcome, source) as outcome, outcome.locked():
        keep_texts = need_order(monitored) or (texts and (doc_topics is not DocTopics.none or documents is not False))
        add = with_covariates(source, options, covariate or [])
        add_parts = held_out.with_parts(source, options)
        add_vectors = with_document_vectors(source, options, document_vectors)
        corpus = open_corpus(source, options, progress=not outcome.quiet, keep_texts=keep_texts)
        corpus = add_vectors(add_parts(add(corpus)))
        logger.info("%s", corpus)
        corpus, measured = held_out.divide(corpus, chosen, None if holds_corpus(source) else covariate or [])
        further = held_out.options()
        if document_vectors is not None:
            further["document_vectors"] = str(document_vectors.resolve())
        read_from: dict[str, Any] = ({} if source == "-" else {"path": str(Path(source).resolve())}) | further
        if read_from:
            read_from["reading"] = reading_of(options)
        again = repeating(source, options, covariate or [], further, model, chosen, __version__)
        train_run(chosen, corpus, outcome, read_from or None, monitored, monitor_every, None, again, measured)


def reading_of(options: Reading) -> dict[str, Any]:
    """Return the options of reading that are not the defaults."""
    return {f.name: getattr(options, f.name) for f in fields(Reading) if getattr(options, f.name) != f.default}


def _monitored(text: str) -> list[str]:
    """The measures that --monitor names, so that a mistake is found before anything is read."""
    from ..metrics.catalogue import known_measures, measures_of

    return [] if text == "none" else known_measures(read_names(text), measures_of("monitor"), "`monitor`")


def _model(name: str, settings: dict[str, Any], epochs: int | None, recipe: Recipe = Recipe.default) -> TopicModel:
    """A model whose settings are valid and whose device is there: mistakes are found before anything is read."""
    from ..models.persistence import model_class
    from ..models.published import published_settings
    from ..models.registry import REGISTRY
    from ..settings import check_settings, from_text
    from ..training.batches import choose_device

    if epochs is not None:
        settings = settings | {"epochs": epochs}
    plain, _, setting = name.partition(":")
    if setting and plain.lower() in map(str.lower, REGISTRY):  # as compare takes it
        first = setting.partition("+")[0]
        raise InputError(f"--model {name}: give settings by --set, such as --model {plain} --set {first}")
    kind = model_class(name)
    if recipe is Recipe.published:
        settings = published_settings(kind) | settings
    model = kind(**from_text(kind, settings))
    check_settings(model)
    choose_device(model.device)
    return model


def _default_place(source: str) -> Path:
    """runs/NAME for data/NAME.txt; runs/FOLDER-NAME if the former has a run of another source."""
    name = _stem(source)
    place = Path("runs") / name
    if source == "-" or _source_of(place) in (None, str(Path(source).resolve())):
        return place
    return Path("runs") / f"{Path(source).resolve().parent.name}-{name}"


def _source_of(run: Path) -> str | None:
    from ..topics.run_metrics import read_metrics

    try:
        path = read_metrics(run)["source"]["path"]
    except (InputError, KeyError, TypeError):
        return None
    return str(path)


def _stem(source: str) -> str:
    """'data/news.txt.gz' -> 'news'"""
    return "stdin" if source == "-" else Path(source).resolve().name.split(".")[0] or "run"
