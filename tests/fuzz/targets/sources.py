"""E-mails, Word files, archives, nested JSON and long texts; posts, n-grams, base forms, copies and boilerplate."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections import Counter
from email import policy
from email.message import EmailMessage
from functools import cache
from typing import Any

from hostile import MARKS, PLAIN_WORDS, SEPARATORS
from topicloom.corpus import Corpus
from topicloom.errors import InputError
from topicloom.text import Document, Tokenizer, make_tokenizer, read
from topicloom.text.boilerplate import Remover, find_boilerplate
from topicloom.text.duplicates import Copies, words_of
from topicloom.text.phrases import find_phrases, one_token
from topicloom.text.pieces import splitter
from topicloom.text.strings import normalise, replace_surrogates
from topicloom.topics.language_model import LanguageModel, LanguageModelAnswers, naming_question, read_naming
from topicloom.topics.rating import RatingQuestion

from ..campaign import Target
from ..case import Case, same
from .readers import clean, json_value
from .words import PIECES

POST = [
    *MARKS,
    "@name",
    "#TwoWords",
    "#话题#",
    "https://t.co/x?y",
    "RT ",
    "&amp;",
    "😀",
    "👍🏽",
    "#",
    "@",
    "😡😡",
    "🇩🇪",
]


def refused_or_read(path: Any, **options: Any) -> list[Document] | None:
    """The documents of a damaged file; None if it is refused in a sentence."""
    try:
        return list(read(path, **options))
    except InputError as error:
        assert str(error) and "\n" not in str(error) and len(str(error)) < 3000, str(error)
        return None


def lines(case: Case, least: int = 0) -> str:
    """A text of several lines that an e-mail can have, which begins with a word."""
    text = "\n".join(["words", *case.some(lambda: case.text(["From here"]), 8, least)])
    return re.sub(r"[\0\r\v\f\x1c-\x1e\x85\u2028\u2029]", " ", text)


def mail(case: Case) -> tuple[bytes, str]:
    """An e-mail and its text."""
    message = EmailMessage(policy=policy.SMTP if case.chance(0.5) else policy.default)
    message["Subject"] = " ".join(case.random.choices(PLAIN_WORDS, k=1 + case.below(8)))
    message["From"] = case.pick(["a@b.example", "Ann Example <ann@b.example>"])
    if case.chance(0.7):
        message["Date"] = case.pick(["Mon, 02 Mar 2020 10:11:12 +0100", "yesterday", "1 Jan 99 25:61", ""])
    text = replace_surrogates(lines(case))
    encoding = case.pick(["utf-8", "utf-8", "gb18030"])
    message.set_content(text, charset=encoding, cte=case.pick(["base64", "quoted-printable"]))
    if case.chance(0.3):
        message.add_alternative("<p>other</p>", subtype="html")
    if case.chance(0.2):
        message.add_attachment(case.random.randbytes(40), maintype="image", subtype="png", filename="a.png")
    return message.as_bytes(), text


def same_lines(found: str, expected: str) -> None:
    same(found.rstrip("\n").split("\n"), clean(expected).rstrip("\n").split("\n"), "line")


def eml(case: Case) -> int:
    """An e-mail: its text, or, if it is damaged, anything or a refusal."""
    data, text = mail(case)
    same_lines(next(read(case.write("a.eml", data))).text, text)
    refused_or_read(case.write("b.eml", case.mutated(data)))
    return 2


def mbox(case: Case) -> int:
    """Several e-mails in one file."""
    mails = case.some(lambda: mail(case), 5, 1)
    begin = b"From a@b.example Mon Mar  2 10:11:12 2020\n"
    data = b"".join(
        begin + re.sub(rb"(?m)^From ", b">From ", each.replace(b"\r\n", b"\n")).rstrip(b"\n") + b"\n\n"
        for each, _ in mails
    )
    found = list(read(case.write("a.mbox", data)))
    assert len(found) == len(mails), f"{len(found)} of {len(mails)} e-mails"
    for document, (_, text) in zip(found, mails, strict=True):
        same_lines(document.text, text)
    refused_or_read(case.write("b.mbox", case.mutated(data)))
    return len(mails)


def word_file(case: Case) -> int:
    """A Word file with paragraphs and a table."""
    import docx

    document = docx.Document()
    texts = []
    for _ in range(1 + case.below(5)):
        text = re.sub(r"[\0-\x1f\x7f-\x9f\ufffe\uffff]", " ", replace_surrogates(case.text()))
        try:
            document.add_paragraph(text)
        except ValueError:  # a character that XML does not have
            continue
        texts.append(text)
    memory = io.BytesIO()
    document.save(memory)
    found = list(read(case.write("a.docx", memory.getvalue())))
    same(found[0].text.split("\n"), [clean(text) for text in texts] or [""], "paragraph")
    refused_or_read(case.write("b.docx", case.mutated(memory.getvalue())))
    return 2


def nested_json(case: Case) -> int:
    """The text of objects in objects, at a path of keys and places."""
    keys = [case.pick(["data", "body", "0", "1", "text", "列", "a b"]) for _ in range(1 + case.below(4))]
    texts = case.some(lambda: case.text(SEPARATORS), 8, 1)
    rows = []
    for text in texts:
        value: Any = text
        for key in reversed(keys):
            value = [*[json_value(case) for _ in range(int(key))], value] if key.isdecimal() else {key: value}
        rows.append(value if isinstance(value, dict) else {"list": value})
    path = ".".join(keys if not keys[0].isdecimal() else ["list", *keys])
    text = "\n".join(json.dumps(row) for row in rows)
    found = list(read(case.write("a.jsonl", text.encode()), text=path))
    same([each.text for each in found], [clean(each) for each in texts], "text")
    wrong = f"{path}.{case.pick(['x', '7', '-1', ''])}" if case.chance(0.5) else path[: case.below(len(path))]
    refused_or_read(case.folder / "a.jsonl", text=wrong)
    return len(texts)


def archive(case: Case) -> int:
    """An archive of texts and of files that are not read, intact and damaged."""
    expected = {}
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", case.pick([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as file:
        for number in range(1 + case.below(6)):
            name = case.pick(["a", "b/c", "d/.e", "__MACOSX/f", "ü", "数据/文"]) + str(number)
            name += case.pick([".txt", ".md", ".txt", ".zip", ".csv", ".doc", ""])
            text = f"words {case.text()}"
            file.writestr(name, replace_surrogates(text).encode())
            hidden = name.startswith("__MACOSX/") or "/." in name
            if name.endswith((".txt", ".md")) and not hidden:
                expected[name] = clean(replace_surrogates(text)).replace("\r\n", "\n").replace("\r", "\n")
    data = memory.getvalue()
    found = refused_or_read(case.write("a.zip", data), errors="replace")
    if expected and not any("\0" in text for text in expected.values()):
        assert found is not None
        assert {each.id: each.text for each in found} == expected
    refused_or_read(case.write("b.zip", case.mutated(data)), errors="replace")
    return 2


def divided(case: Case) -> int:
    """The pieces of long texts: none is empty, and no character is lost but blanks."""
    for _ in range(10):
        text = "\n".join(case.some(lambda: case.text(["\n\n", "Mr. ", "5.", "！”", "。", "... "]), 12))
        split = splitter(case.pick(["paragraphs", "sentences", f"tokens:{1 + case.below(20)}"]))
        pieces = split(text)
        assert all(piece.strip() for piece in pieces), pieces
        assert "".join("".join(pieces).split()) == "".join(text.split()), f"{text!r} becomes {pieces}"
    return 10


@cache
def tokenizer(language: str, **settings: Any) -> Tokenizer:
    return make_tokenizer(language, **settings)


def any_tokenizer(case: Case) -> Tokenizer:
    """A tokenizer with some of the options of posts, base forms and n-grams."""
    settings: dict[str, Any] = {}
    for name, ways in {
        "preset": ["social"],
        "handles": ["word", "keep", "drop"],
        "hashtags": ["word", "keep", "split", "drop"],
        "links": ["drop", "keep"],
        "emoji": [True, False],
        "ngrams": ["1-2", "2", "2-3"],
        "phrases": [("rain sun", "天气 不错")],
    }.items():
        if case.chance(0.4):
            settings[name] = case.pick(ways)
    of = tokenizer(case.pick(["en", "fr", "zh", "tr"]), **settings)
    if case.chance(0.3):
        of = of.with_boilerplate([" ".join(case.random.choices(PLAIN_WORDS, k=20)).casefold()])
    return of.with_speakers(["贾政道"]) if case.chance(0.2) else of


def posts(case: Case) -> int:
    """Posts by any options: the same tokens alone, together, and after saving."""
    of = any_tokenizer(case)
    texts = [case.text([*PIECES, *POST]) for _ in range(10)]
    tokens = [of(text) for text in texts]
    again = Tokenizer.model_validate_json(of.model_dump_json())
    for text, each in zip(texts, tokens, strict=True):
        same(again(text), each, f"token of {text!r}")
        assert all(token.strip() for token in each), each
    for first in (0, 5):
        pieces = of.pieces(texts[first:])
        same(
            [token for piece in pieces for token in of.tokens_of(piece)],
            [token for each in tokens[first:] for token in each],
            "token of several texts",
        )
    return len(texts)


def ngrams(case: Case) -> int:
    """N-grams of texts, against all neighbours within the runs of the tokenizer without them."""
    language = case.pick(["en", "de", "zh"])
    least = 1 + case.below(3)
    most = least + case.below(3)
    of, plain = tokenizer(language, ngrams=(least, most)), tokenizer(language)
    for _ in range(10):
        text = case.text(PIECES, 20)
        expected: Counter[str] = Counter()
        for run in plain.runs([text]):
            words = run or []
            expected.update(
                one_token(words[start : start + n])
                for start in range(len(words))
                for n in range(least, most + 1)
                if start + n <= len(words)
            )
        if (least, most) != (1, 1):
            assert Counter(of(text)) == expected, text
    return 10


def base_forms(case: Case) -> int:
    """Base forms: those of the words that the tokenizer finds without them."""
    from simplemma import lemmatize

    language = "en"
    of, plain = tokenizer(language, lemmatise=True), tokenizer(language)
    for _ in range(10):
        text = case.text(PIECES)
        forms = [plain.fold_word(lemmatize(word, lang=language)) if word.isalpha() else word for word in plain(text)]
        expected = [form for form, word in zip(forms, plain(text), strict=True) if form == word or plain._keeps(form)]
        same(of(text), expected, f"token of {text!r}")
    return 10


def phrases(case: Case) -> int:
    """Phrases: each occurs often enough within runs, and its words attract each other."""
    runs = [case.random.choices(PLAIN_WORDS[:8], k=case.below(8)) for _ in range(60)]
    if case.chance(0.7):
        runs += [["north", "pole", *run] for run in runs[:20]]
    found = find_phrases(lambda: runs)
    for phrase in found:
        words = phrase.split()
        assert 2 <= len(words) <= 4
        n = sum(run[at : at + len(words)] == words for run in runs for at in range(len(run)))
        assert n >= 5, f"{phrase}: {n}"
    assert len(set(found)) == len(found)
    return 1


def copies(case: Case) -> int:
    """Copies, against the comparison of all pairs."""
    pool = [f"{word}{n}" for n, word in enumerate(PLAIN_WORDS[:20] * 6)]
    texts = [" ".join(case.random.choices(pool, k=case.pick([0, 3, 15, 40]))) for _ in range(25)]
    for _ in range(25):
        words = case.pick(texts).split()
        for _ in range(case.below(4)):
            if words:
                words[case.below(len(words))] = case.pick([*pool, "", "<b>", "HTTPS://x.example/y", "!!"])
        texts.append(case.pick([str.upper, str.title, str])(" ".join(words)))
    finder = Copies()
    size = 1 + case.below(20)
    for start in range(0, len(texts), size):
        finder.add(texts[start : start + size])
    words = [words_of(text) for text in texts]
    runs = [{tuple(each[at : at + 3]) for at in range(len(each) - 2)} for each in words]
    firsts: list[int] = []
    for row in range(len(texts)):
        near = [
            first
            for first in firsts
            if words[row] == words[first]
            or (
                min(len(words[row]), len(words[first])) >= 10
                and len(runs[row] & runs[first]) >= 0.8 * len(runs[row] | runs[first])
            )
        ]
        if row in finder.first_of:
            assert finder.first_of[row] in near, f"{texts[row]!r} is no copy"
        elif words[row]:
            exact = any(words[row] == words[first] for first in near)
            assert not exact, f"{texts[row]!r} is a copy"
            firsts.append(row)
    return len(texts)


def boilerplate(case: Case) -> int:
    """Boilerplate: what is found occurs often, and what is removed are its runs of words."""
    pool = [normalise(word).casefold() for word in PLAIN_WORDS if word.isalpha() and normalise(word).isascii()]
    footer = case.random.sample(pool, min(len(pool), 9 + case.below(12)))
    texts = []
    for _ in range(case.pick([5, 40, 80])):
        own = case.random.choices(pool, k=case.below(30))
        if case.chance(0.5):
            own = [*own, *footer] if case.chance(0.5) else [*footer, *own]
        texts.append(case.pick([" ", "\n", ", "]).join(own))
    words = [re.findall(r"\w+", text) for text in texts]
    grams = [{tuple(each[at : at + 8]) for at in range(len(each) - 7)} for each in words]
    found = find_boilerplate(texts)
    known = set()
    for each in found:
        parts = each.words.split(" ")
        assert len(parts) >= 8
        for at in range(len(parts) - 7):
            gram = tuple(parts[at : at + 8])
            known.add(gram)
            n_with = sum(gram in of for of in grams)
            assert n_with >= 10, f"{gram} is in {n_with} of {len(texts)} documents"
    remove = Remover(each.words for each in found)
    for text, of in zip(texts, words, strict=True):
        is_kept = [True] * len(of)
        for at in range(len(of) - 7):
            if tuple(of[at : at + 8]) in known:
                is_kept[at : at + 8] = [False] * 8
        kept = [word for word, each in zip(of, is_kept, strict=True) if each]
        same(re.findall(r"\w+", remove(text)), kept, "word")
    hostile = case.text(PIECES, 20)
    assert Counter(remove(hostile)) - Counter(hostile + " 。 " * 10) == Counter()
    return len(texts)


def corpora(case: Case) -> int:
    """Corpora by any of the options of words: the counts are those of the tokenizer for each text that is kept."""
    texts = [case.text([*POST, "贾政道：好。"], 20) for _ in range(12)]
    texts += case.random.choices(texts, k=5)
    options: dict[str, Any] = {"language": case.pick(["en", "zh"]), "min_df": 1, "max_df": 1.0}
    for name, ways in {
        "preset": ["social"],
        "ngrams": ["1-2", "2"],
        "phrases": [True],
        "drop_duplicates": [True],
        "drop_boilerplate": [True],
        "emoji": [True],
    }.items():
        if case.chance(0.4):
            options[name] = case.pick(ways)
    corpus = Corpus.from_texts(texts, **options)
    assert corpus.texts is not None
    if options.get("drop_duplicates"):
        assert int(sum(corpus.covariates["copies"])) == len(texts)
    else:
        assert len(corpus) == len(texts)
    for row, text in enumerate(corpus.texts):
        expected = Counter(corpus.tokenizer(text))
        counts = corpus.counts[[row]].toarray()[0]
        found = {word: int(n) for word, n in zip(corpus.vocabulary, counts, strict=True) if n}
        assert found == dict(expected), f"{text!r}: {found} instead of {expected}"
    return len(corpus)


def answers(case: Case) -> int:
    """Answers of a language model: a name, or a refusal in a sentence."""
    llm = LanguageModel("http://127.0.0.1:9/v1", "stub", LanguageModelAnswers())
    odd = [case.text(PIECES), json.dumps(json_value(case)), "{" * case.below(2000), "<think>{}</think>", "```json\n"]
    naming = json.dumps({"name": case.text(PIECES, 4), "sentence": case.text(PIECES, 4)})
    rating = json.dumps({"word": case.pick(["a", "B ", 3, None]), "documents": case.pick([[1], [9], [True], "1", []])})
    text = "".join(case.random.choices([*odd, naming, rating, naming, rating], k=1 + case.below(3)))
    body = json.dumps({"choices": [{"message": {"content": text}}], "usage": json_value(case)}).encode()
    if case.chance(0.3):
        body = case.mutated(body)
    llm._service.answer = lambda content: body  # type: ignore[method-assign]
    items, right = ("a", "b"), (True, False)
    word = RatingQuestion(0, "word_intrusion", 0, 0, items, right, "?")
    fit = RatingQuestion(0, "document_fit", 0, 0, (4, 5), right, "?")
    question = naming_question(["a"], [case.text(PIECES)], "English")
    for reader in (read_naming, word.read, fit.read):
        try:
            found, _ = llm.ask(question, reader)
        except InputError as error:
            assert "\n" not in str(error) and len(str(error)) < 2000, str(error)
            continue
        if reader is read_naming:
            for part in found:
                assert part.strip() and "\n" not in part
                part.encode()
        else:
            assert len(found) == 2
    return 3


TARGETS = {
    "read.eml": Target(eml, "an e-mail, compared; or a damaged one", 1),
    "read.mbox": Target(mbox, "an e-mail, compared", 1),
    "read.docx": Target(word_file, "a file, compared; or a damaged one", 1, needs=("docx",)),
    "read.json.nested": Target(nested_json, "a text, compared", 1),
    "read.zip": Target(archive, "an archive, compared; or a damaged one", 1),
    "text.pieces": Target(divided, "a text, divided", 1),
    "tokenizer.posts": Target(posts, "a text", 2, needs=("rjieba",)),
    "tokenizer.ngrams": Target(ngrams, "a text, compared", 1, needs=("rjieba",)),
    "tokenizer.lemmas": Target(base_forms, "a text, compared", 1, needs=("simplemma",)),
    "text.phrases": Target(phrases, "texts with phrases", 0.5),
    "text.duplicates": Target(copies, "a text, compared with all others", 1),
    "text.boilerplate": Target(boilerplate, "a text, compared word by word", 1),
    "corpus.options": Target(corpora, "a document, compared word by word", 1, allow_refusal=True, needs=("rjieba",)),
    "llm.answers": Target(answers, "an answer", 1),
}
