"""The tasks with BERTopic, as its documentation advises: UMAP with a seed, HDBSCAN, c-TF-IDF.

`min_topic_size=100` gives about 20 topics of these titles; the default, 10, gives twice as many and less purity.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import encoder
import jieba
import numpy as np
import pandas as pd
import stub
from bertopic import BERTopic
from bertopic.backend import BaseEmbedder
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline
from umap import UMAP
from with_pandas import bad_file as bad_file
from with_pandas import open_csv as open_csv
from with_pandas import open_excel as open_excel
from with_pandas import open_folder as open_folder

MISSING = {
    "copies": "nothing",
    "resume": "a fit that was killed begins again",
    "number_of_topics": "",
    "stability": "nothing",
    "measure": "nothing; others compute it with gensim",
    "split": "nothing; topics are merged only",
    "along_number": "nothing",
    "paper": "nothing; get_topic_info().to_latex() writes the whole frame",
    "service": "nothing",
}
del MISSING["number_of_topics"], MISSING["paper"]


class Encoder(BaseEmbedder):  # type: ignore[misc]
    """The encoder of all tools, as BERTopic wants it."""

    def embed(self, documents: Any, verbose: bool = False) -> Any:
        return encoder.encode(list(documents))


def model(size: int = 100, **more: Any) -> BERTopic:
    umap = UMAP(n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine", random_state=0)
    return BERTopic(
        umap_model=umap, vectorizer_model=CountVectorizer(stop_words="english"), min_topic_size=size, **more
    )


def fitted(job: Any) -> BERTopic:
    """A copy of the model of `train_vectors`, for tasks that change it."""
    import copy

    return copy.deepcopy(job.of("train_vectors"))


NEEDS = dict.fromkeys(
    (
        "names",
        "documents_of",
        "table_of_documents",
        "rename",
        "merge",
        "drop",
        "reduce",
        "hierarchy",
        "load",
        "over_time",
        "by_group",
        "new_documents",
        "next_month",
        "outliers",
        "map",
        "page",
        "paper",
        "picture",
        "same_again",
        "names_llm",
        "search",
        "words_in",
    ),
    ("train_vectors",),
)


def social(job: Any) -> Any:
    """Words are those of CountVectorizer; handles, links and emoji need a function of one's own."""
    texts = job.texts("posts")
    vectorizer = CountVectorizer(stop_words="english", min_df=5).fit(texts)
    return {"vocabulary": list(vectorizer.vocabulary_)}


def phrases(job: Any) -> Any:
    """All pairs of neighbours, by CountVectorizer; not only those that belong together."""
    vectorizer = CountVectorizer(stop_words="english", min_df=5, ngram_range=(1, 2)).fit(job.texts())
    return list(vectorizer.vocabulary_)


def train(job: Any) -> Any:
    """Vectors are those of tf-idf and SVD."""
    reading = make_pipeline(TfidfVectorizer(stop_words="english", min_df=5), TruncatedSVD(100, random_state=0))
    topics, _ = model(embedding_model=reading).fit_transform(job.texts())
    return {"assigned": topics}


def train_vectors(job: Any) -> Any:
    made = model(embedding_model=Encoder())
    topics, _ = made.fit_transform(job.texts(), job.vectors())
    job.keep("train_vectors", made)
    return {"assigned": topics}


def chinese(job: Any) -> Any:
    """The words need a tokenizer of one's own, here jieba; otherwise whole phrases are words."""
    made = model(embedding_model=Encoder())
    made.vectorizer_model = CountVectorizer(tokenizer=jieba.lcut, token_pattern=None, min_df=5)
    topics, _ = made.fit_transform(job.texts("zh"), job.vectors("zh"))
    words = [[word for word, _ in made.get_topic(topic)] for topic in sorted(set(topics) - {-1})]
    return {"assigned": topics, "words": words}


def seed_words(job: Any) -> Any:
    """By `seed_topic_list`, which draws documents near the words together; topics are found by a word."""
    seeds = [["wordpress", "plugin"], ["oracle", "plsql"], ["excel", "cell"]]
    made = model(embedding_model=Encoder(), seed_topic_list=seeds)
    topics, _ = made.fit_transform(job.texts(), job.vectors())
    return {"assigned": topics, "topics": [made.find_topics(words[0], top_n=1)[0][0] for words in seeds]}


