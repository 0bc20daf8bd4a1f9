"""Which models the tests that are about every model try."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from topicloom.models import BATM, ECRTM, ETM, NVLDA, GaussianBATM, ProdLDA
from topicloom.models.base import TopicModel

RELATIVES: dict[type[TopicModel], type[TopicModel]] = {ECRTM: ETM, GaussianBATM: BATM, NVLDA: ProdLDA}


def marks_of(kind: type[TopicModel]) -> Any:
    """Models that differ from another one by a decoder or a term of the loss are tried with the slow tests."""
    return pytest.mark.slow if kind in RELATIVES else ()


def params(kinds: Iterable[type[TopicModel]]) -> list[Any]:
    return [pytest.param(kind, id=kind.__name__, marks=marks_of(kind)) for kind in kinds]
