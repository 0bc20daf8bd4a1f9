"""The forty tasks: what each asks, and the rule by which its result is right. Written before any tool was run.

A check takes what the tool's function returned and the facts that data.py planted, and returns (right, figure): the
figure is one number or a few words, for the table. Topics are judged by the classes of their documents, which no tool
saw. "Main class" of a topic: that of most of its documents in titles.csv.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from data import GROUPED, NEW_CLASS, RISING, SCORED, rows_of

Verdict = tuple[bool, str]


class Facts:
    """What the files have."""

    def __init__(self, folder: Path):
        self.rows = {name: rows_of(folder / f"{name}.csv") for name in ("titles", "new", "next", "strange", "zh")}
        self.texts = {name: [row["text"] for row in rows] for name, rows in self.rows.items()}
        self.labels = {name: [row.get("label", "") for row in rows] for name, rows in self.rows.items()}
        self.class_of = {text: row["label"] for row in self.rows["titles"] for text in [row["text"].strip()]}


class Task(NamedTuple):
    name: str
    title: str
    chinese: str
    rule: str
    check: Callable[[Any, Facts], Verdict]


def main_classes(assigned: list[int], labels: list[str]) -> dict[int, str]:
    found: dict[int, Counter[str]] = {}
    for topic, label in zip(assigned, labels, strict=True):
        found.setdefault(int(topic), Counter())[label] += 1
    return {topic: counts.most_common(1)[0][0] for topic, counts in found.items()}


def purity(assigned: list[int], labels: list[str]) -> float:
    """The share of documents whose class is the main class of their topic; those of topic -1 never count."""
    main = main_classes(assigned, labels)
    right = sum(topic >= 0 and main[int(topic)] == label for topic, label in zip(assigned, labels, strict=True))
    return right / len(labels)


def biggest(assigned: list[int], labels: list[str], label: str) -> int:
    """The topic that has most documents of a class."""
    counts = Counter(int(t) for t, each in zip(assigned, labels, strict=True) if each == label and t >= 0)
    return counts.most_common(1)[0][0]


def same_texts(result: Any, facts: Facts) -> Verdict:
    return [text.strip() for text in result] == [text.strip() for text in facts.texts["titles"]], f"{len(result):,}"


def folder(result: Any, facts: Facts) -> Verdict:
    return sorted(t.strip() for t in result) == sorted(t.strip() for t in facts.texts["titles"][:1_000]), str(
        len(result)
    )


def bad_file(result: Any, facts: Facts) -> Verdict:
    byte, column = result
    names_line = bool(re.search(r"\b700[01]\b", byte)) and "broken.csv" in byte
    names_columns = all(name in column for name in ("body", "text", "team"))
    said = ["no", "yes"]
    return names_line and names_columns, f"line {said[names_line]}, columns {said[names_columns]}"


def copies(result: Any, facts: Facts) -> Verdict:
    gone = set(range(15_500)) - {int(row) for row in result}
    planted = len([row for row in gone if row >= 15_000])
    return planted >= 475 and len(gone) - planted <= 150, f"{planted} of 500 found, {len(gone) - planted} others"


def social(result: Any, facts: Facts) -> Verdict:
    words = [word.lower() for word in result["vocabulary"]]
    noise = [w for w in words if re.fullmatch(r"@?user\d+|rt|amp|zq\d+", w)]
    return not noise and "🚀" in words, f"{len(noise)} noise words, emoji {'kept' if '🚀' in words else 'lost'}"


def phrases(result: Any, facts: Facts) -> Verdict:
    joined = {re.sub(r"[_\-]", " ", word.lower()) for word in result}
    found = [p for p in ("visual studio", "stored procedure", "sql server") if p in joined]
    return len(found) == 3, f"{len(found)} of 3 phrases"


def pure(name: str, least: float) -> Callable[[Any, Facts], Verdict]:
    def check(result: Any, facts: Facts) -> Verdict:
        assigned = result["assigned"]
        value, n = purity(assigned, facts.labels[name]), len(set(assigned) - {-1})
        none = sum(topic < 0 for topic in assigned) / len(assigned)
        return value >= least, f"purity {value:.2f}, K={n}" + (f", {none:.0%} none" if none else "")

    return check


def chinese(result: Any, facts: Facts) -> Verdict:
    right, figure = pure("zh", 0.5)(result, facts)
    words = [word for topic in result["words"] for word in topic[:10]]
    short = sum(len(word) <= 4 for word in words) / max(len(words), 1)
    return right and short >= 0.9, f"{figure}, {short:.0%} words"


def seeded(result: Any, facts: Facts) -> Verdict:
    main = main_classes(result["assigned"], facts.labels["titles"])
    right = sum(main.get(int(topic)) == label for topic, label in zip(result["topics"], ("1", "2", "5"), strict=True))
    return right == 3, f"{right} of 3"


def number(result: Any, facts: Facts) -> Verdict:
    return 15 <= int(result) <= 30, f"{int(result)}"


def stable(result: Any, facts: Facts) -> Verdict:
    values = [float(v) for v in np.atleast_1d(result)]
    return all(0 <= v <= 1 for v in values), f"{np.mean(values):.2f}"


def measured(result: Any, facts: Facts) -> Verdict:
    ok = all(isinstance(v, (int, float)) and math.isfinite(v) for v in result.values())
    return ok and len(result) >= 2, ", ".join(f"{k} {v:.2f}" for k, v in list(result.items())[:2])


def equal(result: Any, facts: Facts) -> Verdict:
    first, second = result
    return first == second, "same" if first == second else "differs"


def named(result: Any, facts: Facts) -> Verdict:
    names = [str(name) for name in result]
    short = [name for name in names if len(re.findall(r"[^\W\d_]+", name)) <= 5 and not re.match(r"-?\d+[_ ]", name)]
    return len(set(names)) == len(names) == len(short), f"{names[0]!r}"


def named_by_stub(result: Any, facts: Facts) -> Verdict:
    right = sum("Stub subject" in str(name) for name in result)
    return right == len(result) > 0, f"{right} of {len(result)}"


def typical(result: Any, facts: Facts) -> Verdict:
    """`result`: topic -> texts, and what was assigned."""
    main = main_classes(result["assigned"], facts.labels["titles"])
    shown = [(int(topic), text.strip()) for topic, texts in result["texts"].items() for text in texts]
    shown = [(topic, text) for topic, text in shown if topic >= 0]
    right = sum(facts.class_of.get(text) == main.get(topic) for topic, text in shown)
    repeated = len(shown) - len({(topic, re.sub(r"\W+", " ", text.lower())) for topic, text in shown})
    return right >= 0.9 * len(shown) and not repeated, f"{right / len(shown):.0%} of {len(shown)}" + (
        f", {repeated} repeated" if repeated else ""
    )


def near(result: Any, facts: Facts) -> Verdict:
    right = sum(facts.class_of.get(text.strip()) == "3" for text in result[:10])
    return right >= 8, f"{right} of 10"


def table(result: Any, facts: Facts) -> Verdict:
    columns, rows, last = result
    ok = (rows == 15_000 and "team" in columns and str(last) == "t14999") or False
    return bool(ok), f"{rows:,} rows, team {'yes' if 'team' in columns else 'no'}"


def words_of(result: Any, facts: Facts) -> Verdict:
    text = facts.texts["titles"][0].lower()
    words = [word.lower() for word in result]
    return bool(words) and all(word in text for word in words), " ".join(words[:4])


def outliers(result: Any, facts: Facts) -> Verdict:
    news = [row["news"] == "1" for row in facts.rows["strange"]]
    found = sum(bool(f) for f, n in zip(result, news, strict=True) if n) / 100
    false = sum(bool(f) for f, n in zip(result, news, strict=True) if not n) / 200
    return found >= 0.8 and false <= 0.2, f"{found:.0%} found, {false:.0%} false"


def renamed(result: Any, facts: Facts) -> Verdict:
    return "shipping" in result, "yes" if "shipping" in result else "no"


def merged(result: Any, facts: Facts) -> Verdict:
    """Documents of the two are together, the others as before; `moved` documents changed in another way."""
    a, b = result["pair"]
    before, after = result["before"], result["after"]
    where = Counter(y for x, y in zip(before, after, strict=True) if x in (a, b))
    kept = where.most_common(1)[0][1] / sum(where.values())
    others: dict[int, Counter[int]] = {}
    for x, y in zip(before, after, strict=True):
        if x not in (a, b):
            others.setdefault(x, Counter())[y] += 1
    same = sum(c.most_common(1)[0][1] for c in others.values()) / max(sum(sum(c.values()) for c in others.values()), 1)
    less = len(set(before) - {-1}) - len(set(after) - {-1})
    return kept >= 0.95 and same >= 0.95 and less == 1, f"{kept:.0%} together, {same:.0%} of others stay"


def dropped(result: Any, facts: Facts) -> Verdict:
    before, after = set(result["before"]) - {-1}, set(result["after"]) - {-1}
    return len(before) - len(after) == 1, f"{len(before)} to {len(after)}"


def divided(result: Any, facts: Facts) -> Verdict:
    before, after, topic = result["before"], result["after"], result["topic"]
    parts = Counter(y for x, y in zip(before, after, strict=True) if x == topic)
    large = [n for n in parts.values() if n >= 0.1 * sum(parts.values())]
    return len(set(after) - {-1}) > len(set(before) - {-1}) and len(large) >= 2, f"parts of {sorted(large)[::-1]}"


def ten(result: Any, facts: Facts) -> Verdict:
    n = len(set(result) - {-1})
    return n == 10, f"{n} topics"


def tree(result: Any, facts: Facts) -> Verdict:
    return result["joins"] == result["topics"] - 1, f"{result['joins']} joins"


def over_time(result: Any, facts: Facts) -> Verdict:
    """`result`: what was assigned, topic -> twelve shares, and the verdict of a test, if there is one."""
    topic = biggest(result["assigned"], facts.labels["titles"], RISING)
    rows = facts.rows["titles"]
    months = [int(row["date"][5:7]) - 1 for row in rows]
    of_class = np.bincount([m for m, r in zip(months, rows, strict=True) if r["label"] == RISING], minlength=12)
    planted = of_class / np.bincount(months, minlength=12)
    series = np.array([float(v or 0) for v in result["series"][str(topic)]])
    right = len(series) == 12 and float(np.corrcoef(planted, series)[0, 1]) > 0.9
    says = result.get("test", {}).get(str(topic), "no test")
    figure = f"r={np.corrcoef(planted, series)[0, 1]:.2f}" if len(series) == 12 else f"{len(series)} periods"
    return right, f"{figure}, {says}"


def by_group(result: Any, facts: Facts) -> Verdict:
    """`result`: what was assigned, and topic -> shares or counts in A and B."""
    topic = biggest(result["assigned"], facts.labels["titles"], GROUPED)
    teams = Counter(row["team"] for row in facts.rows["titles"])
    a, b = (float(v) for v in result["groups"][str(topic)])
    if a > 1 or b > 1:  # counts
        a, b = a / teams["A"], b / teams["B"]
    return 2 <= a / b <= 4, f"{a:.1%} in A, {b:.1%} in B; {result.get('test', 'no test')}"


def along(result: Any, facts: Facts) -> Verdict:
    topic = biggest(result["assigned"], facts.labels["titles"], SCORED)
    low, high = (float(v) for v in result["ends"][str(topic)])
    return high > 1.5 * low, f"{low:.3f} to {high:.3f}"


def new_documents(result: Any, facts: Facts) -> Verdict:
    main = main_classes(result["assigned"], facts.labels["titles"])
    pairs = zip(result["new"], facts.labels["new"], strict=True)
    right = sum(t >= 0 and main.get(int(t)) == label for t, label in pairs)
    share = right / len(facts.labels["new"])
    return share >= 0.5, f"{share:.0%} in a topic of their class"


def next_month(result: Any, facts: Facts) -> Verdict:
    """`result`: topics before, of the old documents afterwards, and of the new ones; new topics have new numbers."""
    stay = np.mean([x == y for x, y in zip(result["before"], result["after"], strict=True)])
    labels = facts.labels["next"]
    added = {int(t) for t in result["next"]} - {int(t) for t in result["before"]} - {-1}
    of_new = [int(t) for t, label in zip(result["next"], labels, strict=True) if label == NEW_CLASS]
    share = sum(t in added for t in of_new) / len(of_new)
    false = sum(int(t) in added for t, label in zip(result["next"], labels, strict=True) if label != NEW_CLASS) / 700
    return stay >= 0.95 and share >= 0.5 and false <= 0.1, (
        f"{stay:.0%} keep their topic, new topics have {share:.0%} of the new class and {false:.0%} of the others"
    )


def loaded(result: Any, facts: Facts) -> Verdict:
    return result["before"] == result["after"], f"{result['megabytes']:.1f} MB"


def drawn(result: Any, facts: Facts) -> Verdict:
    file = Path(result)
    return file.is_file() and file.stat().st_size > 5_000, f"{file.suffix[1:]}, {file.stat().st_size / 1e6:.1f} MB"


def offline(result: Any, facts: Facts) -> Verdict:
    """One file that loads no script and no style from elsewhere."""
    html = Path(result).read_text(encoding="utf-8")
    tags = re.findall(r"<(?:script|link)\b[^>]*(?:src|href)=[\"']?([^\"'> ]+)", html)
    outside = [tag for tag in tags if re.match(r"(?:https?:)?//", tag)]
    return not outside, f"{len(html) / 1e6:.1f} MB" + (f", loads {outside[0][:40]}" if outside else "")


def latex(result: Any, facts: Facts) -> Verdict:
    right = r"\begin{tabular" in result and r"\end{tabular" in result and result.count(r"\\") >= 20
    return right, f"booktabs {'yes' if 'toprule' in result else 'no'}, caption {'yes' if 'caption' in result else 'no'}"


def answers(result: Any, facts: Facts) -> Verdict:
    return isinstance(result, int) and result >= 0, f"topic {result}"


def resumed(result: Any, facts: Facts) -> Verdict:
    return equal(result, facts)


TASKS = [
    Task("open_csv", "Open a CSV file", "打开 CSV 文件", "the 15,000 texts, in order", same_texts),
    Task("open_excel", "Open the second sheet of an Excel file", "打开 Excel 文件的第二张表", "the same", same_texts),
    Task("open_folder", "Open a folder of text files", "打开一个文本文件夹", "the texts of its 1,000 files", folder),
    Task(
        "bad_file",
        "A file with a broken byte; a wrong column",
        "文件有坏字节；列名写错",
        "the messages name the file and line 7,001, and the columns that there are",
        bad_file,
    ),
    Task(
        "copies",
        "Leave out repeated documents",
        "去掉重复的文档",
        "at least 95% of 500 planted copies (other case and end), at most 1% of the others",
        copies,
    ),
    Task(
        "social",
        "Posts with handles, links and emoji",
        "帖子：账号、链接和表情",
        "no handle, link, `rt` or `amp` among the words, and the emoji is a word",
        social,
    ),
    Task(
        "phrases",
        "Phrases as words",
        "短语作为词",
        "visual studio, stored procedure and sql server are in the vocabulary",
        phrases,
    ),
    Task(
        "train",
        "Topics of 15,000 titles, from words",
        "15,000 条标题的主题，只用词",
        "purity of 19 classes at least .5",
        pure("titles", 0.5),
    ),
    Task(
        "train_vectors",
        "The same with vectors of meaning",
        "同上，用语义向量",
        "purity at least .6",
        pure("titles", 0.6),
    ),
    Task(
        "chinese",
        "Topics of 10,000 Chinese titles",
        "10,000 条中文标题的主题",
        "purity of 10 classes at least .5, and nine in ten top words have at most four characters",
        chinese,
    ),
    Task(
        "seed_words",
        "Topics for three subjects that you name",
        "为三个指定的话题求主题",
        "the topics of wordpress, oracle and excel have these main classes",
        seeded,
    ),
    Task(
        "number_of_topics",
        "How many topics?",
        "该有多少个主题？",
        "a recommendation from 15 to 30; there are 19 classes",
        number,
    ),
    Task(
        "stability",
        "Are topics stable with other seeds?",
        "换随机种子后主题稳定吗？",
        "a figure from 0 to 1, from three seeds",
        stable,
    ),
    Task("measure", "Coherence and diversity", "一致性和多样性", "both, finite", measured),
    Task(
        "same_again", "The same result again", "再次得到相同结果", "two trainings give each title the same topic", equal
    ),
    Task("resume", "Go on after a kill", "中断后继续训练", "the result of a training that was never stopped", resumed),
    Task(
        "names", "Names for topics, by a rule", "按规则给主题取名", "all differ, at most five words, no number", named
    ),
    Task(
        "names_llm",
        "Names by a language model",
        "用语言模型取名",
        "each topic has the name that the service answered",
        named_by_stub,
    ),
    Task(
        "documents_of",
        "Documents that represent a topic",
        "代表主题的文档",
        "nine in ten are of the topic's main class, none repeats another",
        typical,
    ),
    Task(
        "search",
        "Search titles by meaning",
        "按意思搜索标题",
        "of ten for 'undo a commit to the repository', eight are of the class Subversion",
        near,
    ),
    Task(
        "table_of_documents",
        "Table of documents with your own columns",
        "文档表，带自己的列",
        "15,000 rows in order with topic, id and team",
        table,
    ),
    Task(
        "words_in",
        "Which words of a title speak for its topic",
        "标题里哪些词说明它的主题",
        "words of the title",
        words_of,
    ),
    Task(
        "outliers",
        "Which documents fit no topic",
        "哪些文档不属于任何主题",
        "at least 80% of 100 news items among 200 titles, at most 20% of the titles",
        outliers,
    ),
    Task("rename", "Rename a topic", "给主题改名", "the name is in the table of topics", renamed),
    Task("merge", "Merge two topics", "合并两个主题", "their documents are together, the others stay", merged),
    Task("drop", "Drop a topic", "删除一个主题", "one topic less", dropped),
    Task("split", "Divide a topic", "拆分一个主题", "two parts of at least a tenth each", divided),
    Task("reduce", "Reduce to ten topics", "减到十个主题", "ten topics", ten),
    Task("hierarchy", "A tree of topics", "主题树", "one join less than topics", tree),
    Task(
        "over_time",
        "Topics over time",
        "主题随时间的变化",
        "the twelve shares of the topic of class 18 follow the planted ones (r > .9)",
        over_time,
    ),
    Task(
        "by_group", "Topics by group", "按组比较主题", "the planted ratio of 3 between teams, within 2 to 4", by_group
    ),
    Task(
        "along_number",
        "Topics along a number",
        "主题随数值的变化",
        "the share of the topic of class 5 at score 5 is 1.5 times that at score 1",
        along,
    ),
    Task(
        "new_documents",
        "Topics of new documents",
        "新文档的主题",
        "half of 2,000 are in a topic of their own class",
        new_documents,
    ),
    Task(
        "next_month",
        "Add next month's documents",
        "加入下个月的文档",
        "95% of the old ones keep their topic; new topics have half of a new class, and a tenth of the rest at most",
        next_month,
    ),
    Task(
        "load", "Save, and load in another process", "保存，在另一个进程里载入", "the same topics for 100 texts", loaded
    ),
    Task("map", "Map of the documents", "文档地图", "a file with the map", drawn),
    Task(
        "page", "A page to send to a colleague", "发给同事的网页", "one file that loads nothing from elsewhere", offline
    ),
    Task("paper", "A table of topics for a paper", "论文里的主题表", "a LaTeX table with 20 topics", latex),
    Task("picture", "A picture of the top words", "代表词的图", "a PNG, SVG or PDF file", drawn),
    Task("service", "Answer over HTTP", "通过 HTTP 回答", "a topic for a text", answers),
]
