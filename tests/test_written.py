"""Written forms of words: what texts have, and what word vectors are looked up by."""

from __future__ import annotations

import gzip
import json
import logging
import re
from collections import Counter

import numpy as np
import pytest

from command_line import shown
from topicloom import ETM, LDA, Topics, load
from topicloom.corpus import Corpus
from topicloom.embeddings import WordVectors, read_word_vectors
from topicloom.embeddings.word_vectors import as_word_vectors

OPEN = {"min_df": 1, "max_df": 1.0}
TEXTS = ["Das Haus in der Straße.", "In London steht ein Haus: gehen, GEHEN!", "Gehen die Straße nach London"] * 4
FORMS = {"haus": "Haus", "london": "London", "strasse": "Straße"}


def test_the_commonest_written_form_decides():
    corpus = Corpus.from_texts(TEXTS, language="de", **OPEN)
    assert corpus.written == FORMS  # gehen, Gehen and GEHEN are equally frequent, and the word itself is taken
    assert Corpus.from_texts(TEXTS, language="de", keep_texts=False, **OPEN).written == {}
    assert Corpus.from_texts([["Haus", "haus"]], **OPEN).written == {}
    assert corpus[:3].over(["london", "new"]).written == {"london": "London"}


def test_written_forms_equal_a_slow_count():
    random = np.random.default_rng(0)
    words = ["Haus", "haus", "HAUS", "Straße", "STRASSE", "strasse", "Fluß", "Fluss", "über", "Über", "l'été", "Été"]
    texts = [" ".join(random.choice(words, 9)) for _ in range(300)]
    corpus = Corpus.from_texts(texts, language="de", stop_words=None, **OPEN)
    counts = Counter(re.findall(r"\S+", " ".join(texts)))
    expected = {}
    for word in corpus.vocabulary:
        forms = {form: n for form, n in counts.items() if form.casefold() == word}
        best = min(forms, key=lambda form: (-forms[form], form != word, form))
        if best != word:
            expected[word] = best
    assert corpus.written == expected


SPELLINGS = {
    "de": ("Die Straße, die STRASSE. Größe: GRÖSSE Maß", {"strasse": None, "grösse": None, "mass": "maß"}),
    "el": ("Ο λόγος· «ο λόγος» ΛΟΓΟΣ", {"λογοσ": "λόγος"}),
    "tr": ("IŞIK ışık, İstanbul istanbul", {}),
    "ar": ("محمد، محمـــد محمد؟ مُدُن مُدُن", {"مدن": "مُدُن"}),
    "fa": ("كتاب كتاب؛ کتاب علی", {"کتاب": "كتاب"}),
    "he": ('ארה״ב ארה״ב ארה"ב שָׁלוֹם שלום שלום', {'ארה"ב': "ארה״ב"}),
    "ru": ("Мёд, мёд; мед. Ёлка", {"мед": "мёд", "елка": "ёлка"}),
    "fr": ("L'œuvre, l’Œuvre d'une oeuvre; le coeur", {"oeuvre": "œuvre"}),
    "la": ("Rēs rēs res pūblica", {"res": "rēs", "publica": "pūblica"}),
    "en": ("so\u00adft \u200bsoft ﬁne fine CAFÉ café İzmir", {}),
}


@pytest.mark.parametrize("language", SPELLINGS)
def test_spellings_have_marks_and_letters_of_the_texts(language):
    text, expected = SPELLINGS[language]
    corpus = Corpus.from_texts([text], language=language, stop_words=None, **OPEN)
    assert {word: form for word, form in expected.items() if form} == corpus.spellings
    assert set(expected) <= set(corpus.vocabulary)  # two of four is no majority


@pytest.fixture(scope="module")
def german(tmp_path_factory):
    """A run with the words strasse, strassen and haus, of which texts write straße and Straßen."""
    folder = tmp_path_factory.mktemp("german")
    texts = ["Straße Straßen Fuß", "Haus Dach STRASSE", "Straße Haus", "Dach Haus", "Straßen Fuß"] * 4
    (folder / "texts.csv").write_text("text\n" + "\n".join(texts), encoding="utf-8")
    options = ("--model", "lda", "--topics", "2", "--language", "de", "--min-df", "1", "--max-df", "1.0", "--quiet")
    shown("train", folder / "texts.csv", *options, "--text", "text", "--out", folder / "run")
    return folder / "run"


