"""The pages of the service: the explorer, and the description of the paths. Neither asks any other host."""

from __future__ import annotations

import html
from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING

from fastapi import FastAPI, HTTPException, Response

if TYPE_CHECKING:
    from .live import Live

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{name}</title></head>
<body><h1>{name}</h1><p><a href="docs">The paths of this service</a></p><table>{rows}</table></body></html>
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


def add_pages(app: FastAPI, live: Live) -> None:
    """Add the pages to an application."""
    swagger = files("fastapi_offline") / "static"
    assets: Mapping[str, tuple[bytes, str]] = {
        "swagger-ui-bundle.js": ((swagger / "swagger-ui-bundle.js").read_bytes(), "text/javascript"),
        "swagger-ui.css": ((swagger / "swagger-ui.css").read_bytes(), "text/css"),
        "start.js": (_START.encode(), "text/javascript"),
    }

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        topics = live.topics()
        rows = "".join(
            f"<tr><td>{each['topic']}<td>{html.escape(each['name'])}<td>"
            f"{html.escape(' '.join(word['word'] for word in each['words']))}"
            for each in topics["topics"]
        )
        return Response(_PAGE.format(name=html.escape(topics["run"]), rows=rows), media_type="text/html")

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return Response(_DOCS, media_type="text/html", headers={"content-security-policy": _SWAGGER_POLICY})

    @app.get("/docs/{name}", include_in_schema=False)
    async def asset(name: str) -> Response:
        if name not in assets:
            raise HTTPException(404)
        content, kind = assets[name]
        return Response(content, media_type=kind, headers={"cache-control": "private, max-age=3600"})
