"""The colours of topics, which pages and pictures share."""

from __future__ import annotations

# For each topic, a colour on light and one on dark ground. They were chosen so that the smallest distance in OKLab
# between two of the first 10, 20, 50 and 60 is large, in both lists, for usual sight and, simulated after Machado et
# al. (2009), for protanopia and deuteranopia. All have a contrast of 3 or more with the ground, and none is grey.
_PAIRS = (
    "#4c92c1/#a2d8ff", "#74370c/#a05f38", "#262bbe/#445def", "#1e554c/#487d73", "#a8860f/#f4cc58",
    "#7d5ab5/#b794f4", "#721485/#9e45b1", "#b14e28/#f28863", "#15a46d/#3bf3a7", "#c41182/#fd6fba",
    "#62366c/#8b5d96", "#036f87/#41a4c1", "#5443db/#8486fc", "#2253a3/#4f82d7", "#217800/#3db316",
    "#a1053f/#e82c65", "#5d8971/#9cc9b0", "#a47d96/#ecc2dd", "#7e5568/#b4879b", "#8d6650/#c99f88",
    "#769754/#bbde98", "#aa5ba4/#ef9ae7", "#6a5407/#9b8134", "#667ab9/#a3bafe", "#6e3b90/#9d69c2",
    "#944b40/#cc7e71", "#818235/#c0c375", "#4f2aa2/#7457d1", "#7f3d5e/#b16a8c", "#3c5977/#6887a7",
    "#4a778d/#82b1c8", "#464f29/#6d774f", "#961dae/#cf5de8", "#9351a2/#d08be0", "#2e944e/#74d68c",
    "#507b64/#89b59c", "#a27408/#ebb243", "#4a32cb/#716bfc", "#3f9e81/#89e6c6", "#ad74a8/#f6b9f0",
    "#0c908a/#66d1cb", "#6e9b35/#b2e37e", "#4c378f/#7260bd", "#673d3d/#926463", "#664c6c/#94789a",
    "#a20f9d/#dd56d5", "#6a2978/#9553a4", "#782262/#a54c8b", "#82564f/#b88980", "#5c7c3a/#94b672",
    "#887498/#c9b3da", "#1d73be/#5eaefe", "#006842/#179b67", "#356d76/#69a1ab", "#7541b8/#a977f3",
    "#996f82/#dcadc2", "#71855f/#b0c59d", "#b32035/#f05e67", "#866fb0/#c6aef4", "#9f3960/#da6e93",
)  # fmt: skip
MOST_COLOURS = len(_PAIRS)


def topic_colours(n_topics: int, *, on_dark: bool = False) -> list[str]:
    """Return the colour of each topic, by its number.

    Each of the first 60 has a colour of its own. The first ones are the farthest apart; the 61st topic has the first
    colour again, so that only its name tells it from topic 0.

    Args:
        n_topics: the number of topics K.
        on_dark: the colours for a dark ground, which have the same hues.

    Examples:
        >>> from topicloom.reports.palette import topic_colours
        >>> len(set(topic_colours(60))), topic_colours(61)[60] == topic_colours(1)[0]
        (60, True)
    """
    return [_PAIRS[k % len(_PAIRS)].split("/")[on_dark] for k in range(n_topics)]
