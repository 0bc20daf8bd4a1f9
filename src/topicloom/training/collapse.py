"""The collapse watch: figures that tell, epoch by epoch, whether the topics are still alive and distinct.

A topic model fails quietly: the loss falls, and the latent code says nothing (its divergence from the prior is gone),
or topics repeat each other, or all of them are the most frequent words. No one measure shows it, so several are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from .. import metrics
from ..nn.batch import Batch
from ..nn.network import TopicNetwork
from ..nn.posteriors import Posterior
from ..nn.separation import TOP_N as DIVERSITY_N
from ..ranking import top_words, word_scores
from .batches import BatchReader

COLUMNS = {
    "kl_per_dimension", "active_units", "active_topics", "topic_diversity", "duplicate_topics", "frequent_mass",
}  # fmt: skip
Array = npt.NDArray[Any]

TOP_N, SHARED = 10, 8  # topics that share 8 of their 10 words are one topic
FREQUENT = 50  # words
ALIVE = 0.01  # nats a dimension of the latent code must carry
_SAMPLE = 1024  # documents, or twenty a topic
_MANY = 0.2  # the share of topics that may be silent before it is worth a warning
DOCS_A_TOPIC, WORDS = 5, 200  # of fewer documents or words, no warning: some topics must be empty or alike
_SUSPECTS = (
    "background", "prior", "input_dropout", "weight_decay", "latent_size", "embedding_size", "alpha", "eta",
    "kl_weight", "learning_rate", "min_diversity",
)  # fmt: skip


@dataclass(frozen=True)
class CollapseWatch:
    """Measures a network on the same documents after every epoch."""

    batch: Batch  # some documents of the training corpus
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
        topic_diversity: of the 25 best words of all topics, the share that are different, by the package's ranking or
            by relevance .6, where it is less;
        duplicate_topics: pairs of topics that share 8 of their 10 words;
        frequent_mass: mean share of a topic that is on the 50 most frequent words.
        """
        return self.figures(network.posterior(self.batch), network.topic_word())

    def figures(self, posterior: Posterior, topic_word: Tensor) -> dict[str, Any]:
        """The same from the posterior of the watched documents and the topics (K, V)."""
        figures: dict[str, Any] = {}
        divergence = posterior.divergence()  # (B, L)
        if divergence.shape[1]:
            nats = divergence.cpu().numpy()
            figures["kl_per_dimension"] = [round(float(value), 5) for value in metrics.kl_per_dimension(nats)]
            figures["active_units"] = int(metrics.units_by_divergence(nats, ALIVE))
        figures["active_topics"] = metrics.active_topics(posterior.point().cpu().numpy())
        topics = topic_word.float().cpu().numpy()
        own, relevant = (
            top_words(word_scores(topics, self.word_counts, relevance), DIVERSITY_N) for relevance in (None, 0.6)
        )  # (K, 25) each
        figures["topic_diversity"] = min(float(metrics.topic_diversity(best, DIVERSITY_N)) for best in (own, relevant))
        figures["duplicate_topics"] = duplicates(own[:, :TOP_N])
        figures["frequent_mass"] = float(metrics.frequent_mass(topics, self.word_counts, FREQUENT))
        return figures

    def advice(self, model: Any, row: dict[str, Any]) -> Iterator[str]:
        """A sentence for each thing that has collapsed, with what to change; none on a corpus too small to judge by.

        Args:
            model: the estimator, whose settings the sentences name.
            row: a row of its history_, with the columns that the watch fills.
        """
        n_topics, leading, twins = model.n_topics, row["active_topics"], row["duplicate_topics"]
        epochs = 2 * max(int(row["epoch"]), getattr(model, "epochs", None) or 0)
        if self.batch.n_docs < DOCS_A_TOPIC * n_topics:
            return
        units = len(row.get("kl_per_dimension", ()))
        if units and row["active_units"] < (1 - _MANY) * units:
            softer = {"kl_warmup": max(1, epochs // 4), "kl_weight": getattr(model, "kl_weight", 1) / 2}
            yield (
                f"posterior collapse: only {row['active_units']} of {units} latent dimensions say anything of a "
                f"document; {_cures(model, **softer, epochs=epochs)}"
            )
        if leading < (1 - _MANY) * n_topics:
            heavier = {} if units else {"kl_weight": getattr(model, "kl_weight", 1) * 2}  # draws theta to all corners
            yield (
                f"only {leading} of {n_topics} topics lead any document; "
                f"{_cures(model, **heavier, n_topics=max(2, leading), epochs=epochs)}"
            )
        if self.batch.n_words < WORDS:
            return
        if twins:
            alike = (1 + (1 + 8 * twins) ** 0.5) / 2  # so many that are all alike make as many pairs
            fewer = max(2, n_topics - round(alike - 1))
            firmer = round((1 + getattr(model, "min_diversity", 0)) / 2, 2)
            yield (
                f"{twins} pair{'s' * (twins > 1)} of topics share{'s' * (twins == 1)} {SHARED} of {TOP_N} words; "
                f"{_cures(model, min_diversity=firmer, n_topics=fewer, epochs=epochs)}"
            )
        usual = float(self.word_counts[self._frequent].sum() / self.word_counts.sum())
        if row["frequent_mass"] > (1 + usual) / 2:
            yield (
                f"topics put {row['frequent_mass']:.0%} of their weight on the {FREQUENT} most frequent words, which "
                f"are {usual:.0%} of the corpus; drop these when counting (remove_top={FREQUENT}), or "
                f"{_cures(model, background=True, n_topics=max(2, n_topics // 2))}"
            )

    @property
    def _frequent(self) -> Array:
        return np.argsort(-self.word_counts, kind="stable")[:FREQUENT]


def _cures(model: Any, **known: Any) -> str:
    """'try a=1, b=2 or c=3': first the defaults that the model's settings left, as those are known to work.

    Args:
        known: settings with values that help, whether or not this model has them.
    """
    now = model.get_params(deep=False)
    default = {field.name: field.default for field in fields(model) if field.init}
    left = {name: default[name] for name in _SUSPECTS if name in now and now[name] != default[name]}
    if left:
        known.pop("n_topics", None)  # the number of topics is what the user wants
    if default.get("epochs") is not None and now["epochs"] < default["epochs"]:
        known["epochs"] = default["epochs"]
    other = {name: value for name, value in known.items() if name in now and now[name] != value and name not in left}
    said = [f"{name}={value!r}" for name, value in (left | other).items()] or ["more documents"]
    return f"try {', '.join(said[:-1])}{' or ' * (len(said) > 1)}{said[-1]}"


def duplicates(top: Array) -> int:
    """Pairs of topics that share at least 8 of their 10 words.

    Args:
        top: (K, 10) word ids.
    """
    return metrics.duplicate_topics(top, TOP_N, SHARED)
