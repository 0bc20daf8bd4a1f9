"""A page in Chinese has what the page in English has: the same headings, tables, figures and links."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CHINESE = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.zh-CN.md"))
MODELS = [name for name in CHINESE if name.startswith("docs/models/")]
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
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


@pytest.mark.parametrize("name", MODELS)
def test_both_languages_have_the_same_examples_of_models(name: str) -> None:
    english, chinese = ([re.sub(r" *#.*", "", block) for block in BLOCK.findall(text)] for text in both(name))
    assert chinese == english


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_to_files_and_headings_that_exist(name: str) -> None:
    page = ROOT / name
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    for target, anchor in re.findall(r"\]\(([^):#]*)#?([^):]*)\)", text):
        other = page.parent / target if target else page
        assert other.exists(), target
        if anchor and other.suffix == ".md":
            assert anchor in anchors(other.read_text(encoding="utf-8")), f"{target}#{anchor}"
