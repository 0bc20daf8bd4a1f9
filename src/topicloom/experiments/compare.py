"""Comparisons: models x numbers of topics x seeds, and the tables, tests and recommendations that follow from them."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from numbers import Integral
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from .. import metrics
from .._version import __version__
from ..corpus.inputs import Split
from ..display import html_table
from ..errors import InputError, ModelFileError, SettingError
from ..files import atomic_file, check_digests, file_digest, lock_directory, read_json, write_json
from ..messages import counted, nearest
from ..metrics.catalogue import CATALOGUE, Measure, known_measures, measures_of
from ..models import estimator_named
from ..models.base import TopicModel
from ..models.loading import load
from ..models.refitting import Variation, documents_of_fit, require_variation
from ..processes import Job, Row
from ..reports import comparison_words as words
from ..reports.wording import FigureLanguage, Language, joined, title_of
from ..settings import check_settings, require_whole, settings_as_text
from ..text.strings import load_array, write_array
from ..topics.publication import TableLanguage, chosen_language, comparison_for_print, model_title
from ..topics.saved import CONFIG
from ..topics.shares import holm
from .jobs import (
    HELD_OUT,
    FittingWork,
    OwnMeasure,
    Parts,
    SavedParts,
    latest_rows,
    own_measures,
    read_rows,
    reference_for,
    require_same_documents,
    run_jobs,
    split_documents,
)

if TYPE_CHECKING:
    from ..reports.comparison_page import PageContent
    from ..topics.table import Table

logger = logging.getLogger("topicloom")

Array = npt.NDArray[Any]
Models = Sequence[str | TopicModel] | Mapping[str, TopicModel]
OnResult = Callable[[int, int, Row], None]

DEFAULT_MODELS = (
    "loom", "gsm", "etm", "wlda", "gmntm", "dirichletvae", "prodlda", "lda:method=gibbs", "lda:method=variational",
)  # fmt: skip
_CHOOSING_MEASURES = ("perplexity_completion", "document_npmi")  # of the number of topics
_CONFIDENCE_OF_INTERVALS = 0.95  # of the differences between models
_WORDS_OF_TOPIC = 10  # in the row of a fit
_LONGEST_NAME = 60  # characters of a model's name in a file's name

# The recommended number of topics.


@dataclass(frozen=True)
class Recommendation:
    """A number of topics, and why it is recommended.

    Attributes:
        n_topics: the recommended number of topics.
        reason: one or two sentences.

    Examples:
        >>> from topicloom.experiments.compare import Recommendation
        >>> print(Recommendation(20, "20 topics are recommended."))
        20 topics are recommended.
    """

    n_topics: int
    reason: str

    def __str__(self) -> str:
        return self.reason

    def _repr_html_(self) -> str:
        return html_table([], [], f"{self.n_topics} topics", self.reason)


def recommend(values: Mapping[str, Mapping[int, npt.NDArray[Any]]], language: Language = "en") -> Recommendation:
    """Recommend the smallest number of topics that is as good as the best by every measure.

    A number is as good as the best if its mean over seeds is within one standard error of the best mean; the standard
    error is that of the best number over its seeds, and 0 with a single seed. This is the one-standard-error rule of
    Breiman et al. (1984). If no number is as good as the best by every measure, the one that loses least is taken: for
    each measure, the loss of a number is its distance from the best mean, as a share of the distance from the best to
    the worst mean, and the largest of these shares counts. A single number is returned, and the reason says that there
    was nothing to choose from.

    Args:
        values: for each measure, by number of topics, the values of all seeds; NaN where there is none.
        language: "en" or "zh", of the reason.

    Raises:
        InputError: no measure has a value.

    Examples:
        >>> import numpy as np
        >>> from topicloom.experiments.compare import recommend
        >>> npmi = {10: np.array([0.10, 0.12]), 20: np.array([0.20, 0.22]), 50: np.array([0.19, 0.23])}
        >>> recommend({"document_npmi": npmi}).n_topics
        20
    """
    scored: dict[str, dict[int, float]] = {}  # higher is better
    good: dict[str, set[int]] = {}
    of_one_fit = False
    for name, by_size in values.items():
        known = {k: each[np.isfinite(each)] * CATALOGUE[name].better for k, each in by_size.items()}
        means = {k: float(each.mean()) for k, each in known.items() if len(each)}
        if means:
            top = known[max(means, key=lambda k: means[k])]
            error = float(top.std(ddof=1) / np.sqrt(len(top))) if len(top) > 1 else 0.0
            of_one_fit |= len(top) == 1
            scored[name] = means
            good[name] = {k for k, mean in means.items() if mean >= top.mean() - error}
    complete = sorted(
        k for k in {k for means in scored.values() for k in means} if all(k in m for m in scored.values())
    )
    if not complete:
        raise InputError("no fit has a perplexity or a coherence, so no number of topics can be recommended")
    tried = sorted({k for by_size in values.values() for k in by_size})
    if len(complete) == 1:
        return Recommendation(complete[0], _single(complete[0], scored, tried, language))
    best = {name: max(means, key=lambda k: means[k]) for name, means in scored.items()}
    as_good = [k for k in complete if all(k in sizes for sizes in good.values())]
    if as_good:
        chosen = as_good[0]
        said = _agreement(chosen, scored, best, language)
    else:
        loss = {k: max(_loss(means, k) for means in scored.values()) for k in complete}
        chosen = min(complete, key=lambda k: loss[k])
        said = _compromise(chosen, scored, best, language)
    sentences = [said, words.ONE_FIT(language) * of_one_fit, _edge(chosen, tried, language)]
    return Recommendation(chosen, joined(sentences, language))


def _loss(means: Mapping[int, float], k: int) -> float:
    best, worst = max(means.values()), min(means.values())
    return 0.0 if best == worst else (best - means[k]) / (best - worst)


def _agreement(
    chosen: int, scored: Mapping[str, Mapping[int, float]], best: Mapping[str, int], language: Language
) -> str:
    parts = []
    for name, means in scored.items():
        is_best = means[chosen] == means[best[name]]
        top = words.THE_BEST_IS(language, value=_shown(name, means[best[name]]), k=best[name])
        parts.append(
            words.AS_GOOD(
                language,
                measure=_title(name, language),
                value=_shown(name, means[chosen]),
                best=words.THE_BEST(language) if is_best else top,
            )
        )
    measures = words.AND(language).join(_title(name, language) for name in scored)
    return words.AGREEMENT(language, k=chosen, measures=measures, parts=words.CLAUSE(language).join(parts))


def _compromise(
    chosen: int, scored: Mapping[str, Mapping[int, float]], best: Mapping[str, int], language: Language
) -> str:
    tops = words.CLAUSE(language).join(
        words.TOP(language, measure=_title(name, language), k=k, value=_shown(name, scored[name][k]))
        for name, k in best.items()
    )
    return words.COMPROMISE(language, k=chosen, tops=tops, parts=_measured(chosen, scored, language))


def _single(k: int, scored: Mapping[str, Mapping[int, float]], tried: list[int], language: Language) -> str:
    """Say that there is nothing to choose from, because only one number was tried or could be measured."""
    said = words.ONLY_ONE_MEASURED if len(tried) > 1 else words.ONLY_ONE
    return said(language, k=k, parts=_measured(k, scored, language))


def _measured(k: int, scored: Mapping[str, Mapping[int, float]], language: Language) -> str:
    return words.CLAUSE(language).join(
        words.MEASURED(language, measure=_title(name, language), value=_shown(name, means[k]))
        for name, means in scored.items()
    )


def _edge(chosen: int, tried: list[int], language: Language) -> str:
    """Return advice where the recommended number is the largest or smallest of those that were tried."""
    if chosen not in (tried[0], tried[-1]):
        return ""
    return (words.LARGEST if chosen == tried[-1] else words.SMALLEST)(language)


def _title(name: str, language: Language) -> str:
    return title_of(CATALOGUE[name], language) if language == "zh" else CATALOGUE[name].column or CATALOGUE[name].title


def _shown(name: str, score: float) -> str:
    return f"{score * CATALOGUE[name].better:.{CATALOGUE[name].digits}f}"


# The result of a comparison.


@dataclass(frozen=True, repr=False)
class Comparison:
    """The result of a comparison.

    Attributes:
        rows: one for each fit, in order: model, n_topics, seed, version (of topicloom), seconds, words, and the
            measures of each held-out part; or the error that the fit ended in. If there are several seeds, the first
            also says in which others each topic returns ("returns").
        models, n_topics, seeds: what was compared.
        documents: the number of documents in each part.
        folder: the directory that keeps the comparison, if there is one.
        modules: the modules of the models' classes.
        others: finished fits of earlier calls that the directory keeps and this comparison leaves out.
        coherence_against: the name of the documents that coherence is counted in.
        own: the measures of the user's own, as entries of the catalogue.

    Examples:
        >>> import topicloom as tl
        >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 12
        >>> found = tl.compare(texts, {"lda": tl.LDA(epochs=5)}, n_topics=[2, 3], seeds=1)
        >>> [(row["model"], row["n_topics"], row["fits"]) for row in found.table()]
        [('lda', 2, 1), ('lda', 3, 1)]
        >>> found.values("topic_diversity", "lda", 3).shape
        (1,)
    """

    rows: list[Row]
    models: list[str]
    n_topics: list[int]
    seeds: int
    documents: dict[str, int]
    folder: Path | None = None
    modules: frozenset[str] = frozenset()
    others: list[Row] = field(default_factory=list)
    coherence_against: str = "training documents"
    own: Mapping[str, Measure] = field(default_factory=dict)

    def __repr__(self) -> str:
        sizes = [
            counted(len(self.models), "model"),
            counted(len(self.n_topics), "number of topics", "numbers of topics"),
            counted(self.seeds, "seed"),
            counted(len(self.rows), "fit"),
            f"{len(self.failed)} failed",
        ]
        return f"Comparison({', '.join(sizes)})"

    def _repr_html_(self) -> str:
        table = self.table()
        names = [name for name in table[0] if not name.endswith("_sd")] if table else []
        return html_table(names, [[row[name] for name in names] for row in table], repr(self), "Means over seeds.")

    @property
    def failed(self) -> list[Row]:
        """The fits that ended in an error."""
        return [row for row in self.rows if "error" in row]

    @property
    def left_out(self) -> str:
        """What `others` would add to this comparison, such as "gsm, lda and 50 topics"; "" if there is nothing."""
        models = dict.fromkeys(row["model"] for row in self.others if row["model"] not in self.models)
        sizes = sorted({row["n_topics"] for row in self.others} - set(self.n_topics))
        seeds = sorted({row["seed"] for row in self.others if row["seed"] >= self.seeds})
        parts = [*models, *(f"{k} topics" for k in sizes), *(f"seed {seed}" for seed in seeds)]
        return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))

    @property
    def versions(self) -> list[str]:
        """The versions of topicloom that made the fits."""
        return sorted({row["version"] for row in self.rows if "version" in row})

    @property
    def measures(self) -> list[str]:
        """The measures that some fit has, in the order of the catalogue, and then those of the user's own."""
        return list(self.catalogue)

    @property
    def catalogue(self) -> dict[str, Measure]:
        """The same measures with their titles and directions, by name."""
        have = {name for row in self.rows for name in row.get("measures", {}).get("test", {})}
        return {name: entry for name, entry in self._known.items() if name in have}

    @property
    def _known(self) -> dict[str, Measure]:
        return {**measures_of("comparison"), **self.own}

    def values(self, measure: str, model: str, n_topics: int, on: str = "test") -> Array:
        """Return a measure of every fit of one model with one number of topics.

        Args:
            measure: its name.
            model: the name of a model of the comparison.
            n_topics: one of its numbers of topics.
            on: "validation" or "test".

        Returns:
            (seeds,) values; NaN where a fit failed, or where the corpus does not allow the measure.

        Raises:
            SettingError: an unknown measure, model or part.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 12
            >>> found = tl.compare(texts, {"lda": tl.LDA(epochs=5)}, n_topics=3, seeds=2)
            >>> found.values("topic_diversity", "lda", 3).shape
            (2,)
        """
        _check_part(on)
        if measure not in (known := self._known):
            raise SettingError(f"unknown measure {measure!r}; {nearest(str(measure), known)}")
        if model not in self.models:
            raise SettingError(f"unknown model {model!r}; {nearest(str(model), self.models)}")
        found = {
            row["seed"]: row["measures"][on].get(measure)
            for row in self.rows
            if (row["model"], row["n_topics"]) == (model, n_topics) and "error" not in row
        }
        return np.array([np.nan if found.get(seed) is None else found[seed] for seed in range(self.seeds)], float)

    def table(self, on: str = "test") -> list[Row]:
        """Return a row for each model and number of topics: mean and standard deviation over seeds of every measure.

        Args:
            on: "validation" to choose by, "test" to report.

        Raises:
            SettingError: an unknown part.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 12
            >>> found = tl.compare(texts, {"lda": tl.LDA(epochs=5)}, n_topics=3, seeds=2)
            >>> row = found.table()[0]
            >>> row["model"], row["n_topics"], row["fits"], row["topic_diversity_sd"] is None
            ('lda', 3, 2, False)
        """
        _check_part(on)
        lines = []
        for model, k in product(self.models, self.n_topics):
            line: Row = {"model": model, "n_topics": k}
            for name in self.measures:
                values = self.values(name, model, k, on)
                good = values[np.isfinite(values)]
                line[name] = float(good.mean()) if len(good) else None
                line[f"{name}_sd"] = float(good.std(ddof=1)) if len(good) > 1 else None
            line["fits"] = sum((r["model"], r["n_topics"]) == (model, k) and "error" not in r for r in self.rows)
            lines.append(line)
        return lines

    def publication_table(
        self,
        on: str = "test",
        *,
        measures: Iterable[str] | None = None,
        decimals: int | Mapping[str, int] | None = None,
        table_language: TableLanguage = "auto",
    ) -> Table:
        """Return a table that can go into a paper as it is: mean ± standard deviation, the best means in bold.

        `save("comparison.tex")` writes it for booktabs, and `save("comparison.md")` for Markdown.

        Args:
            on: "validation" or "test".
            measures: the names of the measures, in the order of the columns. None takes those that the table in the
                terminal shows, without the seconds.
            decimals: the number of decimal places, of all measures or by measure. None, and for measures that are not
                named, is two, and none for perplexity.
            table_language: "en" or "zh", of headings and caption; "auto" is "en".

        Raises:
            InputError: no fit has a measure that was asked for.
            SettingError: an unknown part, measure or language, or decimals that are no number.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 12
            >>> found = tl.compare(texts, {"lda": tl.LDA(epochs=5)}, n_topics=[2, 3], seeds=2)
            >>> list(found.publication_table().columns)[:3]
            ['$K$', 'NPMI', 'Diversity']
            >>> exact = found.publication_table(measures=["topic_diversity"], decimals=4)
            >>> [len(str(cell).split(" ± ")[0]) for cell in exact["Diversity"]]  # such as 0.5556
            [6, 6]
        """
        from ..models import REGISTRY

        language = chosen_language(table_language, argument="table_language")
        classes = {name.lower(): name for name in REGISTRY}
        _check_part(on)
        known = self.catalogue
        if measures is None:
            shown = [name for name, each in known.items() if each.column and each.group not in ("cost", "stability")]
        else:
            shown = known_measures(measures, self._known, "`measures`")
            if absent := [name for name in shown if name not in known or not self._has(name, on)]:
                raise InputError(f"no fit has a value of {absent[0]}; leave it out of `measures`")
        return comparison_for_print(
            self.table(on), {name: known[name] for name in shown}, _decimals(decimals, shown),
            {name: model_title(name, classes) for name in self.models}, self.seeds, on, self.documents[on],
            self._reference, language,
        )  # fmt: skip

    def _has(self, measure: str, on: str) -> bool:
        sizes = product(self.models, self.n_topics)
        return any(np.isfinite(self.values(measure, model, k, on)).any() for model, k in sizes)

    @property
    def _reference(self) -> str | None:
        """The name of a reference of the user's own."""
        return None if self.coherence_against == "training documents" else self.coherence_against

    def paired(self, measure: str, against: str, on: str = "test") -> list[Row]:
        """Compare every other model with one model, over pairs of fits with the same seed and number of topics.

        With few pairs, only large differences are significant. Of many tests, some have p below .05 by chance, so rely
        on p_holm. It is corrected for the tests of all pairs of models, because `against` is usually the best model,
        and chosen by the same fits: of nine equal models, the best is better than the others by chance.

        Args:
            measure: its name.
            against: the model that the others are compared with, such as the best one on validation documents (`best`).
            on: "validation" or "test".

        Returns:
            a row for each other model: model, against, difference (its own mean minus that of `against`), low and high
            (the 95 % confidence interval of this difference alone), pairs (their number), p (two-sided, of the paired
            t-test) and p_holm (p corrected after Holm for the tests of all pairs of models). Interval and p are None if
            there are fewer than two pairs or all differences are the same, and for a measure such as topic_distance,
            whose values of different seeds are not independent of each other.

        Raises:
            SettingError: an unknown measure, model or part.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 12
            >>> models = {"lda": tl.LDA(epochs=5), "gsm": tl.GSM(epochs=1, device="cpu")}
            >>> found = tl.compare(texts, models, n_topics=3, seeds=2)
            >>> [row["pairs"] for row in found.paired("topic_diversity", "lda")]
            [2]
        """
        if against not in self.models:
            raise SettingError(f"`against` should be one of {', '.join(self.models)}; it is {against!r}")

        fits = {
            model: np.concatenate([self.values(measure, model, k, on) for k in self.n_topics]) for model in self.models
        }
        others = [model for model in self.models if model != against]
        rows: list[Row] = [
            {"model": model, "against": against, **paired_difference(fits[model], fits[against])} for model in others
        ]
        if "other runs" in self._known[measure].needs:  # every value is shared with the other seeds
            return [row | {"low": None, "high": None, "p": None, "p_holm": None} for row in rows]
        rest = [paired_difference(fits[one], fits[other])["p"] for one, other in combinations(others, 2)]
        adjusted = holm([*(row["p"] for row in rows), *rest])
        return [row | {"p_holm": p} for row, p in zip(rows, adjusted, strict=False)]

    def best(self, measure: str, on: str = "validation") -> str | None:
        """Return the model with the best mean of a measure over all numbers of topics, or None if no fit has it.

        If all fits of a model with some number of topics failed, that number is left out for every model.

        Args:
            measure: its name.
            on: the part that is chosen by, "validation" or "test".

        Raises:
            SettingError: an unknown measure or part.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 12
            >>> models = {"lda": tl.LDA(epochs=5), "gsm": tl.GSM(epochs=1, device="cpu")}
            >>> found = tl.compare(texts, models, n_topics=3, seeds=2)
            >>> found.best("topic_diversity") in ("lda", "gsm")
            True
        """
        fits = {(model, k): self.values(measure, model, k, on) for model in self.models for k in self.n_topics}
        known = {fit: values for fit, values in fits.items() if np.isfinite(values).any()}
        able = list(dict.fromkeys(model for model, _ in known))
        common = [k for k in self.n_topics if all((model, k) in known for model in able)] or self.n_topics
        means = {}
        for model in able:
            values = np.concatenate([fits[model, k] for k in common])
            if np.isfinite(values).any():
                means[model] = float(np.nanmean(values)) * self._known[measure].better
        return max(means, key=lambda name: means[name]) if means else None

    def best_model(self, measure: str, on: str = "validation") -> TopicModel:
        """Load the fitted model with the best value of a measure, among all models, numbers of topics and seeds.

        Args:
            measure: its name.
            on: the part that is chosen by, "validation" or "test".

        Raises:
            InputError: the comparison kept no models, or no fit has the measure.
            SettingError: an unknown measure or part.
        """
        found = {
            (model, k, seed): float(value) * self._known[measure].better
            for model, k in product(self.models, self.n_topics)
            for seed, value in enumerate(self.values(measure, model, k, on))
            if np.isfinite(value)
        }
        if not found:
            raise InputError(f"no fit has a value of {measure}; choose another measure")
        return self.load_model(*max(found, key=lambda fit: found[fit]))

    def load_model(
        self,
        model: str,
        n_topics: int,
        seed: int = 0,
        *,
        device: str = "auto",
        tokenizer: Callable[[str], Iterable[str]] | None = None,
    ) -> TopicModel:
        """Load a fitted model of the comparison.

        Args:
            model: the name of a model of the comparison.
            n_topics: one of its numbers of topics.
            seed: the number of the fit, from 0.
            device: where the model runs: "cpu", "cuda" or "mps"; "auto" is a GPU if there is one.
            tokenizer: the tokenizer that the model was trained with, if it is a function of your own.

        Raises:
            InputError: the comparison kept no models, or not this one.
        """
        job = {"model": model, "n_topics": n_topics, "seed": seed}
        place = None if self.folder is None else self.folder / "models" / job_name(job)
        if place is None or not place.is_dir():
            known = f"{model!r} with {n_topics} topics and seed {seed}"
            raise InputError(
                f"the comparison has not kept the model {known}; compare again with `out` and `keep_models=True`"
            )
        return load(place, device=device, tokenizer=tokenizer, allow=self.modules)

    def recommend(self, model: str | None = None, language: Language = "en") -> Recommendation:
        """Recommend a number of topics, by completion perplexity on validation documents and coherence.

        It is the smallest number whose perplexity and NPMI are both within one standard error of the best. If none is,
        the one that loses least is recommended as a compromise: the largest of its losses, each a share of the
        distance from the best to the worst mean of a measure, is the smallest.

        Args:
            model: by default the only model, or the first.
            language: "en" or "zh", of the reason.

        Returns:
            n_topics, and the reason in words.

        Raises:
            InputError: no fit has either measure.
            SettingError: an unknown model.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 12
            >>> found = tl.compare(texts, {"lda": tl.LDA(epochs=5)}, n_topics=[2, 3], seeds=1)
            >>> found.recommend().n_topics in (2, 3)
            True
        """
        model = model or self.models[0]
        values = {
            name: {k: self.values(name, model, k, "validation") for k in self.n_topics} for name in _CHOOSING_MEASURES
        }
        return recommend(values, chosen_language(language))

    def candidates(self, model: str | None = None) -> dict[str, list[int]]:
        """Find numbers of topics within one standard deviation of the best, for each measure, on validation documents.

        Numbers of active topics are compared as shares of all topics.

        Args:
            model: by default the only model, or the first.

        Returns:
            by measure, the numbers of topics.

        Raises:
            SettingError: an unknown model.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 12
            >>> found = tl.compare(texts, {"lda": tl.LDA(epochs=5)}, n_topics=[2, 3], seeds=1)
            >>> sorted({k for sizes in found.candidates().values() for k in sizes})
            [2, 3]
        """
        model = model or self.models[0]
        found = {}
        for name, measure in self.catalogue.items():
            if name == "seconds":
                continue
            values = {
                k: self.values(name, model, k, "validation")
                * measure.better
                / (k if measure.count_of == "topics" else 1)
                for k in self.n_topics
            }
            means = {k: float(np.nanmean(each)) for k, each in values.items() if np.isfinite(each).any()}
            if not means:
                continue
            top = max(means, key=lambda k: means[k])
            slack = float(np.nanstd(values[top], ddof=1)) if np.isfinite(values[top]).sum() > 1 else 0.0
            found[name] = [k for k in means if means[k] >= means[top] - slack]
        return found

    def save(
        self, folder: str | Path, *, figure_language: Language = "en", font: str | PathLike[str] | None = None
    ) -> None:
        """Write comparison.csv and index.html into a directory, which is made if it does not exist.

        comparison.tex and comparison.md have the figures on test documents as tables for a paper.
        With several numbers of topics, n_topics.png shows the measures by their number, if matplotlib is installed.

        Args:
            folder: the directory.
            figure_language: "en" or "zh", the language of the plots and of the page.
            font: a font family or file for the plots; None chooses one that has the characters.

        Raises:
            SettingError: there is no such language.
            InputError: `font` is not installed.
        """
        from ..reports.comparison_page import csv_lines, curve_of, page

        labels = language = chosen_language(figure_language, argument="figure_language")
        with suppress(ImportError):
            from ..reports.figures.style import label_language

            labels = label_language(language, font)
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        content = self._page_content(language)
        table = csv_lines(content.tables, self.measures)
        for name, text in {"comparison.csv": table, "index.html": page(content, language, labels, font)}.items():
            with atomic_file(target / name) as temporary:
                temporary.write_text(text, encoding="utf-8")
        for_print = self.publication_table(table_language=language)
        for name in ("comparison.tex", "comparison.md"):
            for_print.save(target / name)
        if len(self.n_topics) > 1:
            with suppress(ImportError):
                from ..reports import figures

                figures.save(curve_of(content, labels, font), target / "n_topics.png")

    def _page_content(self, language: Language) -> PageContent:
        """Return what the page shows; the reasons of recommendations are in a language."""
        from ..reports.comparison_page import PageContent

        recommended = {}
        for model in self.models:
            with suppress(InputError):  # no fit of the model has the measures
                found = self.recommend(model, language)
                recommended[model] = found.n_topics, found.reason
        best = {name: self.best(name) for name, each in self.catalogue.items() if "other runs" not in each.needs}
        return PageContent(
            models=self.models,
            n_topics=self.n_topics,
            seeds=self.seeds,
            documents=self.documents,
            versions=self.versions,
            rows=self.rows,
            measures=self.catalogue,
            reference=self._reference,
            tables={part: self.table(part) for part in HELD_OUT},
            values={
                part: {
                    name: {
                        model: np.stack([self.values(name, model, k, part) for k in self.n_topics])
                        for model in self.models
                    }
                    for name in self.measures
                }
                for part in HELD_OUT
            },
            paired={name: self.paired(name, model) for name, model in best.items() if model is not None},
            recommended=recommended,
        )


