"""Commands that make a corpus or a run: demo, prepare and train."""

from __future__ import annotations

import json
import logging
import os
import secrets
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._version import __version__
from ..display import printable
from ..errors import InputError, TrainingInterrupted
from ..files import holds_corpus, holds_stopped_run, located
from ..messages import counted
from ..preparing import ReadOptions
from .options import (
    Allow,
    AsJson,
    Config,
    Covariates,
    Device,
    DocTopics,
    DocumentVectors,
    Encoder,
    EncoderCache,
    Epochs,
    Excel,
    FigureLanguage,
    FigureLanguages,
    Font,
    GivenDocuments,
    HeldOut,
    Model,
    Overwrite,
    Preparing,
    Quiet,
    Recipe,
    Seed,
    Source,
    TopicCount,
    Words,
    cache_beside,
    need_order,
    one_or_several,
    read_names,
    read_setting,
)
from .shell import command, import_models, print_json, reason_of, say, show_topics

if TYPE_CHECKING:
    from ..corpus import Corpus
    from ..models.base import TopicModel
    from ..training.checkpoints import Checkpoints


logger = logging.getLogger("topicloom")

# The file train.yaml, with which `train --config` repeats a run

_ALWAYS = ("language", "min_df", "max_df")  # always written, because a paper should report them
_NO_RESULT = ("n_jobs", "cluster")  # never written, because they do not change the corpus
_OWN_OPTION = ("n_topics", "random_state", "epochs", "device", "verbose")


def repeating(
    source: str | list[str],
    options: Preparing,
    covariates: Sequence[str],
    further: Mapping[str, str],
    name: str,
    model: TopicModel,
    version: str,
) -> str:
    """Return the content of train.yaml: every option that decides what is learned, and the settings of the model.

    Settings with default values are left out. The comment names the version of topicloom that has these defaults.

    Args:
        source: the documents of the training. "-" is not written, because standard input cannot be read again.
        options: how the source was read and its words were counted. A saved corpus has no such options.
        covariates: the columns that were kept as covariates.
        further: further options that name validation and test documents, or fields of the documents.
        name: the model, as it was given.
        model: the model with its settings.
        version: the version of topicloom, for the comment.
    """
    import yaml

    from ..settings import path_settings

    content: dict[str, Any] = {} if source == "-" else {"source": located(source)}
    if not holds_corpus(source):
        content |= _of_text(options)
    if covariates:
        content["covariate"] = list(covariates)
    content |= further
    settings = model.get_params(deep=False)
    defaults = {field.name: field.default for field in fields(model)}
    content |= {"model": name, "topics": settings["n_topics"]}
    content |= {} if settings.get("epochs") is None else {"epochs": settings["epochs"]}
    content["seed"] = settings["random_state"]
    content |= {} if settings["device"] == "auto" else {"device": settings["device"]}
    files = path_settings(type(model))
    own = {
        setting: _absolute(value) if setting in files else value
        for setting, value in settings.items()
        if setting not in _OWN_OPTION and value != defaults[setting]
    }
    content |= {"settings": json.loads(json.dumps(own, default=str))} if own else {}
    about = f"# topicloom {version}: `topicloom train --config` with this file repeats the training\n"
    return about + yaml.safe_dump(content, sort_keys=False, allow_unicode=True)


def _of_text(options: Preparing) -> dict[str, Any]:
    found = {}
    defaults = Preparing().values()
    for option, value in options.values().items():
        if option in _NO_RESULT or (value == defaults[option] and option not in _ALWAYS):
            continue
        is_file = option == "user_dictionary" or (option == "stop_words" and value not in ("auto", "none"))
        found[option] = _absolute(value) if is_file else value
    return found


def _absolute(value: Any) -> Any:
    """Return an absolute path for a path of a file, and other values unchanged."""
    return str(Path(value).resolve()) if isinstance(value, str | Path) and Path(value).is_file() else value


# Writing, continuing and showing a run

MONITORED = "document_npmi"  # the default measure, because it needs only the counts


