"""Measure the service: its speed with 8 clients at once, and whether it withstands minutes of mixed requests.

    python benchmarks/serve.py [--minutes 10] [--hostile-minutes 5] [--seconds 10] [RUN]

In the last minutes, hostile clients send what no honest one does (serve_hostile.py), while an honest one goes on.

The load stays on this machine and is bounded. The figures are written to benchmarks/serve.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

import topicloom as tl
from serve_hostile import attack
from topicloom.reports.run import fit, write

CLIENTS = 8
SOAK_RATE = 120  # requests per second
HONEST_RATE = 10  # requests per second of the honest client among hostile ones
TARGET = Path(__file__).with_suffix(".md")
Request = bytes
Draw = Callable[[random.Random], Request]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", nargs="?", type=Path, help="a run with documents; one of python_docs by default")
    parser.add_argument("--minutes", type=float, default=10.0, help="minutes of mixed requests")
    parser.add_argument("--hostile-minutes", type=float, default=5.0, help="minutes of hostile requests")
    parser.add_argument("--seconds", type=float, default=10.0, help="seconds of each measurement of speed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = options.run or make_run(Path(folder) / "run")
        with Server(run) as server:
            lines = measure(server, run, options.seconds, 60 * options.minutes, 60 * options.hostile_minutes)
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


def make_run(path: Path) -> Path:
    corpus = tl.datasets.python_docs()
    model = tl.Loom(20, random_state=0, verbose=False)
    seconds = fit(model, corpus)
    write(path, model, corpus, model.infer(corpus), seconds)
    return path


class Server:
    """A process of `topicloom serve` on a free port of this machine."""

    def __init__(self, run: Path) -> None:
        command = [sys.executable, "-m", "topicloom", "serve", str(run), "--port", "0"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if "serving on " in line:
                self.port = int(line.rpartition(":")[2])
                return
        raise SystemExit("the server did not start")

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(30)

    def usage(self) -> tuple[float, float]:
        """CPU seconds so far, and resident memory in MiB, without asking the service."""
        files = Path(f"/proc/{self.process.pid}")
        times = (files / "stat").read_text().rpartition(")")[2].split()[11:13]
        pages = int((files / "statm").read_text().split()[1])
        return sum(map(int, times)) / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGE_SIZE") / 2**20


class Client:
    """A connection that asks one request after another. It parses little, to leave the processor to the server."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, request: Request) -> tuple[int, bytes]:
        self.socket.sendall(request)
        received = bytearray()
        while (end := received.find(b"\r\n\r\n")) < 0:
            received += self._more()
        length = int(bytes(received[:end]).lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        while len(received) < end + 4 + length:
            received += self._more()
        return int(received[9:12]), bytes(received[end + 4 :])

    def _more(self) -> bytes:
        block = self.socket.recv(1 << 16)
        if not block:
            raise ConnectionError("the server closed the connection")
        return block


def get(path: str) -> Request:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def post(path: str, value: Any) -> Request:
    body = json.dumps(value).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return f"{head}\r\n\r\n".encode() + body


@dataclass
class Load:
    """The seconds of each answer, the statuses and the failures, and the CPU seconds of the server."""

    seconds: float
    times: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    cpu: float = 0.0

    def row(self, name: str) -> str:
        times = np.array(self.times) * 1e3
        middle, late, latest = np.percentile(times, [50, 95, 99])
        rate, cpu = len(times) / self.seconds, 1e3 * self.cpu / len(times)
        return f"| {name} | {rate:.0f} | {middle:.1f} | {late:.1f} | {latest:.1f} | {cpu:.2f} |"


def drive(
    server: Server,
    draw: Draw,
    seconds: float,
    n: int = CLIENTS,
    rate: float | None = None,
) -> Load:
    """Let n clients ask for so many seconds: each as soon as it has its answer, or all together at a rate."""
    load, cpu = Load(seconds), server.usage()[0]
    start = time.perf_counter()

    def work(number: int) -> None:
        client, chance = Client(server.port), random.Random(number)
        due = start + (number / rate if rate else 0)
        while time.perf_counter() < start + seconds:
            request = draw(chance)
            if rate:
                time.sleep(max(0.0, due - time.perf_counter()))
            began = time.perf_counter() if not rate else max(due, start)  # a late start counts as waiting
            due += n / rate if rate else 0
            try:
                status, _ = client.ask(request)
            except OSError as error:
                load.failures.append(repr(error))
                client = Client(server.port)
                continue
            load.times.append(time.perf_counter() - began)
            load.statuses[status] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    load.seconds, load.cpu = time.perf_counter() - start, server.usage()[0] - cpu
    return load


def measure(server: Server, run: Path, seconds: float, soak: float, hostile: float) -> list[str]:
    corpus = tl.Topics.from_run(run).corpus
    texts = [" ".join(text.split()[:30]) for text in corpus.texts or ()]
    words = corpus.vocabulary[: min(500, corpus.n_words)]
    n_topics = len(json.loads(Client(server.port).ask(get("/api/topics"))[1])["topics"])

    def one(chance: random.Random) -> Request:
        return post("/api/infer", {"texts": [chance.choice(texts)]})

    def twenty(chance: random.Random) -> Request:
        return post("/api/infer", {"texts": chance.choices(texts, k=20)})

    def search(chance: random.Random) -> Request:
        return get(f"/api/documents?q={quote(chance.choice(words))}&topic={chance.randrange(n_topics)}")

    def mixed(chance: random.Random) -> Request:
        kinds: list[Callable[[], Request]] = [
            lambda: one(chance),
            lambda: twenty(chance),
            lambda: search(chance),
            lambda: get(f"/api/documents?q={quote(chance.choice(words))}"),
            lambda: get(f"/api/documents?topic={chance.randrange(n_topics)}"),
            lambda: get(f"/api/documents/{chance.randrange(corpus.n_docs)}"),
            lambda: get("/api/topics"),
            lambda: get("/health"),
            lambda: get("/metrics"),
            lambda: get("/api/documents/99999999"),
            lambda: post("/api/infer", {"texts": "no list"}),
        ]
        return chance.choices(kinds, weights=[8, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1])[0]()

    lines = [
        "# The service",
        "",
        f"`make soak-serve` on {os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}. The "
        f"run has {corpus.n_docs:,} documents, {corpus.n_words:,} words and {n_topics} topics. The texts are the first "
        f"30 words of documents. {CLIENTS} clients ask at once, from another process of the same machine.",
        "",
        f"The load of the machine (average over one minute, before the measurements): {os.getloadavg()[0]:.1f}.",
        "",
    ]
    lines += equality(server, run, texts)
    drive(server, one, 2)  # to warm up
    lines += [
        "| requests | per second | median ms | 95% ms | 99% ms | CPU ms of the server for one |",
        "|---|---|---|---|---|---|",
        drive(server, one, seconds, n=1).row("one text, one client"),
        drive(server, one, seconds, rate=200).row("one text, 200 requests per second"),
        drive(server, one, seconds).row("one text, as fast as answers come"),
        drive(server, twenty, seconds).row("20 texts"),
        drive(server, search, seconds).row("documents of a topic with a word"),
        "",
        "CPU time includes that of waiting for caches and cores that other processes use.",
        "",
    ]
    return lines + soaked(server, mixed, soak) + attacked(server, one, hostile)


def equality(server: Server, run: Path, texts: list[str]) -> list[str]:
    """Compare answers with `transform`, while other clients ask too."""
    model, client = tl.load(run, device="cpu"), Client(server.port)
    background = threading.Thread(
        target=drive, args=(server, lambda _: post("/api/infer", {"texts": texts[:20]}), 3.0, 4)
    )
    background.start()
    largest = 0.0
    for start in range(0, 200, 5):
        asked = texts[start : start + 1 + start % 3]
        found = json.loads(client.ask(post("/api/infer", {"texts": asked}))[1])["documents"]
        theta = np.array([each["theta"] for each in found], np.float32)
        largest = max(largest, float(np.abs(theta - model.transform(asked)).max()))
    background.join()
    return [f"The largest difference of theta from that of `transform`, while other clients asked: {largest:g}.", ""]


def soaked(server: Server, mixed: Draw, seconds: float) -> list[str]:
    memory: list[float] = []
    done = threading.Event()

    def watch() -> None:
        while not done.wait(min(10.0, seconds / 10)):
            memory.append(server.usage()[1])

    watcher = threading.Thread(target=watch)
    watcher.start()
    load = drive(server, mixed, seconds, rate=SOAK_RATE)
    done.set()
    watcher.join()
    expected = {200, 404, 422}
    wrong = {status: count for status, count in load.statuses.items() if status not in expected}
    quarter = max(1, len(memory) // 4)
    second, last = np.median(memory[quarter : 2 * quarter]), np.median(memory[-quarter:])
    return [
        f"## {seconds / 60:.3g} minutes of mixed requests",
        "",
        f"{len(load.times):,} requests at {SOAK_RATE} per second: inference of one and of 20 texts, searches, pages of "
        "topics, documents, topics, measures, and mistakes, which get 404 and 422.",
        "",
        f"- statuses: {', '.join(f'{status}: {count:,}' for status, count in sorted(load.statuses.items()))}",
        f"- failures: {len(load.failures)}; other statuses than expected: {wrong or 'none'}",
        f"- median {1e3 * np.median(load.times):.1f} ms, 99% {1e3 * np.percentile(load.times, 99):.1f} ms",
        f"- resident memory, median of the second and of the last quarter: {second:.0f} and {last:.0f} MiB",
        f"- load of the machine at the end: {os.getloadavg()[0]:.1f}",
    ]


def attacked(server: Server, honest: Draw, seconds: float) -> list[str]:
    """Let hostile clients loose, while an honest one asks for the topics of texts."""
    memory: list[float] = []
    before, done = server.usage()[1], threading.Event()

    def watch() -> None:
        while not done.wait(0.5):
            memory.append(server.usage()[1])

    attacks: Counter[str] = Counter()
    others = [threading.Thread(target=watch), threading.Thread(target=attack, args=(server.port, seconds, attacks))]
    for thread in others:
        thread.start()
    load = drive(server, honest, seconds, n=1, rate=HONEST_RATE)
    done.set()
    for thread in others:
        thread.join()
    time.sleep(2)
    status, _ = Client(server.port).ask(get("/health"))
    statuses = ", ".join(f"{status}: {count:,}" for status, count in sorted(load.statuses.items()))
    return [
        "",
        f"## {seconds / 60:.3g} minutes of hostile requests",
        "",
        f"{sum(attacks.values()):,} attacks, several side by side, and an honest client that asks for the topics of a "
        f"text {HONEST_RATE} times a second:",
        "",
        *(f"- {name}: {count:,}" for name, count in sorted(attacks.items())),
        "",
        f"The honest client got {statuses}; {len(load.failures)} times, its connection was closed and it asked on "
        f"another one. Median {1e3 * np.median(load.times):.1f} ms, 99% {1e3 * np.percentile(load.times, 99):.1f} ms.",
        "",
        f"Resident memory before: {before:.0f} MiB; the largest: {max(memory, default=0):.0f} MiB; at the end: "
        f"{server.usage()[1]:.0f} MiB. /health answered {status} afterwards.",
    ]


if __name__ == "__main__":
    main()
