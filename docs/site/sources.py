"""Write the sources of the site: the pages of the repository, with their links, and the pages that are generated.

Both languages have the same pages. A page without a Chinese version is in the Chinese tree in English.

    python docs/site/sources.py en build/site/sources/en
"""

from __future__ import annotations

import ast
import json
import os
import posixpath
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = {"en": "", "zh": ".zh-CN"}  # what the names of files end with, before .md and .ipynb
SECTIONS = ("learn", "how-to", "models", "reference", "evidence", "project")
# The section for each heading of docs/README.md; any other heading belongs to "how-to", and these two list no pages.
PLACES = {"First steps": "learn", "Lab notes": "evidence", "Trust": "evidence"}
TERMS = ("Terms and symbols", "Measures in tables")
TITLES = {
    "learn": ("Learn", "学习"),
    "how-to": ("How to", "操作指南"),
    "models": ("Models", "模型"),
    "reference": ("Reference", "参考"),
    "evidence": ("Evidence", "依据"),
    "project": ("Project", "项目"),
}
ABOUT = {
    "learn": (
        "Begin here: the first minute, three stories with real output, and a course that explains the models.",
        "从这里开始：第一分钟、三个有真实输出的故事，以及讲解模型的课程。",
    ),
    "how-to": ("One task on each page.", "每页解决一个任务。"),
    "models": (
        "One page each: when to use it, equations, a table of symbols and names in the code, settings and limits.",
        "每个模型有一页：何时使用、公式、从符号到代码名称的对照表、设置和局限。",
    ),
    "reference": (
        "Every public class and function, and every command, with types, shapes, errors, examples and the source.",
        "全部公开的类、函数和命令：类型、形状、错误、示例和源代码。说明取自代码，因此是英文。",
    ),
    "evidence": (
        "What topicloom promises, how it is tested, and every measurement with the command that repeats it.",
        "topicloom 的承诺、检验的方法，以及全部测量和重复它们的命令。各项测量只有英文。",
    ),
    "project": ("Changes, contributing, support and security.", "变更、参与开发、求助和安全。这些页只有英文。"),
}
GROUPS = {  # of the reference, by the module that the name comes from; the first that fits
    r"\.(corpus|embeddings)": ("Corpora and word vectors", "语料和词向量"),
    r"\.models\.(base|neural|autoencoders|etm)": ("Base classes of models", "模型的基类"),
    r"\.models": ("Models", "模型"),
    r"\.(evaluation|experiments)": ("Evaluation and comparison", "评价和比较"),
    r"\.(topics|reports)": ("Topics and documents", "主题和文档"),
    r"\.training": ("Training", "训练"),
    r"\.errors": ("Errors", "错误"),
    r"": ("Modules", "模块"),
}
MODULES = {  # whose public names have pages of their own
    "datasets": "datasets.py",
    "distributed": "distributed.py",
    "figures": "reports/figures/__init__.py",
    "metrics": "metrics/__init__.py",
    "text": "text/__init__.py",
}
WORDS = {
    "page": ("page", "页面"),
    "for": ("what it is for", "用途"),
    "english": ("", ":::{note}\n本页只有英文。\n:::\n"),
    "quick": ("Quick start", "快速入门"),
    "quickly": ("installing, the first run, and the first lines of Python", "安装、第一次训练和最初的几行 Python"),
    "course": ("The course", "课程"),
    "models": ("The models", "各个模型"),
    "measured": ("Measurements", "测量"),
    "every": ("a table of all models, and the one to begin with", "所有模型的一览表，以及从哪个开始"),
    "code": ("Programs", "示例程序"),
    "cli": ("The command line", "命令行"),
    "class": ("In the reference, with all settings explained: ", "参考文档（说明全部设置）："),
    "terms": ("Terms and lists of pages", "术语和页面列表"),
}
RENAMED = {"readme": "quick", "reference/terms": "terms"}  # pages whose titles say little outside the repository
# Files of these kinds are copied to the site if a page links to them; other files are not part of it.
COPIED = {".png", ".svg", ".jpg", ".gif", ".csv", ".txt", ".yaml", ".json", ".toml"}
LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^)\s]+)\)")
CHINESE = r"[\u3000-\u303f\u3400-\u9fff\uff00-\uffef“”‘’]"
FENCE = re.compile(r"^ *(`{3,}|~{3,}).*?^ *\1 *$", re.MULTILINE | re.DOTALL)


