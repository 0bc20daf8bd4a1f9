"""Tuning: a search with Optuna for the settings of a model that are best by measures on validation documents.

`tune` is the search as a whole, `Search` makes its trials, and the functions below it speak with Optuna.
"""

from __future__ import annotations

import json
import logging
import math
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, Literal

import yaml
from sklearn.base import clone

from .._version import __version__
from ..display import html_table
from ..errors import InputError, MissingExtraError, SettingError
from ..files import atomic_file, full_disk_names, lock_directory, read_json, write_json
from ..messages import counted
from ..metrics.catalogue import CATALOGUE, known_measures, measures_of
from ..models import REGISTRY
from ..models.base import TopicModel
from ..models.loading import load
from ..processes import Job, Row, connected, described
from ..settings import check_settings, describe_value, refuse_unknown, require_seed, require_whole, settings_as_text
from ..topics.saved import CONFIG
from .compare import OnResult, estimator
from .jobs import (
    Evaluator,
    FittingWork,
    OwnMeasure,
    Parts,
    SavedParts,
    latest_rows,
    own_measures,
    reference_for,
    require_same_documents,
    run_jobs,
    split_documents,
)

logger = logging.getLogger("topicloom")

Sampler = Literal["tpe", "random"]
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
_TOP_LEVEL = ("epochs", "device")  # settings that are names of their own in best.yaml, outside of `settings`
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
        coherence_against: the name of the documents that coherence is counted in.

    Examples:
        >>> import topicloom as tl
        >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 12
        >>> model, space = tl.GSM(epochs=1, device="cpu"), {"learning_rate": [0.002, 0.005]}
        >>> found = tl.tune(texts, model, 3, trials=1, space=space, objective={"topic_diversity": 1})
        >>> found.model, len(found.trials), len(found.best_model.topics())
        ('GSM', 1, 3)
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
    coherence_against: str = "training documents"

    def _repr_html_(self) -> str:
        names = sorted({name for trial in self.trials for name in trial["settings"]})
        rows = [
            [trial["number"], trial["value"], *(trial["settings"].get(name) for name in names)]
            for trial in sorted(self.trials, key=lambda trial: -(trial["value"] or -math.inf))
        ]
        trials = counted(len(self.trials), "trial")
        title = f"{self.model}, {self.n_topics} topics: {trials}, best objective {self.value:.4g}"
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
    on_result: OnResult | None = None,
    reference: Any = None,
    measures: Mapping[str, Any] | None = None,
) -> Tuning:
    """Search for the settings of a model that maximise an objective on validation documents.

    The test documents, those of `compare` with the same split, are not used.

    Args:
        corpus: a Corpus, or anything else that `fit` takes.
        model: a name such as "gsm", with settings after a colon, "lda:method=gibbs+epochs=500"; or an estimator, whose
            other settings stay as they are.
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
        split: the division into training, validation and test documents. None draws them at random with a fixed seed.
            It may also be three corpora in this order (`corpus` is not read then), or the name of a covariate whose
            values are train, validation and test.
        validation, test: the shares of held-out documents, if they are drawn.
        out: a directory that keeps the study and the best model; None keeps nothing.
        on_result: a function that is called after each trial with the number of finished trials, the number of all
            trials, and the row of the trial.
        reference: the documents that coherence is counted in, as for `compare`. None is the training documents.
        measures: measures of your own for the objective, as for `compare`: by name, a function that is called with a
            fitted model and the validation documents, and returns a number. A trial without a value fails.

    Raises:
        MissingExtraError: Optuna is not installed, or Ray is not.
        SettingError: an unknown measure or setting, or an objective of coherence alone, which rewards topics that are
            all alike.
        InputError: the corpus does not allow a measure of the objective, `out` has another search, every trial
            failed, or the cluster cannot be reached.

    Examples:
        >>> import topicloom as tl
        >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 12
        >>> model, space = tl.GSM(epochs=1, device="cpu"), {"learning_rate": [0.002, 0.005]}
        >>> found = tl.tune(texts, model, 3, trials=1, space=space, objective={"topic_diversity": 1})
        >>> found.best["learning_rate"] in (0.002, 0.005)
        True
    """
    own = own_measures(measures)
    weights = _objective(OBJECTIVE if objective is None else objective, own)
    base = clone(estimator(model)).set_params(n_topics=n_topics, random_state=random_state)
    check_settings(base)
    needed = [name for name in weights if name not in own and "likelihood" in CATALOGUE[name].needs]
    unmeasured = [] if base.predicts_words else needed
    if unmeasured:
        raise SettingError(f"{type(base).__name__} has no perplexity; give an objective without {unmeasured[0]}")
    require_seed(random_state)  # a RandomState of NumPy is no seed of a search that can go on
    searched = _space(base, SPACE if space is None else space, given=space is not None)
    if sampler not in ("tpe", "random"):
        raise SettingError(f'`sampler` should be "tpe" or "random"; it is {sampler!r}')
    require_whole("trials", trials)
    require_whole("at_once", at_once)
    parts, divided = split_documents(corpus, split, validation, test)
    coherence = reference_for(reference, parts.train)
    divided["reference"] = None if coherence is None else coherence.digest
    needs = [name for name in weights if name not in own]
    evaluator = _allowing(needs, Evaluator(parts, coherence))
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
                saved = SavedParts.of(parts, folder / "corpus", coherence)
                evaluator = _allowing(needs, saved.evaluator)  # files have no order of words that came as tokens
            judged = Objective(weights, own)
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
        return Tuning(
            best, top.value, rows, weights, type(base).__name__, n_topics, sampler, random_state, best_model,
            evaluator.coherence_against,
        )  # fmt: skip


