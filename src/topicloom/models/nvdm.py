"""NVDM: the neural variational document model, whose documents have a Gaussian code instead of topic shares.

Miao, Yu & Blunsom 2016, "Neural Variational Inference for Text Processing": z ~ N(0, I), p(w | z) = softmax(R z + b).

N(0, I) and the decoder allow any rotation of z, so its dimensions have no meaning. After training, varimax finds the
simplex in which the documents' codes lie (`topic_simplex`), and topic k is the output of the decoder for a code in
corner k. theta is the softmax of a linear function of the code, fitted to the shares with which a mixture of these
topics explains the training documents (`readout`). `LogRatioDecoder` computes z from theta, so
the distribution over the words does not change. Departures from the paper:
- These topics and this theta (rotation="none"). Without them, theta = softmax(z), and topic k is the direction of
  dimension k.
- The mean of z over its dimensions has no effect, so there is one degree of freedom less.
- b is fixed at the background word frequencies (background="learned" learns it, as `as_published` does). As in GSM, the
  mean and the log-variance are batch-normalised (code_norm="none"), and words are hidden from the encoder in training
  (input_dropout=0).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from ..distributed import current
from ..nn.decoders import ProductDecoder, TopicLogits
from ..nn.posteriors import standard_normal
from ..nn.sparse import TINY, Batch, SparseCounts, expected_tokens
from ..settings import NotNegative, Positive, Rate
from .autoencoders import GaussianNetwork, VariationalTopicModel, in_large_batches, spaced_rows
from .neural import PLAIN_VARIATIONAL
from .words import Words

# Topic shares from a code whose decoder is not a mixture
#
# Such a code tells by how much each topic raises the logits of words. It does not tell which share of the document the
# topic has. The shares of a mixture of the same topics do, so theta is fitted to them.

_EM_STEPS = 30
_PRIOR_TOKENS = 2.0  # tokens with the average shares, added to each document; see benchmarks/shares_tried.md
_LEAST_SHARE = 1e-3  # each topic's least share of these tokens, so that no document has a share of exactly 0
_FIT_STEPS, _FIT_TOLERANCE = 100, 1e-7


def mixture_counts(counts: SparseCounts, beta_t: Tensor) -> Tensor:
    """Return the expected tokens of each topic in documents, by maximum likelihood given the topics: (B, K).

    Args:
        counts: B documents.
        beta_t: (V, K) the topics, columns sum to 1.
    """
    theta = beta_t.new_full((counts.n_docs, beta_t.shape[1]), 1 / beta_t.shape[1])  # (B, K)
    tokens = counts.totals[:, None] * theta  # (B, K)
    for _ in range(_EM_STEPS):
        tokens = expected_tokens(theta, beta_t, counts)
        theta = tokens / tokens.sum(1, keepdim=True).clamp_min(TINY)
    return tokens


def readout(coordinates: Tensor, tokens: Tensor) -> Tensor:
    """Return the matrix A for which softmax(coordinates A) is nearest to documents' shares of topics, (K, K).

    This is a multinomial logistic regression, which starts from A = I. At its optimum, the mean of the softmax is that
    of the shares. It needs no constant, because a weighted sum of the coordinates is constant already.

    Args:
        coordinates: (N, K), with second moments near 1. They should be draws from the documents' posteriors, because
            the noise keeps A small in directions in which documents hardly differ.
        tokens: (N, K) the tokens of each topic in the documents.
    """
    tokens = tokens.double()
    average = tokens.sum(0) / tokens.sum().clamp_min(TINY)  # (K,)
    smoothed = tokens + _PRIOR_TOKENS * average.clamp_min(_LEAST_SHARE)
    with torch.inference_mode(False), torch.enable_grad():
        x, shares = coordinates.double().clone(), smoothed / smoothed.sum(1, keepdim=True)  # (N, K) both
        matrix = torch.eye(x.shape[1], dtype=x.dtype).requires_grad_()
        optimizer = torch.optim.LBFGS(
            [matrix], max_iter=_FIT_STEPS, tolerance_change=_FIT_TOLERANCE, line_search_fn="strong_wolfe"
        )

        def loss() -> Tensor:
            optimizer.zero_grad()
            distance = -(shares * torch.log_softmax(x @ matrix, dim=1)).sum(1).mean()
            distance.backward()
            return distance

        optimizer.step(loss)
    return matrix.detach()


# Varimax rotation, which makes the dimensions of a Gaussian code readable
#
# The prior N(0, I) does not change under rotation, so any rotation of the code fits the documents equally well. The
# distribution of the codes does: most are near a corner, edge or face of a simplex whose corners are topics, so that
# their coordinates have heavy tails in one rotation only. Rohe & Zeng 2023, "Vintage factor analysis with Varimax
# performs statistical inference", show when varimax finds it.

_STEPS, _ROTATION_TOLERANCE = 200, 1e-6
# The weight of the posterior's noise in directions in which the codes hardly differ. It keeps draws of theta within the
# range of floating-point numbers.
_NOISE_SHARE = 0.003
_LEAST_WEIGHT = 0.1  # bounds the distance of the corner of a topic that no document comes close to


@dataclass(frozen=True)
class TopicSimplex:
    """The simplex that codes lie in, (K, L) corners, and coordinates of codes in it.

    The coordinates of a code z are y = z A + a, where y_k is large if z is near corner k. They satisfy
    sum_k w_k y_k = 1, and w_k y_k are the barycentric coordinates of z.

    Attributes:
        linear: A, (L, K).
        shift: a, (K,).
        corners: (K, L) the code at which topic k is read. All coordinates but y_k are 0, and y_k is 1 / w_k or 10,
            whichever is less, or the largest y_k of a document if that is more than both.
        weights: w, (K,), of the length 1.
    """

    linear: Tensor
    shift: Tensor
    corners: Tensor
    weights: Tensor


def varimax(x: Tensor) -> Tensor:
    """Return the rotation R, (K, K), that gives the columns of x R the largest variance of squares.

    Kaiser 1958, "The varimax criterion for analytic rotation in factor analysis", without his normalisation of rows. A
    step is that of the power method.

    Args:
        x: (N, K) of any floating-point type.
    """
    rotation = torch.eye(x.shape[1], dtype=x.dtype)  # (K, K)
    before = 0.0
    for _ in range(_STEPS):
        y = x @ rotation  # (N, K)
        left, values, right = torch.linalg.svd(x.mT @ (y**3 - y * (y**2).mean(0)))
        rotation = left @ right
        total = float(values.sum())
        if total <= before * (1 + _ROTATION_TOLERANCE):
            break
        before = total
    return rotation


def centred_basis(n: int, dtype: torch.dtype) -> Tensor:
    """Return n - 1 orthonormal columns with the sum 0, (n, n - 1)."""
    centring = torch.eye(n, dtype=dtype) - 1 / n
    basis: Tensor = torch.linalg.svd(centring)[0][:, :-1]
    return basis


def topic_simplex(codes: Tensor, variance: Tensor) -> TopicSimplex:
    """Return the simplex with K corners in which the codes of documents lie.

    Args:
        codes: (N, K) the codes, each with the sum 0, so that they have K - 1 dimensions.
        variance: (K,) the mean variance of their posteriors.

    Returns:
        a simplex whose tensors are of double precision, on the CPU.
    """
    codes, variance = codes.double().cpu(), variance.double().cpu()
    n, k = codes.shape
    basis = centred_basis(k, codes.dtype)  # (K, K - 1)
    x = torch.cat([torch.ones(n, 1, dtype=codes.dtype), codes @ basis], 1)  # (N, K)
    moments = x.mT @ x / n
    moments[1:, 1:] += _NOISE_SHARE * basis.mT @ (variance[:, None] * basis)
    values, vectors = torch.linalg.eigh(moments)
    values = values.clamp_min(1e-12 * values.amax())  # all codes may be equal, with certain posteriors
    white, colour = (vectors * values**power @ vectors.mT for power in (-0.5, 0.5))  # (K, K) both
    rotation = varimax(x @ white)
    mixing, unmixing = white @ rotation, rotation.mT @ colour  # y = x mixing, x = y unmixing
    y = x @ mixing  # (N, K)
    sign = torch.where((y**3).mean(0) < 0, -1.0, 1.0).to(codes.dtype)  # the documents of a topic are the heavy tail
    mixing, unmixing, y = mixing * sign, sign[:, None] * unmixing, y * sign
    weights = unmixing[:, 0]  # the means of y
    directions = unmixing[:, 1:] @ basis.mT  # (K, K)
    corner = torch.where(weights > _LEAST_WEIGHT, 1 / weights, 1 / _LEAST_WEIGHT)  # y_k where all others are 0
    length = torch.maximum(corner, y.amax(0))  # as documents have noise, some are beyond the corner
    return TopicSimplex(basis @ mixing[1:], mixing[0], length[:, None] * directions, weights)


_LEAST_STRETCH = 0.01  # the least factor from code to log-odds; single precision can then invert the map


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
    corners: Tensor  # (K, K) the code of a document of topic k, once the corners are placed
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


_MOST_CODES, _MOST_READ = 20_000, 5_000  # the most documents for the rotation, and for the readout of theta


class NVDMNetwork(GaussianNetwork):
    """x -> h -> N(mu, diag sigma^2) -> z -> words."""

    decoder: LogRatioDecoder

    def __init__(self, settings: NVDM, words: Words, generator: torch.Generator) -> None:
        decoder = LogRatioDecoder(settings.build_topics(words, generator))
        super().__init__(decoder, standard_normal(settings.n_topics), settings, words, generator)
        self.rotated = settings.rotation == "varimax" and words.seeds is None

    def to_theta(self, z: Tensor) -> Tensor:
        """Return the shares of topics that a code stands for: (B, K) -> (B, K)."""
        return self.decoder.coordinates.theta(z + self.shares.logits)

    def end_training(self, documents: Iterable[Batch]) -> None:
        """Make the corners of the simplex of the documents' codes the topics, and fit theta to their shares."""
        if not self.rotated:
            return
        documents, n_topics = in_large_batches(documents), len(self.shares.logits)
        means, variance = [torch.zeros(0, n_topics)], torch.zeros_like(self.shares.logits)
        for batch in documents:
            posterior = self.code(batch)
            means.append(posterior.mean.cpu())
            variance = variance + posterior.log_var.exp().sum(0)
        own = torch.cat(means) + self.shares.logits.cpu()  # (d, K) of this rank's documents
        codes = current().rows(own)  # (D, K)
        variance = current().sum(variance.cpu()) / len(codes)  # (K,)
        if not (codes.isfinite().all() and variance.isfinite().all()):  # training has diverged
            return
        chosen = codes[:: math.ceil(len(codes) / _MOST_CODES)]  # (N, K)
        simplex = topic_simplex(chosen - chosen.mean(1, keepdim=True), variance)
        coordinates = self.decoder.coordinates
        coordinates.place(simplex)
        every = math.ceil(len(codes) / _MOST_READ)
        read, tokens = current().rows(own[::every]), current().rows(self._tokens(documents, every))  # (n, K) both
        # The noise of the posterior, the same whenever this is called.
        noise = torch.randn(read.shape, generator=torch.Generator().manual_seed(0)) * variance.sqrt()
        matrix = readout((read + noise).double() @ simplex.linear + simplex.shift, tokens)  # (K, K)
        if matrix.isfinite().all():
            coordinates.place(simplex, matrix)
        for tensor in coordinates.buffers():
            tensor.copy_(current().of_first(tensor))  # other machines may round differently

    def _tokens(self, documents: Iterable[Batch], every: int) -> Tensor:
        """Return how many tokens each topic has in every `every`-th document, besides the background: (n, K)."""
        beta_t, background = self.decoder.beta_t(), torch.softmax(self.decoder.topics.background, dim=0)  # (V, K), (V,)
        components = torch.cat([beta_t, background[:, None].to(beta_t.dtype)], dim=1)  # (V, K + 1)
        found, before = [torch.zeros(0, beta_t.shape[1])], 0
        for batch in documents:
            rows = spaced_rows(batch, before, every)
            found.append(mixture_counts(batch.counts.take(rows), components)[:, :-1].cpu())
            before += batch.n_docs
        return torch.cat(found)


