"""A recommendation of the number of topics, with its reason in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..display import html_table
from ..errors import InputError
from ..metrics.catalogue import CATALOGUE

MEASURES = ("perplexity_completion", "document_npmi")
_ONE_FIT = " The standard error counts as 0, because the best number has a single fit; try several seeds."


@dataclass(frozen=True)
class Recommendation:
    """A number of topics, and why it is recommended.

    Attributes:
        n_topics: the recommended number of topics.
        reason: one or two sentences.
    """

    n_topics: int
    reason: str

    def __str__(self) -> str:
        return self.reason

    def _repr_html_(self) -> str:
        return html_table([], [], f"{self.n_topics} topics", self.reason)


def recommend(values: Mapping[str, Mapping[int, npt.NDArray[Any]]]) -> Recommendation:
    """Recommend the smallest number of topics that is as good as the best by every measure.

    A number is as good as the best if its mean over seeds is within one standard error of the best mean; the standard
    error is that of the best number over its seeds, and 0 with a single seed. This is the one-standard-error rule of
    Breiman et al. (1984). If no number is as good as the best by every measure, the one that loses least is taken: for
    each measure, the loss of a number is its distance from the best mean, as a share of the distance from the best to
    the worst mean, and the largest of these shares counts. A single number is returned, and the reason says that there
    was nothing to choose from.

    Args:
        values: for each measure, by number of topics, the values of all seeds; NaN where there is none.

    Raises:
        InputError: no measure has a value.
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
        return Recommendation(complete[0], _single(complete[0], scored, tried))
    best = {name: max(means, key=lambda k: means[k]) for name, means in scored.items()}
    as_good = [k for k in complete if all(k in sizes for sizes in good.values())]
    if as_good:
        chosen = as_good[0]
        said = _agreement(chosen, scored, best)
    else:
        loss = {k: max(_loss(means, k) for means in scored.values()) for k in complete}
        chosen = min(complete, key=lambda k: loss[k])
        said = _compromise(chosen, scored, best)
    return Recommendation(chosen, said + (_ONE_FIT if of_one_fit else "") + _edge(chosen, tried))


def _loss(means: Mapping[int, float], k: int) -> float:
    best, worst = max(means.values()), min(means.values())
    return 0.0 if best == worst else (best - means[k]) / (best - worst)


def _agreement(chosen: int, scored: Mapping[str, Mapping[int, float]], best: Mapping[str, int]) -> str:
    parts = []
    for name, means in scored.items():
        is_best = means[chosen] == means[best[name]]
        more = "the best" if is_best else f"the best is {_shown(name, means[best[name]])} with {best[name]}"
        parts.append(f"{_title(name)} {_shown(name, means[chosen])} ({more})")
    return (
        f"{chosen} topics are recommended: the smallest number that is within one standard error of the best by "
        f"{' and '.join(_title(name) for name in scored)}. It has {' and '.join(parts)}."
    )


def _compromise(chosen: int, scored: Mapping[str, Mapping[int, float]], best: Mapping[str, int]) -> str:
    tops = (f"{_title(name)} is best with {k} topics ({_shown(name, scored[name][k])})" for name, k in best.items())
    return (
        f"{chosen} topics are recommended as a compromise, because the measures disagree: {' and '.join(tops)}. "
        f"{chosen} topics balance them best, with {_measured(chosen, scored)}."
    )


def _single(k: int, scored: Mapping[str, Mapping[int, float]], tried: list[int]) -> str:
    """Say that there is nothing to choose from, because only one number was tried or could be measured."""
    why, what = "Only one number of topics was tried", "try several numbers"
    if len(tried) > 1:
        why, what = f"Only the fits with {k} topics could be measured", "see why the others failed"
    return f"{why}, so there is nothing to choose from; {what}. {k} topics have {_measured(k, scored)}."


def _measured(k: int, scored: Mapping[str, Mapping[int, float]]) -> str:
    return " and ".join(f"{_title(name)} {_shown(name, means[k])}" for name, means in scored.items())


def _edge(chosen: int, tried: list[int]) -> str:
    """Return advice where the recommended number is the largest or smallest of those that were tried."""
    if chosen not in (tried[0], tried[-1]):
        return ""
    end, more = ("largest", "larger") if chosen == tried[-1] else ("smallest", "smaller")
    return f" It is the {end} number that was tried, so try {more} ones too."


def _title(name: str) -> str:
    return CATALOGUE[name].column or CATALOGUE[name].title


def _shown(name: str, score: float) -> str:
    return f"{score * CATALOGUE[name].better:.{CATALOGUE[name].digits}f}"
