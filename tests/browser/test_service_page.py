"""The page of the service in chromium: live documents, inference, and edits that are saved."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import pytest

pytest.importorskip("uvicorn", reason="uvicorn is not installed (the extra serve)")

import topicloom as tl
from forks import serve
from topicloom.reports.run import fit, write

HOSTILE = "<script>document.title = 'hacked'</script> the cat and the dog"


MEANINGS = '''
def encode(texts):
    """A vector by animals and by money, also for words that no document has."""
    animals, money = ("cat", "dog", "kitten"), ("bank", "savings")
    return [[sum(w in t for w in animals), sum(w in t for w in money), .01 * len(t)] for t in texts]
'''
NAMES: dict = {}
exec(MEANINGS, NAMES)


def made() -> tl.Corpus:
    pets = [f"the cat and the dog play with a ball number{n % 5}" for n in range(60)]
    banks = [f"the bank lent money at a rate number{n % 5}" for n in range(60)]
    labels = ["pets"] * 60 + ["banks & <loans>"] * 60 + ["pets"]
    return tl.Corpus.from_texts([*pets, *banks, HOSTILE], language="en", min_df=2, labels=labels)


def written(path: Path, corpus: tl.Corpus) -> Path:
    model = tl.GSM(4, epochs=5, random_state=0, verbose=False)
    seconds = fit(model, corpus)
    write(path, model, corpus, model.infer(corpus), seconds)
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("served") / "run", made())


@pytest.fixture
def url(run: Path, tmp_path: Path) -> Iterator[str]:
    """The address of a service of a copy of the run."""
    yield from served(shutil.copytree(run, tmp_path / "run"))


@pytest.fixture(scope="module")
def meaningful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a service whose documents have vectors."""
    place = tmp_path_factory.mktemp("meanings")
    (place / "meanings.py").write_text(MEANINGS, "utf-8")
    path = written(place / "run", made().with_vectors(encoder=NAMES["encode"]))
    yield from served(path, "--encoder", "meanings:encode", modules=place)


def served(path: Path, *options: str, modules: Path | None = None) -> Iterator[str]:
    process, address = serve(path, *options, modules=modules)
    yield address
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


def test_the_page_lists_the_documents_of_a_class(browser, meaningful):
    browser.driver.get(meaningful)
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


@pytest.mark.parametrize(("language", "button", "dark"), [("en", "By meaning", False), ("zh", "按含义", True)])
def test_documents_are_searched_by_meaning(browser, meaningful, language, button, dark):
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    browser.driver.get(meaningful)
    browser.run("localStorage.setItem('topicloom-language', arguments[0])", language)
    browser.driver.get("about:blank")
    browser.logs()
    browser.driver.get(f"{meaningful}#documents")
    browser.until("document.documentElement.dataset.ready")
    shown = "[...document.querySelectorAll('#content section:last-of-type article')]"
    browser.until(f"{shown}.length === 20")
    field = browser.find("input[type=search]")
    field.send_keys("savings")  # a word that no document has
    browser.until(f"{shown}.length === 0")
    by_words = field.get_attribute("placeholder")
    press(browser, button)
    assert field.get_attribute("placeholder") == field.get_attribute("aria-label") != by_words
    browser.until(f"{shown}.length === 20 && {shown}.every(each => each.innerText.includes('bank'))")
    pressed = "[...document.querySelectorAll('#content button')].find(each => each.innerText === arguments[0])"
    assert browser.run(f"return {pressed}.getAttribute('aria-pressed')", button) == "true"
    first = browser.find("#content section:last-of-type article h3").text  # such as Document 60
    vectors = np.array(NAMES["encode"](made().texts), np.float16).astype(float)
    cosines = vectors @ NAMES["encode"](["savings"])[0] / np.linalg.norm(vectors, axis=1)
    assert first.endswith(str(cosines.argmax()))
    field.clear()
    field.send_keys("kitten")
    browser.until(f"{shown}.length === 20 && {shown}.every(each => /cat|dog/.test(each.innerText))")
    press(browser, button)
    browser.until(f"{shown}.length === 0")
    browser.run("localStorage.removeItem('topicloom-language')")
    assert browser.logs()[0] == []


def press(browser, label: str) -> None:
    """Press the first visible button whose label begins so."""
    browser.until(
        "(() => { const found = [...document.querySelectorAll('button')].find("
        f"b => b.innerText.trim().startsWith({json.dumps(label)}) && !b.disabled);"
        " found?.click(); return !!found; })()"
    )
