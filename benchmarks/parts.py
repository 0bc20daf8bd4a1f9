"""What topica's Gibbs sampler owes to each of its parts, which are taken away one at a time: parts.md.

    python benchmarks/parts.py [--jobs 2] [--corpora m10,bbc-news] [--seeds 2] [--minutes 30]

The models learn from the training documents but a part, on which they are evaluated, as in loom.py. Every fit has one
thread. topica runs in the environment that `make bench-parts` makes. Results are lines of results/parts.jsonl, and a
run continues where the last one ended.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

import best
import jobs
import shared
from topicloom import Corpus
from topicloom.models.loom.cvb0 import expected_counts_plain
from topicloom.training.batches import BatchReader

OUT, PAGE = shared.RESULTS / "parts.jsonl", Path(__file__).with_name("parts.md")
CASES = {"m10": 50, "emnlp2020": 50, "bbc-news": 20, "cnews10k": 50, "20ng": 50}  # K of each corpus
WHOLE = best.TOPICA["topica 1000"]
OURS = "topics of topica, theta of Loom's refinement"
PARTS = {
    "topica": {},
    "one state instead of the mean of five": {"fit": {"num_samples": 1}},
    "fixed alpha and eta": {"model": {"optimize_interval": 0}},
    "one alpha for all topics": {"model": {"use_symmetric_alpha": True}},
    "theta from one sample instead of the mean of ten": {"transform": {"num_samples": 1}},
    OURS: {},
    "spectral start": {"model": {"init": "spectral"}},
    "CVB0 instead of sampling": {"model": {"sampler": "cvb0"}},
    "200 iterations": {},
}
STEPS = 10  # of refinement, as Loom has them
COLUMNS = {
    "cpu": ("processor s", 1), "npmi": ("NPMI", 3), "td": ("TD", 3), "npmi6": ("NPMI .6", 3), "td6": ("TD .6", 3),
    "purity": ("purity", 3), "nmi": ("NMI", 3), "acc": ("accuracy", 3), "own_ppl": ("perplexity", 0),
}  # fmt: skip
HEAD = """# What a strong Gibbs sampler owes to each of its parts

`make bench-parts` writes this page. topica 0.62 with 1,000 iterations, one thread and the settings of
[best.md](best.md) is changed in one part at a time, as the name of the row says. Its alpha (for each topic) and eta are
learned, its topics are means over five states, and theta of a new document is the mean over ten samples. In the row
"{ours}", theta is inferred as by Loom without its encoder, in
{steps} steps of CVB0 with topica's alpha.

The models are evaluated on 15 % of the training documents, on which settings are chosen. The first table has
differences from the whole sampler with the same seed, as means over seeds and over the corpora that the row has been
measured on; time and perplexity are in percent. The others have means over seeds. The columns are those of best.md.

"""


def work(folder: Path, python: Path, job: jobs.Job) -> dict[str, Any]:
    """Return the figures of one job."""
    torch.set_num_threads(1)
    data, name = shared.held_out(shared.load(folder, job["corpus"])), job["variant"]
    peer = replace(WHOLE, settings=PARTS[name], epochs=200 if name == "200 iterations" else WHOLE.epochs)
    result = best.fit_peer(folder, data, python, peer, CASES[job["corpus"]], peer.epochs, 1, job["seed"])
    row = {"seconds": float(result["seconds"]), "cpu": float(result["cpu_seconds"])}
    if name == OURS:
        half, _ = shared.independent_metrics(folder).split_counts(data["test"])
        for part, counts in (("train", data["train"]), ("test", data["test"]), ("half", half)):
            result[f"theta_{part}"] = refined(counts, result["beta"], result["alpha"])
    return row | best.peer_scores(folder, data, peer, result)


def refined(counts: Any, beta: Any, alpha: Any) -> Any:
    """Return theta (D, K) of documents by the steps with which Loom refines it, given topics (K, V) and alpha (K,)."""
    beta_t, prior = torch.from_numpy(beta.T).float().contiguous(), torch.from_numpy(alpha).float()
    found = []
    for batch in BatchReader(Corpus.from_counts(counts).counts, 1024, torch.device("cpu")):
        start = (prior / prior.sum()).repeat(batch.n_docs, 1)  # (B, K)
        theta = expected_counts_plain(batch.counts, beta_t, prior, start, STEPS) + prior
        found.append((theta / theta.sum(1, keepdim=True)).numpy())
    return np.concatenate(found)


def all_jobs(corpora: list[str], seeds: range) -> list[jobs.Job]:
    """Return the jobs, ordered by seed."""
    return [
        {"corpus": corpus, "variant": variant, "seed": seed}
        for seed, corpus, variant in product(seeds, [each for each in CASES if each in corpora], PARTS)
    ]


def page(rows: list[dict[str, Any]]) -> str:
    """Format the page."""
    found = {(row["corpus"], row["variant"], row["seed"]): row for row in rows if "error" not in row}
    header = ["part", *(title for title, _ in COLUMNS.values())]
    body = []
    for variant in list(PARTS)[1:]:
        cells = [variant]
        for name, (_, digits) in COLUMNS.items():
            by_corpus = [differences(found, corpus, variant, name) for corpus in CASES]
            values = [float(np.mean(some)) for some in by_corpus if some]
            ratio = name in ("cpu", "own_ppl")
            cells.append("-" if not values else f"{np.mean(values):+.{1 if ratio else digits}f}" + " %" * ratio)
        body.append(cells)
    text = HEAD.format(ours=OURS, steps=STEPS) + jobs.markdown(header, body)
    for corpus, n_topics in CASES.items():
        lines = []
        for variant in PARTS:
            seeds = [row for key, row in found.items() if key[:2] == (corpus, variant)]
            if seeds:
                figures = (jobs.spread(seeds, name, digits) for name, (_, digits) in COLUMNS.items())
                lines.append([variant, str(len(seeds)), *figures])
        text += f"\n## {corpus}, K={n_topics}\n\n{jobs.markdown([header[0], 'seeds', *header[1:]], lines)}"
    return text


def differences(found: dict[Any, dict[str, Any]], corpus: str, variant: str, name: str) -> list[float]:
    """Return a variant's figure minus that of the whole sampler for each seed; times and perplexities in percent."""
    values = []
    for (of, which, seed), row in found.items():
        whole = found.get((corpus, "topica", seed))
        if (of, which) == (corpus, variant) and whole is not None and np.isfinite(row.get(name, np.nan)):
            percent = 100 * (row[name] / whole[name] - 1) if name in ("cpu", "own_ppl") else row[name] - whole[name]
            values.append(percent)
    return values


def main() -> None:
    parser = shared.parser(__doc__)
    jobs.add_arguments(parser, OUT)
    shared.add_peers(parser, "topica")
    parser.add_argument("--corpora", default=",".join(CASES), help="names, separated by commas")
    parser.add_argument("--seeds", type=int, default=2, help="number of seeds")
    options = parser.parse_args()
    if not options.peers.exists() and not options.table:
        raise SystemExit(f"{options.peers} does not exist; run `make bench-parts`")
    requested = all_jobs(options.corpora.split(","), range(options.seeds))
    jobs.run(requested, partial(work, options.shared, options.peers), options)
    PAGE.write_text(page(jobs.latest(options.out, all_jobs(list(CASES), range(options.seeds)))), encoding="utf-8")


if __name__ == "__main__":
    main()
