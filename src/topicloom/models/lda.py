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

from ..errors import InputError, MissingExtraError, SettingError
from ..nn.mean_field import MeanFieldNetwork
from ..settings import AtLeastOne, Positive
from ..training.batches import BatchReader, choose_device
from ..training.callbacks import Callback, ProgressBar, watched
from ..training.collapse import CollapseWatch
from ..training.loop import Monitor
from .base import Array, TopicModel, Words

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

    def _network(self, words: Words, generator: torch.Generator) -> MeanFieldNetwork:
        return MeanFieldNetwork(len(words), self.n_topics)

    def _fit(self, counts: sp.csr_array, callbacks: Sequence[Callback] = (), monitors: Sequence[Monitor] = ()) -> None:
        watchers = [*([ProgressBar()] if self.verbose else []), *callbacks]
        counts = counts[np.diff(counts.indptr) > 0]
        epochs = self.epochs or _EPOCHS[self.method]
        watch = self._watch(BatchReader(counts, self.batch_size, choose_device(self.device)))
        if self.method == "gibbs":
            rows = self._sample(self._sampler(counts), epochs, watch, bool(monitors))
        else:
            rows = self._learn(self._online_lda(counts.shape[0]), counts, epochs, watch)
        with watched(watchers, epochs, 1):
            for row in rows:
                row |= {name: value for monitor in monitors for name, value in monitor(self.network_).items()}
                self.history_.append(row)
                for watcher in watchers:
                    watcher.on_epoch(row)
        self._advise(watch)

    @property
    def _n_rows(self) -> int:
        return -(-(self.epochs or _EPOCHS[self.method]) // (1 if self.method == "variational" else _SAMPLER_STEP))

    def _partial_fit(self, counts: sp.csr_array) -> None:
        if self.method == "gibbs":
            raise InputError('LDA(method="gibbs") has no partial_fit; use method="variational"')
        if not hasattr(self, "network_"):
            self.online_ = self._online_lda(_STREAM)
        elif not hasattr(self, "online_"):
            raise InputError("an LDA that was loaded or sampled has no running counts to go on from; fit it again")
        counts = counts[np.diff(counts.indptr) > 0]
        watch = self._watch(BatchReader(counts, self.batch_size, choose_device(self.device)))
        self.history_ += self._learn(self.online_, counts, 1, watch)

    def _learn(self, model: Any, counts: sp.csr_array, epochs: int, watch: CollapseWatch) -> Iterator[dict[str, Any]]:
        """Online variational Bayes; after each pass, the row of it."""
        self.online_ = model
        order = np.random.default_rng(model.random_state)
        for _ in range(epochs):
            began = time.perf_counter()
            model.partial_fit(counts[order.permutation(counts.shape[0])])  # in batches of its batch_size
            self._take(model.components_, np.full(self.n_topics, model.doc_topic_prior_))
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

    def _online_lda(self, n_docs: int) -> Any:
        """scikit-learn's model, for that many documents in all."""
        from sklearn.decomposition import LatentDirichletAllocation

        for name in ("alpha", "eta"):
            if (getattr(self, name) or 0) > 1:  # scikit-learn's limit
                raise SettingError(
                    f'{name} of LDA(method="variational") should be at most 1; it is {getattr(self, name)!r}'
                )
        model = LatentDirichletAllocation(
            self.n_topics,
            doc_topic_prior=self.alpha,
            topic_word_prior=self.eta,
            batch_size=self.batch_size,
            total_samples=n_docs,
            random_state=self._seed(),
        )
        pseudo_counts = self._pseudo_counts()
        if pseudo_counts is not None:
            nothing = sp.csr_array((1, self.n_features_in_), dtype=np.float64)
            model.partial_fit(nothing)  # sets up its arrays
            model.topic_word_prior_ = model.topic_word_prior_ + pseudo_counts  # a number becomes (K, V)
            model.components_ += pseudo_counts
            model.partial_fit(nothing)  # whatever it derives from them follows
        return model

    def _pseudo_counts(self) -> Array | None:
        """(K, V) what seed_words adds to the Dirichlet parameter of the topics, or None."""
        seeds = self._seeds()
        return None if seeds is None else (seeds.mT.numpy() > 0) * np.minimum(self.word_counts_, _SEED_COUNT)

    def _sampler(self, counts: sp.csr_array) -> Any:
        """tomotopy's model, with the documents in it."""
        try:
            import tomotopy
        except ImportError:
            raise MissingExtraError.of('LDA(method="gibbs")', "tomotopy", "eval") from None
        if not np.array_equal(counts.data, np.floor(counts.data)):
            raise InputError('LDA(method="gibbs") needs whole counts; use method="variational" for weights')
        seed = self._seed()
        eta = self.eta or 0.01
        model = tomotopy.LDAModel(k=self.n_topics, alpha=self.alpha or 0.1, eta=eta, seed=seed)
        tokens = np.repeat(counts.indices, counts.data.astype(np.int64)).astype(str)
        ends = np.cumsum(counts.sum(axis=1)).astype(np.int64)
        for document in np.split(tokens, ends[:-1]):
            model.add_doc(document.tolist())
        pseudo_counts = self._pseudo_counts()
        if pseudo_counts is not None:
            for word in np.flatnonzero(pseudo_counts.any(axis=0)):
                model.set_word_prior(str(word), (eta + pseudo_counts[:, word]).tolist())
        return model

    def _sample(self, model: Any, epochs: int, watch: CollapseWatch, read: bool) -> Iterator[dict[str, Any]]:
        """Collapsed Gibbs sampling; every few iterations, the row of them, with the network of then if it is `read`."""
        tokens_a_document = model.num_words / len(model.docs)
        for done in range(0, epochs, _SAMPLER_STEP):
            began = time.perf_counter()
            model.train(min(_SAMPLER_STEP, epochs - done), workers=self.n_jobs)
            row = {"epoch": float(model.global_step), "loss": -model.ll_per_word * tokens_a_document}
            row["seconds"] = time.perf_counter() - began
            if read or done + _SAMPLER_STEP >= epochs:
                self._take_sample(model)
            if done + _SAMPLER_STEP < epochs:
                yield row
        yield self._measured(watch) | row

    def _take_sample(self, model: Any) -> None:
        topics = np.full((self.n_topics, self.n_features_in_), 1e-12)  # words that no document has
        topics[:, [int(word) for word in model.used_vocabs]] = [
            model.get_topic_word_dist(k) for k in range(self.n_topics)
        ]
        self._take(topics, model.alpha)

    def _take(self, topics: Array, alpha: Array) -> None:
        """Topics (K, V), not yet normalised, and alpha (K,) become the network's."""
        network = MeanFieldNetwork(topics.shape[1], self.n_topics)
        beta_t = (topics / topics.sum(axis=1, keepdims=True)).T
        network.beta_t.copy_(torch.from_numpy(np.ascontiguousarray(beta_t)))
        network.alpha.copy_(torch.from_numpy(np.asarray(alpha, dtype=np.float32)))
        self._adopt(network.on(choose_device(self.device), seed=0))
