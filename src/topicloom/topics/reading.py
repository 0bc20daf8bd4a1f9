"""Reading: the methods of `Topics` that show what topics are about: words, documents, tokens and search."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from ..corpus import Corpus
from ..errors import InputError, SettingError, similar
from ..metrics import document_npmi
from ..settings import require_whole
from ..text import Pretokenized
from ..text.markup import strip_html
from ..text.spans import excerpt, token_spans
from .base import View
from .coloured import ColouredText, Token
from .document_topics import DocumentTopics
from .naming import Namer, Phrase, Rule, names_by_function, names_by_phrase, names_by_words, phrases_of
from .saved import SavedTopics
from .similarity import diverse
from .table import Table

logger = logging.getLogger("topicloom")

Array = npt.NDArray[Any]
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
            text = strip_html(text) if getattr(corpus.tokenizer, "strip_html", False) else text
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
