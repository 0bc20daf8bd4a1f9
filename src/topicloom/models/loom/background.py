"""Division of background topics: at the end of training, what all documents have of them is given to all topics.

A background topic takes up words that are common everywhere. What nearly every document has of it says nothing about
a document, but makes the shares of all other topics smaller, and it takes the place of a topic that says something.
After the division, each topic has some of the common words, as in a corpus in which each topic has them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ...distributed import current
from ...nn.sparse import TINY, SparseCounts, mixture_log_likelihood
from .collapsed import CollapsedCounts
from .cvb0 import MIN_ALPHA, SMALLEST

N_SAMPLED = 1 << 11  # documents in which the common share is estimated
_QUANTILES = (0.05, 0.1, 0.25, 0.5)  # of a background topic's shares of documents, which are tried as common shares
_MIN_SHARE = 0.03  # a smaller common share is not divided
_MIN_FACTOR = 1e-3  # the least factor by which the encoder's share of a background topic is multiplied


def in_random_halves(counts: SparseCounts) -> tuple[SparseCounts, SparseCounts]:
    """Return documents with one half of their words, and the same documents with the other half.

    Words are often in the order of their frequency. If they took turns, the most common ones would be in the same half
    of all documents.
    """
    draws = torch.rand(len(counts.values), generator=torch.Generator().manual_seed(0))  # (N,)
    return counts.divided((draws < 0.5).to(counts.device))


class BackgroundDivision:
    """Divides what all documents have of the background topics among all topics.

    A sample of D training documents shows what they have in common. Half of their words are predicted from the others.

    Args:
        counting: the counts of a network whose last pass has ended.
        given: the words from which the others are predicted.
        scored: the other words.
        theta: (D, K) the topics of whole documents.
        encoded: (D, K) the encoder's theta of the given words.
        refine: the number of steps that refine the encoder's theta.
    """

    def __init__(
        self,
        counting: CollapsedCounts,
        given: SparseCounts,
        scored: SparseCounts,
        *,
        theta: Tensor,
        encoded: Tensor,
        refine: int,
    ) -> None:
        self.counting, self.given, self.scored = counting, given, scored
        self.theta, self.encoded, self.refine = theta, encoded, refine

    def divide(self) -> Tensor | None:
        """Divide the common share in `counting`, if that predicts words better.

        Returns:
            (K,) the factors by which the encoder's mean shares change, or None if nothing has changed.
        """
        share = current().of_first(self._common_share())
        if not share.any():
            return None
        counting, sampling = self.counting, self.counting.sampling
        beta_t, alpha = self._divided(share)
        weights = beta_t * self._sizes(share)  # (V, K)
        totals = counting.word_topics.sum(1, keepdim=True)
        # In place, because training could not change the new tensors of inference mode later.
        counting.word_topics.copy_(weights * (totals / weights.sum(1, keepdim=True).clamp_min(SMALLEST)))
        if sampling is not None and sampling.mean_counts is not None:
            sampling.mean_counts.copy_(counting.word_topics)
        counting.beta_t.copy_(beta_t)
        counting.alpha.copy_(alpha)
        return self._factor(share)

    def _common_share(self) -> Tensor:
        """Return the share that documents have in common of each topic, (K,); 0 for all but background topics.

        The common share is a quantile of the shares of documents. Higher quantiles are tried as long as words are
        predicted better, by more than one standard error.
        """
        background = self.counting.background  # (K,)
        best = torch.zeros_like(self.theta[0])  # (K,)
        highest = self._log_likelihood(best)  # (D,)
        for quantile in _QUANTILES:
            share = torch.zeros_like(best)
            share[background] = self.theta[:, background].quantile(quantile, dim=0)
            share[share < _MIN_SHARE] = 0
            if not share.any():
                continue
            found = self._log_likelihood(share)
            if (found - highest).sum() <= (found - highest).square().sum().sqrt():
                break
            best, highest = share, found
        return best

    def _log_likelihood(self, share: Tensor) -> Tensor:
        """Return the log likelihood of the scored words, predicted with the topics after division, (D,)."""
        beta_t, alpha = self._divided(share)
        start = self.encoded * self._factor(share)
        start = start / start.sum(1, keepdim=True)  # (D, K)
        posterior = self.counting.infer_with(beta_t, alpha, self.given, start, self.refine)
        return mixture_log_likelihood(posterior.point(), beta_t, self.scored)

    def _divided(self, share: Tensor) -> tuple[Tensor, Tensor]:
        """Return topics (V, K) that each have the words of the common share, and alpha (K,) without this share.

        With f_k for the share and f for its sum, theta_k = f_k + (1 - f) theta'_k, so that the topics
        (1 - f) beta_k + sum_l f_l beta_l with the shares theta' give words the same probabilities.
        """
        beta_t, alpha = self.counting.topics(), self.counting.alpha
        divided = (1 - share.sum()) * beta_t + (beta_t @ share)[:, None]
        return divided, (alpha - alpha.sum() * share).clamp_min(MIN_ALPHA)

    def _factor(self, share: Tensor) -> Tensor:
        """Return the factors by which division changes the encoder's mean shares, (K,)."""
        mean = self.encoded.mean(0)
        return (1 - share / mean.clamp_min(TINY)).clamp_min(_MIN_FACTOR)

    def _sizes(self, share: Tensor) -> Tensor:
        """Return the share of each topic in all tokens after division, (K,)."""
        left = (self.theta.mean(0) - share).clamp_min(TINY)
        return left / left.sum()
