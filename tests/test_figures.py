"""Pictures: what they show and say. How they look is for eyes."""

from itertools import combinations, pairwise

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import topicloom as tl
from topicloom.datasets import synthetic_lda
from topicloom.reports import figures
from topicloom.reports.figures.style import _page

PLANTED = synthetic_lda(n_docs=40, n_topics=2, n_words=40, doc_length=10).corpus


def rows(*names, epochs=3):
    return [
        {"epoch": epoch + 1.0, "seconds": 1.0, **dict.fromkeys(names, 10.0 / (epoch + 1))} for epoch in range(epochs)
    ]


def panels(figure):
    """The names of the lines in each panel; matplotlib's own names of other lines start with an underscore."""
    return [[line.get_label() for line in axes.lines if line.get_label()[0] != "_"] for axes in figure.axes]


def said(figure):
    """The sentences above each panel, and the note below all of them."""
    below = figure._supxlabel.get_text() if figure._supxlabel else ""
    return [" ".join(axes.get_title(loc="left").split()) for axes in figure.axes], " ".join(below.split())


@pytest.mark.parametrize("epochs", [1, 3])
def test_loss_curve_gives_every_scale_a_panel(epochs):
    history = rows("loss", "reconstruction", "divergence", "validation_loss", "spread", epochs=epochs)
    assert panels(figures.loss_curve(history)) == [
        ["loss", "reconstruction", "validation loss"],
        ["divergence"],
        ["spread"],
    ]
    assert panels(figures.loss_curve(rows("loss", epochs=epochs))) == [["loss"]]


def inside(axes):
    """Whether all names in a panel are within it, and none of them lies on another one."""
    axes.figure.canvas.draw()
    box, names = axes.get_window_extent(), [text.get_window_extent().padded(-0.5) for text in axes.texts]
    apart = all(not a.overlaps(b) for a, b in combinations(names, 2))
    return apart and all(box.x0 <= each.x0 and each.x1 <= box.x1 for each in names)


def test_names_of_events_stay_in_their_panel():
    for n_epochs, full, language in ((30, 2, "en"), (26, 7, "zh"), (290, 2, "en")):
        history = [
            {"epoch": epoch, "loss": 9e5 - epoch, "reconstruction": 9e5, "divergence": 3.0,
             "divergence_weight": min(1.0, epoch / full), "n_topics": 20 - 4 * (epoch >= 9),
             "stage": "pretraining" if epoch < 4 else "training"}
            for epoch in range(1, n_epochs + 1)
        ]  # fmt: skip
        assert inside(figures.loss_curve(history, language=language).axes[0])


def test_loss_curve_compares_epochs_at_full_weight():
    """The weight of the divergence rises until epoch 3, and topics are removed after epochs 2 and 4."""
    history = [
        {"epoch": epoch, "loss": 9.0 + epoch, "reconstruction": 8.0, "divergence": 4.0 / epoch,
         "divergence_weight": min(1.0, epoch / 3), "n_topics": left}
        for epoch, left in enumerate((32, 26, 26, 20, 20), start=1)
    ]  # fmt: skip
    figure = figures.loss_curve(history)
    first = figure.axes[0]
    assert panels(figure) == [["reconstruction + divergence", "reconstruction"], ["loss"], ["divergence"]]
    assert first.lines[0].get_ydata().tolist() == [12.0, 10.0, 8 + 4 / 3, 9.0, 8.8]
    labels = {round(text.get_position()[0], 1): text.get_text().strip() for text in first.texts}
    assert labels == {2.5: "full weight\n26 topics left", 4.5: "20 topics left"}
    dotted = [[line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == ":"] for axes in figure.axes]
    assert dotted == [[2.5, 4.5]] * 3
    longer = figures.loss_curve([*history, {**history[-1], "epoch": 300}]).axes[0]
    assert [text.get_text() for text in longer.texts] == ["20 topics left"]  # right of its line, where there is room
    assert inside(longer)
    assert sum(line.get_linestyle() == ":" for line in longer.lines) == 2
    titles, note = said(figure)
    assert "so that epochs can be compared" in titles[0]
    assert "it may rise although the model improves" in note
    steady = [row | {"divergence_weight": 1.0, "n_topics": 20} for row in history]
    assert panels(figures.loss_curve(steady)) == [["loss", "reconstruction"], ["divergence"]]


