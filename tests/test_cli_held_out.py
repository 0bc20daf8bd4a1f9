"""`train --validation` and `train --split`: documents that a model does not learn from."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import numpy as np
import pytest
import yaml

import topicloom as tl
from command_line import MONEY, PETS, call, refused
from topicloom.training.checkpoints import Checkpoints

FAST = ("--model", "gsm", "--topics", 2, "--epochs", 4, "--set", "hidden_size=8", "--min-df", 1, "--max-df", 1.0)
PLAIN = ("--no-explorer", "--checkpoint-every", "1 epoch", "--monitor", "none")
N_DOCS = 60


def part_of(n: int) -> str:
    return {0: "val", 1: "test"}.get(n % 5, "train")


def text_of(n: int) -> str:
    return f"{MONEY} w{n % 7}a" if n % 2 else f"{PETS} w{n % 11}b"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with documents in one table with a column of parts, and in a file for each part."""
    monkeypatch.chdir(tmp_path)
    rows = [{"body": text_of(n), "id": f"d{n}", "part": part_of(n), "price": n / 2} for n in range(N_DOCS)]
    (tmp_path / "all.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    for part in ("train", "val"):
        lines = "".join(json.dumps(row) + "\n" for row in rows if row["part"] == part)
        (tmp_path / f"{part}.jsonl").write_text(lines, "utf-8")
    return tmp_path


def log_of(run: str) -> list[dict]:
    return [json.loads(line) for line in (Path(run) / "log.jsonl").read_text().splitlines()]


def weights(run: str) -> bytes:
    return (Path(run) / "model" / "model.safetensors").read_bytes()


def trained(*arguments: object, out: str) -> str:
    result = call("train", *arguments, "--text", "body", *FAST, *PLAIN, "--out", out)
    assert result.exit_code == 0, result.output
    return result.stderr


def test_a_column_divides_the_documents(place):
    said = trained("all.jsonl", "--split", "part", out="run")
    assert "36 documents for training, 12 for validation; not used: 12 for testing" in said
    corpus = tl.Corpus.from_file("all.jsonl", text="body", min_df=1, max_df=1.0)
    parts = [[n for n in range(N_DOCS) if part_of(n) == part] for part in ("train", "val")]
    model = tl.GSM(2, epochs=4, hidden_size=8, random_state=0).fit(corpus[parts[0]], validation=corpus[parts[1]])
    losses = [row["validation_loss"] for row in log_of("run")]
    np.testing.assert_allclose(losses, [row["validation_loss"] for row in model.history_], rtol=1e-6)
    held = tl.Corpus.load("run/documents")
    assert held.ids == [f"d{n}" for n in parts[0]]
    assert "part" not in held.covariates
    assert "part" not in (place / "run" / "doc_topics.csv").read_text("utf-8").splitlines()[0]
    metrics = json.loads((place / "run" / "metrics.json").read_text("utf-8"))
    assert metrics["source"] == {"path": str(place / "all.jsonl"), "reading": {"text": "body"}, "split": "part"}
    assert metrics["documents"] == 36
    trained("all.jsonl", "--split", "part", "--covariate", "part", "--covariate", "price", out="kept")
    assert list(tl.Corpus.load("kept/documents").covariates) == ["part", "price"]


def test_a_saved_corpus_is_divided_by_a_covariate(place):
    prepare = ("prepare", "all.jsonl", "--text", "body", "--min-df", 1, "--max-df", 1.0, "--out", "corpus")
    assert call(*prepare, "--covariate", "part").exit_code == 0
    trained("all.jsonl", "--split", "part", out="run")
    model = [each for each in FAST if each not in ("--min-df", 1, "--max-df", 1.0)]
    assert call("train", "corpus", *model, *PLAIN, "--split", "part", "--out", "other").exit_code == 0
    assert weights("other") == weights("run")
    assert log_of("other")[-1]["validation_loss"] == log_of("run")[-1]["validation_loss"]
    refused(
        "train", "corpus", *model, "--split", "prt", "--out", "x", says=["--split names 'prt'", "did you mean part"]
    )


def test_a_file_of_validation_documents(place):
    said = trained("train.jsonl", "--validation", "val.jsonl", out="run")
    assert "12 documents for validation\n" in said
    train = tl.Corpus.from_file("train.jsonl", text="body", min_df=1, max_df=1.0)
    validation = tl.Corpus.from_file("val.jsonl", text="body", min_df=1, max_df=1.0)
    model = tl.GSM(2, epochs=4, hidden_size=8, random_state=0).fit(train, validation=validation)
    expected = [row["validation_loss"] for row in model.history_]
    np.testing.assert_allclose([row["validation_loss"] for row in log_of("run")], expected, rtol=1e-6)
    val = [json.loads(line)["body"] for line in (place / "val.jsonl").read_text("utf-8").splitlines()]
    (place / "val.txt").write_text("\n".join(val), "utf-8")  # --text is for the training documents
    trained("train.jsonl", "--validation", "val.txt", out="plain")
    assert log_of("plain")[-1]["validation_loss"] == log_of("run")[-1]["validation_loss"]
    validation.save("validation")
    trained("train.jsonl", "--validation", "validation", out="other")
    assert log_of("other")[-1]["validation_loss"] == log_of("run")[-1]["validation_loss"]
    (place / "more.txt").write_text(f"{PETS}\nunknown\n", "utf-8")
    (place / "train.txt").write_text(f"{PETS}\n{MONEY}\n" * 9, "utf-8")
    said = call("train", "train.txt", "--validation", "more.txt", *FAST, *PLAIN, "--out", "few").stderr
    assert "2 documents for validation; without a word of the training documents, and not measured: 1\n" in said


def test_patience_stops_by_the_documents_that_are_given(place):
    longer = (*FAST, "--text", "body", "--epochs", 80, "--set", "patience=1", "--set", "learning_rate=0.2")
    assert call("train", "all.jsonl", *longer, *PLAIN, "--split", "part", "--out", "run").exit_code == 0
    losses = [row["validation_loss"] for row in log_of("run")]
    assert len(losses) < 80
    assert losses[-1] > min(losses)


@pytest.mark.parametrize("options", [("all.jsonl", "--split", "part"), ("train.jsonl", "--validation", "val.jsonl")])
def test_a_run_is_repeated_goes_on_and_is_continued(place, monkeypatch, options):
    trained(*options, out="run")
    written = yaml.safe_load((place / "run" / "train.yaml").read_text("utf-8"))
    name = options[1].removeprefix("--")
    assert written[name] == {"split": "part", "validation": str(place / "val.jsonl")}[name]
    assert call("train", "--config", "run/train.yaml", *PLAIN, "--out", "again").exit_code == 0
    assert weights("again") == weights("run")
    assert log_of("again")[-1]["validation_loss"] == log_of("run")[-1]["validation_loss"]

    command = ("train", *options, "--text", "body", *FAST, *PLAIN, "--out", "stopped")
    usual = Checkpoints.on_state
    with monkeypatch.context() as patched:

        def on_state(self, state):
            if len(state.snapshot().values["history"]) == 2:
                signal.raise_signal(signal.SIGTERM)
            usual(self, state)

        patched.setattr(Checkpoints, "on_state", on_state)
        assert call(*command).exit_code == 143
    without = [each for each in command if each not in options[1:]]
    refused(*without, "--resume", says=["other documents"])
    assert call(*command, "--resume").exit_code == 0
    assert weights("stopped") == weights("run")
    assert [row["validation_loss"] for row in log_of("stopped")] == [row["validation_loss"] for row in log_of("run")]
    assert "has finished" in call(*command, "--resume").stderr

    assert call("train", "--continue", "run", "--epochs", "+2", *PLAIN).exit_code == 0
    assert len(log_of("run")) == 6
    assert "validation_loss" in log_of("run")[-1]
    given = ("train", *options, "--text", "body", "--min-df", 1, "--max-df", 1.0)
    assert call(*given, "--continue", "again", "--epochs", "+2", *PLAIN).exit_code == 0
    assert weights("again") == weights("run")


def test_a_divided_run_is_evaluated(place):
    trained("all.jsonl", "--split", "part", out="run")
    measures = ("--measures", "document_npmi", "--json")
    found = call("evaluate", "run", *measures)
    assert (found.exit_code, found.stderr) == (0, "written to run/metrics.json\n")
    expected = tl.evaluate(tl.load("run"), tl.Corpus.load("run/documents"), measures=["document_npmi"])
    assert json.loads(found.stdout)["measures"] == expected.to_dict()["measures"]
    new = call("evaluate", "run", "all.jsonl", "--text", "body", *measures)
    assert "all.jsonl contains the documents that the model was trained on, besides others" in new.stderr
    assert "besides others" not in call("evaluate", "run", "val.jsonl", "--text", "body", *measures).stderr


def test_a_model_without_a_loss_by_epoch_leaves_validation_out(place):
    fast = ("--model", "lda", "--topics", 2, "--epochs", 2, "--min-df", 1, "--max-df", 1.0, "--text", "body", *PLAIN)
    said = call("train", "all.jsonl", *fast, "--split", "part", "--out", "run")
    assert said.exit_code == 0, said.output
    assert "36 documents for training; not used: 12 for validation (LDA has no loss by epoch), 12 for t" in said.stderr
    says = ["LDA has no loss by epoch to measure; leave --validation out"]
    refused("train", "train.jsonl", *fast, "--validation", "val.jsonl", "--out", "x", says=says)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--split", "part", "--validation", "val.jsonl"), ["--split and --validation both say", "give one of them"]),
        (("--split", "prt"), ["no record of all.jsonl has 'prt', the column of --split", "did you mean part?"]),
        (("--split", "id"), ["document 0 has 'd0' as 'id'; it should be train, validation or test"]),
        (("--validation", "-"), ["cannot be on standard input; give a file by --validation"]),
        (("--validation", "nowhere.jsonl"), ["nowhere.jsonl does not exist"]),
        (("--validation", "other.txt", "--format", "txt"), ["no document of --validation has a word"]),
    ],
)
def test_options_that_cannot_be(place, options, says):
    (place / "other.txt").write_text("nothing\n", "utf-8")
    source = ("train.txt",) if "other.txt" in options else ("all.jsonl", "--text", "body")
    (place / "train.txt").write_text(f"{PETS}\n{MONEY}\n" * 9, "utf-8")
    refused("train", *source, *FAST, *PLAIN, "--out", "x", *options, says=says)
    assert not (place / "x" / "model").exists()


def test_a_column_without_documents_to_learn_from(place):
    rows = "".join(json.dumps({"body": PETS, "part": "test"}) + "\n" for _ in range(9))
    (place / "test.jsonl").write_text(rows, "utf-8")
    says = ["no document has 'train' as 'part'"]
    refused("train", "test.jsonl", "--text", "body", *FAST, "--split", "part", "--out", "x", says=says)
    says = ["standard input: plain text has no columns for --split; give --format as csv, tsv or jsonl"]
    refused("train", "-", *FAST, "--split", "part", "--out", "x", says=says, stdin=PETS)
