"""The separation term of a loss: it moves topics apart, as strongly as the requested topic diversity needs."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from .divergences import topic_information

TOP_N = 25  # top words of a topic in topic diversity (Dieng et al. 2020)
_MAX_VOCABULARY = 0.6  # good topics cannot have more of the vocabulary than this among their top words
# How the weight is controlled. These values were chosen on held-out training documents of five corpora. A weight that
# changes faster costs coherence: a word that is pushed into a topic before the topic has its documents stays there.
_START, _MIN_WEIGHT, _MAX_WEIGHT = 0.03, 1e-3, 0.3
_STEP, _MAX_ERROR = 3.0, 0.1  # a diversity that is too low by .1 or more raises the weight by 35 % after an epoch
_LOOKAHEAD = 5  # epochs for which diversity is assumed to rise as it did in the last one
_SETTLED, _PATIENCE = 0.5, 20  # the weight is constant until half of the topics are active, or this many epochs


class SeparationTerm(nn.Module):
    """A term of the loss, -weight * I(topic; word) for each token, whose weight follows the diversity of the topics.

    The likelihood alone allows all topics to share the corpus's common words. Topic diversity of at least `target` is a
    constraint, and the weight is its multiplier: it rises while the constraint is violated and falls while it is met,
    as in Rezende & Viola 2018, "Taming VAEs". A corpus whose topics are diverse anyway is hardly affected.

    Args:
        diversity: the required share of different words among the 25 top words of all topics; 0 turns the term off.
        n_topics: the number of topics K.
        n_words: the size of the vocabulary V. A small vocabulary lowers the target: at most .6 of its words are
            expected to be top words.
    """

    step: float = _STEP  # after an epoch, the weight is multiplied by exp(step * error)
    weight: Tensor  # () the multiplier, saved with the network
    last_diversity: Tensor  # () the diversity after the previous epoch

    def __init__(self, diversity: float, n_topics: int, n_words: int) -> None:
        super().__init__()
        self.n_topics = n_topics
        self.target = min(diversity, _MAX_VOCABULARY * n_words / (TOP_N * n_topics))
        self.register_buffer("weight", torch.tensor(_START))
        self.register_buffer("last_diversity", torch.ones(()))

    def forward(self, beta_t: Tensor, shares: Tensor, totals: Tensor) -> Tensor:
        """Return -weight * I(topic; word) times the tokens of each document: (B,).

        Args:
            beta_t: (V, K) topics, columns sum to 1.
            shares: (K,) the weight of each topic, as in `topic_information`.
            totals: (B,) tokens of each document.
        """
        return -self.weight * topic_information(beta_t, shares) * totals

    def adapt(self, diversity: float, active: int, epoch: int) -> dict[str, float]:
        """Set the weight for the next epoch, and return it as a column of the history.

        Args:
            diversity: topic diversity at the end of the epoch.
            active: the number of topics that are the main topic of some document.
            epoch: the number of the epoch; the first is 1.
        """
        if not self.target:
            return {}
        expected = diversity + _LOOKAHEAD * max(0.0, diversity - float(self.last_diversity))
        self.last_diversity.fill_(diversity)
        if active > _SETTLED * self.n_topics or epoch > _PATIENCE:
            error = min(_MAX_ERROR, max(-_MAX_ERROR, self.target - expected))
            self.weight.mul_(math.exp(self.step * error)).clamp_(_MIN_WEIGHT, _MAX_WEIGHT)
        return {"separation_weight": float(self.weight)}
