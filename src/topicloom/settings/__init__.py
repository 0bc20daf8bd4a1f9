"""Settings of estimators. Their types contain their limits, which `fit` checks and which help texts show in words."""

from .checks import (
    AtLeastOne,
    DirichletParameter,
    NotNegative,
    Positive,
    Rate,
    ReadableSettings,
    Share,
    check_settings,
    from_text,
    refuse_unknown,
    require_seed,
    require_whole,
    settle_settings,
)
from .descriptions import describe_settings
from .values import describe_value, path_settings, settings_as_json, settings_as_text

__all__ = [
    "AtLeastOne",
    "DirichletParameter",
    "NotNegative",
    "Positive",
    "Rate",
    "ReadableSettings",
    "Share",
    "check_settings",
    "describe_settings",
    "describe_value",
    "from_text",
    "path_settings",
    "refuse_unknown",
    "require_seed",
    "require_whole",
    "settings_as_json",
    "settings_as_text",
    "settle_settings",
]
