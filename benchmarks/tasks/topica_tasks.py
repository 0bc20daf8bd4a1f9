"""The tasks with topica: LDA by Gibbs sampling, and its own BERTopic where vectors are read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import stub
import topica
import topica.viz
from with_pandas import bad_file as bad_file
from with_pandas import open_csv as open_csv
from with_pandas import open_excel as open_excel
from with_pandas import open_folder as open_folder

MISSING = {
    "copies": "nothing",
    "resume": "a fit that was killed begins again; a finished state can be saved",
    "search": "nothing; similar_documents takes a document of the corpus",
    "outliers": "only among the documents of the fit",
    "drop": "nothing",
    "split": "nothing",
    "next_month": "nothing; two models can be compared (topica.compare)",
    "service": "nothing",
}
NEEDS = dict.fromkeys(
    (
        "same_again",
        "names",
        "names_llm",
        "documents_of",
        "table_of_documents",
        "rename",
        "hierarchy",
        "measure",
        "over_time",
        "by_group",
        "along_number",
        "new_documents",
        "load",
        "map",
        "page",
        "paper",
        "picture",
    ),
    ("train",),
) | dict.fromkeys(("merge", "reduce"), ("train_vectors",))


def corpus_of(job: Any) -> Any:
    """The words of the titles; documents without a word are dropped, and the metadata with them."""
    if "corpus" not in job.kept:
        frame = pd.read_csv("titles.csv")
        frame["row"] = np.arange(len(frame))
        job.keep("corpus", topica.from_dataframe(frame, text_col="text", stopwords="english", min_doc_freq=5))
    return job.kept["corpus"]


def aligned(job: Any, topics: Any) -> list[int]:
    """The topics of all 15,000 rows: -1 for those that the corpus dropped."""
    whole = np.full(15_000, -1)
    whole[corpus_of(job).metadata["row"].to_numpy()] = np.asarray(topics)
    return whole.tolist()


def social(job: Any) -> Any:
    """`strip_html` takes links and entities away; handles and emoji need a tokenizer of one's own."""
    made = topica.from_dataframe(
        pd.read_csv("posts.csv"), text_col="text", stopwords="english", min_doc_freq=5, strip_html=True
    )
    return {"vocabulary": made.vocabulary}


def phrases(job: Any) -> Any:
    tokens = [topica.tokenize(text, stopwords=topica.ENGLISH_STOPWORDS) for text in job.texts()]
    model = topica.data.learn_phrases(tokens)
    return sorted({word for text in topica.data.apply_phrases(tokens, model) for word in text})


def train(job: Any) -> Any:
    made = job.keep("train", topica.LDA(20, seed=0).fit(corpus_of(job)))
    return {"assigned": aligned(job, made.doc_topic.argmax(axis=1))}


def train_vectors(job: Any) -> Any:
    """topica's own BERTopic (UMAP and HDBSCAN in Rust), with clusters of at least 100 documents."""
    rows = corpus_of(job).metadata["row"].to_numpy()
    made = topica.BERTopic(min_cluster_size=100, seed=0)
    job.keep("train_vectors", made.fit(corpus_of(job), job.vectors()[rows].astype(float)))
    return {"assigned": aligned(job, made.labels)}


def chinese(job: Any) -> Any:
    """The words need a tokenizer of one's own, here jieba."""
    import jieba

    tokens = [jieba.lcut(text) for text in job.texts("zh")]
    corpus = topica.Corpus.from_documents(tokens, min_doc_freq=5, stopwords=topica.stopwords("zh"))
    made = topica.LDA(20, seed=0).fit(corpus)
    assigned = np.full(len(tokens), -1)
    assigned[list(corpus.kept_indices)] = made.doc_topic.argmax(axis=1)
    return {"assigned": assigned, "words": made.top_words(10)}


def seed_words(job: Any) -> Any:
    """keyATM, and three other models with seed words."""
    words = {"wordpress": ["wordpress", "plugin"], "oracle": ["oracle", "plsql"], "excel": ["excel", "cell"]}
    made = topica.KeyATM(words, num_topics=20, seed=0).fit(corpus_of(job))
    return {"assigned": aligned(job, made.doc_topic.argmax(axis=1)), "topics": [0, 1, 2]}


