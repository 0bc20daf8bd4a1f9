"""What other programs take: pyLDAvis, topicwizard and DataMapPlot."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ..corpus import Corpus
from ..embeddings.document_vectors import unit_vectors
from ..errors import InputError, SettingError
from ..files import atomic_file
from .document_topics import DocumentTopics
from .hierarchy import project
from .positions import has_direction

Array = npt.NDArray[Any]
Layout = Literal["tsne", "pca"]
Space = Literal["auto", "theta", "vectors"]
UNLABELLED = "Unlabelled"  # what DataMapPlot calls points of no cluster
_UNKNOWN_CLASS = "(unknown)"
_SMALLEST_SHARE = 1e-12
_HOVER_CHARACTERS = 200  # of a document
_FEWEST_VECTORS = 5  # t-SNE needs as many points
_NEAR = 5  # documents of similar topics, among which a document without a vector is placed


def pyldavis_data(components: Array, vocabulary: Sequence[str], corpus: Corpus, theta: Array) -> dict[str, Any]:
    """Return the arguments of `pyLDAvis.prepare`, which keep the numbers of the topics.

    Documents without a known word are left out, as they have no length.

    Args:
        components: (K, V) topics, whose rows sum to 1.
        vocabulary: the V words.
        corpus: the documents over these words.
        theta: (n_docs, K) topic shares.

    Raises:
        InputError: there are fewer than two topics, or no document has a known word. pyLDAvis cannot draw them.
    """
    if len(components) < 2:
        raise InputError("pyLDAvis shows distances between topics and needs at least two; this model has one")
    known = ~corpus.is_empty
    if not known.any():
        raise InputError("no document has a word that the model knows, so pyLDAvis has nothing to show")
    topics = _rows_that_sum_to_one(components)
    shares = theta[known].astype(np.float64)
    shares += _SMALLEST_SHARE  # a topic that no document has would otherwise have no size
    return {
        "topic_term_dists": topics,
        "doc_topic_dists": _rows_that_sum_to_one(shares),
        "doc_lengths": np.asarray(corpus.counts.sum(axis=1)).ravel()[known].astype(np.float64),
        "vocab": list(vocabulary),
        "term_frequency": np.maximum(corpus.word_counts, 1),
        "sort_topics": False,
        "start_index": 0,
        "n_jobs": 1,
    }


def topicwizard_data(
    components: Array,
    vocabulary: Sequence[str],
    corpus: Corpus,
    theta: Array,
    names: Sequence[str],
    transform: Callable[[Sequence[str]], Array] | None = None,
) -> dict[str, Any]:
    """Return the TopicData of topicwizard, from version 1.

    Documents are represented by their vectors of length 1 if they have vectors, and otherwise by their theta. A
    document whose text is not known is shown as its words, in alphabetical order.

    Args:
        components: (K, V) topics.
        vocabulary: the V words.
        corpus: the documents over these words.
        theta: (n_docs, K) topic shares.
        names: the K names of the topics. Names that occur twice get the number of their topic.
        transform: the function from texts to theta, for texts that are typed in; None if there is none.
    """
    vectors = corpus.vectors
    return {
        "corpus": texts_or_words(corpus),
        "vocab": np.array(list(vocabulary), dtype=object),
        "document_term_matrix": sp.csr_matrix(corpus.counts),
        "document_topic_matrix": np.array(theta, np.float64),
        "topic_term_matrix": np.array(components, np.float64),
        "document_representation": np.array(
            theta if vectors is None or space_of(corpus) == "theta" else unit_vectors(vectors), np.float64
        ),
        "transform": transform,
        "topic_names": unique_names(names),
        "topic_positions": None,
        "word_positions": None,
        "document_positions": None,
    }


def topicwizard_file(data: Mapping[str, Any], documents: DocumentTopics) -> dict[str, Any]:
    """Return what a file for `topicwizard.app.load_app` holds: the data, the ids of the documents, and their classes.

    The function that infers new texts is left out, because a file cannot hold it.
    """
    labels = documents.labels
    known = labels is not None and any(labels)
    return {
        "topic_data": {**data, "transform": None},
        "document_names": list(documents.ids),
        "group_labels": [label or _UNKNOWN_CLASS for label in labels or ()] if known else None,
    }


def datamapplot_data(
    documents: DocumentTopics,
    names: Sequence[str],
    hover_texts: Sequence[str],
    coordinates: Any = None,
    *,
    vectors: Array | None = None,
    layout: Layout = "tsne",
    least_share: float = 0.0,
    random_state: int = 0,
) -> dict[str, Array]:
    """Return arrays for DataMapPlot.

    Args:
        documents: the documents with their topics.
        names: the K names of the topics.
        hover_texts: a text for each document.
        coordinates: (n_docs, 2) the places of the documents, such as those of UMAP; None places them by `layout`.
        vectors: (n_docs, E) the vectors by which documents are placed, zero for none; None places them by theta.
        layout: "tsne" or "pca" of the vectors with length 1, or of the square roots of theta, in which distances are
            Hellinger distances.
        least_share: a document whose largest share is smaller has no label.
        random_state: the seed of t-SNE.

    Returns:
        coordinates (n_docs, 2) float32; labels (n_docs,), the name of each document's largest topic, or "Unlabelled";
        topics (n_docs,) their numbers, -1 for none; and hover_text (n_docs,), the beginning of each document.

    Raises:
        SettingError: the coordinates have another shape, or the layout does not exist.
    """
    theta = documents.theta
    places = (
        document_coordinates(theta, layout, random_state, vectors)
        if coordinates is None
        else np.asarray(coordinates, np.float32)
    )
    if places.shape != (len(theta), 2) or not np.isfinite(places).all():
        raise SettingError(f"`coordinates` should be {len(theta)} finite pairs; they have the shape {places.shape}")
    if len(theta):
        topics = np.where(documents.empty | (theta.max(axis=1) < least_share), -1, theta.argmax(axis=1))
    else:
        topics = np.empty(0, np.intp)
    labels = [*unique_names(names), UNLABELLED]
    return {
        "coordinates": places,
        "labels": np.array([labels[topic] for topic in topics], dtype=object),
        "topics": topics,
        "hover_text": np.array([" ".join(text.split())[:_HOVER_CHARACTERS] for text in hover_texts], dtype=object),
    }


def space_of(corpus: Corpus, space: Space = "auto") -> Literal["theta", "vectors"]:
    """Return by what documents are placed in a map: "vectors" if they have any, and else "theta".

    Args:
        corpus: the documents.
        space: "auto", or what was asked for.

    Raises:
        InputError: `space` is "vectors", and the documents have no vectors.
        SettingError: the space does not exist.
    """
    if space not in ("auto", "theta", "vectors"):
        raise SettingError(f"`space={space!r}` should be one of auto, theta, vectors")
    if space == "theta":
        return "theta"
    n_vectors = 0 if corpus.vectors is None else int(has_direction(corpus.vectors).sum())
    if space == "vectors" and not n_vectors:
        raise InputError("the documents have no vectors, so they cannot be placed by them; give `space` another value")
    return "vectors" if space == "vectors" or n_vectors >= _FEWEST_VECTORS else "theta"


def document_coordinates(
    theta: Array, layout: Layout = "tsne", random_state: int = 0, vectors: Array | None = None
) -> npt.NDArray[np.float32]:
    """Return a place in the plane for each document, (n_docs, 2), from its vector or the square roots of its theta.

    Too few documents for t-SNE are placed by their principal components. A document without a vector is placed in the
    middle of some documents with similar topics.

    Args:
        theta: (n_docs, K).
        vectors: (n_docs, E), zero for none; None places all documents by theta.

    Raises:
        SettingError: the layout does not exist.
    """
    if layout not in ("tsne", "pca"):
        raise SettingError(f"`layout={layout!r}` should be tsne or pca")
    roots = np.sqrt(theta)
    if vectors is None:
        return project(roots, layout, random_state).astype(np.float32)
    units = unit_vectors(vectors)
    known = units.any(axis=1)
    places = np.zeros((len(theta), 2), np.float32)
    places[known] = project(units[known], layout, random_state)
    if known.any() and not known.all():
        from sklearn.neighbors import NearestNeighbors

        near = NearestNeighbors(n_neighbors=min(_NEAR, int(known.sum()))).fit(roots[known])
        places[~known] = places[known][near.kneighbors(roots[~known], return_distance=False)].mean(axis=1)
    return places


def texts_or_words(corpus: Corpus) -> list[str]:
    """Return the texts of the documents, or else the words of each in alphabetical order."""
    if corpus.texts is not None:
        return list(corpus.texts)
    counts, words = corpus.counts, corpus.vocabulary
    bounds = counts.indptr
    return [" ".join(sorted(words[column] for column in counts.indices[start:end])) for start, end in pairwise(bounds)]


def unique_names(names: Sequence[str]) -> list[str]:
    """Return distinct names: empty names and those that occur twice get the number of the topic.

    >>> unique_names(["pets", "pets", "", "pets (0)"])
    ['pets (0) (0)', 'pets (1)', '(2)', 'pets (0)']
    """
    often = {name for name, times in Counter(names).items() if times > 1 or not name.strip()}
    found = list(names)
    for topic, name in enumerate(names):
        if name in often:
            while found[topic] == name or found.count(found[topic]) > 1:
                found[topic] = f"{found[topic]} ({topic})".strip()
    return found


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write arrays and other values as JSON."""

    def plain(value: Any) -> Any:
        return value.tolist() if isinstance(value, np.ndarray) else value

    with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        json.dump({name: plain(value) for name, value in data.items()}, file, ensure_ascii=False)


def write_topicwizard(path: Path, data: Mapping[str, Any], documents: DocumentTopics) -> None:
    """Write a file for `topicwizard.app.load_app`, which joblib reads.

    Args:
        path: the file.
        data: what `topicwizard_data` returned.
        documents: the documents with their topics.
    """
    import joblib

    with atomic_file(path) as temporary:
        joblib.dump(topicwizard_file(data, documents), temporary)


def write_datamapplot(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write the arrays of `datamapplot_data` as a NumPy archive (.npz), which is read without pickle."""
    texts = {name: np.array(arrays[name].tolist(), dtype=str) for name in ("labels", "hover_text")}
    with atomic_file(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **{**arrays, **texts})


def _rows_that_sum_to_one(matrix: Array) -> Array:
    rows = matrix.astype(np.float64)
    rows /= rows.sum(axis=1, keepdims=True)
    return rows
