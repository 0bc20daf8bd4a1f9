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
from pathlib import Path

from .campaign import SPOILT, Result, child, quiet, watch
from .case import Case
from .targets import TARGETS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Fuzz everything that reads input.")
    parser.add_argument("--seconds", type=float, default=float(os.environ.get("FUZZ_SECONDS", "600")))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", action="append", choices=TARGETS, help="a target; all of them by default")
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
    total, begin = sum(TARGETS[name].share for name in names), time.monotonic()
    results: dict[str, Result] = {}
    for name in names:
        seconds = options.seconds * TARGETS[name].share / total
        results[name] = found = watch(name, options.seed, options.cases, seconds, start=options.start)
        rate = found.inputs / max(found.seconds, 1e-9)
        print(f"{name}: {found.inputs:,} inputs in {found.cases:,} cases, {rate:,.0f} a second", flush=True)
        for fault in found.faults:
            print(f"  FAULT --target {name} --seed {fault['seed']} --number {fault['number']}: {fault['place']}")
            print("    " + fault["message"].replace("\n", "\n    "), flush=True)
    lines = report(results, options.seed, time.monotonic() - begin)
    print("\n".join(lines[-3:]))
    if options.report:
        options.report.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return int(any(result.faults for result in results.values()))


def report(results: dict[str, Result], seed: int, seconds: float) -> list[str]:
    faults = sum(len(result.faults) for result in results.values())
    return [
        "# Fuzzing",
        "",
        f"`make fuzz FUZZ_SECONDS={seconds:.0f}`, seed {seed}, one process, Python {platform.python_version()}. A case "
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
