"""The documents of a fit: those that a network learns from, and those that are held out."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np

from ..corpus import Corpus
from ..distributed.ranks import current
from ..errors import InputError
from ..training.batches import BatchReader
from ..training.state import TrainingState

if TYPE_CHECKING:
    from .neural import NeuralTopicModel

logger = logging.getLogger("topicloom")

_MANY = 100  # documents
_LONG = 0.1  # of all tokens; with such a document, the perplexity of others was 3 to 13 % higher


def training_readers(
    model: NeuralTopicModel, corpus: Corpus, validation: Corpus | None, state: TrainingState
) -> tuple[BatchReader, BatchReader | None]:
    """Return readers of the training documents, and of the validation documents where training needs them.

    Args:
        model: the estimator.
        corpus: the documents of `fit`.
        validation: the validation documents. With None and a `patience`, some documents of `fit` are held out.
        state: the state of the run, which draws them.

    Raises:
        InputError: there is a single document, so that none can be held out.
    """
    reader = model.build_reader(corpus, state)
    _warn_of_a_long_document(corpus)
    if validation is not None:
        held_out = BatchReader.of(validation, reader.batch_size, state.device, state.network.fields)
        return reader, held_out.without_empty()
    if model.patience is None:
        return reader, None
    if reader.n_docs < 2:
        raise InputError("`patience` needs at least two documents that are not empty")
    others, held_out = reader.split(model.validation_fraction, state.shuffle)
    state.keep_first_shuffle()
    return others.shared(), held_out


def _warn_of_a_long_document(corpus: Corpus) -> None:
    """Warn if a single one of many documents has much of the corpus."""
    if corpus.n_docs < _MANY or current().size > 1:  # a rank has only a part of the documents
        return
    lengths = np.asarray(corpus.counts.sum(axis=1)).ravel()  # (D,)
    longest = int(lengths.argmax())
    if (share := lengths[longest] / lengths.sum()) >= _LONG:
        logger.warning(
            "document %d has %.0f %% of all tokens, so the topics follow it more than other documents; divide it into "
            "parts, such as its chapters",
            longest, 100 * share,
        )  # fmt: skip
