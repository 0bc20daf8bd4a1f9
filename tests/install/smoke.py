"""Try an installed topicloom: import, fit, save, load, transform, the command line, and what each extra adds.

    python tests/install/smoke.py FOLDER [EXTRA ...]

The extras are those that were installed. Whatever needs another one has to end in one sentence with the command that
installs it, in Python and on the command line.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

import topicloom as tl
from topicloom.cli import app
from topicloom.embeddings.neighbours import VectorIndex
from topicloom.errors import MissingExtraError
from topicloom.text import TextEncoder, read

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


WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *sorted(set(f"{PETS} {MONEY}".split()))]


def tokenizer() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers

    made = Tokenizer(models.WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return made


def static(folder: Path) -> None:
    """A model of four numbers for each word."""
    place = folder / "static"
    place.mkdir()
    try:
        from model2vec import StaticModel

        StaticModel(np.eye(len(WORDS), 4, dtype=np.float32) + 1, tokenizer()).save_pretrained(str(place))
    except ImportError:
        pass
    assert TextEncoder.of(f"model2vec:{place}").encode(TEXTS).shape == (len(TEXTS), 4)


def sentence(folder: Path) -> None:
    """A transformer of one small layer."""
    place, bert = folder / "sentence", folder / "bert"
    place.mkdir()
    try:
        from sentence_transformers import SentenceTransformer
        from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

        names = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
        PreTrainedTokenizerFast(tokenizer_object=tokenizer(), model_max_length=32, **names).save_pretrained(bert)
        sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
        BertModel(BertConfig(vocab_size=len(WORDS), max_position_embeddings=32, **sizes)).save_pretrained(bert)
        SentenceTransformer(str(bert), device="cpu").save(str(place))
    except ImportError:
        pass
    assert TextEncoder.of(f"sentence-transformers:{place}").encode(TEXTS).shape == (len(TEXTS), 8)


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
        "sentence": lambda: sentence(folder),
        "static": lambda: static(folder),
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
COMMANDS = {  # what needs an extra on the command line, in the folder of the run
    "zh": ("prepare", "news.txt", "--language", "zh", "--out", "zh"),
    "intl": ("prepare", "news.txt", "--language", "ja", "--out", "ja"),
    "lemmas": ("prepare", "news.txt", "--language", "en", "--lemmatise", "--out", "lemmas"),
    "io": ("prepare", "news.parquet", "--out", "parquet"),
    "documents": ("prepare", "news.docx", "--out", "docx"),
    "viz": ("figures", "run", "--out", "pictures"),
    "clouds": ("figures", "run", "--kind", "clouds", "--out", "clouds"),
    "sentence": (
        "prepare",
        "news.txt",
        "--language",
        "en",
        "--encoder",
        "sentence-transformers:nothing",
        "--out",
        "sentence",
    ),
    "static": ("prepare", "news.txt", "--language", "en", "--encoder", "model2vec:x", "--out", "of-x"),
    "tune": ("tune", "news.txt", "--language", "en", "--max-df", "1.0", "--out", "tuned"),
    "serve": ("serve", "run", "--port", "0"),
    "ray": ("prepare", "news.txt", "--language", "en", "--cluster", "local", "--out", "ray"),
}


def command(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def core(folder: Path) -> None:
    found = corpus()
    model = tl.Loom(2, epochs=3, random_state=0).fit(found)
    model.save(folder / "model")
    theta = tl.load(folder / "model").transform(TEXTS[:3])
    np.testing.assert_array_equal(theta, model.transform(TEXTS[:3]))
    np.testing.assert_allclose(theta.sum(axis=1), 1, atol=1e-6)
    news, run, shares = folder / "news.txt", folder / "run", folder / "theta.csv"
    news.write_text("\n".join(TEXTS), encoding="utf-8")
    done = command("train", news, "--language", "en", "--topics", 2, "--epochs", 2, "--max-df", 1.0, "--out", run)
    assert done.exit_code == 0, done.output
    done = command("infer", run, news, "--out", shares)
    assert done.exit_code == 0, done.output
    whole = subprocess.run([sys.executable, "-P", "-m", "topicloom", "topics", run], capture_output=True, text=True)
    assert whole.returncode == 0, whole.stderr
    assert (run / "explorer.html").is_file()
    assert len(shares.read_text(encoding="utf-8").splitlines()) == len(TEXTS) + 1
    refused = command("train", folder / "nothing.txt", "--out", folder / "none")
    assert refused.exit_code == 2, refused.output


def named(extra: str, said: str, installed: set[str]) -> str:
    """Check that a sentence ends in the command that installs what `extra` still lacks, and return it."""
    lacks = [each for each in (*IMPLIED.get(extra, ()), extra) if each not in installed]
    assert "\n" not in said, said
    assert any(said.endswith(f": pip install 'topicloom[{each}]'") for each in lacks), said
    return said


def main() -> None:
    folder, installed = Path(sys.argv[1]), {each for extra in sys.argv[2:] for each in (extra, *IMPLIED.get(extra, ()))}
    print(f"topicloom {tl.__version__} of {Path(tl.__file__).parent}, Python {sys.version.split()[0]}")
    core(folder)
    for extra, probe in probes(folder).items():
        try:
            probe()
            outcome = "works"
        except MissingExtraError as error:
            outcome = named(extra, str(error), installed)
        print(f"  {extra}: {outcome}")
    (folder / "news.parquet").touch()
    (folder / "news.docx").touch()
    os.chdir(folder)
    for extra, arguments in COMMANDS.items():
        if extra not in installed:
            done = command(*arguments)
            said = done.stderr.splitlines()[-1]
            assert done.exit_code == 2, (extra, done.output)
            assert said.startswith("topicloom: error: "), said
            print(f"  topicloom {' '.join(arguments)}: {named(extra, said, installed)}")


if __name__ == "__main__":
    main()
