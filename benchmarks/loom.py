"""The effect of each part of Loom: it is removed or changed, and the model is evaluated on held-out training documents.

    python benchmarks/loom.py [--jobs 2] [--experiments Loom,"no sampling"] [--corpora m10] [--topics 50] [--seeds 2]

The figures of each fit are appended to results/loom.jsonl, and a run continues where the last one stopped. After the
package has changed, --again repeats finished fits. The script writes the part of loom.md between its two marks, from
all fits in the file. The rest of the page is written by hand.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

import jobs
import shared
import topicloom as tl
from topicloom.models.loom import collapsed, cvb0, relocation, sampling
from topicloom.models.loom import collapsed as pruning
from topicloom.models.loom import model as loom_model
from topicloom.models.loom.collapsed import CollapsedCounts
from topicloom.models.loom.cvb0 import SMALLEST, CountedTopics, draw_counts
from topicloom.models.loom.sampling import SamplingStage
from topicloom.nn.sparse import TINY, SparseCounts

OUT = shared.RESULTS / "loom.jsonl"
PAGE = Path(__file__).with_name("loom.md")
START, END = "<!-- made by loom.py -->", "<!-- end -->"
CHEAPEST_FIRST = ("m10", "bbc-news", "cnews10k", "emnlp2020", "20ng")
OURS, REFERENCE = "Loom", "LDA gibbs"
COLUMNS = {
    "cpu": ("processor s", 1), "npmi": ("NPMI", 3), "td": ("TD", 2), "npmi6": ("NPMI .6", 3), "td6": ("TD .6", 2),
    "nmi": ("NMI", 3), "acc": ("accuracy", 3), "own_ppl": ("perplexity", 0),
}  # fmt: skip
COMPARED = ("npmi", "td", "npmi6", "td6", "nmi", "acc")
HEAD = """
Each experiment changes one part of Loom, as its name says, and keeps the default settings otherwise. Models are
evaluated on 15 % of the training documents, where settings are chosen. A figure is the experiment's minus Loom's with
the same seed, averaged over seeds and then over corpora; perplexity is in percent of Loom's. Above 0 is better, except
for perplexity, where below 0 is better. corpora: the number of corpora; fits: the number of corpora and seeds; time:
the ratio of processor time. "± of a seed" is the standard deviation of Loom's figures over seeds, the root mean square
over corpora with at least two seeds; a difference of that size may be chance. Experiments that change refinement alone
have the topics of Loom, except on emnlp2020, where a small share of the background topics is divided only if refinement
has 10 steps.

"""
LEGEND = """
The other tables have means over seeds, with the standard deviation for Loom and the reference. processor s: of fit;
NPMI of the 10 top words and TD of the 25 top words, by probability and (`.6`) by relevance .6; NMI of the main topic of
each document with its label; accuracy of logistic regression on theta; perplexity: by document completion, given half
of each document.
"""


@dataclass(frozen=True)
class Experiment:
    """A model with settings that differ from the defaults, and with parts that are replaced while it is fitted."""

    name: str
    expected: str
    settings: dict[str, Any] = field(default_factory=dict)
    during: Callable[[], AbstractContextManager[Any]] = nullcontext
    model: str = "Loom"

    def make(self, n_topics: int, seed: int) -> tl.TopicModel:
        return getattr(tl, self.model)(n_topics, random_state=seed, **self.settings)  # type: ignore[no-any-return]


# Replacements of parts of the package.


@contextmanager
def replaced(owner: Any, name: str, new: Callable[..., Any]) -> Iterator[None]:
    """Replace a function by `new` in the body of the with statement.

    Raises:
        RuntimeError: nothing has called it, because the package no longer has the part in this place.
    """
    calls = 0

    def stand_in(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        return new(*args, **kwargs)

    with patch.object(owner, name, stand_in):
        yield
    if not calls:
        raise RuntimeError(f"the experiment replaces {name}, which nothing has called")


@contextmanager
def random_start() -> Iterator[None]:
    """Counting starts with topics that are the corpus's word frequencies times noise, and with an even theta."""
    start, initial_counts = CollapsedCounts.start, CollapsedCounts._initial_counts

    def random_topics(
        counts: CollapsedCounts, beta_t: torch.Tensor, usage: torch.Tensor, generator: torch.Generator
    ) -> None:
        noise = torch.rand(beta_t.shape, generator=generator, device=beta_t.device)
        topics = counts.tokens[:, None] * noise
        start(counts, topics / topics.sum(0), torch.full_like(usage, 1 / len(usage)), generator)

    def even(counts: CollapsedCounts, batch: Any, theta: torch.Tensor | None) -> torch.Tensor:
        even_theta = None if theta is None else torch.full_like(theta, 1 / theta.shape[1])
        return initial_counts(counts, batch, even_theta)

    with replaced(CollapsedCounts, "start", random_topics), replaced(CollapsedCounts, "_initial_counts", even):
        yield


