"""Maps: where points come from, what is drawn, and that labels do not cover each other."""

import logging
import sys
import types
import warnings
from itertools import combinations

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from matplotlib.backends.backend_agg import FigureCanvasAgg

from topicloom.errors import InputError, MissingExtraError, SettingError
from topicloom.reports import figures
from topicloom.reports.figures.style import colours_of, fonts_for, shortened
from topicloom.topics.hierarchy import project

RNG = np.random.default_rng(0)
CENTRES = RNG.normal(0, 8, (3, 10))
POINTS = np.concatenate([centre + RNG.normal(0, 1, (20, 10)) for centre in CENTRES])
GROUPS = np.repeat(range(3), 20)


def neighbours_agree(places):
    """The share of points whose nearest other point is of their group."""
    distances = ((places[:, None] - places) ** 2).sum(-1)
    np.fill_diagonal(distances, np.inf)
    return (GROUPS[distances.argmin(1)] == GROUPS).mean()


@pytest.mark.parametrize("method", ["pca", "tsne"])
def test_groups_stay_together_and_seeds_repeat(method):
    places = project(POINTS, method)
    assert places.shape == (60, 2)
    assert neighbours_agree(places) > 0.95
    np.testing.assert_array_equal(places, project(POINTS, method))
    assert abs(places.mean(0)).max() < 1e-3


def test_umap_is_used_if_it_is_installed(monkeypatch):
    """A stand-in for the package, which takes a minute to compile when it is first used."""

    class UMAP:
        def __init__(self, **settings):
            assert settings["random_state"] == 3
            assert settings["n_jobs"] == 1

        def fit_transform(self, rows):
            return rows[:, :2].astype(np.float32)

    monkeypatch.setitem(sys.modules, "umap", types.SimpleNamespace(UMAP=UMAP))
    np.testing.assert_allclose(project(POINTS, "umap", random_state=3), (POINTS - POINTS.mean(0))[:, :2], atol=1e-5)
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(MissingExtraError, match=r"a map by UMAP needs umap-learn: pip install 'topicloom\[maps\]'"):
        project(POINTS, "umap")


@pytest.mark.parametrize(
    "points", [np.zeros((0, 4)), [[1.0, 2, 3]], [[0.0, 0], [3, 4]], np.ones((50, 6)), [[1.0], [2], [9]]]
)
@pytest.mark.parametrize("method", ["pca", "tsne"])
def test_few_or_equal_points_have_a_place(points, method):
    places = project(points, method)
    assert places.shape == (len(points), 2)
    assert np.isfinite(places).all()
    figures.document_map(places, [0] * len(points), ["the only group"])


def test_two_points_keep_their_distance():
    places = project([[0.0, 0], [3, 4]])
    assert np.linalg.norm(places[0] - places[1]) == pytest.approx(5)


def test_what_cannot_be_projected():
    with pytest.raises(SettingError, match=r"`projection='mds'` should be one of tsne, pca, umap"):
        project(POINTS, "mds")
    with pytest.raises(InputError, match="a map needs a matrix of finite numbers"):
        project([[np.nan, 1]])


def dots(axes):
    return sum(len(part.get_offsets()) for part in axes.collections)


def covered(axes):
    """The pairs of labels whose boxes overlap."""
    renderer = FigureCanvasAgg(axes.figure).get_renderer()
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in axes.texts]
    frame = axes.get_window_extent(renderer).padded(1)
    for name, box in boxes:
        assert frame.x0 <= box.x0 <= box.x1 <= frame.x1, f"{name} leaves the panel"
    return [(a, b) for (a, x), (b, y) in combinations(boxes, 2) if x.overlaps(y)]


@pytest.mark.parametrize("n_groups", [1, 5, 20, 60])
def test_documents_are_dots_and_groups_have_labels(n_groups):
    generator = np.random.default_rng(n_groups)
    groups = np.arange(600) % n_groups
    places = generator.normal(0, 10, (n_groups, 2))[groups] + generator.normal(0, 0.4, (600, 2))
    names = [f"{group} alpha beta gamma" for group in range(n_groups)]
    figure = figures.document_map(places, groups, names, title="Documents", note="Each dot is a document.")
    (axes,) = figure.axes
    assert dots(axes) == 600
    assert not covered(axes)
    shown = {text.get_text() for text in axes.texts}
    assert shown <= {*names, *map(str, range(n_groups))}  # the number alone, where there is little room
    assert len(shown) >= 0.95 * n_groups
    assert axes.get_title(loc="left") == "Documents"
    assert "Each dot is a document." in figure.texts[0].get_text()


