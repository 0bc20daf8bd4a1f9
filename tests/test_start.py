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


ENTERED = """
import sys
from pathlib import Path
import joblib, pandas, pydantic, rich, scipy.stats, sklearn.base, torch  # whose calls need not be noted
import topicloom, topicloom.cli, topicloom.topics.view as view

root, files = str(Path(topicloom.__file__).parent), set()

def note(frame, event, _):  # returns None, so that nothing within the frame is traced
    file = frame.f_code.co_filename
    if file not in files and file.startswith(root) and frame.f_code.co_name != "<module>":
        above = frame.f_back  # what runs while modules are loaded is not entered
        while above is not None:
            if above.f_code.co_name == "<module>" and above.f_code.co_filename.startswith(root):
                return
            above = above.f_back
        files.add(file)

def show(*arguments):
    sys.settrace(None)
    print(len(files), *(name for name in sys.modules if name.startswith("topicloom.")), file=sys.stderr)
    raise SystemExit

view.Topics.of = show  # the pictures and the page of the run begin here
sys.settrace(note)
topicloom.cli.app(["train", *sys.argv[1:], "--quiet"])
"""


def test_training_a_small_model_enters_few_files(tmp_path):
    """Each file that the path from texts to topics enters is one that a reader of that path has to open."""
    words = ["ship port sea sail crew", "cat dog pet paw fur", "tax bank loan rate fund", "red blue green grey pink"]
    (tmp_path / "texts.txt").write_text("\n".join(words * 20), encoding="utf-8")
    options = ["--model", "gsm", "--topics", "3", "--epochs", "2", "--out", str(tmp_path / "run")]
    ended = subprocess.run(
        [sys.executable, "-c", ENTERED, str(tmp_path / "texts.txt"), *options],
        capture_output=True,
        text=True,
        check=True,
    )
    count, *modules = ended.stderr.splitlines()[-1].split()
    assert int(count) <= 62
    parts = {name.removeprefix("topicloom.") for name in modules}
    assert "models.gsm" in parts
    assert not parts & {"models.lda", "models.loom", "models.etm", "evaluation", "reports.explorer", "reports.figures"}
