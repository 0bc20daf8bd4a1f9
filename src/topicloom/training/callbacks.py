"""Callbacks: objects that watch the training of a model without changing it."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ..display import progress_console
from ..errors import SettingError
from ..files import full_disk_names

if TYPE_CHECKING:
    from ..nn.network import TopicNetwork
    from .state import Snapshot


class RunState(Protocol):
    """The state of a training run, for all methods of training."""

    @property
    def network(self) -> TopicNetwork:
        """The network as it is now; `network.topic_word()` returns its topics."""

    def snapshot(self) -> Snapshot:
        """Return a copy of the state, from which `fit(resume_from=...)` continues."""


class Callback:
    """The base of objects that watch the training of a model.

    Derive a class from it, override the methods that you need, and give an object of the class to `fit`. This callback
    keeps the most probable words of the first topic as they are after each epoch:

    >>> import topicloom
    >>> class FirstTopic(topicloom.Callback):
    ...     def on_start(self, model, n_epochs, n_batches):
    ...         self.words = model.vocabulary_
    ...
    ...     def on_state(self, state):
    ...         topics = state.network.topic_word().detach()  # (K, V), rows sum to 1
    ...         best = topics[0].topk(5).indices.tolist()
    ...         self.best = [self.words[word] for word in best]
    >>> corpus = topicloom.datasets.synthetic_lda(60, 2, 30, random_state=0).corpus
    >>> watcher = FirstTopic()
    >>> _ = topicloom.GSM(2, epochs=2, random_state=0).fit(corpus, callbacks=[watcher])
    >>> len(watcher.best)
    5

    `on_start` is called first, `on_batch` and then `on_step` after every batch, `on_epoch` and then `on_state` after
    every epoch, `on_finish` after the last epoch, and `on_end` at last. Some models begin with a stage that is not
    recorded in `history_`, such as a pretraining. In such a stage, only `on_step` and `on_state` are called. Models
    that other packages train have no batches here. During training, a model may have more topics than at the end.
    """

    def on_start(self, model: Any, n_epochs: int, n_batches: int) -> None:
        """Called once, before the first epoch.

        Args:
            model: the estimator that learns, a copy of the one whose `fit` was called. Its settings, `vocabulary_`,
                `word_counts_` and `document_counts_` are there already; `components_` is not.
            n_epochs: the greatest number of recorded epochs; for a Gibbs sampler, the number of iterations.
            n_batches: the number of batches in each epoch.
        """

    def on_batch(self) -> None:
        """Called after each batch."""

    def on_step(self, state: RunState) -> None:
        """Called after each batch with the state of the run.

        Args:
            state: `state.network` is the present network, and `state.snapshot()` copies all that is needed to continue
                from here with `fit(resume_from=...)`.
        """

    def on_epoch(self, row: dict[str, Any]) -> None:
        """Called after each epoch.

        Args:
            row: the row that the epoch adds to `history_`. A callback may add columns of its own to it: finite
                numbers, texts or None, as `history_` is saved with the model.
        """

    def on_state(self, state: RunState) -> None:
        """Called after each epoch with the state of the run.

        Args:
            state: `state.network` is the network as it is now, and `state.snapshot()` copies all that is needed to
                continue from here with `fit(resume_from=...)`.
        """

    def on_finish(self, state: RunState) -> None:
        """Called after the last epoch, if training neither failed nor was interrupted.

        Args:
            state: `state.network` is the network as it is now. With a `patience`, it has the weights of the last epoch;
                the best ones are restored afterwards.
        """

    def on_end(self) -> None:
        """Called at last, even if training fails or is interrupted."""


def check_callbacks(callbacks: Any) -> None:
    """Raise SettingError unless these are callbacks."""
    if isinstance(callbacks, Callback) or not isinstance(callbacks, Iterable):
        raise SettingError("callbacks should be a list; give [callback]")
    for callback in callbacks:
        if not isinstance(callback, Callback):
            raise SettingError(
                f"callbacks should contain objects of a subclass of topicloom.Callback; {callback!r:.60} is not one"
            )


def call_on_epoch(callbacks: Iterable[Callback], row: dict[str, Any]) -> None:
    """Call on_epoch of callbacks. Numbers of NumPy and PyTorch that they add to the row become numbers of Python.

    Raises:
        SettingError: a callback added a value that cannot be saved.
    """
    for callback in callbacks:
        before = dict(row)
        callback.on_epoch(row)
        for name, value in row.items():
            if name in before and before[name] is value:
                continue
            row[name] = value.item() if getattr(value, "ndim", None) == 0 else value  # a number of NumPy or PyTorch
            try:
                json.dumps(row[name], allow_nan=False)
            except (TypeError, ValueError):
                raise SettingError(
                    f"{type(callback).__name__} gave epoch {before['epoch']} {name!r} the value {value!r:.60}, which "
                    "cannot be saved with the model; give a finite number, a text or None"
                ) from None


@contextmanager
def watched(callbacks: Sequence[Callback], model: Any, n_epochs: int, n_batches: int) -> Iterator[None]:
    """Call on_start of all callbacks, and on_end however the training ends."""
    with ExitStack() as ends:
        for callback in callbacks:
            callback.on_start(model, n_epochs, n_batches)
            ends.callback(callback.on_end)
        yield


class ProgressBar(Callback):
    """A progress bar on standard error, with the last measured loss.

    >>> bar = ProgressBar()
    >>> bar.on_start(model=None, n_epochs=2, n_batches=1)
    >>> bar.on_batch()
    >>> bar.on_epoch({"epoch": 1, "loss": 5.25})
    >>> bar.on_end()
    """

    def on_start(self, model: Any, n_epochs: int, n_batches: int) -> None:
        self._bar = Progress(
            TextColumn("training"),
            BarColumn(),
            TextColumn("epoch"),
            MofNCompleteColumn(),
            TextColumn("{task.fields[loss]}"),
            TimeRemainingColumn(),
            **progress_console(),
        )
        self._share = 1 / n_batches
        self._task = self._bar.add_task("training", total=n_epochs, loss="")
        self._bar.start()

    def on_batch(self) -> None:
        self._bar.advance(self._task, self._share)

    def on_epoch(self, row: dict[str, Any]) -> None:
        if "loss" in row:  # some epochs do not measure it
            self._bar.update(self._task, loss=f"loss {row['loss']:.2f}")
        self._bar.update(self._task, completed=int(row["epoch"]))

    def on_end(self) -> None:
        self._bar.stop()


class JsonLines(Callback):
    """Appends the row of each epoch to a file as a line of JSON. Each row is written at once, so a killed run keeps it.

    Args:
        path: the file.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     log = JsonLines(Path(folder) / "log.jsonl")
    ...     log.on_epoch({"epoch": 1, "loss": 5.25})
    ...     log.path.read_text()
    '{"epoch": 1, "loss": 5.25}\\n'
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_epoch(self, row: dict[str, Any]) -> None:
        self.append([row])

    def append(self, rows: Iterable[dict[str, Any]]) -> None:
        """Write rows at the end of the file: all of them or none.

        Raises:
            OSError: the file cannot be written, for example because the disk is full. The error names the file.
        """
        lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
        with full_disk_names(self.path), self.path.open("ab", buffering=0) as file:
            end = file.tell()
            if file.write(lines) < len(lines):
                file.truncate(end)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
