"""EditedNetwork: a trained network whose topics were merged, dropped, split or added. It is for inference alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import torch
from torch import Tensor, nn

from .execution import full_precision
from .mean_field import MeanFieldNetwork
from .network import Loss, TopicNetwork
from .posteriors import Posterior
from .sparse import TINY, Batch, SparseCounts, mixture_log_likelihood

# A document whose remaining topics have a smaller total share after a drop gets the average shares. Such a small share
# is mostly noise, and normalising would amplify it.
LEAST_KEPT_SHARE = 0.01
EM_STEPS = 30  # for the shares of added topics in a document
VECTOR_TOKENS = 20.0  # of the prior of added topics in a document with a vector


class Regroup(nn.Module):
    """Topics that are merged, dropped or kept.

    Args:
        assign: (K,) int64, the new number of each topic, from 0 to K' - 1, or -1 if it is dropped.
        shares: (K,) the shares by which the words of merged topics are averaged.
    """

    kind: ClassVar[str] = "regroup"  # the name in saved models
    assign: Tensor  # (K,)
    shares: Tensor  # (K,)

    def __init__(self, assign: Tensor, shares: Tensor) -> None:
        super().__init__()
        self.register_buffer("assign", assign)
        self.register_buffer("shares", shares)

    @property
    def n_topics(self) -> int:
        """The number of topics K' afterwards."""
        return int(self.assign.max()) + 1

    def words(self, topics: Tensor) -> Tensor:
        """Return the topics (K', V), given the old ones (K, V). Merged topics are averaged by their shares."""
        weights = self.shares.clamp_min(0) + 1e-12  # topics that all have no share get equal weights
        sums = self._sum((weights[:, None] * topics).mT)  # (V, K')
        return (sums / sums.sum(0)).mT

    def average(self, shares: Tensor) -> Tensor:
        """Return the average shares (K',), given the old ones (K,)."""
        sums = self._sum(shares[None])[0]
        total = sums.sum()
        return sums / total if float(total) > 0 else torch.full_like(sums, 1 / len(sums))

    def theta(self, theta: Tensor, average: Tensor) -> Tensor:
        """Return theta (B, K'), given the old one (B, K).

        Args:
            theta: rows sum to 1.
            average: (K',) the shares of documents that have almost only dropped topics.
        """
        sums = self._sum(theta)
        total = sums.sum(1, keepdim=True)
        return torch.where(total >= LEAST_KEPT_SHARE, sums / total.clamp_min(1e-12), average)

    def _sum(self, columns: Tensor) -> Tensor:
        """Return sums of columns, (M, K) -> (M, K')."""
        kept = self.assign >= 0
        sums = columns.new_zeros(len(columns), self.n_topics)
        return sums.index_add_(1, self.assign[kept], columns[:, kept])


class SplitTopic(nn.Module):
    """A topic k that LDA divides into parts, given the tokens of the topic in each document.

    The tokens of topic k in a document are x_v p(k | v, d), where p(k | v, d) is proportional to theta_dk beta_kv. The
    first part takes the place of the topic; the others come after all other topics.

    Args:
        topic: the topic k.
        network: the parts as topics, with the shares of the parts as the Dirichlet parameter.
    """

    kind: ClassVar[str] = "split"  # the name in saved models
    topic: Tensor  # ()

    def __init__(self, topic: int, network: MeanFieldNetwork) -> None:
        super().__init__()
        self.register_buffer("topic", torch.tensor(topic))
        self.network = network

    def words(self, topics: Tensor) -> Tensor:
        """Return the topics (K', V), given the old ones (K, V)."""
        return self._with_parts(topics.mT, self.network.beta_t).mT

    def average(self, shares: Tensor) -> Tensor:
        """Return the average shares (K',), given the old ones (K,)."""
        return self._with_parts(shares[None], shares[self.topic] * self.network.prior_theta()[None])[0]

    def theta(self, theta: Tensor, beta_t: Tensor, counts: SparseCounts) -> Tensor:
        """Return theta (B, K'), given the old one.

        Args:
            theta: (B, K), rows sum to 1.
            beta_t: (V, K) the old topics.
            counts: the documents.
        """
        part = counts.with_values(topic_counts(int(self.topic), theta, beta_t, counts))
        shares = self.network.posterior(Batch(part)).point()  # (B, n)
        return self._with_parts(theta, theta[:, self.topic, None] * shares)

    def _with_parts(self, columns: Tensor, parts: Tensor) -> Tensor:
        """Put the first part in the topic's place and the others at the end: (M, K) and (M, n) -> (M, K')."""
        changed = columns.index_copy(1, self.topic[None], parts[:, :1].to(columns.dtype))
        return torch.cat([changed, parts[:, 1:].to(columns.dtype)], dim=1)