def number_of_topics(job: Any) -> Any:
    """By coherence and exclusivity; held-out likelihood on request, and a plot."""
    return topica.select.search_k(corpus_of(job), [10, 20, 40], num_seeds=1).best_k()


def stability(job: Any) -> Any:
    """Also of bootstrap samples, and per topic."""
    made = topica.evaluate.topic_stability(
        corpus_of(job), k=20, seeds=[0, 1, 2], model_factory=lambda seed: topica.LDA(20, seed=seed)
    )
    return made if isinstance(made, float) else made["stability"]


def measure(job: Any) -> Any:
    """Many measures, with intervals."""
    made = job.of("train")
    coherence = topica.evaluate.coherence(made, corpus_of(job), coherence_type="c_npmi")
    return {"npmi": float(np.mean(coherence)), "diversity": float(topica.evaluate.topic_diversity(made))}


def same_again(job: Any) -> Any:
    again = topica.LDA(20, seed=0).fit(corpus_of(job))
    return [again.doc_topic.argmax(axis=1).tolist(), job.of("train").doc_topic.argmax(axis=1).tolist()]


def names(job: Any) -> Any:
    """Words by probability, FREX, lift and score, as stm has them; no names."""
    labels = topica.inspect.label_topics(job.of("train").topic_word, job.of("train").vocabulary, corpus=corpus_of(job))
    return [", ".join(word for word, _ in topic["frex"][:3]) for topic in labels]


def names_llm(job: Any) -> Any:
    """By a function of one's own, or the package llm."""
    import openai

    with stub.service() as address:
        client = openai.OpenAI(base_url=address, api_key="none")

        def ask(prompt: str) -> str:
            messages = [{"role": "user", "content": prompt}]
            return client.chat.completions.create(model="stub", messages=messages).choices[0].message.content

        kept = [job.texts()[row] for row in corpus_of(job).metadata["row"]]
        return topica.llm_topic_labels(job.of("train"), kept, backend=ask)


def documents_of(job: Any) -> Any:
    """Those with the largest share."""
    made, rows = job.of("train"), corpus_of(job).metadata["row"].to_numpy()
    texts = [job.texts()[row] for row in rows]
    found = {
        topic: [texts[at] for at in np.argsort(-made.doc_topic[:, topic], kind="stable")[:5]] for topic in range(20)
    }
    return {"assigned": aligned(job, made.doc_topic.argmax(axis=1)), "texts": found}


def table_of_documents(job: Any) -> Any:
    """The rows of documents without a word are gone."""
    frame = corpus_of(job).metadata.assign(topic=job.of("train").doc_topic.argmax(axis=1))
    return [list(frame.columns), len(frame), frame["id"].iloc[-1]]


def words_in(job: Any) -> Any:
    """The panel `document_inspector` colours words."""
    kept = [job.texts()[row] for row in corpus_of(job).metadata["row"]]
    words = topica.viz.document_inspector(job.of("train"), kept, doc=0).to_frame()
    return list(words["word"][words["in_vocab"]])


def rename(job: Any) -> Any:
    made = job.of("train")
    topica.set_topic_labels(made, {3: "shipping"})
    return topica.topic_labels(made)


def merge(job: Any) -> Any:
    """Models of clusters only. The model itself changes, so it is fitted again here."""
    before = aligned(job, job.of("train_vectors").labels)
    job.of("train_vectors").merge_topics([[3, 7]])
    after = aligned(job, job.kept.pop("train_vectors").labels)
    return {"pair": [3, 7], "before": before, "after": after}


def reduce(job: Any) -> Any:
    """By another fit with `nr_topics`."""
    rows = corpus_of(job).metadata["row"].to_numpy()
    made = topica.BERTopic(min_cluster_size=100, nr_topics=10, seed=0)
    return aligned(job, made.fit(corpus_of(job), job.vectors()[rows].astype(float)).labels)


