"""The trials of a search: settings that Optuna proposes, fits with them, and the model of the best one."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sklearn.base import clone

from ..errors import InputError
from ..files import read_json, write_json
from ..models.base import TopicModel
from ..models.persistence import load
from . import jobs as resumable
from .fitting import FittingWork
from .protocol import Evaluator
from .study import ask_for, completed, failed, finished, rows_of, suggest
from .workers import Job, Row, described

OnTrial = Callable[[int, int, dict[str, Any]], None]


@dataclass(frozen=True)
class Objective:
    """What a fit is judged by: the weighted sum of measures of the validation documents."""

    weights: Mapping[str, float]

    def of_fit(self, model: TopicModel, evaluator: Evaluator) -> Row:
        """Fit a model. Return its value, its measures and the seconds of the fit.

        Raises:
            ArithmeticError: the value is not finite.
        """
        seconds = round(evaluator.fit(model), 3)
        measures = evaluator.measure(model, ["validation"], ("comparison", "tuning"))["validation"]
        value = sum(weight * measures[name] for name, weight in self.weights.items())
        if not math.isfinite(value):
            raise ArithmeticError(f"the objective is {value}")
        return {"value": value, "seconds": seconds, "measures": measures}


@dataclass
class TrialWork(FittingWork):
    """The fit of a trial in another process, which saves the model until it is known whether it is the best one."""

    base: TopicModel
    objective: Objective

    def __call__(self, job: Job) -> Row:
        model: TopicModel = clone(self.base).set_params(**json.loads(job["settings"]))
        row = self.objective.of_fit(model, self.documents.evaluator)
        model.save(self.model_folder(job), overwrite=True)
        return row

    def outputs(self, job: Job) -> list[Path]:
        return [self.model_folder(job)]

    def model_folder(self, job: Job) -> Path:
        return self.folder / f"trial-{job['trial']}"

    def is_complete(self, row: Row) -> bool:
        """Whether the model of a finished fit is still there."""
        return (self.model_folder(row) / "config.json").is_file()


class Search:
    """A search that is running. It keeps the model of the best trial, in `folder` if one is given."""

    def __init__(
        self,
        study: Any,
        base: TopicModel,
        space: Mapping[str, Sequence[Any]],
        objective: Objective,
        evaluator: Evaluator,
        folder: Path | None,
    ) -> None:
        self.study, self.base, self.space, self.objective, self.evaluator = study, base, space, objective, evaluator
        self.place = None if folder is None else folder / "best_model"
        self.model: TopicModel | None = None  # of the best trial, if this call has made it

    def run(
        self,
        n_trials: int,
        propose: Callable[[int], Any],
        on_result: OnTrial | None,
        at_once: int = 1,
        work: TrialWork | None = None,
        cluster: str | None = None,
    ) -> None:
        """Make trials until there are enough.

        Trials that fail in this call count too, so that the search ends.

        Args:
            n_trials: how many there should be.
            propose: returns a new trial, given how many others have been proposed with it.
            on_result: as for `tune`.
            at_once: how many trials are proposed together.
            work: fits them in other processes; None fits them in this one.
            cluster: the address of a Ray cluster, whose nodes fit them.
        """
        n_done = len(completed(self.study))
        while n_done < n_trials:
            group = _Group(self, work, cluster)
            for trial, row, model in group.fits(propose, min(at_once, n_trials - n_done)):
                n_done += 1
                self._tell(trial, row, model)
                if on_result is not None:
                    on_result(n_done, n_trials, rows_of(self.study)[-1])
            group.remove_files()

    def best(self) -> tuple[Any, TopicModel]:
        """Return the best trial and its model, which is fitted again if it was not kept.

        Raises:
            InputError: every trial failed.
        """
        good = completed(self.study)
        if not good:
            last = finished(self.study)[-1].user_attrs["error"]
            raise InputError(f"every trial failed, the last with {last}; check the space and the corpus")
        top = max(good, key=lambda trial: trial.value)
        model = self.model or self._saved(top.params)
        if model is None:
            model = clone(self.base).set_params(**top.params)
            self.evaluator.fit(model)
            self._keep(model)
        return top, model

    def fit(self, settings: Mapping[str, Any]) -> tuple[Row, Callable[[], TopicModel]]:
        """Fit a model with the settings of a trial. Return its row, and a function that returns the model."""
        model: TopicModel = clone(self.base).set_params(**settings)
        try:
            row = self.objective.of_fit(model, self.evaluator)
        except Exception as error:
            row = {"error": described(error)}
        return row, lambda: model

    def loaded(self, folder: Path) -> TopicModel:
        """Return a model that was saved."""
        model = load(folder, device=self.base.device, allow={type(self.base).__module__})
        model.tokenizer_ = self.evaluator.parts.train.tokenizer
        return model

    def _tell(self, trial: Any, row: Row, model: Callable[[], TopicModel]) -> None:
        """Tell Optuna the result of a trial, and keep the model if it is the best one."""
        for name in ("error", "seconds", "measures"):
            if name in row:
                trial.set_user_attr(name, row[name])
        if "error" in row:
            self.study.tell(trial, state=failed())
            return
        if row["value"] > max((each.value for each in completed(self.study)), default=-math.inf):
            self._keep(model())
        self.study.tell(trial, row["value"])

    def _keep(self, model: TopicModel) -> None:
        self.model = model
        if self.place is not None:
            model.save(self.place, overwrite=True)

    def _saved(self, settings: Mapping[str, Any]) -> TopicModel | None:
        """Return the model that an earlier call kept, or None if it is missing, damaged or of another trial."""
        if self.place is None or not (self.place / "config.json").is_file():
            return None
        with suppress(InputError):
            found = read_json(self.place / "config.json").get("settings", {})
            if all(found.get(name) == value for name, value in settings.items()):
                return self.loaded(self.place)
        return None


class _Group:
    """Trials that are proposed together, so that none depends on the result of another.

    With other processes, a directory keeps the proposals and the finished fits until Optuna knows all results, so that
    a search that is killed goes on with the same trials.
    """

    def __init__(self, search: Search, work: TrialWork | None, cluster: str | None) -> None:
        self._search, self._work, self._cluster = search, work, cluster

    def fits(self, propose: Callable[[int], Any], size: int) -> Iterator[tuple[Any, Row, Callable[[], TopicModel]]]:
        """Yield the trials with their rows and models, in order."""
        search, work = self._search, self._work
        if work is None:
            trials = [propose(number) for number in range(size)]
            for trial, settings in zip(trials, map(self._settings, trials), strict=True):
                yield trial, *search.fit(settings)
            return
        first, file = len(finished(search.study)), work.folder / "proposed.json"
        plan: dict[str, Any] = read_json(file) if file.exists() else {"first": 0, "settings": []}
        kept = plan["settings"][first - plan["first"] :][:size]
        trials = [ask_for(search.study, settings) for settings in kept] or [propose(each) for each in range(size)]
        proposed = [self._settings(trial) for trial in trials]
        if not kept:
            work.folder.mkdir(parents=True, exist_ok=True)
            write_json(file, {"first": first, "settings": proposed})
        jobs = [{"trial": number, "settings": json.dumps(each)} for number, each in enumerate(proposed, first)]
        rows_file = work.folder / "jobs.jsonl"
        rows = resumable.run(jobs, work, rows_file, size, is_complete=work.is_complete, cluster=self._cluster)
        with closing(rows):
            for _ in rows:
                pass
        for trial, row in zip(trials, resumable.latest(rows_file, jobs), strict=True):
            yield trial, row, partial(search.loaded, work.model_folder(row))

    def _settings(self, trial: Any) -> dict[str, Any]:
        return {name: suggest(trial, name, values) for name, values in self._search.space.items()}

    def remove_files(self) -> None:
        if self._work is not None:
            shutil.rmtree(self._work.folder)
