"""Settings that have an effect only with certain values of others, and the warning where they have none."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from ..distributed.ranks import current

logger = logging.getLogger("topicloom")

# For a setting, a clause that says where it has no effect, and whether it has one in a model.
UsedIf = Mapping[str, tuple[str, Callable[[Any], bool]]]


def warn_of_unused_settings(model: Any) -> None:
    """Warn of each setting that was changed and has no effect.

    Args:
        model: an estimator, whose class and its bases may each have a `used_if`.
    """
    if not current().is_first:
        return
    default, published = {field.name: field.default for field in fields(model)}, type(model).published
    for kind in type(model).__mro__:
        conditions: UsedIf = vars(kind).get("used_if", {})
        for name, (where_unused, is_used) in conditions.items():
            value = getattr(model, name)
            if value not in (default[name], published.get(name, default[name])) and not is_used(model):
                logger.warning("`%s=%r` has no effect %s", name, value, where_unused)
