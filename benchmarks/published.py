"""Fit every model with the settings of its paper, and write published.md beside the figures that papers report.

By default the corpora are both forms of 20 Newsgroups, with K = 50 and three seeds. Some papers train for hundreds of
epochs, so this takes many hours on a CPU; a run that was interrupted is continued. `--models` and `--corpora` select.
"""

from __future__ import annotations

import time
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import jobs
import shared
import topicloom as tl
from topicloom.models.persistence import model_class

OUT = shared.RESULTS / "published.jsonl"
PAGE = Path(__file__).with_name("published.md")
MODELS = ("ProdLDA", "ETM", "GSM", "DirichletVAE", "GMNTM", "NVLDA", "WLDA", "BATM", "NVDM")
CORPORA = ("20news-avitm", "20ng")
K = 50
# The figures of papers for 20 Newsgroups with K = 50: perplexity, NPMI, TD, and where they are.
REPORTED: dict[str, tuple[str, str, str, str]] = {
    "GSM": ("about 820", "", "", "Miao et al. 2017"),
    "NVDM": ("836", "", "", "Miao et al. 2016, table 1"),
    "ETM": ("", "", "", "Dieng et al. 2020"),
    "WLDA": ("", "", "", "Nan et al. 2019"),
    "GMNTM": ("", "", "", "none: VaDE is not a topic model"),
    "DirichletVAE": ("", "", "", "Burkhardt & Kramer 2019"),
    "ProdLDA": ("1172", "0.24", "", "Srivastava & Sutton 2017; NPMI in table 1"),
    "NVLDA": ("1059", "0.11", "", "Srivastava & Sutton 2017; NPMI in table 1"),
    "BATM": ("", "", "", "Wang et al. 2020"),
}
COLUMNS = {
    "epochs_done": ("epochs", 0), "cpu": ("seconds", 0), "bound_ppl": ("perplexity (bound)", 0),
    "own_ppl": ("perplexity (completion)", 0), "npmi": ("NPMI", 3), "td": ("TD", 2), "npmi0": ("NPMI 0", 3),
    "td0": ("TD 0", 2), "alive": ("active", 1), "twins": ("duplicates", 1),
}  # fmt: skip
HEAD = """# Models as published

All models have the settings of their papers, which `as_published` gives
([docs/published.md](../docs/published.md)), with K = 50. `make bench-published` writes this page. A model without a row
has not been fitted at full length yet.

## What papers report

These are figures for 20 Newsgroups with K = 50. The figures were entered without the papers at hand, and
have yet to be checked against them. Cells of which we are not certain are empty.

"""
BETWEEN = """
## What the configurations give here

Perplexities are those of test documents, and all figures are given as mean ± standard deviation over seeds.
`20news-avitm` is the corpus of ProdLDA (1,995 words), and `20ng` has 5,000 words.

- seconds: processor time of the fit, with one thread.
- perplexity (bound): from the evidence lower bound, as in the papers. WLDA and BATM have no bound, and theirs is from
  the likelihood at the encoder's theta.
- perplexity (completion): half of each test document is given, and the other half is scored.
- NPMI and TD: with words ranked by probability; NPMI 0 and TD 0 by relevance 0, as the authors of ProdLDA rank them.
- active: topics that are the main topic of some training document. duplicates: pairs of topics that share 8 of their 10
  top words.

"""
WHY = """
## Why the figures differ from those of the papers

- The documents differ. NVDM and GSM have a vocabulary of 2,000 words, ProdLDA and NVLDA one of 1,995 words, and `20ng`
  one of 5,000. Perplexity grows with the vocabulary.
- Perplexity is averaged differently: over all tokens here, and over documents in the code of ProdLDA, where short
  documents count as much as long ones.
- NPMI has other reference documents and other numbers of top words. Here it is that of 10 words over the training
  documents.
- The initial weights of the topics (`topic_scale`) and the number that batch normalisation adds to the variance
  (`batch_norm_eps`) matter for ProdLDA. With a standard deviation of .5 and a number of 1e-5, the run of seed 0 on
  `20news-avitm` had a perplexity (bound) of 1289, NPMI .120, NPMI 0 -.093 and 42 active topics.
- The settings of GSM that are not in its paper (`encoder_input`, `batch_size`, `learning_rate`, `epochs`) were chosen
  on held-out training documents of `20news-avitm`. With counts and a rate of .001, training diverged.
- GMNTM and BATM collapse with the settings of their papers: few topics are active, and many are duplicates. The
  defaults differ from these settings for that reason.
- docs/published.md lists what still differs in each model.
"""


def fit_and_evaluate(folder: Path, job: jobs.Job) -> dict[str, Any]:
    """Return the figures of one job."""
    data = shared.load(folder, job["corpus"])
    model = model_class(job["model"]).as_published(K, random_state=job["seed"], device="cpu")  # type: ignore[attr-defined]
    start = time.process_time()
    model, seconds = shared.fit(model, data)
    cpu = time.process_time() - start
    test = tl.Corpus.from_counts(data["test"], data["vocab"])
    bound = model.perplexity(test, method="bound")
    measured = shared.evaluate(folder, data, model)
    return {"seconds": seconds, "cpu": cpu, "epochs_done": len(model.history_), "bound_ppl": bound, **measured}


def page(rows: list[dict[str, Any]]) -> str:
    """Format the page."""
    reported = ([name, *(cell or "-" for cell in REPORTED[name])] for name in MODELS)
    parts = [HEAD, jobs.markdown(["model", "perplexity", "NPMI", "TD", "source"], reported), BETWEEN]
    body = []
    for corpus, name in product(CORPORA, MODELS):
        found = [row for row in rows if (row["corpus"], row["model"]) == (corpus, name) and "error" not in row]
        if found:
            figures = (jobs.spread(found, column, digits) for column, (_, digits) in COLUMNS.items())
            body.append([corpus, name, str(len(found)), *figures])
    header = ["corpus", "model", "seeds", *(title for title, _ in COLUMNS.values())]
    return "".join([*parts, jobs.markdown(header, body), WHY])


def main() -> None:
    parser = shared.parser(__doc__)
    jobs.add_arguments(parser, OUT)
    parser.add_argument("--models", default=",".join(MODELS), help="names, separated by commas")
    parser.add_argument("--corpora", default=",".join(CORPORA), help="names, separated by commas")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds")
    options = parser.parse_args()
    chosen = product(range(options.seeds), options.corpora.split(","), options.models.split(","))
    requested = [{"model": model, "corpus": corpus, "seed": seed} for seed, corpus, model in chosen]
    jobs.run(requested, partial(fit_and_evaluate, options.shared), options)
    every = [{"model": m, "corpus": c, "seed": seed} for m, c, seed in product(MODELS, CORPORA, range(3))]
    PAGE.write_text(page(jobs.latest(options.out, every)), encoding="utf-8")


if __name__ == "__main__":
    main()
