"""Kill commands at random moments and go on with them: nothing finished is lost, and the result is the same.

    python tests/soak/kills.py [--kills 50] [--seed 0] [--report benchmarks/kills.md]

Each command first runs to its end. Then it is killed with SIGKILL one to three times in a row, at random moments after
it has begun to write, and run to its end. A new command is one more line in COMMANDS.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

import topicloom as tl

SOURCE = str(Path(tl.__file__).parents[1])
OUT = "out"  # what the command writes, in a directory of its own
# What may differ: times, and the checksums of files that hold times.
TIMES = {"seconds", "seconds_sd", "job_seconds", "training_seconds", "sha256"}
WAIT = 120  # seconds for anything that should come soon


@dataclass(frozen=True)
class Command:
    """A command that is killed.

    Attributes:
        arguments: those of the command line, without the last two, --out and its directory.
        kept: returns what is finished in the directory, after a kill too.
        result: returns the result of a whole run, without times.
        earlier: arguments of a command that writes an earlier directory, which the command replaces.
        killed_while: "running", or "writing" its directory, which is the last part of a run.
    """

    arguments: list[str]
    kept: Callable[[Path], set[Any]]
    result: Callable[[Path], Any]
    earlier: list[str] | None = None
    killed_while: str = "running"


@dataclass
class Counts:
    """What happened to one command. Nothing but kills should be more than 0."""

    kills: int = 0
    lost: int = 0  # fits, trials, corpora or runs that were finished before a kill and not there after it
    different: int = 0  # results that differ from that of the run without a kill, or that have something twice
    left_files: int = 0  # beside the result, after a whole run
    left_processes: int = 0  # that were alive fifteen seconds after the kill

    @property
    def faults(self) -> int:
        return sum(asdict(self).values()) - self.kills


def rows_of(file: Path) -> list[dict[str, Any]]:
    """Return the whole lines of a file of JSON lines."""
    lines = file.read_text(encoding="utf-8").split("\n")[:-1] if file.exists() else []
    found = []
    for line in lines:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def untimed(value: Any) -> Any:
    """Return JSON values without seconds."""
    if isinstance(value, dict):
        return {name: untimed(each) for name, each in value.items() if name not in TIMES}
    return [untimed(each) for each in value] if isinstance(value, list) else value


def files_of(folder: Path) -> dict[str, Any]:
    """Return the contents of all files, of JSON without times, and of weights without what is said about them."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.suffix == ".json":
            found[name] = untimed(json.loads(path.read_text(encoding="utf-8")))
        elif path.suffix == ".jsonl":
            found[name] = sorted(json.dumps(untimed(row), sort_keys=True) for row in rows_of(path))
        elif path.suffix == ".safetensors":
            found[name] = {key: tensor.numpy().tobytes() for key, tensor in load_file(path).items()}
        elif path.is_file():
            found[name] = path.read_bytes()
    return found


def corpora(folder: Path) -> set[Any]:
    """Return whether a whole corpus is there, old or new."""
    corpus = tl.Corpus.load(folder)
    return {"a corpus"} if len(corpus.texts or ()) == corpus.n_docs else set()


def runs(folder: Path) -> set[Any]:
    """Return whether a whole run is there, old or new."""
    model = tl.load(folder)
    about = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    settings, topics = about["settings"], tl.Topics.from_run(folder)
    return {"a run"} if settings["random_state"] == model.random_state and len(topics.corpus) else set()


def run_result(folder: Path) -> Any:
    return {name: content for name, content in files_of(folder).items() if name != "explorer.html"}  # it shows times


def fits(folder: Path) -> set[Any]:
    """Return the fits of a comparison, as often as they were made."""
    return {json.dumps(row, sort_keys=True) for row in rows_of(folder / "jobs.jsonl") if "error" not in row}


def comparison(folder: Path) -> Any:
    found = files_of(folder)
    found["comparison.csv"] = [untimed(row) for row in csv.DictReader(found["comparison.csv"].decode().splitlines())]
    return {name: content for name, content in found.items() if name != "index.html"}  # it shows times


