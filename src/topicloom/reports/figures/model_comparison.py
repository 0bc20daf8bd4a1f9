"""Pictures of a comparison of models: every fit as a dot, and the measures over numbers of topics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from os import PathLike

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from ...metrics import CATALOGUE
from ..fonts import fonts_for, label_language
from ..wording import TOPICS, Language, characters, title_of
from .style import letter

_MOST_COLUMNS = 3  # of panels
_PANEL_WIDTH = 4.0  # inches
_MOST_TICKS = 4  # intervals between ticks, in a panel
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


def n_topics_curve(
    values: Mapping[str, Mapping[str, npt.NDArray[np.float64]]],
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
        language: "en" or "zh", of the labels and the note; English if no font has Chinese characters.
    """
    language = label_language(language, font)
    order = np.argsort(n_topics)
    sizes = np.asarray(n_topics)[order]
    columns = min(_MOST_COLUMNS, max(1, len(values)))
    rows = max(1, -(-len(values) // columns))
    figure = Figure(figsize=(_PANEL_WIDTH * columns, 2.8 * rows), layout="constrained")
    with_room(figure)
    all_axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in all_axes[len(values) :]:
        axes.set_visible(False)
    for axes, (name, by_model) in zip(all_axes, values.items(), strict=False):
        for number, (model, of_fits) in enumerate(by_model.items()):
            means, errors = _means_and_errors(of_fits[order], "other runs" in CATALOGUE[name].needs)
            colour = f"C{number % 10}"
            axes.errorbar(sizes, means, yerr=errors, color=colour, marker="o", markersize=4, capsize=3, label=model)
            if model in recommended:
                axes.axvline(recommended[model], color=colour, linestyle=":", linewidth=1)
        axes.set_title(title_of(CATALOGUE[name], language), fontsize=9)
        if sizes[-1] > _LOGARITHMIC_FROM * sizes[0]:
            axes.set_xscale("log")
        axes.set_xticks(sizes, [str(k) for k in sizes])
        axes.minorticks_off()
        axes.tick_params(labelsize=8)
        axes.set_xlabel(TOPICS(language), fontsize=8)
        axes.grid(alpha=0.3)
    models = list(next(iter(values.values()), {}))
    if len(models) > 1:
        all_axes[0].legend(frameon=False, prop={"family": fonts_for(models, font), "size": 7})
    letter(figure, fonts_for([*models, *characters(language)], font))
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
