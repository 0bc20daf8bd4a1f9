"""Commands that give a run to people and to other programs: explore, figures, serve, export, nearest and vectors."""

from __future__ import annotations

import logging
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from .options import (
    Allow,
    AsJson,
    Bins,
    Device,
    Documents,
    Encoder,
    End,
    Excel,
    FigureLanguage,
    FigureLanguages,
    Font,
    GivenDocuments,
    MinDocuments,
    Overwrite,
    Period,
    Preparing,
    Quiet,
    Run,
    Start,
    check_new,
    check_table,
    is_for_print,
    one_or_several,
    open_topics,
    read_bins,
    read_names,
)
from .shell import command, print_json, print_table, say

if TYPE_CHECKING:
    from ..topics.view import Topics


logger = logging.getLogger("topicloom")


@command
def explore(
    run: Run,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The page, an .html file; RUN/explorer.html by default.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="The heading; by default the name of the run.")] = None,
    texts: Annotated[bool, typer.Option("--texts/--no-texts", help="Put the documents' texts in the page.")] = True,
    documents: Annotated[
        int,
        typer.Option(
            min=1,
            help="The largest number of documents in the page; if there are more, this many are drawn at random.",
        ),
    ] = 100_000,
    allow: Allow = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Write the topics of a run as one HTML page, to look at, to edit and to send."""
    from ..topics.saved import PAGE

    place = out or run / PAGE
    if place.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{place} does not end in .html; give a name that does")
    check_new(out, overwrite)
    from ..reports.explorer import PageOptions, write_page
    from ..text.strings import replace_surrogates
    from ..topics.saved import read_metrics

    topics = open_topics(run, allow)
    options = PageOptions(title or replace_surrogates(run.resolve().name), texts=texts, most_documents=documents)
    size = write_page(place, topics, options, read_metrics(run))
    logger.info("wrote %s (%.1f MB)", place, size / 1e6)


@command
def serve(
    run: Run,
    host: Annotated[str, typer.Option(help="Address to listen on; by default only this machine reaches it.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes any that is free.")] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="TOPICLOOM_TOKEN",
            help="A secret that each request must send; needed if other machines reach the address. The environment "
            "variable keeps it out of the list of processes.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Another host name of this service, such as that of a proxy; repeatable."),
    ] = None,
    encoder: Encoder = None,
    device: Device = "cpu",
    allow: Allow = None,
    quiet: Quiet = False,
) -> None:
    """Serve a run until it is interrupted: the explorer, its documents with their search, and inference."""
    from ..topics.saved import find_model

    find_model(run)
    from ..service import serve as serve_run

    serve_run(run, host, port, token=token, names=allow_host or (), device=device, allow=allow or (), encoder=encoder)


class Format(StrEnum):
    """The formats of pictures."""

    png = "png"
    svg = "svg"
    pdf = "pdf"


@command(
    panels={
        "Maps": ("colour", "space", "projection"),
        "Other pictures": ("documents", "steps", "period", "stream", "alphas"),
        "Model": ("device", "allow"),
        "Output": ("format", "font", "figure_language", "overwrite", "quiet", "as_json"),
    }
)
def figures(
    run: Run,
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME",
            help="map, words (of an ETM, an ECRTM or a FASTopic), clouds, interpolation, sparsity, similarity, time, "
            "groups, topics or simplex; by default all that the run allows, except the last three.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the pictures are written; RUN-figures by default.")
    ] = None,
    format: Annotated[Format, typer.Option(help="Format of the pictures.")] = Format.png,
    colour: Annotated[
        str,
        typer.Option(
            "--colour",
            "--color",
            metavar="topic|label",
            help="Colour the documents of a map by their main topic or by their class.",
        ),
    ] = "topic",
    space: Annotated[
        str,
        typer.Option(
            metavar="auto|theta|vectors|latent",
            help="Map documents by their topic shares (theta), by their vectors, or by their place in the latent "
            "space; auto takes vectors if there are any.",
        ),
    ] = "auto",
    projection: Annotated[
        str, typer.Option(metavar="tsne|pca|umap", help="How a map is projected onto a plane.")
    ] = "tsne",
    documents: Annotated[
        str | None,
        typer.Option(metavar="ID,ID", help="Two documents to interpolate between; two typical ones by default."),
    ] = None,
    steps: Annotated[int, typer.Option(min=2, help="Steps of the interpolation; both documents count as steps.")] = 8,
    period: Period = "auto",
    bins: Bins = None,
    start: Start = None,
    end: End = None,
    min_documents: MinDocuments = None,
    covariate: Annotated[
        str,
        typer.Option(metavar="COLUMN", help="What `groups` shows: a covariate, or class for the labels."),
    ] = "class",
    stream: Annotated[bool, typer.Option("--stream", help="Draw all topics over time in one stream.")] = False,
    alphas: Annotated[
        str, typer.Option("--alpha", metavar="A,A|A:A:A", help="Dirichlet parameters of the simplex.")
    ] = "0.1,0.5,1,10",
    font: Font = None,
    figure_language: FigureLanguage = FigureLanguages.auto,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same pictures.")] = 0,
    device: Device = "auto",
    allow: Allow = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Draw the pictures of a run: maps, word clouds, interpolation, sparsity, similarity and topics over time."""
    pair = None if documents is None else read_names(documents)
    if pair is not None and len(pair) != 2:
        raise InputError(f"--documents {documents}: give the ids of two documents, such as d17,d204")
    topics = open_topics(run, allow, device)
    from ..reports import figures as pictures
    from ..reports.figures.gallery import require_readers

    options = pictures.Options(
        colour=colour,  # type: ignore[arg-type]
        space=space,  # type: ignore[arg-type]
        projection=projection,  # type: ignore[arg-type]
        documents=pair,
        steps=steps,
        period=period,
        bins=read_bins(bins),
        start=start,
        end=end,
        min_documents=min_documents,
        covariate=covariate,
        stream=stream,
        alphas=tuple(_read_alphas(alphas)),
        random_state=seed,
        font=font,
        language=figure_language.value,
    ).with_language(topics)
    given = kind is not None
    names = read_names(kind or "") or [name for name, each in pictures.KINDS.items() if each.is_default]
    folder = out or (run if run.name else run.resolve()).with_name(f"{run.resolve().name}-figures")
    kinds = {name: pictures.kind_named(name) for name in names}
    require_readers(options, kinds)
    _require_free(folder, kinds, format, overwrite)
    written: dict[str, list[str]] = {}
    left_out: dict[str, str] = {}
    for name, each in kinds.items():
        logger.info("drawing %s", name)
        try:
            pages = each.draw(topics, options)
        except InputError as error:
            if given:
                raise
            left_out[name] = str(error)
            logger.info("without %s: %s", name, error)
            continue
        folder.mkdir(parents=True, exist_ok=True)
        paths = pictures.save_pages(pages, folder / f"{name}.{format.value}")
        _remove_pages(folder, name, format, after=len(paths))
        written[name] = [str(path) for path in paths]
        logger.info("wrote %s", ", ".join(written[name]))
    if as_json:
        print_json({"run": str(run), "figures": written, "left_out": left_out})
    if not written:
        raise InputError(f"no picture can be drawn of {run}; name one with --kind to see why")


