"""Signs that a model has collapsed: a latent code that carries no information, or topics in no document."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .measured import Measured

Array = npt.NDArray[Any]
_LARGEST = np.finfo(np.float32).max


def kl_per_dimension(divergence: Array) -> Measured:
    """Mean divergence of each latent dimension from its prior, in nats.

    Args:
        divergence: (D, L) divergence of each document's posterior from the prior.

    Returns:
        Measured, the mean over dimensions, with the value of each in `per_dimension` (L,).

    Examples:
        >>> import numpy as np
        >>> from topicloom.metrics import kl_per_dimension
        >>> kl_per_dimension(np.array([[0.0, 1.0], [0.0, 3.0]])).per_dimension.tolist()
        [0.0, 2.0]
    """
    per_dimension = _mean(divergence)
    value = float(per_dimension.mean()) if len(per_dimension) else 0.0
    return Measured(value, per_dimension=per_dimension, unit="nats", units=len(per_dimension))


def active_units_by_divergence(divergence: Array, threshold: float = 0.01) -> Measured:
    """Number of latent dimensions whose mean divergence from the prior is above a threshold.

    Args:
        divergence: (D, L) divergence of each document's posterior from the prior.
        threshold: in nats.

    Returns:
        Measured, with the threshold and the number of dimensions in its settings.

    Examples:
        >>> import numpy as np
        >>> from topicloom.metrics import active_units_by_divergence
        >>> active_units_by_divergence(np.array([[0.0, 1.0], [0.0, 3.0]]))
        1.0
    """
    active = int((_mean(divergence) > threshold).sum())
    return Measured(active, by="mean divergence", threshold=threshold, units=divergence.shape[1])


def active_units_by_variance(means: Array, threshold: float = 0.01) -> Measured:
    """Number of latent dimensions whose posterior mean varies over the documents by more than a threshold.

    Args:
        means: (D, L) mean of each document's posterior.
        threshold: of the variance.

    Returns:
        Measured, with the threshold and the number of dimensions in its settings.

    Source: Burda, Grosse & Salakhutdinov 2016, who call these "active units" and use the threshold 0.01.

    Examples:
        >>> import numpy as np
        >>> from topicloom.metrics import active_units_by_variance
        >>> active_units_by_variance(np.array([[0.5, 1.0], [0.5, -1.0]]))
        1.0
    """
    variance = means.var(axis=0, dtype=np.float64) if len(means) else np.zeros(means.shape[1])
    active = int((variance > threshold).sum())
    return Measured(active, by="variance of the posterior mean", threshold=threshold, units=means.shape[1])


def active_topics(theta: Array) -> Measured:
    """Number of topics that are the main topic of at least one document.

    Args:
        theta: (D, K) topic shares of the documents.

    Returns:
        Measured, with the number of all topics in its settings.

    Examples:
        >>> import numpy as np
        >>> from topicloom.metrics import active_topics
        >>> active_topics(np.array([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0]]))
        2.0
    """
    theta = np.asarray(theta)  # which may be a data frame
    active = len(np.unique(theta.argmax(axis=1))) if len(theta) else 0
    return Measured(active, topics=theta.shape[1])


def frequent_mass(topic_word: Array, word_counts: Array, top_n: int = 50) -> Measured:
    """Mean probability that a topic gives to the most frequent words of the corpus.

    Args:
        topic_word: (K, V), rows sum to 1.
        word_counts: (V,) tokens of each word.
        top_n: the number of most frequent words.

    Examples:
        >>> import numpy as np
        >>> from topicloom.metrics import frequent_mass
        >>> frequent_mass(np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([10, 2]), top_n=1)
        0.75
    """
    frequent = np.argsort(-word_counts, kind="stable")[:top_n]
    return Measured(float(topic_word[:, frequent].sum(axis=1).mean()), top_n=top_n)


def _mean(divergence: Array) -> Array:
    # The divergence of a very long document may be too large for float32. A mean of infinity could not be stored.
    finite = np.fmin(divergence, _LARGEST)
    mean: Array = finite.mean(axis=0, dtype=np.float64) if len(finite) else np.zeros(finite.shape[1])
    return mean
