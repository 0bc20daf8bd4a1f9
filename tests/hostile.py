"""A run in which every field is hostile: its words, texts, ids, labels, times, covariates, names and its title."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import topicloom as tl
from topicloom.reports.explorer import PageOptions, write_page
from topicloom.topics.saved import write_stored

WORDS = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "<svg/onload=alert(3)>",
    "</title></style><style>*{display:none}</style>",
    "--><!--<b>]]>",
    "{{7*7}}${7*7}{%raw%}#{1}<%=1%>{0}%s%n",
    "\u202eevil\u2066x",
    "\x00\x01\x07\x1b[31mred\x1b]0;title\x07\x9b31m\x7f",
    "a\u2028b\u2029c\x85d",
    "=cmd|'C'!A0",
    "A" * 20_000,
    "Z" + "\u0311\u036b\u0313\u036a" * 500,
    "javascript:alert(4)",
    "&lt;script&gt;&#60;b&#62;",
    "[red]bold[/red][link=file:///x]l[/link]",
    "__proto__",
    "constructor",
    "\ufeffx\ufffe\uffff\U0010ffff",
    "'\"`\\",
    "../../etc/passwd",
    "$(id)`id`",
    "\ufffd",
]
FIELDS = [*WORDS, "a \ud800 b", "\r\nSet-Cookie: x=1\r\n\r\n", "1e999", "NaN", ""]  # which words cannot contain
TITLE = "<script>document.title='hacked'<\u2044script> {{x}} \u202e =1+1"  # no slash, as it is a file's name


def hostile_corpus(n_docs: int = 60) -> tl.Corpus:
    """Documents of hostile words, of which each has plain ones, too."""
    words = ["cat", "dog", "bank", "rate", *WORDS]
    counts = np.zeros((n_docs, len(words)), int)
    for row in range(n_docs):
        counts[row, [2 * (row % 2), 2 * (row % 2) + 1]] = 3
        counts[row, [4 + row % len(WORDS), 4 + (row + 7) % len(WORDS)]] = 1
    moments = np.linspace(-6e10, 2.5e11, n_docs)  # seconds, from the year 68 to the year 9892
    return tl.Corpus.from_counts(
        counts,
        words,
        texts=[f"cat dog bank {FIELDS[n % len(FIELDS)]}" for n in range(n_docs)],
        ids=[f"{FIELDS[n % len(FIELDS)]}{n}" for n in range(n_docs)],
        labels=[FIELDS[n // 3 % len(FIELDS)] for n in range(n_docs)],
        timestamps=[None if n % 5 == 0 else np.datetime64(int(moments[n]), "s") for n in range(n_docs)],
        covariates={WORDS[0]: list(range(n_docs)), WORDS[1]: [FIELDS[n % len(FIELDS)] for n in range(n_docs)]},
    )


def hostile_run(folder: Path, n_docs: int = 60) -> Path:
    """Write what the service and the commands read of a run into a folder with a hostile name."""
    corpus = hostile_corpus(n_docs)
    model = tl.GSM(4, epochs=2, random_state=0, verbose=False).fit(corpus)
    named = model.rename({0: WORDS[0], 1: WORDS[1], 2: WORDS[6] + WORDS[7]})
    out = folder / TITLE
    out.mkdir(parents=True)
    named.save(out / "model")
    write_stored(out, corpus, named.transform(corpus))
    write_page(out / "explorer.html", tl.Topics(named, corpus), PageOptions(TITLE))
    return out
