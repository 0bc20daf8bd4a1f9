"""Tables that go into a paper as they are, of topics, comparisons and evaluations, in English and Chinese."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from ..errors import SettingError
from ..metrics.catalogue import CATALOGUE
from .table import Strong, Table

TableLanguage = Literal["auto", "en", "zh"]
Language = Literal["en", "zh"]

_DECIMALS = 2
_HEADINGS = {
    "topic": ("Topic", "主题"), "name": ("Name", "名称"), "words": ("Words", "主题词"),
    "share": ("Share (%)", "占比（%）"), "coherence": ("NPMI", "NPMI"), "model": ("Model", "模型"),
    "n_topics": ("$K$", "$K$"), "measure": ("Measure", "指标"), "value": ("Value", "数值"),
}  # fmt: skip
_TOPICS = (
    "Topics of {documents} documents. Share is the mean proportion of the topic in a document, and NPMI the coherence "
    "of its ten top words in the documents.",
    "{documents} 篇文档的主题。占比是主题在文档中所占比例的平均值；NPMI 是前十个主题词在文档中的一致性。",
)
_COMPARISON = (
    "{subject} on {documents} {part} documents: {values}. {best}{once}",
    "{documents} 篇{part}文档上的{subject}：{values}。{best}{once}",
)
_MODELS = ("Topic models", "主题模型")
_PARTS = {"validation": ("validation", "验证"), "test": ("test", "测试")}
_SEEDS = ("mean ± standard deviation over {seeds} random seeds", "{seeds} 个随机种子的平均值 ± 标准差")
_ONE_SEED = ("figures of one random seed", "一个随机种子的数值")
_BEST_OF_SIZE = ("The best of each number of topics $K$ is bold.", "每个主题数 $K$ 的最好数值用粗体。")
_BEST = ("The best number of topics $K$ by each measure is bold.", "按每个指标，最好的主题数 $K$ 用粗体。")
_ONCE = (
    " These measures describe the topics and do not depend on the documents of this part: {measures}.",
    "下列指标描述主题本身，与这部分文档无关：{measures}。",
)
_EVALUATION = (
    "Measures of {model} with {n_topics} topics on {documents} documents.",
    "{model}（{n_topics} 个主题）在 {documents} 篇文档上的指标。",
)


def table_language(language: TableLanguage, tokenizer: Any = None) -> Language:
    """Return the language of a table: for "auto", Chinese if the texts are Chinese, and otherwise English.

    Raises:
        SettingError: it is neither "auto" nor "en" nor "zh".
    """
    if language not in ("auto", "en", "zh"):
        raise SettingError(f"`table_language={language!r:.60}` should be en or zh, or auto for that of the texts")
    if language == "auto":
        return "zh" if getattr(tokenizer, "language", None) == "zh" else "en"
    return language


def topics_for_print(table: Table, given: Sequence[str | None], n_documents: int, language: Language) -> Table:
    """Return a table of topics: their names, or numbers if none has a name, with words, share and coherence.

    Args:
        table: what `Topics.table` returned.
        given: the name that each topic was given.
        n_documents: the number of documents.
        language: "en" or "zh".
    """
    chinese = language == "zh"
    between = "、" if chinese else ", "
    first = "name" if any(given) else "topic"
    columns = {
        first: list(table[first]),
        "words": [between.join(words) for words in table["words"]],
        "share": [100 * share for share in table["share"]],
        "coherence": list(table["coherence"]),
    }
    caption = _TOPICS[chinese].format(documents=f"{n_documents:,}")
    return _printed(columns, language, caption, "tab:topics")


def comparison_for_print(
    rows: Sequence[Mapping[str, Any]],
    measures: Iterable[str],
    titles: Mapping[str, str],
    seeds: int,
    part: str,
    n_documents: int,
    language: Language,
) -> Table:
    """Return a table of a comparison: mean ± standard deviation of each measure, the best mean of each K in bold.

    Args:
        rows: what `Comparison.table` returned.
        measures: the names of the measures.
        titles: the title of each model.
        seeds: the number of seeds.
        part: "validation" or "test".
        n_documents: the number of documents of this part.
        language: "en" or "zh".
    """
    chinese = language == "zh"
    names = [name for name in measures if any(row.get(name) is not None for row in rows)]
    several = len({row["model"] for row in rows}) > 1
    columns: dict[str, list[Any]] = {
        **({"model": [titles[row["model"]] for row in rows]} if several else {}),
        "n_topics": [row["n_topics"] for row in rows],
    }
    for name in names:
        better, digits = CATALOGUE[name].better, min(CATALOGUE[name].digits, _DECIMALS)
        column = []
        for row in rows:
            if row[name] is None:
                column.append("–")
                continue
            rivals = [
                other[name] * better
                for other in rows
                if (other["n_topics"] == row["n_topics"] or not several) and other[name] is not None
            ]
            spread = "" if row[f"{name}_sd"] is None else f" ± {row[f'{name}_sd']:.{digits}f}"
            text = f"{row[name]:.{digits}f}{spread}"
            best = better and len(rivals) > 1 and row[name] * better == max(rivals)
            column.append(Strong(text) if best else text)
        columns[name] = column
    once = ("、" if chinese else ", ").join(_title(n, chinese) for n in names if not CATALOGUE[n].depends_on_documents)
    values = (_SEEDS if seeds > 1 else _ONE_SEED)[chinese].format(seeds=seeds)
    subject = _MODELS[chinese] if several else next(iter(titles.values()))
    caption = _COMPARISON[chinese].format(
        subject=subject, documents=f"{n_documents:,}", part=_PARTS[part][chinese], values=values,
        best=(_BEST_OF_SIZE if several else _BEST)[chinese], once=_ONCE[chinese].format(measures=once) if once else "",
    )  # fmt: skip
    return _printed(columns, language, caption, f"tab:comparison-{part}")


def evaluation_for_print(
    rows: Iterable[Mapping[str, Any]], about: Mapping[str, Any], language: Language = "en"
) -> Table:
    """Return a table of an evaluation, with a row for each measure that has a value.

    Args:
        rows: what `Evaluation.table` returned.
        about: the model, the number of topics and the number of documents.
        language: "en" or "zh".
    """
    chinese = language == "zh"
    known = [row for row in rows if row["value"] is not None]
    columns = {
        "measure": [_title(row["name"], chinese, whole=True) for row in known],
        "value": [
            f"{row['value']:,}"
            if CATALOGUE[row["name"]].is_count
            else f"{row['value']:,.{min(CATALOGUE[row['name']].digits, _DECIMALS)}f}"
            for row in known
        ],
    }
    caption = _EVALUATION[chinese].format(**{**about, "documents": f"{about['documents']:,}"})
    return _printed(columns, language, caption, "tab:measures")


def model_title(name: str, classes: Mapping[str, str]) -> str:
    """Return the title of a model of a comparison, such as "LDA (method=gibbs)".

    Args:
        name: the name in the comparison, such as "lda:method=gibbs+epochs=500".
        classes: the name of the class of each kind of model.

    >>> model_title("lda:method=gibbs+epochs=500", {"lda": "LDA"})
    'LDA (method=gibbs, epochs=500)'
    """
    kind, _, settings = name.partition(":")
    title = classes.get(kind, kind)
    return f"{title} ({settings.replace('+', ', ')})" if settings else title


def _title(name: str, chinese: bool, *, whole: bool = False) -> str:
    measure = CATALOGUE[name]
    if chinese:
        return measure.title_zh
    short = "perplexity" if name == "perplexity_completion" else measure.column
    title = measure.title if whole else short or measure.title
    return title[:1].upper() + title[1:]


def _printed(columns: Mapping[str, Sequence[Any]], language: Language, caption: str, label: str) -> Table:
    chinese = language == "zh"
    titled = {
        _HEADINGS[name][chinese] if name in _HEADINGS else _title(name, chinese): values
        for name, values in columns.items()
    }
    return Table(titled, caption, caption=caption, label=label, decimals=_DECIMALS)
