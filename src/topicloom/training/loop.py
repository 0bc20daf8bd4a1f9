"""The training loop, which trains any TopicNetwork and depends on no particular model.

`train_stages` trains through all stages, `_train_stage` through the epochs of one stage, and `_train_epoch` with
`_take_step` through the steps of one epoch. Then follow errors, checks of finite values, threads, and evaluation.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from ..distributed import Ranks, current, step, stepping
from ..errors import OutOfMemoryError, TrainingDivergedError
from ..messages import counted
from ..nn.execution import helper_threads, one_thread_with_mkl, prefetched
from ..nn.network import EpochOptions, Player, TopicNetwork
from ..nn.sparse import Batch
from .batches import BatchReader
from .callbacks import Callback, call_on_epoch, watched
from .monitors import CollapseWatch, NotFinite, Sign, TooLittleMemory
from .state import Adam, Row, Stage, Sums, TrainingPlan, TrainingState, annealed

Monitor = Callable[[TopicNetwork], Row]
Remedies = Callable[[Sign], str]
Result = TypeVar("Result")

EVALUATION_SEED = 20_201  # every evaluation draws the same noise, so that epochs can be compared
_FEWEST_WEIGHTS_FOR_THREADS = 2_000_000  # with fewer weights, threads wait longer than they compute
_MOVES_BETWEEN_READS = 64  # moves after which the result of a GPU's check for finite values is read


def train_stages(
    state: TrainingState,
    reader: BatchReader,
    stages: Sequence[Stage],
    *,
    validation: BatchReader | None = None,
    monitors: Sequence[Monitor] = (),
    callbacks: Sequence[Callback] = (),
    model: Any = None,
    remedies: Remedies | None = None,
) -> None:
    """Train through the stages that `state` has not finished.

    Args:
        state: the state of the run. It is changed.
        reader: the documents to learn from, none of them empty.
        stages: the stages in their order. The last one is recorded.
        validation: held-out documents. If they are given and a plan has a patience, a recorded stage stops after that
            many epochs without a lower loss on them, and the best weights are restored.
        monitors: each measures the network after each epoch of a recorded stage, for the epoch's row of the history.
        callbacks: objects that watch the run. In stages that are not recorded, only their `on_step` and `on_state` are
            called.
        model: the estimator, which the callbacks receive.
        remedies: a function that returns the end of an error's message: what to try when a step fails.

    Raises:
        TrainingDivergedError: a loss or a gradient is not finite. The weights are those of the last complete epoch.
        OutOfMemoryError: the device has too little memory for a batch. The weights are those of the last complete
            epoch.
    """
    with watched(callbacks, model, stages[-1].plan.epochs, len(reader)):
        while True:
            stage = stages[state.stage]
            if stage.recorded:
                _train_stage(state, reader, stage, validation, monitors, callbacks, remedies)
            else:
                _train_stage(state, reader, stage, None, (), callbacks, remedies)
            if state.stage + 1 == len(stages):
                return
            if stage.at_end is not None:
                stage.at_end(state.network, reader, state.seed)
            state.next_stage(stages[state.stage + 1].plan)


def _train_stage(
    state: TrainingState,
    reader: BatchReader,
    stage: Stage,
    validation: BatchReader | None,
    monitors: Sequence[Monitor],
    callbacks: Sequence[Callback],
    remedies: Remedies | None,
) -> None:
    """Train until `state.epoch` is the plan's number of epochs, or the loss on `validation` no longer improves."""
    plan = stage.plan
    recorded = callbacks if stage.recorded else ()

    def after_batch() -> None:
        for callback in recorded:
            callback.on_batch()
        for callback in callbacks:
            callback.on_step(state)

    players, network = [], None  # the players belong to this network
    with denormals_flushed(), _snapshots_unchecked_after(state), _Threads() as threads:
        while state.epoch < plan.epochs and not _out_of_patience(state, plan, validation):
            threads.suit(state.network)
            if network is not state.network:
                players, network = _players(state, stage), state.network
            guard = _Guard(state, reader, remedies)
            with guard.whole_epoch():
                row = _train_epoch(state, guard, stage, players, after_batch)
                _end_epoch(state, reader, stage, row, validation, monitors)
            call_on_epoch(recorded, row)
            if validation is not None and _may_end(state, plan):
                _keep_best(state, row["validation_loss"])
            for callback in callbacks:
                callback.on_state(state)
        for callback in recorded:
            callback.on_finish(state)
    if validation is not None and state.best_weights is not None:
        state.network.load_state_dict(state.best_weights)
        state.best_weights = None  # later training must not be undone
        if stage.ends_training:
            end_training(state, reader)
    state.network.eval()


