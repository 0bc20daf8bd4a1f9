"""The package's layers, read from its source: imports point downward only, and no module imports itself in a circle."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import topicloom
from topicloom.models import MODELS

ROOT = Path(topicloom.__file__).parent
# From the bottom up: a module imports from the lines above its own, and from its own package.
LAYERS = [
    {"_version", "errors", "messages"},
    {"distributed", "settings"},
    {"display", "files", "metrics", "nn", "preparing", "processes", "ranking"},
    {"text"},
    {"corpus"},
    {"datasets", "embeddings"},
    {"topics", "training"},
    {"models"},
    {"evaluation"},
    {"reports"},
    {"experiments"},
    {"service"},
    {"cli"},
    {"__main__"},
]
LEVEL = {part: level for level, parts in enumerate(LAYERS) for part in parts}
FILES = [path.relative_to(ROOT) for path in sorted(ROOT.rglob("*.py")) if path != ROOT / "__init__.py"]
MODULES = {".".join(("topicloom", *file.with_suffix("").parts)).removesuffix(".__init__"): file for file in FILES}


def part_of(file: Path) -> str:
    """The first name under the package: a module or a subpackage."""
    return file.with_suffix("").parts[0]


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def imports(file: Path) -> list[str]:
    """The full names of the modules that a file imports, inside functions and for type checkers too."""
    package = ("topicloom", *file.parent.parts)
    tree = parsed(ROOT / file)
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, [base, node.module]))
            for alias in node.names:  # `from package import x` means the module x, where there is one
                name = f"{module}.{alias.name}"
                names.append(name if name in MODULES or module == "topicloom" else module)
    return names


def own_parts(file: Path) -> set[str]:
    names = (name.split(".") for name in imports(file))
    return {name[1] for name in names if name[0] == "topicloom" and len(name) > 1}


def foreign(file: Path) -> set[str]:
    return {name.split(".")[0] for name in imports(file)} - sys.stdlib_module_names - {"topicloom"}


@pytest.mark.parametrize("file", FILES, ids=str)
def test_imports_point_downward(file):
    mine = part_of(file)
    for other in own_parts(file):
        assert other in LEVEL, f"{file} imports {other!r} from the package itself: import it from its module"
        assert other == mine or LEVEL[other] < LEVEL[mine], f"{file} imports {other}, which is not below it"


def test_one_module_alone_is_looked_up_above_its_layer():
    """`Topics` loads the model of a run by name when a model is needed, as tables of topics need none."""
    by_name = {str(file) for file in FILES if 'import_module("topicloom' in (ROOT / file).read_text(encoding="utf-8")}
    assert by_name == {"topics/saved.py"}


def test_no_module_imports_itself_in_a_circle():
    """Imports inside functions and for type checkers count too."""
    graph = {name: {other for other in imports(file) if other in MODULES} for name, file in MODULES.items()}
    graph = {name: others - {name} for name, others in graph.items()}
    list(TopologicalSorter(graph).static_order())


def test_there_are_few_layers_and_few_files_at_the_root():
    assert {part_of(file) for file in FILES} == set(LEVEL)
    assert len(LAYERS) <= 14
    assert len(list(ROOT.glob("*.py"))) <= 14


@pytest.mark.parametrize(
    ("part", "own", "others"),
    [
        ("distributed", {"distributed", "errors"}, {"torch"}),
        ("nn", {"distributed", "nn"}, {"numba", "numpy", "threadpoolctl", "torch"}),
        ("metrics", {"errors", "messages", "metrics"}, {"numpy", "scipy", "sklearn"}),
        ("errors", set(), set()),
        ("messages", set(), set()),
        ("files", {"errors", "files"}, {"yaml"}),
        ("settings", {"errors", "messages", "settings"}, {"numpy", "pydantic"}),
        ("processes", {"_version", "errors", "processes"}, {"joblib", "ray"}),
        ("ranking", {"errors", "settings"}, {"numpy"}),
    ],
)
def test_leaves_import_little(part, own, others):
    for file in FILES:
        if part_of(file) == part:
            assert own_parts(file) <= own
            assert foreign(file) <= others


@pytest.mark.parametrize("place", ["training", "models/base.py", "models/neural.py"])
def test_no_model_is_named_below_the_models(place):
    names = "|".join(model.__name__ for model in MODELS)
    for path in [ROOT / place] if place.endswith(".py") else sorted((ROOT / place).rglob("*.py")):
        code = re.sub(r"(?m)^ *(?:>>>|\.\.\. ).*", "", path.read_text(encoding="utf-8"))  # without examples
        assert not re.findall(rf"\b(?:{names})\b", code)


@pytest.mark.parametrize(
    "modules", ["topicloom", "topicloom.cli", "topicloom.corpus, topicloom.text, topicloom.topics"]
)
def test_pytorch_is_loaded_only_where_it_is_needed(modules):
    script = f"import {modules}, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


def test_public_names():
    for name in topicloom.__all__:
        assert getattr(topicloom, name) is not None
    assert dir(topicloom) == sorted(topicloom.__all__)
    assert {model.__name__ for model in MODELS} <= set(topicloom.__all__)
    with pytest.raises(AttributeError, match="no attribute 'ETMM'"):
        _ = topicloom.ETMM


def names_from_the_package(file: Path) -> Iterator[tuple[str, str]]:
    """The names that a script imports from the package, each after its module."""
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "topicloom":
            yield from ((node.module, alias.name) for alias in node.names)


def test_scripts_import_what_the_package_has():
    """Benchmarks and examples take minutes or more, so no test runs all of them."""
    repository = ROOT.parents[1]
    scripts = [file for folder in ("benchmarks", "examples") for file in (repository / folder).glob("*.py")]
    if not scripts:
        pytest.skip("the tests are not in the repository")
    wanted = {(module, name): file.name for file in scripts for module, name in names_from_the_package(file)}
    assert len(wanted) > 10
    missing = {
        f"{file}: {module}.{name}"
        for (module, name), file in wanted.items()
        if f"{module}.{name}" not in MODULES and not hasattr(importlib.import_module(module), name)
    }
    assert missing == set()


def names_of_statements(statements: list[ast.stmt]) -> Iterator[str]:
    """The names that statements of a module or a class define: functions, classes, and assigned names."""
    for node in statements:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            decorators = {ast.unparse(each).rpartition(".")[2] for each in node.decorator_list}
            if not decorators & {"overload", "setter"}:  # which define a name together with another function
                yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            stored = (each for target in targets for each in ast.walk(target) if isinstance(each, ast.Name))
            yield from (each.id for each in stored if isinstance(each.ctx, ast.Store) and each.id != "_")


def test_no_module_or_class_defines_a_name_twice():
    """Of two constants of one name, the second would silently be used everywhere."""
    folders = [ROOT, Path(__file__).parent, *(ROOT.parents[1] / folder for folder in ("benchmarks", "examples"))]
    n_names, twice = 0, set()
    for file in (file for folder in folders for file in folder.rglob("*.py")):
        tree = parsed(file)
        for scope in (tree, *(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))):
            counts = Counter(names_of_statements(scope.body))
            n_names += len(counts)
            twice |= {f"{file}: {name}" for name, count in counts.items() if count > 1}
    assert twice == set()
    assert n_names > 1000


def test_names_of_tests_have_at_most_ten_words():
    """A name says what is promised; a comment or a docstring has room for the rest."""
    names = {
        node.name
        for file in Path(__file__).parent.rglob("test_*.py")
        for node in ast.walk(parsed(file))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }
    assert {name for name in names if name.count("_") > 10} == set()
