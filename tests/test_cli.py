"""The command line, as a user meets it: what it writes, what it prints, and one line for every mistake."""

import errno
import inspect
import io
import json
import os
import re
import subprocess
import sys
from contextlib import redirect_stdout
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

import topicloom as tl
from command_line import MONEY, PETS, call, refused, table
from forks import Fork, needs_fork, run_command
from topicloom.cli import COMMANDS, load_command
from topicloom.cli.shell import print_table, say, say_what_was_replaced, spare_narrow_stdout
from topicloom.files.content import read_yaml_or_toml

RUN_FILES = {
    "state.safetensors",
    "model",
    "documents",
    "topics.csv",
    "doc_topics.csv",
    "metrics.json",
    "log.jsonl",
    "train.yaml",
    "explorer.html",
}
PICTURES = {"loss.png", "collapse.png", "quality.png", "topics.png"}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    (folder / "pets.txt").write_text(f"{PETS}\n{MONEY}\n" * 30 + "\n", encoding="utf-8")
    lines = "".join(
        f'{{"text": "{text}", "id": "d{n}", "label": "l{n % 2}"}}\n' for n, text in enumerate([PETS, MONEY] * 30)
    )
    (folder / "pets.jsonl").write_text(lines, encoding="utf-8")
    (folder / "other.csv").write_text("title,body\nx,y\n", encoding="utf-8")
    (folder / "bad.txt").write_bytes(b"fine\n\xff\xfe\n")
    (folder / "bad.jsonl").write_text('{"text": "fine"}\n{oops\n', encoding="utf-8")
    (folder / "binary.txt").write_bytes(bytes(range(256)) * 8)
    (folder / "void.txt").write_text("", encoding="utf-8")
    (folder / "empty").mkdir()
    return folder


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "pets"
    result = call("train", data / "pets.txt", "--topics", 2, "--epochs", 3, "--out", out, "--words", 3)
    assert result.exit_code == 0, result.output
    assert "the run is in" in result.stderr
    assert len(result.stdout.splitlines()) == 3  # a head and two topics
    return out


