"""Tuning: a search for a model's best settings with Optuna, by the measures of validation documents.

A directory keeps the study, so that a killed search can be continued:

    tuning.json      model, objective, space, sampler, seed, split, and a digest of the corpus
    study.journal    Optuna's journal of the trials
    best.yaml        the best settings, as `topicloom train --config` takes them
    best_model/      the model of the best trial
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields
from functools import partial
from numbers import Integral
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import yaml
from sklearn.base import clone

from .._version import __version__
from ..display import html_table
from ..errors import InputError, SettingError
from ..files import atomic_file, lock_directory, read_json, write_json
from ..metrics.catalogue import CATALOGUE, known_measures, measures_of
from ..models.base import TopicModel
from ..models.registry import REGISTRY
from ..processes.cluster import connected
from ..settings import check_settings, describe_value, refuse_unknown, require_seed, settings_as_text
from .compare import estimator
from .fitting import SavedParts
from .protocol import Evaluator, Parts, require_same_documents, split_documents
from .search import Objective, Search, TrialWork
from .study import Sampler, ask, open_study, rows_of

logger = logging.getLogger("topicloom")

Space = Mapping[str, "tuple[float, float] | tuple[float, float, Literal['log']] | list[Any]"]

# Coherence counts most. The other measures have enough weight that topics which are all alike do not win.
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
# Settings that have an option of their own on the command line, and so a place of their own in best.yaml.
_OPTIONS = ("epochs", "device")
_NOT_TUNED = ("n_topics", "random_state", "verbose")


@dataclass(frozen=True)
class Tuning:
    """The result of a search.

    Attributes:
        best: the settings of the best trial.
        value: its objective.
        trials: a row for each trial, in order: number, value (None if the fit failed), settings, seconds and measures,
            or the error.
        objective: weights by measure.
        model, n_topics, sampler, random_state: the arguments of the search.
        best_model: the fitted model of the best trial.
    """

    best: dict[str, Any]
    value: float
    trials: list[dict[str, Any]] = field(repr=False)
    objective: dict[str, float]
    model: str
    n_topics: int
    sampler: str
    random_state: int
    best_model: TopicModel = field(repr=False, compare=False)

    def _repr_html_(self) -> str:
        names = sorted({name for trial in self.trials for name in trial["settings"]})
        rows = [
            [trial["number"], trial["value"], *(trial["settings"].get(name) for name in names)]
            for trial in sorted(self.trials, key=lambda trial: -(trial["value"] or -math.inf))
        ]
        title = f"{self.model}, {self.n_topics} topics: {len(self.trials)} trials, best objective {self.value:.4g}"
        return html_table(["trial", "objective", *names], rows, title)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the model, as JSON can hold it."""
        return {part.name: getattr(self, part.name) for part in fields(self) if part.name != "best_model"}


def tune(
    corpus: Any,
    model: str | TopicModel = "loom",
    n_topics: int = 20,
    *,
    trials: int = 30,
    space: Space | None = None,
    objective: Mapping[str, float] | None = None,
    sampler: Sampler = "tpe",
    random_state: int = 0,
    at_once: int = 1,
    cluster: str | None = None,
    split: Parts = None,
    validation: float = 0.1,
    test: float = 0.2,
    out: str | Path | None = None,
    on_result: Callable[[int, int, dict[str, Any]], None] | None = None,
) -> Tuning:
    """Search for the settings of a model that maximise an objective on validation documents.

    The test documents, those of `compare` with the same split, are not used.

    Args:
        corpus: a Corpus, or anything else that `fit` takes.
        model: a name, with settings after a colon as in `compare`; or an estimator, whose other settings stay as they
            are.
        n_topics: the number of topics.
        trials: the number of fits, including those of an earlier call with the same `out`. A trial that failed or was
            interrupted in an earlier call does not count.
        space: for each setting a range (low, high) or (low, high, "log"), or a list of choices. None is SPACE, without
            the settings that the model does not have.
        objective: weights of measures; their weighted sum is maximised. None is OBJECTIVE. log_perplexity is the
            logarithm of completion perplexity divided by that of the vocabulary's size: 1 for a model that gives all
            words the same probability.
        sampler: "tpe" (Bergstra et al. 2011) or "random".
        random_state: the seed of the sampler and of every fit.
        at_once: the number of trials that are proposed together, before the result of any of them is known, and fitted
            in as many worker processes of one thread each. The search depends on it.
        cluster: "auto" or the address of a Ray cluster, whose nodes then fit in place of processes of this machine.
        split: the division into training, validation and test documents, as for `compare`.
        validation, test: the shares of held-out documents, if they are drawn.
        out: a directory that keeps the study and the best model; None keeps nothing.
        on_result: a function that is called after each trial with the number of finished trials, the number of all
            trials, and the row of the trial.

    Raises:
        MissingExtraError: Optuna is not installed, or Ray is not.
        SettingError: an unknown measure or setting, or an objective of coherence alone, which rewards topics that are
            all alike.
        InputError: the corpus does not allow a measure of the objective, `out` has another search, every trial
            failed, or the cluster cannot be reached.
    """
    weights = _objective(OBJECTIVE if objective is None else objective)
    base = clone(estimator(model)).set_params(n_topics=n_topics, random_state=random_state)
    check_settings(base)
    require_seed(random_state)  # a RandomState of NumPy is no seed of a search that can go on
    searched = _space(base, SPACE if space is None else space, given=space is not None)
    if sampler not in ("tpe", "random"):
        raise SettingError(f'`sampler` should be "tpe" or "random"; it is {sampler!r}')
    for argument, number in (("trials", trials), ("at_once", at_once)):
        if not (isinstance(number, Integral) and number >= 1):
            raise SettingError(f"`{argument}` should be a number of fits, from 1; it is {number!r}")
    parts, divided = split_documents(corpus, split, validation, test)
    evaluator = _allowing(weights, Evaluator(parts))
    plan = {
        "model": type(base).__name__,
        "settings": {name: value for name, value in settings_as_text(base).items() if name not in _NOT_TUNED},
        "n_topics": n_topics,
        "objective": weights,
        "space": {name: list(values) for name, values in searched.items()},
        "sampler": sampler,
        "random_state": random_state,
        "at_once": int(at_once),
        **divided,
    }
    with TemporaryDirectory(prefix="topicloom-") as temporary:
        folder = Path(temporary, "tuning") if out is None else Path(out)
        with lock_directory(folder):
            _claim(folder, plan, divided)
            saved = None
            if at_once > 1 or cluster is not None:
                saved = SavedParts.of(parts, folder / "corpus")
                evaluator = _allowing(weights, saved.evaluator)  # files have no order of words that came as tokens
            judged = Objective(weights)
            work = None if saved is None else TrialWork(folder / "trials", saved, base, judged)
            # One connection for all groups of trials keeps the processes of the nodes.
            with open_study(folder) as study, nullcontext() if cluster is None else connected(cluster):
                search = Search(study, base, searched, judged, evaluator, None if out is None else folder)
                propose = partial(ask, study, sampler, random_state)
                search.run(trials, propose, on_result, at_once, work, cluster)
                top, best_model = search.best()
                rows = rows_of(study)
        best = dict(top.params)
        if out is not None:
            _write_best(folder / "best.yaml", base, best)
        return Tuning(best, top.value, rows, weights, type(base).__name__, n_topics, sampler, random_state, best_model)


