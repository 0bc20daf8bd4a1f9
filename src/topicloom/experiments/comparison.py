"""What came of a comparison: every fit, and tables, tests and choices read off them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import SettingError
from ..files import atomic_file
from .protocol import HELD_OUT

Array = npt.NDArray[Any]
Row = dict[str, Any]

# Which way is better; figures that are no merit, such as seconds, have no way.
BETTER = {
    "document_npmi": 1, "c_v": 1, "c_npmi": 1, "topic_diversity": 1, "topic_uniqueness": 1, "redundancy": -1,
    "perplexity": -1, "purity": 1, "nmi": 1, "ari": 1, "accuracy": 1, "active_topics": 1, "seconds": -1,
    "topic_distance": -1,
}  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """What came of a comparison.

    Attributes:
        rows: one a fit, in order: model, n_topics, seed, words, seconds, and the figures of each held-out part.
        models, n_topics, seeds: what was compared.
        documents: how many there are in each part.
    """

    rows: list[Row]
    models: list[str]
    n_topics: list[int]
    seeds: int
    documents: dict[str, int]

    @property
    def failed(self) -> list[Row]:
        """The fits that ended in an error."""
        return [row for row in self.rows if "error" in row]

    @property
    def measures(self) -> list[str]:
        """The figures that some fit has, in the order of BETTER."""
        have = {name for row in self.rows for name in row.get("figures", {}).get("test", {})}
        return [name for name in BETTER if name in have]

    def values(self, measure: str, model: str, n_topics: int, on: str = "test") -> Array:
        """(seeds,) a figure of the fits of one model and number of topics; NaN where a fit failed or lacks it."""
        _known_part(on)
        found = {
            row["seed"]: row["figures"][on].get(measure)
            for row in self.rows
            if (row["model"], row["n_topics"]) == (model, n_topics) and "error" not in row
        }
        return np.array([np.nan if found.get(seed) is None else found[seed] for seed in range(self.seeds)], float)

    def table(self, on: str = "test") -> list[Row]:
        """A row for each model and number of topics: mean and standard deviation over seeds of every measure.

        Args:
            on: "validation" to choose by, "test" to report.
        """
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
        """Each other model against one: the mean difference over pairs of fits with the same seed and number of topics.

        Returns:
            a row a model: difference (its own less that of `against`), pairs, and p, two-sided, of the paired t-test;
            None where there are fewer than two pairs or they do not differ at all. Few pairs show only large
            differences, and of many tests some are below .05 by chance.
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
        """The model with the best mean of a measure over all numbers of topics; None where none has it."""
        means = {}
        for model in self.models:
            values = np.concatenate([self.values(measure, model, k, on) for k in self.n_topics])
            if np.isfinite(values).any():
                means[model] = float(np.nanmean(values)) * BETTER[measure]
        return max(means, key=lambda name: means[name]) if means else None

    def candidates(self, model: str | None = None) -> dict[str, list[int]]:
        """For each measure, the numbers of topics within one standard deviation of its best, on validation documents.

        Args:
            model: by default the only one, or the first.
        """
        model = model or self.models[0]
        found = {}
        for name in (name for name in self.measures if name != "seconds"):
            values = {k: self.values(name, model, k, "validation") * BETTER[name] for k in self.n_topics}
            means = {k: float(np.nanmean(each)) for k, each in values.items() if np.isfinite(each).any()}
            if not means:
                continue
            top = max(means, key=lambda k: means[k])
            slack = float(np.nanstd(values[top], ddof=1)) if np.isfinite(values[top]).sum() > 1 else 0.0
            found[name] = [k for k in means if means[k] >= means[top] - slack]
        return found

    def save(self, folder: Path) -> None:
        """Writes comparison.csv and index.html."""
        from ..reports.comparison_page import csv_lines, page

        for name, text in {"comparison.csv": csv_lines(self), "index.html": page(self)}.items():
            with atomic_file(folder / name) as temporary:
                temporary.write_text(text, encoding="utf-8")


def _known_part(on: str) -> None:
    if on not in HELD_OUT:
        raise SettingError(f'on should be "validation" or "test"; it is {on!r}')
