"""The explorer's page in a browser: every view, the inference of pasted texts, hostile texts, languages and themes."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("selenium", reason="selenium is not installed (the extra browser)")
from selenium.webdriver import ActionChains
from selenium.webdriver.common.keys import Keys

import topicloom as tl
from topicloom.reports import run
from topicloom.reports.explorer import PageOptions, write_page
from topicloom.topics.edits import read_edits
from topicloom.topics.view import Topics

VIEWS = ["topics", "documents", "words", "similarity", "time", "classes", "quality", "text"]
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)> \u202edesrever\u202c \x07 cat dog <b>bold</b>"
LABEL = "<em onclick=alert(3)>a class with a rather long name and markup in it</em> \u202efdp"
AWKWARD = [
    "The cat's dogs: CAT dog-cat don't STRASSE straße Ｃａｔ cat_dog 2024 x",
    "see https://example.org/cat?dog=1 or write to cat@dog.example, e\u0301te\u0301 ÉTÉ",
    "<p class='dog'>cat</p> &lt;b&gt;dog&lt;/b&gt; a <b and c> dog <!-- cat --> <script>cat</script> <unk> dog",
    "Σίσυφος ΣΊΣΥΦΟΣ ﬁsh FISH naïve NAÏVE ʼcat’s dog‘s soft\xadcat",
    "",
    "unknownword",
    HOSTILE,
]


@pytest.fixture(scope="module")
def small() -> tl.Corpus:
    words = [
        "cat dog play ball kitten fish " + 160 * "w",
        "bank money loan credit rate stocks",
        "straße été naïve σίσυφος don't dog-cat",
    ]
    texts = [f"{words[i % 3]} {words[i % 3].split()[i % 6]} number{i % 9}" for i in range(150)]
    return tl.Corpus.from_texts(
        [*texts, HOSTILE],
        language="en",
        min_df=2,
        labels=[LABEL if i % 3 else "pets" for i in range(151)],
        timestamps=[f"2024-{1 + i % 9:02}-03" for i in range(151)],
        ids=[f"<u>{i}</u>" for i in range(151)],
    )


@pytest.fixture(scope="module")
def model(small):
    return tl.Loom(n_topics=6, epochs=8, random_state=0).fit(small)


@pytest.fixture(scope="module")
def page(small, model, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "news <script>alert(4)</script>".replace("/", "_")
    corpus = model.documents(small)
    run.write(folder, model, corpus, model.infer(corpus), 1.0, run.RunOptions(explorer=True))
    return folder / "explorer.html"


def infer(browser, text: str) -> tuple[list[float], list[int]]:
    """Paste a text, and return its theta and the numbers of its words."""
    browser.run(
        "const area = document.querySelector('textarea'); area.value = arguments[0];"
        "area.dispatchEvent(new Event('input', {bubbles: true}));",
        "",
    )
    browser.until("!document.querySelector('#inferred').dataset.theta")
    browser.run(
        "const area = document.querySelector('textarea'); area.value = arguments[0];"
        "area.dispatchEvent(new Event('input', {bubbles: true}));",
        text,
    )
    theta = browser.until("document.querySelector('#inferred').dataset.theta")
    words = browser.run("return document.querySelector('#inferred').dataset.words")
    return json.loads(theta), [int(word) for word in words.split()]


def test_every_view_opens_without_an_error_or_a_request(browser, page):
    browser.open(page)
    for view in VIEWS:
        browser.view(view)
        browser.until("document.querySelector('#content h2')")
        time.sleep(0.4)
        assert browser.find("#content").text.strip()
    console, asked = browser.logs()
    assert console == []
    assert asked == {page.as_uri()}


def test_the_page_can_ask_no_host(browser, page):
    browser.open(page)
    script = "const done = arguments[0]; fetch('https://example.org/').then(() => done('sent'), () => done('refused'));"
    assert browser.driver.execute_async_script(script) == "refused"
    script = (
        "const s = document.createElement('script'); s.textContent = 'window.evil = 1'; document.body.append(s);"
        "return window.evil === undefined"
    )
    assert browser.run(script)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("Loom", {}), ("LDA", {}), ("GSM", {"encoder_input": "tfidf"}),
        pytest.param("ETM", {"embedding_size": 8}, marks=pytest.mark.slow),
        ("DirichletVAE", {"sparsity": 0.3, "estimator": "weibull"}),
        pytest.param("ProdLDA", {"encoder_input": "l1"}, marks=pytest.mark.slow),
        pytest.param("BATM", {"activation": "relu"}, marks=pytest.mark.slow), ("edited", {}),
    ],
)  # fmt: skip
def test_topics_of_a_text_are_those_of_python(browser, small, model, tmp_path, name, settings):
    if name == "edited":
        large, *others, last = np.argsort(-model.transform(small).mean(0)).tolist()
        edits = [{"merge": others[:2]}, {"drop": [last]}, {"split": large, "into": 2}, {"rename": {others[2]: "banks"}}]
        edits.append({"add": 1})
        fitted = model.apply(edits, small)
    elif name == "Loom":
        fitted = model
    else:
        fitted = getattr(tl, name)(n_topics=5, epochs=3, random_state=0, **settings).fit(small)
    write_page(tmp_path / "page.html", Topics(fitted, small))
    browser.open(tmp_path / "page.html", "text")
    place = {word: number for number, word in enumerate(fitted.vocabulary_)}
    for text in [*list(small.texts)[:4], *AWKWARD[:4], "cat dog bank unknownword"]:
        theta, words = infer(browser, text)
        assert words == [place[token] for token in fitted.tokenizer_(text) if token in place]
        np.testing.assert_allclose(theta, fitted.transform([text])[0], atol=0.01)
    theta, words = infer(browser, "unknownword")
    assert words == []
    np.testing.assert_allclose(theta, fitted.transform(["unknownword"])[0], atol=0.01)


def test_hostile_texts_are_shown_and_not_run(browser, page):
    browser.open(page, "documents")
    search = browser.find("#content input[type=search]")
    search.send_keys("onerror script")  # in any order
    browser.until("document.querySelectorAll('#content article').length === 1")
    shown = browser.find("#content article").text
    assert "<script>alert(1)</script><img src=x onerror=alert(2)>" in shown
    assert "\u202e" not in shown
    assert "\x07" not in shown
    assert "<u>150</u>" in shown
    assert browser.run("return document.querySelectorAll('#app script, #app img, #app b, #app u, #app em').length") == 0
    browser.view("classes")
    assert "<em onclick=alert(3)>" in browser.find("#content").text
    browser.view("text")
    infer(browser, HOSTILE)
    assert "<b>bold</b>" in browser.find("#content").text
    console, asked = browser.logs()
    assert console == []
    assert asked == {page.as_uri()}


def test_documents_of_a_topic_begin_with_diverse_typical_ones(browser, page, model, small):
    browser.open(page, "documents/2")
    browser.find("#content button[aria-pressed]").click()
    browser.until("document.querySelector('#content button[aria-pressed=true]')")
    time.sleep(0.5)
    shown = [each.text for each in browser.all("#content section:last-of-type article h3")]
    best = tl.Topics(model, small).documents_of(2, n=5, kind="diverse")["id"]
    assert best
    assert all(id in heading.split() for id, heading in zip(best, shown[: len(best)], strict=True))


def test_words_of_a_topic_by_relevance_are_those_of_python(browser, page, model):
    browser.open(page, "topics/1")
    browser.until("document.querySelectorAll('#topic tbody th').length > 5")
    for relevance in (1, 0.3):
        browser.run(
            "const slider = document.querySelector('#topic input[type=range]'); slider.value = arguments[0];"
            "slider.dispatchEvent(new Event('input', {bubbles: true}));",
            relevance,
        )
        time.sleep(0.3)
        shown = [each.text for each in browser.all("#topic tbody th")]
        expected = model.topics(20, relevance, written=True)[1]
        assert shown[:5] == expected[:5]
        likely = model.components_[1, model.topic_ids(20, relevance)[1]] > 1e-3
        probable = [word for word, is_likely in zip(expected, likely, strict=True) if is_likely]
        assert set(probable) <= set(shown)


def test_edits_are_saved_as_a_file_that_python_applies(browser, page, model, small):
    browser.open(page)
    browser.run("localStorage.clear()")
    browser.open(page)
    name = 'ships: "and" {boats}, <b>#1</b> 船'
    field = browser.find("#content tbody input[aria-label='Name of topic 3']")
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(Keys.NULL, name, Keys.ENTER)
    for topic in (1, 4):
        browser.find(f"#content input[value='{topic}']").click()
    next(each for each in browser.all("#content button") if each.text == "Merge").click()
    browser.find("#content tbody button[aria-label='Topic 5']").click()
    next(each for each in browser.all("#topic button") if each.text == "Drop").click()
    browser.find("button[aria-controls=edits]").click()
    assert name in browser.find("#edits").text
    next(each for each in browser.all("#edits button") if each.text == "Save as YAML").click()
    file = browser.downloads / "edits.yaml"
    for _ in range(100):
        if file.exists():
            break
        time.sleep(0.05)
    found = read_edits(file)
    found.check(model.fingerprint, file)
    assert found.edits == [{"merge": [1, 4]}, {"drop": [5]}, {"rename": {3: name}}]
    assert name in model.apply(found.edits, small).topic_names_
    browser.open(page)  # the edits are kept for the next time
    assert browser.find("button[aria-controls=edits]").text.endswith("3")
    browser.run("localStorage.clear()")


def test_chinese_and_english(browser, tmp_path):
    texts = [f"湖人队击败火箭队 比赛 得分{i % 5}" if i % 2 else f"央行宣布加息 股市大跌 银行{i % 7}" for i in range(80)]
    corpus = tl.Corpus.from_texts(texts, language="zh", min_df=2)
    model = tl.Loom(n_topics=2, epochs=10, random_state=0).fit(corpus)
    write_page(tmp_path / "zh.html", Topics(model, corpus), PageOptions("新闻"))
    browser.open(tmp_path / "zh.html", "text")
    assert browser.run("return document.documentElement.lang") == "en"
    browser.find("button[aria-label='切换到中文']").click()
    assert browser.run("return document.documentElement.lang") == "zh-CN"
    assert [each.text for each in browser.all("[role=tab]")] == ["主题", "文档", "词语", "相似度", "质量", "输入文本"]
    assert "最长匹配" in browser.find("#content").text
    theta, words = infer(browser, "湖人队和火箭队的比赛，央行")
    assert words
    shown = browser.find("#content").text
    assert f"文中有 {len(words)} 个词表中的词。" in shown
    assert "模型认识" not in shown  # words that are not in the vocabulary are not recognised, and cannot be counted
    expected = model.transform([[model.vocabulary_[word] for word in words]])[0]
    np.testing.assert_allclose(theta, expected, atol=0.01)
    for view in ("topics", "documents", "words", "similarity", "quality"):
        browser.view(view)
        time.sleep(0.2)
        shown = browser.run("return document.querySelector('#content').innerText")
        assert "undefined" not in shown
    browser.run("localStorage.clear()")
    assert browser.logs()[0] == []


def test_single_korean_letters_stay(browser, tmp_path):
    texts = ["ㅋㅋ 영화 재밌다", "ㅠㅠ 왜ㅋㅏ 슬프다"] * 20
    corpus = tl.Corpus.from_texts(texts, language="ko", min_df=1)
    model = tl.LDA(n_topics=2, method="gibbs", epochs=5, random_state=0).fit(corpus)
    write_page(tmp_path / "page.html", Topics(model, corpus))
    browser.open(tmp_path / "page.html", "text")
    text = "슬프다 ㅋㅋ ﾻﾻ 왜ﾻￂ ㅠㅠ ￓￓ ￗￗ"
    _, words = infer(browser, text)
    assert [model.vocabulary_[word] for word in words] == ["슬프다", "ㅋㅋ", "ㅋㅋ", "왜ㅋㅏ", "ㅠㅠ", "ㅠㅠ"]
    assert model.tokenizer_(text) == ["슬프다", "ㅋㅋ", "ㅋㅋ", "왜ㅋㅏ", "ㅠㅠ", "ㅜㅜ", "ㅠㅠ"]


def test_stages_of_training_are_separated(browser, tmp_path):
    corpus = tl.Corpus.from_texts(["cat dog kitten", "bank loan credit"] * 20, language="en", min_df=1)
    write_page(tmp_path / "page.html", Topics(tl.Loom(n_topics=2, epochs=20, random_state=0).fit(corpus), corpus))
    browser.open(tmp_path / "page.html", "quality")
    assert "Dashed lines separate the stages of training: pretraining, counting." in browser.find("#content").text
    lines = browser.run("return document.querySelectorAll('.charts line.break').length")
    assert lines == len(browser.all(".charts figure")) > 0
    write_page(tmp_path / "lda.html", Topics(tl.LDA(n_topics=2, epochs=5, random_state=0).fit(corpus), corpus))
    browser.open(tmp_path / "lda.html", "quality")
    assert "Dashed" not in browser.find("#content").text


def semicolons(text: str) -> list[str]:
    return [part.strip() for part in text.split(";")]


def test_the_longest_match_replaces_a_users_own_tokenizer(browser, tmp_path):
    texts = ["Cat;Dog;kitten", "Bank;loan;Credit"] * 20
    corpus = tl.Corpus.from_texts(texts, tokenizer=semicolons, min_df=2)
    model = tl.Loom(n_topics=2, epochs=5, random_state=0).fit(corpus)
    write_page(tmp_path / "page.html", Topics(model, corpus))
    browser.open(tmp_path / "page.html", "text")
    theta, words = infer(browser, "a Cat, a Dog and a bank")
    assert [model.vocabulary_[word] for word in words] == ["Cat", "Dog"]
    np.testing.assert_allclose(theta, model.transform(["Cat;Dog"])[0], atol=0.01)
    assert "longest match" in browser.find("#content").text


@pytest.mark.parametrize("view", ["quality", "time"])
def test_numbers_beside_an_axis_have_no_zeros_at_their_ends(browser, page, view):
    browser.open(page, view)
    time.sleep(0.2)
    marks = browser.run(
        "return [...document.querySelectorAll('figure text[text-anchor=end]')].map((e) => e.textContent)"
    )
    assert any("." in mark for mark in marks) or view == "time"
    assert any(mark.endswith("%") for mark in marks) == (view == "time")
    assert not [mark for mark in marks if "." in mark and mark.rstrip("%").endswith("0")]


def test_a_period_or_a_class_lists_its_documents(browser, page):
    cards = "[...document.querySelectorAll('#content article .head')].map((e) => e.textContent)"
    browser.open(page, "time")
    chart = browser.find("#content figure svg")
    ActionChains(browser.driver).move_to_element_with_offset(chart, 0, 0).click().perform()  # the middle of nine months
    browser.until(f"{cards}.length")
    dates = browser.run(f"return {cards}")
    assert all("2024-05-03" in each for each in dates)
    browser.until("location.hash.includes('period=2024-W18')")
    ActionChains(browser.driver).move_to_element_with_offset(chart, 0, 0).click().perform()
    browser.until(f"!{cards}.length")
    browser.open(page, "classes")
    browser.run("[...document.querySelectorAll('.bars button')].find((e) => e.textContent === 'pets').click()")
    browser.until(f"{cards}.length")
    assert all("pets" in each for each in browser.run(f"return {cards}"))


def test_a_line_on_a_bar_is_called_a_line(browser, page):
    browser.open(page, "classes")
    assert "The line on a bar is a 95 % interval." in browser.find("#content").text


def test_the_theme_can_be_chosen(browser, page):
    browser.open(page)
    button = "button[title='Light or dark']"
    browser.find(button).click()
    browser.find(button).click()
    assert "Dark" in browser.find(button).text
    assert browser.run("return document.documentElement.classList.contains('dark')")
    browser.run("localStorage.clear()")


def test_a_phone_needs_no_sideways_scrolling(browser, page):
    browser.open(page, width=390)
    for view in VIEWS:
        browser.view(view)
        time.sleep(0.3)
        assert browser.run("return document.documentElement.scrollWidth") <= 390, view


def test_the_page_is_used_by_the_keyboard(browser, page):
    browser.open(page)
    tab = browser.find("#tab-topics")
    tab.send_keys(Keys.ARROW_RIGHT)
    assert browser.find("#tab-documents").get_attribute("aria-selected") == "true"
    browser.driver.switch_to.active_element.send_keys(Keys.ARROW_LEFT)
    circle = browser.find("#content g[role=button][tabindex='0']")
    before = browser.find("#topic h2").text
    for key in (Keys.ARROW_RIGHT, Keys.ARROW_LEFT, Keys.ARROW_UP, Keys.ARROW_DOWN):
        circle.send_keys(key)
        if browser.find("#topic h2").text != before:
            break
    assert browser.find("#topic h2").text != before
    browser.find("button[aria-controls=edits]").send_keys(Keys.ENTER)
    next(each for each in browser.all("#edits button") if each.text == "Close").send_keys(Keys.ENTER)
    assert browser.run("return document.activeElement.getAttribute('aria-controls')") == "edits"


def test_every_control_has_a_name(browser, page):
    browser.open(page)
    for view in VIEWS:
        browser.view(view)
        time.sleep(0.3)
        nameless = browser.run(
            """
            const named = (e) => e.getAttribute('aria-label') || e.textContent.trim() || e.closest('label') || e.title;
            return [...document.querySelectorAll('button, input, select, textarea, canvas, svg[role]')]
              .filter((e) => !e.closest('[aria-hidden=true]') && !named(e)).map((e) => e.outerHTML.slice(0, 100));
            """
        )
        assert nameless == [], view


def test_a_sample_says_so_and_texts_may_be_missing(browser, small, model, tmp_path):
    write_page(tmp_path / "page.html", Topics(model, small), PageOptions(texts=False, most_documents=40))
    browser.open(tmp_path / "page.html", "documents")
    assert "40 of 151 documents" in browser.find("body").text
    browser.until("document.querySelectorAll('#content article').length > 0")
    assert "not in this page" in browser.find("#content").text
