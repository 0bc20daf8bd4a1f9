"""Corpora to start with: documentation that comes with Python, documents drawn from LDA, 20 Newsgroups, and Chinese
corpora that reports use, from files that the user has."""

from __future__ import annotations

import ast
import os
import re
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .corpus import Corpus
from .errors import InputError, SettingError
from .settings import require_seed
from .text import Document, read, stop_words

_NOT_SUBJECTS = {"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__", "pydoc_data", "lib2to3"}
_NOT_MODULES = ("config-", "_sysconfigdata")  # beginnings of names
# Words that occur in the documentation of any function, whatever its subject.
_JARGON = {
    "arg", "args", "argument", "arguments", "attribute", "attributes", "bool", "call", "called", "calls",
    "class", "classes", "def", "default", "defaults", "dict", "example", "examples", "false",
    "function", "functions", "given", "instance", "instances", "int", "isinstance", "keyword",
    "kwargs", "method", "methods", "module", "none", "note", "object", "objects", "optional", "otherwise",
    "parameter", "parameters", "raise", "raised", "raises", "return", "returned", "returning", "returns",
    "self", "specified", "str", "string", "subclass", "subclasses", "true", "tuple", "type", "typeerror",
    "types", "use", "used", "uses", "using", "value", "valueerror", "values", "want", "wants",
}  # fmt: skip
_SHORTEST = 15  # words; a shorter docstring hardly has a topic
_CHUNK = 20_000  # documents drawn at a time
# "1.科学边界", "12、尾声", "第三章 红岸", "Chapter 4"; longer lines, or lines that are sentences, are no headings
_HEADING = re.compile(
    r"(?:\d{1,3}\s*[.．、]\s*|第[\d零〇一二三四五六七八九十百]+[章回节部卷]\s*|chapter \d+\W*)[^。！？，,!?]{0,30}",
    re.I,
)
_UTTERANCE_ENDS = re.compile(r"\s*__eou__\s*|\t+")


class Synthetic(NamedTuple):
    """A corpus drawn from LDA, with its topics (K, V) and theta (n_docs, K), whose rows sum to 1.

    Examples:
        >>> import topicloom as tl
        >>> tl.datasets.synthetic_lda(n_docs=10, n_topics=3, n_words=20)
        Synthetic(Corpus(10 documents, 20 words, 627 tokens), topics (3, 20), theta (10, 3))
    """

    corpus: Corpus
    topics: npt.NDArray[np.float32]
    theta: npt.NDArray[np.float32]

    def __repr__(self) -> str:
        """Return the shapes of the arrays and not their values."""
        return f"Synthetic({self.corpus!r}, topics {self.topics.shape}, theta {self.theta.shape})"


