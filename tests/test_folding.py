"""Words by language: case, marks, elision and joiners, for every language that the package names.

declaration.json has articles 1 to 3 of the Universal Declaration of Human Rights, from the collection of the Unicode
consortium; Lower Sorbian has article 1, and ancient Greek the beginning of the gospel of John.
"""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

from topicloom.text import Tokenizer, languages, make_tokenizer, stop_words
from topicloom.text.folding import folding
from topicloom.text.languages import ICU_LANGUAGES
from topicloom.text.strings import normalise
from topicloom.text.tokenizing import fold_of, token_spans

DECLARATION = json.loads(Path(__file__).with_name("declaration.json").read_text(encoding="utf-8"))
needs_icu = pytest.mark.skipif(find_spec("icu4py") is None, reason="needs icu4py, of the extra intl")
EVERY_LANGUAGE = [pytest.param(code, marks=[needs_icu] if code in ICU_LANGUAGES else []) for code in languages()]


def words(text, language, stop_words=None, **settings):
    return make_tokenizer(language, stop_words, **settings)(text)


def in_capitals(text, language):
    """The text in upper case, as SpecialCasing and CLDR have it for the language."""
    if language in ("az", "tr"):
        text = text.replace("i", "İ").replace("ı", "I")
    if language in ("el", "grc"):
        letters = unicodedata.normalize("NFD", text.replace("ς", "σ"))
        text = "".join(each for each in letters if unicodedata.combining(each) == 0 or each == "\u0345")
    return (text.replace("և", "ԵՎ") if language == "hy" else text).upper()


def in_small_letters(text, language):
    return (text.replace("I", "ı").replace("İ", "i") if language in ("az", "tr") else text).lower()


def spellings(text, language):
    """The text in upper and lower case, each composed and decomposed."""
    for cased in (text, in_capitals(text, language), in_small_letters(text, language)):
        for form in ("NFC", "NFD"):
            yield unicodedata.normalize(form, cased)


@pytest.mark.parametrize("language", EVERY_LANGUAGE)
def test_case_and_composition_do_not_change_tokens(language):
    text = DECLARATION.get(language, "") + "\n".join(sorted(stop_words(language)))
    text = text or "ភាសាខ្មែរ"
    for stops in (None, "auto"):
        of = make_tokenizer(language, stops, min_length=1)
        found = {tuple(of(each)) for each in spellings(text, language)}
        assert len(found) == 1
        assert stops == "auto" or min(map(len, found)) > 0


@pytest.mark.parametrize("language", EVERY_LANGUAGE)
def test_stop_words_are_removed_in_every_spelling(language):
    keeping, removing = make_tokenizer(language, None, min_length=1), make_tokenizer(language, min_length=1)
    entries = [word for word in stop_words(language) if len(keeping(word)) == 1 and not unicodedata.combining(word[0])]
    left = {each for word in entries for each in spellings(word, language) if removing(each)}
    assert not left


def test_every_language_has_a_text():
    assert {each for each in languages() if each not in DECLARATION} == set()


CASES = {
    "tr": [
        ("İlk iş için İstanbul ilk iş İçin istanbul IŞIK ışık Işık i\u0307stanbul", "auto"),
        ["istanbul", "istanbul", "ışık", "ışık", "ışık", "istanbul"],
    ],
    "az": [("BAKI Bakı İKİ iki", None), ["bakı", "bakı", "iki", "iki"]],
    "ar": [("محمـــد كتب محمد كتب مُحَمَّد كتب مِنْ من کتب", "auto"), ["محمد", "كتب"] * 3 + ["كتب"]],
    "fa": [("كتاب کتاب علي علی خانهٔ خانۀ خانه می‌خواهم کتاب‌ ۀ", None),
           ["کتاب", "کتاب", "علی", "علی", "خانه", "خانه", "خانه", "می‌خواهم", "کتاب"]],
    "ur": [("كتاب کتاب يہ یہ", None), ["کتاب", "کتاب", "یہ", "یہ"]],
    "he": [('בַּיִת בית ארה"ב ארה״ב ארה”ב "שלום" צ׳ק צ\'ק בית־ספר בית-ספר', None),
           ["בית", "בית", 'ארה"ב', 'ארה"ב', 'ארה"ב', "שלום", "צ'ק", "צ'ק", "בית-ספר", "בית-ספר"]],
    "fr": [("aujourd'hui AUJOURD’HUI presqu'île lorsqu'il jusqu'à L'ARBRE d´eau prud'homme cœur coeur", "auto"),
           ["aujourd'hui", "aujourd'hui", "presqu'île", "arbre", "eau", "prud'homme", "coeur", "coeur"]],
    "ca": [("col·laboració COL·LABORACIÓ coŀlaboració col•laboració l'home posa'ls", "auto"),
           [*["col·laboració"] * 4, "home", "posa"]],
    "it": [("Dell'arte quest'opera UN’ALTRA anch'io sant'Antonio", "auto"),
           ["arte", "opera", "altra", "sant", "antonio"]],
    "ro": [("s-a dintr-o prim-ministru ştiinţă știință", "auto"), ["prim-ministru", "știință", "știință"]],
    "lb": [("d'Recht D'RECHT", "auto"), ["recht", "recht"]],
    "el": [("λόγος ΛΟΓΟΣ Μάιος ΜΑΪΟΣ απ’ το", "auto"), ["λογοσ", "λογοσ", "μαιοσ", "μαιοσ"]],
    "ru": [("ёлка елка ЁЛКА москва́ Москва мой", None), ["елка", "елка", "елка", "москва", "москва", "мой"]],
    "uk": [("за́мок об'єкт обʼєкт їжа", None), ["замок", "об'єкт", "об'єкт", "їжа"]],
    "mk": [("ќе ЌЕ сѐ", None), ["ќе", "ќе", "сѐ"]],
    "hy": [("ի՞նչ ինչ Երևան ԵՐԵՎԱՆ ԵՐԵՒԱՆ", None), ["ինչ", "ինչ", "երեվան", "երեվան", "երեվան"]],
    "de": [("STRASSE straße Straße", None), ["strasse"] * 3],
    "la": [("Rōma Roma", None), ["roma", "roma"]],
    "fi": [("EU:n eu:n klo 10:30 huom:", None), ["eu:n", "eu:n", "klo", "huom"]],
    "sv": [("S:t Eriks USA:s", None), ["s:t", "eriks", "usa:s"]],
    "en": [("machine_learning _init_ a__bc snake__case co\u2060op state\u2011of\u2010art iPhone™ wall·e", None),
           ["machine_learning", "init", "bc", "snake", "case", "coop", "state-of-art", "iphone", "wall·e"]],
}  # fmt: skip