def trials(folder: Path) -> set[Any]:
    """Return the settings and values of the finished trials, with their numbers in the journal."""
    names: dict[int, dict[str, Any]] = {}
    found = set()
    for number, line in enumerate(rows_of(folder / "study.journal")):
        if "param_name" in line:
            names.setdefault(line["trial_id"], {})[line["param_name"]] = line["param_value_internal"]
        if line.get("values"):
            found.add((number, json.dumps(names.get(line["trial_id"]), sort_keys=True), *line["values"]))
    return found


def search(folder: Path) -> Any:
    return files_of(folder) | {"study.journal": sorted(each[1:] for each in trials(folder))}


TRAIN = ["train", "few.txt", "--topics", "4", "--model", "gsm", "--epochs", "1", "--quiet", "--overwrite"]
COMMANDS = {
    "prepare": Command(
        ["prepare", "many.txt", "--min-df", "1", "--jobs", "2", "--quiet", "--overwrite"], corpora, files_of,
        earlier=["prepare", "few.txt", "--min-df", "1", "--quiet"],
    ),
    "compare": Command(
        ["compare", "few.txt", "--models", "gsm:epochs=2,lda:epochs=2", "--topics", "2,3", "--seeds", "2", "--jobs",
         "2", "--quiet"], fits, comparison,
    ),
    "tune": Command(
        ["tune", "few.txt", "--model", "gsm:epochs=2", "--topics", "3", "--trials", "12", "--quiet"], trials, search,
    ),
    "train, the writing of the run": Command(
        [*TRAIN, "--seed", "1"], runs, run_result, earlier=[*TRAIN, "--seed", "0"], killed_while="writing",
    ),
}  # fmt: skip


def write_texts(folder: Path, n_many: int = 100_000) -> None:
    """Write the texts that the commands read."""
    drawn = random.Random(0)
    kinds = [[f"{kind}{number}" for number in range(60)] for kind in ("cat", "bank", "rain")]
    for name, n_lines in (("few.txt", 150), ("many.txt", n_many)):
        lines = (" ".join(drawn.choices(kinds[number % 3], k=25)) for number in range(n_lines))
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def spawned(arguments: list[str], folder: Path) -> int:
    """Start a command as a process, in a session of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "topicloom", *arguments], cwd=folder, stdout=subprocess.DEVNULL, start_new_session=True,
        env=os.environ | {"PYTHONPATH": SOURCE}, stderr=(folder / "stderr").open("ab"),
    ).pid  # fmt: skip


def forked(arguments: list[str], folder: Path) -> int:
    """Start a command as a copy of this process, in a session of its own, which saves the time of imports."""
    for module in ("experiments.tune", "reports.run", "reports.figures", "reports.comparison_page", "cli"):
        import_module(f"topicloom.{module}")
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.setsid()
        os.chdir(folder)
        output = os.open("stderr", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)
        import_module("topicloom.cli").app(arguments, prog_name="topicloom")
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    finally:
        os._exit(code)


def living(session: int) -> list[int]:
    """Return the processes of a session that are not at their end."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                values = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(values[3]) == session and values[0] != "Z":
                found.append(int(folder.name))
    return found


def comes(condition: Callable[[], bool], seconds: float = WAIT) -> bool:
    """Wait until a condition holds, and return whether it does."""
    deadline = time.monotonic() + seconds
    while not (holds := condition()) and time.monotonic() < deadline:
        time.sleep(0.002)
    return holds


def has_begun(command: Command, folder: Path, process: int) -> bool:
    """Whether a process has locked its directory, or has begun to write it beside its place."""
    if command.killed_while == "writing":
        return any(folder.glob(f".{OUT}.*-{process}-*"))
    try:
        return f"process {process} on" in (folder / f".{OUT}.lock").read_text()
    except OSError:
        return False