class AddedTopics(nn.Module):
    """New topics beside the old ones, which stay as they are.

    A token of a document comes from the old topics, as theta mixes them, or from a new one:
    p(v | d) = s_0 sum_k theta_k beta_kv + sum_j s_j beta'_jv. EM estimates the shares s, which
    have a Dirichlet prior. If the documents have vectors, the prior of each one follows from its vector, by a
    regression that tells the documents of the new topics from the others.

    Args:
        beta_t: (V, n) the new topics, columns sum to 1.
        alpha: (1 + n,) the tokens that the prior adds to all those of the old topics, and to those of each new one, in
            documents without a vector.
        by_vector: (E + 1, n) the weights of the regression and, in the last row, its constants; None without vectors.
            They give the log odds of each new topic, compared with all old ones.
    """

    kind: ClassVar[str] = "add"  # the name in saved models
    beta_t: Tensor  # (V, n)
    alpha: Tensor  # (1 + n,)
    by_vector: Tensor | None  # (E + 1, n)

    def __init__(self, beta_t: Tensor, alpha: Tensor, by_vector: Tensor | None = None) -> None:
        super().__init__()
        self.register_buffer("beta_t", beta_t)
        self.register_buffer("alpha", alpha)
        self.register_buffer("by_vector", by_vector)

    def words(self, topics: Tensor) -> Tensor:
        """Return the topics (K + n, V), given the old ones (K, V)."""
        return torch.cat([topics, self.beta_t.mT])

    def average(self, shares: Tensor) -> Tensor:
        """Return the average shares (K + n,), given the old ones (K,)."""
        mean = self.alpha / self.alpha.sum()
        return torch.cat([shares * mean[0], mean[1:]])

    def prior(self, batch: Batch) -> Tensor:
        """Return the tokens that the prior adds in each document, (B, 1 + n) or (1, 1 + n)."""
        vectors = batch.fields.get("vectors")
        if self.by_vector is None or vectors is None:
            return self.alpha[None]
        lengths = vectors.float().norm(dim=1, keepdim=True)  # (B, 1)
        scores = (vectors.float() / lengths.clamp_min(TINY)) @ self.by_vector[:-1] + self.by_vector[-1]  # (B, n)
        by_vector = VECTOR_TOKENS * torch.softmax(torch.cat([torch.zeros_like(lengths), scores], 1), 1)
        return torch.where(lengths > 0, by_vector, self.alpha)

    def theta(self, theta: Tensor, beta_t: Tensor, batch: Batch) -> Tensor:
        """Return theta (B, K + n), given the old one.

        Args:
            theta: (B, K), rows sum to 1.
            beta_t: (V, K) the old topics.
            batch: the documents.
        """
        # Words that are lent by documents of the old topics say nothing about the new ones.
        counts = batch.counts if self.by_vector is None else batch.own_counts
        known = counts.sampled_product(theta.contiguous(), beta_t)  # (N,)
        alpha = self.prior(batch)  # (B, 1 + n), or (1, 1 + n)
        totals = alpha.sum(1, keepdim=True) + counts.totals[:, None]  # (B, 1)
        shares = (alpha / alpha.sum(1, keepdim=True)).expand(counts.n_docs, -1)  # (B, 1 + n)
        for _ in range(EM_STEPS):
            old, new = shares[:, 0], shares[:, 1:].contiguous()
            mass = old[counts.documents] * known + counts.sampled_product(new, self.beta_t) + TINY  # (N,)
            part = counts.values / mass
            tokens = torch.cat(
                [(old * counts.sum_by_document(part * known))[:, None], new * counts.times(part, self.beta_t)], 1
            )
            shares = (alpha + tokens) / totals
        return torch.cat([theta * shares[:, :1], shares[:, 1:]], 1)


def topic_counts(topic: int, theta: Tensor, beta_t: Tensor, counts: SparseCounts) -> Tensor:
    """Return the part of each count that belongs to a topic, x_dv p(k | v, d), at the non-zeros: (N,).

    Args:
        topic: the topic k.
        theta: (B, K).
        beta_t: (V, K).
        counts: the documents.
    """
    mine = theta[counts.documents, topic] * beta_t[counts.indices, topic]  # (N,)
    return counts.values * mine / (counts.sampled_product(theta.contiguous(), beta_t) + TINY)


Step: TypeAlias = Regroup | SplitTopic | AddedTopics


