"""The curve of measures over numbers of topics, which shows why one of them is recommended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from ..metrics import CATALOGUE
from .figures.panels import with_room
from .figures.style import letter
from .fonts import fonts_for, label_language
from .wording import Language
from .wording.figures import TOPICS, characters
from .wording.measures import title_of

MEASURES = [
    name for name, each in CATALOGUE.items() if (each.column and each.group != "cost") or each.group == "stability"
]
_COLUMNS = 3
_WIDEST = 10  # the ratio of the largest to the smallest number of topics up to which the axis is linear


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
        font, language: as for `topic_pages`.
    """
    language = label_language(language, font)
    order = np.argsort(n_topics)
    sizes = np.asarray(n_topics)[order]
    columns = min(_COLUMNS, max(1, len(values)))
    rows = max(1, -(-len(values) // columns))
    figure = Figure(figsize=(4 * columns, 2.8 * rows), layout="constrained")
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
        if sizes[-1] > _WIDEST * sizes[0]:
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
