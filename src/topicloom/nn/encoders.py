"""Encoders, which map sparse counts to hidden vectors, and heads, which map these to the parameters of posteriors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .dirichlet_posteriors import Concentration, weibull_shape
from .layers import (
    ACTIVATIONS,
    EPS_OF_CODES,
    PLAIN_NORMS,
    Activation,
    CodeNorm,
    CodeNormKind,
    dropout,
    linear,
    norm_of_location,
    norm_of_mean,
    norm_of_spread,
    normal_parameter,
)
from .sparse import Batch, SparseCounts, bag_product

EncoderInput = Literal["raw", "l1", "log1p", "tfidf"]
EncoderReads = Literal["counts", "vectors", "both"]
Target = Literal["counts", "tfidf"]
TINY_TOTAL = 1e-12  # replaces the length of an empty document, so that nothing is divided by 0
_VECTOR_SCALE = 3.0  # the initial weights of vectors, which have unit length, are this much larger than those of words
_WITHOUT_VECTOR = 0.1  # the share of documents without their vector in training, so that documents may have none
_DIRICHLET_SCALE = 2.0  # the factor of normalised logits; benchmarks/shares_tried.md compares others
# The factor of normalised logarithms of Weibull shapes. It keeps the shapes near those of gamma variables.
_SHAPE_SCALE = 0.3


def encoder_values(counts: SparseCounts, kind: EncoderInput, idf: Tensor) -> Tensor:
    """Return the input of the encoder for the non-zero counts x, (N,).

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
    """h = f(A f(W x + C e + b) + a): an embedding-bag of words x, a vector e, a hidden layer and dropout.

    With one width there is no hidden layer, and with more than two there are several.

    Args:
        idf: (V,) inverse document frequencies, used only with input="tfidf".
        n_hidden: the width H of both layers, or the widths of any number of layers, the last of which is H. The first
            layer has V weights for each of its units, unless the encoder reads vectors alone, and takes most of the
            time of a step.
        generator: draws the initial weights.
        input: the form of the counts; see `encoder_values`.
        input_dropout: the share of a document's words that are hidden from the encoder in training.
        output_dropout: the dropout rate of h in training.
        activation: the function f.
        reads: "counts" leaves out C e, "vectors" leaves out W x, and "both" has both. e is the document's vector with
            unit length. In training, a tenth of the documents lack it.
        vector_size: the length of the vectors; 0 with reads="counts".
        vector_tokens: the number of tokens that a vector counts as in posteriors that depend on the document's length.

    >>> import torch
    >>> from topicloom.nn.sparse import Batch, SparseCounts
    >>> encoder = BagEncoder(torch.ones(5), 4, torch.Generator().manual_seed(0))
    >>> counts = SparseCounts(torch.tensor([0, 3, 1]), torch.tensor([2.0, 1.0, 1.0]), torch.tensor([0, 2, 3]), 5)
    >>> encoder(Batch(counts), None).shape  # two documents; None turns dropout off
    torch.Size([2, 4])
    """

    idf: Tensor  # (V,)

    def __init__(
        self,
        idf: Tensor,
        n_hidden: int | Sequence[int],
        generator: torch.Generator,
        *,
        input: EncoderInput = "log1p",
        input_dropout: float = 0.0,
        output_dropout: float = 0.0,
        activation: Activation = "softplus",
        reads: EncoderReads = "counts",
        vector_size: int = 0,
        vector_tokens: int = 0,
    ) -> None:
        super().__init__()
        self.register_buffer("idf", idf)
        widths = (n_hidden, n_hidden) if isinstance(n_hidden, int) else tuple(n_hidden)
        n_first = widths[0]
        scale = 1 / math.sqrt(n_first)
        # It is drawn in any case, so that the other weights do not depend on whether it is kept.
        weight = normal_parameter(len(idf), n_first, scale=scale, generator=generator)
        self.weight = None if reads == "vectors" else weight  # (V, H) W
        self.bias = nn.Parameter(torch.zeros(n_first))
        self.hidden = linear(n_first, widths[1], generator) if len(widths) > 1 else None
        self.deeper = nn.ModuleList(linear(*each, generator) for each in itertools.pairwise(widths[1:]))
        self.input = input
        self.input_dropout = input_dropout
        self.output_dropout = output_dropout
        self.activation = activation
        self.reads, self.vector_tokens = reads, vector_tokens
        self.of_vectors: nn.Parameter | None = None  # (E, H) C
        if reads != "counts":
            self.of_vectors = normal_parameter(vector_size, n_first, scale=_VECTOR_SCALE * scale, generator=generator)

    def forward(self, batch: Batch, generator: torch.Generator | None) -> Tensor:
        """Return the hidden vectors of the documents, (B, H).

        Args:
            batch: B documents.
            generator: draws the dropout. None, outside training, turns dropout off.
        """
        f = ACTIVATIONS[self.activation]
        h = f(self.first_sums(batch, generator))  # (B, H)
        if self.hidden is not None:
            h = f(self.hidden(h))
        for layer in self.deeper:
            h = f(layer(h))
        return dropout(h, self.output_dropout, generator)

    def first_sums(self, batch: Batch, generator: torch.Generator | None) -> Tensor:
        """Return W x + C e + b, (B, H). Encoders that read more override this, and add to the result.

        Args:
            batch: B documents.
            generator: draws the dropout. None, outside training, turns dropout off.
        """
        if self.weight is None:
            return self.sums_without_words(batch, generator)
        values = self.word_values(batch, generator)  # (N,)
        return bag_product(self.weight, values, batch.own_counts) + self.sums_without_words(batch, generator)

    def sums_without_words(self, batch: Batch, generator: torch.Generator | None) -> Tensor:
        """Return C e + b, (B, H), or b, (H,), without vectors. The arguments are those of `first_sums`."""
        if self.of_vectors is None:
            return self.bias
        rate = _WITHOUT_VECTOR if self.reads == "both" else 0.0
        vectors = F.normalize(batch.fields["vectors"], dim=1)  # (B, E); a zero vector stays zero
        kept = dropout(torch.ones_like(vectors[:, :1]), rate, generator) > 0  # (B, 1)
        return torch.addmm(self.bias, vectors * kept, self.of_vectors)

    def word_values(self, batch: Batch, generator: torch.Generator | None) -> Tensor:
        """Return x at the non-zeros of the documents' own counts, (N,). The arguments are those of `first_sums`."""
        counts = batch.own_counts
        values = encoder_values(counts, self.input, self.idf)
        return dropout(values, self.input_dropout, generator, counts.offsets.diff())

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        if self.weight is None:
            state_dict.pop(prefix + "weight", None)  # models of before have it, and did not use it
        super()._load_from_state_dict(state_dict, prefix, *others)

    @torch.no_grad()
    def start_as_linear(self, generator: torch.Generator) -> None:
        """Draw the first layer's weights and bias as PyTorch does for a linear layer, U(-1/sqrt(V), 1/sqrt(V))."""
        if self.weight is not None:
            bound = len(self.weight) ** -0.5
            for parameter in (self.weight, self.bias):
                parameter.uniform_(-bound, bound, generator=generator)

    def n_tokens(self, batch: Batch) -> Tensor:
        """Return the number of tokens that the posterior of each document counts, (B,).

        In training, the documents may have words of their neighbours. Other documents have none. If the encoder reads
        their vectors, it expects the topics of such words, and each vector counts as `vector_tokens` tokens.
        """
        totals = batch.counts.totals
        if self.of_vectors is None or batch.own is not None:
            return totals
        return totals + self.vector_tokens * batch.fields["vectors"].any(1)


