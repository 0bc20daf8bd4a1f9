"""Commands that fit many models: compare, select-topics and tune."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ..errors import InputError
from ..files import holds_corpus
from ..messages import counted
from ..preparing import ReadOptions
from .options import (
    AsJson,
    CoherenceReference,
    Documents,
    DocumentVectors,
    Encoder,
    EncoderCache,
    FigureLanguages,
    Font,
    GivenDocuments,
    Model,
    Preparing,
    Quiet,
    SearchMethod,
    Seed,
    TopicCount,
    cache_beside,
    check_source,
    need_order,
    one_or_several,
    read_names,
    read_numbers,
    read_weights,
)
from .shell import command, import_models, muted, print_json, print_table, say

if TYPE_CHECKING:
    from ..corpus import Corpus
    from ..experiments.compare import Comparison
    from ..metrics import Reference
    from ..reports.wording import Language

logger = logging.getLogger("topicloom")


class Variations(StrEnum):
    """What differs between the fits of a model."""

    seed = "seed"
    order = "order"
    bootstrap = "bootstrap"


_Seeds = Annotated[int, typer.Option(min=1, help="Fits of each model with each number of topics, by seeds 0, 1, ...")]
_Split = Annotated[
    str | None,
    typer.Option(
        "--split",
        metavar="COLUMN",
        help="Column that says train, validation or test for each document; otherwise they are drawn at random.",
    ),
]
_FigureLanguage = Annotated[
    FigureLanguages,
    typer.Option(help="Language of the plots and of index.html; auto is zh for Chinese texts, and otherwise en."),
]
_Vary = Annotated[
    Variations,
    typer.Option(help="What differs between the fits: seed, order (of the documents), bootstrap (a sample of them)."),
]
_KeepModels = Annotated[
    bool, typer.Option("--keep-models", help="Keep every fitted model, in the folder models of --out.")
]


@dataclass(frozen=True)
class PaperTable:
    """Which figures comparison.tex and comparison.md have."""

    measures: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME",
            rich_help_panel="Output",
            help="Measures in comparison.tex and comparison.md, in this order; by default, those that are shown here.",
        ),
    ] = None
    decimals: Annotated[
        str | None,
        typer.Option(
            metavar="N|NAME=N,...",
            rich_help_panel="Output",
            help="Decimal places there, of all measures (3) or of some (nmi=3); by default two, none for perplexity.",
        ),
    ] = None

    def chosen(self) -> dict[str, Any]:
        """Return the arguments of `Comparison.publication_table`.

        Raises:
            InputError: there is no such measure, or a number of places is no number.
        """
        from ..metrics.catalogue import known_measures, measures_of

        known = list(measures_of("comparison"))
        measures = None if self.measures is None else known_measures(read_names(self.measures), known, "`measures`")
        if self.decimals is None:
            return {"measures": measures}
        if self.decimals.isdecimal():
            return {"measures": measures, "decimals": int(self.decimals)}
        pairs = [part.partition("=") for part in read_names(self.decimals)]
        if not pairs or not all(number.isdecimal() for _, _, number in pairs):
            raise InputError(
                f"`decimals={self.decimals}` should be a number of decimal places, or measures with numbers, such as "
                "nmi=3,purity=2"
            )
        places = {name: int(number) for name, _, number in pairs}
        known_measures(places, measures or known, "`decimals`")
        return {"measures": measures, "decimals": places}

    def write(self, found: Comparison, out: Path, language: Language) -> None:
        """Write the tables again, if figures were chosen."""
        if self != PaperTable():
            table = found.publication_table(**self.chosen(), table_language=language)
            for name in ("comparison.tex", "comparison.md"):
                table.save(out / name)


@command(
    panels={
        "Documents": ("document_vectors", "encoder", "encoder_cache"),
        "Output": ("keep_models", "font", "figure_language", "quiet", "as_json"),
    }
)
def compare(
    options: Preparing,
    paper: PaperTable,
    source: Documents,
    models: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME", help="Models, such as gsm,lda:method=gibbs+epochs=500; by default nine of them."
        ),
    ] = None,
    topics: Annotated[str, typer.Option(metavar="K,K", help="Numbers of topics to compare.")] = "20,50",
    seeds: _Seeds = 3,
    vary: _Vary = Variations.seed,
    split: _Split = None,
    reference: CoherenceReference = None,
    document_vectors: DocumentVectors = None,
    encoder: Encoder = None,
    encoder_cache: EncoderCache = None,
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            help="Directory that keeps the fits; the same command continues an interrupted comparison.",
        ),
    ] = Path("runs/compare"),
    keep_models: _KeepModels = False,
    font: Font = None,
    figure_language: _FigureLanguage = FigureLanguages.auto,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Fit several models and measure them in the same way; write tables, a CSV file and a page with plots."""
    import_models()
    from ..experiments import compare as comparison
    from ..reports.comparison_page import measures_of_parts, measures_once, text_table

    chosen = comparison.DEFAULT_MODELS if models is None else read_names(models)
    vectors = _Vectors(document_vectors, encoder, cache_beside(out, encoder_cache, encoder))
    found = _compared(
        source, options, chosen, topics, seeds, split, reference, vectors, out, keep_models, quiet, figure_language,
        font, paper, vary,
    )  # fmt: skip
    if as_json:
        print_json({"out": str(out), "failed": found.failed, **{on: found.table(on) for on in ("validation", "test")}})
    elif not quiet:
        of_parts, once = measures_of_parts(found.catalogue), measures_once(found.catalogue)
        tables = [
            ("Validation documents (choose by these figures)", "validation", of_parts),
            ("Measures of the topics, which do not depend on these documents", "test", once),
            ("Test documents (report these figures)", "test", of_parts),
        ]
        for title, part, measures in tables:
            if measures:
                say(title)
                print_table(*text_table(found.table(part), measures))
                say("")
        lower = [each.column for each in (of_parts | once).values() if each.column and each.better < 0]
        if lower:
            logger.info("lower is better in %s; in all other columns, higher", " and ".join(lower))
    logger.info("tables and plots are in %s, and a table for a paper in comparison.tex", out / "index.html")
    _require_all_fits(found)


