"""LDA: the estimator, and the two methods that fit it, each in a file of its own."""

from .model import LDA

__all__ = ["LDA"]