def test_a_weight_of_another_stage_is_no_event():
    history = [row | {"divergence_weight": 0.05, "stage": "pretraining"} for row in rows("loss", "reconstruction")]
    history += [row | {"epoch": 3 + row["epoch"], "divergence_weight": 1.0, "stage": "training"} for row in history]
    history = [row | {"divergence": 2.0} for row in history]
    figure = figures.loss_curve(history)
    assert panels(figure)[0] == ["reconstruction + divergence", "reconstruction"]
    assert not [line for line in figure.axes[0].lines if line.get_linestyle() == ":"]
    assert "weights in the loss change" in said(figure)[1]
    assert "Dotted" not in said(figure)[1]


def test_loss_curve_compares_fits_of_other_weights():
    history = [row | {"divergence_weight": 0.25, "n_topics": 9} for row in rows("loss", "reconstruction", "divergence")]
    figure = figures.loss_curve(history)
    assert panels(figure) == [["reconstruction + divergence", "reconstruction"], ["loss"], ["divergence"]]
    assert figure.axes[0].lines[0].get_ydata().tolist() == [20.0, 10.0, 20 / 3]
    assert "a weight of 0.25" in said(figure)[1]
    assert "events" not in said(figure)[1]
    without = [{name: value for name, value in row.items() if name != "divergence"} for row in history]
    assert panels(figures.loss_curve(without)) == [["loss", "reconstruction"]]


def test_quality_curve_says_what_misleads_in_a_measure():
    titles, note = said(figures.quality_curve(rows("c_v", "c_npmi")))
    assert "C_v is also high for rare words that never occur together" in note
    assert all("occur in the same documents" in title for title in titles)
    (title,), note = said(figures.quality_curve(rows("c_w2v")))
    assert "similar word vectors" in title
    assert "C_w2v is high for any words" in note
    assert "C_v" not in note


@pytest.mark.parametrize("last", [2, 100, 20000])
def test_numbers_of_epochs_are_within_the_picture(last):
    figure = figures.loss_curve([{"epoch": epoch, "loss": 1 / epoch} for epoch in (1, last)])
    FigureCanvasAgg(figure).draw()
    labels = {each.get_text(): each.get_window_extent() for each in figure.axes[-1].get_xticklabels()}
    assert labels[str(last)].x1 < figure.bbox.x1


WATCHED = {
    "kl_per_dimension": [0.3, 0.1, 0.2],
    "active_units_by_divergence": 3,
    "active_topics": 2,
    "duplicate_topics": 1,
    "frequent_mass": 0.4,
}


@pytest.mark.parametrize("epochs", [1, 3])
def test_collapse_curve_has_a_panel_for_every_figure(epochs, tmp_path):
    history = [row | WATCHED for row in rows("loss", epochs=epochs)]
    figure = figures.collapse_curve(history, 5)
    values = [axes.lines[0].get_ydata().tolist() for axes in figure.axes]
    assert values == [[value] * epochs for value in (0.2, 3, 2, 1, 0.4)]
    assert [axes.get_ylim()[1] > top for axes, top in zip(figure.axes, (0.3, 3, 5, 1, 1), strict=True)] == [True] * 5
    assert panels(figures.loss_curve(history)) == [["loss"]]
    figures.save(figure, tmp_path / "collapse.png")


def test_collapse_curve_takes_what_there_is(tmp_path):
    seen = {"active_topics": 2, "duplicate_topics": 0, "frequent_mass": 0.4}
    figure = figures.collapse_curve([*rows("loss", epochs=2), {"epoch": 3, **seen}], 5)  # as the sampler's
    assert [axes.lines[0].get_xdata().tolist() for axes in figure.axes] == [[3]] * 3
    figures.save(figures.collapse_curve(rows("loss"), 5), tmp_path / "empty.png")


