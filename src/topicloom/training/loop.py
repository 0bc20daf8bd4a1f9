"""The loop: it trains any TopicNetwork and names no model. All that changes in a run is in its TrainingState."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import Tensor, nn

from ..errors import TrainingDivergedError
from ..nn.batch import Batch
from ..nn.network import Player, TopicNetwork
from .batches import BatchReader
from .callbacks import Callback, watched
from .state import Row, Stage, Sums, TrainingPlan, TrainingState

Monitor = Callable[[TopicNetwork], Row]
Result = TypeVar("Result")
EVALUATION_SEED = 20_201  # the same noise at every evaluation, so that epochs can be compared
_SMALL = 2_000_000  # parameters


def train_stages(
    state: TrainingState,
    reader: BatchReader,
    stages: Sequence[Stage],
    *,
    validation: BatchReader | None = None,
    monitors: Sequence[Monitor] = (),
    callbacks: Sequence[Callback] = (),
) -> None:
    """Train through the stages that `state` has not finished.

    Args:
        stages: in their order; the last is recorded.
        validation, monitors, callbacks: as for `train`, for the stages that are recorded. Other stages tell callbacks
            of their states only.

    Raises:
        TrainingDivergedError: as `train`.
    """
    while True:
        stage = stages[state.stage]
        state.network.begin_stage(stage.name)
        watching = {"validation": validation, "monitors": monitors} if stage.recorded else {}
        train(state, reader, stage.plan, callbacks=callbacks, recorded=stage.recorded, **watching)  # type: ignore[arg-type]
        if state.stage + 1 == len(stages):
            return
        state.network.end_stage(stage.name, reader, state.seed)
        state.next_stage(stages[state.stage + 1].plan)


def train(
    state: TrainingState,
    reader: BatchReader,
    plan: TrainingPlan,
    *,
    validation: BatchReader | None = None,
    monitors: Sequence[Monitor] = (),
    callbacks: Sequence[Callback] = (),
    recorded: bool = True,
) -> None:
    """Train `state.network` until `state.epoch` is `plan.epochs`, or the loss on `validation` no longer improves.

    Args:
        reader: the documents to learn from, none of them empty.
        validation: documents held out. With them and a patience, training stops after that many epochs without a
            lower loss, and the best weights are taken back.
        monitors: each measures the network after each epoch, for the epoch's row of the history.
        recorded: whether epochs become rows of the history, and callbacks see them.

    Raises:
        TrainingDivergedError: a loss or a gradient was not finite. The weights are those of the last whole epoch.
    """
    seen = callbacks if recorded else ()
    with watched(seen, plan.epochs, len(reader)), _denormals_flushed(), _threads_that_pay(state.network):
        while state.epoch < plan.epochs and not _out_of_patience(state, plan, validation):
            row = _epoch(state, reader, plan, seen)
            state.network.end_pass()
            if validation is not None:
                row["validation_loss"] = _mean_loss(state.network, validation, plan.kl_weight)
                if not math.isfinite(row["validation_loss"]):
                    where = f"after epoch {state.epoch}, on the documents held out"
                    raise TrainingDivergedError(f"training stopped {where}: the loss is not finite")
            for monitor in monitors:
                row |= evaluated(state.network, state.device, monitor)
            row |= state.network.adapt(row)
            if recorded:
                state.history.append(row)
            for callback in seen:
                callback.on_epoch(row)
            if validation is not None and plan.patience is not None and state.network.may_end():
                _keep_best(state, row["validation_loss"])
            for callback in callbacks:
                callback.on_state(state)
    if validation is not None and state.best_weights is not None:
        state.network.load_state_dict(state.best_weights)
        state.best_weights = None  # what is learned from here on must not be undone
    state.network.eval()


def evaluate(network: TopicNetwork, reader: BatchReader, measure: Callable[[Batch], Result]) -> list[Result]:
    """What `measure`, such as network.loss or network.bound, says of each batch, in order, outside training.

    Its noise is drawn from a seed of its own: the network's generator is left as it was, and epochs compare.
    """
    return evaluated(network, reader.device, lambda _: [measure(batch) for batch in reader])


def evaluated(network: TopicNetwork, device: torch.device, measure: Callable[[TopicNetwork], Result]) -> Result:
    """What `measure` says of the network outside training, as `evaluate` does."""
    own = network.generator
    network.generator = torch.Generator(device).manual_seed(EVALUATION_SEED)
    network.eval()
    try:
        with torch.inference_mode():
            return measure(network)
    finally:
        network.generator = own


def _mean_loss(network: TopicNetwork, reader: BatchReader, kl_weight: float) -> float:
    totals = evaluate(network, reader, lambda batch: network.loss(batch).without_extras(kl_weight).sum())
    return float(torch.stack(totals).sum()) / reader.n_docs


def _epoch(state: TrainingState, reader: BatchReader, plan: TrainingPlan, callbacks: Sequence[Callback]) -> Row:
    network = state.network
    players = list(zip(network.players(), state.optimizers, strict=True))
    kept = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    first_step = state.step - state.batch
    started = time.perf_counter()
    network.train()
    # Those of the last batch, in case the state is one in which all batches of the epoch are done.
    rate = plan.learning_rate * _rate_factor(plan, (state.step - 1) / (plan.epochs * len(reader)))
    weight = plan.kl_weight * _warmup_factor(plan, state.epoch + (state.batch - 1) / len(reader))
    batches = reader.ordered(state.draw_order(reader.n_docs), skip=state.batch)
    for number, batch in enumerate(batches, start=state.batch + 1):
        rate = plan.learning_rate * _rate_factor(plan, state.step / (plan.epochs * len(reader)))
        weight = plan.kl_weight * _warmup_factor(plan, state.epoch + (number - 1) / len(reader))
        for player, optimizer in players:
            if state.step % player.every:
                continue
            for group in optimizer.param_groups:
                group["lr"] = rate
            terms, problem = _move(player, optimizer, batch, weight)
            if problem:
                advice = "a lower learning_rate often cures it" if state.step else "look at the counts and the settings"
                network.load_state_dict(kept)
                network.eval()
                state.step, state.batch, state.sums = first_step, 0, {}
                for _, each in players:
                    each.state.clear()  # its moments led here
                where = f"epoch {state.epoch + 1}, batch {number}"
                raise TrainingDivergedError(f"training stopped at {where}: {problem} is not finite; {advice}")
            _add(state.sums, terms, batch.n_docs)
        state.step, state.batch = state.step + 1, number
        for callback in callbacks:
            callback.on_batch()
    means = {name: float(total) / n_docs for name, (total, n_docs) in state.sums.items()}
    state.epoch, state.batch, state.sums = state.epoch + 1, 0, {}
    elapsed = time.perf_counter() - started
    return {"epoch": state.epoch, **means, "kl_weight": weight, "learning_rate": rate, "seconds": elapsed}


def _add(sums: Sums, terms: dict[str, Tensor], n_docs: int) -> None:
    for name, term in terms.items():
        total, counted = sums.get(name, (torch.zeros((), device=term.device), 0))
        sums[name] = (total + term.detach().sum(), counted + n_docs)


def _move(
    player: Player, optimizer: torch.optim.Optimizer, batch: Batch, kl_weight: float
) -> tuple[dict[str, Tensor], str | None]:
    """One step of one player: its terms per document, and the name of what is not finite, where it did not move."""
    loss = player.loss(batch)
    if loss is None:
        return {}, None
    total = loss.total(kl_weight)  # (B,)
    optimizer.zero_grad(set_to_none=True)
    total.mean().backward(inputs=list(player.parameters))
    problem = _not_finite(total, player.parameters)
    if problem is None:
        optimizer.step()
        if player.after is not None:
            player.after()
    prefix = f"{player.name}_" if player.name else ""
    return {prefix + name: term for name, term in {"loss": total, **loss.terms()}.items()}, problem


def _rate_factor(plan: TrainingPlan, progress: float) -> float:
    """One cycle: up along a cosine in the first tenth, down to nothing along another in the rest (Smith 2018)."""
    if plan.schedule == "constant":
        return 1.0
    if progress < 0.1:
        return 0.04 + 0.96 * (1 - math.cos(math.pi * progress / 0.1)) / 2
    return 1e-4 + (1 - 1e-4) * (1 + math.cos(math.pi * (progress - 0.1) / 0.9)) / 2


def _warmup_factor(plan: TrainingPlan, epochs_done: float) -> float:
    return min(1.0, epochs_done / plan.kl_warmup) if plan.kl_warmup > 0 else 1.0


def _not_finite(total: Tensor, parameters: Sequence[nn.Parameter]) -> str | None:
    """The name of what is not finite. One number per step leaves the device."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    norm = torch.nn.utils.get_total_norm(gradients)
    if bool(torch.isfinite(norm + total.sum())):
        return None
    return "the gradient" if bool(total.isfinite().all()) else "the loss"


