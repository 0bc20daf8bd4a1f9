"""ECRTM: a topic model whose topics are clusters of word vectors.

Wu, Dong, Nguyen & Luu 2023, "Effective Neural Topic Modeling with Embedding Clustering Regularization". Words and
topics are points of one space, with vectors rho (V, L) and t (K, L). The share of topic k in word v is
beta_kv = softmax_k(-|rho_v - t_k|^2 / tau). Documents are as in ProdLDA: z ~ N(mu(x), diag sigma^2(x)),
theta = softmax(z), and p(w | theta) = softmax(norm(theta beta) + b), where norm is a batch normalisation of each word.
The loss adds a term to minus the evidence lower bound: clustering_weight <P, D>. D has the distances |rho_v - t_k|^2.
P is the plan that transports words of equal masses to topics of equal masses at the least cost minus the entropy of P
divided by `clustering_sharpness` (nn/transport.py). Each topic thereby becomes the centre of a cluster of words of its
own, so that topics cannot fall together.

The defaults are those of the paper and its code, with these differences; the settings in parentheses are the paper's:
- Adam's learning rate goes through one cycle, with a maximum of 1e-2 (schedule="constant", learning_rate=2e-3,
  epochs=200, batch_size=200).
- The encoder receives log(1 + x) and has 128 units; half of a document's words are hidden from it in training
  (encoder_input="raw", hidden_size=200, input_dropout=0).
- Given word vectors are centred before they get unit length (whiten="none").
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from ..embeddings.word_vectors import Floats
from ..nn.decoders import ClusteredTopics, ProductDecoder
from ..nn.encoders import BagEncoder
from ..nn.layers import CodeNormKind
from ..nn.network import TopicNetwork
from ..nn.posteriors import SampledPosterior, laplace_dirichlet
from ..nn.sparse import Batch
from ..nn.transport import transport_plan
from ..settings import DirichletParameter, NotNegative, Positive, Rate
from .autoencoders import GaussianNetwork, VariationalTopicModel
from .etm import EmbeddedTopicModel
from .neural import PLAIN_VARIATIONAL
from .words import Words


class ECRTMNetwork(GaussianNetwork):
    """x -> h -> N(mu, diag sigma^2) -> theta -> softmax(norm(theta beta) + b), with a clustering term.

    Args:
        topics: the topics.
        settings: the estimator.
        words: the vocabulary.
        generator: draws the initial weights of the encoder.
    """

    def __init__(self, topics: ClusteredTopics, settings: ECRTM, words: Words, generator: torch.Generator) -> None:
        prior = laplace_dirichlet(torch.full((settings.n_topics,), settings.alpha))
        super().__init__(ProductDecoder(topics, batch_norm=True), prior, settings, words, generator)
        self.clustering = settings.clustering_weight, settings.clustering_sharpness

    @property
    def topics(self) -> ClusteredTopics:
        """The topics of the decoder."""
        topics = self.get_submodule("decoder.topics")
        assert isinstance(topics, ClusteredTopics)
        return topics

    def extras(self, posterior: SampledPosterior, theta: Tensor, batch: Batch) -> dict[str, Tensor]:
        terms = super().extras(posterior, theta, batch)
        weight, sharpness = self.clustering
        if weight > 0:
            terms["clustering"] = (weight * self._transport_cost(sharpness)).expand(len(theta))
        return terms

    def _transport_cost(self, sharpness: float) -> Tensor:
        """Return <P, D>, ()."""
        cost = self.topics.distances()  # (V, K)
        n_words, n_topics = cost.shape
        words, topics = cost.new_full((n_words,), 1 / n_words), cost.new_full((n_topics,), 1 / n_topics)
        return (transport_plan(cost, words, topics, sharpness) * cost).sum()


@dataclass(eq=False, repr=False, kw_only=True)
class ECRTM(EmbeddedTopicModel, VariationalTopicModel):
    """Topic model with embedding clustering regularisation (Wu, Dong, Nguyen & Luu 2023).

    Each batch takes memory in proportion to the vocabulary. The settings of word vectors are described in
    `help(topicloom.EmbeddedTopicModel)`, and those that the variational models share in
    `help(topicloom.VariationalTopicModel)`.

    Prior args:
        alpha: the parameter of the Dirichlet that the prior of a document's code approximates, the same for all topics.
            A smaller value gives documents fewer topics.

    Training args:
        start: the start of training. Topic vectors always start at random; with "clusters", the encoder first learns
            clusters of the documents in one pass.
        topic_scale: the standard deviation of the logits of beta at the start. None gives the topic vectors the length
            1, as in the paper.

    Collapse args:
        clustering_weight: the weight of the term that makes each topic the centre of a cluster of words.
        clustering_sharpness: the inverse of the weight of the entropy in the transport plan. With a large value, a word
            belongs to few clusters.
        temperature: tau. A smaller value gives each word to fewer topics.

    Attributes:
        word_embeddings_: the word vectors, (V, L) float32.
        topic_embeddings_: the topic vectors, (K, L) float32. `components_` is p(w | theta) of documents that consist of
            one topic.
        word_shares_: the matrix beta of the paper, (K, V) float32, whose columns sum to 1: the share of each topic in
            each word. The authors rank the words of a topic by its row.

    Examples:
        >>> import topicloom as tl
        >>> corpus = tl.datasets.synthetic_lda(n_docs=80, n_words=50, n_topics=3).corpus
        >>> model = tl.ECRTM(n_topics=3, epochs=3, random_state=0, embedding_size=20).fit(corpus)
        >>> model.transform(corpus).shape
        (80, 3)
        >>> model.word_shares_.shape
        (3, 50)
    """

    published: ClassVar[dict[str, Any]] = PLAIN_VARIATIONAL | {
        "whiten": "none",
        "embedding_size": 200,
        "code_norm": "shift",
        "alpha": 1.0,
        "code_norm_eps": 1e-5,
        "hidden_size": 200,
        "clustering_weight": 100.0,
        "clustering_sharpness": 20.0,
        "temperature": 0.2,
        "batch_size": 200,
        "learning_rate": 2e-3,
        "epochs": 200,
    }

    default_size: ClassVar[int] = 200

    alpha: DirichletParameter = 1.0
    clustering_weight: NotNegative = 100.0
    clustering_sharpness: Positive = 20.0
    temperature: Positive = 0.2
    code_norm: CodeNormKind = "shift"
    background: bool | Literal["learned"] = False
    start: Literal["clusters", "random"] = "random"
    learn_shares: bool = False
    spare_topics: NotNegative = 0.0
    min_diversity: Rate = 0.0
    kl_warmup: NotNegative | None = 0.0
    dropout: Rate = 0.0
    topic_gain: Positive = 1.0
    topic_scale: Positive | None = None

    def build_encoder(self, words: Words, generator: torch.Generator) -> BagEncoder:
        encoder = super().build_encoder(words, generator)
        if self.encoder_input == "raw":
            # As in the authors' code. With larger weights, the topics of raw counts are less coherent.
            encoder.start_as_linear(generator)
        return encoder

    def build_network(self, words: Words, generator: torch.Generator) -> ECRTMNetwork:
        kind = partial(ClusteredTopics, temperature=self.temperature)
        return ECRTMNetwork(self.topics_in_space(kind, words, generator), self, words, generator)

    def adopt_network(self, network: TopicNetwork) -> None:
        super().adopt_network(network)
        assert isinstance(network, ECRTMNetwork)
        topics = network.topics
        self.topic_embeddings_: Floats = topics.topic_vectors.detach().cpu().numpy().copy()
        self.word_shares_: Floats = topics.learned().detach().cpu().numpy().T.copy()
