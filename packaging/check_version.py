"""Check that every file that names the version of the package names this one.

python packaging/check_version.py [VERSION]

Without VERSION, that of pyproject.toml is used.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACES = {
    "CITATION.cff": r"^version: (\S+)$",
    "CHANGELOG.md": r"^## (\S+) ",  # the newest comes first
    "src/topicloom/_version.py": r'^__version__ = "(.*)"',
    "packaging/recipe.yaml": r'^  version: "(.*)"$',
    "docs/figures/badges/version.svg": r"^<title>version: (.*)</title>$",
    "README.md": r"^\[!\[Version ([\d.]+)\]",
    "README.zh-CN.md": r"^\[!\[版本 ([\d.]+)\]",
}


def main() -> None:
    named = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    version = sys.argv[1] if len(sys.argv) > 1 else named
    found = {"pyproject.toml": named}
    for name, pattern in PLACES.items():
        match = re.search(pattern, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
        found[name] = match[1] if match else "no version"
    wrong = [f"{name} has {value}" for name, value in found.items() if value != version]
    sys.exit(f"the version should be {version}, but {', '.join(wrong)}" if wrong else 0)


if __name__ == "__main__":
    main()
