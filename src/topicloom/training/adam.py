"""Adam (Kingma & Ba 2015), as PyTorch computes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

Moments = dict[str, Tensor]


class Adam:
    """`torch.optim.Adam` as far as training needs it: the same function of PyTorch computes a step.

    When the first optimizer of a process is made, `torch.optim` imports PyTorch's compiler, which is not used here and
    takes as long as importing all the rest of PyTorch.

    Args:
        parameters: the weights.
        lr: the learning rate.
        beta1: the decay rate of the mean gradient.
        weight_decay: the L2 penalty on all weights.
        fused: whether one kernel computes a step, as CPUs and CUDA can.

    Attributes:
        param_groups: a list with one dictionary of the settings; its "lr" may be changed.
        state: the moments of each weight that has had a gradient.
        found_inf: () 1 if the next steps should have no effect, or 0; None for 0. Only a fused Adam reads it.
    """

    found_inf: Tensor | None = None

    def __init__(
        self, parameters: Iterable[nn.Parameter], *, lr: float, beta1: float, weight_decay: float, fused: bool
    ) -> None:
        self.parameters = list(parameters)
        self.param_groups = [{"lr": lr, "beta1": beta1, "weight_decay": weight_decay}]
        self.fused = fused
        self.state: dict[nn.Parameter, Moments] = {}

    def zero_grad(self) -> None:
        """Remove the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Move the weights that have a gradient."""
        (group,) = self.param_groups
        moving = [parameter for parameter in self.parameters if parameter.grad is not None]
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
            beta1=group["beta1"],
            beta2=0.999,
            lr=group["lr"],
            weight_decay=group["weight_decay"],
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
