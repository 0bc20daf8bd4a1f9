"""Maps: documents as points of a plane, and words with the topics that they stand for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text
from scipy.spatial import cKDTree

from ...errors import InputError
from .style import BLACK, GREY, LATIN_FONT, LIGHT, MARGIN, colours_of, darker, fonts_for, noted, shortened

_MAP_SIZE = (9.0, 6.6)  # inches
_STAR_SIZE = 9.5  # of a topic, in typographic points
_SMALL_GROUP = 16  # the radius in typographic points of a group that its name would cover
_MANY_POINTS = 2000  # more are drawn as an image, so that vector files stay small
# Clouds behind the points, as in the explorer.
FEWEST_FOR_CLOUDS = 200  # documents
_CLOUD_CELLS, _CLOUD_SCALE, _CLOUD_LEVELS = 96, 4, 100  # of the map, on each axis; pixels of a cell; of a colour
_CLOUD_WIDTH, _CLOUD_STRENGTH = 1.5, 0.34  # the spread in cells, and the greatest opacity
# Labels that do not cover each other.
_FEW_LABELS, _MOST_LABELS = 25, 100  # a few are larger
_NEAR_RINGS, _ALL_RINGS, _DIRECTIONS = 4, 14, 16  # around a point, in which a label looks for room
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
        attempts = [(text, range(_NEAR_RINGS)) for text in texts]
        attempts += [(text, range(_NEAR_RINGS, _ALL_RINGS)) for text in reversed(texts)] * far
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


def document_map(
    points: npt.ArrayLike,
    groups: npt.ArrayLike,
    names: Sequence[str],
    *,
    title: str = "",
    note: str = "",
    order: Sequence[int] | None = None,
    font: str | PathLike[str] | None = None,
) -> Figure:
    """Draw documents as points, coloured by group, with the name of each group where most of its documents are.

    Args:
        points: (n, 2) the places, such as `topicloom.topics.hierarchy.project` returns them.
        groups: (n,) the group of each document, such as its main topic or its class; -1 for none.
        names: the name of each group.
        title: stands above the map.
        note: stands below it.
        order: the groups in an order in which similar ones are neighbours, which get similar colours.
        font: a family name or the path of a font file; by default, a font that has the characters.

    Raises:
        InputError: the sizes do not match, or `font` is not installed.

    Examples:
        >>> import topicloom as tl
        >>> figure = tl.figures.document_map([[0, 0], [1, 1], [2, 0]], [0, 1, -1], ["art", "sport"])
        >>> len(figure.axes)
        1
    """
    places, members = np.asarray(points, np.float64).reshape(-1, 2), np.asarray(groups, np.intp)
    if len(places) != len(members):
        raise InputError(f"there are {len(places)} points and {len(members)} groups; give one group for each point")
    if len(members) and not -1 <= members.min() <= members.max() < len(names):
        raise InputError(f"a group is not one of the {len(names)} that have a name")
    labels = [shortened(name) for name in names]
    figure, axes, fonts = _plane(places, labels, title, note, font)
    colours = np.array([*colours_of(len(names), order), LIGHT])  # the last is that of the group -1
    if len(places) >= FEWEST_FOR_CLOUDS:
        _draw_clouds(axes, places, members, colours)
    in_turn = np.random.default_rng(0).permutation(len(places))  # so that no group covers all others
    x, y = places[in_turn].T
    size = float(np.clip(16_000 / max(1, len(places)), 3, 30))
    axes.scatter(x, y, size, colours[members[in_turn]], alpha=0.7, linewidths=0, rasterized=len(places) > _MANY_POINTS)
    placed = Labels(axes, fonts)
    sizes = np.bincount(members[members >= 0], minlength=len(names))
    few = bool((sizes > 0).sum() <= _FEW_LABELS)
    for group in np.argsort(-sizes, kind="stable")[:_MOST_LABELS].tolist():
        if sizes[group]:
            texts = (labels[group], _short(labels[group]))
            own, colour = places[members == group], darker(str(colours[group]))
            middle = _centre(own)
            gap = _gap_beside(axes, own, middle)
            placed.add(middle, texts, colour=colour, size=8 if few else 6.5, bold=few, gap=gap)
    return figure


def word_map(
    word_points: npt.ArrayLike,
    topic_points: npt.ArrayLike,
    words: Sequence[str],
    word_topics: npt.ArrayLike,
    names: Sequence[str],
    *,
    title: str = "",
    note: str = "",
    order: Sequence[int] | None = None,
    font: str | PathLike[str] | None = None,
) -> Figure:
    """Draw words and topics as points of one plane. Words are labelled as long as there is room for them.

    Args:
        word_points: (n, 2) the places of words, the most important first.
        topic_points: (K, 2) the places of topics.
        words: the n words.
        word_topics: (n,) the topic that each word stands for, whose colour it has.
        names: the K names of the topics.
        title: stands above the map.
        note: stands below it.
        order: the topics in an order in which similar ones are neighbours, which get similar colours.
        font: a family name or the path of a font file; by default, a font that has the characters.

    Raises:
        InputError: the sizes do not match, or `font` is not installed.

    Examples:
        >>> import topicloom as tl
        >>> words, topics = [[0, 1], [2, 1]], [[0, 0], [2, 0]]
        >>> figure = tl.figures.word_map(words, topics, ["cat", "rain"], [0, 1], ["pets", "weather"])
        >>> len(figure.axes)
        1
    """
    places, centres = (np.asarray(each, np.float64).reshape(-1, 2) for each in (word_points, topic_points))
    topics = np.asarray(word_topics, np.intp)
    if not len(places) == len(words) == len(topics) or len(centres) != len(names):
        raise InputError(
            f"there are {len(places)} places of words, {len(words)} words and {len(topics)} topics of words, and "
            f"{len(centres)} places of topics and {len(names)} names; give one of each"
        )
    shown = [shortened(name) for name in names]
    figure, axes, fonts = _plane(np.concatenate([places, centres]), [*shown, *words], title, note, font)
    colours = np.array(colours_of(len(names), order))
    axes.scatter(places[:, 0], places[:, 1], 9, colours[topics], alpha=0.7, linewidths=0)
    axes.scatter(
        centres[:, 0], centres[:, 1], _STAR_SIZE**2, colours, marker="*", edgecolors="white", linewidths=0.6, zorder=3
    )
    labels = Labels(axes, fonts)
    labels.keep_free(centres, _STAR_SIZE / 2)
    labels.avoid(places)
    for topic, name in enumerate(shown):
        texts = (name, _short(name))
        labels.add(centres[topic], texts, colour=darker(str(colours[topic])), size=8, bold=True, gap=_STAR_SIZE / 2 + 1)
    for place, word, topic in zip(places, words, topics, strict=True):
        labels.add(place, [word], colour=darker(str(colours[topic])), size=7, gap=2.5, far=False)
    return figure


def _plane(
    places: npt.NDArray[np.float64], texts: Sequence[str], title: str, note: str, font: str | PathLike[str] | None
) -> tuple[Figure, Axes, list[str]]:
    """Return a figure, its panel, and the fonts of its texts.

    The panel has room around the points (n, 2), and no ticks, because their numbers would mean nothing.
    """
    fonts = fonts_for([*texts, title, note], font)
    figure = noted(*_MAP_SIZE, note, top=0.3 if title else MARGIN, fonts=fonts)
    axes = figure.add_subplot()
    low, high = (places.min(axis=0), places.max(axis=0)) if len(places) else (np.zeros(2), np.zeros(2))
    room = 0.06 * np.where(high > low, high - low, max(1.0, float((high - low).max())))
    axes.set_xlim(low[0] - room[0], high[0] + room[0])
    axes.set_ylim(low[1] - room[1], high[1] + room[1])
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_color(LIGHT)
    axes.set_title(title, loc="left", fontsize=10, color=GREY, fontfamily=fonts, parse_math=False)
    return figure, axes, fonts


def _draw_clouds(
    axes: Axes, places: npt.NDArray[np.float64], members: npt.NDArray[np.intp], colours: npt.NDArray[Any]
) -> None:
    """Draw a soft cloud of its colour where a group has many documents."""
    from scipy.ndimage import gaussian_filter, zoom

    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    n_groups, size = len(colours) - 1, _CLOUD_CELLS
    cells = ((places - (left, bottom)) / (right - left, top - bottom) * size).astype(np.intp).clip(0, size - 1)
    total, weight, mixed = np.zeros((size, size)), np.zeros((size, size)), np.zeros((size, size, 3))
    for group in range(n_groups):
        own = cells[members == group]
        if not len(own):
            continue
        counts = np.bincount(own[:, 1] * size + own[:, 0], minlength=size * size).reshape(size, size)
        density = gaussian_filter(counts.astype(np.float64), _CLOUD_WIDTH, mode="constant")
        total += density
        weight += density**2  # the square, so that the densest group gives the colour
        mixed += density[..., None] ** 2 * np.array(to_rgb(str(colours[group])))
    usual = float(total[total > 0.05].mean()) if (total > 0.05).any() else 1.0
    picture = np.zeros((size, size, 4))
    np.divide(mixed, weight[..., None], out=picture[..., :3], where=weight[..., None] > 0)
    picture[..., 3] = _CLOUD_STRENGTH * -np.expm1(-1.1 * total / usual)
    # It is scaled here, with few levels, and not by matplotlib, whose picture would make vector files large.
    picture = zoom(picture, (_CLOUD_SCALE, _CLOUD_SCALE, 1), order=1, grid_mode=True, mode="nearest")
    picture = np.round(picture.clip(0, 1) * _CLOUD_LEVELS) / _CLOUD_LEVELS
    axes.imshow(
        picture, extent=(left, right, bottom, top), origin="lower", aspect="auto", interpolation="none", zorder=0
    )


def _gap_beside(axes: Axes, places: npt.NDArray[np.float64], middle: npt.NDArray[np.float64]) -> float | None:
    """Return the distance in points at which a label hides no document of a small group; None for a large group."""
    apart = axes.transData.transform(places) - axes.transData.transform(middle)  # (n, 2) pixels
    radius = float(np.quantile(np.hypot(*apart.T), 0.9)) * 72 / axes.figure.dpi
    return radius + 2 if radius < _SMALL_GROUP else None


def _short(name: str) -> str:
    """Return the number that a name begins with, or else its beginning."""
    first = name.split(" ")[0]
    return first if first.isdecimal() else shortened(name, 10)


def _centre(places: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the point with the most others around it. The mean of a group in two parts would lie between them."""
    spread = float(np.sqrt(places.var(axis=0).sum())) or 1.0
    seen = places if len(places) <= _MANY_POINTS else places[:: len(places) // _MANY_POINTS + 1]
    counts = cKDTree(places).query_ball_point(seen, 0.5 * spread, return_length=True)
    nearby = places[cKDTree(places).query_ball_point(seen[int(np.argmax(counts))], 0.5 * spread)]
    middle: npt.NDArray[np.float64] = nearby.mean(axis=0)
    return middle