@dataclass(frozen=True)
class Outcome:
    """Where a training command writes its run, and what it writes and shows.

    With `helps`, this process trains together with others, and the first of them writes and shows the run.
    """

    out: Path | None
    doc_topics: DocTopics = DocTopics.csv
    texts: bool = True
    documents: bool | None = None
    excel: bool = False
    explorer: bool = False
    font: str | None = None
    words: int = 10
    quiet: bool = False
    as_json: bool = False
    overwrite: bool = False
    resume: bool = False
    checkpoint_every: str | None = None  # None writes no checkpoints
    helps: bool = False
    other_versions: bool = False  # whether to go on from the state that other versions wrote
    figure_language: FigureLanguages = FigureLanguages.auto

    def require_place(self) -> None:
        """Check that the run and its checkpoints can be written. PyTorch is not loaded for this."""
        from ..settings import read_interval
        from ..topics.saved import require_place

        if self.checkpoint_every is not None:
            read_interval(self.checkpoint_every)
        elif self.resume:
            raise InputError("a run goes on from its checkpoints; leave out --checkpoint-every none")
        if self.out is not None:
            require_place(self.out, self.overwrite, self.resume)
        if self.other_versions and not self.resume:
            raise InputError("--allow-other-versions needs --resume or --continue; give one of them, or leave it out")

    def locked(self) -> ExitStack:
        """Return a context in which no other process writes to the run's directory."""
        from ..files import lock_directory

        stack = ExitStack()
        if self.out is not None and not self.helps:
            stack.enter_context(lock_directory(self.out))
        return stack

    def checkpoints(self, more_epochs: int | None = None) -> Checkpoints | None:
        """Return the checkpoints of the run. Those of an earlier run are removed unless it is continued."""
        from ..distributed import current
        from ..topics.saved import CHECKPOINTS
        from ..training.checkpoints import Checkpoints

        if self.out is None:
            return None
        folder = self.out / CHECKPOINTS
        if not self.resume and more_epochs is None:
            if not self.helps:
                shutil.rmtree(folder, ignore_errors=True)
            current().wait()
        if self.checkpoint_every is None:
            return None
        return Checkpoints(folder, self.checkpoint_every, more_epochs, self.other_versions)


def train_run(
    model: TopicModel,
    corpus: Corpus,
    outcome: Outcome,
    source: dict[str, Any] | None = None,
    monitor: Sequence[str] = (MONITORED,),
    monitor_every: int = 5,
    more_epochs: int | None = None,
    again: str | None = None,
    validation: Corpus | None = None,
) -> None:
    """Train a model, write its run, and show its topics.

    Args:
        source: the note about the source of the documents in the run.
        monitor: the measures that are taken during the training.
        monitor_every: the number of epochs between two measurements.
        more_epochs: the epochs that are added to a finished run; None trains as the settings say.
        again: the content of train.yaml, with which the run can be repeated. None writes no such file.
        validation: held-out documents over the words of the corpus, whose loss is measured, or None.
    """
    from ..distributed import current
    from ..reports import run
    from ..topics.table import describe

    out = outcome.out
    checkpoints = outcome.checkpoints(more_epochs)
    if checkpoints is not None and outcome.resume and _has_finished(model, corpus, outcome, validation):
        return
    try:
        place = None if outcome.helps else out
        seconds = run.fit(model, corpus, place, monitor, monitor_every, checkpoints, validation)
    except TrainingInterrupted as stopped:
        if current().size > 1:
            advice = "; start all processes again with --resume, and training goes on"
            raise TrainingInterrupted("" if outcome.helps else f"{stopped}{advice}", stopped.signal) from None
        same = shlex.join(["topicloom", *sys.argv[1:], *([] if outcome.resume else ["--resume"])])
        raise TrainingInterrupted(f"{stopped}; go on with: {same}", stopped.signal) from None
    if outcome.helps:
        return
    documents = model.infer(corpus)
    found = describe(model, documents.shares, outcome.words)
    measured = None
    if out is not None:
        options = run.RunOptions(
            outcome.doc_topics.value, outcome.texts, outcome.documents, outcome.excel, outcome.explorer, outcome.font,
            outcome.figure_language.value,
        )  # fmt: skip
        state = None if checkpoints is None else checkpoints.finished_file

        def write(place: Path) -> dict[str, Any]:
            return run.write(place, model, corpus, documents, seconds, options, source, state, again)

        try:
            measured = write(out)
        except (InputError, OSError) as error:
            if state is None or not state.exists():  # the model is in this process alone
                out, measured = _written_elsewhere(out, reason_of(error), write)
            else:
                raise InputError(
                    f"{reason_of(error)}; training has ended, and {state} has its result: once there is room, the same "
                    "command with --resume writes the run"
                ) from None
    if outcome.as_json:
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
    elif not outcome.quiet:
        show_topics(found)
    logger.info("trained in %.1f seconds%s", seconds, "" if out is None else f"; the run is in {out}")