def python_docs(**options: Any) -> Corpus:
    """Return the docstrings of the running Python's standard library as a corpus.

    It needs no network and imports no module of the library. A document is the docstring of a module with those of its
    functions, or the docstring of a class with those of its methods. Ids are qualified names, and labels are top-level
    modules. The corpus differs slightly between versions of Python.

    Args:
        options: for `Corpus.from_texts`. By default, the vocabulary consists of the words that occur in at least 5
            documents and at most a tenth of all, without the words of programming.

    Raises:
        InputError: this Python was installed without the source of its library.

    Examples:
        >>> import topicloom as tl
        >>> corpus = tl.datasets.python_docs(max_features=500)
        >>> corpus.n_words, "json" in corpus.labels
        (500, True)
    """
    documents = _library_documents(Path(sysconfig.get_path("stdlib")))
    if not documents:
        raise InputError("this Python was installed without the source of its library; use synthetic_lda() instead")
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
    shares: npt.ArrayLike | None = None,
    random_state: int = 0,
) -> Synthetic:
    """Draw documents from LDA (Blei, Ng & Jordan 2003), to test whether a model finds the topics again.

    Args:
        n_docs: the number of documents. They are drawn in chunks, so that a million fit into memory.
        n_topics: the number of topics K.
        n_words: the size V of the vocabulary.
        doc_length: the mean of the Poisson distribution of document lengths, in tokens.
        alpha: the concentration of the symmetric Dirichlet prior of theta.
        eta: the concentration of the symmetric Dirichlet prior of the topics.
        topics: (K, V) the topics themselves, instead of n_topics, n_words and eta.
        shares: (K,) the topics' average shares, with the sum 1; theta ~ Dirichlet(K * alpha * shares). None makes all
            topics equally large.
        random_state: a seed. No global random state is read or changed.

    Raises:
        SettingError: a number is not positive, the topics or shares are not distributions, or `random_state` is no
            seed.

    Examples:
        >>> import topicloom as tl
        >>> drawn = tl.datasets.synthetic_lda(n_docs=200, n_topics=3, n_words=50, random_state=0)
        >>> drawn
        Synthetic(Corpus(200 documents, 50 words, 11,721 tokens), topics (3, 50), theta (200, 3))
        >>> drawn.corpus.counts.shape
        (200, 50)
    """
    for name, value in {"n_docs": n_docs, "n_topics": n_topics, "n_words": n_words, "doc_length": doc_length}.items():
        if value <= 0:
            raise SettingError(f"`{name}={value}` should be above 0")
    for name, value in {"alpha": alpha, "eta": eta}.items():
        if value <= 0:
            raise SettingError(f"`{name}={value}` should be above 0, as it is the concentration of a Dirichlet prior")
    require_seed(random_state)
    random = np.random.default_rng(random_state)
    beta = random.dirichlet(np.full(n_words, eta), n_topics) if topics is None else np.asarray(topics, np.float64)
    if beta.ndim != 2 or (beta < 0).any() or not np.allclose(beta.sum(1), 1, atol=1e-4):
        raise SettingError("`topics` should be a (K, V) array whose rows are distributions")
    n_topics, n_words = beta.shape
    even = np.full(n_topics, 1 / n_topics)
    mean = even if shares is None else np.asarray(shares, np.float64)
    if mean.shape != even.shape or (mean <= 0).any() or not np.isclose(mean.sum(), 1, atol=1e-4):
        raise SettingError(f"`shares` should be {n_topics} numbers above 0 with the sum 1")
    prior = np.full(n_topics, alpha) if shares is None else n_topics * alpha * mean  # (K,)
    cumulative = beta.cumsum(1)
    cumulative /= cumulative[:, -1:]
    theta = np.empty((n_docs, n_topics), np.float32)
    parts = []
    for first in range(0, n_docs, _CHUNK):
        mixture = random.dirichlet(prior, min(_CHUNK, n_docs - first))  # (D, K)
        theta[first : first + len(mixture)] = mixture
        drawn = random.multinomial(random.poisson(doc_length, len(mixture)), mixture)  # (D, K) tokens of each topic
        parts.append(_draw_words(drawn, cumulative, random))
    counts = sparse.vstack(parts, format="csr", dtype=np.float32)
    return Synthetic(Corpus.from_counts(counts), beta.astype(np.float32), theta)


def twenty_newsgroups(subset: str = "train", **options: Any) -> Corpus:
    """Return the 20 Newsgroups posts without headers, footers and quotations; scikit-learn downloads them once.

    Args:
        subset: "train", "test" or "all".
        options: for `Corpus.from_texts`.

    Raises:
        SettingError: the subset is unknown.
        InputError: the posts were not downloaded before, and cannot be downloaded now.

    Examples:
        >>> import topicloom as tl
        >>> tl.datasets.twenty_newsgroups("test")  # doctest: +SKIP
        Corpus(7532 documents, ...)
    """
    from sklearn.datasets import fetch_20newsgroups

    if subset not in {"train", "test", "all"}:
        raise SettingError(f'`subset={subset!r}` should be "train", "test" or "all"')
    try:
        posts = fetch_20newsgroups(subset=subset, remove=("headers", "footers", "quotes"))
    except OSError as error:  # no network, or no room for the file
        raise InputError(
            f"20 Newsgroups cannot be downloaded ({error}); connect to the network, or use python_docs()"
        ) from None
    labels = [posts.target_names[target] for target in posts.target]
    return Corpus.from_texts(posts.data, **({"language": "en", "labels": labels} | options))


