"""Fonts for pictures: the installed fonts that have the characters of some texts."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from os import PathLike
from pathlib import Path

from matplotlib import font_manager

from ..errors import InputError
from ..messages import nearest
from .wording import Language, characters, chosen_language

logger = logging.getLogger("topicloom")

LATIN_FONT = "DejaVu Sans"  # comes with matplotlib
# Fonts with Chinese, Japanese or Korean characters. The most complete and most uniform fonts come first.
CJK_FONTS = (
    "Noto Sans CJK SC", "Noto Sans SC", "Noto Sans CJK JP", "Source Han Sans SC", "Source Han Sans CN",
    "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Microsoft YaHei", "SimHei", "PingFang SC", "PingFang HK",
    "Hiragino Sans GB", "Heiti SC", "Heiti TC", "STHeiti", "Arial Unicode MS", "Droid Sans Fallback",
    "Noto Serif CJK SC", "Source Han Serif SC", "SimSun", "Songti SC", "STSong", "Microsoft JhengHei", "Yu Gothic",
    "Hiragino Sans", "IPAexGothic", "Malgun Gothic", "Apple SD Gothic Neo", "NanumGothic", "AR PL UMing CN",
    "AR PL UKai CN",
)  # fmt: skip

_FONT_FILES = {".ttf", ".otf", ".ttc", ".otc"}
_INSTALL = (
    "install one (Debian and Ubuntu: apt install fonts-noto-cjk or fonts-wqy-microhei for Chinese, Japanese and "
    "Korean, fonts-noto-core for other scripts), or name a font file by `font`"
)
_BOXES = ("last resort", "lastresort", "adobe blank")  # fonts that have a box, or nothing, for every character


def fonts_for(texts: Iterable[str], font: str | PathLike[str] | None = None) -> list[str]:
    """Return the font families to draw `texts` with; each is the fallback of the one before.

    Latin text needs no font but matplotlib's own. For characters that it lacks, the installed font with most of them is
    added, and another one for characters that are still missing. matplotlib keeps a list of the installed fonts and
    does not renew it, so the system's fonts are looked up if a character is missing from all fonts of that list. If no
    font has a character, a warning says what to install.

    Args:
        texts: the texts.
        font: a family name or the path of a font file, which comes before all other fonts.

    Raises:
        InputError: `font` is not installed, or not a file that can be read as a font.
    """
    families, lacking = _families(texts, font)
    if lacking:
        n_others = len(lacking) - 1
        others = f" and {n_others} other character{'s' * (n_others > 1)}" if n_others else ""
        logger.warning(
            "no installed font has %s%s, so pictures show boxes in their place; %s", chr(min(lacking)), others, _INSTALL
        )
    return families


def label_language(language: Language, font: str | PathLike[str] | None = None, quiet: bool = False) -> Language:
    """Return the language in which labels are drawn: `language`, or English if no font has its characters.

    Args:
        language: "en" or "zh".
        font: a family name or the path of a font file, which comes before all other fonts.
        quiet: whether there is no warning of English labels in place of Chinese ones.

    Raises:
        InputError: `font` is not installed, or not a file that can be read as a font.
        SettingError: there is no such language.
    """
    language = chosen_language(language)
    if language == "en" or not _families(characters(language), font)[1]:
        return language
    if not quiet:
        logger.warning("no installed font has Chinese characters, so the labels of pictures are English; %s", _INSTALL)
    return "en"


def file_for(texts: Iterable[str], font: str | PathLike[str] | None = None) -> str:
    """Return the file of the font that has the most characters of `texts`, for what can use a single font only.

    Args:
        texts: the texts.
        font: a family name or the path of a font file, which is used whatever characters it has.

    Raises:
        InputError: `font` is not installed, or not a file that can be read as a font.
    """
    texts = list(texts)
    families = fonts_for(texts, font)
    if font is not None:
        return str(font_manager.findfont(families[0]))
    files = [str(font_manager.findfont(family)) for family in families]
    wanted = {ord(character) for text in texts for character in text if character.isprintable()}
    return max(files, key=lambda file: len(wanted & _characters(file)))


def _families(texts: Iterable[str], font: str | PathLike[str] | None) -> tuple[list[str], set[int]]:
    """Return the font families to draw `texts` with, and the characters that no font has."""
    families = [*([] if font is None else [_family(font)]), LATIN_FONT]
    wanted = {ord(character) for text in texts for character in text if character.isprintable()}
    missing = wanted.difference(*(_characters(font_manager.findfont(family)) for family in families))
    fallbacks, lacking = _fallbacks(missing)
    if lacking:
        _add_new_fonts()
        fallbacks, lacking = _fallbacks(missing)
    return families + fallbacks, lacking


def _fallbacks(missing: set[int]) -> tuple[list[str], set[int]]:
    """Return the fonts to add for some characters, and the characters that no font has."""
    found: dict[str, set[int]] = {}
    for name, path in _installed().items() if missing else ():
        found[name] = missing & _characters(path)
        if found[name] == missing:
            return [name], set()
    chosen = []
    while any(found.values()):
        best = max(found, key=lambda name: len(found[name]))
        chosen.append(best)
        missing = missing - found[best]
        found = {name: characters & missing for name, characters in found.items()}
    return chosen, missing


def _installed() -> dict[str, str]:
    """Return the file of each font family that matplotlib knows, `CJK_FONTS` first."""
    faces = font_manager.fontManager.ttflist
    regular_first = sorted(faces, key=lambda face: (face.style != "normal", face.weight != 400))
    files: dict[str, str] = {}
    for face in regular_first:
        if not face.name.strip(".").casefold().startswith(_BOXES):
            files.setdefault(face.name, face.fname)
    first = [name for name in CJK_FONTS if name in files]
    return {name: files[name] for name in dict.fromkeys([*first, *files])}


def _add_new_fonts() -> None:
    """Make fonts known to matplotlib that were installed after it made its list."""
    known = {face.fname for face in font_manager.fontManager.ttflist}
    for path in font_manager.findSystemFonts():
        if path not in known:
            try:
                font_manager.fontManager.addfont(path)
            except (OSError, RuntimeError, ValueError):  # matplotlib cannot draw every kind of font
                continue


def _family(font: str | PathLike[str]) -> str:
    """Return the family name of a font that a user named."""
    path = Path(font).expanduser().absolute()
    if path.suffix.lower() in _FONT_FILES or path.is_file():
        try:
            family = font_manager.get_font(str(path)).family_name
            if str(path) not in {face.fname for face in font_manager.fontManager.ttflist}:
                font_manager.fontManager.addfont(str(path))
        except FileNotFoundError:
            raise InputError(f"the font file {path} does not exist; check `font`") from None
        except (OSError, RuntimeError, ValueError):
            raise InputError(f"{path} cannot be read as a font; give a .ttf, .otf or .ttc file by `font`") from None
        return family
    name = str(font).casefold()
    for is_renewed in (False, True):
        if is_renewed:
            _add_new_fonts()
        families = {face.name.casefold(): face.name for face in font_manager.fontManager.ttflist}
        if name in families:
            return families[name]
    raise InputError(f"no installed font is called {str(font)!r}; {nearest(str(font), families.values())}")


def _characters(path: str) -> set[int]:
    """Return the code points that a font has; none if its file is gone or cannot be read."""
    try:
        return set(font_manager.get_font(path).get_charmap())
    except (OSError, RuntimeError):
        return set()
