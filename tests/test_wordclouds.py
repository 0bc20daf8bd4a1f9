"""Word clouds: the words and their sizes; Chinese ones with a font that has the characters."""

import importlib
import sys

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("wordcloud")
import wordcloud
from matplotlib import font_manager

from topicloom.errors import InputError, MissingExtraError
from topicloom.reports import figures
from topicloom.reports.figures.style import CJK_FONTS, file_for

WORDS, SCORES = [["market", "share", "bank"], ["match", "goal", "team"]], [[-1.0, -1.5, -4.0], [-1.0, -1.2, -1.4]]


@pytest.fixture
def drawn(monkeypatch):
    """The clouds that are made: each with the words and sizes that it got."""
    made = []
    generate = wordcloud.WordCloud.generate_from_frequencies

    def note(self, frequencies, **options):
        made.append((self, frequencies))
        return generate(self, frequencies, **options)

    monkeypatch.setattr(wordcloud.WordCloud, "generate_from_frequencies", note)
    return made


def test_sizes_follow_the_scores(drawn):
    (page,) = figures.word_clouds(WORDS, SCORES, [0.25, 0.75])
    panels = [axes for axes in page.axes if axes.images]
    assert [axes.get_title(loc="left") for axes in panels] == ["topic 0 · 25.0%", "topic 1 · 75.0%"]
    assert [list(frequencies) for _, frequencies in drawn] == WORDS
    assert drawn[0][1]["share"] == pytest.approx(np.exp(-0.5))
    sizes = {word: size for (word, _), size, *_ in drawn[0][0].layout_}
    assert set(sizes) == set(WORDS[0])
    assert sizes["market"] > sizes["share"] > sizes["bank"]
    note = " ".join(page.texts[0].get_text().split())
    assert note.startswith("The larger and darker a word, the better it stands for its topic.")


def test_the_same_seed_gives_the_same_cloud():
    first, second, other = (
        figures.word_clouds(WORDS[:1], SCORES[:1], random_state=seed)[0].axes[0].images[0].get_array()
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, second)
    assert (first != other).any()


def test_chinese_words_get_a_font_that_has_them(drawn):
    words = ["基金", "股票", "market"]
    installed = {face.name for face in font_manager.fontManager.ttflist}
    if not installed & set(CJK_FONTS):
        pytest.skip("this machine has no Chinese font")
    figures.word_clouds([words], [[0, -0.5, -0.7]], titles=["0 基金"])
    characters = set(font_manager.get_font(drawn[0][0].font_path).get_charmap())
    assert {ord(character) for word in words for character in word} <= characters


def test_latin_words_need_no_other_font():
    assert file_for(["word"]).endswith("DejaVuSans.ttf")
    with pytest.raises(InputError, match=r"no installed font is called 'No Such Font'"):
        file_for(["word"], "No Such Font")


def test_awkward_words(drawn, tmp_path):
    pages = figures.word_clouds(
        [["<script>alert(1)</script>", "$x$", "a" * 60], ["only", "", ""]], [[0.0, -1, -2], [0.0, -50, -50]]
    )
    figures.save_pages(pages, tmp_path / "clouds.png")
    assert list(drawn[1][1]) == ["only"]
    with pytest.raises(InputError, match="topic 1 has no words; leave it out"):
        figures.word_clouds([["a"], []], [[0.0], [0.0]])


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "wordcloud", None)
    with pytest.raises(
        MissingExtraError, match=r"drawing word clouds needs wordcloud: pip install 'topicloom\[clouds\]'"
    ):
        figures.word_clouds(WORDS, SCORES)


def test_a_broken_package_is_not_called_missing(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "wordcloud", raising=False)
    for code, reason in (
        ("raise ImportError('libfoo.so.6: no such file')", "libfoo.so.6: no such file"),
        ("from json import nothing", "cannot import name 'nothing' from 'json' .*"),
    ):
        (tmp_path / "wordcloud.py").write_text(code)
        importlib.invalidate_caches()
        says = rf"wordcloud, which is installed and cannot be imported \({reason}\); install it again: pip"
        with pytest.raises(MissingExtraError, match=says):
            figures.word_clouds(WORDS, SCORES)
    (tmp_path / "wordcloud.py").write_text("import no_such_module_of_wordcloud")
    importlib.invalidate_caches()
    with pytest.raises(MissingExtraError, match=r"needs wordcloud: pip install"):
        figures.word_clouds(WORDS, SCORES)
