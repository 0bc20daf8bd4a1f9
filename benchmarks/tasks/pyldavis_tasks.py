"""The tasks with pyLDAvis, the Python version of LDAvis, on LDA of scikit-learn.

It shows a model that another package has trained. What that package does is not counted here, but for training.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyLDAvis
import pyLDAvis.lda_model
from rules import TASKS
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer

DONE = ("train", "page")
MISSING = {task.name: "it only draws a page of a model" for task in TASKS if task.name not in DONE}
NEEDS = {"page": ("train",)}


def train(job: Any) -> Any:
    """LDA of scikit-learn, which pyLDAvis reads; also models of gensim."""
    vectorizer = CountVectorizer(stop_words="english", min_df=5)
    counts = vectorizer.fit_transform(job.texts())
    model = LatentDirichletAllocation(20, random_state=0)
    shares = model.fit_transform(counts)
    job.keep("train", (model, counts, vectorizer))
    return {"assigned": shares.argmax(axis=1)}


def page(job: Any) -> Any:
    """The page loads d3 and LDAvis from elsewhere, and shows words only."""
    pyLDAvis.save_html(pyLDAvis.lda_model.prepare(*job.of("train")), "page.html")
    return Path("page.html").resolve()
