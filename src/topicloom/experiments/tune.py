"""Tuning: a search for a model's settings by Optuna, on validation documents only.

A directory keeps the study, so that a search goes on where it was killed:

    tuning.json      what is searched: model, objective, space, sampler, seed, the split, and a digest of the corpus
    study.journal    Optuna's journal of the trials
    best.yaml        the best settings, as `topicloom train --config` takes them
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import yaml
from sklearn.base import clone

from .._version import __version__
from ..corpus import Corpus
from ..errors import (
    InputError,
    MissingExtraError,
    SettingError,
    nearest,
)
from ..files import atomic_file, read_json, write_json
from ..models.base import TopicModel
from ..models.persistence import estimator_named
from ..settings import check_settings, refuse_unknown, settings_as_text
from .protocol import Judge, digest, split

logger = logging.getLogger("topicloom")

Sampler = Literal["tpe", "random"]
Space = Mapping[str, "tuple[float, float] | tuple[float, float, Literal['log']] | list[Any]"]

# A choice and no finding: coherence first, and enough of the other two that it is not had by topics all alike.
OBJECTIVE = {"document_npmi": 1.0, "topic_diversity": 0.5, "log_perplexity": -0.5}
SPACE: dict[str, Any] = {
    "alpha": (0.01, 1.0, "log"),
    "min_diversity": (0.6, 0.9),
    "learning_rate": (2e-3, 3e-2, "log"),
    "input_dropout": (0.0, 0.7),
    "dropout": (0.0, 0.5),
    "hidden_size": [64, 128, 256],
    "eta": (0.005, 0.5, "log"),
}
_MEASURES = (
    "document_npmi", "c_v", "c_npmi", "topic_diversity", "topic_uniqueness", "redundancy", "active_topics", "purity",
    "nmi", "ari", "accuracy", "log_perplexity",
)  # fmt: skip
_COHERENCES = {"document_npmi", "c_v", "c_npmi"}


@dataclass(frozen=True)
class Tuning:
    """What came of a search.

    Attributes:
        best: the settings of the best trial.
        value: its objective.
        trials: one row each, in order: number, value (None where the fit failed), settings, figures.
        objective: weights by measure.
        model, n_topics, sampler, seed: what was searched, and how.
    """

    best: dict[str, Any]
    value: float
    trials: list[dict[str, Any]]
    objective: dict[str, float]
    model: str
    n_topics: int
    sampler: str
    seed: int


def tune(
    corpus: Corpus,
    model: str | TopicModel = "gsm",
    n_topics: int = 20,
    *,
    trials: int = 30,
    space: Space | None = None,
    objective: Mapping[str, float] | None = None,
    sampler: Sampler = "tpe",
    seed: int = 0,
    out: str | Path | None = None,
    validation: float = 0.1,
    test: float = 0.2,
    told: Callable[[int, int, dict[str, Any]], None] | None = None,
) -> Tuning:
    """Searches settings. The test part is held out and never looked at: it is that of `compare` with the same shares.

    Args:
        model: a name, with settings after a colon as in `compare`; or an estimator, whose other settings stay.
        trials: how many fits there are to be, those of an earlier call on the same `out` among them.
        space: a setting's range (low, high), (low, high, "log") or list of choices; None is SPACE, as far as the model
            has the settings.
        objective: weights of measures, whose sum is made largest; None is OBJECTIVE. log_perplexity is the logarithm of
            completion perplexity over that of the vocabulary's size: 1 for a model that knows nothing.
        sampler: "tpe" (Bergstra et al. 2011) or "random".
        seed: of the sampler, and random_state of every fit.
        out: a directory that keeps the study; None keeps nothing.

    Raises:
        MissingExtraError: Optuna is not installed.
        SettingError: an unknown measure or setting, or an objective of coherence alone, which rewards topics that are
            all alike.
        InputError: `out` holds another search, or every trial failed.
    """
    weights = _objective(OBJECTIVE if objective is None else objective)
    estimator = _estimator(model)
    searched = _space(estimator, SPACE if space is None else space, given=space is not None)
    if sampler not in ("tpe", "random"):
        raise SettingError(f'sampler should be "tpe" or "random"; it is {sampler!r}')
    judge = Judge(split(corpus, validation, test))
    plan = {
        "model": type(estimator).__name__,
        "settings": settings_as_text(estimator),
        "n_topics": n_topics,
        "objective": weights,
        "space": {name: list(values) for name, values in searched.items()},
        "sampler": sampler,
        "seed": seed,
        "corpus": digest(corpus),
        "validation": validation,
        "test": test,
    }
    with TemporaryDirectory(prefix="topicloom-") as temporary:
        folder = Path(temporary) if out is None else Path(out)
        _claim(folder, plan)
        study = _study(folder, sampler, seed)

        def fit(trial: Any) -> float:
            settings = {name: _suggested(trial, name, values) for name, values in searched.items()}
            tried = clone(estimator).set_params(n_topics=n_topics, random_state=seed, **settings)
            trial.set_user_attr("seconds", round(judge.fit(tried), 3))
            figures = judge.figures(tried, ["validation"])["validation"]
            if "perplexity" in figures:
                figures["log_perplexity"] = math.log(figures["perplexity"]) / math.log(corpus.n_words)
            trial.set_user_attr("figures", figures)
            if missing := [name for name in weights if name not in figures]:
                raise InputError(f"this corpus does not allow {', '.join(missing)}: it needs labels, texts or counts")
            return sum(weight * figures[name] for name, weight in weights.items())

        while (n_done := len(_finished(study))) < trials:
            study.optimize(fit, n_trials=1, catch=(RuntimeError, ArithmeticError))
            if told is not None:
                told(n_done + 1, trials, _row(study.trials[-1]))
        good = [trial for trial in _finished(study) if trial.value is not None]
        if not good:
            raise InputError("every trial failed: look at the space and the corpus")
        top = max(good, key=lambda trial: trial.value)
        best = dict(top.params)
        if out is not None:
            _write_best(folder, type(estimator).__name__, n_topics, seed, best)
        rows = [_row(trial) for trial in _finished(study)]
        return Tuning(best, top.value, rows, weights, type(estimator).__name__, n_topics, sampler, seed)


def check(model: str | TopicModel, objective: Mapping[str, float] | None = None) -> None:
    """Raises what `tune` would for the model or the objective."""
    _estimator(model)
    _objective(OBJECTIVE if objective is None else objective)


def _objective(weights: Mapping[str, float]) -> dict[str, float]:
    for name in weights:
        if name not in _MEASURES:
            raise SettingError(f"the objective names {name!r}; {nearest(name, _MEASURES)}")
    kept = {name: float(weight) for name, weight in weights.items() if weight}
    if not kept:
        raise SettingError("the objective is empty: give measures with weights")
    if kept.keys() <= _COHERENCES:
        raise SettingError(
            f"an objective of {' and '.join(kept)} alone rewards topics that are all alike; "
            "add topic_diversity or log_perplexity"
        )
    return kept


def _estimator(model: str | TopicModel) -> TopicModel:
    made = model if isinstance(model, TopicModel) else estimator_named(model)
    check_settings(made)
    return made


def _space(estimator: TopicModel, space: Space, given: bool) -> dict[str, Sequence[Any]]:
    own = estimator.get_params(deep=False)
    if given:
        refuse_unknown(type(estimator), list(space))
    kept: dict[str, Any] = {name: values for name, values in space.items() if name in own}
    if not kept:
        raise SettingError(f"{type(estimator).__name__} has none of the settings of the space")
    for name, values in kept.items():
        for value in values if isinstance(values, list) else values[:2]:
            check_settings(clone(estimator).set_params(**{name: value}))
        if not values or (isinstance(values, tuple) and not values[0] < values[1]):
            raise SettingError(f"the space of {name} is empty: {values!r}")
    return kept


def _suggested(trial: Any, name: str, values: Sequence[Any]) -> Any:
    if isinstance(values, list):
        return trial.suggest_categorical(name, values)
    low, high, *scale = values
    if isinstance(low, int) and isinstance(high, int):
        return trial.suggest_int(name, low, high, log=scale == ["log"])
    return trial.suggest_float(name, low, high, log=scale == ["log"])


def _study(folder: Path, sampler: Sampler, seed: int) -> Any:
    try:
        import optuna
        from optuna.storages.journal import JournalFileBackend
    except ImportError:
        raise MissingExtraError.of("tuning", "optuna", "tune") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = optuna.storages.JournalStorage(JournalFileBackend(str(folder / "study.journal")))
    study = optuna.create_study(storage=storage, study_name="topicloom", direction="maximize", load_if_exists=True)
    kinds = {"tpe": optuna.samplers.TPESampler, "random": optuna.samplers.RandomSampler}
    # A resumed search draws on: with the first seed it would draw its first trials again.
    study.sampler = kinds[sampler](seed=seed + 7919 * len(study.trials))
    return study


def _finished(study: Any) -> list[Any]:
    """Trials that ended, in order; one that was running when its process was killed is none."""
    return [trial for trial in study.get_trials(deepcopy=False) if trial.state.name in ("COMPLETE", "FAIL")]


def _row(trial: Any) -> dict[str, Any]:
    return {"number": trial.number, "value": trial.value, "settings": dict(trial.params), **trial.user_attrs}


def _claim(folder: Path, plan: dict[str, Any]) -> None:
    said = folder / "tuning.json"
    if said.exists():
        before = read_json(said)
        for name, value in plan.items():
            if before.get(name) != value:
                raise InputError(f"{folder} holds a search with another {name}; give another directory")
        return
    folder.mkdir(parents=True, exist_ok=True)
    write_json(said, plan | {"topicloom": __version__})


def _write_best(folder: Path, model: str, n_topics: int, seed: int, settings: Mapping[str, Any]) -> None:
    content = {"model": model.lower(), "topics": n_topics, "seed": seed, "settings": dict(settings)}
    with atomic_file(folder / "best.yaml") as temporary:
        temporary.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8")
