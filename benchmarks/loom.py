"""What each part of Loom is worth: it is left out or changed, and judged on held-out training documents.

    python benchmarks/loom.py [--jobs 2] [--experiments Loom,"no noise"] [--corpora m10] [--topics 50] [--seeds 2]

Cells are kept in results/loom.jsonl, and a run goes on where the last one ended; after a change to the package, --again
works them off anew. Of loom.md only what is between two marks is written, from all cells that the file has; the rest of
the page is written by hand.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
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
from topicloom.models.loom import counting as weft_module
from topicloom.models.loom import cvb0 as collapsed_module
from topicloom.models.loom import model as loom_module
from topicloom.models.loom import pruning as selection
from topicloom.models.loom import spare_topics as spares_module
from topicloom.models.loom.compiled import reassign
from topicloom.models.loom.counting import Weft
from topicloom.models.loom.cvb0 import noisy
from topicloom.nn.sparse import TINY

OUT = shared.RESULTS / "loom.jsonl"
PAGE = Path(__file__).with_name("loom.md")
START, END = "<!-- made by loom.py -->", "<!-- end -->"
CHEAPEST_FIRST = ("m10", "bbc-news", "cnews10k", "emnlp2020", "20ng")
OURS, REFERENCE = "Loom", "LDA gibbs"
COLUMNS = {
    "cpu": ("processor s", 1), "npmi": ("NPMI", 3), "td": ("TD", 2), "npmi6": ("NPMI 6", 3), "td6": ("TD 6", 2),
    "nmi": ("NMI", 3), "acc": ("accuracy", 3), "own_ppl": ("perplexity", 0),
}  # fmt: skip
COMPARED = ("npmi", "td", "npmi6", "td6", "nmi", "acc")
HEAD = """
Default settings but for what an experiment's name says; judged on 15 % of the training documents, where settings are
chosen. Here each figure is the experiment's less Loom's of the same seed, the mean over corpora of the mean over seeds,
with perplexity in percent of Loom's; what is better is above 0, but below 0 for perplexity. corpora: how many it has
been run on, fits: on how many of them and seeds; time: of the processor, as a ratio. "± of a seed": the standard
deviation of Loom's figures over seeds, the root of the mean square over corpora that have at least two; a difference of
that size may be chance. Experiments that only refine otherwise have the topics of Loom.

"""
LEGEND = """
In the other tables, means over seeds, with the standard deviation for Loom and the reference. processor s: of fit;
NPMI of the 10 best words and TD of the 25 best, by probability and (`6`) by relevance .6; NMI of the largest topic of
each document, accuracy of logistic regression on theta; perplexity: half of each document given, the other half scored.
"""


@dataclass(frozen=True)
class Experiment:
    """A model with what is asked of it beyond its defaults, and what is put in the place of its parts."""

    name: str
    expected: str
    settings: dict[str, Any] = field(default_factory=dict)
    during: Callable[[], AbstractContextManager[Any]] = nullcontext
    model: str = "Loom"

    def make(self, n_topics: int, seed: int) -> tl.TopicModel:
        return getattr(tl, self.model)(n_topics, random_state=seed, **self.settings)  # type: ignore[no-any-return]


# Parts of the package that experiments replace.


@contextmanager
def replaced(owner: Any, name: str, new: Callable[..., Any]) -> Iterator[None]:
    """In it, `new` stands in the place of a function.

    Raises RuntimeError if nothing has called it: the package no longer has that part where the experiment looks for it.
    """
    calls = 0

    def stand_in(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        return new(*args, **kwargs)

    with patch.object(owner, name, stand_in):
        yield
    if not calls:
        raise RuntimeError(f"nothing has called {name}, which the experiment replaces")


@contextmanager
def random_start() -> Iterator[None]:
    """Topics start as the corpus's frequencies times noise, and each document with an even share of all of them."""
    begin, start = Weft.begin, Weft._start

    def random_topics(weft: Weft, beta_t: torch.Tensor, usage: torch.Tensor, generator: torch.Generator) -> None:
        noise = torch.rand(beta_t.shape, generator=generator, device=beta_t.device)
        topics = weft.tokens[:, None] * noise
        begin(weft, topics / topics.sum(0), torch.full_like(usage, 1 / len(usage)), generator)

    def even(weft: Weft, batch: Any, theta: torch.Tensor | None, sizes: torch.Tensor) -> torch.Tensor:
        return start(weft, batch, None if theta is None else torch.full_like(theta, 1 / theta.shape[1]), sizes)

    with replaced(Weft, "begin", random_topics), replaced(Weft, "_start", even):
        yield


