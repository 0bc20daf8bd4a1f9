"""ETM: the embedded topic model, and EmbeddedTopicModel, the base of models with word vectors.

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

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from ..corpus import Corpus
from ..embeddings.word_vectors import Floats, KeyedVectors, WordVectors, as_word_vectors, nearest_rows
from ..errors import SettingError
from ..metrics.cooccurrence import Vocabulary
from ..nn.decoders import EmbeddedTopics, MixtureDecoder
from ..nn.encoders import BagEncoder
from ..nn.network import TopicNetwork
from ..nn.posteriors import laplace_dirichlet, standard_normal
from ..nn.sparse import TINY
from ..settings import AtLeastOne, DirichletParameter, Positive
from .autoencoders import GaussianNetwork, VariationalTopicModel
from .base import UsedIf
from .neural import PLAIN_VARIATIONAL, NeuralTopicModel
from .words import Words

_SMALLEST_VARIANCE = 1e-3  # the lower bound of a direction's variance, relative to the mean variance
# Whitening few vectors erases their similarities: up to L + 1 words become equally far from each other. In a trial with
# 25 groups of related words in 300 dimensions, the nearest word belonged to the same group for all words before
# whitening. After it, it did so for 59 % of the words with three words per dimension, 43 % with two, and 7 % with one.
_WORDS_PER_DIMENSION = 3
Whitening = Literal["none", "length", "full"]
Topics = TypeVar("Topics", bound=EmbeddedTopics)
_WORD_VECTORS = "decoder.topics.word_vectors"  # the name of the word vectors in a network's state


@dataclass(eq=False, repr=False, kw_only=True)
class EmbeddedTopicModel(NeuralTopicModel):
    """The base of models whose topics are in the space of word vectors.

    Text args:
        word_vectors: the vectors that training starts from: WordVectors (see train_word_vectors), a dictionary of words
            and vectors, gensim's KeyedVectors, or the path of a word2vec, GloVe or fastText file. None starts at
            random. In a loaded model the setting is None, as its vectors are in word_embeddings_.
        fixed_word_vectors: whether the given word vectors stay as they are at the start. Otherwise they are learned
            with the topics.
        whiten: how given word vectors are normalised before training. "none" multiplies all of them by one factor, so
            that their mean squared length is L, as the decoder expects. "length" subtracts their mean and gives each
            the length sqrt(L), so that only directions count. "full" also gives them the same variance in all
            directions, which makes related words less similar; it needs three words for each dimension.

    Shape args:
        embedding_size: the number of dimensions L of the word and topic vectors. None is the size of the given word
            vectors; without them, it is 300, and 100 in GaussianBATM.

    Attributes:
        word_embeddings_: the word vectors, (V, L) float32. If vectors were given, training starts from them in the
            form that `whiten` describes.

    Examples:
        >>> import topicloom as tl
        >>> issubclass(tl.ETM, tl.EmbeddedTopicModel)
        True
        >>> tl.ETM().set_params(embedding_size=50).embedding_size
        50
    """

    default_size: ClassVar[int] = 300  # dimensions if neither the user nor the word vectors determine their number

    used_if: ClassVar[UsedIf] = {"whiten": ("without `word_vectors`", lambda model: model.word_vectors is not None)}

    embedding_size: AtLeastOne | None = None
    word_vectors: WordVectors | dict[str, Any] | KeyedVectors | str | Path | None = None
    fixed_word_vectors: bool = False
    whiten: Whitening = "length"

    _start_vectors: list[Any] = field(default_factory=list, init=False)  # the vectors of one fit; copies share the list
    _written: dict[str, str] = field(default_factory=dict, init=False)  # the written forms of words, of one fit

    def topics_in_space(self, kind: Callable[..., Topics], words: Words, generator: torch.Generator) -> Topics:
        """Return new topics whose words have vectors, according to the settings."""
        given = self._given(words, generator)
        return kind(
            self.background_logits(words),
            self.n_topics,
            self.embedding_size or self.default_size,
            generator,
            seeds=words.seeds,
            word_vectors=None if given is None else torch.from_numpy(given),
            fixed=self.fixed_word_vectors,
            gain=self.gain,
            scale=self.topic_scale,
        )

    def _given(self, words: Words, generator: torch.Generator) -> Floats | None:
        """Return the word vectors that training starts from, (V, L), or None."""
        if self.word_vectors is None:
            return None
        seed = int(torch.randint(2**31, (1,), generator=generator))
        if self._start_vectors:
            start: Floats = self._start_vectors[0]
            return start
        vectors = as_word_vectors(self.word_vectors, words.names, size=self.embedding_size, written=self._written)
        if self.embedding_size not in (None, vectors.size):
            raise SettingError(
                f"`embedding_size={self.embedding_size}` does not fit word vectors of {vectors.size} dimensions; leave "
                "`embedding_size` out"
            )
        from_file = isinstance(self.word_vectors, str | Path)  # reading it has logged the share of the words found
        rows = vectors.rows(words.names, seed, written=self._written, log=not from_file)
        if self.whiten == "full" and len(rows) < _WORDS_PER_DIMENSION * vectors.size:
            raise SettingError(
                f"`whiten='full'` would erase what the vectors of {len(rows)} words say, as they have {vectors.size} "
                f"dimensions and whitening needs {_WORDS_PER_DIMENSION} words for each; use `whiten='length'`"
            )
        placed = placed_vectors(rows, self.whiten)
        self._start_vectors.append(placed)
        return placed

    def _begin(self, X: Any, vocabulary: Vocabulary | None, encoder: Any = None, *, for_fit: bool = True) -> Corpus:
        if self.fixed_word_vectors and self.word_vectors is None:
            raise SettingError(
                "`fixed_word_vectors=True` keeps the given word vectors as they are, but none are given; give "
                "`word_vectors='vectors.txt'` or the like, or leave them to be learned by `fixed_word_vectors=False`"
            )
        corpus = super()._begin(X, vocabulary, encoder, for_fit=for_fit)
        self._start_vectors = []
        self._written = {} if self.word_vectors is None else corpus.written
        if self.word_vectors is not None:  # they are saved with the weights, and the gain may depend on them
            self.settings_ |= {"word_vectors": None, "topic_gain": self.gain}
        return corpus

    def adopt_network(self, network: TopicNetwork) -> None:
        super().adopt_network(network)
        self._start_vectors = []
        vectors = network.state_dict().get(_WORD_VECTORS)
        if vectors is not None:
            self.word_embeddings_: Floats = vectors.cpu().numpy().copy()

    @classmethod
    def from_saved(cls, config: dict[str, Any], vocabulary: list[str], tensors: dict[str, Tensor]) -> Self:
        if _WORD_VECTORS in tensors and (size := tensors[_WORD_VECTORS].shape[1]) != cls.default_size:
            config["settings"]["embedding_size"] = size
        return super().from_saved(config, vocabulary, tensors)


def placed_vectors(rows: Floats, whiten: Whitening) -> Floats:
    """Return word vectors (V, L) at the scale of random ones, whose squared length is L on average.

    Args:
        rows: the word vectors.
        whiten: "none", "length" or "full"; see `EmbeddedTopicModel`. With the latter two, a vector that equals the mean
            of all has no direction and becomes zero.
    """
    placed = rows.astype(np.float64)
    if whiten == "none":
        length = np.sqrt((placed**2).sum(1).mean())  # ()
    else:
        placed -= placed.mean(0)
        if whiten == "full":
            placed = _whitened(placed)
        length = np.linalg.norm(placed, axis=1, keepdims=True)  # (V, 1)
    scaled: Floats = (placed * (np.sqrt(rows.shape[1]) / np.where(length > 0, length, 1))).astype(np.float32)
    return scaled


def _whitened(centred: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return centred vectors (V, L) with the same variance in all directions."""
    variances, directions = np.linalg.eigh(centred.T @ centred / len(centred))  # (L,), (L, L)
    floor = max(_SMALLEST_VARIANCE * variances.mean(), np.finfo(np.float32).tiny)
    white: npt.NDArray[np.float64] = centred @ (directions / np.sqrt(np.maximum(variances, floor))) @ directions.T
    return white


