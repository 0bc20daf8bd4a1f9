"""Pictures of topics: their top words as bars or clouds, and how similar they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from ...errors import InputError, MissingExtraError
from ...messages import counted
from ..wording import BARS, CLOUDS, RETURNING, SIMILARITY, TOPIC, VARIED, Language, characters
from .style import (
    BLACK,
    BLUE,
    GREY,
    LIGHT,
    PALE,
    file_for,
    fonts_for,
    label_language,
    noted,
    panel_pages,
    set_fonts,
    shortened,
)

# Clouds.
_CLOUD_SIZE = (480, 350)  # pixels, the shape of a panel
_LARGEST_FONT, _SMALLEST_FONT = 100, 9  # pixels
_PALEST, _DARKEST = (0x7F, 0xA3, 0xC7), (0x14, 0x33, 0x55)
# The map of similarities.
_MOST_NAMED = 80  # topics; with more, only their numbers have room
_TREE_WIDTH, _NAMES_WIDTH, _SCALE_WIDTH, _NUMBERS_HEIGHT = 0.9, 2.5, 0.75, 0.3  # inches
_MAP_SIDE = 4.5  # inches, if the cells then have a readable size


def topic_pages(
    words: Sequence[Sequence[str]],
    scores: npt.ArrayLike,
    shares: npt.ArrayLike | None = None,
    *,
    titles: Sequence[str] | None = None,
    font: str | PathLike[str] | None = None,
    language: Language = "en",
) -> list[Figure]:
    """Draw a small panel of horizontal bars for every topic, with the best word on top.

    A page has at most 40 topics, so that it can be read on a screen.

    Args:
        words: the words of each topic, best first.
        scores: (K, n) the score that ranks each of these words, as `topicloom.ranking.word_scores` computes it. Scores
            are logarithms: a bar is as long as exp(score), and the best word's bar fills the panel.
        shares: (K,) the mean share of each topic in the documents, which is shown in its title.
        titles: the name of each topic; "topic 0", "topic 1", ... by default.
        font: a family name or the path of a font file; by default, a font that has the words' characters.
        language: "en" or "zh", the language of labels and the note. They are English if no font has Chinese
            characters; a warning then names some that have them.

    Raises:
        InputError: `font` is not installed, or not a font.
        SettingError: there is no such language.

    Examples:
        >>> import topicloom as tl
        >>> pages = tl.figures.topic_pages([["cat", "dog"], ["rain", "sun"]], [[0.0, -1.0], [0.0, -0.5]], [0.6, 0.4])
        >>> len(pages)
        1
    """
    language = label_language(language, font)
    names = list(titles or [TOPIC(language, topic=topic) for topic in range(len(words))])
    fonts = fonts_for([word for text in (*words, names, characters(language)) for word in text], font)
    known = np.asarray(scores, np.float64)  # (K, n)
    lengths = np.exp(known - known.max(axis=1, keepdims=True))  # (K, n), 1 for the best word
    pages, panels = panel_pages(names, shares, BARS(language), language, fonts)
    for topic, (axes, title) in enumerate(panels):
        _bars(axes, words[topic], lengths[topic], title, fonts)
    return pages


def _bars(axes: Axes, names: Sequence[str], lengths: npt.NDArray[np.float64], title: str, fonts: Sequence[str]) -> None:
    style: dict[str, Any] = {"fontsize": 9, "fontfamily": fonts, "parse_math": False}  # "$5 or $6" is not a formula
    axes.barh(range(len(names)), lengths, height=0.86, color=PALE)
    for place, name in enumerate(names):
        axes.text(0, place, f" {name}", va="center", color=BLACK, clip_on=True, **style)
    axes.set_xlim(0, 1)
    axes.set_ylim(max(len(names), 1) - 0.5, -0.5)  # the first on top
    axes.set_title(title, loc="left", y=1.0, pad=3, color=BLUE, **style)  # a given y spares matplotlib a search


def word_clouds(
    words: Sequence[Sequence[str]],
    scores: npt.ArrayLike,
    shares: npt.ArrayLike | None = None,
    *,
    titles: Sequence[str] | None = None,
    random_state: int = 0,
    font: str | PathLike[str] | None = None,
    language: Language = "en",
) -> list[Figure]:
    """Draw a cloud of words for every topic, on pages of at most 40 topics.

    Args:
        words: the words of each topic, best first.
        scores: (K, n) the score that ranks each of these words, as `topicloom.ranking.word_scores` computes it. Scores
            are logarithms: the size of a word grows with exp(score).
        shares: (K,) the mean share of each topic in the documents, which is shown in its title.
        titles: the name of each topic; "topic 0", "topic 1", ... by default.
        random_state: the seed of the places.
        font: a family name or the path of a font file; by default, the font that has the most characters of all words.
        language: "en" or "zh", of the titles and the note; English if no font has Chinese characters.

    Raises:
        MissingExtraError: the package wordcloud is not installed.
        InputError: a topic has no word, or `font` is not installed.
        SettingError: there is no such language.

    Examples:
        >>> import topicloom as tl
        >>> pages = tl.figures.word_clouds([["cat", "dog"]], [[0.0, -1.0]])
        >>> len(pages)
        1
    """
    try:
        from wordcloud import WordCloud
    except ImportError:
        raise MissingExtraError.of("drawing word clouds", "wordcloud", "clouds") from None
    if not all(words):
        raise InputError(f"topic {[bool(each) for each in words].index(False)} has no words; leave it out")
    known = np.asarray(scores, np.float64)  # (K, n)
    sizes = np.exp(known - known.max(axis=1, keepdims=True))  # (K, n), 1 for the best word
    language = label_language(language, font)
    names = list(titles or [TOPIC(language, topic=topic) for topic in range(len(words))])
    file = file_for([word for topic in words for word in topic], font)
    fonts = fonts_for([*names, *characters(language)], font)
    pages, panels = panel_pages(names, shares, CLOUDS(language), language, fonts)
    for topic, (axes, title) in enumerate(panels):
        cloud = WordCloud(
            font_path=file, width=_CLOUD_SIZE[0], height=_CLOUD_SIZE[1], background_color="white", margin=6,
            prefer_horizontal=1.0, relative_scaling=0.6, min_font_size=_SMALLEST_FONT, max_font_size=_LARGEST_FONT,
            random_state=random_state, color_func=_colour,
        )  # fmt: skip
        weights = {word: max(float(size), 1e-3) for word, size in zip(words[topic], sizes[topic], strict=True) if word}
        axes.imshow(cloud.generate_from_frequencies(weights).to_array(), interpolation="bilinear")
        axes.set_title(title, loc="left", pad=3, color=BLUE, fontsize=9, fontfamily=fonts, parse_math=False)
    return pages


def _colour(word: str, font_size: float, **_: Any) -> tuple[int, ...]:
    depth = min(1.0, (font_size - _SMALLEST_FONT) / (_LARGEST_FONT - _SMALLEST_FONT)) ** 0.5
    return tuple(round(pale + depth * (dark - pale)) for pale, dark in zip(_PALEST, _DARKEST, strict=True))


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
        font: a family name or the path of a font file; by default, a font that has the characters.
        language: "en" or "zh", of the labels and the note; English if no font has Chinese characters.

    Raises:
        InputError: the sizes do not match, or `font` is not installed.
        SettingError: there is no such language.

    Examples:
        >>> import topicloom as tl
        >>> figure = tl.figures.similarity_map([[1, 0.2], [0.2, 1]], ["art", "sport"])
        >>> len(figure.axes)
        3
    """
    from scipy.cluster.hierarchy import leaves_list

    values = np.asarray(similarity, np.float64)
    n_topics = len(names)
    if values.shape != (n_topics, n_topics):
        raise InputError(f"the similarity of {n_topics} topics is a matrix of shape {values.shape}; make it (K, K)")
    merges = _tree(values) if tree is None and n_topics > 1 else tree
    order = [0] if merges is None else leaves_list(np.asarray(merges)).tolist()
    language = label_language(language, font)
    fonts = fonts_for([*names, note, *characters(language)], font)
    cell = min(max(_MAP_SIDE / max(1, n_topics), 0.15 if n_topics <= _MOST_NAMED else 0.05), 0.5)
    side = cell * n_topics
    width, height = _TREE_WIDTH + side + _NAMES_WIDTH + _SCALE_WIDTH, side + 0.25 + _NUMBERS_HEIGHT
    figure = noted(width, height, note)
    full = figure.get_figheight()
    bottom = full - 0.25 - side
    field = figure.add_axes((_TREE_WIDTH / width, bottom / full, side / width, side / full))
    low, high = _scale(values)
    shown = np.ma.masked_array(values[np.ix_(order, order)], mask=np.eye(n_topics, dtype=bool))
    field.set_facecolor(LIGHT)  # of the diagonal, on which each topic meets itself
    image = field.imshow(shown, cmap="Blues", vmin=low, vmax=high, interpolation="nearest")
    _label(field, order, names, fontsize=min(8.0, 0.62 * 72 * cell), fontfamily=fonts)
    if merges is not None:
        stem = figure.add_axes((0.05 / width, bottom / full, (_TREE_WIDTH - 0.08) / width, side / full))
        _draw_tree(stem, np.asarray(merges))
    _draw_scale(figure, image, (width - _SCALE_WIDTH + 0.05) / width, bottom + side, side, language)
    set_fonts(figure, fonts)
    return figure


