"""The pictures of topics together with documents, by name, and the command `topicloom figures`."""

import json
import re
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import topicloom as tl
from command_line import call, refused
from packed import unpack
from topicloom import reports
from topicloom.errors import InputError, MissingExtraError, SettingError

figures = tl.figures
SUBJECTS = {
    "pets": ["cat", "dog", "vet", "animal", "fish", "bird", "food", "play", "sleep", "walk"],
    "money": ["bank", "stock", "bond", "market", "interest", "money", "rate", "fund", "trade", "price"],
    "sport": ["match", "goal", "team", "league", "coach", "player", "win", "cup", "final", "season"],
}


def documents():
    generator = np.random.default_rng(0)
    for number in range(90):
        label = list(SUBJECTS)[number % 3]
        yield {
            "id": f"d{number}",
            "text": " ".join(generator.choice(SUBJECTS[label], 12)),
            "label": label,
            "time": f"2024-{1 + number // 8:02d}-01",
        }


@pytest.fixture(scope="module")
def corpus():
    rows = list(documents())
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    return tl.Corpus.from_texts(
        [*columns["text"], "nothing known"], language="en", min_df=2, max_df=1.0, ids=[*columns["id"], "odd"],
        labels=[*columns["label"], ""], timestamps=[*columns["time"], None],
    )  # fmt: skip


@pytest.fixture(scope="module")
def topics(corpus):
    model = tl.ETM(3, epochs=8, hidden_size=16, embedding_size=8, random_state=0).fit(corpus)
    return tl.Topics(model, corpus)


def note_of(figure):
    return " ".join(figure.texts[0].get_text().split())


def test_a_map_shows_the_documents_that_have_topics(topics):
    (figure,) = figures.draw(topics, "map")
    axes = figure.axes[0]
    assert len(axes.collections[0].get_offsets()) == 90
    main = {topic for topic in topics.documents.main_topics if topic is not None}
    assert {text.get_text() for text in axes.texts} == {f"{topic} {topics.names[topic]}" for topic in main}
    assert "coloured by its main topic" in note_of(figure)
    assert "1 document without a known word is left out" in note_of(figure)


def test_a_map_of_labels_explains_its_grey_documents(topics):
    documents = topics.documents
    fields = replace(documents.fields, labels=["", "", *documents.labels[2:]])
    some = replace(documents, fields=fields)
    (figure,) = figures.draw(tl.Topics.of(topics.model, topics.corpus, some), "map", colour="label")
    assert "Documents without a label are grey (2 of 90)." in note_of(figure)


def test_a_map_of_labels_in_the_latent_space(topics):
    (figure,) = figures.draw(topics, "map", colour="label", space="latent", projection="pca")
    assert {text.get_text() for text in figure.axes[0].texts} == set(SUBJECTS)
    assert "positions in the latent space" in note_of(figure)
    assert "without a label" not in note_of(figure)
    code = topics.model.latent(topics.corpus[:90])[0]
    expected = np.linalg.svd(code - code.mean(0), compute_uv=False)[:2]
    placed = np.asarray(figure.axes[0].collections[0].get_offsets())
    assert np.linalg.norm(placed, axis=0) == pytest.approx(expected, rel=1e-3)


def test_pictures_are_the_same_each_time(topics):
    first, second = (figures.draw(topics, "map", random_state=3)[0].axes[0].collections[0] for _ in range(2))
    np.testing.assert_array_equal(first.get_offsets(), second.get_offsets())


def test_words_and_topics_of_an_etm(topics, corpus):
    (figure,) = figures.draw(topics, "words")
    assert len(figure.axes[0].collections[1].get_offsets()) == 3
    shown = {text.get_text() for text in figure.axes[0].texts}
    assert len(shown & set(corpus.vocabulary)) > 10
    assert figures.draw(topics.rename({0: "<b>a</b>\n$b$"}), "words")
    with pytest.raises(InputError, match="ETM with edited topics has no vectors"):
        figures.draw(topics.merge([0, 1]), "words")
    other = tl.Topics(tl.LDA(2, epochs=2, random_state=0).fit(corpus), corpus)
    with pytest.raises(InputError, match="LDA has no vectors of words and topics; the picture 'words' needs an ETM"):
        figures.draw(other, "words")


def test_an_interpolation_of_chosen_documents(topics):
    (figure,) = figures.draw(topics, "interpolation", documents=["d0", 1], steps=4)
    titles = [text.get_text() for text in figure.texts[1:]]
    assert titles == [f"{letter}  {topics.documents.texts[row]}" for row, letter in enumerate("AB")]
    assert len(figure.axes[0].get_xticks()) == 4
    figures.draw(topics, "interpolation")
    for wrong, says in (
        (["d0", "d900"], "there is no document with the id 'd900'; did you mean"),
        (["x", "d0"], "there is no document with the id 'x'; choose one of d0, d1, d10, d11, d12 and 86 more$"),
        ([0, 91], "there is no document 91; the rows are 0 to 90"),
        (["d0"], "should name two documents"),
        (["odd", "d0"], "document odd contains no word that the model knows, .* name another one in `documents`"),
        ([90, 0], "document 90 contains no word that the model knows"),
    ):
        with pytest.raises(InputError, match=says):
            figures.draw(topics, "interpolation", documents=wrong)


