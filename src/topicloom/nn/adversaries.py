"""A critic that tells pairs of a topic mixture and a document apart, and documents drawn for it to look at.

Both kinds of pairs are sparse: of the drawn documents too, only the tokens are kept. A real document then differs from
a drawn one by its words alone, and not by the zeros among its counts, which a smooth p(w | theta) has none of.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .encoders import TINY_TOTAL
from .layers import linear, normal_parameter
from .sparse import SparseCounts, bag_product, starts_of

_SLOPE = 0.1  # of the leaky rectifiers below zero


class PairCritic(nn.Module):
    """D(theta, x) = v . f(A f(x W / n + theta U + b) + a), f a leaky rectifier.

    D changes by no more than the L1 distance of the words' shares and that of theta (Lipschitz, as Arjovsky et al. 2017
    ask): rows of W and U stay in the unit ball, and the norms of A and v at or below 1. Unlike the clipping of single
    weights this leaves every unit its scale.

    Args:
        n_hidden: width H of both layers.
    """

    direction: Tensor

    def __init__(self, n_words: int, n_topics: int, n_hidden: int, generator: torch.Generator) -> None:
        super().__init__()
        self.words = normal_parameter(n_words, n_hidden, scale=n_hidden**-0.5, generator=generator)
        self.topics = normal_parameter(n_topics, n_hidden, scale=n_hidden**-0.5, generator=generator)
        self.bias = nn.Parameter(torch.zeros(n_hidden))
        self.hidden = linear(n_hidden, n_hidden, generator)
        self.out = normal_parameter(n_hidden, scale=n_hidden**-0.5, generator=generator)
        # The largest singular vector of A changes little in a move: one step of the power iteration follows it.
        self.register_buffer("direction", F.normalize(torch.ones(n_hidden), dim=0))

    def read(self, counts: SparseCounts) -> Tensor:
        """x W / n, the mean of a document's words: (B, H)"""
        shares = counts.values / counts.totals.clamp_min(TINY_TOTAL)[counts.documents]  # (N,)
        return bag_product(self.words, shares, counts)

    def forward(self, theta: Tensor, document: Tensor) -> Tensor:
        """theta (B, K) and what `read` says of the documents (B, H) -> (B,), higher for a pair taken to be real."""
        h = F.leaky_relu(document + theta @ self.topics + self.bias, _SLOPE)  # (B, H)
        return F.leaky_relu(self.hidden(h), _SLOPE) @ self.out

    @torch.no_grad()
    def keep_lipschitz(self) -> None:
        """Scales down what has left its bounds."""
        for table in (self.words, self.topics):
            table.div_(table.norm(dim=1, keepdim=True).clamp_min(1))
        weight = self.hidden.weight  # (H, H)
        self.direction.copy_(F.normalize(weight.mT @ (weight @ self.direction), dim=0))
        weight.div_((weight @ self.direction).norm().clamp_min(1))
        self.out.div_(self.out.norm().clamp_min(1))


@torch.no_grad()
def draw_documents(theta: Tensor, topic_word: Tensor, lengths: Tensor, generator: torch.Generator) -> SparseCounts:
    """Documents drawn as topic models say they come about: for each token a topic from theta, a word from the topic.

    Args:
        theta: (B, K), rows in the simplex.
        topic_word: (K, V), rows in the simplex.
        lengths: (B,) tokens of each document; fractions are rounded up.

    Returns:
        B documents; a word that comes twice has two entries of 1.
    """
    n_docs, n_words = len(theta), topic_word.shape[1]
    rows = torch.repeat_interleave(lengths.ceil().long())  # (N,) document of each token
    topics = _choose(theta, rows, generator)  # (N,)
    words = _choose(topic_word, topics, generator)  # (N,)
    return SparseCounts(
        indices=words,
        values=torch.ones(len(words), dtype=theta.dtype, device=theta.device),
        offsets=starts_of(rows, n_docs),
        n_words=n_words,
    )


def _choose(probabilities: Tensor, rows: Tensor, generator: torch.Generator) -> Tensor:
    """One column for each of `rows` (N,), from that row of `probabilities` (M, C): (N,)"""
    total = probabilities.double().cumsum(1)  # single precision would lose rare words
    total = total / total[:, -1:] + torch.arange(len(total), device=total.device)[:, None]  # (M, C), rising throughout
    noise = torch.rand(rows.shape, generator=generator, dtype=total.dtype, device=total.device)
    place = torch.searchsorted(total.flatten(), rows + noise, right=True)  # (N,) in the flattened table
    columns = probabilities.shape[1]
    return (place - rows * columns).clamp(0, columns - 1)
