"""Draw the screenshots of docs/from-other-libraries.md from what the tasks wrote.

    python benchmarks/tasks/pictures.py docs/figures/tasks

The pages of LDAvis and of DataMapPlot, which turftopic draws, stay blank without the web, so that they are not here.

It needs chromium and chromedriver, and the results of `make bench-tasks`.
"""

from __future__ import annotations

import runpy
import sys
import time
from pathlib import Path
from typing import Any

from run import FOLDER, ROOT

BROWSER = runpy.run_path(str(ROOT / "examples" / "screenshots" / "explorer.py"))
WIDTH, HEIGHT, LOW = 1100, 700, 440  # the curves of BERTopic leave the rest of the page empty
PAGES = {
    "map-topicloom": "topicloom/page.html#documents",
    "time-topicloom": "topicloom/page.html#time",
    "map-bertopic": "bertopic/map.html",
    "time-bertopic": "bertopic/over-time.html",
}


def draw(target: Path, names: list[str]) -> None:
    driver: Any = BROWSER["open_browser"]()
    try:
        for name in names:
            page, _, view = PAGES[name].partition("#")
            if not (FOLDER / page).exists():
                print(name, "is not there")
                continue
            BROWSER["show"](driver, (FOLDER / page).resolve(), view, WIDTH, LOW if name == "time-bertopic" else HEIGHT)
            time.sleep(4)
            BROWSER["save"](driver, target / f"{name}.png")
    finally:
        driver.quit()


if __name__ == "__main__":
    draw(Path(sys.argv[1]), sys.argv[2:] or list(PAGES))
