"""The documents of a fit: those that a network learns from, and those that are held out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..corpus import Corpus
from ..errors import InputError
from ..training.batches import BatchReader
from ..training.state import TrainingState

if TYPE_CHECKING:
    from .neural import NeuralTopicModel


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
