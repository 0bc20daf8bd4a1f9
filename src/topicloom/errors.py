"""The errors that a user can cause. Each is one sentence that says what is wrong, where, and what to do.

A message writes an argument in backquotes, with its value where one is meant: `min_df`, or `n_topics=6`. That is how
Python names it; the command line rewrites it as the option of the running command (see `on_command_line`).
"""

from __future__ import annotations

import difflib
import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from os import PathLike
from typing import ClassVar, Self

_LISTED = 100  # names in a message


class InputError(ValueError):
    """An input cannot be used. The command line prints the message and exits with code 2."""


class SettingError(InputError, TypeError):
    """A setting does not exist, or cannot have the value that was given."""


class MissingExtraError(InputError, ImportError):
    """An optional dependency is needed, and is not installed or cannot be imported."""

    @classmethod
    def of(cls, what: str, package: str, extra: str) -> Self:
        """Return the error that `what` needs `package`, which the extra `extra` installs.

        If an ImportError is being handled that a missing module did not cause, the message gives it as the reason.
        """
        error = sys.exc_info()[1]
        if isinstance(error, ImportError) and not isinstance(error, cls) and not _is_missing(error.name):
            reason = " ".join(str(error).split())
            return cls(
                f"{what} needs {package}, which is installed and cannot be imported ({reason:.200}); install it again: "
                f"pip install --force-reinstall {package}"
            )
        return cls(f"{what} needs {package}: pip install 'topicloom[{extra}]'")


def _is_missing(module: str | None) -> bool:
    """Return whether there is no such module; None is one that exists."""
    try:
        return module is not None and find_spec(module) is None
    except ImportError:  # of a package that it would be in
        return True
    except ValueError:  # a module without a specification is there
        return False


class SavedFileError(InputError):
    """A file that topicloom wrote cannot be read again; the message names the file."""

    advice: ClassVar[str] = "copy the directory again"

    @classmethod
    def of(cls, path: str | PathLike[str], problem: str) -> Self:
        """Return the error that the file at `path` has a problem, such as "is missing"."""
        return cls(f"{path} {problem}; {cls.advice}")

    @classmethod
    def unreadable(cls, path: str | PathLike[str], fault: OSError) -> Self:
        """Return the error that the system does not let the file be read, which says nothing about its content."""
        return cls(f"{path} cannot be read ({fault.strerror or fault}); correct that, and try again")

    @classmethod
    def newer(cls, path: str | PathLike[str]) -> Self:
        """Return the error that the file at `path` has a newer format."""
        return cls(f"{path} was written by a newer version of topicloom; install that version")


class ModelFileError(SavedFileError):
    """A file of a saved model, or of a run, is missing, damaged or of a newer format; the message names the file."""

    advice = "train the model again, or copy the directory again"


class CorpusFileError(SavedFileError):
    """A file of a saved corpus, or of the documents of a run, is missing, damaged or of a newer format.

    The message names the file.
    """

    advice = "make the corpus again, or copy the directory again"


class TrainingDivergedError(ArithmeticError):
    """Training met a value that is not finite.

    The message names the epoch and the batch; the model keeps its state of the last complete epoch.
    """


class OutOfMemoryError(InputError, MemoryError):
    """The device has too little memory for a batch; the message says which setting to change.

    The model keeps its state of the last complete epoch.
    """


class LostRankError(RuntimeError):
    """A process that trains together with others has ended, or does not answer; the message says what to do."""


class TrainingInterrupted(KeyboardInterrupt):
    """Training was stopped by a signal, after the state was written as a checkpoint.

    Attributes:
        signal: the number of the signal.
    """

    def __init__(self, message: str, signal: int) -> None:
        super().__init__(message)
        self.signal = signal


def nearest(name: str, names: Iterable[str], shown: Iterable[str] | None = None, most: int = _LISTED) -> str:
    """Return a clause that offers the names most like `name`, or lists the first ones if none is similar.

    Args:
        name: what was given.
        names: the names that there are.
        shown: how the message writes each of them, in this order; None writes the names themselves, sorted.
        most: the number of names in a list.
    """
    known = sorted(names) if shown is None else list(names)
    written = dict(zip(known, known if shown is None else shown, strict=True))
    if close := _close(name, known):
        return f"did you mean {' or '.join(written[each] for each in close)}?"
    more = f" and {len(written) - most:,} more" if len(written) > most else ""
    return f"choose one of {', '.join(list(written.values())[:most])}{more}"


def similar(name: str, names: Iterable[str]) -> str:
    """Return a clause that offers the names most like `name`, or "" if none is similar."""
    close = _close(name, list(names))
    return f"did you mean {' or '.join(close)}?" if close else ""


def _close(name: str, known: Sequence[str]) -> list[str]:
    """Return up to three names of similar spelling; if there are none, those that are a part of it or contain it.

    Names that differ in upper and lower case alone come first.
    """
    same = [each for each in known if each.casefold() == name.casefold()]
    if close := (same or difflib.get_close_matches(name, known, n=3, cutoff=0.6)):
        return close[:3]
    parts = [each for each in known if min(len(each), len(name)) > 1 and (each in name or name in each)]
    return sorted(parts, key=lambda each: abs(len(each) - len(name)))[:3]


# Arguments whose options have other names on the command line.
_RENAMED = {
    "n_topics": "topics",
    "random_state": "seed",
    "n_jobs": "jobs",
    "n_groups": "groups",
    "alphas": "alpha",
    "top_n": "words",
    "every": "checkpoint_every",
}
_ARGUMENT = re.compile(r"`([A-Za-z_]\w*)(?:=([^`]+))?`")


def on_command_line(message: str, options: Iterable[str]) -> str:
    """Rewrite the arguments that a message names in backquotes as options of a command.

    `n_topics=6` becomes --topics 6, `overwrite=True` becomes --overwrite, and `header=False` becomes --no-header. A
    setting of the model that has no option of its own becomes --set name=value, if the command has --set. Any other
    argument loses its backquotes only.

    Args:
        options: the options of the command, such as "--topics".
    """
    known = set(options)

    def rewrite(found: re.Match[str]) -> str:
        name, value = found[1], found[2]
        option = f"--{_RENAMED.get(name, name).replace('_', '-')}"
        opposite = option.replace("--", "--no-", 1)
        if value == "False" and opposite in known:
            return opposite
        if option in known:
            return option if value in (None, "True") else f"{option} {shlex.quote(_unquoted(value))}"
        if value is not None and "--set" in known:
            return f"--set {shlex.quote(f'{name}={_unquoted(value)}')}"
        return found[0].strip("`")

    return _ARGUMENT.sub(rewrite, message)


def _unquoted(value: str) -> str:
    """Return a Python literal as the command line takes it: a text without its quotation marks."""
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1] if quoted else value
