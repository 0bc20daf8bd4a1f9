"""Tables that go into a paper as they are, of topics, their shares, comparisons and evaluations, in two languages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from ..errors import SettingError
from ..messages import counted
from ..metrics.catalogue import CATALOGUE, Measure
from .table import NOT_IN_LABELS, Strong, Table

if TYPE_CHECKING:
    from .shares import ByGroup, Correction
    from .trends import OverTime

TableLanguage = Literal["auto", "en", "zh"]
Language = Literal["en", "zh"]

_DECIMALS = 2
_HEADINGS = {
    "topic": ("Topic", "主题"), "name": ("Name", "名称"), "words": ("Words", "代表词"),
    "share": ("Share (%)", "占比（%）"), "coherence": ("NPMI", "NPMI"), "model": ("Model", "模型"),
    "n_topics": ("$K$", "$K$"), "measure": ("Measure", "指标"), "value": ("Value", "数值"),
    "period": ("Period", "时段"), "class": ("Class", "类别"), "documents": ("Documents", "文档数"),
    "interval": ("{level} % CI", "{level}% 区间"), "sparse": ("Sparse", "稀疏"), "lift": ("Lift", "提升度"),
    "p": ("p", "p 值"), "differs": ("Differs", "差异"), "rank": ("Rank", "排名"),
    "word": ("Word", "词"), "probability": ("Probability (%)", "概率（%）"),
}  # fmt: skip
_TOPICS = (
    "Topics of {documents}. Share is the mean proportion of the topic in a document, and NPMI the coherence "
    "of its ten top words in the documents.",
    "{documents}的主题。占比是主题在文档中所占比例的平均值；NPMI 是前十个代表词在文档中的一致性。",
)
_COMPARISON = (
    "{subject} on {documents}: {values}. {best}{once}",
    "{documents}上的{subject}：{values}。{best}{once}",
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
_REFERENCE = (" Coherence is counted in {reference}.", "一致性在 {reference} 中统计。")
_EVALUATION = (
    "Measures of {model} with {n_topics} topics on {documents}.",
    "{model}（{n_topics} 个主题）在 {documents}上的指标。",
)
_TRENDS = (
    "Shares of topics {by} in {documents}, with {level} % confidence intervals (CI).",
    "{documents}的主题占比，{by}统计，附 {level}% 区间。",
)
_SPARSE = (
    " Periods with fewer than {least} documents are sparse.",
    "文档少于 {least} 篇的时段为稀疏时段。",
)
_PERIODS_ZH = {
    "hour": "按小时", "day": "按日", "week": "按周", "month": "按月", "quarter": "按季度", "year": "按年",
    "decade": "按十年",
}  # fmt: skip
_GROUPS = (
    "Shares of topics by {by} in {documents}, with {level} % confidence intervals (CI).",
    "{documents}的主题占比，按{by}分组，附 {level}% 区间。",
)
_CROSS_TABLE = (
    "Topics by {by} in {documents}: shares with {level} % confidence intervals (CI), and lift, the share "
    "divided by that of all documents. Each group is compared with all documents; p is corrected for all topics and "
    "groups, by the method of {correction}.",
    "{documents}的主题，按{by}分组：占比（附 {level}% 区间）和提升度（占比与全部文档的占比之比）。"
    "每组都与全部文档比较；p 值按所有主题和组校正（{correction}）。",
)
_CORRECTIONS = {"benjamini-hochberg": "Benjamini–Hochberg", "holm": "Holm"}
_WORDS = (
    "The {n_words} top words of {n_topics} topics, with their probability in the topic.",
    "{n_topics} 个主题各自的前 {n_words} 个代表词，及其在主题中的概率。",
)
_YES_NO = (("no", "yes"), ("否", "是"))
_DIFFERS = {"higher": ("higher", "更高"), "lower": ("lower", "更低")}
_NONE = "–"
_LEAST_P = 0.001


def chosen_language(language: TableLanguage, tokenizer: object = None, argument: str = "language") -> Language:
    """Return the language that is meant: for "auto", Chinese if the texts are Chinese, and otherwise English.

    Args:
        language: "auto", "en" or "zh".
        tokenizer: the tokenizer of the texts; None if they are not known.
        argument: the argument that gives the language, for the message.

    Raises:
        SettingError: it is none of them.
    """
    if language not in ("auto", "en", "zh"):
        raise SettingError(f"`{argument}={language!r:.60}` should be en or zh, or auto for that of the texts")
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
    caption = _TOPICS[chinese].format(documents=_documents(n_documents, chinese))
    return _printed(columns, language, caption, "tab:topics")


def trends_for_print(found: OverTime, given: Sequence[str | None], level: float, language: Language) -> Table:
    """Return a table of the shares of topics by period, with a row for each topic and period.

    Args:
        found: the shares.
        given: the name that each topic was given.
        level: the probability of the intervals.
        language: "en" or "zh".
    """
    chinese = language == "zh"
    table = found.table()
    unit = found.period
    if chinese:
        by = _PERIODS_ZH.get(unit, "按时段")
    else:
        by = f"in periods of {unit}" if unit[0].isdigit() else f"by {'period' if unit == 'bins' else unit}"
    about = {"by": by, "documents": _documents(int(found.shares.n_docs.sum()), chinese), "level": f"{100 * level:.4g}"}
    caption = _TRENDS[chinese].format(**about)
    if any(table["sparse"]):
        caption += _SPARSE[chinese].format(least=found.min_documents)
    columns = {
        **_topic_columns(table, given, chinese),
        "period": [period.replace(" to ", "–") for period in table["period"]],
        **_share_columns(table),
        "sparse": [_YES_NO[chinese][bool(value)] for value in table["sparse"]],
    }
    return _printed(columns, language, caption, "tab:trends", level)


def groups_for_print(
    found: ByGroup,
    given: Sequence[str | None],
    level: float,
    language: Language,
    *,
    title: str | None = None,
    correction: Correction | None = None,
) -> Table:
    """Return a table of the shares of topics by group, with a row for each topic and group.

    Args:
        found: the shares.
        given: the name that each topic was given.
        level: the probability of the intervals.
        language: "en" or "zh".
        title: what the groups are called; None is the name of the covariate, or "class".
        correction: that of the p-values of the cross table, `ByGroup.cross_table`; None leaves its columns out.
    """
    chinese = language == "zh"
    is_class = title is None and found.column == "class"
    called = ("类别" if chinese else "class") if is_class else title or found.by
    heading = _HEADINGS["class"][chinese] if is_class else called
    spaced = f" {called} " if chinese and called.isascii() else called
    documents = _documents(int(found.shares.n_docs.sum()), chinese)
    about = {"by": spaced, "documents": documents, "level": f"{100 * level:.4g}"}
    kind, table = "by", found.table()
    if correction is None:
        further, caption = {}, _GROUPS[chinese].format(**about)
    else:
        kind, table = "crosstab", found.cross_table(correction=correction)
        caption = _CROSS_TABLE[chinese].format(**about, correction=_CORRECTIONS[correction])
        further = {
            "lift": [_NONE if lift is None else f"{lift:.{_DECIMALS}f}" for lift in table["lift"]],
            "p": list(map(_p, table["p_corrected"])),
            "differs": [_NONE if differs is None else _DIFFERS[differs][chinese] for differs in table["differs"]],
        }
    before, after = _topic_columns(table, given, chinese), _share_columns(table) | further
    taken = {_heading_of(name, chinese, level) for name in (*before, *after)}
    if heading in taken:
        heading += "（组）" if chinese else " (group)"
    columns = before | {"group": list(table[found.column])} | after
    label = "-".join(NOT_IN_LABELS.sub(" ", f"tab:{kind}-{title or found.by}").split())
    return _printed(columns, language, caption, label, level, {"group": heading})


def words_for_print(table: Table, given: Sequence[str | None], n_words: int, language: Language) -> Table:
    """Return a table of the words of topics with their probabilities, with a row for each word.

    Args:
        table: what `Topics.word_table` returned.
        given: the name that each topic was given.
        n_words: the number of words of a topic.
        language: "en" or "zh".
    """
    chinese = language == "zh"
    of_topic = _topic_columns(table, given, chinese)
    columns = {name: values for name, values in of_topic.items() if name != "words"} | {
        "rank": list(table["rank"]),
        "word": list(table["word"]),
        "probability": list(map(_percent, table["probability"])),
    }
    caption = _WORDS[chinese].format(n_words=n_words, n_topics=len(given))
    return _printed(columns, language, caption, "tab:words")


def _topic_columns(table: Table, given: Sequence[str | None], chinese: bool) -> dict[str, list[Any]]:
    """Return which topic a row is about: by its name or, if no topic was named, by its number and first words."""
    if any(given):
        return {"name": list(table["name"])}
    between = "、" if chinese else ", "
    return {"topic": list(table["topic"]), "words": [name.replace(", ", between) for name in table["name"]]}


def _share_columns(table: Table) -> dict[str, list[str]]:
    ends = zip(table["low"], table["high"], strict=True)
    return {
        "share": list(map(_percent, table["share"])),
        "interval": [_NONE if None in (low, high) else f"{_percent(low)}–{_percent(high)}" for low, high in ends],
        "documents": [f"{n:,}" for n in table["documents"]],
    }


def _documents(number: int, chinese: bool, part: str = "") -> str:
    return f"{number:,} 篇{part}文档" if chinese else counted(number, f"{part} document".strip())


def _percent(value: float | None) -> str:
    return _NONE if value is None else f"{100 * value:.{_DECIMALS}f}"


def _p(value: float | None) -> str:
    return _NONE if value is None else f"<{_LEAST_P}" if value < _LEAST_P else f"{value:.3f}"


def comparison_for_print(
    rows: Sequence[Mapping[str, Any]],
    measures: Mapping[str, Measure],
    decimals: Mapping[str, int],
    titles: Mapping[str, str],
    seeds: int,
    part: str,
    n_documents: int,
    reference: str | None,
    language: Language,
) -> Table:
    """Return a table of a comparison: mean ± standard deviation of each measure, the best mean of each K in bold.

    Args:
        rows: what `Comparison.table` returned.
        measures: the measures by name.
        decimals: the decimal places of measures that do not have the usual number.
        titles: the title of each model.
        seeds: the number of seeds.
        part: "validation" or "test".
        n_documents: the number of documents of this part.
        reference: the name of the documents that coherence is counted in; None is the training documents.
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
        better, digits = measures[name].better, decimals.get(name, min(measures[name].digits, _DECIMALS))
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
    headings = {name: _title_of(measures[name], chinese) for name in names}
    once = ("、" if chinese else ", ").join(headings[name] for name in names if not measures[name].depends_on_documents)
    counted_in = ""
    if reference is not None and any(measures[name].group == "coherence" for name in names):
        counted_in = _REFERENCE[chinese].format(reference=reference)
    values = (_SEEDS if seeds > 1 else _ONE_SEED)[chinese].format(seeds=seeds)
    subject = _MODELS[chinese] if several else next(iter(titles.values()))
    caption = _COMPARISON[chinese].format(
        subject=subject, documents=_documents(n_documents, chinese, _PARTS[part][chinese]), values=values,
        best=(_BEST_OF_SIZE if several else _BEST)[chinese], once=_ONCE[chinese].format(measures=once) if once else "",
    )  # fmt: skip
    return _printed(columns, language, caption + counted_in, f"tab:comparison-{part}", headings=headings)


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
    caption = _EVALUATION[chinese].format(**{**about, "documents": _documents(about["documents"], chinese)})
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
    return _title_of(CATALOGUE[name], chinese, whole=whole)


def _title_of(measure: Measure, chinese: bool, *, whole: bool = False) -> str:
    if chinese:
        return measure.title_zh
    short = "perplexity" if measure.name == "perplexity_completion" else measure.column
    title = measure.title if whole else short or measure.title
    return title[:1].upper() + title[1:] if measure.group != "own" else title


def _heading_of(name: str, chinese: bool, level: float) -> str:
    if name in _HEADINGS:
        return _HEADINGS[name][chinese].replace("{level}", f"{100 * level:.4g}")
    return _title(name, chinese)


def _printed(
    columns: Mapping[str, Sequence[Any]],
    language: Language,
    caption: str,
    label: str,
    level: float = 0.95,
    headings: Mapping[str, str] | None = None,
) -> Table:
    chinese, own = language == "zh", headings or {}
    titled = {
        own[name] if name in own else _heading_of(name, chinese, level): values for name, values in columns.items()
    }
    return Table(titled, caption, caption=caption, label=label, decimals=_DECIMALS)
