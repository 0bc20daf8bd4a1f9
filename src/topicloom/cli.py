"""The command line: a thin shell over the library. Results go to standard output, all else to standard error.

What is heavy (PyTorch above all) is imported inside the commands, so that help comes at once.
"""

from __future__ import annotations

import ast
import functools
import inspect
import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, is_dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, get_type_hints

import typer
from rich.console import Console
from rich.table import Table

from . import __version__
from .errors import InputError, TrainingDivergedError, nearest

if TYPE_CHECKING:
    from .corpus import Corpus
    from .estimator import TopicModel
    from .run import Part, Topic

logger = logging.getLogger("topicloom")

app = typer.Typer(
    help="Neural topic models: from raw text to topics a person can read, trust and use.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

_CHUNK = 10_000  # documents inferred at a time
_MONITORED = "document_npmi"  # needs no more than the counts


def main() -> None:
    """The entry of the command `topicloom`."""
    app(prog_name="topicloom")


class DocTopics(StrEnum):
    """The formats of doc_topics."""

    csv = "csv"
    parquet = "parquet"
    none = "none"


class Sampler(StrEnum):
    """How tuning proposes settings."""

    tpe = "tpe"
    random = "random"


def _count_or_share(value: Any) -> Any:
    """'5' is a number of documents, '0.5' a share of them."""
    try:
        return int(value) if str(value).isdecimal() else float(value)
    except ValueError:
        raise typer.BadParameter(f"{value!r} is neither a whole number of documents nor a share such as 0.5") from None


def _apply_config(context: typer.Context, path: Path | None) -> dict[str, Any]:
    """What a file says becomes the defaults of the options of its names; returns its settings of the model."""
    if path is None:
        return {}
    from .config import read_config

    try:
        found = read_config(path)
        settings = found.pop("settings", None) or {}
        if not isinstance(settings, dict):
            raise InputError(f"{path}: settings should be names with values; it is {settings!r}")
        defaults = (_default(context, name, value) for name, value in found.items() if value is not None)
        context.default_map = dict(defaults)
    except InputError as error:
        message = str(error)
        _stop(message if str(path) in message else f"{path}: {message}", 2)
    return {str(name): value for name, value in settings.items()}


def _default(context: typer.Context, name: str, value: Any) -> tuple[str, Any]:
    """An option's own name, and its value as the command line would have it."""
    options = {opt.removeprefix("--"): option for option in context.command.params for opt in option.opts}
    known = [option for option in options if option not in ("config", "help", "set", "-q")]
    if name.replace("_", "-") not in known:
        raise InputError(f"there is no option {name!r}; {nearest(name, [*known, 'settings'])}")
    option = options[name.replace("_", "-")]
    if isinstance(value, dict | list):
        raise InputError(f"{name} should be a single value; it is {value!r}")
    text = str(value)
    try:
        option.process_value(context, text)
    except typer.BadParameter as error:
        reason = error.message.removeprefix("Value error, ").removeprefix("Input ").rstrip(".")
        raise InputError(f"{name} cannot be {text!r}: {reason}") from None
    return option.name, text


_file = functools.partial(typer.Option, rich_help_panel="The file")
_words = functools.partial(typer.Option, rich_help_panel="The words")
_documents = functools.partial(_words, parser=_count_or_share, metavar="COUNT|SHARE")


@dataclass(frozen=True)
class Reading:
    """How a file is read; the names are those of `topicloom.text.read`."""

    text: Annotated[str, _file(metavar="COLUMN", help="Column with the text.")] = "text"
    id: Annotated[str | None, _file(metavar="COLUMN", help="Column with the documents' ids.")] = None
    label: Annotated[str | None, _file(metavar="COLUMN", help="Column with the documents' classes.")] = None
    timestamp: Annotated[str | None, _file(metavar="COLUMN", help="Column with the documents' times.")] = None
    format: Annotated[str | None, _file(help="txt, csv, tsv, jsonl or parquet, when the name does not say it.")] = None
    encoding: Annotated[str, _file(help="Encoding of text files, such as gb18030.")] = "utf-8"
    errors: Annotated[str, _file(help="Undecodable bytes: strict, replace or ignore.")] = "strict"


@dataclass(frozen=True)
class Preparing(Reading):
    """How text becomes a corpus; the names are those of `Corpus.from_file`."""

    language: Annotated[str, _words(help="Such as zh, en or fr; auto looks at the script.")] = "auto"
    min_df: Annotated[float, _documents(help="Drop words in fewer documents.")] = 5
    max_df: Annotated[float, _documents(help="Drop words in more documents.")] = 0.5
    max_features: Annotated[int | None, _words(help="Keep the most frequent words only.")] = None
    remove_top: Annotated[int, _words(help="Drop this many of the most frequent words.")] = 0
    stop_words: Annotated[str, _words(metavar="auto|none|FILE", help="Words to leave out.")] = "auto"
    user_dictionary: Annotated[
        Path | None, _words(metavar="FILE", help="Words that Chinese segmentation keeps whole.")
    ] = None
    n_jobs: Annotated[int | None, _words("--jobs", help="Worker processes; -1 is all cores.")] = None


Source = Annotated[
    str, typer.Argument(help="A .txt (a document a line), .csv, .tsv, .jsonl or .parquet file, a folder of .txt, or -.")
]
Run = Annotated[Path, typer.Argument(help="Directory that train wrote.")]
Config = Annotated[
    Any,
    typer.Option(
        "--config",
        metavar="FILE",
        help="A .yaml or .toml file with these options by name, and the model's settings; the command line wins.",
        parser=Path,
        callback=_apply_config,
        is_eager=True,
    ),
]
Model = Annotated[str, typer.Option(help="The model's name, such as gsm or lda.")]
Topics = Annotated[int, typer.Option(help="Number of topics.")]
Epochs = Annotated[int | None, typer.Option(help="Passes over the documents; each model has its own default.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same model.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 or mps.")]
Words = Annotated[int, typer.Option(min=1, help="Words to show of each topic.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what an earlier call wrote.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
AsJson = Annotated[bool, typer.Option("--json", help="The result as JSON on standard output.")]


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Adds a command to the app.

    A parameter that is a dataclass becomes one option for each of its fields, so that commands can share them. A
    mistake of the user becomes one line and an exit code.
    """
    groups: dict[str, Any] = {}
    parameters, shared = [], []
    hints = get_type_hints(function, include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        if not is_dataclass(hints[name]):
            parameters.append(parameter.replace(annotation=hints[name], kind=parameter.KEYWORD_ONLY))
            continue
        groups[name] = hints[name]
        options = get_type_hints(hints[name], include_extras=True)
        for field in fields(hints[name]):
            shared.append(
                inspect.Parameter(
                    field.name, parameter.KEYWORD_ONLY, default=field.default, annotation=options[field.name]
                )
            )

    @functools.wraps(function)
    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        _log_to_stderr(quiet=given.get("quiet", False))
        try:
            function(**given)
        except InputError as error:
            _stop(str(error), 2)
        except TrainingDivergedError as error:
            _stop(str(error), 1)
        except KeyboardInterrupt:
            _stop("interrupted", 130)
        except BrokenPipeError:
            raise  # `| head` is no mistake, and typer ends quietly
        except OSError as error:
            _stop(f"{error.filename}: {error.strerror}" if error.filename else str(error), 2)

    run.__signature__ = inspect.Signature(parameters + shared)  # type: ignore[attr-defined]
    return app.command()(run)


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False) -> None:
    if version:
        typer.echo(f"topicloom {__version__}")
        raise typer.Exit


@command
def demo(
    topics: Topics = 20,
    model: Model = "gsm",
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
    from .datasets import python_docs

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
    from .corpus import Corpus
    from .files import require_free

    require_free(out, "corpus.json", overwrite)
    if (Path(source) / "corpus.json").is_file():
        raise InputError(f"{source} is a saved corpus already; give the text that it was made of")
    corpus = Corpus.from_file(
        source, **asdict(options), keep_texts=texts, out=out, overwrite=overwrite, progress=not quiet
    )
    logger.info("%s in %s", corpus, out)
    if as_json:
        _print_json(
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
    model: Model = "gsm",
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
    given = config | dict(_setting(text) for text in settings or [])
    for name, option in {"n_topics": "topics", "random_state": "seed", "epochs": "epochs", "device": "device"}.items():
        if name in given:
            raise InputError(f"{name} has an option of its own: give --{option}, or {option} in the file of --config")
    own = {"n_topics": topics, "random_state": seed, "device": device, "verbose": not quiet}
    chosen = _model(model, own | given, epochs)
    watched = _monitored(monitor)
    corpus = _corpus(source, options, progress=not quiet, keep_texts=_need_order(watched))
    logger.info("%s", corpus)
    given_source = None if source == "-" else {"path": str(Path(source).resolve()), "reading": _reading(options)}
    _train(chosen, corpus, out, doc_topics, words, quiet, as_json, given_source, watched, monitor_every)


@command
def models(
    name: Annotated[str | None, typer.Argument(metavar="[MODEL]", help="One of them, to see its settings.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the models, or the settings of one: what each may be, its default, and what it means."""
    from .models import MODELS
    from .persistence import model_class
    from .settings import describe_settings

    if name is None:
        summaries = {kind.__name__: (kind.__doc__ or "").splitlines()[0] for kind in MODELS}
        if as_json:
            _print_json({"models": [{"name": kind, "summary": said} for kind, said in summaries.items()]})
        else:
            _print_table(["model", "what it is"], summaries.items())
        return
    kind = model_class(name)
    settings = describe_settings(kind)
    if as_json:
        _print_json({"model": kind.__name__, "settings": [asdict(setting) for setting in settings]})
    else:
        rows = ([s.name, json.dumps(s.default), f"{s.type}: {s.meaning}"] for s in settings)
        _print_table(["setting", "default", "what it may be, and what it means"], rows)


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
    from .persistence import load
    from .run import describe, read_shares

    model = load(run, device="cpu")
    found = describe(model, read_shares(run, model.n_topics), words, relevance)
    if as_json:
        _print_json({"run": str(run), "topics": found})
    else:
        _show(found)


@command
def infer(
    run: Run,
    file: Source,
    options: Reading,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A .csv or .parquet file; standard output by default.")
    ] = None,
    device: Device = "auto",
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Find the topics of new documents: a row each, in their order, with the share of every topic."""
    if out is not None and out.suffix.lower() not in (".csv", ".parquet"):
        raise InputError(f"{out} ends in neither .csv nor .parquet; give a name that does")
    if out is not None and out.exists() and not overwrite:
        raise InputError(f"{out} already exists; give another name, or --overwrite to replace it")
    from .persistence import load
    from .run import write_documents

    write_documents(out or sys.stdout, _inferred(load(run, device=device), file, options))
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
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Measure a run: coherence, diversity, perplexity, classes, collapse; into its metrics.json and a table."""
    from .run_evaluation import Request, evaluate_run

    names = None if measures is None else _names(measures)
    request = Request(texts, _reading(options), labels, reference, vectors, names, words, relevance, device)
    found, path = evaluate_run(run, request)
    if as_json:
        _print_json({"run": str(run), **found.to_dict()})
    else:
        Console(markup=False, highlight=False).print(found.table())
    if path is not None:
        logger.info("written to %s", path)


@command
def compare(
    options: Preparing,
    source: Annotated[str, typer.Argument(help="A corpus that prepare wrote, or any text that prepare takes.")],
    models: Annotated[
        str | None,
        typer.Option(metavar="NAME,NAME", help="Such as gsm,lda:method=gibbs+epochs=500; a choice by default."),
    ] = None,
    topics: Annotated[str, typer.Option(metavar="K,K", help="Numbers of topics.")] = "20,50",
    seeds: Annotated[int, typer.Option(min=1, help="Fits of each model with each number of topics.")] = 3,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Keeps the fits; a killed comparison goes on there.")] = Path(
        "runs/compare"
    ),
    processes: Annotated[int, typer.Option(min=1, help="Fits at a time.")] = 1,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Fit and measure several models alike; a table, a CSV file and a page with plots."""
    from . import comparison

    chosen = comparison.DEFAULT_MODELS if models is None else _names(models)
    comparison.estimators(chosen)  # mistakes are told before anything is read
    sizes = _whole_numbers(topics, "--topics")
    corpus = _corpus(source, options, progress=not quiet, keep_texts=True)
    logger.info("%s", corpus)
    with _muted():  # what a fit advises is seen in its figures
        found = comparison.compare(
            corpus, chosen, sizes, seeds, out=out, jobs=processes, told=None if quiet else _told("fit")
        )
    if as_json:
        _print_json({"out": str(out), "failed": found.failed, **{on: found.table(on) for on in ("validation", "test")}})
    else:
        head, rows = comparison.text_table(found)
        _print_table(head, rows)
    for row in found.failed:
        logger.warning("%s, %d topics, seed %d: %s", row["model"], row["n_topics"], row["seed"], row["error"])
    logger.info("tables and plots are in %s", out / "index.html")


@command
def tune(
    options: Preparing,
    source: Annotated[str, typer.Argument(help="A corpus that prepare wrote, or any text that prepare takes.")],
    model: Model = "gsm",
    topics: Topics = 20,
    trials: Annotated[int, typer.Option(min=1, help="Fits in all, those of an earlier call among them.")] = 30,
    objective: Annotated[
        str | None, typer.Option(metavar="NAME=WEIGHT,...", help="Such as document_npmi=1,topic_diversity=0.5.")
    ] = None,
    sampler: Annotated[Sampler, typer.Option(help="How settings are proposed.")] = Sampler.tpe,
    seed: Seed = 0,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Keeps the study; a killed search goes on there.")] = Path(
        "runs/tune"
    ),
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Search a model's settings by Optuna, on documents held out of training."""
    from . import tuning

    weights = None if objective is None else _weights(objective)
    tuning.check(model, weights)
    windowed = [] if weights is None else list(weights)
    corpus = _corpus(source, options, progress=not quiet, keep_texts=_need_order(windowed))
    logger.info("%s", corpus)
    with _muted():
        found = tuning.tune(
            corpus, model, topics, trials=trials, objective=weights, sampler=sampler.value, seed=seed, out=out,
            told=None if quiet else _told("trial"),
        )  # fmt: skip
    if as_json:
        _print_json({"out": str(out), **asdict(found)})
    else:
        _print_table(["setting", "best"], [[name, f"{value:.4g}" if isinstance(value, float) else str(value)]
                                           for name, value in found.best.items()])  # fmt: skip
    objective_said = " + ".join(f"{weight:g} {name}" for name, weight in found.objective.items())
    logger.info("best of %d trials (%s): %.4f; train with --config %s", len(found.trials), objective_said,
                found.value, out / "best.yaml")  # fmt: skip


def _told(what: str) -> Callable[[int, int, dict[str, Any]], None]:
    """A line on standard error for each finished piece of work, past the muted log."""

    def tell(n_done: int, n_all: int, row: dict[str, Any]) -> None:
        said = [str(row[name]) for name in ("model", "n_topics", "seed") if name in row]
        value = row.get("error") or ("" if row.get("value") is None else f"{row['value']:.4f}")
        seconds = f"{row['seconds']:.1f} s" if "seconds" in row else ""
        typer.echo(" ".join(filter(None, [f"{what} {n_done} of {n_all}:", *said, value, seconds])), err=True)

    return tell


def _whole_numbers(text: str, option: str) -> list[int]:
    """'20,50' -> [20, 50]"""
    try:
        found = [int(part) for part in _names(text)]
    except ValueError:
        found = []
    if not found or min(found) < 2:
        raise InputError(f"{option} {text}: give whole numbers from 2, such as 20,50")
    return found


def _weights(text: str) -> dict[str, float]:
    """'a=1,b=-0.5' -> {'a': 1.0, 'b': -0.5}"""
    pairs = [part.partition("=") for part in _names(text)]
    try:
        return {name: float(value) for name, _, value in pairs}
    except ValueError:
        raise InputError(f"--objective {text}: give measures with weights, such as topic_diversity=0.5") from None


def _names(text: str) -> list[str]:
    """'a,b' -> ['a', 'b']"""
    return [name.strip() for name in text.split(",") if name.strip()]


def _need_order(measures: Iterable[str]) -> bool:
    from .topic_measures import WINDOWED

    return not WINDOWED.isdisjoint(measures)


def _monitored(text: str) -> list[str]:
    """The measures that --monitor names, so that a mistake is told before anything is read."""
    from .topic_measures import TOPIC_MEASURES, known_names

    return [] if text == "none" else known_names(_names(text), TOPIC_MEASURES, "--monitor")


def _inferred(model: TopicModel, file: str, options: Reading) -> Iterator[Part]:
    """The topics of a file's documents, a bounded number at a time; one warning at the end counts the empty ones."""
    import numpy as np

    from .corpus import counts_of
    from .run import Part
    from .text import read

    documents = read(file, **asdict(options))
    n_done = n_empty = 0
    while chunk := list(islice(documents, _CHUNK)):
        counts = counts_of((document.text for document in chunk), model.vocabulary_, model.tokenizer_)
        empty = np.diff(counts.indptr) == 0
        with _muted():
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
    from . import run

    seconds = run.fit(model, corpus, out, monitor, monitor_every)
    with _muted():  # the corpus has told of its empty documents
        theta = model.transform(corpus)
    documents = run.Part(corpus.ids, theta, corpus.is_empty, corpus.labels)
    found = run.describe(model, documents.shares, words)
    measured = None
    if out is not None:
        measured = run.write(out, model, corpus, documents, seconds, doc_topics.value, source)
    if as_json:
        _print_json(
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
        _show(found)
    logger.info("trained in %.1f seconds%s", seconds, "" if out is None else f"; the run is in {out}")


def _model(name: str, settings: dict[str, Any], epochs: int | None) -> TopicModel:
    """A model whose settings hold and whose device is there, so that mistakes are told before anything is read."""
    from .batches import choose_device
    from .persistence import model_class
    from .settings import check_settings, from_text

    if epochs is not None:
        settings = settings | {"epochs": epochs}
    kind = model_class(name)
    model = kind(**from_text(kind, settings))
    check_settings(model)
    choose_device(model.device)
    return model


def _corpus(source: str, options: Preparing, progress: bool, keep_texts: bool = False) -> Corpus:
    from .corpus import Corpus

    if (Path(source) / "model" / "config.json").is_file() or (Path(source) / "model.safetensors").is_file():
        raise InputError(f"{source} is a trained model; give the text, or show the model by topics or infer")
    if not (Path(source) / "corpus.json").is_file():
        return Corpus.from_file(source, **asdict(options), keep_texts=keep_texts, progress=progress)
    changed = [name for name in asdict(options) if getattr(options, name) != getattr(Preparing(), name)]
    if changed:
        option = "--jobs" if changed[0] == "n_jobs" else "--" + changed[0].replace("_", "-")
        raise InputError(f"{source} is a saved corpus, to which {option} does not apply; give it to prepare")
    return Corpus.load(source)


def _setting(text: str) -> tuple[str, Any]:
    """'name=value': the value is read as JSON or as a Python literal, and is else the string that it is."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InputError(f"--set {text}: give a name and a value, such as --set batch_size=64")
    for parse in (json.loads, ast.literal_eval):
        try:
            return name, parse(value)
        except (ValueError, SyntaxError):
            continue
    return name, value


def _stem(source: str) -> str:
    """'data/news.txt.gz' -> 'news'"""
    return "stdin" if source == "-" else Path(source).resolve().name.split(".")[0] or "run"


def _require_free(out: Path | None, overwrite: bool) -> None:
    """Into a directory, --overwrite writes a run's own files and no others, whatever else is there."""
    from .files import require_free
    from .run import is_unfinished

    if out is None or is_unfinished(out):
        return
    if not (overwrite and out.is_dir()):
        require_free(out, "log.jsonl")
    require_free(out / "model", "config.json", overwrite)


def _show(topics: list[Topic]) -> None:
    shares = ("" if topic["share"] is None else f"{topic['share']:.1%}" for topic in topics)
    rows = ([str(topic["topic"]), share, " ".join(topic["words"])] for topic, share in zip(topics, shares, strict=True))
    _print_table(["topic", "share", "words"], rows, n_numbers=2)


def _print_table(head: list[str], rows: Iterable[Iterable[str]], n_numbers: int = 0) -> None:
    """Columns under a head, the first `n_numbers` of them set to the right."""
    table = Table(*head, box=None, pad_edge=False, header_style="bold")
    for column in table.columns[:n_numbers]:
        column.justify = "right"
    for row in rows:
        table.add_row(*row)
    Console(markup=False, highlight=False).print(table)


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False))


@contextmanager
def _muted() -> Iterator[None]:
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = False


class _Stderr(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        typer.echo(record.getMessage(), err=True)


def _log_to_stderr(quiet: bool) -> None:
    logger.handlers = [_Stderr()]
    logger.setLevel(logging.ERROR if quiet else logging.INFO)


def _stop(message: str, code: int) -> NoReturn:
    typer.echo(f"topicloom: error: {message}", err=True)
    raise typer.Exit(code)
