"""The words of pictures and reports in English and Chinese: complete, drawn, and English where no font has Chinese."""

from __future__ import annotations

import ast
import logging
import re
from dataclasses import replace
from pathlib import Path
from string import Formatter

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from matplotlib.text import Text

import topicloom as tl
from command_line import call
from topicloom.errors import SettingError
from topicloom.experiments.compare import recommend
from topicloom.metrics import CATALOGUE
from topicloom.reports import comparison_words, wording
from topicloom.reports.comparison_page import CURVE_MEASURES
from topicloom.reports.figures.curves import n_topics_curve
from topicloom.reports.figures.style import wrapped
from topicloom.reports.run import RunOptions, _draw, write
from topicloom.reports.wording import Phrase, joined
from topicloom.text.tokenizing import Tokenizer
from topicloom.topics.publication import chosen_language

pytestmark = pytest.mark.filterwarnings("ignore:Glyph")  # fonts that are said to have characters
ROOT = Path(__file__).resolve().parents[1]
HAN = re.compile("[\u4e00-\u9fff]")


def phrases():
    for module in (wording, comparison_words):
        for name, value in vars(module).items():
            if name.isupper():
                several = value.values() if isinstance(value, dict) else [value]
                flat = (part for each in several for part in (each if isinstance(each, tuple) else [each]))
                yield from ((name, each) for each in flat if isinstance(each, Phrase))


def fields_of(text):
    return sorted(f"{name}:{spec}" for _, name, spec, _ in Formatter().parse(text) if name)


@pytest.mark.parametrize("phrase", [pytest.param(each, id=f"{name}-{each.en[:20]}") for name, each in phrases()])
def test_each_phrase_is_in_both_languages(phrase):
    assert set(fields_of(phrase.en)) == set(fields_of(phrase.zh))
    has_words = re.search("[A-Za-z]{2,}", re.sub(r"\{.*?\}", "", phrase.en)) and phrase is not comparison_words.CLAUSE
    assert HAN.search(phrase.zh) or not has_words
    assert phrase.zh.endswith("。") == (phrase.en.endswith(".") and not phrase.en.endswith("..."))


def test_every_measure_has_a_chinese_title_axis_and_meaning():
    assert set(wording._AXES) | set(wording._MEANINGS) <= set(CATALOGUE)
    for measure in CATALOGUE.values():
        for text, english in (
            (measure.title_zh, measure.title),
            (wording.axis_of(measure, "zh"), wording.axis_of(measure, "en")),
            (wording.meaning_of(measure, "zh"), wording.meaning_of(measure, "en")),
        ):
            assert HAN.search(text) or text == english == measure.title  # C_v


def test_terms_and_stages_are_those_of_the_explorers_page():
    page = (ROOT / "explorer" / "src" / "i18n.ts").read_text(encoding="utf-8")
    table = re.search(r"measuresInChinese.*?\{(.*?)\n\};", page, re.DOTALL)[1]
    there = dict(re.findall(r'(\w+): "(.*?)"', table))
    assert {name: wording.term_name(name, "zh") for name in there} == there
    assert set(CATALOGUE) <= set(there)
    stages = dict(re.findall(r'(\w+): "(.*?)"', re.search(r"stages: \{ (pretraining.*?) \}", page)[1]))
    assert {name: wording.stage_name(name, "zh") for name in stages} == stages
    assert set(wording._TERM_MEANINGS) == set(wording._TERM_NAMES)
    assert (wording.term_name("own_term", "zh"), wording.stage_name("own", "zh")) == ("own term", "own")


def test_no_words_are_written_in_the_code_that_draws():
    """Every text that a picture shows comes from the table; these methods and arguments of matplotlib take texts."""
    files = [*(ROOT / "src/topicloom/reports/figures").glob("*.py"), ROOT / "src/topicloom/reports/comparison_page.py"]
    assert len(files) > 8
    showing = {"set_title", "set_xlabel", "set_ylabel", "suptitle", "supxlabel", "supylabel", "text", "annotate"}
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                named = getattr(node.func, "attr", "")
                given = [*node.args[:3]] if named in showing else []
                given += [keyword.value for keyword in node.keywords if keyword.arg in ("label", "note", "title")]
                for value in given:
                    shown = [part.value for part in ast.walk(value) if isinstance(part, ast.Constant)]
                    written = [each for each in shown if isinstance(each, str) and re.search("[a-z]{3,}", each)]
                    assert set(written) <= {"alpha = "}, f"{file.name}:{value.lineno}"


