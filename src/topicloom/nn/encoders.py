"""Encoders: from sparse counts to a hidden vector of each document, and from there to parameters of a posterior."""

from __future__ import annotations

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .batch import Batch
from .layers import (
    BatchNorm,
    dropout,
    linear,
    normal_parameter,
)
from .sparse import SparseCounts, bag_product

EncoderInput = Literal["raw", "l1", "log1p", "tfidf"]
Target = Literal["counts", "tfidf"]
TINY_TOTAL = 1e-12  # replaces the length of an empty document, which is a divisor


def encoder_values(counts: SparseCounts, kind: EncoderInput, idf: Tensor) -> Tensor:
    """Return what the encoder receives in place of the non-zero counts x, (N,).

    Args:
        counts: the word counts.
        kind: "raw" is x; "l1" is x divided by the tokens of its document; "log1p" is log(1 + x); "tfidf" is x idf_v
            divided by the Euclidean norm of its document.
        idf: (V,) inverse document frequencies.
    """
    if kind == "log1p":
        return counts.values.log1p()
    if kind == "l1":
        return counts.values / counts.totals.clamp_min(TINY_TOTAL)[counts.documents]
    if kind == "tfidf":
        weighted = counts.values * idf[counts.indices]
        norm = counts.sum_by_document(weighted**2).sqrt().clamp_min(TINY_TOTAL)
        return weighted / norm[counts.documents]
    return counts.values


def tfidf_counts(counts: SparseCounts, idf: Tensor) -> SparseCounts:
    """Return the counts weighted by the inverse document frequencies idf (V,), with the same total in each document."""
    weighted = counts.values * idf[counts.indices]  # (N,)
    factor = counts.totals / counts.sum_by_document(weighted).clamp_min(TINY_TOTAL)  # (B,)
    return counts.with_values(weighted * factor[counts.documents])