def test_a_label_is_where_most_of_its_group_is():
    """The mean of a group in two parts lies between them, among the points of another group."""
    parts = np.array([[-10.0, 0]] * 30 + [[10.0, 0]] * 20 + [[0.0, 0]] * 5)
    places = parts + np.random.default_rng(0).normal(0, 0.3, parts.shape)
    axes = figures.document_map(places, [0] * 50 + [1] * 5, ["divided", "middle"]).axes[0]
    label = next(text for text in axes.texts if text.get_text() == "divided")
    assert label.get_position()[0] < -5


def test_documents_without_a_group_are_grey():
    axes = figures.document_map([[0, 0], [1, 1], [2, 0]], [0, -1, 0], ["known"]).axes[0]
    greys = [colour for colour in axes.collections[0].get_facecolors() if np.ptp(colour[:3]) < 0.01]
    assert len(greys) == 1
    assert [text.get_text() for text in axes.texts] == ["known"]


def test_sizes_that_do_not_match():
    with pytest.raises(InputError, match="there are 1 points and 2 groups"):
        figures.document_map([[0, 0]], [0, 0], ["a"])
    with pytest.raises(InputError, match="a group is not one of the 1 that have a name"):
        figures.document_map([[0, 0]], [1], ["a"])
    with pytest.raises(InputError, match="there are 1 places of words, 2 words"):
        figures.word_map([[0, 0]], [[0, 0]], ["a", "b"], [0, 0], ["t"])


@pytest.mark.parametrize("n_topics", [1, 20, 60])
def test_words_and_topics_share_a_map(n_topics):
    generator = np.random.default_rng(0)
    topics = generator.normal(0, 10, (n_topics, 2))
    owners = np.tile(range(n_topics), 8)
    places = topics[owners] + generator.normal(0, 1.5, (len(owners), 2))
    words = [f"word{number}" for number in range(len(owners))]
    names = [f"{topic} first second" for topic in range(n_topics)]
    (axes,) = figures.word_map(places, topics, words, owners, names).axes
    assert dots(axes) == len(words) + n_topics
    assert not covered(axes)
    shown = [text.get_text() for text in axes.texts]
    assert len(set(shown) & {*names, *map(str, range(n_topics))}) >= 0.95 * n_topics
    n_words = len(set(shown) & set(words))
    assert n_words >= (8 if n_topics == 1 else 50)


def test_labels_cover_no_dots_where_there_is_other_room():
    places = [[0, 0], [0.3, 0], [0.6, 0], [5, 0], [0, 5]]  # the label of the first would cover the next two
    (axes,) = figures.word_map(places, [[5, 5]], ["a longer word", "b", "c", "d", "e"], [0] * 5, ["topic"]).axes
    renderer = FigureCanvasAgg(axes.figure).get_renderer()
    dots_at = axes.transData.transform(places)
    assert "a longer word" in [text.get_text() for text in axes.texts]
    for text in axes.texts:
        box = text.get_window_extent(renderer)
        assert not any(box.contains(*dot) for dot in dots_at), text.get_text()


def test_colours_of_groups():
    assert len(set(colours_of(10))) == 10
    many = colours_of(60, order=list(reversed(range(60))))
    assert len(set(many)) == 60
    assert many[59] == colours_of(60, order=range(60))[0]


def test_long_names_are_shortened():
    assert shortened("a" * 50, 10) == "a" * 10 + "…"
    assert shortened("题" * 50, 10) == "题" * 5 + "…"
    assert shortened("short", 10) == "short"


def test_chinese_names_are_drawn_with_a_font_that_has_them(tmp_path, caplog):
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING, "topicloom"):
        warnings.simplefilter("error")
        names = ["0 股票 基金", "1 足球 联赛"]
        fonts_for(names)
        if caplog.records:
            pytest.skip("this machine has no Chinese font")
        figure = figures.document_map([[0, 0], [1, 1]], [0, 1], names)
        figure.savefig(tmp_path / "zh.png")


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_maps_in_every_format(tmp_path, suffix):
    places = np.random.default_rng(0).normal(size=(3000, 2))
    target = tmp_path / f"map.{suffix}"
    figures.save(figures.document_map(places, np.arange(3000) % 4, ["<b>a</b>", "$x_2$", "c", "d"]), target)
    assert 5_000 < target.stat().st_size < 600_000
