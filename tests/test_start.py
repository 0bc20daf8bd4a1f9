"""What commands and the first fit of a process import, which is most of the time that they take."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import topicloom as tl

CORPUS = tl.datasets.synthetic_lda(40, 2, 20, random_state=1).corpus


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    tl.GSM(2, epochs=1, hidden_size=4, random_state=0).fit(CORPUS).save(folder / "model")
    CORPUS.save(folder / "corpus")
    return folder


def imported(*arguments: str) -> set[str]:
    """The modules that Python imports with these arguments."""
    ended = subprocess.run([sys.executable, "-X", "importtime", *arguments], capture_output=True, text=True, check=True)
    lines = [line for line in ended.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


@pytest.mark.parametrize(
    ("command", "without"),
    [
        (["--help"], {"torch", "numpy", "scipy", "pydantic"}),
        (["models"], {"torch", "numpy", "scipy"}),
        (["topics", "MODEL"], {"torch", "scipy", "sklearn", "pandas", "joblib"}),
        (["topics", "MODEL", "--json", "--relevance", "0.6"], {"torch", "scipy", "sklearn", "pandas", "joblib"}),
    ],
    ids=lambda given: given[0] if isinstance(given, list) else "",
)
def test_tables_of_words_need_no_pytorch(saved, command, without):
    modules = imported("-m", "topicloom", *[str(saved / "model") if word == "MODEL" else word for word in command])
    assert "topicloom.cli" in modules
    assert not modules & without


def test_a_corpus_needs_no_pytorch(saved):
    modules = imported("-c", f"import topicloom as tl; tl.Corpus.load({str(saved / 'corpus')!r})")
    assert "topicloom.corpus.corpus" in modules
    assert not modules & {"torch", "sklearn", "pandas", "joblib", "scipy.optimize", "scipy.stats"}


def test_the_first_fit_needs_no_compiler(saved):
    """Each of these modules takes about as long to import as the rest of PyTorch."""
    modules = imported(
        "-c",
        "import topicloom as tl\n"
        f"corpus = tl.Corpus.load({str(saved / 'corpus')!r})\n"
        "tl.ProdLDA(2, epochs=1, hidden_size=4).fit(corpus)\n"
        "tl.Loom(2, epochs=2, hidden_size=4).fit(corpus).transform(corpus)\n"
        f"tl.load({str(saved / 'model')!r}).transform(corpus)",
    )
    assert "torch.optim.adam" in modules
    assert not modules & {"torch._dynamo", "sympy"}