def returning_topics(
    similarity: Mapping[str, npt.ArrayLike],
    names: Sequence[str],
    *,
    threshold: float = 0.4,
    font: str | PathLike[str] | None = None,
    language: Language = "en",
) -> Figure:
    """Draw in which further fits of a model its topics return: a row for each topic, and a column for each fit.

    Args:
        similarity: for "seed", "order" and "bootstrap", or some of them, the similarities (K, R) of the topics and
            their partners in R further fits, as `Evaluation.stability` has them.
        names: the K names of the topics.
        threshold: the similarity from which on a topic returns.
        font: a family name or the path of a font file; by default, a font that has the characters.
        language: "en" or "zh", of the labels and the note; English if no font has Chinese characters.

    Raises:
        InputError: the sizes do not match, or `font` is not installed.
        SettingError: there is no such language.

    Examples:
        >>> import topicloom as tl
        >>> figure = tl.figures.returning_topics({"seed": [[0.9, 0.8], [0.7, 0.1]]}, ["art", "sport"])
        >>> len(figure.axes)
        2
    """
    groups = {vary: np.asarray(each, np.float64) for vary, each in similarity.items()}
    n_topics = len(names)
    if not groups or any(each.ndim != 2 or len(each) != n_topics or not each.size for each in groups.values()):
        shapes = ", ".join(str(each.shape) for each in groups.values()) or "none"
        raise InputError(f"the similarities of {counted(n_topics, 'topic')} have the shapes {shapes}; make them (K, R)")
    values = np.concatenate(list(groups.values()), axis=1)  # (K, R of all kinds)
    shares = (values >= threshold).mean(axis=1)
    order = np.lexsort((-values.mean(axis=1), -shares)).tolist()
    language = label_language(language, font)
    note = RETURNING(language, threshold=threshold)
    fonts = fonts_for([*names, note, *characters(language)], font)
    cell = min(max(_MAP_SIDE / n_topics, 0.15 if n_topics <= _MOST_NAMED else 0.05), 0.3)
    n_fits, gap = values.shape[1], 0.5  # a gap of half a cell between kinds of fits
    across = max(cell, 0.28) * (n_fits + gap * (len(groups) - 1))
    side, left = cell * n_topics, 0.6
    width, height = max(left + across + _NAMES_WIDTH + _SCALE_WIDTH, 5.0), side + 0.5
    figure = noted(width, height, note)
    full = figure.get_figheight()
    bottom = full - 0.4 - side
    field = figure.add_axes((left / width, bottom / full, across / width, side / full))
    field.set_xlim(-0.5, n_fits - 0.5 + gap * (len(groups) - 1))
    field.set_ylim(n_topics - 0.5, -0.5)
    style: dict[str, Any] = {"fontsize": min(8.0, 0.62 * 72 * cell), "fontfamily": fonts, "color": BLACK}
    image, first = None, 0.0
    for vary, each in groups.items():
        extent = (first - 0.5, first + each.shape[1] - 0.5, n_topics - 0.5, -0.5)
        image = field.imshow(
            each[order], cmap="Blues", vmin=0, vmax=1, interpolation="nearest", aspect="auto", extent=extent
        )
        rows, columns = np.nonzero(each[order] < threshold)
        field.plot(columns + first, rows, ".", color=GREY, markersize=min(3.0, 20 * cell))
        title = VARIED[vary](language) if vary in VARIED else vary
        field.text(first - 0.5, -0.6, title, va="bottom", parse_math=False, **style | {"fontsize": 8, "color": GREY})
        first += each.shape[1] + gap
    field.set_xlim(-0.5, first - gap - 0.5)
    field.set_ylim(n_topics - 0.5, -0.5)
    field.set_xticks([])
    field.set_yticks([])
    for edge in field.spines.values():
        edge.set_visible(False)
    for place, topic in enumerate(order):
        if n_topics <= _MOST_NAMED or place % (n_topics // 40 + 1) == 0:
            field.text(-0.7, place, f"{shares[topic]:.0%}", va="center", ha="right", **style)
            name = shortened(names[topic], 34)
            field.text(first - gap - 0.3, place, name, va="center", parse_math=False, **style)
    assert image is not None
    _draw_scale(figure, image, (width - _SCALE_WIDTH + 0.1) / width, bottom + side, side, language)
    set_fonts(figure, fonts)
    return figure


def _label(field: Axes, order: Sequence[int], names: Sequence[str], **font: Any) -> None:
    """Write the names of the topics beside a map and their numbers below it; many topics have no room for all."""
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
    from scipy.cluster.hierarchy import dendrogram

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
    from scipy.cluster.hierarchy import linkage, optimal_leaf_ordering
    from scipy.spatial.distance import squareform

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


def _draw_scale(figure: Figure, image: Any, left: float, top: float, side: float, language: Language) -> None:
    """Draw the scale of similarities beside a square field.

    Args:
        figure: the figure.
        image: what the scale belongs to.
        left: its left edge, as a share of the figure's width.
        top, side: the upper edge and the height of the field in inches.
        language: the language of its title.
    """
    width, full = figure.get_size_inches()
    tall = min(side, 2.0)
    bar = figure.add_axes((left, (top - tall) / full, 0.12 / width, tall / full))
    figure.colorbar(image, cax=bar)
    bar.tick_params(labelsize=7)
    pad = 6 if language == "zh" else 4  # Chinese characters reach below the line
    bar.set_title(SIMILARITY(language), fontsize=7, color=GREY, loc="left", pad=pad)
