"""Compare Loom with Gibbs samplers on corpora that best.py does not use: the texts of installed packages.

    python benchmarks/unseen.py [--debian FOLDER] [--corpora modules,glosses] [--topics 20,50] [--models Loom]

Three corpora are docstrings of Python packages that are installed with topicloom. Six more come from Debian packages
that are unpacked in a folder, by default the one that `make bench-unseen` uses. Results are stored in
results/unseen.jsonl, and unseen.md is written from all results in the file. Use `--again` if packages have changed,
because stored results do not record the versions of packages.
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
import jobs
import shared
import topicloom as tl

PAGE = Path(__file__).with_name("unseen.md")
DEBIAN = shared.RESULTS / "debian"
PACKAGES = ("torch", "sklearn", "scipy", "numpy", "pandas", "matplotlib", "sympy", "networkx", "gensim", "PIL")
PACKAGES += ("optuna", "fontTools", "alembic", "sqlalchemy")
MODELS = {name: best.MODELS[name] for name in (best.OURS, best.REFERENCE)}
REFERENCES = (best.REFERENCE, best.STRONGEST)
SEEDS = 3
DIFFERENCES = ("npmi", "td", "npmi6", "td6", "npmi_test", "nmi", "purity", "acc")
RATIOS = {"own_ppl": "perplexity", "cpu": "processor time"}
Rows = list[tuple[str, str]]  # text and label

HEAD = """# Loom on other corpora

The settings of Loom were chosen on six corpora, and the test documents of these were read between rounds of that work
([best.md](best.md)). This page has other corpora: docstrings of Python packages (`docstrings`; `doctitles` has their
first paragraphs, and `modules` all docstrings of a module), definitions of WordNet (`glosses`), quotations
(`fortunes`), manual pages in Chinese (`manzh`), in German (`german`) and of FreeBSD (`freebsd`), and the
documentation of Linux (`kernel`). Most of them were first examined when the settings of that time had been chosen.
Settings that changed later, those of the start at clusters, were chosen on the six corpora. `make bench-unseen` makes
the corpora and writes this page. The last six need Debian and its package registry. The texts depend on the packages
that are installed.

Loom once had rules by which the amount of noise, and the share of a token's own count that is excluded, depended on
the number of tokens per word. They were chosen on documents of `manzh`, `modules` and `kernel`, among them test
documents of this page, and no longer exist. The sampling stage, which made them needless, was chosen on other corpora.
`german` and `freebsd`, which also have long documents, were added after the rules. That only top words are sharpened
was chosen on the six corpora, and was also examined on `manzh`, `modules` and `kernel`.

Most columns have the mean of Loom over seeds minus that of the Gibbs sampler, which has 1,000 iterations, one worker
and otherwise default settings. The test documents are a random fifth of each corpus. perplexity and processor time are
ratios, Loom divided by the sampler. Loom was measured again later, when training started at clusters of documents, but
before topics of two subjects were divided, which changes its figures with K=20, and before later changes of how words
are cut, which change the corpora a little. The machine did less other work then, so that the processor time of Loom is
too low in comparison. The samplers have one seed on the present texts of `kernel`. **✗** marks a figure that is not
better, however small the difference is. Figures differ by .01 to .03 from seed to seed. The labels are packages, the
subjects of WordNet's files, collections, sections and folders. The other columns are as in [best.md](best.md).

"""
STRONGEST_HEAD = """
The same differences from topica's sampler with 1,000 iterations, one thread and otherwise the settings of best.md:

"""


def of_packages() -> dict[str, Rows]:
    """Return docstrings as documents, their first paragraphs, and all docstrings of a module; labels are packages."""
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
    """Return the texts of Debian packages that were unpacked in a folder; a missing package gives no rows."""
    kernel, glosses, fortunes = [], [], []
    for root in sorted(folder.glob("usr/share/doc/linux-doc-*/Documentation"))[-1:]:  # the latest version alone
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
    manuals = {name: manual_pages(folder.glob(f"usr/share/man/{files}")) for name, files in pages.items()}
    return {"glosses": glosses, "fortunes": fortunes, "kernel": long} | manuals


def manual_pages(files: Iterable[Path]) -> Rows:
    """Return manual pages of more than 400 characters, without the requests of roff; the label is the section."""
    found = []
    for file in sorted(files):
        if not file.is_symlink():  # a link is another name of a page
            text = re.sub(r"^[.'].*?(?=\s|$)", " ", read(file), flags=re.MULTILINE)
            found.append((re.sub(r"\\f.|\\-|\\", " ", text), file.parent.name))
    return [row for row in found if len(row[0]) > 400]


def read(file: Path) -> str:
    """Return the text of a file, which may be compressed."""
    content = file.read_bytes()
    return (gzip.decompress(content) if file.suffix == ".gz" else content).decode(errors="ignore")


MAX_DOCUMENTS = {"doctitles": 12_000, "docstrings": 12_000, "glosses": 20_000}  # a random sample of so many
LANGUAGES = {"manzh": "zh", "german": "de"}
CORPORA = ("glosses", "fortunes", "doctitles", "docstrings", "manzh", "german", "freebsd", "modules", "kernel")


@cache
def texts(debian: Path) -> dict[str, Rows]:
    """Return the available corpora, without repeated documents."""
    every = of_packages() | of_debian(debian)
    return {name: [*{text: (text, label) for text, label in rows}.values()] for name, rows in every.items() if rows}


@cache
def load(debian: Path, name: str) -> dict[str, Any]:
    """Return a corpus in the form of shared.load; a fifth of its documents are test documents."""
    rows = texts(debian)[name].copy()
    random.Random(0).shuffle(rows)
    rows = rows[: MAX_DOCUMENTS.get(name)]
    language = LANGUAGES.get(name, "auto")
    # n_jobs=1, because this runs in a worker process.
    corpus = tl.Corpus.from_texts([text for text, _ in rows], language=language, n_jobs=1)
    labels = np.unique([label for _, label in rows], return_inverse=True)[1][~corpus.is_empty]
    counts = sp.csr_matrix(corpus.counts[~corpus.is_empty]).astype(np.float32)
    whole = {"train": counts, "vocab": corpus.vocabulary, "train_labels": labels, "train_texts": None}
    return shared.held_out(whole, 0.2)


def fit_and_evaluate(folder: Path, debian: Path, python: Path, job: jobs.Job) -> dict[str, Any]:
    """Return the figures of one job, and the size of its corpus."""
    import torch

    torch.set_num_threads(1)
    data = load(debian, job["corpus"])
    size = {"n_docs": data["train"].shape[0], "n_words": len(data["vocab"]), "n_tokens": float(data["train"].sum())}
    if job["model"] in best.TOPICA:
        peer = best.TOPICA[job["model"]]
        result = best.fit_peer(folder, data, python, peer, job["n_topics"], peer.epochs, 1, job["seed"])
        row = {"seconds": float(result["seconds"]), "cpu": float(result["cpu_seconds"]), **size}
        return row | best.peer_scores(folder, data, peer, result)
    variant, workers = MODELS[job["model"]], {"n_jobs": 1} if job["model"] == best.REFERENCE else {}
    # A small fit first, so that the time of imports is not measured.
    variant.make(2, 0).set_params(epochs=2, **workers).fit(data["train"][:200])
    model = variant.make(job["n_topics"], job["seed"]).set_params(**workers)
    start = time.process_time()
    model, seconds = shared.fit(model, data)
    row = {"seconds": seconds, "cpu": time.process_time() - start, **size}
    with threadpool_limits(1):
        return row | shared.evaluate(folder, data, model)


def lines(rows: list[dict[str, Any]], reference: str) -> Iterator[list[str]]:
    """Yield the rows of the table of differences from a sampler."""
    for corpus, n_topics in product(CORPORA, sorted({row["n_topics"] for row in rows})):
        ours, theirs = (
            [row for row in rows if (row["model"], row["corpus"], row["n_topics"]) == (name, corpus, n_topics)]
            for name in (best.OURS, reference)
        )
        if not ours or not theirs:
            continue
        n_docs, n_words = ours[0]["n_docs"], ours[0]["n_words"]
        size = [f"{n_docs:,}", f"{n_words:,}", f"{ours[0]['n_tokens'] / n_docs:.0f}"]
        differences = (best.mean(ours, name) - best.mean(theirs, name) for name in DIFFERENCES)
        ratios = (best.mean(ours, name) / best.mean(theirs, name) for name in RATIOS)
        figures = [f"{value:+.3f}{'' if value > 0 else ' **✗**'}" for value in differences]
        figures += [f"{ratio:.3f}{'' if ratio < 1 else ' **✗**'}" for ratio in ratios]
        yield [corpus, *size, str(n_topics), f"{len(ours)}, {len(theirs)}", *figures]


def main() -> None:
    parser = shared.parser(__doc__)
    jobs.add_arguments(parser, shared.RESULTS / "unseen.jsonl")
    parser.add_argument("--debian", type=Path, default=DEBIAN, help="folder of the unpacked Debian packages")
    parser.add_argument("--corpora", default=",".join(CORPORA), help="names, separated by commas")
    parser.add_argument("--topics", default="20,50", help="numbers of topics, separated by commas")
    parser.add_argument("--models", help="names of models, separated by commas; default: all")
    shared.add_peers(parser, "topica")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="number of seeds")
    options = parser.parse_args()
    names = options.corpora.split(",")
    if unknown := set(names) - set(CORPORA):
        raise SystemExit(f"unknown corpus: {', '.join(sorted(unknown))}; choose from {', '.join(CORPORA)}")
    available = [] if options.table else texts(options.debian)
    if absent := [name for name in names if name not in available and not options.table]:
        print(f"left out, because their packages are not installed: {', '.join(absent)}", file=sys.stderr)
    cases = list(product([name for name in names if name in available], map(int, options.topics.split(","))))
    names = [*MODELS, best.STRONGEST]
    if not options.peers.exists() and not options.table:
        print(f"topica is left out, because {options.peers} does not exist", file=sys.stderr)
        names.pop()
    if options.models:
        wanted = options.models.split(",")
        if unknown := set(wanted) - {*MODELS, best.STRONGEST}:
            known = ", ".join([*MODELS, best.STRONGEST])
            raise SystemExit(f"unknown model: {', '.join(sorted(unknown))}; choose from {known}")
        names = [name for name in names if name in wanted]
    requested = best.all_jobs(names, cases, range(options.seeds))
    jobs.run(requested, partial(fit_and_evaluate, options.shared, options.debian, options.peers), options)
    shown = best.all_jobs([best.OURS, *REFERENCES], list(product(CORPORA, (20, 50))), range(max(SEEDS, options.seeds)))
    found = [row for row in jobs.latest(options.out, shown) if "error" not in row]
    titles = [best.COLUMNS[name][0] for name in DIFFERENCES]
    header = ["corpus", "documents", "words", "tokens per document", "K", "seeds", *titles, *RATIOS.values()]
    tables = [jobs.markdown(header, lines(found, reference)) for reference in REFERENCES]
    PAGE.write_text(HEAD + STRONGEST_HEAD.join(tables), encoding="utf-8")


if __name__ == "__main__":
    main()