def check(model: str | TopicModel, objective: Mapping[str, float] | None = None) -> None:
    """Raise the errors that `tune` would raise for the model or the objective."""
    estimator(model)
    _objective(OBJECTIVE if objective is None else objective)


def _allowing(weights: Mapping[str, float], evaluator: Evaluator) -> Evaluator:
    """Return the evaluator, if its documents allow all measures of the objective."""
    for name in weights:
        if reason := evaluator.unavailable(name, "validation"):
            raise InputError(f"this corpus does not allow {name} in the objective: {reason}")
    return evaluator


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


def _space(base: TopicModel, space: Space, given: bool) -> dict[str, Sequence[Any]]:
    """Return the part of the space that the model has, after a check of its values."""
    own = base.get_params(deep=False)
    if not isinstance(space, Mapping):
        raise SettingError(f'`space` should be a dictionary, such as {{"alpha": (0.01, 1.0)}}; it is {space!r:.80}')
    for name, values in space.items():
        is_range = isinstance(values, tuple) and len(values) > 1 and values[2:] in ((), ("log",))
        if not (is_range or isinstance(values, list)):
            raise SettingError(
                f'the space of {name} should be a range (low, high) or (low, high, "log"), or a list of choices; it is '
                f"{values!r:.80}"
            )
    if given:
        refuse_unknown(type(base), list(space))
    kept: dict[str, Any] = {name: values for name, values in space.items() if name in own}
    if not kept:
        raise SettingError(f"{type(base).__name__} has none of the settings of the space; give `space`")
    for name, values in kept.items():
        for value in values if isinstance(values, list) else values[:2]:
            check_settings(clone(base).set_params(**{name: value}))
        if not values or (isinstance(values, tuple) and not values[0] < values[1]):
            raise SettingError(f"the space of {name} is empty: {values!r}")
    return kept


def _claim(folder: Path, plan: dict[str, Any], divided: Mapping[str, Any]) -> None:
    """Write the plan of the search, or check that it is the one that is there."""
    file = folder / "tuning.json"
    if file.exists():
        before = {"at_once": 1} | read_json(file)
        require_same_documents(before, divided, f"{folder} has a search")
        for name, value in plan.items():
            if name not in divided and before.get(name) != value:
                raise InputError(f"{folder} has a search with another {name}; give another directory")
        return
    folder.mkdir(parents=True, exist_ok=True)
    write_json(file, plan | {"topicloom": __version__})


def _write_best(path: Path, base: TopicModel, best: Mapping[str, Any]) -> None:
    """Write the settings of the best trial and those that the search was given, as `train --config` takes them."""
    kind = type(base)
    name = kind.__name__.lower() if kind.__name__ in REGISTRY else f"{kind.__module__}:{kind.__name__}"
    content = {"model": name, "topics": base.n_topics, "seed": base.random_state}
    settings: dict[str, Any] = {}
    defaults = kind().get_params(deep=False)
    for setting, value in base.get_params(deep=False).items():
        if setting in _NOT_TUNED or setting in best or describe_value(value) == describe_value(defaults[setting]):
            continue
        try:
            plain = json.loads(json.dumps(value))
        except TypeError:
            logger.warning("%s cannot hold %s; give it again when you train with this file", path, setting)
            continue
        if setting in _OPTIONS:
            content[setting] = plain
        else:
            settings[setting] = plain
    settings |= {setting: value for setting, value in best.items() if setting not in _OPTIONS}
    content |= {setting: value for setting, value in best.items() if setting in _OPTIONS}
    with atomic_file(path) as temporary:
        temporary.write_text(
            yaml.safe_dump(content | {"settings": settings}, sort_keys=False, allow_unicode=True), encoding="utf-8"
        )