def check(model: str | TopicModel, objective: Mapping[str, float] | None = None) -> None:
    """Raise the errors that `tune` would raise for the model or the objective."""
    estimator(model)
    _objective(OBJECTIVE if objective is None else objective)


def _allowing(measures: Iterable[str], evaluator: Evaluator) -> Evaluator:
    """Return the evaluator, if its documents allow these measures of the objective."""
    for name in measures:
        if reason := evaluator.unavailable(name, "validation"):
            raise InputError(f"this corpus does not allow {name} in the objective: {reason}")
    return evaluator


def _objective(weights: Mapping[str, float], own: Mapping[str, OwnMeasure] = MappingProxyType({})) -> dict[str, float]:
    known_measures(weights, [*measures_of("tuning"), *own], "the objective")
    kept = {name: float(weight) for name, weight in weights.items() if weight}
    if not kept:
        raise SettingError("the objective is empty; give measures with weights")
    if all(name not in own and CATALOGUE[name].group == "coherence" for name in kept):
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
        if setting in _TOP_LEVEL:
            content[setting] = plain
        else:
            settings[setting] = plain
    settings |= {setting: value for setting, value in best.items() if setting not in _TOP_LEVEL}
    content |= {setting: value for setting, value in best.items() if setting in _TOP_LEVEL}
    with atomic_file(path) as temporary:
        temporary.write_text(
            yaml.safe_dump(content | {"settings": settings}, sort_keys=False, allow_unicode=True), encoding="utf-8"
        )


# Trials: Optuna proposes settings, a model is fitted with them, and the best one is kept.


@dataclass(frozen=True)
class Objective:
    """The weighted sum of measures on the validation documents, which a search maximises."""

    weights: Mapping[str, float]
    own: Mapping[str, OwnMeasure] = field(default_factory=dict)

    def of_fit(self, model: TopicModel, evaluator: Evaluator) -> Row:
        """Fit a model. Return its value, its measures and the seconds of the fit.

        Raises:
            ArithmeticError: the value is not finite.
            InputError: the model does not have one of the measures.
        """
        seconds = round(evaluator.fit(model), 3)
        measures = evaluator.measure(model, ["validation"], ("comparison", "tuning"))["validation"]
        for name, own in self.own.items():
            if (found := own(model, evaluator.parts.validation)) is not None:
                measures[name] = found
        if absent := [name for name in self.weights if name not in measures]:
            raise InputError(f"{type(model).__name__} with these settings has no {absent[0]}; give another objective")
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
        return (self.model_folder(row) / CONFIG).is_file()


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
        on_result: OnResult | None,
        at_once: int = 1,
        work: TrialWork | None = None,
        cluster: str | None = None,
    ) -> None:
        """Make trials until there are enough.

        Trials that fail in this call count too, so that the search ends.

        Args:
            n_trials: how many there should be.
            propose: returns a new trial, given how many others have been proposed with it.
            on_result: a function that is called after each trial with the number of finished trials, the number of all
                trials, and the row of the trial; None calls none.
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
        if self.place is None or not (self.place / CONFIG).is_file():
            return None
        with suppress(InputError):
            found = read_json(self.place / CONFIG).get("settings", {})
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
        rows = run_jobs(jobs, work, rows_file, size, is_complete=work.is_complete, cluster=self._cluster)
        with closing(rows):
            for _ in rows:
                pass
        for trial, row in zip(trials, latest_rows(rows_file, jobs), strict=True):
            yield trial, row, partial(search.loaded, work.model_folder(row))

    def _settings(self, trial: Any) -> dict[str, Any]:
        return {name: suggest(trial, name, values) for name, values in self._search.space.items()}

    def remove_files(self) -> None:
        if self._work is not None:
            shutil.rmtree(self._work.folder)


# Optuna's study, its journal and its trials.

_SEED_STEP = 7919  # Each trial has a seed of its own, so that a continued search proposes what a whole one does.


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

    class Journal(JournalFileBackend):
        """A journal whose file is named where a line cannot be written."""

        def append_logs(self, logs: list[dict[str, Any]]) -> None:
            with full_disk_names(journal):
                super().append_logs(logs)

    journal = folder / "study.journal"
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        _remove_incomplete_line(journal)
        try:
            storage = optuna.storages.JournalStorage(Journal(str(journal), Unlocked(str(journal))))
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
    with full_disk_names(journal), journal.open("rb+") as file:
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
    study.sampler = kinds[sampler](seed=random_state + _SEED_STEP * (len(finished(study)) + n_before))
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
