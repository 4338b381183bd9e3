"""Turns faults into HTTP, as RFC 9457 problem details; no other module does so."""

import errno
import json
import logging
from bisect import bisect
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import field, replace
from difflib import get_close_matches
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from epsparql.deferred_methods import dataclass
from epsparql.errors import QueryError
from pipeline import errors as pipeline_errors

MEDIA_TYPE = "application/problem+json"
_COMPARED = 200  # the number of names compared, and of characters of each
_NAMES = {HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "Content Too Large", HTTPStatus.UNPROCESSABLE_ENTITY: "Unprocessable Content"}
"""RFC 9110 has these names; Python's depend on its version."""
_SHOWN_KINDS = {"ontology": "graph of the background", "observer": "webhook of this query"}
"""What a message calls a kind; codes and paths keep their names."""
_LISTS = {"query": "/queries", "stream": "/streams", "ontology": "/ontologies", "connector": "/connectors", "trial": "/trials"}
"""These paths list what there is of a kind."""
_NAMED = ("/streams/", "/queries/", "/ontologies/", "/connectors/")
_log = logging.getLogger("epsparql.server")

_STATUS_OF_PIPELINE: dict[type[pipeline_errors.PipelineError], HTTPStatus] = {
    pipeline_errors.InvalidMapping: HTTPStatus.BAD_REQUEST,
    pipeline_errors.StreamFinished: HTTPStatus.CONFLICT,
    pipeline_errors.NotRevisable: HTTPStatus.CONFLICT,
    pipeline_errors.SourceConflict: HTTPStatus.CONFLICT,
    pipeline_errors.TooManySources: HTTPStatus.UNPROCESSABLE_ENTITY,
    pipeline_errors.TooFarAhead: HTTPStatus.UNPROCESSABLE_ENTITY,
    pipeline_errors.NoInstant: HTTPStatus.UNPROCESSABLE_ENTITY,
    pipeline_errors.MessageKeyRefused: HTTPStatus.UNPROCESSABLE_ENTITY,
    pipeline_errors.SubjectReturned: HTTPStatus.UNPROCESSABLE_ENTITY,
    pipeline_errors.SourceSilent: HTTPStatus.TOO_MANY_REQUESTS,
    pipeline_errors.Overloaded: HTTPStatus.TOO_MANY_REQUESTS,
    pipeline_errors.LogFailed: HTTPStatus.SERVICE_UNAVAILABLE,
    pipeline_errors.TooMuchWork: HTTPStatus.SERVICE_UNAVAILABLE,
    pipeline_errors.NotFoundAgain: HTTPStatus.CONFLICT,
    pipeline_errors.Gone: HTTPStatus.GONE,
}
_EXPECTED_PARAMETERS = {
    "bool": "true or false",
    "finite_number": "a finite number",
    "float": "a number",
    "greater_than_equal": "a number of at least {ge:.15g}",
    "int": "a whole number",
    "less_than_equal": "a number of at most {le:.15g}",
    "literal_error": "{expected}",
    "missing": "a value",
    "string_too_long": "a text of at most {max_length} characters",
    "string_too_short": "a text of at least {min_length} characters",
}
"""What a parameter should be, by the beginning of the name of pydantic's error."""
_SHOWN_CHARACTERS = 100
_STATUS_OF_FORMAT = {"media-type": HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "expansion": HTTPStatus.REQUEST_ENTITY_TOO_LARGE}


@dataclass(frozen=True, slots=True)
class Problem:
    """Describes a problem.

    `query` is the name of the query that it concerns. `members` has further members of the document, such as a source
    with its stored position. `reserved` is the detail for callers who may not learn of other names.
    """

    status: HTTPStatus
    code: str
    detail: str
    line: int | None = None
    column: int | None = None
    expected: str | None = None
    query: str | None = None
    members: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    reserved: str | None = None

    def redact(self, *, all_names: bool) -> "Problem":
        """Return the problem for a caller who may, or may not, learn of names beyond the one asked for."""
        return self if all_names or self.reserved is None else replace(self, detail=self.reserved, expected=None)

    def document(self) -> dict[str, Any]:
        """Return the members that apply, ready for JSON."""
        places = {"line": self.line, "column": self.column, "expected": self.expected or None, "query": self.query, **self.members}
        return {
            "type": f"urn:epsparql:problem:{self.code}",
            "title": phrase(self.status),
            "status": int(self.status),
            "detail": self.detail,
            "code": self.code,
            **{name: value for name, value in places.items() if value is not None},
        }

    def response(self) -> Response:
        return Response(json.dumps(self.document()), int(self.status), headers=dict(self.headers), media_type=MEDIA_TYPE)