def test_help_comes_without_pytorch():
    code = (
        "import sys; from typer.testing import CliRunner; from topicloom.cli import app; "
        "assert CliRunner().invoke(app, ['train', '--help']).exit_code == 0; "
        "assert not {'torch', 'scipy', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_module_runs_and_a_mistake_leaves_no_traceback(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-m", "topicloom", "prepare", "nosuch.txt", "--out", str(tmp_path / "c")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "topicloom: error: nosuch.txt does not exist; check the path\n"


def test_the_lines_of_help_are_filled(monkeypatch):
    """A line ends where its next word has no room, although the docstring ends its lines elsewhere."""
    monkeypatch.setenv("COLUMNS", "80")
    shown = call("export", "--help").stdout
    lines = [line.strip() for line in shown[shown.index("topics, words") : shown.index("╭")].strip().splitlines()]
    assert len(lines) > 4
    for line, following in pairwise(lines):
        assert len(f"{line} {following.split()[0]}") > 76


def test_the_help_lists_commands_in_the_order_of_their_use():
    shown = call("--help").stdout
    names = ["train", "topics", "infer", "edit", "explore", "serve", "compare", "models"]
    places = [shown.index(f"│ {name} ") for name in names]
    assert places == sorted(places)


@pytest.mark.parametrize(("name", "entry"), COMMANDS.items())
def test_the_program_and_its_commands_give_the_same_summary(name, entry):
    function = getattr(import_module(f"topicloom.cli.{entry.module}"), name.replace("-", "_"))
    assert " ".join(inspect.getdoc(function).split("\n\n")[0].split()) == entry.summary
    assert load_command(name).name == name


def test_options_stand_under_headings_those_used_most_first():
    shown = call("train", "--help").stdout
    assert re.findall("╭─ ([A-Z][a-z ]+) ─", shown) == [
        "Arguments", "Options", "The file", "The words", "Workers", "Documents", "Model", "Training", "Output"
    ]  # fmt: skip
    first = shown.partition("╭─ Options")[2].partition("╭─ The file")[0]
    assert re.findall("│ (--[a-z]+)", first) == ["--model", "--topics", "--out", "--epochs", "--seed", "--help"]


def test_a_command_is_loaded_without_the_others(trained):
    script = "import sys; from topicloom.cli import app; app(sys.argv[1:], standalone_mode=False); print(*sys.modules)"

    def loaded(*arguments):
        ended = subprocess.run([sys.executable, "-c", script, *map(str, arguments)], capture_output=True, check=True)
        return {name.partition("topicloom.cli.")[2] for name in ended.stdout.decode().split()} & {
            entry.module for entry in COMMANDS.values()
        }

    assert loaded("--help") == set()
    assert loaded("topics", trained) == {"show"}


def test_version():
    assert call("--version").stdout == f"topicloom {tl.__version__}\n"


@pytest.mark.draws
def test_a_run_has_pictures(data, tmp_path):
    pytest.importorskip("matplotlib")
    result = call("train", data / "pets.txt", "--topics", 2, "--epochs", 1, "--no-explorer", "--out", tmp_path / "run")
    assert result.exit_code == 0, result.output
    assert {path.name for path in (tmp_path / "run").iterdir()} == RUN_FILES - {"explorer.html"} | PICTURES


def test_a_run_has_every_file(trained):
    assert {path.name for path in trained.iterdir()} == RUN_FILES  # but for pictures, which are not drawn here
    assert len((trained / "log.jsonl").read_text().splitlines()) == 3
    metrics = json.loads((trained / "metrics.json").read_text())
    assert (metrics["documents"], metrics["empty_documents"], metrics["epochs"]) == (61, 1, 3)
    assert metrics["settings"]["n_topics"] == 2
    assert metrics["seed"] == metrics["settings"]["random_state"] == 0
    assert metrics["fingerprint"] == tl.load(trained).fingerprint
    assert metrics["versions"].keys() >= {"topicloom", "python", "torch", "numpy", "scipy", "scikit-learn"}
    assert metrics["machine"]["processors"] == os.cpu_count()
    assert metrics["processes"] == 1
    assert metrics["machine"].keys() >= {"platform", "threads", "device", "torch_build"}
    assert metrics["perplexity_completion_training"] > 1
    assert metrics["perplexity_bound_training"] > 1
    assert tl.load(trained).transform([PETS]).shape == (1, 2)


def test_the_tables_of_a_run_agree(trained):
    topics = table((trained / "topics.csv").read_text(encoding="utf-8"))
    documents = table((trained / "doc_topics.csv").read_text(encoding="utf-8"))
    assert [row["topic"] for row in topics] == ["0", "1"]
    empty = np.array([row["topic"] == "" for row in documents])  # the row stays, and has no topic of its own
    assert (len(documents), empty.sum()) == (61, 1)
    assert sum(int(row["documents"]) for row in topics) == 60
    theta = np.array([[float(row["topic_0"]), float(row["topic_1"])] for row in documents])
    np.testing.assert_allclose(theta.sum(1), 1, atol=1e-5)
    np.testing.assert_allclose(theta[~empty].mean(0), [float(row["share"]) for row in topics], atol=1e-5)
    assert [int(row["topic"]) for row in documents if row["topic"]] == theta[~empty].argmax(1).tolist()


def test_train_in_json_with_settings_labels_and_parquet(data, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    result = call(
        "train", data / "pets.jsonl", "--model", "gsm", "--topics", 3, "--epochs", 1, "--out", tmp_path / "r",
        "--doc-topics", "parquet", "--set", "batch_size=7", "--set", "prior=standard", "--set", "background=False",
        "--set", "latent_size=null",
        "--json", "--quiet",
    )  # fmt: skip
    assert (result.exit_code, result.stderr) == (0, "")
    said = json.loads(result.stdout)
    assert (said["run"], said["n_documents"], len(said["topics"])) == (str(tmp_path / "r"), 60, 3)
    settings = said["metrics"]["settings"]
    chosen = {name: settings[name] for name in ("batch_size", "prior", "background", "latent_size")}
    assert chosen == {"batch_size": 7, "prior": "standard", "background": False, "latent_size": None}
    documents = parquet.read_table(tmp_path / "r" / "doc_topics.parquet")
    assert documents.column_names == ["id", "label", "topic", "topic_words", "topic_0", "topic_1", "topic_2", "text"]
    assert documents["id"][1].as_py() == "d1"
    assert not (tmp_path / "r" / "doc_topics.csv").exists()


def test_a_prepared_corpus_trains_and_takes_no_options_of_text(data, tmp_path):
    corpus = tmp_path / "corpus"
    result = call(
        "prepare", data / "pets.txt", "--out", corpus, "--min-df", "0.1", "--max-df", 40, "--no-texts", "--json"
    )
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["n_documents"] == 61
    assert tl.Corpus.load(corpus).settings["min_df"] == 0.1
    assert tl.Corpus.load(corpus).texts is None
    out = tmp_path / "run"
    refused("train", corpus, "--out", out, "--min-df", 2, says=["--min-df", "prepare"])
    assert call("train", corpus, "--topics", 2, "--epochs", 1, "--out", out, "--doc-topics", "none").exit_code == 0
    assert not (out / "doc_topics.csv").exists()
    refused("prepare", corpus, "--out", tmp_path / "again", says=["saved corpus already"])


def test_standard_input_and_the_classical_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = call("train", "-", "--model", "LDA", "--topics", 2, "--epochs", 2, stdin=f"{PETS}\n{MONEY}\n" * 10)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "runs" / "stdin" / "metrics.json").is_file()


def test_overwrite_replaces_the_run_and_nothing_else(data, tmp_path):
    out = tmp_path / "run"
    arguments = ("train", data / "pets.txt", "--topics", 2, "--epochs", 2, "--out", out, "--quiet")
    out.mkdir()
    (out / "notes.md").write_text("mine")
    refused(*arguments, says=["already holds files", "--overwrite"])
    for _ in range(2):
        assert call(*arguments, "--overwrite").exit_code == 0
    assert (out / "notes.md").read_text() == "mine"
    assert len((out / "log.jsonl").read_text().splitlines()) == 2
    refused("prepare", data / "pets.txt", "--out", out, "--overwrite", says=["holds other files"])


def test_overwrite_takes_what_remains_of_a_model_and_follows_links(data, tmp_path):
    out = tmp_path / "run"
    arguments = ("train", data / "pets.txt", "--topics", 2, "--epochs", 1, "--out", out, "--quiet")
    (out / "model").mkdir(parents=True)
    (out / "model" / "vocabulary.txt").write_text("cat\n")
    assert call(*arguments, "--overwrite").exit_code == 0
    (out / "model").rename(tmp_path / "elsewhere")
    (out / "model").symlink_to(tmp_path / "elsewhere")
    assert call(*arguments, "--overwrite", "--seed", 1).exit_code == 0
    assert (out / "model").is_symlink()
    assert tl.load(tmp_path / "elsewhere").random_state == 1


def test_an_earlier_run_stays_whole_until_the_new_one_is(data, tmp_path, monkeypatch):
    out = tmp_path / "run"
    arguments = ("train", data / "pets.txt", "--topics", 2, "--epochs", 2, "--out", out, "--quiet")
    assert call(*arguments).exit_code == 0
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("topicloom.training.loop._take_step", interrupt)  # in the first step
        assert call(*arguments, "--overwrite").exit_code == 130
    assert {name: (out / name).read_bytes() for name in before} == before
    assert call("topics", out).exit_code == 0


def test_an_interrupted_run_does_not_block_the_next(data, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "log.jsonl").write_text('{"epoch": 1}\n')
    arguments = ("train", data / "pets.txt", "--topics", 2, "--epochs", 2, "--out", tmp_path / "run", "--quiet")
    assert call(*arguments).exit_code == 0
    assert len((tmp_path / "run" / "log.jsonl").read_text().splitlines()) == 2


def test_repeated_settings_and_runs_in_place_of_texts_are_refused(data, trained, tmp_path):
    refused("train", data / "pets.txt", "--out", tmp_path / "r", "--set", "epochs=2", says=["--epochs"])
    wrong = ("--model", "LDA:method=gibbs+epochs=5")
    refused(
        "train", data / "pets.txt", "--out", tmp_path / "r", *wrong, says=["such as --model LDA --set method=gibbs"]
    )
    refused("train", trained, "--out", tmp_path / "r", says=["is a trained model"])


def test_training_that_diverges_keeps_the_last_whole_epoch(data, tmp_path, monkeypatch):
    def diverge(self, X, y=None, **options):
        fit(self, X, **options)
        raise tl.TrainingDivergedError("training stopped at epoch 2, batch 1: the loss is not finite")

    fit = tl.Loom.fit
    monkeypatch.setattr(tl.Loom, "fit", diverge)
    arguments = ("train", data / "pets.txt", "--topics", 2, "--epochs", 1, "--out", tmp_path / "run")
    refused(*arguments, code=1, says=["epoch 2", "last whole epoch"])
    assert len(tl.load(tmp_path / "run").topics()) == 2


CONFIG = {
    "run.yaml": """
        model: gsm
        topics: 3
        seed: 1
        epochs: 2
        min_df: 0.1
        doc-topics: none
        settings:
          learning_rate: 1e-3
          hidden_size: 8
          seed_words: {2: [cat, pets]}
    """,
    "run.toml": """
        model = "gsm"
        topics = 3
        seed = 1
        epochs = 2
        min_df = 0.1
        doc-topics = "none"
        [settings]
        learning_rate = 1e-3
        hidden_size = 8
        [settings.seed_words]
        2 = ["cat", "pets"]
    """,
}


@pytest.mark.parametrize("name", CONFIG)
def test_options_override_the_settings_of_a_file(data, tmp_path, name):
    config = tmp_path / name
    config.write_text("\n".join(line.removeprefix(" " * 8) for line in CONFIG[name].splitlines()))
    out = tmp_path / "run"
    result = call(
        "train", data / "pets.txt", "--config", config, "--out", out, "--seed", 0, "--set", "hidden_size=16", "--json"
    )
    assert result.exit_code == 0, result.output
    settings = json.loads(result.stdout)["metrics"]["settings"]
    chosen = {key: settings[key] for key in ("n_topics", "random_state", "epochs", "learning_rate", "hidden_size")}
    assert chosen == {"n_topics": 3, "random_state": 0, "epochs": 2, "learning_rate": 1e-3, "hidden_size": 16}
    assert settings["seed_words"] == {"2": ["cat", "pets"]}  # as JSON has it
    assert tl.load(out).get_params()["seed_words"] == {2: ["cat", "pets"]}
    assert not (out / "doc_topics.csv").exists()


def test_a_file_may_hold_all_that_the_command_line_may(data, tmp_path):
    config = tmp_path / "run.yml"
    config.write_text(
        f"source: {data / 'pets.jsonl'}\nout: {tmp_path / 'run'}\ntopics: 2\nepochs: 1\nlabel: label\nid: id\n"
        "min_df: 3\nlanguage: en\nwords: 4\njson: true\nquiet: true\nsettings:\n"
    )
    result = call("train", "--config", config)
    assert (result.exit_code, result.stderr) == (0, "")
    assert [len(topic["words"]) for topic in json.loads(result.stdout)["topics"]] == [4, 4]
    refused("train", "--config", config, says=["already holds files"])


@pytest.mark.parametrize(
    ("written", "names"), [("id", ["id"]), ("[id, label]", ["id", "label"]), ("[]", [])], ids=["one", "two", "none"]
)
def test_a_file_may_name_several_covariates(data, tmp_path, written, names):
    config, out = tmp_path / "run.yaml", tmp_path / "run"
    config.write_text(f"model: gsm\ntopics: 2\nepochs: 1\nmin_df: 1\nexplorer: false\ncovariate: {written}\n")
    assert call("train", data / "pets.jsonl", "--config", config, "--out", out).exit_code == 0
    assert list(tl.Corpus.load(out / "documents").covariates) == names


def test_a_prepared_corpus_keeps_covariates(data, tmp_path):
    corpus, out = tmp_path / "corpus", tmp_path / "run"
    refused("prepare", data / "pets.jsonl", "--out", corpus, "--covariate", "author", says=["--covariate", "author"])
    assert not corpus.exists()
    prepare = ("prepare", data / "pets.jsonl", "--out", corpus, "--min-df", 1)
    assert call(*prepare).exit_code == 0
    refused("train", corpus, "--covariate", "label", "--out", out, says=["has no covariates", "prepare --covariate"])
    assert call(*prepare, "--covariate", "label", "--overwrite").exit_code == 0
    assert tl.Corpus.load(corpus).covariates["label"].values() == list(tl.Corpus.load(corpus).labels)
    fast = ("--model", "gsm", "--topics", 2, "--epochs", 1, "--no-explorer")
    assert call("train", corpus, "--covariate", "label", *fast, "--out", out).exit_code == 0
    assert list(tl.Corpus.load(out / "documents").covariates) == ["label"]
    assert call("by", out, "label").exit_code == 0


def test_the_options_of_a_run_repeat_it(data, tmp_path, monkeypatch):
    rows = "".join(f"{text}\t{n}\tno\n" for n, text in enumerate([PETS, MONEY] * 30))
    (tmp_path / "a.tsv").write_text(rows, encoding="utf-8")
    (tmp_path / "stop.txt").write_text("cat\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    words = ("--min-df", "0.1", "--max-df", "1.0", "--stop-words", "stop.txt", "--remove-top", 2, "--language", "en")
    reading = ("--no-header", "--text", "1", "--id", "2", "--covariate", "3", "--no-quoting")
    settings = ("--set", 'seed_words={"1": ["dog"]}', "--set", "learning_rate=1e-4")
    fast = ("--topics", 2, "--epochs", 2, "--no-explorer", "--quiet")
    first = call("train", "a.tsv", *reading, *words, "--model", "gsm", "--seed", 7, *settings, *fast)
    assert first.exit_code == 0, first.output
    run, written = Path("runs/a"), Path("runs/a/train.yaml").read_text(encoding="utf-8")
    assert written.startswith(f"# topicloom {tl.__version__}")
    assert f"stop_words: {tmp_path / 'stop.txt'}" in written
    assert "max_df: 1.0" in written
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    again = call("train", "--config", tmp_path / run / "train.yaml", "--out", "again", "--no-explorer", "--quiet")
    assert again.exit_code == 0, again.output
    one, two = (json.loads((folder / "metrics.json").read_text()) for folder in (tmp_path / run, Path("again")))
    assert (one["fingerprint"], one["digest"]) == (two["fingerprint"], two["digest"])
    assert Path("again/train.yaml").read_text(encoding="utf-8") == written
    assert call("prepare", data / "pets.txt", "--out", "corpus", "--quiet").exit_code == 0
    prepared = call("train", "corpus", "--model", "etm", "--recipe", "published", *fast, "--out", "run")
    assert prepared.exit_code == 0, prepared.output
    assert "min_df" not in Path("run/train.yaml").read_text(encoding="utf-8")
    filters = json.loads(Path("run/metrics.json").read_text())["filters"]
    assert filters == {"min_df": 5, "max_df": 0.5, "max_features": None, "remove_top": 0}
    assert call("train", "--config", "run/train.yaml", "--out", "run2", "--quiet").exit_code == 0


def test_seed_words_on_the_command_line(data, tmp_path):
    for model, words in (("gsm", '{"1": ["cat"]}'), ("lda", "{1: [cat]}")):  # as JSON and as --config has it
        out, seeds = tmp_path / model, ("--set", f"seed_words={words}")
        arguments = ("train", data / "pets.txt", "--model", model, "--topics", 2, "--epochs", 1, "--out", out, *seeds)
        assert call(*arguments, "--quiet").exit_code == 0
        assert tl.load(out).get_params()["seed_words"] == {1: ["cat"]}
    bad = ("--set", 'seed_words={"one": ["cat"]}')
    refused("train", data / "pets.txt", "--out", tmp_path / "r", *bad, says=["seed_words", "keys", "whole number"])
    bad = ("--set", 'seed_words={"1": ["cta"]}')
    refused(
        "train", data / "pets.txt", "--out", tmp_path / "r", "--topics", 2, *bad, says=["'cta'", "did you mean cat"]
    )


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("c.yaml", "topics: many", ["c.yaml", "topics cannot be 'many'", "a whole number"]),
        ("c.yaml", "topics: 2.5", ["c.yaml", "topics cannot be '2.5'"]),
        ("c.yaml", "topics: true", ["c.yaml", "topics cannot be 'True'"]),
        ("c.yaml", "topics: [2]", ["c.yaml", "a single value", "[2]"]),
        ("c.yaml", "covariate: [[a]]", ["c.yaml", "covariate should be a value, or a list of them; it is [['a']]"]),
        ("c.yaml", "words: 0", ["c.yaml", "words"]),
        ("c.yaml", "doc_topics: xls", ["c.yaml", "doc_topics", "parquet"]),
        ("c.yaml", "min_df: many", ["c.yaml", "min_df", "share"]),
        ("c.yaml", "topic: 3", ["c.yaml", "no option 'topic'; did you mean topics"]),
        ("c.yaml", "setings: {}", ["no option 'setings'", "settings"]),
        ("c.yaml", "config: x", ["no option 'config'"]),
        ("c.yaml", "settings: 3", ["c.yaml", "settings", "it is 3"]),
        ("c.yaml", "settings: {hidden: 3}", ["did you mean hidden_size"]),
        ("c.yaml", "settings: {hidden_size: wide}", ["hidden_size", "'wide'"]),
        ("c.yaml", "settings: {n_topics: 3}", ["n_topics has an option of its own", "--topics"]),
        ("c.yaml", "settings: {1: 3}", ["no setting '1'"]),
        ("c.yaml", "settings: {seed_words: [cat]}", ["seed_words", "dictionary"]),
        ("c.yaml", "model: gms", ["did you mean gsm"]),
        ("c.yaml", "a: 1\na: 2", ["c.yaml, line 2, column 1", "'a' occurs a second time"]),
        ("c.yaml", "a: [1", ["c.yaml, line 1", "YAML"]),
        ("c.yaml", "- a", ["c.yaml", "names with values"]),
        pytest.param("c.yaml", "a: " + "9" * 5000, ["c.yaml is not valid YAML"], id="a number of 5,000 digits"),
        pytest.param("c.toml", "a = " + "9" * 5000, ["c.toml is not valid TOML"], id="such a number in TOML"),
        pytest.param("c.yaml", "a: " + "[" * 5000, ["c.yaml is not valid YAML"], id="too deep"),
        ("c.yaml", "a: !!python/name:os.system x", ["c.yaml, line 1", "YAML"]),
        ("c.toml", "a = ", ["c.toml", "TOML"]),
        ("c.json", "{}", [".toml", ".yaml"]),
    ],
)
def test_a_mistake_in_the_file_is_one_line(data, tmp_path, name, text, says):
    config = tmp_path / name
    config.write_text(text)
    refused("train", data / "pets.txt", "--config", config, "--out", tmp_path / "run", says=says)
    assert list(tmp_path.iterdir()) == [config]


