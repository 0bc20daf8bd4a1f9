"""What a network may know of the vocabulary before it is trained: frequencies, and words that users give to topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import SettingError, nearest

SEED_STRENGTH = 4.0  # nats: a seed word starts 50 times as likely in its topic as elsewhere


@dataclass(frozen=True)
class Words:
    """The V words of a model."""

    log_frequency: Tensor  # (V,) logarithm of each word's share of the tokens, counts plus one
    idf: Tensor  # (V,) log((1 + documents) / (1 + documents with the word)) + 1
    names: Sequence[str]  # the words
    mean_length: float  # tokens in a document
    seeds: Tensor | None = None  # (V, K) what seed words add to the logarithms of their topics from the start

    def __len__(self) -> int:
        return len(self.log_frequency)


def seed_weights(
    seed_words: Mapping[int, Sequence[str]] | None, vocabulary: Sequence[str], n_topics: int
) -> Tensor | None:
    """Return what seed words add to the logarithms of their topics, (V, K); None where no words are given.

    Args:
        seed_words: words by the number of their topic.

    Raises:
        SettingError: there is no such topic, or no such word.
    """
    if not seed_words:
        return None
    place = {word: number for number, word in enumerate(vocabulary)}
    seeds = torch.zeros(len(place), n_topics)
    for topic, words in seed_words.items():
        if not 0 <= int(topic) < n_topics:
            raise SettingError(f"seed_words names topic {topic}; topics are numbered 0 to {n_topics - 1}")
        missing = [word for word in words if word not in place]
        if missing:
            raise SettingError(
                f"seed words outside the vocabulary: {', '.join(map(repr, missing[:5]))}"
                f"{' and more' if len(missing) > 5 else ''}; {nearest(missing[0], place)}"
            )
        seeds[[place[word] for word in words], int(topic)] = SEED_STRENGTH
    return seeds
