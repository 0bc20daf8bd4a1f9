"""Loom: this project's own topic model. A network lays out the topics; counting weaves them.

LDA (Blei, Ng & Jordan 2003), trained in two parts, in one run of the loop:
- warp: an encoder and free topics learn the evidence lower bound, as in GSM. In a few epochs this finds topics that
  speak of what documents have in common, where a sampler started at random takes hundreds of passes;
- weft: each document keeps counts of its topics, which start at what the encoder says. At every pass they are drawn
  anew, and its tokens are shared out among the topics as in CVB0 (Asuncion et al. 2009); topics are the counts of all
  documents. No gradient is taken through them. The encoder learns to say what the counts say.
New documents start at the encoder's theta, which `refine` steps given the topics improve.
docs/models/loom.md has the mathematics; benchmarks/loom.md what each part is worth, and what else was tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Annotated, Any

import scipy.sparse as sp
import torch
from pydantic import Field
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from ..batches import BatchReader
from ..errors import SettingError
from ..estimator import Array, Words
from ..neural import NeuralTopicModel
from ..nn.network import Loss
from ..nn.posteriors import DirichletPosterior, SampledPosterior
from ..nn.sparse import SparseBatch, mixture_log_likelihood
from ..nn.weft import Weft
from ..settings import Positive, Rate, Share
from ..training import TrainingState
from .gsm import GSM, GSMNetwork

_STREAM_STEPS = 500  # after which a stream goes from warp to weft
_SEED_COUNT = 50.0  # tokens that a seed word has in its topic beforehand


class LoomNetwork(GSMNetwork):
    """In the warp GSM, theta = softmax(z) and z ~ N(mu(x), diag sigma^2(x)); in the weft Dirichlet(alpha + N_d)."""

    steps: Tensor  # () of the warp
    usage: Tensor  # (K,) how much of the documents each topic has, in the warp

    def __init__(self, settings: Loom, words: Words, generator: torch.Generator) -> None:
        super().__init__(settings._gsm(), words, generator)
        self.weft = Weft(
            len(words),
            settings.n_topics,
            eta=settings.eta,
            damping=settings.damping,
            sharpness=settings.sharpness,
            n_common=round(settings.common * settings.n_topics),
            seeded=None if words.seeds is None else (words.seeds > 0) * _SEED_COUNT,
        )
        self.refine, self.epochs = settings.refine, settings.epochs
        self.warp_epochs = max(1, min(round(settings.warp * self.epochs), self.epochs - 1))
        self.register_buffer("steps", torch.tensor(0))
        self.register_buffer("usage", torch.full((settings.n_topics,), 1 / settings.n_topics))

    def posterior(self, batch: SparseBatch) -> SampledPosterior:
        code = self.code(batch)
        return self.weft.infer(batch, code.point(), self.refine) if self.weft.begun else code

    def beta_t(self) -> Tensor:
        """(V, K) the topics, columns sum to 1."""
        return self.weft.beta_t if self.weft.begun else self.decoder.beta_t()

    def topic_word(self) -> Tensor:
        return self.beta_t().mT

    def log_likelihood(self, theta: Tensor, batch: SparseBatch) -> Tensor:
        return mixture_log_likelihood(theta, self.beta_t(), batch)

    def prior_theta(self) -> Tensor:
        alpha = self.weft.alpha
        return alpha / alpha.sum() if self.weft.begun else super().prior_theta()

    def bound(self, batch: SparseBatch) -> Tensor:
        return -self.loss(batch).without_extras() if self.weft.begun else super().bound(batch)

    @contextmanager
    def refined(self, steps: int | None) -> Iterator[None]:
        """In it, theta is improved by so many steps, or by as many as the settings say."""
        usual, self.refine = self.refine, self.refine if steps is None else steps
        try:
            yield
        finally:
            self.refine = usual

    def may_end(self) -> bool:
        return bool(self.weft.begun)

    def loss(self, batch: SparseBatch) -> Loss:
        if not self.weft.begun:
            return super().loss(batch)
        if self.training:
            return self._woven(batch)
        posterior = self.posterior(batch)
        assert isinstance(posterior, DirichletPosterior)
        return self.weft.loss(posterior, batch)

    def _woven(self, batch: SparseBatch) -> Loss:
        """The bound after a batch's part of a pass, and what the encoder has to learn of it."""
        code = self.code(batch)
        with torch.no_grad():
            posterior = self.weft.weave(batch, code.point(), self.generator)
            loss, theta = self.weft.loss(posterior, batch), posterior.point()
        amortisation = (theta * (theta.log() - torch.log_softmax(code.mean, dim=1))).sum(1)  # KL(theta || encoder's)
        return Loss(loss.reconstruction, loss.divergence, {"amortisation": amortisation})

    def extras(self, posterior: SampledPosterior, theta: Tensor, batch: SparseBatch) -> dict[str, Tensor]:
        if self.training:
            self.steps += 1
            self.usage.lerp_(theta.detach().mean(0), 0.02)
            if self.weft.local is None:
                self.weft.tokens.index_add_(0, batch.indices, batch.values)
        return super().extras(posterior, theta, batch)

    def end_pass(self) -> None:
        if self.weft.begun:
            self.weft.gather()

    def adapt(self, row: Mapping[str, Any]) -> dict[str, Any]:
        streaming = self.weft.local is None
        if self.weft.begun:
            return {"concentration": float(self.weft.alpha.sum())}
        changes = super().adapt(row)
        if self.steps >= _STREAM_STEPS if streaming else self.warp_epochs <= row["epoch"] < self.epochs:
            self.weft.begin(self.decoder.beta_t().detach().clone(), self.usage, self.generator)
        return changes