def test_files_that_cannot_be_read(data, tmp_path):
    (tmp_path / "latin.toml").write_bytes(b'text = "\xff"')
    refused("train", data / "pets.txt", "--config", tmp_path / "latin.toml", says=["latin.toml, byte 8", "UTF-8"])
    refused("train", data / "pets.txt", "--config", tmp_path / "nosuch.yaml", says=["nosuch.yaml does not exist"])
    refused("train", says=["nothing to train on"])


def test_yaml_is_of_this_century(tmp_path):
    (tmp_path / "c.yaml").write_text("a: 1e-3\nb: no\nc: ~\nd: 'true'\ne: true\nf: -3\ng: 2020-01-01\nh: {3: [x]}\n")
    assert read_yaml_or_toml(tmp_path / "c.yaml") == {
        "a": 1e-3, "b": "no", "c": None, "d": "true", "e": True, "f": -3, "g": "2020-01-01", "h": {3: ["x"]}
    }  # fmt: skip
    (tmp_path / "c.yaml").write_text("codes: [007, 0, 10, 1.0, 1.50, .5, 5., 1e5, 00.5, -01]\n")
    assert read_yaml_or_toml(tmp_path / "c.yaml")["codes"] == ["007", 0, 10, 1.0, 1.5, 0.5, 5.0, 1e5, 0.5, "-01"]
    (tmp_path / "c.yaml").write_text("")
    assert read_yaml_or_toml(tmp_path / "c.yaml") == {}


