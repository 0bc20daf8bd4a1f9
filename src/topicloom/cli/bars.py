"""Shares over time as bars of text, as wide as the terminal has room for them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

_BARS = "▁▂▃▄▅▆▇█"
_LEAST = 8


def periods_of_a_bar(n_periods: int, n_others: int) -> int:
    """Return how many periods share a bar, so that all bars fit on a line of the terminal.

    Args:
        n_periods: the number of periods.
        n_others: the characters that the other columns need.
    """
    room = max(Console().width - n_others, _LEAST)
    return -(-n_periods // room)


def bars(shares: Sequence[float], n_docs: Sequence[int], each: int = 1) -> str:
    """Draw shares as bars: the highest is that of the largest share; a gap stands for no documents.

    Args:
        shares: the share of a topic in each period; NaN where there is no document.
        n_docs: the number of documents in each period.
        each: the number of consecutive periods of a bar, which shows the mean over their documents.
    """
    values = []
    for start in range(0, len(shares), each):
        part = [(share, n) for share, n in zip(shares[start : start + each], n_docs[start:], strict=False) if n]
        values.append(sum(share * n for share, n in part) / sum(n for _, n in part) if part else None)
    top = max((value for value in values if value is not None), default=0.0) or 1.0
    heights = (None if value is None else min(int(value / top * len(_BARS)), len(_BARS) - 1) for value in values)
    return "".join(" " if height is None else _BARS[height] for height in heights)
