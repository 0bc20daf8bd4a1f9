"""Measure how fast texts become counts: corpus building, counting over a fixed vocabulary, and one short text.

    python benchmarks/text_speed.py [--debian FOLDER] [--megabytes 8] [--rounds 3]

English texts are the documentation of Linux (`long`, and `articles` of about 2,000 characters) and definitions of
WordNet (`titles`) if Debian packages were unpacked for unseen.py, or else docstrings of installed packages. Chinese
texts are the titles of cnews10k and manual pages. Texts are repeated or cut to the given size.
All programs run alternately. The page
text_speed.md is written.
"""

from __future__ import annotations

import logging
import os
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

import jobs
import shared
import topicloom as tl
import unseen
from topicloom.text.counting import counts_of

PAGE = Path(__file__).with_suffix(".md")
HEAD = """# The speed of text

`make bench-text` writes this page. Texts in memory become a corpus (`Corpus.from_texts`, with one process and with
two), or counts over the 5,000 most frequent words, as `transform` needs them, all at once or one text after another.
CountVectorizer is that of scikit-learn, with the same `min_df` and `max_df`, English stop words and lower case; it
removes no addresses and does not normalise characters. The Chinese pipeline is `jieba.lcut` in CountVectorizer, which
gets a tenth of the texts; its times are multiplied. gensim is `simple_preprocess` with `Dictionary.doc2bow`, tomotopy
its `SimpleTokenizer` in a `Corpus`. Texts are repeated to the size given, so that few words are new.

All programs ran alternately, {rounds} times, on {cores} cores, with a load average of {load:.1f}, to which other
programs contributed. Seconds are medians; "processor" is the processor time of the measuring process, without its
workers, and the more reliable figure on a busy machine. The ratio is the time of a program divided by that of topicloom
with one process: of seconds for two processes, of processor seconds for the others. M is 10^6 characters.

"""


def articles(texts: list[str], length: int = 1800) -> Iterator[str]:
    """Yield consecutive paragraphs of about the length of a news article."""
    for text in texts:
        article = ""
        for paragraph in text.split("\n\n"):
            article += f"{paragraph}\n\n"
            if len(article) > length:
                yield article[: 2 * length]
                article = ""


def corpora(folder: Path, data: Path, characters: int) -> dict[str, list[str]]:
    """Return the texts of each corpus, repeated up to a number of characters."""
    found = {name: [text for text, _ in rows] for name, rows in unseen.of_debian(folder).items() if rows}
    if "kernel" not in found:
        found |= {name: [text for text, _ in rows] for name, rows in unseen.of_packages().items()}
    long = found.get("kernel") or found["modules"]
    chosen = {
        "articles": list(articles(long)),
        "titles": found.get("glosses") or found["doctitles"],
        "long": long,
        "zh titles": (data / "cnews10k" / "lines.txt").read_text(encoding="utf-8").splitlines(),
        "zh manuals": found.get("manzh", []),
    }
    return {name: repeated(texts, characters) for name, texts in chosen.items() if texts}


def repeated(texts: list[str], characters: int) -> list[str]:
    """Return a random order of the texts, repeated or cut to so many characters."""
    order = np.random.default_rng(0).permutation(len(texts))
    chosen: list[str] = []
    while characters > 0:
        for place in order:
            chosen.append(texts[place])
            characters -= len(texts[place])
            if characters <= 0:
                break
    return chosen


def gensim_counts(texts: list[str]) -> Any:
    from gensim.corpora import Dictionary
    from gensim.utils import simple_preprocess

    dictionary = Dictionary()
    counts = [dictionary.doc2bow(simple_preprocess(text), allow_update=True) for text in texts]
    dictionary.filter_extremes(5, 0.5, None)
    return counts


def tomotopy_counts(texts: list[str]) -> Any:
    import tomotopy

    corpus = tomotopy.utils.Corpus(tokenizer=tomotopy.utils.SimpleTokenizer(), stopwords=tl.text.stop_words("en"))
    corpus.process(texts)
    return corpus


