"""The explorer's page as it is used: two tabs, the back button, words in a search, paper, and colours of the system."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("selenium", reason="selenium is not installed (the extra browser)")

from selenium.webdriver.common.keys import Keys

import topicloom as tl
from topicloom.reports.explorer import PageOptions, write_page
from topicloom.topics.view import Topics

LONG = "w" + "ordwithoutspaces" * 6


@pytest.fixture(scope="module")
def topics() -> Topics:
    texts = ["art museum painting", "party election vote", "Art, <i>art</i> and party politics", f"start vote {LONG}"]
    labels = ["museums", f"a class with a name that is very long, and {LONG}"] * 40
    corpus = tl.Corpus.from_texts(texts * 20, language="en", min_df=1, labels=labels)
    return Topics(tl.LDA(n_topics=3, epochs=2, random_state=0).fit(corpus), corpus)


@pytest.fixture(scope="module")
def page(topics, tmp_path_factory):
    path = tmp_path_factory.mktemp("uses") / "page.html"
    write_page(path, topics)
    return path


def media(browser, **features: str) -> None:
    """Emulate a medium (`media`), or features of one."""
    kind = features.pop("media", "screen")
    found = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": kind, "features": found})


def search(browser, text: str) -> str:
    """Return how many documents a search finds."""
    browser.run(
        "const field = document.querySelector('#content input[type=search]'); field.value = arguments[0];"
        "field.dispatchEvent(new Event('input', {bubbles: true}));",
        text,
    )
    return found(browser, text)


def found(browser, text: str) -> str:
    browser.until(f"document.querySelector('#content input[type=search]').value === {text!r}")
    browser.driver.execute_async_script("setTimeout(arguments[0], 600)")
    return str(browser.find("#content section:last-of-type [role=status]").text)


def test_documents_with_a_word_are_those_of_python(browser, page, topics):
    browser.open(page, "words")
    browser.until("document.querySelector('#content [role=status]').textContent.includes('times')")
    field = browser.find("#content input[type=search]")
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(Keys.NULL, "art")
    browser.until("document.querySelector('#content [role=status]').textContent.startsWith('60 times')")
    next(each for each in browser.all("#content button") if each.text == "Documents with this word").click()
    column = topics.model.vocabulary_.index("art")
    assert found(browser, '"art"') == f"{(topics.corpus.counts[:, [column]] > 0).sum()} documents" == "40 documents"
    assert search(browser, "art") == "80 documents"  # without quotation marks, in "start" and in "party" as well
    assert search(browser, '“Party Politics"') == "20 documents"
    assert search(browser, '"politics party"') == "0 documents"
    assert search(browser, '"art" painting') == "20 documents"
    assert search(browser, '"museums"') == "40 documents"  # a class
    assert browser.logs()[0] == []


def test_no_documents_with_a_word_are_offered_without_texts(browser, topics, tmp_path):
    write_page(tmp_path / "page.html", topics, PageOptions(texts=False))
    browser.open(tmp_path / "page.html", "words")
    browser.until("document.querySelector('#content [role=status]').textContent.includes('times')")
    assert "Documents with this word" not in browser.find("#content").text


def test_two_tabs_have_the_same_edits(browser, page):
    browser.open(page)
    browser.run("localStorage.clear()")
    browser.open(page)
    first = browser.driver.current_window_handle
    browser.driver.switch_to.new_window("tab")
    try:
        browser.driver.get(f"{page.as_uri()}#topics")
        browser.until("document.documentElement.dataset.ready")
        browser.rename(1, "one")
        browser.driver.switch_to.window(first)
        browser.until("document.querySelector(\"#content tbody input[aria-label='Name of topic 1']\").value === 'one'")
        browser.rename(2, "two")
        browser.open(page)
        browser.until("document.querySelector('button[aria-controls=edits]').textContent.trim().endsWith('2')")
        browser.run("localStorage.clear()")
    finally:
        for window in browser.driver.window_handles:
            if window != first:
                browser.driver.switch_to.window(window)
                browser.driver.close()
        browser.driver.switch_to.window(first)


def test_the_back_button_leads_to_the_first_view(browser, page):
    browser.open(page)
    browser.driver.get("about:blank")
    browser.driver.get(page.as_uri())  # without a view in the address
    browser.until("document.documentElement.dataset.ready")
    topic = browser.find("#topic h2").text
    browser.view("words")
    browser.find("#topic button[aria-label='Next topic']").click()
    browser.driver.back()
    browser.driver.back()
    browser.until("document.querySelector('#tab-topics').getAttribute('aria-selected') === 'true'")
    assert browser.find("#topic h2").text == topic


def test_paper_has_the_bars_in_light_colours_and_whole_maps(browser, page):
    browser.open(page, "classes", dark=True)
    media(browser, media="print", prefers_color_scheme="dark")
    style = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]"
    assert browser.run(style, "#content .fill", "printColorAdjust") == "exact"
    assert max(map(int, re.findall(r"\d+", browser.run(style, "#content h2", "color")))) < 60
    assert browser.run(style, "#topic", "position") == "static"
    for view in ("topics", "documents", "similarity"):
        media(browser, prefers_color_scheme="dark")
        browser.open(page, view)
        browser.until("document.querySelector('#content svg, #content canvas')")
        media(browser, media="print")
        pictures = "[...document.querySelectorAll('#content svg, #content canvas')]"
        assert browser.run(f"return {pictures}.every((each) => getComputedStyle(each).maxWidth === '100%')"), view
        assert browser.run(f"return {pictures}.every((each) => each.matches('canvas, [viewBox]'))"), view
    media(browser)


def test_colours_of_the_system_leave_the_bars_and_the_selection(browser, page):
    for view, bar in (("classes", ".bars .fill"), ("topics", "td.share .bar")):
        browser.open(page, view)
        browser.until(f"document.querySelector('#content {bar}')")
        media(browser, forced_colors="active")
        style = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]"
        ground = browser.run(style, "body", "backgroundColor")
        assert browser.run(style, f"#content {bar}", "backgroundColor") not in (ground, "rgba(0, 0, 0, 0)")
        assert browser.run(style, "#content tr.current", "outlineStyle") == "solid"
        edge = "borderBottomColor"
        assert browser.run(style, f"#tab-{view}", edge) != browser.run(style, "#tab-quality", edge)
    media(browser)


def test_long_names_stay_in_the_view_by_class(browser, page):
    browser.open(page, "classes")
    browser.until("document.querySelector('#content table')")
    for number in range(3):
        rows = browser.all("#content tbody th button")
        rows[number].click()
        title = "const title = document.querySelector('#content h2'); return [title.scrollWidth, title.clientWidth]"
        needed, there = browser.run(title)
        assert needed <= there
    scroll = "const box = document.querySelector('#content .scroll'); return [box.scrollWidth, box.clientWidth]"
    needed, there = browser.run(scroll)
    assert needed <= there


def test_the_list_of_edits_has_the_names_that_are_saved(browser, page):
    browser.open(page)
    browser.run("localStorage.clear()")
    browser.open(page)
    for topic in (0, 1, 2):
        browser.rename(topic, f"name {topic}")
    for topic in (0, 1):
        browser.find(f"#content input[value='{topic}']").click()
    next(each for each in browser.all("#content button") if each.text == "Merge").click()
    button = browser.find("button[aria-controls=edits]")
    button.click()
    listed = [each.text for each in browser.all("#edits li span")]
    assert listed == ["Topics 0, 1 are merged", "Topic 0 is named “name 0”", "Topic 2 is named “name 2”"]
    assert button.text.split()[-1] == "3"
    browser.run("localStorage.clear()")


def test_the_last_group_of_topics_cannot_be_dropped(browser, page):
    browser.open(page)
    browser.run("localStorage.clear()")
    browser.open(page)
    for topic in (0, 1):
        browser.find(f"#content input[value='{topic}']").click()
    next(each for each in browser.all("#content button") if each.text == "Merge").click()
    for topic in range(3):  # either would leave one topic, since a merged topic is dropped with its group
        browser.find(f"#content tbody button[aria-label='Topic {topic}']").click()
        assert not next(each for each in browser.all("#topic button") if each.text == "Drop").is_enabled()
    browser.run("localStorage.clear()")


def test_a_name_has_the_form_that_python_takes(browser, page, topics):
    browser.open(page)
    browser.run("localStorage.clear()")
    browser.open(page)
    typed = "\x07", "\u202e", " art\x07of\u2028\u202ethe \u202c state ", "\U0001f600" * 250
    before = browser.find("#content tbody input[aria-label='Name of topic 1']").get_attribute("value")
    shown = [
        browser.run(
            "const field = document.querySelector(`#content tbody input[aria-label='Name of topic 1']`);"
            "field.value = arguments[0]; field.dispatchEvent(new Event('change', {bubbles: true})); return field.value",
            name,
        )
        for name in typed
    ]
    # Nothing is left of the first two names, and an empty name takes the name back.
    assert shown == [before, before, "art of the state", "\U0001f600" * 200]
    for name in shown[2:]:
        assert topics.rename({1: name}).model.topic_names_[1] == name
    browser.run("localStorage.clear()")