def _require_free(folder: Path, kinds: Any, format: Format, overwrite: bool) -> None:
    """Check before drawing that no picture would be overwritten."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give a directory as --out")
    if not folder.exists() and folder.suffix.lower().removeprefix(".") in list(Format):
        raise InputError(
            f"{folder} is the name of a picture; give the directory of the pictures as --out, and --format"
        )
    taken = [path for name in kinds if (path := folder / f"{name}.{format.value}").exists()]
    if taken and not overwrite:
        raise InputError(f"{taken[0]} already exists; give another directory as --out, or --overwrite to replace it")


def _remove_pages(folder: Path, name: str, format: Format, after: int) -> None:
    """Remove further pages of an earlier picture with more pages."""
    page = max(2, after + 1)
    while (path := folder / f"{name}-{page}.{format.value}").exists():
        path.unlink()
        page += 1


def _read_alphas(text: str) -> list[float | list[float]]:
    """'0.1,1:2:5' -> [0.1, [1.0, 2.0, 5.0]]"""
    try:
        parts = [[float(value) for value in part.split(":")] for part in read_names(text)]
    except ValueError:
        raise InputError(
            f"--alpha {text}: give numbers such as 0.1,1,10, or one for each topic such as 1:2:5"
        ) from None
    return [part[0] if len(part) == 1 else part for part in parts]


# The commands export, nearest and vectors


class Target(StrEnum):
    """The formats of an export."""

    topics = "topics"
    words = "words"
    documents = "documents"
    pyldavis = "pyldavis"
    topicwizard = "topicwizard"
    datamapplot = "datamapplot"
    word2vec = "word2vec"


_ENDINGS = {
    Target.pyldavis: (".json",),
    Target.topicwizard: (".joblib",),
    Target.datamapplot: (".npz",),
    Target.word2vec: (".txt", ".txt.gz"),
}


class VectorMethod(StrEnum):
    """The methods of training word vectors."""

    cbow = "cbow"
    skip_gram = "skip-gram"


@command
def export(
    run: Run,
    to: Annotated[Target, typer.Option("--to", help="What is written; see above.")],
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="The file. For a table, the ending of its name is the format.",
        ),
    ],
    words: Annotated[
        int | None, typer.Option(min=1, help="Words of a topic in a table: 20; in .tex and .md, 10.")
    ] = None,
    texts: Annotated[bool, typer.Option("--texts/--no-texts", help="Write the texts of documents too.")] = False,
    caption: Annotated[str | None, typer.Option(help="The caption of a .tex or .md table of topics or words.")] = None,
    label: Annotated[str | None, typer.Option(help="Its label in LaTeX; by default tab:topics or tab:words.")] = None,
    table_language: Annotated[
        FigureLanguages, typer.Option(help="The language of its headings; auto is zh for Chinese texts, otherwise en.")
    ] = FigureLanguages.auto,
    excel: Excel = False,
    allow: Allow = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Write the topics of a run for people or for another program.

    topics, words and documents are tables: .csv, .tsv, .json, .jsonl, .parquet, .xlsx, .tex (LaTeX), .md (Markdown) or
    .html. A .tex or .md table of topics or words can go into a paper as it is. pyldavis is a .json file with the
    arguments of pyLDAvis.prepare, topicwizard a .joblib file for topicwizard.app.load_app, and datamapplot an .npz file
    with coordinates and labels for DataMapPlot. word2vec is a .txt file with the vectors of words and topics in one
    space.
    """
    from ..topics.table import require_delimited

    if to in _ENDINGS:
        if not out.name.endswith(_ENDINGS[to]):
            raise InputError(f"{out} should end in {' or '.join(_ENDINGS[to])}, because that is the form of {to.value}")
        if excel:
            require_delimited(out)
        check_new(out, overwrite)
    else:
        check_table(out, overwrite, excel)
    prints = to in (Target.topics, Target.words) and is_for_print(out)
    if not prints and not (caption is label is None and table_language is FigureLanguages.auto):
        raise InputError(
            "`caption`, `label` and `table_language` are those of a .tex or .md table of topics or words; give such a "
            "file, or leave them out"
        )
    if texts and to is not Target.documents:
        raise InputError("`texts` are those of documents; leave it out, or give `to='documents'`")
    if words is not None and to not in (Target.topics, Target.words):
        raise InputError("`words` are those of a table of topics or words; leave it out")
    view = open_topics(run, allow)
    if prints:
        if to is Target.topics:
            table = view.publication_table(words or 10, table_language=table_language.value)
        else:
            from ..topics.publication import chosen_language, words_for_print

            language = chosen_language(table_language.value, view.corpus.tokenizer)
            n = words or 10
            table = words_for_print(view.word_table(n), view.given_names, n, language)
        caption, label = table.caption if caption is None else caption, table.label if label is None else label
        replace(table, caption=caption, label=label).save(out)
    else:
        _export(view, to, out, words or 20, texts, excel)
    logger.info("wrote %s", out)