def paired_difference(ours: npt.NDArray[Any], theirs: npt.NDArray[Any]) -> dict[str, Any]:
    """Compare two series of values, pair by pair.

    Args:
        ours, theirs: (n,) values; a pair with NaN or an infinite value is left out.

    Returns:
        difference (the mean of ours minus theirs), low and high (its 95 % confidence interval by Student's t), pairs
        (their number), and p (two-sided, of the paired t-test). What cannot be computed is None: interval and p need at
        least two pairs, and differences that are not all the same.

    Examples:
        >>> import numpy as np
        >>> from topicloom.experiments.compare import paired_difference
        >>> found = paired_difference(np.array([0.5, 0.75, np.nan]), np.array([0.25, 0.25, 0.1]))
        >>> found["difference"], found["pairs"]
        (0.375, 2)
    """
    from scipy.stats import t, ttest_rel

    both = np.isfinite(ours) & np.isfinite(theirs)
    differences = ours[both] - theirs[both]
    n = len(differences)
    mean = float(differences.mean()) if n else None
    row = {"difference": mean, "low": None, "high": None, "pairs": n, "p": None}
    if mean is None or n < 2 or not differences.std() > 0:
        return row
    margin = float(t.ppf((1 + _CONFIDENCE_OF_INTERVALS) / 2, n - 1) * differences.std(ddof=1) / np.sqrt(n))
    return row | {"low": mean - margin, "high": mean + margin, "p": float(ttest_rel(ours[both], theirs[both]).pvalue)}