def _keep_best(state: TrainingState, loss: float) -> None:
    """Keep the weights if the loss on the validation documents is the lowest so far."""
    if loss < state.best_loss:
        state.best_loss = loss
        state.best_weights = {name: tensor.clone() for name, tensor in state.network.state_dict().items()}
        state.stale_epochs = 0
    else:
        state.stale_epochs += 1


def _out_of_patience(state: TrainingState, plan: TrainingPlan, validation: BatchReader | None) -> bool:
    """Whether training has ended for want of a lower loss; the state says so after it was written and read, too."""
    return validation is not None and plan.patience is not None and state.stale_epochs >= plan.patience


@contextmanager
def _denormals_flushed() -> Iterator[None]:
    """Numbers below 1e-38 count as zero on this thread while training: processors are slow with denormals."""
    were_flushed = (torch.tensor([1e-39]) * 1.0).item() == 0.0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(were_flushed)


@contextmanager
def _threads_that_pay(network: TopicNetwork) -> Iterator[None]:
    """One thread for a small network, and as many as there were for others.

    The steps of a small one take a few milliseconds: a second thread saves at most a fifth of that, and waiting for it
    takes several times that when another process has its core.
    """
    n_threads = torch.get_num_threads()
    if sum(parameter.numel() for parameter in network.parameters()) < _SMALL:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)
