"""Settings: how they are checked, shown to readers, and described in plans and reports."""

from __future__ import annotations

import inspect
import itertools
import json
import math
import os
import pydoc
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
from pydantic import Field
from sklearn.base import BaseEstimator

import topicloom
from topicloom.cli.shell import on_command_line
from topicloom.corpus.inputs import split
from topicloom.errors import InputError, SettingError
from topicloom.messages import nearest, similar
from topicloom.models import _ELSEWHERE, ETM, GSM, LDA, MODELS, model_class
from topicloom.settings import (
    GROUPS,
    check_settings,
    describe_settings,
    describe_value,
    settings_as_json,
    settings_as_text,
)
from topicloom.topics.edits import checked_edits
from topicloom.topics.shares import group_shares, groups_of

ALIASES = ("AtLeastOne", "DirichletParameter", "Rate", "Share", "Positive", "NotNegative", "Annotated")

# What readers see.


@pytest.mark.parametrize("kind", [topicloom.TopicModel, topicloom.NeuralTopicModel, *MODELS])
def test_signatures_and_help_show_plain_types(kind):
    signature = inspect.signature(kind)
    assert str(inspect.signature(kind.__init__)) == str(signature).replace("(", "(self, ", 1)
    assert "n_topics: int = 20" in str(signature)
    text = pydoc.plain(pydoc.render_doc(kind))
    for alias in ALIASES:
        assert alias not in str(signature)
        assert f"'{alias}" not in text
        assert f"{alias}[" not in text


@dataclass(eq=False, repr=False, kw_only=True)
class Narrow(GSM):
    """A model of a user, with a setting of its own."""

    width: Annotated[float, Field(gt=0)] | None = 1.0


def test_the_settings_of_a_users_model_are_shown_and_checked():
    assert str(inspect.signature(Narrow)).endswith("width: Optional[float] = 1.0) -> None")
    assert describe_settings(Narrow)[0].type == "number above 0 or null"
    check_settings(Narrow(width=None))
    with pytest.raises(SettingError, match=r"`width` of Narrow should be greater than 0; it is -1\.0"):
        check_settings(Narrow(width=-1.0))
    with pytest.raises(SettingError, match="`n_topics` of Narrow should be greater than or equal to 2"):
        check_settings(Narrow(n_topics=1))


@pytest.mark.parametrize("kind", MODELS)
def test_every_setting_of_a_model_is_described_in_a_group(kind):
    settings = describe_settings(kind)
    assert {setting.group for setting in settings} <= set(GROUPS)
    assert all(setting.meaning for setting in settings)
    groups = [group for group, _ in itertools.groupby(settings, lambda setting: setting.group)]
    assert groups == [group for group in GROUPS if group in groups]  # each once, and in this order
    main = {setting.name for setting in settings if setting.group == "Main"}
    passes = set() if kind.needs_vectors else {"epochs", "batch_size"}  # clusters are found in one step
    assert {"n_topics", "random_state", *passes} <= main
    assert len(main) <= 5


def test_types_are_given_in_words():
    types = {setting.name: setting.type for setting in describe_settings(ETM)}
    assert types["word_vectors"] == "WordVectors or dictionary or KeyedVectors or text or null"
    assert types["random_state"] == "whole number from 0 or RandomState or null"


@pytest.mark.parametrize(
    ("kind", "name", "ours"),
    [
        (GSM, "seed", "random_state"),
        (GSM, "random_seed", "random_state"),
        (GSM, "num_epochs", "epochs"),
        (GSM, "lr", "learning_rate"),
        (LDA, "passes", "epochs"),
        (LDA, "jobs", "n_jobs"),
        (LDA, "workers", "n_jobs"),
        (LDA, "threads", "n_jobs"),
        (ETM, "embeddings", "word_vectors"),
    ],
)
def test_names_of_other_packages_are_corrected(kind, name, ours):
    with pytest.raises(SettingError, match=f"{kind.__name__} has no setting '{name}'; it is called `{ours}` here"):
        kind(**{name: 1})


@pytest.mark.parametrize("cls", MODELS)
def test_dirichlet_parameters_must_be_in_range(cls):
    """Beyond it, shares were NaN, and the library behind Gibbs sampling ended the process."""
    for name in {"alpha", "eta", "concentration"}.intersection(cls(2).get_params()):
        for value in (1e-300, 1e-45, 1e39, float("inf"), float("nan")):
            with pytest.raises(
                SettingError,
                match=f"`{name}` of {cls.__name__} should be ((great|less).* than or equal to 1e|a finite number)",
            ):
                check_settings(cls(2, **{name: value}))


def test_a_long_value_is_not_quoted_in_full():
    with pytest.raises(SettingError, match=r"it is \[0, 1, .*\.\.\.$") as caught:
        check_settings(ETM(word_vectors=list(range(10_000))))
    assert len(str(caught.value)) < 500


