"""New documents in a run: what is new in them, new topics beside the old ones, and the run with all documents."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..corpus import Corpus
from ..corpus.concatenation import can_split
from ..corpus.fields import Categories, Vectors, row_numbers
from ..corpus.inputs import documents_of_file
from ..errors import InputError
from ..files import as_path, holds_corpus, located, lock_directory
from ..messages import counted
from ..metrics import completion_split
from ..models.base import TopicModel
from ..settings import require_seed, require_whole
from ..text.counting import chunked, count_chunks
from ..text.reading import options_of_others
from ..topics.document_topics import DocumentTopics, require_known
from ..topics.edits import Edit, EditsFile, read_edits, translated
from ..topics.novelty import form_something_new
from ..topics.saved import (
    EDITS,
    TRAINED_ON,
    UPDATES,
    known_covariates,
    past_of,
    read_metrics,
    require_place,
    trained_on,
)
from ..topics.table import Table
from ..topics.view import Topics
from .run import RunOptions, write_edited

logger = logging.getLogger("topicloom")

USUAL = 0.05  # the share of the training documents that count as explained badly
_LEAST_LEFT = 0.1  # of a word's tokens, when those of a document are left out
_NAMED_WORDS = 10
_ENOUGH_WORDS = 10  # different words by which documents are the same, although other words of both are not compared
_FEWEST_OF_TOPIC = 5  # documents that form something new, for each new topic


@dataclass(frozen=True, eq=False)
class Update:
    """What `update` has added to a run, and what is new in it.

    Attributes:
        topics: the topics of the new run, with all documents.
        n_documents: how many documents were added; they are the last ones of `topics`.
        n_repeated: how many documents were left out, because the run had them already.
        new_words: the documents in which each new word is, most frequent first. A word is new if neither the model nor
            the earlier documents have it. None if the texts are not known.
        new_word_share: the share of the new words in the tokens of the documents; None if the texts are not known.
        badly_explained: (n_documents,) True for a document whose words the old topics predict worse than those of 95 %
            of the training documents; None if the model cannot predict held-out words.
        new_topics: the numbers of the new topics.
        unknown: what is not known of added documents although the run has it, such as "time" or a covariate, and of how
            many of them.

    Examples:
        >>> import topicloom as tl
        >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
        >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(texts), [*texts, "cat dog"])
        >>> found = tl.Update(topics, 1, 0, {}, 0.0, None, [])
        >>> list(found.table().columns)
        ['topic', 'name', 'before', 'added', 'new']
    """

    topics: Topics
    n_documents: int
    n_repeated: int
    new_words: dict[str, int] | None
    new_word_share: float | None
    badly_explained: npt.NDArray[np.bool_] | None
    new_topics: list[int]
    unknown: dict[str, int] = field(default_factory=dict)

    @property
    def badly_explained_share(self) -> float | None:
        """The share of the badly explained documents; None if it is not known."""
        return None if self.badly_explained is None else float(self.badly_explained.mean())

    def table(self) -> Table:
        """Return a row for each topic, with its share of the earlier documents and of those that were added."""
        documents, first = self.topics.documents, len(self.topics.documents) - self.n_documents
        earlier, added = documents[:first].shares, documents[first:].shares
        return Table(
            {
                "topic": list(range(len(self.topics))),
                "name": list(self.topics.names),
                "before": [float(share) for share in earlier],
                "added": [float(share) for share in added],
                "new": [topic in self.new_topics for topic in range(len(self.topics))],
            },
            "Shares of topics in the earlier documents and in those that were added",
        )

    def sentences(self) -> list[str]:
        """Return what is new, in sentences."""
        found = [f"{counted(self.n_documents, 'document')} added"]
        if self.n_repeated:
            found.append(f"{counted(self.n_repeated, 'document')} left out, because the run has them already")
        for name, n in self.unknown.items():
            which = "all of them" if n == self.n_documents else f"{n:,} of them"
            view = {"time": "the views over time leave", "class": "the views by class leave"}.get(
                name, "the views by it leave"
            )
            lacking = name if name in ("time", "class") else f"value of {name}"
            has, it = ("has", "it") if n == 1 else ("have", "them")
            found.append(f"{which} {has} no {lacking}, so {view} {it} out")
        if self.new_words is not None and self.new_word_share is not None:
            named = ", ".join(list(self.new_words)[:_NAMED_WORDS]) + (
                ", ..." if len(self.new_words) > _NAMED_WORDS else ""
            )
            words = counted(len(self.new_words), "new word") + (f": {named}" if named else "")
            found.append(f"{100 * self.new_word_share:.1f} % of the tokens are of {words}")
        if (share := self.badly_explained_share) is None:
            found.append("the model cannot predict held-out words, so it is not known how well the topics explain them")
        else:
            found.append(
                f"{100 * share:.1f} % of the documents are explained badly, that is, worse than "
                f"{100 * (1 - USUAL):.0f} % of the training documents"
            )
        return found

    def as_json(self) -> dict[str, Any]:
        """Return what is new as values for JSON; metrics.json has them for each update."""
        words = self.new_words
        return {
            "documents": self.n_documents,
            "repeated": self.n_repeated,
            "new_word_share": self.new_word_share,
            "new_words": None if words is None else len(words),
            "frequent_new_words": None if words is None else list(words)[:_NAMED_WORDS],
            "badly_explained": self.badly_explained_share,
            "new_topics": self.new_topics,
            "unknown": self.unknown,
        }


def update(
    run: str | Path,
    new: Any,
    *,
    new_topics: int = 0,
    out: str | Path | None = None,
    reading: Mapping[str, Any] | None = None,
    vectors: Vectors | None = None,
    encoder: Any = None,
    keep_repeated: bool = False,
    random_state: int = 0,
    device: str = "auto",
    allow: Iterable[str] = (),
    overwrite: bool = False,
    force: bool = False,
    options: RunOptions | None = None,
) -> Update:
    """Add documents to a run, and say what is new in them.

    The topics stay as they are, with their numbers, names and edits. Those of the new documents are inferred, and all
    files of the run are written anew, whole or not at all.

    Args:
        run: a run that keeps its documents.
        new: a file of documents, a tuple of files, a saved corpus, or documents in any form that `infer` takes.
        new_topics: how many topics are learned from the documents that form something new: by vectors or words, they
            are near to far more of the new documents than of the old ones. If these documents are too few, topics are
            learned from the badly explained ones. New topics come after the others.
        out: the directory of the new run; None replaces `run`.
        reading: how the file is read, where this differs from the training. Of the columns that only the training
            names, all but the text may be missing; `Update.unknown` says what the documents lack.
        vectors: (n_docs, E) the vectors of the new documents, by the encoder of the training documents.
        encoder: the encoder of the training documents, if the run does not name it.
        keep_repeated: whether documents that the run has already are added again.
        random_state: the seed of the new topics.
        device: where the model runs.
        allow: modules that may be imported for the model's class, its tokenizer or its encoder.
        overwrite: whether `out` may replace an earlier run.
        force: whether to go on even if most of the new documents contain no word that the model knows.
        options: what is written; None is what `run` has.

    Raises:
        InputError: the run or the documents cannot be read; the run has all of them; a document has the id of another
            one; or new topics are asked for, and too few documents are explained badly.
        SettingError: `new_topics` or `random_state` cannot have its value.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import topicloom as tl
        >>> from topicloom.reports.run import write
        >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
        >>> model = tl.LDA(3, random_state=0).fit(texts)
        >>> corpus = model.documents(texts)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = write(Path(folder, "run"), model, corpus, model.infer(corpus), 0.0)
        ...     found = tl.update(Path(folder, "run"), ["the cat and a virus", "a virus in the dog"])
        >>> found.n_documents, len(found.topics.documents), found.new_words
        (2, 26, {'virus': 2})
    """
    require_whole("new_topics", new_topics, 0)
    require_seed(random_state)
    source = as_path(run, "run")
    place = source if out is None else as_path(out, "out")
    if place.resolve() != source.resolve():
        require_place(place, overwrite)
    allow = (allow,) if isinstance(allow, str) else tuple(allow)
    with lock_directory(place):
        topics = Topics.from_run(source, device=device, allow=allow, encoder=encoder)
        about = read_metrics(source)
        model: TopicModel = topics.model
        given, files = _given(source, new, model, about, reading or {})
        if not len(given):
            raise InputError(f"{_named(files)} contains no document; give a file of documents")
        if vectors is not None:
            given = given.with_vectors(vectors)
        found = given if keep_repeated else _without_repeated(topics.corpus, given, files, source)
        n_repeated = len(given) - len(found)
        added = model.documents(found)
        if not force:
            require_known(int(added.is_empty.sum()), len(added), added.texts, model.tokenizer_)
        inferred, added = model.infer(added), _with_fields_of(topics.corpus, added)
        if not _have_ids(given):
            added = _numbered(topics.corpus, added)
        n_trained = len(topics.corpus) - sum(each["documents"] for each in about.get(UPDATES, []))
        badly = _badly_explained(model, topics.corpus[:n_trained], added)
        words, share = _new_words(topics.corpus, found, model)
        joined = Corpus.concatenate([topics.corpus, added], "first")
        theta = np.concatenate([topics.documents.theta, inferred.theta])
        empty = np.concatenate([topics.documents.empty, inferred.empty])
        whole, edits = Topics.of(model, joined, DocumentTopics(theta, empty, joined.fields)), []
        whole.answers = topics.answers
        if new_topics:
            forms_new = form_something_new(topics.corpus, added, model.tokenizer_, random_state)
            rows = _rows_to_learn_from(added, forms_new, badly, new_topics) + len(topics.corpus)
            edits = [{"add": new_topics, "rows": rows.tolist(), "random_state": random_state}]
            whole = whole.apply(edits)
        numbers = list(range(topics.n_topics, whole.n_topics))
        unknown = _unknown_fields(topics.corpus, added)
        result = Update(whole, len(added), n_repeated, words, share, badly, numbers, unknown)
        entry = result.as_json() | ({} if files is None else {"source": located(files)})
        updates = past_of(about) | {TRAINED_ON: trained_on(about), UPDATES: [*about.get(UPDATES, []), entry]}
        stored = _stored_edits(source, topics, whole, edits)
        write_edited(source, place, whole, options, updates, stored)
    return result


# The new documents


def _given(
    run: Path, new: Any, model: TopicModel, about: Mapping[str, Any], reading: Mapping[str, Any]
) -> tuple[Corpus, str | list[str] | None]:
    """Return the new documents, and the files that they are from."""
    if isinstance(new, tuple) and all(isinstance(each, str | Path) for each in new):
        files: str | list[str] = [str(each) for each in new]
    elif isinstance(new, str | Path):
        files = str(new)
    else:
        return (new if isinstance(new, Corpus) else model.documents(new, words_only=True)), None
    if holds_corpus(files):
        return Corpus.load(files), str(files)
    kinds = known_covariates(run) | model.origin.fields_
    options = trained_on(about).get("reading", {}) | reading
    optional = options_of_others(reading)
    found = next(documents_of_file(files, model.vocabulary_, model.tokenizer_, options, kinds, optional=optional))
    return found, files


def _unknown_fields(old: Corpus, new: Corpus) -> dict[str, int]:
    """Return what is not known of new documents although it is known of old ones, and of how many."""
    nothing = np.ones(len(new), np.bool_)
    missing: dict[str, npt.NDArray[np.bool_]] = {}
    if old.times is not None:
        missing["time"] = nothing if new.times is None else np.isnat(new.times)
    if old.labels is not None:
        missing["class"] = nothing if new.labels is None else np.array([not label for label in new.labels], np.bool_)
    for name in old.covariates:
        values = new.covariates.get(name)
        if values is None:
            missing[name] = nothing
        else:
            missing[name] = values.codes < 0 if isinstance(values, Categories) else np.isnan(values)
    return {name: int(where.sum()) for name, where in missing.items() if where.any()}


def _named(files: str | list[str] | None) -> str:
    if files is None:
        return "`new`"
    return files if isinstance(files, str) else f"{files[0]} and the other files"


def _without_repeated(old: Corpus, new: Corpus, files: str | list[str] | None, run: Path) -> Corpus:
    """Return the documents that a run does not have."""
    kept = _kept(old, new)
    if not len(kept):
        raise InputError(
            f"{run} has all {counted(len(new), 'document')} of {_named(files)} already; give others, or add them again "
            "by `keep_repeated=True`"
        )
    return new if len(kept) == len(new) else new[kept]


def _kept(old: Corpus, new: Corpus) -> npt.NDArray[np.intp]:
    """Return the rows of the new documents that are not among the old ones (`is_repeated`).

    Raises:
        InputError: a document has the id of another one.
    """
    if _have_ids(old, new):
        known = dict(zip(old.ids, _contents(old, new), strict=True))
        other = [
            name
            for name, content in zip(new.ids, _contents(new, old), strict=True)
            if name in known and not content.is_that_of(known[name], same_id=True)
        ]
        if other:
            raise InputError(
                f"{counted(len(other), 'document')} of the new ones have the id of a document in the run with another "
                f"text, such as {other[0]!r}; give each document an id of its own, or add them by `keep_repeated=True`"
            )
    return np.flatnonzero(~is_repeated(old, new))


def is_repeated(old: Corpus, new: Corpus) -> npt.NDArray[np.bool_]:
    """Return which of the new documents are among the old ones, (n_docs,).

    Documents are the same if they have the same id and text; without ids, if they have the same text and time, or the
    same text if one of the corpora has no times.
    """
    have_ids = _have_ids(old, new)
    marks = [corpus.ids if have_ids else _moments(corpus, other) for corpus, other in ((old, new), (new, old))]
    earlier: dict[Any, _Content] = {}
    for content, mark in zip(_contents(old, new), marks[0], strict=True):
        key = content.known, mark
        if key not in earlier or content.is_whole:
            earlier[key] = content
    repeated = np.zeros(len(new), np.bool_)
    for row, (content, mark) in enumerate(zip(_contents(new, old), marks[1], strict=True)):
        before = earlier.get((content.known, mark))
        repeated[row] = before is not None and content.is_that_of(before, same_id=have_ids)
    return repeated


def _have_ids(*corpora: Corpus) -> bool:
    return all(corpus.ids != row_numbers(len(corpus)) for corpus in corpora)


class _Content(NamedTuple):
    """What is known of a document to compare it with those of another corpus.

    Args:
        known: a hash of its text, or the counts of the words that both corpora know.
        is_whole: whether these are all words that are known of it.
    """

    known: Hashable
    is_whole: bool

    def is_that_of(self, other: _Content, *, same_id: bool) -> bool:
        """Return whether two documents are the same, as far as is known.

        Without texts and ids, a document with few words that both corpora know could be any of many.
        """
        if self.known != other.known:
            return False
        if not isinstance(self.known, frozenset):
            return True
        if same_id:
            return bool(self.known) or (self.is_whole and other.is_whole)
        return bool(self.known) and (self.is_whole or other.is_whole or len(self.known) >= _ENOUGH_WORDS)


def _contents(corpus: Corpus, other: Corpus) -> Iterator[_Content]:
    """Yield the text of each document, or its counts if the texts of one of the corpora are not known."""
    if corpus.texts is not None and other.texts is not None:
        yield from (_Content(hash(text), True) for text in corpus.texts)
        return
    words, counts = other.vocabulary, corpus.over(other.vocabulary).counts
    are_whole = np.diff(counts.indptr) == np.diff(corpus.counts.indptr)
    for first, last, is_whole in zip(counts.indptr[:-1], counts.indptr[1:], are_whole.tolist(), strict=True):
        pairs = zip(counts.indices[first:last].tolist(), counts.data[first:last].tolist(), strict=True)
        yield _Content(frozenset((words[column], count) for column, count in pairs), is_whole)


def _moments(corpus: Corpus, other: Corpus) -> Iterable[Any]:
    """Return the time of each document; None if one of the corpora has no times."""
    if corpus.times is None or other.times is None:
        return [None] * len(corpus)
    return corpus.times.astype("datetime64[us]").astype(np.int64)


def _with_fields_of(old: Corpus, new: Corpus) -> Corpus:
    """Return new documents with vectors and texts if, and only if, the old ones have them."""
    fields = new.fields
    if old.texts is None:
        fields = replace(fields, texts=None)
    if old.vectors is None and new.vectors is not None:
        logger.warning("only the new documents have vectors, so the run keeps none, and topics are inferred from words")
        fields = replace(fields, vectors=None, encoder=None)
    new = replace(new, fields=fields)
    if old.vectors is None or new.vectors is not None:
        return new
    if old.encoder is None or new.texts is None:
        raise InputError(
            "the documents of the run have vectors, and the new ones have none; give them (`vectors`, `--vectors`), or "
            "the encoder of the training documents (`encoder`, `--encoder`)"
        )
    return new.with_vectors(encoder=old.encoder)


def _numbered(old: Corpus, new: Corpus) -> Corpus:
    """Return documents without ids of their own with their numbers in the run, where the old ones have ids."""
    ids = [str(number) for number in range(len(old), len(old) + len(new))]
    if not _have_ids(old) or not set(ids).isdisjoint(old.ids):
        return new
    return replace(new, fields=replace(new.fields, ids=ids))


# What is new


def _new_words(old: Corpus, new: Corpus, model: TopicModel) -> tuple[dict[str, int] | None, float | None]:
    """Return the words that neither the model nor the old documents have, and their share of the tokens."""
    if not _has_all_words(new, model) and set(new.vocabulary) <= set(model.vocabulary_):
        return None, None
    known = set(model.vocabulary_).union(*(words for words, _ in _parts(old, model)))
    documents: Counter[str] = Counter()
    n_tokens = n_new = 0.0
    for words, counts in _parts(new, model):
        tokens = np.bincount(counts.indices, counts.data, len(words))
        n_tokens += float(tokens.sum())
        for column, n in enumerate(np.bincount(counts.indices, minlength=len(words)).tolist()):
            if words[column] not in known:
                documents[words[column]] += n
                n_new += float(tokens[column])
    found = sorted(documents.items(), key=lambda pair: (-pair[1], pair[0]))
    return dict(found), n_new / max(n_tokens, 1)


def _has_all_words(corpus: Corpus, model: TopicModel) -> bool:
    """Return whether the words that a corpus leaves out are known too, from its texts."""
    return corpus.texts is not None and can_split(model.tokenizer_)


def _parts(corpus: Corpus, model: TopicModel) -> Iterator[tuple[Sequence[str], Any]]:
    """Yield the n words of parts of the documents with their counts (documents of the part, n)."""
    if corpus.texts is None or not can_split(model.tokenizer_):
        yield corpus.vocabulary, corpus.counts
        return
    for part in count_chunks(chunked(corpus.texts), model.tokenizer_):
        yield part.words, part.counts


def _badly_explained(model: TopicModel, trained: Corpus, new: Corpus) -> npt.NDArray[np.bool_] | None:
    """Return which documents the topics explain badly.

    One half of a document's tokens is predicted from the other half. The log likelihood per token is compared with
    those of the training documents, without what each of them has itself contributed to the counts of its words. A
    document without a known word is explained badly.
    """
    try:
        reference, known = _scores(model, trained, leave_out=True)
        if not new.counts.nnz:
            return new.is_empty
        scores, scored = _scores(model, new)
    except InputError:
        return None
    if not known.any():
        return None
    limit = np.quantile(reference[known], USUAL)
    return np.where(scored, scores < limit, new.is_empty)


def _scores(model: TopicModel, corpus: Corpus, *, leave_out: bool = False) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the log likelihood per token of each document by document completion, and whether a token was scored."""
    likelihood, n_tokens = model.log_likelihood(corpus)
    likelihood = likelihood.astype(np.float64)
    if leave_out:
        counts = corpus.counts
        scored = completion_split(counts)[1]
        own = counts.copy()
        own.data = np.log(np.clip(1 - counts.data / np.maximum(model.word_counts_[counts.indices], 1), _LEAST_LEFT, 1))
        likelihood += np.asarray(scored.multiply(own).sum(axis=1)).ravel()
    return likelihood / np.maximum(n_tokens, 1), n_tokens > 0