def _train_epoch(
    state: TrainingState,
    guard: _Guard,
    stage: Stage,
    players: Sequence[tuple[Player, Adam]],
    after_batch: Callable[[], None],
) -> Row:
    """Take the remaining steps of an epoch, and return its row of the history."""
    network, plan, started = state.network, stage.plan, time.perf_counter()
    reader, options = guard.reader, guard.options

    losses = [row["validation_loss"] for row in state.history] if plan.schedule == "anneal" and stage.recorded else []

    def rate_and_weight(number: int) -> tuple[float, float]:
        epochs_done = state.epoch + (number - 1) / len(reader)
        return annealed(plan.rate(epochs_done), losses), divergence_weight(plan, options, epochs_done)

    if not network.training:  # setting it for all modules takes as long as a pass over a few hundred titles
        network.train()
    rate, weight = rate_and_weight(state.batch)  # for a restored state that has no steps left in this epoch
    order = state.draw_order(reader.draw_order)  # in any case, so that later orders do not depend on the option
    batches = reader.ordered(order if options.is_shuffled else torch.arange(len(order)), skip=state.batch)
    for number, batch in enumerate(prefetched(batches), start=state.batch + 1):
        rate, weight = rate_and_weight(number)
        where = f"epoch {state.epoch + 1}, batch {number}"
        for player, optimizer in players:
            if state.step % player.every == 0:
                optimizer.learning_rate = rate
                with guard.step(batch, where):
                    terms = _take_step(player, optimizer, batch, weight, guard.finite, where)
                _add(state.sums, terms, batch.n_docs)
        state.step, state.batch = state.step + 1, number
        after_batch()
    guard.require_finite()
    means = _means(state.sums, current())
    state.epoch, state.batch, state.sums = state.epoch + 1, 0, {}
    seconds = time.perf_counter() - started
    return {"epoch": state.epoch, **means, "divergence_weight": weight, "learning_rate": rate, "seconds": seconds}


def _take_step(
    player: Player, optimizer: Adam, batch: Batch, weight: float, finite: FiniteCheck, where: str
) -> dict[str, Tensor]:
    """Take one step of one player, unless a value is not finite, and return the terms of its loss by name, (B,) each.

    Args:
        player, optimizer: the player and its optimizer.
        batch: B documents of this rank.
        weight: the weight of the divergence.
        finite: the check that allows the step.
        where: the place in the run, such as "epoch 1, batch 2".
    """
    loss = player.loss(batch)
    if loss is None:
        return {}
    total = loss.total(weight)  # (B,)
    optimizer.zero_grad()
    (total.sum() / step().n_docs(len(total))).backward(inputs=list(player.parameters))
    checked = _summed_over_ranks(total.detach(), player.parameters)
    if finite.allows(optimizer, checked, player.parameters, where):
        optimizer.step()
        if player.after is not None:
            player.after()
    prefix = f"{player.name}_" if player.name else ""
    return {prefix + name: term for name, term in {"loss": total, **loss.terms()}.items()}


def _summed_over_ranks(total: Tensor, parameters: Sequence[nn.Parameter]) -> Tensor:
    """Replace the gradients by their sums over all ranks. Return the losses (B,), or the sum over all ranks.

    Args:
        total: (B,) the loss of each document of this rank.
        parameters: the weights with their gradients.
    """
    taken = step()
    if not taken.is_shared:
        return total
    summed = total.sum(0, keepdim=True)  # (1,)
    taken.ranks.sum_in_place([summed, *(weights.grad for weights in parameters if weights.grad is not None)])
    return summed


