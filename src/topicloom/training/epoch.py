"""An epoch of gradient descent: the steps of all players on each batch, and what happens when one fails."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from ..distributed.ranks import Ranks, current, step, stepping
from ..errors import OutOfMemoryError, TrainingDivergedError
from ..nn.batch import Batch
from ..nn.helpers import ahead
from ..nn.network import Player, TopicNetwork
from .adam import Adam
from .batches import BatchReader
from .finite import FiniteCheck
from .state import Row, Stage, Sums, TrainingPlan, TrainingState


class Epoch:
    """One epoch, or the rest of one that has begun. If it fails, the weights are those from before.

    Args:
        state: the state of the run, which changes.
        reader: the documents.
        stage: the stage.
    """

    def __init__(self, state: TrainingState, reader: BatchReader, stage: Stage) -> None:
        network = state.network
        self.state, self.plan, self.requested_size = state, stage.plan, reader.batch_size
        self.reader = reader.with_batches_of(network.least_batch)
        self.players = list(zip(network.players(), state.optimizers, strict=True))
        if stage.loss is not None:
            loss = partial(stage.loss, network)
            self.players = [(replace(player, loss=loss), own) for player, own in self.players if not player.name]
        self.finite = FiniteCheck(state.device)
        self._kept = {name: tensor.clone() for name, tensor in network.state_dict().items()}
        self._first_step = state.step - state.batch

    def train(self, after_batch: Callable[[], None]) -> Row:
        """Take the steps of the epoch, and return its row of the history.

        Args:
            after_batch: called after the steps of each batch.

        Raises:
            TrainingDivergedError: a loss or a gradient is not finite.
            OutOfMemoryError: the device has too little memory for a batch.
        """
        state, reader = self.state, self.reader
        state.before_snapshot = self._require_finite  # no snapshot has values that are not finite
        started = time.perf_counter()
        state.network.train()
        # The values of the last batch, for a state in which all batches of the epoch are done already.
        rate, weight = self._rate_and_weight(state.batch)
        batches = reader.ordered(state.draw_order(reader.draw_order), skip=state.batch)
        for number, batch in enumerate(ahead(batches), start=state.batch + 1):
            rate, weight = self._rate_and_weight(number)
            self._step(batch, rate, weight, f"epoch {state.epoch + 1}, batch {number}")
            state.step, state.batch = state.step + 1, number
            after_batch()
        self._require_finite()
        means = _means(state.sums, current())
        state.epoch, state.batch, state.sums = state.epoch + 1, 0, {}
        elapsed = time.perf_counter() - started
        return {"epoch": state.epoch, **means, "divergence_weight": weight, "learning_rate": rate, "seconds": elapsed}

    def _rate_and_weight(self, number: int) -> tuple[float, float]:
        """Return the learning rate and the weight of the divergence of the batch of this number, which begin at 1."""
        epochs_done = self.state.epoch + (number - 1) / len(self.reader)
        return self.plan.rate(epochs_done), divergence_weight(self.state.network, self.plan, epochs_done)

    def _step(self, batch: Batch, rate: float, weight: float, where: str) -> None:
        """Let every player whose turn it is take a step on a batch."""
        for player, optimizer in self.players:
            if self.state.step % player.every:
                continue
            for group in optimizer.param_groups:
                group["lr"] = rate
            try:
                with stepping(batch.sizes, batch.positions):
                    terms = _move(player, optimizer, batch, weight, self.finite, where)
            except (RuntimeError, MemoryError) as error:
                if not _is_out_of_memory(error):
                    raise
                self._undo()
                raise self._out_of_memory(batch, where) from None
            self._require_finite(wait=False)
            _add(self.state.sums, terms, batch.n_docs)

    def _require_finite(self, *, wait: bool = True) -> None:
        if (found := self.finite.first(wait=wait)) is None:
            return
        advice = self._advice_on_divergence()
        self._undo()
        raise TrainingDivergedError(f"training stopped at {found[0]}: {found[1]} is not finite; {advice}")

    def _advice_on_divergence(self) -> str:
        smaller_rate = f"try `learning_rate={float(f'{self.plan.learning_rate / 3:.1g}'):g}`"
        if self.state.step:
            return smaller_rate
        if getattr(getattr(self.state.network, "encoder", None), "input", None) == "raw":
            return "the encoder receives the counts as they are; try `encoder_input='log1p'`"
        return f"check the counts and the settings, or {smaller_rate}"

    def _out_of_memory(self, batch: Batch, where: str) -> OutOfMemoryError:
        size = self.requested_size // 2 if self.reader.batch_size == self.requested_size else 0
        smaller = f"try `batch_size={size}`" if size else "keep fewer words (`max_features`)"
        problem = f"{self.state.device} has too little memory for {batch.n_docs} documents at once"
        return OutOfMemoryError(f"training stopped at {where}: {problem}; {smaller}")

    def _undo(self) -> None:
        """Return to the weights from before the epoch, or from before the part of it that was trained here."""
        state = self.state
        state.network.load_state_dict(self._kept)
        state.network.eval()
        state.step, state.batch, state.sums = self._first_step, 0, {}
        for optimizer in state.optimizers:
            optimizer.state.clear()  # the moments led to what went wrong


def divergence_weight(network: TopicNetwork, plan: TrainingPlan, epochs_done: float = math.inf) -> float:
    """Return the weight of the divergence, which rises in the warm-up, or the one after it."""
    risen = min(1.0, epochs_done / plan.kl_warmup) if plan.kl_warmup > 0 else 1.0
    return network.divergence_weight(risen * plan.kl_weight)


def _move(
    player: Player,
    optimizer: Adam,
    batch: Batch,
    weight: float,
    finite: FiniteCheck,
    where: str,
) -> dict[str, Tensor]:
    """Take one step of one player, unless `finite` knows that a value is not finite.

    Args:
        weight: that of the divergence.

    Returns:
        the terms of its loss by name, (B,) each.
    """
    loss = player.loss(batch)
    if loss is None:
        return {}
    total = loss.total(weight)  # (B,)
    optimizer.zero_grad()
    taken = step()
    if taken.is_shared:
        (total.sum() / taken.n_docs(len(total))).backward(inputs=list(player.parameters))
        seen = total.detach().sum(0, keepdim=True)  # (1,)
        taken.ranks.sum_in_place([seen, *(weights.grad for weights in player.parameters if weights.grad is not None)])
    else:
        total.mean().backward(inputs=list(player.parameters))
        seen = total
    if finite.allows(optimizer, seen, player.parameters, where):
        optimizer.step()
        if player.after is not None:
            player.after()
    prefix = f"{player.name}_" if player.name else ""
    return {prefix + name: term for name, term in {"loss": total, **loss.terms()}.items()}


def _is_out_of_memory(error: Exception) -> bool:
    """Return whether the error says that there is too little memory; on a CPU, PyTorch has no type for it."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error)


def _add(sums: Sums, terms: dict[str, Tensor], n_docs: int) -> None:
    """Add the terms of a batch to the sums of the epoch."""
    for name, term in terms.items():
        total, counted = sums.get(name, (torch.zeros((), device=term.device), 0))
        sums[name] = (total + term.detach().sum(), counted + n_docs)


def _means(sums: Sums, ranks: Ranks) -> Row:
    """Return the mean of each term over the documents of all ranks; nothing if no batch of the epoch had a loss."""
    if not sums:
        return {}
    pairs = torch.tensor([[float(total), n_docs] for total, n_docs in sums.values()], dtype=torch.float64)  # (n, 2)
    return {name: total / n_docs for name, (total, n_docs) in zip(sums, ranks.sum(pairs).tolist(), strict=True)}
