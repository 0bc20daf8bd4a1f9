"""Edits of topics as plain values: a list of dictionaries, checked here, that a YAML file can hold.

{"merge": [3, 7]}                the topics become one
{"drop": [5]}                    the topic is removed
{"rename": {3: "shipping"}}      the topic gets a name; None takes the name away
{"reduce_to": 20}                similar topics are merged until 20 are left; "groups" says which, where it is known
{"split": 4, "into": 3}          the topic becomes three; "random_state" is the seed
{"add": 2}                       two topics are learned beside the others; "rows" are the documents to learn them from

Every number in a list is that of a topic of the model that the list is applied to, before any edit of the list. A
merged topic may be named by any of its numbers, but is dropped only if all of them are named, so that no topic is
dropped by mistake. The first part of a split topic keeps its number, and the other parts have the next numbers that no
topic has: K, K + 1, ... in a model of K topics. So have added topics.
"""

from __future__ import annotations

import re
import reprlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml

from ..display import printable
from ..errors import InputError, ModelFileError, SettingError
from ..files import atomic_file
from ..files.content import DIGESTS, content_digest, read_yaml_or_toml
from ..messages import brief, joined, nearest, without_backquotes
from ..settings import require_seed
from ..text.strings import require_utf8

Edit = dict[str, Any]
FEWEST = 2  # topics of a model
_LONGEST_NAME = 200  # characters
_MOST_DIGITS = 19  # of a topic's number, as 64 bits can hold
_FURTHER_ENTRIES = {"reduce_to": {"groups"}, "split": {"into", "random_state"}, "add": {"rows", "random_state"}}
KINDS = ("merge", "drop", "rename", "reduce_to", "split", "add")


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
    unknown = [f"{name!s:.60}" for name in edit if name != kind and name not in _FURTHER_ENTRIES.get(kind, ())]
    if unknown:
        known = [kind, *_FURTHER_ENTRIES.get(kind, ())]
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
    if kind == "add":
        rows = {} if edit.get("rows") is None else {"rows": _numbers(edit["rows"], "rows")}
        return {kind: _whole(value, kind, 1), **rows, "random_state": seed}
    return {kind: _number(value, kind), "into": _whole(edit.get("into", 2), "into"), "random_state": seed}


def checked_name(name: Any, topic: Any) -> str | None:
    """Return the name of a topic as one line without spaces around it; None stays None.

    Raises:
        InputError: the name is no text and no whole number, is empty or too long, or contains a lone surrogate.
    """
    if name is None:
        return None
    if isinstance(name, bool) or not isinstance(name, str | Integral):  # str() may write another number than was meant
        raise InputError(f"the name of topic {topic} is {brief(name)}, which is not a text; give a text in quotes")
    text = " ".join(printable(require_utf8(str(name), f"the name of topic {topic}")).split())
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


def _whole(value: Any, kind: str, least: int = FEWEST) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise SettingError(f"`{kind}` should be a whole number from {least}; it is {brief(value)}")
    return int(value)


