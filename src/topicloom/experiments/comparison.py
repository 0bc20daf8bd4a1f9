"""The result of a comparison: every fit, and the tables, tests and choices that follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import SettingError, nearest
from ..files import atomic_file
from ..metrics.catalogue import CATALOGUE, measures_of
from .protocol import HELD_OUT

Array = npt.NDArray[Any]
Row = dict[str, Any]


@dataclass(frozen=True, repr=False)
class Comparison:
    """The result of a comparison.

    Attributes:
        rows: one for each fit, in order: model, n_topics, seed, words, seconds, and the figures of each held-out part.
        models, n_topics, seeds: what was compared.
        documents: the number of documents in each part.
    """

    rows: list[Row]
    models: list[str]
    n_topics: list[int]
    seeds: int
    documents: dict[str, int]

    def __repr__(self) -> str:
        sizes = [
            _number(len(self.models), "model"),
            _number(len(self.n_topics), "number of topics", "numbers of topics"),
            _number(self.seeds, "seed"),
            _number(len(self.rows), "fit"),
            f"{len(self.failed)} failed",
        ]
        return f"Comparison({', '.join(sizes)})"

    @property
    def failed(self) -> list[Row]:
        """The fits that ended in an error."""
        return [row for row in self.rows if "error" in row]

    @property
    def measures(self) -> list[str]:
        """The measures that some fit has, in the order of the catalogue."""
        have = {name for row in self.rows for name in row.get("figures", {}).get("test", {})}
        return [name for name in measures_of("comparison") if name in have]

    def values(self, measure: str, model: str, n_topics: int, on: str = "test") -> Array:
        """Return a measure of every fit of one model with one number of topics.

        Args:
            measure: its name.
            model, n_topics: as in the comparison.
            on: "validation" or "test".

        Returns:
            (seeds,) values; NaN where a fit failed, or where the corpus does not allow the measure.

        Raises:
            SettingError: an unknown measure, model or part.
        """
        _check_part(on)
        if measure not in (known := measures_of("comparison")):
            raise SettingError(f"unknown measure {measure!r}; {nearest(str(measure), known)}")
        if model not in self.models:
            raise SettingError(f"unknown model {model!r}; {nearest(str(model), self.models)}")
        found = {
            row["seed"]: row["figures"][on].get(measure)
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

    def paired(self, measure: str, against: str, on: str = "test") -> list[Row]:
        """Compare every other model with one model, over pairs of fits with the same seed and number of topics.

        Args:
            measure: its name.
            against: the model that the others are compared with.
            on: "validation" or "test".

        Returns:
            a row for each other model: difference (its own mean minus that of `against`), pairs (their number), and p
            (two-sided, of the paired t-test; None if there are fewer than two pairs or all differences are the same).
            Few pairs show only large differences, and of many tests some are below .05 by chance.

        Raises:
            SettingError: an unknown measure, model or part.
        """
        from scipy.stats import ttest_rel

        if against not in self.models:
            raise SettingError(f"against should be one of {', '.join(self.models)}; it is {against!r}")
        rows = []
        for model in self.models:
            if model == against:
                continue
            ours, theirs = (
                np.concatenate([self.values(measure, name, k, on) for k in self.n_topics]) for name in (model, against)
            )
            both = np.isfinite(ours) & np.isfinite(theirs)
            difference = (ours - theirs)[both]
            tested = len(difference) > 1 and difference.std() > 0
            p = float(ttest_rel(ours[both], theirs[both]).pvalue) if tested else None
            mean = float(difference.mean()) if len(difference) else None
            rows.append({"model": model, "against": against, "difference": mean, "pairs": len(difference), "p": p})
        return rows

    def best(self, measure: str, on: str = "test") -> str | None:
        """Return the model with the best mean of a measure over all numbers of topics, or None if no fit has it.

        Raises:
            SettingError: an unknown measure or part.
        """
        means = {}
        for model in self.models:
            values = np.concatenate([self.values(measure, model, k, on) for k in self.n_topics])
            if np.isfinite(values).any():
                means[model] = float(np.nanmean(values)) * CATALOGUE[measure].better
        return max(means, key=lambda name: means[name]) if means else None

    def candidates(self, model: str | None = None) -> dict[str, list[int]]:
        """Find numbers of topics within one standard deviation of the best, for each measure, on validation documents.

        Numbers of active topics are compared as shares of all topics.

        Args:
            model: by default the only model, or the first.
        """
        model = model or self.models[0]
        found = {}
        for name in (name for name in self.measures if name != "seconds"):
            measure = CATALOGUE[name]
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

    def save(self, folder: str | Path) -> None:
        """Write comparison.csv and index.html into a directory, which is made if it does not exist."""
        from ..reports.comparison_page import csv_lines, page

        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        for name, text in {"comparison.csv": csv_lines(self), "index.html": page(self)}.items():
            with atomic_file(target / name) as temporary:
                temporary.write_text(text, encoding="utf-8")


def _check_part(on: str) -> None:
    if on not in HELD_OUT:
        raise SettingError(f'on should be "validation" or "test"; it is {on!r}')


def _number(count: int, one: str, more: str | None = None) -> str:
    return f"{count} {one if count == 1 else more or one + 's'}"
