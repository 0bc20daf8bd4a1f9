"""Checkpoints, from which a fit that was killed or stopped continues, with the result of an uninterrupted fit.

A checkpoint is one safetensors file with the tensors of a `Snapshot`. Its metadata contain, as JSON, the values of the
snapshot, the identity of the fit and a checksum. Nothing in a checkpoint is executed when it is read.
"""

from __future__ import annotations

import errno
import hashlib
import inspect
import json
import logging
import os
import platform
import re
import shutil
import signal
import stat
import struct
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from .._version import __version__
from ..corpus import Corpus
from ..distributed import Ranks, current
from ..embeddings.expansion import given
from ..errors import (
    InputError,
    LostRankError,
    ModelFileError,
    SettingError,
    StateNotSavedError,
    TrainingInterrupted,
)
from ..files import as_path, atomic_file, lock_directory, system_error, try_place
from ..messages import counted, joined
from ..settings import describe_value, read_interval, require_whole
from .callbacks import Callback, RunState
from .state import Continuation, Snapshot

logger = logging.getLogger("topicloom")

FORMAT_VERSION = 1  # raise it only if an older release would misread the file
CHECKPOINT = "checkpoint-{}.safetensors"
DEFAULT_EVERY = "1min"
_CHECKPOINT_NAME = re.compile(r"checkpoint-(\d+)\.safetensors")
_METADATA, _DIGEST = "topicloom", "sha256"  # keys in the metadata of the file
_N_KEPT = 2  # the number of checkpoints that are kept
_GREATEST_COST = 0.01  # the share of the training time that writing may take, if `every` is a time
_STEPS_BETWEEN_AGREEMENTS = 10  # steps after which several processes agree on whether to write
_ONE_PROCESS = "1 of 1"
_START_AGAIN = "delete it, or give another place, to start again"
_NONE_YET = "there is none yet, so nothing of the training is kept if it stops: make room, or give another place"
_TENSORS_PER_WEIGHT = 3  # a weight and the two moments of Adam
_NO_ROOM = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}

# Packages that compute. The last is optional.
_PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "numba", "tomotopy")


