"""Names and ratings of topics by a language model, against a stub on this machine."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import topicloom as tl
from command_line import call, refused, shown
from stub_service import StubHandler, served, without_waiting
from topicloom.errors import InputError, SettingError
from topicloom.text.services import Service
from topicloom.topics.edits import moves_in_words
from topicloom.topics.language_model import LanguageModel, LanguageModelAnswers
from topicloom.topics.rating import document_questions

WORDS = {
    "pets": "cat dog vet fish animal puppy kitten paw",
    "money": "bank stock bond market interest coin loan price",
    "sport": "goal match team coach player league score cup",
    "food": "bread cheese soup recipe kitchen oven sugar salt",
}
KIND = {word: kind for kind, words in WORDS.items() for word in words.split()}


class Chat(StubHandler):
    """A chat on this machine: `answers` makes the answer of a request, a status and what is sent."""

    answers: ClassVar[Callable[[str, dict[str, Any]], Any]]
    seen: ClassVar[list[tuple[str, Any, dict[str, Any]]]] = []
    usage: ClassVar[dict[str, int] | None] = {"prompt_tokens": 100, "completion_tokens": 7}

    def do_POST(self) -> None:
        body = self.body()
        self.seen.append((self.path, self.headers.get("Authorization"), body))
        made = Chat.answers(body["messages"][-1]["content"], body)
        status, text = made if isinstance(made, tuple) else (200, made)
        answer = {"choices": [{"message": {"content": text}}], **({"usage": self.usage} if self.usage else {})}
        self.respond(status, answer if status == 200 else {"error": {"message": text}})


@pytest.fixture
def chat(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of the stub, which knows the kinds of words."""
    without_waiting(monkeypatch)
    Chat.answers, Chat.seen, Chat.usage = knowing, [], {"prompt_tokens": 100, "completion_tokens": 7}
    with served(Chat) as address:
        yield address


def kind_of(text: str) -> str:
    """The kind of most words of a text."""
    kinds = [KIND[word] for word in re.findall(r"\w+", text) if word in KIND]
    return max(sorted(set(kinds)), key=kinds.count)


def items(question: str) -> list[str]:
    return re.search(r"^Words: (.*)$", question, re.MULTILINE)[1].split(", ")


def documents(question: str) -> list[str]:
    return re.findall(r"^\d+\. (.*)$", question, re.MULTILINE)


def topic_words(question: str) -> str:
    return re.search(r"important first: (.*)$", question, re.MULTILINE)[1]


def knowing(question: str, body: dict[str, Any]) -> Any:
    """Answer as a reader who knows all words."""
    if "does not belong" in question:
        kind = kind_of(" ".join(items(question)))
        return json.dumps({"word": next(word for word in items(question) if KIND[word] != kind)})
    if "Which documents" in question:
        kind = kind_of(topic_words(question))
        fits = [n for n, text in enumerate(documents(question), 1) if kind_of(text) == kind]
        return f"<think>{{ no }}</think>```json\n{json.dumps({'documents': fits})}\n```"
    kind = kind_of(topic_words(question))
    return json.dumps({"name": f'"{kind} news"', "sentence": f"About {kind}."})


@pytest.fixture(scope="module")
def topics() -> tl.Topics:
    random = np.random.default_rng(0)
    texts = [" ".join(random.choice(WORDS[list(WORDS)[n % 4]].split(), 12)) for n in range(160)]
    return tl.Topics(tl.LDA(4, random_state=0).fit(tl.Corpus.from_texts(texts, language="en")), texts)


def fresh(topics: tl.Topics) -> tl.Topics:
    """The same topics without answers."""
    return tl.Topics.of(topics.model, topics.corpus, topics.documents)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("language-model")
    random = np.random.default_rng(1)
    lines = [" ".join(random.choice(WORDS[list(WORDS)[n % 4]].split(), 12)) for n in range(120)]
    (folder / "texts.txt").write_text("\n".join(lines), encoding="utf-8")
    shown("train", folder / "texts.txt", "--model", "lda", "--topics", 4, "--out", folder / "run", "--quiet")
    return folder / "run"


