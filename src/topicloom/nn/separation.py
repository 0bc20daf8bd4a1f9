"""Distinctness: what holds topics apart, as strongly as their diversity asks for."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from .divergences import topic_information

TOP_N = 25  # words of a topic, in topic diversity (Dieng et al. 2020)
_CROWDED = 0.6  # of the vocabulary: more of it cannot be top words of good topics
# The control, chosen on held-out training documents of five corpora. More haste costs coherence: a word that is pushed
# to a topic before the topic has found its documents stays there.
_START, _LEAST, _MOST = 0.03, 1e-3, 0.3  # weights
_STEP, _LARGEST = 1.5, 0.1  # a diversity .1 too low, or more, raises the weight by 16 % after an epoch
_AHEAD = 5  # epochs for which diversity is taken to rise as it did in the last
_SETTLED, _PATIENCE = 0.5, 20  # no change before half of the topics lead some document, or this many epochs


class Distinctness(nn.Module):
    """A term of the loss, -weight * I(topic; word) for each token, whose weight follows the topics' diversity.

    The likelihood alone is content with topics that all keep the common words. A constraint, topic diversity of at
    least `aim`, is held by a multiplier that rises while it is missed and falls while it is met, as in Rezende & Viola
    2018, "Taming VAEs": a corpus whose topics are diverse by themselves pays nothing for it.

    Args:
        diversity: the share of different words among the 25 best of all topics that is asked for; 0 for none.
        n_words: words in the vocabulary. Where they are few, less is asked for: no more than .6 of them as top words.
    """

    weight: Tensor  # () the multiplier, saved with the network
    last: Tensor  # () the diversity of the epoch before

    def __init__(self, diversity: float, n_topics: int, n_words: int) -> None:
        super().__init__()
        self.n_topics = n_topics
        self.aim = min(diversity, _CROWDED * n_words / (TOP_N * n_topics))
        self.register_buffer("weight", torch.tensor(_START))
        self.register_buffer("last", torch.ones(()))

    def forward(self, beta_t: Tensor, shares: Tensor, totals: Tensor) -> Tensor:
        """-weight * I(topic; word) for each token of a document: (B,)

        Args:
            beta_t: (V, K) the topics.
            shares: (K,) how much each topic counts, as in `topic_information`.
            totals: (B,) tokens.
        """
        return -self.weight * topic_information(beta_t, shares) * totals

    def adapt(self, diversity: float, active: int, epoch: int) -> dict[str, float]:
        """Sets the weight of the next epoch.

        Args:
            diversity: what the epoch ended with.
            active: topics that lead some document.
            epoch: its number, the first being 1.
        """
        if not self.aim:
            return {}
        soon = diversity + _AHEAD * max(0.0, diversity - float(self.last))
        self.last.fill_(diversity)
        if active > _SETTLED * self.n_topics or epoch > _PATIENCE:
            error = min(_LARGEST, max(-_LARGEST, self.aim - soon))
            self.weight.mul_(math.exp(_STEP * error)).clamp_(_LEAST, _MOST)
        return {"distinctness_weight": float(self.weight)}
