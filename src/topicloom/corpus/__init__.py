"""Documents as sparse word counts with typed fields for each row: how they are built, saved, subset and split."""

from .corpus import Corpus

__all__ = ["Corpus"]
