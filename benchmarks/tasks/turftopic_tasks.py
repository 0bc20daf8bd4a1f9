"""The tasks with turftopic: KeyNMF, and for topics that are merged or reduced ClusteringTopicModel."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import encoder
import jieba
import numpy as np
import stub
from sklearn.feature_extraction.text import CountVectorizer
from turftopic import ClusteringTopicModel, KeyNMF
from turftopic.encoders.base import ExternalEncoder
from with_pandas import bad_file as bad_file
from with_pandas import open_csv as open_csv
from with_pandas import open_excel as open_excel
from with_pandas import open_folder as open_folder

MISSING = {
    "copies": "nothing",
    "train": "every model needs an encoder",
    "resume": "a fit that was killed begins again",
    "stability": "nothing",
    "same_again": "",
    "table_of_documents": "export_topic_distribution is for one text",
    "words_in": "keywords of a text, not by topic",
    "outliers": "only topic -1 of the models of clusters, which have no inference",
    "drop": "nothing",
    "by_group": "nothing; topicwizard, which it opens, has groups",
    "along_number": "nothing",
    "next_month": "",
    "service": "nothing",
    "seed_words": "",
    "search": "nothing",
}
for each in ("same_again", "next_month", "seed_words"):
    del MISSING[each]


class Encoder(encoder.Encoder, ExternalEncoder):  # type: ignore[misc]
    """The encoder of all tools, as turftopic wants it."""


def model(k: Any = 20, **more: Any) -> KeyNMF:
    return KeyNMF(k, encoder=Encoder(), random_state=0, **more)


NEEDS = dict.fromkeys(
    (
        "same_again",
        "names",
        "names_llm",
        "documents_of",
        "rename",
        "split",
        "hierarchy",
        "new_documents",
        "load",
        "page",
        "paper",
        "picture",
        "measure",
        "next_month",
    ),
    ("train_vectors",),
) | dict.fromkeys(("merge", "reduce"), ("map",))


def social(job: Any) -> Any:
    """Words are those of CountVectorizer, as it is by default here."""
    vectorizer = CountVectorizer(stop_words="english", min_df=10).fit(job.texts("posts"))
    return {"vocabulary": list(vectorizer.vocabulary_)}


def phrases(job: Any) -> Any:
    """All pairs of neighbours, by CountVectorizer; noun phrases need spaCy and a model from a hub."""
    vectorizer = CountVectorizer(stop_words="english", min_df=5, ngram_range=(1, 2)).fit(job.texts())
    return list(vectorizer.vocabulary_)


def train_vectors(job: Any) -> Any:
    """The encoder also reads every word of the vocabulary."""
    made = job.keep("train_vectors", model())
    data = job.keep("data", made.prepare_topic_data(job.texts(), embeddings=job.vectors()))
    return {"assigned": data.document_topic_matrix.argmax(axis=1)}


def chinese(job: Any) -> Any:
    """The words need a tokenizer of one's own, here jieba; ChineseVectorizer needs a model of spaCy."""
    made = model(vectorizer=CountVectorizer(tokenizer=jieba.lcut, token_pattern=None, min_df=5))
    shares = made.fit_transform(job.texts("zh"), embeddings=job.vectors("zh"))
    return {"assigned": shares.argmax(axis=1), "words": made.get_top_words(10)}


def seed_words(job: Any) -> Any:
    """`seed_phrase` gives the whole model one aspect; a topic for each subject is not possible."""
    made = model(seed_phrase="wordpress plugins, oracle plsql, and excel cells")
    shares = made.fit_transform(job.texts(), embeddings=job.vectors())
    tops = made.get_top_words(10)
    found = [[at for at, words in enumerate(tops) if word in words] for word in ("wordpress", "oracle", "excel")]
    return {"assigned": shares.argmax(axis=1), "topics": [(each or [-1])[0] for each in found]}


def number_of_topics(job: Any) -> Any:
    """By the Bayesian information criterion, `n_components="auto"`."""
    made = model("auto")
    made.fit(job.texts(), embeddings=job.vectors())
    return made.components_.shape[0]


def measure(job: Any) -> Any:
    """By vectors of the words; coherence over texts is computed with other packages."""
    from turftopic.model_comparison.embedding_metrics import Evaluator

    made = Evaluator(encoder=Encoder()).evaluate(job.of("data"), embeddings=job.vectors())
    return {"coherence": float(np.mean(made.coherence)), "diversity": float(np.mean(made.diversity))}


def same_again(job: Any) -> Any:
    first = job.of("data").document_topic_matrix.argmax(axis=1).tolist()
    return [first, model().fit_transform(job.texts(), embeddings=job.vectors()).argmax(axis=1).tolist()]


def names(job: Any) -> Any:
    """A number and four words: 0_svn_subversion_..."""
    return job.of("train_vectors").topic_names


def names_llm(job: Any) -> Any:
    """By the package openai, with the address in the environment; also Hugging Face models, and descriptions."""
    from turftopic.analyzers import OpenAIAnalyzer

    made = copy.deepcopy(job.of("data"))
    with stub.service() as address:
        os.environ.update(OPENAI_BASE_URL=address, OPENAI_API_KEY="none")
        made.rename_topics(OpenAIAnalyzer("stub"))
    return made.topic_names


