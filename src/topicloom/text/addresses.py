"""Addresses in texts, which are removed before a text is split into words.

The same as replacing these two expressions by a blank, one after the other; a search for rare characters is faster:

    (?:(?:https?|ftp)://|\\bwww\\.)[!-~]+                   in any case, which includes İ and ı
    (?<![\\w.+-])[\\w.+-]++@[\\w-]+(?:\\.[\\w-]+)+             in ASCII
"""

from __future__ import annotations

import re
import string

# Where a URL begins with its scheme, the match begins at the colon.
_URL = re.compile(
    r"""
    [:wW] (?: (?<=:)// (?: (?<=[hH][tT][tT][pP]://) | (?<=[hH][tT][tT][pP][sS]://) | (?<=[fF][tT][pP]://) )
            | (?<=[wW])[wW][wW]\. (?<!\w[wW][wW][wW]\.) )
    [!-~İı]+
    """,
    re.VERBOSE,
)
_HOST = re.compile(r"@[\w-]+(?:\.[\w-]+)+", re.ASCII)
_BEFORE_HOST = string.ascii_letters + string.digits + "_.+-"


def without_addresses(text: str) -> str:
    """Replace each URL and each e-mail address by a blank."""
    return _without_emails(_without_urls(text))


def _without_urls(text: str) -> str:
    kept, place = [], 0
    for url in _URL.finditer(text):
        begin = url.start()
        if text[begin] == ":":
            begin -= 3 if text[begin - 3] in "fF" else 5 if text[begin - 1] in "sS" else 4
        kept.append(text[place:begin])
        place = url.end()
    return " ".join([*kept, text[place:]]) if kept else text


def _without_emails(text: str) -> str:
    if "@" not in text:
        return text
    kept, place, after = [], 0, 0  # `after` is the end of an address, or the place after an @ that is in none
    for host in _HOST.finditer(text):
        at = host.start()
        begin = after + len(text[after:at].rstrip(_BEFORE_HOST))
        if begin == at or begin == place > 0:  # there is no name, or it continues the address before
            after = at + 1
            continue
        kept.append(text[place:begin])
        place = after = host.end()
    return " ".join([*kept, text[place:]]) if kept else text
