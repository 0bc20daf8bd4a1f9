"""The collapse watch: figures that tell, epoch by epoch, whether the topics are still alive and distinct.

A topic model fails quietly: the loss falls, and the latent code says nothing (its divergence from the prior is gone), or
topics repeat each other, or all of them are the most frequent words. No single measure shows it, so several are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from .batches import BatchReader
from .nn.network import TopicNetwork
from .nn.sparse import SparseBatch
from .ranking import top_words, word_scores

COLUMNS = {"kl_per_dimension", "active_units", "active_topics", "duplicate_topics", "frequent_mass"}
Array = npt.NDArray[Any]

TOP_N, SHARED = 10, 8  # topics that share 8 of their 10 words are one topic
FREQUENT = 50  # words
ALIVE = 0.01  # nats a dimension of the latent code must carry
_SAMPLE = 1024  # documents, or twenty a topic
_MANY = 0.2  # the share of topics that may be silent before it is worth a warning


@dataclass(frozen=True)
class CollapseWatch:
    """Measures a network on the same documents after every epoch."""

    batch: SparseBatch  # some documents of the training corpus
    word_counts: Array  # (V,)

    @classmethod
    def of(cls, reader: BatchReader, word_counts: Array, n_topics: int) -> CollapseWatch:
        """A watch over an even sample of a reader's documents."""
        return cls(reader.sample(max(_SAMPLE, 20 * n_topics)), word_counts)

    def __call__(self, network: TopicNetwork) -> dict[str, Any]:
        """The columns of history_ that the watch fills.

        kl_per_dimension: mean divergence of each latent dimension from its prior, in nats (models that have one);
        active_units: dimensions in which it is above 0.01;
        active_topics: topics that are the largest of some document;
        duplicate_topics: pairs of topics that share 8 of their 10 words;
        frequent_mass: mean share of a topic that is on the 50 most frequent words.
        """
        posterior = network.posterior(self.batch)
        figures: dict[str, Any] = {}
        divergence = posterior.divergence()  # (B, L)
        if divergence.shape[1]:
            per_dimension = divergence.mean(0).cpu()  # (L,)
            figures["kl_per_dimension"] = [round(float(value), 5) for value in per_dimension]
            figures["active_units"] = int((per_dimension > ALIVE).sum())
        figures["active_topics"] = len(torch.unique(posterior.point().argmax(1)))
        topic_word = network.topic_word().float().cpu().numpy()
        figures["duplicate_topics"] = duplicates(top_words(word_scores(topic_word, self.word_counts), TOP_N))
        figures["frequent_mass"] = float(topic_word[:, self._frequent].sum(1).mean())
        return figures

    def advice(self, settings: Any, row: dict[str, Any]) -> Iterator[str]:
        """A sentence for each thing that has collapsed, with what to change.

        Args:
            settings: the estimator, whose settings the sentences name.
            row: the last of its history_.
        """
        n_topics = settings.n_topics
        units = len(row.get("kl_per_dimension", ()))
        if units and row["active_units"] < (1 - _MANY) * units:
            yield (
                f"posterior collapse: only {row['active_units']} of {units} latent dimensions say anything of a "
                f"document; try kl_warmup={max(1, settings.epochs // 3)} or kl_weight={settings.kl_weight / 2:g}"
            )
        if row["active_topics"] < (1 - _MANY) * min(n_topics, self.batch.n_docs):
            yield (
                f"only {row['active_topics']} of {n_topics} topics lead any document; "
                f"try n_topics={max(2, row['active_topics'])}, or more epochs"
            )
        if row["duplicate_topics"]:
            yield (
                f"{row['duplicate_topics']} pairs of topics share {SHARED} of their {TOP_N} words; "
                f"try fewer topics (n_topics){self._background(settings)}, or more epochs"
            )
        usual = float(self.word_counts[self._frequent].sum() / self.word_counts.sum())
        if row["frequent_mass"] > (1 + usual) / 2:
            yield (
                f"topics put {row['frequent_mass']:.0%} of their weight on the {FREQUENT} most frequent words, which "
                f"are {usual:.0%} of the corpus; drop those when counting (remove_top={FREQUENT})"
                f"{self._background(settings)}"
            )

    @property
    def _frequent(self) -> Array:
        return np.argsort(-self.word_counts, kind="stable")[:FREQUENT]

    @staticmethod
    def _background(settings: Any) -> str:
        return "" if getattr(settings, "background", True) else ", or background=True"


def duplicates(top: Array) -> int:
    """Pairs of topics that share at least 8 of their 10 words.

    Args:
        top: (K, 10) word ids.
    """
    n_topics, n_words = top.shape
    member = np.zeros((n_topics, int(top.max()) + 1), np.float32)
    member[np.arange(n_topics)[:, None], top] = 1
    shared = member @ member.T  # (K, K)
    return int((np.triu(shared, 1) >= SHARED * n_words / TOP_N).sum())
