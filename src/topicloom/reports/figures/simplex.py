"""Draws from Dirichlet distributions on the triangle of three topics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from os import PathLike

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...errors import SettingError
from ..fonts import fonts_for, label_language
from ..wording import Language
from ..wording.figures import SIMPLEX, TOPIC, characters
from .style import BLUE, GREY, letter, noted

_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, math.sqrt(3) / 2]])
_COLUMNS = 4


def simplex(
    alphas: Sequence[float | Sequence[float]] = (0.1, 0.5, 1, 10),
    n_documents: int = 500,
    random_state: int = 0,
    *,
    font: str | PathLike[str] | None = None,
    language: Language = "en",
) -> Figure:
    """Draw documents from Dirichlet(alpha) as points of the triangle whose corners are three topics.

    Args:
        alphas: the parameters, a panel for each: a number for all topics, or three numbers.
        n_documents: the points in a panel.
        random_state: the seed.
        font, language: as for `topic_pages`.

    Raises:
        InputError: `font` is not installed.
        SettingError: a parameter is not positive, or does not have one or three numbers; or there is none.
    """
    parameters = [_three(alpha) for alpha in alphas]
    if not parameters:
        raise SettingError("`alphas` is empty; give one number or more, such as 0.1")
    if n_documents < 1:
        raise SettingError(f"`n_documents={n_documents}` should be a whole number from 1")
    language = label_language(language, font)
    generator = np.random.default_rng(random_state)
    columns = min(_COLUMNS, len(parameters))
    rows = math.ceil(len(parameters) / columns)
    figure = noted(max(5.0, 2.7 * columns), 2.75 * rows, SIMPLEX(language))
    figure.subplots_adjust(wspace=0.1, hspace=0.2)
    all_axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in all_axes:
        axes.axis("off")
    for axes, parameter in zip(all_axes, parameters, strict=False):
        # A small shape underflows where gamma variables are divided by their sum, which may then be 0.
        log_gammas = np.log(generator.gamma(parameter + 1, size=(n_documents, 3)))
        log_gammas += np.log(1 - generator.random((n_documents, 3))) / parameter
        theta = np.exp(log_gammas - log_gammas.max(axis=1, keepdims=True))
        _triangle(axes, theta / theta.sum(axis=1, keepdims=True), parameter, language)
    letter(figure, fonts_for(characters(language), font))
    return figure


def _triangle(
    axes: Axes, theta: npt.NDArray[np.float64], parameter: npt.NDArray[np.float64], language: Language
) -> None:
    axes.fill(*_CORNERS.T, facecolor="#f6f6f6", edgecolor=GREY, linewidth=0.8)
    size = float(np.clip(6_000 / len(theta), 2, 30))
    x, y = (theta @ _CORNERS).T
    axes.scatter(x, y, size, BLUE, alpha=0.5, linewidths=0, clip_on=False, zorder=3)
    for corner, (ha, va) in enumerate((("left", "top"), ("right", "top"), ("center", "bottom"))):
        name = TOPIC(language, topic=corner)
        shift = -0.04 if va == "top" else 0.03
        axes.text(_CORNERS[corner, 0], _CORNERS[corner, 1] + shift, name, ha=ha, va=va, fontsize=8, color=GREY)
    equal = len(set(parameter.tolist())) == 1
    shown = f"{parameter[0]:g}" if equal else f"({', '.join(f'{each:g}' for each in parameter)})"
    axes.set_title(f"alpha = {shown}", fontsize=10, y=1.0, pad=3)
    axes.set_aspect("equal")
    axes.set_xlim(-0.06, 1.06)
    axes.set_ylim(-0.12, 0.96)


def _three(alpha: float | Sequence[float]) -> npt.NDArray[np.float64]:
    values = np.atleast_1d(np.asarray(alpha, np.float64))
    if values.shape not in ((1,), (3,)) or not (np.isfinite(values).all() and (values > 0).all()):
        raise SettingError(f"`alphas` has {alpha!r}; each should be a positive number, or three of them for the topics")
    return np.broadcast_to(values, 3).copy()
