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
    result, known, old_parts, new_parts = Translated(), dict(numbers), n_old, n_new
    names: dict[int, str | None] = {}  # of topics without a counterpart
    for edit in edits:
        kind = next(kind for kind in KINDS if kind in edit)
        if kind == "split":
            into = edit["into"]
            if edit["split"] in known:
                known |= {old_parts + part: new_parts + part for part in range(into - 1)}
                result.edits.append(edit | {"split": known[edit["split"]]})
                new_parts += into - 1
            else:
                result.left_out.append(f"the old topic {edit['split']}, which has no counterpart, is not split")
            old_parts += into - 1
        elif kind == "rename":
            found = {known[topic]: name for topic, name in edit["rename"].items() if topic in known}
            names |= {topic: name for topic, name in edit["rename"].items() if topic not in known}
            result.edits.extend([{"rename": found}] if found else [])
        elif kind == "reduce_to":
            groups = [[known[topic] for topic in group if topic in known] for group in edit.get("groups", [])]
            if "groups" not in edit or sum(map(len, groups)) == sum(map(len, edit["groups"])):
                result.edits.append(edit | ({"groups": groups} if groups else {}))
            else:
                for old, group in zip(edit["groups"], groups, strict=True):
                    result.edits.extend(_inherited(old, known, names, result.edits))
                    result.edits.extend([{"merge": group}] if len(set(group)) > 1 else [])
        else:
            topics = list(dict.fromkeys(known[topic] for topic in edit[kind] if topic in known))
            missing = [topic for topic in edit[kind] if topic not in known]
            if kind == "merge":
                result.edits.extend(_inherited(edit[kind], known, names, result.edits))
            if missing:
                verb = "merged" if kind == "merge" else "dropped"
                plural = (
                    "the old topic {}, which has no counterpart, is"
                    if len(missing) == 1
                    else "the old topics {}, which have no counterparts, are"
                )
                result.left_out.append(f"{plural.format(listed(missing))} not {verb}")
            if len(topics) >= (2 if kind == "merge" else 1):
                result.edits.append({kind: topics})
    nameless = [f'{topic} "{name}"' for topic, name in names.items() if name]
    if nameless:
        result.left_out.append(
            "no topic has the name of these old ones, as none resembles them: " + ", ".join(nameless)
        )
    return result


def _inherited(
    merged: Sequence[int], known: dict[int, int], names: dict[int, str | None], before: Sequence[Edit]
) -> list[Edit]:
    """Let the parts of a merged topic that have no counterpart share that of another part.

    Args:
        merged: the numbers of the parts.
        known: the number of each topic in the other model; the parts are added.
        names: the names of topics without a counterpart; those of the parts are removed.
        before: the edits of the other model so far.

    Returns:
        the edit that gives the counterpart the name of a part without one; nothing if another part has a name.
    """
    found = [known[topic] for topic in merged if topic in known]
    if not found:
        return []
    missing = [topic for topic in merged if topic not in known]
    known |= dict.fromkeys(missing, found[0])
    given = [name for topic in missing if (name := names.pop(topic, None))]
    named = {topic for edit in before for topic, name in edit.get("rename", {}).items() if name}
    return [{"rename": {found[0]: given[0]}}] if given and named.isdisjoint(found) else []
