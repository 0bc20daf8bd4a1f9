"""Install the wheel into fresh environments, once alone and once with each extra, and try what was installed.

    python tests/install/run.py [EXTRA[,EXTRA] ...]

Every Python from 3.11 that is found on PATH is used. The versions are those of constraints.txt. If uv is on PATH, it
installs them, which takes less time and space. The outcome is written to tests/install/results.md; with EXTRA, only its
rows are written again.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
TARGET = HERE / "results.md"
VERSIONS = range(11, 20)  # of Python 3
AT_ONCE = 3  # Pythons side by side
UV = shutil.which("uv")
BUILD = "import sys; from setuptools import build_meta as b; b.build_wheel(sys.argv[1])"


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = sys.argv[1:] or ["", *project["optional-dependencies"]]
    found = pythons()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(AT_ONCE) as side_by_side:
        wheel = build(Path(folder))

        def of(version: str) -> list[tuple[str, str, str, float]]:
            rows = []
            for extra in extras:
                began = time.perf_counter()
                said = installed(found[version], wheel, extra, Path(folder) / version)
                rows.append((version, extra or "none", said, time.perf_counter() - began))
                print(*rows[-1], flush=True)
            return rows

        rows = [row for each in side_by_side.map(of, found) for row in each]
    failed = sum(said != "works" for _, _, said, _ in rows)
    table = {(version, extra): f"| {version} | {extra} | {said} | {took:.0f} |" for version, extra, said, took in rows}
    if sys.argv[1:] and TARGET.exists():
        before = [line for line in TARGET.read_text(encoding="utf-8").splitlines() if line.startswith("| 3.")]
        table = {tuple(line[2:].split(" | ")[:2]): line for line in before} | table
    working = sum(" | works | " in line for line in table.values())
    lines = [
        "# Installed in fresh environments",
        "",
        f"`make test-install` on {platform.machine()}, with the versions of constraints.txt"
        f"{', installed by uv' if UV else ''}: "
        f"{working} of {len(table)} environments work. Every Python from 3.11 on this machine was used. In each "
        "environment, `pip check` finds nothing wrong. smoke.py fits, saves, loads and transforms there, calls the "
        "command line, and uses what the extra adds. Whatever needs another extra ends in "
        "one sentence with the command that installs it, in Python and on the command line.",
        "",
        "| Python | extra | outcome | seconds |",
        "|---|---|---|---|",
        *table.values(),
    ]
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")
    sys.exit(failed > 0)


def pythons() -> dict[str, str]:
    """The Pythons that are here, by their version."""
    candidates = [sys.executable, *filter(None, (shutil.which(f"python3.{minor}") for minor in VERSIONS))]
    found: dict[str, str] = {}
    for candidate in candidates:
        script = "import platform, venv, ensurepip; print(platform.python_version())"
        done = subprocess.run([candidate, "-c", script], capture_output=True, text=True)
        if done.returncode == 0:
            found.setdefault(done.stdout.strip(), candidate)
    return found


def build(folder: Path) -> Path:
    """Build the wheel from a copy of what it is made from, so that nothing is left here."""
    copy = folder / "source"
    copy.mkdir()
    for name in ("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, copy)
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    subprocess.run([sys.executable, "-c", BUILD, folder], cwd=copy, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def installed(python: str, wheel: Path, extra: str, environment: Path) -> str:
    """Install the wheel with an extra into a fresh environment, try it, and return "works" or what went wrong."""
    own = environment / "bin" / "python"
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"}
    runs = environment / "runs"
    quiet = ["--quiet", "--constraint", ROOT / "constraints.txt"]
    by_uv = (
        [UV, "venv", "--quiet", "--clear", "--python", python, environment],
        [UV, "pip", "install", "--python", own, *quiet, wanted],
        [UV, "pip", "check", "--python", own],
    )
    by_pip = (
        [python, "-m", "venv", "--clear", environment],
        [own, "-m", "pip", "install", *quiet, wanted],
        [own, "-m", "pip", "check"],
    )
    for command in (
        *(by_uv if UV else by_pip),
        [own, "-c", "import sys; from pathlib import Path; Path(sys.argv[1]).mkdir()", runs],
        [own, "-P", HERE / "smoke.py", runs, *filter(None, extra.split(","))],
    ):
        done = subprocess.run(
            list(map(str, command)), cwd=environment.parent, env=clean, capture_output=True, text=True
        )
        if done.returncode:
            print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
            last = (done.stderr or done.stdout).strip().splitlines()
            return f"failed: {last[-1] if last else done.returncode}"
    print(done.stdout, end="", flush=True)
    shutil.rmtree(environment)
    return "works"


if __name__ == "__main__":
    main()
