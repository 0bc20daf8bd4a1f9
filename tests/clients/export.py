"""Export two runs for `check.py`: one with texts and classes, some of them awkward, and one with counts alone.

usage: python tests/clients/export.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import topicloom as tl

AWKWARD = ["", "zzzz", "<script>alert('file')</script> directory & file", "文件 file \\ % $", "file"]


def awkward_view() -> tl.Topics:
    """Topics of documentation, with documents that have no known word, no class, or markup."""
    docs = tl.datasets.python_docs()
    texts = [*list(docs.texts or [])[:400], *AWKWARD]
    labels = [*list(docs.labels or [])[:400], *[""] * len(AWKWARD)]
    corpus = tl.Corpus.from_texts(texts, language="en", min_df=4, labels=labels)
    model = tl.GSM(n_topics=8, epochs=8, random_state=0).fit(corpus)
    return tl.Topics(model.rename({0: "A <b>name</b> & more", 1: "中文"}), corpus)


def plain_view() -> tl.Topics:
    """Counts without texts and classes, and four topics, of which one is not the main topic of any document."""
    drawn = tl.datasets.synthetic_lda(120, 4, 250, 40)  # topicwizard needs more than 200 words
    model = tl.LDA(n_topics=4, random_state=0, epochs=5).fit(drawn.corpus)
    main = tl.Topics(model, drawn.corpus).documents.theta.argmax(axis=1)
    return tl.Topics(model, drawn.corpus[main != main[0]])


if __name__ == "__main__":
    for name, view in {"awkward": awkward_view(), "plain": plain_view()}.items():
        folder = Path(sys.argv[1]) / name
        folder.mkdir(parents=True, exist_ok=True)
        view.save_pyldavis(folder / "pyldavis.json")
        view.save_topicwizard(folder / "topicwizard.joblib")
        view.save_datamapplot(folder / "datamapplot.npz")
        print(f"{folder}: {view}")
