"""Topics: the topics of a fitted model together with documents, to read, compare, edit and export.

What a method computes is in the module of its subject, such as `typical`, `trends` or `naming`, which is imported when
the method is first called.
"""

from __future__ import annotations

import logging
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
from ..errors import InputError, SettingError
from ..files import as_path, read_whole
from ..messages import counted, nearest, similar
from ..metrics import document_npmi
from ..ranking import topic_word_ids
from ..settings import require_seed, require_whole
from ..text import Pretokenized
from ..text.tokenizing import excerpt, fold_of, with_allowed, without_html
from .document_topics import DocumentTopics
from .edits import Numbering, moved, numbers_in
from .matching import DEFAULT_THRESHOLD, Matches, match, warn_of_few_documents
from .saved import (
    ANSWERS,
    CONFIG,
    SavedTopics,
    find_model,
    load_model,
    load_model_of,
    read_label_column,
    read_stored,
    read_topics,
)
from .search import VectorSearch, with_encoder
from .table import Table, document_table

if TYPE_CHECKING:
    import pandas

    from ..embeddings.word_vectors import WordVectors
    from .coloured import ColouredText
    from .export import Layout, Space
    from .hierarchy import Hierarchy, Method
    from .language_model import LanguageModelAnswers
    from .naming import Namer, Phrase, Rule
    from .outliers import Outliers
    from .publication import TableLanguage
    from .rating import RatingQuestion, TopicRatings
    from .shares import ByGroup
    from .trends import OverTime
    from .typical import TypicalDocuments

logger = logging.getLogger("topicloom")

Array = npt.NDArray[Any]
Selection = Literal["typical", "diverse", "recent"]  # of documents of a topic

_MEASURED_WORDS = 10  # of a topic, for its coherence and exclusivity
_SHOWN_WORDS = 10  # of a topic, that a sentence or a rating is shown with
_NAMING_WORDS, _NAMING_DOCUMENTS = 50, 100  # of a topic, from which its name is made
_UNKNOWN_WORDS_SHOWN = 10  # in a message
_NEAREST_DOCUMENTS = 20  # whose topics a text gets if the model knows no word of it