def _players(state: TrainingState, stage: Stage) -> list[tuple[Player, Adam]]:
    """Return the players of a stage with their optimizers. The stage's own loss replaces that of the unnamed player."""
    pairs = list(zip(state.network.players(), state.optimizers, strict=True))
    if stage.loss is None:
        return pairs
    loss = partial(stage.loss, state.network)
    return [(replace(player, loss=loss), optimizer) for player, optimizer in pairs if not player.name]


def divergence_weight(plan: TrainingPlan, options: EpochOptions, epochs_done: float = math.inf) -> float:
    """Return the weight of the divergence after some epochs. By default, return the weight after the warm-up."""
    if options.divergence_weight is not None:
        return options.divergence_weight
    risen = min(1.0, epochs_done / plan.kl_warmup) if plan.kl_warmup > 0 else 1.0
    return risen * plan.kl_weight


def _add(sums: Sums, terms: dict[str, Tensor], n_docs: int) -> None:
    """Add the terms of a batch to the sums of the epoch."""
    for name, term in terms.items():
        total, counted = sums.get(name, (torch.zeros((), device=term.device), 0))
        sums[name] = (total + term.detach().sum(), counted + n_docs)


def _means(sums: Sums, ranks: Ranks) -> Row:
    """Return the mean of each term over the documents of all ranks. It is empty if no batch of the epoch had a loss."""
    if not sums:
        return {}
    pairs = torch.tensor([[float(total), n_docs] for total, n_docs in sums.values()], dtype=torch.float64)  # (n, 2)
    return {name: total / n_docs for name, (total, n_docs) in zip(sums, ranks.sum(pairs).tolist(), strict=True)}


def _end_epoch(
    state: TrainingState,
    reader: BatchReader,
    stage: Stage,
    row: Row,
    validation: BatchReader | None,
    monitors: Sequence[Monitor],
) -> None:
    """End an epoch after its steps: change the network, measure it, and record the row of the history."""
    plan = stage.plan
    if stage.after_epoch is not None:
        stage.after_epoch(state)
    if stage.ends_training and state.epoch == plan.epochs:
        end_training(state, reader)
    if validation is not None:
        weight = divergence_weight(plan, state.network.epoch_options())
        row["validation_loss"] = _mean_loss(state.network, validation, weight)
        if not math.isfinite(row["validation_loss"]):
            where = f"after epoch {state.epoch}, on the held-out documents"
            raise TrainingDivergedError(f"training stopped {where}: the loss is not finite")
    for monitor in monitors:
        row |= evaluated(state.network, state.device, monitor) if _is_due(state, plan, monitor) else {}
    if state.n_topics:
        row["n_topics"] = state.n_topics  # spare topics are removed during training
    row = current().value_of_first(row)
    if stage.recorded:
        row |= state.network.adapt(row)
        state.history.append(row)


def end_training(state: TrainingState, reader: BatchReader) -> None:
    """Let the network finish its training, for example rotate a code, given the training documents."""
    evaluated(state.network, state.device, lambda network: network.end_training(reader))