def at_terminal() -> bool:
    """Whether a user can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


_MINUTES_OF_TRIES, _SECONDS_BETWEEN_TRIES = 10, 15


def _written_elsewhere(out: Path, reason: str, write: Callable[[Path], Any]) -> tuple[Path, Any]:
    """Write a run whose place cannot be written, because its model is in this process alone.

    At a terminal, ask for another place. Without one, write the run into the system's directory of temporary files. If
    that fails too, try both places again for ten minutes.

    Args:
        out: the place of the run.
        reason: why it cannot be written.
        write: writes the run at a place.

    Returns:
        the place where the run is, chosen by the user, and the result of `write`.

    Raises:
        InputError: the run is in the directory of temporary files, or nowhere; the message says so.
    """
    from ..topics.saved import require_place

    while at_terminal():
        say(printable(f"topicloom: {reason}; training has ended, and its result is not on disk yet"), err=True)
        try:
            place = Path(typer.prompt("Another place for the run; Enter tries again", str(out), err=True))
        except (typer.Abort, KeyboardInterrupt):
            say(err=True)  # ends the line of the question
            break
        try:
            if place != out:
                require_place(place)
            return place, write(place)
        except (InputError, OSError) as error:
            reason = reason_of(error)
    elsewhere = Path(tempfile.gettempdir(), f"topicloom-{secrets.token_hex(4)}", out.name or "run")
    for attempt in range(1 + 60 * _MINUTES_OF_TRIES // _SECONDS_BETWEEN_TRIES):
        if attempt:
            time.sleep(_SECONDS_BETWEEN_TRIES)
            with suppress(InputError, OSError):
                return out, write(out)
        with suppress(InputError, OSError):
            write(elsewhere)
            break
        if not attempt:
            logger.warning(
                "%s; %s cannot be written either, so both are tried again for %d minutes: make room in one of them",
                reason, elsewhere.parent, _MINUTES_OF_TRIES,
            )  # fmt: skip
    else:
        raise InputError(f"{reason}; {elsewhere.parent} cannot be written either, so the run is lost")
    raise InputError(f"{reason}; training has ended, and the run is in {elsewhere}: move it where there is room")


def _has_finished(model: TopicModel, corpus: Corpus, outcome: Outcome, validation: Corpus | None) -> bool:
    """Return whether the run of this model and these documents is already complete.

    Raises:
        InputError: the directory has a complete run of another model, or of other documents.
    """
    from ..topics.saved import STATE, is_finished
    from ..training.checkpoints import require_same_fit

    if outcome.out is None or not is_finished(outcome.out):
        return False
    again = "the run has finished, so give `overwrite=True` and not `resume=True`, or another place, to train a new one"
    require_same_fit(outcome.out / STATE, model, corpus, again, validation, outcome.other_versions)
    topics = shlex.join(["topicloom", "topics", str(outcome.out)])
    logger.info("the run in %s has finished; see it with: %s", outcome.out, topics)
    if outcome.as_json:
        print_json({"run": str(outcome.out)})
    return True


# Training in several processes, started by a launcher such as torchrun


def are_several() -> bool:
    """Return whether a launcher has started this process together with others."""
    size = os.environ.get("WORLD_SIZE", "")
    return size.isdecimal() and int(size) > 1


@contextmanager
def together(outcome: Outcome, source: str | list[str]) -> Iterator[Outcome]:
    """Join the other processes, if there are any, and yield the outcome for this process.

    Raises:
        InputError: the documents cannot be read by more than one process.
    """
    if not are_several():
        yield outcome
        return
    if source == "-":
        raise InputError("several processes cannot read standard input; give a file, or a corpus that prepare wrote")
    from ..distributed import join

    with join() as ranks:
        if not ranks.is_first:
            logger.setLevel(logging.ERROR)
            outcome = replace(outcome, helps=True, quiet=True)
        yield outcome


# More epochs for a finished run (`train --continue`)


def continue_run(
    outcome: Outcome,
    source: str | list[str] | None,
    options: Preparing,
    epochs: int | None,
    device: str,
    allow: Sequence[str],
    monitor: Sequence[str],
    monitor_every: int,
    held_out: HeldOut,
) -> None:
    """Train the run in `outcome.out` for more epochs, and replace it.

    With `outcome.resume`, a run that already has these epochs does not change, so that the command can be repeated.

    Args:
        source, options: the documents of the run, if it does not hold them.
        epochs: how many epochs are added.
        device: where the model is trained.
        allow: the user's modules that may be imported for the class of the model.
        monitor: the measures that are taken during the training.
        monitor_every: the number of epochs between two measurements.
        held_out: validation and test documents, if they differ from those of the run.
    """
    from ..topics.saved import CHECKPOINTS, STATE, is_finished
    from ..training.checkpoints import epochs_added, newest_beyond

    run = outcome.out
    assert run is not None
    if epochs is None:
        raise InputError(f"give the number of epochs to add to {run}, such as --epochs +50")
    if outcome.checkpoint_every is None:
        raise InputError("`continue` needs checkpoints; leave out --checkpoint-every none")
    if epochs < 1:
        raise InputError(f"`epochs={epochs}` should be a whole number from 1, which is added to the epochs of {run}")
    with outcome.locked():
        if outcome.resume and is_finished(run) and epochs_added(run / STATE) == epochs:
            logger.info(
                "%s has %s already; leave out --resume to add as many again", run, counted(epochs, "further epoch")
            )
            if outcome.as_json:
                print_json({"run": str(run)})
            return
        model, about = _estimator(run, device, allow, outcome)
        if holds_stopped_run(run) and not (outcome.resume or outcome.overwrite):
            raise InputError(
                f"{run} was being continued and was stopped; `resume=True` goes on, `overwrite=True` starts again"
            )
        # Before the first checkpoint of the added epochs, there is only the state from which they begin.
        begun = newest_beyond(run / CHECKPOINTS, run / STATE) if holds_stopped_run(run) and outcome.resume else None
        if begun is not None and (added := begun.snapshot.continued) is not None and added.epochs != epochs:
            raise InputError(
                f"{run} was stopped while {counted(added.epochs, 'epoch')} were added; give `epochs={added.epochs}` to "
                "go on, or `overwrite=True` in place of `resume=True` to add others"
            )
        held_out.check(model)
        noted = about.get("source")
        corpus, validation = _documents(run, model, noted, source, options, held_out, quiet=outcome.quiet)
        fresh = type(model)(**_settings(model))
        if begun is None:
            _begin_from_final_state(run, fresh, corpus, validation, outcome.other_versions)
        train_run(
            fresh,
            corpus,
            outcome,
            noted,
            monitor,
            monitor_every,
            epochs if begun is None else None,
            validation=validation,
        )


def _estimator(run: Path, device: str, allow: Sequence[str], outcome: Outcome) -> tuple[TopicModel, Mapping[str, Any]]:
    """Return the model of the run, with the settings of its fit, and the content of metrics.json."""
    import_models()
    from ..models.loading import load
    from ..topics.saved import DOCUMENTS, MERGED, UPDATES, read_metrics

    about = read_metrics(run)
    if MERGED in about or UPDATES in about:
        place, documents = (shlex.quote(str(path)) for path in (run, run / DOCUMENTS))
        raise InputError(
            f"{run} {'was merged from other runs' if MERGED in about else 'has got more documents by update'}, and is "
            f"not trained further; train a new model on all its documents (topicloom train {documents} --out NEW), and "
            f"give it the names (topicloom edit NEW --replay {place} --out NAMED)"
        )
    model = load(run, device=device, allow=allow)
    if model.edits:
        raise InputError(
            f"the model in {run} was edited, and an edited model cannot be trained further; continue the run that was "
            f"edited, and then give it the same edits: topicloom edit RUN --replay {shlex.quote(str(run))} --out EDITED"
        )
    model.set_params(verbose=not outcome.quiet)
    return model, about


def _settings(model: TopicModel) -> dict[str, Any]:
    """Return the settings of the run's fit. A saved model has fixed word vectors in its weights, not as a setting."""
    from ..embeddings.word_vectors import WordVectors

    settings: dict[str, Any] = model.get_params(deep=False)
    if settings.get("fixed_word_vectors"):
        settings["word_vectors"] = WordVectors(model.vocabulary_, model.word_embeddings_)
    return settings


