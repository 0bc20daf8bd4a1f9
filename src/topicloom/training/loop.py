"""The training loop, which trains any TopicNetwork and knows no particular model.

Everything that changes in a run is in its TrainingState.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import torch

from ..distributed.ranks import current
from ..errors import TrainingDivergedError
from ..nn.batch import Batch
from ..nn.network import TopicNetwork
from .batches import BatchReader
from .callbacks import Callback, tell_epoch, watched
from .collapse import CollapseWatch
from .epoch import Epoch, divergence_weight
from .processor import denormals_flushed, suitable_threads
from .state import Row, Stage, TrainingPlan, TrainingState

Monitor = Callable[[TopicNetwork], Row]
Result = TypeVar("Result")
_WATCH_EVERY = 32  # epochs of a network that changes slowly
EVALUATION_SEED = 20_201  # every evaluation draws the same noise, so that epochs can be compared


def train_stages(
    state: TrainingState,
    reader: BatchReader,
    stages: Sequence[Stage],
    *,
    validation: BatchReader | None = None,
    monitors: Sequence[Monitor] = (),
    callbacks: Sequence[Callback] = (),
    after_epoch: Callable[[TrainingState], None] | None = None,
    model: Any = None,
) -> None:
    """Train through the stages that `state` has not finished.

    Args:
        state: the state of the run, which changes.
        reader: the documents to learn from, none of them empty.
        stages: the stages in their order. The last one is recorded.
        validation: held-out documents. If they are given and a plan has a patience, a recorded stage stops after that
            many epochs without a lower loss on them, and the best weights are restored.
        monitors: each measures the network after each epoch of a recorded stage, for the epoch's row of the history.
        after_epoch: changes the state after each epoch, such as by removing topics, before it is measured.
        callbacks: objects that watch the run. In stages that are not recorded, only their `on_step` and `on_state` are
            called.
        model: the estimator, which the callbacks receive.

    Raises:
        TrainingDivergedError: a loss or a gradient is not finite. The weights are those of the last complete epoch.
        OutOfMemoryError: the device has too little memory for a batch. The weights are those of that epoch.
    """
    with watched(callbacks, model, stages[-1].plan.epochs, len(reader)):
        while True:
            stage = stages[state.stage]
            state.network.begin_stage(stage.name)
            if stage.recorded:
                _train_stage(state, reader, stage, validation, monitors, callbacks, after_epoch)
            else:
                _train_stage(state, reader, stage, None, (), callbacks, after_epoch)
            if state.stage + 1 == len(stages):
                return
            state.network.end_stage(stage.name, reader, state.seed)
            state.next_stage(stages[state.stage + 1].plan)


def _train_stage(
    state: TrainingState,
    reader: BatchReader,
    stage: Stage,
    validation: BatchReader | None,
    monitors: Sequence[Monitor],
    callbacks: Sequence[Callback],
    after_epoch: Callable[[TrainingState], None] | None,
) -> None:
    """Train until `state.epoch` is the plan's number of epochs, or the loss on `validation` no longer improves."""
    plan = stage.plan
    seen = callbacks if stage.recorded else ()

    def after_batch() -> None:
        for callback in seen:
            callback.on_batch()
        for callback in callbacks:
            callback.on_step(state)

    def train_epoch() -> None:
        row = Epoch(state, reader, stage).train(after_batch)
        state.network.end_pass()
        if after_epoch is not None:
            after_epoch(state)
        if stage.ends_training and state.epoch == plan.epochs:
            end_training(state, reader)
        if validation is not None:
            row["validation_loss"] = _mean_loss(state.network, validation, divergence_weight(state.network, plan))
            if not math.isfinite(row["validation_loss"]):
                where = f"after epoch {state.epoch}, on the held-out documents"
                raise TrainingDivergedError(f"training stopped {where}: the loss is not finite")
        for monitor in monitors:
            row |= evaluated(state.network, state.device, monitor) if _is_due(state, plan, monitor) else {}
        row = current().value_of_first(row)
        if stage.recorded:
            row |= state.network.adapt(row)
            state.history.append(row)
        tell_epoch(seen, row)
        if validation is not None and _may_end(state, plan):
            _keep_best(state, row["validation_loss"])
        for callback in callbacks:
            callback.on_state(state)

    with denormals_flushed(), _snapshots_unchecked_after(state):
        while state.epoch < plan.epochs and not _out_of_patience(state, plan, validation):
            with suitable_threads(state.network):
                train_epoch()
        for callback in seen:
            callback.on_finish(state)
    if validation is not None and state.best_weights is not None:
        state.network.load_state_dict(state.best_weights)
        state.best_weights = None  # later training must not be undone
        if stage.ends_training:
            end_training(state, reader)
    state.network.eval()