@dataclass(frozen=True)
class Numbering:
    """Which column each number of a list of edits stands for, while the edits are applied.

    Attributes:
        columns: the column of each number, None for a topic that was dropped.
        numbers: (K,) the number of each column: the lowest of those that stand for it.
        n_start: the number of topics before any edit.
        parts: the number of topics that splits and additions have made so far, which have the numbers from `n_start`.
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
                f", and {self.n_start} to {self.n_start + self.parts - 1} were split off or added" if self.parts else ""
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
                f"topic {numbers[0]} alone" if len(numbers) == 1 else f"topics {joined(numbers)}, which are one already"
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
                    f"`drop` names topic {number}, which another edit merges with {joined(others)}; name "
                    f"{joined(together)} to drop them all, or take topic {number} out of one of the edits"
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
        """Return the numbering after a topic was split into `into` parts. The first stays, and the others come last."""
        return self.after_added(into - 1)

    def after_added(self, n_new: int) -> Numbering:
        """Return the numbering after topics were added, which come last."""
        new = range(self.n_start + self.parts, self.n_start + self.parts + n_new)
        columns = {**self.columns, **{number: len(self) + place for place, number in enumerate(new)}}
        return replace(self, columns=columns, numbers=(*self.numbers, *new), parts=self.parts + n_new)


def moved(before: Numbering, after: Numbering) -> list[int | None]:
    """Return the column of each topic after further edits, None for one that was dropped."""
    return [after.columns.get(number) for number in before.numbers]


def moves_in_words(numbers: Sequence[int | None]) -> str:
    """Return which topics have other numbers than before, such as "4 to 6 are 3 to 5"; "" if none has.

    A topic that became one with an earlier topic is left out.

    Args:
        numbers: the new number of each topic, None for one that was dropped.

    >>> moves_in_words([0, 1, 1, 2, None, 3, 4])
    '3 is 2, 5 to 6 are 3 to 4'
    """
    runs: list[tuple[int, int, int]] = []  # first and last old number, and how far they moved
    for old, new in enumerate(numbers):
        if new is None or new == old or new in numbers[:old]:
            continue
        if runs and runs[-1][1:] == (old - 1, old - new):
            runs[-1] = (runs[-1][0], old, old - new)
        else:
            runs.append((old, old, old - new))
    return ", ".join(
        f"{first} is {first - by}" if first == last else f"{first} to {last} are {first - by} to {last - by}"
        for first, last, by in runs
    )


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
        raise InputError(f"`rename` gives one topic two names ({joined(list(new))} are one topic); give it one name")
    result = {column: name for column, name in {**names, **changed}.items() if name is not None}
    for column, name in result.items():
        twin = next((other for other, its in result.items() if its == name and other != column), None)
        if twin is not None:
            both = joined(sorted(numbering.numbers[each] for each in (column, twin)))
            raise InputError(f"the name {name!r} would be that of topics {both}; give each topic a name of its own")
    return result


# Edits in a YAML file, with the fingerprint of their model.

_HEAD = """\
# Edits of topics, for `topicloom edit RUN --edits FILE --out RUN2`. Numbers are those of the topics before all edits.
"""


@dataclass(frozen=True)
class EditsFile:
    """The content of a file of edits.

    Attributes:
        edits: the edits.
        fingerprint: the fingerprint of their model; None if the file has none.
    """

    edits: list[Edit]
    fingerprint: str | None = None

    def check(self, fingerprint: str, path: str | Path) -> None:
        """Check that the edits belong to a model.

        Raises:
            InputError: they belong to another model.
        """
        if self.fingerprint is not None and self.fingerprint != fingerprint:
            raise InputError(
                f"{path} belongs to another model (its fingerprint is {self.fingerprint}, that of this model is "
                f"{fingerprint}), whose topics have other numbers; replay the run of that model (`replay`), or take "
                "the line 'model' out of the file"
            )


def write_edits(path: str | Path, edits: Sequence[Edit], fingerprint: str, *, sealed: bool = False) -> None:
    """Write edits to a YAML file.

    Args:
        path: the file.
        edits: the edits of a model.
        fingerprint: that of the model before the edits.
        sealed: whether the file has a checksum of its content. It cannot be changed by hand then.

    Raises:
        InputError: the name of the file does not end in .yaml.
    """
    path = Path(path)
    if path.suffix.lower() not in (".yaml", ".yml"):
        raise InputError(f"{path} does not end in .yaml; give a name that does")
    content: dict[str, Any] = {"model": fingerprint, "edits": list(edits)}
    if sealed:
        content = {DIGESTS: content_digest(content), **content}
    with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        file.write(_HEAD)
        yaml.dump(content, file, _Dumper, sort_keys=False, allow_unicode=True, default_flow_style=None, width=10_000)


class _Dumper(yaml.SafeDumper):
    """A dumper that quotes names such as 1e5, which `read_yaml_or_toml` would read as numbers."""

    def ignore_aliases(self, data: object) -> bool:
        return True


_Dumper.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$"),
    list("-+.0123456789"),
)


def read_edits(path: str | Path) -> EditsFile:
    """Read a file of edits, which `write_edits` or a person wrote.

    Raises:
        InputError: the file cannot be read, or an edit in it has not the form of one; the message names the file.
    """
    path = Path(path)
    found = read_yaml_or_toml(path, "edits: [{merge: [3, 7]}]")
    digest = found.pop(DIGESTS, None)
    if digest is not None and digest != content_digest(found):
        raise ModelFileError(
            f"{path} has changed since it was written; if you changed it yourself, take the line '{DIGESTS}' out of it"
        )
    unknown = [name for name in found if name not in ("model", "edits")]
    if unknown or not isinstance(found.get("edits"), list):
        raise InputError(
            f"{path} should have the entry 'edits', a list, and may have 'model', a fingerprint; see docs/topics.md"
        )
    fingerprint = found.get("model")
    try:
        return EditsFile(checked_edits(found["edits"]), None if fingerprint is None else str(fingerprint))
    except InputError as error:
        raise InputError(f"{path}: {without_backquotes(str(error))}") from None  # no options of the command


# Lists of edits of several people, who had the same topics before them.


def joint_edits(before: Sequence[Edit], lists: Sequence[tuple[str, Sequence[Edit]]], n_topics: int) -> list[Edit]:
    """Return several lists of edits as one. What two of them do alike is done once.

    Args:
        before: edits that the topics have already.
        lists: further lists with their names in messages. A list may begin with all edits of `before`.
        n_topics: the number of topics before all edits, by which all lists number them.

    Raises:
        InputError: two lists name a topic differently, one drops what another names or joins, or a list numbers the
            parts of split topics while another splits topics as well.
    """
    known, result = [("the run", list(before))] if before else [], list(before)
    for name, edits in lists:
        has_all = list(edits[: len(before)]) == list(before)
        new = list(edits[len(before) :] if has_all else edits)
        n_old = n_topics + _n_parts(before if has_all else ())
        parts = [number for number in numbers_in(new) if number >= n_old]
        if parts and n_topics + _n_parts(result) > n_old:
            raise InputError(
                f"{name} numbers split or added topics ({parts[0]}), which have other numbers after the edits of "
                f"{known[-1][0]}; apply it first, or alone"
            )
        leader = _leaders([*result, *new])
        for other, earlier in known[1:] if before and has_all else known:
            _require_agreement((other, earlier), (name, new), leader)
        result += _without_done(new, result)
        known.append((name, new))
    return result


def _n_parts(edits: Iterable[Edit]) -> int:
    return sum(edit["into"] - 1 if "split" in edit else edit.get("add", 0) for edit in edits)


def _leaders(edits: Iterable[Edit]) -> Callable[[int], int]:
    """Return a function that gives each topic the number of one of the topics that are merged with it."""
    leader: dict[int, int] = {}

    def find(number: int) -> int:
        while number in leader:
            number = leader[number]
        return number

    for edit in edits:
        for group in [edit["merge"]] if "merge" in edit else edit.get("groups", ()):
            first, *others = dict.fromkeys(map(find, group))
            leader |= dict.fromkeys(others, first)
    return find


def _require_agreement(
    one: tuple[str, Sequence[Edit]], other: tuple[str, Sequence[Edit]], leader: Callable[[int], int]
) -> None:
    names = {leader(topic): name for edit in one[1] for topic, name in edit.get("rename", {}).items()}
    for topic, name in ((topic, name) for edit in other[1] for topic, name in edit.get("rename", {}).items()):
        if names.get(leader(topic), name) != name:
            raise InputError(
                f"{one[0]} and {other[0]} give topic {topic} two names ({names[leader(topic)]!r} and {name!r}); take "
                "one of them away"
            )
    for (dropping, drops), (using, uses) in ((one, other), (other, one)):
        gone = {leader(topic) for edit in drops for topic in edit.get("drop", ())}
        used = numbers_in(edit for edit in uses if "drop" not in edit)
        if lost := sorted(topic for topic in used if leader(topic) in gone):
            raise InputError(
                f"{dropping} drops topic {lost[0]}, which {using} names, merges or splits; take one of the edits away"
            )


def _without_done(edits: Iterable[Edit], done: Sequence[Edit]) -> Iterator[Edit]:
    """Yield edits without what earlier ones have done."""
    leader = _leaders(done)
    dropped = {topic for edit in done for topic in edit.get("drop", ())}
    for edit in edits:
        if "drop" in edit:
            if left := [topic for topic in edit["drop"] if topic not in dropped]:
                yield {"drop": left}
        elif "rename" in edit or (edit not in done and not _is_one(edit.get("merge", ()), leader)):
            yield edit


def _is_one(topics: Sequence[int], leader: Callable[[int], int]) -> bool:
    return len(topics) > 1 and len(set(map(leader, topics))) == 1


# Edits for another model, in which the topics have other numbers.


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
        "add": translation.add,
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

    def add(self, edit: Edit) -> None:
        n_new = edit["add"]
        self.known |= {self.next_old + place: self.next_new + place for place in range(n_new)}
        self.edits.append(edit)
        self.next_old, self.next_new = self.next_old + n_new, self.next_new + n_new

    def _counterparts(self, topics: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return the numbers of topics in the other model, each once, and the topics that have none there."""
        found = dict.fromkeys(self.known[topic] for topic in topics if topic in self.known)
        return list(found), [topic for topic in topics if topic not in self.known]

    def _leave_out(self, missing: Sequence[int], verb: str) -> None:
        """Say that topics without a counterpart are not merged or dropped."""
        if len(missing) == 1:
            self.left_out.append(f"the old topic {missing[0]}, which has no counterpart, is not {verb}")
        elif missing:
            self.left_out.append(f"the old topics {joined(missing)}, which have no counterparts, are not {verb}")

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
