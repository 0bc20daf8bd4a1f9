"""The path between two documents as a strip: the topics and the words of each step."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from ...errors import InputError
from ..fonts import fonts_for, label_language
from ..wording import Language
from ..wording.figures import DOCUMENT, INTERPOLATION, OTHER_TOPICS, characters
from .style import BLACK, GREY, LIGHT, colours_of, darker, noted, shortened

if TYPE_CHECKING:
    from ...models.interpolation import Interpolation

_STEP, _LEFT, _NAMES = 1.12, 0.5, 2.4  # inches: the width of a step, and what is left and right of them
_BARS, _WORD, _TITLES = 1.9, 0.17, 0.62  # inches: heights of the bars, of a word and of the titles
_LEAST, _MOST = 0.05, 10  # the share that a topic needs at some step to have a colour; so many topics at most


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
        font, language: as for `topic_pages`.

    Raises:
        InputError: there are more or fewer names than topics, or `font` is not installed.
    """
    if len(names) != path.theta.shape[1]:
        raise InputError(f"there are {len(names)} names for {path.theta.shape[1]} topics; give one for each topic")
    steps, n_words = len(path), len(path.words[0])
    language = label_language(language, font)
    titles = titles or (_title(path, 0, language), _title(path, 1, language))
    most = path.theta.max(axis=0)  # (K,)
    shown = [topic for topic in np.argsort(-most, kind="stable")[:_MOST].tolist() if most[topic] >= _LEAST]
    shown.sort(key=lambda topic: float((path.theta[:, topic] * path.positions).sum() / path.theta[:, topic].sum()))
    colours = dict(zip(shown, colours_of(len(shown)), strict=True))
    labels = [shortened(names[topic], 32) for topic in shown]
    used = (*labels, *titles, *characters(language), *(word for words in path.words for word in words))
    fonts = fonts_for(used, font)
    width = _LEFT + _STEP * steps + _NAMES
    figure = noted(width, _TITLES + _BARS + 0.25 + _WORD * n_words, INTERPOLATION(language), fonts=fonts)
    height = figure.get_figheight()
    strip = (_LEFT / width, _STEP * steps / width)
    bars = figure.add_axes((strip[0], 1 - (_TITLES + _BARS) / height, strip[1], _BARS / height))
    below = figure.add_axes(
        (strip[0], 1 - (_TITLES + _BARS + 0.22 + _WORD * n_words) / height, strip[1], _WORD * n_words / height)
    )
    _draw_bars(bars, path, shown, labels, colours, fonts, OTHER_TOPICS(language))
    for side, title in enumerate(titles):
        letter = "AB"[side]
        figure.text(
            _LEFT / width, 1 - (0.12 + 0.2 * side) / height, f"{letter}  {shortened(title, int(12 * (width - _LEFT)))}",
            va="top", fontsize=9, color=BLACK, fontfamily=fonts, parse_math=False,
        )  # fmt: skip
    below.set_xlim(-0.5, steps - 0.5)
    below.set_ylim(n_words - 0.5, -0.5)
    below.axis("off")
    for step, words in enumerate(path.words):
        for place, word in enumerate(words):
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
    return text or DOCUMENT(language, id=end.ids[0])
