"""Fuzz the readers, tokenizers, constructors and loaders.

    python -m tests.fuzz [--seconds 600] [--seed 0] [--target NAME ...] [--report FILE]
    python -m tests.fuzz --target NAME --seed 0 --number 1234     # repeat one case in this process

Each target gets its share of the time. Faults are printed with the numbers that repeat them; the exit status is 1 if
there are any.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from itertools import count
from pathlib import Path

from .campaign import SPOILT, Result, child, quiet, watch
from .case import Case
from .targets import TARGETS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Fuzz everything that reads input.")
    parser.add_argument("--seconds", type=float, default=float(os.environ.get("FUZZ_SECONDS", "600")))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", action="append", choices=TARGETS, help="a target; all of them by default")
    parser.add_argument("--inputs", type=int, default=0, help="repeat with the next seeds until so many are checked")
    parser.add_argument("--cases", type=int, help="stop each target after so many cases")
    parser.add_argument("--number", type=int, help="repeat this case of the target")
    parser.add_argument("--report", type=Path, help="a Markdown file for the counts")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--start", type=int, default=0, help="the number of the first case")
    parser.add_argument("--state", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        target = TARGETS.get(options.child, SPOILT)
        child(target, options.child, options.seed, options.start, options.cases, options.seconds, options.state)
        return 0
    names = options.target or list(TARGETS)
    if options.number is not None:
        quiet()
        with tempfile.TemporaryDirectory() as folder:
            print(TARGETS[names[0]].run(Case(names[0], options.seed, options.number, Path(folder))), "inputs checked")
        return 0
    begin = time.monotonic()
    results = {name: Result() for name in names}
    for seed in count(options.seed):
        one_pass(results, options.seconds, seed, options.cases, options.start)
        lines = report(results, options.seed, seed, time.monotonic() - begin)
        print(lines[-1], flush=True)
        if options.report:
            options.report.write_text("\n".join(lines) + "\n", encoding="utf-8")
        if sum(result.inputs for result in results.values()) >= options.inputs:
            return int(any(result.faults for result in results.values()))
    return 0


def one_pass(results: dict[str, Result], seconds: float, seed: int, cases: int | None, start: int) -> None:
    """Run each target for its share of the time, and add what is found to the results."""
    total = sum(TARGETS[name].share for name in results)
    for name, result in results.items():
        found = watch(name, seed, cases, seconds * TARGETS[name].share / total, start=start)
        rate = found.inputs / max(found.seconds, 1e-9)
        print(f"{name}: {found.inputs:,} inputs in {found.cases:,} cases, {rate:,.0f} a second", flush=True)
        for fault in found.faults:
            print(f"  FAULT --target {name} --seed {fault['seed']} --number {fault['number']}: {fault['place']}")
            print("    " + fault["message"].replace("\n", "\n    "), flush=True)
        result.cases += found.cases
        result.inputs += found.inputs
        result.seconds += found.seconds
        result.faults += found.faults


def report(results: dict[str, Result], first: int, last: int, seconds: float) -> list[str]:
    faults = sum(len(result.faults) for result in results.values())
    seeds = f"seed {first}" if first == last else f"seeds {first} to {last}"
    return [
        "# Fuzzing",
        "",
        f"`make fuzz`, {seconds / 60:.0f} minutes, {seeds}, one process, Python {platform.python_version()}. A case "
        "is one call of a target, which writes or makes something hostile, reads it, and compares the result with a "
        "slow reference. Where a case holds many lines, rows or texts, each counts as an input only if its own result "
        "is compared.",
        "",
        "| target | an input is | cases | inputs | inputs per second | faults |",
        "|---|---|---|---|---|---|",
        *(
            f"| {name} | {TARGETS[name].counts} | {found.cases:,} | {found.inputs:,} | "
            f"{found.inputs / max(found.seconds, 1e-9):,.0f} | {len(found.faults)} |"
            for name, found in results.items()
        ),
        "",
        f"Together {sum(found.inputs for found in results.values()):,} inputs in "
        f"{sum(found.cases for found in results.values()):,} cases; {faults} faults (crashes, hangs, exceptions other "
        "than a refusal, lost documents, other results).",
    ]


if __name__ == "__main__":
    sys.exit(main())
