"""A headless chromium for the tests of the explorer's page."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM, DRIVER = (shutil.which(name) for name in ("chromium", "chromedriver"))


class Browser:
    """A window, with what the page asked the network for and what it wrote into the console."""

    def __init__(self, driver: Any, downloads: Path) -> None:
        self.driver, self.downloads = driver, downloads

    def open(self, page: Path, view: str = "topics", *, width: int = 1280, dark: bool = False) -> None:
        """Open a page, and wait until it is ready."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.driver.get("about:blank")
        self.logs()
        self.driver.get(f"{page.as_uri()}#{view}")
        self.until("document.documentElement.dataset.ready")

    def until(self, condition: str, seconds: float = 20) -> Any:
        """Wait for an expression of JavaScript to be true, and return its value."""
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.driver, seconds, 0.05).until(lambda d: d.execute_script(f"return {condition}"))

    def run(self, script: str, *arguments: Any) -> Any:
        """Return what a function body of JavaScript returns."""
        return self.driver.execute_script(script, *arguments)

    def find(self, selector: str) -> Any:
        """Return the first element."""
        return self.driver.find_element("css selector", selector)

    def all(self, selector: str) -> list[Any]:
        """Return all elements."""
        found: list[Any] = self.driver.find_elements("css selector", selector)
        return found

    def view(self, name: str) -> None:
        """Open a view by its tab."""
        self.find(f"#tab-{name}").click()
        self.until(f"document.querySelector('#tab-{name}').getAttribute('aria-selected') === 'true'")

    def rename(self, topic: int, name: str) -> None:
        """Write another name of a topic into the table of topics."""
        from selenium.webdriver.common.keys import Keys

        field = self.find(f"#content tbody input[aria-label='Name of topic {topic}']")
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(Keys.NULL, name, Keys.ENTER)

    def logs(self) -> tuple[list[str], set[str]]:
        """Return errors and warnings in the console, and the addresses that were asked for, since the last call."""
        console = [each["message"] for each in self.driver.get_log("browser") if each["level"] in ("SEVERE", "WARNING")]
        asked = set()
        for each in self.driver.get_log("performance"):
            message = json.loads(each["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                asked.add(message["params"]["request"]["url"].split("#")[0])
        return console, asked


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("chromium and chromedriver are not installed (Debian: chromium, chromium-driver)")
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed (the extra browser)")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--lang=en",
        "--window-size=1280,900",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    downloads = tmp_path_factory.mktemp("downloads")
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    try:
        where = {"behavior": "allow", "downloadPath": str(downloads)}
        driver.execute_cdp_cmd("Browser.setDownloadBehavior", where)
        yield Browser(driver, downloads)
    finally:
        driver.quit()