def documents_of(job: Any) -> Any:
    """Those with the largest weight."""
    data, texts = job.of("data"), {}
    for topic in range(20):
        rows = data.export_representative_documents(topic, job.texts(), data.document_topic_matrix, 5, format="csv")
        import csv
        import io

        texts[topic] = [row[0] for row in csv.reader(io.StringIO(rows))][1:]
    return {"assigned": data.document_topic_matrix.argmax(axis=1), "texts": texts}


def rename(job: Any) -> Any:
    made = copy.deepcopy(job.of("data"))
    made.rename_topics({3: "shipping"})
    return made.topic_names


def merge(job: Any) -> Any:
    """Models of clusters only."""
    made = copy.deepcopy(job.of("map"))
    before = made.labels_.tolist()
    pair = sorted(set(before) - {-1})[2:4]
    made.join_topics(pair)
    return {"pair": pair, "before": before, "after": made.labels_}


def split(job: Any) -> Any:
    """In the tree of topics; the documents keep their topic in the table."""
    made = copy.deepcopy(job.of("train_vectors"))
    made.hierarchy[3].divide(2)
    shares = np.stack([child.document_topic_vector for child in made.hierarchy[3].children], axis=1)
    before = job.of("data").document_topic_matrix.argmax(axis=1)
    return {"topic": 3, "before": before, "after": np.where(before == 3, 100 + shares.argmax(axis=1), before)}


def reduce(job: Any) -> Any:
    """Models of clusters only."""
    made = copy.deepcopy(job.of("map"))
    return made.reduce_topics(10)


def hierarchy(job: Any) -> Any:
    """Topics are divided downwards; the topics of a model are not joined upwards, but in models of clusters."""
    made = copy.deepcopy(job.of("train_vectors"))
    made.hierarchy.divide_children(2)
    return {"joins": 0, "topics": len(made.hierarchy.children)}


def over_time(job: Any) -> Any:
    """The model is fitted again, with times. Shares of one; no intervals and no test; the words of each month."""
    times = [datetime.strptime(row["date"], "%Y-%m-%d") for row in job.rows("titles")]
    bins = [datetime(2025, month, 1) for month in range(1, 13)] + [datetime(2026, 1, 1)]
    made = model()
    shares = made.fit_transform_dynamic(job.texts(), timestamps=times, embeddings=job.vectors(), bins=bins)
    made.plot_topics_over_time().write_html("over-time.html")
    series = {t: made.temporal_importance_[:, t].tolist() for t in range(20)}
    return {"assigned": shares.argmax(axis=1), "series": series}


def new_documents(job: Any) -> Any:
    shares = job.of("train_vectors").transform(job.texts("new"), embeddings=job.vectors("new"))
    return {"assigned": job.of("data").document_topic_matrix.argmax(axis=1), "new": shares.argmax(axis=1)}


def next_month(job: Any) -> Any:
    """By `partial_fit`, which changes the topics and adds none."""
    made = model()
    for at in range(0, 15_000, 1_500):
        made.partial_fit(job.texts()[at : at + 1_500], embeddings=job.vectors()[at : at + 1_500])
    before = made.transform(job.texts(), embeddings=job.vectors()).argmax(axis=1)
    made.partial_fit(job.texts("next"), embeddings=job.vectors("next"))
    after = made.transform(job.texts(), embeddings=job.vectors()).argmax(axis=1)
    new = made.transform(job.texts("next"), embeddings=job.vectors("next")).argmax(axis=1)
    return {"before": before, "after": after, "next": new}


def load(job: Any) -> Any:
    """By joblib, that is a pickle: only from people you trust, and with the same versions."""
    made = job.of("train_vectors")
    made.to_disk("saved")
    code = (
        "import json; import numpy as np, turftopic_tasks, csv; from turftopic import load_model\n"
        "texts = [row['text'] for row in csv.DictReader(open('new.csv', encoding='utf-8'))][:100]\n"
        "made = load_model('saved'); v = np.load('new.npy')[:100]\n"
        "print(json.dumps(made.transform(texts, embeddings=v).argmax(axis=1).tolist()))"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent)}
    run = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(run, capture_output=True, text=True, check=True, env=environment)
    import json

    before = made.transform(job.texts("new")[:100], embeddings=job.vectors("new")[:100]).argmax(axis=1).tolist()
    size = sum(file.stat().st_size for file in Path("saved").rglob("*")) / 1e6
    return {"before": before, "after": json.loads(done.stdout.splitlines()[-1]), "megabytes": size}


def map(job: Any) -> Any:
    """Models of clusters only: a page of DataMapPlot with labels, search and the texts."""
    made = job.keep("map", ClusteringTopicModel(encoder=Encoder(), n_reduce_to=20, random_state=0))
    made.fit(job.texts(), embeddings=job.vectors())
    made.plot_clusters_datamapplot(hover_text=job.texts()).save("map.html")
    return Path("map.html").resolve()


def page(job: Any) -> Any:
    """topicwizard's app, from turftopic's data; the file is a pickle for it."""
    raise RuntimeError("no page: `visualize_topicwizard()` opens an app that must go on running")


def paper(job: Any) -> Any:
    """As Markdown or CSV; LaTeX by pandas."""
    return job.of("train_vectors").topics_df().to_latex(index=False, caption="Topics")


def picture(job: Any) -> Any:
    """By topicwizard: a page of plotly; as PNG or PDF it needs kaleido and a browser."""
    job.of("data").figures.topic_barcharts().write_html("bars.html")
    return Path("bars.html").resolve()
