"""Commands that give topics and words to other programs, and that find what is near: export, nearest and vectors."""

from __future__ import annotations

import logging
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InputError
from .options import (
    Allow,
    AsJson,
    Excel,
    GivenDocuments,
    Overwrite,
    Preparing,
    Quiet,
    Run,
    check_new,
    check_table,
    open_topics,
)
from .shell import command, print_json, print_table

if TYPE_CHECKING:
    from ..topics.view import Topics

logger = logging.getLogger("topicloom")


class Target(StrEnum):
    """What a run is exported to."""

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
    """How word vectors are trained."""

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
    words: Annotated[int, typer.Option(min=1, help="Words of a topic in a table.")] = 20,
    texts: Annotated[bool, typer.Option("--texts/--no-texts", help="Write the texts of documents too.")] = False,
    excel: Excel = False,
    allow: Allow = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Write the topics of a run for people or for another program.

    topics, words and documents are tables: .csv, .tsv, .json, .jsonl, .parquet, .xlsx, .tex (LaTeX), .md (Markdown) or
    .html. pyldavis is a .json file with the arguments of pyLDAvis.prepare, topicwizard a .joblib file for
    topicwizard.app.load_app, and datamapplot an .npz file with coordinates and labels for DataMapPlot. word2vec is a
    .txt file with the vectors of words and topics in one space.
    """
    if to in _ENDINGS:
        if not out.name.endswith(_ENDINGS[to]):
            raise InputError(f"{out} should end in {' or '.join(_ENDINGS[to])}, because that is the form of {to.value}")
        check_new(out, overwrite)
    else:
        check_table(out, overwrite)
    _export(open_topics(run, allow), to, out, words, texts, excel)
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

    The space is that of the word vectors of an ETM. For any other model, words are near each other if they occur in the
    same topics, and topics if they share words and documents, as in figures --kind similarity. A number is a topic if
    there is one of this number.
    """
    view = open_topics(run, allow)
    is_topic = item.isdecimal() and int(item) < view.n_topics
    found = view.nearest(int(item) if is_topic else item, words)
    if as_json:
        print_json({"run": str(run), "item": item, "nearest": found.to_dicts()})
        return
    near = [[row["name"], f"{row['similarity']:.2f}"] for row in found.rows() if row["kind"] == "word"]
    topics = [[row["item"], row["name"], f"{row['similarity']:.2f}"] for row in found.rows() if row["kind"] == "topic"]
    print_table(["word", "similarity"], near)
    typer.echo()
    print_table(["topic", "name", "similarity"], topics, n_numbers=1)


@command(
    panels={
        "Training": ("method", "size", "window", "epochs", "seed", "threads"),
        "Output": ("overwrite", "quiet"),
    }
)
def vectors(
    source: Annotated[str, typer.Argument(help="A corpus that prepare wrote, or any text that prepare takes.")],
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
    given = GivenDocuments.opened(source, options)
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
        view.save_datamapplot(out)
    elif to is Target.word2vec:
        view.word_vectors().save(out)
    elif to is Target.topics:
        Table.of_frame(view.topic_table(words), "Topics").save(out, excel=excel)
    elif to is Target.words:
        view.word_table(words).save(out, excel=excel)
    else:
        view.document_table(texts=texts).save(out, excel=excel)
