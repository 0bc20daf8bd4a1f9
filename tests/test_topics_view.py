"""Topics together with documents: what a person sees of a fitted model, from memory and from a run directory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import topicloom as tl
from test_cli import MONEY, PETS, call, refused

KINDS = [("pets", PETS), ("money", MONEY)]


@pytest.fixture(scope="module")
def news(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("news") / "news.jsonl"
    rows = [
        {"id": f"d{n}", "text": KINDS[n % 2][1], "label": KINDS[n % 2][0], "timestamp": f"2021-0{1 + n % 9}-01"}
        for n in range(60)
    ]
    rows.append({"id": "d60", "text": "", "label": "", "timestamp": ""})
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


FAST = ("--model", "gsm", "--topics", 3, "--epochs", 2, "--quiet", "--monitor", "none")


@pytest.fixture(scope="module")
def run(news: Path) -> Path:
    out = news.parent / "run"
    result = call("train", news, *FAST, "--label", "label", "--timestamp", "timestamp", "--out", out)
    assert result.exit_code == 0, result.output
    return out


def test_a_run_keeps_its_documents(run):
    topics = tl.Topics.from_run(run)
    assert (len(topics), len(topics.corpus), len(topics.names)) == (3, 61, 3)
    assert topics.documents.texts is not None
    assert topics.documents.texts[1] == MONEY
    assert topics.corpus.labels is not None
    assert topics.corpus.labels[:2] == ["pets", "money"]
    assert topics.corpus.times is not None
    assert topics.documents.empty.tolist() == [False] * 60 + [True]
    model = tl.load(run)
    np.testing.assert_allclose(topics.documents.theta, model.transform(topics.corpus), atol=1e-6)
    np.testing.assert_allclose(topics.components, model.components_, atol=1e-7)
    assert topics.model.topics() == model.topics()


def test_a_view_in_memory_is_that_of_the_run(run):
    stored = tl.Topics.from_run(run)
    view = tl.Topics(tl.load(run), stored.corpus)
    np.testing.assert_allclose(view.shares, stored.shares, atol=1e-6)
    assert view.names == stored.names
    assert dict(view.words_of(2, 5)) == pytest.approx(dict(stored.words_of(2, 5)))
    texts = tl.Topics(tl.load(run), [PETS, MONEY, ""])
    assert texts.documents.empty.tolist() == [False, False, True]


def test_the_table_has_a_row_for_each_topic(run):
    topics = tl.Topics.from_run(run)
    table = topics.topic_table(n_words=4)
    assert table["topic"].tolist() == [0, 1, 2]
    assert table["documents"].sum() == 60  # the empty document has no main topic
    assert table["share"].sum() == pytest.approx(1)
    assert [len(words) for words in table["words"]] == [4, 4, 4]
    assert [word for word, _ in topics.words_of(1, 4)] == table["words"][1]


def test_words_and_topics_are_found_without_pytorch(run):
    script = (
        "import sys, topicloom as tl\n"
        f"topics = tl.Topics.from_run({str(run)!r})\n"
        "topics.topic_table(); topics.words_of(0); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


def test_topics_that_do_not_exist_are_refused(run):
    topics = tl.Topics.from_run(run)
    with pytest.raises(tl.InputError, match=r"there is no topic 3; the topics are 0 to 2"):
        topics.words_of(3)
    with pytest.raises(tl.InputError, match=r"there is no topic -1"):
        topics.words_of(-1)
    with pytest.raises(tl.InputError, match=r"there is no topic named 'sports'"):
        topics.words_of("sports")
    with pytest.raises(tl.InputError, match="number or the name of a topic; it is True"):
        topics.words_of(True)
    assert topics.words_of(topics.names[2]) == topics.words_of(2)


def test_runs_without_documents_or_texts(news, tmp_path):
    call("train", news, *FAST, "--out", tmp_path / "bare", "--no-documents")
    assert not (tmp_path / "bare" / "documents").exists()
    with pytest.raises(tl.InputError, match=r"does not hold its documents .* train it again without --no-documents"):
        tl.Topics.from_run(tmp_path / "bare")
    call("train", news, *FAST, "--out", tmp_path / "mute", "--no-texts")
    assert tl.Topics.from_run(tmp_path / "mute").documents.texts is None
    # The folder comes and goes with the run that it belongs to.
    assert call("train", news, *FAST, "--out", tmp_path / "bare", "--overwrite").exit_code == 0
    assert len(tl.Topics.from_run(tmp_path / "bare").documents) == 61
    assert call("train", news, *FAST, "--out", tmp_path / "bare", "--overwrite", "--no-documents").exit_code == 0
    assert not (tmp_path / "bare" / "documents").exists()


def test_a_folder_of_the_users_own_documents_is_not_replaced(news, tmp_path):
    own = tmp_path / "run" / "documents"
    own.mkdir(parents=True)
    (own / "letter.txt").write_text("mine")
    refused("train", news, *FAST, "--out", tmp_path / "run", "--overwrite", says=["holds files that no run wrote"])
    assert (own / "letter.txt").read_text() == "mine"


def test_documents_of_another_model_are_refused(run, tmp_path, news):
    call("train", news, *FAST, "--topics", 2, "--out", tmp_path / "two")
    (tmp_path / "two" / "documents" / "theta.npy").write_bytes((run / "documents" / "theta.npy").read_bytes())
    with pytest.raises(tl.InputError, match="does not belong to the model"):
        tl.Topics.from_run(tmp_path / "two")


def test_large_corpora_are_kept_only_on_demand(news, tmp_path, monkeypatch):
    from topicloom.topics import stored

    monkeypatch.setattr(stored, "_MOST_BYTES", 100)
    result = call("train", news, *[each for each in FAST if each != "--quiet"], "--out", tmp_path / "large")
    assert "--documents keeps them" in result.stderr
    assert not (tmp_path / "large" / "documents").exists()
    call("train", news, *FAST, "--out", tmp_path / "kept", "--documents")
    assert (tmp_path / "kept" / "documents" / "corpus.json").is_file()
