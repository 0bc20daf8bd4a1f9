"""How results look in a notebook. Whatever comes from texts is escaped."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import topicloom as tl
from topicloom.display import as_text, html_table, printable
from topicloom.experiments.compare import Comparison, Recommendation
from topicloom.experiments.tune import Tuning
from topicloom.topics.table import Table

HOSTILE = "<script>alert(1)</script>&\"'"
HARMLESS = {"div", "p", "b", "table", "thead", "tbody", "tr", "th", "td", "pre", "span", "details", "summary", "style"}


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.seen.add(tag)
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def checked(value: Any) -> str:
    """The HTML of a value, whose tags are balanced and harmless; without them, it is what a person reads."""
    html = value if isinstance(value, str) else value._repr_html_()
    parser = _Tags()
    parser.feed(html)
    assert parser.open == []
    assert parser.seen <= HARMLESS
    return re.sub(r"\s+", " ", html)


@pytest.fixture(scope="module")
def corpus() -> tl.Corpus:
    tokens = [["cat", HOSTILE, "dog"] * 3, ["bank", "rate", "stock"] * 3] * 20
    return tl.Corpus.from_texts(
        tokens,
        max_df=1.0,
        ids=[f"{HOSTILE}{n}" for n in range(40)],
        labels=[HOSTILE, "money"] * 20,
        timestamps=["2024-01-31", None] * 20,
        covariates={HOSTILE: [1.5] * 40, "kind": ["a", "b"] * 20},
    )


@pytest.fixture(scope="module")
def model(corpus: tl.Corpus) -> tl.TopicModel:
    return tl.GSM(n_topics=2, epochs=3, random_state=0).fit(corpus)


def test_a_corpus(corpus):
    html = checked(corpus)
    assert "Corpus(40 documents, 6 words, 360 tokens)" in html
    assert "2024-01-31 to 2024-01-31" in html
    assert "&lt;script&gt;" in html
    assert "2 categories" in html
    assert "not kept" in html
    texts = tl.Corpus.from_texts([f"cat {HOSTILE}"] * 9, language="en", max_df=1.0)
    assert f"cat {HOSTILE.replace('<', '&lt;').split('&')[0]}" in checked(texts)
    checked(texts[:0])
    checked(tl.Corpus.from_counts(np.eye(3)))


def test_a_model(corpus, model):
    html = checked(model)
    assert "2 topics over 6 words, of 40 documents" in html
    assert "GSM(" in html
    bundle = model._repr_mimebundle_()
    assert bundle["text/html"] == model._repr_html_()
    assert bundle["text/plain"] == repr(model)
    new = tl.GSM(n_topics=2)
    assert "sk-" in new._repr_html_()  # scikit-learn's diagram
    assert new._repr_mimebundle_()["text/html"]
    checked(model.rename({0: HOSTILE}))


def test_long_settings_of_models_have_several_lines(corpus):
    model = tl.GSM(2, epochs=2, random_state=0, hidden_size=16, dropout=0.1, input_dropout=0.25, learn_shares=False)
    shown = (
        "GSM(dropout=0.1, epochs=2, hidden_size=16, input_dropout=0.25,\n"
        "    learn_shares=False, n_topics=2, random_state=0)"
    )
    assert repr(model) == shown
    edited = model.fit(corpus).rename({0: "a"})
    assert repr(edited) == f"{shown} with 1 edit: 2 topics"
    assert repr(edited.set_params(n_topics=5)) == f"{shown} with 1 edit: 2 topics"


def test_topics_and_documents(corpus, model):
    view = tl.Topics(model.rename({0: HOSTILE}), corpus)
    for value in (view, view.documents, view.documents[:0], view.hierarchy(), view.over_time(), view.by_class(),
                  view.match(view), view.word_table(), view.document_table(), view.nearest(0)):  # fmt: skip
        assert "&lt;script&gt;" in checked(value) or len(value) == 0
    assert "and 30 more documents" in checked(view.documents)


def test_evaluations_and_vectors(corpus, model):
    html = checked(tl.evaluate(model, corpus, measures=["topic_diversity", "document_npmi"]))
    assert "topic_diversity" in html
    assert "WordVectors(2 words" in checked(tl.WordVectors(["<b>", "b"], np.eye(2)))


def test_comparisons_tunings_and_recommendations(model):
    row = {"model": "<i>", "n_topics": 2, "seed": 0, "version": "1", "seconds": 1.0, "words": []}
    measures = {part: {"topic_diversity": 0.5} for part in ("validation", "test")}
    found = Comparison([row | {"measures": measures}], ["<i>"], [2], 1, {"test": 5})
    assert "0.5" in checked(found)
    assert "&lt;i&gt;" in checked(found)
    trials = [
        {"number": 0, "value": None, "settings": {"alpha": 0.1}},
        {"number": 1, "value": 0.25, "settings": {"alpha": "<i>", "hidden_size": 5}},
    ]
    tuning = Tuning({}, 0.25, trials, {"topic_diversity": 1.0}, "<i>", 2, "tpe", 0, model)
    assert "best objective 0.25" in checked(tuning)
    assert "20 topics" in checked(Recommendation(20, "Because <b>."))


def test_cells():
    cells = [None, 1.0, 0.123456, float("nan"), ["a", "b"], 3, "x"]
    assert [as_text(cell) for cell in cells] == ["", "1", "0.1235", "", "a b", "3", "x"]
    html = html_table(["a"], [[n] for n in range(100)])
    assert html.count("<tr>") == 61
    assert "and 40 more rows" in html
    assert html_table(["a"], [[n] for n in range(100)], whole=True).count("<tr>") == 101


def test_long_texts_are_cut_on_screen_and_whole_in_files(tmp_path):
    long = Table({"text": ["x" * 1_000_000, "y"], "words": [["w"] * 1_000_000, []]}, "t" * 1_000_000)
    assert len(long._repr_html_()) < 5_000
    assert len(repr(long)) < 10_000
    for name in ("table.html", "table.md", "table.csv"):
        long.save(tmp_path / name)
        assert "x" * 1_000_000 in (tmp_path / name).read_text(encoding="utf-8")


AWKWARD = "a\x00b\x1b[31mc\x9b31md\x7f\u202ee\u2066f\ud800g\u2028h\ri"


def test_what_is_shown_cannot_change_a_page_or_a_terminal():
    assert printable(AWKWARD) == "a b [31mc 31md ef g h i"
    assert printable("中文　é\xa0\u200d\t\n🏳️‍🌈") == "中文　é\xa0\u200d\t\n🏳️‍🌈"
    found = Table({AWKWARD: [AWKWARD, "x"]}, AWKWARD)
    corpus = tl.Corpus.from_counts(
        np.ones((4, 2)), [AWKWARD.split("\ud800")[0], "<b>"], labels=[AWKWARD.replace("\ud800", "")] * 4
    )
    view = tl.Topics(tl.GSM(2, epochs=1, random_state=0).fit(corpus), corpus)
    for value in (found, corpus, view, view.model, view.table(), view.hierarchy(), view.topics_of(0)):
        for text in (value._repr_html_(), repr(value)):
            assert not set(text) & set("\x00\x1b\x9b\x7f\u202e\u2066\ud800\u2028\r"), type(value)
