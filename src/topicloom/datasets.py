"""Corpora to begin with: one that every Python carries, one drawn from LDA itself, and one that is downloaded."""

from __future__ import annotations

import ast
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .corpus import Corpus
from .errors import InputError, SettingError
from .text import Document, stop_words

_NOT_SUBJECTS = {"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__", "pydoc_data", "lib2to3"}
# Words that speak of any function, whatever its subject.
_JARGON = {
    "arg", "args", "argument", "arguments", "attribute", "attributes", "bool", "call", "called", "calls",
    "class", "classes", "def", "default", "defaults", "dict", "e.g", "example", "examples", "false",
    "function", "functions", "given", "i.e", "instance", "instances", "int", "isinstance", "keyword",
    "kwargs", "method", "methods", "module", "none", "note", "object", "objects", "optional", "otherwise",
    "parameter", "parameters", "raise", "raised", "raises", "return", "returned", "returning", "returns",
    "self", "specified", "str", "string", "subclass", "subclasses", "true", "tuple", "type", "typeerror",
    "types", "use", "used", "uses", "using", "value", "valueerror", "values", "want", "wants",
}  # fmt: skip
_SHORTEST = 15  # words; a shorter docstring names its subject at best
_CHUNK = 20_000


class Synthetic(NamedTuple):
    """A corpus drawn from LDA, with what it was drawn from: topics (K, V) and theta (n_docs, K), rows sum to 1."""

    corpus: Corpus
    topics: npt.NDArray[np.float32]
    theta: npt.NDArray[np.float32]


def python_docs(**options: Any) -> Corpus:
    """The docstrings of the running Python's standard library; needs no network, and imports nothing.

    A document is a module's own docstring with its functions', or a class's with its methods'. Ids are qualified names,
    labels the top-level modules. The corpus differs a little between versions of Python.

    Args:
        options: for `Corpus.from_texts`; by default words in 5 documents to a tenth of all, without the words of code.

    Raises:
        InputError: this Python comes without its library's source.
    """
    documents = list(_library_documents(Path(sysconfig.get_path("stdlib"))))
    if not documents:
        raise InputError("this Python comes without its library's source files; use synthetic_lda() instead")
    options = {"language": "en", "max_df": 0.1, "stop_words": stop_words("en") | _JARGON, **options}
    return Corpus.from_texts(
        [document.text for document in documents],
        ids=[document.id for document in documents],
        labels=[document.label for document in documents],
        **options,
    )


def synthetic_lda(
    n_docs: int = 1000,
    n_topics: int = 5,
    n_words: int = 100,
    doc_length: float = 60,
    alpha: float = 0.1,
    eta: float = 0.1,
    topics: npt.ArrayLike | None = None,
    random_state: int = 0,
) -> Synthetic:
    """Documents drawn from LDA (Blei, Ng & Jordan 2003), to see whether a model finds the topics again.

    Args:
        n_docs: the number of documents, which are made in chunks: a million are no trouble.
        n_topics: K.
        n_words: V.
        doc_length: mean of the Poisson distribution of lengths, in tokens.
        alpha: concentration of the symmetric Dirichlet prior of theta.
        eta: concentration of that of the topics.
        topics: (K, V) the topics themselves; takes the place of n_topics, n_words and eta.
        random_state: seed; no global random state is touched.

    Raises:
        SettingError: a number that is not positive, or topics that are not distributions.
    """
    for name, value in {"n_docs": n_docs, "n_topics": n_topics, "n_words": n_words, "doc_length": doc_length}.items():
        if value <= 0:
            raise SettingError(f"{name}={value}: give a number above 0")
    for name, value in {"alpha": alpha, "eta": eta}.items():
        if value <= 0:
            raise SettingError(f"{name}={value}: a Dirichlet's concentration is above 0")
    random = np.random.default_rng(random_state)
    beta = random.dirichlet(np.full(n_words, eta), n_topics) if topics is None else np.asarray(topics, np.float64)
    if beta.ndim != 2 or (beta < 0).any() or not np.allclose(beta.sum(1), 1, atol=1e-4):
        raise SettingError("topics= has to be a (K, V) array whose rows are distributions")
    n_topics, n_words = beta.shape
    cumulative = beta.cumsum(1)
    cumulative /= cumulative[:, -1:]
    theta = np.empty((n_docs, n_topics), np.float32)
    parts = []
    for first in range(0, n_docs, _CHUNK):
        mixture = random.dirichlet(np.full(n_topics, alpha), min(_CHUNK, n_docs - first))  # (D, K)
        theta[first : first + len(mixture)] = mixture
        drawn = random.multinomial(random.poisson(doc_length, len(mixture)), mixture)  # (D, K) tokens of each topic
        parts.append(_draw_words(drawn, cumulative, random))
    counts = sparse.vstack(parts, format="csr", dtype=np.float32)
    return Synthetic(Corpus.from_counts(counts), beta.astype(np.float32), theta)


