"""NVDM: the neural variational document model, the predecessor of GSM. Its code is a Gaussian and not a mixture.

Miao, Yu & Blunsom 2016, "Neural Variational Inference for Text Processing": z ~ N(0, I), p(w | z) = softmax(R z + b).

N(0, I) and the decoder allow any rotation of z, so its dimensions have no meaning. After training, varimax finds the
simplex in which the documents' codes lie (`nn/varimax.py`), and topic k is what the decoder returns for a code in
corner k. theta is the softmax of a linear function of the code, fitted to the shares with which a mixture of these
topics explains the training documents (`nn/readout.py`). The decoder computes z from theta (`nn/log_ratio.py`), so that
the distribution of words is that of the code before. Departures from the paper:
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
from torch import Tensor

from ..distributed.ranks import current
from ..nn.batch import Batch
from ..nn.log_ratio import LogRatioDecoder
from ..nn.priors import standard_normal
from ..nn.readout import mixture_counts, readout
from ..nn.varimax import topic_simplex
from ..settings import NotNegative, Positive, Rate
from .gaussian import GaussianNetwork
from .published import PLAIN_VARIATIONAL
from .variational import VariationalTopicModel
from .words import Words

_MOST_CODES, _MOST_READ = 20_000, 5_000  # documents that give the rotation, and the readout of theta


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
        n_topics = len(self.shares.logits)
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
        """Return how many tokens each topic has in every so many documents, beside the background's: (n, K)."""
        beta_t, background = self.decoder.beta_t(), torch.softmax(self.decoder.topics.background, dim=0)  # (V, K), (V,)
        components = torch.cat([beta_t, background[:, None].to(beta_t.dtype)], dim=1)  # (V, K + 1)
        found, before = [torch.zeros(0, beta_t.shape[1])], 0
        for batch in documents:
            rows = torch.arange(min(-before % every, batch.n_docs), batch.n_docs, every, device=batch.device)
            found.append(mixture_counts(batch.counts.take(rows), components)[:, :-1].cpu())
            before += batch.n_docs
        return torch.cat(found)


@dataclass(eq=False, repr=False, kw_only=True)
class NVDM(VariationalTopicModel):
    """Neural variational document model (Miao, Yu & Blunsom 2016).

    Its documents are codes of a latent space and not mixtures of topics. The topics are found in that space after
    training, as the corners of the simplex in which the codes lie. Then theta is fitted to the shares that a mixture of
    these topics has in training documents. Each batch takes memory in proportion to the vocabulary.

    All other settings are those that variational models share; they are described in
    `help(topicloom.VariationalTopicModel)`. As the topics exist only after training, `start` is "random", and
    `learn_shares`, `spare_topics`, `min_diversity` and `kl_warmup` are off.

    Args:
        rotation: "varimax" rotates the code at the end of `fit`, so that its dimensions are topics (Kaiser 1958; Rohe &
            Zeng 2023). "none" reads each dimension as a topic, which seldom makes sense. With `seed_words`, and in
            `partial_fit` of a new model, there is no rotation.
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
