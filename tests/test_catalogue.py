"""The catalogue of measures: what each says it needs is what it reads, and all parts of the package use it."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

import topicloom as tl
from topicloom import metrics
from topicloom.errors import InputError
from topicloom.metrics import CATALOGUE, Measured, MeasureInputs
from topicloom.metrics.catalogue import known_measures, measures_of

ROOT = Path(tl.__file__).parent
THETA = np.random.default_rng(0).dirichlet(np.ones(3), 20)


class Known(MeasureInputs):
    """Everything that a measure can read, and a note of what it has read."""

    top_n = None
    topics = relevant_topics = (("a", "b"), ("c", "d"), ("a", "d"))
    training_labels = None

    def __init__(self):
        self.read = set()

    def note(self, need, value):
        self.read.add(need)
        return value

    tokens = metrics.Reference.from_tokens([["a", "b", "c"], ["d", "a"]])
    documents = property(lambda self: self.note("documents", self.tokens))
    ordered_documents = property(lambda self: self.note("token order", self.tokens))
    pools = property(lambda self: self.note("document vectors", np.array([[0, 1], [1, -1]])))
    word_vectors = property(lambda self: self.note("word vectors", {"a": [1.0, 0], "c": [0, 1.0], "d": [1.0, 1.0]}))
    topic_word = property(lambda self: self.note("topic-word matrix", np.full((3, 4), 0.25)))
    word_counts = np.arange(1, 5)
    theta = property(lambda self: self.note("theta", THETA))
    labels = property(lambda self: self.note("labels", np.array(["x", "y"] * 10, dtype=object)))
    divergence = property(lambda self: self.note("divergence", THETA))
    latent_means = property(lambda self: self.note("latent means", THETA))
    seconds = property(lambda self: self.note("seconds", 1.5))
    other_runs = property(lambda self: self.note("other runs", [np.full((3, 4), 0.25)]))

    def log_likelihood(self, method):
        return self.note("likelihood", (np.array([-3.0]), np.array([2.0])))


@pytest.mark.parametrize("measure", CATALOGUE.values(), ids=lambda measure: measure.name)
def test_a_measure_reads_what_it_needs(measure):
    inputs = Known()
    found = measure.function(inputs)
    assert isinstance(found, Measured)
    assert np.isfinite(found)
    assert inputs.read == measure.needs


@pytest.mark.parametrize("measure", CATALOGUE.values(), ids=lambda measure: measure.name)
def test_what_is_not_known_is_refused_in_a_sentence(measure):
    class Unknown(MeasureInputs):
        pass

    with pytest.raises(InputError, match=r" known here$"):
        measure.function(Unknown())


def test_entries_are_sound():
    assert all(name == measure.name for name, measure in CATALOGUE.items())
    titles = [measure.title for measure in CATALOGUE.values()]
    assert len(set(titles)) == len(titles)
    uses = {use for measure in CATALOGUE.values() for use in measure.uses}
    assert uses == {"evaluation", "monitor", "watch", "comparison", "tuning"}
    assert all(measure.uses for measure in CATALOGUE.values())
    assert all(CATALOGUE[name].better for name in (*measures_of("comparison"), *measures_of("tuning")))
    watchable = measures_of("monitor").values()
    assert {need for measure in watchable for need in measure.needs} == {
        "documents", "token order", "word vectors"
    }  # fmt: skip


def test_names_are_checked():
    assert known_measures(["c_v", "nmi", "c_v"], CATALOGUE, "measures") == ["c_v", "nmi"]
    for names, message in (
        (["c_vv"], "unknown measure 'c_vv' in measures; did you mean"),
        ("c_v", "list"),
        (5, "list"),
    ):
        with pytest.raises(InputError, match=message):
            known_measures(names, CATALOGUE, "measures")


def test_no_other_list_of_measures():
    """Outside the catalogue, no collection in the package's code has four measures by name.

    The words of pictures are the exception: a measure without any has its title there.
    """
    for file in sorted(ROOT.rglob("*.py")):
        if file.parent.name == "metrics" or file == ROOT / "reports" / "wording.py":
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            items = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [])
            names = [item.value for item in items if isinstance(item, ast.Constant) and item.value in CATALOGUE]
            assert len(names) < 4, f"{file}: {names}"
