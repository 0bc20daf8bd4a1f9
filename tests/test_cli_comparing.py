"""The commands that fit many models: compare, select-topics and tune."""

import json
import re

import pytest
import yaml

import topicloom as tl
from command_line import MONEY, PETS, call, refused
from topicloom import metrics
from topicloom.cli.shell import print_table


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    file = tmp_path_factory.mktemp("data") / "pets.jsonl"
    parts = ["train"] * 4 + ["val", "test"]
    texts = enumerate([PETS, MONEY] * 30)
    rows = [{"text": text, "label": f"l{n % 2}", "part": parts[n // 2 % 6]} for n, text in texts]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def test_compare(texts, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    out = tmp_path / "out"
    arguments = ["compare", texts, "--label", "label", "--models", "gsm:epochs=2,lda:epochs=2", "--topics", "2,3"]
    arguments += ["--seeds", 2, "--min-df", 1, "--max-df", 1.0, "--out", out]
    first = call(*arguments)
    assert first.exit_code == 0, first.output
    lines = first.stdout.splitlines()
    assert lines[0] == "Validation documents (choose by these figures)"
    assert lines[7] == "Measures of the topics, which do not depend on these documents"
    assert lines[14] == "Test documents (report these figures)"
    assert lines[1].split() == lines[15].split() == ["model", "K", "completion", "perplexity", "NMI", "accuracy"]
    assert lines[8].split() == ["model", "K", "NPMI", "diversity", "seconds", "return"]
    assert "±" in first.stdout
    assert len(lines) == 21
    assert "fit 8 of 8: lda:epochs=2, 3 topics, seed 1: " in first.stderr
    assert {"comparison.csv", "index.html", "jobs.jsonl", "comparison.json"} <= {path.name for path in out.iterdir()}
    again = call(*arguments, "--json", "--quiet")
    assert again.exit_code == 0
    found = json.loads(again.stdout)
    assert again.stderr == ""
    assert call(*arguments, "--quiet").output == ""
    assert found["failed"] == []
    assert [row["fits"] for row in found["test"]] == [2] * 4
    for measure in ("document_npmi", "topic_diversity", "c_v"):  # as they are shown once
        assert [row[measure] for row in found["validation"]] == [row[measure] for row in found["test"]]
    page = (out / "index.html").read_text(encoding="utf-8")
    headings = [part.split("</tr>")[0] for part in page.split("<table>")[1:4]]
    assert [part.count("C_NPMI") for part in headings] == [0, 1, 0]
    assert [part.count("completion perplexity") for part in headings] == [1, 0, 1]
    latex = (out / "comparison.tex").read_text(encoding="utf-8")
    best = max((row for row in found["test"] if row["n_topics"] == 2), key=lambda row: row["document_npmi"])
    shown = f"{best['document_npmi']:.2f} $\\pm$ {best['document_npmi_sd']:.2f}".replace(
        "-", "$-$", best["document_npmi"] < 0
    )
    assert rf"\textbf{{{shown}}}" in latex
    assert latex.count("GSM (epochs=2)") == 2
    fewer = call(*arguments[:4], "--models", "lda:epochs=2", "--topics", 2, *arguments[8:])
    assert f"{out} has finished fits of gsm:epochs=2 and 3 topics, which the tables and the page leave" in fewer.stderr
    assert "compare --models lda:epochs=2,gsm:epochs=2 --topics 2,3 --seeds 2 with the same --out" in fewer.stderr
    assert found["validation"][0].keys() >= {"model", "n_topics", "nmi", "accuracy", "c_v", "topic_distance"}


@pytest.mark.parametrize("command", ["compare", "select-topics"])
def test_the_table_for_a_paper_has_chosen_figures(texts, tmp_path, command):
    model = "--model" if command == "select-topics" else "--models"
    arguments = [command, texts, "--label", "label", model, "lda:epochs=2", "--topics", "2,3", "--seeds", 1]
    arguments += ["--min-df", 1, "--max-df", 1.0, "--out", tmp_path, "--json", "--measures", "purity,topic_diversity"]
    found = json.loads(call(*arguments, "--decimals", "topic_diversity=4").stdout)
    table = (tmp_path / "comparison.md").read_text(encoding="utf-8")
    assert "| K | Purity | Diversity |" in table
    for row in found["test"]:
        assert f"{row['topic_diversity']:.4f}" in table
        assert f"{row['purity']:.2f}" in table
    call(*arguments, "--decimals", 3)
    assert f"{found['test'][0]['purity']:.3f}" in (tmp_path / "comparison.tex").read_text(encoding="utf-8")
    for chosen, says in (
        (["--measures", "puriti"], ["unknown measure 'puriti' in --measures", "did you mean purity?"]),
        (["--decimals", "nmi=2"], ["unknown measure 'nmi' in --decimals"]),
        (["--decimals", "two"], ["--decimals two should be a number of decimal places"]),
        (["--measures", "c_w2v"], ["unknown measure 'c_w2v'"]),
    ):
        refused(*arguments, *chosen, says=says)


def test_long_names_are_not_cut(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    names, figures = ["gsm:epochs=10+alpha=0.5", "gsm:epochs=10+alpha=0.6"], ["0.123 ± 0.012"] * 8
    print_table(["model", *(f"measure {n}" for n in range(8))], [[name, *figures] for name in names])
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert "…" not in "".join(lines)
    shown = "".join(line[:10].split(" ")[0] for line in lines)  # the first column
    assert all(name in shown for name in names)


@pytest.mark.parametrize("command", ["compare", "select-topics"])
def test_nothing_is_shown_if_all_fits_fail(texts, tmp_path, command):
    model = ["--models" if command == "compare" else "--model", "gsm:epochs=1"]
    words = ["--seeds", 1, "--min-df", 1, "--max-df", 1.0, "--out", tmp_path / "out"]
    found = call(command, texts, *model, "--topics", "61,62", *words)
    assert (found.exit_code, found.stdout) == (2, "")
    assert "error: all fits ended in an error, so there is nothing to show: gsm:epochs=1, 61 topics" in found.stderr
    assert "InputError" not in found.stderr


@pytest.mark.parametrize("command", ["compare", "select-topics"])
def test_other_fits_are_shown_but_the_exit_code_tells(texts, tmp_path, command):
    model = ["--models" if command == "compare" else "--model", "gsm:epochs=1"]
    words = ["--seeds", 1, "--min-df", 1, "--max-df", 1.0, "--out", tmp_path / "out", "--quiet"]
    found = call(command, texts, *model, "--topics", "2,61,62", *words, "--json")
    assert found.exit_code == 2
    assert [row["n_topics"] for row in json.loads(found.stdout)["failed"]] == [61, 62]
    assert re.findall("(?m)^topicloom: error: (.*?), 61 topics, seed 0: ", found.stderr) == [
        "2 of 3 fits ended in an error, so the tables leave them out, and the same command tries them again: "
        "gsm:epochs=1"
    ]


@pytest.mark.parametrize("command", ["compare", "select-topics", "tune"])
def test_ctrl_c_says_how_to_go_on(texts, tmp_path, monkeypatch, command):
    if command == "tune":
        pytest.importorskip("optuna")

    def interrupt(*given, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(tl.GSM, "fit", interrupt)
    model = ["--models" if command == "compare" else "--model", "gsm:epochs=2"]
    says = [f"interrupted; {tmp_path / 'out'} keeps the finished fits, and the same command continues"]
    refused(command, texts, *model, "--topics", 2, "--min-df", 1, "--max-df", 1.0, "--out", tmp_path / "out",
            says=says, code=130)  # fmt: skip


def test_compare_takes_no_nonsense(texts):
    refused("compare", texts, "--models", "gms", says=["gms", "gsm"])
    refused("compare", texts, "--models", "gsm:alfa=1", says=["alfa", "alpha"])
    refused("compare", texts, "--topics", "many", says=["--topics", "20,50"])
    refused("compare", texts, "--topics", "1", says=["from 2"])
    refused("compare", "nowhere.txt", says=["nowhere.txt"])
    refused("compare", texts, "--split", "prt", says=["no record", "prt", "--split", "did you mean part?"])
    refused("compare", texts, "--split", "label", says=["document 0", "l0", "train, validation or test"])
    refused("compare", "-", "--split", "part", says=["--split", "standard input"])


def test_parts_are_a_column_and_models_are_kept(texts, tmp_path):
    out, corpus = tmp_path / "out", tmp_path / "corpus"
    arguments = ["--models", "lda:epochs=2", "--topics", "2", "--seeds", 1, "--out", out, "--json", "--quiet"]
    found = call("compare", texts, *arguments, "--split", "part", "--keep-models", "--min-df", 1, "--max-df", 1.0)
    assert found.exit_code == 0, found.output
    assert json.loads((out / "comparison.json").read_text())["split"]["column"] == "part"
    (model,) = (out / "models").iterdir()
    assert call("topics", model).exit_code == 0
    assert call("prepare", texts, "--out", corpus, "--min-df", 1, "--max-df", 1.0).exit_code == 0
    again = call("compare", corpus, "--jobs", 1, *arguments[:-4], "--out", tmp_path / "other", "--quiet")
    assert again.exit_code == 0, again.output  # --jobs is for the fits of a saved corpus
    refused("compare", corpus, "--split", "part", *arguments[:-2], says=["--split", "covariate"])


def test_select_topics(texts, tmp_path):
    pytest.importorskip("matplotlib")
    out = tmp_path / "out"
    arguments = ["select-topics", texts, "--model", "lda:epochs=2", "--topics", "2,3", "--seeds", 2, "--out", out]
    first = call(*arguments, "--min-df", 1, "--max-df", 1.0)
    assert first.exit_code == 0, first.output
    lines = first.stdout.splitlines()
    assert lines[1].split() == ["completion"]  # the first line of the heading "completion perplexity"
    assert lines[2].split()[0] == "K"
    assert [line.split()[0] for line in lines[3:5]] == ["2", "3"]
    assert "topics are recommended" in lines[6]
    assert (out / "n_topics.png").is_file()
    assert "n_topics.png" in first.stderr
    assert call(*arguments, "--min-df", 1, "--max-df", 1.0, "--quiet").output == ""
    again = json.loads(call(*arguments, "--min-df", 1, "--max-df", 1.0, "--json", "--quiet").stdout)
    assert again["n_topics"] in (2, 3)
    assert again["reason"].startswith(f"{again['n_topics']} topics are recommended")


@pytest.mark.parametrize("command", ["compare", "select-topics", "tune"])
def test_coherence_is_counted_in_another_file(texts, tmp_path, command):
    if command == "tune":
        pytest.importorskip("optuna")
    outer = tmp_path / "outer.txt"
    outer.write_text("cat dog vet\ncat dog\nunheard of\n" * 2, encoding="utf-8")
    model = ["--models" if command == "compare" else "--model", "gsm:epochs=1", "--topics", "2"]
    words = [command, texts, *model, "--min-df", 1, "--max-df", 1.0, "--reference", outer, "--out", tmp_path / "out"]
    words += ["--trials", 1] if command == "tune" else ["--seeds", 1, "--keep-models"]
    found = call(*words, "--json")
    assert found.exit_code == 0, found.output
    assert f"coherence is counted in the 6 documents of {outer}" in found.stderr
    said = json.loads(found.stdout)
    if command == "tune":
        npmi, folder = said["trials"][0]["measures"]["document_npmi"], tmp_path / "out" / "best_model"
        assert said["coherence_against"] == str(outer)
    else:
        npmi, folder = said["test"][0]["document_npmi"], next((tmp_path / "out" / "models").iterdir())
        assert f"on their words in {outer}" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
        caption = (tmp_path / "out" / "comparison.md").read_text(encoding="utf-8")
        assert f"Coherence is counted in {outer}." in caption.replace("\\", "")
    topics = tl.load(folder).topics(10)
    counted = metrics.document_npmi(topics, [line.split() for line in outer.read_text().splitlines()])
    assert npmi == pytest.approx(float(counted))
    without = [each for each in words if each not in ("--reference", outer)]
    refused(*without, says=["another reference"])
    refused(*without, "--reference", tmp_path / "no.txt", says=["no.txt"])


def test_one_number_of_topics_is_no_choice(texts, tmp_path):
    arguments = ["--model", "lda:epochs=2", "--topics", 2, "--seeds", 1, "--min-df", 1, "--max-df", 1.0]
    found = call("select-topics", texts, *arguments, "--out", tmp_path / "out")
    assert found.exit_code == 0, found.output
    assert "Only one number of topics was tried" in found.stdout
    assert "curve" not in found.stderr


def test_tune(texts, tmp_path):
    pytest.importorskip("optuna")
    out = tmp_path / "out"
    arguments = ["tune", texts, "--model", "gsm:epochs=2", "--topics", 2, "--min-df", 1, "--max-df", 1.0, "--out", out]
    first = call(*arguments, "--trials", 2)
    assert first.exit_code == 0, first.output
    assert "trial 2 of 2" in first.stderr
    assert "0.5 topic_diversity" in first.stderr
    assert (out / "best_model" / "config.json").is_file()
    again = json.loads(call(*arguments, "--trials", 3, "--json").stdout)
    assert len(again["trials"]) == 3
    assert call(*arguments, "--trials", 3, "--quiet").output == ""
    assert yaml.safe_load((out / "best.yaml").read_text())["settings"] == again["best"]
    trained = call("train", texts, "--config", out / "best.yaml", "--epochs", 1, "--min-df", 1, "--max-df", 1.0,
                   "--out", tmp_path / "run")  # fmt: skip
    assert trained.exit_code == 0, trained.output


def test_tune_takes_no_nonsense(texts):
    refused("tune", texts, "--objective", "c_v=1", says=["c_v", "topic_diversity"])
    refused("tune", texts, "--objective", "c_v=much", says=["weights"])
    refused("tune", texts, "--model", "gms", says=["gsm"])
