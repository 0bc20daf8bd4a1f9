"""Every measure of a fitted model at once, each with its settings and with the documents that it was taken on.

Coherence is measured against a reference: the one given, else the training corpus, else the documents themselves.
Perplexity, classes and the figures of the latent code are measured on the documents, held out or not.
"""

from .evaluate import MEASURES, evaluate
from .result import Evaluation

__all__ = ["MEASURES", "Evaluation", "evaluate"]
