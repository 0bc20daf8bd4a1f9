"""The pictures of topics together with documents, by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from ...embeddings.document_vectors import unit_vectors
from ...errors import InputError, SettingError
from ...messages import joined as joined_names
from ...messages import nearest
from ...ranking import top_words, topic_word_ids, word_scores
from ...settings import require_seed
from ...topics.positions import document_positions, has_direction, places_by_vectors
from ...topics.publication import chosen_language
from ...topics.view import Topics
from .. import wording as words
from ..palette import MOST_COLOURS
from ..wording import FigureLanguage, Language, joined
from .style import label_language, sampled

if TYPE_CHECKING:
    from ...topics.hierarchy import Projection

_MOST_DOCUMENTS = 5_000  # in a map
_ROWS_AT_ONCE = 4096  # of theta that are copied
_IDS_SEARCHED, _IDS_OFFERED = 10_000, 5  # for a message about an unknown id
_WORDS_OF_MAP = 240  # in all topics together
_BAR_WORDS, _CLOUD_WORDS = 10, 40  # of a topic


@dataclass(frozen=True)
class Options:
    """How pictures are drawn. Each picture reads those that concern it.

    Attributes:
        colour: what colours the documents of a map: their main "topic", or their "label".
        space: what documents that are near in a map have in common: their topic shares ("theta"), their vectors
            ("vectors"), or their position in the model's latent space ("latent"; see `latent` of a model). "auto" is
            "vectors" if the documents have any, and otherwise "theta".
        projection: how a map is made of it; see `topicloom.topics.hierarchy.project`.
        documents: the two documents of an interpolation, by their ids or row numbers. None takes a typical document of
            each of the two largest topics.
        steps: the number of steps of an interpolation; both documents count as steps.
        period: the length of a period of topics over time, such as "month", "2 weeks" or "auto".
        bins: in place of `period`, a number of bins, or the dates that divide them.
        start, end: documents before `start` and after `end` are left out of topics over time.
        min_documents: periods with fewer documents are drawn as hollow points; see `Topics.over_time`.
        covariate: what the picture "groups" shows: "class", or the name of a covariate.
        stream: whether topics over time are one stream, and not a panel for each topic.
        alphas: the Dirichlet parameters of the simplex.
        random_state: the seed.
        font: a font family or file; None chooses one that has the characters.
        language: "en" or "zh", the language of titles, labels, legends and notes; "auto" is Chinese if the texts are
            Chinese, and otherwise English. They are English if no font has Chinese characters.

    Raises:
        SettingError: an attribute cannot have its value.

    Examples:
        >>> import topicloom as tl
        >>> tl.figures.Options(colour="label").projection
        'tsne'
    """

    colour: Literal["topic", "label"] = "topic"
    space: Literal["auto", "theta", "vectors", "latent"] = "auto"
    projection: Projection = "tsne"
    documents: Sequence[str | int] | None = None
    steps: int = 8
    period: str = "auto"
    bins: Any = None
    start: Any = None
    end: Any = None
    min_documents: int | None = None
    covariate: str = "class"
    stream: bool = False
    alphas: Sequence[float | Sequence[float]] = (0.1, 0.5, 1, 10)
    random_state: int = 0
    font: str | PathLike[str] | None = None
    language: FigureLanguage = "auto"

    def __post_init__(self) -> None:
        chosen_language(self.language)
        for name, choices in (("colour", ("topic", "label")), ("space", ("auto", "theta", "vectors", "latent"))):
            if getattr(self, name) not in choices:
                listed = " or ".join([", ".join(choices[:-1]), choices[-1]])
                raise SettingError(f"`{name}={getattr(self, name)!r}` should be {listed}")

    def with_language(self, topics: Topics) -> Options:
        """Return these options with the language in which the pictures of some topics can be drawn.

        A warning says so if no font has the characters of the language that was chosen.
        """
        wanted = chosen_language(self.language, topics.corpus.tokenizer)
        return replace(self, language=label_language(wanted, self.font, quiet=self.language == "auto"))


class PictureKind(NamedTuple):
    """A kind of picture: what it shows, and the function that draws its pages."""

    summary: str
    pages: Callable[[Topics, Options, Language], list[Figure]]
    is_default: bool = True  # whether it is drawn if no kind is named
    reads: tuple[str, ...] = ()  # the options that only this picture and a few others read

    def draw(self, topics: Topics, options: Options) -> list[Figure]:
        """Draw it. Its pages are most often one."""
        return self.pages(topics, options, chosen_language(options.with_language(topics).language))


def draw(topics: Topics, kind: str, **options: Any) -> list[Figure]:
    """Draw a picture of topics and documents.

    Args:
        topics: a fitted model together with documents.
        kind: one of `KINDS`: "map", "words", "topics", "clouds", "interpolation", "sparsity", "similarity", "time",
            "groups" or "simplex".
        options: attributes of `Options`.

    Returns:
        the pages of the picture, most often one.

    Raises:
        InputError: there is no such kind, or the picture cannot be drawn of these documents or of this model.
        SettingError: there is no such option, it cannot have its value, or `topics` are none.
        MissingExtraError: the picture needs a package that is not installed.

    Examples:
        >>> import topicloom as tl
        >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
        >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(texts), texts)
        >>> len(tl.figures.draw(topics, "topics"))
        1
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