class Fault(Exception):
    """Carries the `problem` with which a route answers."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem = problem


class StoredPosition(BaseModel):
    """Tells the position of a source; null means that the stream has none of it."""

    id: str
    position: str | None


class ProblemDocument(BaseModel):
    """Describes a fault as an RFC 9457 problem document."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    line: int | None = None
    column: int | None = None
    expected: str | None = None
    query: str | None = None
    source: StoredPosition | None = None
    readings: dict[str, str] | None = Field(default=None, description="What each value of a parameter means, where the body does not decide.")


def phrase(status: HTTPStatus) -> str:
    """Return the name of a status."""
    return _NAMES.get(status, status.phrase)


def bad_request(code: str, detail: str, *, expected: str | None = None, query: str | None = None) -> Fault:
    return Fault(Problem(HTTPStatus.BAD_REQUEST, code, detail, expected=expected, query=query))


def unsupported(detail: str, *, query: str | None = None) -> Fault:
    """Return a fault for something of the contract that this version does not do."""
    return Fault(Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "unsupported", detail, query=query))


def unknown_fault(kind: str, name: str, known: Collection[str], *, query: str | None = None) -> Fault:
    """Return a 404 with a known name that is near, or with how to list all.

    The `kind` is that of the problem's code; a webhook is of a `query`.
    """
    near, shown = _find_near_name(name, known), _SHOWN_KINDS.get(kind, kind)
    if near is not None:
        remedy = f"the nearest known name is {near!r}"
    elif known:
        place = f"/queries/{quote(query, safe='')}/observers" if kind == "observer" and query is not None else _LISTS[kind]
        remedy = f"GET {place} lists the {len(known)} that there are" if len(known) > 1 else f"GET {place} lists the only one"
    else:
        remedy = f"there is no {shown} yet"
    query = name if kind == "query" else query
    reserved = f"there is no {shown} named {name!r}"
    return Fault(Problem(HTTPStatus.NOT_FOUND, f"unknown-{kind}", f"{reserved}; {remedy}", expected=near, query=query, reserved=reserved))


def _find_near_name(name: str, known: Collection[str]) -> str | None:
    """Return the known name that is most like `name`, without regard to case; None where none is like it."""
    folded = {each.casefold(): each for each in _alike(name, known)}
    near = get_close_matches(name[:_COMPARED].casefold(), folded, n=1)
    return folded[near[0]] if near else None