@command(
    panels={
        "Documents": ("document_vectors", "encoder", "encoder_cache"),
        "Output": ("keep_models", "font", "figure_language", "quiet", "as_json"),
    }
)
def select_topics(
    options: Preparing,
    paper: PaperTable,
    source: Documents,
    topics: Annotated[str, typer.Option(metavar="K,K", help="Numbers of topics to try.")] = "5,10,20,50,100",
    model: Model = "loom",
    seeds: _Seeds = 3,
    split: _Split = None,
    reference: CoherenceReference = None,
    document_vectors: DocumentVectors = None,
    encoder: Encoder = None,
    encoder_cache: EncoderCache = None,
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            help="Directory that keeps the fits; the same command continues an interrupted search.",
        ),
    ] = Path("runs/select-topics"),
    keep_models: _KeepModels = False,
    font: Font = None,
    figure_language: _FigureLanguage = FigureLanguages.auto,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Fit a model with several numbers of topics, and recommend one of them."""
    from ..reports.comparison_page import text_table

    vectors = _Vectors(document_vectors, encoder, cache_beside(out, encoder_cache, encoder))
    found = _compared(
        source, options, [model], topics, seeds, split, reference, vectors, out, keep_models, quiet, figure_language,
        font, paper,
    )  # fmt: skip
    recommended = found.recommend()
    if as_json:
        print_json({
            "out": str(out), "model": model, "n_topics": recommended.n_topics, "reason": recommended.reason,
            "failed": found.failed, **{on: found.table(on) for on in ("validation", "test")},
        })  # fmt: skip
    elif not quiet:
        shown = {name: each for name, each in found.catalogue.items() if each.group != "stability"}  # no room for these
        head, rows = text_table(found.table("validation"), shown)
        say("Validation documents")
        print_table(head[1:], [row[1:] for row in rows])
        say(f"\n{recommended.reason}")
    picture = out / "n_topics.png"
    if len(found.n_topics) > 1 and picture.exists():
        logger.info("the curve is in %s", picture)
    logger.info("tables and plots are in %s", out / "index.html")
    _require_all_fits(found)


@command(
    panels={
        "Documents": ("document_vectors", "encoder", "encoder_cache"),
        "Search": ("objective", "sampler", "at_once", "split"),
        "Output": ("quiet", "as_json"),
    }
)
def tune(
    options: Preparing,
    source: Documents,
    model: Model = "loom",
    topics: TopicCount = 20,
    trials: Annotated[int, typer.Option(min=1, help="Fits in all, including those of an earlier call.")] = 30,
    objective: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=WEIGHT,...",
            help="Weights of the measures to maximise, such as document_npmi=1,topic_diversity=0.5.",
        ),
    ] = None,
    sampler: Annotated[
        SearchMethod,
        typer.Option(
            help="How settings are proposed: by those of earlier trials (tpe), or at random.",
        ),
    ] = SearchMethod.tpe,
    seed: Seed = 0,
    at_once: Annotated[
        int, typer.Option(min=1, help="Trials that are proposed together, and fitted in as many processes or tasks.")
    ] = 1,
    split: _Split = None,
    reference: CoherenceReference = None,
    document_vectors: DocumentVectors = None,
    encoder: Encoder = None,
    encoder_cache: EncoderCache = None,
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            help="Directory that keeps the trials and the best model; the same command continues them.",
        ),
    ] = Path("runs/tune"),
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Search for a model's best settings with Optuna, on documents that are not used for training."""
    given = _opened(
        source, options, split, _Vectors(document_vectors, encoder, cache_beside(out, encoder_cache, encoder))
    )
    _check_reference(reference)
    import_models()
    from ..experiments import tune as tuning

    weights = None if objective is None else read_weights(objective)
    tuning.check(model, weights)
    corpus = _counted(given, quiet, keep_texts=need_order(weights or ()))
    counted_in = _reference(reference, corpus)
    with muted(), _going_on(out):  # warnings of single fits are muted, because their measures show the problems
        found = tuning.tune(
            corpus, model, topics, trials=trials, objective=weights, sampler=sampler.value, random_state=seed,
            at_once=at_once, cluster=options.cluster, split=split, out=out, reference=counted_in,
            on_result=None if quiet else _progress("trial"),
        )  # fmt: skip
    if as_json:
        print_json({"out": str(out), **found.to_dict()})
    elif not quiet:
        values = found.best.items()
        print_table(["setting", "best"], [[name, f"{v:.4g}" if isinstance(v, float) else str(v)] for name, v in values])
    described = " + ".join(f"{weight:g} {name}" for name, weight in found.objective.items())
    made = counted(len(found.trials), "trial")
    logger.info("the best of %s has an objective (%s) of %.4f", made, described, found.value)
    logger.info("its model is in %s; train with its settings by --config %s", out / "best_model", out / "best.yaml")