# New topics


def _rows_to_learn_from(
    added: Corpus, forms_new: npt.NDArray[np.bool_], badly: npt.NDArray[np.bool_] | None, n_new: int
) -> npt.NDArray[np.intp]:
    """Return the rows of the documents from which new topics are learned.

    They are those that form something new. If these are too few, they are the badly explained ones.
    """
    rows = np.flatnonzero(forms_new & ~added.is_empty)
    if len(rows) >= _FEWEST_OF_TOPIC * n_new:
        return rows
    if badly is None:
        raise InputError(
            "the new documents are like those of the run, so there is nothing to learn new topics from; leave out "
            "`new_topics`"
        )
    rows = np.flatnonzero(badly & ~added.is_empty)
    if len(rows) < n_new:
        raise InputError(
            f"{counted(len(rows), 'document')} of the new ones with known words are explained badly, too few for "
            f"{counted(n_new, 'new topic')}; ask for fewer"
        )
    logger.warning(
        "the new documents form no group that the run lacks, so the new topics are learned from the %s that the old "
        "ones explain badly, and may be no subjects",
        counted(len(rows), "document"),
    )
    return rows


def _stored_edits(run: Path, before: Topics, after: Topics, added: list[Edit]) -> EditsFile | None:
    """Return the edits that the service stored in a run, with the new topics; None if they are not of its model."""
    if not (run / EDITS).is_file():
        return None
    found, model = read_edits(run / EDITS), before.model
    if found.fingerprint in (None, model.origin.fingerprint):  # these are all edits since the training
        return EditsFile([*found.edits, *added], found.fingerprint)
    if found.fingerprint != model.fingerprint:
        return None
    numbers = {topic: topic for topic in range(before.n_topics)}
    return EditsFile(translated(found.edits, numbers, before.n_topics, after.n_topics).edits, after.model.fingerprint)
