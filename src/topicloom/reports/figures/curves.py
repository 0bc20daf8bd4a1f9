"""Curves of training by epoch (loss, collapse, quality), and measures by model and number of topics."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator

from ...metrics import CATALOGUE, Measure
from .. import wording as words
from ..wording import (
    NUMBER_OF_TOPICS,
    Language,
    axis_of,
    changes_of_stage,
    characters,
    joined,
    meaning_of,
    stage_name,
    term_explained,
    term_name,
    title_of,
)
from .style import BLUE, GREY, PALE, fonts_for, label_language, set_fonts, wrapped

Row = dict[str, Any]

_NOT_LOSSES = {
    "epoch", "stage", "learning_rate", "divergence_weight", "separation_weight", "concentration", "mmd",
    "topics_per_document", "topics_per_document_deviation", "n_topics", *CATALOGUE,
}  # fmt: skip
_SHARING_A_PANEL = ("loss", "reconstruction", "validation_loss")  # losses of the same scale share a panel
_UNWEIGHTED = "unweighted"  # the sum of the reconstruction and the divergence
_UP_TO_ONE = {"coherence, C_v", "diversity"}  # axes that always reach 1, by their English labels
_LEAST_DIVERGENCE = 0.1  # nats, which the axis of the divergence always reaches
_REPEATED_TERMS = {"critic_gap"}  # the only term of critic_loss, and therefore equal to it

_INACTIVE = 0.01  # nats; the threshold of the measure active_units_by_divergence
_HIGHEST_BAND = 1e4  # nats; higher values are cut from the band of a panel, but not from its line
_MOST_TICKS = 8  # powers of ten beside a logarithmic axis
_WIDTH = 7.5  # inches
_CHARACTERS, _NOTE_CHARACTERS = 110, 125  # in a line above a panel, and in a line of the note below all panels
# Characters in a line of an axis label; a Chinese one counts as two.
_LABEL_CHARACTERS: dict[Language, int] = {"en": 24, "zh": 28}
_ROOM_FOR_EVENTS, _ROOM_FOR_LEGEND = 1.0, 0.3  # below and above the lines, as shares of their heights
_ROOM_FOR_STAGES = 0.5  # below the names of events, likewise, in addition
_STAGE_NAME_WIDTH, _STAGE_NAME_HEIGHT = 0.13, 0.1  # as shares of the width and the height of a panel
_EVENT_NAME_WIDTH = 0.02  # of each line of an event's name, likewise
_PANEL, _LINE, _FRAME = 1.7, 0.16, 0.6  # inches: height of a panel, of a line of text, and of what surrounds them
_EDGE, _GAP = 0.042, 0.085  # inches: around the figure, and above the note
_LEFT, _BELOW_PANEL = 0.75, 0.13  # inches: beside panels at first, and below one without numbers


class _Panel(NamedTuple):
    """A panel: the sentences above it, the label of its axis, and the function that draws its contents."""

    titles: list[str]
    label: str
    draw: Callable[[Axes], None]


def loss_curve(history: Sequence[Row], *, font: str | PathLike[str] | None = None, language: Language = "en") -> Figure:
    """Draw the loss and its terms by epoch. Terms differ in scale, so each has a panel of its own.

    If the divergence has another weight than 1, or the loss changes during training, the first panel has the sum of the
    reconstruction and the divergence with their full weights, which is minus the evidence lower bound in the
    variational models. Dotted lines are where spare topics are removed, and where the weight of the divergence stops
    rising.

    A term that is 0 in all epochs is left out, and so is a term with one or two values in a longer training, which
    show no course. If training has two stages, a dashed line separates them.

    Args:
        history: one row per epoch, with "epoch", "loss" and any other terms; a term may be missing in some rows.
        font: a family name or the path of a font file; by default, a font that has the characters.
        language: "en" or "zh", of the labels and the note; English if no font has Chinese characters.

    Raises:
        InputError: `font` is not installed.
        SettingError: there is no such language.

    Examples:
        >>> import topicloom as tl
        >>> figure = tl.figures.loss_curve([{"epoch": 1, "loss": 7.2}, {"epoch": 2, "loss": 6.9}])
        >>> len(figure.axes)
        1
    """
    language = label_language(language, font)
    events = _events(history, language)
    weights = {row.get("divergence_weight", 1.0) for row in history}
    if events or (weights != {1.0} and any(row.get("divergence") for row in history)):
        history = [_with_unweighted(row) for row in history]
    found = dict.fromkeys(name for row in history for name in row if name not in _NOT_LOSSES | _REPEATED_TERMS)
    names = [name for name in found if name == "loss" or any(row.get(name) for row in history)]
    first = [name for name in _SHARING_A_PANEL if name in names]
    comparable = [_UNWEIGHTED, "reconstruction"] if _UNWEIGHTED in names else []
    first = [name for name in first if name not in comparable]
    names = [name for name in names if name not in comparable]
    others = [name for name in names if name not in first and (len(history) <= 2 or _n_values(history, name) > 2)]

    def panel(shown: list[str]) -> _Panel:
        def draw(axes: Axes) -> None:
            for name in shown:
                _line(axes, history, name, language)
            axes.legend(frameon=False, fontsize=9)

        return _Panel([term_explained(name, language) for name in shown], words.PER_DOCUMENT(language), draw)

    groups = [comparable] * bool(comparable) + [first] * bool(first) + [[name] for name in others]
    counts = any("encoder_divergence" in row for row in history)
    weight = f"{max(weights, default=1.0):.3g}"
    is_changing = events or len(weights) > 1
    weighed = words.CHANGING_LOSS(language) if is_changing else words.WEIGHTED_LOSS(language, weight=weight)
    says = [weighed * bool(comparable), words.EVENTS(language) * bool(events), words.COUNTING(language) * counts]
    note = joined([words.LOSS(language), *says], language)
    return _by_epoch(history, [panel(shown) for shown in groups], note, language, font, events)


def _with_unweighted(row: Row) -> Row:
    """Return a row with the sum of the reconstruction and the divergence, if it has both."""
    parts = [row.get("reconstruction"), row.get("divergence")]
    return row if None in parts else {**row, _UNWEIGHTED: sum(parts)}


def _events(history: Sequence[Row], language: Language) -> dict[float, str]:
    """Return what happens after an epoch, by its place on the axis: topics are removed, or a weight stops rising."""
    events: dict[float, list[str]] = {}
    weights = [row.get("divergence_weight", 0.0) for row in history]
    if weights and weights[0] < max(weights):
        place = history[weights.index(max(weights))]["epoch"] - 0.5
        if place not in _boundaries(history):  # a new stage may have another weight without a rise
            events.setdefault(place, []).append(words.FULL_WEIGHT(language))
    for before, row in pairwise(history):
        if row.get("n_topics", 0) < before.get("n_topics", 0):
            events.setdefault(row["epoch"] + 0.5, []).append(words.TOPICS_LEFT(language, n=row["n_topics"]))
    return {place: "\n".join(labels) for place, labels in sorted(events.items())}


def collapse_curve(
    history: Sequence[Row], n_topics: int, *, font: str | PathLike[str] | None = None, language: Language = "en"
) -> Figure:
    """Draw the measures of collapse by epoch, a panel for each.

    The divergence is a line for the median of the latent dimensions, in a band from the smallest to the largest. A
    dotted line is at the highest number of topics or dimensions possible after training, or at the divergence below
    which a dimension counts as inactive. A note says so if the model had more topics than `n_topics` at first.

    Args:
        history: one row per epoch. A line joins those that have the measure, which need not be all.
        n_topics: the number of topics that was asked for.
        font: a family name or the path of a font file; by default, a font that has the characters.
        language: "en" or "zh", of the labels and the note; English if no font has Chinese characters.

    Raises:
        InputError: `font` is not installed.
        SettingError: there is no such language.

    Examples:
        >>> import topicloom as tl
        >>> rows = [{"epoch": 1, "active_topics": 5}, {"epoch": 2, "active_topics": 4}]
        >>> len(tl.figures.collapse_curve(rows, 5).axes)
        1
    """
    language = label_language(language, font)
    watched = [measure for measure in CATALOGUE.values() if measure.group == "collapse" and "watch" in measure.uses]
    seen = [row for row in history if any(measure.name in row for measure in watched)]
    n_units = len(seen[-1].get("kl_per_dimension", ())) if seen else 0
    limits = {
        "topics": (n_topics, words.REQUESTED(language, n=n_topics)),
        "latent dimensions": (n_units, words.AT_THE_END(language, n=n_units)),
        "kl_per_dimension": (_INACTIVE, words.INACTIVE(language)),
    }

    def panel(measure: Measure) -> _Panel:
        return _Panel(
            [meaning_of(measure, language)],
            title_of(measure, language),
            lambda axes: _draw_sign(axes, seen, measure, limits.get(measure.count_of or measure.name)),
        )

    panels = [panel(measure) for measure in watched if any(measure.name in row for row in seen)]
    note = joined([words.COLLAPSE(language), _spare_note(seen, n_topics, language)], language)
    return _by_epoch(history, panels, note, language, font)


def quality_curve(
    history: Sequence[Row], *, font: str | PathLike[str] | None = None, language: Language = "en"
) -> Figure:
    """Draw coherence and diversity of the topics by epoch. Measures of the same scale share a panel.

    Args:
        history: one row per epoch; a measure may be missing in some rows, such as those between two measurements.
        font: a family name or the path of a font file; by default, a font that has the characters.
        language: "en" or "zh", of the labels and the note; English if no font has Chinese characters.

    Raises:
        InputError: `font` is not installed.
        SettingError: there is no such language.

    Examples:
        >>> import topicloom as tl
        >>> rows = [{"epoch": 1, "c_v": 0.4, "topic_diversity": 0.8}, {"epoch": 2, "c_v": 0.5, "topic_diversity": 0.9}]
        >>> len(tl.figures.quality_curve(rows).axes)
        2
    """
    language = label_language(language, font)
    groups: dict[str, list[Measure]] = {}
    for measure in CATALOGUE.values():
        if measure.group in words.QUALITY and any(measure.name in row for row in history):
            groups.setdefault(axis_of(measure, language), []).append(measure)

    def panel(label: str, measures: list[Measure]) -> _Panel:
        def draw(axes: Axes) -> None:
            for measure in measures:
                _line(axes, history, measure.name, language)
            if axis_of(measures[0], "en") in _UP_TO_ONE:
                axes.set_ylim(-0.04, 1.08)
            axes.legend(frameon=False, fontsize=9)

        better = {measure.better for measure in measures}
        shows = words.QUALITY.get(measures[0].name, words.QUALITY[measures[0].group])
        return _Panel([shows(language) if better == {1} else words.LOWER_IS_BETTER(language, label=label)], label, draw)

    panels = [panel(label, measures) for label, measures in groups.items()]
    misleading = [says(language) for name, says in words.MISLEADING.items() if any(name in row for row in history)]
    return _by_epoch(history, panels, joined([words.SCALE(language), *misleading], language), language, font)


def _draw_sign(axes: Axes, rows: Sequence[Row], measure: Measure, limit: tuple[float, str] | None) -> None:
    """Draw a measure of collapse: a line, in a band if it has a value for each latent dimension.

    Args:
        limit: the value at which to draw a dotted line, with its label; None for no such line.
    """
    rows = [row for row in rows if measure.name in row]
    found = [row[measure.name] for row in rows]
    values = [sorted(value) if isinstance(value, list) else [value] for value in found]
    axes.plot(_epochs(rows), [row[len(row) // 2] for row in values], marker=_marker(rows), color=BLUE)
    axes.fill_between(_epochs(rows), [row[0] for row in values], [row[-1] for row in values], color=PALE)
    end = 0.0 if measure.count_of in ("topics", "latent dimensions") else 1.0
    if measure.name == "kl_per_dimension":
        end = _LEAST_DIVERGENCE
    if limit is not None:
        end = max(end, limit[0])
        axes.axhline(limit[0], color=GREY, linestyle=":", linewidth=1)
        axes.annotate(
            limit[1], (1, limit[0]), (-4, 2), xycoords=axes.get_yaxis_transform(), textcoords="offset points",
            ha="right", color=GREY, fontsize=8,
        )  # fmt: skip
    top = max(end, *(row[-1] for row in values))
    if measure.name == "kl_per_dimension":  # a single dimension may have hundreds of times the others' for a while
        # A document that is far too long gives values up to 1e38, beside which nothing else would be seen.
        top = min(top, max(_HIGHEST_BAND, *(row[len(row) // 2] for row in values)))
        highest = math.ceil(math.log10(top))
        every = 1 + (highest + 2) // _MOST_TICKS
        ticks = [0.0, *(10.0**power for power in range(-2, 1 + highest, every))]
        axes.set_yscale("symlog", linthresh=_INACTIVE)
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_ylim(-_INACTIVE, 2 * top)
        return
    axes.set_ylim(-0.04 * top, 1.15 * top)  # a line at the very edge would not be visible
    axes.yaxis.set_major_locator(MaxNLocator("auto", integer=measure.is_count))


def _spare_note(rows: Sequence[Row], n_topics: int, language: Language) -> str:
    """Say that training began with more topics than were asked for, if it did."""
    most = max((row.get("active_topics", 0) for row in rows), default=0)
    units = [len(row["kl_per_dimension"]) for row in rows if "kl_per_dimension" in row]
    at_first = units[0] if units and units[0] > units[-1] else most
    if at_first <= n_topics:
        return ""
    return words.SPARE_TOPICS(language, at_first=at_first, n_topics=n_topics)


def _by_epoch(
    history: Sequence[Row],
    panels: Sequence[_Panel],
    note: str,
    language: Language,
    font: str | PathLike[str] | None,
    events: Mapping[float, str] | None = None,
) -> Figure:
    """Draw panels one below the other, over the epochs of `history`, with a note below them.

    Args:
        events: what happened at a place on the axis of epochs. The first panel names it.
    """
    titles = ["\n".join(wrapped(title, _CHARACTERS) for title in panel.titles) for panel in panels]
    below = wrapped(note, _NOTE_CHARACTERS)
    n_lines = sum(text.count("\n") + 1 for text in [*titles, below] if text)
    rows = max(1, len(panels))
    figure = Figure(figsize=(_WIDTH, _FRAME + _PANEL * rows + _LINE * n_lines))
    all_axes = list(figure.subplots(rows, 1, sharex=True, squeeze=False)[:, 0])
    for axes, panel in zip(all_axes, panels, strict=False):
        panel.draw(axes)
        axes.grid(alpha=0.3)
        axes.set_ylabel(wrapped(panel.label, _LABEL_CHARACTERS[language]), color=GREY, fontsize=8)
    epochs = _epochs(history)
    all_axes[-1].set_xlabel(words.EPOCH(language))
    all_axes[-1].xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    all_axes[-1].set_xlim(min(epochs, default=1) - 0.5, max(epochs, default=1) + 0.5)
    _mark_stages(all_axes, history, language)
    _mark_events(all_axes, events or {}, _boundaries(history))
    foot = figure.supxlabel(below, x=0.01, y=_EDGE / figure.get_figheight(), ha="left", fontsize=8, color=GREY)
    heads = [
        axes.set_title(title, loc="left", fontsize=8) for axes, title in zip(all_axes, titles or [""], strict=True)
    ]
    set_fonts(figure, fonts_for(characters(language), font))
    _place(figure, all_axes, heads, foot)
    return figure


def _place(figure: Figure, all_axes: Sequence[Axes], heads: Sequence[Text], foot: Text) -> None:
    """Give panels the same height, below their titles, beside the longest number and above the note.

    They come where matplotlib's constrained layout would put them, which measures every text several times.
    """
    dpi = figure.dpi
    width, height = figure.get_size_inches()
    note = foot.get_window_extent().height / dpi + _GAP if foot.get_text() else 0.0
    last = all_axes[-1].bbox
    bottom = _EDGE + note + (last.y0 - (all_axes[-1].xaxis.get_tightbbox() or last).y0) / dpi
    above = [(head.get_window_extent().y1 - axes.bbox.y1) / dpi for axes, head in zip(all_axes, heads, strict=True)]

    def place(left: float, right: float = 0.0) -> None:
        free = height - bottom - sum(above) - _BELOW_PANEL * (len(all_axes) - 1) - _EDGE
        panel, low = free / len(all_axes), bottom
        for axes, room in zip(reversed(all_axes), reversed(above), strict=True):
            axes.set_position((left / width, low / height, (width - _EDGE - right - left) / width, panel / height))
            low += panel + room + _BELOW_PANEL

    place(_LEFT)  # because taller panels can have more numbers beside them
    beside = [axes.bbox.x0 - (axes.yaxis.get_tightbbox() or axes.bbox).x0 for axes in all_axes]
    beyond = max(0.0, (all_axes[-1].xaxis.get_tightbbox() or last).x1 - all_axes[-1].bbox.x1)  # half of the last number
    for number, axes in enumerate(all_axes):
        power = axes.yaxis.get_offset_text()  # such as 1e6, which the numbers are multiplied by
        above[number] += power.get_window_extent().height / dpi if power.get_text() else 0.0
    place(_EDGE + max(beside) / dpi, beyond / dpi)


def _mark_stages(all_axes: Sequence[Axes], history: Sequence[Row], language: Language) -> None:
    """Draw a dashed line where one stage of training ends and the next one starts; name both in the first panel."""
    names = [
        (stage_name(before, language), stage_name(after, language)) for before, after, _ in changes_of_stage(history)
    ]
    boundaries = [(*pair, place) for pair, place in zip(names, _boundaries(history), strict=True)]
    if boundaries and all_axes[0].get_yscale() == "linear":
        low, high = all_axes[0].get_ylim()
        all_axes[0].set_ylim(low - 0.12 * (high - low), high)  # room for the names
    for before, after, place in boundaries:
        for axes in all_axes:
            axes.axvline(place, color=GREY, linestyle="--", linewidth=1)
        left, right = all_axes[0].get_xlim()
        names = [(f"{before} ", "right"), (f" {after}", "left")]
        if place - left < _STAGE_NAME_WIDTH * (right - left):
            names = [(" " + words.STAGE_AFTER(language, after=after, before=before), "left")]
        for name, side in names:
            all_axes[0].text(
                place, 0.03, name, ha=side, transform=all_axes[0].get_xaxis_transform(), color=GREY, fontsize=8,
                bbox={"facecolor": "white", "linewidth": 0, "pad": 0},  # lines of events could cross it
            )  # fmt: skip


def _boundaries(history: Sequence[Row]) -> list[float]:
    """Return the places on the axis of epochs where one stage of training ends and the next one starts."""
    epochs = _epochs(history)
    return [(epochs[number - 1] + epochs[number]) / 2 for _, _, number in changes_of_stage(history)]


def _mark_events(all_axes: Sequence[Axes], events: Mapping[float, str], boundaries: Sequence[float]) -> None:
    """Draw a dotted line at each event, and name it at the foot of the first panel.

    A name is left of its line, or right of it if there is no room on the left. It is left out if neither has room. The
    boundaries of stages have names of their own.
    """
    left, right = all_axes[0].get_xlim()
    taken: list[tuple[float, float]] = []

    def is_free(start: float, end: float) -> bool:
        crosses = any(start <= each <= end for each in boundaries) or any(start < each < end for each in events)
        return (
            left <= start and end <= right and not crosses and all(end <= low or high <= start for low, high in taken)
        )

    named = []
    for place, label in events.items():
        for axes in all_axes:
            axes.axvline(place, color=GREY, linestyle=":", linewidth=1)
        width = _EVENT_NAME_WIDTH * (right - left) * (label.count("\n") + 1)
        sides = {"right": (place - width, place), "left": (place, place + width)}
        side = next((side for side, span in sides.items() if is_free(*span)), None)
        if side is not None:
            taken.append(sides[side])
            named.append((place, label, side))
    if named:
        low, high = all_axes[0].get_ylim()
        room = _ROOM_FOR_EVENTS + _ROOM_FOR_STAGES * bool(boundaries)
        all_axes[0].set_ylim(low - room * (high - low), high + _ROOM_FOR_LEGEND * (high - low))
        all_axes[0].legend(frameon=False, fontsize=9, loc="upper right", ncols=2)  # it could lie on the names
    for place, label, side in named:
        all_axes[0].text(
            place, 0.03 + _STAGE_NAME_HEIGHT * bool(boundaries), label, transform=all_axes[0].get_xaxis_transform(),
            rotation=90, ha=side, va="bottom", color=GREY, fontsize=7,
        )  # fmt: skip


def _line(axes: Axes, history: Sequence[Row], name: str, language: Language) -> None:
    """Draw a line through the epochs that have a value."""
    rows = [row for row in history if row.get(name) is not None]
    axes.plot(_epochs(rows), [row[name] for row in rows], marker=_marker(rows), label=term_name(name, language))


def _n_values(history: Sequence[Row], name: str) -> int:
    return sum(row.get(name) is not None for row in history)


def _epochs(history: Sequence[Row]) -> list[float]:
    return [row["epoch"] for row in history]


def _marker(history: Sequence[Row]) -> str:
    return "." if len(history) < 40 else ""  # a single epoch makes no line


# Pictures of a comparison of models: every fit as a dot, and the measures over numbers of topics.

_MOST_COLUMNS = 3  # of panels
_PANEL_WIDTH = 4.0  # inches
_MOST_PANEL_TICKS = 4  # intervals between ticks, in a panel
_LOGARITHMIC_FROM = 10  # the ratio of the largest to the smallest number of topics above which the axis is logarithmic


def dot_panels(
    panels: Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]], *, font: str | PathLike[str] | None = None
) -> Figure:
    """Draw a panel for each measure, with a row of dots for each name and a short line at their mean.

    Args:
        panels: title -> series -> name -> values, which may be NaN; every panel has the same series and names.
        font: a family name or the path of a font file; by default, a font that has the characters.

    Raises:
        InputError: `font` is not installed, or not a font.

    Examples:
        >>> import topicloom as tl
        >>> figure = tl.figures.dot_panels({"NMI": {"20 topics": {"gsm": [0.4, 0.5], "lda": [0.3, 0.4]}}})
        >>> len(figure.axes)
        1
    """
    columns = min(_MOST_COLUMNS, max(1, len(panels)))
    rows = math.ceil(len(panels) / columns)
    names = list(next(iter(next(iter(panels.values())).values()))) if panels else []
    height = 0.9 + 0.22 * len(names) * max(1, len(next(iter(panels.values()), {})))
    series_names = [name for series in panels.values() for name in series]
    fonts = fonts_for([*names, *panels, *series_names], font)
    figure = Figure(figsize=(_PANEL_WIDTH * columns, max(1.6, height) * max(1, rows)), layout="constrained")
    _with_room(figure)
    all_axes = figure.subplots(max(1, rows), columns, squeeze=False, sharey=True).ravel()
    for axes in all_axes[len(panels) :]:
        axes.set_visible(False)
    for axes, (title, series) in zip(all_axes, panels.items(), strict=False):
        for number, (label, values) in enumerate(series.items()):
            offset = 0.6 * ((number + 0.5) / len(series) - 0.5)
            for place, name in enumerate(names):
                known = [value for value in values[name] if math.isfinite(value)]
                colour = f"C{number}"
                axes.plot(known, [place + offset] * len(known), "o", color=colour, alpha=0.6, markersize=4)
                if known:
                    axes.plot([sum(known) / len(known)], [place + offset], "|", color=colour, markersize=11)
            axes.plot([], [], "o", color=f"C{number}", label=label)
        axes.set_title(title, fontsize=9)
        axes.tick_params(labelsize=8)
        axes.ticklabel_format(axis="x", style="plain", useOffset=False)
        axes.xaxis.set_major_locator(MaxNLocator(_MOST_PANEL_TICKS))  # small differences have long labels
        axes.grid(axis="x", alpha=0.3)
    if panels:
        for axes in all_axes[: len(panels) : columns]:  # those with names beside them
            axes.set_yticks(range(len(names)), names, fontfamily=fonts)
        all_axes[0].set_ylim(len(names) - 0.5, -0.5)
        figure.legend(
            *all_axes[0].get_legend_handles_labels(),
            loc="outside upper left",
            frameon=False,
            fontsize=8,
            ncols=2 * columns,
        )
    set_fonts(figure, fonts)
    return figure


def _with_room(figure: Figure) -> None:
    """Keep the labels below the upper panels of a figure away from the titles of the lower ones."""
    engine = figure.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        engine.set(h_pad=0.08, w_pad=0.08)  # inches on either side of a panel


def n_topics_curve(
    values: Mapping[Measure, Mapping[str, npt.NDArray[np.float64]]],
    n_topics: Sequence[int],
    recommended: Mapping[str, int],
    *,
    font: str | PathLike[str] | None = None,
    language: Language = "en",
) -> Figure:
    """Draw a panel for each measure and a line for each model: the mean over seeds, with its standard error.

    Args:
        values: by measure and by model, (n_sizes, n_seeds) values, which may be NaN.
        n_topics: the numbers of topics, one for each row of the values.
        recommended: the recommended number of topics of each model, drawn as a vertical line.
        font: a family name or the path of a font file; by default, a font that has the characters.
        language: "en" or "zh", of the labels; English if no font has Chinese characters.

    Raises:
        InputError: `font` is not installed.
        SettingError: there is no such language.
    """
    language = label_language(language, font)
    order = np.argsort(n_topics)
    sizes = np.asarray(n_topics)[order]
    columns = min(_MOST_COLUMNS, max(1, len(values)))
    rows = max(1, -(-len(values) // columns))
    figure = Figure(figsize=(_PANEL_WIDTH * columns, 2.8 * rows), layout="constrained")
    _with_room(figure)
    all_axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in all_axes[len(values) :]:
        axes.set_visible(False)
    for axes, (measure, by_model) in zip(all_axes, values.items(), strict=False):
        for number, (model, of_fits) in enumerate(by_model.items()):
            means, errors = _means_and_errors(of_fits[order], "other runs" in measure.needs)
            colour = f"C{number % 10}"
            axes.errorbar(sizes, means, yerr=errors, color=colour, marker="o", markersize=4, capsize=3, label=model)
            if model in recommended:
                axes.axvline(recommended[model], color=colour, linestyle=":", linewidth=1)
        axes.set_title(title_of(measure, language), fontsize=9, parse_math=False)
        if sizes[-1] > _LOGARITHMIC_FROM * sizes[0]:
            axes.set_xscale("log")
        axes.set_xticks(sizes, [str(k) for k in sizes])
        axes.minorticks_off()
        axes.tick_params(labelsize=8)
        axes.set_xlabel(NUMBER_OF_TOPICS(language), fontsize=8)
        axes.grid(alpha=0.3)
    models = list(next(iter(values.values()), {}))
    if len(models) > 1:
        all_axes[0].legend(frameon=False, prop={"family": fonts_for(models, font), "size": 7})
    titles = [title_of(measure, language) for measure in values]
    set_fonts(figure, fonts_for([*models, *titles, *characters(language)], font))
    return figure


def _means_and_errors(
    of_fits: npt.NDArray[np.float64], of_pairs: bool = False
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the mean and the standard error of each row; NaN and 0 where they are not known.

    Args:
        of_fits: (n_sizes, n_seeds) values, which may be NaN.
        of_pairs: whether the value of a seed is a mean over the pairs that it forms with the other seeds. The mean of
            all pairs is then a U-statistic. Its standard error by the jackknife (Arvesen 1969) is 2 (n - 1) / (n - 2)
            times that of n independent values, and not known for two seeds.
    """
    means, errors = np.full(len(of_fits), np.nan), np.zeros(len(of_fits))
    for row, values in enumerate(of_fits):
        known = values[np.isfinite(values)]
        if len(known):
            means[row] = known.mean()
        n = len(known)
        if n > 1 + of_pairs:
            errors[row] = known.std(ddof=1) / np.sqrt(n) * (2 * (n - 1) / (n - 2) if of_pairs else 1)
    return means, errors