@contextmanager
def drawn(draw: Callable[[Weft, torch.Tensor, float, torch.Generator], torch.Tensor]) -> Iterator[None]:
    """The counts of documents are drawn otherwise in the weft, and nothing else is."""
    weave = Weft.weave

    def woven(weft: Weft, batch: Any, theta: torch.Tensor, generator: torch.Generator) -> Any:
        def other(counts: torch.Tensor, *noise: Any) -> torch.Tensor:
            of_words = len(counts) == len(weft.tokens)
            return noisy(counts, *noise) if of_words else draw(weft, counts, *noise)

        with replaced(weft_module, "noisy", other):
            return weave(weft, batch, theta, generator)

    with replaced(Weft, "weave", woven):
        yield


_PASSES = tl.Loom.epochs - round(tl.Loom.warp * tl.Loom.epochs)  # of the weft
_QUIET = 5


def not_drawn(weft: Weft, counts: torch.Tensor, noise: float, generator: torch.Generator) -> torch.Tensor:
    return counts


def poisson(weft: Weft, counts: torch.Tensor, noise: float, generator: torch.Generator) -> torch.Tensor:
    return torch.poisson(counts, generator=generator)


def as_theta(weft: Weft, counts: torch.Tensor, noise: float, generator: torch.Generator) -> torch.Tensor:
    """What a draw of theta from Dirichlet(alpha + N_d) gives: the prior's part has noise too."""
    return (noisy(counts + weft.alpha, noise, generator) - weft.alpha).clamp_min(0)


def quiet_end(weft: Weft, counts: torch.Tensor, noise: float, generator: torch.Generator) -> torch.Tensor:
    return counts if weft.passes >= _PASSES - _QUIET else noisy(counts, noise, generator)