def test_a_model_alone_is_refused(topics):
    with pytest.raises(SettingError, match=r"`topics` should be .*, Topics\(model, corpus\); it is ETM\("):
        figures.draw(topics.model, "map")


def test_topics_over_time(topics):
    (lines,) = figures.draw(topics, "time", period="month")
    expected = topics.over_time("month")
    drawn = {axes.get_title(loc="left"): axes.lines[0].get_ydata() for axes in lines.axes}
    for topic, name in enumerate(topics.names):
        np.testing.assert_allclose(drawn[f"{topic} {name}"], expected.shares.mean[:, topic])
    assert "documents of each month" in note_of(lines)
    (stream,) = figures.draw(topics, "time", period="month", stream=True)
    assert len(stream.axes[0].collections) == 3
    (all_sparse,) = figures.draw(topics, "time", period="month", stream=True, min_documents=10**6)
    assert len(all_sparse.axes[0].collections) == 3
    (lines,) = figures.draw(topics, "time", period="month", min_documents=10**6)
    assert "Hollow" not in lines.texts[0].get_text()


@pytest.mark.parametrize("kind", ["topics", "sparsity", "similarity", "simplex"])
def test_other_pictures(topics, kind, tmp_path):
    figures.save_pages(figures.draw(topics, kind), tmp_path / "picture.png")


def test_what_cannot_be_drawn(topics, corpus):
    with pytest.raises(InputError, match=r"there is no figure 'maps'; did you mean map\?"):
        figures.draw(topics, "maps")
    with pytest.raises(SettingError, match=r"a figure has no option 'color'; did you mean colour\?"):
        figures.draw(topics, "map", color="label")
    with pytest.raises(SettingError, match=r"`colour='time'` should be topic or label"):
        figures.draw(topics, "map", colour="time")
    bare = tl.Topics(topics.model, replace(corpus, fields=type(corpus.fields)(corpus.ids)))
    with pytest.raises(InputError, match="the documents have no labels"):
        figures.draw(bare, "map", colour="label")
    with pytest.raises(InputError, match="no document has a time"):
        figures.draw(bare, "time")


@pytest.mark.parametrize(
    ("rows", "says"), [([90], "no document"), ([90, 90], "no document"), ([0, 90], "two documents")]
)
def test_empty_documents(topics, corpus, rows, says):
    few = tl.Topics(topics.model, corpus.subset(rows))
    with pytest.raises(InputError, match="two documents with known words"):
        figures.draw(few, "interpolation")
    for kind in ("map", "sparsity"):
        if 0 in rows:
            assert figures.draw(few, kind)
        else:
            with pytest.raises(InputError, match="no document has a known word"):
                figures.draw(few, kind)
    assert figures.draw(few, "similarity")


def test_edited_topics_with_awkward_names(topics, tmp_path):
    edited = topics.merge([0, 1]).rename({0: "<script>alert(1)</script>\n$x$ \\alpha"})
    for kind in ("map", "topics", "interpolation", "similarity", "time"):
        (tmp_path / kind).mkdir()
        for path in figures.save_pages(figures.draw(edited, kind), tmp_path / kind / "picture.svg"):
            assert "<script>" not in path.read_text(encoding="utf-8")
    path = edited.model.interpolate(edited.corpus[[0]], edited.corpus[[1]])
    np.testing.assert_allclose(path.theta[[0, -1]], edited.model.transform(edited.corpus[:2]), atol=1e-5)


def test_two_documents(topics, corpus, tmp_path):
    two = tl.Topics(topics.model, corpus.subset([0, 1]))
    for kind in ("map", "interpolation", "sparsity", "similarity", "topics", "time"):
        figures.save_pages(figures.draw(two, kind), tmp_path / f"{kind}.png")


# The command line.


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    lines = "".join(json.dumps(row) + "\n" for row in documents())
    (folder / "news.jsonl").write_text(lines, encoding="utf-8")
    options = ["--language", "en", "--id", "id", "--label", "label", "--timestamp", "time", "--quiet"]
    arguments = ["--topics", 3, "--epochs", 8, "--min-df", 2, "--max-df", 1.0, "--out", folder / "run"]
    made = call("train", folder / "news.jsonl", "--model", "gsm", *options, *arguments)
    assert made.exit_code == 0, made.output
    return folder / "run"


def test_map_and_page_show_the_same_places(run):
    from topicloom.reports.explorer import PageOptions
    from topicloom.reports.explorer.page import page_parts

    view = tl.Topics.from_run(run)
    kept = np.load(run / "documents" / "positions.npy")
    _, arrays = unpack(page_parts(view, PageOptions())["documents"])
    np.testing.assert_allclose(arrays["places"] / 65535, kept, atol=1e-5)
    drawn = np.asarray(tl.figures.draw(view, "map")[0].axes[0].collections[0].get_offsets())
    known = kept[~view.documents.empty] * (1, -1)  # the page's second axis points down
    np.testing.assert_allclose(drawn[np.lexsort(drawn.T)], known[np.lexsort(known.T)], atol=1e-6)
    other = np.asarray(tl.figures.draw(view, "map", random_state=1)[0].axes[0].collections[0].get_offsets())
    assert not np.allclose(other[np.lexsort(other.T)], drawn[np.lexsort(drawn.T)], atol=1e-3)
    renamed = view.rename({0: "first"})
    np.testing.assert_array_equal(renamed.positions(), kept)
    for rows in (np.array([3, 1]), np.arange(len(kept))[::-1]):
        np.testing.assert_array_equal(renamed.positions(rows), kept[rows])