def test_curves_show_measured_epochs_and_changes_of_stage():
    history = rows("loss", epochs=50)
    for number in (0, 1, 31, 49):
        history[number] |= WATCHED | {"topic_diversity": 0.9}
    for row in history[5:]:
        row["concentration"] = 1.0
    history[9]["encoder_divergence"] = 1.0
    for figure in (figures.collapse_curve(history, 2), figures.quality_curve(history)):
        for axes in figure.axes:
            assert axes.lines[0].get_xdata().tolist() == [1, 2, 32, 50]
            assert axes.lines[0].get_marker() == "."
        assert stage_lines(figure) == [[5.5]] * len(figure.axes)


def test_collapse_curve_shows_how_many_topics_were_asked_for():
    rows_of = [(1, 9), (2, 12), (3, 12), (4, 4)]  # training starts with 12 topics where 4 were asked for
    history = [
        {"epoch": epoch, "kl_per_dimension": [0.5] * (12 if epoch < 4 else 4), "active_topics": active}
        for epoch, active in rows_of
    ]
    figure = figures.collapse_curve(history, 4)
    titles, note = said(figure)
    assert titles[1] == "topics that are the main topic of at least one document"
    assert figure.axes[1].lines[0].get_ydata().tolist() == [9, 12, 12, 4]
    assert list(figure.axes[1].lines[1].get_ydata()) == [4, 4]
    assert [text.get_text() for text in figure.axes[1].texts] == ["4 requested"]
    assert note.startswith("Collapse means that all documents get the same topics")
    assert "Training starts with spare topics (12 for the 4 requested), and removes" in note
    for other in (figures.collapse_curve(history, 12), figures.collapse_curve(history[3:], 4)):
        assert "spare topics" not in said(other)[1]


def test_one_outlying_dimension_hides_no_other():
    history = [{"epoch": epoch, "kl_per_dimension": [0.0, 0.5, 0.5, 200.0 / epoch]} for epoch in (1, 2, 3)]
    axes = figures.collapse_curve(history, 4).axes[0]
    bottom, median, threshold = (axes.transAxes.inverted().transform(axes.transData.transform((1, y)))[1]
                                 for y in (0, 0.5, 0.01))  # fmt: skip
    assert 0 < bottom < threshold - 0.1 < median - 0.2
    assert [text.get_text() for text in axes.texts] == ["inactive below"]


@pytest.mark.parametrize(("median", "top"), [(0.5, 2e4), (1e30, 2e30)])
def test_numbers_beside_a_logarithmic_axis_have_room(median, top):
    history = [{"epoch": epoch, "kl_per_dimension": [0.1, median, 1e38 / epoch]} for epoch in (1, 2, 3)]
    axes = figures.collapse_curve(history, 3).axes[0]
    assert axes.get_ylim()[1] == pytest.approx(top)
    heights = axes.transAxes.inverted().transform(axes.transData.transform([(1, y) for y in axes.get_yticks()]))[:, 1]
    assert len(heights) > 4
    assert np.diff(heights[1:]).min() > 0.06


def test_quality_curve_has_a_panel_for_every_scale(tmp_path):
    history = rows("loss", "topic_diversity", epochs=4)
    for row in history[1::2]:
        row |= {"c_npmi": 0.1, "document_npmi": 0.2, "c_v": 0.5, "inverted_rbo": 0.9}
    figure = figures.quality_curve(history)
    assert panels(figure) == [["NPMI (documents)", "C_NPMI"], ["C_v"], ["diversity", "inverted RBO"]]
    assert figure.axes[1].lines[0].get_xydata().tolist() == [[2, 0.5], [4, 0.5]]
    assert figure.axes[2].lines[0].get_xdata().tolist() == [1, 2, 3, 4]
    assert panels(figures.loss_curve(history)) == [["loss"]]
    figures.save(figure, tmp_path / "quality.png")
    figures.save(figures.quality_curve(rows("loss")), tmp_path / "empty.png")


def test_loss_curve_allows_a_term_that_comes_later():
    history = rows("loss", epochs=2)
    history[1]["divergence"] = 1.0
    assert panels(figures.loss_curve(history)) == [["loss"], ["divergence"]]


