"""What the pictures share: fonts, colours, notes, pages and panels, and how they are saved."""

from __future__ import annotations

import colorsys
import io
import logging
import math
import re
import textwrap
import warnings
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import font_manager, rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from ...errors import InputError
from ...files import atomic_file
from ...messages import nearest
from ...topics.publication import chosen_language
from ..palette import topic_colours
from ..wording import PAGE, SHARES, Language, characters, joined

logger = logging.getLogger("topicloom")

# Fonts: the installed ones that have the characters of some texts.

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


class _NoWeights(logging.Filter):
    """Leaves out that a font has no regular weight, if this package has chosen the font.

    matplotlib warns of it in every process, though nobody can do anything about it: some Chinese fonts have one weight,
    which they call medium.
    """

    families: set[str] = set()  # noqa: RUF012  # those that were chosen

    def filter(self, record: logging.LogRecord) -> bool:
        is_about_weight = str(record.msg).startswith("findfont: Failed to find font weight")
        return not (is_about_weight and self.families.intersection(map(str, record.args or ())))


logging.getLogger("matplotlib.font_manager").addFilter(_NoWeights())

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

    Examples:
        >>> import topicloom as tl
        >>> tl.figures.fonts_for(["topics"])  # for plt.rcParams["font.family"]
        ['DejaVu Sans']
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
    _NoWeights.families.update(fallbacks)
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


# Colours and texts.

BLACK, GREY, BLUE, PALE = "#111111", "#555555", "#2f5d8a", "#bfd3e6"
LIGHT = "#d0d0d0"  # documents and topics without a group
MARGIN, LINE = 0.12, 0.15  # inches: beside the panels, and the height of a line of the note
_NOTE_CHARACTERS_PER_INCH = 16.5  # as many fit even in the widest line; a Chinese one counts as two
_FEW_GROUPS = 10
_WIDE_CHARACTERS = "\u1100-\uffff"
# A line may be broken between wide characters, but not before closing or after opening punctuation.
_UNIT = re.compile(rf"\s+|[（“《]*(?:[^\s{_WIDE_CHARACTERS}]+|[{_WIDE_CHARACTERS}])[。，、；：？！）”》]*")


def colours_of(n_groups: int, order: Sequence[int] | None = None) -> list[str]:
    """Return a colour for each group: that of the topic with its number, which the explorer shows too.

    Args:
        n_groups: the number of groups.
        order: the groups in an order in which similar ones are neighbours. More than ten groups then share a circle of
            hues, on which neighbours of `order` are neighbours, so that similar groups have similar colours.
    """
    if order is None or n_groups <= _FEW_GROUPS:
        return topic_colours(n_groups)
    colours = [""] * n_groups
    for place, group in enumerate(order):
        lightness, saturation = ((0.42, 0.75), (0.58, 0.62), (0.32, 0.62))[place % 3]
        red, green, blue = colorsys.hls_to_rgb(0.97 * place / n_groups, lightness, saturation)
        colours[group] = f"#{round(255 * red):02x}{round(255 * green):02x}{round(255 * blue):02x}"
    return colours


def darker(colour: str) -> str:
    """Return a colour for text on white, of the hue of `colour`."""
    hue, lightness, saturation = colorsys.rgb_to_hls(*(int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)))
    return "#" + "".join(
        f"{round(255 * part):02x}" for part in colorsys.hls_to_rgb(hue, min(lightness, 0.33), saturation)
    )


def noted(
    width: float, height: float, note: str, *, left: float = MARGIN, top: float = 0.3, fonts: Sequence[str] = ()
) -> Figure:
    """Make a figure with a note at the bottom; the margins around the panels are fixed.

    Args:
        width, height: the size in inches of the figure without the note.
        note: sentences that say what the picture shows.
        left, top: the margins in inches there.
        fonts: the font families of a note that is not in English; by default matplotlib's own.
    """
    below = wrapped(note, max(20, int(_NOTE_CHARACTERS_PER_INCH * (width - 2 * MARGIN))))
    bottom = 2 * MARGIN + LINE * (below.count("\n") + 1) if below else MARGIN
    height += bottom
    figure = Figure(figsize=(width, height))
    figure.subplots_adjust(left=left / width, right=1 - MARGIN / width, bottom=bottom / height, top=1 - top / height)
    figure.text(MARGIN / width, MARGIN / height, below, va="bottom", color=GREY, fontsize=8, linespacing=1.25)
    set_fonts(figure, fonts)
    return figure


