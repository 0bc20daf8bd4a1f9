"""Work with the explorer's page: undo and redo, ids in the search, links to what it shows, narrow windows, tables."""

from __future__ import annotations

import pytest

pytest.importorskip("selenium", reason="selenium is not installed (the extra browser)")

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

import topicloom as tl
from topicloom.reports.explorer import PageOptions, write_page
from topicloom.topics.view import Topics

COUNT = "document.querySelector('#content section:last-of-type [role=status]').textContent"
TITLES = "[...document.querySelectorAll('#content section:last-of-type article h3')].map((each) => each.textContent)"
EDITS = "document.querySelector('button[aria-controls=edits]').textContent.trim()"


@pytest.fixture(scope="module")
def topics() -> Topics:
    texts = [f"{'cat dog' if i % 2 else 'bank loan'} kitten{i % 5} item-17" for i in range(60)]
    corpus = tl.Corpus.from_texts(
        texts,
        language="en",
        min_df=1,
        ids=[f"News/2024-{i:03}" for i in range(60)],
        labels=[f"class {i % 2} & more" for i in range(60)],
    )
    return Topics(tl.Loom(n_topics=4, epochs=20, random_state=0).fit(corpus), corpus)


@pytest.fixture(scope="module")
def page(topics, tmp_path_factory):
    path = tmp_path_factory.mktemp("work") / "page.html"
    write_page(path, topics)
    return path


@pytest.fixture
def fresh(browser, page):
    """A window with the page, without edits."""
    browser.open(page)
    browser.run("localStorage.clear()")
    browser.open(page)
    yield browser
    browser.run("localStorage.clear()")


def press(browser, *keys: str) -> None:
    """Press keys wherever the focus is."""
    actions = ActionChains(browser.driver)
    for key in keys[:-1]:
        actions.key_down(key)
    actions.send_keys(keys[-1])
    for key in keys[:-1]:
        actions.key_up(key)
    actions.perform()


def click(browser, text: str, within: str = "#content") -> None:
    next(each for each in browser.all(f"{within} button") if each.text == text).click()


def listed(browser) -> list[str]:
    return [each.text for each in browser.all("#edits li > span")]


def search(browser, text: str, expected: str) -> list[str]:
    """Search, wait for a number of documents, and return the titles of those that are listed."""
    browser.run(
        "const field = document.querySelector('#content input[type=search]'); field.value = arguments[0];"
        "field.dispatchEvent(new Event('input', {bubbles: true}));",
        text,
    )
    browser.driver.execute_async_script("setTimeout(arguments[0], 500)")
    browser.until(f"{COUNT} === {expected!r}")
    titles: list[str] = browser.run(f"return {TITLES}")
    return titles


def test_changes_are_undone_and_made_again(fresh, page):
    browser = fresh
    for topic in (0, 1):
        browser.find(f"#content input[value='{topic}']").click()
    click(browser, "Merge")
    browser.rename(2, "first")
    browser.rename(2, "second")
    browser.find("#content tbody button[aria-label='Topic 1']").click()
    click(browser, "Drop", "#topic")  # with the topic that it was merged with, which is one change
    browser.find("button[aria-controls=edits]").click()
    after = ["Topic 0 is dropped", "Topic 1 is dropped", "Topic 2 is named “second”"]
    before = ["Topics 0, 1 are merged", "Topic 2 is named “second”"]
    assert listed(browser) == after
    undo, redo = (next(b for b in browser.all("#edits button") if b.text == name) for name in ("Undo last", "Redo"))
    undo.click()
    assert listed(browser) == before
    shown = browser.find("[role=status].turned")
    assert "Undone:" in shown.text
    assert "Topic 1 is dropped" in shown.text
    redo.click()
    assert listed(browser) == after
    assert redo.get_attribute("aria-disabled") == "true"
    for _ in range(2):
        undo.click()
    assert listed(browser) == ["Topics 0, 1 are merged", "Topic 2 is named “first”"]
    undo.click()
    undo.click()
    assert listed(browser) == []
    assert undo.get_attribute("aria-disabled") == "true"
    for _ in range(3):
        redo.click()
    assert listed(browser) == before
    click(browser, "Undo all", "#edits")
    assert listed(browser) == []
    undo.click()
    assert listed(browser) == before
    browser.find("#edits li button").click()  # of one entry; a new change forgets what could be made again
    assert redo.get_attribute("aria-disabled") == "true"
    browser.open(page)
    assert browser.run(f"return {EDITS}").endswith("1")  # what was undone stays undone


