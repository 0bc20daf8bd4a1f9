"""Fit every model with the settings of its paper, and write published.md beside the figures that papers report.

The table of docs/published.md has both side by side; `--table` writes it from the results of earlier runs.

By default the corpora are both forms of 20 Newsgroups, with K = 50 and three seeds. Some papers train for hundreds of
epochs, so this takes many hours on a CPU; a run that was interrupted is continued. `--models` and `--corpora` select.
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
import topicloom as tl
from topicloom.models import model_class

OUT = shared.RESULTS / "published.jsonl"
PAGE = Path(__file__).with_name("published.md")
# A second word is a recipe other than that of the model's own paper.
MODELS = (
    "ProdLDA", "ETM", "GSM", "GSM gsb", "GSM rsb", "DirichletVAE", "GMNTM", "GMNTM zll17", "NVLDA", "WLDA", "BATM",
    "NVDM",
)  # fmt: skip
CORPORA = ("20news-avitm", "20ng")
K = 50
NING = "Anonymous 2018, table 1"
# The figures for 20 Newsgroups with K = 50: model, measure, value, source, and where it was read.
REPORTED: tuple[tuple[str, str, str, str, str], ...] = (
    ("ProdLDA", "NPMI", "0.24", "Srivastava & Sutton 2017, table 1", "output of the authors, and a quotation"),
    ("ProdLDA", "perplexity", "1172", "Srivastava & Sutton 2017, table 3", "not checked"),
    ("ProdLDA", "NPMI", "0.236", NING, "secondary source"),
    ("ProdLDA", "perplexity", "1009", NING, "secondary source"),
    ("NVLDA", "NPMI", "0.11", "Srivastava & Sutton 2017, table 1", "not checked"),
    ("NVLDA", "perplexity", "1059", "Srivastava & Sutton 2017, table 3", "not checked"),
    ("NVLDA", "NPMI", "0.162", NING, "secondary source"),
    ("NVLDA", "perplexity", "1078", NING, "secondary source"),
    ("GSM", "perplexity", "about 820", "Miao et al. 2017", "not checked"),
    ("GSM", "NPMI", "0.223", f"Miao et al. 2017, as in {NING}", "secondary source"),
    ("GSM", "perplexity", "787", f"Miao et al. 2017, as in {NING}", "secondary source"),
    ("NVDM", "perplexity", "836", "Miao et al. 2016, table 1", "not checked"),
    ("NVDM", "NPMI", "0.186", NING, "secondary source"),
    ("NVDM", "perplexity", "837", NING, "secondary source"),
    ("BATM or GaussianBATM", "NPMI", "at most 0.082", "Wang et al. 2020", "quotation"),
    ("ETM", "-", "-", "Dieng et al. 2020", "not found"),
    ("WLDA", "-", "-", "Nan et al. 2019", "not found"),
    ("DirichletVAE", "-", "-", "Burkhardt & Kramer 2019", "not found"),
    ("GMNTM", "-", "-", "none: VaDE is not a topic model", "-"),
)
COLUMNS = {
    "epochs_done": ("epochs", 0), "cpu": ("seconds", 0), "bound_ppl": ("perplexity (bound)", 0),
    "document_ppl": ("by document", 0), "own_ppl": ("perplexity (completion)", 0), "npmi": ("NPMI", 3), "td": ("TD", 2),
    "npmi0": ("NPMI 0", 3), "td0": ("TD 0", 2), "npmi_rows": ("NPMI of rows", 3), "npmi_5_10": ("NPMI 5, 10", 3),
    "alive": ("active", 1), "twins": ("duplicates", 1),
}  # fmt: skip
DOCS = Path(__file__).resolve().parents[1] / "docs"
LANGUAGES = {
    "published.md": (
        ["model", "measure", "there", "source", *CORPORA, "seeds"],
        "not measured",
        " (10 words)",
    ),
    "published.zh-CN.md": (
        ["模型", "指标", "论文", "来源", *CORPORA, "种子数"],
        "未测量",
        "（10 个词）",
    ),
}
MARK = "<!-- made by benchmarks/published.py -->\n"
HEAD = """# Models as published

All models have the settings of their papers, which `as_published` gives
([docs/published.md](../docs/published.md)), with K = 50. `make bench-published` writes this page. A model without a row
has not been fitted at full length yet.