def test_models_are_listed_with_what_they_are():
    said = json.loads(call("models", "--json").stdout)["models"]
    assert {model["name"] for model in said} == {kind.__name__ for kind in tl.MODELS}
    assert all(len(model["summary"]) > 10 and "\n" not in model["summary"] for model in said)
    assert len(call("models").stdout.splitlines()) > len(tl.MODELS)


@pytest.mark.parametrize("kind", tl.MODELS)
def test_every_setting_is_described(kind):
    said = json.loads(call("models", kind.__name__.lower(), "--json").stdout)
    assert said["model"] == kind.__name__
    assert {setting["name"] for setting in said["settings"]} == set(kind().get_params())
    lacking = [setting["name"] for setting in said["settings"] if len(setting["meaning"]) < 5 or not setting["type"]]
    assert not lacking, f"the docstring of {kind.__name__} or of its bases says nothing of {', '.join(lacking)}"


def test_the_settings_of_a_model():
    said = {setting["name"]: setting for setting in json.loads(call("models", "gsm", "--json").stdout)["settings"]}
    assert said["prior"]["type"] == '"laplace" or "standard" or null'
    assert (said["alpha"]["type"], said["alpha"]["default"]) == ("number above 0 or null", None)
    assert said["input_dropout"]["type"] == "number from 0 below 1"
    assert said["latent_size"]["type"] == "whole number from 2 or null"
    names = [name for name, setting in said.items() if setting["group"] == "Prior"]
    assert names[0] == "prior"  # its own before the shared ones
    assert "whole number from 1" in call("models", "lda").stdout
    refused("models", "gms", says=["did you mean gsm"])