def test_loss_curve_leaves_out_what_says_nothing():
    history = [row | {"critic_loss": -0.5, "critic_gap": -0.5, "critic_reconstruction": 0.0} for row in rows("loss")]
    assert panels(figures.loss_curve(history)) == [["loss"], ["critic loss"]]


def test_loss_curves_leave_out_panels_of_few_values():
    history = rows("loss", "reconstruction", epochs=4)
    for number, row in enumerate(history):
        row |= {"divergence": 2.0, "separation": 1.0} if number < 2 else {"divergence": 1.0, "balance": 1.0}
    assert panels(figures.loss_curve(history)) == [["loss", "reconstruction"], ["divergence"]]
    assert panels(figures.loss_curve(history[:2])) == [["loss", "reconstruction"], ["divergence"], ["separation"]]


def test_loss_curve_says_what_each_term_is():
    titles, note = said(figures.loss_curve(rows("loss", "reconstruction", "divergence", "own_term")))
    assert titles[0].startswith("loss: what training minimises, all terms together reconstruction: how surprising")
    assert titles[1].startswith("divergence: how far the topics of documents are from the prior")
    assert titles[2] == "own term"  # of a user's model
    assert note.startswith("If the loss still falls at the end, more epochs may help.")


@pytest.mark.parametrize("kind", [kind for kind in tl.MODELS if not kind.needs_vectors])
def test_every_term_of_a_model_is_explained(kind):
    names = kind(2).get_params()
    small = {name: value for name, value in {"hidden_size": 8, "pretrain_epochs": 1}.items() if name in names}
    model = kind(2, epochs=2, random_state=0, **small).fit(PLANTED)
    titles = said(figures.loss_curve(model.history_))[0]
    assert titles
    assert all(": " in title for title in titles)


def stage_lines(figure):
    """The places of the dashed lines of each panel."""
    return [[line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == "--"] for axes in figure.axes]


def test_a_line_separates_pretraining_from_counting():
    history = rows("loss", "topic_diversity", "active_topics", epochs=5)
    for row in history[2:]:
        row["encoder_divergence"] = 1.0
    for draw in (figures.loss_curve, figures.quality_curve, lambda rows: figures.collapse_curve(rows, 3)):
        figure = draw(history)
        assert stage_lines(figure) == [[2.5]] * len(figure.axes)
        assert {"pretraining", "counting"} <= {text.get_text().strip() for text in figure.axes[0].texts}
        assert not any(stage_lines(draw(history[:2])) + stage_lines(draw(history[2:])))
    assert "cannot be compared" in said(figures.loss_curve(history))[1]


def test_the_name_of_a_short_stage_fits_the_panel():
    history = [row | ({"concentration": 1.0} if row["epoch"] > 2 else {}) for row in rows("loss", epochs=100)]
    assert [text.get_text().strip() for text in figures.loss_curve(history).axes[0].texts] == [
        "counting, after pretraining"
    ]


def test_rows_may_name_their_stage():
    history = [row | {"stage": name} for row, name in zip(rows("loss"), ("warm-up", "main", "main"), strict=True)]
    figure = figures.loss_curve(history)
    assert stage_lines(figure) == [[1.5]]
    assert [text.get_text().strip() for text in figure.axes[0].texts] == ["warm-up", "main"]


WORDS, SCORES = ["best", "good", "fair"], [-1.0, -1.7, -3.0]


def drawn(pages):
    return [axes for page in pages for axes in page.axes if axes.texts]


@pytest.mark.parametrize("n_topics", [1, 2, 7])
def test_every_topic_is_drawn_with_the_best_word_on_top(n_topics):
    all_axes = drawn(figures.topic_pages([WORDS] * n_topics, [SCORES] * n_topics))
    assert [axes.get_title(loc="left") for axes in all_axes] == [f"topic {topic}" for topic in range(n_topics)]
    for axes in all_axes:
        assert [text.get_text().strip() for text in axes.texts] == WORDS
        heights = [axes.transData.transform(text.get_position())[1] for text in axes.texts]
        assert heights == sorted(heights, reverse=True)


