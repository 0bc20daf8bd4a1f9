"""A model class outside the package does what a built-in one does, on the command line too; its page shows its code."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import topicloom as tl
from command_line import refused, shown
from topicloom.errors import InputError, SettingError
from topicloom.models import estimator_named, model_class
from topicloom.settings import describe_settings

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = (ROOT / "examples" / "own_model.py").read_text(encoding="utf-8")
PAGE, CHINESE = (
    (ROOT / "docs" / f"your-own-model{language}.md").read_text(encoding="utf-8") for language in ("", ".zh-CN")
)
CORPUS = tl.datasets.synthetic_lda(n_docs=80, n_topics=3, n_words=30, doc_length=20).corpus
SMALL = {"n_topics": 3, "epochs": 2, "hidden_size": 8, "random_state": 0, "device": "cpu"}
TEXT = "the cat and the dog see a vet\nthe stock and the bond market move\n" * 10


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current directory, with the example in it. It is not where Python finds modules."""
    (tmp_path / "own_model.py").write_text(EXAMPLE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place not in ("", str(tmp_path))])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def saved(folder):
    model = model_class("own_model:SharpTM")(**SMALL).fit(CORPUS)
    model.save(folder / "model")
    return model


# The page.


def test_the_page_shows_the_example():
    assert re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0] == EXAMPLE
    blocks, chinese = (re.findall(r"```.*?```", re.sub(r"  # .*", "", page), re.DOTALL) for page in (PAGE, CHINESE))
    assert blocks == chinese  # but for their comments


def test_the_commands_of_the_page_exist():
    assert "topicloom train news.txt --model own_model:SharpTM" in PAGE
    assert 'tl.load("sharp", allow=["own_model"])' in PAGE
    for options in re.findall(r"^topicloom (\w+) (.*)$", PAGE, re.MULTILINE):
        known = shown(options[0], "--help")
        assert all(option in known for option in re.findall(r"--[a-z-]+", options[1]))


# Python.


def test_its_settings_are_described_and_checked(folder):
    kind = model_class("own_model:SharpTM")
    first = describe_settings(kind)[0]
    assert (first.name, first.type, first.default) == ("sharpness", "number above 0", 2.0)
    assert first.meaning.startswith("the factor of a document's code")
    with pytest.raises(SettingError, match="`sharpness` of SharpTM should be greater than 0; it is 0"):
        kind(**SMALL, sharpness=0.0).fit(CORPUS)


def test_its_setting_has_an_effect(folder):
    kind = model_class("own_model:SharpTM")
    entropies = []
    for sharpness in (0.5, 4.0):
        theta = kind(**SMALL | {"epochs": 15}, sharpness=sharpness).fit(CORPUS).transform(CORPUS)
        np.testing.assert_allclose(theta.sum(axis=1), 1, rtol=1e-5)
        entropies.append(-(theta * np.log(theta + 1e-12)).sum(axis=1).mean())
    assert entropies[1] < 0.6 * entropies[0]


def test_loading_needs_permission(saved, folder):
    says = "SharpTM in the module 'own_model', whose code would be run; give `allow='own_model'` if you trust it"
    for allow in ([], ["other"], ["own_model.part"]):
        with pytest.raises(InputError, match=says):
            tl.load(folder / "model", allow=allow)


@pytest.mark.parametrize("allow", [["own_model"], "own_model", {"own_model", "other"}], ids=["list", "name", "set"])
def test_it_is_loaded_when_allowed(saved, folder, allow):
    loaded = tl.load(folder / "model", allow=allow, device="cpu")
    assert type(loaded) is type(saved)
    np.testing.assert_array_equal(loaded.transform(CORPUS), saved.transform(CORPUS))
    assert loaded.partial_fit(CORPUS).history_[-1]["epoch"] == 3


def test_a_package_allows_its_modules(folder):
    (folder / "mine").mkdir()
    (folder / "mine" / "__init__.py").touch()
    (folder / "mine" / "model.py").write_text(EXAMPLE, encoding="utf-8")
    model_class("mine.model:SharpTM")(**SMALL).fit(CORPUS).save(folder / "model")
    assert tl.load(folder / "model", allow=["mine"]).n_topics == 3


def test_a_module_that_is_gone_is_named(saved, folder):
    (folder / "own_model.py").unlink()
    del sys.modules["own_model"]
    with pytest.raises(InputError, match="there is no module 'own_model' in the current directory"):
        tl.load(folder / "model", allow=["own_model"])


