"""ETM: the embedded topic model.

Dieng, Ruiz & Blei 2020, "Topic Modeling in Embedding Spaces". Words and topics are points of one space. The code of a
document is z ~ N(mu(x), diag sigma^2(x)); theta = softmax(z) and p(w | theta) = theta beta, with
beta_k = softmax(rho alpha_k), where rho (V, L) are the word vectors and alpha (K, L) the topic vectors.

The defaults depart from the paper as follows; the settings in parentheses are the paper's:
- The prior is the Laplace approximation of a Dirichlet and not N(0, I) (prior="standard").
- Topics are deviations from the background word frequencies (background=False).
- A term of the loss keeps topics apart (min_diversity=0).
- Topics are learned more slowly than the encoder, above all if word vectors are given (topic_gain=1).
- Training starts at clusters of documents (start="random").
- Shares of topics are learned, theta = softmax(z + b) (learn_shares=False), and training starts with spare topics
  (spare_topics=0).
- The weight of the divergence rises to 1 in the first three quarters of the epochs (kl_warmup=0).
- The encoder receives log(1 + x) and not x / sum x (encoder_input="l1"). It has 128 softplus units and not 800 ReLU
  units, its mean and log-variance are batch-normalised (code_norm="none"), and half of a document's words are hidden
  from it in training (input_dropout=0).
- Adam's learning rate goes through one cycle, without weight decay (schedule="constant", learning_rate=5e-3,
  weight_decay=1.2e-6).
- Given word vectors are centred and scaled to one length (whiten="none" scales all of them by one factor). Those of
  word2vec lie in a narrow cone, in which all topics would move alike, and those of rare words are short, so that no
  topic could consist of rare words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from sklearn.utils.validation import check_is_fitted

from ..embeddings.word_vectors import Floats, nearest_rows
from ..errors import SettingError
from ..nn.decoders import MixtureDecoder
from ..nn.network import TopicNetwork
from ..nn.priors import laplace_dirichlet, standard_normal
from ..nn.topic_logits import EmbeddedTopics
from ..settings import DirichletParameter, Positive
from .embedded import EmbeddedTopicModel
from .gaussian import GaussianNetwork
from .published import PLAIN_VARIATIONAL
from .variational import VariationalTopicModel
from .words import Words

# Given word vectors have few main directions, so that a step of a topic vector moves the weights of many words alike.
_GAIN, _GAIN_OF_GIVEN = 0.8, 0.2


@dataclass(eq=False, repr=False, kw_only=True)
class ETM(EmbeddedTopicModel, VariationalTopicModel):
    """Embedded topic model (Dieng, Ruiz & Blei 2020).

    The settings of word vectors are described in `help(topicloom.EmbeddedTopicModel)`, and those that the variational
    models share in `help(topicloom.VariationalTopicModel)`.

    Args:
        prior: the prior of a document's code. "laplace" approximates a Dirichlet with the parameter `alpha`; "standard"
            is the N(0, I) of the paper.
        alpha: the parameter of the Dirichlet that the "laplace" prior approximates, the same for all topics. A smaller
            value gives documents fewer topics.
        topic_gain: as in `NeuralTopicModel`. None is 0.8, or 0.2 if word vectors are given.

    Attributes:
        word_embeddings_: the word vectors, (V, L) float32. If vectors were given, training starts from them in the
            form that `whiten` describes.
        topic_embeddings_: the topic vectors, (K, L) float32. Topic k is softmax(m + word_embeddings_ @
            topic_embeddings_[k]), where m contains the logarithms of the word frequencies, or zeros with
            background=False, or what was learned with background="learned". For a topic with seed words, 4 is added to
            the entries of these words.
    """

    published: ClassVar[dict[str, Any]] = PLAIN_VARIATIONAL | {
        "prior": "standard",
        "whiten": "none",
        "encoder_input": "l1",
        "hidden_size": 800,
        "activation": "relu",
        "batch_size": 1000,
        "learning_rate": 5e-3,
        "weight_decay": 1.2e-6,
        "epochs": 150,
    }

    topic_gain: Positive | None = None  # type: ignore[assignment]  # the best factor depends on the word vectors
    prior: Literal["laplace", "standard"] = "laplace"
    alpha: DirichletParameter = 0.3

    def nearest_words(self, topic: int, top_n: int = 10) -> list[str]:
        """Return the words whose vectors are nearest to the vector of a topic, by cosine similarity.

        If the word vectors were given and are fixed, they have one length, unless `whiten` is "none"; these words are
        then the ones whose frequency in the topic exceeds that in the corpus by the greatest factor.

        Args:
            topic: the number of the topic, from 0.
            top_n: the number of words.

        Raises:
            SettingError: there is no such topic.
        """
        check_is_fitted(self, "components_")
        if topic not in range(len(self.components_)):
            raise SettingError(f"there is no topic {topic}; topics are numbered 0 to {len(self.components_) - 1}")
        near = nearest_rows(self.word_embeddings_, self.topic_embeddings_[topic], top_n)
        return [self.vocabulary_[word] for word in near]

    @property
    def gain(self) -> float:
        if self.topic_gain is None:
            return _GAIN if self.word_vectors is None else _GAIN_OF_GIVEN
        return self.topic_gain

    def build_network(self, words: Words, generator: torch.Generator) -> GaussianNetwork:
        topics = self.topics_in_space(EmbeddedTopics, words, generator)
        if self.prior == "laplace":
            prior = laplace_dirichlet(torch.full((self.n_topics,), self.alpha))
        else:
            prior = standard_normal(self.n_topics)
        return GaussianNetwork(MixtureDecoder(topics), prior, self, words, generator)

    def adopt_network(self, network: TopicNetwork) -> None:
        super().adopt_network(network)
        topics = network.get_submodule("decoder.topics")
        assert isinstance(topics, EmbeddedTopics)
        self.topic_embeddings_: Floats = topics.topic_vectors.detach().cpu().numpy().copy()
