"""Divergences between distributions in closed form, and the mutual information of topics and words."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

EULER = 0.5772156649015329
_BLOCK = 1 << 17  # elements of a block of rows that fits into the cache of a core


def kl_normal(mean: Tensor, log_var: Tensor, prior_mean: Tensor, prior_var: Tensor) -> Tensor:
    """Return KL(N(mean, exp(log_var)) || N(prior_mean, prior_var)) with diagonal covariances.

    Args:
        mean, log_var: (B, L).
        prior_mean, prior_var: (L,) or (B, L).

    Returns:
        (B, L), one value for each dimension, whose sum over dimensions is the divergence.
    """
    ratio = (log_var.exp() + (mean - prior_mean) ** 2) / prior_var  # (B, L)
    return 0.5 * (ratio - 1 + prior_var.log() - log_var)


def kl_dirichlet(alpha: Tensor, prior: Tensor) -> Tensor:
    """Return KL(Dirichlet(alpha) || Dirichlet(prior)), divided between the topics.

    Args:
        alpha: (B, K), positive.
        prior: (K,), positive.

    Returns:
        (B, K), not negative but for rounding; the sum over topics is the divergence. A topic's share is proportional
        to the divergence of its gamma variable. The shares count as constants, so that the gradient of the sum is that
        of the divergence.
    """
    per_gamma = kl_gamma(alpha, prior)  # (B, K)
    divergence = per_gamma.sum(1, keepdim=True) - kl_gamma(alpha.sum(1, keepdim=True), prior.sum())  # (B, 1)
    weights = per_gamma.detach().clamp_min(1e-12)  # (B, K); near the prior, rounding can make them negative
    return weights / weights.sum(1, keepdim=True) * divergence


def kl_gamma(shape: Tensor, prior: Tensor) -> Tensor:
    """Return KL(Gamma(shape, 1) || Gamma(prior, 1)) for each entry."""
    return torch.lgamma(prior) - torch.lgamma(shape) + (shape - prior) * torch.digamma(shape)


def kl_weibull_gamma(shape: Tensor, log_scale: Tensor, prior: Tensor) -> Tensor:
    """Return KL(Weibull(shape, exp(log_scale)) || Gamma(prior, 1)) (Zhang et al. 2018, WHAI).

    Args:
        shape: (B, K), positive, k.
        log_scale: (B, K), log lambda.
        prior: (K,), positive, the shapes of the gammas.

    Returns:
        (B, K), one value for each topic.
    """
    mean = (log_scale + torch.lgamma(1 + 1 / shape)).exp()  # (B, K)
    entropy = EULER * (1 - 1 / shape) + log_scale - shape.log() + 1  # (B, K)
    expected_log = log_scale - EULER / shape  # (B, K)
    return mean - (prior - 1) * expected_log + torch.lgamma(prior) - entropy


def kl_weibull(shape: Tensor, log_scale: Tensor, prior_shape: Tensor, prior_log_scale: Tensor) -> Tensor:
    """Return the smallest KL(Weibull(shape, r exp(log_scale)) || Weibull(prior_shape, exp(prior_log_scale))) over r.

    Each row has one factor r, which does not change theta. With d = log(r lambda / lambda0),
    KL = log(k / k0) - k0 d + EULER (k0 / k - 1) + exp(k0 d) Gamma(1 + k0 / k) - 1 (Bauckhage 2013). As k0 is the same
    for all topics, the sum over the topics has its minimum where the mean of exp(k0 d) Gamma(1 + k0 / k) is 1.

    Args:
        shape: (B, K), positive, k.
        log_scale: (B, K), log lambda.
        prior_shape: (), positive, k0.
        prior_log_scale: (K,), log lambda0.

    Returns:
        (B, K), one value for each topic.
    """
    ratio = prior_shape / shape  # (B, K)
    log_moment = prior_shape * (log_scale - prior_log_scale) + torch.lgamma(1 + ratio)  # (B, K) log E[(w / lambda0)^k0]
    log_moment = log_moment - torch.logsumexp(log_moment, dim=1, keepdim=True) + math.log(log_moment.shape[1])
    difference = log_moment - torch.lgamma(1 + ratio)  # (B, K) k0 d
    return -ratio.log() - difference + EULER * (ratio - 1) + log_moment.exp() - 1


def kl_bernoulli(logits: Tensor, prior_probability: float) -> Tensor:
    """Return KL(Bernoulli(sigmoid(logits)) || Bernoulli(prior_probability)) for each entry."""
    p = torch.sigmoid(logits)
    present = F.logsigmoid(logits) - math.log(prior_probability)
    absent = F.logsigmoid(-logits) - math.log1p(-prior_probability)
    return p * present + (1 - p) * absent


class _TopicInformation(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, beta_t: Tensor, shares: Tensor) -> Tensor:
        log_ratio, total = torch.empty_like(beta_t), shares.new_zeros(())  # (V, K), ()
        step = max(1, _BLOCK // len(shares)) if beta_t.device.type == "cpu" else len(beta_t)
        for topics, out in zip(beta_t.split(step), log_ratio.split(step), strict=True):
            mean = (topics @ shares).clamp_min_(1e-30)  # (step,)
            torch.div(topics, mean[:, None], out=out).clamp_min_(1e-30).log_()  # (step, K)
            total += ((topics * out) @ shares).sum()
        ctx.save_for_backward(log_ratio, shares)
        return total

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        log_ratio, shares = ctx.saved_tensors
        return log_ratio * (grad * shares), None


def topic_information(beta_t: Tensor, shares: Tensor) -> Tensor:
    """Return the mutual information of topics and words in nats: the generalised Jensen-Shannon divergence of topics.

    I(topic; word) = sum_k p_k sum_v beta_kv log(beta_kv / sum_i p_i beta_iv). It is 0 if all topics are the same, and
    equals the entropy of p if no two topics share a word. A topic that no document has does not count.

    Args:
        beta_t: (V, K), columns sum to 1.
        shares: (K,) the share p of each topic, with the sum 1; it is not differentiated.

    Returns:
        a scalar.
    """
    out: Tensor = _TopicInformation.apply(beta_t, shares)  # type: ignore[no-untyped-call]
    return out