def number_of_topics(job: Any) -> Any:
    """HDBSCAN finds it, with `min_topic_size=10`; there is no comparison of several numbers."""
    topics, _ = model(10, embedding_model=Encoder()).fit_transform(job.texts(), job.vectors())
    return len(set(topics) - {-1})


def same_again(job: Any) -> Any:
    """Only with a seed for UMAP, which the default lacks."""
    again, _ = model(embedding_model=Encoder()).fit_transform(job.texts(), job.vectors())
    return [job.of("train_vectors").topics_, again]


def names(job: Any) -> Any:
    """By default a number and four words: 0_svn_subversion_..."""
    return job.of("train_vectors").generate_topic_labels(nr_words=3, topic_prefix=False, separator=", ")[1:]


def names_llm(job: Any) -> Any:
    """For a service by its package openai; also llama.cpp, Hugging Face, LangChain and LiteLLM."""
    import openai
    from bertopic.representation import OpenAI

    made = fitted(job)
    with stub.service() as address:
        client = openai.OpenAI(base_url=address, api_key="none")
        made.update_topics(job.texts(), representation_model=OpenAI(client, model="stub"))
    return [info for topic, info in made.topic_labels_.items() if topic >= 0]


def documents_of(job: Any) -> Any:
    """Three documents a topic."""
    made = job.of("train_vectors")
    return {"assigned": made.topics_, "texts": made.get_representative_docs()}


def search(job: Any) -> Any:
    """The nearest topics; documents within them are found by one's own products of vectors."""
    made, vectors = job.of("train_vectors"), job.vectors()
    query = "undo a commit to the repository"
    topic = made.find_topics(query, top_n=1)[0][0]
    rows = np.flatnonzero(np.array(made.topics_) == topic)
    near = np.argsort(-(vectors[rows] @ encoder.encode([query])[0]))[:10]
    return [job.texts()[rows[at]] for at in near]


def table_of_documents(job: Any) -> Any:
    rows = job.of("train_vectors").get_document_info(job.texts(), df=pd.read_csv("titles.csv"))
    return [list(rows.columns), len(rows), rows["id"].iloc[-1]]


def words_in(job: Any) -> Any:
    made = job.of("train_vectors")
    _, tokens = made.approximate_distribution(job.texts()[:1], calculate_tokens=True, min_similarity=0)
    analyzer = made.vectorizer_model.build_tokenizer()
    words = [word.lower() for word in analyzer(job.texts()[0])]
    return [word for word, weights in zip(words, tokens[0], strict=False) if np.sum(weights) > 0]


def outliers(job: Any) -> Any:
    """HDBSCAN's topic -1."""
    topics, _ = job.of("train_vectors").transform(job.texts("strange"), job.vectors("strange"))
    return [topic < 0 for topic in topics]


def rename(job: Any) -> Any:
    made = fitted(job)
    made.set_topic_labels({3: "shipping"})
    return made.get_topic_info()["CustomName"].tolist()


def merge(job: Any) -> Any:
    """The topics get other numbers afterwards, by their sizes."""
    made = fitted(job)
    made.merge_topics(job.texts(), [3, 7])
    return {"pair": [3, 7], "before": job.of("train_vectors").topics_, "after": made.topics_}


def drop(job: Any) -> Any:
    """The documents become outliers."""
    made = fitted(job)
    made.delete_topics([3])
    return {"before": job.of("train_vectors").topics_, "after": made.topics_}


def reduce(job: Any) -> Any:
    """`nr_topics` counts the outliers."""
    made = fitted(job)
    made.reduce_topics(job.texts(), nr_topics=11)
    return made.topics_


def hierarchy(job: Any) -> Any:
    made = job.of("train_vectors")
    return {"joins": len(made.hierarchical_topics(job.texts())), "topics": len(set(made.topics_) - {-1})}


def draw_hierarchy(job: Any) -> None:
    made = job.of("train_vectors")
    made.visualize_hierarchy(hierarchical_topics=made.hierarchical_topics(job.texts())).write_html("tree.html")


