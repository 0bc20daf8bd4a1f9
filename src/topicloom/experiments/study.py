"""Optuna's side of a search: the study, its journal, and its trials."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from ..errors import InputError, MissingExtraError

Sampler = Literal["tpe", "random"]
_NEXT_SEED = 7919  # each trial has a seed of its own, so that a continued search proposes what a whole one does


@contextmanager
def open_study(folder: Path) -> Iterator[Any]:
    """Yield the study whose journal is in a directory, which this process has locked.

    Meanwhile, Optuna logs nothing but warnings.

    Raises:
        MissingExtraError: Optuna is not installed.
        InputError: the journal is damaged.
    """
    try:
        import optuna
        from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
    except ImportError:
        raise MissingExtraError.of("tuning", "optuna", "tune") from None

    class Unlocked(JournalFileOpenLock):
        """No lock, because the whole directory is locked, and a killed process would leave Optuna's lock behind."""

        def acquire(self) -> bool:
            return True

        def release(self) -> None:
            pass

    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        journal = folder / "study.journal"
        _remove_incomplete_line(journal)
        try:
            storage = optuna.storages.JournalStorage(JournalFileBackend(str(journal), Unlocked(str(journal))))
            study = optuna.create_study(
                storage=storage, study_name="topicloom", direction="maximize", load_if_exists=True
            )
        except (ValueError, LookupError, TypeError, AssertionError) as error:
            raise InputError(f"{journal} is damaged ({error}); remove it to begin again") from None
        for trial in study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.RUNNING]):
            study.tell(trial.number, state=optuna.trial.TrialState.FAIL)  # its process was killed or interrupted
        yield study
    finally:
        optuna.logging.set_verbosity(level)


def _remove_incomplete_line(journal: Path) -> None:
    """Remove what a killed process left at the end, because Optuna would append its next line to it."""
    if not journal.is_file():
        return
    with journal.open("rb+") as file:
        content = file.read()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            file.truncate(whole)


def ask(study: Any, sampler: Sampler, random_state: int, n_before: int = 0) -> Any:
    """Return a new trial, which depends on the trials that ended and not on those that were interrupted.

    Args:
        study: the study.
        sampler: how settings are proposed.
        random_state: the seed of the search.
        n_before: how many trials have been proposed since the last one ended.
    """
    from optuna import samplers

    kinds = {"tpe": samplers.TPESampler, "random": samplers.RandomSampler}
    study.sampler = kinds[sampler](seed=random_state + _NEXT_SEED * (len(finished(study)) + n_before))
    return study.ask()


def ask_for(study: Any, settings: Mapping[str, Any]) -> Any:
    """Return a new trial of given settings."""
    from optuna import samplers
    from optuna.exceptions import ExperimentalWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        study.sampler = samplers.PartialFixedSampler(dict(settings), samplers.RandomSampler())
    return study.ask()


def suggest(trial: Any, name: str, values: Sequence[Any]) -> Any:
    """Propose a value of a setting.

    Args:
        trial: the trial.
        name: the setting.
        values: its range (low, high) or (low, high, "log"), or a list of choices.
    """
    if isinstance(values, list):
        return trial.suggest_categorical(name, values)
    low, high, *scale = values
    if isinstance(low, int) and isinstance(high, int):
        return trial.suggest_int(name, low, high, log=scale == ["log"])
    return trial.suggest_float(name, low, high, log=scale == ["log"])


def failed() -> Any:
    """Return the state of a trial that ended in an error."""
    from optuna.trial import TrialState

    return TrialState.FAIL


def finished(study: Any) -> list[Any]:
    """Return the trials that ended, in order: with a value or an error, which a trial that was interrupted has not."""
    return [
        trial
        for trial in study.get_trials(deepcopy=False)
        if trial.state.name == "COMPLETE" or (trial.state.name == "FAIL" and "error" in trial.user_attrs)
    ]


def completed(study: Any) -> list[Any]:
    """Return the trials that ended without an error, in order."""
    return [trial for trial in finished(study) if trial.state.name == "COMPLETE"]


def rows_of(study: Any) -> list[dict[str, Any]]:
    """Return the trials that ended: number, value (None after an error), settings, seconds, measures; or the error.

    Trials that were interrupted have no number.
    """
    return [
        {"number": number, "value": trial.value, "settings": dict(trial.params), **trial.user_attrs}
        for number, trial in enumerate(finished(study))
    ]