# Given word vectors have few main directions, so one step of a topic vector moves the weights of many words together.
_GAIN, _GAIN_OF_GIVEN = 0.8, 0.2


@dataclass(eq=False, repr=False, kw_only=True)
class ETM(EmbeddedTopicModel, VariationalTopicModel):
    """Embedded topic model (Dieng, Ruiz & Blei 2020).

    The settings of word vectors are described in `help(topicloom.EmbeddedTopicModel)`, and those that the variational
    models share in `help(topicloom.VariationalTopicModel)`.

    Text args:
        likelihood_floor: the number that is added to each p(w | theta) in the loss. The code of ETM has 0.000001.

    Prior args:
        prior: the prior of a document's code. "laplace" approximates a Dirichlet with the parameter `alpha`; "standard"
            is the N(0, I) of the paper.
        alpha: the parameter of the Dirichlet that the "laplace" prior approximates, the same for all topics. A smaller
            value gives documents fewer topics.

    Training args:
        topic_gain: the factor by which topics are learned faster than the encoder. None is 0.8, or 0.2 if word vectors
            are given.
        start_weights: the initial weights of the encoder's first layer, and of topic vectors and learned word vectors.
            "normal" is that of the other models, with word vectors of unit scale. "linear" is that of linear layers of
            PyTorch, as in the code of ETM, which are smaller.

    Attributes:
        word_embeddings_: the word vectors, (V, L) float32. If vectors were given, training starts from them in the
            form that `whiten` describes.
        topic_embeddings_: the topic vectors, (K, L) float32. Topic k is softmax(m + word_embeddings_ @
            topic_embeddings_[k]), where m contains the logarithms of the word frequencies, or zeros with
            background=False, or what was learned with background="learned". For a topic with seed words, 4 is added to
            the entries of these words.

    Examples:
        >>> import topicloom as tl
        >>> corpus = tl.datasets.synthetic_lda(n_docs=80, n_words=50, n_topics=3).corpus
        >>> model = tl.ETM(n_topics=3, epochs=3, random_state=0, embedding_size=20).fit(corpus)
        >>> model.transform(corpus).shape
        (80, 3)
        >>> model.word_embeddings_.shape, model.topic_embeddings_.shape
        ((50, 20), (3, 20))
        >>> len(model.nearest_words(0, top_n=4))
        4
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
        "likelihood_floor": 1e-6,
        "start_weights": "linear",
        "epochs": 150,
    }

    used_if: ClassVar[UsedIf] = {
        "alpha": ("with `prior='standard'`", lambda model: model.prior == "laplace"),
        "topic_scale": ("with `start_weights='linear'`", lambda model: model.start_weights == "normal"),
    }

    topic_gain: Positive | None = None  # type: ignore[assignment]  # the best factor depends on the word vectors
    prior: Literal["laplace", "standard"] = "laplace"
    alpha: DirichletParameter = 0.3
    likelihood_floor: Positive = TINY
    start_weights: Literal["normal", "linear"] = "normal"

    def build_encoder(self, words: Words, generator: torch.Generator) -> BagEncoder:
        encoder = super().build_encoder(words, generator)
        if self.start_weights == "linear":
            encoder.start_as_linear(generator)
        return encoder

    def nearest_words(self, topic: int, top_n: int = 10) -> list[str]:
        """Return the words whose vectors are nearest to the vector of a topic, by cosine similarity.

        Given word vectors that are fixed have one length, unless `whiten` is "none". The nearest words are then those
        whose frequency in the topic exceeds their frequency in the corpus by the greatest factor.

        Args:
            topic: the number of the topic, from 0.
            top_n: the number of words.

        Raises:
            InputError: the model has edits.
            SettingError: there is no such topic.
        """
        check_is_fitted(self, "components_")
        self.refuse_edits("`nearest_words`")
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
        kind = partial(EmbeddedTopics, as_linear=self.start_weights == "linear")
        topics = self.topics_in_space(kind, words, generator)
        if self.prior == "laplace":
            prior = laplace_dirichlet(torch.full((self.n_topics,), self.alpha))
        else:
            prior = standard_normal(self.n_topics)
        decoder = MixtureDecoder(topics, floor=self.likelihood_floor)
        return GaussianNetwork(decoder, prior, self, words, generator)

    def adopt_network(self, network: TopicNetwork) -> None:
        super().adopt_network(network)
        topics = network.get_submodule("decoder.topics")
        assert isinstance(topics, EmbeddedTopics)
        self.topic_embeddings_: Floats = topics.topic_vectors.detach().cpu().numpy().copy()
