"""Names for topics: by a rule that needs no model, or by a function of words and documents."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from ..errors import InputError, SettingError
from ..messages import counted
from ..ranking import NAME_CANDIDATES, NAME_WORDS, distinct_words
from ..text.tokenizing import Fold, token_spans
from .edits import checked_name

logger = logging.getLogger("topicloom")

Rule = Literal["words", "phrase"]
Namer: TypeAlias = Callable[[list[str], list[str]], str]
Phrase: TypeAlias = tuple[tuple[str, ...], str]  # its tokens, and how it is written

_CANDIDATE_WORDS = 30  # of a topic, for its name
_FEWEST_DOCUMENTS = 3  # that contain a phrase
_LONGEST_PHRASE = 3  # tokens
# What may stand between the tokens of a phrase.
_GAP = re.compile(r"[\s\-·'’]{0,3}(?:(?:of|de|del|du|des|da|do|di|von|van|für)\s)?", re.IGNORECASE)
_NUMBERS_SHOWN = 20  # of topics, in a warning
QUOTES = "\"'`*“”‘’«»「」《》 \t\r\n"  # of names, which are left out


def names_by_words(
    components: npt.NDArray[Any], ranked: Sequence[Sequence[int]], vocabulary: Sequence[str]
) -> list[str]:
    """Return a name of three words for each topic: words that are frequent in it and rare in the other topics.

    Topics have as few of these words in common as possible.

    Args:
        components: (K, V), rows sum to 1.
        ranked: the best words of each topic, as columns of components.
        vocabulary: the V words.
    """
    totals = components.sum(axis=0, dtype=np.float64)
    best, scores = [], []
    for k, words in enumerate(ranked):
        ids = np.asarray(words[:_CANDIDATE_WORDS], np.intp)
        own = components[k, ids].astype(np.float64)
        score = np.sqrt(own / max(float(own.max(initial=0)), 1e-300)) * own / np.maximum(totals[ids], 1e-300)
        order = np.argsort(-score, kind="stable")[:NAME_CANDIDATES]
        best.append(ids[order].tolist())
        scores.append(score[order].tolist())
    return [", ".join(vocabulary[word] for word in words) for words in distinct_words(best, scores, NAME_WORDS)]


def phrases_of(text: str, tokens: Sequence[str], known: frozenset[str], fold: Fold = str.casefold) -> list[Phrase]:
    """Return the phrases of a text, each as often as it occurs: two or three tokens with little between them.

    Args:
        text: the text.
        tokens: its tokens.
        known: the words that a phrase may consist of.
        fold: folds text as the tokenizer does.
    """
    spans = token_spans(text, tokens, fold)
    found: list[Phrase] = []
    for first in range(len(tokens)):
        last = first
        while (
            last < len(tokens) and tokens[last] in known and spans[last] is not None and last - first < _LONGEST_PHRASE
        ):
            begin, end = spans[first], spans[last]
            assert begin is not None
            assert end is not None
            if last > first:
                before = spans[last - 1]
                assert before is not None
                if not _GAP.fullmatch(text[before[1] : end[0]]):
                    break
                if len(set(tokens[first : last + 1])) > last - first:
                    found.append((tuple(tokens[first : last + 1]), " ".join(text[begin[0] : end[1]].split())))
            last += 1
    return found


def names_by_phrase(documents: Sequence[Sequence[list[Phrase]]], fallback: Sequence[str]) -> list[str]:
    """Return a phrase for each topic: one in many of its documents and in few documents of other topics.

    No two topics have the same phrase.

    Args:
        documents: for each topic, the phrases of its typical documents.
        fallback: the name of a topic without such a phrase.
    """
    counts = [Counter(tokens for phrases in topic for tokens, _ in phrases) for topic in documents]
    spread = [Counter(tokens for phrases in topic for tokens in {each for each, _ in phrases}) for topic in documents]
    total: Counter[tuple[str, ...]] = Counter()
    for each in counts:
        total.update(each)
    n_all = max(sum(map(len, documents)), 1)
    best: list[list[str]] = []  # each phrase as its tokens, joined
    scores: list[list[float]] = []
    for k, topic in enumerate(documents):
        found = []
        for tokens, count in sorted(counts[k].items()):
            lift = np.log(count / len(topic)) - np.log(total[tokens] / n_all)
            score = count * lift * len(tokens) ** 0.5
            if spread[k][tokens] >= _FEWEST_DOCUMENTS and score > 0:
                found.append((score, tokens))
        found = sorted(found, key=lambda each: -each[0])[:NAME_CANDIDATES]
        best.append(["\n".join(tokens) for _, tokens in found])
        scores.append([float(score) for score, _ in found])
    names = []
    for k, (topic, chosen) in enumerate(zip(documents, distinct_words(best, scores, 1, fill=False), strict=True)):
        phrase = tuple(chosen[0].split("\n")) if chosen else None
        written = Counter(form for own in topic for tokens, form in own if tokens == phrase)
        names.append(max(sorted(written), key=written.__getitem__) if written else fallback[k])
    return names


def names_by_function(
    namer: Namer, words: Sequence[list[str]], documents: Sequence[list[str]], topics: Sequence[int]
) -> dict[int, str]:
    """Return the names that a function gives to topics. Topics for which it fails are left out, with one warning.

    Args:
        namer: a function from the words and the documents of a topic to its name.
        words: the words of each topic.
        documents: the texts of some documents of each topic.
        topics: the numbers of the topics to name.
    """
    names: dict[int, str] = {}
    failed: list[int] = []
    reason = ""
    for k in topics:
        try:
            name = namer(list(words[k]), list(documents[k]))
            if not isinstance(name, str):
                raise InputError(f"the name of topic {k} should be a text; it is {name!r:.60}")
            checked = checked_name(name.strip(QUOTES), k)
            assert checked is not None
            names[k] = checked
        except Exception as error:  # the function is the user's, and may raise anything
            failed.append(k)
            reason = reason or " ".join(f"{type(error).__name__}: {error}".split())
    if failed:
        logger.warning(
            "%s of %s could not be named and %s (%s); the first error was %.300s",
            len(failed),
            counted(len(topics), "topic"),
            "keeps its name" if len(failed) == 1 else "keep their names",
            first_numbers(failed),
            reason,
        )
    return names


def first_numbers(topics: Sequence[int]) -> str:
    """Return the numbers of topics as text, of which a long list is cut."""
    return ", ".join(map(str, topics[:_NUMBERS_SHOWN])) + (", ..." if len(topics) > _NUMBERS_SHOWN else "")


def distinct(names: dict[int, str], taken: Iterable[str] = ()) -> dict[int, str]:
    """Return the names with a number after each that another topic has already, such as "trade (2)"."""
    used = set(taken)
    result: dict[int, str] = {}
    for topic, name in names.items():
        number, new = 2, name
        while new in used:
            new, number = f"{name} ({number})", number + 1
        used.add(new)
        result[topic] = new
    return result


def check_rule(rule: Any) -> None:
    """Raise SettingError unless this is the name of a rule, or a function."""
    if not callable(rule) and rule not in get_args(Rule):
        raise SettingError(
            f"`rule` should be one of {', '.join(get_args(Rule))}, or a function of words and documents; it is "
            f"{rule!r:.60}"
        )
