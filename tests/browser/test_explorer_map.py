"""The map of documents, shares by covariates, the verdict, and links to topics, in a browser."""

from __future__ import annotations

import json
import time
from itertools import combinations
from pathlib import Path

import pytest

pytest.importorskip("selenium", reason="selenium is not installed (the extra browser)")

from selenium.webdriver import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

import topicloom as tl
from topicloom.reports.explorer import PageOptions, write_page
from topicloom.topics.view import Topics

PRESSED = "[...document.querySelectorAll('#content button[aria-pressed=true]')].map((each) => each.textContent.trim())"


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    groups = [
        "cat dog fish bird mouse",
        "bank loan money rate price",
        "rain sun snow wind storm",
        "goal team match cup",
    ]
    texts = [f"AT&amp;T {groups[i % 4]} story{i % 60}" for i in range(240)]
    corpus = tl.Corpus.from_texts(
        texts,
        language="en",
        min_df=2,
        ids=[f"doc-{i}" for i in range(240)],
        labels=["even" if i % 2 else "odd" for i in range(240)],
        covariates={
            "shop": [("north", "south", "west")[i % 3] for i in range(240)],
            "price": list(range(240)),
            "fare": [(1.889, 7.5, 25.18, 33.07, 48.26, 61.9)[i % 6] for i in range(240)],
            "stars": [1 + i % 5 for i in range(240)],
        },
    )
    model = tl.LDA(n_topics=4, method="gibbs", epochs=40, random_state=0).fit(corpus)
    path = tmp_path_factory.mktemp("map") / "page.html"
    measures = {"topic_diversity": 0.95, "document_npmi": -0.2, "active_topics": 4, "duplicate_topics": 1}
    write_page(path, Topics(model, corpus), PageOptions(title="Map"), measures)
    return path


def labels(browser) -> list[list[int]]:
    """Return the topic, the middle and the size of each label, as soon as they no longer change."""
    before = None
    while True:
        browser.until("JSON.parse(document.querySelector('canvas')?.dataset.labels ?? '[]').length")
        found = browser.find("canvas").get_attribute("data-labels")
        if found == before:
            return json.loads(found)
        before = found
        time.sleep(0.15)


def point_at_a_document(browser) -> str:
    """Move the pointer around a label until a document is under it, and return what the box says."""
    canvas = browser.find("canvas")
    _, x, y, *_ = labels(browser)[0]
    grid = sorted(
        ((dx, dy) for dx in range(-40, 41, 8) for dy in range(-24, 25, 8)), key=lambda at: abs(at[0]) + abs(at[1])
    )
    for dx, dy in grid:
        to = x - canvas.size["width"] // 2 + dx, y - canvas.size["height"] // 2 + dy
        ActionChains(browser.driver, duration=0).move_to_element_with_offset(canvas, *to).perform()
        browser.driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
        if browser.all(".tip"):
            browser.until("document.querySelector('.tip .words')")
            return browser.find(".tip").text
    raise AssertionError("no document is near the label")


def test_pointing_at_a_document_shows_its_text(browser, page):
    browser.open(page, "documents")
    said = point_at_a_document(browser).split("\n")
    number = int(said[0].removeprefix("doc-"))
    assert said[1] == ("even" if number % 2 else "odd")
    assert said[2].startswith("AT&T ")
    assert said[2].endswith(f"story{number % 60}")
    browser.find("#content input[type=search]").send_keys("loan")
    browser.until("!document.querySelector('.tip')")  # also before the pointer moves
    browser.until("document.querySelector('#content section:last-child .hint').textContent === '60 documents'")
    browser.find("#content input[type=search]").send_keys(Keys.CONTROL, "a", Keys.NULL, Keys.BACKSPACE)
    browser.until("document.querySelector('#content section:last-child .hint').textContent === '240 documents'")
    point_at_a_document(browser)
    ActionChains(browser.driver).send_keys(Keys.ESCAPE).perform()
    assert not browser.all(".tip")


def test_labels_of_topics_cover_none(browser, page):
    browser.open(page, "documents")
    found = labels(browser)
    assert sorted(topic for topic, *_ in found) == [0, 1, 2, 3]
    for (_, x, y, w, h), (_, u, v, a, b) in combinations(found, 2):
        assert abs(x - u) >= (w + a) / 2 or abs(y - v) >= (h + b) / 2
    assert all(w / 2 <= x <= browser.find("canvas").size["width"] - w / 2 for _, x, _, w, _ in found)
    assert browser.run("return document.getElementById('in-sight').textContent").count(";") == 3


