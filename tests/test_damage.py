"""Damage to any file of what is saved: an error that names the file, or the same result. Nothing else is read or run.

`make soak-damage` does the same with a hundred flips of a byte for each file.
"""

from __future__ import annotations

import ast
import errno
import json
import os
import re
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import topicloom as tl
import topicloom.models.loading
from soak.damage import ARTEFACTS, GOOD, Artefact, corpus, model, saved, sweep
from topicloom.errors import CorpusFileError, ModelFileError, SavedFileError
from topicloom.files import write_manifest
from topicloom.topics.edits import read_edits, write_edits
from topicloom.topics.saved import read_stored, read_topics

SAMPLED = [each for each in ARTEFACTS if each.name not in ("Loom", "ETM", "LDA")]
SOURCE = Path(tl.__file__).parent


@pytest.mark.parametrize("artefact", SAMPLED, ids=lambda artefact: artefact.name)
def test_damage_to_each_file_is_noticed(artefact: Artefact, tmp_path):
    artefact.make(tmp_path / "saved")
    files = Counter()
    for file, outcome, why in sweep(artefact, tmp_path / "saved", cuts=1, flips=1 if artefact.name == "run" else 6):
        assert outcome in GOOD, (file, outcome, why)
        files[file] += outcome == GOOD[0]
    unread = {file for file, n_noticed in files.items() if n_noticed == 0}
    pictures = {"collapse.png", "loss.png", "quality.png", "topics.png"}
    assert unread <= pictures | {"doc_topics.csv", "topics.csv", "explorer.html", "log.jsonl", "search.sqlite"}


def test_the_sweep_finds_a_reader_that_checks_nothing(tmp_path):
    """A test of the test."""

    def read(folder: Path) -> list[float]:
        return np.load(folder / "data.npy").tolist()

    artefact = Artefact("corpus", partial(saved, corpus), read)
    artefact.make(tmp_path / "saved")
    found = Counter(outcome for file, outcome, _ in sweep(artefact, tmp_path / "saved", 3, 20) if file == "data.npy")
    assert found["another result"] > 0
    assert found["another error"] > 0


# Nothing outside the directory is read.


@pytest.fixture
def gsm(tmp_path) -> Path:
    model("GSM", hidden_size=4).save(tmp_path / "model")
    return tmp_path / "model"


def refused(folder: Path, said: str) -> None:
    for read in (partial(tl.load, device="cpu"), read_topics):
        with pytest.raises(ModelFileError, match=said) as caught:
            read(folder)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["model.safetensors", "vocabulary.txt", "config.json"])
def test_a_link_to_a_file_elsewhere_is_not_read(gsm, tmp_path, name):
    (gsm / name).rename(tmp_path / name)
    (gsm / name).symlink_to(tmp_path / name)
    refused(gsm, f"{name} is a link to a file elsewhere")
    (gsm / name).unlink()
    (tmp_path / name).rename(gsm / f"real-{name}")
    (gsm / name).symlink_to(f"real-{name}")  # within the directory
    tl.load(gsm, device="cpu")
    (tmp_path / "link").symlink_to(gsm)  # the whole directory
    tl.load(tmp_path / "link", device="cpu")


@pytest.mark.parametrize("name", ["../secret", "/etc/hostname", "..", "", "a/b", "c:secret", "a\0b", "..\\secret"])
def test_a_path_that_leads_elsewhere_is_not_followed(gsm, name):
    (gsm.parent / "secret").write_text("secret")
    path = gsm / "config.json"
    config = json.loads(path.read_text())
    path.write_text("{}")
    write_manifest(path, config, ["model.safetensors", "vocabulary.txt"])
    whole = json.loads(path.read_text())
    whole["sha256"].pop("config.json")
    whole["sha256"][name] = "0" * 64
    path.write_text(json.dumps(whole | {"format_version": 2}))
    refused(gsm, "which is not in this directory")