## What papers report

These are figures for 20 Newsgroups with K = 50. The tables of the papers were not at hand; the paper of Srivastava &
Sutton was, without its tables. The last column says where a figure was read instead:

- not checked: nowhere. The figure was entered without the paper at hand.
- not found: no figure of the paper was found.
- secondary source: in a later paper. "Anonymous 2018" is *A Bayesian Nonparametric Topic Model with Variational
  Auto-Encoders*, submitted to ICLR 2018. It has the documents and the vocabulary of Srivastava & Sutton.
- output, quotation: see the remarks below the table.

"""
REMARKS = """
Remarks:

- ProdLDA, NPMI 0.24: the authors' code has the output of their coherence script for three runs with K = 50
  (`coherence_from_paper_script/AVTIM_50` in akashgit/autoencoding_vi_for_topic_models): .251, .231 and .251, with ten
  words for each topic. The value .24 for table 1 is quoted in a discussion at MilaNLProc/contextualized-topic-models
  (number 120). The reference documents are not named; others measured less on Wikipedia with the same topics
  (number 10 in the authors' repository).
- ProdLDA and NVLDA, perplexity: it is computed from the evidence lower bound, and is in table 3, according to the text
  of section 6. The paper has 11,000 training documents and a vocabulary of 2,000 words.
- Anonymous 2018: perplexity is averaged over documents and computed from the bound. NPMI is the mean of that of 5 words
  and that of 10, over five runs. The figures of GSM are the best ones of Miao et al. 2017. The paper does not say
  whether the other figures are its own or quoted.
- BATM and GaussianBATM: NPMI is the C_NPMI of Palmetto. According to a discussion at dice-group/Palmetto (number 62),
  the table of Wang et al. has values from .04 to .08 for 20 Newsgroups, and .0819 is the highest. The discussion does
  not name the model or K.
"""
BETWEEN = """
## What the configurations give here

Perplexities are those of test documents, and all figures are given as mean ± standard deviation over seeds.
`20news-avitm` is the corpus of ProdLDA (1,995 words), and `20ng` has 5,000 words.

- seconds: processor time of the fit, with one thread.
- perplexity (bound): from the evidence lower bound, over all tokens. WLDA and BATM have no bound, and theirs is from
  the likelihood at the encoder's theta.
- by document: the same, averaged over documents: exp(-mean of bound / tokens). Rows that are older than this column
  lack it.
- perplexity (completion): half of each test document is given, and the other half is scored.
- NPMI and TD: with words ranked by probability; NPMI 0 and TD 0 by relevance 0. NPMI of rows: by the rows of B, as the
  authors of ProdLDA rank them. NPMI 5, 10: the mean of the NPMI of 5 words and that of 10, as in Anonymous 2018; in
  ProdLDA, by the rows of B.
- active: topics that are the main topic of some training document. duplicates: pairs of topics that share 8 of their 10
  top words.

"""
WHY = """
## Why the figures differ from those of the papers

- The documents differ. The code of NVDM has a vocabulary of 2,000 words, that of ProdLDA, NVLDA and WLDA one of 1,995
  words, and `20ng` has 5,000. Perplexity grows with the vocabulary.
- Perplexity can be averaged over all tokens or over documents, where short documents count as much as long ones. The
  code of ProdLDA and ETM averages over documents; that of NVDM prints both, and calls the former "Perplexity". So it is
  not certain what the tables of Miao et al. have. Here, that of GSM over tokens is near theirs, and that by document
  12 % above with two of three seeds; that of NVDM is 1 % above and 9 % below. In the code of ETM, perplexity is that of
  document completion.
- The code of ProdLDA and NVLDA computes perplexity for one document at a time, and normalises the mean and the variance
  of the posterior with the statistics of this one document. The posterior is then the same for all documents. It is not
  known whether the figures of the paper were computed in this way: according to the authors, the published code has
  slightly different settings.
- The code of NVDM trains ten times as long as the configuration here ([docs/published.md](../docs/published.md#nvdm)).
- NPMI has other reference documents and other numbers of top words. Here it is that of 10 words over the training
  documents.
- The initial weights of the topics (`topic_scale`) and the number that batch normalisation adds to the variance
  (`batch_norm_eps`) matter for ProdLDA. With a standard deviation of .5 and a number of 1e-5, the run of seed 0 on
  `20news-avitm` had a perplexity (bound) of 1289, NPMI .120, NPMI 0 -.093 and 42 active topics.
- There are two versions of the code of ProdLDA. Until June 2017 it kept .8 of the hidden vector and of theta in
  training, and the README had 80 epochs, as `as_published` has. Since then they are .4 and 200. On `20news-avitm`
  (seed 0), the later version has a perplexity (bound) of 1140 and an NPMI of rows of .321, and .4 with 80 epochs 1274
  and .258. The dropout of theta causes the latter perplexity: without it (`theta_dropout=0`), it is 1139. 1e-8 in
  place of .001 in the normalisation of the code (`code_norm_eps`) changes little: 1265 and .256.
- The settings of GSM that are not in its paper (`encoder_input`, `batch_size`, `learning_rate`, `epochs`) were chosen
  on held-out training documents of `20news-avitm`. With counts and a rate of .001, training diverged.
- GSB uses few topics. In its prior, which has no shares, topic k expects half of what the topics before it have left,
  so that the first ten of 50 topics have practically all of it. Ten to 17 topics are in use, and the others stay as
  they started, so that many are duplicates. This is the construction of the paper. RSB, whose breaks depend on each
  other by a recurrent network, uses 6 to 9 topics on both corpora. By document, the perplexity of GSB with seed 1 is
  23,755: five of 7,487 test documents, with at most three words each, have a bound of up to -12,117 nats for a token.
  Without them it is 999. Two documents, of one and of two words, give GSM with seed 1 1,491 by document; without the
  five worst it is 888, and 878 with seed 2 (909 with them).
- GMNTM and BATM collapse with the settings of their papers: few topics are active, and many are duplicates. The
  defaults differ from these settings for that reason. On `20news-avitm`, GMNTM with seed 1 stops in the second batch,
  because its gradient is not finite, so that its row has two seeds.
- In GMNTM, the pretraining itself collapses: after it, all documents have the same main topic (5,000 documents of
  `20news-avitm`, seed 0). Of 50 components, 46 have documents when the mixture is fitted, and 2 at the end. If the
  mixture starts at k-means, as in the code of zll17, these are 50 and 1.
- GMNTM with the settings of zll17 has no row: on `20ng`, its loss is not finite in the first batch after the
  pretraining (seed 0), because exp(log-variance) overflows. After 4 epochs of pretraining with the first 3,000
  documents (K = 50), the largest log-variance is 1,510; with `encoder_input="log1p"` it is 888, with "l1" or "tfidf"
  below .1. In the authors' network, which then copies the layer of the mean to that of the log-variance, it is 7,032
  in the first batch; 80 % of the documents have one above 88.7, the limit of single precision, and the reconstruction
  is not a number. With titles (`m10`, 10 epochs) it is 38, and with the authors' tf-idf .3, and the losses are
  finite. With "tfidf", 2,000 documents and the 30 epochs of pretraining, losses are finite here, too; after 10
  epochs, 46 of 50 topics are the main topic of no document. To read their code with today's PyTorch, `forward` has to
  return three values, and the binary cross-entropy has to accept counts above 1.
- ETM and DirichletVAE leave topics unused with the settings of their papers: 17 to 23 of 50 in ETM, and 3 to 13 in
  DirichletVAE, which `patience` stopped after 159 to 269 epochs.
- docs/published.md lists what still differs in each model.
"""


def fit_and_evaluate(folder: Path, job: jobs.Job) -> dict[str, Any]:
    """Return the figures of one job."""
    data = shared.load(folder, job["corpus"])
    name, *recipe = job["model"].split()
    further = {"recipe": recipe[0]} if recipe else {}
    kind: Any = model_class(name)
    model = kind.as_published(K, random_state=job["seed"], device="cpu", **further)
    start = time.process_time()
    model, seconds = shared.fit(model, data)
    cpu = time.process_time() - start
    test = tl.Corpus.from_counts(data["test"], data["vocab"])
    bounds, n_tokens = model.log_likelihood(test, "bound")
    averages = {"bound_ppl": "corpus", "document_ppl": "document"}
    perplexities = {key: float(tl.metrics.perplexity(bounds, n_tokens, average)) for key, average in averages.items()}
    coherence = _coherence(folder, data, model, name)
    measured = shared.evaluate(folder, data, model)
    return {"seconds": seconds, "cpu": cpu, "epochs_done": len(model.history_), **perplexities, **coherence, **measured}


def _coherence(folder: Path, data: dict[str, Any], model: Any, name: str) -> dict[str, float]:
    """Return the mean of the NPMI of 5 words and that of 10, and for ProdLDA that of 10 words.

    The words of ProdLDA are those with the largest weights in each row of B, as its authors rank them. Those of other
    models have the largest probabilities.
    """
    if name == "ProdLDA":
        weights = model.network_.decoder.topics.deviations().detach().cpu().numpy()  # (V, K)
        tops = (-weights.T).argsort(1)[:, :10]  # (K, 10)
    else:
        tops = model.topic_ids(10, relevance=1)  # (K, 10)
    npmi = shared.independent_metrics(folder).npmi
    five, ten = (float(np.mean(npmi(tops[:, :n].tolist(), data["train"]))) for n in (5, 10))
    return {"npmi_5_10": (five + ten) / 2} | ({"npmi_rows": ten} if name == "ProdLDA" else {})


def page(rows: list[dict[str, Any]]) -> str:
    """Format the page."""
    parts = [HEAD, jobs.markdown(["model", "measure", "value", "source", "read in"], REPORTED), REMARKS, BETWEEN]
    body = []
    for corpus, name in product(CORPORA, MODELS):
        found = [row for row in rows if (row["corpus"], row["model"]) == (corpus, name) and "error" not in row]
        if found:
            figures = (jobs.spread(found, column, digits) for column, (_, digits) in COLUMNS.items())
            body.append([corpus, name, str(len(found)), *figures])
    header = ["corpus", "model", "seeds", *(title for title, _ in COLUMNS.values())]
    return "".join([*parts, jobs.markdown(header, body), WHY])


def _figure(rows: list[dict[str, Any]], model: str, measure: str, source: str, ten_words: str) -> str:
    """Format what stands beside a figure of a paper.

    It is not certain what the perplexity of a paper is averaged over, so both averages are given. Anonymous 2018 has
    the mean of the NPMI of 5 words and that of 10; if no row has this, `ten_words` follows the NPMI of 10 words.
    """
    if measure == "perplexity":
        return " / ".join(jobs.spread(rows, column, 0) for column in ("bound_ppl", "document_ppl"))
    column = "npmi_rows" if model == "ProdLDA" else "npmi"
    if not source.endswith(NING):
        return jobs.spread(rows, column, 3)
    has_both = any("npmi_5_10" in row for row in rows)
    return jobs.spread(rows, "npmi_5_10", 3) if has_both else jobs.spread(rows, column, 3) + ten_words


def there_and_here(rows: list[dict[str, Any]], header: list[str], not_measured: str, ten_words: str) -> str:
    """Format the table of published figures and of those here.

    Args:
        rows: the results.
        header: the titles of the columns.
        not_measured: what stands for a figure that has not been measured here.
        ten_words: what follows an NPMI of 10 words where the paper has another one.
    """
    body = []
    for name, measure, value, source, _ in REPORTED:
        if measure == "-":
            continue
        model = name.split()[0]
        cells, n_seeds = [], []
        for corpus in CORPORA:
            found = [row for row in rows if (row["corpus"], row["model"]) == (corpus, model) and "error" not in row]
            cells.append(_figure(found, model, measure, source, ten_words) if found else not_measured)
            n_seeds.append(str(len(found)))
        body.append([name, measure, value, source, *cells, ", ".join(n_seeds)])
    return jobs.markdown(header, body)


def write_docs(rows: list[dict[str, Any]]) -> None:
    """Replace the tables between the marks in docs/published.md and its Chinese twin."""
    for name, words in LANGUAGES.items():
        before, _, after = (DOCS / name).read_text(encoding="utf-8").split(MARK)
        text = MARK.join([before, there_and_here(rows, *words), after])
        (DOCS / name).write_text(text, encoding="utf-8")


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
    found = jobs.latest(options.out, every)
    PAGE.write_text(page(found), encoding="utf-8")
    write_docs(found)


if __name__ == "__main__":
    main()