def _compared(
    sources: list[str],
    options: Preparing,
    models: Sequence[str],
    topics: str,
    seeds: int,
    split: str | None,
    reference: str | None,
    vectors: _Vectors,
    out: Path,
    keep_models: bool,
    quiet: bool,
    figure_language: FigureLanguages,
    font: str | None,
    paper: PaperTable,
    vary: Variations = Variations.seed,
) -> Comparison:
    """Compare models, and report what failed. Mistakes in the options are reported before the texts are read."""
    n_jobs = 1 if options.n_jobs is None else options.n_jobs
    if holds_corpus(one_or_several(sources)):
        options = replace(options, n_jobs=None)  # there is no text to split
    given = _opened(sources, options, split, vectors)
    _check_reference(reference)
    import_models()
    from ..experiments import compare as comparison
    from ..topics.publication import chosen_language

    comparison.estimators(models)
    paper.chosen()
    sizes = read_numbers(topics)
    corpus = _counted(given, quiet, keep_texts=True)
    counted_in = _reference(reference, corpus)
    _check_fonts(corpus, figure_language, font)
    with muted(), _going_on(out):  # warnings of single fits are muted, because their measures show the problems
        found = comparison.compare(
            corpus, models, sizes, seeds, split=split, out=out, keep_models=keep_models, n_jobs=n_jobs,
            cluster=options.cluster, on_result=None if quiet else _progress("fit"), vary=vary.value,
            figure_language=figure_language.value, font=font, reference=counted_in,
        )  # fmt: skip
    for row in found.failed[1:]:  # the error at the end names the first
        logger.warning("%s: %s", _fit_of(row), row["error"])
    if found.rows and len(found.failed) == len(found.rows):
        first = found.failed[0]
        raise InputError(f"all fits ended in an error, so there is nothing to show: {_fit_of(first)}: {first['error']}")
    paper.write(found, out, chosen_language(figure_language.value, corpus.tokenizer))
    if found.left_out:
        models_of = dict.fromkeys([*found.models, *(row["model"] for row in found.others)])
        sizes_of = sorted({*found.n_topics, *(row["n_topics"] for row in found.others)})
        seeds_of = max(found.seeds, *(row["seed"] + 1 for row in found.others))
        logger.warning(
            "%s has finished fits of %s, which the tables and the page leave out; to include them, run topicloom "
            "compare --models %s --topics %s --seeds %d with the same --out",
            out, found.left_out, ",".join(models_of), ",".join(map(str, sizes_of)), seeds_of,
        )  # fmt: skip
    if len(found.versions) > 1:
        versions = " and ".join(found.versions)
        logger.warning("the fits were made by topicloom %s; their measures may not be comparable", versions)
    return found


