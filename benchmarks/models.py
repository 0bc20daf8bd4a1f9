"""Every model on every corpus with its default settings, judged on the test documents.

    python benchmarks/models.py [--jobs 2] [--variants GSM,ETM] [--corpora m10,bbc-news] [--topics 20,50] [--seeds 3]

Cells are kept in results/models.jsonl, and a run goes on where the last one ended. models.md is written from those of
all variants, corpora and K that the file has, whatever was asked for.
"""

from __future__ import annotations

import time
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import cells
import shared

OUT = shared.RESULTS / "models.jsonl"
PAGE = Path(__file__).with_name("models.md")
CHEAPEST_FIRST = ("m10", "bbc-news", "cnews10k", "20news-avitm", "20ng")
LINE = 0.75  # the diversity that every model should reach
COLUMNS = {
    "cpu": ("s", 1), "npmi": ("NPMI", 3), "td": ("TD", 2), "npmi6": ("NPMI 6", 3), "td6": ("TD 6", 2),
    "npmi_own": ("NPMI own", 3), "td_own": ("TD own", 2), "purity": ("purity", 3), "nmi": ("NMI", 3),
    "acc": ("accuracy", 3), "own_ppl": ("perplexity", 0), "twins": ("twins", 1), "alive": ("alive", 1),
}  # fmt: skip
HEAD = """# Every model on every corpus

Default settings, the same on every corpus; judged on test documents, on which no setting was chosen. Mean ± standard
deviation over seeds. `make bench-models` writes this page.

s: processor seconds of fit, in one thread. Three rankings of a topic's words: by probability, by relevance .6 (`6`),
and the package's own (`own`). NPMI of the 10 best words and TD of the 25 best; twins: pairs of topics that share 8 of
their 10 words (relevance .6); alive: topics that are the largest of some training document; perplexity: half of each
test document given, the other half scored, by the model's own decoder (which need not be a mixture). Purity, NMI and
accuracy need labels, which two corpora do not have. "cbow": word vectors trained on the same documents beforehand,
which s leaves out; where only counts are known, the order of words in them is drawn.

**✗** marks what misses the line: TD 6 of .75 (TD own on the titles of m10 and cnews10k) on average, and no twins and
all topics alive in every seed.
"""


def all_cells(variants: list[str], corpora: tuple[str, ...], topics: tuple[int, ...], seeds: range) -> list[cells.Cell]:
    """Seed by seed, so that a run that is cut short has all models on all corpora; within a seed, cheap ones first."""
    return [
        {"variant": variant, "corpus": corpus, "n_topics": n_topics, "seed": seed}
        for seed, corpus, n_topics, variant in product(seeds, corpora, topics, variants)
    ]


def fit_and_judge(folder: Path, cell: cells.Cell) -> dict[str, Any]:
    """The figures of one cell; `finite` is whether all of its training history is."""
    data = shared.load(folder, cell["corpus"])
    model = shared.VARIANTS[cell["variant"]].make(cell["n_topics"], cell["seed"], data)
    began = time.process_time()
    model, seconds = shared.fitted(model, data)
    cpu = time.process_time() - began
    numbers = [value for row in model.history_ for value in row.values()]
    finite = all(np.isfinite(value).all() for value in numbers) and np.isfinite(model.components_).all()
    return {"seconds": seconds, "cpu": cpu, "finite": bool(finite), **shared.judged(folder, data, model)}


def misses(corpus: str, rows: list[dict[str, Any]]) -> set[str]:
    """The columns that miss the line."""
    diversity = "td_own" if corpus in shared.SHORT else "td6"
    missed = {diversity} if np.mean([row[diversity] for row in rows]) < LINE else set()
    missed |= {"twins"} if any(row["twins"] for row in rows) else set()
    return missed | ({"alive"} if any(row["alive"] < row["n_topics"] for row in rows) else set())


def tables(rows: list[dict[str, Any]]) -> str:
    """A summary, and a table for each corpus and K."""
    groups: dict[tuple[str, int], dict[str, list[dict[str, Any]]]] = {}
    for row in rows:
        groups.setdefault((row["corpus"], row["n_topics"]), {}).setdefault(row["variant"], []).append(row)
    pages, missed_where = [], {variant: [] for variant in shared.VARIANTS}
    tried = dict.fromkeys(shared.VARIANTS, 0)
    for (corpus, n_topics), by_variant in sorted(groups.items(), key=lambda item: shared.CORPORA.index(item[0][0])):
        body = []
        for variant, found in by_variant.items():
            good = [row for row in found if "error" not in row]
            tried[variant] += 1
            missed = misses(corpus, good) if good else set()
            broken = [row for row in found if "error" in row or not row["finite"]]
            if missed or broken:
                missed_where[variant].append(f"{corpus} {n_topics}")
            figures = (
                cells.spread(good, name, digits) + (" **✗**" if name in missed else "")
                for name, (_, digits) in COLUMNS.items()
            )
            note = f" ({len(broken)} of {len(found)} failed)" if broken else ""
            body.append([f"{variant}{note}", str(len(good)), *figures])
        header = ["variant", "seeds", *(title for title, _ in COLUMNS.values())]
        pages.append(f"\n## {corpus}, K={n_topics}\n\n{cells.markdown(header, body)}")
    summary = [
        [variant, f"{count - len(missed_where[variant])} of {count}", ", ".join(missed_where[variant]) or "-"]
        for variant, count in tried.items()
        if count
    ]
    return f"\n{cells.markdown(['variant', 'reaches the line', 'misses it on'], summary)}{''.join(pages)}"


def main() -> None:
    parser = shared.parser(__doc__)
    cells.arguments(parser, OUT)
    parser.add_argument("--variants", help="names of variants or models; all by default")
    parser.add_argument("--corpora", default=",".join(CHEAPEST_FIRST))
    parser.add_argument("--topics", default="20,50")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    corpora = tuple(name for name in CHEAPEST_FIRST if name in options.corpora.split(","))
    topics = tuple(map(int, options.topics.split(",")))
    asked = all_cells([v.name for v in shared.variants(options.variants)], corpora, topics, range(options.seeds))
    cells.run(asked, partial(fit_and_judge, options.shared), options)
    whole = all_cells(list(shared.VARIANTS), CHEAPEST_FIRST, (20, 50), range(3))
    PAGE.write_text(HEAD + tables(cells.latest(options.out, whole)), encoding="utf-8")


if __name__ == "__main__":
    main()