def test_the_language_of_the_texts_is_that_of_their_pictures():
    assert chosen_language("auto", Tokenizer(language="zh")) == "zh"
    assert chosen_language("auto", Tokenizer(language="fr")) == chosen_language("auto") == "en"
    assert chosen_language("en", Tokenizer(language="zh")) == "en"
    with pytest.raises(SettingError, match="`language='fr'` should be en or zh, or auto for that of the texts"):
        chosen_language("fr")
    assert joined(["One.", "", "Two."], "en") == "One. Two."
    assert joined(["一。", "", "二。"], "zh") == "一。二。"


@pytest.mark.parametrize("npmi", [{5: [0.1], 50: [0.2]}, {5: [0.3], 50: [0.1]}, {5: [0.1]}, {5: [np.nan], 50: [0.2]}])
def test_a_recommendation_in_chinese(npmi):
    values = {
        "perplexity_completion": {k: np.array([600.0 - k]) for k in npmi},
        "document_npmi": {k: np.array(each) for k, each in npmi.items()},
    }
    english, chinese = recommend(values), recommend(values, "zh")
    assert english.n_topics == chinese.n_topics
    assert re.findall("[A-Za-z]{2,}", chinese.reason.replace("NPMI", "")) == []
    assert re.findall(r"\d\.\d+", english.reason) == re.findall(r"\d\.\d+", chinese.reason)


# Pictures.

figures = tl.figures
SAME = {"alpha", "NPMI", "SNE", "UMass", "UCI", "RBO", "ARI", "NMI", "gsm", "lda"}  # in both languages
WORDS = [chr(0x4E00 + n) for n in range(30)]  # of a vocabulary