def set_fonts(figure: Figure, fonts: Sequence[str]) -> None:
    """Give the fonts to all texts that a figure has so far, except those in ASCII, which any font has."""
    if not set(fonts) <= {LATIN_FONT}:
        for text in figure.findobj(Text):
            if isinstance(text, Text) and not text.get_text().isascii():
                text.set_fontfamily(list(fonts))


def wrapped(text: str, most: int) -> str:
    """Break a text into lines of at most `most` characters; a wide one, such as a Chinese one, counts as two."""
    if not re.search(f"[{_WIDE_CHARACTERS}]", text):
        return textwrap.fill(text, most)
    lines, room = [""], most
    for unit in _UNIT.findall(" ".join(text.split())):
        width = _width(unit)
        if width > room and lines[-1]:
            lines[-1], room = lines[-1].rstrip(), most
            lines.append("")
        if lines[-1] or not unit.isspace():
            lines[-1] += unit
            room -= width
    return "\n".join(lines)


def _width(text: str) -> int:
    return sum(1 + (ord(character) > 0x1100) for character in text)


def as_title(name: str, most: int, tail: str = "") -> str:
    """Break a name and what follows it into lines of at most `most` characters; what exceeds three lines is cut."""
    for room in range(3 * most, 0, -1):
        title = wrapped(shortened(name, room) + tail, most)
        if title.count("\n") < 3:
            break
    return title


def shortened(name: str, most: int = 30) -> str:
    """Return a name cut to at most `most` characters; a wide one, such as a Chinese one, counts as two."""
    width, kept = 0, ""
    for character in " ".join(name.split()):
        width += 1 + (ord(character) > 0x1100)
        if width > most:
            return kept.rstrip() + "…"
        kept += character
    return kept


