"""What the README and the pages of docs say runs as they say it, in English and Chinese, and so do the examples."""

from __future__ import annotations

import ast
import csv
import doctest
import functools
import importlib
import importlib.util
import inspect
import re
import runpy
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import topicloom
from command_line import call
from topicloom import datasets, figures, metrics, text
from topicloom.cli import COMMANDS, load_command
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
# Snippets of Chinese pages differ from the English ones in their texts.
SNIPPETS = [
    pytest.param(snippet, id=place, marks=pytest.mark.slow if "zh-CN" in place else ())
    for snippet, place in FOUND.items()
]


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_the_readme_begins_with_the_commands_that_set_everything_up(name):
    before_topics = (ROOT / name).read_text(encoding="utf-8").split("\n## ")[1]
    found = [line.split("  ")[0] for line in before_topics.splitlines() if line.startswith("make ")]
    assert found == ["make demo", "make test"]


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_python_snippets_run(snippet: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if "epochs" not in snippet:
        snippet = snippet.replace("random_state=0)", "random_state=0, epochs=2)")  # small, and otherwise as it stands
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


@pytest.mark.parametrize("page", ["README", "docs/first-steps", "docs/all-models", "docs/installing"])
def test_both_languages_name_the_same_commands_and_models(page: str) -> None:
    english, chinese = ((ROOT / f"{page}{end}").read_text(encoding="utf-8") for end in (".md", ".zh-CN.md"))
    for pattern in (r"^(?:topicloom|make|pip|python) [a-z]+\b", r"^\| `(\w+)` \|", r"models/\w+(?=[\w.-]*\.md)"):
        assert re.findall(pattern, english, re.MULTILINE) == re.findall(pattern, chinese, re.MULTILINE)


def test_the_readmes_are_short_and_have_the_same_parts() -> None:
    english, chinese = ((ROOT / name).read_text(encoding="utf-8") for name in READMES)
    assert max(text.count("\n") for text in (english, chinese)) <= 150
    assert [level for level, _ in headings(chinese)] == [level for level, _ in headings(english)]
    assert len(cells(chinese)) == len(cells(english))
    one, other = ([each for each in linked(text) if each != "README.md"] for text in (english, chinese))
    assert one == other


def test_badges_say_what_is_so() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    given = "\n".join(project["project"]["classifiers"])
    pythons = " | ".join(re.findall(r":: (3\.\d+)$", given, re.MULTILINE))
    licence, strict = project["project"]["license"], project["tool"]["mypy"]["strict"]
    said = {"version": topicloom.__version__, "python": pythons, "licence": licence, "types": "mypy strict" * strict}
    for name, words in said.items():
        badge = (ROOT / f"docs/figures/badges/{name}.svg").read_text(encoding="utf-8")
        assert f"<title>{name}: {words}</title>" in badge


@pytest.mark.parametrize("file", ["docs/published.md", "docs/published.zh-CN.md", "CITATION.cff"])
def test_citations_name_the_version(file: str) -> None:
    versions = re.findall(r"^ *version *[=:] *\{?([\d.]+)", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    assert versions == [topicloom.__version__]


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


def commands_of(text: str) -> list[str]:
    """Return the commands of a page, in its blocks and between backquotes."""
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
    return re.findall(r"^topicloom ([a-z].*?)(?: +#.*)?$", "\n".join([*blocks, *spans]), re.MULTILINE)


def test_commands_of_all_pages_exist_with_their_options() -> None:
    known = {
        name: {option for each in load_command(name).params for option in (*each.opts, *each.secondary_opts)}
        for name in COMMANDS
    }
    found = [(page, line) for page in PAGES for line in commands_of((ROOT / page).read_text(encoding="utf-8"))]
    assert len(found) > 400
    for page, line in found:
        name, *words = re.sub(r"'[^']*'|\"[^\"]*\"", "TEXT", line).split()
        options = {word.split("=")[0] for word in words if re.match("--[a-z]", word)}
        assert name in known, f"{page}: {line}"
        assert options <= {*known[name], "--help"}, f"{page}: {line}"


@pytest.mark.parametrize("target", ["setup", "demo", "test", "check", "bench"])
def test_make_knows_the_targets(target: str) -> None:
    done = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


@functools.cache
def words_of_the_code() -> set[str]:
    return set(re.findall(r"\w+", "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "src").rglob("*.py"))))


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "models").glob("*.md")), ids=lambda page: page.name)
def test_pages_name_what_the_code_has(page: Path) -> None:
    """A name that was changed in the code only is found here."""
    known = words_of_the_code()
    named = re.findall(r"`(?:\w+\.)*([A-Za-z_]+)`", page.read_text(encoding="utf-8"))
    assert set(named) <= known


CHINESE_GROUPS = {
    "主要": "Main",
    "文本": "Text",
    "向量": "Vectors",
    "结构": "Shape",
    "先验": "Prior",
    "训练": "Training",
    "坍缩": "Collapse",
    "运行": "Run",
}
GROUP_NAMES = CHINESE_GROUPS | {group.lower(): group for group in CHINESE_GROUPS.values()}
MODELS = dict(
    re.findall(r"^\| `(\w+)` \|.*\(models/(\w+)\.md\) \|$", (ROOT / "docs/all-models.md").read_text("utf-8"), re.M)
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


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "models").glob("*.md")), ids=lambda page: page.name)
def test_pages_of_models_have_the_same_parts(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    parts = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    use, limits = ("何时使用", "局限") if ".zh-CN" in page.name else ("When to use", "Limits")
    assert next(iter(parts)) == use
    assert limits in parts
    assert "benchmarks/" in parts[use]  # a figure stands behind the advice
    assert re.search(r"\$\$|softmax|exp\(", text)
    assert re.search(r"^\| (symbol|符号) \|", text, re.MULTILINE)
    files = re.findall(r"`(src/topicloom/[^`]+)`", text)
    assert files
    assert all((ROOT / file).exists() for file in files)


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


# A page in Chinese has what the page in English has: the same headings, tables, figures and links.

CHINESE = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.zh-CN.md"))
CHINESE_MODELS = [name for name in CHINESE if name.startswith("docs/models/")]
ALL_PAGES = sorted(path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
FIGURES = re.compile(r"[-+\d., ;/%±e]*\d[-+\d., ;/%±e]*")  # a cell that has nothing but numbers


def both(name: str) -> tuple[str, str]:
    """Return the English and the Chinese text of a page, given the name of the Chinese one."""
    english, chinese = ((ROOT / each).read_text(encoding="utf-8") for each in (name.replace(".zh-CN", ""), name))
    return english, chinese


def headings(text: str) -> list[tuple[str, str]]:
    """Return the level (`#` to `######`) and the words of each heading."""
    return re.findall(r"^(#+) (.+)$", BLOCK.sub("", text), re.MULTILINE)


def cells(text: str) -> list[list[str]]:
    """Return the cells of each row of the tables: those with figures as they are, and all others as "words"."""
    same_marks = BLOCK.sub("", text).replace("，", ", ").replace(" %", "%")
    rows = [re.split(r"(?<!\\)\|", row) for row in re.findall(r"^\|(.*)\|$", same_marks, re.MULTILINE)]
    return [[cell.strip() if FIGURES.fullmatch(cell) else "words" for cell in row] for row in rows]


def linked(text: str) -> list[str]:
    """Return the pages that a page links, without the language, and without the places in them."""
    targets = re.findall(r"\[([^\]]*)\]\(([^)#]+)[^)]*\)", BLOCK.sub("", text))
    return sorted(
        target.replace(".zh-CN", "")
        for label, target in targets
        if label not in ("English", "中文", "英文版") and not target.endswith(".png")  # pictures have words in them
    )


def anchors(text: str) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    words = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for _, heading in headings(text)]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in words}


