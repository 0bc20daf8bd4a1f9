"""Topics: the topics of a fitted model together with documents, to look at and to work with."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from ..corpus import Corpus
from ..display import html_table
from ..embeddings.word_vectors import WordVectors
from ..errors import InputError, SettingError
from ..files import as_path, atomic_file, read_whole
from ..messages import counted, nearest, similar
from ..metrics import document_npmi
from ..settings import require_whole
from ..text import Pretokenized
from ..text.tokenizing import excerpt, token_spans, with_allowed, without_html
from . import export
from .coloured import ColouredText, Token
from .document_topics import DocumentTopics
from .edits import numbers_in
from .hierarchy import (
    Hierarchy,
    Method,
    distributional_vectors,
    diverse,
    free_names,
    hierarchy,
    most_similar,
    nearest_of,
    topic_distances,
)
from .matching import DEFAULT_THRESHOLD, WEAK_MATCH, Matches, match
from .naming import (
    Namer,
    Phrase,
    Rule,
    check_rule,
    distinct,
    names_by_function,
    names_by_phrase,
    names_by_words,
    phrases_of,
)
from .saved import CONFIG, SavedTopics, find_model, load_model, load_model_of, read_stored, read_topics
from .shares import ByGroup, by_group, group_word_counts, groups_of, words_of_groups
from .table import Table, plain_column, with_covariates
from .trends import OverTime, over_time, period_name, periods_of

if TYPE_CHECKING:
    import pandas


# View: what the methods of `Topics` that are spread over modules know of it.

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


# Reading: the methods of `Topics` that show what topics are about: words, documents, tokens and search.

logger = logging.getLogger("topicloom")

Kind = Literal["typical", "diverse", "recent"]

_TOP_WORDS = 10  # of a topic, for its coherence and exclusivity
_SHORT = 10.0  # tokens; the shares of documents of this length count half
_CANDIDATES = 20  # times n documents, among which diverse ones are chosen
_NAMING_WORDS, _NAMING_DOCUMENTS = 50, 100  # of a topic, from which its name is made
_TYPICAL_WORDS = 8  # words of a document that are most typical of a topic
_NAMED = 10  # unknown words in a message


class Reading(View):
    """Methods of a view that show what its topics are about."""

    _topics: SavedTopics

    def table(self, n_words: int = 10, n_documents: int = 3) -> Table:
        """Return a row for each topic.

        Args:
            n_words: the number of words of a topic.
            n_documents: the number of representative documents of a topic.

        Returns:
            a table with the columns topic (its number), name, share (the mean of theta), documents (the number of those
            whose main topic it is), words, representative (the ids of the most typical documents), coherence (NPMI of
            ten words over all documents) and exclusivity (the mean over ten words of p(w | k) / sum_j p(w | j), after
            Bischof & Airoldi 2012).
        """
        components, ids = self._topics.components, self._topics.word_ids(_TOP_WORDS)
        mains = [main for main in self.documents.main_topics if main is not None]
        counts = np.bincount(np.array(mains, np.intp), minlength=len(components))
        in_topic = np.take_along_axis(components, ids, axis=1).astype(np.float64)  # (K, 10)
        in_all = components.sum(axis=0, dtype=np.float64)[ids]
        return Table(
            {
                "topic": list(range(len(components))),
                "name": list(self.names),
                "share": [float(share) for share in self.shares],
                "documents": counts.tolist(),
                "words": self._topics.topics(n_words),
                "representative": [
                    [self.documents.ids[row] for row in self._typical(k)[:n_documents]] for k in range(len(components))
                ],
                "coherence": document_npmi(ids.tolist(), self.corpus.counts).per_topic.tolist(),
                "exclusivity": (in_topic / np.maximum(in_all, 1e-300)).mean(axis=1).tolist(),
            }
        )

    def documents_of(self, topic: Any, n: int = 5, kind: Kind = "typical", *, length: int | None = None) -> Table:
        """Return documents of a topic with the words in them that are most typical of it.

        Args:
            topic: its number or its name.
            n: how many documents.
            kind: "typical" documents have the largest shares of the topic; a short document counts less, as its shares
                are uncertain. "diverse" ones are typical as well, but differ from one another (maximal marginal
                relevance, Carbonell & Goldstein 1998). "recent" ones are the last whose main topic it is.
            length: the most characters of a text; the passage with the most typical words is shown. None is all.

        Returns:
            a table with the columns document (its row), id, share, label, time, words and text. Documents in which the
            topic has not more than the share 1/K are left out, so the table can have fewer rows than n, or none.

        Raises:
            InputError: there is no such topic, or no document has a time for "recent".
            SettingError: `n` or `kind` cannot have its value.
        """
        k = self.number_of(topic)
        require_whole("n", n)
        choices: dict[str, Callable[[int, int], Array]] = {
            "typical": lambda k, n: self._typical(k)[:n],
            "diverse": self._diverse,
            "recent": self._recent,
        }
        if kind not in choices:
            raise SettingError(f"`kind` should be one of {', '.join(get_args(Kind))}; it is {kind!r}")
        found = self.documents
        rows = []
        for row in choices[kind](k, int(n)).tolist():
            words = self._typical_words(row, k)
            text = None if found.texts is None else found.texts[row]
            time = None if found.times is None or np.isnat(found.times[row]) else found.times[row].item()
            rows.append(
                {
                    "document": row,
                    "id": found.ids[row],
                    "share": float(found.theta[row, k]),
                    "label": None if found.labels is None else found.labels[row],
                    "time": time,
                    "words": words,
                    "text": text if text is None or length is None else excerpt(text, words, length),
                }
            )
        columns = ("document", "id", "share", "label", "time", "words", "text")
        return Table.of(rows, f"The {kind} documents of topic {k}, {self.names[k]}", columns)

    def topics_of(self, document: Any) -> ColouredText:
        """Return the tokens of a document with their topics, in colours on a terminal and in a notebook.

        Args:
            document: the number or the id of a document of this view; or else a new text, whose topics are inferred.

        Returns:
            an object with the text, the tokens with their topics, and the topics of the document.

        Raises:
            InputError: there is no such document, or the model knows no word of the text.
        """
        row = self._row_of(document)
        if row is None:
            corpus = self.model.documents([document])
            if document.strip() and corpus.is_empty[0]:
                clue = similar(document, self.documents.ids[:10_000]) or "give another id or text"
                raise InputError(
                    f"there is no document {document!r:.60}, and if it is a text, the model knows no word of it; {clue}"
                )
            return self._coloured(corpus, self.model.infer(corpus), 0)
        return self._coloured(self.corpus, self.documents, row)

    def find_topics(self, query: str, n: int = 5) -> Table:
        """Return the topics of a word or of a text. A warning names the words of a text that the model does not know.

        Args:
            query: a word that the model knows, or a text.
            n: how many topics.

        Returns:
            a table with the columns topic, name, weight and words, the largest weight first. The weight is p(k | w) for
            a word, which is proportional to the share of the topic times p(w | k); for a text it is theta.

        Raises:
            InputError: the model knows no word of the query, or it is empty.
            SettingError: `n` is not a whole number from 1.
        """
        require_whole("n", n)
        if not isinstance(query, str):
            raise SettingError(f"`query` should be a word or a text; it is {query!r:.60}")
        if not query.strip():
            raise InputError("there is nothing to find; give a word or a text")
        word = self._known_word(query)
        if word is None:
            found = self.model.infer([query])
            if found.empty[0]:
                clue = similar(query.strip(), self._topics.vocabulary) or "give other words"
                raise InputError(f"the model knows no word of {query.strip()!r:.60}; {clue}")
            self._warn_of_unknown(query)
            weights = found.theta[0]
        else:
            likely = self._topics.components[:, word] * np.maximum(self.shares, 1e-12)
            weights = likely / max(float(likely.sum()), 1e-300)
        words = self._topics.topics(_TOP_WORDS)
        order = np.argsort(-weights, kind="stable")[:n].tolist()
        rows = [{"topic": k, "name": self.names[k], "weight": float(weights[k]), "words": words[k]} for k in order]
        return Table.of(rows, f"Topics of {query.strip()!r:.60}", ("topic", "name", "weight", "words"))

    def _names_by(
        self, rule: Rule | Namer, topics: Sequence[int], n_words: int, n_documents: int, length: int
    ) -> dict[int, str]:
        """Return names for topics; see `Topics.name`."""
        if callable(rule):
            words = self._topics.topics(n_words)
            texts: list[list[str]] = [[] for _ in words]
            if self.documents.texts is not None:
                for k in topics:
                    texts[k] = list(self.documents_of(k, n_documents, length=length)["text"])
            return names_by_function(rule, words, texts, topics)
        ranked = self._topics.word_ids(_NAMING_WORDS)
        names = names_by_words(self._topics.components, ranked.tolist(), self._topics.vocabulary)
        if rule == "phrase" and self.documents.texts is not None:
            names = names_by_phrase([self._phrases(k, ranked[k]) for k in range(len(names))], names)
        return {k: names[k] for k in topics}

    def _phrases(self, k: int, ranked: Array) -> list[list[Phrase]]:
        """Return the phrases of the most typical documents of a topic, which consist of its words."""
        texts = self.documents.texts
        assert texts is not None
        known = frozenset(self._topics.vocabulary[word] for word in ranked)
        found = []
        for row in self._typical(k)[:_NAMING_DOCUMENTS].tolist():
            text = texts[row]
            found.append(phrases_of(text, self._split(text) or [], known))
        return found

    # Helpers.

    @cached_property
    def _tokens(self) -> Array:
        counts: Array = np.asarray(self.corpus.counts.sum(axis=1)).ravel()
        return counts

    def _candidates(self, k: int) -> Array:
        share = np.asarray(self.documents.theta[:, k])
        rows: Array = np.flatnonzero((share > 1 / self.documents.theta.shape[1]) & ~self.documents.empty)
        return rows

    def _relevance(self, rows: Array, k: int) -> Array:
        tokens = self._tokens[rows]
        relevance: Array = np.asarray(self.documents.theta[rows, k], np.float64) * tokens / (tokens + _SHORT)
        return relevance

    def _typical(self, k: int) -> Array:
        rows = self._candidates(k)
        order: Array = rows[np.argsort(-self._relevance(rows, k), kind="stable")]
        return order

    def _diverse(self, k: int, n: int) -> Array:
        rows = self._typical(k)[: _CANDIDATES * n]
        if not len(rows):
            return rows
        picked: Array = rows[diverse(self.corpus.counts[rows], self._relevance(rows, k), n)]
        return picked

    def _recent(self, k: int, n: int) -> Array:
        times = self.documents.times
        if times is None or np.isnat(times).all():
            raise InputError(
                "no document has a time, so none is recent; times are given when the corpus is made: --timestamp "
                "COLUMN of train, or timestamps=... of Corpus"
            )
        mains = np.asarray(self.documents.theta).argmax(axis=1)
        rows = np.flatnonzero((mains == k) & ~self.documents.empty & ~np.isnat(times))
        latest: Array = rows[np.argsort(-times[rows].astype(np.int64), kind="stable")][:n]
        return latest

    def _typical_words(self, row: int, k: int) -> list[str]:
        """Return the words of a document that are most typical of a topic, best first."""
        counts = self.corpus.counts
        place = slice(counts.indptr[row], counts.indptr[row + 1])
        words = counts.indices[place]
        share = self._responsibilities(self.documents.theta[row], words)[:, k]
        usual = self._topics.word_counts[words] / max(float(self._topics.word_counts.sum()), 1.0)
        lift = np.log(np.maximum(self._topics.components[k, words], 1e-12) / np.maximum(usual, 1e-12))
        score = counts.data[place] * share * lift
        order = np.argsort(-score, kind="stable")[:_TYPICAL_WORDS]
        return [self._topics.vocabulary[words[place]] for place in order if score[place] > 0]

    def _responsibilities(self, theta: Array, words: Array) -> Array:
        """Return p(k | w, d) of words, (n, K), given theta (K,)."""
        both = np.asarray(theta, np.float64) * self._topics.components[:, words].T
        weights: Array = both / np.maximum(both.sum(axis=1, keepdims=True), 1e-300)
        return weights

    def _coloured(self, corpus: Corpus, found: DocumentTopics, row: int) -> ColouredText:
        theta = np.asarray(found.theta[row], np.float64)
        text = None if found.texts is None else found.texts[row]
        place = self._places
        split = None if text is None else self._split(text)
        if corpus.fields.tokens is not None:
            words, text = list(corpus.fields.tokens[row]), None
        elif split is None:
            begin, end = corpus.counts.indptr[row : row + 2]
            words, text = [corpus.vocabulary[word] for word in corpus.counts.indices[begin:end]], None
        else:
            words = split
            assert text is not None
            text = without_html(text) if getattr(corpus.tokenizer, "strip_html", False) else text
        spans = [None] * len(words) if text is None else token_spans(text, words)
        known = np.array([place.get(word, -1) for word in words], np.intp)
        weights = np.zeros((len(words), len(theta)))
        weights[known >= 0] = self._responsibilities(theta, known[known >= 0])
        best = weights.argmax(axis=1)
        tokens = [
            Token(word, int(best[i]) if known[i] >= 0 else None, float(weights[i, best[i]]), spans[i])
            for i, word in enumerate(words)
        ]
        return ColouredText(text, tokens, theta, weights, list(self.names))

    @cached_property
    def _places(self) -> dict[str, int]:
        return {word: place for place, word in enumerate(self._topics.vocabulary)}

    def _known_word(self, query: str) -> int | None:
        """Return the column of a query that is a single word which the model knows."""
        written = query.strip()
        if written in self._places:
            return self._places[written]
        tokens = self._split(written)
        return self._places.get(tokens[0]) if tokens is not None and len(tokens) == 1 else None

    def _warn_of_unknown(self, text: str) -> None:
        tokens = dict.fromkeys(self._split(text) or ())
        unknown = [token for token in tokens if token not in self._places]
        if unknown:
            named = ", ".join(map(repr, unknown[:_NAMED])) + (", ..." if unknown[_NAMED:] else "")
            logger.warning("words that the model does not know are left out: %s", named)

    def _split(self, text: str) -> list[str] | None:
        """Return the tokens of a text; None if the tokenizer is not here, or takes tokens only."""
        if isinstance(self.corpus.tokenizer, Pretokenized):
            return None
        try:
            return list(self.corpus.tokenizer(text))
        except InputError:  # a tokenizer of the user's own, which is not saved
            return None

    def _row_of(self, document: Any) -> int | None:
        """Return the row of a document by its number or id; None for a new text."""
        if isinstance(document, str):
            return self._rows.get(document)
        if isinstance(document, bool) or not isinstance(document, int | np.integer):
            raise SettingError(f"`document` should be a number, an id or a text; it is {document!r:.60}")
        if not 0 <= document < len(self.documents):
            known = f"the documents are 0 to {len(self.documents) - 1}" if len(self.documents) else "this view has none"
            raise InputError(f"there is no document {document}; {known}")
        return int(document)

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {name: row for row, name in reversed(list(enumerate(self.documents.ids)))}


# Analyses: the methods of `Topics` that compare topics, over time, by group and with those of another run.
#
# Each passes the documents of the view to a function of arrays, which has a module of its own.


class Analyses(View):
    """Methods of a view that compare its topics."""

    def hierarchy(self, *, word_weight: float = 0.5, method: Method = "average", n_words: int = 10) -> Hierarchy:
        """Return the tree of topics that belong together, by the words and the documents that they share.

        Args:
            word_weight: the weight of words, from 0 to 1; the rest is that of documents.
            method: "average", "complete" or "single" linkage.
            n_words: the number of words for each node.

        Raises:
            SettingError: an argument cannot have its value.
        """
        return hierarchy(
            self.components, self.documents.theta, self.word_counts, self.vocabulary, empty=self.documents.empty,
            names=self.names, word_weight=word_weight, method=method, top_n=n_words,
        )  # fmt: skip

    def over_time(
        self, period: str = "auto", *, level: float = 0.95, n_samples: int = 1000, random_state: int = 0
    ) -> OverTime:
        """Return the shares of topics by period with intervals, and the topics that rise or fall.

        Args:
            period: "day", "week", "month", "quarter" or "year"; "auto" gives at most 40 periods.
            level: the probability of the intervals; the tests of trends have the level 1 - `level`.
            n_samples: the number of bootstrap samples.
            random_state: a seed.

        Raises:
            InputError: no document has a time.
            SettingError: an argument cannot have its value.
        """
        return over_time(
            self.documents.theta, self.documents.times, period, empty=self.documents.empty, names=self.names,
            level=level, n_samples=n_samples, random_state=random_state,
        )  # fmt: skip

    def words_over_time(self, topic: Any, period: str = "auto", n_words: int = 10) -> Table:
        """Return the words that a topic uses more in each period than in the others.

        Args:
            topic: its number or its name.
            period: as for `over_time`.
            n_words: the number of words for each period.

        Returns:
            a table with the columns period, word, score (see `distinctive_words`) and tokens (expected).

        Raises:
            InputError: there is no such topic, or no document has a time.
        """
        period, starts, codes = periods_of(self.documents.times, period)
        return self._words_by(topic, "period", codes, [period_name(start, period) for start in starts], n_words)

    def by_class(self, **options: Any) -> ByGroup:
        """Return the shares of topics by class with intervals; `options` as for `by`.

        Raises:
            InputError: no document has a class.
        """
        return self.by("class", **options)

    def by(
        self,
        covariate: str,
        *,
        n_groups: int = 4,
        level: float = 0.95,
        n_samples: int = 1000,
        random_state: int = 0,
    ) -> ByGroup:
        """Return the shares of topics by a covariate with intervals, and how topics differ.

        Args:
            covariate: its name, or "class" for the documents' labels.
            n_groups: the number of groups into which numbers are divided at their quantiles.
            level: the probability of the intervals.
            n_samples, random_state: as for `over_time`.

        Raises:
            InputError: the documents have no such covariate.
            SettingError: an argument cannot have its value.
        """
        groups, group_names = groups_of(self.documents.fields, covariate, n_groups)
        return by_group(
            self.documents.theta, groups, group_names, covariate, empty=self.documents.empty, names=self.names,
            level=level, n_samples=n_samples, random_state=random_state,
        )  # fmt: skip

    def words_by(self, topic: Any, covariate: str = "class", n_words: int = 10, n_groups: int = 4) -> Table:
        """Return the words that each group uses more for a topic than the other groups.

        Args:
            topic: its number or its name.
            covariate, n_groups: as for `by`.
            n_words: the number of words for each group.

        Returns:
            a table with the columns group, word, score (see `distinctive_words`) and tokens (expected).

        Raises:
            InputError: there is no such topic, or the documents have no such covariate.
        """
        groups, group_names = groups_of(self.documents.fields, covariate, n_groups)
        return self._words_by(topic, "group", groups, group_names, n_words)

    def match(self, other: Any, *, threshold: float = DEFAULT_THRESHOLD) -> Matches:
        """Match these topics with those of an older run, so that they can have its names.

        Args:
            other: the older run: a path, a view or a fitted model.
            threshold: the similarity, from 0 to 1, below which a topic is new.

        Returns:
            the pairs; `topics.rename(topics.match("runs/may").renames())` carries names over.

        Raises:
            InputError: there is no such run, or the runs have no word in common.
            SettingError: `threshold` is not from 0 to 1, or `other` is no run.
        """
        components, vocabulary, names, given = _topics_and_names(other)
        return match(
            self.components, self.vocabulary, components, vocabulary, threshold=threshold, names=self.names,
            old_names=names, given=given,
        )  # fmt: skip

    def _words_by(self, topic: Any, column: str, groups: Array, group_names: Sequence[str], n_words: int) -> Table:
        k = self.number_of(topic)
        counts = group_word_counts(
            self.corpus.counts, self.documents.theta, self.components, groups, len(group_names), k
        )
        rows = [
            {column: name, "word": word, "score": score, "tokens": tokens}
            for name, words in zip(group_names, words_of_groups(counts, self.vocabulary, n_words), strict=True)
            for word, score, tokens in words
        ]
        return Table.of(rows, f"Words of topic {k} by {column}", (column, "word", "score", "tokens"))


def _topics_and_names(other: Any) -> tuple[Array, list[str], list[str], list[str | None]]:
    """Return the topics, the words, the names and the names that people gave, of a run, a view or a model."""
    if isinstance(other, str | Path):
        saved = read_topics(other)
        return saved.components, saved.vocabulary, saved.topic_names, saved.given_names
    if isinstance(other, View):
        return other.components, other.vocabulary, other.names, other.given_names
    if not hasattr(other, "components_"):
        raise SettingError(f"`other` should be an older run, as a path, a view or a fitted model; it is {other!r:.60}")
    return np.asarray(other.components_), list(other.vocabulary_), other.topic_names_, other.given_names


# Exporting: the methods of `Topics` that give topics to other programs, and that find what is near a word or a topic.
#
# The data of other programs are made in `export`.


class Exporting(View):
    """Methods of a view that give its topics to other programs."""

    def word_table(self, n_words: int = 20) -> Table:
        """Return the words of all topics: topic, name, rank, word, probability."""
        rows = [
            {"topic": k, "name": self.names[k], "rank": rank, "word": word, "probability": probability}
            for k in range(len(self.components))
            for rank, (word, probability) in enumerate(self.words_of(k, n_words), 1)
        ]
        return Table.of(rows, "Words of the topics")

    def document_table(self, *, texts: bool = False) -> Table:
        """Return a row for each document.

        The columns are id; label, time and the covariates (where they are known); topic, the largest; its share; and
        theta as topic_0, topic_1, ... A document without a known word has no topic.

        Args:
            texts: whether the last column has the texts, if they are known.
        """
        documents = self.documents
        main = documents.main_topics
        known: dict[str, Sequence[Any] | None] = {
            "id": documents.ids,
            "label": documents.labels,
            "time": None if documents.times is None else [_iso(time) for time in documents.times],
            "topic": main,
            "share": [None if k is None else float(row[k]) for k, row in zip(main, documents.theta, strict=True)],
        }
        known |= {f"topic_{k}": column.astype(float).tolist() for k, column in enumerate(documents.theta.T)}
        known["text"] = documents.texts if texts else None
        columns = with_covariates({name: column for name, column in known.items() if column is not None}, documents)
        return Table({name: plain_column(column) for name, column in columns.items()}, "Topics of the documents")

    def to_pyldavis(self) -> dict[str, Any]:
        """Return the arguments of pyLDAvis: `pyLDAvis.prepare(**topics.to_pyldavis())`.

        Topics keep their numbers, from 0. Documents without a known word are left out.

        Raises:
            InputError: there is only one topic, or no document has a known word.
        """
        return export.pyldavis_data(self.components, self.vocabulary, self.corpus, self.documents.theta)

    def to_topicwizard(self) -> dict[str, Any]:
        """Return the TopicData of topicwizard: `topicwizard.visualize(topic_data=topics.to_topicwizard())`."""

        def transform(texts: Sequence[str]) -> Array:
            return np.asarray(self.model.transform(list(texts)))

        return export.topicwizard_data(
            self.components, self.vocabulary, self.corpus, self.documents.theta, self.names, transform
        )

    def to_datamapplot(
        self,
        coordinates: Any = None,
        *,
        layout: export.Layout = "tsne",
        least_share: float = 0.0,
        random_state: int = 0,
    ) -> dict[str, Array]:
        """Return arrays for DataMapPlot: `create_plot(data["coordinates"], data["labels"])`.

        Args:
            coordinates: (n_docs, 2) the places of the documents, such as those of UMAP; None computes them.
            layout: "tsne" or "pca" of the square roots of theta, where coordinates are computed.
            least_share: a document whose largest share is smaller is "Unlabelled".
            random_state: the seed of t-SNE.

        Returns:
            coordinates (n_docs, 2), labels (n_docs,), topics (n_docs,) and hover_text (n_docs,).

        Raises:
            SettingError: the coordinates have another shape, or the layout does not exist.
        """
        return export.datamapplot_data(
            self.documents, self.names, export.texts_or_words(self.corpus), coordinates, layout=layout,
            least_share=least_share, random_state=random_state,
        )  # fmt: skip

    def vectors(self) -> tuple[Array, Array]:
        """Return vectors of the words, (V, L), and of the topics, (K, L), in one space.

        They are the embeddings of an ETM. Any other model has distributional vectors: see `distributional_vectors`.
        """
        return self._embedding() or distributional_vectors(self.components, self.shares, self.word_counts)

    def _embedding(self) -> tuple[Array, Array] | None:
        """Return the vectors of words and topics that the model has learned, or None if it has none."""
        words = getattr(self.model, "word_embeddings_", None)
        topics = getattr(self.model, "topic_embeddings_", None)
        if words is None or topics is None or len(topics) != len(self.components):
            return None
        return np.asarray(words, np.float32), np.asarray(topics, np.float32)

    def word_vectors(self, *, topics: bool = True) -> WordVectors:
        """Return the vectors of the words and, as topic_0, topic_1, ..., of the topics.

        `topics.word_vectors().save("vectors.txt")` writes the text format of word2vec, which gensim reads.

        Args:
            topics: whether the topics are among them.
        """
        words, points = self.vectors()
        if not topics:
            return WordVectors(self.vocabulary, words)
        names = free_names(len(points), self.vocabulary)
        return WordVectors([*self.vocabulary, *names], np.concatenate([words, points]))

    def nearest(self, item: str | int, n: int = 10) -> Table:
        """Return the words and the topics that are nearest to a word or a topic.

        Args:
            item: a word of the vocabulary; or the number or the name of a topic. A text that is both is the word.
            n: how many words, and how many topics.

        Returns:
            a table with the columns kind ("word" or "topic"), item (the word or the number), name and similarity. That
            is the cosine of the vectors; but where the model has learned none, the similarity of two topics is that of
            `hierarchy`, which counts the words and the documents that they share.

        Raises:
            InputError: there is no such word or topic.
            SettingError: `n` is not a whole number from 1.
        """
        require_whole("n", n)
        words, topics = self.vectors()
        word = self.vocabulary.index(item) if isinstance(item, str) and item in self.vocabulary else None
        if word is None and isinstance(item, str) and item not in self.names:
            numbers = f"the topics are 0 to {len(self.names) - 1}" if item.removeprefix("-").isdecimal() else ""
            advice = numbers or similar(item, [*self.vocabulary, *self.names]) or "give a word of its vocabulary"
            raise InputError(f"the model knows no word {item!r:.60}, and has no topic of this name; {advice}")
        topic = None if word is not None else self.number_of(item)
        vector = topics[topic] if word is None else words[word]
        rows = [
            {"kind": "word", "item": self.vocabulary[row], "name": self.vocabulary[row], "similarity": cosine}
            for row, cosine in nearest_of(words, vector, int(n), word)
        ]
        if topic is None or self._embedding() is not None:
            near = nearest_of(topics, vector, int(n), topic)
        else:  # distributional vectors of topics are orthogonal
            distances = topic_distances(self.components, self.documents.theta, self.documents.empty)  # (K, K)
            near = most_similar(1 - distances[topic], int(n), topic)
        rows += [
            {"kind": "topic", "item": str(row), "name": self.names[row], "similarity": similarity}
            for row, similarity in near
        ]
        what = f"the word {item}" if word is not None else f"topic {topic}"
        return Table.of(rows, f"Nearest to {what}", ("kind", "item", "name", "similarity"))

    def save_pyldavis(self, path: str | Path) -> None:
        """Write the arguments of `pyLDAvis.prepare` as JSON."""
        export.write_json(Path(path), self.to_pyldavis())

    def save_topicwizard(self, path: str | Path) -> None:
        """Write a file for `topicwizard.app.load_app`, which joblib reads."""
        import joblib

        with atomic_file(Path(path)) as temporary:
            joblib.dump(export.topicwizard_file(self.to_topicwizard(), self.documents), temporary)

    def save_datamapplot(self, path: str | Path, **options: Any) -> None:
        """Write the arrays of `to_datamapplot` as a NumPy archive (.npz); `options` are its arguments."""
        arrays = self.to_datamapplot(**options)
        texts = {name: np.array(arrays[name].tolist(), dtype=str) for name in ("labels", "hover_text")}
        with atomic_file(Path(path)) as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **{**arrays, **texts})


def _iso(time: np.datetime64) -> str | None:
    return None if np.isnat(time) else str(np.datetime_as_string(time, "s"))


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