@pytest.mark.parametrize("language", CASES)
def test_words_of_a_language(language):
    (text, stops), expected = CASES[language]
    assert words(text, language, stops) == expected
    assert words(unicodedata.normalize("NFD", text), language, stops) == expected


def test_both_codes_of_malayalam_letters_give_one_word():
    assert DECLARATION["ml"] != DECLARATION["ml-chillus"]
    assert words(DECLARATION["ml"], "ml") == words(DECLARATION["ml-chillus"], "ml")


@pytest.mark.parametrize("language", EVERY_LANGUAGE)
def test_folded_tokens_are_folded_and_found_in_the_text(language):
    text = DECLARATION[language]
    of = make_tokenizer(language, None)
    tokens = of(text)
    assert [folding(language).word(normalise(token)) for token in tokens] == tokens
    places = token_spans(text, tokens, fold_of(of))
    assert sum(place is None for place in places) <= 0.02 * len(tokens)
    fold = folding(language).word
    if language == "lo":  # where NFKC splits letters
        return
    assert {fold(normalise(text[slice(*place)])) for place in places if place} == {
        token for token, place in zip(tokens, places, strict=True) if place
    }


# ICU's word breaks, which are those of UAX 29 with CLDR's tailoring, and the ways in which tokens differ from them.


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


EXPLANATIONS = [hyphen, elision, possessive, stop, underscores, geresh]
MORE_TEXT = {
    "en": "The user's state-of-the-art node.js cost 3.14 or 1,000 dollars; see _this_ and snake_case or a__b.",
    "fr": "L'homme d'aujourd'hui qu'on aime à la presqu'île, c'est-à-dire l’œuvre.",
    "it": "Dell'arte e l'uomo, quest'anno",
    "ca": "L'home d'aquí, la col·laboració i posa'ls",
    "he": "ארה\"ב וצה״ל, רח' הרצל 5",
    "fi": "EU:n jäsenmaat, klo 10:30",
    "sv": "S:t Eriks kyrka i USA:s mitt",
    "de": "Es geht's um z.B. die Straße",
    "uk": "Об'єкт і п’ять",
    "nl": "Zo'n foto's van 's morgens",
    "hy": "Ի՞նչ է սա",
    "am": "ሰላም፡ለዓለም",
    "fa": "می‌خواهم کتاب‌ها را",
    "el": "Απ’ το σπίτι· και",
}


def breaks(text, language):
    """The words that ICU finds."""
    from icu4py.breakers import WordBreaker

    fold = folding(language).word
    pieces = (piece for piece in WordBreaker(text, language) if any(map(str.isalnum, piece)))
    return [fold(piece) for piece in pieces]


@needs_icu
def test_tokens_differ_from_icu_as_explained():
    seen, compared, equal = Counter(), 0, 0
    for language in languages():
        if language == "zh":  # has another dictionary than ICU
            continue
        text = normalise(f"{DECLARATION[language]}\n{MORE_TEXT.get(language, '')}")
        ours = Tokenizer(language=language, min_length=1, keep_numbers=True)(text)
        theirs = breaks(text, language)
        compared += len(ours)
        for left, right in groups(theirs, ours):
            if left == right:
                equal += 1
                continue
            reason = next((each for each in EXPLANATIONS if each(left, right)), None)
            assert reason, f"{language}: {left} of ICU, {right} here"
            seen[reason] += 1
    assert set(seen) == set(EXPLANATIONS)
    assert compared > 5000
    assert equal > 0.9 * compared


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
