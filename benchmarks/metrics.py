"""Compare coherence with gensim's CoherenceModel: whether the values are equal, and how much faster they are computed.

    python benchmarks/metrics.py            # writes metrics.md to its folder

Equality is checked for topics of 10 words of a fitted LDA, and for unusual topics, on bbc-news and emnlp2020. Speed is
measured on a synthetic corpus of 10,000 documents of 200 words, drawn from 5,000 words by Zipf's law. Both packages use
one process. gensim runs once, with a dictionary that is made beforehand. This package runs three times, starting from
lists of strings, and the shortest time counts.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from gensim.corpora import Dictionary
from gensim.models import KeyedVectors
from gensim.models.coherencemodel import CoherenceModel

import topicloom as tl
from shared import parser
from topicloom import metrics

PAGE = Path(__file__).with_suffix(".md")
CORPORA = ("bbc-news", "emnlp2020")
WINDOWED: dict[str, Callable[..., metrics.Measured]] = {
    "c_v": metrics.c_v,
    "c_npmi": metrics.c_npmi,
    "c_uci": metrics.c_uci,
}
UNKNOWN = "a word that no document contains"
N_TOPICS, TOP_N = 50, 10
TOLERANCE, MIN_SPEEDUP = 1e-6, 20

Tokens = list[list[str]]


def tokens_of(shared: Path, name: str) -> Tokens:
    """Return the documents of a corpus as lists of words."""
    folder = shared / "data" / name
    if (folder / "corpus.tsv").exists():
        return [line.split("\t")[0].split() for line in (folder / "corpus.tsv").read_text().splitlines()]
    corpus = tl.Corpus.from_file(folder / "lines.txt", min_df=1, max_df=1.0)
    return [list(corpus.tokenizer(text)) for text in corpus.texts or []]


def unusual_topics(topics: Tokens) -> Tokens:
    """Make topics of one word, with repeated words, with words that no document contains, or with several of these."""
    one, two, three = topics[:3]
    return [
        one[:1],
        one[:2],
        [one[0], one[0]],
        [*one[:4], one[0], one[1]],
        [UNKNOWN, *two[:5]],
        [two[0], UNKNOWN],
        [UNKNOWN],
        [UNKNOWN, UNKNOWN, *three[:3], three[0]],
        [],
    ]


def gensim_values(measure: str, topics: Tokens, texts: Tokens, dictionary: Dictionary, vectors: Any) -> list[float]:
    """Return gensim's value of each topic, and NaN for a topic that raises an error."""
    bags = [dictionary.doc2bow(text) for text in texts] if measure == "u_mass" else None
    settings = {"dictionary": dictionary, "coherence": measure, "processes": 1}
    settings |= {"keyed_vectors": vectors} if measure == "c_w2v" else {}
    settings |= {"corpus": bags} if bags else {"texts": texts}
    try:
        return list(CoherenceModel(topics=topics, **settings).get_coherence_per_topic())
    except (ValueError, IndexError):  # a topic without known words
        if len(topics) == 1:
            return [float("nan")]
        return [gensim_values(measure, [topic], texts, dictionary, vectors)[0] for topic in topics]