def test_names_that_are_offered():
    assert nearest("lda", ["gsm", "lda2"]) == "did you mean lda2?"
    assert nearest("xyz", ["b", "a"]) == "choose one of a, b"
    assert similar("新能源汽车", ["新闻", "汽车", "车"]) == "did you mean 汽车?"  # a part of it
    assert similar("基", ["新能源基金", "a"]) == ""
    assert nearest("x", ["b, c", "a"], ["0 'b, c'", "1 'a'"]) == "choose one of 0 'b, c', 1 'a'"
    assert nearest("c, b, c", ["b, c", "a"], ["0 'b, c'", "1 'a'"]) == "did you mean 0 'b, c'?"
    assert nearest("xyz", [f"{i:03}" for i in range(2000)]).endswith("098, 099 and 1,900 more")


# Messages on the command line.

TRAIN = ["--topics", "--seed", "--epochs", "--min-df", "--jobs", "--set", "--overwrite", "--errors"]
TRAIN += ["--header", "--no-header"]


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("try `n_topics=6` or `epochs=120`", "try --topics 6 or --epochs 120"),
        ("keep more words (`min_df`, `max_df`)", "keep more words (--min-df, max_df)"),
        ("`random_state=0` and `n_jobs=-1`", "--seed 0 and --jobs -1"),
        ("`overwrite=True` replaces them", "--overwrite replaces them"),
        ("`header=False` or `header=True`", "--no-header or --header"),
        ('read them with `errors="replace"`', "read them with --errors replace"),
        ("try `alpha=0.1` or `background=False`", "try --set alpha=0.1 or --set background=False"),
        ("`alpha` of GSM", "alpha of GSM"),
        ("""`seed_words={1: ["cat"]}`, `method="gibbs"`""", """--set 'seed_words={1: ["cat"]}', --set method=gibbs"""),
        ("call `model.fit(x)` and `this one`", "call `model.fit(x)` and `this one`"),
    ],
)  # fmt: skip
def test_arguments_become_options(message, said):
    assert on_command_line(message, TRAIN) == said


def test_arguments_of_other_names_become_options():
    assert on_command_line("`n_groups=30`, `alphas` has -1", ["--groups", "--alpha"]) == "--groups 30, --alpha has -1"


def test_arguments_that_other_commands_take_become_their_options():
    assert on_command_line("give times (`timestamps`)", ["--words"]) == "give times (--timestamp of prepare and train)"


@pytest.mark.parametrize("name", _ELSEWHERE)
def test_names_of_other_packages_lead_to_models_here(name):
    with pytest.raises(InputError, match=f"there is no model '{name.upper()}'; take ") as caught:
        model_class(name.upper())
    model, _, recipe = str(caught.value).partition("take ")[2].partition(" with `recipe=")
    assert not recipe or model_class(model).as_published(recipe=recipe.strip("'`"))
    assert model_class(model)


def test_a_question_ends_a_message():
    with pytest.raises(InputError, match=r"there is no model 'gms'; did you mean .*\?$"):
        model_class("gms")
    with pytest.raises(InputError, match=r"; choose one of .*, or give a class of your own as module:Class$"):
        model_class("xyz")
    with pytest.raises(InputError, match=r"no covariate 'par'.*; did you mean part\?$"):
        groups_of(topicloom.Corpus.from_counts([[1]], ["a"], covariates={"part": ["b"]}).fields, "par")


def test_arguments_without_an_option_keep_their_names():
    assert on_command_line("try `n_topics=6`, `alpha=1` or `min_df=2`", ["--min-df"]) == (
        "try n_topics=6, alpha=1 or --min-df 2"
    )


# Values in plans and reports.


class Plain:
    def __init__(self, content: Any) -> None:
        self.content = content


@dataclass
class Settings(BaseEstimator):
    value: Any = None


def used(seed: int, draws: int) -> np.random.RandomState:
    state = np.random.RandomState(seed)
    state.rand(draws)
    return state


DIFFERENT = [
    None, True, 1, 2, 1.0, 0.1, 0.1 + 1e-16, math.nan, "a", "None", "x at 0x1", "x at 0x2", [1, 2], [2, 1], {1: "a"},
    {1: "b"}, {"1": "a"}, {"a", "b"}, {"a", "c"}, np.arange(3), np.arange(3.0), np.array([0, 1, 3]), np.zeros((2, 1)),
    np.zeros((1, 2)), np.arange(5_000), np.arange(5_001), list(range(5_000)), list(range(5_001)), used(0, 0),
    used(1, 0), used(0, 1), np.random.default_rng(0), np.random.default_rng(1), Plain(1), Plain(2), Plain({"x": [1]}),
    print, len, int, Path("nowhere"), {"w": np.ones(2)}, {"w": np.zeros(2)},
]  # fmt: skip


