"""From a trained network to arrays.

All encoders of the package are two layers over the counts, and all posteriors are a function of an affine map of the
hidden vector. The map is found by applying the network's own code to the zero vector and to each unit vector, in
double precision, so that no model needs code of its own here, and a model of the user's with the package's encoder
works too. Whether the result equals the network's is then checked on documents (`PortableInference.error`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from ...errors import InputError
from ...nn.batch import Batch
from ...nn.dirichlet import LaplacePosterior, SparsePosterior
from ...nn.edited import FEWEST_KEPT, EditedNetwork, Regroup
from ...nn.encoders import BagEncoder, DirichletHead, WeibullHead
from ...nn.gradients import without_gradients
from ...nn.mean_field import MAX_STEPS, TOLERANCE, MeanFieldNetwork
from ...nn.network import TopicNetwork
from ...nn.posteriors import Posterior
from ...nn.sparse import SparseCounts
from ..gsm import GSMNetwork
from ..loom.counting import ENCODER_PRIOR, PRIOR_TOKENS
from ..loom.network import LoomNetwork
from .arrays import (
    Array,
    PortableEncoder,
    PortableInference,
    PortableReadout,
    PortableRegroup,
    PortableSplit,
    PortableTopics,
)


def portable_inference(model: Any) -> PortableInference:
    """Return the inference of a fitted model as arrays.

    Raises:
        InputError: it cannot be written as arrays, because the network has an encoder of its own, reads fields, or
            uses more of a document than the encoder's hidden vector.
    """
    network = getattr(model, "network_", None)
    if not isinstance(network, TopicNetwork):
        raise _not_portable(model)
    return _of_network(network)


def _not_portable(owner: object) -> InputError:
    return InputError(f"the inference of {type(owner).__name__} cannot be written as arrays")


def _of_network(network: TopicNetwork) -> PortableInference:
    average = _numpy(network.prior_theta())
    if isinstance(network, EditedNetwork):
        steps = tuple(_step(network, number) for number in range(len(network.each_step())))
        return replace(_of_network(network.base), average=average, steps=steps)
    if isinstance(network, MeanFieldNetwork):
        return PortableInference(average, topics=_mean_field(network))
    encoder = getattr(network, "encoder", None)
    if type(encoder) is not BagEncoder or network.fields:
        raise _not_portable(network)
    topics = None
    if isinstance(network, LoomNetwork) and network.counting.started:
        counting = network.counting
        given = _scaled(counting.topics()), _numpy(counting.alpha), network.refine
        topics = PortableTopics("refine", *given, share=ENCODER_PRIOR, prior_tokens=PRIOR_TOKENS)
    return PortableInference(average, _encoder(encoder), _readout(network, encoder), topics)


def _mean_field(network: MeanFieldNetwork) -> PortableTopics:
    beta_t, alpha = _scaled(network.beta_t), _numpy(network.alpha)
    return PortableTopics("mean_field", beta_t, alpha, MAX_STEPS, tolerance=TOLERANCE)


def _step(network: EditedNetwork, number: int) -> PortableRegroup | PortableSplit:
    step = network.each_step()[number]
    if isinstance(step, Regroup):
        return PortableRegroup(_numpy(step.assign), _numpy(network.stages[number + 1][1]), FEWEST_KEPT)
    return PortableSplit(int(step.topic), _scaled(network.stages[number][0]), _mean_field(step.network))


def _encoder(encoder: BagEncoder) -> PortableEncoder:
    return PortableEncoder(
        encoder.input,
        encoder.activation,
        _numpy(encoder.weight),
        _numpy(encoder.bias),
        _numpy(encoder.hidden.weight),
        _numpy(encoder.hidden.bias),
        _numpy(encoder.idf),
    )


class _Given(nn.Module):
    """An encoder whose hidden vectors are given."""

    def __init__(self, hidden: Tensor) -> None:
        super().__init__()
        self.hidden = hidden

    def forward(self, batch: Batch, generator: torch.Generator | None) -> Tensor:
        return self.hidden


_SHARED = ("encoder", "decoder", "counting")  # parts that are large, and that theta does not need given h


def _readout(network: TopicNetwork, encoder: BagEncoder) -> PortableReadout:
    """Find the affine map from h to the posterior by applying the network to 0 and to each unit vector."""
    n_hidden = len(encoder.bias)
    probe = _in_double_precision(network)
    given = torch.cat([torch.zeros(1, n_hidden), torch.eye(n_hidden)]).double()  # (1 + H, H)
    probe._modules["encoder"] = _Given(given)
    empty = torch.zeros(0, dtype=torch.int64)
    batch = Batch(SparseCounts(empty, torch.zeros(0), torch.zeros(n_hidden + 2, dtype=torch.int64), len(encoder.idf)))
    infer: Callable[[Batch], Posterior] = probe.code if isinstance(probe, GSMNetwork) else probe.posterior
    try:
        with without_gradients():
            return _readout_of(infer(batch), getattr(probe, "head", None), given)
    except Exception as error:  # a network of the user's may need more than h, and can then fail in any way
        raise _not_portable(network) from error


def _in_double_precision(network: TopicNetwork) -> TopicNetwork:
    """Return a copy in double precision on the CPU, which shares the large parts."""
    probe = copy.copy(network)
    probe._modules = {
        name: part if part is None or name in _SHARED else copy.deepcopy(part).double().cpu()
        for name, part in network._modules.items()
    }
    for kind in ("_parameters", "_buffers"):
        own = getattr(network, kind).items()
        doubled = {
            name: each.detach().double().cpu() if each is not None and each.is_floating_point() else each
            for name, each in own
        }
        setattr(probe, kind, doubled)
    return probe


def _readout_of(posterior: Posterior, head: nn.Module | None, hidden: Tensor) -> PortableReadout:
    """Return the map, given the posterior of h = 0 and of each unit vector, `hidden`, and the network's head."""
    gate = None
    if isinstance(posterior, SparsePosterior):
        gate = _affine(posterior.logits)
        posterior = posterior.weights
    head = head.mean if isinstance(head, WeibullHead) else head
    if isinstance(head, DirichletHead):
        prior: Tensor = posterior.prior  # type: ignore[attr-defined]
        map_ = _affine(head.logits(hidden, prior))
        if head.plain:
            return PortableReadout(*map_, "softplus", head.floor, gate)
        smoothing = _numpy((prior + head.floor) / head.concentration())
        return PortableReadout(*map_, "counts", gate=gate, smoothing=smoothing)
    logits = posterior.log_point() if isinstance(posterior, LaplacePosterior) else posterior.point().log()
    # A softmax is the same for logits that differ by a constant, so that this is the same map.
    return PortableReadout(*_affine(logits - logits.mean(1, keepdim=True)), "softmax", gate=gate)


def _affine(values: Tensor) -> tuple[Array, Array]:
    """Return the weights (K, H) and the bias (K,) of an affine map, given its values at 0 and at unit vectors."""
    bias = values[0]
    return (values[1:] - bias).mT.cpu().numpy(), bias.cpu().numpy()


def _scaled(beta_t: Tensor) -> Array:
    """Return topics (V, K) with the largest weight of each word set to 1, which half precision can express."""
    beta = _numpy(beta_t)
    scaled: Array = beta / beta.max(axis=1, keepdims=True).clip(1e-30)
    return scaled


def _numpy(tensor: Tensor) -> Array:
    array: Array = tensor.detach().cpu().numpy()
    return array
