"""Pictures of topics and documents: what they show, and awkward input."""

import tracemalloc
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from topicloom.corpus.fields import Fields
from topicloom.errors import InputError, SettingError
from topicloom.reports import figures
from topicloom.reports.figures.mixtures import effective_topics, sparsity_of
from topicloom.topics.document_topics import DocumentTopics


def texts(axes):
    return [text.get_text() for text in axes.texts]


# Sparsity.


def test_effective_topics():
    theta = np.array([[1.0, 0, 0, 0], [0.25] * 4, [0.5, 0.5, 0, 0]])
    assert effective_topics(theta) == pytest.approx([1, 4, 2])


def test_sparsity_counts_topics_above_thresholds():
    theta = np.array([[0.9, 0.06, 0.04, 0.0]] * 3 + [[0.4, 0.3, 0.2, 0.1]])
    ranks, counts, mixture = figures.sparsity(theta, thresholds=(0.05, 0.25)).axes
    assert ranks.lines[0].get_ydata() == pytest.approx([0.9, 0.06, 0.04, 0.0])
    bars = {(round(bar.get_y() + bar.get_height() / 2), round(bar.get_x(), 6), round(bar.get_width(), 6))
            for bar in counts.patches if bar.get_width()}  # fmt: skip
    # Above 5 %, three documents have two topics and one has four; above 25 %, three have one and one has two.
    assert bars == {(0, 0, 0.75), (0, 0.75, 0.25), (1, 0, 0.75), (1, 0.75, 0.25)}
    assert texts(counts) == ["2", "4", "1", "2"]
    assert texts(mixture) == ["median 1.5"]