def job_name(job: Mapping[str, Any]) -> str:
    """Return a name for the files of a fit, such as "gsm-20-0"."""
    name = job["model"]
    if not re.fullmatch("[a-z0-9]+", name):  # a digest distinguishes names that differ in other characters
        plain = "".join(c if c.isalnum() else "-" for c in name)[:_LONGEST_NAME]
        name = f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"
    return f"{name}-{job['n_topics']}-{job['seed']}"


def _check_part(on: str) -> None:
    if on not in HELD_OUT:
        raise SettingError(f'`on` should be "validation" or "test"; it is {on!r}')


# The fits of a comparison.


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
    vary: Variation = "seed",
    figure_language: FigureLanguage = "auto",
    font: str | PathLike[str] | None = None,
    reference: Any = None,
    measures: Mapping[str, Any] | None = None,
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
        vary: what differs between the fits of a model besides their number: the "seed" alone. With "order", fit s has
            seed 0 and the training documents in another order; with "bootstrap", seed 0 and a sample of them. Fit 0
            always has seed 0 and the documents as they are.
        figure_language: "en" or "zh", the language of the plots and of the page in `out`; "auto" is Chinese if the
            texts are Chinese, and otherwise English.
        font: a font family or file for the plots; None chooses one that has the characters.
        reference: the documents that coherence is counted in: a Corpus, texts, lists of tokens, counts, or a
            `metrics.Reference`. None is the training documents.
        measures: measures of your own, in all tables and n_topics.png: by name, a function that is called with a fitted
            model and the validation or test documents, and returns a number; or (function, "lower") if lower values are
            better. None and NaN are no value. If the function raises an error, a warning says so, the tables leave the
            value out, and the next call with the same `out` takes the measure again. So does a call with a new or
            changed function. It reads the models that an earlier call kept, and fits the others again.

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

        >>> def longest_word(model, corpus):
        ...     return max(len(word) for topic in model.topics(3) for word in topic)
        >>> found = tl.compare(texts, ["lda:epochs=5"], n_topics=3, seeds=1, measures={"longest word": longest_word})
        >>> found.table()[0]["longest word"]
        5.0
    """
    require_whole("seeds", seeds)
    if keep_models and out is None:
        raise InputError("`keep_models=True` needs a directory for the models; give `out`")
    chosen_language(figure_language, argument="figure_language")
    require_variation(vary)
    own = own_measures(measures)
    wanted, sizes, n_workers = estimators(models), _sizes(n_topics), _workers(n_jobs)
    parts, divided = split_documents(corpus, split, validation, test)
    coherence = reference_for(reference, parts.train)
    divided["reference"] = None if coherence is None else coherence.digest
    # The jobs are ordered by seed, so that a comparison that is cut short has all models.
    jobs = [{"model": name, "n_topics": k, "seed": seed} for seed, k, name in product(range(seeds), sizes, wanted)]
    with TemporaryDirectory(prefix="topicloom-") as temporary:
        folder = Path(temporary, "comparison") if out is None else Path(out)
        with lock_directory(folder):
            _prepare(folder, divided, wanted, vary)
            saved = SavedParts.of(parts, folder / "corpus", coherence)
            work = _Fit(folder, saved, wanted, keep_models, vary, own)
            rows = _run(jobs, work, n_workers, cluster, on_result)
            documents = {name: part.n_docs for name, part in zip(Split._fields, parts, strict=True)}
            found = Comparison(rows, list(wanted), sizes, int(seeds), documents, own=_entries(own))
            if coherence is not None:
                found = replace(found, coherence_against=coherence.name or "the reference")
            _warn_of_own_measures(rows, own)
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
    for number, (name, model) in enumerate(pairs):
        if name in made and (name, model) not in pairs[:number]:  # a name that is repeated is one model
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


def _prepare(folder: Path, divided: dict[str, Any], models: Mapping[str, TopicModel], vary: Variation) -> None:
    """Prepare the directory, whether it is new or has fits already."""
    settings = {name: _settings(model) for name, model in models.items()}
    file = folder / "comparison.json"
    if file.exists():
        before = read_json(file)
        require_same_documents(before, divided, f"{folder} has a comparison")
        if (known := before.get("vary", "seed")) != vary:
            raise InputError(f'{folder} has a comparison with `vary="{known}"`; give another directory')
        for name, known in before["models"].items():
            if settings.setdefault(name, known) != known:
                raise InputError(f"{folder} has {name} with other settings; give another directory")
    folder.mkdir(parents=True, exist_ok=True)
    write_json(file, {"topicloom": __version__, **divided, "vary": vary, "models": settings})


def _others(folder: Path, jobs: Sequence[Job]) -> list[Row]:
    """Return the finished fits of a directory that are not among the jobs."""
    wanted = {(job["model"], job["n_topics"], job["seed"]) for job in jobs}
    kept = read_rows(folder / "jobs.jsonl")
    return [row for row in kept if "error" not in row and (row["model"], row["n_topics"], row["seed"]) not in wanted]


def _entries(own: Mapping[str, OwnMeasure]) -> dict[str, Measure]:
    return {name: measure.entry for name, measure in own.items()}


def _warn_of_own_measures(rows: Sequence[Row], names: Iterable[str]) -> None:
    for name in names:
        those = [row for row in rows if name in row.get("own_errors", ())]
        if not those:
            continue
        first = those[0]
        logger.warning(
            "%s; so it has no value in %d of %d fits, first in %s with %d topics and seed %d",
            first["own_errors"][name], len(those), len(rows), first["model"], first["n_topics"], first["seed"],
        )  # fmt: skip


def _decimals(given: int | Mapping[str, int] | None, shown: Sequence[str]) -> Mapping[str, int]:
    """Return decimal places by measure, for those that are not to have the usual number."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        given = dict.fromkeys(shown, given)
    known_measures(given, shown, "`decimals`")
    for number in given.values():
        require_whole("decimals", number, 0)
    return given


