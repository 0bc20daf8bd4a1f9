"""LDA: latent Dirichlet allocation, the classical baseline behind the same interface.

Blei, Ng & Jordan 2003. method="variational" is the online variational Bayes of Hoffman, Blei & Bach 2010 as
scikit-learn has it; method="gibbs" is the collapsed Gibbs sampler of Griffiths & Steyvers 2004 as tomotopy has it,
with the Dirichlet parameter of theta learned (Minka's fixed point).

Departure: after training by either method, theta is inferred by mean-field variational Bayes given the topics' means
beta (Blei et al. 2003, section 5.2), for the training documents as for new ones. Nothing in it is random.

Seed words are pseudo-counts in the Dirichlet parameters of their topics, where learning also starts.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
import torch

from ...corpus import Corpus
from ...errors import InputError, SettingError
from ...nn.mean_field import MeanFieldNetwork
from ...settings import AtLeastOne, Positive
from ...training.batches import BatchReader, choose_device
from ...training.callbacks import Callback, ProgressBar, watched
from ...training.collapse import CollapseWatch
from ...training.loop import Monitor
from ...training.state import Row, Snapshot
from ..base import TopicModel
from ..inference import Array
from ..words import Words, seed_weights
from .gibbs import GibbsRun
from .online import OnlineRun

_SAMPLER_STEP = 10  # iterations of the sampler between two rows of history_
_EPOCHS = {"variational": 20, "gibbs": 1000}
_STREAM = 1_000_000  # documents that partial_fit takes there to be, as scikit-learn does
_SEED_COUNT = 50  # tokens, at most; with many more, a topic would be its seed words and hold no document


@dataclass(eq=False, repr=False, kw_only=True)
class LDA(TopicModel):
    """Latent Dirichlet allocation (Blei, Ng & Jordan 2003).

    Args:
        method: "variational" (scikit-learn's online variational Bayes) or "gibbs" (tomotopy's sampler; needs the
            extra `eval`; whole counts only, no partial_fit).
        epochs: passes over the documents; None is 20 for "variational" and 1,000 for "gibbs".
        batch_size: documents a step of "variational".
        alpha: Dirichlet parameter of theta, the same for each topic; None is 1/K for "variational". "gibbs" learns
            one for each topic, from this start, None being .1.
        eta: Dirichlet parameter of the topics; None is 1/K for "variational" and .01 for "gibbs". "variational" takes
            an alpha and an eta of at most 1.
        n_jobs: workers of "gibbs"; its result depends on their number.

    history_ has a row for each pass of "variational", whose loss is minus the bound of the documents watched for
    collapse, and for every ten iterations of "gibbs", whose loss is minus the sampler's own log likelihood, both per
    document.
    """

    method: Literal["variational", "gibbs"] = "variational"
    epochs: AtLeastOne | None = None
    batch_size: AtLeastOne = 256
    alpha: Positive | None = None
    eta: Positive | None = None
    n_jobs: AtLeastOne = 1

    def build_network(self, words: Words, generator: torch.Generator) -> MeanFieldNetwork:
        return MeanFieldNetwork(len(words), self.n_topics)

    def fit_corpus(
        self,
        corpus: Corpus,
        callbacks: Sequence[Callback] = (),
        monitors: Sequence[Monitor] = (),
        snapshot: Snapshot | None = None,
    ) -> None:
        watchers = [*([ProgressBar()] if self.verbose else []), *callbacks]
        counts = corpus.counts[np.diff(corpus.counts.indptr) > 0]
        epochs = self.epochs or _EPOCHS[self.method]
        watch = self.collapse_watch(BatchReader(counts, self.batch_size, choose_device(self.device)))
        run: OnlineRun | GibbsRun
        if self.method == "gibbs":
            run = self._gibbs_run(counts)
            if snapshot is not None:
                run.restore(snapshot, _SAMPLER_STEP)
            rows = self._sample(run, epochs, watch, bool(monitors))
        else:
            run = self._online_run(counts.shape[0])
            if snapshot is not None:
                run.restore(snapshot)
            rows = self._learn(run, counts, epochs, watch)
        self.history_ = run.history
        if snapshot is not None:
            self._take(run.topics, run.alpha)
        with watched(watchers, epochs, 1):
            for row in rows:
                row |= {name: value for monitor in monitors for name, value in monitor(self.network_).items()}
                run.history.append(row)
                for watcher in watchers:
                    watcher.on_epoch(row)
                for watcher in watchers:
                    watcher.on_state(run)
        self.warn_of_collapse(watch)

    @property
    def n_history_rows(self) -> int:
        return -(-(self.epochs or _EPOCHS[self.method]) // (1 if self.method == "variational" else _SAMPLER_STEP))

    def partial_fit_corpus(self, corpus: Corpus) -> None:
        if self.method == "gibbs":
            raise InputError('LDA(method="gibbs") has no partial_fit; use method="variational"')
        if not hasattr(self, "network_"):
            self.online_ = self._online_run(_STREAM)
        elif not hasattr(self, "online_"):
            raise InputError("an LDA that was loaded or sampled has no running counts to go on from; fit it again")
        counts = corpus.counts[np.diff(corpus.counts.indptr) > 0]
        watch = self.collapse_watch(BatchReader(counts, self.batch_size, choose_device(self.device)))
        self.online_.begin()
        for row in self._learn(self.online_, counts, len(self.history_) + 1, watch):
            self.history_.append(row)

    def _learn(self, run: OnlineRun, counts: sp.csr_array, epochs: int, watch: CollapseWatch) -> Iterator[Row]:
        """Go over the documents until there are so many rows; yield the row of each pass."""
        self.online_ = run
        while len(self.history_) < epochs:
            began = time.perf_counter()
            run.learn(counts)
            self._take(run.topics, run.alpha)
            row = {"epoch": len(self.history_) + 1, **self._measured(watch)}
            yield row | {"seconds": time.perf_counter() - began}

    def _measured(self, watch: CollapseWatch) -> dict[str, Any]:
        """Minus the bound of the watched documents, and what the watch says of them."""
        network = self.network_
        assert isinstance(network, MeanFieldNetwork)
        with torch.inference_mode():
            posterior = network.posterior(watch.batch)
            loss = float(network.loss_of(posterior, watch.batch).total().mean())
            return {"loss": loss, **watch.figures(posterior, network.topic_word())}

    def _online_run(self, n_docs: int) -> OnlineRun:
        """A run of "variational" for that many documents in all, before its first pass."""
        for name in ("alpha", "eta"):
            if (getattr(self, name) or 0) > 1:  # scikit-learn's limit
                raise SettingError(
                    f'{name} of LDA(method="variational") should be at most 1; it is {getattr(self, name)!r}'
                )
        return OnlineRun(
            self.n_topics,
            self.n_features_in_,
            n_docs,
            alpha=self.alpha,
            eta=self.eta,
            batch_size=self.batch_size,
            seed=self.draw_seed(),
            pseudo_counts=self._pseudo_counts(),
        )

    def _gibbs_run(self, counts: sp.csr_array) -> GibbsRun:
        """A run of "gibbs" before its first iteration."""
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
        """(K, V) what seed_words adds to the Dirichlet parameter of the topics, or None."""
        seeds = seed_weights(self.seed_words, self.vocabulary_, self.n_topics)
        return None if seeds is None else (seeds.mT.numpy() > 0) * np.minimum(self.word_counts_, _SEED_COUNT)

    def _sample(self, run: GibbsRun, epochs: int, watch: CollapseWatch, read: bool) -> Iterator[Row]:
        """Sample until `epochs` iterations are done; yield a row every few.

        Args:
            read: whether the network follows at every row, and not only at the last.
        """
        while run.iterations < epochs:
            began = time.perf_counter()
            run.sample(min(_SAMPLER_STEP, epochs - run.iterations))
            row: Row = {"epoch": float(run.iterations), "loss": run.loss, "seconds": time.perf_counter() - began}
            last = run.iterations >= epochs
            if read or last:
                self._take(run.topics, run.alpha)
            yield (self._measured(watch) | row) if last else row

    def _take(self, topics: Array, alpha: Array) -> None:
        """Topics (K, V), not yet normalised, and alpha (K,) become the network's."""
        network = MeanFieldNetwork(topics.shape[1], self.n_topics)
        beta_t = (topics / topics.sum(axis=1, keepdims=True)).T
        network.beta_t.copy_(torch.from_numpy(np.ascontiguousarray(beta_t)))
        network.alpha.copy_(torch.from_numpy(np.asarray(alpha, dtype=np.float32)))
        self.adopt_network(network.on(choose_device(self.device), seed=0))