def _is_due(state: TrainingState, plan: TrainingPlan, monitor: Monitor) -> bool:
    """Return whether a monitor measures this epoch. The collapse watch skips epochs whose values hardly change."""
    if not isinstance(monitor, CollapseWatch):
        return True
    return state.epoch % state.network.epoch_options().watch_every == 0 or state.epoch >= plan.epochs


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

    During the warm-up it does not, because training minimises another loss.
    """
    return plan.patience is not None and state.epoch >= plan.kl_warmup and state.network.epoch_options().may_end


def _out_of_patience(state: TrainingState, plan: TrainingPlan, validation: BatchReader | None) -> bool:
    """Return whether training ends because the loss on the held-out documents no longer falls.

    A restored state gives the same answer.
    """
    return validation is not None and plan.patience is not None and state.stale_epochs >= plan.patience


# Steps that fail


class _Guard:
    """Restores the weights from the start of an epoch, or of its remaining steps, if the epoch fails.

    Args:
        state: the state of the run before the epoch.
        reader: the documents.
        remedies: a function that returns the end of an error's message: what to try.

    Attributes:
        options: the options of the network for this epoch.
        reader: the documents of this epoch, in batches of the size that the network needs.
        finite: the check of the steps.
    """

    def __init__(self, state: TrainingState, reader: BatchReader, remedies: Remedies | None) -> None:
        self.state, self.requested_size, self.remedies = state, reader.batch_size, remedies
        self.options = state.network.epoch_options()
        self.reader = reader.subset(self.options.n_docs).with_batches_of(self.options.min_batch_size)
        self.finite = FiniteCheck(state.device)
        self._network, self._epoch = state.network, state.epoch
        self._part = state.network if self.options.changing is None else self.options.changing
        self._weights = {name: tensor.clone() for name, tensor in self._part.state_dict().items()}
        self._first_step = state.step - state.batch
        state.before_snapshot = self.require_finite  # so that all values of a snapshot are finite

    @contextmanager
    def whole_epoch(self) -> Iterator[None]:
        """Surround an epoch with its row of the history: whatever stops it, the state before it is restored."""
        try:
            yield
        except BaseException:
            self._undo()
            raise

    @contextmanager
    def step(self, batch: Batch, where: str) -> Iterator[None]:
        """Surround a step on a batch.

        Args:
            batch: the documents of the step.
            where: the place in the run, such as "epoch 1, batch 2".

        Raises:
            TrainingDivergedError: a loss or a gradient is not finite.
            OutOfMemoryError: the device has too little memory.
        """
        try:
            with stepping(batch.sizes, batch.positions):
                yield
        except (RuntimeError, MemoryError) as error:
            if not _is_out_of_memory(error):
                raise
            self._undo()
            size = self.requested_size // 2 if self.reader.batch_size == self.requested_size else 0
            advice = self._advice(TooLittleMemory(size or None))
            problem = f"{self.state.device} has too little memory for {counted(batch.n_docs, 'document')} at once"
            raise OutOfMemoryError(f"training stopped at {where}: {problem}{advice}") from None
        self.require_finite(wait=False)

    def require_finite(self, *, wait: bool = True) -> None:
        """Raise TrainingDivergedError if a step so far was not finite.

        Args:
            wait: whether to wait for a GPU that has not checked all steps yet.
        """
        if (found := self.finite.first(wait=wait)) is None:
            return
        advice = self._advice(NotFinite(at_first_step=not self.state.step))
        self._undo()
        raise TrainingDivergedError(f"training stopped at {found[0]}: {found[1]} is not finite{advice}")

    def _advice(self, sign: Sign) -> str:
        return f"; {self.remedies(sign)}" if self.remedies is not None else ""

    def _undo(self) -> None:
        state = self.state
        now = self._part.state_dict()
        if state.network is not self._network or any(
            now[name].shape != weights.shape for name, weights in self._weights.items()
        ):
            return  # all steps are taken, and topics have been removed since
        self._part.load_state_dict(self._weights)
        state.network.eval()
        state.epoch, state.step, state.batch, state.sums = self._epoch, self._first_step, 0, {}
        for optimizer in state.optimizers:
            optimizer.state.clear()  # the moments led to what went wrong


def _is_out_of_memory(error: Exception) -> bool:
    """Return whether an error means too little memory. On a CPU, PyTorch has no type for this error."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error)


@contextmanager
def _snapshots_unchecked_after(state: TrainingState) -> Iterator[None]:
    """Remove the check of snapshots when training ends, even by an error."""
    try:
        yield
    finally:
        state.before_snapshot = None


