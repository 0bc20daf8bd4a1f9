"""The bodies of requests and answers, as they are checked and as OpenAPI describes them.

Pydantic collects an error for each wrong element of a list and for each unknown entry. A body of 4 MB can have millions
of them, which would take gigabytes and a minute. The bodies of requests are therefore checked up to the first error.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, model_validator


def _texts(value: Any) -> Any:
    if not isinstance(value, list):
        raise ValueError("give a list of texts")
    of_tokens = bool(value) and isinstance(value[0], list)
    for number, each in enumerate(value):
        if not _is_tokens(each) if of_tokens else not isinstance(each, str):
            wanted = "a list of strings, as the first one is a list" if of_tokens else "a string"
            raise ValueError(f"text {number} should be {wanted}")
    return value


def _is_tokens(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(token, str) for token in value)


def _edits(value: Any) -> Any:
    if not isinstance(value, list):
        raise ValueError("give a list of edits")
    for number, each in enumerate(value):
        if not isinstance(each, dict):
            raise ValueError(f"edit {number} should be an object")
    return value


class _Body(BaseModel):
    """The body of a request."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _known(cls, value: Any) -> Any:
        unknown = value.keys() - cls.model_fields.keys() if isinstance(value, dict) else ()
        if unknown:
            raise ValueError(f"there is no entry {min(unknown)!a:.60}")
        return value


class Texts(_Body):
    """Texts whose topics are asked for."""

    texts: Annotated[
        list[str] | list[list[str]], PlainValidator(_texts, json_schema_input_type=list[str] | list[list[str]])
    ] = Field(
        description="The texts; or the tokens of each, for a model that was trained on tokens.",
        examples=[["The ship left the port."]],
    )


class NewEdits(_Body):
    """Edits of topics."""

    edits: Annotated[list[dict[str, Any]], PlainValidator(_edits, json_schema_input_type=list[dict[str, Any]])] = Field(
        description="Edits, numbered by the topics of /api/topics before the first of them.",
        examples=[[{"merge": [3, 7]}, {"drop": [5]}, {"rename": {"3": "shipping"}}]],
    )
    version: str | None = Field(
        None, description="The version of the topics that they were made from; 409 if it is not the present one."
    )
    replace: bool = Field(
        False, description="Take earlier edits back first. Numbers are those of the run's own topics then."
    )


class Word(BaseModel):
    """A word of a topic."""

    word: str
    probability: float = Field(description="p(word | topic)")


class TopicRow(BaseModel):
    """A topic."""

    topic: int = Field(description="The number of the topic: its column of theta.")
    name: str
    share: float | None = Field(description="The mean of theta over the documents; null if it is not known.")
    documents: int = Field(description="The number of documents whose main topic it is.")
    words: list[Word]


class TopicList(BaseModel):
    """The topics of the run."""

    run: str
    model: str
    n_topics: int
    n_documents: int
    n_words: int
    has_documents: bool
    has_texts: bool
    version: str = Field(description="Changes whenever the edits change, and is another for another model.")
    topics: list[TopicRow]


class ShareOfTopic(BaseModel):
    """A topic of a document."""

    topic: int
    name: str
    share: float


class InferredTopic(ShareOfTopic):
    """A topic of a text, with its words."""

    words: list[str]


class Inferred(BaseModel):
    """The topics of a text."""

    theta: list[float] = Field(description="The share of each topic.")
    empty: bool = Field(description="Whether the model knows no word of the text; it has the average shares then.")
    topics: list[InferredTopic] = Field(description="The largest topics, largest first.")


class InferredList(BaseModel):
    """The topics of texts, in the order of the texts."""

    n_topics: int
    version: str
    documents: list[Inferred]


class DocumentRow(BaseModel):
    """A document of the run."""

    row: int = Field(description="The number of the document, from 0.")
    id: str
    label: str | None
    time: str | None
    text: str | None = Field(description="The text, or its beginning; null if the run did not keep texts.")
    cut: bool = Field(description="Whether `text` is only the beginning.")
    empty: bool = Field(description="Whether the model knows no word of the document.")
    topics: list[ShareOfTopic] = Field(description="The largest topics, largest first.")


class DocumentPage(BaseModel):
    """A page of documents."""

    total: int = Field(description="The number of documents on all pages.")
    next: str | None = Field(description="The value of `after` for the next page; null if there is none.")
    words: list[str] | None = Field(description="The words that the query was split into.")
    version: str
    documents: list[DocumentRow]


class Piece(BaseModel):
    """A piece of a text."""

    text: str
    topic: int | None = Field(description="The topic of the token; null between tokens, and for unknown words.")


class WholeDocument(DocumentRow):
    """A document with its whole text."""

    theta: list[float]
    version: str
    pieces: list[Piece] | None = Field(description="The text without markup, in pieces; null unless asked for.")


class EditList(BaseModel):
    """The edits of the run."""

    edits: list[dict[str, Any]] = Field(description="All edits, numbered by the topics of the trained model.")
    version: str


class Problem(BaseModel):
    """Why a request was not answered."""

    error: Annotated[str, Field(description="One sentence: what is wrong, and what to do.")]
