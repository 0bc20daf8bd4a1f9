"""View: what the methods of `Topics` that are spread over modules know of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy.typing as npt

from ..corpus import Corpus
from .document_topics import DocumentTopics

Array = npt.NDArray[Any]


class View(ABC):
    """Documents with the topics of a model; `Topics` defines what is abstract here."""

    corpus: Corpus
    documents: DocumentTopics

    @property
    @abstractmethod
    def model(self) -> Any:
        """The fitted model."""

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """The K names of the topics."""

    @property
    @abstractmethod
    def given_names(self) -> list[str | None]:
        """The name that each topic was given; None for one without."""

    @property
    @abstractmethod
    def components(self) -> Array:
        """(K, V) the topics."""

    @property
    @abstractmethod
    def vocabulary(self) -> list[str]:
        """The V words."""

    @property
    @abstractmethod
    def word_counts(self) -> Array:
        """(V,) the tokens of each word in the training documents."""

    @property
    @abstractmethod
    def shares(self) -> Array:
        """(K,) the mean of theta over the documents that are not empty."""

    @abstractmethod
    def number_of(self, topic: Any) -> int:
        """Return the number of a topic, which is given by number or name."""

    @abstractmethod
    def words_of(self, topic: Any, n: int = 10, relevance: float | None = None) -> list[tuple[str, float]]:
        """Return the words that stand for a topic with their probabilities, best first."""
