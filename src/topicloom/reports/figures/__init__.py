"""Pictures of topics, of training and of comparisons, and how they are saved.

Functions take arrays and rows, not models. They open no window, keep no state, and return a matplotlib Figure.
"""

from ..curves import collapse_curve, loss_curve, quality_curve
from .bars import topic_pages
from .clouds import word_clouds
from .maps import document_map, word_map
from .panels import dot_panels
from .saving import save, save_pages, svg

__all__ = [
    "collapse_curve",
    "document_map",
    "dot_panels",
    "loss_curve",
    "quality_curve",
    "save",
    "save_pages",
    "svg",
    "topic_pages",
    "word_clouds",
    "word_map",
]
