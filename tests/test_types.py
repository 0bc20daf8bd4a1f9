"""What the published types say of typical programs."""

from __future__ import annotations

from typing import get_type_hints

import pytest

import topicloom as tl
from topicloom.metrics.cooccurrence import Vocabulary

PROGRAM = """
import numpy as np
import topicloom as tl

columns = np.array(["cat", "dog"])
model = tl.GSM(2).set_params(epochs=2).set_output(transform="default")
for vocabulary in (columns, ["cat", "dog"], {"cat": 1, "dog": 0}, {0: "cat", 1: "dog"}):
    pass
model.fit(np.eye(2), vocabulary=columns).fit(np.eye(2), vocabulary={"cat": 1}).fit(np.eye(2), vocabulary={0: "cat"})
tl.Corpus.from_counts(np.eye(2), {0: "cat", 1: "dog"}).over({"cat": 1, "dog": 0})
reveal_type(model)
reveal_type(model.get_params())
reveal_type(tl.LDA().set_params(n_topics=3).fit_transform(["cat"]))
"""


@pytest.mark.slow  # mypy reads the whole package
def test_types_of_a_typical_program(tmp_path):
    api = pytest.importorskip("mypy.api")
    (tmp_path / "program.py").write_text(PROGRAM)
    said, problems, status = api.run(["--strict", "--cache-dir", str(tmp_path / "cache"), str(tmp_path / "program.py")])
    assert (problems, status) == ("", 0), said
    revealed = [line.split('"')[1] for line in said.splitlines() if "Revealed type" in line]
    assert revealed[:2] == ["topicloom.models.gsm.GSM", "dict[str, Any]"]
    assert revealed[2].startswith("numpy.ndarray")


@pytest.mark.parametrize("method", [tl.TopicModel.fit, tl.TopicModel.partial_fit, tl.Corpus.from_counts])
def test_words_of_columns_have_one_type(method):
    assert get_type_hints(method)["vocabulary"] == Vocabulary | None
