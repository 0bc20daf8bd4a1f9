"""The state of a training run as one value, which can be written and read as tensors and JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.adam import adam

from ..distributed import current
from ..errors import InputError, SettingError
from ..nn.network import Loss, TopicNetwork
from ..nn.sparse import Batch

Schedule = Literal["one_cycle", "constant", "anneal"]
Row = dict[str, Any]  # a row of the history: numbers, and lists of them
Sums = dict[str, tuple[Tensor, int]]  # the sum of each term of the loss, and the number of its documents
Moments = dict[str, Tensor]
# As in the code of Dieng et al. 2020: the rate is divided by 4 after an epoch whose loss exceeds the least of all but
# the last ten epochs.
_ANNEALED_BY, _ANNEALED_AFTER, _LEAST_ANNEALED = 4.0, 10, 1e-5
_COUNTERS = ("seed", "stage", "epoch", "step", "batch", "stale_epochs", "n_topics")  # fields of TrainingState


@dataclass(frozen=True)
class TrainingPlan:
    """The plan of a stage of training.

    Attributes:
        epochs: the number of passes over the documents.
        learning_rate: the highest learning rate.
        schedule: "one_cycle", "constant" or "anneal"; see `rate` and `annealed`.
        weight_decay: the L2 penalty on all weights.
        beta1: Adam's decay rate of the mean gradient.
        kl_weight: the weight of the divergence, or of the term that replaces it.
        kl_warmup: the number of epochs in which this weight rises from 0.
        patience: the number of epochs without a lower loss on held-out documents after which training stops, or None.
        first_epoch: the number of epochs that an earlier plan has trained. The schedule begins after them.
        cycle_end: the number of epochs after which the rate keeps its value; None for a cycle of all epochs.
        rate_factor: a factor of the learning rate.
        clip_norm: the largest Euclidean norm of the gradient of all weights, or None. A larger gradient is scaled down.

    >>> plan = TrainingPlan(epochs=10, learning_rate=0.01)
    >>> plan.rate(epochs_done=1.0)  # the highest, after a tenth of the epochs
    0.01
    """

    epochs: int
    learning_rate: float
    schedule: Schedule = "one_cycle"
    weight_decay: float = 0.0
    beta1: float = 0.9
    kl_weight: float = 1.0
    kl_warmup: float = 0.0
    patience: int | None = None
    first_epoch: int = 0
    cycle_end: int | None = None
    rate_factor: float = 1.0
    clip_norm: float | None = None

    def rate(self, epochs_done: float) -> float:
        """Return the learning rate.

        With "one_cycle", it rises along a cosine in the first tenth of the stage, and then falls along another cosine
        to almost zero (Smith 2018). Epochs that are added to a finished fit have a cycle of their own, which is a warm
        restart (Loshchilov & Hutter 2017).
        """
        highest = self.learning_rate * self.rate_factor
        if self.schedule != "one_cycle":
            return highest
        end = self.epochs if self.cycle_end is None else self.cycle_end
        progress = min(1.0, (epochs_done - self.first_epoch) / (end - self.first_epoch))
        if progress < 0.1:
            return highest * (0.04 + 0.96 * (1 - math.cos(math.pi * progress / 0.1)) / 2)
        return highest * (1e-4 + (1 - 1e-4) * (1 + math.cos(math.pi * (progress - 0.1) / 0.9)) / 2)


def annealed(rate: float, losses: Sequence[float]) -> float:
    """Return the learning rate after epochs with these losses on held-out documents (the code of Dieng et al. 2020).

    If the loss of an epoch is not the least so far, and exceeds the least of all but the last ten before it, the rate
    is divided by 4, as long as it is above .00001.

    >>> annealed(0.1, [5.0, *[6.0] * 10])  # ten epochs may be worse
    0.1
    >>> annealed(0.1, [5.0, *[6.0] * 11])
    0.025
    """
    for epoch, loss in enumerate(losses):
        before = losses[: max(0, epoch - _ANNEALED_AFTER)]
        if before and loss > min(before) and rate > _LEAST_ANNEALED:
            rate /= _ANNEALED_BY
    return rate


@dataclass(frozen=True)
class Stage:
    """A part of training with a plan of its own, such as the pretraining of an autoencoder.

    Attributes:
        name: the name of the stage.
        plan: how the stage is trained.
        recorded: whether its epochs become rows of `history_`, with monitors and callbacks.
        ends_training: whether `TopicNetwork.end_training` is called at its end. This is so in `fit`, but not on a
            stream.
        loss: a loss that replaces the network's own; adversaries are then not trained. None uses the network's losses.
        after_epoch: changes the state after each epoch, such as by removing topics, before the network is measured.
        at_end: prepares the network for the next stage, given the training documents in batches and the run's seed.
    """

    name: str
    plan: TrainingPlan
    recorded: bool = True
    ends_training: bool = False
    loss: Callable[[TopicNetwork, Batch], Loss] | None = None
    after_epoch: Callable[[TrainingState], None] | None = None
    at_end: Callable[[TopicNetwork, Iterable[Batch], int], None] | None = None


@dataclass(frozen=True)
class Continuation:
    """Epochs that are trained after a fit has finished.

    Attributes:
        after: the number of epochs of the fit; for a Gibbs sampler, the number of iterations.
        epochs: the number of added epochs.
    """

    after: int
    epochs: int

    @property
    def end(self) -> int:
        """The number of epochs at the end."""
        return self.after + self.epochs


@dataclass(frozen=True)
class Snapshot:
    """The state of a run at one moment, on the CPU.

    Attributes:
        tensors: tensors by name. No two share memory, so that safetensors can write them.
        values: values by name that JSON can express.
        continued: the epochs that are added to those of the settings, or None.
    """

    tensors: dict[str, Tensor]
    values: dict[str, Any]
    continued: Continuation | None = None


@runtime_checkable
class KeepsRunState(Protocol):
    """A network whose training changes more than `state_dict()`, such as counts that a saved model does not need."""

    def run_state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return what changes in training and is not in `state_dict()`, as tensors and as JSON values, by name."""

    def load_run_state(self, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
        """Restore the result of `run_state`. This is called before `load_state_dict`, and may change shapes for it."""


@dataclass
class TrainingState:
    """Everything that changes while a network is trained.

    The network contains its weights, the generator of the noise, and counts that a model keeps only during training
    (`KeepsRunState`).
    """

    network: TopicNetwork
    plan: TrainingPlan  # the plan of the current stage
    optimizers: list[Adam]  # one for each player
    shuffle: torch.Generator  # draws the order of the documents, on the CPU
    seed: int
    stage: int = 0
    epoch: int = 0  # finished epochs of this stage
    step: int = 0  # finished steps of this stage
    batch: int = 0  # finished batches of the current epoch
    sums: Sums = field(default_factory=dict)  # the sums of the current epoch
    history: list[Row] = field(default_factory=list)
    best_loss: float = math.inf
    best_weights: dict[str, Tensor] | None = None
    stale_epochs: int = 0
    fields: dict[str, str] = field(default_factory=dict)  # digests of the documents' fields that the network reads
    n_topics: int = 0  # the present number of topics, with spare topics; 0 for a network without spare topics
    before_snapshot: Callable[[], None] | None = None  # raises an error if values are not finite
    _first_shuffle: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.uint8))  # at the start of a stage
    _epoch_shuffle: Tensor | None = None  # before the order of the current epoch was drawn

    @property
    def device(self) -> torch.device:
        """The device of the network."""
        return self.network.generator.device

    @classmethod
    def start(
        cls,
        network: TopicNetwork,
        plan: TrainingPlan,
        seed: int,
        device: torch.device,
    ) -> TrainingState:
        """Return the state before the first step.

        Args:
            network: the network, which is moved to the device.
            plan: the plan of the first stage.
            seed: the seed of the network's noise and of the order of the documents.
            device: the device.

        Raises:
            SettingError: PyTorch's default type is not single precision, the type of batches.
        """
        if (default := torch.get_default_dtype()) != torch.float32:
            raise SettingError(
                f"PyTorch's default type is {default}, and models are trained in single precision; call "
                "torch.set_default_dtype(torch.float32) first"
            )
        own = _seed_of_rank(seed)
        network.on(device, own)
        shuffle = torch.Generator().manual_seed(own)
        state = cls(network, plan, _optimizers(network, plan, device), shuffle, seed)
        state.keep_first_shuffle()
        return state

    def keep_first_shuffle(self) -> None:
        """Keep the present state of the generator of orders. Every stage begins with it."""
        self._first_shuffle = self.shuffle.get_state()

    def next_stage(self, plan: TrainingPlan) -> None:
        """Begin the next stage, with new optimizers, no finished epoch, and the documents in the order of the first."""
        self.plan, self.stage = plan, self.stage + 1
        self.epoch = self.step = self.batch = 0
        self.sums, self._epoch_shuffle = {}, None
        self.optimizers = _optimizers(self.network, plan, self.device)
        self.shuffle.set_state(self._first_shuffle)

    def narrow(self, network: TopicNetwork, kept: Tensor) -> None:
        """Replace the network by one with some of its topics, and keep the optimizers' moments for these topics.

        Args:
            network: the new network, with the weights of the kept topics.
            kept: (n,) the indices of these topics in the old network.
        """
        before = [optimizer.moments() for optimizer in self.optimizers]
        self.network, self.n_topics = network, len(kept)
        self.optimizers = _optimizers(network, self.plan, self.device)
        for optimizer, player, moments in zip(self.optimizers, network.players(), before, strict=True):
            chosen = {
                number: {
                    name: select(moment, player.parameters[number].shape, kept) if moment.ndim else moment
                    for name, moment in of_parameter.items()
                }
                for number, of_parameter in moments.items()
            }
            optimizer.take(chosen)

    def draw_order(self, draw: Callable[[torch.Generator], Tensor]) -> Tensor:
        """Return the order of the documents in this epoch, (n_docs,). It is drawn once in each epoch.

        Args:
            draw: draws an order, such as `BatchReader.draw_order`.
        """
        if self.batch and self._epoch_shuffle is not None:
            self.shuffle.set_state(self._epoch_shuffle)
        self._epoch_shuffle = self.shuffle.get_state()
        return draw(self.shuffle)

    def snapshot(self) -> Snapshot:
        """Return a copy of the state as tensors and JSON values, which `restore` reads."""
        if self.before_snapshot is not None:
            self.before_snapshot()
        running, values = self.network.run_state() if isinstance(self.network, KeepsRunState) else ({}, {})
        tensors = {f"network.{name}": tensor for name, tensor in self.network.state_dict().items()}
        tensors |= {f"run.{name}": tensor for name, tensor in running.items()}
        tensors |= {f"best.{name}": tensor for name, tensor in (self.best_weights or {}).items()}
        tensors |= {f"sum.{name}": total for name, (total, _) in self.sums.items()}
        tensors["generator.noise"] = self.network.generator.get_state()
        tensors["generator.shuffle"] = self.shuffle.get_state()
        tensors["generator.first_shuffle"] = self._first_shuffle
        if self._epoch_shuffle is not None:
            tensors["generator.epoch_shuffle"] = self._epoch_shuffle
        for number, optimizer in enumerate(self.optimizers):
            for parameter, moments in optimizer.moments().items():
                tensors |= {f"optimizer.{number}.{parameter}.{name}": moment for name, moment in moments.items()}
        return Snapshot(
            {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()},
            {
                **{name: getattr(self, name) for name in _COUNTERS},
                "history": [dict(row) for row in self.history],
                "best_loss": None if math.isinf(self.best_loss) else self.best_loss,
                "has_best": self.best_weights is not None,
                "sums": {name: n_docs for name, (_, n_docs) in self.sums.items()},
                "network": values,
                "fields": self.fields,
            },
        )

    def restore(self, snapshot: Snapshot, plan: TrainingPlan) -> None:
        """Restore the state of a snapshot. The network must be a new network of the same model.

        Args:
            snapshot: the snapshot.
            plan: the plan of the stage in which it was taken.

        Raises:
            InputError: the network reads a field of the documents whose values have changed since the snapshot, or
                another version of topicloom, or of PyTorch, took a snapshot that does not fit the network.
        """
        try:
            self._restore(snapshot, plan)
        except (LookupError, RuntimeError, TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise InputError(
                f"the state of the earlier fit does not fit the model of these versions ({reason:.200}); begin a new "
                "fit with another place for its checkpoints, or install the versions of the earlier one"
            ) from error

    def _restore(self, snapshot: Snapshot, plan: TrainingPlan) -> None:
        tensors, values = snapshot.tensors, snapshot.values
        before = values.get("fields", self.fields)  # earlier versions did not note them
        for name, digest in self.fields.items():
            if before.get(name) != digest:
                raise InputError(
                    f"the earlier fit had other values of the documents' field {name!r}, which the model reads; "
                    "give the same ones, or begin a new fit with another place for its checkpoints"
                )
        for name in _COUNTERS:
            setattr(self, name, values[name])
        self.plan = plan
        self.history = [dict(row) for row in values["history"]]
        self.best_loss = math.inf if values["best_loss"] is None else values["best_loss"]
        self.best_weights = _under(tensors, "best.", self.device) if values["has_best"] else None
        sums = _under(tensors, "sum.", self.device)
        self.sums = {name: (sums[name], n_docs) for name, n_docs in values["sums"].items()}
        if isinstance(self.network, KeepsRunState):
            self.network.load_run_state(_under(tensors, "run.", self.device), values["network"])
        self.network.load_state_dict(_under(tensors, "network.", self.device))
        self._restore_noise(tensors["generator.noise"])
        self.shuffle.set_state(tensors["generator.shuffle"])
        self._first_shuffle = tensors["generator.first_shuffle"]
        self._epoch_shuffle = tensors.get("generator.epoch_shuffle")
        self.optimizers = _optimizers(self.network, plan, self.device)
        for number, optimizer in enumerate(self.optimizers):
            moments: dict[int, dict[str, Tensor]] = {}
            for name, tensor in _under(tensors, f"optimizer.{number}.", self.device).items():
                parameter, _, moment = name.partition(".")
                moments.setdefault(int(parameter), {})[moment] = tensor
            optimizer.take(moments)

    def _restore_noise(self, state: Tensor) -> None:
        """Restore the state of the generator of the noise. Another kind of device draws new noise."""
        generator = self.network.generator
        if len(state) == len(generator.get_state()):
            generator.set_state(state)
        else:
            position = np.random.SeedSequence([_seed_of_rank(self.seed), self.stage, self.step])
            generator.manual_seed(int(position.generate_state(1)[0]))


def _seed_of_rank(seed: int) -> int:
    """Return the seed of this rank's noise and order. That of the first rank is always the seed itself."""
    ranks = current()
    if ranks.is_first or ranks.same_noise:
        return seed
    return int(np.random.SeedSequence([seed, ranks.rank]).generate_state(1)[0])


def _optimizers(network: TopicNetwork, plan: TrainingPlan, device: torch.device) -> list[Adam]:
    """Return an optimizer for each player."""
    fused = device.type in ("cpu", "cuda")  # otherwise Adam is slower than the forward pass of a wide first layer
    return [
        Adam(
            player.parameters,
            lr=plan.learning_rate,
            beta1=plan.beta1,
            weight_decay=plan.weight_decay,
            clip_norm=plan.clip_norm,
            fused=fused,
        )
        for player in network.players()
    ]


def select(tensor: Tensor, shape: torch.Size, kept: Tensor) -> Tensor:
    """Return the entries of the kept topics (n,) in every dimension in which a tensor is larger than `shape`."""
    for dim, (size, needed) in enumerate(zip(tensor.shape, shape, strict=True)):
        if size != needed:
            tensor = tensor.index_select(dim, kept)
    return tensor


def _under(tensors: Mapping[str, Tensor], prefix: str, device: torch.device) -> dict[str, Tensor]:
    """Return copies of the tensors whose names begin with `prefix`, under their names without it."""
    return {
        name.removeprefix(prefix): tensor.clone().to(device)
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


class Adam:
    """The part of `torch.optim.Adam` that training needs. The same function of PyTorch computes a step.

    The first optimizer of `torch.optim` in a process imports PyTorch's compiler. It is not used here, and takes as long
    to import as the rest of PyTorch.

    Args:
        parameters: the weights.
        lr: the learning rate.
        beta1: the decay rate of the mean gradient.
        weight_decay: the L2 penalty on all weights.
        clip_norm: the largest norm of the gradient of all weights, or None.
        fused: whether one kernel computes a step, which CPUs and CUDA support.

    Attributes:
        learning_rate: the learning rate of the next step, which the training loop takes from its plan.
        state: the moments of each weight that has had a gradient.
        found_inf: () 1 if the next steps should have no effect, or 0; None for 0. Only a fused Adam reads it.
    """

    found_inf: Tensor | None = None

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        *,
        lr: float,
        beta1: float,
        weight_decay: float,
        clip_norm: float | None = None,
        fused: bool,
    ) -> None:
        self.parameters = list(parameters)
        self.learning_rate, self.beta1, self.weight_decay = lr, beta1, weight_decay
        self.clip_norm, self.fused = clip_norm, fused
        self.state: dict[nn.Parameter, Moments] = {}

    def zero_grad(self) -> None:
        """Remove the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Move the weights that have a gradient."""
        moving = [parameter for parameter in self.parameters if parameter.grad is not None]
        if self.clip_norm is not None:
            nn.utils.clip_grad_norm_(moving, self.clip_norm)
        moments = [self.state.get(parameter) or self._start(parameter) for parameter in moving]
        adam(
            list[Tensor](moving),
            [parameter.grad for parameter in moving if parameter.grad is not None],
            [each["exp_avg"] for each in moments],
            [each["exp_avg_sq"] for each in moments],
            [],
            [each["step"] for each in moments],
            fused=self.fused,
            found_inf=self.found_inf,
            amsgrad=False,
            beta1=self.beta1,
            beta2=0.999,
            lr=self.learning_rate,
            weight_decay=self.weight_decay,
            eps=1e-8,
            maximize=False,
        )

    def _start(self, parameter: nn.Parameter) -> Moments:
        device = parameter.device if self.fused else "cpu"
        self.state[parameter] = {
            "step": torch.zeros((), dtype=torch.float32, device=device),
            "exp_avg": torch.zeros_like(parameter),
            "exp_avg_sq": torch.zeros_like(parameter),
        }
        return self.state[parameter]

    def moments(self) -> dict[int, Moments]:
        """Return the moments by the number of the weight."""
        return {number: self.state[each] for number, each in enumerate(self.parameters) if each in self.state}

    def take(self, moments: Mapping[int, Mapping[str, Tensor]]) -> None:
        """Continue from the moments that another Adam had, by the number of the weight."""
        self.state = {}
        for number, of_parameter in moments.items():
            parameter = self.parameters[number]
            own = self._start(parameter)
            own |= {name: tensor.to(own[name], copy=True) for name, tensor in of_parameter.items()}
