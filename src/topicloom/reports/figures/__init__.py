"""Pictures of topics, of training and of comparisons, and how they are saved.

Functions take arrays and rows, not models. They open no window, keep no state, and return a matplotlib Figure.
"""

from ..curves import collapse_curve, loss_curve, quality_curve
from .bars import topic_pages
from .clouds import word_clouds
from .interpolation import interpolation_strip
from .maps import document_map, word_map
from .panels import dot_panels
from .saving import save, save_pages, svg
from .similarity import similarity_map, tree_order, word_similarity
from .simplex import simplex
from .sparsity import sparsity
from .trends import trend_lines, trend_stream

__all__ = [
    "collapse_curve",
    "document_map",
    "dot_panels",
    "interpolation_strip",
    "loss_curve",
    "quality_curve",
    "save",
    "save_pages",
    "similarity_map",
    "simplex",
    "sparsity",
    "svg",
    "topic_pages",
    "tree_order",
    "trend_lines",
    "trend_stream",
    "word_clouds",
    "word_map",
    "word_similarity",
]
