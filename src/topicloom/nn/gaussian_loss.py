"""The loss of an autoencoder with a Gaussian code and a mixture of topics, with its gradient, for small batches.

`gaussian_loss` computes what `VariationalNetwork.loss` computes by the modules of the network: an embedding-bag and a
hidden layer with softplus, batch-normalised means and log-variances, a draw z, theta = softmax(factor z + b), and the
log likelihood of a mixture. With autograd, the loss of some hundred titles and its gradient consist of about two
hundred operations, most of which take longer to start than to compute. Here, they consist of six products of matrices
and eight compiled loops.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .execution import arrays_of, compiled, exponential, logarithm
from .sparse import (
    Array,
    SparseCounts,
    mixture_example,
    mixture_gradient_example,
    mixture_gradient_loop,
    mixture_loop,
)


@dataclass(frozen=True)
class GaussianWeights:
    """What the loss depends on, and is differentiated by. H are the units of the layers, K the dimensions of the code.

    The mean of a code is mean_scale norm(mean h) + mean_shift, and its log-variance is spread_scale norm(spread h) +
    spread_shift, where norm is batch normalisation.
    """

    first: Tensor  # (V, H) weights of the embedding-bag
    first_rest: Tensor  # (B, H) the part of the first layer that words do not give: the bias, and that of vectors
    hidden: Tensor  # (H, H)
    hidden_bias: Tensor  # (H,)
    mean: Tensor  # (K, H)
    spread: Tensor  # (K, H)
    mean_scale: Tensor  # (K,)
    mean_shift: Tensor  # (K,)
    spread_scale: Tensor  # (K,)
    spread_shift: Tensor  # (K,)
    factor: Tensor  # () the factor of z
    logits: Tensor  # (K,) b
    beta_t: Tensor  # (V, K) the topics, columns sum to 1


@dataclass(frozen=True)
class GaussianBatch:
    """What else the loss depends on.

    Attributes:
        counts: the counts x of B documents.
        words: the words that the encoder reads, which may be those of other counts.
        values: (N,) their values, after dropout.
        drawn: (B, H) random numbers from 0 to 1; hidden units with numbers below `rate` are dropped.
        noise: (B, K) the standard normal noise of the draws.
        prior_mean, prior_var: (K,) of the prior of the code.
        rate: the dropout rate of the hidden units.
        eps: added to the variances.
        floor: added to each probability.
    """

    counts: SparseCounts
    words: SparseCounts
    values: Tensor
    drawn: Tensor
    noise: Tensor
    prior_mean: Tensor
    prior_var: Tensor
    rate: float
    eps: float
    floor: float


def can_compile() -> bool:
    """Return whether the loops of `gaussian_loss` can be compiled."""
    return all(compiled(function, example) is not None for function, example in _loops())


def gaussian_loss(weights: GaussianWeights, batch: GaussianBatch) -> tuple[Tensor, ...]:
    """Return the terms of the loss, which can be differentiated once.

    Returns:
        the reconstruction (B,), the divergence (B,), theta (B, K), and the moments (3, 2 K) of means and log-variances
        before normalisation: mean, variance, and 1 / standard deviation. Only the first two have gradients.
    """
    given = [getattr(weights, each.name) for each in fields(weights)]
    out: tuple[Tensor, ...] = _GaussianLoss.apply(batch, *given)  # type: ignore[no-untyped-call]
    return out


class _GaussianLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, batch: GaussianBatch, *given: Tensor) -> tuple[Tensor, ...]:
        w, counts, words = GaussianWeights(*given), batch.counts, batch.words
        n_docs, n_latent = batch.noise.shape
        first = torch.empty_like(w.first_rest, memory_format=torch.contiguous_format)  # (B, H)
        _loop(_first_layer_loop, _first_layer_example)(
            *arrays_of(words.offsets, words.indices, batch.values, w.first, w.first_rest, first)
        )
        hidden = torch.addmm(w.hidden_bias, first, w.hidden.mT)  # (B, H)
        dropped = torch.empty_like(hidden)  # (B, H)
        _loop(_hidden_layer_loop, _hidden_layer_example)(*arrays_of(batch.drawn, hidden, dropped), batch.rate)
        heads = torch.cat([w.mean, w.spread])  # (2 K, H)
        code = dropped @ heads.mT  # (B, 2 K), which the next loop normalises
        theta, deviation = torch.empty_like(batch.noise), torch.empty_like(batch.noise)  # (B, K) each
        divergence = code.new_empty(n_docs)
        moments = code.new_empty(3, 2 * n_latent)  # mean, variance, and 1 / standard deviation
        out = theta, deviation, divergence, moments, code
        _loop(_code_loop, _code_example)(_Head(*arrays_of(*_head(w, batch))), *arrays_of(*out), batch.eps)
        probability, likelihood = torch.empty_like(counts.values), code.new_empty(n_docs)  # (N,), (B,)
        _loop(mixture_loop, mixture_example)(
            *arrays_of(counts.offsets, counts.indices, counts.values, theta, w.beta_t, probability, likelihood),
            batch.floor,
        )
        ctx.batch = batch
        ctx.save_for_backward(first, hidden, dropped, heads, code, theta, deviation, moments, probability, *given)
        ctx.mark_non_differentiable(theta, moments)
        return likelihood.neg_(), divergence, theta, moments

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, of_reconstruction: Tensor, of_divergence: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        first, hidden, dropped, heads, code, theta, deviation, moments, probability, *given = ctx.saved_tensors
        batch, w = ctx.batch, GaussianWeights(*given)
        counts, words = batch.counts, batch.words
        of_theta, of_beta = torch.zeros_like(theta), torch.zeros_like(w.beta_t)
        documents = counts.offsets, counts.indices, counts.values, probability, -of_reconstruction
        _loop(mixture_gradient_loop, mixture_gradient_example)(
            *arrays_of(*documents, theta, w.beta_t, of_theta, of_beta)
        )
        of_code, of_rows = torch.empty_like(code), code.new_zeros(6, theta.shape[1])
        _loop(_code_gradient_loop, _code_gradient_example)(
            _Head(*arrays_of(*_head(w, batch))),
            *arrays_of(theta, deviation, moments, code, of_theta, of_divergence, of_code, of_rows),
        )
        of_heads, of_dropped = of_code.mT @ dropped, of_code @ heads  # (2 K, H), (B, H)
        of_hidden, of_hidden_bias = torch.empty_like(hidden), torch.zeros_like(w.hidden_bias)
        _loop(_layer_gradient_loop, _layer_gradient_example)(
            *arrays_of(batch.drawn, hidden, of_dropped, of_hidden, of_hidden_bias), batch.rate
        )
        of_weight, of_first = of_hidden.mT @ first, of_hidden @ w.hidden  # (H, H), (B, H)
        of_bag = torch.zeros_like(w.first)
        _loop(_first_gradient_loop, _first_gradient_example)(
            *arrays_of(words.offsets, words.indices, batch.values, first, of_first, of_bag)
        )
        of_mean, of_spread = of_heads.split(len(w.mean))
        rows = of_rows.unbind()  # mean_scale, mean_shift, spread_scale, spread_shift, factor, logits
        return (
            None, of_bag, of_first, of_weight, of_hidden_bias, of_mean, of_spread, *rows[:4], rows[4].sum(),
            rows[5], of_beta,
        )  # fmt: skip


def _loops() -> list[tuple[Callable[..., None], Callable[[], tuple[Any, ...]]]]:
    """Return all loops with their examples."""
    return [
        (_first_layer_loop, _first_layer_example),
        (_hidden_layer_loop, _hidden_layer_example),
        (_code_loop, _code_example),
        (mixture_loop, mixture_example),
        (mixture_gradient_loop, mixture_gradient_example),
        (_code_gradient_loop, _code_gradient_example),
        (_layer_gradient_loop, _layer_gradient_example),
        (_first_gradient_loop, _first_gradient_example),
    ]


def _loop(function: Any, example: Any) -> Any:
    loop = compiled(function, example)
    assert loop is not None  # see `can_compile`
    return loop


class _Head(NamedTuple):
    """The vectors that all documents share, and the noise."""

    noise: Array  # (B, K)
    mean_scale: Array  # (K,)
    mean_shift: Array  # (K,)
    spread_scale: Array  # (K,)
    spread_shift: Array  # (K,)
    factor: Array  # (K,)
    logits: Array  # (K,)
    prior_mean: Array  # (K,)
    prior_var: Array  # (K,)


def _head(w: GaussianWeights, batch: GaussianBatch) -> tuple[Tensor, ...]:
    factor = w.factor.expand(len(w.logits))
    return (
        batch.noise, w.mean_scale, w.mean_shift, w.spread_scale, w.spread_shift, factor, w.logits, batch.prior_mean,
        batch.prior_var,
    )  # fmt: skip


def _first_layer_loop(offsets: Array, words: Array, values: Array, weight: Array, rest: Array, first: Array) -> None:
    """Write softplus(W x + rest) to `first` (B, H)."""
    n_units = first.shape[1]
    for doc in range(len(first)):
        row, of_rest = first[doc], rest[doc]
        for j in range(n_units):
            row[j] = of_rest[j]
        for i in range(offsets[doc], offsets[doc + 1]):
            value, of_word = values[i], weight[words[i]]
            for j in range(n_units):
                row[j] += value * of_word[j]
        for j in range(n_units):
            x = row[j]
            size = abs(x) if not abs(x) > np.float32(87) else np.float32(87)
            row[j] = max(x, np.float32(0)) + logarithm(np.float32(1) + exponential(-size)) + np.float32(0) * x


def _first_layer_example() -> tuple[Any, ...]:
    """Return arguments of `_first_layer_loop` for one document of one word, and one unit."""
    table = np.ones((1, 1), np.float32)
    return np.array([0, 1]), np.zeros(1, np.int64), table[0], table, table, table.copy()


def _hidden_layer_loop(drawn: Array, hidden: Array, dropped: Array, rate: float) -> None:
    """Replace `hidden` (B, H) by its softplus, and write what dropout leaves of it to `dropped` (B, H)."""
    scale = np.float32(1 / (1 - rate))
    for doc in range(len(hidden)):
        row, random, out = hidden[doc], drawn[doc], dropped[doc]
        for j in range(len(row)):
            x = row[j]
            size = abs(x) if not abs(x) > np.float32(87) else np.float32(87)
            row[j] = max(x, np.float32(0)) + logarithm(np.float32(1) + exponential(-size)) + np.float32(0) * x
            out[j] = row[j] * (scale if random[j] >= np.float32(rate) else np.float32(0))


def _hidden_layer_example() -> tuple[Any, ...]:
    """Return arguments of `_hidden_layer_loop` for one document and one unit."""
    table = np.ones((1, 1), np.float32)
    return table, table.copy(), table.copy(), 0.5


def _code_loop(
    head: _Head, theta: Array, deviation: Array, divergence: Array, moments: Array, code: Array, eps: float
) -> None:
    """Normalise the code (B, 2 K), and write theta (B, K), the standard deviations (B, K) and the divergence (B,)."""
    noise, mean_scale, mean_shift, spread_scale, spread_shift, factor, logits, prior_mean, prior_var = head
    n_docs, n_latent = noise.shape
    mean, var, per_deviation = moments[0], moments[1], moments[2]
    moments[:] = 0
    for doc in range(n_docs):
        row = code[doc]
        for k in range(2 * n_latent):
            mean[k] += row[k]
    for k in range(2 * n_latent):
        mean[k] /= n_docs
    for doc in range(n_docs):
        row = code[doc]
        for k in range(2 * n_latent):
            var[k] += (row[k] - mean[k]) * (row[k] - mean[k])
    for k in range(2 * n_latent):
        var[k] /= n_docs
        per_deviation[k] = 1 / np.sqrt(var[k] + np.float32(eps))
    constant = np.float32(0)
    for k in range(n_latent):
        constant += np.log(prior_var[k]) - 1
    for doc in range(n_docs):
        row, shares, spread = code[doc], theta[doc], deviation[doc]
        for k in range(2 * n_latent):
            row[k] = (row[k] - mean[k]) * per_deviation[k]
        highest, total, kl = np.float32(-np.inf), np.float32(0), constant
        for k in range(n_latent):
            centre = mean_scale[k] * row[k] + mean_shift[k]
            log_var = spread_scale[k] * row[n_latent + k] + spread_shift[k]
            half = np.float32(0.5) * log_var
            half = half if not half < np.float32(-43) else np.float32(-43)
            half = half if not half > np.float32(43) else np.float32(43)
            spread[k] = exponential(half)
            shares[k] = factor[k] * (centre + noise[doc, k] * spread[k]) + logits[k]
            highest = max(highest, shares[k])
        for k in range(n_latent):  # a loop that also wrote to arrays could add in another order
            away = mean_scale[k] * row[k] + mean_shift[k] - prior_mean[k]
            log_var = spread_scale[k] * row[n_latent + k] + spread_shift[k]
            kl += (spread[k] * spread[k] + away * away) / prior_var[k] - log_var
        divergence[doc] = np.float32(0.5) * kl
        for k in range(n_latent):
            below = shares[k] - highest
            shares[k] = exponential(below if not below < np.float32(-87) else np.float32(-87))
            total += shares[k]
        for k in range(n_latent):
            shares[k] /= total


def _head_example() -> _Head:
    one = np.ones(1, np.float32)
    return _Head(one[:, None], one, one, one, one, one, one, one, one)


def _code_example() -> tuple[Any, ...]:
    """Return arguments of `_code_loop` for one document and one dimension."""
    table = np.ones((1, 1), np.float32)
    return (
        _head_example(),
        table.copy(),
        table.copy(),
        table[0].copy(),
        np.ones((3, 2), np.float32),
        np.ones((1, 2), np.float32),
        1.0,
    )


def _code_gradient_loop(
    head: _Head,
    theta: Array,
    deviation: Array,
    moments: Array,
    code: Array,
    of_theta: Array,
    of_divergence: Array,
    of_code: Array,
    of_rows: Array,
) -> None:
    """Write the gradient of the code before normalisation to `of_code` (B, 2 K), and those of vectors to `of_rows`.

    Args:
        of_rows: (6, K), zeros. They become the gradients of the scale and the shift of the mean, of those of the
            log-variance, of the factor, and of the logits.
    """
    noise, mean_scale, mean_shift, spread_scale, _, factor, _, prior_mean, prior_var = head
    n_docs, n_latent = noise.shape
    of_mean_scale, of_mean_shift, of_spread_scale = of_rows[0], of_rows[1], of_rows[2]
    of_spread_shift, of_factor, of_logits = of_rows[3], of_rows[4], of_rows[5]
    for doc in range(n_docs):
        shares, spread, row, out, towards = theta[doc], deviation[doc], code[doc], of_code[doc], of_theta[doc]
        weight, mean = of_divergence[doc], np.float32(0)
        for k in range(n_latent):
            mean += shares[k] * towards[k]
        for k in range(n_latent):
            of_logit = shares[k] * (towards[k] - mean)
            centre = mean_scale[k] * row[k] + mean_shift[k]
            moved = noise[doc, k] * spread[k]
            of_z = factor[k] * of_logit
            of_mean = of_z + weight * (centre - prior_mean[k]) / prior_var[k]
            of_log_var = np.float32(0.5) * (of_z * moved + weight * (spread[k] * spread[k] / prior_var[k] - 1))
            of_logits[k] += of_logit
            of_factor[k] += of_logit * (centre + moved)
            of_mean_scale[k] += of_mean * row[k]
            of_mean_shift[k] += of_mean
            of_spread_scale[k] += of_log_var * row[n_latent + k]
            of_spread_shift[k] += of_log_var
            out[k] = of_mean * mean_scale[k]
            out[n_latent + k] = of_log_var * spread_scale[k]
    per_deviation = moments[2]
    for doc in range(n_docs):
        row, out = code[doc], of_code[doc]
        for k in range(n_latent):
            j = n_latent + k
            of_mean = mean_scale[k] * (of_mean_shift[k] + row[k] * of_mean_scale[k]) / n_docs
            of_spread = spread_scale[k] * (of_spread_shift[k] + row[j] * of_spread_scale[k]) / n_docs
            out[k] = per_deviation[k] * (out[k] - of_mean)
            out[j] = per_deviation[j] * (out[j] - of_spread)


def _code_gradient_example() -> tuple[Any, ...]:
    """Return arguments of `_code_gradient_loop` for one document and one dimension."""
    table, wide = np.ones((1, 1), np.float32), np.ones((1, 2), np.float32)
    rows = np.ones((6, 1), np.float32)
    return _head_example(), table, table, np.ones((3, 2), np.float32), wide, table, table[0], wide.copy(), rows


def _layer_gradient_loop(
    drawn: Array, hidden: Array, of_dropped: Array, of_hidden: Array, of_bias: Array, rate: float
) -> None:
    """Write the gradient of the input of softplus to `of_hidden` (B, H), and add its sum to `of_bias` (H,).

    The derivative of softplus is 1 - exp(-softplus).
    """
    scale = np.float32(1 / (1 - rate))
    for doc in range(len(hidden)):
        row, random, grad, out = hidden[doc], drawn[doc], of_dropped[doc], of_hidden[doc]
        for j in range(len(row)):
            above = row[j] if not row[j] > np.float32(87) else np.float32(87)
            kept = scale if random[j] >= np.float32(rate) else np.float32(0)
            out[j] = grad[j] * kept * (1 - exponential(-above))
            of_bias[j] += out[j]


def _layer_gradient_example() -> tuple[Any, ...]:
    """Return arguments of `_layer_gradient_loop` for one document and one unit."""
    table = np.ones((1, 1), np.float32)
    return table, table, table, table.copy(), table[0].copy(), 0.5


def _first_gradient_loop(
    offsets: Array, words: Array, values: Array, first: Array, of_first: Array, of_weight: Array
) -> None:
    """Replace the gradient of softplus by that of its input, `of_first` (B, H), and add to `of_weight` (V, H)."""
    n_units = first.shape[1]
    for doc in range(len(first)):
        row, grads = first[doc], of_first[doc]
        for j in range(n_units):
            above = row[j] if not row[j] > np.float32(87) else np.float32(87)
            grads[j] *= 1 - exponential(-above)
        for i in range(offsets[doc], offsets[doc + 1]):
            value, of_word = values[i], of_weight[words[i]]
            for j in range(n_units):
                of_word[j] += value * grads[j]


def _first_gradient_example() -> tuple[Any, ...]:
    """Return arguments of `_first_gradient_loop` for one document of one word, and one unit."""
    table = np.ones((1, 1), np.float32)
    return np.array([0, 1]), np.zeros(1, np.int64), table[0], table, table.copy(), table.copy()
