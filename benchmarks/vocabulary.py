"""Test the claim of Dieng et al. 2020 that the quality of ETM holds as the vocabulary grows and stop words are kept.

    python benchmarks/vocabulary.py [--corpus emnlp2020] [--jobs 2] [--seeds 3] [--minutes 30] [--table]

The vocabulary of one raw corpus, with all stop words, is extended by rarer and rarer words. ETM and LDA learn from four
fifths of the documents; the others are used for perplexity by document completion. Results are stored in
results/vocabulary.jsonl, and a run continues where the last one ended. vocabulary.md and vocabulary.png are written
from them.
"""

from __future__ import annotations

import time
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import jobs
import shared
import topicloom as tl
from topicloom import metrics
from topicloom.metrics import duplicate_topics

OUT = shared.RESULTS / "vocabulary.jsonl"
PAGE = Path(__file__).with_name("vocabulary.md")
MIN_DF = (100, 50, 20, 10, 5, 2)
N_TOPICS = 20
MODELS = ("ETM", "ETM cbow", "LDA variational", "LDA gibbs")
COLOURS = dict(zip(MODELS, ("#2f5d8a", "#7fa8cf", "#b5472f", "#d99a3d"), strict=True))
TICKS = (200, 500, 1000, 2000, 5000)
MIN_NPMI = 0.02  # below this coherence, a ratio to it is meaningless
HEAD = f"""# Growing vocabularies

All models have {N_TOPICS} topics and otherwise their default settings. The corpus is {{corpus}}. Its stop words are
kept, and words in fewer than `min_df` documents are removed. The figures are mean ± standard deviation over seeds.
`make bench-vocabulary` writes this page and its figure.

- perplexity: by document completion, on held-out documents.
- perplexity / V: the same divided by the size of the vocabulary, as in the paper.
- NPMI (probability), NPMI (own): coherence of the ten top words over the training documents. The words are ranked by
  probability, as in the paper, and by the package's own rule.
- ratio: perplexity / V divided by NPMI (probability), the paper's measure; lower is better. It is left out (-) if this
  NPMI is below {MIN_NPMI} for any seed, because the ratio would be negative, or large only through its small
  denominator.
- TD: diversity of the 25 top words, in the package's own ranking.
- duplicates: pairs of topics that share 8 of their 10 top words, in the package's own ranking.

![perplexity, coherence and their ratio against the size of the vocabulary](vocabulary.png)
"""


