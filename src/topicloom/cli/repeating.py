"""The options of a run, as a file with which `train --config` repeats it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .options import Preparing

if TYPE_CHECKING:
    from ..models.base import TopicModel

_ALWAYS = ("language", "min_df", "max_df")  # which a paper should report
_NO_RESULT = ("n_jobs", "cluster")  # which change nothing in the corpus
_OWN_OPTION = ("n_topics", "random_state", "epochs", "device", "verbose")


def repeating(
    source: str,
    options: Preparing,
    covariates: Sequence[str],
    further: Mapping[str, str],
    name: str,
    model: TopicModel,
    version: str,
) -> str:
    """Return the content of train.yaml: every option that decides what is learned, and the settings of the model.

    Settings that have their defaults are left out; the comment names the version of topicloom, whose defaults they are.

    Args:
        source: what the run was trained on; "-" is not written, as standard input cannot be read again.
        options: how the source was read and its words were counted. A saved corpus has no such options.
        covariates: the columns that were kept as covariates.
        further: further options that name documents which are not learned from, or what is known of documents.
        name: the model, as it was given.
        model: the model with its settings.
    """
    import yaml

    from ..files import holds_corpus
    from ..settings.values import path_settings

    content: dict[str, Any] = {} if source == "-" else {"source": str(Path(source).resolve())}
    if not holds_corpus(source):
        content |= _of_text(options)
    if covariates:
        content["covariate"] = list(covariates)
    content |= further
    settings = model.get_params(deep=False)
    defaults = {field.name: field.default for field in fields(model)}
    content |= {"model": name, "topics": settings["n_topics"]}
    content |= {} if settings.get("epochs") is None else {"epochs": settings["epochs"]}
    content["seed"] = settings["random_state"]
    content |= {} if settings["device"] == "auto" else {"device": settings["device"]}
    files = path_settings(type(model))
    own = {
        setting: _absolute(value) if setting in files else value
        for setting, value in settings.items()
        if setting not in _OWN_OPTION and value != defaults[setting]
    }
    content |= {"settings": json.loads(json.dumps(own, default=str))} if own else {}
    about = f"# topicloom {version}: `topicloom train --config` with this file repeats the training\n"
    return about + yaml.safe_dump(content, sort_keys=False, allow_unicode=True)


def _of_text(options: Preparing) -> dict[str, Any]:
    found = {}
    for option, value in asdict(options).items():
        if option in _NO_RESULT or (value == getattr(Preparing(), option) and option not in _ALWAYS):
            continue
        is_file = option == "user_dictionary" or (option == "stop_words" and value not in ("auto", "none"))
        found[option] = _absolute(value) if is_file else value
    return found


def _absolute(value: Any) -> Any:
    """Return the path of a file in a form that any directory understands, and another value as it is."""
    return str(Path(value).resolve()) if isinstance(value, str | Path) and Path(value).is_file() else value
