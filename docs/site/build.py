"""Build the site in both languages: build/site/html. Warnings are errors.

python docs/site/build.py
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "site"
# Whatever a browser loads by itself: scripts, styles, pictures, fonts and frames.
LOADED = re.compile(
    r"<(?:script|img|iframe|source|video|embed)\b[^>]*\bsrc=[\"'](?:https?:)?//"
    r"|<link\b(?=[^>]*rel=[\"'](?:stylesheet|preload|preconnect|icon|shortcut))[^>]*href=[\"'](?:https?:)?//"
    r"|@import\s+[\"'(]*(?:https?:)?//|url\([\"']?(?:https?:)?//"
)


def start(language: str) -> subprocess.Popen[bytes]:
    """Write the sources of a language, and begin to build it."""
    sources, out = BUILD / "sources" / language, BUILD / "html" / language
    environment = {**os.environ, "SITE_LANGUAGE": language, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(HERE)])
    write = [sys.executable, str(HERE / "sources.py"), language, str(sources)]
    subprocess.run(write, env=environment, check=True)
    options = ["-q", "-W", "--keep-going", "-c", str(HERE), "-d", str(BUILD / "doctrees" / language)]
    return subprocess.Popen([sys.executable, "-m", "sphinx", *options, str(sources), str(out)], env=environment)


def copy_mathjax(out: Path) -> None:
    """Copy the script that draws equations; it needs no fonts."""
    found = importlib.util.find_spec("sphinx-mathjax-offline")
    if found is None:
        sys.exit("sphinx-mathjax-offline is not installed; make docs installs it")
    script = Path(str(found.origin)).parent / "static" / "mathjax" / "tex-svg-full.js"
    target = out / "_static" / "mathjax" / script.name
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(script, target)


def requests(folder: Path) -> list[str]:
    """Return what the pages would load from another host."""
    files = [path for end in ("html", "css") for path in folder.rglob(f"*.{end}")]
    return [f"{path}: {found[0]}" for path in files for found in LOADED.finditer(path.read_text(encoding="utf-8"))]


def main() -> int:
    begin = time.monotonic()
    results = [process.wait() for process in [start(language) for language in ("en", "zh")]]
    if any(results):
        return 1
    html = BUILD / "html"
    for language in ("en", "zh"):
        copy_mathjax(html / language)
    shutil.copyfile(HERE / "static" / "root.html", html / "index.html")
    if found := requests(html):
        print("Pages load from other hosts:", *found[:10], sep="\n", file=sys.stderr)
        return 1
    pages = len(list((html / "en").rglob("*.html")))
    print(f"build/site/html: {pages} pages in each language, {time.monotonic() - begin:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
