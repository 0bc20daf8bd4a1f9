"""Comparisons: models x numbers of topics x seeds, fitted on one part of a corpus and measured on two others.

Settings and numbers of topics should be chosen by the measures of the validation part. The measures of the test part
should be reported. A directory keeps every finished fit, so that a killed comparison can be continued:

    comparison.json    what is compared: models, settings, the split, and a digest of the corpus
    corpus/            the documents of each part, for the processes that fit
    jobs.jsonl         a line for each fit: measures, seconds, words of the topics, version of topicloom
    topics/            the topics of each fit, to compare those of different seeds
    models/            the fitted models, if they are kept
    comparison.csv     the table
    index.html         the tables, plots and topics in one file
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import product
from numbers import Integral
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import joblib
import numpy as np
from sklearn.base import clone

from .. import metrics
from .._version import __version__
from ..corpus.inputs import Split
from ..errors import InputError, ModelFileError, SettingError
from ..files import atomic_file, check_digests, file_digest, lock_directory, read_json, write_json
from ..models.base import TopicModel
from ..models.loading import estimator_named
from ..processes import Job, Row
from ..reports.wording import FigureLanguage, chosen_language
from ..settings import check_settings, settings_as_text
from ..text.strings import load_array
from . import jobs as resumable
from .comparison import Array, Comparison, job_name
from .jobs import FittingWork, SavedParts
from .protocol import HELD_OUT, Parts, require_same_documents, split_documents

logger = logging.getLogger("topicloom")

DEFAULT_MODELS = (
    "loom", "gsm", "etm", "wlda", "gmntm", "dirichletvae", "prodlda", "lda:method=gibbs", "lda:method=variational",
)  # fmt: skip
Models = Sequence[str | TopicModel] | Mapping[str, TopicModel]
OnResult = Callable[[int, int, Row], None]
_WORDS = 10


def compare(
    corpus: Any,
    models: Models = DEFAULT_MODELS,
    n_topics: int | Sequence[int] = (20, 50),
    seeds: int = 3,
    *,
    split: Parts = None,
    validation: float = 0.1,
    test: float = 0.2,
    out: str | Path | None = None,
    keep_models: bool = False,
    n_jobs: int = 1,
    cluster: str | None = None,
    on_result: OnResult | None = None,
    figure_language: FigureLanguage = "auto",
    font: str | PathLike[str] | None = None,
) -> Comparison:
    """Fit every model with every number of topics and every seed, and measure all of them in the same way.

    Args:
        corpus: a Corpus, or anything else that `fit` takes. Labels allow measures of classes, and texts allow coherence
            over windows.
        models: names such as "gsm", with settings after a colon, "lda:method=gibbs+epochs=500", or "module:Class" for a
            class of your own; estimators; or a mapping from names of your choice to estimators. Their n_topics and
            random_state are set here.
        n_topics: numbers of topics, or a single one.
        seeds: the number of fits of each model and number of topics, with random_state 0, 1, ...
        split: the division into training, validation and test documents. None draws them at random with a fixed seed.
            It may also be three corpora in this order (`corpus` is not read then), or the name of a covariate whose
            values are train, validation and test.
        validation, test: the shares of held-out documents, if they are drawn.
        out: a directory that keeps the comparison, so that a killed one can be continued. None keeps nothing. Models,
            numbers of topics and seeds can be added to an earlier call's; a warning names those that are left out.
        keep_models: keeps the fitted models in `out`, for `Comparison.best_model` and `Comparison.load_model`. Fits
            of an earlier call that did not keep them are done again.
        n_jobs: the number of processes that fit, of one thread each; -1 is one for each core.
        cluster: "auto" or the address of a Ray cluster, whose nodes then fit in place of processes of this machine,
            with one core and one thread for each fit.
        on_result: a function that is called after each fit with the number of finished fits, the number of all fits,
            and the row of the fit.
        figure_language: "en" or "zh", the language of the plots and of the page in `out`; "auto" is Chinese if the
            texts are Chinese, and otherwise English.
        font: a font family or file for the plots; None chooses one that has the characters.

    Raises:
        InputError: an unknown model, a corpus that is too small, a directory `out` with another comparison, or a
            cluster that cannot be reached.
        MissingExtraError: Ray is not installed.
        SettingError: a setting or an argument that cannot have its value.

    Examples:
        >>> import topicloom as tl
        >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 12
        >>> found = tl.compare(texts, {"lda": tl.LDA(epochs=5)}, n_topics=3, seeds=1)
        >>> found
        Comparison(1 model, 1 number of topics, 1 seed, 1 fit, 0 failed)
    """
    if not (isinstance(seeds, Integral) and seeds >= 1):
        raise SettingError(f"`seeds` should be the number of seeds, from 1; it is {seeds!r}")
    if keep_models and out is None:
        raise InputError("`keep_models=True` needs a directory for the models; give `out`")
    chosen_language(figure_language, argument="figure_language")
    wanted, sizes, n_workers = estimators(models), _sizes(n_topics), _workers(n_jobs)
    parts, divided = split_documents(corpus, split, validation, test)
    # The jobs are ordered by seed, so that a comparison that is cut short has all models.
    jobs = [{"model": name, "n_topics": k, "seed": seed} for seed, k, name in product(range(seeds), sizes, wanted)]
    with TemporaryDirectory(prefix="topicloom-") as temporary:
        folder = Path(temporary, "comparison") if out is None else Path(out)
        with lock_directory(folder):
            _prepare(folder, divided, wanted)
            work = _Fit(folder, SavedParts.of(parts, folder / "corpus"), wanted, keep_models)
            rows = _run(jobs, work, n_workers, cluster, on_result)
            documents = {name: part.n_docs for name, part in zip(Split._fields, parts, strict=True)}
            found = Comparison(rows, list(wanted), sizes, int(seeds), documents)
            if out is not None:
                modules = frozenset(type(model).__module__ for model in wanted.values())
                found = replace(found, folder=folder, modules=modules, others=_others(folder, jobs))
                if found.left_out:
                    logger.warning(
                        "%s has finished fits of %s, which the tables and the page leave out; name them in this call "
                        "too to include them",
                        folder,
                        found.left_out,
                    )
                language = chosen_language(figure_language, parts.train.tokenizer)
                found.save(folder, figure_language=language, font=font)
            return found


def select_n_topics(
    corpus: Any, n_topics: int | Sequence[int], model: str | TopicModel = "loom", seeds: int = 3, **options: Any
) -> Comparison:
    """Compare numbers of topics for one model. `Comparison.recommend` then says which to take, and why.

    No number is right in itself: measures disagree, and more topics describe fewer documents in more detail.

    Args:
        corpus: a Corpus, or anything else that `fit` takes.
        n_topics: numbers of topics.
        model: a name such as "gsm", with settings after a colon, "lda:method=gibbs+epochs=500"; or an estimator.
        seeds: the number of fits with each number of topics.
        options: other arguments of `compare`.

    Raises:
        InputError: an unknown model, a corpus that is too small, or a directory `out` with another comparison.
        SettingError: a setting or an argument that cannot have its value.

    Examples:
        >>> import topicloom as tl
        >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 12
        >>> found = tl.select_n_topics(texts, [2, 3], tl.LDA(epochs=5), seeds=1)
        >>> found.n_topics
        [2, 3]
        >>> found.recommend().n_topics in (2, 3)
        True
    """
    return compare(corpus, [model], n_topics, seeds, **options)


def estimators(models: Models) -> dict[str, TopicModel]:
    """Return the estimators that `models` of `compare` stands for, by name.

    Raises:
        InputError: an unknown model.
        SettingError: a setting that cannot have its value, or something that is no model.
    """
    if isinstance(models, str | TopicModel):
        raise SettingError(f"`models` should be a list; give [{models!r}]")
    if isinstance(models, Mapping):
        pairs: list[tuple[str, Any]] = list(models.items())
    elif isinstance(models, Sequence):
        pairs = [(each if isinstance(each, str) else type(each).__name__.lower(), each) for each in models]
    else:
        raise SettingError(f"`models` should be a list of names, or a mapping from names to models; it is {models!r}")
    if not pairs:
        raise SettingError("`models` is empty, so there is nothing to compare; give names of models")
    made: dict[str, TopicModel] = {}
    for name, model in pairs:
        if name in made and not isinstance(model, str):
            raise SettingError(f"two models are called {name!r}; give a mapping from names of your choice to models")
        made[name] = estimator(model)
    return made


def estimator(model: str | TopicModel) -> TopicModel:
    """Return the estimator that a name stands for, or the estimator itself, after a check of its settings.

    Raises:
        InputError: an unknown model.
        SettingError: a setting that cannot have its value, or something that is no model.
    """
    if not isinstance(model, str | TopicModel):
        raise SettingError(f"a model should be a name such as 'gsm' or a model such as GSM(); it is {model!r:.80}")
    made = estimator_named(model) if isinstance(model, str) else model
    check_settings(made)
    return made


def _sizes(n_topics: int | Sequence[int]) -> list[int]:
    given: list[Any] = list(n_topics) if isinstance(n_topics, Iterable) else [n_topics]
    if not given or not all(isinstance(k, Integral) and not isinstance(k, bool) and int(k) >= 2 for k in given):
        raise SettingError(f"`n_topics` should be whole numbers from 2, such as [20, 50]; it is {n_topics!r}")
    return [int(k) for k in dict.fromkeys(given)]


def _workers(n_jobs: int) -> int:
    if not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise SettingError(f"`n_jobs` should be a number of processes, or -1 for one for each core; it is {n_jobs!r}")
    return int(joblib.effective_n_jobs(n_jobs))


def _prepare(folder: Path, divided: dict[str, Any], models: Mapping[str, TopicModel]) -> None:
    """Prepare the directory, whether it is new or has fits already."""
    settings = {name: _settings(model) for name, model in models.items()}
    file = folder / "comparison.json"
    if file.exists():
        before = read_json(file)
        require_same_documents(before, divided, f"{folder} has a comparison")
        for name, known in before["models"].items():
            if settings.setdefault(name, known) != known:
                raise InputError(f"{folder} has {name} with other settings; give another directory")
    folder.mkdir(parents=True, exist_ok=True)
    write_json(file, {"topicloom": __version__, **divided, "models": settings})


def _others(folder: Path, jobs: Sequence[Job]) -> list[Row]:
    """Return the finished fits of a directory that are not among the jobs."""
    wanted = {(job["model"], job["n_topics"], job["seed"]) for job in jobs}
    kept = resumable.read(folder / "jobs.jsonl")
    return [row for row in kept if "error" not in row and (row["model"], row["n_topics"], row["seed"]) not in wanted]


def _settings(model: TopicModel) -> dict[str, str]:
    own = settings_as_text(model)
    return {name: value for name, value in own.items() if name not in ("n_topics", "random_state", "verbose")}


def _run(jobs: list[Job], work: _Fit, n_jobs: int, cluster: str | None, on_result: OnResult | None) -> list[Row]:
    """Do the jobs that are not done, and return the rows of all of them."""
    file = work.folder / "jobs.jsonl"
    before = [row for row in resumable.latest(file, jobs) if "error" not in row and work.is_complete(row)]
    others = sorted({str(row.get("version")) for row in before} - {__version__})
    if others:
        logger.warning(
            "%d of %d fits in %s were made by topicloom %s, and this is %s; their measures may not be comparable, so "
            "give another directory to make all fits again",
            sum(str(row.get("version")) != __version__ for row in before),
            len(jobs),
            work.folder,
            ", ".join(others),
            __version__,
        )
    n_done = len(before)
    with closing(resumable.run(jobs, work, file, n_jobs, is_complete=work.is_complete, cluster=cluster)) as rows:
        for row in rows:
            n_done += 1
            if on_result is not None:
                on_result(n_done, len(jobs), row)
    found = resumable.latest(file, jobs)
    _add_stability(work, found)
    return found


@dataclass
class _Fit(FittingWork):
    """The work of a job: to fit one model and measure it. Each process has a copy."""

    models: dict[str, TopicModel]
    keep_models: bool

    def __call__(self, job: Job) -> Row:
        model: TopicModel = clone(self.models[job["model"]])
        model.set_params(n_topics=job["n_topics"], random_state=job["seed"])
        seconds = round(self.documents.evaluator.fit(model), 3)
        with atomic_file(self.topics_file(job)) as temporary, temporary.open("wb") as file:
            np.save(file, model.components_)
        if self.keep_models:
            model.save(self.model_folder(job), overwrite=True)
        found = self.documents.evaluator.measure(model, HELD_OUT)
        return {
            "version": __version__,
            "seconds": seconds,
            "measures": {part: {**values, "seconds": seconds} for part, values in found.items()},
            "words": model.topics(_WORDS),
            "topics": file_digest(self.topics_file(job)),
        }

    def outputs(self, job: Job) -> list[Path]:
        return [self.topics_file(job), self.model_folder(job)]

    def topics_file(self, job: Job) -> Path:
        return self.folder / "topics" / f"{job_name(job)}.npy"

    def model_folder(self, job: Job) -> Path:
        return self.folder / "models" / job_name(job)

    def is_complete(self, row: Row) -> bool:
        """Whether the files of a fit of an earlier call are still there."""
        has_model = not self.keep_models or (self.model_folder(row) / "config.json").is_file()
        return has_model and self.topics(row) is not None

    def topics(self, row: Row) -> Array | None:
        """Return (K, V) the topics of a fit, read from disk where they are needed; None if they are damaged."""
        file = self.topics_file(row)
        try:
            check_digests(file.parent, {file.name: digest} if (digest := row.get("topics")) else {}, ModelFileError)
            return load_array(file, mmap=True)
        except InputError:
            return None


def _add_stability(work: _Fit, rows: Sequence[Row]) -> None:
    """Add topic_distance to each fit: the mean distance between its topics and their partners in the other seeds."""
    groups: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        if "error" not in row:
            groups.setdefault((row["model"], row["n_topics"]), []).append(row)
    for group in groups.values():
        topics = [(row, np.array(found)) for row in group if (found := work.topics(row)) is not None]
        for row, own in topics:
            others = [other for _, other in topics if other is not own]
            if others:
                for part in HELD_OUT:
                    row["measures"][part]["topic_distance"] = float(metrics.topic_distance(own, others))
