"""VectorClusters: clusters of the documents' vectors and the words of each, the recipe of BERTopic and Top2Vec.

Grootendorst 2022, "BERTopic: Neural topic modeling with a class-based TF-IDF procedure", and Angelov 2020, "Top2Vec:
Distributed representations of topics". A topic is a cluster of documents. Its words only describe it.

1. Vectors are scaled to length 1, so that distances follow the cosine, and reduced by PCA or UMAP if that is asked for.
2. k-means, a Gaussian mixture or HDBSCAN (all of scikit-learn) gives each training document a cluster.
3. With x_kv tokens of word v in the documents of cluster k, and A tokens in a cluster on average, class-based TF-IDF is
   W_kv = x_kv / sum_v x_kv * log(1 + A / sum_k x_kv). A topic is a row of W divided by its sum.
4. Theta of a document depends on its vector v alone. With centres c_k and the temperature t, it is
   softmax_k(-|v - c_k|^2 / (2 t)), which gives the cluster of k-means the greatest share. For a Gaussian mixture, theta
   consists of the mixture's responsibilities.

Departures from BERTopic: theta is soft, and there is no topic of outliers. A new document is placed by the centres, and
not by a stored reducer and a stored tree of clusters. A is not rounded.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from pydantic import Field
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits
from torch import Tensor

from ..corpus import Corpus
from ..embeddings.document_vectors import unit_vectors
from ..errors import InputError, MissingExtraError, SettingError
from ..messages import counted
from ..nn.execution import without_gradients
from ..nn.network import Loss, TopicNetwork
from ..nn.posteriors import PointPosterior
from ..nn.sparse import Batch, mixture_log_likelihood
from ..settings import AtLeastOne, Positive
from ..text.strings import pieces
from ..topics.document_topics import DocumentTopics
from ..training.batches import BatchReader, choose_device
from ..training.callbacks import Callback, ProgressBar, call_on_epoch, watched
from ..training.loop import Monitor
from ..training.state import Row, Snapshot
from .base import Perplexity, TopicModel, UsedIf, logger
from .inference import Array, Inference
from .words import Words, with_fields

Labels = npt.NDArray[np.int64]

_SIZES = {"pca": 50, "umap": 5}  # the usual sizes: BERTopic's for UMAP
_LEAST_VARIANCE = 1e-5  # added to the variances of a mixture; vectors of length 1 with 384 numbers have some 2e-3
_BLOCK = 4096  # documents whose theta is computed at a time


class ClusterNetwork(TopicNetwork):
    """The centres of clusters, and the words of each. It infers theta from vectors, and is not trained further.

    theta_k is proportional to w_k exp(-sum_j p_kj (u_j - c_kj)^2 / 2), where u = A (v - m) is the reduced vector.

    Args:
        n_topics: the number of topics K.
        n_words: the size of the vocabulary V.
        size: the length E of the documents' vectors.
        reduced: the length d of the reduced vectors; None if vectors are not reduced (d = E).
    """

    fields = ("vectors",)
    needs_words = False
    beta_t: Tensor  # (V, K) the topics, columns sum to 1
    shares: Tensor  # (K,) the mean theta of the training documents
    centres: Tensor  # (K, d) c
    precisions: Tensor  # (K, d) p
    log_weights: Tensor  # (K,) log w
    mean: Tensor  # (E,) m
    axes: Tensor  # (d, E) A

    def __init__(self, n_topics: int, n_words: int, size: int, reduced: int | None) -> None:
        super().__init__()
        self.is_reduced = reduced is not None
        shapes: dict[str, tuple[int, ...]] = {"log_weights": (n_topics,)}
        shapes |= dict.fromkeys(("centres", "precisions"), (n_topics, reduced or size))
        if reduced is not None:
            shapes |= {"mean": (size,), "axes": (reduced, size)}
        for name, shape in shapes.items():
            self.register_buffer(name, torch.zeros(shape))
        self.register_buffer("beta_t", torch.full((n_words, n_topics), 1 / n_words))
        self.register_buffer("shares", torch.full((n_topics,), 1 / n_topics))

    def set(self, **arrays: Array) -> None:
        """Set buffers, by name."""
        for name, array in arrays.items():
            getattr(self, name).copy_(torch.from_numpy(np.array(array, np.float32)))

    def theta(self, vectors: Tensor) -> Tensor:
        """Return theta (B, K), given vectors (B, E) of any length; that of a zero vector is the average shares."""
        lengths = torch.linalg.vector_norm(vectors, dim=1, keepdim=True)  # (B, 1)
        units = vectors / torch.where(lengths > 0, lengths, 1)
        if self.is_reduced:
            units = (units - self.mean) @ self.axes.mT  # (B, d)
        constant = self.log_weights - 0.5 * (self.precisions * self.centres**2).sum(1)  # (K,)
        logits = constant + units @ (self.precisions * self.centres).mT - 0.5 * units**2 @ self.precisions.mT
        return torch.where(lengths > 0, torch.softmax(logits, dim=1), self.shares)

    def posterior(self, batch: Batch) -> PointPosterior:
        return PointPosterior(self.theta(batch.fields["vectors"]))

    def topic_word(self) -> Tensor:
        return self.beta_t.mT

    def loss(self, batch: Batch) -> Loss:
        raise NotImplementedError("clusters are found by scikit-learn, and not trained in batches")

    def log_likelihood(self, theta: Tensor, batch: Batch) -> Tensor:
        return mixture_log_likelihood(theta, self.beta_t, batch.counts)

    def prior_theta(self) -> Tensor:
        return self.shares


class Reduction(NamedTuple):
    """Reduced vectors.

    Attributes:
        points: (n, d) the reduced vectors.
        map: the mean (E,) and the axes (d, E) of PCA, or None.
    """

    points: Array
    map: tuple[Array, Array] | None = None


@dataclass(frozen=True)
class ClusterRun:
    """The state of a fit, which has a single step, for callbacks.

    Attributes:
        network: the network.
        seed: the seed, from which the step can be repeated.
        history: the rows of `history_`.
    """

    network: ClusterNetwork
    seed: int
    history: list[Row]

    def snapshot(self) -> Snapshot:
        """Return the seed and the history. The same seed gives the same clusters."""
        return Snapshot({}, {"seed": self.seed, "history": [dict(row) for row in self.history]})


@dataclass(eq=False, repr=False, kw_only=True)
class VectorClusters(TopicModel):
    """Clusters of the documents' vectors, and the words of each cluster by class-based TF-IDF (Grootendorst 2022).

    This is the recipe of BERTopic and Top2Vec, for comparisons. Documents need vectors: give `fit` an `encoder`, or a
    Corpus that has them. Theta depends on the vector of a document alone. A document without words has topics, and one
    without a vector gets the model's average shares.

    `components_` are the weights of class-based TF-IDF, divided by their sum for each topic. They are no probabilities
    of words in documents, so the model has no perplexity. `topics(relevance=1)` ranks words by these weights alone,
    as the papers do. `topics()` ranks words by the package's own rule, which compares each topic with the corpus once
    more, so that all models are compared by the same rule.

    HDBSCAN finds the number of clusters by itself, and `n_topics` is the most. If there are more, those with the most
    similar centres are merged. Documents that it calls outliers add no words to any topic, but have theta as others
    do.

    `history_` has one row. The loss is the mean squared distance of a vector to the centre of its cluster; for a
    Gaussian mixture, minus the log likelihood of a vector. The settings `neighbour_tokens`, `neighbours` and
    `infer_with_neighbours` have no effect, and a warning says so.

    Prior args:
        temperature: the softness of theta: theta is the softmax of -|v - c|^2 / (2 temperature) over the centres c.
            With a small one, a document has one topic. "gmm" without UMAP does not use it.

    Training args:
        method: "kmeans", "gmm" (a Gaussian mixture with diagonal covariances) or "hdbscan".
        reduction: what shortens the vectors before they are clustered: "none", "pca", or "umap", which needs the extra
            `maps`. After UMAP, theta follows the centres of the clusters among the vectors themselves.
        reduced_size: the length of reduced vectors. None is 50 for "pca" and 5 for "umap".
        n_starts: the number of starts of "kmeans" and "gmm", of which the best is kept.
        min_cluster_size: the fewest documents of a cluster of "hdbscan".

    Attributes:
        labels_: (n_docs,) the cluster of each training document; -1 for an outlier, and for a document without words or
            without a vector. A saved model does not keep it.

    Examples:
        >>> import numpy as np
        >>> import topicloom as tl
        >>> texts = ["cat dog", "dog mouse", "cat mouse", "loan bank", "bank rate", "rate loan"]
        >>> vectors = np.array([[1, 0], [1, 0.1], [0.9, 0], [0, 1], [0.1, 1], [0, 0.9]])
        >>> corpus = tl.Corpus.from_texts(texts, language="en", min_df=1, vectors=vectors)
        >>> model = tl.VectorClusters(n_topics=2, random_state=0).fit(corpus)
        >>> sorted(sorted(words) for words in model.topics(3))
        [['bank', 'loan', 'rate'], ['cat', 'dog', 'mouse']]
        >>> model.labels_[:3] == model.labels_[0]
        array([ True,  True,  True])
    """

    needs_vectors: ClassVar[bool] = True
    predicts_words: ClassVar[bool] = False
    used_if: ClassVar[UsedIf] = {
        "temperature": (
            "with `method='gmm'` without `reduction='umap'`",
            lambda model: model.method != "gmm" or model.reduction == "umap",
        ),
        "reduced_size": ("without a `reduction`", lambda model: model.reduction != "none"),
        "n_starts": ("with `method='hdbscan'`", lambda model: model.method != "hdbscan"),
        "min_cluster_size": ("without `method='hdbscan'`", lambda model: model.method == "hdbscan"),
    }

    method: Literal["kmeans", "gmm", "hdbscan"] = "kmeans"
    reduction: Literal["none", "pca", "umap"] = "none"
    reduced_size: AtLeastOne | None = None
    n_starts: AtLeastOne = 10
    min_cluster_size: Annotated[int, Field(ge=2)] = 10
    temperature: Positive = 0.05

    def check_combinations(self) -> None:
        if self.seed_words:
            raise SettingError(
                "VectorClusters groups documents by their vectors, so it cannot use `seed_words`; leave them out"
            )

    def rows_of(self, epochs: int) -> int:
        return 1

    def build_network(self, words: Words, generator: torch.Generator) -> ClusterNetwork:
        size = words.field_size("vectors")
        reduced = min(self.reduced_size or _SIZES["pca"], size) if self.reduction == "pca" else None
        return ClusterNetwork(self.n_topics, len(words), size, reduced)

    def partial_fit_corpus(self, corpus: Corpus) -> NoReturn:
        raise InputError("VectorClusters has no partial_fit, because it needs all vectors at once; use `fit`")

    def fit_corpus(
        self,
        corpus: Corpus,
        callbacks: Sequence[Callback] = (),
        monitors: Sequence[Monitor] = (),
        snapshot: Snapshot | None = None,
        validation: Corpus | None = None,
    ) -> None:
        if snapshot is not None and snapshot.continued is not None:
            raise InputError("VectorClusters is fitted in one step, so no epochs can be added to it")
        watchers = [*([ProgressBar()] if self.verbose else []), *callbacks]
        device = choose_device(self.device)
        units = unit_vectors(corpus.fields.array("vectors"))
        used = np.flatnonzero(~corpus.is_empty & units.any(axis=1))
        if len(used) < self.n_topics and self.method != "hdbscan":
            raise InputError(
                f"`n_topics={self.n_topics}` needs at least as many documents with words and vectors, and there are "
                f"only {len(used)} (n_samples = {len(used)}); ask for fewer topics"
            )
        seed = self.draw_seed() if snapshot is None else snapshot.values["seed"]
        rows = [] if snapshot is None else [dict(row) for row in snapshot.values["history"]]
        with watched(watchers, self, 1, 1):
            began = time.perf_counter()
            # Threads of BLAS and OpenMP add up distances in an order that changes from one call to the next.
            with threadpool_limits(1):
                network, loss = self._clustered(corpus, units, used, seed)
            with_fields(network, self.word_statistics())
            run = ClusterRun(network.on(device, seed=0).eval(), seed, rows)
            if not rows:
                watch = self.collapse_watch(BatchReader.of(corpus, _BLOCK, device, network.fields).without_empty())
                row: Row = {"epoch": 1, "loss": loss, **watch(network), "seconds": time.perf_counter() - began}
                row |= {name: value for monitor in monitors for name, value in monitor(network).items()}
                rows.append(row)
                call_on_epoch(watchers, row)
                for watcher in watchers:
                    watcher.on_state(run)
            for watcher in watchers:
                watcher.on_finish(run)
        self.history_ = rows
        self.adopt_network(network)

    def _clustered(
        self, corpus: Corpus, units: npt.NDArray[np.float32], used: npt.NDArray[np.intp], seed: int
    ) -> tuple[ClusterNetwork, float]:
        """Find the clusters, fill `labels_`, and return the network and the loss.

        Args:
            corpus: the documents.
            units: (n_docs, E) their vectors, with length 1 or 0.
            used: the documents that have words and a vector.
            seed: the seed.
        """
        points = units if len(used) == len(units) else units[used]
        reduced = self._reduced(points, seed)
        # UMAP places new documents only with the training vectors at hand, so theta uses the vectors themselves.
        space = points if self.reduction == "umap" else reduced.points
        mixture = None
        if self.method == "hdbscan":
            labels = self._dense(reduced.points, space)
        elif self.method == "gmm":
            mixture = _mixture(reduced.points, self.n_topics, self.n_starts, seed)
            labels = mixture.predict(reduced.points)
        else:
            labels = _k_means(reduced.points, self.n_topics, self.n_starts, seed)
        n_topics = int(labels.max()) + 1 if self.method == "hdbscan" else self.n_topics
        self.labels_: Labels = np.full(corpus.n_docs, -1, np.int64)
        self.labels_[used] = labels
        members = members_of(labels, n_topics)  # (K, n)
        size = None if reduced.map is None else reduced.points.shape[1]
        network = ClusterNetwork(n_topics, corpus.n_words, units.shape[1], size)
        if reduced.map is not None:
            network.set(mean=reduced.map[0], axes=reduced.map[1])
        centres = np.asarray(members @ space) / np.maximum(members.sum(axis=1), 1)[:, None]  # (K, d)
        if mixture is not None and self.reduction != "umap":
            weights = np.log(mixture.weights_) + 0.5 * np.log(mixture.precisions_).sum(axis=1)
            network.set(centres=mixture.means_, precisions=mixture.precisions_, log_weights=weights)
            loss = -float(mixture.score(reduced.points))
        else:
            network.set(centres=centres, precisions=np.full_like(centres, 1 / self.temperature))
            is_empty = np.where(members.sum(axis=1) > 0, 0, -1e4)  # equal vectors leave clusters without documents
            network.set(log_weights=is_empty)
            inside = labels >= 0
            loss = float(((space[inside] - centres[labels[inside]]) ** 2).sum(axis=1).mean())
        tokens = sp.coo_array(members @ corpus.counts[used])
        counts = np.zeros(tokens.shape)  # (K, V)
        counts[tokens.coords] = tokens.data
        network.set(beta_t=class_tf_idf(counts).T)
        shares = np.zeros(n_topics)
        with without_gradients():
            for part in pieces(points):
                shares += network.theta(torch.from_numpy(part)).sum(0, dtype=torch.float64).numpy()
        network.set(shares=shares / len(points))
        self.settings_ = self.settings_ | {"n_topics": n_topics}  # a saved model says how many topics there are
        return network, loss

    def _reduced(self, points: Array, seed: int) -> Reduction:
        """Return reduced vectors, given vectors (n, E) of length 1."""
        if self.reduction == "none":
            return Reduction(points)
        size = min(self.reduced_size or _SIZES[self.reduction], points.shape[1])
        if self.reduction == "umap":
            return Reduction(_umap(points, size, seed))
        from sklearn.decomposition import PCA

        found = PCA(min(size, len(points)), random_state=seed).fit(points)
        axes = np.zeros((size, points.shape[1]), np.float32)  # with few documents, the last axes stay zero
        axes[: len(found.components_)] = found.components_
        return Reduction((points - found.mean_) @ axes.T, (found.mean_, axes))

    def _dense(self, points: Array, space: Array) -> Labels:
        """Return the clusters of HDBSCAN, at most `n_topics`; -1 for outliers.

        Args:
            points: (n, d) the reduced vectors.
            space: (n, d') vectors whose means are the centres of the clusters.

        Raises:
            InputError: there are fewer than two clusters.
        """
        from sklearn.cluster import HDBSCAN, AgglomerativeClustering

        least = min(self.min_cluster_size, len(points))
        labels: Labels = HDBSCAN(min_cluster_size=least, copy=True).fit(points).labels_.astype(np.int64)
        n_found = int(labels.max()) + 1
        if n_found < 2:
            raise InputError(
                f"HDBSCAN finds {counted(n_found, 'cluster')} in {counted(len(points), 'document')}; try a lower "
                '`min_cluster_size`, `reduction="pca"` or "umap", or `method="kmeans"`'
            )
        n_outliers = int((labels < 0).sum())
        logger.info(
            "HDBSCAN finds %s; %d of %s are outliers, whose words no topic counts",
            counted(n_found, "cluster"), n_outliers, counted(len(points), "document"),
        )  # fmt: skip
        if n_found <= self.n_topics:
            return labels
        members = members_of(labels, n_found)
        centres = np.asarray(members @ space) / members.sum(axis=1)[:, None]
        merged = AgglomerativeClustering(self.n_topics, metric="cosine", linkage="average").fit(centres).labels_
        return np.where(labels >= 0, merged[labels], -1)

    # Inference. A document without words has topics by its vector, and one without a vector has the average shares.

    def infer_with(self, X: Any, posterior: Inference | None = None) -> DocumentTopics:
        found = super().infer_with(X, posterior)
        vectors = found.fields.vectors
        n_without = 0 if vectors is None else sum(int((~part.any(axis=1)).sum()) for part in pieces(vectors))
        if n_without:
            logger.warning(
                "%d of %s have no vector; they get the model's average shares",
                n_without, counted(len(found), "document"),
            )  # fmt: skip
        return found

    def log_likelihood(self, X: Any, method: Perplexity = "completion") -> tuple[Array, Array]:
        raise SettingError(
            "VectorClusters infers topics from vectors of whole texts, which tell the words to be scored, so it has no "
            "perplexity"
        )


def members_of(labels: Labels, n_clusters: int) -> sp.csr_array:
    """Return a matrix (n_clusters, n) with a one for each document in its cluster. Outliers (-1) are in none."""
    (inside,) = np.nonzero(labels >= 0)
    return sp.csr_array((np.ones(len(inside)), (labels[inside], inside)), shape=(n_clusters, len(labels)))


def class_tf_idf(counts: Array) -> Array:
    """Return class-based TF-IDF (Grootendorst 2022, equation 2), each row divided by its sum.

    Args:
        counts: (K, V) the tokens of each word in the documents of each cluster. A cluster without tokens gets the
            weights of all tokens.

    >>> class_tf_idf(np.array([[2.0, 0.0, 1.0], [0.0, 3.0, 1.0]])).round(2)
    array([[0.67, 0.  , 0.33],
           [0.  , 0.7 , 0.3 ]])
    """
    totals = counts.sum(axis=0)  # (V,)
    idf = np.log1p(totals.sum() / len(counts) / np.maximum(totals, 1e-12))
    filled = np.where(counts.sum(axis=1, keepdims=True) > 0, counts, totals)
    weights = filled / filled.sum(axis=1, keepdims=True) * idf
    topics: Array = weights / weights.sum(axis=1, keepdims=True)
    return topics


def _k_means(points: Array, n_clusters: int, n_starts: int, seed: int) -> Labels:
    from sklearn.cluster import KMeans

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of equal vectors, which leave clusters empty
        found = KMeans(n_clusters, n_init=n_starts, random_state=seed).fit(points)
    labels: Labels = found.labels_.astype(np.int64)
    return labels


def _mixture(points: Array, n_components: int, n_starts: int, seed: int) -> Any:
    from sklearn.mixture import GaussianMixture

    model = GaussianMixture(
        n_components, covariance_type="diag", n_init=n_starts, reg_covar=_LEAST_VARIANCE, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(points.astype(np.float64))


def _umap(points: Array, size: int, seed: int) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of packages that umap-learn could use as well
        try:
            from umap import UMAP
        except ImportError:
            raise MissingExtraError.of('VectorClusters(reduction="umap")', "umap-learn", "maps") from None
        settings = {"n_components": size, "n_neighbors": min(15, len(points) - 1), "min_dist": 0.0, "metric": "cosine"}
        placed: Array = np.asarray(UMAP(random_state=seed, n_jobs=1, **settings).fit_transform(points))
    return placed