def test_what_collapsed_is_said_unless_asked_to_be_quiet(data, tmp_path, monkeypatch):
    def advice(self, model, row):
        yield "the topics have collapsed"

    monkeypatch.setattr("topicloom.training.monitors.CollapseWatch.advice", advice)
    arguments = ("train", data / "pets.txt", "--topics", 2, "--epochs", 1, "--out")
    assert call(*arguments, tmp_path / "a").stderr.count("the topics have collapsed\n") == 1
    assert call(*arguments, tmp_path / "b", "--quiet").stderr == ""


def test_advice_names_options_and_not_arguments(data, tmp_path, monkeypatch):
    def advice(self, model, row):
        yield "only 1 of 2 topics is the main topic of a document; try `n_topics=6`, `alpha=0.1` or `epochs=120`"

    monkeypatch.setattr("topicloom.training.monitors.CollapseWatch.advice", advice)
    result = call("train", data / "pets.txt", "--topics", 2, "--epochs", 1, "--out", tmp_path / "run")
    assert "of a document; try --topics 6, --set alpha=0.1 or --epochs 120\n" in result.stderr


def test_topics_of_a_run_and_of_a_bare_model(trained):
    said = json.loads(call("topics", trained, "--words", 4, "--relevance", 1, "--json").stdout)
    assert [len(topic["words"]) for topic in said["topics"]] == [4, 4]
    assert sum(topic["share"] for topic in said["topics"]) == pytest.approx(1, abs=1e-5)
    assert "%" in call("topics", trained).stdout
    assert "%" not in call("topics", trained / "model").stdout
    refused("topics", trained, "--relevance", 2, says=["relevance"])


