"""What the README says runs as it says it."""

from __future__ import annotations

import ast
import re
import runpy
import shlex
import subprocess
from pathlib import Path

import pytest

import topicloom
from command_line import call
from topicloom.settings import describe_settings

ROOT = Path(__file__).resolve().parents[1]
READMES = ("README.md", "README.zh-CN.md")
PAGES = (*READMES, *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md")))
FOUND = {
    ast.unparse(ast.parse(snippet)): f"{name}-{number}"  # pages in two languages share some, but for the comments
    for name in reversed(PAGES)
    for number, snippet in enumerate(
        re.findall(r"<!-- test -->\n```python\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), re.DOTALL)
    )
}
SNIPPETS = [pytest.param(snippet, id=place) for snippet, place in FOUND.items()]


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_python_snippets_run(snippet: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(snippet, "snippet", "exec", dont_inherit=True), {"__name__": "__main__"})


def test_the_commands_of_the_first_example_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    titles = ["湖人击败火箭 科比得到三十分", "央行宣布降低利率 股市上涨", "火箭主场赢下湖人", "银行股领涨 股市成交放大"]
    Path("news.txt").write_text("\n".join(titles * 25), encoding="utf-8")
    Path("new.txt").write_text("湖人对火箭\n", encoding="utf-8")
    block = re.search(r"```sh\n(topicloom train.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    for command in block[1].strip().splitlines():
        name, *words = shlex.split(command.replace("--topics 20", "--topics 3 --epochs 3"))
        assert name == "topicloom"
        result = call(*words)
        assert result.exit_code == 0, f"{command}\n{result.output}"
    rows = Path("theta.csv").read_text(encoding="utf-8").splitlines()
    assert len(rows) == 2


def test_both_readmes_name_the_same_commands_and_models() -> None:
    english, chinese = ((ROOT / name).read_text(encoding="utf-8") for name in READMES)
    for pattern in (r"^(?:topicloom|make) \S+", r"^\| `(\w+)` \|", r"docs/models/\w+(?=[\w.-]*\.md)"):
        assert re.findall(pattern, english, re.MULTILINE) == re.findall(pattern, chinese, re.MULTILINE)


@pytest.mark.parametrize("suffix", [".md", ".zh-CN.md"])
def test_the_list_of_pages_names_every_page(suffix: str) -> None:
    docs = ROOT / "docs"
    linked = set(re.findall(r"\]\(([\w.-]+\.md)\)", (docs / f"README{suffix}").read_text(encoding="utf-8")))
    names = {page.name.split(".")[0] for page in docs.glob("*.md")} - {"README"}
    there = {name: f"{name}{suffix}" if (docs / f"{name}{suffix}").exists() else f"{name}.md" for name in names}
    assert set(there.values()) <= linked


@pytest.mark.parametrize("name", [name for name in PAGES if name.endswith(".zh-CN.md")])
def test_chinese_pages_lead_to_chinese_pages(name: str) -> None:
    page = ROOT / name
    links = re.findall(r"\[([^\]]*)\]\(([\w./-]+)\.md[#)]", page.read_text(encoding="utf-8"))
    english = {target for label, target in links if label not in ("English", "英文版")}
    assert not {target for target in english if (page.parent / f"{target}.zh-CN.md").exists()}


@pytest.mark.parametrize("target", ["setup", "demo", "test", "check", "bench"])
def test_make_knows_the_targets(target: str) -> None:
    done = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "models").glob("*.md")), ids=lambda page: page.name)
def test_pages_name_what_the_code_has(page: Path) -> None:
    """A name that was changed in the code only is found here."""
    code = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "src").rglob("*.py"))
    known = set(re.findall(r"\w+", code))
    named = re.findall(r"`(?:\w+\.)*([A-Za-z_]+)`", page.read_text(encoding="utf-8"))
    assert set(named) <= known


CHINESE = {
    "主要": "Main",
    "文本": "Text",
    "结构": "Shape",
    "先验": "Prior",
    "训练": "Training",
    "坍缩": "Collapse",
    "运行": "Run",
}
GROUP_NAMES = CHINESE | {group.lower(): group for group in CHINESE.values()}
MODELS = dict(
    re.findall(r"^\| `(\w+)` \|.*\(docs/models/(\w+)\.md\) \|$", (ROOT / READMES[0]).read_text("utf-8"), re.M)
)


@pytest.mark.parametrize("suffix", [".md", ".zh-CN.md"])
@pytest.mark.parametrize("page", sorted(set(MODELS.values())))
def test_pages_of_models_group_all_settings(page: str, suffix: str) -> None:
    text = (ROOT / "docs" / "models" / f"{page}{suffix}").read_text(encoding="utf-8")
    rows = re.findall(rf"^\| ({'|'.join(GROUP_NAMES)}) \| (.*) \|$", text, re.MULTILINE)
    listed = [(name, GROUP_NAMES[group]) for group, names in rows for name in re.findall(r"`(\w+)`", names)]
    models = [getattr(topicloom, name) for name, its_page in MODELS.items() if its_page == page]
    settings = {each.name: each.group for model in models for each in describe_settings(model)}
    assert sorted(listed) == sorted((name, group or dict(listed)[name]) for name, group in settings.items())


def test_contributing_names_files_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w./-]+(?:\.py|/))`", text)) - {"models/yours.py"}
    assert len(named) > 40
    assert {
        name for name in named if not any((place / name).exists() for place in (ROOT, ROOT / "src/topicloom"))
    } == set()


def test_the_picture_of_the_layers_has_the_present_files() -> None:
    """If this fails, `make architecture` draws the picture again."""
    script = runpy.run_path(str(ROOT / "examples" / "screenshots" / "architecture.py"))
    assert (ROOT / "docs" / "figures" / "architecture.svg").read_text(encoding="utf-8") == script["draw"]()
