"""The colours of topics can be told apart, also by people who are colour-blind, and be seen on their ground."""

from __future__ import annotations

import numpy as np
import pytest

from topicloom.reports.palette import MOST_COLOURS, topic_colours

# Björn Ottosson's OKLab, and the matrices of Machado, Oliveira & Fernandes (2009) for severity 1, for linear RGB.
TO_CONES = [[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]]
TO_LAB = [[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]]
SIGHT = {
    "usual": np.eye(3),
    "protanopia": [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]],
    "deuteranopia": [[0.3673, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]],
}


def linear(colours: list[str]) -> np.ndarray:
    parts = np.array([[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in colours]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def smallest_distance(colours: list[str], sight: str) -> float:
    """Return the smallest distance in OKLab, times 100; about 2 can just be seen."""
    seen = np.clip(linear(colours) @ np.transpose(SIGHT[sight]), 0, 1)
    lab = 100 * np.cbrt(seen @ np.transpose(TO_CONES)) @ np.transpose(TO_LAB)
    apart = np.linalg.norm(lab[:, None] - lab, axis=-1)
    return float(apart[np.triu_indices(len(lab), 1)].min())


@pytest.mark.parametrize("on_dark", [False, True])
@pytest.mark.parametrize(
    ("n_topics", "usual", "colour_blind"), [(10, 14, 8.5), (20, 7.5, 4.5), (30, 5.5, 2.3), (50, 3.8, 2.2)]
)
def test_colours_stay_apart(n_topics, usual, colour_blind, on_dark):
    colours = topic_colours(n_topics, on_dark=on_dark)
    assert smallest_distance(colours, "usual") >= usual
    assert smallest_distance(colours, "protanopia") >= colour_blind
    assert smallest_distance(colours, "deuteranopia") >= colour_blind


@pytest.mark.parametrize(("on_dark", "ground"), [(False, "#ffffff"), (True, "#1b1d21")])
def test_colours_contrast_with_the_ground(on_dark, ground):
    light = linear([ground, *topic_colours(MOST_COLOURS, on_dark=on_dark)]) @ [0.2126, 0.7152, 0.0722] + 0.05
    assert (np.maximum(light[0], light[1:]) / np.minimum(light[0], light[1:])).min() >= 3
