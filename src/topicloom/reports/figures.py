"""Figures from arrays. Functions take no model, open no window and keep no state; each returns a Figure."""

from __future__ import annotations

import io
import logging
import math
import textwrap
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ..files import atomic_file
from ..metrics import CATALOGUE, Measure

logger = logging.getLogger("topicloom")

# Fonts with Chinese, Japanese or Korean characters; the most complete and most even ones come first.
CJK_FONTS = (
    "Noto Sans CJK SC", "Noto Sans SC", "Noto Sans CJK JP", "Source Han Sans SC", "Source Han Sans CN",
    "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Microsoft YaHei", "SimHei", "PingFang SC", "PingFang HK",
    "Hiragino Sans GB", "Heiti SC", "Heiti TC", "STHeiti", "Arial Unicode MS", "Droid Sans Fallback",
    "Noto Serif CJK SC", "Source Han Serif SC", "SimSun", "Songti SC", "STSong", "Microsoft JhengHei", "Yu Gothic",
    "Hiragino Sans", "IPAexGothic", "Malgun Gothic", "Apple SD Gothic Neo", "NanumGothic", "AR PL UMing CN",
    "AR PL UKai CN",
)  # fmt: skip
LATIN_FONT = "DejaVu Sans"  # comes with matplotlib

_BLACK, _GREY, _BLUE, _PALE = "#111111", "#555555", "#2f5d8a", "#bfd3e6"
_NOT_LOSSES = {"epoch", "learning_rate", "kl_weight", "separation_weight", "concentration", *CATALOGUE}
_TOGETHER = ("loss", "reconstruction", "validation_loss")  # losses of the same scale share a panel
_LABEL = 24  # characters in a line of an axis label
_PANEL = (2.5, 2.1)  # inches, width and height
_COLUMNS = 5
_DPI = 110
_LONGEST_SIDE = 60_000  # pixels; matplotlib draws no more than 65,536


def loss_curve(history: Sequence[dict[str, Any]]) -> Figure:
    """Draw the loss and its terms by epoch. Terms differ in scale, so each has a panel of its own.

    Args:
        history: one row per epoch, with "epoch", "loss" and any other terms; a term may be missing in some rows.
    """
    names = list(dict.fromkeys(name for row in history for name in row if name not in _NOT_LOSSES))
    first = [name for name in _TOGETHER if name in names]
    panels = [first] * bool(first) + [[name] for name in names if name not in first]
    figure, all_axes = _by_epoch(history, len(panels))
    for axes, panel in zip(all_axes, panels, strict=False):
        for name in panel:
            values = [row.get(name, math.nan) for row in history]
            axes.plot(_epochs(history), values, marker=_marker(history), label=name.replace("_", " "))
        axes.set_ylabel("per document", color=_GREY, fontsize=8)
        axes.legend(frameon=False, fontsize=9)
    return figure


