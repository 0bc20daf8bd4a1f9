"""Coherence beside gensim's CoherenceModel: are the values equal, and how many times faster are they.

    python benchmarks/metrics.py            # writes metrics.md beside itself

Equality: topics of 10 words by a fitted LDA, and odd topics, on bbc-news and emnlp2020. Speed: a made corpus of 10,000
documents of 200 words, by Zipf's law from 5,000 words; gensim on one process, its dictionary made beforehand; here from
lists of strings, with all that has to be done. Both in one process, gensim once, here the best of three.
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
UNSEEN = "a word that no document holds"
N_TOPICS, TOP_N = 50, 10
TOLERANCE, FASTER = 1e-6, 20

Tokens = list[list[str]]


def tokens_of(shared: Path, name: str) -> Tokens:
    """The documents of a corpus as lists of words."""
    folder = shared / "data" / name
    if (folder / "corpus.tsv").exists():
        return [line.split("\t")[0].split() for line in (folder / "corpus.tsv").read_text().splitlines()]
    corpus = tl.Corpus.from_file(folder / "lines.txt", min_df=1, max_df=1.0)
    return [list(corpus.tokenizer(text)) for text in corpus.texts or []]


def odd_topics(topics: Tokens) -> Tokens:
    """One-word topics, repeated words, words that no document holds, and several of these at once."""
    one, two, three = topics[:3]
    return [
        one[:1],
        one[:2],
        [one[0], one[0]],
        [*one[:4], one[0], one[1]],
        [UNSEEN, *two[:5]],
        [two[0], UNSEEN],
        [UNSEEN],
        [UNSEEN, UNSEEN, *three[:3], three[0]],
        [],
    ]


def theirs(measure: str, topics: Tokens, texts: Tokens, dictionary: Dictionary, vectors: Any) -> list[float]:
    """gensim's value of each topic; where it raises an error, NaN."""
    bags = [dictionary.doc2bow(text) for text in texts] if measure == "u_mass" else None
    settings = {"dictionary": dictionary, "coherence": measure, "processes": 1}
    settings |= {"keyed_vectors": vectors} if measure == "c_w2v" else {}
    settings |= {"corpus": bags} if bags else {"texts": texts}
    try:
        return list(CoherenceModel(topics=topics, **settings).get_coherence_per_topic())
    except (ValueError, IndexError):  # a topic of no known words
        if len(topics) == 1:
            return [float("nan")]
        return [theirs(measure, [topic], texts, dictionary, vectors)[0] for topic in topics]


def equality(shared: Path, name: str) -> list[str]:
    """A row for each measure."""
    texts = tokens_of(shared, name)
    corpus = tl.Corpus.from_texts(texts)
    topics = tl.LDA(N_TOPICS, random_state=0).fit(corpus).topics(TOP_N)
    odd = odd_topics(topics)
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
        expected = np.array(theirs(measure, topics, texts, dictionary, vectors))
        here = value(topics)
        apart = float(np.abs(here.per_topic - expected).max())
        apart_mean = abs(float(here) - float(np.mean(expected)))
        strange, given = value(odd), np.array(theirs(measure, odd, texts, dictionary, vectors))
        finite = np.isfinite(given)
        apart_odd = float(np.abs(strange.per_topic - given)[finite].max())
        if not np.isfinite(strange.per_topic).all():
            raise SystemExit(f"{measure} on {name} has a value that is not finite")
        rows.append(
            f"| {name} | {measure} | {float(here):.4f} | {apart:.1e} | {apart_mean:.1e} | {apart_odd:.1e} | "
            f"{int(finite.sum())} of {len(odd)} |"
        )
        print(rows[-1], flush=True)
        if max(apart, apart_mean, apart_odd) > TOLERANCE:
            raise SystemExit(f"{measure} on {name} is not gensim's")
    return rows


def counted_exactly(shared: Path, name: str) -> str:
    """What gensim's way of counting words that come again in a window is worth."""
    texts = tokens_of(shared, name)
    topics = tl.LDA(N_TOPICS, random_state=0).fit(tl.Corpus.from_texts(texts)).topics(TOP_N)
    reference = metrics.Reference.from_tokens(texts)
    cells = []
    for measure in WINDOWED.values():
        as_gensim, exact = measure(topics, reference), measure(topics, reference, counting="exact")
        most = np.abs(as_gensim.per_topic - exact.per_topic).max()
        cells.append(f"{float(as_gensim):.4f} | {float(exact):.4f} | {most:.4f}")
    return f"| {name} | {' | '.join(cells)} |"