class Checkpoints(Callback):
    """Writes the whole state of a fit into a directory during training, and continues from it.

    Give it to `fit`, or give only the directory: `fit(corpus, checkpoint="checkpoints/news")`. If the directory already
    has a checkpoint of the same fit, training goes on from there. On a CPU the result is the same, bit for bit, as that
    of a fit that never stopped. After the fit the directory keeps its final state, from which `more_epochs` goes on.

    On SIGINT (Ctrl-C) and SIGTERM, training stops after the current batch (after the epoch, if a model has no batches),
    writes a checkpoint and raises TrainingInterrupted, a KeyboardInterrupt. A second signal ends the process at once.
    Signals are handled only in the main thread, and only if they have Python's own handlers.

    When several processes train together, each writes its own checkpoint at the same step: the first process into the
    directory itself, and the others into its subdirectories rank-1, rank-2 and so on. A fit continues with the same
    number of processes.

    The last two checkpoints are kept. Each is written to a temporary file and then renamed. If the disk is full, all
    but the newest are given up, and the write is tried again. If a checkpoint cannot be written, a warning says so,
    training continues, and the newest one stays. If the final state cannot be written, `fit` ends with
    StateNotSavedError; the model is fitted then, and can be used and saved.

    Args:
        directory: the directory of the checkpoints. Only one fit at a time may use it.
        every: the interval between checkpoints: a time such as "90s", "10min" or "2h", or a number of epochs such as
            "5 epochs". With a time, writing takes at most about a hundredth of the training: slow writing
            means fewer checkpoints.
        more_epochs: continue from the state of a finished fit, and train for this number of further epochs. The
            learning rate begins a new cycle; the optimizer keeps its moments. After a stop, the same call goes on with
            these epochs; after their end, it adds as many again.
        allow_other_versions: whether to go on from a checkpoint that other versions of topicloom, Python, PyTorch or
            other packages wrote. A warning names them. The result then differs from that of an uninterrupted fit, as
            far as these versions compute differently.

    Attributes:
        resumed_from: the checkpoint from which the fit continued, without its tensors, or None.

    Raises:
        SettingError: `every` or `more_epochs` cannot be understood.

    >>> import topicloom
    >>> from tempfile import TemporaryDirectory
    >>> corpus = topicloom.datasets.synthetic_lda(60, 2, 30, random_state=0).corpus
    >>> with TemporaryDirectory() as folder:
    ...     _ = topicloom.GSM(2, epochs=2, random_state=0).fit(corpus, checkpoint=folder)
    ...     more = topicloom.Checkpoints(folder, more_epochs=3)
    ...     model = topicloom.GSM(2, epochs=2, random_state=0).fit(corpus, checkpoint=more)
    >>> len(model.history_)
    5
    """

    def __init__(
        self,
        directory: str | Path,
        every: str = DEFAULT_EVERY,
        more_epochs: int | None = None,
        allow_other_versions: bool = False,
    ) -> None:
        self.directory = self._own = as_path(directory, "directory")
        self._every_seconds, self._every_epochs = read_interval(every)
        if more_epochs is not None:
            require_whole("more_epochs", more_epochs)
        self.more_epochs = None if more_epochs is None else int(more_epochs)
        self.allow_other_versions = allow_other_versions
        self.resumed_from: Checkpoint | None = None
        self._ranks = Ranks()
        self._signal: int | None = None
        self._damaged: list[Path] = []
        self._written: Checkpoint | None = None  # the last one that is on disk
        self._rescued: Path | None = None  # the state of a stopped fit that could not be written in its place
        self._failure = ""  # why the last write failed; "" if it did not
        self._room_is_checked = False

    @property
    def finished_file(self) -> Path | None:
        """The file with the final state, if training has finished and the state could be written."""
        if self._written is None or not self._written.finished or self._ranks.size > 1:
            return None
        files = _checkpoints_in(self._own)
        return files[max(files)] if files else None

    @classmethod
    def of(cls, checkpoint: str | Path | Checkpoints) -> Checkpoints:
        """Return the checkpoints that `fit` was given, with the default settings for a directory."""
        return checkpoint if isinstance(checkpoint, Checkpoints) else cls(as_path(checkpoint, "checkpoint"))

    @contextmanager
    def watching(self, model: Any, corpus: Corpus, validation: Corpus | None) -> Iterator[Snapshot | None]:
        """Prepare for a fit, and yield the state from which it continues, or None.

        Args:
            model: the estimator, whose settings have been checked.
            corpus: its documents.
            validation: the held-out documents, or None.

        Raises:
            InputError: the directory belongs to another fit, cannot be written, or another process is using it.
            ModelFileError: the directory has checkpoints, but all of them are damaged.
            StateNotSavedError: the fit has ended, and its final state could not be written.
        """
        self._ranks = current()
        self._own = self.directory if self._ranks.is_first else self.directory / f"rank-{self._ranks.rank}"
        self._failure, self._rescued, self._room_is_checked = "", None, False
        with self._locked():
            self._identity = Identity.of(model, corpus, validation)
            found = self._newest()
            if found is not None:
                found = _checked(self._identity, found, self.directory, model, self.allow_other_versions)
            if found is None or not found.finished or self.more_epochs is not None:
                self._require_writable()
            snapshot = None if found is None else found.snapshot
            if self.more_epochs is not None:
                snapshot = self._continued(found)
            self.resumed_from = None if found is None else found.without_tensors()
            self._continuation = None if snapshot is None else snapshot.continued
            self._written = self.resumed_from
            self._began = self._last = time.monotonic()
            self._cost, self._epochs_since, self._steps = 0.0, 0, 0
            if found is not None:
                logger.info("going on after epoch %s from %s", found.epoch, self.directory)
            with self._handling_signals():
                yield snapshot
            if self._failure:
                raise StateNotSavedError(
                    f"the final state of the training cannot be written in {self._own} ({self._failure}); the model is "
                    "fitted, so save it in a place that can be written"
                )

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Lock the directory, which is made if it does not exist."""
        with ExitStack() as stack:
            try:
                self._own.mkdir(parents=True, exist_ok=True)
                stack.enter_context(lock_directory(self._own / "checkpoint"))
            except FileExistsError:
                raise InputError(f"{self._own} is a file; give a directory for the checkpoints") from None
            except OSError as error:
                if error.errno not in _NO_ROOM:
                    raise self._not_writable(error) from None
                self._warn_of_no_room(error.strerror)
            yield

    def _require_writable(self) -> None:
        """Check that checkpoints can be written. A full disk only gives a warning, as there may be room later."""
        if self._room_is_checked:
            return
        try:
            try_place(self._own / CHECKPOINT.format(1))
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise self._not_writable(error) from None
            self._warn_of_no_room(error.strerror)

    def _not_writable(self, error: OSError) -> InputError:
        reason = error.strerror or error
        return InputError(f"no checkpoint can be written in {self._own} ({reason}); give another place")

    def _warn_of_no_room(self, reason: str | None) -> None:
        self._room_is_checked = True
        logger.warning(
            "no checkpoint can be written in %s now (%s); make room there, or the training cannot go on after a stop",
            self._own,
            reason,
        )

    # Methods that the training loop calls

    def on_step(self, state: RunState) -> None:
        self._steps += 1
        self._check_room(state)
        if self._ranks.size == 1 or self._steps % _STEPS_BETWEEN_AGREEMENTS == 0:
            self._write_if_due(state)

    def on_epoch(self, row: dict[str, Any]) -> None:
        self._epochs_since += 1

    def on_state(self, state: RunState) -> None:
        self._check_room(state)
        self._write_if_due(state, self._every_epochs is not None and self._epochs_since >= self._every_epochs)

    def on_finish(self, state: RunState) -> None:
        if (
            self._written is None
            or not self._written.finished
            or self._continuation != self._written.snapshot.continued
        ):
            self._write(state, finished=True)

    def _write_if_due(self, state: RunState, due: bool = False) -> None:
        """Write a checkpoint if it is time, or if a signal stops training. All ranks agree on both."""
        if self._every_seconds is not None:
            wait = max(self._every_seconds, self._cost / _GREATEST_COST)
            due |= time.monotonic() - self._last >= wait
        if self._ranks.size > 1:
            self._signal = self._greatest(self._signal or 0) or None
            due = bool(self._greatest(due))
        if due or self._signal is not None:
            self._write(state)
            self._stop_on_signal()

    def _write(self, state: RunState, finished: bool = False) -> None:
        """Write a checkpoint, or warn that it cannot be written.

        The state of a fit that a signal stops is written elsewhere if there is no room for it in its place.
        """
        began = time.monotonic()
        taken = state.snapshot()
        snapshot = Snapshot(taken.tensors, taken.values, self._continuation)
        before = 0.0 if self.resumed_from is None else self.resumed_from.seconds
        checkpoint = Checkpoint(self._identity, snapshot, finished, before + began - self._began)
        numbered = _checkpoints_in(self._own)
        number = 1 + self._greatest(max(numbered, default=0))
        good = [each for each in sorted(numbered) if numbered[each] not in self._damaged]
        before_newest = [numbered[each] for each in good[:-1]]
        failure = ""
        try:
            self._write_or_make_room(checkpoint, self._own / CHECKPOINT.format(number), before_newest)
        except OSError as error:
            failure = error.strerror or str(error)
            last = f"the last one is of epoch {self._written.epoch}" if self._written else _NONE_YET
            logger.warning("no checkpoint can be written in %s (%s); %s", self._own, failure, last)
        failed = bool(self._greatest(bool(failure)))  # on any rank
        self._failure = (failure or "another process could not write") if failed and finished else ""
        if failed and self._signal is not None and self._ranks.size == 1:
            self._rescue(checkpoint, number)
        if not failed:
            self._written = checkpoint.without_tensors()
            for path in (*self._damaged, *(numbered[each] for each in good[: 1 - _N_KEPT])):
                with suppress(OSError):
                    path.unlink()
            self._damaged = []
        self._last = time.monotonic()
        self._cost, self._epochs_since = self._last - began, 0

    def _write_or_make_room(self, checkpoint: Checkpoint, path: Path, earlier: Sequence[Path]) -> None:
        """Write a checkpoint. If the disk is full, remove the earlier ones and try again.

        Args:
            earlier: the checkpoints before the newest.

        Raises:
            OSError: the checkpoint cannot be written. The newest one before it is still there.
        """
        try:
            checkpoint.write(path)
        except OSError as error:
            if error.errno not in _NO_ROOM or not _removed([*self._damaged, *earlier]):
                raise
            checkpoint.write(path)

    def _check_room(self, state: RunState) -> None:
        """Warn at the first step if there is no room for a first checkpoint."""
        if self._room_is_checked:
            return
        self._room_is_checked = True
        weights = state.network.state_dict() if isinstance(state.network, torch.nn.Module) else {}
        needed = _TENSORS_PER_WEIGHT * sum(each.numel() * each.element_size() for each in weights.values())
        with suppress(OSError):
            free = shutil.disk_usage(self._own).free
            if free < needed:
                self._warn_of_no_room(f"it takes about {needed / 1e6:.3g} MB, and {free / 1e6:.3g} MB are free")

    def _rescue(self, checkpoint: Checkpoint, number: int) -> None:
        """Write the state of a fit that is stopped into the system's directory of temporary files."""
        with suppress(OSError):
            path = Path(tempfile.mkdtemp(prefix="topicloom-")) / CHECKPOINT.format(number)
            checkpoint.write(path)
            self._rescued = path

    def _stop_on_signal(self) -> None:
        if self._signal is None:
            return
        if self._rescued is not None:
            message = (
                f"training was stopped, and its state is in {self._rescued}, because {self.directory} cannot be "
                "written; make room, and move the file there before you go on"
            )
        elif self._written is None:
            message = f"training was stopped, and {self.directory} has no checkpoint to go on from"
        else:
            message = f"training was stopped; {self.directory} has its state after epoch {self._written.epoch}"
        raise TrainingInterrupted(message, self._signal)

    def _newest(self) -> Checkpoint | None:
        """Return the newest checkpoint that is not damaged on any rank, or None."""
        problem: ModelFileError | None = None
        self._damaged = []
        files = _checkpoints_in(self._own)
        any_files = self._greatest(bool(files))
        while number := -self._greatest(-max(files, default=0)):
            self._damaged += [path for each, path in files.items() if each > number]  # other ranks lack these
            path, found = files.get(number, self._own / CHECKPOINT.format(number)), None
            try:
                found = read_checkpoint(path)
            except ModelFileError as error:
                logger.warning("%s; an earlier checkpoint is used if there is one", error)
                problem = error
                self._damaged.append(path)
            files = {each: path for each, path in files.items() if each < number}
            if not self._greatest(found is None):
                return found
        if problem is not None:
            raise ModelFileError(f"{problem}, and there is no other; delete {self.directory} to start again")
        if any_files:
            raise ModelFileError(
                f"{self.directory} has no checkpoint that all {self._ranks.size} processes have; start as many "
                "processes as wrote it, or delete it to start again"
            )
        return None

    def _greatest(self, number: int) -> int:
        """Return the greatest number over all ranks."""
        return int(self._ranks.max(torch.tensor(int(number))))

    def _continued(self, found: Checkpoint | None) -> Snapshot:
        """Return the final state of a finished fit with the epochs that are to be added, or the state of a stop."""
        assert self.more_epochs is not None
        if found is not None and not found.finished and (stopped := found.snapshot.continued) is not None:
            if stopped.epochs != self.more_epochs:
                raise InputError(
                    f"{self.directory} holds a fit that stopped while {counted(stopped.epochs, 'epoch')} were added; "
                    f"give `more_epochs={stopped.epochs}` to go on"
                )
            return found.snapshot
        if found is None or not found.finished:
            what = "holds no finished fit" if found is None else "holds a fit that has not finished"
            raise InputError(f"{self.directory} {what}, so no epochs can be added to it; fit the model first")
        taken = found.snapshot
        values = taken.values | {"stale_epochs": 0}  # a fit that ended by its patience has used them up
        return Snapshot(taken.tensors, values, Continuation(found.epoch, self.more_epochs))

    @contextmanager
    def _handling_signals(self) -> Iterator[None]:
        """Note a first SIGINT or SIGTERM, and let a second one end the process as usual."""
        usual: dict[signal.Signals, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
        self._signal = None
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        ours = [number for number, handler in usual.items() if signal.getsignal(number) is handler]

        def note(number: int, frame: FrameType | None) -> None:
            self._signal = number
            for each in ours:
                signal.signal(each, usual[each])

        try:
            for number in ours:
                signal.signal(number, note)
            yield
        except LostRankError:
            # The launcher of the ranks ends this process by one SIGTERM. Its last messages should appear before that.
            if self._signal is None and signal.SIGTERM in ours:
                ours.remove(signal.SIGTERM)
            raise
        finally:
            for number in ours:
                signal.signal(number, usual[number])


def _checked(
    wanted: Identity, found: Checkpoint, place: Path, model: Any, other_versions: bool, advice: str = _START_AGAIN
) -> Checkpoint:
    """Return a checkpoint that belongs to a fit.

    Args:
        wanted: the identity of the fit.
        found: the checkpoint.
        place: where it is, for messages.
        model: the estimator.
        other_versions: whether other versions may have written it. Settings that they did not have are defaults.
        advice: the end of the message if it belongs to another fit.

    Raises:
        InputError: the checkpoint belongs to another fit.
    """
    changed = wanted.other_versions(found.identity)
    if changed:
        settings = _default_settings(model) | found.identity.settings
        found = replace(found, identity=replace(found.identity, versions=wanted.versions, settings=settings))
    difference = wanted.difference(found.identity)
    if difference is not None:
        raise InputError(f"the checkpoint in {place} {difference}; {advice}")
    if changed and not other_versions:
        raise InputError(
            f"the checkpoint in {place} was written with {changed[0]}; `allow_other_versions=True` goes on without the "
            f"promise of the same bits, or {advice}"
        )
    if changed:
        logger.warning(
            "the checkpoint in %s was written with %s; the result can differ from that of an uninterrupted training",
            place,
            joined(changed),
        )
    return found


def _default_settings(model: Any) -> dict[str, str]:
    """Return a description of the default of each setting that has one, as in `Identity.settings`."""
    kept = type(model).settings_without_effect
    parameters = inspect.signature(type(model)).parameters.items()
    return {
        name: describe_value(parameter.default)
        for name, parameter in parameters
        if name not in kept and parameter.default is not parameter.empty
    }


def _removed(paths: Iterable[Path]) -> bool:
    """Remove files, and return whether any was removed."""
    any_removed = False
    for path in paths:
        with suppress(OSError):
            path.unlink()
            any_removed = True
    return any_removed


def _checkpoints_in(directory: Path) -> dict[int, Path]:
    """Return the checkpoints in a directory by their numbers."""
    if not directory.is_dir():
        return {}
    return {int(found[1]): path for path in directory.iterdir() if (found := _CHECKPOINT_NAME.fullmatch(path.name))}


# Functions for `fit` and the command line


def check_start(checkpoint: object, resume_from: object) -> None:
    """Raise SettingError if `fit` cannot continue from these arguments."""
    if checkpoint is not None and resume_from is not None:
        raise SettingError("a fit continues from `checkpoint` or from `resume_from`; give one of them")
    if not isinstance(resume_from, Snapshot | None):
        raise SettingError(f"`resume_from` should be what `state.snapshot()` returned; it is {resume_from!r:.80}")


def require_same_fit(
    file: Path,
    model: Any,
    corpus: Corpus,
    advice: str,
    validation: Corpus | None = None,
    allow_other_versions: bool = False,
) -> None:
    """Check that a checkpoint belongs to a fit of this estimator to these documents.

    Args:
        file: the checkpoint.
        model: the estimator.
        corpus: the documents.
        advice: the end of the message if the checkpoint belongs to another fit: what to do.
        validation: the held-out documents, over the words of `corpus`, if the fit has any.
        allow_other_versions: whether other versions of packages may have written it.

    Raises:
        InputError: the checkpoint belongs to another fit.
        ModelFileError: the file is missing or damaged.
    """
    own = Identity.of(model, corpus, validation)
    _checked(own, read_checkpoint(file), file, model, allow_other_versions, advice)


def final_state(
    file: Path,
    model: Any,
    corpus: Corpus,
    advice: str,
    validation: Corpus | None = None,
    allow_other_versions: bool = False,
) -> Checkpoint:
    """Return the final state of a run as a checkpoint for an estimator that was made from the saved model of the run.

    The estimator's settings may differ from those of the fit, because a saved model has word vectors in its weights.

    Args:
        file: the state of the run.
        model: the estimator.
        corpus: the documents of the run.
        advice: the end of the message if the checkpoint belongs to another fit: what to do.
        validation: the held-out documents, over the words of `corpus`, if the fit has any.
        allow_other_versions: whether other versions of packages may have written it.

    Raises:
        InputError: the documents or the versions of packages differ from those of the run.
        ModelFileError: the file is missing or damaged.
    """
    own, found = Identity.of(model, corpus, validation), read_checkpoint(file)
    found = replace(found, identity=replace(found.identity, settings=own.settings))
    return _checked(own, found, file, model, allow_other_versions, advice)


def newest_beyond(directory: Path, file: Path) -> Checkpoint | None:
    """Return the newest checkpoint in a directory, or None if it is the final state of the fit in `file`.

    Raises:
        ModelFileError: all checkpoints in the directory are damaged, or `file` is missing or damaged.
    """
    found, final = Checkpoints(directory)._newest(), read_checkpoint(file)
    return None if found is not None and found.finished and found.epoch == final.epoch else found


def epochs_added(file: Path) -> int | None:
    """Return the number of epochs that the last continuation added to the fit in `file`, or None without one.

    Raises:
        ModelFileError: the file is missing or damaged.
    """
    continued = read_checkpoint(file).snapshot.continued
    return None if continued is None else continued.epochs


@dataclass(frozen=True)
class Checkpoint:
    """The state of a run in a file.

    Attributes:
        identity: the model, the documents and the versions of the fit.
        snapshot: the state.
        finished: whether training has finished.
        seconds: the training time so far.
    """

    identity: Identity
    snapshot: Snapshot
    finished: bool
    seconds: float

    def without_tensors(self) -> Checkpoint:
        """Return the checkpoint without its tensors, which can be large."""
        return replace(self, snapshot=replace(self.snapshot, tensors={}))

    @property
    def history(self) -> list[dict[str, Any]]:
        """The rows of the finished epochs."""
        rows: list[dict[str, Any]] = self.snapshot.values["history"]
        return rows

    @property
    def epoch(self) -> int:
        """The number of finished epochs that are recorded; for a Gibbs sampler, the number of iterations."""
        return int(self.history[-1]["epoch"]) if self.history else 0

    def write(self, path: Path) -> None:
        """Write the file completely or not at all.

        Raises:
            OSError: the file cannot be written, for example because the disk is full.
        """
        text = json.dumps(
            {
                "format_version": FORMAT_VERSION,
                "identity": asdict(self.identity),
                "finished": self.finished,
                "seconds": self.seconds,
                "continued": None if self.snapshot.continued is None else asdict(self.snapshot.continued),
                "values": self.snapshot.values,
            }
        )
        metadata = {_METADATA: text, _DIGEST: _digest(text, self.snapshot.tensors)}
        with atomic_file(path) as temporary:
            try:
                save_file(self.snapshot.tensors, temporary, metadata)
            except SafetensorError as error:  # for example, the disk is full
                raise system_error(error, path) from error


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint that `Checkpoint.write` wrote.

    Raises:
        ModelFileError: the file is missing or damaged, or a newer version wrote it.
        OSError: the file cannot be opened, whatever its content.
    """
    whole = False
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait for its other end
            raise ModelFileError(f"{path} is not a file; remove it")
        with path.open("rb"):  # safetensors would report a file without permission as missing
            pass
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        text = metadata[_METADATA]
        if metadata[_DIGEST] != _digest(text, tensors):
            raise ModelFileError(f"{path} is damaged: its content has changed since it was written")
        whole = True
        content = json.loads(text)
        if content["format_version"] > FORMAT_VERSION:
            raise ModelFileError.newer(path)
        continued = content["continued"]
        snapshot = Snapshot(tensors, content["values"], None if continued is None else Continuation(**continued))
        return Checkpoint(Identity(**content["identity"]), snapshot, content["finished"], content["seconds"])
    except FileNotFoundError:
        raise ModelFileError(f"{path} does not exist; check the path") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ModelFileError(f"{path} is a link that leads to itself; remove it") from None
        raise OSError(f"{path} cannot be read ({error.strerror or error}); correct that, and try again") from None
    except (SafetensorError, KeyError, TypeError, ValueError, RecursionError) as error:
        if isinstance(error, ModelFileError):
            raise
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        if whole:
            raise ModelFileError.other_form(path, reason) from None
        raise ModelFileError(f"{path} is damaged: {reason}") from None


def _digest(text: str, tensors: Mapping[str, torch.Tensor]) -> str:
    """Return a checksum of the text, and of the names, types, shapes and contents of the tensors."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        label = f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode()
        digest.update(struct.pack("<Q", len(label)) + label)
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


# The identity of a fit


@dataclass(frozen=True)
class Identity:
    """The identity of a fit. A checkpoint continues only a fit with the same identity.

    Attributes:
        model: the model's class.
        settings: a description of each setting on which the result depends.
        documents: a digest of the counts and words.
        validation: a digest of the held-out documents, or None.
        versions: the versions of topicloom, Python and the packages that compute.
        process: the number of this process and how many train together, such as "1 of 4".
    """

    model: str
    settings: dict[str, str]
    documents: str
    validation: str | None
    versions: dict[str, str]
    process: str = _ONE_PROCESS

    @classmethod
    def of(cls, model: Any, corpus: Corpus, validation: Corpus | None) -> Identity:
        """Return the identity of a fit of an estimator.

        Raises:
            SettingError: a setting has a value that cannot be compared, such as a function without a name.
        """
        kind = type(model)
        try:
            settings = {
                name: describe_value(value)
                for name, value in model.get_params(deep=False).items()
                if name not in type(model).settings_without_effect
            }
        except OSError as error:
            raise SettingError(f"{error.filename} cannot be read: {error.strerror}") from None
        # What documents get from their neighbours follows from the settings and from their own counts.
        documents, held_out = given(corpus).counts_digest, None if validation is None else validation.counts_digest
        process = f"{current().rank + 1} of {current().size}"
        return cls(f"{kind.__module__}.{kind.__qualname__}", settings, documents, held_out, versions(), process)

    def other_versions(self, other: Identity) -> list[str]:
        """Return each version by which another fit differs, with the one here."""
        pairs = {
            name: [each.versions.get(name, "missing") for each in (other, self)]
            for name in sorted({*self.versions, *other.versions})
        }
        return [f"{name} {there}, and here it is {here}" for name, (there, here) in pairs.items() if there != here]

    def difference(self, other: Identity) -> str | None:
        """Return how another fit differs, as the end of a sentence about that fit, or None if it is the same."""
        if other.model != self.model:
            return f"is a fit of {other.model}, not of {self.model}"
        if changed := self.other_versions(other):
            return f"was written with {changed[0]}"
        for name in sorted({*self.settings, *other.settings}):
            there, here = (each.settings.get(name, "missing") for each in (other, self))
            if there != here:
                return f"has another setting: {name} is {there:.80}, not {here:.80}"
        if other.process != self.process:
            return f"was written by process {other.process}, and this is process {self.process}"
        if other.documents != self.documents:
            return "is a fit of other documents"
        if other.validation != self.validation:
            return "has other documents for validation"
        return None


def versions() -> dict[str, str]:
    """Return the versions of topicloom, of Python and of the installed packages that compute, by name."""
    found = {"topicloom": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # it is not installed, or not as a package
            continue
    return found | {"torch": torch.__version__}  # it includes the build, such as 2.6.0+cpu


def machine(device: torch.device) -> dict[str, Any]:
    """Return facts of this machine.

    Args:
        device: where the model is.
    """
    return {
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "torch_build": {
            "commit": torch.version.git_version,
            "instructions": torch.backends.cpu.get_cpu_capability(),
            "mkl": torch.backends.mkl.is_available(),
            "cuda": torch.version.cuda,
        },
    }