@pytest.mark.parametrize("name", CHINESE)
def test_each_page_leads_to_the_other_language(name: str) -> None:
    page = Path(name).name
    english, chinese = (text.splitlines()[2] for text in both(name))
    assert english.startswith(f"[中文]({page})")
    assert chinese.startswith(f"[English]({page.replace('.zh-CN', '')})")


@pytest.mark.parametrize("name", CHINESE)
def test_both_languages_have_the_same_headings_tables_and_links(name: str) -> None:
    english, chinese = both(name)
    assert [level for level, _ in headings(chinese)] == [level for level, _ in headings(english)]
    assert cells(chinese) == cells(english)
    assert linked(chinese) == linked(english)


def test_rows_of_tables_have_as_many_cells_as_their_heading() -> None:
    """A vertical line divides cells, also in code, if no backslash stands before it."""
    found = 0
    for name in ALL_PAGES:
        text = BLOCK.sub("", (ROOT / name).read_text(encoding="utf-8"))
        for table in re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE):
            sizes = {row: len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}
            n_cells = next(iter(sizes.values()))
            assert {row for row, n in sizes.items() if n != n_cells} == set(), name
            found += 1
    assert found > 300


@pytest.mark.parametrize("name", CHINESE_MODELS)
def test_both_languages_have_the_same_examples_of_models(name: str) -> None:
    english, chinese = ([re.sub(r" *#.*", "", block) for block in BLOCK.findall(text)] for text in both(name))
    assert chinese == english


