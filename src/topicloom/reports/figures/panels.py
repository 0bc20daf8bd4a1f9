"""Panels of dots, for comparisons."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from os import PathLike

from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from ..fonts import fonts_for
from .style import letter

_MOST_TICKS = 4  # intervals between ticks, in a panel of 4 inches


def dot_panels(
    panels: Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]], *, font: str | PathLike[str] | None = None
) -> Figure:
    """Draw a panel for each measure, with a row of dots for each name and a short line at their mean.

    Args:
        panels: title -> series -> name -> values, which may be NaN; every panel has the same series and names.
        font: as for `topic_pages`.

    Raises:
        InputError: `font` is not installed, or not a font.
    """
    columns = min(3, max(1, len(panels)))
    rows = math.ceil(len(panels) / columns)
    names = list(next(iter(next(iter(panels.values())).values()))) if panels else []
    height = 0.9 + 0.22 * len(names) * max(1, len(next(iter(panels.values()), {})))
    series_names = [name for series in panels.values() for name in series]
    fonts = fonts_for([*names, *panels, *series_names], font)
    figure = Figure(figsize=(4 * columns, max(1.6, height) * max(1, rows)), layout="constrained")
    with_room(figure)
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
        axes.xaxis.set_major_locator(MaxNLocator(_MOST_TICKS))  # small differences have long labels
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
    letter(figure, fonts)
    return figure


def with_room(figure: Figure) -> None:
    """Keep the labels below the upper panels of a figure away from the titles of the lower ones."""
    engine = figure.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        engine.set(h_pad=0.08, w_pad=0.08)  # inches on either side of a panel