def collapse_curve(history: Sequence[dict[str, Any]], n_topics: int) -> Figure:
    """Draw the measures of collapse by epoch, a panel for each.

    The divergence is a line for the median of the latent dimensions, in a band from the smallest to the largest.

    Args:
        history: one row per epoch; rows without measures of collapse are left out.
        n_topics: the number of topics.
    """
    watched = [measure for measure in CATALOGUE.values() if measure.group == "collapse" and "watch" in measure.uses]
    seen = [row for row in history if any(measure.name in row for measure in watched)]
    panels = [measure for measure in watched if any(measure.name in row for row in seen)]
    figure, all_axes = _by_epoch(seen, len(panels))
    for axes, measure in zip(all_axes, panels, strict=False):
        found = [row.get(measure.name, math.nan) for row in seen]
        values = [sorted(value) if isinstance(value, list) else [value] for value in found]
        middle = [row[len(row) // 2] for row in values]
        axes.plot(_epochs(seen), middle, marker=_marker(seen), color=_BLUE)
        axes.fill_between(_epochs(seen), [row[0] for row in values], [row[-1] for row in values], color=_PALE)
        axes.set_ylabel(textwrap.fill(measure.title, _LABEL), color=_GREY, fontsize=8)
        whole = {"topics": n_topics, "latent dimensions": len(seen[-1].get("kl_per_dimension", ()))}
        end = max(whole.get(measure.count_of, 0), measure.axis_end or 0)
        top = max(end, *(row[-1] for row in values))
        axes.set_ylim(-0.04 * top, 1.08 * top)  # a line at the very edge would not be visible
        axes.yaxis.set_major_locator(MaxNLocator("auto", integer=measure.is_count))
    return figure


def quality_curve(history: Sequence[dict[str, Any]]) -> Figure:
    """Draw coherence and diversity of the topics by epoch. Measures of the same scale share a panel.

    Args:
        history: one row per epoch; a measure may be missing in some rows, such as those between two measurements.
    """
    panels: dict[str, list[Measure]] = {}
    for measure in CATALOGUE.values():
        if measure.group in ("coherence", "diversity") and any(measure.name in row for row in history):
            panels.setdefault(measure.axis or measure.title, []).append(measure)
    figure, all_axes = _by_epoch(history, len(panels))
    for axes, (label, measures) in zip(all_axes, panels.items(), strict=False):
        for measure in measures:
            rows = [row for row in history if measure.name in row]
            values = [row[measure.name] for row in rows]
            axes.plot(_epochs(rows), values, marker=_marker(rows), label=measure.name.replace("_", " "))
        axes.set_ylabel(textwrap.fill(label, _LABEL), color=_GREY, fontsize=8)
        if end := measures[0].axis_end:
            axes.set_ylim(-0.04 * end, 1.08 * end)
        axes.legend(frameon=False, fontsize=9)
    return figure


def _by_epoch(history: Sequence[dict[str, Any]], n_panels: int) -> tuple[Figure, list[Axes]]:
    """Make panels one below the other, over the epochs of `history`."""
    rows = max(1, n_panels)
    figure = Figure(figsize=(7, 1.2 + 1.9 * rows), layout="constrained")
    all_axes = list(figure.subplots(rows, 1, sharex=True, squeeze=False)[:, 0])
    for axes in all_axes:
        axes.grid(alpha=0.3)
    epochs = _epochs(history)
    all_axes[-1].set_xlabel("epoch")
    all_axes[-1].xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    all_axes[-1].set_xlim(min(epochs, default=1) - 0.5, max(epochs, default=1) + 0.5)
    return figure, all_axes


def _epochs(history: Sequence[dict[str, Any]]) -> list[float]:
    return [row["epoch"] for row in history]


def _marker(history: Sequence[dict[str, Any]]) -> str:
    return "." if len(history) < 40 else ""  # a single epoch makes no line


def topic_bars(
    words: Sequence[Sequence[str]], weights: Sequence[Sequence[float]], titles: Sequence[str] | None = None
) -> Figure:
    """Draw a small panel of horizontal bars for every topic, with the best word on top.

    Args:
        words: each topic's words, best first.
        weights: the length of each word's bar; a panel's longest bar fills it.
        titles: the title of each panel; "topic 0", "topic 1", ... by default.
    """
    titles = titles or [f"topic {topic}" for topic in range(len(words))]
    fonts = fonts_for(word for text in (*words, titles) for word in text)
    columns = max(1, min(_COLUMNS, len(words)))
    rows = max(1, math.ceil(len(words) / columns))
    width, height = columns * _PANEL[0], rows * _PANEL[1]
    figure = Figure(figsize=(width, height))
    # Fixed margins in inches; words are inside their panels, so no text has to be measured.
    figure.subplots_adjust(
        left=0.12 / width, right=1 - 0.12 / width, bottom=0.1 / height, top=1 - 0.3 / height, wspace=0.08, hspace=0.2
    )
    all_axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in all_axes:
        axes.axis("off")
    for axes, names, sizes, title in zip(all_axes, words, weights, titles, strict=False):
        _bars(axes, names, sizes, title, fonts)
    return figure


def dot_panels(panels: Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]]) -> Figure:
    """Draw a panel for each measure, with a row of dots for each name and a short line at their mean.

    Args:
        panels: title -> series -> name -> values, which may be NaN; every panel has the same series and names.
    """
    columns = min(3, max(1, len(panels)))
    rows = math.ceil(len(panels) / columns)
    names = list(next(iter(next(iter(panels.values())).values()))) if panels else []
    height = 0.9 + 0.22 * len(names) * max(1, len(next(iter(panels.values()), {})))
    figure = Figure(figsize=(4 * columns, max(1.6, height) * max(1, rows)), layout="constrained")
    all_axes = figure.subplots(max(1, rows), columns, squeeze=False, sharey=True).ravel()
    for axes in all_axes[len(panels) :]:
        axes.set_visible(False)
    for axes, (title, series) in zip(all_axes, panels.items(), strict=False):
        for number, (label, values) in enumerate(series.items()):
            offset = 0.6 * ((number + 0.5) / len(series) - 0.5)
            for place, name in enumerate(names):
                known = [value for value in values[name] if math.isfinite(value)]
                colour = f"C{number}"
                axes.plot(known, [place + offset] * len(known), "o", color=colour, alpha=0.6, markersize=4)
                if known:
                    axes.plot([sum(known) / len(known)], [place + offset], "|", color=colour, markersize=11)
            axes.plot([], [], "o", color=f"C{number}", label=label)
        axes.set_title(title, fontsize=9)
        axes.tick_params(labelsize=8)
        axes.grid(axis="x", alpha=0.3)
    if panels:
        all_axes[0].set_yticks(range(len(names)), names, fontfamily=fonts_for(names))
        all_axes[0].set_ylim(len(names) - 0.5, -0.5)
        all_axes[0].legend(frameon=False, fontsize=8)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write a picture, completely or not at all, in the format that the suffix of `path` names."""
    dpi = min(_DPI, _LONGEST_SIDE / max(figure.get_size_inches()))
    with atomic_file(path) as temporary, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # fonts_for has warned already
        figure.savefig(temporary, dpi=dpi)


def svg(figure: Figure) -> str:
    """Return the picture as an <svg> element for a page."""
    out = io.StringIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")
        figure.savefig(out, format="svg")
    return out.getvalue()[out.getvalue().index("<svg") :]


def fonts_for(texts: Iterable[str]) -> list[str]:
    """Return the font families to draw `texts` with; each is the fallback of the one before.

    Latin text needs a single font. For characters that it lacks, the installed font with most of them is added. If no
    font has any of them, a warning says what to install.
    """
    wanted = {ord(character) for text in texts for character in text if character.isprintable()}
    missing = wanted - _characters(font_manager.findfont(LATIN_FONT))
    if not missing:
        return [LATIN_FONT]
    installed = {font.name: font.fname for font in font_manager.fontManager.ttflist}
    lacks = {name: len(missing - _characters(installed[name])) for name in CJK_FONTS if name in installed}
    best = min(lacks, key=lambda name: lacks[name], default=None)
    if best is None or lacks[best] == len(missing):
        logger.warning(
            "no installed font has %s and %d other characters, so pictures show boxes in their place; "
            "install one (Debian and Ubuntu: apt install fonts-noto-cjk or fonts-wqy-microhei)",
            chr(min(missing)),
            len(missing) - 1,
        )
        return [LATIN_FONT]
    return [LATIN_FONT, best]


def _characters(path: str) -> set[int]:
    return set(font_manager.get_font(path).get_charmap())


def _bars(axes: Axes, names: Sequence[str], sizes: Sequence[float], title: str, fonts: list[str]) -> None:
    style: dict[str, Any] = {"fontsize": 9, "fontfamily": fonts, "parse_math": False}  # "$5 or $6" is not a formula
    axes.barh(range(len(names)), sizes, height=0.86, color=_PALE)
    for place, name in enumerate(names):
        axes.text(0, place, f" {name}", va="center", color=_BLACK, clip_on=True, **style)
    axes.set_xlim(0, max([*sizes, 1e-12]))
    axes.set_ylim(max(len(names), 1) - 0.5, -0.5)  # the first on top
    axes.set_title(title, loc="left", pad=3, color=_BLUE, **style)
