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
from ..reports.wording import Language, joined
from ..reports.wording import comparison as words
from ..reports.wording.measures import title_of

MEASURES = ("perplexity_completion", "document_npmi")


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
