"""The configurations of the papers, which `as_published` and the option `--recipe published` use.

Each class lists in `published` the settings of its paper. docs/published.md gives the source of each value, and what
still differs from the paper.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

from ..errors import SettingError

# What no paper has. The mapping of a class begins with it.
PLAIN: dict[str, Any] = {
    "start": "random",
    "code_norm": "none",
    "learn_shares": False,
    "spare_topics": 0.0,
    "min_diversity": 0.0,
    "background": False,
    "encoder_input": "raw",
    "input_dropout": 0.0,
    "dropout": 0.0,
    "topic_gain": 1.0,
    "topic_scale": None,
    "schedule": "constant",
}
PLAIN_VARIATIONAL: dict[str, Any] = PLAIN | {"kl_weight": 1.0, "kl_warmup": 0.0}


def published_settings(kind: type[Any]) -> dict[str, Any]:
    """Return the settings of the paper of a model, given its class.

    Raises:
        SettingError: the model has no paper, or does not depart from it.
    """
    settings: dict[str, Any] = getattr(kind, "published", {})
    if not settings:
        raise SettingError(f"{kind.__name__} has no published configuration that differs from its defaults; use those")
    return dict(settings)


class Published:
    """A model that a paper describes. Its class lists in `published` the settings of the paper."""

    published: ClassVar[dict[str, Any]] = {}

    @classmethod
    def as_published(cls, n_topics: int = 50, **overrides: Any) -> Self:
        """Return a model with the settings of its paper, as far as the model has them; see docs/published.md.

        Args:
            n_topics: the number of topics K.
            overrides: settings that differ from the paper.

        Raises:
            SettingError: the model has no paper, or does not depart from it, or there is no such setting.
        """
        settings: dict[str, Any] = {"n_topics": n_topics, **published_settings(cls), **overrides}
        return cls(**settings)