def _documents(
    run: Path,
    model: TopicModel,
    noted: Any,
    source: str | list[str] | None,
    options: Preparing,
    given: HeldOut,
    *,
    quiet: bool,
) -> tuple[Corpus, Corpus | None]:
    """Return the training documents, given or held by the run, and the validation documents, given or noted in it."""
    from ..topics.saved import DOCUMENTS, read_stored

    held_out = given or HeldOut.recorded(noted)
    if source is not None:
        corpus = GivenDocuments.opened(source, options, split=held_out.split).corpus(progress=not quiet)
        return held_out.divide(corpus, model, None if holds_corpus(source) else [])
    if not holds_corpus(run / DOCUMENTS):
        raise InputError(
            f"{run} does not hold its documents; give the file, with the options of the first training: "
            f"topicloom train FILE --continue {shlex.quote(str(run))} ..."
        )
    corpus = read_stored(run, model.vocabulary_, model.n_topics)[0]
    if held_out.split is None:
        return corpus, held_out.documents(corpus)
    from ..corpus.inputs import parts_of_source

    path, reading, fields = (noted or {}).get("path"), held_out.reading or {}, corpus.fields.kinds()
    if path is None:
        raise InputError(f"{run} does not name its documents; give the file, with the options of the first training")
    parts = parts_of_source(path, model.vocabulary_, model.tokenizer_, reading, fields, held_out.split)
    return corpus, held_out.measured(parts, model)


