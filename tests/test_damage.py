"""Damage to any file of what is saved: an error with the name of the file, or the same result. Nothing else is read."""

from __future__ import annotations

import ast
import errno
import json
import logging
import os
import random
import re
import shutil
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import topicloom as tl
import topicloom.models.loading
from soak.damage import ARTEFACTS, GOOD, Artefact, corpus, model, saved, sweep
from topicloom.errors import CorpusFileError, InputError, ModelFileError, SavedFileError
from topicloom.files import write_manifest
from topicloom.nn.network import TopicNetwork
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
    cards = {"README.md", "model/README.md"}
    assert unread <= pictures | cards | {"doc_topics.csv", "topics.csv", "explorer.html", "log.jsonl", "search.sqlite"}


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
        assert "joblib.dump" not in text or path.name == "export.py", path
        nodes = list(ast.walk(ast.parse(text)))
        names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
        names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
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
        ("positions", np.zeros((5, 2))),
        ("positions", np.full((19, 2), np.nan)),
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


# A damaged model is refusal in a sentence that names the file; what is not damage is not called so.

CORPUS = tl.datasets.synthetic_lda(n_docs=40, n_topics=3, n_words=12, doc_length=15).corpus
WEIGHTS, WORDS, CONFIG = "model.safetensors", "vocabulary.txt", "config.json"


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "model"
    tl.GSM(3, epochs=1, hidden_size=4, random_state=0, device="cpu").fit(CORPUS).save(folder)
    return folder


@pytest.fixture
def saved_model(original, tmp_path):
    """A directory that may be changed."""
    return Path(shutil.copytree(original, tmp_path / "model"))


def refusal(folder: Path, *names: str) -> str:
    """Loading fails with one sentence that has these names; return it."""
    with pytest.raises(ModelFileError) as caught:
        tl.load(folder, device="cpu")
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)
    for name in names:
        assert name in str(caught.value)
    return str(caught.value)


def edit(folder: Path, **changes: Any) -> None:
    """Change entries of config.json, and note the checksums of the files as they are now."""
    write_manifest(folder / CONFIG, json.loads((folder / CONFIG).read_text()) | changes, (WEIGHTS, WORDS))


def edit_settings(folder: Path, **changes: Any) -> None:
    edit(folder, settings=json.loads((folder / CONFIG).read_text())["settings"] | changes)


def edit_weights(folder: Path, name: str, value: Any) -> None:
    tensors = load_file(folder / WEIGHTS)
    if value is None:
        del tensors[name]
    elif isinstance(value, float):
        tensors[name].view(-1)[1] = value
    else:
        tensors[name] = value
    save_file(tensors, folder / WEIGHTS)
    edit(folder)


# Checksums.


@pytest.mark.parametrize("name", [WEIGHTS, WORDS])
def test_every_flipped_bit_is_noticed(saved_model, name):
    content = (saved_model / name).read_bytes()
    draw = random.Random(0)
    for _ in range(30):
        changed = bytearray(content)
        changed[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        (saved_model / name).write_bytes(changed)
        assert "is damaged: its content has changed since it was written" in refusal(saved_model, name)
        with pytest.raises(InputError, match=f"{name} is damaged"):
            read_topics(saved_model)
    (saved_model / name).write_bytes(content)
    tl.load(saved_model)


def test_a_model_of_the_first_format_has_no_checksums(saved_model):
    config = json.loads((saved_model / CONFIG).read_text()) | {"format_version": 1}
    del config["sha256"]
    (saved_model / CONFIG).write_text(json.dumps(config))
    assert tl.load(saved_model).topics(3) == [words[:3] for words in read_topics(saved_model).topics(5)]


@pytest.mark.parametrize("name", [WEIGHTS, WORDS])
def test_a_lost_file_is_named(saved_model, name):
    (saved_model / name).unlink()
    refusal(saved_model, f"{name} is missing")


# Contents that no model has, with the right checksums.


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["decoder.topics.weight", "word_counts_", "components_"])
def test_numbers_that_are_not_finite(saved_model, name, value):
    edit_weights(saved_model, name, value)
    refusal(saved_model, f"'{name}' in {WEIGHTS} contains a number that is not finite")


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("word_counts_", None, f"{WEIGHTS} has no 'word_counts_'"),
        ("document_counts_", torch.ones(5), "'document_counts_' in model.safetensors has the shape (5,)"),
        ("encoder.weight", None, 'does not fit the network that GSM builds: Missing key(s) in state_dict: "encoder'),
        ("encoder.weight", torch.ones(12, 5), "does not fit the network that GSM builds: size mismatch"),
    ],
)
def test_weights_that_do_not_fit(saved_model, name, value, says):
    edit_weights(saved_model, name, value)
    refusal(saved_model, says)


