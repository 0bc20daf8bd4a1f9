"""The wheel and the source distribution have what they should and nothing else, and the package works from the wheel.

Also: what `import topicloom` may do.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import pytest
import yaml
from packaging.version import Version

import topicloom

ROOT = Path(__file__).parents[1]
PACKAGE = Path(topicloom.__file__).parent
NAME = f"topicloom-{topicloom.__version__}"
TOP = ["CHANGELOG.md", "LICENSE", "MANIFEST.in", "NOTICE", "README.md", "README.zh-CN.md", "SECURITY.md"]
TOP += ["constraints.txt", "pyproject.toml"]
EXPLORER = ["compare.sh", "package-lock.json", "package.json", "tsconfig.json", "vite.config.ts", "src"]
UNWANTED = ["src/topicloom/__pycache__/x.cpython-311.pyc", "src/topicloom/notes.txt", "src/topicloom/.x.py.swp"]
UNWANTED += ["tests/test_x.py", "explorer/node_modules/x/package.json", ".env", "runs/x/model.safetensors"]
BUNDLE = ["js", "css", "licences.md"]
ONE_DAY = "1700000000"  # in seconds since 1970
BUILD = "import sys; from setuptools import build_meta as b; getattr(b, f'build_{sys.argv[1]}')(sys.argv[2])"

pytestmark = pytest.mark.skipif(not (ROOT / "pyproject.toml").is_file(), reason="the tests are not in the repository")


def package_files() -> set[str]:
    """The files that belong to the package, as paths from the folder that contains it."""
    kinds = ["**/*.py", "py.typed", "text/stopwords/*.txt", *(f"reports/explorer/explorer.{x}" for x in BUNDLE)]
    return {file.relative_to(PACKAGE.parent).as_posix() for kind in kinds for file in PACKAGE.glob(kind)}


def built(source: Path, kind: str, out: Path) -> Path:
    """Build a distribution, as `make dist` does."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": ONE_DAY}
    subprocess.run(
        [sys.executable, "-c", BUILD, kind, out], cwd=source, env=environment, check=True, capture_output=True
    )
    return next(out.iterdir())


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository, with files that must not get into a distribution."""
    copy = tmp_path_factory.mktemp("source")
    for name in [*TOP, "src", *(f"explorer/{each}" for each in EXPLORER)]:
        where = copy / name
        where.parent.mkdir(exist_ok=True)
        unwanted = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / name, where, ignore=unwanted) if (ROOT / name).is_dir() else shutil.copy(
            ROOT / name, where
        )
    for name in UNWANTED:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_text("x = 1\n")
    return copy


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(source, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def test_the_wheel_has_the_package_and_its_licences_alone(wheel):
    about = [
        f"{NAME}.dist-info/{name}" for name in ("METADATA", "WHEEL", "entry_points.txt", "top_level.txt", "RECORD")
    ]
    licences = [f"{NAME}.dist-info/licenses/{name}" for name in ("LICENSE", "NOTICE")]
    with zipfile.ZipFile(wheel) as archive:
        assert set(archive.namelist()) == package_files() | {*about, *licences}
        metadata = Parser().parsestr(archive.read(f"{NAME}.dist-info/METADATA").decode())
    assert wheel.name == f"{NAME}-py3-none-any.whl"
    assert (metadata["Name"], metadata["Version"]) == ("topicloom", topicloom.__version__)
    assert metadata["License-Expression"] == "Apache-2.0"
    needed = [line for line in metadata.get_all("Requires-Dist") or [] if "extra ==" not in line]
    assert len(needed) == 13, needed


def test_two_wheels_of_the_same_source_are_equal(source, wheel, tmp_path):
    shutil.rmtree(source / "build", ignore_errors=True)
    assert built(source, "wheel", tmp_path).read_bytes() == wheel.read_bytes()


def test_the_source_distribution_can_be_built_from(source, wheel, tmp_path):
    archive = built(source, "sdist", tmp_path / "sdist")
    with tarfile.open(archive) as opened:
        names = {member.name.partition("/")[2] for member in opened if member.isfile()}
        opened.extractall(tmp_path / "again", filter="data")
    made = {"PKG-INFO", "setup.cfg"} | {name for name in names if name.startswith("src/topicloom.egg-info/")}
    explorer = {f.relative_to(ROOT).as_posix() for name in EXPLORER for f in files_of(ROOT / "explorer" / name)}
    assert names - made == {f"src/{name}" for name in package_files()} | set(TOP) | explorer
    again = built(tmp_path / "again" / NAME, "wheel", tmp_path / "wheel")
    with zipfile.ZipFile(again) as one, zipfile.ZipFile(wheel) as other:
        assert sorted(one.namelist()) == sorted(other.namelist())


def files_of(path: Path) -> list[Path]:
    return [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]


def run(unpacked: Path, *arguments: str) -> str:
    """Run Python with the package of the wheel, away from the repository."""
    environment = {**os.environ, "PYTHONPATH": str(unpacked), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-P", *arguments]
    return subprocess.run(command, env=environment, cwd=unpacked, check=True, capture_output=True, text=True).stdout


USED = """
import sys
import numpy as np
import topicloom as tl
from topicloom.reports.explorer import write_page
assert tl.__file__.startswith(sys.argv[1]), tl.__file__
texts = ["the cat chased the dog", "the bank raised rates"] * 10
corpus = tl.Corpus.from_texts(texts, language="en", min_df=1, max_df=1.0)
model = tl.GSM(2, epochs=1, random_state=0, verbose=False).fit(corpus)
model.save("model")
np.testing.assert_array_equal(tl.load("model").transform(texts), model.transform(texts))
write_page("page.html", tl.Topics(model, corpus))
"""
# The compiled module of tomotopy warns when it is imported, and warnings may be errors.
SAMPLED = "import topicloom as tl; tl.LDA(2, method='gibbs', epochs=2).fit([[1, 0], [0, 2], [1, 1]])"


def test_the_package_of_the_wheel_works(unpacked, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(unpacked), "PYTHONDONTWRITEBYTECODE": "1"}

    def run(*arguments: str) -> str:
        command = [sys.executable, "-P", *arguments]
        return subprocess.run(
            command, env=environment, cwd=tmp_path, check=True, stdout=subprocess.PIPE, text=True
        ).stdout

    assert run("-m", "topicloom", "--version").split()[-1] == topicloom.__version__
    sampled = SAMPLED if find_spec("tomotopy") else ""
    run("-W", "error::DeprecationWarning", "-c", sampled + USED, str(unpacked))
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    licences = page[page.index('id="licences"') :]
    assert all(name in licences for name in ("MIT", "ISC", "BSD-3-Clause", "Mike Bostock", "Svelte Contributors"))


WATCHED = """
import os, sys
seen, before = [], dict(os.environ)
WRITES = {"os.mkdir", "os.rename", "os.remove", "os.link", "os.symlink", "os.chmod", "os.system"}
def watch(event, values):
    writes = event == "open" and isinstance(values[1], str) and set(values[1]) & set("wax+")
    starts = event == "subprocess.Popen" and "ldconfig" not in str(values[0])  # by which CUDA's libraries are found
    if writes or event in WRITES or starts or event.startswith("socket."):
        seen.append((event, values))
    if event.startswith("socket."):
        raise OSError("there is no network")
