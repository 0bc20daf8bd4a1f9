"""Loom: variational pretraining of a topic model, then collapsed counting (CVB0) and sampling.

- model.py has the estimator and its network.
- collapsed.py has the counts, the pruning of spare topics, and the division of background topics.
- cvb0.py has the formulas of the counting stage, and sampling.py those of the sampling stage.
- relocation.py joins topics that are nearly equal, or while another is divided, and starts them again elsewhere.
"""

from .model import Loom

__all__ = ["Loom"]
