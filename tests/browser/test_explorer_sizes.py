"""The explorer's page of many topics and of a single document."""

from __future__ import annotations

import pytest

pytest.importorskip("selenium", reason="selenium is not installed (the extra browser)")

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
