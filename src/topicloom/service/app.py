"""The application: the paths of the service and their answers."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import cache
from importlib.resources import files
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel, ConfigDict, Field, PlainValidator, model_validator
from starlette.exceptions import HTTPException as StarletteHTTPException

from .._version import __version__
from ..display import as_markup
from ..errors import InputError
from ..messages import nearest, refusal, without_backquotes
from ..reports.explorer import PageOptions, explorer_page
from ..text.strings import replace_surrogates
from .guard import NO_SOURCES, Access, App, Guard, Measures
from .index import ReplacedError, SlowQueryError
from .live import BusyError, ConflictError, Live, NoSuchDocumentError, NotKeptError, NotWritableError, ServedState

# The bodies of requests and answers
#
# Pydantic collects an error for each wrong element of a list and for each unknown entry. A body of 4 MB can have
# millions of them, and collecting them would take gigabytes and a minute. Therefore a check of a body stops at the
# first error.


def _texts(value: Any) -> Any:
    if not isinstance(value, list):
        raise ValueError("give a list of texts")
    of_tokens = bool(value) and isinstance(value[0], list)
    for number, each in enumerate(value):
        if not _is_tokens(each) if of_tokens else not isinstance(each, str):
            wanted = "a list of strings, as the first one is a list" if of_tokens else "a string"
            raise ValueError(f"text {number} should be {wanted}")
    return value


def _is_tokens(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(token, str) for token in value)


def _edits(value: Any) -> Any:
    if not isinstance(value, list):
        raise ValueError("give a list of edits")
    for number, each in enumerate(value):
        if not isinstance(each, dict):
            raise ValueError(f"edit {number} should be an object")
    return value


class _Body(BaseModel):
    """The body of a request."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _known(cls, value: Any) -> Any:
        unknown = value.keys() - cls.model_fields.keys() if isinstance(value, dict) else ()
        if unknown:
            raise ValueError(f"there is no entry {min(unknown)!a:.60}")
        return value


class Texts(_Body):
    """Texts whose topics are requested."""

    texts: Annotated[
        list[str] | list[list[str]], PlainValidator(_texts, json_schema_input_type=list[str] | list[list[str]])
    ] = Field(
        description="The texts; or, for a model that was trained on tokens, a list of tokens for each text.",
        examples=[["The ship left the port."]],
    )


class NewEdits(_Body):
    """Edits of topics."""

    edits: Annotated[list[dict[str, Any]], PlainValidator(_edits, json_schema_input_type=list[dict[str, Any]])] = Field(
        description="Edits, numbered by the topics of /api/topics before the first of them.",
        examples=[[{"merge": [3, 7]}, {"drop": [5]}, {"rename": {"3": "shipping"}}]],
    )
    version: str | None = Field(
        None, description="The version of the topics for which the edits were made; 409 if it is not the present one."
    )
    replace: bool = Field(
        False, description="Undo earlier edits first. The edits are then numbered by the topics of the run itself."
    )


class Word(BaseModel):
    """A word of a topic."""

    word: str
    probability: float = Field(description="p(word | topic)")


class TopicRow(BaseModel):
    """A topic."""

    topic: int = Field(description="The number of the topic: its column of theta.")
    name: str
    share: float | None = Field(description="The mean of theta over the documents; null if it is not known.")
    documents: int = Field(description="The number of documents with this main topic.")
    words: list[Word]


class TopicList(BaseModel):
    """The topics of the run."""

    run: str
    model: str
    n_topics: int
    n_documents: int
    n_words: int
    has_documents: bool
    has_texts: bool
    has_meaning: bool = Field(description="Whether documents can be searched by meaning, with `like`.")
    version: str = Field(description="Changes whenever the edits change, and differs between models.")
    topics: list[TopicRow]


class ShareOfTopic(BaseModel):
    """A topic of a document."""

    topic: int
    name: str
    share: float


class InferredTopic(ShareOfTopic):
    """A topic of a text, with its words."""

    words: list[str]


class Inferred(BaseModel):
    """The topics of a text."""

    theta: list[float] = Field(description="The share of each topic.")
    empty: bool = Field(description="Whether the model knows no word of the text; it then has the average shares.")
    topics: list[InferredTopic] = Field(description="The largest topics, largest first.")


class InferredList(BaseModel):
    """The topics of texts, in the order of the texts."""

    n_topics: int
    version: str
    documents: list[Inferred]


