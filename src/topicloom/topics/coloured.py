"""A document whose tokens have the colours of their topics, for a terminal and for a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..display import as_markup, printable
from ..messages import counted
from ..text.tokenizing import Fold, token_spans
from .typical import topics_of_words

if TYPE_CHECKING:
    from rich.text import Text

Array = npt.NDArray[Any]

# Colours of the largest topics of a document, which colour-blind people can distinguish (Okabe & Ito). Others are grey.
_COLOURS = ("#E69F00", "#56B4E9", "#009E73", "#CC79A7", "#D55E00", "#F0E442", "#0072B2")
_GREY = "#999999"
_SMALLEST_NAMED = 0.05  # share of a topic that stands in the line above a document


class Token(NamedTuple):
    """A token of a document.

    Attributes:
        word: the token.
        topic: its most probable topic; None for a word that the model does not know.
        weight: p(topic | word, document).
        span: where the token begins and ends in the text; None if that is not known.
    """

    word: str
    topic: int | None
    weight: float
    span: tuple[int, int] | None


@dataclass(frozen=True, eq=False, repr=False)
class ColouredText:
    """The tokens of a document with their topics.

    Attributes:
        text: the text, without the markup that the tokenizer removes; None if it is not known.
        tokens: the tokens, in the order of the text. Without a text, they are the distinct words.
        theta: (K,) the topic shares of the document.
        weights: (n_tokens, K) p(k | word, document); zeros for a word that the model does not know.
        names: the K names of the topics.
    """

    text: str | None
    tokens: list[Token]
    theta: Array
    weights: Array
    names: list[str]

    @property
    def topics(self) -> list[tuple[int, str, float]]:
        """The number, the name and the share of each topic in the document, the largest first."""
        order = np.argsort(-self.theta, kind="stable").tolist()
        return [(k, self.names[k], float(self.theta[k])) for k in order]

    def colour(self, topic: int) -> str:
        """Return the colour of a topic, such as "#E69F00": one of seven for the document's largest topics, or grey."""
        place = [k for k, _, _ in self.topics[: len(_COLOURS)]]
        return _COLOURS[place.index(topic)] if topic in place else _GREY

    def pieces(self) -> list[tuple[str, Token | None]]:
        """Return the text in pieces, each with its token, or None between tokens."""
        if self.text is None:
            words: list[tuple[str, Token | None]] = []
            for token in self.tokens:
                words += [(token.word, token), (" ", None)]
            return words[:-1]
        found: list[tuple[str, Token | None]] = []
        place = 0
        for token in self.tokens:
            if token.span is None:
                continue
            begin, end = token.span
            found += [(self.text[place:begin], None), (self.text[begin:end], token)]
            place = end
        return [piece for piece in [*found, (self.text[place:], None)] if piece[0]]

    def __repr__(self) -> str:
        largest = ", ".join(f"{k} ({name}) {share:.0%}" for k, name, share in self._shown())
        return printable(f"ColouredText({counted(len(self.tokens), 'token')}; topics {largest})")

    def __rich__(self) -> Text:
        from rich.style import Style
        from rich.text import Text

        shown = Text()
        for k, name, share in self._shown():
            shown.append(f" {k} {printable(name)} {share:.0%} ", Style(color="black", bgcolor=self.colour(k)))
            shown.append(" ")
        shown.append("\n")
        for piece, token in self.pieces():
            topic = None if token is None else token.topic
            shown.append(printable(piece), None if topic is None else Style(color="black", bgcolor=self.colour(topic)))
        return shown

    def _repr_html_(self) -> str:
        legend = " ".join(
            f'<span style="{_css(self.colour(k), 1)}">{k} {as_markup(name)} {share:.0%}</span>'
            for k, name, share in self._shown()
        )
        body = "".join(self._html(piece, token) for piece, token in self.pieces())
        return f'<div><p>{legend}</p><p style="white-space:pre-wrap">{body}</p></div>'

    def _html(self, piece: str, token: Token | None) -> str:
        if token is None or token.topic is None:
            return as_markup(piece)
        title = as_markup(f"topic {token.topic} ({self.names[token.topic]}), {token.weight:.0%}")
        return f'<span style="{_css(self.colour(token.topic), token.weight)}" title="{title}">{as_markup(piece)}</span>'

    def _shown(self) -> Sequence[tuple[int, str, float]]:
        return [each for each in self.topics[: len(_COLOURS)] if each[2] >= _SMALLEST_NAMED] or self.topics[:1]


def coloured_text(
    text: str | None,
    words: Sequence[str],
    columns: Mapping[str, int],
    theta: Array,
    components: Array,
    names: list[str],
    fold: Fold = str.casefold,
) -> ColouredText:
    """Give each token of a document its most probable topic.

    Args:
        text: the text of the document; None if it is not known.
        words: its tokens.
        columns: the column of each word that the model knows.
        theta: (K,) the topic shares of the document.
        components: (K, V) topics, whose rows sum to 1.
        names: the K names of the topics.
        fold: folds text as the tokenizer does.
    """
    spans = [None] * len(words) if text is None else token_spans(text, words, fold)
    known = np.array([columns.get(word, -1) for word in words], np.intp)
    weights = np.zeros((len(words), len(theta)))
    weights[known >= 0] = topics_of_words(theta, components, known[known >= 0])
    best = weights.argmax(axis=1)
    tokens = [
        Token(word, int(best[i]) if known[i] >= 0 else None, float(weights[i, best[i]]), spans[i])
        for i, word in enumerate(words)
    ]
    return ColouredText(text, tokens, theta, weights, names)


def _css(colour: str, weight: float) -> str:
    """Return a style whose background is the stronger, the more certain the topic is; it suits light and dark pages."""
    return f"background-color:{colour}{round(55 + 120 * min(max(weight, 0), 1)):02x};border-radius:3px"
