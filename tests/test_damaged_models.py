"""A damaged model is refused in a sentence that names the file; what is not damage is not called so."""

from __future__ import annotations

import json
import logging
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import topicloom as tl
from topicloom.errors import InputError, ModelFileError
from topicloom.files import write_manifest
from topicloom.nn.network import TopicNetwork
from topicloom.topics.saved import read_topics

CORPUS = tl.datasets.synthetic_lda(n_docs=40, n_topics=3, n_words=12, doc_length=15).corpus
WEIGHTS, WORDS, CONFIG = "model.safetensors", "vocabulary.txt", "config.json"


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "model"
    tl.GSM(3, epochs=1, hidden_size=4, random_state=0, device="cpu").fit(CORPUS).save(folder)
    return folder


@pytest.fixture
def saved(original, tmp_path):
    """A directory that may be changed."""
    return Path(shutil.copytree(original, tmp_path / "model"))


def refused(folder: Path, *names: str) -> str:
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
def test_every_flipped_bit_is_noticed(saved, name):
    content = (saved / name).read_bytes()
    draw = random.Random(0)
    for _ in range(30):
        changed = bytearray(content)
        changed[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        (saved / name).write_bytes(changed)
        assert "is damaged: its content has changed since it was written" in refused(saved, name)
        with pytest.raises(InputError, match=f"{name} is damaged"):
            read_topics(saved)
    (saved / name).write_bytes(content)
    tl.load(saved)


def test_a_model_of_the_first_format_has_no_checksums(saved):
    config = json.loads((saved / CONFIG).read_text()) | {"format_version": 1}
    del config["sha256"]
    (saved / CONFIG).write_text(json.dumps(config))
    assert tl.load(saved).topics(3) == [words[:3] for words in read_topics(saved).topics(5)]


@pytest.mark.parametrize("name", [WEIGHTS, WORDS])
def test_a_lost_file_is_named(saved, name):
    (saved / name).unlink()
    refused(saved, f"{name} is missing")


# Contents that no model has, with the right checksums.


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["decoder.topics.weight", "word_counts_", "components_"])
def test_numbers_that_are_not_finite(saved, name, value):
    edit_weights(saved, name, value)
    refused(saved, f"'{name}' in {WEIGHTS} contains a number that is not finite")


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("word_counts_", None, f"{WEIGHTS} has no 'word_counts_'"),
        ("document_counts_", torch.ones(5), "'document_counts_' in model.safetensors has the shape (5,)"),
        ("encoder.weight", None, 'does not fit the network that GSM builds: Missing key(s) in state_dict: "encoder'),
        ("encoder.weight", torch.ones(12, 5), "does not fit the network that GSM builds: size mismatch"),
    ],
)
def test_weights_that_do_not_fit(saved, name, value, says):
    edit_weights(saved, name, value)
    refused(saved, says)


def test_a_word_that_is_there_twice(saved):
    words = (saved / WORDS).read_text().splitlines()
    words[4] = words[1]
    (saved / WORDS).write_text("\n".join(words) + "\n")
    edit(saved)
    refused(saved, f"{WORDS} has the word {words[1]!r} on lines 2 and 5")


def test_a_word_too_many(saved):
    (saved / WORDS).write_text((saved / WORDS).read_text() + "another\n")
    edit(saved)
    refused(saved, "13 words (vocabulary.txt)")


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
def test_settings_that_cannot_be(saved, settings, says):
    edit_settings(saved, **settings)
    refused(saved, CONFIG, says)


def test_a_class_that_is_not_there(saved):
    edit(saved, model="GSN")
    refused(saved, CONFIG, "there is no model 'GSN'; did you mean gsm?")


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
def test_entries_of_another_kind(saved, entry, value):
    if entry == "sha256":
        (saved / CONFIG).write_text(json.dumps(json.loads((saved / CONFIG).read_text()) | {entry: value}))
    else:
        edit(saved, **{entry: value})
    refused(saved, CONFIG, entry)


@pytest.mark.parametrize("entry", ["format_version", "model", "settings", "tokenizer", "history", "n_documents"])
def test_entries_that_are_lost(saved, entry):
    config = json.loads((saved / CONFIG).read_text())
    del config[entry]
    write_manifest(saved / CONFIG, config, (WEIGHTS, WORDS))
    refused(saved, CONFIG, f"it has no '{entry}'")


# What is not damage.


def test_an_error_of_the_device_is_not_called_damage(saved, monkeypatch):
    said = "CUDA out of memory. Tried to allocate 20.00 MiB. If reserved memory is large try setting max_split_size_mb"

    def full(network: TopicNetwork, device: torch.device, seed: int) -> TopicNetwork:
        raise torch.OutOfMemoryError(said)

    monkeypatch.setattr(TopicNetwork, "on", full)
    with pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory"):
        tl.load(saved)


def test_a_missing_device_is_not_called_damage(saved):
    with pytest.raises(InputError, match="device 'abacus' is not known") as caught:
        tl.load(saved, device="abacus")
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