def left_in(*, documents: bool, words: bool) -> AbstractContextManager[None]:
    """A token is not left out of the counts of its document, or of its word, when it is shared out anew."""

    def shared_out(
        batch: Any,
        values: torch.Tensor,
        doc_topics: torch.Tensor,
        topics: Any,
        alpha: torch.Tensor,
        word_topics: torch.Tensor,
        *,
        left_out: float = 1.0,
    ) -> torch.Tensor:
        shares, of_docs = doc_topics + alpha, torch.zeros_like(doc_topics)
        step = max(1, (1 << 17) // len(alpha))  # small blocks; slower than where the package's own loop is compiled
        for rows, ids, x in zip(
            batch.documents.split(step), batch.indices.split(step), values[:, None].split(step), strict=True
        ):
            theta, beta = shares[rows], topics.beta_t[ids]  # (n, K) each
            own = theta * beta
            own /= own.sum(1, keepdim=True) + TINY**3
            if not documents:
                theta = torch.maximum(theta - own, alpha)
            if left_out and not words:
                beta = torch.maximum(beta - left_out * own * x / topics.sizes, topics.least)
            gamma = theta * beta
            gamma *= x / (gamma.sum(1, keepdim=True) + TINY**3)
            of_docs.index_add_(0, rows, gamma)
            word_topics.index_add_(0, ids, gamma)
        return of_docs

    return replaced(loom_module, "reassign", shared_out)


def wholly_left_out() -> AbstractContextManager[None]:
    """All of a token is left out of the counts of its word, however many there are."""

    def all_out(*args: Any, left_out: float) -> torch.Tensor:
        return reassign(*args, left_out=1.0)

    return replaced(loom_module, "reassign", all_out)


@contextmanager
def coherence_alone() -> Iterator[None]:
    with patch.object(selection, "_SHARED", 0.0), patch.object(selection, "_ALIKE", 0.0):
        yield


def most_words_kept() -> AbstractContextManager[None]:
    """Of the spare topics those stay that have most of the corpus's words, be they coherent or not."""

    def choice(topics: Any, counts: Any, reference: Any, n_topics: int, held: Any) -> Any:
        tokens = np.bincount(topics.argmax(0), weights=counts, minlength=len(topics))
        return np.sort(np.argsort(-(tokens + held * tokens.sum()), kind="stable")[:n_topics])

    return replaced(selection, "choose_topics", choice)


# The experiments, in the order of the page.

EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        Experiment(REFERENCE, "A sampler with 1,000 passes: the reference.", {"method": "gibbs"}, model="LDA"),
        Experiment(OURS, "The defaults."),
        Experiment("warp alone", "GSM: topics that share common words, and a worse fit.", model="GSM"),
        Experiment("random start", "So few passes do not find topics by themselves.", during=random_start),
        Experiment(
            "random start at once",
            "Without a warp, nearly all epochs are passes, which are still too few.",
            {"warp": 0.01},
            random_start,
        ),
        Experiment("more weft", "A rougher start, more passes: little changes.", {"warp": 0.25}),
        Experiment("more warp", "A better start, fewer passes: little changes.", {"warp": 0.75}),
        Experiment("twice the epochs", "A little better, for twice the time.", {"epochs": 2 * tl.Loom.epochs}),
        Experiment("no common topics", "All topics keep common words: less diverse.", {"common": 0.0}),
        Experiment("twice as many common topics", "Fewer topics are left for themes.", {"common": 0.1}),
        Experiment("no spare topics", "As many topics as asked for from the start: less coherent.", {"spare": 0.0}),
        Experiment("half as many spare topics", "Fewer to choose from.", {"spare": 0.5}),
        Experiment(
            "spare topics go at once",
            "Those left have no passes in between to take over documents.",
            during=partial(patch.object, spares_module, "_STAGES", 1),
        ),
        Experiment("largest topics kept", "Spare topics chosen by size: as without a choice.", during=most_words_kept),
        Experiment(
            "choice by coherence alone",
            "Coherent topics, of which some are alike.",
            during=coherence_alone,
        ),
        Experiment(
            "choice without whole topics",
            "The same, but where the vocabulary is small.",
            during=partial(patch.object, selection, "_ALIKE", 0.0),
        ),
        Experiment(
            "whole warp",
            "Long texts warp as long as titles: little changes.",
            during=partial(patch.object, loom_module, "_LEAST_WARP", 1.0),
        ),
        Experiment(
            "a lesson at every batch",
            "The encoder is taught twenty times as much: it learns titles by heart.",
            during=partial(patch.object, loom_module, "_LESSON", 1),
        ),
        Experiment(
            "no momentum",
            "Steps as long as EM's: so many passes do not arrive.",
            during=partial(patch.object, collapsed_module, "_BEYOND", 0.0),
        ),
        Experiment(
            "no tint",
            "Topics without common words: common topics are the largest of more documents.",
            during=partial(patch.object, weft_module, "_TINT", 0.0),
        ),
        Experiment("no damping", "A better fit, topics of single long documents.", {"damping": 1.0}),
        Experiment("no sharpening", "A better fit, less diverse topics.", {"sharpness": 1.0}),
        Experiment(
            "sharpness 1.5",
            "The same on all corpora: too little on titles, too much on long texts.",
            {"sharpness": 1.5},
        ),
        Experiment("sharpness 2.5", "More diverse topics, a worse fit.", {"sharpness": 2.5}),
        Experiment(
            "all words sharpened",
            "The same best words, a worse fit.",
            during=partial(patch.object, collapsed_module, "_LEADING", 10**6),
        ),
        Experiment("no noise", "Passes only climb from the start: worse topics.", during=partial(drawn, not_drawn)),
        Experiment(
            "no noise in words",
            "Topics share more common words: less diverse.",
            during=partial(patch.object, weft_module, "_NOISY_PASSES", 0.0),
        ),
        Experiment(
            "drawn as whole counts",
            "Poisson for Gamma: more diverse, less coherent on titles.",
            during=partial(drawn, poisson),
        ),
        Experiment(
            "drawn as theta",
            "As a sampler draws; little changes where alpha is small.",
            during=partial(drawn, as_theta),
        ),
        Experiment(
            "tokens left in documents",
            "A token holds itself to its topic: theta is more spread.",
            during=partial(left_in, documents=True, words=False),
        ),
        Experiment(
            "tokens left in words",
            "Where there are few tokens a word, rare ones cannot leave their topic.",
            during=partial(left_in, documents=False, words=True),
        ),
        Experiment(
            "tokens left out of words",
            "The same on all corpora, as in CVB0: little changes on titles, a worse fit on long texts.",
            during=wholly_left_out,
        ),
        Experiment(
            "tokens left in both",
            "Plain expected counts: both of these.",
            during=partial(left_in, documents=True, words=True),
        ),
        Experiment("quiet end", "Topics settle: a slightly better fit.", during=partial(drawn, quiet_end)),
        Experiment("no refinement", "The same topics, a worse theta, most of all in perplexity.", {"refine": 0}),
        Experiment("refine 10", "The same topics, theta further from the encoder's.", {"refine": 10}),
        Experiment("refine 30", "The same topics, theta that the encoder has hardly a part in.", {"refine": 30}),
        Experiment(
            "one prior for all documents",
            "The same topics; what the encoder says is where theta starts and no more.",
            during=partial(patch.object, weft_module, "_TRUST", 0.0),
        ),
    )
}


