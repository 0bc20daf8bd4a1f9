"""`train --continue`: more epochs for a run that has finished."""

from __future__ import annotations

import logging
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..files import holds_corpus
from .corpora import check_source, open_corpus
from .held_out import HeldOut
from .options import Preparing
from .outcome import Outcome, train_run
from .shell import print_json

if TYPE_CHECKING:
    from ..corpus import Corpus
    from ..models.base import TopicModel

logger = logging.getLogger("topicloom")


def continue_run(
    outcome: Outcome,
    source: str | None,
    options: Preparing,
    epochs: int | None,
    device: str,
    allow: Sequence[str],
    monitor: Sequence[str],
    monitor_every: int,
    held_out: HeldOut,
) -> None:
    """Train the run in `outcome.out` for more epochs, and replace it.

    With `outcome.resume`, a run that has these epochs already stays as it is, so that the command can be repeated.

    Args:
        source, options: the documents of the run, if it does not hold them.
        epochs: how many epochs are added.
        device: where the model is trained.
        allow: modules of the user's own that may be imported for the model's class.
        monitor, monitor_every: as for `train_run`.
        held_out: the documents that it does not learn from, if they are not those that the run has noted.
    """
    from ..reports.place import CHECKPOINTS, STATE, is_finished, is_stopped
    from ..training.checkpoints import epochs_added, goes_beyond

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
            logger.info("%s has these %d further epochs already; leave out --resume to add as many again", run, epochs)
            if outcome.as_json:
                print_json({"run": str(run)})
            return
        model, about = _estimator(run, device, allow, outcome)
        if is_stopped(run) and not (outcome.resume or outcome.overwrite):
            raise InputError(
                f"{run} was being continued and was stopped; `resume=True` goes on, `overwrite=True` starts again"
            )
        # Until the first checkpoint of the added epochs is written, there is only the state from which they begin.
        goes_on = is_stopped(run) and outcome.resume and goes_beyond(run / CHECKPOINTS, run / STATE)
        held_out.check(model)
        noted = about.get("source")
        corpus, validation = _documents(run, model, noted, source, options, held_out, quiet=outcome.quiet)
        fresh = type(model)(**_settings(model))
        if not goes_on:
            _begin_from_final_state(run, fresh, corpus, validation)
        train_run(
            fresh,
            corpus,
            outcome,
            noted,
            monitor,
            monitor_every,
            None if goes_on else epochs,
            validation=validation,
        )


def _estimator(run: Path, device: str, allow: Sequence[str], outcome: Outcome) -> tuple[TopicModel, Mapping[str, Any]]:
    """The run's model, whose settings the fit has, and the content of metrics.json."""
    from ..models.persistence import load
    from ..topics.run_metrics import read_metrics

    model = load(run, device=device, allow=allow)
    if model.edits:
        raise InputError(
            f"the model in {run} was edited, and an edited model cannot be trained further; continue the run that was "
            f"edited, and then give it the same edits: topicloom edit RUN --replay {shlex.quote(str(run))} --out EDITED"
        )
    model.set_params(verbose=not outcome.quiet)
    return model, read_metrics(run)


def _settings(model: TopicModel) -> dict[str, Any]:
    """The settings of the run's fit. A saved model has fixed word vectors in its weights, and not as a setting."""
    from ..embeddings.word_vectors import WordVectors

    settings: dict[str, Any] = model.get_params(deep=False)
    if settings.get("fixed_word_vectors"):
        settings["word_vectors"] = WordVectors(model.vocabulary_, model.word_embeddings_)
    return settings


def _documents(
    run: Path, model: TopicModel, noted: Any, source: str | None, options: Preparing, given: HeldOut, *, quiet: bool
) -> tuple[Corpus, Corpus | None]:
    """The documents that the run was trained on, given or held by it, and those for validation, given or noted."""
    from ..topics.stored import DOCUMENTS, read_stored

    held_out = given or HeldOut.recorded(noted)
    if source is not None:
        check_source(source, options)
        add_parts = held_out.with_parts(source, options)
        corpus = add_parts(open_corpus(source, options, progress=not quiet))
        return held_out.divide(corpus, model, None if holds_corpus(source) else [])
    if not holds_corpus(run / DOCUMENTS):
        raise InputError(
            f"{run} does not hold its documents; give what it was trained on, with the options of that call: "
            f"topicloom train FILE --continue {shlex.quote(str(run))} ..."
        )
    corpus = read_stored(run, model.vocabulary_, model.n_topics)[0]
    if held_out.split is None:
        return corpus, held_out.documents(corpus)
    from ..corpus.reading import parts_of_source

    path, reading, fields = (noted or {}).get("path"), held_out.reading or {}, corpus.fields.kinds()
    if path is None:
        raise InputError(f"{run} does not say which file it was trained on; give it, with the options of that call")
    parts = parts_of_source(path, model.vocabulary_, model.tokenizer_, reading, fields, held_out.split)
    return corpus, held_out.measured(parts, model)


def _begin_from_final_state(run: Path, model: TopicModel, corpus: Corpus, validation: Corpus | None) -> None:
    """Make the final state of a run the first checkpoint, if it is that of the model and the documents."""
    from ..reports.place import CHECKPOINTS, STATE
    from ..training.checkpoints import CHECKPOINT, final_state

    if not (run / STATE).is_file():
        raise InputError(
            f"{run} has no {STATE}, so it cannot be continued; runs have it if they are trained with checkpoints"
        )
    advice = "a run is trained further with its own documents and versions"
    state = final_state(run / STATE, model, corpus, advice, validation)
    folder = run / CHECKPOINTS
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    state.write(folder / CHECKPOINT.format(1))
