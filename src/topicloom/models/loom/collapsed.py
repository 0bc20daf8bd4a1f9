"""The counting and sampling stages of Loom: topics and Dirichlet parameters come from counts, not from gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from ...distributed import current
from ...nn.mean_field import lda_loss
from ...nn.network import Loss
from ...nn.posteriors import DirichletPosterior
from ...nn.sparse import TINY, Batch, SparseCounts, mixture_log_likelihood
from ..spare_topics import Pruning, Selector
from .cvb0 import (
    MAX_ALPHA,
    MIN_ALPHA,
    SMALLEST,
    CountedTopics,
    CountingPass,
    DocumentCounts,
    dirichlet_step,
    draw_counts,
    expected_counts,
    reassign,
    select,
    sharpen,
    zero_counts,
)
from .relocation import Relocation
from .sampling import SamplingStage, eta_step

if TYPE_CHECKING:
    from .model import LoomNetwork


# Background topics: how they begin, and how what all documents have of them is divided among all topics.
#
# A background topic takes up words that are common everywhere. What nearly every document has of it says nothing about
# a document, but makes the shares of all other topics smaller, and it takes the place of a topic that says something.
# At the end of training, this share is therefore given to all topics: each then has some of the common words, as in a
# corpus in which each topic has them.

_REMOVED_FREQUENCY = 0.9  # the corpus's word frequencies times this are subtracted from topics beside background topics
_QUANTILES = (0.05, 0.1, 0.25, 0.5)  # of a background topic's shares of documents, which are tried as common shares
_LEAST_SHARE = 0.03  # a smaller one is left as it is
_LEAST_FACTOR = 1e-3  # what is left at least of the encoder's share of a background topic
SAMPLED = 1 << 11  # documents in which the common share is estimated


def with_background(beta_t: Tensor, tokens: Tensor, background: Tensor, generator: torch.Generator) -> Tensor:
    """Return topics of which some are background topics: they have the common words, which all topics had before.

    Args:
        beta_t: (V, K) topics, columns sum to 1.
        tokens: (V,) the frequency of each word.
        background: (n,) the numbers of the topics that become background topics.
        generator: draws the noise that makes them different.
    """
    corpus = (tokens / tokens.sum())[:, None]  # (V, 1)
    beta_t = (beta_t - _REMOVED_FREQUENCY * corpus).clamp_min(1e-7)
    noise = torch.rand(len(beta_t), len(background), generator=generator, device=beta_t.device)
    beta_t[:, background] = corpus * noise**2
    return beta_t / beta_t.sum(0)


class BackgroundDivision:
    """Divides what all documents have of the background topics among all topics, at the end of training.

    Args:
        network: the network, whose counting stage has ended.
        documents: a sample of the training documents; half of their words are predicted from the others.
    """

    def __init__(self, network: LoomNetwork, documents: Batch) -> None:
        self.network, self.counting = network, network.counting
        # At random: words are often in the order of their frequency. If they took turns, the most common ones would be
        # in the same half in all documents.
        draws = torch.rand(len(documents.counts.values), generator=torch.Generator().manual_seed(0))  # (N,)
        given, self.scored = documents.counts.divided((draws < 0.5).to(documents.device))
        self.theta = network.posterior(documents).point()  # (D, K)
        self.given = replace(documents, counts=given)
        self.encoded = network.code(self.given).point()  # (D, K)

    def divide(self) -> None:
        """Divide the common share, if that predicts words better; otherwise change nothing."""
        share = current().of_first(self._common_share())
        if not share.any():
            return
        counting, sampling = self.counting, self.counting.sampling
        kept = counting.pruning.kept
        self.network.shares.logits[slice(None) if kept is None else kept] += self._factor(share).log()
        beta_t, alpha = self._divided(share)
        weights = beta_t * self._sizes(share)  # (V, K)
        totals = counting.word_topics.sum(1, keepdim=True)
        # In place, as this is inference mode, whose new tensors could not be changed by later training.
        counting.word_topics.copy_(weights * (totals / weights.sum(1, keepdim=True).clamp_min(SMALLEST)))
        if sampling is not None and sampling.mean_counts is not None:
            sampling.mean_counts.copy_(counting.word_topics)
        counting.beta_t.copy_(beta_t)
        counting.alpha.copy_(alpha)

    def _common_share(self) -> Tensor:
        """Return the share that documents have in common of each topic: (K,), 0 for topics that are no background.

        It is a quantile of the shares of documents. Higher quantiles are tried as long as words are predicted better,
        by more than one standard error.
        """
        background = self.counting.background  # (K,)
        best = torch.zeros_like(self.theta[0])  # (K,)
        highest = self._log_likelihood(best)  # (D,)
        for quantile in _QUANTILES:
            share = torch.zeros_like(best)
            share[background] = self.theta[:, background].quantile(quantile, dim=0)
            share[share < _LEAST_SHARE] = 0
            if not share.any():
                continue
            found = self._log_likelihood(share)
            if (found - highest).sum() <= (found - highest).square().sum().sqrt():
                break
            best, highest = share, found
        return best

    def _log_likelihood(self, share: Tensor) -> Tensor:
        """Return the log likelihood of words that documents' other words predict with topics after division, (D,)."""
        beta_t, alpha = self._divided(share)
        start = self.encoded * self._factor(share)
        start = start / start.sum(1, keepdim=True)  # (D, K)
        posterior = self.counting.infer_with(beta_t, alpha, self.given.counts, start, self.network.refine)
        return mixture_log_likelihood(posterior.point(), beta_t, self.scored)

    def _divided(self, share: Tensor) -> tuple[Tensor, Tensor]:
        """Return topics (V, K), of which each has the words of the common share, and alpha (K,) without it.

        With f_k for the share and f for its sum, theta_k = f_k + (1 - f) theta'_k, so that the topics
        (1 - f) beta_k + sum_l f_l beta_l with the shares theta' give words the same probabilities.
        """
        beta_t, alpha = self.counting.topics(), self.counting.alpha
        divided = (1 - share.sum()) * beta_t + (beta_t @ share)[:, None]
        return divided, (alpha - alpha.sum() * share).clamp_min(MIN_ALPHA)

    def _factor(self, share: Tensor) -> Tensor:
        """Return what is left of the encoder's mean shares after division, as factors (K,)."""
        mean = self.encoded.mean(0)
        return (1 - share / mean.clamp_min(TINY)).clamp_min(_LEAST_FACTOR)

    def _sizes(self, share: Tensor) -> Tensor:
        """Return the topics' shares of all tokens after division, (K,)."""
        left = (self.theta.mean(0) - share).clamp_min(TINY)
        return left / left.sum()


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