def all_cells(names: list[str], corpora: tuple[str, ...], topics: tuple[int, ...], seeds: range) -> list[jobs.Job]:
    """Seed by seed, so that a run that is cut short has all corpora; within a seed, cheap ones first."""
    return [
        {"experiment": name, "corpus": corpus, "n_topics": n_topics, "seed": seed}
        for seed, corpus, n_topics, name in product(seeds, corpora, topics, names)
    ]


def fit_and_judge(folder: Path, cell: jobs.Job) -> dict[str, Any]:
    """The figures of one cell."""
    data, experiment = shared.held_out(shared.load(folder, cell["corpus"])), EXPERIMENTS[cell["experiment"]]
    model = experiment.make(cell["n_topics"], cell["seed"])
    with experiment.during():
        began = time.process_time()
        model, seconds = shared.fit(model, data)
        cpu = time.process_time() - began
        return {"seconds": seconds, "cpu": cpu, **shared.evaluate(folder, data, model)}


# The page.

Place = tuple[str, int]  # a corpus and K
Found = dict[Place, dict[str, dict[int, dict[str, Any]]]]  # experiments in a place, seeds in an experiment


def difference(row: dict[str, Any], ours: dict[str, Any], name: str) -> float:
    """An experiment's figure less Loom's; for perplexity in percent."""
    value, of_ours = row.get(name, np.nan), ours.get(name, np.nan)
    return float(100 * (value / of_ours - 1) if name == "own_ppl" else value - of_ours)


def mean(values: list[float]) -> float:
    """Of those that are finite; nan where none is."""
    finite = [value for value in values if np.isfinite(value)]
    return float(np.mean(finite)) if finite else float("nan")