def test_infer_keeps_every_row_in_order(trained, tmp_path, monkeypatch):
    monkeypatch.setattr("topicloom.cli.apply._CHUNK", 2)
    texts = [MONEY, "", PETS, "unknown", MONEY]
    result = call("infer", trained, "-", stdin="\n".join(texts))
    assert result.exit_code == 0, result.output
    rows = table(result.stdout)
    assert [row["id"] for row in rows] == ["0", "1", "2", "3", "4"]
    assert result.stderr.count("2 of 5 documents") == 1  # one warning for all chunks
    expected = tl.load(trained).transform(texts)
    found = [[float(row["topic_0"]), float(row["topic_1"])] for row in rows]
    np.testing.assert_allclose(found, expected, atol=1e-5)

    new, out = tmp_path / "new.txt", tmp_path / "theta.csv"
    new.write_text("\n".join(texts), encoding="utf-8")
    assert call("infer", trained, new, "--out", out).exit_code == 0
    assert table(out.read_text()) == rows
    refused("infer", trained, new, "--out", out, says=["already exists", "--overwrite"])
    refused("infer", trained, new, "--overwrite", says=["--overwrite replaces the file of --out; give that, too"])
    refused("infer", trained, new, "--out", tmp_path / "theta.xlsx", says=["theta.xlsx", ".parquet"])
    parquet = pytest.importorskip("pyarrow.parquet")
    assert call("infer", trained, new, "--out", tmp_path / "theta.parquet").exit_code == 0
    assert parquet.read_table(tmp_path / "theta.parquet").num_rows == 5


def test_a_saved_corpus_is_inferred_and_no_folder_of_texts(data, trained, tmp_path, monkeypatch):
    monkeypatch.setattr("topicloom.cli.apply._CHUNK", 7)
    for name, options in (("corpus", ()), ("bare", ("--no-texts",))):
        made = call("prepare", data / "pets.jsonl", "--out", tmp_path / name, "--max-df", "1.0", *options)
        assert made.exit_code == 0, made.output
        result = call("infer", trained, tmp_path / name)
        assert result.exit_code == 0, result.output
        rows = table(result.stdout)
        assert [row["id"] for row in rows] == [f"d{n}" for n in range(60)]
        expected = tl.load(trained).transform([PETS, MONEY])
        np.testing.assert_allclose([float(row["topic_0"]) for row in rows], [*expected[:, 0]] * 30, atol=1e-5)
        assert ("text" in rows[0]) == (name == "corpus")
    stored = table(call("infer", trained, trained / "documents").stdout)
    assert (len(stored), stored[0]["text"]) == (61, PETS)
    refused("infer", trained, tmp_path / "corpus", "--text", "body", says=["--text cannot be applied", "saved corpus"])
    for command in (("infer", trained, trained), ("evaluate", trained, trained), ("prepare", trained, "--out", "x")):
        refused(*command, says=[f"{trained} is a trained model; give a text"])
    refused("topics", tmp_path / "corpus", says=["corpus is a saved corpus and holds no model; give it to train"])
    with pytest.raises(tl.InputError, match="is a saved corpus and holds no model"):
        tl.load(tmp_path / "corpus")
    with pytest.raises(tl.InputError, match="is a saved corpus already; give the text"):
        tl.Corpus.from_file(tmp_path / "corpus")


def test_infer_leaves_no_half_file(trained, data, tmp_path):
    refused("infer", trained, data / "bad.jsonl", "--out", tmp_path / "theta.csv", says=["bad.jsonl, line 2"])
    assert list(tmp_path.iterdir()) == []


def test_demo_writes_nothing_unless_asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = call("demo", "--topics", 4, "--epochs", 1)
    assert result.exit_code == 0, result.output
    assert "trained in" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_demo_that_is_kept_has_its_page(tmp_path, monkeypatch):
    pets = tl.Corpus.from_texts(["the cat sat with the dog", "the bank lends money"] * 10, min_df=2)
    monkeypatch.setattr("topicloom.datasets.python_docs", lambda: pets)
    result = call("demo", "--topics", 2, "--epochs", 1, "--model", "lda", "--out", tmp_path / "run", "--quiet")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "run" / "explorer.html").exists()


@pytest.mark.draws
def test_without_matplotlib_one_line_says_so(data, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "topicloom.reports.figures", None)
    monkeypatch.delattr("topicloom.reports.figures", raising=False)
    result = call("train", data / "pets.txt", "--topics", 2, "--epochs", 1, "--out", tmp_path / "run")
    assert result.exit_code == 0
    assert "topicloom[viz]" in result.stderr
    assert {path.name for path in (tmp_path / "run").iterdir()} == RUN_FILES