def _alike(name: str, known: Collection[str]) -> Collection[str]:
    """Return at most _COMPARED neighbours of `name` in alphabetical order.

    A full comparison with very many names takes a second, and anyone may ask.
    """
    ordered = sorted(known)
    at = bisect(ordered, name)
    return ordered[max(at - _COMPARED // 2, 0) : at + _COMPARED // 2]


def too_large(what: str, limit: int) -> Problem:
    return Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-large", f"the {what} is larger than {limit} bytes; send it in parts")


def malformed_json(error: json.JSONDecodeError) -> Fault:
    """Return a 400 with the place at which the parser gave up."""
    problem = Problem(HTTPStatus.BAD_REQUEST, "malformed-json", f"the body is no JSON: {error.msg}", error.lineno, error.colno, "a JSON object")
    return Fault(problem)


def describe_exception(error: Exception, *, query: str | None = None) -> Problem:
    """Return the problem that describes `error`.

    An unforeseen error is logged in full, and the client learns only that there was one.
    """
    match error:
        case Fault():
            return error.problem
        case QueryError():
            return Problem(HTTPStatus.BAD_REQUEST, error.code, error.message, error.line, error.column, error.expected, query)
        case pipeline_errors.FormatError():
            status = _STATUS_OF_FORMAT.get(error.code, HTTPStatus.BAD_REQUEST)
            return Problem(status, error.code, error.message, error.line, error.column, error.expected)
        case pipeline_errors.PipelineError():
            status = _STATUS_OF_PIPELINE.get(type(error), HTTPStatus.SERVICE_UNAVAILABLE)
            members = {"source": {"id": error.source, "position": error.stored}} if isinstance(error, pipeline_errors.SourceConflict) else {}
            headers = {"Retry-After": str(error.retry_after_s)} if status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE) else {}
            return Problem(status, error.code, str(error), query=query, members=members, headers=headers)
        case OSError(errno=errno.ENOSPC | errno.EDQUOT):
            _log.error("the disk is full: %s", error)
            detail = "the server's disk is full, so nothing was changed; send the request again once its operator has made room"
            return Problem(HTTPStatus.SERVICE_UNAVAILABLE, "disk-full", detail, query=query, headers={"Retry-After": "10"})
        case _:
            _log.error("unexpected exception", exc_info=error)
            return Problem(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", "an internal error; the server's log has the details", query=query)


def _describe_http(error: HTTPException, path: str) -> Problem:
    status = HTTPStatus(error.status_code)
    name = phrase(status).lower()
    detail = error.detail if error.detail != status.phrase else f"{name}; see /openapi.json for what is served"
    if status == HTTPStatus.NOT_FOUND and path.startswith(_NAMED) and path.count("/") > 2:
        detail += "; a name is one segment of the path, so a slash in it is written %2F"
    return Problem(status, name.replace(" ", "-"), detail, headers=error.headers or {})


def _describe_validation(error: RequestValidationError) -> Problem:
    """Describe the first parameter that cannot be, in words that do not depend on the library that reads it."""
    first = error.errors()[0]
    kind, place = first["type"], " ".join(str(step) for step in first["loc"])
    expected = next((text for begin, text in _EXPECTED_PARAMETERS.items() if kind.startswith(begin)), first["msg"]).format(**first.get("ctx", {}))
    if kind == "missing":
        return Problem(HTTPStatus.BAD_REQUEST, "invalid-parameter", f"{place} is missing", expected=expected)
    given = repr(str(first["input"])[:_SHOWN_CHARACTERS])
    return Problem(HTTPStatus.BAD_REQUEST, "invalid-parameter", f"{place} is {given}; give {expected}", expected=expected)


def describe_responses(statuses: Iterable[int], success: Mapping[int | str, dict[str, Any]] | None = None) -> dict[int | str, dict[str, Any]]:
    """Return OpenAPI's description of a route's problems, and of its successes where the return type does not say."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}}
    return {**(success or {})} | {status: {"description": phrase(HTTPStatus(status)), "content": content} for status in map(int, statuses)}


class ErrorMiddleware:
    """Answers errors that no route foresaw: each is logged once, and the client gets no trace."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception as error:  # noqa: BLE001 - the outermost frame of every request
            problem = describe_exception(error)
            if scope["type"] == "http" and not started:
                await problem.response()(scope, receive, send)
            if scope["type"] == "websocket":
                with suppress(Exception):  # it may be closed already
                    await send({"type": "websocket.close", "code": 1011, "reason": problem.code})


FORESEEN = Fault, QueryError, pipeline_errors.PipelineError
"""Routes raise these on purpose."""


async def answer_fault(request: Request, error: Exception) -> Response:
    """Return the answer to a fault that a route foresaw."""
    return describe_exception(error).redact(all_names=getattr(request.state, "all_names", False)).response()


def install_handlers(app: FastAPI) -> None:
    """Answer every fault of the routes with a problem document."""

    async def on_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return _describe_http(error, request.url.path).response()

    async def on_validation(_request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return _describe_validation(error).response()

    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(RequestValidationError, on_validation)
    for kind in FORESEEN:
        app.add_exception_handler(kind, answer_fault)
