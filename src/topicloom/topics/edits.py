"""Edits of topics as plain values: a list of dictionaries, checked here, that a YAML file can hold.

{"merge": [3, 7]}                the topics become one
{"drop": [5]}                    the topic is removed
{"rename": {3: "shipping"}}      the topic gets a name; None takes the name away
{"reduce_to": 20}                similar topics are merged until 20 are left; "groups" says which, where it is known
{"split": 4, "into": 3}          the topic becomes three; "random_state" is the seed

Every number in a list is that of a topic of the model that the list is applied to, before any edit of the list. A
merged topic may be named by any of its numbers, but is dropped only if all of them are named, so that no topic is
dropped by mistake. The first part of a split topic keeps its number, and the other parts have the next numbers that no
topic has: K, K + 1, ... in a model of K topics.
"""

from __future__ import annotations

import reprlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from ..display import printable
from ..errors import InputError, SettingError, nearest
from ..settings import require_seed
from ..text.characters import brief, replace_surrogates

Edit = dict[str, Any]
FEWEST = 2  # topics that a model can have
_LONGEST_NAME = 200  # characters
_MOST_DIGITS = 19  # of a topic's number, as 64 bits can hold
_FURTHER = {"reduce_to": {"groups"}, "split": {"into", "random_state"}}  # entries beside the edit itself
KINDS = ("merge", "drop", "rename", "reduce_to", "split")


def checked_edits(edits: Any) -> list[Edit]:
    """Return edits in the form that they are saved in.

    Args:
        edits: a list of dictionaries, or one of them. A number may stand for a list of one number.

    Raises:
        SettingError: an edit has not the form of one; the message says which.
    """
    if isinstance(edits, Mapping):
        edits = [edits]
    if isinstance(edits, str) or not isinstance(edits, Iterable):
        raise SettingError(f'`edits` should be a list such as [{{"merge": [3, 7]}}]; it is {brief(edits)}')
    return [_checked(number, edit) for number, edit in enumerate(edits)]


def _checked(number: int, edit: Any) -> Edit:
    if not isinstance(edit, Mapping):
        raise SettingError(f'edit {number} should be a dictionary such as {{"merge": [3, 7]}}; it is {brief(edit)}')
    kinds = [kind for kind in KINDS if kind in edit]
    if len(kinds) != 1:
        names = reprlib.repr(list(edit)).strip("[]")
        raise SettingError(f"edit {number} has the entries {names}; give each edit one of {', '.join(KINDS)}")
    kind = kinds[0]
    unknown = [f"{name!s:.60}" for name in edit if name != kind and name not in _FURTHER.get(kind, ())]
    if unknown:
        known = [kind, *_FURTHER.get(kind, ())]
        raise SettingError(f"edit {number} ({kind}) has no entry {unknown[0]!r}; {nearest(unknown[0], known)}")
    value = edit[kind]
    if kind == "rename":
        if not isinstance(value, Mapping) or not value:
            raise SettingError(f'edit {number}: `rename` needs topics and names, such as {{3: "shipping"}}')
        return {"rename": {_number(topic, kind): checked_name(name, topic) for topic, name in value.items()}}
    if kind in ("merge", "drop"):
        return {kind: _numbers(value, kind)}
    if kind == "reduce_to":
        groups = edit.get("groups")
        whole = {kind: _whole(value, kind)}
        if groups is None:
            return whole
        if isinstance(groups, str | Mapping) or not isinstance(groups, Iterable):
            raise SettingError(f"`groups` needs lists of topics, such as [[0, 2], [5]]; it is {brief(groups)}")
        return whole | {"groups": [_numbers(group, "groups") for group in groups]}
    seed = _number(edit.get("random_state", 0), "random_state")
    require_seed(seed)
    return {kind: _number(value, kind), "into": _whole(edit.get("into", 2), "into"), "random_state": seed}


def checked_name(name: Any, topic: Any) -> str | None:
    """Return the name of a topic as one line without spaces around it; None stays None.

    Raises:
        InputError: the name is empty or too long.
    """
    if name is None:
        return None
    text = " ".join(printable(replace_surrogates(str(name))).split())
    if not text:
        raise InputError(
            f"the name of topic {topic} is empty; give it a name, or None (null in JSON and YAML) to take its name away"
        )
    if len(text) > _LONGEST_NAME:
        raise InputError(f"the name of topic {topic} has {len(text)} characters; give it at most {_LONGEST_NAME}")
    return text


def _numbers(value: Any, kind: str) -> list[int]:
    if isinstance(value, Integral):
        value = [value]
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise SettingError(f"`{kind}` needs the numbers of topics, such as [3, 7]; it is {brief(value)}")
    found = [_number(each, kind) for each in value]
    if len(set(found)) < len(found):
        twice = Counter(found).most_common(1)[0][0]
        raise InputError(f"`{kind}` names topic {twice} twice; name each topic once")
    if not found:
        raise SettingError(f"`{kind}` names no topic; give the numbers of topics, such as [3, 7]")
    return found


def _number(value: Any, kind: str) -> int:
    # The keys of JSON are strings.
    if isinstance(value, str) and value.strip().isdecimal() and len(value) <= _MOST_DIGITS:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 0:
        raise SettingError(f"`{kind}` needs whole numbers from 0; {brief(value)} is not one")
    return int(value)


def _whole(value: Any, kind: str) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < FEWEST:
        raise SettingError(f"`{kind}` should be a whole number from {FEWEST}; it is {brief(value)}")
    return int(value)