@command
def nearest(
    run: Run,
    item: Annotated[str, typer.Argument(metavar="WORD|TOPIC", help="A word; or a topic, by its number or its name.")],
    words: Annotated[int, typer.Option(min=1, help="Number of words to show, and of topics.")] = 10,
    allow: Allow = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Show the words and the topics that are nearest to a word or a topic.

    The space is that of the word vectors of an ETM, an ECRTM or a FASTopic. For any other model, words are near each
    other if they occur in the same topics, and topics if they share words and documents. A number is read as a topic if
    there is a topic with this number.
    """
    from ..topics.hierarchy import learned_vectors, length_in_directions

    view = open_topics(run, allow)
    is_topic = item.isdecimal() and int(item) < view.n_topics
    found = view.nearest(int(item) if is_topic else item, words)
    if as_json:
        print_json({"run": str(run), "item": item, "nearest": found.to_dicts()})
        return
    near = [[row["name"], f"{row['similarity']:.2f}"] for row in found.rows() if row["kind"] == "word"]
    topics = [[row["item"], row["name"], f"{row['similarity']:.2f}"] for row in found.rows() if row["kind"] == "topic"]
    print_table(["word", "similarity"], near)
    say()
    print_table(["topic", "name", "similarity"], topics, n_numbers=1)
    if learned := learned_vectors(view.model):
        part, chance = length_in_directions(*learned)
        if part < 2 * chance:
            say(
                f"\nThe neighbours of words say little: {part:.1%} of the length of word vectors is in the directions "
                f"of the topics, {chance:.1%} by chance. Learn from more text, or give the vectors (`word_vectors`)."
            )


@command(
    panels={
        "Training": ("method", "size", "window", "epochs", "seed", "threads"),
        "Output": ("overwrite", "quiet"),
    }
)
def vectors(
    source: Documents,
    out: Annotated[Path, typer.Option(metavar="FILE", help="A .txt file, or .txt.gz to compress it.")],
    options: Preparing,
    method: Annotated[
        VectorMethod, typer.Option(help="skip-gram is slower, and better for rare words.")
    ] = VectorMethod.cbow,
    size: Annotated[int, typer.Option(min=1, help="Dimensions of a vector.")] = 300,
    window: Annotated[int, typer.Option(min=1, help="Words to either side that are a word's context.")] = 5,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the texts.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same vectors, with one thread.")] = 0,
    threads: Annotated[int, typer.Option(help="Threads that train; -1 is all cores.")] = 1,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Train word vectors (CBOW or skip-gram) on texts, for example for an ETM.

    The words are those that train would choose with the same options. The file has the text format of word2vec.
    """
    if not out.name.endswith((".txt", ".txt.gz")):
        raise InputError(f"{out} should end in .txt or .txt.gz, because the vectors are written as text")
    check_new(out, overwrite)
    given = GivenDocuments.opened(one_or_several(source), options)
    from ..embeddings import train_word_vectors

    corpus = given.corpus(progress=not quiet, keep_texts=True)
    logger.info("%s", corpus)
    trained = train_word_vectors(corpus, method.value, size, window, epochs, random_state=seed, n_jobs=threads)
    trained.save(out)
    logger.info("wrote %s to %s", trained, out)


def _export(view: Topics, to: Target, out: Path, words: int, texts: bool, excel: bool) -> None:
    from ..topics.table import Table

    if to is Target.pyldavis:
        view.save_pyldavis(out)
    elif to is Target.topicwizard:
        view.save_topicwizard(out)
    elif to is Target.datamapplot:
        from ..topics.export import space_of

        view.save_datamapplot(out)
        by = "their vectors" if space_of(view.corpus) == "vectors" else "their topic shares"
        logger.info("documents are placed by %s", by)
    elif to is Target.word2vec:
        view.word_vectors().save(out)
    elif to is Target.topics:
        Table.of_frame(view.topic_table(words), "Topics").save(out, excel=excel)
    elif to is Target.words:
        view.word_table(words).save(out, excel=excel)
    else:
        view.document_table(texts=texts).save(out, excel=excel)
