"""ICU's word breaks, which are those of UAX 29 with CLDR's tailoring, and the ways in which tokens differ from them."""

from __future__ import annotations

import json
from pathlib import Path

from topicloom.text.folding import folding

DECLARATION = json.loads(Path(__file__).with_name("declaration.json").read_text(encoding="utf-8"))


def hyphen(theirs, ours):
    """UAX 29 breaks at a hyphen; a token goes on, because compounds are words."""
    return len(ours) == 1 and "-" in ours[0] and ours[0].split("-") == theirs


def elision(theirs, ours):
    """UAX 29 joins at an apostrophe; an elided word is a token of its own in the languages that elide."""
    return "'".join(ours) == "-".join(theirs)


def possessive(theirs, ours):
    """The possessive 's is removed."""
    return len(theirs) == 1 and ours == [theirs[0].removesuffix("'s")]


def stop(theirs, ours):
    """UAX 29 joins letters at a full stop and digits at a comma; no token contains them, since they end sentences."""
    return len(theirs) == 1 and theirs[0].replace(",", ".").split(".") == ours


def underscores(theirs, ours):
    """UAX 29 joins at underscores, even at the edges of a word; only a single one between letters joins a token."""
    parts = [part.strip("_") for part in "_".join(theirs).split("__")]
    return "_" in theirs[0] and [part for part in parts if part] == ours


def geresh(theirs, ours):
    """UAX 29 keeps an apostrophe after any Hebrew letter; it is also a closing quotation mark, and no token ends so."""
    return len(theirs) == 1 and ours == [theirs[0].rstrip("'")]


def colon(theirs, ours):
    """UAX 29 joined letters at a colon until Unicode 15.1; now CLDR does so for Finnish and Swedish alone."""
    return len(theirs) == 1 and theirs[0].split(":") == ours


def dot(theirs, ours):
    """UAX 29 joins at a middle dot after vowel signs, and in Greek, where it is a semicolon; here, between letters."""
    return len(theirs) == 1 and theirs[0].split("·") == ours


def digits(theirs, ours):
    """UAX 29 breaks at an apostrophe beside a digit, and ICU beside Hangul; a token goes on, as in Turkish 1923'te."""
    others = any(each.isdigit() or "가" <= each <= "힣" for each in "".join(ours))
    return len(ours) == 1 and others and ours[0].split("'") == [each.removesuffix("'") for each in theirs]


EXPLANATIONS = [hyphen, elision, possessive, stop, underscores, geresh, colon, dot, digits]


def breaks(text, language):
    """The words that ICU finds."""
    from icu4py.breakers import WordBreaker

    fold = folding(language).word
    pieces = (piece for piece in WordBreaker(text, language) if any(map(str.isalnum, piece)))
    return [fold(piece) for piece in pieces]


def compared(text, language, ours):
    """Yield, for each part of a text with the same letters, its words here and why they are not those of ICU.

    The reason is None if they are the same.

    Args:
        text: a normalised text.
        language: its language.
        ours: the tokens, of any length and with numbers.
    """
    for left, right in groups(breaks(text, language), ours):
        reason = None if left == right else next((each for each in EXPLANATIONS if each(left, right)), None)
        assert left == right or reason, f"{language}: {left} of ICU, {right} here, in {text!r}"
        yield right, reason


def groups(theirs, ours):
    """Divide two lists into the smallest parts that have the same letters."""
    left, right = [], []
    theirs, ours = list(theirs), list(ours)
    while theirs or ours or left or right:
        have, want = letters(left), letters(right)
        if left and right and (have == want or (have == want + "s" and left[-1].endswith("'s"))):
            yield left, right
            left, right = [], []
        elif (len(have) <= len(want) and theirs) or not ours:
            assert theirs, f"{left} {right}"
            left.append(theirs.pop(0))
        else:
            right.append(ours.pop(0))


def letters(tokens):
    return "".join(each for each in "".join(tokens) if each.isalnum())