def timed(work: Callable[[], Any], times: int = 1) -> float:
    """The least seconds."""
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def speed(pool: int, title: str) -> list[str]:
    """Rows for topics of words drawn from the `pool` most frequent."""
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
        # Documents are counted beforehand for both: gensim wants bags of words, this package sparse counts.
        by_documents = measure == "u_mass"
        source = {"corpus": bags} if by_documents else {"texts": texts}
        peer = CoherenceModel(topics=topics, dictionary=dictionary, coherence=measure, processes=1, **source)
        theirs: list[float] = []
        peers = timed(lambda m=peer, t=theirs: t.extend(m.get_coherence_per_topic()))
        function = getattr(metrics, measure)

        def make(by_documents: bool = by_documents) -> metrics.Reference:
            made = metrics.Reference
            return made.from_counts(sparse_counts, words) if by_documents else made.from_tokens(texts)

        ours = timed(lambda f=function, make=make: f(topics, make()), 3)
        reference = make()
        first = timed(lambda f=function, r=reference: f(topics, r))
        again = timed(lambda f=function, r=reference: f(topics, r), 3)
        apart = float(np.abs(function(topics, reference).per_topic - theirs).max())
        rows.append(
            f"| {title} | {measure} | {peers:.2f} | {ours:.3f} | {first:.3f} | {again:.4f} | {apart:.1e} | "
            f"**{peers / ours:.0f}** |"
        )
        print(rows[-1], flush=True)
        if apart > TOLERANCE:
            raise SystemExit(f"{measure} of the made corpus is not gensim's")
        if measure in ("c_v", "c_npmi") and peers / ours < FASTER:
            raise SystemExit(f"{measure} is not {FASTER} times as fast as gensim")
    return rows


def main() -> None:
    warnings.filterwarnings("ignore")  # gensim divides by zero on odd topics
    arguments = parser(__doc__).parse_args()
    names = [name for name in CORPORA if (arguments.shared / "data" / name).exists()]
    if missing := set(CORPORA) - set(names):
        print(f"no corpus {', '.join(sorted(missing))} in {arguments.shared / 'data'}: left out", file=sys.stderr)
    equal = [row for name in names for row in equality(arguments.shared, name)]
    exact = [counted_exactly(arguments.shared, name) for name in names]
    fast = [*speed(5000, "any of 5,000"), *speed(500, "the 500 most frequent")]
    PAGE.write_text(
        f"""# Coherence beside gensim's

Written by `make bench-metrics` (`benchmarks/metrics.py`). It stops with an error where a value is more than
{TOLERANCE:g} from gensim's, or where c_v or c_npmi are not {FASTER} times as fast.

## The same values

{N_TOPICS} topics of {TOP_N} words by LDA, with gensim's default windows: the greatest difference of a topic, that
of the mean, and the greatest of those odd topics for which gensim has a finite value (one-word topics, repeated
words, words that no document holds, an empty topic). For the other odd topics gensim raises an error or gives NaN,
and the package 0, reported and left out of the mean. c_w2v is by random vectors; gensim works in single precision
there.

| corpus | measure | mean | topics apart | means apart | odd topics apart | odd topics with a value in gensim |
|---|---|---|---|---|---|---|
{chr(10).join(equal)}

## Words that come again in a window

gensim 4 takes a word out of the window with the first of its occurrences, though another is still there
([docs/coherence.md](../docs/coherence.md)). The means by gensim's counting and by exact counting, and the
greatest difference of a topic:

| corpus | c_v | exact | apart | c_npmi | exact | apart | c_uci | exact | apart |
|---|---|---|---|---|---|---|---|---|---|
{chr(10).join(exact)}

## Seconds

10,000 documents of 200 words, {N_TOPICS} topics of {TOP_N} words. "In all": from lists of strings to the result
(u_mass: from sparse counts, and gensim from bags of words); "reference": with a `Reference` made before; "again":
the same words once more. The ratio is gensim's time to "in all". Each on one core, with other work on the machine.

| topics' words | measure | gensim | in all | reference | again | topics apart | ratio |
|---|---|---|---|---|---|---|---|
{chr(10).join(fast)}
"""
    )


if __name__ == "__main__":
    main()
