"""Figures of a model that has collapsed: a latent code that says nothing, topics that nobody has."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .measured import Measured

Array = npt.NDArray[Any]


def kl_per_dimension(divergence: Array) -> Array:
    """(L,) mean divergence of each latent dimension from its prior, in nats.

    Args:
        divergence: (D, L) of the posterior of each document.
    """
    mean: Array = divergence.mean(axis=0, dtype=np.float64) if len(divergence) else np.zeros(divergence.shape[1])
    return mean


def units_by_divergence(divergence: Array, threshold: float = 0.01) -> Measured:
    """Latent dimensions whose mean divergence from the prior is above a threshold, in nats.

    Args:
        divergence: (D, L) of the posterior of each document.
    """
    n_units = divergence.shape[1]
    active = int((kl_per_dimension(divergence) > threshold).sum())
    return Measured(active, by="mean divergence", threshold=threshold, units=n_units)


def units_by_variance(means: Array, threshold: float = 0.01) -> Measured:
    """Latent dimensions whose posterior mean varies over the documents by more than a threshold: "active units".

    Args:
        means: (D, L) mean of the posterior of each document.

    Source: Burda, Grosse & Salakhutdinov 2016, where the threshold is 0.01.
    """
    variance = means.var(axis=0, dtype=np.float64) if len(means) else np.zeros(means.shape[1])
    active = int((variance > threshold).sum())
    return Measured(active, by="variance of the posterior mean", threshold=threshold, units=means.shape[1])


def active_topics(theta: Array) -> int:
    """Topics that are the largest of some document.

    Args:
        theta: (D, K) shares.
    """
    return len(np.unique(theta.argmax(axis=1))) if len(theta) else 0


def frequent_mass(topic_word: Array, word_counts: Array, top_n: int = 50) -> Measured:
    """Mean share of a topic that is on the most frequent words of the corpus.

    Args:
        topic_word: (K, V), rows sum to 1.
        word_counts: (V,) tokens of each word.
        top_n: how many words are the most frequent.
    """
    frequent = np.argsort(-word_counts, kind="stable")[:top_n]
    return Measured(float(topic_word[:, frequent].sum(axis=1).mean()), top_n=top_n)
