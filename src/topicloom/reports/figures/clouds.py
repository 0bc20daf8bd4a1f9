"""Word clouds: the words of a topic, the larger the more they stand for it."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from ...errors import InputError, MissingExtraError
from ..fonts import file_for, fonts_for, label_language
from ..wording import Language
from ..wording.figures import CLOUDS, TOPIC, characters
from .pages import panel_pages
from .style import BLUE

_CLOUD = (480, 350)  # pixels, the shape of a panel
_LARGEST, _SMALLEST = 100, 9  # pixels, of a font
_PALEST, _DARKEST = (0x7F, 0xA3, 0xC7), (0x14, 0x33, 0x55)


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
        words, scores, shares, titles, font, language: as for `topic_pages`. A word is as large as its bar is long
            there. The font of a cloud is the one that has the most characters of all words.
        random_state: the seed of the places.

    Raises:
        MissingExtraError: the package wordcloud is not installed.
        InputError: a topic has no word, or `font` is not installed.
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
            font_path=file, width=_CLOUD[0], height=_CLOUD[1], background_color="white", margin=6,
            prefer_horizontal=1.0, relative_scaling=0.6, min_font_size=_SMALLEST, max_font_size=_LARGEST,
            random_state=random_state, color_func=_colour,
        )  # fmt: skip
        weights = {word: max(float(size), 1e-3) for word, size in zip(words[topic], sizes[topic], strict=True) if word}
        axes.imshow(cloud.generate_from_frequencies(weights).to_array(), interpolation="bilinear")
        axes.set_title(title, loc="left", pad=3, color=BLUE, fontsize=9, fontfamily=fonts, parse_math=False)
    return pages


def _colour(word: str, font_size: float, **_: Any) -> tuple[int, ...]:
    depth = min(1.0, (font_size - _SMALLEST) / (_LARGEST - _SMALLEST)) ** 0.5
    return tuple(round(pale + depth * (dark - pale)) for pale, dark in zip(_PALEST, _DARKEST, strict=True))
