"""A page, a page of the service and HTML for notebooks whose every field is hostile: nothing of it runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("selenium", reason="selenium is not installed (the extra browser)")
pytest.importorskip("uvicorn", reason="uvicorn is not installed (the extra serve)")

import topicloom as tl
from forks import serve
from hostile import TITLE, WORDS
from hostile_run import hostile_run
from topicloom.topics.table import Table

VIEWS = ["topics", "documents", "words", "similarity", "time", "classes", "quality", "text"]
ALIEN = "script, img, iframe, object, style, link, base, form, [onerror], [onload], [href^='javascript']"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile_run(tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="module")
def url(run: Path) -> Iterator[str]:
    process, address = serve(run)
    yield address
    process.terminate()
    process.wait(20)


@pytest.mark.parametrize("served", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_nothing_of_a_hostile_run_is_run(browser, run, url, served):
    browser.driver.get("about:blank")
    browser.logs()
    browser.driver.get(url if served else (run / "explorer.html").as_uri())
    browser.until("document.documentElement.dataset.ready")
    for view in VIEWS:
        browser.view(view)
        time.sleep(0.2)
        assert browser.run(f'return document.querySelectorAll("#app :is({ALIEN})").length') == 0, view
        shown = browser.run("return document.querySelector('#content').innerText")
        assert not set(shown) & set("\x00\x07\x1b\x9b\u202e\u2066"), view
        assert "undefined" not in shown
        assert browser.run("return document.documentElement.scrollWidth") <= 1400, view
    browser.view("documents")
    browser.find("#content input[type=search]").send_keys("onerror")
    browser.until("document.querySelector('#content').innerText.includes('<img src=x onerror=alert(2)>')")
    browser.view("text")
    text = " ".join(WORDS[:9])
    browser.run(
        "const area = document.querySelector('textarea'); area.value = arguments[0];"
        "area.dispatchEvent(new Event('input', {bubbles: true}));",
        text,
    )
    time.sleep(0.5)
    assert browser.run(f'return document.querySelectorAll("#app :is({ALIEN})").length') == 0
    assert browser.run("return document.title").startswith(TITLE[:30])
    console, asked = browser.logs()
    assert [line for line in console if "422" not in line] == []  # a model of counts cannot infer a text
    start = url if served else (run / "explorer.html").as_uri()
    assert all(each.startswith((start, "data:", "blob:")) for each in asked)


def test_html_for_notebooks_and_files_runs_nothing(browser, run, tmp_path):
    view = tl.Topics.from_run(run)
    values = [view, view.model, view.corpus, view.documents, view.topics_of(1), view.hierarchy(), view.document_table()]
    values += [view.table(), Table({word: [word] for word in WORDS}, WORDS[0])]
    html = "".join(each._repr_html_() for each in values)
    (tmp_path / "page.html").write_text(
        f"<!doctype html><meta charset=utf-8><div id=app>{html}</div>", encoding="utf-8"
    )
    browser.driver.get("about:blank")
    browser.logs()
    browser.driver.get((tmp_path / "page.html").as_uri())
    assert browser.run(f'return document.querySelectorAll("#app :is({ALIEN})").length') == 0
    assert browser.logs() == ([], {(tmp_path / "page.html").as_uri()})