def test_a_setting_that_names_a_file_is_refused(tmp_path):
    model("ETM", hidden_size=4, embedding_size=4).save(tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    config = json.loads(path.read_text())
    config["settings"]["word_vectors"] = "/etc/passwd"
    write_manifest(path, config, ["model.safetensors", "vocabulary.txt"])
    with pytest.raises(ModelFileError, match="'word_vectors' is '/etc/passwd', and a saved model reads no other file"):
        tl.load(tmp_path / "model", device="cpu")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipes_and_directories_in_place_of_files_do_not_hang(gsm, tmp_path):
    (gsm / "vocabulary.txt").unlink()
    os.mkfifo(gsm / "vocabulary.txt")
    refused(gsm, r"vocabulary\.txt is not a file")
    corpus().save(tmp_path / "corpus")
    (tmp_path / "corpus" / "texts.utf8").unlink()
    (tmp_path / "corpus" / "texts.utf8").mkdir()
    with pytest.raises(CorpusFileError, match=r"texts\.utf8 is not a file"):
        tl.Corpus.load(tmp_path / "corpus")


# Nothing is executed.


@pytest.mark.parametrize("file", ["model.safetensors", "ids.offsets.npy"])
def test_an_unreadable_file_is_not_called_damaged(gsm, tmp_path, monkeypatch, file):
    corpus().save(tmp_path / "corpus")

    def fails(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(np, "load", fails)
    monkeypatch.setattr(topicloom.models.loading, "load_file", fails)
    with pytest.raises(SavedFileError, match=rf"{file} cannot be read \(Too many open files\); correct that") as found:
        tl.Corpus.load(tmp_path / "corpus", mmap=False) if file.endswith("npy") else tl.load(gsm)
    assert "damaged" not in str(found.value)


def test_nothing_is_unpickled():
    """Pickle sends work and models between processes that run already, and writes one format of another program."""
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"allow_pickle=True|torch\.load|joblib\.load|\b(dill|shelve)\b", text), path
        assert "cloudpickle" not in text or path.name == "jobs.py", path  # to the nodes of a cluster
        assert "joblib.dump" not in text or path.name == "view.py", path
        names = [
            alias.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import) for alias in node.names
        ]
        names += [node.module or "" for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
        assert "marshal" not in names, path
        assert "pickle" not in names or path.name in ("processes.py", "jobs.py", "base.py"), path
        for call in re.findall(r"np\.load\([^)]*\)", text):
            assert "allow_pickle=False" in call, (path, call)


def test_an_array_of_objects_is_refused(tmp_path):
    corpus().save(tmp_path)
    np.save(tmp_path / "vectors.npy", np.array([print] * 19, object), allow_pickle=True)
    about = json.loads((tmp_path / "corpus.json").read_text())
    write_manifest(tmp_path / "corpus.json", about, about["sha256"].keys() - {"corpus.json"})
    with pytest.raises(CorpusFileError, match=r"vectors\.npy is damaged"):
        tl.Corpus.load(tmp_path)


# Contents that no writer writes, with the right checksums.


@pytest.mark.parametrize(
    ("file", "value"),
    [
        ("indptr", np.zeros(0, np.int32)),
        ("indptr", np.zeros((20, 1), np.int32)),
        ("indices", np.full(3, 2**30, np.int32)),
        ("data", np.array([np.nan])),
        ("vectors", np.full((19, 3), np.nan, np.float32)),
        ("theta", np.full((19, 3), np.nan, np.float32)),
        ("theta", np.zeros((19, 3), ">f4")),
        ("theta", np.zeros((19, 3), complex)),
        ("texts.offsets", np.array([0, 9, 3])),
    ],
)
def test_arrays_that_no_corpus_has(tmp_path, file, value):
    from topicloom.topics.saved import write_stored

    documents = corpus()
    model("LDA").save(tmp_path / "model")
    write_stored(tmp_path, documents, np.full((19, 3), 1 / 3))
    folder = tmp_path / "documents"
    np.save(folder / f"{file}.npy", value)
    about = json.loads((folder / "corpus.json").read_text())
    write_manifest(folder / "corpus.json", about, about["sha256"].keys() - {"corpus.json"})
    with pytest.raises(SavedFileError, match=f"{re.escape(file)}|does not belong to the model"):
        read_stored(tmp_path, documents.vocabulary, 3)


def test_documents_of_another_model_over_the_same_words(tmp_path):
    from topicloom.topics.saved import write_stored

    documents = corpus()
    for seed in (0, 1):
        fitted = tl.LDA(3, epochs=1, random_state=seed, device="cpu").fit(documents)
        fitted.save(tmp_path / str(seed) / "model")
        write_stored(tmp_path / str(seed), documents, fitted.transform(documents))
    (tmp_path / "1" / "documents").rename(tmp_path / "its own")
    (tmp_path / "0" / "documents").rename(tmp_path / "1" / "documents")
    with pytest.raises(CorpusFileError, match="does not belong to the model"):
        tl.Topics.from_run(tmp_path / "1")


def test_edits_that_the_service_stored_are_not_changed_by_accident(tmp_path):
    path = tmp_path / "edits.yaml"
    write_edits(path, [{"rename": {0: "cats"}}], "tm-0123456789abcdef", sealed=True)
    assert read_edits(path).edits == [{"rename": {0: "cats"}}]
    path.write_text(path.read_text().replace("cats", "bats"))
    with pytest.raises(ModelFileError, match="if you changed it yourself, take the line 'sha256' out"):
        read_edits(path)
    path.write_text("".join(line for line in path.read_text().splitlines(True) if not line.startswith("sha256")))
    assert read_edits(path).edits == [{"rename": {0: "bats"}}]