def test_the_command_draws_all_that_the_run_allows(run):
    result = call("figures", run, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert set(found["left_out"]) - {"clouds"} == {"words"}
    assert set(found["figures"]) - {"clouds"} == {"map", "interpolation", "sparsity", "similarity", "time"}
    folder = run.with_name("run-figures")
    assert {path.name for path in folder.iterdir()} == {f"{name}.png" for name in found["figures"]}
    refused("figures", run, says=["already exists; give another directory as --out, or --overwrite to replace it"])


def test_the_command_draws_what_is_named(run, tmp_path):
    arguments = ["--kind", "map,interpolation", "--out", tmp_path, "--format", "svg", "--colour", "label"]
    result = call("figures", run, *arguments, "--space", "latent", "--documents", "d0,d1", "--steps", "3", "--quiet")
    assert result.exit_code == 0, result.output
    assert {path.name for path in tmp_path.iterdir()} == {"map.svg", "interpolation.svg"}
    assert (tmp_path / "map.svg").read_text(encoding="utf-8").startswith("<?xml")
    assert call("figures", run, *arguments, "--quiet").exit_code == 2
    (tmp_path / "map-2.svg").write_text("a page of an earlier picture", encoding="utf-8")
    assert call("figures", run, *arguments, "--quiet", "--overwrite").exit_code == 0
    assert not (tmp_path / "map-2.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--kind", "maps"], "there is no figure 'maps'; did you mean map?"),
        (["--kind", "words"], "GSM has no vectors of words and topics"),
        (["--colour", "red"], "--colour red should be topic or label"),
        (["--kind", "map", "--projection", "mds"], "--projection mds should be one of tsne, pca, umap"),
        (["--kind", "interpolation", "--documents", "d0,dx"], "there is no document with the id 'dx'"),
        (["--documents", "d0"], "--documents d0: give the ids of two documents, such as d17,d204"),
        (["--kind", "simplex", "--alpha", "0.1,x"], "--alpha 0.1,x: give numbers"),
        (["--kind", "simplex", "--alpha", "0,1"], "--alpha has 0.0; each should be a positive number"),
        (["--kind", "time", "--period", "fortnight"], "--period fortnight"),
        (["--kind", "topics,map", "--bins", 4], "--bins is for the picture time; add it to --kind, or leave it out"),
        (["--covariate", "price"], "--covariate is for the picture groups; add it to --kind"),
        (["--kind", "time", "--projection", "pca"], "--projection is for the pictures map and words; add it"),
        (["--out", "words.png"], "words.png is the name of a picture; give the directory"),
        (["--kind", "map", "--font", "No Such Font"], "no installed font is called 'No Such Font'"),
    ],
)
def test_mistakes_are_one_sentence(run, tmp_path, arguments, says):
    refused("figures", run, "--out", tmp_path / "out", *arguments, says=[says])
    assert not (tmp_path / "out").exists()


def test_without_documents_or_matplotlib(run, tmp_path, monkeypatch):
    assert "holds no saved model" in call("figures", tmp_path).stderr
    for name in [name for name in sys.modules if name.startswith("topicloom.reports.figures")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(reports, "figures")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    refused(
        "figures",
        run,
        "--out",
        tmp_path / "out",
        says=["drawing pictures needs matplotlib: pip install 'topicloom[viz]'"],
    )
    with pytest.raises(MissingExtraError):
        import_module("topicloom.reports.figures")


# The documentation.

DOCS = Path(__file__).resolve().parents[1] / "docs"


@pytest.mark.parametrize("page", ["figures.md", "figures.zh-CN.md"])
def test_the_pages_name_every_kind_and_show_small_pictures(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == [
        "map", "words", "clouds", "interpolation", "sparsity", "similarity", "time", "topics", "groups", "simplex"
    ]  # fmt: skip
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == set(figures.KINDS)
    pictures = re.findall(r"\]\((figures/[\w-]+\.png)\)", text)
    assert len(pictures) == 11
    assert all(0 < (DOCS / picture).stat().st_size < 150_000 for picture in pictures)


def test_the_snippets_of_the_page_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    few = tl.datasets.python_docs()[::8]
    monkeypatch.setattr(tl.datasets, "python_docs", lambda: few)
    text = (DOCS / "figures.md").read_text(encoding="utf-8")
    snippets = re.findall(r"<!-- test -->\n```python\n(.*?)```", text, re.DOTALL)
    assert len(snippets) == 3
    for snippet in snippets:
        exec(snippet, {})
    assert (tmp_path / "map.png").is_file()
    assert capsys.readouterr().out
