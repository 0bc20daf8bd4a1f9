"""The counting and sampling stages of Loom: topics and Dirichlet parameters come from counts, not from gradients."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from ...nn.batch import Batch
from ...nn.mean_field import lda_loss
from ...nn.network import Loss
from ...nn.posteriors import DirichletPosterior
from ...nn.sparse import SparseCounts
from ..pruning import Pruning, Selector
from .background import with_background
from .cvb0 import (
    MAX_ALPHA,
    MIN_ALPHA,
    CountedTopics,
    CountingPass,
    dirichlet_step,
    draw_counts,
    expected_counts,
    reassign,
    sharpen,
)
from .documents import DocumentCounts, select, zero_counts
from .relocation import Relocation
from .sampling import SamplingStage, eta_step

_ALPHA, _BACKGROUND_ALPHA = 0.05, 0.5  # initial Dirichlet parameters, of topics and of background topics
_FIXED_ALPHA_PASSES = 3  # passes before the Dirichlet parameters are learned
_BACKGROUND_SHARE = 0.4  # the share of a document's tokens that background topics have at the start
ENCODER_PRIOR = 0.5  # the share of a new document's Dirichlet parameter that is proportional to the encoder's theta
PRIOR_TOKENS = 2.0  # this / n is added to the sum of the Dirichlet parameter of a new document of n tokens
_STREAM_REFINE = 10  # steps of refinement of a streamed document's theta before its tokens are counted

RESIZED = ("alpha", "word_topics", "beta_t", "background")  # buffers (.., K) whose width changes while training


class CollapsedCounts(nn.Module):
    """Latent Dirichlet allocation by counts: the counts so far, and passes over the documents that improve them.

    Args:
        n_words: the size of the vocabulary V.
        n_topics: the number of topics K in the end.
        eta: Dirichlet parameter of the topics at first.
        count_power: a word that occurs x times in a document counts x ** count_power times.
        sharpness: as in `sharpen`.
        n_background: topics that start with the words that all documents share.
        n_spare: the number of topics beyond K at the start.
        seed_counts: (V, K) counts that words have in topics from the start; None for none.
        reassign, expected_counts, dirichlet_step: the functions of these names in `cvb0`, or ones equal to them.
    """

    started: Tensor  # () bool, whether the counting stage has started
    alpha: Tensor  # (K,) Dirichlet parameter of theta
    eta: Tensor  # () Dirichlet parameter of the topics, which the sampling stage learns
    word_topics: Tensor  # (V, K) N_vk
    tokens: Tensor  # (V,) frequency of each word
    beta_t: Tensor  # (V, K) the topics, columns sum to 1
    seed_counts: Tensor  # (V, K)
    background: Tensor  # (K,) bool, the topics that started as background topics
    # The state of one run of training; see `run_state`.
    document_topics: DocumentCounts | None  # of the training documents, (D, 0) before the start; None in a stream
    word_totals: Tensor | None  # (V, 1) sum_k N_vk of the last pass, if topics have been removed since
    current_pass: CountingPass | None
    sampling: SamplingStage | None  # the passes after these, in which the topics of tokens are drawn
    n_passes: int  # that are planned
    passes_done: int
    batches_done: int  # of the current pass
    selector: Selector | None  # which spare topics to remove; not part of the state
    relocation: Relocation | None  # of topics in the sampling stage; not part of the state
    divided_alpha: Tensor | None  # (K,) alpha when the background topics were divided last
    is_outdated: bool  # whether beta_t is that of an earlier pass

    def __init__(
        self,
        n_words: int,
        n_topics: int,
        *,
        eta: float,
        count_power: float,
        sharpness: float,
        n_background: int,
        n_spare: int = 0,
        seed_counts: Tensor | None = None,
        reassign: Callable[..., Tensor] = reassign,
        expected_counts: Callable[..., Tensor] = expected_counts,
        dirichlet_step: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] = dirichlet_step,
    ) -> None:
        super().__init__()
        self.count_power, self.sharpness, self.n_background = count_power, sharpness, n_background
        self.reassign, self.expected_counts, self.dirichlet_step = reassign, expected_counts, dirichlet_step
        zeros = torch.zeros(n_words, n_topics)
        self.register_buffer("started", torch.tensor(False))
        self.register_buffer("alpha", torch.full((n_topics,), _ALPHA))
        self.register_buffer("eta", torch.tensor(eta))
        self.register_buffer("word_topics", zeros)
        self.register_buffer("tokens", torch.zeros(n_words))
        self.register_buffer("beta_t", torch.full_like(zeros, 1 / n_words))
        self.register_buffer("seed_counts", zeros.clone() if seed_counts is None else seed_counts, persistent=False)
        self.register_buffer("background", torch.zeros(n_topics, dtype=torch.bool))
        self.pruning = Pruning(n_topics, n_spare)
        self._forget_run()

    def keep_documents(
        self,
        n_docs: int,
        tokens: Tensor,
        n_passes: int = 0,
        selector: Selector | None = None,
        sampling: SamplingStage | None = None,
        relocation: Relocation | None = None,
    ) -> None:
        """Prepare for passes over the same documents: the counts of each are kept from one pass to the next.

        Args:
            n_docs: the number of documents D.
            tokens: (V,) frequency of each word in them.
            n_passes: the number of passes that are planned.
            selector: chooses the topics to keep, if there are spare ones.
            sampling: the passes after these, in which the topics of tokens are drawn, if there are any.
            relocation: joins topics that are nearly equal in these passes, so that they start again elsewhere.
        """
        self.document_topics = torch.zeros(n_docs, 0, device=self.alpha.device)
        self.tokens.copy_(tokens)
        self.n_passes, self.selector = n_passes, selector
        self.sampling, self.relocation = sampling, relocation

    def finish(self, usage: Tensor) -> None:
        """End a run of training. If spare topics are left, keep the K topics that the documents use most.

        Args:
            usage: (K',) the share of the documents that each topic has, for a run that ends before counting starts.
        """
        if self.started and self.has_spare:
            self._prune(self.pruning.most_used(self.word_topics.sum(0), self.protected))
        elif not self.started and self.pruning.n_spare:
            protected = pad(self.protected, (0, self.pruning.n_spare))
            self.pruning.keep(self.pruning.most_used(usage, protected), protected)
        self.topics()
        if self.word_totals is not None:
            smoothed = self.word_topics + self.eta
            self.word_topics = smoothed * (self.word_totals / smoothed.sum(1, keepdim=True))
        if self.sampling is not None and self.sampling.mean_counts is not None:
            self.word_topics = self.sampling.mean_counts
        self._forget_run()

    def _forget_run(self) -> None:
        self.document_topics = self.word_totals = self.current_pass = self.selector = None
        self.sampling = self.relocation = self.divided_alpha = None
        self.n_passes = self.passes_done = self.batches_done = 0
        self.is_outdated = False

    def topics(self) -> Tensor:
        """Return the topics (V, K) of the counts so far, columns sum to 1.

        Few passes of the sampling stage need them, so that they are computed when they are read.
        """
        if self.is_outdated:
            assert self.sampling is not None
            counts = self.word_topics if self.sampling.mean_counts is None else self.sampling.mean_counts
            self.beta_t.copy_(sharpen(counts + self.seed_counts, self.tokens, self.sharpness, self.eta))
            self.is_outdated = self.batches_done > 0  # training that fails returns to the buffers before the pass
        return self.beta_t

    @property
    def has_spare(self) -> bool:
        """Whether there are more topics than requested."""
        return len(self.alpha) > self.pruning.n_topics

    @property
    def is_stream(self) -> bool:
        """Whether documents come only once, so that their counts are not kept."""
        return self.document_topics is None

    @property
    def current_sampling(self) -> SamplingStage | None:
        """The sampling stage, if this pass belongs to it."""
        return self.sampling if self.passes_done >= self.n_passes else None

    @property
    def protected(self) -> Tensor:
        """(K,) bool, the topics that must not be removed."""
        return self.seed_counts.any(0) | self.background

    @property
    def needs_encoder(self) -> bool:
        """Whether the counts of documents start from the encoder's theta in this pass."""
        return self.is_stream or not self.passes_done

    def start(self, beta_t: Tensor, usage: Tensor, generator: torch.Generator) -> None:
        """Start the counting stage: turn the topics of pretraining into counts.

        Background topics replace the topics that the documents use least; see `with_background`. A stream has none,
        because its early counts remain, and such topics are far from right at first.

        Args:
            beta_t: (V, K') topics, columns sum to 1.
            usage: (K',) the share of the documents that each topic has.
            generator: draws the noise that makes background topics different.
        """
        n_spare, n_topics = self.pruning.n_spare, self.pruning.n_topics
        self.seed_counts = pad(self.seed_counts, (0, n_spare))
        self.alpha = torch.full_like(usage, _ALPHA)
        self.background = torch.zeros_like(usage, dtype=torch.bool)
        free = (~self.protected).nonzero()[:, 0]  # a seeded topic keeps its index
        n_background = min(self.n_background, len(free) - n_spare, n_topics - 1)
        if self.document_topics is not None:
            self.document_topics = zero_counts(len(self.document_topics), len(usage), usage.device)
        if n_background and self.document_topics is not None:
            background = free[usage[free].argsort()[:n_background]]
            beta_t = with_background(beta_t, self.tokens, background, generator)
            self.alpha[background] = _BACKGROUND_ALPHA
            self.background[background] = True
        weights = beta_t * usage  # (V, K')
        self.word_topics = weights / weights.sum(1, keepdim=True).clamp_min(1e-30) * self.tokens[:, None]
        self.beta_t = beta_t
        self.started.fill_(True)

    def _prune(self, which: Tensor) -> None:
        """Remove all topics but these (n,). The next pass, or `finish`, reassigns the counts of the others."""
        if self.word_totals is None:
            self.word_totals = self.word_topics.sum(1, keepdim=True)
        which = self.pruning.keep(which, self.seed_counts.any(0))
        for name in (*RESIZED, "seed_counts"):
            setattr(self, name, getattr(self, name)[..., which])
        self.document_topics = None if self.document_topics is None else select(self.document_topics, which)
        if not self.has_spare:
            self.selector = None

    def count(self, batch: Batch, theta: Tensor | None, generator: torch.Generator) -> DirichletPosterior:
        """Reassign the tokens of a batch to topics, and add them to the sums of the pass.

        The counts of documents are drawn first, nearly from Gamma(N_dk): as noisy as a Gibbs sampler's sums of draws.

        Args:
            batch: the documents.
            theta: (B, K) the encoder's theta, in a pass that `needs_encoder`.
            generator: draws the counts.

        Returns:
            Dirichlet(alpha + N_d), in which words count as `count_power` says.
        """
        self.batches_done += 1
        if self.current_pass is None:
            topics = CountedTopics.from_counts(self.word_topics + self.seed_counts, self.eta)
            self.current_pass = CountingPass.start(topics)
        sums = self.current_pass
        if (stage := self.current_sampling) is not None:
            counts = stage.draw(batch, self.document_topics, sums.topics, self.alpha, sums.word_topics, generator)
            return self._end_batch(batch, counts, sums)
        values = batch.counts.values**self.count_power  # (N,)
        counts = self._initial_counts(batch, theta, batch.counts.sum_by_document(values)[:, None])  # (B, K)
        drawn = draw_counts(counts, generator)
        counts = self.reassign(
            batch.counts, values, drawn, sums.topics, self.alpha, sums.word_topics, excluded=not self.is_stream
        )
        if self.document_topics is not None:
            self.document_topics[batch.rows] = counts
        return self._end_batch(batch, counts, sums)

    def _end_batch(self, batch: Batch, counts: Tensor, sums: CountingPass) -> DirichletPosterior:
        """Add what alpha and the frequencies of words depend on to the sums of the pass; return the posterior."""
        sums.tokens.index_add_(0, batch.counts.indices, batch.counts.values)
        numerator, denominator = self.dirichlet_step(counts, self.alpha)
        sums.alpha_numerator.add_(numerator)
        sums.alpha_denominator.add_(denominator)
        return DirichletPosterior(counts + self.alpha, self.alpha)

    def _initial_counts(self, batch: Batch, theta: Tensor | None, sizes: Tensor) -> Tensor:
        """Return N_dk (B, K) at the start of a pass: of the previous pass, or from the encoder's theta.

        Args:
            sizes: (B, 1) the weighted tokens of each document.
        """
        if self.document_topics is not None and self.passes_done:
            return self.document_topics[batch.rows]
        assert theta is not None
        if self.document_topics is not None and self.background.any():  # which the encoder does not know yet
            theta = (1 - _BACKGROUND_SHARE) * theta
            theta[:, self.background] = _BACKGROUND_SHARE / self.background.sum()
            theta /= theta.sum(1, keepdim=True)
        elif self.document_topics is None:
            counts = self.expected_counts(batch.counts, self.beta_t, self.alpha, theta, _STREAM_REFINE)
            theta = counts / batch.counts.totals[:, None]
        return sizes * theta

    def end_pass(self) -> None:
        """Replace the counts by the sums of the pass, or add these in a stream; then remove topics if it is time."""
        assert self.current_pass is not None
        done, self.current_pass = self.current_pass.of_all_ranks(), None
        old = 1.0 if self.is_stream else 0.0  # the weight of the counts so far
        new = done.tokens.sum() / (old * self.tokens.sum() + done.tokens.sum())  # () the share of new tokens
        self.word_topics.mul_(old).add_(done.word_topics)
        self.tokens.mul_(old).add_(done.tokens)
        if self.passes_done >= _FIXED_ALPHA_PASSES or self.is_stream:
            change = (done.alpha_numerator / done.alpha_denominator).clamp_min(1e-6) ** new
            self.alpha.mul_(change).clamp_(MIN_ALPHA, MAX_ALPHA)
        del done
        if (stage := self.current_sampling) is not None:
            self.eta.copy_(eta_step(self.word_topics, self.eta))
            stage.end_pass(self.word_topics)
            self.document_topics = self.alpha.new_zeros(len(stage.starts) - 1, 0)  # the topics of tokens replace them
            if self.relocation is not None and self.relocation.is_due(stage):
                self.relocation.apply(self.word_topics, self.alpha, self.eta, self.seed_counts, stage)
            self.is_outdated = True
        else:
            self.beta_t = sharpen(self.word_topics + self.seed_counts, self.tokens, self.sharpness, self.eta)
        self.passes_done += 1
        self.word_totals, self.batches_done = None, 0
        n_kept = self.pruning.n_kept(self.passes_done, self.n_passes)
        if self.selector is not None and n_kept < len(self.alpha):
            self._prune(self.selector(self.beta_t.mT, self.tokens, n_kept, self.protected))

    def infer(self, batch: Batch, theta: Tensor, steps: int) -> DirichletPosterior:
        """Return Dirichlet(alpha_d + N_d) of new documents, by refining the encoder's theta.

        Half of alpha_d is proportional to the encoder's theta: the encoder has learned which topics occur together. The
        sum of alpha_d is that of alpha plus 2 / n for n tokens: without it, theta of short documents is too certain.

        Args:
            batch: the documents.
            theta: (B, K) the encoder's theta.
            steps: steps of refinement.
        """
        return self.infer_with(self.topics(), self.alpha, batch.counts, theta, steps)

    def infer_with(
        self, beta_t: Tensor, alpha: Tensor, documents: SparseCounts, theta: Tensor, steps: int
    ) -> DirichletPosterior:
        """Return what `infer` does, with other topics (V, K) and another Dirichlet parameter of theta (K,)."""
        total = alpha.sum()
        larger = 1 + PRIOR_TOKENS / (total * documents.totals.clamp_min(1))[:, None]  # (B, 1)
        own = larger * torch.lerp(alpha, total * theta, ENCODER_PRIOR)  # (B, K)
        return DirichletPosterior(own + self.expected_counts(documents, beta_t, own, theta, steps), alpha)

    def loss(self, posterior: DirichletPosterior, batch: Batch) -> Loss:
        """Return the loss of latent Dirichlet allocation; see `lda_loss`."""
        return lda_loss(posterior, self.topics(), batch.counts)
