"""Hostile texts in every field, hostile bodies, and hostile clients of a real server, whose memory is measured."""

from __future__ import annotations

import json
import random
import re
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from command_line import call
from hostile import FIELDS, TITLE, WORDS
from hostile_run import hostile_run

pytest.importorskip("httpx")
pytest.importorskip("fastapi")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Starlette recommends the successor of httpx
    from starlette.testclient import TestClient

from topicloom.service import make_app
from topicloom.service.live import Live

JSON = {"content-type": "application/json"}
HEAD = b"Host: localhost\r\nContent-Type: application/json\r\n"
HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
DANGEROUS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
CONNECTIONS = 30


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile_run(tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="module")
def client(run: Path) -> Iterator[TestClient]:
    live = Live.open(run)
    with TestClient(make_app(live), base_url="http://localhost", raise_server_exceptions=False) as opened:
        yield opened
    live.close()


def test_commands_show_nothing_that_changes_a_terminal(run):
    for arguments in (
        ["topics", run], ["topics", run, "--json"], ["documents", run, 0], ["documents", run, 1, "--json"],
        ["tokens", run, 1], ["find", run, "cat"], ["hierarchy", run], ["nearest", run, "cat"], ["trends", run],
        ["by", run, "class"], ["match", run, run], ["find", run, FIELDS[0]], ["by", run, "\x1b[31m"],
    ):  # fmt: skip
        result = call(*arguments)
        assert result.exit_code in (0, 2), result.output
        assert not DANGEROUS.findall(result.output), arguments
        assert "Traceback" not in result.output


def test_the_service_returns_every_field_as_it_is(client):
    topics = client.get("/api/topics").json()
    assert topics["run"] == TITLE
    assert topics["topics"][0]["name"] == WORDS[0]
    rows = client.get("/api/documents?limit=200").json()["documents"]
    assert [row["id"] for row in rows][:22] == [f"{word}{n}" for n, word in enumerate(WORDS)]
    assert {row["label"] for row in rows} >= {WORDS[0], WORDS[8]}
    for path in ("/", "/docs", "/api/topics", "/api/documents/7?pieces=true", "/api/documents/22", "/metrics"):
        answer = client.get(path)
        assert answer.status_code == 200
        assert answer.headers["x-content-type-options"] == "nosniff"
        answer.content.decode("utf-8")
        if "html" in answer.headers["content-type"]:
            head = answer.text[: answer.text.index("<script")].partition("<style>")[0]
            assert head.count("<title>") == head.count("</title>") == 1
            assert "hacked'<" not in head
    for each in FIELDS:
        asked = quote(each[:900].encode("utf-8", "surrogatepass"))
        for path in (f"/api/documents?q={asked}&id={asked}", f"/{asked}", f"/api/documents/{asked}"):
            answer = client.get(path)
            assert answer.status_code in (200, 404, 405, 422), each


@pytest.mark.parametrize("path", ["infer", "edits"])
def test_mutated_bodies_never_break_the_service(client, path):
    chance = random.Random(path)
    good: list[Any] = [
        {"texts": ["cat"]},
        {"texts": [["cat", "dog"], []]},
        {"edits": [{"merge": [0, 1]}]},
        {"edits": [{"rename": {"0": "x"}}], "version": "x", "replace": True},
        {"edits": [{"drop": [9]}]},
    ]
    odd = [None, True, -1, 1e308, 2**64, "9" * 4_000, "²", "٣", "\ud800", "", [], {}, [[]], {"": None}, *FIELDS]

    def mutated(value: Any) -> Any:
        if chance.random() < 0.25:
            return chance.choice(odd)
        if isinstance(value, dict):
            return {(chance.choice([key, *map(str, odd)]) if chance.random() < 0.2 else key): mutated(each)
                    for key, each in value.items()}  # fmt: skip
        return [mutated(each) for each in value] * chance.choice([1, 1, 2]) if isinstance(value, list) else value

    before = client.get("/api/edits").json()
    seen = set()
    for _ in range(150):
        body = bytearray(json.dumps(mutated(chance.choice(good))).encode())
        if chance.random() < 0.3:
            body[chance.randrange(len(body))] = chance.randrange(256)
        answer = client.post(
            f"/api/{path}", content=bytes(body), headers={**JSON, "if-match": "never"} if path == "edits" else JSON
        )
        seen.add(answer.status_code)
        assert answer.status_code < 500, (bytes(body), answer.text)
        answer.json()
    assert seen <= {200, 400, 412, 413, 422}
    assert client.get("/api/edits").json() == before


LARGE_BODIES = {
    "numbers": b'{"texts":[' + b",".join([b"1"] * 1_900_000) + b"]}",
    "entries": b'{"texts":[],' + b",".join(b'"%x":1' % n for n in range(300_000)) + b"}",
    "lists": b'{"texts":[' + b",".join([b"[]"] * 400_000) + b"]}",
    "edits": b'{"edits":[' + b",".join([b"1"] * 1_900_000) + b"]}",
    "merge": b'{"edits":[{"merge":[' + b",".join(b"%d" % n for n in range(500_000)) + b",499999]}]}",
    "nested": b"[" * 3_900_000,
    "digits": b'{"texts":' + b"9" * 3_900_000 + b"}",
    "entry": b'{"edits":[{"merge":[1,2],"' + b"x" * 3_900_000 + b'":1}]}',
}