def test_a_run_is_kept_where_matplotlib_refuses_to_start(data, tmp_path):
    train = ["train", data / "pets.txt", "--model", "lda", "--topics", 2, "--epochs", 1, "--quiet", "--no-explorer"]
    commands = [[*train, "--out", tmp_path / "run"], ["figures", tmp_path / "run", "--out", tmp_path / "figures"]]
    script = (
        "import json, sys\nfrom topicloom.cli import app\nfor command in json.loads(sys.argv[1]):\n"
        "    try:\n        app(command)\n    except SystemExit as ended:\n        print(ended.code, file=sys.stderr)"
    )
    environment = os.environ | {"MPLBACKEND": "Qt4Agg"}  # which newer versions do not have
    line = [sys.executable, "-c", script, json.dumps(commands, default=str)]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=True)
    made, said, drawn = done.stderr.splitlines()
    assert (made, drawn, done.stdout) == ("0", "2", "")
    assert "correct MPLBACKEND or matplotlibrc" in said
    assert tl.load(tmp_path / "run").n_topics == 2


def test_ctrl_c_is_one_line(data, tmp_path, monkeypatch):
    def interrupt(*given, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("topicloom.reports.run.fit", interrupt)
    refused("train", data / "pets.txt", "--out", tmp_path / "run", says=["interrupted"], code=130)


@pytest.mark.parametrize("command", ["topics", "export"])
def test_an_argument_that_is_missing_is_asked_for(command):
    """With some versions of click, typer calls the command without it."""
    result = call(command)
    assert result.exit_code == 2
    assert "Missing argument" in result.stderr


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("train", "x.txt", "--topics", "many"), "a whole number"),
        (("topics", "x", "--relevance", "much"), "a number"),
        (("tune", "x.txt", "--trials", "0"), "--trials"),
        (("documents", "x", "0", "--kind", "best"), "'--kind': 'best' is not one of 'typical', 'diverse', 'recent'"),
    ],
)
def test_a_wrong_value_is_told_in_plain_words(options, says):
    result = call(*options)
    assert result.exit_code == 2
    plain = " ".join(result.stderr.replace("│", " ").split())
    assert says in plain
    assert "Input should" not in plain
    assert "Value error" not in plain


