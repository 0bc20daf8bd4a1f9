"""The page: one HTML file that contains its program, its style and its data, and sends no request.

The policy of the page (Content-Security-Policy) allows the one script and the one style sheet in it, by their digests,
and nothing else; a page that reads from a service may also send requests to the host that it came from.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...display import as_markup
from ...files import atomic_file
from .payload import PageOptions, page_parts

if TYPE_CHECKING:
    from ...topics.view import Topics

SCRIPT, STYLE, LICENCES = "explorer.js", "explorer.css", "explorer.licences.md"


def explorer_page(topics: Topics, options: PageOptions | None = None, metrics: Mapping[str, Any] | None = None) -> str:
    """Return the page of topics as HTML.

    Args:
        topics: the topics of a model together with documents.
        options: what the page contains.
        metrics: the contents of metrics.json, for the measures of a run.
    """
    options = options or PageOptions()
    return _html(page_parts(topics, options, metrics), options)


def write_page(
    path: str | Path, topics: Topics, options: PageOptions | None = None, metrics: Mapping[str, Any] | None = None
) -> int:
    """Write the page of topics, and return its size in bytes.

    Args:
        path: an .html file.
        topics, options, metrics: as for `explorer_page`.
    """
    whole = explorer_page(topics, options, metrics).encode("utf-8", "replace")
    with atomic_file(Path(path)) as temporary:
        temporary.write_bytes(whole)
    return len(whole)


def _html(parts: Mapping[str, str], options: PageOptions) -> str:
    script, style = _asset(SCRIPT), _asset(STYLE)
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src '{_digest(script)}'",
            f"style-src '{_digest(style)}'",
            "img-src data:",
            *(["connect-src 'self'"] if options.api is not None else []),
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    data = "\n".join(f'<script type="text/plain" id="part-{name}">{part}</script>' for name, part in parts.items())
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{as_markup(options.title or "topicloom")}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<div id="app"></div>
<noscript>This page needs JavaScript. 此页面需要 JavaScript。</noscript>
{data}
<script type="text/plain" id="licences">{_asset(LICENCES)}</script>
<script>{script}</script>
</body>
</html>
"""


def _asset(name: str) -> str:
    """Return a file of the bundle, which `make explorer` builds from explorer/."""
    return (files(__package__) / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
