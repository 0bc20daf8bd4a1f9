"""Topics over time and by group: a panel for each topic, one stream of all, or a table of shares in colours."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from ...errors import InputError
from ..palette import topic_colours
from ..wording import OTHER_TOPICS, OTHERS_LEFT_OUT, PANELS_DIFFER, Language, characters, joined
from .style import BLUE, GREY, LIGHT, LINE, PALE, as_title, darker, fonts_for, label_language, noted, shortened

_MOST_COLUMNS, _MOST_PANELS = 5, 40  # of a page
_PANEL_SIZE = (2.3, 1.55)  # inches
_BURST = "#fbe3c8"
_LIFT = ["#d68446", "white", "#1f63b4"]  # less, the same and more, as in the page
_MOST_LAYERS = 12  # of a stream
_LARGEST_REST = 0.6  # the share of all other topics from which their layer would hide the rest
# How dates are written; months have names in English, and numbers in Chinese.
_DATES: dict[Language, dict[str, Any]] = {
    "en": {},
    "zh": {
        "formats": ["%Y", "%Y-%m", "%m-%d", "%H:%M", "%H:%M", "%S.%f"],
        "zero_formats": ["", "%Y", "%Y-%m", "%m-%d", "%H:%M", "%H:%M"],
        "offset_formats": ["", "", "%Y", "%Y-%m-%d", "%Y-%m-%d", "%Y-%m-%d %H:%M"],
    },
}


def trend_lines(
    periods: npt.ArrayLike,
    shares: npt.ArrayLike,
    names: Sequence[str],
    *,
    low: npt.ArrayLike | None = None,
    high: npt.ArrayLike | None = None,
    sparse: npt.ArrayLike | None = None,
    bursts: Mapping[int, tuple[int, int]] | None = None,
    note: str = "",
    font: str | PathLike[str] | None = None,
    language: Language = "en",
) -> list[Figure]:
    """Draw the share of each topic by period: a small panel for each topic, the largest first, on pages of 40.

    Args:
        periods: (T,) the start of each period, as datetime64 or numbers, in ascending order.
        shares: (T, K) the share of each topic in the documents of each period; NaN where there are none.
        names: the K names of the topics.
        low, high: (T, K) the ends of intervals of the shares.
        sparse: (T,) True for periods of few documents: hollow points that neither join the line nor set the scale.
        bursts: topic -> the first and the last position of the periods of its burst, which are shaded.
        note: stands below the panels.
        font: a family name or the path of a font file; by default, a font that has the characters.
        language: "en" or "zh", of the labels and the note; English if no font has Chinese characters.

    Raises:
        InputError: there is no period, the sizes do not match, or `font` is not installed.
        SettingError: there is no such language.

    Examples:
        >>> import topicloom as tl
        >>> pages = tl.figures.trend_lines([2020, 2021, 2022], [[0.2, 0.8], [0.4, 0.6], [0.5, 0.5]], ["art", "sport"])
        >>> len(pages)
        1
    """
    times, values = _checked(periods, shares, names, low, high)
    few = np.zeros(len(times), bool) if sparse is None else np.asarray(sparse, bool)
    if few[np.isfinite(values).any(axis=1)].all():  # no period has many documents
        few = np.zeros(len(times), bool)
    joined_up = np.where(few[:, None], np.nan, values)
    band = None
    if low is not None and high is not None:
        band = [np.where(few[:, None], np.nan, np.asarray(each, np.float64)) for each in (low, high)]
    language = label_language(language, font)
    fonts = fonts_for([*names, note, *characters(language)], font)
    order = np.argsort(-np.nan_to_num(np.nanmean(values, axis=0)), kind="stable")
    pages = []
    n_pages = max(1, math.ceil(len(order) / _MOST_PANELS))
    for topics in np.array_split(order, n_pages):
        columns = min(_MOST_COLUMNS, len(topics))
        rows = math.ceil(len(topics) / columns)
        below = joined([note, PANELS_DIFFER(language) * (len(topics) > 1)], language)
        titles = {topic: as_title(names[topic], 28) for topic in topics.tolist()}
        more, height = LINE * max(title.count("\n") for title in titles.values()), _PANEL_SIZE[1]
        size = max(4.6, columns * _PANEL_SIZE[0]), rows * (height + more)
        figure = noted(*size, below, left=0.5, top=0.3 + more, fonts=fonts)
        figure.subplots_adjust(
            wspace=0.32,
            hspace=0.62 + more / (height / 1.62),
            bottom=figure.subplotpars.bottom + 0.25 / figure.get_figheight(),
        )
        all_axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes in all_axes[len(topics) :]:
            axes.set_visible(False)
        for axes, topic in zip(all_axes, topics.tolist(), strict=False):
            marker = "." if len(times) < 25 else ""
            if bursts is not None and topic in bursts:
                axes.axvspan(*_around(times, *bursts[topic]), color=_BURST, linewidth=0, zorder=0)
            # The line and the band pass over sparse periods, but not over periods without documents.
            at = np.flatnonzero(~few)
            if band is not None:
                axes.fill_between(times[at], band[0][at, topic], band[1][at, topic], color=PALE, linewidth=0)
            axes.plot(times[at], values[at, topic], color=BLUE, linewidth=1.2, marker=marker)
            axes.plot(
                times[few], values[few, topic], linestyle="", marker="o", markersize=2.6, color=BLUE,
                markerfacecolor="white", markeredgewidth=0.7, clip_on=True, zorder=3,
            )  # fmt: skip
            top = np.nanmax(np.concatenate([joined_up[:, topic], [] if band is None else band[1][:, topic], [1e-9]]))
            axes.set_title(titles[topic], loc="left", fontsize=8, fontfamily=fonts, color=GREY, parse_math=False)
            axes.set_ylim(0, 1.08 * top)
            _time_axis(axes, times, 4, language)
        pages.append(figure)
    return pages


def trend_stream(
    periods: npt.ArrayLike,
    shares: npt.ArrayLike,
    names: Sequence[str],
    *,
    note: str = "",
    font: str | PathLike[str] | None = None,
    language: Language = "en",
) -> Figure:
    """Draw the shares of the largest topics by period as layers of a stream; the others are one grey layer.

    Where the others have most of the shares, they are left out, and the note says so.

    Args:
        periods: (T,) the start of each period, as datetime64 or numbers, in ascending order.
        shares: (T, K) the share of each topic in the documents of each period; NaN where there are none.
        names: the K names of the topics.
        note: stands below the stream.
        font: a family name or the path of a font file; by default, a font that has the characters.
        language: "en" or "zh", of the labels and the note; English if no font has Chinese characters.

    Raises:
        InputError: there are less than two periods, the sizes do not match, or `font` is not installed.
        SettingError: there is no such language.

    Examples:
        >>> import topicloom as tl
        >>> figure = tl.figures.trend_stream([2020, 2021], [[0.2, 0.8], [0.4, 0.6]], ["art", "sport"])
        >>> len(figure.axes)
        1
    """
    language = label_language(language, font)
    times, values = _checked(periods, shares, names)
    if len(times) < 2:
        raise InputError("a stream needs documents of at least two periods; choose a shorter period")
    known = np.nan_to_num(values)
    largest = np.argsort(-known.mean(axis=0), kind="stable")[:_MOST_LAYERS]
    # Topics of the same part of the time are neighbours.
    order = sorted(
        largest.tolist(),
        key=lambda topic: float((known[:, topic] * np.arange(len(times))).sum() / max(known[:, topic].sum(), 1e-12)),
    )
    rest = np.maximum(known.sum(axis=1) - known[:, order].sum(axis=1), 0)
    has_rest = len(order) < len(names) and float(rest.sum()) < _LARGEST_REST * float(known.sum())
    labels = [shortened(names[topic], 32) for topic in order] + [OTHER_TOPICS(language)] * has_rest
    if len(order) < len(names) and not has_rest:
        part = rest.sum() / max(float(known.sum()), 1e-12)
        note = joined([note, OTHERS_LEFT_OUT(language, n=len(names) - len(order), part=part)], language)
    fonts = fonts_for([*labels, note, *characters(language)], font)
    layers = [*known[:, order].T, *([rest] if has_rest else [])]
    by_topic = topic_colours(len(names))
    colours = [*(by_topic[topic] for topic in order), LIGHT][: len(layers)]
    figure = noted(9.5, 4.6, note, left=0.55, top=0.15, fonts=fonts)
    figure.subplots_adjust(right=1 - 2.5 / 9.5, bottom=figure.subplotpars.bottom + 0.3 / figure.get_figheight())
    axes = figure.add_subplot()
    axes.stackplot(times, *layers, colors=colours, linewidth=0.4, edgecolor="white")
    axes.set_xlim(times[0], times[-1])
    axes.set_ylim(0, float(np.sum(layers, axis=0).max()) or 1.0)
    _time_axis(axes, times, 8, language)
    axes.margins(0)
    _name_layers(axes, layers, labels, colours, fonts)
    return figure


def group_table(
    groups: Sequence[str],
    shares: npt.ArrayLike,
    lifts: npt.ArrayLike,
    names: Sequence[str],
    *,
    differs: npt.ArrayLike | None = None,
    note: str = "",
    font: str | PathLike[str] | None = None,
    language: Language = "en",
) -> Figure:
    """Draw a table of topics and groups: a cell has the share, and its colour says how it differs from all documents.

    Args:
        groups: the G names of the groups.
        shares: (G, K) the share of each topic in the documents of each group; NaN where there are none.
        lifts: (G, K) the shares divided by those of all documents; 1 is white, and 4 and 1/4 are the ends of the scale.
        names: the K names of the topics.
        differs: (G, K) True for shares whose difference is significant, which are written in bold.
        note: stands below the table.
        font: a family name or the path of a font file; by default, a font that has the characters.
        language: "en" or "zh", of the note; English if no font has Chinese characters.

    Raises:
        InputError: there is no group, the sizes do not match, or `font` is not installed.
        SettingError: there is no such language.

    Examples:
        >>> import topicloom as tl
        >>> shares, lifts = [[0.2, 0.8], [0.4, 0.6]], [[0.7, 1.1], [1.3, 0.9]]
        >>> figure = tl.figures.group_table(["a", "b"], shares, lifts, ["art", "sport"])
        >>> len(figure.axes)
        1
    """
    language = label_language(language, font)
    _, values = _checked(groups, shares, names, lifts, differs)
    factors = np.log2(np.clip(np.nan_to_num(np.asarray(lifts, np.float64), nan=1), 0.25, 4))
    bold = np.zeros(values.shape, bool) if differs is None else np.asarray(differs, bool)
    fonts = fonts_for([*names, *groups, note, *characters(language)], font)
    heads = [as_title(name, 14) for name in groups]
    top = 0.6 + LINE * max(head.count("\n") for head in heads)
    figure = noted(2.6 + 0.85 * len(groups), 0.2 + top + 0.26 * len(names), note, left=2.4, top=top, fonts=fonts)
    axes = figure.add_subplot()
    axes.imshow(factors.T, cmap=LinearSegmentedColormap.from_list("lift", _LIFT), vmin=-2, vmax=2, aspect="auto")
    for group, topic in np.ndindex(values.shape):
        share = values[group, topic]
        on_dark = factors[group, topic] > 1.4
        axes.text(
            group, topic, "" if np.isnan(share) else f"{100 * share:.1f}%", ha="center", va="center", fontsize=7.5,
            color="white" if on_dark else "black", fontweight="bold" if bold[group, topic] else "normal",
        )  # fmt: skip
    axes.set_xticks(range(len(groups)), heads, fontfamily=fonts, fontsize=8)
    axes.set_yticks(range(len(names)), [shortened(name, 34) for name in names], fontfamily=fonts, fontsize=8)
    for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
        label.set_parse_math(False)
    axes.tick_params(length=0, colors=GREY, top=True, labeltop=True, bottom=False, labelbottom=False)
    axes.spines[:].set_visible(False)
    return figure


def _around(times: npt.NDArray[np.generic], first: int, last: int) -> tuple[Any, Any]:
    """Return the middles between the periods of a burst and their neighbours."""

    def middle(a: int, b: int) -> Any:
        a, b = max(a, 0), min(b, len(times) - 1)
        return times[a] + (times[b] - times[a]) / 2

    return middle(first - 1, first), middle(last, last + 1)


def _name_layers(
    axes: Axes,
    layers: Sequence[npt.NDArray[np.float64]],
    labels: Sequence[str],
    colours: Sequence[str],
    fonts: Sequence[str],
) -> None:
    """Write the name of each layer at the right, at its height or as near to it as there is room."""
    top = axes.get_ylim()[1]
    ends = np.cumsum([layer[-1] for layer in layers])
    wanted = ends - np.array([layer[-1] for layer in layers]) / 2
    gap = top * 0.052
    places = wanted.copy()
    for number in range(1, len(places)):
        places[number] = max(places[number], places[number - 1] + gap)
    excess = places[-1] - top
    if excess > 0:
        places[-1] = top
        for number in range(len(places) - 2, -1, -1):
            places[number] = min(places[number], places[number + 1] - gap)
    line = {"arrowstyle": "-", "linewidth": 0.5, "shrinkA": 2, "shrinkB": 0, "relpos": (0, 0.5)}
    for place, goal, label, colour in zip(places, wanted, labels, colours, strict=True):
        shade = darker(colour) if colour != LIGHT else GREY
        axes.annotate(
            label, (1, goal), (1.03, place), xycoords=axes.get_yaxis_transform(), textcoords=axes.get_yaxis_transform(),
            va="center", fontsize=8, color=shade, fontfamily=list(fonts), parse_math=False, annotation_clip=False,
            arrowprops=line | {"color": shade},
        )  # fmt: skip


def _checked(
    parts: npt.ArrayLike, shares: npt.ArrayLike, names: Sequence[str], *others: npt.ArrayLike | None
) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.float64]]:
    """Return the periods or groups, and the shares in them, whose shape the others have too."""
    places, values = np.asarray(parts), np.asarray(shares, np.float64)
    if not len(places):
        raise InputError("no document has a time or a group, so there are no shares to draw")
    for each in (values, *others):
        if each is not None and np.shape(each) != (len(places), len(names)):
            raise InputError(
                f"the values of {len(names)} topics in {len(places)} periods or groups have the shape "
                f"{np.shape(each)}; make it {(len(places), len(names))}"
            )
    return places, values


def _time_axis(axes: Axes, times: npt.NDArray[np.generic], n_ticks: int, language: Language) -> None:
    axes.tick_params(labelsize=7, colors=GREY)
    axes.yaxis.set_major_locator(MaxNLocator(3 if n_ticks < 5 else 5))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.3g}%"))
    if np.issubdtype(times.dtype, np.datetime64):
        locator = AutoDateLocator(minticks=2, maxticks=n_ticks)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, show_offset=n_ticks > 5, **_DATES[language]))
    else:
        is_whole = bool(np.issubdtype(times.dtype, np.integer))
        if len(times) == 1 or (is_whole and len(times) <= n_ticks + 1 and len(np.unique(np.diff(times))) == 1):
            axes.set_xticks(times)
        else:
            axes.xaxis.set_major_locator(MaxNLocator(n_ticks, integer=is_whole, steps=[1, 2, 5, 10]))
    axes.spines[["top", "right"]].set_visible(False)
