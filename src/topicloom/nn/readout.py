"""Shares of topics as a linear function of a code whose decoder is not a mixture.

A code that adds logits says by how much each topic raises the probabilities of words, and not how much of the document
it makes up. The shares of a mixture of the same topics say that, so theta is fitted to them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .sparse import TINY, SparseCounts

_EM_STEPS = 30
_PRIOR_TOKENS = 2.0  # with the average shares, added to each document; benchmarks/shares_tried.md has others
_LEAST_SHARE = 1e-3  # of these tokens, so that no document has exactly nothing of a topic
_FIT_STEPS, _TOLERANCE = 100, 1e-7


def mixture_counts(counts: SparseCounts, beta_t: Tensor) -> Tensor:
    """Return the expected tokens of each topic in documents, by maximum likelihood given the topics: (B, K).

    Args:
        counts: B documents.
        beta_t: (V, K) the topics, columns sum to 1.
    """
    theta = beta_t.new_full((counts.n_docs, beta_t.shape[1]), 1 / beta_t.shape[1])  # (B, K)
    tokens = counts.totals[:, None] * theta  # (B, K)
    for _ in range(_EM_STEPS):
        mass = counts.sampled_product(theta, beta_t) + TINY  # (N,)
        tokens = theta * counts.times(counts.values / mass, beta_t)
        theta = tokens / tokens.sum(1, keepdim=True).clamp_min(TINY)
    return tokens


def readout(coordinates: Tensor, tokens: Tensor) -> Tensor:
    """Return the matrix A for which softmax(coordinates A) is nearest to documents' shares of topics, (K, K).

    This is a multinomial logistic regression, which starts from A = I. At its optimum, the mean of the softmax is that
    of the shares. It needs no constant, because a weighted sum of the coordinates is constant already.

    Args:
        coordinates: (N, K), with second moments near 1. They should be draws from the documents' posteriors: the noise
            keeps A small in directions in which documents hardly differ.
        tokens: (N, K) the tokens of each topic in the documents.
    """
    tokens = tokens.double()
    average = tokens.sum(0) / tokens.sum().clamp_min(TINY)  # (K,)
    smoothed = tokens + _PRIOR_TOKENS * average.clamp_min(_LEAST_SHARE)
    with torch.inference_mode(False), torch.enable_grad():
        x, shares = coordinates.double().clone(), smoothed / smoothed.sum(1, keepdim=True)  # (N, K) both
        matrix = torch.eye(x.shape[1], dtype=x.dtype).requires_grad_()
        optimizer = torch.optim.LBFGS(
            [matrix], max_iter=_FIT_STEPS, tolerance_change=_TOLERANCE, line_search_fn="strong_wolfe"
        )

        def loss() -> Tensor:
            optimizer.zero_grad()
            distance = -(shares * torch.log_softmax(x @ matrix, dim=1)).sum(1).mean()
            distance.backward()
            return distance

        optimizer.step(loss)
    return matrix.detach()
