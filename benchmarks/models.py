"""Fit every model on every corpus with its default settings, and evaluate it on the test documents.

    python benchmarks/models.py [--jobs 2] [--variants GSM,ETM] [--corpora m10,bbc-news] [--topics 20,50] [--seeds 3]

Results are stored in results/models.jsonl, and a run continues where the last one ended. models.md is written from the
results of all variants, corpora and K in the file, whichever of them this run requests.
"""

from __future__ import annotations

import time
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import jobs
import shared

OUT = shared.RESULTS / "models.jsonl"
EVEN = shared.RESULTS / "models_even_shares.jsonl"  # of models.md at e84474b, before shares were learned
COMPARED = {"npmi": ("NPMI", -0.01), "npmi6": ("NPMI .6", -0.01), "nmi": ("NMI", 0.0), "acc": ("accuracy", 0.0)}
EVEN_HEAD = """
## Compared with even shares

Before, `code_norm` was "fixed", and topics of all sizes had nearly equal shares ([shares.md](shares.md)). The table has
the differences from these earlier defaults: on how many combinations of corpus and K the figure is as good (NPMI at
most .01 lower, the others no lower), the mean difference, and the worst one. The earlier figures are means of three
seeds.

"""
PAGE = Path(__file__).with_name("models.md")
CHEAPEST_FIRST = ("m10", "bbc-news", "cnews10k", "20news-avitm", "20ng")
MIN_DIVERSITY = 0.75  # that every model should reach
COLUMNS = {
    "cpu": ("seconds", 1), "npmi": ("NPMI", 3), "td": ("TD", 2), "npmi6": ("NPMI .6", 3), "td6": ("TD .6", 2),
    "npmi_own": ("NPMI own", 3), "td_own": ("TD own", 2), "purity": ("purity", 3), "nmi": ("NMI", 3),
    "acc": ("accuracy", 3), "own_ppl": ("perplexity", 0), "bound_ratio": ("bound", 1),
    "twins": ("duplicates", 1), "alive": ("active", 1),
}  # fmt: skip
HEAD = """# Every model on every corpus

All models have their default settings, which are the same on every corpus, but for what the name of a row says: the
prior of WLDA, the estimator of DirichletVAE, the method of LDA, or word vectors. "DirichletVAE sparse" has
`sparsity=0.5`, and "ProdLDA 60 epochs" has `epochs=60` and `weight_decay=1e-4`. The figures are from test documents,
and are given as mean ± standard deviation over seeds. Settings were chosen on parts of the training documents.
However, test figures of Loom and NVDM were read between rounds of that work and influenced some choices
([best.md](best.md), [shares.md](shares.md)). `make bench-models` writes this page.

- seconds: processor time of the fit, with one thread.
- NPMI and TD: coherence of the 10 top words and diversity of the 25 top words of the topics. The words are ranked in
  three ways: by probability, by relevance .6 (`.6`), and by the package's own rule (`own`).
- purity, NMI, accuracy: purity and NMI of the documents' main topics, and accuracy of logistic regression on theta.
  They need labels, which two corpora do not have.
- perplexity: half of each test document is given, and the other half is scored with the model's own decoder, which need
  not be a mixture.
- bound: the perplexity of the evidence lower bound of whole documents, divided by the one of completion. Models that
  are not variational autoencoders have none, and neither have earlier rows.
- duplicates: pairs of topics that share 8 of their 10 top words (relevance .6).
- active: topics that are the main topic of some training document.

The word vectors of "cbow" are trained on the same documents beforehand, which the seconds do not include. If a corpus
has only counts, the order of the words in a document is random.

A model meets the criteria on a corpus if TD .6 is at least .75 on average (TD own on the titles of m10 and cnews10k),
and if it has no duplicates and all topics are active in every seed. **✗** marks the figures that do not.
"""


def all_jobs(variants: list[str], corpora: tuple[str, ...], topics: tuple[int, ...], seeds: range) -> list[jobs.Job]:
    """Return the jobs ordered by seed, so that an interrupted run has results of all models on all corpora."""
    return [
        {"variant": variant, "corpus": corpus, "n_topics": n_topics, "seed": seed}
        for seed, corpus, n_topics, variant in product(seeds, corpora, topics, variants)
    ]


def fit_and_evaluate(folder: Path, job: jobs.Job) -> dict[str, Any]:
    """Return the figures of one job; `finite` says whether the training history and the topics are finite."""
    data = shared.load(folder, job["corpus"])
    model = shared.VARIANTS[job["variant"]].make(job["n_topics"], job["seed"], data)
    start = time.process_time()
    model, seconds = shared.fit(model, data)
    cpu = time.process_time() - start
    numbers = [value for row in model.history_ for value in row.values()]
    finite = all(np.isfinite(value).all() for value in numbers) and np.isfinite(model.components_).all()
    return {"seconds": seconds, "cpu": cpu, "finite": bool(finite), **shared.evaluate(folder, data, model)}


