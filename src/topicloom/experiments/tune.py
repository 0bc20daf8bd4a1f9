"""Tuning: a search for a model's best settings with Optuna, by the figures of validation documents.

A directory keeps the study, so that a killed search can be continued:

    tuning.json      model, objective, space, sampler, seed, split, and a digest of the corpus
    study.journal    Optuna's journal of the trials
    best.yaml        the best settings, as `topicloom train --config` takes them
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import yaml
from sklearn.base import clone

from .._version import __version__
from ..corpus import Corpus
from ..corpus.split import split
from ..errors import (
    InputError,
    MissingExtraError,
    SettingError,
)
from ..files import atomic_file, read_json, write_json
from ..metrics.catalogue import CATALOGUE, known_measures, measures_of
from ..models.base import TopicModel
from ..models.persistence import estimator_named
from ..settings import check_settings, refuse_unknown, settings_as_text
from .protocol import Evaluator

logger = logging.getLogger("topicloom")

Sampler = Literal["tpe", "random"]
Space = Mapping[str, "tuple[float, float] | tuple[float, float, Literal['log']] | list[Any]"]

# A choice: mainly coherence, with enough weight on the others that topics which are all alike do not win.
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


@dataclass(frozen=True)
class Tuning:
    """The result of a search.

    Attributes:
        best: the settings of the best trial.
        value: its objective.
        trials: a row for each trial, in order: number, value (None if the fit failed), settings, figures.
        objective: weights by measure.
        model, n_topics, sampler, random_state: the arguments of the search.
    """

    best: dict[str, Any]
    value: float
    trials: list[dict[str, Any]]
    objective: dict[str, float]
    model: str
    n_topics: int
    sampler: str
    random_state: int


def tune(
    corpus: Corpus,
    model: str | TopicModel = "gsm",
    n_topics: int = 20,
    *,
    trials: int = 30,
    space: Space | None = None,
    objective: Mapping[str, float] | None = None,
    sampler: Sampler = "tpe",
    random_state: int = 0,
    out: str | Path | None = None,
    validation: float = 0.1,
    test: float = 0.2,
    told: Callable[[int, int, dict[str, Any]], None] | None = None,
) -> Tuning:
    """Search for the settings of a model that make an objective largest on validation documents.

    The test documents, those of `compare` with the same shares, are not used.

    Args:
        corpus: the documents.
        model: a name, with settings after a colon as in `compare`; or an estimator, whose other settings stay as they
            are.
        n_topics: the number of topics.
        trials: the number of fits, including those of an earlier call with the same `out`.
        space: for each setting a range (low, high) or (low, high, "log"), or a list of choices. None is SPACE, without
            the settings that the model does not have.
        objective: weights of measures; their weighted sum is made largest. None is OBJECTIVE. log_perplexity is the
            logarithm of completion perplexity divided by that of the vocabulary's size: 1 for a model that knows
            nothing.
        sampler: "tpe" (Bergstra et al. 2011) or "random".
        random_state: the seed of the sampler and of every fit.
        out: a directory that keeps the study; None keeps nothing.
        validation, test: the shares of held-out documents.
        told: a function that is called after each trial with the number of finished trials, the number of all trials,
            and the row of the trial.

    Raises:
        MissingExtraError: Optuna is not installed.
        SettingError: an unknown measure or setting, or an objective of coherence alone, which rewards topics that are
            all alike.
        InputError: the corpus does not allow a measure of the objective, `out` has another search, or every trial
            failed.
    """
    weights = _objective(OBJECTIVE if objective is None else objective)
    estimator = _estimator(model)
    searched = _space(estimator, SPACE if space is None else space, given=space is not None)
    if sampler not in ("tpe", "random"):
        raise SettingError(f'sampler should be "tpe" or "random"; it is {sampler!r}')
    evaluator = Evaluator(split(corpus, validation, test))
    for name in weights:
        if reason := evaluator.unavailable(name, "validation"):
            raise InputError(f"this corpus does not allow {name} in the objective: {reason}")
    plan = {
        "model": type(estimator).__name__,
        "settings": settings_as_text(estimator),
        "n_topics": n_topics,
        "objective": weights,
        "space": {name: list(values) for name, values in searched.items()},
        "sampler": sampler,
        "random_state": random_state,
        "corpus": corpus.digest,
        "validation": validation,
        "test": test,
    }
    with TemporaryDirectory(prefix="topicloom-") as temporary:
        folder = Path(temporary) if out is None else Path(out)
        _claim(folder, plan)
        study = _study(folder, sampler, random_state)

        def fit(trial: Any) -> float:
            settings = {name: _suggested(trial, name, values) for name, values in searched.items()}
            tried = clone(estimator).set_params(n_topics=n_topics, random_state=random_state, **settings)
            trial.set_user_attr("seconds", round(evaluator.fit(tried), 3))
            figures = evaluator.measure(tried, ["validation"], ("comparison", "tuning"))["validation"]
            trial.set_user_attr("figures", figures)
            return sum(weight * figures[name] for name, weight in weights.items())

        while (n_done := len(_finished(study))) < trials:
            study.optimize(fit, n_trials=1, catch=(RuntimeError, ArithmeticError))
            if told is not None:
                told(n_done + 1, trials, _row(study.trials[-1]))
        good = [trial for trial in _finished(study) if trial.value is not None]
        if not good:
            raise InputError("every trial failed; check the space and the corpus")
        top = max(good, key=lambda trial: trial.value)
        best = dict(top.params)
        if out is not None:
            _write_best(folder, type(estimator).__name__, n_topics, random_state, best)
        rows = [_row(trial) for trial in _finished(study)]
        return Tuning(best, top.value, rows, weights, type(estimator).__name__, n_topics, sampler, random_state)


def check(model: str | TopicModel, objective: Mapping[str, float] | None = None) -> None:
    """Raise the errors that `tune` would raise for the model or the objective."""
    _estimator(model)
    _objective(OBJECTIVE if objective is None else objective)


def _objective(weights: Mapping[str, float]) -> dict[str, float]:
    known_measures(weights, measures_of("tuning"), "the objective")
    kept = {name: float(weight) for name, weight in weights.items() if weight}
    if not kept:
        raise SettingError("the objective is empty; give measures with weights")
    if all(CATALOGUE[name].group == "coherence" for name in kept):
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


def _study(folder: Path, sampler: Sampler, random_state: int) -> Any:
    try:
        import optuna
        from optuna.storages.journal import JournalFileBackend
    except ImportError:
        raise MissingExtraError.of("tuning", "optuna", "tune") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = optuna.storages.JournalStorage(JournalFileBackend(str(folder / "study.journal")))
    study = optuna.create_study(storage=storage, study_name="topicloom", direction="maximize", load_if_exists=True)
    kinds = {"tpe": optuna.samplers.TPESampler, "random": optuna.samplers.RandomSampler}
    # With the first seed, a continued search would repeat its first trials.
    study.sampler = kinds[sampler](seed=random_state + 7919 * len(study.trials))
    return study


def _finished(study: Any) -> list[Any]:
    """Return the trials that ended, in order; a trial that was running when its process was killed did not."""
    return [trial for trial in study.get_trials(deepcopy=False) if trial.state.name in ("COMPLETE", "FAIL")]


def _row(trial: Any) -> dict[str, Any]:
    return {"number": trial.number, "value": trial.value, "settings": dict(trial.params), **trial.user_attrs}


def _claim(folder: Path, plan: dict[str, Any]) -> None:
    said = folder / "tuning.json"
    if said.exists():
        before = read_json(said)
        for name, value in plan.items():
            if before.get(name) != value:
                raise InputError(f"{folder} has a search with another {name}; give another directory")
        return
    folder.mkdir(parents=True, exist_ok=True)
    write_json(said, plan | {"topicloom": __version__})


def _write_best(folder: Path, model: str, n_topics: int, random_state: int, settings: Mapping[str, Any]) -> None:
    content = {"model": model.lower(), "topics": n_topics, "seed": random_state, "settings": dict(settings)}
    with atomic_file(folder / "best.yaml") as temporary:
        temporary.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8")
