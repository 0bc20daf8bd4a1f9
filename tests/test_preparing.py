"""The options of reading and of words: public functions and commands have all of them, with the same descriptions."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields

import pytest

import topicloom as tl
from topicloom.cli import load_command
from topicloom.preparing import FileOptions, ReadOptions, TimeOptions, WordOptions, descriptions
from topicloom.text import read

# A command takes words and functions by the names of files and modules alone, and says so.
OWN_HELP = {"stop_words", "tokenizer"}


@pytest.mark.parametrize(
    ("function", "groups"),
    [
        (read, [FileOptions]),
        (tl.Corpus.from_texts, [WordOptions, TimeOptions]),
        (tl.Corpus.from_counts, [TimeOptions]),
        (tl.Corpus.from_file, [ReadOptions, WordOptions]),
    ],
    ids=["read", "from_texts", "from_counts", "from_file"],
)
def test_functions_have_and_describe_every_option(function, groups):
    parameters = inspect.signature(function).parameters
    described = " ".join(inspect.getdoc(function).split())
    for group in groups:
        for field in fields(group):
            assert parameters[field.name].default == field.default
            assert f" {field.name}: {descriptions(group)[field.name]}." in described
    assert not re.search(r"\{\w+\}", described)  # every placeholder was replaced


@pytest.mark.parametrize(
    ("command", "groups"),
    [
        ("prepare", [ReadOptions, WordOptions]),
        ("train", [ReadOptions, WordOptions]),
        ("compare", [ReadOptions, WordOptions]),
        ("infer", [ReadOptions]),
    ],
)
def test_commands_have_and_describe_every_option(command, groups):
    options = {option.name: option for option in load_command(command).params}
    for group in groups:
        for field in fields(group):
            option = options[field.name]
            assert option.default == field.default
            meaning = re.sub(r"`(\w+)`", lambda name: f"--{name[1].replace('_', '-')}", descriptions(group)[field.name])
            assert (option.help.lower() == f"{meaning.lower()}.") is (field.name not in OWN_HELP)


def test_given_options_are_used(tmp_path):
    (tmp_path / "t.csv").write_text("body;who\nthe cat sat;a\nthe dog ran;b\n")
    corpus = tl.Corpus.from_file(
        tmp_path / "t.csv", "en", 1, 1.0, 3, None, 1, text="body", id="who", delimiter=";", quoting=False
    )
    assert corpus.settings == {"min_df": 1, "max_df": 1.0, "max_features": 3, "remove_top": 1}
    assert corpus.ids == ["a", "b"]
    assert corpus.vocabulary == ["cat", "dog", "ran"]
