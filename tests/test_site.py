"""The site has every page of the repository and every public name, in both languages."""

from __future__ import annotations

import sys
from pathlib import Path
from runpy import run_path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs" / "site"))
import sources  # noqa: E402

sys.path.pop(0)


def listed(language: str) -> list[str]:
    return [page for groups in sources.contents(language).values() for group in groups for page, _ in group.pages]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_page_of_the_repository_is_in_the_tree(language):
    files = [*ROOT.glob("docs/*.md"), *ROOT.glob("docs/*/*.md"), *ROOT.glob("benchmarks/*.md")]
    names = {path.stem for path in [*files, *ROOT.glob("docs/course/*.ipynb")] if "zh-CN" not in path.name}
    pages = listed(language)
    assert names - {"README"} <= {page.rpartition("/")[2] for page in pages}
    assert len(pages) == len(set(pages))


def test_both_languages_have_the_same_tree():
    english, chinese = ([[g.pages for g in groups] for groups in sources.contents(x).values()] for x in ("en", "zh"))
    assert [[page for page, _ in pages] for groups in english for pages in groups] == [
        [page for page, _ in pages] for groups in chinese for pages in groups
    ]


def test_every_public_name_has_a_page():
    import topicloom

    names = set(topicloom.__all__) - {"__version__"}
    pages = sources.api_names()
    assert {f"topicloom.{name}" for name in names} <= set(pages)
    assert {f"topicloom.metrics.{name}" for name in topicloom.metrics.__all__} <= set(pages)
    assert {name for name, (_, group) in pages.items() if group == "Modules"} == {
        f"topicloom.{name}" for name in sources.MODULES
    }
    assert len({page.lower() for page, _ in pages.values()}) == len(pages)


def test_links_lead_to_pages_of_the_same_language():
    writer = sources.Writer("zh", ROOT / "build" / "unused")
    text = "[docs/shares.md](shares.zh-CN.md#x) `[b](c.md)` [d](../benchmarks/best.md)\n```sh\n[e](shares.md)\n```\n"
    out = writer.relinked(text, ROOT / "docs" / "text.zh-CN.md", "text")
    assert out.split()[0] == "[](shares.md#x)"
    assert "[d](evidence/best.md)" in out
    assert "[e](shares.md)" in out
    english = writer.relinked("[a](../docs/text.md#languages)", ROOT / "benchmarks" / "best.md", "evidence/best")
    assert english == "[a](../text.md#语言)"


def test_pages_load_nothing_from_other_hosts():
    loaded = run_path(str(ROOT / "docs" / "site" / "build.py"))["LOADED"]
    assert loaded.search('<script async src="https://cdn.example/x.js">')
    assert loaded.search('<link href="//fonts.example/x.css" rel="stylesheet">')
    assert not loaded.search('<a href="https://doi.org/1">')


def test_pages_of_models_and_measurements_are_described():
    assert sources.classes_of("models/batm") == ["BATM", "GaussianBATM"]
    measured = next(group for group in sources.contents("en")["evidence"] if group.title == "Measurements")
    assert all(words for page, words in measured.pages if page != "evidence/measurements")