class DocumentRow(BaseModel):
    """A document of the run."""

    row: int = Field(description="The number of the document, from 0.")
    id: str
    label: str | None
    time: str | None
    text: str | None = Field(description="The text, or its beginning; null if the run did not keep texts.")
    cut: bool = Field(description="Whether `text` is only the beginning.")
    empty: bool = Field(description="Whether the model knows no word of the document.")
    topics: list[ShareOfTopic] = Field(description="The largest topics, largest first.")
    similarity: float | None = Field(None, description="The cosine with the text of `like`; only with `like`.")


class DocumentPage(BaseModel):
    """A page of documents."""

    total: int = Field(description="The number of documents on all pages.")
    next: str | None = Field(description="The value of `after` for the next page; null if there is none.")
    words: list[str] | None = Field(description="The words that the query was split into.")
    version: str
    documents: list[DocumentRow]


class Piece(BaseModel):
    """A piece of a text."""

    text: str
    topic: int | None = Field(description="The topic of the token; null between tokens, and for unknown words.")


class WholeDocument(DocumentRow):
    """A document with its whole text."""

    theta: list[float]
    version: str
    pieces: list[Piece] | None = Field(description="The text without markup, in pieces; null unless requested.")


class EditList(BaseModel):
    """The edits of the run."""

    edits: list[dict[str, Any]] = Field(description="All edits, numbered by the topics of the trained model.")
    version: str


class Problem(BaseModel):
    """The reason why a request was not answered."""

    error: Annotated[str, Field(description="One sentence: what is wrong, and what to do.")]


# The pages of the service: the explorer, and the description of the paths. Neither loads anything from other hosts.

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
# Swagger UI needs style attributes, and images in its style sheet.
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

    @cache
    def description() -> bytes:
        return _encode(app.openapi()).encode()

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> Response:
        return Response(description(), media_type="application/json")

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
    """The page of the topics. It is made at the first request, and again after edits."""

    def __init__(self, live: Live) -> None:
        self.live = live
        self._maker = ThreadPoolExecutor(1, "page")
        self._made: tuple[ServedState, Future[tuple[bytes, str]]] | None = None

    async def page(self) -> tuple[bytes, str]:
        """Return the page and its Content-Security-Policy."""
        now = self.live.state
        if self._made is None or self._made[0] is not now or _has_failed(self._made[1]):
            self._made = now, self._maker.submit(self._make, now)
        made = asyncio.wrap_future(self._made[1])
        try:
            return await asyncio.wait_for(asyncio.shield(made), self.live.limits.seconds / 2)
        except TimeoutError:
            return _WAIT.encode(), NO_SOURCES

    def _make(self, now: ServedState) -> tuple[bytes, str]:
        title = replace_surrogates(self.live.run.resolve().name)
        if not len(now.theta):
            return _plain(title, now), NO_SOURCES
        meaning = self.live.search is not None
        options = PageOptions(title, api="api", version=now.version, meaning=meaning)
        page = explorer_page(now.topics, options, self.live.metrics)
        found = _POLICY.search(page)
        policy = NO_SOURCES if found is None else f"{found[1]}; frame-ancestors 'none'"
        return page.encode("utf-8", "replace"), policy


def _has_failed(future: Future[tuple[bytes, str]]) -> bool:
    return future.done() and future.exception() is not None


def _plain(title: str, now: ServedState) -> bytes:
    """Return the page of a run without documents: its topics as a table."""
    rows = "".join(
        f"<tr><td>{row['topic']}<td>{as_markup(row['name'])}<td>"
        f"{as_markup(' '.join(word['word'] for word in row['words']))}"
        for row in now.table
    )
    return _PAGE.format(name=as_markup(title), rows=rows).encode("utf-8", "replace")


IfMatch = Annotated[str | None, Header(description="The version that the topics should have; otherwise 412.")]
_THREADS = 4  # threads for all requests that are not answered at once
_CHARACTERS_AT_ONCE = 2_000  # shorter texts take a few milliseconds, and need no other thread
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_STATUSES = {
    NotKeptError: 404,
    NoSuchDocumentError: 404,
    ConflictError: 409,
    NotWritableError: 403,
    BusyError: 503,
    ReplacedError: 503,
}
_SENTENCES = {  # replacements for messages of the framework
    "Not Found": "there is no such path; /docs lists all",
    "Method Not Allowed": "this path does not take this method; /docs lists all",
    "There was an error parsing the body": "the body is not JSON that can be read; /docs shows what is expected",
}
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem} for status in (400, 401, 403, 404, 408, 409, 412, 413, 415, 422, 503)
}


