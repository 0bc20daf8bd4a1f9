"""EmbeddedTopicModel: what models share whose words and topics are in one space, such as ETM and Gaussian-BAT."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..corpus import Corpus
from ..embeddings.inputs import KeyedVectors, as_word_vectors
from ..embeddings.word_vectors import Floats, WordVectors
from ..errors import SettingError
from ..metrics.vocabularies import Vocabulary
from ..nn.gaussian_topics import GaussianTopics
from ..nn.network import TopicNetwork
from ..nn.topic_logits import EmbeddedTopics
from ..settings import AtLeastOne
from .conditional import UsedIf
from .neural import NeuralTopicModel
from .words import Words

_SMALLEST_VARIANCE = 1e-3  # relative to the mean; directions with a smaller variance count as if they had this one
# Whitening removes what the vectors of few words have in common: up to L + 1 words become equally far from each other.
# In a trial with 25 groups of related words in 300 dimensions, the nearest word was of the same group for 59 % of the
# words with three words for each dimension, 43 % with two and 7 % with one, and for all of them before whitening.
_WORDS_PER_DIMENSION = 3
Whitening = Literal["none", "length", "full"]
Topics = TypeVar("Topics", EmbeddedTopics, GaussianTopics)
_WORD_VECTORS = "decoder.topics.word_vectors"  # the name of the word vectors in a network's state


@dataclass(eq=False, repr=False, kw_only=True)
class EmbeddedTopicModel(NeuralTopicModel):
    """The base of models whose topics are in the space of word vectors.

    Args:
        embedding_size: the number of dimensions L of the word and topic vectors. None is that of the given word
            vectors; without these, it is 300, and 100 in GaussianBATM.
        word_vectors: the vectors that training starts from: WordVectors (see train_word_vectors), a dictionary of words
            and vectors, gensim's KeyedVectors, or the path of a word2vec, GloVe or fastText file. None starts at
            random. In a loaded model the setting is None, as its vectors are in word_embeddings_.
        fixed_word_vectors: whether the given word vectors stay as they are at the start. Otherwise they are learned
            with the topics.
        whiten: what is done to given word vectors before training. "none" multiplies all of them by one factor, after
            which their mean squared length is L, as the decoder expects. "length" subtracts their mean and gives each
            the length sqrt(L), so that only directions count. "full" also gives them the same variance in all
            directions, which makes related words less similar; it needs three words for each dimension.

    Attributes:
        word_embeddings_: the word vectors, (V, L) float32. If vectors were given, training starts from them in the
            form that `whiten` describes.
    """

    default_size: ClassVar[int] = 300  # dimensions, unless the user or the word vectors determine another number

    used_if: ClassVar[UsedIf] = {"whiten": ("without `word_vectors`", lambda model: model.word_vectors is not None)}

    embedding_size: AtLeastOne | None = None
    word_vectors: WordVectors | dict[str, Any] | KeyedVectors | str | Path | None = None
    fixed_word_vectors: bool = False
    whiten: Whitening = "length"

    _start_vectors: list[Any] = field(default_factory=list, init=False)  # of a fit; its copies share the list

    def topics_in_space(self, kind: type[Topics], words: Words, generator: torch.Generator) -> Topics:
        """Return new topics of a class whose words have vectors, as the settings describe them."""
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
        vectors = as_word_vectors(self.word_vectors, words.names, size=self.embedding_size)
        if self.embedding_size not in (None, vectors.size):
            raise SettingError(
                f"`embedding_size={self.embedding_size}` does not fit word vectors of {vectors.size} dimensions; leave "
                "`embedding_size` out"
            )
        from_file = isinstance(self.word_vectors, str | Path)  # reading it has logged the share of the words found
        rows = vectors.rows(words.names, seed, log=not from_file)
        if self.whiten == "full" and len(rows) < _WORDS_PER_DIMENSION * vectors.size:
            raise SettingError(
                f"`whiten='full'` would erase what the vectors of {len(rows)} words say, as they have {vectors.size} "
                f"dimensions and whitening needs {_WORDS_PER_DIMENSION} words for each; use `whiten='length'`"
            )
        placed = placed_vectors(rows, self.whiten)
        self._start_vectors.append(placed)
        return placed

    def _begin(self, X: Any, vocabulary: Vocabulary | None) -> Corpus:
        if self.fixed_word_vectors and self.word_vectors is None:
            raise SettingError(
                "`fixed_word_vectors=True` keeps the given word vectors as they are, but none are given; give "
                "`word_vectors='vectors.txt'` or the like, or leave them to be learned by `fixed_word_vectors=False`"
            )
        corpus = super()._begin(X, vocabulary)
        self._start_vectors = []
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
