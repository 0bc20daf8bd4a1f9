"""LDA: latent Dirichlet allocation, the classical baseline with the interface of the other models.

Blei, Ng & Jordan 2003. method="variational" is the online variational Bayes of Hoffman, Blei & Bach 2010, as
scikit-learn implements it (`OnlineRun`), or variational Bayes with all documents in a step (`BatchRun`). method="gibbs"
is the collapsed Gibbs sampler of Griffiths & Steyvers 2004, as tomotopy implements it (`GibbsRun`), which learns the
Dirichlet parameter of theta by Minka's fixed point.

One departure: after either method, theta is inferred by mean-field variational Bayes given the means beta of the
topics (Blei et al. 2003, section 5.2), for training documents and new ones alike. This inference is not random.

Seed words are pseudo-counts in the Dirichlet parameters of their topics, and learning starts from them.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
import torch

from ..corpus import Corpus
from ..errors import InputError, MissingExtraError, SettingError
from ..messages import brief, counted, type_with_article
from ..nn.execution import usual_device, without_gradients
from ..nn.mean_field import MeanFieldNetwork, mean_field_network
from ..nn.network import TopicNetwork
from ..settings import AtLeastOne, DirichletParameter
from ..text.tokenizing import fold_word_of
from ..training.batches import BatchReader, choose_device
from ..training.callbacks import Callback, ProgressBar, call_on_epoch, watched
from ..training.loop import Monitor
from ..training.monitors import CollapseWatch
from ..training.state import Row, Snapshot
from .base import TopicModel, UsedIf
from .inference import Array
from .online_lda import BatchRun, OnlineRun
from .words import Words, seed_weights

_MOST_TOKENS = 1 << 29  # more tokens would take about 10 GiB and many hours


class GibbsRun:
    """A Gibbs sampler with its documents.

    Args:
        counts: (D, V) whole counts.
        n_topics: the number of topics K.
        alpha: the initial Dirichlet parameter of theta. The sampler learns one for each topic.
        eta: the Dirichlet parameter of the topics.
        seed: the seed of the sampler.
        n_jobs: the number of threads. With more than one, equal seeds need not give equal results.
        pseudo_counts: (K, V) tokens that words have in topics from the start, or None.

    Raises:
        MissingExtraError: tomotopy is not installed.
        InputError: the counts are not whole.
    """

    def __init__(
        self,
        counts: sp.csr_array,
        n_topics: int,
        *,
        alpha: float,
        eta: float,
        seed: int,
        n_jobs: int,
        pseudo_counts: Array | None,
    ) -> None:
        try:
            if "tomotopy" not in sys.modules:
                with warnings.catch_warnings():
                    # If warnings are errors, this one would prevent the import of its compiled module.
                    warnings.filterwarnings("ignore", "builtin type", DeprecationWarning)
                    import tomotopy
            import tomotopy
        except ImportError:
            raise MissingExtraError.of('LDA(method="gibbs")', "tomotopy", "eval") from None
        if not np.array_equal(counts.data, np.floor(counts.data)):
            raise InputError('LDA by Gibbs sampling needs whole counts; for weights use `method="variational"`')
        if counts.data.sum(dtype=np.float64) > _MOST_TOKENS:
            raise InputError(
                f"LDA by Gibbs sampling keeps every token in memory, and these documents have {counts.data.sum():.3g}; "
                'use `method="variational"`, or divide the counts'
            )
        self.n_jobs, self.n_words = n_jobs, counts.shape[1]
        self.history: list[dict[str, Any]] = []
        self.model = tomotopy.LDAModel(k=n_topics, alpha=alpha, eta=eta, seed=seed)
        names = np.array([str(word) for word in range(self.n_words)], object)
        repeats = counts.data.astype(np.int64)
        for start, end in pairwise(counts.indptr):
            self.model.add_doc(np.repeat(names[counts.indices[start:end]], repeats[start:end]).tolist())
        if pseudo_counts is not None:
            for word in np.flatnonzero(pseudo_counts.any(axis=0)):
                self.model.set_word_prior(str(word), (eta + pseudo_counts[:, word]).tolist())

    @property
    def iterations(self) -> int:
        """The number of iterations so far."""
        return int(self.model.global_step)

    def sample(self, iterations: int) -> None:
        """Draw the topic of every token anew in each of this many iterations."""
        self.model.train(iterations, workers=self.n_jobs)

    @property
    def loss(self) -> float:
        """Minus the log likelihood that the sampler reports, in nats per document."""
        tokens_per_document: float = self.model.num_words / len(self.model.docs)
        return -float(self.model.ll_per_word) * tokens_per_document

    @property
    def topics(self) -> Array:
        """The topics (K, V), whose rows do not sum to 1."""
        topics = np.full((self.model.k, self.n_words), 1e-12)  # words that no document has keep this value
        topics[:, [int(word) for word in self.model.used_vocabs]] = [
            self.model.get_topic_word_dist(k) for k in range(self.model.k)
        ]
        return topics

    @property
    def alpha(self) -> Array:
        """The Dirichlet parameter of theta as learned so far, (K,)."""
        alpha: Array = self.model.alpha
        return alpha

    @property
    def network(self) -> MeanFieldNetwork:
        """A new network with the topics as they are now."""
        return mean_field_network(self.topics, self.alpha)

    def snapshot(self) -> Snapshot:
        """Return the number of iterations so far, because tomotopy cannot save the state of its random generator."""
        return Snapshot({}, {"iterations": self.iterations, "history": [dict(row) for row in self.history]})

    def restore(self, snapshot: Snapshot, step: int) -> None:
        """Repeat the iterations of a snapshot from the seed, in the same calls of `step` iterations."""
        while (left := snapshot.values["iterations"] - self.iterations) > 0:
            self.sample(min(step, left))
        self.history = [dict(row) for row in snapshot.values["history"]]


_BATCH = 256  # documents of a batch if `batch_size` is None
_SAMPLER_STEP = 10  # iterations of the sampler from one row of history_ to the next
_EPOCHS = {"variational": 20, "gibbs": 1000}
_STREAM = 1_000_000  # partial_fit assumes this many documents in total, like scikit-learn
_SEED_COUNT = 50  # the most pseudo-tokens of a seed word; with many more, its topic would have no other words


@dataclass(eq=False, repr=False, kw_only=True)
class LDA(TopicModel):
    """Latent Dirichlet allocation (Blei, Ng & Jordan 2003).

    With "variational", `history_` has a row for each pass. The loss is minus the variational bound per document, on a
    sample of the training documents. With "gibbs", it has a row for every ten iterations. The loss is minus the log
    likelihood per document, as the sampler reports it.

    Main args:
        epochs: the number of passes over the documents; None is 20 for "variational" and 1,000 for "gibbs".
        batch_size: the number of documents in a step of "variational". The steps depend on the order of the documents.
            None takes all documents in each step (batch variational Bayes), so that their order changes nothing, and in
            `partial_fit` 256 of them.

    Prior args:
        alpha: the Dirichlet parameter of theta, the same for all topics. A smaller value gives documents fewer topics.
            None is 1/K for "variational", where it can be at most 1. For "gibbs" it is the initial value, by default
            .1, because the sampler learns one parameter for each topic.
        eta: the Dirichlet parameter of the topics. A smaller value gives topics fewer words. None is 1/K for
            "variational", where it can be at most 1, and .01 for "gibbs".

    Training args:
        method: "variational" is scikit-learn's online variational Bayes. "gibbs" is tomotopy's Gibbs sampler, which
            usually finds better topics; it needs the extra `eval` and whole counts, and has no partial_fit.

    Run args:
        n_jobs: the number of threads of "gibbs". The result depends on it.

    Examples:
        >>> import topicloom as tl
        >>> corpus = tl.datasets.synthetic_lda(n_docs=80, n_words=50, n_topics=3).corpus
        >>> model = tl.LDA(n_topics=3, epochs=3, random_state=0).fit(corpus)
        >>> model.transform(corpus).shape
        (80, 3)
    """

    used_if: ClassVar[UsedIf] = {
        "batch_size": ("with `method='gibbs'`", lambda model: model.method != "gibbs"),
        "n_jobs": ("without `method='gibbs'`", lambda model: model.method == "gibbs"),
    }
    expands_new_documents = "always"  # it has no encoder that reads vectors

    method: Literal["variational", "gibbs"] = "variational"
    epochs: AtLeastOne | None = None
    batch_size: AtLeastOne | None = 256
    alpha: DirichletParameter | None = None
    eta: DirichletParameter | None = None
    n_jobs: AtLeastOne = 1

    @classmethod
    @usual_device()
    def of_topics(cls, topics: Any, corpus: Corpus, alpha: Any = None, **settings: Any) -> Self:
        """Return a model with topics that are known already, such as those of another program.

        Theta is inferred as after training. The model has learned nothing, so its `history_` is empty.

        Args:
            topics: (K, V) weights of the words of `corpus`, not negative; the rows need not sum to 1.
            corpus: documents over these words, which count as the training documents.
            alpha: (K,) the Dirichlet parameter of theta, or one number for all topics. None is 1/K.
            settings: settings of the model, such as `device`.

        Raises:
            InputError: `topics` or `alpha` has another size, or a number that cannot be used.

        Examples:
            >>> import topicloom as tl
            >>> corpus = tl.Corpus.from_counts([[2, 1, 0], [0, 1, 3]], ["cat", "dog", "rain"])
            >>> model = tl.LDA.of_topics([[0.6, 0.4, 0], [0, 0.1, 0.9]], corpus, alpha=0.1)
            >>> model.transform(corpus).argmax(axis=1).tolist()
            [0, 1]
        """
        if not isinstance(corpus, Corpus):
            raise InputError(f"`corpus` should be a Corpus; it is {type_with_article(corpus)}: {brief(corpus)}")
        try:
            weights = np.asarray(topics, np.float64)
            parameter = np.asarray(1 / max(len(weights), 1) if alpha is None else alpha, np.float64)
        except (TypeError, ValueError):
            raise InputError("`topics` and `alpha` should consist of numbers") from None
        if weights.ndim != 2 or weights.shape[1] != corpus.n_words:
            raise InputError(
                f"`topics` has the shape {weights.shape}, and the corpus has {counted(corpus.n_words, 'word')}; give a "
                "row for each topic, with a number for each word"
            )
        if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any(axis=1).all()):
            raise InputError("`topics` needs finite numbers from 0, and at least one above 0 in each row")
        if parameter.shape not in ((), (len(weights),)) or not (np.isfinite(parameter) & (parameter > 0)).all():
            raise InputError(f"`alpha` should be a number above 0, or {len(weights)} of them, one for each topic")
        model = cls(n_topics=len(weights), **settings)
        model._begin(corpus, None, for_fit=False)
        network = mean_field_network(weights, np.broadcast_to(parameter, len(weights)))
        model.adopt_network(network.on(choose_device(model.device), seed=0))
        return model

    def build_network(self, words: Words, generator: torch.Generator) -> MeanFieldNetwork:
        return MeanFieldNetwork(len(words), self.n_topics)

    def fit_corpus(
        self,
        corpus: Corpus,
        callbacks: Sequence[Callback] = (),
        monitors: Sequence[Monitor] = (),
        snapshot: Snapshot | None = None,
        validation: Corpus | None = None,
    ) -> None:
        watchers = [*([ProgressBar()] if self.verbose else []), *callbacks]
        counts = corpus.counts[np.diff(corpus.counts.indptr) > 0]
        epochs = self._epochs
        if snapshot is not None and snapshot.continued is not None:
            epochs = snapshot.continued.end
        watch = self.collapse_watch(BatchReader(counts, self.batch_size or _BATCH, choose_device(self.device)))
        run: OnlineRun | BatchRun | GibbsRun
        if self.method == "gibbs":
            run = self._gibbs_run(counts)
            if snapshot is not None:
                run.restore(snapshot, _SAMPLER_STEP)
            rows = self._sample(run, epochs, watch, bool(monitors))
        else:
            run = self._online_run(counts.shape[0]) if self.batch_size else self._batch_run()
            if snapshot is not None:
                run.restore(snapshot)
            rows = self._learn(run, counts, epochs, watch)
        self.history_ = run.history
        last: tuple[TopicNetwork, int] | None = None  # the network of the last complete pass, and the number of passes
        if snapshot is not None:
            self._take_network(run)
            last = self.network_, len(run.history)
        try:
            with watched(watchers, self, epochs, 1):
                for row in rows:
                    row |= {name: value for monitor in monitors for name, value in monitor(self.network_).items()}
                    run.history.append(row)
                    if self.method == "variational":
                        last = self.network_, len(run.history)
                    call_on_epoch(watchers, row)
                    for watcher in watchers:
                        watcher.on_state(run)
                for watcher in watchers:
                    watcher.on_finish(run)
        except BaseException:
            self._return_to(last, run)
            raise
        self.warn_of_collapse(watch)

    def _return_to(self, last: tuple[TopicNetwork, int] | None, run: OnlineRun | BatchRun | GibbsRun) -> None:
        """Adopt the network of the last row of `history_` after training was stopped, if there is a row."""
        if isinstance(run, GibbsRun):
            if run.history:
                self._take_network(run)  # each iteration is whole, so it may be a few iterations ahead of the row
        elif last is not None:
            del run.history[last[1] :]
            self.adopt_network(last[0])
        elif hasattr(self, "network_"):
            del self.network_, self.components_

    @property
    def n_history_rows(self) -> int:
        return self.rows_of(self._epochs)

    @property
    def _epochs(self) -> int:
        return self.epochs or _EPOCHS[self.method]

    def rows_of(self, epochs: int) -> int:
        return epochs if self.method == "variational" else -(-epochs // _SAMPLER_STEP)

    def partial_fit_corpus(self, corpus: Corpus) -> None:
        if self.method == "gibbs":
            raise InputError('LDA by Gibbs sampling has no partial_fit; use `method="variational"`')
        if not hasattr(self, "network_"):
            self.online_ = self._online_run(_STREAM)
        elif not hasattr(self, "online_"):
            raise InputError(
                "an LDA model that was loaded, or fitted by Gibbs sampling or with all documents in each step, cannot "
                "learn from more documents; fit it again"
            )
        counts = corpus.counts[np.diff(corpus.counts.indptr) > 0]
        watch = self.collapse_watch(BatchReader(counts, self.batch_size or _BATCH, choose_device(self.device)))
        self.online_.begin()
        for row in self._learn(self.online_, counts, len(self.history_) + 1, watch):
            self.history_.append(row)

    def _learn(
        self, run: OnlineRun | BatchRun, counts: sp.csr_array, epochs: int, watch: CollapseWatch
    ) -> Iterator[Row]:
        """Pass over the documents until `history_` has a row for each epoch; yield the row of each pass."""
        if isinstance(run, OnlineRun):
            self.online_ = run
        while len(self.history_) < epochs:
            began = time.perf_counter()
            run.learn(counts)
            self._take_network(run)
            row = {"epoch": len(self.history_) + 1, **self._measured(watch)}
            yield row | {"seconds": time.perf_counter() - began}

    def _measured(self, watch: CollapseWatch) -> dict[str, Any]:
        """Return minus the bound of the collapse watch's documents, and the measures of collapse."""
        network = self.network_
        assert isinstance(network, MeanFieldNetwork)
        with without_gradients():
            posterior = network.posterior(watch.batch)
            loss = float(network.loss_of(posterior, watch.batch).total().mean())
            return {"loss": loss, **watch.figures(posterior, network.topic_word())}

    def _batch_run(self) -> BatchRun:
        """Return a run of "variational" with all documents in each step, before its first one."""
        self._check_priors()
        return BatchRun(
            self.n_topics,
            self.n_features_in_,
            alpha=self.alpha,
            eta=self.eta,
            seed=self.draw_seed(),
            pseudo_counts=self._pseudo_counts(),
        )

    def _check_priors(self) -> None:
        for name in ("alpha", "eta"):
            if (getattr(self, name) or 0) > 1:  # scikit-learn's limit
                raise SettingError(
                    f'{name} of LDA(method="variational") should be at most 1; it is {getattr(self, name)!r}'
                )

    def _online_run(self, n_docs: int) -> OnlineRun:
        """Return a run of "variational" before its first pass, for this many documents in total."""
        self._check_priors()
        return OnlineRun(
            self.n_topics,
            self.n_features_in_,
            n_docs,
            alpha=self.alpha,
            eta=self.eta,
            batch_size=self.batch_size or _BATCH,
            seed=self.draw_seed(),
            pseudo_counts=self._pseudo_counts(),
        )

    def _gibbs_run(self, counts: sp.csr_array) -> GibbsRun:
        """Return a run of "gibbs" before its first iteration."""
        return GibbsRun(
            counts,
            self.n_topics,
            alpha=self.alpha or 0.1,
            eta=self.eta or 0.01,
            seed=self.draw_seed(),
            n_jobs=self.n_jobs,
            pseudo_counts=self._pseudo_counts(),
        )

    def _pseudo_counts(self) -> Array | None:
        """Return what seed words add to the Dirichlet parameters of the topics, (K, V), or None."""
        seeds = seed_weights(self.seed_words, self.vocabulary_, self.n_topics, fold_word_of(self.tokenizer_))
        return None if seeds is None else (seeds.mT.numpy() > 0) * np.minimum(self.word_counts_, _SEED_COUNT)

    def _sample(self, run: GibbsRun, epochs: int, watch: CollapseWatch, needs_network: bool) -> Iterator[Row]:
        """Sample until there have been `epochs` iterations. Yield a row for every ten.

        Args:
            needs_network: whether `network_` is updated for every row, and not only for the last one.
        """
        while run.iterations < epochs:
            began = time.perf_counter()
            run.sample(min(_SAMPLER_STEP, epochs - run.iterations))
            row: Row = {"epoch": float(run.iterations), "loss": run.loss, "seconds": time.perf_counter() - began}
            last = run.iterations >= epochs
            if needs_network or last:
                self._take_network(run)
            yield (self._measured(watch) | row) if last else row

    def _take_network(self, run: OnlineRun | BatchRun | GibbsRun) -> None:
        """Adopt a network with the topics of a run as they are now."""
        self.adopt_network(run.network.on(choose_device(self.device), seed=0))
