"""Tokens that come from the user: from a function of the user's own, or as documents that are lists of tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, PrivateAttr

from ..errors import InputError, SettingError
from ..imports import import_named, is_allowed
from .characters import brief, describe

T = TypeVar("T")
_EXAMPLE = "module:function, such as my_tokenizer:split"


class CustomTokenizer(BaseModel):
    """A user's own function from a text to tokens.

    Only the function's name is saved with a model. After loading, the function must be passed again, or its module
    allowed.

    Args:
        name: the function's qualified name, or "module:function".
        stop_words: tokens to remove.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["custom"] = "custom"
    name: str
    stop_words: tuple[str, ...] = ()
    _function: Callable[[str], Iterable[str]] | None = PrivateAttr(default=None)

    @classmethod
    def of(cls, function: Callable[[str], Iterable[str]], stop_words: Iterable[str] = ()) -> CustomTokenizer:
        """Wrap a function.

        Raises:
            SettingError: it is not a function.
        """
        if not callable(function):
            raise SettingError(f"`tokenizer` should be a function from a text to its tokens; it is {brief(function)}")
        name = getattr(function, "__qualname__", type(function).__qualname__)
        module = getattr(function, "__module__", type(function).__module__)
        tokenizer = cls(name=f"{module}.{name}", stop_words=tuple(stop_words))
        tokenizer._function = function
        return tokenizer

    @classmethod
    def named(cls, path: str, stop_words: Iterable[str] = ()) -> CustomTokenizer:
        """Import the function that "module:function" names, such as "my_tokenizer:split".

        Raises:
            InputError: there is no such module, or no such function in it.
        """
        function = import_named(path, _EXAMPLE)
        if not callable(function):
            module, _, name = path.partition(":")
            raise InputError(f"the module {module!r} has no function {name!r}; write {_EXAMPLE}")
        return cls.of(function, stop_words).model_copy(update={"name": path})

    @property
    def module(self) -> str | None:
        """The module that can be imported to have the function again; None if only the function's name is known."""
        return self.name.partition(":")[0] if ":" in self.name else None

    @property
    def has_function(self) -> bool:
        """Whether texts can be split; after loading, only the function's name is known."""
        return self._function is not None

    def has_same_function(self, other: CustomTokenizer) -> bool:
        """Return whether another tokenizer of this name may have the same function: neither is known to differ."""
        return self._function is None or other._function is None or self._function == other._function

    def __call__(self, document: str) -> list[str]:
        """Split one text into tokens.

        Raises:
            InputError: the function was not passed again after loading, or it does not return strings.
        """
        if self._function is None:
            function = self.name.rpartition("." if self.module is None else ":")[2]
            imported = "" if self.module is None else f"give `allow={self.module!r}`, which imports it, or "
            raise InputError(
                f"this model was trained with your own tokenizer {self.name!r}; {imported}pass it again: "
                f"tl.load(dir, tokenizer={function})"
            )
        return _checked(self._function(document), self._dropped)

    @cached_property
    def _dropped(self) -> frozenset[str]:
        return frozenset(self.stop_words)


def with_allowed(tokenizer: T, allow: Iterable[str]) -> T | CustomTokenizer:
    """Return a saved tokenizer with its function, if the function's module may be imported; else as it is.

    Args:
        tokenizer: a tokenizer of any kind.
        allow: the modules that may be imported, or one of them.
    """
    allowed = {allow} if isinstance(allow, str) else set(allow)
    if isinstance(tokenizer, CustomTokenizer) and is_allowed(tokenizer.module or "", allowed):
        return CustomTokenizer.named(tokenizer.name, tokenizer.stop_words)
    return tokenizer


class Pretokenized(BaseModel):
    """Documents that are lists of tokens already.

    Args:
        stop_words: tokens to remove.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["pretokenized"] = "pretokenized"
    stop_words: tuple[str, ...] = ()

    def __call__(self, document: Iterable[str]) -> list[str]:
        """Return the tokens of one document, without stop words and blank tokens.

        Raises:
            InputError: the document is a string, or one of its tokens is not a string.
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
        raise InputError(f"expected a list of tokens, got {describe(tokens)}: {brief(tokens)}")
    tokens = list(tokens)
    for token in tokens:
        if not isinstance(token, str):
            raise InputError(f"expected tokens that are strings, got {describe(token)}: {brief(token)}")
    return [token for token in tokens if token.strip() and token not in dropped]