def test_keys_undo_and_redo_except_in_a_field(fresh):
    browser = fresh
    browser.rename(2, "first")
    browser.rename(3, "other")
    size = f"return {EDITS}"
    assert browser.run(size).endswith("2")
    press(browser, Keys.CONTROL, "z")
    assert browser.run(size).endswith("1")
    press(browser, Keys.CONTROL, Keys.SHIFT, "z")
    assert browser.run(size).endswith("2")
    press(browser, Keys.CONTROL, "z")
    press(browser, Keys.CONTROL, "z")
    assert browser.run(size) == "Edits"
    press(browser, Keys.CONTROL, "y")
    assert browser.run(size).endswith("1")
    assert browser.find("#content tbody input[aria-label='Name of topic 2']").get_attribute("value") == "first"
    browser.find("#content input[type=search]").send_keys("x")
    press(browser, Keys.CONTROL, "z")  # of what was typed
    assert browser.run(size).endswith("1")


def focused(browser) -> str:
    """Return what has the focus: its id, its label or its text."""
    found: str = browser.run(
        "const it = document.activeElement; return it.id || it.getAttribute('aria-label') || it.textContent.trim()"
    )
    return found


def focus_becomes(browser, expected: str) -> None:
    """Wait until something has the focus; the page moves it after it has drawn a change."""
    browser.until(
        "[document.activeElement.id, document.activeElement.getAttribute('aria-label'),"
        f" document.activeElement.textContent.trim()].includes({expected!r})"
    )


def test_topics_are_merged_named_and_dropped_by_keyboard(fresh):
    browser = fresh
    rows = [each.get_attribute("id") for each in browser.all("#content tbody tr")]
    said = "document.querySelector('[role=status].turned').textContent.trim()"
    parts = "#content :is(table, table *)"
    stops = f"return [...document.querySelectorAll('{parts}')].filter((each) => each.tabIndex >= 0).length"
    assert browser.run(stops) == 1
    browser.find("#content input[type=search]").click()
    press(browser, Keys.TAB)
    assert focused(browser) == rows[0]
    press(browser, Keys.DOWN)
    focus_becomes(browser, rows[1])
    assert browser.run(stops) == 1
    numbers = sorted(int(row.removeprefix("row-")) for row in rows[1:3])
    assert browser.find("#topic h2").text == rows[1].replace("row-", "Topic ")
    press(browser, Keys.SPACE)
    browser.until(f"{said} === '1 selected'")
    press(browser, Keys.DOWN)
    focus_becomes(browser, rows[2])
    press(browser, Keys.SPACE)
    browser.until(f"{said} === '2 selected'")
    assert [row.get_attribute("aria-selected") for row in browser.all("#content tbody tr")].count("true") == 2
    press(browser, Keys.TAB)
    assert focused(browser) == "Merge"
    press(browser, Keys.ENTER)
    focus_becomes(browser, merged := f"row-{numbers[0]}")
    browser.until(f"{said} === 'Topics {numbers[0]}, {numbers[1]} are merged'")
    assert browser.find(f"#row-{numbers[1]}").get_attribute("aria-label").endswith(f"merged with topic {numbers[0]}")
    press(browser, Keys.F2)
    focus_becomes(browser, f"Name of topic {numbers[0]}")
    press(browser, "a name")
    press(browser, Keys.ENTER)
    focus_becomes(browser, merged)
    assert browser.find(f"#{merged}").get_attribute("aria-label").startswith(f"Topic {numbers[0]}: a name, ")
    press(browser, Keys.F2)
    press(browser, "another")
    press(browser, Keys.ESCAPE)
    focus_becomes(browser, merged)
    assert ": a name, " in browser.find(f"#{merged}").get_attribute("aria-label")
    press(browser, Keys.END)
    focus_becomes(browser, rows[-1])
    press(browser, Keys.DELETE)
    browser.until(f"{said} === 'Topic {rows[-1].removeprefix('row-')} is dropped'")
    press(browser, Keys.DELETE)
    browser.until(f"{said} === 'Topic {rows[-1].removeprefix('row-')} is kept'")
    for _ in range(3):  # the last of them is that of the name
        press(browser, Keys.CONTROL, "z")
    focus_becomes(browser, merged)
    press(browser, Keys.HOME)
    focus_becomes(browser, rows[0])
    press(browser, Keys.UP)
    assert focused(browser).startswith("Share")
    press(browser, Keys.LEFT)
    press(browser, Keys.LEFT)
    press(browser, Keys.ENTER)  # by number
    press(browser, Keys.DOWN)
    focus_becomes(browser, "row-0")
    assert browser.logs()[0] == []


