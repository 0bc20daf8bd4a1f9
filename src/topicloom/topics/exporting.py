"""Exporting: the methods of `Topics` that give topics to other programs, and that find what is near a word or a topic.

The data of other programs are made in `export`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..embeddings.word_vectors import WordVectors
from ..errors import InputError, similar
from ..files import atomic_file
from ..settings import require_whole
from . import export
from .base import View
from .hierarchy import topic_distances
from .similarity import distributional_vectors, free_names, most_similar, nearest_of
from .table import Table
from .tables import plain_column, with_covariates

Array = npt.NDArray[Any]


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
