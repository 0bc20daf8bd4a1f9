"""The errors that a user can cause. Each message is one sentence: what is wrong, where, and what to do."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from os import PathLike
from typing import ClassVar, Self


class InputError(ValueError):
    """An input cannot be used. The command line prints the message and exits with code 2."""


class SettingError(InputError, TypeError):
    """A setting does not exist, or cannot have the value that was given."""


class MissingExtraError(InputError, ImportError):
    """An optional dependency is needed, and is not installed or cannot be imported."""

    @classmethod
    def of(cls, what: str, package: str, extra: str) -> Self:
        """Return the error that `what` needs `package`, which the extra `extra` installs.

        The message gives the reason of the ImportError that is being handled, unless a module is merely missing.

        >>> print(MissingExtraError.of("drawing pictures", "matplotlib", "viz"))
        drawing pictures needs matplotlib: pip install 'topicloom[viz]'
        """
        error = sys.exc_info()[1]
        if isinstance(error, ImportError) and not isinstance(error, cls) and not _is_missing(error.name):
            reason = " ".join(str(error).split())
            return cls(
                f"{what} needs {package}, which is installed and cannot be imported ({reason:.200}); install it again: "
                f"pip install --force-reinstall {package}"
            )
        return cls(f"{what} needs {package}: pip install 'topicloom[{extra}]'")


def without_torch(what: str) -> MissingExtraError:
    """Return the error that `what` needs PyTorch, which a light installation lacks."""
    return MissingExtraError(f"{what} needs PyTorch: pip install torch")


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
        """Return the error that the file at `path` has a problem, such as "is missing".

        >>> print(CorpusFileError.of("news/corpus.json", "is missing"))
        news/corpus.json is missing; make the corpus again, or copy the directory again
        """
        return cls(f"{path} {problem}; {cls.advice}")

    @classmethod
    def unreadable(cls, path: str | PathLike[str], fault: OSError) -> Self:
        """Return the error that the system does not let the file be read, which says nothing about its content."""
        return cls(f"{path} cannot be read ({fault.strerror or fault}); correct that, and try again")

    @classmethod
    def other_form(cls, path: str | PathLike[str], problem: str, whole: bool = True) -> Self:
        """Return the error that the file at `path` does not have the form that this version reads.

        Args:
            path: the file.
            problem: what differs, such as "it has no 'settings'".
            whole: whether a checksum shows that the file is as it was written.
        """
        cause = "another version of topicloom wrote it" if whole else "an early version wrote it, or it is damaged"
        return cls(f"{path} is not in the form that this version reads ({problem}): {cause}; {cls.advice}")

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


class _StopsTraining(Exception):
    """Training stopped by itself.

    Attributes:
        kept: the end of the message: what the model is now; empty if it has learned nothing.
    """

    kept: str = ""

    def __str__(self) -> str:
        return "; ".join(filter(None, [super().__str__(), self.kept]))


class TrainingDivergedError(_StopsTraining, ArithmeticError):
    """Training met a value that is not finite.

    The message names the epoch and the batch. A model that was fitted before stays as it was. Any other one has the
    state of the last complete epoch.
    """


class OutOfMemoryError(_StopsTraining, InputError, MemoryError):
    """The device has too little memory for a batch; the message says which setting to change.

    A model that was fitted before stays as it was. Any other one has the state of the last complete epoch.
    """


class LostRankError(RuntimeError):
    """A process that trains together with others has ended, or does not answer; the message says what to do."""


class StateNotSavedError(OSError):
    """The final state of a training could not be written; the model is fitted and can be used and saved.

    The message names the directory of the checkpoints and the reason.
    """


class TrainingInterrupted(KeyboardInterrupt):
    """Training was stopped by a signal, after the state was written as a checkpoint.

    Attributes:
        signal: the number of the signal.
    """

    def __init__(self, message: str, signal: int) -> None:
        super().__init__(message)
        self.signal = signal
