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
from ..nn.varimax import TopicSimplex, topic_simplex
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
        self.rotated = settings.rotation == "varimax" and settings.n_topics > 1 and words.seeds is None

    def to_theta(self, z: Tensor) -> Tensor:
        return self.decoder.coordinates.theta(z + self.shares.logits)

    def end_training(self, documents: Iterable[Batch]) -> None:
        """Make the corners of the simplex of the documents' codes the topics, and fit theta to their shares."""
        if not self.rotated:
            return
        means, variance = [], torch.zeros_like(self.shares.logits)
        for batch in documents:
            posterior = self.code(batch)
            means.append(posterior.mean.cpu())
            variance = variance + posterior.log_var.exp().sum(0)
        codes = current().rows(torch.cat(means))  # (D, K)
        variance = current().sum(variance.cpu()) / len(codes)  # (K,)
        if not (codes.isfinite().all() and variance.isfinite().all()):  # training has diverged
            return
        chosen = codes[:: math.ceil(len(codes) / _MOST_CODES)] + self.shares.logits.cpu()  # (N, K)
        simplex = topic_simplex(chosen - chosen.mean(1, keepdim=True), variance)
        self.decoder.coordinates.place(simplex)
        self.decoder.coordinates.place(simplex, self._readout(documents, simplex, math.ceil(len(codes) / _MOST_READ)))
        for tensor in self.decoder.coordinates.buffers():
            tensor.copy_(current().of_first(tensor))  # other machines may round differently

    def _readout(self, documents: Iterable[Batch], simplex: TopicSimplex, every: int) -> Tensor | None:
        """Return the readout of theta, (K, K), from every so many documents; None if it is not finite."""
        beta_t, before = self.decoder.beta_t(), 0  # (V, K)
        codes, tokens = [], []
        for batch in documents:
            rows = torch.arange(-before % every, batch.n_docs, every, device=batch.device)
            before += batch.n_docs
            codes.append((self.code(batch).mean + self.shares.logits)[rows].cpu())
            tokens.append(mixture_counts(batch.counts.take(rows), beta_t).cpu())
        z = current().rows(torch.cat(codes)).double()  # (n, K)
        found = readout(z @ simplex.linear + simplex.shift, current().rows(torch.cat(tokens)))
        return found if found.isfinite().all() else None


@dataclass(eq=False, repr=False, kw_only=True)
class NVDM(VariationalTopicModel):
    """Neural variational document model (Miao, Yu & Blunsom 2016).

    Its documents are codes of a latent space and not mixtures of topics. The topics are found in that space after
    training, as the corners of the simplex in which the codes lie, and theta is fitted to the shares of topics in
    training documents that a mixture would have. Each batch takes memory in proportion to the
    vocabulary.

    All other settings are those that variational models share; they are described in
    `help(topicloom.VariationalTopicModel)`. As the topics exist only after training, `learn_shares`, `spare_topics` and
    `min_diversity` are off, and so is `kl_warmup`.

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
    topic_gain: Positive = 4.0
    min_diversity: Rate = 0.0
    learn_shares: bool = False
    spare_topics: NotNegative = 0.0
    kl_warmup: NotNegative | None = 0.0

    def build_network(self, words: Words, generator: torch.Generator) -> NVDMNetwork:
        return NVDMNetwork(self, words, generator)
