"""Models that need vectors of documents, where other tests run over models of counts."""

from __future__ import annotations

import csv
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

import topicloom as tl
from command_line import shown
from packed import unpack
from topicloom.datasets import synthetic_lda
from topicloom.metrics.catalogue import measures_of
from topicloom.reports import figures
from topicloom.reports.explorer.page import PageOptions, page_parts
from topicloom.reports.run import fit, write

PLANTED = synthetic_lda(90, 3, 30, random_state=1)
GROUPS = PLANTED.theta.argmax(axis=1)
CORPUS = PLANTED.corpus.with_vectors(
    np.eye(3, 6, dtype=np.float32)[GROUPS] + np.random.default_rng(0).normal(0, 0.1, (90, 6)).astype(np.float32)
)
FAST: dict[str, Any] = {"random_state": 0, "device": "cpu"}
MODELS: dict[str, Any] = {
    "VectorClusters": lambda **more: tl.VectorClusters(3, **FAST | more),
    "FASTopic": lambda **more: tl.FASTopic(3, **{"epochs": 6, **FAST, **more}),
    "combined": lambda **more: tl.ProdLDA.as_published(
        3, recipe="combined", **{"epochs": 6, "batch_size": 30, **FAST, **more}
    ),
    "zeroshot": lambda **more: tl.ProdLDA.as_published(
        3, recipe="zeroshot", **{"epochs": 6, "batch_size": 30, **FAST, **more}
    ),
}
EVERY = pytest.mark.parametrize("name", MODELS)
TRAINED = pytest.mark.parametrize("name", [name for name in MODELS if name != "VectorClusters"])


@cache
def fitted(name: str) -> tl.TopicModel:
    """Not to be changed."""
    return MODELS[name]().fit(CORPUS)


def test_all_models_that_need_vectors_are_here():
    assert {kind.__name__ for kind in tl.MODELS if kind.needs_vectors} <= set(MODELS)


@EVERY
def test_it_is_saved_and_loaded(name, tmp_path):
    model = fitted(name)
    model.save(tmp_path / "model")
    loaded = tl.load(tmp_path / "model", device="cpu")
    assert loaded.fingerprint == model.fingerprint
    np.testing.assert_array_equal(loaded.components_, model.components_)
    np.testing.assert_array_equal(loaded.transform(CORPUS), model.transform(CORPUS))


@pytest.mark.parametrize(
    ("name", "longer"),
    [("VectorClusters", {}), ("FASTopic", {"epochs": 100, "learning_rate": 0.05}), ("zeroshot", {"epochs": 60})],
)
def test_topics_follow_the_vectors_of_new_documents(name, longer):
    model = MODELS[name](**longer).fit(CORPUS)
    main = model.transform(CORPUS).argmax(axis=1)
    of_group = [int(np.bincount(main[group == GROUPS]).argmax()) for group in range(3)]
    assert sorted(of_group) == [0, 1, 2]
    new = CORPUS[:30].with_vectors(np.eye(3, 6, dtype=np.float32)[(GROUPS[:30] + 1) % 3])
    moved = np.array(of_group)[(GROUPS[:30] + 1) % 3]
    assert (model.transform(new).argmax(axis=1) == moved).mean() > 0.9


@EVERY
def test_its_topics_are_edited(name):
    model = fitted(name)
    theta = model.transform(CORPUS)
    edited = model.apply([{"merge": [0, 2]}, {"rename": {1: "one"}}], documents=CORPUS)
    np.testing.assert_allclose(edited.transform(CORPUS)[:, 0], theta[:, 0] + theta[:, 2], atol=1e-5)
    assert edited.topic_names_[1] == "one"
    without = model.apply([{"drop": [1]}], documents=CORPUS).transform(CORPUS)
    expected = theta[:, [0, 2]] / theta[:, [0, 2]].sum(1, keepdims=True)
    np.testing.assert_allclose(without[theta[:, 1] < 0.9], expected[theta[:, 1] < 0.9], atol=1e-3)


class Stops(tl.Callback):
    """Ends a fit after the fourth epoch."""

    n_epochs = 0

    def on_epoch(self, *_):
        self.n_epochs += 1
        if self.n_epochs == 5:
            raise ZeroDivisionError


@TRAINED
def test_a_fit_goes_on_where_it_stopped(name, tmp_path):
    with pytest.raises(ZeroDivisionError):
        MODELS[name]().fit(CORPUS, checkpoint=tl.Checkpoints(tmp_path, every="1 epoch"), callbacks=[Stops()])
    resumed = MODELS[name]().fit(CORPUS, checkpoint=tmp_path)
    np.testing.assert_array_equal(resumed.components_, fitted(name).components_)
    np.testing.assert_array_equal(resumed.transform(CORPUS), fitted(name).transform(CORPUS))


@TRAINED
def test_it_is_watched_and_its_terms_are_explained(name):
    model = MODELS[name]().fit(CORPUS, monitor=["u_mass"], monitor_every=3)
    assert [row["epoch"] for row in model.history_ if "u_mass" in row] == [3, 6]
    panels = [axes.get_title(loc="left") for axes in figures.loss_curve(model.history_).axes]
    assert panels
    assert all(": " in title for title in panels)


@EVERY
def test_it_is_evaluated(name):
    found = tl.evaluate(fitted(name), CORPUS, labels=list(map(str, GROUPS)))
    assert {"purity", "nmi", "document_npmi", "topic_diversity"} <= set(found)
    main = fitted(name).transform(CORPUS).argmax(axis=1)
    pure = sum(np.bincount(GROUPS[main == k]).max() for k in set(main.tolist())) / len(main)
    assert found["purity"] == pytest.approx(pure)
    assert set(found) | set(found.skipped) == set(measures_of("evaluation"))


@EVERY
def test_threads_get_what_one_gets(name):
    model, expected = fitted(name), fitted(name).transform(CORPUS)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: model.transform(CORPUS), range(8)):
            np.testing.assert_array_equal(found, expected)


def test_they_are_compared(tmp_path):
    models = {name: make() for name, make in MODELS.items()}
    found = tl.compare(CORPUS, models, 3, seeds=1, out=tmp_path / "compared")
    assert {row["model"] for row in found.rows} == set(MODELS)
    assert all(row["measures"]["test"]["topic_diversity"] > 0 for row in found.rows)


@EVERY
def test_its_run_is_used_on_the_command_line(name, tmp_path):
    model = MODELS[name]()
    seconds = fit(model, CORPUS)
    write(tmp_path / "run", model, CORPUS, model.infer(CORPUS), seconds)
    CORPUS[:5].save(tmp_path / "new")
    rows = list(csv.DictReader(shown("infer", tmp_path / "run", tmp_path / "new").splitlines()))
    found = [[float(row[f"topic_{k}"]) for k in range(3)] for row in rows]
    np.testing.assert_allclose(found, model.transform(CORPUS[:5]), atol=1e-5)
    core = unpack(page_parts(tl.Topics.from_run(tmp_path / "run"), PageOptions())["core"])[0]
    assert core["map_by"] == "vectors"
    assert core.get("infers_by") == ("words" if name == "combined" else None)


def test_an_encoder_of_vectors_has_no_weights_of_words():
    encoder = fitted("zeroshot").network_.encoder
    state = encoder.state_dict()
    assert not [each for each in encoder.parameters() if len(each) == CORPUS.n_words]
    encoder.load_state_dict(state | {"weight": torch.ones(CORPUS.n_words, 100)})  # as it was saved before
    with pytest.raises(RuntimeError, match="Unexpected key"):
        encoder.load_state_dict(state | {"weights": torch.ones(2)})
