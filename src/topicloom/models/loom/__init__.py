"""Loom: variational pretraining of a topic model, then collapsed counting (CVB0) and sampling.

`model.py` has the estimator, `network.py` its network, `counting.py` the counting stage with the formulas of `cvb0.py`,
`sampling.py` the sampling stage, `compiled.py` faster versions of their functions, and `../pruning.py` the removal of
spare topics.
"""

from .model import Loom

__all__ = ["Loom"]
