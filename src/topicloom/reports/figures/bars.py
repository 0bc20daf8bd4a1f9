"""The top words of topics as bars: a panel for each topic, on pages."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..fonts import fonts_for
from .style import BLACK, BLUE, GREY, PALE

_PANEL = (2.5, 2.1)  # inches, width and height
_COLUMNS, _MOST_COLUMNS, _MOST_ROWS = 5, 8, 5  # of a page, which fits a screen
_MARGIN, _LINE = 0.12, 0.15  # inches; the second is the height of a line of the note
_CHARACTERS = 18  # of the note, in an inch
_NOTE = (
    "Bars show relevance, which also orders the words: the geometric mean of a word's probability in the topic and its "
    "lift (that probability / its share of the corpus)."
)
_SHARES = "Percentages: mean share of the documents."


def topic_pages(
    words: Sequence[Sequence[str]],
    scores: npt.ArrayLike,
    shares: npt.ArrayLike | None = None,
    *,
    titles: Sequence[str] | None = None,
    font: str | PathLike[str] | None = None,
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

    Raises:
        InputError: `font` is not installed, or not a font.
    """
    names = list(titles or [f"topic {topic}" for topic in range(len(words))])
    fonts = fonts_for((word for text in (*words, names) for word in text), font)
    if shares is not None:
        names = [f"{name} · {share:.1%}" for name, share in zip(names, np.asarray(shares), strict=True)]
    known = np.asarray(scores, np.float64)  # (K, n)
    lengths = np.exp(known - known.max(axis=1, keepdims=True))  # (K, n), 1 for the best word
    n_pages = max(1, math.ceil(len(words) / (_MOST_COLUMNS * _MOST_ROWS)))
    pages = []
    for number, topics in enumerate(np.array_split(np.arange(len(words)), n_pages), 1):
        note = [_NOTE] + [_SHARES] * (shares is not None) + [f"Page {number} of {n_pages}."] * (n_pages > 1)
        figure, all_axes = _page(len(topics), " ".join(note))
        for axes, topic in zip(all_axes, topics.tolist(), strict=False):
            _bars(axes, words[topic], lengths[topic], names[topic], fonts)
        pages.append(figure)
    return pages


def _page(n_topics: int, note: str) -> tuple[Figure, list[Axes]]:
    """Make a page with a panel for each topic, and a note at the bottom."""
    columns = min(n_topics, max(_COLUMNS, math.ceil(n_topics / _MOST_ROWS))) or 1
    rows = max(1, math.ceil(n_topics / columns))
    width = columns * _PANEL[0]
    below = textwrap.fill(note, int(_CHARACTERS * (width - 2 * _MARGIN)))
    bottom = 2 * _MARGIN + _LINE * (below.count("\n") + 1)
    height = rows * _PANEL[1] + bottom
    figure = Figure(figsize=(width, height))
    # The margins are fixed, in inches. Words are drawn inside their panels, so that no text has to be measured.
    figure.subplots_adjust(
        left=_MARGIN / width, right=1 - _MARGIN / width, bottom=bottom / height, top=1 - 0.3 / height,
        wspace=0.08, hspace=0.2,
    )  # fmt: skip
    figure.text(_MARGIN / width, _MARGIN / height, below, va="bottom", color=GREY, fontsize=8, linespacing=1.25)
    all_axes = list(figure.subplots(rows, columns, squeeze=False).ravel())
    for axes in all_axes:
        axes.axis("off")
    return figure, all_axes


def _bars(axes: Axes, names: Sequence[str], lengths: npt.NDArray[np.float64], title: str, fonts: Sequence[str]) -> None:
    style: dict[str, Any] = {"fontsize": 9, "fontfamily": fonts, "parse_math": False}  # "$5 or $6" is not a formula
    axes.barh(range(len(names)), lengths, height=0.86, color=PALE)
    for place, name in enumerate(names):
        axes.text(0, place, f" {name}", va="center", color=BLACK, clip_on=True, **style)
    axes.set_xlim(0, 1)
    axes.set_ylim(max(len(names), 1) - 0.5, -0.5)  # the first on top
    axes.set_title(title, loc="left", y=1.0, pad=3, color=BLUE, **style)  # a given y spares matplotlib a search
