"""Let every operation that writes fail once, under every command that writes: the old or the new stays, and is whole.

    python tests/soak/faults.py [--only train] [--jobs 2] [--report benchmarks/faults.md]

Each command runs in a forked process, which has the modules already and writes a small picture in place of each one. A
filter of the kernel (seccomp) reports each of its system calls that opens a file for writing, writes, flushes, renames,
links, removes or makes a directory, whatever library makes it. First the calls are counted. Then the command runs again
for each of them: call number n fails as on a full or broken disk, alone ("once") or with all later ones of a full disk
("on"). After each run, the earlier result or the new one must be there and whole, the command must end with one
sentence that names the place or go on, and the same command without a fault must then succeed. (That is tried once
for faults that leave the same files.)

With --only, the rows of other commands stay in the report.

To test another command, add a line to `commands`.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import errno
import fcntl
import gc
import hashlib
import json
import multiprocessing
import os
import platform
import random
import re
import select
import shutil
import signal
import socket
import sqlite3
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass, field, fields
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

SECONDS = 600  # after which a command counts as a hang

# System calls by the machine: the number of each, its kind, and where its file is: the arguments with a directory's
# handle (None is the present directory) and with a path, or the argument with a handle.
_OPEN_FLAGS = {"open": 1, "openat": 2}
_CALLS = {
    "open": ("open", (None, 0)),
    "openat": ("open", (0, 1)),
    "creat": ("open", (None, 0)),
    "write": ("write", 0),
    "pwrite64": ("write", 0),
    "writev": ("write", 0),
    "pwritev": ("write", 0),
    "sendfile": ("write", 0),
    "copy_file_range": ("write", 2),
    "ftruncate": ("truncate", 0),
    "fallocate": ("write", 0),
    "fsync": ("fsync", 0),
    "fdatasync": ("fsync", 0),
    "rename": ("rename", (None, 1)),
    "renameat": ("rename", (2, 3)),
    "renameat2": ("rename", (2, 3)),
    "link": ("link", (None, 1)),
    "linkat": ("link", (2, 3)),
    "mkdir": ("mkdir", (None, 0)),
    "mkdirat": ("mkdir", (0, 1)),
    "unlink": ("remove", (None, 0)),
    "unlinkat": ("remove", (0, 1)),
    "rmdir": ("remove", (None, 0)),
    "chmod": ("chmod", (None, 0)),
    "fchmodat": ("chmod", (0, 1)),
}
_NUMBERS = {
    "x86_64": {
        "open": 2, "openat": 257, "creat": 85, "write": 1, "pwrite64": 18, "writev": 20, "pwritev": 296,
        "sendfile": 40, "copy_file_range": 326, "ftruncate": 77, "fallocate": 285, "fsync": 74, "fdatasync": 75,
        "rename": 82, "renameat": 264, "renameat2": 316, "link": 86, "linkat": 265, "mkdir": 83, "mkdirat": 258,
        "unlink": 87, "unlinkat": 263, "rmdir": 84, "chmod": 90, "fchmodat": 268, "seccomp": 317,
    },
    "aarch64": {
        "openat": 56, "write": 64, "pwrite64": 68, "writev": 66, "pwritev": 70, "sendfile": 71,
        "copy_file_range": 285, "ftruncate": 46, "fallocate": 47, "fsync": 82, "fdatasync": 83, "renameat": 38,
        "renameat2": 276, "linkat": 37, "mkdirat": 34, "unlinkat": 35, "fchmodat": 53, "seccomp": 277,
    },
}  # fmt: skip
# What fails, and how. Operations that need room fail as on a full disk, and others as on a broken one.
_NEED_ROOM = {"open", "write", "truncate", "link", "mkdir"}
_HERE = -100  # the handle that stands for the present directory
_WRITABLE = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CONTINUE = 1  # the flag of a reply that lets the kernel go on
_RECEIVE, _SEND = 0xC0502100, 0xC0182101  # the ioctls of seccomp's notifications
_CALL, _REPLY = struct.Struct("=QIIiIQ6Q"), struct.Struct("=QqiI")


def is_possible() -> bool:
    """Whether this system can report the calls of a process."""
    try:
        known = Path("/proc/sys/kernel/seccomp/actions_avail").read_text().split()
    except OSError:
        return False
    if "user_notif" not in known or platform.machine() not in _NUMBERS:
        return False
    with tempfile.TemporaryDirectory() as folder:
        ended = watched(lambda: os.close(os.open(f"{folder}/file", os.O_WRONLY | os.O_CREAT)), Path(folder))
    return ended.code == 0 and [point.kind for point in ended.points] == ["open"]


# The filter, and the process that decides about each call.


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))


def _filter() -> bytes:
    """Return a program of the kernel that reports the calls of _CALLS; opening for reading is not reported."""
    numbers = _NUMBERS[platform.machine()]
    load, equal, has_bits, give = 0x20, 0x15, 0x45, 0x06
    allow, report = 0x7FFF0000, 0x7FC00000
    steps = [(load, 0, 0, 0)]  # the number of the call
    for name, number in numbers.items():
        if name in _OPEN_FLAGS:
            flags = 16 + 8 * _OPEN_FLAGS[name]
            steps += [(equal, 0, 4, number), (load, 0, 0, flags), (has_bits, 0, 1, _WRITABLE), (give, 0, 0, report)]
            steps += [(give, 0, 0, allow)]
        elif name in _CALLS:
            steps += [(equal, 0, 1, number), (give, 0, 0, report)]
    steps.append((give, 0, 0, allow))
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def _report_calls() -> int:
    """Put this process under the filter, and return the handle from which its calls are read."""
    library = ctypes.CDLL(None, use_errno=True)
    steps = ctypes.create_string_buffer(_filter())
    program = _Program((len(steps) - 1) // 8, ctypes.addressof(steps))
    if library.prctl(38, 1, 0, 0, 0):  # no new privileges
        raise OSError(ctypes.get_errno(), "prctl")
    handle = library.syscall(_NUMBERS[platform.machine()]["seccomp"], 1, 8, ctypes.byref(program))
    if handle < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    return int(handle)


@dataclass(frozen=True)
class Point:
    """An operation that writes: its kind, its system call, and the file below the watched folder."""

    kind: str
    call: str
    file: str


@dataclass
class Ended:
    """How a watched process ended: its exit code, what it wrote to its outputs, and its operations."""

    code: int
    output: str
    points: list[Point] = field(default_factory=list)
    failed: Point | None = None  # the first one that was made to fail
    hung: bool = False


def watched(action: Callable[[], Any], folder: Path, number: int | None = None, on: bool = False) -> Ended:
    """Call `action` in a process of its own, and let one of its operations fail.

    Args:
        action: what the process does.
        folder: operations outside this folder are not counted.
        number: the operation that fails, from 0; None lets all succeed.
        on: whether later operations that need room fail as well.
    """
    ours, theirs = socket.socketpair()
    output = tempfile.TemporaryFile()  # noqa: SIM115  # it is closed below
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # it ends with the process that decides
            socket.send_fds(theirs, [b"calls"], [_report_calls()])
            code = int(action() or 0)
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            with suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)
    theirs.close()
    _, handles, _, _ = socket.recv_fds(ours, 16, 1)
    ours.close()
    found = Ended(1, "")
    if handles:
        found.hung = not _decide(handles[0], folder, number, on, found)
        os.close(handles[0])
    if found.hung:
        os.kill(child, signal.SIGKILL)
    found.code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    output.seek(0)
    found.output = output.read().decode("utf-8", "replace")
    output.close()
    return found


def _decide(handle: int, folder: Path, number: int | None, on: bool, found: Ended) -> bool:
    """Answer all reported calls until the last process under the filter has ended; whether that was in time."""
    names = {number: name for name, number in _NUMBERS[platform.machine()].items()}
    deadline = time.monotonic() + SECONDS
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    root = f"{os.path.realpath(folder)}/"
    while time.monotonic() < deadline:
        for _, event in poll.poll(1000):
            if event & select.POLLHUP and not event & select.POLLIN:
                return True
            request = bytearray(80)
            try:
                fcntl.ioctl(handle, _RECEIVE, request)
            except OSError:  # the process ended meanwhile
                continue
            mark, process, _, called, _, _, *arguments = _CALL.unpack(request)
            error = 0
            kind, place = _CALLS[names[called]]
            file = _file(process, place, arguments)
            if file is not None and file.startswith(root):
                now = len(found.points)
                found.points.append(Point(kind, names[called], file.removeprefix(root)))
                if number is not None and (now == number or (on and now > number and kind in _NEED_ROOM)):
                    found.failed = found.failed or found.points[-1]
                    error = errno.ENOSPC if kind in _NEED_ROOM else errno.EIO
            with suppress(OSError):
                fcntl.ioctl(handle, _SEND, _REPLY.pack(mark, 0, -error, 0 if error else _CONTINUE))
    return False


def _file(process: int, place: Any, arguments: list[int]) -> str | None:
    """Return the path of the file that a call is about, or None for what is no file."""
    try:
        if isinstance(place, int):
            path = os.readlink(f"/proc/{process}/fd/{arguments[place]}")
            return path if path.startswith("/") else None
        with open(f"/proc/{process}/mem", "rb", 0) as memory:
            memory.seek(arguments[place[1]])
            name = os.fsdecode(memory.read(4096).split(b"\0")[0])
        start = _HERE if place[0] is None else ctypes.c_int(arguments[place[0]]).value
        base = os.readlink(f"/proc/{process}/cwd" if start == _HERE else f"/proc/{process}/fd/{start}")
        return os.path.normpath(os.path.join(base, name))
    except OSError:
        return None


# The commands.


@dataclass(frozen=True)
class Command:
    """A command whose operations fail, in a present directory with the files of `base`.

    Attributes:
        action: does the work, and returns the exit code, or None for 0.
        out: what is written, which the sentence of an error must name.
        state: reads all of the result, and returns it, or None where there is none. Raises on what is not whole.
        earlier: makes the earlier result; None begins without one.
        again: goes on after a fault; None is `action`.
        says: what it says where it succeeds although the result could not be stored.
        grows: whether the result is a set that grows by parts, such as the fits of a comparison.
    """

    action: Callable[[], Any]
    out: str
    state: Callable[[], Any]
    earlier: Callable[[], Any] | None = None
    again: Callable[[], Any] | None = None
    says: str | None = None
    grows: bool = False


def topicloom(*arguments: str) -> Callable[[], Any]:
    """Return a call of the command line."""

    def call() -> None:
        sys.argv = ["topicloom", *arguments]
        import_module("topicloom.cli").app(list(arguments), prog_name="topicloom")

    return call


def of_run(folder: str) -> Any:
    """Return what tells the runs in a folder apart, or None without one. All of the run is read."""
    import topicloom as tl

    if not Path(folder, "model").exists():
        return None
    topics = tl.Topics.from_run(folder, device="cpu")
    tables = [of_file(f"{folder}/{name}") for name in ("topics.csv", "doc_topics.csv")]
    assert None not in tables, "a table is missing"
    return topics.model.fingerprint, topics.names, len(topics.corpus), topics.documents.theta.tobytes(), *tables


def of_ratings(folder: str) -> Any:
    """Return how many ratings a run keeps beside its topics, or None without one. All of the run is read."""
    from topicloom.topics.language_model import LanguageModelAnswers
    from topicloom.topics.saved import ANSWERS

    assert of_run(folder) is not None, "the run has no model"
    return len(LanguageModelAnswers(Path(folder, ANSWERS)).ratings) or None


def of_corpus(folder: str) -> Any:
    import topicloom as tl

    if not Path(folder).exists():
        return None
    corpus = tl.Corpus.load(folder, verify=True)
    return corpus.counts_digest, list(corpus.texts or [])


def of_file(name: str) -> Any:
    """Return the content of a file, or None without one."""
    return Path(name).read_bytes() if Path(name).exists() else None


def of_page(name: str) -> Any:
    """Return whether a page is there, which ends as it should. It has times, so its content is not compared."""
    content = of_file(name)
    assert content is None or content.rstrip().endswith(b"</html>"), "the page is not whole"
    return content is not None


def of_pictures(folder: str) -> Any:
    """Return the names of the pictures in a folder, of which each is read whole."""
    from PIL import Image

    found = []
    for path in sorted(Path(folder).glob("*.png")):
        with Image.open(path) as picture:
            picture.load()
        found.append(path.name)
    return set(found)


def of_comparison(folder: str) -> Any:
    """Return the fits of a comparison, without their times."""
    from soak.kills import fits, untimed

    return {json.dumps(untimed(json.loads(row)), sort_keys=True) for row in fits(Path(folder))}


def of_search(folder: str) -> Any:
    """Return the settings and values of the finished trials of a search."""
    from soak.kills import trials

    return {each[1:] for each in trials(Path(folder))}


def of_measures(folder: str) -> Any:
    """Return the evaluations that a run has."""
    from topicloom.topics.saved import read_metrics

    return tuple(read_metrics(Path(folder)).get("evaluations", {}))


def of_edits(folder: str) -> Any:
    """Return the edits that the service finds in a run."""
    from topicloom.service.live import Live

    live = Live.open(Path(folder))
    try:
        return repr(live.edits()["edits"])
    finally:
        live.close()


def of_index(folder: str) -> Any:
    """Return whether a run has an index of its documents, which must be whole."""
    file = Path(folder, "search.sqlite")
    if not file.exists():
        return False
    with contextlib.closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("SELECT count(*) FROM documents").fetchone() == (N_LINES,)
    return True


def of_vectors(folder: str) -> Any:
    """Return a corpus whose texts have vectors."""
    import topicloom as tl

    return tl.Corpus.load(folder).vectors[:].tobytes() if Path(folder).exists() else None


def with_language_model(*arguments: str) -> Callable[[], Any]:
    """Return a call of the command line with a language model, which gives every topic a name."""

    def call() -> None:
        from stub_service import StubHandler, served

        class Handler(StubHandler):
            def do_POST(self) -> None:
                words = re.search(r"Words: ([^,\n]+)", self.body()["messages"][-1]["content"])
                word = words[1] if words else ""
                text = json.dumps({"name": "a name", "sentence": "A sentence.", "word": word, "documents": [1]})
                self.respond(200, {"choices": [{"message": {"content": text}}]})

        with served(Handler) as address:
            topicloom(*arguments, "--llm", address, "--model", "stub")()

    return call


def started() -> None:
    """Start the service and read a document."""
    from topicloom.service.live import Live

    live = Live.open(Path("run"))
    live.document(0)
    live.close()


def edited(name: str) -> Callable[[], int]:
    """Return a request to the service that names a topic. A refusal is printed as the command line does."""

    def call() -> int:
        from starlette.testclient import TestClient

        from topicloom.service import make_app
        from topicloom.service.live import Live

        live = Live.open(Path("run"))
        with TestClient(make_app(live), base_url="http://localhost", raise_server_exceptions=False) as client:
            answer = client.post("/api/edits", json={"edits": [{"rename": {"0": name}}]})
        live.close()
        if answer.status_code == 200:
            return 0
        assert answer.json()["error"], answer.text
        print(f"topicloom: error: {answer.json()['error']}", file=sys.stderr)
        return 2

    return call


def stopped() -> None:
    """Train until Ctrl-C after the first epoch, which leaves a checkpoint."""
    from topicloom.reports import run

    def stop(log: Any, row: Any) -> None:
        raise KeyboardInterrupt

    run._Log.on_epoch = stop  # of this forked process
    with suppress(SystemExit):
        topicloom(*PLAIN)()


OUT = "run-2"  # the directory that most commands write
N_LINES = 40
READ = ("--text", "text", "--label", "label", "--timestamp", "date", "--language", "en", "--min-df", "1", "--quiet")
FIT = ("--model", "gsm", "--topics", "3", "--epochs", "2", "--monitor", "none", "--device", "cpu")
TRAIN = ("train", "news.csv", *FIT, *READ, "--out", OUT)
PLAIN = (*TRAIN, "--no-explorer")
DROPPING = (
    "--split-texts", "sentences", "--preset", "social", "--phrases", "--drop-duplicates", "--drop-boilerplate",
)  # fmt: skip
SEARCH = ("--topics", "2", *READ, "--out", OUT)
EXPORTS = {
    "topics": "topics.csv", "words": "words.csv", "documents": "documents.parquet", "pyldavis": "pyldavis.json",
    "topicwizard": "wizard.joblib", "datamapplot": "map.npz", "word2vec": "vectors.txt",
}  # fmt: skip


def commands() -> dict[str, Command]:
    """Return the commands that write, by name."""
    new = partial(of_run, OUT)
    to_out = ("--out", OUT, "--overwrite", "--quiet")
    named = without_pictures(topicloom("name", "plain", "--out", OUT, "--quiet"))
    old = without_pictures(topicloom(*PLAIN, "--seed", "1"))
    resumed = without_pictures(topicloom(*PLAIN, "--resume"))
    further = ("train", "--continue", OUT, "--epochs", "+1", "--quiet")
    prepared = ("prepare", "news.csv", *READ, "--out", OUT)
    pictures = ("figures", "run", "--kind", "sparsity,similarity", "--out", "pictures", "--quiet")

    def to_file(*arguments: str, file: str) -> Command:
        return Command(topicloom(*arguments, file, "--quiet"), file, partial(of_file, file))

    return {
        "prepare": Command(
            topicloom(*prepared, "--overwrite"), OUT, partial(of_corpus, OUT), topicloom(*prepared, "--min-df", "10")
        ),
        "prepare with options": Command(
            topicloom(*prepared, *DROPPING, "--overwrite"), OUT, partial(of_corpus, OUT),
            topicloom(*prepared, "--min-df", "10"),
        ),
        "prepare --encoder": Command(
            topicloom(*prepared, "--encoder", "encoder:encode"), OUT, partial(of_vectors, OUT),
            again=topicloom(*prepared, "--encoder", "encoder:encode", "--overwrite"),
        ),
        "train": Command(topicloom(*TRAIN), OUT, new, again=topicloom(*TRAIN, "--resume")),
        "train --resume": Command(resumed, OUT, new, stopped),
        "train --overwrite": Command(
            without_pictures(topicloom(*PLAIN, "--overwrite", "--checkpoint-every", "1 epoch")), OUT, new, old,
            without_pictures(topicloom(*PLAIN, "--overwrite")),
        ),
        "train --continue": Command(
            without_pictures(topicloom(*further)), OUT, new, old, without_pictures(topicloom(*further, "--resume"))
        ),
        "edit": Command(
            without_pictures(topicloom("edit", "plain", "--merge", "0,1", "--out", OUT, "--quiet", "--overwrite")), OUT,
            new, named,
        ),
        "name": Command(named, OUT, new),
        "name --llm": Command(
            without_pictures(with_language_model("name", "plain", "--out", OUT, "--quiet")), OUT, new,
            again=without_pictures(with_language_model("name", "plain", "--out", OUT, "--quiet", "--overwrite")),
            says="the answers are not kept",
        ),
        "update": Command(
            without_pictures(topicloom("update", "plain", "news.csv", "--keep-repeated", *to_out)), OUT, new, named
        ),
        "merge": Command(
            without_pictures(topicloom("merge", "run", "plain", "--keep-repeated", *to_out)), OUT, new, named
        ),
        "rate": Command(
            with_language_model("rate", "plain", "--quiet"), "plain", partial(of_ratings, "plain"),
            says="the answers are not kept",
        ),
        "infer": to_file("infer", "run", "more.txt", "--out", file="topics.csv"),
        "infer to .parquet": to_file("infer", "run", "more.txt", "--out", file="topics.parquet"),
        "evaluate": Command(
            topicloom("evaluate", "run", "--quiet"), "run", partial(of_measures, "run"),
            says="the results are not stored",
        ),
        "trends": to_file("trends", "run", "--samples", "20", "--out", file="trends.csv"),
        "by": to_file("by", "run", "--samples", "20", "--out", file="by.xlsx"),
        "hierarchy": to_file("hierarchy", "run", "--out", file="tree.json"),
        "match": to_file("match", "run", "run", "--out", file="matches.tex"),
        "match --edits": Command(
            topicloom("match", "run", OUT, "--edits", "names.yaml", "--quiet"), "names.yaml",
            partial(of_file, "names.yaml"), named,
        ),
        "explore": Command(
            topicloom("explore", "run", "--out", "page.html", "--quiet"), "page.html", partial(of_page, "page.html")
        ),
        "figures": Command(
            topicloom(*pictures), "pictures", partial(of_pictures, "pictures"),
            again=topicloom(*pictures, "--overwrite"), grows=True,
        ),
        **{
            f"export --to {kind}": to_file("export", "run", "--to", kind, "--out", file=file)
            for kind, file in EXPORTS.items()
        },
        "vectors": to_file(
            "vectors", "news.csv", "--text", "text", "--size", "4", "--epochs", "1", "--min-df", "1", "--out",
            file="vectors.txt",
        ),
        "compare": Command(
            topicloom("compare", "news.csv", "--models", "gsm:epochs=1,lda:epochs=1", "--seeds", "1", *SEARCH), OUT,
            partial(of_comparison, OUT), grows=True,
        ),
        "compare --keep-models": Command(
            topicloom("compare", "news.csv", "--models", "gsm:epochs=1", "--seeds", "1", "--keep-models", *SEARCH), OUT,
            partial(of_comparison, OUT), grows=True,
        ),
        "tune": Command(
            topicloom("tune", "news.csv", "--model", "gsm:epochs=1", "--trials", "2", *SEARCH), OUT,
            partial(of_search, OUT), grows=True,
        ),
        "serve": Command(started, "run", partial(of_index, "run"), says="the index is in"),
        "serve: an edit": Command(edited("new"), "run", partial(of_edits, "run"), edited("old")),
    }  # fmt: skip


def write_base(folder: Path, run: bool = True) -> None:
    """Write the files that the commands read: texts, an encoder, and the run of a model."""
    drawn = random.Random(0)
    kinds = [[f"{kind}{number}" for number in range(20)] for kind in ("cat", "bank", "rain")]
    texts = [" ".join(drawn.choices(kinds[number % 3], k=25)) for number in range(N_LINES)]
    rows = [f"{text},{number % 3},20{number % 20 + 10}-01-01\n" for number, text in enumerate(texts)]
    (folder / "news.csv").write_text("text,label,date\n" + "".join(rows), encoding="utf-8")
    (folder / "more.txt").write_text("\n".join(texts[:10]) + "\n", encoding="utf-8")
    encoder = "def encode(texts):\n    return [[len(text), 1.0] for text in texts]\n"
    (folder / "encoder.py").write_text(encoder, encoding="utf-8")
    if run:
        _run_in(folder, topicloom(*TRAIN, "--out", "run"))
        _run_in(folder, without_pictures(topicloom(*PLAIN, "--out", "plain")))
        _import_same(folder)
        _fill_caches(folder)


def _run_in(folder: Path, action: Callable[[], Any], number: int | None = None, on: bool = False) -> Ended:
    """Do something in a process whose present directory is `folder`. Without a fault, it must succeed."""

    def here() -> Any:
        os.chdir(folder)
        _replace_pictures()
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder.parent)  # which is another disk, as it were
        try:
            return action()
        finally:
            if number is None:
                (folder.parent / "modules").write_text("\n".join(sys.modules), encoding="utf-8")

    ended = watched(here, folder, number, on)
    if number is None and ended.code:
        raise RuntimeError(f"the command failed without a fault: {ended.code} {ended.output[-2000:]}")
    return ended


def _import_same(folder: Path) -> None:
    """Import what the last process of `_run_in` had imported, so that later ones need not."""
    for name in (folder.parent / "modules").read_text(encoding="utf-8").split():
        if name.split(".")[0] not in ("__main__", "encoder"):
            with suppress(Exception):  # such as a module that a library makes as it runs
                import_module(name)


def _fill_caches(folder: Path) -> None:
    """Let this process compute what a page needs once in each process."""
    import topicloom as tl
    from topicloom.reports.explorer.page import tokenizer_settings

    tokenizer_settings(tl.load(folder / "run").tokenizer_)


def _replace_pictures() -> None:
    """Let matplotlib write a small picture in this process instead of drawing, by the same means."""
    from matplotlib.figure import Figure
    from PIL import Image

    drawn = Image.frombytes("L", (128, 128), random.Random(0).randbytes(128 * 128))

    def save(figure: Figure, target: Any, format: str = "png", **others: Any) -> None:
        if format == "svg":
            target.write("<svg></svg>")
        else:
            drawn.save(target, format=format)

    Figure.savefig = save


def without_pictures(action: Callable[[], Any]) -> Callable[[], Any]:
    """Return an action that writes runs without pictures, which other commands write."""

    def call() -> Any:
        from topicloom.reports import run

        run._draw = lambda *arguments: None
        return action()

    return call


# The faults.


@dataclass
class Counts:
    """What the faults of one command gave. The last three should be 0."""

    operations: int = 0
    points: int = 0  # operations that were made to fail, each once and, where it needs room, with all later ones
    refused: int = 0  # ended with one sentence
    passed: int = 0  # went on, and the new result is there
    lost: int = 0
    unclear: int = 0  # a traceback, several sentences, one that does not name the place, or another exit code
    stuck: int = 0  # a hang, or the command without a fault did not succeed afterwards, or left files behind
    seconds: int = 0

    @property
    def faults(self) -> int:
        return self.lost + self.unclear + self.stuck


class Sweep:
    """The faults of one command.

    Args:
        name: the command.
        base: a folder that `write_base` filled. What the commands write is beside it.
        say: gets a line about each fault of the package.
    """

    def __init__(self, name: str, base: Path, say: Callable[[str], None] = print) -> None:
        self.name, self.command, self.say = name, commands()[name], say
        self.began = time.monotonic()
        self._left: set[bytes] = set()
        self.home = Path(tempfile.mkdtemp(dir=base.parent))
        self.start = self.home / "start"
        shutil.copytree(base, self.start)
        if self.command.earlier is not None:
            _run_in(self.start, self.command.earlier)
        self.old = self._state(self.start)
        with self._place() as place:
            self.points = _run_in(place, self.command.action).points
            _import_same(place)
            self.new = self._state(place)
        assert self.new != self.old, "the command changes nothing"
        self.counts = Counts(len(self.points))

    def run(self, numbers: Iterable[int] | None = None) -> Counts:
        """Let these operations fail, or all of them, and return what happened."""
        for number in range(len(self.points)) if numbers is None else numbers:
            self._fail(number, on=False)
            if self.points[number].kind in _NEED_ROOM:
                self._fail(number, on=True)
        shutil.rmtree(self.home)
        self.counts.seconds = round(time.monotonic() - self.began)
        return self.counts

    @contextmanager
    def _place(self) -> Iterator[Path]:
        place = Path(tempfile.mkdtemp(dir=self.home))
        try:
            shutil.copytree(self.start, place, dirs_exist_ok=True, symlinks=True)
            yield place
        finally:
            shutil.rmtree(place)

    def _state(self, place: Path) -> Any:
        """Return the result in a folder. It is read in this process, which has the modules already."""
        before = os.getcwd()
        os.chdir(place)
        try:
            return self.command.state()
        finally:
            os.chdir(before)

    def _fail(self, number: int, on: bool) -> None:
        with self._place() as place:
            ended = _run_in(place, self.command.action, number, on)
            if ended.failed is None:  # the operations of this run were others, and there was no such number
                return
            self.counts.points += 1
            what = self._fault(ended, place)
            if what is None:
                return
            setattr(self.counts, what[0], getattr(self.counts, what[0]) + 1)
            how = "on" if on else "once"
            point = ended.failed
            text = f"{self.name}: {point.call} {point.file} ({number}, {how}): {what[0]}; {what[1]}"
            self.say(text + "".join(f"\n    {line}" for line in ended.output.strip().splitlines()[-12:]))

    def _is_new(self, place: Path) -> bool:
        """Whether no earlier fault left the same files, but for digits, which are those of times and processes."""
        content = hashlib.sha256()
        for path in sorted(place.rglob("*")):
            content.update(f"{path.relative_to(place)} {path.is_file()}".encode())
            if path.is_file():
                content.update(re.sub(rb"[-+]?[0-9][0-9.e+-]*", b"0", path.read_bytes()))
        is_new = content.digest() not in self._left
        self._left.add(content.digest())
        return is_new

    def _fault(self, ended: Ended, place: Path) -> tuple[str, str] | None:
        """Return what is wrong after a fault, as the name of a count and an explanation; None if all is well."""
        errors = re.findall(r"(?m)^topicloom: error: (.*)$", ended.output)
        if ended.hung:
            return "stuck", "the command hangs"
        if "Traceback" in ended.output or "Error: " in ended.output.replace("topicloom: error: ", ""):
            return "unclear", "a traceback"
        if ended.code not in (0, 2) or len(errors) != (ended.code == 2):
            return "unclear", f"exit code {ended.code} and {len(errors)} sentences"
        named = rf"(^|[ /'])({re.escape(self.command.out)}|{re.escape(place.name)})(?![\w-])"
        if not all(re.search(named, each) for each in errors):
            return "unclear", "the sentence does not name the place"
        try:
            state = self._state(place)
            elsewhere = re.search(r"the run is in (\S+): move it", ended.output)
            if elsewhere and of_run(elsewhere[1]) is None:
                return "lost", "the run is not where the message says"
        except Exception as error:
            return "lost", f"what is there is not whole: {error}"
        if self.command.grows:
            good = self.old <= state <= self.new and (ended.code == 2 or state == self.new)
        else:
            said = self.command.says is not None and self.command.says in ended.output
            good = state == self.new or (state == self.old and (ended.code == 2 or said))
        if not good:
            return "lost", f"exit code {ended.code}, and the result is neither the old nor the new one"
        self.counts.refused += ended.code == 2
        self.counts.passed += ended.code == 0
        if state == self.new or not self._is_new(place):
            return None
        try:
            _run_in(place, self.command.again or self.command.action)
            if self._state(place) != self.new:
                return "stuck", "the same command without a fault gives another result"
        except Exception as error:
            return "stuck", f"the same command without a fault: {error}"
        left = [path.name for path in place.glob(".*") if path.name != ".vectors"]  # what was encoded is kept
        return ("stuck", f"{left} is left") if left else None


_ROW = re.compile(r"\| `(.*)` \| ([\d,]+(?: \| [\d,]+)*) \|")


def read_report(text: str) -> dict[str, Counts]:
    """Return the counts of a page that `report` wrote."""
    rows = [(row[1], row[2].replace(",", "").split(" | ")) for row in map(_ROW.fullmatch, text.splitlines()) if row]
    return {name: Counts(*map(int, values)) for name, values in rows if len(values) == len(fields(Counts))}


def report(counts: dict[str, Counts]) -> str:
    """Return the page with what happened."""
    import topicloom as tl

    total = Counts(*(sum(values) for values in zip(*(astuple(each) for each in counts.values()), strict=True)))
    rows = [
        f"| {name} | {' | '.join(f'{value:,}' for value in astuple(each))} |"
        for name, each in [*((f"`{name}`", each) for name, each in counts.items()), ("all", total)]
    ]
    return "\n".join(
        [
            "# Operations that fail while files are written",
            "",
            f"`make soak-io` wrote this page with topicloom {tl.__version__} and Python {platform.python_version()}. "
            f"Every operation of each command failed: opening, writing, flushing, renaming, linking and removing "
            "files, making directories and setting permissions. Operations that need room failed alone, and then with "
            f"all later ones. That makes {total.points:,} faults, each in a run of its own. `refused` ended with one "
            "sentence that names the place; `passed` went on and gave the new result, or said that it is not stored. "
            "`lost` (neither the old nor the new result is there, whole), `unclear` (a traceback, or not one sentence "
            "that names the place) and `stuck` (a hang, or the same command fails afterwards) should be 0. "
            "Each picture was a small one that is the same for all.",
            "",
            "| command | operations | faults | refused | passed | lost | unclear | stuck | seconds |",
            "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
            *rows,
            "",
        ]
    )


def swept(name: str, base: Path, most: int | None = None) -> Counts:
    """Let the operations of a command fail, or `most` of them at equal distances, and say what happens."""
    sweep = Sweep(name, base)
    gc.collect()
    gc.freeze()  # forked processes need not copy the memory of objects
    n_points = len(sweep.points)
    print(f"{name}: {n_points} operations", flush=True)
    n_chosen = min(n_points, most or n_points)
    counts = sweep.run(sorted({n_points * each // n_chosen for each in range(n_chosen)}))
    print(f"{name}: {counts}", flush=True)
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=commands(), help="this command; repeatable")
    parser.add_argument("--most", type=int, help="let only so many operations of each command fail; nothing is written")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="commands at a time")
    parser.add_argument("--report", type=Path, help="the Markdown file for the counts")
    given = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parents[1]))
    if not is_possible():
        sys.exit("this needs Linux, on x86_64 or aarch64, with seccomp's notifications")
    keeps = given.only and given.report is not None and given.report.exists()
    counts = read_report(given.report.read_text(encoding="utf-8")) if keeps else {}
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary, "base")
        base.mkdir()
        write_base(base)
        with ProcessPoolExecutor(given.jobs, multiprocessing.get_context("fork")) as pool:
            futures = {pool.submit(swept, name, base, given.most): name for name in given.only or commands()}
            for future in as_completed(futures):
                counts[futures[future]] = future.result()
                if given.report is not None and given.most is None:
                    known = {name: counts[name] for name in commands() if name in counts}
                    given.report.write_text(report(known), encoding="utf-8")
    sys.exit(any(counts[name].faults for name in futures.values()))


if __name__ == "__main__":
    main()
