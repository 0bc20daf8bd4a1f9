"""Check that pyLDAvis, topicwizard and DataMapPlot take what `topicloom export` writes.

`make test-clients` runs it in an environment of its own, which has these packages and not topicloom. It reads what
`export.py` wrote, passes it to the packages' own functions, and fails if one of them refuses it or shows something
else.

usage: python tests/clients/check.py FOLDER
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np


def pyldavis(folder: Path) -> str:
    """pyLDAvis prepares a page whose topics have their numbers and their words."""
    import pyLDAvis

    data = json.loads((folder / "pyldavis.json").read_text("utf-8"))
    prepared = pyLDAvis.prepare(**data)
    n_topics = len(data["topic_term_dists"])
    topics = prepared.topic_coordinates
    assert topics.index.tolist() == list(range(n_topics)), "the topics have other numbers"
    assert np.isfinite(topics[["x", "y", "Freq"]].to_numpy(float)).all(), "a topic has no place"
    info = prepared.topic_info
    for topic, row in enumerate(np.array(data["topic_term_dists"])):
        best = [data["vocab"][word] for word in np.argsort(-row)[:5]]
        shown = set(info[info.Category == f"Topic{topic}"].Term)
        assert set(best) & shown, f"topic {topic} is shown without its words"
    html = pyLDAvis.prepared_data_to_html(prepared)
    assert "ldavis" in html
    return f"{n_topics} topics, a page of {len(html):,} characters"


def topicwizard(folder: Path) -> str:
    """Topicwizard draws its figures and makes its application."""
    import joblib
    import topicwizard
    from topicwizard.figures import document_map, group_map, topic_barcharts, topic_map, word_map

    file = folder / "topicwizard.joblib"
    saved = joblib.load(file)
    data = saved["topic_data"]
    figures = [draw(data) for draw in (topic_map, topic_barcharts, word_map, document_map)]
    if saved["group_labels"] is not None:
        figures.append(group_map(data, saved["group_labels"]))
    names = {str(trace.name) for trace in figures[3].data}
    assert names <= set(data["topic_names"]), "documents have topics with other names"
    assert sum(len(trace.x) for trace in figures[3].data) == len(data["corpus"]), "documents are missing"
    with TemporaryDirectory() as home:
        os.environ["HOME"] = home
        _put_font(Path(home))
        app = topicwizard.app.load_app(str(file))
    assert app.layout is not None
    return f"{len(figures)} figures and an application of {len(data['corpus'])} documents"


def _put_font(home: Path) -> None:
    """Put a font where topicwizard keeps its own, which it would otherwise download."""
    from matplotlib.font_manager import fontManager

    place = home / ".topicwizard" / "fonts" / "OpenSans-Bold.otf"
    place.parent.mkdir(parents=True)
    shutil.copyfile(fontManager.findfont("DejaVu Sans"), place)


def datamapplot(folder: Path) -> str:
    """DataMapPlot draws a static and an interactive map, with the names of the topics."""
    import matplotlib

    matplotlib.use("Agg")
    import datamapplot as package

    arrays = np.load(folder / "datamapplot.npz")
    places, labels = arrays["coordinates"], arrays["labels"]
    _, axes = package.create_plot(places, labels, use_system_fonts=True, font_family="DejaVu Sans")
    drawn = re.sub(r"\s+", " ", " ".join(text.get_text() for text in axes.texts))
    shown = [name for name in set(labels) - {"Unlabelled"} if name in drawn]
    assert shown, "no topic is named in the map"
    page = package.create_interactive_plot(places, labels, hover_text=arrays["hover_text"])
    assert len(str(page)) > 10_000, "the interactive map is empty"
    return f"{len(places)} documents, {len(shown)} names"


CHECKS: list[Callable[[Path], str]] = [pyldavis, topicwizard, datamapplot]


def _no_requests() -> None:
    """Refuse requests at once: DataMapPlot asks a host for fonts, and waits long where there is no network."""
    import requests

    def refuse(*arguments: object, **options: object) -> None:
        raise requests.ConnectionError("the check makes no requests")

    requests.get = refuse


if __name__ == "__main__":
    _no_requests()
    for folder in sorted(Path(sys.argv[1]).iterdir()):
        for check in CHECKS:
            print(f"{folder.name}, {check.__name__}: {check(folder)}", flush=True)
