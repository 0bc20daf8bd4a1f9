"""Pictures of topics, of training and of comparisons, and how they are saved.

Functions take arrays and rows, not models. They open no window, keep no state, and return a matplotlib Figure.
"""

from ..curves import collapse_curve, loss_curve, quality_curve
from .bars import topic_pages
from .panels import dot_panels
from .saving import save, save_pages, svg

__all__ = [
    "collapse_curve",
    "dot_panels",
    "loss_curve",
    "quality_curve",
    "save",
    "save_pages",
    "svg",
    "topic_pages",
]