class GaussianHead(nn.Module):
    """From h to the mean and the log-variance of a Gaussian, in units of the prior.

    The mean is scaled to the spread of the prior. The log-variance starts one below that of the prior, so that the code
    is informative from the first step. With the norms "none" and "shift" of the papers, neither is done.

    Args:
        n_hidden: the width H of h.
        prior_var: (L,) the variance of the prior.
        generator: draws the initial weights.
        norm: the normalisation of the code; see `CodeNorm`.
        norm_eps: the number that it adds to the variance.
        scaled: whether the norm "mean" has learned scales.

    >>> import torch
    >>> head = GaussianHead(4, torch.ones(2), torch.Generator().manual_seed(0))
    >>> mean, log_var = head(torch.randn(3, 4, generator=torch.Generator().manual_seed(0)))  # of (B, H)
    >>> mean.shape, log_var.shape
    (torch.Size([3, 2]), torch.Size([3, 2]))
    """

    prior_log_var: Tensor  # (L,)

    def __init__(
        self,
        n_hidden: int,
        prior_var: Tensor,
        generator: torch.Generator,
        *,
        norm: CodeNormKind = "mean",
        norm_eps: float = EPS_OF_CODES,
        scaled: bool = True,
    ) -> None:
        super().__init__()
        n_latent = len(prior_var)
        self.mean = linear(n_hidden, n_latent, generator, bias=False)  # the norms have a shift if one is needed
        self.log_var = linear(n_hidden, n_latent, generator, bias=False)
        self.mean_norm = norm_of_mean(n_latent, norm, scaled=scaled, eps=norm_eps)
        self.log_var_norm = norm_of_spread(n_latent, norm, scaled=scaled, eps=norm_eps)
        plain = norm in PLAIN_NORMS
        unit = torch.zeros_like(prior_var) if plain else prior_var.log()
        self.register_buffer("prior_log_var", unit)  # saved, because a network keeps its scale when it loses topics
        self.start = 0.0 if plain else -1.0

    def forward(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean (B, L) and the log-variance (B, L) of hidden vectors (B, H)."""
        scale = (0.5 * self.prior_log_var).exp()  # (L,)
        mean = self.mean_norm(self.mean(h)) * scale
        log_var = self.log_var_norm(self.log_var(h)) + self.prior_log_var + self.start
        return mean, log_var


class DirichletHead(nn.Module):
    """From h to the parameters of a Dirichlet, a = prior + c n softmax(2 norm(A h) + log prior) + .00001.

    n is the number of tokens of the document. As in latent Dirichlet allocation, the parameters are the prior plus
    counts, so that in a short document most topics keep their prior. With the norms "none" and "shift", the parameters
    are a = softplus(norm(A h)) + .00001 (Burkhardt & Kramer 2019).

    Args:
        n_hidden: the width H of h.
        n_topics: the number of topics K.
        generator: draws the initial weights.
        concentration: c, the weight of one observed token. Some norms learn it; see `Concentration`.
        norm: the normalisation of the code; see `CodeNorm`.
        norm_eps: the number that it adds to the variance.

    >>> import torch
    >>> head = DirichletHead(4, 2, torch.Generator().manual_seed(0), concentration=1.0)
    >>> hidden, totals = torch.randn(3, 4, generator=torch.Generator().manual_seed(0)), torch.tensor([5.0, 9.0, 2.0])
    >>> head(hidden, torch.full((2,), 0.1), totals).shape  # (B, K)
    torch.Size([3, 2])
    """

    floor = 1e-5  # the smallest parameter

    def __init__(
        self,
        n_hidden: int,
        n_topics: int,
        generator: torch.Generator,
        *,
        concentration: float,
        norm: CodeNormKind = "mean",
        norm_eps: float = EPS_OF_CODES,
    ) -> None:
        super().__init__()
        self.log_alpha = linear(n_hidden, n_topics, generator, bias=False)  # the norm has the shift
        self.norm = norm_of_location(n_topics, norm, eps=norm_eps)
        self.concentration = Concentration(concentration, norm)
        self.plain = norm in PLAIN_NORMS

    def logits(self, h: Tensor, prior: Tensor) -> Tensor:
        """Return the input of the softmax or softplus, (B, K), given hidden vectors (B, H) and a prior (K,)."""
        x: Tensor = self.norm(self.log_alpha(h))
        return x if self.plain else _DIRICHLET_SCALE * x + prior.log()

    def forward(self, h: Tensor, prior: Tensor, totals: Tensor) -> Tensor:
        """Return the parameters (B, K), which are positive.

        Args:
            h: (B, H) hidden vectors.
            prior: (K,) the parameters of the prior.
            totals: (B,) the tokens of the documents.
        """
        x = self.logits(h, prior)
        if self.plain:
            return F.softplus(x) + self.floor
        counts: Tensor = self.concentration() * totals.to(x)[:, None] * torch.softmax(x, dim=1)  # (B, K)
        return prior + counts + self.floor


class WeibullHead(nn.Module):
    """From h to the shapes and the log scales of Weibull variables, one for each topic.

    The means a come from a DirichletHead. A topic without tokens has the shape of the prior. If a document
    has tokens of a topic, the shape starts near that of a Weibull variable that resembles a Gamma(a) variable (see
    `weibull_shape`).

    Args:
        n_hidden: the width H of h.
        n_topics: the number of topics K.
        generator: draws the initial weights.
        concentration: c, the weight of one observed token. Some norms learn it; see `Concentration`.
        norm: the normalisation of the code; see `CodeNorm`.
        norm_eps: the number that it adds to the variance.

    >>> import torch
    >>> head = WeibullHead(4, 2, torch.Generator().manual_seed(0), concentration=1.0)
    >>> hidden, totals = torch.randn(3, 4, generator=torch.Generator().manual_seed(0)), torch.tensor([5.0, 9.0, 2.0])
    >>> shape, log_scale = head(hidden, torch.full((2,), 0.1), totals)
    >>> shape.shape, log_scale.shape
    (torch.Size([3, 2]), torch.Size([3, 2]))
    """

    floor = 0.1  # added to all shapes, because small shapes give extreme values of log weights

    def __init__(
        self,
        n_hidden: int,
        n_topics: int,
        generator: torch.Generator,
        *,
        concentration: float,
        norm: CodeNormKind = "mean",
        norm_eps: float = EPS_OF_CODES,
    ) -> None:
        super().__init__()
        self.mean = DirichletHead(
            n_hidden, n_topics, generator, concentration=concentration, norm=norm, norm_eps=norm_eps
        )
        self.log_shape = linear(n_hidden, n_topics, generator, bias=False)
        self.norm = norm_of_spread(n_topics, norm, eps=norm_eps)

    def prior_shape(self, prior: Tensor) -> Tensor:
        """Return the shape of the prior's variables, (), given those of its gammas (K,)."""
        return weibull_shape(prior.mean()) + self.floor

    def forward(self, h: Tensor, prior: Tensor, totals: Tensor) -> tuple[Tensor, Tensor]:
        """Return the shapes k and the log scales log lambda, (B, K) each.

        Args:
            h: (B, H) hidden vectors.
            prior: (K,) the parameters of the prior.
            totals: (B,) the tokens of the documents.
        """
        a = self.mean(h, prior, totals)  # (B, K)
        least = weibull_shape(prior.mean())  # ()
        added = (weibull_shape((a - prior).clamp_min(0) + prior.mean()) - least).clamp_min(0)  # (B, K)
        k = least + self.floor + added * (_SHAPE_SCALE * self.norm(self.log_shape(h))).exp()
        return k, a.log() - torch.lgamma(1 + 1 / k)


class IndicatorHead(nn.Module):
    """From h to the log odds that each topic is in the document. They start near the log odds of the prior.

    Their batch normalisation has a learned scale, so that the number of topics can differ between documents.

    Args:
        n_hidden: the width H of h.
        n_topics: the number of topics K.
        generator: draws the initial weights.
        probability: the prior probability that a topic is in a document.
        norm: "none" has no normalisation. All other values have the same effect.
        norm_eps: the number that the normalisation adds to the variance.

    >>> import torch
    >>> head = IndicatorHead(4, 2, torch.Generator().manual_seed(0), probability=0.3)
    >>> head(torch.randn(3, 4, generator=torch.Generator().manual_seed(0))).shape
    torch.Size([3, 2])
    """

    def __init__(
        self,
        n_hidden: int,
        n_topics: int,
        generator: torch.Generator,
        *,
        probability: float,
        norm: CodeNormKind = "mean",
        norm_eps: float = EPS_OF_CODES,
    ) -> None:
        super().__init__()
        self.logits = linear(n_hidden, n_topics, generator, bias=False)
        # A larger spread at the start costs a short document more than it gains.
        self.norm = CodeNorm(n_topics, "none" if norm == "none" else "affine", scale=0.5, eps=norm_eps)
        self.centre = math.log(probability / (1 - probability))

    def forward(self, h: Tensor) -> Tensor:
        """Return the log odds of hidden vectors (B, H): (B, K)."""
        norm: Tensor = self.norm(self.logits(h))
        return norm + self.centre
