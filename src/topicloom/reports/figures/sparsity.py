"""How many topics documents have: their shares by rank, the topics above thresholds, and the entropy."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

from ...errors import InputError
from ..fonts import fonts_for, label_language
from ..wording import Language
from ..wording import figures as words
from .style import BLACK, BLUE, GREY, PALE, letter, noted

THRESHOLDS = (0.01, 0.05, 0.1, 0.2)
_MOST_RANKS = 10
_COUNTS = ("0", "1", "2", "3", "4", "5+")
_SHADES = ("#e6e6e6", "#1d3f60", "#2f5d8a", "#6d97c0", "#a9c5e0", "#d9e6f2")


def sparsity(
    theta: npt.ArrayLike,
    thresholds: Sequence[float] = THRESHOLDS,
    *,
    font: str | PathLike[str] | None = None,
    language: Language = "en",
) -> Figure:
    """Draw how the topic shares of documents are distributed.

    Args:
        theta: (n, K), rows sum to 1; without documents that have no known word.
        thresholds: the shares from which topics are counted.
        font, language: as for `topic_pages`.

    Raises:
        InputError: there is no document, or `font` is not installed.
    """
    shares = np.asarray(theta, np.float64)
    if shares.ndim != 2 or not shares.size:
        raise InputError("no document has a known word, so there are no topic shares to draw")
    language = label_language(language, font)
    figure = noted(10.5, 3.3, words.SPARSITY(language), left=0.66 if language == "zh" else 0.6, top=0.35)
    figure.subplots_adjust(wspace=0.3, bottom=figure.subplotpars.bottom + 0.36 / figure.get_figheight())
    ranks, counts, entropy = figure.subplots(1, 3)
    _draw_ranks(ranks, -np.sort(-shares, axis=1), language)
    _draw_counts(counts, shares, thresholds, language)
    _draw_entropy(entropy, effective_topics(shares), shares.shape[1], language)
    for axes in (ranks, counts, entropy):
        axes.tick_params(labelsize=8)
        axes.xaxis.label.set(fontsize=8, color=GREY)
        axes.yaxis.label.set(fontsize=8, color=GREY)
        axes.spines[["top", "right"]].set_visible(False)
    letter(figure, fonts_for(words.characters(language), font))
    return figure


def effective_topics(theta: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return exp(-sum_k theta_k log theta_k) of each document, (n, K) -> (n,), from 1 to K."""
    logs = np.log(np.where(theta > 0, theta, 1.0))
    number: npt.NDArray[np.float64] = np.exp(-(theta * logs).sum(axis=1))
    return number


def _draw_ranks(axes: Axes, ranked: npt.NDArray[np.float64], language: Language) -> None:
    n_ranks = min(_MOST_RANKS, ranked.shape[1])
    low, median, high = np.quantile(ranked[:, :n_ranks], [0.1, 0.5, 0.9], axis=0)
    places = np.arange(1, n_ranks + 1)
    axes.fill_between(places, low, high, color=PALE)
    axes.plot(places, median, color=BLUE, marker="o", markersize=3)
    axes.set_ylim(0, 1)
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.set_title(words.RANKED(language), loc="left", fontsize=9)
    axes.set_xlabel(words.RANK(language))
    axes.set_ylabel(words.SHARE(language))


def _draw_counts(axes: Axes, shares: npt.NDArray[np.float64], thresholds: Sequence[float], language: Language) -> None:
    for place, threshold in enumerate(thresholds):
        found = np.minimum((shares >= threshold).sum(axis=1), len(_COUNTS) - 1)
        parts = np.bincount(found, minlength=len(_COUNTS)) / len(shares)
        start = 0.0
        for count, part in enumerate(parts.tolist()):
            axes.barh(place, part, left=start, color=_SHADES[count], height=0.72, edgecolor="white", linewidth=0.5)
            if part > 0.07:
                colour = "white" if count in (1, 2) else BLACK
                axes.text(start + part / 2, place, _COUNTS[count], ha="center", va="center", color=colour, fontsize=8)
            start += part
    axes.set_yticks(range(len(thresholds)), [f"{100 * threshold:g}%" for threshold in thresholds])
    axes.set_ylim(len(thresholds) - 0.5, -0.5)
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.set_title(words.AT_LEAST(language), loc="left", fontsize=9)
    axes.set_xlabel(words.DOCUMENTS(language))


def _draw_entropy(axes: Axes, numbers: npt.NDArray[np.float64], n_topics: int, language: Language) -> None:
    most = max(1.5, min(float(n_topics), float(np.quantile(numbers, 0.995)) + 0.5))
    axes.hist(
        np.minimum(numbers, most),
        bins=np.linspace(1, most, 31).tolist(),
        color=PALE,
        weights=np.full(len(numbers), 1 / len(numbers)),
    )
    median = float(np.median(numbers))
    axes.axvline(median, color=BLUE, linewidth=1.2)
    right = median > (1 + most) / 2
    axes.annotate(
        words.MEDIAN(language, median=median), (median, 0.97), (-4 if right else 4, 0),
        xycoords=axes.get_xaxis_transform(), textcoords="offset points", ha="right" if right else "left", va="top",
        color=BLUE, fontsize=8,
    )  # fmt: skip
    axes.set_xlim(1, most)
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.3g}%"))
    axes.set_title(words.MIXTURE(language), loc="left", fontsize=9)
    axes.set_xlabel(words.TOPICS_AT_MOST(language, n=n_topics))
    axes.set_ylabel(words.DOCUMENTS(language))
