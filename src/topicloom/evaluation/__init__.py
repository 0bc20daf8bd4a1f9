"""Evaluation of a fitted model: all measures at once, each with its settings and the documents it was taken on.

Coherence is measured against the reference corpus if one is given, otherwise against the training documents, otherwise
against the documents themselves. Perplexity, classes and the latent code are measured on the documents.
"""

from .evaluate import evaluate
from .result import Evaluation

__all__ = ["Evaluation", "evaluate"]