def end_training(state: TrainingState, reader: BatchReader) -> None:
    """Let the network do what follows its training, such as rotating a code; reader has the training documents."""
    evaluated(state.network, state.device, lambda network: network.end_training(reader))


def _is_due(state: TrainingState, plan: TrainingPlan, monitor: Monitor) -> bool:
    """Return whether a monitor measures this epoch; the collapse watch does not if its values would hardly differ."""
    if not isinstance(monitor, CollapseWatch) or not state.network.changes_slowly:
        return True
    return state.epoch % _WATCH_EVERY == 0 or state.epoch >= plan.epochs


def evaluate(network: TopicNetwork, reader: BatchReader, measure: Callable[[Batch], Result]) -> list[Result]:
    """Return what `measure`, such as network.loss or network.bound, returns for each batch in order, outside training.

    The noise is drawn from a generator with a fixed seed, so that epochs can be compared. The network's own generator
    is not used.
    """
    return evaluated(network, reader.device, lambda _: [measure(batch) for batch in reader])


def evaluated(network: TopicNetwork, device: torch.device, measure: Callable[[TopicNetwork], Result]) -> Result:
    """Return what `measure` returns for the network outside training, with noise as in `evaluate`."""
    own = network.generator
    network.generator = torch.Generator(device).manual_seed(EVALUATION_SEED)
    network.eval()
    try:
        with torch.inference_mode():
            return measure(network)
    finally:
        network.generator = own


def _mean_loss(network: TopicNetwork, reader: BatchReader, weight: float) -> float:
    """Return the mean loss of the documents, without the extra terms.

    Args:
        weight: that of the divergence.
    """
    totals = evaluate(network, reader, lambda batch: network.loss(batch).without_extras(weight).sum())
    found = torch.stack([torch.stack(totals).sum().double().cpu(), torch.tensor(reader.n_docs).double()])
    total, n_docs = current().sum(found).tolist()
    return float(total / n_docs)


def _keep_best(state: TrainingState, loss: float) -> None:
    """Keep the weights if the loss on the held-out documents is the lowest so far."""
    if loss < state.best_loss:
        state.best_loss = loss
        state.best_weights = {name: tensor.clone() for name, tensor in state.network.state_dict().items()}
        state.stale_epochs = 0
    else:
        state.stale_epochs += 1


def _may_end(state: TrainingState, plan: TrainingPlan) -> bool:
    """Return whether the loss on the held-out documents decides when training ends.

    It does not during the warm-up, in which training minimises another loss.
    """
    return plan.patience is not None and state.epoch >= plan.kl_warmup and state.network.may_end()


def _out_of_patience(state: TrainingState, plan: TrainingPlan, validation: BatchReader | None) -> bool:
    """Return whether training ends because the loss on the held-out documents no longer falls.

    A state that was written and read again gives the same answer.
    """
    return validation is not None and plan.patience is not None and state.stale_epochs >= plan.patience


@contextmanager
def _snapshots_unchecked_after(state: TrainingState) -> Iterator[None]:
    """Forget the check of snapshots at the end, however training ends."""
    try:
        yield
    finally:
        state.before_snapshot = None
