"""FASTopic: a topic model that transports documents to topics, and topics to words.

Wu, Nguyen, Zhang, Wang & Luu 2024, "FASTopic: Pretrained Transformer is a Fast, Adaptive, Stable, and Transferable
Topic Model". Documents have vectors of an encoder, and words and topics are points of the same space. The plan P (D, K)
transports documents of equal masses to topics whose masses are learned. The plan Q (K, V) transports topics of equal
masses to words whose masses are learned. Both minimise <plan, squared distances> minus the entropy divided by
`document_sharpness` or `word_sharpness` (nn/transport.py). Then theta = D P and beta = K Q, and training minimises
-sum_v x_v log (theta beta)_v for each document, plus both costs <plan, squared distances>.
A new document d has theta_dk in proportion to exp(-|e_d - t_k|^2 / tau) / sum_i exp(-|e_i - t_k|^2 / tau), where e_d is
its vector, t_k that of topic k, and the sum is over the training documents.

There is no encoder of words, so the settings of encoders are missing. The defaults are those of the authors' code.
Vectors get unit length, as those of the authors' encoder have.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..embeddings.word_vectors import Floats
from ..nn.decoders import Criterion
from ..nn.encoders import EncoderInput, EncoderReads, Target
from ..nn.layers import Activation, CodeNormKind, normal_parameter
from ..nn.network import EpochOptions, Loss, TopicNetwork
from ..nn.posteriors import PointPosterior
from ..nn.sparse import Batch, mixture_log_likelihood
from ..nn.transport import squared_distances, transport_plan
from ..settings import AtLeastOne, LayerSizes, NotNegative, Positive, Rate
from ..training.batches import BatchReader
from ..training.state import Schedule, TrainingState
from .base import TopicModel, UsedIf
from .neural import NeuralTopicModel
from .words import Words

_WATCH_EVERY = 10  # epochs; an epoch is one step by default


class FASTopicNetwork(TopicNetwork):
    """Transport plans from documents to topics, and from topics to words.

    Args:
        settings: the estimator.
        words: the vocabulary, and the length of the documents' vectors.
        generator: draws the initial vectors.
    """

    fields = ("vectors",)
    needs_words = False
    seeds: Tensor | None  # (K, V)
    nearness: Tensor  # (K,) log sum_i exp(-|e_i - t_k|^2 / tau) over the training documents

    def __init__(self, settings: FASTopic, words: Words, generator: torch.Generator) -> None:
        super().__init__()
        size, n_topics = words.field_size("vectors"), settings.n_topics
        self.topic_vectors = normal_parameter(n_topics, size, scale=1.0, generator=generator)
        self.word_vectors = normal_parameter(len(words), size, scale=1.0, generator=generator)
        with torch.no_grad():
            for vectors in (self.topic_vectors, self.word_vectors):
                vectors.copy_(F.normalize(vectors, dim=1))
        self.topic_logits = nn.Parameter(torch.zeros(n_topics))  # of the masses
        self.word_logits = nn.Parameter(torch.zeros(len(words)))
        self.register_buffer("nearness", torch.zeros(n_topics))
        self.register_buffer("seeds", None if words.seeds is None else words.seeds.mT.contiguous(), persistent=False)
        self.sharpness = settings.document_sharpness, settings.word_sharpness
        self.temperature = settings.temperature

    def distances(self, batch: Batch) -> Tensor:
        """Return the squared distances of documents and topics, (B, K)."""
        vectors = batch.fields["vectors"].to(self.topic_vectors)
        return squared_distances(F.normalize(vectors, dim=1), self.topic_vectors)

    def posterior(self, batch: Batch) -> PointPosterior:
        logits = -self.distances(batch) / self.temperature - self.nearness
        return PointPosterior(torch.softmax(logits, dim=1))

    def loss(self, batch: Batch) -> Loss:
        if not self.training:  # documents that are not learned from have their theta without the others
            return self._loss(batch, self.posterior(batch).point(), self.topic_word())
        cost = self.distances(batch)  # (B, K)
        documents = cost.new_full((len(cost),), 1 / len(cost))
        plan = transport_plan(cost, documents, self.topic_logits.softmax(0), self.sharpness[0])
        with torch.no_grad():
            self.nearness.copy_(torch.logsumexp(-cost / self.temperature, 0))
        word_plan, word_cost = self._words()
        loss = self._loss(batch, len(cost) * plan, len(word_plan) * word_plan)
        costs = {"document_cost": (plan * cost).sum(), "word_cost": (word_plan * word_cost).sum()}
        return Loss(loss.reconstruction, loss.divergence, {k: cost.expand(len(documents)) for k, cost in costs.items()})

    def _words(self) -> tuple[Tensor, Tensor]:
        """Return the plan from topics to words, and the squared distances, (K, V) each."""
        distances = squared_distances(self.topic_vectors, self.word_vectors)
        cost = distances if self.seeds is None else distances - self.seeds / self.sharpness[1]
        topics = cost.new_full((len(cost),), 1 / len(cost))
        return transport_plan(cost, topics, self.word_logits.softmax(0), self.sharpness[1]), distances

    def _loss(self, batch: Batch, theta: Tensor, beta: Tensor) -> Loss:
        likelihood = mixture_log_likelihood(theta, beta.mT.contiguous(), batch.counts)
        return Loss(-likelihood, torch.zeros_like(likelihood))

    def topic_word(self) -> Tensor:
        plan, _ = self._words()
        return plan / plan.sum(1, keepdim=True)

    def log_likelihood(self, theta: Tensor, batch: Batch) -> Tensor:
        return mixture_log_likelihood(theta, self.topic_word().mT.contiguous(), batch.counts)

    def bound(self, batch: Batch, generator: torch.Generator) -> Tensor:
        """Return the log likelihood at theta, because a point posterior has no evidence lower bound."""
        return self.log_likelihood(self.posterior(batch).point(), batch)

    def prior_theta(self) -> Tensor:
        return self.topic_logits.softmax(0)

    def epoch_options(self) -> EpochOptions:
        return EpochOptions(watch_every=_WATCH_EVERY)

    @torch.no_grad()
    def end_training(self, documents: Iterable[Batch]) -> None:
        parts = [torch.logsumexp(-self.distances(batch) / self.temperature, 0) for batch in documents]  # (K,) each
        self.nearness.copy_(torch.stack(parts).logsumexp(0))


@dataclass(eq=False, repr=False, kw_only=True)
class FASTopic(NeuralTopicModel):
    """Topic model by optimal transport between documents, topics and words (Wu et al. 2024).

    The documents need vectors (docs/vectors.md). The settings that all neural models share are described in
    `help(topicloom.NeuralTopicModel)`; those of encoders of words are missing, because there is none.

    Main args:
        batch_size: the number of documents in a step. None is all documents.

    Prior args:
        document_sharpness: the inverse of the weight of the entropy in the plan from documents to topics. With a larger
            value, documents have fewer topics.
        word_sharpness: the inverse of the weight of the entropy in the plan from topics to words. With a larger value,
            words belong to fewer topics.
        temperature: tau. A smaller value gives new documents fewer topics.

    Attributes:
        topic_embeddings_: the topic vectors, (K, L) float32, in the space of the documents' vectors.
        word_embeddings_: the word vectors, (V, L) float32, in the same space.

    Examples:
        >>> import numpy as np
        >>> import topicloom as tl
        >>> corpus = tl.datasets.synthetic_lda(n_docs=80, n_words=50, n_topics=3).corpus
        >>> words = np.random.default_rng(0).normal(size=(50, 8))
        >>> corpus = corpus.with_vectors((corpus.counts @ words).astype(np.float32))
        >>> model = tl.FASTopic(n_topics=3, epochs=3, random_state=0).fit(corpus)
        >>> model.transform(corpus).shape
        (80, 3)
    """

    needs_vectors: ClassVar[bool] = True
    uses_ranks: ClassVar[bool] = False
    used_if: ClassVar[UsedIf] = {"infer_with_neighbours": TopicModel.used_if["infer_with_neighbours"]}
    published: ClassVar[dict[str, Any]] = {
        "document_sharpness": 3.0,
        "word_sharpness": 2.0,
        "temperature": 1.0,
        "batch_size": None,
        "learning_rate": 2e-3,
        "schedule": "constant",
        "epochs": 200,
    }

    document_sharpness: Positive = 3.0
    word_sharpness: Positive = 2.0
    temperature: Positive = 1.0
    learning_rate: Positive = 2e-3
    schedule: Schedule = "constant"
    epochs: AtLeastOne = 200

    # Settings without a part that they describe.
    hidden_size: AtLeastOne = field(default=128, init=False)
    hidden_sizes: LayerSizes | None = field(default=None, init=False)
    activation: Activation = field(default="softplus", init=False)
    encoder_input: EncoderInput = field(default="log1p", init=False)
    encoder_reads: EncoderReads | Literal["auto"] = field(default="vectors", init=False)
    input_dropout: Rate = field(default=0.0, init=False)
    dropout: Rate = field(default=0.0, init=False)
    background: bool | Literal["learned"] = field(default=False, init=False)
    criterion: Criterion = field(default="cross_entropy", init=False)
    target: Target = field(default="counts", init=False)
    code_norm: CodeNormKind = field(default="none", init=False)
    code_norm_eps: Positive = field(default=1e-8, init=False)
    start: Literal["clusters", "random"] = field(default="random", init=False)
    learn_shares: bool = field(default=True, init=False)
    shares_prior: NotNegative = field(default=0.0, init=False)
    spare_topics: NotNegative = field(default=0.0, init=False)
    min_diversity: Rate = field(default=0.0, init=False)
    topic_gain: Positive = field(default=1.0, init=False)
    topic_scale: Positive | None = field(default=None, init=False)

    def build_network(self, words: Words, generator: torch.Generator) -> FASTopicNetwork:
        return FASTopicNetwork(self, words, generator)

    def build_reader(self, corpus: Any, state: TrainingState) -> BatchReader:
        reader = super().build_reader(corpus, state)
        reader.batch_size = self.batch_size or max(1, reader.n_docs)
        return reader

    def adopt_network(self, network: TopicNetwork) -> None:
        super().adopt_network(network)
        assert isinstance(network, FASTopicNetwork)
        self.topic_embeddings_: Floats = network.topic_vectors.detach().cpu().numpy().copy()
        self.word_embeddings_: Floats = network.word_vectors.detach().cpu().numpy().copy()
