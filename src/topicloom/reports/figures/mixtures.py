"""Pictures of documents as mixtures of topics: how sparse they are, and the path between two of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

from ...errors import InputError, SettingError
from .. import wording as words
from ..palette import topic_colours
from ..wording import Language, characters
from .style import (
    BLACK,
    BLUE,
    GREY,
    LIGHT,
    PALE,
    darker,
    fonts_for,
    label_language,
    noted,
    set_fonts,
    shortened,
)

if TYPE_CHECKING:
    from ...models.inference import Interpolation


# How many topics documents have.
THRESHOLDS = (0.01, 0.05, 0.1, 0.2)
_MOST_RANKS = 10
_SHARES_AT_ONCE = 1 << 18  # of which sorted copies and logarithms are made
_COUNTS = ("0", "1", "2", "3", "4", "5+")
_COUNT_COLOURS = ("#e6e6e6", "#1d3f60", "#2f5d8a", "#6d97c0", "#a9c5e0", "#d9e6f2")
# The triangle of three topics.
_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, math.sqrt(3) / 2]])
_TRIANGLES_IN_A_ROW = 4
# The path between two documents.
_STEP_WIDTH, _LEFT_MARGIN, _LEGEND_WIDTH = 1.12, 0.5, 2.4  # inches
_BARS_HEIGHT, _WORD_HEIGHT, _TITLES_HEIGHT = 1.9, 0.17, 0.62  # inches
_LEAST_COLOURED_SHARE = 0.05  # that a topic has at some step; topics with less are grey
_MOST_COLOURED_TOPICS = 10


def sparsity(
    theta: npt.ArrayLike,
    thresholds: Sequence[float] = THRESHOLDS,
    *,
    font: str | PathLike[str] | None = None,
    language: Language = "en",
) -> Figure:
    """Draw how the topic shares of documents are distributed.

    Args:
        theta: (n, K), rows sum to 1; without documents that have no known word.
        thresholds: the shares from which topics are counted.
        font: a family name or the path of a font file; by default, a font that has the characters.
        language: "en" or "zh", of the labels and the note; English if no font has Chinese characters.

    Raises:
        InputError: there is no document, or `font` is not installed.
        SettingError: there is no such language.

    Examples:
        >>> import topicloom as tl
        >>> figure = tl.figures.sparsity([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])
        >>> len(figure.axes)
        3
    """
    return sparsity_of([np.asarray(theta)], thresholds, font=font, language=language)


def sparsity_of(
    parts: Iterable[npt.NDArray[Any]],
    thresholds: Sequence[float] = THRESHOLDS,
    *,
    font: str | PathLike[str] | None = None,
    language: Language = "en",
) -> Figure:
    """Draw what `sparsity` draws, from documents in parts, so that no copy of all topic shares is made.

    Args:
        parts: arrays (n, K) whose rows sum to 1; without documents that have no known word.
        thresholds, font, language: as in `sparsity`.

    Raises:
        InputError, SettingError: as in `sparsity`.
    """
    ranked, large, effective, n_topics = [], [], [], 0
    for part in chain.from_iterable(map(_in_blocks, parts)):
        shares, n_topics = part.astype(np.float64), part.shape[1]
        ranked.append(-np.sort(-shares, axis=1)[:, :_MOST_RANKS])
        large.append(np.column_stack([(shares >= threshold).sum(axis=1) for threshold in thresholds]))
        effective.append(effective_topics(shares))
    if not ranked:
        raise InputError("no document has a known word, so there are no topic shares to draw")
    language = label_language(language, font)
    figure = noted(10.5, 3.3, words.SPARSITY(language), left=0.66 if language == "zh" else 0.6, top=0.35)
    figure.subplots_adjust(wspace=0.3, bottom=figure.subplotpars.bottom + 0.36 / figure.get_figheight())
    ranks, counts, entropy = figure.subplots(1, 3)
    _draw_ranks(ranks, np.concatenate(ranked), language)
    _draw_counts(counts, np.concatenate(large), thresholds, language)
    _draw_entropy(entropy, np.concatenate(effective), n_topics, language)
    for axes in (ranks, counts, entropy):
        axes.tick_params(labelsize=8)
        axes.xaxis.label.set(fontsize=8, color=GREY)
        axes.yaxis.label.set(fontsize=8, color=GREY)
        axes.spines[["top", "right"]].set_visible(False)
    set_fonts(figure, fonts_for(characters(language), font))
    return figure


def _in_blocks(theta: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    """Yield documents in blocks of about 260,000 shares."""
    if theta.ndim != 2 or not theta.size:
        return
    rows = max(1, _SHARES_AT_ONCE // theta.shape[1])
    for first in range(0, len(theta), rows):
        yield theta[first : first + rows]


def effective_topics(theta: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return exp(-sum_k theta_k log theta_k) of each document, (n, K) -> (n,), from 1 to K."""
    logs = np.log(np.where(theta > 0, theta, 1.0))
    number: npt.NDArray[np.float64] = np.exp(-(theta * logs).sum(axis=1))
    return number