def say(words: tuple[str, str], language: str) -> str:
    return words[language == "zh"]


@dataclass
class Group:
    """Pages with one heading in a section: the name of each, and what it is for."""

    title: str
    pages: list[tuple[str, str]] = field(default_factory=list)


# The names of pages.


@cache
def page_names() -> dict[str, str]:
    """Return the name on the site of each page in English, by its path in the repository."""
    names = {"README.md": "readme", "docs/README.md": "reference/terms", "docs/site/index.md": "index"}
    for kind in ("md", "ipynb"):
        for path in sorted((ROOT / "docs").rglob(f"*.{kind}")):
            name = path.relative_to(ROOT).as_posix()
            if not name.startswith("docs/site/"):
                names.setdefault(name, name.removeprefix("docs/").removesuffix(f".{kind}"))
    names |= {f"benchmarks/{path.name}": f"evidence/{path.stem}" for path in sorted((ROOT / "benchmarks").glob("*.md"))}
    names["benchmarks/README.md"] = "evidence/measurements"
    names |= {path.name: f"project/{path.stem.lower()}" for path in sorted(ROOT.glob("*.md")) if path.stem != "README"}
    names |= {f"examples/{path.name}": f"examples/{path.stem}" for path in sorted((ROOT / "examples").glob("*.py"))}
    names["tests/install/results.md"] = "evidence/install"
    return {path: name for path, name in names.items() if LANGUAGES["zh"] not in path and (ROOT / path).exists()}


def source_of(path: str, language: str) -> Path:
    """Return the file of a page in a language, or in English if there is no other."""
    root, end = posixpath.splitext(path)
    own = ROOT / f"{root}{LANGUAGES[language]}{end}"
    return own if own.exists() else ROOT / path


@cache
def api_names() -> dict[str, tuple[str, str]]:
    """Return the page and the group of each public name, such as topicloom.metrics.c_v."""
    import topicloom

    found: dict[str, tuple[str, str]] = {}
    taken: set[str] = set()

    def add(name: str, folder: str, group: str) -> None:
        page = f"reference/{folder}{name.rpartition('.')[2]}"
        page += "-function" if page.lower() in taken else ""  # where case does not count, update would be Update
        taken.add(page.lower())
        found[name] = (page, group)

    for name, module in sorted(topicloom._MODULES.items(), key=lambda each: (each[0].lower(), each[0])):
        kind = "" if name in MODULES else next(each for each in GROUPS if re.match(each, module))
        group = GROUPS[kind][0]
        add(f"topicloom.{name}", "", group)
    for module, file in MODULES.items():
        found[f"topicloom.{module}"] = (f"reference/{module}/index", GROUPS[""][0])
        for name in public_names(ROOT / "src" / "topicloom" / file):
            add(f"topicloom.{module}.{name}", f"{module}/", f"topicloom.{module}")
    return found