def equality(shared: Path, name: str) -> list[str]:
    """Compare values on a corpus, and return a row for each measure.

    Raises:
        SystemExit: a value is not equal to gensim's, or not finite.
    """
    texts = tokens_of(shared, name)
    corpus = tl.Corpus.from_texts(texts)
    topics = tl.LDA(N_TOPICS, random_state=0).fit(corpus).topics(TOP_N)
    unusual = unusual_topics(topics)
    dictionary, reference = Dictionary(texts), metrics.Reference.from_tokens(texts, name)
    vectors = KeyedVectors(20)
    known = sorted(dictionary.token2id)
    vectors.add_vectors(known, np.random.default_rng(0).normal(size=(len(known), 20)).astype(np.float32))
    ours: dict[str, Callable[[Tokens], metrics.Measured]] = {
        **{measure: lambda topics, f=f: f(topics, reference) for measure, f in WINDOWED.items()},
        "u_mass": lambda topics: metrics.u_mass(topics, reference),
        "c_w2v": lambda topics: metrics.c_w2v(topics, vectors),
    }
    rows = []
    for measure, value in ours.items():
        expected = np.array(gensim_values(measure, topics, texts, dictionary, vectors))
        found = value(topics)
        difference = float(np.abs(found.per_topic - expected).max())
        difference_of_means = abs(float(found) - float(np.mean(expected)))
        found_unusual = value(unusual)
        expected_unusual = np.array(gensim_values(measure, unusual, texts, dictionary, vectors))
        finite = np.isfinite(expected_unusual)
        difference_unusual = float(np.abs(found_unusual.per_topic - expected_unusual)[finite].max())
        if not np.isfinite(found_unusual.per_topic).all():
            raise SystemExit(f"{measure} on {name} has a value that is not finite")
        differences = (difference, difference_of_means, difference_unusual)
        shown = " | ".join(f"{value:.1e}" for value in differences)
        rows.append(f"| {name} | {measure} | {float(found):.4f} | {shown} | {int(finite.sum())} of {len(unusual)} |")
        print(rows[-1], flush=True)
        if max(differences) > TOLERANCE:
            raise SystemExit(f"{measure} on {name} differs from gensim's value")
    return rows


def exact_counting(shared: Path, name: str) -> str:
    """Compare gensim's counting of words that occur more than once in a window with exact counting."""
    texts = tokens_of(shared, name)
    topics = tl.LDA(N_TOPICS, random_state=0).fit(tl.Corpus.from_texts(texts)).topics(TOP_N)
    reference = metrics.Reference.from_tokens(texts)
    columns = []
    for measure in WINDOWED.values():
        as_gensim, exact = measure(topics, reference), measure(topics, reference, counting="exact")
        difference = np.abs(as_gensim.per_topic - exact.per_topic).max()
        columns.append(f"{float(as_gensim):.4f} | {float(exact):.4f} | {difference:.4f}")
    return f"| {name} | {' | '.join(columns)} |"


