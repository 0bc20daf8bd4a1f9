"""Kill `topicloom train` at random moments, go on with --resume, and compare the run with one that was never stopped.

    python tests/soak/resume.py --kills 200 --out benchmarks/resume.md

Each model is trained on a part of the documentation of this Python. A run is killed by SIGKILL several times, at
moments that are drawn evenly over the time that a whole run takes, so that some kills hit the reading of the documents,
the training, the writing of a checkpoint or the writing of the run. Then it is left to finish. Its model, tables and
log have to be those of the run that was never stopped, bit for bit; only the seconds in the log may differ. A run that
began again would give the same, so the last start has to say that it goes on from a checkpoint. In every second run a
state is written after each batch; in the others, as often as by default, without waiting a minute first.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

MODELS: dict[str, list[str]] = {
    "BATM": ["--model", "batm", "--epochs", "12"],
    "DirichletVAE": ["--model", "dirichletvae", "--epochs", "14"],
    "DirichletVAE rsvi": ["--model", "dirichletvae", "--epochs", "8", "--set", "estimator=rsvi"],
    "ETM": ["--model", "etm", "--epochs", "14"],
    "GaussianBATM": ["--model", "gaussianbatm", "--epochs", "8"],
    "GMNTM": ["--model", "gmntm", "--epochs", "12", "--set", "pretrain_epochs=4"],
    "GSM": ["--model", "gsm", "--epochs", "16", "--set", "patience=3"],
    "LDA": ["--model", "lda", "--epochs", "8"],
    "LDA gibbs": ["--model", "lda", "--epochs", "200", "--set", "method=gibbs"],
    "Loom": ["--model", "loom", "--epochs", "20"],
    "NVDM": ["--model", "nvdm", "--epochs", "16"],
    "NVLDA": ["--model", "nvlda", "--epochs", "14"],
    "ProdLDA": ["--model", "prodlda", "--epochs", "14"],
    "WLDA": ["--model", "wlda", "--epochs", "14"],
}
KILLS_OF_A_RUN = 4
OUTPUT = "output.txt"
UNSTARTED = ("before the first checkpoint", "complete")  # from which no checkpoint goes on
COMPARED = ("model/model.safetensors", "model/vocabulary.txt", "topics.csv", "doc_topics.csv")


def train(corpus: Path, run: Path, options: list[str], *, each_batch: bool) -> int:
    """Begin `topicloom train --resume` in a process of its own, and return the id of the process."""
    process = os.fork()
    if process:
        return process
    try:
        sys.stdout = sys.stderr = open(run.parent / OUTPUT, "a", encoding="utf-8")  # noqa: SIM115
        from topicloom.cli import main
        from topicloom.training import checkpoints

        checkpoints._GREATEST_COST = 1e9 if each_batch else checkpoints._GREATEST_COST  # type: ignore[misc]
        sys.argv = [
            "topicloom", "train", str(corpus), "--topics", "5", "--out", str(run), "--resume", "--checkpoint-every",
            "0.0001s", "--no-explorer", *options,
        ]  # fmt: skip
        main()
    except SystemExit as end:
        sys.stderr.flush()
        os._exit(end.code if isinstance(end.code, int) else 1)
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)


def kill_after(process: int, seconds: float, folder: Path) -> bool:
    """Wait, kill the process, and return whether it was still running. Raises if it had failed."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            require_success(status, folder)
            return False
        time.sleep(0.002)
    os.kill(process, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(process, 0)[1])


def require_success(status: int, folder: Path) -> None:
    if status:
        print((folder / OUTPUT).read_text(encoding="utf-8")[-2000:])
        raise SystemExit(f"a run ended with status {status}")


