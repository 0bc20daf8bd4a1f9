"""The data of a page: what the views show, in parts that the page reads when it needs them.

The part "core" has all that is shown first. "documents" has the topics, the position, the class and the time of each
document, "texts" their texts, "words" the topics as distributions over words, and "inference" the model's encoder.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...text.characters import replace_surrogates
from ..stages import changes_of_stage
from .inference import inference_part, tokenizer_settings
from .packing import Array, pack
from .positions import document_positions, topic_positions
from .relations import class_shares, period_shares, topic_tree

if TYPE_CHECKING:
    from ...topics.view import Topics

logger = logging.getLogger("topicloom")

MOST_DOCUMENTS = 100_000
_LARGEST_SHARES = 10  # of a document; further ones are left out
_SMALLEST_SHARE = 0.01
_WORDS_OF_TOPIC = 30
_WORDS_OF_DOCUMENT = 40  # where the text of a document is not known, but its counts are
_TEXT_BYTES = 24_000_000  # of all texts together; longer ones are cut
_LENGTHS = (20_000, 10_000, 5_000, 3_000, 2_000, 1_500, 1_000, 700, 500, 350, 240, 160, 100, 60, 30)


@dataclass(frozen=True)
class PageOptions:
    """What a page contains.

    Attributes:
        title: the heading; None is the name of the model.
        texts: whether the texts of the documents are in the page.
        most_documents: if there are more documents, so many are drawn at random; shares are those of all documents.
        api: the address of a service that documents and inference are read from, such as "/api"; None puts both into
            the page.
        version: what the service calls the topics of the page, by which it notices that they were edited since.
        infer: whether the page has a box that finds the topics of a text.
    """

    title: str | None = None
    texts: bool = True
    most_documents: int = MOST_DOCUMENTS
    api: str | None = None
    version: str | None = None
    infer: bool = True


def page_parts(topics: Topics, options: PageOptions, metrics: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Return the parts of a page, by name, as text.

    Args:
        topics: the topics of a model together with documents.
        options: what the page contains.
        metrics: the contents of metrics.json, if there is a run.
    """
    n_docs = len(topics.documents)
    chosen = np.arange(n_docs)
    if n_docs > options.most_documents:
        drawn = np.random.default_rng(0).permutation(n_docs)[: options.most_documents]
        chosen = np.sort(drawn)
    parts = {"words": _words_part(topics)}
    notes: dict[str, Any] = {}
    if options.infer and options.api is None:
        try:
            parts["inference"], notes["precision"] = inference_part(topics)
        except InputError as error:
            notes["no_inference"] = str(error)
            logger.info("the page has no box for new texts: %s", error)
    if options.texts and options.api is None:
        parts["texts"], notes["text_length"], notes["text_kind"] = _texts_part(topics, chosen)
    parts["documents"] = _documents_part(topics, chosen)
    return {"core": _core_part(topics, options, metrics or {}, len(chosen), notes), **parts}


def _core_part(
    topics: Topics, options: PageOptions, metrics: Mapping[str, Any], n_shown: int, notes: Mapping[str, Any]
) -> str:
    documents, corpus = topics.documents, topics.corpus
    tree = topic_tree(topics)
    shares = topics.shares.astype(np.float32)
    main = np.bincount([k for k in documents.main_topics if k is not None], minlength=topics.n_topics)
    digest = hashlib.sha256(topics.components.tobytes()).hexdigest()[:16]
    values = {
        "key": digest,
        "fingerprint": getattr(topics.model, "fingerprint", None),
        "title": options.title or "topicloom",
        "model": type(getattr(topics.model, "origin", topics.model)).__name__,
        "n_topics": topics.n_topics,
        "n_docs": len(documents),
        "n_empty": int(documents.empty.sum()),
        "n_shown": n_shown,
        "n_words": len(topics.vocabulary),
        "n_tokens": int(corpus.counts.sum()),
        "names": topics.names,
        "words": [[word for word, _ in topics.words_of(k, _WORDS_OF_TOPIC)] for k in range(topics.n_topics)],
        "api": options.api,
        "version": options.version,
        "tree": [[int(left), int(right), round(float(at), 4)] for left, right, at, _ in tree.linkage],
        "periods": period_shares(topics),
        "classes": class_shares(topics),
        "quality": _quality(metrics, topics.model),
        "tokenizer": tokenizer_settings(topics.model.tokenizer_),
        **notes,
    }
    arrays = {
        "shares": shares,
        "main": main.astype(np.int32),
        "places": topic_positions(tree.distances, shares),
        "distances": np.round(tree.distances * 255).clip(0, 255).astype(np.uint8),
    }
    return pack(values, arrays)