@dataclass(frozen=True)
class EditedPosterior(Posterior):
    """The posterior of the network before the edits, with theta after them."""

    base: Posterior
    network: EditedNetwork
    batch: Batch

    def point(self) -> Tensor:
        return self.network.edit(self.base.point(), self.batch)

    def divergence(self) -> Tensor:
        return self.base.divergence()

    def code(self) -> Tensor:
        return super().code() if self.network.reads_words else self.base.code()

    def decode(self, code: Tensor) -> Tensor:
        if self.network.reads_words:
            return super().decode(code)
        return self.network.edit(self.base.decode(code), self.batch)


class EditedNetwork(TopicNetwork):
    """A trained network and the steps that changed its topics.

    Its p(w | theta) is the mixture of its topics, whatever the decoder of the trained network.

    Args:
        base: the trained network.
        steps: the edits of its topics, in their order.
        stages: the stages of the network before the last step, if they are known.

    Attributes:
        stages: the topics (V, K) and the average shares (K,) before each step and after the last one. Only splits and
            added topics need the topics before them. Before other steps, an empty tensor replaces the topics.
    """

    def __init__(
        self,
        base: TopicNetwork,
        steps: Sequence[Step],
        stages: Sequence[tuple[Tensor, Tensor]] | None = None,
    ) -> None:
        super().__init__()
        self.base = base
        self.steps = nn.ModuleList(steps)
        self.fields, self.optional_fields, self.needs_words = base.fields, base.optional_fields, base.needs_words
        sizes = [
            len(each.by_vector) - 1 for each in steps if isinstance(each, AddedTopics) and each.by_vector is not None
        ]
        if sizes and "vectors" not in base.fields:
            kinds = base.fields if isinstance(base.fields, Mapping) else dict.fromkeys(base.fields)
            self.fields, self.optional_fields = {**kinds, "vectors": sizes[0]}, [*base.optional_fields, "vectors"]
        with full_precision(), torch.inference_mode(False), torch.no_grad():
            if stages is None:
                topics, average = base.topic_word().float().clone(), base.prior_theta().float().clone()
                stages = [(topics.mT.contiguous(), average)]
            self.stages = list(stages)
            for step in self.each_step()[len(stages) - 1 :]:
                beta_t, average = self.stages[-1]
                if isinstance(step, Regroup):
                    self.stages[-1] = (beta_t.new_empty(0), average)
                self.stages.append((step.words(beta_t.mT).mT.contiguous(), step.average(average)))
        self.eval()

    def extended(self, step: Step) -> EditedNetwork:
        """Return a network with one more step."""
        return EditedNetwork(self.base, [*self.each_step(), step], self.stages)

    def each_step(self) -> list[Step]:
        """Return the steps."""
        return [step for step in self.steps if isinstance(step, Step)]

    @property
    def reads_words(self) -> bool:
        """Whether a topic was split or added, whose shares depend on the words of a document."""
        return any(isinstance(step, SplitTopic | AddedTopics) for step in self.steps)

    @property
    def bounds_tokens(self) -> bool:
        return not len(self.steps) and self.base.bounds_tokens

    def edit(self, theta: Tensor, batch: Batch, first: int = 0) -> Tensor:
        """Return theta after the steps from `first` on, given theta before them: (B, K) -> (B, K')."""
        for number, step in list(enumerate(self.each_step()))[first:]:
            if isinstance(step, Regroup):
                theta = step.theta(theta, self.stages[number + 1][1])
            elif isinstance(step, AddedTopics):
                theta = step.theta(theta, self.stages[number][0], batch)
            else:
                theta = step.theta(theta, self.stages[number][0], batch.counts)
        return theta

    def posterior(self, batch: Batch) -> Posterior:
        base = self.base.posterior(batch)
        return EditedPosterior(base, self, batch) if len(self.steps) else base

    def topic_word(self) -> Tensor:
        return self.stages[-1][0].mT

    def loss(self, batch: Batch) -> Loss:
        raise NotImplementedError("an edited network is not trained")

    def bound(self, batch: Batch, generator: torch.Generator) -> Tensor:
        return self.base.bound(batch, generator)

    def log_likelihood(self, theta: Tensor, batch: Batch) -> Tensor:
        if not len(self.steps):
            return self.base.log_likelihood(theta, batch)
        return mixture_log_likelihood(theta, self.stages[-1][0], batch.counts)

    def word_probabilities(self, theta: Tensor) -> Tensor:
        return self.base.word_probabilities(theta) if not len(self.steps) else theta @ self.topic_word()

    def prior_theta(self) -> Tensor:
        return self.stages[-1][1]
