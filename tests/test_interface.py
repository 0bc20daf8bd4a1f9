"""The public names and their parameters are those of interface.json; docs/interface.md says how they may change.

python tests/test_interface.py    # writes interface.json again
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import topicloom
from topicloom import datasets, figures, metrics, text

LIST = Path(__file__).with_name("interface.json")
KINDS = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}


def parameters(function: Any) -> str:
    """The parameters of a function, an optional one with "=", and "*" before those that need a keyword."""
    found = []
    for name, each in inspect.signature(function).parameters.items():
        if each.kind is each.KEYWORD_ONLY and not any(one.startswith("*") for one in found):
            found.append("*")
        optional = "" if each.default is each.empty else "="
        found.append(f"{KINDS.get(each.kind.name, '')}{name}{optional}")
    return ", ".join(each for each in found if each != "self")


def described(name: str, found: Any) -> dict[str, Any]:
    """A public function, or a public class with the methods and attributes of each class that it is made of."""
    if inspect.isfunction(found):
        return {name: parameters(found)}
    if not inspect.isclass(found):
        return {name: type(found).__name__}
    try:
        listed = {name: parameters(found)}
    except ValueError:  # classes such as errors have no signature
        listed = {name: ""}
    for kind in (each for each in found.__mro__ if each.__module__.startswith("topicloom")):
        for member, value in vars(kind).items():
            if member.startswith("set_") and member.endswith("_request"):  # scikit-learn adds some, by its version
                continue
            if not member.startswith("_"):
                value = value.__func__ if isinstance(value, classmethod | staticmethod) else value
                listed[f"{kind.__name__}.{member}"] = parameters(value) if inspect.isfunction(value) else "attribute"
    return listed


def interface() -> dict[str, Any]:
    """All public names with what they take."""
    listed: dict[str, Any] = {}
    for place in (topicloom, metrics, figures, text):
        for name in sorted(place.__all__):
            found = getattr(place, name)
            if not inspect.ismodule(found) and not name.startswith("_"):
                listed |= described(f"{place.__name__}.{name}", found)
    for name, found in sorted(vars(datasets).items()):
        if inspect.isfunction(found) and found.__module__ == datasets.__name__ and not name.startswith("_"):
            listed |= described(f"{datasets.__name__}.{name}", found)
    return listed


def test_public_names_and_parameters_are_as_listed():
    listed, found = json.loads(LIST.read_text(encoding="utf-8")), interface()
    changed = {name: (listed.get(name), found.get(name)) for name in listed.keys() | found.keys()}
    changed = {name: pair for name, pair in changed.items() if pair[0] != pair[1]}
    assert not changed, "docs/interface.md says what may change; then `python tests/test_interface.py`"


if __name__ == "__main__":
    LIST.write_text(json.dumps(interface(), indent=1, sort_keys=True) + "\n", encoding="utf-8")
