"""The model card of a saved model says what the model is, and no word in it is markup."""

from __future__ import annotations

import re

import pytest
import yaml

import topicloom as tl

TEXTS = ["cat dog cat bird", "rain sun rain wind", "cat dog <b> a|b", "sun wind a|b <b>"] * 10


@pytest.fixture(scope="module")
def model() -> tl.GSM:
    return tl.GSM(2, epochs=2, random_state=0, batch_size=16).fit([text.split() for text in TEXTS])


def test_a_card_has_sizes_topics_and_changed_settings(model, tmp_path):
    model.save(tmp_path / "m")
    card = (tmp_path / "m" / "README.md").read_text(encoding="utf-8")
    head, body = re.fullmatch(r"---\n(.*?)---\n(.*)", card, re.DOTALL).groups()
    assert yaml.safe_load(head) == {"library_name": "topicloom", "tags": ["topic-model", "GSM"]}
    assert "| documents | 40 |" in body
    assert f"| tokens in the vocabulary | {sum(len(text.split()) for text in TEXTS)} (" in body
    said = dict(re.findall(r"^- `(\w+)`: `(.*)`$", body, re.MULTILINE))
    assert said == {"n_topics": "2", "epochs": "2", "batch_size": "16", "random_state": "0"}


def test_words_in_a_card_are_no_markup(model, tmp_path):
    model.save(tmp_path / "m")
    card = (tmp_path / "m" / "README.md").read_text(encoding="utf-8")
    assert "<b>" not in card
    assert card.count("&lt;b&gt;") == 2
    rows = [line for line in card.split("\n") if re.match(r"\| \d \|", line)]
    assert [len(re.findall(r"(?<!\\)\|", row)) for row in rows] == [3, 3]


def test_the_owner_of_a_model_may_change_its_card(model, tmp_path):
    place = tmp_path / "m"
    model.save(place)
    (place / "README.md").write_text("# Mine\n", encoding="utf-8")
    assert tl.load(place).topics() == model.topics()
    model.save(place, overwrite=True)
    (place / "README.md").unlink()
    assert tl.load(place).topics() == model.topics()
