"""Mean-field inference of theta as a loop over documents, which numba compiles for the CPU if it is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..nn import mean_field
from ..nn.mean_field import MeanFieldNetwork
from ..nn.sparse import TINY, SparseCounts
from .compiling import FEWEST_DOCUMENTS, compiled

Array = np.ndarray[Any, Any]
_LOG2_E = np.float32(1.4426950408889634)
_LOWEST = np.float32(-125.0)  # exponent of 2; smaller powers are as good as 0


def mean_field_network(topics: Array, alpha: Array) -> MeanFieldNetwork:
    """Return a network that infers theta given topics.

    Args:
        topics: (K, V), positive; the rows need not sum to 1.
        alpha: (K,) the Dirichlet parameter of theta.
    """
    beta_t = (topics / topics.sum(axis=1, keepdims=True)).T  # (V, K)
    return CompiledMeanFieldNetwork.of(*(torch.tensor(np.ascontiguousarray(x, np.float32)) for x in (beta_t, alpha)))


class CompiledMeanFieldNetwork(MeanFieldNetwork):
    """`MeanFieldNetwork`, whose iteration is compiled where possible: each document iterates by itself in the cache."""

    def gamma_of(self, counts: SparseCounts) -> Tensor:
        is_worth_it = counts.n_docs >= FEWEST_DOCUMENTS and self.beta_t.device.type == "cpu"
        loop = compiled(_iterate, _one_document) if is_worth_it else None
        if loop is None:
            return super().gamma_of(counts)
        gamma = torch.empty(counts.n_docs, len(self.alpha))
        inputs = (counts.offsets, counts.indices, counts.values, self.beta_t, self.alpha)
        arrays = (each.contiguous().numpy() for each in inputs)
        loop(*arrays, mean_field.MAX_STEPS, np.float32(mean_field.TOLERANCE), np.float32(TINY), gamma.numpy())
        return gamma


def _iterate(
    offsets: Array,
    words: Array,
    values: Array,
    beta_t: Array,
    alpha: Array,
    steps: int,
    tolerance: np.float32,
    tiny: np.float32,
    gammas: Array,
) -> None:
    """Write the parameters of q(theta) of documents to `gammas` (B, K)."""
    n_topics = len(alpha)
    powers = np.empty(n_topics, np.int32)  # the bits of 32-bit powers of 2
    power = powers.view(np.float32)
    weights, new = np.empty(n_topics, np.float32), np.empty(n_topics, np.float32)
    for doc in range(len(offsets) - 1):
        first, last = offsets[doc], offsets[doc + 1]
        gamma, n_tokens = gammas[doc], np.float32(0)
        for i in range(first, last):
            n_tokens += values[i]
        for k in range(n_topics):
            gamma[k] = alpha[k] + n_tokens / np.float32(n_topics)
        for _ in range(steps):
            for k in range(n_topics):  # exp(digamma(gamma)), by the series of nn.mean_field.exp_digamma
                x = gamma[k]
                exponent = max(-(np.float32(1) / (x + np.float32(1)) + np.float32(1) / x) * _LOG2_E, _LOWEST)
                whole = np.int32(exponent - np.float32(0.5))  # the nearest whole number, as `exponent` is negative
                rest = exponent - np.float32(whole)
                powers[k] = (whole + np.int32(127)) << np.int32(23)  # 2 ** whole
                part = np.float32(1.5403530e-4)  # 2 ** rest, by its Taylor series
                part = part * rest + np.float32(1.3333558e-3)
                part = part * rest + np.float32(9.6181291e-3)
                part = part * rest + np.float32(5.5504109e-2)
                part = part * rest + np.float32(2.4022651e-1)
                part = part * rest + np.float32(6.9314718e-1)
                part = part * rest + np.float32(1)
                r = np.float32(1) / (x + np.float32(2))
                series = (r * np.float32(-0.00195056) + np.float32(0.02290901)) * r + np.float32(0.04144566)
                weights[k] = part * (series * r + x + np.float32(1.5))
                new[k] = 0
            for k in range(n_topics):
                weights[k] *= power[k]
            for i in range(first, last):
                beta, mass = beta_t[words[i]], np.float32(0)
                for k in range(n_topics):
                    mass += weights[k] * beta[k]
                part = values[i] / (mass + tiny)
                for k in range(n_topics):
                    new[k] += part * beta[k]
            for k in range(n_topics):
                new[k] = alpha[k] + weights[k] * new[k]
            change = np.float32(0)
            for k in range(n_topics):
                change += abs(new[k] - gamma[k])
            for k in range(n_topics):
                gamma[k] = new[k]
            if change <= tolerance * np.float32(n_topics):
                break


def _one_document() -> tuple[Any, ...]:
    """Return arguments of `_iterate` for one document of one token and one topic."""
    offsets, words, table = np.array([0, 1]), np.zeros(1, np.int64), np.ones((1, 1), np.float32)
    return offsets, words, table[0], table, table[0], 2, np.float32(1e-3), np.float32(TINY), table.copy()
