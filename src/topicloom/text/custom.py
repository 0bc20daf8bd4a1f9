"""Tokens that come from the user: from a function of the user's own, or as documents that are lists of tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Literal

from pydantic import BaseModel, ConfigDict, PrivateAttr

from ..errors import InputError
from .characters import describe


class CustomTokenizer(BaseModel):
    """A user's own function from a text to tokens.

    Only the function's name is saved with a model. After loading, the function must be passed again.

    Args:
        name: The function's qualified name.
        stop_words: Tokens to remove.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["custom"] = "custom"
    name: str
    stop_words: tuple[str, ...] = ()
    _function: Callable[[str], Iterable[str]] | None = PrivateAttr(default=None)

    @classmethod
    def of(cls, function: Callable[[str], Iterable[str]], stop_words: Iterable[str] = ()) -> CustomTokenizer:
        """Wrap a function."""
        name = getattr(function, "__qualname__", type(function).__qualname__)
        module = getattr(function, "__module__", type(function).__module__)
        tokenizer = cls(name=f"{module}.{name}", stop_words=tuple(stop_words))
        tokenizer._function = function
        return tokenizer

    def __call__(self, document: str) -> list[str]:
        """Split one text into tokens.

        Raises:
            InputError: The function was not passed again after loading, or it does not return strings.
        """
        if self._function is None:
            raise InputError(
                f"this model was trained with your own tokenizer {self.name!r}; pass it again: "
                f"tl.load(dir, tokenizer={self.name.rpartition('.')[2]})"
            )
        return _checked(self._function(document), self._dropped)

    @cached_property
    def _dropped(self) -> frozenset[str]:
        return frozenset(self.stop_words)


class Pretokenized(BaseModel):
    """Documents that are lists of tokens already.

    Args:
        stop_words: Tokens to remove.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["pretokenized"] = "pretokenized"
    stop_words: tuple[str, ...] = ()

    def __call__(self, document: Iterable[str]) -> list[str]:
        """The tokens of one document, without stop words and blank tokens.

        Raises:
            InputError: The document is a string, or one of its tokens is not a string.
        """
        if isinstance(document, str):
            raise InputError(
                "this document is raw text, but the corpus was made from tokens or counts and has no tokenizer; "
                "give each document as a list of tokens"
            )
        return _checked(document, self._dropped)

    @cached_property
    def _dropped(self) -> frozenset[str]:
        return frozenset(self.stop_words)


def _checked(tokens: Iterable[str], dropped: frozenset[str]) -> list[str]:
    if not isinstance(tokens, Iterable):
        raise InputError(f"expected a list of tokens, got {describe(tokens)}: {tokens!r:.60}")
    tokens = list(tokens)
    for token in tokens:
        if not isinstance(token, str):
            raise InputError(f"expected tokens that are strings, got {describe(token)}: {token!r:.60}")
    return [token for token in tokens if token.strip() and token not in dropped]