@dataclass(frozen=True)
class Numbering:
    """Which column each number of a list of edits stands for, while the edits are applied.

    Attributes:
        columns: the column of each number, None for a topic that was dropped.
        numbers: (K,) the number of each column: the lowest of those that stand for it.
        n_start: the number of topics before any edit.
        parts: the number of topics that splits have added so far, which have the numbers from `n_start`.
    """

    columns: Mapping[int, int | None]
    numbers: tuple[int, ...]
    n_start: int
    parts: int = 0

    @classmethod
    def start(cls, n_topics: int) -> Numbering:
        """Return the numbering of a model before any edit."""
        return cls({k: k for k in range(n_topics)}, tuple(range(n_topics)), n_topics)

    def __len__(self) -> int:
        return len(self.numbers)

    def column(self, number: int) -> int:
        """Return the column of a topic.

        Raises:
            InputError: there is no such topic, or it was dropped.
        """
        if number not in self.columns:
            more = (
                f", and {self.n_start} to {self.n_start + self.parts - 1} are parts of split ones" if self.parts else ""
            )
            raise InputError(f"there is no topic {number}; the topics are 0 to {self.n_start - 1}{more}")
        column = self.columns[number]
        if column is None:
            raise InputError(f"topic {number} was dropped by an earlier edit; leave it out of the later ones")
        return column

    def merged_with(self, number: int) -> list[int]:
        """Return all numbers of a topic: its own, and those of the topics that were merged with it."""
        return [each for each, column in self.columns.items() if column == self.columns[number]]

    def merged(self, numbers: Sequence[int]) -> npt.NDArray[np.int64]:
        """Return what a merge does to the columns, as `regrouped` takes it.

        Raises:
            InputError: a topic does not exist, the topics are one already, or too few topics would be left.
        """
        columns = sorted({self.column(number) for number in numbers})
        if len(columns) < 2:
            said = (
                f"topic {numbers[0]} alone" if len(numbers) == 1 else f"topics {listed(numbers)}, which are one already"
            )
            raise InputError(f"`merge` names {said}; name at least two different topics")
        return self.grouped([columns])

    def grouped(self, groups: Iterable[Sequence[int]]) -> npt.NDArray[np.int64]:
        """Return what merging groups of columns does; columns that are in no group stay."""
        leader = np.arange(len(self))
        for group in groups:
            leader[list(group)] = min(group)
        self._require_enough(len(np.unique(leader)), "merging these topics")
        return np.unique(leader, return_inverse=True)[1].astype(np.int64)

    def without(self, numbers: Sequence[int]) -> npt.NDArray[np.int64]:
        """Return what dropping topics does to the columns, as `regrouped` takes it.

        Raises:
            InputError: a topic does not exist, a topic was merged with one that is not named, or too few topics would
                be left.
        """
        gone = {self.column(number) for number in numbers}
        for number in numbers:
            together = self.merged_with(number)
            if others := [other for other in together if other not in numbers]:
                raise InputError(
                    f"`drop` names topic {number}, which another edit merges with {listed(others)}; name "
                    f"{listed(together)} to drop them all, or take topic {number} out of one of the edits"
                )
        self._require_enough(len(self) - len(gone), "dropping these topics")
        assign = np.full(len(self), -1, np.int64)
        kept = [column for column in range(len(self)) if column not in gone]
        assign[kept] = np.arange(len(kept))
        return assign

    def _require_enough(self, n_left: int, what: str) -> None:
        if n_left < FEWEST:
            left = "one topic" if n_left == 1 else "no topic"
            raise InputError(f"{what} would leave {left} of {len(self)}; at least {FEWEST} topics must remain")

    def regrouped(self, assign: npt.NDArray[np.int64]) -> Numbering:
        """Return the numbering after columns were merged or dropped.

        Args:
            assign: (K,) the new column of each old one, -1 for a column that is dropped.
        """
        columns = {
            number: None if column is None or assign[column] < 0 else int(assign[column])
            for number, column in self.columns.items()
        }
        numbers = [min(n for n, c in columns.items() if c == column) for column in range(int(assign.max()) + 1)]
        return replace(self, columns=columns, numbers=tuple(numbers))

    def after_split(self, into: int) -> Numbering:
        """Return the numbering after a topic was split into so many. The first stays, and the others come last."""
        new = range(self.n_start + self.parts, self.n_start + self.parts + into - 1)
        columns = {**self.columns, **{number: len(self) + place for place, number in enumerate(new)}}
        return replace(self, columns=columns, numbers=(*self.numbers, *new), parts=self.parts + into - 1)


def listed(numbers: Sequence[int]) -> str:
    """Return numbers as text: 1, 2 and 3."""
    *most, last = map(str, numbers)
    return f"{', '.join(most)} and {last}" if most else last


def renamed(names: Mapping[int, str], new: Mapping[int, str | None], numbering: Numbering) -> dict[int, str]:
    """Return the names of columns after topics were renamed.

    Args:
        names: the names of columns before.
        new: the new names by the number of the topic; None takes a name away.
        numbering: the columns of the numbers.

    Raises:
        InputError: there is no such topic, or two topics would have the same name.
    """
    changed = {numbering.column(topic): name for topic, name in new.items()}
    if len(changed) < len(new):
        raise InputError(f"`rename` gives one topic two names ({listed(list(new))} are one topic); give it one name")
    result = {column: name for column, name in {**names, **changed}.items() if name is not None}
    for column, name in result.items():
        twin = next((other for other, its in result.items() if its == name and other != column), None)
        if twin is not None:
            both = listed(sorted(numbering.numbers[each] for each in (column, twin)))
            raise InputError(f"the name {name!r} would be that of topics {both}; give each topic a name of its own")
    return result
