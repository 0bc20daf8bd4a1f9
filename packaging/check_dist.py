"""Check that dist/ can be built again: the same bits twice, and the same wheel from the source distribution.

python packaging/check_dist.py
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD = "import sys; from setuptools import build_meta as b; getattr(b, sys.argv[1])(sys.argv[2])"


def main() -> None:
    time = subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "commit").mkdir()
        archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "x", "-C", place / "commit"], input=archive, check=True)
        build(place / "commit", place / "again", time)
        source = next((place / "again").glob("*.tar.gz"))
        with tarfile.open(source) as opened:
            opened.extractall(place / "source", filter="data")
        build(next((place / "source").iterdir()), place / "from-source", time, ["build_wheel"])
        for made in sorted((place / "again").iterdir()):
            compare(made, ROOT / "dist" / made.name)
        compare(next((place / "from-source").iterdir()), next((ROOT / "dist").glob("*.whl")))


def build(source: Path, out: Path, time: str, kinds: list[str] | None = None) -> None:
    """Build distributions of a folder, as `make dist` does."""
    for kind in kinds or ["build_wheel", "build_sdist"]:
        environment = {**os.environ, "SOURCE_DATE_EPOCH": time}
        subprocess.run([sys.executable, "-c", BUILD, kind, out], cwd=source, env=environment, check=True,
                       capture_output=True)  # fmt: skip


def compare(one: Path, other: Path) -> None:
    """End with a message if two files differ."""
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (one, other)]
    if digests[0] != digests[1]:
        sys.exit(f"{other.name} differs when it is built again ({one.parent.name})")
    print(f"{digests[0]}  {other.name}")


if __name__ == "__main__":
    main()
