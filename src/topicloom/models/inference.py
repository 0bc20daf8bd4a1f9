"""Inference: a trained network applied to documents. It changes nothing in the network, so threads can share it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..corpus import Corpus
from ..messages import counted
from ..nn.execution import one_thread, without_gradients
from ..nn.network import TopicNetwork
from ..nn.posteriors import Posterior
from ..nn.sparse import Batch
from ..ranking import top_words, word_scores
from ..settings import require_whole
from ..topics.document_topics import DocumentTopics
from ..training.batches import BatchReader
from ..training.loop import EVALUATION_SEED

T = TypeVar("T")
R = TypeVar("R")
Array = npt.NDArray[Any]
Inference = Callable[[Batch], Posterior]
_BATCH = 1024  # documents in a batch without gradients


def device_of(network: TopicNetwork) -> torch.device:
    """Return the device of a network."""
    return next(chain(network.parameters(), network.buffers())).device


def each_batch(
    network: TopicNetwork, corpus: Corpus, read: Callable[[Batch], Tensor], *, even: bool = False
) -> Iterator[Array]:
    """Yield the result of `read` for each batch of documents, in order and without gradients.

    Args:
        network: the network, for its device and the fields that it needs.
        corpus: documents over the network's words.
        read: a function of a batch.
        even: whether all batches have about the same size, as in training. They are then read one after the other.
            Otherwise all but the last are full, and threads share them on a CPU.
    """
    reader = BatchReader.of(corpus, _BATCH, device_of(network), network.fields)

    def result(batch: Batch) -> Array:
        with one_thread(), without_gradients():
            return read(batch).cpu().numpy()

    batches = _read_by_one_thread(iter(reader) if even else reader.chunks())
    workers = 1 if even or reader.device.type != "cpu" else min(torch.get_num_threads(), len(reader))
    yield from in_order(result, batches, workers)


def _read_by_one_thread(batches: Iterator[Batch]) -> Iterator[Batch]:
    while True:
        with one_thread():
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


def in_order(function: Callable[[T], R], items: Iterable[T], n_threads: int) -> Iterator[R]:
    """Yield the result of a function for each item, in order. `n_threads` threads call it."""
    if n_threads <= 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        waiting: deque[Future[R]] = deque()
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > 2 * n_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def document_topics(network: TopicNetwork, corpus: Corpus, posterior: Inference | None = None) -> DocumentTopics:
    """Infer the topics of documents.

    Args:
        network: the network.
        corpus: documents over the network's words.
        posterior: a function from a batch to q(theta | x); None is the network's own.
    """
    infer = posterior or network.posterior
    theta, done = None, 0
    empty = corpus.is_empty if network.needs_words else corpus.is_empty & _lacks_vector(corpus)
    for shares in each_batch(network, corpus, lambda batch: infer(batch).point()):
        theta = np.empty((corpus.n_docs, shares.shape[1]), np.float32) if theta is None else theta
        theta[done : done + len(shares)] = shares
        done += len(shares)
    if theta is None or empty.any():
        with one_thread(), without_gradients():
            average = network.prior_theta().cpu().numpy()
        theta = np.empty((0, len(average)), np.float32) if theta is None else theta
        theta[empty] = average
    return DocumentTopics(theta, empty, corpus.fields)


def _lacks_vector(corpus: Corpus) -> npt.NDArray[np.bool_]:
    """Return which documents have no vector, (n_docs,): there are vectors, and theirs is zero."""
    if corpus.vectors is None:
        return np.zeros(corpus.n_docs, np.bool_)
    empty = corpus.is_empty
    lacking = np.zeros(corpus.n_docs, np.bool_)
    lacking[empty] = ~np.asarray(corpus.vectors[empty]).any(axis=1)  # most vectors are not read
    return lacking


def log_likelihood(network: TopicNetwork, theta: Array, corpus: Corpus) -> Array:
    """Return sum_v x_dv log p(v | theta_d) of each document, (n_docs,), given theta (n_docs, K)."""

    def read(batch: Batch) -> Tensor:
        assert batch.rows is not None
        return network.log_likelihood(torch.from_numpy(theta[batch.rows.cpu().numpy()]).to(batch.device), batch)

    return np.concatenate([np.empty(0), *each_batch(network, corpus, read)])


def evidence_bound(network: TopicNetwork, corpus: Corpus) -> Array:
    """Return the evidence lower bound of each document, (n_docs,). Every call draws the same noise."""
    noise = torch.Generator(device_of(network)).manual_seed(EVALUATION_SEED)
    bounds = each_batch(network, corpus, lambda batch: network.bound(batch, noise), even=True)
    return np.concatenate([np.empty(0), *bounds])


def latent_codes(network: TopicNetwork, corpus: Corpus) -> tuple[Array, Array]:
    """Return each document's code (n_docs, L), and its divergence from the prior by latent variable (n_docs, M)."""
    n_units = 0  # L

    def read(batch: Batch) -> Tensor:
        nonlocal n_units
        posterior = network.posterior(batch)
        code = posterior.code()
        n_units = code.shape[1]
        return torch.cat([code, posterior.divergence()], dim=1)

    both = np.concatenate(list(each_batch(network, corpus, read)) or [np.empty((0, 0), np.float32)])
    return both[:, :n_units], both[:, n_units:]


