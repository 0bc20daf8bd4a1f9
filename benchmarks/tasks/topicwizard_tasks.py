"""The tasks with topicwizard, on NMF of scikit-learn.

It shows a model that another package has trained, in an app that goes on running. What that package does is not counted
here, but for training and inference, which go through its pipeline.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from rules import TASKS
from sklearn.decomposition import NMF
from sklearn.feature_extraction.text import TfidfVectorizer
from topicwizard import figures
from topicwizard.pipeline import make_topic_pipeline

DONE = ("train", "names", "rename", "new_documents", "documents_of", "by_group", "words_in", "load", "map", "page",
        "picture", "same_again")  # fmt: skip
MISSING = {task.name: "it shows a model; this it does not do" for task in TASKS if task.name not in DONE}
NEEDS = {task: ("train",) for task in DONE if task != "train"}


def pipeline() -> Any:
    return make_topic_pipeline(TfidfVectorizer(stop_words="english", min_df=5), NMF(20, random_state=0))


def train(job: Any) -> Any:
    """NMF of scikit-learn; also models of gensim, turftopic and BERTopic."""
    made = job.keep("train", pipeline())
    made.fit(job.texts())
    data = job.keep("data", made.prepare_topic_data(job.texts()))
    return {"assigned": data["document_topic_matrix"].argmax(axis=1)}


def same_again(job: Any) -> Any:
    again = np.asarray(pipeline().fit_transform(job.texts())).argmax(axis=1).tolist()
    return [job.of("data")["document_topic_matrix"].argmax(axis=1).tolist(), again]


def names(job: Any) -> Any:
    """A number and four words: 0_svn_subversion_..."""
    return job.of("data")["topic_names"]


def documents_of(job: Any) -> Any:
    """In the app, documents are points of a map; there is no list for a topic. Here: the largest shares."""
    shares = job.of("data")["document_topic_matrix"]
    texts = {t: [job.texts()[at] for at in np.argsort(-shares[:, t], kind="stable")[:5]] for t in range(20)}
    return {"assigned": shares.argmax(axis=1), "texts": texts}


def rename(job: Any) -> Any:
    """In the app, by typing."""
    job.of("data")["topic_names"][3] = "shipping"
    return job.of("data")["topic_names"]


def words_in(job: Any) -> Any:
    """The app shows how topics change along a document, and a word cloud of it; no words by topic."""
    raise RuntimeError("a timeline of a document, but no words by topic")


def by_group(job: Any) -> Any:
    """Words and topics of groups, in the app and as pictures; no shares as a table and no test."""
    teams = np.array([row["team"] for row in job.rows("titles")])
    figures.group_topic_barcharts(job.of("data"), list(teams)).write_html("groups.html")
    shares = job.of("data")["document_topic_matrix"]
    groups = {t: [float(shares[teams == g, t].mean()) for g in ("A", "B")] for t in range(20)}
    return {"assigned": shares.argmax(axis=1), "groups": groups}


def new_documents(job: Any) -> Any:
    new = np.asarray(job.of("train").transform(job.texts("new"))).argmax(axis=1)
    return {"assigned": job.of("data")["document_topic_matrix"].argmax(axis=1), "new": new}


def load(job: Any) -> Any:
    """By joblib, that is a pickle: only from people you trust, and with the same versions."""
    joblib.dump(job.of("train"), "saved.joblib")
    code = (
        "import json, csv, joblib, numpy as np\n"
        "texts = [row['text'] for row in csv.DictReader(open('new.csv', encoding='utf-8'))][:100]\n"
        "print(json.dumps(np.asarray(joblib.load('saved.joblib').transform(texts)).argmax(axis=1).tolist()))"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    import json

    before = np.asarray(job.of("train").transform(job.texts("new")[:100])).argmax(axis=1).tolist()
    size = Path("saved.joblib").stat().st_size / 1e6
    return {"before": before, "after": json.loads(done.stdout.splitlines()[-1]), "megabytes": size}


def map(job: Any) -> Any:
    """A page of plotly; the app has the texts too."""
    figures.document_map(job.of("data")).write_html("map.html")
    return Path("map.html").resolve()


def page(job: Any) -> Any:
    """The app must go on running; `easy_deploy` writes what a server with Docker needs."""
    raise RuntimeError("no page: the app must go on running")


def picture(job: Any) -> Any:
    """A page of plotly; as PNG or PDF it needs kaleido and a browser."""
    figures.topic_barcharts(job.of("data")).write_html("bars.html")
    return Path("bars.html").resolve()