@cache
def corpus(folder: Path, name: str, min_df: int) -> tuple[tl.Corpus, Any]:
    """Return the training corpus, and the counts of its words in the held-out documents."""
    if name == "python_docs":
        texts = list(tl.datasets.python_docs(min_df=1).texts or ())
    else:
        lines = (folder / "data" / name / "lines.txt").read_text(encoding="utf-8").splitlines()
        texts = [line for line in lines if line.strip()]
    order = np.random.default_rng(0).permutation(len(texts))
    held_out, training = order[: len(texts) // 5], order[len(texts) // 5 :]
    train = tl.Corpus.from_texts([texts[row] for row in training], min_df=min_df, max_df=1.0, stop_words=None)
    return train, train.encode([texts[row] for row in held_out])


def figures(folder: Path, job: jobs.Job) -> dict[str, Any]:
    """Fit one model with one vocabulary, and return its figures."""
    train, test = corpus(folder, job["corpus"], job["min_df"])
    model = shared.VARIANTS[job["variant"]].make(N_TOPICS, job["seed"])
    if job["variant"] == "ETM cbow":
        model.set_params(word_vectors=tl.train_word_vectors(train))
    start = time.perf_counter()
    model.fit(train)
    seconds = time.perf_counter() - start
    probable, own = model.topic_ids(10, relevance=1.0), model.topic_ids(25)
    return {
        "seconds": seconds,
        "n_words": train.n_words,
        "perplexity": model.perplexity(test, method="completion"),
        "npmi_p": float(metrics.document_npmi(probable.tolist(), train.counts)),
        "npmi_own": float(metrics.document_npmi(own.tolist(), train.counts)),
        "td_own": len(np.unique(own)) / own.size,
        "twins": int(duplicate_topics(own[:, :10])),
    }


def with_ratio(row: dict[str, Any]) -> dict[str, Any]:
    """Add the normalised perplexity, and its ratio to coherence, or NaN where this is meaningless."""
    normalised = row["perplexity"] / row["n_words"]
    ratio = normalised / row["npmi_p"] if row["npmi_p"] >= MIN_NPMI else np.nan
    return row | {"normalised": normalised, "ratio": ratio}


def table(rows: list[dict[str, Any]]) -> str:
    """Format the table of all results."""
    columns = {
        "perplexity": ("perplexity", 0), "normalised": ("perplexity / V", 3), "npmi_p": ("NPMI (probability)", 3),
        "npmi_own": ("NPMI (own)", 3), "ratio": ("ratio", 2), "td_own": ("TD", 2), "twins": ("duplicates", 1),
    }  # fmt: skip
    body = []
    for min_df, variant in product(MIN_DF, MODELS):
        found = [row for row in rows if (row["min_df"], row["variant"]) == (min_df, variant)]
        if found:
            complete = {name: not np.isnan([row[name] for row in found]).any() for name in columns}
            spreads = (
                jobs.spread(found, name, digits) if complete[name] else "-" for name, (_, digits) in columns.items()
            )
            body.append([str(min_df), f"{found[0]['n_words']:,}", variant, str(len(found)), *spreads])
    return jobs.markdown(["min_df", "V", "model", "seeds", *(title for title, _ in columns.values())], body)


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw three panels with the size of the vocabulary on the horizontal axis."""
    from matplotlib.figure import Figure

    panels = {
        "normalised": "held-out perplexity / V\n(lower is better)",
        "npmi": "NPMI of ten words\n(higher is better)",
        "ratio": "perplexity / V over NPMI\n(lower is better)",
    }
    figure = Figure((11, 3.6), layout="constrained", dpi=130)
    for axes, (name, title) in zip(figure.subplots(1, 3), panels.items(), strict=True):
        for variant in MODELS:
            mine = [row for row in rows if row["variant"] == variant]
            sizes = sorted({row["n_words"] for row in mine})
            for column, style in {"npmi_own": "-", "npmi_p": ":"}.items() if name == "npmi" else {name: "-"}.items():
                values = [[row[column] for row in mine if row["n_words"] == size] for size in sizes]
                means = [np.mean(value) for value in values]
                label = variant if style == "-" else None
                axes.plot(sizes, means, style, marker=".", color=COLOURS[variant], label=label)
                low, high = [np.min(value) for value in values], [np.max(value) for value in values]
                axes.fill_between(sizes, low, high, color=COLOURS[variant], alpha=0.15, linewidth=0)
        axes.set_xscale("log")
        axes.set_xticks(TICKS, [f"{tick:,}" for tick in TICKS])
        axes.minorticks_off()
        axes.set_xlabel("words in the vocabulary")
        axes.set_title(title, fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
        if name == "npmi":
            axes.plot([], [], ":", color="grey", label="ranked by probability")
            axes.legend(fontsize=7, frameon=False)
    figure.savefig(path)


def main() -> None:
    parser = shared.parser(__doc__)
    jobs.add_arguments(parser, OUT)
    parser.add_argument("--corpus", default="emnlp2020", help='a folder with lines.txt, or "python_docs"')
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds")
    options = parser.parse_args()
    requested = [
        {"corpus": options.corpus, "seed": seed, "min_df": min_df, "variant": variant}
        for seed, min_df, variant in product(range(options.seeds), MIN_DF, MODELS)
    ]
    jobs.run(requested, partial(figures, options.shared), options)
    rows = [with_ratio(row) for row in jobs.latest(options.out, requested) if "error" not in row]
    if rows:
        draw(rows, PAGE.with_suffix(".png"))
        PAGE.write_text(f"{HEAD.format(corpus=options.corpus)}\n{table(rows)}", encoding="utf-8")


if __name__ == "__main__":
    main()
