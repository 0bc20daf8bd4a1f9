"""Loom beside the Gibbs sampler on other corpora than those of best.py: texts of installed packages.

    python benchmarks/unseen.py [--debian FOLDER] [--corpora modules,glosses] [--topics 20,50] [--seeds 2]

Three corpora are docstrings of the Python packages that are installed beside topicloom; six more come from Debian
packages that are unpacked in a folder, by default the one where `make bench-unseen` puts them. Cells are kept in
results/unseen.jsonl, and unseen.md is written from all that the file has. When packages have changed, ask `--again`:
the file does not know.
"""

from __future__ import annotations

import ast
import gzip
import random
import re
import sys
import sysconfig
import time
from collections.abc import Iterable, Iterator
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

import best
import cells
import shared
import topicloom as tl

PAGE = Path(__file__).with_name("unseen.md")
DEBIAN = shared.RESULTS / "debian"
PACKAGES = ("torch", "sklearn", "scipy", "numpy", "pandas", "matplotlib", "sympy", "networkx", "gensim", "PIL")
PACKAGES += ("optuna", "fontTools", "alembic", "sqlalchemy")
MODELS = {name: best.MODELS[name] for name in (best.OURS, best.REFERENCE)}
SEEDS = 2
DIFFERENCES = ("npmi", "td", "npmi6", "td6", "npmi_test", "nmi", "purity", "acc")
RATIOS = {"own_ppl": "perplexity", "cpu": "processor time"}
Rows = list[tuple[str, str]]  # text and label

HEAD = """# Loom on other corpora

Settings of Loom were chosen on six corpora, whose test documents were read between rounds ([best.md](best.md)). Here
are others, looked at when the settings stood: docstrings of Python packages (`doctitles` their first paragraphs,
`modules` all of a module), definitions of WordNet (`glosses`), quotations (`fortunes`), manual pages in Chinese
(`manzh`), in German (`german`) and of FreeBSD (`freebsd`), and the documentation of Linux (`kernel`).
`make bench-unseen` makes them and writes this page; it needs Debian and its registry for the last six. What there is
depends on what is installed.

One thing was changed for what was seen here of long documents: noise, and what is left out of counts, go by damped
tokens a word. That was chosen on documents of `manzh`, `modules` and `kernel`, test documents here among them; `german`
and `freebsd`, of long documents too, came afterwards. Noise in the counts of words, and sharpening of leading words
alone, which were chosen on the six, were looked at on the three as well.

Loom's mean over seeds less that of the Gibbs sampler with 1,000 iterations and one worker, with default settings
otherwise, on a fifth of the documents drawn by chance; perplexity and processor time are ratios, of cells made one
after another beside other work on the machine. **✗**: not better, however little it misses by. One seed differs from
another by .01 to .03. Labels are packages, the subjects of WordNet's files, collections, sections and folders. Columns
are as in best.md.

"""


def of_packages() -> dict[str, Rows]:
    """Docstrings as documents, their first lines, and all of a module together; the label is the package."""
    titles: Rows = []
    docstrings: Rows = []
    modules: Rows = []
    seen: set[str] = set()
    root = Path(sysconfig.get_path("purelib"))
    for package in PACKAGES:
        for file in sorted((root / package).rglob("*.py")):
            if "tests" in file.relative_to(root).parts:
                continue
            try:
                tree = ast.parse(file.read_text(encoding="utf-8", errors="ignore"))
            except (SyntaxError, ValueError):
                continue
            nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef))
            found = [text for text in map(ast.get_docstring, nodes) if text and len(text) > 60]
            new = list(dict.fromkeys(text for text in found if text not in seen))
            seen.update(new)
            titles += [(text.split("\n\n")[0].replace("\n", " ")[:150], package) for text in new]
            docstrings += [(text, package) for text in new if len(text) > 150]
            if len(whole := " ".join(new)) > 1500:
                modules.append((whole, package))
    return {"doctitles": titles, "docstrings": docstrings, "modules": modules}


def of_debian(folder: Path) -> dict[str, Rows]:
    """What is in packages that were unpacked in a folder; none of it where it is not there."""
    kernel, glosses, fortunes = [], [], []
    for root in sorted(folder.glob("usr/share/doc/linux-doc-*/Documentation"))[-1:]:  # versions are near twins
        for file in sorted(root.rglob("*")):
            own = file.relative_to(root).parts
            if re.search(r"\.(rst|txt)(\.gz)?$", file.name) and "translations" not in own and file.is_file():
                kernel.append((read(file), own[0]))
    for file in sorted(folder.rglob("wordnet/data.*")):
        lines = (line for line in read(file).splitlines() if line[:1].isdigit() and "|" in line)
        glosses += [(line.split("|", 1)[1].strip(), line.split()[1]) for line in lines]
    for file in sorted(folder.glob("usr/share/games/fortunes/*")):
        if "." not in file.name and file.is_file() and not file.is_symlink():
            fortunes += [(text, file.name) for text in re.split(r"\n%\n", read(file)) if len(text) > 40]
    long = [row for row in kernel if len(row[0]) > 1500]
    pages = {"manzh": "zh_CN/*/*.gz", "german": "de/*/*.gz", "freebsd": "*/*freebsd.gz"}
    manuals = {name: manual(folder.glob(f"usr/share/man/{which}")) for name, which in pages.items()}
    return {"glosses": glosses, "fortunes": fortunes, "kernel": long} | manuals