def over_time(job: Any) -> Any:
    """Counts of documents, not shares; no intervals and no test. The words of each month are there."""
    made = job.of("train_vectors")
    months = [row["date"][:7] for row in job.rows("titles")]
    frame = made.topics_over_time(job.texts(), months, nr_bins=None, datetime_format="%Y-%m")
    made.visualize_topics_over_time(frame, top_n_topics=10).write_html("over-time.html")
    wide = frame.pivot_table(index="Topic", columns="Timestamp", values="Frequency", fill_value=0)
    sizes = np.bincount([int(month[5:]) - 1 for month in months], minlength=12)
    return {"assigned": made.topics_, "series": {t: (wide.loc[t] / sizes).tolist() for t in wide.index}}


def by_group(job: Any) -> Any:
    """Counts of documents, and the words of each group; no test."""
    made = job.of("train_vectors")
    frame = made.topics_per_class(job.texts(), [row["team"] for row in job.rows("titles")])
    wide = frame.pivot_table(index="Topic", columns="Class", values="Frequency", fill_value=0)
    return {"assigned": made.topics_, "groups": {t: wide.loc[t].tolist() for t in wide.index}}


def draw_by_group(job: Any) -> None:
    made = job.of("train_vectors")
    frame = made.topics_per_class(job.texts(), [row["team"] for row in job.rows("titles")])
    made.visualize_topics_per_class(frame, top_n_topics=20).write_html("groups.html")


def new_documents(job: Any) -> Any:
    topics, _ = job.of("train_vectors").transform(job.texts("new"), job.vectors("new"))
    return {"assigned": job.of("train_vectors").topics_, "new": topics}


def next_month(job: Any) -> Any:
    """A model of the new documents, merged with the old one: new topics come after the old ones."""
    old = job.of("train_vectors")
    new = model(50, embedding_model=Encoder()).fit(job.texts("next"), job.vectors("next"))
    both = BERTopic.merge_models([old, new], embedding_model=Encoder())
    return {"before": old.topics_, "after": both.topics_[:15_000], "next": both.topics_[15_000:]}


def load(job: Any) -> Any:
    """As a pickle, for the same versions only. The small files of safetensors gave other topics for some texts."""
    made = job.of("train_vectors")
    made.save("saved.pickle", serialization="pickle", save_embedding_model=False)
    code = (
        "import json, sys; import numpy as np; from bertopic_tasks import BERTopic, Encoder\n"
        "made = BERTopic.load('saved.pickle', embedding_model=Encoder()); v = np.load('new.npy')[:100]\n"
        "print(json.dumps([int(t) for t in made.transform(['x'] * 100, v)[0]]))"
    )
    run = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(run, capture_output=True, text=True, check=True, env=_environment())
    before, _ = made.transform(job.texts("new")[:100], job.vectors("new")[:100])
    size = Path("saved.pickle").stat().st_size / 1e6
    return {"before": [int(t) for t in before], "after": json.loads(done.stdout.splitlines()[-1]), "megabytes": size}


def map(job: Any) -> Any:
    """A page of plotly with the texts, without labels. With labels, by DataMapPlot, it needs fonts from the web."""
    made, vectors = job.of("train_vectors"), job.vectors()
    flat = UMAP(n_neighbors=10, n_components=2, min_dist=0.0, metric="cosine", random_state=0).fit_transform(vectors)
    made.visualize_documents(job.texts(), reduced_embeddings=flat, sample=1).write_html("map.html")
    return Path("map.html").resolve()


def page(job: Any) -> Any:
    """A page for each picture, such as this map of topics; there is none of the whole model."""
    job.of("train_vectors").visualize_topics().write_html("page.html")
    return Path("page.html").resolve()


def paper(job: Any) -> Any:
    """By pandas, from the columns that one chooses."""
    frame = job.of("train_vectors").get_topic_info()[["Topic", "Count", "Name"]]
    return frame.to_latex(index=False, caption="Topics")


def picture(job: Any) -> Any:
    """A page of plotly; as PNG or PDF it needs kaleido and a browser."""
    job.of("train_vectors").visualize_barchart(top_n_topics=20).write_html("bars.html")
    return Path("bars.html").resolve()


def _environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent)}