def _check_reference(source: str | None) -> None:
    """Raise the errors of a reference that cannot be read, before anything takes time."""
    if source is not None:
        check_source(source, ReadOptions())


def _reference(source: str | None, corpus: Corpus) -> Reference | None:
    """Return the documents of a file, or of a saved corpus, as a reference of coherence."""
    if source is None:
        return None
    from ..corpus.inputs import stored_or_read
    from ..experiments.jobs import reference_for

    found = reference_for(stored_or_read(source, corpus.vocabulary, corpus.tokenizer), corpus, name=source)
    assert found is not None
    logger.info("coherence is counted in the %s of %s", counted(found.n_documents, "document"), source)
    return found


def _check_fonts(corpus: Corpus, figure_language: FigureLanguages, font: str | None) -> None:
    """Warn of missing characters in fonts before the fits start, because the log is muted during them."""
    from ..topics.publication import chosen_language

    with suppress(ImportError):  # without matplotlib there are no plots
        from ..reports.figures.style import fonts_for, label_language

        fonts_for([], font)
        label_language(chosen_language(figure_language.value, corpus.tokenizer), font)


def _require_all_fits(found: Comparison) -> None:
    """End the command with an error if fits failed. The others have been shown before."""
    if found.failed:
        first, them = found.failed[0], "it" if len(found.failed) == 1 else "them"
        raise InputError(
            f"{len(found.failed)} of {len(found.rows)} fits ended in an error, so the tables leave {them} out, and the "
            f"same command tries {them} again: {_fit_of(first)}: {first['error']}"
        )


@contextmanager
def _going_on(out: Path) -> Iterator[None]:
    """Add to the message about Ctrl-C that finished fits are kept."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted; {out} keeps the finished fits, and the same command continues") from None


def _fit_of(row: Mapping[str, Any]) -> str:
    return f"{row['model']}, {row['n_topics']} topics, seed {row['seed']}"


class _Vectors(NamedTuple):
    """What gives the documents their vectors."""

    file: Path | None
    encoder: str | None
    cache: Path | None


def _opened(sources: list[str], options: Preparing, split: str | None, vectors: _Vectors) -> GivenDocuments:
    """Open documents, with the column that divides them into parts if there is one."""
    source = one_or_several(sources)
    if holds_corpus(source):
        options = replace(options, cluster=None)  # there is no text to split
    return GivenDocuments.opened(
        source, options, split=split, vectors=vectors.file, encoder=vectors.encoder, encoder_cache=vectors.cache
    )


def _counted(given: GivenDocuments, quiet: bool, keep_texts: bool) -> Corpus:
    corpus = given.corpus(progress=not quiet, keep_texts=keep_texts)
    logger.info("%s", corpus)
    return corpus


def _progress(what: str) -> Callable[[int, int, dict[str, Any]], None]:
    """Return a function that prints a line on standard error for each result. The log itself is muted."""

    def report(n_done: int, n_all: int, row: dict[str, Any]) -> None:
        outcome = row.get("error") or ("" if row.get("value") is None else f"{row['value']:.4f}")
        seconds = f"{row['seconds']:.1f} s" if "seconds" in row else ""
        fit = f"{_fit_of(row)}:" if "model" in row else ""
        say(" ".join(filter(None, [f"{what} {n_done} of {n_all}:", fit, outcome, seconds])), err=True)

    return report
