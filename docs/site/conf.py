"""The settings of Sphinx. SITE_LANGUAGE is "en" or "zh"; `make docs` builds both."""

from __future__ import annotations

import os
import re
import sys
from gettext import NullTranslations
from pathlib import Path
from typing import Any, ClassVar

from sphinx.search.zh import SearchChinese

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "src")]

import reference  # noqa: E402

from topicloom import __version__  # noqa: E402
from topicloom.settings import ReadableSettings  # noqa: E402

LANGUAGE = os.environ.get("SITE_LANGUAGE", "en")
CHINESE = LANGUAGE == "zh"

project, author, release = "topicloom", "topicloom", __version__
copyright = "topicloom, Apache-2.0"
language = "zh_CN" if CHINESE else "en"
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx.ext.mathjax",
    "myst_nb",
    "sphinx_copybutton",
    "sphinx_design",
]
templates_path = ["templates"]
html_static_path = ["static"]
html_css_files = ["site.css"]
exclude_patterns: list[str] = ["files"]
highlight_language = "none"
nitpicky = True
# Names outside the reference: those of other packages, type aliases, and parts of the package that are not public.
nitpick_ignore_regex = [("py:.*", r"(?!topicloom\.\w+$).*")]

# Pages in Markdown, and notebooks, whose output is stored.
myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
nb_execution_mode = "off"
nb_merge_streams = True
suppress_warnings = ["myst.header"]  # a page may begin its parts at the third level

# The reference.
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_display_short_literal_types = True
autodoc_preserve_defaults = True
napoleon_google_docstring, napoleon_numpy_docstring = True, False
napoleon_use_ivar = True
napoleon_use_rtype = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
viewcode_line_numbers = True

# The theme; every script and font comes with the pages.
html_theme = "pydata_sphinx_theme"
html_title = "topicloom"
html_show_sourcelink = False
html_copy_source = False
html_search_scorer = str(HERE / "static" / "scorer.js")
html_favicon = "static/icon.svg"
mathjax_path = "mathjax/tex-svg-full.js"
html_theme_options = {
    "logo": {"text": "topicloom", "image_light": "static/icon.svg", "image_dark": "static/icon.svg", "alt_text": ""},
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button", "language"],
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
    "navigation_with_keys": False,
    "search_bar_text": "搜索" if CHINESE else "Search",
    "secondary_sidebar_items": ["page-toc"],
    "show_toc_level": 2,
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
html_context = {"default_mode": "auto", "site_language": LANGUAGE, "other_language": "en" if CHINESE else "zh"}
html_sidebars = {"index": [], "search": [], "genindex": []}


class Words(NullTranslations):
    """The words of the theme that its Chinese translation lacks."""

    chinese: ClassVar = {
        "Collapse Sidebar": "收起侧边栏",
        "Color mode": "颜色模式",
        "Expand Sidebar": "展开侧边栏",
        "System Settings": "跟随系统",
    }

    def gettext(self, message: str) -> str:
        return self.chinese.get(message, message)


class SearchPairs(SearchChinese):
    """Chinese search by pairs of characters, which finds every part of a sentence.

    A page cut into words would be found only by the same words, and the browser cannot cut a query as the builder does.
    """

    language_name = "English"  # of the stemmer's class in JavaScript, which Sphinx 9.0 looks for by this name
    js_splitter_code = (HERE / "static" / "split.js").read_text(encoding="utf-8")

    def split(self, input: str) -> list[str]:
        latin = self.latin1_letters.findall(input)
        self.latin_terms.update(latin)
        runs = re.findall(r"[\u3400-\u9fff]+", input)
        return [*latin, *(run[i : i + 2] for run in runs for i in range(max(1, len(run) - 1))), *"".join(runs)]

    def word_filter(self, stemmed_word: str) -> bool:
        return len(stemmed_word) > 1 or not stemmed_word.isascii()


def read_docstring(app: Any, what: str, name: str, found: Any, options: Any, lines: list[str]) -> None:
    owner = ".".join(name.split(".")[:2])
    is_model = isinstance(found, type) and issubclass(found, ReadableSettings)
    lines[:] = reference.to_rst(lines, owner, drop_args=is_model)


def shorten_signature(
    app: Any, what: str, name: str, found: Any, options: Any, signature: str | None, returned: str | None
) -> tuple[str | None, str | None] | None:
    if isinstance(found, type) and issubclass(found, ReadableSettings):
        return "(n_topics=20, **settings)", None
    return None


def setup(app: Any) -> None:
    app.add_search_language(SearchPairs)
    if CHINESE:
        app.connect("builder-inited", lambda app: app.translator.add_fallback(Words()))
    app.connect("autodoc-process-docstring", read_docstring, priority=100)  # before napoleon
    app.connect("autodoc-process-signature", shorten_signature)
