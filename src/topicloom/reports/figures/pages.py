"""Pages with a panel for each topic."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..wording import Language, joined
from ..wording.figures import PAGE, SHARES
from .style import MARGIN, noted, shortened

_PANEL = (2.5, 2.1)  # inches, width and height
_COLUMNS, _MOST_COLUMNS, _MOST_ROWS = 5, 8, 5  # of a page, which fits a screen
_LONGEST = 30  # characters of a title


def panel_pages(
    names: Sequence[str],
    shares: npt.ArrayLike | None,
    note: str,
    language: Language = "en",
    fonts: Sequence[str] = (),
) -> tuple[list[Figure], list[tuple[Axes, str]]]:
    """Make pages of at most 40 topics, which can be read on a screen.

    Args:
        names: the names of the topics.
        shares: (K,) the mean share of each topic in the documents, which is added to its title; None for none.
        note: stands at the bottom of each page.
        language: of the sentences that follow the note.
        fonts: the font families of the note, as for `noted`.

    Returns:
        the pages, and an empty panel with its title for each topic.
    """
    titles = [shortened(name, _LONGEST) for name in names]
    if shares is not None:
        titles = [
            f"{shortened(name, _LONGEST - 8)} · {share:.1%}"
            for name, share in zip(names, np.asarray(shares), strict=True)
        ]
    n_pages = max(1, math.ceil(len(titles) / (_MOST_COLUMNS * _MOST_ROWS)))
    pages, panels = [], []
    for number, topics in enumerate(np.array_split(np.arange(len(titles)), n_pages), 1):
        notes = [note] + [SHARES(language)] * (shares is not None)
        notes += [PAGE(language, number=number, n_pages=n_pages)] * (n_pages > 1)
        figure, all_axes = _page(len(topics), joined(notes, language), fonts)
        panels += [(axes, titles[topic]) for axes, topic in zip(all_axes, topics.tolist(), strict=False)]
        pages.append(figure)
    return pages, panels


def _page(n_topics: int, note: str, fonts: Sequence[str] = ()) -> tuple[Figure, list[Axes]]:
    columns = min(n_topics, max(_COLUMNS, math.ceil(n_topics / _MOST_ROWS))) or 1
    rows = max(1, math.ceil(n_topics / columns))
    # The margins are fixed, in inches. Words are drawn inside their panels, so that no text has to be measured.
    figure = noted(columns * _PANEL[0], rows * _PANEL[1], note, left=MARGIN, fonts=fonts)
    figure.subplots_adjust(wspace=0.08, hspace=0.2)
    all_axes = list(figure.subplots(rows, columns, squeeze=False).ravel())
    for axes in all_axes:
        axes.axis("off")
    return figure, all_axes
