"""Labels that do not cover each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from ..fonts import LATIN_FONT
from .style import BLACK, GREY

_NEAR, _FAR, _DIRECTIONS = 4, 14, 16  # rings and directions around a point that are tried
_PADDING = 1.5  # pixels around a label
_LINE_POINTS = 12  # of a line, which later labels do not cover if they find other room


class Labels:
    """The labels of a picture, which are placed one after another where no earlier one is.

    The margins and limits of the picture must be set before, because places are measured in pixels.

    Args:
        axes: the panel that the labels stay in.
        fonts: the font families of the labels.
    """

    def __init__(self, axes: Axes, fonts: Sequence[str]) -> None:
        figure = axes.figure
        self.axes, self.fonts = axes, list(fonts)
        canvas: Any = FigureCanvasAgg
        self.renderer = canvas(figure).get_renderer()
        self.frame = axes.get_window_extent(self.renderer)
        self.boxes = np.empty((0, 4))  # left, bottom, right, top
        self.avoided = np.empty((0, 2))  # points that labels cover only where they find no other room

    def keep_free(self, points: npt.NDArray[np.float64], radius: float) -> None:
        """Keep labels away from markers at `points`, (n, 2), with a radius in typographic points."""
        centres = self.axes.transData.transform(points)
        pixels = radius * self.renderer.dpi / 72
        self.boxes = np.concatenate([self.boxes, np.hstack([centres - pixels, centres + pixels])])

    def avoid(self, points: npt.NDArray[np.float64]) -> None:
        """Prefer places where labels cover none of `points`, (n, 2), in the units of the panel."""
        self.avoided = np.concatenate([self.avoided, self.axes.transData.transform(points)])

    def add(
        self,
        point: npt.ArrayLike,
        texts: Sequence[str],
        *,
        colour: str = BLACK,
        size: float = 8,
        bold: bool = False,
        gap: float | None = None,
        far: bool = True,
    ) -> Text | None:
        """Add the first of `texts` that finds room near a point; return it, or None if none does.

        Args:
            point: (2,) in the units of the panel.
            texts: the label, followed by shorter ones.
            bold: whether the label is bold, if it needs no other font than matplotlib's own.
            gap: the distance of a label beside its point, in typographic points; None puts it on the point.
            far: whether the label may be far from the point, to which a line then joins it.
        """
        x, y = self.axes.transData.transform(np.asarray(point, np.float64))
        pixels = None if gap is None else gap * self.renderer.dpi / 72 + _PADDING
        attempts = [(text, range(_NEAR)) for text in texts]
        attempts += [(text, range(_NEAR, _FAR)) for text in reversed(texts)] * far
        for text, rings in attempts:
            artist = self._text(text, colour, size, bold)
            extent = artist.get_window_extent(self.renderer)
            half = np.array([extent.width, extent.height]) / 2 + _PADDING
            centres = np.array([x, y]) + _places(extent.width, extent.height, pixels, rings)  # (P, 2)
            free = np.flatnonzero(self._are_free(centres - half, centres + half))
            if len(free):
                centre = centres[free[np.argmin(self._covered(centres[free] - half, centres[free] + half))]]
                self.boxes = np.concatenate([self.boxes, [[*(centre - half), *(centre + half)]]])
                artist.set_position(tuple(self.axes.transData.inverted().transform(centre).tolist()))
                if (np.abs(centre - (x, y)) > half + max(0.6 * extent.height, (pixels or 0) + 1)).any():
                    self._join((x, y), tuple(centre.tolist()))
                return artist
            artist.remove()
        return None

    def _text(self, text: str, colour: str, size: float, bold: bool) -> Text:
        bold = bold and self.fonts == [LATIN_FONT]  # other fonts may have no bold face, of which matplotlib warns
        style: dict[str, Any] = {"fontfamily": self.fonts, "parse_math": False}
        weight = "bold" if bold else "normal"
        artist = self.axes.text(
            0,
            0,
            text,
            ha="center",
            va="center_baseline",
            color=colour,
            fontsize=size,
            fontweight=weight,
            zorder=5,
            **style,
        )
        artist.set_path_effects([patheffects.withStroke(linewidth=2.5, foreground="white")])
        return artist

    def _are_free(self, low: npt.NDArray[np.float64], high: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """Return whether boxes from `low` to `high`, (P, 2) both, are inside the panel and overlap no label."""
        inside = np.all(low >= np.asarray(self.frame.min), axis=1) & np.all(high <= np.asarray(self.frame.max), axis=1)
        boxes = self.boxes
        apart = np.any((low[:, None] >= boxes[:, 2:]) | (high[:, None] <= boxes[:, :2]), axis=2)  # (P, boxes)
        free: npt.NDArray[np.bool_] = inside & np.all(apart, axis=1)
        return free

    def _covered(self, low: npt.NDArray[np.float64], high: npt.NDArray[np.float64]) -> npt.NDArray[np.intp]:
        """Return how many of the points that are avoided lie in each box from `low` to `high`, (P, 2) both."""
        points = self.avoided
        covered: npt.NDArray[np.intp] = np.all((points > low[:, None]) & (points < high[:, None]), axis=2).sum(axis=1)
        return covered

    def _join(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        places = self.axes.transData.inverted().transform([start, end])
        self.axes.plot(*places.T, color=GREY, linewidth=0.5, zorder=4)
        self.avoid(np.linspace(places[0], places[1], _LINE_POINTS))


def _places(width: float, height: float, gap: float | None, rings: range) -> npt.NDArray[np.float64]:
    """Return offsets of a label's centre from its point in pixels, (P, 2), the nearest first."""
    found: list[tuple[float, float]] = []
    if 0 in rings and gap is not None:
        across, up = width / 2 + gap, height / 2 + gap
        found += [(across, 0.0), (-across, 0.0), (0.0, up), (0.0, -up)]
    elif 0 in rings:
        found.append((0.0, 0.0))
    for ring in filter(None, rings):
        for step in range(_DIRECTIONS):
            angle = 2 * math.pi * step / _DIRECTIONS
            found.append((ring * (0.2 * width + 0.4 * height) * math.cos(angle), ring * 0.9 * height * math.sin(angle)))
    return np.array(found)
