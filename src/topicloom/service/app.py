"""The application: the paths of the service, and what each of them answers."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException as StarletteHTTPException

from .._version import __version__
from ..display import plain_reason
from ..errors import InputError, nearest, on_command_line
from .access import Access
from .edits import ConflictError, NotWritableError
from .guard import App, Guard
from .index import ReplacedError, SlowQueryError
from .live import Live, NoSuchDocumentError, NotKeptError
from .measures import Measures
from .schemas import DocumentPage, EditList, InferredList, NewEdits, Problem, Texts, TopicList, WholeDocument
from .static import add_pages

IfMatch = Annotated[str | None, Header(description="The version that the topics should have; otherwise 412.")]
_THREADS = 4  # for all requests that are not answered at once
_AT_ONCE = 2_000  # characters; the topics of fewer are inferred in a few milliseconds, without another thread
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_STATUSES = {NotKeptError: 404, NoSuchDocumentError: 404, ConflictError: 409, NotWritableError: 403, ReplacedError: 503}
_SENTENCES = {  # for what the framework says
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
        live: the run, with the limits of what may be asked.
        access: who may ask; by default everyone who reaches the application, by the name of this machine only.
    """
    measures = Measures()
    return Guard(_application(live, measures), access or Access(), live.limits, measures)


def _application(live: Live, measures: Measures) -> FastAPI:
    limits = live.limits

    async def check_version(if_match: IfMatch = None) -> None:
        if if_match is not None and live.snapshot.version not in _versions(if_match):
            raise HTTPException(412, "the topics were edited in the meantime; load them again")

    async def check_parameters(request: Request) -> None:
        route = request.scope["route"]
        known = [field.alias for field in route.dependant.query_params]
        if route.include_in_schema and (unknown := sorted(set(request.query_params) - set(known))):
            hint = f"; {nearest(unknown[0], known)}" if known else ""
            raise HTTPException(422, f"there is no parameter {unknown[0]!r}{hint}; /docs shows what is expected")

    # The threads stay, because new ones for every burst of requests would let the memory of the process grow.
    threads = ThreadPoolExecutor(_THREADS, "answer")

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        threads.shutdown(wait=False, cancel_futures=True)

    async def in_thread(compute: Callable[[], Response]) -> Response:
        """Compute an answer in another thread, so that others need not wait for it."""
        return await asyncio.get_running_loop().run_in_executor(threads, compute)

    app = FastAPI(
        title="topicloom",
        summary=f"The topics of {live.run.resolve().name}",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        dependencies=[Depends(check_version), Depends(check_parameters)],
        responses=_PROBLEMS,
    )
    _add_errors(app)
    add_pages(app, live)

    @app.post("/api/infer", tags=["topics"], summary="Topics of texts", response_model=InferredList)
    async def infer(asked: Texts) -> Response:
        """Infer the topics of texts. The shares are those of `model.transform(texts)`."""
        texts = asked.texts
        # A token counts one more than its characters, so that empty tokens count as well.
        lengths = [len(text) if isinstance(text, str) else len(text) + sum(map(len, text)) for text in texts]
        if len(texts) > limits.texts:
            raise HTTPException(413, f"there are {len(texts):,} texts; send at most {limits.texts:,} in a request")
        for number, length in enumerate(lengths):
            if length > limits.characters:
                raise HTTPException(
                    413, f"text {number} has {length:,} characters; send at most {limits.characters:,} of each"
                )
        if sum(lengths) <= _AT_ONCE:
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
        topic: Annotated[int | None, Query(description="Sort by the share of this topic, largest first.")] = None,
        q: Annotated[
            str | None,
            Query(max_length=1000, description="Only documents with all of these words, or with this in their ids."),
        ] = None,
        id: Annotated[str | None, Query(max_length=1000, description="Only documents with this id.")] = None,
        label: Annotated[str | None, Query(max_length=1000, description="Only documents of this class.")] = None,
        after: Annotated[
            str | None, Query(max_length=100, description="`next` of the page before; the rest stays the same.")
        ] = None,
        limit: Annotated[int, Query(ge=1, le=limits.documents, description="Documents on a page.")] = 20,
    ) -> Response:
        """Return a page of documents, sorted by their share of a topic, by how well they match a query, or by row."""
        return await in_thread(lambda: as_json(live.documents(topic, q, id, after, limit, label)))

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

    return app


def _versions(if_match: str) -> list[str]:
    return [version.strip().removeprefix("W/").strip('"') for version in if_match.split(",")]


def as_json(value: Any) -> Response:
    """Return an answer of JSON. A surrogate without its partner is written as an escape."""
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
        what = f"the body is not JSON: {reason}" if reason else f"{where}: {plain_reason(first['msg'])}"
        return problem(422, f"{what}; /docs shows what is expected")

    async def of_input(_: Request, error: Any) -> Response:
        status = next((status for kind, status in _STATUSES.items() if isinstance(error, kind)), 422)
        return problem(status, on_command_line(str(error), ()))

    async def of_slow_query(_: Request, error: Any) -> Response:
        return problem(503, "the search took too long; give other words, or try again later", {"Retry-After": "5"})

    async def of_failure(_: Request, error: Any) -> Response:
        return problem(500, "an error occurred in the service; its log says more")

    app.add_exception_handler(Exception, of_failure)
    app.add_exception_handler(StarletteHTTPException, of_http)
    app.add_exception_handler(RequestValidationError, of_validation)
    app.add_exception_handler(InputError, of_input)
    app.add_exception_handler(SlowQueryError, of_slow_query)