def test_what_people_read_has_written_forms(german):
    assert "straße" in (german / "topics.csv").read_text("utf-8")
    for command in (["topics", german], ["documents", german, "0"], ["find", german, "STRASSE"], ["hierarchy", german]):
        output = shown(*command)
        assert "straße" in output, command
        assert "strasse" not in output, command
    topics = Topics.from_run(german)
    loaded = load(german)
    assert loaded.spellings_ == {"strasse": "straße", "strassen": "straßen", "fuss": "fuß"}
    assert {"strasse", "fuss"} <= {word for words in loaded.topics() for word in words} <= set(loaded.vocabulary_)
    for view in (topics, Topics(loaded, topics.corpus), topics.rename({0: "x"})):
        tables = [view.table(), view.word_table(), view.documents_of(0), view.nearest("fuss"), view.topics_of(0)]
        text = " ".join(map(str, [*(each.to_dicts() for each in tables[:4]), view.names, view.name().names]))
        assert "straße" in text
        assert "'strasse'" not in text.replace("'item': 'strasse'", "")


def test_searches_take_folded_and_written_forms(german):
    topics = Topics.from_run(german)
    for other in ("straße", "Straße", "STRASSE"):
        assert topics.find_topics(other)["weight"] == topics.find_topics("strasse")["weight"]
        assert topics.nearest(other)["item"] == topics.nearest("strasse")["item"]
    written = topics.names[0]
    folded = written.replace("ß", "ss")
    assert written != folded
    assert topics.number_of(written) == topics.number_of(folded) == 0
    seeds = [LDA(2, seed_words={0: [word]}, random_state=0).fit(topics.corpus) for word in ("Straße", "strasse")]
    np.testing.assert_array_equal(*(model.components_ for model in seeds))


def test_models_without_spellings_load_as_before(german, tmp_path):
    model = load(german)
    model.spellings_ = {}
    model.save(tmp_path / "old")
    assert "spellings" not in json.loads((tmp_path / "old" / "config.json").read_text())
    assert load(tmp_path / "old").topics(written=True) == model.topics()


def test_french_articles_are_no_part_of_a_form():
    corpus = Corpus.from_texts(["L'Étoile de l'Étoile", "d'Étoile"], language="fr", **OPEN)
    assert corpus.written == {"étoile": "Étoile"}


@pytest.mark.parametrize("form", ["file", "gzip", "object", "dictionary"])
def test_vectors_are_found_by_written_and_folded_forms(form, tmp_path):
    vectors = {"haus": [9, 9], "Haus": [1, 0], "LONDON": [8, 8], "London": [0, 1], "straße": [1, 1], "Gehen": [2, 1]}
    lines = "".join(f"{word} {' '.join(map(str, vector))}\n" for word, vector in vectors.items())
    (tmp_path / "v.txt").write_text(lines, encoding="utf-8")
    (tmp_path / "v.txt.gz").write_bytes(gzip.compress(lines.encode()))
    given = {
        "file": tmp_path / "v.txt",
        "gzip": tmp_path / "v.txt.gz",
        "object": WordVectors(vectors, np.array([*vectors.values()])),
        "dictionary": vectors,
    }[form]
    words = ["haus", "london", "strasse", "gehen"]
    found = as_word_vectors(given, words, written=FORMS)
    np.testing.assert_array_equal(found.rows(words, written=FORMS), [[1, 0], [0, 1], [1, 1], [2, 1]])
    plain = as_word_vectors(given, words)  # the word itself, then the first other form
    np.testing.assert_array_equal(plain.rows(words), [[9, 9], [8, 8], [1, 1], [2, 1]])


def test_words_of_the_user_are_found_in_lower_case():
    assert as_word_vectors({"london": [1, 2]}, ["London"]).rows(["London"]).tolist() == [[1, 2]]


def test_a_model_starts_at_the_vectors_of_written_forms():
    corpus = Corpus.from_texts(TEXTS, language="de", stop_words=["steht", "gehen"], **OPEN)
    assert sorted(corpus.vocabulary) == sorted(FORMS)
    cased = {"Haus": [1.0, 0.0], "London": [0.0, 1.0], "Straße": [1.0, 1.0]}
    folded = {word: cased[form] for word, form in FORMS.items()}
    settings = {"epochs": 2, "device": "cpu", "fixed_word_vectors": True}
    one, two = (ETM(2, word_vectors=vectors, **settings).fit(corpus) for vectors in (cased, folded))
    np.testing.assert_array_equal(one.word_embeddings_, two.word_embeddings_)


def test_few_vectors_are_a_warning(tmp_path, caplog):
    path = tmp_path / "v.txt"
    path.write_text("cat 1 2\n", encoding="utf-8")
    with caplog.at_level(logging.INFO, "topicloom"):
        read_word_vectors(path, ["cat", "dog"])
        read_word_vectors(path, ["cat", "dog", "rain"])
        WordVectors(["cat"], [[1, 2]]).rows(["cat", "dog", "rain"])
    assert [record.levelno for record in caplog.records] == [logging.INFO, logging.WARNING, logging.WARNING]
    assert caplog.messages[1] == (
        f"only 1 of 3 words (33.3 %) found in {path}; the others get random vectors, so give vectors of the language "
        "of the texts"
    )
