"""The settings that a model names when training fails, as a clause such as "try `epochs=120` or `n_topics=20`"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

# Settings with which training has failed, in the order in which they are named.
SUSPECTS = (
    "background", "prior", "input_dropout", "weight_decay", "latent_size", "embedding_size", "alpha", "eta",
    "kl_weight", "mmd_weight", "critic_weight", "learning_rate", "min_diversity",
)  # fmt: skip


def settings_to_try(model: Any, helpful: Mapping[str, Any]) -> str:
    """Return a clause such as "try `a=1` or `b=2`".

    Suspects that differ from the model's defaults come first, with the default as the value to try, because defaults
    are known to work.

    Args:
        model: the estimator.
        helpful: settings with values that help. Those that the model does not have are left out.
    """
    known = dict(helpful)
    now = model.get_params(deep=False)
    default = {field.name: field.default for field in fields(model) if field.init}
    if now.get("kl_weight") is not None and default["kl_weight"] is None:  # the usual one depends on other settings
        default["kl_weight"] = replace(model, kl_weight=None).divergence_weight
    changed = {name: default[name] for name in SUSPECTS if name in now and now[name] != default[name] is not None}
    if changed:
        known.pop("n_topics", None)  # the number of topics was asked for, and is probably not the cause
    if "patience" not in known and default.get("epochs") is not None and now["epochs"] < default["epochs"]:
        known["epochs"] = default["epochs"]
    others = {
        name: value for name, value in known.items() if name in now and now[name] != value and name not in changed
    }
    settings = changed | others
    if not settings:
        return "try more documents"
    *first, last = [f"`{name}={value!r}`" for name, value in settings.items()]
    return f"try {', '.join(first)} or {last}" if first else f"try {last}"