class FiniteCheck:
    """Finds the first move of an epoch whose loss or gradient is not finite.

    On a CPU, every move is checked before it is made. On a GPU, the processor would have to wait for each check. There,
    the number of the first such move stays on the device, and is read only at every 64th move and on request. From that
    move on, the optimizers change nothing (`found_inf` of PyTorch's fused Adam).

    Args:
        device: the device of the network.
    """

    def __init__(self, device: torch.device) -> None:
        self.deferred = defers(device)
        self._moves: list[str] = []
        # 0 as long as all is finite. For the loss of the n-th move it is 2 n, and for its gradient 2 n - 1.
        self._first = torch.zeros((), dtype=torch.int64, device=device)

    def allows(self, optimizer: Adam, total: Tensor, parameters: Sequence[nn.Parameter], move: str) -> bool:
        """Return whether an optimizer may make a move. A forbidden move that is checked later has no effect.

        Args:
            optimizer: the optimizer.
            total: (B,) the loss of each document.
            parameters: the weights with their gradients.
            move: the place in the run, such as "epoch 1, batch 2".
        """
        self._moves.append(move)
        gradients = [p.grad for p in parameters if p.grad is not None]
        finite = torch.isfinite(torch.nn.utils.get_total_norm(gradients) + total.sum())  # ()
        if not self.deferred and bool(finite):
            return True
        number = 2 * len(self._moves) - total.isfinite().all().long()  # ()
        self._first = torch.where((self._first == 0) & ~finite, number, self._first)
        if self.deferred:
            optimizer.found_inf = (self._first > 0).float()
        return self.deferred

    def first(self, *, wait: bool = False) -> tuple[str, str] | None:
        """Return the first move that is not finite, and whether its loss or its gradient is not; None if there is none.

        Args:
            wait: whether to read a deferred result now. Otherwise it is read only at every 64th move.
        """
        if self.deferred and not wait and len(self._moves) % _MOVES_BETWEEN_READS:
            return None
        first = int(self._first)
        return (self._moves[(first - 1) // 2], "the gradient" if first % 2 else "the loss") if first else None


def defers(device: torch.device) -> bool:
    """Return whether checks of moves are deferred. This needs a fused Adam that skips steps, so only CUDA does it."""
    return device.type == "cuda"


# Denormal numbers and threads


@contextmanager
def denormals_flushed() -> Iterator[None]:
    """Treat numbers below 1e-38 as zero on this thread, because processors are slow with such denormal numbers."""
    were_flushed = (torch.tensor([1e-39]) * 1.0).item() == 0.0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(were_flushed)


class _Threads(ExitStack):
    """Uses one thread for each operation of some networks. For other networks, does not change the number of threads.

    A step of a small network takes a few milliseconds. A second thread saves at most a fifth of that. If another
    process is using its core, waiting for the thread takes several times as long as the step. Other threads only help
    with a few longer jobs, for which no thread waits. Larger networks that consist mostly of such jobs also use one
    thread for their other operations, because waiting threads would take the cores from the helpers.
    """

    def __init__(self) -> None:
        super().__init__()
        self._single: bool | None = None  # whether operations use one thread now

    def suit(self, network: TopicNetwork) -> None:
        """Change the number of threads if another one is suitable for the next epoch of the network."""
        single = network.epoch_options().uses_helpers
        single = single or sum(weights.numel() for weights in network.parameters()) < _FEWEST_WEIGHTS_FOR_THREADS
        if single != self._single:
            self.close()
            self.enter_context(_threads(single, network.generator.device))
            self._single = single


@contextmanager
def _threads(single: bool, device: torch.device) -> Iterator[None]:
    n_helpers = torch.get_num_threads() - 1 if single and device.type == "cpu" else 0
    with one_thread_with_mkl() if single else nullcontext(), helper_threads(n_helpers):
        yield


# Evaluation


def evaluate(network: TopicNetwork, reader: BatchReader, measure: Callable[[Batch], Result]) -> list[Result]:
    """Return the result of `measure`, such as network.loss or network.bound, for each batch in order, outside training.

    The noise is drawn from a generator with a fixed seed, so that epochs can be compared. The network's own generator
    is not used.
    """
    return evaluated(network, reader.device, lambda _: [measure(batch) for batch in reader])


def evaluated(network: TopicNetwork, device: torch.device, measure: Callable[[TopicNetwork], Result]) -> Result:
    """Return the result of `measure` for the network outside training, with noise from a fixed seed."""
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
        weight: the weight of the divergence.
    """
    totals = evaluate(network, reader, lambda batch: network.loss(batch).without_extras(weight).sum())
    total = float(torch.stack(totals).sum()) if totals else 0.0  # a rank may have no held-out document
    total, n_docs = current().sum(torch.tensor([total, reader.n_docs], dtype=torch.float64)).tolist()
    return float(total / n_docs)
