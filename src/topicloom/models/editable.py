"""Editable: the methods of a fitted model that people change its topics with. Each returns a new model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from sklearn.utils.validation import check_is_fitted

from ..topics.edits import Edit
from ..topics.words import complete_names

if TYPE_CHECKING:
    from ..corpus import Corpus
    from ..topics.document_topics import DocumentTopics
    from .base import TopicModel
    from .edited import EditedModel


class Editable:
    """The edits of a fitted model; see docs/topics.md for what they do to theta and to the words."""

    def topics(self, top_n: int = 10, relevance: float | None = None) -> list[list[str]]:
        """Return the words that stand for each topic."""
        raise NotImplementedError

    @property
    def edits(self) -> list[Edit]:
        """What was done to the topics of the trained model, as dictionaries that `apply` takes."""
        return []

    @property
    def given_names(self) -> list[str | None]:
        """The name that each topic was given; None for one without."""
        return [None] * len(self.topics(1))

    @property
    def topic_names_(self) -> list[str]:
        """A name for each topic: the one that it was given, or else its first three words."""
        return complete_names(self.given_names, self.topics(3))

    @property
    def fingerprint(self) -> str:
        """A short hash of the model's weights and words, by which a file of edits names the model it belongs to."""
        from .edited import fingerprint_of

        check_is_fitted(self, "components_")
        return fingerprint_of(cast("TopicModel", self))

    def merge(self, topics: Sequence[int], documents: Any = None) -> EditedModel:
        """Return a model in which topics are one.

        Its theta is the sum of theirs, and its words are the mean of theirs, weighted by their shares. It takes the
        place of the first one, and later topics move up.

        Args:
            topics: two or more topics.
            documents: as for `apply`.

        Raises:
            InputError: a topic does not exist or is named twice, or only one topic would be left.
        """
        return self.apply([{"merge": topics}], documents)

    def drop(self, topics: int | Sequence[int], documents: Any = None) -> EditedModel:
        """Return a model without some topics.

        The rest of theta is divided by its sum. A document with less than a hundredth of its shares in the remaining
        topics gets the average shares, as a document without known words does.

        Args:
            topics: a topic, or several.
            documents: as for `apply`.

        Raises:
            InputError: a topic does not exist or is named twice, or fewer than two topics would be left.
        """
        return self.apply([{"drop": topics}], documents)

    def rename(self, names: Mapping[int, str | None]) -> EditedModel:
        """Return a model with names for some topics.

        Args:
            names: the name of a topic, or None to take its name away, such as {3: "shipping"}.

        Raises:
            InputError: a topic does not exist, or a name is empty or that of another topic.
        """
        return self.apply([{"rename": names}])

    def reduce_to(self, n_topics: int, documents: Any = None) -> EditedModel:
        """Return a model with fewer topics, in which the most similar ones are merged step by step.

        Topics are similar if they share words, and if they share documents as far as `documents` are given.

        Args:
            n_topics: the number of topics that are left.
            documents: as for `apply`.

        Raises:
            InputError: there are not more than `n_topics` topics.
        """
        return self.apply([{"reduce_to": n_topics}], documents)

    def split(self, topic: int, into: int = 2, documents: Any = None, random_state: int = 0) -> EditedModel:
        """Return a model in which a topic is divided into parts, by LDA on what the topic has of each document.

        The first part takes the place of the topic, and the others come after all other topics.

        Args:
            topic: the topic.
            into: the number of parts.
            documents: documents to learn the parts from, usually those of training.
            random_state: the seed.

        Raises:
            InputError: there are no documents, or too few of them have the topic.
        """
        return self.apply([{"split": topic, "into": into, "random_state": random_state}], documents)

    def apply(
        self, edits: Iterable[Mapping[str, Any]], documents: Any = None, *, matching: Sequence[int | None] | None = None
    ) -> EditedModel:
        """Return a model with a list of edits. This model stays as it is.

        Args:
            edits: such as [{"merge": [3, 7]}, {"drop": [5]}, {"rename": {3: "shipping"}}, {"reduce_to": 20},
                {"split": 4, "into": 3}]. Every number is that of a topic of this model, before any edit of the list.
            documents: documents in any form that `infer` takes, usually those of training. Merged topics are weighted
                by their shares in them; without documents, by the model's own average shares. A split needs them.
            matching: for edits of another model, the number that each of its topics has in this model, None for a topic
                without a counterpart, whose edits are left out with a warning.

        Raises:
            InputError: an edit cannot be applied; the model is as it was.
        """
        from .editing import apply_edits

        check_is_fitted(self, "components_")
        return apply_edits(cast("TopicModel", self), edits, documents, matching=matching)[0]

    def apply_with(
        self,
        edits: Iterable[Mapping[str, Any]],
        corpus: Corpus,
        documents: DocumentTopics,
        matching: Sequence[int | None] | None = None,
    ) -> tuple[EditedModel, DocumentTopics]:
        """Do as `apply` does, given documents whose topics are known, and return their topics after the edits too.

        Args:
            edits, matching: as for `apply`.
            corpus: documents over the model's words.
            documents: what `infer(corpus)` returned.
        """
        from .editing import apply_edits

        check_is_fitted(self, "components_")
        model, found = apply_edits(cast("TopicModel", self), edits, corpus, documents, matching=matching)
        assert found is not None
        return model, found
