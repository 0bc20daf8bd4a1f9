"""The pages of the service: the explorer, and the description of the paths. Neither asks any other host."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.resources import files

from fastapi import FastAPI, HTTPException, Response

from ..display import as_markup
from ..reports.explorer import PageOptions, explorer_page
from .guard import NO_SOURCES
from .live import Live
from .snapshot import Snapshot

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{name}</title></head>
<body><h1>{name}</h1><p><a href="docs">The paths of this service</a></p><table>{rows}</table></body></html>
"""
_WAIT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="3"><title>topicloom</title></head>
<body><p>The page of so many documents takes a while to make. It appears here by itself.</p></body></html>
"""
_DOCS = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>topicloom: the paths of the service</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,"><link rel="stylesheet" href="docs/swagger-ui.css"></head>
<body><div id="swagger-ui"></div>
<script src="docs/swagger-ui-bundle.js"></script><script src="docs/start.js"></script></body></html>
"""
_START = """SwaggerUIBundle({
  url: "openapi.json", dom_id: "#swagger-ui", validatorUrl: null, deepLinking: true,
  presets: [SwaggerUIBundle.presets.apis]
});
"""
# Swagger UI writes style attributes, and shows images that its style sheet contains.
_SWAGGER_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)


_POLICY = re.compile(r'http-equiv="Content-Security-Policy" content="([^"]+)"')


def add_pages(app: FastAPI, live: Live) -> None:
    """Add the pages to an application."""
    explorer = _Explorer(live)
    swagger = files("fastapi_offline") / "static"
    assets: Mapping[str, tuple[bytes, str]] = {
        "swagger-ui-bundle.js": ((swagger / "swagger-ui-bundle.js").read_bytes(), "text/javascript"),
        "swagger-ui.css": ((swagger / "swagger-ui.css").read_bytes(), "text/css"),
        "start.js": (_START.encode(), "text/javascript"),
    }

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return _as_html(*await explorer.page())

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return _as_html(_DOCS.encode(), _SWAGGER_POLICY)

    @app.get("/docs/{name}", include_in_schema=False)
    async def asset(name: str) -> Response:
        if name not in assets:
            raise HTTPException(404)
        content, kind = assets[name]
        return Response(content, media_type=kind, headers={"cache-control": "private, max-age=3600"})


def _as_html(content: bytes, policy: str) -> Response:
    return Response(content, media_type="text/html", headers={"content-security-policy": policy})


class _Explorer:
    """The page of the topics, which is made when it is first asked for, and again when the topics were edited."""

    def __init__(self, live: Live) -> None:
        self.live = live
        self._maker = ThreadPoolExecutor(1, "page")
        self._made: tuple[Snapshot, Future[tuple[bytes, str]]] | None = None

    async def page(self) -> tuple[bytes, str]:
        """Return the page and its Content-Security-Policy."""
        now = self.live.snapshot
        if self._made is None or self._made[0] is not now or _has_failed(self._made[1]):
            self._made = now, self._maker.submit(self._make, now)
        made = asyncio.wrap_future(self._made[1])
        try:
            return await asyncio.wait_for(asyncio.shield(made), self.live.limits.seconds / 2)
        except TimeoutError:
            return _WAIT.encode(), NO_SOURCES

    def _make(self, now: Snapshot) -> tuple[bytes, str]:
        title = self.live.run.resolve().name
        if not len(now.theta):
            return _plain(title, now), NO_SOURCES
        options = PageOptions(title, api="api", version=now.version)
        page = explorer_page(now.topics, options, self.live.metrics)
        found = _POLICY.search(page)
        policy = NO_SOURCES if found is None else f"{found[1]}; frame-ancestors 'none'"
        return page.encode("utf-8", "replace"), policy


def _has_failed(future: Future[tuple[bytes, str]]) -> bool:
    return future.done() and future.exception() is not None


def _plain(title: str, now: Snapshot) -> bytes:
    """Return the page of a run without documents: its topics as a table."""
    rows = "".join(
        f"<tr><td>{row['topic']}<td>{as_markup(row['name'])}<td>"
        f"{as_markup(' '.join(word['word'] for word in row['words']))}"
        for row in now.table
    )
    return _PAGE.format(name=as_markup(title), rows=rows).encode("utf-8", "replace")