def kind_named(name: str) -> PictureKind:
    """Return a kind of picture.

    Raises:
        InputError: there is none of this name.

    Examples:
        >>> import topicloom as tl
        >>> tl.figures.kind_named("sparsity").summary
        'how many topics documents have'
    """
    if name not in KINDS:
        raise InputError(f"there is no figure {name!r}; {nearest(name, KINDS)}")
    return KINDS[name]


def require_readers(options: Options, kinds: Iterable[str]) -> None:
    """Check that each option that is not the default is read by one of the pictures that are drawn.

    Raises:
        InputError: other pictures read it.
    """
    read = {name for kind in kinds for name in kind_named(kind).reads}
    for field in fields(Options):
        readers = [kind for kind, each in KINDS.items() if field.name in each.reads]
        if readers and field.name not in read and getattr(options, field.name) != field.default:
            are = "pictures" if len(readers) > 1 else "picture"
            raise InputError(
                f"`{field.name}` is for the {are} {joined_names(readers)}; add it to `kind`, or leave it out"
            )


def _map(topics: Topics, options: Options, language: Language) -> list[Figure]:
    from .maps import FEWEST_FOR_CLOUDS, document_map

    documents = topics.documents
    known = np.flatnonzero(~documents.empty)
    if not len(known):
        raise InputError("no document has a known word, so there is nothing to map")
    vectors, space = topics.corpus.vectors, options.space
    if space == "auto":
        space = "theta" if vectors is None or not has_direction(vectors).any() else "vectors"
    n_known = len(known)
    if space == "vectors":
        if vectors is None:
            raise InputError("the documents have no vectors, so there is nothing to map; give `space` another value")
        known = known[has_direction(vectors)[known]]
        if not len(known):
            raise InputError("no document has a vector, so there is nothing to map; give `space` another value")
    n_without = n_known - len(known)
    rows = known[sampled(len(known), _MOST_DOCUMENTS, options.random_state)]
    if options.colour == "topic":
        names = _names(topics)
        groups: npt.NDArray[np.intp] = np.asarray(documents.theta[rows]).argmax(axis=1)
    else:
        names, groups = _classes(documents.labels, rows)
    n_grey, n_empty = int((groups == -1).sum()), len(documents) - n_known
    colour = words.COLOURS[options.colour](language)
    left_out = words.ONE_LEFT_OUT if n_empty == 1 else words.SOME_LEFT_OUT
    sentences = [
        words.MAP(language, colour=colour, near=words.SPACES[space](language), method=_method(options, language)),
        words.WITHOUT_LABEL(language, n=n_grey, n_all=len(rows)) * bool(n_grey),
        words.DENSITY(language, colour=colour) * (len(rows) >= FEWEST_FOR_CLOUDS),
        words.REPEATED_COLOURS(language, n=MOST_COLOURS) * (len(names) > MOST_COLOURS),
        words.SAMPLED(language, n=len(rows), n_all=len(known)) * (len(rows) < len(known)),
        left_out(language, n=n_empty) * bool(n_empty),
        words.WITHOUT_VECTOR(language, n=n_without) * bool(n_without),
    ]
    placed = _placed(topics, rows, space, options) * (1, -1)  # as in the page, whose second axis points down
    return [document_map(placed, groups, names, note=joined(sentences, language), font=options.font)]


