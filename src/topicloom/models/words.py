"""Input of a network before training: word frequencies, seed words of topics, and kinds of the documents' fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ..corpus.fields import FieldKind, no_field
from ..errors import SettingError
from ..messages import similar
from ..nn.network import TopicNetwork
from ..text.tokenizing import Fold

SEED_STRENGTH = 4.0  # nats; a seed word starts about 50 times as likely in its topic as in others
_NAMED = 5  # the most words that a message names


@dataclass(frozen=True)
class Words:
    """The V words of a model.

    Attributes:
        log_frequency: (V,) the logarithm of each word's share of the tokens, with one added to its count.
        idf: (V,) the inverse document frequency, log((1 + documents) / (1 + documents with the word)) + 1.
        names: the words.
        n_docs, n_tokens: the number of documents, and of the tokens in all of them.
        seeds: (V, K) what seed words add to the log weights of their topics, or None if there are no seed words.
        fields: the fields of the documents by name: the length of "vectors", 1 for "times" and for a covariate with
            numbers, and the names of the categories for a covariate with categories.
        n_lent: how many of the tokens documents have from their neighbours.
    """

    log_frequency: Tensor
    idf: Tensor
    names: Sequence[str]
    n_docs: int
    n_tokens: float
    seeds: Tensor | None = None
    fields: Mapping[str, FieldKind] = field(default_factory=dict)
    n_lent: float = 0.0

    @property
    def mean_length(self) -> float:
        """The mean number of tokens in a document."""
        return self.n_tokens / self.n_docs

    def field_size(self, name: str) -> int:
        """Return the number of columns of a field: the length of vectors, the number of categories, or 1.

        Raises:
            InputError: the documents of training do not have this field.
        """
        if name not in self.fields:
            raise no_field(name)
        kind = self.fields[name]
        return len(kind) if isinstance(kind, tuple) else kind

    def __len__(self) -> int:
        return len(self.log_frequency)


def with_fields(network: TopicNetwork, words: Words) -> TopicNetwork:
    """Give the network the kinds of the fields that it reads, with which it checks documents, and return it."""
    if network.fields:
        network.fields = {name: words.fields.get(name) for name in network.fields}
    return network


def seed_weights(
    seed_words: Mapping[int, Sequence[str]] | None, vocabulary: Sequence[str], n_topics: int, fold: Fold
) -> Tensor | None:
    """Return what seed words add to the log weights of their topics, (V, K), or None if there are no seed words.

    Args:
        seed_words: words by the number of their topic.
        vocabulary: the V words.
        n_topics: the number of topics K.
        fold: folds a word as the vocabulary is folded.

    Raises:
        SettingError: there is no such topic, a topic has no words, or a word is not in the vocabulary.
    """
    if not seed_words:
        return None
    place = {word: number for number, word in enumerate(vocabulary)}
    seeds = torch.zeros(len(place), n_topics)
    for topic, words in seed_words.items():
        if not 0 <= int(topic) < n_topics:
            raise SettingError(f"`seed_words` names topic {topic}; topics are numbered 0 to {n_topics - 1}")
        if not words:
            raise SettingError(f"`seed_words` has no words for topic {topic}; give some, or leave the topic out")
        folded = {word: word if word in place else fold(word) for word in words}
        missing = [word for word in words if folded[word] not in place]
        if missing:
            hints = ((word, similar(folded[word], place)) for word in missing[:_NAMED])
            named = ", ".join(f"{word!r} ({hint})" if hint else repr(word) for word, hint in hints)
            raise SettingError(
                f"seed words outside the vocabulary: {named}{' and more' if len(missing) > _NAMED else ''}; give other "
                "words, or keep these with a lower `min_df`, a higher `max_df` or another tokenizer"
            )
        seeds[[place[folded[word]] for word in words], int(topic)] = SEED_STRENGTH
    return seeds
