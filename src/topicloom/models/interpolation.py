"""Interpolation: the documents that a model expects on the way from one document to another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..corpus import Corpus
from ..errors import InputError
from ..nn.batch import Batch
from ..nn.gradients import without_gradients
from ..nn.posteriors import Posterior
from ..ranking import top_words, word_scores
from ..settings import require_whole
from ..topics.document_topics import DocumentTopics
from .inference import Array, device_of, each_batch

if TYPE_CHECKING:
    from .fitted import FittedTopics


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
        return f"Interpolation({len(self)} steps, {self.theta.shape[1]} topics)"


def interpolate(model: FittedTopics, a: Any, b: Any, steps: int = 8, top_n: int = 10) -> Interpolation:
    """Return the path between two documents; the arguments are those of `FittedTopics.interpolate`."""
    require_whole("steps", steps, 2)
    require_whole("top_n", top_n)
    network = model.network_
    ends = [_single(model, document, name) for document, name in ((a, "a"), (b, "b"))]
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
    best = top_words(word_scores(likely, model.word_counts_), int(top_n))  # (S, n)
    return Interpolation(
        positions,
        codes,
        theta,
        [[model.vocabulary_[word] for word in row] for row in best],
        np.take_along_axis(likely, best, axis=1),
        (theta[:, :, None] * model.components_[:, best].transpose(1, 0, 2)).argmax(1),  # (S, K, n) -> (S, n)
        (_with_topics(ends[0], theta[:1]), _with_topics(ends[1], theta[-1:])),
    )


def _single(model: FittedTopics, document: Any, name: str) -> Corpus:
    """Return one document as a corpus over the model's words."""
    corpus = model.documents([document] if isinstance(document, str) else document)
    if corpus.n_docs != 1:
        raise InputError(f"`{name}` should be one document; it has {corpus.n_docs:,}")
    if corpus.is_empty[0]:
        raise InputError(f"`{name}` contains no word that the model knows, so it has no place in the latent space")
    return corpus


def _with_topics(document: Corpus, theta: Array) -> DocumentTopics:
    return DocumentTopics(theta, np.zeros(1, bool), document.fields)