def _begin_from_final_state(
    run: Path, model: TopicModel, corpus: Corpus, validation: Corpus | None, other_versions: bool
) -> None:
    """Make the final state of a run the first checkpoint. Check that it belongs to the model and the documents."""
    from ..topics.saved import CHECKPOINTS, STATE
    from ..training.checkpoints import CHECKPOINT, final_state

    if not (run / STATE).is_file():
        raise InputError(
            f"{run} has no {STATE}, so it cannot be continued; runs have it if they are trained with checkpoints"
        )
    advice = "a run is trained further with its own documents and versions"
    state = final_state(run / STATE, model, corpus, advice, validation, other_versions)
    folder = run / CHECKPOINTS
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    state.write(folder / CHECKPOINT.format(1))


_MODEL, _TOPICS = "loom", 20  # the defaults


@command
def demo(
    topics: TopicCount = _TOPICS,
    model: Model = _MODEL,
    epochs: Epochs = None,
    seed: Seed = 0,
    device: Device = "auto",
    words: Words = 10,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep the run here, with explorer.html. By default nothing is written."),
    ] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Train on the documentation of this Python's standard library, and show the topics."""
    outcome = Outcome(out, explorer=True, words=words, quiet=quiet, as_json=as_json, overwrite=overwrite)
    outcome.require_place()
    chosen = _model(model, {"n_topics": topics, "random_state": seed, "device": device, "verbose": not quiet}, epochs)
    from ..datasets import python_docs

    with outcome.locked():
        corpus = python_docs()
        logger.info("%s: the documentation of this Python's standard library", corpus)
        train_run(chosen, corpus, outcome)


