"""Commands that fit many models: compare and tune."""

from __future__ import annotations

import logging
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .corpora import need_order, open_corpus
from .options import (
    AsJson,
    Model,
    Preparing,
    Quiet,
    Sampler,
    Seed,
    Topics,
    read_names,
    read_numbers,
    read_weights,
)
from .shell import (
    command,
    muted,
    print_json,
    print_table,
    told,
)

if TYPE_CHECKING:
    pass

logger = logging.getLogger("topicloom")


@command
def compare(
    options: Preparing,
    source: Annotated[str, typer.Argument(help="A corpus that prepare wrote, or any text that prepare takes.")],
    models: Annotated[
        str | None,
        typer.Option(metavar="NAME,NAME", help="Such as gsm,lda:method=gibbs+epochs=500; a choice by default."),
    ] = None,
    topics: Annotated[str, typer.Option(metavar="K,K", help="Numbers of topics.")] = "20,50",
    seeds: Annotated[int, typer.Option(min=1, help="Fits of each model with each number of topics.")] = 3,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Keeps the fits; a killed comparison goes on there.")] = Path(
        "runs/compare"
    ),
    processes: Annotated[int, typer.Option(min=1, help="Fits at a time.")] = 1,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Fit and measure several models alike; a table, a CSV file and a page with plots."""
    from ..experiments import compare as comparison
    from ..reports.comparison_page import text_table

    chosen = comparison.DEFAULT_MODELS if models is None else read_names(models)
    comparison.estimators(chosen)  # mistakes are told before anything is read
    sizes = read_numbers(topics, "--topics")
    corpus = open_corpus(source, options, progress=not quiet, keep_texts=True)
    logger.info("%s", corpus)
    with muted():  # what a fit advises is seen in its figures
        found = comparison.compare(
            corpus, chosen, sizes, seeds, out=out, n_jobs=processes, on_result=None if quiet else told("fit")
        )
    if as_json:
        print_json({"out": str(out), "failed": found.failed, **{on: found.table(on) for on in ("validation", "test")}})
    else:
        head, rows = text_table(found)
        print_table(head, rows)
    for row in found.failed:
        logger.warning("%s, %d topics, seed %d: %s", row["model"], row["n_topics"], row["seed"], row["error"])
    logger.info("tables and plots are in %s", out / "index.html")


@command
def tune(
    options: Preparing,
    source: Annotated[str, typer.Argument(help="A corpus that prepare wrote, or any text that prepare takes.")],
    model: Model = "gsm",
    topics: Topics = 20,
    trials: Annotated[int, typer.Option(min=1, help="Fits in all, those of an earlier call among them.")] = 30,
    objective: Annotated[
        str | None, typer.Option(metavar="NAME=WEIGHT,...", help="Such as document_npmi=1,topic_diversity=0.5.")
    ] = None,
    sampler: Annotated[Sampler, typer.Option(help="How settings are proposed.")] = Sampler.tpe,
    seed: Seed = 0,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Keeps the study; a killed search goes on there.")] = Path(
        "runs/tune"
    ),
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Search a model's settings by Optuna, on documents held out of training."""
    from ..experiments import tune as tuning

    weights = None if objective is None else read_weights(objective)
    tuning.check(model, weights)
    windowed = [] if weights is None else list(weights)
    corpus = open_corpus(source, options, progress=not quiet, keep_texts=need_order(windowed))
    logger.info("%s", corpus)
    with muted():
        found = tuning.tune(
            corpus, model, topics, trials=trials, objective=weights, sampler=sampler.value, random_state=seed, out=out,
            told=None if quiet else told("trial"),
        )  # fmt: skip
    if as_json:
        print_json({"out": str(out), **asdict(found)})
    else:
        print_table(["setting", "best"], [[name, f"{value:.4g}" if isinstance(value, float) else str(value)]
                                           for name, value in found.best.items()])  # fmt: skip
    objective_said = " + ".join(f"{weight:g} {name}" for name, weight in found.objective.items())
    logger.info("best of %d trials (%s): %.4f; train with --config %s", len(found.trials), objective_said,
                found.value, out / "best.yaml")  # fmt: skip
