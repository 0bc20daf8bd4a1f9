"""Loom, this project's own model: variational pretraining of a topic model, then collapsed counting and sampling.

Loom is latent Dirichlet allocation (Blei, Ng & Jordan 2003), trained in three stages of one run:

- Pretraining: an encoder and free topics start at clusters of documents, and maximise the evidence lower bound by
  gradient descent, as in GSM with a Laplace prior. The weight of the divergence rises in the first quarter of the
  epochs of this stage and the next one (kl_warmup); by default this stage ends halfway. A few epochs find words that
  occur together in documents; a Gibbs sampler with a random start needs hundreds of passes for this.
- Counting: CVB0 reassigns tokens to topics (Asuncion et al. 2009). The counts of each document are kept, and drawn
  again in every pass. The topics have no gradients; the encoder learns to predict the counts.
- Sampling: the topic of each token is drawn as by a collapsed Gibbs sampler (Griffiths & Steyvers 2004), with the
  counts of words of the last pass (Newman et al. 2009). The topics are means over the later half of these passes.

If the corpus is large, pretraining, counting and the first passes of sampling read a subset of its documents.

Training starts with more topics than requested. Early in the counting stage, topics are removed whose words do not
occur together, or which resemble other topics. docs/models/loom.md has the mathematics.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from numbers import Integral
from typing import Annotated, Any, ClassVar, Literal, Self

import torch
from pydantic import Field
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch.nn.functional import pad

from ...distributed import current, step
from ...errors import SettingError
from ...nn.mean_field import MeanFieldNetwork
from ...nn.network import EpochOptions, Loss, Player, TopicNetwork
from ...nn.posteriors import DirichletPosterior, SampledPosterior
from ...nn.sparse import TINY, Batch, mixture_log_likelihood
from ...settings import AtLeastOne, DirichletParameter, NotNegative, Positive, Rate, Share
from ...training.batches import BatchReader
from ...training.loop import EVALUATION_SEED, train_stages
from ...training.state import Snapshot, Stage, TrainingPlan, TrainingState
from ..autoencoders import VariationalTopicModel, in_large_batches
from ..base import theta_of
from ..gsm import GSM, GSMNetwork
from ..inference import Array
from ..neural import LARGEST_BATCH
from ..starting import MAX_SPARE, select_topics
from ..words import Words, with_fields
from .collapsed import (
    MAX_DENSE_COUNTS,
    N_SAMPLED,
    BackgroundDivision,
    CoherenceSelector,
    CollapsedCounts,
    in_random_halves,
)
from .relocation import Relocation
from .sampling import SampledDocuments, SamplingStage

logger = logging.getLogger("topicloom")

_PRETRAINING_STEPS_OF_STREAM = 500  # steps of pretraining before a stream enters the counting stage
_SEED_COUNT = 50.0  # tokens that a seed word has in its topic from the start
_SEPARATION_STEP = 1.5  # half the step of other models; Loom's other settings were chosen with this value
_USAGE_RATE = 0.02  # the rate of the running mean of the topics' shares
# If documents have fewer tokens than this on average, pretraining has a higher learning rate, up to this factor.
_LONG_DOCUMENT, _MAX_RATE_FACTOR = 125, 2.5
# A corpus of more tokens has less noisy counts. It needs a smaller share of the sampling passes, down to this share.
_SMALL_CORPUS, _MIN_SAMPLING = 100_000, 1 / 3
# Documents with words of their neighbours have more tokens. Sampling then has fewer passes, down to this share.
_MIN_SAMPLING_OF_LENT = 0.15
# The topics of a corpus of at least twice as many documents are found in a subset of this many, and at least this many
# for each topic, as long as their counts of topics are a dense array.
_SUBSET, _SUBSET_OF_TOPIC = 1 << 16, 1000
# Sampling passes over the subset, relative to those over all documents. All relocations of topics are among the former.
_SUBSET_SAMPLING = 3 / 4
_MIN_SAMPLING_AFTER_SUBSET = 16  # a fit with fewer passes over all documents reads all of them from the start
# Documents in a batch of the counting and sampling stages where a batch trains the encoder.
_COUNTING_BATCH = 2048
# Upper bounds of other batches of these stages: documents, tokens, and counts of topics in documents (B K). Counts do
# not depend on the size of a batch, and large batches are faster.
_SAMPLING_BATCH, _SAMPLING_BATCH_TOKENS, _SAMPLING_BATCH_COUNTS = 1 << 14, 1 << 19, 1 << 22
# After pretraining, every twentieth batch of a pass trains the encoder. With more batches, it would overfit titles. In
# the sampling stage, only every 32nd pass does. In the counting stage, all passes do, and every fourth begins with such
# a batch, which small corpora need.
_ENCODER_INTERVAL = 20
_ENCODER_COUNTING_PASSES, _ENCODER_SAMPLING_PASSES = 4, 32
# An encoder that reads vectors learns the final theta in a few epochs, fewer if there are many documents. This is the
# rate if all words are lent (see `LoomNetwork._teach_encoder`).
_TEACHING_EPOCHS, _TEACHING_DOCUMENTS, _TEACHING_RATE = 3, 1 << 20, 1e-2
# Documents in a batch of these epochs. Batches of 256 take a third longer, and theta is no better.
_TEACHING_BATCH = 512
_LEAST_SHARE = 1e-6  # of which a logarithm is taken
_WATCH_INTERVAL = 32  # passes between two measurements of collapse, once all spare topics are removed


class LoomNetwork(GSMNetwork):
    """A network of GSM whose topics are replaced by counts after pretraining.

    In the pretraining stage, the network is GSM with K' topics, z ~ N(mu(x), diag sigma^2(x)). In the counting and
    sampling stages, the posterior is theta ~ Dirichlet(alpha_d + N_d), with the topics and alpha of `counting`.

    Args:
        settings: the estimator.
        words: the vocabulary.
        n_spare: K' - K, the number of spare topics, which are removed during training.
        generator: draws the initial weights.
    """

    has_compiled_loss = True  # of the pretraining stage
    steps: Tensor  # () steps of pretraining
    usage: Tensor  # (K',) a running mean of each topic's share of the documents during pretraining

    def __init__(self, settings: Loom, words: Words, n_spare: int, generator: torch.Generator) -> None:
        n_topics, seeds = settings.n_topics, words.seeds
        wide = None if seeds is None else pad(seeds, (0, n_spare))  # (V, K')
        # Topics are counted from own words at the end, so the target of diversity need not rise.
        given = replace(words, seeds=wide, n_lent=0.0)
        super().__init__(settings._gsm(n_topics + n_spare), given, generator, scaled=False)
        self.separation.step = _SEPARATION_STEP
        self.counting = CollapsedCounts(
            len(words),
            n_topics,
            eta=settings.eta,
            count_power=settings.count_power,
            sharpness=settings.sharpness,
            n_background=round(settings.background_topics * n_topics),
            n_spare=n_spare,
            seed_counts=None if seeds is None else (seeds > 0) * _SEED_COUNT,
        )
        self.refine = settings.refine
        self.lent_share = words.n_lent / max(words.n_tokens, 1.0)  # of lent tokens among all
        self.mean_length, self.n_docs = words.mean_length, words.n_docs
        self.pretrain_epochs, self.count_epochs, self.subset_epochs, self.sample_epochs = settings.stage_epochs(words)
        self.n_subset = settings._subset_size(words) if self.subset_epochs else None
        self.is_taught = False  # whether the encoder alone is being trained, with given theta
        self.finished_after: int | None = None  # the passes after which training was last finished
        self.register_buffer("steps", torch.tensor(0))
        self.register_buffer("usage", torch.full((n_topics + n_spare,), 1 / (n_topics + n_spare)))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self.counting.started = self.counting.started.cpu()  # so that reading it in each step does not wait for a GPU
        return self

    def posterior(self, batch: Batch) -> SampledPosterior:
        return self.refined_posterior(batch, self.refine)

    def refined_posterior(self, batch: Batch, steps: int) -> SampledPosterior:
        """Return q(theta | x) after `steps` steps of refinement. The pretraining stage has no refinement."""
        code = self.code(batch)
        if not self.counting.started:
            return code
        # In training, documents have words of their neighbours. For other documents, the encoder replaces such words.
        predicted = self.encoder.n_tokens(batch) - batch.counts.totals  # (B,)
        return self.counting.infer(batch, code.point(), steps, predicted)

    def to_theta(self, z: Tensor) -> Tensor:
        return torch.softmax(self.logits(z), dim=1)

    def logits(self, z: Tensor) -> Tensor:
        """Return z + b of the topics that are left, (B, K') -> (B, n)."""
        return self.counting.pruning.select(z + self.shares.logits)

    def beta_t(self) -> Tensor:
        """Return the topics (V, K), columns sum to 1."""
        return self.counting.topics() if self.counting.started else self.decoder.beta_t()

    def topic_word(self) -> Tensor:
        return self.beta_t().mT

    def log_likelihood(self, theta: Tensor, batch: Batch) -> Tensor:
        return mixture_log_likelihood(theta, self.beta_t(), batch.counts)

    def word_probabilities(self, theta: Tensor) -> Tensor:
        return theta @ self.topic_word()

    def prior_theta(self) -> Tensor:
        alpha = self.counting.alpha
        return alpha / alpha.sum() if self.counting.started else super().prior_theta()

    @property
    def bounds_tokens(self) -> bool:
        return bool(self.counting.started) or super().bounds_tokens

    def bound(self, batch: Batch, generator: torch.Generator) -> Tensor:
        if not self.counting.started:
            return super().bound(batch, generator)
        # The posterior with the best predictions does not have the highest bound, above all for titles.
        mean_field = MeanFieldNetwork.of(self.beta_t(), self.counting.alpha)
        return mean_field.bound(batch, generator)

    def epoch_options(self) -> EpochOptions:
        counting = self.counting
        if not counting.started or self.is_taught:
            n_docs = None if self.is_taught else self._n_read
            return replace(super().epoch_options(), may_end=False, n_docs=n_docs)
        sampling = counting.sampling
        is_averaged = sampling is None or sampling.mean_counts is not None  # only then does each pass lower the loss
        return EpochOptions(
            min_batch_size=self._min_batch_size,
            divergence_weight=1.0,  # the loss of the later stages is a bound
            watch_every=_WATCH_INTERVAL if self._changes_slowly else 1,
            may_end=not counting.has_spare and is_averaged,
            uses_helpers=True,
            changing=counting if self._keeps_encoder else None,
            n_docs=self._n_read,
            is_shuffled=not self._keeps_encoder or counting.needs_encoder,
        )

    @property
    def _n_read(self) -> int | None:
        """The number of documents that this pass reads, None for all."""
        counting = self.counting
        if counting.is_stream or ((sampling := counting.current_sampling) and not sampling.reads_subset):
            return None
        return self.n_subset

    @property
    def _min_batch_size(self) -> int:
        """The least number of documents in a batch of the counting or sampling stage."""
        if self.counting.is_stream:
            return 1
        is_counting, n_read = self.counting.current_sampling is None, self._n_read or self.n_docs
        if self._begins_with_encoder or (is_counting and n_read > _ENCODER_INTERVAL * _COUNTING_BATCH):
            return _COUNTING_BATCH
        by_tokens = _SAMPLING_BATCH_TOKENS / self.mean_length
        by_counts = _SAMPLING_BATCH_COUNTS / len(self.counting.alpha)
        return max(_COUNTING_BATCH, int(min(by_tokens, by_counts, _SAMPLING_BATCH)))

    @property
    def _keeps_encoder(self) -> bool:
        """Whether this pass does not train the encoder."""
        if self.counting.is_stream or self._begins_with_encoder:
            return False
        is_sampling = self.counting.current_sampling is not None
        return is_sampling or (self._n_read or self.n_docs) <= _ENCODER_INTERVAL * self._min_batch_size

    @property
    def _changes_slowly(self) -> bool:
        """Whether passes change so little that the collapse watch need not measure each of them."""
        counting = self.counting
        first, last = (counting.pruning.n_kept(counting.passes_done - ago, counting.n_passes) for ago in (1, 0))
        return counting.passes_done > 1 and first == last and not counting.is_stream  # no topic has been removed

    def players(self) -> list[Player]:
        return [replace(player, loss=self.training_loss) for player in super().players()]

    def loss(self, batch: Batch) -> Loss:
        if not self.counting.started:
            return super().loss(batch)
        posterior = self.posterior(batch)
        assert isinstance(posterior, DirichletPosterior)
        return self.counting.loss(posterior, batch)

    def training_loss(self, batch: Batch) -> Loss | None:
        """Return the loss whose gradient is taken, and count the batch in the counting stage.

        In the later stages, this loss is the divergence of the encoder's theta from the theta of the counts. It is None
        for batches that do not train the encoder. If the counts of a batch are not finite, it is not None, so that
        training stops.
        """
        if not self.counting.started:
            return self.loss(batch)
        trains = self._trains_encoder
        code = self.code(batch) if trains or self.counting.needs_encoder else None
        with torch.no_grad():
            theta = None if code is None else code.point()
            posterior = self.counting.count(batch, theta, self.generator, is_kept=trains)
            if not trains:
                if current().size > 1 or self.counting.is_finite:
                    return None  # several processes exchange messages only where the encoder is trained
                self.eval()  # training stops, and the encoder's running statistics stay
            if posterior is None:
                alpha = self.counting.alpha
                posterior = DirichletPosterior(alpha.new_full((batch.n_docs, len(alpha)), math.nan), alpha)
            loss, theta = self.counting.loss(posterior, batch), posterior.point()
        encoded = torch.log_softmax(self.logits((code or self.code(batch)).mean), dim=1)
        divergence = (theta * (theta.log() - encoded)).sum(1)  # (B,) KL(theta || encoder's theta)
        return Loss(loss.reconstruction, loss.divergence, {"encoder_divergence": divergence})

    @property
    def _trains_encoder(self) -> bool:
        """Whether the encoder is trained at this batch of the counting or sampling stage."""
        n_done = self.counting.batches_done
        if not n_done:
            return self._begins_with_encoder
        return n_done % _ENCODER_INTERVAL == 0 and not self._keeps_encoder

    @property
    def _begins_with_encoder(self) -> bool:
        """Whether the encoder is trained at the first batch of this pass."""
        counting = self.counting
        if counting.is_stream:
            return True
        if sampling := counting.current_sampling:
            return (sampling.n_passes - sampling.passes_done) % _ENCODER_SAMPLING_PASSES == 1
        return (counting.n_passes - counting.passes_done) % _ENCODER_COUNTING_PASSES == 1

    def regularisation(self, theta: Tensor, batch: Batch) -> dict[str, Tensor]:
        if self.training:
            self.steps += 1
            self.usage.lerp_(step().mean(theta.detach()), _USAGE_RATE)
            if self.counting.is_stream:
                self.counting.tokens.index_add_(0, batch.counts.indices, batch.counts.values)
        return super().regularisation(theta, batch)

    def end_pass(self) -> None:
        """Finish a pass, before the network is measured."""
        if self.counting.started:
            n_batches = self.counting.batches_done
            self.counting.end_pass()
            if self._begins_with_encoder or n_batches > _ENCODER_INTERVAL:
                self.counting.topics()  # computed once, because the next pass may read them several times

    def adapt(self, row: Mapping[str, Any]) -> dict[str, Any]:
        alpha, pruning = self.counting.alpha, self.counting.pruning
        n_left = len(alpha) if self.counting.started else pruning.n_topics + pruning.n_spare
        left = {"n_topics": n_left} if pruning.n_spare else {}
        if self.counting.started:
            return left | {"concentration": float(alpha.sum())}
        changes = left | super().adapt(row)
        if self.counting.is_stream:
            is_pretrained = bool(self.steps >= _PRETRAINING_STEPS_OF_STREAM)
        else:
            is_pretrained = row["epoch"] >= self.pretrain_epochs and self.count_epochs > 0
        if is_pretrained:
            shared = current().shared(self.generator)
            self.counting.start(self.decoder.beta_t().detach().clone(), self.usage, shared)
        return changes

    def end_training(self, documents: Iterable[Batch]) -> None:
        """Divide the background topics. With vectors, also teach the encoder, and count own words alone."""
        self._divide_background(documents)
        counting = self.counting
        passes = counting.passes_done + (0 if counting.sampling is None else counting.sampling.passes_done)
        if not counting.started or counting.is_stream or self.finished_after == passes:
            return
        assert isinstance(documents, BatchReader)
        if documents.own is not None:  # there are words of neighbours
            if self.encoder.of_vectors is not None:
                self._teach_encoder(documents)
            self._count_own_words(documents)
        self.finished_after = passes

    def _divide_background(self, documents: Iterable[Batch]) -> None:
        """Divide the common share of the background topics among all topics, unless that was done already."""
        counting = self.counting
        if not counting.started or counting.is_stream or counting.has_spare or not counting.background.any():
            return
        if counting.divided_alpha is not None and counting.divided_alpha.equal(counting.alpha):
            return
        assert isinstance(documents, BatchReader)
        factors = self.background_division(documents.sample_of_all(N_SAMPLED)).divide()
        if factors is not None:
            kept = counting.pruning.kept
            self.shares.logits[slice(None) if kept is None else kept] += factors.log()
        counting.divided_alpha = counting.alpha.clone()

    def background_division(self, documents: Batch) -> BackgroundDivision:
        """Return the division of background topics, given a sample of the training documents."""
        given, scored = in_random_halves(documents.counts)
        theta = self.posterior(documents).point()
        encoded = self.code(replace(documents, counts=given, own=None)).point()
        return BackgroundDivision(self.counting, given, scored, theta=theta, encoded=encoded, refine=self.refine)

    def _teach_encoder(self, documents: BatchReader) -> None:
        """Train the encoder to predict the final theta of the documents with the words of their neighbours.

        Refinement by a document's own words corrects an encoder that is trained little in the later stages. A vector
        takes the place of the neighbours' words, and only the encoder reads it. The smaller the share of these words,
        the less the encoder has to learn: the final theta of long documents follows their common words, and the encoder
        knows more of their subject before this step than after it.
        """
        own, is_training = self.generator, self.training
        with torch.inference_mode(False):
            theta = torch.empty(documents.counts.shape[0], len(self.counting.alpha), dtype=torch.float16)  # (D, K)
            with torch.no_grad():
                for batch in in_large_batches(documents, _COUNTING_BATCH):
                    assert batch.rows is not None
                    theta[batch.rows.cpu()] = self.posterior(batch).point().half().cpu()
            epochs = max(1, min(_TEACHING_EPOCHS, _TEACHING_DOCUMENTS // documents.n_docs_of_all))
            plan = TrainingPlan(epochs, _TEACHING_RATE * self.lent_share**2)
            state = TrainingState.start(self, plan, EVALUATION_SEED, documents.device)
            self.is_taught = True
            with torch.enable_grad():
                large = documents.with_batches_of(_TEACHING_BATCH * current().size)
                train_stages(state, large, [Stage("encoder", plan, recorded=False, loss=_encoder_loss(theta))])
        self.is_taught, self.generator = False, own
        self.train(is_training)

    def _count_own_words(self, documents: BatchReader) -> None:
        """Take the words of neighbours out of the counts of the topics.

        Such words helped to find theta. A topic consists of the words that documents really have. Each sampled count
        keeps the part that comes from own words, with theta as `transform` infers it from them.
        """
        counting = self.counting
        beta_t = counting.topics()  # (V, K)
        expected = torch.zeros(2, *beta_t.shape, device=beta_t.device)  # (2, V, K) of own words, and of all
        for batch in in_large_batches(documents, _COUNTING_BATCH):
            for each, total in zip((replace(batch, counts=batch.own_counts, own=None), batch), expected, strict=True):
                counts, theta = each.counts, self.posterior(each).point()  # (B, V) and (B, K)
                values = counts.values**counting.count_power  # (N,)
                likely = counts.sampled_product(theta, beta_t) + TINY  # (N,)
                total += counts.transposed_times(values / likely, theta) * beta_t
        current().sum_in_place([expected])
        own, total = expected
        counting.replace_counts(counting.word_topics * (own / (total + TINY)).clamp(max=1.0))

    def run_state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        tensors, values = self.counting.run_state()
        return tensors, values | ({} if self.finished_after is None else {"finished_after": self.finished_after})

    def load_run_state(self, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
        self.counting.load_run_state(tensors, values)
        self.finished_after = values.get("finished_after")


def _encoder_loss(theta: Tensor) -> Callable[[TopicNetwork, Batch], Loss]:
    """Return a loss: the divergence of the encoder's theta from given ones, (D, K)."""

    def loss(network: TopicNetwork, batch: Batch) -> Loss:
        assert isinstance(network, LoomNetwork)
        assert batch.rows is not None
        wanted = theta[batch.rows.cpu()].to(batch.device, torch.float32).clamp_min(_LEAST_SHARE)  # (B, K)
        encoded = torch.log_softmax(network.logits(network.code(batch).mean), dim=1)
        divergence = (wanted * (wanted.log() - encoded)).sum(1)  # (B,)
        return Loss(divergence, torch.zeros_like(divergence))

    return loss


@dataclass(eq=False, repr=False, kw_only=True)
class Loom(VariationalTopicModel):
    """Loom, this project's own topic model: an autoencoder, then a counting algorithm, then a Gibbs sampler.

    Training has these three stages, of which the first two are short. An encoder is trained in all of them, and infers
    the topics of new documents. docs/models/loom.md describes the model.

    `help(topicloom.VariationalTopicModel)` describes the settings that the variational models share.

    Main args:
        epochs: the maximum number of passes over the documents in all three stages, by default 4 of pretraining, 28 of
            counting and 254 of sampling. Most corpora need fewer (see `sample_share`).
        batch_size: the number of documents in a step of pretraining. None is 256, or fewer on a small corpus, so that
            an epoch has 16 steps.
        learning_rate: the highest learning rate of the optimizer Adam for batches of up to 256 documents. For larger
            batches it grows with the square root of their size. For documents of less than 125 tokens on average it is
            higher, up to 2.5 times at 20 tokens.

    Text args:
        count_power: after pretraining, a word that occurs x times in a document counts x ** count_power times; 1 as in
            LDA. A lower value accounts for burstiness: a word that has occurred in a document is likely to recur.
        target: only "counts", because the stages after pretraining assign tokens to topics.
        background_topics: the share of the topics that start as topics of common words; 0 for none, as in LDA.

    Prior args:
        alpha: the symmetric Dirichlet parameter of theta in pretraining. The later stages learn one for each topic.
        eta: the symmetric Dirichlet parameter of the topics in the counting stage. The sampling stage learns it,
            starting from this value.

    Training args:
        refine: the number of steps that improve the encoder's theta of a new document; 0 for none.
        pretrain_share: the share of the epochs in which gradient descent learns the encoder and the topics.
        sample_share: the share of the epochs, at the end, in which the topic of each token is drawn; 0 for none.
            Corpora of more than 100,000 tokens need fewer of these epochs, down to a third of them at 900,000 tokens,
            and so do documents with words of their neighbours. If the corpus has at least 131,072 documents, some of
            these epochs and all earlier ones read a random subset of them.
            The epochs between pretraining and sampling belong to the counting stage.
        sharpness: the power to which p(topic | word) of top words is raised in the topics; 1 as in LDA.

    Collapse args:
        kl_weight: the highest weight of the divergence from the prior in pretraining, which ends at half of it by
            default (see `kl_warmup`). With a weight of 1, topics of short texts form late, because a code costs more
            nats than such a text gains by it.
        spare_topics: the number of additional topics at the start, as a multiple of n_topics; at most 50. They are
            removed in the counting stage.

    Examples:
        >>> import topicloom as tl
        >>> corpus = tl.datasets.synthetic_lda(n_docs=200, n_topics=3, n_words=50, random_state=0).corpus
        >>> model = tl.Loom(3, epochs=20, random_state=0).fit(corpus)
        >>> model.transform(corpus).shape
        (200, 3)
    """

    expands_new_documents = "as set"  # counting reads words of neighbours
    steps_per_epoch: ClassVar[int] = 16

    target: Literal["counts"] = "counts"
    kl_weight: NotNegative = 0.1
    epochs: AtLeastOne = 286
    pretrain_share: Share = 0.014
    sample_share: Rate = 0.888
    spare_topics: NotNegative = 2.0
    background_topics: Rate = 0.05
    count_power: Annotated[float, Field(gt=0, le=1)] = 0.6
    sharpness: Positive = 1.25
    alpha: DirichletParameter = 0.3
    eta: Annotated[float, Field(ge=1e-6, le=1e30)] = 0.01
    refine: Annotated[int, Field(ge=0)] = 10

    def transform(self, X: Any, refine: int | None = None) -> Array:
        """Return the topic shares of documents.

        Args:
            X: a Corpus, texts, lists of tokens, a data frame with a column "text", or counts (n_docs, V).
            refine: the number of refinement steps, instead of the setting `refine`; 0 returns the encoder's theta,
                smoothed by the prior.

        Returns:
            (n_docs, K) float32, rows sum to 1. A document without a known word gets the average shares.

        Raises:
            InputError: X cannot be used, or `refine` is given and the model has edits.
            SettingError: `refine` is not a whole number from 0.
        """
        check_is_fitted(self, "components_")
        if refine is None:
            return super().transform(X)
        if isinstance(refine, bool) or not isinstance(refine, Integral) or refine < 0:
            raise SettingError(f"refine should be a whole number from 0; it is {refine!r}")
        self.refuse_edits("`refine`")
        assert isinstance(self.network_, LoomNetwork)
        return theta_of(self.infer_with(X, partial(self.network_.refined_posterior, steps=int(refine))))

    def _gsm(self, n_topics: int) -> GSM:
        """Return the model of the pretraining stage."""
        shared = {field.name: getattr(self, field.name) for field in fields(VariationalTopicModel)}
        return GSM(**shared | {"alpha": self.alpha, "n_topics": n_topics, "spare_topics": 0})

    def stage_epochs(self, words: Words) -> tuple[int, int, int, int]:
        """Return the epochs of pretraining, of counting, of sampling in a subset, and of sampling in all documents."""
        pretraining = max(1, min(round(self.pretrain_share * self.epochs), self.epochs - 1))
        most = max(0, min(round(self.sample_share * self.epochs), self.epochs - pretraining - 1))
        own = words.n_tokens - words.n_lent
        of_size = max(_MIN_SAMPLING, (_SMALL_CORPUS / max(own, _SMALL_CORPUS)) ** 0.5)
        of_lent = max(_MIN_SAMPLING_OF_LENT, own / max(words.n_tokens, 1.0))
        counting, sampling, in_subset = self.epochs - pretraining - most, math.ceil(of_size * of_lent * most), 0
        if self._subset_size(words) is not None and sampling >= _MIN_SAMPLING_AFTER_SUBSET:
            sampling = min(sampling, int(most / (1 + _SUBSET_SAMPLING)))
            in_subset = math.ceil(_SUBSET_SAMPLING * sampling)
        return pretraining, counting, in_subset, sampling

    def _subset_size(self, words: Words) -> int | None:
        """Return the number of documents in which topics are found, or None if the corpus is too small for a subset."""
        n_topics = self.n_topics + self._n_spare(len(words))
        size = min(max(_SUBSET, _SUBSET_OF_TOPIC * self.n_topics), MAX_DENSE_COUNTS // n_topics)
        return size if words.n_docs >= 2 * size else None

    def _start(self, snapshot: Snapshot | None = None, *, for_fit: bool) -> TrainingState:
        """Log what the setting `epochs` does not say about the epochs, unless a finished fit is continued."""
        if for_fit and (snapshot is None or snapshot.continued is None):
            self._say_epochs()
        return super()._start(snapshot, for_fit=for_fit)

    def _say_epochs(self) -> None:
        """Log that there will be fewer epochs than the setting allows, and that some of them read a subset."""
        words = self.word_statistics()
        *before, in_all = self.stage_epochs(words)
        if (planned := sum(before) + in_all) < self.epochs:
            tokens = f"the corpus has more than {_SMALL_CORPUS:,} tokens"
            reason = "documents have words of their neighbours" if self.n_lent_tokens_ else tokens
            logger.info("Loom trains for %d of at most %d epochs, because %s", planned, self.epochs, reason)
        if before[-1]:
            size = f"{self._subset_size(words):,}"
            logger.info("the first %d epochs of Loom read a subset of %s documents", sum(before), size)

    def training_plan(self) -> TrainingPlan:
        of_length = math.sqrt(_LONG_DOCUMENT / max(self.word_statistics().mean_length, 1.0))
        factor = self._batch_rate_factor() * min(max(of_length, 1.0), _MAX_RATE_FACTOR)
        return replace(super().training_plan(), rate_factor=factor)

    def stream_plan(self, epochs: int) -> TrainingPlan:
        return replace(super().stream_plan(epochs), rate_factor=self._batch_rate_factor())

    def _batch_rate_factor(self) -> float:
        """Return the factor of the learning rate for batches of more than 256 documents."""
        batch = min(self.batch_size or 0, self.word_statistics().n_docs)
        return math.sqrt(max(1.0, batch / LARGEST_BATCH))

    @property
    def n_history_rows(self) -> int:
        return sum(self.stage_epochs(self.word_statistics()))

    @property
    def warmup_share(self) -> float:
        return 0.25

    @property
    def cycle_end(self) -> int:
        return sum(self.stage_epochs(self.word_statistics())[:2])

    def training_stages(self) -> list[Stage]:
        *first, last = super().training_stages()
        return [*first, replace(last, after_epoch=_end_pass)]

    def build_network(self, words: Words, generator: torch.Generator) -> LoomNetwork:
        return LoomNetwork(self, words, 0, generator)

    def build_training_network(self, words: Words, generator: torch.Generator) -> LoomNetwork:
        return LoomNetwork(self, words, self._n_spare(len(words)), generator)

    def _n_spare(self, n_words: int) -> int:
        return max(0, min(round(self.spare_topics * self.n_topics), MAX_SPARE, n_words - self.n_topics))

    def build_spare_topics(self, reader: BatchReader) -> None:
        """Return None, because the counting stage removes the spare topics."""

    def prepare_training(self, network: TopicNetwork, reader: BatchReader) -> None:
        assert isinstance(network, LoomNetwork)
        subset = reader.subset(network.n_subset)
        selector = CoherenceSelector(reader) if self.spare_topics else None
        sampling = relocation = None
        if network.sample_epochs:
            documents = SampledDocuments.of(reader)
            sampling = SamplingStage(
                network.subset_epochs + network.sample_epochs,
                documents,
                count_power=self.count_power,
                subset=None if subset is reader else SampledDocuments.of(subset),
                n_subset_passes=network.subset_epochs,
            )
            relocation = Relocation(subset)
        tokens, n_docs = torch.from_numpy(self.word_counts_), subset.counts.shape[0]
        network.counting.keep_documents(n_docs, tokens, network.count_epochs, selector, sampling, relocation)

    def finish_training(self, state: TrainingState) -> None:
        network = state.network
        assert isinstance(network, LoomNetwork)
        network.counting.finish(network.usage)
        if (kept := network.counting.pruning.kept) is not None:  # replace the network by one with K topics
            words = self.word_statistics()
            narrow = with_fields(self.build_network(words, torch.Generator()), words)
            start = TrainingState.start(narrow, self.training_plan(), 0, state.device)
            start.network.load_state_dict(select_topics(network.state_dict(), start.network.state_dict(), kept))
            start.network.generator = network.generator
            state.network, state.optimizers = start.network.eval(), start.optimizers
        super().finish_training(state)


def _end_pass(state: TrainingState) -> None:
    assert isinstance(state.network, LoomNetwork)
    state.network.end_pass()
