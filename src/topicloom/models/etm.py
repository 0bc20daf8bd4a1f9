"""ETM: the embedded topic model.

Dieng, Ruiz & Blei 2020, "Topic Modeling in Embedding Spaces"; words and topics are points of one space. A document is
coded by z ~ N(mu(x), diag sigma^2(x)), theta = softmax(z), p(w | theta) = theta beta, beta_k = softmax(rho alpha_k):
rho (V, L) holds the word vectors, alpha (K, L) the topic vectors.

Where the defaults depart from the paper, and how to come back to it:
- the prior is the Laplace approximation of a Dirichlet and not N(0, I) (prior="standard");
- topics are deviations from the background word frequencies (background=False);
- topics are held apart by a term of the loss (min_diversity=0);
- the encoder sees log(1 + x) and not x / sum x (encoder_input="l1"), has 128 softplus units and not 800 ReLU, its mean
  and log-variance are batch-normalised, and half of a document's words are hidden from it in training
  (input_dropout=0);
- Adam's rate follows one cycle, without weight decay (schedule="constant", learning_rate=5e-3, weight_decay=1.2e-6);
- given word vectors are whitened and brought to one length: word2vec's lie in a narrow cone, along which all topics
  would move alike, and are short where words are rare, so that no topic could be about those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from ..corpus import Corpus
from ..embeddings.inputs import KeyedVectors, as_word_vectors
from ..embeddings.word_vectors import Floats, WordVectors, nearest_rows
from ..errors import SettingError
from ..nn.batch import Batch
from ..nn.decoders import EmbeddedTopics, MixtureDecoder
from ..nn.encoders import GaussianHead
from ..nn.network import TopicNetwork, VariationalNetwork
from ..nn.posteriors import GaussianPosterior
from ..nn.priors import laplace_dirichlet, standard_normal
from ..settings import AtLeastOne, Positive
from .neural import VariationalTopicModel
from .words import Words

_FAINTEST = 1e-3  # of the mean variance: directions with less of it are taken to have this much
_SIZE = 300  # dimensions, where neither the user nor the word vectors say another number
_WORD_VECTORS = "decoder.topics.word_vectors"  # in a network's state


class ETMNetwork(VariationalNetwork):
    """x -> h -> N(mu, diag sigma^2) -> z -> theta = softmax(z) -> words."""

    def __init__(self, settings: ETM, words: Words, topics: EmbeddedTopics, generator: torch.Generator) -> None:
        super().__init__(
            MixtureDecoder(topics),
            settings.build_encoder(words, generator),
            settings.build_separation_term(words),
            criterion=settings.criterion,
            n_samples=settings.n_samples,
        )
        n_topics = settings.n_topics
        laplace = settings.prior == "laplace"
        alpha = torch.full((n_topics,), settings.alpha)
        self.prior = laplace_dirichlet(alpha) if laplace else standard_normal(n_topics)
        self.head = GaussianHead(settings.hidden_size, self.prior.var, generator)

    def posterior(self, batch: Batch) -> GaussianPosterior:
        mean, log_var = self.head(self.encoder(batch, self.noise))  # (B, K), (B, K)
        return GaussianPosterior(mean, log_var, self.prior, lambda z: torch.softmax(z, dim=1))

    def prior_theta(self) -> Tensor:
        return torch.softmax(self.prior.mean, dim=0)


@dataclass(eq=False, repr=False, kw_only=True)
class ETM(VariationalTopicModel):
    """Embedded topic model (Dieng, Ruiz & Blei 2020).

    The settings that all neural models share are described at NeuralTopicModel.

    Args:
        prior: "laplace" approximates Dirichlet(alpha); "standard" is N(0, I), the paper's.
        alpha: the Dirichlet parameter of the "laplace" prior, the same for each topic.
        embedding_size: dimensions L; None is 300, or what the word vectors have.
        word_vectors: the vectors that training starts from: WordVectors (see train_word_vectors), a dictionary of words
            and vectors, gensim's KeyedVectors, or the path of a word2vec, GloVe or fastText file. None starts at
            random. In a loaded model the setting is None, as its vectors are in word_embeddings_.
        fixed_word_vectors: keeps the word vectors as they start; otherwise they are learned with the topics.

    Attributes:
        word_embeddings_: (V, L) float32; given and fixed vectors are these, whitened and of one length.
        topic_embeddings_: (K, L) float32; topic k is softmax(m + word_embeddings_ @ topic_embeddings_[k]), m the
            logarithms of the word frequencies, or 0 with background=False.
    """

    prior: Literal["laplace", "standard"] = "laplace"
    alpha: Positive = 0.3
    embedding_size: AtLeastOne | None = None
    word_vectors: WordVectors | dict[str, Any] | KeyedVectors | str | Path | None = None
    fixed_word_vectors: bool = False

    def nearest_words(self, topic: int, top_n: int = 10) -> list[str]:
        """The words whose vectors are nearest to a topic's vector, by cosine.

        Where all word vectors have one length (given and fixed), they are those that the topic makes more frequent than
        the corpus by the greatest factor.

        Raises:
            SettingError: there is no such topic.
        """
        check_is_fitted(self, "components_")
        if not 0 <= topic < len(self.components_):
            raise SettingError(f"there is no topic {topic}; topics are numbered 0 to {len(self.components_) - 1}")
        near = nearest_rows(self.word_embeddings_, self.topic_embeddings_[topic], top_n)
        return [self.vocabulary_[word] for word in near]

    def build_network(self, words: Words, generator: torch.Generator) -> ETMNetwork:
        given = self._given(words, generator)
        topics = EmbeddedTopics(
            self.background_logits(words),
            self.n_topics,
            self.embedding_size or _SIZE,
            generator,
            seeds=words.seeds,
            word_vectors=None if given is None else torch.from_numpy(given),
            fixed=self.fixed_word_vectors,
        )
        return ETMNetwork(self, words, topics, generator)

    def _given(self, words: Words, generator: torch.Generator) -> Floats | None:
        """(V, L) the vectors to start from, or None."""
        if self.word_vectors is None:
            return None
        seed = int(torch.randint(2**31, (1,), generator=generator))
        vectors = as_word_vectors(self.word_vectors, words.names, size=self.embedding_size)
        if self.embedding_size not in (None, vectors.size):
            raise SettingError(
                f"`embedding_size={self.embedding_size}` does not fit word vectors of {vectors.size} dimensions; leave "
                "`embedding_size` out"
            )
        from_file = isinstance(self.word_vectors, str | Path)  # reading it has logged the share of the words found
        return _placed(vectors.rows(words.names, seed, log=not from_file))

    def _begin(self, X: Any, vocabulary: Sequence[str] | None) -> Corpus:
        corpus = super()._begin(X, vocabulary)
        self.settings_["word_vectors"] = None  # they are in the weights, and a file or a dictionary is not saved again
        return corpus

    def adopt_network(self, network: TopicNetwork) -> None:
        super().adopt_network(network)
        topics = network.get_submodule("decoder.topics")
        assert isinstance(topics, EmbeddedTopics)
        self.word_embeddings_: Floats = topics.word_vectors.detach().cpu().numpy().copy()
        self.topic_embeddings_: Floats = topics.topic_vectors.detach().cpu().numpy().copy()

    @classmethod
    def from_saved(cls, config: dict[str, Any], vocabulary: list[str], tensors: dict[str, Tensor]) -> Self:
        settings = config["settings"]
        size = tensors[_WORD_VECTORS].shape[1]
        if size != _SIZE:
            settings["embedding_size"] = size
        return super().from_saved(config, vocabulary, tensors)


def _placed(rows: Floats) -> Floats:
    """(V, L) rows whitened, and of the length that random ones have; a row at the mean of all stays there."""
    centred = (rows - rows.mean(0)).astype(np.float64)
    variances, directions = np.linalg.eigh(centred.T @ centred / len(rows))  # (L,), (L, L)
    floor = max(_FAINTEST * variances.mean(), np.finfo(np.float32).tiny)
    white = centred @ (directions / np.sqrt(np.maximum(variances, floor))) @ directions.T  # (V, L)
    lengths = np.linalg.norm(white, axis=1, keepdims=True)
    placed: Floats = (white * (np.sqrt(rows.shape[1]) / np.where(lengths > 0, lengths, 1))).astype(np.float32)
    return placed
