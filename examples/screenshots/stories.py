"""Run the commands of docs/story-*.md with the whole files, compare their output with the pages, and draw screenshots.

    python examples/screenshots/stories.py docs cnews10k.txt corpus.tsv

The screenshots need chromium, chromedriver and a Chinese font (Debian: chromium, chromium-driver, fonts-noto-cjk), and
the extra `browser`.
"""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
PAGES, FILES = ("story-news", "story-articles"), ("cnews10k.txt", "corpus.tsv")
_BLOCKS = re.compile(r"^```sh\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)


class Step(NamedTuple):
    """Commands of a page, one a line, and the lines of output that the page shows."""

    commands: list[str]
    shown: list[str]


def steps(page: Path) -> list[Step]:
    """Return the commands of a page with what it shows of their output, without the lines "..."."""
    blocks = _BLOCKS.findall(page.read_text(encoding="utf-8"))
    return [Step(sh.splitlines(), [line for line in text.splitlines() if line != "..."]) for sh, text in blocks]


def missing(shown: list[str], output: str) -> list[str]:
    """Return the lines of a page that are not in the output, apart from spaces at their ends."""
    real = {line.rstrip() for line in output.splitlines()}
    return [line for line in shown if line.rstrip() not in real]


def run(page: Path, folder: Path) -> list[str]:
    """Run all commands of a page in a folder, and return the lines that the page shows and no command has printed."""
    root = str(HERE.parent.parent)
    environment = os.environ | {"COLUMNS": "100", "PYTHONUTF8": "1", "PYTHONPATH": f"{root}/src"}
    wrong = []
    for step in steps(page):
        output = ""
        for command in step.commands:
            line = command.replace("topicloom ", f"{sys.executable} -m topicloom ", 1)
            line = line.replace("python examples/", f"{sys.executable} {root}/examples/")
            done = subprocess.run(line, shell=True, cwd=folder, env=environment, capture_output=True, text=True)
            print(command, "" if done.returncode == 0 else done.stderr)
            output += done.stdout + done.stderr
        wrong += missing(step.shown, output)
    return wrong


def draw(news: Path, articles: Path, target: Path) -> None:
    """Draw the screenshots of the pages that the commands have written."""
    from selenium.webdriver.common.by import By

    tools: dict[str, Any] = runpy.run_path(str(HERE / "explorer.py"))
    driver = tools["open_browser"]()
    try:
        for chinese, end in ((False, ""), (True, "-zh")):
            for page, view, name in (
                (news / "news.html", "topics/7", "news-topics"),
                (news / "news.html", "documents/7", "news-documents"),
                (articles / "june.html", "topics/12", "articles-topics"),
                (articles / "runs/may-edited/explorer.html", "time/2", "articles-time"),
            ):
                tools["show"](driver, page, view, 1280, 800, chinese=chinese)
                if view.startswith("documents"):
                    driver.find_element(By.CSS_SELECTOR, "#content input[type=search]").send_keys("高考")
                    time.sleep(1)
                tools["save"](driver, target / f"story-{name}{end}.png")
    finally:
        driver.quit()


def main(docs: Path, titles: Path, articles: Path) -> int:
    if not subprocess.run(["fc-list", ":lang=zh"], capture_output=True, check=True).stdout:
        sys.exit("no Chinese font is installed, so screenshots would show boxes; install fonts-noto-cjk")
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as temporary:
        places = [Path(temporary) / page for page in PAGES]
        for place, page, file, name in zip(places, PAGES, (titles, articles), FILES, strict=True):
            place.mkdir()
            shutil.copyfile(file, place / name)
            wrong += run(docs / f"{page}.md", place)
        draw(*places, docs / "figures")
    for line in wrong:
        print("not printed by any command:", line)
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
