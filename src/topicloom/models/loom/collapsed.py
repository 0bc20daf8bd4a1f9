"""The counting and sampling stages of Loom, whose topics and Dirichlet parameters come from counts, not from gradients.

`CollapsedCounts` has the counts and passes over the documents; cvb0.py and sampling.py have the formulas. N_dk, the
counts of topics in documents, are kept from one pass to the next. If an array of all of them would be too large,
`LargestCounts` stores them. `Pruning` and `choose_topics` remove the spare topics. At the end of training,
`BackgroundDivision` divides the common share of the background topics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from ...distributed import current
from ...metrics.cooccurrence import Reference
from ...nn.mean_field import lda_loss
from ...nn.network import Loss
from ...nn.posteriors import DirichletPosterior
from ...nn.sparse import TINY, Batch, SparseCounts, mixture_log_likelihood
from ...training.batches import BatchReader
from ..inference import Array
from ..starting import in_place, mean_coherence, overlaps, ranked_words, reference_of
from .cvb0 import (
    MAX_ALPHA,
    MIN_ALPHA,
    SMALLEST,
    CountedTopics,
    Recounted,
    eta_step,
    expected_counts,
    recount,
    sharpen,
)
from .relocation import Relocation
from .sampling import SamplingStage

_INITIAL_ALPHA, _INITIAL_BACKGROUND_ALPHA = 0.05, 0.5  # Dirichlet parameters of topics and of background topics
_FIXED_ALPHA_PASSES = 3  # passes before the Dirichlet parameters are learned
_MOST_PRIOR = 1 / 3  # the largest sum of alpha in the sampling stage, relative to the tokens of a document
_INITIAL_BACKGROUND_SHARE = 0.4  # the share of a document's tokens that background topics have at the start
_REMOVED_FREQUENCY = 0.9  # with background topics, other topics lose this multiple of the word frequencies
ENCODER_PRIOR_SHARE = 0.5  # the share of a new document's Dirichlet parameter that follows the encoder's theta
PRIOR_TOKENS = 2.0  # this / n is added to the sum of the Dirichlet parameter of a new document of n tokens
_REFINEMENT_STEPS = 10  # steps that refine the encoder's theta of a document whose tokens have not been counted yet

_COUNTERS = ("n_passes", "passes_done", "batches_done")
_RESIZED = ("alpha", "word_topics", "beta_t", "background")  # buffers (.., K) whose width changes while training
_TOPICS = ("beta_t", "sizes", "smallest")  # fields of `CountedTopics`
_SUMS = ("word_topics", "tokens", "alpha_numerator", "alpha_denominator")  # of `CountingPass`


class CollapsedCounts(nn.Module):
    """Latent Dirichlet allocation by counts, and passes over the documents that improve them.

    Args:
        n_words: the size of the vocabulary V.
        n_topics: the number of topics K in the end.
        eta: Dirichlet parameter of the topics at first.
        count_power: a word that occurs x times in a document counts x ** count_power times.
        sharpness: p(topic | word) of top words is raised to this power in the topics.
        n_background: the number of topics that start with the words that all documents share.
        n_spare: the number of additional topics at the start.
        seed_counts: (V, K) counts that words have in topics from the start; None for none.
    """

    started: Tensor  # () bool, whether the counting stage has started
    alpha: Tensor  # (K,) Dirichlet parameter of theta
    eta: Tensor  # () Dirichlet parameter of the topics, which the sampling stage learns
    word_topics: Tensor  # (V, K) N_vk
    tokens: Tensor  # (V,) frequency of each word
    beta_t: Tensor  # (V, K) the topics, columns sum to 1
    seed_counts: Tensor  # (V, K)
    background: Tensor  # (K,) bool, the topics that started as background topics
    # The state of a training run, which `run_state` returns.
    document_topics: DocumentCounts | None  # of the training documents, (D, 0) before the start; None in a stream
    word_totals: Tensor | None  # (V, 1) sum_k N_vk of the last pass; None if no topics have been removed since
    current_pass: CountingPass | None
    sampling: SamplingStage | None  # the passes after the counting stage, in which the topics of tokens are drawn
    n_passes: int  # the planned passes of the counting stage
    passes_done: int
    batches_done: int  # of the current pass
    selector: Selector | None  # chooses the topics to keep; not part of the state
    relocation: Relocation | None  # of topics in the sampling stage; not part of the state
    divided_alpha: Tensor | None  # (K,) alpha after the last division of the background topics
    is_outdated: bool  # whether beta_t belongs to an earlier pass

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
    ) -> None:
        super().__init__()
        self.count_power, self.sharpness, self.n_background = count_power, sharpness, n_background
        zeros = torch.zeros(n_words, n_topics)
        self.register_buffer("started", torch.tensor(False))
        self.register_buffer("alpha", torch.full((n_topics,), _INITIAL_ALPHA))
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
            n_passes: the planned passes of the counting stage.
            selector: chooses the topics to keep; None if there are no spare topics.
            sampling: the passes of the sampling stage, or None.
            relocation: in the sampling stage, joins topics that are nearly equal and starts them again elsewhere.
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

        They are computed on demand, because few passes of the sampling stage need them.
        """
        if self.is_outdated:
            assert self.sampling is not None
            counts = self.word_topics if self.sampling.mean_counts is None else self.sampling.mean_counts
            self.beta_t.copy_(sharpen(counts + self.seed_counts, self.tokens, self.sharpness, self.eta))
            self.is_outdated = self.batches_done > 0  # if training fails, the buffers from before the pass are restored
        return self.beta_t

    def replace_counts(self, word_topics: Tensor) -> None:
        """Replace the counts, (V, K), from which the topics are made."""
        self.word_topics.copy_(word_topics)
        if self.sampling is not None and self.sampling.mean_counts is not None:
            self.sampling.mean_counts.copy_(word_topics)
        self.beta_t.copy_(sharpen(word_topics + self.seed_counts, self.tokens, self.sharpness, self.eta))
        self.is_outdated = False

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
        stage = self.current_sampling
        return self.is_stream or not self.passes_done or (stage is not None and stage.leaves_subset)

    def start(self, beta_t: Tensor, usage: Tensor, generator: torch.Generator) -> None:
        """Start the counting stage: turn the topics of pretraining into counts.

        Background topics replace the topics that the documents use least; see `with_background`. A stream has none,
        because background topics are inaccurate at first, and the early counts of a stream remain.

        Args:
            beta_t: (V, K') topics, columns sum to 1.
            usage: (K',) the share of the documents that each topic has.
            generator: draws the noise that makes background topics different.
        """
        n_spare, n_topics = self.pruning.n_spare, self.pruning.n_topics
        self.seed_counts = pad(self.seed_counts, (0, n_spare))
        self.alpha = torch.full_like(usage, _INITIAL_ALPHA)
        self.background = torch.zeros_like(usage, dtype=torch.bool)
        free = (~self.protected).nonzero()[:, 0]  # a seeded topic keeps its index
        n_background = min(self.n_background, len(free) - n_spare, n_topics - 1)
        if self.document_topics is not None:
            self.document_topics = zero_counts(len(self.document_topics), len(usage), usage.device)
        if n_background and self.document_topics is not None:
            background = free[usage[free].argsort()[:n_background]]
            beta_t = with_background(beta_t, self.tokens, background, generator)
            self.alpha[background] = _INITIAL_BACKGROUND_ALPHA
            self.background[background] = True
        weights = beta_t * usage  # (V, K')
        self.word_topics = weights / weights.sum(1, keepdim=True).clamp_min(1e-30) * self.tokens[:, None]
        self.beta_t = beta_t
        self.started.fill_(True)

    def _prune(self, which: Tensor) -> None:
        """Remove all topics but these (n,). The next pass, or `finish`, reassigns the counts of the removed ones."""
        if self.word_totals is None:
            self.word_totals = self.word_topics.sum(1, keepdim=True)
        which = self.pruning.keep(which, self.seed_counts.any(0))
        for name in (*_RESIZED, "seed_counts"):
            setattr(self, name, getattr(self, name)[..., which])
        self.document_topics = None if self.document_topics is None else select(self.document_topics, which)
        if not self.has_spare:
            self.selector = None

    def count(
        self, batch: Batch, theta: Tensor | None, generator: torch.Generator, *, is_kept: bool = True
    ) -> DirichletPosterior | None:
        """Reassign the tokens of a batch to topics, and add them to the sums of the pass.

        In the counting stage, the counts of documents are first drawn, approximately from Gamma(N_dk). This makes them
        as noisy as the counts of a Gibbs sampler.

        Args:
            batch: the documents.
            theta: (B, K) the encoder's theta, in a pass that `needs_encoder`.
            generator: draws the counts.
            is_kept: whether the posterior is needed.

        Returns:
            None, or Dirichlet(alpha + N_d), where a word that occurs x times counts x ** count_power times.
        """
        self.batches_done += 1
        if self.current_pass is None:
            topics = CountedTopics.from_counts(self.word_topics + self.seed_counts, self.eta)
            self.current_pass = CountingPass.start(topics)
        sums = self.current_pass
        if (stage := self.current_sampling) is not None:
            assert self.document_topics is not None
            before = None  # (B, K)
            if stage.leaves_subset:
                before = self._inferred_counts(batch, sums.topics.beta_t, theta)
                sums.tokens.index_add_(0, batch.own_counts.indices, batch.own_counts.values)
            elif not stage.passes_done:
                before = self.document_topics[batch.rows]
            tables = sums.topics, self.alpha, sums.word_topics
            return self._end_batch(stage.draw(batch, before, *tables, generator, are_kept=is_kept), sums)
        values = batch.counts.values**self.count_power  # (N,)
        counts = self._initial_counts(batch, theta)  # (B, K)
        tables = sums.topics, self.alpha, sums.word_topics
        found = recount(batch.counts, values, counts, *tables, generator, excluded=not self.is_stream)
        assert found.doc_topics is not None
        if self._is_whole(batch):
            self.document_topics = found.doc_topics
        elif self.document_topics is not None:
            self.document_topics[batch.rows] = found.doc_topics
        sums.tokens.index_add_(0, batch.own_counts.indices, batch.own_counts.values)
        return self._end_batch(found if is_kept else replace(found, doc_topics=None), sums)

    def _end_batch(self, found: Recounted, sums: CountingPass) -> DirichletPosterior | None:
        """Add the terms of alpha's step to the sums of the pass, and return the posterior if the counts are kept."""
        sums.alpha_numerator.add_(found.numerator)
        sums.alpha_denominator.add_(found.denominator)
        return None if found.doc_topics is None else DirichletPosterior(found.doc_topics + self.alpha, self.alpha)

    def _is_whole(self, batch: Batch) -> bool:
        """Whether the batch consists of all documents in their order, and their counts are an array on the CPU."""
        counts = self.document_topics
        if not isinstance(counts, Tensor) or len(counts) != batch.n_docs or batch.rows is None:
            return False
        return batch.device.type == "cpu" and np.array_equal(batch.rows.numpy(), np.arange(len(counts)))

    @property
    def is_finite(self) -> bool:
        """Whether the counts of the current pass are finite so far."""
        return self.current_pass is None or bool(self.current_pass.alpha_numerator.sum().isfinite())

    def _initial_counts(self, batch: Batch, theta: Tensor | None) -> Tensor:
        """Return N_dk (B, K) at the start of a pass of the counting stage.

        Args:
            batch: the documents.
            theta: (B, K) the encoder's theta, in a pass that `needs_encoder`.
        """
        if self.document_topics is not None and self.passes_done:
            kept = self.document_topics
            return kept if isinstance(kept, Tensor) and self._is_whole(batch) else kept[batch.rows]
        assert theta is not None
        if self.is_stream:
            return self._inferred_counts(batch, self.beta_t, theta)
        if self.background.any():  # topics that the encoder does not know yet
            theta = (1 - _INITIAL_BACKGROUND_SHARE) * theta
            theta[:, self.background] = _INITIAL_BACKGROUND_SHARE / self.background.sum()
            theta /= theta.sum(1, keepdim=True)
        return self._sizes(batch) * theta

    def _inferred_counts(self, batch: Batch, beta_t: Tensor, theta: Tensor | None) -> Tensor:
        """Return N_dk (B, K) of documents that have not been counted yet, given topics (V, K) and the encoder's theta.

        Args:
            batch: the documents.
            beta_t: (V, K) topics, columns sum to 1.
            theta: (B, K) the encoder's theta.
        """
        assert theta is not None
        counts = expected_counts(batch.counts, beta_t, self.alpha, theta, _REFINEMENT_STEPS)
        return self._sizes(batch) * (counts / batch.counts.totals[:, None])

    def _sizes(self, batch: Batch) -> Tensor:
        """Return the weighted tokens of each document, (B, 1)."""
        return batch.counts.sum_by_document(batch.counts.values**self.count_power)[:, None]

    def end_pass(self) -> None:
        """Replace the counts by the sums of the pass; in a stream, add the sums. Then remove topics if they are due."""
        assert self.current_pass is not None
        done, self.current_pass = self.current_pass.of_all_ranks(), None
        stage = self.current_sampling
        new = torch.ones(())  # () the new share of all tokens
        if self.is_stream:
            new = done.tokens.sum() / (self.tokens.sum() + done.tokens.sum())
            self.word_topics.add_(done.word_topics)
            self.tokens.add_(done.tokens)
        else:
            self.word_topics.copy_(done.word_topics)
            if stage is None or stage.leaves_subset:  # other passes do not count the frequencies of words again
                self.tokens.copy_(done.tokens)
        if self.passes_done >= _FIXED_ALPHA_PASSES or self.is_stream:
            change = (done.alpha_numerator / done.alpha_denominator).clamp_min(1e-6) ** new
            self.alpha.mul_(change).clamp_(MIN_ALPHA, MAX_ALPHA)
        del done
        if stage is not None:
            n_docs = sum(current().every(stage.documents.n_docs))
            most = _MOST_PRIOR * self.word_topics.sum() / n_docs  # ()
            self.alpha.mul_((most / self.alpha.sum()).clamp(max=1))
            self.eta.copy_(eta_step(self.word_topics, self.eta))
            stage.end_pass(self.word_topics)
            n_rows = len(stage.documents.starts) - 1
            self.document_topics = self.alpha.new_zeros(n_rows, 0)  # replaced by the topics of tokens
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

    def infer(self, batch: Batch, theta: Tensor, steps: int, n_predicted: Tensor | None = None) -> DirichletPosterior:
        """Return Dirichlet(alpha_d + N_d) of new documents, by refining the encoder's theta.

        Half of alpha_d is proportional to the encoder's theta, because the encoder has learned which topics occur
        together. For n tokens, the sum of alpha_d is the sum of alpha plus 2 / n. Without 2 / n, theta of short
        documents would be too certain.

        Args:
            batch: the documents.
            theta: (B, K) the encoder's theta.
            steps: steps of refinement.
            n_predicted: (B,) tokens that each document has besides its own, with the topics of the encoder's theta.
        """
        return self.infer_with(self.topics(), self.alpha, batch.counts, theta, steps, n_predicted)

    def infer_with(
        self,
        beta_t: Tensor,
        alpha: Tensor,
        documents: SparseCounts,
        theta: Tensor,
        steps: int,
        n_predicted: Tensor | None = None,
    ) -> DirichletPosterior:
        """Do the same as `infer`, with given topics (V, K) and a given Dirichlet parameter of theta (K,)."""
        total = alpha.sum()
        lengths = documents.totals if n_predicted is None else documents.totals + n_predicted  # (B,)
        larger = 1 + PRIOR_TOKENS / (total * lengths.clamp_min(1))[:, None]  # (B, 1)
        own = larger * torch.lerp(alpha, total * theta, ENCODER_PRIOR_SHARE)  # (B, K)
        if n_predicted is not None:
            own = own + n_predicted[:, None] * theta
        return DirichletPosterior(own + expected_counts(documents, beta_t, own, theta, steps), alpha)

    def loss(self, posterior: DirichletPosterior, batch: Batch) -> Loss:
        """Return minus the variational bound of latent Dirichlet allocation, as its two terms."""
        return lda_loss(posterior, self.topics(), batch.counts)

    def run_state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return what changes in a run of training and is not in `state_dict()`: tensors and JSON values."""
        tensors = tensors_of(self.document_topics)
        values: dict[str, Any] = {name: getattr(self, name) for name in _COUNTERS}
        values |= {"started": bool(self.started), "n_topics": len(self.alpha), "is_outdated": self.is_outdated}
        if self.word_totals is not None:
            tensors["word_totals"] = self.word_totals
        if self.divided_alpha is not None:
            tensors["divided_alpha"] = self.divided_alpha
        if self.sampling is not None:
            sampled, values["sampling"] = self.sampling.state()
            tensors |= sampled
        if self.pruning.kept is not None:
            tensors["kept"] = self.pruning.kept
        if self.current_pass is not None:
            tensors |= {f"pass.{name}": tensor for name, tensor in self.current_pass.state().items()}
        return tensors, values

    def load_run_state(self, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
        """Restore the state that `run_state` returned, and give all buffers the shapes that they had then.

        This object must be new. If the other one was prepared by `keep_documents`, this one must be, too.
        """
        self.word_totals = tensors.get("word_totals")
        self.divided_alpha = tensors.get("divided_alpha")
        self.document_topics = from_tensors(tensors, values["n_topics"])
        for name in _COUNTERS:
            setattr(self, name, values[name])
        self.is_outdated = values.get("is_outdated", False)
        if self.sampling is not None:
            self.sampling.load_state(tensors, values["sampling"])
        self.pruning.kept = tensors.get("kept")
        for name in _RESIZED:
            buffer = getattr(self, name)
            setattr(self, name, buffer.new_zeros(*buffer.shape[:-1], values["n_topics"]))
        if values["started"]:
            self.seed_counts = self.pruning.select(pad(self.seed_counts, (0, self.pruning.n_spare)))
        sums = {name.removeprefix("pass."): tensor for name, tensor in tensors.items() if name.startswith("pass.")}
        if sums:
            self.current_pass = CountingPass.from_state(sums)
        if values["started"] and not self.has_spare:
            self.selector = None


@dataclass(frozen=True)
class CountingPass:
    """A pass over the documents: the topics that it uses, and the sums that it collects."""

    topics: CountedTopics
    word_topics: Tensor  # (V, K) new N_vk
    tokens: Tensor  # (V,) frequency of each word
    alpha_numerator: Tensor  # (K,) of Minka's fixed point
    alpha_denominator: Tensor  # ()

    @classmethod
    def start(cls, topics: CountedTopics) -> CountingPass:
        """Return a pass whose sums are all 0."""
        zeros = torch.zeros_like(topics.beta_t)
        return cls(topics, zeros, zeros[:, 0].clone(), zeros[0].clone(), zeros.new_zeros(()))

    def of_all_ranks(self) -> CountingPass:
        """Add up the sums of all ranks, and return the pass. Call this once, at the end of the pass."""
        current().sum_in_place([self.word_topics, self.tokens, self.alpha_numerator, self.alpha_denominator])
        return self

    def state(self) -> dict[str, Tensor]:
        """Return tensors from which `from_state` makes the same pass."""
        tensors = {name: getattr(self.topics, name) for name in _TOPICS}
        return tensors | {name: getattr(self, name) for name in _SUMS}

    @classmethod
    def from_state(cls, tensors: Mapping[str, Tensor]) -> CountingPass:
        """Return the pass that `state` describes."""
        topics = CountedTopics(*(tensors[name] for name in _TOPICS))
        return cls(topics, *(tensors[name] for name in _SUMS))


def with_background(beta_t: Tensor, tokens: Tensor, background: Tensor, generator: torch.Generator) -> Tensor:
    """Turn some topics into background topics, which take the common words of all topics, and return all topics.

    Args:
        beta_t: (V, K) topics, columns sum to 1.
        tokens: (V,) the frequency of each word.
        background: (n,) the indices of the topics that become background topics.
        generator: draws the noise that makes them different.
    """
    corpus = (tokens / tokens.sum())[:, None]  # (V, 1)
    beta_t = (beta_t - _REMOVED_FREQUENCY * corpus).clamp_min(1e-7)
    noise = torch.rand(len(beta_t), len(background), generator=generator, device=beta_t.device)
    beta_t[:, background] = corpus * noise**2
    return beta_t / beta_t.sum(0)


# N_dk, the counts of topics in documents

MAX_DENSE_COUNTS = 1 << 26  # up to 256 MiB, the counts of topics in documents are an array of 32-bit numbers
N_KEPT_COUNTS = 32  # counts of each document that `LargestCounts` keeps, besides the mean of the others
_MAX_FLOAT16 = 65504.0
_DOCUMENTS_AT_ONCE = 1 << 16  # documents in a block of `LargestCounts.select`


class LargestCounts:
    """An array of counts (D, K) that keeps the largest counts of each document, and the mean of the others.

    Documents of a few hundred words have tokens of few topics, however many topics there are. The other counts are
    close to 0, but without them a document would never get tokens of another topic.

    Rows are read and written like rows of a tensor: `counts[rows]` is (B, K) float32.

    Args:
        topics: (D, n) the topics of the kept counts, of an integer type.
        values: (D, n + 1) float16, the kept counts, and the mean of the other counts of the document.
        n_topics: the number of topics K.
    """

    def __init__(self, topics: Tensor, values: Tensor, n_topics: int) -> None:
        self.topics, self.values, self.n_topics = topics, values, n_topics

    @classmethod
    def zeros(cls, n_docs: int, n_topics: int, device: torch.device) -> LargestCounts:
        """Return counts that are all 0."""
        n_kept = min(N_KEPT_COUNTS, n_topics)
        number = torch.int16 if n_topics < 1 << 15 else torch.int32
        return cls(
            torch.zeros(n_docs, n_kept, dtype=number, device=device),
            torch.zeros(n_docs, n_kept + 1, dtype=torch.float16, device=device),
            n_topics,
        )

    def __len__(self) -> int:
        return len(self.values)

    @property
    def shape(self) -> tuple[int, int]:
        """(D, K)."""
        return len(self), self.n_topics

    def __getitem__(self, rows: Tensor | None) -> Tensor:
        assert rows is not None  # only documents outside a corpus have no rows
        values = self.values[rows].float()  # (B, n + 1)
        others = values[:, -1:]
        counts = others.expand(-1, self.n_topics).clone()  # (B, K)
        return counts.scatter_add_(1, self.topics[rows].long(), values[:, :-1] - others).clamp_min_(0)

    def __setitem__(self, rows: Tensor | None, counts: Tensor) -> None:
        assert rows is not None
        places = self.topics.shape[1]
        values, topics = counts.topk(min(places, self.n_topics), dim=1, sorted=False)
        n_others = self.n_topics - values.shape[1]
        rest = (counts.sum(1, keepdim=True) - values.sum(1, keepdim=True)).clamp_min_(0)
        unused = (0, places - values.shape[1])
        stored = torch.cat([pad(values, unused), rest / max(1, n_others)], dim=1)  # (B, n + 1)
        self.values[rows] = stored.clamp_max_(_MAX_FLOAT16).half()
        self.topics[rows] = pad(topics.to(self.topics.dtype), unused)

    def select(self, which: Tensor) -> LargestCounts:
        """Return the counts of some topics (m,), in that order. They take over the memory of these counts."""
        place = torch.full((self.n_topics,), -1, dtype=self.topics.dtype, device=which.device)
        place[which] = torch.arange(len(which), dtype=place.dtype, device=which.device)
        new = LargestCounts(self.topics, self.values, len(which))
        for start in range(0, len(self), _DOCUMENTS_AT_ONCE):
            part = slice(start, start + _DOCUMENTS_AT_ONCE)
            topics, values = place[self.topics[part].int()], self.values[part]
            values[:, :-1] = values[:, :-1].where(topics >= 0, values[:, -1:])  # the count of a topic that is not kept
            self.topics[part] = topics.clamp_min_(0)
        return new


DocumentCounts: TypeAlias = Tensor | LargestCounts  # (D, K) N_dk


def zero_counts(n_docs: int, n_topics: int, device: torch.device) -> DocumentCounts:
    """Return counts (D, K) that are all 0, as a tensor if it is not too large, and as `LargestCounts` otherwise."""
    if n_docs * n_topics > MAX_DENSE_COUNTS:
        return LargestCounts.zeros(n_docs, n_topics, device)
    return torch.zeros(n_docs, n_topics, device=device)


def select(counts: DocumentCounts, which: Tensor) -> DocumentCounts:
    """Return the counts of some topics (m,), (D, K) -> (D, m)."""
    return counts.select(which) if isinstance(counts, LargestCounts) else counts[:, which]


def tensors_of(counts: DocumentCounts | None) -> dict[str, Tensor]:
    """Return tensors by name, from which `from_tensors` makes the same counts."""
    if isinstance(counts, LargestCounts):
        return {"document_topics": counts.topics, "document_counts": counts.values}
    return {} if counts is None else {"document_topics": counts}


def from_tensors(tensors: Mapping[str, Tensor], n_topics: int) -> DocumentCounts | None:
    """Return the counts whose tensors `tensors_of` returned, None if there are none."""
    if "document_counts" in tensors:
        return LargestCounts(tensors["document_topics"], tensors["document_counts"], n_topics)
    return tensors.get("document_topics")


# Pruning of spare topics. Other models than Loom remove theirs as `SpareTopics` does.

# (topics (n, V), word counts (V,), how many to keep, protected topics (n,)) -> topics to keep, ascending
Selector = Callable[[Tensor, Tensor, int, Tensor], Tensor]

_N_STEPS = 3  # the spare topics are removed in this many steps, with passes in between for the kept ones to adapt
_PRUNING_SHARE = 1 / 3  # the share of the passes after which all spare topics have been removed
_SHARED_PENALTY = 0.5  # subtracted from the NPMI of a topic if all its top words are also those of other topics
_OVERLAP_PENALTY = 0.5  # subtracted if a topic equals another; in a small vocabulary, top words tell little


class Pruning:
    """The choice of the topics that are kept of the initial K', and the passes after which others are removed.

    Args:
        n_topics: K, the number of topics in the end.
        n_spare: K' - K, the number of spare topics.

    Attributes:
        kept: (n,) indices of the kept topics among the initial K'; None as long as none has been removed.
    """

    def __init__(self, n_topics: int, n_spare: int) -> None:
        self.n_topics, self.n_spare = n_topics, n_spare
        self.kept: Tensor | None = None

    def select(self, tensor: Tensor) -> Tensor:
        """Return the columns of the kept topics: (..., K') -> (..., n)."""
        return tensor if self.kept is None else tensor[..., self.kept]

    def n_kept(self, passes_done: int, n_passes: int) -> int:
        """Return how many topics there should be after `passes_done` of the passes."""
        n_removals = int(_N_STEPS * passes_done / max(1.0, _PRUNING_SHARE * n_passes))
        return self.n_topics + round(self.n_spare * max(0.0, 1 - n_removals / _N_STEPS))

    def most_used(self, usage: Tensor, protected: Tensor) -> Tensor:
        """Return K topics, ascending: the protected ones, and those with the highest usage.

        Args:
            usage: (n,) the share of the documents that each kept topic has.
            protected: (n,) bool.
        """
        priority = usage + protected * usage.sum()
        return priority.argsort(descending=True)[: self.n_topics].sort()[0]

    def keep(self, which: Tensor, seeded: Tensor) -> Tensor:
        """Remove all topics but these.

        Args:
            which: (m,) indices among the topics kept so far, ascending.
            seeded: (n,) bool, the topics kept so far that must have their initial index at the end.

        Returns:
            (m,) `which`; if only K topics are left, in their final order.
        """
        which = which.to(seeded.device)
        before = torch.arange(len(seeded), device=seeded.device) if self.kept is None else self.kept
        if len(which) == self.n_topics:
            which = in_place(which, seeded, before)
        self.kept = before[which]
        return which


class CoherenceSelector:
    """`choose_topics` with co-occurrences in the documents of a reader, which are counted once."""

    def __init__(self, reader: BatchReader) -> None:
        self.reference = reference_of(reader)

    def __call__(self, topic_word: Tensor, word_counts: Tensor, n_topics: int, protected: Tensor) -> Tensor:
        topics, counts, stay = (tensor.cpu().numpy() for tensor in (topic_word, word_counts, protected))
        chosen = torch.from_numpy(choose_topics(topics, counts, self.reference, n_topics, stay))
        return current().of_first(chosen)


def choose_topics(
    topic_word: Array, word_counts: Array, reference: Reference, n_topics: int, protected: Array
) -> Array:
    """Select the topics to keep when a model has more than it needs.

    Topics are removed one at a time, each time the one with the lowest score. The score of a topic is the NPMI of its
    10 top words, minus half the share of its 25 top words that are also top words of another kept topic (both are means
    over two rankings of its words), minus half its overlap with the most similar kept topic (1 minus their total
    variation distance). One of two equal topics is therefore removed. A topic that resembles no other is likely to be
    kept, even if its words are less coherent.

    Args:
        topic_word: (K', V) topics, rows sum to 1.
        word_counts: (V,) tokens of each word.
        reference: the documents in which co-occurrences are counted.
        n_topics: how many topics to keep.
        protected: (K',) bool, topics that are kept whatever their score; at most `n_topics`.

    Returns:
        (n_topics,) indices of the kept topics, ascending.
    """
    tops = ranked_words(topic_word, word_counts)
    coherence = mean_coherence(tops, reference)  # (K',)
    kept = np.ones(len(topic_word), bool)
    overlap = overlaps(topic_word)
    for _ in range(len(topic_word) - n_topics):
        users = [np.bincount(top[kept].ravel(), minlength=len(word_counts)) for top in tops]  # (V,) each
        shared = np.mean([(count[top] > 1).mean(1) for count, top in zip(users, tops, strict=True)], axis=0)
        score = coherence - _SHARED_PENALTY * shared - _OVERLAP_PENALTY * overlap[:, kept].max(1)
        score[~kept | protected] = np.inf
        kept[score.argmin()] = False
    return np.flatnonzero(kept)


# Division of background topics
#
# A background topic collects words that are common everywhere. Nearly every document has a share of it, which tells
# nothing about the document and makes all other shares smaller. At the end of training, the share that all documents
# have in common is divided among all topics, so that each topic has some of the common words.

N_SAMPLED = 1 << 11  # documents in which the common share is estimated
_QUANTILES = (0.05, 0.1, 0.25, 0.5)  # these quantiles of a background topic's shares are tried as common share
_MIN_SHARE = 0.03  # a smaller common share is not divided
_MIN_FACTOR = 1e-3  # the least factor for the encoder's share of a background topic


def in_random_halves(counts: SparseCounts) -> tuple[SparseCounts, SparseCounts]:
    """Return documents with one half of their words, and the same documents with the other half.

    The halves are random, because words are often in the order of their frequency. If words took turns, the most common
    ones would be in the same half of all documents.
    """
    draws = torch.rand(len(counts.values), generator=torch.Generator().manual_seed(0))  # (N,)
    return counts.divided((draws < 0.5).to(counts.device))


class BackgroundDivision:
    """Divides the share of background topics that all documents have in common among all topics.

    The common share is estimated from a sample of D training documents. Half of their words predict the other half.

    Args:
        counting: the counts of a network whose last pass has ended.
        given: the words from which the others are predicted.
        scored: the other words.
        theta: (D, K) the topics of whole documents.
        encoded: (D, K) the encoder's theta of the given words.
        refine: the number of steps that refine the encoder's theta.
    """

    def __init__(
        self,
        counting: CollapsedCounts,
        given: SparseCounts,
        scored: SparseCounts,
        *,
        theta: Tensor,
        encoded: Tensor,
        refine: int,
    ) -> None:
        self.counting, self.given, self.scored = counting, given, scored
        self.theta, self.encoded, self.refine = theta, encoded, refine

    def divide(self) -> Tensor | None:
        """Divide the common share in `counting`, if that predicts words better.

        Returns:
            (K,) the factors by which the encoder's mean shares change, or None if nothing has changed.
        """
        share = current().of_first(self._common_share())
        if not share.any():
            return None
        counting, sampling = self.counting, self.counting.sampling
        beta_t, alpha = self._divided(share)
        weights = beta_t * self._sizes(share)  # (V, K)
        totals = counting.word_topics.sum(1, keepdim=True)
        # In place, because training could not change the new tensors of inference mode later.
        counting.word_topics.copy_(weights * (totals / weights.sum(1, keepdim=True).clamp_min(SMALLEST)))
        if sampling is not None and sampling.mean_counts is not None:
            sampling.mean_counts.copy_(counting.word_topics)
        counting.beta_t.copy_(beta_t)
        counting.alpha.copy_(alpha)
        return self._factor(share)

    def _common_share(self) -> Tensor:
        """Return the share that documents have in common of each topic, (K,); 0 for all but background topics.

        The common share is a quantile of the documents' shares. Higher quantiles are tried as long as the prediction of
        words improves by more than one standard error.
        """
        background = self.counting.background  # (K,)
        best = torch.zeros_like(self.theta[0])  # (K,)
        highest = self._log_likelihood(best)  # (D,)
        for quantile in _QUANTILES:
            share = torch.zeros_like(best)
            share[background] = self.theta[:, background].quantile(quantile, dim=0)
            share[share < _MIN_SHARE] = 0
            if not share.any():
                continue
            found = self._log_likelihood(share)
            if (found - highest).sum() <= (found - highest).square().sum().sqrt():
                break
            best, highest = share, found
        return best

    def _log_likelihood(self, share: Tensor) -> Tensor:
        """Return the log likelihood of the scored words, predicted with the topics after division, (D,)."""
        beta_t, alpha = self._divided(share)
        start = self.encoded * self._factor(share)
        start = start / start.sum(1, keepdim=True)  # (D, K)
        posterior = self.counting.infer_with(beta_t, alpha, self.given, start, self.refine)
        return mixture_log_likelihood(posterior.point(), beta_t, self.scored)

    def _divided(self, share: Tensor) -> tuple[Tensor, Tensor]:
        """Return topics (V, K) that each have the words of the common share, and alpha (K,) without this share.

        With f_k for the share and f for its sum, theta_k = f_k + (1 - f) theta'_k, so that the topics
        (1 - f) beta_k + sum_l f_l beta_l with the shares theta' give words the same probabilities.
        """
        beta_t, alpha = self.counting.topics(), self.counting.alpha
        divided = (1 - share.sum()) * beta_t + (beta_t @ share)[:, None]
        return divided, (alpha - alpha.sum() * share).clamp_min(MIN_ALPHA)

    def _factor(self, share: Tensor) -> Tensor:
        """Return the factors by which division changes the encoder's mean shares, (K,)."""
        mean = self.encoded.mean(0)
        return (1 - share / mean.clamp_min(TINY)).clamp_min(_MIN_FACTOR)

    def _sizes(self, share: Tensor) -> Tensor:
        """Return the share of each topic in all tokens after division, (K,)."""
        left = (self.theta.mean(0) - share).clamp_min(TINY)
        return left / left.sum()