def sampled(n_rows: int, most: int, random_state: int) -> npt.NDArray[np.intp]:
    """Return at most `most` row numbers in ascending order, drawn at random if there are more rows."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(random_state).choice(n_rows, most, replace=False))


# Files.

_DPI = 110
_LONGEST_SIDE = 60_000  # pixels; matplotlib draws no more than 65,536
# Files have no time of their making, so that they can be compared.
_UNDATED: dict[str, dict[str, Any]] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


def save(figure: Figure, path: Path) -> None:
    """Write a picture, completely or not at all, in the format that the suffix of `path` names.

    Args:
        figure: the picture.
        path: a file such as topics.png, topics.svg or topics.pdf, which is replaced.

    Examples:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> import topicloom as tl
        >>> with TemporaryDirectory() as folder:
        ...     tl.figures.save(tl.figures.simplex([1], 10), Path(folder, "simplex.svg"))
        ...     [file.name for file in Path(folder).iterdir()]
        ['simplex.svg']
    """
    dpi = min(_DPI, _LONGEST_SIDE / max(figure.get_size_inches()))
    # Type 3 fonts, matplotlib's default, are refused by some publishers; 42 embeds TrueType fonts.
    with atomic_file(path) as temporary, warnings.catch_warnings(), rc_context({"pdf.fonttype": 42}):
        warnings.filterwarnings("ignore", "Glyph .* missing")  # fonts_for has warned already
        figure.savefig(temporary, dpi=dpi, metadata=_UNDATED.get(path.suffix.lower()))


def save_pages(pages: Sequence[Figure], path: Path) -> list[Path]:
    """Write the first picture to `path`, and the others beside it: topics.png, topics-2.png, topics-3.png, ...

    Args:
        pages: the pictures.
        path: the file of the first one. Files are replaced.

    Returns:
        the paths of the files.

    Examples:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> import topicloom as tl
        >>> pages = [tl.figures.simplex([1], 10), tl.figures.simplex([2], 10)]
        >>> with TemporaryDirectory() as folder:
        ...     [file.name for file in tl.figures.save_pages(pages, Path(folder, "simplex.svg"))]
        ['simplex.svg', 'simplex-2.svg']
    """
    paths = [path, *(path.with_stem(f"{path.stem}-{number}") for number in range(2, len(pages) + 1))]
    for figure, target in zip(pages, paths, strict=True):
        save(figure, target)
    return paths


def svg(figure: Figure) -> str:
    """Return the picture as an <svg> element for a page.

    Examples:
        >>> import topicloom as tl
        >>> tl.figures.svg(tl.figures.simplex([1], 10))[:5]
        '<svg '
    """
    out = io.StringIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")
        figure.savefig(out, format="svg")
    return out.getvalue()[out.getvalue().index("<svg") :]


# Pages with a panel for each topic.

_PANEL_SIZE = (2.5, 2.1)  # inches, width and height
_USUAL_COLUMNS, _MOST_COLUMNS, _MOST_ROWS = 5, 8, 5  # of a page, which fits a screen
_TITLE_CHARACTERS = 30


def panel_pages(
    names: Sequence[str],
    shares: npt.ArrayLike | None,
    note: str,
    language: Language = "en",
    fonts: Sequence[str] = (),
) -> tuple[list[Figure], list[tuple[Axes, str]]]:
    """Make pages of at most 40 topics, which can be read on a screen.

    Args:
        names: the names of the topics.
        shares: (K,) the mean share of each topic in the documents, which is added to its title; None for none.
        note: stands at the bottom of each page.
        language: of the sentences that follow the note.
        fonts: the font families of a note that is not in English; by default matplotlib's own.

    Returns:
        the pages, and an empty panel with its title for each topic.
    """
    tails = (
        [""] * len(names) if shares is None else [f"\N{NO-BREAK SPACE}· {share:.1%}" for share in np.asarray(shares)]
    )
    titles = [as_title(name, _TITLE_CHARACTERS, tail) for name, tail in zip(names, tails, strict=True)]
    titles = [title.replace("\N{NO-BREAK SPACE}", " ") for title in titles]
    n_pages = max(1, math.ceil(len(titles) / (_MOST_COLUMNS * _MOST_ROWS)))
    pages, panels = [], []
    for number, topics in enumerate(np.array_split(np.arange(len(titles)), n_pages), 1):
        notes = [note] + [SHARES(language)] * (shares is not None)
        notes += [PAGE(language, number=number, n_pages=n_pages)] * (n_pages > 1)
        further = max(titles[topic].count("\n") for topic in topics) if len(topics) else 0
        figure, all_axes = _page(len(topics), joined(notes, language), fonts, further)
        panels += [(axes, titles[topic]) for axes, topic in zip(all_axes, topics.tolist(), strict=False)]
        pages.append(figure)
    return pages, panels


def _page(n_topics: int, note: str, fonts: Sequence[str] = (), further: int = 0) -> tuple[Figure, list[Axes]]:
    """Make a page of panels whose titles have some further lines."""
    columns = min(n_topics, max(_USUAL_COLUMNS, math.ceil(n_topics / _MOST_ROWS))) or 1
    rows = max(1, math.ceil(n_topics / columns))
    # The margins are fixed, in inches. Words are drawn inside their panels, so that no text has to be measured.
    more, height = further * LINE, _PANEL_SIZE[1]
    figure = noted(columns * _PANEL_SIZE[0], rows * (height + more), note, left=MARGIN, top=0.3 + more, fonts=fonts)
    figure.subplots_adjust(wspace=0.08, hspace=0.2 + more / (height / 1.2))
    all_axes = list(figure.subplots(rows, columns, squeeze=False).ravel())
    for axes in all_axes:
        axes.axis("off")
    return figure, all_axes
