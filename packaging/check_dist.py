"""Check that what is in dist/ is built again with the same bits, and the wheel also from the source distribution.

python packaging/check_dist.py
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from repack import repack

ROOT = Path(__file__).parents[1]
BUILD = "import sys; from setuptools import build_meta as b; getattr(b, sys.argv[1])(sys.argv[2])"


def main() -> None:
    time = subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        (place / "commit").mkdir()
        archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "x", "-C", place / "commit"], input=archive, check=True)
        build(place / "commit", place / "again", time)
        source = next((place / "again").glob("*.tar.gz"))
        repack(source, int(time))
        compare(source, ROOT / "dist" / source.name)
        with tarfile.open(source) as opened:
            opened.extractall(place / "source", filter="data")
        build(next((place / "source").iterdir()), place / "from-source", time, ["build_wheel"])
        wheel = next((ROOT / "dist").glob("*.whl"))
        compare(place / "again" / wheel.name, wheel)
        one, other = contents(place / "from-source" / wheel.name), contents(wheel)
        if different := sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name)):
            sys.exit(f"{wheel.name} differs when it is built from the source distribution: {', '.join(different[:5])}")


def build(source: Path, out: Path, time: str, kinds: list[str] | None = None) -> None:
    """Build distributions of a folder, as `make dist` does."""
    for kind in kinds or ["build_wheel", "build_sdist"]:
        environment = {**os.environ, "SOURCE_DATE_EPOCH": time}
        subprocess.run([sys.executable, "-c", BUILD, kind, out], cwd=source, env=environment, check=True,
                       capture_output=True)  # fmt: skip


def contents(wheel: Path) -> dict[str, bytes]:
    """Return the files of a wheel."""
    with zipfile.ZipFile(wheel) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def compare(one: Path, other: Path) -> None:
    """End with a message if two files differ."""
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (one, other)]
    if digests[0] != digests[1]:
        sys.exit(f"{other.name} differs when it is built again ({one.parent.name})")
    print(f"{digests[0]}  {other.name}")


if __name__ == "__main__":
    main()