def rows(epochs=6):
    measured = {name: 0.5 for name, measure in CATALOGUE.items() if "monitor" in measure.uses}
    watched = {"active_topics": 2, "duplicate_topics": 1, "frequent_mass": 0.4, "active_units_by_divergence": 3}
    terms = dict.fromkeys([*wording._TERM_MEANINGS], 1.0)
    return [
        {"epoch": epoch, **terms, **measured, **watched, "lowest_topic_diversity": 0.5,
         "kl_per_dimension": [0.1] * (4 if epoch < 3 else 3), "stage": "pretraining" if epoch < 4 else "counting"}
        for epoch in range(1, epochs + 1)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def topics():
    generator = np.random.default_rng(0)
    counts = generator.poisson(1.0, (40, len(WORDS)))
    counts[-2:] = 0  # documents without a word
    times = [f"{2020 + n // 20}-{1 + n % 12:02d}" for n in range(40)]
    corpus = tl.Corpus.from_counts(counts, WORDS, labels=["甲", "乙", "", "丙"] * 10, timestamps=times)
    corpus = replace(corpus, tokenizer=Tokenizer(language="zh"))
    model = tl.ETM(12, epochs=2, hidden_size=8, embedding_size=4, spare_topics=0, random_state=0).fit(corpus)
    return tl.Topics(model, corpus)


def texts_of(figure):
    return [text.get_text() for text in figure.findobj(Text)]


def english_in(figure):
    found = {word for text in texts_of(figure) for word in re.findall("[A-Za-z]{2,}", text)}
    return found - SAME


CURVES = {
    "loss": lambda **style: figures.loss_curve(rows(), **style),
    "collapse": lambda **style: figures.collapse_curve(rows(), 3, **style),
    "quality": lambda **style: figures.quality_curve(rows(), **style),
    "n_topics": lambda **style: n_topics_curve(
        {CATALOGUE[name]: {"gsm": np.ones((2, 3)), "lda": np.ones((2, 3))} for name in CURVE_MEASURES},
        [5, 20],
        {"gsm": 5},
        **style,
    ),
    "bars": lambda **style: figures.topic_pages([["一"]] * 41, [[1.0]] * 41, [0.1] * 41, **style)[1],
}


@pytest.mark.parametrize("kind", CURVES)
def test_curves_are_drawn_in_chinese(kind, chinese_font):
    figure = CURVES[kind](language="zh")
    assert english_in(figure) == set()
    assert english_in(CURVES[kind]())
    labels = [text for text in figure.findobj(Text) if HAN.search(text.get_text())]
    assert len(labels) > 3
    assert all("Chinese" in text.get_fontfamily() for text in labels)


@pytest.mark.parametrize("kind", figures.KINDS)
def test_pictures_are_drawn_in_chinese(kind, topics, chinese_font):
    if kind == "clouds":
        pytest.importorskip("wordcloud")
    some = {"map": [{"colour": "label"}, {"space": "latent", "projection": "pca"}], "time": [{"stream": True}]}
    for options in [{}, *some.get(kind, [])]:
        for figure in figures.draw(topics, kind, **options):
            assert english_in(figure) == set()
            labels = [text for text in figure.findobj(Text) if len(HAN.findall(text.get_text())) > 3]
            assert labels
            assert all("Chinese" in text.get_fontfamily() for text in labels)
        assert all(map(english_in, figures.draw(topics, kind, language="en", **options)))


def test_sentences_about_documents_are_chinese_too(topics, chinese_font):
    (figure,) = figures.draw(topics, "map", colour="label", projection="pca")
    note = "".join(figure.texts[0].get_text().split())
    assert note == (
        "每个点是一篇文档，颜色表示它的类别。主题占比相近的文档彼此靠近（主成分分析显示差异最大的两个方向）。"
        "没有类别的文档是灰色的（38篇中有9篇）。有2篇文档不含已知的词，没有画出。"
    )


@pytest.mark.parametrize("kind", CURVES)
def test_without_a_font_labels_are_english_with_a_warning(kind, no_font, caplog):
    with caplog.at_level(logging.WARNING, "topicloom"):
        figure = CURVES[kind](language="zh")
    shown, english = texts_of(figure), texts_of(CURVES[kind](language="en"))
    assert shown == english
    first = caplog.messages[0]
    assert first.startswith("no installed font has Chinese characters, so the labels of pictures are English; install")
    assert "fonts-noto-cjk" in first
    assert "labels of pictures" not in "".join(caplog.messages[1:])


def test_without_a_font_chinese_texts_have_english_labels(topics, no_font, caplog):
    """The words of the topics are boxes, of which the known warning tells; a second one would say the same."""
    with caplog.at_level(logging.WARNING, "topicloom"):
        (figure,) = figures.draw(topics, "similarity")
    assert "similarity" in texts_of(figure)
    assert len(caplog.messages) == 1
    assert "so pictures show boxes in their place; install one" in caplog.text
    with caplog.at_level(logging.WARNING, "topicloom"):
        (figure,) = figures.draw(topics, "similarity", language="zh")
    assert "labels of pictures are English" in caplog.text
    assert "similarity" in texts_of(figure)


def test_languages_that_there_are_not(topics):
    with pytest.raises(SettingError, match="`language='de'` should be en or zh"):
        figures.loss_curve(rows(), language="de")
    with pytest.raises(SettingError, match="`language='de'` should be en or zh"):
        figures.draw(topics, "map", language="de")


@pytest.mark.draws
@pytest.mark.parametrize(("language", "shown"), [("auto", "轮次"), ("zh", "轮次"), ("en", "epoch")])
def test_the_pictures_of_a_run_are_in_one_language(topics, language, shown, chinese_font, monkeypatch, tmp_path):
    saved = {}
    monkeypatch.setattr(figures, "save", lambda figure, path: saved.setdefault(path.name, texts_of(figure)))
    monkeypatch.setattr(figures, "save_pages", lambda pages, path: saved.setdefault(path.name, texts_of(pages[0])))
    _draw(tmp_path, topics, RunOptions(figure_language=language))
    assert set(saved) == {"topics.png", "loss.png", "collapse.png", "quality.png"}
    assert all(shown in texts for name, texts in saved.items() if name != "topics.png")
    assert any(text.startswith("topic 0" if language == "en" else "主题 0") for text in saved["topics.png"])


def test_the_command_has_an_option(topics, tmp_path, chinese_font):
    write(tmp_path / "run", topics.model, topics.corpus, topics.documents, 1.0)
    for options, shown in (([], "占比"), (["--figure-language", "en"], "share"), (["--figure-language", "zh"], "占比")):
        arguments = ["--kind", "sparsity", "--format", "svg", "--out", tmp_path / "out", "--overwrite", "--quiet"]
        assert call("figures", tmp_path / "run", *arguments, *options).exit_code == 0
        assert f"<!-- {shown} -->" in (tmp_path / "out" / "sparsity.svg").read_text(encoding="utf-8")
    wrong = call("figures", tmp_path / "run", "--figure-language", "fr")
    assert wrong.exit_code == 2
    for command in ("train", "figures", "compare", "select-topics", "edit", "name"):
        assert "--figure-language" in re.sub(r"\x1b\[[\d;]*m", "", call(command, "--help").stdout)


def test_chinese_lines_are_broken_where_they_may_be():
    text = "每个点是一篇文档（共 1,200 篇），颜色表示它的主要主题。“相似”的主题颜色相近；UMAP 保持近邻关系。"
    for most in range(12, 60):
        lines = wrapped(text, most).split("\n")
        assert "".join(lines).replace(" ", "") == text.replace(" ", "")
        assert all(sum(1 + (ord(each) > 0x1100) for each in line) <= most for line in lines)
        assert not any(line[0] in "。，、；：）” " or line[-1] in "（“ " for line in lines)
        assert "1,200" in "\n".join(lines)
        assert "UMAP" in "\n".join(lines)
    assert wrapped("one two three", 8) == "one two\nthree"
