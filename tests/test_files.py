"""Files: whole or not at all, and refused in a sentence when they are not what they should be."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from topicloom.corpus import Corpus
from topicloom.errors import InputError
from topicloom.files import (
    atomic_directory,
    atomic_file,
    read_json,
    read_lines,
    require_free,
    write_json,
    write_lines,
)
from topicloom.models import GSM
from topicloom.models.persistence import load, model_class

TEXTS = ["red-green", "green-blue", "blue-red-red", "green"] * 3


class Cut(Exception):
    """What ends a writer in the middle."""


def write_half(path: Path) -> None:
    path.write_text("half")
    raise Cut


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# One file.


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "new" / "a.txt"
    for text in ("old", "new"):
        with atomic_file(path) as temporary:
            temporary.write_text(text)
            assert not path.exists() or path.read_text() == "old"
    assert path.read_text() == "new"
    assert names(path.parent) == ["a.txt"]


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(Cut), atomic_file(path) as temporary:
        write_half(temporary)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_files_can_be_read_by_whom_the_umask_lets(tmp_path):
    plain = tmp_path / "plain"
    plain.touch()
    write_json(tmp_path / "a.json", {})
    assert (tmp_path / "a.json").stat().st_mode == plain.stat().st_mode


# A directory; that it holds "mark" tells that it is one of ours.


@pytest.fixture
def ours(tmp_path) -> Path:
    """A directory as it was written before."""
    path = tmp_path / "model"
    with atomic_directory(path, "mark") as folder:
        (folder / "mark").write_text("old")
    return path


def test_a_directory_is_replaced_whole(ours):
    with atomic_directory(ours, "mark", overwrite=True) as folder:
        (folder / "other").touch()
        assert (ours / "mark").read_text() == "old"
    assert names(ours) == ["other"]
    assert names(ours.parent) == ["model"]


def test_a_failed_write_leaves_the_old_directory(ours):
    with pytest.raises(Cut), atomic_directory(ours, "mark", overwrite=True) as folder:
        write_half(folder / "mark")
    assert (ours / "mark").read_text() == "old"
    assert names(ours.parent) == ["model"]


def test_an_empty_directory_is_free(tmp_path):
    with atomic_directory(tmp_path, "mark") as folder:
        (folder / "mark").touch()
    assert names(tmp_path) == ["mark"]


def test_what_is_there_is_not_overwritten_unasked(ours):
    with pytest.raises(InputError, match="model already holds files"), atomic_directory(ours, "mark"):
        pytest.fail("it was begun all the same")
    require_free(ours, "mark", overwrite=True)


@pytest.mark.parametrize("overwrite", [False, True])
def test_what_is_not_ours_is_never_overwritten(ours, overwrite):
    with pytest.raises(InputError, match="model"):
        require_free(ours, "another mark", overwrite)
    with pytest.raises(InputError, match="mark is a file"):
        require_free(ours / "mark", "mark", overwrite)


# JSON and lines.


def test_json_round_trip(tmp_path):
    value = {"词": [1, 2.5, None], "é": "\u2028"}
    write_json(tmp_path / "a.json", value)
    assert read_json(tmp_path / "a.json") == value
    assert "词" in (tmp_path / "a.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_json_has_no_word_for(tmp_path, value):
    write_json(tmp_path / "a.json", 1)
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "a.json", [value])
    assert read_json(tmp_path / "a.json") == 1
    assert names(tmp_path) == ["a.json"]


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b""])
def test_unreadable_json_is_named(tmp_path, content):
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(InputError, match=r"a\.json is not readable JSON"):
        read_json(tmp_path / "a.json")


def test_absent_json_is_named(tmp_path):
    with pytest.raises(InputError, match=r"b\.json does not exist"):
        read_json(tmp_path / "b.json")


@pytest.mark.parametrize("lines", [[], ["a"], ["a", "", "b"], ["\u2028", "\x0b", "\x85"]], ids=repr)
def test_lines_round_trip(tmp_path, lines):
    write_lines(tmp_path / "a.txt", lines)
    assert read_lines(tmp_path / "a.txt") == lines


@pytest.mark.parametrize("line", ["a\nb", "a\rb"])
def test_a_line_break_in_a_line_is_refused(tmp_path, line):
    with pytest.raises(InputError, match=r"entry 1 of a\.txt holds a line break"):
        write_lines(tmp_path / "a.txt", ["whole", line])
    assert names(tmp_path) == []


# Saved models.


def hyphens(text: str) -> list[str]:
    return text.split("-")


@pytest.fixture(scope="module")
def model() -> GSM:
    corpus = Corpus.from_texts(TEXTS, tokenizer=hyphens, min_df=1, max_df=1.0)
    return GSM(2, epochs=2, random_state=0, device="cpu").fit(corpus)


@pytest.fixture
def saved(model, tmp_path) -> Path:
    model.save(tmp_path / "model")
    return tmp_path / "model"


def edit(file: Path, **changes: object) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def cut_short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


DAMAGE = {
    "no config": (lambda folder: (folder / "config.json").unlink(), "no saved model"),
    "no folder": (lambda folder: folder.rename(folder.with_name("elsewhere")), "no saved model"),
    "newer": (lambda folder: edit(folder / "config.json", format_version=99), "newer topicloom"),
    "not JSON": (lambda folder: cut_short(folder / "config.json"), "not readable JSON"),
    "not a dict": (lambda folder: (folder / "config.json").write_text("[]"), "damaged"),
    "settings lost": (lambda folder: (folder / "config.json").write_text('{"format_version": 1}'), "damaged"),
    "unknown setting": (lambda folder: edit(folder / "config.json", settings={"n_topics": 2, "mood": 1}), "'mood'"),
    "unknown model": (lambda folder: edit(folder / "config.json", model="GSN"), "no model 'GSN'; did you mean gsm"),
    "weights cut": (lambda folder: cut_short(folder / "model.safetensors"), "damaged"),
    "weights lost": (lambda folder: (folder / "model.safetensors").unlink(), "damaged"),
    "other shapes": (lambda folder: edit(folder / "config.json", settings={"n_topics": 3}), "damaged"),
    "words lost": (lambda folder: (folder / "vocabulary.txt").unlink(), "damaged"),
    "a word too few": (lambda folder: (folder / "vocabulary.txt").write_text("red\ngreen\n"), "damaged"),
    "words not text": (lambda folder: (folder / "vocabulary.txt").write_bytes(b"\xff\n"), "damaged"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_model_is_refused_in_a_sentence(saved, kind):
    damage, said = DAMAGE[kind]
    damage(saved)
    with pytest.raises(InputError, match=said) as caught:
        load(saved)
    assert "\n" not in str(caught.value)
    assert str(saved.parent) in str(caught.value) or kind.startswith("unknown")


def test_saving_twice_asks_first(model, saved):
    with pytest.raises(InputError, match="already holds files"):
        model.save(saved)
    model.save(saved, overwrite=True)
    assert load(saved).vocabulary_ == model.vocabulary_


def test_a_failed_save_leaves_the_old_model(model, saved, monkeypatch):
    before = {name: (saved / name).read_bytes() for name in names(saved)}
    monkeypatch.setattr(model, "history_", [{"loss": float("nan")}])
    with pytest.raises(ValueError, match="JSON"):
        model.save(saved, overwrite=True)
    assert {name: (saved / name).read_bytes() for name in names(saved)} == before


def test_your_own_tokenizer_is_given_again(model, saved):
    again = load(saved, device="cpu")
    with pytest.raises(InputError, match="tokenizer"):
        again.transform(TEXTS)
    np.testing.assert_array_equal(load(saved, tokenizer=hyphens, device="cpu").transform(TEXTS), model.transform(TEXTS))


def test_a_run_directory_holds_a_model(saved):
    assert load(saved.parent).vocabulary_ == load(saved).vocabulary_


def test_models_by_name():
    assert model_class("gsm") is model_class("GSM") is GSM