def _placed(topics: Topics, rows: npt.NDArray[np.intp], space: str, options: Options) -> npt.NDArray[Any]:
    """Return the places of documents on a map, (D, 2): those of the page, if the map shows the same."""
    from ...topics.hierarchy import project

    vectors, theta = topics.corpus.vectors, topics.documents.theta
    of_vectors = vectors if space == "vectors" and places_by_vectors(vectors) else None
    if options.projection == "tsne" and space != "latent" and (space == "theta" or of_vectors is not None):
        if options.random_state == 0 and (space == "vectors") == places_by_vectors(vectors):
            return topics.positions(rows)
        return document_positions(theta[rows], None if of_vectors is None else of_vectors[rows], options.random_state)
    # Euclidean distances of the square roots of shares are Hellinger's.
    if space == "vectors" and vectors is not None:
        points = unit_vectors(vectors[rows])
    else:
        points = np.sqrt(theta[rows]) if space == "theta" else topics.model.latent(topics.corpus[rows])[0]
    return project(points, options.projection, options.random_state)


def _method(options: Options, language: Language) -> str:
    """Say how a map is projected."""
    return words.METHODS[options.projection](language) if options.projection in words.METHODS else options.projection


def _classes(labels: Sequence[str] | None, rows: npt.NDArray[np.intp]) -> tuple[list[str], npt.NDArray[np.intp]]:
    """Return the classes, and that of each of some documents; -1 if it is unknown."""
    if labels is None or not any(labels):
        raise InputError("the documents have no labels that could colour them; use `colour='topic'`")
    names = sorted(set(filter(None, labels)))
    places = {name: place for place, name in enumerate(names)}
    return names, np.array([places.get(labels[row], -1) for row in rows], np.intp)


