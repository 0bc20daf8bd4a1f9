"""Pictures of topics, of training and of comparisons, and how they are saved.

`draw` makes any picture of a fitted model together with documents. The other functions take arrays and rows, not
models. None opens a window or keeps any state; all return matplotlib's Figure.

    import topicloom as tl

    figure = tl.figures.draw(tl.Topics.from_run("runs/news"), "topics")[0]
    figure.savefig("topics.png")

Names are loaded when they are first used.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from ...errors import MissingExtraError as _MissingExtraError

try:
    import matplotlib as _matplotlib  # noqa: F401
except ImportError:
    raise _MissingExtraError.of("drawing pictures", "matplotlib", "viz") from None
except ValueError as _error:  # MPLBACKEND or matplotlibrc has a value that this version does not know
    _reason = " ".join(str(_error).split())[:200]
    raise _MissingExtraError(
        f"drawing pictures needs matplotlib, which cannot be imported ({_reason}); correct MPLBACKEND or matplotlibrc"
    ) from None

if _TYPE_CHECKING:
    from typing import Any

    from .curves import collapse_curve, dot_panels, loss_curve, quality_curve
    from .gallery import KINDS, Options, draw, kind_named
    from .maps import document_map, word_map
    from .mixtures import interpolation_strip, simplex, sparsity
    from .networks import diagram
    from .over_time import group_table, trend_lines, trend_stream
    from .style import fonts_for, save, save_pages, svg
    from .topic_words import returning_topics, similarity_map, topic_pages, word_clouds

_MODULES = {
    "KINDS": "gallery",
    "Options": "gallery",
    "collapse_curve": "curves",
    "document_map": "maps",
    "diagram": "networks",
    "dot_panels": "curves",
    "draw": "gallery",
    "fonts_for": "style",
    "group_table": "over_time",
    "interpolation_strip": "mixtures",
    "kind_named": "gallery",
    "loss_curve": "curves",
    "quality_curve": "curves",
    "returning_topics": "topic_words",
    "save": "style",
    "save_pages": "style",
    "similarity_map": "topic_words",
    "simplex": "mixtures",
    "sparsity": "mixtures",
    "svg": "style",
    "topic_pages": "topic_words",
    "trend_lines": "over_time",
    "trend_stream": "over_time",
    "word_clouds": "topic_words",
    "word_map": "maps",
}

__all__ = [
    "KINDS",
    "Options",
    "collapse_curve",
    "diagram",
    "document_map",
    "dot_panels",
    "draw",
    "fonts_for",
    "group_table",
    "interpolation_strip",
    "kind_named",
    "loss_curve",
    "quality_curve",
    "returning_topics",
    "save",
    "save_pages",
    "similarity_map",
    "simplex",
    "sparsity",
    "svg",
    "topic_pages",
    "trend_lines",
    "trend_stream",
    "word_clouds",
    "word_map",
]


def __getattr__(name: str) -> "Any":
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module(f".{_MODULES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
