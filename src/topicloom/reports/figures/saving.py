"""How pictures are saved."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from ...files import atomic_file

_DPI = 110
# Without the time of their making, so that files can be compared.
_UNDATED: dict[str, dict[str, Any]] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
_LONGEST_SIDE = 60_000  # pixels; matplotlib draws no more than 65,536


def save(figure: Figure, path: Path) -> None:
    """Write a picture, completely or not at all, in the format that the suffix of `path` names."""
    dpi = min(_DPI, _LONGEST_SIDE / max(figure.get_size_inches()))
    # Type 3 fonts, matplotlib's default, are refused by some publishers; 42 embeds TrueType fonts.
    with atomic_file(path) as temporary, warnings.catch_warnings(), rc_context({"pdf.fonttype": 42}):
        warnings.filterwarnings("ignore", "Glyph .* missing")  # fonts_for has warned already
        figure.savefig(temporary, dpi=dpi, metadata=_UNDATED.get(path.suffix.lower()))


def save_pages(pages: Sequence[Figure], path: Path) -> list[Path]:
    """Write the first picture to `path`, and the others beside it: topics.png, topics-2.png, topics-3.png, ...

    Returns:
        the paths of the files.
    """
    paths = [path, *(path.with_stem(f"{path.stem}-{number}") for number in range(2, len(pages) + 1))]
    for figure, target in zip(pages, paths, strict=True):
        save(figure, target)
    return paths


def svg(figure: Figure) -> str:
    """Return the picture as an <svg> element for a page."""
    out = io.StringIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")
        figure.savefig(out, format="svg")
    return out.getvalue()[out.getvalue().index("<svg") :]