@command(
    panels={
        "Documents": ("covariate", "document_vectors", "encoder", "encoder_cache"),
        "Output": ("texts", "overwrite", "quiet", "as_json"),
    }
)
def prepare(
    source: Source,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the corpus is written.")],
    options: Preparing,
    covariate: Covariates = None,
    document_vectors: DocumentVectors = None,
    encoder: Encoder = None,
    encoder_cache: EncoderCache = None,
    texts: Annotated[bool, typer.Option("--texts/--no-texts", help="Keep the raw texts in the corpus.")] = True,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Turn text into a corpus of word counts, to train on it more than once."""
    from ..files import require_free, require_writable

    require_free(out, "corpus.json", overwrite)
    require_writable(out)
    given = GivenDocuments.opened(
        one_or_several(source), options, covariates=covariate or (), vectors=document_vectors, encoder=encoder,
        encoder_cache=cache_beside(out, encoder_cache, encoder), may_be_corpus=False,
    )  # fmt: skip
    corpus = given.corpus(progress=not quiet, keep_texts=texts, out=out, overwrite=overwrite)
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


@command(
    panels={
        "Documents": ("covariate", "document_vectors", "encoder", "encoder_cache", "split", "validation"),
        "Model": ("recipe", "settings", "config", "allow"),
        "Training": ("ensemble", "device", "monitor", "monitor_every", "resume", "continued", "checkpoint_every",
                     "allow_other_versions"),
        "Output": (
            "doc_topics", "texts", "documents", "excel", "explorer", "font", "figure_language", "words", "overwrite",
            "quiet", "as_json",
        ),
    }
)  # fmt: skip
def train(
    options: Preparing,
    source: Annotated[
        list[str] | None,
        typer.Argument(metavar="SOURCE", help="A corpus that prepare wrote, or any text that prepare takes."),
    ] = None,
    config: Config = None,
    model: Model = _MODEL,
    topics: TopicCount = _TOPICS,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the run is written; runs/NAME by default.")
    ] = None,
    epochs: Epochs = None,
    recipe: Annotated[
        Recipe,
        typer.Option(
            help="The values of settings that you do not give: the defaults, those of the paper, or those of another "
            "paper (docs/published.md): CombinedTM and ZeroShotTM with ProdLDA and vectors, GSB and RSB with GSM, and "
            "zll17 with GMNTM."
        ),
    ] = Recipe.default,
    seed: Seed = 0,
    ensemble: Annotated[
        int | None,
        typer.Option(
            min=2, metavar="N", help="Fit the model N times, and keep the topics that return in half of the fits."
        ),
    ] = None,
    device: Device = "auto",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting that `models NAME` lists; repeatable."),
    ] = None,
    covariate: Covariates = None,
    document_vectors: DocumentVectors = None,
    encoder: Encoder = None,
    encoder_cache: EncoderCache = None,
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
    allow_other_versions: Annotated[
        bool,
        typer.Option(
            "--allow-other-versions",
            help="Go on (--resume, --continue) from a state that other versions of packages wrote. The result can then "
            "differ from that of an uninterrupted training.",
        ),
    ] = False,
    allow: Allow = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Train a model, write its run directory, and show the topics."""
    chosen_source = one_or_several(source) if source else None
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
        other_versions=allow_other_versions,
        figure_language=figure_language,
    )
    held_out = HeldOut(split, validation, reading_of(options.reading))
    if continued is not None:
        if are_several():
            raise InputError("a finished run is continued by one process; start a single process")
        own = {
            "out": out,
            "model": model != _MODEL,
            "topics": topics != _TOPICS,
            "recipe": recipe is not Recipe.default,
            "seed": seed,
            "ensemble": ensemble,
            "set": settings or config,
            "covariate": covariate,
            "document-vectors": document_vectors,
            "encoder": encoder,
            "encoder-cache": encoder_cache,
        }
        if given := [f"--{name}" for name, value in own.items() if value]:
            raise InputError(f"a run is continued where it is and with its own settings; leave out {', '.join(given)}")
        return continue_run(
            outcome, chosen_source, options, epochs, device, allow or [], _monitored(monitor), monitor_every, held_out
        )
    if chosen_source is None:
        raise InputError("there is nothing to train on; give a file of text, a corpus, or - for standard input")
    outcome = replace(outcome, out=out or _default_place(chosen_source))
    outcome.require_place()
    given = config | dict(read_setting(text) for text in settings or [])
    for name, option in {"n_topics": "topics", "random_state": "seed", "epochs": "epochs", "device": "device"}.items():
        if name in given:
            raise InputError(f"{name} has an option of its own: give --{option}, or {option} in the file of --config")
    monitored = _monitored(monitor)
    documents_given = GivenDocuments.opened(
        chosen_source, options, covariates=covariate or (), split=split, vectors=document_vectors, encoder=encoder,
        encoder_cache=cache_beside(outcome.out, encoder_cache, encoder),
    )  # fmt: skip
    own = {"n_topics": topics, "random_state": seed, "device": device, "verbose": not quiet}
    chosen = _model(model, own | given, epochs, recipe)
    if ensemble is not None:
        model, chosen = "ensemble", _ensemble(model, chosen, ensemble)
    held_out.check(chosen)
    with together(outcome, chosen_source) as outcome, outcome.locked():
        keep_texts = need_order(monitored) or (texts and (doc_topics is not DocTopics.none or documents is not False))
        corpus = documents_given.corpus(progress=not outcome.quiet, keep_texts=keep_texts)
        logger.info("%s", corpus)
        corpus, measured = held_out.divide(corpus, chosen, None if holds_corpus(chosen_source) else covariate or [])
        further = held_out.options()
        if document_vectors is not None:
            further["document_vectors"] = str(document_vectors.resolve())
        if encoder is not None:
            further["encoder"] = encoder if corpus.encoder is None else corpus.encoder.name
        read_from: dict[str, Any] = ({} if chosen_source == "-" else {"path": located(chosen_source)}) | further
        if read_from:
            read_from["reading"] = reading_of(options.reading)
        again = repeating(chosen_source, options, covariate or [], further, model, chosen, __version__)
        train_run(chosen, corpus, outcome, read_from or None, monitored, monitor_every, None, again, measured)


