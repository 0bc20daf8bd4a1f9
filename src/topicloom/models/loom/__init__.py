"""Loom: variational pretraining of a topic model, then collapsed counting (CVB0) and sampling.

`model.py` has the estimator and its network, and `collapsed.py` the counts, which the formulas of `cvb0.py` (counting
stage) and `sampling.py` (sampling stage) improve. `pruning.py`, `relocation.py` and `background.py` change which topics
there are.
"""

from .model import Loom

__all__ = ["Loom"]
