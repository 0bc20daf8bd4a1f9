"""The part of a page that finds the topics of a text: the model's inference, and the settings of its tokenizer."""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...models.portable import PortableInference, PortableRegroup, portable_inference
from ...text import Pretokenized, Tokenizer
from .packing import Array, pack

if TYPE_CHECKING:
    from ...topics.view import Topics

_LARGEST_ERROR = 0.01
_CHECKED = 300  # documents


def inference_part(topics: Topics) -> tuple[str, str]:
    """Return the inference of the model, and its precision: "half", or "single" where half is not enough.

    Raises:
        InputError: the inference cannot be written as arrays, or does not give the model's theta.
    """
    inference = portable_inference(topics.model)
    step = max(1, len(topics.documents) // _CHECKED)
    counts, theta = topics.corpus.counts[::step], topics.documents.theta[::step]
    if (halved := inference.halved()).error(counts, theta) <= _LARGEST_ERROR:
        return _packed(halved), "half"
    if inference.error(counts, theta) <= _LARGEST_ERROR:
        return _packed(inference), "single"
    raise InputError("the inference of this model cannot be repeated in a page with sufficient precision")


def _packed(inference: PortableInference) -> str:
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
        return {"kind": "longest", "stop_words": list(tokenizer.stop_words), "folds": _folds()} | settings
    return {
        "kind": "longest" if tokenizer.is_segmented else "words",
        "language": tokenizer.language,
        "stop_words": list(tokenizer.stop_words),
        "min_length": tokenizer.min_length,
        "keep_numbers": tokenizer.keep_numbers,
        "strip_html": tokenizer.strip_html,
        "elides": tokenizer.elides,
        "folds": _folds(),
    }


@cache
def _folds() -> dict[str, str]:
    """The letters whose casefolded form is not their lower case; browsers have the latter alone."""
    letters = map(chr, range(0x80, 0x1E944))
    return {
        each: each.casefold()
        for each in letters
        if unicodedata.category(each)[0] == "L" and each.casefold() != each.lower()
    }
