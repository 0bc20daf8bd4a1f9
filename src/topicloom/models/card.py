"""The model card: a README.md beside the files of a saved model, in the form that model hubs read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._version import __version__
from ..display import printable
from ..messages import counted
from ..metrics import topic_diversity
from ..topics.table import Table

_LICENCE = "Not stated. It depends on the training documents; state it here before you publish the model."
_EXAMPLE = """import topicloom as tl

model = tl.load("DIRECTORY")  # this directory
theta = model.transform(["a new text"])  # (1, K) shares
for words in model.topics():
    print(*words)
"""


@dataclass(frozen=True, kw_only=True)
class ModelCard:
    """What the README.md of a saved model says.

    Args:
        model: the name of the model's class.
        n_documents: the number of training documents.
        n_tokens: the tokens of the training documents that are in the vocabulary.
        n_words: the number of words in the vocabulary.
        language: the language code of the tokenizer, if it has one.
        topics: the top words of each topic, to be read.
        names: the name that each topic was given, or None.
        settings: the settings that differ from the defaults of the class, and `random_state`.
        encoder: the name of the encoder of the documents' vectors, if there is one.
        keeps_documents: whether the counts and vectors of the training documents are stored in the model.
        is_edited: whether topics were merged, dropped, split or renamed after training.
    """

    model: str
    n_documents: int
    n_tokens: int
    n_words: int
    topics: Sequence[Sequence[str]]
    names: Sequence[str | None]
    language: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    encoder: str | None = None
    keeps_documents: bool = False
    is_edited: bool = False

    def to_markdown(self) -> str:
        """Return the text of README.md: metadata in YAML, then sections in Markdown."""
        parts = [self._metadata(), self._about(), self._topics(), self._training(), self._limits(), self._use()]
        return "\n".join(parts)

    def _metadata(self) -> str:
        language = f"language: {json.dumps(self.language)}\n" if self.language else ""
        return f"---\nlibrary_name: topicloom\ntags: [topic-model, {json.dumps(self.model)}]\n{language}---\n"

    def _about(self) -> str:
        edited = " Its topics were edited after training." if self.is_edited else ""
        each = self.n_tokens / max(self.n_documents, 1)
        facts = {
            "documents": f"{self.n_documents:,}",
            "tokens in the vocabulary": f"{self.n_tokens:,} ({each:.1f} for each document)",
            "words in the vocabulary": f"{self.n_words:,}",
            "language": self.language or "not stated",
            "vectors": self.encoder or "none",
        }
        table = Table({"training data": list(facts), "": list(facts.values())})
        return (
            f"# {self.model} with {counted(len(self.topics), 'topic')}\n\nA topic model of topicloom {__version__}."
            f"{edited} It gives each document the shares of the topics, and each topic a probability for each word.\n\n"
            f"{table.to_markdown()}"
        )

    def _topics(self) -> str:
        columns: dict[str, Sequence[Any]] = {"topic": range(len(self.topics))}
        if any(name is not None for name in self.names):
            columns["name"] = [printable(name or "") for name in self.names]
        columns["words"] = [[printable(word) for word in words] for words in self.topics]
        return f"## Topics\n\n{Table(columns).to_markdown()}"

    def _training(self) -> str:
        settings = "".join(f"- `{name}`: `{_code(value)}`\n" for name, value in self.settings.items())
        diversity = topic_diversity([list(words) for words in self.topics], top_n=10)
        return (
            f"## Settings\n\nThe other settings of {self.model} have their default values.\n\n{settings}\n"
            f"## Measures\n\n- Diversity of the 10 words above: {diversity:.3f}\n\n`topicloom evaluate RUN` computes "
            "coherence, perplexity and other measures, for which it needs documents.\n"
        )

    def _limits(self) -> str:
        documents = (
            "The model also stores the counts of words and the vectors of all training documents."
            if self.keeps_documents
            else "The training documents are not stored in the model."
        )
        return (
            "## Limits\n\n- Topics are patterns of words in the training documents. Read documents of a topic before "
            "you draw conclusions from its words.\n- Words outside the vocabulary are ignored. Texts of another kind, "
            "time or language than the training documents get shares that say little.\n- Another seed gives "
            "somewhat other "
            f"topics.\n- The vocabulary is made of words of the training documents. {documents}\n"
        )

    def _use(self) -> str:
        return f"## Licence\n\n{_LICENCE}\n\n## Use\n\n```python\n{_EXAMPLE}```"


def _code(value: Any) -> str:
    """Return a setting as code in one line."""
    text = " ".join(printable(json.dumps(value, ensure_ascii=False)).replace("`", "'").split())
    return text if len(text) <= 200 else f"{text[:200]}..."
