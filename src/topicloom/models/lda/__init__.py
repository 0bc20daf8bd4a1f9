"""LDA: latent Dirichlet allocation. `model.py` has the estimator, and each fitting method has its own file."""

from .model import LDA

__all__ = ["LDA"]