def test_bars_show_the_score_that_ranks_the_words():
    (page,) = figures.topic_pages([WORDS], [SCORES], [0.25])
    lengths = [bar.get_width() for bar in page.axes[0].patches]
    assert lengths == pytest.approx(np.exp(np.subtract(SCORES, max(SCORES))).tolist())
    assert page.axes[0].get_title(loc="left") == "topic 0 · 25.0%"
    note = " ".join(page.texts[0].get_text().split())
    assert note.startswith("Bars show relevance, which also orders the words: the geometric mean of")
    assert note.endswith("Percentages: mean share of the documents.")


def test_many_topics_are_on_pages_that_fit_a_screen(tmp_path, monkeypatch):
    full, _ = _page(40, "the note")
    assert full.get_figwidth() <= 20
    assert full.get_figheight() < 12
    monkeypatch.setattr("topicloom.reports.figures.style._MOST_ROWS", 1)  # so that a page is full of 8 topics
    pages = figures.topic_pages([["a"]] * 17, [[0.0]] * 17)
    assert [len(drawn([page])) for page in pages] == [6, 6, 5]
    assert pages[1].texts[0].get_text().endswith("Page 2 of 3.")
    paths = figures.save_pages([Figure((1, 1)) for _ in pages], tmp_path / "topics.png")
    assert [path.name for path in paths] == ["topics.png", "topics-2.png", "topics-3.png"]
    assert all(path.stat().st_size for path in paths)


@pytest.mark.parametrize(("scale", "terms"), [(1.0, 1), (-0.0123, 3), (4e7, 2), (3e-9, 6)])
def test_panels_of_training_and_their_labels_stay_apart(scale, terms):
    names = ["loss", *(f"term{n}" for n in range(1, terms))]
    history = [{"epoch": epoch, **dict.fromkeys(names, scale * (1 + 1 / epoch))} for epoch in range(1, 40)]
    figure = figures.loss_curve(history)
    FigureCanvasAgg(figure).draw()
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    note = figure._supxlabel.get_window_extent()
    assert len(boxes) == terms
    assert all(figure.bbox.padded(1).containsx(x) for box in [*boxes, note] for x in (box.x0, box.x1))
    assert all(figure.bbox.padded(1).containsy(y) for box in [*boxes, note] for y in (box.y0, box.y1))
    assert all(lower.y1 < upper.y0 for upper, lower in pairwise([*boxes, note]))
    heights = [axes.bbox.height for axes in figure.axes]
    assert heights == pytest.approx([heights[0]] * terms)
    assert heights[0] > 0.6 * figure.bbox.height / (terms + 1)


@pytest.mark.parametrize(("middle", "spread"), [(-0.475, 0.01), (0.55, 0.0004), (1234567, 3000), (0.5, 0.3)])
def test_labels_of_panels_do_not_run_into_each_other(middle, spread):
    random = np.random.default_rng(0)
    series = {f"{k} topics": {"gsm": (middle + spread * random.standard_normal(6)).tolist()} for k in (20, 50)}
    figure = figures.dot_panels({f"measure {n}": series for n in range(6)})
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    for axes in figure.axes:
        low, high = axes.get_xlim()
        labels = [label for label in axes.get_xticklabels() if low <= label.get_position()[0] <= high]
        ends = [label.get_window_extent() for label in labels]
        assert len(labels) >= 2
        assert all(left.x1 + 3 < right.x0 for left, right in pairwise(ends))
    upper, lower = figure.axes[0], figure.axes[3]
    assert upper.get_tightbbox().y0 > lower.title.get_window_extent().y1 + 4
    (legend,) = figure.legends  # above the panels, where it covers no dots
    assert legend.get_window_extent().y0 > upper.title.get_window_extent().y1


def test_tall_pictures_stay_drawable(tmp_path):
    figure = figures.dot_panels({})
    figure.set_size_inches(1, 2000)  # at the usual resolution, these are more pixels than matplotlib draws
    figures.save(figure, tmp_path / "tall.png")
    assert (tmp_path / "tall.png").stat().st_size > 0


def test_words_are_never_taken_for_formulas(tmp_path):
    figures.save_pages(
        figures.topic_pages([["$x", "a$_b$", r"\alpha"]], [[3, 2, 1]], titles=["$1"]), tmp_path / "odd.png"
    )
