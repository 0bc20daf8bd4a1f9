"""Open pages of the site in chromium, without a network, and take screenshots: `make docs` first.

It needs chromium and chromedriver (Debian: chromium, chromium-driver), and the extra `browser`.

    python examples/screenshots/site.py FOLDER en/index zh/models/etm en/search?q=topic
"""

from __future__ import annotations

import functools
import http.server
import json
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import Any

from selenium import webdriver

SITE = Path(__file__).resolve().parents[2] / "build" / "site" / "html"
SHAPES = {"light": (1360, 900, False), "dark": (1360, 900, True), "phone": (390, 840, False)}


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments: Any) -> None:
        pass


def open_browser() -> Any:
    """Return a headless chromium whose only host is this machine."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    rules = "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", rules):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))


def requested(driver: Any) -> set[str]:
    """Return the addresses that the pages have asked for since the last call."""
    events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    return {each["params"]["request"]["url"] for each in events if each["method"] == "Network.requestWillBeSent"}


def main(folder: Path, pages: list[str]) -> int:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    driver, bad = open_browser(), []
    folder.mkdir(parents=True, exist_ok=True)
    for page in pages:
        path, _, shape = page.partition("@")
        name, _, query = path.partition("?")
        width, height, dark = SHAPES[shape or "light"]
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        driver.get(f"http://127.0.0.1:{server.server_port}/{name}.html{'?' + query if query else ''}")
        time.sleep(2.5 if query else 1)
        target = folder / f"{name.replace('/', '-')}{'-' + shape if shape else ''}.png"
        target.write_bytes(driver.get_screenshot_as_png())
        wide = driver.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
        bad += [
            f"{page}: {address}" for address in requested(driver) if not address.startswith(("http://127", "data:"))
        ]
        bad += [f"{page}: {entry['message']}" for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
        bad += [f"{page}: {wide} pixels too wide"] if wide > 0 else []
        print(target)
    driver.quit()
    print("\n".join(bad) or "no request to another host, no error, nothing wider than the screen")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
