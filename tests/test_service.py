"""The service: answers, limits and refusals, by the application itself and by a real server on a free port."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import re
import shutil
import signal
import socket
import sqlite3
import sys
import threading
import time
import urllib.error
import urllib.request
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import topicloom as tl
from command_line import MONEY, PETS, call, refused
from forks import Fork, address_of, needs_fork, run_command, serve, serve_anew
from packed import unpack
from topicloom import service
from topicloom.cli.shell import log_to_stderr
from topicloom.errors import InputError
from topicloom.files import lock_directory

httpx = pytest.importorskip("httpx")
pytest.importorskip("fastapi")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Starlette recommends the successor of httpx
    from starlette.testclient import TestClient

from topicloom.reports.run import fit, write  # noqa: E402
from topicloom.service import Access, Limits, make_app  # noqa: E402
from topicloom.service.app import explorer_page  # noqa: E402
from topicloom.service.guard import Guard, Measures  # noqa: E402
from topicloom.service.index import DocumentIndex, build_index, is_current  # noqa: E402
from topicloom.service.live import Live, PageKey  # noqa: E402

JSON = {"content-type": "application/json"}
LENGTH = (b"content-length", b"1000")
TOKEN = "a-token-of-some-length"
HOSTILE = "<script>alert(1)</script> the dog's bank \x00 \u202e ' OR 1=1 --"
LIMITS = Limits(body=20_000, texts=50, characters=5_000)
FAST = ("--model", "gsm", "--epochs", 2, "--quiet", "--monitor", "none")


def train(folder: Path, texts: list[str], *options: Any) -> Path:
    """A run in `folder`, of documents whose ids are d0, d1, ..."""
    folder.mkdir(exist_ok=True)
    rows = [{"id": f"d{n}", "text": text, "label": f"class {n % 2}"} for n, text in enumerate(texts)]
    (folder / "news.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    out = folder / "run"
    result = call("train", folder / "news.jsonl", *FAST, "--out", out, *options)
    assert result.exit_code == 0, result.output
    return out


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return [[PETS, MONEY][n % 2] + f" number{n % 7}" for n in range(60)] + ["", HOSTILE]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> Path:
    return train(tmp_path_factory.mktemp("service"), texts, "--topics", 3, "--max-df", 0.6)


@pytest.fixture(scope="module")
def live(run: Path) -> Iterator[Live]:
    opened = Live.open(run, LIMITS)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def client(live: Live) -> Iterator[TestClient]:
    with TestClient(make_app(live), base_url="http://localhost") as opened:
        yield opened


@pytest.fixture(scope="module")
def server(run: Path) -> Iterator[str]:
    """The address of a real process."""
    process, url = serve(run)
    yield url
    process.terminate()
    process.wait(20)


def core_of(answer: Any) -> Any:
    """What the page contains of the topics."""
    assert answer.status_code == 200
    assert "<b>" not in answer.text
    assert "HTTP" not in answer.headers["content-security-policy"].upper()
    assert "connect-src 'self'" in answer.headers["content-security-policy"]
    return unpack(re.search(r'id="part-core">([^<]*)<', answer.text)[1])[0]


def shares_of(answer: Any) -> np.ndarray[Any, Any]:
    assert answer.status_code == 200, answer.text
    return np.array([each["theta"] for each in answer.json()["documents"]], np.float32)


def post(client: Any, texts: list[str], **more: Any) -> Any:
    return client.post("/api/infer", json={"texts": texts}, **more)


def test_shares_equal_those_of_transform(client, run):
    asked = [PETS, MONEY, "", HOSTILE, "no word of this is known: xyzzy"]
    answer = post(client, asked)
    assert np.array_equal(shares_of(answer), tl.load(run).transform(asked))
    documents = answer.json()["documents"]
    assert [each["empty"] for each in documents] == [False, False, True, False, True]
    largest = documents[0]["topics"][0]
    assert largest["share"] == max(documents[0]["theta"])
    assert len(largest["words"]) == 10
    assert answer.json()["n_topics"] == 3
    assert post(client, []).json()["documents"] == []
    half = client.post("/api/infer", content=b'{"texts": ["dog \\ud800"]}', headers=JSON)
    assert np.array_equal(shares_of(half), tl.load(run).transform(["dog"]))


def test_answers_do_not_depend_on_other_requests(server, run):
    asked = [
        [PETS],
        [MONEY],
        [PETS, MONEY] * 10,
        ["dog"],
        ["bank " * 900],
        [HOSTILE],
        ["cat", "", "loan"],
        [MONEY] * 40,
    ]
    expected = [tl.load(run).transform(texts) for texts in asked]

    def ask(number: int) -> bool:
        with httpx.Client(base_url=server) as own:
            return all(np.array_equal(shares_of(post(own, asked[number])), expected[number]) for _ in range(15))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(8)))


def test_topics(client, run):
    answer = client.get("/api/topics").json()
    assert [row["topic"] for row in answer["topics"]] == [0, 1, 2]
    assert (answer["n_documents"], answer["has_documents"], answer["has_texts"]) == (62, True, True)
    view = tl.Topics.from_run(run)
    assert [row["name"] for row in answer["topics"]] == view.names
    assert [row["share"] for row in answer["topics"]] == pytest.approx(view.shares)
    assert sum(row["documents"] for row in answer["topics"]) == 61
    assert [(word["word"], word["probability"]) for word in answer["topics"][1]["words"]] == view.words_of(1)


@pytest.mark.parametrize("query", ["", "topic=1", "q=dog", "q=DOG&topic=1", "id=d7&topic=1", "id=d8&q=dog"])
def test_pages_have_every_document_once(client, run, query):
    theta, empty = tl.Topics.from_run(run).documents.theta, tl.Topics.from_run(run).documents.empty
    rows, after = [], ""
    while True:
        found = client.get(f"/api/documents?{query}&limit=7{after}")
        assert found.status_code == 200, found.text
        answer = found.json()
        assert answer["documents"]
        rows += [each["row"] for each in answer["documents"]]
        if answer["next"] is None:
            break
        after = f"&after={answer['next']}"
    dogs = [n for n in range(60) if n % 2 == 0] + [61]
    expected = dogs if "q=" in query else [n for n in range(62) if "topic" not in query or not empty[n]]
    if "id=" in query:
        expected = [int(query[4])]
    assert sorted(rows) == expected
    assert answer["total"] == len(expected)
    if "topic" in query:
        first = [
            row for row in tl.Topics.from_run(run).documents_of(1, n=20, kind="diverse")["document"] if row in rows
        ]
        of_topic = [row for row in rows if theta[row, 1] > 1 / 3]
        assert rows[: len(first)] == first
        assert rows[: len(of_topic)] == of_topic
        assert rows[len(of_topic) :] == sorted(rows[len(of_topic) :], key=lambda row: (-theta[row, 1], row))


@pytest.mark.parametrize("query", ["", "&q=dog", "&topic=1", "&q=dog&topic=1"])
def test_documents_of_a_class(client, run, query):
    documents = tl.Topics.from_run(run).documents
    labels, texts = documents.labels, tl.Topics.from_run(run).corpus.texts
    wanted = [n for n in range(62) if labels[n] == "class 0" and not (documents.empty[n] and query)]
    if "q=" in query:
        wanted = [n for n in wanted if "dog" in texts[n]]
    first = client.get(f"/api/documents?label=class%200{query}&limit=5").json()
    rest = client.get(f"/api/documents?label=class%200{query}&limit=100&after={first['next']}").json()
    assert sorted(each["row"] for each in first["documents"] + rest["documents"]) == wanted
    assert first["total"] == rest["total"] == len(wanted)
    assert {each["label"] for each in rest["documents"]} == {"class 0"}
    assert client.get(f"/api/documents?label=class%201{query}&after={first['next']}").status_code == 422


def test_documents(client, run):
    page = client.get("/api/documents?limit=1").json()["documents"]
    assert page[0]["id"] == "d0"
    assert page[0]["label"] == "class 0"
    whole = client.get("/api/documents/61").json()
    assert whole["text"] == tl.Topics.from_run(run).corpus.texts[61]
    assert whole["text"].startswith("<script>alert(1)</script>")
    assert len(whole["theta"]) == 3
    assert whole["pieces"] is None
    pieces = client.get("/api/documents/0?pieces=true").json()["pieces"]
    assert "".join(piece["text"] for piece in pieces) == PETS + " number0"
    assert {piece["text"] for piece in pieces if piece["topic"] is not None} >= {"cat", "dog", "vet"}
    assert client.get("/api/documents/60").json()["topics"] == []
    assert [each["row"] for each in client.get("/api/documents?id=d7").json()["documents"]] == [7]
    assert client.get("/api/documents?q=zebra").json()["documents"] == []
    assert client.get("/api/documents?label=none").json() | {"version": ""} == {
        "total": 0, "next": None, "words": None, "version": "", "documents": [],
    }  # fmt: skip
    assert client.get("/api/documents?q=%20%00%22*").json()["total"] == 0
    assert client.get("/api/documents?q=dog%20OR%20bank").json()["words"] == ["dog", "bank"]


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/api/documents/62", 404, "there is no document 62; the documents are 0 to 61"),
        ("/api/documents/" + "9" * 30, 404, "there is no document 999"),
        ("/api/documents?topic=" + "9" * 30, 422, "there is no topic 999"),
        ("/api/documents/-1", 404, "there is no document -1"),
        ("/api/documents/d7", 422, "row: it should be a whole number; /docs"),
        ("/api/documents?topic=3", 422, "there is no topic 3; the topics are 0 to 2"),
        ("/api/documents?topic=-1", 422, "there is no topic -1"),
        ("/api/documents?limit=100000", 422, "limit: it should be less than or equal to 200"),
        ("/api/documents?after=1e999:1", 422, "after should be the value of next in an earlier answer"),
        ("/api/documents?after=x", 422, "after should be the value of next in an earlier answer"),
        ("/api/documents?q=" + "a" * 2000, 422, "q: it should have at most 1000 characters"),
        ("/api/documents?class=tech", 422, "there is no parameter 'class'; choose one of after, id, label, like"),
        ("/api/documents?topc=1", 422, "there is no parameter 'topc'; did you mean topic?"),
        ("/api/documents?topic=1&topic=2", 422, "the parameter 'topic' is there 2 times; give it once"),
        ("/api/documents/3?pieces=maybe", 422, "pieces: it should be true or false; /docs"),
        ("/api/topics?limit=1", 422, "there is no parameter 'limit'; /docs"),
        ("/nothing", 404, "there is no such path"),
        ("/api/infer", 405, "this path does not take this method"),
        ("/docs/..%2f..%2f..%2fetc%2fpasswd", 404, "there is no such path"),
        ("/%2e%2e/%2e%2e/etc/passwd", 404, "there is no such path"),
        ("/api/documents/..%2f..%2fmodel%2fconfig.json", 404, "there is no such path"),
    ],
)
def test_mistakes_get_one_sentence(client, path, status, message):
    answer = client.get(path)
    assert answer.status_code == status
    assert message in answer.json().get("error", "")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b'{"texts": ["a"', 422, "the body is not JSON"),
        (b"[" * 19_000, 400, "the body is not JSON"),
        (b'{"texts": ["\xff"]}', 400, "the body is not JSON"),
        (b"", 422, "body: it is missing"),
        (b"[]", 422, "body: it should be an object with names and values"),
        (b'{"texts": "a"}', 422, "texts: give a list of texts"),
        (b'{"texts": [1]}', 422, "texts: text 0 should be a string"),
        (b'{"texts": [], "file": "/etc/passwd"}', 422, "body: there is no entry 'file'"),
        (json.dumps({"texts": ["a"] * 51}).encode(), 413, "there are 51 texts; send at most 50 in a request"),
        (json.dumps({"texts": ["a" * 5_001]}).encode(), 413, "text 0 has 5,001 characters; send at most 5,000 of each"),
        (json.dumps({"texts": [[""] * 5_001]}, separators=(",", ":")).encode(), 413, "text 0 has 5,001 characters"),
        (json.dumps({"texts": ["a" * 5_000] * 5}).encode(), 413, "the body is larger than 20,000 bytes"),
    ],
)
def test_bodies_that_cannot_be_used(client, body, status, message):
    answer = client.post("/api/infer", content=body, headers=JSON)
    assert answer.status_code == status, answer.text
    assert message in answer.json()["error"]


@pytest.mark.parametrize("depth", [10, 100, 500, 800, 900, 950, 970, 985, 1_000, 3_000])
def test_nested_bodies_get_one_sentence(client, depth):
    for path, start, end in [
        ("infer", '{"texts":', "}"),
        ("edits", '{"edits":[{"rename":{"0":', "}}]}"),
        ("edits", '{"edits":[{"merge":', "}]}"),
        ("edits", '{"edits":[{"rename":', "}]}"),
        ("edits", '{"edits":[{"reduce_to":2,"groups":', "}]}"),
    ]:
        answer = client.post(f"/api/{path}", content=f"{start}{'[' * depth}{']' * depth}{end}", headers=JSON)
        assert answer.status_code in (400, 422), (path, start, answer.text)
        assert len(answer.json()["error"]) < 200


def test_only_get_head_and_post_are_answered(client):
    for method in ("DELETE", "PUT", "OPTIONS"):
        answer = client.request(method, "/api/topics")
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, POST")


@pytest.mark.parametrize(
    "path", ["/health", "/", "/docs", "/api/topics", "/api/documents?topic=0", "/nowhere", "/api/infer"]
)
def test_head_is_get_without_the_body(client, path):
    """Load balancers and link checkers ask by HEAD whether a service is there."""
    whole, head = client.get(path), client.head(path)
    assert whole.content
    assert (head.status_code, head.headers, head.content) == (whole.status_code, whole.headers, b"")


def test_a_body_without_a_length_is_limited_too(client):
    answer = client.post("/api/infer", content=(b"x" * 1000 for _ in range(30)), headers=JSON)
    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://[::1"}, 403),
        ({"origin": "http://[localhost]"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),  # another name of the same domain
        ({"origin": "http://localhost:8000", "sec-fetch-site": "same-origin"}, 200),
        ({"host": "evil.example"}, 400),
        ({"host": "localhost.evil.example"}, 400),
        ({"host": ""}, 400),
        ({"host": "127.0.0.1:8000"}, 200),
        ({"host": "[::1]:8000"}, 200),
    ],
)
def test_other_sites_may_not_ask(client, headers, status):
    answer = post(client, ["dog"], headers=JSON | headers)
    assert answer.status_code == status
    if "host" in headers:
        assert client.get("/api/topics", headers=headers).status_code == status


def test_the_token(live):
    access = Access.on("192.0.2.1", TOKEN, ["Topics.example.org"])
    basic = base64.b64encode(f"anyone:{TOKEN}".encode()).decode()
    with TestClient(make_app(live, access), base_url="http://topics.example.org") as client:
        for path in ("/", "/api/topics", "/docs", "/openapi.json", "/metrics", "/nothing"):
            assert client.get(path).status_code == 401
        assert client.get("/health").json() == {"status": "ok"}
        for wrong in (
            f"Bearer {TOKEN}x",
            f"Bearer {TOKEN[:-1]}",
            "Bearer",
            f"Basic {TOKEN}",
            "Basic YQ==",
            TOKEN,
            "Bearer é",
        ):
            answer = client.get("/api/topics", headers={"authorization": wrong.encode("latin-1")})
            assert answer.status_code == 401
            assert "Authorization: Bearer TOKEN" in answer.json()["error"]
        for right in (f"Bearer {TOKEN}", f"bearer {TOKEN}", f"Basic {basic}"):
            assert client.get("/api/topics", headers={"authorization": right}).status_code == 200


def test_other_machines_need_a_token(run):
    for host in ("0.0.0.0", "::", "192.0.2.1", "topics.example.org"):
        with pytest.raises(InputError, match="a token is needed"):
            Access.on(host)
    for host in ("127.0.0.1", "127.0.0.2", "::1", "localhost"):
        assert Access.on(host).token is None
    refused("serve", run, "--host", "0.0.0.0", says=["a token is needed; give --token"])
    refused("serve", run, "--host", "0.0.0.0", "--token", "short", says=["--token should have at least 16 characters"])
    refused("serve", run, "--token", "a token with spaces in it", says=["ASCII letters, digits or signs"])


@needs_fork
def test_a_real_server_withstands_slow_and_broken_clients(run, tmp_path):
    limits = Limits(seconds=0.5)
    process = Fork(lambda: service.serve(run, port=0, limits=limits, started=lambda url: print(url, flush=True)))
    host, port = process.stdout.readline().strip().removeprefix("http://").split(":")
    start = b"POST /api/infer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"

    def answer_to(*parts: bytes) -> bytes:
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            received = b""
            try:
                for part in parts:
                    connection.sendall(part)
                while block := connection.recv(65536):
                    received += block
            except (ConnectionResetError, BrokenPipeError):
                pass
            return received

    assert b" 408 " in answer_to(start + b"Content-Length: 100\r\n\r\n", b'{"texts"')  # the rest never comes
    assert answer_to(start) == b""  # nor does the end of the headers
    assert answer_to() == b""
    endless = answer_to(b"GET /health HTTP/1.1\r\nHost: localhost\r\n", *(b"X-More: " + b"x" * 9_000 for _ in range(9)))
    assert endless == b""
    chunked = start.replace(b"localhost\r\n", b"localhost\r\nTransfer-Encoding: chunked\r\n") + b"\r\n"
    many = answer_to(chunked, b"1\r\n \r\n" * 30_000, b"0\r\n\r\n")  # pieces of a byte
    assert many == b"" or b" 400 " in many
    assert b" 400 " in answer_to(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
    assert b" 413 " in answer_to(start + b"Content-Length: 9999999999999\r\n\r\n", b"{")
    raw = b"GET /../../../../etc/passwd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    assert b" 404 " in answer_to(raw)
    assert b"root:" not in answer_to(raw)
    twice = b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
    assert b" 400 " in answer_to(twice)
    assert httpx.get(f"http://{host}:{port}/health").status_code == 200
    process.terminate()
    assert process.wait(20) == 0


@pytest.mark.parametrize(("kind", "status"), [("application/json", 413), ("text/plain", 415)])
def test_clients_that_send_everything_first_read_the_refusal(server, kind, status):
    """The body is larger than the buffers of the connection, and than what a request may have."""
    request = urllib.request.Request(f"{server}/api/infer", b"x" * 30_000_000, {"content-type": kind})
    with pytest.raises(urllib.error.HTTPError) as refusal:  # not a broken connection
        urllib.request.urlopen(request, timeout=60)
    assert refusal.value.code == status
    assert json.load(refusal.value)["error"]


def test_refused_bodies_are_discarded_for_a_short_time():
    async def scenario() -> tuple[list[dict[str, Any]], int]:
        sent: list[dict[str, Any]] = []

        async def endless() -> dict[str, Any]:
            await asyncio.sleep(0.01)
            return {"type": "http.request", "body": b"x", "more_body": True}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        guard = Guard(lambda *_: pytest.fail("it was passed on"), Access(), Limits(seconds=0.3), Measures())
        scope = {"type": "http", "method": "POST", "path": "/", "headers": [(b"host", b"localhost"), LENGTH]}
        await asyncio.wait_for(guard(scope, endless, send), 10)
        return sent, guard.n_discarding

    sent, n_discarding = asyncio.run(scenario())
    assert sent[0]["status"] == 415
    assert [message.get("more_body") for message in sent] == [None, True, False]
    assert n_discarding == 0


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM")
def test_a_signal_ends_the_server(run):
    process = serve_anew(run)
    url = address_of(process)
    port = url.rpartition(":")[2]
    with httpx.Client(base_url=url) as client:  # whose open connection does not delay the end
        assert client.get("/health").status_code == 200
        refused("serve", run, "--port", port, says=[f"port {port} of 127.0.0.1 is in use; give another one by --port"])
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()


def test_bodies_that_do_not_arrive_take_no_places():
    async def scenario() -> list[int]:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b""})

        guard = Guard(app, Access(), Limits(requests=1, seconds=5), Measures())
        statuses: list[int] = []

        async def ask(*, arrives: bool) -> None:
            async def send(message: Any) -> None:
                statuses.extend([message["status"]] if message["type"] == "http.response.start" else [])

            async def receive() -> Any:
                if not arrives:
                    await asyncio.sleep(60)
                return {"type": "http.request", "body": b"{}", "more_body": False}

            headers = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"content-length", b"2")]
            await guard({"type": "http", "method": "POST", "path": "/x", "headers": headers}, receive, send)

        slow = [asyncio.create_task(ask(arrives=False)) for _ in range(3)]
        await asyncio.sleep(0)
        await ask(arrives=True)
        for task in slow:
            task.cancel()
        return statuses

    assert asyncio.run(scenario()) == [200]


def test_what_is_too_much_is_told_to_come_back():
    async def scenario() -> list[dict[str, Any]]:
        measures, free = Measures(), asyncio.Event()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await free.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b""})

        guard = Guard(app, Access(), Limits(requests=2, seconds=0.2), measures)
        answers: list[dict[str, Any]] = []

        async def ask() -> None:
            async def send(message: Any) -> None:
                answers.extend([message] if message["type"] == "http.response.start" else [])

            async def receive() -> Any:
                return {"type": "http.request", "body": b"", "more_body": False}

            scope = {"type": "http", "method": "GET", "path": "/x", "headers": [(b"host", b"localhost")]}
            await guard(scope, receive, send)

        await asyncio.gather(*(ask() for _ in range(3)))  # the first two wait too long, the third is too much
        assert guard.n_requests == 0
        return answers

    answers = asyncio.run(scenario())
    assert [answer["status"] for answer in answers] == [503, 503, 503]
    waits = [dict(answer["headers"])[b"retry-after"] for answer in answers]
    assert waits == [b"1", b"5", b"5"]


def test_measures(client):
    assert post(client, ["dog"]).status_code == 200
    client.get("/nothing")
    client.get("/something")
    text = client.get("/metrics").text
    assert 'topicloom_requests_total{method="GET",route="other",status="404"}' in text
    assert 'topicloom_requests_total{method="POST",route="/api/infer",status="200"}' in text
    assert "topicloom_inferred_texts_total" in text
    assert "something" not in text


def test_pages_need_no_other_host(client):
    for path in ("/docs", "/docs/start.js"):
        answer = client.get(path)
        assert answer.status_code == 200
        assert "//" not in answer.text
    assert core_of(client.get("/"))["n_docs"] == 62
    assert "default-src 'none'" in client.get("/docs").headers["content-security-policy"]
    assert client.get("/docs/swagger-ui-bundle.js").headers["content-type"].startswith("text/javascript")
    assert "/api/infer" in client.get("/openapi.json").json()["paths"]


def test_a_page_that_takes_long(run, monkeypatch):
    opened, slow = Live.open(run, Limits(seconds=0.4)), threading.Event()
    made = explorer_page

    def make(*arguments: Any) -> str:
        slow.wait(20)
        return made(*arguments)

    monkeypatch.setattr("topicloom.service.app.explorer_page", make)
    with TestClient(make_app(opened), base_url="http://localhost") as client:
        assert 'http-equiv="refresh"' in client.get("/").text
        slow.set()
        while "part-core" not in client.get("/").text:
            time.sleep(0.05)
    opened.close()


def test_a_page_that_could_not_be_made_is_made_again(run, monkeypatch):
    opened, made, tries = Live.open(run), explorer_page, []

    def make(*arguments: Any) -> str:
        tries.append(arguments)
        if len(tries) == 1:
            raise MemoryError
        return made(*arguments)

    monkeypatch.setattr("topicloom.service.app.explorer_page", make)
    with TestClient(make_app(opened), base_url="http://localhost", raise_server_exceptions=False) as client:
        assert client.get("/").status_code >= 500
        assert "part-core" in client.get("/").text
    opened.close()


def test_the_index_is_built_once_and_again_for_other_documents(run, texts, tmp_path, monkeypatch):
    copy = train(tmp_path / "copy", texts[:40], "--topics", 2)
    Live.open(copy).close()
    index = copy / "search.sqlite"
    first = index.stat().st_mtime_ns
    Live.open(copy).close()
    assert index.stat().st_mtime_ns == first
    assert not is_current(index, "of another run")
    train(tmp_path / "copy", texts[:50], "--topics", 2, "--overwrite")
    assert not index.exists()
    index.write_text("not a database")
    opened = Live.open(copy)
    assert opened.documents(None, "dog", None, None, 1)["total"] == 25
    opened.close()


def test_a_run_that_cannot_be_written(run, tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.WARNING, "topicloom")
    index, build = run / "search.sqlite", build_index

    def fail(path: Path, *rest: Any) -> None:
        if path == index:
            raise OSError(30, "Read-only file system", str(path))
        build(path, *rest)

    monkeypatch.setattr("topicloom.service.live.build_index", fail)
    monkeypatch.setattr("topicloom.service.live.is_current", lambda *_: False)
    opened = Live.open(run)
    assert "cannot be written (Read-only file system); the index is in" in caplog.text
    assert opened.index is not None
    assert opened.index.path != index
    assert opened.documents(None, "dog", None, None, 5)["total"] == 31
    opened.close()
    assert not opened.index.path.exists()


def edit(client: TestClient, *edits: dict[str, Any], **more: Any) -> Any:
    return client.post("/api/edits", json={"edits": edits, **more})


def test_edits_are_applied_and_stored(run, tmp_path):
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    opened = Live.open(copy)
    model = tl.load(copy, device="cpu")
    with TestClient(make_app(opened), base_url="http://localhost") as client:
        first = client.get("/api/edits").json()
        assert first["edits"] == []
        answer = edit(client, {"rename": {"2": " <b>pets</b>  & vets "}}, version=first["version"])
        assert answer.status_code == 200, answer.text
        answer = edit(client, {"merge": [0, 1]})  # later edits have the numbers of the topics that are there now
        assert answer.json()["edits"] == [{"rename": {"2": "<b>pets</b> & vets"}}, {"merge": [0, 1]}]
        topics = client.get("/api/topics").json()
        assert [row["name"] for row in topics["topics"]][1] == "<b>pets</b> & vets"
        assert topics["version"] == answer.json()["version"] != first["version"]
        core = core_of(client.get("/"))
        assert core["names"][1] == "<b>pets</b> & vets"
        assert (core["api"], core["version"], core["n_topics"]) == ("api", topics["version"], 2)
        edited = model.apply([{"merge": [0, 1]}], tl.Topics.from_run(copy).corpus)
        assert np.array_equal(shares_of(post(client, [PETS, MONEY, ""])), edited.transform([PETS, MONEY, ""]))
        theta = np.array(client.get("/api/documents/3").json()["theta"])
        assert theta == pytest.approx(edited.transform([MONEY + " number3"])[0], abs=1e-6)
        assert client.get("/api/documents?topic=1").status_code == 200
        assert "the topics are 0 to 1" in client.get("/api/documents?topic=2").json()["error"]
        conflict = edit(client, {"rename": {0: "money"}}, version=first["version"])
        assert conflict.status_code == 409
        current = {"if-match": f'"{topics["version"]}"'}  # both have to be the present version
        body = {"edits": [{"rename": {0: "money"}}], "version": first["version"]}
        assert client.post("/api/edits", json=body, headers=current).status_code == 409
        for version, status in ((first["version"], 412), (topics["version"], 200)):
            assert client.get("/api/documents?topic=1", headers={"if-match": f'"{version}"'}).status_code == status
        assert edit(client, {"rename": {1: "animals"}}).status_code == 200  # the topic that was number 2
    opened.close()
    again = Live.open(copy)
    assert [row["name"] for row in again.topics()["topics"]][1] == "animals"
    assert again.edit([], None, True)["edits"] == []
    assert again.topics()["n_topics"] == 3
    again.close()


def test_edits_from_elsewhere_are_not_overwritten(run, tmp_path):
    """Another service, or a person who changes the file, may edit the topics of the same run."""
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    one, other = Live.open(copy), Live.open(copy)
    with TestClient(make_app(one), base_url="http://localhost") as client:
        other.edit([{"rename": {0: "theirs"}}], None, False)
        answer = edit(client, {"rename": {1: "mine"}})
        assert answer.status_code == 409
        assert answer.json()["error"] == "edits.yaml was changed outside of this service; load the topics again"
        assert client.get("/api/topics").json()["topics"][0]["name"] == "theirs"
        both = [{"rename": {"0": "theirs"}}, {"rename": {"1": "mine"}}]
        assert edit(client, {"rename": {1: "mine"}}).json()["edits"] == both
        (copy / "edits.yaml").write_text("edits: [{rename: {0: by hand}}]\n")
        assert edit(client, {"rename": {1: "mine"}}).status_code == 409
        assert client.get("/api/edits").json()["edits"] == [{"rename": {"0": "by hand"}}]
        (copy / "edits.yaml").unlink()
        assert edit(client, {"rename": {1: "mine"}}).status_code == 409
        with lock_directory(copy):
            answer = edit(client, {"rename": {1: "mine"}})
        assert (answer.status_code, answer.json()["error"][:15]) == (503, "another program")
        assert edit(client, {"rename": {1: "mine"}}).json()["edits"] == both[1:]
    one.close()
    other.close()


def test_edits_from_elsewhere_are_shown(run, tmp_path, caplog):
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    one, other = Live.open(copy), Live.open(copy)

    def name(response):
        assert response.status_code == 200, response.text
        return response.json()["topics"][0]["name"]

    with TestClient(make_app(one), base_url="http://localhost") as client:
        before = client.get("/api/topics").json()
        version = other.edit([{"rename": {0: "theirs"}}], None, False)["version"]
        inferred = client.post("/api/infer", json={"texts": ["x"]}).json()
        assert (inferred["version"], name(client.get("/api/topics"))) == (version, "theirs")
        assert client.get("/api/topics", headers={"If-Match": before["version"]}).status_code == 412
        other.edit([{"rename": {0: "again"}}], None, False)
        assert client.get("/").status_code == 200
        assert one.topics()["topics"][0]["name"] == "again"
        (copy / "edits.yaml").write_text("edits: no list\n")
        for _ in range(2):
            assert name(client.get("/api/topics")) == "again"
        assert caplog.text.count("shown without the edits that were stored last") == 1
        (copy / "edits.yaml").unlink()
        assert client.get("/api/topics").json() == before
    one.close()
    other.close()


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        ([{"merge": [0, 9]}], "there is no topic 9"),
        ([{"merge": [0, 1, 2]}], "would leave one topic"),
        ([{"drop": [0, 1]}], "would leave one topic"),
        ([{"rename": {"0": ""}}], "the name of topic 0 is empty"),
        ([{"rename": {"0": "x" * 300}}], "at most 200"),
        ([{"split": 0}], "cannot be split here"),
        ([{"add": 1}], "cannot be added here"),
        ([{"open": "/etc/passwd"}], "give each edit one of"),
        ([{"merge": [0, 1]}] * 1_001, "send at most 1,000"),
    ],
)
def test_edits_that_cannot_be_applied(client, run, edits, message):
    answer = edit(client, *edits)
    assert answer.status_code == 422
    assert message in answer.json()["error"]
    assert client.get("/api/edits").json()["edits"] == []
    assert not (run / "edits.yaml").exists()


def test_edits_of_other_models_and_unwritable_runs_are_refused(run, texts, tmp_path, monkeypatch):
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    (copy / "edits.yaml").write_text("model: tm-0123456789abcdef\nedits:\n- merge: [0, 1]\n")
    refused("serve", copy, "--port", 0, says=["edits.yaml belongs to another model"])
    (copy / "edits.yaml").write_text("edits: [{merge: [0, 1]}]\n")
    opened = Live.open(copy)
    assert opened.state.n_topics == 2

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("topicloom.service.live.write_edits", fail)
    with TestClient(make_app(opened), base_url="http://localhost") as client:
        answer = edit(client, {"rename": {0: "money"}})
        assert answer.status_code == 403
        assert "edits.yaml cannot be written" in answer.json()["error"]
        assert client.get("/api/topics").json()["topics"][0]["name"] != "money"
    opened.close()


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ({"texts": 0}, "`texts` of Limits should be"),
        ({"documents": 2.5}, "`documents` of Limits should be"),
        ({"seconds": float("nan")}, "`seconds` of Limits should be"),
        ({"text": 5}, "Limits has no setting 'text'; did you mean texts"),
    ],
)
def test_limits_that_cannot_be(limits, says):
    with pytest.raises(InputError, match=says):
        Limits(**limits)


def test_only_so_many_edits_are_stored(run, tmp_path):
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    opened = Live.open(copy, Limits(edits=2))
    for name in ("one", "two"):
        opened.edit([{"rename": {0: name}}], None, False)
    with pytest.raises(tl.InputError, match="there would be 3 edits; at most 2 are stored"):
        opened.edit([{"rename": {0: "three"}}], None, False)
    assert len(opened.edits()["edits"]) == 2
    opened.edit([{"rename": {0: "three"}}], None, True)
    opened.close()


def test_stored_edits_are_set_aside_for_a_new_model(run, tmp_path, caplog):
    """They would stop the service after training, and take the place of the new edits after editing."""
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    opened = Live.open(copy)
    opened.edit([{"rename": {0: "one"}}], None, False)
    n_topics = opened.state.n_topics
    opened.close()
    assert call("edit", copy, "--merge", "0,1", "--out", copy, "--overwrite").exit_code == 0
    assert "edits.yaml has edits of the earlier model; it is edits.old.yaml now" in caplog.text
    assert (copy / "edits.old.yaml").is_file()
    again = Live.open(copy)
    assert again.state.n_topics == n_topics - 1
    again.close()


def test_a_run_that_is_replaced_while_it_is_served(texts, tmp_path):
    """Documents and edits of the new run are not mixed with the topics of the old one."""
    copy = train(tmp_path, texts[:40], "--topics", 3)
    opened = Live.open(copy)
    with TestClient(make_app(opened), base_url="http://localhost") as client:
        before = post(client, [PETS]).json()
        version = client.get("/api/topics").json()["version"]
        train(tmp_path, texts[20:], "--topics", 2, "--overwrite")
        again = Live.open(copy)  # which builds another index in the place of the first one
        assert post(client, [PETS]).json() == before
        for answer in (client.get("/api/documents/3"), client.get("/api/documents"), edit(client, {"drop": [0]})):
            assert answer.status_code == 503
            assert "start the service again" in answer.json()["error"]
        assert not (copy / "edits.yaml").exists()
        shutil.rmtree(copy)
        assert edit(client, {"drop": [0]}).status_code == 503
        assert not copy.exists()
    opened.close()
    with TestClient(make_app(again), base_url="http://localhost") as client:
        assert client.get("/api/topics", headers={"If-Match": f'"{version}"'}).status_code == 412
        assert edit(client, {"rename": {0: "x"}}, version=version).status_code == 409
    again.close()


def test_a_fault_gets_one_sentence_and_its_traceback_is_logged(live, monkeypatch, capsys):
    def fail(*_: Any) -> None:
        raise ZeroDivisionError("a fault")

    monkeypatch.setattr(live, "topics", fail)
    log_to_stderr(False, [])
    with TestClient(make_app(live), base_url="http://localhost", raise_server_exceptions=False) as client:
        answer = client.get("/api/topics")
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/json")
    assert answer.json()["error"] == "an error occurred in the service; its log says more"
    assert "ZeroDivisionError: a fault" in capsys.readouterr().err


def test_edits_of_a_run_that_was_edited(run, tmp_path):
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    tl.load(copy, device="cpu").merge([0, 1]).save(copy / "model", overwrite=True)
    shutil.rmtree(copy / "documents")
    (copy / "search.sqlite").unlink(missing_ok=True)
    opened = Live.open(copy)
    opened.edit([{"rename": {0: "one"}}], None, False)
    opened.edit([{"rename": {1: "other"}}], None, False)
    again = Live.open(copy)
    assert [row["name"] for row in again.topics()["topics"]] == ["one", "other"]
    assert again.edits() == opened.edits()
    texts = [PETS, MONEY]
    assert opened.infer(texts) == again.infer(texts)


def test_runs_without_texts_or_documents(texts, tmp_path, caplog):
    without_texts = train(tmp_path / "texts", texts[:40], "--topics", 2, "--no-texts")
    caplog.set_level(logging.WARNING, "topicloom")  # the command line has changed it
    opened = Live.open(without_texts)
    assert "were not kept" in caplog.text
    page = opened.documents(None, "dog", None, None, 50)
    assert page["total"] == 20
    assert page["documents"][0]["text"] is None
    opened.close()
    without = train(tmp_path / "documents", texts[:40], "--topics", 2, "--no-documents")
    caplog.set_level(logging.WARNING, "topicloom")
    with TestClient(make_app(Live.open(without)), base_url="http://localhost") as client:
        assert "keeps no documents" in caplog.text
        assert client.get("/api/documents").status_code == 404
        assert "train it again so that it keeps them" in client.get("/api/documents/0").json()["error"]
        assert client.get("/api/topics").json()["topics"][0]["share"] > 0
        assert "<table><tr><td>0<td>" in client.get("/").text
        assert np.array_equal(shares_of(post(client, [PETS])), tl.load(without).transform([PETS]))


def test_a_model_of_tokens(tmp_path, caplog):
    corpus = tl.Corpus.from_texts([["cat", "New York"], ["bank", "loan"]] * 20, min_df=1, max_df=1.0)
    model = tl.GSM(2, epochs=2, random_state=0, verbose=False)
    seconds = fit(model, corpus)
    write(tmp_path / "run", model, corpus, model.infer(corpus), seconds)
    caplog.set_level(logging.WARNING, "topicloom")
    with TestClient(make_app(Live.open(tmp_path / "run")), base_url="http://localhost") as client:
        assert "only lists of tokens can be inferred" in caplog.text
        tokens = [["cat", "New York", "cat"], [], ["loan"]]
        answer = client.post("/api/infer", json={"texts": tokens})
        assert np.array_equal(shares_of(answer), model.transform(tokens))
        assert "give each document as a list of tokens" in post(client, ["cat"]).json()["error"]
        assert client.get("/api/documents?q=new+york").json()["total"] == 20
        assert client.get("/api/documents?q=CAT").json()["total"] == 20


def test_nothing_to_serve(tmp_path):
    refused("serve", tmp_path, says=["holds no saved model (no config.json)"])


def test_chinese(tmp_path):
    pytest.importorskip("rjieba")
    news = ["湖人队昨晚赢得了比赛，球迷非常高兴", "中央银行下调贷款利率，股市上涨"] * 30 + [
        "银行利率上升",
        "他买了一辆车",
    ]
    run = train(tmp_path, news, "--topics", 2, "--language", "zh", "--max-df", 60)
    opened = Live.open(run)

    def rows(query: str) -> list[int]:
        return [each["row"] for each in opened.documents(None, query, None, None, 200)["documents"]]

    assert sorted(rows("贷款")) == list(range(1, 60, 2))
    assert sorted(rows("利率")) == [*range(1, 60, 2), 60]  # also inside a longer word
    assert rows("银行利率") == [60]
    assert rows("车") == [61]  # a single character, which is no token
    assert rows("湖人 利率") == []
    texts = [news[0], news[1], "利率"]
    theta = np.array([each["theta"] for each in opened.infer(texts)["documents"]], np.float32)
    assert np.array_equal(theta, tl.load(run).transform(texts))
    opened.close()


@pytest.mark.parametrize("text", ["", ":", "1:", ":1", "nan:1", "inf:1", "1:-1", "--1:1", "1:1:1", "1.5:" + "9" * 40])
def test_cursors_that_nobody_gave(text):
    mark = PageKey(0.0, 0).written("a list").partition(":")[0]
    for given in (text, f"{mark}:{text}"):
        with pytest.raises(InputError, match="an earlier answer"):
            PageKey.parse(given, "a list")
    assert PageKey.parse(PageKey(-1.5e-07, 3).written("a list"), "a list") == PageKey(-1.5e-07, 3)


def test_a_page_of_another_list_is_refused(client):
    after = client.get("/api/documents?topic=1&limit=5").json()["next"]
    for query in ("", "topic=0", "q=dog", "topic=1&q=dog"):
        answer = client.get(f"/api/documents?{query}&after={after}")
        assert answer.status_code == 422
        assert "an earlier answer to the same topic, q, id, label and like" in answer.json()["error"]


def test_documents_with_the_same_id_are_all_found(live, tmp_path):
    corpus = live.state.topics.corpus
    same = replace(corpus, fields=replace(corpus.fields, ids=["same"] * 62))
    build_index(tmp_path / "same.sqlite", "", same, None)
    opened = Live(live.run, live.state, DocumentIndex(tmp_path / "same.sqlite"), LIMITS)
    page = opened.documents(None, None, "same", None, 40)
    rest = opened.documents(None, None, "same", page["next"], 40)
    assert page["total"] == rest["total"] == 62
    assert [each["row"] for each in page["documents"] + rest["documents"]] == list(range(62))
    assert rest["next"] is None
    opened.close()


def test_documents_are_found_by_parts_of_their_ids(live, tmp_path):
    corpus = live.state.topics.corpus
    ids = ["dog-5" if n == 5 else f"NY-2024/{n}" for n in range(62)]
    build_index(tmp_path / "ids.sqlite", "", replace(corpus, fields=replace(corpus.fields, ids=ids)), None)
    opened = Live(live.run, live.state, DocumentIndex(tmp_path / "ids.sqlite"), LIMITS)
    with_dog = live.documents(None, "dog", None, None, 1)["total"]

    def found(query: str, topic: int | None = None) -> list[str]:
        """The ids of all documents, by pages of seven."""
        listed, after = [], None
        while listed == [] or after is not None:
            page = opened.documents(topic, query, None, after, 7)
            listed += [each["id"] for each in page["documents"]]
            after = page["next"]
            if page["total"] == 0:
                break
        assert page["total"] == len(listed) == len(set(listed))
        return listed

    assert found("ny-2024/17") == ["NY-2024/17"]
    assert found(" NY-2024/1 ") == ["NY-2024/1", *(f"NY-2024/{n}" for n in range(10, 20))]
    assert found("/17") == ["NY-2024/17"]
    assert found('"/17"') == found("") == []
    assert found("dog")[0] == "dog-5"  # an id; the others have the word
    assert len(found("dog")) == with_dog + 1
    assert len(found('"dog"')) == with_dog
    assert len(found("2024")) == 61  # in no text, but in nearly all ids
    assert set(found("/17", topic=1)) == {"NY-2024/17"}
    assert set(found("dog", topic=1)) == set(found("dog"))
    opened.close()
    assert (
        live.documents(None, "17", None, None, 9)["total"] == 1 + live.documents(None, '"17"', None, None, 9)["total"]
    )
    numbers = replace(corpus, fields=replace(corpus.fields, ids=[str(n) for n in range(62)]))
    build_index(tmp_path / "numbers.sqlite", "", numbers, None)
    opened = Live(live.run, live.state, DocumentIndex(tmp_path / "numbers.sqlite"), LIMITS)
    assert found("1") == ["1"]  # a number that nobody gave is found as a whole only
    opened.close()


def test_a_list_has_the_beginning_of_long_texts(live, tmp_path):
    corpus = live.state.topics.corpus
    texts = ["a" * 300, "b" * 301, *corpus.texts[2:]]
    build_index(tmp_path / "long.sqlite", "", replace(corpus, fields=replace(corpus.fields, texts=texts)), None)
    opened = Live(live.run, live.state, DocumentIndex(tmp_path / "long.sqlite"), LIMITS)
    first, second = opened.documents(None, None, None, None, 2)["documents"]
    assert (first["text"], first["cut"]) == ("a" * 300, False)
    assert (second["text"], second["cut"]) == ("b" * 300, True)
    whole = opened.document(1)
    assert (whole["text"], whole["cut"]) == ("b" * 301, False)
    opened.close()


def test_the_index_keeps_fields_and_puts_the_best_documents_first(tmp_path):
    texts = ["the dog met a cat and a bird near the old bank", "dog dog dog", "loan", "dog cat", "money", "bank loan"]
    corpus = tl.Corpus.from_texts(
        texts, language="en", min_df=1, max_df=1.0, ids="uvwxyz", labels=["pets", *[""] * 5],
        timestamps=["2024-05-01T10:20:30", *[None] * 5],
    )  # fmt: skip
    build_index(tmp_path / "index.sqlite", "these", corpus, corpus.tokenizer)
    index = DocumentIndex(tmp_path / "index.sqlite")
    last, first = index.documents([5, 0])
    assert (last.row, last.id, last.label, last.time, last.text) == (5, "z", None, None, "bank loan")
    assert (first.row, first.id, first.label, first.time, first.text) == (
        0,
        "u",
        "pets",
        "2024-05-01T10:20:30",
        texts[0],
    )
    ranked = index.ranked(["dog"], None, 9)
    assert [row for _, row in ranked] == [1, 3, 0]  # three times in three words, once in two, once in more
    assert index.ranked(["dog"], ranked[0], 9) == ranked[1:]
    index.close()


def test_a_damaged_index_is_not_current(tmp_path):
    corpus = tl.Corpus.from_texts(["dog cat", "bank loan"], language="en", min_df=1, max_df=1.0)
    path = tmp_path / "index.sqlite"
    build_index(path, "these", corpus, None)
    assert is_current(path, "these")
    content = path.read_bytes()
    for damaged in (content.replace(b"bank loan", b"bonk loan"), content[:-1] + b"x", content + b"x", content[:90]):
        path.write_bytes(damaged)
        assert not is_current(path, "these")


def test_many_requests_do_not_wait_for_a_long_one(server):
    long = {"texts": [(PETS + " ") * 100] * 200}
    with httpx.Client(base_url=server, timeout=30) as client, ThreadPoolExecutor(2) as pool:
        slow = pool.submit(client.post, "/api/infer", json=long)
        time.sleep(0.02)
        assert client.get("/health").status_code == 200
        assert slow.result().status_code == 200


@needs_fork
def test_the_extra_is_missing(run):
    def serve_without(missing: str) -> None:
        for name in [name for name in sys.modules if name.startswith((missing, "topicloom.service"))]:
            del sys.modules[name]  # as if they had not been imported
        sys.modules[missing] = None
        run_command("serve", run)

    for name in ("fastapi", "uvicorn", "prometheus_client"):
        code, printed, said = Fork(lambda missing=name: serve_without(missing)).output()
        assert (code, printed) == (2, "")
        assert said == f"topicloom: error: the service needs {name}: pip install 'topicloom[serve]'\n"


def test_sqlite_without_full_text_search(monkeypatch, tmp_path):
    class Connection:
        def execute(self, *_: Any) -> None:
            raise sqlite3.OperationalError("no such module: fts5")

        def close(self) -> None:
            pass

    monkeypatch.setattr(sqlite3, "connect", lambda *_, **__: Connection())
    with pytest.raises(InputError, match="no full-text search"):
        build_index(tmp_path / "x.sqlite", "", tl.Corpus.from_texts(["cat dog"], min_df=1, max_df=1.0), None)