class BagEncoder(nn.Module):
    """h = f(A f(W x + b) + a): an embedding-bag, a hidden layer and dropout, where f is softplus.

    Args:
        idf: (V,) inverse document frequencies, used only with input="tfidf".
        n_hidden: the width H of both layers. The first one has V x H weights and takes most of the time of a step.
        generator: draws the initial weights.
        input: the form of the counts; see `encoder_values`.
        input_dropout: the share of a document's words that are hidden from the encoder in training.
        output_dropout: the dropout rate of h in training.
    """

    idf: Tensor  # (V,)

    def __init__(
        self,
        idf: Tensor,
        n_hidden: int,
        generator: torch.Generator,
        *,
        input: EncoderInput = "log1p",
        input_dropout: float = 0.0,
        output_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.register_buffer("idf", idf, persistent=True)
        self.weight = normal_parameter(len(idf), n_hidden, scale=1 / math.sqrt(n_hidden), generator=generator)
        self.bias = nn.Parameter(torch.zeros(n_hidden))
        self.hidden = linear(n_hidden, n_hidden, generator)
        self.input = input
        self.input_dropout = input_dropout
        self.output_dropout = output_dropout

    def forward(self, batch: Batch, generator: torch.Generator | None) -> Tensor:
        """Return the hidden vectors of the documents, (B, H).

        Args:
            batch: B documents.
            generator: draws the dropout; None, as outside training, turns dropout off.
        """
        values = dropout(encoder_values(batch.counts, self.input, self.idf), self.input_dropout, generator)  # (N,)
        h = F.softplus(bag_product(self.weight, values, batch.counts) + self.bias)  # (B, H)
        return dropout(F.softplus(self.hidden(h)), self.output_dropout, generator)


class GaussianHead(nn.Module):
    """From h to the mean and the log-variance of a Gaussian, both batch-normalised in units of the prior.

    The normalisation keeps every latent dimension in use, so that the posterior does not collapse to the prior. The
    scale gives the mean the spread of the prior. The log-variance starts one below that of the prior, so that the code
    is informative from the first step.

    Args:
        n_hidden: the width H of h.
        prior_var: (L,) the variance of the prior.
        generator: draws the initial weights.
    """

    prior_log_var: Tensor  # (L,)

    def __init__(self, n_hidden: int, prior_var: Tensor, generator: torch.Generator) -> None:
        super().__init__()
        n_latent = len(prior_var)
        self.mean = linear(n_hidden, n_latent, generator, bias=False)  # the norms would remove a bias
        self.log_var = linear(n_hidden, n_latent, generator, bias=False)
        # With the usual eps of 1e-5, an encoder whose outputs become smaller than eps escapes the norm and collapses.
        self.mean_norm = BatchNorm(n_latent, eps=1e-8)
        self.log_var_norm = BatchNorm(n_latent, eps=1e-8)
        self.register_buffer("prior_log_var", prior_var.log())

    def forward(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean (B, L) and the log-variance (B, L) of hidden vectors (B, H)."""
        scale = (0.5 * self.prior_log_var).exp()  # (L,)
        mean = self.mean_norm(self.mean(h)) * scale
        log_var = self.log_var_norm(self.log_var(h)) + self.prior_log_var - 1
        return mean, log_var


class DirichletHead(nn.Module):
    """From h to the parameters of a Dirichlet, a = concentration * prior * exp(norm(A h)) + floor.

    Because of the norm, no topic is lost, and none takes all documents.

    Args:
        n_hidden: the width H of h.
        prior: (K,) the parameters of the prior.
        generator: draws the initial weights.
        concentration: the ratio of the parameters to those of the prior, in the median.
        floor: the smallest parameter.
    """

    median: Tensor  # (K,) concentration * prior

    def __init__(
        self, n_hidden: int, prior: Tensor, generator: torch.Generator, *, concentration: float, floor: float = 1e-5
    ) -> None:
        super().__init__()
        self.log_alpha = linear(n_hidden, len(prior), generator, bias=False)  # the norm would remove a bias
        self.norm = BatchNorm(len(prior), eps=1e-8)  # eps as in GaussianHead
        self.register_buffer("median", concentration * prior)
        self.floor = floor

    def forward(self, h: Tensor) -> Tensor:
        """Return the parameters of hidden vectors (B, H): (B, K), positive."""
        norm: Tensor = self.norm(self.log_alpha(h))
        return self.median * norm.exp() + self.floor


class WeibullHead(nn.Module):
    """From h to the shapes and the log scales of Weibull variables, one for each topic, both batch-normalised.

    The means are those of a DirichletHead. The shapes vary little around `shape` and stay above `floor`, because the
    divergence contains Gamma(1 + 1/k).

    Args:
        n_hidden, prior, generator, concentration: as in `DirichletHead`.
        shape: the typical shape k.
        floor: the smallest shape.
    """

    def __init__(
        self,
        n_hidden: int,
        prior: Tensor,
        generator: torch.Generator,
        *,
        concentration: float,
        shape: float,
        floor: float = 0.1,
    ) -> None:
        super().__init__()
        self.mean = DirichletHead(n_hidden, prior, generator, concentration=concentration)
        self.log_shape = linear(n_hidden, len(prior), generator, bias=False)
        self.norm = BatchNorm(len(prior), eps=1e-8)
        self.shape = shape
        self.floor = floor

    def forward(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """Return the shapes k (B, K) and the log scales log lambda (B, K) of hidden vectors (B, H)."""
        k = self.shape * (0.3 * self.norm(self.log_shape(h))).exp() + self.floor
        return k, self.mean(h).log() - torch.lgamma(1 + 1 / k)


class IndicatorHead(nn.Module):
    """From h to the log odds that each topic is in the document, batch-normalised around those of the prior.

    Args:
        n_hidden: the width H of h.
        n_topics: the number of topics K.
        generator: draws the initial weights.
        probability: the prior probability that a topic is in a document.
    """

    def __init__(self, n_hidden: int, n_topics: int, generator: torch.Generator, *, probability: float) -> None:
        super().__init__()
        self.logits = linear(n_hidden, n_topics, generator, bias=False)
        self.norm = BatchNorm(n_topics, eps=1e-8)
        self.centre = math.log(probability / (1 - probability))

    def forward(self, h: Tensor) -> Tensor:
        """Return the log odds of hidden vectors (B, H): (B, K)."""
        norm: Tensor = self.norm(self.logits(h))
        return 0.5 * norm + self.centre  # a larger spread costs a short document more than it gains