def failed_criteria(corpus: str, rows: list[dict[str, Any]]) -> set[str]:
    """Return the columns that do not meet the criteria."""
    diversity = "td_own" if corpus in shared.SHORT else "td6"
    failed = {diversity} if np.mean([row[diversity] for row in rows]) < MIN_DIVERSITY else set()
    failed |= {"twins"} if any(row["twins"] for row in rows) else set()
    return failed | ({"alive"} if any(row["alive"] < row["n_topics"] for row in rows) else set())


def beside_even_shares(rows: list[dict[str, Any]]) -> str:
    """Format the differences from the figures in `EVEN`, which has a row for each variant, corpus and K."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        if "error" not in row:
            groups.setdefault((row["variant"], row["corpus"], row["n_topics"]), []).append(row)
    differences: dict[str, dict[str, list[tuple[float, str]]]] = {}
    for before in jobs.read(EVEN):
        now = groups.get((before["variant"], before["corpus"], before["n_topics"]), [])
        for name in COMPARED:
            if now and name in before:
                change = round(float(np.mean([row[name] for row in now])) - before[name], 3)
                place = f"{before['corpus']} {before['n_topics']}"
                differences.setdefault(before["variant"], {}).setdefault(name, []).append((change, place))
    body = []
    for variant, by_name in differences.items():
        cells = []
        for name, (_, least) in COMPARED.items():
            changes = by_name[name]
            kept = sum(change >= least for change, _ in changes)
            mean = np.mean([change for change, _ in changes])
            worst, place = min(changes)
            cells.append(f"{kept} of {len(changes)}, {mean:+.3f}, {worst:+.3f} ({place})")
        body.append([variant, *cells])
    return EVEN_HEAD + jobs.markdown(["variant", *(title for title, _ in COMPARED.values())], body)


def tables(rows: list[dict[str, Any]]) -> str:
    """Format a summary, and a table for each corpus and K."""
    groups: dict[tuple[str, int], dict[str, list[dict[str, Any]]]] = {}
    for row in rows:
        groups.setdefault((row["corpus"], row["n_topics"]), {}).setdefault(row["variant"], []).append(row)
    sections, failed_on = [], {variant: [] for variant in shared.VARIANTS}
    n_cases = dict.fromkeys(shared.VARIANTS, 0)
    for (corpus, n_topics), by_variant in sorted(groups.items(), key=lambda item: shared.CORPORA.index(item[0][0])):
        body = []
        for variant, found in by_variant.items():
            good = [row for row in found if "error" not in row]
            n_cases[variant] += 1
            failed = failed_criteria(corpus, good) if good else set()
            broken = [row for row in found if "error" in row or not row["finite"]]
            if failed or broken:
                failed_on[variant].append(f"{corpus} {n_topics}")
            figures = (
                jobs.spread(good, name, digits) + (" **✗**" if name in failed else "")
                for name, (_, digits) in COLUMNS.items()
            )
            note = f" ({len(broken)} of {len(found)} failed)" if broken else ""
            body.append([f"{variant}{note}", str(len(good)), *figures])
        header = ["variant", "seeds", *(title for title, _ in COLUMNS.values())]
        sections.append(f"\n## {corpus}, K={n_topics}\n\n{jobs.markdown(header, body)}")
    summary = [
        [variant, f"{count - len(failed_on[variant])} of {count}", ", ".join(failed_on[variant]) or "-"]
        for variant, count in n_cases.items()
        if count
    ]
    head = jobs.markdown(["variant", "meets the criteria", "does not meet them on"], summary)
    return f"\n{head}{beside_even_shares(rows)}{''.join(sections)}"


def main() -> None:
    parser = shared.parser(__doc__)
    jobs.add_arguments(parser, OUT)
    parser.add_argument("--variants", help="names of variants or models, separated by commas; default: all")
    parser.add_argument("--corpora", default=",".join(CHEAPEST_FIRST), help="names, separated by commas")
    parser.add_argument("--topics", default="20,50", help="numbers of topics, separated by commas")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds")
    options = parser.parse_args()
    corpora = tuple(name for name in CHEAPEST_FIRST if name in options.corpora.split(","))
    topics = tuple(map(int, options.topics.split(",")))
    requested = all_jobs([v.name for v in shared.variants(options.variants)], corpora, topics, range(options.seeds))
    jobs.run(requested, partial(fit_and_evaluate, options.shared), options)
    shown = all_jobs(list(shared.VARIANTS), CHEAPEST_FIRST, (20, 50), range(3))
    PAGE.write_text(HEAD + tables(jobs.latest(options.out, shown)), encoding="utf-8")


if __name__ == "__main__":
    main()
