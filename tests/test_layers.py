"""The package's layers, read from its source: imports point downward only."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import topicloom
from topicloom.models import MODELS

ROOT = Path(topicloom.__file__).parent
# From the bottom up; a module imports from lines above its own, and from its own package.
LAYERS = [
    {"errors"},
    {"cells", "config", "files", "inputs", "settings", "ranking", "metrics", "nn"},
    {"text"},
    {"vocabulary"},
    {"building"},
    {"corpus"},
    {"batches", "callbacks", "compiled", "datasets", "word_vectors"},
    {"collapse", "selection", "topic_measures", "training", "word_vector_files"},
    {"monitoring"},
    {"estimator"},
    {"evaluation", "held_out", "neural"},
    {"models"},
    {"persistence", "figures"},
    {"comparison", "run", "run_evaluation", "tuning"},
    {"cli"},
    {"__main__"},
]
LEVEL = {part: level for level, parts in enumerate(LAYERS) for part in parts}
FILES = [path.relative_to(ROOT) for path in sorted(ROOT.rglob("*.py")) if path != ROOT / "__init__.py"]


def part_of(file: Path) -> str:
    """The first name under the package: a module or a subpackage."""
    return file.with_suffix("").parts[0]


def imports(file: Path) -> Iterator[str]:
    """The full names of the modules that a file imports, wherever in it."""
    package = ("topicloom", *file.parent.parts)
    for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, [base, node.module]))
            # `from . import x` means the module x, where there is one.
            yield from (f"{module}.{alias.name}" if module == "topicloom" else module for alias in node.names)


def own_parts(file: Path) -> set[str]:
    names = (name.split(".") for name in imports(file))
    return {name[1] for name in names if name[0] == "topicloom" and len(name) > 1} - {"__version__"}


def foreign(file: Path) -> set[str]:
    return {name.split(".")[0] for name in imports(file)} - sys.stdlib_module_names - {"topicloom"}


@pytest.mark.parametrize("file", FILES, ids=str)
def test_imports_point_downward(file):
    mine = part_of(file)
    for other in own_parts(file):
        assert other in LEVEL, f"{file} imports {other!r} from the package itself: import it from its module"
        assert other == mine or LEVEL[other] < LEVEL[mine], f"{file} imports {other}, which is not below it"


def test_every_module_has_a_layer():
    assert {part_of(file) for file in FILES} == set(LEVEL)


@pytest.mark.parametrize(
    ("part", "own", "others"),
    [
        ("nn", {"nn"}, {"torch"}),
        ("compiled", {"nn"}, {"numba", "numpy", "torch"}),
        ("metrics", {"metrics"}, {"numpy", "scipy", "sklearn"}),
        ("errors", set(), set()),
        ("config", {"errors"}, {"yaml"}),
        ("files", {"errors"}, set()),
        ("settings", {"errors"}, {"numpy", "pydantic"}),
        ("ranking", set(), {"numpy"}),
    ],
)
def test_leaves_import_little(part, own, others):
    for file in FILES:
        if part_of(file) == part:
            assert own_parts(file) <= own
            assert foreign(file) <= others


@pytest.mark.parametrize("module", ["training", "estimator", "neural"])
def test_no_model_is_named_below_the_models(module):
    source = (ROOT / f"{module}.py").read_text(encoding="utf-8")
    names = "|".join(model.__name__ for model in MODELS)
    assert not re.findall(rf"\b(?:{names})\b", source)


@pytest.mark.parametrize("model", MODELS)
def test_a_model_is_a_short_file(model):
    lines = Path(inspect.getfile(model)).read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 240


@pytest.mark.parametrize("modules", ["topicloom", "topicloom.cli", "topicloom.corpus, topicloom.text"])
def test_pytorch_is_loaded_only_where_it_is_needed(modules):
    script = f"import {modules}, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


def test_public_names():
    for name in topicloom.__all__:
        assert getattr(topicloom, name) is not None
    assert set(topicloom.__all__) <= set(dir(topicloom))
    assert {model.__name__ for model in MODELS} <= set(topicloom.__all__)
    with pytest.raises(AttributeError, match="no attribute 'ETMM'"):
        _ = topicloom.ETMM