@pytest.mark.parametrize("theta", [np.ones((3, 1)), [[0.5, 0.5]], np.full((10, 300), 1 / 300)])
def test_sparsity_of_awkward_shares(theta, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figures.save(figures.sparsity(theta), tmp_path / "sparsity.png")


def test_sparsity_without_documents():
    with pytest.raises(InputError, match="no document has a known word"):
        figures.sparsity(np.empty((0, 5)))


def test_shares_of_many_documents_are_not_copied():
    theta = np.random.default_rng(0).dirichlet(np.full(80, 0.05), 30_000).astype(np.float32)
    empty = np.arange(len(theta)) % 5 == 0
    documents = DocumentTopics(theta, empty, Fields.of(len(theta)))
    tracemalloc.start()
    try:
        shares = documents.shares
        ranks, _, mixture = sparsity_of([theta[:7], theta[7:]]).axes
        assert tracemalloc.get_traced_memory()[1] < 3 * theta.nbytes
    finally:
        tracemalloc.stop()
    known = theta[~empty].astype(np.float64)
    assert shares == pytest.approx(known.mean(axis=0), rel=1e-12)
    ranked = -np.sort(-theta.astype(np.float64), axis=1)[:, :10]
    assert ranks.lines[0].get_ydata().tolist() == np.median(ranked, axis=0).tolist()
    assert texts(mixture) == [f"median {np.median(effective_topics(theta.astype(np.float64))):.1f}"]


# Similarity.

SIMILAR = np.array([[1, 0.1, 0.8, 0.1], [0.1, 1, 0.2, 0.7], [0.8, 0.2, 1, 0.1], [0.1, 0.7, 0.1, 1]])


def test_a_tree_orders_similar_topics_beside_each_other():
    names = ["0 a", "1 b", "2 a", "3 b"]
    field, tree, bar = figures.similarity_map(SIMILAR, names, note="How similar topics are.").axes
    shown = [name for name in texts(field) if name in names]
    assert {frozenset(shown[:2]), frozenset(shown[2:])} == {frozenset(["0 a", "2 a"]), frozenset(["1 b", "3 b"])}
    order = [names.index(name) for name in shown]
    shown_values = field.images[0].get_array()
    assert shown_values.mask.tolist() == np.eye(4, dtype=bool).tolist()
    np.testing.assert_array_equal(shown_values.data, SIMILAR[np.ix_(order, order)])
    assert [text for text in texts(field) if text not in names] == [str(topic) for topic in order]
    assert len(tree.collections[0].get_segments()) == 3
    # The leaves of the tree are where the rows of the map are.
    (leaves,) = [{round(y) for segment in tree.collections[0].get_segments() for x, y in segment if x == 0}]
    assert leaves == {5, 15, 25, 35}
    assert tree.get_ylim() == (40, 0)
    assert bar.get_title(loc="left") == "similarity"


@pytest.mark.parametrize("n_topics", [1, 2, 60, 300])
def test_similarity_of_any_number_of_topics(n_topics, tmp_path):
    generator = np.random.default_rng(0)
    values = generator.uniform(size=(n_topics, n_topics))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = figures.similarity_map((values + values.T) / 2, [f"{k} <b> $name$" for k in range(n_topics)])
        figures.save(figure, tmp_path / "similarity.png")
    assert max(figure.get_size_inches()) < 22


def test_topics_without_any_difference():
    figures.similarity_map(np.ones((5, 5)), list("abcde"))
    with pytest.raises(InputError, match=r"the similarity of 2 topics is a matrix of shape \(3, 3\)"):
        figures.similarity_map(np.ones((3, 3)), ["a", "b"])


# Samples on the simplex.


def points(axes):
    return axes.collections[0].get_offsets()


def test_small_parameters_draw_documents_to_the_corners():
    figure = figures.simplex([0.01, 1, 100], n_documents=300)
    assert [axes.get_title() for axes in figure.axes] == ["alpha = 0.01", "alpha = 1", "alpha = 100"]
    middle = np.array([0.5, np.sqrt(3) / 6])
    distances = [np.linalg.norm(points(axes) - middle, axis=1).mean() for axes in figure.axes]
    assert [len(points(axes)) for axes in figure.axes] == [300] * 3
    assert distances[0] > 0.5 > distances[1] > 0.2 > 0.1 > distances[2]
    repeated = figures.simplex([0.01, 1, 100], n_documents=300)
    np.testing.assert_array_equal(points(figure.axes[1]), points(repeated.axes[1]))


def test_points_have_the_mean_of_the_distribution():
    """The mean of Dirichlet(1, 2, 5) is (1, 2, 5) / 8; topic 2 is at the top."""
    (axes,) = figures.simplex([(1, 2, 5)], n_documents=4000).axes
    assert axes.get_title() == "alpha = (1, 2, 5)"
    expected = (2 / 8) * np.array([1, 0]) + (5 / 8) * np.array([0.5, np.sqrt(3) / 2])
    np.testing.assert_allclose(points(axes).mean(axis=0), expected, atol=0.02)


def test_tiny_parameters_stay_finite():
    assert np.isfinite(points(figures.simplex([1e-6]).axes[0])).all()


@pytest.mark.parametrize("alpha", [0, -1, float("nan"), (1, 2)])
def test_parameters_that_are_none(alpha):
    with pytest.raises(SettingError, match="each should be a positive number, or three of them"):
        figures.simplex([alpha])


# Time.

MONTHS = np.arange("2024-01", "2024-05", dtype="datetime64[M]")
SHARES = np.array([[0.1, 0.9], [0.2, 0.8], [0.5, 0.5], [0.7, 0.3]])


def test_every_topic_has_a_panel_the_largest_first():
    (page,) = figures.trend_lines(MONTHS, SHARES, ["0 rising", "1 falling"], low=SHARES - 0.05, high=SHARES + 0.05)
    assert [axes.get_title(loc="left") for axes in page.axes] == ["1 falling", "0 rising"]
    np.testing.assert_allclose(page.axes[1].lines[0].get_ydata(), SHARES[:, 0])
    band = page.axes[1].collections[0].get_paths()[0].vertices
    assert {round(y, 2) for _, y in band} >= {0.05, 0.15, 0.65, 0.75}
    assert len(figures.trend_lines(MONTHS, np.full((4, 60), 1 / 60), list(map(str, range(60))))) == 2


def test_long_names_are_wrapped_and_keep_their_share():
    name = "deliveries that came late, were lost or were left with a neighbour"
    pages = [
        figures.topic_pages([["parcel"]], [[0.0]], [0.125], titles=[name]),
        figures.trend_lines(MONTHS, np.ones((4, 1)), [name]),
    ]
    for (page,), tail in zip(pages, [" · 12.5%", ""], strict=True):
        (axes,) = page.axes
        title = axes.get_title(loc="left")
        assert title.replace("\n", " ") == name + tail
        assert max(map(len, title.split("\n"))) <= 30
        inches = page.get_figheight() * (1 - axes.get_position().y1)
        assert inches > 0.15 * len(title.split("\n"))  # above the panel


def test_a_table_of_groups_is_blue_for_larger_shares():
    page = figures.group_table(
        ["18.75 to 21.5", "21.75 to 183.25"], [[0.2, 0.8], [0.4, 0.6]], [[4, 1], [0.25, 1]], ["a", "b"]
    )
    (axes,) = page.axes
    image = axes.images[0]
    red, _, blue, _ = image.cmap(image.norm(image.get_array())).transpose(2, 0, 1)
    assert blue[0, 0] > red[0, 0]
    assert blue[0, 1] < red[0, 1]
    assert np.stack([red[1], blue[1]]).min() > 0.98  # white
    assert [label.get_text() for label in axes.get_xticklabels()] == ["18.75 to 21.5", "21.75 to\n183.25"]


def test_periods_without_documents_leave_a_gap(tmp_path):
    shares = SHARES.copy()
    shares[1] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (page,) = figures.trend_lines(MONTHS, shares, ["0", "1"])
        figures.save(page, tmp_path / "lines.png")
        figures.save(figures.trend_stream(MONTHS, shares, ["0", "1"]), tmp_path / "stream.png")
    assert np.isnan(page.axes[0].lines[0].get_ydata()[1])


@pytest.mark.parametrize(
    ("numbers", "ticks"),
    [
        ([1.889, 7.5, 25.18, 33.07, 48.26], [0, 20, 40]),
        ([17, 93, 205, 412], [0, 200, 400]),
        (np.linspace(3.3, 57.1, 40), [20, 40]),
        ([2019, 2020, 2021], [2019, 2020, 2021]),
    ],
)
def test_numbers_have_round_ticks(numbers, ticks):
    (page,) = figures.trend_lines(numbers, np.full((len(numbers), 1), 0.2), ["0"])
    axes = page.axes[0]
    low, high = axes.get_xlim()
    assert [tick for tick in axes.get_xticks() if low <= tick <= high] == ticks


def test_a_stream_has_layers_for_large_topics_and_the_rest():
    axes = figures.trend_stream(MONTHS, SHARES, ["0 rising", "1 falling"]).axes[0]
    assert texts(axes) == ["1 falling", "0 rising"]  # from below: the one that is earlier first
    assert len(axes.collections) == 2
    many = np.random.default_rng(0).dirichlet(np.full(30, 0.3), size=4)
    axes = figures.trend_stream(MONTHS, many, [f"{k} name" for k in range(30)]).axes[0]
    assert len(axes.collections) == 13
    assert texts(axes)[-1] == "other topics"
    top = max(path.vertices[:, 1].max() for layer in axes.collections for path in layer.get_paths())
    assert top == pytest.approx(1)


def test_many_small_topics_do_not_hide_the_largest():
    figure = figures.trend_stream(MONTHS, np.full((4, 100), 0.01), [f"{k} name" for k in range(100)], note="Shares.")
    axes = figure.axes[0]
    assert len(axes.collections) == 12
    assert axes.get_ylim()[1] == pytest.approx(0.12)
    note = " ".join(figure.texts[0].get_text().split())
    assert note == "Shares. Other topics are left out (88; 88% of the documents)."


def test_time_that_cannot_be_drawn():
    with pytest.raises(InputError, match="no document has a time"):
        figures.trend_lines([], np.empty((0, 2)), ["a", "b"])
    with pytest.raises(InputError, match="at least two periods"):
        figures.trend_stream(MONTHS[:1], SHARES[:1], ["a", "b"])
    with pytest.raises(InputError, match=r"the values of 3 topics in 4 periods or groups have the shape \(4, 2\)"):
        figures.trend_lines(MONTHS, SHARES, ["a", "b", "c"])
    with pytest.raises(InputError, match=r"have the shape \(2, 4\); make it \(4, 2\)"):
        figures.group_table(list("abcd"), SHARES, SHARES.T, ["a", "b"])
    assert figures.trend_lines(MONTHS[:1], SHARES[:1], ["a", "b"])


# Interpolation.


def path(theta, words=("one", "two"), end_texts=("first <text>", "last $text$")):
    theta = np.asarray(theta, np.float64)
    ends = tuple(
        SimpleNamespace(texts=None if text is None else [text], ids=[str(row)], labels=None)
        for row, text in zip((3, 7), end_texts, strict=True)
    )
    return SimpleNamespace(
        positions=np.linspace(0, 1, len(theta)), theta=theta, words=[list(words)] * len(theta), ends=ends,
        word_topics=np.zeros((len(theta), len(words)), int), __len__=None,
    )  # fmt: skip


class Path(SimpleNamespace):
    def __len__(self):
        return len(self.theta)


def strip(theta, names, **options):
    return figures.interpolation_strip(Path(**vars(path(theta, **options))), names)


def test_bars_are_the_topic_shares_of_each_step():
    theta = [[0.9, 0.08, 0.02], [0.5, 0.48, 0.02], [0.1, 0.88, 0.02]]
    figure = strip(theta, ["0 left", "1 right", "2 rare"])
    bars, words = figure.axes
    heights = np.array([bar.get_height() for bar in bars.patches]).reshape(-1, 3)
    np.testing.assert_allclose(heights, np.array(theta).T, atol=1e-9)
    legend = [text.get_text() for text in bars.get_legend().get_texts()]
    assert legend == ["other topics", "1 right", "0 left"]  # in the order of the bars
    assert [label.get_text() for label in bars.get_xticklabels()] == ["A", "50%", "B"]
    assert texts(words) == ["one", "two"] * 3
    assert [text.get_text() for text in figure.texts[1:]] == ["A  first <text>", "B  last $text$"]


def test_the_note_fits_into_the_picture():
    for steps in (2, 8):
        figure = strip([[1.0]] * steps, ["0 all"])
        note = figure.texts[0].get_window_extent()
        assert note.x0 >= 0
        assert note.x1 <= figure.bbox.x1
        assert "walks" not in figure.texts[0].get_text()


def test_documents_without_a_text_have_their_id():
    figure = strip([[1.0], [1.0]], ["0 all"], end_texts=(None, ""))
    assert [text.get_text() for text in figure.texts[1:]] == ["A  document 3", "B  document 7"]


def test_many_topics_share_a_grey_bar():
    theta = np.full((2, 300), 1 / 300)
    bars = strip(theta, [str(k) for k in range(300)]).axes[0]
    assert [text.get_text() for text in bars.get_legend().get_texts()] == ["other topics"]
    with pytest.raises(InputError, match="there are 2 names for 300 topics"):
        strip(theta, ["a", "b"])
