"""The stages of a training, as the rows of its history tell them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def changes_of_stage(history: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, int]]:
    """Return each change of stage: the names of both stages, and the number of the row with which the second begins.

    Rows name their stage as "stage". In rows without it, the counting stage starts at the first "concentration" or
    "encoder_divergence". The latter is not measured in every epoch, and its first may be later than the stage's.
    """
    starts = [number for number, row in enumerate(history) if row.keys() & {"concentration", "encoder_divergence"}]
    counting = starts[0] if starts else len(history)
    names = [row.get("stage") or ("pretraining", "counting")[number >= counting] for number, row in enumerate(history)]
    numbers = [number for number in range(1, len(names)) if names[number - 1] != names[number]]
    return [(names[number - 1], names[number], number) for number in numbers]
