"""The page of the explorer: one HTML file with its program, its style and its data, which sends no request.

The data stand in parts, which the page reads when it needs them. The part "core" has all that is shown first.
"documents" has the topics, the position, the class and the time of each document, "texts" their texts, "words" the
topics as distributions over words, and "inference" the model's encoder.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import unicodedata
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ...display import as_markup
from ...errors import InputError
from ...files import atomic_file
from ...metrics import CATALOGUE
from ...text import Pretokenized, Tokenizer
from ...text.strings import replace_surrogates, require_utf8
from ...text.tokenizing import LETTER, spelling
from ...topics.positions import places_by_vectors, to_unit
from ..palette import topic_colours
from ..wording import changes_of_stage

if TYPE_CHECKING:
    from ...corpus import Corpus
    from ...models.portable import PortableInference
    from ...topics.shares import GroupShares
    from ...topics.view import Topics

logger = logging.getLogger("topicloom")

Array = npt.NDArray[Any]

SCRIPT, STYLE, LICENCES = "explorer.js", "explorer.css", "explorer.licences.md"
MOST_DOCUMENTS = 100_000

# What the page shows of each topic and document.
_WORDS_OF_TOPIC = 30
_WORDS_OF_CLASS = 12
_WORDS_OF_DOCUMENT = 40  # where the text of a document is not known, but its counts are
_LARGEST_SHARES = 10  # of a document; further ones are left out
_SMALLEST_SHARE = 0.01
_ROWS_AT_ONCE = 4096  # of theta
_MOST_CLASSES = 40  # also of the groups of a covariate
_MOST_COVARIATES = 12
_FIRST_DOCUMENTS = 20  # of a topic, which are diverse
_TEXT_BYTES = 24_000_000  # of all texts together; longer ones are cut to the first of these lengths that fits
_TEXT_LENGTHS = (20_000, 10_000, 5_000, 3_000, 2_000, 1_500, 1_000, 700, 500, 350, 240, 160, 100, 60, 30)

# The model's inference in the page.
_LARGEST_ERROR = 0.01  # of a topic share
_CHECKED_DOCUMENTS = 300

# Positions on maps.
_CIRCLE_GAP = 1.06  # between the centres of two circles, in sums of their radii
_MOST_CIRCLE_MOVES = 300  # of overlapping circles
_GOLDEN_ANGLE = 2.399963  # in radians; its multiples are spread evenly over the circle

# The binary format.
_ARRAY_TYPES = {"u1": np.uint8, "u2": np.uint16, "i4": np.int32, "f2": np.float16, "f4": np.float32, "f8": np.float64}
_STORED_IN_PLANES = {"u2", "i4", "f2", "f4"}
_COMPRESSION_LEVEL = 6


@dataclass(frozen=True)
class PageOptions:
    """What a page contains.

    Attributes:
        title: the heading; None is the name of the model.
        texts: whether the texts of the documents are in the page.
        most_documents: the number of documents in the page. If there are more, they are drawn at random; the shares are
            those of all documents.
        api: the address of a service that documents and inference are read from, such as "/api"; None puts both into
            the page.
        version: what the service calls the topics of the page, by which it notices that they were edited since.
        infer: whether the page has a box that finds the topics of a text.
        meaning: whether the service can search documents by meaning.

    Raises:
        InputError: the title contains a lone surrogate.
    """

    title: str | None = None
    texts: bool = True
    most_documents: int = MOST_DOCUMENTS
    api: str | None = None
    version: str | None = None
    infer: bool = True
    meaning: bool = False

    def __post_init__(self) -> None:
        if self.title is not None:
            require_utf8(self.title, "the title")


def explorer_page(topics: Topics, options: PageOptions | None = None, metrics: Mapping[str, Any] | None = None) -> str:
    """Return the page of topics as HTML.

    Args:
        topics: the topics of a model together with documents.
        options: what the page contains.
        metrics: the contents of metrics.json, for the measures of a run.

    Examples:
        >>> import topicloom as tl
        >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
        >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(texts), texts)
        >>> from topicloom.reports.explorer import explorer_page
        >>> explorer_page(topics)[:15]
        '<!doctype html>'
    """
    options = options or PageOptions()
    return _html(page_parts(topics, options, metrics), options)


def write_page(
    path: str | Path, topics: Topics, options: PageOptions | None = None, metrics: Mapping[str, Any] | None = None
) -> int:
    """Write the page of topics, and return its size in bytes.

    Args:
        path: an .html file.
        topics: the topics of a model together with documents.
        options: what the page contains.
        metrics: the contents of metrics.json, for the measures of a run.
    """
    whole = explorer_page(topics, options, metrics).encode("utf-8", "replace")
    with atomic_file(Path(path)) as temporary:
        temporary.write_bytes(whole)
    return len(whole)


def _html(parts: Mapping[str, str], options: PageOptions) -> str:
    script, style = _asset(SCRIPT), _asset(STYLE)
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src '{_digest(script)}'",
            f"style-src '{_digest(style)}'",
            "img-src data:",
            *(["connect-src 'self'"] if options.api is not None else []),
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    data = "\n".join(f'<script type="text/plain" id="part-{name}">{part}</script>' for name, part in parts.items())
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{as_markup(options.title or "topicloom")}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<div id="app"></div>
<noscript>This page needs JavaScript. 此页面需要 JavaScript。</noscript>
{data}
<script type="text/plain" id="licences">{_asset(LICENCES)}</script>
<script>{script}</script>
</body>
</html>
"""


