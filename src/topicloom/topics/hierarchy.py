"""Which topics, words and documents are near each other: vectors, the hierarchy of topics, and points of maps."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from ..display import as_markup, printable
from ..errors import InputError, MissingExtraError, SettingError
from ..metrics.coherence import cosines
from ..ranking import names_or_numbers, topic_word_ids
from .document_topics import sums_of_shares
from .table import Table

Array = npt.NDArray[Any]
Method = Literal["average", "complete", "single"]
Projection = Literal["tsne", "pca", "umap"]
PROJECTIONS: tuple[str, ...] = get_args(Projection)

_PRIOR_TOKENS = 50.0  # of the shares of all documents, which are mixed with the topics of each word
_ROWS_AT_ONCE, _NUMBERS_AT_ONCE = 1 << 16, 1 << 25  # of the matrix whose columns are compared
_WORDS_OF_NODE = 5
_FEWEST_POINTS = 5  # for t-SNE and UMAP, which need some neighbours
_PERPLEXITY = 30.0  # of t-SNE

# Words and topics as vectors of one space.


def learned_vectors(model: Any) -> tuple[Array, Array] | None:
    """Return the vectors of words and topics, (V, L) and (K, L), that the model has learned, or None if it has none.

    A model with edited topics has none, unless they were only renamed.
    """
    trained = model.origin
    words, topics = (getattr(trained, f"{kind}_embeddings_", None) for kind in ("word", "topic"))
    if words is None or topics is None or not np.array_equal(trained.components_, model.components_):
        return None
    return np.asarray(words, np.float32), np.asarray(topics, np.float32)


def distributional_vectors(components: Array, shares: Array, word_counts: Array) -> tuple[Array, Array]:
    """Return vectors of words and topics for a model that has none of its own.

    The vector of a word is the square root of p(k|w), the shares of topics among its tokens. They are mixed with 50
    tokens of the shares of all documents, so that a rare word is near no topic. The vector of topic k is the k-th unit
    vector. The cosine of two words is the Bhattacharyya coefficient of their topics; the cosine of a word and a topic
    is the square root of p(k|w).

    Args:
        components: (K, V) topics, whose rows sum to 1.
        shares: (K,) shares of the topics.
        word_counts: (V,) tokens of each word in the training corpus.

    Returns:
        (V, K) and (K, K) float32, rows of length 1.
    """
    n_topics = len(components)
    prior = (shares + 1e-9) / (shares + 1e-9).sum()  # (K,)
    joint = (components * prior[:, None]).T.astype(np.float64)  # (V, K)
    totals = joint.sum(axis=1, keepdims=True)
    given_word = np.divide(joint, totals, out=np.broadcast_to(prior, joint.shape).copy(), where=totals > 0)
    tokens = np.asarray(word_counts, np.float64)[:, None]
    mixed = (tokens * given_word + _PRIOR_TOKENS * prior) / (tokens + _PRIOR_TOKENS)
    return np.sqrt(mixed).astype(np.float32), np.eye(n_topics, dtype=np.float32)


def nearest_of(rows: Array, vector: Array, top_n: int, without: int | None = None) -> list[tuple[int, float]]:
    """Return the rows with the greatest cosine with a vector: (index, cosine), the best first.

    Args:
        rows: (n, L).
        vector: (L,).
        top_n: how many.
        without: a row that is left out.
    """
    similarity = cosines(np.asarray(rows, np.float64), np.asarray(vector, np.float64))
    return most_similar(similarity, top_n, without)


def length_in_directions(words: Array, topics: Array) -> tuple[float, float]:
    """Return the part of the squared length of words that lies in the directions in which topics differ, and by chance.

    The loss of an ETM sees the vectors of words in these directions alone, so that vectors which it learned from random
    ones are still random in all others.

    Args:
        words: (V, L) the vectors of the words.
        topics: (K, L) the vectors of the topics.
    """
    _, sizes, directions = np.linalg.svd(topics - topics.mean(0), full_matrices=False)
    directions = directions[sizes > 1e-5 * sizes.max(initial=0.0)]  # (K - 1, L), or fewer
    part = np.square(words @ directions.T).sum() / max(float(np.square(words).sum()), 1e-12)
    return float(part), len(directions) / words.shape[1]


def most_similar(similarity: Array, top_n: int, without: int | None = None) -> list[tuple[int, float]]:
    """Return the places of the greatest similarities: (index, similarity), the best first.

    Args:
        similarity: (n,).
        top_n: how many.
        without: a place that is left out.
    """
    order = [int(row) for row in np.argsort(-similarity, kind="stable")[: top_n + 1] if row != without]
    return [(row, float(similarity[row])) for row in order[:top_n]]


def free_names(n_topics: int, words: Sequence[str]) -> list[str]:
    """Return names of topics for a file of words, such as topic_3, that no word has."""
    known = set(words)
    mark = "topic_"
    while any(f"{mark}{topic}" in known for topic in range(n_topics)):
        mark += "_"
    return [f"{mark}{topic}" for topic in range(n_topics)]


# The tree of topics.


@dataclass(frozen=True, eq=False, repr=False)
class Hierarchy:
    """A binary tree of K topics. Nodes 0 to K - 1 are the topics; node K + i joins the two nodes of row i of `linkage`.

    Attributes:
        linkage: (K - 1, 4) as scipy.cluster.hierarchy has it: two nodes, their distance, and the number of topics.
        distances: (K, K) distances of topics, from 0 to 1.
        names: the K names of the topics.
        words: the words of each of the 2K - 1 nodes. An inner node has the words of the merge of its topics.
        shares: (2K - 1,) the share of each node.
    """

    linkage: Array
    distances: Array
    names: list[str]
    words: list[list[str]]
    shares: Array

    def cut(self, n_groups: int | None = None, *, distance: float | None = None) -> list[list[int]]:
        """Divide the topics into groups.

        Args:
            n_groups: the number of groups, from 1 to K.
            distance: the distance above which nodes are not joined, instead of a number of groups.

        Returns:
            groups of topics in the order of the tree; the topics of a group are sorted.

        Raises:
            SettingError: neither or both are given, or the number of groups is not from 1 to K.
        """
        n_topics = len(self.names)
        if (n_groups is None) == (distance is None):
            raise SettingError("cut needs either a number of groups (`n_groups`) or a `distance`")
        if n_groups is not None and (
            isinstance(n_groups, bool) or not isinstance(n_groups, int | np.integer) or not 1 <= n_groups <= n_topics
        ):
            raise SettingError(f"`n_groups={n_groups!r}` should be a whole number from 1 to {n_topics}")
        if n_topics == 1:
            return [[0]]
        from scipy.cluster.hierarchy import fcluster

        groups = fcluster(self.linkage, distance, "distance") if n_groups is None else self._cut_at(int(n_groups))
        found: dict[int, list[int]] = {}
        for topic in self.order:
            found.setdefault(int(groups[topic]), []).append(topic)
        return [sorted(group) for group in found.values()]

    def _cut_at(self, n_groups: int) -> Array:
        """Number the groups that are left before the last n_groups - 1 joins."""
        n_topics = len(self.names)
        groups = np.arange(n_topics)
        members: list[list[int]] = [[topic] for topic in range(n_topics)]
        for row, (left, right, *_) in enumerate(self.linkage):
            members.append(members[int(left)] + members[int(right)])
            if row < n_topics - n_groups:
                groups[members[-1]] = n_topics + row
        return groups

    @property
    def similarity(self) -> Array:
        """(K, K) similarities of topics, from 0 to 1: 1 minus their distances."""
        found: Array = 1 - self.distances
        return found

    @property
    def order(self) -> list[int]:
        """The topics in the order of the tree, where similar topics are near each other."""
        return self.members(2 * len(self.names) - 2)

    def members(self, node: int) -> list[int]:
        """Return the topics under a node, in the order of the tree.

        Raises:
            SettingError: there is no such node.
        """
        n_topics = len(self.names)
        if not 0 <= node < 2 * n_topics - 1:
            raise SettingError(f"there is no node {node}; nodes are numbered 0 to {2 * n_topics - 2}")
        found, todo = [], [node]
        while todo:
            each = todo.pop()
            if each < n_topics:
                found.append(each)
            else:
                left, right = self.linkage[each - n_topics, :2]
                todo += [int(right), int(left)]
        return found

    def table(self) -> Table:
        """Return a row for each node: node, parent, name, words, share, distance (of its two parts), topics."""
        n_topics = len(self.names)
        parents = {int(child): n_topics + row for row, pair in enumerate(self.linkage) for child in pair[:2]}
        rows = [
            {
                "node": node,
                "parent": parents.get(node),
                "name": self._name(node),
                "words": self.words[node],
                "share": float(self.shares[node]),
                "distance": None if node < n_topics else float(self.linkage[node - n_topics, 2]),
                "topics": self.members(node),
            }
            for node in range(2 * n_topics - 1)
        ]
        return Table.of(rows, "Hierarchy of topics")

    def tree(self, n_groups: int | None = None, n_words: int = _WORDS_OF_NODE) -> str:
        """Return the tree as text, the root first.

        Args:
            n_groups: how many branches to show; below them, the topics stand one under another. None shows all joins.
            n_words: the words of each node.

        Raises:
            SettingError: the number of groups is not from 1 to K.
        """
        n_topics = len(self.names)
        closed = set() if n_groups is None else {tuple(group) for group in self.cut(n_groups)}
        lines: list[str] = []
        todo: list[tuple[int, str, str]] = [(2 * n_topics - 2, "", "")]
        while todo:
            node, before, below = todo.pop()
            lines.append(before + self._line(node, n_words))
            if node < n_topics:
                continue
            members = self.members(node)
            children = (
                members if tuple(sorted(members)) in closed else [int(n) for n in self.linkage[node - n_topics, :2]]
            )
            branches = [(child, below + "├─ ", below + "│  ") for child in children[:-1]]
            branches.append((children[-1], below + "└─ ", below + "   "))
            todo += reversed(branches)
        return printable("\n".join(lines))

    def _line(self, node: int, n_words: int) -> str:
        words, share = " ".join(self.words[node][:n_words]), f"{self.shares[node]:.1%}"
        if node >= len(self.names):
            return f"{self.linkage[node - len(self.names), 2]:.2f}  {words} ({share})"
        name = self.names[node]
        nameless = name in (str(node), "", ", ".join(self.words[node][:3]))  # its name says no more than its words
        return f"topic {node}  {'' if nameless else f'{name}: '}{words} ({share})"

    def _name(self, node: int) -> str:
        return self.names[node] if node < len(self.names) else " ".join(self.words[node][:3])

    def __repr__(self) -> str:
        return self.tree()

    def _repr_html_(self) -> str:
        return f"<pre>{as_markup(self.tree())}</pre>"


def hierarchy(
    components: Array,
    theta: Array,
    word_counts: Array,
    vocabulary: Sequence[str],
    *,
    empty: npt.NDArray[np.bool_] | None = None,
    names: Sequence[str] | None = None,
    word_weight: float = 0.5,
    method: Method = "average",
    top_n: int = 10,
) -> Hierarchy:
    """Join topics step by step, always the two nodes that are nearest.

    The distance of two topics is the weighted mean of two Hellinger distances, that of their distributions over words
    and that of their distributions over documents (the columns of theta). Each is 0 for equal distributions, and 1
    where nothing is shared.

    Args:
        components: (K, V) topics, whose rows sum to 1.
        theta: (n_docs, K) topic shares.
        word_counts: (V,) tokens of each word in the training corpus, for ranking words.
        vocabulary: the V words.
        empty: (n_docs,) True for documents without a known word, which are left out.
        names: the K names of the topics.
        word_weight: the weight of words, from 0 to 1. The rest is the weight of documents.
        method: how the distance of two nodes follows from those of their topics: "average", "complete" or "single".
        top_n: the number of words for each node.

    Raises:
        SettingError: an argument cannot have its value.
    """
    if not 0 <= word_weight <= 1:
        raise SettingError(f"`word_weight={word_weight!r}` should be from 0 to 1")
    if method not in get_args(Method):
        raise SettingError(f"`method={method!r}` should be one of {', '.join(get_args(Method))}")
    distances = topic_distances(components, theta, empty, word_weight)
    n_topics = len(components)
    tree = np.empty((0, 4))
    if n_topics > 1:
        from scipy.cluster.hierarchy import linkage, optimal_leaf_ordering
        from scipy.spatial.distance import squareform

        condensed = squareform(distances, checks=False)
        tree = optimal_leaf_ordering(linkage(condensed, method), condensed)
    shares = np.zeros(2 * n_topics - 1)
    empty = np.zeros(len(theta), np.bool_) if empty is None else empty
    n_known = len(theta) - int(empty.sum())
    shares[:n_topics] = sums_of_shares(theta, empty) / n_known if n_known else 1 / n_topics
    merged = np.empty((2 * n_topics - 1, components.shape[1]))
    merged[:n_topics] = components
    for node, (left, right, *_) in enumerate(tree, n_topics):
        pair = [int(left), int(right)]
        shares[node] = shares[pair].sum()
        weights = shares[pair] / shares[node] if shares[node] > 0 else np.full(2, 0.5)
        merged[node] = weights @ merged[pair]
    words = [[vocabulary[word] for word in row] for row in topic_word_ids(merged, word_counts, top_n)]
    return Hierarchy(tree, distances, names_or_numbers(names, n_topics), words, shares)


def topic_distances(
    components: Array, theta: Array, empty: npt.NDArray[np.bool_] | None = None, word_weight: float = 0.5
) -> Array:
    """Return the (K, K) distances of topics, from 0 to 1.

    Each is the weighted mean of two Hellinger distances, that of the topics' distributions over words and that of their
    distributions over documents.

    Args:
        components: (K, V) topics, whose rows sum to 1.
        theta: (n_docs, K) topic shares.
        empty: (n_docs,) True for documents without a known word, which are left out.
        word_weight: the weight of words, from 0 to 1. The rest is the weight of documents.
    """
    known = None if empty is None or not empty.any() else np.flatnonzero(~empty)
    distances: Array = word_weight * hellinger(components.T) + (1 - word_weight) * hellinger(theta, known)
    np.fill_diagonal(distances, 0)
    return distances


def hellinger(columns: Array, rows: npt.NDArray[np.intp] | None = None) -> Array:
    """Return the (K, K) Hellinger distances of K distributions, which are the columns of an (n, K) matrix.

    The columns are normalised. A column of zeros has distance 1 from every other.

    Args:
        columns: (n, K), not negative.
        rows: (m,) the rows that are used; None is all.
    """
    n_rows, n_columns = len(columns) if rows is None else len(rows), columns.shape[1]
    if rows is None:
        totals = columns.sum(axis=0, dtype=np.float64)
    else:
        left_out = np.ones(len(columns), np.bool_)
        left_out[rows] = False
        totals = sums_of_shares(columns, left_out)
    affinity = np.zeros((n_columns, n_columns))
    at_once = max(1, min(_ROWS_AT_ONCE, _NUMBERS_AT_ONCE // max(1, n_columns)))
    for start in range(0, n_rows, at_once):
        part = slice(start, start + at_once)
        roots = columns[part if rows is None else rows[part]].astype(np.float64)
        np.divide(roots, totals, out=roots, where=totals > 0)  # in place: this array is large
        np.sqrt(roots, out=roots)
        affinity += roots.T @ roots
    distances: Array = np.sqrt(np.clip(1 - affinity, 0, 1))
    np.fill_diagonal(distances, 0)
    return distances


# Points of many dimensions as points of a plane, for maps.


def project(points: npt.ArrayLike, method: Projection = "tsne", random_state: int = 0) -> npt.NDArray[np.float64]:
    """Return points of a plane in which neighbours among the given points are neighbours again.

    Args:
        points: (n, L), finite.
        method: "pca" keeps large distances: it is a view of the points from the direction in which they differ most
            (principal component analysis). "tsne" keeps neighbourhoods (van der Maaten & Hinton 2008). "umap" does so
            too (McInnes, Healy & Melville 2018), and needs the package umap-learn. Fewer than five points, or points
            that are all the same, always have a "pca".
        random_state: the seed of "tsne" and "umap".

    Returns:
        (n, 2), centred; the same for the same points and seed.

    Raises:
        InputError: `points` is no matrix of finite numbers.
        SettingError: there is no such method.
        MissingExtraError: "umap" without umap-learn.
    """
    if method not in PROJECTIONS:
        raise SettingError(f"`projection={method!r}` should be one of {', '.join(PROJECTIONS)}")
    rows = np.asarray(points, np.float64)
    if rows.ndim != 2 or not np.isfinite(rows).all():
        raise InputError(f"a map needs a matrix of finite numbers; this one has shape {rows.shape}")
    rows = rows - rows.mean(axis=0) if len(rows) else rows
    if method == "pca" or len(np.unique(rows, axis=0)) < _FEWEST_POINTS:
        return _pca(rows)
    placed = tsne(rows, random_state) if method == "tsne" else _umap(rows, random_state)
    placed -= placed.mean(axis=0)
    return placed


def _pca(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    from sklearn.decomposition import PCA

    n_axes = min(2, *rows.shape)
    plane = np.zeros((len(rows), 2))
    if n_axes:
        with np.errstate(invalid="ignore", divide="ignore"):  # equal points have no variance to explain
            plane[:, :n_axes] = PCA(n_axes, svd_solver="full").fit_transform(rows)
    return plane


def tsne(
    rows: npt.NDArray[Any], random_state: int, start: npt.NDArray[Any] | None = None, n_steps: int = 1000
) -> npt.NDArray[np.float64]:
    """Return points of a plane by t-SNE, (n, 2).

    Args:
        rows: (n, L), at least three.
        random_state: the seed.
        start: (n, 2) where the points begin; None is their principal components.
        n_steps: of the optimisation.
    """
    from sklearn.manifold import TSNE

    perplexity = min(_PERPLEXITY, (len(rows) - 1) / 3)
    init: Any = "pca" if start is None else start.astype(np.float32)
    model = TSNE(init=init, perplexity=perplexity, max_iter=n_steps, random_state=random_state, n_jobs=1)
    placed: npt.NDArray[Any] = np.asarray(model.fit_transform(rows))  # whatever scikit-learn is set to return
    return placed.astype(np.float64)


def _umap(rows: npt.NDArray[np.float64], random_state: int) -> npt.NDArray[np.float64]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of packages that umap-learn could use as well
        try:
            from umap import UMAP
        except ImportError:
            raise MissingExtraError.of("a map by UMAP", "umap-learn", "maps") from None
        model = UMAP(n_neighbors=min(15, len(rows) - 1), min_dist=0.1, random_state=random_state, n_jobs=1)
        placed: npt.NDArray[Any] = np.asarray(model.fit_transform(rows))
    return placed.astype(np.float64)