def test_names_and_sentences_come_from_the_service(topics, chat, monkeypatch, caplog):
    monkeypatch.setenv("TOPICLOOM_LLM_KEY", "secret")
    caplog.set_level("INFO", "topicloom")
    named = fresh(topics).name(llm=chat, model="small")
    kinds = [kind_of(" ".join(words)) for words in topics.model.topics(8)]
    assert named.names == [f"{kind} news" for kind in kinds]
    assert named.sentences == [f"About {kind}." for kind in kinds] == list(named.table()["sentence"])
    assert {(path, key) for path, key, _ in Chat.seen} == {("/v1/chat/completions", "Bearer secret")}
    assert all("in English (en)" in body["messages"][1]["content"] for *_, body in Chat.seen)
    assert all(len(documents(body["messages"][1]["content"])) == 5 for *_, body in Chat.seen)
    first, last = caplog.messages[0], caplog.messages[-1]
    assert first.startswith("the words of 4 topics and parts of up to 5 documents of each are sent to 127.0.0.1:")
    assert "400 tokens of prompts and 28 of answers" in last
    merged = named.merge([0, 1])
    assert merged.sentences == [None, *named.sentences[2:]]  # its words are others


def test_one_failure_does_not_lose_the_others(topics, chat, caplog):
    def failing(question: str, body: dict[str, Any]) -> Any:
        text = body["messages"][1]["content"]
        return "no idea" if kind_of(topic_words(text)) == "food" else knowing(text, body)

    Chat.answers, Chat.usage = failing, None
    caplog.set_level("INFO", "topicloom")
    named = fresh(topics).name(llm=chat, model="small", name_language="de", n_documents=0)
    assert sorted(filter(None, named.given_names)) == ["money news", "pets news", "sport news"]
    assert "1 of 4 topics got no usable answer" in caplog.text
    assert "contains no JSON object" in caplog.text
    assert "does not say how many tokens" in caplog.text
    assert len(Chat.seen) == 6  # two further attempts
    again = next(body["messages"] for *_, body in Chat.seen if len(body["messages"]) > 2)
    assert "Answer again" in again[-1]["content"]
    assert not documents(Chat.seen[0][2]["messages"][1]["content"])
    assert "in German (de)" in Chat.seen[0][2]["messages"][1]["content"]


def test_busy_services_are_asked_again(topics, chat):
    plan = [(429, "slow down"), (503, "busy")]
    Chat.answers = lambda question, body: plan.pop() if plan else knowing(question, body)
    assert all(fresh(topics).name(llm=chat, model="small").given_names)


def test_a_long_wait_for_a_service_is_said_once(chat, monkeypatch, caplog):
    monkeypatch.setattr("topicloom.text.services.time.sleep", lambda seconds: None)
    monkeypatch.setattr("topicloom.text.services._FIRST_PAUSE", 1.0)
    plan = [(503, "busy")] * 5
    Chat.answers = lambda question, body: plan.pop() if plan else "fine"
    service = Service(chat, "/chat/completions", "TOPICLOOM_LLM_KEY", "a language model")
    assert b"fine" in service.answer({"messages": [{"content": "?"}, {"content": "?"}]})
    (line,) = caplog.messages
    assert "does not answer (503" in line
    assert "again for up to 120 seconds" in line


def test_models_of_a_fixed_temperature_are_asked_without(topics, chat):
    def fixed(question: str, body: dict[str, Any]) -> Any:
        return (400, "temperature is not supported") if "temperature" in body else knowing(question, body)

    Chat.answers = fixed
    assert all(fresh(topics).name(llm=chat, model="small").given_names)


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (401, "give the key by TOPICLOOM_LLM_KEY"),
        (404, "check the address and the model's name"),
        (400, "check the model's name"),
    ],
)
def test_services_that_refuse_end_it(topics, chat, status, says):
    Chat.answers = lambda question, body: (status, "no")
    with pytest.raises(InputError, match=says):
        fresh(topics).name(llm=chat, model="small")
    assert len(Chat.seen) <= 5


