"""A service with OpenAI's interface that gives every prompt the same kind of answer, and a client that waits."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class _Answers(BaseHTTPRequestHandler):
    """Counts the prompts, and names each: Stub subject 1, 2, ..."""

    count = 0

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
        type(self).count += 1
        text = f"Stub subject {self.count}"
        if "json" in asked.lower():
            text = json.dumps({"name": text, "sentence": "It is a subject."})
        message = {"role": "assistant", "content": text}
        body = json.dumps(
            {
                "id": "stub",
                "object": "chat.completion",
                "created": 0,
                "model": "stub",
                "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
            }
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def service() -> Iterator[str]:
    _Answers.count = 0
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


def ask(url: str, body: dict[str, Any], seconds: float = 120) -> int:
    """Send JSON as soon as something answers there, and return the number of the topic with the largest share."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    until = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                said = json.loads(answer.read())
                return int(said["documents"][0]["topics"][0]["topic"])
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.3)
