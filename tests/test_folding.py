"""Words by language: case, marks, elision and joiners, for every language that the package names.

declaration.json has articles 1 to 3 of the Universal Declaration of Human Rights, from the collection of the Unicode
consortium; Lower Sorbian has article 1, and ancient Greek the beginning of the gospel of John.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from importlib.util import find_spec

import pytest

from topicloom.text import Tokenizer, languages, make_tokenizer, stop_words
from topicloom.text.folding import folding
from topicloom.text.languages import ICU_LANGUAGES
from topicloom.text.strings import normalise
from topicloom.text.tokenizing import fold_of, token_spans
from word_breaks import DECLARATION, EXPLANATIONS, compared

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
    "ko": [("ㅋㅋ ㅠㅠ 왜ㅋㅏ ﾡￂﾡ 학교", None), ["ㅋㅋ", "ㅠㅠ", "왜ㅋㅏ", "ㄱㅏㄱ", "학교"]],
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


MORE_TEXT = {
    "en": "The user's state-of-the-art node.js cost 3.14 or 1,000 dollars; see _this_ and snake_case or a__b.",
    "nb": "note:denne",
    "tr": "1923'te kuruldu",
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
    "el": "Απ’ το σπίτι·και",
}


@needs_icu
def test_tokens_differ_from_icu_as_explained():
    reasons, n_tokens = Counter(), 0
    for language in languages():
        if language == "zh":  # has another dictionary than ICU
            continue
        text = normalise(f"{DECLARATION[language]}\n{MORE_TEXT.get(language, '')}")
        ours = Tokenizer(language=language, min_length=1, keep_numbers=True)(text)
        n_tokens += len(ours)
        reasons.update(reason for _, reason in compared(text, language, ours))
    equal = reasons.pop(None)
    assert set(reasons) == set(EXPLANATIONS)
    assert n_tokens > 5000
    assert equal > 0.9 * n_tokens
