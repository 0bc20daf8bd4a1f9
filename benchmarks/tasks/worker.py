"""Run the tasks of one tool, in its environment, and write what each returned and how long it took.

    PYTHON benchmarks/tasks/worker.py TOOL FOLDER RESULTS.json [TASK ...]

FOLDER has the files of data.py and encoder.py; the tool works in FOLDER/TOOL. The module TOOL_tasks.py has a function
for each task that the tool can do, and `MISSING`, a sentence for each other one. What a function builds on is made
before, and not timed: `job.of("train")` is what the function `train` kept. Seconds are processor time of the process
and its children, and wall time. A function `draw_TASK`, where there is one, then draws the result for pictures.py, and
is not timed either.
"""

from __future__ import annotations

import csv
import functools
import importlib
import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np


class Job:
    """What the functions share."""

    def __init__(self, tool: str, folder: Path):
        self.data, self.out, self.kept = folder, folder / tool, {}
        self.module: Any = None

    def of(self, task: str) -> Any:
        if task not in self.kept:
            getattr(self.module, task)(self)
        return self.kept[task]

    def keep(self, task: str, value: Any) -> Any:
        self.kept[task] = value
        return value

    @functools.cache  # noqa: B019
    def rows(self, name: str) -> list[dict[str, str]]:
        with (self.data / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    @functools.cache  # noqa: B019
    def texts(self, name: str = "titles") -> list[str]:
        return [row["text"] for row in self.rows(name)]

    def vectors(self, name: str = "titles") -> np.ndarray:
        return np.load(self.data / f"{name}.npy")


def plain(value: Any) -> Any:
    """The value as JSON has it."""
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | np.ndarray):
        return [plain(each) for each in value]
    if isinstance(value, np.generic):
        return value.item()
    return str(value) if isinstance(value, Path) else value


def spent() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def main() -> None:
    tool, folder, results, *names = sys.argv[1:]
    from rules import TASKS

    job, target = Job(tool, Path(folder).resolve()), Path(results).resolve()
    found = json.loads(target.read_text(encoding="utf-8")) if target.exists() else {}
    job.out.mkdir(exist_ok=True)
    os.chdir(job.out)
    for file in job.data.iterdir():
        if (file.is_file() or file.name == "texts") and not Path(file.name).exists():
            Path(file.name).symlink_to(file)
    cpu, wall = spent(), time.perf_counter()
    job.module = module = importlib.import_module(f"{tool}_tasks")
    found["import"] = {"cpu": spent() - cpu, "wall": time.perf_counter() - wall}
    for task in names or [task.name for task in TASKS]:
        function = getattr(module, task, None)
        if function is None:
            found[task] = {"missing": module.MISSING[task]}
            continue
        for other in getattr(module, "NEEDS", {}).get(task, ()):
            job.of(other)
        cpu, wall = spent(), time.perf_counter()
        try:
            entry = {"result": plain(function(job))}
        except Exception as error:
            traceback.print_exc()
            entry = {"error": f"{type(error).__name__}: {error}"[:500]}
        found[task] = {**entry, "cpu": spent() - cpu, "wall": time.perf_counter() - wall}
        print(f"{tool} {task}: {found[task]['cpu']:.1f} s", entry.get("error", ""), flush=True)
        target.write_text(json.dumps(found, ensure_ascii=False), encoding="utf-8")
        if "error" not in entry and hasattr(module, f"draw_{task}"):
            getattr(module, f"draw_{task}")(job)
    target.write_text(json.dumps(found, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
