"""Try an installed topicloom: import, fit, save, load, transform, the command line, and what each extra adds.

    python tests/install/smoke.py FOLDER [EXTRA ...]

The extras are those that were installed. Whatever needs another one has to end in a MissingExtraError that names it.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import topicloom as tl
from topicloom.embeddings.neighbours import VectorIndex
from topicloom.errors import MissingExtraError
from topicloom.text import read

PETS, MONEY = "the cat chased the dog and the dog chased the cat", "the bank raised rates and the stocks of banks fell"
TEXTS = [PETS, MONEY] * 30


def corpus() -> tl.Corpus:
    return tl.Corpus.from_texts(TEXTS, language="en", min_df=2, max_df=1.0)


def topics() -> tl.Topics:
    found = corpus()
    return tl.Topics(tl.GSM(2, epochs=1, random_state=0).fit(found), found)


def chinese() -> None:
    tl.Corpus.from_texts(["央行宣布加息，股市大跌", "湖人队击败火箭队"] * 5, language="zh", min_df=1, max_df=1.0)


def intl() -> None:
    tl.Corpus.from_texts(["東京で会いましょう", "ภาษาไทยง่ายนิดเดียว"] * 5, language="ja", min_df=1, max_df=1.0)


def lemmas() -> None:
    tl.Corpus.from_texts(["cats chased mice", "a cat chases a mouse"] * 5, language="en", lemmatise=True, max_df=1.0)


def documents(folder: Path) -> None:
    place = folder / "a.docx"
    try:
        word = importlib.import_module("docx").Document()
        word.add_paragraph(PETS)
        word.save(place)
    except ImportError:
        place.write_bytes(b"PK")
    assert next(iter(read(place))).text == PETS


def files(folder: Path) -> None:
    view = topics()
    for name in ("topics.parquet", "topics.xlsx"):
        view.table().save(folder / name)
    view.topic_table()


def service(folder: Path) -> None:
    from topicloom.service import make_app
    from topicloom.service.live import Live

    live = Live.open(folder / "run")
    assert make_app(live)
    live.close()


def browser() -> None:
    """Nothing in the package needs it; the tests do."""
    try:
        importlib.import_module("selenium")
    except ImportError:
        raise MissingExtraError.of("the browser", "selenium", "browser") from None


def fast() -> None:
    """The extra is empty. Loom trains with numba, which the package needs."""
    tl.Loom(2, epochs=2, random_state=0).fit(corpus())
    importlib.import_module("numba")


def encoders(module: str, package: str, extra: str) -> None:
    """Models come from elsewhere, so the package alone is tried."""
    try:
        importlib.import_module(module)
    except ImportError:
        raise MissingExtraError.of("this encoder", package, extra) from None


def ray() -> None:
    """A cluster of this machine alone."""
    tl.compare(corpus(), ["gsm:epochs=1"], 2, 1, cluster="local")


def probes(folder: Path) -> dict[str, Callable[[], object]]:
    """What each extra adds."""
    return {
        "zh": chinese,
        "intl": intl,
        "lemmas": lemmas,
        "io": lambda: files(folder),
        "documents": lambda: documents(folder),
        "eval": lambda: tl.LDA(2, method="gibbs", epochs=5, random_state=0).fit(corpus()),
        "viz": lambda: tl.figures.save(tl.figures.loss_curve([{"epoch": 1, "loss": 2.0}]), folder / "loss.png"),
        "clouds": lambda: tl.figures.draw(topics(), "clouds"),
        "maps": lambda: tl.figures.draw(topics(), "map", projection="umap"),
        "vectors": lambda: tl.train_word_vectors(corpus(), size=8, epochs=1),
        "sentence": lambda: encoders("sentence_transformers", "sentence-transformers", "sentence"),
        "static": lambda: encoders("model2vec", "model2vec", "static"),
        "neighbours": lambda: VectorIndex.of(np.eye(4, dtype=np.float32), "approximate").neighbours(1),
        "tune": lambda: tl.tune(corpus(), "gsm:epochs=1", 2, trials=1),
        "serve": lambda: service(folder),
        "browser": browser,
        "fast": fast,
        "ray": ray,
    }


_ENCODERS = ("sentence", "static")
IMPLIED = {
    "clouds": ["viz"],
    "maps": ["viz"],
    "all": [extra for extra in probes(Path()) if extra not in _ENCODERS],
}


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    whole = [sys.executable, "-P", "-m", "topicloom", *map(str, arguments)]
    return subprocess.run(whole, capture_output=True, text=True)


def core(folder: Path) -> None:
    found = corpus()
    model = tl.Loom(2, epochs=3, random_state=0).fit(found)
    model.save(folder / "model")
    theta = tl.load(folder / "model").transform(TEXTS[:3])
    np.testing.assert_array_equal(theta, model.transform(TEXTS[:3]))
    np.testing.assert_allclose(theta.sum(axis=1), 1, atol=1e-6)
    (folder / "news.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    for arguments in (
        (
            "train",
            folder / "news.txt",
            "--language",
            "en",
            "--topics",
            2,
            "--epochs",
            2,
            "--max-df",
            1.0,
            "--out",
            folder / "run",
        ),
        ("topics", folder / "run"),
        ("infer", folder / "run", folder / "news.txt", "--out", folder / "theta.csv"),
    ):
        done = command(*arguments)
        assert done.returncode == 0, done.stderr
    assert (folder / "run" / "explorer.html").is_file()
    assert len((folder / "theta.csv").read_text(encoding="utf-8").splitlines()) == len(TEXTS) + 1
    refused = command("train", folder / "nothing.txt", "--out", folder / "none")
    assert refused.returncode == 2
    assert "Traceback" not in refused.stderr


def main() -> None:
    folder, installed = Path(sys.argv[1]), {each for extra in sys.argv[2:] for each in (extra, *IMPLIED.get(extra, ()))}
    print(f"topicloom {tl.__version__} of {Path(tl.__file__).parent}, Python {sys.version.split()[0]}")
    core(folder)
    for extra, probe in probes(folder).items():
        try:
            probe()
            outcome = "works"
        except MissingExtraError as error:
            outcome = str(error)
            if extra in installed or "pip install 'topicloom[" not in outcome:
                raise
        print(f"  {extra}: {outcome}")


if __name__ == "__main__":
    main()