def cnews10k(path: str | Path, *, encoding: str = "utf-8", **options: Any) -> Corpus:
    r"""Return Chinese news titles from a file that you have, such as cnews10k_lines.txt.

    Titles have few words, so that the default `min_df` of 5 leaves some without any.

    Args:
        path: a file with a title on each line, or with a label, a tab and a title. A line is a document, also a blank
            one.
        encoding: that of the file, such as "gb18030".
        options: for `Corpus.from_texts`.

    Raises:
        InputError: the file cannot be read.

    Examples:
        >>> import topicloom as tl
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "news.txt")
        ...     _ = path.write_text("体育\t球队赢得比赛\n财经\t股市今天上涨\n", encoding="utf-8")
        ...     corpus = tl.datasets.cnews10k(path, min_df=1, max_df=1.0)
        >>> corpus.labels
        ['体育', '财经']
        >>> corpus.n_docs
        2
    """
    lines = _lines(path, encoding)
    parts = [line.partition("\t") for line in lines]
    if not all(tab for line, (_, tab, _) in zip(lines, parts, strict=True) if line):
        return Corpus.from_texts(lines, **({"language": "zh"} | options))
    labels, texts = [label.strip() for label, _, _ in parts], [text for _, _, text in parts]
    return Corpus.from_texts(texts, **({"language": "zh", "labels": labels} | options))


def three_body(
    path: str | Path, unit: Literal["paragraph", "chapter"] = "paragraph", *, encoding: str = "utf-8", **options: Any
) -> Corpus:
    r"""Return a Chinese novel from a file that you have, such as 3body1_lines.txt.

    Labels are the headings of chapters ("1.科学边界", "第三章 红岸"); what comes before the first of them has none.
    Blank lines are left out, and so are headings.

    Args:
        path: a text with a paragraph on each line.
        unit: what a document is: a paragraph, or a chapter.
        encoding: that of the file, such as "gb18030".
        options: for `Corpus.from_texts`.

    Raises:
        InputError: the file cannot be read, or it has no heading and chapters are wanted.
        SettingError: the unit does not exist.

    Examples:
        >>> import topicloom as tl
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "novel.txt")
        ...     _ = path.write_text("第一章 相遇\n他们在图书馆见面。\n\n他们谈论天文学。\n", encoding="utf-8")
        ...     paragraphs = tl.datasets.three_body(path, min_df=1, max_df=1.0)
        ...     chapters = tl.datasets.three_body(path, "chapter", min_df=1, max_df=1.0)
        >>> paragraphs.labels
        ['第一章 相遇', '第一章 相遇']
        >>> chapters.n_docs
        1
    """
    if unit not in ("paragraph", "chapter"):
        raise SettingError(f'`unit={unit!r}` should be "paragraph" or "chapter"')
    headings: list[str] = []
    texts: list[str] = []
    heading = ""
    for line in filter(None, (line.strip() for line in _lines(path, encoding))):
        if _HEADING.fullmatch(line):
            heading = line
        elif unit == "chapter" and headings and headings[-1] == heading:
            texts[-1] += f"\n{line}"
        else:
            headings.append(heading)
            texts.append(line)
    if unit == "chapter" and not heading:
        raise InputError(f'{path} has no heading of a chapter, such as "第三章" or "3."; use `unit="paragraph"`')
    return Corpus.from_texts(texts, **({"language": "zh", "labels": headings} | options))


