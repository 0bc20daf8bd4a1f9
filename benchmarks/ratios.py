"""Compare the time of fits, imports and commands with that of another checkout, in alternating runs.

`python benchmarks/ratios.py /path/to/other/checkout` prints the median times of this checkout and of the other one, and
their ratio. Runs alternate, so that other work on the machine affects both in the same way.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from shared import parser

HERE = Path(__file__).resolve().parents[1]
FIT = """
import sys, time
sys.path.insert(0, "benchmarks")
import topicloom as tl
from shared import load
from pathlib import Path
data = load(Path(sys.argv[1]), "bbc-news")
model = eval(sys.argv[2])
corpus = tl.Corpus.from_counts(data["train"], data["vocab"])
model.fit(tl.Corpus.from_counts(data["train"][:200], data["vocab"]))
start = time.perf_counter()
model.fit(corpus)
print(time.perf_counter() - start)
start = time.perf_counter()
for _ in range(5):
    model.transform(corpus)
print((time.perf_counter() - start) / 5)
"""
IMPORT = "import time; start = time.perf_counter(); import topicloom; topicloom.GSM; print(time.perf_counter() - start)"
MODELS = (
    "tl.GSM(20, random_state=0, epochs=20)",
    "tl.Loom(20, random_state=0)",
    "tl.LDA(20, random_state=0, epochs=5)",
)


def run(checkout: Path, *arguments: str) -> list[float]:
    """Run Python in a checkout; return the numbers that it prints."""
    environment = os.environ | {"PYTHONPATH": str(checkout / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=checkout, env=environment, capture_output=True, text=True, check=True
    )
    return [float(line) for line in done.stdout.split()]


def command(checkout: Path, run_directory: Path) -> float:
    """Return the seconds that `topicloom topics` takes."""
    start = time.perf_counter()
    environment = os.environ | {"PYTHONPATH": str(checkout / "src")}
    arguments = [sys.executable, "-m", "topicloom", "topics", str(run_directory)]
    subprocess.run(arguments, env=environment, capture_output=True, check=True)
    return time.perf_counter() - start


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("other", type=Path, help="another checkout of the repository")
    arguments.add_argument("--rounds", type=int, default=3, help="runs of each checkout")
    options = arguments.parse_args()
    checkouts = {"this": HERE, "other": options.other.resolve()}
    times: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        runs = {}
        for name, checkout in checkouts.items():
            runs[name] = Path(folder) / name
            environment = os.environ | {"PYTHONPATH": str(checkout / "src")}
            demo = [sys.executable, "-m", "topicloom", "demo", "--epochs", "2", "--quiet", "--out", str(runs[name])]
            subprocess.run(demo, env=environment, check=True, capture_output=True)
        for _ in range(options.rounds):
            for name, checkout in checkouts.items():
                times.setdefault("import and first use", {}).setdefault(name, []).extend(run(checkout, "-c", IMPORT))
                shown = command(checkout, runs[name])
                times.setdefault("topicloom topics RUN", {}).setdefault(name, []).append(shown)
                for model in MODELS:
                    fit, transform = run(checkout, "-c", FIT, str(options.shared.resolve()), model)
                    times.setdefault(f"fit {model}", {}).setdefault(name, []).append(fit)
                    times.setdefault(f"transform {model}", {}).setdefault(name, []).append(transform)
    print(f"{'':60} {'this':>8} {'other':>8} {'ratio':>6}")
    for what, found in times.items():
        this, other = (statistics.median(found[name]) for name in checkouts)
        print(f"{what:60} {this:8.3f} {other:8.3f} {this / other:6.2f}")


if __name__ == "__main__":
    main()