def test_the_focus_is_not_lost_with_what_had_it(fresh):
    browser = fresh
    for topic in (1, 2):
        browser.rename(topic, f"name {topic}")
    focus_becomes(browser, "row-2")
    filter_field = browser.find("#content input[type=search]")
    filter_field.send_keys("name 2")
    browser.until("document.querySelectorAll('#content tbody tr').length === 1")
    press(browser, Keys.TAB)
    press(browser, Keys.CONTROL, "z")  # the row goes with the name that was looked for
    browser.until("document.querySelector('#content tbody .hint')")
    focus_becomes(browser, "content")
    press(browser, Keys.CONTROL, "y")
    filter_field.send_keys(Keys.CONTROL, "a")
    filter_field.send_keys(Keys.NULL, Keys.BACKSPACE)
    browser.find("#content tbody input[value='1']").click()
    click(browser, "Clear")
    assert browser.run("return document.activeElement.id.startsWith('row-')")
    browser.find("button[aria-controls=edits]").click()
    browser.find("#edits li button").click()  # the first of two
    focus_becomes(browser, "Undo: Topic 2 is named “name 2”")
    press(browser, Keys.ENTER)  # the last one
    focus_becomes(browser, "Undo last")
    press(browser, Keys.ENTER)
    browser.run("document.querySelector('#edits li button').focus()")
    press(browser, Keys.CONTROL, "z")  # another entry comes, and the one with the focus stays
    focus_becomes(browser, "Undo: Topic 2 is named “name 2”")
    click(browser, "Undo all", "#edits")
    focus_becomes(browser, "Undo last")


def test_keys_undo_a_name_that_was_finished_in_the_panel(fresh):
    browser = fresh
    field = browser.find("#topic input.name")
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(Keys.NULL, "in the panel", Keys.ENTER)
    assert browser.run(f"return {EDITS}").endswith("1")
    assert browser.run("return document.activeElement.matches('#topic input.name')")
    press(browser, "x")
    press(browser, Keys.CONTROL, "z")  # of what was typed
    assert browser.run(f"return {EDITS}").endswith("1")
    press(browser, Keys.ESCAPE)
    press(browser, Keys.CONTROL, "z")
    assert browser.run(f"return {EDITS}") == "Edits"


def test_what_another_tab_changed_can_be_undone(fresh, page):
    browser = fresh
    browser.rename(1, "one")
    first = browser.driver.current_window_handle
    browser.driver.switch_to.new_window("tab")
    try:
        browser.driver.get(f"{page.as_uri()}#topics")
        browser.until("document.documentElement.dataset.ready")
        browser.rename(2, "two")
    finally:
        browser.driver.close()
        browser.driver.switch_to.window(first)
    browser.until(f"{EDITS}.endsWith('2')")
    press(browser, Keys.CONTROL, "z")
    browser.find("button[aria-controls=edits]").click()
    assert listed(browser) == ["Topic 1 is named “one”"]


def test_documents_are_found_by_parts_of_their_ids(browser, page, topics, tmp_path):
    browser.open(page, "documents")
    assert search(browser, "news/2024-017", "1 document") == ["Document News/2024-017"]
    assert len(search(browser, "-01", "10 documents")) == 10
    assert search(browser, "4-017", "1 document") == ["Document News/2024-017"]
    assert search(browser, "017 loan", "0 documents") == []  # its text has "cat dog"
    assert search(browser, "017 dog", "1 document") == ["Document News/2024-017"]
    assert search(browser, "17", "60 documents")[0] == "Document News/2024-017"  # all texts have it, one id
    assert search(browser, '"017"', "0 documents") == []
    assert len(search(browser, "2024", "60 documents")) == 20  # no text has it, but all ids
    write_page(tmp_path / "numbers.html", Topics(topics.model, tl.Corpus.from_texts(list(topics.corpus.texts))))
    browser.open(tmp_path / "numbers.html", "documents")
    assert search(browser, "5", "1 document") == ["Document 5"]  # a number that nobody gave is found as a whole only
    write_page(tmp_path / "without.html", topics, PageOptions(texts=False))
    browser.open(tmp_path / "without.html", "documents")
    assert search(browser, "024-05", "10 documents")[0] == "Document News/2024-050"
    assert browser.logs()[0] == []