@dataclass(eq=False, repr=False, kw_only=True)
class Loom(NeuralTopicModel):
    """A neural start, collapsed counting and amortised inference: the project's own model.

    The settings that all neural models share are described at NeuralTopicModel.

    Args:
        warp: share of the epochs in which the encoder and the topics are learned by gradients.
        common: share of the topics that start as topics of common words.
        damping: a word that a document has x times counts x ** damping when topics are counted; 1 is LDA. Less heeds
            that a word which has occurred in a document is likely to occur again.
        sharpness: p(topic | word) to this power, in the topics; 1 is LDA.
        alpha: the Dirichlet parameter of the warp, the same for each topic; the weft learns its own.
        eta: the Dirichlet parameter of the topics.
        refine: steps by which theta of a new document is improved from what the encoder says; 0 for none.
    """

    warp: Share = 0.5
    common: Rate = 0.08
    damping: Annotated[float, Field(gt=0, le=1)] = 0.5
    sharpness: Positive = 1.5
    alpha: Positive = 0.3
    eta: Annotated[float, Field(ge=1e-6, allow_inf_nan=False)] = 0.01
    refine: Annotated[int, Field(ge=0)] = 10

    _streaming = False

    def transform(self, X: Any, refine: int | None = None) -> Array:
        """(n_docs, K) float32, as for every model.

        Args:
            X: as for `fit`.
            refine: steps in the place of the setting's; 0 is what the encoder says at once.
        """
        check_is_fitted(self, "components_")
        if refine is not None and (isinstance(refine, bool) or not isinstance(refine, Integral) or refine < 0):
            raise SettingError(f"refine should be a whole number from 0; it is {refine!r}")
        with self.network_.refined(refine):  # type: ignore[operator]
            return super().transform(X)

    def _gsm(self) -> GSM:
        """The model of the warp."""
        return GSM(alpha=self.alpha, **{field.name: getattr(self, field.name) for field in fields(NeuralTopicModel)})

    def _network(self, words: Words, generator: torch.Generator) -> LoomNetwork:
        return LoomNetwork(self, words, generator)

    def _warm_start(self, state: TrainingState, reader: BatchReader) -> None:
        assert isinstance(state.network, LoomNetwork)
        if not self._streaming:
            state.network.weft.keep(reader.counts.shape[0], torch.from_numpy(self.word_counts_))

    def _partial_fit(self, counts: sp.csr_array) -> None:
        self._streaming = True
        try:
            super()._partial_fit(counts)
        finally:
            self._streaming = False

    def _finish(self, state: TrainingState) -> None:
        assert isinstance(state.network, LoomNetwork)
        state.network.weft.end()
        super()._finish(state)
