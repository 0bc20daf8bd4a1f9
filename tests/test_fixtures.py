"""What earlier versions saved is read as it was. `tests/fixtures/make.py` writes the files of a version."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import topicloom as tl
from soak.damage import content, corpus, digest
from topicloom.topics.saved import read_metrics, read_shares

VERSIONS = sorted(path.name for path in (Path(__file__).parent / "fixtures").iterdir() if path.is_dir())


@pytest.fixture(params=VERSIONS)
def version(request):
    return request.param


@pytest.fixture
def saved(version, tmp_path):
    """A copy of what a version saved."""
    return Path(shutil.copytree(Path(__file__).parent / "fixtures" / version, tmp_path / "saved"))


def test_this_version_has_fixtures():
    assert tl.__version__ in VERSIONS


def test_models_give_the_theta_that_they_gave(saved):
    theta = np.load(saved / "theta.npz")
    for name in theta.files:
        found = tl.load(saved / name, device="cpu").transform(corpus())
        np.testing.assert_allclose(found, theta[name], atol=1e-6, err_msg=name)
    assert tl.load(saved / "edited").given_names == ["cats 猫", None, None]


def test_a_corpus_is_the_same(version, saved):
    tokenizer = repr(corpus().tokenizer)
    then = tokenizer.replace("rules=2", "rules=1") if version == "0.1.0" else tokenizer
    expected = [then if isinstance(part, str) and part == tokenizer else part for part in content(corpus())]
    assert digest(content(tl.Corpus.load(saved / "corpus", verify=True))) == digest(expected)


def test_a_run_is_the_same(saved):
    topics = tl.Topics.from_run(saved / "run", device="cpu")
    np.testing.assert_array_equal(topics.documents.theta, np.load(saved / "run" / "documents" / "theta.npy"))
    assert list(topics.corpus.texts) == list(corpus().texts)
    assert read_metrics(saved / "run")["documents"] == 19
    assert sum(read_shares(saved / "run", 3)) == pytest.approx(1, abs=1e-5)
    moved = topics.model.apply([{"merge": [0, 1]}])
    assert len(moved.components_) == 2


def test_a_manifest_is_not_changed_by_hand(saved):
    path = saved / "loom" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"n_documents": 7}))
    with pytest.raises(tl.ModelFileError, match=r"config\.json is damaged: its content has changed"):
        tl.load(saved / "loom")
