"""What all answers are computed from: one model with one list of edits. It is replaced as a whole, never changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..corpus import Corpus
from ..corpus.fields import Fields
from ..text.chunks import counts_of
from ..topics.document_topics import DocumentTopics
from ..topics.view import Topics
from .edits import version_of

_WORDS = 10  # of a topic
_MAIN_TOPICS = 3  # of a document


class Snapshot:
    """A model and its documents as they are after some edits.

    Args:
        topics: the topics with the documents; there may be none.
        shares: (K,) the topics' shares of the training documents, if `topics` has no documents and they are known.
    """

    def __init__(self, topics: Topics, shares: Sequence[float] | None = None) -> None:
        self.topics, self.version = topics, version_of(topics)
        self.model = topics.model
        self.theta: npt.NDArray[Any] = topics.documents.theta
        self.empty = topics.documents.empty
        self._shares = topics.shares.tolist() if len(self.theta) else shares
        self._places = {word: column for column, word in enumerate(self.model.vocabulary_)}
        _ = self.table  # which takes too long for the first request that needs it

    @property
    def n_topics(self) -> int:
        """The number of topics K."""
        return len(self.topics.components)

    @cached_property
    def rows(self) -> npt.NDArray[np.intp]:
        """The documents that are not empty."""
        return np.flatnonzero(~self.empty)

    @cached_property
    def words(self) -> list[list[tuple[str, float]]]:
        """The words that stand for each topic with their probabilities, best first."""
        ids = self.model.topic_ids(_WORDS)
        probabilities = np.take_along_axis(self.model.components_, ids, axis=1).tolist()
        vocabulary = self.model.vocabulary_
        return [
            [(vocabulary[word], p) for word, p in zip(row, values, strict=True)]
            for row, values in zip(ids.tolist(), probabilities, strict=True)
        ]

    @cached_property
    def table(self) -> list[dict[str, Any]]:
        """A row for each topic."""
        counts = Counter(self.topics.documents.main_topics)
        return [
            {
                "topic": k,
                "name": self.topics.names[k],
                "share": None if self._shares is None else float(self._shares[k]),
                "documents": counts[k],
                "words": [{"word": word, "probability": p} for word, p in self.words[k]],
            }
            for k in range(self.n_topics)
        ]

    def corpus_of(self, texts: Sequence[str] | Sequence[list[str]]) -> Corpus:
        """Return texts as a corpus over the model's words, as `model.documents` does.

        The columns of the words are looked up once for all calls.
        """
        model = self.model
        known = [text for text in texts if isinstance(text, str)]
        if len(known) < len(texts):  # lists of tokens
            tokens: Corpus = model.documents(texts)
            return tokens
        counts = counts_of(known, self._places, model.tokenizer_, n_jobs=1)
        return Corpus(counts, model.vocabulary_, Fields.of(len(known), texts=known), model.tokenizer_)

    def infer(self, texts: Sequence[str] | Sequence[list[str]]) -> DocumentTopics:
        """Infer the topics of texts; theta is that of `model.transform(texts)`."""
        found: DocumentTopics = self.model.infer(self.corpus_of(texts))
        return found

    def main_topics(self, theta: npt.NDArray[Any], *, words: bool = False) -> list[dict[str, Any]]:
        """Return the largest topics of a document, largest first.

        Args:
            theta: (K,) its shares.
            words: whether the topics' words are returned, too.
        """
        found = []
        for k in np.argsort(-theta, kind="stable")[:_MAIN_TOPICS].tolist():
            topic = {"topic": k, "name": self.topics.names[k], "share": float(theta[k])}
            found.append(topic | {"words": [word for word, _ in self.words[k]]} if words else topic)
        return found
