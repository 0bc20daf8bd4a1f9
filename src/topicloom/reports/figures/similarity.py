"""A heat map of how similar topics are, with their tree."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from scipy.cluster.hierarchy import dendrogram, leaves_list, linkage, optimal_leaf_ordering
from scipy.spatial.distance import squareform

from ...errors import InputError
from ..fonts import fonts_for, label_language
from ..wording import Language
from ..wording.figures import SIMILARITY, characters
from .style import BLACK, GREY, LIGHT, letter, noted, shortened

_MOST_NAMED = 80  # topics; with more, only their numbers have room
_TREE, _NAMES, _BAR, _NUMBERS = 0.9, 2.5, 0.75, 0.3  # inches
_FIELD = 4.5  # inches, the side of the map, if the cells then have a readable size


def similarity_map(
    similarity: npt.ArrayLike,
    names: Sequence[str],
    *,
    tree: npt.ArrayLike | None = None,
    note: str = "",
    font: str | PathLike[str] | None = None,
    language: Language = "en",
) -> Figure:
    """Draw the similarity of each pair of topics as a colour. A tree orders the topics, so that similar ones are near.

    Args:
        similarity: (K, K), symmetric, from 0 to 1.
        names: the K names of the topics.
        tree: (K - 1, 4) the tree, as scipy's `linkage` returns it; None makes one of the mean distances
            (average linkage).
        note: stands below the map.
        font, language: as for `topic_pages`.

    Raises:
        InputError: the sizes do not match, or `font` is not installed.
    """
    values = np.asarray(similarity, np.float64)
    n_topics = len(names)
    if values.shape != (n_topics, n_topics):
        raise InputError(f"the similarity of {n_topics} topics is a matrix of shape {values.shape}; make it (K, K)")
    merges = _tree(values) if tree is None and n_topics > 1 else tree
    order = [0] if merges is None else leaves_list(np.asarray(merges)).tolist()
    language = label_language(language, font)
    fonts = fonts_for([*names, note, *characters(language)], font)
    cell = min(max(_FIELD / max(1, n_topics), 0.15 if n_topics <= _MOST_NAMED else 0.05), 0.5)
    side = cell * n_topics
    width, height = _TREE + side + _NAMES + _BAR, side + 0.25 + _NUMBERS
    figure = noted(width, height, note)
    full = figure.get_figheight()
    bottom = full - 0.25 - side
    field = figure.add_axes((_TREE / width, bottom / full, side / width, side / full))
    low, high = _scale(values)
    shown = np.ma.masked_array(values[np.ix_(order, order)], mask=np.eye(n_topics, dtype=bool))
    field.set_facecolor(LIGHT)  # of the diagonal, on which each topic meets itself
    image = field.imshow(shown, cmap="Blues", vmin=low, vmax=high, interpolation="nearest")
    _label(field, order, names, fontsize=min(8.0, 0.62 * 72 * cell), fontfamily=fonts)
    if merges is not None:
        stem = figure.add_axes((0.05 / width, bottom / full, (_TREE - 0.08) / width, side / full))
        _draw_tree(stem, np.asarray(merges))
    bar = figure.add_axes(
        ((width - _BAR + 0.05) / width, (bottom + side - min(side, 2.0)) / full, 0.12 / width, min(side, 2.0) / full)
    )
    figure.colorbar(image, cax=bar)
    bar.tick_params(labelsize=7)
    pad = 6 if language == "zh" else 4  # Chinese characters reach below the line
    bar.set_title(SIMILARITY(language), fontsize=7, color=GREY, loc="left", pad=pad)
    letter(figure, fonts)
    return figure


def _label(field: Axes, order: Sequence[int], names: Sequence[str], **font: Any) -> None:
    """Write the names of the topics beside a map, and their numbers below it, as far as there is room."""
    n_topics = len(names)
    style: dict[str, Any] = {**font, "color": BLACK, "parse_math": False}
    field.set_xticks([])
    field.set_yticks([])
    for place, topic in enumerate(order):
        if n_topics <= _MOST_NAMED:
            field.text(n_topics - 0.3, place, shortened(names[topic], 34), va="center", **style)
            field.text(
                place, n_topics - 0.2, str(topic), va="top", ha="center", rotation=90 if n_topics > 30 else 0, **style
            )
        elif place % (n_topics // 40 + 1) == 0:
            field.text(n_topics + 0.5, place, shortened(names[topic], 34), va="center", **style | {"fontsize": 5})


def _draw_tree(stem: Axes, merges: npt.NDArray[Any]) -> None:
    """Draw a tree (K - 1, 4) with its leaves at the right."""
    drawn = dendrogram(merges, no_plot=True)
    segments = [
        list(zip(heights, leaves, strict=True))
        for leaves, heights in zip(drawn["icoord"], drawn["dcoord"], strict=True)
    ]
    stem.add_collection(LineCollection(segments, colors=GREY, linewidths=0.8))
    joins = merges[:, 2]
    # Topics are far from each other, so that most of an axis that began at 0 would be empty.
    room = max(0.2 * float(np.ptp(joins)), 0.03 * float(joins.max()), 1e-9)
    stem.set_xlim(float(joins.max()) + 0.2 * room, max(float(joins.min()) - room, 0))
    stem.set_ylim(10 * (len(merges) + 1), 0)  # the first leaf on top, as in the map
    stem.axis("off")


def _tree(similarity: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    distances = 1 - (similarity + similarity.T) / 2
    np.fill_diagonal(distances, 0)
    condensed = np.maximum(squareform(distances, checks=False), 0)
    tree: npt.NDArray[np.float64] = optimal_leaf_ordering(linkage(condensed, "average"), condensed)
    return tree


def _scale(values: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Return the ends of the scale: the least and the most similar pair, as the diagonal would make all others pale."""
    others = values[~np.eye(len(values), dtype=bool)]
    if not others.size or np.ptp(others) < 1e-6:
        return 0.0, 1.0
    return float(others.min()), float(others.max())
