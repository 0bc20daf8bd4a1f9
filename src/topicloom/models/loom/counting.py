"""The weft of Loom: topics and Dirichlet parameters that are counted, not learned by gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ...nn.batch import Batch
from ...nn.mean_field import lda_loss
from ...nn.network import Loss
from ...nn.posteriors import DirichletPosterior
from .cvb0 import (
    CountedTopics,
    dirichlet_step,
    expected_counts,
    noisy,
    reassign,
    sharpened,
    tinted,
)
from .spare_topics import Choice, SpareTopics

_ALPHA, _COMMON_ALPHA = 0.05, 0.5  # where the Dirichlet parameters start, and those of common topics
_LEAST_ALPHA, _MOST_ALPHA = 1e-3, 5.0
_SETTLING = 3  # passes before the Dirichlet parameters are learned
_COMMON_SHARE = 0.4  # of a document's tokens, given to the common topics at first
_COMMON_PART = 0.9  # of the corpus's frequencies, taken from the other topics at first
_SHARPER, _SHARPEST = 10.0, 2.5  # topics of few tokens a word are less certain, and flatter
# Tokens a word, as damping counts them, from which counts of documents are as noisy as a sampler's, and a token stays
# in the counts of its word. Fewer tell less through noise, and would each hold itself where it is: the noise is r and
# 1 - r^2 of a token is left out, r being the tokens a word by these. Undamped, few long documents would pass for many.
_NOISY = 80.0
# Part of the passes in which counts of words are noisy too, by so much of that noise: topics give up words that they
# have by chance, and common ones that they share.
_NOISY_PASSES, _WORD_NOISE = 0.5, 0.1
_TINT = 0.08  # of each topic are common words, so that fewer documents have most of the common topics
_PLAIN = 3  # passes at the end without momentum
_TRUST = 0.5  # of a new document's Dirichlet parameter is where the encoder says, the rest as in all documents
_NEW_STEPS = 10  # by which a new document's theta is improved before its tokens are counted


@dataclass(frozen=True)
class _Tally:
    """What a pass goes by, and what it counts."""

    topics: CountedTopics  # what it goes by
    noise: float  # variance of the counts of documents, by their mean
    left_out: float  # of a token's own part in the counts of its word
    word_topics: Tensor  # (V, K)
    tokens: Tensor  # (V,)
    alpha: tuple[Tensor, Tensor]  # (K,) and (), of Minka's fixed point

    @classmethod
    def of(cls, topics: CountedTopics, noise: float, left_out: float) -> _Tally:
        """One that has counted nothing."""
        zeros = torch.zeros_like(topics.beta_t)
        sums = torch.zeros_like(zeros[0]), zeros.new_zeros(())
        return cls(topics, noise, left_out, zeros, torch.zeros_like(zeros[:, 0]), sums)


class Weft(nn.Module):
    """Latent Dirichlet allocation by counts: what is known of the topics, and a pass over documents that betters it.

    Args:
        eta: Dirichlet parameter of the topics.
        damping: a word that a document has x times counts x ** damping.
        sharpness: see `sharpened`; None is what suits the tokens there are.
        n_spare: topics that there are beyond `n_topics` at first.
        n_common: topics that start with the words that all documents share.
        seeded: (V, K) counts that words have in topics beforehand; None for none.
        reassign: what shares out tokens anew: `collapsed.reassign`, or what does the same.
    """

    begun: Tensor  # () whether there are counts
    alpha: Tensor  # (K,) Dirichlet parameter of theta
    word_topics: Tensor  # (V, K) N_vk
    tokens: Tensor  # (V,) how often each word occurs
    beta_t: Tensor  # (V, K) the topics, columns sum to 1
    seeded: Tensor  # (V, K)
    common: Tensor  # (K,) bool, topics that started as common words
    # Of one run of training.
    local: Tensor | None  # (D, K) N_dk of the training documents; None in a stream, where none is kept
    before: Tensor | None  # (V, K) the topics that the last pass went by, before momentum
    choice: Choice | None  # of the topics that stay
    of_words: Tensor | None  # (V, 1) N_v of the last pass, where topics have gone since
    tally: _Tally | None
    passes: int  # that are done
    n_passes: int  # that there will be
    woven: int  # batches of this pass

    def __init__(
        self,
        n_words: int,
        n_topics: int,
        *,
        eta: float,
        damping: float,
        sharpness: float | None,
        n_common: int,
        n_spare: int = 0,
        seeded: Tensor | None = None,
        reassign: Callable[..., Tensor] = reassign,
    ) -> None:
        super().__init__()
        self.eta, self.damping, self.sharpness, self.n_common = eta, damping, sharpness, n_common
        self.reassign = reassign
        zeros = torch.zeros(n_words, n_topics)
        self.register_buffer("begun", torch.tensor(False))
        self.register_buffer("alpha", torch.full((n_topics,), _ALPHA))
        self.register_buffer("word_topics", zeros)
        self.register_buffer("tokens", torch.zeros(n_words))
        self.register_buffer("beta_t", torch.full_like(zeros, 1 / n_words))
        self.register_buffer("seeded", zeros.clone() if seeded is None else seeded, persistent=False)
        self.register_buffer("common", torch.zeros(n_topics, dtype=torch.bool))
        self.spares = SpareTopics(n_topics, n_spare)
        self._forget()

    def keep(self, n_docs: int, tokens: Tensor, n_passes: int = 0, choice: Choice | None = None) -> None:
        """Told that training sees the same documents at each pass: their counts are kept from one to the next.

        Args:
            tokens: (V,) how often each word occurs in them.
            n_passes: how many there will be.
            choice: of the topics that stay, where there are spare ones.
        """
        self.local = torch.zeros(n_docs, 0, device=self.alpha.device)  # as wide as there are topics once it begins
        self.tokens.copy_(tokens)
        self.n_passes, self.choice = n_passes, choice

    def end(self, usage: Tensor) -> None:
        """Training is over. Where there are spare topics yet, those stay that documents have most.

        Args:
            usage: (K',) how much of the documents each topic has, if there are no counts.
        """
        if self.begun and self.crowded:
            self._leave(self.spares.most_used(self.word_topics.sum(0), self.held))
        elif not self.begun and self.spares.n_spare:
            held = torch.nn.functional.pad(self.held, (0, self.spares.n_spare))
            self.spares.keep(self.spares.most_used(usage, held), held)
        if self.of_words is not None:
            smoothed = self.word_topics + self.eta
            self.word_topics = smoothed * (self.of_words / smoothed.sum(1, keepdim=True))
        self._forget()

    def _forget(self) -> None:
        """What is of one run of training goes."""
        self.local = self.before = self.choice = self.tally = self.of_words = None
        self.passes = self.n_passes = self.woven = 0

    @property
    def crowded(self) -> bool:
        """Whether there are more topics than there are to be."""
        return len(self.alpha) > self.spares.n_topics

    @property
    def held(self) -> Tensor:
        """(K,) bool, topics that must stay."""
        return self.seeded.any(0) | self.common

    @property
    def starts(self) -> bool:
        """Whether a pass asks the encoder where documents start."""
        return self.local is None or not self.passes

    def begin(self, beta_t: Tensor, usage: Tensor, generator: torch.Generator) -> None:
        """Topics that were found otherwise become counts.

        All of them have the corpus's common words. These get topics of their own, in the place of those that documents
        have least, and most of their weight is taken from the others. Not in a stream: what is counted there stays, and
        such topics are far from right at first.

        Args:
            beta_t: (V, K') topics.
            usage: (K',) how much of the documents each has.
        """
        n_spare, n_topics = self.spares.n_spare, self.spares.n_topics
        self.seeded = torch.nn.functional.pad(self.seeded, (0, n_spare))
        self.alpha = torch.full_like(usage, _ALPHA)
        self.common = torch.zeros_like(usage, dtype=torch.bool)
        free = (~self.held).nonzero()[:, 0]  # a seeded topic keeps its index
        n_common = min(self.n_common, len(free) - n_spare, n_topics - 1)
        if self.local is not None:
            self.local = self.local.new_zeros(len(self.local), len(usage))
        if n_common and self.local is not None:
            corpus = (self.tokens / self.tokens.sum())[:, None]  # (V, 1)
            common = free[usage[free].argsort()[:n_common]]
            beta_t = (beta_t - _COMMON_PART * corpus).clamp_min(1e-7)
            noise = torch.rand(len(beta_t), n_common, generator=generator, device=beta_t.device)
            beta_t[:, common] = corpus * noise**2
            beta_t /= beta_t.sum(0)
            self.alpha[common] = _COMMON_ALPHA
            self.common[common] = True
        weights = beta_t * usage  # (V, K')
        self.word_topics = weights / weights.sum(1, keepdim=True).clamp_min(1e-30) * self.tokens[:, None]
        self.beta_t = beta_t
        self.begun.fill_(True)

    def _leave(self, which: Tensor) -> None:
        """All topics but these (n,) go. The next pass shares out anew what they had, or else `end` does."""
        if self.of_words is None:
            self.of_words = self.word_topics.sum(1, keepdim=True)
        which = self.spares.keep(which, self.seeded.any(0))
        for name in ("alpha", "word_topics", "beta_t", "seeded", "common"):
            setattr(self, name, getattr(self, name)[..., which])
        self.before, self.local = None, None if self.local is None else self.local[:, which]
        if not self.crowded:
            self.choice = None

    def weave(self, batch: Batch, theta: Tensor | None, generator: torch.Generator) -> DirichletPosterior:
        """Shares out the tokens of a batch anew, and counts them.

        The counts of each document are drawn first, nearly from Gamma(N_dk), about as noisy as a sampler's sums of
        draws, or with less variance where there are few tokens a word.

        Args:
            theta: (B, K) what an encoder says of the documents, where a pass `starts` from it.

        Returns:
            Dirichlet(alpha + N_d), in which a token counts as `damping` says.
        """
        self.woven += 1
        self.tally = tally = self.tally or self._start_pass(generator)
        values = batch.counts.values**self.damping  # (N,)
        counts = self._start(batch, theta, batch.counts.sum_by_document(values)[:, None])  # (B, K)
        drawn = noisy(counts, tally.noise, generator)
        counts = self.reassign(
            batch.counts, values, drawn, tally.topics, self.alpha, tally.word_topics, left_out=tally.left_out
        )
        if self.local is not None:
            self.local[batch.rows] = counts
        tally.tokens.index_add_(0, batch.counts.indices, batch.counts.values)
        for total, part in zip(tally.alpha, dirichlet_step(counts, self.alpha), strict=True):
            total += part
        return DirichletPosterior(counts + self.alpha, self.alpha)

    def _start_pass(self, generator: torch.Generator) -> _Tally:
        """What a pass goes by, as the tokens there are ask for it."""
        counted = self.word_topics if self.of_words is None else self.of_words
        noise = min(1.0, float(counted.sum()) / len(self.tokens) / _NOISY)
        word_topics = self.word_topics  # (V, K)
        if self.passes < min(_NOISY_PASSES * self.n_passes, self.n_passes - _PLAIN):
            word_topics = noisy(word_topics, _WORD_NOISE * noise, generator)
        return _Tally.of(self._topics(word_topics), noise, 0.0 if self.local is None else 1 - noise**2)

    def _topics(self, word_topics: Tensor) -> CountedTopics:
        """What a pass goes by, of N_vk (V, K); asked for once a pass."""
        counted, before = CountedTopics.of(word_topics + self.seeded, self.eta), self.before
        self.before = counted.beta_t
        return counted if before is None or self.passes >= self.n_passes - _PLAIN else counted.beyond(before)

    def _tokens_a_word(self) -> float:
        return float(self.tokens.sum()) / len(self.tokens)

    def _start(self, batch: Batch, theta: Tensor | None, sizes: Tensor) -> Tensor:
        """N_dk to start a pass with: those of the pass before, or as theta says: (B, K)"""
        if self.local is not None and self.passes:
            return self.local[batch.rows]
        assert theta is not None
        if self.local is not None and self.common.any():  # of which no encoder knows yet
            theta = (1 - _COMMON_SHARE) * theta
            theta[:, self.common] = _COMMON_SHARE / self.common.sum()
            theta /= theta.sum(1, keepdim=True)
        elif self.local is None:
            theta = (
                expected_counts(batch.counts, self.beta_t, self.alpha, theta, _NEW_STEPS) / batch.counts.totals[:, None]
            )
        return sizes * theta

    def gather(self) -> None:
        """After a pass: what was counted becomes the topics; in a stream it joins what was there."""
        assert self.tally is not None
        tally, self.tally = self.tally, None
        kept = 0.0 if self.local is not None else 1.0
        new = tally.tokens.sum() / (kept * self.tokens.sum() + tally.tokens.sum())  # () the share of new tokens
        self.word_topics.mul_(kept).add_(tally.word_topics)
        self.tokens.mul_(kept).add_(tally.tokens)
        if self.passes >= _SETTLING or self.local is None:
            numerator, denominator = tally.alpha
            self.alpha.mul_((numerator / denominator).clamp_min(1e-6) ** new).clamp_(_LEAST_ALPHA, _MOST_ALPHA)
        power = self.sharpness or min(_SHARPEST, 1 + _SHARPER / (3 + self._tokens_a_word() ** 0.5))
        self.beta_t = sharpened(self.word_topics + self.seeded, self.tokens, power, self.eta)
        if self.common.any():
            self.beta_t = tinted(self.beta_t, self.alpha * self.common, _TINT)
        self.passes += 1
        self.of_words, self.woven = None, 0
        n_left = self.spares.n_left(self.passes, self.n_passes)
        if self.choice is not None and n_left < len(self.alpha):
            self._leave(self.choice(self.beta_t.mT, self.tokens, n_left, self.held))

    def infer(self, batch: Batch, theta: Tensor, steps: int) -> DirichletPosterior:
        """Dirichlet(alpha_d + N_d) of documents given the topics, by `steps` from what an encoder says, theta (B, K).

        alpha_d is as large as alpha, part of it where the encoder says: it has seen which topics go together.
        """
        alpha = torch.lerp(self.alpha, self.alpha.sum() * theta, _TRUST)  # (B, K)
        counts = expected_counts(batch.counts, self.beta_t, alpha, theta, steps)  # (B, K)
        return DirichletPosterior(alpha + counts, self.alpha)

    def loss(self, posterior: DirichletPosterior, batch: Batch) -> Loss:
        """See `lda_loss`."""
        return lda_loss(posterior, self.beta_t, batch.counts)
