"""Edits of one model translated for another, in which topics have other numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .edits import KINDS, Edit, listed


def numbers_in(edits: Iterable[Edit]) -> set[int]:
    """Return the numbers of the topics that checked edits name."""
    numbers: set[int] = set()
    for edit in edits:
        for kind in ("merge", "drop", "rename"):
            numbers |= set(edit.get(kind, ()))
        numbers |= {edit["split"]} if "split" in edit else set()
        numbers |= {topic for group in edit.get("groups", ()) for topic in group}
    return numbers


@dataclass(frozen=True)
class Translated:
    """Edits with other numbers.

    Attributes:
        edits: the edits that can be applied.
        left_out: a sentence for each edit, or part of one, that cannot be applied.
    """

    edits: list[Edit] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def translated(edits: Sequence[Edit], numbers: Mapping[int, int], n_old: int, n_new: int) -> Translated:
    """Translate the numbers of topics in edits, so that they can be applied to another model.

    A merged topic has a counterpart if one of its parts has, which also takes over the names of the other parts.

    Args:
        edits: checked edits of a model with `n_old` topics.
        numbers: the number of each topic in the other model; topics without one have no counterpart there.
        n_old, n_new: the numbers of topics of the two models.
    """
    translation = _Translation(numbers, n_old, n_new)
    translate = {
        "merge": translation.merge,
        "drop": translation.drop,
        "rename": translation.rename,
        "reduce_to": translation.reduce_to,
        "split": translation.split,
    }
    for edit in edits:
        translate[next(kind for kind in KINDS if kind in edit)](edit)
    return translation.result()


class _Translation:
    """The translation of one edit after another; the arguments are those of `translated`."""

    def __init__(self, numbers: Mapping[int, int], n_old: int, n_new: int) -> None:
        self.known = dict(numbers)  # the number of each topic in the other model
        self.next_old, self.next_new = n_old, n_new  # the numbers that the next parts of a split topic have
        self.names: dict[int, str | None] = {}  # of topics without a counterpart
        self.edits: list[Edit] = []
        self.left_out: list[str] = []

    def result(self) -> Translated:
        nameless = [f'{topic} "{name}"' for topic, name in self.names.items() if name]
        lost = f"no topic has the name of these old ones, as none resembles them: {', '.join(nameless)}"
        return Translated(self.edits, [*self.left_out, lost] if nameless else self.left_out)

    def merge(self, edit: Edit) -> None:
        topics, missing = self._counterparts(edit["merge"])
        self._inherit(edit["merge"])
        self._leave_out(missing, "merged")
        if len(topics) > 1:
            self.edits.append({"merge": topics})

    def drop(self, edit: Edit) -> None:
        topics, missing = self._counterparts(edit["drop"])
        self._leave_out(missing, "dropped")
        if topics:
            self.edits.append({"drop": topics})

    def rename(self, edit: Edit) -> None:
        found = {self.known[topic]: name for topic, name in edit["rename"].items() if topic in self.known}
        self.names |= {topic: name for topic, name in edit["rename"].items() if topic not in self.known}
        if found:
            self.edits.append({"rename": found})

    def reduce_to(self, edit: Edit) -> None:
        groups = [[self.known[topic] for topic in group if topic in self.known] for group in edit.get("groups", [])]
        if "groups" not in edit or sum(map(len, groups)) == sum(map(len, edit["groups"])):
            self.edits.append(edit | ({"groups": groups} if groups else {}))
            return
        for old, group in zip(edit["groups"], groups, strict=True):
            self._inherit(old)
            if len(set(group)) > 1:
                self.edits.append({"merge": group})

    def split(self, edit: Edit) -> None:
        n_added = edit["into"] - 1  # the first part keeps the number
        if edit["split"] in self.known:
            self.known |= {self.next_old + part: self.next_new + part for part in range(n_added)}
            self.edits.append(edit | {"split": self.known[edit["split"]]})
            self.next_new += n_added
        else:
            self.left_out.append(f"the old topic {edit['split']}, which has no counterpart, is not split")
        self.next_old += n_added

    def _counterparts(self, topics: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return the numbers of topics in the other model, each once, and the topics that have none there."""
        found = dict.fromkeys(self.known[topic] for topic in topics if topic in self.known)
        return list(found), [topic for topic in topics if topic not in self.known]

    def _leave_out(self, missing: Sequence[int], verb: str) -> None:
        """Say that topics without a counterpart are not merged or dropped."""
        if len(missing) == 1:
            self.left_out.append(f"the old topic {missing[0]}, which has no counterpart, is not {verb}")
        elif missing:
            self.left_out.append(f"the old topics {listed(missing)}, which have no counterparts, are not {verb}")

    def _inherit(self, merged: Sequence[int]) -> None:
        """Let the parts of a merged topic that have no counterpart share that of another part.

        The counterpart gets the name of a part without one, unless an edit has named it.
        """
        found = [self.known[topic] for topic in merged if topic in self.known]
        if not found:
            return
        missing = [topic for topic in merged if topic not in self.known]
        self.known |= dict.fromkeys(missing, found[0])
        given = [name for topic in missing if (name := self.names.pop(topic, None))]
        named = {topic for edit in self.edits for topic, name in edit.get("rename", {}).items() if name}
        if given and named.isdisjoint(found):
            self.edits.append({"rename": {found[0]: given[0]}})