class Server:
    """A real process with low limits, and what raw clients find."""

    def __init__(self, run: Path) -> None:
        script = (
            "import sys\nfrom topicloom.service import Limits, serve\n"
            f"serve(sys.argv[1], port=0, limits=Limits(connections={CONNECTIONS}, seconds=20),"
            " started=lambda url: print(url, flush=True))"
        )
        self.process = subprocess.Popen([sys.executable, "-c", script, str(run)], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline().rpartition(":")[2])

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def ask(self, request: bytes, seconds: float = 20) -> bytes:
        """Return all that comes until the server closes the connection or is silent for so long."""
        received = b""
        with closing(self.connect()) as connection:
            connection.settimeout(seconds)
            try:
                connection.sendall(request)
                while block := connection.recv(1 << 16):
                    received += block
            except OSError:
                pass
        return received

    def is_well(self) -> bool:
        return b" 200 " in self.ask(HEALTH.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))[:20]

    def megabytes(self, name: str = "VmHWM") -> float:
        """The largest resident memory so far, or what `name` is."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"{name}:\s+(\d+)", status)[1]) / 1024

    def flood(self, start: bytes, block: bytes, most: int) -> int:
        """Send a block again and again; return the bytes that were taken before the server closed the connection."""
        with closing(self.connect()) as connection:
            sent = 0
            try:
                connection.sendall(start)
                while sent < most:
                    connection.sendall(block)
                    sent += len(block)
            except OSError:
                pass
            return sent


@pytest.fixture(scope="module")
def server(run: Path) -> Iterator[Server]:
    opened = Server(run)
    yield opened
    opened.process.terminate()
    assert opened.process.wait(20) == 0


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the memory is read from /proc")


@linux
@pytest.mark.parametrize("name", LARGE_BODIES)
def test_large_bodies_take_little_memory(server, name):
    """Each wrong element once cost a kilobyte, so that a body of 4 MB took five gigabytes and a minute."""
    before, body = server.megabytes("VmRSS"), LARGE_BODIES[name]
    path = b"edits" if b'"edits"' in body[:10] else b"infer"
    request = b"POST /api/%s HTTP/1.1\r\n%sConnection: close\r\nContent-Length: %d\r\n\r\n" % (path, HEAD, len(body))
    answer = server.ask(request + body)
    assert re.match(rb"HTTP/1.1 4(00|13|22) ", answer), answer[:300]
    assert len(answer) < 2_000
    assert server.megabytes() - before < 250


CHUNKED = b"POST /api/infer HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@linux
@pytest.mark.parametrize(
    ("start", "block"),
    [
        (CHUNKED + b"1\r\n{\r\n0\r\n", b"X-More: " + b"y" * 20 + b"\r\n"),  # fields after the body
        (CHUNKED + b"1;", b"x" * 50),  # an extension of a chunk
        (CHUNKED, b"1\r\n \r\n"),  # chunks of one byte
        (b"GET /health HTTP/1.1\r\n", b"X-More: " + b"y" * 20 + b"\r\n"),
        (b"GET /", b"a" * 50),
        (b"", HEALTH),  # requests whose answers are not read
        (b"", b"\r\n"),
    ],
)
def test_endless_requests_are_cut_off(server, start, block):
    before = server.megabytes()
    assert server.flood(start, block * 2_000, 60_000_000) < 30_000_000
    assert server.is_well()
    assert server.megabytes() - before < 60


def test_slow_clients_keep_nobody_out(server):
    """The longest waiting ones make room for new connections."""
    slow = [server.connect() for _ in range(3 * CONNECTIONS)]
    for number, connection in enumerate(slow):
        with suppress(OSError):  # it has been closed
            connection.sendall([b"", b"GET / HTTP/1.1\r\nHost: lo", HEALTH][number % 3])
    assert all(server.is_well() for _ in range(5))
    for connection in slow:
        connection.close()


def test_a_refused_request_cannot_keep_its_connection(server):
    """The rest of its body could otherwise come slowly, for ever."""
    for refused in (b"Content-Type: text/plain", b"Content-Type: application/json\r\nOrigin: http://evil.example"):
        request = b"POST /api/infer HTTP/1.1\r\nHost: localhost\r\n" + refused + b"\r\nContent-Length: 1000\r\n\r\n{"
        answer = server.ask(request, seconds=10)
        assert b"connection: close" in answer.lower()
        assert re.match(rb"HTTP/1.1 (415|403) ", answer)


POST = b"POST /api/infer HTTP/1.1\r\n" + HEAD


@pytest.mark.parametrize(
    "request_",
    [
        POST + b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
        POST + b"Content-Length: 0\r\nContent-Length: 44\r\n\r\n",
        POST + b"Content-Length: 0, 44\r\n\r\n",
        POST + b"Content-Length: +0\r\n\r\n",
        POST + b"Content-Length: 18446744073709551616\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\n0;\nx\r\n\r\n",
        b"GET /health HTTP/1.1\nHost: localhost\n\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: a\rContent-Length: 44\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nX Y: 1\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
        b"GET http://localhost/health HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
        b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /h\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)
def test_ambiguous_requests_are_refused_and_hide_no_second_one(server, request_):
    answer = server.ask(request_ + HEALTH, seconds=5)
    assert re.match(rb"HTTP/1.1 400 ", answer), answer[:200]
    assert answer.count(b"HTTP/1.1 ") == 1


def test_what_comes_after_the_body_is_no_header(server):
    """The guard has checked the headers by then."""
    trailer = b"0\r\nIf-Match: never\r\nHost: evil.example\r\n\r\n"
    body = b'd\r\n{"texts": []}\r\n'
    answer = server.ask(CHUNKED.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") + body + trailer)
    assert re.match(rb"HTTP/1.1 200 ", answer), answer


def test_redirects_stay_here(client):
    for path in ("/api/topics/", "//evil.example/", "/\\evil.example/", "/api/documents/1/"):
        answer = client.get(path, headers={"x-forwarded-host": "evil.example"}, follow_redirects=False)
        assert answer.headers.get("location", "http://localhost/").startswith("http://localhost/")
        assert "evil" not in answer.headers.get("location", "")