class Soak:
    """One command that is killed.

    Args:
        folder: where the texts are.
        start: starts a command and returns its process.
    """

    def __init__(
        self, name: str, folder: Path, seed: int = 0, start: Callable[[list[str], Path], int] = spawned
    ) -> None:
        self.command, self.folder, self.start = COMMANDS[name], folder, start
        self.counts, self.random = Counts(), random.Random(f"{name} {seed}")
        with self._place() as place:
            process = self._begun(place)
            began = time.monotonic()
            self._require_end(process)
            self.seconds = time.monotonic() - began
            self.result = self.command.result(place / OUT)

    def run(self, n_kills: int) -> Counts:
        """Kill the command this often, and return what happened."""
        while self.counts.kills < n_kills:
            with self._place() as place:
                for _ in range(min(self.random.randint(1, 3), n_kills - self.counts.kills)):
                    if not self._kill(place):
                        break
                before = self.command.kept(place / OUT)
                self._whole(self.command.arguments, place)
                self._compare(before, place)
        return self.counts

    @contextmanager
    def _place(self) -> Iterator[Path]:
        """A directory beside the texts, with an earlier result if the command replaces one."""
        place = Path(tempfile.mkdtemp(dir=self.folder))
        try:
            if self.command.earlier is not None:
                earlier = self.folder / f"earlier-{self.command.earlier[0]}"
                if not earlier.exists():
                    self._whole(self.command.earlier, place)
                    shutil.move(place / OUT, earlier)
                shutil.copytree(earlier, place / OUT)
            yield place
        finally:
            shutil.rmtree(place)

    def _start(self, arguments: list[str], place: Path) -> int:
        return self.start([*arguments, "--out", str(place / OUT)], self.folder)

    def _whole(self, arguments: list[str], place: Path) -> None:
        """Run a command to its end."""
        self._require_end(self._start(arguments, place))

    def _require_end(self, process: int) -> None:
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        if status:
            said = (self.folder / "stderr").read_text(encoding="utf-8", errors="replace")[-2000:]
            raise RuntimeError(f"the command ended with {status}: {said}")

    def _begun(self, place: Path) -> int:
        process = self._start(self.command.arguments, place)
        if not comes(lambda: has_begun(self.command, place, process)):
            raise RuntimeError(f"the command has not begun; {place} holds {list(place.iterdir())}")
        return process

    def _kill(self, place: Path) -> bool:
        """Start the command and kill it. Return whether it was killed before its end."""
        kept = self.command.kept(place / OUT)
        process = self._begun(place)
        time.sleep(self.random.uniform(0, self.seconds))
        os.kill(process, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        if not comes(lambda: not living(process), 15):
            self.counts.left_processes += 1
        self.counts.kills += status == -signal.SIGKILL
        self.counts.lost += len(kept - self.command.kept(place / OUT))
        return status == -signal.SIGKILL

    def _compare(self, before: set[Any], place: Path) -> None:
        kept = self.command.kept(place / OUT)
        self.counts.lost += len(before - kept)
        self.counts.different += self.command.result(place / OUT) != self.result
        self.counts.left_files += len(set(os.listdir(place)) - {OUT})


def report(counts: dict[str, Counts], seed: int, seconds: float) -> str:
    total = sum(each.kills for each in counts.values())
    faults = sum(each.faults for each in counts.values())
    rows = [
        f"| `{name}` | {each.kills} | {each.lost} | {each.different} | {each.left_files} | {each.left_processes} |"
        for name, each in counts.items()
    ]
    lines = [
        "# Commands that are killed and continued",
        "",
        f"`make soak-kill` killed commands {total} times with SIGKILL at random moments, and went on with the same "
        f"command (seed {seed}, topicloom {tl.__version__}, Python {platform.python_version()}, {os.cpu_count()} "
        f"processors, {seconds / 60:.0f} minutes). There were {faults} faults. `prepare` and `train` replaced an "
        "earlier directory; after each kill, the old or the new one had to be there and whole. `prepare` and `compare` "
        "had two workers. The results had to be those of a run that was never killed, but for times.",
        "",
        "| command | kills | finished work lost | different results | files left | processes left |",
        "|---|---:|---:|---:|---:|---:|",
        *rows,
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50, help="in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", choices=COMMANDS, help="this command; repeatable")
    parser.add_argument("--report", type=Path, help="the Markdown file for the counts")
    options = parser.parse_args()
    names = options.only or list(COMMANDS)
    counts: dict[str, Counts] = {}
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_texts(folder)
        for number, name in enumerate(names):
            n_kills = options.kills // len(names) + (number < options.kills % len(names))
            counts[name] = Soak(name, folder, options.seed).run(n_kills)
            print(name, asdict(counts[name]), flush=True)
    written = report(counts, options.seed, time.monotonic() - began)
    print(written)
    if options.report is not None:
        options.report.write_text(written, encoding="utf-8")
    sys.exit(any(each.faults for each in counts.values()))


if __name__ == "__main__":
    main()