def test_descriptions_differ_where_values_differ():
    described = [describe_value(value) for value in DIFFERENT]
    assert len(set(described)) == len(DIFFERENT)
    assert all(" at 0x" not in text for text in described if not text.startswith("'"))
    assert max(map(len, described)) <= 10_000
    plain = (3, 0.5, "gibbs", None, [1, "a"])
    assert [describe_value(value) for value in plain] == [repr(value) for value in plain]


def test_descriptions_are_the_same_for_equal_values_in_any_process():
    script = (
        "import numpy as np; from topicloom.settings import describe_value as d\n"
        "s = np.random.RandomState(0); s.rand(9)\n"
        "print(d({'b', 'a', 'c'}), d({'y': 1, 'x': np.float64(2)}), d(np.arange(6).reshape(2, 3).T), d(s), sep='\\n')"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[1] / "src"), "PYTHONHASHSEED": "5"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    here = {"c", "b", "a"}, {"x": 2.0, "y": 1}, np.asfortranarray(np.arange(6).reshape(2, 3).T), used(0, 9)
    assert done.stdout.splitlines() == [describe_value(value) for value in here]


def test_a_file_is_described_by_its_content(tmp_path):
    path, copy = tmp_path / "a" / "v.txt", tmp_path / "b" / "v.txt"
    for file in (path, copy):
        file.parent.mkdir()
        file.write_text("river 1")
    before = describe_value(path)
    assert describe_value(copy) == before
    path.write_text("river 2")
    assert describe_value(path) != before


def test_strings_are_files_only_where_settings_allow(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = ETM(prior="laplace", word_vectors="v.txt")
    assert settings_as_text(model)["word_vectors"] == "'v.txt'"
    for name in ("laplace", "v.txt"):
        Path(name).touch()
    described = settings_as_text(model)
    assert (described["prior"], described["n_topics"]) == ("'laplace'", "20")
    assert described["word_vectors"].startswith("file v.txt ")


def endless() -> list[Any]:
    holds_itself: list[Any] = []
    holds_itself.append(holds_itself)
    return holds_itself


@pytest.mark.parametrize(
    "value",
    [*DIFFERENT, np.float32(0.5), -math.inf, 1j, endless(), {(1, 2): 3}, object(), lambda x: x, {"a": Path("b")}],
    ids=lambda value: type(value).__name__,
)
def test_settings_are_always_json(value):
    found = json.dumps(settings_as_json(Settings(value)), allow_nan=False)
    assert len(found) < 30_000
    if value is None or isinstance(value, int | str):
        assert json.loads(found) == {"value": value}


def test_settings_as_json_are_those_of_the_model():
    model = GSM(3, seed_words={1: ["a"]}, random_state=0)
    assert settings_as_json(model) == model.get_params(deep=False)


@pytest.mark.parametrize("name", ["GSM", "LDA"])
def test_numbers_of_numpy_are_settings(name, tmp_path):
    """As a loop over np.arange and a grid of scikit-learn give them."""
    counts = np.random.default_rng(0).poisson(0.5, (60, 30))
    plain: dict[str, Any] = {"n_topics": 3, "epochs": 2, "random_state": 7, "batch_size": 16, "verbose": False}
    rates = {"learning_rate": 0.5} if name == "GSM" else {"alpha": 0.5}
    types = {int: np.int64, float: np.float32, bool: np.bool_}
    given = {setting: types[type(value)](value) for setting, value in (plain | rates).items()}
    model = getattr(topicloom, name)(**given).fit(counts)
    same = getattr(topicloom, name)(**plain, **rates).fit(counts)
    np.testing.assert_array_equal(model.components_, same.components_)
    model.save(tmp_path / "model")
    assert topicloom.load(tmp_path / "model").get_params() == same.get_params()


@pytest.mark.parametrize("seed", [-1, 2**32, 1.5, True])
def test_seeds_are_refused_in_plain_words(seed):
    corpus = topicloom.Corpus.from_counts(np.ones((9, 4)))
    for call in (
        lambda: GSM(2, random_state=seed).fit(corpus),
        lambda: split(corpus, random_state=seed),
        lambda: topicloom.datasets.synthetic_lda(random_state=seed),
        lambda: topicloom.train_word_vectors(corpus, random_state=seed),
        lambda: group_shares(np.full((4, 2), 0.5), np.zeros(4, int), 1, random_state=seed),
    ):
        with pytest.raises(SettingError, match=r"^`random_state.* should be a whole number from 0 to 4294967295"):
            call()
    with pytest.raises(SettingError, match=r"`random_state.* whole number"):
        checked_edits([{"split": 1, "random_state": seed}])


def test_a_generator_is_no_seed_and_gives_one():
    generator = np.random.default_rng(0)
    with pytest.raises(SettingError, match=r"draw one from it, as int\(generator\.integers\(2\*\*32\)\)$"):
        GSM(random_state=generator).fit([["cat", "dog"]])
    GSM(2, epochs=1, random_state=int(generator.integers(2**32))).fit(np.ones((4, 3)))
