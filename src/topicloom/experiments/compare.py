"""Comparisons: models x numbers of topics x seeds, fitted on one part of a corpus and measured on two others.

Settings and numbers of topics should be chosen by the figures of the validation part; those of the test part are for
the report. A directory keeps every finished fit, so that a killed comparison can be continued:

    comparison.json    what is compared: models, settings, the split, and a digest of the corpus
    corpus/            the documents, for the processes that fit
    cells.jsonl        a line for each fit: figures, seconds, words of the topics
    topics/            the topics of each fit, to compare those of different seeds
    comparison.csv     the table
    index.html         the tables, plots and topics in one file
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from .. import metrics
from .._version import __version__
from ..corpus import Corpus
from ..errors import InputError, SettingError
from ..files import atomic_file, read_json, write_json
from ..models.base import TopicModel
from ..models.persistence import estimator_named
from ..settings import check_settings, settings_as_text
from . import jobs as cells
from .comparison import Comparison, Row
from .protocol import (
    HELD_OUT,
    Evaluator,
    Split,
    digest,
    split,
)

logger = logging.getLogger("topicloom")

DEFAULT_MODELS = ("loom", "gsm", "etm", "wlda", "gmntm", "dirichletvae", "prodlda", "lda", "lda:method=gibbs")
_WORDS = 10


def compare(
    corpus: Corpus,
    models: Sequence[str] | Mapping[str, TopicModel] = DEFAULT_MODELS,
    n_topics: Sequence[int] = (20, 50),
    seeds: int = 3,
    *,
    out: str | Path | None = None,
    validation: float = 0.1,
    test: float = 0.2,
    n_jobs: int = 1,
    told: Callable[[int, int, Row], None] | None = None,
) -> Comparison:
    """Fit every model with every number of topics and every seed, and measure all of them in the same way.

    Args:
        corpus: the documents. Labels allow measures of classes, and texts allow coherence over windows.
        models: names such as "gsm", with settings after a colon, "lda:method=gibbs+epochs=500"; or a mapping from names
            of your choice to estimators, whose n_topics and random_state are set here.
        n_topics: numbers of topics.
        seeds: the number of fits of each model and number of topics, with random_state 0, 1, ...
        out: a directory that keeps the comparison, so that a killed one can be continued. None keeps nothing.
        validation, test: the shares of held-out documents.
        n_jobs: the number of processes.
        told: a function that is called after each fit with the number of finished fits, the number of all fits, and
            the row of the fit.

    Raises:
        InputError: an unknown model, a corpus that is too small, or a directory `out` with another comparison.
    """
    if not (isinstance(seeds, int) and seeds >= 1):
        raise SettingError(f"seeds should be the number of seeds, from 1; it is {seeds!r}")
    wanted = estimators(models)
    if out is None:
        with TemporaryDirectory(prefix="topicloom-") as folder:
            begun = _prepared(Path(folder) / "comparison", corpus, wanted, validation, test)
            return _compared(begun, wanted, n_topics, seeds, n_jobs, told)
    found = _compared(_prepared(Path(out), corpus, wanted, validation, test), wanted, n_topics, seeds, n_jobs, told)
    found.save(Path(out))
    return found


def select_n_topics(
    corpus: Corpus, n_topics: Sequence[int], model: str | TopicModel = "gsm", seeds: int = 3, **options: Any
) -> Comparison:
    """Compare numbers of topics for one model; `Comparison.candidates` then says which are as good as the best.

    No number is right in itself: measures disagree, and more topics describe fewer documents in more detail.

    Args:
        corpus: the documents.
        n_topics: numbers of topics.
        model: a name, with settings after a colon as in `compare`, or an estimator.
        seeds: the number of fits with each number of topics.
        options: other arguments of `compare`.
    """
    models = [model] if isinstance(model, str) else {type(model).__name__.lower(): model}
    return compare(corpus, models, n_topics, seeds, **options)


def estimators(models: Sequence[str] | Mapping[str, TopicModel]) -> dict[str, TopicModel]:
    """Return the estimators that names stand for, or raise InputError for what `compare` cannot take."""
    if isinstance(models, str):
        raise SettingError(f"models should be a list of names; give [{models!r}]")
    made = dict(models) if isinstance(models, Mapping) else {name: estimator_named(name) for name in models}
    if not made:
        raise SettingError("models is empty, so there is nothing to compare; give names of models")
    for model in made.values():
        check_settings(model)
    return made


class _Begun(NamedTuple):
    """A comparison whose directory exists."""

    folder: Path
    corpus: str  # its digest
    shares: tuple[float, float]  # of validation and test
    parts: Split


def _prepared(folder: Path, corpus: Corpus, models: Mapping[str, TopicModel], validation: float, test: float) -> _Begun:
    """Prepare the directory with its corpus, whether it is new or has fits already."""
    parts = split(corpus, validation, test)
    plan: dict[str, Any] = {
        "topicloom": __version__,
        "corpus": digest(corpus),
        "validation": validation,
        "test": test,
        "models": {name: _settings(model) for name, model in models.items()},
    }
    said = folder / "comparison.json"
    if said.exists():
        before = read_json(said)
        for name in ("corpus", "validation", "test"):
            if before.get(name) != plan[name]:
                raise InputError(f"{folder} has a comparison with another {name}; give another directory")
        for name, settings in before["models"].items():
            if plan["models"].setdefault(name, settings) != settings:
                raise InputError(f"{folder} has {name} with other settings; give another directory")
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "corpus" / "corpus.json").exists():
        corpus.save(folder / "corpus", overwrite=True)
    write_json(said, plan)
    return _Begun(folder, plan["corpus"], (validation, test), parts)


def _settings(model: TopicModel) -> dict[str, str]:
    own = settings_as_text(model)
    return {name: value for name, value in own.items() if name not in ("n_topics", "random_state", "verbose")}


def _compared(
    begun: _Begun,
    models: Mapping[str, TopicModel],
    n_topics: Iterable[int],
    seeds: int,
    n_jobs: int,
    told: Callable[[int, int, Row], None] | None,
) -> Comparison:
    folder = begun.folder
    sizes = [int(k) for k in dict.fromkeys(n_topics)]
    # Seed by seed, so that a comparison that is cut short has all models.
    asked = [{"model": name, "n_topics": k, "seed": seed} for seed, k, name in product(range(seeds), sizes, models)]
    work = partial(_fit_and_measure, folder, begun.corpus, begun.shares, dict(models))
    n_done = len([row for row in cells.latest(folder / "cells.jsonl", asked) if "error" not in row])
    for row in cells.run(asked, work, folder / "cells.jsonl", n_jobs):
        n_done += 1
        if told is not None:
            told(n_done, len(asked), row)
    rows = cells.latest(folder / "cells.jsonl", asked)
    documents = {name: part.n_docs for name, part in zip(Split._fields, begun.parts, strict=True)}
    _add_stability(folder, rows)
    return Comparison(rows, list(models), sizes, seeds, documents)


@lru_cache(maxsize=1)
def _evaluator(folder: Path, corpus: str, shares: tuple[float, float]) -> Evaluator:
    """Return the evaluator of a comparison's corpus, which each process reads once.

    Args:
        corpus: its digest, so that another corpus in the same directory is read anew.
    """
    return Evaluator(split(Corpus.load(folder / "corpus"), *shares))


def _fit_and_measure(
    folder: Path, corpus: str, shares: tuple[float, float], models: Mapping[str, TopicModel], cell: cells.Cell
) -> Row:
    """Fit one model and return its figures."""
    evaluator = _evaluator(folder, corpus, shares)
    model: TopicModel = clone(models[cell["model"]])
    model.set_params(n_topics=cell["n_topics"], random_state=cell["seed"])
    seconds = evaluator.fit(model)
    target = folder / "topics" / f"{_slug(cell)}.npy"
    target.parent.mkdir(exist_ok=True)
    with atomic_file(target) as temporary, temporary.open("wb") as file:
        np.save(file, model.components_)
    figures = evaluator.figures(model, HELD_OUT)
    return {
        "seconds": round(seconds, 3),
        "figures": {part: {**found, "seconds": round(seconds, 3)} for part, found in figures.items()},
        "words": model.topics(_WORDS),
    }


def _add_stability(folder: Path, rows: Sequence[Row]) -> None:
    """Add topic_distance to each fit: the mean distance between its topics and their partners in the other seeds."""
    groups: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        if "error" not in row:
            groups.setdefault((row["model"], row["n_topics"]), []).append(row)
    for group in groups.values():
        topics = [np.load(folder / "topics" / f"{_slug(row)}.npy") for row in group]
        for row, own in zip(group, topics, strict=True):
            others = [other for other in topics if other is not own]
            if others:
                for part in HELD_OUT:
                    row["figures"][part]["topic_distance"] = float(metrics.topic_distance(own, others))


def _slug(row: Mapping[str, Any]) -> str:
    name = "".join(c if c.isalnum() else "-" for c in row["model"])
    return f"{name}-{hashlib.sha256(row['model'].encode()).hexdigest()[:6]}-{row['n_topics']}-{row['seed']}"