class Topics:
    """The topics of a fitted model together with documents, to read, edit, name and export them.

    `Topics(model, corpus)` takes a model and documents, and `Topics.from_run("runs/news")` reads a run. To read topics,
    see `table`, `documents_of`, `find_topics`, `over_time`, `by`, `hierarchy` and `match`. The methods `merge`, `drop`,
    `split`, `rename`, `name` and `replay` return a new object and leave this one as it is.

    Args:
        model: a fitted model.
        X: documents in any form that `infer` of the model takes, such as a Corpus or a list of texts; usually those of
            training.

    Attributes:
        corpus: the documents as a Corpus over the model's words: counts, ids, labels, times, texts and covariates.
        documents: the same documents with their topics: theta (n_docs, K), `empty` and the fields.

    Raises:
        InputError: X cannot be used.
        SettingError: `model` is not a model.

    Examples:
        >>> import topicloom as tl
        >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
        >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(texts), texts)
        >>> topics
        Topics(3 topics, 24 documents)
        >>> [sorted(word for word, _ in topics.words_of(k, 3)) for k in topics.find_topics("cat")["topic"][:1]]
        [['cat', 'dog', 'mouse']]
    """

    # Making it from a model or a run.

    def __init__(self, model: Any, X: Any) -> None:
        corpus = _fitted(model).documents(X)
        self._set(partial(_itself, model), _topics_of(model), corpus, model.infer(corpus))

    def _set(self, load: Callable[[], Any], topics: SavedTopics, corpus: Corpus, documents: DocumentTopics) -> None:
        self._load, self._topics = load, topics
        self.corpus, self.documents = corpus, documents
        self._run: Path | None = None

    @classmethod
    def of(cls, model: Any, corpus: Corpus, documents: DocumentTopics) -> Topics:
        """Return a view of documents whose topics are known already.

        Args:
            model: a fitted model.
            corpus: documents over the model's words.
            documents: what `model.infer(corpus)` returned.

        Raises:
            SettingError: `model` is not a model.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> model = tl.LDA(3, random_state=0).fit(texts)
            >>> corpus = model.documents(texts)
            >>> tl.Topics.of(model, corpus, model.infer(corpus))
            Topics(3 topics, 24 documents)
        """
        _fitted(model)
        view = cls.__new__(cls)
        view._set(partial(_itself, model), _topics_of(model), corpus, documents)
        return view

    @classmethod
    def from_run(
        cls, run: str | Path, *, device: str = "auto", allow: Iterable[str] = (), encoder: Any = None
    ) -> Topics:
        """Read a run directory, with the documents that it keeps.

        The model itself, and PyTorch with it, is loaded when it is first needed, such as to infer or to edit topics.

        Args:
            run: what `topicloom train` wrote.
            device: where the model runs: "cpu", "cuda" or "mps"; "auto" is a GPU if there is one.
            allow: the names of modules outside the package that may be imported, for a model class, a tokenizer or an
                encoder of your own, and the addresses to which texts may be sent for their vectors.
            encoder: your own encoder, if the documents got their vectors from a function.

        Raises:
            InputError: the directory holds no run, one without documents, or a damaged one.

        Examples:
            `tl.Topics.from_run("runs/news")` reads a run. A directory without one is refused:

            >>> import topicloom as tl
            >>> tl.Topics.from_run("no/run")
            Traceback (most recent call last):
            topicloom.errors.ModelFileError: no/run does not exist; check the path
        """
        run, allow = as_path(run, "run"), allow if isinstance(allow, str) else tuple(allow)

        def read() -> tuple[SavedTopics, Corpus, DocumentTopics]:
            topics = read_topics(run)
            return topics, *read_stored(run, topics.vocabulary, len(topics.components))

        topics, corpus, documents = read_whole([find_model(run) / CONFIG], read)
        corpus = replace(corpus, tokenizer=with_allowed(corpus.tokenizer, allow))
        corpus = with_encoder(corpus, encoder, allow)
        given = None if encoder is None else corpus.encoder or encoder
        view = cls.__new__(cls)
        view._set(partial(load_model_of, topics, run.absolute(), device, allow, given), topics, corpus, documents)
        view._run = run.absolute()
        return view

    # The model and its topics.

    @cached_property
    def model(self) -> Any:
        """The fitted model."""
        return self._load()

    @property
    def edits(self) -> list[dict[str, Any]]:
        """The edits of the topics since training, such as [{"merge": [3, 7]}]; `apply` takes such a list."""
        found: list[dict[str, Any]] = self.model.edits
        return found

    @property
    def n_topics(self) -> int:
        """The number of topics K."""
        return len(self.components)

    @property
    def components(self) -> Array:
        """(K, V) the topics, whose rows are distributions over the words."""
        return self._topics.components

    @property
    def vocabulary(self) -> list[str]:
        """The V words."""
        return self._topics.vocabulary

    @property
    def written_words(self) -> list[str]:
        """The V words as the texts commonly write them, to be read: straße for strasse."""
        return self._topics.words

    @property
    def word_counts(self) -> Array:
        """(V,) the tokens of each word in the training documents."""
        return self._topics.word_counts

    @cached_property
    def names(self) -> list[str]:
        """A name for each topic: the one that it was given, or else three of its words that tell it from the others."""
        return self._topics.topic_names

    @property
    def given_names(self) -> list[str | None]:
        """The name that each topic was given; None for one without."""
        return self._topics.given_names

    @property
    def sentences(self) -> list[str | None]:
        """What a language model wrote about each topic that it named (`name`); None for the others."""
        return self.answers.sentences_of(self._topics)

    @cached_property
    def answers(self) -> LanguageModelAnswers:
        """The answers of language models about these topics, which a run keeps."""
        from .language_model import LanguageModelAnswers

        return LanguageModelAnswers(None if self._run is None else self._run / ANSWERS)

    @cached_property
    def label_column(self) -> str | None:
        """The column that the labels of a run were read from, as `train --label` named it; None if it is not known.

        `by` and `words_by` take it in place of "class".
        """
        if self._run is None or self.documents.labels is None:
            return None
        return read_label_column(self._run)

    @cached_property
    def shares(self) -> Array:
        """(K,) the mean of theta over the documents that are not empty."""
        return self.documents.shares

    @cached_property
    def typical(self) -> TypicalDocuments:
        """The documents of each topic in the order in which they are typical of it."""
        from .typical import TypicalDocuments

        found, corpus = self.documents, self.corpus
        return TypicalDocuments(
            found.theta, found.empty, corpus.counts, self.components, self.word_counts, corpus.vectors
        )

    def positions(self, rows: npt.NDArray[np.intp] | None = None) -> Array:
        """Return the places of documents on the map, (D, 2) float32 from 0 to 1.

        Documents with similar vectors, or else with similar topics, are near each other. A run keeps the places, also
        when its topics are edited, so that its page and its pictures show the same map.

        Args:
            rows: (D,) the numbers of the documents; None is all.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(texts), texts)
            >>> topics.positions().shape
            (24, 2)
        """
        from .positions import MOST_PLACED, document_positions

        found, vectors = self.documents, self.corpus.vectors
        if rows is None:
            rows = np.arange(len(found))
        if found.positions is None and len(found) > MOST_PLACED:  # only those that are asked for
            return document_positions(found.theta[rows], None if vectors is None else vectors[rows])
        if found.positions is None:
            self.documents = found = replace(found, positions=document_positions(found.theta, vectors))
        assert found.positions is not None
        places: Array = found.positions[rows]
        return places

    def __len__(self) -> int:
        return self.n_topics

    def __repr__(self) -> str:
        return f"Topics({counted(self.n_topics, 'topic')}, {counted(len(self.documents), 'document')})"

    def _repr_html_(self) -> str:
        words = self._topics.topics(written=True)
        rows = zip(range(self.n_topics), self.shares.tolist(), self.names, words, strict=True)
        return html_table(
            ["topic", "share", "name", "words"], [[k, f"{s:.1%}", *rest] for k, s, *rest in rows], repr(self)
        )

    def number_of(self, topic: Any) -> int:
        """Return the number of a topic.

        Args:
            topic: its number, or its name.

        Raises:
            InputError: there is no such topic.
            SettingError: `topic` is neither a number nor a name.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(texts), texts)
            >>> topics.rename({2: "weather"}).number_of("weather")
            2
        """
        if isinstance(topic, str):
            for names in (self.names, self._folded_names):
                if topic in names:
                    return names.index(topic)
            shown = (f"{number} {name!r}" for number, name in enumerate(self.names))  # a default name has commas
            raise InputError(f"there is no topic named {topic!r}; {nearest(topic, self.names, shown)}")
        if isinstance(topic, bool) or not isinstance(topic, Integral):
            raise SettingError(f"`topic` should be the number or the name of a topic; it is {topic!r:.60}")
        number = int(topic)
        if not 0 <= number < self.n_topics:
            raise InputError(f"there is no topic {number}; the topics are 0 to {self.n_topics - 1}")
        return number

    # Reading: the words and the documents of topics, and the topics of words and documents.

    def table(self, n_words: int = 10, n_documents: int = 3) -> Table:
        """Return a row for each topic.

        Args:
            n_words: the number of words of a topic.
            n_documents: the number of representative documents of a topic.

        Returns:
            a table with the columns topic (its number), name, sentence (if a language model wrote any), share (the mean
            of theta), documents (the number of those whose main topic it is), words, representative (the ids of the
            most typical documents), coherence (NPMI of ten words over all documents) and exclusivity (the mean over ten
            words of p(w | k) / sum_j p(w | j), after Bischof & Airoldi 2012).

        Raises:
            SettingError: `n_words` is not a whole number from 1, or `n_documents` not one from 0.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(texts), texts)
            >>> topics.table()["documents"]
            [8, 8, 8]
        """
        require_whole("n_documents", n_documents, 0)
        components, ids = self.components, self._topics.word_ids(_MEASURED_WORDS)
        mains = [main for main in self.documents.main_topics if main is not None]
        counts = np.bincount(np.array(mains, np.intp), minlength=len(components))
        in_topic = np.take_along_axis(components, ids, axis=1).astype(np.float64)  # (K, 10)
        in_all = components.sum(axis=0, dtype=np.float64)[ids]
        typical = (self.typical.ranked(k, n_documents) for k in range(len(components)))
        sentences = self.sentences
        return Table(
            {
                "topic": list(range(len(components))),
                "name": list(self.names),
                **({"sentence": sentences} if any(sentences) else {}),
                "share": [float(share) for share in self.shares],
                "documents": counts.tolist(),
                "words": self._topics.topics(n_words, written=True),
                "representative": [[self.documents.ids[row] for row in rows] for rows in typical],
                "coherence": document_npmi(ids.tolist(), self.corpus.counts).per_topic.tolist(),
                "exclusivity": (in_topic / np.maximum(in_all, 1e-300)).mean(axis=1).tolist(),
            }
        )

    def topic_table(self, n_words: int = 10, n_documents: int = 3) -> pandas.DataFrame:
        """Return a data frame with a row for each topic.

        `table` returns the same without pandas, and describes the columns.

        Args:
            n_words: the number of words of a topic.
            n_documents: the number of representative documents of a topic.

        Raises:
            MissingExtraError: pandas is not installed.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(texts), texts)
            >>> topics.topic_table().shape
            (3, 8)
        """
        return self.table(n_words, n_documents).to_pandas()

    def publication_table(self, n_words: int = 10, *, table_language: TableLanguage = "auto") -> Table:
        """Return a table of the topics that can go into a paper as it is.

        It has their names, or numbers if no topic was given a name, their words, share in percent and coherence (NPMI)
        with two decimals, a caption and a label. `save("topics.tex")` writes it for booktabs, and `save("topics.md")`
        for Markdown.

        Args:
            n_words: the number of words of a topic.
            table_language: "en" or "zh", of headings and caption; "auto" is "zh" if the texts are Chinese, else "en".

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(texts), texts)
            >>> list(topics.publication_table().columns)
            ['Topic', 'Words', 'Share (%)', 'NPMI']
        """
        from .publication import chosen_language, topics_for_print

        language = chosen_language(table_language, self.corpus.tokenizer, "table_language")
        return topics_for_print(self.table(n_words, 1), self.given_names, len(self.documents), language)

    def words_of(self, topic: Any, n: int = 10, relevance: float | None = None) -> list[tuple[str, float]]:
        """Return the words that stand for a topic with their probabilities p(w|k), best first.

        Args:
            topic: the number or the name of a topic.
            n: how many words.
            relevance: 1 ranks words by probability, 0 by lift (p(w|k) / p(w)); Sievert & Shirley (2014) recommend 0.6.
                None is 0.5, with little effect of the lift of rare words.

        Raises:
            InputError: there is no such topic.
            SettingError: `n` is not a whole number from 1, or `relevance` is not from 0 to 1.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(texts), texts)
            >>> len(topics.words_of(0, 3))
            3
        """
        k = self.number_of(topic)
        words = topic_word_ids(self.components[[k]], self.word_counts, n, relevance)[0]  # of this topic alone
        return [(self.written_words[word], float(self.components[k, word])) for word in words]

    def word_table(self, n_words: int = 20) -> Table:
        """Return the words of all topics: topic, name, rank, word, probability.

        Args:
            n_words: the number of words of a topic.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(texts), texts)
            >>> topics.word_table(2)["rank"]
            [1, 2, 1, 2, 1, 2]
        """
        rows = [
            {"topic": k, "name": self.names[k], "rank": rank, "word": word, "probability": probability}
            for k in range(len(self.components))
            for rank, (word, probability) in enumerate(self.words_of(k, n_words), 1)
        ]
        return Table.of(rows, "Words of the topics")

    def documents_of(self, topic: Any, n: int = 5, kind: Selection = "typical", *, length: int | None = None) -> Table:
        """Return documents of a topic with the words in them that are most typical of it.

        Args:
            topic: its number or its name.
            n: how many documents.
            kind: "typical" documents are about the topic, in its words, and of its usual length; repetition counts
                little, and near copies come last. "diverse" ones are typical as well, but differ from one another
                (maximal marginal relevance, Carbonell & Goldstein 1998), by their vectors if they have any, or else by
                their words. "recent" ones are the last whose main topic it is. `topicloom.topics.typical` has the
                formula.
            length: the most characters of a text; the passage with the most typical words is shown. None is all.

        Returns:
            a table with the columns document (its row), id, share, label, time, words and text. Documents in which the
            topic has not more than the share 1/K are left out, so the table can have fewer rows than n, or none.

        Raises:
            InputError: there is no such topic, or no document has a time for "recent".
            SettingError: `n`, `kind` or `length` cannot have its value.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(texts), texts)
            >>> topic_of_rain = topics.find_topics("rain")["topic"][0]
            >>> topics.documents_of(topic_of_rain, 2)["text"]
            ['rain sun snow', 'rain sun snow']
        """
        from .typical import recent_documents

        k = self.number_of(topic)
        require_whole("n", n)
        if kind not in get_args(Selection):
            raise SettingError(f"`kind` should be one of {', '.join(get_args(Selection))}; it is {kind!r}")
        found = self.documents
        if kind == "typical":
            chosen = self.typical.ranked(k, int(n))
        elif kind == "diverse":
            chosen = self.typical.diverse(k, int(n))
        else:
            chosen = recent_documents(found.theta, found.times, found.empty, k, int(n))
        rows = [self._document_row(row, k, length) for row in chosen.tolist()]
        columns = ("document", "id", "share", "label", "time", "words", "text")
        return Table.of(rows, f"The {kind} documents of topic {k}, {self.names[k]}", columns)

    def find_documents(self, query: Any, n: int = 5, *, topic: Any = None, length: int | None = None) -> Table:
        """Return the documents that are nearest in meaning to a text or to another document.

        The vectors of the documents are compared. A text is encoded by the encoder that made them.

        Args:
            query: a text; or the number or the id of a document of this view, which is not found itself.
            n: how many documents.
            topic: the number or the name of a topic, to find only documents in which its share is more than 1/K. None
                finds any.
            length: the most characters of a text; the passage with the most words of the query is shown. None is all.

        Returns:
            a table with the columns document (its row), id, similarity (the cosine of the vectors), topic (the main
            one; None for a document without a topic), label, time and text, the nearest first.

        Raises:
            InputError: the documents have no vectors, the encoder is not known or cannot be used, or there is no such
                document or topic.
            SettingError: `n` or `length` is not a whole number from 1, or `query` is neither a number nor a text.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> def encode(texts):  # a real encoder knows meanings
            ...     return [[any(word in text for word in group.split()) for group in texts_of] for text in texts]
            >>> texts_of = ["cat dog kitten", "rain sun hail", "bank loan debt"]
            >>> corpus = tl.Corpus.from_texts(texts, encoder=encode, language="en")
            >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(corpus), corpus)
            >>> topics.find_documents("a kitten", 2)["text"]
            ['cat dog mouse', 'cat dog mouse']
        """
        require_whole("n", n)
        if not isinstance(query, str | int | np.integer) or isinstance(query, bool):
            raise SettingError(f"`query` should be a text, or the number or the id of a document; it is {query!r:.60}")
        if isinstance(query, str) and not query.strip():
            raise InputError("there is nothing to find; give a text")
        row = self._row_of(query)
        search, found = self._search, self.documents
        similarity = search.similarities(str(query)) if row is None else search.similarities_of(row)  # (n_docs,)
        rows = search.rows if row is None else search.rows[search.rows != row]
        if topic is not None:
            rows = rows[found.theta[rows, self.number_of(topic)] > 1 / self.n_topics]
        rows = rows[np.argsort(-similarity[rows], kind="stable")[: int(n)]]
        words = (self._split(str(query)) if row is None else None) or []
        table = [
            {
                **_known_of(found, place),
                "similarity": float(similarity[place]),
                "topic": main,
                "text": self._text_of(place, words, length),
            }
            for place, main in zip(rows.tolist(), found[rows].main_topics, strict=True)
        ]
        columns = ("document", "id", "similarity", "topic", "label", "time", "text")
        return Table.of(table, f"Documents near {str(query).strip()!r:.60}", columns)

    def outliers(self, n: int | None = 20, X: Any = None, *, length: int | None = None) -> Table:
        """Return the documents that fit the topics worst, worst first.

        No topic has a large share of such a document, and no documents of this view are like it. The `fit` of a
        document is the share of the documents of this view that fit no better; one with a fit below .05 is an outlier.
        `topicloom.topics.outliers` has the formula. A group of similar documents is not found, because topics are
        trained to explain such groups.

        Args:
            n: how many documents; None is all.
            X: new documents to judge by those of this view, in any form that `infer` of the model takes. None judges
                the documents of this view themselves.
            length: the most characters of a text. None is all.

        Returns:
            a table with the columns document (its row), id, fit, outlier (True or False), topic (the largest one),
            share (that of the topic), similarity (the mean cosine with the five documents of this view that are most
            similar, by vectors or, without them, by words), label, time and text. Documents without a known word come
            last; their fit is 0, and they have no topic.

        Raises:
            InputError: X cannot be used, or no document of this view has a known word.
            SettingError: `n` or `length` is not a whole number from 1.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8 + ["cat snow loan"]
            >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(texts), texts)
            >>> topics.outliers(1)["text"]
            ['cat snow loan']
            >>> topics.outliers(X=["rain sun snow", "the price of snow for a mouse"])["document"]
            [1, 0]
        """
        if n is not None:
            require_whole("n", n)
        found, corpus = self.documents, self.corpus
        if X is not None:
            corpus = self.model.documents(X)
            found = self.model.infer(corpus)
        fits = self.judge.own() if X is None else self.judge.of(corpus, found.theta, found.empty)
        order = np.lexsort((fits.score, found.empty))[: None if n is None else int(n)]
        mains = found.main_topics
        table = [
            {
                **_known_of(found, row),
                "fit": float(fits.fit[row]),
                "outlier": bool(fits.is_outlier[row]),
                "topic": mains[row],
                "share": None if mains[row] is None else float(fits.share[row]),
                "similarity": float(fits.similarity[row]),
                "text": None if found.texts is None else _beginning(found.texts[row], length),
            }
            for row in order.tolist()
        ]
        columns = ("document", "id", "fit", "outlier", "topic", "share", "similarity", "label", "time", "text")
        return Table.of(table, f"Documents that fit no topic: {fits.meaning}", columns)

    @cached_property
    def judge(self) -> Outliers:
        """The documents of this view, by which `outliers` judges these and new ones."""
        from .outliers import Outliers

        return Outliers(self.corpus, self.documents.theta, self.documents.empty, self.corpus.tokenizer)

    def document_table(self, *, texts: bool = False) -> Table:
        """Return a row for each document.

        The columns are id; label, time and the covariates (where they are known); topic, the largest; its share; and
        theta as topic_0, topic_1, ... A document without a known word has no topic.

        Args:
            texts: whether the last column has the texts, if they are known.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(texts), texts)
            >>> list(topics.document_table().columns)
            ['id', 'topic', 'share', 'topic_0', 'topic_1', 'topic_2']
        """
        return document_table(self.documents, texts=texts)

    def topics_of(self, document: Any) -> ColouredText:
        """Return the tokens of a document with their topics, in colours on a terminal and in a notebook.

        Args:
            document: the number or the id of a document of this view; or else a new text, whose topics are inferred.

        Returns:
            an object with the text, the tokens with their topics, and the topics of the document.

        Raises:
            InputError: there is no such document, or the model knows no word of the text.
            SettingError: `document` is neither a number nor a text.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(texts), texts)
            >>> [token.word for token in topics.topics_of("The cat and the dog").tokens if token.topic is not None]
            ['cat', 'dog']
        """
        row = self._row_of(document)
        if row is not None:
            return self._coloured(self.corpus, self.documents, row)
        corpus = self.model.documents([document])
        found = self.model.infer(corpus)
        if document.strip() and found.empty[0]:
            clue = similar(document, self.documents.ids[:10_000]) or "give another id or text"
            raise InputError(
                f"there is no document {document!r:.60}, and if it is a text, the model knows no word of it; {clue}"
            )
        return self._coloured(corpus, found, 0)

    def find_topics(self, query: str, n: int = 5) -> Table:
        """Return the topics of a word or of a text. A warning names the words of a text that the model does not know.

        If the model reads vectors, and the encoder of its training documents is known, it also reads the vector of a
        text. If it knows no word of a text and reads no vectors, but the documents have vectors of a known encoder, the
        topics of the nearest documents are returned.

        Args:
            query: a word that the model knows, or a text.
            n: how many topics.

        Returns:
            a table with the columns topic, name, weight and words, the largest weight first. The weight is p(k | w) for
            a word, which is proportional to the share of the topic times p(w | k); for a text it is theta, or the mean
            theta of the nearest documents.

        Raises:
            InputError: the model knows no word of the query, or it is empty.
            SettingError: `n` is not a whole number from 1, or `query` is not a text.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(texts), texts)
            >>> found = topics.find_topics("loan")
            >>> found["weight"][0] > 0.8
            True
        """
        require_whole("n", n)
        if not isinstance(query, str):
            raise SettingError(f"`query` should be a word or a text; it is {query!r:.60}")
        if not query.strip():
            raise InputError("there is nothing to find; give a word or a text")
        word = self._known_word(query)
        if word is None:
            corpus = self.model.documents([query])
            found = self.model.infer(corpus)
            weights = self._theta_of_nearest(query) if found.empty[0] else found.theta[0]
            if weights is None:
                clue = similar(query.strip(), self.written_words) or "give other words"
                raise InputError(f"the model knows no word of {query.strip()!r:.60}; {clue}")
            by_vector = self.model.reads_vectors and corpus.vectors is not None and bool(corpus.vectors[0].any())
            if not (found.empty[0] or by_vector):
                self._warn_of_unknown(query)
        else:
            likely = self.components[:, word] * np.maximum(self.shares, 1e-12)
            weights = likely / max(float(likely.sum()), 1e-300)
        words = self._topics.topics(written=True)
        order = np.argsort(-weights, kind="stable")[:n].tolist()
        rows = [{"topic": k, "name": self.names[k], "weight": float(weights[k]), "words": words[k]} for k in order]
        return Table.of(rows, f"Topics of {query.strip()!r:.60}", ("topic", "name", "weight", "words"))

    # Comparing: with each other, over time, by group and with those of another run.

    def hierarchy(self, *, word_weight: float = 0.5, method: Method = "average", n_words: int = 10) -> Hierarchy:
        """Return the tree of topics that belong together, by the words and the documents that they share.

        Args:
            word_weight: the weight of words, from 0 to 1; the rest is that of documents.
            method: "average", "complete" or "single" linkage.
            n_words: the number of words for each node.

        Raises:
            SettingError: an argument cannot have its value.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(texts), texts)
            >>> sorted(len(group) for group in topics.hierarchy().cut(2))
            [1, 2]
        """
        from .hierarchy import hierarchy

        return hierarchy(
            self.components, self.documents.theta, self.word_counts, self.written_words, empty=self.documents.empty,
            names=self.names, word_weight=word_weight, method=method, top_n=n_words,
        )  # fmt: skip

    def over_time(
        self,
        period: str = "auto",
        *,
        bins: Any = None,
        start: Any = None,
        end: Any = None,
        min_documents: int | None = None,
        level: float = 0.95,
        n_samples: int = 1000,
        random_state: int = 0,
    ) -> OverTime:
        """Return the shares of topics by period with intervals, and the topics that rise, fall or have a burst.

        Args:
            period: "hour", "day", "week", "month", "quarter", "year", "decade", or several, such as "2 weeks"; "auto"
                gives at most 40 periods.
            bins: in place of `period`, a number of bins of equal length, or the dates that divide them.
            start, end: documents before `start` and after `end` are left out; "2024-05" as the end is the whole May.
            min_documents: a period with fewer documents is sparse, and left out of the tests. None is a tenth of the
                median of all periods with documents, and at most 30.
            level: the probability of the intervals; the tests have the level 1 - `level`.
            n_samples: the number of bootstrap samples.
            random_state: a seed.

        Raises:
            InputError: no document has a time, or none is in the time asked for.
            SettingError: an argument cannot have its value.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> corpus = tl.Corpus.from_texts(texts, timestamps=["2020-01-05", "2021-03-01", "2022-07-09"] * 8)
            >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(corpus), corpus)
            >>> topics.over_time("year").period_names
            ['2020', '2021', '2022']
        """
        from .trends import over_time

        return over_time(
            self.documents.theta, self.documents.times, period, bins=bins, start=start, end=end,
            min_documents=min_documents, empty=self.documents.empty, n_tokens=self.corpus.counts.sum(axis=1),
            names=self.names, level=level, n_samples=n_samples, random_state=random_state,
        )  # fmt: skip

    def words_over_time(
        self,
        topic: Any,
        period: str = "auto",
        n_words: int = 10,
        *,
        bins: Any = None,
        start: Any = None,
        end: Any = None,
    ) -> Table:
        """Return the words that a topic uses more in each period than in the others.

        Args:
            topic: its number or its name.
            period: the length of a period, as for `over_time`.
            n_words: the number of words for each period.
            bins: in place of `period`, a number of bins or the dates that divide them.
            start, end: documents before `start` and after `end` are left out.

        Returns:
            a table with the columns period, word, score and tokens (expected). The score is the z-value of the log odds
            ratio with an informative Dirichlet prior (Monroe, Colaresi & Quinn 2008); words below 1.96 are left out.

        Raises:
            InputError: there is no such topic, or no document has a time.
            SettingError: there is no such period, or `n_words` is not a whole number from 1.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> corpus = tl.Corpus.from_texts(texts, timestamps=["2020-01-05", "2021-03-01", "2022-07-09"] * 8)
            >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(corpus), corpus)
            >>> list(topics.words_over_time(0, "year").columns)
            ['period', 'word', 'score', 'tokens']
        """
        from .periods import periods_of

        periods = periods_of(self.documents.times, period, bins=bins, start=start, end=end)
        return self._words_by(topic, "period", periods.codes, periods.names, n_words)

    def documents_over_time(
        self,
        topic: Any,
        period: str = "auto",
        n_documents: int = 3,
        *,
        bins: Any = None,
        start: Any = None,
        end: Any = None,
        length: int | None = None,
    ) -> Table:
        """Return typical documents of a topic for each period.

        Args:
            topic: its number or its name.
            period: the length of a period, as for `over_time`.
            n_documents: the number of documents for each period; a period has fewer if its documents have little of
                the topic.
            bins: in place of `period`, a number of bins or the dates that divide them.
            start, end: documents before `start` and after `end` are left out.
            length: the most characters of a text; the passage with the most typical words is shown. None is all.

        Returns:
            a table with the column period and those of `documents_of`.

        Raises:
            InputError: there is no such topic, or no document has a time.
            SettingError: an argument cannot have its value.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> corpus = tl.Corpus.from_texts(texts, timestamps=["2020-01-05", "2021-03-01", "2022-07-09"] * 8)
            >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(corpus), corpus)
            >>> topic_of_rain = topics.find_topics("rain")["topic"][0]
            >>> found = topics.documents_over_time(topic_of_rain, "year", 1)
            >>> found["period"], found["text"]
            (['2021'], ['rain sun snow'])
        """
        from .periods import periods_of

        k = self.number_of(topic)
        require_whole("n_documents", n_documents)
        periods = periods_of(self.documents.times, period, bins=bins, start=start, end=end)
        ranked, _ = self.typical.scores(k)
        codes = periods.codes[ranked]
        rows = [
            {"period": name, **self._document_row(row, k, length)}
            for code, name in enumerate(periods.names)
            for row in ranked[codes == code][: int(n_documents)].tolist()
        ]
        columns = ("period", "document", "id", "share", "label", "time", "words", "text")
        return Table.of(rows, f"Documents of topic {k}, {self.names[k]}, by {periods.unit}", columns)

    def by_class(self, **options: Any) -> ByGroup:
        """Return the shares of topics by class with intervals.

        Args:
            options: the arguments `level`, `n_samples` and `random_state` of `by`.

        Raises:
            InputError: no document has a class.
            SettingError: an argument cannot have its value.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> corpus = tl.Corpus.from_texts(texts, labels=["animals", "weather", "money"] * 8)
            >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(corpus), corpus)
            >>> topics.by_class().groups
            ['animals', 'money', 'weather']
        """
        return self.by("class", **options)

    def by(
        self,
        covariate: str,
        *,
        n_groups: int | None = None,
        level: float = 0.95,
        n_samples: int = 1000,
        random_state: int = 0,
    ) -> ByGroup:
        """Return the shares of topics by a covariate with intervals, and how topics differ.

        Args:
            covariate: its name, or "class" for the documents' labels. In a run, the column that the labels were read
                from means the same.
            n_groups: the number of groups into which numbers are divided at their quantiles. None is 4, but if there
                are at most 12 different numbers, such as stars, each is a group.
            level: the probability of the intervals.
            n_samples: the number of bootstrap samples.
            random_state: a seed.

        Raises:
            InputError: the documents have no such covariate.
            SettingError: an argument cannot have its value.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> corpus = tl.Corpus.from_texts(texts, covariates={"stars": [1.0, 2.0, 5.0] * 8})
            >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(corpus), corpus)
            >>> topics.by("stars")
            ByGroup(3 groups by stars, 3 topics)
        """
        from .shares import by_covariate

        return by_covariate(
            self.documents.theta, self.documents.fields, covariate, label=self._other_name(covariate),
            n_groups=n_groups, empty=self.documents.empty, names=self.names, level=level, n_samples=n_samples,
            random_state=random_state,
        )  # fmt: skip

    def words_by(self, topic: Any, covariate: str = "class", n_words: int = 10, n_groups: int | None = None) -> Table:
        """Return the words that each group uses more for a topic than the other groups.

        Args:
            topic: its number or its name.
            covariate: its name, or "class" for the documents' labels, as for `by`.
            n_words: the number of words for each group.
            n_groups: the number of groups into which numbers are divided, as for `by`.

        Returns:
            a table with the columns group, word, score and tokens (expected). The score is the z-value of the log odds
            ratio with an informative Dirichlet prior (Monroe, Colaresi & Quinn 2008); words below 1.96 are left out.

        Raises:
            InputError: there is no such topic, or the documents have no such covariate.
            SettingError: `n_words` or `n_groups` is not a whole number that it can be.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> corpus = tl.Corpus.from_texts(texts, labels=["animals", "weather", "money"] * 8)
            >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(corpus), corpus)
            >>> list(topics.words_by(0).columns)
            ['group', 'word', 'score', 'tokens']
        """
        from .shares import groups_of

        groups, group_names = groups_of(self.documents.fields, covariate, n_groups, self._other_name(covariate))
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

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> topics, later = (tl.Topics(tl.LDA(3, random_state=seed).fit(texts), texts) for seed in (0, 1))
            >>> later.match(topics)
            Matches(3 topics matched, 0 new, 0 gone)
        """
        old = _saved_topics(other)
        warn_of_few_documents(len(self.components), self._topics.n_documents, len(old.components), old.n_documents)
        return match(
            self.components, self.vocabulary, old.components, old.vocabulary, threshold=threshold, names=self.names,
            old_names=old.topic_names, given=old.given_names,
        )  # fmt: skip

    # Words and topics as vectors of one space.

    def vectors(self) -> tuple[Array, Array]:
        """Return vectors of the words, (V, L), and of the topics, (K, L), in one space.

        They are the embeddings of an ETM, an ECRTM or a FASTopic. Any other model has distributional vectors, with
        L = K: the vector of a word is the square root of its topics' shares p(k|w), and the vector of topic k is the
        k-th unit vector. So has a model with edited topics, unless they were only renamed.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> words, points = tl.Topics(tl.LDA(3, random_state=0).fit(texts), texts).vectors()
            >>> words.shape, points.shape
            ((9, 3), (3, 3))
        """
        from .hierarchy import distributional_vectors, learned_vectors

        learned = learned_vectors(self.model)
        return learned or distributional_vectors(self.components, self.shares, self.word_counts)

    def word_vectors(self, *, topics: bool = True) -> WordVectors:
        """Return the vectors of the words and, as topic_0, topic_1, ..., of the topics.

        `topics.word_vectors().save("vectors.txt")` writes the text format of word2vec, which gensim reads.

        Args:
            topics: whether the topics are among them.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(texts), texts)
            >>> topics.word_vectors().words[-3:]
            ('topic_0', 'topic_1', 'topic_2')
        """
        from ..embeddings.word_vectors import WordVectors
        from .hierarchy import free_names

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

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(texts), texts)
            >>> sorted(topics.nearest("cat", 2)["name"][:2])
            ['dog', 'mouse']
        """
        from .hierarchy import learned_vectors, most_similar, nearest_of, topic_distances

        require_whole("n", n)
        words, topics = self.vectors()
        word = self._columns.get(item) if isinstance(item, str) else None
        if word is None and isinstance(item, str) and item not in self.names:
            word = self._known_word(item)
        if word is None and isinstance(item, str) and item not in self.names:
            numbers = f"the topics are 0 to {len(self.names) - 1}" if item.removeprefix("-").isdecimal() else ""
            advice = numbers or similar(item, [*self.written_words, *self.names]) or "give a word of its vocabulary"
            raise InputError(f"the model knows no word {item!r:.60}, and has no topic of this name; {advice}")
        topic = None if word is not None else self.number_of(item)
        vector = topics[topic] if word is None else words[word]
        rows = [
            {"kind": "word", "item": self.vocabulary[row], "name": self.written_words[row], "similarity": cosine}
            for row, cosine in nearest_of(words, vector, int(n), word)
        ]
        if topic is None or learned_vectors(self.model):
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

    # Editing: each method returns a new view of a new model.

    def numbers_in(self, edited: Topics) -> list[int | None]:
        """Return the number that each topic has after edits, None for a topic that was dropped.

        Args:
            edited: these topics after edits.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(texts), texts)
            >>> topics.numbers_in(topics.merge([0, 1]))
            [0, 0, 1]
        """
        known = [getattr(view.model, "applied_edits_", None) for view in (self, edited)]
        before, after = (
            each.numbering if each else Numbering.start(len(self.model.origin.components_)) for each in known
        )
        return moved(before, after)

    def apply(self, edits: Iterable[Mapping[str, Any]], *, matching: Sequence[int | None] | None = None) -> Topics:
        """Return the topics after a list of edits. This view and its model stay as they are.

        Args:
            edits: such as [{"merge": [3, 7]}, {"drop": [5]}, {"rename": {3: "shipping"}}, {"reduce_to": 20},
                {"split": 4, "into": 3}]. Every number is that of a topic of this view, before any edit of the list.
            matching: for edits of other topics, the number that each of those topics has here, None for one without a
                counterpart, whose edits are left out with a warning.

        Raises:
            InputError: an edit cannot be applied.
            SettingError: an edit does not have the form of one.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(texts), texts)
            >>> topics.apply([{"merge": [0, 2]}, {"rename": {1: "second"}}]).given_names
            [None, 'second']
        """
        model, documents = self.model.apply_with(edits, self.corpus, self.documents, matching)
        view = Topics.of(model, self.corpus, documents)
        view.answers = self.answers
        return view

    def merge(self, topics: Sequence[Any]) -> Topics:
        """Return the topics after some of them became one.

        Its theta is the sum of theirs, and its words are the mean of theirs, weighted by their shares. It takes the
        place of the first one, and later topics move up.

        Args:
            topics: two or more topics, by number or name.

        Raises:
            InputError: a topic does not exist or is named twice, or only one topic would be left.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(texts), texts)
            >>> topics.merge([0, 1])
            Topics(2 topics, 24 documents)
        """
        return self.apply([{"merge": [self.number_of(topic) for topic in _each(topics)]}])

    def drop(self, topics: Any) -> Topics:
        """Return the topics without one or several of them.

        The rest of theta is divided by its sum. A document with less than a hundredth of its shares in the remaining
        topics gets the average shares.

        Args:
            topics: a topic or several, by number or name.

        Raises:
            InputError: a topic does not exist or is named twice, or fewer than two topics would be left.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(texts), texts)
            >>> topics.drop(2)
            Topics(2 topics, 24 documents)
        """
        return self.apply([{"drop": [self.number_of(topic) for topic in _each(topics)]}])

    def reduce_to(self, n_topics: int) -> Topics:
        """Return fewer topics: those that share most words and documents are merged, two at a time.

        Args:
            n_topics: the number of topics that are left.

        Raises:
            InputError: there are not more than `n_topics` topics.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(texts), texts)
            >>> topics.reduce_to(2)
            Topics(2 topics, 24 documents)
        """
        return self.apply([{"reduce_to": n_topics}])

    def split(self, topic: Any, into: int = 2, random_state: int = 0) -> Topics:
        """Return the topics after one was divided into parts, by LDA on what it has of each document.

        The first part takes the place of the topic, and the others come after all other topics.

        Args:
            topic: its number or its name.
            into: the number of parts.
            random_state: the seed.

        Raises:
            InputError: there is no such topic, or too few documents have it.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> topics = tl.Topics(tl.LDA(2, random_state=0).fit(texts), texts)
            >>> topics.split(0)
            Topics(3 topics, 24 documents)
        """
        return self.apply([{"split": self.number_of(topic), "into": into, "random_state": random_state}])

    def rename(self, names: Mapping[Any, str | None]) -> Topics:
        """Return the topics with names for some of them.

        Args:
            names: new names by the number or the name of a topic, such as {3: "shipping"}; None takes a name away.

        Raises:
            InputError: a topic does not exist, or a name is empty or that of another topic.
            SettingError: `names` is no mapping.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(texts), texts)
            >>> topics.rename({0: "first"}).given_names
            ['first', None, None]
        """
        if not isinstance(names, Mapping):
            raise SettingError(
                f'`names` should have topics and their names, such as {{3: "shipping"}}; it is {names!r:.60}'
            )
        renamed = {self.number_of(topic): name for topic, name in names.items()}
        return self.apply([{"rename": renamed}] if renamed else [])

    def name(
        self,
        rule: Rule | Namer = "words",
        *,
        topics: Iterable[Any] | None = None,
        n_words: int = 10,
        n_documents: int = 5,
        length: int = 500,
        llm: str | None = None,
        model: str | None = None,
        name_language: str = "auto",
        timeout: float | None = None,
        progress: bool = False,
    ) -> Topics:
        """Return the topics with names for those that have none.

        With `llm`, a language model gets the words of each topic and parts of its typical documents, and writes a name
        and a sentence (`sentences`). The log says first where they are sent, and then how many tokens that took. A
        topic without a usable answer keeps its name, and a warning says so. A run keeps the answers, and is not asked
        twice.

        Args:
            rule: "words" takes three words that are frequent in a topic and rare in other topics. "phrase" takes a
                phrase in many typical documents of the topic and in few of others; without one, words. A function
                receives a list of words and a list of documents, which is empty if the texts were not kept, and returns
                a name. If it fails on a topic, that topic keeps its name, and a warning says so.
            topics: the topics to name, by number or name; None is those that were not given a name before.
            n_words, n_documents: how many words and typical documents the function or the language model receives.
            length: the most characters of such a document.
            llm: the address of a service with OpenAI's interface, such as "http://localhost:11434/v1". Its key is the
                environment variable TOPICLOOM_LLM_KEY or, for api.openai.com, also OPENAI_API_KEY.
            model: the name of the language model there.
            name_language: the language of its names, such as "de"; "auto" is that of the documents.
            timeout: the seconds to wait for an answer; None is 120.
            progress: whether a bar on standard error shows how many topics it has named.

        Raises:
            InputError: there is no such topic, or the service gives no usable answer.
            SettingError: there is no such rule, or the address cannot be used.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(texts), texts)
            >>> sorted(topics.name(lambda words, documents: max(words[:3])).names)
            ['mouse', 'price', 'sun']
        """
        from .naming import check_rule, distinct

        check_rule(rule)
        given = self.given_names
        chosen = [k for k in range(self.n_topics) if given[k] is None]
        if topics is not None:
            chosen = [self.number_of(topic) for topic in _each(topics)]
        taken = [name for k, name in enumerate(given) if name is not None and k not in chosen]
        if llm is None:
            given_language = None if name_language == "auto" else name_language
            for argument, value in (("model", model), ("name_language", given_language), ("timeout", timeout)):
                if value is not None:
                    raise SettingError(f"`{argument}` needs a language model; give `llm`")
            return self.rename(distinct(self._names_by(rule, chosen, n_words, n_documents, length), taken))
        if rule != "words":
            raise SettingError("`rule` and `llm` both name the topics; give one of them")
        require_whole("n_words", n_words)
        require_whole("n_documents", n_documents, 0)
        from .language_model import LanguageModel, language_in_words, names_by_language_model

        asked = LanguageModel(llm, model, self.answers, timeout)
        language = language_in_words(name_language, self.corpus.tokenizer)
        words, texts = self._for_naming(chosen, n_words, n_documents, length)
        shown = self._topics.topics(_SHOWN_WORDS, written=True)
        names = names_by_language_model(asked, chosen, words, texts, language, taken, shown, progress=progress)
        return self.rename(names)

    def rate(
        self,
        llm: str,
        model: str | Sequence[str],
        *,
        topics: Iterable[Any] | None = None,
        n_questions: int = 2,
        n_documents: int = 3,
        repeats: int = 2,
        length: int = 500,
        random_state: int = 0,
        timeout: float | None = None,
        progress: bool = False,
    ) -> TopicRatings:
        """Ask language models which word does not belong to a topic, and which documents fit it.

        The first question is word intrusion (Chang et al. 2009): five words of the topic, and one of another topic. The
        second shows typical documents of the topic and as many with other topics, as ProxAnn (Hoyle et al. 2025) does.
        Topics that people can understand have high shares of right answers. Each question is asked in several orders,
        and the agreement of the answers is reported. A run keeps prompts, answers and results.

        Args:
            llm: the address of a service with OpenAI's interface, such as "http://localhost:11434/v1". Its key is the
                environment variable TOPICLOOM_LLM_KEY or, for api.openai.com, also OPENAI_API_KEY.
            model: the name of the language model there, or several names, whose agreement is reported.
            topics: the topics to rate, by number or name; None is all.
            n_questions: how many planted words each topic is asked about.
            n_documents: the number of typical documents of a topic, and of planted ones; 0 asks about words alone.
            repeats: in how many orders each question is asked.
            length: the most characters of a document.
            random_state: the seed of the intruders and of the orders.
            timeout: the seconds to wait for an answer; None is 120.
            progress: whether a bar on standard error shows how many questions are answered.

        Raises:
            InputError: there is no such topic, or the service gives no usable answer.
            SettingError: an argument cannot have its value.

        Examples:
            `topics.rate("http://localhost:11434/v1", "llama3.1")` asks a model on this machine.

            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> tl.Topics(tl.LDA(3, random_state=0).fit(texts), texts).rate("localhost", "llama3.1")
            Traceback (most recent call last):
            topicloom.errors.SettingError: `llm='localhost'` should be an address such as http://localhost:11434/v1
        """
        from .language_model import LanguageModel
        from .rating import rated

        require_whole("n_questions", n_questions)
        require_whole("n_documents", n_documents, 0)
        require_whole("repeats", repeats)
        require_seed(random_state)
        models = list(dict.fromkeys([model] if isinstance(model, str) or not isinstance(model, Iterable) else model))
        if not models:
            raise SettingError("`model` names no language model; give one, such as gpt-4o-mini or llama3.1")
        asked = [LanguageModel(llm, each, self.answers, timeout) for each in models]
        chosen = list(range(self.n_topics)) if topics is None else [self.number_of(each) for each in _each(topics)]
        questions = self._rating_questions(chosen, n_questions, n_documents, repeats, length, random_state)
        words = self._topics.topics(_SHOWN_WORDS, written=True)
        about = {"seed": random_state, "questions": n_questions, "documents": n_documents, "repeats": repeats}
        found = rated(asked, questions, {k: self.names[k] for k in chosen}, words, about, progress=progress)
        if self._run is not None or self.answers.path is None:  # a run keeps no ratings of its topics after edits
            self.answers.keep_ratings(found.to_dict(), ("models", *about))
        return found

    def replay(self, other: Any, *, threshold: float = DEFAULT_THRESHOLD, allow: Iterable[str] = ()) -> Topics:
        """Return a view with the edits of another model, such as those that last month's topics were given.

        The topics of both trained models are matched. Edits of topics without a counterpart are left out, and a warning
        says so. Another warning names the edited topics whose counterparts resemble them little.

        Args:
            other: an edited run, as a path, or an edited view or model.
            threshold: the similarity, from 0 to 1, below which a topic has no counterpart.
            allow: if `other` is a path, the names of modules outside the package that may be imported for its model.

        Raises:
            InputError: there is no such run, it was not edited, or the two have no or hardly any words in common.
            SettingError: `other` cannot have edits, or `threshold` is not from 0 to 1.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> old, new = (tl.Topics(tl.LDA(3, random_state=seed).fit(texts), texts) for seed in (0, 1))
            >>> weather = old.find_topics("rain")["topic"][0]
            >>> new.replay(old.rename({weather: "weather"})).find_topics("rain")["name"][0]
            'weather'
        """
        what = other if isinstance(other, str | Path) else "the other model"
        if isinstance(other, str | Path):
            other = load_model(Path(other), "cpu", allow)
        edited = other.model if isinstance(other, Topics) else other
        if not hasattr(edited, "edits"):
            raise SettingError(f"`other` should be an edited run, as a path, a view or a model; it is {other!r:.60}")
        if not edited.edits:
            raise InputError(f"the topics of {what} have neither names nor other edits; edit or name them first")
        matches = self.match(edited.origin, threshold=threshold)
        matches.require_shared()
        if weak := matches.weak(numbers_in(edited.edits)):
            logger.warning(
                "these topics stand for old ones that they resemble little (similarity in parentheses): %s; look at "
                "them before you use their names and merges",
                ", ".join(f"{pair.topic} for {pair.old} ({pair.similarity:.2f})" for pair in weak),
            )
        return self.apply(edited.edits, matching=matches.counterparts())

    # Exporting: the data of other programs.

    def to_pyldavis(self) -> dict[str, Any]:
        """Return the arguments of pyLDAvis: `pyLDAvis.prepare(**topics.to_pyldavis())`.

        Topics keep their numbers, from 0. Documents without a known word are left out.

        Raises:
            InputError: there is only one topic, or no document has a known word.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(texts), texts)
            >>> topics.to_pyldavis()["doc_topic_dists"].shape
            (24, 3)
        """
        from .export import pyldavis_data

        return pyldavis_data(self.components, self.written_words, self.corpus, self.documents.theta)

    def to_topicwizard(self) -> dict[str, Any]:
        """Return the TopicData of topicwizard: `topicwizard.visualize(topic_data=topics.to_topicwizard())`.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(texts), texts)
            >>> topics.to_topicwizard()["topic_term_matrix"].shape
            (3, 9)
        """
        from .export import topicwizard_data

        def transform(texts: Sequence[str]) -> Array:
            return np.asarray(self.model.transform(list(texts)))

        return topicwizard_data(
            self.components, self.written_words, self.corpus, self.documents.theta, self.names, transform
        )

    def to_datamapplot(
        self,
        coordinates: Any = None,
        *,
        space: Space = "auto",
        layout: Layout = "tsne",
        least_share: float = 0.0,
        random_state: int = 0,
    ) -> dict[str, Array]:
        """Return arrays for DataMapPlot: `create_plot(data["coordinates"], data["labels"])`.

        Args:
            coordinates: (n_docs, 2) the places of the documents, such as those of UMAP; None computes them.
            space: what documents that are near each other have in common, where coordinates are computed: their vectors
                ("vectors") or their topic shares ("theta"). "auto" is "vectors" if the documents have any.
            layout: "tsne" or "pca" of the vectors with length 1, or of the square roots of theta.
            least_share: a document whose largest share is smaller is "Unlabelled".
            random_state: the seed of t-SNE.

        Returns:
            coordinates (n_docs, 2), labels (n_docs,), topics (n_docs,) and hover_text (n_docs,).

        Raises:
            InputError: `space` is "vectors", and the documents have none.
            SettingError: the coordinates have another shape, or the space or the layout does not exist.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(texts), texts)
            >>> topics.to_datamapplot(layout="pca")["coordinates"].shape
            (24, 2)
        """
        from .export import datamapplot_data, space_of, texts_or_words

        vectors = self.corpus.vectors if space_of(self.corpus, space) == "vectors" else None
        return datamapplot_data(
            self.documents, self.names, texts_or_words(self.corpus), coordinates, vectors=vectors, layout=layout,
            least_share=least_share, random_state=random_state,
        )  # fmt: skip

    def save_pyldavis(self, path: str | Path) -> None:
        """Write the arguments of `pyLDAvis.prepare` as JSON, such as `topics.save_pyldavis("topics.json")`.

        Args:
            path: the file, which is replaced.

        Raises:
            InputError: there is only one topic, or no document has a known word.

        Examples:
            >>> import tempfile, topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(texts), texts)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     topics.save_pyldavis(f"{folder}/topics.json")
        """
        from .export import write_json

        write_json(Path(path), self.to_pyldavis())

    def save_topicwizard(self, path: str | Path) -> None:
        """Write a file for `topicwizard.app.load_app`, such as `topics.save_topicwizard("topics.joblib")`.

        Args:
            path: the file, which is replaced. It is a pickle of joblib.

        Examples:
            >>> import tempfile, topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(texts), texts)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     topics.save_topicwizard(f"{folder}/topics.joblib")
        """
        from .export import write_topicwizard

        write_topicwizard(Path(path), self.to_topicwizard(), self.documents)

    def save_datamapplot(self, path: str | Path, **options: Any) -> None:
        """Write the arrays of `to_datamapplot` as a NumPy archive, such as `topics.save_datamapplot("map.npz")`.

        Args:
            path: the file, which is replaced.
            options: the arguments `coordinates`, `space`, `layout`, `least_share` and `random_state` of
                `to_datamapplot`.

        Raises:
            InputError: `space` is "vectors", and the documents have none.
            SettingError: the coordinates have another shape, or the space or the layout does not exist.

        Examples:
            >>> import tempfile, topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(texts), texts)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     topics.save_datamapplot(f"{folder}/map.npz", layout="pca")
        """
        from .export import write_datamapplot

        write_datamapplot(Path(path), self.to_datamapplot(**options))

    # Helpers: tokens, rows and columns of the documents and of the vocabulary.

    def _document_row(self, row: int, k: int, length: int | None) -> dict[str, Any]:
        """Return a document as a row of the table of documents of a topic."""
        columns = self._typical_words(row, k)
        return {
            **_known_of(self.documents, row),
            "share": float(self.documents.theta[row, k]),
            "words": [self.written_words[word] for word in columns],
            "text": self._text_of(row, [self.vocabulary[word] for word in columns], length),
        }

    def _text_of(self, row: int, words: Sequence[str], length: int | None) -> str | None:
        """Return the text of a document, or its passage with the most of these words; None if it is not known."""
        texts = self.documents.texts
        if texts is None or length is None:
            return None if texts is None else texts[row]
        return excerpt(texts[row], words, length, fold_of(self.corpus.tokenizer))

    def _typical_words(self, row: int, k: int) -> list[int]:
        """Return the columns of the words of a document that are most typical of a topic, best first."""
        from .typical import typical_words

        counts = self.corpus.counts
        place = slice(counts.indptr[row], counts.indptr[row + 1])
        theta = self.documents.theta[row]
        return typical_words(counts.indices[place], counts.data[place], theta, self.components, self.word_counts, k)

    def _other_name(self, covariate: str) -> str | None:
        """Return the column of the labels, unless `covariate` is known without it."""
        return None if covariate in ("class", *self.documents.fields.covariates) else self.label_column

    def _words_by(self, topic: Any, column: str, groups: Array, group_names: Sequence[str], n_words: int) -> Table:
        from .shares import words_by_group

        require_whole("n_words", n_words)
        return words_by_group(
            self.corpus.counts, self.documents.theta, self.components, self.written_words, groups, group_names,
            self.number_of(topic), column, n_words,
        )  # fmt: skip

    def _names_by(
        self, rule: Rule | Namer, topics: Sequence[int], n_words: int, n_documents: int, length: int
    ) -> dict[int, str]:
        """Return names for topics; the arguments are those of `name`."""
        from .naming import names_by_function, names_by_phrase, names_by_words

        if callable(rule):
            return names_by_function(rule, *self._for_naming(topics, n_words, n_documents, length), topics)
        ranked = self._topics.word_ids(_NAMING_WORDS)
        names = names_by_words(self.components, ranked.tolist(), self.written_words)
        if rule == "phrase" and self.documents.texts is not None:
            names = names_by_phrase([self._phrases(k, ranked[k]) for k in range(len(names))], names)
        return {k: names[k] for k in topics}

    def _for_naming(
        self, topics: Sequence[int], n_words: int, n_documents: int, length: int
    ) -> tuple[list[list[str]], list[list[str]]]:
        """Return the words and the excerpts of typical documents of topics; a topic that is not asked for has none."""
        words = self._topics.topics(n_words, written=True)
        texts: list[list[str]] = [[] for _ in words]
        if self.documents.texts is not None and n_documents:
            for k in topics:
                texts[k] = list(self.documents_of(k, n_documents, length=length)["text"])
        return words, texts

    def _rating_questions(
        self, topics: Sequence[int], n_questions: int, n_documents: int, repeats: int, length: int, seed: int
    ) -> list[RatingQuestion]:
        """Return the questions of `rate`."""
        from .rating import document_questions, planted_documents, word_questions

        components, ranked = self.components, self._topics.word_ids(_NAMING_WORDS)
        found = word_questions(components, ranked, self.written_words, topics, n_questions, repeats, seed)
        documents = self.documents
        if documents.texts is None or not n_documents:
            return found
        typical: dict[int, list[int]] = {}
        planted: dict[int, list[int]] = {}
        excerpts: dict[tuple[int, int], str] = {}
        for k in topics:
            typical[k] = self.typical.diverse(k, n_documents).tolist()
            planted[k] = planted_documents(documents.theta, documents.empty, k, len(typical[k]), seed)
            known = [self.vocabulary[word] for word in ranked[k]]
            for row in (*typical[k], *planted[k]):
                excerpts[k, row] = self._text_of(row, known, length) or ""
        words = self._topics.topics(_SHOWN_WORDS, written=True)
        return [*found, *document_questions(typical, excerpts, planted, words, repeats, seed)]

    def _phrases(self, k: int, ranked: Array) -> list[list[Phrase]]:
        """Return the phrases of the most typical documents of a topic, which consist of its words."""
        from .naming import phrases_of

        texts = self.documents.texts
        assert texts is not None
        known = frozenset(self.vocabulary[word] for word in ranked)
        rows = self.typical.ranked(k, _NAMING_DOCUMENTS).tolist()
        fold = fold_of(self.corpus.tokenizer)
        return [phrases_of(text, self._split(text) or [], known, fold) for text in (texts[row] for row in rows)]

    @cached_property
    def _search(self) -> VectorSearch:
        return VectorSearch(self.corpus)

    def _theta_of_nearest(self, text: str) -> Array | None:
        """Return the mean theta (K,) of the documents nearest to a text; None if its vector is not known."""
        if self.corpus.vectors is None or self.corpus.encoder is None:
            return None
        try:
            similarity = self._search.similarities(text)
        except InputError:  # the encoder cannot be used here
            return None
        rows = np.flatnonzero((similarity > 0) & ~self.documents.empty)
        rows = rows[np.argsort(-similarity[rows], kind="stable")[:_NEAREST_DOCUMENTS]]
        if not len(rows):
            return None
        weights = similarity[rows].astype(np.float64)
        mean: Array = weights @ np.asarray(self.documents.theta[rows], np.float64) / weights.sum()
        return mean

    def _coloured(self, corpus: Corpus, found: DocumentTopics, row: int) -> ColouredText:
        """Return the tokens of a document of a corpus with their topics."""
        from .coloured import coloured_text

        text = None if found.texts is None else found.texts[row]
        words = None if text is None else self._split(text)
        if corpus.fields.tokens is not None:
            words, text = list(corpus.fields.tokens[row]), None
        elif words is None:
            begin, end = corpus.counts.indptr[row : row + 2]
            words, text = [corpus.vocabulary[word] for word in corpus.counts.indices[begin:end]], None
        elif text is not None and getattr(corpus.tokenizer, "strip_html", False):
            text = without_html(text)
        theta = np.asarray(found.theta[row], np.float64)
        names, fold = list(self.names), fold_of(corpus.tokenizer)
        return coloured_text(text, words, self._columns, theta, self.components, names, fold)

    @cached_property
    def _folded_names(self) -> list[str]:
        """The names of topics with the words of the vocabulary."""
        return replace(self._topics, spellings={}).topic_names

    @cached_property
    def _columns(self) -> dict[str, int]:
        """The column of each word."""
        return {word: column for column, word in enumerate(self.vocabulary)}

    def _known_word(self, query: str) -> int | None:
        """Return the column of a query that is a single word which the model knows."""
        written = query.strip()
        if written in self._columns:
            return self._columns[written]
        tokens = self._split(written)
        return self._columns.get(tokens[0]) if tokens is not None and len(tokens) == 1 else None

    def _warn_of_unknown(self, text: str) -> None:
        tokens = dict.fromkeys(self._split(text) or ())
        unknown = [token for token in tokens if token not in self._columns]
        if unknown:
            shown = ", ".join(map(repr, unknown[:_UNKNOWN_WORDS_SHOWN]))
            more = ", ..." if unknown[_UNKNOWN_WORDS_SHOWN:] else ""
            logger.warning("words that the model does not know are left out: %s", shown + more)

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
        """The first row of each id."""
        return {name: row for row, name in reversed(list(enumerate(self.documents.ids)))}


def _known_of(found: DocumentTopics, row: int) -> dict[str, Any]:
    """Return what tables of documents say about each: its row, id, label and time; None for what is not known."""
    labels, times = found.labels, found.times
    return {
        "document": row,
        "id": found.ids[row],
        "label": None if labels is None else labels[row],
        "time": None if times is None or np.isnat(times[row]) else times[row].item(),
    }


def _beginning(text: str, length: int | None) -> str:
    return text if length is None else excerpt(text, (), length)


def _saved_topics(other: Any) -> SavedTopics:
    """Return the topics of a run, a view or a model."""
    if isinstance(other, str | Path):
        return read_topics(other)
    if isinstance(other, Topics):
        return other._topics
    if not hasattr(other, "components_"):
        raise SettingError(f"`other` should be an older run, as a path, a view or a fitted model; it is {other!r:.60}")
    return _topics_of(other)


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
    return SavedTopics(
        model.components_, model.vocabulary_, model.word_counts_, model.given_names, getattr(model, "spellings_", {}),
        getattr(model, "n_documents_", None),
    )  # fmt: skip


def _itself(model: Any) -> Any:  # which can be pickled, as a lambda cannot
    return model
