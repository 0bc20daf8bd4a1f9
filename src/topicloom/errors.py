"""The errors a user can cause, each one sentence that says what is wrong, where, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Self


class InputError(ValueError):
    """Something a user gave cannot be used. The command line prints its one sentence and exits with code 2."""


class SettingError(InputError, TypeError):
    """A setting that does not exist, or a value that it cannot take."""


class MissingExtraError(InputError, ImportError):
    """An optional dependency is needed and not installed."""

    @classmethod
    def of(cls, what: str, package: str, extra: str) -> Self:
        """`what` needs `package`, which the extra `extra` installs."""
        return cls(f"{what} needs {package}: pip install 'topicloom[{extra}]'")


class TrainingDivergedError(ArithmeticError):
    """Training met a value that is not finite. The message names the epoch and the batch; the state before is kept."""


def nearest(name: str, names: Iterable[str]) -> str:
    """A sentence that offers the nearest of `names`, or lists them all when none is near."""
    known = sorted(names)
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    return f"did you mean {' or '.join(close)}?" if close else f"there are: {', '.join(known)}"
