"""The top words of topics as bars: a panel for each topic, on pages."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..fonts import fonts_for, label_language
from ..wording import Language
from ..wording.figures import BARS, TOPIC, characters
from .pages import panel_pages
from .style import BLACK, BLUE, PALE


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