# Interpolation between two documents


@dataclass(frozen=True, eq=False, repr=False)
class Interpolation:
    """A straight path in the latent space from one document to another, with S steps.

    Attributes:
        positions: (S,) the place of each step on the path, from 0 to 1.
        codes: (S, L) the places in the latent space; see `latent` of a model.
        theta: (S, K) the topic shares that the model decodes there. The first row is `transform(a)` and the last one
            is `transform(b)`.
        words: the words that stand for each step, best first: S lists of n.
        weights: (S, n) p(w | theta) of these words.
        word_topics: (S, n) the topic that gives each of these words the most probability at this step.
        ends: the two documents, each with its topics and its fields.
    """

    positions: Array
    codes: Array
    theta: Array
    words: list[list[str]]
    weights: Array
    word_topics: npt.NDArray[np.intp]
    ends: tuple[DocumentTopics, DocumentTopics]

    def __len__(self) -> int:
        return len(self.positions)

    def __repr__(self) -> str:
        return f"Interpolation({counted(len(self), 'step')}, {self.theta.shape[1]} topics)"


def interpolate(
    network: TopicNetwork,
    ends: Sequence[Corpus],
    topics: tuple[Array, Sequence[str], Array],
    steps: int = 8,
    top_n: int = 10,
) -> Interpolation:
    """Return the path between two documents.

    Args:
        network: the network.
        ends: the first and the last document, each as a corpus of one document.
        topics: the topics (K, V), the V words, and the tokens of each word in the training documents, (V,).
        steps: the number of steps.
        top_n: the number of words for each step.
    """
    require_whole("steps", steps, 2)
    require_whole("top_n", top_n)
    components, vocabulary, word_counts = topics
    found: list[Posterior] = []

    def code(batch: Batch) -> Tensor:
        found.append(network.posterior(batch))
        return found[-1].code()

    first, last = (np.concatenate(list(each_batch(network, end, code))) for end in ends)  # (1, L) both
    positions = np.linspace(0, 1, int(steps), dtype=first.dtype)
    codes = first + positions[:, None] * (last - first)  # (S, L)
    codes[-1] = last[0]
    with without_gradients():
        shares = found[0].decode(torch.from_numpy(codes).to(device_of(network)))  # (S, K)
        likely = network.word_probabilities(shares).cpu().numpy()  # (S, V)
        theta: Array = shares.cpu().numpy()
    best = top_words(word_scores(likely, word_counts), int(top_n))  # (S, n)
    return Interpolation(
        positions,
        codes,
        theta,
        [[vocabulary[word] for word in row] for row in best],
        np.take_along_axis(likely, best, axis=1),
        (theta[:, :, None] * components[:, best].transpose(1, 0, 2)).argmax(1),  # (S, K, n) -> (S, n)
        (_with_topics(ends[0], theta[:1]), _with_topics(ends[1], theta[-1:])),
    )


def _with_topics(document: Corpus, theta: Array) -> DocumentTopics:
    return DocumentTopics(theta, np.zeros(1, bool), document.fields)