def manual(files: Iterable[Path]) -> Rows:
    """Manual pages of some length, less the requests of roff; the label is the section."""
    found = []
    for file in sorted(files):
        if not file.is_symlink():  # another page's name
            text = re.sub(r"^[.'].*?(?=\s|$)", " ", read(file), flags=re.MULTILINE)
            found.append((re.sub(r"\\f.|\\-|\\", " ", text), file.parent.name))
    return [row for row in found if len(row[0]) > 400]


def read(file: Path) -> str:
    """The text of a file, compressed or not."""
    whole = file.read_bytes()
    return (gzip.decompress(whole) if file.suffix == ".gz" else whole).decode(errors="ignore")


MOST = {"doctitles": 12_000, "docstrings": 12_000, "glosses": 20_000}  # documents, drawn by chance
LANGUAGES = {"manzh": "zh", "german": "de"}
CORPORA = ("glosses", "fortunes", "doctitles", "docstrings", "manzh", "german", "freebsd", "modules", "kernel")


@cache
def texts(debian: Path) -> dict[str, Rows]:
    """All corpora that there are, each document once."""
    every = of_packages() | of_debian(debian)
    return {name: [*{text: (text, label) for text, label in rows}.values()] for name, rows in every.items() if rows}


@cache
def load(debian: Path, name: str) -> dict[str, Any]:
    """As shared.load; a fifth of the documents are test documents."""
    rows = texts(debian)[name].copy()
    random.Random(0).shuffle(rows)
    rows = rows[: MOST.get(name)]
    language = LANGUAGES.get(name, "auto")
    corpus = tl.Corpus.from_texts([text for text, _ in rows], language=language, n_jobs=1)  # this is a worker itself
    labels = np.unique([label for _, label in rows], return_inverse=True)[1][~corpus.is_empty]
    counts = sp.csr_matrix(corpus.counts[~corpus.is_empty]).astype(np.float32)
    whole = {"train": counts, "vocab": corpus.vocabulary, "train_labels": labels, "train_texts": None}
    return shared.held_out(whole, 0.2)


def fit_and_judge(folder: Path, debian: Path, cell: cells.Cell) -> dict[str, Any]:
    """The figures of one cell, and the size of its corpus."""
    import torch

    torch.set_num_threads(1)
    data = load(debian, cell["corpus"])
    variant, one = MODELS[cell["model"]], {"n_jobs": 1} if cell["model"] == best.REFERENCE else {}
    variant.make(2, 0).set_params(epochs=2, **one).fit(data["train"][:200])  # imports, not timed
    model = variant.make(cell["n_topics"], cell["seed"]).set_params(**one)
    began = time.process_time()
    model, seconds = shared.fitted(model, data)
    row = {"seconds": seconds, "cpu": time.process_time() - began}
    row |= {"n_docs": data["train"].shape[0], "n_words": len(data["vocab"]), "n_tokens": float(data["train"].sum())}
    with threadpool_limits(1):
        return row | shared.judged(folder, data, model)


def lines(rows: list[dict[str, Any]]) -> Iterator[list[str]]:
    """The rows of the table."""
    for corpus, n_topics in product(CORPORA, sorted({row["n_topics"] for row in rows})):
        ours, theirs = (
            [row for row in rows if (row["model"], row["corpus"], row["n_topics"]) == (name, corpus, n_topics)]
            for name in MODELS
        )
        if not ours or not theirs:
            continue
        n_docs, n_words = ours[0]["n_docs"], ours[0]["n_words"]
        size = [f"{n_docs:,}", f"{n_words:,}", f"{ours[0]['n_tokens'] / n_docs:.0f}"]
        leads = (best.mean(ours, name) - best.mean(theirs, name) for name in DIFFERENCES)
        ratios = (best.mean(ours, name) / best.mean(theirs, name) for name in RATIOS)
        figures = [f"{lead:+.3f}{'' if lead > 0 else ' **✗**'}" for lead in leads]
        figures += [f"{ratio:.3f}{'' if ratio < 1 else ' **✗**'}" for ratio in ratios]
        yield [corpus, *size, str(n_topics), f"{len(ours)}, {len(theirs)}", *figures]


def main() -> None:
    parser = shared.parser(__doc__)
    cells.arguments(parser, shared.RESULTS / "unseen.jsonl")
    parser.add_argument("--debian", type=Path, default=DEBIAN, help="where Debian packages are unpacked")
    parser.add_argument("--corpora", default=",".join(CORPORA))
    parser.add_argument("--topics", default="20,50")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    options = parser.parse_args()
    asked_for = options.corpora.split(",")
    if unknown := set(asked_for) - set(CORPORA):
        raise SystemExit(f"no such corpus: {', '.join(sorted(unknown))}; there are {', '.join(CORPORA)}")
    there = [] if options.table else texts(options.debian)
    if absent := [name for name in asked_for if name not in there and not options.table]:
        print(f"left out, as what they are made of is not there: {', '.join(absent)}", file=sys.stderr)
    places = list(product([name for name in asked_for if name in there], map(int, options.topics.split(","))))
    asked = best.all_cells(list(MODELS), places, range(options.seeds))
    cells.run(asked, partial(fit_and_judge, options.shared, options.debian), options)
    whole = best.all_cells(list(MODELS), list(product(CORPORA, (20, 50))), range(max(SEEDS, options.seeds)))
    found = [row for row in cells.latest(options.out, whole) if "error" not in row]
    titles = [best.COLUMNS[name][0] for name in DIFFERENCES]
    header = ["corpus", "documents", "words", "tokens a document", "K", "seeds", *titles, *RATIOS.values()]
    PAGE.write_text(HEAD + cells.markdown(header, lines(found)), encoding="utf-8")


if __name__ == "__main__":
    main()
