"""Names of topics: by rules without a model, by a function, and by a server on this machine."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import topicloom as tl
from stub_service import StubHandler, served
from topicloom.ranking import distinct_words
from topicloom.topics.naming import distinct, names_by_phrase, names_by_words, phrases_of
from topicloom.topics.saved import SavedTopics

TEXTS = {
    "bank": "The Central Bank of England raised interest rates, said the governor of the central bank",
    "match": "The football club won the cup final; fans of the football club sang",
    "virus": "Health workers gave vaccines against the virus, and health workers rested",
}


@pytest.fixture(scope="module")
def topics() -> tl.Topics:
    corpus = tl.Corpus.from_texts(list(TEXTS.values()) * 20, language="en", min_df=2, max_df=1.0)
    return tl.Topics(tl.LDA(n_topics=3, epochs=20, random_state=0, device="cpu").fit(corpus), corpus)


def topic_of(topics: tl.Topics, kind: str) -> int:
    return int(topics.documents.theta[list(TEXTS).index(kind)].argmax())


def test_words_that_other_topics_have_little_of_are_names(topics):
    named = topics.name()
    assert len(set(named.names)) == 3
    for k, name in enumerate(named.names):
        words = name.split(", ")
        assert len(words) == 3
        assert set(words) <= {word for word, _ in topics.words_of(k, 30)}
    assert set(named.names[topic_of(topics, "virus")].split(", ")) <= set(
        TEXTS["virus"].lower().replace(",", "").split()
    )
    assert named.model.edits[-1]["rename"][0] == named.names[0]


def test_names_of_topics_with_the_same_first_words_differ():
    vocabulary = ["jetblue", "know", "like", "flight", "seat", "bag"]
    beta = [[0.4, 0.2, 0.15, 0.1, 0.1, 0.05], [0.3, 0.19, 0.14, 0.13, 0.12, 0.12], [0.2, 0.1, 0.1, 0.05, 0.05, 0.5]]
    topics = SavedTopics(np.array(beta), vocabulary, np.full(6, 1e6))
    assert topics.topic_names == ["jetblue, know, like", "flight, seat, jetblue", "bag, jetblue, know"]
    assert replace(topics, names=[None, "seats", None]).topic_names[1:] == ["seats", "bag, flight, seat"]


@pytest.mark.parametrize("seed", range(5))
def test_no_topic_would_swap_a_word_of_its_name(seed):
    rng = np.random.default_rng(seed)
    words = [rng.permutation(14)[:8].tolist() for _ in range(5)]
    weights = [np.sort(rng.random(8))[::-1].tolist() for _ in range(5)]
    found = distinct_words(words, weights, 2, fill=False)
    owner = {word: k for k, chosen in enumerate(found) for word in chosen}
    assert len(owner) == sum(map(len, found))  # no word twice
    for k, (own, by) in enumerate(zip(words, weights, strict=True)):
        for word, weight in zip(own, by, strict=True):
            wants = len(found[k]) < 2 or own.index(word) < max(map(own.index, found[k]))
            if word not in found[k] and wants:  # the topic that has it gives it a higher weight
                other = owner[word]
                assert weights[other][words[other].index(word)] > weight


def test_no_two_topics_are_named_by_one_phrase():
    bank, club = (("central", "bank"), "central bank"), (("football", "club"), "football club")
    both = [[bank]] * 5 + [[club]] * 4
    names = names_by_phrase([both, [[bank]] * 4 + [[club]] * 4, [[]] * 60], ["a", "b", "c"])
    assert sorted(names) == ["c", "central bank", "football club"]


def test_names_leave_out_common_and_rare_words():
    components = np.array([[0.4, 0.25, 0.2, 0.1, 0.05, 0.0], [0.5, 0.0, 0.0, 0.0, 0.0, 0.5]])
    words = ["both", "own", "next", "third", "rare", "other"]
    names = names_by_words(components, [[0, 4, 3, 2, 1], [0, 5]], words)
    assert names == ["own, next, third", "other, both"]


def test_names_leave_out_common_and_rare_phrases():
    release, bank, club = ((tuple(form.split()), form) for form in ("press release", "central bank", "football club"))
    titled = (bank[0], "Central Bank")
    documents = [[[release, bank], [release, titled], [release, titled], [release]], [[release]] * 2 + [[club]] * 2]
    assert names_by_phrase(documents, ["first", "second"]) == ["Central Bank", "second"]


def test_phrases_are_names_as_they_are_written(topics):
    named = topics.name("phrase")
    assert named.names[topic_of(topics, "match")] == "football club"
    assert named.names[topic_of(topics, "virus")].casefold() == "health workers"
    assert "bank" in named.names[topic_of(topics, "bank")].casefold()


def test_phrases_do_not_cross_punctuation():
    known = frozenset({"central", "bank", "england", "rates"})
    found = {
        form for _, form in phrases_of("Central Bank of England: rates", ["central", "bank", "england", "rates"], known)
    }
    assert found == {"Central Bank", "Central Bank of England", "Bank of England"}


def test_chinese_names():
    pytest.importorskip("rjieba")
    texts = ["中央银行降低了利率，中央银行的行长表示股票上涨", "足球俱乐部赢得了比赛，足球俱乐部的球迷庆祝冠军"] * 20
    corpus = tl.Corpus.from_texts(texts, language="zh", min_df=1, max_df=1.0)
    topics = tl.Topics(tl.LDA(n_topics=2, epochs=20, random_state=0, device="cpu").fit(corpus), corpus)
    football = int(topics.documents.theta[1].argmax())
    assert "足球" in topics.name("phrase").names[football]
    assert " " not in topics.name("phrase").names[football]
    assert len(topics.name("words").names[football].split(", ")) == 3


def test_a_function_gets_words_and_documents(topics):
    seen = []

    def namer(words: list[str], documents: list[str]) -> str:
        seen.append((words, documents))
        return f'  "{words[0].title()}"\n'

    named = topics.name(namer, n_words=4, n_documents=2, length=40)
    assert named.names == [words[0].title() for words, _ in seen]
    assert [len(words) for words, _ in seen] == [4, 4, 4]
    assert all(len(documents) == 2 and len(documents[0]) <= 42 for _, documents in seen)


def test_a_naming_function_that_fails_once_spoils_no_others(topics, caplog):
    bank = topic_of(topics, "bank")
    before = topics.names[bank]

    def namer(words: list[str], documents: list[str]) -> str:
        if "Bank" in documents[0]:
            raise RuntimeError("the server\nis busy")
        return "a name"

    with caplog.at_level("WARNING", logger="topicloom"):
        named = topics.name(namer)
    assert named.names[bank] == before
    assert sorted(name for k, name in enumerate(named.names) if k != bank) == ["a name", "a name (2)"]
    (record,) = caplog.records
    assert record.getMessage() == (
        f"1 of 3 topics could not be named and keeps its name ({bank}); the first error was "
        "RuntimeError: the server is busy"
    )


@pytest.mark.parametrize("bad", ["", "  ", None, 7, "x" * 300])
def test_a_bad_name_is_a_failure(topics, caplog, bad):
    with caplog.at_level("WARNING", logger="topicloom"):
        named = topics.name(lambda words, documents: bad)
    assert named.names == topics.names
    assert "3 of 3 topics could not be named" in caplog.text


def test_given_names_stay(topics):
    named = topics.rename({1: "mine"})
    assert named.name().names[1] == "mine"
    assert named.name(lambda words, documents: "mine").names == ["mine (2)", "mine", "mine (3)"]
    assert named.name(lambda words, documents: "new", topics=[1]).names[1] == "new"
    assert named.name(lambda words, documents: "new", topics=["mine"]).names[1] == "new"
    with pytest.raises(tl.InputError, match="there is no topic 3"):
        topics.name(topics=[3])
    with pytest.raises(tl.InputError, match="`rule` should be one of words, phrase, or a function"):
        topics.name("guess")


def test_names_are_made_distinct():
    assert distinct({0: "a", 1: "a", 2: "b", 3: "a"}, ["b"]) == {0: "a", 1: "a (2)", 2: "b (2)", 3: "a (3)"}


# The example, with a server on this machine.


class _Server(StubHandler):
    asked: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        body = self.body()
        self.asked.append(body)
        question = body["messages"][0]["content"]
        if self.path != "/v1/chat/completions" or "- Health workers" in question:
            self.send_error(503)
            return
        content = "**Football**" if "cup final" in question else "中央银行"
        self.respond(200, {"choices": [{"message": {"role": "assistant", "content": content}}]})


@pytest.fixture
def server() -> Iterator[str]:
    _Server.asked.clear()
    with served(_Server) as address:
        yield address


def test_a_server_names_topics(topics, server, caplog):
    path = Path(__file__).parents[1] / "examples" / "name_topics.py"
    spec = importlib.util.spec_from_file_location("name_topics", path)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    with caplog.at_level("WARNING", logger="topicloom"):
        named = topics.name(example.ChatNamer(server, model="small"))
    assert named.names[topic_of(topics, "match")] == "Football"
    assert named.names[topic_of(topics, "bank")] == "中央银行"
    virus = topic_of(topics, "virus")
    assert named.names[virus] == topics.names[virus]
    assert "503" in caplog.text
    assert len(_Server.asked) == 3
    assert _Server.asked[0]["model"] == "small"
