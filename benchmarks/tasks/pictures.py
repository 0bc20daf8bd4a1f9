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

from PIL import Image
from run import FOLDER, ROOT

BROWSER = runpy.run_path(str(ROOT / "examples" / "screenshots" / "explorer.py"))
WIDTH, HEIGHT = 1100, 700
# What clicks in the legend of plotly do: show the topic of the class that team A has more often
CLICKS = """const plot = document.querySelector(".js-plotly-plot");
Plotly.restyle(plot, "visible", plot.data.map((trace) => trace.name.includes("svn") || "legendonly"));"""
# The file, the view of topicloom's page (15 is the topic of the same class), the width and the height of the window
PICTURES: dict[str, tuple[str, str, int, int]] = {
    "map-topicloom": ("topicloom/page.html", "documents", WIDTH, HEIGHT),
    "map-bertopic": ("bertopic/map.html", "", WIDTH, HEIGHT),
    "time-topicloom": ("topicloom/page.html", "time", WIDTH, HEIGHT),
    "time-bertopic": ("bertopic/over-time.html", "", WIDTH, 440),
    "page-topicloom": ("topicloom/page.html", "topics", WIDTH, HEIGHT),
    "page-topica": ("topica/page.html", "", WIDTH, 1000),
    "tree-topicloom": ("topicloom/page.html", "similarity", 1500, 850),
    "tree-bertopic": ("bertopic/tree.html", "", WIDTH, 490),
    "groups-topicloom": ("topicloom/page.html", "classes/15?by=team", WIDTH, HEIGHT),
    "groups-bertopic": ("bertopic/groups.html", "", 1280, 930),
    "words-topicloom": ("topicloom/pictures/clouds.png", "", 800, 0),
    "words-bertopic": ("bertopic/bars.html", "", WIDTH, 1290),
}


def draw(target: Path, names: list[str]) -> None:
    driver: Any = BROWSER["open_browser"]()
    try:
        for name in names:
            file, view, width, height = PICTURES[name]
            source = (FOLDER / file).resolve()
            if not source.exists():
                print(name, "is not there")
            elif source.suffix == ".png":
                shrink(source, target / f"{name}.png", width)
            else:
                BROWSER["show"](driver, source, view, width, height)
                if name == "groups-bertopic":
                    driver.execute_script(CLICKS)
                time.sleep(4)
                BROWSER["save"](driver, target / f"{name}.png")
    finally:
        driver.quit()


def shrink(source: Path, target: Path, width: int) -> None:
    picture = Image.open(source).convert("RGB")
    picture = picture.resize((width, round(picture.height * width / picture.width)), Image.Resampling.LANCZOS)
    picture.quantize(16, dither=Image.Dither.NONE).save(target, optimize=True)
    print(target, target.stat().st_size // 1000, "kB")


if __name__ == "__main__":
    draw(Path(sys.argv[1]), sys.argv[2:] or list(PICTURES))