@dataclass(eq=False, repr=False, kw_only=True)
class NVDM(VariationalTopicModel):
    """Neural variational document model (Miao, Yu & Blunsom 2016).

    Its documents are codes of a latent space and not mixtures of topics. The topics are found in that space after
    training, as the corners of the simplex in which the codes lie. Then theta is fitted to the shares that a mixture of
    these topics has in training documents. Each batch takes memory in proportion to the vocabulary.

    `help(topicloom.VariationalTopicModel)` describes the other settings, which all variational models share. Topics
    exist only after training. Therefore `start` is "random", and `learn_shares`, `spare_topics`, `min_diversity` and
    `kl_warmup` are off.

    Shape args:
        rotation: "varimax" rotates the code at the end of `fit`, so that its dimensions are topics (Kaiser 1958; Rohe &
            Zeng 2023). "none" reads each dimension as a topic, which seldom makes sense. With `seed_words`, and in
            `partial_fit` of a new model, there is no rotation.

    Examples:
        >>> import topicloom as tl
        >>> corpus = tl.datasets.synthetic_lda(n_docs=80, n_words=50, n_topics=3).corpus
        >>> model = tl.NVDM(n_topics=3, epochs=3, random_state=0).fit(corpus)
        >>> model.transform(corpus).shape
        (80, 3)
    """

    published: ClassVar[dict[str, Any]] = PLAIN_VARIATIONAL | {
        "rotation": "none",
        "background": "learned",
        "hidden_size": 500,
        "activation": "relu",
        "batch_size": 64,
        "learning_rate": 5e-5,
        "epochs": 1000,
    }

    rotation: Literal["varimax", "none"] = "varimax"
    start: Literal["random"] = "random"
    topic_gain: Positive = 4.0
    min_diversity: Rate = 0.0
    learn_shares: bool = False
    spare_topics: NotNegative = 0.0
    kl_warmup: NotNegative | None = 0.0

    def build_network(self, words: Words, generator: torch.Generator) -> NVDMNetwork:
        return NVDMNetwork(self, words, generator)