@pytest.mark.parametrize("name", ALL_PAGES)
def test_links_lead_to_files_and_headings_that_exist(name: str) -> None:
    page = ROOT / name
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    for target, anchor in re.findall(r"\]\(([^):#]*)#?([^):]*)\)", text):
        other = page.parent / target if target else page
        assert other.exists(), target
        if anchor and other.suffix == ".md":
            assert anchor in anchors(other.read_text(encoding="utf-8")), f"{target}#{anchor}"


# The stories of the documentation: every command in them runs, on a small part of the files.

TOOLS = runpy.run_path(str(ROOT / "examples" / "screenshots" / "stories.py"))
STORIES = TOOLS["PAGES"]

SUBJECTS = {
    "business": "bank profit share market interest rate growth company deal sale price firm economy budget",
    "politics": "election party minister vote labour tory bill plan campaign leader government policy lord",
    "sport": "match player win goal club season team coach final champion league title cup game",
    "entertainment": "film music award star song band actor director album prize singer festival show",
    "tech": "phone software network computer virus user internet mobile search device site broadband",
}
TITLES = {
    "高考": "高考 考生 录取 志愿 分数线 高校 报名 招生 北大 考试",
    "楼盘": "开盘 均价 别墅 精装 现房 房价 楼市 平米 房源 公寓",
    "球赛": "皇马 曼联 国米 主帅 联赛 冠军 湖人 火箭 球迷 进球",
    "股市": "基金 股市 反弹 大盘 震荡 公司 银行 上市 投资 收益",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The two files that readers bring, drawn at random: the real ones are not part of the package."""
    place, random = tmp_path_factory.mktemp("stories"), np.random.default_rng(0)

    def draw(subjects: dict[str, str], n: int, length: int, join: str) -> list[tuple[str, str]]:
        kinds = [str(random.choice(list(subjects))) for _ in range(n)]
        return [(kind, join.join(random.choice(subjects[kind].split(), length))) for kind in kinds]

    lines = [f"{text}\ttrain\t{section}" for section, text in draw(SUBJECTS, 400, 20, " ")]
    (place / "corpus.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    titles = [text for _, text in draw(TITLES, 700, 5, "")]
    (place / "cnews10k.txt").write_text("\n".join(titles) + "\n", encoding="utf-8")
    return place


@pytest.mark.parametrize("page", STORIES)
def test_every_command_of_a_story_runs(page: str, folder: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(folder)
    for step in TOOLS["steps"](ROOT / "docs" / f"{page}.md"):
        for command in step.commands:
            run(command)
    written = "news.html" if page == "story-news" else "june.html"
    assert (folder / written).stat().st_size > 100_000
    table = "june.csv" if page == "story-news" else "june-topics.csv"
    with (folder / table).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {"topic_name", "topic_0", "text"} <= set(rows[0])
    assert any(row["topic_name"] for row in rows)


def run(command: str) -> None:
    """Run a command of a page: small, but otherwise as it stands there."""
    words = shlex.split(command)
    if words[0] == "topicloom":
        fast = ["--epochs", "3", "--device", "cpu"] if words[1] == "train" else []
        result = call(*words[1:], *fast, *(["--overwrite"] if "--out" in words else []))
        assert result.exit_code == 0, f"{command}\n{result.output}"
    elif words[0] == "python":
        runpy.run_path(str(ROOT / words[1]))["main"](*words[2:])
    else:  # head and tail, of a file with fewer lines
        name, number = re.search(r"([+\d]+) \S+ > (\S+)", command).group(2, 1)
        lines = Path("cnews10k.txt").read_text(encoding="utf-8").splitlines(keepends=True)
        assert words[0] == ("tail" if number.startswith("+") else "head")
        part = lines[500:] if number == "+7001" else lines[:500]
        Path(name).write_text("".join(part), encoding="utf-8")


@pytest.mark.parametrize("page", STORIES)
def test_both_languages_have_the_same_commands_and_output(page: str) -> None:
    english, chinese = (TOOLS["steps"](ROOT / "docs" / f"{page}{language}.md") for language in ("", ".zh-CN"))
    assert [step.commands for step in english] == [step.commands for step in chinese]
    assert [step.shown for step in english] == [step.shown for step in chinese]


def test_lines_that_no_command_printed_are_found() -> None:
    assert TOOLS["missing"](["a  ", "b"], "x\na\n") == ["b"]


def test_invented_dates_are_those_that_the_page_says(folder: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(folder)
    parts = runpy.run_path(str(ROOT / "examples" / "stories" / "date_articles.py"))["main"]("corpus.tsv")
    rows = [row for part in parts for row in csv.DictReader(part.open(encoding="utf-8", newline=""))]
    assert len(rows) == 400
    early = {name: np.mean([row["date"] < "2024-04" for row in rows if row["section"] == name]) for name in SUBJECTS}
    assert early["entertainment"] > 0.6
    assert early["politics"] < 0.4
    assert all(0.35 < early[name] < 0.65 for name in ("business", "sport", "tech"))


# Every public class and function has an example, and all examples of the package give what they show.

PACKAGE = Path(topicloom.__file__).parent
WITH_EXAMPLES = [
    ".".join(("topicloom", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    for path in sorted(PACKAGE.rglob("*.py"))
    if "    >>> " in path.read_text(encoding="utf-8")
]


class _Examples(doctest.DocTestFinder):
    """It also finds the examples of cached properties, as Python does from 3.13 on."""

    def _find(self, tests, obj, name, module, source_lines, globs, seen):
        super()._find(tests, obj, name, module, source_lines, globs, seen)
        if isinstance(obj, type):
            found = {test.name for test in tests}
            for key, value in vars(obj).items():
                if isinstance(value, functools.cached_property) and f"{name}.{key}" not in found:
                    tests += filter(None, [self._get_test(value.func, f"{name}.{key}", module, globs, source_lines)])


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_examples_give_what_they_show(module, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for each in _Examples().find(importlib.import_module(module)):
        runner.run(each)
    failed, tried = runner.summarize()
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


# Every example runs, offline, at toy size.

# Those that draw screenshots need a browser.
EXAMPLES = [
    path for path in sorted((Path(__file__).parent.parent / "examples").glob("*.py")) if "screenshots" not in path.stem
]


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=pytest.mark.slow if path.stem == "figures" else ())  # draws dozens
        for path in EXAMPLES
    ],
)
def test_example_runs(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert len(module.main(epochs=2)) > 1
    assert capsys.readouterr().out
