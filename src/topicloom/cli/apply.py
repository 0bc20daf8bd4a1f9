"""Commands that use a run on documents, or on another run: infer, evaluate, update and merge."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from ..files import holds_corpus
from ..messages import counted
from .options import (
    Allow,
    AsJson,
    CoherenceReference,
    Device,
    DocumentVectors,
    Encoder,
    Excel,
    Overwrite,
    Quiet,
    QuietNotes,
    Reading,
    Run,
    check_out,
    check_source,
    check_table,
    mention_edits,
    one_or_several,
    read_names,
    vectors_or_encoder,
)
from .shell import command, exact_stdout, import_models, print_evaluation, print_json, print_table, say
from .train import reading_named

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..corpus import Corpus
    from ..corpus.fields import FieldKind, Vectors
    from ..evaluation import Evaluation
    from ..models.base import TopicModel
    from ..preparing import ReadOptions
    from ..topics.document_topics import DocumentTopics
    from ..topics.outliers import Outliers

logger = logging.getLogger("topicloom")

_MOST_FITS = 6  # columns of further fits in the terminal
_CHUNK = 10_000  # documents that are inferred at a time

Force = Annotated[
    bool, typer.Option("--force", help="Go on even if most documents contain no word that the model knows.")
]


@command(
    panels={
        "Model": ("device", "allow"),
        "Output": ("by_parent", "texts", "outliers", "excel", "overwrite", "quiet"),
    }
)
def infer(
    run: Run,
    files: Annotated[
        list[str],
        typer.Argument(metavar="NEW_TEXTS", help="A corpus that prepare wrote, or any text that prepare takes."),
    ],
    options: Reading,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A .csv or .parquet file; standard output by default.")
    ] = None,
    document_vectors: DocumentVectors = None,
    encoder: Encoder = None,
    by_parent: Annotated[
        bool,
        typer.Option(
            "--by-parent",
            help="Write a row for each text that --split-texts has divided, with the mean of its pieces.",
        ),
    ] = False,
    texts: Annotated[bool, typer.Option("--texts/--no-texts", help="Write the texts too.")] = True,
    outliers: Annotated[
        bool, typer.Option("--outliers", help="Add the columns fit and outlier: which documents fit no topic.")
    ] = False,
    excel: Excel = False,
    force: Force = False,
    device: Device = "auto",
    allow: Allow = None,
    overwrite: Overwrite = False,
    quiet: QuietNotes = False,
) -> None:
    """Find the topics of new documents: a row for each, in their order, with the share of every topic."""
    from ..topics.table import require_delimited

    if out is not None and out.suffix.lower() not in (".csv", ".parquet"):
        raise InputError(f"{out} ends in neither .csv nor .parquet; give a name that does")
    if out is not None and excel:
        require_delimited(out)
    check_out(out, overwrite)
    if outliers and by_parent:
        raise InputError("`outliers` judges each piece of a divided text, and not the whole; leave out `by_parent`")
    from ..topics.saved import find_model

    file = one_or_several(files)
    find_model(run)
    check_source(file, options)
    mention_edits(run)
    import_models()
    from ..models.loading import load
    from ..topics.document_topics import sums_by_parent
    from ..topics.saved import known_covariates
    from ..topics.table import write_documents

    vectors = vectors_or_encoder(file, options, document_vectors, encoder)
    judge = None
    if outliers:
        from ..topics.view import Topics

        view = Topics.from_run(run, device=device, allow=allow or (), encoder=encoder)
        model, judge = view.model, view.judge
    else:
        model = load(run, device=device, allow=allow or (), encoder=encoder)
    with exact_stdout() if out is None else nullcontext(out) as target:
        chunks = _chunks(model, file, options, known_covariates(run) | model.origin.fields_, vectors)
        inferred = _inferred(model, chunks, force, judge)
        found = sums_by_parent(inferred) if by_parent else (each for each, _ in inferred)
        write_documents(target, found, model, texts=texts, excel=excel)
    if out is not None:
        logger.info("wrote %s", out)


@command(
    panels={
        "Documents": ("document_vectors", "encoder"),
        "Measures": ("measures", "words", "relevance", "labels", "reference", "word_vectors"),
        "Stability": ("stability", "vary"),
        "Model": ("device", "allow"),
        "Output": ("out", "overwrite", "quiet", "as_json"),
    }
)
def evaluate(
    context: typer.Context,
    run: Run,
    options: Reading,
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NEW_TEXTS",
            help="Documents to measure on, preferably unseen; default: the training documents.",
        ),
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file with the class of each document on a line.")
    ] = None,
    reference: CoherenceReference = None,
    document_vectors: DocumentVectors = None,
    encoder: Encoder = None,
    word_vectors: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Word vectors, for the measures that need them.")
    ] = None,
    measures: Annotated[
        str | None, typer.Option(metavar="NAME,NAME", help="These measures only; all by default.")
    ] = None,
    words: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many words of each topic to use; by default, each measure has its own number.",
        ),
    ] = None,
    relevance: Annotated[
        float | None,
        typer.Option(help="1 ranks words by probability; a lower value prefers words that are rare elsewhere."),
    ] = None,
    stability: Annotated[
        int, typer.Option(min=0, metavar="N", help="Fit the model N times more, and show which topics return.")
    ] = 0,
    vary: Annotated[
        str,
        typer.Option(
            metavar="NAME,NAME",
            help="What differs between these fits: seed, order (of the documents), bootstrap (a sample of them).",
        ),
    ] = "seed",
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the table; .tex and .md can go into a paper, .csv has all columns."),
    ] = None,
    overwrite: Overwrite = False,
    force: Force = False,
    device: Device = "auto",
    allow: Allow = None,
    quiet: QuietNotes = False,
    as_json: AsJson = False,
) -> None:
    """Measure a run (coherence, diversity, completion perplexity, ...); print a table and add it to metrics.json."""
    new = one_or_several(texts) if texts else None
    if new is not None:
        check_source(new, options)
    check_table(out, overwrite)
    if vary != "seed" and not stability:
        raise InputError("`vary` says what differs between the fits of `stability`; give that, too, or leave it out")
    mention_edits(run)
    import_models()
    from ..models.refitting import require_variation
    from ..reports.run import Request, evaluate_run
    from ..topics.saved import REFITS

    if document_vectors is not None:
        if new is None:
            raise InputError("`document_vectors` needs the new documents that the vectors are of; give a file of them")
        if document_vectors.suffix.lower() not in (".npy", ".npz"):
            raise InputError(
                f"{document_vectors} ends in neither .npy nor .npz, as vectors of documents do; give word vectors as "
                "`word_vectors`"
            )
    request = Request(
        new, reading_named(options, context), labels, reference,
        vectors=None if new is None else vectors_or_encoder(new, options, document_vectors, encoder),
        encoder=encoder, word_vectors=word_vectors, measures=None if measures is None else read_names(measures),
        top_n=words, relevance=relevance, device=device, allow=allow or (), force=force, stability=stability,
        vary=tuple(dict.fromkeys(require_variation(name) for name in read_names(vary))),
    )  # fmt: skip

    def show(found: Evaluation) -> None:
        if as_json:
            print_json({"run": str(run), **found.to_dict()})
        else:
            print_evaluation(found)
            if found.stability:
                _show_returns(found)
        if out is not None:
            from ..topics.table import Table

            is_for_print = out.suffix.lower() in (".tex", ".md")
            rows = [row | {"settings": line[2]} for row, line in zip(found.table(), found.lines(), strict=True)]
            table = found.publication_table() if is_for_print else Table.of(rows, found.title)
            table.save(out)
            logger.info("wrote %s", out)

    try:
        path = evaluate_run(run, request, show)
    except KeyboardInterrupt:
        if not stability or not (run / REFITS).is_dir():  # nothing is kept of a model outside of a run
            raise
        raise KeyboardInterrupt(
            f"interrupted; {run / REFITS} keeps the finished fits, and the same command continues"
        ) from None
    if path is not None:
        logger.info("written to %s", path)


def _show_returns(found: Evaluation) -> None:
    """Show in which further fits each topic returns."""
    table = found.stability_table()
    columns = [name for name in table.columns if name not in ("topic", "name", "returns")]
    say(f"\n{table.title}")
    shown = columns if len(columns) <= _MOST_FITS else []
    rows = (
        [str(row["topic"]), row["name"], f"{row['returns']:.0%}", *(f"{row[name]:.2f}" for name in shown)]
        for row in sorted(table.rows(), key=lambda row: -row["returns"])
    )
    print_table(["topic", "name", "returns", *shown], rows, n_numbers=1)


@command(
    panels={
        "Documents": ("keep_repeated", "document_vectors", "encoder"),
        "Model": ("device", "allow"),
        "Output": ("overwrite", "quiet", "as_json"),
    }
)
def update(
    context: typer.Context,
    run: Run,
    files: Annotated[
        list[str],
        typer.Argument(metavar="NEW_TEXTS", help="A corpus that prepare wrote, or any text that prepare takes."),
    ],
    options: Reading,
    new_topics: Annotated[int, typer.Option(min=0, help="Topics to learn from documents that form something new.")] = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the new run is written; by default, RUN is replaced.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of the new topics.")] = 0,
    keep_repeated: Annotated[
        bool, typer.Option("--keep-repeated", help="Add documents again that the run has already.")
    ] = False,
    document_vectors: DocumentVectors = None,
    encoder: Encoder = None,
    force: Force = False,
    device: Device = "auto",
    allow: Allow = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Add documents to a run, say what is new in them, and learn new topics beside the old ones if asked."""
    from ..text.reading import options_of_others
    from ..topics.saved import find_model, read_metrics, trained_on

    file, given = one_or_several(files), reading_named(options, context)
    find_model(run)
    if not holds_corpus(file):
        options = replace(options, **(trained_on(read_metrics(run)).get("reading", {}) | given))
    optional = options_of_others(given)  # those of the training
    check_source(file, options, optional)
    mention_edits(run)
    import_models()
    from ..reports.updating import update as update_run

    found = update_run(
        run, file if isinstance(file, str) else tuple(file), new_topics=new_topics, out=out,
        reading=given, vectors=vectors_or_encoder(file, options, document_vectors, encoder, optional),
        encoder=encoder, keep_repeated=keep_repeated, random_state=seed, device=device, allow=allow or (),
        overwrite=overwrite, force=force,
    )  # fmt: skip
    if as_json:
        print_json({"run": str(out or run), **found.as_json(), "topics": list(found.table().rows())})
    elif not quiet:
        rows = (
            [
                str(row["topic"]),
                row["name"],
                "new" if row["new"] else "",
                *(f"{100 * row[each]:.1f} %" for each in ("before", "added")),
            ]
            for row in found.table().rows()
        )
        print_table(["topic", "name", "", "before", "added"], rows, n_numbers=1)
    for sentence in found.sentences():
        logger.info("%s", sentence)
    logger.info("the run is in %s", out or run)


