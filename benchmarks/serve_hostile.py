"""Hostile clients of the service on this machine. Each attack is bounded in time and in bytes."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress

HEAD = b"Host: localhost\r\nContent-Type: application/json\r\n"
POST = b"POST /api/infer HTTP/1.1\r\n" + HEAD
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
MOST = 20_000_000  # bytes that an attack sends on a connection
SECONDS = 5.0  # that an attack takes
SLOW = 600  # connections at once
ATTACKERS = 3
BODIES = (
    b'{"texts":[' + b",".join([b"1"] * 1_900_000) + b"]}",
    b'{"texts":[],' + b",".join(b'"%x":1' % n for n in range(300_000)) + b"}",
    b'{"texts":[' + b",".join([b"[]"] * 400_000) + b"]}",
    b'{"texts":["' + b"x" * 3_900_000 + b'"]}',
    b"[" * 3_900_000,
    b'{"texts":' + b"9" * 3_900_000 + b"}",
)


def attack(port: int, seconds: float, done: Counter[str]) -> None:
    """Attack for so many seconds, and count the attacks of each kind in `done`."""
    end = time.monotonic() + seconds

    def work(number: int) -> None:
        chance = random.Random(number)
        while time.monotonic() < end:
            name = chance.choice([*KINDS])
            with suppress(OSError):
                KINDS[name](port, chance)
            done[name] += 1

    attackers = [threading.Thread(target=work, args=(number,)) for number in range(ATTACKERS)]
    for attacker in attackers:
        attacker.start()
    for attacker in attackers:
        attacker.join()


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=SECONDS)


def read(connection: socket.socket) -> None:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and connection.recv(1 << 16):
        pass


def flood(port: int, start: bytes, block: bytes) -> None:
    end, block = time.monotonic() + SECONDS, block * max(1, 50_000 // len(block))
    with closing(connect(port)) as connection:
        connection.sendall(start)
        for _ in range(MOST // len(block)):
            if time.monotonic() > end:
                break
            connection.sendall(block)


def large_body(port: int, chance: random.Random) -> None:
    body = chance.choice(BODIES)
    with closing(connect(port)) as connection:
        connection.sendall(POST + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        read(connection)


def slow_connections(port: int, chance: random.Random) -> None:
    opened = []
    for _ in range(SLOW):
        with suppress(OSError):
            opened.append(connect(port))
            opened[-1].sendall(chance.choice([b"", b"GET / HTTP/1.1\r\nHost: lo", HEALTH, POST, CHUNKED + b"1\r\n{"]))
    time.sleep(chance.random() * SECONDS)
    for connection in opened:
        connection.close()


def unread_answers(port: int, chance: random.Random) -> None:
    flood(port, b"", b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n")


def endless_fields(port: int, chance: random.Random) -> None:
    flood(port, chance.choice([CHUNKED + b"1\r\n{\r\n0\r\n", b"GET / HTTP/1.1\r\n"]), b"X-More: yyyyyyyyyyyyyyy\r\n")


def endless_chunks(port: int, chance: random.Random) -> None:
    flood(port, *chance.choice([(CHUNKED, b"1\r\n \r\n"), (CHUNKED + b"1;", b"x" * 1000)]))


def garbage(port: int, chance: random.Random) -> None:
    start = chance.choice([b"", HEALTH, POST, CHUNKED, b"GET /api/documents?q="])
    with closing(connect(port)) as connection:
        connection.sendall(start[: chance.randrange(len(start) + 1)] + chance.randbytes(chance.randrange(20_000)))
        connection.shutdown(socket.SHUT_WR)
        read(connection)


def many_at_once(port: int, chance: random.Random) -> None:
    """Ask 200 times at once, which is more than the service works on at a time."""
    body = b'{"texts":["' + b"cat dog bank " * 7_000 + b'"]}'
    request = POST + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    opened = []
    for _ in range(200):
        with suppress(OSError):
            opened.append(connect(port))
            opened[-1].sendall(request)
    for connection in opened:
        with suppress(OSError), closing(connection):
            read(connection)


KINDS: dict[str, Callable[[int, random.Random], None]] = {
    "bodies of 4 MB with mistakes": large_body,
    f"{SLOW} slow or idle connections": slow_connections,
    "requests whose answers are not read": unread_answers,
    "endless fields before or after a body": endless_fields,
    "endless chunks": endless_chunks,
    "random bytes": garbage,
    "200 requests at once": many_at_once,
}