def measured(programs: dict[str, Callable[[], Any]], rounds: int) -> dict[str, tuple[float, float]]:
    """Run programs alternately, and return the median seconds and processor seconds of each."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, program in programs.items():
            start, processor = time.perf_counter(), time.process_time()
            program()
            times[name].append((time.perf_counter() - start, time.process_time() - processor))
    return {name: tuple(map(statistics.median, zip(*found, strict=True))) for name, found in times.items()}  # type: ignore[misc]


def rows(name: str, texts: list[str], rounds: int) -> Iterator[list[str]]:
    """Measure one corpus, and yield the rows of the table."""
    chinese = name.startswith("zh")
    language = "zh" if chinese else "en"
    corpus = tl.Corpus.from_texts(texts, language=language, n_jobs=1, max_features=5000)
    words, tokenizer = corpus.vocabulary, corpus.tokenizer
    options: dict[str, Any] = {"stop_words": "english"}
    sample = texts
    if chinese:
        import jieba

        jieba.setLogLevel(logging.ERROR)
        jieba.initialize()
        options = {"tokenizer": jieba.lcut, "token_pattern": None}
        sample = texts[: len(texts) // 10]  # a tenth, because it is slow
    tl.Corpus.from_texts(texts[:200], language=language, n_jobs=2, min_df=1)  # starts the workers
    builders: dict[str, Callable[[], Any]] = {
        "topicloom": lambda: tl.Corpus.from_texts(texts, language=language, n_jobs=1),
        "topicloom, 2 processes": lambda: tl.Corpus.from_texts(texts, language=language, n_jobs=2),
        "CountVectorizer": lambda: CountVectorizer(min_df=5, max_df=0.5, **options).fit_transform(sample),
    }
    if not chinese:
        builders |= {"gensim": lambda: gensim_counts(texts), "tomotopy": lambda: tomotopy_counts(texts)}
    known = CountVectorizer(vocabulary=words, **(options if chinese else {}))
    fixed: dict[str, Callable[[], Any]] = {
        "topicloom": lambda: counts_of(texts, words, tokenizer, 1),
        "CountVectorizer": lambda: known.transform(sample),
    }
    some = texts[:1000]
    alone: dict[str, Callable[[], Any]] = {
        "topicloom": lambda: [counts_of([text], words, tokenizer, 1) for text in some],
        "CountVectorizer": lambda: [known.transform([text]) for text in some[: 100 if chinese else 1000]],
    }
    for task, programs in (("build", builders), ("count", fixed), ("count one by one", alone)):
        seconds = measured(programs, rounds)
        for program, (wall, processor) in seconds.items():
            whole = some if task == "count one by one" else texts
            done = whole[: len(whole) // 10] if chinese and program == "CountVectorizer" else whole
            scale = sum(map(len, whole)) / sum(map(len, done))
            wall, processor = wall * scale, processor * scale
            base = seconds["topicloom"][0 if "2 processes" in program else 1]
            yield [
                name, task, program, f"{len(whole):,}", f"{sum(map(len, whole)) / 1e6:.2f}", f"{wall:.2f}",
                f"{processor:.2f}", f"{len(whole) / wall:,.0f}",
                "" if "2 processes" in program else f"{len(whole) / processor:,.0f}",
                "" if "2 processes" in program else f"{sum(map(len, whole)) / processor / 1e6:.1f}",
                f"{(wall if '2 processes' in program else processor) / base:.2f}",
            ]  # fmt: skip


def main() -> None:
    arguments = shared.parser(__doc__)
    arguments.add_argument("--debian", type=Path, default=unseen.DEBIAN, help="folder of unpacked Debian packages")
    arguments.add_argument("--megabytes", type=float, default=8, help="millions of characters of each corpus")
    arguments.add_argument("--rounds", type=int, default=3, help="how often each program runs")
    options = arguments.parse_args()
    logging.getLogger("topicloom").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    table: list[list[str]] = []
    for name, texts in corpora(options.debian, options.shared / "data", int(options.megabytes * 1e6)).items():
        for row in rows(name, texts, options.rounds):
            print(*row, flush=True)
            table.append(row)
    columns = ["texts", "task", "program", "documents", "M", "s", "processor, s", "documents/s"]
    columns += ["documents per processor s", "M per processor s", "ratio"]
    head = HEAD.format(rounds=options.rounds, cores=os.cpu_count(), load=os.getloadavg()[0])
    PAGE.write_text(head + jobs.markdown(columns, table) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