def test_buttons_of_a_small_map_stand_under_it(browser, page):
    browser.open(page, "documents", width=360)
    labels(browser)
    below = "document.querySelector('.frame .tools button').getBoundingClientRect().top"
    assert browser.run(f"return {below} >= document.querySelector('canvas').getBoundingClientRect().bottom")


def test_names_on_a_map_keep_clear_of_its_buttons(browser, page):
    browser.open(page, "documents", width=660)
    tools = browser.find(".frame .tools").size
    left, bottom = browser.find("canvas").size["width"] - tools["width"], tools["height"]
    assert all(x + w / 2 <= left or y - h / 2 >= bottom for _, x, y, w, h in labels(browser))


def test_a_click_on_a_name_shows_its_topic_alone(browser, page):
    browser.open(page, "documents")
    topic, x, y, *_ = labels(browser)[0]
    canvas = browser.find("canvas")
    dx, dy = x - canvas.size["width"] // 2, y - canvas.size["height"] // 2
    ActionChains(browser.driver).move_to_element_with_offset(canvas, dx, dy).click().perform()
    browser.until(f"{PRESSED}.some((text) => text.startsWith('Only topic {topic}'))")
    assert browser.run("return location.hash").startswith(f"#documents/{topic}")


def test_a_region_lists_its_documents(browser, page):
    browser.open(page, "documents")
    labels(browser)
    canvas = browser.find("canvas")
    browser.find(".frame .tools button").click()
    half = canvas.size["width"] // 2 - 2
    chain = ActionChains(browser.driver, duration=10).move_to_element_with_offset(canvas, -half, -200).click_and_hold()
    for x, y in ((-half, 200), (0, 200), (0, -200)):
        chain.move_to_element_with_offset(canvas, x, y)
    chain.release().perform()
    browser.until(f"{PRESSED}.some((text) => text.includes('in the selection'))")
    n = browser.run(f"return {PRESSED}.find((text) => text.includes('selection'))").split()[0]
    assert 0 < int(n) < 240
    browser.until(f"document.querySelector('#content section:last-child .hint').textContent === '{n} documents'")
    canvas.send_keys(Keys.ESCAPE)
    browser.until(f"!{PRESSED}.length")
    canvas.send_keys(Keys.ENTER)  # what is in the window, by the keyboard
    browser.until(f"{PRESSED}.some((text) => text.startsWith('240 documents'))")


def test_shares_are_shown_by_a_chosen_covariate(browser, page):
    browser.open(page, "classes")
    assert browser.find("#tab-classes").text == "By group"
    grounds = "return [...document.querySelectorAll('td.shade')].map((cell) => getComputedStyle(cell).backgroundColor)"
    names = "[...document.querySelectorAll('.bars li > :first-child')].map((each) => each.textContent).join()"
    browser.until(f"{names} === 'even,odd'")
    strong = browser.run(grounds)
    chosen = Select(browser.find("#content select"))
    chosen.select_by_value("shop")
    browser.until(f"{names} === 'north,south,west'")
    # Each shop has a third of each topic: all cells are nearly white. Each class has two of the four topics.
    whites = [min(map(int, each.removeprefix("rgb(").removesuffix(")").split(","))) for each in browser.run(grounds)]
    assert min(whites) > 225
    assert min(min(map(int, each.removeprefix("rgb(").removesuffix(")").split(","))) for each in strong) < 130
    assert browser.run("return location.hash").endswith("?by=shop")
    browser.find(".bars button").click()
    listed = "[...document.querySelectorAll('#content section[aria-label$=\"shop: north\"] article')]"
    browser.until(f"{listed}.length === 5")
    assert all(
        int(each) % 3 == 0
        for each in browser.run(f"return {listed}.map((each) => /doc-(\\d+)/.exec(each.textContent)[1])")
    )
    chosen.select_by_value("price")
    browser.until("document.querySelector('#content figure svg path')")
    assert not browser.run(f"return {listed}.length")
    browser.driver.back()
    browser.until(f"{names} === 'north,south,west'")


