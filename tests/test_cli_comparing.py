"""The commands that fit many models: compare and tune."""

import json

import pytest
import yaml

from test_cli import MONEY, PETS, call, refused


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    file = tmp_path_factory.mktemp("data") / "pets.jsonl"
    rows = [{"text": text, "label": f"l{n % 2}"} for n, text in enumerate([PETS, MONEY] * 30)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def test_compare(texts, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    out = tmp_path / "out"
    arguments = ["compare", texts, "--label", "label", "--models", "gsm:epochs=2,lda:epochs=2", "--topics", "2,3"]
    arguments += ["--seeds", 2, "--min-df", 1, "--max-df", 1.0, "--out", out]
    first = call(*arguments)
    assert first.exit_code == 0, first.output
    assert first.stdout.splitlines()[0].split()[:4] == ["model", "K", "NPMI", "diversity"]
    assert "±" in first.stdout
    assert len(first.stdout.splitlines()) == 5
    assert "fit 8 of 8" in first.stderr
    assert {"comparison.csv", "index.html", "jobs.jsonl", "comparison.json"} <= {path.name for path in out.iterdir()}
    again = call(*arguments, "--json", "--quiet")
    assert again.exit_code == 0
    found = json.loads(again.stdout)
    assert again.stderr == ""
    assert found["failed"] == []
    assert [row["fits"] for row in found["test"]] == [2] * 4
    assert found["validation"][0].keys() >= {"model", "n_topics", "nmi", "accuracy", "c_v", "topic_distance"}


def test_compare_takes_no_nonsense(texts):
    refused("compare", texts, "--models", "gms", says=["gms", "gsm"])
    refused("compare", texts, "--models", "gsm:alfa=1", says=["alfa", "alpha"])
    refused("compare", texts, "--topics", "many", says=["--topics", "20,50"])
    refused("compare", texts, "--topics", "1", says=["from 2"])
    refused("compare", "nowhere.txt", says=["nowhere.txt"])


def test_tune(texts, tmp_path):
    pytest.importorskip("optuna")
    out = tmp_path / "out"
    arguments = ["tune", texts, "--model", "gsm:epochs=2", "--topics", 2, "--min-df", 1, "--max-df", 1.0, "--out", out]
    first = call(*arguments, "--trials", 2)
    assert first.exit_code == 0, first.output
    assert "trial 2 of 2" in first.stderr
    assert "0.5 topic_diversity" in first.stderr
    again = json.loads(call(*arguments, "--trials", 3, "--json").stdout)
    assert len(again["trials"]) == 3
    assert yaml.safe_load((out / "best.yaml").read_text())["settings"] == again["best"]
    trained = call("train", texts, "--config", out / "best.yaml", "--epochs", 1, "--min-df", 1, "--max-df", 1.0,
                   "--out", tmp_path / "run")  # fmt: skip
    assert trained.exit_code == 0, trained.output


def test_tune_takes_no_nonsense(texts):
    refused("tune", texts, "--objective", "c_v=1", says=["c_v", "topic_diversity"])
    refused("tune", texts, "--objective", "c_v=much", says=["weights"])
    refused("tune", texts, "--model", "gms", says=["gsm"])
