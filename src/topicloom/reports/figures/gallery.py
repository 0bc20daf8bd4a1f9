"""The pictures of topics together with documents, by their names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from os import PathLike
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from ...display import counted
from ...errors import InputError, SettingError, nearest
from ...ranking import top_words, word_scores
from ...settings import require_seed
from ...topics.projection import Projection, project
from ...topics.view import Topics
from ...topics.words import topic_word_ids
from .bars import topic_pages
from .clouds import word_clouds
from .interpolation import interpolation_strip
from .maps import document_map, word_map
from .similarity import similarity_map
from .simplex import simplex
from .sparsity import sparsity
from .style import sampled
from .trends import trend_lines, trend_stream

_METHODS = {
    "tsne": "t-SNE, which keeps near neighbours; distances between far groups mean little",
    "umap": "UMAP, which keeps near neighbours; distances between far groups mean little",
    "pca": "a principal component analysis, which shows the two directions in which they differ most",
}
_MOST_DOCUMENTS = 5_000  # in a map
_SEARCHED, _OFFERED = 10_000, 5  # ids of documents, for a message
_WORDS_OF_MAP = 240  # in all topics together
_BAR_WORDS, _CLOUD_WORDS = 10, 40  # of a topic


@dataclass(frozen=True)
class Options:
    """How pictures are drawn. Each picture reads those that concern it.

    Attributes:
        colour: what colours the documents of a map: their main "topic", or their "label".
        space: what documents that are near in a map have in common: their topic shares ("theta"), or their position in
            the model's latent space ("latent"; see `latent` of a model).
        projection: how a map is made of it; see `topicloom.topics.projection.project`.
        documents: the two documents of an interpolation, by their ids or row numbers. None takes a typical document of
            each of the two largest topics.
        steps: the number of steps of an interpolation; both documents count as steps.
        period: "day", "week", "month", "quarter", "year", or "auto".
        stream: whether topics over time are one stream, and not a panel for each topic.
        alphas: the Dirichlet parameters of the simplex.
        random_state: the seed.
        font: a font family or file; None chooses one that has the characters.
    """

    colour: Literal["topic", "label"] = "topic"
    space: Literal["theta", "latent"] = "theta"
    projection: Projection = "tsne"
    documents: Sequence[str | int] | None = None
    steps: int = 8
    period: str = "auto"
    stream: bool = False
    alphas: Sequence[float | Sequence[float]] = (0.1, 0.5, 1, 10)
    random_state: int = 0
    font: str | PathLike[str] | None = None

    def __post_init__(self) -> None:
        for name, choices in (("colour", ("topic", "label")), ("space", ("theta", "latent"))):
            if getattr(self, name) not in choices:
                raise SettingError(f"`{name}={getattr(self, name)!r}` should be {' or '.join(choices)}")


class Kind(NamedTuple):
    """A kind of picture."""

    summary: str
    draw: Callable[[Topics, Options], list[Figure]]
    is_default: bool = True  # whether it is drawn if no kind is named


def draw(topics: Topics, kind: str, **options: Any) -> list[Figure]:
    """Draw a picture of topics and documents.

    Args:
        topics: a fitted model together with documents.
        kind: one of `KINDS`: "map", "words", "topics", "clouds", "interpolation", "sparsity", "similarity", "time" or
            "simplex".
        options: attributes of `Options`.

    Returns:
        the pages of the picture, most often one.

    Raises:
        InputError: there is no such kind, or the picture cannot be drawn of these documents or of this model.
        SettingError: there is no such option, it cannot have its value, or `topics` are none.
        MissingExtraError: the picture needs a package that is not installed.
    """
    if not isinstance(topics, Topics):
        raise SettingError(
            f"`topics` should be a fitted model together with documents, Topics(model, corpus); it is {topics!r:.60}"
        )
    known = {field.name for field in fields(Options)}
    for name in options:
        if name not in known:
            raise SettingError(f"a figure has no option {name!r}; {nearest(name, known)}")
    require_seed(options.get("random_state", 0))
    return kind_named(kind).draw(topics, Options(**options))


def kind_named(name: str) -> Kind:
    """Return a kind of picture.

    Raises:
        InputError: there is none of this name.
    """
    if name not in KINDS:
        raise InputError(f"there is no figure {name!r}; {nearest(name, KINDS)}")
    return KINDS[name]


def _map(topics: Topics, options: Options) -> list[Figure]:
    documents = topics.documents
    known = np.flatnonzero(~documents.empty)
    if not len(known):
        raise InputError("no document has a known word, so there is nothing to map")
    rows = known[sampled(len(known), _MOST_DOCUMENTS, options.random_state)]
    order = None
    if options.colour == "topic":
        names = _names(topics)
        groups: npt.NDArray[np.intp] = np.asarray(documents.theta[rows]).argmax(axis=1)
        order = topics.hierarchy().order
    else:
        names, groups = _classes(documents.labels, rows)
    if options.space == "theta":
        points, near = np.sqrt(documents.theta[rows]), "topic shares"  # Euclidean distances are then Hellinger's
    else:
        points, near = topics.model.latent(topics.corpus[rows])[0], "positions in the latent space"
    sentences = [
        f"Each dot is a document, coloured by its {'main topic' if options.colour == 'topic' else 'label'}. Documents "
        f"with similar {near} are near each other ({_METHODS.get(options.projection, options.projection)})."
    ]
    if (groups == -1).any():
        sentences.append(f"Documents without a label are grey ({(groups == -1).sum():,} of {len(rows):,}).")
    if options.colour == "topic" and len(names) > 10:
        sentences.append("Similar topics have similar colours.")
    if len(rows) < len(known):
        sentences.append(f"{len(rows):,} of {len(known):,} documents, drawn at random.")
    if len(known) < len(documents):
        n_empty = len(documents) - len(known)
        verb = "is" if n_empty == 1 else "are"
        sentences.append(f"{counted(n_empty, 'document')} without a known word {verb} left out.")
    placed = project(points, options.projection, options.random_state)
    return [document_map(placed, groups, names, note=" ".join(sentences), order=order, font=options.font)]


def _classes(labels: Sequence[str] | None, rows: npt.NDArray[np.intp]) -> tuple[list[str], npt.NDArray[np.intp]]:
    """Return the classes, and that of each of some documents; -1 if it is unknown."""
    if labels is None or not any(labels):
        raise InputError("the documents have no labels that could colour them; use `colour='topic'`")
    names = sorted(set(filter(None, labels)))
    places = {name: place for place, name in enumerate(names)}
    return names, np.array([places.get(labels[row], -1) for row in rows], np.intp)


def _words(topics: Topics, options: Options) -> list[Figure]:
    model = topics.model
    base = getattr(model, "base_", model)
    if np.array_equal(base.components_, topics.components):
        model = base  # topics were renamed and nothing else
    if not hasattr(model, "word_embeddings_") or not hasattr(model, "topic_embeddings_"):
        edited = " with edited topics" if model is not base else ""
        raise InputError(
            f"{type(base).__name__}{edited} has no vectors of words and topics; the picture 'words' needs an ETM"
        )
    best = topic_word_ids(topics.components, topics.word_counts, max(4, min(25, _WORDS_OF_MAP // len(topics))))
    owners: dict[int, int] = {}  # a word belongs to the topic in which it ranks first
    for rank in range(best.shape[1]):
        for topic in range(len(topics)):
            owners.setdefault(int(best[topic, rank]), topic)
    words = list(owners)
    vectors = np.concatenate([model.word_embeddings_[words], model.topic_embeddings_])
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    placed = project(vectors / np.where(lengths > 0, lengths, 1), options.projection, options.random_state)
    note = (
        "Stars are topics and dots are words of the space in which the model learned both; those with similar "
        f"directions are near each other ({_METHODS.get(options.projection, options.projection)}). A word has the "
        "colour of the topic in which it ranks highest. Words without room have no label."
    )
    shown = [topics.vocabulary[word] for word in words]
    figure = word_map(
        placed[: len(words)], placed[len(words) :], shown, list(owners.values()), _names(topics), note=note,
        order=topics.hierarchy().order, font=options.font,
    )  # fmt: skip
    return [figure]


def _best_words(topics: Topics, top_n: int) -> tuple[list[list[str]], npt.NDArray[Any]]:
    """Return the words that stand for each topic, with their scores (K, n)."""
    all_scores = word_scores(topics.components, topics.word_counts)  # (K, V)
    best = top_words(all_scores, top_n)  # (K, n)
    scores = np.take_along_axis(all_scores, best, axis=1)
    return [[topics.vocabulary[word] for word in row] for row in best], scores


def _bars(topics: Topics, options: Options) -> list[Figure]:
    words, scores = _best_words(topics, _BAR_WORDS)
    # A topic that was given no name is a number, because the words of the other names are in its bars.
    titles = [f"topic {k}" if name is None else f"{k} {name}" for k, name in enumerate(topics.given_names)]
    return topic_pages(words, scores, topics.shares, titles=titles, font=options.font)


def _clouds(topics: Topics, options: Options) -> list[Figure]:
    words, scores = _best_words(topics, _CLOUD_WORDS)
    return word_clouds(
        words, scores, topics.shares, titles=_names(topics), random_state=options.random_state, font=options.font
    )


def _interpolation(topics: Topics, options: Options) -> list[Figure]:
    first, last = _two_documents(topics, options.documents)
    path = topics.model.interpolate(topics.corpus[[first]], topics.corpus[[last]], steps=options.steps)
    return [interpolation_strip(path, _names(topics), font=options.font)]


def _two_documents(topics: Topics, chosen: Sequence[str | int] | None) -> tuple[int, int]:
    """Return the rows of two documents."""
    documents = topics.documents
    if chosen is None:
        known = np.flatnonzero(~documents.empty)
        if len(known) < 2:
            raise InputError("an interpolation needs two documents with known words")
        theta = np.asarray(documents.theta[known])
        largest = np.argsort(-topics.shares, kind="stable")
        first = int(known[theta[:, largest[0]].argmax()])
        contrast = theta[:, largest[1]] if len(topics) > 1 else -theta[:, 0]
        last = int(known[np.where(known == first, -np.inf, contrast).argmax()])
        return first, last
    if isinstance(chosen, str) or len(chosen) != 2:
        raise SettingError(f"`documents={chosen!r}` should name two documents, by their ids or rows")
    rows: list[int] = []
    for name in chosen:
        if isinstance(name, str):
            if name not in documents.ids:
                advice = nearest(name, documents.ids[:_SEARCHED], most=_OFFERED)
                raise InputError(f"there is no document with the id {name!r}; {advice}")
            rows.append(documents.ids.index(name))
        elif 0 <= name < len(documents):
            rows.append(int(name))
        else:
            raise InputError(f"there is no document {name}; the rows are 0 to {len(documents) - 1}")
        if documents.empty[rows[-1]]:
            raise InputError(
                f"document {name} contains no word that the model knows, so it has no place in the latent space; "
                "name another one in `documents`"
            )
    return rows[0], rows[1]


def _sparsity(topics: Topics, options: Options) -> list[Figure]:
    return [sparsity(np.asarray(topics.documents.theta)[~topics.documents.empty])]


def _similarity(topics: Topics, options: Options) -> list[Figure]:
    tree = topics.hierarchy()
    note = (
        "1 minus the distance of two topics: half of it is that of their words, and half that of the documents that "
        "contain them. The tree joins the most similar topics first."
    )
    merges = tree.linkage if len(topics) > 1 else None
    return [similarity_map(tree.similarity, _names(topics), tree=merges, note=note, font=options.font)]


def _time(topics: Topics, options: Options) -> list[Figure]:
    found = topics.over_time(options.period, random_state=options.random_state)
    mean, low, high, _ = found.shares
    note = f"Share of each topic in the documents of each {found.period}."
    if options.stream:
        return [trend_stream(found.starts, mean, _names(topics), note=note, font=options.font)]
    note += " The band is a 95 % interval."
    return trend_lines(found.starts, mean, _names(topics), low=low, high=high, note=note, font=options.font)


def _simplex(topics: Topics, options: Options) -> list[Figure]:
    return [simplex(options.alphas, random_state=options.random_state)]


def _names(topics: Topics) -> list[str]:
    return [f"{topic} {' '.join(name.split())}" for topic, name in enumerate(topics.names)]


KINDS = {
    "map": Kind("documents as points, near each other if their topics are similar", _map),
    "words": Kind("words and topics in one map, for an ETM", _words),
    "topics": Kind("the top words of each topic as bars", _bars, is_default=False),  # in every run
    "clouds": Kind("the words of each topic as a cloud", _clouds),
    "interpolation": Kind("what the model expects between two documents", _interpolation),
    "sparsity": Kind("how many topics documents have", _sparsity),
    "similarity": Kind("how similar topics are, with their tree", _similarity),
    "time": Kind("topics over time", _time),
    "simplex": Kind("documents drawn from Dirichlet distributions of three topics", _simplex, is_default=False),
}
