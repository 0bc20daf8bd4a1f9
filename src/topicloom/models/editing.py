"""Edits of a fitted model: topics that people merged, dropped, renamed, split or added.

An edited model is the trained model with an edited network and a list of edits. The trained network infers theta, and
the steps of the edits are applied to it (nn/edited.py). An edited model is used, saved and loaded like any other.
`Editor` applies edits to a network and to documents whose topics are known. `fit_parts` splits a topic by LDA of the
tokens that it has in each document. `fit_added` learns topics beside those that there are.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from ..corpus import Corpus
from ..embeddings.document_vectors import unit_vectors
from ..errors import InputError
from ..messages import counted
from ..nn.edited import AddedTopics, EditedNetwork, Regroup, SplitTopic, Step, topic_counts
from ..nn.execution import full_precision
from ..nn.mean_field import MeanFieldNetwork, mean_field_network
from ..nn.network import TopicNetwork
from ..nn.sparse import TINY, Batch, SparseCounts
from ..topics.document_topics import DocumentTopics
from ..topics.edits import Edit, Numbering, checked_edits, renamed, translated
from ..topics.hierarchy import hierarchy
from ..topics.saved import CONFIG, WEIGHTS
from .inference import Array, device_of, each_batch

logger = logging.getLogger("topicloom")

BASE = "base."  # the prefix of the names of the trained network's weights


@dataclass(frozen=True)
class AppliedEdits:
    """The edits of a trained model, and the numbers and names of its topics.

    Attributes:
        edits: all edits since the training, with the numbers of the trained topics.
        numbering: the present columns of theta of these numbers.
        names: the given names of columns.
    """

    edits: list[Edit]
    numbering: Numbering
    names: dict[int, str]

    def as_json(self, network: EditedNetwork) -> dict[str, Any]:
        """Return the entry "edited" of config.json, given the network with the steps of the edits."""
        return {
            "edits": self.edits,
            "columns": [[number, column] for number, column in self.numbering.columns.items()],
            "parts": self.numbering.parts,
            "steps": [step.kind for step in network.each_step()],
        }


def edited_network(network: TopicNetwork) -> EditedNetwork:
    """Return a network to which steps can be added."""
    return network if isinstance(network, EditedNetwork) else EditedNetwork(network, [])


def prepared_edits(
    edits: Iterable[Mapping[str, Any]], n_topics: int, matching: Sequence[int | None] | None = None
) -> list[Edit]:
    """Check edits, and translate those of another model.

    Args:
        edits: the edits.
        n_topics: the number of topics of the model that they are for.
        matching: the number in this model of each topic of the other one, None for a topic without a counterpart.
    """
    checked = checked_edits(edits)
    if matching is None:
        return checked
    numbers = {old: new for old, new in enumerate(matching) if new is not None}
    # "rows" are rows of the documents of the other topics.
    checked = [{name: value for name, value in edit.items() if name != "rows"} for edit in checked]
    result = translated(checked, numbers, len(matching), n_topics)
    for sentence in result.left_out:
        logger.warning("%s", sentence)
    return result.edits


class Editor:
    """Applies edits one after another, to a network and to documents.

    Args:
        network: the network of a fitted model, edited before or not.
        before: the edits that it has, or None.
        vocabulary: the V words.
        word_counts: (V,) the tokens of each word in the training documents.
        corpus: documents over these words, or None.
        documents: their topics.
        read: returns documents as inference reads them, such as with words of their neighbours.
    """

    def __init__(
        self,
        network: TopicNetwork,
        before: AppliedEdits | None,
        vocabulary: Sequence[str],
        word_counts: Array,
        *,
        corpus: Corpus | None,
        documents: DocumentTopics | None,
        read: Callable[[Corpus], Corpus],
    ) -> None:
        self.corpus, self.documents, self.read = corpus, documents, read
        self.vocabulary, self.word_counts, self.before = vocabulary, word_counts, before
        self.network = edited_network(network)
        self.numbering = Numbering.start(len(self.network.prior_theta()))
        self.names = {} if before is None else dict(before.names)
        self.edits: list[Edit] = []

    @full_precision()
    def apply(self, edit: Edit) -> None:
        """Apply one checked edit."""
        if "rename" in edit:
            self.names = renamed(self.names, edit["rename"], self.numbering)
        elif "split" in edit:
            edit = self._split(edit)
        elif "add" in edit:
            self._add_topics(edit)
        else:
            edit = self._regroup(edit)
        self.edits.append(edit)

    def _regroup(self, edit: Edit) -> Edit:
        if "merge" in edit:
            assign = self.numbering.merged(edit["merge"])
        elif "drop" in edit:
            assign = self.numbering.without(edit["drop"])
        else:
            if "groups" not in edit:
                edit = edit | {"groups": self._similar(edit["reduce_to"])}
            assign = self.numbering.grouped([[self.numbering.column(n) for n in group] for group in edit["groups"]])
        documents = self.documents
        known = None if documents is None or documents.empty.all() else documents.shares
        shares = self.network.prior_theta() if known is None else torch.from_numpy(known)
        device = device_of(self.network.base)
        self._add(Regroup(torch.from_numpy(assign).to(device), shares.float().clone().to(device)))
        self.names = _names_after(self.names, assign)
        self.numbering = self.numbering.regrouped(assign)
        return edit

    def _similar(self, n_topics: int) -> list[list[int]]:
        """Return the groups that become one topic each if n_topics are left, by the numbers of their topics."""
        if n_topics >= len(self.numbering):
            raise InputError(
                f"`reduce_to` should be fewer than the {len(self.numbering)} topics that there are; it is {n_topics}"
            )
        components = self.network.topic_word().cpu().numpy()
        if self.documents is None:
            theta, empty = self.network.prior_theta()[None].cpu().numpy(), None
        else:
            theta, empty = self.documents.theta, self.documents.empty
        weight = 0.5 if self.documents is not None else 1.0
        tree = hierarchy(components, theta, self.word_counts, self.vocabulary, empty=empty, word_weight=weight)
        groups = [[self.numbering.numbers[column] for column in group] for group in tree.cut(n_topics)]
        return sorted(sorted(group) for group in groups if len(group) > 1)

    def _split(self, edit: Edit) -> Edit:
        column = self.numbering.column(edit["split"])
        if self.corpus is None or self.documents is None:
            raise InputError(
                f"topic {edit['split']} can be split only with documents; give those of training: `documents`"
            )
        parts = fit_parts(self.network, self.corpus, self.documents, column, edit)
        self._add(SplitTopic(column, parts).to(device_of(self.network.base)))
        self.names = {each: name for each, name in self.names.items() if each != column}
        self.numbering = self.numbering.after_split(edit["into"])
        return edit

    def _add_topics(self, edit: Edit) -> None:
        if self.corpus is None or self.documents is None:
            raise InputError("topics can be added only with documents to learn them from; give `documents`")
        corpus, documents, rows = self.corpus, self.documents, edit.get("rows")
        if rows and max(rows) >= corpus.n_docs:
            raise InputError(
                f"topics are to be learned from document {max(rows)}, and the corpus has "
                f"{counted(corpus.n_docs, 'document')}; leave out `rows`"
            )
        self._add(fit_added(self.network, corpus, documents, edit).to(device_of(self.network.base)))
        self.numbering = self.numbering.after_added(edit["add"])

    def _add(self, step: Step) -> None:
        """Add a step to the network, and apply it to the topics of the documents."""
        before = self.network
        self.network = before.extended(step)
        if self.documents is None or self.corpus is None:
            return
        theta, network, first = self.documents.theta, self.network, len(before.steps)
        device = device_of(before.base)

        def read(batch: Any) -> Tensor:
            rows = batch.rows.cpu().numpy()
            old = torch.from_numpy(np.array(theta[rows], np.float32)).to(device)  # a copy, as theta may be on disk
            return network.edit(old, batch, first)

        has_fields = "vectors" not in network.fields or self.corpus.vectors is not None
        corpus = self.corpus if isinstance(step, Regroup) else self._read_corpus  # regrouping reads theta alone
        parts = list(each_batch(network if has_fields else network.base, corpus, read))
        average = network.prior_theta().cpu().numpy()
        new: Array = np.concatenate([np.empty((0, len(average)), np.float32), *parts])
        new[self.documents.empty] = average
        self.documents = replace(self.documents, theta=new)

    @cached_property
    def _read_corpus(self) -> Corpus:
        assert self.corpus is not None
        return self.read(self.corpus)

    def applied_edits(self) -> AppliedEdits:
        """Return all edits since the training."""
        if self.before is None:
            return AppliedEdits(self.edits, self.numbering, self.names)
        return AppliedEdits(*_continued(self.before, self.edits, self.numbering), self.names)


def _continued(before: AppliedEdits, edits: list[Edit], numbering: Numbering) -> tuple[list[Edit], Numbering]:
    """Return all edits since the training, by the numbers of the trained topics.

    Args:
        before: the earlier edits.
        edits: further edits, numbered by the topics after the earlier edits.
        numbering: the columns of these numbers after the further edits.
    """
    known, n_topics = before.numbering, len(before.numbering)
    n_parts = numbering.parts
    first_new = known.n_start + known.parts
    numbers = dict(enumerate(known.numbers)) | {n_topics + part: first_new + part for part in range(n_parts)}
    new = translated(edits, numbers, n_topics, first_new).edits
    for edit in new:
        if "drop" in edit:  # a topic that was merged before is dropped by all its numbers
            edit["drop"] = [each for n in edit["drop"] for each in (known.merged_with(n) if n < first_new else [n])]
    columns: dict[int, int | None] = {
        number: None if column is None else numbering.columns[column] for number, column in known.columns.items()
    }
    columns |= {first_new + part: numbering.columns[n_topics + part] for part in range(n_parts)}
    lowest = tuple(numbers[number] for number in numbering.numbers)
    return [*before.edits, *new], Numbering(columns, lowest, known.n_start, known.parts + n_parts)


def _names_after(names: Mapping[int, str], assign: Array) -> dict[int, str]:
    """Return the names of columns after a merge or drop. A merged topic keeps the first name of its parts."""
    kept: dict[int, str] = {}
    for column in sorted(names):
        if assign[column] >= 0:
            kept.setdefault(int(assign[column]), names[column])
    return kept


# What topics learn from


def _at_words(
    network: EditedNetwork,
    corpus: Corpus,
    theta: Array,
    value: Callable[[Tensor, Tensor, SparseCounts], Tensor],
) -> sp.csr_array:
    """Return a number for each word of each document, (D, V), with the non-zeros of the counts.

    Args:
        network: the network with the topics.
        corpus: documents over its words.
        theta: (D, K) their topics.
        value: returns the numbers (N,) of a batch, given theta (B, K), the topics (V, K) and the counts.
    """
    beta_t, _ = network.stages[-1]

    def read(batch: Batch) -> Tensor:
        assert batch.rows is not None
        shares = beta_t.new_tensor(np.array(theta[batch.rows.cpu().numpy()], np.float32))  # (B, K)
        return value(shares, beta_t, batch.counts)

    values = np.concatenate([np.empty(0, np.float32), *each_batch(network.base, corpus, read)])
    return sp.csr_array((values, corpus.counts.indices, corpus.counts.indptr), shape=corpus.counts.shape)


def _sampled(rows: Array, most: int, seed: int) -> Array:
    """Return documents, or a sample of so many if there are more."""
    if len(rows) <= most:
        return rows
    return np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))


# The parts of a topic

_FEWEST_PASSES, _MOST_PASSES = 6, 40
_DOCUMENTS_READ = 60_000  # documents read in all passes, if the number of passes allows it
_FEWEST_TOKENS = 1.0  # documents with fewer tokens of the topic are left out
_MOST_DOCUMENTS = 10_000  # topics are learned from a sample of this size if there are more documents
_ETA = 0.1  # the Dirichlet parameter of the parts' words; a larger one makes one part take most of the topic
_SMALLEST = 0.01  # smaller counts are left out


def fit_parts(
    network: EditedNetwork, corpus: Corpus, documents: DocumentTopics, column: int, edit: Edit
) -> MeanFieldNetwork:
    """Learn the parts of a topic.

    x_dv p(k | v, d) are the tokens of topic k in each document. LDA (online variational Bayes) divides them among n
    topics, which gives r(j | v), the share of part j in word v. The word distribution of part j, beta_jv, is in
    proportion to beta_kv r(j | v). The mean of the parts, weighted by their shares, is the topic itself.

    Args:
        network: the network with the topic.
        corpus: documents over its words.
        documents: their topics.
        column: the topic k.
        edit: "into" is the number of parts n, and "random_state" the seed.

    Returns:
        a network with the parts as topics, the largest first, and their shares as the Dirichlet parameter.

    Raises:
        InputError: too few documents have the topic.
    """
    n_parts = edit["into"]
    part = _at_words(network, corpus, documents.theta, partial(topic_counts, column))
    rows = _sampled(np.flatnonzero(part.sum(axis=1) >= _FEWEST_TOKENS), _MOST_DOCUMENTS, edit["random_state"])
    part = part[rows]
    part.data[part.data < _SMALLEST] = 0
    part.eliminate_zeros()
    words = np.unique(part.indices)
    if part.shape[0] < n_parts or len(words) < n_parts:
        raise InputError(
            f"too few documents have words of topic {edit['split']} to split it into {n_parts}: {part.shape[0]} of "
            f"{corpus.n_docs}, with {counted(len(words), 'different word')}; give more documents or ask for fewer parts"
        )
    topic = network.stages[-1][0][:, column].cpu().double().numpy()  # (V,)
    given = np.full((n_parts, len(topic)), 1 / n_parts)  # r(j | v) of words that the documents do not have
    shares, given[:, words] = _assignments(part[:, words].astype(np.float64), n_parts, edit["random_state"])
    given[:, np.setdiff1d(np.arange(len(topic)), words)] = shares[:, None]
    parts = given * topic + 1e-12  # (n, V)
    shares = parts.sum(axis=1) / parts.sum()
    order = np.argsort(-shares, kind="stable")
    return mean_field_network(parts[order].astype(np.float32), np.maximum(shares[order], 1e-3))


def _assignments(counts: sp.csr_array, n_parts: int, seed: int) -> tuple[Array, Array]:
    """Return the shares of the parts, (n,), and r(j | v), (n, V), which sums to 1 over the parts."""
    from .online_lda import OnlineRun  # only a split needs LDA

    n_passes = min(_MOST_PASSES, max(_FEWEST_PASSES, _DOCUMENTS_READ // counts.shape[0]))
    n_batches = math.ceil(_MOST_PASSES / n_passes)  # batches of a pass
    run = OnlineRun(
        n_parts,
        counts.shape[1],
        counts.shape[0],
        alpha=None,
        eta=_ETA,
        batch_size=math.ceil(counts.shape[0] / n_batches),  # in small batches, one part tends to take all of the topic
        seed=seed,
        pseudo_counts=None,
    )
    for _ in range(n_passes):
        run.learn(counts)
    theta = np.asarray(run.model.transform(counts))  # (D, n); scikit-learn may be set to return data frames
    tokens = counts.sum(axis=1)
    shares: Array = tokens @ theta / tokens.sum()
    weighted = shares[:, None] * run.topics / run.topics.sum(axis=1, keepdims=True)
    return shares, weighted / weighted.sum(axis=0)


# Added topics

_EM_STEPS = 60
_PRIOR_TOKENS = 1.0, 0.02  # of all old topics together, and of each new one: they decide where a document says little


def fit_added(network: EditedNetwork, corpus: Corpus, documents: DocumentTopics, edit: Edit) -> AddedTopics:
    """Learn topics beside those of a network, which are held.

    In a document, the old topics are one distribution over the words, as its theta mixes them. EM divides the tokens
    between this distribution and the new topics, so that these take the words that the old ones explain badly. LDA of
    the documents is the start. If they have vectors, clusters of these are the start, and a regression on the vectors
    tells the documents of the new topics from all others.

    Args:
        network: the network with the old topics.
        corpus: documents over its words.
        documents: their topics.
        edit: "add" is the number of new topics n, "rows" are the documents to learn them from (all, if it is not
            there), and "random_state" is the seed.

    Returns:
        the new topics, the largest first.

    Raises:
        InputError: there are too few documents.
    """
    n_new, seed, everything, rows = edit["add"], edit["random_state"], corpus, edit.get("rows")
    if rows is not None:
        corpus, documents = corpus[rows], documents[rows]
    likely = _at_words(
        network, corpus, documents.theta, lambda theta, beta_t, counts: counts.sampled_product(theta, beta_t) + TINY
    )
    chosen = _sampled(np.flatnonzero(~corpus.is_empty), _MOST_DOCUMENTS, seed)
    counts, likely = corpus.counts[chosen].astype(np.float64), likely[chosen]
    words, columns = np.unique(counts.indices, return_inverse=True)
    if len(chosen) < n_new or len(words) < n_new:
        raise InputError(
            f"{counted(len(chosen), 'document')} with {counted(len(words), 'different word')} are too few to learn "
            f"{counted(n_new, 'topic')} from; give more documents, or ask for fewer topics"
        )
    by_vector = None
    if rows is not None and corpus.vectors is not None:
        by_vector = _by_vectors(everything, np.asarray(rows), chosen, n_new, seed)
    tokens = np.bincount(columns, counts.data, len(words))  # (W,)
    if n_new == 1:
        given = np.ones((1, len(words)))
    elif by_vector is not None:
        given = np.stack([np.asarray(counts[by_vector[1] == each].sum(axis=0))[words] for each in range(n_new)]) + _ETA
        given /= given.sum(axis=0)
    else:
        given = _assignments(counts[:, words], n_new, seed)[1]
    topics = given * tokens + _ETA
    topics /= topics.sum(axis=1, keepdims=True)
    of_document = np.repeat(np.arange(len(chosen)), np.diff(counts.indptr))  # (N,)
    to_documents = sp.csr_array((np.ones(counts.nnz), np.arange(counts.nnz), counts.indptr))  # (D, N)
    to_words = sp.csr_array((np.ones(counts.nnz), (columns, np.arange(counts.nnz))), shape=(len(words), counts.nnz))
    alpha = np.array([_PRIOR_TOKENS[0], *[_PRIOR_TOKENS[1]] * n_new])
    shares = np.full((len(chosen), 1 + n_new), 1 / (1 + n_new))
    for _ in range(_EM_STEPS):
        parts = shares[of_document] * np.column_stack([likely.data, topics[:, columns].T])  # (N, 1 + n)
        parts *= (counts.data / parts.sum(axis=1))[:, None]
        topics = (to_words @ parts[:, 1:]).T + _ETA
        topics /= topics.sum(axis=1, keepdims=True)
        shares = to_documents @ parts + alpha
        shares /= shares.sum(axis=1, keepdims=True)
    order = np.argsort(-shares[:, 1:].sum(axis=0), kind="stable")
    found = np.full((len(corpus.vocabulary), n_new), 1e-12)
    found[words] += topics[order].T
    arrays = [found / found.sum(axis=0), alpha, *([] if by_vector is None else [by_vector[0][:, order]])]
    return AddedTopics(*(torch.tensor(np.float32(each)) for each in arrays))


_MOST_OTHERS = 20_000  # documents of the old topics that the regression reads
_INVERSE_PENALTY = 10.0  # of the regression


def _by_vectors(corpus: Corpus, rows: Array, chosen: Array, n_new: int, seed: int) -> tuple[Array, Array] | None:
    """Return the regression that tells the documents of new topics from the others, and the topics of its documents.

    Clusters of the vectors are the new topics. Each class has the same weight, since the rare ones are the new ones.

    Args:
        corpus: all documents, with vectors.
        rows: the documents of the new topics.
        chosen: those of `rows` that are read, as indices of `rows`.
        n_new: the number of new topics n.
        seed: the seed of the clusters and of the sample of other documents.

    Returns:
        (E + 1, n) the weights and, in the last row, the constants, as log odds compared with the old topics; and the
        new topic of each of the chosen ones. None if too few different documents have a vector.
    """
    from sklearn.cluster import KMeans
    from sklearn.linear_model import LogisticRegression

    assert corpus.vectors is not None
    own = unit_vectors(np.asarray(corpus.vectors[rows[chosen]]))
    others = _sampled(np.setdiff1d(np.flatnonzero(~corpus.is_empty), rows), _MOST_OTHERS, seed)
    directed = own.any(axis=1)
    if not len(others) or len(np.unique(own[directed], axis=0)) < n_new:
        return None
    clusters = KMeans(n_new, n_init=5, random_state=seed).fit(own[directed])
    groups = clusters.predict(own)
    values = np.concatenate([unit_vectors(np.asarray(corpus.vectors[others])), own[directed]])
    classes = np.concatenate([np.zeros(len(others), np.intp), 1 + groups[directed]])
    learned = LogisticRegression(C=_INVERSE_PENALTY, class_weight="balanced", max_iter=300).fit(values, classes)
    weights = np.concatenate([learned.coef_.T, learned.intercept_[None]])  # (E + 1, 1 + n), or one column if n is 1
    return (weights if n_new == 1 else weights[:, 1:] - weights[:, :1]), groups


# Saved edits


def trained_part(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights of the trained network among those of an edited one, by their own names."""
    return {name.removeprefix(BASE): tensor for name, tensor in tensors.items() if name.startswith(BASE)}


