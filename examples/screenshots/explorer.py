"""Draw the screenshots of docs/explorer.md: train on the documentation of Python, write the page, and open its views.

It needs chromium and chromedriver (Debian: chromium, chromium-driver), and the extras `browser` and `viz`.

    python examples/screenshots/explorer.py docs/figures
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from PIL import Image
from selenium import webdriver
from selenium.webdriver.common.by import By

import topicloom as tl
from topicloom.reports import run

TEXT = """A coroutine awaits a socket, and the event loop schedules other tasks in the meantime. The server then parses
the XML document, checks the SSL certificate, and writes the date into a log file."""


def open_browser() -> Any:
    """Return a headless chromium."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--lang=en"):
        options.add_argument(argument)
    return webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))


def show(
    driver: Any, page: Path, view: str, width: int, height: int, *, dark: bool = False, chinese: bool = False
) -> None:
    """Open a view of the page."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    driver.get("about:blank")
    driver.get(page.as_uri())
    driver.execute_script(f"localStorage.setItem('topicloom-language', '{'zh' if chinese else 'en'}')")
    driver.get("about:blank")
    driver.get(f"{page.as_uri()}#{view}")
    time.sleep(2)


def save(driver: Any, target: Path) -> None:
    """Write what is shown, with few colours, as a small PNG."""
    picture = Image.open(io.BytesIO(driver.get_screenshot_as_png())).convert("RGB")
    picture.quantize(255, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(target, optimize=True)
    print(target, target.stat().st_size // 1000, "kB")


def main(folder: Path) -> None:
    corpus = tl.datasets.python_docs()
    model = tl.Loom(n_topics=20, random_state=0).fit(corpus, monitor=["c_npmi"])
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary) / "python-docs"
        run.write(place, model, corpus, model.infer(corpus), 0.0, run.RunOptions(explorer=True))
        page, driver = place / "explorer.html", open_browser()
        try:
            show(driver, page, "topics", 1440, 860)
            save(driver, folder / "explorer-topics.png")
            show(driver, page, "documents", 1440, 900)
            driver.find_element(By.CSS_SELECTOR, "#content input[type=search]").send_keys("socket")
            time.sleep(1)
            save(driver, folder / "explorer-documents.png")
            show(driver, page, "similarity", 1440, 860, dark=True)
            save(driver, folder / "explorer-similarity.png")
            for name, chinese in (("explorer-text", False), ("explorer-text-zh", True)):
                show(driver, page, "text", 1440, 790, chinese=chinese)
                driver.find_element(By.TAG_NAME, "textarea").send_keys(TEXT)
                time.sleep(1.5)
                save(driver, folder / f"{name}.png")
        finally:
            driver.quit()


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/figures"))