def shortest_time(work: Callable[[], Any], times: int = 1) -> float:
    """Return the shortest time of several runs, in seconds."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def speed(pool: int, title: str) -> list[str]:
    """Compare times, and return rows for topics whose words are drawn from the `pool` most frequent ones."""
    random = np.random.default_rng(0)
    share = 1 / np.arange(1, 5001)
    words = [f"word{i}" for i in range(5000)]
    drawn = random.choice(5000, (10_000, 200), p=share / share.sum())
    texts = [[words[i] for i in row] for row in drawn.tolist()]
    chosen = random.permutation(pool)[: N_TOPICS * TOP_N].reshape(N_TOPICS, TOP_N)
    topics = [[words[i] for i in row] for row in chosen.tolist()]
    dictionary = Dictionary(texts)
    bags = [dictionary.doc2bow(text) for text in texts]
    counts = np.zeros((len(texts), 5000), np.float32)
    np.add.at(counts, (np.arange(len(texts))[:, None], drawn), 1)
    sparse_counts = sp.csr_array(counts)
    rows = []
    for measure in ("c_v", "c_npmi", "c_uci", "u_mass"):
        # For u_mass, both start from counts: gensim from bags of words, and this package from sparse counts.
        from_counts = measure == "u_mass"
        source = {"corpus": bags} if from_counts else {"texts": texts}
        peer = CoherenceModel(topics=topics, dictionary=dictionary, coherence=measure, processes=1, **source)
        peer_values: list[float] = []
        peer_seconds = shortest_time(lambda m=peer, t=peer_values: t.extend(m.get_coherence_per_topic()))
        function = getattr(metrics, measure)

        def make(from_counts: bool = from_counts) -> metrics.Reference:
            kind = metrics.Reference
            return kind.from_counts(sparse_counts, words) if from_counts else kind.from_tokens(texts)

        total = shortest_time(lambda f=function, make=make: f(topics, make()), 3)
        reference = make()
        first = shortest_time(lambda f=function, r=reference: f(topics, r))
        repeated = shortest_time(lambda f=function, r=reference: f(topics, r), 3)
        difference = float(np.abs(function(topics, reference).per_topic - peer_values).max())
        rows.append(
            f"| {title} | {measure} | {peer_seconds:.2f} | {total:.3f} | {first:.3f} | {repeated:.4f} | "
            f"{difference:.1e} | **{peer_seconds / total:.0f}** |"
        )
        print(rows[-1], flush=True)
        if difference > TOLERANCE:
            raise SystemExit(f"{measure} of the synthetic corpus differs from gensim's value")
        if measure in ("c_v", "c_npmi") and peer_seconds / total < MIN_SPEEDUP:
            raise SystemExit(f"{measure} is not {MIN_SPEEDUP} times as fast as gensim")
    return rows


def main() -> None:
    warnings.filterwarnings("ignore")  # gensim divides by zero on unusual topics
    arguments = parser(__doc__).parse_args()
    names = [name for name in CORPORA if (arguments.shared / "data" / name).exists()]
    if missing := set(CORPORA) - set(names):
        print(f"left out, not found in {arguments.shared / 'data'}: {', '.join(sorted(missing))}", file=sys.stderr)
    equal = [row for name in names for row in equality(arguments.shared, name)]
    exact = [exact_counting(arguments.shared, name) for name in names]
    fast = [*speed(5000, "any of 5,000"), *speed(500, "the 500 most frequent")]
    PAGE.write_text(
        f"""# Coherence compared with gensim

`make bench-metrics` (`benchmarks/metrics.py`) writes this page. The script stops with an error if a value differs by
more than {TOLERANCE:g} from gensim's, or if c_v or c_npmi are not {MIN_SPEEDUP} times as fast.

## Equal values

The table compares the coherence of {N_TOPICS} topics of {TOP_N} words from LDA, with gensim's default windows. After
the mean it has three differences from gensim (Δ): the largest of a topic, that of the mean, and the largest of an
unusual topic. Unusual topics have one word, repeated words, words that no document contains, or no words. The
last column counts those for which gensim has a finite value. For the others gensim raises an error or returns NaN; the
package returns 0, reports the topic, and leaves it out of the mean. c_w2v uses random vectors, with which gensim
computes in single precision.

| corpus | measure | mean | Δ topic | Δ mean | Δ unusual topic | unusual topics with a value in gensim |
|---|---|---|---|---|---|---|
{chr(10).join(equal)}

## Words that occur more than once in a window

gensim 4 removes a word from the window with its first occurrence, even if the window contains another one
([docs/coherence.md](../docs/coherence.md)). The table has the means with gensim's counting and with exact counting, and
the largest difference of a topic (Δ).

| corpus | c_v | exact | Δ topic | c_npmi | exact | Δ topic | c_uci | exact | Δ topic |
|---|---|---|---|---|---|---|---|---|---|
{chr(10).join(exact)}

## Seconds

The corpus has 10,000 documents of 200 words, and {N_TOPICS} topics have {TOP_N} words each. All times are from one core
of a machine that also did other work.

- gensim: gensim's time.
- total: from lists of strings to the result. For u_mass, it starts from sparse counts, and gensim's time from bags of
  words.
- with reference: with a `Reference` that was made before.
- repeated: the same words again.
- Δ topic: the largest difference of a topic.
- ratio: gensim's time divided by the total.

| words of the topics | measure | gensim | total | with reference | repeated | Δ topic | ratio |
|---|---|---|---|---|---|---|---|
{chr(10).join(fast)}
"""
    )


if __name__ == "__main__":
    main()
