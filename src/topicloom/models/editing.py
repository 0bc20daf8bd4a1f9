"""The application of edits to a fitted model, and to documents whose topics are known."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..corpus import Corpus
from ..errors import InputError
from ..nn.edited import Regroup, Split
from ..nn.gradients import full_precision
from ..topics.document_topics import DocumentTopics
from ..topics.edits import Edit, Numbering, checked_edits, renamed
from ..topics.hierarchy import hierarchy
from ..topics.translating import translated
from .base import TopicModel
from .edited import EditedModel, network_of
from .inference import Array, device_of, each_batch
from .splitting import fit_parts

logger = logging.getLogger("topicloom")


@full_precision()
def apply_edits(
    model: TopicModel,
    edits: Iterable[Mapping[str, Any]],
    X: Any = None,
    documents: DocumentTopics | None = None,
    *,
    matching: Sequence[int | None] | None = None,
) -> tuple[EditedModel, DocumentTopics | None]:
    """Apply edits to a model; the arguments are those of `TopicModel.apply`.

    Args:
        documents: the topics of the documents X, a corpus over the model's words, if they are known.

    Returns:
        the edited model, and the topics of the documents after the edits, if there are any.
    """
    checked = checked_edits(edits)
    if matching is not None:
        numbers = {old: new for old, new in enumerate(matching) if new is not None}
        result = translated(checked, numbers, len(matching), len(model.components_))
        for sentence in result.left_out:
            logger.warning("%s", sentence)
        checked = result.edits
    corpus = None if X is None else model.documents(X)
    if corpus is not None and documents is None:
        documents = model.infer(corpus)
    editor = _Editor(model, corpus, documents)
    for edit in checked:
        editor.apply(edit)
    return editor.result()


class _Editor:
    """Applies edits one after another, to a model and to documents.

    Args:
        model: a fitted model, edited before or not.
        corpus: documents over its words, or None.
        documents: their topics.
    """

    def __init__(self, model: TopicModel, corpus: Corpus | None, documents: DocumentTopics | None) -> None:
        self.model, self.corpus, self.documents = model, corpus, documents
        self.network = network_of(model)
        self.numbering = Numbering.start(len(model.components_))
        self.names = {column: name for column, name in enumerate(model.given_names) if name is not None}
        self.edits: list[Edit] = []

    def apply(self, edit: Edit) -> None:
        """Apply one checked edit."""
        if "rename" in edit:
            self.names = renamed(self.names, edit["rename"], self.numbering)
        elif "split" in edit:
            edit = self._split(edit)
        else:
            edit = self._regroup(edit)
        self.edits.append(edit)

    def _regroup(self, edit: Edit) -> Edit:
        if "merge" in edit:
            assign = self.numbering.merged(edit["merge"])
        elif "drop" in edit:
            assign = self.numbering.without(edit["drop"])
        else:
            if "groups" not in edit:
                edit = edit | {"groups": self._similar(edit["reduce_to"])}
            assign = self.numbering.grouped([[self.numbering.column(n) for n in group] for group in edit["groups"]])
        documents = self.documents
        known = None if documents is None or documents.empty.all() else documents.shares
        shares = self.network.prior_theta() if known is None else torch.from_numpy(known)
        device = device_of(self.network.base)
        self._add(Regroup(torch.from_numpy(assign).to(device), shares.float().clone().to(device)))
        self.names = _names_after(self.names, assign)
        self.numbering = self.numbering.regrouped(assign)
        return edit

    def _similar(self, n_topics: int) -> list[list[int]]:
        """Return the groups that become one topic each if n_topics are left, by the numbers of their topics."""
        if n_topics >= len(self.numbering):
            raise InputError(
                f"`reduce_to` should be fewer than the {len(self.numbering)} topics that there are; it is {n_topics}"
            )
        components = self.network.topic_word().cpu().numpy()
        if self.documents is None:
            theta, empty = self.network.prior_theta()[None].cpu().numpy(), None
        else:
            theta, empty = self.documents.theta, self.documents.empty
        weight = 0.5 if self.documents is not None else 1.0
        tree = hierarchy(
            components, theta, self.model.word_counts_, self.model.vocabulary_, empty=empty, word_weight=weight
        )
        groups = [[self.numbering.numbers[column] for column in group] for group in tree.cut(n_topics)]
        return sorted(sorted(group) for group in groups if len(group) > 1)

    def _split(self, edit: Edit) -> Edit:
        column = self.numbering.column(edit["split"])
        if self.corpus is None or self.documents is None:
            raise InputError(
                f"topic {edit['split']} can be split only with documents; give those of training: `documents`"
            )
        parts = fit_parts(self.network, self.corpus, self.documents, column, edit)
        self._add(Split(column, parts).to(device_of(self.network.base)))
        self.names = {each: name for each, name in self.names.items() if each != column}
        self.numbering = self.numbering.after_split(edit["into"])
        return edit

    def _add(self, step: Regroup | Split) -> None:
        """Add a step to the network, and apply it to the topics of the documents."""
        before = self.network
        self.network = before.extended(step)
        if self.documents is None or self.corpus is None:
            return
        theta, network, first = self.documents.theta, self.network, len(before.steps)
        device = device_of(before.base)

        def read(batch: Any) -> Tensor:
            rows = batch.rows.cpu().numpy()
            old = torch.from_numpy(np.array(theta[rows], np.float32)).to(device)  # a copy, as theta may be on disk
            return network.edit(old, batch.counts, first)

        parts = list(each_batch(network.base, self.corpus, read))
        average = network.prior_theta().cpu().numpy()
        new: Array = np.concatenate([np.empty((0, len(average)), np.float32), *parts])
        new[self.documents.empty] = average
        self.documents = replace(self.documents, theta=new)

    def result(self) -> tuple[EditedModel, DocumentTopics | None]:
        """Return the edited model, and the documents with their topics."""
        model = self.model
        if isinstance(model, EditedModel):
            edits, numbering = _continued(model, self.edits, self.numbering)
            edited = EditedModel.of(model.base_, self.network, edits, numbering, self.names)
        else:
            edited = EditedModel.of(model, self.network, self.edits, self.numbering, self.names)
        edited.tokenizer_ = model.tokenizer_
        return edited, self.documents


def _continued(model: EditedModel, edits: list[Edit], numbering: Numbering) -> tuple[list[Edit], Numbering]:
    """Return all edits since the trained model, by its numbers, given further edits by the numbers of `model`."""
    before = model._numbering
    n_parts = numbering.parts
    first_new = before.n_start + before.parts
    numbers = dict(enumerate(before.numbers)) | {model.n_topics + part: first_new + part for part in range(n_parts)}
    new = translated(edits, numbers, model.n_topics, first_new).edits
    for edit in new:
        if "drop" in edit:  # a topic that was merged before is dropped by all its numbers
            edit["drop"] = [each for n in edit["drop"] for each in (before.merged_with(n) if n < first_new else [n])]
    columns: dict[int, int | None] = {
        number: None if column is None else numbering.columns[column] for number, column in before.columns.items()
    }
    columns |= {first_new + part: numbering.columns[model.n_topics + part] for part in range(n_parts)}
    lowest = tuple(numbers[number] for number in numbering.numbers)
    return [*model._edits, *new], Numbering(columns, lowest, before.n_start, before.parts + n_parts)


def _names_after(names: Mapping[int, str], assign: Array) -> dict[int, str]:
    """Return the names of columns after a merge or drop. A merged topic keeps the first name of its parts."""
    kept: dict[int, str] = {}
    for column in sorted(names):
        if assign[column] >= 0:
            kept.setdefault(int(assign[column]), names[column])
    return kept
