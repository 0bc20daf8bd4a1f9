"""A figure that says how it was taken."""

from __future__ import annotations

from typing import Any


class Measured(float):
    """A number with its settings: `float` in every other respect, so that it can be averaged, compared and saved.

    Attributes:
        settings: what the figure depends on, such as the number of words, and what it was taken over.
    """

    settings: dict[str, Any]

    def __new__(cls, value: float, /, **settings: Any) -> Measured:
        measured = super().__new__(cls, value)
        measured.settings = settings
        return measured
