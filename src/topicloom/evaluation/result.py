"""What an evaluation found: figures by name, as a table, as text and for JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from ..corpus.topic_measures import line_of
from ..metrics import Measured

COUNTS = {"active_topics", "duplicate_topics", "active_units_by_divergence", "active_units_by_variance"}


@dataclass(frozen=True, eq=False)
class Evaluation(Mapping[str, Measured]):
    """Figures by name, each a number with its `settings`.

    Attributes:
        figures: what was measured.
        skipped: why a measure was not, by its name.
        about: the model, the documents, and how topics rank their words.
    """

    figures: dict[str, Measured]
    skipped: dict[str, str]
    about: dict[str, Any]

    def __getitem__(self, name: str) -> Measured:
        return self.figures[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.figures)

    def __len__(self) -> int:
        return len(self.figures)

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON can hold it; a number that is not finite is null, and its settings are there still."""
        figures = {name: {"value": _plain(name, value)} | value.settings for name, value in self.figures.items()}
        return self.about | {"measures": figures, "skipped": self.skipped}

    def table(self) -> Table:
        """The figures as a table for `rich`, with a line for each."""
        table = Table("measure", "value", "settings", box=None, pad_edge=False, header_style="bold")
        table.columns[1].justify = "right"
        table.title, table.title_justify, table.title_style = self.title, "left", ""
        for row in self._rows():
            table.add_row(*row)
        return table

    @property
    def title(self) -> str:
        """What the figures are of, in a sentence."""
        told = self.about
        held_out = "held-out " if told["held_out"] else ""
        return (
            f"{told['model']}, {told['n_topics']} topics: {told['documents']:,} {held_out}documents "
            f"({told['empty_documents']:,} without a known word); coherence against {told['coherence_against']}"
        )

    def __repr__(self) -> str:
        lines = (f"{name:<28} {value:>12}  {settings}".rstrip() for name, value, settings in self._rows())
        return "\n".join([self.title, *lines])

    def _rows(self) -> Iterator[tuple[str, str, str]]:
        for name, value in self.figures.items():
            yield name, f"{int(value):,}" if name in COUNTS else _number(value), line_of(value)
        for name, reason in self.skipped.items():
            yield name, "-", reason


def _plain(name: str, value: float) -> float | int | None:
    if not math.isfinite(value):
        return None
    return int(value) if name in COUNTS else float(value)


def _number(value: float) -> str:
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.4f}"