@contextmanager
def in_parts(name: str, new: Callable[..., Any]) -> Iterator[None]:
    """Count by separate functions instead of one compiled loop, and replace the one with this name."""
    with patch.object(collapsed, "recount", cvb0.recount_plain), replaced(cvb0, name, new):
        yield


def not_drawn(means: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return means


def poisson(means: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return torch.poisson(means, generator=generator)


@contextmanager
def noise_of_theta() -> Iterator[None]:
    """Counts of documents are drawn as from Dirichlet(alpha + N_d), where the prior's part is drawn too."""
    count = CollapsedCounts.count

    def count_drawn(
        counts: CollapsedCounts, batch: Any, theta: torch.Tensor, generator: torch.Generator, **kwargs: Any
    ) -> Any:
        def other(means: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
            return (draw_counts(means + counts.alpha, generator) - counts.alpha).clamp_min(0)

        with patch.object(collapsed, "recount", cvb0.recount_plain), patch.object(cvb0, "draw_counts", other):
            return count(counts, batch, theta, generator, **kwargs)

    with replaced(CollapsedCounts, "count", count_drawn):
        yield


def kept_in_documents() -> AbstractContextManager[None]:
    """A token's own count is not excluded from the counts of its document while counting."""

    def reassigned(
        batch: SparseCounts,
        values: torch.Tensor,
        doc_topics: torch.Tensor,
        topics: CountedTopics,
        alpha: torch.Tensor,
        word_topics: torch.Tensor,
        *,
        excluded: bool = True,
    ) -> torch.Tensor:
        shares, of_docs = doc_topics + alpha, torch.zeros_like(doc_topics)
        step = max(1, (1 << 17) // len(alpha))  # in small blocks, which is slower than a compiled loop
        for rows, ids, x in zip(
            batch.documents.split(step), batch.indices.split(step), values[:, None].split(step), strict=True
        ):
            theta, beta = shares[rows], topics.beta_t[ids]  # (n, K) each
            if excluded:
                own = theta * beta
                own /= own.sum(1, keepdim=True) + SMALLEST
                beta = torch.maximum(beta - own * x / topics.sizes, topics.smallest)
            gamma = theta * beta
            gamma *= x / (gamma.sum(1, keepdim=True) + SMALLEST)
            of_docs.index_add_(0, rows, gamma)
            word_topics.index_add_(0, ids, gamma)
        return of_docs

    return in_parts("reassign", reassigned)


@contextmanager
def kept_in_words() -> Iterator[None]:
    """A token's own count is not excluded from the counts of its word, in counting and in sampling."""

    recount, sample = collapsed.recount, sampling.sample_with_numerator

    def recounted(*args: Any, excluded: bool) -> Any:
        return recount(*args, excluded=False)

    def sampled(
        counts: Any, draws: Any, previous: torch.Tensor, topics: CountedTopics, *args: Any, **kwargs: Any
    ) -> Any:
        endless = replace(topics, sizes=torch.full_like(topics.sizes, torch.inf))  # one token changes no probability
        return sample(counts, draws, previous, endless, *args, **kwargs)

    with replaced(collapsed, "recount", recounted), replaced(sampling, "sample_with_numerator", sampled):
        yield


@contextmanager
def drawn_at_once() -> Iterator[None]:
    """All tokens of a document are drawn at the same time, given the topics of the last pass."""

    def sampled(*args: Any, are_kept: bool = True) -> Any:
        drawn = sampling.sample_plain(*args)
        return drawn, cvb0.dirichlet_step(drawn, args[4])[0]

    with patch.object(sampling, "N_GROUPS", 1), replaced(sampling, "sample_with_numerator", sampled):
        yield


def not_averaged() -> AbstractContextManager[None]:
    """The counts of words are those of the last sampling pass."""

    def end_pass(stage: SamplingStage, word_topics: torch.Tensor) -> torch.Tensor:
        stage.passes_done += 1
        return word_topics

    return replaced(SamplingStage, "end_pass", end_pass)


def eta_fixed() -> AbstractContextManager[None]:
    return replaced(collapsed, "eta_step", lambda word_topics, eta: eta)


def not_excluded_in_new_documents() -> AbstractContextManager[None]:
    """The refinement of new documents does not exclude a token's own count, as in expectation-maximisation."""

    def expected(
        documents: SparseCounts, beta_t: torch.Tensor, alpha: torch.Tensor, start: torch.Tensor, steps: int
    ) -> torch.Tensor:
        counts, theta = documents.totals[:, None] * start, start  # (B, K) each
        for number in range(steps):
            theta = (counts + alpha) / (counts + alpha).sum(1, keepdim=True) if number else start
            ratio = documents.values / (documents.sampled_product(theta, beta_t) + TINY)  # (N,)
            counts = theta * documents.times(ratio, beta_t)
        return counts

    return replaced(collapsed, "expected_counts", expected)


@contextmanager
def coherence_alone() -> Iterator[None]:
    with patch.object(pruning, "_SHARED_PENALTY", 0.0), patch.object(pruning, "_OVERLAP_PENALTY", 0.0):
        yield


def most_words_kept() -> AbstractContextManager[None]:
    """Pruning keeps the topics that have most of the corpus's words, whether or not they are coherent."""

    def largest(topics: Any, counts: Any, reference: Any, n_topics: int, protected: Any) -> Any:
        tokens = np.bincount(topics.argmax(0), weights=counts, minlength=len(topics))
        return np.sort(np.argsort(-(tokens + protected * tokens.sum()), kind="stable")[:n_topics])

    return replaced(pruning, "choose_topics", largest)


# The experiments, in the order of the page.

EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        Experiment(REFERENCE, "The reference: a Gibbs sampler with 1,000 passes.", {"method": "gibbs"}, model="LDA"),
        Experiment(OURS, "The defaults."),
        Experiment("pretraining alone", "GSM: topics share common words, and the fit is worse.", model="GSM"),
        Experiment(
            "no sampling",
            "Topics are those of the counting stage: much less time, and a worse fit.",
            {"epochs": 32, "pretrain_share": 4 / 32, "sample_share": 0.0},
        ),
        Experiment(
            "no sampling, three times the counting passes",
            "Expected counts stay near the optimum that they have reached: little changes.",
            {"epochs": 88, "pretrain_share": 4 / 88, "sample_share": 0.0},
        ),
        Experiment(
            "half the sampling passes",
            "Less time, a slightly worse fit.",
            {"epochs": 159, "pretrain_share": 4 / 159, "sample_share": 127 / 159},
        ),
        Experiment(
            "twice the sampling passes",
            "More time, a slightly better fit.",
            {"epochs": 540, "pretrain_share": 4 / 540, "sample_share": 508 / 540},
        ),
        Experiment("random start", "The passes are too few to find topics from a random start.", during=random_start),
        Experiment(
            "random start after one epoch",
            "More passes of counting from a random start, which are still too few.",
            {"pretrain_share": 0.003},
            random_start,
        ),
        Experiment(
            "random weights, 12 epochs of pretraining",
            "As before training started at clusters of documents.",
            {"start": "random", "epochs": 294, "pretrain_share": 12 / 294, "sample_share": 254 / 294},
        ),
        Experiment(
            "half the pretraining",
            "Two epochs after the start at clusters: little changes.",
            {"epochs": 284, "pretrain_share": 2 / 284, "sample_share": 254 / 284},
        ),
        Experiment(
            "twice the pretraining",
            "A better start: little changes.",
            {"epochs": 290, "pretrain_share": 8 / 290, "sample_share": 254 / 290},
        ),
        Experiment(
            "half the counting passes",
            "Spare topics are removed sooner: little changes.",
            {"epochs": 272, "pretrain_share": 4 / 272, "sample_share": 254 / 272},
        ),
        Experiment("twice the epochs", "A little better, for twice the time.", {"epochs": 2 * tl.Loom.epochs}),
        Experiment(
            "no background topics", "All topics keep common words, and are less diverse.", {"background_topics": 0.0}
        ),
        Experiment("twice the background topics", "Fewer topics are left for themes.", {"background_topics": 0.1}),
        Experiment("no spare topics", "K topics from the start are less coherent.", {"spare_topics": 0.0}),
        Experiment("half the spare topics", "There are fewer topics to choose from.", {"spare_topics": 0.5}),
        Experiment(
            "spare topics removed at once",
            "The kept topics have no passes in between to take over documents.",
            during=partial(patch.object, pruning, "_N_STEPS", 1),
        ),
        Experiment("largest topics kept", "Pruning by size is no better than no spare topics.", during=most_words_kept),
        Experiment(
            "pruning by coherence alone",
            "Topics are coherent, and some of them are similar.",
            during=coherence_alone,
        ),
        Experiment(
            "pruning without topic overlap",
            "The same, except if the vocabulary is small.",
            during=partial(patch.object, pruning, "_OVERLAP_PENALTY", 0.0),
        ),
        Experiment(
            "one learning rate for all lengths",
            "Topics of titles are not yet formed when counting starts; longer texts stay as they are.",
            during=partial(patch.object, loom_model, "_MAX_RATE_FACTOR", 1.0),
        ),
        Experiment(
            "copies not relocated",
            "The same topics, because few topics of real texts are copies.",
            during=partial(patch.object, relocation, "_MOMENTS", ()),
        ),
        Experiment(
            "encoder trained at every batch",
            "The encoder is trained twenty times as often, and overfits titles.",
            during=partial(patch.object, loom_model, "_ENCODER_INTERVAL", 1),
        ),
        Experiment("count power 1", "As in LDA: a better fit, topics of single long documents.", {"count_power": 1.0}),
        Experiment("count power .5", "More coherent topics, a worse fit.", {"count_power": 0.5}),
        Experiment("no sharpening", "A better fit, less diverse topics.", {"sharpness": 1.0}),
        Experiment("sharpness 1.5", "More diverse topics, a worse fit.", {"sharpness": 1.5}),
        Experiment(
            "all words sharpened",
            "The same top words, a worse fit.",
            during=partial(patch.object, cvb0, "_N_TOP_WORDS", 10**6),
        ),
        Experiment(
            "no noise",
            "Counting reaches the nearest optimum, which the sampling passes improve.",
            during=partial(in_parts, "draw_counts", not_drawn),
        ),
        Experiment(
            "Poisson noise",
            "Whole counts instead of gamma variables while counting: little changes.",
            during=partial(in_parts, "draw_counts", poisson),
        ),
        Experiment(
            "noise of theta",
            "As a sampler draws theta; little changes if alpha is small.",
            during=noise_of_theta,
        ),
        Experiment(
            "own count kept in documents",
            "While counting, a token confirms its own topic; sampling repairs only a part of this on titles.",
            during=kept_in_documents,
        ),
        Experiment(
            "own count kept in words",
            "With few tokens per word, rare words cannot change their topic.",
            during=kept_in_words,
        ),
        Experiment(
            "all tokens drawn at once",
            "Topics of documents are less certain, and alpha is higher.",
            during=drawn_at_once,
        ),
        Experiment(
            "counts of the last pass",
            "Without averages, the counts of rare words are those of a single draw: a worse fit.",
            during=not_averaged,
        ),
        Experiment("eta not learned", "eta stays .01: a worse fit.", during=eta_fixed),
        Experiment("no refinement", "The same topics, a worse theta, above all for perplexity.", {"refine": 0}),
        Experiment("refine 5", "The same topics, theta closer to the encoder's.", {"refine": 5}),
        Experiment("refine 30", "The same topics, theta that hardly depends on the encoder.", {"refine": 30}),
        Experiment(
            "own count kept in new documents",
            "The same topics; in a title, a token confirms its own topic, and perplexity is higher.",
            during=not_excluded_in_new_documents,
        ),
        Experiment(
            "same prior for all documents",
            "The same topics; the encoder's theta is only the start of the refinement.",
            during=partial(patch.object, collapsed, "ENCODER_PRIOR_SHARE", 0.0),
        ),
    )
}


def all_jobs(names: list[str], corpora: tuple[str, ...], topics: tuple[int, ...], seeds: range) -> list[jobs.Job]:
    """Return the fits in the order of seeds, so that an interrupted run has all corpora; cheap corpora come first."""
    return [
        {"experiment": name, "corpus": corpus, "n_topics": n_topics, "seed": seed}
        for seed, corpus, n_topics, name in product(seeds, corpora, topics, names)
    ]


def fit_and_evaluate(folder: Path, job: jobs.Job) -> dict[str, Any]:
    """Return the figures of one fit."""
    data, experiment = shared.held_out(shared.load(folder, job["corpus"])), EXPERIMENTS[job["experiment"]]
    model = experiment.make(job["n_topics"], job["seed"])
    with experiment.during():
        began = time.process_time()
        model, seconds = shared.fit(model, data)
        cpu = time.process_time() - began
        return {"seconds": seconds, "cpu": cpu, **shared.evaluate(folder, data, model)}


# The page.

Place = tuple[str, int]  # a corpus and K
Found = dict[Place, dict[str, dict[int, dict[str, Any]]]]  # by place, experiment and seed


def difference(row: dict[str, Any], ours: dict[str, Any], name: str) -> float:
    """Return an experiment's figure minus Loom's; for perplexity in percent."""
    value, of_ours = row.get(name, np.nan), ours.get(name, np.nan)
    return float(100 * (value / of_ours - 1) if name == "own_ppl" else value - of_ours)


def mean(values: list[float]) -> float:
    """Return the mean of the finite values, and nan if there are none."""
    finite = [value for value in values if np.isfinite(value)]
    return float(np.mean(finite)) if finite else float("nan")


def shown(name: str, value: float, sign: str = "+") -> str:
    if not np.isfinite(value):
        return "-"
    return f"{value:{sign}.1f} %" if name == "own_ppl" else f"{value:{sign}.3f}"


def summary(found: Found) -> str:
    """Return tables of the differences from Loom, averaged over all corpora, over titles, and over longer texts."""
    titles = {place: here for place, here in found.items() if place[0] in shared.SHORT}
    others = {place: here for place, here in found.items() if place not in titles}
    pages = [_summary(found)]
    if titles and others:
        for title, part in (("Titles", titles), ("Longer texts", others)):
            names = ", ".join(dict.fromkeys(corpus for corpus, _ in part))
            pages.append(f"\n{title} alone ({names}):\n\n{_summary(part, with_expectations=False)}")
    return "".join(pages)


def _summary(found: Found, with_expectations: bool = True) -> str:
    """Return one table, with a column of what was expected if it is asked for."""
    names, body = (*COMPARED, "own_ppl"), []
    for experiment in EXPERIMENTS.values():
        places = []  # pairs of the same seed, for each place where both were fitted
        for here in found.values():
            ours, theirs = here.get(OURS, {}), here.get(experiment.name, {})
            if both := sorted(ours.keys() & theirs.keys()):
                places.append([(theirs[seed], ours[seed]) for seed in both])
        if not places or experiment.name == OURS:
            continue
        figures = (mean([mean([difference(*pair, name) for pair in pairs]) for pairs in places]) for name in names)
        times = mean([mean([row["cpu"] / ours["cpu"] for row, ours in pairs]) for pairs in places])
        fits, line = str(sum(map(len, places))), map(shown, names, figures)
        body.append([experiment.name, str(len(places)), fits, f"{times:.2f}", *line, experiment.expected])
    if seeds := [list(here[OURS].values()) for here in found.values() if len(here.get(OURS, {})) > 1]:
        spread = (shown(name, chance(seeds, name), sign="") for name in names)
        body.append(["± of a seed", str(len(seeds)), str(sum(map(len, seeds))), "-", *spread, ""])
    header = ["experiment", "corpora", "fits", "time", *(COLUMNS[name][0] for name in names), "expected"]
    return (
        jobs.markdown(header, body) if with_expectations else jobs.markdown(header[:-1], [line[:-1] for line in body])
    )


def chance(seeds: list[list[dict[str, Any]]], name: str) -> float:
    """Return the standard deviation over seeds, given the rows of each corpus."""
    variances = []
    for rows in seeds:
        values = np.array([row.get(name, np.nan) for row in rows])
        variances.append(np.var(100 * values / values.mean() if name == "own_ppl" else values, ddof=1))
    return mean(variances) ** 0.5


def tables(rows: list[dict[str, Any]]) -> str:
    """Return the summary, and a table for each corpus and K."""
    found: Found = {}
    failed: dict[tuple[Place, str], int] = {}
    for row in rows:
        place, name = (row["corpus"], row["n_topics"]), row["experiment"]
        if "error" in row:
            failed[place, name] = failed.get((place, name), 0) + 1
        else:
            found.setdefault(place, {}).setdefault(name, {})[row["seed"]] = row
    pages = [HEAD, summary(found), LEGEND]
    for place, here in sorted(found.items(), key=lambda item: (CHEAPEST_FIRST.index(item[0][0]), item[0][1])):
        body = []
        for name in EXPERIMENTS:
            good, bad = list(here.get(name, {}).values()), failed.get((place, name), 0)
            if not good and not bad:
                continue
            figures = [jobs.spread(good, column, digits) for column, (_, digits) in COLUMNS.items()]
            if name not in (OURS, REFERENCE):
                figures = [figure.split(" ± ")[0] for figure in figures]
            note = f" ({bad} of {bad + len(good)} failed)" if bad else ""
            body.append([name + note, str(len(good)), *figures])
        header = ["experiment", "seeds", *(title for title, _ in COLUMNS.values())]
        pages.append(f"\n## {place[0]}, K={place[1]}\n\n{jobs.markdown(header, body)}")
    return "".join(pages)


def write(made: str) -> None:
    """Write the tables between the marks of the page, and leave the rest of it as it is."""
    page = (
        PAGE.read_text(encoding="utf-8") if PAGE.exists() else f"# The effect of each part of Loom\n\n{START}\n{END}\n"
    )
    before, start, rest = page.partition(START)
    _, end, after = rest.partition(END)
    if not (start and end):
        raise SystemExit(f"{PAGE} should have a line {START} and, after it, a line {END}")
    PAGE.write_text(f"{before}{start}\n{made}\n{end}{after}", encoding="utf-8")


def chosen(names: str | None) -> list[str]:
    """Return the experiments named in a comma-separated list, by default all, in the order of the page."""
    if names is None:
        return list(EXPERIMENTS)
    wanted = {name.strip().lower() for name in names.split(",")}
    if unknown := wanted - {name.lower() for name in EXPERIMENTS}:
        raise SystemExit(f"unknown experiment: {', '.join(sorted(unknown))}; choose from {', '.join(EXPERIMENTS)}")
    return [name for name in EXPERIMENTS if name.lower() in wanted]


def main() -> None:
    parser = shared.parser(__doc__)
    jobs.add_arguments(parser, OUT)
    parser.add_argument("--experiments", help="names of experiments, separated by commas; default: all")
    parser.add_argument("--corpora", default=",".join(CHEAPEST_FIRST))
    parser.add_argument("--topics", default="50")
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    corpora = tuple(name for name in CHEAPEST_FIRST if name in options.corpora.split(","))
    topics = tuple(map(int, options.topics.split(",")))
    asked = all_jobs(chosen(options.experiments), corpora, topics, range(options.seeds))
    jobs.run(asked, partial(fit_and_evaluate, options.shared), options)
    kept = jobs.read(options.out)
    numbers = tuple(sorted({row["n_topics"] for row in kept}))
    seeds = range(max((row["seed"] for row in kept), default=-1) + 1)
    whole = all_jobs(list(EXPERIMENTS), CHEAPEST_FIRST, numbers, seeds)
    write(tables(jobs.latest(options.out, whole)))


if __name__ == "__main__":
    main()
