"""Maps: documents as points of a plane, and words with the topics that they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.spatial import cKDTree

from ...errors import InputError
from ..fonts import fonts_for
from .labels import Labels
from .style import GREY, LIGHT, MARGIN, colours_of, darker, noted, shortened

_SIZE = (9.0, 6.6)  # inches
_FEW_LABELS, _MOST_LABELS = 25, 100  # a few are larger
_STAR = 9.5  # points, the size of a topic's star
_SMALL_GROUP = 16  # points, the radius of a group that its name would cover
_MANY = 2000  # points; more are drawn as an image, so that vector files stay small


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
        points: (n, 2) the places, such as `topicloom.topics.projection.project` returns them.
        groups: (n,) the group of each document, such as its main topic or its class; -1 for none.
        names: the name of each group.
        title: stands above the map.
        note: stands below it.
        order: the groups in an order in which similar ones are neighbours, which get similar colours.
        font: as for `topic_pages`.

    Raises:
        InputError: the sizes do not match, or `font` is not installed.
    """
    places, members = np.asarray(points, np.float64).reshape(-1, 2), np.asarray(groups, np.intp)
    if len(places) != len(members):
        raise InputError(f"there are {len(places)} points and {len(members)} groups; give one group for each point")
    if len(members) and not -1 <= members.min() <= members.max() < len(names):
        raise InputError(f"a group is not one of the {len(names)} that have a name")
    labels = [shortened(name) for name in names]
    figure, axes, fonts = _plane(places, labels, title, note, font)
    colours = np.array([*colours_of(len(names), order), LIGHT])  # the last is that of the group -1
    in_turn = np.random.default_rng(0).permutation(len(places))  # so that no group covers all others
    x, y = places[in_turn].T
    size = float(np.clip(16_000 / max(1, len(places)), 3, 30))
    axes.scatter(x, y, size, colours[members[in_turn]], alpha=0.7, linewidths=0, rasterized=len(places) > _MANY)
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
        title, note, order, font: as for `document_map`.

    Raises:
        InputError: the sizes do not match, or `font` is not installed.
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
        centres[:, 0], centres[:, 1], _STAR**2, colours, marker="*", edgecolors="white", linewidths=0.6, zorder=3
    )
    labels = Labels(axes, fonts)
    labels.keep_free(centres, _STAR / 2)
    labels.avoid(places)
    for topic, name in enumerate(shown):
        texts = (name, _short(name))
        labels.add(centres[topic], texts, colour=darker(str(colours[topic])), size=8, bold=True, gap=_STAR / 2 + 1)
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
    figure = noted(*_SIZE, note, top=0.3 if title else MARGIN, fonts=fonts)
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
    seen = places if len(places) <= _MANY else places[:: len(places) // _MANY + 1]
    counts = cKDTree(places).query_ball_point(seen, 0.5 * spread, return_length=True)
    nearby = places[cKDTree(places).query_ball_point(seen[int(np.argmax(counts))], 0.5 * spread)]
    middle: npt.NDArray[np.float64] = nearby.mean(axis=0)
    return middle
