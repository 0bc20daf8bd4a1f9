"""The bodies of requests and answers, as they are checked and as OpenAPI describes them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field


class Texts(BaseModel):
    """Texts whose topics are asked for."""

    model_config = ConfigDict(extra="forbid")

    texts: list[str] | list[list[str]] = Field(
        description="The texts; or the tokens of each, for a model that was trained on tokens.",
        examples=[["The ship left the port."]],
    )


class NewEdits(BaseModel):
    """Edits of topics."""

    model_config = ConfigDict(extra="forbid")

    edits: list[dict[str, Any]] = Field(
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
    version: str = Field(description="Changes whenever the edits change.")
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
