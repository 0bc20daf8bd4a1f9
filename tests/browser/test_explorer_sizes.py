"""The explorer's page of many topics and of a single document."""

from __future__ import annotations

import pytest

pytest.importorskip("selenium", reason="selenium is not installed (the extra browser)")

from selenium.webdriver.common.keys import Keys

import topicloom as tl
from topicloom.reports.explorer import write_page
from topicloom.topics.view import Topics


def test_a_tree_of_many_topics_shows_their_names(browser, tmp_path):
    texts = [f"w{i % 70} w{i * 7 % 70} w{i * i % 70}" for i in range(280)]
    corpus = tl.Corpus.from_texts(texts, language="en", min_df=1)
    model = tl.LDA(n_topics=60, epochs=1, random_state=0).fit(corpus)
    write_page(tmp_path / "page.html", Topics(model, corpus))
    browser.open(tmp_path / "page.html", "similarity")
    browser.until("document.querySelectorAll('#content svg path').length === 59")
    assert len(browser.all("#content svg text")) == 60


def test_numbers_of_one_have_a_singular(browser, tmp_path):
    corpus = tl.Corpus.from_texts(["cat dog cat"], language="en", min_df=1, max_df=1.0)
    model = tl.LDA(n_topics=2, epochs=1, random_state=0).fit(corpus)
    write_page(tmp_path / "page.html", Topics(model, corpus))
    browser.open(tmp_path / "page.html", "documents")
    browser.until("document.querySelectorAll('#content article').length === 1")
    assert "1 document · 2 topics · 2 words" in browser.find("header").text
    assert "1 document\n" in browser.find("#content").text
    numbers = browser.run("return document.body.innerText.match(/\\b1 (documents|topics|words|times)\\b/g)")
    assert numbers is None


def test_a_class_without_words_of_its_own_says_so(browser, tmp_path):
    texts = ["cat dog fish", "bank loan money"] * 40
    corpus = tl.Corpus.from_texts(texts, language="en", min_df=1, labels=[f"class {i // 2 % 2}" for i in range(80)])
    model = tl.LDA(n_topics=2, epochs=1, random_state=0).fit(corpus)
    write_page(tmp_path / "page.html", Topics(model, corpus))
    browser.open(tmp_path / "page.html", "classes")
    browser.until("document.querySelectorAll('#content dd').length === 2")
    assert [each.text for each in browser.all("#content dd")] == ["no word with certainty"] * 2


def test_a_long_name_leaves_room_for_undo(browser, tmp_path):
    corpus = tl.Corpus.from_texts(["cat dog fish", "bank loan money"] * 20, language="en", min_df=1)
    model = tl.LDA(n_topics=2, epochs=1, random_state=0).fit(corpus)
    write_page(tmp_path / "page.html", Topics(model, corpus))
    browser.open(tmp_path / "page.html", width=390)
    field = browser.find("#content tbody input[aria-label='Name of topic 1']")
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(Keys.NULL, "names & " * 6 + "names" * 20, Keys.ENTER)
    browser.find("button[aria-controls=edits]").click()
    assert browser.run("const list = document.querySelector('#edits ul'); return list.scrollWidth <= list.clientWidth")
    browser.run("localStorage.clear()")


def test_words_without_a_clear_topic_are_explained(browser, tmp_path):
    corpus = tl.Corpus.from_texts(["cat dog fish", "bank loan money"] * 20, language="en", min_df=1)
    write_page(tmp_path / "page.html", Topics(tl.LDA(n_topics=2, epochs=1, random_state=0).fit(corpus), corpus))
    browser.open(tmp_path / "page.html", "text")
    browser.find("textarea").send_keys("a cat")
    browser.until("document.querySelector('#inferred').dataset.theta")
    assert "A word without a colour" in browser.find("#content").text


def test_names_at_the_edge_of_the_map_are_moved_inside(browser, tmp_path):
    wide = ("commem", "wwwmmm", "mammal", "memoir", "summit")
    groups = [[f"{name}{letter}" for letter in "abcdefgh"] for name in wide]
    texts = [" ".join(groups[i % 5][i % 3 :: 2] * 2) for i in range(200)]
    corpus = tl.Corpus.from_texts(texts, language="en", min_df=1)
    model = tl.LDA(n_topics=5, epochs=5, random_state=0).fit(corpus)
    write_page(tmp_path / "page.html", Topics(model, corpus))
    browser.open(tmp_path / "page.html", width=760)
    outside = """
        const map = document.querySelector('#circle-0').closest('svg').getBoundingClientRect();
        const boxes = [...document.querySelectorAll('text.label')].map((label) => label.getBoundingClientRect());
        return [boxes.length, boxes.filter((b) => b.left < map.left || b.right > map.right).length];
    """
    assert browser.run(outside) == [5, 0]


def test_topics_with_the_same_name_cannot_be_saved(browser, tmp_path):
    texts = [f"w{i % 9} w{i * 7 % 9} w{i * i % 9}" for i in range(80)]
    corpus = tl.Corpus.from_texts(texts, language="en", min_df=1)
    model = tl.LDA(n_topics=5, epochs=1, random_state=0).fit(corpus)
    write_page(tmp_path / "page.html", Topics(model, corpus))
    browser.open(tmp_path / "page.html")
    for topic in (1, 3):
        field = browser.find(f"#content tbody input[aria-label='Name of topic {topic}']")
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(Keys.NULL, "ships", Keys.ENTER)
    browser.find("button[aria-controls=edits]").click()
    assert browser.find("#edits [role=alert]").text.startswith("Topics 1, 3 have the same name.")
    assert not browser.find("#edits button.primary").is_enabled()
    undo = browser.all("#edits ul button")[1]
    assert undo.accessible_name == "Undo: Topic 3 is named “ships”"
    undo.click()
    assert browser.find("#edits button.primary").is_enabled()
    assert not browser.all("#edits [role=alert]")
    browser.run("localStorage.clear()")


@pytest.mark.parametrize("width", [1280, 390])
def test_names_beside_the_tree_fit(browser, tmp_path, width):
    words = ["algorithm", "recommendation", "representation", "mmmmmmmmmmm", "wwwwwwwwwwww"]
    corpus = tl.Corpus.from_texts([" ".join(words[i % 5 :] + words[:2]) for i in range(60)], language="en", max_df=1.0)
    model = tl.LDA(n_topics=4, epochs=1, random_state=0).fit(corpus)
    write_page(tmp_path / "page.html", Topics(model, corpus))
    browser.open(tmp_path / "page.html", "similarity", width=width)
    browser.until("document.querySelectorAll('#content svg text').length === 4")
    beyond = browser.run(
        "return [...document.querySelectorAll('#content svg text')].filter((text) => "
        "text.getBoundingClientRect().right > text.closest('svg').getBoundingClientRect().right + 1)"
        ".map((text) => text.textContent)"
    )
    assert beyond == []