def _draw_ranks(axes: Axes, ranked: npt.NDArray[np.float64], language: Language) -> None:
    n_ranks = min(_MOST_RANKS, ranked.shape[1])
    low, median, high = np.quantile(ranked[:, :n_ranks], [0.1, 0.5, 0.9], axis=0)
    places = np.arange(1, n_ranks + 1)
    axes.fill_between(places, low, high, color=PALE)
    axes.plot(places, median, color=BLUE, marker="o", markersize=3)
    axes.set_ylim(0, 1)
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.set_title(words.RANKED(language), loc="left", fontsize=9)
    axes.set_xlabel(words.RANK(language))
    axes.set_ylabel(words.SHARE(language))


def _draw_counts(axes: Axes, large: npt.NDArray[np.intp], thresholds: Sequence[float], language: Language) -> None:
    for place, n_large in enumerate(large.T):
        found = np.minimum(n_large, len(_COUNTS) - 1)
        parts = np.bincount(found, minlength=len(_COUNTS)) / len(found)
        start = 0.0
        for count, part in enumerate(parts.tolist()):
            axes.barh(
                place, part, left=start, color=_COUNT_COLOURS[count], height=0.72, edgecolor="white", linewidth=0.5
            )
            if part > 0.07:
                colour = "white" if count in (1, 2) else BLACK
                axes.text(start + part / 2, place, _COUNTS[count], ha="center", va="center", color=colour, fontsize=8)
            start += part
    axes.set_yticks(range(len(thresholds)), [f"{100 * threshold:g}%" for threshold in thresholds])
    axes.set_ylim(len(thresholds) - 0.5, -0.5)
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.set_title(words.AT_LEAST(language), loc="left", fontsize=9)
    axes.set_xlabel(words.DOCUMENTS(language))