def reading_of(reading: ReadOptions) -> dict[str, Any]:
    """Return the options of reading that differ from the defaults."""
    return {f.name: getattr(reading, f.name) for f in fields(reading) if getattr(reading, f.name) != f.default}


def reading_named(reading: ReadOptions, context: typer.Context) -> dict[str, Any]:
    """Return the options of reading that the command line names: a default that is named replaces what a run has."""
    sources = {f.name: context.get_parameter_source(f.name) for f in fields(reading)}
    return {name: getattr(reading, name) for name, source in sources.items() if source and source.name != "DEFAULT"}


def _monitored(text: str) -> list[str]:
    """Return the measures that --monitor names. Mistakes are found before anything is read."""
    from ..metrics.catalogue import known_measures, measures_of

    return [] if text == "none" else known_measures(read_names(text), measures_of("monitor"), "`monitor`")


def _model(name: str, settings: dict[str, Any], epochs: int | None, recipe: Recipe = Recipe.default) -> TopicModel:
    """Return the model. Check its settings and its device, so that mistakes are found before anything is read."""
    import_models()
    from ..models import REGISTRY, model_class
    from ..models.base import published_settings
    from ..settings import check_settings, from_text
    from ..training.batches import choose_device

    if epochs is not None:
        settings = settings | {"epochs": epochs}
    plain, _, setting = name.partition(":")
    if setting and plain.lower() in map(str.lower, REGISTRY):  # the form that compare takes
        first = setting.partition("+")[0]
        raise InputError(f"--model {name}: give settings by --set, such as --model {plain} --set {first}")
    kind = model_class(name)
    is_published = recipe is not Recipe.default
    chosen = published_settings(kind, recipe.value, settings) if is_published else settings
    model = kind(**from_text(kind, chosen))
    check_settings(model)
    if is_published:
        model._refuse_without_effect(settings)
    choose_device(model.device)
    return model


def _ensemble(name: str, model: TopicModel, n_fits: int) -> TopicModel:
    """Return an ensemble of fits of a model.

    Raises:
        InputError: a setting of the model cannot be written as text.
    """
    from ..models.ensemble import SHARED, Ensemble

    shared = (*SHARED, "verbose")
    settings = model.get_params(deep=False)
    defaults = {field.name: field.default for field in fields(model)}
    own = {each: value for each, value in settings.items() if each not in shared and value != defaults[each]}
    text = "+".join(f"{each}={value if isinstance(value, str) else json.dumps(value)}" for each, value in own.items())
    common = {each: settings[each] for each in shared}
    return Ensemble(model=f"{name}:{text}" if text else name, n_fits=n_fits, **common)


def _default_place(source: str | list[str]) -> Path:
    """Return runs/NAME for data/NAME.txt, or runs/FOLDER-NAME if runs/NAME has a run of another source."""
    first = source if isinstance(source, str) else source[0]
    name = _stem(first)
    place = Path("runs") / name
    if source == "-" or _source_of(place) in (None, located(source)):
        return place
    return Path("runs") / f"{Path(first).resolve().parent.name}-{name}"


def _source_of(run: Path) -> str | list[str] | None:
    from ..topics.saved import read_metrics

    try:
        path = read_metrics(run)["source"]["path"]
    except (InputError, KeyError, TypeError):
        return None
    return path if isinstance(path, list) else str(path)


def _stem(source: str) -> str:
    """'data/news.txt.gz' -> 'news'"""
    return "stdin" if source == "-" else Path(source).resolve().name.split(".")[0] or "run"
