"""How text is prepared: how a source of documents is read, how its dates are written, and which words are kept.

Functions and commands share these options. Each is described once, here; the docstrings of the public functions and the
help of the command line are made of these descriptions.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

_Function = TypeVar("_Function", bound=Callable[..., Any])
_WIDTH, _INDENT = 120, " " * 4  # of a docstring's lines, and of the lines that continue one


@dataclass(frozen=True)
class FileOptions:
    """Where a source of documents has its columns, and how its bytes are read."""

    text: Annotated[
        str, "the column with the texts; in JSON, a.b.0 is the first entry of the list b in the object a"
    ] = "text"
    id: Annotated[str | None, "the column with the documents' ids; by default the column id, if there is one"] = None
    label: Annotated[
        str | None, "the column with the documents' classes; by default the column label, if there is one"
    ] = None
    timestamp: Annotated[
        str | None, "the column with the documents' times; by default the column timestamp, if there is one"
    ] = None
    format: Annotated[
        str | None,
        "the format of a file whose name does not show it, such as csv; of a folder or a .zip file, only the files of "
        "this format are read",
    ] = None
    encoding: Annotated[
        str, "the encoding of text files, such as gb18030; a byte order mark at the beginning is recognised"
    ] = "utf-8"
    errors: Annotated[
        str, "what to do with bytes that are not in the encoding: strict (an error), replace or ignore"
    ] = "strict"
    delimiter: Annotated[
        str | None,
        "the character between the fields of a .csv or .tsv file; by default, a comma, semicolon, tab or vertical bar "
        "is recognised",
    ] = None
    header: Annotated[
        bool, "whether the first line of a table names its columns; if not, their names are 1, 2 and so on"
    ] = True
    sheet: Annotated[
        str | None, "the worksheet of an .xlsx file, by its name or its number from 1; by default the first one"
    ] = None
    quotechar: Annotated[
        str | None, "the quotation mark around fields of a .csv or .tsv file; by default, \" or ' is recognised"
    ] = None
    escapechar: Annotated[
        str | None,
        "the character before a quotation mark or delimiter that is part of a field; by default, a backslash is "
        "recognised, and none is no such character",
    ] = None
    quoting: Annotated[
        bool, "whether quotation marks enclose fields of a .csv or .tsv file; if not, they are part of the text"
    ] = True
    split_texts: Annotated[
        str | None,
        "the pieces of a text that become the documents: paragraphs, sentences, or tokens:300 for pieces of about 300 "
        "words; their covariate parent is the id of the whole text",
    ] = None


@dataclass(frozen=True)
class TimeOptions:
    """How dates are written."""

    day_first: Annotated[
        bool | None,
        "whether dates such as 03/04/2015 begin with the day; by default, the column decides, if a row such as "
        "15/02/2015 shows it",
    ] = None
    date_format: Annotated[
        str | None,
        "the format of the dates, such as %d.%m.%y, with the directives of Python's strptime; by default, the usual "
        "ones are recognised",
    ] = None


@dataclass(frozen=True)
class ReadOptions(TimeOptions, FileOptions):
    """How a source of documents is read."""


@dataclass(frozen=True)
class WordOptions:
    """Which words of the documents are kept."""

    language: Annotated[str, "the language of the texts, such as zh, en or fr; auto recognises it"] = "auto"
    min_df: Annotated[
        float,
        "the fewest documents that a word may be in: a whole number, or a share such as 0.01 of the documents that "
        "have words",
    ] = 5
    max_df: Annotated[
        float,
        "the most documents that a word may be in: a whole number, or a share such as 0.5 of the documents that "
        "have words",
    ] = 0.5
    max_features: Annotated[
        int | None,
        "how many words to keep at most, the most frequent ones; by default all",
    ] = None
    remove_top: Annotated[
        int, "how many of the words that are in the most documents to remove, after `min_df` and `max_df`"
    ] = 0
    stop_words: Annotated[
        str | Path | Iterable[str] | None,
        "words to remove besides the language's stop words, or a file with one word on each line; auto removes only "
        "the language's, and none removes no words; your own tokens and tokenizer have no stop words by default",
    ] = "auto"
    replace_stop_words: Annotated[
        bool, "whether to remove only the words of `stop_words`, and not the language's stop words"
    ] = False
    user_dictionary: Annotated[str | Path | None, "a file of words that Chinese segmentation keeps whole"] = None
    tokenizer: Annotated[
        Any,
        "your own function from a text to its tokens, or where it is (such as my_tokenizer:split), or the tokenizer of "
        "another corpus",
    ] = None
    preset: Annotated[
        str | None,
        "social for posts on social media: handles are dropped, hashtags split, emoji are words, and rt is a stop word",
    ] = None
    handles: Annotated[str | None, "what @name becomes: word (name, the default), keep (@name) or drop"] = None
    hashtags: Annotated[
        str | None,
        "what #TwoWords becomes: word (twowords, the default), keep (#twowords), split (two, words) or drop",
    ] = None
    links: Annotated[str | None, "what a link becomes: drop (the default), or keep for the name of its host"] = None
    emoji: Annotated[bool | None, "whether each emoji is a word; by default, emoji are dropped"] = None
    lemmatise: Annotated[bool, "whether words become their base forms, by simplemma: flights is flight"] = False
    ngrams: Annotated[
        Any, "the fewest and the most words of an entry of the vocabulary, such as 1-2; by default, single words"
    ] = None
    phrases: Annotated[
        bool,
        "whether neighbouring words that attract each other become one, such as customer service, by the normalised "
        "PMI of the first 100,000 documents",
    ] = False
    drop_duplicates: Annotated[
        bool,
        "whether to keep only the first of documents with the same words, or nearly the same; the covariate copies "
        "says how often it occurs",
    ] = False
    drop_boilerplate: Annotated[
        bool,
        "whether to leave out text that many documents have word for word at their beginning or end, such as the "
        "footers of a website and signatures",
    ] = False


def descriptions(options: type) -> dict[str, str]:
    """Return the description of each option of a class of options, by its name."""
    hints = get_type_hints(options, include_extras=True)
    return {field.name: get_args(hints[field.name])[1] for field in fields(options)}


def described(**groups: type) -> Callable[[_Function], _Function]:
    """Return a decorator that describes options in a docstring.

    Args:
        groups: classes of options; the descriptions of `reading=ReadOptions` replace the line `{reading}`.
    """

    def describe(function: _Function) -> _Function:
        lines: list[str] = []
        for line in (function.__doc__ or "").split("\n"):  # without a docstring if Python was started by -OO
            group = groups.get(line.strip().strip("{}")) if line.strip().startswith("{") else None
            if group is None:
                lines.append(line)
                continue
            indent = line[: len(line) - len(line.lstrip())]
            for name, meaning in descriptions(group).items():
                lines += textwrap.wrap(
                    f"{name}: {meaning}.", _WIDTH, initial_indent=indent, subsequent_indent=indent + _INDENT,
                    break_long_words=False, break_on_hyphens=False,
                )  # fmt: skip
        function.__doc__ = "\n".join(lines) or None
        return function

    return describe