def test_bad_arguments_are_refused(topics, chat):
    for arguments, says in (
        ({"llm": "localhost:1"}, "should be an address such as http"),
        ({"llm": chat}, "give `model`"),
        ({"llm": chat, "model": "m", "rule": "phrase"}, "give one of them"),
        ({"llm": chat, "model": "m", "name_language": "xx"}, "`name_language='xx'` is not known"),
        ({"llm": chat, "model": "m", "timeout": 0}, "above 0"),
        ({"llm": chat, "model": "m", "timeout": "5"}, "above 0"),
        ({"llm": chat, "model": "m", "timeout": float("inf")}, "at most a day"),
        ({"model": "m"}, "needs a language model; give `llm`"),
    ):
        with pytest.raises(SettingError, match=says):
            fresh(topics).name(**arguments)
    assert not Chat.seen


def test_a_reader_who_knows_all_is_always_right(topics, chat):
    found = fresh(topics).rate(chat, ["one", "two"], n_questions=3, repeats=2)
    assert len(found.answers) == 2 * 4 * (3 * 2 + 2)
    for row in found.summary():
        assert (row["right"], row["low"], row["high"]) == (1, 1, 1)
        assert (row["repeats_agree"], row["models_agree"]) == (1, 1)
    for *_, body in Chat.seen:
        question = body["messages"][1]["content"]
        if "does not belong" in question:
            kinds = sorted([KIND[word] for word in items(question)].count(kind) for kind in WORDS)
            assert kinds == [0, 0, 1, 5]
        else:
            kinds = [kind_of(text) for text in documents(question)]
            assert kinds.count(kind_of(topic_words(question))) == 3
            assert len(kinds) == 6


def test_shares_and_agreement_are_those_of_the_answers(topics, chat):
    """A model that always takes the first item; the oracle counts what the stub saw."""

    def first(question: str, body: dict[str, Any]) -> Any:
        return json.dumps({"word": items(question)[0].upper()} if "does not belong" in question else {"documents": [1]})

    Chat.answers = first
    found = fresh(topics).rate(chat, "small", n_questions=2, repeats=3, random_state=5)
    right, fit = [], []
    taken: dict[Any, list[str]] = {}
    for *_, body in Chat.seen:
        question = body["messages"][1]["content"]
        if "does not belong" in question:
            words = items(question)
            right.append(KIND[words[0]] != kind_of(" ".join(words)))
            taken.setdefault(tuple(sorted(words)), []).append(words[0])
        else:
            kinds = [kind_of(text) == kind_of(topic_words(question)) for text in documents(question)]
            fit += [kinds[0], *(not each for each in kinds[1:])]
    rows = {row["kind"]: row for row in found.summary()}
    assert rows["word_intrusion"]["right"] == pytest.approx(np.mean(right))
    assert rows["document_fit"]["right"] == pytest.approx(np.mean(fit))
    # The same question in the same order by chance is asked once, so that the stub sees fewer than 3 orders.
    full = [words for words in taken.values() if len(words) == 3]
    equal = [a == b for x in full for a, b in ((x[0], x[1]), (x[0], x[2]), (x[1], x[2]))]
    if len(full) == 8:
        assert rows["word_intrusion"]["repeats_agree"] == pytest.approx(np.mean(equal))
    assert rows["word_intrusion"]["models_agree"] is None


