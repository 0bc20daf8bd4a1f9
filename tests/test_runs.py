"""Runs under faults and on their way back: written whole, locked, checked by digest, and shown without PyTorch."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import topicloom as tl
from command_line import MONEY, PETS, call, refused, table
from forks import Fork, needs_fork, run_command
from topicloom.errors import InputError
from topicloom.files import lock_directory
from topicloom.reports.run import JsonLines, fit

FAST = ("--topics", 2, "--epochs", 1, "--model", "gsm", "--quiet", "--monitor", "none")


@pytest.fixture
def news(tmp_path: Path) -> Path:
    file = tmp_path / "news.csv"
    lines = [f'"{text}",{kind},2021-0{1 + n % 9}-01' for n, (text, kind) in enumerate([(PETS, "p"), (MONEY, "m")] * 20)]
    file.write_text("text,kind,when\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return file


def trained(news: Path, out: Path, *more: object) -> None:
    result = call("train", news, *FAST, "--out", out, *more)
    assert result.exit_code == 0, result.output


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_tables_hold_all_that_is_known_of_the_documents(news, tmp_path):
    trained(news, tmp_path / "run", "--label", "kind", "--timestamp", "when", "--excel")
    content = (tmp_path / "run" / "doc_topics.csv").read_bytes()
    assert content.startswith("\ufeff".encode())
    rows = table(content.decode("utf-8-sig"))
    assert list(rows[0]) == ["id", "label", "timestamp", "topic", "topic_words", "topic_0", "topic_1", "text"]
    assert (rows[1]["label"], rows[1]["timestamp"], rows[1]["text"]) == ("m", "2021-02-01T00:00:00", MONEY)
    best = tl.load(tmp_path / "run").topics(5)[int(rows[1]["topic"])]
    assert rows[1]["topic_words"] == " ".join(best)
    assert (tmp_path / "run" / "topics.csv").read_bytes().startswith("\ufeff".encode())
    assert "%" in call("topics", tmp_path / "run").stdout  # the shares are read past the mark
    found = call("infer", tmp_path / "run", news, "--label", "kind", "--no-texts")
    assert list(table(found.stdout)[0]) == ["id", "label", "topic", "topic_words", "topic_0", "topic_1"]


def test_a_failing_write_leaves_the_earlier_run(news, tmp_path, monkeypatch):
    out = tmp_path / "run"
    trained(news, out)
    before = files_of(out)

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    for name in ("write_documents", "write_metrics", "_draw"):
        with monkeypatch.context() as patch:
            patch.setattr(f"topicloom.reports.run.{name}", full)
            refused("train", news, *FAST, "--out", out, "--overwrite", says=["No space left on device"])
        after = files_of(out)
        after.pop("log.new.jsonl", None)
        checkpoints = [name for name in after if name.startswith("checkpoints/")]  # from which `--resume` goes on
        assert checkpoints
        assert {name: content for name, content in after.items() if name not in checkpoints} == before
    trained(news, out, "--resume")
    assert files_of(out)["model/model.safetensors"] == before["model/model.safetensors"]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("failing", [{2, 3}, {5, 6}])
def test_training_goes_on_while_the_log_cannot_be_written(failing, tmp_path, monkeypatch, caplog):
    appended = JsonLines.append
    calls = []

    def full(self, rows):
        calls.append(self.path)
        if len(calls) in failing:
            raise OSError(28, "No space left on device", str(self.path))
        appended(self, rows)

    monkeypatch.setattr("topicloom.reports.run.JsonLines.append", full)
    corpus = tl.datasets.synthetic_lda(30, 2, 12, random_state=0).corpus
    model = tl.GSM(n_topics=2, epochs=6, random_state=0, device="cpu")
    fit(model, corpus, tmp_path / "run")
    log = tmp_path / "run" / "log.jsonl"
    assert [json.loads(line) for line in log.read_text().splitlines()] == model.history_
    assert caplog.text.count(f"{log} cannot be written (No space left on device); training goes on") == 1


def test_other_files_of_a_run_directory_stay(news, tmp_path):
    out = tmp_path / "run"
    trained(news, out, "--doc-topics", "parquet")
    (out / "notes").mkdir()
    (out / "notes" / "mine.txt").write_text("keep")
    for name in ("topics-2.png", "topics-of-mine.png"):
        (out / name).touch()
    trained(news, out, "--overwrite", "--seed", 1)
    assert (out / "notes" / "mine.txt").read_text() == "keep"
    assert not (out / "doc_topics.parquet").exists()
    assert not (out / "topics-2.png").exists()  # a page of the earlier run
    assert (out / "topics-of-mine.png").exists()
    assert tl.load(out).random_state == 1
    assert not [path for path in out.iterdir() if path.name.startswith(".")]


@needs_fork
def test_a_killed_write_leaves_one_whole_run(news, tmp_path):
    """Whenever the process dies, the directory holds the old run or the new one, and the next call works."""
    out = tmp_path / "run"
    trained(news, out)
    process = Fork(lambda: run_command("train", news, *FAST, "--out", out, "--overwrite", "--seed", 1))
    while process.poll() is None and not list(tmp_path.glob(".run.*")):  # it has begun to write
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert tl.load(out).random_state in (0, 1)
    assert json.loads((out / "metrics.json").read_text())["documents"] == 40
    trained(news, out, "--overwrite", "--seed", 2)
    assert tl.load(out).random_state == 2


def test_one_writer_at_a_time(news, tmp_path):
    with lock_directory(tmp_path / "run"):
        refused("train", news, *FAST, "--out", tmp_path / "run", says=["is being written"])
    with lock_directory(tmp_path / "corpus"):
        refused("prepare", news, "--out", tmp_path / "corpus", says=["is being written"])
        with pytest.raises(InputError, match="is being written"):
            tl.Corpus.from_file(news, out=tmp_path / "corpus")
    trained(news, tmp_path / "run")
    with lock_directory(tmp_path / "run"):
        refused("evaluate", tmp_path / "run", says=["is being written"])
        refused("train", news, *FAST, "--out", tmp_path / "run", "--overwrite", says=["is being written"])
        refused("edit", tmp_path / "run", "--rename", "0=x", "--out", tmp_path / "run", "--overwrite", says=["being"])
    assert call("evaluate", tmp_path / "run", "--measures", "topic_diversity").exit_code == 0


def test_evaluation_knows_the_documents_of_training(news, tmp_path):
    out = tmp_path / "run"
    trained(news, out, "--no-documents")
    same = call("evaluate", out, news, "--measures", "topic_diversity")
    assert "was trained on" in same.stderr
    assert "held-out" not in same.stdout
    other = tmp_path / "other.csv"
    other.write_text("text\n" + f'"{PETS} {PETS}"\n' * 20, encoding="utf-8")
    assert "held-out" in call("evaluate", out, other, "--measures", "topic_diversity").stdout
    text = news.read_text(encoding="utf-8")
    news.write_text(text.replace(PETS, MONEY), encoding="utf-8")  # as many lines
    refused("evaluate", out, says=["has changed since training"])


def test_files_of_one_name_have_runs_of_their_own(news, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("A", "B"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "corpus.csv").write_bytes(news.read_bytes())
        assert call("train", f"{folder}/corpus.csv", *FAST).exit_code == 0
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["B-corpus", "corpus"]


def test_documents_of_another_language_are_refused(news, tmp_path):
    trained(news, tmp_path / "run")
    poems = tmp_path / "poems.txt"
    poems.write_text("床前明月光 疑是地上霜\n" * 50, encoding="utf-8")
    refused("infer", tmp_path / "run", poems, says=["50 of the first 50", "Chinese (zh)", "English (en)", "--force"])
    forced = call("infer", tmp_path / "run", poems, "--force")
    assert forced.exit_code == 0
    assert len(table(forced.stdout)) == 50


@pytest.mark.parametrize("arguments", [("train", "{news}", "--text", "body"), ("topics", "{run}"), ("models",)])
def test_what_needs_no_network_does_not_load_pytorch(arguments, news, tmp_path):
    if "{run}" in arguments:
        trained(news, tmp_path / "run")
    given = [part.format(news=news, run=tmp_path / "run") for part in arguments]
    script = (
        "import sys; from typer.testing import CliRunner; from topicloom.cli import app\n"
        "result = CliRunner().invoke(app, sys.argv[1:]); print(result.output)\n"
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", script, *given], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    if arguments[0] == "train":
        assert "no column 'body'" in done.stdout
