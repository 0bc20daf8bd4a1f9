"""Pictures of topics, of training and of comparisons, and how they are saved.

`draw` makes any picture of a fitted model together with documents. The other functions take arrays and rows, not
models. None opens a window or keeps any state; all return matplotlib's Figure.
"""

from ...errors import MissingExtraError

try:
    import matplotlib as _matplotlib  # noqa: F401
except ImportError:
    raise MissingExtraError.of("drawing pictures", "matplotlib", "viz") from None
except ValueError as error:  # MPLBACKEND or matplotlibrc has a value that this version does not know
    reason = " ".join(str(error).split())[:200]
    raise MissingExtraError(
        f"drawing pictures needs matplotlib, which cannot be imported ({reason}); correct MPLBACKEND or matplotlibrc"
    ) from None

from .curves import collapse_curve, loss_curve, quality_curve
from .gallery import KINDS, Options, draw, kind_named
from .maps import document_map, word_map
from .mixtures import interpolation_strip, simplex, sparsity
from .over_time import trend_lines, trend_stream
from .style import dot_panels, save, save_pages, svg
from .topic_words import similarity_map, topic_pages, word_clouds

__all__ = [
    "KINDS",
    "Options",
    "collapse_curve",
    "document_map",
    "dot_panels",
    "draw",
    "interpolation_strip",
    "kind_named",
    "loss_curve",
    "quality_curve",
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
