"""Judge whether the documents that a topic shows first are typical of it, and write typical.md.

    python benchmarks/typical.py --sheets FOLDER   # trains, and writes FOLDER/CORPUS.md for the reader
    python benchmarks/typical.py                   # scores the verdicts, and writes typical.md

A sheet has the ten words of a topic and eight texts, and does not say which of them are planted. The reader answers in
results/typical.jsonl before looking at the key, results/typical_key.jsonl. Both have row numbers instead of texts.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binomtest

import jobs
import shared
import topicloom as tl

PAGE = Path(__file__).with_suffix(".md")
VERDICTS = shared.RESULTS / "typical.jsonl"
KEY = shared.RESULTS / "typical_key.jsonl"
CORPORA = {  # the file, the language, and what the texts are
    "so-titles": ("titles.csv", "en", "20,000 titles of questions about programming"),
    "thuc-titles": ("titles.csv", "zh", "10,000 titles of Chinese news"),
    "ag-news": ("articles.csv", "en", "7,600 short news articles"),
    "emnlp2020": ("lines.txt", "en", "1,965 abstracts of papers"),
}
K, SEED, N_TOPICS, N_SHOWN, N_PLANTED, N_WORDS = 20, 0, 8, 5, 3, 10
N_FIRST = 20  # diverse documents at the head of a topic's list in the page
COPY = 0.8  # two texts repeat each other if they share this part of the words of the shorter one
Judged = tuple[str, int, str, str, bool]  # corpus, topic, row, kind, and whether it is judged typical
KINDS = {"shown": "shown first", "random": "planted, without the words", "word": "planted, with one of the words"}
HEAD = """# Are the first documents of a topic typical?

The explorer shows diverse documents of a topic first. `python benchmarks/typical.py --sheets FOLDER` trains Loom with
its defaults (K=20, seed 0, without vectors) on four corpora of raw texts. Of the 20 topics, ordered by size, it takes
those with the ranks {ranks}.

A sheet has the ten words of a topic and eight texts in random order: the first five that the page shows, and three
planted ones, in which the share of the topic is below 1/40. One planted text contains at least one of the ten words, if
there is such a text; the others contain none. Apart from this they are drawn at random from the texts that have as many
different words as one of the five, or a number in between.

**The reader** answered one question for each text: would a person who knows only these words say that this text is
typical of the topic? There was one reader, a language model that saw only words and texts. It judged each text by
reading it, once, before the key was opened. It knew that three of eight texts are planted. No person has judged these
texts so far, so it is not known how far readers agree. The verdicts are in
[results/typical.jsonl](results/typical.jsonl). Its field `doubtful`, from the notes of the reader, was added after the
verdicts were counted. The key is in [results/typical_key.jsonl](results/typical_key.jsonl).
`python benchmarks/typical.py` scores the verdicts and writes this page.

