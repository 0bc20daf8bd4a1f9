"""A run in the service: its model, its documents, their index, and the edits.

`Live` holds one `ServedState`. It is never changed, only replaced as a whole, so that each answer comes from one model
with one list of edits.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import re
import tempfile
import threading
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..corpus import Corpus
from ..corpus.fields import Fields
from ..errors import InputError, ModelFileError
from ..files import FileIdentity, file_digest, file_identity, lock_directory, plain_file
from ..messages import counted
from ..text import AnyTokenizer
from ..text.counting import counts_of
from ..topics.document_topics import DocumentTopics
from ..topics.edits import Edit, checked_edits, read_edits, write_edits
from ..topics.saved import CONFIG, DOCUMENTS, EDITS, INDEX, find_model, read_metrics, read_shares, read_stored
from ..topics.search import VectorSearch, with_encoder
from ..topics.view import Topics
from .guard import Limits
from .index import DocumentIndex, ReplacedError, Tokenize, build_index, is_current, query_words

logger = logging.getLogger("topicloom")

# Edits. They are stored in edits.yaml in the run directory.


class ConflictError(InputError):
    """The edits were changed in the meantime."""


class NotWritableError(InputError):
    """The edits cannot be stored."""


class BusyError(InputError):
    """Another process is writing to the run directory."""


def stored_edits(run: Path, topics: Topics) -> Topics:
    """Return the topics of a run after the edits that are stored in its directory.

    Args:
        run: the run directory.
        topics: the topics of the run's model.

    Raises:
        ModelFileError: the file of edits is damaged.
        InputError: the file belongs to another model.
    """
    path = run / EDITS
    if not path.exists():
        return topics
    try:
        file = read_edits(plain_file(run, EDITS, ModelFileError))
    except InputError as error:
        raise ModelFileError(str(error)) from None
    origin = topics.model.origin
    if origin is not topics.model and file.fingerprint == origin.fingerprint:  # the run's model was edited before
        return applied(Topics(origin, topics.corpus), file.edits)
    file.check(topics.model.fingerprint, path)
    return applied(topics, file.edits)


def store_edits(run: Path, topics: Topics) -> None:
    """Write the edits of edited topics into the run's directory.

    Raises:
        NotWritableError: the file cannot be written.
    """
    model = topics.model
    try:
        write_edits(run / EDITS, model.edits, model.origin.fingerprint, sealed=True)
    except OSError as error:
        raise NotWritableError(f"{EDITS} cannot be written into the run directory ({error.strerror})") from None


def new_edits(given: Iterable[Mapping[str, Any]], most: int) -> list[Edit]:
    """Check the edits of a request.

    Raises:
        InputError: there are too many edits, an edit is malformed, or it would take too long for a request.
    """
    given = list(given)
    if len(given) > most:
        raise InputError(f"there are {len(given):,} edits; send at most {most:,}")
    edits = checked_edits(given)
    if any("split" in edit for edit in edits):
        raise InputError("a topic cannot be split here, because that takes long; use `topicloom edit`")
    if any("add" in edit for edit in edits):
        raise InputError("a topic cannot be added here, because that takes long; use `topicloom update`")
    return edits


def applied(topics: Topics, edits: list[Edit]) -> Topics:
    """Return topics after edits."""
    if len(topics.documents):
        return topics.apply(edits)
    return Topics(topics.model.apply(edits), topics.corpus)


def version_of(topics: Topics) -> str:
    """Return a text that identifies the model and its edits."""
    written = json.dumps([topics.model.origin.fingerprint, topics.edits], sort_keys=True)
    return hashlib.sha256(written.encode()).hexdigest()[:12]


# Keyset pagination: a page is the part of a sorted list of documents that comes after a document.

_CURSOR = re.compile(r"([0-9a-f]{8}):(-?[0-9][0-9.e+-]{0,40}):([0-9]{1,15})")


class PageKey(NamedTuple):
    """The place of a document in a sorted list."""

    value: float
    row: int

    def written(self, question: Any) -> str:
        """Return the place as text.

        Args:
            question: a value whose `repr` identifies the list.
        """
        return f"{_mark(question)}:{self.value!r}:{self.row}"

    @classmethod
    def parse(cls, text: str, question: Any) -> PageKey:
        """Read a text that `written` returned for the same list.

        Raises:
            InputError: the text is not such a place, or it is a place in another list.
        """
        found = _CURSOR.fullmatch(text)
        try:
            key = cls(float(found[2]), int(found[3])) if found and found[1] == _mark(question) else None
        except ValueError:
            key = None
        if key is None or not math.isfinite(key.value):
            raise InputError(
                "`after` should be the value of `next` in an earlier answer to the same `topic`, `q`, `id`, `label` "
                "and `like`"
            )
        return key


def _mark(question: Any) -> str:
    return hashlib.sha256(repr(question).encode("utf-8", "backslashreplace")).hexdigest()[:8]


def following(rows: npt.NDArray[Any], after: PageKey | None, n: int) -> list[PageKey]:
    """Return the first documents after a place, in the order of their rows.

    Args:
        rows: (D,) the rows of the documents, in ascending order.
        after: where the list begins; None is its start.
        n: the length of the list.
    """
    start = 0 if after is None else int(np.searchsorted(rows, after.row, "right"))
    return [PageKey(0.0, row) for row in rows[start : start + n].tolist()]


def largest(values: npt.NDArray[Any], rows: npt.NDArray[Any], after: PageKey | None, n: int) -> list[PageKey]:
    """Return the documents with the largest values, largest first; of equal ones, the lower row comes first.

    Args:
        values: (D,) a number for each document.
        rows: (D,) the rows of the documents.
        after: where the list begins; None is its start.
        n: the length of the list.
    """
    if after is not None:
        last = np.asarray(after.value, values.dtype)
        later = (values < last) | ((values == last) & (rows > after.row))
        values, rows = values[later], rows[later]
    if len(values) > n:
        floor = -np.partition(-values, n - 1)[n - 1]  # the n-th largest value, so that few are sorted
        kept = values >= floor
        values, rows = values[kept], rows[kept]
    order = np.lexsort((rows, -values))[:n]
    return [PageKey(float(values[i]), int(rows[i])) for i in order]


_WORDS_PER_TOPIC = 10
_TOPICS_PER_DOCUMENT = 3


class ServedState:
    """A model and its documents after some edits.

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
        self._orders: dict[int, npt.NDArray[np.float32]] = {}
        _ = self.table  # computed now, because it would take too long in a request

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
        ids = self.model.topic_ids(_WORDS_PER_TOPIC)
        probabilities = np.take_along_axis(self.model.components_, ids, axis=1).tolist()
        words = self.topics.written_words
        return [
            [(words[word], p) for word, p in zip(row, values, strict=True)]
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

    def order(self, topic: int) -> npt.NDArray[np.float32]:
        """Return numbers by which documents are sorted for a topic, (n_docs,), the most typical with the highest."""
        if topic not in self._orders:
            self._orders[topic] = self.topics.typical.order(topic)
        return self._orders[topic]

    def corpus_of(self, texts: Sequence[str] | Sequence[list[str]]) -> Corpus:
        """Return texts as a corpus over the model's words. The columns of words are looked up once for all calls."""
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
        for k in np.argsort(-theta, kind="stable")[:_TOPICS_PER_DOCUMENT].tolist():
            topic = {"topic": k, "name": self.topics.names[k], "share": float(theta[k])}
            found.append(topic | {"words": [word for word, _ in self.words[k]]} if words else topic)
        return found


_EXCERPT_CHARACTERS = 300  # characters of a document's text in a list


class NotKeptError(InputError):
    """The run does not keep data that an answer needs."""


class NoSuchDocumentError(InputError):
    """The run has no document of this number."""


class Live:
    """A run from which the service answers. All methods can be called by many threads at once.

    Args:
        run: the run directory.
        state: its model and documents before the edits that are stored in its directory.
        index: the documents with full-text search; None if the run keeps no documents.
        limits: the limits of requests.
        temporary: a temporary directory that holds the index, which `close` removes.
        search: the documents' vectors; None if they have none, or if their encoder is not known.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> import topicloom as tl
        >>> from topicloom.service import Live
        >>> model = tl.GSM(2, epochs=1).fit([["sea", "ship"], ["fox", "wood"]] * 10)
        >>> with TemporaryDirectory() as folder:
        ...     model.save(folder + "/model")
        ...     live = Live.open(folder + "/model")
        >>> live.topics()["n_topics"], len(live.infer([["sea"]])["documents"])
        (2, 1)
    """

    def __init__(
        self,
        run: Path,
        state: ServedState,
        index: DocumentIndex | None,
        limits: Limits,
        temporary: tempfile.TemporaryDirectory[str] | None = None,
        search: VectorSearch | None = None,
    ) -> None:
        self.search = search
        self.run, self.start, self.index, self.limits = run, state, index, limits
        self.state = state
        self.metrics = read_metrics(run)
        self._model = _digest_of_model(run)
        self._temporary = temporary
        self._editing = threading.Lock()
        self._stored: str | None = None  # the digest of edits.yaml when this service last read or wrote it
        self._seen: FileIdentity | None = None  # the file of this name that it last looked at

    @classmethod
    def open(
        cls,
        run: str | Path,
        limits: Limits | None = None,
        *,
        device: str = "cpu",
        allow: Iterable[str] = (),
        tokenizer: Callable[[str], Iterable[str]] | None = None,
        encoder: Any = None,
    ) -> Live:
        """Read a run, and build the index of its documents unless there is one.

        Args:
            run: a run directory of `topicloom train`, or a saved model.
            limits: the limits of requests.
            device: where the model computes, such as "cpu" or "cuda".
            allow: modules that may be imported for your own classes and functions that the model needs.
            tokenizer: your own function that splits texts, if the model was trained with one.
            encoder: what gave the documents their vectors, as `TextEncoder.of` takes it, if the run does not name it,
                or if it is a function.

        Raises:
            InputError: there is no model, a file is damaged, or edits.yaml belongs to another model.
        """
        from ..models.loading import load

        run, limits = Path(run), limits or Limits()
        model = load(run, device=device, allow=allow, tokenizer=tokenizer, encoder=encoder)
        if _tokenize(model.tokenizer_) is None:
            logger.warning(
                "the tokenizer of this model is not here, so only lists of tokens can be inferred; name its module by "
                "`allow` if it is your own function"
            )
        if not (run / DOCUMENTS).is_dir():
            logger.warning("%s keeps no documents, so the service infers and shows topics only", run)
            shares = read_shares(run, len(model.components_))
            return cls(run, ServedState(Topics(model, []), shares), None, limits).edited()
        corpus, documents = read_stored(run, model.vocabulary_, len(model.components_))
        corpus = replace(corpus, tokenizer=model.tokenizer_)  # it may be a function that was passed to `open`
        corpus = with_encoder(corpus, model.encoder_)
        topics = Topics.of(model, corpus, documents)
        if topics.corpus.texts is None:
            logger.warning("the texts of %s were not kept: documents have no text, and words are searched", run)
        path, digest, temporary = _index_of(run, topics, _tokenize(model.tokenizer_))
        index = DocumentIndex(path, limits.seconds, digest)
        search = None if corpus.vectors is None or corpus.encoder is None else VectorSearch(corpus)
        return cls(run, ServedState(topics), index, limits, temporary, search).edited()

    def edited(self) -> Live:
        """Apply the edits that are stored in the run directory, and return this object."""
        try:
            self._read_edits()
        except InputError:
            self.close()
            raise
        return self

    def _read_edits(self) -> None:
        self._seen, stored = file_identity(self.run / EDITS), _digest_of_edits(self.run)
        topics = stored_edits(self.run, self.start.topics)
        self.state = self.start if topics is self.start.topics else ServedState(topics)
        self._stored = stored

    @property
    def is_stale(self) -> bool:
        """Whether another service, or a person, has changed the file of edits."""
        return file_identity(self.run / EDITS) != self._seen

    def refresh(self) -> None:
        """Apply the edits that the file has by now.

        The topics stay as they are if it cannot be read, or if another run is in the directory.
        """
        with self._editing:
            seen = file_identity(self.run / EDITS)
            if seen == self._seen:
                return
            if _digest_of_model(self.run) == self._model and _digest_of_edits(self.run) != self._stored:
                try:
                    self._read_edits()
                except InputError as error:
                    logger.warning("the topics are shown without the edits that were stored last: %s", error)
            self._seen = seen

    def close(self) -> None:
        """Close the index."""
        if self.index is not None:
            self.index.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    def topics(self) -> dict[str, Any]:
        """Return the topics, and what the page needs to know about the run."""
        now = self.state
        return {
            "run": self.run.resolve().name,
            "model": type(now.model).__name__,
            "n_topics": now.n_topics,
            "n_documents": len(now.theta),
            "n_words": len(now.model.vocabulary_),
            "has_documents": self.index is not None,
            "has_texts": now.topics.corpus.texts is not None and self.index is not None,
            "has_meaning": self.search is not None,
            "version": now.version,
            "topics": now.table,
        }

    def infer(self, texts: Sequence[str] | Sequence[list[str]]) -> dict[str, Any]:
        """Return the topics of texts. Their shares are those of `model.transform(texts)`.

        Raises:
            InputError: the model cannot infer texts alone.
        """
        now = self.state
        found = now.infer(texts)
        documents = [
            {"theta": theta.tolist(), "empty": empty, "topics": now.main_topics(theta, words=True)}
            for theta, empty in zip(found.theta, found.empty.tolist(), strict=True)
        ]
        return {"n_topics": now.n_topics, "version": now.version, "documents": documents}

    def documents(
        self,
        topic: int | None,
        query: str | None,
        id: str | None,
        after: str | None,
        n: int,
        label: str | None = None,
        like: str | None = None,
    ) -> dict[str, Any]:
        """Return a page of documents.

        With `like`, those that are nearest to it in meaning come first, and documents without a vector are left out.
        With a topic, those that are most typical of it come first, and empty documents are left out. With a query
        alone, those that match it best come first. Otherwise they are in the order of the run.

        Args:
            topic: the number of a topic. With `like`, its share is more than 1/K in each document.
            query: words that each document has, or its id or a part of its id. Documents with this id come first. A
                query in quotation marks is not searched for in ids.
            id: the id that each document has.
            after: the start of the page: `next` of an earlier page of the same topic, query, id, label and text.
            n: the most documents on the page.
            label: the class that each document has.
            like: a text, with whose meaning documents are compared by their vectors.

        Raises:
            NotKeptError: the run keeps no documents; or, with `like`, no vectors of an encoder that is known.
            InputError: there is no such topic, the encoder cannot encode the text, or `after` is not from such a page.
        """
        now, index = self.state, self._documents()
        k = None if topic is None else now.topics.number_of(topic)
        words = None if query is None else query_words(query.replace('"', " "), _tokenize(now.model.tokenizer_))
        part = "" if query is None or '"' in query else query.strip()
        question = (k, words, part, id, label, *(() if like is None else (like,)))
        key = None if after is None else PageKey.parse(after, question)
        most = n + 1  # one more than is shown, to know whether there is another page
        n_matching = index.count(words) if words else 0
        by_id, keys = index.containing_id(part, common=not n_matching), list[PageKey]()
        similarity = None if like is None else self._similarities(like)
        if words == [] and not by_id:
            total = 0
        elif words is not None and k is None and id is None and label is None and like is None:
            keys, total = (
                _best(index, words, by_id, key, most)
                if by_id
                else ([PageKey(*each) for each in index.ranked(words, key, most)], n_matching)
            )
        else:
            rows = np.arange(len(now.theta)) if k is None else now.rows
            if id is not None:
                rows = np.intersect1d(rows, index.having_id(id), assume_unique=True)
            if label is not None:
                rows = np.intersect1d(rows, index.having_label(label), assume_unique=True)
            if words is not None:
                matching = np.array([row for _, row in by_id], np.intp)
                if words:
                    matching = np.union1d(matching, index.matching(words))
                rows = np.intersect1d(rows, matching, assume_unique=True)
            if similarity is not None:
                assert self.search is not None
                rows = np.intersect1d(rows, self.search.rows, assume_unique=True)
                rows = rows if k is None else rows[now.theta[rows, k] > 1 / now.n_topics]
                keys = largest(similarity[rows], rows, key, most)
            else:
                keys = following(rows, key, most) if k is None else largest(now.order(k)[rows], rows, key, most)
            total = len(rows)
        found = index.documents([key.row for key in keys[:n]])
        return {
            "total": total,
            "next": keys[n - 1].written(question) if len(keys) > n else None,
            "words": words,
            "version": now.version,
            "documents": [
                self._shown(now, each, _EXCERPT_CHARACTERS)
                | ({} if similarity is None else {"similarity": float(similarity[each.row])})
                for each in found
            ],
        }

    def document(self, row: int, pieces: bool = False) -> dict[str, Any]:
        """Return a document with its whole text and its shares of all topics.

        Args:
            row: the number of the document.
            pieces: whether to return its text in pieces as well, with the topic of each token. A document longer than
                the limit on texts has no pieces.

        Raises:
            NotKeptError: the run keeps no documents.
            NoSuchDocumentError: there is no such document.
        """
        now, index = self.state, self._documents()
        if not 0 <= row < len(now.theta):
            raise NoSuchDocumentError(f"there is no document {row}; the documents are 0 to {len(now.theta) - 1}")
        whole = self._shown(now, index.documents([row])[0], None) | {
            "theta": now.theta[row].tolist(),
            "version": now.version,
        }
        coloured = None
        if pieces and len(whole["text"] or "") <= self.limits.characters:
            tokens = now.topics.topics_of(row).pieces()
            coloured = [{"text": text, "topic": None if token is None else token.topic} for text, token in tokens]
        return whole | {"pieces": coloured}

    def edits(self) -> dict[str, Any]:
        """Return the edits, numbered by the topics of the trained model."""
        now = self.state
        return {"edits": now.topics.edits, "version": now.version}

    def edit(self, edits: Iterable[Mapping[str, Any]], version: str | None, afresh: bool) -> dict[str, Any]:
        """Edit the topics, store the edits, and return all of them.

        Args:
            edits: the edits, numbered by the present topics, or with `afresh` by the topics of the run.
            version: the version of the topics for which they were made.
            afresh: whether to undo the earlier edits of the service first.

        Raises:
            ConflictError: `version` is not the present version, or another service or a person has changed the file of
                edits; the service then shows the topics after them.
            BusyError: another process is writing to the run directory.
            ReplacedError: another run has been written to the directory in the meantime.
            InputError: an edit cannot be applied, or the edits cannot be stored. The topics do not change.
        """
        checked = new_edits(edits, self.limits.edits)
        with self._editing, self._alone():
            now = self.state
            if version is not None and version != now.version:
                raise ConflictError("the edits were changed in the meantime; load the topics again")
            if _digest_of_model(self.run) != self._model:
                raise ReplacedError
            if _digest_of_edits(self.run) != self._stored:
                self._read_edits()
                raise ConflictError(f"{EDITS} was changed outside of this service; load the topics again")
            topics = applied((self.start if afresh else now).topics, checked)
            if (n_edits := len(topics.edits)) > self.limits.edits:
                raise InputError(f"there would be {n_edits:,} edits; at most {self.limits.edits:,} are stored")
            store_edits(self.run, topics)
            self._seen, self._stored = file_identity(self.run / EDITS), _digest_of_edits(self.run)
            self.state = ServedState(topics)
        return self.edits()

    def _alone(self) -> ExitStack:
        """Return a context in which no other process writes to the run directory."""
        stack = ExitStack()
        try:
            stack.enter_context(lock_directory(self.run))
        except InputError:
            raise BusyError("another program is writing to the run directory; try again later") from None
        return stack

    def _similarities(self, text: str) -> npt.NDArray[np.float32]:
        if self.search is None:
            raise NotKeptError(
                "the documents have no vectors of a known encoder, so they cannot be searched by meaning; search for "
                "words with q"
            )
        if not text.strip():
            raise InputError("`like` is empty; give a text")
        return self.search.similarities(text)

    @property
    def encodes(self) -> bool:
        """Whether texts are encoded before their topics are inferred, which may take long."""
        model = self.state.model
        return bool(model.reads_vectors and model.encoder_ is not None)

    def _documents(self) -> DocumentIndex:
        if self.index is None:
            raise NotKeptError("the run keeps no documents; train it again so that it keeps them")
        return self.index

    def _shown(self, now: ServedState, each: Any, most: int | None) -> dict[str, Any]:
        text = each.text
        return {
            "row": each.row,
            "id": each.id,
            "label": each.label,
            "time": each.time,
            "text": text if text is None or most is None else text[:most],
            "cut": text is not None and most is not None and len(text) > most,
            "empty": bool(now.empty[each.row]),
            "topics": [] if now.empty[each.row] else now.main_topics(now.theta[each.row]),
        }


def _best(
    index: DocumentIndex, words: list[str], by_id: list[tuple[float, int]], after: PageKey | None, n: int
) -> tuple[list[PageKey], int]:
    """Return documents with an id or with all words after a place, best first, and the number of all such documents."""
    ranks = {row: rank for rank, row in index.ranked(words, None, -1)} if words else {}
    found = sorted(PageKey(rank, row) for row, rank in (ranks | {row: rank for rank, row in by_id}).items())
    return found[0 if after is None else bisect_right(found, after) :][:n], len(found)


def _tokenize(tokenizer: AnyTokenizer) -> Tokenize | None:
    """Return a tokenizer, or None if it cannot split texts: it is made for tokens, or its function is not available."""
    try:
        tokenizer("")
    except InputError:
        return None
    return tokenizer


def _index_of(
    run: Path, topics: Topics, tokenize: Tokenize | None
) -> tuple[Path, str, tempfile.TemporaryDirectory[str] | None]:
    """Return the index of a run's documents, and its digest. Build the index if there is no current one."""
    digest = f"{_digest(run)} {tokenize is None}"
    path = run / INDEX
    if is_current(path, digest):
        return path, digest, None
    logger.info("building the index of %s", counted(len(topics.documents), "document"))
    try:
        build_index(path, digest, topics.corpus, tokenize)
        return path, digest, None
    except OSError as error:
        temporary = tempfile.TemporaryDirectory(prefix="topicloom-")
        path = Path(temporary.name) / INDEX
        logger.warning("%s cannot be written (%s); the index is in %s for now", run, error.strerror, temporary.name)
        build_index(path, digest, topics.corpus, tokenize)
        return path, digest, temporary


def _digest_of_model(run: Path) -> str | None:
    """Return a digest of the model in a directory, or None if there is no model."""
    try:
        return file_digest(find_model(run) / CONFIG)
    except (InputError, OSError):
        return None


def _digest_of_edits(run: Path) -> str | None:
    """Return a digest of the stored edits, or None if there are none."""
    try:
        return file_digest(run / EDITS)
    except OSError:
        return None


def _digest(run: Path) -> str:
    """Return a digest of a run's documents and of its model."""
    files = [find_model(run) / CONFIG, *sorted((run / DOCUMENTS).iterdir())]
    return hashlib.sha256("".join(f"{file.name} {file_digest(file)}\n" for file in files).encode()).hexdigest()
