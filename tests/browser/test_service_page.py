"""The page of the service in chromium: live documents, inference, and edits that are saved."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import pytest

pytest.importorskip("uvicorn", reason="uvicorn is not installed (the extra serve)")

import topicloom as tl
from topicloom.reports.run import fit, write

HOSTILE = "<script>document.title = 'hacked'</script> the cat and the dog"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pets = [f"the cat and the dog play with a ball number{n % 5}" for n in range(60)]
    banks = [f"the bank lent money at a rate number{n % 5}" for n in range(60)]
    labels = ["pets"] * 60 + ["banks & <loans>"] * 60 + ["pets"]
    corpus = tl.Corpus.from_texts([*pets, *banks, HOSTILE], language="en", min_df=2, labels=labels)
    model = tl.GSM(4, epochs=5, random_state=0, verbose=False)
    seconds = fit(model, corpus)
    path = tmp_path_factory.mktemp("served") / "run"
    write(path, model, corpus, model.infer(corpus), seconds)
    return path


@pytest.fixture
def url(run: Path, tmp_path: Path) -> Iterator[str]:
    """The address of a service of a copy of the run."""
    copy = shutil.copytree(run, tmp_path / "run")
    command = [sys.executable, "-m", "topicloom", "serve", str(copy), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    line = next(line for line in process.stderr if "serving on " in line)
    yield line.split("serving on ")[1].strip()
    process.terminate()
    assert process.wait(20) == 0


def test_the_page_reads_from_the_service_and_saves_edits(browser, run, url):
    browser.driver.get("about:blank")
    browser.logs()
    browser.driver.get(url)
    browser.until("document.documentElement.dataset.ready")
    browser.view("documents")
    browser.until("document.body.innerText.includes('121 documents')")
    browser.find("input[type=search]").send_keys("dog cat")
    browser.until("document.body.innerText.includes('61 documents')")
    browser.view("text")
    browser.find("textarea").send_keys("the dog and the bank")
    theta = tl.load(run, device="cpu").transform(["the dog and the bank"])[0]
    expected = f"{100 * theta.max():.1f}%"
    browser.until(f"document.body.innerText.includes({json.dumps(expected)})")
    console, asked = browser.logs()
    assert console == []
    assert all(each.startswith((url, "data:", "blob:")) for each in asked)
    assert browser.run("return document.title") != "hacked"

    merged = np.sort(tl.Topics.from_run(run).shares)[::-1][:2].sum()
    browser.view("topics")
    for box in browser.all("tbody input[type=checkbox]")[:2]:
        box.click()
    press(browser, "Merge")
    press(browser, "Edits")
    press(browser, "Save in the service")
    browser.until("document.body.innerText.includes('3 topics')")
    with urlopen(f"{url}/api/topics") as answer:
        topics = json.load(answer)["topics"]
    assert len(topics) == 3
    assert max(row["share"] for row in topics) == pytest.approx(merged, abs=1e-5)
    console, _ = browser.logs()
    assert console == []


def test_the_page_lists_the_documents_of_a_class(browser, url):
    browser.driver.get(url)
    browser.until("document.documentElement.dataset.ready")
    browser.view("documents")
    browser.until("document.body.innerText.includes('121 documents')")
    choice = "[...document.querySelectorAll('#content option')].find((each) => each.textContent.startsWith('banks'))"
    browser.run(
        f"const choice = {choice}; choice.selected = true;"
        "choice.parentElement.dispatchEvent(new Event('change', {bubbles: true}));"
    )
    browser.until(
        "document.querySelector('#content section:last-of-type [role=status]').textContent === '60 documents'"
    )
    assert len(browser.all("#content section:last-of-type article")) == 20
    browser.until("document.querySelector('#content section:last-of-type > button')").click()
    browser.until("document.querySelectorAll('#content section:last-of-type article').length === 60")
    assert browser.logs()[0] == []


def press(browser, label: str) -> None:
    """Press the first visible button whose label begins so."""
    browser.until(
        "(() => { const found = [...document.querySelectorAll('button')].find("
        f"b => b.innerText.trim().startsWith({json.dumps(label)}) && !b.disabled);"
        " found?.click(); return !!found; })()"
    )