def test_a_run_keeps_answers_and_asks_nothing_twice(stored, chat, tmp_path):
    first = json.loads(shown("name", stored, "--llm", chat, "--model", "small", "--json"))
    n_asked = len(Chat.seen)
    assert n_asked == 4
    out = tmp_path / "named"
    shown("name", stored, "--llm", chat, "--model", "small", "--out", out, "--quiet")
    assert len(Chat.seen) == n_asked
    again = json.loads(shown("topics", out, "--json"))["topics"]
    assert [(row["name"], row["sentence"]) for row in again] == [
        (row["name"], row["sentence"]) for row in first["topics"]
    ]
    assert "About" in shown("topics", out)
    rated = json.loads(shown("rate", out, "--llm", chat, "--model", "a", "--model", "b", "--json"))
    kept = json.loads((out / "language_model.json").read_text(encoding="utf-8"))
    assert kept["ratings"][0]["summary"] == rated["summary"]
    prompts = {row["prompt"] for row in rated["answers"]}
    assert prompts <= kept["answers"].keys()
    edited = tmp_path / "edited"
    shown("edit", out, "--merge", "1,2", "--out", edited, "--quiet")
    assert json.loads((edited / "language_model.json").read_text(encoding="utf-8"))["ratings"] == []
    assert tl.Topics.from_run(edited).sentences == [again[0]["sentence"], None, again[3]["sentence"]]
    damaged = json.loads((edited / "language_model.json").read_text(encoding="utf-8"))
    damaged["sentences"][0]["sentence"] = "another"
    (edited / "language_model.json").write_text(json.dumps(damaged), encoding="utf-8")
    refused("topics", edited, says=["language_model.json"])


def test_a_run_keeps_no_ratings_of_its_edited_topics(stored, chat, tmp_path):
    run = shutil.copytree(stored, tmp_path / "run")
    view = tl.Topics.from_run(run)
    view.rate(chat, "small", n_documents=0)
    view.merge([0, 1]).rate(chat, "small", n_documents=0)
    (kept,) = json.loads((run / "language_model.json").read_text(encoding="utf-8"))["ratings"]
    assert len(kept["topics"]) == view.n_topics


@pytest.mark.parametrize("answer", ['{"name": ' + "[" * 3000, '{"name": "", "sentence": "x"}', '{"name": "x"}'])
def test_answers_of_another_form_are_refused(topics, chat, answer):
    Chat.answers = lambda question, body: answer
    with pytest.raises(InputError, match="the answer of small cannot be used"):
        fresh(topics).name(llm=chat, model="small", topics=[0])
    with pytest.raises(SettingError, match="needs the name of a model"):
        fresh(topics).rate(chat, None)


def test_documents_are_asked_about_as_they_are():
    text = "Documents about the topic: none"
    (question,) = document_questions({0: [1]}, {(0, 1): text, (0, 2): text}, {0: [2]}, [["cat"]], 1, 0)
    assert documents(question.text) == [text, text]


def test_ratings_are_printed_with_their_agreement(stored, chat):
    text = shown("rate", stored, "--llm", chat, "--model", "small", "--documents", 0, "--topics", "0,1")
    assert "small finds the word that does not belong in 100%" in text
    assert "agreement between orders" in text
    assert "documents that fit" not in text
    refused("rate", stored, "--llm", "nowhere", "--model", "m", says=["--llm"])


def test_what_leaves_the_machine_is_a_warning(caplog):
    LanguageModel("https://example.org/v1", "m", LanguageModelAnswers()).announce("the words of 2 topics")
    assert caplog.records[0].levelname == "WARNING"
    assert "sent to example.org (model m); they leave this machine" in caplog.messages[0]


def test_changed_numbers_are_said(stored, tmp_path):
    result = call("edit", stored, "--merge", "0,2", "--out", tmp_path / "merged")
    assert "the numbers of topics changed: 3 is 2" in result.stderr
    assert "was" in result.stdout.splitlines()[0]
    assert "0+2" in result.stdout
    found = json.loads(shown("edit", stored, "--drop", "0", "--out", tmp_path / "dropped", "--json"))
    assert found["numbers"] == [None, 0, 1, 2]
    assert moves_in_words([0, 1, 2]) == ""
    assert moves_in_words([0, None, 1, 2, 0, 3]) == "2 to 3 are 1 to 2, 5 is 3"
