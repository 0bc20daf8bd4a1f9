"""The same seed gives the same results in every process, and no public call changes the process that makes it."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import random
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import topicloom as tl
from test_contract import CASES, CORPUS, TEXTS, can_run

PLACES = [str(Path(tl.__file__).parents[1]), str(Path(__file__).parent)]


def digests() -> dict[str, str]:
    """Return what every model learns from one seed, and what is counted of texts by two processes."""
    found = {}
    for case in CASES:
        if not case.marks:
            model = case.values[0]().fit(CORPUS)
            learned = [model.components_, model.transform(CORPUS), np.float64(model.perplexity(CORPUS))]
            found[case.id] = hashlib.sha256(b"".join(array.tobytes() for array in learned)).hexdigest()
    texts = [f"{text} {number}" for number in range(60) for text in TEXTS]
    corpus = tl.Corpus.from_texts(texts, min_df=1, language="en", n_jobs=2)
    assert corpus.digest == tl.Corpus.from_texts(texts, min_df=1, language="en", n_jobs=1).digest
    return found | {"words": hashlib.sha256(" ".join(corpus.vocabulary).encode()).hexdigest(), "counts": corpus.digest}


RAW = [TEXTS[0].upper() + "!", "unheard of", TEXTS[1]]
THERE = """
import json, sys, torch
import topicloom as tl
theta = [tl.load(folder, device="cpu").transform(sys.argv[2:]).tolist() for folder in sys.argv[1].split()]
torch.set_num_threads(2)
from test_determinism import digests
print(json.dumps({"theta": theta, "digests": digests()}))
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tl.TopicModel]:
    """A fitted model of each kind that reads texts, by the folder in which it is saved."""
    folder = tmp_path_factory.mktemp("saved")
    makers = {str(folder / case.id): case.values[0] for case in CASES if can_run(case)}
    models = {place: make().fit(TEXTS) for place, make in makers.items() if not make().needs_vectors}
    for place, model in models.items():
        model.save(place)
    return models


@pytest.fixture(scope="module")
def there(saved: dict[str, tl.TopicModel]) -> dict[str, Any]:
    """What a new process finds. Sets of strings are in another order there, and torch has two threads."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(PLACES), "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-c", THERE, " ".join(saved), *RAW]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def test_every_model_learns_the_same_in_a_new_process(there):
    assert there["digests"] == digests()


def test_another_process_reads_raw_text(there, saved):
    for theta, (folder, model) in zip(there["theta"], saved.items(), strict=True):
        np.testing.assert_allclose(theta, model.transform(RAW), atol=1e-5, err_msg=folder)


def state_of_process() -> dict[str, Any]:
    """Return what no call may change."""
    drawn = np.random.get_state(legacy=False)  # noqa: NPY002  # it is read to see that nobody changed it
    return {
        "environment": dict(os.environ),
        "directory": os.getcwd(),
        "random": (random.getstate(), drawn["state"]["pos"], drawn["state"]["key"].tolist()),
        "torch": (torch.get_rng_state().tolist(), torch.get_num_threads(), torch.get_default_dtype()),
        "torch modes": (
            torch.is_grad_enabled(),
            torch.are_deterministic_algorithms_enabled(),
            torch.get_default_device(),
        ),
        "denormals": (torch.tensor([1e-39]) * 1.0).item(),
        "numpy": np.geterr(),
        "warnings": list(warnings.filters),
        "signals": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        "path": list(sys.path),
        "log": (logging.getLogger().handlers, logging.getLogger("topicloom").handlers, logging.root.level),
    }


CALLS: dict[str, Callable[[Path], Any]] = {
    "fit": lambda folder: tl.Loom(3, epochs=4, random_state=0).fit(CORPUS),
    "fit with checkpoints": lambda folder: tl.GSM(3, epochs=2, random_state=0).fit(CORPUS, checkpoint=folder / "c"),
    "partial_fit": lambda folder: tl.GSM(3, random_state=None).partial_fit(CORPUS),
    "use": lambda folder: _use(tl.GSM(3, epochs=1, random_state=0).fit(CORPUS), folder),
    "corpus": lambda folder: tl.Corpus.from_texts(TEXTS * 30, min_df=1, language="en", n_jobs=2).save(
        folder / "corpus"
    ),
    "evaluate": lambda folder: tl.evaluate(tl.LDA(3, epochs=1, random_state=0).fit(CORPUS), CORPUS),
    "compare": lambda folder: tl.compare(CORPUS, ["gsm:epochs=1", "lda:epochs=1"], [3], 1, out=folder / "x"),
    "tune": lambda folder: tl.tune(CORPUS, "gsm:epochs=1", 3, trials=1, out=folder / "t"),
    "figures": lambda folder: tl.figures.loss_curve(tl.GSM(3, epochs=1, random_state=0).fit(CORPUS).history_),
}


@pytest.fixture(scope="module")
def imported() -> None:
    """The first fit imports more of torch and of others, which set TORCHINDUCTOR_CACHE_DIR and a filter of warnings."""
    tl.Loom(3, epochs=4, random_state=0).fit(CORPUS)


def _use(model: tl.TopicModel, folder: Path) -> None:
    model.save(folder / "model")
    loaded = tl.load(folder / "model")
    loaded.transform(CORPUS)
    loaded.perplexity(CORPUS)
    loaded.interpolate(CORPUS[0], CORPUS[1])
    topics = tl.Topics(loaded, CORPUS)
    topics.topic_table()
    topics.name("words")
    loaded.merge([0, 1])


@pytest.mark.parametrize("name", CALLS)
def test_no_call_changes_the_process(name, imported, tmp_path):
    if name == "tune":
        pytest.importorskip("optuna")
    if name == "figures":
        pytest.importorskip("matplotlib")
    random.seed(3)
    before = state_of_process()
    CALLS[name](tmp_path)
    after = state_of_process()
    assert {part: after[part] for part in before if after[part] != before[part]} == {}


def test_topics_of_etm_start_alike_with_two_threads():
    corpus = tl.datasets.synthetic_lda(300, 8, 800, 40, random_state=0).corpus
    before, found = torch.get_num_threads(), []
    try:
        for n_threads in (1, 2):
            torch.set_num_threads(n_threads)
            found.append(tl.ETM(8, epochs=1, random_state=0, device="cpu").fit(corpus).components_)
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(*found)
