"""What the commands that train share: where a run is written, how it goes on, and what is shown of it."""

from __future__ import annotations

import logging
import shlex
import shutil
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError, TrainingInterrupted
from ..training.intervals import read_interval
from .options import DocTopics
from .shell import print_json, reason_of, show_topics

if TYPE_CHECKING:
    from ..corpus import Corpus
    from ..models.base import TopicModel
    from ..training.checkpoints import Checkpoints

logger = logging.getLogger("topicloom")

MONITORED = "document_npmi"  # which needs only the counts


@dataclass(frozen=True)
class Outcome:
    """Where a training command writes its run, and what it writes and shows.

    With `helps`, this process trains with others, the first of which does all that.
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

    def require_place(self) -> None:
        """Check that the run and its checkpoints can be written, without loading PyTorch."""
        from ..reports.place import require_place

        if self.checkpoint_every is not None:
            read_interval(self.checkpoint_every)
        elif self.resume:
            raise InputError("a run goes on from its checkpoints; leave out --checkpoint-every none")
        if self.out is not None:
            require_place(self.out, self.overwrite, self.resume)

    def locked(self) -> ExitStack:
        """A context in which no other process writes to the run's directory."""
        from ..files import lock_directory

        stack = ExitStack()
        if self.out is not None and not self.helps:
            stack.enter_context(lock_directory(self.out))
        return stack

    def checkpoints(self, more_epochs: int | None = None) -> Checkpoints | None:
        """The checkpoints of the run. Those of an earlier one are removed, unless it goes on."""
        from ..distributed import current
        from ..reports.place import CHECKPOINTS
        from ..training.checkpoints import Checkpoints

        if self.out is None:
            return None
        folder = self.out / CHECKPOINTS
        if not self.resume and more_epochs is None:
            if not self.helps:
                shutil.rmtree(folder, ignore_errors=True)
            current().wait()
        return None if self.checkpoint_every is None else Checkpoints(folder, self.checkpoint_every, more_epochs)


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
        source: what the run notes about where the documents are from.
        monitor, monitor_every: as for `TopicModel.fit`.
        more_epochs: the epochs that are added to a finished run; None trains as the settings say.
        again: the content of the run's train.yaml, with which it can be repeated; None writes none.
        validation: held-out documents over the words of the corpus, whose loss is measured; None for none.
    """
    from ..distributed import current
    from ..reports import run
    from ..topics.tables import describe

    out = outcome.out
    checkpoints = outcome.checkpoints(more_epochs)
    if checkpoints is not None and outcome.resume and _has_finished(model, corpus, outcome, validation):
        return
    try:
        place = None if outcome.helps else out
        seconds = run.fit(model, corpus, place, monitor, monitor_every, checkpoints, validation)
    except TrainingInterrupted as stopped:
        if current().size > 1:
            again = "; start all processes again with --resume, and training goes on"
            raise TrainingInterrupted("" if outcome.helps else f"{stopped}{again}", stopped.signal) from None
        again = shlex.join(["topicloom", *sys.argv[1:], *([] if outcome.resume else ["--resume"])])
        raise TrainingInterrupted(f"{stopped}; go on with: {again}", stopped.signal) from None
    if outcome.helps:
        return
    documents = model.infer(corpus)
    found = describe(model, documents.shares, outcome.words)
    measured = None
    if out is not None:
        options = run.RunOptions(
            outcome.doc_topics.value, outcome.texts, outcome.documents, outcome.excel, outcome.explorer, outcome.font
        )
        state = None if checkpoints is None else checkpoints.finished_file
        try:
            measured = run.write(out, model, corpus, documents, seconds, options, source, state, again)
        except (InputError, OSError) as error:
            if state is None or not state.exists():
                raise
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


def _has_finished(model: TopicModel, corpus: Corpus, outcome: Outcome, validation: Corpus | None) -> bool:
    """Whether there is nothing to go on with, because the run of this model and these documents is complete.

    Raises:
        InputError: the directory has a complete run of another model, or of other documents.
    """
    from ..reports.place import STATE, is_finished
    from ..training.checkpoints import require_same_fit

    if outcome.out is None or not is_finished(outcome.out):
        return False
    again = "the run has finished, so give `overwrite=True` and not `resume=True`, or another place, to train a new one"
    require_same_fit(outcome.out / STATE, model, corpus, again, validation)
    topics = shlex.join(["topicloom", "topics", str(outcome.out)])
    logger.info("the run in %s has finished; see it with: %s", outcome.out, topics)
    if outcome.as_json:
        print_json({"run": str(outcome.out)})
    return True
