"""Ensemble: the topics on which several fits of a model agree, as one model.

The topics of all fits are clustered by average linkage of their similarities (`metrics.topic_similarity`), so that a
cluster has at most one topic of each fit, as in the merging of topics by Mäntylä, Claes & Farooq 2018 and in the
clustering of repeated LDA fits by Rieger et al. 2022 (LDAPrototype, which keeps one of the fits; here all fits count).
gensim's EnsembleLda (Brigl 2019) clusters topics by their density instead and does not keep topics of one fit apart. A
cluster with topics of enough fits becomes a topic: the mean of its members. Its agreement is the share of the fits that
have a member. If fewer than two clusters have enough, the ensemble has the topics of one fit, the one that is most
similar to the others, as in LDAPrototype.

Theta is inferred as in LDA, by mean-field variational Bayes given these topics. The Dirichlet parameter of theta is
learned from the training documents by Minka's fixed point.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Annotated, Any, Literal, NoReturn, Self

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from ..corpus import Corpus
from ..errors import InputError, OutOfMemoryError, SettingError, TrainingDivergedError
from ..metrics.stability import RETURN_THRESHOLD, topic_similarity
from ..nn.edited import EditedNetwork
from ..nn.execution import without_gradients
from ..nn.mean_field import MeanFieldNetwork
from ..nn.network import TopicNetwork
from ..training.batches import BatchReader, choose_device
from ..training.callbacks import Callback, ProgressBar, call_on_epoch, watched
from ..training.loop import Monitor, evaluated
from ..training.state import Row, Snapshot
from . import estimator_named
from .base import TopicModel
from .editing import AppliedEdits
from .inference import Array, device_of
from .loom.cvb0 import dirichlet_step
from .refitting import Variation, documents_of_fit, model_of_fit
from .words import Words

logger = logging.getLogger("topicloom")

Agreement = Annotated[float, Field(gt=0, le=1)]

# Settings of the ensemble that its fits have, too.
SHARED = ("n_topics", "random_state", "seed_words", "device", "fractional_counts", "neighbour_tokens")
_BLOCK = 2048  # documents of a step
_ALPHA_PASSES = 20
_INITIAL_ALPHA = 0.1
_LEAST = 1e-12  # the least probability of a word in a topic


class EnsembleNetwork(MeanFieldNetwork):
    """The topics on which fits agree; theta is inferred as in LDA.

    Args:
        n_words: the size of the vocabulary V.
        n_topics: the number of topics K.
    """

    agreement: Tensor  # (K,) the share of fits that have the topic
    similarity: Tensor  # (K,) the mean similarity of its members in different fits

    def __init__(self, n_words: int, n_topics: int) -> None:
        super().__init__(n_words, n_topics)
        self.register_buffer("agreement", torch.ones(n_topics))
        self.register_buffer("similarity", torch.ones(n_topics))


class EnsembleRun:
    """The state of a fit: the topics of the fits that are finished.

    Attributes:
        network: the network of the last fit, and in the end that of the ensemble.
        seed: the seed of the first fit.
        topics: (K, V) for each finished fit.
        history: the rows of `history_`.
    """

    def __init__(self, seed: int, snapshot: Snapshot | None) -> None:
        self.seed = seed
        self.network: TopicNetwork = MeanFieldNetwork(1, 1)
        self.topics: list[Array] = []
        self.history: list[Row] = []
        if snapshot is not None:
            self.seed = int(snapshot.values["seed"])
            self.topics = [snapshot.tensors[name].numpy() for name in sorted(snapshot.tensors)]
            self.history = [dict(row) for row in snapshot.values["history"]]

    def snapshot(self) -> Snapshot:
        """Return the topics of the finished fits, and the history."""
        tensors = {f"topics-{fit:06d}": torch.from_numpy(np.array(each)) for fit, each in enumerate(self.topics)}
        return Snapshot(tensors, {"seed": self.seed, "history": [dict(row) for row in self.history]})


@dataclass(eq=False, repr=False, kw_only=True)
class Ensemble(TopicModel):
    """Several fits of a model, and the topics on which they agree.

    A model that is fitted once more finds somewhat different topics. An ensemble keeps those that return in enough
    fits, and says for each of them in how many (`agreement_`). `n_topics` is the number of topics of each fit; the
    ensemble has as many as agree, which `len(components_)` says. Words that only the other topics explain are left to
    the topics that stay. A warning says if fewer than half of the topics agree. If fewer than two do, the ensemble has
    the topics of the fit that is most similar to the others.

    Training takes as long as all fits together. `history_` has a row for each fit, with the last loss of the fit. A fit
    that is checkpointed goes on after the last finished fit. If a fit fails or is interrupted, the ensemble consists of
    the fits before it, if these are two or more. `Ensemble.of` makes an ensemble of fitted models.

    Main args:
        model: the model that is fitted, with settings after a colon, such as "gsm" or "lda:method=gibbs+epochs=500".
        n_fits: the number of fits.

    Training args:
        vary: what differs between the fits: the "seed"; the "order" of the documents, with one seed; or the documents,
            which are a "bootstrap" sample of as many as there are, with one seed.
        min_agreement: the least share of fits in which a topic has to be.
        min_similarity: the least mean similarity of the members of a topic, as `metrics.topic_similarity` measures it.

    Attributes:
        agreement_: (K,) the share of fits that have each topic.
        similarity_: (K,) the mean similarity of the members of each topic, from 0 to 1.

    Examples:
        >>> import topicloom as tl
        >>> corpus = tl.datasets.synthetic_lda(n_docs=200, n_words=60, n_topics=3, random_state=0).corpus
        >>> model = tl.Ensemble(model="lda:epochs=5", n_topics=3, n_fits=3, random_state=0).fit(corpus)
        >>> model.transform(corpus).shape == (200, len(model.agreement_))
        True
    """

    expands_new_documents = "always"  # it has no encoder that reads vectors

    model: str = "loom"
    n_fits: Annotated[int, Field(ge=2)] = 5
    vary: Literal["seed", "order", "bootstrap"] = "seed"
    min_agreement: Agreement = 0.5
    min_similarity: Agreement = RETURN_THRESHOLD

    @classmethod
    def of(
        cls, models: Sequence[TopicModel], X: Any, *, min_agreement: float = 0.5,
        min_similarity: float = RETURN_THRESHOLD,
    ) -> Self:  # fmt: skip
        """Return an ensemble of fitted models, which may be of different classes and numbers of topics.

        Args:
            models: two or more models that were fitted to documents over the same words.
            X: their training documents, from which the Dirichlet parameter of theta is learned.
            min_agreement: the least share of models in which a topic has to be.
            min_similarity: the least mean similarity of the members of a topic.

        Raises:
            InputError: there is one model, or their words differ.

        Examples:
            >>> import topicloom as tl
            >>> corpus = tl.datasets.synthetic_lda(n_docs=200, n_words=60, n_topics=3, random_state=0).corpus
            >>> fits = [tl.LDA(3, epochs=5, random_state=seed).fit(corpus) for seed in range(3)]
            >>> bool((tl.Ensemble.of(fits, corpus).agreement_ > 0.5).all())
            True
        """
        given = list(models) if isinstance(models, Iterable) else []
        if len(given) < 2 or not all(isinstance(each, TopicModel) for each in given):
            raise InputError(f"an ensemble needs two fitted models or more; it is {models!r:.80}")
        if any(each.vocabulary_ != given[0].vocabulary_ for each in given):
            raise InputError("the models of an ensemble need the same words; fit them to one Corpus")
        kind = type(given[0].origin)
        is_own = not kind.__module__.startswith("topicloom.")
        name = f"{kind.__module__}:{kind.__name__}" if is_own else kind.__name__.lower()
        made = cls(
            model=name, n_topics=max(len(each.components_) for each in given), n_fits=len(given), random_state=0,
            min_agreement=min_agreement, min_similarity=min_similarity,
        )  # fmt: skip
        made.given = given
        made.fit(given[0].documents(X))
        del made.given
        return made

    def check_combinations(self) -> None:
        base = estimator_named(self.model)
        if isinstance(base, Ensemble):
            raise SettingError("an ensemble of ensembles is not possible; give another `model`")
        plain = type(base)()
        for name in SHARED:
            if getattr(base, name) != getattr(plain, name):
                raise SettingError(f"`model` has the setting {name}; give it to the ensemble, as `{name}`")

    def rows_of(self, epochs: int) -> int:
        return self.n_fits

    def build_network(self, words: Words, generator: torch.Generator) -> EnsembleNetwork:
        return EnsembleNetwork(len(words), self.n_topics)

    def adopt_network(self, network: TopicNetwork) -> None:
        super().adopt_network(network)
        assert isinstance(network, EnsembleNetwork)
        self.agreement_: Array = network.agreement.cpu().numpy()
        self.similarity_: Array = network.similarity.cpu().numpy()

    def with_edits(self, network: EditedNetwork, applied: AppliedEdits) -> Self:
        model = super().with_edits(network, applied)
        if not len(network.steps):  # topics were only renamed
            model.agreement_, model.similarity_ = self.origin.agreement_, self.origin.similarity_
        return model

    def partial_fit_corpus(self, corpus: Corpus) -> NoReturn:
        raise InputError("Ensemble has no partial_fit, because it fits a model several times; use `fit`")

    def fit_corpus(
        self,
        corpus: Corpus,
        callbacks: Sequence[Callback] = (),
        monitors: Sequence[Monitor] = (),
        snapshot: Snapshot | None = None,
        validation: Corpus | None = None,
    ) -> None:
        if snapshot is not None and snapshot.continued is not None:
            raise InputError("Ensemble fits a model several times, so no epochs can be added to it")
        watchers = [*([ProgressBar()] if self.verbose else []), *callbacks]
        device = choose_device(self.device)
        run = EnsembleRun(self.random_state if isinstance(self.random_state, int) else self.draw_seed(), snapshot)
        self.history_ = run.history
        combined: EnsembleNetwork | None = None
        try:
            with watched(watchers, self, self.n_fits, 1):
                for fit in range(len(run.topics), self.n_fits):
                    began = time.perf_counter()
                    row: Row = {"epoch": fit + 1}
                    fitted = self._fitted(fit, run.seed, corpus)
                    run.topics.append(fitted.components_)
                    run.network = fitted.network_
                    if fitted.history_ and "loss" in fitted.history_[-1]:
                        row["loss"] = float(fitted.history_[-1]["loss"])
                    if fit + 1 == self.n_fits:
                        combined = run.network = self._combined(run.topics, corpus, device)
                        watch = self.collapse_watch(BatchReader.of(corpus, _BLOCK, device).without_empty())
                        row |= watch(combined)
                    for monitor in monitors:  # which count the fits
                        row |= evaluated(run.network, device_of(run.network), monitor)
                    run.history.append(row | {"seconds": time.perf_counter() - began})
                    call_on_epoch(watchers, run.history[-1])
                    for watcher in watchers:
                        watcher.on_state(run)
                if combined is None:  # all fits were in the snapshot
                    combined = run.network = self._combined(run.topics, corpus, device)
                for watcher in watchers:
                    watcher.on_finish(run)
        except BaseException:
            if len(run.topics) > 1:  # the fits that are finished are not lost
                self._adopt(combined or self._combined(run.topics, corpus, device))
            raise
        self._adopt(combined)

    def _adopt(self, network: EnsembleNetwork) -> None:
        self.settings_ = self.settings_ | {"n_topics": len(network.agreement)}  # of the saved model
        self.adopt_network(network)

    def _fitted(self, fit: int, seed: int, corpus: Corpus) -> TopicModel:
        """Return a fitted model of the ensemble."""
        given: list[TopicModel] | None = vars(self).get("given")
        if given is not None:
            return given[fit]
        base = estimator_named(self.model)
        # The documents have the tokens of their neighbours already.
        shared = {name: getattr(self, name) for name in SHARED}
        base.set_params(**shared | {"random_state": seed, "neighbour_tokens": 0})
        vary: Variation = self.vary
        base = model_of_fit(base, vary, fit)
        logger.info("fit %d of %d: %s", fit + 1, self.n_fits, self.model)
        try:
            return base.fit(documents_of_fit(corpus, vary, fit))
        except BaseException as error:  # what it says of the model is not true of the ensemble
            if isinstance(error, TrainingDivergedError | OutOfMemoryError):
                error.kept = ""
                error.args = (f"fit {fit + 1} of {self.n_fits}: {error}", *error.args[1:])
            error.__dict__.pop("__notes__", None)
            raise

    def _combined(self, topics: Sequence[Array], corpus: Corpus, device: torch.device) -> EnsembleNetwork:
        """Return the network with the topics on which the fits agree, or those of one fit if fewer than two do."""
        clusters = cluster_topics(topics, self.min_similarity)
        least = max(2, math.ceil(self.min_agreement * len(topics) - 1e-9))
        kept = [each for each in clusters if len(each.members) >= least]
        rows = [np.mean([topics[fit][topic] for fit, topic in each.members], axis=0) for each in kept]
        usual = int(np.median([len(each) for each in topics]))
        found = f"of {usual} topics, {len(kept)} returned in at least {least} of {len(topics)} fits"
        advice = "try a lower `min_agreement` or `min_similarity`, or fewer topics"
        if len(kept) < 2:
            fit = most_typical(topics)
            owners = {topic: each for each in clusters for own, topic in each.members if own == fit}
            kept, rows = [owners[topic] for topic in range(len(topics[fit]))], list(topics[fit])
            logger.warning("%s, so the ensemble has the topics of fit %d alone; %s", found, fit + 1, advice)
        elif 2 * len(kept) < usual:
            logger.warning("%s, and the ensemble has no others; %s", found, advice)
        else:
            logger.info("%s", found)
        network = EnsembleNetwork(corpus.n_words, len(kept))
        beta = np.maximum(np.stack(rows).astype(np.float64), _LEAST)
        network.beta_t = torch.from_numpy(np.ascontiguousarray((beta / beta.sum(axis=1, keepdims=True)).T, np.float32))
        network.agreement = torch.tensor([len(each.members) / len(topics) for each in kept])
        network.similarity = torch.tensor([each.similarity for each in kept])
        network.alpha = _learned_alpha(network, corpus)
        return network.on(device, seed=0).eval()


@dataclass(frozen=True)
class TopicCluster:
    """Topics of different fits that are similar.

    Attributes:
        members: the fit, and the number of the topic in it; each fit occurs once at most.
        similarity: the mean similarity of pairs of members; 1 of a single one.
    """

    members: list[tuple[int, int]]
    similarity: float


def cluster_topics(topics: Sequence[Array], min_similarity: float) -> list[TopicCluster]:
    """Cluster the topics of fits by average linkage, with at most one topic of each fit in a cluster.

    Args:
        topics: (K, V) the topics of each fit; K may differ.
        min_similarity: the least mean similarity of two clusters that are joined.

    Returns:
        the clusters: those with the most members first, and of these those with the most similar ones.

    Examples:
        >>> import numpy as np
        >>> from topicloom.models.ensemble import cluster_topics
        >>> first, second = np.eye(4)[:3], np.eye(4)[[2, 3]]
        >>> [each.members for each in cluster_topics([first, second], 0.4)]
        [[(0, 2), (1, 0)], [(0, 0)], [(0, 1)], [(1, 1)]]
    """
    names = [(fit, topic) for fit, each in enumerate(topics) for topic in range(len(each))]
    starts = np.cumsum([0, *map(len, topics)])
    similarity = np.full((len(names), len(names)), -np.inf)  # of topics and clusters; -inf cannot be joined
    for one in range(len(topics)):
        for other in range(one):
            block = topic_similarity(topics[one], topics[other])
            rows, columns = (slice(starts[fit], starts[fit + 1]) for fit in (one, other))
            similarity[rows, columns], similarity[columns, rows] = block, block.T
    between = np.where(np.isfinite(similarity), similarity, 0)
    members = [[place] for place in range(len(names))]
    while len(names) > 1:
        a, b = sorted(divmod(int(similarity.argmax()), len(names)))
        if not similarity[a, b] >= min_similarity:
            break
        sizes = len(members[a]), len(members[b])
        joined = (sizes[0] * similarity[a] + sizes[1] * similarity[b]) / sum(sizes)
        similarity[a], similarity[:, a] = joined, joined
        similarity[a, a] = -np.inf
        similarity[b], similarity[:, b] = -np.inf, -np.inf
        members[a], members[b] = sorted(members[a] + members[b]), []
    clusters = []
    for places in filter(None, members):
        n = len(places)
        mean = float(between[np.ix_(places, places)].sum() / (n * (n - 1))) if n > 1 else 1.0
        clusters.append(TopicCluster([names[place] for place in places], mean))
    return sorted(clusters, key=lambda each: (-len(each.members), -each.similarity if len(each.members) > 1 else 0))


def most_typical(topics: Sequence[Array]) -> int:
    """Return the number of the fit whose topics are most similar to those of the other fits.

    A topic's similarity to another fit is that of the most similar topic there (LDAPrototype, Rieger et al. 2022, has
    the similarity of clusters).

    Args:
        topics: (K, V) the topics of each fit; K may differ.

    Examples:
        >>> import numpy as np
        >>> from topicloom.models.ensemble import most_typical
        >>> most_typical([np.eye(6)[:3], np.eye(6)[2:5], np.eye(6)[3:]])
        1
    """
    similarity = np.zeros((len(topics), len(topics)))
    for one, other in permutations(range(len(topics)), 2):
        similarity[one, other] = topic_similarity(topics[one], topics[other]).max(1).mean()
    return int(similarity.sum(1).argmax())


def _learned_alpha(network: MeanFieldNetwork, corpus: Corpus) -> Tensor:
    """Return the Dirichlet parameter of theta, (K,), that is most probable given the topics and the documents."""
    alpha = torch.full_like(network.alpha, _INITIAL_ALPHA)
    reader = BatchReader.of(corpus, _BLOCK, torch.device("cpu")).without_empty()
    with without_gradients():
        for _ in range(_ALPHA_PASSES):
            network.alpha = alpha
            numerator, denominator = torch.zeros_like(alpha), torch.zeros(())
            for batch in reader:
                above, below = dirichlet_step(network.gamma_of(batch.counts) - alpha, alpha)
                numerator, denominator = numerator + above, denominator + below
            alpha = (alpha * numerator / denominator).clamp_min(1e-5)
    return alpha