def restored_edits(
    network: TopicNetwork, config: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> tuple[EditedNetwork, AppliedEdits]:
    """Return a saved edited network and its edits.

    Args:
        network: the trained network.
        config: the content of config.json.
        tensors: the content of model.safetensors.

    Raises:
        ValueError: the files do not fit together.
    """
    about = config["edited"]
    steps: list[Step] = []
    for number, step in enumerate(about["steps"]):
        own = {
            name.removeprefix(f"steps.{number}."): tensor
            for name, tensor in tensors.items()
            if name.startswith(f"steps.{number}.")
        }
        if not all(bool(tensor.isfinite().all()) for tensor in own.values()):
            raise ValueError(f"step {number} in {WEIGHTS} contains a number that is not finite")
        steps.append(_step(step, own).to(device_of(network)))
    n_start = len(network.prior_theta())
    try:
        edited = EditedNetwork(network, steps)
    except RuntimeError as error:
        raise ValueError(f"the edits in {CONFIG} and {WEIGHTS} do not fit together: {error}") from None
    columns = {int(number): None if column is None else int(column) for number, column in about["columns"]}
    n_topics = len(edited.prior_theta())
    lowest = tuple(min(n for n, column in columns.items() if column == k) for k in range(n_topics))
    names = {k: str(name) for k, name in enumerate(config["topic_names"]) if name is not None}
    numbering = Numbering(columns, lowest, n_start, int(about["parts"]))
    return edited, AppliedEdits(checked_edits(about["edits"]), numbering, names)


def _step(kind: str, tensors: Mapping[str, Tensor]) -> Step:
    if kind == "regroup":
        return Regroup(tensors["assign"], tensors["shares"])
    if kind == AddedTopics.kind:
        if tensors["alpha"].shape != (1 + tensors["beta_t"].shape[1],):
            raise ValueError(f"added topics in {WEIGHTS} have tensors of different sizes")
        by_vector = tensors.get("by_vector")
        if by_vector is not None and (by_vector.dim() != 2 or by_vector.shape[1] != tensors["beta_t"].shape[1]):
            raise ValueError(f"added topics in {WEIGHTS} have tensors of different sizes")
        return AddedTopics(tensors["beta_t"], tensors["alpha"], by_vector)
    beta_t = tensors["network.beta_t"]
    network = MeanFieldNetwork(*beta_t.shape)
    if tensors["network.alpha"].shape != network.alpha.shape:
        raise ValueError(f"a split in {WEIGHTS} has tensors of different sizes")
    network.beta_t.copy_(beta_t)
    network.alpha.copy_(tensors["network.alpha"])
    return SplitTopic(int(tensors["topic"]), network)
