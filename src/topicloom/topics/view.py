"""Topics: the topics of a fitted model together with documents, to look at and to work with."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from ..corpus import Corpus
from ..display import counted, html_table
from ..errors import InputError, SettingError, nearest
from ..files import as_path, read_whole
from ..text.custom import with_allowed
from .analyses import Analyses
from .document_topics import DocumentTopics
from .exporting import Exporting
from .matching import DEFAULT_THRESHOLD, WEAK_MATCH
from .naming import Namer, Rule, check_rule, distinct
from .reading import Reading
from .saved import CONFIG, SavedTopics, find_model, load_model, load_model_of, read_topics
from .stored import read_stored
from .translating import numbers_in

if TYPE_CHECKING:
    import pandas

logger = logging.getLogger("topicloom")


class Topics(Reading, Analyses, Exporting):
    """The topics of a fitted model together with documents, to read, edit, name and export them.

    `Topics(model, corpus)` takes a model and documents, and `Topics.from_run("runs/news")` reads a run. To read topics,
    see `table`, `documents_of`, `find_topics`, `over_time`, `by`, `hierarchy` and `match`. The methods `merge`, `drop`,
    `split`, `rename`, `name` and `replay` return a new object and leave this one as it is.

    Args:
        model: a fitted model.
        X: documents, as for `model.infer`; usually those of training.

    Attributes:
        corpus: the documents as a Corpus over the model's words: counts, ids, labels, times, texts and covariates.
        documents: the same documents with their topics: theta (n_docs, K), `empty` and the fields.

    Raises:
        InputError: X cannot be used.
        SettingError: `model` is not a model.
    """

    def __init__(self, model: Any, X: Any) -> None:
        corpus = _fitted(model).documents(X)
        self._set(partial(_itself, model), _topics_of(model), corpus, model.infer(corpus))

    def _set(self, load: Callable[[], Any], topics: SavedTopics, corpus: Corpus, documents: DocumentTopics) -> None:
        self._load, self._topics = load, topics
        self.corpus, self.documents = corpus, documents

    @classmethod
    def of(cls, model: Any, corpus: Corpus, documents: DocumentTopics) -> Topics:
        """Return a view of documents whose topics are known already.

        Args:
            model: a fitted model.
            corpus: documents over the model's words.
            documents: what `model.infer(corpus)` returned.
        """
        _fitted(model)
        view = cls.__new__(cls)
        view._set(partial(_itself, model), _topics_of(model), corpus, documents)
        return view

    @classmethod
    def from_run(cls, run: str | Path, *, device: str = "auto", allow: Iterable[str] = ()) -> Topics:
        """Read a run directory, with the documents that it keeps.

        The model itself, and PyTorch with it, is loaded when it is first needed, such as to infer or to edit topics.

        Args:
            run: what `topicloom train` wrote.
            device, allow: as for `topicloom.load`.

        Raises:
            InputError: the directory holds no run, one without documents, or a damaged one.
        """
        run, allow = as_path(run, "run"), allow if isinstance(allow, str) else tuple(allow)

        def read() -> tuple[SavedTopics, Corpus, DocumentTopics]:
            topics = read_topics(run)
            return topics, *read_stored(run, topics.vocabulary, len(topics.components))

        topics, corpus, documents = read_whole([find_model(run) / CONFIG], read)
        corpus = replace(corpus, tokenizer=with_allowed(corpus.tokenizer, allow))
        view = cls.__new__(cls)
        view._set(partial(load_model_of, topics, run.absolute(), device, allow), topics, corpus, documents)
        return view

    @cached_property
    def model(self) -> Any:
        """The fitted model."""
        return self._load()

    @property
    def edits(self) -> list[dict[str, Any]]:
        """What was done to the topics of the trained model; see `TopicModel.apply`."""
        found: list[dict[str, Any]] = self.model.edits
        return found

    @property
    def n_topics(self) -> int:
        """The number of topics K."""
        return len(self.components)

    @property
    def components(self) -> npt.NDArray[Any]:
        """(K, V) the topics, whose rows are distributions over the words."""
        return self._topics.components

    @property
    def vocabulary(self) -> list[str]:
        """The V words."""
        return self._topics.vocabulary

    @property
    def word_counts(self) -> npt.NDArray[Any]:
        """(V,) the tokens of each word in the training documents."""
        return self._topics.word_counts

    @cached_property
    def names(self) -> list[str]:
        """A name for each topic: the one that it was given, or else its first three words."""
        return self._topics.topic_names

    @property
    def given_names(self) -> list[str | None]:
        """The name that each topic was given; None for one without."""
        return self._topics.given_names

    @cached_property
    def shares(self) -> npt.NDArray[Any]:
        """(K,) the mean of theta over the documents that are not empty."""
        return self.documents.shares

    def __len__(self) -> int:
        return self.n_topics

    def __repr__(self) -> str:
        return f"Topics({counted(self.n_topics, 'topic')}, {counted(len(self.documents), 'document')})"

    def _repr_html_(self) -> str:
        rows = zip(range(self.n_topics), self.shares.tolist(), self.names, self._topics.topics(), strict=True)
        return html_table(
            ["topic", "share", "name", "words"], [[k, f"{s:.1%}", *rest] for k, s, *rest in rows], repr(self)
        )

    def number_of(self, topic: Any) -> int:
        """Return the number of a topic.

        Args:
            topic: its number, or its name.

        Raises:
            InputError: there is no such topic.
        """
        if isinstance(topic, str):
            if topic in self.names:
                return self.names.index(topic)
            shown = (f"{number} {name!r}" for number, name in enumerate(self.names))  # a default name has commas
            raise InputError(f"there is no topic named {topic!r}; {nearest(topic, self.names, shown)}")
        if isinstance(topic, bool) or not isinstance(topic, Integral):
            raise SettingError(f"`topic` should be the number or the name of a topic; it is {topic!r:.60}")
        number = int(topic)
        if not 0 <= number < self.n_topics:
            raise InputError(f"there is no topic {number}; the topics are 0 to {self.n_topics - 1}")
        return number

    # Edits, each of which returns a new view of a new model. `TopicModel` has the same methods and describes them.

    def apply(self, edits: Iterable[Mapping[str, Any]], *, matching: Sequence[int | None] | None = None) -> Topics:
        """Return the topics after a list of edits; see `TopicModel.apply`. This view and its model stay as they are."""
        model, documents = self.model.apply_with(edits, self.corpus, self.documents, matching)
        return Topics.of(model, self.corpus, documents)

    def merge(self, topics: Sequence[Any]) -> Topics:
        """Return the topics after some of them, given by number or name, became one; see `TopicModel.merge`."""
        return self.apply([{"merge": [self.number_of(topic) for topic in _each(topics)]}])

    def drop(self, topics: Any) -> Topics:
        """Return the topics without one or several of them, given by number or name; see `TopicModel.drop`."""
        return self.apply([{"drop": [self.number_of(topic) for topic in _each(topics)]}])

    def rename(self, names: Mapping[Any, str | None]) -> Topics:
        """Return the topics with names for some of them, such as {3: "shipping"}; None takes a name away."""
        if not isinstance(names, Mapping):
            raise SettingError(
                f'`names` should have topics and their names, such as {{3: "shipping"}}; it is {names!r:.60}'
            )
        renamed = {self.number_of(topic): name for topic, name in names.items()}
        return self.apply([{"rename": renamed}] if renamed else [])

    def reduce_to(self, n_topics: int) -> Topics:
        """Return fewer topics: those that share most words and documents are merged; see `TopicModel.reduce_to`."""
        return self.apply([{"reduce_to": n_topics}])

    def split(self, topic: Any, into: int = 2, random_state: int = 0) -> Topics:
        """Return the topics after one was divided into parts, learned from the documents; see `TopicModel.split`."""
        return self.apply([{"split": self.number_of(topic), "into": into, "random_state": random_state}])

    def name(
        self,
        rule: Rule | Namer = "words",
        *,
        topics: Iterable[Any] | None = None,
        n_words: int = 10,
        n_documents: int = 5,
        length: int = 500,
    ) -> Topics:
        """Return the topics with names for those that have none.

        Args:
            rule: "words" takes the three words that a topic has much of, and other topics little. "phrase" takes the
                phrase that is in many typical documents of a topic and in few of others; without one, words. A function
                receives a list of words and a list of documents, which is empty if the texts were not kept, and returns
                a name. If it fails on a topic, that topic keeps its name, and a warning says so.
            topics: the topics to name, by number or name; None is those that were not given a name before.
            n_words, n_documents: how many words and typical documents the function receives.
            length: the most characters of such a document.

        Raises:
            InputError: there is no such topic.
            SettingError: there is no such rule.
        """
        check_rule(rule)
        given = self.given_names
        chosen = [k for k in range(self.n_topics) if given[k] is None]
        if topics is not None:
            chosen = [self.number_of(topic) for topic in _each(topics)]
        names = distinct(
            self._names_by(rule, chosen, n_words, n_documents, length),
            [name for k, name in enumerate(given) if name is not None and k not in chosen],
        )
        return self.rename(names)

    def replay(self, other: Any, *, threshold: float = DEFAULT_THRESHOLD, allow: Iterable[str] = ()) -> Topics:
        """Return a view with the edits of another model, such as those that last month's topics were given.

        The topics of both trained models are matched. Edits of topics without a counterpart are left out, and a warning
        says so. Another warning names the edited topics whose counterparts resemble them little.

        Args:
            other: an edited run, as a path, or an edited view or model.
            threshold: as for `match`.
            allow: as for `topicloom.load`, if `other` is a path.

        Raises:
            InputError: there is no such run, it was not edited, or the two have no or hardly any words in common.
        """
        what = other if isinstance(other, str | Path) else "the other model"
        if isinstance(other, str | Path):
            other = load_model(Path(other), "cpu", allow)
        edited = other.model if isinstance(other, Topics) else other
        if not hasattr(edited, "edits"):
            raise SettingError(f"`other` should be an edited run, as a path, a view or a model; it is {other!r:.60}")
        if not edited.edits:
            raise InputError(f"the topics of {what} have neither names nor other edits; edit or name them first")
        matching: list[int | None] = [None] * len(edited.origin.components_)
        changed, weak = numbers_in(edited.edits), []
        matches = self.match(edited.origin, threshold=threshold)
        matches.require_shared()
        for pair in matches.pairs:
            if pair.old is not None:
                matching[pair.old] = pair.topic
                if pair.old in changed and pair.similarity < WEAK_MATCH:
                    weak.append(f"{pair.topic} for {pair.old} ({pair.similarity:.2f})")
        if weak:
            logger.warning(
                "these topics stand for old ones that they resemble little (similarity in parentheses): %s; look at "
                "them before you use their names and merges",
                ", ".join(weak),
            )
        return self.apply(edited.edits, matching=matching)

    # What the topics are.

    def words_of(self, topic: Any, n: int = 10, relevance: float | None = None) -> list[tuple[str, float]]:
        """Return the words that stand for a topic with their probabilities p(w|k), best first.

        Args:
            topic: the number or the name of a topic.
            n: how many words.
            relevance: how words are ranked, as for `TopicModel.topics`.

        Raises:
            InputError: there is no such topic.
        """
        k = self.number_of(topic)
        words = self._topics.word_ids(n, relevance)[k]
        return [(self.vocabulary[word], float(self.components[k, word])) for word in words]

    def topic_table(self, n_words: int = 10, n_documents: int = 3) -> pandas.DataFrame:
        """Return `table` as a data frame: topic, name, share, documents, words, representative, coherence, exclusivity.

        Args:
            n_words, n_documents: as for `table`.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return self.table(n_words, n_documents).to_pandas()


def _each(topics: Any) -> list[Any]:
    if not isinstance(topics, str | Iterable | Integral):
        raise SettingError(f"`topics` should be numbers or names of topics, such as [3, 7]; it is {topics!r:.60}")
    return [topics] if isinstance(topics, str | Integral) else list(topics)


def _fitted(model: Any) -> Any:
    """Return a model after a check that it is one; what it needs to be fitted for, it checks itself."""
    if isinstance(model, type) or not hasattr(model, "infer"):
        raise SettingError(
            f"`model` should be a fitted model, and the documents come second, as in Topics(model, corpus); it is "
            f"{model!r:.60}"
        )
    return model


def _topics_of(model: Any) -> SavedTopics:
    return SavedTopics(model.components_, model.vocabulary_, model.word_counts_, model.given_names)


def _itself(model: Any) -> Any:  # which can be pickled, as a lambda cannot
    return model
