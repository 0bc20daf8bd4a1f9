"""The stories of the documentation: every command in them runs, on a small part of the files."""

from __future__ import annotations

import csv
import re
import runpy
import shlex
from pathlib import Path

import numpy as np
import pytest

from command_line import call

ROOT = Path(__file__).resolve().parents[1]
TOOLS = runpy.run_path(str(ROOT / "examples" / "screenshots" / "stories.py"))
PAGES = TOOLS["PAGES"]

SUBJECTS = {
    "business": "bank profit share market interest rate growth company deal sale price firm economy budget",
    "politics": "election party minister vote labour tory bill plan campaign leader government policy lord",
    "sport": "match player win goal club season team coach final champion league title cup game",
    "entertainment": "film music award star song band actor director album prize singer festival show",
    "tech": "phone software network computer virus user internet mobile search device site broadband",
}
TITLES = {
    "高考": "高考 考生 录取 志愿 分数线 高校 报名 招生 北大 考试",
    "楼盘": "开盘 均价 别墅 精装 现房 房价 楼市 平米 房源 公寓",
    "球赛": "皇马 曼联 国米 主帅 联赛 冠军 湖人 火箭 球迷 进球",
    "股市": "基金 股市 反弹 大盘 震荡 公司 银行 上市 投资 收益",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The two files that readers bring, drawn at random: the real ones are not part of the package."""
    place, random = tmp_path_factory.mktemp("stories"), np.random.default_rng(0)

    def draw(subjects: dict[str, str], n: int, length: int, join: str) -> list[tuple[str, str]]:
        kinds = [str(random.choice(list(subjects))) for _ in range(n)]
        return [(kind, join.join(random.choice(subjects[kind].split(), length))) for kind in kinds]

    lines = [f"{text}\ttrain\t{section}" for section, text in draw(SUBJECTS, 400, 20, " ")]
    (place / "corpus.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    titles = [text for _, text in draw(TITLES, 700, 5, "")]
    (place / "cnews10k.txt").write_text("\n".join(titles) + "\n", encoding="utf-8")
    return place


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_story_runs(page: str, folder: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(folder)
    for step in TOOLS["steps"](ROOT / "docs" / f"{page}.md"):
        for command in step.commands:
            run(command)
    written = "news.html" if page == "story-news" else "june.html"
    assert (folder / written).stat().st_size > 100_000
    table = "june.csv" if page == "story-news" else "june-topics.csv"
    with (folder / table).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {"topic_name", "topic_0", "text"} <= set(rows[0])
    assert any(row["topic_name"] for row in rows)


def run(command: str) -> None:
    """Run a command of a page: small, but otherwise as it stands there."""
    words = shlex.split(command)
    if words[0] == "topicloom":
        fast = ["--epochs", "3", "--device", "cpu"] if words[1] == "train" else []
        result = call(*words[1:], *fast, *(["--overwrite"] if "--out" in words else []))
        assert result.exit_code == 0, f"{command}\n{result.output}"
    elif words[0] == "python":
        runpy.run_path(str(ROOT / words[1]))["main"](*words[2:])
    else:  # head and tail, of a file with fewer lines
        name, number = re.search(r"([+\d]+) \S+ > (\S+)", command).group(2, 1)
        lines = Path("cnews10k.txt").read_text(encoding="utf-8").splitlines(keepends=True)
        assert words[0] == ("tail" if number.startswith("+") else "head")
        part = lines[500:] if number == "+7001" else lines[:500]
        Path(name).write_text("".join(part), encoding="utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_both_languages_have_the_same_commands_and_output(page: str) -> None:
    english, chinese = (TOOLS["steps"](ROOT / "docs" / f"{page}{language}.md") for language in ("", ".zh-CN"))
    assert [step.commands for step in english] == [step.commands for step in chinese]
    assert [step.shown for step in english] == [step.shown for step in chinese]


def test_lines_that_no_command_printed_are_found() -> None:
    assert TOOLS["missing"](["a  ", "b"], "x\na\n") == ["b"]


def test_invented_dates_are_those_that_the_page_says(folder: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(folder)
    parts = runpy.run_path(str(ROOT / "examples" / "stories" / "date_articles.py"))["main"]("corpus.tsv")
    rows = [row for part in parts for row in csv.DictReader(part.open(encoding="utf-8", newline=""))]
    assert len(rows) == 400
    early = {name: np.mean([row["date"] < "2024-04" for row in rows if row["section"] == name]) for name in SUBJECTS}
    assert early["entertainment"] > 0.6
    assert early["politics"] < 0.4
    assert all(0.35 < early[name] < 0.65 for name in ("business", "sport", "tech"))
