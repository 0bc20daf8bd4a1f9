"""EditedModel: a fitted model whose topics people merged, dropped, renamed or split.

It is the trained model with a list of edits. The trained network infers theta, and the edits are applied to it, so that
it is used, saved and loaded as any fitted model. It cannot be trained further: train a new model, and apply the edits
to that.
"""

from __future__ import annotations

import copy
import hashlib
import logging
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NoReturn

import torch
from torch import Tensor

from ..errors import InputError
from ..nn.edited import EditedNetwork, Regroup, Split
from ..nn.network import TopicNetwork
from ..topics.edits import Edit, Numbering, checked_edits
from ..topics.saved import COMPONENTS, CONFIG, WEIGHTS
from .base import TopicModel
from .inference import device_of
from .mean_field import CompiledMeanFieldNetwork
from .saving import COUNTS
from .words import Words

logger = logging.getLogger("topicloom")

BASE = "base."  # before the names of the trained network's weights


class EditedModel(TopicModel):
    """A fitted model with edits of its topics: what `merge`, `drop`, `rename`, `reduce_to`, `split`, `apply` return.

    Attributes:
        base_: the trained model.
        edits: what was done to its topics, numbered by the topics of the trained model; `base_.apply(edits)` does the
            same again.
        topic_names_: a name for each topic.
    """

    @classmethod
    def of(
        cls, base: TopicModel, network: EditedNetwork, edits: list[Edit], numbering: Numbering, names: Mapping[int, str]
    ) -> EditedModel:
        """Return an edited model.

        Args:
            base: the trained model.
            network: the network of `base` with the steps of the edits.
            edits: all edits since `base`.
            numbering: the columns of the numbers in `edits`.
            names: the names of columns.
        """
        shared = {each.name: getattr(base, each.name) for each in fields(TopicModel) if each.name != "n_topics"}
        model = cls(len(numbering), **shared | {"seed_words": None})
        learned = ("vocabulary_", "tokenizer_", "word_counts_", "document_counts_", "n_documents_", "n_features_in_")
        for name in (*learned, "history_", "feature_names_in_"):
            if hasattr(base, name):
                setattr(model, name, getattr(base, name))
        model.settings_ = model.get_params(deep=False)
        model.base_, model._edits, model._numbering, model._names = base, edits, numbering, dict(names)
        model.adopt_network(network)
        return model

    base_: TopicModel
    _edits: list[Edit]
    _numbering: Numbering
    _names: dict[int, str]

    @property
    def edits(self) -> list[Edit]:
        return copy.deepcopy(self._edits)

    @property
    def given_names(self) -> list[str | None]:
        return [self._names.get(column) for column in range(self.n_topics)]

    @property
    def origin(self) -> TopicModel:
        return self.base_

    def __repr__(self) -> str:
        if not hasattr(self, "base_"):
            return "EditedModel()"
        n = len(self._edits)
        return f"EditedModel({self.base_!r}, {self.n_topics} topics, {n} edit{'s' if n != 1 else ''})"

    def build_network(self, words: Words, generator: torch.Generator) -> NoReturn:
        raise InputError(_NOT_TRAINED)

    def fit(self, *_: Any, **__: Any) -> NoReturn:
        """Raise InputError, as an edited model is not trained."""
        raise InputError(_NOT_TRAINED)

    partial_fit = fit
    fit_corpus = fit
    partial_fit_corpus = fit

    def further_config(self) -> dict[str, Any]:
        """Return what config.json holds beside the entries of the trained model."""
        return {
            "topic_names": self.given_names,
            "edited": {
                "edits": self._edits,
                "columns": [[number, column] for number, column in self._numbering.columns.items()],
                "parts": self._numbering.parts,
                "steps": [type(step).__name__.lower() for step in network_of(self).each_step()],
            },
        }


_NOT_TRAINED = (
    "an edited model cannot be trained; fit a new model, and apply the edits to it: model.apply(edited.edits)"
)


def network_of(model: TopicModel) -> EditedNetwork:
    """Return the network of a model as one that can have further steps."""
    network: TopicNetwork = model.network_
    return network if isinstance(network, EditedNetwork) else EditedNetwork(network, [])


def fingerprint_of(model: TopicModel) -> str:
    """Return a short hash of a model's weights and words, which is the same after saving and loading."""
    digest = hashlib.sha256("\n".join(model.vocabulary_).encode("utf-8", "surrogatepass"))
    for name, tensor in sorted(model.network_.state_dict().items()):
        digest.update(f"{name} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return f"tm-{digest.hexdigest()[:16]}"  # the letters keep YAML from reading digits and an e as a number


def restore_edited(
    kind: type[TopicModel], config: dict[str, Any], vocabulary: list[str], tensors: dict[str, Tensor]
) -> EditedModel:
    """Return a saved edited model, given the contents of its files.

    Args:
        kind: the class of the trained model.
        config, vocabulary, tensors: as for `TopicModel.from_saved`.

    Raises:
        ValueError: the files do not fit together.
    """
    about = config["edited"]
    learned = {name: tensors[name] for name in COUNTS}
    placeholder = torch.zeros(1).expand(int(config["settings"]["n_topics"]), len(vocabulary))
    inner = {name.removeprefix(BASE): tensor for name, tensor in tensors.items() if name.startswith(BASE)}
    base = kind.from_saved(config, vocabulary, inner | learned | {COMPONENTS: placeholder})
    steps: list[Regroup | Split] = []
    for number, step in enumerate(about["steps"]):
        own = {
            name.removeprefix(f"steps.{number}."): tensor
            for name, tensor in tensors.items()
            if name.startswith(f"steps.{number}.")
        }
        if not all(bool(tensor.isfinite().all()) for tensor in own.values()):
            raise ValueError(f"step {number} in {WEIGHTS} contains a number that is not finite")
        steps.append(_step(step, own).to(device_of(base.network_)))
    try:
        network = EditedNetwork(base.network_, steps)
    except RuntimeError as error:
        raise ValueError(f"the edits in {CONFIG} and {WEIGHTS} do not fit together: {error}") from None
    n_start = len(base.components_)
    columns = {int(number): None if column is None else int(column) for number, column in about["columns"]}
    n_topics = len(network.prior_theta())
    lowest = tuple(min(n for n, column in columns.items() if column == k) for k in range(n_topics))
    names = {k: str(name) for k, name in enumerate(config["topic_names"]) if name is not None}
    numbering = Numbering(columns, lowest, n_start, int(about["parts"]))
    return EditedModel.of(base, network, checked_edits(about["edits"]), numbering, names)


def _step(kind: str, tensors: Mapping[str, Tensor]) -> Regroup | Split:
    if kind == "regroup":
        return Regroup(tensors["assign"], tensors["shares"])
    beta_t = tensors["network.beta_t"]
    network = CompiledMeanFieldNetwork(*beta_t.shape)
    if tensors["network.alpha"].shape != network.alpha.shape:
        raise ValueError(f"a split in {WEIGHTS} has tensors of different sizes")
    network.beta_t.copy_(beta_t)
    network.alpha.copy_(tensors["network.alpha"])
    return Split(int(tensors["topic"]), network)
