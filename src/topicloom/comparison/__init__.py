"""Models x numbers of topics x seeds on one corpus, resumable, measured alike."""

from .fits import DEFAULT_MODELS, compare, estimators, select_n_topics
from .page import csv_lines, figure, page, text_table
from .results import BETTER, Comparison

__all__ = [
    "BETTER",
    "DEFAULT_MODELS",
    "Comparison",
    "compare",
    "csv_lines",
    "estimators",
    "figure",
    "page",
    "select_n_topics",
    "text_table",
]
