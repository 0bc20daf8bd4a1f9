"""How well a model has found the topics with which documents were made."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

import topicloom as tl

Array = np.ndarray


def matched(planted: Array, components: Array) -> tuple[Array, Array]:
    """Return the topic that each planted one is, (K,), and their total variation distance, (K,).

    The topics are matched so that the sum of the distances is least.
    """
    distance = np.abs(planted[:, None] - components[None]).sum(2) / 2  # (K, K)
    rows, found = linear_sum_assignment(distance)
    return found, distance[rows, found]


def found_shares(planted: Array, model: tl.TopicModel, corpus: tl.Corpus) -> tuple[Array, Array]:
    """Return the model's shares of the planted topics in documents, (K,), and the distances of the topics, (K,)."""
    found, distance = matched(planted, model.components_)
    return model.transform(corpus).mean(0)[found], distance