def hierarchy(job: Any) -> Any:
    made = topica.evaluate.topic_dendrogram(job.of("train"))
    return {"joins": len(made.linkage), "topics": 20}


def over_time(job: Any) -> Any:
    """Shares, and with prevalence_ci bands; models with times inside (dynamic topic models, keyATM) are there too."""
    made, months = job.of("train"), [date[:7] for date in corpus_of(job).metadata["date"]]
    shares = topica.topics_over_time(made, months)["prevalence"]
    return {"assigned": aligned(job, made.doc_topic.argmax(axis=1)), "series": {t: shares[:, t] for t in range(20)}}


def by_group(job: Any) -> Any:
    """Regressions of shares on covariates with their uncertainty; permutation tests; structural topic models."""
    made, teams = job.of("train"), corpus_of(job).metadata["team"].to_numpy()
    effects = topica.effects.estimate_effect(
        made, X=(teams == "A").astype(float)[:, None], feature_names=["A"], corpus=corpus_of(job)
    )
    job.keep("effects", effects)
    shares = {t: [float(made.doc_topic[teams == g, t].mean()) for g in ("A", "B")] for t in range(20)}
    return {"assigned": aligned(job, made.doc_topic.argmax(axis=1)), "groups": shares, "test": "regression"}


def along_number(job: Any) -> Any:
    """Regression with splines; here the means of the groups by score, and the effect."""
    made, scores = job.of("train"), corpus_of(job).metadata["score"].to_numpy()
    effects = topica.effects.estimate_effect(made, X=scores[:, None].astype(float), feature_names=["score"],
                                             corpus=corpus_of(job))  # fmt: skip
    ends = {}
    for effect in effects:
        start, slope = (float(value) for value in effect.coef)
        ends[effect.topic] = [start + slope, start + 5 * slope]
    return {"assigned": aligned(job, made.doc_topic.argmax(axis=1)), "ends": ends}


def new_documents(job: Any) -> Any:
    tokens = [topica.tokenize(text, stopwords=topica.ENGLISH_STOPWORDS) for text in job.texts("new")]
    shares = job.of("train").transform(tokens)
    return {"assigned": aligned(job, job.of("train").doc_topic.argmax(axis=1)), "new": shares.argmax(axis=1)}


def load(job: Any) -> Any:
    """A file of its own format; the words of new texts are made again by oneself."""
    made = job.of("train")
    made.save("saved.topica")
    code = (
        "import json, csv, topica\n"
        "texts = [row['text'] for row in csv.DictReader(open('new.csv', encoding='utf-8'))][:100]\n"
        "tokens = [topica.tokenize(text, stopwords=topica.ENGLISH_STOPWORDS) for text in texts]\n"
        "print(json.dumps(topica.LDA.load('saved.topica').transform(tokens).argmax(axis=1).tolist()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    tokens = [topica.tokenize(text, stopwords=topica.ENGLISH_STOPWORDS) for text in job.texts("new")[:100]]
    before = made.transform(tokens).argmax(axis=1).tolist()
    return {"before": before, "after": json.loads(done.stdout), "megabytes": Path("saved.topica").stat().st_size / 1e6}


def map(job: Any) -> Any:
    """A picture by PCA, or t-SNE or UMAP, without the texts; of more than eight topics, one is highlighted."""
    topica.viz.document_map(job.of("train")).to_png("map.png", dpi=80)
    return Path("map.png").resolve()


def page(job: Any) -> Any:
    """A page with words, a heat map and pictures; no documents and no search."""
    topica.viz.dashboard(job.of("train"), job.texts()).to_html("page.html")
    return Path("page.html").resolve()


def paper(job: Any) -> Any:
    """`topic_table` by pandas."""
    return pd.DataFrame(topica.inspect.topic_table(job.of("train"))).to_latex(index=False, caption="Topics")


def picture(job: Any) -> Any:
    topica.viz.term_barchart(job.of("train"), topic=0).to_png("bars.png")
    return Path("bars.png").resolve()