"""


def main() -> None:
    parser = shared.parser(__doc__)
    parser.add_argument("--sheets", type=Path, metavar="FOLDER", help="train, and write sheets and the key")
    options = parser.parse_args()
    if options.sheets is None:
        PAGE.write_text(page(), encoding="utf-8")
        return
    options.sheets.mkdir(parents=True, exist_ok=True)
    key = []
    for name in CORPORA:
        sheets, rows = sheets_of(name, options.shared / "data" / name)
        (options.sheets / f"{name}.md").write_text(sheets, encoding="utf-8")
        key += rows
    KEY.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in key), encoding="utf-8")


def texts_of(file: Path) -> list[str]:
    if file.suffix == ".csv":
        with file.open(encoding="utf-8", newline="") as lines:
            return [row["text"] for row in csv.DictReader(lines)]
    return [line for line in file.read_text(encoding="utf-8").split("\n") if line.strip()]


def sheets_of(name: str, folder: Path) -> tuple[str, list[dict[str, Any]]]:
    """Return the sheets of a corpus, and their key: a row for each topic."""
    file, language, _ = CORPORA[name]
    texts = texts_of(folder / file)
    corpus = tl.Corpus.from_texts(texts, language=language)
    topics = tl.Topics(tl.Loom(K, random_state=SEED).fit(corpus), corpus)
    by_size = np.argsort(-topics.shares, kind="stable")
    parts, key = [], []
    for topic in by_size[ranks()].tolist():
        words = [word for word, _ in topics.words_of(topic, N_WORDS)]
        shown = list(topics.documents_of(topic, N_SHOWN, "diverse")["document"])
        first = np.argsort(-topics.typical.order(topic, n_first=N_FIRST), kind="stable")[:N_SHOWN]  # as in the page
        assert first.tolist() == shown
        kinds = dict.fromkeys(shown, "shown") | planted(topics, topic, shown)
        order = np.random.default_rng([SEED, topic, 1]).permutation(list(kinds)).tolist()
        lines = [f"- {row}: {' '.join(texts[row].split())}" for row in order]
        parts.append("\n".join([f"## {name}, topic {topic}: {', '.join(words)}", "", *lines, ""]))
        key.append({
            "corpus": name,
            "topic": topic,
            "words": words,
            "kinds": {str(row): kinds[row] for row in order},
            "repetitions": repetitions([texts[row] for row in shown]),
        })  # fmt: skip
    return "\n".join(parts), key


def ranks() -> list[int]:
    """Return the places of the topics that are judged, from the largest to the smallest."""
    return np.linspace(0, K - 1, N_TOPICS).round().astype(int).tolist()  # type: ignore[no-any-return]


def planted(topics: tl.Topics, topic: int, shown: list[int]) -> dict[int, str]:
    """Draw documents with little of a topic that are as long as those that are shown; return the kind of each."""
    counts, found = topics.corpus.counts, topics.documents
    lengths = np.diff(counts.indptr)  # distinct words
    is_far = (found.theta[:, topic] < 0.5 / K) & ~found.empty
    is_far &= (lengths >= lengths[shown].min()) & (lengths <= lengths[shown].max())
    words = {word for word, _ in topics.words_of(topic, N_WORDS)}
    columns = [column for column, word in enumerate(topics.written_words) if word in words]
    has_word = np.asarray(counts[:, columns].sum(axis=1)).ravel() > 0
    random = np.random.default_rng([SEED, topic])
    with_word = random.permutation(np.flatnonzero(is_far & has_word))[:1].tolist()
    others = random.permutation(np.flatnonzero(is_far & ~has_word))[: N_PLANTED - len(with_word)].tolist()
    return dict.fromkeys(with_word, "word") | dict.fromkeys(others, "random")


def repetitions(texts: list[str]) -> int:
    """Return how many texts nearly repeat an earlier one. Each Chinese character counts as a word."""
    sets = [set(re.findall(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+", text.lower())) for text in texts]
    pairs = combinations(range(len(sets)), 2)
    return len({j for i, j in pairs if len(sets[i] & sets[j]) >= COPY * min(len(sets[i]), len(sets[j]))})


def read(file: Path) -> dict[tuple[str, int], dict[str, Any]]:
    rows = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return {(row["corpus"], row["topic"]): row for row in rows}


def judged() -> Iterator[Judged]:
    """Give the corpus, topic, document, kind and verdict of each text."""
    key, verdicts = read(KEY), read(VERDICTS)
    if key.keys() != verdicts.keys():
        raise SystemExit(f"{VERDICTS.name} and {KEY.name} have different topics")
    for (corpus, topic), row in key.items():
        answers = verdicts[corpus, topic]["typical"]
        if answers.keys() != row["kinds"].keys():
            raise SystemExit(f"{VERDICTS.name}: topic {topic} of {corpus} has other documents than its sheet")
        for document, kind in row["kinds"].items():
            yield corpus, topic, document, kind, {"yes": True, "no": False}[answers[document]]


def page() -> str:
    texts, repeated = list(judged()), read(KEY)
    body = []
    for corpus in [*CORPORA, "all"]:
        here = [each for each in texts if corpus in (each[0], "all")]
        row = [corpus, CORPORA[corpus][2] if corpus in CORPORA else ""]
        for kind in KINDS:
            verdicts = [typical for *_, found, typical in here if found == kind]
            row.append(f"{sum(verdicts)} of {len(verdicts)}")
        copies = sum(each["repetitions"] for each in repeated.values() if corpus in (each["corpus"], "all"))
        body.append([*row, str(copies)])
    header = ["corpus", "texts", *KINDS.values(), "repetitions"]
    table = jobs.markdown(header, body)
    return HEAD.format(ranks=listed(ranks())) + summary(texts) + table + "\n" + exceptions(texts)


def summary(texts: list[Judged]) -> str:
    """Return the result in sentences."""
    verdicts = read(VERDICTS)
    shown = [each for each in texts if each[3] == "shown"]
    n_typical = sum(typical for *_, typical in shown)
    n_doubtful = sum(row in verdicts[corpus, topic].get("doubtful", []) for corpus, topic, row, *_ in shown)
    low, high = binomtest(n_typical, len(shown)).proportion_ci(method="wilson")
    of_topics = [sum(each[4] for each in shown if each[:2] == topic) for topic in verdicts]
    return f"""Of the documents that are shown first, {n_typical} of {len(shown)} are judged typical:
{n_typical / len(shown):.1%} (95 % interval {low:.1%} to {high:.1%}, as if texts were independent).
The reader was in doubt about {n_doubtful} of these; without them it is {n_typical - n_doubtful} of {len(shown)}.
All {N_SHOWN} are judged typical in {of_topics.count(N_SHOWN)} of {len(of_topics)} topics, and {min(of_topics)} in the \
worst.

The table counts the texts that are judged typical. A planted one among them is a false alarm, or a text of the topic
that the model has missed. A repetition is a text of the five that has 8 of 10 words in common with an earlier one, or
more; each word counts once, and the shorter text is the measure.

""".replace("%", " %").replace("  %", " %")


def listed(places: list[int]) -> str:
    names = [str(place + 1) for place in places]
    return f"{', '.join(names[:-1])} and {names[-1]}"


def exceptions(texts: list[Judged]) -> str:
    """Return the verdicts that differ from the key, with the words of the topic."""
    key = read(KEY)
    body = [
        [corpus, " ".join(key[corpus, topic]["words"]), document, KINDS[kind], "yes" if typical else "no"]
        for corpus, topic, document, kind, typical in texts
        if typical != (kind == "shown")
    ]
    if not body:
        return "No verdict differs from the key.\n"
    return "Verdicts that differ from the key:\n\n" + jobs.markdown(
        ["corpus", "words of the topic", "row of the text", "what it is", "typical"], body
    )


if __name__ == "__main__":
    main()
