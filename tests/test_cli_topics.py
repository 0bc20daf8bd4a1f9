"""The commands that show, find, edit and name the topics of a run."""

from __future__ import annotations

import errno
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import topicloom as tl
from command_line import call, refused, shown

WORDS = {
    "pets": "cat dog vet fish animal puppy",
    "money": "bank stock bond market interest money",
    "sport": "goal match team coach player league",
    "food": "bread cheese soup recipe kitchen oven",
}


def corpus_file(folder: Path, seed: int) -> Path:
    random = np.random.default_rng(seed)
    lines = []
    for n in range(120):
        kind = list(WORDS)[n % 4]
        text = " ".join(random.choice(WORDS[kind].split(), 8))
        lines.append(json.dumps({"id": f"d{n}", "text": f"{text} [b]", "when": f"2024-{1 + n % 12:02}-01"}))
    folder.mkdir(exist_ok=True)
    (folder / "news.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / "news.jsonl"


def train(file: Path, out: Path, *more: object) -> Path:
    fast = ("--model", "gsm", "--topics", 4, "--epochs", 30, "--quiet", "--monitor", "none", "--timestamp", "when")
    result = call("train", file, *fast, "--out", out, *more)
    assert result.exit_code == 0, result.output
    return out


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("topics")
    return train(corpus_file(folder, 0), folder / "run")


def topic_of(run: Path, word: str) -> int:
    return json.loads(shown("find", run, word, "--json"))["topics"][0]["topic"]


def test_documents_of_a_topic(run):
    pets = topic_of(run, "cat")
    table = shown("documents", run, pets, "-n", 3)
    assert "[b]" in table  # brackets are no markup
    assert len(table.split("\n", 1)[1].split("2024-")) == 4
    found = json.loads(shown("documents", run, pets, "--kind", "recent", "--n", 2, "--json"))
    assert [each["time"][:7] for each in found["documents"]] == ["2024-09", "2024-09"]
    assert {*found["documents"][0]} == {"document", "id", "share", "label", "time", "words", "text"}
    by_name = json.loads(shown("documents", run, found["name"], "--json"))
    assert by_name["topic"] == pets
    of_each = json.loads(shown("documents", run, "--kind", "recent", "--n", 2, "--json"))["topics"]
    assert [entry["topic"] for entry in of_each] == [0, 1, 2, 3]
    assert of_each[pets] == {name: found[name] for name in ("topic", "name", "documents")}
    assert [f"topic {k}: " in shown("documents", run, "-n", 1) for k in range(5)] == [True] * 4 + [False]
    refused("documents", run, 9, says=["there is no topic 9; the topics are 0 to 3"])
    refused("documents", run, "nobody", says=["there is no topic named 'nobody'"])
    refused("documents", run, "--", -1, says=["there is no topic -1; the topics are 0 to 3"])
    for command in ("documents", "tokens"):
        result = call(command, run, "-12")
        assert result.exit_code == 2
        assert "topics and documents are numbered from 0" in " ".join(result.output.split())
    refused("documents", run.parent / "none", 0, says=["none does not exist"])


def test_tokens_of_a_document(run):
    text = shown("tokens", run, "d0")
    assert "[b]" in text
    found = json.loads(shown("tokens", run, "d0", "--json"))
    assert found["topics"][0]["topic"] == topic_of(run, "cat")
    assert found["tokens"][0]["span"] == [0, len(found["tokens"][0]["word"])]
    assert json.loads(shown("tokens", run, 0, "--json")) == found
    assert "bank" in shown("tokens", run, "a new text about a bank")
    refused("tokens", run, 999, says=["there is no document 999; the documents are 0 to 119"])


def test_words_and_texts_are_found(run):
    assert "stock" in shown("find", run, "bank")
    found = json.loads(shown("find", run, "the coach of the team", "--n", 2, "--json"))
    assert len(found["topics"]) == 2
    assert "goal" in found["topics"][0]["words"]
    refused("find", run, "bankk", says=["the model knows no word of 'bankk'; did you mean bank"])


def test_an_edited_run_is_a_run(run, tmp_path):
    pets, money, sport = (topic_of(run, word) for word in ("cat", "bank", "goal"))
    out = tmp_path / "edited"
    text = shown("edit", run, "--out", out, "--merge", f"{pets},{money}", "--rename", f"{sport}=体育", "--quiet")
    assert text == ""
    topics = tl.Topics.from_run(out)
    assert len(topics) == 3
    assert "体育" in topics.names
    np.testing.assert_allclose(topics.documents.theta, topics.model.transform(topics.corpus), atol=1e-5)
    before = tl.Topics.from_run(run)
    np.testing.assert_allclose(
        topics.documents.theta[:, min(pets, money)], before.documents.theta[:, [pets, money]].sum(axis=1), atol=1e-5
    )
    assert "体育" in shown("topics", out)
    assert json.loads(shown("topics", out, "--json"))["topics"][topic_of(out, "goal")]["name"] == "体育"
    assert "体育" not in shown("topics", run)
    assert "name" in (out / "topics.csv").read_text(encoding="utf-8").splitlines()[0]
    about = json.loads((out / "metrics.json").read_text())
    assert about["model"] == "GSM"
    assert about["edits"][0] == {"merge": [pets, money]}
    assert about["training_seconds"] == json.loads((run / "metrics.json").read_text())["training_seconds"]
    assert (out / "log.jsonl").read_bytes() == (run / "log.jsonl").read_bytes()
    assert "perplexity_completion" in shown("evaluate", out)
    theta = shown("infer", out, run.parent / "news.jsonl").splitlines()
    assert theta[0].startswith("id,topic,topic_name,topic_words,topic_0,topic_1,topic_2,text")
    assert any(",体育," in row for row in theta)
    assert len(theta) == 121
    # Edited in place, and once more by the numbers that are shown now.
    names = str(run / "log.jsonl"), None, str(tmp_path / "new/log.jsonl")
    full = OSError(errno.ENOSPC, "No space left on device", *names)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(shutil, "copyfile", lambda *_: (_ for _ in ()).throw(full))
        refused("edit", run, "--out", tmp_path / "new", "--drop", 0, says=["new/log.jsonl: No space left on device"])
        patched.undo()
        patched.setattr("topicloom.reports.run.write_metrics", lambda *_: (_ for _ in ()).throw(full))
        refused("edit", run, "--out", tmp_path / "new", "--drop", 0, says=["No space left on device"])
    assert not (tmp_path / "new").exists()
    refused("edit", out, "--out", out, "--drop", 0, says=["already holds files", "--overwrite"])
    number = topic_of(out, "oven")
    shown("edit", out, "--out", out, "--overwrite", "--split", f"{number}:2", "--rename", "3=part", "--quiet")
    assert json.loads(shown("topics", out, "--json"))["topics"][3]["name"] == "part"
    assert len(tl.load(out).edits) == 4


def test_pictures_of_edited_runs_take_font_and_language(run, tmp_path, monkeypatch):
    styles = []
    monkeypatch.setattr(
        "topicloom.reports.run._draw",
        lambda folder, topics, options, earlier: styles.append((options.font, options.figure_language, earlier)),
    )
    style = ["--font", "My Font", "--figure-language", "zh"]
    shown("edit", run, "--rename", "0=体育", "--out", tmp_path / "a", *style, "--quiet")
    shown("name", run, "--out", tmp_path / "b", *style, "--quiet")
    shown("name", run, "--out", tmp_path / "c", "--quiet")
    assert styles == [("My Font", "zh", None), ("My Font", "zh", None), (None, "auto", run)]


@pytest.mark.draws
def test_edited_runs_keep_the_pictures_of_training(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    names = ["loss.png", "collapse.png", "quality.png"]
    for name in names:
        (tmp_path / "run" / name).write_bytes(name.encode())
    shown("edit", tmp_path / "run", "--rename", "0=体育", "--out", tmp_path / "new", "--quiet")
    assert [(tmp_path / "new" / name).read_bytes().decode() for name in names] == names
    assert (tmp_path / "new" / "topics.png").read_bytes().startswith(b"\x89PNG")  # which has the new name


def test_edits_from_a_file(run, tmp_path):
    edits = tmp_path / "edits.yaml"
    edits.write_text("edits:\n- merge: [0, 1]\n- rename: {0: both}\n", encoding="utf-8")
    found = json.loads(shown("edit", run, "--edits", edits, "--drop", 3, "--out", tmp_path / "a", "--json"))
    assert [topic["name"] for topic in found["topics"]] == ["both", None]
    assert found["edits"][2] == {"drop": [3]}
    named = json.loads(shown("edit", run, "--reduce-to", 2, "--out", tmp_path / "b", "--json"))
    assert len(named["topics"]) == 2
    from topicloom.topics.edits import write_edits

    other = train(corpus_file(tmp_path / "other", 3), tmp_path / "c", "--seed", 5)
    model = tl.load(tmp_path / "a")
    write_edits(edits, model.edits, model.origin.fingerprint)
    again = json.loads(shown("edit", run, "--edits", edits, "--out", tmp_path / "d", "--json"))
    assert again["topics"] == found["topics"]
    on_edited = json.loads(shown("edit", tmp_path / "a", "--edits", edits, "--out", tmp_path / "e", "--json"))
    assert on_edited["topics"] == found["topics"]
    refused("edit", other, "--edits", edits, "--out", tmp_path / "f", says=["belongs to another model", "--replay"])
    assert not (tmp_path / "f").exists()


def test_edits_of_two_people_are_joined(run, tmp_path):
    """At once or one after the other, in any order, they are those of one list."""
    fingerprint = tl.load(run).fingerprint

    def file(name: str, *edits: str) -> Path:
        path = tmp_path / f"{name}.yaml"
        path.write_text("\n- ".join((f"model: {fingerprint}\nedits:", *edits)) + "\n", encoding="utf-8")
        return path

    def edited(start: Path, *files: Path, out: str) -> list[dict[str, object]]:
        given = [part for path in files for part in ("--edits", path)]
        return json.loads(shown("edit", start, *given, "--out", tmp_path / out, "--json"))["topics"]

    anna = file("anna", "merge: [0, 1]", "rename: {1: both, 2: same}")
    bob = file("bob", "merge: [1, 0]", "rename: {2: same, 3: mine}")
    whole = edited(run, file("whole", "merge: [0, 1]", "rename: {0: both, 2: same, 3: mine}"), out="whole")
    assert [topic["name"] for topic in whole] == ["both", "same", "mine"]
    assert edited(run, anna, bob, out="a") == whole
    assert edited(run, bob, anna, out="b") == whole
    edited(run, anna, out="c")
    assert edited(tmp_path / "c", bob, out="d") == whole  # the edits of the run stay
    says = {
        "rename: {0: other}": "carl.yaml give topic 0 two names ('both' and 'other'); take one of them away",
        "drop: [2]": "carl.yaml drops topic 2, which ",
        "drop: [0]": "carl.yaml drops topic 0, which ",
    }
    for edit, message in says.items():
        carl = file("carl", edit)
        refused("edit", run, "--edits", anna, "--edits", carl, "--out", tmp_path / "x", says=["anna.yaml", message])
    carl = file("carl", "merge: [3]")
    refused("edit", run, "--edits", carl, "--out", tmp_path / "x", says=["carl.yaml: merge names topic 3 alone"])
    carl = file("carl", "rename: {2: x}")
    refused(
        "edit", tmp_path / "c", "--edits", carl, "--out", tmp_path / "x", says=["the run and ", "topic 2 two names"]
    )
    split = file("split", "split: 2", "rename: {4: part}")
    other = file("other", "split: 3", "rename: {4: part}")
    refused("edit", run, "--edits", split, "--edits", other, "--out", tmp_path / "x", says=["topics (4), which have"])
    assert not (tmp_path / "x").exists()


def test_edits_that_the_service_stored_are_mentioned(run, tmp_path):
    copy = Path(shutil.copytree(run, tmp_path / "a copy"))
    stored = copy / "edits.yaml"
    stored.write_text("edits:\n- merge: [0, 1]\n", encoding="utf-8")
    hint = f"to write a run with them, use topicloom edit '{copy}' --edits '{stored}' --out NEW_RUN"
    for command in (("topics",), ("documents", 0), ("find", "bank"), ("hierarchy",), ("name",)):
        assert hint in call(command[0], copy, *command[1:]).stderr
    assert hint in call("edit", copy, "--drop", 3, "--out", tmp_path / "dropped").stderr
    made = call("edit", copy, "--edits", stored, "--out", tmp_path / "made")
    assert (made.exit_code, hint in made.stderr) == (0, False)
    for text in ("edits: []\n", "no edits"):
        stored.write_text(text, encoding="utf-8")
        result = call("topics", copy)
        assert (result.exit_code, result.stderr) == (0, "")


def test_next_months_topics_get_last_months_names(run, tmp_path):
    sport = topic_of(run, "goal")
    named = tmp_path / "named"
    shown("edit", run, "--rename", f"{sport}=sports", "--out", named, "--quiet")
    may = train(corpus_file(tmp_path / "may", 7), tmp_path / "may-run", "--seed", 3)
    found = json.loads(shown("edit", may, "--replay", named, "--out", tmp_path / "may-named", "--json"))
    assert found["topics"][topic_of(may, "goal")]["name"] == "sports"
    tl.load(named).save(tmp_path / "model")  # the edited run needs no documents
    shown("edit", may, "--replay", tmp_path / "model", "--out", tmp_path / "y", "--quiet")
    assert "sports" in tl.Topics.from_run(tmp_path / "y").names
    refused("edit", may, "--replay", run, "--out", tmp_path / "x", says=["have neither names nor other edits"])
    refused("edit", may, "--replay", named, "--drop", 0, "--out", tmp_path / "x", says=["cannot be combined"])


def test_topics_are_named_by_a_rule_or_a_function(run, tmp_path, monkeypatch):
    shown_only = json.loads(shown("name", run, "--json"))
    assert all(topic["name"] for topic in shown_only["topics"])
    assert shown_only["run"] is None
    shown("name", run, "--out", tmp_path / "named", "--quiet")
    assert tl.Topics.from_run(tmp_path / "named").names == [topic["name"] for topic in shown_only["topics"]]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "naming_of_mine.py").write_text(
        f"def name(words, documents):\n    if words[0] in {WORDS['pets'].split()}:\n        raise ValueError('cats')\n"
        "    return words[0].upper()\n"
    )
    result = call("name", run, "--rule", "naming_of_mine:name", "--json")
    assert "1 of 4 topics could not be named" in result.stderr
    names = [topic["name"] for topic in json.loads(result.stdout)["topics"]]
    assert sum(name is None for name in names) == 1
    assert all(name.isupper() for name in names if name is not None)
    refused("name", run, "--rule", "naming_of_mine:other", says=["has no function 'other'"])
    refused("name", run, "--rule", "guess", says=["--rule should be one of words, phrase"])
    assert json.loads(shown("name", run, "--topics", "1", "--json"))["topics"][0]["name"] is None


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), ["there is nothing to do; give --edits, --merge"]),
        (("--merge", "0,1,2,3"), ["would leave one topic of 4"]),
        (("--merge", "a,b"), ["--merge a,b: 'a' is not the number of a topic"]),
        (("--merge", "1"), ["name at least two different topics"]),
        (("--drop", "7"), ["there is no topic 7; the topics are 0 to 3"]),
        (("--merge", "2,3", "--drop", "2"), ["--drop names topic 2, which another edit merges with 3"]),
        (("--split", "2"), ["--split 2: give a topic and the number of its parts"]),
        (("--split", "2:1"), ["--split 2:1: a topic can be divided into 2 parts or more, not into 1"]),
        (("--rename", "shipping"), ["--rename shipping: give a topic and its name"]),
        (("--rename", "1= "), ["--rename 1= : the name of topic 1 is empty; give it one, such as 3=shipping"]),
        (("--rename", "1=a", "--rename", "1=b"), ["topic 1 has two names"]),
        (("--reduce-to", "9"), ["--reduce-to should be fewer than the 4 topics"]),
        (("--edits", "none.yaml"), ["none.yaml does not exist"]),
        (("--replay", "none"), ["none does not exist; check the path"]),
    ],
)
def test_mistakes_are_one_line(run, tmp_path, options, says):
    refused("edit", run, "--out", tmp_path / "out", *options, says=says)
    assert not (tmp_path / "out").exists()


def test_a_run_without_texts_or_documents(run, tmp_path):
    file = run.parent / "news.jsonl"
    mute = train(file, tmp_path / "mute", "--no-texts")
    found = json.loads(shown("documents", mute, 0, "-n", 1, "--json"))["documents"][0]
    assert found["text"] is None
    assert found["words"]
    assert shown("tokens", mute, "d0")
    assert json.loads(shown("name", mute, "--rule", "phrase", "--json"))["topics"][0]["name"]
    bare = train(file, tmp_path / "bare", "--no-documents")
    refused("documents", bare, 0, says=["does not hold its documents", "train it again so that it keeps them"])
    refused("edit", bare, "--drop", 0, "--out", tmp_path / "x", says=["does not hold its documents"])
