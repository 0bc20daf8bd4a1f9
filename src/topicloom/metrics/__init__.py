"""Measures: pure functions on arrays and word lists, which need only NumPy and SciPy."""

from .coherence import document_npmi
from .diversity import topic_diversity, topic_uniqueness
from .perplexity import completion_split, perplexity

__all__ = ["completion_split", "document_npmi", "perplexity", "topic_diversity", "topic_uniqueness"]