def make_app(live: Live, access: Access | None = None) -> App:
    """Return the service as an ASGI application.

    Args:
        live: the run, with the limits of requests.
        access: who may send requests. By default, everyone who reaches the application by the name of this machine.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> import topicloom as tl
        >>> from topicloom.service import Live, make_app
        >>> model = tl.GSM(2, epochs=1).fit([["sea", "ship"], ["fox", "wood"]] * 10)
        >>> with TemporaryDirectory() as folder:
        ...     model.save(folder + "/model")
        ...     app = make_app(Live.open(folder + "/model"))  # uvicorn and other ASGI servers can run it
        >>> callable(app)
        True
    """
    measures = Measures()
    return Guard(_application(live, measures), access or Access(), live.limits, measures)


def _application(live: Live, measures: Measures) -> FastAPI:
    """Return the application without the guard: its checks of requests, its threads and its paths."""

    async def check_version(if_match: IfMatch = None) -> None:
        if if_match is not None and live.state.version not in _versions(if_match):
            raise HTTPException(412, "the topics were edited in the meantime; load them again")

    async def read_edits(request: Request) -> None:
        """Show what another service has edited. Further edits were made for other topics, and are refused instead."""
        path = request.scope["route"].path
        is_edit = (request.method, path) == ("POST", "/api/edits")
        if (path == "/" or path.startswith("/api/")) and not is_edit and live.is_stale:
            await asyncio.get_running_loop().run_in_executor(threads, live.refresh)

    async def check_parameters(request: Request) -> None:
        route = request.scope["route"]
        known = [field.alias for field in route.dependant.query_params]
        if route.include_in_schema and (unknown := sorted(set(request.query_params) - set(known))):
            hint = f"; {nearest(unknown[0], known)}" if known else ""
            raise HTTPException(422, f"there is no parameter {unknown[0]!r}{hint}; /docs shows what is expected")
        counts = Counter(name for name, _ in request.query_params.multi_items())
        if repeated := [name for name, count in counts.items() if count > 1]:
            raise HTTPException(
                422, f"the parameter {repeated[0]!r} is there {counts[repeated[0]]} times; give it once"
            )

    # The threads are kept, because new threads for every burst of requests would make the memory of the process grow.
    threads = ThreadPoolExecutor(_THREADS, "answer")

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        threads.shutdown(wait=False, cancel_futures=True)

    app = FastAPI(
        title="topicloom",
        summary=f"The topics of {live.run.resolve().name}",
        version=__version__,
        openapi_url=None,  # `add_pages` adds it
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        dependencies=[Depends(read_edits), Depends(check_version), Depends(check_parameters)],
        responses=_PROBLEMS,
    )
    _add_errors(app)
    add_pages(app, live)
    _add_paths(app, live, measures, threads)
    return app


