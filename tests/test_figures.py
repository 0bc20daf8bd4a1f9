"""Pictures: panels and fonts. How they look is for eyes."""

import logging
import warnings

import pytest

pytest.importorskip("matplotlib")
from matplotlib import font_manager

from topicloom.reports import figures


def rows(*names, epochs=3):
    return [
        {"epoch": epoch + 1.0, "seconds": 1.0, **dict.fromkeys(names, 10.0 / (epoch + 1))} for epoch in range(epochs)
    ]


def panels(figure):
    return [[line.get_label() for line in axes.lines] for axes in figure.axes]


@pytest.mark.parametrize("epochs", [1, 3])
def test_loss_curve_gives_every_scale_a_panel(epochs):
    history = rows("loss", "reconstruction", "divergence", "validation_loss", "spread", epochs=epochs)
    assert panels(figures.loss_curve(history)) == [
        ["loss", "reconstruction", "validation loss"],
        ["divergence"],
        ["spread"],
    ]
    assert panels(figures.loss_curve(rows("loss", epochs=epochs))) == [["loss"]]


WATCHED = {
    "kl_per_dimension": [0.3, 0.1, 0.2],
    "active_units_by_divergence": 3,
    "active_topics": 2,
    "duplicate_topics": 1,
    "frequent_mass": 0.4,
}


@pytest.mark.parametrize("epochs", [1, 3])
def test_collapse_curve_has_a_panel_for_every_figure(epochs, tmp_path):
    history = [row | WATCHED for row in rows("loss", epochs=epochs)]
    figure = figures.collapse_curve(history, 5)
    values = [axes.lines[0].get_ydata().tolist() for axes in figure.axes]
    assert values == [[value] * epochs for value in (0.2, 3, 2, 1, 0.4)]
    assert [axes.get_ylim()[1] > top for axes, top in zip(figure.axes, (0.3, 3, 5, 1, 1), strict=True)] == [True] * 5
    assert panels(figures.loss_curve(history)) == [["loss"]]
    figures.save(figure, tmp_path / "collapse.png")


def test_collapse_curve_takes_what_there_is(tmp_path):
    seen = {"active_topics": 2, "duplicate_topics": 0, "frequent_mass": 0.4}
    figure = figures.collapse_curve([*rows("loss", epochs=2), {"epoch": 3, **seen}], 5)  # as the sampler's
    assert [axes.lines[0].get_xdata().tolist() for axes in figure.axes] == [[3]] * 3
    figures.save(figures.collapse_curve(rows("loss"), 5), tmp_path / "empty.png")


def test_quality_curve_has_a_panel_for_every_scale(tmp_path):
    history = rows("loss", "topic_diversity", epochs=4)
    for row in history[1::2]:
        row |= {"c_npmi": 0.1, "document_npmi": 0.2, "c_v": 0.5, "inverted_rbo": 0.9}
    figure = figures.quality_curve(history)
    assert panels(figure) == [["document npmi", "c npmi"], ["c v"], ["topic diversity", "inverted rbo"]]
    assert figure.axes[1].lines[0].get_xydata().tolist() == [[2, 0.5], [4, 0.5]]
    assert figure.axes[2].lines[0].get_xdata().tolist() == [1, 2, 3, 4]
    assert panels(figures.loss_curve(history)) == [["loss"]]
    figures.save(figure, tmp_path / "quality.png")
    figures.save(figures.quality_curve(rows("loss")), tmp_path / "empty.png")


def test_loss_curve_allows_a_term_that_comes_later():
    history = rows("loss", epochs=2)
    history[1]["divergence"] = 1.0
    assert panels(figures.loss_curve(history)) == [["loss"], ["divergence"]]


@pytest.mark.parametrize("n_topics", [1, 2, 7, 60])
def test_topic_bars_draws_every_topic_with_the_best_word_on_top(n_topics):
    figure = figures.topic_bars([["best", "good", "fair"]] * n_topics, [[0.3, 0.2, 0.1]] * n_topics)
    drawn = [axes for axes in figure.axes if axes.texts]
    assert len(drawn) == n_topics
    for axes in drawn:
        assert [text.get_text().strip() for text in axes.texts] == ["best", "good", "fair"]
        heights = [axes.transData.transform(text.get_position())[1] for text in axes.texts]
        assert heights == sorted(heights, reverse=True)


def test_pictures_grow_with_the_topics_and_stay_drawable(tmp_path):
    few, many = (figures.topic_bars([["a"]] * n, [[1.0]] * n) for n in (10, 100))
    assert many.get_figheight() > 5 * few.get_figheight()
    many.set_size_inches(1, 2000)  # 2,000 inches at the usual resolution are more pixels than matplotlib draws
    figures.save(many, tmp_path / "tall.png")
    assert (tmp_path / "tall.png").stat().st_size > 0


def test_words_are_never_taken_for_formulas(tmp_path):
    figures.save(figures.topic_bars([["$x", "a$_b$", r"\alpha"]], [[3, 2, 1]], ["$1"]), tmp_path / "odd.png")


def test_latin_words_need_one_font():
    assert figures.fonts_for(["word", "Größe", "слово"]) == ["DejaVu Sans"]


def test_chinese_words_get_a_font_that_has_them(tmp_path):
    if not {font.name for font in font_manager.fontManager.ttflist} & set(figures.CJK_FONTS):
        pytest.skip("this machine has no Chinese font")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figures.topic_bars([["话题", "模型"]], [[2, 1]]).savefig(tmp_path / "zh.png")


def test_without_a_chinese_font_one_warning_says_what_to_install(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(figures, "CJK_FONTS", ())
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING, "topicloom"):
        warnings.simplefilter("error")
        figures.save(figures.topic_bars([["话题", "模型"]] * 3, [[2, 1]] * 3), tmp_path / "boxes.png")
    assert len(caplog.records) == 1
    assert "fonts-noto-cjk" in caplog.text
