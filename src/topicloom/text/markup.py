"""HTML in texts: tags, comments and entities are removed before a text is split into words."""

from __future__ import annotations

import html
import re

_ELEMENTS = """
    a|abbr|acronym|address|applet|area|article|aside|audio|b|base|basefont|bdi|bdo|big|blockquote|
    body|br|button|canvas|caption|center|cite|code|col|colgroup|data|datalist|dd|del|details|dfn|
    dialog|dir|div|dl|dt|em|embed|fieldset|figcaption|figure|font|footer|form|frame|frameset|h1|h2|
    h3|h4|h5|h6|head|header|hgroup|hr|html|i|iframe|img|input|ins|kbd|label|legend|li|link|main|
    map|mark|marquee|math|menu|meta|meter|nav|nobr|noframes|noscript|object|ol|optgroup|option|
    output|p|param|path|picture|pre|progress|q|rp|rt|ruby|s|samp|script|search|section|select|slot|
    small|source|span|strike|strong|style|sub|summary|sup|svg|table|tbody|td|template|textarea|tfoot|
    th|thead|time|title|tr|track|tt|u|ul|var|video|wbr
"""  # blanks are ignored in the expression below
# Only the elements of HTML and names with a prefix (o:p) are tags, so that <unk> and "a <b and c> d" stay text.
# Possessive quantifiers keep the search linear on hostile text.
_TAG = re.compile(
    rf"""
    </?(?:{_ELEMENTS}|[a-z][\w-]*+:[a-z][\w-]*+)(?=[\s/>])
    (?:(?:\s++[\w:@.-]++)++\s*+=[^<>]*+ | \s*+/?+)>   # attributes, at least one with a value, or none
    | <!doctype\b[^<>]*+> | <\?xml\b[^<>]*+> | <!\[CDATA\[
    """,
    re.ASCII | re.IGNORECASE | re.VERBOSE,
)
# The content of these elements is not text of the page.
_BLOCKS = [
    (re.compile("<!--"), re.compile("-->")),
    *(
        (re.compile(rf"<{name}(?:\s[^<>]*+)?>", re.IGNORECASE), re.compile(rf"</{name}\s*+>", re.IGNORECASE))
        for name in ("script", "style")
    ),
]
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")


def strip_html(text: str) -> str:
    """Replace the tags, comments, scripts and styles in a text by blanks, and entities by their characters.

    Text that contains no HTML is returned as it is; this includes "a < b" and "AT&T".
    """
    if "&" in text:
        text = _ENTITY.sub(_character, text)
        if "&" in text:  # &amp;nbsp; is an entity that was escaped twice
            text = _ENTITY.sub(_character, text)
    if "<" not in text:
        return text
    for opening, closing in _BLOCKS:
        text = _without_blocks(text, opening, closing)
    return _TAG.sub(" ", text)


def _character(entity: re.Match[str]) -> str:
    return html.unescape(entity[0])


def _without_blocks(text: str, opening: re.Pattern[str], closing: re.Pattern[str]) -> str:
    # A single expression would be slow: if an end is missing, it would search for the end again from each beginning.
    kept, place = [], 0
    while (begin := opening.search(text, place)) and (end := closing.search(text, begin.end())):
        kept += [text[place : begin.start()], " "]
        place = end.end()
    return "".join([*kept, text[place:]]) if kept else text