@pytest.mark.parametrize(
    ("source", "options", "says"),
    [
        ("nosuch.txt", (), ["nosuch.txt does not exist"]),
        ("empty", (), ["no .txt, .md, .docx, .pdf or .eml files"]),
        ("empty", ("--format", "csv"), ["contains no .csv files; check --format", "empty"]),
        ("void.txt", (), ["contains no documents"]),
        ("bad.txt", (), ["bad.txt, line 2", "--encoding gb18030", "--errors replace"]),
        ("binary.txt", (), ["binary.txt looks like a binary file and not like text"]),
        ("bad.jsonl", (), ["bad.jsonl, line 2, column 2"]),
        ("other.csv", (), ["no column 'text'", "title, body", "by --text", "--no-header if"]),
        ("pets.txt", ("--min-df", "1000"), ["no word is left", "--min-df 1000 drops"]),
        ("pets.txt", ("--min-df", "1.5"), ["--min-df 1.5 should be"]),
        ("pets.txt", ("--topics", "1"), ["--topics of Loom should", "it is 1"]),
        ("pets.txt", ("--topics", "500"), ["--topics 500 is more than", "--min-df"]),
        ("pets.txt", ("--language", "klingon"), ["--language klingon is not known", "auto"]),
        ("pets.txt", ("--stop-words", "nosuch"), ["--stop-words: nosuch cannot be read", "; give an existing file"]),
        ("pets.txt", ("--model", "gms"), ["did you mean gsm"]),
        ("pets.txt", ("--device", "toaster"), ["toaster"]),
        ("pets.txt", ("--seed", 2**32), ["--seed of Loom should be a whole number from 0 to 4294967295"]),
        ("pets.txt", ("--set", "hidden=3"), ["did you mean hidden_size"]),
        ("pets.txt", ("--set", "hidden_size=wide"), ["hidden_size", "'wide'"]),
        ("pets.txt", ("--set", "hidden_size"), ["name and a value"]),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(data, tmp_path, source, options, says):
    refused("train", data / source, "--out", tmp_path / "run", *options, says=says)
    assert list(tmp_path.iterdir()) == []


def test_options_that_cannot_be_end_with_2_as_well(data, tmp_path):
    wrong = (("--topics", "many"), ("--min-df", "many"), ("--doc-topics", "xls"), ("--seed", -1), ("--nosuch",))
    for options in wrong:
        assert call("train", data / "pets.txt", "--out", tmp_path / "run", *options).exit_code == 2


def test_a_path_that_cannot_be_written_is_one_line(data, tmp_path):
    (tmp_path / "file").write_text("")
    refused("train", data / "pets.txt", "--topics", 2, "--out", tmp_path / "file" / "run", says=["file"])


def test_a_run_that_is_not_there(tmp_path):
    refused("topics", tmp_path / "nosuch", says=["nosuch does not exist; check the path"])
    (tmp_path / "page.html").write_text("")
    refused("topics", tmp_path / "page.html", says=["page.html is a file; give a run directory"])
    refused("infer", tmp_path, tmp_path / "new.txt", says=["holds no saved model"])


@pytest.fixture(scope="module")
def chinese_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of Chinese texts, which are beside it."""
    folder = tmp_path_factory.mktemp("chinese")
    (folder / "zh.txt").write_text("银行利率上调\n湖人球队比赛\n" * 30, encoding="utf-8")
    fast = ("--model", "lda", "--topics", 2, "--epochs", 1, "--max-df", "1.0", "--no-explorer")
    assert call("train", folder / "zh.txt", *fast, "--out", folder / "run").exit_code == 0
    return folder / "run"


@needs_fork
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_a_terminal_without_some_characters(chinese_run, encoding):
    def shown(command: str, *arguments: object) -> tuple[int, str, str]:
        return Fork(lambda: run_command(command, chinese_run, *arguments), encoding).output()

    code, table, said = shown("topics")
    assert (code, r"\u" in table, said.count("\n")) == (0, True, 1)
    assert "lacks some characters, which are printed as numbers; to see them, set the environment variable" in said
    assert all(len(line) <= 80 for line in table.splitlines())
    words = json.loads(shown("topics", "--json")[1])["topics"][0]["words"]
    assert words == json.loads(call("topics", chinese_run, "--json").stdout)["topics"][0]["words"]
    code, _, said = shown("infer", chinese_run.with_name("zh.txt"))  # in which nothing may be replaced
    assert (code, said.count("\n")) == (2, 1)
    assert "which has no '\\u" in said
    assert "give --out, or set the environment variable PYTHONIOENCODING to utf-8" in said


@needs_fork
def test_a_chinese_console_shows_chinese(chinese_run):
    def shown(*arguments: object) -> str:
        code, table, said = Fork(lambda: run_command(*arguments), "cp936").output()
        assert (code, said) == (0, "")
        return table

    words = [each["words"] for each in json.loads(call("topics", chinese_run, "--json").stdout)["topics"]]
    assert all(" ".join(each) in shown("topics", chinese_run) for each in words)
    assert "topic 0: " + ", ".join(words[0][:3]) in shown("documents", chinese_run)
    for arguments in (["--help"], ["demo", "--help"], ["train", "--help"], ["topics", "--help"]):
        assert "Show this message and exit." in shown(*arguments)


@needs_fork
@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "cp936"])
def test_training_ends_well_in_every_console(tmp_path, encoding):
    (tmp_path / "a.txt").write_text("银行利率上调\ncafé naïve “fish” … market — price\n" * 30, encoding="utf-8")
    fast = ("--model", "lda", "--topics", 2, "--epochs", 1, "--max-df", "1.0", "--no-explorer")
    command = ("train", tmp_path / "a.txt", *fast, "--out", tmp_path / "run")
    code, _, said = Fork(lambda: run_command(*command), encoding).output()
    assert (code, "Traceback" in said) == (0, False), said
    code, _, said = Fork(lambda: run_command("train", tmp_path / "没有.txt"), encoding).output()
    assert (code, said.count("\n")) == (2, 1)
    wanted = ("没有" if encoding == "cp936" else "\\u6ca1\\u6709") + ".txt does not exist"
    assert wanted in said


def test_lines_of_trees_have_similar_characters():
    written = io.TextIOWrapper(io.BytesIO(), "cp1252")
    with redirect_stdout(written):
        spare_narrow_stdout()
        say("├─ “café” ↑ ▁█… 中")
        print_table(["a", "b"], [["└─", "1"], ["│", "2"]])
    written.flush()
    assert written.buffer.getvalue().decode("cp1252").splitlines() == [
        "+- “café” ^ 18… \\u4e2d", "a   b", "+-  1", "|   2",
    ]  # fmt: skip
    say_what_was_replaced()


def test_narrow_tables_break_lines_between_words(monkeypatch, capsys):
    long = "https://example.org/a-very-long-address-of-a-document"
    for text in ("the wind and the rocks, " * 5, f"the wind {long} and the rocks, "):
        monkeypatch.setenv("COLUMNS", "50")
        first = ["7", "92.1%", "s5", "2009-01-01", "wind rocks hill", text]
        print_table(["id", "share", "label", "time", "words", "text"], [first, ["8", *first[1:5], "the open sea"]])
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= 50
        shown = " ".join(lines).split()
        assert {"92.1%", "2009-01-01", "label", "wind", "rocks", "rocks,", "open"} <= set(shown)
    monkeypatch.setenv("COLUMNS", "8")
    print_table(["id", "time"], [["7", "2009-01-01"]])  # too narrow for the word
    assert "2009-01-01" in "".join(line[4:].strip() for line in capsys.readouterr().out.splitlines())
    print_table([*"abcdef"], [["12", "34", "56", "78", "90", "风"]])  # too narrow for the columns
    assert capsys.readouterr().out.split() == [*"abcdef", "12", "34", "56", "78", "90", "风"]
    monkeypatch.setenv("COLUMNS", "30")
    sentence = "no document has more of this topic than of the average topic"
    print_table([sentence], [])
    assert " ".join(capsys.readouterr().out.split()) == sentence


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (MemoryError(), "too little memory; give less at once"),
        (
            MemoryError("Unable to allocate 9. GiB for an array"),
            "memory (Unable to allocate 9. GiB for an array);",
        ),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried\nmore"),
            "memory: you tried);",
        ),
    ],
)
def test_too_little_memory_is_told_in_one_line(data, tmp_path, monkeypatch, error, says):
    def fails(*_, **__):
        raise error

    monkeypatch.setattr(tl.Corpus, "from_documents", fails)
    refused("prepare", data / "pets.txt", "--out", tmp_path / "corpus", code=1, says=[says])


def test_output_without_space_is_told_in_words(data, tmp_path, monkeypatch):
    full = OSError(errno.ENOSPC, "No space left on device")  # as of the standard output, which has no name
    monkeypatch.setattr(tl.Corpus, "from_documents", Mock(side_effect=full))
    refused("prepare", data / "pets.txt", "--out", tmp_path / "corpus", says=["the output has no space left"])


def test_other_errors_keep_their_traceback(data, tmp_path, monkeypatch):
    def fails(*_, **__):
        raise RuntimeError("a fault")

    monkeypatch.setattr(tl.Corpus, "from_documents", fails)
    with pytest.raises(RuntimeError, match="a fault"):
        call("prepare", data / "pets.txt", "--out", tmp_path / "corpus")