def _add_paths(app: FastAPI, live: Live, measures: Measures, threads: ThreadPoolExecutor) -> None:
    """Add the paths below /api, and those that watch the service."""
    limits = live.limits

    async def in_thread(compute: Callable[[], Response]) -> Response:
        """Compute an answer in another thread, so that other requests need not wait for it."""
        return await asyncio.get_running_loop().run_in_executor(threads, compute)

    @app.post("/api/infer", tags=["topics"], summary="Topics of texts", response_model=InferredList)
    async def infer(asked: Texts) -> Response:
        """Infer the topics of texts. The shares are those of `model.transform(texts)`."""
        texts = asked.texts
        # Each token counts as one character more than it has, so that empty tokens count as well.
        lengths = [len(text) if isinstance(text, str) else len(text) + sum(map(len, text)) for text in texts]
        if len(texts) > limits.texts:
            raise HTTPException(413, f"there are {len(texts):,} texts; send at most {limits.texts:,} in a request")
        for number, length in enumerate(lengths):
            if length > limits.characters:
                raise HTTPException(
                    413, f"text {number} has {length:,} characters; send at most {limits.characters:,} of each"
                )
        if sum(lengths) <= _CHARACTERS_AT_ONCE and not live.encodes:
            answer = as_json(live.infer(texts))
        else:
            answer = await in_thread(lambda: as_json(live.infer(texts)))
        measures.texts.inc(len(texts))
        return answer

    @app.get("/api/topics", tags=["topics"], summary="All topics", response_model=TopicList)
    async def topics() -> Response:
        """Return the topics with their names, shares and words."""
        return await in_thread(lambda: as_json(live.topics()))

    @app.get("/api/documents", tags=["documents"], summary="Documents, page by page", response_model=DocumentPage)
    async def documents(
        topic: Annotated[int | None, Query(description="Sort by how typical documents are of this topic.")] = None,
        q: Annotated[
            str | None,
            Query(max_length=1000, description="Only documents with all of these words, or with this in their ids."),
        ] = None,
        id: Annotated[str | None, Query(max_length=1000, description="Only documents with this id.")] = None,
        label: Annotated[str | None, Query(max_length=1000, description="Only documents of this class.")] = None,
        like: Annotated[
            str | None,
            Query(
                max_length=1000, description="Sort by how near documents are to this text in meaning, nearest first."
            ),
        ] = None,
        after: Annotated[
            str | None, Query(max_length=100, description="`next` of the page before; the rest stays the same.")
        ] = None,
        limit: Annotated[int, Query(ge=1, le=limits.documents, description="Documents on a page.")] = 20,
    ) -> Response:
        """Return a page of documents.

        They are sorted by meaning, by their share of a topic, by how well they match a query, or by row.
        """
        return await in_thread(lambda: as_json(live.documents(topic, q, id, after, limit, label, like)))

    @app.get("/api/documents/{row}", tags=["documents"], summary="One document", response_model=WholeDocument)
    async def document(
        row: int,
        pieces: Annotated[bool, Query(description="Return the text in pieces with their topics, too.")] = False,
    ) -> Response:
        """Return a document with its whole text and its share of each topic."""
        return await in_thread(lambda: as_json(live.document(row, pieces)))

    @app.get("/api/edits", tags=["edits"], summary="All edits", response_model=EditList)
    async def edits() -> Response:
        """Return the edits of the topics."""
        return as_json(live.edits())

    @app.post("/api/edits", tags=["edits"], summary="Edit topics", response_model=EditList)
    async def edit(given: NewEdits, if_match: IfMatch = None) -> Response:
        """Merge, drop and rename topics. The edits are stored in edits.yaml in the run directory."""
        version = given.version if given.version is not None or if_match is None else _versions(if_match)[0]
        return await in_thread(lambda: as_json(live.edit(given.edits, version, given.replace)))

    @app.get("/health", tags=["service"], summary="Whether the service runs")
    async def health() -> Response:
        """Say that the service runs. This path needs no token."""
        return as_json({"status": "ok"})

    @app.get("/metrics", tags=["service"], summary="Counters and times")
    async def metrics() -> Response:
        """Return counters and times in the text format of Prometheus."""
        return Response(measures.text(), media_type=CONTENT_TYPE_LATEST)


def _versions(if_match: str) -> list[str]:
    return [version.strip().removeprefix("W/").strip('"') for version in if_match.split(",")]


def as_json(value: Any) -> Response:
    """Return an answer of JSON. Unpaired surrogates are written as escapes."""
    return Response(_encode(value).encode("utf-8", "backslashreplace"), media_type="application/json")


def _add_errors(app: FastAPI) -> None:
    """Answer every error with one sentence."""

    def problem(status: int, message: str, headers: Any = None) -> Response:
        answer = as_json({"error": message})
        answer.status_code = status
        answer.headers.update(headers or {})
        return answer

    async def of_http(_: Request, error: Any) -> Response:
        return problem(error.status_code, _SENTENCES.get(error.detail, error.detail), error.headers)

    async def of_validation(_: Request, error: Any) -> Response:
        first = error.errors()[0]
        named = [str(part) for part in first["loc"][1:] if not str(part).startswith("list[")]  # no kinds of lists
        where = ".".join(named) or str(first["loc"][0])
        reason = str(first.get("ctx", {}).get("error", "")) if first["type"] == "json_invalid" else ""
        what = f"the body is not JSON: {reason}" if reason else f"{where}: {refusal(first)}"
        return problem(422, f"{what}; /docs shows what is expected")

    async def of_input(_: Request, error: Any) -> Response:
        status = next((status for kind, status in _STATUSES.items() if isinstance(error, kind)), 422)
        return problem(status, without_backquotes(str(error)))

    async def of_slow_query(_: Request, error: Any) -> Response:
        return problem(503, "the search took too long; give other words, or try again later", {"Retry-After": "5"})

    async def of_failure(_: Request, error: Any) -> Response:
        return problem(500, "an error occurred in the service; its log says more")

    app.add_exception_handler(Exception, of_failure)
    app.add_exception_handler(StarletteHTTPException, of_http)
    app.add_exception_handler(RequestValidationError, of_validation)
    app.add_exception_handler(InputError, of_input)
    app.add_exception_handler(SlowQueryError, of_slow_query)