def test_a_link_has_the_search_and_the_class(browser, page):
    browser.open(page, "documents/1")
    search(browser, '"dog" kitten1 & ü', "0 documents")
    search(browser, '"dog" kitten1', "6 documents")
    browser.until("location.hash.includes('q=')")
    choose = (
        "const choice = document.querySelector('#content select'); choice.value = arguments[0];"
        "choice.dispatchEvent(new Event('change', {bubbles: true}));"
    )
    browser.run(choose, "class 0 & more")
    browser.until(f"{COUNT} === '0 documents'")
    browser.run(choose, "class 1 & more")
    browser.until(f"{COUNT} === '6 documents'")
    browser.until("location.hash.includes('class+1')")
    address, entries = browser.run("return [location.href, history.length]")
    search(browser, "dog", "30 documents")
    assert browser.run("return history.length") == entries  # typing adds nothing to the history
    browser.driver.get("about:blank")
    browser.driver.get(address)
    browser.until("document.documentElement.dataset.ready")
    browser.until(f"{COUNT} === '6 documents'")
    field, choice = browser.find("#content input[type=search]"), browser.find("#content select")
    assert (field.get_attribute("value"), choice.get_attribute("value")) == ('"dog" kitten1', "class 1 & more")
    browser.find("#content button[aria-pressed]").click()
    browser.until("location.hash.includes('only=topic')")
    browser.view("topics")
    assert browser.run("return location.hash") == "#topics/1"
    browser.driver.back()
    browser.until(f"{COUNT}.endsWith('documents')")
    assert browser.find("#content input[type=search]").get_attribute("value") == '"dog" kitten1'
    browser.driver.get(f"{page.as_uri()}#documents/1?class=of+another+page")
    browser.until(f"{COUNT} === '60 documents'")
    browser.driver.get(f"{page.as_uri()}#words/1?word=loan")
    browser.until("document.querySelector('#content input[type=search]')?.value === 'loan'")
    assert browser.logs()[0] == []


@pytest.mark.parametrize("width", [360, 768])
def test_a_narrow_window_shows_which_topic_is_chosen(browser, page, width):
    browser.open(page, width=width)
    chosen = browser.find("#content g[aria-pressed=true]").get_attribute("id")
    other = next(each for each in browser.all("#content g[role=button]") if each.get_attribute("id") != chosen)
    other.click()
    topic = other.get_attribute("id").removeprefix("circle-")
    bar = browser.find("button.bar")
    assert bar.is_displayed()
    assert bar.text.split()[0] == topic
    place = browser.run("const {top, bottom} = arguments[0].getBoundingClientRect(); return [top, bottom]", bar)
    assert place[1] == browser.run("return innerHeight")
    assert browser.run("return document.documentElement.scrollWidth") <= width
    bar.click()
    top = "document.querySelector('#topic').getBoundingClientRect().top"
    browser.until(f"{top} >= 0 && {top} < 200")
    browser.until("!document.querySelector('button.bar').checkVisibility()")
    next(each for each in browser.all("#topic button") if each.text.endswith("Back up")).click()
    assert browser.run("return scrollY") == 0
    browser.until("document.querySelector('button.bar').checkVisibility()")  # it is told that the topic is out of view
    bar.click()
    browser.find("#topic tbody th button").click()  # a word of the topic, whose view begins at the top
    browser.until("document.querySelector('#tab-words').getAttribute('aria-selected') === 'true'")
    assert browser.run("return scrollY") == 0


@pytest.mark.parametrize("width", [1024, 1440])
def test_a_wide_window_has_the_topic_beside_the_view(browser, page, width):
    browser.open(page, width=width)
    assert not browser.find("button.bar").is_displayed()
    assert browser.run("return document.querySelector('#topic').getBoundingClientRect().top") < 300


def test_curves_have_a_table(browser, page):
    browser.open(page, "quality")
    assert not browser.all("#content details table")
    browser.find("#content details summary").click()
    browser.until("document.querySelector('#content details table')")
    heads = [each.text for each in browser.all("#content details thead th")]
    assert heads[:3] == ["Epoch", "Stage", "loss"]
    curves = [each.text for each in browser.all(".charts h3")]
    assert heads[2:] == curves
    rows = [
        [cell.text for cell in row.find_elements("css selector", "th, td")] for row in browser.all("details tbody tr")
    ]
    assert rows[0][:2] == ["1", "pretraining"]
    assert rows[-1][1] == "counting"
    assert all(len(row) == len(heads) and set(row[2:]) != {"–"} for row in rows)