def test_a_word_that_is_there_twice(saved_model):
    words = (saved_model / WORDS).read_text().splitlines()
    words[4] = words[1]
    (saved_model / WORDS).write_text("\n".join(words) + "\n")
    edit(saved_model)
    refusal(saved_model, f"{WORDS} has the word {words[1]!r} on lines 2 and 5")


def test_a_word_too_many(saved_model):
    (saved_model / WORDS).write_text((saved_model / WORDS).read_text() + "another\n")
    edit(saved_model)
    refusal(saved_model, "13 words (vocabulary.txt)")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"n_topics": 0}, "`n_topics` of GSM should be greater than or equal to 2; it is 0"),
        ({"n_topics": 4}, "4 topics (config.json)"),
        ({"n_topics": 2_000_000_000}, "2000000000 topics (config.json)"),
        ({"hidden_size": -1}, "`hidden_size` of GSM"),
        ({"hidden_size": None}, "`hidden_size` of GSM"),
        ({"alpha": "much"}, "`alpha` of GSM"),
        ({"alphas": 0.5}, "GSM has no setting 'alphas'; did you mean alpha?"),
        ({"seed_words": {"9": ["a"]}}, "topic 9"),
    ],
)
def test_settings_that_cannot_be(saved_model, settings, says):
    edit_settings(saved_model, **settings)
    refusal(saved_model, CONFIG, says)


def test_a_class_that_is_not_there(saved_model):
    edit(saved_model, model="GSN")
    refusal(saved_model, CONFIG, "there is no model 'GSN'; did you mean gsm?")


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("format_version", "1"),
        ("model", None),
        ("settings", []),
        ("tokenizer", "words"),
        ("tokenizer", {"kind": "nosuch"}),
        ("history", {}),
        ("n_documents", "many"),
        ("named_columns", 1),
        ("sha256", None),
    ],
)
def test_entries_of_another_kind(saved_model, entry, value):
    if entry == "sha256":
        (saved_model / CONFIG).write_text(json.dumps(json.loads((saved_model / CONFIG).read_text()) | {entry: value}))
    else:
        edit(saved_model, **{entry: value})
    refusal(saved_model, CONFIG, entry)


@pytest.mark.parametrize("entry", ["format_version", "model", "settings", "tokenizer", "history", "n_documents"])
def test_entries_that_are_lost(saved_model, entry):
    config = json.loads((saved_model / CONFIG).read_text())
    del config[entry]
    write_manifest(saved_model / CONFIG, config, (WEIGHTS, WORDS))
    refusal(saved_model, CONFIG, f"it has no '{entry}'")


# What is not damage.


def test_an_error_of_the_device_is_not_called_damage(saved_model, monkeypatch):
    said = "CUDA out of memory. Tried to allocate 20.00 MiB. If reserved memory is large try setting max_split_size_mb"

    def full(network: TopicNetwork, device: torch.device, seed: int) -> TopicNetwork:
        raise torch.OutOfMemoryError(said)

    monkeypatch.setattr(TopicNetwork, "on", full)
    with pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory"):
        tl.load(saved_model)


def test_a_missing_device_is_not_called_damage(saved_model):
    with pytest.raises(InputError, match="device 'abacus' is not known") as caught:
        tl.load(saved_model, device="abacus")
    assert CONFIG not in str(caught.value)


def test_settings_without_a_json_form_load_as_defaults(tmp_path, caplog):
    model = tl.GSM(3, epochs=1, hidden_size=4, random_state=np.random.RandomState(0), device="cpu").fit(CORPUS)
    caplog.clear()
    with caplog.at_level(logging.WARNING, "topicloom"):
        model.save(tmp_path / "one")
        assert caplog.messages == []  # a random state is of no use to a fitted model
        model.settings_["dropout"] = 0.1 + 0j
        model.save(tmp_path / "other")
    assert caplog.messages == ["the setting dropout cannot be saved as JSON; a loaded model will have its default"]
    assert tl.load(tmp_path / "one").random_state is None
    assert tl.load(tmp_path / "other").dropout == tl.GSM().dropout
