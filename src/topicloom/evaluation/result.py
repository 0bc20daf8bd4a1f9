"""The result of an evaluation: figures by name, as rows of a table, as text and for JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..display import html_table
from ..metrics import CATALOGUE, Measured

# Settings that are not shown, because they are the same for every measure or clear from its name.
_NOT_SHOWN = {"measure", "reference", "epsilon", "counting", "method", "tokens", "unit", "vectors"}


@dataclass(frozen=True, eq=False)
class Evaluation(Mapping[str, Measured]):
    """Figures by name. Each is a number with its `settings`.

    Attributes:
        figures: what was measured.
        skipped: why a measure was not taken, by its name.
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
        """Return everything as values for JSON. A value that is not finite is null but keeps its settings."""
        figures = {}
        for name, found in self.figures.items():
            plain = found.to_dict()
            figures[name] = plain | {"value": _plain(name, found)}
        return self.about | {"measures": figures, "skipped": self.skipped}

    def table(self) -> list[dict[str, Any]]:
        """Return a row for each measure, in plain types.

        Returns:
            dicts with name, title, value (None if it is not finite or was not measured), settings, and skipped (None,
            or why it was not measured).
        """
        rows: list[dict[str, Any]] = [
            {
                "name": name,
                "title": CATALOGUE[name].title,
                "value": _plain(name, found),
                "settings": dict(found.settings),
                "skipped": None,
            }
            for name, found in self.figures.items()
        ]
        for name, reason in self.skipped.items():
            title = CATALOGUE[name].title
            rows.append({"name": name, "title": title, "value": None, "settings": {}, "skipped": reason})
        return rows

    @property
    def title(self) -> str:
        """A sentence that says which model and documents the figures are of."""
        about = self.about
        held_out = "held-out " if about["held_out"] else ""
        return (
            f"{about['model']}, {about['n_topics']} topics: {about['documents']:,} {held_out}documents "
            f"({about['empty_documents']:,} without a known word); coherence against {about['coherence_against']}"
        )

    def lines(self) -> list[tuple[str, str, str]]:
        """Return name, value and settings of each measure as text, for people to read."""
        lines = [(name, _shown(name, found), _settings_line(found)) for name, found in self.figures.items()]
        return lines + [(name, "-", reason) for name, reason in self.skipped.items()]

    def __repr__(self) -> str:
        lines = (f"{name:<28} {value:>12}  {settings}".rstrip() for name, value, settings in self.lines())
        return "\n".join([self.title, *lines])

    def _repr_html_(self) -> str:
        return html_table(["measure", "value", "settings"], self.lines(), self.title)


def _plain(name: str, value: float) -> float | int | None:
    if not math.isfinite(value):
        return None
    return int(value) if CATALOGUE[name].is_count else float(value)


def _shown(name: str, value: float) -> str:
    if CATALOGUE[name].is_count:
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.4f}"


def _settings_line(measured: Measured) -> str:
    """Return the settings that distinguish a figure from others."""
    shown = {
        name.replace("_", " "): value
        for name, value in measured.settings.items()
        if value not in (None, "") and name not in _NOT_SHOWN and not name.startswith("n_")
    }
    return ", ".join(f"{name} {value}" for name, value in shown.items())
