"""What all tests share."""

from __future__ import annotations

import gc
import logging
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
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
    """The command line and modules of users set up logs; later tests find them as they are at first."""
    level, handlers = logging.root.level, set(logging.root.handlers)
    yield
    log = logging.getLogger("topicloom")
    log.handlers, log.disabled, log.propagate = [], False, True
    log.setLevel(logging.NOTSET)
    logging.root.setLevel(level)
    for added in set(logging.root.handlers) - handlers:
        logging.root.removeHandler(added)


_STATES: dict[str, Any] = {}  # of the generators of modules, as they are after the import


@pytest.fixture(autouse=True)
def _own_draws(request):
    """A test draws the same numbers from the RANDOM of its module, whichever tests ran before it in this process."""
    module = getattr(request.node, "module", None)
    if (random := getattr(module, "RANDOM", None)) is not None:
        random.bit_generator.state = _STATES.setdefault(module.__name__, random.bit_generator.state)


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


# The fonts of the machine do not matter to tests that take one of these fixtures.


def know(monkeypatch: pytest.MonkeyPatch, *others: str) -> str:
    """Make matplotlib know DejaVu Sans, which has no Chinese characters, and another font by these names: its file."""
    import matplotlib
    from matplotlib import font_manager

    shipped = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    dejavu, other = str(shipped / "DejaVuSans.ttf"), str(shipped / "STIXGeneral.ttf")
    face = next(face for face in font_manager.fontManager.ttflist if face.fname == dejavu)
    faces = [face, *(replace(face, fname=other, name=name) for name in others)]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", faces)
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [])
    return other


@pytest.fixture
def chinese_font(monkeypatch: pytest.MonkeyPatch) -> None:
    """A font that has every character, if one believes it."""
    from topicloom.reports.figures import style

    font = know(monkeypatch, "Chinese")
    known = style._characters
    everything = set(range(0x10000))
    monkeypatch.setattr(style, "_characters", lambda path: everything if path == font else known(path))


@pytest.fixture
def no_font(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fonts without Chinese characters alone."""
    know(monkeypatch)
