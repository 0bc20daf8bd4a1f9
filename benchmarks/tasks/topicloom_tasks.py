"""The tasks with topicloom: its commands, as one types them."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import stub

HERE = Path(__file__).resolve().parent
PATHS = (HERE.parents[1] / "src", HERE, HERE.parents[1] / ".venv-tasks" / "encoder")
ENVIRONMENT = {**os.environ, "PYTHONPATH": ":".join(map(str, PATHS)), "PYTHONWARNINGS": "ignore"}
MISSING: dict[str, str] = {}
NEEDS = {"words_in": ("train",), "service": ("train",)} | dict.fromkeys(
    (
        "measure",
        "same_again",
        "resume",
        "names",
        "names_llm",
        "documents_of",
        "search",
        "table_of_documents",
        "outliers",
        "rename",
        "merge",
        "drop",
        "split",
        "reduce",
        "hierarchy",
        "over_time",
        "by_group",
        "along_number",
        "new_documents",
        "next_month",
        "load",
        "map",
        "page",
        "paper",
        "picture",
    ),
    ("train_vectors",),
)
VECTORS = "--vectors titles.npy"
COLUMNS = "--timestamp date --covariate team --covariate score"


def topicloom(command: str, **more: Any) -> str:
    """Run a command, and return what it prints; an error is what it says on standard error."""
    words = [sys.executable, "-m", "topicloom", *shlex.split(command)]
    done = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, check=False, **more)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return done.stdout


def table(path: str) -> list[dict[str, str]]:
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def topics_of(run: str) -> list[int]:
    return [int(row["topic"] or -1) for row in table(f"{run}/doc_topics.csv")]


def texts_of(corpus: str) -> list[str]:
    import topicloom as tl

    return [str(text) for text in tl.Corpus.load(corpus).texts]


def open_csv(job: Any) -> Any:
    topicloom("prepare titles.csv --out corpus --overwrite")
    return texts_of("corpus")


def open_excel(job: Any) -> Any:
    topicloom("prepare book.xlsx --sheet titles --out from-book --overwrite")
    return texts_of("from-book")


def open_folder(job: Any) -> Any:
    topicloom("prepare texts --out from-folder --overwrite")
    return texts_of("from-folder")


def bad_file(job: Any) -> Any:
    said = []
    for command in ("prepare broken.csv --out broken", "prepare titles.csv --text body --out broken"):
        with contextlib.suppress(RuntimeError):
            topicloom(command)
        words = [sys.executable, "-m", "topicloom", *shlex.split(command)]
        said.append(subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, check=False).stderr)
    return said


def copies(job: Any) -> Any:
    topicloom("prepare copies.csv --drop-duplicates --out once --overwrite")
    import topicloom as tl

    names = {row["id"]: at for at, row in enumerate(job.rows("copies"))}
    return [names[str(name)] for name in tl.Corpus.load("once").ids]


def social(job: Any) -> Any:
    topicloom("prepare posts.csv --preset social --handles drop --out posts --overwrite")
    return {"vocabulary": Path("posts/vocabulary.txt").read_text(encoding="utf-8").splitlines()}


def phrases(job: Any) -> Any:
    topicloom("prepare titles.csv --phrases --out phrases --overwrite")
    return Path("phrases/vocabulary.txt").read_text(encoding="utf-8").splitlines()


def train(job: Any) -> Any:
    job.keep("train", "runs/words")
    topicloom("train titles.csv --topics 20 --out runs/words --overwrite")
    return {"assigned": topics_of("runs/words")}


def train_vectors(job: Any) -> Any:
    topicloom(f"train titles.csv --topics 20 {VECTORS} {COLUMNS} --out runs/titles --overwrite")
    job.keep("train_vectors", "runs/titles")
    return {"assigned": topics_of("runs/titles")}


def chinese(job: Any) -> Any:
    topicloom("train zh.csv --vectors zh.npy --topics 20 --out runs/zh --overwrite")
    return {"assigned": topics_of("runs/zh"), "words": [row["words"].split() for row in table("runs/zh/topics.csv")]}


def seed_words(job: Any) -> Any:
    """A word that no title has, such as plsql, is refused, with the words that are like it."""
    words = '{"0": ["wordpress", "plugin"], "1": ["oracle"], "2": ["excel", "cell"]}'
    topicloom(f"train titles.csv --topics 20 {VECTORS} --set 'seed_words={words}' --out runs/seeds --overwrite")
    return {"assigned": topics_of("runs/seeds"), "topics": [0, 1, 2]}


def number_of_topics(job: Any) -> Any:
    """With reasons, a table and a page; it trains on 70% of the titles, and chooses on 10%."""
    said = topicloom(f"select-topics titles.csv --topics 10,20,40 --seeds 1 {VECTORS} --out runs/select-topics --json")
    return json.loads(said)["n_topics"]


def stability(job: Any) -> Any:
    """The distance of topics to those of the other seeds, from 0 to 1, beside all other measures, and on a page."""
    topicloom(f"compare titles.csv --models loom --topics 20 --seeds 3 {VECTORS} --out runs/compare")
    return next(float(row["topic_distance"]) for row in table("runs/compare/comparison.csv"))


def measure(job: Any) -> Any:
    said = json.loads(topicloom(f"evaluate {job.of('train_vectors')} --measures c_npmi,topic_diversity --json"))
    return {name: measured["value"] for name, measured in said["measures"].items()}


def same_again(job: Any) -> Any:
    topicloom(f"train titles.csv --topics 20 {VECTORS} {COLUMNS} --out runs/again --overwrite")
    return [topics_of(job.of("train_vectors")), topics_of("runs/again")]


def resume(job: Any) -> Any:
    """The training is killed (SIGKILL) in its middle."""
    command = f"train titles.csv --topics 20 {VECTORS} {COLUMNS} --out runs/killed --checkpoint-every '20 epochs'"
    killed = subprocess.Popen([sys.executable, "-m", "topicloom", *shlex.split(command)], env=ENVIRONMENT,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    while killed.poll() is None and not list(Path("runs").glob("killed*/**/*checkpoint*")):
        time.sleep(0.2)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    topicloom(f"{command} --resume")
    return [topics_of(job.of("train_vectors")), topics_of("runs/killed")]


def names(job: Any) -> Any:
    topicloom(f"name {job.of('train_vectors')} --rule phrase --out runs/named --overwrite")
    return [row["name"] for row in table("runs/named/topics.csv")]


def names_llm(job: Any) -> Any:
    with stub.service() as address:
        topicloom(f"name {job.of('train_vectors')} --llm {address} --model stub --out runs/llm --overwrite")
    return [row["name"] for row in table("runs/llm/topics.csv")]


def documents_of(job: Any) -> Any:
    run = job.of("train_vectors")
    shown = json.loads(topicloom(f"documents {run} --n 5 --length 500 --json"))
    texts = {entry["topic"]: [document["text"] for document in entry["documents"]] for entry in shown["topics"]}
    return {"assigned": topics_of(run), "texts": texts}


def search(job: Any) -> Any:
    run = job.of("train_vectors")
    query = "undo a commit to the repository"
    found = topicloom(f"find {run} '{query}' --documents --encoder encoder:encode --allow encoder -n 10 --json")
    return [entry["text"] for entry in json.loads(found)["documents"]]


def table_of_documents(job: Any) -> Any:
    topicloom(f"export {job.of('train_vectors')} --to documents --texts --out documents.csv --overwrite")
    rows = table("documents.csv")
    return [list(rows[0]), len(rows), rows[-1]["id"]]


def words_in(job: Any) -> Any:
    said = json.loads(topicloom(f"tokens {job.of('train')} 0 --json"))
    return [token["word"] for token in said["tokens"]]


def outliers(job: Any) -> Any:
    run = job.of("train_vectors")
    topicloom(f"infer {run} strange.csv --vectors strange.npy --outliers --out fits.csv --overwrite")
    return [row["outlier"] == "True" for row in table("fits.csv")]


def rename(job: Any) -> Any:
    topicloom(f"edit {job.of('train_vectors')} --rename 3=shipping --out runs/renamed --overwrite")
    return [row["name"] for row in table("runs/renamed/topics.csv")]


def merge(job: Any) -> Any:
    topicloom(f"edit {job.of('train_vectors')} --merge 3,7 --out runs/merged --overwrite")
    return {"pair": [3, 7], "before": topics_of(job.of("train_vectors")), "after": topics_of("runs/merged")}


def drop(job: Any) -> Any:
    topicloom(f"edit {job.of('train_vectors')} --drop 3 --out runs/dropped --overwrite")
    return {"before": topics_of(job.of("train_vectors")), "after": topics_of("runs/dropped")}


def split(job: Any) -> Any:
    topicloom(f"edit {job.of('train_vectors')} --split 3:2 --out runs/split --overwrite")
    return {"topic": 3, "before": topics_of(job.of("train_vectors")), "after": topics_of("runs/split")}


def reduce(job: Any) -> Any:
    topicloom(f"edit {job.of('train_vectors')} --reduce-to 10 --out runs/ten --overwrite")
    return topics_of("runs/ten")


def hierarchy(job: Any) -> Any:
    said = topicloom(f"hierarchy {job.of('train_vectors')} --json")
    return {"joins": sum(node["distance"] is not None for node in json.loads(said)["nodes"]), "topics": 20}


def over_time(job: Any) -> Any:
    run = job.of("train_vectors")
    said = json.loads(topicloom(f"trends {run} --out trends.csv --overwrite --json"))
    series: dict[str, list[float]] = {}
    for row in table("trends.csv"):
        series.setdefault(row["topic"], []).append(float(row["share"]))
    test = {str(entry["topic"]): entry["trend"] for entry in said["trends"]}
    return {"assigned": topics_of(run), "series": series, "test": test}


def by_group(job: Any) -> Any:
    """Counts by main topic, as here, shares with intervals, lift, and p after correction."""
    run = job.of("train_vectors")
    groups: dict[int, list[float]] = {}
    cells = json.loads(topicloom(f"by {run} team --crosstab --json"))["cells"]
    for cell in cells:
        groups.setdefault(cell["topic"], []).append(cell["main_documents"])
    return {"assigned": topics_of(run), "groups": groups, "test": f"p={min(c['p_corrected'] for c in cells):.0e}"}


def along_number(job: Any) -> Any:
    run = job.of("train_vectors")
    topicloom(f"by {run} score --groups 5 --out score.csv --overwrite")
    ends: dict[str, list[float]] = {}
    for row in table("score.csv"):
        ends.setdefault(row["topic"], []).append(float(row["share"]))
    return {"assigned": topics_of(run), "ends": {topic: [v[0], v[-1]] for topic, v in ends.items()}}


def new_documents(job: Any) -> Any:
    run = job.of("train_vectors")
    topicloom(f"infer {run} new.csv --vectors new.npy --out new-topics.csv --overwrite")
    new = [int(row["topic"] or -1) for row in table("new-topics.csv")]
    return {"assigned": topics_of(run), "new": new}


def next_month(job: Any) -> Any:
    run = job.of("train_vectors")
    topicloom(f"update {run} next.csv --vectors next.npy --new-topics 1 --out runs/next --overwrite")
    after = topics_of("runs/next")
    return {"before": topics_of(run), "after": after[:15_000], "next": after[15_000:]}


def load(job: Any) -> Any:
    run = job.of("train_vectors")
    topicloom(f"infer {run}/model new.csv --vectors new.npy --out elsewhere.csv --overwrite")
    topicloom(f"infer {run} new.csv --vectors new.npy --out here.csv --overwrite")
    size = sum(file.stat().st_size for file in Path(run, "model").rglob("*")) / 1e6
    tables = [[row["topic"] for row in table(name)] for name in ("here.csv", "elsewhere.csv")]
    return {"before": tables[0], "after": tables[1], "megabytes": size}


def map(job: Any) -> Any:
    topicloom(f"figures {job.of('train_vectors')} --kind map --out figures --overwrite")
    return next(file.resolve() for file in Path("figures").glob("map*"))


def page(job: Any) -> Any:
    topicloom(f"explore {job.of('train_vectors')} --title 'Questions of 2025' --out page.html --overwrite")
    return Path("page.html").resolve()


def paper(job: Any) -> Any:
    topicloom(f"export {job.of('train_vectors')} --to topics --caption 'Topics' --out topics.tex --overwrite")
    return Path("topics.tex").read_text(encoding="utf-8")


def picture(job: Any) -> Any:
    topicloom(f"figures {job.of('train_vectors')} --kind clouds --format pdf --out pictures --overwrite")
    return next(file.resolve() for file in Path("pictures").glob("clouds*"))


def draw_picture(job: Any) -> None:
    topicloom(f"figures {job.of('train_vectors')} --kind clouds --format png --out pictures --overwrite")


def service(job: Any) -> Any:
    words = [sys.executable, "-m", "topicloom", "serve", job.of("train"), "--port", "8765"]
    served = subprocess.Popen(words, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        answer = stub.ask("http://127.0.0.1:8765/api/infer", {"texts": ["How do I write an SQL query in oracle?"]})
    finally:
        served.terminate()
        served.wait()
    return answer