def public_names(path: Path) -> list[str]:
    """Return the names in `__all__` of a module, or its public functions and classes."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return sorted(ast.literal_eval(node.value), key=str.lower)
    kinds = (ast.FunctionDef, ast.ClassDef)
    return [node.name for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")]


def commands() -> dict[str, str]:
    from topicloom.cli import COMMANDS

    return {name: entry.summary for name, entry in COMMANDS.items()}


# What the sections contain.


def contents(language: str) -> dict[str, list[Group]]:
    """Return the groups of pages of each section."""
    names, groups = page_names(), {section: [] for section in SECTIONS}
    placed: set[str] = set()

    def add(section: str, title: str, pages: list[tuple[str, str]]) -> None:
        fresh = [(name, words) for name, words in pages if name not in placed]
        placed.update(name for name, _ in fresh)
        if fresh:
            groups[section].append(Group(title, fresh))

    placed.update(name for name in names.values() if name.startswith(("project/", "models/", "examples/")))
    placed.update(("reference/terms", "evidence/measurements", "index", "all-models"))
    for heading, title, rows in listed(language):
        add(PLACES.get(heading, "how-to"), title, rows)
    placed -= {name for name in names.values() if name.startswith(("project/", "models/", "examples/"))}
    placed -= {"reference/terms", "evidence/measurements"}

    def all_in(folder: str, first: str = "") -> list[tuple[str, str]]:
        inside = [name for name in names.values() if posixpath.dirname(name) == folder]
        return [(name, "") for name in sorted(inside, key=lambda each: (each != first, each))]

    add("learn", say(WORDS["course"], language), all_in("course"))
    groups["learn"][0].pages.insert(0, ("readme", say(WORDS["quickly"], language)))
    placed.add("readme")
    add("learn", say(WORDS["code"], language), all_in("examples", "examples/quickstart"))
    every = say(WORDS["every"], language)
    about = summaries(language)
    own = [(name, about.get(name, "")) for name, _ in all_in("models", "models/loom")]
    models = Group(say(WORDS["models"], language), [("all-models", every), *own])
    groups["models"].insert(0, models)
    placed.update(name for name, _ in models.pages)
    for title, _ in GROUPS.values():
        group = [(page, "") for page, its in api_names().values() if its == title]
        add("reference", say(next(both for both in GROUPS.values() if both[0] == title), language), group)
    lines = [("reference/cli/index", "")]
    groups["reference"].insert(0, Group(say(WORDS["terms"], language), [("reference/terms", "")]))
    groups["reference"].insert(0, Group(say(WORDS["cli"], language), lines))
    placed.add("reference/terms")
    pages = [name for name, _ in all_in("evidence", "evidence/measurements")]
    first = [page for page in ("evidence/measurements", *measurements()) if page in pages]
    rest = [page for page in pages if page not in first]
    about = measurements() if language == "en" else {}  # these pages are in English
    add("evidence", say(WORDS["measured"], language), [(name, about.get(name, "")) for name in first + rest])
    add("project", say(TITLES["project"], language), all_in("project"))
    rest = [(name, "") for name in names.values() if name not in placed | {"index"}]
    add("how-to", say(TITLES["how-to"], language), rest)
    return groups


def listed(language: str) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """Yield the English heading, the heading, and the pages of each table in docs/README.md."""
    parts = {
        each: re.split(r"^## ", source_of("docs/README.md", each).read_text("utf-8"), flags=re.M)[1:]
        for each in LANGUAGES
    }
    for english, own in zip(parts["en"], parts[language], strict=True):
        heading = english.split("\n", 1)[0]
        rows = []
        for cell, words in re.findall(r"^\| (.*?\]\(.*?\)) \| (.*) \|$", own, re.MULTILINE):
            for _, target in LINK.findall(cell):
                name = name_of(target, "docs")
                if name and not target.startswith("../README"):
                    rows.append((name, words))
        if heading not in TERMS:
            yield heading, own.split("\n", 1)[0], rows


def summaries(language: str) -> dict[str, str]:
    """Return what each page of a model is about: its first row in the table of all models."""
    text = source_of("docs/all-models.md", language).read_text("utf-8")
    rows = re.findall(r"^\| `\w+` \| (.*) \| \w \| \[.*?\]\((.*?)\) \|$", text, re.MULTILINE)
    return {page: words for words, target in reversed(rows) if (page := name_of(target, "docs"))}


@cache
def measurements() -> dict[str, str]:
    """Return what each page of a measurement is about: the words before its link in benchmarks/README.md."""
    text = (ROOT / "benchmarks" / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| .* \| ([^\[|]*): \[\w+\.md\]\(([\w./]+\.md)\)", text, re.MULTILINE)
    return {page: words for words, target in rows if (page := name_of(target, "benchmarks"))}


def classes_of(page: str) -> list[str]:
    """Return the models that a page describes."""
    text = (ROOT / "docs" / "all-models.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \|.*\(models/(\w+)\.md\) \|$", text, re.MULTILINE)
    return [name for name, its in rows if f"models/{its}" == page]


def name_of(target: str, folder: str) -> str | None:
    """Return the page that a link from a file in a folder of the repository leads to."""
    path = posixpath.normpath(posixpath.join(folder, target.partition("#")[0])).replace(LANGUAGES["zh"], "")
    return page_names().get(path)


# Writing.


class Writer:
    """Writes the sources of one language; files whose text has not changed keep their time."""

    def __init__(self, language: str, out: Path) -> None:
        self.language, self.out = language, out
        self.written: set[Path] = set()

    def write(self, name: str, text: str) -> None:
        path = self.out / name
        self.written.add(path)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def copy(self, source: Path, name: str) -> None:
        path = self.out / name
        self.written.add(path)
        if not path.exists() or path.read_bytes() != source.read_bytes():
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, path)

    def finish(self) -> None:
        """Remove what an earlier build wrote and this one did not."""
        for path in self.out.rglob("*"):
            if path.is_file() and path not in self.written:
                path.unlink()

    def relinked(self, text: str, source: Path, name: str) -> str:
        """Return Markdown whose links lead to the pages of the site, and copy the files that it shows.

        Args:
            text: the Markdown.
            source: the file that it is from.
            name: the name of its page.
        """
        folder, here = source.parent.relative_to(ROOT).as_posix(), posixpath.dirname(name) or "."

        def link(found: re.Match[str]) -> str:
            label, target = found.groups()
            label = label[:2] + LINK.sub(link, label[2:])  # a picture that is a link
            if re.match(r"[a-z]+:|#", target):
                return found[0]
            place, _, anchor = target.partition("#")
            path = ROOT / posixpath.normpath(posixpath.join(folder, place))
            page = name_of(target, folder)
            if page is not None:
                anchor = self.anchor(page, anchor)
                label = "[]" if re.fullmatch(r"\[[\w./-]+\.md\]", label) else label  # Sphinx puts the title there
                end = ".ipynb" if path.suffix == ".ipynb" else ".md"
                return f"{label}({posixpath.relpath(page, here)}{end}{'#' + anchor if anchor else ''})"
            if path.is_file() and path.suffix in COPIED:
                copied = "files/" + path.relative_to(ROOT).as_posix()
                self.copy(path, copied)
                return f"{label}({posixpath.relpath(copied, here)})"
            return label[1:-1]  # a folder or a program of the repository, which is not part of the site

        return outside_code(text, lambda part: LINK.sub(link, joined(part) if self.language == "zh" else part))

    def anchor(self, page: str, anchor: str) -> str:
        """Return the anchor of a heading in this language, given that in English or in this language."""
        path = next(path for path, name in page_names().items() if name == page)
        english, own = (anchors(source_of(path, language)) for language in ("en", self.language))
        return own[english.index(anchor)] if anchor not in own and anchor in english else anchor

    def page(self, path: str, name: str) -> None:
        """Write a page of the repository."""
        source = source_of(path, self.language)
        foreign = self.language != "en" and source == ROOT / path
        note = say(WORDS["english"], self.language) if foreign else ""
        if source.suffix == ".py":
            code = source.read_text(encoding="utf-8")
            about = (ast.get_docstring(ast.parse(code)) or "").split("\n\n")[0].replace("\n", " ")
            self.write(f"{name}.md", f"# {source.name}\n\n{note}\n{about}\n\n```python\n{code}```\n")
        elif source.suffix == ".ipynb":
            notebook = json.loads(source.read_text(encoding="utf-8"))
            for cell in notebook["cells"]:
                if cell["cell_type"] == "markdown":
                    text = "".join(cell["source"])
                    cell["source"] = self.relinked(without_switch(text), source, name).splitlines(keepends=True)
            self.write(f"{name}.ipynb", json.dumps(notebook, ensure_ascii=False, indent=1))
        else:
            text = without_switch(source.read_text(encoding="utf-8"))
            if note:
                text = re.sub(r"\A(# .*\n)", rf"\1\n{note}\n", text)
            text = self.relinked(text, source, name)
            text = outside_code(text, lambda part: part.replace(" ± ", "\u00a0±\u00a0"))  # on one line in narrow cells
            if models := classes_of(name):
                pages = [f"{{doc}}`{each} </{api_names()[f'topicloom.{each}'][0]}>`" for each in models]
                links = say((", ", "、"), self.language).join(pages)
                text = text.replace("\n## ", f"\n{say(WORDS['class'], self.language)}{links}\n\n## ", 1)
            if name in RENAMED:
                text = re.sub(r"\A# .*", f"# {say(WORDS[RENAMED[name]], self.language)}", text)
            if name == "index":
                sections = "".join(f"{section}/index\n" for section in SECTIONS)
                text += f"\n```{{toctree}}\n:hidden:\n\n{sections}```\n"
            self.write(f"{name}.md", text)

    def section(self, section: str, groups: list[Group]) -> None:
        """Write the page of a section: a table for each group, and the tree of its pages."""
        here, lines = (
            f"{section}/index",
            [f"# {say(TITLES[section], self.language)}", "", say(ABOUT[section], self.language)],
        )
        for group in groups:
            about = any(words for _, words in group.pages)
            lines += ["", f"## {group.title}", ""]
            if about:
                lines += [f"| {say(WORDS['page'], self.language)} | {say(WORDS['for'], self.language)} |", "|---|---|"]
            for page, words in group.pages:
                words = self.relinked(words, ROOT / "docs" / "README.md", here)
                own = f"{say(WORDS['quick'], self.language)} </readme>" if page == "readme" else f"/{page}"
                link = f"{{doc}}`{own}`"
                lines.append(f"| {link} | {words} |" if about else f"- {link}")
            lines += ["", "```{toctree}", ":hidden:", f":caption: {group.title}", ""]
            quick = say(WORDS["quick"], self.language)
            lines += [f"{quick} </readme>" if page == "readme" else f"/{page}" for page, _ in group.pages]
            lines.append("```")
        self.write(f"{here}.md", "\n".join(lines) + "\n")


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """Return Markdown in which all but the fenced blocks of code is changed."""
    parts, end = [], 0
    for block in FENCE.finditer(text):
        directive = re.match(r" *(`{3,}|:{3,})\{", block[0])
        parts += [change(text[end : block.start()]), change(block[0]) if directive else block[0]]
        end = block.end()
    return "".join([*parts, change(text[end:])])


@cache
def anchors(path: Path) -> list[str]:
    """Return the anchor of each heading of a page, as GitHub and the site name it."""
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    words = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", each) for each in re.findall(r"^#+ (.+)$", text, re.MULTILINE)]
    return [re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in words]


def joined(text: str) -> str:
    """Return Markdown in which Chinese lines are joined: at the end of a line, a browser would show a blank."""
    lines: list[str] = []
    for line in text.split("\n"):
        before = lines[-1] if lines else ""
        if re.match(CHINESE, line) and re.search(f"{CHINESE}$", before) and not re.match(r"[#|]|:::", before):
            lines[-1] += line
        else:
            lines.append(line)
    return "\n".join(lines)


def without_switch(text: str) -> str:
    """Return Markdown without the line that leads to the page in the other language; the site has its own switch."""
    return re.sub(r"^\[(?:中文(?:说明)?|English)\]\([^)]*\)[^\n]*\n+", "", text, count=1, flags=re.MULTILINE)


def write(language: str, out: Path) -> None:
    """Write the sources of one language."""
    from reference import write_commands, write_reference

    writer = Writer(language, out)
    for path, name in page_names().items():
        writer.page(path, name)
    for section, groups in contents(language).items():
        writer.section(section, groups)
    write_reference(writer)
    write_commands(writer)
    writer.finish()


if __name__ == "__main__":
    write(sys.argv[1], Path(sys.argv[2]))
    if os.environ.get("SITE_VERBOSE"):
        print(*page_names().items(), sep="\n")
