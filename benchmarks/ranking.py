"""Compare rules that rank the words of a topic, on several corpora and models. benchmarks/ranking.md has the table.

    python benchmarks/ranking.py [--shared ../shared]

For each rule, the script prints coherence (document NPMI of the 10 top words) / diversity (of the 25 top words), both
on training documents.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

import topicloom as tl
from topicloom.metrics import document_npmi, topic_diversity
from topicloom.ranking import top_words, word_scores

CORPORA = {"20ng": 50, "20news-avitm": 50, "bbc-news": 20, "m10": 20, "emnlp2020": 20, "cnews10k": 20}
# The relevance, and the number of tokens that are added to the count of every word before the lift is computed.
RULES = [(1.0, 1), (0.8, 1), (0.6, 1), (0.6, 30), (0.6, 100), (0.6, 300), (0.5, 50)]


def corpus(name: str, shared: Path) -> tl.Corpus:
    """Read a corpus from the shared folder."""
    lines = shared / "data" / name / "lines.txt"
    if lines.exists():
        return tl.Corpus.from_file(lines)
    import judge

    data = judge.load(name, shared / "data")
    return tl.Corpus.from_counts(data["train"], data["vocab"])


def figures(model: tl.TopicModel, documents: tl.Corpus, relevance: float, added: float) -> str:
    """Format coherence and diversity of a model's topics for one rule."""
    ids = top_words(word_scores(model.components_, model.word_counts_, relevance, added), 25).tolist()
    return f"{document_npmi(ids, documents.counts):.3f} / {topic_diversity(ids):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shared", type=Path, default=Path(__file__).resolve().parents[2] / "shared")
    parser.add_argument("--corpora", default=",".join(CORPORA), help="names, separated by commas")
    options = parser.parse_args()
    sys.path.insert(0, str(options.shared / "judge"))
    table = Table("corpus", "model", *(f"{relevance} +{added}" for relevance, added in RULES))
    for name, n_topics in ((name, CORPORA[name]) for name in options.corpora.split(",")):
        documents = corpus(name, options.shared)
        for label, model in (
            ("Gibbs LDA", tl.LDA(n_topics, method="gibbs", epochs=300, random_state=0)),
            ("GSM", tl.GSM(n_topics, random_state=0)),
        ):
            model.fit(documents)
            table.add_row(name, label, *(figures(model, documents, *rule) for rule in RULES))
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
