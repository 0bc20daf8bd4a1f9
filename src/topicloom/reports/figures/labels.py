"""Labels that do not cover each other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from .style import BLACK, GREY

_NEAR, _FAR, _DIRECTIONS = 4, 14, 16  # rings and directions around a point that are tried
_PADDING = 1.5  # pixels around a label


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
        self.renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[arg-type]
        self.frame = axes.get_window_extent(self.renderer)
        self.boxes: list[Bbox] = []

    def add(
        self,
        point: npt.ArrayLike,
        texts: Sequence[str],
        *,
        colour: str = BLACK,
        size: float = 8,
        weight: str = "normal",
        beside: bool = False,
        far: bool = True,
    ) -> Text | None:
        """Add the first of `texts` that finds room near a point; return it, or None if none does.

        Args:
            point: (2,) in the units of the panel.
            texts: the label, followed by shorter ones.
            beside: whether the label stands beside the point, and not on it.
            far: whether the label may be far from the point, to which a line then joins it.
        """
        x, y = self.axes.transData.transform(np.asarray(point, np.float64))
        attempts = [(text, range(_NEAR)) for text in texts]
        attempts += [(text, range(_NEAR, _FAR)) for text in reversed(texts)] * far
        for text, rings in attempts:
            artist = self._text(text, colour, size, weight)
            extent = artist.get_window_extent(self.renderer)
            for dx, dy in _places(extent.width, extent.height, beside, rings):
                centre = (x + dx, y + dy)
                box = Bbox.from_bounds(
                    centre[0] - extent.width / 2 - _PADDING, centre[1] - extent.height / 2 - _PADDING,
                    extent.width + 2 * _PADDING, extent.height + 2 * _PADDING,
                )  # fmt: skip
                if self._is_free(box):
                    self.boxes.append(box)
                    artist.set_position(self.axes.transData.inverted().transform(centre))
                    if not box.padded(0.6 * extent.height).contains(x, y):
                        self._join((x, y), centre)
                    return artist
            artist.remove()
        return None

    def _text(self, text: str, colour: str, size: float, weight: str) -> Text:
        style: dict[str, Any] = {"fontfamily": self.fonts, "parse_math": False}
        artist = self.axes.text(
            0, 0, text, ha="center", va="center_baseline", color=colour, fontsize=size, fontweight=weight, zorder=5, **style
        )
        artist.set_path_effects([patheffects.withStroke(linewidth=2.5, foreground="white")])
        return artist

    def _is_free(self, box: Bbox) -> bool:
        inside = self.frame.x0 <= box.x0 and box.x1 <= self.frame.x1 and self.frame.y0 <= box.y0
        return inside and box.y1 <= self.frame.y1 and not box.count_overlaps(self.boxes)

    def _join(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        places = self.axes.transData.inverted().transform([start, end])
        self.axes.plot(*places.T, color=GREY, linewidth=0.5, zorder=4)


def _places(width: float, height: float, beside: bool, rings: range) -> Iterator[tuple[float, float]]:
    """Yield offsets of a label's centre from its point in pixels, the nearest first."""
    if 0 in rings and beside:
        gap = 0.35 * height
        yield from ((width / 2 + gap, 0), (-width / 2 - gap, 0), (0, height / 2 + gap), (0, -height / 2 - gap))
    elif 0 in rings:
        yield 0.0, 0.0
    for ring in rings:
        for step in range(_DIRECTIONS if ring else 0):
            angle = 2 * math.pi * step / _DIRECTIONS
            yield ring * (0.2 * width + 0.4 * height) * math.cos(angle), ring * 0.9 * height * math.sin(angle)