sys.addaudithook(watch)
import topicloom
loaded = {name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names - {"topicloom"}
assert not loaded & {"torch", "numpy", "scipy", "sklearn", "pydantic", "yaml", "typer", "rich"}, loaded
import topicloom.cli
for name in set(topicloom.__all__) - {'figures', 'diagram'}:  # matplotlib writes a list of fonts when it is imported
    getattr(topicloom, name)
extras = {"fastapi", "uvicorn", "optuna", "tomotopy", "gensim", "jieba", "rjieba", "icu4py", "openpyxl",
          "umap", "wordcloud", "numba", "selenium", "polars",
          "sentence_transformers", "model2vec"} & set(sys.modules)
assert not extras, extras
assert not seen, seen
OTHERS = {"KMP_INIT_AT_FORK": "FALSE", "KMP_DUPLICATE_LIB_OK": "True"}  # which scikit-learn sets
assert os.environ == OTHERS | before, os.environ.items() - before.items()
"""


def test_the_lowest_versions_are_those_that_are_tried():
    """`make test-lowest` tries the lower bounds of pyproject.toml, all but that of PyTorch."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = chain(project["dependencies"], *project["optional-dependencies"].values())
    bounds = dict(found.groups() for each in needed if (found := re.match(r"([\w-]+)>=([\d.]+)", each)))
    lines = (ROOT / "constraints-lowest.txt").read_text(encoding="utf-8").splitlines()
    tried = dict(line.split("==") for line in lines if not line.startswith("#"))
    del bounds["torch"]
    assert {name.lower(): Version(tried[name.lower()]) for name in bounds} == {
        name.lower(): Version(bound) for name, bound in bounds.items()
    }


def test_importing_asks_no_network_writes_nothing_and_loads_no_extra(tmp_path):
    """It leaves the environment as it is, too."""
    environment = {"PYTHONDONTWRITEBYTECODE": "1", "HOME": str(tmp_path)}  # without what this process has set by now
    environment |= {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH") if name in os.environ}
    environment["PYTHONPATH"] = str(PACKAGE.parent)
    done = subprocess.run(
        [sys.executable, "-c", WATCHED], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_conda_recipe_needs_what_the_package_needs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    recipe = yaml.safe_load((ROOT / "packaging" / "recipe.yaml").read_text(encoding="utf-8"))
    needed = {each.replace(" ", "") for each in recipe["requirements"]["run"]}
    # the recipe is for all platforms, so that it cannot leave numba out on some
    versions = {each.partition(";")[0] for each in project["project"]["dependencies"]}
    wanted = {re.sub("^torch(?=>)", "pytorch", each) for each in versions}
    assert needed == wanted | {f"python{project['project']['requires-python']}"}
    command, place = project["project"]["scripts"].popitem()
    assert recipe["build"]["python"]["entry_points"] == [f"{command} = {place}"]


def test_workflows_and_documents_call_targets_that_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall("^([a-z-]+):", makefile, re.MULTILINE))
    called = {
        target
        for path in [*(ROOT / ".github" / "workflows").iterdir(), ROOT / "CONTRIBUTING.md"]
        for target in re.findall("(?:run: |`)make ([a-z-]+)", path.read_text(encoding="utf-8"))
    }
    assert "test" in called
    assert called <= targets
    for versions in ("lowest", "newest"):
        assert f"test-{versions}" in targets


def test_every_file_names_the_same_version():
    program = ROOT / "packaging" / "check_version.py"
    assert not subprocess.run([sys.executable, program], check=False, capture_output=True, text=True).stderr
    other = subprocess.run([sys.executable, program, "9.9.9"], check=False, capture_output=True, text=True).stderr
    assert other.count("has") == 8
