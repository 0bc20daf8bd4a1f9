"""Encoders: sparse counts in, a hidden vector per document out."""

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


def encoder_values(counts: SparseCounts, kind: EncoderInput, idf: Tensor) -> Tensor:
    """What the encoder sees in place of the counts: (N,).

    raw: x. l1: x / sum x. log1p: log(1 + x). tfidf: x idf_v, divided by the document's Euclidean norm.
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


TINY_TOTAL = 1e-12  # stands for the length of an empty document


class BagEncoder(nn.Module):
    """h = f(A f(W x + b) + a): an embedding-bag, a hidden layer, dropout; f is softplus.

    Args:
        idf: (V,) inverse document frequencies, read only with input="tfidf".
        n_hidden: width H of both layers. The first holds V x H weights and is most of a step's cost.
        input: see encoder_values.
        input_dropout: share of a document's words hidden from the encoder in training (denoising).
        output_dropout: dropout rate on h in training.
    """

    idf: Tensor

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
        """-> (B, H). `generator` drives the dropout; None, as outside training, turns it off."""
        values = dropout(encoder_values(batch.counts, self.input, self.idf), self.input_dropout, generator)  # (N,)
        h = F.softplus(bag_product(self.weight, values, batch.counts) + self.bias)  # (B, H)
        return dropout(F.softplus(self.hidden(h)), self.output_dropout, generator)


class GaussianHead(nn.Module):
    """h -> mean and log-variance of a Gaussian over the code, both batch-normalised in units of the prior.

    Normalising keeps every latent dimension in use (no collapse to the prior); the scale makes the mean spread as
    widely as the prior does. log-variance starts one below the prior's, so that the code carries something at once.
    """

    prior_log_var: Tensor

    def __init__(self, n_hidden: int, prior_var: Tensor, generator: torch.Generator) -> None:
        super().__init__()
        n_latent = len(prior_var)
        self.mean = linear(n_hidden, n_latent, generator, bias=False)  # the norms would take a bias away
        self.log_var = linear(n_hidden, n_latent, generator, bias=False)
        # With the usual eps of 1e-5 an encoder that shrinks its outputs below it escapes the norm, and collapses.
        self.mean_norm = BatchNorm(n_latent, eps=1e-8)
        self.log_var_norm = BatchNorm(n_latent, eps=1e-8)
        self.register_buffer("prior_log_var", prior_var.log())

    def forward(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """(B, H) -> mean (B, L), log-variance (B, L)"""
        scale = (0.5 * self.prior_log_var).exp()  # (L,)
        mean = self.mean_norm(self.mean(h)) * scale
        log_var = self.log_var_norm(self.log_var(h)) + self.prior_log_var - 1
        return mean, log_var


class DirichletHead(nn.Module):
    """h -> the parameters of a Dirichlet, batch-normalised as logarithms.

    a = concentration * prior * exp(norm(A h)) + floor: with the norm, no topic is lost, nor does any take them all.
    """

    median: Tensor  # (K,)

    def __init__(
        self, n_hidden: int, prior: Tensor, generator: torch.Generator, *, concentration: float, floor: float = 1e-5
    ) -> None:
        super().__init__()
        self.log_alpha = linear(n_hidden, len(prior), generator, bias=False)  # the norm would take a bias away
        self.norm = BatchNorm(len(prior), eps=1e-8)  # eps as in GaussianHead
        self.register_buffer("median", concentration * prior)
        self.floor = floor

    def forward(self, h: Tensor) -> Tensor:
        """(B, H) -> (B, K), positive"""
        norm: Tensor = self.norm(self.log_alpha(h))
        return self.median * norm.exp() + self.floor


class WeibullHead(nn.Module):
    """h -> shapes k and log scales of Weibulls, one a topic, each batch-normalised.

    The means are as DirichletHead's parameters; the shapes spread narrowly about `shape`, and stay above `floor`, for
    the divergence has Gamma(1 + 1/k) in it.
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
        """(B, H) -> k (B, K), log lambda (B, K)"""
        k = self.shape * (0.3 * self.norm(self.log_shape(h))).exp() + self.floor
        return k, self.mean(h).log() - torch.lgamma(1 + 1 / k)


class PresenceHead(nn.Module):
    """h -> the log odds that each topic is in the document, batch-normalised about those of the prior."""

    def __init__(self, n_hidden: int, n_topics: int, generator: torch.Generator, *, probability: float) -> None:
        super().__init__()
        self.logits = linear(n_hidden, n_topics, generator, bias=False)
        self.norm = BatchNorm(n_topics, eps=1e-8)
        self.centre = math.log(probability / (1 - probability))

    def forward(self, h: Tensor) -> Tensor:
        """(B, H) -> (B, K)"""
        norm: Tensor = self.norm(self.logits(h))
        return 0.5 * norm + self.centre  # more would cost a short document more than it can say