def _documents_part(topics: Topics, chosen: Array) -> str:
    documents = topics.documents
    theta = documents.theta[chosen]
    empty = documents.empty[chosen]
    sizes, numbers, shares = largest_shares(theta, empty)
    arrays: dict[str, Array] = {
        "sizes": sizes,
        "topics": numbers,
        "shares": shares,
        "places": np.round(document_positions(theta) * 65535).astype(np.uint16),
        "tokens": topics.corpus.counts.sum(axis=1)[chosen].clip(0, 65535).astype(np.uint16),
    }
    values: dict[str, Any] = {}
    if len(chosen) < len(documents):
        arrays["rows"] = chosen.astype(np.int32)
    ids = [documents.ids[row] for row in chosen.tolist()]
    if ids != [str(row) for row in chosen.tolist()]:
        values["ids"] = ids
    if documents.labels is not None:
        names = sorted(set(documents.labels) - {""})
        code = {name: number + 1 for number, name in enumerate(names)}
        codes = np.array([code.get(documents.labels[row], 0) for row in chosen.tolist()])
        values["labels"] = names
        arrays["labels"] = codes.astype(np.uint8 if len(names) < 256 else np.int32)
    if documents.times is not None:
        times = documents.times[chosen]
        seconds = times.astype("datetime64[s]").astype(np.float64)
        seconds[np.isnat(times)] = np.nan
        arrays["times"] = seconds
    return pack(values, arrays)


def largest_shares(theta: Array, empty: Array) -> tuple[Array, Array, Array]:
    """Return the largest topics of documents, largest first.

    Args:
        theta: (n, K).
        empty: (n,) documents without a known word, which have no topics.

    Returns:
        the number of topics of each document (n,), their numbers (N,) and their shares (N,) in 255ths.
    """
    most = min(_LARGEST_SHARES, theta.shape[1])
    order = np.argsort(-theta, axis=1, kind="stable")[:, :most]  # (n, most)
    best = np.take_along_axis(theta, order, axis=1)
    kept = best >= _SMALLEST_SHARE
    kept[:, 0] = True
    kept[empty] = False
    numbers = order[kept].astype(np.uint8 if theta.shape[1] <= 256 else np.uint16)
    return kept.sum(axis=1).astype(np.uint8), numbers, np.round(best[kept] * 255).clip(0, 255).astype(np.uint8)


def _words_part(topics: Topics) -> str:
    """The topics of each word as parts of its largest weight, in half precision."""
    beta_t = topics.components.T  # (V, K)
    largest = beta_t.max(axis=1)
    parts = beta_t / np.maximum(largest[:, None], 1e-30)
    arrays = {
        "parts": np.where(parts < 1e-5, 0, parts).astype(np.float16),
        "largest": largest.astype(np.float32),
        "counts": topics.word_counts.astype(np.float32),
    }
    return pack({"vocabulary": topics.vocabulary}, arrays)


def _texts_part(topics: Topics, chosen: Array) -> tuple[str, int | None, str]:
    """Return the texts, the length at which they are cut (None: none is), and what they are."""
    texts, kind = _texts(topics, chosen.tolist())
    texts = [replace_surrogates(text) for text in texts]
    sizes = np.array([len(text.encode()) for text in texts], dtype=np.int64)
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    cut = None
    if len(texts) and (lengths.max() > _LENGTHS[0] or sizes.sum() > _TEXT_BYTES):
        per_character = sizes.sum() / max(int(lengths.sum()), 1)
        fitting = (n for n in _LENGTHS if np.minimum(lengths, n).sum() * per_character <= _TEXT_BYTES)
        cut = next(fitting, _LENGTHS[-1])
        texts = [text if len(text) <= cut else text[:cut] + "…" for text in texts]
    return pack({"texts": texts}), cut, kind


def _texts(topics: Topics, rows: Sequence[int]) -> tuple[list[str], str]:
    documents = topics.documents
    if documents.texts is not None:
        return [documents.texts[row] for row in rows], "text"
    tokens = documents.fields.tokens
    if tokens is not None:
        return [" ".join(tokens[row]) for row in rows], "tokens"
    counts, vocabulary = topics.corpus.counts, topics.vocabulary
    found = []
    for row in rows:
        place = slice(counts.indptr[row], counts.indptr[row + 1])
        order = np.argsort(-counts.data[place], kind="stable")[:_WORDS_OF_DOCUMENT]
        found.append(" ".join(vocabulary[word] for word in counts.indices[place][order].tolist()))
    return found, "words"


def _quality(metrics: Mapping[str, Any], model: Any) -> dict[str, Any]:
    """The measures of a run and its history, as far as they are finite numbers."""
    from ...metrics.catalogue import CATALOGUE

    found = {}
    evaluations = metrics.get("evaluations")
    given = evaluations.get("training", {}).get("measures", {}) if isinstance(evaluations, dict) else {}
    plain = dict(metrics.get("final") or {}) | {"seconds": metrics.get("training_seconds")} | dict(metrics)
    if "perplexity_completion_training" in plain:
        plain["perplexity_completion"] = plain["perplexity_completion_training"]
    for name, measure in CATALOGUE.items():
        about = given.get(name)
        value = about.get("value") if isinstance(about, dict) else plain.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and np.isfinite(value):
            found[name] = {
                "title": measure.title,
                "value": value,
                "better": measure.better,
                "group": measure.group,
                "digits": measure.digits,
            }
    rows = model.history_
    numbers = dict.fromkeys(name for row in rows for name, value in row.items() if isinstance(value, int | float))
    history = {name: [_finite(row.get(name)) for row in rows] for name in numbers}
    return {"measures": found, "history": history, "stages": changes_of_stage(rows)}


def _finite(value: Any) -> float | None:
    """A number of a row of the history; None if it is not finite, or was not measured in this epoch."""
    return float(value) if isinstance(value, int | float) and np.isfinite(value) else None
