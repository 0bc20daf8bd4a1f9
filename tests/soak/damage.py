"""Damages each file of saved models, corpora and runs in many ways, and counts what reading them again gives.

    python tests/soak/damage.py --report benchmarks/damage.md

Each file is removed, cut at 20 lengths, and given 100 flips of a byte, one at a time. Reading must then end in an error
that names the file (ModelFileError or CorpusFileError), or give what the whole file gives. Anything else is a fault:
another error, an error that names another file, another result, a crash, or a hang.

To test further artefacts, add a line to ARTEFACTS.
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import multiprocessing
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import topicloom as tl
from topicloom.errors import SavedFileError

SECONDS = 60  # after which reading counts as a hang
GOOD = ("error that names the file", "identical")
OUTCOMES = (*GOOD, "another error", "another result", "crash", "hang")


@dataclass(frozen=True)
class Artefact:
    """Something that is saved as a file or a directory.

    Attributes:
        name: its name in the table.
        make: writes it at a path where nothing is.
        read: reads all of it that can be read, and returns what it found as nested lists, strings, numbers and arrays.
        optional: the files that it may be without, so that their absence is no damage.
    """

    name: str
    make: Callable[[Path], Any]
    read: Callable[[Path], Any]
    optional: frozenset[str] = frozenset()


# What is saved, and how it is read.


def corpus() -> tl.Corpus:
    """Return a corpus with a field of each kind."""
    texts = [f"the {a} cat sat near {b} stocks and bank rates" for a in "abcdef" for b in ("red", "green", "blue")]
    made = tl.Corpus.from_texts(
        [*texts, "蓝 cat é"],
        language="en",
        min_df=1,
        max_df=1.0,
        stop_words=None,
        ids=[f"id {row}" for row in range(19)],
        labels=["pets", "money", ""] * 6 + ["pets"],
        timestamps=[f"2021-03-{1 + row:02}" for row in range(19)],
        vectors=np.arange(57).reshape(19, 3) / 7,
        covariates={"price": np.arange(19) / 3, "place": ["here", "there", None] * 6 + ["here"]},
    )
    return made


def model(name: str, **settings: Any) -> Any:
    """Return a small fitted model."""
    return getattr(tl, name)(3, epochs=2, random_state=0, device="cpu", **settings).fit(corpus())


def edited() -> Any:
    """Return an edited model, with a step of each kind."""
    fitted = model("GSM", hidden_size=4)
    return fitted.apply([{"split": 2, "into": 2}, {"merge": [0, 1]}, {"rename": {0: "cats 猫"}}], corpus())


def write_run(folder: Path) -> None:
    """Write a run with all its files, the index and the edits of the service included."""
    from topicloom.reports import run
    from topicloom.service.live import Live
    from topicloom.topics.edits import write_edits
    from topicloom.topics.saved import EDITS

    fitted, documents = model("GSM", hidden_size=4), corpus()
    options = run.RunOptions(explorer=True)
    run.write(folder, fitted, documents, fitted.infer(documents), 1.5, options, {"path": "news.txt", "reading": {}})
    (folder / "log.jsonl").write_text('{"epoch": 1}\n')
    write_edits(folder / EDITS, [{"rename": {0: "cats 猫"}}, {"merge": [1, 2]}], fitted.fingerprint, sealed=True)
    Live.open(folder).close()


def read_model(folder: Path) -> Any:
    """Return what a saved model gives."""
    from topicloom.topics.saved import read_topics

    loaded, topics = tl.load(folder, device="cpu"), read_topics(folder)
    return [
        *(loaded.transform(corpus()), loaded.components_, loaded.vocabulary_, loaded.word_counts_, loaded.history_),
        *(repr(loaded), loaded.edits, loaded.given_names, repr(loaded.tokenizer_), loaded.document_counts_),
        *(loaded.n_documents_, topics.components, topics.word_counts, topics.vocabulary, topics.names),
    ]


def read_corpus(folder: Path) -> Any:
    """Return what a saved corpus gives."""
    return content(tl.Corpus.load(folder))


def content(found: tl.Corpus) -> Any:
    """Return all that a corpus has."""
    counts = found.counts
    place = found.covariates["place"]
    return [
        *(counts.data, counts.indices, counts.indptr, found.vocabulary, found.ids, found.labels, found.vectors),
        *(None if found.times is None else found.times.astype(np.int64), list(found.texts or [])),
        *(found.covariates["price"], place.values(), repr(found.tokenizer), found.settings),  # type: ignore[union-attr]
    ]


def read_run(folder: Path) -> Any:
    """Return what the commands and the service find in a run."""
    from topicloom.reports.run import options_of
    from topicloom.service.live import Live
    from topicloom.topics.saved import read_metrics, read_shares

    topics = tl.Topics.from_run(folder, device="cpu")
    live = Live.open(folder)
    try:
        served = [live.topics(), live.edits(), live.documents(None, "cat", None, None, 20), live.document(18)]
        served += [live.documents(1, None, None, None, 20), live.documents(None, None, "id 3", None, 20)]
    finally:
        live.close()
    metrics = read_metrics(folder)
    return [
        *(topics.documents.theta, content(topics.corpus), topics.names, read_shares(folder, 3), metrics, served),
        *(repr(options_of(folder)), read_model(folder)),
    ]


def saved(make: Callable[[], Any], folder: Path) -> None:
    """Save a model or a corpus."""
    make().save(folder)


def write_checkpoints(folder: Path) -> None:
    """Write the checkpoint with the final state of a fit."""
    model("GSM", hidden_size=4).fit(corpus(), checkpoint=folder)


def read_checkpoints(folder: Path) -> Any:
    """Return what a checkpoint has."""
    from topicloom.training.checkpoints import read_checkpoint

    found = read_checkpoint(folder / "checkpoint-1.safetensors")
    tensors = [[name, tensor.numpy()] for name, tensor in sorted(found.snapshot.tensors.items())]
    return [tensors, repr(found.snapshot.values), repr(found.identity), found.finished]


ARTEFACTS = [
    Artefact("Loom", partial(saved, partial(model, "Loom", hidden_size=4)), read_model),
    Artefact("GSM", partial(saved, partial(model, "GSM", hidden_size=4)), read_model),
    Artefact("ETM", partial(saved, partial(model, "ETM", hidden_size=4, embedding_size=4)), read_model),
    Artefact("LDA", partial(saved, partial(model, "LDA")), read_model),
    Artefact("edited model", partial(saved, edited), read_model),
    Artefact("corpus", partial(saved, corpus), read_corpus),
    Artefact("checkpoint", write_checkpoints, read_checkpoints),
    Artefact("run", write_run, read_run, frozenset({"doc_topics.csv", "edits.yaml", "explorer.html"})),
]


# Damage.


def damages(whole: bytes, draw: random.Random, cuts: int, flips: int) -> Iterator[bytes | None]:
    """Yield damaged contents of a file; None stands for no file."""
    yield None
    lengths = {0, len(whole) // 2, len(whole) - 1, *draw.choices(range(len(whole)), k=2 * cuts)} if whole else set()
    for length in draw.sample(sorted(lengths), min(cuts, len(lengths))):
        yield whole[:length]
    for _ in range(flips if whole else 0):
        changed = bytearray(whole)
        changed[draw.randrange(len(whole))] ^= draw.randrange(1, 256)
        yield bytes(changed)


def digest(value: Any) -> str:
    """Return a digest of what was read."""
    found = hashlib.sha256()

    def add(each: Any) -> None:
        if isinstance(each, np.ndarray):
            found.update(f"{each.dtype.str}{each.shape}".encode() + np.ascontiguousarray(each).tobytes())
        elif isinstance(each, list | tuple):
            found.update(b"[")
            for part in each:
                add(part)
            found.update(b"]")
        else:
            found.update(repr(each).encode("utf-8", "surrogatepass"))

    add(value)
    return found.hexdigest()


def outcome(artefact: Artefact, folder: Path, file: Path, expected: str) -> tuple[str, str]:
    """Read an artefact whose `file` is damaged; return one of OUTCOMES, and what happened."""
    try:
        found = digest(artefact.read(folder))
    except SavedFileError as error:
        if file.name in str(error) and "\n" not in str(error):
            return GOOD[0], str(error)
        return "another error", f"{type(error).__name__}: {error}"
    except Exception as error:
        return "another error", f"{type(error).__name__}: {error}"
    return ("identical", "") if found == expected else ("another result", "")


def sweep(artefact: Artefact, folder: Path, cuts: int, flips: int, seed: int = 0) -> Iterator[tuple[str, str, str]]:
    """Damage each file of an artefact in each way; yield the file, the outcome, and what happened."""
    expected = digest(artefact.read(folder))
    for file in sorted(path for path in (folder, *folder.rglob("*")) if path.is_file()):
        whole = file.read_bytes()
        name = str(file.relative_to(folder)) if file != folder else file.name
        for damaged in damages(whole, random.Random(f"{seed} {name}"), cuts, flips):
            if damaged is None and name in artefact.optional:
                continue
            if damaged is None:
                file.unlink()
            else:
                file.write_bytes(damaged)
            yield name, *outcome(artefact, folder, file, expected)
        file.write_bytes(whole)


# Each artefact is read in a process of its own, so that a crash or a hang is counted and not suffered.


def _send(artefact: Artefact, folder: Path, cuts: int, flips: int, seed: int, skip: int, pipe: Any) -> None:
    logging.disable(logging.WARNING)
    for number, found in enumerate(sweep(artefact, folder, cuts, flips, seed)):
        if number >= skip:
            pipe.send(found)
    pipe.send(None)


def watched_sweep(artefact: Artefact, cuts: int, flips: int, seed: int) -> Iterator[tuple[str, str, str]]:
    """Yield what `sweep` yields; after a crash or a hang, go on with the next damage."""
    processes = multiprocessing.get_context("spawn")
    done, last = 0, "?"
    while True:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary, "saved")
            artefact.make(folder)
            ours, theirs = processes.Pipe(duplex=False)
            process = processes.Process(target=_send, args=(artefact, folder, cuts, flips, seed, done, theirs))
            process.start()
            theirs.close()
            try:
                while True:
                    if not ours.poll(SECONDS + 240 * (done == 0)):
                        found = (last, "hang", "")
                        break
                    found = ours.recv()
                    if found is None:
                        return
                    done, last = done + 1, found[0]
                    yield found
            except EOFError:
                found = (last, "crash", f"exit code {process.exitcode}")
            finally:
                process.kill()
                process.join()
        done += 1
        yield found


def main() -> None:
    """Damage all artefacts, and print and write a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", type=Path)
    parser.add_argument("--only", nargs="*", help="names of artefacts")
    parser.add_argument("--cuts", type=int, default=20)
    parser.add_argument("--flips", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    began = time.perf_counter()
    counts: dict[tuple[str, str], Counter[str]] = {}
    for artefact in ARTEFACTS:
        if given.only and artefact.name not in given.only:
            continue
        for file, result, why in watched_sweep(artefact, given.cuts, given.flips, given.seed):
            counts.setdefault((artefact.name, file), Counter())[result] += 1
            if result not in GOOD:
                print(f"FAULT {artefact.name} {file}: {result}; {why[:300]}", flush=True)
        print(f"{artefact.name}: done after {time.perf_counter() - began:.0f} s", flush=True)
    total: Counter[str] = sum(counts.values(), Counter())
    rows = [(name, f"`{file}`", each) for (name, file), each in counts.items()] + [("all", "", total)]
    table = [["artefact", "file", *OUTCOMES], ["---", "---", *["---:"] * len(OUTCOMES)]]
    table += [[name, file, *(str(each[kind]) for kind in OUTCOMES)] for name, file, each in rows]
    lines = "\n".join(f"| {' | '.join(row)} |" for row in table)
    print(lines)
    if given.report is not None:
        given.report.write_text(
            "# Damaged files\n\n`make soak-damage` wrote this page with topicloom "
            f"{tl.__version__}. Each file was removed, cut at {given.cuts} lengths, and given {given.flips} flips of a "
            f"byte, one at a time; then everything was read again.\n\n{lines}\n",
            encoding="utf-8",
        )
    if sum(total.values()) != sum(total[kind] for kind in GOOD):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
