"""A critic that distinguishes two kinds of pairs of theta and a document, and documents that are drawn for it.

Both kinds of pairs are sparse, because only the tokens of the drawn documents are kept. A real and a drawn document
then differ in their words alone. A smooth p(w | theta) would differ in its lack of zeros too, which a critic notices.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..distributed.ranks import step
from .encoders import TINY_TOTAL
from .layers import linear, normal_parameter
from .sparse import SparseCounts, bag_product, starts_of

_SLOPE = 0.1  # of the leaky rectifiers below zero
_OF_BATCH = 1 << 20  # tokens that are drawn for a batch at most
_OF_DOCUMENT = 10_000  # tokens of a longer document that are drawn in any case


class PairCritic(nn.Module):
    """D(theta, x) = v . f(A f(x W / n + theta U + b) + a), where f is a leaky rectifier and n the tokens of x.

    D changes by at most the L1 distance of the documents' word shares plus the L1 distance of theta. This makes it
    Lipschitz, as Arjovsky et al. 2017 require: the rows of W and U stay in the unit ball, and the norms of A and v stay
    at or below 1. Unlike the clipping of single weights, this does not limit the scale of a unit.

    Args:
        n_words: the size of the vocabulary V.
        n_topics: the number of topics K.
        n_hidden: the width H of both layers.
        generator: draws the initial weights.
    """

    direction: Tensor  # (H,)

    def __init__(self, n_words: int, n_topics: int, n_hidden: int, generator: torch.Generator) -> None:
        super().__init__()
        self.words = normal_parameter(n_words, n_hidden, scale=n_hidden**-0.5, generator=generator)
        self.topics = normal_parameter(n_topics, n_hidden, scale=n_hidden**-0.5, generator=generator)
        self.bias = nn.Parameter(torch.zeros(n_hidden))
        self.hidden = linear(n_hidden, n_hidden, generator)
        self.out = normal_parameter(n_hidden, scale=n_hidden**-0.5, generator=generator)
        # The largest singular vector of A changes little in a step, so one power iteration a step follows it.
        self.register_buffer("direction", F.normalize(torch.ones(n_hidden), dim=0))

    def read(self, counts: SparseCounts) -> Tensor:
        """Return x W / n, the mean of a document's words: (B, H)."""
        shares = counts.values / counts.totals.clamp_min(TINY_TOTAL)[counts.documents]  # (N,)
        return bag_product(self.words, shares, counts)

    def forward(self, theta: Tensor, document: Tensor) -> Tensor:
        """Return a number for each pair, which is higher the more real the pair appears: (B,).

        Args:
            theta: (B, K), rows sum to 1.
            document: (B, H), as `read` returns it.
        """
        h = F.leaky_relu(document + theta @ self.topics + self.bias, _SLOPE)  # (B, H)
        return F.leaky_relu(self.hidden(h), _SLOPE) @ self.out

    @torch.no_grad()
    def keep_lipschitz(self) -> None:
        """Scale down the weights that have left their bounds."""
        for table in (self.words, self.topics):
            table.div_(table.norm(dim=1, keepdim=True).clamp_min(1))
        weight = self.hidden.weight  # (H, H)
        self.direction.copy_(F.normalize(weight.mT @ (weight @ self.direction), dim=0))
        weight.div_((weight @ self.direction).norm().clamp_min(1))
        self.out.div_(self.out.norm().clamp_min(1))


@torch.no_grad()
def draw_documents(theta: Tensor, topic_word: Tensor, lengths: Tensor, generator: torch.Generator) -> SparseCounts:
    """Draw documents from a topic model: for each token a topic from theta, and a word from this topic.

    Args:
        theta: (B, K), rows sum to 1.
        topic_word: (K, V), rows sum to 1.
        lengths: (B,) the tokens of each document; fractions are rounded up.
        generator: draws the topics and words.

    Returns:
        B documents. A word that is drawn twice has two entries of 1. Of a very long document, at least 10,000 tokens
        are drawn, whose weights sum to its length, so that memory is bounded.
    """
    generator = step().own(generator)
    n_docs, n_words = len(theta), topic_word.shape[1]
    whole = lengths.ceil()  # (B,)
    n_drawn = whole.clamp(max=max(_OF_DOCUMENT, _OF_BATCH // max(n_docs, 1)))  # (B,)
    rows = torch.repeat_interleave(n_drawn.long())  # (N,) document of each token
    topics = _choose(theta, rows, generator)  # (N,)
    words = _choose(topic_word, topics, generator)  # (N,)
    return SparseCounts(
        indices=words,
        values=(whole / n_drawn)[rows].to(theta.dtype),  # (N,) 1 for all but very long documents
        offsets=starts_of(rows, n_docs),
        n_words=n_words,
    )


def _choose(probabilities: Tensor, rows: Tensor, generator: torch.Generator) -> Tensor:
    """Draw a column for each of `rows` (N,) from the distribution in that row of `probabilities` (M, C): (N,)."""
    noise = _uniform(len(rows), generator, probabilities.device)  # (N,)
    # In single precision, the cumulative sums would lose rare words.
    total = probabilities.to(noise.device, torch.float64).cumsum(1)
    total = total / total[:, -1:] + torch.arange(len(total), device=noise.device)[:, None]  # (M, C), always rising
    places = rows.to(noise.device)
    drawn = torch.searchsorted(total.flatten(), places + noise, right=True)  # (N,) in the flattened table
    columns = probabilities.shape[1]
    return (drawn - places * columns).clamp(0, columns - 1).to(rows.device)


def _uniform(n: int, generator: torch.Generator, device: torch.device) -> Tensor:
    """Draw n numbers from [0, 1) in double precision: on `device` if it has it, and else on the CPU."""
    if _has_double_precision(device):
        return torch.rand(n, generator=generator, dtype=torch.float64, device=device)
    halves = torch.rand(2, n, generator=generator, device=device).cpu().double()  # (2, n) multiples of 2^-24
    return halves[0] + halves[1] * 2.0**-24


def _has_double_precision(device: torch.device) -> bool:
    return device.type != "mps"