@command(panels={"Model": ("device", "allow"), "Output": ("overwrite", "quiet", "as_json")})
def merge(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN RUN ...", help="The runs; the first one's numbers stay.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the new run is written.")],
    threshold: Annotated[
        float, typer.Option(help="Similarity, from 0 to 1, below which topics are not joined; see match.")
    ] = 0.3,
    keep_repeated: Annotated[
        bool, typer.Option("--keep-repeated", help="Keep documents that an earlier run has, too.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="The seed of a sample of very many documents.")] = 0,
    device: Device = "auto",
    allow: Allow = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Make one run of several: the documents of all, and their topics, of which similar ones are joined."""
    for run in runs:
        mention_edits(run)
    import_models()
    from ..reports.merging import merge as merge_runs

    found = merge_runs(
        runs, out, threshold=threshold, keep_repeated=keep_repeated, random_state=seed, device=device,
        allow=allow or (), overwrite=overwrite,
    )  # fmt: skip
    if as_json:
        print_json({"run": str(out), **found.as_json(), "topics": list(found.table().rows())})
    elif not quiet:
        rows = []
        for origin, row in zip(found.origins, found.table().rows(), strict=True):
            near = "joined" if origin.is_joined else f"alone, near {origin.nearest}"
            numbers = ["" if number is None else str(number) for number in origin.numbers]
            known = [row[f"share in {run}"] for run in found.runs]
            shares = ["" if share is None else f"{100 * share:.1f} %" for share in known]
            rows.append([str(origin.topic), row["name"], near, f"{origin.similarity:.2f}", *numbers, *shares])
        heads = [*found.runs, *(f"{run}, share" for run in found.runs)]
        print_table(["topic", "name", "", "similarity", *heads], rows, n_numbers=1)
    for sentence in found.sentences():
        logger.info("%s", sentence)
    logger.info("the run is in %s", out)


def _inferred(
    model: TopicModel, chunks: Iterable[Corpus], force: bool, judge: Outliers | None
) -> Iterator[tuple[DocumentTopics, npt.NDArray[Any]]]:
    """Infer topics, a limited number of documents at a time. One warning at the end counts the empty documents.

    Args:
        judge: says how well the topics fit the documents; None leaves it out.

    Yields:
        documents with their topics, and (n_docs,) their numbers of tokens.
    """
    from ..topics.document_topics import empty_warning, require_known

    n_done = n_empty = n_outliers = 0
    for chunk in chunks:
        found = model.infer(chunk)
        if judge is not None:
            fits = judge.of(chunk, found.theta, found.empty)
            found, n_outliers = replace(found, fit=fits.fit), n_outliers + int(fits.is_outlier.sum())
        n_done, n_empty = n_done + len(found), n_empty + int(found.empty.sum())
        if n_done == len(found) and not force:
            require_known(n_empty, n_done, found.texts, model.tokenizer_, "first ")
        yield found, chunk.counts.sum(axis=1)
    if n_empty:
        logger.warning("%s", empty_warning(n_empty, n_done))
    if judge is not None:
        logger.info("%d of %s fit no topic", n_outliers, counted(n_done, "document"))


def _chunks(
    model: TopicModel,
    source: str | list[str],
    options: ReadOptions,
    fields: Mapping[str, FieldKind],
    vectors: Vectors | None,
) -> Iterator[Corpus]:
    """Yield documents of a file or a saved corpus over the words of the model. Those of a file have known fields.

    Args:
        vectors: (n_docs, E) the vectors of all documents; None for those that the documents have.
    """
    from ..corpus import Corpus
    from ..corpus.inputs import documents_of_file

    if holds_corpus(source):
        corpus = Corpus.load(source)
        chunks: Iterator[Corpus] = (corpus[first : first + _CHUNK] for first in range(0, len(corpus), _CHUNK))
    else:
        chunks = documents_of_file(source, model.vocabulary_, model.tokenizer_, vars(options), fields, _CHUNK)
    n_done = 0
    for chunk in chunks:
        rows = slice(n_done, n_done + len(chunk))
        yield model.documents(chunk, vectors=None if vectors is None else vectors[rows])
        n_done += len(chunk)