def _settings(model: TopicModel) -> dict[str, str]:
    own = settings_as_text(model)
    return {name: value for name, value in own.items() if name not in ("n_topics", "random_state", "verbose")}


def _run(jobs: list[Job], work: _Fit, n_jobs: int, cluster: str | None, on_result: OnResult | None) -> list[Row]:
    """Do the jobs that are not done, and return the rows of all of them."""
    file = work.jobs_file
    before = [row for row in latest_rows(file, jobs) if "error" not in row and work.is_complete(row)]
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
    with closing(run_jobs(jobs, work, file, n_jobs, is_complete=work.is_complete, cluster=cluster)) as rows:
        for row in rows:
            n_done += 1
            if on_result is not None:
                on_result(n_done, len(jobs), row)
    found = latest_rows(file, jobs)
    _add_stability(work, found)
    return found


@dataclass
class _Fit(FittingWork):
    """The work of a job: to fit one model and measure it. Each process has a copy."""

    models: dict[str, TopicModel]
    keep_models: bool
    vary: Variation = "seed"
    own: Mapping[str, OwnMeasure] = field(default_factory=dict)

    def __call__(self, job: Job) -> Row:
        if (kept := self._kept(job)) is not None:
            return self._with_own_measures(*kept)
        model: TopicModel = clone(self.models[job["model"]])
        number = job["seed"]
        model.set_params(n_topics=job["n_topics"], random_state=number if self.vary == "seed" else 0)
        evaluator = self.documents.evaluator
        training = documents_of_fit(evaluator.parts.train, self.vary, number)
        seconds = round(evaluator.fit(model, training), 3)
        with atomic_file(self.topics_file(job)) as temporary:
            write_array(temporary, model.components_)
        if self.keep_models:
            model.save(self.model_folder(job), overwrite=True)
        row = {
            "version": __version__,
            "seconds": seconds,
            "measures": {
                part: {**values, "seconds": seconds} for part, values in evaluator.measure(model, HELD_OUT).items()
            },
            "words": model.topics(_WORDS_OF_TOPIC, written=True),
            "topics": file_digest(self.topics_file(job)),
        }
        return self._with_own_measures(row, model)

    def _kept(self, job: Job) -> tuple[Row, TopicModel] | None:
        """Return the row and the model of an earlier call, if the directory keeps both."""
        row = next(iter(latest_rows(self.jobs_file, [job])), {})
        if row.get("version") != __version__ or (topics := self.topics(row)) is None:
            return None
        prototype = self.models[job["model"]]
        try:
            place, device = self.model_folder(job), getattr(prototype, "device", "auto")
            model = load(place, device=device, allow=[type(prototype).__module__])
        except InputError:
            return None
        model.tokenizer_ = self.documents.evaluator.parts.train.tokenizer  # which may be a function of the user's own
        return (row, model) if np.array_equal(model.components_, topics) else None

    def _with_own_measures(self, row: Row, model: TopicModel) -> Row:
        """Return the row of a fit with those measures of the user's own that it does not have yet."""
        if not self.own:
            return row
        parts = self.documents.evaluator.parts
        measures = {part: dict(row["measures"][part]) for part in HELD_OUT}
        taken, failed = dict(row.get("own", {})), dict(row.get("own_errors", {}))
        for name, measure in self.own.items():
            if measure.is_of(taken.get(name)) and name not in failed:
                continue
            taken[name] = measure.digest
            failed.pop(name, None)
            try:
                values = {part: measure(model, getattr(parts, part)) for part in HELD_OUT}
            except InputError as error:
                values = dict.fromkeys(HELD_OUT)
                failed[name] = str(error)
            for part, value in values.items():
                measures[part][name] = value
        return row | {"measures": measures, "own": taken, "own_errors": failed}

    def outputs(self, job: Job) -> list[Path]:
        return [self.topics_file(job), self.model_folder(job)]

    @property
    def jobs_file(self) -> Path:
        return self.folder / "jobs.jsonl"

    def topics_file(self, job: Job) -> Path:
        return self.folder / "topics" / f"{job_name(job)}.npy"

    def model_folder(self, job: Job) -> Path:
        return self.folder / "models" / job_name(job)

    def is_complete(self, row: Row) -> bool:
        """Whether the files of a fit of an earlier call are still there."""
        has_model = not self.keep_models or (self.model_folder(row) / CONFIG).is_file()
        taken, failed = row.get("own", {}), row.get("own_errors", {})
        is_measured = all(each.is_of(taken.get(name)) and name not in failed for name, each in self.own.items())
        return has_model and is_measured and self.topics(row) is not None

    def topics(self, row: Row) -> Array | None:
        """Return (K, V) the topics of a fit, read from disk where they are needed; None if they are damaged."""
        file = self.topics_file(row)
        try:
            check_digests(file.parent, {file.name: digest} if (digest := row.get("topics")) else {}, ModelFileError)
            return load_array(file, mmap=True)
        except InputError:
            return None


def _add_stability(work: _Fit, rows: Sequence[Row]) -> None:
    """Add to each fit how far its topics are from those of the other seeds, and how many return in these.

    The row of the first seed also gets the similarities of its topics with those of each other seed.
    """
    groups: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        if "error" not in row:
            groups.setdefault((row["model"], row["n_topics"]), []).append(row)
    for group in groups.values():
        topics = [(row, np.array(found)) for row in group if (found := work.topics(row)) is not None]
        for row, own in topics:
            others = [other for _, other in topics if other is not own]
            if others:
                returns = metrics.topic_returns(own, others, n_chance=0)
                stability = {
                    "topic_distance": float(metrics.topic_distance(own, others)),
                    "returning_topics": returns.mean,
                }
                for part in HELD_OUT:
                    row["measures"][part] |= stability
                if row["seed"] == 0:
                    row["returns"] = returns.to_dict()
