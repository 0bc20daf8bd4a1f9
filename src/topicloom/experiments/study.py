"""Optuna's side of a search: the study, its journal, and its trials."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from ..errors import MissingExtraError

Sampler = Literal["tpe", "random"]
_NEXT_SEED = 7919  # with the first seed, a continued search would repeat its first trials


@contextmanager
def open_study(folder: Path, sampler: Sampler, random_state: int) -> Iterator[Any]:
    """Yield the study whose journal is in a directory, which this process has locked.

    Meanwhile, Optuna logs nothing but warnings.

    Raises:
        MissingExtraError: Optuna is not installed.
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
        journal = str(folder / "study.journal")
        storage = optuna.storages.JournalStorage(JournalFileBackend(journal, Unlocked(journal)))
        study = optuna.create_study(storage=storage, study_name="topicloom", direction="maximize", load_if_exists=True)
        kinds = {"tpe": optuna.samplers.TPESampler, "random": optuna.samplers.RandomSampler}
        study.sampler = kinds[sampler](seed=random_state + _NEXT_SEED * len(study.trials))
        yield study
    finally:
        optuna.logging.set_verbosity(level)


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


def finished(study: Any) -> list[Any]:
    """Return the trials that ended, in order. A trial that was interrupted or killed did not."""
    return [trial for trial in study.get_trials(deepcopy=False) if trial.state.name in ("COMPLETE", "FAIL")]


def completed(study: Any) -> list[Any]:
    """Return the trials that ended without an error, in order."""
    return [trial for trial in finished(study) if trial.state.name == "COMPLETE"]


def row_of(trial: Any) -> dict[str, Any]:
    """Return a trial as a row: number, value (None after an error), settings, seconds, measures; or the error."""
    return {"number": trial.number, "value": trial.value, "settings": dict(trial.params), **trial.user_attrs}
