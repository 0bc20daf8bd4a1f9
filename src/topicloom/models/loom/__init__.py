"""Loom: variational pretraining of a topic model, then collapsed counting (CVB0).

`model.py` has the estimator, `network.py` its network, `counting.py` the counting stage with the formulas of `cvb0.py`
(`compiled.py` has a faster version of one of them), and `../pruning.py` the removal of spare topics.
"""

from .model import Loom

__all__ = ["Loom"]
