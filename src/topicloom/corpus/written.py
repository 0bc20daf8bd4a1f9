"""How the words of a vocabulary are written in texts: Haus for haus, straße for strasse."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from ..text.strings import normalise

# Characters that may be in a word: anything but white space and ASCII signs, apart from the hyphen and the apostrophe.
_RUN = re.compile(r"[^\s!-&(-,./:-@\[-`{-~«»“”„…]+")
_EDGES = "'-_"
_INNER = re.compile("['-]")
_AT_ONCE = 1000  # texts
_MOST = 1 << 20  # different runs that are remembered


def cased_forms(texts: Iterable[str], vocabulary: Sequence[str], fold: Callable[[str], str]) -> dict[str, str]:
    """Return the commonest written form of each word, where it is not the word itself.

    Args:
        texts: texts that are written with spaces.
        vocabulary: folded words.
        fold: folds a normalised word.
    """
    counts: Counter[str] = Counter()
    for batch in _batches(texts):
        counts.update(run.strip(_EDGES) for run in _RUN.findall(batch))
        if len(counts) > _MOST:
            counts = Counter(dict(counts.most_common(_MOST // 2)))
    return _commonest(counts, vocabulary, fold)


def _commonest(counts: Counter[str], vocabulary: Sequence[str], fold: Callable[[str], str]) -> dict[str, str]:
    known = set(vocabulary)
    forms: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for run, n in counts.items():
        for form in [run] if fold(run) in known else _INNER.split(run):  # l'Homme has the word homme in French
            if form and (word := fold(form)) in known:
                forms[word][form] += n
    best = {}
    for word in vocabulary:
        if found := forms.get(word):
            _, is_another, form = min((-n, form != word, form) for form, n in found.items())
            if is_another:
                best[word] = form
    return best


def _batches(texts: Iterable[str]) -> Iterable[str]:
    """Yield normalised texts, many in one string."""
    batch: list[str] = []
    for text in texts:
        batch.append(text)
        if len(batch) == _AT_ONCE:
            yield normalise("\n".join(batch))
            batch = []
    yield normalise("\n".join(batch))
