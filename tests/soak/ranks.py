"""Kill one of two processes that train together, go on with --resume, and compare with a run that was never stopped.

    python tests/soak/ranks.py --kills 20 --out benchmarks/ranks.md

torchrun starts two processes of `topicloom train`. At a random moment one of them, drawn at random, is killed by
SIGKILL. The job has to end within a minute, and the other process has to say what happened if they had begun to train.
The job is then started again with --resume, until it has been killed three times, and then left to finish. The model
and the tables have to be those of the job that was never stopped, bit for bit.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import topicloom as tl

MODELS = {
    "GSM": ["gsm", "--epochs", "16"],
    "Loom": ["loom", "--epochs", "20"],
    "WLDA": ["wlda", "--epochs", "14"],
    "GMNTM": ["gmntm", "--epochs", "12", "--set", "pretrain_epochs=4"],
}
KILLS_OF_A_RUN = 3
COMPARED = ("model/model.safetensors", "model/vocabulary.txt", "topics.csv", "doc_topics.csv")
SENTENCE = "can no longer reach the others"


def start(corpus: Path, run: Path, model: str, *options: str) -> subprocess.Popen[str]:
    """Start two processes by torchrun."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
    command += ["topicloom", "train", str(corpus), "--topics", "5", "--out", str(run), "--no-explorer", "--model"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen([*command, *MODELS[model], "--checkpoint-every", "0.0001s", *options], **pipes)


def processes_of(job: subprocess.Popen[str]) -> list[int]:
    """Return the ids of the two processes, in the order in which they were started."""
    found = subprocess.run(["pgrep", "-P", str(job.pid)], capture_output=True, text=True).stdout.split()
    return sorted(map(int, found))


def finished(job: subprocess.Popen[str]) -> str:
    output = job.communicate(timeout=600)[0]
    if job.returncode:
        raise SystemExit(f"a job ended with status {job.returncode}:\n{output[-3000:]}")
    return output


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="where the table is written")
    given = parser.parse_args()
    draw, began = random.Random(given.seed), time.monotonic()
    os.environ["OMP_NUM_THREADS"] = "1"
    kills, said, in_training, runs = dict.fromkeys(MODELS, 0), 0, 0, 0
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        tl.datasets.python_docs()[:400].save(place / "corpus")
        whole: dict[str, float] = {}
        for name in MODELS:
            started = time.monotonic()
            finished(start(place / "corpus", place / f"whole-{name}", name))
            whole[name] = time.monotonic() - started
        while sum(kills.values()) < given.kills:
            name = list(MODELS)[runs % len(MODELS)]
            run, of_this_run = place / f"run-{runs}", 0
            runs += 1
            while of_this_run < KILLS_OF_A_RUN:
                job = start(place / "corpus", run, name, "--resume")
                time.sleep(draw.uniform(0.3, 0.9) * whole[name])
                processes = processes_of(job)
                if len(processes) < 2 or (run / "model").exists():
                    whole[name] *= 0.8  # it ended sooner than the whole job did
                    break
                training = any((run / "checkpoints").glob("checkpoint-*"))
                victim = draw.randrange(2)
                os.kill(processes[victim], signal.SIGKILL)
                output = job.communicate(timeout=60)[0]
                of_this_run += 1
                in_training += training
                said += SENTENCE in output
                if training and SENTENCE not in output:
                    print(f"{name}: process {victim} was killed, and the other said nothing:\n{output[:600]}")
            if (run / "model").exists() or job.poll() is None:
                job.communicate()
            else:
                finished(start(place / "corpus", run, name, "--resume"))
            for file in COMPARED:
                if (run / file).read_bytes() != (place / f"whole-{name}" / file).read_bytes():
                    raise SystemExit(f"{name}: {file} differs after {of_this_run} kills (seed {given.seed})")
            kills[name] += of_this_run
            print(f"{time.monotonic() - began:6.0f} s {sum(kills.values()):4} kills; {name}: {of_this_run}", flush=True)
    lines = [
        "# Jobs of two processes, one of which is killed",
        "",
        f"`make soak-ranks` killed one of two processes of `topicloom train` {sum(kills.values())} times in {runs} "
        f"jobs, within {(time.monotonic() - began) / 60:.0f} minutes. Every job ended within a minute. {in_training} "
        f"kills came after the first checkpoint; in {said} cases the other process said what had happened. (It does "
        "not while it writes the run, which it does alone, and torchrun then ends it.) Each job then went on with "
        "--resume, and ended with the model and the tables of the job that was never stopped, bit for bit.",
        "",
        "| model | kills |",
        "|---|---|",
        *(f"| {name} | {count} |" for name, count in kills.items()),
    ]
    table = "\n".join(lines) + "\n"
    print(table)
    if given.out is not None:
        given.out.write_text(table, encoding="utf-8")


if __name__ == "__main__":
    main()