def _draw_entropy(axes: Axes, numbers: npt.NDArray[np.float64], n_topics: int, language: Language) -> None:
    most = max(1.5, min(float(n_topics), float(np.quantile(numbers, 0.995)) + 0.5))
    axes.hist(
        np.minimum(numbers, most),
        bins=np.linspace(1, most, 31).tolist(),
        color=PALE,
        weights=np.full(len(numbers), 1 / len(numbers)),
    )
    median = float(np.median(numbers))
    axes.axvline(median, color=BLUE, linewidth=1.2)
    right = median > (1 + most) / 2
    axes.annotate(
        words.MEDIAN(language, median=median), (median, 0.97), (-4 if right else 4, 0),
        xycoords=axes.get_xaxis_transform(), textcoords="offset points", ha="right" if right else "left", va="top",
        color=BLUE, fontsize=8,
    )  # fmt: skip
    axes.set_xlim(1, most)
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.3g}%"))
    axes.set_title(words.MIXTURE(language), loc="left", fontsize=9)
    axes.set_xlabel(words.TOPICS_AT_MOST(language, n=n_topics))
    axes.set_ylabel(words.DOCUMENTS(language))


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
        font: a family name or the path of a font file; by default, a font that has the characters.
        language: "en" or "zh", of the labels and the note; English if no font has Chinese characters.

    Raises:
        InputError: `font` is not installed.
        SettingError: a parameter is not positive, or does not have one or three numbers; or there is none.

    Examples:
        >>> import topicloom as tl
        >>> figure = tl.figures.simplex([0.1, 1], n_documents=50)
        >>> len(figure.axes)
        2
    """
    parameters = [_three(alpha) for alpha in alphas]
    if not parameters:
        raise SettingError("`alphas` is empty; give one number or more, such as 0.1")
    if n_documents < 1:
        raise SettingError(f"`n_documents={n_documents}` should be a whole number from 1")
    language = label_language(language, font)
    generator = np.random.default_rng(random_state)
    columns = min(_TRIANGLES_IN_A_ROW, len(parameters))
    rows = math.ceil(len(parameters) / columns)
    figure = noted(max(5.0, 2.7 * columns), 2.75 * rows, words.SIMPLEX(language))
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
    set_fonts(figure, fonts_for(characters(language), font))
    return figure


def _triangle(
    axes: Axes, theta: npt.NDArray[np.float64], parameter: npt.NDArray[np.float64], language: Language
) -> None:
    axes.fill(*_CORNERS.T, facecolor="#f6f6f6", edgecolor=GREY, linewidth=0.8)
    size = float(np.clip(6_000 / len(theta), 2, 30))
    x, y = (theta @ _CORNERS).T
    axes.scatter(x, y, size, BLUE, alpha=0.5, linewidths=0, clip_on=False, zorder=3)
    for corner, (ha, va) in enumerate((("left", "top"), ("right", "top"), ("center", "bottom"))):
        name = words.TOPIC(language, topic=corner)
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


def interpolation_strip(
    path: Interpolation,
    names: Sequence[str],
    *,
    titles: tuple[str, str] | None = None,
    font: str | PathLike[str] | None = None,
    language: Language = "en",
) -> Figure:
    """Draw what a model expects between two documents: topic shares as bars, with the words of each step below.

    Args:
        path: what `interpolate` of a model returned.
        names: the K names of the topics.
        titles: what the two documents are called; their texts, or else their ids, by default.
        font: a family name or the path of a font file; by default, a font that has the characters.
        language: "en" or "zh", of the labels and the note; English if no font has Chinese characters.

    Raises:
        InputError: there are more or fewer names than topics, or `font` is not installed.
        SettingError: there is no such language.

    Examples:
        >>> import topicloom as tl
        >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
        >>> model = tl.GSM(3, epochs=1, random_state=0, device="cpu").fit(texts)
        >>> path = model.interpolate(["cat dog"], ["rain sun"], steps=3)
        >>> figure = tl.figures.interpolation_strip(path, ["0", "1", "2"])
        >>> len(figure.axes)
        2
    """
    if len(names) != path.theta.shape[1]:
        raise InputError(f"there are {len(names)} names for {path.theta.shape[1]} topics; give one for each topic")
    steps, n_words = len(path), len(path.words[0])
    language = label_language(language, font)
    titles = titles or (_title(path, 0, language), _title(path, 1, language))
    most = path.theta.max(axis=0)  # (K,)
    largest = np.argsort(-most, kind="stable")[:_MOST_COLOURED_TOPICS].tolist()
    shown = [topic for topic in largest if most[topic] >= _LEAST_COLOURED_SHARE]
    shown.sort(key=lambda topic: float((path.theta[:, topic] * path.positions).sum() / path.theta[:, topic].sum()))
    by_topic = topic_colours(len(names))
    colours = {topic: by_topic[topic] for topic in shown}
    labels = [shortened(names[topic], 32) for topic in shown]
    used = (*labels, *titles, *characters(language), *(word for best in path.words for word in best))
    fonts = fonts_for(used, font)
    width = _LEFT_MARGIN + _STEP_WIDTH * steps + _LEGEND_WIDTH
    to_bars, words_height = _TITLES_HEIGHT + _BARS_HEIGHT, _WORD_HEIGHT * n_words
    figure = noted(width, to_bars + 0.25 + words_height, words.INTERPOLATION(language), fonts=fonts)
    height = figure.get_figheight()
    left, across = _LEFT_MARGIN / width, _STEP_WIDTH * steps / width
    bars = figure.add_axes((left, 1 - to_bars / height, across, _BARS_HEIGHT / height))
    below = figure.add_axes((left, 1 - (to_bars + 0.22 + words_height) / height, across, words_height / height))
    _draw_bars(bars, path, shown, labels, colours, fonts, words.OTHER_TOPICS(language))
    for side, title in enumerate(titles):
        shown_title = shortened(title, int(12 * (width - _LEFT_MARGIN)))
        figure.text(
            left, 1 - (0.12 + 0.2 * side) / height, f"{'AB'[side]}  {shown_title}",
            va="top", fontsize=9, color=BLACK, fontfamily=fonts, parse_math=False,
        )  # fmt: skip
    below.set_xlim(-0.5, steps - 0.5)
    below.set_ylim(n_words - 0.5, -0.5)
    below.axis("off")
    for step, best in enumerate(path.words):
        for place, word in enumerate(best):
            colour = colours.get(int(path.word_topics[step, place]))
            below.text(
                step, place, shortened(word, 16), ha="center", va="center", fontsize=8, fontfamily=fonts,
                color=darker(colour) if colour else GREY, parse_math=False,
            )  # fmt: skip
    return figure


def _draw_bars(
    axes: Axes,
    path: Interpolation,
    shown: Sequence[int],
    labels: Sequence[str],
    colours: dict[int, str],
    fonts: Sequence[str],
    others: str,
) -> None:
    steps = np.arange(len(path))
    start = np.zeros(len(path))
    for topic, label in zip(shown, labels, strict=True):
        axes.bar(
            steps, path.theta[:, topic], 0.94, bottom=start, color=colours[topic], edgecolor="white", linewidth=0.4,
            label=label,
        )  # fmt: skip
        start = start + path.theta[:, topic]
    rest = np.maximum(1 - start, 0)
    if rest.max() > 1e-3:
        axes.bar(steps, rest, 0.94, bottom=start, color=LIGHT, label=others)
    axes.set_xlim(-0.5, len(path) - 0.5)
    axes.set_ylim(0, 1)
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.tick_params(labelsize=7, colors=GREY, length=0)
    places = ["A", *(f"{position:.0%}" for position in path.positions[1:-1]), "B"]
    axes.set_xticks(steps, places)
    axes.spines[:].set_visible(False)
    handles, names = axes.get_legend_handles_labels()
    legend = axes.legend(
        handles[::-1], names[::-1], loc="upper left", bbox_to_anchor=(1.0, 1.04), frameon=False, handlelength=0.9,
        prop={"family": list(fonts), "size": 8}, labelspacing=0.25,
    )  # fmt: skip
    for text in legend.get_texts():
        text.set_parse_math(False)


def _title(path: Interpolation, side: int, language: Language) -> str:
    end = path.ends[side]
    text = " ".join(end.texts[0].split()) if end.texts is not None else ""
    return text or words.DOCUMENT(language, id=end.ids[0])