@pytest.mark.parametrize(
    ("covariate", "numbers"),
    [("fare", "10,20,30,40,50,60"), ("price", "50,100,150,200"), ("stars", "1,2,3,4,5")],
)
def test_an_axis_of_numbers_has_round_ticks(browser, page, covariate, numbers):
    browser.open(page, f"classes?by={covariate}")
    ticks = "[...document.querySelectorAll('#content figure text:not([text-anchor=end])')]"
    browser.until(f"{ticks}.map((each) => each.textContent).join() === '{numbers}'")


def test_the_quality_of_a_run_is_summed_up(browser, page):
    browser.open(page, "quality")
    good, weak, todo = (each.text for each in browser.all("#content .verdict li"))
    assert "diversity 0.950; limit ≥ 0.8" in good
    assert "NPMI" not in good + weak  # the texts have six words
    assert "duplicate topics 1; limit ≥ 1" in weak
    assert "merge those that are alike" in todo


def test_a_link_names_a_topic_and_views_keep_their_place(browser, page):
    browser.open(page)
    browser.driver.get(f"{page.as_uri()}#topic=2")
    browser.until("document.querySelector('#topic').getAttribute('aria-label') === 'Topic 2'")
    browser.view("documents")
    browser.until("document.querySelectorAll('#content article').length > 10")
    browser.run("scrollTo(0, 900)")
    browser.until("scrollY === 900")
    browser.view("quality")
    browser.until("scrollY === 0")
    browser.driver.back()
    browser.until(
        "document.querySelector('#tab-documents').getAttribute('aria-selected') === 'true' && scrollY === 900"
    )


def test_a_missing_topic_is_said_until_another_is_chosen(browser, page):
    said = "document.querySelector('#missing[role=status]').textContent"
    browser.open(page, "view=words&topic=99")
    largest = browser.find("#topic").get_attribute("aria-label").removeprefix("Topic ")
    browser.until(f"{said} === 'There is no topic 99. The largest one is shown, topic {largest}.'")
    browser.find("button[lang=zh-CN]").click()
    browser.until(f"{said} === '没有主题 99，现显示占比最大的主题 {largest}。'")
    browser.find("button[lang=en]").click()
    browser.driver.get(f"{page.as_uri()}#topics/{(int(largest) + 1) % 4}")
    browser.until(f"{said} === ''")
    browser.driver.get(f"{page.as_uri()}#topics/-1")
    browser.until(f"{said}.startsWith('There is no topic -1.')")
    browser.find("#content tbody th button, #content tbody tr[id^=row-]").click()
    browser.until(f"{said} === ''")


def test_a_text_is_beside_the_documents_most_like_it(browser, page):
    browser.open(page, "text")
    browser.find("textarea").send_keys("the bank raised the rate of the loan and the price of money")
    browser.until("document.querySelectorAll('#content article').length === 5")
    assert all({"bank", "loan"} & set(each.text.split()) for each in browser.all("#content article"))
    browser.view("words")
    box = browser.find("#content input[type=search]")
    box.send_keys(Keys.CONTROL, "a")
    box.send_keys("storm")
    browser.until("document.querySelector('#content .lines mark')?.textContent === 'storm'")


def test_entities_in_texts_are_shown_as_characters(browser, page):
    browser.open(page, "documents")
    browser.find("#content input[type=search]").send_keys("AT&T")
    browser.until("document.querySelector('#content section:last-child .hint').textContent === '240 documents'")
    assert all("AT&T " in each.text for each in browser.all("#content article"))
    browser.open(page, "words?word=storm")
    browser.until("document.querySelector('#content .lines mark')")
    shown = [each.text.split("\n")[-1] for each in browser.all("#content .lines li")]
    assert {each.rsplit(" ", 1)[0] for each in shown} == {"AT&T rain sun snow wind storm"}
    assert {each.text for each in browser.all("#content .lines mark")} == {"storm"}


@pytest.mark.parametrize("n_unknown", [0, 3])
def test_grey_points_of_a_map_are_explained(browser, tmp_path, n_unknown):
    texts = ["cat dog fish", "bank loan money"] * 20 + ["zebra"] * n_unknown
    corpus = tl.Corpus.from_texts(texts, language="en", min_df=5)
    model = tl.LDA(n_topics=2, method="gibbs", epochs=5, random_state=0).fit(corpus)
    write_page(tmp_path / "page.html", Topics(model, corpus))
    browser.open(tmp_path / "page.html", "documents")
    browser.until("document.querySelector('#content article')")
    hints = [each.text for each in browser.all("#content .hint")]
    assert sum(each.startswith("Grey points") for each in hints) == (n_unknown > 0)
