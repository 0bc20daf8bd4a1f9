"""Sentences for messages: counts, lists, suggestions, values in brief, and reasons why a value is refused.

A message writes an argument of Python in backquotes, with its value where one is meant: `min_df`, or `n_topics=6`. The
command line and the service replace these by what their users can write (see `with_arguments`).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

_MOST_NAMES = 100  # in a list of names
_MOST_SUGGESTIONS = 3
_SIMILARITY = 0.6  # of a suggested name, as difflib measures it
_ARGUMENT = re.compile(r"`([A-Za-z_]\w*)(?:=([^`]+))?`")
_SUBJECT = re.compile(r"^(Input|String|List) should ")  # how Pydantic begins a message

# Why Pydantic refuses a value, by the type of its error. Errors of other types keep Pydantic's own words.
_REASONS = {
    "missing": "it is missing",
    "value_error": "{error}",
    "dict_type": "it should be a dictionary",
    "list_type": "it should be a list",
    **dict.fromkeys(("bool_type", "bool_parsing"), "it should be true or false"),
    "model_attributes_type": "it should be an object with names and values",
    **dict.fromkeys(("int_type", "int_parsing", "int_parsing_size", "int_from_float"), "it should be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "it should be a number"),
}
_LIMITS = {"gt": "greater than", "ge": "greater than or equal to", "lt": "less than", "le": "less than or equal to"}


def counted(count: int, one: str, more: str | None = None) -> str:
    """Return a number with what is counted.

    Args:
        count: the number.
        one: the name of one of them.
        more: the name of several; by default `one` with an s.

    >>> counted(1, "document"), counted(1200, "document"), counted(2, "entry", "entries")
    ('1 document', '1,200 documents', '2 entries')
    """
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def joined(parts: Iterable[object], last: str = "and") -> str:
    """Return a list of things as a phrase.

    Args:
        parts: the things.
        last: the word before the last of them.

    >>> joined([1, 2, 3]), joined(["--out", "--topics"], "or"), joined(["a"]), joined([])
    ('1, 2 and 3', '--out or --topics', 'a', '')
    """
    *most, final = list(map(str, parts)) or [""]
    return f"{', '.join(most)} {last} {final}" if most else final


def nearest(name: str, names: Iterable[str], shown: Iterable[str] | None = None, most: int = _MOST_NAMES) -> str:
    """Return a clause that offers the names most like `name`, or lists the first ones if none is similar.

    Args:
        name: what was given.
        names: the names that there are.
        shown: how the message writes each of them, in this order; None writes the names themselves, sorted.
        most: the number of names in a list.

    >>> nearest("lda2", ["gsm", "lda"]), nearest("xyz", ["gsm", "lda"])
    ('did you mean lda?', 'choose one of gsm, lda')
    """
    known = sorted(names) if shown is None else list(names)
    written = dict(zip(known, known if shown is None else shown, strict=True))
    if close := _close(name, known):
        return f"did you mean {' or '.join(written[each] for each in close)}?"
    more = f" and {len(written) - most:,} more" if len(written) > most else ""
    return f"choose one of {', '.join(list(written.values())[:most])}{more}"


def similar(name: str, names: Iterable[str]) -> str:
    """Return a clause that offers the names most like `name`, or "" if none is similar.

    >>> similar("economi", ["economy", "sport"]), similar("xyz", ["economy", "sport"])
    ('did you mean economy?', '')
    """
    close = _close(name, list(names))
    return f"did you mean {' or '.join(close)}?" if close else ""


def _close(name: str, known: Sequence[str]) -> list[str]:
    """Return up to three names of similar spelling; if there are none, those that are a part of it or contain it.

    Names that differ in upper and lower case alone come first.
    """
    same = [each for each in known if each.casefold() == name.casefold()]
    if close := (same or difflib.get_close_matches(name, known, n=_MOST_SUGGESTIONS, cutoff=_SIMILARITY)):
        return close[:_MOST_SUGGESTIONS]
    parts = [each for each in known if min(len(each), len(name)) > 1 and (each in name or name in each)]
    return sorted(parts, key=lambda each: abs(len(each) - len(name)))[:_MOST_SUGGESTIONS]


def brief(value: object) -> str:
    """Return a value as the beginning of one line of Python.

    >>> brief("two\\nlines"), len(brief(list(range(1000))))
    ("'two\\\\nlines'", 60)
    """
    try:
        return " ".join(repr(value)[:200].split())[:60]
    except RecursionError:  # a list in a list in a list
        return type_with_article(value)


def type_with_article(value: object) -> str:
    """Return a value's type with its article.

    >>> type_with_article(1.5), type_with_article(1)
    ('a float', 'an int')
    """
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def refusal(problem: Mapping[str, Any]) -> str:
    """Return in plain words why a value is refused.

    Args:
        problem: an entry of the list that `pydantic.ValidationError.errors` returns.

    >>> refusal({"type": "int_parsing", "msg": "Input should be a valid integer, unable to parse string", "ctx": {}})
    'it should be a whole number'
    >>> refusal({"type": "less_than_equal", "msg": "Input should be less than or equal to 200", "ctx": {"le": 200}})
    'it should be less than or equal to 200'
    """
    context = problem.get("ctx", {})
    if (reason := _REASONS.get(problem["type"])) is not None:
        return reason.format_map(context)
    for name in _LIMITS.keys() & context.keys():
        limit = context[name]  # Pydantic would write 1e-30 with all its zeros
        return f"it should be {_LIMITS[name]} {f'{limit:g}' if isinstance(limit, float) else limit}"
    return _SUBJECT.sub("it should ", problem["msg"])


def with_arguments(message: str, write: Callable[[str, str | None], str | None]) -> str:
    """Replace the arguments of Python that a message names in backquotes.

    Args:
        message: the message.
        write: returns what replaces an argument, from its name and its value, which is None if the message gives none.
            If it returns None, the argument only loses its backquotes.

    >>> with_arguments("try `n_topics=6`", lambda name, value: f"--topics {value}" if name == "n_topics" else None)
    'try --topics 6'
    """

    def replaced(found: re.Match[str]) -> str:
        written = write(found[1], found[2])
        return found[0].strip("`") if written is None else written

    return _ARGUMENT.sub(replaced, message)


def without_backquotes(message: str) -> str:
    """Return a message whose arguments stand without their backquotes.

    >>> without_backquotes("try `n_topics=6`")
    'try n_topics=6'
    """
    return with_arguments(message, lambda name, value: None)
