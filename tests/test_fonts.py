"""Fonts of pictures: those that have the characters, also if they were installed a moment ago."""

import logging
import warnings
from pathlib import Path

import matplotlib
import pytest

pytest.importorskip("matplotlib")
from matplotlib import font_manager

from topicloom.errors import InputError
from topicloom.reports import figures
from topicloom.reports.figures import style
from topicloom.reports.figures.style import save

SHIPPED = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
STIX = str(SHIPPED / "STIXGeneral.ttf")
ONLY_STIX = "\u2a0a"  # a sign that DejaVu Sans lacks and STIX has


def listed(path):
    return [face for face in font_manager.fontManager.ttflist if face.fname == str(path)]


@pytest.fixture
def known_fonts(monkeypatch):
    """Make matplotlib know DejaVu Sans alone, and the system have the fonts that a test names."""
    dejavu = listed(SHIPPED / "DejaVuSans.ttf")
    assert dejavu

    def know(*files):
        monkeypatch.setattr(font_manager.fontManager, "ttflist", list(dejavu))
        monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [str(file) for file in files])

    return know


def warned(caplog, texts, **options):
    caplog.clear()
    with caplog.at_level(logging.WARNING, "topicloom"):
        found = style.fonts_for(texts, **options)
    return found, caplog.messages


def test_latin_words_need_one_font():
    assert style.fonts_for(["word", "Größe", "слово"]) == ["DejaVu Sans"]


def test_a_font_that_was_installed_later_is_found(known_fonts, caplog):
    known_fonts()
    families, messages = warned(caplog, ["word", ONLY_STIX, "\u2a0b"])
    assert families == ["DejaVu Sans"]
    assert len(messages) == 1
    assert messages[0].startswith(f"no installed font has {ONLY_STIX} and 1 other character, so pictures show boxes")
    assert "fonts-noto-cjk" in messages[0]
    known_fonts(STIX, SHIPPED / "missing.ttf", SHIPPED.parent / "pdfcorefonts" / "readme.txt")
    assert warned(caplog, ["word", ONLY_STIX]) == (["DejaVu Sans", "STIXGeneral"], [])


def test_pictures_show_no_boxes_once_a_font_is_installed(known_fonts, tmp_path):
    known_fonts(STIX)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib warns of each box
        (page,) = figures.topic_pages([[ONLY_STIX, "word"]], [[2, 1]])
        page.savefig(tmp_path / "signs.png")


def test_a_pdf_has_no_type_3_fonts(tmp_path):
    save(figures.topic_pages([["word", "text"]], [[2, 1]])[0], tmp_path / "words.pdf")
    written = (tmp_path / "words.pdf").read_bytes()
    assert b"/TrueType" in written or b"/CIDFontType2" in written
    assert b"/Type3" not in written


def test_chinese_words_get_a_font_that_has_them(monkeypatch, tmp_path):
    """The list of fonts that matplotlib keeps is without the fonts that Chinese needs, as if it were an old one."""
    others = [face for face in font_manager.fontManager.ttflist if face.name not in style.CJK_FONTS]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", others)
    families = style.fonts_for(["话题", "模型"])
    if not set(families) & set(style.CJK_FONTS):
        pytest.skip("this machine has no Chinese font")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figures.topic_pages([["话题", "模型"]], [[2, 1]])[0].savefig(tmp_path / "zh.png")


def test_without_a_font_one_warning_says_what_to_install(known_fonts, tmp_path, caplog):
    known_fonts()
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING, "topicloom"):
        warnings.simplefilter("error")
        figures.save_pages(figures.topic_pages([["话题", "模型"]] * 3, [[2, 1]] * 3), tmp_path / "boxes.png")
    assert len(caplog.records) == 1
    assert "no installed font has 型 and 3 other characters" in caplog.text


def test_fonts_of_several_scripts_go_together(monkeypatch):
    have = {"latin": "abc", "Some": "话", "Most": "话题", "Thai": "ก", "Last Resort High": "abc话题ก"}
    monkeypatch.setattr(style, "_characters", lambda path: {ord(character) for character in have.get(path, "abc")})
    face = listed(SHIPPED / "DejaVuSans.ttf")[0]
    faces = [type(face)(fname=name, name=name) for name in have]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", [face, *faces])
    assert style.fonts_for(["话题", "กa"]) == ["DejaVu Sans", "Most", "Thai"]


def test_a_font_can_be_named(known_fonts, tmp_path):
    known_fonts(STIX)
    assert style.fonts_for(["a"], "STIXGeneral") == ["STIXGeneral", "DejaVu Sans"]
    assert style.fonts_for(["a"], "dejavu sans") == ["DejaVu Sans", "DejaVu Sans"]
    known_fonts()
    assert style.fonts_for([ONLY_STIX], Path(STIX)) == ["STIXGeneral", "DejaVu Sans"]
    (page,) = figures.topic_pages([["word"]], [[0.0]], font=STIX)
    assert page.axes[0].texts[0].get_fontfamily() == ["STIXGeneral", "DejaVu Sans"]
    figure = figures.dot_panels({f"measure {n}": {"test": {"gsm": [1.0]}} for n in range(4)}, font=STIX)
    for axes in (figure.axes[0], figure.axes[3]):  # a row each
        assert axes.get_yticklabels()[0].get_fontfamily() == ["STIXGeneral", "DejaVu Sans"]


def test_fonts_that_cannot_be_used(known_fonts, tmp_path):
    known_fonts()
    with pytest.raises(InputError, match=r"no installed font is called 'DejaVu Sand'; did you mean DejaVu Sans\?"):
        style.fonts_for(["a"], "DejaVu Sand")
    with pytest.raises(InputError, match=r"the font file .*none\.ttf does not exist; check `font`"):
        style.fonts_for(["a"], tmp_path / "none.ttf")
    (tmp_path / "text.ttf").write_text("no font")
    with pytest.raises(InputError, match=r"text\.ttf cannot be read as a font; give a"):
        style.fonts_for(["a"], tmp_path / "text.ttf")


def test_a_font_of_one_weight_makes_no_noise(tmp_path, monkeypatch, caplog):
    """WenQuanYi Zen Hei has one weight, 500, and matplotlib said so at each of its lookups."""
    ttlib = pytest.importorskip("fontTools.ttLib")
    font = ttlib.TTFont(STIX)
    for record in font["name"].names:
        if record.nameID in (1, 4, 16):
            record.string = "Only Medium"
    font["OS/2"].usWeightClass = 500
    font.save(tmp_path / "medium.ttf")
    monkeypatch.setattr(font_manager.fontManager, "ttflist", listed(SHIPPED / "DejaVuSans.ttf"))
    font_manager.fontManager.addfont(tmp_path / "medium.ttf")
    assert [face.weight for face in listed(tmp_path / "medium.ttf")] == [500]
    with caplog.at_level(logging.WARNING):
        font_manager.fontManager.findfont(font_manager.FontProperties(family="Only Medium"), rebuild_if_missing=False)
        # Whoever chose it is told, but for early versions of matplotlib.
        assert ("Failed to find font weight" in caplog.text) is hasattr(font_manager, "_normalize_weight")
        caplog.clear()
        assert style.fonts_for(["word", ONLY_STIX]) == ["DejaVu Sans", "Only Medium"]
        figures.topic_pages([[ONLY_STIX, "word"]], [[2, 1]])[0].savefig(tmp_path / "signs.png")
    assert caplog.messages == []
