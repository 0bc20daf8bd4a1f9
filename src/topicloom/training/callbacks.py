"""What may watch a training run. A callback sees rows and counts; it changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from .state import Snapshot


class HasSnapshot(Protocol):
    """The state of a run, of whatever method."""

    def snapshot(self) -> Snapshot:
        """Return all that is needed to go on from here."""


class Callback:
    """Does nothing at every event; override what you need."""

    def on_start(self, n_epochs: int, n_batches: int) -> None:
        """Before the first epoch: how many epochs, and batches in each."""

    def on_batch(self) -> None:
        """After each step."""

    def on_epoch(self, row: dict[str, Any]) -> None:
        """After each epoch: its row of history_."""

    def on_state(self, state: HasSnapshot) -> None:
        """After each epoch, pretraining's included: `state.snapshot()` is all that is needed to go on from here."""

    def on_end(self) -> None:
        """After the last epoch, or when training fails."""


@contextmanager
def watched(callbacks: Sequence[Callback], n_epochs: int, n_batches: int) -> Iterator[None]:
    """Tells the callbacks that training starts, and that it ends, however it ends."""
    with ExitStack() as ends:
        for callback in callbacks:
            callback.on_start(n_epochs, n_batches)
            ends.callback(callback.on_end)
        yield


class ProgressBar(Callback):
    """A bar on standard error, with the loss of the last epoch."""

    def on_start(self, n_epochs: int, n_batches: int) -> None:
        self._bar = Progress(
            TextColumn("training"),
            BarColumn(),
            TextColumn("epoch"),
            MofNCompleteColumn(),
            TextColumn("{task.fields[loss]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._share = 1 / n_batches
        self._task = self._bar.add_task("training", total=n_epochs, loss="")
        self._bar.start()

    def on_batch(self) -> None:
        self._bar.advance(self._task, self._share)

    def on_epoch(self, row: dict[str, Any]) -> None:
        loss = f"loss {row['loss']:.2f}" if "loss" in row else ""  # of several players, that one may not have moved
        self._bar.update(self._task, completed=int(row["epoch"]), loss=loss)

    def on_end(self) -> None:
        self._bar.stop()


class JsonLines(Callback):
    """Appends each epoch's row to a file, a JSON object a line, at once: a killed run leaves what it had done."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_epoch(self, row: dict[str, Any]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