def shown(name: str, value: float, sign: str = "+") -> str:
    if not np.isfinite(value):
        return "-"
    return f"{value:{sign}.1f} %" if name == "own_ppl" else f"{value:{sign}.3f}"


def summary(found: Found) -> str:
    """For each experiment, how it differs from Loom on the average corpus: of all, of titles, and of longer texts."""
    titles = {place: here for place, here in found.items() if place[0] in shared.SHORT}
    others = {place: here for place, here in found.items() if place not in titles}
    pages = [_summary(found)]
    if titles and others:
        for title, part in (("Titles", titles), ("Longer texts", others)):
            names = ", ".join(dict.fromkeys(corpus for corpus, _ in part))
            pages.append(f"\n{title} alone ({names}):\n\n{_summary(part, told=False)}")
    return "".join(pages)


def _summary(found: Found, told: bool = True) -> str:
    """One table; `told` is whether it says what to expect."""
    names, body = (*COMPARED, "own_ppl"), []
    for experiment in EXPERIMENTS.values():
        places = []  # those that both have: for each, pairs of the same seed
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
    header = ["experiment", "corpora", "fits", "time", *(COLUMNS[name][0] for name in names), "what to expect"]
    return jobs.markdown(header, body) if told else jobs.markdown(header[:-1], [line[:-1] for line in body])


def chance(seeds: list[list[dict[str, Any]]], name: str) -> float:
    """The standard deviation over seeds, given for each corpus the rows of them."""
    variances = []
    for rows in seeds:
        values = np.array([row.get(name, np.nan) for row in rows])
        variances.append(np.var(100 * values / values.mean() if name == "own_ppl" else values, ddof=1))
    return mean(variances) ** 0.5


def tables(rows: list[dict[str, Any]]) -> str:
    """The summary, and a table for each corpus and K."""
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
    """Puts what was made between the marks of the page, and leaves the rest of it as it is."""
    page = PAGE.read_text(encoding="utf-8") if PAGE.exists() else f"# What Loom's parts are worth\n\n{START}\n{END}\n"
    before, start, rest = page.partition(START)
    _, end, after = rest.partition(END)
    if not (start and end):
        raise SystemExit(f"{PAGE} should have a line {START} and, after it, a line {END}")
    PAGE.write_text(f"{before}{start}\n{made}\n{end}{after}", encoding="utf-8")


def chosen(names: str | None) -> list[str]:
    """The experiments named in a comma-separated list, all by default, in the order of the page."""
    if names is None:
        return list(EXPERIMENTS)
    wanted = {name.strip().lower() for name in names.split(",")}
    if unknown := wanted - {name.lower() for name in EXPERIMENTS}:
        raise SystemExit(f"no such experiment: {', '.join(sorted(unknown))}; there are {', '.join(EXPERIMENTS)}")
    return [name for name in EXPERIMENTS if name.lower() in wanted]


def main() -> None:
    parser = shared.parser(__doc__)
    jobs.add_arguments(parser, OUT)
    parser.add_argument("--experiments", help="names of experiments; all by default")
    parser.add_argument("--corpora", default=",".join(CHEAPEST_FIRST))
    parser.add_argument("--topics", default="50")
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    corpora = tuple(name for name in CHEAPEST_FIRST if name in options.corpora.split(","))
    topics = tuple(map(int, options.topics.split(",")))
    asked = all_cells(chosen(options.experiments), corpora, topics, range(options.seeds))
    jobs.run(asked, partial(fit_and_judge, options.shared), options)
    kept = jobs.read(options.out)
    numbers = tuple(sorted({row["n_topics"] for row in kept}))
    seeds = range(max((row["seed"] for row in kept), default=-1) + 1)
    whole = all_cells(list(EXPERIMENTS), CHEAPEST_FIRST, numbers, seeds)
    write(tables(jobs.latest(options.out, whole)))


if __name__ == "__main__":
    main()
