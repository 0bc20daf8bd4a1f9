"""Background topics: how they begin, and how what all documents have of them is divided among all topics.

A background topic takes up words that are common everywhere. What nearly every document has of it says nothing about a
document, but makes the shares of all other topics smaller, and it takes the place of a topic that says something. At
the end of training, this share is therefore given to all topics: each then has some of the common words, as in a corpus
in which each topic has them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ...distributed.ranks import current
from ...nn.batch import Batch
from ...nn.sparse import TINY, mixture_log_likelihood
from .cvb0 import MIN_ALPHA, SMALLEST

if TYPE_CHECKING:
    from .network import LoomNetwork

_REMOVED_FREQUENCY = 0.9  # the corpus's word frequencies times this are subtracted from topics beside background topics
_QUANTILES = (0.05, 0.1, 0.25, 0.5)  # of a background topic's shares of documents, which are tried as common shares
_LEAST_SHARE = 0.03  # a smaller one is left as it is
_LEAST_FACTOR = 1e-3  # what is left at least of the encoder's share of a background topic
SAMPLED = 1 << 11  # documents in which the common share is estimated


def with_background(beta_t: Tensor, tokens: Tensor, background: Tensor, generator: torch.Generator) -> Tensor:
    """Return topics of which some are background topics: they have the common words, which all topics had before.

    Args:
        beta_t: (V, K) topics, columns sum to 1.
        tokens: (V,) the frequency of each word.
        background: (n,) the numbers of the topics that become background topics.
        generator: draws the noise that makes them different.
    """
    corpus = (tokens / tokens.sum())[:, None]  # (V, 1)
    beta_t = (beta_t - _REMOVED_FREQUENCY * corpus).clamp_min(1e-7)
    noise = torch.rand(len(beta_t), len(background), generator=generator, device=beta_t.device)
    beta_t[:, background] = corpus * noise**2
    return beta_t / beta_t.sum(0)


class BackgroundDivision:
    """Divides what all documents have of the background topics among all topics, at the end of training.

    Args:
        network: the network, whose counting stage has ended.
        documents: a sample of the training documents; half of their words are predicted from the others.
    """

    def __init__(self, network: LoomNetwork, documents: Batch) -> None:
        self.network, self.counting = network, network.counting
        # At random: words are often in the order of their frequency. If they took turns, the most common ones would be
        # in the same half in all documents.
        draws = torch.rand(len(documents.counts.values), generator=torch.Generator().manual_seed(0))  # (N,)
        given, self.scored = documents.counts.divided((draws < 0.5).to(documents.device))
        self.theta = network.posterior(documents).point()  # (D, K)
        self.given = replace(documents, counts=given)
        self.encoded = network.code(self.given).point()  # (D, K)

    def divide(self) -> None:
        """Divide the common share, if that predicts words better; otherwise change nothing."""
        share = current().of_first(self._common_share())
        if not share.any():
            return
        counting, sampling = self.counting, self.counting.sampling
        kept = counting.pruning.kept
        self.network.shares.logits[slice(None) if kept is None else kept] += self._factor(share).log()
        beta_t, alpha = self._divided(share)
        weights = beta_t * self._sizes(share)  # (V, K)
        totals = counting.word_topics.sum(1, keepdim=True)
        # In place, as this is inference mode, whose new tensors could not be changed by later training.
        counting.word_topics.copy_(weights * (totals / weights.sum(1, keepdim=True).clamp_min(SMALLEST)))
        if sampling is not None and sampling.mean_counts is not None:
            sampling.mean_counts.copy_(counting.word_topics)
        counting.beta_t.copy_(beta_t)
        counting.alpha.copy_(alpha)

    def _common_share(self) -> Tensor:
        """Return the share that documents have in common of each topic: (K,), 0 for topics that are no background.

        It is a quantile of the shares of documents. Higher quantiles are tried as long as words are predicted better,
        by more than one standard error.
        """
        background = self.counting.background  # (K,)
        best = torch.zeros_like(self.theta[0])  # (K,)
        highest = self._log_likelihood(best)  # (D,)
        for quantile in _QUANTILES:
            share = torch.zeros_like(best)
            share[background] = self.theta[:, background].quantile(quantile, dim=0)
            share[share < _LEAST_SHARE] = 0
            if not share.any():
                continue
            found = self._log_likelihood(share)
            if (found - highest).sum() <= (found - highest).square().sum().sqrt():
                break
            best, highest = share, found
        return best

    def _log_likelihood(self, share: Tensor) -> Tensor:
        """Return the log likelihood of words that documents' other words predict with topics after division, (D,)."""
        beta_t, alpha = self._divided(share)
        start = self.encoded * self._factor(share)
        start = start / start.sum(1, keepdim=True)  # (D, K)
        posterior = self.counting.infer_with(beta_t, alpha, self.given.counts, start, self.network.refine)
        return mixture_log_likelihood(posterior.point(), beta_t, self.scored)

    def _divided(self, share: Tensor) -> tuple[Tensor, Tensor]:
        """Return topics (V, K), of which each has the words of the common share, and alpha (K,) without it.

        With f_k for the share and f for its sum, theta_k = f_k + (1 - f) theta'_k, so that the topics
        (1 - f) beta_k + sum_l f_l beta_l with the shares theta' give words the same probabilities.
        """
        beta_t, alpha = self.counting.topics(), self.counting.alpha
        divided = (1 - share.sum()) * beta_t + (beta_t @ share)[:, None]
        return divided, (alpha - alpha.sum() * share).clamp_min(MIN_ALPHA)

    def _factor(self, share: Tensor) -> Tensor:
        """Return what is left of the encoder's mean shares after division, as factors (K,)."""
        mean = self.encoded.mean(0)
        return (1 - share / mean.clamp_min(TINY)).clamp_min(_LEAST_FACTOR)

    def _sizes(self, share: Tensor) -> Tensor:
        """Return the topics' shares of all tokens after division, (K,)."""
        left = (self.theta.mean(0) - share).clamp_min(TINY)
        return left / left.sum()
