"""Ratings of topics by language models: which word does not belong, and which documents fit.

The first question is the word intrusion of Chang et al. (2009, "Reading tea leaves"), and the second follows ProxAnn
(Hoyle et al. 2025): intruders are planted at random, and a language model answers in the place of a person.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ..display import progress_bar
from ..errors import InputError
from ..messages import counted
from .language_model import LanguageModel, first_reason, listed_documents
from .table import Table

logger = logging.getLogger("topicloom")

Array = npt.NDArray[Any]
Kind = Literal["word_intrusion", "document_fit"]

_OWN_WORDS = 5  # of a topic, beside the intruder
_INTRUDERS_FROM, _NOT_AMONG = 10, 50  # an intruder is among the first words of another topic, and not of this one
_SAMPLES = 1000  # of topics, for intervals
_LEVEL = 0.95
WORD_PROMPT = """\
All but one of these words belong to one topic; the other word was put among them. Which word does not belong?
Words: {words}
Answer with JSON alone: {{"word": "..."}}"""
DOCUMENT_PROMPT = """\
The words of a topic, the most important first: {words}
{documents}
Some of these documents are about the topic, and others were put among them. Which documents are about the topic? \
Answer with JSON alone, with their numbers: {{"documents": [1, 2]}}"""
PROMPTS = {"word_intrusion": WORD_PROMPT, "document_fit": DOCUMENT_PROMPT}


class RatingQuestion(NamedTuple):
    """A question about a topic with its right answer.

    Attributes:
        topic: the number of the topic.
        kind: "word_intrusion" or "document_fit".
        number: which of the topic's questions it is.
        repeat: which order of the same items it is.
        items: the words, or the rows of the documents, in their order.
        right: for each item, whether it belongs to the topic.
        text: the question.
    """

    topic: int
    kind: Kind
    number: int
    repeat: int
    items: tuple[Any, ...]
    right: tuple[bool, ...]
    text: str

    @property
    def key(self) -> tuple[int, str, int, int]:
        """What tells the question from others."""
        return self.topic, self.kind, self.number, self.repeat

    def read(self, answer: Mapping[str, Any]) -> dict[Any, bool]:
        """Return for each item whether it belongs to the topic, according to an answer.

        Raises:
            ValueError: the answer has another form, or names something that is not there.
        """
        if self.kind == "word_intrusion":
            word = answer.get("word")
            named = [
                item for item in self.items if isinstance(word, str) and item.casefold() == word.strip().casefold()
            ]
            if not named:
                raise ValueError('"word" should be one of the words')
            return {item: item != named[0] for item in self.items}
        numbers = answer.get("documents")
        if not isinstance(numbers, list) or any(
            isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= len(self.items) for n in numbers
        ):
            raise ValueError(f'"documents" should be a list of numbers from 1 to {len(self.items)}')
        return {item: place in numbers for place, item in enumerate(self.items, 1)}


def word_questions(
    components: Array,
    ranked: Array,
    words: Sequence[str],
    topics: Sequence[int],
    n_questions: int,
    repeats: int,
    seed: int,
) -> list[RatingQuestion]:
    """Return questions of word intrusion: five words of a topic, and one of another topic that is unlikely in it.

    The intruder is among the first ten words of another topic. It is not among the first fifty of this topic, and its
    probability in this topic is not above the median of all words.

    Args:
        components: (K, V) topics.
        ranked: (K, n) the words of each topic, best first, as columns of components.
        words: the V words as people read them.
        topics: the topics to ask about.
        n_questions: the number of intruders for each topic.
        repeats: how often each question is asked, each time in another order.
        seed: the seed of intruders and orders.
    """
    questions = []
    for k in topics:
        random = np.random.default_rng([seed, k, 0])
        own = [int(word) for word in ranked[k, :_OWN_WORDS]]
        shown = {words[word].casefold() for word in own}
        median = float(np.median(components[k]))
        taken = set(map(int, ranked[k, : min(_NOT_AMONG, max(_OWN_WORDS, ranked.shape[1] // 2))]))
        others = [j for j in range(len(components)) if j != k]
        candidates = sorted({int(word) for j in others for word in ranked[j, :_INTRUDERS_FROM]} - taken)
        unlikely = [w for w in candidates if components[k, w] <= median and words[w].casefold() not in shown]
        chosen = random.permutation(unlikely)[:n_questions].tolist()
        for number, intruder in enumerate(chosen):
            for repeat in range(repeats):
                order = random.permutation([*own, intruder]).tolist()
                items = tuple(words[word] for word in order)
                text = WORD_PROMPT.format(words=", ".join(items))
                right = tuple(word != intruder for word in order)
                questions.append(RatingQuestion(k, "word_intrusion", number, repeat, items, right, text))
    return questions


def document_questions(
    typical: Mapping[int, Sequence[int]],
    excerpts: Mapping[tuple[int, int], str],
    planted: Mapping[int, Sequence[int]],
    words: Sequence[Sequence[str]],
    repeats: int,
    seed: int,
) -> list[RatingQuestion]:
    """Return questions of document fit: typical documents of a topic, and as many planted ones.

    Args:
        typical: by topic, the rows of typical documents.
        excerpts: the text by topic and row.
        planted: by topic, the rows of planted documents.
        words: the words of each topic.
        repeats: how often each question is asked, each time in another order.
        seed: the seed of the orders.
    """
    questions = []
    for k, own in typical.items():
        others = list(planted[k])
        if not own or not others:
            continue
        random = np.random.default_rng([seed, k, 2])
        for repeat in range(repeats):
            rows = random.permutation([*own, *others]).tolist()
            texts = [excerpts[k, row] for row in rows]
            listed = listed_documents(texts, "Documents")
            text = DOCUMENT_PROMPT.format(words=", ".join(words[k]), documents=listed)
            right = tuple(row in own for row in rows)
            questions.append(RatingQuestion(k, "document_fit", 0, repeat, tuple(rows), right, text))
    return questions


def planted_documents(theta: Array, empty: npt.NDArray[np.bool_], topic: int, n: int, seed: int) -> list[int]:
    """Return the rows of documents in which a topic has less than half of the share 1 / K, drawn at random."""
    n_topics = theta.shape[1]
    rows = np.flatnonzero((theta[:, topic] < 0.5 / n_topics) & ~empty)
    chosen: list[int] = np.random.default_rng([seed, topic, 1]).permutation(rows)[:n].tolist()
    return chosen


@dataclass(frozen=True, eq=False, repr=False)
class TopicRatings:
    """What language models say about topics.

    Attributes:
        models: the names of the models.
        names, words: the name and the words of each topic that was rated, by its number.
        answers: a row for each answer: model, topic, kind ("word_intrusion" or "document_fit"), question, repeat, right
            (the number of items that were judged rightly; of words, 1 or 0), of, and prompt (the digest under which the
            run keeps prompt and answer).
        verdicts: for each answer, whether each item belongs to the topic.
        failed: the number of questions that got no answer.
        about: the seed and the numbers of questions, repeats and documents, and the forms of the prompts.
        costs: a sentence for each model about the requests and tokens.
    """

    models: list[str]
    names: Mapping[int, str]
    words: Mapping[int, list[str]]
    answers: list[dict[str, Any]]
    verdicts: list[dict[Any, bool]]
    failed: int
    about: Mapping[str, Any]
    costs: list[str]

    def __repr__(self) -> str:
        return "\n".join([repr(self.table()), *self.lines()])

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def table(self) -> Table:
        """Return a row for each topic: topic, name, words, word_intrusion and document_fit, the shares that are right.

        Shares are means over all models. None stands for no answer.
        """
        rows = [
            {
                "topic": k,
                "name": self.names[k],
                "words": self.words[k],
                **{kind: self._share(kind, topic=k) for kind in PROMPTS},
            }
            for k in self.names
        ]
        return Table.of(rows, "Ratings", ("topic", "name", "words", *PROMPTS))

    def summary(self) -> list[dict[str, Any]]:
        """Return a row for each kind of question and each model.

        The columns are kind, model, right (the share), low and high (its 95 % interval, by a bootstrap over topics),
        chance (the share that a guess would have), answers, repeats_agree (of pairs of answers to one question in two
        orders, the share of equal verdicts) and models_agree (the same for pairs of models). Agreement on documents
        counts each document. None stands for no pair.
        """
        rows = []
        for kind in PROMPTS:
            for model in self.models:
                own = [row for row in self.answers if (row["kind"], row["model"]) == (kind, model)]
                if not own:
                    continue
                low, high = self._interval(own)
                rows.append({
                    "kind": kind,
                    "model": model,
                    "right": self._share(kind, model=model),
                    "low": low,
                    "high": high,
                    "chance": 1 / (_OWN_WORDS + 1) if kind == "word_intrusion" else 0.5,
                    "answers": len(own),
                    "repeats_agree": self._agreement(kind, [model]),
                    "models_agree": self._agreement(kind, self.models, across=True),
                })  # fmt: skip
        return rows

    def lines(self) -> list[str]:
        """Return the summary as sentences, for people to read."""
        titles = {"word_intrusion": "the word that does not belong", "document_fit": "the documents that fit"}
        lines = []
        for row in self.summary():
            agree = [
                f"{row[name]:.0%} agreement {what}"
                for name, what in (("repeats_agree", "between orders"), ("models_agree", "between models"))
                if row[name] is not None
            ]
            interval = f"95 % interval {row['low']:.0%} to {row['high']:.0%}, chance {row['chance']:.0%}"
            said = f"{row['model']} finds {titles[row['kind']]} in {row['right']:.0%} ({interval})"
            lines.append("; ".join([said, *agree]))
        failed = [f"{counted(self.failed, 'question')} got no usable answer"] if self.failed else []
        return [*lines, *failed, *self.costs]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as values for JSON."""
        return {
            "models": self.models,
            **self.about,
            "topics": self.table().to_dicts(),
            "summary": self.summary(),
            "failed": self.failed,
            "costs": self.costs,
            "answers": self.answers,
        }

    def _share(self, kind: str, *, topic: int | None = None, model: str | None = None) -> float | None:
        rows = [
            row
            for row in self.answers
            if row["kind"] == kind and topic in (None, row["topic"]) and model in (None, row["model"])
        ]
        return sum(row["right"] for row in rows) / sum(row["of"] for row in rows) if rows else None

    def _interval(self, rows: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
        """Return the interval of a share by a bootstrap over topics, whose answers depend on each other."""
        topics = sorted({row["topic"] for row in rows})
        right = np.array([sum(row["right"] for row in rows if row["topic"] == k) for k in topics], float)
        of = np.array([sum(row["of"] for row in rows if row["topic"] == k) for k in topics], float)
        random = np.random.default_rng(int(self.about["seed"]))
        drawn = random.integers(len(topics), size=(_SAMPLES, len(topics)))
        shares = right[drawn].sum(axis=1) / of[drawn].sum(axis=1)
        low, high = np.quantile(shares, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
        return float(low), float(high)

    def _agreement(self, kind: str, models: Sequence[str], *, across: bool = False) -> float | None:
        """Return the share of equal verdicts among pairs of answers to one question."""
        groups: dict[tuple[int, int], list[tuple[str, int, dict[Any, bool]]]] = {}
        for row, verdict in zip(self.answers, self.verdicts, strict=True):
            if row["kind"] == kind and row["model"] in models:
                groups.setdefault((row["topic"], row["question"]), []).append((row["model"], row["repeat"], verdict))
        equal: list[float] = []
        for answers in groups.values():
            for (model, repeat, one), (other_model, other_repeat, other) in combinations(answers, 2):
                if (model != other_model) if not across else (model == other_model or repeat != other_repeat):
                    continue
                if kind == "word_intrusion":
                    equal.append(float(one == other))
                else:
                    equal += [float(one[item] == other[item]) for item in one]
        return sum(equal) / len(equal) if equal else None


def rated(
    asked: Sequence[LanguageModel],
    questions: Sequence[RatingQuestion],
    names: Mapping[int, str],
    words: Sequence[list[str]],
    about: Mapping[str, Any],
    *,
    progress: bool = False,
) -> TopicRatings:
    """Ask language models all questions, and return what they say. One warning counts the failures.

    Args:
        asked: the language models.
        questions: the questions.
        names: the names of the topics that are rated.
        words: the words of all topics.
        about: the seed and the numbers of questions, documents and repeats.
        progress: whether a bar on standard error shows how many questions are answered.

    Raises:
        InputError: there is no question, or no usable answer.
    """
    if not questions:
        raise InputError("there is nothing to ask about: topics need words that are rare in others, or documents")
    answers: list[dict[str, Any]] = []
    verdicts: list[dict[Any, bool]] = []
    failures: list[str] = []
    for model in asked:
        unknown = [each for each in questions if not model.knows(each.text)]
        if unknown:
            texts = " and parts of documents" if any(each.kind == "document_fit" for each in unknown) else ""
            n_topics = len({each.topic for each in unknown})
            model.announce(f"{counted(len(unknown), 'question')} with words{texts} of {counted(n_topics, 'topic')}")
        with progress_bar(progress and bool(unknown), f"questions to {model.model}", len(questions)) as on_answer:
            found, failed = model.ask_all({each.key: (each.text, each.read) for each in questions}, on_answer)
        failures += failed.values()
        for question in questions:
            if question.key not in found:
                continue
            verdict, digest = found[question.key]
            right = [verdict[item] == belongs for item, belongs in zip(question.items, question.right, strict=True)]
            is_word = question.kind == "word_intrusion"
            answers.append({
                "model": model.model, "topic": question.topic, "kind": question.kind, "question": question.number,
                "repeat": question.repeat, "right": int(all(right)) if is_word else sum(right),
                "of": 1 if is_word else len(right), "prompt": digest,
            })  # fmt: skip
            verdicts.append(verdict)
    if not answers:
        raise InputError(first_reason(failures))
    if failures:
        logger.warning(
            "%s of %s questions got no usable answer; the first error was: %.400s",
            len(failures), len(questions) * len(asked), first_reason(failures),
        )  # fmt: skip
    models, costs = [model.model for model in asked], [model.cost() for model in asked]
    own = {k: words[k] for k in names}
    return TopicRatings(models, names, own, answers, verdicts, len(failures), {**about, "prompts": PROMPTS}, costs)