def twenty_newsgroups(subset: str = "train", **options: Any) -> Corpus:
    """The 20 Newsgroups posts without headers, footers and quotations; downloaded once, by scikit-learn.

    Args:
        subset: "train", "test" or "all".
        options: for `Corpus.from_texts`.

    Raises:
        SettingError: an unknown subset.
        InputError: the posts are not here yet and cannot be downloaded.
    """
    from sklearn.datasets import fetch_20newsgroups

    if subset not in {"train", "test", "all"}:
        raise SettingError(f'subset={subset!r}: give "train", "test" or "all"')
    try:
        posts = fetch_20newsgroups(subset=subset, remove=("headers", "footers", "quotes"))
    except OSError as error:  # no network, or no place to keep the file
        raise InputError(
            f"20 Newsgroups cannot be downloaded ({error}); connect to the network, or use python_docs()"
        ) from None
    labels = [posts.target_names[target] for target in posts.target]
    return Corpus.from_texts(posts.data, **({"language": "en", "labels": labels} | options))


def _draw_words(
    drawn: npt.NDArray[np.int64], cumulative: npt.NDArray[np.float64], random: np.random.Generator
) -> sparse.csr_array:
    """(D, V) counts, given how many tokens of each topic each document has, (D, K), and the topics' sums, (K, V)."""
    n_docs, n_words = len(drawn), cumulative.shape[1]
    rows, columns = [], []
    for topic, sums in enumerate(cumulative):
        row = np.repeat(np.arange(n_docs, dtype=np.int32), drawn[:, topic])
        rows.append(row)
        columns.append(np.searchsorted(sums, random.random(len(row)), side="right").astype(np.int32))
    row, column = np.concatenate(rows), np.concatenate(columns)
    return sparse.csr_array((np.ones(len(row), np.float32), (row, column)), shape=(n_docs, n_words))


def _library_documents(root: Path) -> Iterator[Document]:
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        if _NOT_SUBJECTS & set(parts) or parts[0].startswith(("config-", "_sysconfigdata")):
            continue
        name = ".".join(parts).removesuffix(".__init__")
        try:
            module = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue  # some libraries carry faulty files on purpose
        for id, text in _documents_of(module, name):
            yield Document(text, id, name.partition(".")[0])


def _documents_of(node: ast.Module | ast.ClassDef, name: str) -> Iterator[tuple[str, str]]:
    """The docstrings of a module or class and of its functions as one document, then those of its classes."""
    functions = [child for child in node.body if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))]
    docstrings = [ast.get_docstring(part) for part in (node, *functions)]
    text = "\n\n".join(docstring for docstring in docstrings if docstring)
    if len(text.split()) >= _SHORTEST:
        yield name, text
    for child in node.body:
        if isinstance(child, ast.ClassDef):
            yield from _documents_of(child, f"{name}.{child.name}")
