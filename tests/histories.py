"""What a fit leaves on its way: a snapshot after each epoch, and rows of `history_`."""

from __future__ import annotations

from typing import Any

from topicloom import Callback
from topicloom.training.callbacks import RunState
from topicloom.training.state import Snapshot


class Keeper(Callback):
    """Takes a snapshot after every epoch."""

    def __init__(self) -> None:
        self.snapshots: list[Snapshot] = []

    def on_state(self, state: RunState) -> None:
        self.snapshots.append(state.snapshot())


def without_seconds(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]