def log_of(run: Path) -> list[dict[str, object]]:
    rows = [json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


def stage_of(run: Path) -> str:
    """Return what a run was doing when it was killed."""
    if (run / "state.safetensors").exists():
        return UNSTARTED[1]
    written = sorted((run / "checkpoints").glob("checkpoint-*")) if (run / "checkpoints").is_dir() else []
    if not written:
        return UNSTARTED[0]
    from topicloom.training.checkpoints import read_checkpoint

    newest = max(written, key=lambda path: int(path.stem.partition("-")[2]))
    checkpoint = read_checkpoint(newest)
    if checkpoint.finished:
        return "writing the run"
    return "within an epoch" if checkpoint.snapshot.values.get("batch") else "between epochs"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--out", type=Path, help="where the table is written")
    given = parser.parse_args()
    import matplotlib.pyplot  # noqa: F401  # once, for all processes that are forked from this one
    import tomotopy  # noqa: F401
    import torch

    import topicloom as tl
    import topicloom.experiments.tune
    import topicloom.reports.run

    torch.set_num_threads(1)
    draw = random.Random(given.seed)
    began = time.monotonic()
    names = given.models.split(",")
    kills = dict.fromkeys(names, 0)
    stages: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        tl.datasets.python_docs()[:400].save(place / "corpus")
        whole: dict[str, float] = {}
        for name in names:
            started = time.monotonic()
            process = train(place / "corpus", place / f"whole-{name}", MODELS[name], each_batch=False)
            require_success(os.waitpid(process, 0)[1], place)
            whole[name] = time.monotonic() - started
        number = 0
        while sum(kills.values()) < given.kills:
            name = names[number % len(names)]
            run, each_batch, of_this_run = place / f"run-{number}", number // len(names) % 2 == 0, 0
            stage = UNSTARTED[0]
            number += 1
            while of_this_run < KILLS_OF_A_RUN:
                process = train(place / "corpus", run, MODELS[name], each_batch=each_batch)
                if not kill_after(process, draw.uniform(0, whole[name]), place):
                    break
                of_this_run += 1
                stage = stage_of(run)
                stages[stage] = stages.get(stage, 0) + 1
            (place / OUTPUT).write_text("", encoding="utf-8")
            process = train(place / "corpus", run, MODELS[name], each_batch=each_batch)
            require_success(os.waitpid(process, 0)[1], place)
            for file in COMPARED:
                if (run / file).read_bytes() != (place / f"whole-{name}" / file).read_bytes():
                    raise SystemExit(f"{name}: {file} differs after {of_this_run} kills (seed {given.seed})")
            if log_of(run) != log_of(place / f"whole-{name}"):
                raise SystemExit(f"{name}: the log differs after {of_this_run} kills (seed {given.seed})")
            went_on = "going on after epoch" in (place / OUTPUT).read_text(encoding="utf-8")
            if of_this_run == KILLS_OF_A_RUN and went_on == (stage in UNSTARTED):
                raise SystemExit(
                    f"{name}: the run {'went on' if went_on else 'began again'}, but it was killed {stage}"
                )
            left = [path.name for path in (*place.iterdir(), *run.iterdir()) if path.name.startswith(".")]
            if left:
                raise SystemExit(f"{name}: {left} were left")
            kills[name] += of_this_run
            print(f"{time.monotonic() - began:6.0f} s {sum(kills.values()):4} kills; {name}: {of_this_run}", flush=True)
    table = report(kills, stages, number, time.monotonic() - began)
    print(table)
    if given.out is not None:
        given.out.write_text(table, encoding="utf-8")


def report(kills: dict[str, int], stages: dict[str, int], runs: int, seconds: float) -> str:
    lines = [
        "# Runs that are killed and go on",
        "",
        f"`make soak-resume` killed `topicloom train` {sum(kills.values())} times in {runs} runs, within "
        f"{seconds / 60:.0f} minutes. Each run then went on, and ended with the model, the tables and the log of the "
        "run that was never stopped, bit for bit.",
        "",
        "| model | kills |",
        "|---|---|",
        *(f"| {name} | {count} |" for name, count in kills.items()),
        "",
        "| killed | kills |",
        "|---|---|",
        *(f"| {name} | {count} |" for name, count in sorted(stages.items())),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
