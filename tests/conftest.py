"""What all tests share."""

from __future__ import annotations

import gc
import logging
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from topicloom.training.callbacks import Callback

pytest.register_assert_rewrite("command_line")  # so that its failures show values, too

# The networks here are so small that a second thread costs more than it brings, above all beside other workers.
torch.set_num_threads(1)

# A shell starts background jobs with SIGINT ignored, and the commands that tests start and interrupt would ignore it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Search for garbage less often, and not among the thousands of tests and what they have imported."""
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


@pytest.fixture(autouse=True)
def _own_log():
    """The command line sets up the log; later tests find it as it is at first."""
    yield
    log = logging.getLogger("topicloom")
    log.handlers, log.disabled = [], False
    log.setLevel(logging.NOTSET)


class _Interrupter(Callback):
    def __init__(self, epochs: int) -> None:
        self.epochs = epochs

    def on_epoch(self, row: dict[str, Any]) -> None:
        if row["epoch"] == self.epochs:
            raise KeyboardInterrupt


@pytest.fixture
def interrupted_after() -> Callable[[int], Callback]:
    """A callback that stops training as Ctrl-C does, after so many epochs."""
    return _Interrupter


# What takes longer than to train, and what is done instead in tests without a mark and in their fixtures.
_INSTEAD: dict[str, dict[str, Callable[..., Any]]] = {
    "draws": {
        "topicloom.reports.run._draw": lambda *arguments: None,
        "topicloom.reports.comparison_page._svg": lambda *arguments: "",
    },
    "syncs": {"topicloom.files.writing._sync": lambda path: None},
}


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Draw the pictures of runs and wait for the disk only in tests with these marks, and in what they set up."""
    with pytest.MonkeyPatch.context() as patch:
        for mark, replacements in _INSTEAD.items():
            if item.get_closest_marker(mark) is None:
                for name, replacement in replacements.items():
                    patch.setattr(name, replacement)
        return (yield)