def zhdd(path: str | Path, *, encoding: str = "utf-8", **options: Any) -> Corpus:
    r"""Return Chinese daily dialogues from a file that you have, such as zhdd_lines.txt.

    Args:
        path: a dialogue on each line, whose utterances may be separated by tabs or by __eou__; or an utterance on each
            line, with a blank line between dialogues.
        encoding: that of the file, such as "gb18030".
        options: for `Corpus.from_texts`.

    Raises:
        InputError: the file cannot be read.

    Examples:
        >>> import topicloom as tl
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "talks.txt")
        ...     _ = path.write_text("你喜欢音乐吗？\t喜欢。\n明天天气怎么样？\t下雨。\n", encoding="utf-8")
        ...     corpus = tl.datasets.zhdd(path, min_df=1, max_df=1.0)
        >>> list(corpus.texts)
        ['你喜欢音乐吗？\n喜欢。', '明天天气怎么样？\n下雨。']
    """
    lines = [line.strip() for line in _lines(path, encoding)]
    while lines and not lines[-1]:
        lines.pop()
    dialogues = "\n".join(lines).split("\n\n") if "" in lines else lines
    texts = [_UTTERANCE_ENDS.sub("\n", dialogue).strip() for dialogue in dialogues]
    return Corpus.from_texts([text for text in texts if text], **({"language": "zh"} | options))


def _lines(path: str | Path, encoding: str) -> list[str]:
    """Return the lines of a text file.

    Raises:
        InputError: the file cannot be read, or is blank.
    """
    lines = [str(document.text) for document in read(path, format="txt", encoding=encoding)]
    if not any(line.strip() for line in lines):
        raise InputError(f"{path} has no text; check the path")
    return lines


def _draw_words(
    drawn: npt.NDArray[np.int64], cumulative: npt.NDArray[np.float64], random: np.random.Generator
) -> sparse.csr_array:
    """Draw (D, V) counts.

    Args:
        drawn: (D, K) the number of tokens of each topic in each document.
        cumulative: (K, V) cumulative sums of the topics.
    """
    n_docs, n_words = len(drawn), cumulative.shape[1]
    rows, columns = [], []
    for topic, sums in enumerate(cumulative):
        row = np.repeat(np.arange(n_docs, dtype=np.int32), drawn[:, topic])
        rows.append(row)
        columns.append(np.searchsorted(sums, random.random(len(row)), side="right").astype(np.int32))
    row, column = np.concatenate(rows), np.concatenate(columns)
    return sparse.csr_array((np.ones(len(row), np.float32), (row, column)), shape=(n_docs, n_words))


@cache  # parsing the library takes seconds
def _library_documents(root: Path) -> tuple[Document, ...]:
    documents = []
    for path in sorted(_library_files(root), key=lambda each: each.parts):  # on Windows, too, case counts
        name = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        try:
            module = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue  # the library contains faulty files on purpose
        documents += [Document(text, id, name.partition(".")[0]) for id, text in _documents_of(module, name)]
    return tuple(documents)


def _library_files(root: Path) -> Iterator[Path]:
    for folder, subfolders, files in os.walk(root):
        subfolders[:] = set(subfolders) - _NOT_SUBJECTS
        for file in map(Path(folder).joinpath, files):
            first = file.relative_to(root).parts[0]
            if file.suffix == ".py" and file.stem not in _NOT_SUBJECTS and not first.startswith(_NOT_MODULES):
                yield file


def _documents_of(node: ast.Module | ast.ClassDef, name: str) -> Iterator[tuple[str, str]]:
    """Yield the docstrings of a module or class and of its functions as one document, then those of its classes."""
    functions = [child for child in node.body if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))]
    docstrings = [ast.get_docstring(part) for part in (node, *functions)]
    text = "\n\n".join(docstring for docstring in docstrings if docstring)
    if len(text.split()) >= _SHORTEST:
        yield name, text
    for child in node.body:
        if isinstance(child, ast.ClassDef):
            yield from _documents_of(child, f"{name}.{child.name}")