def test_weights_that_its_code_no_longer_fits_are_named(saved, folder):
    del sys.modules["own_model"]
    changed = EXAMPLE.replace(
        "self.sharpness = model.sharpness", "self.extra = torch.nn.Linear(2, 2); self.sharpness = 1"
    )
    (folder / "own_model.py").write_text(changed + "\n# changed\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"model.safetensors does not fit the network that SharpTM builds: .*extra"):
        tl.load(folder / "model", allow=["own_model"])


# What cannot be imported.

BROKEN = {
    "own_model:SharpT": "the module 'own_model' has no model 'SharpT'; name a subclass of TopicModel",
    "own_model:": "has no model ''",
    "own_model:SharpNetwork": "has no model 'SharpNetwork'",
    "own_model:torch": "has no model 'torch'",
    "nosuch:SharpTM": "there is no module 'nosuch' in the current directory, nor where Python finds modules",
    "nosuch.part:SharpTM": "there is no module 'nosuch'",
    ":SharpTM": "does not name a module; write module:Class",
    ".own_model:SharpTM": "does not name a module",
    "broken:Model": r"module 'broken' cannot be imported: NameError: name 'nothing' .*\(.*broken.py, line 3\)",
    "unfinished:Model": r"the module 'unfinished' cannot be imported: .*\(.*unfinished.py, line 2\)",
    "needy:Model": "the module 'needy' cannot be imported: ModuleNotFoundError: No module named 'nowhere'",
    "abstract:Model": "Model of the module 'abstract' is not complete; define build_network in it",
}


@pytest.mark.parametrize("name", BROKEN)
def test_an_unusable_class_is_refused_in_a_sentence(folder, name):
    (folder / "broken.py").write_text("a = 1\n\nnothing\n")
    (folder / "unfinished.py").write_text("a = 1\ndef\n")
    (folder / "needy.py").write_text("import nowhere\n")
    (folder / "abstract.py").write_text("import topicloom as tl\n\nclass Model(tl.NeuralTopicModel): ...\n")
    path = list(sys.path)
    with pytest.raises(InputError, match=BROKEN[name]) as caught:
        model_class(name)
    assert "\n" not in str(caught.value)
    assert [place for place in sys.path if place not in path] in ([], [str(folder)])


def test_an_installed_module_adds_nothing_to_the_path(folder, monkeypatch):
    module = ModuleType("installed")
    module.Mine = type("Mine", (tl.GSM,), {})
    monkeypatch.setitem(sys.modules, "installed", module)
    path = list(sys.path)
    assert model_class("installed:Mine") is module.Mine
    assert sys.path == path


# A name with settings.


def test_settings_after_the_name(folder):
    model = estimator_named("own_model:SharpTM:sharpness=3.0+epochs=5")
    assert (type(model).__name__, model.sharpness, model.epochs) == ("SharpTM", 3.0, 5)
    assert estimator_named("own_model:SharpTM").sharpness == 2.0
    with pytest.raises(SettingError, match="SharpTM has no setting 'sharpnes'; did you mean sharpness"):
        estimator_named("own_model:SharpTM:sharpnes=3.0")


def test_a_number_with_an_exponent_is_one_value():
    assert estimator_named("lda:alpha=1e+0").alpha == 1.0
    model = estimator_named("lda:alpha=1e+0+eta=5e-1+method=variational")
    assert (model.alpha, model.eta, model.method) == (1.0, 0.5, "variational")


@pytest.mark.parametrize("text", ["lda:gibbs", "LDA:gibbs", "lda:gibbs+epochs=3"])
def test_a_setting_without_a_name_is_refused(text):
    with pytest.raises(InputError, match=r"'gibbs.*' is not a setting; write (lda|LDA):name=value\+name=value"):
        estimator_named(text)


# Comparisons.


def test_it_is_compared_like_any_model(folder):
    kind = model_class("own_model:SharpTM")
    small = {"hidden_size": 8, "epochs": 2}
    models = {"mine": kind(**small, sharpness=3.0), "gsm": tl.GSM(**small)}
    found = tl.compare(CORPUS, models, [3], 1, out=folder / "out")
    assert [row["model"] for row in found.rows] == ["mine", "gsm"]
    assert not found.failed
    settings = json.loads((folder / "out" / "comparison.json").read_text())["models"]["mine"]
    assert settings["sharpness"] == "3.0"


# The command line.


def test_from_text_to_an_evaluation(folder):
    Path("pets.txt").write_text(TEXT)
    shown("train", "pets.txt", "--model", "own_model:SharpTM", "--topics", 2, "--epochs", 2, "--set", "sharpness=3",
          "--min-df", 1, "--out", "run", "-q")  # fmt: skip
    config = json.loads(Path("run/model/config.json").read_text())
    assert (config["module"], config["model"], config["settings"]["sharpness"]) == ("own_model", "SharpTM", 3)
    assert "cat" in shown("topics", "run")
    for command in (["infer", "run", "pets.txt"], ["evaluate", "run"]):
        refused(*command, says=["give --allow own_model if you trust it"])
    assert len(shown("infer", "run", "pets.txt", "--allow", "own_model").splitlines()) == 21
    assert "topic_diversity" in shown("evaluate", "run", "--measures", "topic_diversity", "--allow", "own_model")
    assert "sharpness" in shown("models", "own_model:SharpTM")


def test_mistakes_on_the_command_line(folder):
    Path("pets.txt").write_text(TEXT)
    train = ["train", "pets.txt", "--topics", 2, "--out", "run"]
    refused(*train, "--model", "nosuch:SharpTM", says=["there is no module 'nosuch'"])
    refused(*train, "--model", "own_model:Sharp", says=["has no model 'Sharp'"])
    refused(*train, "--model", "own_model:SharpTM", "--set", "sharp=3", says=["SharpTM has no setting 'sharp'"])
    refused(*train, "--model", "sharptm", says=["own as module:Class"])
    assert not Path("run").exists()


def test_its_topics_are_edited(folder, saved):
    edited = saved.merge([0, 1]).rename({0: "both"})
    edited.save(folder / "edited")
    with pytest.raises(InputError, match="whose code would be run; give `allow='own_model'`"):
        tl.load(folder / "edited")
    loaded = tl.load(folder / "edited", allow="own_model")
    assert (type(loaded.origin).__name__, loaded.topic_names_[0]) == ("SharpTM", "both")
    np.testing.assert_allclose(loaded.transform(CORPUS), edited.transform(CORPUS), atol=1e-6)
