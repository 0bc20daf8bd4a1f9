"""Every public class and function has an example, and all examples of the package give what they show."""

from __future__ import annotations

import doctest
import importlib
import inspect
from pathlib import Path
from typing import Any

import pytest

import topicloom
from topicloom import datasets, figures, metrics, text

ROOT = Path(topicloom.__file__).parent
WITH_EXAMPLES = [
    ".".join(("topicloom", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
    for path in sorted(ROOT.rglob("*.py"))
    if "    >>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_examples_give_what_they_show(module, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testmod(importlib.import_module(module), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert tried
    assert not failed


def public() -> dict[str, Any]:
    """The classes and functions that people import, by name."""
    places = [topicloom, figures, metrics, text]
    found = {f"{place.__name__}.{name}": getattr(place, name) for place in places for name in place.__all__}
    found |= {
        f"topicloom.datasets.{name}": each
        for name, each in vars(datasets).items()
        if not name.startswith("_") and getattr(each, "__module__", "") == "topicloom.datasets"
    }
    return {name: each for name, each in found.items() if inspect.isclass(each) or inspect.isfunction(each)}


@pytest.mark.parametrize("name", sorted(public()))
def test_what_is_public_has_an_example(name):
    found = public()[name]
    if not (inspect.isclass(found) and issubclass(found, BaseException)):
        assert ">>> " in (found.__doc__ or ""), name
