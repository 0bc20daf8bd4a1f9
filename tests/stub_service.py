"""Services on this machine that answer as a test says."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from topicloom.text import services


class StubHandler(BaseHTTPRequestHandler):
    """Reads and answers requests; a test adds `do_POST`."""

    def body(self) -> dict[str, Any]:
        """The JSON of the request."""
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def respond(self, status: int, answer: Any, headers: Mapping[str, str] | None = None) -> None:
        """Send bytes as they are, and anything else as JSON."""
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def served(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve requests, and give the address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=lambda: server.serve_forever(0.01), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()


def without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let requests be sent again at once, and without a key."""
    monkeypatch.setattr(services, "_FIRST_PAUSE", 0.01)
    for name in ("TOPICLOOM_ENCODER_KEY", "TOPICLOOM_LLM_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