def _words(topics: Topics, options: Options, language: Language) -> list[Figure]:
    from ...topics.hierarchy import learned_vectors, project
    from .maps import word_map

    learned = learned_vectors(topics.model)
    if learned is None:
        edited = " with edited topics" if topics.edits else ""
        raise InputError(
            f"{type(topics.model).__name__}{edited} has no vectors of words and topics; the picture 'words' needs an "
            "ETM, an ECRTM or a FASTopic"
        )
    best = topic_word_ids(topics.components, topics.word_counts, max(4, min(25, _WORDS_OF_MAP // len(topics))))
    owners: dict[int, int] = {}  # a word belongs to the topic in which it ranks first
    for rank in range(best.shape[1]):
        for topic in range(len(topics)):
            owners.setdefault(int(best[topic, rank]), topic)
    mapped = list(owners)
    vectors = np.concatenate([learned[0][mapped], learned[1]])
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    placed = project(vectors / np.where(lengths > 0, lengths, 1), options.projection, options.random_state)
    note = words.WORD_MAP(language, method=_method(options, language))
    shown = [topics.written_words[word] for word in mapped]
    figure = word_map(
        placed[: len(mapped)], placed[len(mapped) :], shown, list(owners.values()), _names(topics), note=note,
        font=options.font,
    )  # fmt: skip
    return [figure]


def _best_words(topics: Topics, top_n: int) -> tuple[list[list[str]], npt.NDArray[Any]]:
    """Return the words that stand for each topic, with their scores (K, n)."""
    all_scores = word_scores(topics.components, topics.word_counts)  # (K, V)
    best = top_words(all_scores, top_n)  # (K, n)
    scores = np.take_along_axis(all_scores, best, axis=1)
    return [[topics.written_words[word] for word in row] for row in best], scores


def _bars(topics: Topics, options: Options, language: Language) -> list[Figure]:
    from .topic_words import topic_pages

    best, scores = _best_words(topics, _BAR_WORDS)
    # A topic that was given no name is a number, because the words of the other names are in its bars.
    titles = [
        words.TOPIC(language, topic=k) if name is None else f"{k} {name}" for k, name in enumerate(topics.given_names)
    ]
    return topic_pages(best, scores, topics.shares, titles=titles, font=options.font, language=language)


def _clouds(topics: Topics, options: Options, language: Language) -> list[Figure]:
    from .topic_words import word_clouds

    best, scores = _best_words(topics, _CLOUD_WORDS)
    return word_clouds(
        best, scores, topics.shares, titles=_names(topics), random_state=options.random_state, font=options.font,
        language=language,
    )  # fmt: skip


def _interpolation(topics: Topics, options: Options, language: Language) -> list[Figure]:
    from .mixtures import interpolation_strip

    first, last = _two_documents(topics, options.documents)
    path = topics.model.interpolate(topics.corpus[[first]], topics.corpus[[last]], steps=options.steps)
    return [interpolation_strip(path, _names(topics), font=options.font, language=language)]


def _two_documents(topics: Topics, chosen: Sequence[str | int] | None) -> tuple[int, int]:
    """Return the rows of two documents."""
    documents = topics.documents
    if chosen is None:
        known = np.flatnonzero(~documents.empty)
        if len(known) < 2:
            raise InputError("an interpolation needs two documents with known words")
        largest = np.argsort(-topics.shares, kind="stable")
        share = np.asarray(documents.theta[known, largest[0]])
        first = int(known[share.argmax()])
        contrast = np.asarray(documents.theta[known, largest[1]]) if len(topics) > 1 else -share
        last = int(known[np.where(known == first, -np.inf, contrast).argmax()])
        return first, last
    if isinstance(chosen, str) or len(chosen) != 2:
        raise SettingError(f"`documents={chosen!r}` should name two documents, by their ids or rows")
    rows: list[int] = []
    for name in chosen:
        if isinstance(name, str):
            if name not in documents.ids:
                advice = nearest(name, documents.ids[:_IDS_SEARCHED], most=_IDS_OFFERED)
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


def _sparsity(topics: Topics, options: Options, language: Language) -> list[Figure]:
    from .mixtures import sparsity_of

    theta, known = topics.documents.theta, ~topics.documents.empty
    blocks = (slice(first, first + _ROWS_AT_ONCE) for first in range(0, len(theta), _ROWS_AT_ONCE))
    parts = (theta[rows][known[rows]] for rows in blocks)
    return [sparsity_of(parts, font=options.font, language=language)]


def _similarity(topics: Topics, options: Options, language: Language) -> list[Figure]:
    from .topic_words import similarity_map

    tree = topics.hierarchy()
    merges = tree.linkage if len(topics) > 1 else None
    note = words.SIMILARITY_NOTE(language)
    return [
        similarity_map(tree.similarity, _names(topics), tree=merges, note=note, font=options.font, language=language)
    ]


def _time(topics: Topics, options: Options, language: Language) -> list[Figure]:
    from .over_time import trend_lines, trend_stream

    found = topics.over_time(
        options.period, bins=options.bins, start=options.start, end=options.end, min_documents=options.min_documents,
        random_state=options.random_state,
    )  # fmt: skip
    mean, low, high = found.shares[:3]
    n, _, unit = found.period.rpartition(" ")
    one = words.SEVERAL_PERIODS[unit.removesuffix("s")](language, n=n) if n else words.PERIODS[unit](language)
    note = words.OVER_TIME(language, period=one)
    style: dict[str, Any] = {"font": options.font, "language": language}
    has_documents = found.shares.n_docs > 0
    is_hollow = has_documents & found.sparse & (found.n_tested > 0)  # if all are sparse, none is hollow
    if options.stream:
        kept = has_documents & ~is_hollow
        return [trend_stream(found.starts[kept], mean[kept], _names(topics), note=note, **style)]
    bursts = {each.topic: (each.first, each.last) for each in found.bursts if each.is_found}
    further = [words.SPARSE(language, n=found.min_documents)] * bool(is_hollow.any())
    further += [words.BURSTS(language)] * bool(bursts)
    note = joined([note, words.BAND(language), *further], language)
    return trend_lines(
        found.starts, mean, _names(topics), low=low, high=high, sparse=is_hollow, bursts=bursts, note=note, **style
    )


def _groups(topics: Topics, options: Options, language: Language) -> list[Figure]:
    from .over_time import group_table, trend_lines

    found = topics.by(options.covariate, random_state=options.random_state)
    by = topics.label_column or words.CLASS(language) if options.covariate == "class" else options.covariate
    style: dict[str, Any] = {"font": options.font, "language": language}
    cells = found.cross_table().to_dicts()
    shape = (len(topics), len(found.groups))
    lifts = np.array([np.nan if cell["lift"] is None else cell["lift"] for cell in cells]).reshape(shape).T
    differs = np.array([cell["differs"] is not None for cell in cells]).reshape(shape).T
    note = words.BY_GROUP(language, by=by)
    pages = [group_table(found.groups, found.shares.mean, lifts, _names(topics), differs=differs, note=note, **style)]
    if found.curve is not None:
        curve = found.curve
        is_whole = bool((curve.values == np.floor(curve.values)).all())  # ticks are then whole numbers too
        values = curve.values.astype(np.int64) if is_whole else curve.values
        note = joined([words.ALONG(language, by=by), words.BAND(language)], language)
        pages += trend_lines(values, curve.mean, _names(topics), low=curve.low, high=curve.high, note=note, **style)
    return pages


def _simplex(topics: Topics, options: Options, language: Language) -> list[Figure]:
    from .mixtures import simplex

    return [simplex(options.alphas, random_state=options.random_state, font=options.font, language=language)]


def _names(topics: Topics) -> list[str]:
    return [f"{topic} {' '.join(name.split())}" for topic, name in enumerate(topics.names)]


KINDS = {
    "map": PictureKind(
        "documents as points, near each other if their topics are similar",
        _map,
        reads=("colour", "space", "projection"),
    ),
    "words": PictureKind(
        "words and topics in one map, for an ETM, an ECRTM or a FASTopic", _words, reads=("projection",)
    ),
    "topics": PictureKind("the top words of each topic as bars", _bars, is_default=False),  # in every run
    "clouds": PictureKind("the words of each topic as a cloud", _clouds),
    "interpolation": PictureKind(
        "what the model expects between two documents", _interpolation, reads=("documents", "steps")
    ),
    "sparsity": PictureKind("how many topics documents have", _sparsity),
    "similarity": PictureKind("how similar topics are, with their tree", _similarity),
    "time": PictureKind("topics over time", _time, reads=("period", "bins", "start", "end", "min_documents", "stream")),
    "groups": PictureKind("topics by class or by a covariate", _groups, is_default=False, reads=("covariate",)),
    "simplex": PictureKind(
        "documents drawn from Dirichlet distributions of three topics", _simplex, is_default=False, reads=("alphas",)
    ),
}
