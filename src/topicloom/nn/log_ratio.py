"""LogRatioDecoder: the decoder of a Gaussian code, and the coordinates in which topics are read from the code."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from .decoders import ProductDecoder
from .sparse import SparseCounts
from .topic_logits import TopicLogits
from .varimax import TopicSimplex, centred_basis

_LEAST_STRETCH = 0.01  # of log-odds to a code, so that a code can be computed from theta in single precision


class TopicCoordinates(nn.Module):
    """An affine map from a code z to log-odds of topics, and its inverse. Both ignore the mean of z.

    At first, log-odds and code are the same, and topic k is the direction of dimension k. After `place`, the topics are
    the corners of a simplex.

    Args:
        n_topics: the number of topics and of dimensions K.
    """

    linear: Tensor  # (K, K)
    shift: Tensor  # (K,)
    inverse: Tensor  # (K, K)
    centre: Tensor  # (K,)
    corners: Tensor  # (K, K) the code of a document of topic k, once they are placed
    placed: Tensor  # () bool

    def __init__(self, n_topics: int) -> None:
        super().__init__()
        one = torch.eye(n_topics)
        self.register_buffer("linear", one)
        self.register_buffer("shift", torch.zeros(n_topics))
        self.register_buffer("inverse", one.clone())
        self.register_buffer("centre", torch.zeros(n_topics))
        self.register_buffer("corners", torch.zeros(n_topics, n_topics))
        self.register_buffer("placed", torch.tensor(False))

    def theta(self, z: Tensor) -> Tensor:
        """Return the softmax of the log-odds of codes: (B, K) -> (B, K)."""
        return torch.softmax(torch.addmm(self.shift.to(z.dtype), z, self.linear.to(z.dtype)), dim=1)

    def code(self, theta: Tensor) -> Tensor:
        """Return the code whose theta this is, with the mean 0: (B, K) -> (B, K)."""
        log_theta = theta.clamp_min(torch.finfo(theta.dtype).tiny).log()
        ratio = log_theta - log_theta.mean(1, keepdim=True)
        return torch.addmm(self.centre.to(theta.dtype), ratio, self.inverse.to(theta.dtype))

    def topic_codes(self) -> Tensor:
        """Return the code that stands for each topic, (K, K)."""
        if self.placed:
            return self.corners
        n_topics = len(self.linear)  # spare topics may have been removed
        centred = torch.eye(n_topics, device=self.linear.device) - 1 / n_topics
        return math.sqrt(n_topics) * centred  # the typical length of a draw from N(0, I)

    def place(self, simplex: TopicSimplex, readout: Tensor | None = None) -> None:
        """Make the corners of a simplex the topics.

        Args:
            simplex: the simplex.
            readout: (K, K) A. The log-odds are y A, where y are the coordinates in the simplex; None is I.
        """
        matrix = torch.eye(len(simplex.linear), dtype=simplex.linear.dtype) if readout is None else readout
        basis = centred_basis(len(matrix), matrix.dtype)  # (K, K - 1); codes and log-odds have no mean
        left, stretch, right = torch.linalg.svd(basis.mT @ simplex.linear @ matrix @ basis)
        left, right, stretch = basis @ left, right @ basis.mT, stretch.clamp_min(_LEAST_STRETCH)
        linear, inverse = (left * stretch) @ right, (right.mT / stretch) @ left.mT  # (K, K) both
        shift = simplex.shift @ matrix  # (K,)
        shift = shift - shift.mean()
        self.linear.copy_(linear)
        self.shift.copy_(shift)
        self.inverse.copy_(inverse)
        self.centre.copy_(-shift @ inverse)
        self.corners.copy_(simplex.corners)
        self.placed.fill_(True)


class LogRatioDecoder(ProductDecoder):
    """p(w | z) = softmax(B z + b), where z is the code of theta (Miao et al. 2016).

    A theta with a single topic has no code. Topic k is therefore p(w | z) for the code of `coordinates.topic_codes`.

    Args:
        topics: the logits B and the background b.
    """

    def __init__(self, topics: TopicLogits) -> None:
        super().__init__(topics)
        self.coordinates = TopicCoordinates(topics.deviations().shape[1])

    def log_likelihood(self, theta: Tensor, counts: SparseCounts) -> Tensor:
        return super().log_likelihood(self.coordinates.code(theta), counts)

    def log_probabilities(self, theta: Tensor) -> Tensor:
        return super().log_probabilities(self.coordinates.code(theta))

    def beta_t(self) -> Tensor:
        codes = self.coordinates.topic_codes()  # (K, K)
        logits = self.topics.deviations() @ codes.to(self.topics.background.dtype).mT  # (V, K)
        return torch.softmax(logits + self.topics.background[:, None], dim=0)

    def topic_word(self) -> Tensor:
        return self.beta_t().mT