def _asset(name: str) -> str:
    """Return a file of the bundle, which `make explorer` builds from explorer/."""
    return (files(__package__) / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


# The data of the page.


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
    notes: dict[str, Any] = {"covariates": covariate_shares(topics)}
    if options.infer and options.api is None:
        try:
            parts["inference"], notes["precision"] = inference_part(topics)
            notes["infers_by"] = "words" if reads_vectors(topics) else "all"
        except InputError as error:
            notes["no_inference"] = str(error)
            logger.info("the page has no box for new texts: %s", error)
    if options.texts and options.api is None:
        parts["texts"], notes["text_length"], notes["text_kind"] = _texts_part(topics, chosen)
    parts["documents"] = _documents_part(topics, chosen, notes["covariates"])
    return {"core": _core_part(topics, options, metrics or {}, len(chosen), notes), **parts}


def _core_part(
    topics: Topics, options: PageOptions, metrics: Mapping[str, Any], n_shown: int, notes: Mapping[str, Any]
) -> str:
    documents, corpus = topics.documents, topics.corpus
    tree = topics.hierarchy(n_words=1)
    shares = topics.shares.astype(np.float32)
    main = np.bincount([k for k in documents.main_topics if k is not None], minlength=topics.n_topics)
    digest = hashlib.sha256(topics.components.tobytes()).hexdigest()[:16]
    values = {
        "key": digest,
        "fingerprint": topics.model.fingerprint,
        "title": options.title or "topicloom",
        "model": type(topics.model.origin).__name__,
        "n_topics": topics.n_topics,
        "n_docs": len(documents),
        "n_empty": int(documents.empty.sum()),
        "n_shown": n_shown,
        "n_words": len(topics.vocabulary),
        "n_tokens": corpus.n_tokens,
        "palette": [topic_colours(topics.n_topics), topic_colours(topics.n_topics, on_dark=True)],
        "names": topics.names,
        "sentences": sentences if any(sentences := topics.sentences) else [],
        "words": [[word for word, _ in topics.words_of(k, _WORDS_OF_TOPIC)] for k in range(topics.n_topics)],
        "api": options.api,
        "meaning": options.meaning,
        "version": options.version,
        "tree": [[int(left), int(right), round(float(at), 4)] for left, right, at, _ in tree.linkage],
        "periods": period_shares(topics),
        "classes": class_shares(topics),
        "quality": _quality(metrics, topics.model),
        "tokenizer": tokenizer_settings(topics.model.tokenizer_),
        "map_by": "vectors" if places_by_vectors(topics.corpus.vectors) else "topics",
        **notes,
    }
    arrays = {
        "shares": shares,
        "main": main.astype(np.int32),
        "places": topic_positions(tree.distances, shares),
        "distances": np.round(tree.distances * 255).clip(0, 255).astype(np.uint8),
    }
    return pack(values, arrays)


def _documents_part(topics: Topics, chosen: Array, covariates: Sequence[Mapping[str, Any]]) -> str:
    documents = topics.documents
    theta = documents.theta[chosen]
    empty = documents.empty[chosen]
    sizes, numbers, shares = largest_shares(theta, empty)
    arrays: dict[str, Array] = {
        "sizes": sizes,
        "topics": numbers,
        "shares": shares,
        "typical": _typical_steps(topics, chosen, sizes, numbers),
        "places": np.round(topics.positions(chosen) * 65535).astype(np.uint16),
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
    if covariates:
        groups = [_groups_by(topics, each["by"], each["names"])[chosen] + 1 for each in covariates]
        arrays["covariates"] = np.array(groups, np.uint8)  # (C, n); 0 is no group that is shown
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
    n_kept, numbers, shares = [], [], []
    for first in range(0, len(theta), _ROWS_AT_ONCE):
        part = theta[first : first + _ROWS_AT_ONCE]
        is_large = part >= _SMALLEST_SHARE
        largest = part.argmax(axis=1)
        is_large[np.arange(len(part)), largest] = True
        is_large[empty[first : first + _ROWS_AT_ONCE]] = False
        rows, columns = is_large.nonzero()
        found = part[rows, columns]
        order = np.lexsort((columns, -found, rows))
        sizes = is_large.sum(axis=1)
        place = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # of a share in its row
        order = order[place < most]
        n_kept.append(np.minimum(sizes, most))
        numbers.append(columns[order].astype(np.uint8 if theta.shape[1] <= 256 else np.uint16))
        shares.append(np.round(found[order] * 255).clip(0, 255).astype(np.uint8))
    empty_array = np.zeros(0, np.uint8)
    return (
        np.concatenate([empty_array, *n_kept]).astype(np.uint8),
        np.concatenate(numbers) if numbers else empty_array,
        np.concatenate([empty_array, *shares]),
    )


def _typical_steps(topics: Topics, chosen: Array, sizes: Array, numbers: Array) -> Array:
    """Return how typical documents are of their largest topics (N,), in steps from 0 to 255.

    The 20 first documents of a topic have the 20 highest steps, and the next 230 are those of scores from 0 to 1.
    """
    rows, steps = np.repeat(chosen, sizes), np.zeros(len(numbers), np.uint8)
    for topic in range(topics.n_topics):
        of_topic = np.flatnonzero(numbers == topic)
        order = topics.typical.order(topic, n_first=_FIRST_DOCUMENTS)[rows[of_topic]]
        first = 255 - np.round((2 - order) * 2 * _FIRST_DOCUMENTS)
        steps[of_topic] = np.where(order > 1, first, np.ceil(order.clip(0, 1) * 230))
    return steps


def _words_part(topics: Topics) -> str:
    """Return the weights of each word in the topics, divided by the largest, in half precision."""
    beta_t = topics.components.T  # (V, K)
    largest = beta_t.max(axis=1)
    parts = beta_t / np.maximum(largest[:, None], 1e-30)
    arrays = {
        "parts": np.where(parts < 1e-5, 0, parts).astype(np.float16),
        "largest": largest.astype(np.float32),
        "counts": topics.word_counts.astype(np.float32),
    }
    pairs = zip(topics.vocabulary, topics.written_words, strict=True)
    folded = {column: word for column, (word, written) in enumerate(pairs) if word != written}
    return pack({"vocabulary": topics.written_words, "folded": folded}, arrays)


def _texts_part(topics: Topics, chosen: Array) -> tuple[str, int | None, str]:
    """Return the texts, the length at which they are cut (None: none is), and what they are."""
    texts, kind = _texts(topics, chosen.tolist())
    texts = [replace_surrogates(text) for text in texts]
    sizes = np.array([len(text.encode()) for text in texts], dtype=np.int64)
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    cut = None
    if len(texts) and (lengths.max() > _TEXT_LENGTHS[0] or sizes.sum() > _TEXT_BYTES):
        per_character = sizes.sum() / max(int(lengths.sum()), 1)
        fitting = (n for n in _TEXT_LENGTHS if np.minimum(lengths, n).sum() * per_character <= _TEXT_BYTES)
        cut = next(fitting, _TEXT_LENGTHS[-1])
        texts = [text if len(text) <= cut else text[:cut] + "…" for text in texts]
    return pack({"texts": texts}), cut, kind


def _texts(topics: Topics, rows: Sequence[int]) -> tuple[list[str], str]:
    documents = topics.documents
    if documents.texts is not None:
        return [documents.texts[row] for row in rows], "text"
    tokens = documents.fields.tokens
    if tokens is not None:
        return [" ".join(tokens[row]) for row in rows], "tokens"
    counts, vocabulary = topics.corpus.counts, topics.written_words
    found = []
    for row in rows:
        place = slice(counts.indptr[row], counts.indptr[row + 1])
        order = np.argsort(-counts.data[place], kind="stable")[:_WORDS_OF_DOCUMENT]
        found.append(" ".join(vocabulary[word] for word in counts.indices[place][order].tolist()))
    return found, "words"


def _quality(metrics: Mapping[str, Any], model: Any) -> dict[str, Any]:
    """Return the measures and the history of a run. Values that are not finite numbers are left out."""
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
    """Return a number of the history; None if it is not finite, or was not measured in this epoch."""
    return float(value) if isinstance(value, int | float) and np.isfinite(value) else None


# Topics in relation to each other, to times and to classes.


def period_shares(topics: Topics) -> dict[str, Any] | None:
    """Return the shares of topics by period and their trends, or None if no time is known."""
    documents = topics.documents
    if documents.times is None:
        return None
    from ...topics.trends import over_time

    try:
        found = over_time(documents.theta, documents.times, empty=documents.empty)
    except InputError:
        return None
    trends = [
        {
            "topic": each.topic,
            "slope": each.slope,
            "direction": "steady" if each.direction == "too few periods" else each.direction,
        }
        for each in found.trends
    ]
    bursts = [{"topic": each.topic, "first": each.first, "last": each.last} for each in found.bursts if each.is_found]
    more = {"trends": trends, "bursts": bursts, "sparse": (found.sparse & (found.shares.n_docs > 0)).tolist()}
    ends = {
        name: times.astype("datetime64[s]").astype(np.int64).tolist()
        for name, times in (("starts", found.starts), ("ends", found.periods.ends))
    }
    return {"names": found.period_names, "unit": found.period, **ends, **more} | _rows(found.shares)


def class_shares(topics: Topics) -> dict[str, Any] | None:
    """Return the shares of topics by class and the words of each class, or None if no class is known.

    Of many classes, those with the most documents are shown.
    """
    return None if topics.documents.labels is None else _shares_by(topics, "class")


def covariate_shares(topics: Topics) -> list[dict[str, Any]]:
    """Return the shares of topics by each covariate of the documents, as `class_shares` does.

    A covariate with numbers has the key "curve": the shares as a smooth function of the number, or None. Covariates
    beyond the first 12, and those without a value, are left out.
    """
    names = list(topics.documents.fields.covariates)
    if len(names) > _MOST_COVARIATES:
        logger.info("the page shows the first %d of %d covariates", _MOST_COVARIATES, len(names))
    found = [(name, _shares_by(topics, name)) for name in names[:_MOST_COVARIATES]]
    return [{"by": name} | shares for name, shares in found if shares is not None]


def _shares_by(topics: Topics, by: str) -> dict[str, Any] | None:
    """Return the shares of topics by class or by a covariate and the words of each group; None if no value is known."""
    from ...corpus.fields import Categories
    from ...topics.shares import by_covariate, words_of_groups

    documents = topics.documents
    try:
        found = by_covariate(documents.theta, documents.fields, by, most_groups=_MOST_CLASSES, empty=documents.empty)
    except InputError:
        return None
    values: dict[str, Any] = {"names": found.groups} | _rows(found.shares)
    codes = _groups_by(topics, by, found.groups)
    known = np.flatnonzero(codes >= 0)
    members = sp.csr_array((np.ones(len(known)), (codes[known], known)), shape=(len(found.groups), len(codes)))
    typical = words_of_groups(sp.csr_array(members @ topics.corpus.counts), topics.written_words, _WORDS_OF_CLASS)
    values["words"] = [[word for word, *_ in row] for row in typical]
    if by in documents.fields.covariates and not isinstance(documents.fields.covariates[by], Categories):
        curve = found.curve
        values["curve"] = None if curve is None else {
            "values": [float(f"{value:.6g}") for value in curve.values.tolist()],
            "mean": curve.mean.round(5).tolist(),
            "low": curve.low.round(5).tolist(),
            "high": curve.high.round(5).tolist(),
        }  # fmt: skip
    return values


def _groups_by(topics: Topics, by: str, shown: Sequence[str]) -> npt.NDArray[np.intp]:
    """Return the group of each document (n,), as its place among the groups that are shown; -1 for none of them."""
    from ...topics.shares import groups_of

    groups, names = groups_of(topics.documents.fields, by)
    place = {name: number for number, name in enumerate(shown)}
    of_group = np.array([*(place.get(name, -1) for name in names), -1], np.intp)  # the last entry is that of no group
    return of_group[groups]


def _rows(shares: GroupShares) -> dict[str, Any]:
    """Return shares as rows of JSON; a row without documents, or without an interval, is null."""
    return {
        "mean": _plain(shares.mean),
        "low": _plain(shares.low),
        "high": _plain(shares.high),
        "documents": shares.n_docs.tolist(),
    }


def _plain(values: Array) -> list[list[float] | None]:
    rounded = values.round(5)
    return [row if np.isfinite(row).all() else None for row in rounded.tolist()]


# The inference of the model, and the settings of its tokenizer, for texts that are typed in.


def inference_part(topics: Topics) -> tuple[str, str]:
    """Return the inference of the model, and its precision: "half", or "single" where half is not enough.

    Raises:
        InputError: the inference cannot be written as arrays, or does not give the model's theta.
    """
    from ...models.portable import portable_inference

    inference = portable_inference(topics.model)
    step = max(1, len(topics.documents) // _CHECKED_DOCUMENTS)
    counts, theta = topics.corpus.counts[::step], topics.documents.theta[::step]
    if reads_vectors(topics):  # the page has no encoder of texts, so it reads their words alone
        theta = _theta_of_words(topics.model, topics.corpus[::step])
    if (halved := inference.halved()).error(counts, theta) <= _LARGEST_ERROR:
        return _packed(halved), "half"
    if inference.error(counts, theta) <= _LARGEST_ERROR:
        return _packed(inference), "single"
    raise InputError("the inference of this model cannot be repeated in a page with sufficient precision")


def reads_vectors(topics: Topics) -> bool:
    """Whether the topics of the documents depend on their vectors."""
    return bool(topics.corpus.vectors is not None and topics.model.reads_vectors)


def _theta_of_words(model: Any, corpus: Corpus) -> Array:
    """Return the topic shares that a model infers from the words of documents alone, (n, K)."""
    from ...models.inference import document_topics

    of_words = replace(corpus, fields=replace(corpus.fields, vectors=None, encoder=None))
    theta: Array = document_topics(model.network_, model.without_vectors(of_words)).theta
    return theta


def _packed(inference: PortableInference) -> str:
    from ...models.portable import PortableAddition, PortableRegroup

    values: dict[str, Any] = {}
    arrays: dict[str, Array] = {"average": inference.average}
    if (encoder := inference.encoder) is not None:
        values["encoder"] = {"input": encoder.input, "activation": encoder.activation}
        arrays |= {
            "weight": encoder.weight,
            "bias": encoder.bias,
            "hidden": encoder.hidden,
            "hidden_bias": encoder.hidden_bias,
        }
        if encoder.input == "tfidf":
            arrays["idf"] = encoder.idf
    if (readout := inference.readout) is not None:
        values["readout"] = {"link": readout.link, "floor": readout.floor}
        arrays |= {"readout": readout.weight, "readout_bias": readout.bias}
        if readout.gate is not None:
            arrays |= {"gate": readout.gate[0], "gate_bias": readout.gate[1]}
        if readout.smoothing is not None:
            arrays["smoothing"] = readout.smoothing
    if (given := inference.topics) is not None:
        values["topics"] = {
            "kind": given.kind,
            "steps": given.steps,
            "share": given.share,
            "prior_tokens": given.prior_tokens,
            "tolerance": given.tolerance,
        }
        arrays |= {"beta_t": given.beta_t, "alpha": given.alpha}
    values["steps"] = []
    for number, step in enumerate(inference.steps):
        if isinstance(step, PortableRegroup):
            values["steps"].append({"assign": step.assign.tolist(), "fewest": step.fewest})
            arrays[f"average_{number}"] = step.average
        elif isinstance(step, PortableAddition):
            values["steps"].append({"steps": step.steps})
            arrays |= {f"beta_t_{number}": step.beta_t, f"alpha_{number}": step.alpha}
        else:
            parts = step.parts
            about = {"kind": parts.kind, "steps": parts.steps, "share": 0, "tolerance": parts.tolerance}
            values["steps"].append({"topic": step.topic, "parts": about})
            arrays[f"before_{number}"] = step.beta_t
            arrays |= {f"beta_t_{number}": parts.beta_t, f"alpha_{number}": parts.alpha}
    single = {name: array if array.dtype == np.float16 else array.astype(np.float32) for name, array in arrays.items()}
    return pack(values, single)


def tokenizer_settings(tokenizer: Any) -> dict[str, Any]:
    """Return what the page needs to split texts as the tokenizer does, or nearly so.

    Text that is written with spaces is split in the same way. Other text, and that of a tokenizer of the user's, is cut
    by the longest words of the vocabulary.
    """
    if isinstance(tokenizer, Pretokenized):
        return {"kind": "spaces", "stop_words": list(tokenizer.stop_words)}
    if not isinstance(tokenizer, Tokenizer):  # a function of the user's, whose words may have capital letters
        settings = {"min_length": 1, "keep_numbers": True, "strip_html": False, "elides": False}
        folds = _folds(str.casefold)
        return {"kind": "longest", "stop_words": list(tokenizer.stop_words), "folds": folds} | settings
    return {
        "kind": "longest" if tokenizer.is_segmented else "words",
        "language": tokenizer.language,
        "stop_words": list(tokenizer.stop_words),
        "min_length": tokenizer.min_length,
        "keep_numbers": tokenizer.keep_numbers,
        "strip_html": tokenizer.strip_html,
        "elides": tokenizer.elides,
        "folds": _folds(tokenizer.fold),
        **({} if tokenizer.rules == 1 else {"spelling": _spelling_settings(tokenizer.language)}),
    }


def _spelling_settings(language: str) -> dict[str, Any]:
    found = spelling(language)
    return {
        "joiners": found.joiners.replace(LETTER, r"\p{L}"),
        "clitics": found.clitics,
        "lost": found.lost,
        "leads": found.leads,
        "hyphens": found.hyphens,
    }


@cache
def _folds(fold: Callable[[str], str]) -> dict[str, str]:
    """Return the letters and marks whose folded form is not their lower case, because browsers have only lower case."""
    characters = map(chr, chain(range(0x41, 0x5B), range(0x80, 0x1E944)))
    letters = [each for each in characters if unicodedata.category(each)[0] in "LM"]
    folded = fold("\n".join(letters)).split("\n")  # at once, which is several times as fast as one by one
    return {each: new for each, new in zip(letters, folded, strict=True) if new != each.lower()}


# Positions of topics on the map. Equal inputs give equal maps.


def topic_positions(distances: Array, shares: Array) -> Array:
    """Place topics by classical scaling of their distances, so that circles of their shares hardly overlap.

    Args:
        distances: (K, K).
        shares: (K,) the shares of the topics.

    Returns:
        (K, 2) positions and (K,) radii as one array (K, 3), within the unit square.
    """
    n = len(distances)
    radii = 0.5 * np.sqrt(np.maximum(shares, 1e-4) / max(float(shares.sum()), 1e-9) / np.pi)
    centred = distances**2 - (distances**2).mean(0) - (distances**2).mean(1)[:, None] + (distances**2).mean()
    values, vectors = np.linalg.eigh(-0.5 * centred)
    place = np.zeros((n, 2))
    for axis in range(min(2, n)):
        vector = vectors[:, -1 - axis]
        vector = vector * (1 if vector[np.abs(vector).argmax()] > 0 else -1)
        place[:, axis] = vector * np.sqrt(max(values[-1 - axis], 0.0))
    # Few topics are far from all others; ranks in part keep the rest from being crowded in the middle.
    for axis in range(2):
        ranks = np.argsort(np.argsort(place[:, axis], kind="stable"), kind="stable") / max(n - 1, 1)
        place[:, axis] = 0.5 * to_unit(place[:, axis]) + 0.5 * ranks
    place = _apart(place, radii)
    low, high = (place - radii[:, None]).min(0), (place + radii[:, None]).max(0)
    scale = 1 / max(float((high - low).max()), 1e-9)
    place = (place - low) * scale + (1 - (high - low) * scale) / 2
    return np.column_stack([place, radii * scale]).astype(np.float32)


def _apart(place: Array, radii: Array) -> Array:
    """Move circles apart where they overlap, each as little as possible."""
    n = len(place)
    if n < 2:
        return place
    needed = (radii[:, None] + radii) * _CIRCLE_GAP
    angle = np.arange(n) * _GOLDEN_ANGLE  # directions for circles with the same centre
    place = place + 1e-6 * np.column_stack([np.cos(angle), np.sin(angle)])
    for _ in range(_MOST_CIRCLE_MOVES):
        apart = place[:, None] - place  # (n, n, 2)
        distance = np.sqrt((apart**2).sum(-1)) + 1e-12
        overlap = np.maximum(needed - distance, 0)
        np.fill_diagonal(overlap, 0)
        if overlap.max() < 1e-4:
            break
        place = place + 0.4 * (apart / distance[..., None] * overlap[..., None]).sum(1)
    return place


# The binary format of the data: named arrays and JSON values, deflated and in base64.
#
# A part is an unsigned 32-bit length, as many bytes of JSON, and the arrays, each of which starts at a multiple of
# eight bytes. All numbers are little-endian. Under "arrays", the JSON has the type, the shape and the offset of each
# array. Arrays of two or four bytes an element are stored in planes, first all lowest bytes and then the next ones,
# because the planes of exponents deflate well.


def pack(values: Mapping[str, Any], arrays: Mapping[str, Array] | None = None) -> str:
    """Return a part as text: values that JSON knows, and arrays of the types u1, u2, i4, f2, f4 and f8.

    Raises:
        TypeError: an array is of another type.
    """
    described, blocks, offset = {}, [], 0
    for name, array in (arrays or {}).items():
        kind = f"{array.dtype.kind}{array.dtype.itemsize}"
        if kind not in _ARRAY_TYPES:
            raise TypeError(f"the array {name!r} is of type {array.dtype}")
        data = np.ascontiguousarray(array, dtype=np.dtype(_ARRAY_TYPES[kind]).newbyteorder("<"))
        block = data.tobytes()
        if kind in _STORED_IN_PLANES:
            block = np.frombuffer(block, np.uint8).reshape(-1, data.dtype.itemsize).T.tobytes()
        described[name] = {"type": kind, "shape": list(array.shape), "offset": offset}
        blocks.append(block + bytes(-len(block) % 8))
        offset += len(blocks[-1])
    text = json.dumps({**values, "arrays": described}, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    head = text.encode("utf-8", "replace")
    head += b" " * (-(4 + len(head)) % 8)
    whole = len(head).to_bytes(4, "little") + head + b"".join(blocks)
    return base64.b64encode(zlib.compress(whole, _COMPRESSION_LEVEL)).decode("ascii")
