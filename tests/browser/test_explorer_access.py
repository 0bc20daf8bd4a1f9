"""The explorer's page for all: contrast, the keyboard, and what a screen reader is told."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip("selenium", reason="selenium is not installed (the extra browser)")

from selenium.webdriver import ActionChains
from selenium.webdriver.common.keys import Keys

import topicloom as tl
from topicloom.reports import run

HERE = Path(__file__).parent
AXE = HERE.parents[1] / ".venv-browser/node_modules/axe-core/axe.min.js"
VIEWS = ["topics", "documents", "words", "similarity", "time", "classes", "quality", "text"]
WORDS = ["cat dog play ball kitten fish", "bank money loan credit rate stocks", "storm rain wind cloud snow sun"]
# Where a Tab key can go: a radio group, a row of tabs and a grid are one stop each.
STOPS = "button, input, select, textarea, summary, a[href], [tabindex]"


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    texts = [f"{WORDS[i % 3]} {WORDS[i % 3].split()[i % 6]}" for i in range(90)]
    corpus = tl.Corpus.from_texts(
        texts,
        language="en",
        labels=[f"class {i % 2}" for i in range(90)],
        timestamps=[f"2024-{1 + i % 9:02}-03" for i in range(90)],
    )
    model = tl.LDA(n_topics=4, epochs=2, random_state=0).fit(corpus, monitor=["topic_diversity"])
    folder = tmp_path_factory.mktemp("run") / "news"
    run.write(folder, model, corpus, model.infer(corpus), 1.0, run.RunOptions(explorer=True))
    return folder / "explorer.html"


def settle(browser, view: str) -> None:
    """Wait for a view, with a text in its field."""
    if view == "text":
        browser.run(
            "const field = document.querySelector('textarea'); field.value = 'the cat saw the bank in the storm';"
            "field.dispatchEvent(new Event('input', {bubbles: true}));"
        )
        browser.until("document.querySelector('#inferred').dataset.theta")
    if view == "topics":
        browser.run("[...document.querySelectorAll('#topic button')].find((e) => e.textContent === 'Drop').click()")
    time.sleep(0.4)


@pytest.mark.parametrize("dark", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_texts_fields_and_colours_have_enough_contrast(browser, page, dark):
    audit = (HERE / "contrast.js").read_text("utf-8")
    browser.open(page, dark=dark)
    for view in VIEWS:
        browser.view(view)
        settle(browser, view)
        n_texts, low = browser.run(audit)
        assert n_texts > 30
        assert low == [], view
    browser.run("localStorage.clear()")
    colour = browser.run("return getComputedStyle(document.documentElement).backgroundColor")
    assert (sum(map(int, colour.strip("rgb()").split(","))) < 150) == dark


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing(browser, page, width):
    if not AXE.exists():
        pytest.skip("axe-core is not installed (make .venv-browser/ready)")
    browser.open(page, width=width)
    browser.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": AXE.read_text("utf-8")})
    for view in VIEWS:
        browser.view(view)
        settle(browser, view)
        found = browser.driver.execute_async_script(
            """
            const done = arguments[0];
            const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
            axe.run(document, {resultTypes: ['violations'], runOnly: tags}).then(({violations}) =>
              done(violations.flatMap(({id, nodes}) => nodes.map(({target}) => [id, target.join(' ')]))));
            """
        )
        assert found == [], view
    browser.run("localStorage.clear()")


@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS)
def test_tab_reaches_every_control_and_shows_it(browser, page, view):
    browser.open(page, view)
    settle(browser, view)
    wanted = browser.run(
        """
        const all = [...document.querySelectorAll(arguments[0])].filter((e) => e.tabIndex >= 0 && !e.disabled &&
          e.checkVisibility({visibilityProperty: true}) && !e.closest('details:not([open]) > :not(summary)'));
        all.forEach((e, at) => (e.dataset.at = at));
        return all.length;
        """,
        STOPS,
    )
    browser.run("document.activeElement.blur(); scrollTo(0, 0)")
    seen: list[int] = []
    for _ in range(wanted):
        ActionChains(browser.driver, duration=0).send_keys(Keys.TAB).perform()
        at, visible = browser.run(
            """
            const e = document.activeElement;
            const look = getComputedStyle(e);
            const circle = e.querySelector('circle');
            const box = e.getBoundingClientRect();
            const inside = box.bottom > 0 && box.top < innerHeight;
            const outlined = look.outlineStyle !== 'none' && parseFloat(look.outlineWidth) >= 2;
            const marked = outlined || (circle && getComputedStyle(circle).strokeWidth === '5px');
            return [Number(e.dataset.at ?? -1), inside && marked];
            """
        )
        assert visible, browser.run("return document.activeElement.outerHTML.slice(0, 120)")
        seen.append(at)
    assert seen == list(range(wanted))  # in the order of the page
    browser.run("localStorage.clear()")


@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS)
def test_a_screen_reader_is_told_roles_and_names(browser, page, view):
    browser.open(page, view)
    settle(browser, view)
    browser.driver.execute_cdp_cmd("Accessibility.enable", {})
    tree = browser.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    nodes = []
    for node in tree:
        about = {each["name"]: each["value"].get("value") for each in node.get("properties", [])}
        if not node["ignored"]:
            nodes.append((node["role"]["value"], node.get("name", {}).get("value", ""), about))
    browser.driver.execute_cdp_cmd("Accessibility.disable", {})
    controls = {
        "button",
        "textbox",
        "searchbox",
        "combobox",
        "slider",
        "checkbox",
        "tab",
        "link",
        "application",
        "image",
    }
    assert [node for node in nodes if node[0] in controls and not node[1].strip()] == []
    roles = [role for role, _, _ in nodes]
    assert roles.count("main") == roles.count("tablist") == roles.count("tabpanel") == 1
    assert [name for role, name, about in nodes if role == "tab" and about.get("selected")] == [
        browser.find("[role=tab][aria-selected=true]").text
    ]
    levels = browser.run("return [...document.querySelectorAll('h1, h2, h3, h4')].map((e) => Number(e.tagName[1]))")
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert any(role == "status" for role in roles)
    if view == "documents":  # what the map shows is in a list, too
        assert sum(role == "article" for role in roles) >= 20
    if view in ("similarity", "time", "classes", "words"):
        assert "table" in roles
    browser.run("localStorage.clear()")


def test_the_next_topic_is_said(browser, page):
    browser.open(page)
    browser.find("#topic button[aria-label='Next topic']").click()
    said = browser.until("document.querySelector('.turned .hidden').textContent")
    assert said.startswith("Topic ")


def test_escape_closes_a_list_of_documents(browser, page):
    browser.open(page, "classes")
    browser.until("document.querySelector('.bars button')")
    opener = browser.find(".bars button")
    opener.send_keys(Keys.ENTER)
    browser.until("document.querySelector('#content article')")
    close = next(each for each in browser.all("#content button") if each.text.startswith("Close"))
    browser.run("arguments[0].focus()", close)
    ActionChains(browser.driver).send_keys(Keys.ESCAPE).perform()
    browser.until("!document.querySelector('#content article')")
    assert browser.run("return document.activeElement === arguments[0]", opener)


@pytest.mark.parametrize("view", ["words", "text"])
def test_names_on_a_phone_are_a_few_lines_high(browser, page, view):
    browser.open(page, view, width=390)
    settle(browser, view)
    heights = browser.until("[...document.querySelectorAll('#content td[data-topic]')].map((e) => e.offsetHeight)")
    assert heights
    assert max(heights) < 60


def test_a_finger_scrolls_over_the_map(browser, page):
    browser.open(page, "documents", width=390)
    browser.until("document.querySelector('canvas')")
    assert browser.run("return getComputedStyle(document.querySelector('canvas')).touchAction") == "pan-y"
    browser.find("button[aria-label='Zoom in']").click()
    browser.until("getComputedStyle(document.querySelector('canvas')).touchAction === 'none'")
